"""Data that are read in chunks.

Conventions
-----------
    a chunk       some consecutive rows: X (m, p), y (m, d), weights (m,), offset (m, d); it fits into memory
    a source      gives its chunks in the same order, with the same rows, every time it is iterated over

A fit reads the source several times, a few dozen in most cases, and holds one chunk at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_consistent_length

from .._utils.errors import import_optional
from .._utils.frames import check_columns, check_index, take_rows
from .._utils.limits import BLOCK_ELEMENTS
from .._utils.params import integer, optional
from .._utils.scaling import check_largest
from ..losses import check_existing, check_offset, check_weight
from ..regions.base import Region

#: bytes of memory-mapped features and costs beyond which ``fit`` reads them in chunks
IN_MEMORY_LIMIT = 2**28


class Chunk(NamedTuple):
    """Some rows of the data; a field that is None is None in all chunks."""

    X: Any
    y: Any
    sample_weight: Any = None
    offset: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def head(self) -> Chunk:
        """First row, without its weight, which may be zero."""
        return self._replace(sample_weight=None).take(slice(1))

    def take(self, rows: slice) -> Chunk:
        """Some of the rows."""
        by_row = self if self.offset is not None and np.ndim(self.offset) == np.ndim(self.y) else self[:3]
        return Chunk(*(take_rows(array, rows) for array in by_row), *self[len(by_row) :])

    def arrays(self, region: Region | None = None) -> Chunk:
        """Same rows as float arrays, costs with two dimensions, 0 where none exists; values are not checked."""
        X, y = np.asarray(self.X, dtype=np.float64), np.asarray(self.y, dtype=np.float64)
        y = y[:, None] if y.ndim == 1 else y
        possible = None if region is None else region.possible(*y.shape)
        y = y if possible is None else np.where(possible, y, 0.0)
        weight = np.ones(X.shape[0]) if self.sample_weight is None else np.asarray(self.sample_weight, dtype=np.float64)
        return Chunk(X, y, weight, check_offset(self.offset, y.shape))

    def checked(self, region: Region | None = None) -> Chunk:
        """Same rows as finite float arrays, with 0 for costs that do not exist; without a region costs may be NaN."""
        X = check_array(self.X, dtype=np.float64, ensure_min_samples=0, input_name="X")
        y = check_array(
            self.y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, ensure_min_samples=0, input_name="y"
        )
        y = y[:, None] if y.ndim == 1 else y
        if region is not None:
            y = check_existing(y, region)[0]
            check_largest(y=y)
        check_consistent_length(X, y)
        check_index(**self._asdict())
        weight: Any = np.ones(X.shape[0])
        if self.sample_weight is not None:
            check_consistent_length(X, self.sample_weight)
            # All weights of a chunk may be zero, as long as those of another are not.
            weight = check_weight(self.sample_weight, X) if np.any(self.sample_weight) else 0.0 * weight
        offset = check_offset(self.offset, y.shape)
        check_largest(X=X, offset=offset)
        return Chunk(X, y, weight, offset)


class ChunkedData:
    """Rows that are read chunk by chunk, as often as needed.

    Parameters
    ----------
    source : callable or iterable
        A function without arguments that returns an iterable of chunks, or an object that can be iterated over
        repeatedly, such as a list.  A chunk is a ``Chunk`` or a tuple ``(X, y)``, ``(X, y, sample_weight)`` or
        ``(X, y, sample_weight, offset)``.  Rows and their order must be the same every time.

    See Also
    --------
    SPOPlusRegressor.fit_chunks : Fits a model to such data.

    Examples
    --------
    >>> from skspo import ChunkedData, Simplex, SPOPlusRegressor
    >>> from skspo.datasets import make_cost_sensitive_classification
    >>> def read():
    ...     for seed in range(3):
    ...         yield make_cost_sensitive_classification(50, random_state=seed)
    >>> model = SPOPlusRegressor(Simplex()).fit_chunks(ChunkedData(read))
    >>> model.solver_, bool(model.duality_gap_ <= 1e-6)
    ('interior-point', True)
    """

    def __init__(self, source: Callable[[], Iterable[object]] | Iterable[object]) -> None:
        if not callable(source):
            try:
                once = iter(source) is source
            except TypeError:
                raise TypeError(
                    f"chunks must be a function that returns an iterable of (X, y), or a list of them; got {source!r}."
                ) from None
            if once:
                raise TypeError(
                    "chunks is an iterator, which can be read only once, and training reads the data several times. "
                    "Pass the function that makes it: fit_chunks(read) instead of fit_chunks(read())."
                )
        self.source = source

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self.source() if callable(self.source) else self.source:
            if not isinstance(chunk, tuple | list) or not 2 <= len(chunk) <= 4:
                raise TypeError(
                    "A chunk must be a tuple (X, y), (X, y, sample_weight) or (X, y, sample_weight, offset), "
                    f"got {type(chunk).__name__}."
                )
            yield Chunk(*chunk)

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        chunk_rows: int | None = None,
    ) -> ChunkedData:
        """Slices of arrays, which may be memory-mapped.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples, d) or (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        offset : array-like of shape (n_samples, d) or (d,), optional
        chunk_rows : int or None
            Rows of a chunk; None means about 8 MB.

        Returns
        -------
        data : ChunkedData

        Examples
        --------
        >>> import numpy as np
        >>> from skspo import ChunkedData
        >>> data = ChunkedData.from_arrays(np.zeros((10, 2)), np.zeros((10, 3)), chunk_rows=4)
        >>> [chunk.n_rows for chunk in data]
        [4, 4, 2]
        """
        X, y = _sliceable(X), _sliceable(y)
        check_consistent_length(X, y, sample_weight)
        check_index(X=X, y=y, sample_weight=sample_weight, offset=offset)
        check_columns({"y": y, "offset": offset}, None)
        n = X.shape[0]
        optional(integer(1))("chunk_rows", chunk_rows)
        width = int(np.prod(X.shape[1:])) + int(np.prod(y.shape[1:]))
        step = max(1, BLOCK_ELEMENTS // width) if chunk_rows is None else int(chunk_rows)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        known = None if offset is None else np.asarray(offset)
        by_row = known is not None and known.shape[:1] == (n,) and known.ndim == y.ndim

        def read() -> Iterator[Chunk]:
            for start in range(0, n, step):
                rows = slice(start, min(start + step, n))
                yield Chunk(X[rows], y[rows], take_rows(weight, rows), take_rows(known, rows) if by_row else known)

        return cls(read)

    @classmethod
    def from_npy(
        cls,
        X: str | Path,
        y: str | Path,
        sample_weight: str | Path | None = None,
        offset: str | Path | None = None,
        *,
        chunk_rows: int | None = None,
    ) -> ChunkedData:
        """Memory-mapped .npy files.

        Parameters
        ----------
        X, y, sample_weight, offset : path
            Files written by ``numpy.save``; the last two are optional.
        chunk_rows
            As in ``from_arrays``.

        Returns
        -------
        data : ChunkedData
        """
        rest = [None if path is None else np.load(path, mmap_mode="r") for path in (sample_weight, offset)]
        return cls.from_arrays(np.load(X, mmap_mode="r"), np.load(y, mmap_mode="r"), *rest, chunk_rows=chunk_rows)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path | Sequence[str | Path],
        features: Sequence[str],
        costs: Sequence[str],
        sample_weight: str | None = None,
        *,
        chunk_rows: int | None = None,
    ) -> ChunkedData:
        """Columns of a Parquet file or of a directory of such files, read with pyarrow.

        Parameters
        ----------
        path : path or list of paths
            Whatever ``pyarrow.dataset.dataset`` takes.
        features, costs : list of str
            Names of the columns of X and of y.
        sample_weight : str or None
            Name of the column of weights.
        chunk_rows : int or None
            Largest number of rows of a chunk; None means about 8 MB.

        Returns
        -------
        data : ChunkedData
            Its chunks are data frames, so that the model knows the names of its features.
        """
        pads = import_optional("pyarrow.dataset", "pyarrow", who="ChunkedData.from_parquet", install="pyarrow")
        columns = [*features, *costs, *([] if sample_weight is None else [sample_weight])]
        table = pads.dataset(path, format="parquet")
        missing = [name for name in columns if name not in table.schema.names]
        if missing:
            raise ValueError(f"There are no columns {missing} in {path}; it has {table.schema.names}.")
        optional(integer(1))("chunk_rows", chunk_rows)
        step = max(1, BLOCK_ELEMENTS // len(columns)) if chunk_rows is None else int(chunk_rows)

        def read() -> Iterator[Chunk]:
            # Read few batches ahead, so that memory is bounded by chunks and not by files.
            for batch in table.to_batches(columns=columns, batch_size=step, batch_readahead=1, fragment_readahead=1):
                if batch.num_rows:
                    frame = batch.to_pandas()
                    weight = None if sample_weight is None else frame[sample_weight].to_numpy()
                    yield Chunk(frame[list(features)], frame[list(costs)], weight)

        return cls(read)


def _sliceable(array: ArrayLike) -> np.ndarray:
    """Return an array as it is, also if it is memory-mapped or a frame; make one of anything else."""
    return cast("np.ndarray", array) if hasattr(array, "shape") else np.asarray(array)


def is_large_memmap(X: object, y: object) -> bool:
    """Whether arrays are memory-mapped and too large to be copied into memory."""
    mapped = any(isinstance(array, np.memmap) for array in (X, y))
    return mapped and sum(getattr(array, "nbytes", 0) for array in (X, y)) > IN_MEMORY_LIMIT
