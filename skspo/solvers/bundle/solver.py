"""Proximal bundle method: any region, exact, nothing but batched argmins.

The samples are split into groups, and each group g has its own model of its share of the loss.  A pass of the oracle
at some Theta gives decisions v_i, and with them one cut per group, which holds for all Theta (see ``objective``):

    loss_g(Theta) >= b + <A, Theta>,   b = sum_i a_i c_i.(v_i - w_i),   A = 2 sum_i a_i (w_i - v_i) z_i^T    (i in g)

The next point minimises the model, that is, the sum over groups of the highest cut, plus the penalty, which is not
approximated, plus |Theta - centre|^2 / (2 step).  The multipliers of the cuts sum to one in each group and say how to
average the v_i, so the averaged (b, A) are the moments of decisions in conv(S), and those prove a lower bound.

The start.  Where samples are many, some of them say almost as well where the optimum is: the method starts from the fit
to one in eight, which starts from one in eight of those, and so on.  The smallest sample is fitted by interior point
where the region allows it.  Each level needs two dozen passes, so that the whole takes little more than the last one.

Many groups make few passes: with one sample per group the model is exact as soon as every sample has met the decisions
that matter to it, and the bound needs no ridge.  What they cost is time for the quadratic program.
"""

from __future__ import annotations

import numpy as np

from ..._training.certificate import ZERO_BOUND
from ..._training.objective import GAP_FLOOR, LinearObjective
from ..._utils.deadline import TimeIsUp
from ..._utils.threads import one_blas_thread
from ..base import Progress, Result, Solver, Status
from ..interior_point.solver import InteriorPointSolver
from .cut_model import BALANCE_FROM, CutModel, Moments

#: largest proximal step; subgradients and coefficients are of order one
MAX_STEP = 1e9

#: relative gap of the fit to a sample; more would not bring it nearer to the optimum of all
SAMPLE_TOL = 1e-3

#: why there is no further step
EXACT = "the quadratic program is solved as accurately as it can be"


