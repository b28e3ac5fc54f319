"""Checks of parameters, for all modules of the theory."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._utils.params import integer, number

check_positive = number(above=0.0)
check_nonnegative = number(0.0)
check_share = number(above=0.0, high=1.0)
check_count = integer(1)


def check_levels(name: str, value: ArrayLike, *, allow_zero: bool) -> np.ndarray:
    """Return finite numbers, positive or nonnegative, as an array of any shape."""
    levels = np.asarray(value, dtype=np.float64)
    if not np.isfinite(levels).all() or (levels < 0).any() or (not allow_zero and (levels == 0).any()):
        raise ValueError(f"{name} must be {'nonnegative' if allow_zero else 'positive'} and finite, got {value!r}.")
    return levels


def check_delta(delta: float) -> None:
    """Check a probability of failure; the corollaries need one below 1/2."""
    number(above=0.0, below=0.5)("delta", delta, "a probability of failure")


def rows(name: str, C: ArrayLike, d: int | None = None) -> np.ndarray:
    """Return costs as a float array of shape (n, d); a single vector becomes one row."""
    C_arr = np.atleast_2d(np.asarray(C, dtype=np.float64))
    if C_arr.ndim != 2 or (d is not None and C_arr.shape[1] != d):
        expected = "(n, d)" if d is None else f"(n, {d})"
        raise ValueError(f"{name} must have shape {expected} or be one such row, got shape {np.shape(C)}.")
    if not np.isfinite(C_arr).all():
        raise ValueError(f"{name} must be finite, but it contains NaN or infinity.")
    return C_arr
