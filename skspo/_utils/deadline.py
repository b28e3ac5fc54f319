"""Time limits of fits (``time_limit`` of the estimators).

A limit is enforced in three places:

    between steps     a solver asks ``StepTimer.late`` and stops while there is time left for the certificate
    inside a step     loops over samples and over rows of an oracle call ``check_time``, which raises ``TimeIsUp``
    before a step     an operation that cannot be interrupted, such as a factorisation, needs ``Deadline.allows``

``check_time`` uses the deadline that ``Deadline.enforced`` has set for the current block of code.  ``carry_deadline``
passes it on to other threads and processes.
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

from .interrupts import check_interrupt, interrupts_arrive

P = ParamSpec("P")
R = TypeVar("R")

#: multiplications of a matrix product that measures the speed of the machine
PROBE = 192**3

#: a back-end that stops at its time limit may do so this many seconds too early by our clock
CLOCKS_DIFFER = 0.05


class TimeIsUp(Exception):
    """The deadline has passed in the middle of a step."""


class Deadline:
    """Time at which a fit must end.

    All processes of one machine share the clock, so that other processes may fit folds.

    Parameters
    ----------
    seconds : float or None, default=None
        Time from now; None means no limit.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = np.inf if seconds is None else float(seconds)
        self.at = perf_counter() + self.seconds
        #: whether a solver stopped because of this deadline
        self.reached = False

    def left(self) -> float:
        """Seconds that are left; negative after the deadline."""
        return self.at - perf_counter()

    def share(self, part: float) -> Deadline:
        """Return an earlier deadline, after a part of the time that is left."""
        other = Deadline(self.seconds)  # messages show the limit of the user
        left = max(self.left(), 0.0)
        other.at = self.at if left == np.inf else self.at - (1.0 - part) * left
        return other

    def allows(self, multiplications: float, part: float = 1.0) -> bool:
        """Whether dense linear algebra of this size fits into a part of the time that is left."""
        return self.at == np.inf or predicted_seconds(multiplications) <= part * self.left()

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Make ``check_time`` raise ``TimeIsUp`` after this deadline, in a ``with`` block; Ctrl-C is not lost there."""
        token = _enforced.set(self)
        try:
            with interrupts_arrive():
                yield
        finally:
            _enforced.reset(token)

    @property
    def message(self) -> str:
        """Why a solver stopped."""
        return f"time_limit={self.seconds:g} s was reached"


_enforced: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def check_time(seconds: float = 0.0) -> None:
    """Raise ``TimeIsUp`` if the current fit has at most ``seconds`` left, ``KeyboardInterrupt`` if it was lost."""
    check_interrupt()
    deadline = _enforced.get()
    if deadline is not None and deadline.at != np.inf and deadline.left() <= seconds:
        deadline.reached = True
        raise TimeIsUp(deadline.message)


@contextmanager
def share_of_time(part: float) -> Iterator[None]:
    """Allow a ``with`` block a part of the time that the current fit has left: ``TimeIsUp`` does not end the fit."""
    deadline = _enforced.get()
    with Deadline().enforced() if deadline is None else deadline.share(part).enforced():
        yield


def end_time() -> None:
    """End the time of the current fit: something that it needs was not finished."""
    deadline = _enforced.get()
    if deadline is not None:
        deadline.at, deadline.reached = min(deadline.at, perf_counter()), True


def in_fit() -> bool:
    """Whether this is part of a fit: fits enforce a deadline, which may be infinite."""
    return _enforced.get() is not None


def time_left() -> float:
    """Seconds that the current fit has left; infinity without a limit."""
    deadline = _enforced.get()
    return np.inf if deadline is None else deadline.left()


class carry_deadline(Generic[P, R]):
    """Function that keeps the deadline of the code that wrapped it, in any thread or process.

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
            start = time.perf_counter()  # tests replace ``perf_counter``, but not this one
            A @ A
            times.append(time.perf_counter() - start)
    return PROBE / max(min(times), 1e-9)


def predicted_seconds(multiplications: float) -> float:
    """Estimated seconds of dense linear algebra on this machine; the speed is measured once per process."""
    return multiplications / _speed()


class StepTimer:
    """Predicts whether another step would take too long.

    A step is assumed to take as long as the last one, or half the one before.

    Parameters
    ----------
    deadline : Deadline
    keep : float
        Share of the time that is reserved for the certificate.
    steps : float
        The time of at least this many steps is reserved, too.
    """

    def __init__(self, deadline: Deadline, keep: float = 0.1, steps: float = 1.0) -> None:
        self.deadline = deadline
        self.before = deadline.left()
        self.keep, self.steps = keep * max(self.before, 0.0), steps
        self.step = 0.0

    def begin(self) -> None:
        """Start timing with the first step: leave out the time before it."""
        self.before, self.step = self.deadline.left(), 0.0

    def late(self) -> bool:
        """Whether to stop; must be called once per step."""
        check_interrupt()
        if self.before == np.inf:
            return False
        left = self.deadline.left()
        self.step, self.before = max(self.before - left, 0.5 * self.step), left
        if left - self.step < max(self.keep, self.steps * self.step):
            self.deadline.reached = True
        return self.deadline.reached
