"""Run solvers on an objective, and check what comes back, whatever the solver.

A result is the first whose gap is closed, or the best objective together with the best bound of several solvers.  Then

    references   the result is not worse than least squares, the zero model and the prior (one of the two), and its
                 bound is above none of them: a bound that is, was wrong, and is dropped
    zeros        with an l1 penalty, coefficients that are zero but for rounding are set to zero
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .deadline import TimeIsUp, check_time
from .objective import GAP_FLOOR, ZERO_BOUND, LinearObjective
from .solvers import SOLVERS, Result, Solver

#: values that differ by less than this share are the same
SAME = 1e-12

#: a bound that is above a known value by more than this share is wrong; less is rounding
WRONG = 1e-9

#: sizes, relative to the largest coefficient, below which coefficients are tried to be zero; and the share of the
#: tolerance by which that may increase the objective
ZERO_LEVELS, ZERO_SHARE = 10.0 ** -np.arange(0.0, 12.5, 0.25), 0.1


def run_solvers(
    objective: LinearObjective, solvers: list[Solver], start: np.ndarray | None = None
) -> tuple[Result, Solver]:
    """Run solvers, each from where the last one stopped, until one closes the gap.

    Parameters
    ----------
    objective : LinearObjective
    solvers : list of Solver
        At least one.
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
        return Result(Theta, np.inf, 0.0, 0, False, str(error), radius=np.inf), solvers[0]
    if objective.trivial_value() == 0.0:
        # Every decision costs the same: relative gaps mean nothing, and there is nothing to do.
        nearby = objective.prior if objective.alpha > 0 else objective.least_squares
        for Theta in map(objective.canonical, (nearby, np.zeros(objective.shape))):
            value = objective.value(Theta)
            if value <= 0.0:
                return Result(Theta, value, value, 1, True, radius=np.inf), solvers[0]
    best: tuple[Result, Solver] | None = None
    deadline, trouble = objective.deadline, ""
    for solver in solvers:
        if deadline.reached or deadline.left() <= 0:
            deadline.reached, trouble = True, deadline.message
            break
        try:
            result = solver.solve(objective, start)
        except TimeIsUp:
            deadline.reached, trouble = True, deadline.message
            break
        except ImportError as error:
            if best is None and solver is solvers[-1]:
                raise
            trouble = f"{solver.name}: {error}"
            continue
        if type(solver) not in SOLVERS.values():
            # Ours evaluate the objective at what they return; of others it is not known.
            result = result._replace(objective=objective.value(result.coef))
        start = result.coef
        if best is not None:
            better = solver if result.objective < best[0].objective else best[1]
            best = combined(objective, best[0], result, solver.tol), better
        else:
            best = result, solver
        if best[0].converged:
            break
    if best is None:
        # The time was over before a solver came to a result.
        Theta, value = references[0] if start is None else (start, _value_in_time(objective, start))
        best = solvers[0].result(objective, Theta, value, ZERO_BOUND, 0), solvers[0]
    result, solver = best
    if trouble and not result.converged and trouble not in result.message:
        result = result._replace(message="; ".join(filter(None, (result.message, trouble))))
    result = guarded(objective, result, references, solver.tol)
    try:
        result = with_exact_zeros(objective, result, solver.tol)
    except TimeIsUp:
        pass  # nearly zero is good enough
    return result, solver


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


def combined(objective: LinearObjective, one: Result, other: Result, tol: float) -> Result:
    """Coefficients of the better of two results, with the better of their bounds that is proved far enough."""
    first, second = (one, other) if one.objective <= other.objective else (other, one)
    needed = 2.0 * objective.distance(first.coef)
    bound = second if second.lower_bound > first.lower_bound and second.radius >= needed else first
    converged = objective.relative_gap(first.objective, bound.lower_bound) <= tol
    message = "" if converged else other.message  # that of the last solver
    return first._replace(
        lower_bound=min(bound.lower_bound, first.objective), radius=bound.radius, converged=converged, message=message
    )


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
    bound, radius, message = result.lower_bound, result.radius, result.message
    if objective.loss.has_dual_bound and bound > value + WRONG * max(abs(value), GAP_FLOOR * objective.trivial_value()):
        bound, radius = ZERO_BOUND
        message = "; ".join(filter(None, (message, "its lower bound was above the objective of a known model")))
    bound = min(bound, value)
    # Without a dual bound a solver has its own rule.
    converged = objective.relative_gap(value, bound) <= tol if objective.loss.has_dual_bound else result.converged
    return result._replace(
        coef=best,
        objective=value,
        lower_bound=bound,
        radius=radius,
        converged=converged,
        message="" if converged else message,
    )


def with_exact_zeros(objective: LinearObjective, result: Result, tol: float) -> Result:
    """Result whose coefficients under an l1 penalty are exactly those of the prior where that costs nothing.

    Interior-point and stochastic methods end near zero, not at it.
    """
    penalized = objective.l1 > 0
    D = result.coef - objective.prior
    largest = float(np.abs(D[:, penalized]).max(initial=0.0))
    if largest == 0.0:
        return result
    allowed = result.objective + ZERO_SHARE * tol * max(result.objective, GAP_FLOOR * objective.trivial_value())
    low, high = 0, len(ZERO_LEVELS)  # the first level that costs nothing is in [low, high]; beyond the last is none
    best = result
    while low < high:
        check_time()
        middle = (low + high) // 2
        small = penalized & (np.abs(D) <= ZERO_LEVELS[middle] * largest)
        Theta = np.where(small, objective.prior, result.coef)
        value = objective.value(Theta) if (Theta != result.coef).any() else result.objective
        if value <= allowed:
            best, high = result._replace(coef=Theta, objective=value), middle
        else:
            low = middle + 1
    Theta = sparsest(objective, best.coef)
    if (Theta != best.coef).any():
        value = objective.value(Theta)
        if value <= allowed:
            best = best._replace(coef=Theta, objective=value)
    bound = min(best.lower_bound, best.objective)
    converged = objective.relative_gap(best.objective, bound) <= tol
    return result if result.converged and not converged else best._replace(lower_bound=bound, converged=converged)


def sparsest(objective: LinearObjective, Theta: np.ndarray) -> np.ndarray:
    """Coefficients with more zeros and no larger l1 norm, of which decisions see the same.

    Decisions do not see the component of a column along the normals N, so x + N^T h may stand for x.  The l1 norm does
    not increase along one of +-N^T h until an entry vanishes.  Elimination then takes this entry out of the other
    directions, so that it stays zero.
    """
    D = Theta - objective.prior
    for k in np.flatnonzero((objective.l1 > 0) & (objective.l2 == 0)) if objective.l1.any() else ():
        x, N = D[:, k].copy(), [] if objective.design.shared else list(objective.normals.copy())
        zeros = np.flatnonzero(x == 0.0).tolist()
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
            x[j] = 0.0
            zeros.append(j)
        D[:, k] = x
    return objective.prior + D
