"""Members of a stack: the default ones, and their held-out predictions.

A member is a transformer of the features, or None, and an estimator that knows the region.  Regressors without a region
are wrapped in ``TwoStageRegressor``, so that every member takes ``sample_weight``, ``offset`` and ``region_params``.
"""

from __future__ import annotations

from functools import partial
from inspect import signature
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from .._training.fitted import metadata_checked
from .._training.inputs import TrainingData, check_training_data
from .._utils.errors import errors_note
from .._utils.frames import take_rows
from .._utils.limits import Deadline
from .._utils.shown import shown
from ..data.item_transformer import ItemTransformer
from ..regions.base import Region
from ._base import DecisionMixin
from ._compose import find_model
from ._cv import SPOPlusRegressorCV
from ._folds import Splits, held_out_predictions
from ._two_stage import TwoStageRegressor

#: Largest number of Nystroem features of the default members.  With ``prior="ridge"`` 60 to 500 features have about the
#: same regret and take longer (``benchmarks/features.py``).
KERNEL_FEATURES = 40

#: Leaves of the boosted trees, fewer than 31, the default of scikit-learn, because there is a tree for each cost.  On
#: logs of 400 samples of 5x5 paths 4, 8 and 31 have the same held-out deviance within 1 %.
LEAVES = 8

#: Largest number of features for which there is a default member with all their products, 54 of them.
QUADRATIC = 9

#: member by name, as users give it
Named = tuple[str, BaseEstimator]


def default_members(n_samples: int, n_features: int, seed: int) -> list[Named]:
    """Ridge, forest, gradient boosting, SPO+, SPO+ with Nystroem features, and SPO+ with products of few features.

    ``n_samples`` and ``n_features`` are those of a regressor; ``seed`` is the random state of all members.
    """
    kernel = Nystroem(
        gamma=1.0 / (2 * n_features),  # standardized features: distances are of order sqrt(2 n_features)
        n_components=min(KERNEL_FEATURES, max(n_samples // 2, 1)),
        random_state=seed,
    )
    boosting = HistGradientBoostingRegressor(max_leaf_nodes=LEAVES, early_stopping=False, random_state=seed)
    forest = RandomForestRegressor(50, min_samples_leaf=3, max_features=1 / 3, max_samples=0.5, random_state=seed)
    features = {"spo+ kernel": FeatureUnion([("linear", FunctionTransformer()), ("kernel", kernel)])}
    if n_features <= QUADRATIC:
        features["spo+ quadratic"] = PolynomialFeatures(2, include_bias=False)
    return [
        ("ridge", make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17)))),
        ("forest", forest),
        ("boosting", boosting),
        ("spo+", SPOPlusRegressorCV()),
        *(
            # Least squares on many features overfits, so that it is not a good prior.
            (name, make_pipeline(StandardScaler(), more, SPOPlusRegressorCV(prior="ridge", n_alphas=12)))
            for name, more in features.items()
        ),
    ]


