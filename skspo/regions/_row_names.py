"""Which rows of the user's data an error is about.

Training sorts, merges, splits and samples rows, and solvers ask for the decisions of some of them.  A region goes with
its rows (``Region.take``) and remembers which rows of the user's data they are.  An oracle raises ``row_error`` with
the row of the costs that it got; ``Region.solve_min`` puts the user's row in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

#: all rows in order, however many there are
ALL_ROWS = range(sys.maxsize)


class RowNames(NamedTuple):
    """Rows of the user's data that a region's rows are."""

    numbers: range | np.ndarray = ALL_ROWS
    labels: np.ndarray | None = None  # what else the user knows each row by
    label: str = "{}"

    def take(self, rows: slice | np.ndarray) -> RowNames:
        """Names of some of the rows."""
        numbers: Any = self.numbers
        if isinstance(numbers, range) and not isinstance(rows, slice):
            rows = np.asarray(rows)
            rows = np.flatnonzero(rows) if rows.dtype == bool else rows
            numbers = numbers.start + numbers.step * rows
        else:
            numbers = numbers[rows]
        return self._replace(numbers=numbers, labels=None if self.labels is None else self.labels[rows])

    def of(self, row: int) -> str:
        """Name of a row, for error messages."""
        if row >= len(self.numbers):  # not the rows of this region; an error must not hide behind another one
            return f"row {row}"
        name = f"row {int(self.numbers[row])}"
        if self.labels is None or str(self.labels[row]) == str(self.numbers[row]):
            return name
        return f"{name} ({self.label.format(self.labels[row])})"


def row_error(kind: type[Exception], row: int, text: str) -> Exception:
    """Error about one row of the costs; ``{row}`` in the text is replaced by its name."""
    error: Any = kind(text.replace("{row}", f"row {row}"))
    error.row, error.row_text = row, text
    return error


def name_row(error: Exception, name: Callable[[int], str]) -> None:
    """Put the name of its row into a ``row_error`` that has none yet; leave all other errors as they are."""
    text = error.__dict__.pop("row_text", None)
    if text is not None:
        error.args = (text.replace("{row}", name(error.__dict__.pop("row"))),)


@contextmanager
def rows_named(name: Callable[[int], str]) -> Iterator[None]:
    """Name the row of a ``row_error``; the innermost of several contexts does it."""
    try:
        yield
    except Exception as error:
        name_row(error, name)
        raise
