"""Regions and independent implementations of their support functions (used by ``certificate_problems.py``).

    support(U) = max_{w in S} u.w,  one number per row of U,  where costs are minimized

Nothing here calls an oracle of the package.  Polytopes are given by their vertices, or by a formula where there are too
many of them; the others by a formula, by a convex problem in one variable, or by Clarabel.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from small_sets import cheapest, corners, dearest, packings

import skspo as sk


class Set(NamedTuple):
    """A region, the support function of the same set, and its vertices if there are few."""

    region: sk.Region
    support: Callable[[np.ndarray], np.ndarray]
    vertices: Any = None  # (k, d), or (n, k, d) where they differ from sample to sample
    accuracy: float = 1e-13  # of the package's oracle or of ``support``, relative to the costs
    params: Any = None  # region_params
    slow: bool = False  # whether the oracle is a solver
    norm: Any = None  # center (d,) and M (d, m) where the support function is center.u + |M^T u|


def listed(region, vertices, **more):
    vertices = np.asarray(vertices, dtype=float)
    return Set(region, lambda U: (U @ vertices.T.astype(U.dtype)).max(axis=1), vertices, **more)


# -- polytopes by their inequalities -----------------------------------------------------------------------------------


def polytope_vertices(A_ub, b_ub, A_eq, b_eq, low, high):
    """All vertices of a small bounded polytope: every set of active constraints that has one solution is tried."""
    d = len(low)
    A = np.vstack([np.reshape(A_ub, (-1, d)), np.eye(d), -np.eye(d)])
    b = np.concatenate([np.ravel(b_ub), high, -np.asarray(low)])
    A_eq, b_eq = np.reshape(A_eq, (-1, d)), np.ravel(b_eq)
    rank = np.linalg.matrix_rank(A_eq) if A_eq.size else 0
    points = []
    for active in itertools.combinations(range(len(b)), d - rank):
        M, r = np.vstack([A_eq, A[list(active)]]), np.concatenate([b_eq, b[list(active)]])
        if np.linalg.matrix_rank(M) == d:
            w = np.linalg.lstsq(M, r, rcond=None)[0]
            if (A @ w <= b + 1e-9).all() and (not A_eq.size or np.abs(A_eq @ w - b_eq).max() <= 1e-9):
                points.append(w)
    return np.array(points)[np.unique(np.round(points, 12), axis=0, return_index=True)[1]]


CYCLIC = [("s", "a"), ("a", "b"), ("b", "a"), ("b", "t"), ("s", "b"), ("a", "t")]


@cache
def flows():
    """Vertices of the flows of one unit from s to t, with capacity one."""
    nodes = "sabt"
    incidence = np.array([[(u == v) - float(w == v) for u, w in CYCLIC] for v in nodes])
    d = len(CYCLIC)
    return polytope_vertices(np.zeros((0, d)), [], incidence, [1.0, 0.0, 0.0, -1.0], np.zeros(d), np.ones(d))


def grid_paths(rows, cols):
    """Paths of a grid that go right or down; edges as ``ShortestPath.grid`` counts them."""
    edges = {}
    for i in range(rows):
        for j in range(cols - 1):
            edges[(i, j), (i, j + 1)] = len(edges)
        for j in range(cols if i + 1 < rows else 0):
            edges[(i, j), (i + 1, j)] = len(edges)
    paths = []
    for downs in itertools.combinations(range(rows + cols - 2), rows - 1):
        w, node = np.zeros(len(edges)), (0, 0)
        for step in range(rows + cols - 2):
            after = (node[0] + 1, node[1]) if step in downs else (node[0], node[1] + 1)
            w[edges[node, after]], node = 1.0, after
        paths.append(w)
    return np.array(paths)


def permutations(n):
    return np.array([np.eye(n)[list(order)].ravel() for order in itertools.permutations(range(n))])


# -- formulas ----------------------------------------------------------------------------------------------------------


def simplex(d, sense="min"):
    return Set(sk.Simplex(sense=sense), lambda U: U.max(axis=1), np.eye(d) if d <= 20 else None)


def box(low, high, d, sense="min"):
    low, high = (np.broadcast_to(np.asarray(b, dtype=float), d) for b in (low, high))
    vertices = low + (high - low) * corners(d) if d <= 5 else None
    return Set(sk.Box(low, high, sense=sense), lambda U: np.maximum(U * low, U * high).sum(axis=1), vertices)


def top(k, d, sense="min"):
    vertices = [v for v in corners(d) if v.sum() == k] if d <= 8 else None
    return Set(sk.TopK(k, sense=sense), lambda U: np.sort(U, axis=1)[:, d - k :].sum(axis=1), vertices)


def l1_ball(radius, d):
    vertices = radius * np.vstack([np.eye(d), -np.eye(d)]) if d <= 20 else None
    return Set(sk.L1Ball(radius), lambda U: radius * np.abs(U).max(axis=1), vertices)


def lq_ball(q, radius, d, sense="min"):
    dual = q / (q - 1.0)

    def support(U):
        largest = np.maximum(np.abs(U).max(axis=1, keepdims=True), 1e-300)
        return radius * largest[:, 0] * ((np.abs(U) / largest) ** dual).sum(axis=1) ** (1.0 / dual)

    return Set(sk.LqBall(q, radius, sense=sense), support, norm=(np.zeros(d), radius * np.eye(d)) if q == 2 else None)


def ellipsoid(d, sense="min"):
    Q = np.diag(10.0 ** np.linspace(-1.0, 1.0, d)) + 0.1
    center, inverse = np.linspace(-1.0, 1.0, d), np.linalg.inv(Q)
    norm = np.linalg.cholesky(inverse)  # inverse = norm norm^T
    return Set(
        sk.Ellipsoid(Q, center, 2.0, sense=sense),
        lambda U: U @ center.astype(U.dtype) + 2.0 * np.sqrt(((U @ norm.astype(U.dtype)) ** 2).sum(axis=1)),
        norm=(center, 2.0 * norm),
    )


def smallest(function, low, high, steps=70):
    """Smallest value of a convex function of one variable per row, by golden section."""
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    low, high = low.copy(), high.copy()
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    f_left, f_right = function(left), function(right)
    best = np.minimum(f_left, f_right)
    for _ in range(steps):
        go = f_left < f_right
        low, high = np.where(go, low, left), np.where(go, right, high)
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        f_left, f_right = function(left), function(right)
        best = np.minimum(best, np.minimum(f_left, f_right))
    return best


def entropy(threshold, d, sense="min"):
    """Largest u.w with sum w log w <= r: the smallest t (log sum exp(u / t) + r) over t > 0."""
    r = threshold if threshold is not None else -0.5 * (np.log(d) + np.log(d - 1.0))

    def support(U):
        top = U.max(axis=1)
        V = (U - top[:, None]).astype(float)
        size = np.maximum(np.abs(V).max(axis=1), 1e-300)
        V = V / size[:, None]

        def dual(s):
            t = np.exp(s)
            return t * (logsumexp(V / t[:, None], axis=1) + r)

        rest = smallest(dual, np.full(len(V), -40.0), np.full(len(V), 10.0))
        return top + np.where(np.abs(V).max(axis=1) > 0, rest * size, 0.0)

    return Set(sk.EntropySimplex(threshold, sense=sense), support, accuracy=1e-10)


def barrier(d, sense="min"):
    """Largest u.w with -sum log w <= r, sum w = 1: the smallest m - d exp((sum log(m - u) - r) / d) over m > max u."""
    r = 2.0 * d * np.log(d)

    def support(U):
        top = U.max(axis=1)
        V = (U - top[:, None]).astype(float)
        size = np.maximum(np.abs(V).max(axis=1), 1e-300)
        V = V / size[:, None]

        def dual(s):
            m = np.exp(s)
            return m - d * np.exp((np.log(m[:, None] - V).sum(axis=1) - r) / d)

        rest = smallest(dual, np.full(len(V), -40.0), np.full(len(V), 10.0))
        return top + np.where(np.abs(V).max(axis=1) > 0, rest * size, 0.0)

    return Set(sk.LogBarrierSimplex(sense=sense), support, accuracy=1e-10)


def markowitz(d, sense="min"):
    """Clarabel on max u.w with w >= 0, sum w = 1, |F w| <= sqrt(r)."""
    F = np.linalg.cholesky(np.diag(np.linspace(1.0, 2.0, d)) + 0.2).T
    risk = 1.0
    A = sp.csc_matrix(np.vstack([np.ones((1, d)), -np.eye(d), np.zeros((1, d)), -F]))
    b = np.concatenate([[1.0], np.zeros(d), [np.sqrt(risk)], np.zeros(d)])
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(d), clarabel.SecondOrderConeT(d + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False

    def support(U):
        values = []
        for u in U.astype(float):
            size = float(np.abs(u).max()) or 1.0
            solver = clarabel.DefaultSolver(sp.csc_matrix((d, d)), -u / size, A, b, cones, settings)
            values.append(-solver.solve().obj_val * size)
        return np.array(values)

    return Set(sk.Markowitz(F.T @ F, risk, sense=sense), support, accuracy=1e-6, slow=True)


def cvxpy_simplex(w):
    import cvxpy as cp

    return [w >= 0, cp.sum(w) == 1]


#: HiGHS returns decisions that are optimal up to a tolerance
LP = 1e-9

A_EQ = np.array([[1.0, 1.0, 1.0, 1.0]])
A_UB = np.array([[1.0, 2.0, -1.0, 0.5]])


@cache
def general_vertices():
    return polytope_vertices(A_UB, [1.5], A_EQ, [2.0], np.zeros(4), np.full(4, 1.5))


@cache
def fractional_vertices():
    return polytope_vertices([[3.0, 1.0, 4.0, 1.0]], [5.0], np.zeros((0, 4)), [], np.zeros(4), np.ones(4))


@cache
def triple_vertices():
    return polytope_vertices([[1.0, 2.0, 3.0]], [4.0], np.zeros((0, 3)), [], np.zeros(3), np.full(3, 2.0))


def whole_points():
    points = np.array(list(itertools.product(range(3), repeat=2)), dtype=float)
    return points[points @ [2.0, 1.0] <= 3.0]


DAG = [(0, 1), (0, 2), (1, 2), (0, 2)]
DAG_PATHS = [[1.0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]

#: name -> (dimensions, d -> Set): every region of the package
SMALL: dict[str, tuple[list[int], Callable[[int], Set]]] = {
    "simplex": ([1, 2, 3, 5], simplex),
    "simplex-max": ([2, 4], lambda d: simplex(d, "max")),
    "box": ([1, 2, 4], lambda d: box(0.0, 1.0, d)),
    "box-sides": ([3], lambda d: box([-2.0, 0.0, 1.0], [1.0, 3.0, 1.0], d, "max")),
    "top-2": ([2, 3, 5], lambda d: top(2, d)),
    "top-max": ([4], lambda d: top(3, d, "max")),
    "l1": ([1, 2, 4], lambda d: l1_ball(1.5, d)),
    "ball": ([1, 2, 4], lambda d: lq_ball(2.0, 0.5, d)),
    "lq": ([2, 3], lambda d: lq_ball(1.5, 2.0, d, "max")),
    "ellipsoid": ([1, 3], ellipsoid),
    "ellipsoid-max": ([2], lambda d: ellipsoid(d, "max")),
    "entropy": ([2, 3, 5], lambda d: entropy(None, d)),
    "entropy-loose": ([4], lambda d: entropy(-0.3, d, "max")),
    "barrier": ([2, 4], barrier),
    "polyhedron": (
        [4],
        lambda d: listed(sk.Polyhedron(A_UB, [1.5], A_EQ, [2.0], (0, 1.5)), general_vertices(), accuracy=LP),
    ),
    "polyhedron-max": (
        [3],
        lambda d: listed(sk.Polyhedron([[1, 2, 3]], [4], bounds=(0, 2), sense="max"), triple_vertices(), accuracy=LP),
    ),
    "integer": (
        [2],
        lambda d: listed(
            sk.MixedInteger([[2, 1]], [3], bounds=(0, 2), integrality=1), whole_points(), accuracy=LP, slow=True
        ),
    ),
    "path": ([4], lambda d: listed(sk.ShortestPath(DAG, 0, 2), DAG_PATHS)),
    "path-cyclic": ([6], lambda d: listed(sk.ShortestPath(CYCLIC, "s", "t"), flows(), accuracy=LP, slow=True)),
    "grid": ([7], lambda d: listed(sk.ShortestPath.grid(2, 3), grid_paths(2, 3))),
    "grid-max": ([12], lambda d: listed(sk.ShortestPath.grid(3, 3, sense="max"), grid_paths(3, 3))),
    "knapsack": ([4], lambda d: listed(sk.Knapsack([3, 1, 4, 1], 5), packings([3, 1, 4, 1], 5))),
    "knapsack-min": ([3], lambda d: listed(sk.Knapsack([2, 3, 4], 5, sense="min"), packings([2, 3, 4], 5))),
    "fractional": ([4], lambda d: listed(sk.Knapsack([3, 1, 4, 1], 5, integer=False), fractional_vertices())),
    "assignment": ([4, 9], lambda d: listed(sk.Assignment(), permutations(round(d**0.5)))),
    "assignment-max": ([9], lambda d: listed(sk.Assignment(3, sense="max"), permutations(3))),
    "markowitz": ([2, 3], markowitz),
    "markowitz-max": ([3], lambda d: markowitz(d, "max")),
    "cvxpy": ([3], lambda d: listed(sk.CvxpyRegion(cvxpy_simplex, d), np.eye(d), accuracy=1e-6, slow=True)),
    "oracle": ([1, 2, 4], lambda d: listed(sk.OracleRegion(cheapest), np.eye(d))),
    "oracle-max": ([3], lambda d: listed(sk.OracleRegion(dearest, sense="max"), np.eye(d))),
}

#: those whose oracles are fast enough for thousands of samples
MEDIUM: dict[str, tuple[list[int], Callable[[int], Set]]] = {
    "simplex": ([3, 10], simplex),
    "box": ([2, 6], lambda d: box(0.0, 1.0, d)),
    "top-3": ([8], lambda d: top(3, d)),
    "l1": ([5], lambda d: l1_ball(1.5, d)),
    "grid": ([12], lambda d: listed(sk.ShortestPath.grid(3, 3), grid_paths(3, 3))),
    "entropy": ([5], lambda d: entropy(None, d)),
    "ball": ([6], lambda d: lq_ball(2.0, 1.0, d)),
    "knapsack": ([4], lambda d: listed(sk.Knapsack([3, 1, 4, 1], 5), packings([3, 1, 4, 1], 5))),
    "fractional": ([4], lambda d: listed(sk.Knapsack([3, 1, 4, 1], 5, integer=False), fractional_vertices())),
    "oracle": ([5], lambda d: listed(sk.OracleRegion(cheapest), np.eye(d))),
}

#: for any number of costs
LARGE: dict[str, tuple[list[int], Callable[[int], Set]]] = {
    "simplex": ([100, 1000], simplex),
    "box": ([100, 1000], lambda d: box(0.0, 1.0, d)),
    "top-10": ([100, 1000], lambda d: top(10, d)),
    "l1": ([100, 1000], lambda d: l1_ball(1.5, d)),
    "ball": ([100, 1000], lambda d: lq_ball(2.0, 1.0, d)),
    "entropy": ([100], lambda d: entropy(None, d)),
    "oracle": ([100, 1000], lambda d: Set(sk.OracleRegion(cheapest), lambda U: U.max(axis=1))),
}


# -- regions that vary by sample ---------------------------------------------------------------------------------------


def masks(rng, n, d, least=1):
    """Options that are available in each of n samples; few different sets, so that all solvers can be used."""
    found = [mask for mask in corners(d) if mask.sum() >= least]
    return np.array([found[i] for i in rng.integers(len(found), size=n)], dtype=bool)


def varying(name, n, rng):
    """A region with its own parameters for each of n samples."""
    if name in ROWS:
        region, rows, each = ROWS[name](n, rng)
        most = max(len(v) for v in each)
        vertices = np.array([np.vstack([v, np.repeat(v[:1], most - len(v), axis=0)]) for v in each])
        d = vertices.shape[2]
        return d, Set(region, lambda U: np.einsum("ij,ikj->ik", U, vertices).max(axis=1), vertices, LP, params=rows)
    if name == "box":
        low = rng.normal(size=(n, 3))
        high = low + rng.exponential(size=(n, 3))
        vertices = low[:, None] + (high - low)[:, None] * corners(3)
        rows = {"lower": low, "upper": high}
        return 3, Set(
            sk.Box(), lambda U: np.maximum(U * low, U * high).sum(axis=1), vertices, params=sk.row_params(**rows)
        )
    capacity = rng.integers(1, 10, size=n).astype(float)
    weights = np.array([3.0, 1.0, 4.0, 1.0])
    if name == "knapsack":
        points = corners(4)
        vertices = np.where((points @ weights <= capacity[:, None])[:, :, None], points, 0.0)  # what does not fit is 0
        region, rows = sk.Knapsack(weights, 5), {"capacity": capacity}
    else:
        each = [polytope_vertices([weights], [b], np.zeros((0, 4)), [], np.zeros(4), np.ones(4)) for b in capacity]
        most = max(len(v) for v in each)
        vertices = np.array([np.vstack([v, np.repeat(v[:1], most - len(v), axis=0)]) for v in each])
        if name == "fractional":
            region, rows = sk.Knapsack(weights, 5, integer=False), {"capacity": capacity}
        else:
            region, rows = sk.Polyhedron([weights], [5.0], bounds=(0, 1), sense="max"), {"b_ub": capacity[:, None]}
    return 4, Set(region, lambda U: np.einsum("ij,ikj->ik", U, vertices).max(axis=1), vertices, LP, params=rows)


def simplex_rows(n, rng):
    available = masks(rng, n, 4)
    return sk.Simplex(), {"available": available}, [np.eye(4)[mask] for mask in available]


def top_rows(n, rng):
    available = masks(rng, n, 4)
    k = (rng.random(n) * (available.sum(axis=1) + 1)).astype(int)
    cube = corners(4)
    each = [cube[(cube.sum(axis=1) == m) & ~cube[:, ~mask].any(axis=1)] for m, mask in zip(k, available, strict=True)]
    return sk.TopK(2, sense="max"), {"k": k, "available": available}, each


def box_rows(n, rng):
    available = masks(rng, n, 3, least=0)
    return sk.Box(1, 3), {"available": available}, [(1.0 + 2.0 * corners(3)) * mask for mask in available]


def knapsack_rows(n, rng, integer=True):
    available, capacity = masks(rng, n, 4, least=0), rng.integers(0, 9, size=n).astype(float)
    weights = np.array([3.0, 1.0, 4.0, 2.0])
    if integer:
        each = [packings(weights, room) * mask for room, mask in zip(capacity, available, strict=True)]
    else:
        none = np.zeros((0, 4)), []
        each = [
            polytope_vertices([weights], [room], *none, np.zeros(4), mask.astype(float))
            for room, mask in zip(capacity, available, strict=True)
        ]
    return sk.Knapsack(weights, 5, integer=integer), {"capacity": capacity, "available": available}, each


def bounds_rows(n, rng):
    A, low = np.array([[1.0, 2.0, -1.0]]), rng.integers(-1, 1, size=(n, 3)).astype(float)
    high = low + rng.integers(0, 3, size=(n, 3))
    inside = low + (high - low) * rng.random((n, 1))
    b_eq = (inside @ A.T).round(3)
    # Rounding must not leave the range of A w.
    least, most = (np.where(A > 0, a, b) @ A.T.ravel() for a, b in ((low, high), (high, low)))
    b_eq = np.clip(b_eq, np.minimum(least, most)[:, None], np.maximum(least, most)[:, None])
    each = [polytope_vertices(np.zeros((0, 3)), [], A, b, a, c) for a, b, c in zip(low, b_eq, high, strict=True)]
    region = sk.Polyhedron(A_eq=A, b_eq=[0.0], bounds=(-3, 3))
    return region, {"b_eq": b_eq, "lower": low, "upper": high}, each


def pairs_rows(n, rng):
    """Two workers and three tasks, some of which a worker cannot do."""
    every = np.array([np.eye(3)[list(order)].ravel() for order in itertools.permutations(range(3), 2)])
    found = [mask for mask in corners(6) if (every @ (1.0 - mask) == 0).any()]
    available = np.array([found[i] for i in rng.integers(len(found), size=n)])
    return sk.Assignment(2, 3), {"available": available}, [every[every @ (1.0 - mask) == 0] for mask in available]


def walks(edges, source, target):
    """All simple paths between two nodes."""
    found, d = [], len(edges)

    def extend(node, w, seen):
        if node == target:
            found.append(w)
            return
        for e, (tail, head) in enumerate(edges):
            if tail == node and head not in seen:
                extend(head, w + np.eye(d)[e], seen | {head})

    extend(source, np.zeros(d), {source})
    return np.array(found)


STREETS = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("c", "e")]


def path_rows(n, rng):
    ends = [(u, v) for u, v in itertools.combinations("abcde", 2) if len(walks(STREETS, u, v))]
    chosen = [ends[i] for i in rng.integers(len(ends), size=n)]
    rows = {"source": [u for u, _ in chosen], "target": [v for _, v in chosen]}
    return sk.ShortestPath(STREETS), rows, [walks(STREETS, u, v) for u, v in chosen]


#: by name: functions of the number of samples that return a region, its parameters, and the vertices of each sample
ROWS = {
    "available": simplex_rows,
    "top": top_rows,
    "available-box": box_rows,
    "available-items": knapsack_rows,
    "available-fractions": lambda n, rng: knapsack_rows(n, rng, integer=False),
    "bounds": bounds_rows,
    "pairs": pairs_rows,
    "paths": path_rows,
}

VARYING = ["box", "knapsack", "fractional", "polyhedron", *ROWS]
