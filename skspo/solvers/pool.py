"""Decisions that were found so far, for regions whose oracle is slow.

Every decision of the region proves something about every sample: support_S(u) >= u.v.  So a decision that the oracle
found for one sample may be new and good for another one, and looking it up costs one matrix product for all samples.
Solvers use a pool to choose decisions and cuts.  Objectives and bounds that are reported never depend on it.
"""

from __future__ import annotations

import numpy as np

from .._training.in_memory import InMemoryObjective
from .._training.objective import LinearObjective
from .._training.run import Run
from .._utils.limits import BLOCK_ELEMENTS

#: numbers of a pool at most; those that have not been the best for any sample for longest are dropped
MOST_NUMBERS = 2**20


class DecisionPool:
    """Decisions of a region, each once.

    Parameters
    ----------
    d : int
        Number of decision variables.
    """

    def __init__(self, d: int) -> None:
        self.V = np.zeros((0, d))
        self.used = np.zeros(0, dtype=np.int64)  # number of the last call in which a decision was best or new
        self.calls = 0
        self.most = max(MOST_NUMBERS // d, 100)

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
