"""What belongs to one run of a solver, and not to the problem that it solves."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._utils.deadline import Deadline
from ..regions.capabilities import Memory


@dataclass
class Run:
    """Time limit, history and caches of one run.

    The driver makes one, and hands it to each solver that it tries.  Objectives have no such state, so that they can be
    copied and shared.

    Parameters
    ----------
    deadline : Deadline
        When the run has to end.
    derived : dict
        What solvers derived from the region alone.  Runs with other penalties or on other rows share it.
    memory : dict
        Cache of the region's oracle for the rows of the objective.  Runs with other penalties share it.
    history : list
        What solvers reported: seconds, iteration, objective and bound, in the units of the objective.
    """

    deadline: Deadline = field(default_factory=Deadline)
    derived: Memory = field(default_factory=dict)
    memory: Memory = field(default_factory=dict)
    history: list[tuple[float, int, float, float]] = field(default_factory=list)

    def with_deadline(self, deadline: Deadline) -> Run:
        """Return a run on the same rows, with another penalty or loss and its own history and deadline."""
        return Run(deadline, self.derived, self.memory)

    def on_sample(self, share: float) -> Run:
        """Return a run on some of the rows that takes at most this share of the time that is left."""
        return Run(self.deadline.share(share), self.derived)
