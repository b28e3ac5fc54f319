"""Shortest paths in acyclic graphs, by dynamic programming for many rows of costs at once; cycles in other graphs."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..._utils.errors import InfeasibleRegionError
from ..._utils.limits import BLOCK_NUMBERS
from .._rows import refuse_rows
from .._tolerances import HIGHS

BLOCKED = "ShortestPath: the region of {row} is empty, no path of available edges leads from source to target."


class Step(NamedTuple):
    """One incoming edge for each of several consecutive nodes of one level: the k-th edge enters the k-th node."""

    nth: int  # first, second, ... edge of these nodes
    nodes: slice
    edges: np.ndarray  # their indices in the user's order
    places: slice  # their positions in ``Sweep.order``
    tails: np.ndarray


class Sweep(NamedTuple):
    """Dynamic programming over the nodes of an acyclic graph, in vectorized steps.

    Nodes are numbered by level (the number of edges of the longest path from the source, which is node 0).
    """

    steps: list[Step]
    order: np.ndarray  # edges in the order of the steps
    entering: np.ndarray  # (n_nodes, most) edges that enter each node; d where there are none
    tails: np.ndarray  # (d + 1,) node number of each edge's tail; entry d is the source
    target: int
    length: int  # number of edges of the longest path

    def forward(self, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cost of the best path to each node, and which of the entering edges is its last; ``C`` is (d, n)."""
        C = C[self.order]
        n_nodes, most = self.entering.shape
        value = np.zeros((n_nodes, C.shape[1]))
        nth = np.zeros((n_nodes, C.shape[1]), dtype=np.min_scalar_type(most))
        for step in self.steps:
            through = value[step.tails]
            through += C[step.places]
            best = value[step.nodes]
            if step.nth == 0:
                best[:] = through
            else:
                # Only if strictly better: edges come in increasing order, so the lowest index is kept.
                better = (through < best).astype(nth.dtype)
                better *= nth.dtype.type(step.nth)
                np.maximum(nth[step.nodes], better, out=nth[step.nodes])
                np.minimum(best, through, out=best)
        return value, nth

    def shortest(self, C: np.ndarray) -> np.ndarray:
        """Paths of least cost, (n, d), for costs (d, n); an infinite cost excludes an edge."""
        d, n = C.shape
        value, nth = self.forward(C)
        refuse_rows(np.isinf(value[self.target]), InfeasibleRegionError, lambda _: BLOCKED)
        # A path that has reached the source stays there, on the artificial edge d.
        W = np.zeros((n, d + 1))
        rows, node = np.arange(n), np.full(n, self.target)
        for _ in range(self.length):
            edge = self.entering[node, nth[node, rows]]
            W[rows, edge] = 1.0
            node = self.tails[edge]
        return W[:, :d]


def plan_sweep(tails: np.ndarray, heads: np.ndarray, source: int, target: int, used: np.ndarray) -> Sweep | None:
    """Order the nodes by level and group their incoming edges into steps; None if there is a cycle."""
    incoming: dict[int, list[int]] = {source: []}
    for e in used.tolist():
        incoming.setdefault(int(heads[e]), []).append(e)
    sorter = TopologicalSorter({node: tails[entering].tolist() for node, entering in incoming.items()})
    try:
        sorter.prepare()
    except CycleError:
        return None
    levels = []
    while sorter.is_active():
        ready = sorter.get_ready()
        sorter.done(*ready)
        # Nodes with many incoming edges first: the k-th edges of a level then enter consecutive nodes.
        levels.append(sorted(ready, key=lambda node: -len(incoming[node])))
    order = [node for level in levels for node in level]
    number = np.zeros(int(max(tails.max(), heads.max())) + 1, dtype=np.intp)
    number[order] = np.arange(len(order))
    entering = np.full((len(order), max(map(len, incoming.values()))), tails.size)
    steps = []
    start, place = 1, 0
    for level in levels[1:]:
        for k in range(max((len(incoming[node]) for node in level), default=0)):
            edges = np.array([incoming[node][k] for node in level if len(incoming[node]) > k])
            nodes, places = slice(start, start + edges.size), slice(place, place + edges.size)
            steps.append(Step(k, nodes, edges, places, number[tails[edges]]))
            entering[nodes, k] = edges
            place += edges.size
        start += len(level)
    ordered = np.concatenate([step.edges for step in steps])
    return Sweep(steps, ordered, entering, np.append(number[tails], 0), int(number[target]), len(levels) - 1)


def blocks_of_rows(rows: np.ndarray, d: int) -> list[np.ndarray]:
    # With fewer rows the overhead of a step dominates in large graphs.
    size = max(BLOCK_NUMBERS // d, 256)
    return [rows[a : a + size] for a in range(0, rows.size, size)]


# -- cycles beside the path in flows from source to target -------------------------------------------------------------


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
    edge = {(int(tails[e]), int(heads[e])): e for e in np.flatnonzero(tight).tolist()}
    before_node: dict[int, list[int]] = {}
    for tail, head in edge:
        before_node.setdefault(head, []).append(tail)
    try:
        TopologicalSorter(before_node).prepare()
    except CycleError as error:  # it has the nodes of a cycle
        return [edge[pair] for pair in pairwise(error.args[1])]
    return []
