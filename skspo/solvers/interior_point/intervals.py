"""The interior-point method for boxes: every cost is a problem of its own, and all of them are solved at once.

Conventions
-----------
    m costs, n samples, q features; every cost has its own mu and its own step lengths

    S = {w = lower + h u : 0 <= u <= 1},     costs of u   f = h (T z - c),   T = 2 Theta

        dual feasibility     f = s - r                        s of u >= 0, r of t = 1 - u >= 0, kept by all steps
        complementarity      u s = mu,  t r = mu
        moments              sum_i a_i (u_i - u*_i) z_i = kappa (P - P0),   P = h T,   kappa = l2 / (4 h^2)

    With D = 1 / (s/u + r/t) a Newton step is

        du = D (e - dP z),     (sum_i a_i D_i z_i z_i^T + kappa) dP = sum_i a_i D_i e_i z_i + residual

    e = -f for the predictor.  Relative steps are x = du/u and y = du/t, so that ds/s = -1 - x and dr/r = -1 + y.

``state.State`` has the same method for general regions, with equalities, centrality correctors and an l1 penalty.  Here
the matrix of a step is tiny, so that correctors would take longer than the iterations that they save.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._training.in_memory import InMemoryObjective
from ..._training.objective import CERTIFICATE_RADIUS, GAP_FLOOR, LinearObjective
from ..._training.run import Run
from ..._utils.limits import TimeIsUp, check_time, one_blas_thread
from ..base import MATRIX_SPEED, Estimate, Progress, Result, Solver, Status, rows_of
from ..predictor_corrector import MOST, step
from .blocks import FeatureSums, packed_indices
from .state import COPIES, PULL, START, orthonormalized

#: a cost stops when its gap, and what the certificate charges for its moments, are this share of the tolerance; or when
#: its gap is smaller by another factor
DONE, SMALLER = 0.25, 1e-3

#: iterations that the fits of benchmarks/auto.py needed, typically
ITERATIONS = 25.0

#: operations of one of them on each entry of the iterate
ITERATE = 20.0

#: moves of decisions that match their moments at the end
MOVES = 5


class IntervalSolver(Solver):
    """Exact minimization over boxes, without an l1 penalty.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Iteration limit; None means 60.
    verbose : int, default=0
    """

    name = "intervals"
    requires = ("blocks", "standard_form", "repair")
    penalties = ("none", "ridge")
    can_pause = False

    @classmethod
    def estimate(cls, objective: LinearObjective, run: Run) -> Estimate:
        """Iterations; a matrix of the features for each cost."""
        if not is_box(objective):
            return super().estimate(objective, run)
        entries, q = float(objective.n_samples * objective.shape[0]), objective.design.n_coef
        return Estimate(ITERATIONS * entries * (ITERATE + q * q / MATRIX_SPEED), 8.0 * COPIES * entries)

    @one_blas_thread  # the matrices are small
    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Run predictor-corrector steps until the certified gap is closed."""
        if not is_box(objective):
            raise ValueError(
                "solver='intervals' is for boxes that are the same for all samples, with coefficients for each cost. "
                "Use solver='auto'."
            )
        objective = rows_of(objective)
        limit = 60 if self.max_iter is None else self.max_iter
        start = objective.least_squares if start is None else start
        progress = Progress(self.name, objective, run, self.verbose, tol=self.tol)
        intervals = Intervals(objective, start)
        status, message = Status.ITERATION_LIMIT, f"max_iter={limit} was reached"
        n_iter = 0
        progress.begin()
        with np.errstate(all="ignore"):  # what overflows or divides by zero is found by looking at the step
            while intervals.active.size:
                if n_iter == limit:
                    break
                if progress.late():
                    status, message = Status.TIME_LIMIT, run.deadline.message
                    break
                n_iter += 1
                try:
                    intervals.go_on(DONE * self.tol)
                except TimeIsUp:
                    status, message = Status.TIME_LIMIT, run.deadline.message
                    break
            if not intervals.active.size:
                status, message = Status.NUMERICAL_LIMIT, "rounding errors leave no room for another step"
            Theta, V = intervals.result()
        result = self.finish(objective, run, [(Theta, V)], n_iter, status, message)
        progress(n_iter, result.objective, result.lower_bound, force=True)
        return result


