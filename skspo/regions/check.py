"""Validation of the region that a user passes to an estimator or a metric."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._utils.errors import warn_once
from .._utils.limits import TimeIsUp, end_time
from .._utils.shown import shown
from .._utils.types import RegionParams
from .base import Region
from .simplex import Box

#: types of parameters that are compared by value
VALUES = (bool, int, float, str, np.generic, np.ndarray, list, tuple)


def check_region(region: Region | None, n_dim: int) -> Region:
    """Validate ``region`` for costs with ``n_dim`` columns and return a copy that the caller owns.

    Parameters
    ----------
    region : Region or None
        None means the unit :class:`~skspo.Box`, which exists in every dimension, and a warning.
    n_dim : int
        Number of costs, that is of decision variables.

    Returns
    -------
    region : Region
    """
    if region is None:
        warn_no_region()
        region = Box()
    if not isinstance(region, Region):
        hint = " Did you forget the parentheses?" if isinstance(region, type) else ""
        raise TypeError(
            f"region must be a Region such as Simplex() or Polyhedron(...), got {shown(region)}.{hint} "
            "A function that returns decisions can be wrapped: OracleRegion(argmin, n_dim)."
        )
    names, region = vars(region).get("_row_names"), clone(region)
    if names is not None:
        region._row_names = names
    try:
        region._data(n_dim)
    except TimeIsUp:  # it is prepared when it is used after the fit, which has no time left
        end_time()
    return region


def view_in_time(region: Region, region_params: RegionParams | None, n_rows: int, n_dim: int) -> Region:
    """``region.with_rows``; if there is no time for it, the region itself, and the time of the fit ends."""
    try:
        return region.with_rows(region_params, n_rows, n_dim)
    except TimeIsUp:
        end_time()
        return region


def check_not_labels(region: object, shape: tuple[int, ...], name: str = "y") -> None:
    """Raise an error if costs of this shape have one dimension, and the region with one variable has one decision only.

    Class labels would be read as costs, and every model would have a perfect score.  A column of shape (n_samples, 1)
    gives a warning: it may be a problem of one alternative.
    """
    if shape[1:] not in ((), (1,)) or not isinstance(region, Region) or region.n_dim not in (None, 1):
        return
    hint = (
        f"If {name} are class labels, use CostSensitiveClassifier. Otherwise {name} must have one column of costs for "
        "each decision variable, shape (n_samples, d); MultiOutputRegressor and RegressorChain pass one column at a "
        "time, and these estimators need no such wrapper."
    )
    try:
        low, high = region.argmin(np.array([[1.0], [-1.0]]))
    except (TypeError, ValueError) as error:
        error.add_note(hint)
        raise
    if low == high:
        what = "one dimension" if len(shape) == 1 else "one column"
        message = f"{name} has {what}, and {region.label} with one variable has one decision only, {low[0]:g}. {hint}"
        if len(shape) == 1:
            raise ValueError(message)
        warn_once(message)


def warn_no_region() -> None:
    """Warn that the unit Box is used, which is rarely intended."""
    warn_once(
        "No region was given, so decisions are made in the unit Box, where every variable is chosen on its own. If all "
        "costs are positive the best decision there is zero, and every model that predicts positive costs has a "
        "perfect score. Pass the region of your decisions, for example region=Simplex(), or region=Box() if you want "
        "the Box."
    )


def changed_params(before: Region, after: Region) -> list[str]:
    """Names of the parameters of two regions of the same class whose values differ; ``n_jobs`` changes no decision."""
    old, new = (region.get_params(deep=False) for region in (before, after))
    ignored = {"n_jobs"}
    if any(isinstance(region.cost_bounds, str) for region in (before, after)):
        ignored.add("cost_bounds")  # "auto": fit has learned them
    return [name for name in old if name not in ignored and not same_value(old[name], new[name])]


def _is_known(value: Any) -> bool:
    """Whether numbers or text, which can be compared as arrays."""
    return value is None or isinstance(value, VALUES) or hasattr(value, "to_numpy")


def same_value(a: Any, b: Any) -> bool:
    """Whether two values of a parameter are equal; True for objects that cannot be compared."""
    if a is b:
        return True
    if isinstance(a, Region) and isinstance(b, Region):
        return type(a) is type(b) and not changed_params(a, b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        try:
            if bool(a == b):
                return True
        except ValueError:
            pass  # there are arrays inside
        return len(a) == len(b) and all(map(same_value, a, b))
    if sp.issparse(a) and sp.issparse(b):
        return a.shape == b.shape and abs(a - b).nnz == 0
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):
        return False
    if not (_is_known(a) and _is_known(b)):
        return True
    try:
        left, right = np.asarray(a), np.asarray(b)
    except ValueError:  # ragged
        return False
    return left.shape == right.shape and bool(np.all(left == right))
