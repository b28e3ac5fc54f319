"""Which rows of the user's data an error is about.

Training sorts, merges, splits and samples rows, and solvers ask for the decisions of some of them.  A region knows
which rows of the user's data its rows are (``Region.take``).  An oracle raises ``row_error`` with the row of the costs
that it got; ``Region.solve_min`` replaces it by the user's row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

#: all rows in order, however many there are
ALL_ROWS = range(sys.maxsize)


class RowNames(NamedTuple):
    """Rows of the user's data that a region's rows are."""

    numbers: range | np.ndarray = ALL_ROWS
    labels: np.ndarray | None = None  # a second name of each row, for example the index of a DataFrame
    label: str = "{}"  # how to print it

    def take(self, rows: slice | np.ndarray) -> RowNames:
        """Names of some of the rows."""
        numbers: range | np.ndarray
        if isinstance(self.numbers, np.ndarray):
            numbers = self.numbers[rows]
        elif isinstance(rows, slice):
            numbers = self.numbers[rows]
        else:
            rows = np.asarray(rows)
            rows = np.flatnonzero(rows) if rows.dtype == bool else rows
            numbers = self.numbers.start + self.numbers.step * rows
        return self._replace(numbers=numbers, labels=None if self.labels is None else self.labels[rows])

    def of(self, row: int) -> str:
        """Name of a row, for error messages."""
        if row >= len(self.numbers):  # not a row of this region: an IndexError would hide the error to be raised
            return f"row {row}"
        name = f"row {int(self.numbers[row])}"
        if self.labels is None or str(self.labels[row]) == str(self.numbers[row]):
            return name
        return f"{name} ({self.label.format(self.labels[row])})"


#: for ``row_error``
EMPTY = "The region of {row} is empty: no decision satisfies its constraints (region_params)."


def row_error(kind: type[Exception], row: int, text: str) -> Exception:
    """Error about one row of the costs; ``{row}`` in the text is replaced by its name."""
    error = kind(text.replace("{row}", f"row {row}"))
    vars(error).update(row=row, row_text=text)
    return error


def refuse_rows(wrong: np.ndarray | np.bool_, kind: type[Exception], text: Callable[[int], str]) -> None:
    """Raise an error about the first row that is wrong, if there is one."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise row_error(kind, row, text(row))


def name_row(error: Exception, name: Callable[[int], str]) -> None:
    """Put the name of its row into a ``row_error`` that has none yet; leave all other errors as they are."""
    text = error.__dict__.pop("row_text", None)
    if text is not None:
        error.args = (text.replace("{row}", name(error.__dict__.pop("row"))),)


@contextmanager
def rows_among(rows: np.ndarray) -> Iterator[None]:
    """Turn the row of a ``row_error`` about some of the rows into the number that it has among all of them."""
    try:
        yield
    except Exception as error:
        if "row_text" in vars(error):
            vars(error).update(row=int(rows[error.__dict__["row"]]))
        raise


@contextmanager
def rows_named(name: Callable[[int], str]) -> Iterator[None]:
    """Name the row of a ``row_error``; the innermost of several contexts does it."""
    try:
        yield
    except Exception as error:
        name_row(error, name)
        raise
