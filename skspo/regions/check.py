"""Validation of the region that a user passes to an estimator or a metric."""

from __future__ import annotations

from sklearn.base import clone

from .._utils.warn import warn_once
from .base import Region
from .simplex import Box


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
            f"region must be a Region such as Simplex() or Polyhedron(...), got {region!r}.{hint} "
            "A function that returns decisions can be wrapped: OracleRegion(argmin, n_dim)."
        )
    names, region = vars(region).get("_row_names"), clone(region)
    if names is not None:
        region._row_names = names
    region._data(n_dim)
    return region


def warn_no_region() -> None:
    """Warn that the unit Box is used, which is rarely intended."""
    warn_once(
        "No region was given, so decisions are made in the unit Box, where every variable is chosen on its own. If all "
        "costs are positive the best decision there is zero, and every model that predicts positive costs has a "
        "perfect score. Pass the region of your decisions, for example region=Simplex(), or region=Box() if you want "
        "the Box."
    )
