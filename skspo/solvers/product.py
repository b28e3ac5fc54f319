"""Regions that are products: the driver trains the costs of one factor at a time, whatever the solver.

Conventions
-----------
    S = S_1 x ... x S_m,   Theta = (Theta_1, ..., Theta_m) by rows

    objective(Theta) = sum_b objective_b(Theta_b)

because support functions of products, costs of decisions and penalties are sums.  The bounds of the factors hold within
rho_b of the least-squares Theta_b.  A Theta within rho of least squares has every Theta_b within rho, so that the sum
of the bounds holds within min_b rho_b.  Factors have the coordinates of the whole: features, units and prior.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn.base import clone

from .._training.in_memory import InMemoryObjective
from .._training.objective import ZERO_BOUND, Bound, LinearObjective
from .._training.run import Run
from .._utils.progress import Activity
from ..regions.capabilities import has
from .auto import SOLVERS, SolverOptions
from .base import Progress, Result, Solver, Status
from .steps import FOR_SEARCH, Fit

#: share of the tolerance that factors are given.  The gap of the sum is relative to the larger one of two sums, its
#: value and a share of the zero model's, and those of the factors are relative to the larger one of two terms each.
TOLERANCE = 0.5


def factors_of(objective: LinearObjective) -> list[tuple[np.ndarray, InMemoryObjective]]:
    """Rows of Theta and the objective of each factor; empty if there are no independent factors."""
    region: Any = objective.region
    if not isinstance(objective, InMemoryObjective) or objective.design.shared or not objective.loss.has_dual_bound:
        return []
    if not has(region, "blocks") or region._may_be_inexact:  # decisions that may be wrong are checked together
        return []
    parts = region.blocks(objective.shape[0])
    return [(rows, objective.of_costs(rows, part)) for rows, part in parts] if len(parts) > 1 else []


def fit_factors(
    objective: LinearObjective, run: Run, options: SolverOptions, start: np.ndarray | None, fit: Fit
) -> tuple[Result, Solver] | None:
    """Minimize the objective of every factor, and add up values and bounds; None if there is only one.

    The solver that is returned is the one of most factors.  Those of users get the whole problem.
    """
    solver = options.solver
    if isinstance(solver, Solver):
        if type(solver) not in SOLVERS.values():
            return None
        options = options._replace(tol=solver.tol)
        solver = clone(solver).set_params(tol=TOLERANCE * solver.tol)
    factors = factors_of(objective)
    if not factors:
        return None
    tol, verbose = options.tol, options.verbose
    inner = options._replace(solver=solver, tol=TOLERANCE * tol, verbose=max(verbose - 1, 0))
    Theta = (objective.least_squares if start is None else start).copy()
    values = np.array([factor.value(Theta[rows]) for rows, factor in factors])
    progress = Progress("product", objective, run, verbose, tol=tol)
    deadline = run.deadline.share(FOR_SEARCH)
    bounds, solvers, n_iter = [ZERO_BOUND] * len(factors), [], 0
    status, message = Status.NUMERICAL_LIMIT, ""
    for b, (rows, factor) in enumerate(factors):
        with Activity(f"factor {b + 1} of {len(factors)}", inner.verbose):
            result, used = fit(factor, Run(deadline, n_fits=run.n_fits), inner, None if start is None else start[rows])
        if result.objective <= values[b]:
            Theta[rows], values[b] = result.coef, result.objective
        bounds[b] = Bound(result.lower_bound, result.radius)
        solvers.append(used)
        n_iter += result.n_iter
        if not result.converged:
            status, message = result.status, result.message
        progress(n_iter, float(values.sum()), sum(bound.value for bound in bounds))
    run.deadline.reached |= deadline.reached
    value, bound = objective.value(Theta), combined_bound(bounds, objective.radius(Theta))
    progress(n_iter, value, bound.value, force=True)
    most = Counter(solver.name for solver in solvers).most_common(1)[0][0]
    last = next(solver for solver in solvers if solver.name == most).set_params(tol=tol)
    return last.result(objective, Theta, value, bound, n_iter, status, message), last


def combined_bound(bounds: list[Bound], radius: float) -> Bound:
    """Sum of the bounds of factors, at least within a radius; of one whose bound holds nearby only, it is zero."""
    bounds = [bound if bound.radius >= radius else ZERO_BOUND for bound in bounds]
    return Bound(sum(bound.value for bound in bounds), min(bound.radius for bound in bounds))
