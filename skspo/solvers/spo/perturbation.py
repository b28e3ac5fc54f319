"""Descent of a perturbation loss: a continuous stand-in for the SPO loss that needs two decisions per sample and step.

With z*(c) the cost of the best decision for c, the loss (z*(c_hat) - z*(c_hat - h c)) / h is at least the cost c.w of
the best decision for c_hat, and tends to it as h decreases (Huang and Gupta, 2024).  It is piecewise linear in c_hat,
and its gradient is (w*(c_hat) - w*(c_hat - h c)) / h.  Adam follows it while h and the learning rate decrease.
"""

from __future__ import annotations

import numpy as np

from ..._training.in_memory import InMemoryObjective
from ..._utils.adam import N_STEPS, RATES, Adam
from ..._utils.limits import Deadline, TimeIsUp
from .descent import Fit, SPODescentSolver

#: h at the start and at the end, where 1 means that h c is as large as c_hat
SHARES = (0.3, 0.03)


class PerturbationSolver(SPODescentSolver):
    """Adam on a perturbation loss: any region, a few hundred decisions per sample.

    ``max_iter`` are steps of each descent, and ``tol`` is not used: their number is fixed.
    """

    name = "perturbation"
    requires = ()
    few_restarts = 0
    most = N_STEPS

    def _other_starts(self, objective: InMemoryObjective, deadline: Deadline) -> list[np.ndarray]:
        return []

    def _descend(self, fit: Fit, Theta: np.ndarray, done: int) -> tuple[np.ndarray, float, int, bool]:
        objective, _, norm, _, progress, limit = fit
        region, size = objective.region, float(np.linalg.norm(objective.C))
        best, lowest = Theta, objective.value(Theta)
        adam, unit = Adam(Theta.shape), norm / np.sqrt(Theta.size)
        for step in range(limit):
            if progress.late():
                return best, lowest, step, True
            part = step / max(limit - 1, 1)
            share, rate = (first * (last / first) ** part for first, last in (SHARES, RATES))
            try:
                C_hat = objective.predict(Theta)
                h = share * float(np.linalg.norm(C_hat)) / size if size else 0.0
                if h == 0.0:
                    break
                W_hat = region.solve_min(C_hat)
                G = (W_hat - region.solve_min(C_hat - h * objective.C)) / h
            except TimeIsUp:
                return best, lowest, step, True
            regret = np.einsum("ij,ij->i", objective.C, W_hat - objective.W)
            value = float(objective.weight @ regret) + objective.penalty(Theta)
            if value < lowest:
                best, lowest = Theta, value
            progress(done + step + 1, value, 0.0)
            gradient = objective.design.adjoint(G * objective.weight[:, None]) + objective.penalty_gradient(Theta)
            Theta = objective.design.visible(Theta - unit * adam.step(gradient, rate), objective.free)
            Theta = self._scaled(objective, Theta, norm)
        return best, objective.value(best), limit, False
