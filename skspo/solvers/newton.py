"""Newton's method along a path of smoothed problems, for level sets {w : f(w) <= r} of strongly convex functions.

The SPO+ loss is not smooth where 2 c_hat = c, and nearly polyhedral where the constraint is loose: L-BFGS stalls there.
For mu > 0 the decisions

    w_mu(v) = argmin_{w in S} v.w + mu (f(w) - f_min)                (``Region.smoothed``)

move smoothly with v = 2 c_hat - c, and so does the loss in which they replace w*(v),

    l_mu = v.(w*(c) - w_mu(v)) - mu (f(w_mu(v)) - f_min),    gradient 2 (w*(c) - w_mu(v)),   Hessian 4 M,  M = -dw_mu/dv

which is below SPO+ by at most mu (r - f_min).  With the Hessian sum_i a_i 4 M_i (x) z_i z_i^T of the coefficients,
Newton's method follows the minimizers as mu decreases.  Where the gradient vanishes the w_mu have the moments of an
optimum, and the gap of their bound is mu times their mean level of f.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._training.in_memory import InMemoryObjective
from .._training.objective import LinearObjective
from .._training.run import Run
from .._utils.limits import BLOCK_ELEMENTS, Deadline, TimeIsUp, check_time, one_blas_thread
from ..regions.capabilities import has
from .base import MATRIX_SPEED, STEP, Estimate, Progress, Result, Solver, Status, pass_work, rows_of

#: steps that the fits of benchmarks/auto.py needed, typically
STEPS = 20.0

#: curvature, in units of typical costs and features, below which the loss counts as linear, and the longest step there
FLAT, LONGEST = 1e-12, 100.0

#: share of the tolerance that is allowed for smoothing at the end
LAST = 0.3

#: a stage of the path ends when Newton's decrement is below this share of the smoothing error
STAGE = 1e-2


def predicted_work(objective: LinearObjective) -> float:
    """Multiplications of one iteration, roughly."""
    d, q, size = objective.normals.shape[1], objective.design.n_coef, float(objective.least_squares.size)
    one = d * d * q + d * q * q if objective.design.shared else size**2
    return objective.n_samples * float(one) + size**3


def step_work(objective: LinearObjective) -> float:
    """Work of one step, with smoothed decisions at its end and their derivatives."""
    return STEP + predicted_work(objective) / MATRIX_SPEED + 2.0 * pass_work(objective)


class NewtonSolver(Solver):
    """Exact minimization for strongly convex regions, also where the loss has kinks or is nearly polyhedral.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Largest number of Newton steps; None means 500.
    verbose : int, default=0
    """

    name = "newton"
    supports_sparse = True
    requires = ("smoothed", "repair")
    penalties = ("none", "ridge")

    @classmethod
    def estimate(cls, objective: LinearObjective, run: Run) -> Estimate:
        """Steps along the path; memory of the Hessian, its factor and a block of matrices."""
        return Estimate(STEPS * step_work(objective), 16.0 * float(objective.least_squares.size) ** 2)

    @classmethod
    def fits(cls, objective: LinearObjective, run: Run) -> bool:
        """Whether the steps fit into the remaining time."""
        return run.deadline.allows(STEPS * predicted_work(objective))

    @one_blas_thread  # matrices of single samples are small
    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Follow the path from ``start`` or from least squares."""
        objective = rows_of(objective)
        limit = 500 if self.max_iter is None else self.max_iter
        first = Theta = objective.least_squares if start is None else start
        progress = Progress(self.name, objective, run, self.verbose, tol=self.tol)
        value = objective.value(Theta)
        size = objective.gap_size(value)
        if size == 0.0:  # all costs are zero: every model is optimal
            return self.finish(objective, run, [(Theta, None)], 1)
        path = _SmoothedPath(objective, run.deadline)
        mu = 0.1 * size / max(path.depth(Theta, 1e-9 * size), 1e-300)
        n_iter, stage, work = 0, 0, step_work(objective)
        status, message = Status.ITERATION_LIMIT, f"max_iter={limit} was reached"
        while True:
            point = path.at(Theta, mu)
            smoothing = mu * float(objective.weight @ point.level)
            last = smoothing <= LAST * self.tol * size
            try:
                step = path.newton_step(Theta, mu, point.G)
            except TimeIsUp:
                status, message = Status.TIME_LIMIT, run.deadline.message
                break
            decrement = -float(np.vdot(point.G, step))
            progress(n_iter, point.value + smoothing)  # no bound: the moments match only at the end
            proved = objective.radius(Theta) * float(np.linalg.norm(point.G)) <= 0.1 * self.tol * size
            if last and (proved or decrement <= 0.0):
                status, message = Status.NUMERICAL_LIMIT, "rounding errors leave no room for another step"
                break
            if progress.late():
                status, message = Status.TIME_LIMIT, run.deadline.message
                break
            if progress.spend(work):
                status, message = Status.PAUSED, ""
                break
            if not last and decrement <= STAGE * smoothing:
                # Not below the last value that is needed: smaller values only increase rounding errors.
                mu, stage = mu * max(decrease_after(stage), 0.9 * LAST * self.tol * size / smoothing), 0
                continue
            if n_iter >= limit:
                break
            n_iter, stage = n_iter + 1, stage + 1
            trial = path.line_search(Theta, step, mu, point, decrement)
            if trial is None or (trial == Theta).all():
                if last:
                    status, message = Status.NUMERICAL_LIMIT, "rounding errors leave no room for another step"
                    break
                mu, stage = 0.3 * mu, 0
                continue
            Theta = trial
            size = objective.gap_size(point.value + smoothing)
        candidates: list[tuple[np.ndarray, np.ndarray | None]] = [(Theta, path.at(Theta, mu).W)]
        if start is not None or run.deadline.reached:
            candidates.append((first, None))  # the result is not worse than the start
        result = self.finish(objective, run, candidates, n_iter, status, message)
        progress(n_iter, result.objective, result.lower_bound, force=True)
        return result


