"""The SPO+ loss as an objective of XGBoost and LightGBM, for trees that predict all costs.

Neither package is imported here: an objective is a function of arrays.

Conventions
-----------
    C (n, d) true costs     F (n, d) predictions of the trees     G (n, d) subgradient, 2 (w*(c) - w*(2 f - c))

The loss is piecewise linear, so its second derivative says nothing, and a constant takes its place.  The trees then do
gradient descent.  G has no units, and a prediction has those of a cost: G is multiplied by a typical cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from ._utils.params import number, optional
from .losses import SPOPlusLoss, check_costs, check_existing
from .regions._names import check_variables
from .regions.base import Region
from .regions.check import check_region

__all__ = ["LightGBMObjective", "XGBoostObjective"]


class _Objective:
    """Gradient and second derivative of all samples; the best decisions are computed once for the same costs."""

    def __init__(self, region: Region | None = None, *, scale: float | None = None) -> None:
        optional(number(above=0))("scale", scale)
        self.region = region
        self.scale = scale
        self._known: tuple[np.ndarray, np.ndarray, Region] | None = None

    def _evaluate(self, C: ArrayLike, F: ArrayLike, sample_weight: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
        C, F = check_costs(C, F, self.region, may_miss=True)
        if self._known is not None and self._known[0].shape[1] == C.shape[1]:
            region = self._known[2]
        else:
            region = check_region(self.region, n_dim=C.shape[1])
        C = check_existing(C, region, name="y_true")[0]
        if self._known is None or not np.array_equal(self._known[0], C):
            self._known = C, region.argmin(C), region
        _, W, region = self._known
        scale = float(C.std(axis=0).mean()) or 1.0 if self.scale is None else float(self.scale)
        weight = np.ones(len(C)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        G = SPOPlusLoss(region).gradient(C, F, W)
        return scale * weight[:, None] * G, np.broadcast_to(weight[:, None], G.shape).copy()


class XGBoostObjective(_Objective):
    """SPO+ loss as ``objective`` of ``xgboost.XGBRegressor`` with ``multi_strategy="multi_output_tree"``.

    Train for the costs first and for the decisions then: fit a model with the default objective, and continue it with
    this one (``fit(X, C, xgb_model=first.get_booster())``).

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions; None means the unit Box, and a warning.
    scale : float, optional
        Typical cost by which the gradient is multiplied; by default the mean standard deviation of the costs.  A tree
        changes a prediction by at most twice this number times the learning rate if decisions are between 0 and 1.

    See Also
    --------
    skspo.SPOStackingRegressor : Combines boosted trees with SPO+ models, which is more reliable.

    Examples
    --------
    >>> from skspo import Simplex
    >>> from skspo.boosting import XGBoostObjective
    >>> objective = XGBoostObjective(Simplex(), scale=1.0)
    >>> gradient, hessian = objective([[1.0, 2.0]], [[2.0, 1.0]])
    >>> gradient, hessian
    (array([[ 2., -2.]]), array([[1., 1.]]))
    """

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and second derivative for true and predicted costs of shape (n_samples, d)."""
        return self._evaluate(y_true, y_pred, sample_weight)


class LightGBMObjective(_Objective):
    """SPO+ loss as ``objective`` of ``lightgbm.train`` with ``num_class=d``.

    LightGBM has no targets of several columns, so that costs are given here, and the label of a sample is its row:
    ``lightgbm.Dataset(X, label=np.arange(len(X)))``.

    Parameters
    ----------
    region, scale
        As in :class:`XGBoostObjective`.
    costs : array-like of shape (n_samples, d)
        True costs of all samples.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo import Simplex
    >>> from skspo.boosting import LightGBMObjective
    >>> rng = np.random.default_rng(0)
    >>> X, C = rng.normal(size=(100, 3)), rng.normal(size=(100, 4))
    >>> parameters = {"objective": LightGBMObjective(Simplex(), C), "num_class": 4, "learning_rate": 0.05}
    >>> # booster = lightgbm.train(parameters, lightgbm.Dataset(X, label=np.arange(100)), num_boost_round=50)
    """

    def __init__(self, region: Region | None, costs: ArrayLike, *, scale: float | None = None) -> None:
        super().__init__(region, scale=scale)
        if isinstance(region, Region):
            check_variables(region, costs=costs)
        self.costs = check_array(costs, dtype=np.float64, ensure_all_finite=False, input_name="costs")

    def __call__(self, y_pred: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and second derivative for predictions and a ``lightgbm.Dataset``."""
        rows = np.asarray(data.get_label(), dtype=np.int64)
        if rows.min() < 0 or rows.max() >= len(self.costs):
            raise ValueError(
                f"The labels must be the rows of costs, 0 to {len(self.costs) - 1}: "
                "lightgbm.Dataset(X, label=np.arange(len(X)))."
            )
        C = self.costs[rows]
        if np.shape(y_pred) != C.shape:
            raise ValueError(f"There are {C.shape[1]} costs: set num_class={C.shape[1]}.")
        return self._evaluate(C, y_pred, data.get_weight())
