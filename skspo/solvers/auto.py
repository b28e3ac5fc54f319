"""The choice of ``solver="auto"``: a list of rules, read from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from .._training.in_memory import InMemoryObjective
from .._training.objective import MANY_SAMPLES, LinearObjective
from .._training.run import Run
from .._utils.shown import shown
from .._utils.warn import warn_once
from ..regions.capabilities import has
from .base import Solver, check_in_memory, check_solver_serves, penalty_kind
from .bundle.solver import BundleSolver, ends_with_undecided_rows
from .conic import ConicSolver
from .dual.solver import DualSolver
from .interior_point.intervals import IntervalSolver
from .interior_point.solver import InteriorPointSolver, is_simple
from .interior_point.solver import predicted_work as interior_point_work
from .lbfgs import LBFGSSolver
from .newton import NewtonSolver
from .newton import predicted_work as newton_work
from .pool import can_pool
from .separable import SeparableSolver
from .sgd import SGDSolver

SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls
    for cls in (
        LBFGSSolver,
        NewtonSolver,
        SeparableSolver,
        InteriorPointSolver,
        ConicSolver,
        BundleSolver,
        DualSolver,
        SGDSolver,
    )
}

#: largest number of costs, n_samples * d, and of costs times features, for which "auto" uses conic
CONIC_LIMIT, CONIC_NUMBERS = 100_000, 2e7

#: largest number of multiplications of an iteration for which "auto" uses interior-point or newton: minutes for a fit
INTERIOR_POINT_LIMIT = 2e11

#: largest number of coefficients for which a Newton step takes no longer than a few gradients
NEWTON_FIRST = 100

#: assets that best portfolios hold on average from which on "auto" tries newton if interior point cannot be used, and
#: the steps that it gives it: with fewer assets, most samples are at kinks of the loss
DIVERSIFIED, NEWTON_STEPS = 12, 40

#: iteration limit of lbfgs if newton comes next; a smooth problem needs fewer
LBFGS_FIRST = 200

#: largest number of coefficients for which "auto" uses bundle, and uses it after dual: its program grows with them
BUNDLE_LIMIT, BUNDLE_AFTER_DUAL = 5_000, 1_000

#: largest number of coefficients for which "auto" tries bundle first if there are many samples: with the fit to a
#: sample as warm start it is several times as fast as interior point; the second number is for machines without numba
BUNDLE_FIRST, BUNDLE_FIRST_WITHOUT_NUMBA = 300, 1_500

#: largest number of unknowns of bundle's program for which "auto" tries bundle first if there are so many samples that
#: it ends with the undecided rows: a program and an interior-point iteration both grow with the square of the unknowns,
#: but only the iteration grows with n.  The first number is for penalties, because dual is fast with a ridge.
UNDECIDED_FIRST_RIDGE, UNDECIDED_FIRST = 1_000, 2_500

#: dual is faster than interior point if an iteration of interior point takes more than so many times the
#: multiplications of a pass over the data: a constant, and a multiple of the passes that dual seems to need (see
#: ``Case.dual_from``), for regions with equality constraints and for the others
DUAL_FROM, DUAL_FROM_PASSES, DUAL_FROM_PASSES_WITHOUT_EQUALITIES = 100.0, 10.0, 60.0

#: multiplications of an interior-point iteration, times the number of fits, that are worth loading numba, and how many
#: take as long as all other operations of an iteration on one cost of one sample
WORTH_LOADING, OTHER_WORK = 1e9, 700.0

#: largest distances from the prior to the optimum up to which dual is faster than interior point whatever the size, if
#: no coefficient is free: at first, and if the fit with the penalty before took few passes; and what few are
NEAR_PRIOR, NEAR_PRIOR_NEXT, FEW_PASSES = 10.0, 100.0, 10

#: passes of dual before interior point is tried instead, if dual is tried because the optimum is near the prior, or
#: because the training loss may vanish without a ridge; it needs a dozen if that is so
FIRST_DUAL_PASSES = 40

#: number of coefficients above which "auto" uses dual if interior-point cannot be used: without a ridge, with one, and
#: for oracles that are solvers, of which bundle needs fewer passes
DUAL_COEFFICIENTS, DUAL_COEFFICIENTS_RIDGE, DUAL_COEFFICIENTS_SLOW_ORACLE = 500, 120, 500

#: number of samples from which on "auto" uses dual for any number of coefficients if decisions can be pooled and there
#: is no cone form: it asked such oracles for 0.56 to 0.67 times as many rows as bundle, which is worth loading numba
POOL_FROM = 100

#: limit of passes of bundle if another solver comes next; with a warm start it needs a few dozen
FIRST_PASSES = 200

#: largest number of coefficients of a shared model for which "auto" tries bundle before all others but lbfgs: its
#: program is tiny, and a dozen passes close the gap
FEW_COEFFICIENTS = 100


@cache
def has_numba() -> bool:
    """Whether numba is installed; importing it takes a moment, so it is not imported here."""
    return find_spec("numba") is not None


class Case:
    """Properties of a training problem that the rules use."""

    def __init__(self, objective: LinearObjective, run: Run) -> None:
        self.objective, self.run = objective, run
        self.region, self.d = objective.region, objective.normals.shape[1]
        self.in_memory = objective.in_memory
        self.n_coef = int(np.prod(objective.shape))
        self.penalty = penalty_kind(objective.alpha, objective.l1_ratio)

    def serves(self, name: str) -> bool:
        """Whether a solver can minimise this objective."""
        solver = SOLVERS[name]
        dense = solver.supports_sparse or not self.objective.design.sparse
        return dense and not solver.shortcomings(self.region, self.objective.loss, self.penalty)

    @cached_property
    def smooth(self) -> bool:
        """Whether the region is strongly convex: the loss is then smooth except where 2 c_hat = c."""
        return self.serves("lbfgs")

    @cached_property
    def newton(self) -> bool:
        """Whether Newton's method can be used, and its steps are affordable."""
        return self.serves("newton") and newton_work(self.objective) <= INTERIOR_POINT_LIMIT

    @cached_property
    def diversified(self) -> bool:
        """Whether decisions can be smoothed and best ones hold many assets: the loss is then nearly smooth.

        Interior point is faster, where its iterations are affordable.
        """
        if self.smooth or not self.newton or self.interior_point or not isinstance(self.objective, InMemoryObjective):
            return False
        if not self.objective.loss.needs_decisions or self.objective.undecided:
            return False
        W = self.objective.W
        return int(np.count_nonzero(W > 1e-6)) >= DIVERSIFIED * len(W)

    @cached_property
    def interior_point(self) -> bool:
        """Whether the interior-point method can be used, and its iterations are affordable."""
        return self.serves("interior-point") and interior_point_work(self.objective, self.run) <= INTERIOR_POINT_LIMIT

    @cached_property
    def conic(self) -> bool:
        """Whether the region has a cone form, and the whole problem is small enough for one conic program."""
        size = self.objective.n_samples * self.d
        numbers = float(size) * self.objective.design.n_coef
        return self.serves("conic") and size <= CONIC_LIMIT and numbers <= CONIC_NUMBERS

    @cached_property
    def separable(self) -> bool:
        """Whether the region is a product of several or a box, and every cost has coefficients of its own."""
        region: Any = self.region
        if self.objective.design.shared or not self.serves("separable"):
            return False
        several = len(region.blocks(self.objective.shape[0])) > 1
        box = not IntervalSolver.shortcomings(region, self.objective.loss, self.penalty)
        return several or (box and IntervalSolver.fits(self.objective, self.run))

    @cached_property
    def many_samples(self) -> bool:
        """Whether there are many samples, so that a fit to some of them is a good start, and the oracle is fast."""
        if self.objective.n_samples < MANY_SAMPLES or self.region.oracle_is_solver:
            return False
        if self.n_coef <= (BUNDLE_FIRST if has_numba() else BUNDLE_FIRST_WITHOUT_NUMBA):
            return True
        if not ends_with_undecided_rows(self.objective) or self.objective.design.shared:
            return False
        unknowns = (self.d - self.objective.normals.shape[0]) * self.objective.design.n_coef
        return unknowns <= (UNDECIDED_FIRST if self.penalty == "none" else UNDECIDED_FIRST_RIDGE)

    @cached_property
    def interior_point_is_slow(self) -> bool:
        """Whether interior-point iterations take so long that a faster method is worth the time of loading numba."""
        if self.smooth or self.separable or not self.serves("interior-point"):
            return False
        work = interior_point_work(self.objective, self.run) + OTHER_WORK * self.objective.n_samples * self.d
        return self.run.n_fits * work >= WORTH_LOADING

    @cached_property
    def distance(self) -> float:
        """Distance of the optimum from the prior, in typical costs, as the gradient at the prior predicts it.

        It is infinite without a ridge, and where a gradient takes long.
        """
        objective = self.objective
        if self.penalty != "ridge" or self.region.oracle_is_solver:
            return np.inf
        if not isinstance(objective, InMemoryObjective) or objective.undecided:
            return np.inf
        held = objective.l2 > 0
        G = objective.loss_gradient(objective.prior, self.run.memory)[1]
        return float(np.linalg.norm(G[:, held] / objective.l2[held]))

    @cached_property
    def large(self) -> bool:
        """Whether there are so many coefficients that dual is the fastest solver, if numba is installed."""
        if self.smooth or self.separable:
            return False
        if not self.serves("interior-point"):
            if not self.region.oracle_is_solver:
                return self.n_coef > (DUAL_COEFFICIENTS_RIDGE if self.penalty == "ridge" else DUAL_COEFFICIENTS)
            pays = self.objective.n_samples >= POOL_FROM and can_pool(self.objective) and not self.serves("conic")
            return pays or self.n_coef > DUAL_COEFFICIENTS_SLOW_ORACLE
        if not self.interior_point:
            return True
        if not InteriorPointSolver.fits(self.objective, self.run):
            # There is no time for it; without a ridge bundle is better, if it can be used.
            return self.penalty == "ridge" or self.n_coef > BUNDLE_LIMIT
        if self.penalty == "ridge" and self.may_interpolate:
            return True
        # No finite number of decisions of a curved region is enough for dual.
        if not self.interior_point_is_slow or not has(self.region, "standard_form"):
            return False
        one_pass = float(self.objective.n_samples) * self.d * self.objective.design.n_coef
        work = interior_point_work(self.objective, self.run)
        return work > self.dual_from * one_pass

    @property
    def dual_from(self) -> float:
        """Multiplications of an interior-point iteration, relative to those of a pass, from which on dual is faster.

        Dual needs more passes the farther the optimum is from the prior and the more directions decisions have, and
        fewer with more samples per coefficient.  The formula was fitted to problems in which both solvers were timed:
        simplices, selections, assignments and paths.  It is right up to a factor of about two.
        """
        n_equalities, samples = self.objective.normals.shape[0], self.objective.n_samples
        passes = (self.d - n_equalities) * np.sqrt(self.distance * self.objective.design.n_coef / samples)
        multiple = DUAL_FROM_PASSES if n_equalities else DUAL_FROM_PASSES_WITHOUT_EQUALITIES
        return DUAL_FROM + multiple * float(passes)

    @property
    def bundle_limit(self) -> int:
        """Largest number of coefficients for which bundle is used if the other solvers did not close the gap.

        After dual it is used only where dual finds good models but may not prove it, and interior point cannot be used.
        """
        if not self.large:
            return BUNDLE_LIMIT
        return 0 if self.penalty == "ridge" or self.serves("interior-point") else BUNDLE_AFTER_DUAL

    @cached_property
    def may_interpolate(self) -> bool:
        """Whether there are so few samples that a model may decide about all of them without loss.

        Points in general position with random labels of two classes can be separated up to two samples per
        coefficient.  With more directions in which decisions vary the number grows with their logarithm.
        """
        if self.penalty == "l1" or self.region.oracle_is_solver or not has(self.region, "standard_form"):
            return False
        directions = self.d - self.objective.normals.shape[0]
        if self.objective.design.shared or directions < 1 or not self.interior_point_is_slow:
            return False
        return self.objective.n_samples <= (2.0 + np.log2(directions)) * self.objective.design.n_coef

    @cached_property
    def near_prior(self) -> bool:
        """Whether a ridge on all coefficients moves the prior so little that few decisions change."""
        if not (self.objective.l2 > 0).all() or not self.interior_point_is_slow or not has_numba():
            return False
        last: Any = self.run.states.get("dual")
        if last is not None and last.n_iter > FEW_PASSES:
            return False
        return self.distance <= (NEAR_PRIOR if last is None else NEAR_PRIOR_NEXT)

    @property
    def fast_interior_point(self) -> bool:
        """Whether the interior-point method is faster than bundle in spite of many samples: at most one equality."""
        return is_simple(self.region, self.d) and self.objective.n_samples < 2 * MANY_SAMPLES

    @property
    def tiny_shared_model(self) -> bool:
        """Whether one model with few coefficients predicts all costs."""
        return self.objective.design.shared and self.n_coef <= FEW_COEFFICIENTS


