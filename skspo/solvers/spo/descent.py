"""Descent for the SPO loss, which is not convex: by gradients if the loss is smooth, else by exact line search.

The loss does not change when a prediction is multiplied by a positive number.  Therefore all coefficients have the norm
of the first start, and the penalty is that of coefficients of this norm: without a fixed norm the penalty could be made
arbitrarily small.  With an offset the loss does depend on the norm, and the norm is free.

Exact line search.  Along Theta + tau Delta the costs of a sample are p + tau g, and its decision changes at finitely
many tau (on a polyhedron, or with finitely many decisions).  If the decisions at the ends of an interval differ, the
two lines (p + tau g).w cross in between.  If no decision is cheaper at the crossing, the decision changes there;
otherwise both halves are searched in the same way (Eisner and Severance, 1976).  All samples are treated at once, with
one batched argmin per round.  The result is the sum of the piecewise constant losses on the whole line.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from ..._training.in_memory import InMemoryObjective
from ..._training.objective import LinearObjective
from ..._training.run import Run
from ..._utils.limits import Deadline, TimeIsUp
from ..._utils.types import RandomState
from ...losses import SPOPlusLoss
from ...regions.capabilities import has
from ..base import Progress, Result, Solver, Status, certified, rows_of

#: half the length of the lines that are searched, in multiples of the norm of the coefficients
REACH = 4.0

#: largest number of lines that are searched at once
MAX_LINES = 16

#: largest number of rows of these lines in total: with few rows, several lines cost little more than one
ROWS_AT_ONCE = 2_000

#: sizes of the random restarts, relative to the best coefficients
KICKS = (0.1, 0.3)

#: line searches without success, per coefficient, after which a point counts as a local optimum
PATIENCE = 2


class Pieces(NamedTuple):
    """Piecewise constant functions on [-REACH, REACH], one per line, as a list of their pieces."""

    line: np.ndarray  # to which line a piece belongs
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray


def loss_along_lines(objective: InMemoryObjective, Theta: np.ndarray, Deltas: np.ndarray) -> Pieces:
    """SPO loss of Theta + tau Delta as a function of tau, exactly, for several directions, stacked."""
    n, k = objective.n_samples, Deltas.shape[0]
    region = objective.region.take(np.tile(np.arange(n), k))
    P = np.tile(objective.predict(Theta), (k, 1))
    G = np.concatenate([objective.design.predict(Delta) for Delta in Deltas])
    C, a = np.tile(objective.C, (k, 1)), np.tile(objective.weight, k)
    size = np.abs(P).max(axis=1) + REACH * np.abs(G).max(axis=1)
    rows = np.arange(k * n)
    left, right = np.full(rows.size, -REACH), np.full(rows.size, REACH)
    W_left, W_right = region.solve_min(P - REACH * G), region.solve_min(P + REACH * G)
    losses = a * np.einsum("ij,ij->i", C, W_left - np.tile(objective.W, (k, 1)))
    line, at, jump = [np.arange(k)], [np.full(k, -REACH)], [losses.reshape(k, n).sum(axis=1)]
    # A curved region has infinitely many decisions; the search then stops after so many rows.
    most = k * n * (max(64, 4 * P.shape[1]) if has(region, "standard_form") else 16)
    found = 0
    while True:
        D = W_right - W_left
        keep = np.abs(D).max(axis=1) > 1e-9
        rows, left, right, W_left, W_right, D = (x[keep] for x in (rows, left, right, W_left, W_right, D))
        if rows.size == 0:
            break
        level = np.einsum("ij,ij->i", P[rows], D)
        slope = np.einsum("ij,ij->i", G[rows], D)
        # The right decision is at least as cheap on the right, so slope < 0 unless the two are tied everywhere.
        with np.errstate(divide="ignore", invalid="ignore"):
            cross = np.where(slope < 0, -level / slope, 0.5 * (left + right))
        cross = np.clip(np.where(np.isfinite(cross), cross, left), left, right)
        costs = P[rows] + cross[:, None] * G[rows]
        W = region.take(rows).solve_min(costs)
        known = np.minimum(np.einsum("ij,ij->i", costs, W_left), np.einsum("ij,ij->i", costs, W_right))
        gain = known - np.einsum("ij,ij->i", costs, W)
        inside = (cross > left) & (cross < right)
        closed = (gain <= 1e-12 * size[rows]) | ~inside
        found += rows.size
        if found > most:
            closed[:] = True
        line.append(rows[closed] // n)
        at.append(cross[closed])
        jump.append(a[rows[closed]] * np.einsum("ij,ij->i", C[rows[closed]], D[closed]))
        rows, left, right, cross, W_left, W_right, W = (
            x[~closed] for x in (rows, left, right, cross, W_left, W_right, W)
        )
        rows, left, right = np.r_[rows, rows], np.r_[left, cross], np.r_[cross, right]
        W_left, W_right = np.concatenate([W_left, W]), np.concatenate([W, W_right])
    which, where, change = np.concatenate(line), np.concatenate(at), np.concatenate(jump)
    order = np.lexsort((where, which))
    which, where, change = which[order], where[order], change[order]
    start = np.searchsorted(which, np.arange(k))
    total = np.cumsum(change)
    value = total - np.repeat(total[start] - change[start], np.diff(np.append(start, which.size)))
    end = np.append(where[1:], REACH)
    end[np.append(start[1:], which.size) - 1] = REACH
    return Pieces(which, where, end, value)


class Fit(NamedTuple):
    """Arguments of all descents of one fit."""

    objective: InMemoryObjective
    run: Run
    norm: float  # of the coefficients
    rng: np.random.RandomState
    progress: Progress
    limit: int  # iterations of all descents together


class SPODescentSolver(Solver):
    """Base class of the two descents: starts, restarts, and a fixed norm of the coefficients."""

    losses = ("SPO",)
    few_restarts: ClassVar[int]
    #: iterations, unless the user says how many
    most: ClassVar[int]

    def __init__(
        self,
        *,
        n_restarts: int | None = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(tol=tol, max_iter=max_iter, verbose=verbose)
        self.n_restarts = n_restarts
        self.random_state = random_state

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Descend from ``start``, which must not be None, and from other starts; return the best point."""
        if start is None:
            raise ValueError(f"{self.name} needs coefficients to start from.")
        objective = rows_of(objective)
        rng = check_random_state(self.random_state)
        progress = Progress(self.name, objective, run, self.verbose, tol=self.tol)
        limit = self._limit(objective.C.size)
        # The hidden component is not part of the norm.
        start = objective.design.visible(start, objective.free)
        norm = float(np.linalg.norm(start)) or 1.0
        fit = Fit(objective, run, norm, rng, progress, limit)
        best, value, n_iter, stopped = start, objective.value(start), 0, False
        starts = [start, *self._other_starts(objective, run.deadline)]
        restarts = self.few_restarts if self.n_restarts is None else self.n_restarts
        for trial in range(len(starts) + restarts):
            if value <= 0.0:
                break
            if trial < len(starts):
                start = starts[trial]
            else:
                # A random model of the same size, mixed with the best one so far.
                noise = rng.normal(size=best.shape)
                share = rng.choice(KICKS)
                start = best + share * norm / np.linalg.norm(noise) * noise
            length = float(np.linalg.norm(start))
            if length == 0.0:
                continue
            if objective.offset is None:
                start = start * (norm / length)
            Theta, new, steps, exhausted = self._descend(fit, start, n_iter)
            n_iter += steps
            if new < value:
                best, value = Theta, new
            if exhausted:
                stopped = True
                break
        progress(n_iter, value, 0.0, force=True)
        late = run.deadline.reached
        # It is normal to use up the default number of iterations; only for a limit of the user it is reported.
        stopped = stopped and (late or self.max_iter is not None)
        status, message = Status.CONVERGED, ""
        if stopped and late:
            status, message = Status.TIME_LIMIT, run.deadline.message
        elif stopped:
            status, message = Status.ITERATION_LIMIT, f"max_iter={limit} was reached"
        # The loss is nonnegative; no better bound is proved.
        return certified(objective, Result(best, value, 0.0, n_iter, status, message, np.inf), self.tol)

    def _limit(self, size: int) -> int:
        return self.most if self.max_iter is None else self.max_iter

    @staticmethod
    def _scaled(objective: InMemoryObjective, Theta: np.ndarray, norm: float) -> np.ndarray:
        if objective.offset is not None:
            return Theta
        return Theta * (norm / max(float(np.linalg.norm(Theta)), 1e-300))

    def _other_starts(self, objective: InMemoryObjective, deadline: Deadline) -> list[np.ndarray]:
        return [objective.design.visible(objective.least_squares)]

    def _descend(self, fit: Fit, Theta: np.ndarray, done: int) -> tuple[np.ndarray, float, int, bool]:
        """Descend from Theta, after so many iterations.

        Returns the best point, its objective, the number of iterations, and whether a limit was reached.
        """
        raise NotImplementedError


