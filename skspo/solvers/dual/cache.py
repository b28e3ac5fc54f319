"""The decisions that each sample has met, with the weights of a convex combination."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from . import kernels

#: decisions per sample beyond which the lightest are replaced by their average
MOST_DECISIONS = 50

#: bytes of the cache beyond which samples keep fewer decisions
MOST_BYTES = 2**29

#: scores must be beaten by this share to count as new
NEW_SCORE = 1e-12


class Cache:
    """Decisions as sparse rows, sorted by sample, and their weights.

    Every sample has at least one.  v_i = sum_k weight_k v_k is in the convex hull of the region.

    Parameters
    ----------
    V : ndarray of shape (n, d)
        The first decision of each sample.
    lin : ndarray of shape (n,)
        Their linear parts of the dual.
    """

    def __init__(self, V: np.ndarray, lin: np.ndarray) -> None:
        self.n, self.d = V.shape
        self.row: np.ndarray = np.empty(0, np.int64)
        self.ptr: np.ndarray = np.zeros(self.n + 1, np.int64)
        self.at: np.ndarray = np.zeros(1, np.int64)
        self.idx: np.ndarray = np.empty(0, np.int32)
        self.val: np.ndarray = np.empty(0)
        self.weight: np.ndarray = np.empty(0)
        self.age: np.ndarray = np.empty(0, np.int64)
        self.lin: np.ndarray = np.empty(0)
        self.add(np.arange(self.n), V, lin)
        self.weight[:] = 1.0

    def add(self, rows: np.ndarray, V: np.ndarray, lin: np.ndarray, max_age: int = 0) -> None:
        """Add one decision, of weight zero, for each of the rows; drop those of weight zero for ``max_age`` calls."""
        self.age = np.where(self.weight > 0, 0, self.age + 1)
        keep = self.age <= max_age
        self.ptr, source, self.row, self.at, self.idx, self.val = kernels.insert(
            self.n, self.row, self.at, self.idx, self.val, keep, rows, np.ascontiguousarray(V)
        )
        old = source >= 0
        weight, age, new_lin = np.zeros(source.size), np.zeros(source.size, np.int64), np.empty(source.size)
        weight[old], age[old], new_lin[old] = (x[source[old]] for x in (self.weight, self.age, self.lin))
        new_lin[~old] = lin[-1 - source[~old]]
        self.weight, self.age, self.lin = weight, age, new_lin
        self._limit()
        if old.any():
            self.normalise()
        self._arrange()

    def normalise(self) -> None:
        """Let weights sum to one again, which rounding errors change."""
        self.weight /= np.add.reduceat(self.weight, self.ptr[:-1])[self.row]

    def _arrange(self) -> None:
        differing = kernels.differences(self.d, self.ptr, self.at, self.idx, self.val)
        self.blocks = kernels.Blocks(self.ptr, self.lin, *differing)

    def _limit(self) -> None:
        """Replace the lightest decisions of a sample by their average if it has too many."""
        most = MOST_DECISIONS
        if self.nbytes > MOST_BYTES:
            most = max(3, int(most * MOST_BYTES / self.nbytes))
        if np.diff(self.ptr).max() <= most:
            return
        order = np.lexsort((-self.weight, self.row))
        # The new ones have no weight yet and must stay.
        new = (self.weight[order] == 0) & (self.age[order] == 0)
        rank = np.arange(order.size) - self.ptr[self.row[order]]
        merged = (rank >= max(most // 2, 1)) & (np.diff(self.ptr)[self.row[order]] > most) & ~new
        starts = merged & ~np.append(False, merged[:-1] & (self.row[order][1:] == self.row[order][:-1]))
        group = np.cumsum(~merged | starts) - 1
        share = np.where(merged, np.maximum(self.weight[order], 1e-300), 1.0)
        share /= np.bincount(group, share)[group]
        mean = sp.csr_array((share, (group, order)), shape=(group[-1] + 1, order.size))
        V = mean @ sp.csr_array((self.val, self.idx, self.at), shape=(order.size, self.d))
        V.sort_indices()
        self.row, self.lin = self.row[order][~merged | starts], mean @ self.lin
        self.weight = np.bincount(group, self.weight[order])
        self.age = self.age[order][~merged | starts]
        self.at, self.idx, self.val = V.indptr.astype(np.int64), V.indices.astype(np.int32), V.data
        self.ptr = np.searchsorted(self.row, np.arange(self.n + 1)).astype(np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of the sparse rows; the blocks have about as many."""
        return self.val.nbytes + self.idx.nbytes + 40 * self.row.size

    @property
    def several(self) -> np.ndarray:
        """Samples with more than one decision."""
        return np.flatnonzero(np.diff(self.ptr) > 1)

    def average(self, weight: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Average decision of each sample, and of the linear parts."""
        weight = self.weight if weight is None else weight
        V = kernels.averages(self.n, self.d, self.row, weight, self.at, self.idx, self.val)
        return V, np.add.reduceat(weight * self.lin, self.ptr[:-1])

    def margins(self, rows: np.ndarray, found: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """By how much scores found for the rows beat those of all cached decisions; zero where it is rounding."""
        best = np.maximum.reduceat(scores, self.ptr[:-1])[rows]
        return np.where(found > best + NEW_SCORE * (np.abs(found) + np.abs(best)), found - best, 0.0)

    def products(self, U: np.ndarray) -> np.ndarray:
        """v_k.u_i for each decision."""
        return kernels.products(self.row, self.at, self.idx, self.val, np.ascontiguousarray(U))

    def rescale(self, factor: np.ndarray) -> None:
        """Multiply the columns of all decisions (their images, if the model is shared)."""
        self.val = self.val * factor[self.idx]
        self._arrange()
