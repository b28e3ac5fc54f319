"""Regressions of costs on features: least squares without a singular value decomposition, and ridge."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import scipy.linalg
from sklearn.linear_model import Ridge, RidgeCV

from .._utils.limits import predicted_seconds, time_left

#: multiplications of scikit-learn's least squares, of normal equations or Ridge, of a factorisation with pivoting, and
#: of RidgeCV with more samples than features, divided by n p min(n, p); all measured, in units of a matrix product
REGRESSION, NORMAL_EQUATIONS, ORTHOGONAL, RIDGE_CV = 6.0, 1.3, 5.0, 40.0

#: share of the time that is left that a regression may take
FOR_REGRESSION = 0.3

#: a regression that takes at most so many seconds ignores the time limit
AT_ONCE = 0.1

#: candidates for the penalty of the ridge fit, per sample and standardised feature
RIDGE_ALPHAS = np.logspace(-6.0, 3.0, 19)

#: weights that differ by less than this are equal up to rounding
EQUAL_WEIGHTS = 1e-12

#: smallest pivot, relative to the norm of a column, for which normal equations are accurate
WELL_CONDITIONED = 1e-3


def in_time(work: float, X: np.ndarray, n_fits: int = 1) -> bool:
    """Whether ``n_fits`` regressions of ``work`` n p min(n, p) multiplications fit into the time that they may take.

    The fit of the model, which takes at least as long, needs the rest.
    """
    n, p = X.shape
    return predicted_seconds(n_fits * work * n * p * float(min(n, p))) <= max(FOR_REGRESSION * time_left(), AT_ONCE)


def quick_regression(
    X: np.ndarray, C: np.ndarray, weight: np.ndarray, fit_intercept: bool, n_fits: int = 1
) -> tuple[np.ndarray, np.ndarray | float]:
    """Coefficients and intercept of least squares, faster than scikit-learn's singular value decomposition.

    By normal equations if these are accurate, else by an orthogonal factorisation with pivoting; if there is no time
    for that, by some steps of an iteration.  ``n_fits`` regressions of this size have to share the time.
    """
    if not in_time(NORMAL_EQUATIONS, X, n_fits):
        return hurried_regression(X, C, weight, fit_intercept, n_fits=n_fits)
    C_2d = C[:, None] if C.ndim == 1 else C
    share = weight[:, None] / weight.sum()
    mean, level = (share * X).sum(axis=0), (share * C_2d).sum(axis=0)
    if not fit_intercept:
        mean, level = np.zeros_like(mean), np.zeros_like(level)
    Z, target = (X - mean) * np.sqrt(share), (C_2d - level) * np.sqrt(share)
    B = normal_equations(Z, target)
    if B is None and not in_time(ORTHOGONAL, X, n_fits):
        return hurried_regression(X, C, weight, fit_intercept, n_fits=n_fits)
    if B is None:
        # The same cut-off for the rank as in scikit-learn.
        B = scipy.linalg.lstsq(Z, target, cond=1e-6, lapack_driver="gelsy", check_finite=False)[0]
    intercept = level - mean @ B
    return (B[:, 0], float(intercept[0])) if C.ndim == 1 else (B.T, intercept)


def hurried_regression(
    X: np.ndarray, C: np.ndarray, weight: np.ndarray, fit_intercept: bool, alpha: float = 0.0, n_fits: int = 1
) -> tuple[np.ndarray, np.ndarray | float]:
    """Coefficients and intercept after as many steps of LSQR, from zero, as fit into the time."""
    n, p = X.shape
    start = perf_counter()
    X.T @ (X @ np.ones(p))
    seconds = (perf_counter() - start) * (C.size / n) * n_fits
    steps = int(min(FOR_REGRESSION * max(time_left(), 0.0) / max(seconds, 1e-9), n))
    if not steps:
        return np.zeros((*C.shape[1:], p)), (weight / weight.sum()) @ C * float(fit_intercept)
    model = Ridge(alpha, fit_intercept=fit_intercept, solver="lsqr", max_iter=steps)
    model.fit(X, C, sample_weight=n * weight)
    return np.reshape(model.coef_, (*C.shape[1:], p)), model.intercept_  # scikit-learn drops a single column


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
    Z: np.ndarray, C: np.ndarray, visible: np.ndarray, weight: np.ndarray, fit_intercept: bool, n_fits: int = 1
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
    n_fits : int
        Number of regressions of this size that have to share the time.

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
    step = 1
    while step < n and not in_time(RIDGE_CV, Z[::step], n_fits):
        step *= 2
    rows = slice(None, None, step)  # all, or as many as fit into the time; penalties grow with the number of rows
    search = RidgeCV(alphas / step, fit_intercept=fit_intercept)
    search.fit(Z[rows], visible[rows], sample_weight=None if weights is None else weights[rows])
    chosen = search.alpha_ * step
    if in_time(NORMAL_EQUATIONS, Z, n_fits):
        fit = Ridge(chosen, fit_intercept=fit_intercept).fit(Z, C, sample_weight=weights)
        coef, intercept = fit.coef_, fit.intercept_
    else:
        coef, intercept = hurried_regression(Z, C, weight, fit_intercept, chosen, n_fits)
    return np.reshape(coef, (d, -1)), np.broadcast_to(intercept, d)
