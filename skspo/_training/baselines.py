"""The two baselines that decisions are compared with: least squares and the mean cost.

Both are fitted to the training data of the model, so that the comparison is fair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_array

from .._utils.scaling import SMALLEST, largest, power_of_two
from .design import apply_model, check_blocks, existing
from .inputs import mean_cost

#: ``quick_baselines`` fits least squares up to this many multiplications: about 0.02 seconds
QUICK_PRODUCTS = 5e6


class Baselines(NamedTuple):
    """Least squares and the mean cost of some samples; neither includes the offset."""

    mean: np.ndarray  # (d,)
    coef: np.ndarray | None  # (d, p), or (q,) for a shared model; None if there is no least squares
    intercept: np.ndarray | float = 0.0
    why: str = ""  # the reason if there is no least squares

    def least_squares(self, X: ArrayLike) -> np.ndarray:
        """Predictions of least squares."""
        assert self.coef is not None
        features: Any = check_array(X, dtype=np.float64, accept_sparse=True)
        if issparse(features):
            return features @ self.coef.T + self.intercept
        return apply_model(features, self.coef, self.intercept)


def fit_baselines(
    X: ArrayLike,
    C: np.ndarray,
    weight: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    possible: np.ndarray | None = None,
    *,
    shared: bool = False,
    fit_intercept: bool = True,
) -> Baselines:
    """Fit both baselines; if the features are not numbers, only the mean cost.

    ``possible`` says which costs exist.  With ``shared`` one model predicts all costs, each from its own block of
    features.
    """
    n, d = C.shape
    mean = mean_cost(C, weight, offset, possible)
    try:
        features: Any = check_array(X, dtype=np.float64, accept_sparse=not shared, input_name="X")
        if shared:
            check_blocks(features.shape[1], d)
    except (TypeError, ValueError) as error:  # text or missing values
        return Baselines(mean, None, why=str(error).splitlines()[0])
    target = C if offset is None else C - offset
    if shared:
        features, target = features.reshape(n * d, -1), target.reshape(-1)
        weight = None if weight is None else np.repeat(weight, d)
        if possible is not None:
            seen, possible = possible.ravel(), None
            features, target = features[seen], target[seen]
            weight = None if weight is None else weight[seen]
    # Powers of two: exact, and squares neither overflow nor vanish.
    unit = 1.0 if issparse(features) else power_of_two(max(largest(features), SMALLEST))
    cost = power_of_two(largest(target))
    parts: list[tuple[Any, Any]] = [(slice(None), ...)] if possible is None else list(existing(possible, weight))
    coef, intercept = np.zeros((*target.shape[1:], features.shape[1])), np.zeros(target.shape[1:])
    for rows, columns in parts:
        part = None if weight is None else weight[rows]
        model = LinearRegression(fit_intercept=fit_intercept)
        model.fit(features[rows] / unit, target[rows][(slice(None), columns)[: target.ndim]] / cost, sample_weight=part)
        with np.errstate(over="ignore"):
            coef[columns], intercept[columns] = model.coef_ * (cost / unit), model.intercept_ * cost
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        return Baselines(mean, None, why="its coefficients leave the range of numbers.")
    return Baselines(mean, coef, float(intercept) if shared else np.broadcast_to(intercept, d).copy())


def quick_baselines(
    X: ArrayLike,
    n_features: int | None,
    C: np.ndarray,
    weight: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    possible: np.ndarray | None = None,
    *,
    shared: bool = False,
) -> Baselines:
    """Mean cost, and least squares if it is quick: for models whose own fit does not need it."""
    n, d = C.shape
    if n_features is None or n * n_features * (n_features + d) > QUICK_PRODUCTS or issparse(X):
        why = "it is computed at fit for dense features only, and not for large data."
        return Baselines(mean_cost(C, weight, offset, possible), None, why=why)
    return fit_baselines(X, C, weight, offset, possible, shared=shared)