class BundleSolver(Solver):
    """Exact minimisation by cutting planes around the best point.

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
        Number of groups of samples with a model of their own.  None means 200, or 1000 if the region's oracle is a
        solver (passes are then what counts), but fewer if coefficients are many.
    verbose : int, default=0
    """

    name = "bundle"
    requires = ()
    supports_chunks = True

    def __init__(
        self,
        *,
        tol: float = 1e-6,
        max_iter: int | None = None,
        max_cuts: int | None = None,
        n_groups: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.max_cuts = max_cuts
        self.n_groups = n_groups
        self.verbose = verbose

    def solve(self, objective: LinearObjective, coef_init: np.ndarray | None = None) -> Result:
        """Minimise from ``coef_init``, or from the fit to a sample, or from least squares; ``n_iter`` counts passes."""
        with one_blas_thread:  # the program's matrices are small
            return self._solve(objective, coef_init)

    def _solve(self, objective: LinearObjective, coef_init: np.ndarray | None) -> Result:
        limit = 500 if self.max_iter is None else max(self.max_iter, 1)
        progress = Progress(self.name, objective, self.verbose)
        model = CutModel(objective, self.n_groups, self.max_cuts)
        start = self._start(objective) if coef_init is None else coef_init
        progress.begin()
        centre, (value, _), n_iter = start, model.add(start), 1
        if start is not objective.least_squares:
            # The optimum of a sample may be a poor model of all rows: least squares is a candidate, too.
            other, _ = model.add(objective.least_squares)
            n_iter += 1
            if other < value:
                centre, value = objective.least_squares, other
        gradient = model.expand(model.A.sum(axis=0)) + objective.penalty_gradient(centre)
        # The step that would bring the objective to zero if it were linear.
        step = min(max(value / max(float(np.vdot(gradient, gradient)), 1e-300), 1e-12), MAX_STEP)
        moments: Moments = (0.0, np.zeros(objective.shape))  # those of v_i = w_i, which prove that zero is a bound
        bound, decrease, close = ZERO_BOUND, value, True
        status, message = Status.CONVERGED, ""
        proving, polishing, proved, rounds = False, False, -np.inf, 0
        while objective.relative_gap(value, bound.value) > self.tol:
            if progress.late():
                status, message = Status.TIME_LIMIT, objective.deadline.message
                break
            size = max(value, GAP_FLOOR * objective.trivial_value())
            accuracy = max(min(1e-2 * (value - bound.value), 0.1 * max(decrease, 0.0)), 1e-2 * self.tol * size)
            if proving:
                # The residual slope is of the order of sqrt(accuracy / step), and it is charged for.
                accuracy = 1e-14 * size
            try:
                trial, predicted, balance = model.minimize(centre, step, accuracy)
            except TimeIsUp:
                status, message = Status.TIME_LIMIT, objective.deadline.message
                break
            decrease = value - predicted
            # Balancing takes a factorisation, and far from the optimum the bound is poor anyway.
            close = decrease <= max(BALANCE_FROM, 10.0 * self.tol) * size
            # Without a ridge the radius of a bound grows with the distance of the best point, so that it may change.
            candidates: list[Moments] = [moments, balance(False), *([balance(True)] if close else [])]
            bounds = [objective.dual_value_from_moments(*m, centre) for m in candidates]
            moments, bound = candidates[bounds.index(max(bounds))], max(ZERO_BOUND, *bounds)
            progress(n_iter, value, bound.value)
            if objective.relative_gap(value, bound.value) <= self.tol:
                break
            again, proving = proving, decrease <= 0.1 * self.tol * size
            if proving and not again:
                proved = -np.inf
                continue  # the same more accurately
            new_bound = max(bounds[1:]).value
            if proving and not polishing and new_bound > proved and step < MAX_STEP:
                # The model promises nothing near the centre, and the proof needs that it promises nothing far away.
                proved, step = new_bound, min(10.0 * step, MAX_STEP)
                continue
            if proving and not polishing:
                # Rounding has stopped the proof.  The program is better conditioned for a shorter step, which gives a
                # better centre, from which it will do.
                polishing, rounds, step = True, rounds + 1, 1e-3 * step
                if rounds <= 5:
                    continue
            if proving and rounds > 5:
                status, message = Status.NUMERICAL_LIMIT, EXACT
                break
            polishing = False
            if n_iter >= limit:
                status, message = Status.ITERATION_LIMIT, f"max_iter={limit} passes were used up"
                break
            try:
                new, n_cuts = model.add(trial)
            except TimeIsUp:
                status, message = Status.TIME_LIMIT, objective.deadline.message
                break
            n_iter += 1
            if not proving and n_cuts == 0 and new >= value:
                status, message = Status.NUMERICAL_LIMIT, EXACT
                break
            ratio = (value - new) / max(decrease, 1e-300)
            if proving:
                proved = -np.inf
            elif ratio > 0.5:
                step = min(step * min(max(0.5 / max(1.0 - ratio, 1e-2), 2.0), 10.0), MAX_STEP)
            elif ratio < -1.0:
                step = step * max(1.0 / (1.0 - ratio), 0.1)
            if ratio > 1e-3 or (proving and new < value):
                centre, value = trial, new
                bound = max(ZERO_BOUND, objective.dual_value_from_moments(*moments, centre))
        if status is not Status.CONVERGED and not close:
            # Stopped early: the last multipliers prove something, too.
            bound = max(bound, objective.dual_value_from_moments(*balance(True), centre))
        progress(n_iter, value, bound.value, force=True)
        return self.result(objective, centre, value, bound, n_iter, status, message)

    def _start(self, objective: LinearObjective) -> np.ndarray:
        """Return the optimum of a sample, if there are many rows and they are at hand, or least squares."""
        sample = objective.sampled() if objective.in_memory else None
        if sample is None:
            return objective.least_squares
        sample.deadline = objective.deadline.share(0.5)
        interior = not InteriorPointSolver.missing(objective.region) and sample.sampled() is None
        solver = InteriorPointSolver if interior else BundleSolver
        try:
            with sample.deadline.enforced():
                return solver(tol=max(self.tol, SAMPLE_TOL), verbose=self.verbose).solve(sample).coef
        except TimeIsUp:
            return objective.least_squares