class Rule(NamedTuple):
    """Try a solver if a condition holds and no rule above has chosen it."""

    solver: str
    condition: Callable[[Case], bool]
    why: str


#: rules for data in memory; the solvers are tried in this order
RULES = [
    Rule("separable", lambda case: case.separable, "small problems take less time than a large one"),
    Rule(
        "newton",
        lambda case: case.smooth and case.newton and case.n_coef <= NEWTON_FIRST,
        "a step costs as much as a few gradients",
    ),
    Rule("lbfgs", lambda case: case.smooth, "the loss is smooth almost everywhere"),
    Rule("newton", lambda case: case.smooth and case.newton, "continues where lbfgs stalls"),
    Rule("newton", lambda case: case.diversified, "the loss is nearly smooth, and interior point too slow"),
    Rule(
        "bundle",
        lambda case: not case.smooth and case.many_samples and not case.fast_interior_point,
        "starts from the fit to a sample, and needs few passes",
    ),
    Rule("bundle", lambda case: not case.smooth and case.tiny_shared_model, "its program is tiny"),
    Rule("dual", lambda case: case.large, "its time is linear in the number of coefficients"),
    Rule("dual", lambda case: case.may_interpolate, "needs few passes if the training loss vanishes"),
    Rule("dual", lambda case: case.near_prior, "few decisions differ from those of the prior"),
    Rule("interior-point", lambda case: case.interior_point, "polyhedra, perhaps with a quadratic constraint"),
    Rule("bundle", lambda case: not case.smooth and case.many_samples, "continues where interior point stalls"),
    Rule("conic", lambda case: case.conic, "continues where the others do not close the gap"),
    Rule(
        "bundle",
        lambda case: not case.smooth and not case.conic and case.n_coef <= case.bundle_limit,
        "needs nothing but the oracle",
    ),
]

