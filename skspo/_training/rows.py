"""Passes over rows in chunks, and storage of their optimal decisions."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Concatenate, NamedTuple, ParamSpec, Self, TypeVar

import numpy as np

from ..data.chunks import Chunk, ChunkedData
from ..regions._rows import ALL_ROWS
from .in_memory import InMemoryObjective
from .survey import Survey, add, first_row

P = ParamSpec("P")
T = TypeVar("T")

#: function of one part of the objective, the number of rows before it, and further arguments
Task = Callable[Concatenate[InMemoryObjective, int, P], T]


def build_part(
    template: InMemoryObjective, chunk: Chunk, total: float, numbers: range, W: np.ndarray | None = None
) -> InMemoryObjective:
    """Part of the objective that belongs to a chunk; its rows have these numbers, and W are their optimal decisions."""
    X, y, weight, offset = chunk.arrays(template.region)
    if y.shape[0] == 0:
        W = y  # no call of the oracle
    return template.with_rows(X, y, weight / total, offset, W, numbers)


class Every(NamedTuple):
    """Every ``step``-th row from ``first`` on; together they have this share of the total weight."""

    step: int = 1
    share: float = 1.0
    first: int = 0

    def of(self, start: int) -> tuple[slice, int]:
        """Rows of a part whose first row is ``start``, and how many such rows come before the part."""
        after = start - self.first
        return slice(max(-after, -after % self.step), None, self.step), max(-(-after // self.step), 0)


ALL = Every()


class Rows(ABC):
    """Sums over rows, computed where the rows are stored."""

    #: rows of each part, known after the survey
    sizes: tuple[int, ...] = ()

    @abstractmethod
    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """First row of X and of y."""

    @abstractmethod
    def survey(self, task: Callable[[Chunk], Survey]) -> Survey:
        """Sum of ``task(chunk)`` over all chunks."""

    @abstractmethod
    def prepare(self, template: InMemoryObjective, total: float) -> None:
        """Make the parts of the objective and their optimal decisions."""

    @abstractmethod
    def reduce(self, every: Every, task: Task[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Sum of ``task(part, first row of the part, *args)`` over all parts, in a fixed order.

        The parts contain the rows of ``every``, which are counted as if there were no others.
        """

    @abstractmethod
    def close(self) -> None:
        """Release files and memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class LocalRows(Rows):
    """Chunks that are read one after the other; optimal decisions are stored in a temporary file.

    The file has no name, so the system deletes it even if the process is killed.
    """

    def __init__(self, data: ChunkedData) -> None:
        self.data = data
        self._scratch: IO[bytes] | None = None
        self._kept: list[tuple[int, np.dtype, tuple[int, ...]]] = []  # position, type and shape by chunk

    def _chunks(self) -> Iterator[Chunk]:
        return (chunk for chunk in self.data if chunk.n_rows)

    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """First row of the first chunk."""
        for chunk in self._chunks():
            row = first_row(chunk)
            assert row is not None
            return row
        raise ValueError("There are no rows in the chunks: at least one is needed.")

    def survey(self, task: Callable[[Chunk], Survey]) -> Survey:
        """One pass over the raw data."""
        total: Survey | None = None
        names: list[list[object]] | None = None
        for chunk in self._chunks():
            mine = [list(getattr(table, "columns", ())) for table in (chunk.X, chunk.y, chunk.offset)]
            names = mine if names is None else names
            for first, other in zip(names, mine, strict=True):
                if first != other:
                    raise ValueError(f"All chunks must have the same columns: the first has {first}, another {other}.")
            total = add(total, task(chunk))
        assert total is not None
        self.sizes = total.sizes
        return total

    def prepare(self, template: InMemoryObjective, total: float) -> None:
        """One pass over the raw data, one call of the oracle per chunk."""
        self._template, self._total = template, total
        self._scratch = tempfile.TemporaryFile(buffering=0)  # without a buffer a full disk is noticed at once
        start = 0
        for chunk in self._chunks():
            region = template.region._numbered(ALL_ROWS[start:])
            C = region.to_min(chunk.arrays(region).y)
            region._check_true_costs(C)
            W = region.solve_min(C)
            start += len(W)
            # Decisions of many regions are 0 or 1; one byte is enough for them.
            small = W.astype(np.int8) if np.abs(W).max(initial=0.0) <= 127 else W
            self._keep(self._scratch, small if (small == W).all() else W)

    def _keep(self, file: IO[bytes], W: np.ndarray) -> None:
        """Append decisions to the file."""
        self._kept.append((file.tell(), W.dtype, W.shape))
        left = np.ascontiguousarray(W).data.cast("B")
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: the optimal decisions, {W.nbytes // W.shape[0]} bytes for each of "
                f"{sum(self.sizes)} rows, do not fit into {tempfile.gettempdir()}. Set the environment variable TMPDIR "
                "to a folder with more room, and start Python again",
            ) from error

    def _decisions(self, k: int) -> np.ndarray:
        """Read the decisions of a chunk from the file."""
        assert self._scratch is not None
        position, dtype, shape = self._kept[k]
        self._scratch.seek(position)
        return np.fromfile(self._scratch, dtype, int(np.prod(shape))).reshape(shape)

    def reduce(self, every: Every, task: Task[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One pass over the data."""
        total: T | None = None
        start = 0
        for k, (chunk, size) in enumerate(_together(self._chunks(), self.sizes)):
            rows, before = every.of(start)
            numbers = ALL_ROWS[start:][rows]
            start += size
            W = self._decisions(k)[rows].astype(np.float64)
            if len(W):
                part = build_part(self._template, chunk.take(rows), every.share * self._total, numbers, W)
                total = add(total, task(part, before, *args, **kwargs))
        assert total is not None
        return total

    def close(self) -> None:
        """Delete the temporary file."""
        if self._scratch is not None:
            self._scratch.close()


def _together(chunks: Iterable[Chunk], sizes: tuple[int, ...]) -> Iterator[tuple[Chunk, int]]:
    """Chunks and their sizes; an error if the sizes are not those of the first pass."""
    expected = iter(sizes)
    for chunk in chunks:
        size = next(expected, 0)
        if chunk.n_rows != size:
            break
        yield chunk, size
    else:
        if next(expected, None) is None:
            return
    raise ValueError(
        "The chunks had other numbers of rows when they were read again: the source must give the same rows in the "
        "same order every time."
    )
