"""Membership in cones and their duals, batched over rows: what a conic solver says is checked here.

Cones are pairs (kind, parameter), as in ``_conic``.  A vector s is inside up to ``tol`` if s + tol e is inside, where e
is a point in the interior of the cone and of its dual; of the zero cone, if |s| <= tol.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def cone_size(kind: str, parameter: Any) -> int:
    """Number of entries of a cone."""
    if kind == "psd":
        return parameter * (parameter + 1) // 2
    return {"exp": 3, "pow": 3}.get(kind) or (len(parameter) + 1 if kind == "genpow" else int(parameter))


def rows_inside(cones: list[tuple[str, Any]], S: np.ndarray, tol: np.ndarray, *, dual: bool = False) -> np.ndarray:
    """Whether each row of S is in the product of the cones, or of their duals, up to its own tolerance."""
    inside = np.isfinite(S).all(axis=1)
    start = 0
    with np.errstate(all="ignore"):  # what overflows is not inside
        for kind, parameter in cones:
            stop = start + cone_size(kind, parameter)
            inside &= _inside(kind, parameter, S[:, start:stop], tol, dual)
            start = stop
    return inside


def _inside(kind: str, parameter: Any, S: np.ndarray, tol: np.ndarray, dual: bool) -> Any:
    if kind == "zero":
        return np.ones(len(S), dtype=bool) if dual else (np.abs(S) <= tol[:, None]).all(axis=1)
    if kind == "nonneg":
        return (S >= -tol[:, None]).all(axis=1)
    if kind == "soc":
        return np.linalg.norm(S[:, 1:], axis=1) <= S[:, 0] + tol
    if kind == "psd":
        matrices = np.zeros((len(S), parameter, parameter))
        upper = [(row, column) for column in range(parameter) for row in range(column + 1)]
        for entry, (i, j) in enumerate(upper):
            matrices[:, i, j] = matrices[:, j, i] = S[:, entry] if i == j else S[:, entry] / np.sqrt(2.0)
        known: Any = np.isfinite(matrices).all(axis=(1, 2))
        return known & (np.linalg.eigvalsh(np.where(known[:, None, None], matrices, 0.0))[:, 0] >= -tol)
    if kind == "exp":
        x, y, z = S[:, 0] - tol, S[:, 1] + tol, S[:, 2] + tol
        if dual:
            return (x < 0) & (-x * np.exp(y / x - 1.0) <= z)
        return (y > 0) & (y * np.exp(x / y) <= z)
    powers = np.array([parameter, 1.0 - parameter] if kind == "pow" else parameter, dtype=np.float64)
    base = S[:, :-1] + tol[:, None]
    product = np.prod(np.maximum(base, 0.0) ** powers / (powers**powers if dual else 1.0), axis=1)
    return (base >= 0).all(axis=1) & (np.abs(S[:, -1]) <= product)


def cones_of(dims: Any) -> list[tuple[str, Any]]:
    """Cones of a problem that CVXPY has compiled for Clarabel, from its ``dims``."""
    cones: list[tuple[str, Any]] = [("zero", dims.zero), ("nonneg", dims.nonneg)]
    cones += [("soc", k) for k in dims.soc] + [("psd", k) for k in dims.psd] + [("exp", None)] * dims.exp
    return [
        *cones,
        *(("pow", float(a)) for a in dims.p3d),
        *(("genpow", [float(a) for a in alphas]) for alphas in dims.pnd),
    ]
