"""Costs of 1e4 to 1e12, the price of forbidden options, among costs of 1 to 3: decisions against exact truths."""

import itertools
from fractions import Fraction

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from brute_force import seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from skspo import CvxpyRegion, Knapsack, MixedInteger, Polyhedron, ShortestPath, SolverError
from skspo.regions._oracles.highs_linear import usual_cost

sizes = st.sampled_from([1e4, 1e6, 1e8, 1e9, 1e10, 1e12])
some = settings(max_examples=25, deadline=None)
PAIRS = ((0, 1), (1, 0), (0, -1), (-1, 0))


def exact(c, w):
    return sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(c, w, strict=True))


def with_prices(rng, c, M, k):
    c = c.copy()
    c[rng.choice(c.size, k, replace=False)] = M
    return c


def assert_as_good_as(region, c, best):
    """The excess cost is small relative to the terms of ordinary size."""
    w = region.argmin(c)
    ordinary = sum(abs(a * b) for a, b in zip(c, w, strict=True) if abs(a) < 100)
    assert float(exact(c, w) - best) <= 1e-6 * max(ordinary, 1.0)


def binaries(d, A, b):
    V = np.array(list(itertools.product((0.0, 1.0), repeat=d)))
    return V[(V @ A.T <= b + 1e-12).all(axis=1)]


@some
@given(seeds, sizes, st.integers(1, 4), st.sampled_from(["forbidden", "wanted", "all different"]))
def test_knapsack(seed, M, k, kind):
    rng, d = np.random.default_rng(seed), 9
    weights = rng.uniform(1, 5, (2, d))
    capacity = 0.4 * weights.sum(axis=1)
    values = with_prices(rng, rng.uniform(1, 3, d), -M if kind == "forbidden" else M, k)
    if kind == "all different":
        values *= np.where(values > 100, rng.uniform(1, 3, d), 1.0)
    best = min(exact(-values, v) for v in binaries(d, weights, capacity))
    assert_as_good_as(Knapsack(weights, capacity, sense="min"), -values, best)


@some
@given(seeds, sizes, st.integers(1, 6), st.booleans())
def test_mixed_integer(seed, M, k, continuous):
    """A cover by binaries; what is missing may be bought, in any amount, at a price that may be M as well."""
    rng, d = np.random.default_rng(seed), 8
    A, b = np.column_stack([rng.uniform(0, 4, (2, d)), np.ones(2)]), rng.uniform(5, 9, 2)
    c = with_prices(rng, rng.uniform(1, 3, d + 1), M, k)
    V = binaries(d, np.zeros((1, d)), np.ones(1))
    amount = np.maximum(b - V @ A[:, :d].T, 0.0).max(axis=1)
    if not continuous:
        amount = np.ceil(amount)
    points = np.column_stack([V, amount])
    best = min(exact(c, v) for v in points[np.argsort(points @ c)[:20]])
    bounds, integrality = [(0, 1)] * d + [(0, 20)], [1] * d + [int(not continuous)]
    try:
        assert_as_good_as(MixedInteger(-A, -b, bounds=bounds, integrality=integrality), c, best)
    except SolverError as error:  # there is no proof if amounts that are not integers are needed at such a price
        assert continuous and c[-1] == M
        assert "Costs of very different sizes" in str(error)


@some
@given(seeds, sizes, st.integers(1, 3), st.sampled_from([1.0, None]))
def test_polyhedron(seed, M, k, upper):
    rng, d = np.random.default_rng(seed), 9
    A = rng.uniform(0, 4, (3, d))
    b = 0.3 * A.sum(axis=1)
    A, b = np.concatenate([-A, np.ones((1, d))]), np.append(-b, 20.0)
    c = with_prices(rng, rng.uniform(1, 3, d), M, k)
    others = c < 100
    truth = linprog(c[others], A_ub=A[:, others], b_ub=b, bounds=(0, upper))
    if truth.status == 0:  # feasible without the forbidden options
        assert_as_good_as(Polyhedron(A, b, bounds=(0, upper)), c, Fraction(truth.fun))


@some
@given(seeds, sizes, st.booleans())
def test_polyhedron_that_cannot_avoid_it(seed, M, equal):
    """Assignments in which the first person has only costs of M; the vertices are permutations."""
    rng, k = np.random.default_rng(seed), 4
    A = np.concatenate([np.kron(np.eye(k), np.ones(k)), np.kron(np.ones(k), np.eye(k))])
    c = rng.uniform(1, 3, k * k)
    c[:k] = M * (1 if equal else rng.uniform(1, 3, k))
    points = [np.eye(k)[list(p)].ravel() for p in itertools.permutations(range(k))]
    region = Polyhedron(A_eq=A, b_eq=np.ones(2 * k), bounds=(0, 1))
    assert_as_good_as(region, c, min(exact(c, v) for v in points))