class SPOGradientSolver(SPODescentSolver):
    """L-BFGS on the SPO loss, from several starts, for regions where decisions move smoothly with the costs.

    A descent ends where the gradient, relative to the loss at the start, is of size ``tol``.  ``max_iter`` are
    iterations of all descents together, by default 5000, and ``n_restarts`` further starts, at random around the best
    point.
    """

    name = "lbfgs"
    requires = ("derivative",)
    few_restarts = 2
    most = 5000

    def _other_starts(self, objective: InMemoryObjective, deadline: Deadline) -> list[np.ndarray]:
        return [*super()._other_starts(objective, deadline), least_absolute(objective, deadline)]

    def _descend(self, fit: Fit, Theta: np.ndarray, done: int) -> tuple[np.ndarray, float, int, bool]:
        objective, run, norm, _, progress, limit = fit
        budget = limit - done
        shape = objective.shape
        best, value = Theta, objective.value(Theta)
        count = done

        def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best, value, count
            # The norm is fixed, unless there is an offset.
            length = float(np.linalg.norm(theta)) if objective.offset is None else 1.0
            unit = theta / length
            Theta = norm * unit.reshape(shape)
            new, G = objective.value_gradient(Theta, run.memory)
            if new < value:
                best, value = Theta, new
            count += 1
            progress(count, new)
            if progress.late():
                raise TimeIsUp
            g = G.ravel()
            if objective.offset is None:
                g = g - unit * float(unit @ g)
            return new, (norm / length) * g

        options = {"maxiter": max(budget, 1), "maxfun": 3 * max(budget, 1), "maxcor": 20, "ftol": 1e-12}
        options["gtol"] = self.tol * max(value, 1e-300)
        # In units where the coefficients have norm one.
        try:
            res = minimize(function, Theta.ravel() / norm, jac=True, method="L-BFGS-B", options=options)
        except TimeIsUp:
            return best, value, count - done, True
        return best, value, int(res.nit), bool(res.nit >= budget)


