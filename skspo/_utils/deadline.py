"""How much time a fit has left: ``time_limit`` of the estimators.

A limit is kept in three ways:

    between steps     a solver asks ``StepTimer.late`` and stops while there is time left for the certificate
    inside a step     loops over samples and over rows of an oracle call ``check_time``, which raises ``TimeIsUp``
    before a step     what cannot be interrupted, as a single factorisation, is only started if ``Deadline.allows`` it

``check_time`` needs no argument: ``Deadline.enforced`` says for a block of code, and for the threads and processes that
``carry_deadline`` hands work to, which deadline holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from time import perf_counter
from typing import Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

#: multiplications of a matrix product that measures the speed of the machine
PROBE = 192**3

#: seconds by which the clock of a back-end may be ahead of ours when it stops for lack of time
CLOCKS_DIFFER = 0.05


class TimeIsUp(Exception):
    """The deadline has passed in the middle of a step."""


class Deadline:
    """When a fit is to be over.

    Within one machine the clock is the same for all processes, so that folds may be fitted by others.

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

    def allows(self, multiplications: float, part: float = 1.0) -> bool:
        """Whether dense linear algebra of this size fits into a part of the time that is left."""
        return self.at == np.inf or predicted_seconds(multiplications) <= part * self.left()

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Let ``check_time`` raise ``TimeIsUp`` after this deadline, for the length of a block."""
        token = _enforced.set(self)
        try:
            yield
        finally:
            _enforced.reset(token)

    @property
    def message(self) -> str:
        """Why a solver stopped."""
        return f"time_limit={self.seconds:g} s was reached"


_enforced: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def check_time(seconds: float = 0.0) -> None:
    """Raise ``TimeIsUp`` if the fit that calls has no more than so many seconds left."""
    deadline = _enforced.get()
    if deadline is not None and deadline.at != np.inf and deadline.left() <= seconds:
        deadline.reached = True
        raise TimeIsUp(deadline.message)


def time_left() -> float:
    """Seconds that the fit that calls has left; infinite if there is none, or no limit."""
    deadline = _enforced.get()
    return np.inf if deadline is None else deadline.left()


class carry_deadline(Generic[P, R]):
    """A function that runs under the caller's deadline, whichever thread or process calls it.

    Parameters
    ----------
    func : callable
    """

    def __init__(self, func: Callable[P, R]) -> None:
        self.func, self.deadline = func, _enforced.get()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        if self.deadline is None:
            return self.func(*args, **kwargs)
        with self.deadline.enforced():
            return self.func(*args, **kwargs)


@cache
def _speed() -> float:
    """Multiplications of a matrix product per second, on one thread."""
    from .threads import one_blas_thread

    k = round(PROBE ** (1 / 3))
    A = np.full((k, k), 0.5)
    times = []
    with one_blas_thread:
        for _ in range(4):
            start = time.perf_counter()  # never the clock that tests set
            A @ A
            times.append(time.perf_counter() - start)
    return PROBE / max(min(times), 1e-9)


def predicted_seconds(multiplications: float) -> float:
    """Seconds that dense linear algebra takes on this machine, roughly; the speed is measured once per process."""
    return multiplications / _speed()


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
