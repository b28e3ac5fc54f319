"""Proximal bundle method: exact for any region, by batched argmins.

The samples are split into groups, and each group g has its own model of its part of the loss.  A pass of the oracle at
some Theta gives decisions v_i, and with them one cut per group, which holds for all Theta (see ``objective``):

    loss_g(Theta) >= b + <A, Theta>,   b = sum_i a_i c_i.(v_i - w_i),   A = 2 sum_i a_i (w_i - v_i) z_i^T    (i in g)

The next point minimizes the model, that is, the sum over groups of the highest cut, plus the penalty, which is not
approximated, plus |Theta - center|^2 / (2 step).  The multipliers of the cuts sum to one in each group and say how to
average the v_i, so the averaged (b, A) are the moments of decisions in conv(S), and those prove a lower bound.

Phases.  ``descend``: the model predicts a decrease; the oracle is called at its minimum.  ``prove``: the model predicts
no decrease near the center; the program is solved again, accurately, and then for longer and longer steps, until the
bound holds far away or rounding errors stop it.  ``polish``: a shorter step, for which the program is better
conditioned, gives a better center, from which the proof is tried again.

With many groups few passes are needed, but the quadratic program takes longer.

With many samples and unknowns, the interior-point method closes the gap where it can be used, with the rows whose
decisions differ between the last points (``undecided_rows``).
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from ..._training.objective import ZERO_BOUND, Bound, LinearObjective, Moments, best_proof
from ..._training.run import Run
from ..._utils.limits import TimeIsUp, one_blas_thread
from ...regions.capabilities import has
from ..base import Estimate, Progress, Result, Solver, Status
from ..undecided_rows import can_leave_out_rows, finish_with_undecided_rows, finishing_work
from .cut_model import NUMBERS, CutModel, columns_of, groups_for, step_work

#: passes that fits of benchmarks/auto.py with fewer unknowns than cuts needed, and cuts of each group meanwhile
PASSES, CUTS = 30.0, 8.0

#: number of passes after which undecided rows are tried, again after twice as many, and so on; and how many of the last
#: points are compared
FIRST_TRY, LAST = 12, 8

#: largest proximal step; subgradients and coefficients are of order one
MAX_STEP = 1e9

#: predicted decrease, as a share of the objective, from which on multipliers are balanced
BALANCE_FROM = 1e-5

#: largest number of polished centers
POLISHED = 5


class Phase(Enum):
    """What the next solution of the quadratic program is for."""

    DESCEND = "descend"
    PROVE = "prove"
    POLISH = "polish"


class Stop(Exception):
    """The search is over; ``status`` and the message say why."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