@some
@given(seeds, st.integers(0, 14), st.booleans())
def test_costs_of_every_size(seed, digits, dense):
    """Costs that are spread over many powers of ten are never refused; the truth is found by sorting."""
    rng, d = np.random.default_rng(seed), 9
    c = rng.normal(size=d) * 10.0 ** -rng.uniform(0, digits, d)
    c[rng.random(d) < 0.4] = rng.uniform(1, 3)
    amount, order = rng.integers(1, d - 1) + 0.5, np.argsort(c, kind="stable")
    best = np.zeros(d)
    best[order] = np.clip(amount - np.arange(d), 0.0, 1.0)
    more = rng.uniform(0, 1, (4, d)) if dense else np.ones((1, d))  # constraints that do not bind
    region = Polyhedron(more, more.sum(axis=1), A_eq=np.ones((1, d)), b_eq=[amount], bounds=(0, 1))
    w = region.argmin(c)
    assert float(exact(c, w) - exact(c, best)) <= 1e-6 * usual_cost(c[None], best[None])[0]


@some
@given(seeds, sizes, st.booleans(), st.booleans())
def test_streets_both_ways(seed, M, wall, by_row):
    """Closed streets, also where there is no way around them."""
    rng, k = np.random.default_rng(seed), 4
    nodes = list(itertools.product(range(k), repeat=2))
    edges = [((i, j), (i + a, j + b)) for i, j in nodes for a, b in PAIRS if (i + a, j + b) in nodes]
    c = with_prices(rng, rng.uniform(1, 3, len(edges)), M, 3)
    if wall:
        c[[tail[1] == 1 and head[1] == 2 for tail, head in edges]] = M
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((*edge, Fraction(float(x))) for edge, x in zip(edges, c, strict=True))
    best = nx.dijkstra_path_length(graph, nodes[0], nodes[-1])
    region = ShortestPath(edges, nodes[0], nodes[-1])
    if by_row:
        region = region.with_rows({"source": [nodes[0]]}, 1, len(edges))
        assert float(exact(c, region.argmin(c[None])[0]) - best) <= 1e-6
    else:
        assert_as_good_as(region, c, best)


@some
@given(seeds, sizes, st.booleans())
def test_worst_of_equally_good_decisions(seed, M, forced):
    """Assignments with many ties, one of which is worst for other costs."""
    rng, k = np.random.default_rng(seed), 3
    A = np.concatenate([np.kron(np.eye(k), np.ones(k)), np.kron(np.ones(k), np.eye(k))])
    c, other = rng.integers(1, 3, k * k).astype(float), rng.normal(size=k * k)
    c[np.arange(k) if forced else rng.choice(k * k, 2, replace=False)] = M
    points = np.array([np.eye(k)[list(p)].ravel() for p in itertools.permutations(range(k))])
    costs = points @ c  # integers: exact
    w = Polyhedron(A_eq=A, b_eq=np.ones(2 * k), bounds=(0, 1)).worst_argmin(c[None], other[None])[0]
    np.testing.assert_allclose(w @ other, (points @ other)[costs == costs.min()].max(), atol=1e-6)


def test_worst_of_equally_good_parts():
    """The multipliers are not exact beside the price: all that they exclude would leave no decision."""
    region = Knapsack([3, 3, 3], 4, integer=False, sense="min")
    w = region.worst_argmin(np.array([[-2.0, -1e9, -2.0]]), np.array([[-1.0, 0.0, 3.0]]))
    np.testing.assert_allclose(w, [[0.0, 1.0, 1 / 3]], atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(seeds, sizes, st.integers(1, 3))
def test_convex_region(seed, M, k):
    """Cones, against the region of the other options."""
    rng, d = np.random.default_rng(seed), 6
    c = with_prices(rng, rng.uniform(1, 3, d), M, k)
    others = c < 100
    truth = CvxpyRegion(unit_ball, int(others.sum())).argmin(c[others])
    w = CvxpyRegion(unit_ball, d).argmin(c)
    assert (w[~others] == 0).all() or M < 1e6
    assert c @ w <= c[others] @ truth + 1e-5


def unit_ball(w):
    return [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.8]


@settings(max_examples=10, deadline=None)
@given(seeds, sizes)
def test_convex_region_that_cannot_avoid_it(seed, M):
    """The decision is right for the other options, too, or there is an error."""
    rng, d = np.random.default_rng(seed), 4
    c = np.append(M, rng.uniform(1, 3, d))
    region = CvxpyRegion(lambda w: [w >= 0, w[0] == 0.3, cp.sum(w[1:]) == 1, cp.norm(w[1:]) <= 0.8], d + 1)
    truth = CvxpyRegion(unit_ball, d).argmin(c[1:])
    try:
        w = region.argmin(c)
    except SolverError as error:
        assert M >= 1e6 and "Costs of very different sizes" in str(error)
    else:
        assert c[1:] @ w[1:] <= c[1:] @ truth + 1e-2


@pytest.mark.parametrize(
    ("c", "w", "usual"),
    [
        ([1.0, 2.0, 1e9], [1.0, 1.0, 0.0], 3.0),  # the third option is not used
        ([1.0, 2.0, 1e9], [1.0, 0.0, 1.0], 1.0),  # it is used
        ([1.0, 2.0, 1e9], [0.0, 0.0, 2.0], 6.0),  # alone: what the others would cost
        ([1.0, 2.0, 4.0], [1.0, 0.0, 1.0], 5.0),
        ([1.0, 1e-17, 4.0], [1.0, 1.0, 0.0], 1.0),  # a rounding error
        ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], 0.0),
    ],
)
def test_what_proofs_are_relative_to(c, w, usual):
    np.testing.assert_allclose(usual_cost(np.array([c]), np.array([w])), [usual])
