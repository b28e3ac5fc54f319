"""The training problem as the dual method sees it: scaled features, thresholds, and decisions as vectors.

Conventions
-----------
    objective(Theta) = sum_i a_i max_v c_i.(v - w_i) + 2 Theta z_i.(w_i - v)  +  sum_k l1_k |D_k|_1 + l2_k/2 |D_k|^2,
    D = Theta - prior

Columns without a ridge (l2_k = 0) get a proximal term mu/2 |Theta_k - centre_k|^2.  With lam_k = l2_k or mu,
s_k = 1/sqrt(lam_k), zs_i = s z_i, costs cs_i = c_i - 2 prior z_i, base_k = (centre_k - prior_k)/s_k or, with a
ridge, zero:

    T = base + 2 sum_i a_i (v_i - w_i) zs_i^T                        for decisions v_i in conv(S)
    D = s soft(T, l1 s)                                              the minimizer of the Lagrangian
    dual = sum_i a_i cs_i.(v_i - w_i) + |base|^2/2 - |soft(T)|^2/2   concave, same blocks for all penalties

Whitening.  Without any penalty the columns can be combined.  The proximal term is that of uncorrelated features of unit
size: with Z^T diag(a) Z = Q diag(r^2) Q^T, z_i is replaced by Q^T z_i / r, and Theta by Theta Q r.  Otherwise features
that are far from zero, without an intercept, are almost collinear and take thousands of iterations.

Shared models.  All that a decision v of sample i contributes is its image f = sum_j v_j z_ij s (q,) and cs_i.v.  The
images take the place of decisions: q "costs", one feature that is always one, T (q, 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .kernels import CLOSE, Features

if TYPE_CHECKING:
    from .cache import Cache
    from .points import Points


class Whitening(NamedTuple):
    """Eigenvectors of the Gram matrix of the features, and roots of its eigenvalues."""

    vectors: np.ndarray  # (q, q), in columns
    roots: np.ndarray  # (q,), positive


def whitening_of(Z: Any, a: np.ndarray) -> Whitening | None:
    """Whitening of features that are dense and at most as many as the samples, else None."""
    if sp.issparse(Z) or Z.ndim == 3:
        return None
    if Z.shape[1] > Z.shape[0]:  # the Gram matrix is singular
        return None
    values, vectors = np.linalg.eigh((Z * a[:, None]).T @ Z)
    roots = np.sqrt(np.maximum(values, 0.0))
    largest = float(roots.max(initial=0.0))
    return Whitening(vectors, np.maximum(roots, CLOSE * largest)) if largest > 0.0 else None


class ScaledProblem:
    """Data of the dual method.

    The costs C are without the predictions of the prior, and ``mu`` is the weight of the proximal term.  ``unknown`` is
    1 for costs that are predicted and 0 for known ones; None means that all are predicted.
    """

    def __init__(
        self,
        Z: Any,
        C: np.ndarray,
        W: np.ndarray,
        a: np.ndarray,
        l1: np.ndarray,
        l2: np.ndarray,
        prior: np.ndarray,
        mu: float,
        unknown: np.ndarray | None = None,
    ) -> None:
        self.Z, self.C, self.W, self.a, self.prior, self.mu = Z, C, W, np.ascontiguousarray(a), prior, mu
        self.l1, self.l2, self.n, self.unknown = l1, l2, C.shape[0], unknown
        self.shared = not sp.issparse(Z) and Z.ndim == 3
        self.proximal = l2 == 0
        self.whitening = None if l1.any() or l2.any() else whitening_of(Z, a)
        if self.whitening is not None:
            Z = Z @ (self.whitening.vectors / self.whitening.roots)
        scale = 1.0 / np.sqrt(np.where(self.proximal, mu, l2))
        nothing, no_index = np.zeros((1, 1)), np.zeros(1, np.int32)
        if self.shared:
            self.scaled: Any = np.ones((self.n, 1))
            self.flat = Z.reshape(-1, Z.shape[2])
        elif sp.issparse(Z):
            self.scaled = sp.csr_array((Z.data * scale[Z.indices], Z.indices, Z.indptr), shape=Z.shape)
        else:
            self.scaled = np.ascontiguousarray(Z * scale)
        if sp.issparse(self.scaled):
            indices = self.scaled.indptr, self.scaled.indices
            if self.scaled.nnz < 2**31:  # as above, so that nothing is compiled again
                indices = tuple(array.astype(np.int32, copy=False) for array in indices)
            self.features = Features(True, nothing, *indices, self.scaled.data)
            self.zz = np.asarray(self.scaled.multiply(self.scaled).sum(axis=1)).ravel()
        else:
            self.features = Features(False, self.scaled, no_index, no_index, np.zeros(1))
            self.zz = np.einsum("ij,ij->i", self.scaled, self.scaled)
        self.column_scale = scale
        #: in the layout of T
        self.scale = scale[:, None] if self.shared else scale[None, :]
        self.shape = (scale.size, 1) if self.shared else (C.shape[1], scale.size)
        self.has_l1 = bool(l1.any())
        threshold = self.scale * (l1[:, None] if self.shared else l1[None, :])
        self.thresholds = np.ascontiguousarray(np.broadcast_to(threshold, self.shape)) if self.has_l1 else nothing
        self.W_vectors, self.W_lin = self.encode(W)

    def layout(self, Theta: np.ndarray) -> np.ndarray:
        """Coefficients in the layout of T, or back."""
        return Theta.T if self.shared else Theta

    def encode(self, V: np.ndarray, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """What the method keeps of decisions: vectors, and linear parts of the dual."""
        lin = np.einsum("ij,ij->i", self.C[rows], V)
        if not self.shared:
            return V * self.unknown if self.unknown is not None else V, lin
        return np.matmul(V[:, None, :], self.Z[rows])[:, 0, :] * self.column_scale, lin

    def base(self, center: np.ndarray) -> np.ndarray:
        """T of a proximal center without any decisions."""
        D = np.where(self.proximal, center - self.prior, 0.0)
        if self.whitening is not None:
            D = (D @ self.whitening.vectors) * self.whitening.roots
        return np.ascontiguousarray(self.layout(D) / self.scale)

    def soft(self, T: np.ndarray) -> np.ndarray:
        """Soft threshold of T."""
        return np.sign(T) * np.maximum(np.abs(T) - self.thresholds, 0.0) if self.has_l1 else T

    def theta(self, T: np.ndarray) -> np.ndarray:
        """Coefficients of T."""
        D = self.layout(self.scale * self.soft(T))
        if self.whitening is not None:
            D = (D / self.whitening.roots) @ self.whitening.vectors.T
        return self.prior + D

    def take(self, rows: np.ndarray) -> Any:
        """Rows of ``scaled``, sorted: no copy if they are all."""
        return self.scaled if rows.size == self.n else self.scaled[rows]

    def predictions(self, S: np.ndarray, Z: Any = None) -> np.ndarray:
        """S zs_i for the vectors that stand for decisions, S = soft(T); Z are some rows of ``scaled``."""
        return np.ascontiguousarray((self.scaled if Z is None else Z) @ S.T)

    def arguments(self, T: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """c_i - 2 Theta z_i, of which the loss takes the support function."""
        if self.shared:
            return self.C - 2.0 * (self.flat @ (self.column_scale * self.soft(T)[:, 0])).reshape(self.C.shape)
        return self.C - 2.0 * predictions

    def rank(self, D: np.ndarray, Z: Any = None) -> np.ndarray:
        """sum_i d_i zs_i^T, in the layout of T; Z are some rows of ``scaled``."""
        Z = self.scaled if Z is None else Z
        if sp.issparse(Z) or D.shape[1] < Z.shape[1]:
            return np.ascontiguousarray((Z.T @ D).T)  # for BLAS, the larger factor first
        return D.T @ Z

    def moments(self, cache: Cache | Points, weight: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """sum_i a_i cs_i.(v_i - w_i) and 2 sum_i a_i (v_i - w_i) zs_i^T."""
        V, lin = cache.average(weight)
        V -= self.W_vectors
        V *= (2.0 * self.a)[:, None]
        return float(self.a @ (lin - self.W_lin)), self.rank(V)

    def slope(self, M: np.ndarray) -> np.ndarray:
        """G = 2 sum_i a_i (w_i - v_i) z_i^T, in the layout of Theta, from the moments in that of T."""
        G = -self.layout(M / self.scale)
        return G if self.whitening is None else (G * self.whitening.roots) @ self.whitening.vectors.T

    def rescaled(self, mu: float, cache: Any) -> ScaledProblem:
        """Return the same with another proximal term; the cache is changed along."""
        other = ScaledProblem(self.Z, self.C, self.W, self.a, self.l1, self.l2, self.prior, mu, self.unknown)
        if self.shared:
            cache.rescale(other.column_scale / self.column_scale)
        return other
