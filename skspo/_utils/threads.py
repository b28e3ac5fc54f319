"""What belongs to the whole process, and fits in several threads change at the same time.

The number of BLAS threads and the filters of warnings are global.  A context manager that saves them, changes them and
puts them back is wrong as soon as two threads overlap: the second saves what the first has set, and puts that back for
good.  Here the first thread that enters makes the change and the last one that leaves undoes it.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache

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
            # Threads do not survive a fork, so nobody would leave; what they had set stays with the child.
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
    # Looking for them takes longer than a pass over small data.
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_threads(libraries: dict[LibController, int]) -> None:
    for library, count in libraries.items():
        library.set_num_threads(count)
        # From threadpoolctl 3.8 on, a thread that has set the number is the only one that can until it says otherwise.
        getattr(library, "clear_controlling_thread", bool)()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    before = {library: library.num_threads for library in _blas_libraries()}
    _set_threads(dict.fromkeys(before, 1))
    try:
        yield
    finally:
        # Who has set another number in the meantime shall keep it.
        _set_threads({library: count for library, count in before.items() if library.num_threads == 1})


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"cvxpy\b|skspo\.(solvers\.conic|calibration\.certificate)$")
        yield


#: one thread for BLAS: where matrices are small, waking threads for each product costs several times its own time
one_blas_thread = SharedContext(_one_blas_thread)

#: no warnings about what these modules call: they judge results by a certificate of their own
quiet = SharedContext(_quiet)
