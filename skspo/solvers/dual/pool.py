"""The dual method for regions whose oracle is a solver: it asks rarely, and looks decisions up in a pool before.

Every decision of the region proves something about every sample: support_S(u) >= u.v.  So a decision that the oracle
found for one sample may be new and good for another one, and looking it up costs one matrix product for all samples.
The problem is first solved over all decisions that were found so far, for any sample.  Then the oracle is asked, and
its decisions go into the pool.  Objectives and bounds that are reported never depend on the pool.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._training.in_memory import InMemoryObjective
from ..._training.objective import LinearObjective
from ..._training.run import Run
from ..._utils.limits import BLOCK_ELEMENTS
from ..base import MATRIX_SPEED, STEP
from .ascent import SHARE, Ascent

#: largest number of rounds on the pool between two calls of the oracle
ROUNDS = 30


class DecisionPool:
    """Decisions of a region, each once; those that were not the best for any sample for longest are dropped."""

    def __init__(self, d: int) -> None:
        self.V = np.zeros((0, d))
        self.used = np.zeros(0, dtype=np.int64)  # number of the last call in which a decision was best or new
        self.calls = 0
        self.most = max(BLOCK_ELEMENTS // d, 100)

    def add(self, V: np.ndarray) -> None:
        """Add the rows of V."""
        self.calls += 1
        everything = np.concatenate([V, self.V])
        used = np.concatenate([np.full(len(V), self.calls), self.used])
        self.V, first = np.unique(everything, axis=0, return_index=True)
        self.used = used[first]
        if len(self.V) > self.most:
            keep = np.sort(np.argsort(-self.used, kind="stable")[: self.most])
            self.V, self.used = self.V[keep], self.used[keep]

    def best(self, U: np.ndarray) -> np.ndarray:
        """Decisions of the pool that maximize u_i.v, for each row of U."""
        self.calls += 1
        size = max(BLOCK_ELEMENTS // max(len(self.V), 1), 1)
        best = np.concatenate([(U[k : k + size] @ self.V.T).argmax(axis=1) for k in range(0, len(U), size)])
        self.used[best] = self.calls
        return self.V[best]


def can_pool(objective: LinearObjective) -> bool:
    """Whether looking decisions up is valid and worth it.

    The oracle must be a slow one and exact, and all samples must have the same region.
    """
    region = objective.region
    if not isinstance(objective, InMemoryObjective) or not region.oracle_is_solver or region._may_be_inexact:
        return False
    return region._row_table(objective.n_samples).shape[1] == 0


def pool_of(objective: InMemoryObjective, run: Run) -> DecisionPool | None:
    """Return the pool of the region, with the optimal decisions; None if there is none (see ``can_pool``)."""
    if not can_pool(objective):
        return None
    if run.derived.pool is None:
        run.derived.pool = DecisionPool(objective.C.shape[1])
    run.derived.pool.add(objective.W)
    return run.derived.pool


class PooledAscent(Ascent):
    """One run of the method with a pool, which has the optimal decisions."""

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
        self.work += STEP + self.pool.V.size * float(self.problem.n) / MATRIX_SPEED
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
