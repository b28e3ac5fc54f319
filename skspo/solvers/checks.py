"""What is checked before and after the solvers.

    references   the result must not be worse than least squares, the zero model and the prior; a bound that is larger
                 than their objective is wrong and is dropped
    zeros        with an l1 penalty, coefficients that are zero up to rounding are set to zero
    oracle       an oracle that is a function of the user is checked again

Oracles that are not optimal.  If the oracle is found to be a heuristic (``OracleRegion`` with
``on_suboptimal="warn"``), the value of the SPO+ loss is not reliable: if the oracle misses good decisions, it is too
small, even negative, and its minimizer is where the oracle is worst.  The cost of the decisions that the oracle makes
for the predictions is well defined.  The result is then the candidate with the smallest cost of decisions on the
training data, plus its penalty, among least squares, its intercept alone and the results of the solvers.  Nothing is
proved: the bound is -infinity.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .._training.in_memory import InMemoryObjective
from .._training.objective import NO_BOUND, ZERO_BOUND, LinearObjective
from .._training.run import Run
from .._utils.limits import TimeIsUp
from ..regions.capabilities import has
from .base import Result, Solver, Status, certified
from .exact_zeros import with_exact_zeros

#: relative difference below which values are equal
SAME = 1e-12

#: relative difference up to which a bound above a known value is rounding, and the size, in units of the typical cost,
#: up to which a negative objective or one that changes is
ROUNDED = 1e-9

#: an oracle is not optimal if the objective is negative, or changes when it is evaluated again, by more than this share
REPEATED = 1e-6

#: number of evaluations of candidates that are averaged if the oracle is random
REPEATS = 5

#: a model and its objective
Reference = tuple[np.ndarray, float]


class Chain(NamedTuple):
    """Results of a sequence of solvers."""

    best: Result  # the best objective, with the best bound
    solver: Solver  # the one that found it
    found: list[tuple[Result, Solver]]  # the result of each solver
    trouble: str  # why not all solvers ran
    late: bool  # whether that was because of the time limit


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
            if objective.loss.has_dual_bound and objective.l1.any():
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


def unknown(Theta: np.ndarray, message: str, value: float = np.inf) -> Result:
    """Result if there was no time to compare models; ``value`` is the objective if it is known."""
    gap = 1.0 if np.isfinite(value) else np.inf
    return Result(Theta, value, 0.0, 0, Status.TIME_LIMIT, message, radius=np.inf, gap=gap)


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


def value_in_time(objective: LinearObjective, Theta: np.ndarray) -> float:
    """Objective at Theta; infinity if there is no time to evaluate it."""
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
    return unproved(result, value_in_time(objective, result.coef))._replace(wrong_bound=False)


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
    size = objective.gap_size(abs(value))
    if objective.loss.has_dual_bound and bound > value + ROUNDED * size:
        (bound, radius), wrong = ZERO_BOUND, True
    status = Status.FAILED if wrong else result.status
    result = result._replace(coef=best, objective=value, lower_bound=bound, radius=radius, status=status)
    result = certified(objective, result, tol)
    return result._replace(wrong_bound=wrong and not result.converged)


def summary(objective: LinearObjective, result: Result, solver: Solver) -> str:
    """Text that states a result."""
    text = f"{solver.name}: {result.status}, {result.n_iter} iterations, objective "
    text += f"{result.objective * objective.scale:.6g}"
    if not objective.loss.has_dual_bound or not np.isfinite(result.lower_bound):
        return text
    return f"{text}, bound {result.lower_bound * objective.scale:.6g}, gap {result.gap:.1e}"
