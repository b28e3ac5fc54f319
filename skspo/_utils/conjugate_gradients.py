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
    """Solve a linear system, and count the applications of the operator.

    Parameters
    ----------
    apply : callable
        The operator.
    right : ndarray
    steps : int
        Largest number of applications.
    accuracy : float
        Share of the norm of ``right`` to which that of the residual is reduced.
    least : float
        Curvature of a direction of length one below which the operator counts as singular; no step is taken then.
    late : callable
        Whether to stop.
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
