"""Sparse features: the linear map of ``design`` with rows in CSR form.

Conventions
-----------
    X (n, p) in CSR form     Z = [X / scale, 1] (n, q) in CSR form     c_hat_i = Theta z_i

Features are scaled but not centered: centering would make them dense.  With a free intercept that changes nothing
but the coordinates.  With ``prior="least_squares"`` the intercept is penalized too, and it is that of features as
given.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, lsqr
from sklearn import get_config

from .._utils.limits import BLOCK_ELEMENTS, time_left
from .._utils.scaling import CLEAR, power_of_two, powers_of_two
from .design import Design


def as_csr(X: sp.sparray | sp.spmatrix) -> sp.csr_array:
    """Return rows whose entries are sorted, with neither duplicates nor stored zeros, so that equal rows are equal."""
    X = sp.csr_array(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def is_small(X: sp.sparray) -> bool:
    """Whether X is small enough to be made dense, so that all solvers can be used."""
    return X.shape[0] * X.shape[1] <= BLOCK_ELEMENTS


def to_dense(X: sp.csr_array, name: str) -> np.ndarray:
    """Return X as an array, for an estimator that needs one; an error if it is too large."""
    megabytes = X.shape[0] * X.shape[1] * 8 / 2**20
    if megabytes > get_config()["working_memory"]:
        raise ValueError(
            f"X is sparse, and {name} needs dense features here: an array of shape {X.shape} takes "
            f"{megabytes / 1024:.1f} GB, more than scikit-learn's working_memory. SPOPlusRegressor and "
            "SPOPlusRegressorCV keep X sparse, with shared=False."
        )
    return X.toarray()


class SparseDesign(Design):
    """One coefficient vector per cost, for features in CSR form.

    ``center`` says whether scales are deviations from the mean; features are never centered.
    """

    sparse = True
    Z: sp.csr_array

    def _columns(
        self, rows: sp.csr_array, weight: np.ndarray, centered: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Zero, as features are not centered; spread about the mean if ``centered``; and largest absolute value."""
        n, p = rows.shape
        # Squares are taken in units of a power of two, so that they neither overflow nor vanish.
        largest = abs(rows).max(axis=0).toarray().ravel() if n else np.zeros(p)
        unit = powers_of_two(largest)
        row_weight, column = np.repeat(weight, np.diff(rows.indptr)), rows.indices
        data = rows.data / unit[column]
        mean = np.bincount(column, row_weight * data, minlength=p) if centered else np.zeros(p)
        # Squares of entries, and of those that are zero, about the mean.
        stored = np.bincount(column, row_weight * (data - mean[column]) ** 2, minlength=p)
        zeros = np.maximum(weight.sum() - np.bincount(column, row_weight, minlength=p), 0.0)
        return np.zeros(p), unit * np.sqrt(stored + zeros * mean**2), largest

    def _standardized(self, rows: sp.csr_array) -> sp.csr_array:
        """Rows in these coordinates, with a column of ones for the intercept."""
        scaled = sp.csr_array(rows * np.where(self.used, 1.0 / self.scale, 0.0))
        ones = np.ones((rows.shape[0], 1))
        return sp.csr_array(sp.hstack([scaled, ones], format="csr")) if self.fit_intercept else scaled

    def adjoint(self, G: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return sum_i g_i z_i^T, shape (d, q)."""
        return self._without_known(np.ascontiguousarray((self.Z[rows].T @ G).T))

    def gram(self, room: np.ndarray) -> np.ndarray:
        """Return sum_i a_i room_i z_i z_i^T."""
        return (self.Z.T @ (sp.diags_array(self.weight * room) @ self.Z)).toarray()

    def curvature(self, M: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """Return sum_i a_i M_i (x) z_i z_i^T; the given rows are made dense."""
        return self.dense_rows(rows).curvature(M, slice(None))

    def dense_rows(self, rows: slice | np.ndarray) -> Design:
        """Return the same map for some rows, which are made dense."""
        other = Design.without_rows(self.standardization, self.normals, fit_intercept=self.fit_intercept)
        other.Z, other.weight, other.known = self.Z[rows].toarray(), self.weight[rows], self.known
        return other

    def _fit_costs(self, X: sp.csr_array, C: np.ndarray, standardized: bool, quick: bool, n_fits: int) -> np.ndarray:
        """One regression per cost, by LSQR: the smallest solution, in the units of X or in those of Z."""
        features = self.Z[:, : self.n_features] if standardized else X
        unit = power_of_two(float(abs(features).max())) if features.nnz else 1.0
        features = features * (1.0 / unit)
        root = np.sqrt(self.weight)
        mean = self.weight @ features if self.fit_intercept else np.zeros(features.shape[1])
        level = self.weight @ C if self.fit_intercept else np.zeros(C.shape[1])
        weighted = sp.csr_array(sp.diags_array(root) @ features)
        transposed = sp.csr_array(weighted.T)
        centered = LinearOperator(
            features.shape,
            matvec=lambda b: weighted @ b.ravel() - root * float(mean @ b.ravel()),
            rmatvec=lambda r: transposed @ r.ravel() - mean * float(root @ r.ravel()),
            dtype=np.float64,
        )
        coef = np.zeros((C.shape[1], features.shape[1]))
        for j, (c, l) in enumerate(zip(C.T, level, strict=True)):
            if time_left() > 0:
                coef[j] = lsqr(centered, root * (c - l), atol=CLEAR, btol=CLEAR)[0]
        intercept = level - coef @ mean
        if standardized:
            return np.column_stack([coef / unit, intercept]) if self.fit_intercept else coef / unit
        return self.from_user(coef, intercept, unit)
