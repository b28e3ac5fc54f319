"""Paths and cycles in given flows from a source to a target."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import numpy as np

from .._tolerances import EXACT


def walk_edges(edges: Sequence[tuple[Hashable, Hashable]]) -> list[Any]:
    """Nodes of a path in order; cycles beside it follow as lists of their own."""
    leaving: dict[Hashable, list[Hashable]] = {}
    surplus: dict[Hashable, int] = {}
    for tail, head in edges:
        leaving.setdefault(tail, []).append(head)
        surplus[tail], surplus[head] = surplus.get(tail, 0) + 1, surplus.get(head, 0) - 1
    walk: list[Any] = []
    cycles: list[Any] = []
    starts = [node for node, value in surplus.items() if value > 0]
    for start in [*starts, *leaving]:
        while leaving.get(start):
            path = [start]
            while leaving.get(path[-1]):
                node = leaving[path[-1]].pop(0)
                if node in path:  # cut the cycle out
                    at = path.index(node)
                    cycles.append([*path[at:], node])
                    path = path[:at]
                path.append(node)
            if len(path) > 1:
                walk = path
    return walk + cycles


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
    tight = c + potential[tails] - potential[heads] >= -EXACT * np.abs(c).max(initial=0.0)
    edge = {(int(tails[e]), int(heads[e])): e for e in np.flatnonzero(tight).tolist()}
    before_node: dict[int, list[int]] = {}
    for tail, head in edge:
        before_node.setdefault(head, []).append(tail)
    try:
        TopologicalSorter(before_node).prepare()
    except CycleError as error:  # it has the nodes of a cycle
        return [edge[pair] for pair in pairwise(error.args[1])]
    return []
