"""Solvers of the training problem, by name.

=================  =========================================  ==========================================
name               what it asks of a region                   when to use it
=================  =========================================  ==========================================
``lbfgs``          ``strong_convexity``, ``repair``           exact; strongly convex regions, any n
``newton``         ``smoothed``, ``repair``                   exact; the same where lbfgs stalls; no l1 penalty
``interior-point`` ``standard_form``, ``repair``              exact; polyhedral regions (and ``quadratic_form``), any n
``conic``          ``support_epigraph``, ``repair``           exact; any region in cone form, small n
``bundle``         nothing but ``argmin``                     exact where it converges; any region, few passes
``sgd``            nothing but ``argmin``                     approximate; everything else
=================  =========================================  ==========================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._training.objective import MANY_SAMPLES, LinearObjective
from ..regions.base import Region
from .base import Result, Solver, check_rows_at_hand, check_solver_serves, history_of
from .bundle.solver import BundleSolver
from .conic import ConicSolver
from .interior_point.solver import InteriorPointSolver, is_simple, predicted_work
from .lbfgs import LBFGSSolver
from .newton import NewtonSolver
from .newton import predicted_work as newton_work
from .sgd import SGDSolver

SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls for cls in (LBFGSSolver, NewtonSolver, InteriorPointSolver, ConicSolver, BundleSolver, SGDSolver)
}

#: largest number of costs, n_samples * d, for which "auto" hands the whole problem to a conic solver
CONIC_LIMIT = 100_000

#: largest work of an interior-point or Newton iteration, in multiplications, that "auto" takes on: minutes for a fit
INTERIOR_POINT_LIMIT = 2e11

#: largest number of coefficients for which a Newton step costs "auto" no more than a few gradients
NEWTON_FIRST = 100

#: iterations that "auto" gives lbfgs where newton can go on; a smooth problem needs fewer
LBFGS_FIRST = 200

#: largest number of coefficients for which "auto" takes the bundle method: its program grows with them
BUNDLE_LIMIT = 5_000

#: largest number of coefficients for which "auto" tries the bundle method first where samples are many: it starts from
#: the fit to some of them, and is then several times as fast as interior point
BUNDLE_FIRST = 1_500

#: passes that "auto" gives bundle where another solver can go on; started from a sample it needs a few dozen
FIRST_PASSES = 200

#: largest number of coefficients of a shared model for which "auto" tries the bundle method before all but lbfgs: its
#: program is tiny then, and a dozen passes of the oracle close the gap
FEW_COEFFICIENTS = 100


def choose_solvers(region: Region, objective: LinearObjective) -> list[str]:
    """Return the solvers that ``solver="auto"`` tries, in order, until the duality gap is closed.

    ==================  ===============================================================================
    ``lbfgs``           the region is strongly convex: the loss is smooth except where 2 c_hat = c
    ``newton``          as above, the penalty is smooth and an iteration costs at most INTERIOR_POINT_LIMIT; before
                        lbfgs if there are at most NEWTON_FIRST coefficients
    ``interior-point``  the region is a polyhedron, perhaps with a quadratic constraint, and an iteration costs at most
                        INTERIOR_POINT_LIMIT
    ``conic``           the region has a cone form and there are at most CONIC_LIMIT costs, n * d
    ``bundle``          none of these but interior-point, and the model has at most BUNDLE_LIMIT coefficients,
                        d * (p + 1); before conic where there are at least MANY_SAMPLES, at most BUNDLE_FIRST
                        coefficients and an oracle that is no solver itself; then also before interior-point, unless
                        that is fast (at most one equality) and there are less than twice as many samples; before both
                        if a shared model has at most FEW_COEFFICIENTS
    ``sgd``             none of these, or there is a ``time_limit`` within which none of them would get anywhere; and
                        after bundle where the oracle is a function of the user's that may be a heuristic
                        (``OracleRegion(on_suboptimal="warn")``), but run only if the function was found not to be
                        optimal: bundle takes every decision as exact
    ==================  ===============================================================================

    Where only sums over rows are known (data in chunks) it is ``lbfgs`` for strongly convex regions, then ``bundle``.
    """
    if not objective.rows_at_hand:
        return ["bundle"] if LBFGSSolver.missing(region) else ["lbfgs", "bundle"]
    names = []
    if not LBFGSSolver.missing(region):
        names.append("lbfgs")
    newton = not NewtonSolver.missing(region) and objective.smooth_penalty
    if newton and newton_work(objective) <= INTERIOR_POINT_LIMIT:
        names.insert(0 if int(np.prod(objective.shape)) <= NEWTON_FIRST else 1, "newton")
    n_coef = int(np.prod(objective.shape))
    smooth = bool(names)
    many = objective.n_samples >= MANY_SAMPLES and n_coef <= BUNDLE_FIRST and not region.asks_solver
    fast = is_simple(region, objective.C.shape[1]) and objective.n_samples < 2 * MANY_SAMPLES
    if not smooth and ((many and not fast) or (objective.design.shared and n_coef <= FEW_COEFFICIENTS)):
        names.append("bundle")
    if not InteriorPointSolver.missing(region) and predicted_work(objective) <= INTERIOR_POINT_LIMIT:
        names.append("interior-point")
    if many and not smooth and "bundle" not in names:
        names.append("bundle")
    if not ConicSolver.missing(region) and objective.C.size <= CONIC_LIMIT:
        names.append("conic")
    elif not smooth and "bundle" not in names and n_coef <= BUNDLE_LIMIT:
        names.append("bundle")
    names = [name for name in names if SOLVERS[name].fits(objective)]
    if not names or region.may_be_inexact:
        names.append("sgd")
    return names


def make_solvers(solver: str | Solver, region: Region, objective: LinearObjective, **params: Any) -> list[Solver]:
    """Return the solvers to try, for a name or an instance, after checking that they can serve the region.

    Parameters
    ----------
    solver : str or Solver
        A name of ``SOLVERS``, "auto", or an instance, which then uses its own parameters.
    region : Region
    objective : LinearObjective
    **params
        Parameters of the estimator; each solver takes those that it has.
    """
    if isinstance(solver, Solver):
        chosen = [solver]
    else:
        names = choose_solvers(region, objective) if solver == "auto" else [solver]
        if not isinstance(solver, str) or not set(names) <= set(SOLVERS):
            raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, or a Solver; got {solver!r}.")
        chosen = []
        for name in names:
            known = SOLVERS[name]._get_param_names()
            own = {key: value for key, value in params.items() if key in known}
            first = {"lbfgs": LBFGS_FIRST if "newton" in names else None, "bundle": FIRST_PASSES}.get(name)
            another = [other for other in names[names.index(name) + 1 :] if not SOLVERS[other].tolerates_inexact]
            if another and own.get("max_iter") is None:
                own["max_iter"] = first
            chosen.append(SOLVERS[name](**own))
    for candidate in chosen:
        check_solver_serves(candidate, region, objective.loss, SOLVERS)
        check_rows_at_hand(candidate, objective, SOLVERS)
    return chosen


__all__ = [
    "BUNDLE_FIRST",
    "BUNDLE_LIMIT",
    "CONIC_LIMIT",
    "FEW_COEFFICIENTS",
    "FIRST_PASSES",
    "INTERIOR_POINT_LIMIT",
    "LBFGS_FIRST",
    "NEWTON_FIRST",
    "SOLVERS",
    "BundleSolver",
    "ConicSolver",
    "InteriorPointSolver",
    "LBFGSSolver",
    "NewtonSolver",
    "Result",
    "SGDSolver",
    "Solver",
    "check_solver_serves",
    "choose_solvers",
    "history_of",
    "make_solvers",
]
