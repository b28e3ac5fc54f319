"""Run solvers on an objective, and check what comes back, whatever the solver.

A result is the first whose gap is closed, or the best objective together with the best bound of several solvers.  Then

    references   the result is not worse than least squares, the zero model and the prior (one of the two), and its
                 bound is above none of them: a bound that is, was wrong, and is dropped
    zeros        with an l1 penalty, coefficients that are zero but for rounding are set to zero
    oracle       an oracle that is the user's own function is checked once more

Oracles that are not optimal.  If the region finds out that its oracle is a heuristic (``OracleRegion`` with
``on_suboptimal="warn"``), the value of the SPO+ loss is not reliable: an oracle that misses good decisions makes it too
small, even negative, and minimising it leads to where the oracle errs most.  What is well defined is the cost of the
decisions that the oracle makes with the predictions.  The result is then the candidate with the smallest cost of
decisions on the training data, plus its penalty, among least squares, its intercept alone and what the solvers found.
Nothing is proved: the bound is -infinity.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._training.certificate import NO_BOUND, ZERO_BOUND
from .._training.objective import GAP_FLOOR, LinearObjective
from .._utils.deadline import TimeIsUp, check_time
from .auto import SOLVERS
from .base import Result, Solver, Status, certified

#: values that differ by less than this share are the same
SAME = 1e-12

#: a bound that is above a known value by more than this share is wrong; less is rounding
WRONG = 1e-9

#: sizes, relative to the largest coefficient, below which coefficients are tried to be zero; and the share of the
#: tolerance by which that may increase the objective
ZERO_LEVELS, ZERO_SHARE = 10.0 ** -np.arange(0.0, 12.5, 0.25), 0.1

#: an oracle is not optimal if the objective is below zero, or differs when it is evaluated again, by more than this
#: share
REPEATED = 1e-6

#: a negative objective above this is rounding, in units of the typical cost
ROUNDED = 1e-9

#: how often the decisions of candidates are evaluated, and averaged, if the oracle answers at random
REPEATS = 5


def run_solvers(
    objective: LinearObjective, solvers: list[Solver], start: np.ndarray | None = None
) -> tuple[Result, Solver]:
    """Run solvers, each from where the last one stopped, until one closes the gap.

    Parameters
    ----------
    objective : LinearObjective
    solvers : list of Solver
        At least one.  A later one that ``tolerates_inexact`` oracles is there for them, and runs only if the oracle was
        found not to be optimal.
    start : ndarray, optional
        Coefficients to start from.

    Returns
    -------
    result : Result
    solver : Solver
        The one that found the coefficients.
    """
    with objective.deadline.enforced():
        return _run_solvers(objective, solvers, start)


def _run_solvers(objective: LinearObjective, solvers: list[Solver], start: np.ndarray | None) -> tuple[Result, Solver]:
    try:
        check_decided(objective)
        references = objective.references()  # now, so that their time counts
    except TimeIsUp as error:
        Theta = objective.least_squares if start is None else start
        return unknown(Theta, str(error)), solvers[0]
    nothing_to_do = model_without_loss(objective)
    if nothing_to_do is not None:
        return nothing_to_do, solvers[0]
    best: tuple[Result, Solver] | None = None
    found: list[tuple[Result, Solver]] = []
    deadline, trouble, late, first_start = objective.deadline, "", False, start
    for solver in solvers:
        if found and solver.tolerates_inexact and not objective.inexact:
            continue
        if deadline.reached or deadline.left() <= 0:
            deadline.reached = late = True
            trouble = deadline.message
            break
        try:
            # With an oracle that is not optimal the last result may be anywhere.
            result = solver.solve(objective, first_start if objective.inexact else start)
            if type(solver) not in SOLVERS.values():
                # Ours evaluate the objective at what they return, and bound it; of others it is not known.
                result = result._replace(objective=objective.value(result.coef))
                result = guarded(objective, result, [], solver.tol)
            check_oracle(objective, result)
        except TimeIsUp:
            deadline.reached = late = True
            trouble = deadline.message
            break
        except ImportError as error:
            if best is None and solver is solvers[-1]:
                raise
            trouble = f"{solver.name}: {error}"
            continue
        start = result.coef
        found.append((result, solver))
        if best is not None:
            better = solver if result.objective < best[0].objective else best[1]
            best = combined(objective, best[0], result, solver.tol), better
        else:
            best = result, solver
        if best[0].converged and not objective.inexact:
            break
    if best is None:
        # The time was over before a solver came to a result.
        Theta, value = references[0] if start is None else (start, _value_in_time(objective, start))
        best = solvers[0].result(objective, Theta, value, ZERO_BOUND, 0), solvers[0]
        found.append(best)
    result, solver = best
    if not result.converged:
        result = stopped(result, trouble, late)
    try:
        if not objective.inexact:
            result = guarded(objective, result, references, solver.tol)
            result = with_exact_zeros(objective, result, min(known for _, known in references), solver.tol)
        if objective.inexact:
            return best_decisions(objective, found, trouble, late)
    except TimeIsUp:
        pass  # the result is good enough without exact zeros
    return without_bound(objective, result), solver


def model_without_loss(objective: LinearObjective) -> Result | None:
    """Optimal model if every decision costs the same, so that relative gaps mean nothing; else None."""
    if objective.trivial_value() != 0.0 or objective.inexact:
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
        pass  # the solvers will find out, too
    return None


def unknown(Theta: np.ndarray, message: str) -> Result:
    """Result if there was no time to evaluate any model."""
    return Result(Theta, np.inf, 0.0, 0, Status.TIME_LIMIT, message, radius=np.inf, gap=np.inf)


def stopped(result: Result, trouble: str, late: bool) -> Result:
    """Result that also says why no other solver ran, and whether that was for lack of time."""
    message = result.message
    if trouble not in message:
        message = "; ".join(filter(None, (message, trouble)))
    return result._replace(message=message, status=Status.TIME_LIMIT if late else result.status)


def check_decided(objective: LinearObjective) -> None:
    """Raise ``TimeIsUp`` if there was no time for the optimal decisions of all samples."""
    if objective.undecided:
        objective.deadline.reached = True
        raise TimeIsUp(
            f"{objective.deadline.message} before the best decisions of all samples were known, so that no model could "
            "be evaluated"
        )


def _value_in_time(objective: LinearObjective, Theta: np.ndarray) -> float:
    try:
        return objective.value(Theta)
    except TimeIsUp:
        return np.inf


def check_oracle(objective: LinearObjective, result: Result) -> None:
    """Check the oracle again after a fit, if it is one that may be wrong (see ``OracleRegion``).

    It raises an error or takes note of the fault, as the user wishes.
    """
    region: Any = objective.region
    if not hasattr(region, "audit") or objective.inexact:
        return
    d = objective.normals.shape[1]
    value = objective.value(result.coef)
    region.audit(d)  # last, when all decisions are known
    if objective.inexact:
        return
    size = REPEATED * max(abs(value), abs(result.objective), 1e-2 * objective.trivial_value())
    if not abs(value - result.objective) <= size:
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
    """Result as it is if nothing is known; the same, evaluated anew and without a bound, if the oracle is inexact."""
    if not objective.inexact:
        return result
    value = _value_in_time(objective, result.coef)
    return result._replace(objective=value, wrong_bound=False, **NOTHING_PROVED, status=open_status(result))


#: what takes the place of a bound if the oracle is not optimal
NOTHING_PROVED: dict[str, Any] = {"lower_bound": NO_BOUND.value, "radius": NO_BOUND.radius, "gap": np.inf}


def open_status(result: Result) -> Status:
    """Why the solver stopped, if the oracle is not optimal: then nothing has converged."""
    return Status.NUMERICAL_LIMIT if result.converged else result.status


def best_decisions(
    objective: LinearObjective, found: list[tuple[Result, Solver]], trouble: str = "", late: bool = False
) -> tuple[Result, Solver]:
    """Best of the results, least squares and its intercept alone by the cost of decisions on the training data.

    The zero model is none: for costs that are all zero every decision is right, and a heuristic may not take them.

    Parameters
    ----------
    objective : LinearObjective
        With an oracle that is not optimal.
    found : list of (Result, Solver)
        At least one; if another model is better, the last one says how the fit ended.
    trouble : str
        Why not all solvers ran.
    late : bool
        Whether that was for lack of time.

    Returns
    -------
    result : Result
        Without a bound.
    solver : Solver
    """
    last, last_solver = found[-1]
    candidates = [(result, solver) for result, solver in found if np.isfinite(result.coef).all()]
    constant = np.zeros(objective.shape)
    constant[:, objective.design.n_features :] = objective.least_squares[:, objective.design.n_features :]
    known = [objective.least_squares, constant] if constant.any() else [objective.least_squares]
    candidates = [*((last._replace(coef=objective.canonical(Theta)), last_solver) for Theta in known), *candidates]
    models = [result.coef for result, _ in candidates]
    costs = np.array([objective.decision_cost(Theta) for Theta in models])
    repeatable = objective.decision_cost(models[0]) == costs[0]
    for k in range(1, 1 if repeatable else REPEATS):
        if objective.deadline.left() <= 0:
            break
        costs += (np.array([objective.decision_cost(Theta) for Theta in models]) - costs) / (k + 1)
    # Ties go to least squares.
    result, solver = candidates[int(np.argmin(costs))]
    # The bound goes first, so that nothing below takes it for a proof.
    result = result._replace(objective=float(costs.min()), **NOTHING_PROVED, status=open_status(result))
    result = stopped(result, trouble, late)
    if repeatable:
        result = with_exact_zeros(objective, result, np.inf, solver.tol)
    return without_bound(objective, result), solver


def combined(objective: LinearObjective, one: Result, other: Result, tol: float) -> Result:
    """Coefficients of the better of two results, with the better of their bounds that is proved far enough."""
    first, second = (one, other) if one.objective <= other.objective else (other, one)
    needed = 2.0 * objective.distance(first.coef)
    bound = second if second.lower_bound > first.lower_bound and second.radius >= needed else first
    last = one if other.converged else other  # why the last solver stopped that did not converge
    result = first._replace(
        lower_bound=bound.lower_bound, radius=bound.radius, status=last.status, message=last.message
    )
    return certified(objective, result, tol)


def guarded(
    objective: LinearObjective, result: Result, references: Iterable[tuple[np.ndarray, float]], tol: float
) -> Result:
    """Result that is not worse than known models, and whose bound is above none of them.

    Parameters
    ----------
    objective : LinearObjective
    result : Result
    references : iterable of (coefficients, objective)
    tol : float
        Relative gap at which the result counts as converged.
    """
    best, value = result.coef, result.objective if np.isfinite(result.objective) else np.inf
    for Theta, known in references:
        if known < value and not value - known <= SAME * abs(value):
            best, value = objective.canonical(Theta), known
    bound, radius, wrong = result.lower_bound, result.radius, result.wrong_bound
    if objective.loss.has_dual_bound and bound > value + WRONG * max(abs(value), GAP_FLOOR * objective.trivial_value()):
        (bound, radius), wrong = ZERO_BOUND, True
    status = Status.FAILED if wrong else result.status
    result = result._replace(coef=best, objective=value, lower_bound=bound, radius=radius, status=status)
    result = certified(objective, result, tol)
    return result._replace(wrong_bound=wrong and not result.converged)


def with_exact_zeros(objective: LinearObjective, result: Result, known: float, tol: float) -> Result:
    """Result whose coefficients under an l1 penalty are exactly those of the prior where that costs nothing.

    Interior-point and stochastic methods end near zero, not at it.  The objective may increase by a small share of the
    tolerance, but not above ``known``, the best objective of the reference models.  With an oracle that is not optimal,
    the same holds for the cost of decisions, which ``result.objective`` then is.
    """
    measure = objective.decision_cost if objective.inexact else objective.value
    penalized = objective.l1 > 0
    D = result.coef - objective.prior
    largest = float(np.abs(D[:, penalized]).max(initial=0.0))
    if largest == 0.0:
        return result
    allowed = result.objective + ZERO_SHARE * tol * max(abs(result.objective), GAP_FLOOR * objective.trivial_value())
    allowed = min(allowed, max(known, result.objective))
    low, high = 0, len(ZERO_LEVELS)  # the first level that costs nothing is in [low, high]; beyond the last is none
    best = result
    while low < high:
        check_time()
        middle = (low + high) // 2
        small = penalized & (np.abs(D) <= ZERO_LEVELS[middle] * largest)
        Theta = np.where(small, objective.prior, result.coef)
        value = measure(Theta) if (Theta != result.coef).any() else result.objective
        if value <= allowed:
            best, high = result._replace(coef=Theta, objective=value), middle
        else:
            low = middle + 1
    Theta = sparsest(objective, best.coef)
    if (Theta != best.coef).any():
        value = measure(Theta)
        if value <= allowed:
            best = best._replace(coef=Theta, objective=value)
    best = certified(objective, best, tol)
    return result if result.converged and not best.converged else best


def sparsest(objective: LinearObjective, Theta: np.ndarray) -> np.ndarray:
    """Coefficients with more zeros and no larger l1 norm, of which decisions see the same.

    Decisions do not see the component of a column along the normals N, so x + N^T h may stand for x.  The l1 norm does
    not increase along one of +-N^T h until an entry vanishes.  Elimination then takes this entry out of the other
    directions, so that it stays zero.
    """
    D = Theta - objective.prior
    for k in np.flatnonzero((objective.l1 > 0) & (objective.l2 == 0)) if objective.l1.any() else ():
        x, N = D[:, k].copy(), [] if objective.design.shared else list(objective.normals.copy())
        zeros, size = np.flatnonzero(x == 0.0).tolist(), float(np.abs(x).max(initial=0.0))
        while N:
            check_time()
            if zeros:
                j = zeros.pop()
                r = int(np.argmax([abs(row[j]) for row in N]))
                pivot = N[r]
                if abs(pivot[j]) <= 1e-9:
                    continue
                N.pop(r)
                N = [row - (row[j] / pivot[j]) * pivot for row in N]
                for row in N:
                    row[j] = 0.0
                continue
            direction = N[-1]
            direction = np.where(np.abs(direction) <= 1e-9 * np.abs(direction).max(), 0.0, direction)
            if float(np.sign(x) @ direction) > 0:
                direction = -direction
            towards = x * direction < 0
            if not towards.any():
                N.pop()
                continue
            lengths = np.where(towards, -x / np.where(towards, direction, 1.0), np.inf)
            j = int(np.argmin(lengths))
            x = x + lengths[j] * direction
            # Others that vanish at the same length are rounding errors by now.
            gone = np.union1d(np.flatnonzero((x != 0.0) & (np.abs(x) <= 1e-12 * size)), [j])
            x[gone] = 0.0
            zeros.extend(gone.tolist())
        D[:, k] = x
    return objective.prior + D
