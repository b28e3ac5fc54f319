"""Regressions of costs on features: least squares without a singular value decomposition, and ridge."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from sklearn.linear_model import Ridge, RidgeCV

#: candidates for the penalty of the ridge fit, per sample and standardised feature
RIDGE_ALPHAS = np.logspace(-6.0, 3.0, 19)

#: weights that differ by less than this are equal up to rounding
EQUAL_WEIGHTS = 1e-12

#: smallest pivot, relative to the norm of a column, for which normal equations are accurate
WELL_CONDITIONED = 1e-3


def quick_regression(
    X: np.ndarray, C: np.ndarray, weight: np.ndarray, fit_intercept: bool
) -> tuple[np.ndarray, np.ndarray | float]:
    """Coefficients and intercept of least squares, faster than scikit-learn's singular value decomposition.

    By normal equations if these are accurate, else by an orthogonal factorisation with pivoting.
    """
    C_2d = C[:, None] if C.ndim == 1 else C
    share = weight[:, None] / weight.sum()
    mean, level = (share * X).sum(axis=0), (share * C_2d).sum(axis=0)
    if not fit_intercept:
        mean, level = np.zeros_like(mean), np.zeros_like(level)
    Z, target = (X - mean) * np.sqrt(share), (C_2d - level) * np.sqrt(share)
    B = normal_equations(Z, target)
    if B is None:
        # The same cut-off for the rank as in scikit-learn.
        B = scipy.linalg.lstsq(Z, target, cond=1e-6, lapack_driver="gelsy", check_finite=False)[0]
    intercept = level - mean @ B
    return (B[:, 0], float(intercept[0])) if C.ndim == 1 else (B.T, intercept)


def normal_equations(Z: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    """Least squares by a Cholesky factor of Z^T Z; None if that would be inaccurate."""
    n, p = Z.shape
    scale = np.sqrt(np.square(Z).sum(axis=0))
    if n <= p or not scale.all():
        return None
    Z = Z / scale
    try:
        factor = scipy.linalg.cho_factor(Z.T @ Z, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    # A small pivot means that a column nearly depends on the columns before it.
    if np.abs(np.diag(factor[0])).min() < WELL_CONDITIONED:
        return None
    B = scipy.linalg.cho_solve(factor, Z.T @ target, check_finite=False)
    B += scipy.linalg.cho_solve(factor, Z.T @ (target - Z @ B), check_finite=False)
    return B / scale[:, None]


def ridge_regression(
    Z: np.ndarray, C: np.ndarray, visible: np.ndarray, weight: np.ndarray, fit_intercept: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts of a ridge regression of C, with the penalty of the lowest leave-one-out error.

    Parameters
    ----------
    Z : ndarray or csr_array of shape (n, p)
        Standardised features.
    C : ndarray of shape (n, d)
    visible : ndarray of shape (n, d)
        The costs whose error is compared.
    weight : ndarray of shape (n,)
        Their sum is one.
    fit_intercept : bool

    Returns
    -------
    coef : ndarray of shape (d, p)
    intercept : ndarray of shape (d,)
    """
    n, d = C.shape
    level = weight @ C if fit_intercept else np.zeros(d)
    if n <= 2 or not Z.shape[1]:  # no error can be estimated
        return np.zeros((d, Z.shape[1])), level
    # None for equal weights: scikit-learn is faster then.  Penalties are in units of one sample.
    weights = None if np.ptp(weight) <= EQUAL_WEIGHTS * weight.max() else n * weight
    alphas = n * RIDGE_ALPHAS
    chosen = RidgeCV(alphas, fit_intercept=fit_intercept).fit(Z, visible, sample_weight=weights).alpha_
    fit = Ridge(chosen, fit_intercept=fit_intercept).fit(Z, C, sample_weight=weights)
    return np.reshape(fit.coef_, (d, -1)), np.broadcast_to(fit.intercept_, d)
