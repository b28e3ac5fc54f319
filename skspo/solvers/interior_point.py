"""A primal-dual interior-point method for polyhedral regions whose Newton system separates by sample.

Conventions
-----------
    Every sample has its own linear program over the same polytope, in reduced form (see ``ReducedForm``)

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
    degenerate vertex, and N^T D^{-1} N between vertices, so M is applied through the orthogonal factorisation of
    D^{-1/2} N, which squares nothing.  With a single equality the first form is safe.

    An l1 penalty enters through Theta - prior = p - n with p, n >= 0 and multipliers l1 - g, l1 + g >= 0.

The final decisions w_i are feasible and match the moments, so they prove the lower bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ..objective import LinearObjective
from ..regions.base import Region
from ..regions.polyhedral_base import InequalityForm, StandardForm, polyhedral_geometry
from .base import Progress, Result, Solver

#: number of samples handled at once where temporary arrays are larger than the data
CHUNK_ELEMENTS = 4_000_000


class ReducedForm(NamedTuple):
    """{w = offset + E u : A u = b, u >= 0, u[bounded] <= h} with A of full row rank and a strictly feasible u."""

    A: np.ndarray  # (m, N)
    E: np.ndarray  # (d, N)
    offset: np.ndarray  # (d,)
    bounded: np.ndarray  # indices of variables with an upper bound
    h: np.ndarray  # their bounds
    center: np.ndarray  # (N,) strictly feasible
    directions: np.ndarray  # (d, k) orthonormal basis of the directions of w


def reduce_form(standard: StandardForm, region: Region, d: int) -> ReducedForm:
    """Remove variables that are fixed, openly or by implication, shift bounds to zero, drop redundant equalities."""
    lower, upper = standard.lower.copy(), standard.upper.copy()
    N = lower.size
    E = np.eye(d, N) if standard.project is None else standard.project.toarray()
    free = ~np.isfinite(lower) & ~np.isfinite(upper)
    if free.any():
        # A variable without bounds has no scaling; bounds that cannot be active change nothing.
        low, high = region.bounding_box(d)  # type: ignore[attr-defined]
        room = 1.0 + (high - low)
        lower[free], upper[free] = (low - room)[free[:d]], (high + room)[free[:d]]
    form = InequalityForm.build(N, A_eq=standard.A, b_eq=standard.b, lower=lower, upper=upper)
    geometry = polyhedral_geometry(form)
    up, low_ = np.isfinite(upper), np.isfinite(lower)
    # geometry.strict lists the finite upper bounds, then the finite lower bounds.
    strict_up, strict_low = np.ones(N, dtype=bool), np.ones(N, dtype=bool)
    strict_up[up] = geometry.strict[: up.sum()]
    strict_low[low_] = geometry.strict[up.sum() :]
    kept = strict_up & strict_low
    fixed = np.where(strict_low, upper, lower)
    u_fixed = np.where(kept, 0.0, fixed)
    # Variables with only an upper bound are mirrored, so that every variable has the lower bound zero.
    sign = np.where(low_, 1.0, -1.0)[kept]
    base = np.where(low_, lower, upper)[kept]
    offset = E @ u_fixed + E[:, kept] @ base
    A = standard.A.toarray()[:, kept] * sign
    if A.shape[0]:
        _, R, pivots = scipy.linalg.qr(A.T, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(R))
        A = A[pivots[: int((diagonal > 1e-10 * max(float(diagonal[0]), 1e-300)).sum())]]
    E = E[:, kept] * sign
    span = upper[kept] - lower[kept]
    bounded = np.flatnonzero(np.isfinite(span))
    center = (geometry.center[kept] - base) * sign
    null = scipy.linalg.null_space(A) if A.shape[0] else np.eye(A.shape[1])
    U, sv, _ = np.linalg.svd(E @ null, full_matrices=False)
    directions = U[:, sv > 1e-10 * max(float(sv.max(initial=0.0)), 1e-300)] if sv.size else np.zeros((d, 0))
    return ReducedForm(A, E, offset, bounded, span[bounded], center, directions)


def predicted_work(objective: LinearObjective) -> float:
    """Multiplications of one iteration, roughly: small matrices of every sample, then one factorisation."""
    d, q = objective.shape
    A = objective.region.standard_form(d).A  # type: ignore[attr-defined]
    N, k = A.shape[1], d - objective.normals.shape[0]
    null = max(N - A.shape[0], k)
    small = N * k**2 if A.shape[0] == 1 else 2 * N * null**2 + 2 * null**3
    return objective.n_samples * float(small + k**2 * q**2) + float(k * q) ** 3


class InteriorPointSolver(Solver):
    """Exact minimisation over polyhedral regions, linear in the number of samples.

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

    def __init__(self, *, tol: float = 1e-6, max_iter: int | None = None, verbose: int = 0) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def solve(self, objective: LinearObjective, coef_init: np.ndarray | None = None) -> Result:
        """Run predictor-corrector steps until the certified gap is closed."""
        limit = 100 if self.max_iter is None else self.max_iter
        region, d = objective.region, objective.shape[0]
        if "reduced form" not in objective.derived:
            objective.derived["reduced form"] = reduce_form(region.standard_form(d), region, d)  # type: ignore[attr-defined]
        form = objective.derived["reduced form"]
        start = objective.least_squares if coef_init is None else coef_init
        if form.directions.shape[1] == 0 or form.A.shape[1] == 0:
            # A single feasible decision: every model is optimal for the loss, and the prior for the penalty.
            Theta = objective.canonical(objective.prior if objective.alpha > 0 else start)
            return self.finish(objective, [(Theta, objective.decisions(Theta))], 1)
        progress = Progress(self.name, objective, self.verbose)
        state = _State(objective, form, start)
        best: Result | None = None
        message, checked, n_iter = f"max_iter={limit} was reached", np.inf, 0
        while True:
            gap, value = state.gap(), state.value()
            progress(n_iter, value, max(value - gap, 0.0))
            close = objective.relative_gap(value, value - gap) <= 0.5 * self.tol
            close = close and state.moment_error() <= 1e-3 * self.tol and gap <= 0.3 * checked
            if close or state.stalled or n_iter == limit:
                checked = gap
                with np.errstate(all="ignore"):
                    candidates = [(state.coefficients(), state.matched_decisions())]
                if not close:
                    candidates.append((start, objective.decisions(start)))  # never worse than where we came from
                result = self.finish(objective, candidates, n_iter)
                if best is None or result.objective - result.lower_bound < best.objective - best.lower_bound:
                    best = result
                if best.converged or state.stalled or n_iter == limit:
                    break
            n_iter += 1
            with np.errstate(all="ignore"):  # what overflows or divides by zero is found by looking at the step
                moved = state.step()
            if not moved:
                state.stalled = True
                message = "rounding errors leave no room for another step"
        progress(n_iter, best.objective, best.lower_bound, force=True)
        return best if best.converged else best._replace(message=message)


