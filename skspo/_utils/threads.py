"""Global settings of the process that several threads may change at the same time.

The number of BLAS threads and the filters of warnings are global.  A context manager that saves, changes and restores
them fails if two threads overlap: the second saves the value of the first, and restores that in the end.  Here the
first thread that enters makes the change and the last one that leaves undoes it.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache

from joblib import effective_n_jobs
from threadpoolctl import LibController, ThreadpoolController


class SharedContext:
    """A context that is entered by the first of several threads and left by the last.

    Parameters
    ----------
    make : callable
        Returns the context manager; it may be left by another thread than the one that entered it.
    """

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
    return max(min(effective_n_jobs(n_jobs), n_tasks), 1)
