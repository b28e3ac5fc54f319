"""Lower bounds of the objective: what they are, and dual decisions whose moments vanish."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._utils.deadline import StepTimer

if TYPE_CHECKING:
    from .objective import LinearObjective

#: least distance from least squares within which a bound without ridge is proved, in units of the typical cost, and
#: the least multiple of the distance of the returned model: a little more than the two that are promised, so that
#: rounding coefficients to zero afterwards does not break the promise
CERTIFICATE_RADIUS, DISTANCE_FACTOR = 10_000.0, 2.5

#: steps that the acceleration of ``cancel_residual`` remembers, and those after which a residual that has not
#: decreased by half will not vanish
ANDERSON, RESIDUAL_PATIENCE = 30, 10

#: multiplications of a pseudo-inverse, divided by the cube of its size
PSEUDO_INVERSE = 15.0

#: charge for a residual, relative to the objective, that is used up for a larger radius
FREE_CHARGE = 1e-10


class Bound(NamedTuple):
    """Lower bound of the objective, and how far from least squares it is proved."""

    value: float
    radius: float  # in the coordinates of Theta; infinite if the bound holds for all models


#: losses and penalties are nonnegative
ZERO_BOUND = Bound(0.0, np.inf)

#: nothing is known, as with an oracle that is not optimal: the loss may be negative then
NO_BOUND = Bound(-np.inf, np.nan)


def cancel_residual(
    objective: LinearObjective,
    moments: Callable[[np.ndarray], tuple[float, np.ndarray]],
    gram_pinv: Callable[[], np.ndarray],
    Theta: np.ndarray,
    target: float,
    max_iter: int,
) -> Bound:
    """Best bound of dual decisions v_i(K) that are moved until their moments are those of an optimum.

    v_i(K) = repair(v_i + room_i K z_i), where ``repair`` goes back into S and K has the shape of the coefficients.
    If nothing had to be repaired, one step with the Gram matrix would cancel the residual R(K).  Decisions at the
    boundary move in some directions only, so the step is repeated, and Anderson's acceleration learns from the
    last steps what a step really does.

    Parameters
    ----------
    objective : LinearObjective
    moments : callable
        Constant and slope of the bound of v_i(K).
    gram_pinv : callable
        Pseudo-inverse of the Gram matrix of the features, weighted with room_i.
    Theta : ndarray
        The returned coefficients.
    target : float
        Stop as soon as this bound is reached.
    max_iter : int
        Largest number of steps.
    """
    timer = StepTimer(objective.deadline, 0.0, 0.0)
    K, best, lowest, age = np.zeros(objective.shape), ZERO_BOUND, np.inf, 0
    points: list[np.ndarray] = []
    steps: list[np.ndarray] = []
    pinv: np.ndarray | None = None
    for n_iter in range(max_iter + 1):
        try:
            constant, G = moments(K)
        except RuntimeError:
            break  # a back-end failed to move decisions into the region; bounds that were found hold
        best = max(best, objective.dual_value_from_moments(constant, G, Theta))
        R = objective.moment_residual(G, Theta)
        residual = float(np.linalg.norm(R))
        age = 0 if residual <= 0.5 * lowest else age + 1
        lowest = min(lowest, residual) if age == 0 else lowest
        stop = residual == 0.0 or not np.isfinite(residual) or age > RESIDUAL_PATIENCE or n_iter == max_iter
        if best.value >= target or stop or timer.late():
            break
        if pinv is None:
            if not objective.deadline.allows(PSEUDO_INVERSE * float(objective.shape[1]) ** 3):
                objective.deadline.reached = True
                break
            pinv = gram_pinv()
        # sum_i a_i dV_i z_i^T = R / 2 cancels the residual.
        step = 0.5 * R @ pinv
        points, steps = [*points[-ANDERSON:], K.ravel()], [*steps[-ANDERSON:], step.ravel()]
        K = K + step
        if len(points) > 1:
            dK, ds = np.diff(points, axis=0).T, np.diff(steps, axis=0).T
            share = np.linalg.lstsq(ds, step.ravel(), rcond=1e-12)[0]
            K = K - ((dK + ds) @ share).reshape(objective.shape)
    return best
