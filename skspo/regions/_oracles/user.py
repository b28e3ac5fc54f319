"""Check of an oracle by comparison with decisions that it returned before.

All decisions of an oracle belong to one set, so each is a candidate for every row of costs.  If one of them costs less
than what the oracle returns, the oracle is not optimal, or that decision was not feasible.  Memory is bounded:

    bank        up to BANK different decisions
    previous    the decisions of the last call; a solver asks for the same samples many times
    first       costs and decisions of the first call; in a fit, those of the training data, which show where the SPO+
                loss is negative
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._utils.limits import BLOCK_ELEMENTS
from .._rows import RowNames
from .._tolerances import SOLVER

#: different decisions that are kept: a comparison with them takes little time beside a user's function
BANK = 32


class Witness(NamedTuple):
    """A row of costs, the decision that was returned for it, and one that costs less."""

    row: str
    c: np.ndarray
    w: np.ndarray
    better: np.ndarray


class Witnesses:
    """Decisions of an oracle that are kept for comparison; costs are to be minimized."""

    def __init__(self) -> None:
        self.bank: np.ndarray | None = None
        self.previous: np.ndarray | None = None
        self.first: tuple[np.ndarray, np.ndarray, RowNames] | None = None
        #: reason why the oracle is known not to be optimal
        self.fault: str | None = None

    def look(self, C: np.ndarray, W: np.ndarray, names: RowNames) -> Witness | None:
        """Compare decisions with those that are known, and keep some of them."""
        before = [] if self.previous is None or self.first is None else [self.previous, self.first[1]]
        self._remember(C, W, names)
        pairs = [(slice(1, None), W[:-1])]  # each row with the decision of the row before it
        for others in before:
            known = slice(0, min(len(W), len(others)))
            pairs.append((known, others[known]))
        return self._compare(C, W, names, pairs)

    def look_back(self) -> Witness | None:
        """Compare the decisions of the first call with those that came later."""
        return None if self.first is None else self._compare(*self.first, [])

    def _compare(
        self, C: np.ndarray, W: np.ndarray, names: RowNames, pairs: list[tuple[slice, np.ndarray]]
    ) -> Witness | None:
        """Return the row with the largest excess over a decision of the bank, or over its partner in a pair."""
        cost = np.einsum("ij,ij->i", C, W)
        worst, found = SOLVER, None
        bank = W[:1] if self.bank is None else self.bank
        costs = C @ bank.T
        which = costs.argmin(axis=1)
        candidates = [(slice(None), costs[np.arange(len(which)), which], lambda rows: bank[which[rows]])]
        for rows, others in pairs:
            candidates.append((rows, np.einsum("ij,ij->i", C[rows], others), others.__getitem__))
        for rows, lower, decisions in candidates:
            # The terms of a cost are at least as large as the cost, so this excludes most rows at once.
            cheaper = np.flatnonzero(cost[rows] - lower > SOLVER * (np.abs(cost[rows]) + np.abs(lower)))
            if not cheaper.size:
                continue
            c, w, better = C[rows][cheaper], W[rows][cheaper], decisions(cheaper)
            scale = np.einsum("ij,ij->i", np.abs(c), np.abs(w) + np.abs(better))
            excess = (cost[rows] - lower)[cheaper] / np.maximum(scale, 1e-300)
            i = int(excess.argmax())
            if excess[i] > worst:
                row = int(cheaper[i]) + (rows.start or 0)
                worst, found = float(excess[i]), Witness(names.of(row), c[i], w[i], better[i])
        return found

    def _remember(self, C: np.ndarray, W: np.ndarray, names: RowNames) -> None:
        rows = max(1, BLOCK_ELEMENTS // W.shape[1])
        self.previous = W[:rows].copy()
        if self.first is None:
            self.first = C[:rows].copy(), self.previous, names
        keys, where = np.unique(_keys(W), return_index=True)
        bank = W[:0] if self.bank is None else self.bank
        bank = np.concatenate([bank, W[np.sort(where[~np.isin(keys, _keys(bank))])]])
        # The oldest and the newest decisions are kept.
        self.bank = bank if len(bank) <= BANK else np.concatenate([bank[: BANK // 2], bank[-BANK // 2 :]])


def _keys(W: np.ndarray) -> np.ndarray:
    """Hash value of each decision; it does not depend on the row."""
    return (W * np.cos(np.arange(1.0, W.shape[1] + 1.0))).sum(axis=1)
