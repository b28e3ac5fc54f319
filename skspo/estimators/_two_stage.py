"""``TwoStageRegressor``: predict with any regressor, then optimize."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_array, check_consistent_length, has_fit_parameter, validate_data

from .._training.baselines import quick_baselines
from .._training.design import check_blocks
from .._training.inputs import (
    Attributes,
    check_ndim,
    existing_costs,
    feature_attributes,
    frame_attributes,
    learn_region,
    mean_cost,
    seen_or_none,
    set_fitted,
)
from .._utils.frames import column_names, take_rows
from .._utils.limits import Deadline
from .._utils.params import BOOL, Check, check_params, one_of
from .._utils.shown import shown
from ..losses import check_offset, check_weight
from ..regions.base import Region
from ..regions.capabilities import project_visible
from ..regions.check import check_not_labels, check_region, view_in_time
from ._base import DecisionRegressor


def noted_features(estimator: BaseEstimator, X: ArrayLike) -> Attributes:
    """Number and names of the features, as scikit-learn stores them; the values are not checked."""
    noted = copy(estimator)
    validate_data(noted, X, skip_check_array=True)
    return feature_attributes(noted)


class RawData(NamedTuple):
    """Training data whose features are checked by the regressors inside."""

    C: np.ndarray  # (n, d) costs, 0 where no decision can use them
    shape: tuple[int, ...]  # of the costs as given
    weight: np.ndarray | None
    offset: np.ndarray | None
    possible: np.ndarray | None  # which costs exist
    region: Region  # to be stored
    view: Region  # of these samples
    attributes: Attributes


def check_raw_data(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike, deadline: Deadline | None = None, **known: Any
) -> RawData:
    """Validate everything but the values of the features; ``known`` are the other arguments of ``fit``."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    check_ndim(y)
    attributes = frame_attributes(estimator, X, y, reset=True, **known) | noted_features(estimator, X)
    with np.errstate(over="ignore", invalid="ignore"):  # the check for infinity adds up all values
        given = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y")
    check_consistent_length(X, given, known.get("groups"))
    check_not_labels(estimator.region, given.shape)
    C = given.reshape(len(given), -1)
    attributes["_seen"] = seen_or_none(X, C)
    with (deadline or Deadline()).enforced():
        region = check_region(estimator.region, n_dim=C.shape[1])
        view = view_in_time(region, known["region_params"], *C.shape)
    C, possible = existing_costs(C, view, names=column_names(y))
    weight = check_weight(known["sample_weight"], X)
    view._check_true_costs(view.to_min(C))
    region, view = (learn_region(each, C, weight, possible) for each in (region, view))
    return RawData(C, given.shape, weight, check_offset(known["offset"], C.shape), possible, region, view, attributes)


