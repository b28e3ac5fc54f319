"""Constraints and bounds of scipy.optimize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint

from ..integer import MixedInteger
from ..polyhedron import Polyhedron, read_numbers
from ._model import Model

ARGUMENTS = ("c", "integrality", "bounds", "constraints", "A_ub", "b_ub", "A_eq", "b_eq")


def read_scipy(source: Any) -> Model:
    """Read constraints and bounds, one or a list."""
    parts = list(source) if isinstance(source, list | tuple) else [source]
    bounds = [part for part in parts if isinstance(part, Bounds)]
    for part in parts:
        if not isinstance(part, Bounds | LinearConstraint):
            raise TypeError(
                f"read_region: a scipy {type(part).__name__} cannot be represented. Linear constraints are given as "
                "LinearConstraint, integers as a dict: {'constraints': ..., 'bounds': ..., 'integrality': ...}."
            )
    if len(bounds) > 1:
        raise ValueError(f"read_region: there are {len(bounds)} Bounds, expected at most one.")
    constraints = [part for part in parts if isinstance(part, LinearConstraint)]
    return read_arguments({"constraints": constraints or None, "bounds": bounds[0] if bounds else None})


def read_arguments(source: Mapping[str, Any]) -> Model:
    """Read the arguments of scipy.optimize.milp or linprog."""
    unknown = sorted(set(source) - set(ARGUMENTS), key=str)
    if unknown:
        raise ValueError(
            f"read_region: a dict must have arguments of scipy.optimize.milp or linprog that describe the model, "
            f"{', '.join(ARGUMENTS)}; got {', '.join(map(repr, unknown))}."
        )
    given = {name: value for name, value in source.items() if value is not None and name not in ("c", "integrality")}
    kinds, cost = source.get("integrality"), source.get("c")
    region = MixedInteger(**given, integrality=kinds) if kinds is not None and np.any(kinds) else Polyhedron(**given)
    d = region.n_dim
    matrices = [given.get(name) for name in ("constraints", "A_ub", "A_eq")]
    if all(matrix is None for matrix in matrices) and cost is not None and _is_single(region.bounds):
        d = None
    if cost is None:
        if d is None:
            raise ValueError("read_region: the number of variables is not given; bounds may be lists, or add c.")
        return Model(region, np.zeros(d))
    c = read_numbers("read_region: c", cost)
    if c.ndim != 1 or c.size == 0 or d not in (None, c.size):
        raise ValueError(
            f"read_region: c must have one entry for each of the {d or 'd'} variables, got shape {c.shape}."
        )
    if not np.isfinite(c).all():
        raise ValueError("read_region: c must be finite.")
    if d is None:  # the size of c is the only one that is known
        low, high = _pair(region.bounds)
        region.set_params(bounds=[(low, high)] * c.size)
    return Model(region, c)


def _is_single(bounds: Any) -> bool:
    """Whether the same bounds hold for all variables; Bounds(0, 1) has arrays with one entry."""
    return np.size(bounds.lb) == np.size(bounds.ub) == 1 if isinstance(bounds, Bounds) else np.ndim(bounds) == 1


def _pair(bounds: Any) -> Any:
    return (np.ravel(bounds.lb)[0], np.ravel(bounds.ub)[0]) if isinstance(bounds, Bounds) else bounds
