"""Exact optima for many rows, from models that are nearly optimal: most decisions are known already.

Near the optimum the decisions w*(2 c_hat - c) of all but a few rows are the same for all models.  Such a row adds a
linear function to the objective, the cut of its decision, and only the others need interior-point iterations:

    models near the optimum, as the last ones of the bundle method
    repeat
        undecided rows: those whose decisions differ between the models; a cut for all the others            one pass
        interior-point method for the undecided rows plus the cut
        value of its model on all rows                                                                       one pass
        the bound: decisions of the method, and those of the cut; its moments vanish up to rounding
        add the model to the others, so that rows whose decisions differ there are undecided as well

Cuts are below the loss whether or not a row was really decided, so the bound is valid in any case.  It is the optimum
if no decision has changed.
"""

from __future__ import annotations

import numpy as np

from .._training.certificate import Bound
from .._training.in_memory import InMemoryObjective
from .._training.objective import GAP_FLOOR, LinearObjective, Undecided
from .._training.run import Run
from .._utils.limits import TimeIsUp
from .base import penalty_kind
from .interior_point.reduced_form import ReducedForm, forms_of
from .interior_point.solver import InteriorPointSolver, iteration_work, predicted_work
from .interior_point.state import State

#: largest number of undecided costs (rows times d), which take some 20 numbers each; of multiplications of an
#: iteration, of iterations, and of rounds
MOST_COSTS, MOST_WORK, ITERATIONS, ROUNDS = 250_000, 5e10, 60, 5

#: growth of the coefficients at which iterations stop: the cut may be unbounded where no row is undecided
GROWN = 30.0


def can_finish(objective: LinearObjective) -> bool:
    """Whether the interior-point method can serve the rows of this objective."""
    penalty = penalty_kind(objective.alpha, objective.l1_ratio)
    return not (
        InteriorPointSolver.shortcomings(objective.region, objective.loss, penalty)
        or objective.design.sparse
        or objective.region.oracle_is_solver
    )


def finish_with_undecided_rows(
    objective: LinearObjective, run: Run, Thetas: list[np.ndarray], value: float, tol: float, rounds: int | None = None
) -> tuple[np.ndarray, float, Bound] | None:
    """Minimise from models near the optimum, the best one first.

    Parameters
    ----------
    objective : LinearObjective
        For which ``can_finish``.
    run : Run
    Thetas : list of ndarray
    value : float
        Objective of the first one.
    tol : float
        Relative gap at which to stop.
    rounds : int, optional
        Largest number of rounds.

    Returns
    -------
    Theta, value, bound : ndarray, float and Bound
        Those with the smallest gap; None if too many rows are undecided, or if there is no time.
    """
    best: tuple[np.ndarray, float, Bound] | None = None
    start, size = Thetas[0], max(value, GAP_FLOOR * objective.trivial_value())
    for _ in range(ROUNDS if rounds is None else rounds):
        try:
            found = objective.undecided_rows(Thetas, MOST_COSTS // objective.normals.shape[1])
            if found is None or found.rows.n_samples == 0 or predicted_work(found.rows, run) > MOST_WORK:
                break
            forms = forms_of(found.rows, run)
            if not forms or not forms[0].directions.size or not any(form.A.shape[1] for form in forms):
                return None
            Theta, V = _minimize(found, forms, run, start, tol * size)
            value = objective.value(Theta)
        except TimeIsUp:
            break
        constant, slope = found.rows.moments(V)
        bound = objective.dual_value_from_moments(found.constant + constant, found.slope + slope, Theta)
        if best is None or value - bound.value < best[1] - best[2].value:
            best = Theta, value, bound
        if objective.relative_gap(value, bound.value) <= tol:
            break
        Thetas, start = [*Thetas, Theta], Theta if np.isfinite(value) else start
    return best


def _minimize(
    found: Undecided, forms: list[ReducedForm], run: Run, start: np.ndarray, gap: float
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and decisions of the undecided rows, by the interior-point method."""
    rows: InMemoryObjective = found.rows
    state = State(rows, forms, start, run.derived, found.slope)
    with np.errstate(all="ignore"):  # what overflows or divides by zero is found by looking at the step
        work = iteration_work(rows, run)
        for _ in range(ITERATIONS):
            run.budget.spent += work
            if run.budget.used_up:
                raise TimeIsUp
            now = state.gap()
            if now <= 0.25 * gap and (state.moment_error() <= 1e-3 * gap or now <= 1e-3 * gap):
                break
            if max(state.step()) == 0.0 or state.growth() > GROWN:
                break
        Theta, V = state.coefficients(), state.decisions()
    state.release()
    return Theta, rows.region.repair(V)
