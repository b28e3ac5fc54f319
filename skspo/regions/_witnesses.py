"""Decisions that an oracle returned before, which show when it is wrong.

All decisions of an oracle belong to one set, so each is a candidate for every row of costs.  If one of them is cheaper
than what the oracle returns, the oracle is not optimal, or that decision was not feasible.  What is kept is bounded:

    bank        BANK different decisions, all of them as long as there are no more
    previous    the decisions of the last call; a solver asks for the same samples again and again
    first       costs and decisions of the first call: in a fit, those of the training data
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: different decisions that are kept, and how many new ones a call may add once they are complete
BANK, NEW = 32, 4

#: largest number of entries of the arrays that are kept
ELEMENTS = 2**22

#: excess, relative to the terms of the costs, from which on a decision counts as not optimal
EXCESS = 1e-6


class Witness(NamedTuple):
    """A row of costs, the decision that was returned for it, and one that costs less."""

    row: int
    c: np.ndarray
    w: np.ndarray
    better: np.ndarray


class Witnesses:
    """What is remembered of an oracle; costs are to be minimised."""

    def __init__(self) -> None:
        self.bank: np.ndarray | None = None
        self.previous: np.ndarray | None = None
        self.first: tuple[np.ndarray, np.ndarray] | None = None
        #: why the oracle is not to be believed any more
        self.fault: str | None = None
        self._added = 0

    def look(self, C: np.ndarray, W: np.ndarray) -> Witness | None:
        """Compare decisions with others that are known, and remember some of them."""
        others = [np.roll(W, 1, axis=0)]
        if self.previous is not None:
            others.append(self.previous[: len(W)])
        self._remember(C, W)
        return self._compare(C, W, *others)

    def look_back(self) -> Witness | None:
        """Compare the decisions of the first call with those that came later."""
        return None if self.first is None else self._compare(*self.first)

    def _compare(self, C: np.ndarray, W: np.ndarray, *others: np.ndarray) -> Witness | None:
        cost, size = np.einsum("ij,ij->i", C, W), np.einsum("ij,ij->i", np.abs(C), np.abs(W))
        worst, found = EXCESS, None
        bank = self.bank
        if bank is not None:
            others = (*others, bank[(C @ bank.T).argmin(axis=1)])
        for other in others:
            n = len(other)
            scale = size[:n] + np.einsum("ij,ij->i", np.abs(C[:n]), np.abs(other))
            excess = (cost[:n] - np.einsum("ij,ij->i", C[:n], other)) / np.maximum(scale, 1e-300)
            row = int(excess.argmax())
            if excess[row] > worst:
                worst, found = excess[row], Witness(row, C[row], W[row], other[row])
        return found

    def _remember(self, C: np.ndarray, W: np.ndarray) -> None:
        rows = max(1, ELEMENTS // W.shape[1])
        self.previous = W[:rows].copy()
        if self.first is None:
            self.first = C[:rows].copy(), self.previous
        # Different decisions have different sums with these weights, for all practical purposes.
        key = W @ np.cos(np.arange(1.0, W.shape[1] + 1.0))
        new = W[np.unique(key, return_index=True)[1]]
        bank = self.bank
        if bank is None:
            self.bank = new[np.linspace(0, len(new) - 1, min(len(new), BANK)).astype(int)]
            return
        new = new[~(new[:, None, :] == bank[None]).all(axis=2).any(axis=1)] if len(new) <= 2 * BANK else new
        room = BANK - len(bank)
        if len(new) <= room:
            self.bank = np.concatenate([bank, new])
            return
        bank = np.concatenate([bank, new[:room]])
        # The older half stays, so that what was known at the beginning is not forgotten.
        for w in new[room:][np.linspace(0, len(new) - room - 1, min(NEW, len(new) - room)).astype(int)]:
            bank[BANK // 2 + self._added % (BANK // 2)] = w
            self._added += 1
        self.bank = bank
