"""A primal-dual interior-point method for polyhedral regions whose Newton system separates by sample.

Conventions
-----------
    Every sample has its own linear program over the same polytope, in reduced form (see ``ReducedForm``; w_off, b and
    h may differ from sample to sample, and samples in which other variables are fixed have matrices of their own)

        S = {w = w_off + E u : A u = b, u >= 0, u_U <= h},     costs f_i = E^T (T z_i - c_i),   T = 2 Theta

    s >= 0 are the dual slacks of u >= 0, r >= 0 those of t = h - u_U >= 0.  The problems are coupled only through T:

        dual feasibility     f_i(T) = A^T y_i + s_i - r_i
        complementarity      u s = mu,  t r = mu
        moments              sum_i a_i (w_i - w*(c_i)) z_i^T = g(T) / 2,     g in the subdifferential of the penalty

    With D = 1 / (s/u + r/t) and M = D - D A^T (A D A^T)^{-1} A D = N (N^T D^{-1} N)^{-1} N^T, N a basis of null(A), a
    Newton step needs one coupled system,

        ( sum_i a_i (Z^T E M_i E^T Z) (x) z_i z_i^T + penalty'' / 4 ) dT = rhs,

    Z a basis of the directions in which decisions vary; everything else is batched small linear algebra, so the cost is
    linear in n.  Near the solution the entries of D range over 1 / mu^2: A D A^T is singular to working precision at a
    degenerate vertex, and N^T D^{-1} N between vertices, so M is applied through the orthogonal factorization of
    D^{-1/2} N, which squares nothing.  With a single equality the first form is safe.  For flows in a planar graph the
    columns of N are faces (``cycles``), and N^T D^{-1} N is banded and is factored without subtractions (``banded``).

    An l1 penalty enters through Theta - prior = p - n with p, n >= 0 and multipliers l1 - g, l1 + g >= 0.

A quadratic constraint u^T S u <= 1 is a second-order cone (``quadratic``); D^{-1} is then no longer diagonal.

Where the loss is flat, as in the cost of something that is never chosen, nothing holds the coefficients, and the set of
decisions with the right moments has no interior.  A proximal term mu / PULL^2 |T - start|^2 / 2 holds them; it vanishes
with mu.

The final decisions w_i are feasible and match the moments, so they prove the lower bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._training.in_memory import InMemoryObjective
from ..._training.objective import ZERO_BOUND, LinearObjective
from ..._training.run import Run
from ..._utils.limits import BLOCK_ELEMENTS, TimeIsUp, one_blas_thread
from ...regions.base import Region
from ...regions.capabilities import has
from ..base import START_TOL, Estimate, Progress, Result, Solver, Status, certificate_work
from ..predictor_corrector import step
from ..undecided_rows import WorkingSet, leaves_out_rows, undecided_share, undecided_work
from .state import COPIES, State, coupled_size, forms_of, iteration_work, predicted_work

#: iterations that the fits of benchmarks/auto.py needed, typically
ITERATIONS = 30.0

#: share of the tolerance that the gap of an iterate has where more iterations do not reduce the error of its moments
TINY = 1e-2

#: after two steps whose lengths sum to less than SHORT, and if the coefficients have grown by GROWN, start again with
#: mu at FAR typical costs: the sample of row classes-5000 of benchmarks/exact.py takes 27 iterations, and else 39
SHORT, GROWN, FAR = 0.6, 5.0, 300.0


class InteriorPointSolver(Solver):
    """Exact minimization over polyhedra, with or without a quadratic constraint, in time linear in the samples.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Iteration limit; None means 100.
    verbose : int, default=0
    """

    name = "interior-point"
    requires = ("standard_form", "repair")
    supports_chunks = True

    @classmethod
    def missing(cls, region: Region) -> list[str]:
        """A quadratic form does as well as a standard form."""
        missing = super().missing(region)
        return [name for name in missing if name != "standard_form" or not has(region, "quadratic_form")]

    @classmethod
    def estimate(cls, objective: LinearObjective, run: Run) -> Estimate:
        """Iterations and a certificate; memory of the iterate, a block of matrices, and the coupled matrix."""
        share, work = 1.0, ITERATIONS * iteration_work(objective, run)
        if leaves_out_rows(objective):
            share, work = undecided_share(objective), ITERATIONS * undecided_work(objective, run)
        size = coupled_size(objective)
        region: Any = objective.region
        d = objective.normals.shape[1]
        width = region.standard_form(d).A.shape[1] if has(region, "standard_form") else d
        memory = 8.0 * (COPIES * share * objective.n_samples * width + 2.0 * float(size) ** 2)
        return Estimate(work + certificate_work(objective), memory)

    @classmethod
    def loads_rows(cls, objective: LinearObjective) -> bool:
        """Rows are loaded if they fit into memory, and if all of them had better take part."""
        return not leaves_out_rows(objective)

    @classmethod
    def fits(cls, objective: LinearObjective, run: Run) -> bool:
        """Whether the iterations fit into the time that is left."""
        share = undecided_share(objective) if leaves_out_rows(objective) else 1.0
        return run.deadline.allows(ITERATIONS * predicted_work(objective, run, share))

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Run predictor-corrector steps until the certified gap is closed."""
        # The C library of Linux returns freed memory to the system, and gets it back page by page, unless it has seen a
        # larger array come and go; an iteration has dozens of arrays of a few hundred kilobytes.
        np.empty(BLOCK_ELEMENTS)
        with one_blas_thread:  # matrices of single samples are small
            paused: WorkingSet | _Search | None = run.paused.pop(self.name, None)
            if isinstance(paused, _Search):
                return paused.go_on(run, objective.least_squares if start is None else start)
            if paused is not None or leaves_out_rows(objective):
                Theta = objective.least_squares if start is None else start
                search = WorkingSet(objective, self.tol, Theta, np.inf, []) if paused is None else paused
                result = search.run(run, self, self._fit_sample)
                if result is not None:
                    return result
                start = search.best[0]
            return self._solve(objective.loaded(), run, start)

    def _fit_sample(self, sample: LinearObjective, run: Run) -> Result:
        with run.deadline.enforced():
            return InteriorPointSolver(tol=max(self.tol, START_TOL), verbose=self.verbose).solve(sample, run)

    def _solve(self, objective: InMemoryObjective, run: Run, start: np.ndarray | None) -> Result:
        start = objective.least_squares if start is None else start
        try:
            forms = forms_of(objective, run)
            if not forms:
                message = "the region has no interior within its quadratic constraint"
                return self.finish(objective, run, [(start, None)], 1, Status.FAILED, message)
            k, fixed = forms[0].directions.shape[1], all(form.A.shape[1] == 0 for form in forms)
            if k == 0 or fixed or not objective.design.Z.any():
                # A single feasible decision, or no feature that decisions could see: every model is optimal for the
                # loss, and the prior for the penalty.
                Theta = objective.canonical(objective.prior if objective.alpha > 0 else start)
                return self.finish(objective, run, [(Theta, None)], 1)
            # The largest factorization cannot be interrupted.
            whole = objective.design.shared or objective.l1.any()
            size = objective.shape[1] * float(objective.shape[0] if whole else k)
            if not run.deadline.allows(size**3 / 3.0, 0.5):
                raise TimeIsUp
            search = _Search(self, objective, run, State(objective, forms, start, run.derived), start)
        except TimeIsUp:
            run.deadline.reached = True
            message = f"{run.deadline.message} before the first step"
            return self.result(objective, start, objective.value(start), ZERO_BOUND, 0, Status.TIME_LIMIT, message)
        return search.run()


