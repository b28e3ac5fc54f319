"""Run solvers for an objective.

``minimize`` splits products (``product``), starts from the fit to an easier problem and leaves out rows of negligible
weight (``steps``), gives the solvers their turns (``auto``), each from the best model so far, and checks oracles and
the result (``checks``): the first one whose gap is closed, or the best objective together with the best bound of
several solvers.  ``minimize_spo`` minimizes the SPO loss by one solver, from the SPO+ fit.

Turns
-----
No rule can know how degenerate a problem is, and so which solver is the fastest.  Estimates (``Solver.estimate``) order
the solvers.  The first one gets a budget of a multiple of its estimate.  If it has not closed the gap by then, and does
not seem to close it soon, it pauses and the next one gets the same budget, and so on round, with budgets that double.
A paused solver goes on where it was.  The total is a small multiple of the work of the best solver, however wrong the
estimates are.

Work is counted, not timed: the same data give the same model on every machine, whatever else it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache

import numpy as np

from .._training.in_memory import InMemoryObjective
from .._training.objective import ZERO_BOUND, LinearObjective
from .._training.run import Run
from .._utils.limits import Budget, TimeIsUp
from .._utils.progress import Activity
from ..losses import SPOPlusLoss
from ..regions.capabilities import has, knows_hull
from .auto import SOLVERS, SolverOptions, make_solvers
from .base import STEP, Progress, Result, Solver, Status, combined
from .checks import (
    Chain,
    Reference,
    check_decided,
    check_oracle,
    check_result,
    guarded,
    model_without_loss,
    summary,
    unknown,
    value_in_time,
)
from .product import fit_factors
from .spo.descent import least_absolute
from .steps import fit_heavy_rows, fit_relaxation, fit_sample

#: budget of the first turn, as a multiple of the estimate of the first solver
FIRST_TURN = 2.0

#: a solver that can pause has no turn while its estimate is more than this multiple of the budget: estimates may be ten
#: times too large, and a turn of a few iterations is in vain.  Others have none while it is more than the budget.
TOO_LARGE = 10.0


def minimize(
    objective: LinearObjective,
    run: Run,
    options: SolverOptions,
    start: np.ndarray | None = None,
    *,
    all_rows: bool = False,
) -> tuple[Result, Solver]:
    """Choose solvers and run them, from ``start`` or from the fit to an easier problem.

    Returns the result and the solver that found the coefficients.  Unless ``all_rows``, rows of negligible weight may
    be left out of the search.
    """
    reference: list[Reference] = []
    try:
        with run.deadline.enforced():
            check_decided(objective, run)  # the choice may prepare the region
            if has(objective.region, "blocks") and (found := fit_factors(objective, run, options, start, minimize)):
                return found
            if start is None and not knows_hull(objective.region):
                reference = fit_relaxation(objective, run, options, minimize)
                start = reference[0][0] if reference else None
            light = not all_rows and isinstance(objective, InMemoryObjective) and objective.light.any()
            if light and (found := fit_heavy_rows(objective, run, options, start, minimize)):
                return found
            solvers = make_solvers(objective, run, **options._asdict())
    except TimeIsUp as error:
        name = "sgd" if options.solver == "auto" else options.solver  # sgd needs nothing of the region
        Theta = objective.least_squares if start is None else start
        return unknown(Theta, str(error)), SOLVERS[name]() if isinstance(name, str) else name
    return run_solvers(objective, run, solvers, start, known=reference)


def minimize_spo(
    objective: InMemoryObjective,
    run: Run,
    solver: Solver,
    options: SolverOptions,
    *,
    init: str = "spo+",
    start: np.ndarray | None = None,
) -> tuple[Result, Solver]:
    """Minimize the SPO loss by one solver, from ``start`` or from the model that ``init`` names.

    ``options`` are those of the SPO+ fit, if it is the start.
    """
    with Activity("", getattr(solver, "verbose", 0)) as activity:
        try:
            with run.deadline.enforced():
                check_decided(objective, run)
                if start is None:
                    progress = Progress(f"start ({init})", objective, run, options.verbose)
                    with progress.task or nullcontext():
                        start = spo_start(objective, run, options, init)
                    progress(0, value_in_time(objective, start), force=True)
        except TimeIsUp as error:
            return unknown(objective.least_squares, str(error)), solver
        result, last = run_solvers(objective, run, [solver], start, spo_references(objective, start))
        activity.finish(summary(objective, result, last), inside=False)
        return result, last


def spo_start(objective: InMemoryObjective, run: Run, options: SolverOptions, init: str) -> np.ndarray:
    """Coefficients from which to minimize the SPO loss; the SPO+ fit takes at most half of the time."""
    if init == "least_squares":
        return objective.least_squares
    if init == "absolute_error":
        return least_absolute(objective, run.deadline)
    surrogate = objective.with_loss(SPOPlusLoss(objective.loss.region))
    half = run.with_deadline(run.deadline.share(0.5))
    return minimize(surrogate, half, options)[0].coef


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


def run_solvers(
    objective: LinearObjective,
    run: Run,
    solvers: list[Solver],
    start: np.ndarray | None = None,
    references: Callable[[], list[Reference]] | None = None,
    known: Sequence[Reference] = (),
) -> tuple[Result, Solver]:
    """Give at least one solver its turns until one closes the gap, and check the result; see ``minimize``.

    The result is not worse than ``known`` models and ``references``, by default those of the objective.
    """
    verbose = max(getattr(solver, "verbose", 0) for solver in solvers)
    with run.deadline.enforced(), Activity("", verbose) if verbose else nullcontext() as activity:
        try:
            check_decided(objective, run)
            # before the solvers, so that their time counts
            known = [*known, *(references or objective.references)()]
        except TimeIsUp as error:
            Theta, value = known[0] if known else (objective.least_squares if start is None else start, np.inf)
            return unknown(Theta, str(error), value), solvers[0]
        optimal = model_without_loss(objective)
        if optimal is None:
            chain = run_chain(objective, run, solvers, start, known)
            result, solver = check_result(objective, run, chain, known)
        else:
            result, solver = optimal, solvers[0]
        if activity is not None:
            activity.finish(summary(objective, result, solver), inside=False)
        return result, solver


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
            return Status.FAILED  # these need no exact decisions, and are in vain where decisions are exact
        try:
            if deadline.reached or deadline.left() <= 0:
                raise TimeIsUp
            rows = loaded() if solver.loads_rows(objective) else objective
            if start is None and solver.starts_from_sample:
                start = first_start = fit_sample(rows, run, solver, minimize)
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
    run.paused.clear()  # the run may be kept, and sent to other processes
    if best is None:
        # The time limit was reached before a solver had a result.
        Theta, value = references[0]
        if start is not None and start is not Theta:
            Theta, value = start, value_in_time(objective, start)
        best = solvers[0].result(objective, Theta, value, ZERO_BOUND, 0), solvers[0]
        found.append(best)
    return Chain(*best, found, trouble, late)


def take_turns(
    objective: LinearObjective, run: Run, solvers: list[Solver], turn: Callable[[Solver], Status | None]
) -> None:
    """Give solvers their turns, in this order.

    ``turn`` runs a solver, whose budget is that of ``run``.  It returns the status of the result, or None to end.  A
    solver that is not paused has no other turn.
    """
    waiting = [(solver, solver.estimate(objective, run).work if len(solvers) > 1 else np.inf) for solver in solvers]
    allowance = FIRST_TURN * (waiting[0][1] or STEP)  # work may be too little to be counted
    while waiting:
        for entry in list(waiting):
            solver, estimate = entry
            alone = len(waiting) == 1
            if not alone and estimate > (TOO_LARGE if solver.can_pause else 1.0) * allowance:
                continue
            goes_on = True
            while goes_on:
                run.budget, before = Budget(np.inf if alone else allowance), len(run.history)
                status = turn(solver)
                if status is None:
                    return
                goes_on = status is Status.PAUSED and closing(objective, run.history[before:], solver.tol)
            if status is not Status.PAUSED:
                waiting.remove(entry)
        least = min((estimate for _, estimate in waiting), default=0.0)
        allowance = max(2.0 * allowance, least / TOO_LARGE)  # so that somebody has a turn


def closing(objective: LinearObjective, history: list[tuple[float, int, float, float, str]], tol: float) -> bool:
    """Whether the gap goes down so fast that it will be closed in as many steps as these or fewer."""
    gaps = [objective.relative_gap(value, bound) for _, _, value, bound, _ in history if np.isfinite(bound)]
    half = len(gaps) // 2
    if half < 2:
        return False
    first, last = min(gaps[:half]), min(gaps)
    if not 0.0 < last < first < np.inf:
        return False
    return bool(np.log(max(last / tol, 1.0)) <= 2.0 * np.log(first / last))
