"""Regions that are products: the blocks of costs are trained one at a time.

Conventions
-----------
    S = S_1 x ... x S_m,   Theta = (Theta_1, ..., Theta_m) by rows

    objective(Theta) = sum_b objective_b(Theta_b)

because support functions of products, costs of decisions and penalties are sums.  The bounds of the blocks hold within
rho_b of the least-squares Theta_b.  A Theta within rho of least squares has every Theta_b within rho, so that the sum
of the bounds holds within min_b rho_b.  Blocks have the coordinates of the whole: features, units and prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._training.certificate import ZERO_BOUND, Bound
from .._training.in_memory import InMemoryObjective
from .._training.objective import LinearObjective
from .._training.run import Run
from .._utils.deadline import TimeIsUp
from .base import Estimate, Progress, Result, Solver, Status, combined, penalty_kind, rows_of
from .bundle.solver import BundleSolver
from .interior_point.intervals import IntervalSolver
from .interior_point.solver import InteriorPointSolver
from .lbfgs import LBFGSSolver
from .newton import NewtonSolver
from .turns import take_turns

#: solvers of a block, tried in this order until the gap is closed
OF_BLOCKS = (NewtonSolver, LBFGSSolver, IntervalSolver, InteriorPointSolver, BundleSolver)

#: share of the tolerance that blocks are given.  The gap of the sum is relative to the larger one of two sums, its
#: value and a share of the zero model's, and those of the blocks are relative to the larger one of two terms each.
SHARE = 0.5

#: share of the time that is left for the blocks; the rest is for the certificate of the whole
FOR_BLOCKS = 0.9


class SeparableSolver(Solver):
    """Exact minimisation over products of regions, block by block.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Iteration limit of every block; None means that of the block's solver.
    verbose : int, default=0
    """

    name = "separable"
    requires = ("blocks",)

    def __init__(self, *, tol: float = 1e-6, max_iter: int | None = None, verbose: int = 0) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @classmethod
    def estimate(cls, objective: LinearObjective, run: Run) -> Estimate:
        """Zero if there are several factors: nothing is gained by solving independent problems together."""
        region: Any = objective.region
        if objective.design.shared or objective.design.sparse:
            return super().estimate(objective, run)
        if len(region.blocks(objective.shape[0])) > 1:
            return Estimate(0.0, 0.0)
        penalty = penalty_kind(objective.alpha, objective.l1_ratio)
        if IntervalSolver.shortcomings(region, objective.loss, penalty) or not IntervalSolver.fits(objective, run):
            return super().estimate(objective, run)
        return IntervalSolver.estimate(objective, run)

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Minimise the objective of every block and add up values and bounds."""
        objective = rows_of(objective)
        start = objective.least_squares if start is None else start
        progress = Progress(self.name, objective, run, self.verbose, tol=self.tol)
        deadline = run.deadline.share(FOR_BLOCKS)
        blocks = split_objective(objective)
        Theta = start.copy()
        values = np.array([block.value(start[columns]) for columns, block in blocks])
        bounds = [ZERO_BOUND] * len(blocks)
        n_iter, trouble = 0, [(Status.NUMERICAL_LIMIT, "")]
        for b, (columns, block) in enumerate(blocks):
            try:
                if deadline.left() <= 0:
                    raise TimeIsUp
                result = self._solve_block(block, Run(deadline), start[columns])
            except TimeIsUp:
                deadline.reached = True
                trouble.append((Status.TIME_LIMIT, run.deadline.message))
                break
            Theta[columns], values[b] = result.coef, result.objective
            bounds[b] = Bound(result.lower_bound, result.radius)
            n_iter += result.n_iter
            if not result.converged:
                trouble.append((result.status, result.message))
            progress(n_iter, float(values.sum()), sum(bound.value for bound in bounds))
        run.deadline.reached |= deadline.reached
        value = objective.value(Theta)
        bound = combined_bound(bounds, objective.radius(Theta))
        progress(n_iter, value, bound.value, force=True)
        return self.result(objective, Theta, value, bound, n_iter, *trouble[-1])

    def _solve_block(self, objective: InMemoryObjective, run: Run, start: np.ndarray) -> Result:
        """Best coefficients and best bound of the solvers that can serve a block."""
        nearby = objective.canonical(objective.prior if objective.alpha > 0 else start)
        value = objective.value(nearby)
        if value <= 0.0:  # all decisions cost the same, or predictions are perfect
            return self.result(objective, nearby, value, ZERO_BOUND, 0)
        penalty, tol = penalty_kind(objective.alpha, objective.l1_ratio), SHARE * self.tol
        able = [
            cls(tol=tol, max_iter=self.max_iter, verbose=0)
            for cls in OF_BLOCKS
            if not cls.shortcomings(objective.region, objective.loss, penalty) and cls.fits(objective, run)
        ]
        able.sort(key=lambda solver: solver.estimate(objective, run).work)
        best: Result | None = None

        def turn(solver: Solver) -> Status | None:
            nonlocal best
            result = solver.solve(objective, run, start if best is None else best.coef)
            best = result if best is None else combined(objective, best, result, tol)
            return None if best.gap <= tol or run.deadline.left() <= 0 else result.status

        if able:
            take_turns(objective, run, able, turn)
        if best is None:  # no time for any of them
            best = self.result(objective, start, objective.value(start), ZERO_BOUND, 0)
        return best


def combined_bound(bounds: list[Bound], radius: float) -> Bound:
    """Sum of the bounds of blocks, at least within a radius; of a block whose bound holds nearby only, it is zero."""
    bounds = [bound if bound.radius >= radius else ZERO_BOUND for bound in bounds]
    return Bound(sum(bound.value for bound in bounds), min(bound.radius for bound in bounds))


def split_objective(objective: InMemoryObjective) -> list[tuple[np.ndarray | slice, InMemoryObjective]]:
    """Rows of Theta, and the objective of each block; the whole objective, if one model serves all costs."""
    if objective.design.shared:
        return [(slice(None), objective)]
    region: Any = objective.region
    parts = region.blocks(objective.shape[0])
    return [(columns, objective.of_costs(columns, part)) for columns, part in parts]
