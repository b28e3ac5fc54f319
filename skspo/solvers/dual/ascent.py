"""One run of the dual method (see ``solver``): its phases, for any region."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ..._training.balance import balanced
from ..._training.in_memory import InMemoryObjective
from ..._training.objective import ZERO_BOUND, Bound, lower_bound
from ..._training.run import Run
from ..._utils.limits import TimeIsUp
from ..._utils.scaling import CLEAR
from ..base import MATRIX_SPEED, STEP, Progress, Result, Solver, Status, features_per_row, pass_work

#: iterations after which a gap that has not decreased will not close
PATIENCE = 100

#: sweeps of one outer iteration
SWEEPS = 20

#: gap on the cached decisions, as a share of the whole, at which an outer iteration calls the oracle again
SHARE = 0.2

#: numbers of matrices up to which Newton's method is used: 160 MB
NEWTON_MEMORY = 2e7

#: Newton steps after a sweep
NEWTON_STEPS = 5

#: relative gap below which Newton steps are tried: before, the weights in use are others from one pass to the next
NEWTON_FROM = 1e-2

#: damping of Newton's method at first; the largest one is its inverse
DAMPING = 1e-2

#: the proximal center moves when the gap of the proximal problem is this share of the whole
RECENTER = 0.5

#: without a ridge, the weight of the proximal term decreases by this factor at each new center
NEXT_MU = 0.3

#: weight of the proximal term below which it decreases only where steps are too short
LEAST_MU = 1e-3

#: share of its last value that a gap or a slope has to reach to count as decreasing (0.5 to 0.95 do equally well)
DECREASING = 0.9


class State(NamedTuple):
    """Where a fit stopped; a fit to the same rows with another penalty may start from it."""

    problem: Any
    cache: Any
    coef: np.ndarray
    n_iter: int


class Position(NamedTuple):
    """Where the weights of the cached decisions lead to."""

    constant: float
    M: np.ndarray  # moments
    S: np.ndarray  # scaled coefficients
    Theta: np.ndarray
    predictions: np.ndarray  # scaled
    U: np.ndarray  # c_i - 2 Theta z_i, of which the loss takes the support function


class Ascent:
    """One run of the method: its data, caches and what is known so far.

    ``solver`` has the parameters of ``DualSolver``.
    """

    def __init__(
        self, solver: Solver, objective: InMemoryObjective, run: Run, start: np.ndarray, state: State | None
    ) -> None:
        from .problem import ScaledProblem

        self.solver, self.objective, self.deadline, self.memory = solver, objective, run.deadline, run.memory
        self.limit = np.inf if solver.max_iter is None else max(solver.max_iter, 1)
        self.progress = Progress(solver.name, objective, run, solver.verbose, tol=solver.tol)
        self.random = check_random_state(0 if solver.random_state is None else solver.random_state)
        Z: Any = objective.design.Z
        known = objective.design.known
        costs = np.ascontiguousarray(objective.C)
        if objective.prior.any():
            costs = costs - 2.0 * objective.design.predict(objective.prior)
        self.W = np.ascontiguousarray(np.asarray(objective.W), dtype=np.float64)
        self.problem = ScaledProblem(
            Z.tocsr() if sp.issparse(Z) else Z,
            costs,
            self.W,
            objective.weight,
            objective.l1,
            objective.l2,
            objective.prior,
            first_mu(objective.l2),
            None if not known.size or Z.ndim == 3 else ~np.isin(np.arange(costs.shape[1]), known) * 1.0,
        )
        self.best, self.value = start, np.inf
        self.bound: Bound = ZERO_BOUND
        self.proof = (0.0, np.zeros(objective.shape))
        self.reserve, self.n_iter = 0.0, 0
        self.damping = DAMPING
        self.rest = np.zeros(self.problem.n)
        self.start, self.state = start, state
        self.base = self.problem.base(start)
        self.target, self.gap, self.gap_proximal, self.charge = 0.0, np.inf, np.inf, np.inf
        self.slope = np.inf
        self.balance_wait, self.balance_patience = 0, 1  # when balancing is tried again
        self.level = np.inf  # the objective as far as it is known
        self.reference, self.since = np.inf, 0  # the smallest distance, and the iteration that found it
        self.cache: Any = None
        self.work = 0.0  # since the last look at the budget

    def go_on(self, run: Run, start: np.ndarray) -> None:
        """Continue after a pause; ``start`` may be a better model that another solver has found."""
        solver = self.solver
        self.progress = Progress(solver.name, self.objective, run, solver.verbose, tol=solver.tol, done=self.n_iter)
        self.work = 0.0
        if not np.array_equal(start, self.best) and (value := self.objective.value(start)) < self.value:
            self.best, self.value = start, value

    def minimize(self) -> Result:
        """Alternate between the phases until the gap is closed."""
        status, message = Status.CONVERGED, ""
        try:
            if self.cache is None:
                self.begin()
            while True:
                self.approach()
                V, predictions = self.certify()
                self.balance()
                self.progress(self.n_iter, self.value, self.bound.value)
                if self.gap <= self.solver.tol:
                    break
                if self.progress.late():
                    status, message = Status.TIME_LIMIT, self.deadline.message
                    break
                if self.n_iter >= self.limit:
                    status, message = Status.ITERATION_LIMIT, f"max_iter={self.limit} iterations were used up"
                    break
                if self.distance <= DECREASING * self.reference:
                    self.reference, self.since = self.distance, self.n_iter
                elif self.n_iter - self.since >= PATIENCE:
                    status, message = Status.NUMERICAL_LIMIT, "the gap does not decrease any more"
                    break
                self.extend(V, predictions)
                self.recenter()
                if self.progress.spend(self.work):
                    status = Status.PAUSED
                    break
                self.work = 0.0
        except TimeIsUp:
            status, message = Status.TIME_LIMIT, self.deadline.message
        return self.finished(status, message)

    # -- phases --------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Fill the cache with the optimal decisions and those at the start, in the best proportion."""
        from .cache import Cache
        from .points import Points, box_of, differ_little

        problem, objective = self.problem, self.objective
        if self.state is not None:
            self.cache = self.state.cache
            self.points = isinstance(self.cache, Points)
            if problem.shared:
                self.cache.rescale(problem.column_scale / self.state.problem.column_scale)
            self.T = self.base + problem.moments(self.cache)[1]
            return
        V = self.first_decisions(objective.C - 2.0 * objective.design.predict(self.start))
        # Points have no Newton steps, without which sweeps converge slowly where there is no ridge.
        few = problem.shared or not objective.l2.any() or differ_little(V, self.W)
        box = None if few else box_of(objective.region, problem.shape[0])
        self.points = box is not None
        self.cache = Points(box, problem, V) if box is not None else Cache.of(problem, V)
        constant, M = problem.moments(self.cache)
        slope = constant - float(np.vdot(problem.soft(self.base), M))
        t = min(max(slope / max(float(np.vdot(M, M)), 1e-300), 0.0), 1.0)
        self.cache.mix(t)
        self.T = self.base + problem.moments(self.cache)[1]

    def approach(self) -> None:
        """What comes before a certificate."""
        self.improve()

    def improve(self) -> None:
        """Move the weights of the cached decisions until little is to be gained."""
        from .face import Face, RecentSteps

        problem, cache = self.problem, self.cache
        several = cache.several
        several = several[problem.a[several] > 0]
        costs = float(cache.work(features_per_row(self.objective))[several].sum())
        rest, recent = np.inf, RecentSteps(problem, cache, self.T)
        self.work += STEP
        for _ in range(SWEEPS if self.n_iter else 1):
            cache.sweep(problem, self.random.permutation(several), self.T, self.rest)
            self.work += 2.0 * costs  # with the step of all samples that follows
            rest, before = float(self.rest[several].sum()), rest
            if rest <= self.target or not several.size:
                break
            # Sweeps until the target is reached, if they go on as they do.
            far = np.log(rest) - np.log(max(self.target, 1e-300))  # their ratio may overflow
            ahead = far / max(np.log(before) - np.log(rest), 1e-3)
            if ahead > SWEEPS:
                self.T = recent.ascend(self.T)
            if self.distance <= NEWTON_FROM:
                face = Face(problem, cache)
                work, memory = face.newton_size
                if face.size and memory <= NEWTON_MEMORY and work <= ahead * costs:
                    self.newton(face)
            if self.late():
                break

    def newton(self, face: Any) -> None:
        """Damped Newton steps while they gain much."""
        from .face import Face

        first = 0.0
        for _ in range(NEWTON_STEPS):
            self.T, gain, length = face.ascend(self.T, face.newton(self.T, self.damping))
            self.work += STEP + face.newton_size[0] / MATRIX_SPEED
            first = first or gain
            # A full step is a reason to trust the model further, as Levenberg and Marquardt do.
            change = 0.3 if length == 1.0 else 2.0 if gain > 0.0 else 10.0
            self.damping = min(change * self.damping, 1.0 / DAMPING)
            if gain <= max(0.1 * first, 0.01 * self.target) or self.late():
                break
            face = Face(self.problem, self.cache)
            if not face.size:
                break

    def certify(self) -> tuple[np.ndarray, np.ndarray]:
        """Objective and bound; returns the oracle's decisions for all rows, and the scaled predictions."""
        clock = time.perf_counter()
        self.work += STEP + pass_work(self.objective)
        at = self.position()
        V = self.ask(at.U)
        value = self.value_of(at, V)
        self.n_iter += 1
        if value < self.value:
            self.best, self.value = at.Theta, value
        self.measure(at, value, self.value)
        self.reserve = 2.0 * (time.perf_counter() - clock)
        return V, at.predictions

    def position(self) -> Position:
        """Coefficients of the weights, computed afresh: no drift from the updates of the sweeps."""
        problem = self.problem
        self.cache.normalize()
        constant, M = problem.moments(self.cache)
        self.T = self.base + M
        S = problem.soft(self.T)
        predictions = problem.predictions(S)
        return Position(constant, M, S, problem.theta(self.T), predictions, problem.arguments(self.T, predictions))

    def value_of(self, at: Position, V: np.ndarray) -> float:
        """Objective, if V are the decisions of the oracle; at most the objective for any others."""
        problem = self.problem
        return float(problem.a @ np.einsum("ij,ij->i", at.U, V - self.W)) + self.objective.penalty(at.Theta)

    def measure(self, at: Position, value: float, level: float) -> None:
        """Bound, and how far the proximal and the whole problem are from their optima; ``value`` is that at Theta."""
        self.prove(at.constant, at.M)
        self.charge = 0.5 * float(np.square((at.S - self.base)[self.entries(self.problem.proximal)]).sum())
        dual = at.constant + 0.5 * float(np.square(self.base).sum()) - 0.5 * float(np.square(at.S).sum())
        self.gap_proximal = value + self.charge - dual
        self.level = level
        whole = self.whole
        if not self.objective.l2.any():
            whole = min(whole, self.charge)
        self.target = SHARE * max(self.gap_proximal, 0.1 * whole)

    def balance(self) -> None:
        """Prove a bound with balanced weights, less and less often while it does not help."""
        free = self.entries(self.objective.free)
        if not free.any() or self.gap <= self.solver.tol or self.gap_proximal > 0.5 * self.whole:
            return
        self.balance_wait -= 1
        if self.balance_wait > 0:
            return
        from .face import FreeMoments

        before = self.whole
        given = self.cache.weight
        weights = [given, *balanced(FreeMoments(self.problem, self.cache, free), given, self.late)]
        self.prove(*self.problem.moments(self.cache, weights[-1]))
        helped = self.whole <= DECREASING * before
        self.balance_patience = 1 if helped else min(2 * self.balance_patience, 16)
        self.balance_wait = self.balance_patience

    def extend(self, V: np.ndarray, predictions: np.ndarray) -> None:
        """Add the decisions V that beat the cached ones; points need to know where they may move only."""
        if self.points:
            self.cache.extend(self.problem, predictions)
        else:
            self.cache.extend(self.problem, V, predictions)

    def recenter(self) -> None:
        """Move the proximal center."""
        if not self.problem.proximal.any():
            return
        ridge = self.objective.l2.any()
        # Where rounding errors exceed the charge, those of the objective and of typical costs, which are one, the gap
        # cannot be a share of it, and the center would never move.
        enough = self.whole if ridge else min(self.whole, max(self.charge, CLEAR * (1.0 + self.level)))
        if self.gap_proximal > RECENTER * enough:
            return
        Theta = self.problem.theta(self.T)
        # The squared slope along the last step.  If it does not decrease, and steps like the last one, which gain
        # about twice the charge, would not reach the bound in time, they have to be longer.
        before, self.slope = self.slope, self.problem.mu * self.charge
        steady = self.slope >= DECREASING * before and 2.0 * PATIENCE * self.charge < self.whole
        if not ridge and (self.problem.mu > LEAST_MU or steady):
            self.problem = self.problem.rescaled(NEXT_MU * self.problem.mu, self.cache)
        self.base = self.problem.base(Theta)
        self.T = self.base + self.problem.moments(self.cache)[1]

    # -- what the phases share -----------------------------------------------------------------------------------------

    def late(self) -> bool:
        """Whether the time that is left is needed for the certificate."""
        return self.deadline.left() <= self.reserve

    @property
    def distance(self) -> float:
        """How far the optimum is, relative to the objective; without a ridge bounds come late."""
        gap = self.objective.relative_gap(self.level, self.bound.value)
        return min(gap, (self.gap_proximal + self.charge) / max(self.level, 1e-300))

    @property
    def whole(self) -> float:
        """Distance of the objective, as far as it is known, to the bound."""
        return self.level - self.bound.value

    def entries(self, mask: np.ndarray) -> np.ndarray:
        """Entries of T of some of the columns of Theta."""
        return np.broadcast_to(mask[:, None] if self.problem.shared else mask[None, :], self.problem.shape)

    def ask(self, U: np.ndarray) -> np.ndarray:
        """Decisions that maximize u_i.v."""
        V = self.objective.region.solve_min(-U, self.memory)
        return np.ascontiguousarray(V, dtype=np.float64)

    def first_decisions(self, U: np.ndarray) -> np.ndarray:
        """Decisions for the coefficients of the start."""
        return self.ask(U)

    def value_of_best(self) -> float:
        """Objective of the best coefficients."""
        return self.objective.value(self.best)

    def prove(self, constant: float, M: np.ndarray) -> None:
        """Take the best bound of these moments and of the best ones before, for the best coefficients."""
        objective, G = self.objective, self.problem.slope(M)
        constant -= float(np.vdot(self.problem.prior, G))
        proofs = [self.proof, (constant, G)]
        lasso = (objective.l2 == 0) & (objective.l1 > 0)
        if lasso.any():
            # Decisions nearer to w_i, until the lasso absorbs their moments.
            ratio = float((np.abs(G[:, lasso]) / objective.l1[lasso]).max(initial=0.0)) * (1.0 + 1e-15)
            if ratio > 1.0:
                proofs.append((constant / ratio, G / ratio))
        bounds = [objective.dual_value_from_moments(*proof, self.best) for proof in proofs]
        self.proof, self.bound = proofs[bounds.index(max(bounds))], max(ZERO_BOUND, *bounds)
        self.gap = objective.relative_gap(self.value, self.bound.value)

    def finished(self, status: Status, message: str) -> Result:
        """Result of the best coefficients, evaluated by the objective itself."""
        objective, value = self.objective, self.value
        if status is not Status.TIME_LIMIT or not np.isfinite(value):
            value = self.value_of_best()
        if status in (Status.NUMERICAL_LIMIT, Status.ITERATION_LIMIT) and self.problem.proximal.any():
            if not self.problem.shared:
                V, target = self.cache.average()[0], value * (1 - self.solver.tol)
                self.bound = max(self.bound, lower_bound(objective, V, self.best, self.deadline, target=target))
        self.progress(self.n_iter, value, self.bound.value, force=True)
        return self.solver.result(objective, self.best, value, self.bound, self.n_iter, status, message)


def first_mu(l2: np.ndarray) -> float:
    """Weight of the proximal term: a part of the ridge where there is one, neither tiny nor as large."""
    ridge = l2 > 0
    if not ridge.any():
        return 1.0
    return min(min(max(2.0 / l2.size, 0.1), 1.0) * float(np.median(l2[ridge])), 1.0)
