"""Pipelines, searches and regressors without a region as models that decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline

from .._utils.shown import shown
from ..regions.base import Region
from ..regions.check import same_value
from ._base import DecisionMixin
from ._two_stage import TwoStageRegressor


def find_model(estimator: object) -> Any:
    """The estimator of skspo inside an unfitted pipeline, search or the like; None if there is none."""
    while estimator is not None and not isinstance(estimator, DecisionMixin):
        if isinstance(estimator, Pipeline):
            estimator = estimator.steps[-1][1]
        else:
            estimator = getattr(estimator, "estimator", getattr(estimator, "regressor", None))
    return estimator


def check_no_classifier(estimator: object, who: str) -> None:
    """Raise an error if this is a classifier; objects that are no estimators of scikit-learn are none."""
    if hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator):
        raise TypeError(
            f"{who} needs predicted costs, but {type(estimator).__name__} is a classifier: its decisions are the "
            "labels of predict."
        )


def check_same(given: Region | None, own: Region, name: str) -> None:
    """Raise an error if a region was given, but the model has another one."""
    if given is not None and not (isinstance(given, Region) and same_value(given, own)):
        raise ValueError(
            f"region={given!r} was given, but {name} has a region of its own, {own!r}. Leave region out. For decisions "
            "in another region use region.decide(estimator.predict(X))."
        )


def with_region(estimator: BaseEstimator, region: Region | None) -> BaseEstimator:
    """Clone of an estimator, or of a pipeline, that decides in a region; None means that it must have one.

    Estimators of skspo get the region if they have none.  Other regressors are wrapped in ``TwoStageRegressor``.
    """
    if isinstance(estimator, Pipeline):
        pipeline = clone(estimator)
        name, last = pipeline.steps[-1]
        pipeline.steps[-1] = (name, with_region(last, region))
        return pipeline
    own = find_model(estimator)
    if own is None:
        if not hasattr(estimator, "fit") or not hasattr(estimator, "predict"):
            raise TypeError(f"The model must be a regressor, or a pipeline that ends with one, got {shown(estimator)}.")
        if region is None:
            raise ValueError(f"{type(estimator).__name__} has no region. Pass region=..., where decisions are made.")
        return TwoStageRegressor(clone(estimator), region)
    if own.region is not None:
        check_same(region, own.region, type(own).__name__)
    estimator = clone(estimator)
    if own.region is None:
        find_model(estimator).set_params(region=region)
    return estimator


def fit_with(estimator: Any, X: Any, y: np.ndarray, **known: Any) -> Any:
    """Fit an estimator with what is known about the samples; None means nothing is known.

    The last step of a pipeline gets it, with or without metadata routing.  A search passes it on to its models and to
    its scorer by metadata routing only.
    """
    known = {name: value for name, value in known.items() if value is not None}
    if isinstance(estimator, Pipeline) and known:
        features = estimator[:-1]
        X = features.fit_transform(X, y) if len(features.steps) else X
        estimator.steps[:-1] = features.steps
        fit_with(estimator.steps[-1][1], X, y, **known)
        return estimator
    return estimator.fit(X, y, **known)
