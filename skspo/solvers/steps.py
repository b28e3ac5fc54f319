"""Steps of a fit beside the solvers: easier problems to start from, and the search without rows of negligible weight.

A start is the fit to an easier problem.  It is a model and nothing else: no bound is taken from it.

Sample.  Solvers whose passes over many rows are slow start from the fit to a sample of the rows, a large sample from
the fit to a smaller one, and so on.  The last level dominates the time.

Relaxation.  S is a region of integers, R its relaxation, without integrality.  With the decisions w_i that are optimal
in S, and so are feasible in R,

    objective_S(Theta) <= objective_R(Theta) = sum_i a_i (support_R(c_i - 2 c_hat_i) + (2 c_hat_i - c_i).w_i) + penalty

because support_S <= support_R, with equality if R is the convex hull of S.  So the value of a model for R is an upper
bound of its value for S.  Lower bounds of R prove nothing for S: decisions of R may be outside of conv(S).  (The loss
of R with its own optimal decisions in place of w_i bounds nothing.)

Rows of negligible weight.  If weights differ by orders of magnitude, as those that decay with time do, rows that
matter less than the tolerance make problems ill-conditioned.  They are left out of the search, not of the objective: a
bound for the other rows with their weights is a bound for all, because losses are nonnegative, and the model is
evaluated on all rows.  If the gap is not closed then, the rows that matter at the model take part as well.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
from sklearn.base import clone

from .._training.in_memory import InMemoryObjective
from .._training.objective import LinearObjective
from .._training.run import Derived, Run
from .._utils.limits import TimeIsUp
from .._utils.progress import Activity
from ..losses import SPOPlusLoss
from ..regions.capabilities import has
from ..regions.check import check_region
from .auto import SOLVERS, SolverOptions, choose_solvers
from .base import START_TOL, Progress, Result, Solver, Status
from .checks import Reference, guarded, value_in_time

#: share of the remaining time that such a fit may take
FOR_START = 0.5

#: share of the tolerance for all rows together that are left out of the search
LEFT_OUT = 0.1

#: searches on some of the rows at most, before one on all of them
SEARCHES = 5

#: share of the time that is left for searches on parts of a problem; the rest is for the evaluation of the whole
FOR_SEARCH = 0.9

#: ``driver.minimize``
Fit = Callable[..., tuple[Result, Solver]]


def fit_easier(easier: LinearObjective, part: Run, progress: Progress, tol: float, fit: Fit) -> np.ndarray:
    """Coefficients of the fit to an easier problem."""
    options = SolverOptions(
        tol=max(tol, START_TOL), random_state=0, verbose=progress.task.verbose if progress.task else 0
    )
    with progress.task or nullcontext():
        return fit(easier, part, options)[0].coef


def fit_sample(objective: LinearObjective, run: Run, solver: Solver, fit: Fit) -> np.ndarray | None:
    """Fit to a sample of the rows; None if there are few rows.  A large sample starts from a smaller one."""
    sample = objective.sampled()
    if sample is None:
        return None
    progress = Progress(f"sample of {sample.n_samples} rows", objective, run, getattr(solver, "verbose", 0))
    start = fit_easier(sample, run.on_sample(FOR_START), progress, solver.tol, fit)
    progress(0, np.nan, force=True)  # the solver evaluates it on all rows
    return start


def fit_relaxation(objective: LinearObjective, run: Run, options: SolverOptions, fit: Fit) -> list[Reference]:
    """Fit to the relaxation of a region of integers, and its objective; nothing if there is none, or if it is slow."""
    region = objective.region
    if not isinstance(objective, InMemoryObjective) or not objective.loss.has_dual_bound:
        return []
    if run.derived.relaxation is None:
        try:
            easier_region = region.relaxation()
        except TypeError:  # there is none
            return []
        if easier_region is region:
            return []
        run.derived.relaxation = check_region(easier_region, objective.C.shape[1]), Derived()
    relaxed, derived = run.derived.relaxation
    easier, part = objective.with_loss(SPOPlusLoss(relaxed), relaxed), Run(run.deadline.share(FOR_START), derived)
    if least_work(easier, part) > least_work(objective, run):
        return []
    progress = Progress("relaxation", objective, run, options.verbose)
    Theta = fit_easier(easier, part, progress, options.tol, fit)
    value = value_in_time(objective, Theta)
    progress(0, value, force=True)
    return [(Theta, value)]


def least_work(objective: LinearObjective, run: Run) -> float:
    """Estimate of the solver that is expected to do the least work."""
    return SOLVERS[choose_solvers(objective, run)[0]].estimate(objective, run).work


def rows_that_matter(objective: LinearObjective, tol: float) -> np.ndarray | None:
    """Whether each row takes part in the search; None if all do.

    The loss of a row is estimated by its weight times the size of its costs; the typical size is one.
    """
    if not isinstance(objective, InMemoryObjective) or objective.undecided or not objective.loss.has_dual_bound:
        return None
    if has(objective.region, "audit"):  # decisions that may be wrong are checked on all rows
        return None
    heavy = ~objective.light
    size = objective.weight * (1.0 + np.linalg.norm(objective.C, axis=1))
    order = np.argsort(size)
    light = np.cumsum(size[order]) <= LEFT_OUT * tol * size.sum()
    kept = heavy.copy()
    kept[order[~light]] = True
    return None if kept.all() else kept


def fit_heavy_rows(
    objective: LinearObjective, run: Run, options: SolverOptions, start: np.ndarray | None, fit: Fit
) -> tuple[Result, Solver] | None:
    """Minimize on the rows that matter and evaluate on all, adding rows until the gap is closed.

    None if all rows matter, if rows have been added several times, or if no row is left to be added.
    """
    instance = options.solver if isinstance(options.solver, Solver) else None
    tol = options.tol if instance is None else instance.tol
    kept = rows_that_matter(objective, tol)
    if kept is None or not isinstance(objective, InMemoryObjective):
        return None
    inner = options._replace(tol=(1.0 - LEFT_OUT) * tol)
    if type(instance) in SOLVERS.values():
        inner = inner._replace(solver=clone(instance).set_params(tol=inner.tol))
    deadline, n_iter = run.deadline.share(FOR_SEARCH), 0
    references = objective.references()  # before the solvers, so that their time counts
    for _ in range(SEARCHES):
        rows, dropped = np.flatnonzero(kept), np.flatnonzero(~kept)
        matter, others = objective.take(rows, 1.0), objective.take(dropped, 1.0)
        step = f"{rows.size} of {kept.size} rows"
        with Activity(f"{step}, the others have negligible weight", options.verbose):
            result, solver = fit(matter, run.on_rows(rows, deadline, step), inner, start, all_rows=True)
        run.deadline.reached |= deadline.reached
        start, n_iter = result.coef, n_iter + result.n_iter
        result = result._replace(n_iter=n_iter, objective=np.inf)
        progress = Progress("all rows", objective, run, options.verbose)
        try:
            losses = others.weight * others.losses(start)
            result = result._replace(objective=matter.value(start) + float(losses.sum()))
        except TimeIsUp:
            result = result._replace(status=Status.TIME_LIMIT, message=run.deadline.message)
        stopped_early = not result.converged
        result = guarded(objective, result, references, tol)
        if result.gap <= tol or stopped_early:
            progress(0, result.objective, result.lower_bound, force=True)
            return result, solver.set_params(tol=tol) if instance is None else instance
        size = LEFT_OUT * tol * objective.gap_size(result.objective)
        matters = losses > size / dropped.size
        kept[dropped[matters]] = True
        if kept.all() or not matters.any():
            break
    return None