#: rules for data of which only sums over rows are known
RULES_FOR_CHUNKS = [
    Rule("lbfgs", lambda case: case.smooth, "the loss is smooth almost everywhere"),
    Rule("bundle", lambda case: True, "needs nothing but the oracle"),
]


def choose_solvers(objective: LinearObjective, run: Run | None = None) -> list[str]:
    """Return the solvers that ``solver="auto"`` tries, in order, until the duality gap is closed.

    The rules are ``skspo.solvers.auto.RULES``, or ``RULES_FOR_CHUNKS`` if data come in chunks.  Solvers that are too
    slow for ``time_limit`` are left out.  For data in memory ``sgd`` is used if no rule applies; it is also added if
    the oracle may be a heuristic (``OracleRegion(on_suboptimal="warn")``), but then it runs only if the oracle was
    found not to be optimal, because the other solvers need exact decisions.

    Parameters
    ----------
    objective : LinearObjective
    run : Run, optional
        Gives the time limit; by default there is none.

    Returns
    -------
    names : list of str
    """
    return _choose(Case(objective, Run() if run is None else run))


def _choose(case: Case) -> list[str]:
    objective, run = case.objective, case.run
    names: list[str] = []
    for rule in RULES if case.in_memory else RULES_FOR_CHUNKS:
        if rule.solver not in names and rule.condition(case) and SOLVERS[rule.solver].fits(objective, run):
            names.append(rule.solver)
    if "dual" in names and not has_numba():
        warn_once(
            "numba cannot be imported, so solver='auto' does without the solver 'dual', which is much faster for "
            "problems with many coefficients. Install it: pip install numba"
        )
        names.remove("dual")
        if not names and case.n_coef <= BUNDLE_LIMIT:
            names.append("bundle")
    if case.in_memory and (not names or objective.region.may_be_inexact):
        names.append("sgd")
    return names


