"""Metrics of the decisions that are made with predictions."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ._training.fitted import check_frames, check_metadata, innermost, innermost_features, metadata_checked
from ._utils.cost_matrix import read_cost_matrix, read_costs
from ._utils.errors import warn_once
from ._utils.frames import check_index, column_names
from ._utils.scaling import relative_weight
from ._utils.shown import shown
from ._utils.types import RegionParams
from .losses import SPOPlusLoss, check_costs, check_existing, check_offset, check_weight
from .regions.base import Region
from .regions.capabilities import CAPABILITIES, has
from .regions.check import check_not_labels, check_region, warn_no_region
from .regions.simplex import Box

#: best costs below this share of the largest cost times the largest entry of the decision are set to zero
ZERO_COST = 1e-9

Losses = TypeVar("Losses", float, np.ndarray, float | np.ndarray)


def spo_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    region: Region | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    per_sample: bool = False,
    ties: str = "oracle",
) -> float | np.ndarray:
    r"""Mean SPO loss: the cost of decisions made with predictions, minus the best possible cost.

    .. math:: \ell(\hat c, c) = c^\top w^*(\hat c) - c^\top w^*(c), \quad w^*(c) = \arg\min_{w \in S} c^\top w

    Predictions are first clipped to the ``cost_bounds`` of the region, as ``Region.decide`` does.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples, d)
        True and predicted costs (values, if the region maximizes).
    region : Region or None
        Feasible region; None means the unit Box, and a warning.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the mean.
    offset : array-like of shape (n_samples, d) or (d,), optional
        Known part of the costs that ``y_pred`` does not contain; it is added to ``y_pred``.
    region_params : dict of array-like, or the like, optional
        Parameters of the region that vary by sample, one row per sample (see :func:`row_params`).
    per_sample : bool, default=False
        Return the loss of each sample instead of the mean.
    ties : {"oracle", "worst"}, default="oracle"
        Which decision is evaluated if several are optimal for a prediction: the one that the region's oracle returns,
        or the one with the highest cost ("worst": the unambiguous SPO loss, for regions that can compute it).

    Returns
    -------
    loss : float or ndarray of shape (n_samples,)
        At least zero.

    Examples
    --------
    >>> from skspo import Simplex, spo_loss
    >>> spo_loss([[1.0, 3.0]], [[2.0, 2.0]], Simplex())
    0.0
    >>> spo_loss([[1.0, 3.0]], [[2.0, 2.0]], Simplex(), ties="worst")
    2.0
    """
    loss, *_ = _spo_losses(y_true, y_pred, region, ties, offset, region_params, sample_weight)
    return _average(loss, sample_weight, per_sample)


def spo_plus_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    region: Region | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    per_sample: bool = False,
) -> float | np.ndarray:
    r"""Mean SPO+ loss, the convex upper bound of the SPO loss that training minimizes.

    .. math:: \ell_+(\hat c, c) = \max_{w \in S} \, (c - 2 \hat c)^\top w + 2 \hat c^\top w^*(c) - c^\top w^*(c)

    Parameters
    ----------
    y_true, y_pred, region, sample_weight, offset, region_params, per_sample
        As in :func:`spo_loss`.

    Returns
    -------
    loss : float or ndarray of shape (n_samples,)

    Examples
    --------
    >>> from skspo import Simplex, spo_plus_loss
    >>> spo_plus_loss([[1.0, 3.0]], [[2.0, 2.0]], Simplex())
    2.0
    """
    region, C, C_hat = _prepare(y_true, y_pred, region, offset, region_params, sample_weight)
    value = SPOPlusLoss(region).value_min(region, C, C_hat, region.solve_min(C))
    return _average(value, sample_weight, per_sample)


def normalized_spo_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    region: Region | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    per_sample: bool = False,
    ties: str = "oracle",
) -> float | np.ndarray:
    r"""Total SPO loss divided by the total absolute value of the best costs.

    .. math:: \frac{\sum_i \ell(\hat c_i, c_i)}{\sum_i \lvert c_i^\top w^*(c_i)\rvert}

    If all best costs are zero, as in classification where the right class costs nothing, the loss is divided by
    :math:`\sum_i \max_j \lvert c_{ij}\rvert` instead, with a warning.  Both have no units, so the
    values of several folds can be averaged, but the two kinds are not comparable.  If best costs are often zero, use
    ``spo_loss``.

    Parameters
    ----------
    y_true, y_pred, region, sample_weight, offset, region_params, ties
        As in :func:`spo_loss`; the weights are those of both sums.
    per_sample : bool, default=False
        Return each sample's contribution, scaled so that the (weighted) mean is the metric.

    Returns
    -------
    loss : float or ndarray of shape (n_samples,)
        At least zero; 0 means that all decisions are optimal.

    Examples
    --------
    >>> from skspo import Simplex, normalized_spo_loss
    >>> normalized_spo_loss([[1.0, 3.0], [1.0, 2.0]], [[2.0, 1.0], [1.0, 2.0]], Simplex())
    1.0
    """
    loss, z, most = _spo_losses(y_true, y_pred, region, ties, offset, region_params, sample_weight)
    size, largest = (float(_average(sizes, sample_weight, False)) for sizes in (np.abs(z), most))
    return normalize(_average(loss, sample_weight, per_sample), size, largest)


def normalize(loss: Losses, size: float, largest: float) -> Losses:
    """Divide losses by the mean absolute best cost; if that is zero, by the mean of the largest costs.

    A size so small that the quotient overflows counts as zero.
    """
    if not np.any(loss):
        return loss
    for scale in (size, largest):
        if scale > 0:
            with np.errstate(over="ignore"):
                ratio = loss / scale
            if np.isfinite(ratio).all():
                break
    else:
        ratio = loss  # only samples of weight zero have a loss, and the mean ignores them
    if scale != size:
        warn_once(
            "All best costs are zero, so the SPO loss cannot be normalized by them; it is divided by the mean of the "
            "largest cost of each sample. If this happens in some folds only, their scores are on different scales: "
            "use spo_loss, or scoring=make_spo_scorer(region, metric='spo_loss').",
            UndefinedMetricWarning,
        )
    return ratio


def make_spo_scorer(
    region: Region | None = None, *, metric: str = "normalized_spo_loss", **kwargs: object
) -> Callable[..., float]:
    """Scorer for ``GridSearchCV`` and ``cross_val_score``: minus a decision loss of a multi-output regressor.

    Parameters
    ----------
    region : Region or None
        Feasible region in which the decisions are made; None means the unit Box, and a warning.
    metric : {"normalized_spo_loss", "spo_loss", "spo_plus_loss"}, default="normalized_spo_loss"
        What to measure; the scorer returns its negative, so greater is better.  Use "spo_loss", which is in units of
        cost, if the best costs of a fold may all be zero.
    **kwargs
        Passed to the metric, for example ``ties="worst"``.

    Returns
    -------
    scorer : callable ``scorer(estimator, X, y, sample_weight=None, offset=None, region_params=None)``
        All but the first three are routed metadata: ``scorer.set_score_request(region_params=True)``.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from sklearn.model_selection import cross_val_score
    >>> from skspo import Simplex, make_spo_scorer
    >>> from skspo.datasets import make_cost_sensitive_classification
    >>> X, C = make_cost_sensitive_classification(60, random_state=0)
    >>> forest = RandomForestRegressor(n_estimators=5, random_state=0)
    >>> scores = cross_val_score(forest, X, C, scoring=make_spo_scorer(Simplex(), metric="spo_loss"), cv=3)
    >>> scores.shape
    (3,)
    """
    metrics = {f.__name__: f for f in (normalized_spo_loss, spo_loss, spo_plus_loss)}
    if not isinstance(metric, str) or metric not in metrics:
        raise ValueError(f"metric must be one of {sorted(metrics)}, got {shown(metric)}.")
    # Check here, because a search over parameters would turn the error into a score of NaN.
    known = [name for name, p in signature(metrics[metric]).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for name in kwargs:
        if name not in known:
            raise TypeError(f"{metric} has no parameter {name!r}; it has {known}.")
    if region is None:
        warn_no_region()  # once, not in every fold
        region = Box()
    return _DecisionScorer(metrics[metric], region, kwargs)


def mean_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: ArrayLike | None = None,
    *,
    costs: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean cost of predicted labels, by a cost matrix or by the costs of each sample.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted labels.
    cost_matrix : array-like of shape (n_classes, n_classes) or data frame, optional
        ``cost_matrix[j, k]`` is the cost of predicting class k if class j is true.  The index and the columns of a data
        frame are labels.  None means 1 for every wrong label: the share of errors.
    costs : array-like of shape (n_samples, n_classes) or data frame, optional
        Cost of predicting each class for each sample, instead of ``cost_matrix``.
    labels : array-like of shape (n_classes,), optional
        Classes in the order of the rows and columns of arrays.  None means the sorted labels of both ``y_true`` and
        ``y_pred``.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the mean.

    Returns
    -------
    cost : float

    See Also
    --------
    CostSensitiveClassifier : Classifier whose score is minus the mean cost.

    Examples
    --------
    >>> from sklearn.metrics import make_scorer
    >>> from skspo import mean_cost
    >>> mean_cost(["bad", "bad", "good"], ["bad", "good", "good"], [[0, 6], [1, 0]])
    2.0
    >>> scorer = make_scorer(mean_cost, greater_is_better=False, cost_matrix=[[0, 6], [1, 0]], labels=["bad", "good"])
    """
    if cost_matrix is not None and costs is not None:
        raise ValueError("cost_matrix and costs are both given. Pass one of them.")
    check_index(y_true=y_true, y_pred=y_pred, costs=costs, sample_weight=sample_weight)
    true, predicted = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(true, predicted)
    classes = np.unique(np.concatenate([true, predicted])) if labels is None else np.asarray(labels)
    j, k = (_positions(name, values, classes) for name, values in (("y_true", true), ("y_pred", predicted)))
    if costs is None:
        cost = read_cost_matrix(cost_matrix, classes)[j, k]
    else:
        cost = read_costs(costs, len(k), classes)[np.arange(len(k)), k]
    return float(_average(cost, sample_weight, False))


