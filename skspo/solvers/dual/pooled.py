"""The dual method for regions whose oracle is a solver: it asks for few rows, and looks the others up in a pool.

Any decision that scores higher than the cached ones is a valid new one, wherever it comes from.  So the problem is
first solved over all decisions that were found so far, for any sample: that takes matrix products only.  Then the
oracle is asked for some rows, in random order.  What it adds to the score of the pool estimates how far the pool is
from the whole region.  If the gap is likely to be too large, the pass ends there, and the new decisions go into the
pool.  Otherwise the oracle is asked for the other rows, too: objective and gap are only computed from whole passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import MATRIX_SPEED, ORACLE_CALL
from ..pool import DecisionPool
from .ascent import Ascent

#: rounds on the pool at most, and the share of the gap to which they have to bring that on the pool
ROUNDS, SHARE = 30, 0.1

#: a pass ends early if the gap seems to be more than this multiple of the tolerance; but not if this many times all
#: rows have been asked since the last whole pass
HOPELESS, SINCE_WHOLE = 1.5, 5.0


class PooledAscent(Ascent):
    """One run of the method with a pool.

    Parameters
    ----------
    solver, objective, run, start, state
        As in ``Ascent``.
    pool : DecisionPool
        With the optimal decisions.
    """

    rounds = ROUNDS

    def __init__(self, *args: Any, pool: DecisionPool) -> None:
        super().__init__(*args)
        self.pool = pool
        self.best_decisions: np.ndarray | None = None  # of the oracle, for the best coefficients
        self.missing = np.inf  # distance of the objective to the bound, as the last pass estimated it
        self.waiting = np.empty(0, np.int64)  # rows that were not asked in the last pass
        self.asked = 0  # rows since the last whole pass

    def first_decisions(self, U: np.ndarray) -> np.ndarray:
        """Decisions of the pool."""
        return self.pool.best(U)

    def explore(self) -> bool:
        """Whether to go on with the pool: the problem over its decisions is not solved well enough."""
        if self.late():
            return False
        at = self.position()
        V = self.pool.best(at.U)
        value = self.value_of(at, V)
        self.measure(at, value, min(self.value, value))
        self.balance()
        size = self.whole / max(self.objective.relative_gap(self.level, self.bound.value), 1e-300)
        if self.whole <= max(SHARE * min(self.missing, self.level), 0.3 * self.solver.tol * size):
            return False
        self.extend(V, at.predictions)
        self.recentre()
        return True

    def certify(self) -> tuple[np.ndarray, np.ndarray]:
        """Ask the oracle for some rows, or for all; decisions of the others are those of the pool."""
        problem, n, at = self.problem, self.problem.n, self.position()
        V = self.pool.best(at.U)
        self.work += self.pool.V.size * float(n) / MATRIX_SPEED
        known, gain, weight = self.value_of(at, V), 0.0, 0.0
        self.measure(at, known, min(self.value, known))
        size = max(round(self.solver.solve_ratio * n), 1)
        rows = np.concatenate([self.waiting, self.random.permutation(np.setdiff1d(np.arange(n), self.waiting))])
        whole, before = self.late() or self.asked >= SINCE_WHOLE * n, self.deadline.left()
        for end in range(size, n + size, size):
            some = np.sort(rows[end - size : end])
            found = self.objective.region.take(some).solve_min(-at.U[some])
            gain += float(problem.a[some] @ np.einsum("ij,ij->i", at.U[some], found - V[some]))
            weight += float(problem.a[some].sum())
            V[some] = found
            self.pool.add(found)
            self.work += some.size * ORACLE_CALL
            if np.isfinite(before):
                self.reserve = 2.0 * (before - self.deadline.left()) * n / min(end, n)
            estimate = known + gain / max(weight, 1e-300)
            gap = self.objective.relative_gap(min(estimate, self.value), self.bound.value)
            if end < n and not whole and gap > HOPELESS * self.solver.tol:
                self.waiting = rows[end:]
                self.asked += end
                self.measure(at, estimate, min(estimate, self.value))
                self.missing = self.whole
                return V, at.predictions
        value, self.waiting, self.asked = self.value_of(at, V), rows[:0], 0
        self.n_iter += 1
        if value < self.value:
            self.best, self.value, self.best_decisions = at.Theta, value, V
        self.measure(at, value, self.value)
        self.missing = self.whole
        return V, at.predictions

    def value_of_best(self) -> float:
        """Objective of the best coefficients, with the decisions of the oracle for them."""
        objective, V = self.objective, self.best_decisions
        if V is None:
            return super().value_of_best()
        U = objective.C - 2.0 * objective.design.predict(self.best)
        value = float(objective.weight @ np.einsum("ij,ij->i", U, V - objective.W))
        return value + objective.penalty(self.best)