class BundleSolver(Solver):
    """Exact minimization by cutting planes around the best point.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Largest number of passes over the data, one batched argmin each; None means 500.
    max_cuts : int or None, default=None
        Number of cuts that the model may have; beyond it they are averaged.  None means as many as fit into 64 MB.
        Beyond 20 per group only those stay that have a multiplier.
    n_groups : int or None, default=None
        Number of groups of samples, each with its own model.  None means 200, or 1000 if the region's oracle is a
        solver, for which passes are slow; fewer if there are many coefficients.
    verbose : int, default=0
    """

    name = "bundle"
    supports_sparse = True
    requires = ()
    supports_chunks = True
    starts_from_sample = True  # without it, optima that are far away may not be found

    def __init__(
        self,
        *,
        tol: float = 1e-6,
        max_iter: int | None = None,
        max_cuts: int | None = None,
        n_groups: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(tol=tol, max_iter=max_iter, verbose=verbose)
        self.max_cuts = max_cuts
        self.n_groups = n_groups

    @classmethod
    def estimate(cls, objective: LinearObjective, run: Run) -> Estimate:
        """Passes over the data, and a program in each of them; a pass gives a cut for each group.

        A program with as many cuts as unknowns has a minimum.  If decisions vary smoothly, no cut is exact, and every
        group needs as many.
        """
        columns = columns_of(objective)
        groups = groups_for(objective, columns)
        passes = max(PASSES, columns / (1 if has(objective.region, "smoothed") else groups))
        step = step_work(objective, CUTS * groups, columns)
        work = passes * step
        if can_leave_out_rows(objective):  # they are few after the first try, from the fit to a sample
            work = min(work, FIRST_TRY * step + finishing_work(objective, run))
        return Estimate(work, 8.0 * NUMBERS)

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Minimize from ``start`` or from least squares; ``n_iter`` counts passes."""
        with one_blas_thread:  # the program's matrices are small
            search: BundleSearch | None = run.paused.pop(self.name, None)
            done = 0 if search is None else search.n_iter
            progress = Progress(self.name, objective, run, self.verbose, tol=self.tol, done=done)
            status, message = Status.CONVERGED, ""
            if search is None:
                model = CutModel(objective, run, self.n_groups, self.max_cuts)
                limit = 500 if self.max_iter is None else max(self.max_iter, 1)
                search = BundleSearch(model, progress, self.tol, limit)
                search.begin(start)
            else:
                search.go_on(progress, start)
            try:
                while search.gap() > self.tol:
                    search.solve_program()
                    center = search.center
                    if search.gap() <= self.tol or search.finish_early():
                        break
                    # The trial point of the last program is one for its center.
                    if search.center is center and not search.solve_again():
                        search.call_oracle()
                    search.work += search.model.work
                    if progress.spend(search.model.work):
                        status = Status.PAUSED
                        break
            except Stop as stop:
                status, message = stop.status, str(stop)
            except TimeIsUp:
                status, message = Status.TIME_LIMIT, run.deadline.message
            if status is not Status.CONVERGED and not search.balanced:
                search.bound = max(search.bound, search.bound_of(search.balance(True)))
            search.report(force=True)
            result = self.result(objective, search.center, search.value, search.bound, search.n_iter, status, message)
            if result.status is Status.PAUSED:
                run.paused[self.name] = search
            return result


class BundleSearch:
    """State of the bundle method: the best point, the model, the step, the best bound and the phase."""

    def __init__(self, model: CutModel, progress: Progress, tol: float, limit: int) -> None:
        self.model, self.objective, self.progress, self.tol, self.limit = model, model.objective, progress, tol, limit
        self.bound, self.n_iter, self.work, self.phase = ZERO_BOUND, 0, 0.0, Phase.DESCEND
        self.moments: Moments = (0.0, np.zeros(self.objective.shape))  # of v_i = w_i, which prove a bound of zero
        self.polished = 0
        self.proved = -np.inf  # best bound of this proof
        self.balanced = True  # whether the last multipliers were balanced for the bound
        self.last: list[np.ndarray] = []  # where the oracle was called last
        self.can_finish, self.next_try = can_leave_out_rows(self.objective), FIRST_TRY

    def begin(self, start: np.ndarray | None) -> None:
        """Call the oracle at the start and at least squares."""
        self.progress.begin()
        objective = self.objective
        self.center = objective.least_squares if start is None else start
        self.value, self.n_iter = self.model.add(self.center)[0], 1
        if start is not None and start is not objective.least_squares:
            # The fit to a sample may be worse than least squares on all rows.
            other, _ = self.model.add(objective.least_squares)
            self.n_iter += 1
            if other < self.value:
                self.center, self.value = objective.least_squares, other
        gradient = self.model.expand(self.model.A.sum(axis=0)) + objective.penalty_gradient(self.center)
        # The step that would bring the objective to zero if it were linear.
        self.step = min(max(self.value / max(float(np.vdot(gradient, gradient)), 1e-300), 1e-12), MAX_STEP)
        self.decrease = self.value

    def go_on(self, progress: Progress, start: np.ndarray | None) -> None:
        """Continue after a pause; ``start`` may be a better point that another solver has found."""
        self.progress = progress
        progress.begin()
        if start is not None and not np.array_equal(start, self.center):
            self.move(start)

    def move(self, Theta: np.ndarray) -> None:
        """Add cuts at a point that was found elsewhere, and go on from there if it is better."""
        value, _ = self.model.add(Theta)
        self.n_iter, self.proved = self.n_iter + 1, -np.inf
        if value < self.value:
            self.center, self.value = Theta, value
            self.bound = max(ZERO_BOUND, self.bound_of(self.moments))

    def gap(self) -> float:
        """Relative gap of the best point."""
        return self.objective.relative_gap(self.value, self.bound.value)

    def report(self, force: bool = False) -> None:
        """Report the state of the search."""
        self.progress(self.n_iter, self.value, self.bound.value, force=force)

    def solve_program(self) -> None:
        """Minimize the model around the center, and improve the bound by its multipliers."""
        if self.progress.late():
            raise TimeIsUp
        size = self.objective.gap_size(self.value)
        accuracy = max(
            min(1e-2 * (self.value - self.bound.value), 0.1 * max(self.decrease, 0.0)), 1e-2 * self.tol * size
        )
        if self.phase is not Phase.DESCEND:
            # The residual slope is of the order of sqrt(accuracy / step), and the bound is charged for it.
            accuracy = 1e-14 * size
        self.trial, predicted, self.balance = self.model.minimize(self.center, self.step, accuracy)
        self.decrease = self.value - predicted
        # Balancing needs a factorization, which is not worth it far from the optimum.
        self.balanced = self.decrease <= max(BALANCE_FROM, 10.0 * self.tol) * size
        # Without a ridge, bounds depend on the distance of the center, so the old one is computed again.
        candidates = [self.moments, self.balance(False), *([self.balance(True)] if self.balanced else [])]
        bounds = [self.bound_of(moments) for moments in candidates]
        self.moments, self.bound = candidates[bounds.index(max(bounds))], max(ZERO_BOUND, *bounds)
        self.new_bound = max(bounds[1:]).value
        self.report()

    def solve_again(self) -> bool:
        """Choose the next phase; return whether to solve the program again without a call of the oracle."""
        if self.decrease > 0.1 * self.tol * self.objective.gap_size(self.value):
            self.phase = Phase.DESCEND
            return False
        if self.phase is Phase.DESCEND:
            self.phase, self.proved = Phase.PROVE, -np.inf
            return True  # solve the same program more accurately
        if self.phase is Phase.POLISH:
            self.phase = Phase.PROVE
            return False
        if (self.new_bound > self.proved or self.bound.value <= 0.0) and self.step < MAX_STEP:
            # No predicted decrease nearby; enlarge the step so that the bound holds far away.  While nothing is proved,
            # as after a warm start at the optimum, cuts from far away are missing, and a larger step finds them.
            self.proved, self.step = self.new_bound, min(10.0 * self.step, MAX_STEP)
            return True
        if self.polished == POLISHED:
            raise Stop(Status.NUMERICAL_LIMIT, "the quadratic program reached machine precision")
        self.phase, self.polished, self.step = Phase.POLISH, self.polished + 1, 1e-3 * self.step
        return True

    def call_oracle(self) -> None:
        """Evaluate the trial point, add cuts, adapt the step, and move to the trial point if it is better."""
        if self.n_iter >= self.limit:
            raise Stop(Status.ITERATION_LIMIT, f"max_iter={self.limit} passes were used up")
        new, n_cuts = self.model.add(self.trial)
        self.n_iter += 1
        self.last = [*self.last[1 - LAST :], self.trial]
        proving = self.phase is not Phase.DESCEND
        if not proving and n_cuts == 0 and new >= self.value:
            raise Stop(Status.NUMERICAL_LIMIT, "the quadratic program reached machine precision")
        ratio = (self.value - new) / max(self.decrease, 1e-300)
        if proving:
            self.proved = -np.inf
        elif ratio > 0.5:
            self.step = min(self.step * min(max(0.5 / max(1.0 - ratio, 1e-2), 2.0), 10.0), MAX_STEP)
        elif ratio < -1.0:
            self.step = self.step * max(1.0 / (1.0 - ratio), 0.1)
        if ratio > 1e-3 or (proving and new < self.value):
            self.center, self.value = self.trial, new
            self.bound = max(ZERO_BOUND, self.bound_of(self.moments))

    def finish_early(self) -> bool:
        """Minimize over the rows whose decisions differ between the last points; whether the gap is closed."""
        if self.n_iter < self.next_try or not self.can_finish:
            return False
        self.next_try = 2 * self.n_iter
        models, run = [self.center, *self.last], self.model.run
        # It may be in vain, and so takes at most as much work as the passes so far.
        found = finish_with_undecided_rows(self.objective, run, models, self.value, self.tol, self.work)
        if found is None:
            return False
        Theta, value, moments = found
        center, value = (Theta, value) if value < self.value else (self.center, self.value)
        self.moments, bound = best_proof(self.objective, [self.moments, moments], center)
        if self.objective.relative_gap(value, bound.value) <= self.tol:
            self.center, self.value = center, value
        elif center is Theta:
            self.move(Theta)
        self.bound = bound
        self.balanced |= self.moments is moments  # nothing more to gain
        return self.gap() <= self.tol

    def bound_of(self, moments: Moments) -> Bound:
        """Bound that averaged cuts prove for the center."""
        return self.objective.dual_value_from_moments(*moments, self.center)
