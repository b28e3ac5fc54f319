"""Members of a stack: the default ones, and their cross-fitted predictions.

A member is a part that transforms features and an estimator that knows the region.  Regressors without a region are
wrapped in ``TwoStageRegressor``.  So every member takes ``sample_weight``, ``offset`` and ``region_params``, also at
the end of a pipeline, without metadata routing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
from .._utils.limits import Deadline
from .._utils.shown import shown
from ..data.item_transformer import ItemTransformer
from ..regions.base import Region
from ._base import DecisionMixin
from ._compose import find_model
from ._cv import SPOPlusRegressorCV
from ._folds import Splits, held_out_predictions, take_rows
from ._two_stage import TwoStageRegressor

#: largest number of Nystroem features of the default members, and their share of the samples
KERNEL_FEATURES, KERNEL_SHARE = 40, 0.5

#: rows from which on boosted trees are larger, and their numbers of leaves and trees below and above
MANY_ROWS, FEW_LEAVES, MANY_LEAVES, FEW_TREES, MANY_TREES = 2000, 8, 15, 60, 100

#: largest number of features that have a default member with all their products
QUADRATIC = 9

#: member by name, as users give it
Named = tuple[str, BaseEstimator]


def default_members(n_samples: int, n_features: int, seed: int) -> list[Named]:
    """Ridge, forest, gradient boosting, SPO+, SPO+ with Nystroem features, and SPO+ with products of few features.

    Parameters
    ----------
    n_samples : int
        Number of rows that the regressors see.
    n_features : int
        Number of features of a row.
    seed : int
        Random state of all members.
    """
    kernel = Nystroem(
        gamma=1.0 / (2 * n_features),  # standardised features: distances are of order sqrt(2 n_features)
        n_components=int(np.clip(KERNEL_SHARE * n_samples, 1, KERNEL_FEATURES)),
        random_state=seed,
    )
    leaves, trees = (FEW_LEAVES, FEW_TREES) if n_samples < MANY_ROWS else (MANY_LEAVES, MANY_TREES)
    boosting = HistGradientBoostingRegressor(
        max_iter=trees, max_leaf_nodes=leaves, early_stopping=False, random_state=seed
    )
    forest = RandomForestRegressor(50, min_samples_leaf=3, max_features=1 / 3, max_samples=0.5, random_state=seed)
    rich = FeatureUnion([("linear", FunctionTransformer()), ("kernel", kernel)])
    members = [
        ("ridge", make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17)))),
        ("forest", forest),
        ("boosting", boosting),
        ("spo+", SPOPlusRegressorCV()),
        # Least squares on many features overfits, so that it is not a good prior.
        ("spo+ kernel", make_pipeline(StandardScaler(), rich, SPOPlusRegressorCV(prior="ridge", n_alphas=12))),
    ]
    if n_features <= QUADRATIC:
        products = PolynomialFeatures(2, include_bias=False)
        model = make_pipeline(StandardScaler(), products, SPOPlusRegressorCV(prior="ridge", n_alphas=12))
        members.append(("spo+ quadratic", model))
    return members


class Member(NamedTuple):
    """Part that transforms features, and estimator that knows the region; both are not fitted."""

    name: str
    transformer: BaseEstimator | None
    estimator: Any  # a DecisionMixin and a BaseEstimator

    @property
    def two_stage(self) -> bool:
        """Whether training ignores the decisions."""
        inner = self.estimator
        return isinstance(inner, TwoStageRegressor) and find_model(inner.regressor) is None

    @property
    def chooses_once(self) -> bool:
        """Whether the penalty is chosen on the folds of the stack, so that one fit gives all held-out predictions."""
        return isinstance(self.estimator, SPOPlusRegressorCV) and self.estimator.cv is None

    def transform_fold(self, data: Rows, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        """Features of both parts of a fold.  Transformers may use the costs: they see those of the training part."""
        fitted: Any = clone(self.transformer)
        X_train = fitted.fit_transform(take_rows(data.X, train), data.C[train])
        return X_train, fitted.transform(take_rows(data.X, test))


def make_member(name: str, estimator: BaseEstimator, region: Region, *, shared: bool, costs: str) -> Member:
    """Divide an estimator into its two parts, and tell it the region and the layout of the features.

    Parameters
    ----------
    name : str
    estimator : estimator
        Regressor, estimator of skspo, or pipeline that ends with one.
    region : Region
        Used by regressors without a region, and by estimators whose ``region`` is None.
    shared : bool
        Whether the features are those of items.
    costs : str
        That of ``TwoStageRegressor``, for regressors without a region.
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
        known = (None if array is None else array[rows] for array in self[2:])
        return Rows(take_rows(self.X, rows), self.C[rows], *known)


