"""How much time a fit has left: ``time_limit`` of the estimators."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np


class Deadline:
    """When a fit is to be over.

    It is looked at between the steps of a solver, and nothing is interrupted.  Within one machine the clock is the same
    for all processes, so that folds may be fitted by others.

    Parameters
    ----------
    seconds : float or None, default=None
        From now on; None means without end.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = np.inf if seconds is None else float(seconds)
        self.at = perf_counter() + self.seconds
        #: whether a solver stopped because of it
        self.reached = False

    def left(self) -> float:
        """Seconds that are left; negative if it is over."""
        return self.at - perf_counter()

    def share(self, part: float) -> Deadline:
        """Return an earlier end, after a part of the time that is left."""
        other = Deadline(self.seconds)  # which is what the user knows
        left = max(self.left(), 0.0)
        other.at = self.at if left == np.inf else self.at - (1.0 - part) * left
        return other

    @property
    def message(self) -> str:
        """Why a solver stopped."""
        return f"time_limit={self.seconds:g} s was reached"


class StepTimer:
    """Tell whether another step would take too long.

    A step is assumed to take as long as the last one, or half the one before.

    Parameters
    ----------
    deadline : Deadline
    keep : float
        Share of the time that is kept for the certificate.
    steps : float
        For how many steps, at least, time is kept.
    """

    def __init__(self, deadline: Deadline, keep: float = 0.1, steps: float = 1.0) -> None:
        self.deadline = deadline
        self.before = deadline.left()
        self.keep, self.steps = keep * max(self.before, 0.0), steps
        self.step = 0.0

    def begin(self) -> None:
        """Say that the first step begins: what was before is no measure of it."""
        self.before, self.step = self.deadline.left(), 0.0

    def late(self) -> bool:
        """Whether to stop here; to be asked once in every step."""
        if self.before == np.inf:
            return False
        left = self.deadline.left()
        self.step, self.before = max(self.before - left, 0.5 * self.step), left
        if left - self.step < max(self.keep, self.steps * self.step):
            self.deadline.reached = True
        return self.deadline.reached


def check_time_limit(value: Any) -> None:
    """Raise an error if a parameter ``time_limit`` is no positive number."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if value is not None and not (number and value > 0):
        raise ValueError(f"time_limit must be None or a positive number of seconds, got {value!r}.")
