"""The matrix of the coupled Newton system: assembled from the samples' products, and factored in place.

Conventions
-----------
    H = sum_i a_i K_i (x) z_i z_i^T,     K_i = EZ^T M_i EZ of shape (k, k),     z_i of length q

K_i and z_i z_i^T are symmetric, so that half of each is enough, a quarter of the multiplications:

    packed index     (0, 0), (1, 0), (1, 1), (2, 0), ...     the lower triangle, row by row
    K                (k (k + 1) / 2, n)                      packed products of samples, one sample per column
    sums             (q (q + 1) / 2, k (k + 1) / 2)          sum_i a_i z_ij z_il K_i, by products of large matrices

Coefficients are ordered feature by feature, (q, k): rows of ``sums`` are then blocks of H.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

#: samples and elements of a panel of products of features: it stays in the processor's cache
PANEL_SAMPLES, PANEL_ELEMENTS = 1024, 2**18


def packed_indices(size: int) -> np.ndarray:
    """Index into the packed lower triangle for each entry of a square symmetric matrix."""
    row, column = np.indices((size, size))
    high, low = np.maximum(row, column), np.minimum(row, column)
    return high * (high + 1) // 2 + low


def packed_squares(Y: np.ndarray, aY: np.ndarray, first: int = 0, last: int | None = None) -> np.ndarray:
    """Packed product of each column of ``Y`` with that of ``aY``, which is a multiple of it.

    Only rows ``first`` to ``last`` of the triangle, if they are given.
    """
    last = Y.shape[0] if last is None else last
    base = first * (first + 1) // 2
    out = np.empty((last * (last + 1) // 2 - base, Y.shape[1]))
    for j in range(first, last):
        low = j * (j + 1) // 2 - base
        np.multiply(Y[: j + 1], aY[j], out=out[low : low + j + 1])
    return out


class FeatureSums:
    """sum_i a_i z_ij z_il K_i for all pairs of q features j >= l, where K_i has ``width`` entries."""

    def __init__(self, q: int, width: int) -> None:
        self.q = q
        self.sums = np.zeros((q * (q + 1) // 2, width))

    def add(self, K: np.ndarray, Z: np.ndarray, a: np.ndarray) -> None:
        """Add samples with products ``K`` (width, n), features ``Z`` (n, q) and weights ``a`` (n,)."""
        for start in range(0, a.size, PANEL_SAMPLES):
            rows = slice(start, min(start + PANEL_SAMPLES, a.size))
            ZT = np.ascontiguousarray(Z[rows].T)
            aZT, part = ZT * a[rows], K[:, rows].T
            for first, last in self.groups(ZT.shape[1]):
                self.sums[first * (first + 1) // 2 : last * (last + 1) // 2] += (
                    packed_squares(ZT, aZT, first, last) @ part
                )

    def groups(self, n: int) -> list[tuple[int, int]]:
        """Ranges of features whose products with all earlier ones fit in a panel of ``n`` samples."""
        groups, first, size = [], 0, 0
        for j in range(self.q):
            if size and (size + j + 1) * n > PANEL_ELEMENTS:
                groups.append((first, j))
                first, size = j, 0
            size += j + 1
        return [*groups, (first, self.q)]


class NormalMatrix:
    """A positive definite matrix and its factor, in one array, for q features with k reduced coefficients each.

    The matrix is kept above the diagonal, its Cholesky factor below and on it: a second array of this size would be the
    largest of a fit.
    """

    def __init__(self, q: int, k: int) -> None:
        self.q, self.k = q, k
        self.H = np.empty((q * k, q * k))
        self.on_diagonal = self.H.reshape(-1)[:: q * k + 1]

    def fill(self, sums: np.ndarray, square: np.ndarray, basis: np.ndarray | None = None) -> None:
        """Set the matrix to sums over samples, (q (q + 1) / 2, width).

        ``square`` (l, l) are the columns of ``sums`` that make a symmetric matrix, and ``basis`` (l, k) leads from
        their coordinates to reduced coefficients; None if they are the same.
        """
        H = self.H.reshape(self.q, self.k, self.q, self.k)
        for j in range(self.q):
            blocks = np.take(sums[j * (j + 1) // 2 : (j + 1) * (j + 2) // 2], square, axis=1)
            if basis is not None:
                blocks = np.matmul(np.matmul(basis.T, blocks), basis)
            H[: j + 1, :, j] = blocks
            H[j, :, : j + 1] = blocks.transpose(1, 0, 2)

    def factor(self, curvature: np.ndarray | float = 0.0) -> bool:
        """Add a penalty's curvature (k, q) to the diagonal, and factor, regularized as needed; False if that fails."""
        H = self.H
        size = H.shape[0]
        self.diagonal = self.on_diagonal + np.broadcast_to(curvature, (self.k, self.q)).T.ravel()
        scale = max(float(self.diagonal.sum()) / size, 1e-300)
        for exponent in range(-14, 0, 2):
            self.on_diagonal[:] = self.diagonal + scale * 10.0**exponent
            # LAPACK reads columns, so that its upper triangle is the lower one here; the other one is not touched.
            if scipy.linalg.lapack.dpotrf(H.T, lower=0, clean=0, overwrite_a=1)[1] == 0:
                return True
            for i in range(1, size):
                H[i, :i] = H[:i, i]
        return False

    def solve(self, x: np.ndarray) -> np.ndarray:
        """Solution of the regularized system for (k, q) numbers, without the checks of scipy.linalg.cho_solve."""
        y, _ = scipy.linalg.lapack.dpotrs(self.H.T, x.T.ravel(), lower=0)
        return y.reshape(self.q, self.k).T

    def product(self, x: np.ndarray) -> np.ndarray:
        """Product of the matrix, not regularized, with (k, q) numbers."""
        factor = self.on_diagonal.copy()
        self.on_diagonal[:] = self.diagonal
        y = scipy.linalg.blas.dsymv(1.0, self.H.T, x.T.ravel(), lower=1)
        self.on_diagonal[:] = factor
        return y.reshape(self.q, self.k).T