class LineSearchSolver(SPODescentSolver):
    """Exact line searches along many directions: any region with finitely many decisions.

    ``tol`` is the relative decrease of the objective that counts as one.  ``max_iter`` are line searches of all
    descents together; by default there are as many further starts, at random around the best point, as it allows.
    """

    name = "line-search"
    requires = ()
    few_restarts = 200

    def _limit(self, size: int) -> int:
        return int(min(max(20_000_000 // size, 300), 50_000)) if self.max_iter is None else self.max_iter

    def _descend(self, fit: Fit, Theta: np.ndarray, done: int) -> tuple[np.ndarray, float, int, bool]:
        objective, _, norm, rng, progress, limit = fit
        budget = limit - done
        value = objective.value(Theta)
        idle, steps = 0, 0
        directions = self._directions(objective, rng)
        next(directions)
        # With few samples, several lines at once cost little more than one.
        n_lines = max(1, min(MAX_LINES, ROWS_AT_ONCE // objective.n_samples))
        while idle <= PATIENCE * Theta.size and value > 0.0:
            if steps >= budget or progress.late():
                return Theta, value, steps, True
            try:
                Deltas = np.array([self._visible(objective, directions.send(Theta), norm) for _ in range(n_lines)])
                steps += n_lines
                trial = self._best_on_lines(objective, Theta, Deltas, norm)
                new = objective.value(trial)
            except TimeIsUp:
                return Theta, value, steps, True
            idle += n_lines
            # Compare the evaluated objective, not the value from the line search.
            if new < value - self.tol * value:
                Theta, value, idle = trial, new, 0
            elif new <= value:
                Theta, value = trial, new  # on a plateau: other directions may lead down from there
            progress(done + steps, value, 0.0)
        return Theta, value, steps, False

    @staticmethod
    def _visible(objective: InMemoryObjective, Delta: np.ndarray, norm: float) -> np.ndarray:
        """Direction without its hidden component, scaled to the given norm; it may be zero."""
        Delta = objective.design.visible(Delta)
        length = float(np.linalg.norm(Delta))
        return Delta * (norm / length) if length > 0.0 else Delta

    def _best_on_lines(
        self, objective: InMemoryObjective, Theta: np.ndarray, Deltas: np.ndarray, norm: float
    ) -> np.ndarray:
        """Middle of the best piece; of equally good ones the widest, which is most robust."""
        line, left, right, value = loss_along_lines(objective, Theta, Deltas)
        wide = right - left > 1e-10
        line, left, right, value = line[wide], left[wide], right[wide], value[wide]
        if objective.alpha > 0:
            # The penalty varies within a piece: evaluate it at a few points of the best pieces.
            order = np.argsort(value)[:50]
            shares = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
            taus = left[order, None] + (right - left)[order, None] * shares
            points = [
                self._scaled(objective, Theta + tau * Deltas[line[i]], norm)
                for i, row in zip(order, taus, strict=True)
                for tau in row
            ]
            totals = np.repeat(value[order], shares.size) + [objective.penalty(point) for point in points]
            return points[int(np.argmin(totals))]
        best = np.flatnonzero(value <= value.min() + 1e-12 * max(float(np.abs(value).max()), 1e-300))
        i = best[int(np.argmax((right - left)[best]))]
        return self._scaled(objective, Theta + 0.5 * (left[i] + right[i]) * Deltas[line[i]], norm)

    def _directions(
        self, objective: InMemoryObjective, rng: np.random.RandomState
    ) -> Generator[np.ndarray, np.ndarray, None]:
        """Endless sequence of directions; the caller sends the current coefficients.

        Negative gradients of three related losses, least squares, random ones, and coordinates in random order.
        """
        d, q = objective.shape
        surrogate = objective.with_loss(SPOPlusLoss(objective.region))
        Theta = yield np.zeros((d, q))
        while True:
            order = rng.permutation(d * q)
            for i, (j, k) in enumerate(zip(*np.unravel_index(order, (d, q)), strict=True)):
                if i % 8 == 0:
                    for share in 2.0 ** rng.uniform(-5, 2, size=4):
                        Theta = yield -self._interpolated_gradient(objective, Theta, share)
                    Theta = yield -surrogate.loss_gradient(Theta)[1]
                    Theta = yield -self._smoothed_gradient(objective, Theta, rng)
                    Theta = yield objective.least_squares - Theta
                    Theta = yield rng.normal(size=(d, q))
                    Theta = yield np.outer(rng.normal(size=d), rng.normal(size=q))
                direction = np.zeros((d, q))
                direction[j, k] = 1.0
                Theta = yield direction

    def _interpolated_gradient(self, objective: InMemoryObjective, Theta: np.ndarray, share: float) -> np.ndarray:
        """Gradient of (z*(c_hat) - z*(c_hat - t c)) / t, z* the cost of the best decision: the loss for small t.

        This is the gradient of Pogancic et al. (2020).  With t = 1 / 2, and the decisions of c instead of those of
        c_hat, it is the subgradient of the SPO+ loss.  For ``share`` = 1 the norms of t c and c_hat are equal.
        """
        C_hat = objective.predict(Theta)
        size = float(np.linalg.norm(objective.C))
        if size == 0.0:
            return np.zeros_like(Theta)
        t = share * float(np.linalg.norm(C_hat)) / size
        G = objective.region.solve_min(C_hat) - objective.region.solve_min(C_hat - t * objective.C)
        return objective.design.adjoint(G * objective.weight[:, None])

    def _smoothed_gradient(
        self, objective: InMemoryObjective, Theta: np.ndarray, rng: np.random.RandomState
    ) -> np.ndarray:
        """Gradient of the mean loss of predictions with normal noise: E[c.w*(c_hat + sigma e) e] / sigma."""
        C_hat = objective.predict(Theta)
        sigma = float(rng.choice([0.03, 0.1, 0.3])) * float(np.sqrt(np.mean(C_hat * C_hat)))
        if sigma == 0.0:
            return np.zeros_like(Theta)
        G = np.zeros_like(C_hat)
        for _ in range(2):
            E = rng.normal(size=C_hat.shape)
            # Antithetic pairs reduce the variance.
            up, down = (objective.region.solve_min(C_hat + sign * sigma * E) for sign in (1.0, -1.0))
            G += np.einsum("ij,ij->i", objective.C, up - down)[:, None] * E
        return objective.design.adjoint(G * objective.weight[:, None])


def least_absolute(objective: InMemoryObjective, deadline: Deadline, n_iter: int = 30) -> np.ndarray:
    """Coefficients that roughly minimize the absolute error, by reweighted least squares for all costs at once."""
    design, Theta = objective.design, objective.least_squares
    C = objective.C if objective.offset is None else objective.C - objective.offset
    work = design.n_coef**2 * (C.size + C.shape[1] * float(design.n_coef))
    for _ in range(n_iter):
        if not deadline.allows(work, 0.1):
            break
        error = np.abs(C - design.predict(Theta))
        weight = objective.weight[:, None] / np.maximum(error, 1e-6 + 1e-4 * float(error.mean()))
        Theta = design.solve_least_squares(C, weight)
    return design.visible(Theta)
