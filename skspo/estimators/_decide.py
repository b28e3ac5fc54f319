"""Decisions of pipelines, searches and regressors without a region."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from .._training.fitted import (
    check_frames,
    check_metadata,
    deciding_model,
    decision_names,
    fitted_region,
    innermost,
    innermost_features,
    metadata_checked,
)
from .._training.inputs import check_ndim
from .._utils.frames import as_rows, take_rows
from .._utils.limits import count_workers
from .._utils.params import N_JOBS
from .._utils.types import Predictor, RegionParams
from ..losses import check_offset, check_weight
from ..regions._rows import repeat_single, row_params
from ..regions.base import Region
from ..regions.check import check_region
from ._base import DecisionMixin, as_data_frame
from ._compose import check_no_classifier, check_same, find_model, fit_with, with_region
from ._folds import Splitter, cv_splits

if TYPE_CHECKING:
    import pandas as pd


def decide(
    estimator: Predictor,
    X: ArrayLike,
    *,
    region: Region | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    as_frame: bool = False,
) -> np.ndarray | pd.DataFrame:
    """Decisions of any fitted model of costs: an estimator of skspo, a pipeline, a search, or another regressor.

    scikit-learn's pipelines and searches have no method ``decide``.  This function finds the model inside, and its
    region.

    Parameters
    ----------
    estimator : fitted estimator
        Estimator of skspo, or any multi-output regressor of costs; also at the end of a ``Pipeline``, in a
        ``GridSearchCV`` or the like, or in a ``TransformedTargetRegressor``.
    X : array-like of shape (n_samples, n_features)
        Features, as ``estimator.predict`` takes them.
    region : Region or None, default=None
        Where decisions are made, for regressors that have no region.  None means that of the model inside.
    offset, region_params
        As in :meth:`SPOPlusRegressor.decide`.
    as_frame : bool, default=False
        Return a pandas DataFrame, with the names of the decision variables as columns and the index of ``X``.

    Returns
    -------
    W : ndarray or DataFrame of shape (n_samples, d)
        One feasible decision per sample.

    See Also
    --------
    chosen : Decisions in words.
    cross_val_decide : Decisions for samples that were held out.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skspo import ShortestPath, SPOPlusRegressor, decide
    >>> from skspo.datasets import make_shortest_path
    >>> X, C = make_shortest_path(60, grid=(3, 3), random_state=0)
    >>> region = ShortestPath.grid(3, 3)
    >>> pipeline = make_pipeline(StandardScaler(), SPOPlusRegressor(region))
    >>> search = GridSearchCV(pipeline, {"spoplusregressor__alpha": [0.01, 0.1]}, cv=3).fit(X, C)
    >>> decide(search, X).shape == C.shape
    True
    >>> forest = RandomForestRegressor(n_estimators=5, random_state=0).fit(X, C)
    >>> decide(forest, X, region=region).shape == C.shape
    True
    """
    W: np.ndarray = _call("decide", estimator, X, region, offset, region_params)
    if not as_frame:
        return W
    return as_data_frame(W, decision_names(estimator, fitted_region(estimator, region), W.shape[1]), X)


def _call(
    method: str,
    estimator: Predictor,
    X: ArrayLike,
    region: Region | None,
    offset: ArrayLike | None,
    region_params: RegionParams | None,
) -> Any:
    """``decide`` or ``chosen`` of the model inside, or of the region for predicted costs."""
    if hasattr(estimator, "fit"):
        check_is_fitted(estimator)
    check_no_classifier(estimator, method)
    if getattr(estimator, "refit", True) is False and not hasattr(estimator, "best_estimator_"):
        raise ValueError(f"{type(estimator).__name__} has no model, because of refit=False. Use refit=True.")
    check_frames(estimator, region, X=X, offset=offset, region_params=region_params)
    model = innermost(estimator)
    if hasattr(model, "region_") and hasattr(model, "decide"):  # also if it is frozen
        check_same(region, model.region_, type(model).__name__)
        return getattr(model, method)(innermost_features(estimator, X), offset=offset, region_params=region_params)
    inside = deciding_model(model)
    if inside is not None:
        check_same(region, inside.region_, type(inside).__name__)
        if offset is not None and "offset" in getattr(inside, "_fitted_with", ()):
            raise ValueError(
                f"The offset of {type(inside).__name__} is in units of transformed costs, because it is inside "
                f"{type(model).__name__}. Fit the model to costs less the offset instead."
            )
        check_metadata(inside, method, offset=offset, region_params=region_params)
        region = inside.region_
    if region is None:
        raise ValueError(
            f"{type(model).__name__} has no region, so it is not known in which region it decides. Pass region=..., or "
            "wrap it in TwoStageRegressor(regressor, region)."
        )
    with metadata_checked():
        C_hat = np.asarray(estimator.predict(X))
    C_hat = C_hat[:, None] if C_hat.ndim == 1 else C_hat
    known = check_offset(offset, C_hat.shape)
    view = check_region(region, n_dim=C_hat.shape[1]).with_rows(region_params, *C_hat.shape)
    C_hat = C_hat if known is None else C_hat + known
    return view.decide(C_hat) if method == "decide" else view.chosen(C_hat, getattr(inside, "cost_names_in_", None))


def chosen(
    estimator: Predictor,
    X: ArrayLike,
    *,
    region: Region | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
) -> list[Any]:
    """Decisions of any fitted model of costs in words.

    Parameters
    ----------
    estimator, X, region, offset, region_params
        As in :func:`decide`.

    Returns
    -------
    words : list of length n_samples
        What was chosen for each sample; see :meth:`Region.describe`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skspo import ShortestPath, SPOPlusRegressor, chosen
    >>> from skspo.datasets import make_shortest_path
    >>> X, C = make_shortest_path(60, grid=(2, 2), random_state=0)
    >>> chosen(make_pipeline(StandardScaler(), SPOPlusRegressor(ShortestPath.grid(2, 2))).fit(X, C), X[:2])
    [[0, 2, 3], [0, 2, 3]]
    """
    words: list[Any] = _call("chosen", estimator, X, region, offset, region_params)
    return words


def cross_val_decide(
    estimator: BaseEstimator,
    X: ArrayLike,
    C: ArrayLike,
    *,
    region: Region | None = None,
    cv: Splitter | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Decisions for held-out samples: each is made by a model that was fitted without the sample.

    scikit-learn's ``cross_val_predict`` gives held-out predictions, but no decisions, and it passes ``offset`` and
    ``region_params`` on to ``fit`` only.

    Parameters
    ----------
    estimator : estimator
        Estimator of skspo, or any regressor of costs, also in a pipeline or a search.  It is cloned.
    X : array-like of shape (n_samples, n_features)
    C : array-like of shape (n_samples, d)
        True costs.
    region
        As in :func:`decide`.
    cv : int, cross-validation generator, iterable or None, default=None
        As everywhere in scikit-learn; None means five folds, or as many as there are samples.  No sample may be held
        out twice.
    groups : array-like of shape (n_samples,), optional
        Groups of samples, for splitters such as ``GroupKFold``.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples in the fits.
    offset, region_params
        As in :meth:`SPOPlusRegressor.decide`, for the fits and the decisions.
    n_jobs : int or None, default=None
        Number of folds that are fitted at the same time; None means 1, and -1 as many as there are cores.

    Returns
    -------
    W : ndarray of shape (n_samples, d)
        Decisions in the order of the samples; NaN for those that are never held out, as the first ones of a
        ``TimeSeriesSplit``.

    See Also
    --------
    decide : Decisions of a fitted model.

    Notes
    -----
    ``sample_weight``, ``offset`` and ``region_params`` reach the last step of a pipeline without metadata routing.
    A search has to pass them on to its scorer as well.  Therefore ``offset`` and ``region_params`` need metadata
    routing there, ``sklearn.set_config(enable_metadata_routing=True)``, and requests of the model:
    ``model.set_fit_request(offset=True).set_score_request(offset=True)``.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skspo import ShortestPath, SPOPlusRegressor, cross_val_decide
    >>> from skspo.datasets import make_shortest_path
    >>> X, C = make_shortest_path(60, grid=(3, 3), random_state=0)
    >>> region = ShortestPath.grid(3, 3)
    >>> W = cross_val_decide(make_pipeline(StandardScaler(), SPOPlusRegressor(region)), X, C, cv=3)
    >>> bool((C * W).sum() >= (C * region.argmin(C)).sum())
    True
    """
    N_JOBS("n_jobs", n_jobs)
    check_no_classifier(estimator, "cross_val_decide")
    model = with_region(estimator, region)
    rows = {"X": X, "C": C, "sample_weight": sample_weight, "groups": groups, "offset": offset}
    check_frames(None, find_model(model).region, region_params=region_params, **rows)
    check_ndim(C)
    # Missing costs are refused by the fits, which know the region.
    values = check_array(C, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="C")
    costs = values.reshape(len(values), -1)
    if not hasattr(C, "iloc"):
        C = values
    X = as_rows(X, accept_sparse="csr")
    if isinstance(region_params, Mapping):
        region_params = row_params(**repeat_single(region_params, *costs.shape))
    check_consistent_length(X, costs, groups, region_params)
    weight = check_weight(sample_weight, X)
    known = {"sample_weight": weight, "offset": check_offset(offset, costs.shape), "region_params": region_params}
    _check_routing(model, known)
    splits = cv_splits(cv, X, costs, weight, groups, scored=False)
    counts = np.bincount(np.concatenate([np.arange(len(costs))[test] for _, test in splits]), minlength=len(costs))
    if (counts > 1).any():
        raise ValueError(
            f"Sample {int(np.argmax(counts > 1))} is held out {counts.max()} times, but it can have one decision only. "
            "Use a cv that holds out every sample once, for example KFold."
        )
    parallel = Parallel(n_jobs=count_workers(n_jobs, len(splits)))
    parts = parallel(delayed(_fit_and_decide)(model, X, C, known, *split) for split in splits)
    W = np.full(costs.shape, np.nan)
    for (_, test), part in zip(splits, parts, strict=True):
        W[test] = part
    return W


