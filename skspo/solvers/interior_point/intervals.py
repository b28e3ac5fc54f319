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

from typing import Any

import numpy as np

from ..._training.certificate import CERTIFICATE_RADIUS
from ..._training.in_memory import InMemoryObjective
from ..._training.objective import GAP_FLOOR, LinearObjective
from ..._training.run import Run
from ..._utils.limits import TimeIsUp, check_time, one_blas_thread
from ..base import MATRIX_SPEED, Estimate, Progress, Result, Solver, Status, rows_of
from .normal_matrix import FeatureSums, packed_indices
from .state import PULL, orthonormalized

#: mu of the start in typical costs, and the share of the way to the boundary that a step may use
START, MOST = 0.3, 0.995

#: a cost stops when its gap, and what the certificate charges for its moments, are this share of the tolerance; or when
#: its gap is smaller by another factor
DONE, SMALLER = 0.25, 1e-3

#: iterations that the fits of benchmarks/auto.py needed, typically; operations of one of them on each entry of the
#: iterate; and arrays of the size of the iterate
ITERATIONS, ITERATE, COPIES = 25.0, 20.0, 20.0

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

    def __init__(self, *, tol: float = 1e-6, max_iter: int | None = None, verbose: int = 0) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Run predictor-corrector steps until the certified gap is closed."""
        if not is_box(objective):
            raise ValueError(
                "solver='intervals' is for boxes that are the same for all samples, with coefficients for each cost. "
                "Use solver='auto'."
            )
        with one_blas_thread:  # the matrices are small
            return self._solve(rows_of(objective), run, start)

    def _solve(self, objective: InMemoryObjective, run: Run, start: np.ndarray | None) -> Result:
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
                    intervals.step(DONE * self.tol)
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


class Intervals:
    """Iterates of all costs whose bounds differ.

    Parameters
    ----------
    objective : InMemoryObjective
        Its region is a box.
    Theta : ndarray
        Start.
    """

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

    def step(self, tol: float) -> None:
        """Predictor and corrector of all costs that have not stopped; first those whose gaps are small stop."""
        check_time()
        gap, residual, done = self._measure(tol)
        if done.any():
            self._stop(done)
            gap, residual = gap[~done], residual[~done]
        if not self.active.size:
            return
        u, t, s, r, a = self.u, self.t, self.s, self.r, self.a
        us, tr, f = u * s, t * r, s - r
        D = u * t / (s * t + r * u)
        mu = 0.5 * gap
        H = self._matrices(D)
        diagonal = np.arange(H.shape[1])
        H[:, diagonal, diagonal] += self.kappa[self.active] + (mu * PULL**-2.0)[:, None]
        inverse = _inverse(H)

        def direction(e: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            De = D * e
            dP = _solve(H, inverse, rhs + De @ self.aZ)
            De -= D * (dP @ self.ZT)
            return dP, De

        _, du = direction(-f, residual)
        x, y = du / u, du / t
        ap, ad = self._lengths(x, y, 1.0 + x.max(axis=1), 1.0 - y.min(axis=1), 1.0)
        sx, ry = s * x, r * y
        change = np.einsum("ij,ij,j->i", s - r, du, a)
        twice = np.einsum("ij,ij,j->i", sx + ry, du, a)
        # u s (1 + ap x) (1 - ad (1 + x)) + t r (1 - ap y) (1 - ad (1 - y))
        after = (1.0 - ad) * gap + (ap * (1.0 - ad) - ad) * change - ap * ad * twice
        goal = (np.clip((0.5 * after / mu) ** 3, 1e-6, 1.0) * mu)[:, None]
        # Mehrotra's corrector: by how much u s and t r shall change, relative to what they are.
        x *= 1.0 + x
        x += goal / us - 1.0
        y *= y - 1.0
        y += goal / tr - 1.0
        pull = goal * PULL**-2.0 * (self.P - self.start[self.active])
        dP, du = direction(s * x - r * y, residual - pull)
        du_u, du_t = du / u, du / t
        x -= du_u
        y += du_t
        ap, ad = self._lengths(du_u, du_t, -x.min(axis=1), -y.min(axis=1), MOST)
        failed = ~np.isfinite(dP.sum(axis=1) + ap + ad)
        if failed.any():
            dP[failed], ap[failed], ad[failed] = 0.0, 0.0, 0.0
            du_u[failed], du_t[failed], x[failed], y[failed] = 0.0, 0.0, 0.0, 0.0
        ap, ad = ap[:, None], ad[:, None]
        self.P += ad * dP
        # t is not 1 - u, which would lose its last digits near the bound.
        for iterate, move, length in ((u, du_u, ap), (t, du_t, -ap), (s, x, ad), (r, y, ad)):
            move *= length
            move += 1.0
            iterate *= move
        if failed.any():
            self._stop(failed)

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

    def _lengths(
        self, x: np.ndarray, y: np.ndarray, ds: np.ndarray, dr: np.ndarray, most: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Longest steps for relative steps x of u and -y of t, and for largest decreases of s and r."""
        primal, dual = np.maximum(-x.min(axis=1), y.max(axis=1)), np.maximum(ds, dr)
        ap, ad = (np.minimum(1.0, most / np.maximum(worst, 1e-300)) for worst in (primal, dual))
        if self.one_step:  # with a ridge the coefficients stand on both sides
            ap = ad = np.minimum(ap, ad)
        return ap, ad

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
