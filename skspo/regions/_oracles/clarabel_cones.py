"""Membership in cones and their duals, batched over rows, to check the answers of a conic solver.

Cones are pairs (kind, parameter), see ``clarabel.py``.  A vector s is inside up to ``tol`` if s + tol e is inside,
where e is a point in the interior of the cone and of its dual; for the zero cone, if |s| <= tol.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from cvxpy.reductions.dcp2cone.cone_matrix_stuffing import ConeDims

#: size, exponent (pow) or exponents (genpow); None for the exponential cone
Parameter: TypeAlias = float | Sequence[float] | None
Cones: TypeAlias = list[tuple[str, Parameter]]


def cone_size(kind: str, parameter: Parameter) -> int:
    """Number of entries of a cone."""
    if isinstance(parameter, Sequence):
        return len(parameter) + 1
    if parameter is None or kind == "pow":
        return 3
    return int(parameter * (parameter + 1)) // 2 if kind == "psd" else int(parameter)


def rows_inside(cones: Cones, S: np.ndarray, tol: np.ndarray, *, dual: bool = False) -> np.ndarray:
    """Whether each row of S is in the product of the cones, or of their duals, up to its own tolerance."""
    inside = np.isfinite(S).all(axis=1)
    start = 0
    with np.errstate(all="ignore"):  # overflow means outside
        for kind, parameter in cones:
            stop = start + cone_size(kind, parameter)
            inside &= _inside(kind, parameter, S[:, start:stop], tol, dual)
            start = stop
    return inside


def _inside(kind: str, parameter: Parameter, S: np.ndarray, tol: np.ndarray, dual: bool) -> np.ndarray:
    if kind == "zero":
        return np.ones(len(S), dtype=bool) if dual else np.abs(S).max(axis=1, initial=0.0) <= tol
    if kind == "nonneg":
        return S.min(axis=1, initial=0.0) >= -tol
    if kind == "soc":
        return np.linalg.norm(S[:, 1:], axis=1) <= S[:, 0] + tol
    if kind == "psd":
        k = isqrt(2 * S.shape[1])
        matrices = np.zeros((len(S), k, k))
        upper = [(row, column) for column in range(k) for row in range(column + 1)]
        for entry, (i, j) in enumerate(upper):
            matrices[:, i, j] = matrices[:, j, i] = S[:, entry] if i == j else S[:, entry] / np.sqrt(2.0)
        # Rows that are not finite become zero matrices; ``rows_inside`` excludes them.
        return np.linalg.eigvalsh(np.where(np.isfinite(matrices), matrices, 0.0))[:, 0] >= -tol
    if kind == "exp":
        x, y, z = S[:, 0] - tol, S[:, 1] + tol, S[:, 2] + tol
        if dual:
            return (x < 0) & (-x * np.exp(y / x - 1.0) <= z)
        return (y > 0) & (y * np.exp(x / y) <= z)
    powers = np.array([parameter, 1.0 - parameter] if isinstance(parameter, float) else parameter, dtype=np.float64)
    base = S[:, :-1] + tol[:, None]
    product = np.prod(np.maximum(base, 0.0) ** powers / (powers**powers if dual else 1.0), axis=1)
    return (base >= 0).all(axis=1) & (np.abs(S[:, -1]) <= product)


def cones_of(dims: ConeDims) -> Cones:
    """Cones of a problem that CVXPY has compiled for Clarabel, from its ``dims``."""
    cones: Cones = [("zero", dims.zero), ("nonneg", dims.nonneg)]
    powers = getattr(dims, "pnd", ())  # old versions of CVXPY have none
    cones += [("soc", k) for k in dims.soc] + [("psd", k) for k in dims.psd] + [("exp", None)] * dims.exp
    return [
        *cones,
        *(("pow", float(a)) for a in dims.p3d),
        *(("genpow", [float(a) for a in alphas]) for alphas in powers),
    ]
