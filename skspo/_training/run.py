"""State of one run of solvers: time limit, budget of work, history and caches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.limits import Budget, Deadline
from ..regions.capabilities import Memory

if TYPE_CHECKING:
    from ..regions.base import Region
    from ..solvers.dual.pool import DecisionPool
    from ..solvers.dual.solver import State
    from ..solvers.interior_point.state import ReducedForm


@dataclass
class Derived:
    """What depends on the region only, computed when a solver needs it; None until then."""

    pool: DecisionPool | None = None  # decisions that were found
    forms: list[ReducedForm] | None = None  # its reduced form; empty if it has no interior
    planar: bool | None = None  # whether its equalities are flows in a planar graph
    faces: list[Any] | None = None  # cycle basis of that graph; empty if it is not planar
    relaxation: tuple[Region, Derived] | None = None


@dataclass
class States:
    """Where solvers stopped, for runs on the same rows with other penalties."""

    dual: State | None = None
    fewer: tuple[np.ndarray, Memory, States] | None = None  # some rows, the cache of the oracle, and their states


@dataclass
class Run:
    """Time limit, budget of work, history and caches of one run.

    The driver creates one and passes it to each solver.  Objectives have no such state, so they can be copied and
    shared.  Runs with other penalties share ``derived``, ``memory`` and ``states``, and those on other rows
    ``derived``.
    """

    deadline: Deadline = field(default_factory=Deadline)
    derived: Derived = field(default_factory=Derived)
    memory: Memory = field(default_factory=dict)  # cache of the region's oracle for the rows of the objective
    states: States = field(default_factory=States)
    #: seconds, iteration, objective, bound and step, in the units of the objective
    history: list[tuple[float, int, float, float, str]] = field(default_factory=list)
    n_fits: int = 1  # how many there will be, on these rows or on others, with other penalties
    budget: Budget = field(default_factory=Budget)  # of the current solver
    paused: dict[str, Any] = field(default_factory=dict)  # what paused solvers need to go on, by their names
    step: str = ""  # what all steps of the run are part of

    def with_deadline(self, deadline: Deadline) -> Run:
        """Return a run on the same rows, for another penalty or loss, with its own history and deadline."""
        return Run(deadline, self.derived, self.memory, self.states, n_fits=self.n_fits)

    def on_rows(self, rows: np.ndarray, deadline: Deadline, step: str) -> Run:
        """Return a run on some of the rows that goes on with this history; its caches are kept for later runs."""
        known = self.states.fewer
        if known is None or not np.array_equal(known[0], rows):
            known = self.states.fewer = rows, {}, States()
        _, memory, states = known
        return Run(deadline, self.derived, memory, states, self.history, self.n_fits, step=step)

    def on_sample(self, share: float) -> Run:
        """Return a run on some of the rows that takes at most this share of the remaining time."""
        return Run(self.deadline.share(share), self.derived)
