"""A primal-dual interior-point method for polyhedral regions whose Newton system separates by sample.

Conventions
-----------
    Every sample has its own linear program over the same polytope, in reduced form (see ``reduced_form``)

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

A quadratic constraint u^T S u <= 1 adds a slack tau = (1 - u^T S u) / 2 with a multiplier lam, lam tau = mu, the term
lam S u to dual feasibility, and lam S + lam / tau (S u)(S u)^T to D^{-1}, which is then no longer diagonal.

Where the loss is flat, as in the cost of something that is never chosen, nothing holds the coefficients, and the set of
decisions with the right moments has no interior.  A proximal term mu / PULL^2 |T - start|^2 / 2 holds them; it vanishes
with mu.

The final decisions w_i are feasible and match the moments, so they prove the lower bound.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.linalg
import scipy.linalg.lapack

from .._process import one_blas_thread
from ..deadline import TimeIsUp, check_time
from ..objective import ZERO_BOUND, LinearObjective
from ..regions.base import Region
from .base import Progress, Result, Solver
from .interior_point_blocks import Block, SharedBlock, outliers
from .reduced_form import ReducedForm, region_form

#: size of the arrays of a block of samples: small enough for the processor's cache; that of the products of their
#: features; and the multiplications of a block, between two looks at the clock
CHUNK_ELEMENTS, CHUNK_PRODUCTS, CHUNK_WORK = 65_536, 2**22, 2e9

#: iterations, and passes of the same cost before them, without which there is no point in starting
LEAST_ITERATIONS = 20

#: after two steps whose lengths sum to less than SHORT, and if the coefficients have grown by GROWN, start again with
#: mu at FAR typical costs
SHORT, GROWN, FAR = 0.6, 5.0, 300.0

#: with PILOT samples or more, whether to start far away is found out on every PILOT_STEP-th of them, but no fewer than
#: PILOT_ROWS; where coefficients do not grow in the first PILOT_PROBE iterations it is not far
PILOT, PILOT_STEP, PILOT_ROWS, PILOT_ITERATIONS, PILOT_PROBE = 4_000, 20, 500, 12, 4

#: distance from the start, in typical costs, at which the pull back to it is as strong as the barrier; less for curved
#: regions, whose oracles have a tolerance relative to the largest cost
PULL, CURVED_PULL = 10_000.0, 100.0

#: shares of a corrector that are tried
SHARES = (1.0, 0.5, 0.2)


def is_simple(region: Any, d: int) -> bool:
    """Whether the matrix of a sample is diagonal, or diagonal minus rank one: iterations take little time then."""
    return hasattr(region, "standard_form") and region.standard_form(d).A.shape[0] <= 1


def predicted_work(objective: LinearObjective) -> float:
    """Multiplications of one iteration, roughly: small matrices of every sample, then one factorisation."""
    d, q = objective.C.shape[1], objective.design.n_coef
    region: Any = objective.region
    curved = not hasattr(region, "standard_form")
    A = (region.quadratic_form(d).standard if curved else region.standard_form(d)).A
    N, k = A.shape[1], d - objective.normals.shape[0]
    null = max(N - A.shape[0], k)
    small = N * k**2 if A.shape[0] == 1 and not curved else 2 * N * null**2 + 2 * null**3
    if objective.design.shared:
        return objective.n_samples * float(small + N * null * q + null * q**2) + float(q) ** 3
    return objective.n_samples * float(small + k**2 * q**2) + float(k * q) ** 3


class InteriorPointSolver(Solver):
    """Exact minimisation over polyhedra, with or without a quadratic constraint, in time linear in the samples.

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

    @classmethod
    def missing(cls, region: Region) -> list[str]:
        """A quadratic form does as well as a standard form."""
        missing = super().missing(region)
        return [name for name in missing if name != "standard_form" or not hasattr(region, "quadratic_form")]

    def __init__(self, *, tol: float = 1e-6, max_iter: int | None = None, verbose: int = 0) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @classmethod
    def fits(cls, objective: LinearObjective) -> bool:
        """Whether the first few iterations fit into the time that is left."""
        return objective.deadline.allows(LEAST_ITERATIONS * predicted_work(objective))

    def solve(self, objective: LinearObjective, coef_init: np.ndarray | None = None) -> Result:
        """Run predictor-corrector steps until the certified gap is closed."""
        with one_blas_thread:  # matrices of single samples are small
            return self._solve(objective, coef_init)

    def _solve(self, objective: LinearObjective, coef_init: np.ndarray | None) -> Result:
        limit = 100 if self.max_iter is None else self.max_iter
        region, d = objective.region, objective.C.shape[1]
        if "reduced form" not in objective.derived:
            objective.derived["reduced form"] = region_form(region, d)
        form = objective.derived["reduced form"]
        start = objective.least_squares if coef_init is None else coef_init
        if form is None:
            candidates = [(start, objective.decisions(start))]
            return self.finish(objective, candidates, 1, "the region has no interior within its quadratic constraint")
        if form.directions.shape[1] == 0 or form.A.shape[1] == 0 or not objective.design.Z.any():
            # A single feasible decision, or no feature that decisions could see: every model is optimal for the loss,
            # and the prior for the penalty.
            Theta = objective.canonical(objective.prior if objective.alpha > 0 else start)
            return self.finish(objective, [(Theta, objective.decisions(Theta))], 1)
        progress = Progress(self.name, objective, self.verbose)
        try:
            # The largest factorisation cannot be interrupted.
            whole = objective.design.shared or objective.l1.any()
            size = objective.shape[1] * float(objective.shape[0] if whole else form.directions.shape[1])
            if not objective.deadline.allows(size**3 / 3.0, 0.5):
                raise TimeIsUp
            state = State(objective, form, start)
            watch = _Watch(state)
            n = objective.n_samples
            if n >= PILOT and _pilot(objective.thinned(min(PILOT_STEP, n // PILOT_ROWS)), form, start):
                watch.restart()
        except TimeIsUp:
            objective.deadline.reached = True
            message = f"{objective.deadline.message} before the first step"
            return self.result(objective, start, objective.value(start), ZERO_BOUND, 0, message)
        best: Result | None = None
        message, checked, n_iter, stalled = f"max_iter={limit} was reached", np.inf, 0, False
        progress.begin()
        while True:
            gap = state.gap()
            # A pass of an oracle that is a solver takes longer than an iteration, and the certificate needs one anyway.
            value = state.bound() + gap if region.asks_solver else state.value()
            progress(n_iter, value, max(value - gap, 0.0))
            close = objective.relative_gap(value, value - gap) <= 0.5 * self.tol
            if close and gap <= 0.3 * checked:
                close = state.moment_error() <= 1e-3 * self.tol or gap <= 1e-2 * self.tol
            else:
                close = False
            if not close and progress.late():
                stalled, message = True, objective.deadline.message
            if close or stalled or n_iter == limit:
                checked = gap
                with np.errstate(all="ignore"):
                    try:
                        V = state.matched_decisions()
                    except TimeIsUp:
                        V = state.decisions()
                    candidates = [(state.coefficients(), V)]
                if n_iter and not close:
                    candidates.append((start, objective.decisions(start)))  # never worse than where we came from
                result = self.finish(objective, candidates, n_iter)
                if best is None or result.objective - result.lower_bound < best.objective - best.lower_bound:
                    best = result
                if best.converged or stalled or n_iter == limit:
                    break
            n_iter += 1
            with np.errstate(all="ignore"):  # what overflows or divides by zero is found by looking at the step
                try:
                    lengths = state.step()
                    if watch.is_far(lengths):
                        watch.restart()
                    elif max(lengths) == 0.0:
                        stalled, message = True, "rounding errors leave no room for another step"
                except TimeIsUp:
                    # The iterate is where it was before the step, or at a new start.
                    stalled, message = True, objective.deadline.message
        progress(n_iter, best.objective, best.lower_bound, force=True)
        return best if best.converged else best._replace(message=message)


class _Watch:
    """Tell whether the optimum is far away, as where the samples' best decisions can be separated.

    Steps are then short and coefficients grow; from a larger mu the path leads there in long steps.
    """

    def __init__(self, state: State) -> None:
        self.state, self.short, self.restarted = state, 0, False

    def is_far(self, lengths: tuple[float, float]) -> bool:
        self.short = self.short + 1 if sum(lengths) < SHORT else 0
        return self.short >= 2 and not self.restarted and self.state.growth() > GROWN

    def restart(self) -> None:
        self.restarted = True
        self.state.restart(FAR)


def _pilot(objective: LinearObjective, form: ReducedForm, start: np.ndarray) -> bool:
    """Whether the optimum of a small problem of the same kind is far away."""
    state = State(objective, form, start)
    watch = _Watch(state)
    with np.errstate(all="ignore"):
        for i in range(PILOT_ITERATIONS):
            if watch.is_far(state.step()):
                return True
            if i + 1 >= PILOT_PROBE and state.growth() < 0.5 * GROWN:
                break
    return False


class _Move:
    """A search direction: of the coefficients, of the l1 multipliers, and of every block relative to its iterate."""

    def __init__(self, dP: np.ndarray, l1: tuple[np.ndarray, ...], blocks: list[tuple[np.ndarray, ...]]) -> None:
        self.dP, self.l1, self.blocks = dP, l1, blocks

    def plus(self, extra: _Move, primal: float, dual: float) -> _Move:
        """Add a share of another direction; coefficients and dual slacks belong together."""
        shares = (primal, dual, primal, dual)
        blocks = [
            tuple(x + w * y if w else x for x, y, w in zip(mine, other, shares, strict=True))
            for mine, other in zip(self.blocks, extra.blocks, strict=True)
        ]
        l1 = tuple(x + w * y for x, y, w in zip(self.l1, extra.l1, (primal, dual, dual)[: len(self.l1)], strict=True))
        return _Move(self.dP + dual * extra.dP, l1, blocks)


class State:
    """Iterate and Newton system of the method."""

    def __init__(self, objective: LinearObjective, form: ReducedForm, Theta: np.ndarray) -> None:
        self.objective, self.form = objective, form
        self.a = objective.weight
        self.A, self.U, self.h = form.A, form.bounded, form.h
        m, N = form.A.shape
        self.b = form.A @ form.center

        # Without a penalty features are orthonormalised; with one the penalty fixes their coordinates.
        design = copy(objective.design)
        self.back = np.eye(design.n_coef)
        if objective.alpha == 0:
            gram = design.gram(np.ones(self.a.size))
            values, vectors = np.linalg.eigh(gram)
            keep = values > 1e-13 * values[-1]
            self.back = vectors[:, keep] / np.sqrt(values[keep])
            design.Z = design.Z @ self.back
        self.Z, self.q = design.Z, design.n_coef
        self.lasso = bool(objective.l1.any())
        # A ridge and the loss alike are blind to hidden directions; an l1 norm is not.
        self.basis = np.eye(objective.shape[0]) if self.lasso or design.shared else form.directions
        self.k = self.basis.shape[1]
        # (N, k): costs of u from reduced coefficients, if there are some for each cost
        self.EZ = np.zeros((N, 0)) if design.shared else form.E.T @ self.basis
        self.S = form.S
        self.pull: Any = 0.0  # what the proximal term adds to the right-hand side
        self.hold = (PULL if form.S is None else CURVED_PULL) ** -2.0
        self.simple = m <= 1 and form.S is None  # M is diagonal, or diagonal minus rank one
        self.plain = m == 1 and bool((form.A == 1.0).all())
        self.null = scipy.linalg.null_space(self.A) if m else np.eye(N)
        if not self.lasso and np.array_equal(form.E, np.eye(N)):
            self.null = form.directions
        self.NZ = self.null.T @ self.EZ
        self.aligned = self.null is self.basis
        # Products needed to form the matrices of many samples by one matrix product.
        if self.simple:
            self.AA = self.A.T**2
            self.AZ = self.A.T * self.EZ if m else self.EZ
            self.ZZ = (self.EZ[:, :, None] * self.EZ[:, None, :]).reshape(N, -1)
        else:
            self.A_pinv = np.linalg.pinv(self.A)
            self.NN = _row_products(self.null)
        if form.S is not None:
            values, vectors = np.linalg.eigh(form.S)
            self.root = (np.sqrt(np.maximum(values, 0.0)) * vectors).T @ self.null
            self.NSN = self.root.T @ self.root
        W = objective.W - form.offset
        self.target = self.basis.T @ design.adjoint(W * self.a[:, None])  # moments of the optimal decisions

        # P: reduced T = 2 Theta.  Start at the given coefficients, pinned down in the kept coordinates.
        full = 2.0 * Theta if objective.alpha > 0 else 2.0 * Theta @ np.linalg.pinv(self.back).T
        self.start = self.basis.T @ full
        self.prior = 2.0 * self.basis.T @ (objective.prior if objective.alpha > 0 else np.zeros_like(full))
        l2 = objective.l2 if objective.alpha > 0 else np.zeros(self.q)
        self.l2 = np.broadcast_to(l2, (self.k, self.q)).copy()
        # With a ridge the coefficients stand on both sides, with a quadratic the decisions: the two steps must be one.
        self.one_step = bool(self.l2.any()) or form.S is not None
        null, q = self.null.shape[1], self.q
        work = N * q if self.simple else 2.0 * N * null**2 + 2.0 * null**3
        products = null * q if design.shared else q**2
        elements = N * q if design.shared else N
        size = int(max(1.0, min(CHUNK_ELEMENTS // elements, CHUNK_PRODUCTS // products, CHUNK_WORK / work)))
        Samples = SharedBlock if design.shared else Block
        self.blocks = [Samples(self, slice(i, i + size)) for i in range(0, self.a.size, size)]
        self.restart(0.3)

    def restart(self, size: float) -> None:
        """Go to the point of the central path, for the starting coefficients, where mu is ``size`` typical costs."""
        self.P = self.start
        seen = sum(float(np.abs(block.costs(self.P) @ self.null).sum()) for block in self.blocks)
        mu = size * max(seen / (self.a.size * self.null.shape[1]), 1e-8)
        for block in self.blocks:
            check_time()
            block.center(mu)
        if self.lasso:
            self._start_lasso(mu)

    def _start_lasso(self, mu: float) -> None:
        """P - n = Theta - prior with g = 0, in the middle of |g| <= l1, and the smaller of p and n centred."""
        l1 = np.broadcast_to(self.objective.l1, (self.k, self.q))
        self.is_l1 = l1 > 0
        self.l1 = l1[self.is_l1]
        delta = 0.5 * (self.P - self.prior)[self.is_l1]
        room = mu / self.l1
        self.p, self.n = np.maximum(delta, 0) + room, np.maximum(-delta, 0) + room
        self.g = np.zeros_like(delta)

    # -- measures ------------------------------------------------------------------------------------------------------

    def gap(self) -> float:
        """Complementarity, which is the duality gap once both sides are feasible."""
        total = sum(block.complementarity() for block in self.blocks)
        if self.lasso:
            total += float(self.p @ (self.l1 - self.g) + self.n @ (self.l1 + self.g))
        return total

    def moments(self, decisions: list[np.ndarray] | None = None) -> np.ndarray:
        """Moments of the decisions, less their target, less half the penalty's subgradient: zero at the solution."""
        decisions = [block.u for block in self.blocks] if decisions is None else decisions
        R = sum(block.moments(u) for block, u in zip(self.blocks, decisions, strict=True))
        R = R - self.target - 0.25 * self.l2 * (self.P - self.prior)
        if self.lasso:
            R[self.is_l1] -= 0.5 * self.g
        return R

    def moment_error(self) -> float:
        """Largest violation of the moments."""
        return float(np.abs(self.moments()).max())

    def growth(self) -> float:
        """Size of the coefficients relative to where they started, or to a tenth of a typical cost."""
        return float(np.linalg.norm(self.P)) / max(float(np.linalg.norm(self.start)), 0.1)

    def value(self) -> float:
        """Objective of the coefficients."""
        return self.objective.value(self.coefficients())

    def bound(self) -> float:
        """What the decisions prove as they are: cheaper than the objective where the oracle is slow."""
        return max(0.0, self.objective.dual_value(self.decisions(), self.coefficients()).value)

    def decisions(self) -> np.ndarray:
        """Decisions of the iterate."""
        return self.form.offset + np.concatenate([block.u for block in self.blocks]) @ self.form.E.T

    def coefficients(self) -> np.ndarray:
        """Theta of the iterate, in the objective's coordinates."""
        Theta = 0.5 * self.basis @ self.P @ self.back.T
        return self.objective.canonical(Theta)

    def matched_decisions(self) -> np.ndarray:
        """Decisions moved, inside the polytope and where there is room, until their moments match.

        Du_i = -M_i E^T Y z_i cancels the moment residual exactly; M_i is small wherever u or t is.
        """
        U, scalings = self.U, []
        H: Any = 0.0
        for block in self.blocks:
            check_time()
            D = block.u * block.u
            bounds = block.t[:, : U.size]
            D[:, U] = 1.0 / (1.0 / D[:, U] + 1.0 / (bounds * bounds))
            tau = block.t[:, -1:]
            F = block.factor(D, () if self.S is None else (tau, 1.0 / tau, block.u @ self.S))
            scalings.append((D, F))
            H = H + block.normal_matrix(D, F)
        factor = _cholesky(H.reshape(self.k * self.q, -1))
        decisions = [block.u for block in self.blocks]
        R = self.moments()
        for _ in range(5):
            if factor is None or np.abs(R).max() < 1e-17:
                break
            Y = _solve(factor, R.ravel()).reshape(self.k, self.q)
            steps, worst = [], 0.0
            for block, (D, F), u in zip(self.blocks, scalings, decisions, strict=True):
                du = block.restore(F, D, u) - block.apply(F, D, block.slopes(Y))
                steps.append(du)
                worst = max(worst, float((-du / u).max()), float((du[:, U] / block.t[:, : U.size]).max(initial=0.0)))
            length = min(1.0, 0.9 / max(worst, 1e-300))
            trial = [u + length * du for u, du in zip(decisions, steps, strict=True)]
            R_trial = self.moments(trial)
            if not np.linalg.norm(R_trial) <= 0.7 * np.linalg.norm(R):
                break
            decisions, R = trial, R_trial
        u, safe = np.concatenate(decisions), np.concatenate([block.u for block in self.blocks])
        return self.form.offset + np.where(np.isfinite(u), u, safe) @ self.form.E.T

    # -- one iteration -------------------------------------------------------------------------------------------------

    def step(self) -> tuple[float, float]:
        """Predictor, corrector, centrality correctors; return the step lengths, (0, 0) if no progress is possible."""
        failed = 0.0, 0.0
        parts: Any = 0.0
        for block in self.blocks:
            check_time()
            parts = parts + block.prepare(self.P)
        H = parts.reshape(self.k * self.q, -1)
        count = self.blocks[0].u.shape[1] + self.blocks[0].t.shape[1]
        mu = sum(block.complementarity() for block in self.blocks) / count
        curvature = 0.25 * self.l2 + mu * self.hold
        if self.lasso:
            self.slack_p, self.slack_n = self.l1 - self.g, self.l1 + self.g
            self.E = self.p / self.slack_p + self.n / self.slack_n
            curvature[self.is_l1] += 0.25 / self.E
        H[np.diag_indices_from(H)] += curvature.ravel()
        if not np.isfinite(H).all():
            return failed
        factor = _cholesky(H)
        if factor is None:
            return failed
        self.H, self.factor, self.R = H, factor, self.moments()

        lpn = (self.p * self.slack_p, self.n * self.slack_n) if self.lasso else (0.0, 0.0)
        move = self._direction([(-1.0, -1.0)] * len(self.blocks), -lpn[0], -lpn[1], feasibility=True)
        ap, ad = self._lengths(move)[0]
        after = sum(block.after(part, ap, ad) for block, part in zip(self.blocks, move.blocks, strict=True)) / count
        goal = min(max((after / mu) ** 3, 1e-6), 1.0) * mu
        pairs = zip(self.blocks, move.blocks, strict=True)
        targets = [block.second_order(part, goal) for block, part in pairs]
        second = (goal + move.l1[0] * move.l1[1], goal - move.l1[0] * move.l1[2]) if self.lasso else (0.0, 0.0)
        self.pull = goal * self.hold * (self.P - self.start)
        corrector = self._direction(targets, *second)
        self.pull = 0.0
        move, ap, ad = self._combine(move, corrector, 0.0, 0.0)
        for _ in range(4):
            if min(ap, ad) >= 0.9:
                break
            longer = min(1.0, ap + 0.3), min(1.0, ad + 0.3)
            pairs = zip(self.blocks, move.blocks, strict=True)
            targets = [block.centrality(part, *longer, goal) for block, part in pairs]
            trial, cp, cd = self._combine(
                move, self._direction(targets, *self._centrality_l1(move, longer, goal)), ap, ad
            )
            if cp + cd < ap + ad + 0.02:
                break
            move, ap, ad = trial, cp, cd
        if max(ap, ad) < 1e-6 or not np.isfinite(move.dP).all():
            return failed
        if not all(np.isfinite(x).all() for part in move.blocks for x in part):
            return failed
        ap, ad = self._lengths(move, most=0.995)[0]
        self.P = self.P + ad * move.dP
        for block, part in zip(self.blocks, move.blocks, strict=True):
            block.advance(part, ap, ad)
        if self.lasso:
            dg, dp, dn = move.l1
            self.g, self.p, self.n = self.g + ap * dg, self.p + ad * dp, self.n + ad * dn
        return ap, ad

    def _direction(
        self, targets: list[tuple[Any, Any]], lp: Any = 0.0, ln: Any = 0.0, feasibility: bool = False
    ) -> _Move:
        """Newton direction for the blocks' complementarity targets and those of the l1 part."""
        check_time()
        rhs: Any = sum(block.aim(*target, feasibility) for block, target in zip(self.blocks, targets, strict=True))
        rhs = rhs - self.pull
        if feasibility:
            rhs = rhs + self.R
        if self.lasso:
            # g moves with the coefficients: dg = (dTheta - kappa) / E.
            kappa = lp / self.slack_p - ln / self.slack_n
            if feasibility:
                kappa = kappa + self.p - self.n - 0.5 * (self.P - self.prior)[self.is_l1]
            rhs[self.is_l1] += 0.5 * kappa / self.E
        rhs = rhs.ravel()
        x = _solve(self.factor, rhs)
        x += _solve(self.factor, rhs - self.H @ x)
        dP = x.reshape(self.k, self.q)
        blocks = [block.complete(dP) for block in self.blocks]
        if not self.lasso:
            return _Move(dP, (), blocks)
        dg = (0.5 * dP[self.is_l1] - kappa) / self.E
        return _Move(dP, (dg, (lp + self.p * dg) / self.slack_p, (ln - self.n * dg) / self.slack_n), blocks)

    def _centrality_l1(self, move: _Move, longer: tuple[float, float], goal: float) -> tuple[Any, Any]:
        """Targets of the centrality corrector for the l1 part."""
        if not self.lasso:
            return 0.0, 0.0
        (dg, dp, dn), (ap, ad) = move.l1, longer
        return (
            outliers((self.p + ad * dp) * (self.slack_p - ap * dg), goal),
            outliers((self.n + ad * dn) * (self.slack_n + ap * dg), goal),
        )

    def _decreases(self, move: _Move, extra: _Move | None, shares: tuple[float, ...]) -> list[tuple[float, float]]:
        """Largest relative decreases, primal and dual, of a direction plus each of these shares of another."""
        worst = [(0.0, 0.0)] * len(shares)
        # All shares of a block while it is in the cache: this is the innermost loop.
        for b, (du, ds, dt, dr) in enumerate(move.blocks):
            block = self.blocks[b]
            for i, share in enumerate(shares):
                if extra is not None:
                    eu, es, et, er = extra.blocks[b]
                    u = np.add(np.multiply(eu, share, out=block.scratch[0]), du, out=block.scratch[0])
                    s = np.add(np.multiply(es, share, out=block.scratch[1]), ds, out=block.scratch[1])
                    t, r = (dt + share * et, dr + share * er) if block.t.shape[1] else (dt, dr)
                else:
                    u, s, t, r = du, ds, dt, dr
                primal, dual = worst[i]
                primal = max(primal, block.decrease(u, t, block.u, block.t))
                worst[i] = primal, max(dual, -float(s.min()), -float(r.min(initial=0.0)))
        if self.lasso:
            for i, share in enumerate(shares):
                more = move.l1 if extra is None else extra.l1
                dg, dp, dn = (x + share * y for x, y in zip(move.l1, more, strict=True))
                primal, dual = worst[i]
                primal = max(primal, float((dg / self.slack_p).max()), float((-dg / self.slack_n).max()))
                worst[i] = primal, max(dual, float((-dp / self.p).max()), float((-dn / self.n).max()))
        return worst

    def _lengths(
        self, move: _Move, extra: _Move | None = None, shares: tuple[float, ...] = (0.0,), most: float = 1.0
    ) -> list[tuple[float, float]]:
        """Longest steps, at most one, that use no more than ``most`` of the way to the boundary."""
        lengths = []
        for primal, dual in self._decreases(move, extra, shares):
            ap, ad = min(1.0, most / max(primal, 1e-300)), min(1.0, most / max(dual, 1e-300))
            lengths.append((min(ap, ad),) * 2 if self.one_step else (ap, ad))
        return lengths

    def _combine(self, move: _Move, extra: _Move, ap: float, ad: float) -> tuple[_Move, float, float]:
        """Add as much of a corrector as makes the steps longest, separately for the two sides where they may differ.

        A full corrector often points out of the region that the linearisation is good for (Colombo and Gondzio, 2008).
        """
        wp = wd = 0.0
        for w, (cp, cd) in zip(SHARES, self._lengths(move, extra, SHARES), strict=True):
            if cp > ap:
                ap, wp = cp, w
            if cd > ad:
                ad, wd = cd, w
            if min(cp, cd) >= 0.99:
                break
        return move.plus(extra, wp, wd), ap, ad


def _row_products(null: np.ndarray) -> np.ndarray:
    """Outer product of each row with itself, as a row: hundreds of megabytes for hundreds of variables."""
    N, k = null.shape
    products = np.empty((N, k * k))
    for start in range(0, N, max(1, CHUNK_PRODUCTS // k**2)):
        check_time()
        rows = slice(start, start + max(1, CHUNK_PRODUCTS // k**2))
        np.einsum("ij,ik->ijk", null[rows], null[rows], out=products[rows].reshape(-1, k, k))
    return products


def _cholesky(H: np.ndarray) -> np.ndarray | None:
    """Lower factor of H, regularised only as far as needed; None if nothing helps."""
    size = max(float(np.trace(H)) / H.shape[0], 1e-300)
    for exponent in range(-14, 0, 2):
        shifted = H.copy()
        shifted[np.diag_indices_from(shifted)] += size * 10.0**exponent
        factor, failed = scipy.linalg.lapack.dpotrf(shifted, lower=1)
        if failed == 0:
            return factor
    return None


def _solve(factor: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve with a factor of ``_cholesky``; without the checks of scipy.linalg.cho_solve, which take longer."""
    return scipy.linalg.lapack.dpotrs(factor, b, lower=1)[0]
