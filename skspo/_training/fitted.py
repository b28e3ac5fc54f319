"""What a fitted estimator remembers of its training data, and checks of later data against it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .._utils.warn import warn_once
from ..regions.base import Region

# Whether a caller has compared offset and region_params with those of the fit, so that ``predict`` need not.
_compared: ContextVar[bool] = ContextVar("skspo_compared", default=False)

#: what goes wrong if the model was fitted with it, but is used without it, and the other way round
_WITHOUT = {
    "offset": "the known part of the costs is missing in the predictions",
    "region_params": "decisions are made in the region as it was constructed, and not in that of each sample",
}
_WITH = {
    "offset": "the model has learned the whole costs, and the offset is added to them",
    "region_params": "the model was trained for decisions in the region as it was constructed",
}


def innermost(estimator: Any) -> Any:
    """What a search found, and the last step of a pipeline."""
    while not hasattr(estimator, "region_"):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        else:
            break
    return estimator


def innermost_features(estimator: Any, X: Any) -> Any:
    """Features that ``innermost(estimator)`` sees: X after the other steps of pipelines."""
    while not hasattr(estimator, "region_"):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            estimator = estimator.steps[-1][1]
        else:
            break
    return X


def fitted_region(estimator: Any, region: Region | None = None) -> Region:
    """Region in which a fitted estimator decides, looked for inside pipelines and searches.

    Parameters
    ----------
    estimator : fitted estimator
    region : Region or None, default=None
        If given, this one is returned: for regressors that know nothing of decisions.

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
    if not hasattr(inner, "region_"):
        raise ValueError(
            f"{type(inner).__name__} has no region_, so it is not known in which region it decides. Pass region=..., "
            "wrap it in TwoStageRegressor(regressor, region), or fit it first."
        )
    return inner.region_


# -- names of costs ----------------------------------------------------------------------------------------------------


def cost_names(y: Any) -> np.ndarray | None:
    """Names of the columns of costs; None if there are none, or not all are strings."""
    columns = getattr(y, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return np.asarray(names, dtype=object) if names and all(isinstance(name, str) for name in names) else None


def check_cost_names(estimator: Any, y: Any, name: str = "y") -> None:
    """Raise an error if costs have names, and not those of the fit in the same order.

    Parameters
    ----------
    estimator : estimator
        Its ``cost_names_in_``, if there are any, are those of the fit.
    y : array-like
        Costs; without names nothing can be said.
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


# -- offset and region_params ------------------------------------------------------------------------------------------


@contextmanager
def metadata_checked() -> Iterator[None]:
    """Keep ``predict`` from checking what the caller has checked: predictions are used with an offset given apart."""
    token = _compared.set(True)
    try:
        yield
    finally:
        _compared.reset(token)


def fitted_with(**given: Any) -> frozenset[str]:
    """Names of what was given."""
    return frozenset(name for name, value in given.items() if value is not None)


def check_metadata(estimator: Any, method: str, **given: Any) -> None:
    """Warn, once for each model, if ``offset`` or ``region_params`` was given to ``fit`` but not now, or vice versa.

    Parameters
    ----------
    estimator : fitted estimator
        Looked for inside pipelines and searches; one that does not remember its fit is left alone.
    method : str
        What was called.
    **given
        The arguments by their names; None means not given.
    """
    if _compared.get():
        return
    model = innermost(estimator)
    fit = getattr(model, "_fitted_with", None)
    if fit is None:
        return
    for name, value in given.items():
        now = value is not None
        if (name in fit) == now or (now and name == "region_params" and not model._trains_on_region):
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