class TwoStageRegressor(MetaEstimatorMixin, DecisionRegressor):
    """Predict, then optimize: any scikit-learn regressor with ``decide`` and ``score``.

    Parameters
    ----------
    regressor : estimator or None, default=None
        Regressor of the costs; None means LinearRegression.  One that predicts a single output is fitted once per
        cost.
    region : Region or None, default=None
        Feasible region of the decisions; None means the unit Box, which is rarely wanted: ``fit`` warns.
    shared : bool, default=False
        Whether the regressor predicts one cost at a time, from features of its own, and serves all of them: X then
        holds d consecutive blocks of q features, one block per cost (see :func:`stack_items`).
    costs : {"all", "visible"}, default="all"
        What the regressor is fitted to.  "visible" means the component of the costs that can change a decision (see
        :meth:`Region.visible_costs`), for example differences from the mean of the sample on a :class:`Simplex`.
        Decisions and regret are then those of costs, but ``predict`` and the RMSE of a report lack a component that no
        decision depends on.  For one linear regression per cost, decisions are the same as with "all".  Others do not
        spend their capacity on that component: trees do not split on it.  If the regressor is linear and ``shared``,
        features should be differences within the sample, too.

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor.
    region_, n_features_in_, feature_names_in_, cost_names_in_
        As in :class:`SPOPlusRegressor`.

    See Also
    --------
    SPOPlusRegressor : A linear model trained for its decisions.

    Notes
    -----
    ``sample_weight`` is passed to the regressor, which must accept it; with an ``offset`` it is fitted to the rest of
    the costs.  Training depends on ``region_params`` in two ways.  Costs of options that are not available are not
    used: if there are such options in some samples only, there is one regressor for each cost, fitted to the samples
    that have it.  With ``costs="visible"``, the component that is removed is that of the other options.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from skspo import Simplex, TwoStageRegressor
    >>> from skspo.datasets import make_cost_sensitive_classification
    >>> X, C = make_cost_sensitive_classification(100, degree=2, random_state=0)
    >>> model = TwoStageRegressor(RandomForestRegressor(n_estimators=10, random_state=0), Simplex()).fit(X, C)
    >>> bool(model.score(X, C) <= 0)
    True
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {"shared": BOOL, "costs": one_of("all", "visible")}

    def __init__(
        self,
        regressor: BaseEstimator | None = None,
        region: Region | None = None,
        *,
        shared: bool = False,
        costs: str = "all",
    ) -> None:
        self.regressor = regressor
        self.region = region
        self.shared = shared
        self.costs = costs

    def _fit(self, X: ArrayLike, y: ArrayLike, **known: Any) -> None:
        if self.regressor is not None and not hasattr(self.regressor, "fit"):
            raise TypeError(
                f"regressor must be a scikit-learn regressor, got {shown(self.regressor)}. The region is the second "
                "parameter: TwoStageRegressor(regressor, region)."
            )
        check_params(self)
        if isinstance(self.regressor, type):
            raise TypeError(f"regressor must be an instance, got the class: {self.regressor.__name__}(...).")
        raw = check_raw_data(self, X, y, **known)
        C, weight, possible, shape, view = raw.C, raw.weight, raw.possible, raw.shape, raw.view
        d = C.shape[1]
        if raw.offset is not None:
            C = C - raw.offset
        target, hidden = C, np.zeros(d)
        if self.costs == "visible":
            target = view.visible_costs(C)
            if raw.region._clips(d):  # it depends on the whole cost: predictions keep the mean of what is not seen
                mean = mean_cost(C, weight, None, possible)
                hidden = mean - project_visible(mean[None], view._always_hidden(d))[0]
        target = target.reshape(shape)
        regressor = LinearRegression() if self.regressor is None else clone(self.regressor)
        if weight is not None and not has_fit_parameter(regressor, "sample_weight"):
            raise ValueError(
                f"{type(regressor).__name__} does not accept sample_weight in fit. Use another regressor, or fit "
                "without sample_weight."
            )
        fit_params = {} if weight is None else {"sample_weight": weight}
        if self.shared:
            items, seen = self._items(X, d), slice(None) if possible is None else possible.ravel()
            fit_params = {name: np.repeat(weight, d)[seen] for name, weight in fit_params.items()}
            regressor.fit(items[seen], target.ravel()[seen], **fit_params)
        elif possible is not None and (possible != possible[:1]).any():
            regressor = _fit_each(regressor, X, target, possible, weight)
        else:
            inner = getattr(regressor, "estimator", None) if hasattr(regressor, "refit") else None
            # Searches do not pass on the tag of the regressor inside.
            if d > 1 and not get_tags(regressor if inner is None else inner).target_tags.multi_output:
                regressor = MultiOutputRegressor(regressor)
            # X is not converted: the regressor may need a DataFrame, or accept missing values.
            regressor.fit(X, target, **fit_params)
        # Attributes are set only now: a fit that fails does not change an earlier model.
        n_features = raw.attributes.get("n_features_in_")
        learned: Attributes = {
            "regressor_": regressor,
            "region_": raw.region,
            "_target_shape": shape[1:],  # some regressors drop a single column
            "_hidden_mean": hidden,
            "_baselines": quick_baselines(X, n_features, C, weight, possible=possible, shared=bool(self.shared)),
        }
        set_fitted(self, learned | raw.attributes)

    @property
    def _trains_on_region(self) -> bool:
        return self.costs == "visible"

    @property
    def _predicts_all_costs(self) -> bool:
        return self.costs != "visible"

    def _predict_costs(self, X: ArrayLike) -> np.ndarray:
        rows = self._items(X, int(np.prod(self._target_shape))) if self.shared else X
        C_hat = np.asarray(self.regressor_.predict(rows))
        C_hat = C_hat.reshape(-1, *self._target_shape) if self._target_shape else C_hat.ravel()
        return C_hat + self._hidden_mean if self.costs == "visible" else C_hat

    def _items(self, X: ArrayLike, d: int) -> np.ndarray:
        """One row of features per cost; the regressor checks their values."""
        rows = check_array(X, dtype=None, ensure_all_finite=False, estimator=self, input_name="X")
        check_blocks(rows.shape[1], d)
        return rows.reshape(rows.shape[0] * d, -1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(LinearRegression() if self.regressor is None else self.regressor)
        tags.input_tags = inner.input_tags
        tags.input_tags.sparse &= not self.shared
        tags.non_deterministic = inner.non_deterministic
        return tags


def _fit_each(
    regressor: BaseEstimator, X: ArrayLike, C: np.ndarray, possible: np.ndarray, weight: np.ndarray | None
) -> MultiOutputRegressor:
    """One regressor for each cost, fitted to the samples that have it; one that predicts 0 if none has."""
    features = X if hasattr(X, "iloc") or issparse(X) else np.asarray(X)
    each = MultiOutputRegressor(regressor)
    each.estimators_ = []
    for j in range(C.shape[1]):
        rows = np.flatnonzero(possible[:, j] if weight is None else possible[:, j] & (weight > 0))
        if rows.size:
            given = {} if weight is None else {"sample_weight": weight[rows]}
            each.estimators_.append(clone(regressor).fit(take_rows(features, rows), C[rows, j], **given))
        else:
            each.estimators_.append(DummyRegressor(strategy="constant", constant=0.0).fit([[0.0]], [0.0]))
    return each