class Fitted(NamedTuple):
    """Result of one task: held-out predictions, or a model of all rows, or both; neither if there was no time."""

    member: int
    seconds: float
    rows: np.ndarray | None = None  # rows that were held out
    predictions: np.ndarray | None = None  # of these rows, less the offset
    model: BaseEstimator | None = None
    nested: np.ndarray | None = None  # predictions by penalties that were chosen without the fold, if they differ


class Task(NamedTuple):
    """One fit of a member: to the training part of a split, or to all rows."""

    number: int  # of the member
    member: Member
    fold: int | None  # None means all rows
    splits: Splits
    part: float  # share of the remaining time
    required: bool  # whether to fit even if there is no time left

    @property
    def label(self) -> str:
        """Name in progress reports."""
        return f"{self.member.name}, " + (
            "all rows" if self.fold is None else f"fold {self.fold + 1} of {len(self.splits)}"
        )

    def run(self, data: Rows, deadline: Deadline) -> Fitted:
        """Fit, and predict what was held out."""
        start = perf_counter()
        if deadline.left() <= 0 and not self.required:
            return Fitted(self.number, 0.0)
        limit = self.part * max(deadline.left(), 1e-3)
        if self.member.chooses_once:
            held_out, nested, model = _fit_with_folds(self.member, data, self.splits, limit)
            return Fitted(self.number, perf_counter() - start, np.arange(len(data.C)), held_out, model, nested)
        if self.fold is None:
            return Fitted(self.number, perf_counter() - start, model=fit_member(self.member, data, limit))
        train, test = self.splits[self.fold]
        model = fit_member(self.member, data.take(train), limit)
        with _named(self.member.name):
            predictions = predict_member(model, take_rows(data.X, test))
            if not np.isfinite(predictions).all():
                raise ValueError("The predictions for held-out samples contain NaN or infinity.")
        return Fitted(self.number, perf_counter() - start, test, predictions)


def make_tasks(members: list[Member], splits: Splits) -> Iterator[Task]:
    """All fits, member by member; the first member is fitted even if there is no time."""
    for k, member in enumerate(members):
        folds = [None] if member.chooses_once else [*range(len(splits)), None]
        for i, fold in enumerate(folds):
            left = len(folds) - i + sum(1 if other.chooses_once else len(splits) + 1 for other in members[k + 1 :])
            yield Task(k, member, fold, splits, 1.0 / left, required=k == 0)


def fit_member(member: Member, data: Rows, limit: float = np.inf) -> BaseEstimator:
    """Fit both parts of a member; an estimator without a time limit of its own gets this one."""
    X, transformer, model = _prepared(member, data, limit)
    with _named(member.name):
        model.fit(X, data.C, **data.known(model))
    return model if transformer is None else Pipeline([("features", transformer), ("model", model)])


def _prepared(member: Member, data: Rows, limit: float) -> tuple[Any, Any, Any]:
    """Features as the model gets them, the fitted transformer or None, and the model, which is not fitted."""
    X, transformer, model = data.X, None, clone(member.estimator)
    if member.transformer is not None:
        transformer = clone(member.transformer)
        X = transformer.fit_transform(X, data.C)
    if np.isfinite(limit) and model.get_params(deep=False).get("time_limit", 0) is None:
        model.set_params(time_limit=limit)
    return X, transformer, model


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Errors say which member it was."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This happened in member {name!r} of the stack.")
        raise


def _fit_with_folds(
    member: Member, data: Rows, splits: Splits, limit: float
) -> tuple[np.ndarray, np.ndarray, BaseEstimator]:
    """Fit ``SPOPlusRegressorCV`` on the folds of the stack; its transformer is fitted again in every fold.

    Returns held-out predictions, less the offset, of the chosen penalty, and of those that are chosen without the fold,
    and the model.
    """
    X, transformer, model = _prepared(member, data, limit)
    transform_fold = None if transformer is None else partial(member.transform_fold, data)
    with _named(member.name):
        checked, search = model._fit(X, data.C, **data.known(model), splits=splits, transform_fold=transform_fold)
    choices = [search.best] * len(splits), search.chosen_without()
    held_out, nested = (held_out_predictions(checked, search, k).reshape(len(data.C), -1) for k in choices)
    if data.offset is not None:
        held_out, nested = held_out - data.offset, nested - data.offset
    fitted = model if transformer is None else Pipeline([("features", transformer), ("model", model)])
    return held_out, nested, fitted


def predict_member(model: Any, X: ArrayLike) -> np.ndarray:
    """Predictions of a fitted member, less the offset, as an array (n, d)."""
    with metadata_checked():
        C_hat = np.asarray(model.predict(X))
    return C_hat.reshape(C_hat.shape[0], -1)
