"""Tours through all nodes of a complete graph: TravellingSalesman.

Conventions
-----------
    x (d,) one number for each pair of nodes i < j, in lexicographic order
    two edges at each node, 0 <= x <= 1, and at least two edges between every set of nodes and the others (cuts)

Tours of a few nodes are listed.  Those of others, and the linear relaxation, are found with HiGHS.  Its linear program
has only the cuts that one of its solutions violated, at any node of the branch and bound.  Every row of costs starts
without cuts, from the same basis: nothing is carried over from other rows, so that ties do not depend on them.  Every
bound is computed from multipliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from .._utils.errors import SolverError
from .._utils.limits import check_time
from .._utils.shown import shown
from . import listed
from ._cost_bounds import CostBounds
from ._names import Names, number_names, ones_of, read_labels
from ._oracles.highs import map_rows
from ._oracles.highs_linear import DUAL, PRIMAL, Options, Status, new_model, scale_costs, set_options
from ._rows import row_error
from ._tolerances import PROVED, SOLVER
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


# -- oracle ------------------------------------------------------------------------------------------------------------


def pairs_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    """First and second node of each pair."""
    first, second = np.triu_indices(n, 1)
    return first, second


def degree_form(n: int) -> InequalityForm:
    """Two edges at each node."""
    ends = np.stack(pairs_of(n))
    d = ends.shape[1]
    A = sp.csr_array((np.ones(2 * d), (ends.ravel(), np.tile(np.arange(d), 2))), shape=(n, d))
    return InequalityForm.build(d, A_eq=A, b_eq=np.full(n, 2.0), upper=1.0)


def list_tours(n: int) -> np.ndarray:
    """All tours, shape (m, d), in descending lexicographic order."""
    # Insert one node after the other into all edges of the tours of the nodes before.
    orders = np.array([[0, 1, 2]])
    for node in range(3, n):
        orders = np.concatenate([np.insert(orders, at, node, axis=1) for at in range(1, node + 1)])
    number = np.zeros((n, n), dtype=np.intp)
    first, second = pairs_of(n)
    number[first, second] = number[second, first] = np.arange(first.size)
    W = np.zeros((len(orders), first.size))
    np.put_along_axis(W, number[orders, np.roll(orders, -1, axis=1)], 1.0, axis=1)
    return W[np.lexsort(-W.T[::-1])]


def solve_tours(C: np.ndarray, n: int, whole: bool, first: int = 0) -> np.ndarray:
    """Best tour of each row of costs, or best solution of the relaxation; ``first`` is the number of the first row."""
    W, model = np.empty_like(C), _Model(n)
    for i, c in enumerate(scale_costs(C)):
        try:
            W[i] = model.minimize(c, whole)
        except SolverError as error:
            raise row_error(SolverError, first + i, f"{error} for {{row}}.") from error
    return W


class _Node(NamedTuple):
    bound: float
    lower: np.ndarray
    upper: np.ndarray


class _Model:
    """The linear program with the cuts so far."""

    def __init__(self, n: int) -> None:
        self.n, self.ends = n, pairs_of(n)
        form = degree_form(n)
        options: Options = {"solver": "simplex", "presolve": "off", "dual_feasibility_tolerance": 1e-10}
        self.highs, _, _ = new_model(form, options)
        self.degrees, self.cuts = form.A_eq, 0
        self.lower, self.upper = form.lower, form.upper
        self.columns = np.arange(form.lower.size, dtype=np.int32)
        self.highs.run()
        self.basis = self.highs.getBasis()

    def _start(self, c: np.ndarray) -> None:
        """Return to the program without cuts."""
        if self.cuts:
            rows = np.arange(self.n, self.n + self.cuts, dtype=np.int32)
            self.highs.deleteRows(rows.size, rows)
        self.A, self.sides, self.cuts = self.degrees, np.full(self.n, 2.0), 0
        self.highs.changeColsCost(self.columns.size, self.columns, c)
        self.highs.changeColsBounds(self.columns.size, self.columns, self.lower, self.upper)
        self.highs.clearSolver()
        self.highs.setBasis(self.basis)

    def _add(self, sets: list[np.ndarray]) -> None:
        crosses = np.array([inside[self.ends[0]] != inside[self.ends[1]] for inside in sets])
        rows = sp.csr_array(crosses.astype(np.float64))
        k = len(sets)
        self.highs.addRows(
            k, np.full(k, 2.0), np.full(k, np.inf), rows.nnz, rows.indptr[:-1].astype(np.int32), rows.indices, rows.data
        )
        self.cuts += k
        self.A = sp.csr_array(sp.vstack([self.A, rows], format="csr"))
        self.sides = np.append(self.sides, np.full(k, 2.0))

    def minimize(self, c: np.ndarray, whole: bool) -> np.ndarray:
        """Best tour, by branch and bound; or the optimum of the linear program."""
        self._start(c)
        best, cost = None, np.inf
        nodes = [_Node(-np.inf, self.lower, self.upper)]
        while nodes:
            node = nodes.pop()
            solved = None if node.bound >= cost else self._relax(c, node, cost)
            if solved is None:
                continue
            x, bound = solved
            split = np.abs(x - np.rint(x))
            j = int(split.argmax())
            if not whole or split[j] <= SOLVER:
                x = np.rint(x) if whole else x
                if c @ x - bound > PROVED * (1.0 + np.abs(c) @ x):
                    raise SolverError("HiGHS calls a tour optimal, but its multipliers do not prove it")
                if c @ x < cost:
                    best, cost = x, float(c @ x)
                continue
            zero, one = node.upper.copy(), node.lower.copy()
            zero[j], one[j] = 0.0, 1.0
            nodes += [_Node(bound, node.lower, zero), _Node(bound, one, node.upper)]
        if best is None:
            raise SolverError("HiGHS found no tour")
        return best

    def _relax(self, c: np.ndarray, node: _Node, cost: float) -> tuple[np.ndarray, float] | None:
        """Solution of the linear program of a node with all its cuts, and a bound; None if it is not better."""
        highs = self.highs
        highs.changeColsBounds(self.columns.size, self.columns, node.lower, node.upper)
        set_options(
            highs, {"simplex_strategy": PRIMAL if node.lower is self.lower and node.upper is self.upper else DUAL}
        )
        while True:
            check_time()
            highs.run()
            status = highs.getModelStatus()
            if status == Status.kInfeasible:
                return None
            if status != Status.kOptimal:
                raise SolverError(f"HiGHS stopped without an optimal tour, {highs.modelStatusToString(status)},")
            solution = highs.getSolution()
            x, y = np.array(solution.col_value), np.array(solution.row_dual)
            y[self.n :] = np.maximum(y[self.n :], 0.0)
            r = c - self.A.T @ y
            bound = float(y @ self.sides + np.where(r > 0, r * node.lower, r * node.upper).sum())
            if bound >= cost:
                return None
            sets = violated_cuts(x, self.n, self.ends)
            if not sets:
                return x, bound
            self._add(sets)
            set_options(highs, {"simplex_strategy": DUAL})


def violated_cuts(x: np.ndarray, n: int, ends: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
    """Sets of nodes that fewer than two edges connect with the others; none if and only if there is no such set."""
    G = np.zeros((n, n))
    G[ends] = x
    G += G.T
    count, label = connected_components(G > SOLVER, directed=False)
    if count > 1:
        return [label == k for k in range(count if count > 2 else 1)]
    # If two nodes are connected by a whole edge, some smallest cut has both on the same side.
    _, merged = connected_components(G >= 1.0 - SOLVER, directed=False)
    G = _merge(G, merged)
    sets = []
    while len(G) > 1:  # Stoer and Wagner: the last node in the order of a maximum adjacency search is a smallest cut
        order, weight = [0], G[0].copy()
        weight[0] = -np.inf
        while len(order) < len(G):
            last = int(weight.argmax())
            order.append(last)
            if len(order) == len(G) and weight[last] < 2.0 - SOLVER:
                sets.append(merged == last)
            weight = weight + G[last]
            weight[last] = -np.inf
        s, t = sorted(order[-2:])
        label = np.arange(len(G))
        label[t] = s
        label[label > t] -= 1
        merged, G = label[merged], _merge(G, label)
    return sets


def _merge(G: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Weights between groups of nodes."""
    to = np.eye(label.max() + 1)[label]
    G = to.T @ G @ to
    np.fill_diagonal(G, 0.0)
    return G