def decrease_after(stage: int) -> float:
    """Factor of mu: a larger decrease after a stage of few steps than after a long one."""
    return 0.01 if stage <= 1 else 0.1 if stage <= 8 else 0.3


class _Smoothed(NamedTuple):
    """Smoothed objective at some coefficients: value, gradient, decisions and their levels."""

    value: float
    G: np.ndarray
    W: np.ndarray
    level: np.ndarray


class _SmoothedPath:
    """The smoothed problems of an objective."""

    def __init__(self, objective: InMemoryObjective, deadline: Deadline) -> None:
        self.objective, self.deadline = objective, deadline
        self.region: Any = objective.region
        self.memory: dict[str, Any] = {}
        L, R = objective.design.hidden_basis(np.ones(objective.design.n_coef, dtype=bool))
        self.hidden = np.kron(L.T @ L, R @ R.T)  # projection of the entries of Theta on the hidden component

    def at(self, Theta: np.ndarray, mu: float) -> _Smoothed:
        obj = self.objective
        V = 2.0 * obj.design.predict(Theta) - obj.C
        W, level, _ = self.region.smoothed(V, mu, self.memory)
        difference = obj.W - W
        value = float(obj.weight @ (np.einsum("ij,ij->i", V, difference) - mu * level))
        G = 2.0 * obj.design.adjoint(difference * obj.weight[:, None])
        return _Smoothed(value + obj.penalty(Theta), G + obj.penalty_gradient(Theta), W, level)

    def depth(self, Theta: np.ndarray, mu: float) -> float:
        """How far f may be above its minimum, or if that is not known, how far it is with little smoothing."""
        if has(self.region, "strong_convexity"):
            return self.region.strong_convexity(self.objective.C.shape[1]).depth
        return float(self.at(Theta, mu).level.max())

    def newton_step(self, Theta: np.ndarray, mu: float, G: np.ndarray) -> np.ndarray:
        """Solve with the Hessian, regularized only as far as needed."""
        obj = self.objective
        matrix = np.zeros_like(self.hidden)
        d, q = obj.C.shape[1], obj.design.n_coef
        block = max(1, BLOCK_ELEMENTS // max(d, q) ** 2)
        # The factorization cannot be interrupted.
        if not self.deadline.allows(float(len(matrix)) ** 3):
            self.deadline.reached = True
            raise TimeIsUp
        for start in range(0, obj.n_samples, block):
            check_time()
            rows = slice(start, start + block)
            V = 2.0 * obj.design.predict(Theta, rows) - obj.C[rows]
            M = 4.0 * self.region.smoothed(V, mu, curvature=True).M
            M[:, obj.design.known], M[:, :, obj.design.known] = 0.0, 0.0
            matrix += obj.design.curvature(M, rows)
        size = float(np.einsum("ii->", matrix)) / len(matrix)
        # Gradients have no hidden component; the matrix must only be nonsingular there.
        matrix += size * self.hidden
        matrix[np.diag_indices_from(matrix)] += np.broadcast_to(obj.l2, obj.shape).ravel()
        for shift in 10.0 ** np.arange(-14.0, 1.0, 2.0):
            shifted = matrix.copy()
            shifted[np.diag_indices_from(shifted)] += shift * max(size, FLAT)
            try:
                factor = cho_factor(shifted, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            step = -cho_solve(factor, G.ravel(), check_finite=False).reshape(obj.shape)
            length = float(np.linalg.norm(step))
            if np.isfinite(length):
                return step * min(1.0, LONGEST / max(length, 1e-300))
        return -G  # the matrix is dominated by rounding errors

    def line_search(
        self, Theta: np.ndarray, step: np.ndarray, mu: float, point: _Smoothed, decrement: float
    ) -> np.ndarray | None:
        """Return the first of Theta + step, Theta + step / 2, ... that decreases the value, or None."""
        norm, length = float(np.linalg.norm(point.G)), 1.0
        for _ in range(40):
            trial = Theta + length * step
            new = self.at(trial, mu)
            if new.value <= point.value - 1e-3 * length * decrement:
                return trial
            # Near the optimum the value changes by rounding errors only; compare gradients instead.
            level = abs(new.value - point.value) <= 1e-9 * abs(point.value)
            if level and float(np.linalg.norm(new.G)) <= 0.7 * norm:
                return trial
            length *= 0.5
        return None
