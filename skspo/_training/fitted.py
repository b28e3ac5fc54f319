"""Checks of data against those that an estimator was fitted to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._utils.warn import warn_once
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
    features = _unwrap(estimator, X)[1]
    assert features is not None
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

    Parameters
    ----------
    estimator : fitted estimator
    region : Region or None, default=None
        If given, it is returned: for regressors that have no region.

    Returns
    -------
    region : Region

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skspo import Simplex, SPOPlusRegressor
    >>> from skspo.datasets import make_cost_sensitive_classification
    >>> from skspo._training.fitted import fitted_region
    >>> X, C = make_cost_sensitive_classification(30, random_state=0)
    >>> fitted_region(make_pipeline(StandardScaler(), SPOPlusRegressor(Simplex())).fit(X, C))
    Simplex()
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


# -- names of costs ----------------------------------------------------------------------------------------------------


def cost_names(y: object) -> np.ndarray | None:
    """Names of the columns of costs; None if there are none, or if not all are strings."""
    columns = getattr(y, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return np.asarray(names, dtype=object) if names and all(isinstance(name, str) for name in names) else None


def check_cost_names(estimator: object, y: object, name: str = "y") -> None:
    """Raise an error if costs have names that are not those of the fit, in the same order.

    Parameters
    ----------
    estimator : estimator
        With ``cost_names_in_``; if it has none, nothing is checked.
    y : array-like
        Costs; without names, nothing is checked.
    name : str
        Name of ``y`` in the message.
    """
    expected, names = getattr(innermost(estimator), "cost_names_in_", None), cost_names(y)
    if expected is None or names is None or list(names) == list(expected):
        return
    message = f"The columns of {name} should match the costs of fit (cost_names_in_).\n"
    for what, some, others in (
        ("Costs unseen at fit time", names, expected),
        ("Costs seen at fit time, yet now missing", expected, names),
    ):
        extra = [column for column in some if column not in set(others)]
        if extra:
            message += f"{what}:\n" + "".join(f"- {column}\n" for column in extra[:5]) + "- ...\n" * (len(extra) > 5)
    if set(names) == set(expected):
        message += "They must be in the same order as they were in fit.\n"
    raise ValueError(message + f"Select them: {name}[model.cost_names_in_].")


def decision_names(estimator: object, region: Region, d: int) -> np.ndarray | None:
    """Names of the decision variables: those of the costs of ``fit``, or those of the region, or None."""
    names = getattr(innermost(estimator), "cost_names_in_", None)
    return names if names is not None and len(names) == d else region.names(d)


def known_in(region: object, y: Any) -> np.ndarray:
    """Indices of the costs that the region knows to be 1 (``LinearImage.extend``), and that are 1 in the data."""
    shape = np.shape(y)
    if not isinstance(region, Region) or len(shape) != 2 or region.n_dim != shape[1]:
        return np.zeros(0, dtype=np.intp)
    known = np.array(region._known_costs(shape[1]), dtype=np.intp)
    return known[(np.asarray(y)[:, known] == 1.0).all(axis=0)] if known.size else known


def check_order(names: np.ndarray | None, region: object) -> None:
    """Raise an error if costs have the names of the region's variables, but in another order."""
    if names is None or not isinstance(region, Region) or region.n_dim != len(names):
        return
    own = region.names(len(names))
    if own is not None and list(own) != list(names) and set(own) == set(names):
        j = next(j for j, (a, b) in enumerate(zip(names, own, strict=True)) if a != b)
        raise ValueError(
            f"The columns of y are the variables of {region.label}, but in another order: column {j} is {names[j]!r} "
            f"and variable {j} is {own[j]!r}. Select them in order: y[list(region.variable_names)]."
        )


# -- offset and region_params ------------------------------------------------------------------------------------------


@contextmanager
def metadata_checked() -> Iterator[None]:
    """Turn off the checks of offset and region_params in ``predict``: the caller has made them."""
    token = _compared.set(True)
    try:
        yield
    finally:
        _compared.reset(token)


def fitted_with(**given: object) -> frozenset[str]:
    """Names of the arguments that are not None."""
    return frozenset(name for name, value in given.items() if value is not None)


def check_metadata(estimator: object, method: str, **given: object) -> None:
    """Warn, once for each model, if ``offset`` or ``region_params`` was given to ``fit`` but not now, or vice versa.

    Decisions may be made with ``region_params`` that the model was not trained with, such as the capacity of today.
    There is also a warning if ``region`` was changed after ``fit``.

    Parameters
    ----------
    estimator : fitted estimator
        Or a pipeline or search with one.  Other estimators are not checked.
    method : str
        Name of the method that was called.
    **given
        The arguments; None means not given.
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
        intended = name == "region_params" and (method in ("decide", "chosen") or not model._trains_on_region)
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
