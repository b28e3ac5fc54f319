"""Many rows: only those take part in the interior-point method whose decisions are not known yet.

Near the optimum the decisions w*(2 c_hat - c) of all but a few rows are the same for all models.  Such a row adds a
linear function to the objective, the cut of its decision, and only the others need interior-point iterations:

    models: fits to two samples without a common row, and their mean
    repeat
        undecided rows: those whose decisions differ between the models; a cut for all the others            one pass
        interior-point method for the undecided rows plus the cut
        value of its model on all rows                                                                       one pass
        the bound: decisions of the method, and those of the cut; its moments vanish up to rounding
        while the model is worse than the best one, another one nearer to that
        add the last one that was worse, or the model, to the others: rows whose decisions differ there are undecided

Cuts are below the loss whether or not a row was really decided, so the bound is valid in any case.  It is the optimum
if no decision has changed.  The error of a sample's fit goes down with the size of the sample, and so does the share of
undecided rows.  Only they are loaded if rows are in chunks or on a cluster.  A large sample is fitted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress

import numpy as np

from .._training.chunked import SAMPLE_ELEMENTS
from .._training.in_memory import InMemoryObjective
from .._training.objective import ZERO_BOUND, Bound, LinearObjective, Moments, Undecided, best_proof, sample_step
from .._training.run import Run
from .._utils.limits import TimeIsUp
from ..regions.capabilities import has
from .base import START_TOL, Progress, Result, Solver, Status
from .interior_point.state import ReducedForm, State, coupled_size, forms_of, iteration_work
from .predictor_corrector import step

#: share of undecided rows beyond which there are no more rounds: all rows take part instead, if they fit into memory.
#: Twice this share are all rows, and two more rounds are typical.
TOO_MANY = 0.5

#: iterations for the undecided rows that the bundle method leaves, in fits of benchmarks/scale.py, typically
FINISHING = 15.0

#: share of the tolerance for all rounds but the first one
LAST_TOL = 0.25

#: largest number of iterations of a round, that of ``InteriorPointSolver``
ITERATIONS = 100

#: largest number of rounds
ROUNDS = 8

#: growth of the coefficients at which iterations stop: the sum of a cut and few rows may be unbounded
UNBOUNDED = 1e3

#: a point that is worse is followed by one at this share of the distance, at last where the growth is about one
CLOSER = 0.25

#: share of the time for the fit to a sample
FOR_SAMPLE = 0.25

#: rounds that the fits of benchmarks/auto.py needed, typically
TYPICAL_ROUNDS = 3.0


def most_rows(objective: LinearObjective) -> int:
    """Largest number of rows that are loaded."""
    features = objective.design.n_coef * (objective.normals.shape[1] if objective.design.shared else 1)
    most = SAMPLE_ELEMENTS // (features + 3 * objective.normals.shape[1])
    return objective.n_samples if objective.in_memory else most


def can_leave_out_rows(objective: LinearObjective) -> bool:
    """Whether there are many rows, passes are fast, and decisions are the same for models that are near."""
    region = objective.region
    if sample_step(objective.n_samples) is None:
        return False
    fast = not (region.oracle_is_solver or objective.design.sparse)
    return fast and has(region, "standard_form") and has(region, "repair")


def leaves_out_rows(objective: LinearObjective) -> bool:
    """Whether only undecided rows take part: if they are expected to be few, or if all do not fit into memory."""
    if not can_leave_out_rows(objective):
        return False
    few = TYPICAL_ROUNDS * undecided_share(objective) <= 1.0
    return few or objective.n_samples > most_rows(objective)


def undecided_share(objective: LinearObjective) -> float:
    """Share of the rows whose decisions are expected to differ between the fits to two samples.

    The relative error of the predictions is the root of the number of coefficients for each row of a sample.
    """
    step = sample_step(objective.n_samples)
    if step is None:
        return 1.0
    return float(min(1.0, np.sqrt(2.0 * step * coupled_size(objective) / objective.n_samples)))


def undecided_work(objective: LinearObjective, run: Run) -> float:
    """Work of an iteration for both samples and for the undecided rows of every round."""
    sample = 1.0 / (sample_step(objective.n_samples) or 1)
    rounds = TYPICAL_ROUNDS * iteration_work(objective, run, undecided_share(objective))
    return iteration_work(objective, run, sample) + rounds


def finishing_work(objective: LinearObjective, run: Run) -> float:
    """Work for the undecided rows that the bundle method leaves."""
    return FINISHING * iteration_work(objective, run, undecided_share(objective))


class WorkingSet:
    """Models near the optimum, and the best one and the best bound so far.

    The result must not be worse than Theta, whose objective is ``value``; ``tol`` is the relative gap at which to stop.
    """

    def __init__(
        self, objective: LinearObjective, tol: float, Theta: np.ndarray, value: float, models: list[np.ndarray]
    ) -> None:
        self.objective, self.tol, self.models = objective, tol, models
        self.best = Theta, value
        self.bound: Bound = ZERO_BOUND
        self.moments: Moments = (0.0, np.zeros(objective.shape))  # of v_i = w_i, which prove a bound of zero
        self.n_iter = self.rounds = 0

    def run(self, run: Run, solver: Solver, fit: Callable[[LinearObjective, Run], Result]) -> Result | None:
        """Minimize, or go on after a pause; None if all rows had better take part, and if they fit into memory.

        ``fit`` is for samples.
        """
        objective = self.objective
        most = most_rows(objective)
        all_fit = objective.n_samples <= most
        most = int(TOO_MANY * objective.n_samples) if all_fit else most
        progress = Progress(solver.name, objective, run, getattr(solver, "verbose", 0), tol=self.tol, done=self.n_iter)
        progress.begin()
        status, message = Status.CONVERGED, ""
        try:
            if not self.models:
                self._move(self.best[0])
                if not self._fit_samples(run, solver, fit):
                    return None
            while self.gap() > self.tol:
                tol = LAST_TOL * self.tol if self.rounds else START_TOL
                if self.rounds == ROUNDS or not self.round(run, most, tol):
                    if all_fit:
                        return None
                    status, message = Status.NUMERICAL_LIMIT, "the undecided rows do not fit into memory"
                    break
                progress(self.n_iter, self.best[1], self.bound.value)
                if progress.late():
                    raise TimeIsUp
                if run.budget.used_up and self.gap() > self.tol:
                    status = Status.PAUSED
                    run.paused[solver.name] = self
                    break
        except TimeIsUp:
            run.deadline.reached = True
            status, message = Status.TIME_LIMIT, run.deadline.message
        progress(self.n_iter, self.best[1], self.bound.value, force=True)
        return solver.result(objective, *self.best, self.bound, self.n_iter, status, message)

    def gap(self) -> float:
        """Relative gap of the best model and the best bound."""
        return self.objective.relative_gap(self.best[1], self.bound.value)

    def _move(self, Theta: np.ndarray) -> bool:
        """Evaluate a model, and keep it if it is better; whether it is."""
        value = self.objective.value(Theta)
        better = value < self.best[1]
        if better:
            self.best = Theta, value
        return better

    def _nearest_failure(self, Theta: np.ndarray) -> np.ndarray:
        """Move to the minimum of a round, or towards it if it is worse; return the last point that was worse.

        A sum of few rows and a cut may have its minimum far away, where most rows are decided otherwise.  Those that
        are decided otherwise nearby are fewer, and there are some: the sum decreases on the way, the loss does not.
        """
        center, worse, length = self.best[0], None, 1.0
        while length * UNBOUNDED >= CLOSER and not self._move(Theta):
            worse, Theta, length = Theta, center + CLOSER * (Theta - center), CLOSER * length
        return Theta if worse is None else worse

    def _fit_samples(self, run: Run, solver: Solver, fit: Callable[[LinearObjective, Run], Result]) -> bool:
        """The first models; False if there are no samples."""
        fits = []
        for part in range(2):
            sample = self.objective.sampled(part, 2)
            if sample is None:
                return False
            alone = run.on_sample(FOR_SAMPLE)
            name = f"sample of {sample.n_samples} rows"
            progress = Progress(name, self.objective, run, getattr(solver, "verbose", 0))
            with progress.task or nullcontext():
                fits.append(fit(sample, alone).coef)
            run.budget.spent += alone.budget.spent
        self.models = [0.5 * (fits[0] + fits[1]), *fits]
        for Theta in self.models:
            self._move(Theta)
        return True

    def round(self, run: Run, most: int, tol: float, end: float = np.inf) -> bool:
        """Minimize over undecided rows, to this relative gap; False if there are more than ``most``, or none.

        It stops when the work of the turn is ``end``.
        """
        objective = self.objective
        found = objective.undecided_rows(self.models, most)
        if found is None or found.rows.n_samples == 0:
            return False
        forms = forms_of(found.rows, run)
        if not forms or not forms[0].directions.size or not any(form.A.shape[1] for form in forms):
            return False
        start, value = self.best
        Theta, moments, n_iter = minimize_undecided(found, forms, run, start, tol * objective.gap_size(value), end)
        self.n_iter, self.rounds = self.n_iter + n_iter, self.rounds + 1
        self.models.append(self._nearest_failure(Theta))
        self.moments, self.bound = best_proof(objective, [self.moments, moments], self.best[0])
        return True


def finish_with_undecided_rows(
    objective: LinearObjective, run: Run, models: list[np.ndarray], value: float, tol: float, work: float
) -> tuple[np.ndarray, float, Moments] | None:
    """Minimize from models near the optimum, the best one first, whose objective is ``value``, to this relative gap.

    Returns the best model, its objective, and the moments that prove the best bound, after ``work`` at most; None if so
    many rows are undecided that it would take more, or if there is no time.
    """
    search = WorkingSet(objective, tol, models[0], value, models)
    of_row = FINISHING * iteration_work(objective, run) / objective.n_samples
    end = run.budget.spent + work
    with suppress(TimeIsUp):
        before = np.inf
        while search.rounds < ROUNDS and tol < search.gap() < before:  # too early if a round gains nothing
            before = search.gap()
            most = min(int((end - run.budget.spent) / of_row), most_rows(objective))
            if not search.round(run, most, LAST_TOL * tol, end):
                break
    return (*search.best, search.moments) if search.rounds else None


def minimize_undecided(
    found: Undecided, forms: list[ReducedForm], run: Run, start: np.ndarray, gap: float, end: float = np.inf
) -> tuple[np.ndarray, Moments, int]:
    """Minimize the loss of the undecided rows plus the cut of the others, by the interior-point method, to a gap.

    It stops when the work of the turn is ``end``.  Returns Theta, constant and slope of the bound, and the number of
    iterations.
    """
    rows: InMemoryObjective = found.rows
    state = State(rows, forms, start, run.derived, found.slope)
    work, n_iter = iteration_work(rows, run), 0
    with np.errstate(all="ignore"):  # what overflows or divides by zero is found by looking at the step
        while n_iter < ITERATIONS and run.budget.spent < end:
            n_iter += 1
            run.budget.spent += work
            now = state.gap()
            if now <= gap and (_unproved(found, state) <= 2.0 * gap or now <= 1e-3 * gap):
                break
            # Rows that are decided otherwise far away take part from then on.
            if max(step(state)) == 0.0 or state.growth() > UNBOUNDED:
                break
        Theta, moments = state.coefficients(), _moments(found, state)
    state.release()
    return Theta, moments, n_iter


def _moments(found: Undecided, state: State) -> Moments:
    """Constant and slope of the bound: those of the decisions, and of the cut."""
    constant, slope = found.rows.moments(found.rows.region.repair(state.decisions()))
    return found.constant + constant, found.slope + slope


def _unproved(found: Undecided, state: State) -> float:
    """Gap of the sum that is minimized: moments that do not vanish are charged for."""
    rows, Theta = found.rows, state.coefficients()
    value = rows.value(Theta) + found.constant + float(np.vdot(found.slope, Theta))
    return value - rows.dual_value_from_moments(*_moments(found, state), Theta).value
