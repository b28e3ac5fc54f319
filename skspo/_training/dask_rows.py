"""Rows on the workers of a dask cluster (extra ``dask``).

Nothing here knows what is summed: see ``chunked``.  A partition becomes a part of the objective, with its optimal
decisions, and stays on its worker; a pass is one task per partition and a tree of additions, of which the driver gets
the root.  Results are added in the order of the partitions whatever worker has them, so that a fit does not depend on
the number of workers, nor on which of them die: what is lost is computed again from the collection.

The cluster is that of the active ``dask.distributed.Client``, wherever its scheduler is; without one, dask's own
threads do the work.
"""

from __future__ import annotations

import time
from asyncio import CancelledError as AsyncCancelled
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from sklearn.utils.validation import validate_data

from ..data.chunks import Chunk, is_dask
from ..regions._row_names import ALL_ROWS
from .design import check_blocks
from .in_memory import InMemoryObjective
from .inputs import cost_attributes, feature_attributes
from .rows import ALL, Every, Rows, build_part
from .survey import Survey, add, first_row, survey_chunk

if TYPE_CHECKING:
    from distributed import Client

#: how many results are added by one task
FAN_IN = 8

#: seconds without any worker after which a fit gives up; dask configuration key "skspo.no-workers-timeout"
NO_WORKERS_TIMEOUT = 60.0

#: seconds between two looks at the workers while waiting for a result
POLL = 1.0


def import_dask() -> Any:
    """Return dask, or say how to get it."""
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
    """Partitions of dask collections.

    Parameters
    ----------
    estimator : estimator
        Says whether features come in blocks.
    X, y : dask array or data frame
        Same partitions, or arrays whose rows can be brought into line.
    sample_weight, offset : dask array, array-like or None
    region_params : None
        Anything else is an error.
    """

    in_parallel = True

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, region_params: Any = None
    ) -> None:
        if region_params is not None:
            raise ValueError("region_params cannot be combined with dask collections: all rows share one region.")
        self._dask = import_dask()
        self._client = current_client()
        self.input_attributes = _seen(estimator, X, y, offset)
        if getattr(estimator, "shared", False):
            check_blocks(self.input_attributes["n_features_in_"], 1 if y.ndim == 1 else y.shape[1])
        make = self._dask.delayed(Chunk, pure=False)
        self._chunks = [make(*parts) for parts in _partitions(X, y, sample_weight, offset)]
        self._first: tuple[np.ndarray, np.ndarray] | None = None
        self._starts: list[int] = []
        self._parts: list[Any] = []
        #: passes so far: sums that came back to the driver
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

    def survey(self, *args: Any) -> Survey:
        """One task per partition."""
        total: Survey = self._tree([self._dask.delayed(survey_chunk)(chunk, *args) for chunk in self._chunks])
        self.sizes = total.sizes
        self._starts = [int(start) for start in np.cumsum((0, *total.sizes[:-1]))]
        return total

    def prepare(self, template: InMemoryObjective, total: float) -> None:
        """Parts stay on the workers that make them."""
        build = self._dask.delayed(build_part)
        parts = [
            build(template, chunk, total, ALL_ROWS[start:])
            for chunk, start in zip(self._chunks, self._starts, strict=True)
        ]
        if self._client is None:
            self._parts = list(self._dask.persist(*parts))
        else:
            self._parts = self._client.persist(parts)

    def reduce(self, task: Callable[..., Any], *args: Any, every: Every = ALL) -> Any:
        """One task per partition and the additions; the driver gets one result."""
        self.n_passes += 1
        run = self._dask.delayed(_run, pure=False)
        parts = zip(self._parts, self._starts, strict=True)
        return self._tree([run(task, part, start, every, *args) for part, start in parts])

    def close(self) -> None:
        """Let the workers forget the parts."""
        self._parts, self._chunks = [], []

    def _tree(self, results: list[Any]) -> Any:
        plus = self._dask.delayed(add, pure=False)
        while len(results) > 1:
            results = [plus(*results[k : k + FAN_IN]) for k in range(0, len(results), FAN_IN)]
        return self._collect(results[0])

    def _collect(self, result: Any) -> Any:
        """Value of a delayed result, or an error if there is nobody left to compute it."""
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
    def _gone(why: Any, cause: BaseException | None = None) -> NoReturn:
        raise RuntimeError(
            f"The dask cluster cannot be reached any more ({why}), so the computation was stopped. Connect to a "
            "running cluster and try again."
        ) from cause

    def _n_workers(self) -> int:
        """Number of workers; an error if there is not even a scheduler."""
        from distributed import CancelledError

        client: Any = self._client
        if client.status not in ("running", "newly-created"):
            self._gone(f"the client is {client.status}")
        try:
            return len(client.sync(client.scheduler.ncores, callback_timeout=10 * POLL))
        except (AsyncCancelled, CancelledError, OSError, TimeoutError) as error:
            self._gone(error, error)


