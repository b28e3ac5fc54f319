"""The dual method for regions whose oracle is a solver: it asks rarely, and looks decisions up in a pool before.

Any decision that scores higher than the cached ones is a valid new one, wherever it comes from.  So the problem is
first solved over all decisions that were found so far, for any sample: that takes matrix products only.  Then the
oracle is asked, and its decisions go into the pool.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._training.run import Run
from ..base import MATRIX_SPEED
from ..pool import DecisionPool
from .ascent import SHARE, Ascent

#: largest number of rounds on the pool between two calls of the oracle
ROUNDS = 30


class PooledAscent(Ascent):
    """One run of the method with a pool.

    Parameters
    ----------
    solver, objective, run, start, state
        As in ``Ascent``.
    pool : DecisionPool
        With the optimal decisions.
    """

    def __init__(self, *args: Any, pool: DecisionPool) -> None:
        super().__init__(*args)
        self.pool = pool
        self.best_decisions: np.ndarray | None = None  # of the oracle, for the best coefficients
        self.missing = np.inf  # distance of the objective to the bound, by the last certificate

    def go_on(self, run: Run, start: np.ndarray) -> None:
        """Continue after a pause; the decisions that are known are not those of another solver's model."""
        before = self.best
        super().go_on(run, start)
        if self.best is not before:
            self.best_decisions = None

    def first_decisions(self, U: np.ndarray) -> np.ndarray:
        """Decisions of the pool."""
        return self.pool.best(U)

    def explore(self) -> bool:
        """Whether to go on with the pool: the problem over its decisions is not solved well enough."""
        if self.late():
            return False
        at = self.position()
        V = self.pool.best(at.U)
        self.work += self.pool.V.size * float(self.problem.n) / MATRIX_SPEED
        value = self.value_of(at, V)
        self.measure(at, value, min(self.value, value))
        self.balance()
        size = self.whole / max(self.objective.relative_gap(self.level, self.bound.value), 1e-300)
        if self.whole <= max(SHARE * min(self.missing, self.level), 0.3 * self.solver.tol * size):
            return False
        self.extend(V, at.predictions)
        self.recenter()
        return True

    def approach(self) -> None:
        """Solve the problem over the decisions of the pool."""
        self.improve()
        for _ in range(ROUNDS):
            if not self.explore():
                break
            self.improve()

    def certify(self) -> tuple[np.ndarray, np.ndarray]:
        """Objective and bound; the decisions of the oracle go into the pool."""
        before = self.value
        V, predictions = super().certify()
        self.pool.add(V)
        if self.value < before:
            self.best_decisions = V
        self.missing = self.whole
        return V, predictions

    def value_of_best(self) -> float:
        """Objective of the best coefficients, with the decisions of the oracle for them."""
        objective, V = self.objective, self.best_decisions
        if V is None:
            return super().value_of_best()
        U = objective.C - 2.0 * objective.design.predict(self.best)
        value = float(objective.weight @ np.einsum("ij,ij->i", U, V - objective.W))
        return value + objective.penalty(self.best)