def is_box(objective: LinearObjective) -> bool:
    """Whether the region is a box, the same for all samples, and every cost has coefficients of its own."""
    region: Any = objective.region
    form = region.standard_form(objective.normals.shape[1])
    bounded = bool(np.isfinite(form.lower).all() and np.isfinite(form.upper).all())
    return bounded and not (form.A.shape[0] or form.project is not None or form.varies or objective.design.shared)


class _Move(NamedTuple):
    """Directions of all costs."""

    dP: np.ndarray
    change: np.ndarray  # of u
    u: np.ndarray  # relative: of u, -t, s and r; those of s and r are not formed for the predictor
    t: np.ndarray
    primal: np.ndarray  # largest relative decreases of u and t
    dual: np.ndarray  # and of s and r
    s: Any = None
    r: Any = None


class Intervals:
    """Iterates of all costs whose bounds differ, for a region that is a box; Theta is the start."""

    def __init__(self, objective: InMemoryObjective, Theta: np.ndarray) -> None:
        self.objective, self.a = objective, objective.weight
        region: Any = objective.region
        form = region.standard_form(objective.shape[0])
        height = form.upper - form.lower
        self.columns = np.flatnonzero(height > 0)
        self.lower, self.h = form.lower, height[self.columns, None]
        ridge = objective.alpha > 0
        design, self.back = orthonormalized(objective)
        into = self.back if ridge else np.linalg.pinv(self.back).T
        self.Z = np.ascontiguousarray(design.Z)
        self.ZT, self.aZ = np.ascontiguousarray(self.Z.T), self.Z * self.a[:, None]
        q = self.Z.shape[1]
        self.square = packed_indices(q)

        # Costs whose bounds are the same have the model that the penalty prefers, or the start.
        self.Theta = objective.prior if ridge else Theta
        l2 = objective.l2 if ridge else np.zeros(q)
        self.most = MOST
        self.kappa, self.one_step = l2 / (2.0 * self.h) ** 2, bool(l2.any())
        self.prior = 2.0 * self.h * (objective.prior[self.columns] @ into)
        self.start = 2.0 * self.h * (Theta[self.columns] @ into)
        C = self.h * objective.C.T[self.columns]
        best = (objective.W - self.lower).T[self.columns] / self.h
        self.target = best @ self.aZ
        # The loss of a cost is sum_i a_i max(-f, 0) + P.target - constant.  Gaps are relative to at least 1 % of the
        # zero model's.
        self.constant = (C * best) @ self.a
        self.floor = GAP_FLOOR * (np.maximum(C, 0.0) @ self.a - self.constant)

        self.P = self.start.copy()
        f = self.P @ self.ZT - C
        mu = START * np.maximum(np.abs(f).mean(axis=1, keepdims=True), 1e-8)
        # The point of the central path, where 1/u - 1/t = f/mu
        ratio = f / mu
        near = 2.0 / (2.0 + np.abs(ratio) + np.sqrt(ratio * ratio + 4.0))
        self.u, self.t = np.where(ratio > 0, near, 1.0 - near), np.where(ratio > 0, 1.0 - near, near)
        self.s, self.r = mu / self.u, mu / self.t
        #: costs that have not stopped, which are the rows of P, u, t, s and r; and those of the others
        self.active = np.arange(self.columns.size)
        self.stopped = self.P.copy(), self.u.copy(), self.t.copy()

    def go_on(self, tol: float) -> None:
        """Predictor and corrector of all costs that have not stopped; first those whose gaps are small stop."""
        check_time()
        self.gap, self.residual, done = self._measure(tol)
        if done.any():
            self._stop(done)
            self.gap, self.residual = self.gap[~done], self.residual[~done]
        if self.active.size:
            primal, dual = step(self)
            stuck = np.broadcast_to(np.maximum(primal, dual) == 0.0, self.active.shape)
            if stuck.any():
                self._stop(stuck)

    def mu(self) -> np.ndarray:
        """Average of the complementarity products of every cost."""
        return 0.5 * self.gap

    def factor(self, mu: np.ndarray) -> bool:
        """Invert the matrices of all costs."""
        u, t, s, r = self.u, self.t, self.s, self.r
        self.us, self.tr, self.D = u * s, t * r, u * t / (s * t + r * u)
        self.H = self._matrices(self.D)
        diagonal = np.arange(self.H.shape[1])
        self.H[:, diagonal, diagonal] += self.kappa[self.active] + (mu * PULL**-2.0)[:, None]
        self.inverse = _inverse(self.H)
        return True

    def _direction(self, e: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Steps of P and of u for the targets e."""
        du = self.D * e
        dP = _solve(self.H, self.inverse, rhs + du @ self.aZ)
        du -= self.D * (dP @ self.ZT)
        return dP, du

    def predictor(self) -> _Move:
        """Direction to feasibility and to products of zero."""
        dP, change = self._direction(self.r - self.s, self.residual)
        u, t = change / self.u, change / self.t
        dual = np.maximum(1.0 + u.max(axis=1), 1.0 - t.min(axis=1))
        return _Move(dP, change, u, t, np.maximum(-u.min(axis=1), t.max(axis=1)), dual)

    def after(self, move: _Move, primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Average of the products after a step of the predictor."""
        s, r, a = self.s, self.r, self.a
        first = np.einsum("ij,ij,j->i", s - r, move.change, a)
        second = np.einsum("ij,ij,j->i", s * move.u + r * move.t, move.change, a)
        # u s (1 + ap x) (1 - ad (1 + x)) + t r (1 - ap y) (1 - ad (1 - y)) with the relative steps x and -y
        return 0.5 * ((1.0 - dual) * self.gap + (primal * (1.0 - dual) - dual) * first - primal * dual * second)

    def corrector(self, move: _Move, goal: np.ndarray) -> _Move:
        """Direction to products ``goal``, with the products of the predictor's steps."""
        goal, s, r = goal[:, None], move.u, move.t
        # By how much u s and t r shall change, relative to what they are.
        s *= 1.0 + s
        s += goal / self.us - 1.0
        r *= r - 1.0
        r += goal / self.tr - 1.0
        pull = goal * PULL**-2.0 * (self.P - self.start[self.active])
        dP, change = self._direction(self.s * s - self.r * r, self.residual - pull)
        u, t = change / self.u, change / self.t
        s -= u
        r += t
        primal = np.maximum(-u.min(axis=1), t.max(axis=1))
        return _Move(dP, change, u, t, primal, np.maximum(-s.min(axis=1), -r.min(axis=1)), s, r)

    def decreases(self, move: _Move) -> tuple[np.ndarray, np.ndarray]:
        """Largest relative decreases of u and t, and of s and r, of every cost."""
        return move.primal, move.dual

    def finite(self, move: _Move) -> np.ndarray:
        """Whether the directions of every cost have only finite numbers."""
        return np.isfinite(move.dP.sum(axis=1) + move.primal + move.dual)

    def advance(self, move: _Move, primal: np.ndarray, dual: np.ndarray) -> None:
        """Take steps; those of length zero may not be finite."""
        stuck, ap, ad = np.maximum(primal, dual) == 0.0, primal[:, None], dual[:, None]
        if stuck.any():
            for x in (move.dP, move.u, move.t, move.s, move.r):
                x[stuck] = 0.0
        self.P += ad * move.dP
        # t is not 1 - u, which would lose its last digits near the bound.
        steps = (self.u, move.u, ap), (self.t, move.t, -ap), (self.s, move.s, ad), (self.r, move.r, ad)
        for iterate, x, length in steps:
            x *= length
            x += 1.0
            iterate *= x

    def _measure(self, tol: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gap and residual of the moments of every cost, and whether they are small."""
        a, active, P = self.a, self.active, self.P
        gap = np.einsum("ij,ij,j->i", self.u, self.s, a) + np.einsum("ij,ij,j->i", self.t, self.r, a)
        kappa, lean = self.kappa[active], P - self.prior[active]
        value = np.maximum(self.r - self.s, 0.0) @ a + (P * self.target[active]).sum(axis=1) - self.constant[active]
        value += 0.5 * (kappa * lean * lean).sum(axis=1)
        residual = self.target[active] + kappa * lean - self.u @ self.aZ
        size = np.maximum(value, self.floor[active])
        # A cost of little value may have the gap of an average one.
        size = np.maximum(size, size.mean())
        charge = CERTIFICATE_RADIUS * np.linalg.norm(residual, axis=1)
        done = (gap <= tol * size) & ((charge <= tol * size) | (gap <= SMALLER * tol * size))
        return gap, -residual, done

    def _matrices(self, D: np.ndarray) -> np.ndarray:
        """Matrix sum_i a_i D_i z_i z_i^T of every cost."""
        sums = FeatureSums(self.Z.shape[1], D.shape[0])
        sums.add(D, self.Z, self.a)
        return np.take(sums.sums.T, self.square, axis=1)

    def _stop(self, which: np.ndarray) -> None:
        """Keep the iterates of some costs, and go on with the others."""
        rows, rest = self.active[which], ~which
        for kept, now in zip(self.stopped, (self.P, self.u, self.t), strict=True):
            kept[rows] = now[which]
        self.active = self.active[rest]
        self.P, self.u, self.t, self.s, self.r = (x[rest] for x in (self.P, self.u, self.t, self.s, self.r))

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Theta, and decisions that are moved where there is room until their moments match; ends the iterations."""
        self._stop(np.ones(self.active.size, dtype=bool))
        P, u, t = self.stopped
        goal = self.target + self.kappa * (P - self.prior)
        D = 1.0 / (1.0 / (u * u) + 1.0 / (t * t))
        H = self._matrices(D)
        inverse = _inverse(H)
        residual = goal - u @ self.aZ
        for _ in range(MOVES):
            du = D * (_solve(H, inverse, residual) @ self.ZT)
            worst = np.maximum(-(du / u).min(axis=1), (du / t).max(axis=1))
            du *= np.minimum(1.0, 0.9 / np.maximum(worst, 1e-300))[:, None]
            after = goal - (u + du) @ self.aZ
            better = np.linalg.norm(after, axis=1) <= 0.7 * np.linalg.norm(residual, axis=1)
            if not better.any():
                break
            du[~better] = 0.0
            u, t = u + du, t - du
            residual = goal - u @ self.aZ
        Theta, V = self.Theta.copy(), np.tile(self.lower, (self.a.size, 1))
        Theta[self.columns] = P / (2.0 * self.h) @ self.back.T
        V[:, self.columns] += (self.h * u).T
        return self.objective.canonical(Theta), V


def _inverse(H: np.ndarray) -> np.ndarray:
    """Inverses of positive definite matrices, slightly regularized; NaN if there is none."""
    q = H.shape[1]
    size = np.trace(H, axis1=1, axis2=2) / q
    try:
        inverse: np.ndarray = np.linalg.inv(H + (1e-14 * size + 1e-300)[:, None, None] * np.eye(q))
    except np.linalg.LinAlgError:
        return np.full_like(H, np.nan)
    return inverse


def _solve(H: np.ndarray, inverse: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solutions of small systems, refined once."""
    x = np.matmul(inverse, rhs[:, :, None])
    x += np.matmul(inverse, rhs[:, :, None] - np.matmul(H, x))
    return x[:, :, 0]
