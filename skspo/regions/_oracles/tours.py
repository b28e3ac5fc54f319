"""Shortest tours through all nodes, and the linear relaxation with all subtour cuts, solved with HiGHS.

Conventions
-----------
    x (d,) one number for each pair of nodes i < j, in lexicographic order
    two edges at each node, 0 <= x <= 1, and at least two edges between every set of nodes and the others (cuts)

The linear program has only the cuts that one of its solutions violated, at any node of the branch and bound.  Every row
of costs starts without cuts, from the same basis: nothing is carried over from other rows, so that ties do not depend
on them.  Every bound is computed from multipliers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..._utils.errors import SolverError
from ..._utils.limits import check_time
from .._rows import row_error
from .._tolerances import PROVED, SOLVER
from ..polyhedral import InequalityForm
from .highs_linear import DUAL, PRIMAL, Options, Status, new_model, scale_costs, set_options


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