class _Search:
    """One run of the method: iterate, best result so far, and why it stopped.

    ``state`` is the first iterate; the result must not be worse than ``start``.
    """

    def __init__(
        self, solver: InteriorPointSolver, objective: InMemoryObjective, run: Run, state: State, start: np.ndarray
    ) -> None:
        self.solver, self.objective, self.start_at, self.state = solver, objective, start, state
        self.limit = 100 if solver.max_iter is None else solver.max_iter
        self.work = iteration_work(objective, run)
        self.n_iter, self.checked = 0, np.inf
        self.best: Result | None = None
        self.short, self.restarted = 0, False
        self._begin(run)

    def _begin(self, run: Run) -> None:
        self.run_state = run
        solver = self.solver
        self.progress = Progress(solver.name, self.objective, run, solver.verbose, tol=solver.tol, done=self.n_iter)
        self.stop: tuple[Status, str] | None = None

    def go_on(self, run: Run, start: np.ndarray) -> Result:
        """Continue after a pause."""
        self.start_at = start
        self._begin(run)
        self._step()
        return self.run()

    def run(self) -> Result:
        """Iterate until the certified gap is closed, or something stops the method."""
        self.progress.begin()
        while True:
            close = self._look()
            if (close or self.stop) and self._certify(close):
                break
            self._step()
        best, (status, message) = self.best, self.stop or (Status.CONVERGED, "")
        assert best is not None
        if status is Status.PAUSED and not best.converged:
            self.run_state.paused[self.solver.name] = self
        else:
            self.state.release()
        self.progress(self.n_iter, best.objective, best.lower_bound, force=True)
        return best if best.converged else best._replace(status=status, message=message)

    def _look(self) -> bool:
        """Measure the iterate: whether it is worth a certificate.  Notes why the method must stop, if it must."""
        state, objective, tol = self.state, self.objective, self.solver.tol
        gap = state.gap()
        # A pass of an oracle that iterates may take longer than an iteration, and the certificate needs one anyway.
        slow, Theta = objective.region.oracle_is_solver or state.S is not None, state.coefficients()
        proved = max(0.0, objective.dual_value(state.decisions(), Theta).value) if slow else 0.0
        value = proved + gap if slow else objective.value(Theta)
        self.progress(self.n_iter, value, max(value - gap, 0.0))
        close = objective.relative_gap(value, value - gap) <= 0.5 * tol and gap <= 0.3 * self.checked
        close = close and (np.abs(state.moments()).max() <= 1e-3 * tol or gap <= TINY * tol)
        if close:
            self.checked = gap
        used_up = self.progress.spend(self.work)
        if self.stop is None:
            if self.n_iter >= self.limit:
                self.stop = Status.ITERATION_LIMIT, f"max_iter={self.limit} was reached"
            elif not close and self.progress.late():
                self.stop = Status.TIME_LIMIT, self.run_state.deadline.message
            elif not close and used_up:
                self.stop = Status.PAUSED, ""
        return close

    def _certify(self, close: bool) -> bool:
        """Prove a bound for the iterate, and keep the best result; whether the method ends."""
        state = self.state
        candidates: list[tuple[np.ndarray, np.ndarray | None]] = [(state.coefficients(), self._decisions())]
        if self.n_iter and not close:
            candidates.append((self.start_at, None))  # never worse than where we came from
        # More iterations prove more, and take less time than to mix in other decisions, unless the gap is tiny.
        last = self.stop is not None and self.stop[0] is not Status.PAUSED
        last |= close and state.gap() <= TINY * self.solver.tol
        self.progress.spend(certificate_work(self.objective))
        result = self.solver.finish(self.objective, self.run_state, candidates, self.n_iter, mix=last)
        best = self.best
        if best is None or result.objective - result.lower_bound < best.objective - best.lower_bound:
            self.best = best = result
        return best.converged or self.stop is not None

    def _decisions(self) -> np.ndarray:
        """Decisions for the certificate."""
        with np.errstate(all="ignore"):  # steps that are not finite are not taken
            try:
                return self.state.matched_decisions()
            except TimeIsUp:
                return self.state.decisions()

    def _step(self) -> None:
        """One predictor-corrector step, or a new start where the optimum is far away.

        As where the samples' best decisions can be separated: steps are short and coefficients grow.  From a larger mu
        the path leads there in long steps.
        """
        self.n_iter += 1
        with np.errstate(all="ignore"):  # what overflows or divides by zero is found by looking at the step
            try:
                lengths = step(self.state)
                self.short = self.short + 1 if sum(lengths) < SHORT else 0
                if self.short >= 2 and not self.restarted and self.state.growth() > GROWN:
                    self.restarted = True
                    self.state.restart(FAR)
                elif max(lengths) == 0.0:
                    self.stop = Status.NUMERICAL_LIMIT, "rounding errors leave no room for another step"
            except TimeIsUp:
                # The iterate is where it was before the step, or at a new start.
                self.stop = Status.TIME_LIMIT, self.run_state.deadline.message
