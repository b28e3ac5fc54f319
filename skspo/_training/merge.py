"""Merge equal rows and sort them, so that results do not depend on the order of rows."""

from __future__ import annotations

import numpy as np


def merge_rows(sample_weight: np.ndarray | None, *arrays: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Drop rows of weight zero, merge equal rows, and sort.

    A row of weight two and a repeated row are then exactly the same problem.  The optimum of a linear program need not
    be unique, so only equal input guarantees equal results.

    Parameters
    ----------
    sample_weight : ndarray of shape (n,) or None
    *arrays : ndarray of shape (n, m) or None
        Rows are equal if they are equal in all of these arrays.

    Returns
    -------
    rows : ndarray of int
        One of each set of equal rows.
    weight : ndarray
        Total weight of each set.
    """
    given = [array for array in arrays if array is not None]
    weight = np.ones(given[0].shape[0]) if sample_weight is None else sample_weight
    keep = np.flatnonzero(weight > 0)
    rows = np.concatenate([array[keep] for array in given], axis=1)
    # Sort by one number per row; only if there are ties, by all columns.
    key = (rows * np.cos(np.arange(1.0, rows.shape[1] + 1.0))).sum(axis=1)
    order = np.argsort(key, kind="stable")
    if (np.diff(key[order]) == 0).any():
        order = np.lexsort((*rows.T[::-1], key))
    rows = rows[order]
    new = np.ones(rows.shape[0], dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    weight = np.add.reduceat(weight[keep][order], np.flatnonzero(new))
    return keep[order[new]], weight
