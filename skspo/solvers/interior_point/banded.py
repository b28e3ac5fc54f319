"""Factors of the banded matrices N^T D^{-1} N of many samples at once, N the faces of a planar graph (``cycles``).

Conventions
-----------
    k faces, in an order of narrow band b; n samples, always the last axis, so that every operation is one on long
    contiguous arrays.

    G = N^T diag(c) N,  c = 1 / D     Laplacian of the dual graph: face j has the edges c_jl to faces l, and c_j0 to the
                                      face that was left out

Eliminating face j adds c_ji c_jl / c_j to the weight between its neighbors i and l, c_j being the sum of its weights.
That is Cholesky's factorization G = L diag(c_j) L^T with L_lj = -c_jl / c_j.  Nothing is subtracted, so the factor, and
likewise the inverse, which is a sum of positive products, are accurate to a few units in the last place of each entry,
however much the weights differ (Grassmann, Taksar and Heyman, 1985).  An orthogonal factorization is not needed.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee


class BandedFactor:
    """Factor of the matrices of some samples.

    ``pivots`` (k, n) are the sums c_j of the weights of a face when it is eliminated, and ``shares`` (k, b, n) the
    shares c_jl / c_j of the next b faces.
    """

    def __init__(self, pivots: np.ndarray, shares: np.ndarray) -> None:
        self.pivots, self.shares = pivots, shares

    def solve(self, x: np.ndarray) -> np.ndarray:
        """G^{-1} x of every sample, in place; x has shape (k, n)."""
        k, b, _ = self.shares.shape
        for j in range(k - 1):
            end = min(b, k - 1 - j)
            x[j + 1 : j + 1 + end] += self.shares[j, :end] * x[j]
        x /= self.pivots
        for j in range(k - 2, -1, -1):
            end = min(b, k - 1 - j)
            x[j] += np.einsum("bi,bi->i", self.shares[j, :end], x[j + 1 : j + 1 + end])
        return x


class DualGraph:
    """What the matrices of all samples have in common, for the faces of ``cycle_basis``."""

    def __init__(self, faces: np.ndarray) -> None:
        touch = sp.csr_array(np.abs(faces))
        order = reverse_cuthill_mckee(sp.csr_array(touch.T @ touch), symmetric_mode=True)
        self.faces = sp.csr_array(faces[:, order])
        self.faces_T = sp.csr_array(self.faces.T)
        self.k = k = faces.shape[1]
        # Every edge lies between two faces, one face and the one left out, or nowhere.
        edges = np.flatnonzero(np.diff(self.faces.indptr))
        ends = self.faces.indices[[self.faces.indptr[edges], self.faces.indptr[edges + 1] - 1]]
        first, offset = ends.min(axis=0), np.ptp(ends, axis=0)
        self.band = max(1, int(offset.max()))
        # Weights of the edges -> weights between faces, (k, 1 + band), those to the face left out first.
        places = first * (self.band + 1) + offset
        self.gather = sp.csr_array((np.ones(edges.size), (places, edges)), shape=(k * (self.band + 1), faces.shape[0]))
        # The inverse is computed in blocks of ``band`` rows, from the block diagonal to the right.
        b = self.band
        self.starts = list(range(0, k, b))
        sizes = [min(b, k - start) * (k - start) for start in self.starts]
        self.slabs = np.concatenate([[0], np.cumsum(sizes)])
        self.entries = int(self.slabs[-1])
        row, column = np.indices((k, k))
        row, column = np.minimum(row, column), np.maximum(row, column)
        block = row // b
        self.square = self.slabs[block] + (row - block * b) * (k - block * b) + column - block * b

    def factor(self, D: np.ndarray) -> BandedFactor:
        """Factor the matrices of samples with scalings ``D`` (n, N)."""
        k, b, n = self.k, self.band, D.shape[0]
        weights = (self.gather @ (1.0 / D.T)).reshape(k, b + 1, n)
        pivots = np.empty((k, n))
        for j in range(k):
            end = min(b, k - 1 - j)
            row = weights[j, : end + 1]
            row.sum(axis=0, out=pivots[j])
            shares = row / pivots[j]
            weights[j + 1 : j + 1 + end, 0] += shares[1:] * row[0]
            for i in range(1, end):
                weights[j + i, 1 : end + 1 - i] += shares[i] * row[i + 1 :]
            row[:] = shares
        return BandedFactor(pivots, weights[:, 1:])

    def apply(self, factor: BandedFactor, x: np.ndarray) -> np.ndarray:
        """N G^{-1} N^T x of every sample; x has shape (n, N)."""
        y = factor.solve(self.faces_T @ np.ascontiguousarray(x.T))
        return np.ascontiguousarray((self.faces @ y).T)

    def inverse(self, factor: BandedFactor, rows: slice) -> np.ndarray:
        """G^{-1} of some samples, each entry at ``square``, (entries, n)."""
        pivots, shares = factor.pivots[:, rows], factor.shares[:, :, rows]
        k, b, n = shares.shape
        blocks = len(self.starts)
        if blocks * b > k:  # complete the last block by faces without edges
            pivots = np.concatenate([pivots, np.ones((blocks * b - k, n))])
            shares = np.concatenate([shares, np.zeros((blocks * b - k, b, n))])
        pivots, shares = pivots.reshape(blocks, b, n), shares.reshape(blocks, b, b, n)
        # Rows of G^{-1} in block J are ``own`` in the block itself, plus ``next`` times the rows of block J + 1.
        own, following = np.zeros((blocks, b, b, n)), np.zeros((blocks, b, b, n))
        for i in range(b - 1, -1, -1):
            inside = shares[:, i, : b - 1 - i]
            following[:, i, : i + 1] = shares[:, i, b - 1 - i :]
            if i < b - 1:
                following[:, i] += np.einsum("jtn,jtcn->jcn", inside, following[:, i + 1 :])
                own[:, i, i + 1 :] = np.einsum("jtn,jtcn->jcn", inside, own[:, i + 1 :, i + 1 :])
                own[:, i + 1 :, i] = own[:, i, i + 1 :]
                own[:, i, i] = np.einsum("jtn,jtn->jn", inside, own[:, i, i + 1 :])
            own[:, i, i] += 1.0 / pivots[:, i]
        own, following = np.moveaxis(own, -1, 1), np.ascontiguousarray(np.moveaxis(following, -1, 1))
        result = np.empty((n, self.entries))
        below: np.ndarray | None = None
        for J in range(blocks - 1, -1, -1):
            start, size = self.starts[J], min(b, k - self.starts[J])
            slab = result[:, self.slabs[J] : self.slabs[J + 1]].reshape(n, size, k - start)
            slab[:, :, :size] = own[J, :, :size, :size]
            if below is not None:
                X = following[J, :, :, : below.shape[1]]
                np.matmul(X, below, out=slab[:, :, b:])
                slab[:, :, :b] += np.matmul(X, slab[:, :, b : b + below.shape[1]].transpose(0, 2, 1))
            below = slab
        return result.T
