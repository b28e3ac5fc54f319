"""L-BFGS for strongly convex regions, where the SPO+ loss is differentiable.

With an l1 penalty the coefficients are split, Theta = prior + P - N with P, N >= 0, so that the penalty is linear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from .._training.objective import LinearObjective
from .._training.run import Memory, Run
from .._utils.limits import TimeIsUp, one_blas_thread
from .base import Estimate, Progress, Result, Solver, Status, pass_work

if TYPE_CHECKING:
    from .smoothed_proof import SmoothedLoss

#: evaluations that the fits of benchmarks/auto.py needed, typically
EVALUATIONS = 60.0

#: steps that are kept, and as many changes of the gradient; SciPy's default is 10
KEPT = 30


class LBFGSSolver(Solver):
    """Exact minimization by L-BFGS on value and gradient.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Iteration limit; None means 2000.
    verbose : int, default=0
    """

    name = "lbfgs"
    supports_sparse = True
    requires = ("strong_convexity", "repair")
    supports_chunks = True

    @classmethod
    def estimate(cls, objective: LinearObjective, run: Run) -> Estimate:
        """Evaluations of value and gradient."""
        return Estimate(EVALUATIONS * pass_work(objective), 16.0 * KEPT * objective.least_squares.size)

    @one_blas_thread  # two take longer, also with a thousand features
    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Minimize from ``start`` or from least squares; restart while the certificate improves."""
        limit = 2000 if self.max_iter is None else self.max_iter
        Theta = objective.least_squares if start is None else start
        progress = Progress(self.name, objective, run, self.verbose, after=3.0, tol=self.tol)
        n_iter, pgtol, last_gap = 0, 1e-2 * self.tol, np.inf
        count, work = 0, pass_work(objective)

        def report(value: float, at: np.ndarray) -> None:
            nonlocal count
            count += 1
            progress(count, value)
            if progress.spend(work) or progress.late():
                raise TimeIsUp

        while True:
            Theta, steps = descend(objective, Theta, limit - n_iter, pgtol, report, run.memory)
            n_iter += steps
            count = n_iter
            # A model that is not there yet gets the bound that takes less time.
            result = self.finish(objective, run, [(Theta, None)], n_iter, mix=n_iter < limit)
            progress(n_iter, result.objective, result.lower_bound, force=True)
            if result.converged:
                return result
            if run.deadline.reached:
                return result._replace(status=Status.TIME_LIMIT, message=run.deadline.message)
            if run.budget.used_up:
                return result._replace(status=Status.PAUSED)
            if n_iter >= limit:
                return result._replace(status=Status.ITERATION_LIMIT, message=f"max_iter={limit} was reached")
            if result.gap > 0.5 * last_gap or pgtol < 1e-13:
                message = "the descent stalled, probably at a kink of the loss where 2 c_hat = c"
                return result._replace(status=Status.NUMERICAL_LIMIT, message=message)
            # The gradient was not small enough for the certificate.
            pgtol, last_gap = 1e-2 * pgtol, result.gap


def descend(
    objective: LinearObjective | SmoothedLoss,
    Theta: np.ndarray,
    limit: int,
    gradient_tol: float,
    report: Callable[[float, np.ndarray], None] | None = None,
    memory: Memory | None = None,
) -> tuple[np.ndarray, int]:
    """Minimize a smooth loss and its penalty by L-BFGS-B until no entry of the gradient exceeds ``gradient_tol``.

    ``report`` gets each value and its coefficients, and may raise ``TimeIsUp``.  Returns the last coefficients, or the
    best ones after ``TimeIsUp``, and the number of iterations, at most ``limit``.
    """
    limit = max(limit, 1)
    options = {"maxiter": limit, "maxfun": 10 * limit + 100, "gtol": gradient_tol, "ftol": 0.0, "maxcor": KEPT}
    count, best, lowest = 0, Theta, np.inf

    def note(value: float, at: np.ndarray) -> None:
        nonlocal count, best, lowest
        count += 1
        if value < lowest:
            best, lowest = at, value
        if report is not None:
            report(value, at)

    if objective.smooth_penalty:

        def smooth(theta: np.ndarray) -> tuple[float, np.ndarray]:
            at = theta.reshape(objective.shape).copy()  # L-BFGS-B reuses its array
            value, G = objective.value_gradient(at, memory)
            note(value, at)
            return value, G.ravel()

        try:
            res = minimize(smooth, Theta.ravel(), jac=True, method="L-BFGS-B", options=options)
        except TimeIsUp:
            return best, count
        return res.x.reshape(objective.shape), res.nit

    def split(pn: np.ndarray) -> tuple[float, np.ndarray]:
        P, N = pn.reshape((2, *objective.shape))
        D = P - N
        value, G = objective.loss_gradient(objective.prior + D, memory)
        value += float(((P + N) @ objective.l1).sum() + 0.5 * ((D * D) @ objective.l2).sum())
        note(value, objective.prior + D)
        G = G + D * objective.l2
        return value, np.concatenate([(G + objective.l1).ravel(), (objective.l1 - G).ravel()])

    D = Theta - objective.prior
    start = np.concatenate([np.maximum(D, 0).ravel(), np.maximum(-D, 0).ravel()])
    try:
        res = minimize(split, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * start.size, options=options)
    except TimeIsUp:
        return best, count
    P, N = res.x.reshape((2, *objective.shape))
    return objective.prior + P - N, res.nit
