"""Lower bound of stochastic fits, from decisions of the oracle.

The region is approximated by the decisions found so far (see ``mixture``).  Softmax weights alpha_k ~ exp(V_k.u_i /
tau), with u_i = c_i - 2 Theta z_i, at the minimizer Theta of

    sum_i a_i ( tau log sum_k exp(V_k.u_i / tau) - u_i.w_i ) + penalty

have the moments of an optimum, because their residual is the gradient; the bound is tight if tau is small.  The
function is smooth, and L-BFGS minimizes it.  tau decreases from round to round, and each round calls the oracle for
missing decisions.  The minimizers approach an optimum, so a better model may be found.
"""

from __future__ import annotations

import numpy as np

from .._training.in_memory import InMemoryObjective
from .._training.mixture import MOST_ELEMENTS, Mixture
from .._training.objective import ZERO_BOUND, Bound
from .._training.run import Memory
from .._utils.limits import Deadline, TimeIsUp
from .base import Progress
from .lbfgs import descend

#: largest number of L-BFGS iterations per round
DESCENT = 200

#: factor of tau from round to round
DECREASE = 0.4

#: number of rounds without a better bound after which the search ends
PATIENCE = 2

#: largest number of processed entries, as a multiple of those of the fit
WORK_RATIO = 10.0

#: number of processed entries that is always allowed: about a tenth of a second
LEAST_WORK = 1e8


class SmoothedLoss(Mixture):
    """The smoothed loss of the decisions found so far, as ``lbfgs.descend`` minimizes it."""

    smoothing: float

    def __init__(self, objective: InMemoryObjective, deadline: Deadline) -> None:
        super().__init__(objective, objective.W, deadline)
        self.shape, self.prior, self.l1, self.l2 = objective.shape, objective.prior, objective.l1, objective.l2
        self.smooth_penalty = objective.smooth_penalty

    def meet(self, Theta: np.ndarray) -> None:
        """Add the decisions at Theta that are better than those found so far."""
        V = self.objective.decisions(Theta)
        U = self.objective.C - 2.0 * self.objective.design.predict(Theta)
        score = np.einsum("ij,ij->i", U, V)
        new = np.flatnonzero(score > self.best_scores(U) + 1e-10 * (1.0 + np.abs(score)))
        self.add(new, V[new])

    def spread(self, Theta: np.ndarray) -> float:
        """Mean difference between the best and the worst score of a sample at Theta."""
        U = self.objective.C - 2.0 * self.objective.design.predict(Theta)
        scores = np.einsum("ij,ij->i", self.V, U[self.sample])
        first = np.searchsorted(self.sample, np.arange(U.shape[0]))
        extent = np.maximum.reduceat(scores, first) - np.minimum.reduceat(scores, first)
        return float(self.objective.weight @ extent)

    def weights(self, Theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores, smoothed maxima of the samples with several decisions, and their weights."""
        obj = self.objective
        U = obj.C[self.rows] - 2.0 * obj.design.predict(Theta, self.rows)
        scores = np.einsum("ij,ij->i", self.choices, U[self.row])
        top = np.maximum.reduceat(scores, self.first)
        weight = np.exp((scores - top[self.row]) / self.smoothing)
        total = np.add.reduceat(weight, self.first)
        return U, top + self.smoothing * np.log(total), weight / total[self.row]

    def loss_gradient(self, Theta: np.ndarray, memory: Memory | None = None) -> tuple[float, np.ndarray]:
        """Smoothed loss, and its gradient in Theta; the oracle is not called."""
        value, G = self.constant + float(np.vdot(Theta, self.slope)), self.slope
        if self.rows.size:
            obj = self.objective
            U, top, weight = self.weights(Theta)
            a, W = obj.weight[self.rows], self.W[self.rows]
            value += float(a @ (top - np.einsum("ij,ij->i", U, W)))
            G = G + 2.0 * obj.design.adjoint((W - self.average(weight)) * a[:, None], self.rows)
        return value, G

    def value_gradient(self, Theta: np.ndarray, memory: Memory | None = None) -> tuple[float, np.ndarray]:
        """Smoothed objective, and its gradient."""
        value, G = self.loss_gradient(Theta)
        return value + self.objective.penalty(Theta), G + self.objective.penalty_gradient(Theta)


def prove(
    objective: InMemoryObjective,
    Theta: np.ndarray,
    others: list[np.ndarray],
    tol: float,
    progress: Progress,
    deadline: Deadline,
    n_iter: int,
) -> tuple[np.ndarray, float, Bound]:
    """Bound for a model near the optimum; return the best model found, its objective and the bound.

    The decisions at ``others``, near the optimum as well, are used; new models are appended.  ``tol`` is the relative
    gap at which to stop, and ``n_iter`` the number of passes over the data so far.
    """
    best, value, bound = Theta, objective.value(Theta), ZERO_BOUND
    if 4 * objective.C.size > MOST_ELEMENTS or deadline.left() <= 0:
        return best, value, bound
    met, left = SmoothedLoss(objective, deadline), max(LEAST_WORK, WORK_RATIO * n_iter * objective.C.size)
    # Seconds for the bound of a round and for its pass of the oracle.
    spare = 0.3 * deadline.left() if deadline.at < np.inf else 0.0

    def report(_: float, at: np.ndarray) -> None:
        nonlocal left
        left -= met.choices.size + objective.C.size
        if left <= 0 or deadline.left() <= spare:
            raise TimeIsUp

    progress.begin()
    try:
        for other in (Theta, *reversed(others)):
            if deadline.left() <= spare:
                break
            met.meet(other)
    except TimeIsUp:
        return best, value, bound
    at, idle = Theta, 0
    met.smoothing = max(value, met.spread(Theta), 1e-300)
    while True:
        at, _ = descend(met, at, DESCENT, 1e-3 * tol, report)
        proved = max(ZERO_BOUND, met.bound(met.weights(at)[2] if met.rows.size else np.zeros(0), best))
        idle = 0 if proved > bound else idle + 1
        bound = max(bound, proved)
        others.append(at)
        try:
            met.meet(at)
            there = objective.value(at)
        except TimeIsUp:
            break
        if there < value:
            best, value = at, there
        progress(n_iter, value, bound.value)
        small = met.smoothing <= 1e-3 * tol * objective.gap_size(value)
        if objective.relative_gap(value, bound.value) <= tol or small or left <= 0 or progress.late():
            break
        if idle >= PATIENCE and bound.value > 0.0:
            break
        met.smoothing *= DECREASE
    return best, value, bound
