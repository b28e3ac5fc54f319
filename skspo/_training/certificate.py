"""Lower bounds of the objective: what they are, and dual decisions whose moments vanish.

``lower_bound`` is the one routine that turns approximate dual decisions into a proved bound, wherever the rows are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from .._utils.deadline import Deadline, StepTimer

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


class DecisionsAt(NamedTuple):
    """Stands for the decisions w*(2 c_hat - c) of all rows at Theta, so that they need not be in memory together."""

    Theta: np.ndarray


#: dual decisions of all rows, or where to find them
Dual = np.ndarray | DecisionsAt


class Moves(Protocol):
    """Dual decisions v_i(K) = repair(v_i + room_i K z_i), where ``repair`` goes back into S.

    K has the shape of the coefficients.  Samples with much room are those near the kink of the loss.
    """

    #: largest number of moves; 0 if the region cannot repair decisions
    max_moves: int

    def moments(self, K: np.ndarray) -> tuple[float, np.ndarray]:
        """Constant and slope of the bound of v_i(K)."""

    def gram(self) -> np.ndarray:
        """Gram matrix of the features, weighted with room_i."""

    def mixed_bound(self, Theta: np.ndarray, deadline: Deadline, target: float) -> Bound:
        """Bound with a little of other decisions mixed in; zero where single rows cannot be looked at."""


def lower_bound(
    objective: LinearObjective,
    dual: Dual,
    Theta: np.ndarray,
    deadline: Deadline,
    *,
    target: float = np.inf,
    enough: float = np.inf,
) -> Bound:
    """Best lower bound found from approximate dual decisions.

    They are moved until they have the feature moments that they have at an optimum; if that does not do, other
    decisions are mixed in.  Every intermediate point in conv(S) proves a bound and the best one counts.  The loss and
    the penalty are nonnegative, so zero is always a bound.

    Parameters
    ----------
    objective : LinearObjective
    dual : ndarray of shape (n, d), or DecisionsAt
        In conv(S), or near it if the region can repair them.
    Theta : ndarray
        The returned coefficients.
    deadline : Deadline
    target : float
        Stop as soon as this bound is reached.
    enough : float
        Mix in no other decisions if this bound is reached.
    """
    moves = objective.moves(dual, Theta)
    best = cancel_residual(objective, moves, Theta, deadline, target)
    if best.value >= min(target, enough) or deadline.left() <= 0:
        return best
    return max(best, moves.mixed_bound(Theta, deadline, target))


def cancel_residual(
    objective: LinearObjective, moves: Moves, Theta: np.ndarray, deadline: Deadline, target: float
) -> Bound:
    """Best bound of dual decisions v_i(K) that are moved until their moments are those of an optimum.

    If nothing had to be repaired, one step with the Gram matrix would cancel the residual R(K).  Decisions at the
    boundary move in some directions only, so the step is repeated, and Anderson's acceleration learns from the
    last steps what a step really does.

    Parameters
    ----------
    objective : LinearObjective
    moves : Moves
    Theta : ndarray
        The returned coefficients.
    deadline : Deadline
    target : float
        Stop as soon as this bound is reached.
    """
    timer = StepTimer(deadline, 0.0, 0.0)
    K, best, lowest, age = np.zeros(objective.shape), ZERO_BOUND, np.inf, 0
    points: list[np.ndarray] = []
    steps: list[np.ndarray] = []
    pinv: np.ndarray | None = None
    for n_iter in range(moves.max_moves + 1):
        try:
            constant, G = moves.moments(K)
        except RuntimeError:
            break  # a back-end failed to move decisions into the region; bounds that were found hold
        best = max(best, objective.dual_value_from_moments(constant, G, Theta))
        R = objective.moment_residual(G, Theta)
        residual = float(np.linalg.norm(R))
        age = 0 if residual <= 0.5 * lowest else age + 1
        lowest = min(lowest, residual) if age == 0 else lowest
        stop = residual == 0.0 or not np.isfinite(residual) or age > RESIDUAL_PATIENCE or n_iter == moves.max_moves
        if best.value >= target or stop or timer.late():
            break
        if pinv is None:
            if not deadline.allows(PSEUDO_INVERSE * float(objective.shape[1]) ** 3):
                deadline.reached = True
                break
            pinv = np.linalg.pinv(moves.gram(), rcond=1e-14, hermitian=True)
        # sum_i a_i dV_i z_i^T = R / 2 cancels the residual.
        step = 0.5 * R @ pinv
        points, steps = [*points[-ANDERSON:], K.ravel()], [*steps[-ANDERSON:], step.ravel()]
        K = K + step
        if len(points) > 1:
            dK, ds = np.diff(points, axis=0).T, np.diff(steps, axis=0).T
            share = np.linalg.lstsq(ds, step.ravel(), rcond=1e-12)[0]
            K = K - ((dK + ds) @ share).reshape(objective.shape)
    return best
