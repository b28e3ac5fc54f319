"""Rows on the workers of a dask cluster (extra ``dask``).

A partition becomes a part of the objective (see ``chunked``), with its optimal decisions, and stays on its worker.  A
pass is one task per partition and a tree of additions, whose root is returned to the driver.  Results are added in the
order of the partitions, so that a fit does not depend on the number of workers, nor on workers that die: dask computes
lost parts again.

The cluster is that of the active ``dask.distributed.Client``; without one, dask's threads are used.
"""

from __future__ import annotations

import time
from asyncio import CancelledError as AsyncCancelled
from collections.abc import Callable
from copy import copy
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np
from sklearn.utils.validation import validate_data

from .._utils.frames import is_dask
from ..data.chunks import Chunk
from ..regions._rows import ALL_ROWS
from ..regions.check import check_not_labels
from .design import check_blocks
from .in_memory import InMemoryObjective
from .inputs import Attributes, feature_attributes, frame_attributes
from .rows import ALL, Every, P, Rows, T, Task, build_part
from .survey import Survey, add, first_row

if TYPE_CHECKING:
    import pandas as pd
    from dask.array import Array
    from dask.dataframe import DataFrame
    from dask.delayed import Delayed
    from distributed import Client

#: number of results that one task adds
FAN_IN = 8

#: seconds without any worker after which a fit stops; dask configuration key "skspo.no-workers-timeout"
NO_WORKERS_TIMEOUT = 60.0

#: seconds between two checks of the workers while waiting for a result
POLL = 1.0


def import_dask() -> ModuleType:
    """Return dask; if it is missing, the error says how to install it."""
    try:
        import dask
        import dask.array
        import dask.delayed
    except ImportError as error:
        raise ImportError("Dask collections need dask: pip install skspo[dask]") from error
    return dask


def current_client() -> Client | None:
    """Return the active client, unless another scheduler was chosen in dask's configuration."""
    chosen = import_dask().config.get("scheduler", None)
    if isinstance(chosen, str) and chosen not in ("dask.distributed", "distributed"):
        return None
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


