"""The decisions that each sample has met, with the weights of a convex combination."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..._utils.scaling import CLEAR
from . import kernels
from .kernels import ROUNDING

if TYPE_CHECKING:
    from .problem import ScaledProblem

#: decisions per sample beyond which the lightest are replaced by their average
MOST_DECISIONS = 50

#: bytes of the cache beyond which samples keep fewer decisions
MOST_BYTES = 2**29

#: outer iterations without weight after which a decision is dropped
MAX_AGE = 5

#: pairwise steps on one sample's weights in a sweep
PAIRS = 10


class Cache:
    """Decisions as sparse rows, sorted by sample, and their weights; at first one for each sample, the rows of V.

    Every sample has at least one.  v_i = sum_k weight_k v_k is in the convex hull of the region.  ``lin`` are the
    linear parts of the dual.
    """

    def __init__(self, V: np.ndarray, lin: np.ndarray) -> None:
        self.n, self.d = V.shape
        self._store(np.empty(0, np.int64), sp.csr_array((0, self.d)))
        self.weight: np.ndarray = np.empty(0)
        self.age: np.ndarray = np.empty(0, np.int64)
        self.lin: np.ndarray = np.empty(0)
        self.add(np.arange(self.n), V, lin)
        self.weight[:] = 1.0

    def add(self, rows: np.ndarray, V: np.ndarray, lin: np.ndarray, max_age: int = 0) -> None:
        """Add one decision, of weight zero, for each of the rows; drop those of weight zero for ``max_age`` calls."""
        self.age = np.where(self.weight > 0, 0, self.age + 1)
        old = np.flatnonzero(self.age <= max_age)
        row = np.concatenate([self.row[old], rows])
        order = np.argsort(row, kind="stable")  # the new one of a sample comes last
        decisions = sp.vstack([self.decisions[old], sp.csr_array(V)], format="csr")[order]
        self.weight = np.concatenate([self.weight[old], np.zeros(rows.size)])[order]
        self.age = np.concatenate([self.age[old], np.zeros(rows.size, np.int64)])[order]
        self.lin = np.concatenate([self.lin[old], lin])[order]
        self._store(row[order], decisions)
        self._limit()
        if old.size:
            self.normalize()
        self._arrange()

    def _store(self, row: np.ndarray, decisions: sp.csr_array) -> None:
        """Set the sparse rows, with the types that the kernels are compiled for."""
        self.row, self.ptr = row, np.searchsorted(row, np.arange(self.n + 1)).astype(np.int64)
        self.at, self.idx = decisions.indptr.astype(np.int64), decisions.indices.astype(np.int32)
        self.val = decisions.data

    @classmethod
    def of(cls, problem: ScaledProblem, V: np.ndarray) -> Cache:
        """Cache of the optimal decisions and of V, which have all the weight."""
        cache = cls(problem.W_vectors, problem.W_lin)
        new = np.flatnonzero((V != problem.W).any(axis=1))
        cache.add(new, *problem.encode(V[new], new))
        cache.mix(1.0)
        return cache

    def mix(self, t: float) -> None:
        """Weights t of the second decision of each sample, and 1 - t of the first one."""
        second = self.ptr[self.several] + 1
        self.weight[second], self.weight[second - 1] = t, 1.0 - t

    def normalized(self, weight: np.ndarray) -> np.ndarray:
        """Weights that sum to one again, which rounding errors change."""
        total: np.ndarray = np.add.reduceat(weight, self.ptr[:-1])[self.row]
        return weight / total

    def normalize(self) -> None:
        """Normalize the weights in place."""
        self.weight[:] = self.normalized(self.weight)

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
        V = mean @ self.decisions
        V.sort_indices()
        self.lin, self.weight = mean @ self.lin, np.bincount(group, self.weight[order])
        self.age = self.age[order][~merged | starts]
        self._store(self.row[order][~merged | starts], V)

    @property
    def decisions(self) -> sp.csr_array:
        """All decisions."""
        return sp.csr_array((self.val, self.idx, self.at), shape=(self.row.size, self.d))

    @property
    def nbytes(self) -> int:
        """Bytes of the sparse rows, and of the products; the blocks have about as many as the rows."""
        products = 8 * int(np.square(np.diff(self.ptr)).sum())
        return self.val.nbytes + self.idx.nbytes + 40 * self.row.size + products

    @property
    def several(self) -> np.ndarray:
        """Samples with more than one decision."""
        return np.flatnonzero(np.diff(self.ptr) > 1)

    def average(self, weight: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Average decision of each sample, and of the linear parts."""
        weight = self.weight if weight is None else weight
        mean = sp.csr_array((weight, np.arange(weight.size), self.ptr), shape=(self.n, weight.size))
        return (mean @ self.decisions).toarray(), np.add.reduceat(weight * self.lin, self.ptr[:-1])

    def extend(self, problem: ScaledProblem, V: np.ndarray, predictions: np.ndarray) -> None:
        """Add the decisions V of the rows where they beat the cached ones."""
        vectors, lin = problem.encode(V)
        found = lin - 2.0 * np.einsum("ij,ij->i", vectors, predictions)
        best = np.maximum.reduceat(self.lin - 2.0 * self.products(predictions), self.ptr[:-1])
        better = found > best + CLEAR * (np.abs(found) + np.abs(best))
        new = np.flatnonzero(better & (problem.a > 0.0))
        self.add(new, vectors[new], lin[new], MAX_AGE)

    def products(self, U: np.ndarray) -> np.ndarray:
        """v_k.u_i for each decision."""
        values = self.val * U[np.repeat(self.row, np.diff(self.at)), self.idx]
        return np.asarray(sp.csr_array((values, self.idx, self.at), shape=(self.row.size, self.d)).sum(axis=1)).ravel()

    def rescale(self, factor: np.ndarray) -> None:
        """Multiply the columns of all decisions (their images, if the model is shared)."""
        self.val = self.val * factor[self.idx]
        self._arrange()

    # -- steps ---------------------------------------------------------------------------------------------------------

    def work(self, q: float) -> np.ndarray:
        """Multiplications of a sweep, for each sample; q is the number of its features that are not zero."""
        work: np.ndarray = np.diff(self.blocks.cptr) * (2.0 * q + 2.0 * np.diff(self.ptr))
        return work

    def sweep(self, problem: ScaledProblem, order: np.ndarray, T: np.ndarray, rest: np.ndarray) -> None:
        """Move the weights of one sample after another; see ``kernels.sweep``."""
        penalty = problem.thresholds, problem.has_l1
        rows = problem.features, problem.zz, problem.a
        kernels.sweep(order, self.blocks, self.weight, T, *penalty, *rows, PAIRS, rest)

    def movable(self, weight: np.ndarray) -> np.ndarray:
        """Weights that can change in both directions: the positive ones of samples with several."""
        positive = weight > 0
        used: np.ndarray = positive & (np.add.reduceat(positive.astype(np.int64), self.ptr[:-1]) > 1)[self.row]
        return used

    def room(self, weight: np.ndarray) -> np.ndarray:
        """By how much weights can decrease."""
        return weight

    def longest(self, weight: np.ndarray, change: np.ndarray) -> float:
        """Length up to which weights times one plus ``change`` stay positive."""
        return 1.0 / max(-float(change.min(initial=0.0)), 1e-300)

    def combine(self, rows: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Change of the decisions of the rows with a change x of the weights that keeps their sums."""
        D: np.ndarray = kernels.combine(rows, self.blocks, x, self.d)
        return D

    def collect(
        self, rows: np.ndarray, used: np.ndarray, P: np.ndarray, lin: np.ndarray, shift: np.ndarray
    ) -> np.ndarray:
        """lin_k + v_k.p_i of the weights in use, minus their mean with weights ``shift``."""
        x: np.ndarray = kernels.collect(rows, self.blocks, used, P, lin, shift)
        return x

    def relative(self, rows: np.ndarray, used: np.ndarray, P: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """(v_k - v_i).p_i of the weights in use: times the weights, they keep their sums."""
        return self.collect(rows, used, P, np.zeros(weight.size), weight)

    def project(self, rows: np.ndarray, used: np.ndarray, weight: np.ndarray) -> None:
        """Project the weights in use of the rows onto their simplices, in place."""
        kernels.project(rows, self.ptr, used, weight)
        weight[weight < ROUNDING] = 0.0

    def covariance(self, weight: np.ndarray, a: np.ndarray) -> np.ndarray:
        """sum_i a_i Cov_i, the derivative of sum_i a_i v_i with respect to y in factors 1 + (v_k - v_i).y."""
        M: np.ndarray = kernels.covariance(self.blocks, weight, a, self.d)
        return M
