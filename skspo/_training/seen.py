"""Which samples a model was trained with: hashes of some of them, so that figures on training data can say so.

The smallest hashes of the training rows are kept.  Of the rows of other data, those with a hash below the largest kept
one are a random sample, and the share of them that is kept estimates the share of training rows.  It is exact if all
hashes are kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_array

from .fitted import innermost, innermost_features

#: number of hashes that are kept: 8 kB
KEPT = 1024

#: numbers per block
BLOCK_ELEMENTS = 2**20


class Seen(NamedTuple):
    """Hashes of training rows."""

    hashes: np.ndarray  # sorted, the smallest ones
    complete: bool  # whether these are all

    @classmethod
    def of(cls, X: Any, C: np.ndarray) -> Seen:
        """Hashes of rows of features and costs."""
        hashes = np.unique(row_hashes(X, C))
        return cls(hashes[:KEPT], hashes.size <= KEPT)

    def __or__(self, other: Seen) -> Seen:
        """Hashes of the rows of both."""
        ends = [part.hashes[-1] for part in (self, other) if not part.complete]
        hashes = np.union1d(self.hashes, other.hashes)
        hashes = hashes[hashes <= min(ends)] if ends else hashes
        return Seen(hashes[:KEPT], hashes.size <= KEPT and not ends)

    def share(self, X: Any, C: np.ndarray) -> float:
        """Share of rows that are training rows, or equal to one; NaN if no row can be judged."""
        hashes = row_hashes(X, C)
        hashes = hashes if self.complete else hashes[hashes <= self.hashes[-1]]
        return float(np.isin(hashes, self.hashes).mean()) if hashes.size else np.nan


def row_hashes(X: Any, C: np.ndarray) -> np.ndarray:
    """One hash of 64 bits for each row of features and costs, in single precision: rounding changes few.

    A zero adds nothing, so that sparse and dense features have the same hash.
    """
    p, d = X.shape[1], C.shape[1]
    factors = _mix(np.arange(1, p + d + 1, dtype=np.uint64)) | np.uint64(1)
    total = np.empty(C.shape[0], dtype=np.uint64)
    block = max(1, BLOCK_ELEMENTS // (p + d))
    for start in range(0, C.shape[0], block):
        rows = slice(start, start + block)
        total[rows] = _bits(C[rows]) @ factors[p:]
        if issparse(X):
            part = csr_array(X[rows])
            bits = csr_array((_bits(part.data), part.indices, part.indptr), shape=part.shape)
            total[rows] += bits @ factors[:p]
        else:
            total[rows] += _bits(X[rows]) @ factors[:p]
    return _mix(total)


def _bits(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        single = np.ascontiguousarray(values, dtype=np.float32) + np.float32(0.0)  # -0 is 0
    return single.view(np.uint32).astype(np.uint64)


def _mix(x: np.ndarray) -> np.ndarray:
    """Spread the bits of 64-bit numbers (splitmix64, Steele, Lea and Flood, 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def seen_or_none(X: ArrayLike, C: np.ndarray) -> Seen | None:
    """Hashes of rows; None if the features are not numbers."""
    features = _numbers(X)
    return None if features is None else Seen.of(features, C)


def training_share(estimator: object, X: ArrayLike, C: np.ndarray) -> float:
    """Share of samples that are training rows of a fitted model, or equal to one; NaN if it is not known."""
    seen = getattr(innermost(estimator), "_seen", None)
    if seen is None:
        return np.nan
    features = _numbers(innermost_features(estimator, X))
    return np.nan if features is None or features.shape[0] != len(C) else seen.share(features, C)


def _numbers(X: ArrayLike) -> Any:
    try:
        return check_array(X, dtype=np.float64, accept_sparse="csr", ensure_all_finite=False)
    except (TypeError, ValueError):
        return None


def say_training_share(share: float) -> str:
    """Remark on figures; empty if no sample is known to be one of training."""
    if not share > 0:
        return ""
    which = "All samples are" if share == 1 else f"About {share:.0%} of the samples are"
    return f"{which} among those that the model was fitted to: such figures are too good. Use other samples."