class _State:
    """Iterate and Newton system of the method."""

    def __init__(self, objective: LinearObjective, form: ReducedForm, Theta: np.ndarray) -> None:
        self.objective, self.form = objective, form
        self.a, self.C = objective.weight, objective.C
        self.A, self.U, self.h = form.A, form.bounded, form.h
        m, N = form.A.shape
        self.b = form.A @ form.center
        self.stalled = False

        # Without a penalty features are orthonormalised; with one the penalty fixes their coordinates.
        self.Z = objective.design.Z
        self.back = np.eye(self.Z.shape[1])
        if objective.alpha == 0:
            gram = (self.Z * self.a[:, None]).T @ self.Z
            values, vectors = np.linalg.eigh(gram)
            keep = values > 1e-13 * values[-1]
            self.back = vectors[:, keep] / np.sqrt(values[keep])
            self.Z = self.Z @ self.back
        self.q = self.Z.shape[1]
        self.lasso = bool(objective.l1.any())
        # A ridge and the loss alike are blind to hidden directions; an l1 norm is not.
        self.basis = np.eye(objective.shape[0]) if self.lasso else form.directions
        self.k = self.basis.shape[1]
        self.EZ = form.E.T @ self.basis  # (N, k): costs of u from reduced coefficients
        self.EC = -(self.C @ form.E)  # (n, N)
        self.single = m == 1
        self.null = scipy.linalg.null_space(self.A) if m else np.eye(N)
        if not self.lasso and np.array_equal(form.E, np.eye(N)):
            self.null = self.basis
        self.NZ = self.null.T @ self.EZ
        self.aligned = self.null is self.basis
        self.A_pinv = np.linalg.pinv(self.A)
        self.pairs, self.feature_pairs = np.triu_indices(self.k), np.triu_indices(self.q)
        # Products needed to form the matrices of many samples by one matrix product.
        if self.single:
            self.AA = self.A.T**2
            self.AZ = self.A.T * self.EZ
            self.ZZ = np.ascontiguousarray(self.EZ[:, self.pairs[0]] * self.EZ[:, self.pairs[1]])
        else:
            self.NN = np.ascontiguousarray((self.null[:, :, None] * self.null[:, None, :]).reshape(N, -1))
        W = objective.W - form.offset
        self.target = self.basis.T @ ((W * self.a[:, None]).T @ self.Z)  # moments of the optimal decisions

        # P: reduced T = 2 Theta.  Start at the given coefficients, pinned down in the kept coordinates.
        full = 2.0 * Theta if objective.alpha > 0 else 2.0 * Theta @ np.linalg.pinv(self.back).T
        self.P = self.basis.T @ full
        self.prior = 2.0 * self.basis.T @ (objective.prior if objective.alpha > 0 else np.zeros_like(full))
        l2 = objective.l2 if objective.alpha > 0 else np.zeros(self.q)
        self.l2 = np.broadcast_to(l2, (self.k, self.q)).copy()
        if self.lasso:
            self._start_lasso()
        self._center()

    # -- start ---------------------------------------------------------------------------------------------------------

    def _costs(self) -> np.ndarray:
        return self.EC + self.Z @ (self.EZ @ self.P).T

    def _center(self) -> None:
        """Newton's method for min f.u - mu sum log u - mu sum log t, so that the start is centred and dual feasible."""
        f = self._costs()
        seen = f @ self.null
        mu = 0.3 * max(float(np.abs(seen).mean()), 1e-8)
        u = np.tile(self.form.center, (f.shape[0], 1))
        todo = np.arange(f.shape[0])
        s, r = np.empty_like(u), np.empty((u.shape[0], self.U.size))
        for last in [False] * 25 + [True]:
            uu = u[todo]
            g, inverse = f[todo] - mu / uu, mu / (uu * uu)
            tt = self.h - uu[:, self.U]
            g[:, self.U] += mu / tt
            inverse[:, self.U] += mu / (tt * tt)
            D = 1.0 / inverse
            du = -self._apply(self._factor(D), D, g)
            ratio = np.maximum((-du / uu).max(axis=1), (du[:, self.U] / tt).max(axis=1, initial=0.0))
            decrement = np.sqrt(np.maximum(-(du * g).sum(axis=1), 0.0) / mu)
            done = (decrement < 0.3) & (ratio < 0.9) if not last else np.ones(todo.size, dtype=bool)
            if done.any():
                # First-order dual slacks: exactly dual feasible.
                i = todo[done]
                s[i] = mu / uu[done] * np.maximum(1.0 - du[done] / uu[done], 1e-3)
                r[i] = mu / tt[done] * np.maximum(1.0 + du[done][:, self.U] / tt[done], 1e-3)
            step = np.where(ratio > 0.9, 0.9 / np.maximum(ratio, 1e-300), 1.0)
            u[todo] = np.where(done[:, None], uu, uu + step[:, None] * du)
            todo = todo[~done]
            if todo.size == 0:
                break
        self.u, self.s, self.r = u, s, r
        self.t = self.h - u[:, self.U]

    def _start_lasso(self) -> None:
        """P - n = Theta - prior with g = 0: in the middle of |g| <= l1."""
        l1 = np.broadcast_to(self.objective.l1, (self.k, self.q))
        self.is_l1 = l1 > 0
        self.l1 = l1[self.is_l1]
        delta = 0.5 * (self.P - self.prior)[self.is_l1]
        room = 0.1 * max(float(np.abs(delta).max(initial=0.0)), 1e-3)
        self.p, self.n = np.maximum(delta, 0) + room, np.maximum(-delta, 0) + room
        self.g = np.zeros_like(delta)

    # -- measures ------------------------------------------------------------------------------------------------------

    def gap(self) -> float:
        """Complementarity, which is the duality gap once both sides are feasible."""
        total = float(self.a @ ((self.u * self.s).sum(axis=1) + (self.t * self.r).sum(axis=1)))
        if self.lasso:
            total += float(self.p @ (self.l1 - self.g) + self.n @ (self.l1 + self.g))
        return total

    def _mu(self) -> float:
        count = self.u.shape[1] + self.U.size
        return float(self.a @ ((self.u * self.s).sum(axis=1) + (self.t * self.r).sum(axis=1))) / count

    def moments(self) -> np.ndarray:
        """Moments of the decisions, less their target, less half the penalty's subgradient: zero at the solution."""
        V = (self.u * self.a[:, None]) @ self.EZ
        R = V.T @ self.Z - self.target - 0.25 * self.l2 * (self.P - self.prior)
        if self.lasso:
            R[self.is_l1] -= 0.5 * self.g
        return R

    def moment_error(self) -> float:
        return float(np.abs(self.moments()).max())

    def value(self) -> float:
        return self.objective.value(self.coefficients())

    def coefficients(self) -> np.ndarray:
        Theta = 0.5 * self.basis @ self.P @ self.back.T
        return self.objective.canonical(Theta)

    # -- linear algebra of one sample, batched -------------------------------------------------------------------------

    def _factor(self, D: np.ndarray) -> np.ndarray:
        """What ``_apply`` needs of every sample: 1 / (A D A^T) for a single equality, else R^{-1}.

        R is the triangular factor of D^{-1/2} null, so that M = null R^{-1} R^{-T} null^T.
        """
        if self.single:
            return 1.0 / (D @ self.AA)
        n, (N, k) = D.shape[0], self.null.shape
        F = np.empty((n, k, k))
        chunk = max(64, CHUNK_ELEMENTS // (N * k))
        # While the scaling is moderate the normal equations are accurate enough, and cheaper than an orthogonal factor.
        moderate = float((D.max(axis=1) / D.min(axis=1)).max()) < 1e7
        for start in range(0, n, chunk):
            i = slice(start, start + chunk)
            if moderate:
                L = np.linalg.cholesky(((1.0 / D[i]) @ self.NN).reshape(-1, k, k))
                F[i] = np.linalg.inv(L).transpose(0, 2, 1)
            else:
                F[i] = np.linalg.inv(np.linalg.qr(self.null / np.sqrt(D[i])[:, :, None], mode="r"))
        return F

    def _apply(self, F: np.ndarray, D: np.ndarray, x: np.ndarray) -> np.ndarray:
        """M x of every sample."""
        if self.single:
            Dx = D * x
            return Dx - D * ((F * (Dx @ self.A.T)) @ self.A)
        y = (x @ self.null)[:, None, :]
        y = np.matmul(np.matmul(y, F), F.transpose(0, 2, 1))
        return y[:, 0] @ self.null.T

    def _restore(self, F: np.ndarray, D: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Small step that makes A u = b again: rounding errors must not add up."""
        residual = self.b - u @ self.A.T
        # Steps in null(A) drift by rounding only; with a single equality the drift is larger and must not fall on
        # variables that are nearly zero.
        return D * ((F * residual) @ self.A) if self.single else residual @ self.A_pinv.T

    def _normal_matrix(self, D: np.ndarray, F: np.ndarray) -> np.ndarray:
        """sum_i a_i (EZ^T M_i EZ) (x) z_i z_i^T, in chunks of samples; both factors are symmetric, so pairs suffice."""
        n, k, q = D.shape[0], self.k, self.q
        (i, j), (g, h) = self.pairs, self.feature_pairs
        H = np.zeros((i.size, g.size))
        chunk = max(64, CHUNK_ELEMENTS // max(k * k, q * q, self.null.size))
        for start in range(0, n, chunk):
            rows = slice(start, start + chunk)
            if self.single:
                AD = D[rows] @ self.AZ
                K = D[rows] @ self.ZZ
                K -= (F[rows] * AD)[:, i] * AD[:, j]
            else:
                Y = F[rows] if self.aligned else np.matmul(self.NZ.T, F[rows])
                K = np.matmul(Y, Y.transpose(0, 2, 1))[:, i, j]
            z = self.Z[rows]
            H += K.T @ ((z * self.a[rows, None])[:, g] * z[:, h])
        full = np.empty((k, k, q, q))
        for a, b in ((i, j), (j, i)):
            for c, e in ((g, h), (h, g)):
                full[a[:, None], b[:, None], c, e] = H
        return full.transpose(0, 2, 1, 3).reshape(k * q, k * q)

    def matched_decisions(self) -> np.ndarray:
        """Decisions moved, inside the polytope and where there is room, until their moments match.

        Du_i = -M_i E^T Y z_i cancels the moment residual exactly; M_i is small wherever u or t is.
        """
        u = self.u
        D = u * u
        t = self.t
        D[:, self.U] = 1.0 / (1.0 / D[:, self.U] + 1.0 / (t * t))
        F = self._factor(D)
        factor = _cholesky(self._normal_matrix(D, F))
        R = self.moments()
        for _ in range(5):
            if factor is None or np.abs(R).max() < 1e-17:
                break
            Y = scipy.linalg.cho_solve(factor, R.ravel(), check_finite=False).reshape(self.k, self.q)
            du = self._restore(F, D, u) - self._apply(F, D, self.Z @ (self.EZ @ Y).T)
            worst = max(float((-du / u).max()), float((du[:, self.U] / t).max(initial=0.0)))
            trial = u + min(1.0, 0.9 / max(worst, 1e-300)) * du
            kept, self.u = self.u, trial
            R_trial = self.moments()
            self.u = kept
            if not np.linalg.norm(R_trial) <= 0.7 * np.linalg.norm(R):
                break
            u, R = trial, R_trial
        return self.form.offset + np.where(np.isfinite(u), u, self.u) @ self.form.E.T

    # -- one iteration -------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Predictor, corrector, centrality correctors; False if no progress is possible."""
        u, s, t, r, U = self.u, self.s, self.t, self.r, self.U
        inverse = s / u
        inverse[:, U] += r / t
        D = 1.0 / inverse
        F = self._factor(D)
        H = self._normal_matrix(D, F)
        curvature = 0.25 * self.l2.copy()
        if self.lasso:
            sp_, sn_ = self.l1 - self.g, self.l1 + self.g
            E = self.p / sp_ + self.n / sn_
            curvature[self.is_l1] += 0.25 / E
        H[np.diag_indices_from(H)] += curvature.ravel()
        if not np.isfinite(H).all():
            return False
        factor = _cholesky(H)
        if factor is None:
            return False
        slack = s.copy()
        slack[:, U] -= r
        dual = (self._costs() - slack) @ self.null @ self.null.T
        R = self.moments()
        mu = self._mu()

        def direction(rc: np.ndarray, rt: np.ndarray, lp: Any, ln: Any, feasibility: float) -> tuple[Any, ...]:
            """Newton direction for complementarity targets rc (of u s), rt (of t r), lp, ln (of the l1 part)."""
            rho = rc / u
            rho[:, U] -= rt / t
            base = self._apply(F, D, rho - feasibility * dual)
            if feasibility:
                base += self._restore(F, D, u)
            rhs = ((base * self.a[:, None]) @ self.EZ).T @ self.Z + feasibility * R
            if self.lasso:
                # g moves with the coefficients: dg = (dTheta - kappa) / E.
                delta = 0.5 * (self.P - self.prior)[self.is_l1]
                kappa = lp / sp_ - ln / sn_ + feasibility * (self.p - self.n - delta)
                rhs[self.is_l1] += 0.5 * kappa / E
            x = scipy.linalg.cho_solve(factor, rhs.ravel(), check_finite=False)
            x += scipy.linalg.cho_solve(factor, rhs.ravel() - H @ x, check_finite=False)
            dP = x.reshape(self.k, self.q)
            du = base - self._apply(F, D, self.Z @ (self.EZ @ dP).T)
            ds = (rc - s * du) / u
            dr = (rt + r * du[:, U]) / t
            if not self.lasso:
                return dP, du, ds, dr
            dg = (0.5 * dP[self.is_l1] - kappa) / E
            dp = (lp + self.p * dg) / sp_
            dn = (ln - self.n * dg) / sn_
            return dP, du, ds, dr, dg, dp, dn

        def lengths(move: tuple[Any, ...], share: float = 1.0) -> tuple[float, float]:
            """Longest steps, at most one, that use no more than the given share of the way to the boundary."""
            _, du, ds, dr = move[:4]
            primal = max(float((-du / u).max()), float((du[:, U] / t).max(initial=0.0)))
            dual_ = max(float((-ds / s).max()), float((-dr / r).max(initial=0.0)))
            if self.lasso:
                dg, dp, dn = move[4:]
                primal = max(primal, float((dg / sp_).max()), float((-dg / sn_).max()))
                dual_ = max(dual_, float((-dp / self.p).max()), float((-dn / self.n).max()))
            ap, ad = min(1.0, share / max(primal, 1e-300)), min(1.0, share / max(dual_, 1e-300))
            # With a ridge the coefficients stand on both sides, and the two steps must be one.
            return (min(ap, ad),) * 2 if self.l2.any() else (ap, ad)

        us, tr = u * s, t * r
        zero = (0.0, 0.0)
        lpn = (self.p * sp_, self.n * sn_) if self.lasso else zero
        move = direction(-us, -tr, -lpn[0], -lpn[1], 1.0)
        ap, ad = lengths(move)
        du, ds, dr = move[1:4]
        after = float(self.a @ ((u + ap * du) * (s + ad * ds)).sum(axis=1))
        after += float(self.a @ ((t - ap * du[:, U]) * (r + ad * dr)).sum(axis=1))
        sigma = (after / (u.shape[1] + U.size) / mu) ** 3
        goal = min(max(sigma, 1e-6), 1.0) * mu
        second_l = (goal - lpn[0] + move[4] * move[5], goal - lpn[1] - move[4] * move[6]) if self.lasso else zero
        move = direction(goal - us - du * ds, goal - tr + du[:, U] * dr, second_l[0], second_l[1], 1.0)
        ap, ad = lengths(move)
        for _ in range(3):
            if min(ap, ad) >= 0.9:
                break
            # Gondzio's centrality corrector: pull outlying products back into [0.1, 10] goal at a longer step.
            bp, bd = min(1.0, ap + 0.3), min(1.0, ad + 0.3)
            _, du, ds, dr = move[:4]
            extra = direction(
                _outliers((u + bp * du) * (s + bd * ds), goal),
                _outliers((t - bp * du[:, U]) * (r + bd * dr), goal),
                0.0,
                0.0,
                0.0,
            )
            trial = tuple(x + y for x, y in zip(move, extra, strict=True))
            cp, cd = lengths(trial)
            if cp + cd < ap + ad + 0.02:
                break
            move, ap, ad = trial, cp, cd
        if max(ap, ad) < 1e-6:
            return False
        if not all(np.isfinite(x).all() for x in move):
            return False
        ap, ad = lengths(move, 0.995)
        dP, du, ds, dr = move[:4]
        self.P = self.P + ad * dP
        self.u = u + ap * du
        self.s = s + ad * ds
        self.r = r + ad * dr
        self.t = t - ap * du[:, U]  # not h - u, which would lose its last digits near the bound
        if self.lasso:
            self.g, self.p, self.n = self.g + ap * move[4], self.p + ad * move[5], self.n + ad * move[6]
        return True


def _outliers(product: np.ndarray, goal: float) -> np.ndarray:
    """Return what brings products below 0.1 goal up and above 10 goal down, the latter by no more than 10 goal."""
    low, high = 0.1 * goal, 10.0 * goal
    return np.where(product < low, low - product, np.where(product > high, np.maximum(high - product, -high), 0.0))


def _cholesky(H: np.ndarray) -> Any:
    """Factor H, regularised only as far as needed."""
    size = max(float(np.trace(H)) / H.shape[0], 1e-300)
    for exponent in range(-14, 0, 2):
        try:
            shifted = H.copy()
            shifted[np.diag_indices_from(shifted)] += size * 10.0**exponent
            return scipy.linalg.cho_factor(shifted, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
    return None
