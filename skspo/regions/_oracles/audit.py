"""Decisions that an oracle returned before, which show when it is wrong.

All decisions of an oracle belong to one set, so each is a candidate for every row of costs.  If one of them is cheaper
than what the oracle returns, the oracle is not optimal, or that decision was not feasible.  What is kept is bounded:

    bank        BANK different decisions, all of them as long as there are no more
    previous    the decisions of the last call; a solver asks for the same samples again and again
    first       costs and decisions of the first call: in a fit, those of the training data, whose decisions show
                where the SPO+ loss is negative
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._row_names import RowNames

#: different decisions that are kept, and how many new ones a call may add once they are complete
BANK, NEW = 32, 4

#: largest number of entries of the arrays that are kept
ELEMENTS = 2**22

#: excess, relative to the terms of the costs, from which on a decision counts as not optimal
EXCESS = 1e-6


class Witness(NamedTuple):
    """A row of costs, the decision that was returned for it, and one that costs less."""

    row: str
    c: np.ndarray
    w: np.ndarray
    better: np.ndarray


class Witnesses:
    """What is remembered of an oracle; costs are to be minimised."""

    def __init__(self) -> None:
        self.bank: np.ndarray | None = None
        self.previous: np.ndarray | None = None
        self.first: tuple[np.ndarray, np.ndarray, RowNames] | None = None
        #: why the oracle is not to be believed any more
        self.fault: str | None = None
        self._added = 0

    def look(self, C: np.ndarray, W: np.ndarray, names: RowNames) -> Witness | None:
        """Compare decisions with others that are known, and remember some of them."""
        before = [] if self.previous is None or self.first is None else [self.previous, self.first[1]]
        self._remember(C, W, names)
        pairs = [(slice(1, None), W[:-1])]  # neighbours are others, too
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
        """Worst of the rows for which there is a better decision: in the bank, or beside it in one of the pairs."""
        cost = np.einsum("ij,ij->i", C, W)
        worst, found = EXCESS, None
        bank: np.ndarray = self.bank  # type: ignore[assignment]
        costs = C @ bank.T
        which = costs.argmin(axis=1)
        candidates = [(slice(None), costs[np.arange(len(which)), which], lambda rows: bank[which[rows]])]
        for rows, others in pairs:
            candidates.append((rows, np.einsum("ij,ij->i", C[rows], others), others.__getitem__))
        for rows, lower, decisions in candidates:
            # The terms of a cost are at least as large as the cost: most rows need no closer look.
            cheaper = np.flatnonzero(cost[rows] - lower > EXCESS * (np.abs(cost[rows]) + np.abs(lower)))
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
        rows = max(1, ELEMENTS // W.shape[1])
        self.previous = W[:rows].copy()
        if self.first is None:
            self.first = C[:rows].copy(), self.previous, names
        keys, where = np.unique(_keys(W), return_index=True)
        bank = W[:0] if self.bank is None else self.bank
        where = where[~np.isin(keys, _keys(bank))]
        room = BANK - len(bank)
        if len(where) > room:
            where = where[np.linspace(0, len(where) - 1, room + min(NEW, len(where) - room)).astype(int)]
        new = W[where]
        bank = np.concatenate([bank, new[:room]])
        # The older half stays, so that what was known at the beginning is not forgotten.
        for w in new[room:] if room < BANK else []:
            bank[BANK // 2 + self._added % (BANK // 2)] = w
            self._added += 1
        self.bank = bank


def _keys(W: np.ndarray) -> np.ndarray:
    """One number per decision, the same wherever it stands; different ones differ, for all practical purposes."""
    return (W * np.cos(np.arange(1.0, W.shape[1] + 1.0))).sum(axis=1)