def make_solvers(objective: LinearObjective, run: Run, solver: str | Solver, **params: object) -> list[Solver]:
    """Return the solvers to try, for a name or an instance, after checking that they can solve the problem.

    Parameters
    ----------
    objective : LinearObjective
    run : Run
    solver : str or Solver
        A name of ``SOLVERS``, "auto", or an instance, which then uses its own parameters.
    **params
        Parameters of the estimator; each solver takes those that it has.
    """
    if isinstance(solver, Solver):
        chosen = [solver]
    else:
        case = Case(objective, run)
        names = _choose(case) if solver == "auto" else [solver]
        if not isinstance(solver, str) or not set(names) <= set(SOLVERS):
            raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, or a Solver; got {shown(solver)}.")
        chosen = []
        for name in names:
            known = SOLVERS[name]._get_param_names()
            own = {key: value for key, value in params.items() if key in known}
            steps = None if "lbfgs" in names else NEWTON_STEPS
            first = {
                "lbfgs": LBFGS_FIRST if "newton" in names else None,
                "newton": steps,
                "bundle": FIRST_PASSES,
                "dual": FIRST_DUAL_PASSES if "interior-point" in names and not case.large else None,
            }.get(name)
            another = [other for other in names[names.index(name) + 1 :] if not SOLVERS[other].tolerates_inexact]
            if another and own.get("max_iter") is None:
                own["max_iter"] = first
            chosen.append(SOLVERS[name](**own))
    penalty = penalty_kind(objective.alpha, objective.l1_ratio)
    for candidate in chosen:
        check_solver_serves(candidate, objective.region, objective.loss, penalty, SOLVERS)
        check_in_memory(candidate, objective, SOLVERS)
    return chosen
