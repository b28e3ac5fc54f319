"""The interior-point method for many rows: only those take part whose decisions are not known yet.

Near the optimum the decisions w*(2 c_hat - c) of all but a few rows are the same for all models.  Such a row adds a
linear function to the objective, the cut of its decision, and only the others need interior-point iterations:

    models: fits to two samples without a common row, and their mean
    repeat
        undecided rows: those whose decisions differ between the models; a cut for all the others            one pass
        interior-point method for the undecided rows plus the cut
        value of its model on all rows                                                                       one pass
        the bound: decisions of the method, and those of the cut; its moments vanish up to rounding
        add the model to the others, so that rows whose decisions differ there are undecided as well

Cuts are below the loss whether or not a row was really decided, so the bound is valid in any case.  It is the optimum
if no decision has changed.  The error of a sample's fit goes down with the size of the sample, and so does the share of
undecided rows.  Only they are loaded if rows are in chunks or on a cluster.  A large sample is fitted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from ..._training.certificate import ZERO_BOUND
from ..._training.chunked import SAMPLE_ELEMENTS
from ..._training.in_memory import InMemoryObjective
from ..._training.objective import GAP_FLOOR, LinearObjective, Undecided
from ..._training.run import Run
from ..._utils.limits import TimeIsUp
from ...regions.capabilities import has
from ..base import Progress, Result, Solver, Status
from .reduced_form import ReducedForm, forms_of
from .state import State
from .work import iteration_work, undecided_share

#: expected share of undecided rows up to which it pays to leave out the others
WORTH = 0.3

#: relative gap of the fits to samples and of the first round
FIRST_TOL = 1e-2

#: largest numbers of iterations of a round, and of rounds
ITERATIONS, ROUNDS = 60, 8

#: growth of the coefficients at which iterations stop: the sum of a cut and few rows may be unbounded
UNBOUNDED = 1e3

#: share of the time for the fit to a sample
FOR_SAMPLE = 0.25


def most_rows(objective: LinearObjective) -> int:
    """Largest number of rows that are loaded."""
    features = objective.design.n_coef * (objective.normals.shape[1] if objective.design.shared else 1)
    most = SAMPLE_ELEMENTS // (features + 3 * objective.normals.shape[1])
    return objective.n_samples if objective.in_memory else most


def leaves_out_rows(objective: LinearObjective) -> bool:
    """Whether only undecided rows take part: if they are expected to be few, or if all do not fit into memory."""
    if objective.region.oracle_is_solver or not has(objective.region, "standard_form"):
        return False  # passes are slow, or decisions differ between any two models
    return undecided_share(objective) <= WORTH or objective.n_samples > most_rows(objective)


class WorkingSet:
    """Models and bound of one run.

    Parameters
    ----------
    solver : Solver
        Gives name, tolerance and verbosity.
    objective : LinearObjective
    start : ndarray or None
        Coefficients that the result must not be worse than.
    """

    def __init__(self, solver: Solver, objective: LinearObjective, start: np.ndarray | None) -> None:
        self.solver, self.objective = solver, objective
        self.best = (objective.least_squares if start is None else start), np.inf
        self.bound, self.n_iter, self.rounds = ZERO_BOUND, 0, 0
        self.models: list[np.ndarray] = []

    def run(self, run: Run, fit: Callable[[LinearObjective, Run], Result]) -> Result | None:
        """Minimize, or go on after a pause; None if all rows had better take part, and if they fit into memory.

        ``fit`` is for samples.
        """
        objective, solver = self.objective, self.solver
        verbose = getattr(solver, "verbose", 0)
        progress = Progress(solver.name, objective, run, verbose, tol=solver.tol, done=self.n_iter)
        progress.begin()
        status, message = Status.CONVERGED, ""
        try:
            if not self.models:
                self._move(self.best[0])
                if not self._fit_samples(run, fit):
                    return None
            while self._gap() > solver.tol:
                if self.rounds == ROUNDS or not self._round(run):
                    if objective.n_samples <= most_rows(objective):
                        return None
                    status, message = Status.NUMERICAL_LIMIT, "the undecided rows do not fit into memory"
                    break
                progress(self.n_iter, self.best[1], self.bound.value)
                if progress.late():
                    raise TimeIsUp
                if progress.spend(0.0) and self._gap() > solver.tol:
                    status = Status.PAUSED
                    run.paused[solver.name] = self
                    break
        except TimeIsUp:
            run.deadline.reached = True
            status, message = Status.TIME_LIMIT, run.deadline.message
        progress(self.n_iter, self.best[1], self.bound.value, force=True)
        return solver.result(objective, *self.best, self.bound, self.n_iter, status, message)

    def _size(self) -> float:
        """Denominator of relative gaps."""
        return max(self.best[1], GAP_FLOOR * self.objective.trivial_value())

    def _gap(self) -> float:
        return self.objective.relative_gap(self.best[1], self.bound.value)

    def _move(self, Theta: np.ndarray) -> None:
        """Evaluate a model, and keep it if it is better."""
        value = self.objective.value(Theta)
        if value < self.best[1]:
            self.best = Theta, value

    def _fit_samples(self, run: Run, fit: Callable[[LinearObjective, Run], Result]) -> bool:
        """The first models; False if there are no samples."""
        fits = []
        for part in range(2):
            sample = self.objective.sampled(part, 2)
            if sample is None:
                return False
            alone = run.on_sample(FOR_SAMPLE)
            progress = Progress(
                f"sample of {sample.n_samples} rows", self.objective, run, getattr(self.solver, "verbose", 0)
            )
            with progress.task or nullcontext():
                fits.append(fit(sample, alone).coef)
            run.budget.spent += alone.budget.spent
        self.models = [0.5 * (fits[0] + fits[1]), *fits]
        for Theta in self.models:
            self._move(Theta)
        return True

    def _round(self, run: Run) -> bool:
        """Minimize over undecided rows; False if there are too many, or none."""
        objective = self.objective
        found = objective.undecided_rows(self.models, most_rows(objective))
        if found is None or found.rows.n_samples == 0:
            return False
        forms = forms_of(found.rows, run)
        if not forms or not forms[0].directions.size or not any(form.A.shape[1] for form in forms):
            return False
        gap = (0.25 * self.solver.tol if self.rounds else FIRST_TOL) * self._size()
        Theta, V, n_iter = minimize_undecided(found, forms, run, self.best[0], gap)
        self.n_iter, self.rounds = self.n_iter + n_iter, self.rounds + 1
        self.models.append(Theta)
        self._move(Theta)
        constant, slope = found.rows.moments(V)
        bound = objective.dual_value_from_moments(found.constant + constant, found.slope + slope, self.best[0])
        self.bound = max(self.bound, bound)
        return True


def minimize_undecided(
    found: Undecided, forms: list[ReducedForm], run: Run, start: np.ndarray, gap: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Coefficients and decisions of the undecided rows, by the interior-point method; and its iterations."""
    rows: InMemoryObjective = found.rows
    state = State(rows, forms, start, run.derived, found.slope)
    work, n_iter = iteration_work(rows, run), 0
    with np.errstate(all="ignore"):  # what overflows or divides by zero is found by looking at the step
        while n_iter < ITERATIONS:
            n_iter += 1
            run.budget.spent += work
            now = state.gap()
            if now <= gap and (state.moment_error() <= 1e-3 * gap or now <= 1e-3 * gap):
                break
            # Rows that are decided otherwise far away take part from then on.
            if max(state.step()) == 0.0 or state.growth() > UNBOUNDED:
                break
        Theta, V = state.coefficients(), state.decisions()
    state.release()
    return Theta, rows.region.repair(V), n_iter
