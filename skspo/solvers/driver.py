"""Choose solvers for an objective, run them, and check their results.

The driver chooses the solvers (``auto``) and their order, computes warm starts (the fit to a sample of the rows; for
the SPO loss the SPO+ fit), and checks results and oracles.

The result is the first one whose gap is closed, or the best objective together with the best bound of several solvers.
Then

    references   the result must not be worse than least squares, the zero model and the prior; a bound
                 that is larger than their objective is wrong and is dropped
    zeros        with an l1 penalty, coefficients that are zero up to rounding are set to zero
    oracle       an oracle that is a function of the user is checked again

Rows of negligible weight.  If weights differ by orders of magnitude, as those that decay with time do, rows that
matter less than the tolerance make problems ill-conditioned.  They are left out of the search, not of the objective: a
bound for the other rows with their weights is a bound for all, because losses are nonnegative, and the model is
evaluated on all rows.  If the gap is not closed then, the rows that matter at the model take part as well.

Oracles that are not optimal.  If the oracle is found to be a heuristic (``OracleRegion`` with
``on_suboptimal="warn"``), the value of the SPO+ loss is not reliable: if the oracle misses good decisions, it is too
small, even negative, and its minimiser is where the oracle is worst.  The cost of the decisions that the oracle makes
for the predictions is well defined.  The result is then the candidate with the smallest cost of decisions on the
training data, plus its penalty, among least squares, its intercept alone and the results of the solvers.  Nothing is
proved: the bound is -infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._training.certificate import NO_BOUND, ZERO_BOUND
from .._training.in_memory import InMemoryObjective
from .._training.objective import GAP_FLOOR, LinearObjective
from .._training.run import Run
from .._utils.deadline import TimeIsUp
from .._utils.progress import Activity
from ..losses import SPOPlusLoss
from ..regions.capabilities import has
from .auto import SOLVERS, make_solvers
from .base import Progress, Result, Solver, Status, certified, combined, rows_of
from .exact_zeros import with_exact_zeros
from .spo.descent import least_absolute
from .turns import take_turns

#: relative difference below which values are equal
SAME = 1e-12

#: relative difference above which a bound that is larger than a known value is wrong; less is rounding
WRONG = 1e-9

#: relative gap of the fit to a sample, which is only a warm start
SAMPLE_TOL = 1e-2

#: an oracle is not optimal if the objective is negative, or changes when it is evaluated again, by more than this share
REPEATED = 1e-6

#: a negative objective of at most this size, in units of the typical cost, is rounding
ROUNDED = 1e-9

#: rows may be left out of the search if their weights are at most this share of the mean weight: nearly equal weights
#: cause no trouble
LIGHT = 1e-3

#: share of the tolerance for all rows together that are left out of the search
LEFT_OUT = 0.1

#: searches on some of the rows at most, before one on all of them
SEARCHES = 5

#: share of the time that is left for the search without these rows; the rest is for the evaluation on all rows
FOR_SEARCH = 0.9

#: number of evaluations of candidates that are averaged if the oracle is random
REPEATS = 5


class SolverOptions(NamedTuple):
    """A solver, by name or as an instance, or "auto"; and the parameters of solvers that are not instances."""

    solver: str | Solver = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0


def minimise(
    objective: LinearObjective, run: Run, options: SolverOptions, start: np.ndarray | None = None
) -> tuple[Result, Solver]:
    """Choose solvers, check that they can solve the problem, and run them.

    Parameters
    ----------
    objective : LinearObjective
    run : Run
    options : SolverOptions
    start : ndarray, optional
        Coefficients to start from.

    Returns
    -------
    result : Result
    solver : Solver
        The one that found the coefficients.
    """
    tol = options.solver.tol if isinstance(options.solver, Solver) else options.tol
    kept = rows_that_matter(objective, tol)
    if kept is not None:
        found = minimise_on_rows(rows_of(objective), run, options, start, kept, tol)
        if found is not None:
            return found
    try:
        with run.deadline.enforced():
            check_decided(objective, run)  # the choice may prepare the region
            solvers = make_solvers(objective, run, **options._asdict())
    except TimeIsUp as error:
        name = "sgd" if options.solver == "auto" else options.solver  # sgd needs nothing of the region
        Theta = objective.least_squares if start is None else start
        return unknown(Theta, str(error)), SOLVERS[name]() if isinstance(name, str) else name
    return run_solvers(objective, run, solvers, start)


def rows_that_matter(objective: LinearObjective, tol: float) -> np.ndarray | None:
    """Whether each row takes part in the search; None if all do.

    The loss of a row is estimated by its weight times the size of its costs; the typical size is one.
    """
    if not isinstance(objective, InMemoryObjective) or objective.undecided or not objective.loss.has_dual_bound:
        return None
    if has(objective.region, "audit"):  # decisions that may be wrong are checked on all rows
        return None
    heavy = objective.weight > LIGHT * objective.weight.mean()
    if heavy.all():
        return None
    size = objective.weight * (1.0 + np.linalg.norm(objective.C, axis=1))
    order = np.argsort(size)
    light = np.cumsum(size[order]) <= LEFT_OUT * tol * size.sum()
    kept = np.ones(size.size, dtype=bool)
    kept[order[light]] = False
    kept |= heavy
    return None if kept.all() else kept


def minimise_on_rows(
    objective: InMemoryObjective,
    run: Run,
    options: SolverOptions,
    start: np.ndarray | None,
    kept: np.ndarray,
    tol: float,
) -> tuple[Result, Solver] | None:
    """Minimise on some of the rows and evaluate on all, adding rows until the gap is closed.

    None if rows have been added several times, or if no row is left to be added, and the gap is not closed.
    """
    kept, inner = kept.copy(), options._replace(tol=(1.0 - LEFT_OUT) * tol)
    if isinstance(options.solver, Solver) and type(options.solver) in SOLVERS.values():
        inner = inner._replace(solver=clone(options.solver).set_params(tol=inner.tol))
    deadline = run.deadline.share(FOR_SEARCH)
    try:
        with run.deadline.enforced():
            references = objective.references()  # before the solvers, so that their time counts
    except TimeIsUp:
        return None
    n_iter = 0
    for _ in range(SEARCHES):
        rows, dropped = np.flatnonzero(kept), np.flatnonzero(~kept)
        part = run.on_rows(rows, deadline)
        with Activity(f"{rows.size} of {kept.size} rows, the others have negligible weight", options.verbose):
            matter = objective.take(rows, 1.0)
            result, solver = run_solvers(matter, part, make_solvers(matter, part, **inner._asdict()), start)
        run.deadline.reached |= deadline.reached
        n_iter += result.n_iter
        start = result.coef
        result = result._replace(n_iter=n_iter, objective=np.inf)
        others = objective.take(dropped, 1.0)
        try:
            with run.deadline.enforced():
                losses = others.weight * others.losses(start)
                result = result._replace(objective=matter.value(start) + float(losses.sum()))
        except TimeIsUp:
            run.deadline.reached = True
            result = result._replace(status=Status.TIME_LIMIT, message=run.deadline.message)
        stopped_early = not result.converged
        result = guarded(objective, result, references, tol)
        if result.gap <= tol or stopped_early:
            progress = Progress("all rows", objective, run, options.verbose)
            progress(0, result.objective, result.lower_bound, force=True)
            return result, options.solver if isinstance(options.solver, Solver) else solver.set_params(tol=tol)
        size = LEFT_OUT * tol * max(result.objective, GAP_FLOOR * objective.trivial_value())
        matters = losses > size / dropped.size
        kept[dropped[matters]] = True
        if kept.all() or not matters.any():
            break
    return None


def minimise_spo(
    objective: InMemoryObjective,
    run: Run,
    solver: Solver,
    options: SolverOptions,
    *,
    init: str = "spo+",
    start: np.ndarray | None = None,
) -> tuple[Result, Solver]:
    """Minimise the SPO loss by one solver, from ``start`` or from the model that ``init`` names.

    ``options`` are those of the SPO+ fit, if it is the start.
    """
    with Activity("", getattr(solver, "verbose", 0)) as activity:
        try:
            with run.deadline.enforced():
                check_decided(objective, run)
                if start is None:
                    with Activity(f"start ({init})", options.verbose):
                        start = spo_start(objective, run, options, init)
        except TimeIsUp as error:
            return unknown(objective.least_squares, str(error)), solver
        result, last = run_solvers(objective, run, [solver], start, spo_references(objective, start))
        activity.finish(summary(objective, result, last), inside=False)
        return result, last


def spo_start(objective: InMemoryObjective, run: Run, options: SolverOptions, init: str) -> np.ndarray:
    """Coefficients from which to minimise the SPO loss; the SPO+ fit takes at most half of the time."""
    if init == "least_squares":
        return objective.least_squares
    if init == "absolute_error":
        return least_absolute(objective, run.deadline)
    surrogate = objective.with_loss(SPOPlusLoss(objective.loss.region))
    half = run.with_deadline(run.deadline.share(0.5))
    return minimise(surrogate, half, options)[0].coef


def spo_references(objective: InMemoryObjective, start: np.ndarray) -> Callable[[], list[Reference]]:
    """Models that the result must not be worse than: the start, least squares and the zero model."""

    def references() -> list[Reference]:
        visible, least_squares = (objective.design.visible(T, objective.free) for T in (start, objective.least_squares))
        if objective.offset is None:
            # The penalty is that of coefficients with the norm of the start.
            length = float(np.linalg.norm(least_squares))
            least_squares = least_squares * ((float(np.linalg.norm(visible)) or 1.0) / length if length else 1.0)
        # The start itself, and not its visible part: ties of predictions depend on rounding errors.
        return [(Theta, objective.value(Theta)) for Theta in (start, least_squares, np.zeros(objective.shape))]

    return references


def fit_sample(objective: LinearObjective, run: Run, solver: Solver) -> np.ndarray | None:
    """Fit to a sample of the rows, as a warm start; None if there are few rows.

    A large sample starts from a smaller one.  The fit takes at most half of the remaining time.
    """
    if objective.in_memory and not solver.starts_from_sample:
        return None
    sample = objective.sampled()
    if sample is None:
        return None
    verbose = getattr(solver, "verbose", 0)
    options = SolverOptions(tol=max(solver.tol, SAMPLE_TOL), random_state=0, verbose=verbose)
    with Activity(f"sample of {sample.n_samples} rows", verbose):
        return minimise(sample, run.on_sample(0.5), options)[0].coef


#: a model and its objective
Reference = tuple[np.ndarray, float]


def run_solvers(
    objective: LinearObjective,
    run: Run,
    solvers: list[Solver],
    start: np.ndarray | None = None,
    references: Callable[[], list[Reference]] | None = None,
) -> tuple[Result, Solver]:
    """Run solvers, each from where the last one stopped, until one closes the gap; then check the result.

    Parameters
    ----------
    objective : LinearObjective
    run : Run
    solvers : list of Solver
        At least one.  Those after the first that are ``tolerates_inexact`` run only if the oracle was found not to be
        optimal.
    start : ndarray, optional
        Coefficients to start from.
    references : callable, optional
        Returns models that the result must not be worse than; by default those of the objective.

    Returns
    -------
    result : Result
    solver : Solver
        The one that found the coefficients.
    """
    with run.deadline.enforced(), Activity("", max(getattr(solver, "verbose", 0) for solver in solvers)) as activity:
        result, solver = _run_solvers(objective, run, solvers, start, references)
        activity.finish(summary(objective, result, solver), inside=False)
        return result, solver


def summary(objective: LinearObjective, result: Result, solver: Solver) -> str:
    """Text that states a result."""
    text = f"{solver.name}: {result.status}, {result.n_iter} iterations, objective "
    text += f"{result.objective * objective.scale:.6g}"
    if not objective.loss.has_dual_bound or not np.isfinite(result.lower_bound):
        return text
    return f"{text}, bound {result.lower_bound * objective.scale:.6g}, gap {result.gap:.1e}"


def _run_solvers(
    objective: LinearObjective,
    run: Run,
    solvers: list[Solver],
    start: np.ndarray | None,
    references: Callable[[], list[Reference]] | None,
) -> tuple[Result, Solver]:
    try:
        check_decided(objective, run)
        known = (references or objective.references)()  # before the solvers, so that their time counts
    except TimeIsUp as error:
        Theta = objective.least_squares if start is None else start
        return unknown(Theta, str(error)), solvers[0]
    optimal = model_without_loss(objective)
    if optimal is not None:
        return optimal, solvers[0]
    return check_result(objective, run, run_chain(objective, run, solvers, start, known), known)


class Chain(NamedTuple):
    """Results of a sequence of solvers."""

    best: Result  # the best objective, with the best bound
    solver: Solver  # the one that found it
    found: list[tuple[Result, Solver]]  # the result of each solver
    trouble: str  # why not all solvers ran
    late: bool  # whether that was because of the time limit


def run_chain(
    objective: LinearObjective, run: Run, solvers: list[Solver], start: np.ndarray | None, references: list[Reference]
) -> Chain:
    """Give solvers their turns, each from where the last one stopped, until the gap is closed."""
    best: tuple[Result, Solver] | None = None
    found: list[tuple[Result, Solver]] = []
    deadline, trouble, late, first_start = run.deadline, "", False, start
    loaded = cache(objective.loaded)

    def turn(solver: Solver) -> Status | None:
        nonlocal best, start, first_start, trouble, late
        if found and solver.tolerates_inexact and not objective.inexact:
            return Status.FAILED
        try:
            if deadline.reached or deadline.left() <= 0:
                raise TimeIsUp
            rows = objective if solver.supports_chunks else loaded()
            if start is None:
                start = first_start = fit_sample(rows, run, solver)
            # If the oracle is not optimal, the last result may be poor.
            result = solver.solve(rows, run, first_start if objective.inexact else start)
            if type(solver) not in SOLVERS.values():
                # Solvers of users may not have evaluated the objective.
                result = result._replace(objective=objective.value(result.coef))
                result = guarded(objective, result, [], solver.tol)
            check_oracle(objective, result)
        except TimeIsUp:
            deadline.reached = late = True
            trouble = deadline.message
            return None
        except ImportError as error:
            if best is None and solver is solvers[-1]:
                raise
            trouble = f"{solver.name}: {error}"
            return Status.FAILED
        found.append((result, solver))
        if best is not None:
            better = solver if result.objective < best[0].objective else best[1]
            best = combined(objective, best[0], result, solver.tol), better
        else:
            best = result, solver
        start = best[0].coef
        return None if best[0].converged and not objective.inexact else result.status

    take_turns(objective, run, solvers, turn)
    if best is None:
        # The time limit was reached before a solver had a result.
        Theta, value = references[0] if start is None else (start, _value_in_time(objective, start))
        best = solvers[0].result(objective, Theta, value, ZERO_BOUND, 0), solvers[0]
        found.append(best)
    return Chain(*best, found, trouble, late)


def check_result(
    objective: LinearObjective, run: Run, chain: Chain, references: list[Reference]
) -> tuple[Result, Solver]:
    """Compare the best result with the references, set exact zeros, and drop the bound if the oracle is inexact."""
    result, solver = chain.best, chain.solver
    if not result.converged:
        result = stopped(result, chain.trouble, chain.late)
    try:
        if not objective.inexact:
            result = guarded(objective, result, references, solver.tol)
            if objective.loss.has_dual_bound:
                result = with_exact_zeros(objective, result, min(known for _, known in references), solver.tol)
        if objective.inexact:
            return best_decisions(objective, run, chain)
    except TimeIsUp:
        pass  # the result is valid without exact zeros
    return without_bound(objective, result), solver


def model_without_loss(objective: LinearObjective) -> Result | None:
    """Optimal model if every decision costs the same, so that relative gaps are undefined; else None."""
    if not objective.loss.has_dual_bound or objective.trivial_value() != 0.0 or objective.inexact:
        return None
    nearby = objective.prior if objective.alpha > 0 else objective.least_squares
    try:
        for Theta in map(objective.canonical, (nearby, np.zeros(objective.shape))):
            value = objective.value(Theta)
            result = Result(Theta, value, value, 1, Status.CONVERGED, radius=np.inf, gap=0.0)
            check_oracle(objective, result)
            if value <= 0.0 and not objective.inexact:
                return result
    except TimeIsUp:
        pass  # the solvers will reach the time limit, too
    return None


def unknown(Theta: np.ndarray, message: str) -> Result:
    """Result if there was no time to evaluate any model."""
    return Result(Theta, np.inf, 0.0, 0, Status.TIME_LIMIT, message, radius=np.inf, gap=np.inf)


def stopped(result: Result, trouble: str, late: bool) -> Result:
    """Add to a result why no other solver ran, and whether that was because of the time limit."""
    message = result.message
    if trouble not in message:
        message = "; ".join(filter(None, (message, trouble)))
    return result._replace(message=message, status=Status.TIME_LIMIT if late else result.status)


def check_decided(objective: LinearObjective, run: Run) -> None:
    """Raise ``TimeIsUp`` if there was no time for the optimal decisions of all samples."""
    if isinstance(objective, InMemoryObjective) and objective.undecided:
        run.deadline.reached = True
        raise TimeIsUp(
            f"{run.deadline.message} before the best decisions of all samples were known, so that no model could "
            "be evaluated"
        )


def _value_in_time(objective: LinearObjective, Theta: np.ndarray) -> float:
    try:
        return objective.value(Theta)
    except TimeIsUp:
        return np.inf


def check_oracle(objective: LinearObjective, result: Result) -> None:
    """Check the oracle again after a fit, if it is one that may be wrong (see ``OracleRegion``).

    Depending on the region it raises an error or records the fault.
    """
    region: Any = objective.region
    if not has(region, "audit") or objective.inexact:
        return
    d = objective.normals.shape[1]
    value = objective.value(result.coef)
    region.audit(d)  # after the value, which adds decisions
    if objective.inexact:
        return
    size = REPEATED * max(abs(value), abs(result.objective), 1e-2 * objective.trivial_value())
    if not abs(value - result.objective) <= max(size, ROUNDED):
        region.distrust(
            f"the oracle does not give the same answers again: the objective of the same model was "
            f"{result.objective * objective.scale:.9g} and is {value * objective.scale:.9g}.",
            d,
        )
    elif value < -max(size, ROUNDED):
        region.distrust(
            f"the oracle is not optimal: the SPO+ loss of a model is {value * objective.scale:.9g}, and optimal "
            "decisions never make it negative.",
            d,
        )


def without_bound(objective: LinearObjective, result: Result) -> Result:
    """If the oracle is not optimal, evaluate the result again and drop its bound."""
    if not objective.inexact:
        return result
    return unproved(result, _value_in_time(objective, result.coef))._replace(wrong_bound=False)


def unproved(result: Result, value: float) -> Result:
    """Result with this objective and without a bound, which therefore has not converged."""
    status = Status.NUMERICAL_LIMIT if result.converged else result.status
    return result._replace(
        objective=value, lower_bound=NO_BOUND.value, radius=NO_BOUND.radius, gap=np.inf, status=status
    )


def best_decisions(objective: LinearObjective, run: Run, chain: Chain) -> tuple[Result, Solver]:
    """Best of the results, least squares and its intercept alone by the cost of decisions on the training data.

    It is used if the oracle is not optimal; the result has no bound.  If least squares or the intercept is best, the
    status is that of the last solver.  The zero model is not a candidate: a heuristic may not accept zero costs.
    """
    last, last_solver = chain.found[-1]
    candidates = [(result, solver) for result, solver in chain.found if np.isfinite(result.coef).all()]
    constant = np.zeros(objective.shape)
    constant[:, objective.design.n_features :] = objective.least_squares[:, objective.design.n_features :]
    known = [objective.least_squares, constant] if constant.any() else [objective.least_squares]
    candidates = [*((last._replace(coef=objective.canonical(Theta)), last_solver) for Theta in known), *candidates]
    models = [result.coef for result, _ in candidates]
    costs = np.array([objective.decision_cost(Theta) for Theta in models])
    repeatable = objective.decision_cost(models[0]) == costs[0]
    for k in range(1, 1 if repeatable else REPEATS):
        if run.deadline.left() <= 0:
            break
        costs += (np.array([objective.decision_cost(Theta) for Theta in models]) - costs) / (k + 1)
    # Ties go to least squares.
    result, solver = candidates[int(np.argmin(costs))]
    result = stopped(unproved(result, float(costs.min())), chain.trouble, chain.late)
    if repeatable:
        result = with_exact_zeros(objective, result, np.inf, solver.tol)
    return without_bound(objective, result), solver


def guarded(objective: LinearObjective, result: Result, references: Iterable[Reference], tol: float) -> Result:
    """Replace the result by a reference that is better, and drop a bound that is above a known objective."""
    best, value = result.coef, result.objective if np.isfinite(result.objective) else np.inf
    for Theta, known in references:
        if known < value and not value - known <= SAME * abs(value):
            best, value = Theta, known
    bound, radius, wrong = result.lower_bound, result.radius, result.wrong_bound
    if objective.loss.has_dual_bound and bound > value + WRONG * max(abs(value), GAP_FLOOR * objective.trivial_value()):
        (bound, radius), wrong = ZERO_BOUND, True
    status = Status.FAILED if wrong else result.status
    result = result._replace(coef=best, objective=value, lower_bound=bound, radius=radius, status=status)
    result = certified(objective, result, tol)
    return result._replace(wrong_bound=wrong and not result.converged)
