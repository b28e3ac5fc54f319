"""Tours through all nodes of a complete graph: TravellingSalesman."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

import numpy as np

from .._utils.shown import shown
from . import listed
from ._cost_bounds import CostBounds
from ._names import Names, number_names, ones_of, read_labels
from ._oracles.highs import map_rows
from ._oracles.tours import degree_form, list_tours, pairs_of, solve_tours
from .graphs import Node
from .listed import IntegerRegion, PointList
from .polyhedral import InequalityForm, fixed_directions


class TravellingSalesman(IntegerRegion):
    r"""Tours that visit every node once and return: one decision per pair of nodes, 1 if the tour goes along it.

    The costs of both directions are the same.  Pairs (i, j) with i < j are in lexicographic order, so that n nodes have
    n (n - 1) / 2 costs.  All tours of up to 9 nodes are listed.  For more nodes linear programs with the subtour
    constraints that are needed bound the costs of a branch and bound, solved with HiGHS: milliseconds for a row of 20
    nodes.

    Parameters
    ----------
    nodes : int or list of labels
        Number of nodes, at least 3, or their names.
    integer : bool, default=True
        Whether the tours are whole.  If not, the region is the subtour relaxation: two edges at every node,
        :math:`0 \le w \le 1`, and at least two between every set of nodes and the others.
    n_jobs : int, default=None
        Number of threads.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Examples
    --------
    >>> from skspo import TravellingSalesman
    >>> region = TravellingSalesman(["depot", "a", "b", "c"])
    >>> list(region.variable_names)
    ['depot - a', 'depot - b', 'depot - c', 'a - b', 'a - c', 'b - c']
    >>> region.chosen([[1.0, 5.0, 2.0, 1.0, 9.0, 3.0]])
    [['depot', 'a', 'b', 'c', 'depot']]
    """

    def __init__(
        self,
        nodes: int | Sequence[Node],
        *,
        integer: bool = True,
        n_jobs: int | None = None,
        sense: str = "min",
        cost_bounds: CostBounds = None,
    ) -> None:
        self.nodes = nodes
        self.integer = integer
        self.n_jobs = n_jobs
        self.sense = sense
        self.cost_bounds = cost_bounds

    def _labels(self) -> list[Node]:
        nodes: Any = self.nodes
        if isinstance(nodes, (int, np.integer)) and not isinstance(nodes, bool):
            nodes = range(int(nodes))
        labels = read_labels("TravellingSalesman: nodes, if not a number,", nodes)
        if len(labels) < 3:
            raise ValueError(f"TravellingSalesman: a tour needs at least 3 nodes, got {shown(self.nodes)}.")
        return labels

    @property
    def n_dim(self) -> int:
        """Number of pairs of nodes."""
        n = len(self._labels())
        return n * (n - 1) // 2

    @property
    def variable_names(self) -> Names:  # type: ignore[override]
        """Names "first - second" of the pairs."""
        return number_names([f"{a} - {b}" for a, b in self._pairs()])

    def _pairs(self) -> list[tuple[Node, Node]]:
        """Nodes of each decision."""
        labels = self._labels()
        return [(labels[i], labels[j]) for i, j in zip(*pairs_of(len(labels)), strict=True)]

    @property
    def _is_polyhedron(self) -> bool:
        return False  # the relaxation is one, with too many constraints to write them out

    def _prepare(self, d: int) -> int:
        if not isinstance(self.integer, bool | np.bool_):
            raise TypeError(f"TravellingSalesman: integer must be True or False, got {shown(self.integer)}.")
        return len(self._labels())

    def _constraints(self, d: int) -> InequalityForm:
        return degree_form(self._data(d))

    def _list(self, d: int) -> PointList | None:
        n = self._data(d)
        if not self.integer or factorial(n - 1) // 2 > listed.MOST_POINTS:
            return None
        return PointList(list_tours(n), self._constraints(d))

    def _argmin(self, C: np.ndarray, data: int) -> np.ndarray:
        if (points := self._points(C.shape[1])) is not None:
            return points.argmin(C)

        def chunk(first: int, C: np.ndarray) -> np.ndarray:
            return solve_tours(C, data, self.integer, first)

        return map_rows(chunk, C, n_jobs=self.n_jobs)

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal rows E with E w constant: the numbers of edges at the nodes."""
        return fixed_directions(self._constraints(self.resolve_dim(n_dim)).A_eq)

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        taken, pairs, n = ones_of(W), self._pairs(), len(self._labels())
        if taken is None or not all(own.size in (0, n) for own in taken):  # a mixture of tours
            return super()._describe(W, names)
        tours = [_walk([pairs[e] for e in own]) for own in taken]
        whole = (not tour or (len(set(tour)) == n == len(tour) - 1 and tour[0] == tour[-1]) for tour in tours)
        return tours if all(whole) else super()._describe(W, names)  # several tours at once


def _walk(pairs: list[tuple[Node, Node]]) -> list[Node]:
    """Nodes of a tour in order, from the first one back to it."""
    beside: dict[Node, list[Node]] = {}
    for a, b in pairs:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    tour = [pairs[0][0]] if pairs else []
    while tour and beside[tour[-1]]:
        node = beside[tour[-1]].pop(0)
        beside[node].remove(tour[-1])
        tour.append(node)
    return tour
