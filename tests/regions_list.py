"""Every region once, with an independent description of the same set.

To have a region tested by all of ``test_regions.py`` and ``test_what_regions_offer.py``, add one line to ``REGIONS``.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import NamedTuple

import cvxpy as cp
import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint
from small_sets import capped, cheapest, dearest, packings

import skspo as sk


def pnorm(w, p):
    """Norm for a p that is a fraction; old versions of CVXPY have no parameter ``approx``."""
    exact = {"approx": False} if "approx" in inspect.signature(cp.pnorm).parameters else {}
    return cp.pnorm(w, p, **exact)


class Case(NamedTuple):
    """A region and its model.

    ``model`` is a function w -> list of CVXPY constraints without further variables, or an array with all feasible
    points as rows; ``integers`` are the coordinates of w that a function's constraints do not say are integers.
    """

    id: str
    region: sk.Region
    d: int
    model: Callable[[cp.Variable], list[cp.Constraint]] | np.ndarray
    integers: tuple[int, ...] = ()


def simplex(w):
    return [w >= 0, cp.sum(w) == 1]


def box(lower, upper):
    return lambda w: [w >= lower, w <= upper]


def entropy(least):
    return lambda w: [cp.sum(cp.entr(w)) >= least, cp.sum(w) == 1]


def barrier(most):
    return lambda w: [-cp.sum(cp.log(w)) <= most, cp.sum(w) == 1]


def flow(edges, source, target):
    """One unit from source to target: what a node sends minus what it gets."""
    graph = nx.MultiDiGraph()
    graph.add_edges_from(edges)
    nodes = list(graph)
    incidence = -nx.incidence_matrix(graph, nodes, [(a, b, 0) for a, b in edges], oriented=True).toarray()
    supply = np.array([(v == source) - float(v == target) for v in nodes])
    return lambda w: [incidence @ w == supply, w >= 0, w <= 1]


def grid_edges(rows, cols):
    """For each row its horizontal edges, then the vertical edges to the next row; nodes are (row, column)."""
    edges = []
    for i in range(rows):
        edges += [((i, j), (i, j + 1)) for j in range(cols - 1)]
        edges += [((i, j), (i + 1, j)) for j in range(cols)] if i + 1 < rows else []
    return edges


def fractions(weights, capacity):
    return lambda w: [np.atleast_2d(weights) @ w <= capacity, w >= 0, w <= 1]


def partial_permutations(n, m):
    """Everyone of the smaller side has one partner, and everyone of the larger one at most one."""

    def model(w):
        W = cp.reshape(w, (n, m), order="C")
        workers, tasks = cp.sum(W, axis=1), cp.sum(W, axis=0)
        few, many = (workers, tasks) if n < m else (tasks, workers)
        return [few == 1, many <= 1, w >= 0]

    return model


def permutations(n):
    def model(w):
        W = cp.reshape(w, (n, n), order="C")
        return [cp.sum(W, axis=0) == 1, cp.sum(W, axis=1) == 1, w >= 0]

    return model


def tours(n):
    """All tours, by the orders of the nodes."""
    pairs, found = list(itertools.combinations(range(n), 2)), set()
    for order in itertools.permutations(range(1, n)):
        steps = {frozenset(step) for step in itertools.pairwise((0, *order, 0))}
        found.add(tuple(float(frozenset(pair) in steps) for pair in pairs))
    return np.array(sorted(found))


def portfolio(risk, equal=True):
    return lambda w: [w >= 0, cp.sum(w) == 1 if equal else cp.sum(w) <= 1, cp.quad_form(w, COVARIANCE) <= risk]


# At module level, because regions that hold a function are pickled by its name.
def cut_ball(w):
    return [cp.norm(w - 1.0) <= 2.0, w[0] + w[1] <= 1.0, w[2] >= 0.5]


Q = np.array([[2.0, 0.5, 0.0, 0.1], [0.5, 1.0, 0.2, 0.0], [0.0, 0.2, 3.0, -0.4], [0.1, 0.0, -0.4, 0.7]])
CENTER = np.array([1.0, -2.0, 0.5, 0.0])
COVARIANCE = Q + 0.3
LOWER, UPPER = [-1.0, 0.0, 2.0, -5.0], [1.0, 3.0, 2.0, -4.5]  # the third decision is fixed
A_UB, B_UB = np.array([[1.0, 2.0, -1.0, 0.5, 0.0], [-1.0, 0.0, 2.0, 1.0, 1.0]]), np.array([4.0, 3.0])
A_EQ, B_EQ = np.array([[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 0.0, 2.0, 0.0]]), np.array([2.0, 0.5])
BOUNDS = [(0, None), (None, 3), (-1, None), (0, 2), (None, None)]
WHOLE, ROOM = np.array([[2, 3, 1], [1, -1, 2]]), np.array([7, 3])
RANGES = [LinearConstraint([1, 2, 0], 0.5, 4), LinearConstraint([0, 1, -1], 0.5, 0.5)]
LIMITS = ([[2, 3, 1, 1], [-1, 0, 0, 1]], [6.5, 0.7])
CYCLIC = [("s", "a"), ("a", "b"), ("b", "a"), ("b", "t"), ("s", "b"), ("a", "t"), ("b", "s")]
DEAD_END = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("b", "x"), ("y", "b"), ("s", "t")]
W1, W2, W3 = [3, 4, 5, 9, 40, 0], [0.31, 0.42, 0.55, 0.17, 0.9], [[3, 4, 5, 9, 2], [2, 2, 7, 1, 3]]


def side_by_side(w):
    return [w >= [0, 0, 0, -1, -1], cp.sum(w[:3]) == 1, w[3:] <= 2]


def top_and_limited(w):
    return [w[:3] >= 0, w[:3] <= 1, cp.sum(w[:3]) == 2, *portfolio(0.9)(w[3:])]


def general(w):
    return [A_UB @ w <= B_UB, A_EQ @ w == B_EQ, w[0] >= 0, w[1] <= 3, w[2] >= -1, w[3] >= 0, w[3] <= 2]


def mixed(w):
    return [2 * w[0] + 3 * w[1] + w[2] + w[3] <= 6.5, w[3] - w[0] <= 0.7, w >= 0, w <= 2.6]


def ranges(w):
    return [w[0] + 2 * w[1] >= 0.5, w[0] + 2 * w[1] <= 4, w[1] - w[2] == 0.5, w >= [0, -1, 0], w <= 2]


def whole_points(least=0):
    points = np.array(list(itertools.product(range(4), repeat=3)), dtype=float)
    return points[(points @ WHOLE.T <= ROOM).all(axis=1) & (points @ WHOLE[0] >= least)]


PAIRS, SUMS, WIDE = np.kron(np.eye(2), [[1.0, 1.0]]), [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], [[1, 2, 0], [0, -1, 0.5]]
TALL = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 0.5], [1.0, 0.0, 0.0], [0.3, 0.2, 0.1]])
MIX, FEES = np.array([[1, 2, 0, -1, 0.5, 2], [0, 1, 1, 0, 0, 3]]), [0.3, -0.2, 1, 4, 0, -2.5]


def in_units(w):
    return [w[0] >= 0, w[1] <= 0, w[2] >= 0, w[0] / 2 - w[1] + 2 * w[2] == 1]


def wide_ball(w):
    return [cp.quad_form(w, np.linalg.inv(np.dot(WIDE, np.transpose(WIDE)))) <= 4]


def tall_ball(w):
    back = np.linalg.pinv(TALL)
    return [TALL @ back @ w == w, cp.norm(back @ w) <= 2]


LIMITED = sk.Markowitz(COVARIANCE, 0.9, sense="max")

REGIONS = [
    Case("simplex", sk.Simplex(), 5, simplex),
    Case("simplex-max", sk.Simplex(sense="max"), 4, simplex),
    Case("simplex-1", sk.Simplex(), 1, simplex),
    Case("box", sk.Box(), 4, box(0.0, 1.0)),
    Case("box-numbers", sk.Box(-2, 0.5, sense="max"), 3, box(-2.0, 0.5)),
    Case("box-arrays", sk.Box(LOWER, UPPER), 4, box(LOWER, UPPER)),
    Case("topk", sk.TopK(2), 5, lambda w: [w >= 0, w <= 1, cp.sum(w) == 2]),
    Case("topk-max", sk.TopK(3, sense="max"), 4, lambda w: [w >= 0, w <= 1, cp.sum(w) == 3]),
    Case("topk-at-most", sk.TopK(2, at_most=True), 4, lambda w: [w >= 0, w <= 1, cp.sum(w) <= 2]),
    Case("l1", sk.L1Ball(1.5), 4, lambda w: [cp.norm1(w) <= 1.5]),
    Case("lq-1.5", sk.LqBall(1.5, 2.0), 4, lambda w: [pnorm(w, 1.5) <= 2.0]),
    Case("lq-2", sk.LqBall(2, 0.5), 4, lambda w: [cp.norm(w) <= 0.5]),
    Case("sphere-max", sk.Ellipsoid(radius=3, sense="max"), 3, lambda w: [cp.norm(w) <= 3]),
    Case("ellipsoid", sk.Ellipsoid(Q, CENTER, 0.8), 4, lambda w: [cp.quad_form(w - CENTER, Q) <= 0.64]),
    Case("entropy", sk.EntropySimplex(), 5, entropy(0.5 * np.log(20))),
    Case("entropy-loose", sk.EntropySimplex(-0.3), 4, entropy(0.3)),
    Case("entropy-max", sk.EntropySimplex(-1.2, sense="max"), 5, entropy(1.2)),
    Case("barrier", sk.LogBarrierSimplex(), 4, barrier(8 * np.log(4))),
    Case("barrier-tight-max", sk.LogBarrierSimplex(5.7, sense="max"), 4, barrier(5.7)),
    Case("polyhedron", sk.Polyhedron(A_UB, B_UB, A_EQ, B_EQ, BOUNDS), 5, general),
    Case("polyhedron-max", sk.Polyhedron([[1, 2, 3]], [4], sense="max"), 3, lambda w: [w @ [1, 2, 3] <= 4, w >= 0]),
    Case("polyhedron-constraints", sk.Polyhedron(constraints=RANGES, bounds=Bounds([0, -1, 0], 2)), 3, ranges),
    Case("integer", sk.MixedInteger(WHOLE, ROOM, bounds=(0, 3)), 3, whole_points()),
    Case("integer-constraints", sk.MixedInteger(constraints=(WHOLE, [2, -9], ROOM), bounds=(0, 3)), 3, whole_points(2)),
    Case("mixed", sk.MixedInteger(*LIMITS, bounds=(0, 2.6), integrality=[1, 1, 0, 0], sense="max"), 4, mixed, (0, 1)),
    Case("grid", sk.ShortestPath.grid(3, 4), 17, flow(grid_edges(3, 4), (0, 0), (2, 3))),
    Case("grid-max", sk.ShortestPath.grid(2, 3, sense="max"), 7, flow(grid_edges(2, 3), (0, 0), (1, 2))),
    Case("path-cyclic", sk.ShortestPath(CYCLIC, "s", "t"), 7, flow(CYCLIC, "s", "t")),
    Case("path-dead-end", sk.ShortestPath(DEAD_END, "s", "t"), 8, flow(DEAD_END, "s", "t")),
    Case("knapsack", sk.Knapsack(W1, 16), 6, packings(W1, 16)),
    Case("knapsack-real", sk.Knapsack(W2, 1.2), 5, packings(W2, 1.2)),
    Case("knapsack-two", sk.Knapsack(W3, [12, 8], sense="min"), 5, packings(W3, [12, 8])),
    Case("knapsack-fractional", sk.Knapsack(W1, 16, integer=False), 6, fractions(W1, 16)),
    Case("knapsack-fractional-two", sk.Knapsack(W3, [12, 8], integer=False), 5, fractions(W3, [12, 8])),
    Case("tour", sk.TravellingSalesman(5), 10, tours(5)),
    Case("tour-max", sk.TravellingSalesman(4, sense="max"), 6, tours(4)),
    Case("assignment", sk.Assignment(3), 9, permutations(3)),
    Case("assignment-labels", sk.Assignment(workers=["a", "b"], tasks=[1, 2]), 4, permutations(2)),
    Case("assignment-2x3", sk.Assignment(2, 3), 6, partial_permutations(2, 3)),
    Case("assignment-3x2", sk.Assignment(n_tasks=2, sense="max"), 6, partial_permutations(3, 2)),
    Case("assignment-max", sk.Assignment(sense="max"), 4, permutations(2)),
    Case("markowitz", sk.Markowitz(COVARIANCE, 0.9), 4, portfolio(0.9)),
    Case("markowitz-at-most", sk.Markowitz(COVARIANCE, 0.4, budget="at_most", sense="max"), 4, portfolio(0.4, False)),
    Case("product", sk.Product([sk.Simplex(), sk.Box(-1, 2)], [3, 2]), 5, side_by_side),
    Case("product-max", sk.Product([sk.TopK(2, sense="max"), LIMITED], [3, 4], sense="max"), 7, top_and_limited),
    Case("image-units", sk.LinearImage(sk.Simplex(), np.diag([2, -1, 0.5])), 3, in_units),
    Case("image-pairs", sk.LinearImage(sk.TopK(2), PAIRS), 2, lambda w: [w >= 0, cp.sum(w) == 2]),
    Case(
        "image-max",
        sk.LinearImage(sk.Polyhedron([[1, 2, 3]], [4], sense="max"), sp.csr_array(SUMS)),
        2,
        lambda w: [w >= 0, w @ [1, 2] <= 4],
    ),
    Case("image-known", sk.LinearImage(sk.Knapsack(W1, 16), MIX, FEES), 3, packings(W1, 16) @ np.vstack([MIX, FEES]).T),
    Case("image-wide", sk.LinearImage(sk.LqBall(2, 2.0), WIDE), 2, wide_ball),
    Case("image-tall", sk.LinearImage(sk.Ellipsoid(radius=2, sense="max"), TALL), 4, tall_ball),
    Case("cvxpy", sk.CvxpyRegion(capped, 4), 4, capped),
    Case("cvxpy-max", sk.CvxpyRegion(cut_ball, 3, sense="max"), 3, cut_ball),
    Case("oracle", sk.OracleRegion(cheapest, 4), 4, simplex),
    Case("oracle-max", sk.OracleRegion(dearest, sense="max"), 3, simplex),
]
