"""Progress of long computations on the standard error stream: the one mechanism behind every ``verbose``.

An ``Activity`` is a piece of work: a cross-validation, a fit, a run of a solver.  Those inside another one know it by a
context variable, so that one line shows where the computation is, from the outside in:

    [0:12, 0:40 left] SPOPlusRegressorCV: 34 of 100 fits, fold 2 of 5 | alpha 0.0123 | dual: iteration 12, gap 1.2e-03

In a terminal this line is overwritten.  In a log whole lines are written, at most one per second and less often in long
computations.  The outermost activity ends with a line that states the result; with ``verbose=2`` every one does.

Only the main thread of the main process overwrites lines.  Others write whole lines, or nothing (``silent``).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import partial
from multiprocessing import current_process
from threading import Lock, current_thread, main_thread
from time import perf_counter
from types import TracebackType
from typing import ParamSpec, TextIO, TypeVar

from .limits import check_interrupt

P = ParamSpec("P")
R = TypeVar("R")

#: seconds between two lines, in a terminal and in a log, where it is also at least this share of the time so far
TERMINAL, LOG, LOG_SHARE = 0.1, 1.0, 0.01


def error_stream() -> TextIO | None:
    """Return the standard error stream; None in programs without a console."""
    return sys.stderr


class Screen:
    """The stream of progress: what is on its last line, and when it was written."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.length, self.last = 0, -1e300

    def show(self, text: str, begun: float, *, now: bool = False) -> None:
        """Write a line that the next one may replace, if it is time for one; ``begun`` is the start of the work."""
        time, stream = perf_counter(), error_stream()
        terminal = overwrites(stream)
        pause = TERMINAL if terminal else max(LOG, LOG_SHARE * (time - begun))
        with self.lock:
            if now or time - max(self.last, begun) >= pause:
                self.last = time
                self._write(stream, text, terminal, end="" if terminal else "\n")

    def state(self, text: str) -> None:
        """Write a line that stays."""
        stream = error_stream()
        with self.lock:
            self._write(stream, text, overwrites(stream), end="\n")

    def clear(self) -> None:
        """Remove a line that has not been completed, before an error message."""
        with self.lock:
            if self.length:
                self._write(error_stream(), "", True, end="\r")

    def _write(self, stream: TextIO | None, text: str, terminal: bool, end: str) -> None:
        if stream is None:
            return
        if terminal:
            if end == "":  # a line that wraps around cannot be overwritten
                text = text[: shutil.get_terminal_size().columns - 1]
            blank = " " * max(self.length - len(text), 0)
            self.length = 0 if end else len(text)
            text = f"\r{text}{blank}"
        stream.write(text + end)
        stream.flush()


_screen = Screen()
_current: ContextVar[Activity | None] = ContextVar("activity", default=None)


def overwrites(stream: TextIO | None) -> bool:
    """Whether lines of a stream can be overwritten: a terminal that no other thread or process writes to."""
    alone = current_thread() is main_thread() and current_process().name == "MainProcess"
    return stream is not None and stream.isatty() and alone


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


class Activity:
    """A piece of work that reports its progress.

    As a context manager it is the activity inside which others are shown.  With ``verbose=0`` nothing is shown, with 1
    one line for the outermost activity, with 2 also a line for each activity that ends.  From the ``total`` number of
    steps the time that is left is estimated; ``unit`` is what a step is called.
    """

    def __init__(self, name: str, verbose: int, total: int | None = None, unit: str = "steps") -> None:
        self.name, self.total, self.unit, self.done = name, total, unit, 0
        self.text, self.begun, self.outer = "", perf_counter(), _current.get()
        self.silences: bool = self.outer is not None and self.outer.silences
        self.verbose = 0 if self.silences else int(verbose)
        self.left: float | None = None  # seconds, estimated by the activity itself
        self._token: Token[Activity | None] | None = None

    def __enter__(self) -> Activity:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        _current.reset(self._token)
        if kind is not None and self.verbose:
            _screen.clear()

    def update(self, text: str, left: float | None = None, *, now: bool = False) -> None:
        """Say what is being done; ``left`` estimates the seconds until the end of this activity.

        ``now``: show it at once, because nothing else will be shown for some time.
        """
        check_interrupt()
        self.text, self.left = text, left
        if self.verbose:
            chain = self._chain()
            line = f"[{_times(chain)}] " + " | ".join(filter(None, (activity.line() for activity in chain)))
            _screen.show(line, chain[0].begun, now=now)

    def advance(self, steps: int = 1) -> None:
        """Count steps that are done."""
        self.done += steps

    def finish(self, result: str, *, inside: bool = True) -> None:
        """State the result; ``inside``: with ``verbose=2`` also inside another activity."""
        self.text = result
        if not self.verbose:
            return
        chain = self._chain()
        if len(chain) == 1 or (inside and self.verbose > 1):
            names = [t.line() for t in chain[:-1]] + [f"{self.name}: {result}" if self.name else result]
            _screen.state(f"[{clock(perf_counter() - chain[0].begun)}] " + " | ".join(filter(None, names)))

    def line(self) -> str:
        """Name, steps and what is being done."""
        steps = "" if self.total is None else f"{self.done} of {self.total} {self.unit}"
        what = ", ".join(filter(None, (steps, self.text)))
        return f"{self.name}: {what}" if self.name and what else self.name or what

    def _chain(self) -> list[Activity]:
        """Tasks that are shown, from the outermost to this one."""
        chain, outer = [self], self.outer
        while outer is not None:
            if outer.verbose:
                chain.insert(0, outer)
            outer = outer.outer
        return chain


def _times(chain: list[Activity]) -> str:
    """Time so far, and what is left by the estimate of the outermost activity that has one."""
    now, left = perf_counter(), None
    for activity in chain:
        left = activity.left
        if activity.total is not None and activity.done:
            left = (now - activity.begun) / activity.done * max(activity.total - activity.done, 0)
        if activity.total is not None or left is not None:
            break
    spent = clock(now - chain[0].begun)
    return spent if left is None else f"{spent}, {clock(left)} left"


def silent(func: Callable[P, R]) -> Callable[P, R]:
    """Function inside which no activity shows anything: for parallel workers, whose steps the caller counts."""
    return partial(_call_silently, func)


def _call_silently(func: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    activity = Activity("", 0)
    activity.silences = True
    with activity:
        return func(*args, **kwargs)
