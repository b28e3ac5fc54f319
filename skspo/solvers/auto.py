"""How ``solver="auto"`` chooses: a list of rules, read from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._training.objective import MANY_SAMPLES, LinearObjective
from ..regions.base import Region
from .base import Solver, check_in_memory, check_solver_serves, penalty_kind
from .bundle.solver import BundleSolver
from .conic import ConicSolver
from .dual.solver import DualSolver
from .interior_point.solver import InteriorPointSolver, is_simple
from .interior_point.solver import predicted_work as interior_point_work
from .lbfgs import LBFGSSolver
from .newton import NewtonSolver
from .newton import predicted_work as newton_work
from .sgd import SGDSolver

SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls
    for cls in (LBFGSSolver, NewtonSolver, InteriorPointSolver, ConicSolver, BundleSolver, DualSolver, SGDSolver)
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


class Case:
    """The facts about a training problem that the rules look at."""

    def __init__(self, region: Region, objective: LinearObjective) -> None:
        self.region, self.objective = region, objective
        self.in_memory = objective.in_memory
        self.n_coef = int(np.prod(objective.shape))
        self.penalty = penalty_kind(objective.alpha, objective.l1_ratio)

    def serves(self, name: str) -> bool:
        """Whether a solver can minimise this objective at all."""
        return not SOLVERS[name].shortcomings(self.region, self.objective.loss, self.penalty)

    @property
    def smooth(self) -> bool:
        """Whether the region is strongly convex: the loss is then smooth except where 2 c_hat = c."""
        return self.serves("lbfgs")

    @property
    def newton(self) -> bool:
        """Whether Newton's method can be used, and its steps are affordable."""
        return self.serves("newton") and newton_work(self.objective) <= INTERIOR_POINT_LIMIT

    @property
    def interior_point(self) -> bool:
        """Whether the interior-point method can be used, and its iterations are affordable."""
        return self.serves("interior-point") and interior_point_work(self.objective) <= INTERIOR_POINT_LIMIT

    @property
    def conic(self) -> bool:
        """Whether the region has a cone form, and the whole problem is small enough for one conic program."""
        return self.serves("conic") and self.objective.C.size <= CONIC_LIMIT

    @property
    def many_samples(self) -> bool:
        """Whether samples are so many that a fit to some of them is a good start, and passes of the oracle are fast."""
        many = self.objective.n_samples >= MANY_SAMPLES and self.n_coef <= BUNDLE_FIRST
        return many and not self.region.oracle_is_solver

    @property
    def fast_interior_point(self) -> bool:
        """Whether the interior-point method is the faster one in spite of many samples: at most one equality."""
        return is_simple(self.region, self.objective.C.shape[1]) and self.objective.n_samples < 2 * MANY_SAMPLES

    @property
    def tiny_shared_model(self) -> bool:
        """Whether one model with few coefficients serves all costs."""
        return self.objective.design.shared and self.n_coef <= FEW_COEFFICIENTS


class Rule(NamedTuple):
    """Try a solver if a condition holds and nothing above has taken it yet."""

    solver: str
    condition: Callable[[Case], bool]
    why: str


#: rules for data in memory; the solvers are tried in this order
RULES = [
    Rule("newton", lambda case: case.newton and case.n_coef <= NEWTON_FIRST, "a step costs as much as a few gradients"),
    Rule("lbfgs", lambda case: case.smooth, "the loss is smooth almost everywhere"),
    Rule("newton", lambda case: case.newton, "goes on where lbfgs stalls"),
    Rule(
        "bundle",
        lambda case: not case.smooth and case.many_samples and not case.fast_interior_point,
        "starts from the fit to a sample, and needs few passes",
    ),
    Rule("bundle", lambda case: not case.smooth and case.tiny_shared_model, "its program is tiny"),
    Rule("interior-point", lambda case: case.interior_point, "polyhedra, perhaps with a quadratic constraint"),
    Rule("bundle", lambda case: not case.smooth and case.many_samples, "goes on where interior point stalls"),
    Rule("conic", lambda case: case.conic, "goes on where the others cannot close the gap"),
    Rule(
        "bundle",
        lambda case: not case.smooth and not case.conic and case.n_coef <= BUNDLE_LIMIT,
        "needs nothing but the oracle",
    ),
]

#: rules for data of which only sums over rows are known
RULES_FOR_CHUNKS = [
    Rule("lbfgs", lambda case: case.smooth, "the loss is smooth almost everywhere"),
    Rule("bundle", lambda case: True, "needs nothing but the oracle"),
]


def choose_solvers(region: Region, objective: LinearObjective) -> list[str]:
    """Return the solvers that ``solver="auto"`` tries, in order, until the duality gap is closed.

    The rules are ``skspo.solvers.auto.RULES``, or ``RULES_FOR_CHUNKS`` where data come in chunks.  Solvers that would
    not get anywhere within ``time_limit`` are left out.  For data in memory ``sgd`` is the last resort; it is also
    added where the oracle is a function of the user's that may be a heuristic
    (``OracleRegion(on_suboptimal="warn")``), but then run only if the function was found not to be optimal: the other
    solvers take every decision as exact.

    Parameters
    ----------
    region : Region
    objective : LinearObjective

    Returns
    -------
    names : list of str
    """
    case = Case(region, objective)
    names: list[str] = []
    for rule in RULES if case.in_memory else RULES_FOR_CHUNKS:
        if rule.solver not in names and rule.condition(case) and SOLVERS[rule.solver].fits(objective):
            names.append(rule.solver)
    if case.in_memory and (not names or region.may_be_inexact):
        names.append("sgd")
    return names


def make_solvers(solver: str | Solver, region: Region, objective: LinearObjective, **params: Any) -> list[Solver]:
    """Return the solvers to try, for a name or an instance, after checking that they can serve the problem.

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
    penalty = penalty_kind(objective.alpha, objective.l1_ratio)
    for candidate in chosen:
        check_solver_serves(candidate, region, objective.loss, penalty, SOLVERS)
        check_in_memory(candidate, objective, SOLVERS)
    return chosen