def _positions(name: str, labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Where each label is among the classes."""
    some, inverse = np.unique(labels, return_inverse=True)
    position = {label: k for k, label in enumerate(classes.tolist())}
    for label in some.tolist():
        if label not in position:
            raise ValueError(f"{name} has the label {label!r}, which is not among the classes {list(position)}.")
    return np.array([position[label] for label in some.tolist()], dtype=int)[inverse]


class _DecisionScorer(BaseEstimator):
    """Scorer that checks that it gets the same kinds of metadata as the estimator's ``fit``.

    It is a ``BaseEstimator`` because this gives it ``set_score_request``, which is written for ``score``.
    """

    __metadata_request__score = {"estimator": UNUSED}

    def __init__(self, metric: Callable[..., Any], region: Region, options: dict[str, object]) -> None:
        self.metric = metric
        self.region = region
        self.options = options

    def score(
        self,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
        decisions: ArrayLike | None = None,
    ) -> float:
        """Minus the loss of the decisions that are made with the predictions of a fitted estimator.

        If costs are missing, or ``y`` has totals of past ``decisions``, it is the score of an estimator that was
        trained on such data: minus the estimated cost of its decisions.
        """
        given: dict[str, Any] = {"sample_weight": sample_weight, "offset": offset, "region_params": region_params}
        model = innermost(estimator)
        missing = decisions is not None or bool(np.isnan(np.asarray(y, dtype=np.float64)).any())
        if missing and hasattr(model, "pseudo_costs_"):
            return float(model.score(innermost_features(estimator, X), y, **given, decisions=decisions))
        options = self.options | {name: value for name, value in given.items() if value is not None}
        known: dict[str, Any] = {name: options.get(name) for name in given}
        check_metadata(estimator, "the scorer", offset=known["offset"], region_params=known["region_params"])
        check_frames(estimator, self.region, X=X, y=y, **known)
        with metadata_checked():  # the metric adds the offset
            y_pred = estimator.predict(X)
        return -self.metric(y, y_pred, self.region, **options)

    def __call__(self, estimator: BaseEstimator, X: ArrayLike, y: ArrayLike, **metadata: Any) -> float:
        """Return the score."""
        return self.score(estimator, X, y, **metadata)


def _prepare(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    region: Region | None,
    offset: ArrayLike | None,
    region_params: RegionParams | None,
    sample_weight: ArrayLike | None = None,
) -> tuple[Region, np.ndarray, np.ndarray]:
    """Region of these samples, and their true and predicted costs, to be minimized; weights only have an index here."""
    rows = {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight, "offset": offset}
    check_frames(None, region, region_params=region_params, **rows)
    C, C_hat = check_costs(y_true, y_pred, may_miss=True)
    if np.ndim(y_true) == 1:
        check_not_labels(region, C.shape[:1], "y_true")
    known = check_offset(offset, C.shape)
    C_hat = C_hat if known is None else C_hat + known
    region = check_region(region, n_dim=C.shape[1]).with_rows(region_params, *C.shape)
    C = check_existing(C, region, name="y_true", names=column_names(y_true))[0]
    costs = region.to_min(C)
    region._check_true_costs(costs)
    if (costs < 0).any():  # what was not known of the costs before they came
        region = region._learn_bounds(C, C.mean(axis=0))
    return region, costs, region.to_min(C_hat)


def _spo_losses(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    region: Region | None,
    ties: str = "oracle",
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """SPO loss, best cost and largest absolute cost of each sample; of the weights only the index is read."""
    if ties not in ("oracle", "worst"):
        raise ValueError(f"ties must be 'oracle' or 'worst', got {shown(ties)}.")
    region, C, C_hat = _prepare(y_true, y_pred, region, offset, region_params, sample_weight)
    if ties == "oracle":
        W_hat = region._decide_min(C_hat)
    elif has(region, "worst_argmin"):
        W_hat = region._decide_worst(C_hat, C)
    else:
        raise ValueError(
            f"ties='worst' needs {CAPABILITIES['worst_argmin']}, which {region.label} cannot compute. "
            "Use ties='oracle'."
        )
    return *_regrets(C, W_hat, region.solve_min(C)), np.abs(C).max(axis=1)


def _regrets(C: np.ndarray, W_hat: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """SPO loss and best cost of each sample, for costs to be minimized, decisions and best decisions."""
    # The oracle has rounding errors: a loss of -1e-17 is zero.
    loss = np.einsum("ij,ij->i", C, W_hat - W)
    best = np.einsum("ij,ij->i", C, W)
    rounding = ZERO_COST * np.abs(C).max(axis=1) * np.abs(W).max(axis=1)
    return np.maximum(loss, 0.0), np.where(np.abs(best) <= rounding, 0.0, best)


def _average(loss: np.ndarray, sample_weight: ArrayLike | None, per_sample: bool) -> float | np.ndarray:
    weight = relative_weight(check_weight(sample_weight, loss))
    return loss if per_sample else float(np.average(loss, weights=weight))
