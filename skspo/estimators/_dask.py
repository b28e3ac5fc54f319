"""Predictions, decisions and scores of dask collections, partition by partition."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._training.dask_rows import DaskRows, _example, _is_frame, _partitions, import_dask
from .._training.fitted import metadata_checked
from .._utils.errors import errors_note
from .._utils.types import RegionParams
from ..data.chunks import Chunk
from ..metrics import _spo_losses, normalize

if TYPE_CHECKING:
    from dask.array import Array

    from ._base import DecisionMixin


def _check_single(region_params: RegionParams | None) -> None:
    """Raise an error if ``region_params`` are not single values, which serve every partition."""
    if region_params is not None and not isinstance(region_params, Mapping):
        raise ValueError(
            "With dask collections region_params must be a dict of single values that serve all rows, such as "
            f"{{'capacity': 17}}; got {type(region_params).__name__}."
        )


def map_partitions(
    estimator: object, method: str, X: object, offset: object = None, region_params: RegionParams | None = None
) -> Any:
    """Lazy ``predict`` or ``decide``: a dask array with the partitions of X; ``region_params`` are single values."""
    dask = import_dask()
    import dask.array as da

    check_is_fitted(estimator)
    _check_single(region_params)
    single = {} if region_params is None else {"region_params": region_params}
    # Predict one row, to find the shape of the output and to check the features.
    with metadata_checked():
        columns = getattr(estimator, method)(_example(X), **single).shape[1:]
    model = dask.delayed(estimator)  # one copy in the graph, not one per partition
    call = dask.delayed(_call)
    blocks = list(_partitions(X, offset))
    lengths = (np.nan,) * len(blocks) if _is_frame(X) else cast("Array", X).chunks[0]
    parts = [
        da.from_delayed(call(model, method, columns, k, single, *block), shape=(n, *columns), dtype=np.float64)
        for k, (block, n) in enumerate(zip(blocks, lengths, strict=True))
    ]
    return da.concatenate(parts)


def _call(
    estimator: object,
    method: str,
    shape: tuple[int, ...],
    partition: int,
    single: dict[str, RegionParams],
    X: np.ndarray,
    offset: object,
) -> np.ndarray:
    with _in_partition(partition), metadata_checked():
        return getattr(estimator, method)(X, offset=offset, **single) if X.shape[0] else np.zeros((0, *shape))


def _in_partition(partition: int) -> AbstractContextManager[None]:
    return errors_note(f"This is about partition {partition}; rows are counted within it.")


def score_partitions(
    estimator: DecisionMixin,
    X: object,
    y: object,
    sample_weight: object,
    offset: object,
    region_params: RegionParams | None,
) -> float:
    """Minus the normalized SPO loss, computed from sums over partitions."""
    check_is_fitted(estimator)
    _check_single(region_params)
    rows = DaskRows(estimator, X, y, sample_weight, offset, None)
    model = rows._dask.delayed(estimator)
    run = rows._dask.delayed(_score)
    sums = rows._tree([run(model, k, region_params, chunk) for k, chunk in enumerate(rows._chunks)])
    if sums is None:
        raise ValueError("There are no rows in X: at least one is needed.")
    loss, size, largest, weight = sums
    return -normalize(loss / weight, size / weight, largest / weight)


def _score(
    estimator: DecisionMixin, partition: int, region_params: RegionParams | None, chunk: Chunk
) -> tuple[float, float, float, float] | None:
    """Weighted sums of losses, of the sizes of best costs, of the largest costs, and of weights."""
    if chunk.n_rows == 0:
        return None
    with _in_partition(partition), metadata_checked():
        _, y, weight, _ = chunk.checked()
        C_hat = estimator.predict(chunk.X, offset=chunk.offset)
        loss, best, most = _spo_losses(y, C_hat.reshape(y.shape), estimator.region_, region_params=region_params)
    return float(weight @ loss), float(weight @ np.abs(best)), float(weight @ most), float(weight.sum())