def _fit_and_decide(
    model: BaseEstimator, X: Any, C: ArrayLike, known: dict[str, Any], train: np.ndarray, test: np.ndarray
) -> np.ndarray:
    """Decisions for the held-out samples of a split."""
    fit, later = ({name: take_rows(value, rows) for name, value in known.items()} for rows in (train, test))
    fitted = fit_with(clone(model), take_rows(X, train), take_rows(C, train), **fit)
    return _call("decide", fitted, take_rows(X, test), None, later["offset"], later["region_params"])


def _check_routing(model: object, known: dict[str, Any]) -> None:
    """Raise an error if a search would not pass on to its scorer what is known about the samples."""
    given = [name for name in ("offset", "region_params") if known[name] is not None]
    inner = model
    while hasattr(inner, "steps"):
        inner = inner.steps[-1][1]
    if given and not isinstance(inner, DecisionMixin):
        if hasattr(inner, "regressor"):
            if "offset" in given:
                raise ValueError(
                    f"{type(inner).__name__} transforms costs, but not the offset. Transform both before, and pass "
                    "the regressor itself."
                )
        elif not get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"{type(inner).__name__} passes {' and '.join(given)} on to its scorer only by metadata routing: "
                f"sklearn.set_config(enable_metadata_routing=True), and model.set_fit_request({given[0]}=True)"
                f".set_score_request({given[0]}=True)."
            )
