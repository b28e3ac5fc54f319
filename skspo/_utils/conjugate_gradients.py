"""Conjugate gradients for a positive semidefinite operator on arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def conjugate_gradients(
    apply: Callable[[np.ndarray], np.ndarray], right: np.ndarray, steps: int, *, late: Callable[[], bool]
) -> np.ndarray:
    """Solve a linear system to rounding errors, by at most ``steps`` applications of the operator.

    It ends when it is ``late``, or in a direction in which the operator is singular.
    """
    Y, r, p = np.zeros_like(right), right, right
    rr = start = float(np.vdot(r, r))
    for _ in range(steps):
        if rr <= 1e-28 * start or late():
            break
        H = apply(p)
        curvature = float(np.vdot(p, H))
        if not curvature > 0.0:
            break
        Y, r = Y + (rr / curvature) * p, r - (rr / curvature) * H
        new = float(np.vdot(r, r))
        p, rr = r + (new / rr) * p, new
    return Y
