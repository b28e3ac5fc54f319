"""Ctrl-C is never lost.

Python raises ``KeyboardInterrupt`` wherever it happens to be.  Libraries written in C may be there, and some clear or
replace it: ``np.asarray`` of a list of sparse matrices clears what their ``__len__`` raises, callbacks of ctypes and
``__del__`` only print it, and numba turns it into ``SystemError``.  So the handler of SIGINT notes that it has raised
``KeyboardInterrupt``, and if that did not arrive, it is raised again.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