class Rows(NamedTuple):
    """Samples: features, costs, and what is known about each sample."""

    X: Any
    C: np.ndarray  # (n, d), or (n,) if the user's costs are one-dimensional
    weight: np.ndarray | None
    offset: np.ndarray | None  # (n, d)
    region_params: np.ndarray | None
    groups: np.ndarray | None = None

    def known(self, model: Any) -> dict[str, Any]:
        """What is known about the samples, as arguments of ``fit``."""
        given = {"sample_weight": self.weight, "offset": self.offset, "region_params": self.region_params}
        if "groups" in signature(model.fit).parameters:  # it cross-validates
            given["groups"] = self.groups
        return {name: value for name, value in given.items() if value is not None}

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the samples."""
        return Rows(*(take_rows(array, rows) for array in self))


class Member(NamedTuple):
    """Transformer of the features and estimator that knows the region; both are not fitted."""

    name: str
    transformer: BaseEstimator | None
    estimator: Any  # a DecisionMixin and a BaseEstimator

    @property
    def two_stage(self) -> bool:
        """Whether training ignores the decisions."""
        inner = self.estimator
        return isinstance(inner, TwoStageRegressor) and find_model(inner.regressor) is None

    @property
    def uses_folds(self) -> bool:
        """Whether the penalty is chosen on the folds of the stack, so that one fit gives all held-out predictions."""
        return isinstance(self.estimator, SPOPlusRegressorCV) and self.estimator.cv is None

    def fit_folds(self, data: Rows, splits: Splits, limit: float) -> MemberFit:
        """Fit ``SPOPlusRegressorCV`` on the folds of the stack."""
        X, transformer, model = self._prepared(data, limit)
        parts = None if transformer is None else partial(self._transform_fold, data)
        checked, search = model._fit(X, data.C, **data.known(model), splits=splits, parts=parts)
        held_out = held_out_predictions(checked, search, search.chosen_without()).reshape(len(data.C), -1)
        if data.offset is not None:
            held_out = held_out - data.offset
        return MemberFit(np.arange(len(data.C)), held_out, _chained(transformer, model))

    def fit(self, data: Rows, limit: float = np.inf) -> BaseEstimator:
        """Fit both parts; an estimator without a time limit of its own gets this one."""
        X, transformer, model = self._prepared(data, limit)
        return _chained(transformer, model.fit(X, data.C, **data.known(model)))

    def _prepared(self, data: Rows, limit: float) -> tuple[Any, Any, Any]:
        """Features as the model gets them, the fitted transformer or None, and the model, which is not fitted."""
        X, transformer, model = data.X, None, clone(self.estimator)
        if self.transformer is not None:
            transformer = clone(self.transformer)
            X = transformer.fit_transform(X, data.C)
        if np.isfinite(limit) and model.get_params(deep=False).get("time_limit", 0) is None:
            model.set_params(time_limit=limit)
        return X, transformer, model

    def _transform_fold(
        self, rows: Rows, data: TrainingData, train: np.ndarray, test: np.ndarray
    ) -> list[TrainingData]:
        """Both parts of a fold.  Transformers may use the costs: they see those of the training part."""
        fitted: Any = clone(self.transformer)
        X_train = fitted.fit_transform(take_rows(rows.X, train), rows.C[train])
        parts = ((train, X_train), (test, fitted.transform(take_rows(rows.X, test))))
        return [
            data.take(part)._replace(X=check_training_data(self.estimator, X, data.C[part], None, None, reset=True).X)
            for part, X in parts
        ]


class MemberFit(NamedTuple):
    """Held-out predictions of some rows, less the offset, or a model of all rows, or both; nothing without time."""

    rows: np.ndarray | None = None
    predictions: np.ndarray | None = None
    model: BaseEstimator | None = None


def make_member(name: str, estimator: BaseEstimator, region: Region, *, shared: bool, costs: str) -> Member:
    """Divide an estimator or pipeline into its two parts, and tell it the region and the layout of the features.

    ``region`` is for regressors without a region, and for estimators whose ``region`` is None; ``costs`` is that of
    ``TwoStageRegressor``.
    """
    transformer, last = None, clone(estimator)
    if isinstance(last, Pipeline):
        if len(last.steps) > 1:
            transformer = ItemTransformer(last[:-1]) if shared else last[:-1]
        last = last.steps[-1][1]
    if not hasattr(last, "fit") or not hasattr(last, "predict"):
        raise TypeError(f"Member {name!r} of estimators must end with a regressor, got {shown(last)}.")
    if not isinstance(last, DecisionMixin):
        last = TwoStageRegressor(last, region, costs=costs)
    params: dict[str, Any] = last.get_params(deep=False)
    if params.get("region", region) is None:
        last.set_params(region=region)
    if "shared" in params:
        last.set_params(shared=shared)
    elif shared:
        raise ValueError(f"Member {name!r}: {type(last).__name__} has no parameter shared, which the stack needs.")
    return Member(name, transformer, last)


class Task(NamedTuple):
    """One fit of a member: to the training part of a split, or to all rows."""

    member: Member
    fold: int | None  # None means all rows
    splits: Splits
    part: float  # share of the remaining time
    required: bool  # whether to fit even if there is no time left

    @property
    def label(self) -> str:
        """Name in progress reports."""
        rows = "all rows" if self.fold is None else f"fold {self.fold + 1} of {len(self.splits)}"
        return f"{self.member.name}, {rows}"

    def run(self, data: Rows, deadline: Deadline) -> tuple[MemberFit, float]:
        """Fit, and predict what was held out; also returns the seconds."""
        start, left = perf_counter(), deadline.left()
        if left <= 0 and not self.required:
            return MemberFit(), 0.0
        with errors_note(f"This happened in member {self.member.name!r} of the stack."):
            fit = self._fit(data, self.part * max(left, 1e-3))
        return fit, perf_counter() - start

    def _fit(self, data: Rows, limit: float) -> MemberFit:
        if self.member.uses_folds:
            return self.member.fit_folds(data, self.splits, limit)
        if self.fold is None:
            return MemberFit(model=self.member.fit(data, limit))
        train, test = self.splits[self.fold]
        predictions = predict_member(self.member.fit(data.take(train), limit), take_rows(data.X, test))
        if not np.isfinite(predictions).all():
            raise ValueError("The predictions for held-out samples contain NaN or infinity.")
        return MemberFit(test, predictions)


def make_tasks(members: list[Member], splits: Splits) -> list[Task]:
    """All fits, member by member; the first member is fitted even if there is no time."""
    pairs = [(m, fold) for m in members for fold in ([] if m.uses_folds else [*range(len(splits))]) + [None]]
    return [
        Task(member, fold, splits, 1.0 / (len(pairs) - k), required=member is members[0])
        for k, (member, fold) in enumerate(pairs)
    ]


def predict_member(model: Any, X: ArrayLike) -> np.ndarray:
    """Predictions of a fitted member, less the offset, as an array (n, d)."""
    with metadata_checked():
        C_hat = np.asarray(model.predict(X))
    return C_hat.reshape(C_hat.shape[0], -1)


def _chained(transformer: Any, model: Any) -> BaseEstimator:
    return model if transformer is None else Pipeline([("features", transformer), ("model", model)])
