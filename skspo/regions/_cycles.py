"""Cycles beside the path in flows from source to target."""

from __future__ import annotations

import numpy as np

from ._tolerances import HIGHS


def has_cycle(W: np.ndarray, tails: np.ndarray, heads: np.ndarray, source: int, target: int) -> np.ndarray:
    """Which flows are not along a single path without a repeated node."""
    n, n_nodes = len(W), int(max(tails.max(), heads.max())) + 1
    # A flow along one path has as many edges as the walk from the source, which leaves every node once.
    row, edge = np.nonzero(W)
    after = np.full((n, n_nodes), -1)
    after[row, tails[edge]] = heads[edge]
    node, length = np.full(n, source), np.zeros(n, dtype=int)
    for _ in range(n_nodes):
        following = after[np.arange(n), node]
        moves = (node != target) & (following >= 0)
        node, length = np.where(moves, following, node), length + moves
    return (node != target) | (length != np.count_nonzero(W, axis=1))


def drop_free_cycles(
    W: np.ndarray, C: np.ndarray, tails: np.ndarray, heads: np.ndarray, source: int, target: int
) -> np.ndarray:
    """Optimal flows without the cycles of cost zero that a linear program may add; cycles of negative cost stay."""
    for i in np.flatnonzero(has_cycle(W, tails, heads, source, target)):
        w = W[i]
        while True:
            some = np.flatnonzero(w)
            cycle = _free_cycle(C[i, some], tails[some], heads[some])
            if not cycle:
                break
            w[some[cycle]] -= w[some[cycle]].min()
    return W


def _free_cycle(c: np.ndarray, tails: np.ndarray, heads: np.ndarray) -> list[int]:
    """Edges of a cycle whose costs add up to zero; no edges if there is none.

    No cycle of an optimal flow has a positive cost, so there are potentials with c_e + p(tail) - p(head) <= 0.  The
    edges of a cycle of cost zero have equality.
    """
    potential = np.zeros(int(max(tails.max(), heads.max())) + 1)
    for _ in range(potential.size):
        before = potential.copy()
        np.maximum.at(potential, heads, potential[tails] + c)
        if (potential == before).all():
            break
    tight = c + potential[tails] - potential[heads] >= -HIGHS * np.abs(c).max(initial=0.0)
    leaving: dict[int, list[int]] = {}
    for e in np.flatnonzero(tight).tolist():
        leaving.setdefault(int(tails[e]), []).append(e)
    done: set[int] = set()
    for start in list(leaving):
        walk: list[int] = []  # edges of a depth-first search
        nodes = [start]
        while nodes:
            ways = leaving.get(nodes[-1], [])
            if not ways:
                done.add(nodes.pop())
                walk = walk[:-1]
                continue
            e = ways.pop()
            head = int(heads[e])
            if head in nodes:
                return [*walk[nodes.index(head) :], e]
            if head not in done:
                walk.append(e)
                nodes.append(head)
    return []