def _run(task: Callable[..., Any], part: InMemoryObjective, start: int, every: Every, *args: Any) -> Any:
    """Result of a part, None if it has no rows."""
    rows, before = every.of(start)
    if every != ALL:
        part = part.take(rows, every.share)
    return task(part, before, *args) if part.n_samples else None


def _seen(estimator: Any, X: Any, y: Any, offset: Any) -> dict[str, Any]:
    """What the estimator remembers of the input: features, names of costs, the shape of y, and whether of an offset."""
    if not is_dask(X) or not is_dask(y):
        raise TypeError(
            "X and y must both be dask collections, or neither: dask.array.from_array makes one of an array."
        )
    if X.ndim != 2 or y.ndim not in (1, 2):
        raise ValueError(f"X must have two dimensions and y one or two, got {X.ndim} and {y.ndim}.")
    noted = copy(estimator)
    validate_data(noted, _example(X), skip_check_array=True, reset=True)
    return {
        **feature_attributes(noted),
        **cost_attributes(estimator, y, reset=True, offset=offset),
        "_y_is_1d": y.ndim == 1,
    }


def _example(X: Any) -> Any:
    """One row with the columns of a collection."""
    return X._meta_nonempty.iloc[:1] if _is_frame(X) else np.zeros((1, X.shape[1]))


def _is_frame(collection: Any) -> bool:
    return hasattr(collection, "to_dask_array")


def _partitions(X: Any, *others: Any) -> list[tuple[Any, ...]]:
    """Corresponding partitions of collections, None for each one that is absent."""
    import dask.array as da

    arrays = [X, *others]
    if all(array is None or _is_frame(array) for array in arrays):
        blocks = [None if array is None else array.to_delayed() for array in arrays]
    else:
        lined_up: list[Any] = []
        for array in arrays:
            if array is None:
                lined_up.append(None)
                continue
            if _is_frame(array):
                array = array.to_dask_array(lengths=True)
            elif not is_dask(array):
                array = da.from_array(np.asarray(array), chunks=-1)
            lined_up.append(array)
        rows = next(array for array in lined_up if array is not None).chunks[0]
        n = sum(rows)
        blocks = []
        for array in lined_up:
            if array is None or (array.ndim == 1 and array.shape != (n,)):
                # The same offset for all rows belongs to every partition.
                blocks.append(None if array is None else [array.compute()] * len(rows))
                continue
            if array.shape[0] != n and not (np.isnan(array.shape[0]) or np.isnan(n)):
                raise ValueError(f"All inputs must have the same number of rows, got {n} and {array.shape[0]}.")
            if array.chunks[0] != rows and not any(np.isnan(rows)):
                array = array.rechunk({0: rows})
            array = array.rechunk({1: -1}) if array.ndim == 2 else array
            blocks.append(list(array.to_delayed().ravel()))
    lengths = {len(block) for block in blocks if block is not None}
    if len(lengths) > 1:
        raise ValueError(
            f"All inputs must have the same partitions, got {sorted(lengths)} of them. Repartition the data frames."
        )
    return list(zip(*([None] * len(blocks[0]) if b is None else b for b in blocks), strict=True))  # type: ignore[arg-type]
