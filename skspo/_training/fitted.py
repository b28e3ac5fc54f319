"""Checks of data against those that an estimator was fitted to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._utils.errors import warn_once
from .._utils.frames import Known, check_columns, check_index, check_values
from .._utils.types import RegionParams
from ..regions._names import known_names
from ..regions._rows import row_frames
from ..regions.base import Region
from ..regions.check import changed_params, same_value

# Whether a caller has checked offset and region_params, so that ``predict`` does not check again.
_compared: ContextVar[bool] = ContextVar("skspo_compared", default=False)

#: consequence if the model was fitted with an argument, but is used without it, and vice versa
_WITHOUT = {
    "offset": "the known part of the costs is missing in the predictions",
    "region_params": "decisions are made in the region as it was constructed, and not in that of each sample",
}
_WITH = {
    "offset": "the model has learned the whole costs, and the offset is added to them",
    "region_params": "the model was trained for decisions in the region as it was constructed",
}


def _unwrap(estimator: object, X: ArrayLike | None = None) -> tuple[Any, ArrayLike | None]:
    """The model inside searches and pipelines, and X transformed by the other steps of pipelines."""
    model: Any = estimator
    while not hasattr(model, "region_"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            X = model[:-1].transform(X) if X is not None and len(model.steps) > 1 else X
            model = model.steps[-1][1]
        else:
            break
    return model, X


def innermost(estimator: object) -> Any:
    """The model inside searches and pipelines."""
    return _unwrap(estimator)[0]


def innermost_features(estimator: object, X: ArrayLike) -> ArrayLike:
    """Features that ``innermost(estimator)`` gets: X transformed by the other steps of pipelines."""
    model, features = _unwrap(estimator, X)
    assert features is not None
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        known = Known(list(names), "the features of fit (feature_names_in_)", "model.feature_names_in_")
        check_columns({"X": features}, known)
    return features


def deciding_model(estimator: object) -> Any:
    """The fitted model with a region, also inside a ``TransformedTargetRegressor``; None if there is none.

    Inside, costs are in other units, so that only the region may be used, and not the predictions.
    """
    model = innermost(estimator)
    while not hasattr(model, "region_") and hasattr(model, "regressor_"):
        model = innermost(model.regressor_)
    return model if hasattr(model, "region_") else None


def fitted_region(estimator: object, region: Region | None = None) -> Region:
    """Region in which a fitted estimator decides: that of a model in pipelines, searches and transformed targets.

    A ``region`` that is given is returned: for regressors that have none.
    """
    if region is not None:
        return region
    inner = innermost(estimator)
    model = deciding_model(inner)
    if model is None:
        raise ValueError(
            f"{type(inner).__name__} has no region_, so it is not known in which region it decides. Pass region=..., "
            "wrap it in TwoStageRegressor(regressor, region), or fit it first."
        )
    return model.region_


# -- names and index of data frames ------------------------------------------------------------------------------------


def check_frames(
    model: object = None, region: object = None, *, region_params: RegionParams | None = None, **given: Any
) -> dict[str, list[Any]]:
    """Raise an error if names or index of data frames do not agree with each other, the region and the fit.

    The model may be in a pipeline or a search; None means that there is none, as in ``fit``.  Without a region it is
    that of the model.  ``given`` has data with one row per sample, or None, by the names that errors give them.  The
    columns of "X", "sample_weight" and "groups" are not looked at; those of the others are decision variables.

    Returns labels of columns by parameter of ``region_params``, and "variables": what a later call has to have as well.
    """
    fitted = innermost(model)
    columns: dict[str, list[Any]] = getattr(fitted, "_columns_in", {})
    by_row, by_column = row_frames(region_params)
    for what, data in given.items():
        if what not in ("X", "groups") or isinstance(data, list | tuple):  # features may be text for pipelines
            check_values(what, data)
    check_index(**given, **by_row)
    if region is None:
        region = getattr(deciding_model(model), "region_", None)
    by_variable = {name: frame for name, frame in given.items() if name not in ("X", "sample_weight", "groups")}
    keys = region._rows_by_variable if isinstance(region, Region) and region._region_of_rows is region else frozenset()
    by_variable |= {f"region_params[{key!r}]": frame for key, frame in by_column.items() if key in keys}
    known: Known | None = None
    if hasattr(fitted, "cost_names_in_"):
        known = Known(list(fitted.cost_names_in_), "the costs of fit (cost_names_in_)", "model.cost_names_in_")
    elif "variables" in columns:
        known = Known(columns["variables"], "the variables in fit", repr(columns["variables"]))
    own = known_names(region, *by_variable.values()) if isinstance(region, Region) else None
    known = check_columns(by_variable, known, own)
    found = {} if known is None else {"variables": known.labels}
    for key, frame in by_column.items():
        if key not in keys:
            before = Known(columns[key], "those of fit", repr(columns[key])) if key in columns else None
            some = check_columns({f"region_params[{key!r}]": frame}, before)
            found |= {} if some is None else {key: some.labels}
    return columns | found


def decision_names(estimator: object, region: Region, d: int) -> np.ndarray | None:
    """Names of the decision variables: those of the costs of ``fit``, or those of the region, or None."""
    names = getattr(innermost(estimator), "cost_names_in_", None)
    return names if names is not None and len(names) == d else region.names(d)


# -- offset and region_params ------------------------------------------------------------------------------------------


@contextmanager
def metadata_checked() -> Iterator[None]:
    """Turn off the checks of offset and region_params in ``predict``: the caller has made them."""
    token = _compared.set(True)
    try:
        yield
    finally:
        _compared.reset(token)


def check_metadata(estimator: object, method: str, **given: object) -> None:
    """Warn, once for each model, if ``offset`` or ``region_params`` was given to ``fit`` but not now, or vice versa.

    Decisions may be made with ``region_params`` that the model was not trained with, such as the capacity of today.
    There is also a warning if ``region`` was changed after ``fit``.  ``method`` is the name of the method that was
    called, and ``given`` has its arguments; None means not given.  Estimators without such a model inside are not
    checked.
    """
    if _compared.get():
        return
    model = innermost(estimator)
    fit = getattr(model, "_fitted_with", None)
    if fit is None:
        return
    if method not in ("predict", "partial_fit"):  # these do not decide
        _check_region_of_fit(model, method)
    for name, value in given.items():
        now = value is not None
        intended = name == "region_params" and (
            (method in ("decide", "chosen") and model._predicts_all_costs) or not model._trains_on_region
        )
        if (name in fit) == now or (now and intended):
            continue
        what = f"{type(model).__name__} was fitted {'without' if now else 'with'} {name}, but {method} was called "
        what += f"with it: {_WITH[name]}. Pass {name} to fit" if now else f"without it: {_WITHOUT[name]}. Pass {name}"
        what += (
            " as well, or offset=np.zeros(d) if it is added later." if method == "predict" and not now else " as well."
        )
        value = ", as row_params(...)," if name == "region_params" else ""
        warn_once(
            f"{what} Cross-validation and searches pass it on{value} if metadata routing is enabled, "
            f"sklearn.set_config(enable_metadata_routing=True), and it is requested for both: "
            f"model.set_fit_request({name}=True).set_score_request({name}=True); a scorer has set_score_request, too.",
            about=model,
            topic=f"{name} {now}",
        )


def _check_region_of_fit(model: Any, method: str) -> None:
    """Warn once if the parameter ``region`` differs from the region of the fit, which is the one that is used."""
    given, used = getattr(model, "region", None), model.region_
    if given is None or same_value(given, used):
        return
    names = changed_params(used, given) if type(given) is type(used) else []
    what = f" ({', '.join(names)})" if names else ""
    able = next((name for name in names if name in used.row_shapes(used.n_dim or 1)), None)
    warn_once(
        f"The region of {type(model).__name__} was changed{what} after fit, but {method} uses region_, that of the "
        "fit. Call fit again"
        + (f", or pass region_params={{{able!r}: ...}} to decide with other values" if able else "")
        + ", or model.set_params(region=model.region_) to keep it.",
        about=model,
        topic="region",
    )
