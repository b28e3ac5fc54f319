"""Limits of a computation: Ctrl-C, the time limit of a fit, and the number of threads.

Ctrl-C
------
Python raises ``KeyboardInterrupt`` wherever it happens to be.  Libraries written in C may be there, and some clear or
replace it: ``np.asarray`` of a list of sparse matrices clears what their ``__len__`` raises, callbacks of ctypes and
``__del__`` only print it, and numba turns it into ``SystemError``.  So the handler of SIGINT notes that it has raised
``KeyboardInterrupt``, and if that did not arrive, it is raised again.

Time
----
``time_limit`` of the estimators is enforced in three places:

    between steps     a solver asks ``StepTimer.late`` and stops while there is time left for the certificate
    inside a step     loops over samples and over rows of an oracle call ``check_time``, which raises ``TimeIsUp``
    before a step     an operation that cannot be interrupted, such as a factorization, needs ``Deadline.allows``

``check_time`` uses the deadline that ``Deadline.enforced`` has set for the current block of code.  ``carry_deadline``
passes it on to other threads and processes.

Threads
-------
The number of BLAS threads and the filters of warnings are global.  A context manager that saves, changes and restores
them fails if two threads overlap: the second saves the value of the first, and restores that in the end.  Here the
first thread that enters makes the change and the last one that leaves undoes it.
"""

from __future__ import annotations

import numbers
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from time import perf_counter
from types import FrameType
from typing import ParamSpec, TypeVar

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import LibController, ThreadpoolController

from .shown import shown

# -- Ctrl-C ------------------------------------------------------------------------------------------------------------

# Whether KeyboardInterrupt was raised and has not arrived yet.
_pending = False


class _Noting:
    """Handler of SIGINT that does what another one does, and notes that it has raised ``KeyboardInterrupt``."""

    def __init__(self, handler: object) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        global _pending
        try:
            self.handler(number, frame)  # type: ignore[operator]
        except KeyboardInterrupt:
            _pending = True
            raise


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def check_interrupt() -> None:
    """Raise ``KeyboardInterrupt`` if it was raised before and did not arrive."""
    if _pending and _in_main_thread():  # Python handles signals in the main thread
        raise KeyboardInterrupt


@contextmanager
def interrupts_arrive() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` at the end of a ``with`` block if it was raised inside and did not arrive."""
    global _pending
    before = signal.getsignal(signal.SIGINT) if _in_main_thread() else None
    outermost = callable(before) and not isinstance(before, _Noting)
    try:
        if outermost:
            signal.signal(signal.SIGINT, _Noting(before))
        yield
        check_interrupt()
    except KeyboardInterrupt:
        _pending = False  # it has arrived
        raise
    except Exception as error:
        if _pending and _in_main_thread():
            _pending = False
            raise KeyboardInterrupt from error
        raise
    finally:
        if outermost:
            _pending = False
            signal.signal(signal.SIGINT, before)


# -- time --------------------------------------------------------------------------------------------------------------

P = ParamSpec("P")
R = TypeVar("R")

#: multiplications of a matrix product that measures the speed of the machine
PROBE = 192**3

#: a back-end that stops at its time limit may do so this many seconds too early by our clock
CLOCKS_DIFFER = 0.05


#: share of the time that is left that a step before the solver may take
PREPARATION = 0.3

#: numbers of a temporary array: 8 MB
BLOCK_ELEMENTS = 2**20

#: numbers of a temporary array that is used again and again, so that it stays in the cache: 1 MB
BLOCK_NUMBERS = 2**17


class TimeIsUp(Exception):
    """The deadline has passed in the middle of a step."""


class Deadline:
    """Time at which a fit must end, some seconds from now; None means no limit.

    All processes of one machine share the clock, so that other processes may fit folds.
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
        if self.at == np.inf:
            return self
        other = Deadline(self.seconds)  # messages show the limit of the user
        other.at = self.at - (1.0 - part) * max(self.left(), 0.0)
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
    with (_enforced.get() or Deadline()).share(part).enforced():
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


def carry_deadline(func: Callable[P, R]) -> Callable[P, R]:
    """Function that keeps the deadline of the code that wrapped it, in any thread or process."""
    deadline = _enforced.get()
    return func if deadline is None else partial(_call_until, deadline, func)


def _call_until(deadline: Deadline, func: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    with deadline.enforced():
        return func(*args, **kwargs)


@cache
def _speed() -> float:
    """Multiplications of a matrix product per second, on one thread."""
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

    A step is assumed to take as long as the last one, or half the one before.  A share of the time, ``keep``, and the
    time of at least some ``steps`` are reserved for the certificate.
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


# -- threads -----------------------------------------------------------------------------------------------------------


class SharedContext(ContextDecorator):
    """A context that is entered by the first of several threads and left by the last, which may be another one."""

    def __init__(self, make: Callable[[], AbstractContextManager[None]]) -> None:
        self._make = make
        self._forget()
        if hasattr(os, "register_at_fork"):
            # After fork only this thread exists; drop the entries of the others.
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        mine = getattr(self, "_inside", []).count(threading.get_ident())
        self._lock, self._inside = threading.Lock(), [threading.get_ident()] * mine

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._context = self._make()
                self._context.__enter__()
            self._inside.append(threading.get_ident())

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside.remove(threading.get_ident())
            if not self._inside:
                self._context.__exit__(None, None, None)


@cache
def _blas_libraries() -> list[LibController]:
    # Cached: the search takes longer than a pass over small data.
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_threads(libraries: dict[LibController, int]) -> None:
    for library, count in libraries.items():
        library.set_num_threads(count)
        # Since threadpoolctl 3.8 only the thread that set the number can set it again, unless it gives up control.
        getattr(library, "clear_controlling_thread", bool)()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    before = {library: library.num_threads for library in _blas_libraries()}
    _set_threads(dict.fromkeys(before, 1))
    try:
        yield
    finally:
        # Leave the thread count alone if someone changed it meanwhile.
        _set_threads({library: count for library, count in before.items() if library.num_threads == 1})


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        modules = r"solvers\.conic|solvers\.backend_process|calibration\.certificate"
        warnings.filterwarnings("ignore", module=rf"cvxpy\b|skspo\.({modules})$")
        yield


#: one BLAS thread: for small matrices, waking threads takes several times longer than the product itself
one_blas_thread = SharedContext(_one_blas_thread)

#: no warnings from calls in these modules, which certify the results themselves
quiet = SharedContext(_quiet)


def count_workers(n_jobs: int | None, n_tasks: int) -> int:
    """Number of workers for some tasks: what joblib makes of ``n_jobs``, but not more than there are tasks.

    Every use of ``joblib.Parallel`` has this number: joblib starts as many processes as it is told, also without work.
    """
    if n_jobs is not None and not isinstance(n_jobs, numbers.Integral):
        raise TypeError(f"n_jobs must be an integer or None, got {shown(n_jobs)}.")
    return max(min(effective_n_jobs(n_jobs), n_tasks), 1)
