"""Regressions of costs on features: least squares without a singular value decomposition, and ridge."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import scipy.linalg
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV

from .._utils.limits import PREPARATION, predicted_seconds, time_left

#: multiplications of scikit-learn's least squares, and of RidgeCV with more samples than features, divided by
#: n p min(n, p); measured, in units of a matrix product
REGRESSION, RIDGE_CV = 6.0, 40.0

#: a regression that takes at most so many seconds ignores the time limit
AT_ONCE = 0.1

#: candidates for the penalty of the ridge fit, per sample and standardized feature
RIDGE_ALPHAS = np.logspace(-6.0, 3.0, 19)

#: smallest pivot, relative to the norm of a column, for which normal equations are accurate
WELL_CONDITIONED = 1e-3


def in_time(work: float, X: np.ndarray, n_fits: int = 1) -> bool:
    """Whether ``n_fits`` regressions of ``work`` n p min(n, p) multiplications fit into the time that they may take.

    The fit of the model, which takes at least as long, needs the rest.
    """
    n, p = X.shape
    return predicted_seconds(n_fits * work * n * p * float(min(n, p))) <= max(PREPARATION * time_left(), AT_ONCE)


def quick_regression(
    X: np.ndarray, C: np.ndarray, weight: np.ndarray, fit_intercept: bool, n_fits: int = 1
) -> tuple[np.ndarray, np.ndarray | float]:
    """Coefficients and intercept of least squares, faster than scikit-learn's singular value decomposition.

    By normal equations if these are accurate; if there is no time for a decomposition, by some steps of an iteration.
    ``n_fits`` regressions of this size have to share the time.
    """
    if not in_time(REGRESSION, X, n_fits):
        return hurried_regression(X, C, weight, fit_intercept, n_fits=n_fits)
    share = weight[:, None] / weight.sum()
    mean, level = (share.T @ X)[0] * fit_intercept, weight @ C / weight.sum() * fit_intercept
    B = normal_equations((X - mean) * np.sqrt(share), ((C - level).T * np.sqrt(share[:, 0])).T)
    if B is None:
        ls = LinearRegression(fit_intercept=fit_intercept).fit(X, C, sample_weight=weight)
        return ls.coef_, ls.intercept_
    return B.T, level - mean @ B


def hurried_regression(
    X: np.ndarray, C: np.ndarray, weight: np.ndarray, fit_intercept: bool, alpha: float = 0.0, n_fits: int = 1
) -> tuple[np.ndarray, np.ndarray | float]:
    """Coefficients and intercept after as many steps of LSQR, from zero, as fit into the time."""
    n, p = X.shape
    start = perf_counter()
    X.T @ (X @ np.ones(p))
    seconds = (perf_counter() - start) * (C.size / n) * n_fits
    steps = int(min(PREPARATION * max(time_left(), 0.0) / max(seconds, 1e-9), n))
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
    return (B.T / scale).T


def ridge_regression(
    Z: np.ndarray, C: np.ndarray, visible: np.ndarray, weight: np.ndarray, fit_intercept: bool, n_fits: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts of a ridge regression of C, with the penalty of the lowest leave-one-out error.

    Features are standardized, and the weights sum to one.  The error that is compared is that of the ``visible`` costs.
    ``n_fits`` regressions of this size have to share the time.
    """
    n, d = C.shape
    level = weight @ C if fit_intercept else np.zeros(d)
    if n <= 2 or not Z.shape[1]:  # no error can be estimated
        return np.zeros((d, Z.shape[1])), level
    # None for equal weights: scikit-learn is faster then.  Penalties are in units of one sample.
    weights = n * weight if np.ptp(weight) else None
    alphas = n * RIDGE_ALPHAS
    step = 1
    while step < n and not in_time(RIDGE_CV, Z[::step], n_fits):
        step *= 2
    rows = slice(None, None, step)  # all, or as many as fit into the time; penalties grow with the number of rows
    search = RidgeCV(alphas / step, fit_intercept=fit_intercept)
    search.fit(Z[rows], visible[rows], sample_weight=None if weights is None else weights[rows])
    chosen = search.alpha_ * step
    if in_time(REGRESSION, Z, n_fits):
        fit = Ridge(chosen, fit_intercept=fit_intercept).fit(Z, C, sample_weight=weights)
        coef, intercept = fit.coef_, fit.intercept_
    else:
        coef, intercept = hurried_regression(Z, C, weight, fit_intercept, chosen, n_fits)
    return np.reshape(coef, (d, -1)), np.broadcast_to(intercept, d)
