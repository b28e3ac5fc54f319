"""Checks of parameters, and the geometry of regions, for all modules of the theory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._utils.params import integer, number
from ..regions.base import CertifiedFloat, Region
from ..regions.capabilities import CAPABILITIES, missing
from ..regions.check import check_region

check_positive = number(above=0.0)
check_nonnegative = number(0.0)
check_share = number(above=0.0, high=1.0)
check_count = integer(1)


def check_levels(name: str, value: ArrayLike, *, allow_zero: bool) -> np.ndarray:
    """Return finite numbers, positive or nonnegative, as an array of any shape."""
    levels = np.asarray(value, dtype=np.float64)
    if not np.isfinite(levels).all() or (levels < 0).any() or (not allow_zero and (levels == 0).any()):
        raise ValueError(f"{name} must be {'nonnegative' if allow_zero else 'positive'} and finite, got {value!r}.")
    return levels


def check_delta(delta: float) -> None:
    """Check a probability of failure; the corollaries need one below 1/2."""
    number(above=0.0, below=0.5)("delta", delta, "a probability of failure")


def need(region: Region, *names: str) -> None:
    """Raise an error if the region lacks one of the capabilities."""
    lacking = missing(region, names)
    if lacking:
        what = "; ".join(f"{name} ({CAPABILITIES.get(name, 'see its documentation')})" for name in lacking)
        raise TypeError(f"{type(region).__name__} does not offer what this bound needs: {what}.")


class Geometry(NamedTuple):
    """Diameter and width of a region within its affine hull, and the dimension of that hull."""

    diameter: CertifiedFloat
    width: CertifiedFloat
    n_dim: int


def region_geometry(region: Region, n_dim: int | None = None) -> Geometry:
    """Diameter, relative width and reduced dimension of a region.

    Parameters
    ----------
    region : Region
    n_dim : int, optional
        Number of decision variables, for a region that exists in every dimension.

    Returns
    -------
    geometry : Geometry
        ``diameter`` is exact or an upper bound, ``width`` exact or a lower bound; ``kind`` says which.

    Examples
    --------
    >>> from skspo import Simplex
    >>> from skspo.calibration import region_geometry
    >>> region_geometry(Simplex(), 4)
    Geometry(diameter=1.4142135623730951 (exact), width=1.0 (exact), n_dim=3)
    """
    need(region, "diameter", "relative_width", "equalities")
    d = region.resolve_dim(n_dim)
    region = check_region(region, d)
    return Geometry(region.diameter(d), region.relative_width(d), d - region.equalities(d).shape[0])


def rows(name: str, C: ArrayLike, d: int | None = None) -> np.ndarray:
    """Return costs as a float array of shape (n, d); a single vector becomes one row."""
    C_arr = np.atleast_2d(np.asarray(C, dtype=np.float64))
    if C_arr.ndim != 2 or (d is not None and C_arr.shape[1] != d):
        expected = "(n, d)" if d is None else f"(n, {d})"
        raise ValueError(f"{name} must have shape {expected} or be one such row, got shape {np.shape(C)}.")
    if not np.isfinite(C_arr).all():
        raise ValueError(f"{name} must be finite, but it contains NaN or infinity.")
    return C_arr
