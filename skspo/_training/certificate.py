"""Lower bounds of the objective.

``lower_bound`` turns approximate dual decisions into a proved bound, for rows in memory and for rows in chunks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from .._utils.limits import Deadline, StepTimer

if TYPE_CHECKING:
    from .objective import LinearObjective

#: smallest radius around least squares for which a bound without ridge is proved, in units of the typical cost
CERTIFICATE_RADIUS = 10_000.0

#: smallest radius as a multiple of the distance of the returned model.  The documented multiple is 2; the rest is a
#: margin for coefficients that are set to zero afterwards.
DISTANCE_FACTOR = 2.5

#: number of steps that the Anderson acceleration of ``cancel_residual`` uses
ANDERSON = 30

#: number of steps after which ``cancel_residual`` stops if the residual has not been halved
RESIDUAL_PATIENCE = 10

#: multiplications of a pseudo-inverse, divided by the cube of its size
PSEUDO_INVERSE = 15.0

#: relative decrease of the bound that is accepted for a larger radius
FREE_CHARGE = 1e-10


class Bound(NamedTuple):
    """Lower bound of the objective, and the radius around least squares within which it holds."""

    value: float
    radius: float  # in the coordinates of Theta; infinite if the bound holds for all models


#: losses and penalties are nonnegative
ZERO_BOUND = Bound(0.0, np.inf)

#: no bound: the oracle is not optimal, and the loss may be negative
NO_BOUND = Bound(-np.inf, np.nan)


#: constant and slope of a bound, from decisions in conv(S)
Moments = tuple[float, np.ndarray]


class DecisionsAt(NamedTuple):
    """The decisions w*(2 c_hat - c) of all rows at Theta, which are computed when they are needed."""

    Theta: np.ndarray


#: dual decisions of all rows, or the coefficients that give them
Dual = np.ndarray | DecisionsAt


class Moves(Protocol):
    """Dual decisions v_i(K) = repair(v_i + room_i K z_i), where ``repair`` projects into conv(S).

    K has the shape of the coefficients.  room_i is large for samples near the kink of the loss.
    """

    #: largest number of moves; 0 if the region cannot repair decisions
    max_moves: int

    def moments(self, K: np.ndarray) -> tuple[float, np.ndarray]:
        """Constant and slope of the bound of v_i(K)."""

    def gram(self) -> np.ndarray:
        """Gram matrix of the features, weighted with room_i."""

    def mixed_bound(self, Theta: np.ndarray, deadline: Deadline, target: float) -> Bound:
        """Bound of mixtures with other decisions; zero if the rows are not in memory."""


def best_proof(objective: LinearObjective, proofs: list[Moments], Theta: np.ndarray) -> tuple[Moments, Bound]:
    """Moments that prove the best bound if Theta is the result, and that bound.

    Without a ridge, bounds depend on the distance of Theta, so that they are computed again when it changes.
    """
    bounds = [objective.dual_value_from_moments(*moments, Theta) for moments in proofs]
    return proofs[bounds.index(max(bounds))], max(ZERO_BOUND, *bounds)


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

    They are in conv(S), or near it if the region can repair them, and Theta is the result.  They are moved until their
    moments are those of an optimum; if that fails, and ``enough`` is not reached, other decisions are mixed in.  Every
    intermediate point in conv(S) proves a bound, and the best one is returned, or the first one that reaches
    ``target``.  The loss and the penalty are nonnegative, so zero is always a bound.
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

    If no decision had to be repaired, one step with the Gram matrix would cancel the residual R(K).  Decisions at the
    boundary move in some directions only, so the step is repeated, with Anderson acceleration.
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
            break  # a back-end failed to repair decisions; the bounds so far are valid
        best = max(best, objective.dual_value_from_moments(constant, G, Theta))
        # The penalty may leave a hidden component, which no decisions can cancel.
        R = objective.design.visible(objective.moment_residual(G, Theta))
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
