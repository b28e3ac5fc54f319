"""State of one run of solvers: time limit, budget of work, history and caches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.limits import Deadline
from ..regions.capabilities import Memory

if TYPE_CHECKING:
    from ..regions.base import Region
    from ..solvers.dual.pool import DecisionPool
    from ..solvers.dual.solver import State
    from ..solvers.interior_point.reduced_form import ReducedForm


@dataclass
class Budget:
    """Work that a solver may do before it pauses, in the units of ``Estimate.work``.

    Work is counted, not timed, so that the same data give the same model on every machine.
    """

    limit: float = np.inf
    spent: float = 0.0

    @property
    def used_up(self) -> bool:
        """Whether the solver is to pause."""
        return self.spent >= self.limit


@dataclass
class Derived:
    """What depends on the region only, computed when a solver needs it; None until then.

    Parameters
    ----------
    pool : DecisionPool
        Decisions that were found.
    forms : list of ReducedForm
        Its reduced form; none if it has no interior.
    planar : bool
        Whether its equalities are flows in a planar graph.
    faces : list
        Cycle basis of that graph, if it is planar.
    relaxation : Region and Derived
        Its relaxation, and what depends on that.
    """

    pool: DecisionPool | None = None
    forms: list[ReducedForm] | None = None
    planar: bool | None = None
    faces: list[Any] | None = None
    relaxation: tuple[Region, Derived] | None = None


@dataclass
class States:
    """Where solvers stopped, for runs on the same rows with other penalties.

    Parameters
    ----------
    dual : State
        Decisions and weights of the dual method.
    fewer : ndarray of int, dict and States
        Some of the rows, with the cache of the oracle and the states for them.
    """

    dual: State | None = None
    fewer: tuple[np.ndarray, Memory, States] | None = None


@dataclass
class Run:
    """Time limit, budget of work, history and caches of one run.

    The driver creates one and passes it to each solver.  Objectives have no such state, so they can be copied and
    shared.

    Parameters
    ----------
    deadline : Deadline
        When the run must end.
    derived : Derived
        What depends on the region only.  Runs with other penalties or on other rows share it.
    memory : dict
        Cache of the region's oracle for the rows of the objective.  Runs with other penalties share it.
    states : States
        Where solvers stopped.  Runs with other penalties start from there.
    history : list
        Rows of seconds, iteration, objective, bound and step, in the units of the objective.
    n_fits : int
        How many fits there will be, on these rows or on others, with other penalties.
    budget : Budget
        Work after which the current solver pauses.
    paused : dict
        What paused solvers need to go on, by their names.
    step : str
        What all of its steps are part of.
    """

    deadline: Deadline = field(default_factory=Deadline)
    derived: Derived = field(default_factory=Derived)
    memory: Memory = field(default_factory=dict)
    states: States = field(default_factory=States)
    history: list[tuple[float, int, float, float, str]] = field(default_factory=list)
    n_fits: int = 1
    budget: Budget = field(default_factory=Budget)
    paused: dict[str, Any] = field(default_factory=dict)
    step: str = ""

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
