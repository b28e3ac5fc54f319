"""The linear map from coefficients to predictions, in coordinates that solvers like.

Conventions
-----------
    X (n, p) features as given         Z (n, q) standardised features, a column of ones last if there is an intercept
    c_hat_i = B x_i + b = Theta z_i    Theta (d, q) coefficients in standardised coordinates

Solvers see only ``predict``, ``adjoint`` and ``gram_pinv``; ``from_user`` and ``to_user`` translate coefficients.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np


class Standardization(NamedTuple):
    """Which columns are used, what is subtracted from them and what they are divided by."""

    mean: np.ndarray
    scale: np.ndarray
    used: np.ndarray


class LinearDesign:
    """One coefficient vector per cost: predictions X B^T + b.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    weight : ndarray of shape (n,)
        Nonnegative, sums to one.
    fit_intercept : bool
    center : bool
        Whether columns are centred.  Only allowed if the intercept is free to compensate.
    standardization : Standardization, optional
        Use these coordinates instead of deriving them from X (later chunks of a stream).
    """

    def __init__(
        self,
        X: np.ndarray,
        weight: np.ndarray,
        *,
        fit_intercept: bool,
        center: bool,
        standardization: Standardization | None = None,
    ) -> None:
        n, p = X.shape
        self.fit_intercept = fit_intercept
        self.n_features = p
        if standardization is None:
            mean = weight @ X if fit_intercept and center else np.zeros(p)
            # Squares are taken in units of a power of two, so that they neither overflow nor vanish.
            unit = np.exp2(np.floor(np.log2(np.maximum(np.abs(X).max(axis=0, initial=0.0), 1e-300))))
            spread = unit * np.sqrt(weight @ ((X - mean) / unit) ** 2)
            # A column that is constant up to rounding carries no information beyond the intercept.
            used = spread > 16 * np.finfo(float).eps * np.abs(X).max(axis=0, initial=0.0)
            standardization = Standardization(mean, np.where(used, spread, 1.0), used)
        self.standardization = standardization
        self.mean, self.scale, self.used = standardization
        Z = np.where(self.used, (X - self.mean) / self.scale, 0.0)
        self.Z = np.concatenate([Z, np.ones((n, 1))], axis=1) if fit_intercept else Z
        self.weight = weight

    @property
    def n_coef(self) -> int:
        """Number of columns of Theta."""
        return self.Z.shape[1]

    def thinned(self, rows: slice, weight: np.ndarray) -> LinearDesign:
        """Return the same map for some of the rows."""
        other = copy(self)
        other.Z, other.weight = self.Z[rows], weight
        return other

    def predict(self, Theta: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Predictions of the given rows, shape (n_rows, d)."""
        return self.Z[rows] @ Theta.T

    def adjoint(self, G: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return sum_i g_i z_i^T over the given rows, shape (d, q)."""
        return G.T @ self.Z[rows]

    def gram_pinv(self, room: np.ndarray) -> np.ndarray:
        """Pseudo-inverse of sum_i a_i room_i z_i z_i^T."""
        gram = (self.Z * (self.weight * room)[:, None]).T @ self.Z
        return np.linalg.pinv(gram, rcond=1e-14, hermitian=True)

    def to_user(self, Theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (d, p) and intercept (d,) for features as given."""
        p = self.n_features
        coef = np.where(self.used, Theta[:, :p] / self.scale, 0.0)
        intercept = Theta[:, p] - coef @ self.mean if self.fit_intercept else np.zeros(Theta.shape[0])
        return coef, intercept

    def from_user(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Theta of coefficients for features as given; those of constant columns go into the intercept or vanish."""
        Theta = np.where(self.used, coef * self.scale, 0.0)
        if self.fit_intercept:
            Theta = np.concatenate([Theta, (intercept + coef @ self.mean)[:, None]], axis=1)
        return Theta
