"""Descent for losses of users, of which nothing is known but values and subgradients."""

from __future__ import annotations

import numpy as np

from .._training.objective import NO_BOUND, LinearObjective
from .._training.run import Run
from .._utils.adam import N_STEPS, RATES, Adam
from .._utils.limits import TimeIsUp
from ..losses import Loss
from ..regions.base import Region
from .base import Progress, Result, Solver, Status, certified
from .lbfgs import descend


class AnyLossSolver(Solver):
    """L-BFGS, which is exact for smooth losses, in turns with Adam, which also moves on at kinks; without a bound.

    It ends when both together decrease the objective by no more than the share ``tol`` of it, or after ``max_iter``
    iterations of both, by default 5000.
    """

    name = "descent"
    supports_sparse = True

    @classmethod
    def shortcomings(cls, region: Region, loss: Loss, penalty: str) -> list[str]:
        """None: it minimizes every loss with every penalty."""
        return []

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Minimize from ``start`` or from least squares."""
        limit = 5000 if self.max_iter is None else self.max_iter
        best = objective.least_squares if start is None else start
        lowest, n_iter = objective.value(best), 0
        progress = Progress(self.name, objective, run, self.verbose, tol=self.tol)

        def note(value: float, at: np.ndarray) -> None:
            nonlocal best, lowest, n_iter
            n_iter += 1
            if value < lowest:
                best, lowest = at, value
            progress(n_iter, value)
            if n_iter >= limit or progress.late():
                raise TimeIsUp

        status, message = Status.CONVERGED, ""
        try:
            while True:
                before = lowest
                descend(objective, best, limit, 1e-2 * self.tol, note, run.memory)
                if n_iter >= limit or run.deadline.reached:  # it has caught the exception
                    raise TimeIsUp
                Theta, adam = best, Adam(objective.shape)
                for rate in np.geomspace(*RATES, N_STEPS):
                    value, G = objective.value_gradient(Theta, run.memory)
                    note(value, Theta)
                    Theta = Theta - adam.step(G, float(rate))
                if before - lowest <= self.tol * abs(lowest):
                    break
        except TimeIsUp:
            late = run.deadline.reached
            status = Status.TIME_LIMIT if late else Status.ITERATION_LIMIT
            message = run.deadline.message if late else f"max_iter={limit} was reached"
        progress(n_iter, lowest, force=True)
        result = Result(best, lowest, NO_BOUND.value, n_iter, status, message, NO_BOUND.radius)
        return certified(objective, result, self.tol)
