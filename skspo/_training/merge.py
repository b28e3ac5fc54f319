"""Merge equal rows and sort them, so that results do not depend on the order; divide rows by the costs that exist."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array, issparse

from ..regions.polyhedral import patterns


def merge_rows(
    sample_weight: np.ndarray | None, *arrays: np.ndarray | csr_array | None
) -> tuple[np.ndarray, np.ndarray]:
    """Drop rows of weight zero, merge rows that are equal in all of the arrays, and sort.

    A row of weight two and a repeated row are then exactly the same problem.  The optimum of a linear program need not
    be unique, so only equal input guarantees equal results.  Returns one row of each set of equal rows, and their total
    weight.
    """
    given = [array for array in arrays if array is not None]
    weight = np.ones(given[0].shape[0]) if sample_weight is None else sample_weight
    keep = np.flatnonzero(weight > 0)
    sparse = [array[keep] for array in given if issparse(array)]
    rows = np.concatenate([array[keep] for array in given if not issparse(array)], axis=1)
    # Sort by one number per row; only if there are ties, by all columns.
    key = (rows * np.cos(np.arange(1.0, rows.shape[1] + 1.0))).sum(axis=1)
    keys = [key, *(X @ np.cos(np.arange(1.0, X.shape[1] + 1.0)) for X in sparse)]
    order = np.lexsort(keys)
    if (np.diff(key[order]) == 0).any():
        order = np.lexsort((*rows.T[::-1], *keys))
    rows = rows[order]
    new = np.ones(rows.shape[0], dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    for X in sparse:
        X = X[order]
        difference = abs(X[1:] - X[:-1])
        new[1:] |= difference.max(axis=1).toarray().ravel() > 0 if len(new) > 1 else False
    weight = np.add.reduceat(weight[keep][order], np.flatnonzero(new))
    return keep[order[new]], weight


def existing(possible: np.ndarray, weight: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of costs that exist: columns that exist in the same rows come together.

    Columns without any row of positive weight are left out.
    """
    for kept, columns in patterns(np.ascontiguousarray(possible.T)):
        rows = np.flatnonzero(kept if weight is None else kept & (weight > 0))
        if rows.size:
            yield rows, columns
