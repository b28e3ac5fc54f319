"""Conjugate gradients for a positive semidefinite operator on arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def conjugate_gradients(
    apply: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    steps: int,
    *,
    accuracy: float = 1e-14,
    least: float = 0.0,
    late: Callable[[], bool] = lambda: False,
) -> tuple[np.ndarray, int]:
    """Solve a linear system, and count the applications of the operator, at most ``steps``.

    It ends when the norm of the residual is ``accuracy`` times that of ``right``, or when it is ``late``.  If a
    direction of length one has no more curvature than ``least``, the operator counts as singular, and no step is taken.
    """
    Y, r, p = np.zeros_like(right), right, right
    rr = start = float(np.vdot(r, r))
    for taken in range(steps):
        if rr <= accuracy**2 * start or late():
            return Y, taken
        H = apply(p)
        curvature = float(np.vdot(p, H))
        if not curvature > least * float(np.vdot(p, p)):
            return Y, taken + 1
        Y, r = Y + (rr / curvature) * p, r - (rr / curvature) * H
        new = float(np.vdot(r, r))
        p, rr = r + (new / rr) * p, new
    return Y, steps