class DaskRows(Rows):
    """Partitions of dask collections: X and y have the same ones, or are arrays that can be rechunked.

    The parameter ``shared`` of the estimator says whether features come in blocks.
    """

    def __init__(
        self, estimator: object, X: object, y: object, sample_weight: object, offset: object, region_params: object
    ) -> None:
        if region_params is not None:
            raise ValueError(
                "fit cannot combine region_params with dask collections: all rows share one region. A value that "
                "serves all rows can be a parameter of the region instead."
            )
        self._dask = import_dask()
        self._client = current_client()
        self.input_attributes, d = _input_attributes(estimator, X, y, offset)
        if getattr(estimator, "shared", False):
            check_blocks(self.input_attributes["n_features_in_"], d)
        make = self._dask.delayed(Chunk, pure=False)
        self._chunks = [make(*parts) for parts in _partitions(X, y, sample_weight, offset)]
        self._first: tuple[np.ndarray, np.ndarray] | None = None
        self._starts: list[int] = []
        self._parts: list[Delayed] = []
        #: number of passes so far
        self.n_passes = 0

    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """First row of the first partition that has one."""
        for chunk in self._chunks if self._first is None else ():
            self._first = self._collect(self._dask.delayed(first_row)(chunk))
            if self._first is not None:
                break
        if self._first is None:
            raise ValueError("There are no rows in X: at least one is needed.")
        return self._first

    def survey(self, task: Callable[[Chunk], Survey]) -> Survey:
        """One task per partition."""
        total: Survey = self._tree([self._dask.delayed(task)(chunk) for chunk in self._chunks])
        self.sizes = total.sizes
        self._starts = [int(start) for start in np.cumsum((0, *total.sizes[:-1]))]
        return total

    def prepare(self, template: InMemoryObjective, total: float) -> None:
        """Make the parts; they stay on the workers."""
        build = self._dask.delayed(build_part)
        parts = [
            build(template, chunk, total, ALL_ROWS[start:])
            for chunk, start in zip(self._chunks, self._starts, strict=True)
        ]
        if self._client is None:
            self._parts = list(self._dask.persist(*parts))
        else:
            self._parts = self._client.persist(parts)

    def reduce(self, every: Every, task: Task[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One task per partition, and the additions."""
        self.n_passes += 1
        run = self._dask.delayed(_run, pure=False)
        parts = zip(self._parts, self._starts, strict=True)
        return self._tree([run(task, part, start, every, *args, **kwargs) for part, start in parts])

    def close(self) -> None:
        """Release the parts on the workers."""
        self._parts, self._chunks = [], []

    def _tree(self, results: list[Delayed]) -> Any:
        plus = self._dask.delayed(add, pure=False)
        while len(results) > 1:
            results = [plus(*results[k : k + FAN_IN]) for k in range(0, len(results), FAN_IN)]
        return self._collect(results[0])

    def _collect(self, result: Delayed) -> Any:
        """Compute a delayed result; an error if there are no workers, or no scheduler."""
        if self._client is None:
            return result.compute()
        from distributed import CancelledError, wait
        from distributed import TimeoutError as DaskTimeout

        patience = float(self._dask.config.get("skspo.no-workers-timeout", NO_WORKERS_TIMEOUT))
        future = self._client.compute(result)
        alone = 0.0
        while not future.done():
            began = time.monotonic()
            try:
                wait(future, timeout=POLL)
            except (TimeoutError, DaskTimeout):
                alone = 0.0 if self._n_workers() else alone + time.monotonic() - began
            except (AsyncCancelled, CancelledError, OSError):
                break
            if alone > patience:
                future.cancel()
                raise RuntimeError(
                    f"The dask cluster has had no workers for {patience:g} seconds, so the computation was stopped. "
                    "Add workers and try again; dask.config.set({'skspo.no-workers-timeout': seconds}) sets how long "
                    "to wait."
                )
        if future.status in ("cancelled", "lost", "pending"):
            self._gone(f"the result is {future.status}")
        return future.result()

    @staticmethod
    def _gone(why: object, cause: BaseException | None = None) -> NoReturn:
        raise RuntimeError(
            f"The dask cluster cannot be reached any more ({why}), so the computation was stopped. Connect to a "
            "running cluster and try again."
        ) from cause

    def _n_workers(self) -> int:
        """Number of workers; an error if there is no scheduler."""
        from distributed import CancelledError

        client: Any = self._client
        if client.status not in ("running", "newly-created"):
            self._gone(f"the client is {client.status}")
        try:
            return len(client.sync(client.scheduler.ncores, callback_timeout=10 * POLL))
        except (AsyncCancelled, CancelledError, OSError, TimeoutError) as error:
            self._gone(error, error)


def _run(
    task: Task[P, T], part: InMemoryObjective, start: int, every: Every, *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Result of a part; None if it has no rows."""
    rows, before = every.of(start)
    if every != ALL:
        part = part.take(rows, every.share)
    return task(part, before, *args, **kwargs) if part.n_samples else None


def _input_attributes(estimator: object, X: object, y: object, offset: object) -> tuple[Attributes, int]:
    """Check X and y; return the attributes that describe the input, and the number of costs."""
    if not _is_collection(X) or not _is_collection(y):
        raise TypeError(
            "X and y must both be dask collections, or neither: dask.array.from_array makes one of an array."
        )
    if X.ndim != 2 or y.ndim not in (1, 2):
        raise ValueError(f"X must have two dimensions and y one or two, got {X.ndim} and {y.ndim}.")
    check_not_labels(getattr(estimator, "region", None), y.shape)
    noted = copy(estimator)
    validate_data(noted, _example(X), skip_check_array=True, reset=True)
    attributes = feature_attributes(noted) | frame_attributes(estimator, X, y, reset=True, offset=offset)
    return attributes | {"_y_is_1d": y.ndim == 1}, 1 if y.ndim == 1 else y.shape[1]


def _example(X: object) -> pd.DataFrame | np.ndarray:
    """One row with the columns of a collection."""
    if _is_frame(X):
        return X._meta_nonempty.iloc[:1]
    assert _is_collection(X)
    return np.zeros((1, X.shape[1]))


def _is_collection(data: object) -> TypeGuard[Array]:
    return is_dask(data)


def _is_frame(data: object) -> TypeGuard[DataFrame]:
    return hasattr(data, "to_dask_array")


def _blocks_of_rows(array: Array, rows: tuple[int, ...]) -> list[Delayed | np.ndarray]:
    """Blocks of an array with these numbers of rows."""
    n = sum(rows)
    if array.ndim == 1 and array.shape != (n,):
        # An offset that is the same for all rows is copied to every partition.
        return [array.compute()] * len(rows)
    if array.shape[0] != n and not (np.isnan(array.shape[0]) or np.isnan(n)):
        raise ValueError(f"All inputs must have the same number of rows, got {n} and {array.shape[0]}.")
    if array.chunks[0] != rows and not any(np.isnan(rows)):
        array = array.rechunk({0: rows})
    return list((array.rechunk({1: -1}) if array.ndim == 2 else array).to_delayed().ravel())


def _partitions(X: object, *others: object) -> list[tuple[Delayed | np.ndarray | None, ...]]:
    """Corresponding partitions of collections, None for each argument that is None."""
    import dask.array as da

    given = [array for array in (X, *others) if array is not None]
    frames = [array for array in given if _is_frame(array)]
    blocks: list[list[Delayed | np.ndarray]] = []
    if len(frames) == len(given):
        blocks += [list(frame.to_delayed()) for frame in frames]
    else:
        plain = [array.to_dask_array(lengths=True) if _is_frame(array) else array for array in given]
        arrays = [array if _is_collection(array) else da.from_array(np.asarray(array), chunks=-1) for array in plain]
        blocks += [_blocks_of_rows(array, arrays[0].chunks[0]) for array in arrays]
    lengths = {len(block) for block in blocks}
    if len(lengths) > 1:
        raise ValueError(
            f"All inputs must have the same partitions, got {sorted(lengths)} of them. Repartition the data frames."
        )
    columns = iter(blocks)
    nothing = [None] * lengths.pop()
    return list(zip(*(nothing if array is None else next(columns) for array in (X, *others)), strict=True))
