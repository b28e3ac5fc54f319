"""Regions solved by dynamic programming, matching or HiGHS, against enumeration and scipy."""

import itertools
import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, linprog, milp
from sklearn.base import clone

import skspo as sk
from skspo.regions._oracles.highs import coordinate_bounds, solve_rows, worst_rows
from skspo.regions.base import CAPABILITIES
from skspo.regions.graphs import Assignment, ShortestPath
from skspo.regions.integer import Knapsack, MixedInteger
from skspo.regions.polyhedral import InequalityForm
from skspo.regions.polyhedron import Polyhedron
from skspo.regions.product import Product
from skspo.regions.simplex import Box, Simplex, TopK

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=15, deadline=None)


# -- truths ------------------------------------------------------------------------------------------------------------


def all_paths(edges, source, target):
    """Every path as a row of zeros and ones."""
    paths, stack = [], [(source, [])]
    while stack:
        node, taken = stack.pop()
        if node == target:
            paths.append(np.isin(np.arange(len(edges)), taken).astype(float))
        else:
            stack += [(head, [*taken, e]) for e, (tail, head) in enumerate(edges) if tail == node]
    return np.array(paths)


def all_permutations(n):
    return np.array([np.eye(n)[list(p)].ravel() for p in itertools.permutations(range(n))])


def all_packings(weights, capacity):
    subsets = np.array(list(itertools.product((0.0, 1.0), repeat=np.shape(weights)[-1])))
    return subsets[(subsets @ np.atleast_2d(weights).T <= np.asarray(capacity) + 1e-9).all(axis=1)]


def assert_best(W, C, points):
    """W minimises C over the points and is one of them."""
    assert_allclose((W * C).sum(axis=1), (C @ points.T).min(axis=1), rtol=1e-9, atol=1e-9)
    assert (np.abs(W[:, None, :] - points).max(axis=2).min(axis=1) < 1e-8).all()


def assert_worst(W, C, C_true, points):
    """W is optimal for C, and no optimal point costs more under C_true."""
    costs = C @ points.T
    tied = costs <= costs.min(axis=1, keepdims=True) + 1e-9
    assert_allclose((W * C).sum(axis=1), costs.min(axis=1), atol=1e-8)
    assert_allclose((W * C_true).sum(axis=1), np.where(tied, C_true @ points.T, -np.inf).max(axis=1), atol=1e-7)


def random_dag(rng):
    n = int(rng.integers(2, 7))
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6]
    edges += [(0, n - 1)] + ([edges[0]] if edges else [])  # reachable, and a parallel edge
    edges = [edges[k] for k in rng.permutation(len(edges))]
    labels = rng.permutation(n).tolist()
    return [(labels[a], labels[b]) for a, b in edges], labels[0], labels[n - 1]


def random_polytope(rng, d=4, m=3):
    A_ub, inside = rng.normal(size=(m, d)), rng.random(d)
    A_eq = rng.normal(size=(1, d))
    return {
        "A_ub": A_ub, "b_ub": A_ub @ inside + rng.random(m), "A_eq": A_eq, "b_eq": A_eq @ inside,
        "bounds": [(0, 2)] * (d - 1) + [(-1, 3)],
    }  # fmt: skip


def rows_of(rng, n, d):
    """Costs of all scales and signs, with ties and zeros."""
    C = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 7, size=(n, 1))
    C[::3] = rng.integers(-1, 2, size=C[::3].shape)
    C[0] = 0.0
    return C


REGIONS = {
    "polyhedron": Polyhedron(**random_polytope(np.random.default_rng(0))),
    "box": Polyhedron(bounds=[(0, 1), (-1, 2), (3, 3)]),
    "simplex": Polyhedron(A_eq=np.ones((1, 6)), b_eq=[1.0]),
    "grid": ShortestPath.grid(3, 4),
    "cyclic": ShortestPath(nx.complete_graph(4).to_directed(), 0, 3),
    "assignment": Assignment(3),
    "knapsack": Knapsack([3, 4, 5, 9, 40, 0], 16),
    "knapsack-2": Knapsack([[3, 4, 5, 9], [2, 2, 7, 1]], [12, 8]),
    "knapsack-real": Knapsack([[0.3, 0.4, 0.55], [0.2, 0.7, 0.1]], 0.9),
    "knapsack-fractional": Knapsack([3, 4, 5, 9, 40, 0], 16, integer=False),
    "knapsack-fractional-2": Knapsack([[3, 4, 5, 9], [2, 2, 7, 1]], [12, 8], integer=False),
    "mixed": MixedInteger(A_ub=[[2, 3, 1, 1.5]], b_ub=[6.2], bounds=(0, 2), integrality=[1, 1, 0, 0]),
}


@pytest.fixture(params=REGIONS)
def region(request):
    return clone(REGIONS[request.param])


# -- all of them -------------------------------------------------------------------------------------------------------


def test_rows_do_not_see_each_other(region):
    """Batched equals one by one, whatever the order and the number of threads, bit for bit, ties included."""
    rng = np.random.default_rng(1)
    C = rows_of(rng, 30, region.n_dim)
    W = region.argmin(C)
    assert_array_equal(W, np.array([region.argmin(c) for c in C]))
    order = rng.permutation(len(C))
    assert_array_equal(W[order], region.argmin(C[order]))
    if "n_jobs" in region.get_params():
        assert_array_equal(W, region.set_params(n_jobs=2).argmin(C))
    assert region.argmin(C[:0]).shape == (0, region.n_dim)


def test_scale_of_costs_does_not_matter(region):
    C = np.random.default_rng(2).normal(size=(20, region.n_dim))
    for scale in (2.0**-20, 2.0**20):
        assert_array_equal(region.argmin(C), region.argmin(scale * C))


def test_sense_flips_the_sign(region):
    C = np.random.default_rng(3).normal(size=(20, region.n_dim))
    low, high = clone(region).set_params(sense="min"), clone(region).set_params(sense="max")
    assert_array_equal(low.argmin(C), high.argmin(-C))


def test_clone_and_pickle(region):
    C = np.random.default_rng(4).normal(size=(5, region.n_dim))
    W = region.argmin(C)
    assert_array_equal(W, clone(region).argmin(C))
    assert_array_equal(W, pickle.loads(pickle.dumps(region)).argmin(C))
    assert type(region).__name__ in repr(region)


def test_diameter_covers_what_is_seen(region):
    W = region.argmin(rows_of(np.random.default_rng(5), 60, region.n_dim))
    seen = np.linalg.norm(W[:, None] - W, axis=2).max()
    diameter = region.diameter()
    assert seen <= diameter + 1e-9
    assert diameter.kind != "exact" or abs(seen - diameter) < 1e-9


def test_decisions_are_feasible_and_optimal(region):
    if not hasattr(region, "inequality_form"):
        pytest.skip("not a polyhedron")
    C = rows_of(np.random.default_rng(6), 15, region.n_dim)
    W, form = region.solve_min(C), region.inequality_form()
    assert form.violation(W).max() < 1e-8
    for w, c in zip(W, C, strict=True):
        scale = max(np.abs(c).max(), 1e-300)
        best = _linprog(form, c / scale)
        assert c @ w / scale <= best + 1e-7 * (1 + abs(best))


def _linprog(form, c):
    res = linprog(
        c, form.A_ub if form.b_ub.size else None, form.b_ub if form.b_ub.size else None,
        form.A_eq if form.b_eq.size else None, form.b_eq if form.b_eq.size else None,
        np.column_stack([form.lower, form.upper]),
    )  # fmt: skip
    assert res.status == 0
    return res.fun


def test_worst_argmin_two_stage_linprog(region):
    """The optimal face, written as one more constraint c.w <= optimum, and the true cost maximised on it."""
    if not hasattr(region, "worst_argmin"):
        pytest.skip("no worst_argmin")
    rng = np.random.default_rng(7)
    C = rng.integers(-1, 2, size=(12, region.n_dim)).astype(float)
    C[0] = 0.0
    C_true = rng.normal(size=C.shape)
    W, form = region.worst_argmin(C, C_true), region.inequality_form()
    assert form.violation(W).max() < 1e-8
    for w, c, c_true in zip(W, C, C_true, strict=True):
        best = _linprog(form, c)
        assert c @ w == pytest.approx(best, abs=1e-8)
        face = InequalityForm.build(
            c.size, sp.vstack([form.A_ub, sp.csr_array(c[None])]), np.append(form.b_ub, best + 1e-9),
            form.A_eq, form.b_eq, form.lower, form.upper,
        )  # fmt: skip
        assert c_true @ w == pytest.approx(-_linprog(face, -c_true), abs=1e-6)


# -- ShortestPath ------------------------------------------------------------------------------------------------------


@quick
@given(seeds)
def test_dag_against_all_paths(seed):
    rng = np.random.default_rng(seed)
    edges, source, target = random_dag(rng)
    paths = all_paths(edges, source, target)
    region = ShortestPath(edges, source, target)
    C = rng.normal(size=(20, len(edges)))
    assert_best(region.argmin(C), C, paths)
    C, C_true = (rng.integers(-1, 2, size=C.shape).astype(float) for _ in range(2))
    assert_best(region.argmin(C), C, paths)
    W = region.worst_argmin(C, C_true)
    assert_worst(W, C, C_true, paths)
    # Sums that are equal on paper, but not in floating point.
    assert_worst(region.worst_argmin(0.1 * C, C_true), 0.1 * C, C_true, paths)
    assert region.inequality_form().violation(W).max() < 1e-12
    far = np.linalg.norm(paths[:, None] - paths, axis=2).max()
    assert far <= region.diameter() + 1e-12


def test_more_parallel_edges_than_a_byte_can_count():
    region = ShortestPath([("a", "b")] * 300 + [("b", "c")], "a", "c")
    C = np.random.default_rng(0).uniform(size=(50, 301))
    C[0, :299] = 2.0  # the last of the parallel ones
    W = region.argmin(C)
    np.testing.assert_array_equal(W[:, :300].argmax(axis=1), C[:, :300].argmin(axis=1))
    np.testing.assert_array_equal(W.sum(axis=1), 2.0)


def test_dag_ties_go_to_the_lowest_edge():
    region = ShortestPath([(0, 1), (0, 1), (1, 2), (0, 2)])
    assert_array_equal(region.argmin(np.zeros(4)), [1, 0, 1, 0])


def test_grid_convention():
    region = ShortestPath.grid(2, 3)
    assert_array_equal(region.edges, [(0, 1), (1, 2), (0, 3), (1, 4), (2, 5), (3, 4), (4, 5)])
    assert (region.source, region.target) == (0, 5)
    assert_array_equal(region.argmin([1.0, 1, 5, 0, 1, 0, 0]), [1, 0, 0, 1, 0, 0, 1])
    assert ShortestPath.grid(5, 5).n_dim == 40
    assert ShortestPath.grid(1, 2).argmin([3.0]) == [1.0]
    assert ShortestPath.grid(1, 4).diameter() == 0.0
    assert_best(
        ShortestPath.grid(5, 5).argmin(C := np.random.default_rng(0).normal(size=(2000, 40))),
        C,
        all_paths(ShortestPath.grid(5, 5).edges.tolist(), 0, 24),
    )


def test_edges_nobody_can_use_are_zero():
    """A dead end, a node that cannot be reached, and a cycle off the path leave the graph acyclic."""
    edges = [("s", "t"), ("s", "dead"), ("far", "t"), ("x", "y"), ("y", "x"), ("s", "m"), ("m", "t")]
    region = ShortestPath(edges, "s", "t")
    assert region._data(7).sweep is not None
    C = -np.ones((1, 7))
    assert_array_equal(region.argmin(C), [[0, 0, 0, 0, 0, 1, 1]])
    assert_array_equal(solve_rows(region.inequality_form(), C), [[0, 0, 0, 0, 0, 1, 1]])


def test_networkx_graphs():
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c")])
    expected = [[0, 1, 0], [1, 0, 1]]  # networkx lists (a, b), (a, c), (b, c)
    costs = [[1.0, 1.0, 1.0], [1.0, 3.0, 1.0]]
    assert_array_equal(ShortestPath(graph, "a", "c").argmin(costs), expected)
    assert_array_equal(ShortestPath(nx.MultiDiGraph(graph)).argmin(costs), expected)
    with pytest.raises(ValueError, match="to_directed"):
        ShortestPath(nx.Graph(graph), "a", "c").argmin(costs)


def test_cyclic_graph_is_the_flow_polytope():
    rng = np.random.default_rng(8)
    graph = nx.gnp_random_graph(7, 0.5, seed=1, directed=True)
    region = ShortestPath(graph, 0, 6)
    assert region._data(region.n_dim).sweep is None
    edges = list(graph.edges())
    # With positive costs the flow is a path.
    C = rng.random((20, region.n_dim))
    W = region.argmin(C)
    for w, c in zip(W, C, strict=True):
        weighted = nx.DiGraph()
        weighted.add_weighted_edges_from([(a, b, x) for (a, b), x in zip(edges, c, strict=True)])
        assert c @ w == pytest.approx(nx.shortest_path_length(weighted, 0, 6, weight="weight"))
    C = rng.normal(size=(20, region.n_dim))
    W = region.argmin(C)
    assert np.abs(W - np.rint(W)).max() < 1e-9
    incidence = nx.incidence_matrix(graph, edgelist=edges, oriented=True).toarray()
    supply = np.zeros(7)
    supply[0], supply[6] = -1, 1
    for w, c in zip(W, C, strict=True):
        res = linprog(c, A_eq=incidence, b_eq=supply, bounds=(0, region.inequality_form().upper.max()))
        assert c @ w == pytest.approx(res.fun, abs=1e-9)


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (([(0, 1)], 0, 2), "target 2 is unknown"),
        (([(0, 1)], "x", 1), "source 'x' is unknown"),
        (([(0, 1), (2, 1), (0, 3)], 0, 2), "unreachable"),
        (([(0, 1), (1, 0)], 0, 0), "different"),
        (([(0, 1), (1, 1)], 0, 1), "itself"),
        (([(0, 1), (2, 1)],), "source must be given"),
        (([(0, 1), (0, 2)],), "target must be given"),
        (([(0, 1, 2), (0, 2, 3)],), "pair"),
        (([(0, [1]), (0, 2)],), "pair"),
    ],
)
def test_graph_errors(args, match):
    region = ShortestPath(*args)
    with pytest.raises(ValueError, match=match):
        region.argmin(np.zeros(region.n_dim))


def test_empty_graphs():
    with pytest.raises(ValueError, match="at least one"):
        ShortestPath([], 0, 1).diameter()
    with pytest.raises(ValueError, match="two nodes"):
        ShortestPath.grid(1, 1)


# -- Assignment --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_assignment_against_all_permutations(n):
    rng = np.random.default_rng(n)
    C = rng.normal(size=(50, n * n))
    assert_best(Assignment().argmin(C), C, all_permutations(n))
    C, C_true = (rng.integers(-1, 2, size=C.shape).astype(float) for _ in range(2))
    assert_best(Assignment(n).argmin(C), C, all_permutations(n))
    assert_worst(Assignment(n).worst_argmin(C, C_true), C, C_true, all_permutations(n))
    points = all_permutations(n)
    assert Assignment(n).diameter() == pytest.approx(np.linalg.norm(points[:, None] - points, axis=2).max())
    assert Assignment().inequality_form(n * n).violation(points).max() == 0.0


def test_assignment_errors():
    with pytest.raises(ValueError, match="square"):
        Assignment().argmin(np.zeros(5))
    with pytest.raises(ValueError, match="9 decision variables"):
        Assignment(3).argmin(np.zeros(4))


# -- Knapsack ----------------------------------------------------------------------------------------------------------


@quick
@given(seeds)
def test_whole_knapsack_against_all_subsets(seed):
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    weights = rng.integers(0, 9, size=(m, d)) * int(rng.integers(1, 4))
    capacity = rng.integers(0, 20, size=m) + rng.choice([0.0, 0.5])
    if m == 1 and rng.random() < 0.5:
        weights, capacity = weights[0], capacity[0]
    region = Knapsack(weights, capacity)
    points = all_packings(weights, capacity)
    for V in (rng.normal(size=(12, d)), rng.integers(-2, 3, size=(12, d)).astype(float)):
        W = region.argmin(V)
        assert_best(W, -V, points)
        assert not W[V <= 0].any()
        assert region._data(d).method in ("all", "table")
    assert np.linalg.norm(points[:, None] - points, axis=2).max() <= region.diameter() + 1e-9


@pytest.mark.parametrize("weights", [[0.7, 1.3, 2.2, 0.4, 9.0], [[0.7, 1.3, 2.2, 0.4, 0.1], [1.0, 0.2, 0.3, 1.1, 9.0]]])
def test_real_knapsack_against_all_subsets(weights):
    region = Knapsack(weights, 2.9)
    V = np.random.default_rng(9).normal(size=(15, 5))
    V[0], V[1] = 0.0, 1.0
    assert region._data(5).method == "search"
    assert_best(region.argmin(V), -V, all_packings(weights, 2.9))


def test_huge_capacity_goes_to_branch_and_bound():
    weights = np.array([10**7 + 3, 2 * 10**7 + 1, 10**7, 7])
    region = Knapsack(weights, 3 * 10**7 + 4)
    assert region._data(4).method == "search"
    V = np.random.default_rng(10).random((10, 4))
    assert_best(region.argmin(V), -V, all_packings(weights, 3 * 10**7 + 4))


def test_common_factor_makes_the_table_small():
    V = np.random.default_rng(11).random((20, 3))
    assert_array_equal(Knapsack(np.array([3, 4, 5]) * 10**8, 8.7e8).argmin(V), Knapsack([3, 4, 5], 8).argmin(V))


def test_capacity_that_misses_an_integer_by_rounding():
    assert_array_equal(Knapsack([1, 1, 1, 1], np.nextafter(3.0, 0)).argmin([1.0, 2, 3, 4]), [0, 1, 1, 1])


def test_ties_go_to_the_lowest_item():
    assert_array_equal(Knapsack([1, 1, 1], 2).argmin(np.ones(3)), [1, 1, 0])
    assert_array_equal(Knapsack([1, 1, 1], 1.5, integer=False).argmin(np.ones(3)), [1, 0.5, 0])


@quick
@given(seeds)
def test_fractional_knapsack_against_linprog(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    weights = np.where(rng.random(d) < 0.2, 0.0, rng.random(d) * 3)
    region = Knapsack(weights, capacity := rng.random() * 4, integer=False)
    for V in (rng.normal(size=(6, d)), rng.integers(-1, 2, size=(6, d)).astype(float)):
        W = region.argmin(V)
        assert region.inequality_form().violation(W).max() < 1e-12
        for w, v in zip(W, V, strict=True):
            assert v @ w == pytest.approx(-linprog(-v, weights[None], [capacity], bounds=(0, 1)).fun, abs=1e-9)


def test_only_the_fractional_knapsack_is_a_polyhedron():
    polyhedral = set(CAPABILITIES) - {"strong_convexity", "level", "derivative", "smoothed", "quadratic_form", "blocks"}
    whole, fractional = Knapsack([3, 4], 5), Knapsack([3, 4], 5, integer=False)
    assert {name for name in CAPABILITIES if hasattr(whole, name)} == {"diameter"}
    assert {name for name in CAPABILITIES if hasattr(fractional, name)} == polyhedral
    assert not hasattr(whole, "inequality_form")
    assert fractional.equalities().shape == (0, 2)
    assert fractional.width() > 0
    assert fractional.inequality_form().violation(fractional.repair(np.array([[1.1, 1.0]]))).max() < 1e-12
    assert Knapsack([3, 4], 0, integer=False).width() == 0.0


@pytest.mark.parametrize(
    ("weights", "capacity", "match"),
    [
        ([1, -1], 2, "nonnegative"),
        ([1, np.nan], 2, "finite"),
        ([1, 1], np.inf, "finite"),
        ([1, 1], -1, "empty"),
        ([1, 1], [1, 2], "capacity must"),
        ([[1, 1], [1, 2]], [1, 2, 3], "capacity must"),
        ([[[1, 1]]], 1, "weights must"),
    ],
)
def test_knapsack_errors(weights, capacity, match):
    with pytest.raises(ValueError, match=match):
        Knapsack(weights, capacity).argmin(np.ones(2))


# -- Polyhedron and MixedInteger ---------------------------------------------------------------------------------------


@quick
@given(seeds)
def test_polyhedron_against_linprog(seed):
    rng = np.random.default_rng(seed)
    problem = random_polytope(rng)
    sparse = problem | {"A_ub": sp.coo_array(problem["A_ub"]), "A_eq": sp.csc_matrix(problem["A_eq"])}
    C = rng.normal(size=(5, 4)) * 10.0 ** rng.integers(-6, 7, size=(5, 1))
    region = Polyhedron(**problem)
    W = region.argmin(C)
    assert_array_equal(W, Polyhedron(**sparse).argmin(C))
    assert region.inequality_form().violation(W).max() < 1e-8
    for w, c in zip(W, C, strict=True):
        res = linprog(c / np.abs(c).max(), **problem)
        assert c @ w / np.abs(c).max() == pytest.approx(res.fun, rel=1e-7, abs=1e-7)


def test_bounding_box_is_tight():
    region = Polyhedron(A_ub=[[1, 1, 1]], b_ub=[1], bounds=[(0, None), (0, 5), (-1, None)])
    low, high = region.bounding_box()
    assert_allclose(low, [0, 0, -1])
    assert_allclose(high, [2, 2, 1])
    assert_allclose(coordinate_bounds(region.inequality_form())[1], [2, 5, 1])


def test_rows_of_constraints_of_any_scale():
    A, b = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([2.0, 3.0])
    C = -np.random.default_rng(12).random((20, 2))
    expected = Polyhedron(A, b).argmin(C)
    for scale in ([1e-8, 1e8], [1e8, 1e-8]):
        scale = np.array(scale)
        assert_allclose(Polyhedron(A * scale[:, None], b * scale).argmin(C), expected, atol=1e-9)


def test_worst_rows_against_vertices():
    rng = np.random.default_rng(13)
    points = all_permutations(3)
    C, C_true = (rng.integers(-1, 2, size=(40, 9)).astype(float) for _ in range(2))
    form = Assignment(3).inequality_form()
    W = worst_rows(form, 1e5 * C, 1e-5 * C_true)
    assert_worst(W, C, C_true, points)
    assert_array_equal(W, worst_rows(form, 1e5 * C, 1e-5 * C_true, n_jobs=2))


@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"A_ub": [[1, 1]], "b_ub": [-1]}, "infeasible"),
        ({"A_eq": [[1, 1], [1, 1]], "b_eq": [1, 2]}, "infeasible"),
        ({"bounds": [(0, 1), (3, 2)]}, "empty .infeasible.*decision 1"),
        ({"A_ub": [[1, 0]], "b_ub": [1]}, "unbounded: decision 1 has no limit above"),
        ({"A_ub": [[1, 0]], "b_ub": [1], "bounds": (None, 1)}, "unbounded: decision 0 has no limit below"),
        ({"A_ub": [[1, 1]]}, "without b_ub"),
        ({"b_eq": [1]}, "without A_eq"),
        ({"A_ub": [[1, 1]], "b_ub": [1, 2]}, "b_ub must have one entry"),
        ({"A_ub": [[1, 1]], "b_ub": [1], "A_eq": [[1, 1, 1]], "b_eq": [1]}, "A_eq must have one column"),
        ({"A_ub": [[1, np.inf]], "b_ub": [1]}, "finite"),
        ({"A_ub": [[1, 1]], "b_ub": [1], "bounds": [(0, 1)] * 3}, "list of 2 pairs"),
        ({"bounds": [(0, np.nan), (0, 1)]}, "NaN"),
        ({"A_ub": [[1, 1, 1]], "b_ub": [1]}, "3 decision variables"),
    ],
)
def test_constraint_errors(cls, params, match):
    with pytest.raises(ValueError, match=match):
        cls(**params).argmin(np.ones(2))


def test_solver_errors():
    form = InequalityForm.build(2)
    with pytest.raises(ValueError, match="row 1 is unbounded"):
        solve_rows(form, np.array([[1.0, 1.0], [-1.0, 0.0]]))
    with pytest.raises(ValueError, match="unbounded"):
        solve_rows(form, np.array([[-1.0, 0.0]]), integrality=np.array([True, False]))


@quick
@given(seeds)
def test_mixed_integer_against_milp(seed):
    rng = np.random.default_rng(seed)
    d, m = 5, 2
    A = rng.normal(size=(m, d))
    inside = rng.integers(0, 3, size=d)
    b, integrality = A @ inside + rng.random(m), rng.integers(0, 2, size=d)
    region = MixedInteger(A, b, bounds=(-1, 3.5), integrality=integrality)
    C = rng.normal(size=(3, d))
    W = region.argmin(C)
    assert_array_equal(W[:, integrality == 1], np.rint(W[:, integrality == 1]))
    assert (W @ A.T <= b + 1e-8).all()
    assert ((W >= -1) & (W <= 3.5)).all()
    for w, c in zip(W, C, strict=True):
        res = milp(
            c, integrality=integrality, bounds=Bounds(-1, 3.5), constraints=LinearConstraint(A, ub=b),
            options={"mip_rel_gap": 0},
        )  # fmt: skip
        assert c @ w <= res.fun + 1e-7


def test_mixed_integer_errors():
    A, b = [[2, 2]], [1]
    with pytest.raises(ValueError, match="semi-continuous"):
        MixedInteger(A, b, bounds=(0, 1), integrality=[1, 2]).argmin([1.0, 1.0])
    with pytest.raises(ValueError, match="shape"):
        MixedInteger(A, b, bounds=(0, 1), integrality=[1, 1, 1]).argmin([1.0, 1.0])
    with pytest.raises(ValueError, match="infeasible"):
        MixedInteger(A_eq=A, b_eq=b, bounds=(0, 1), integrality=1).argmin([1.0, 1.0])
    with pytest.raises(ValueError, match="time_limit"):
        MixedInteger(A, b, bounds=(0, 1), time_limit=0).argmin([1.0, 1.0])


def test_time_limit_is_an_error_and_names_the_row():
    rng = np.random.default_rng(14)
    A = rng.random((5, 60))
    form = InequalityForm.build(60, A, A.sum(axis=1) / 3, upper=1.0)
    with pytest.raises(RuntimeError, match=r"row 0.*[Tt]ime"):
        solve_rows(form, -rng.random((2, 60)), integrality=np.ones(60), time_limit=1e-3)


def test_mixed_integer_is_integer_by_default():
    rng = np.random.default_rng(15)
    A, C = rng.uniform(1.0, 2.0, size=(2, 4)), rng.normal(size=(30, 4)) - 1.0
    problem = {"A_ub": A, "b_ub": [5.3, 4.7], "bounds": (0, 2.5)}
    W = MixedInteger(**problem).argmin(C)
    points = np.array(list(itertools.product(range(3), repeat=4)), dtype=float)
    points = points[(points @ A.T <= problem["b_ub"]).all(axis=1)]
    assert_allclose((C * W).sum(axis=1), (C @ points.T).min(axis=1))
    assert_array_equal(W, np.rint(W))
    for integrality in (1, [1, 1, 1, 1], True, None):
        assert_array_equal(MixedInteger(**problem, integrality=integrality).argmin(C), W)
    relaxed = MixedInteger(**problem, integrality=0).argmin(C)
    assert_array_equal(relaxed, Polyhedron(**problem).argmin(C))
    assert (relaxed != np.rint(relaxed)).any()


# -- the objects of scipy.optimize.milp --------------------------------------------------------------------------------


def ranges(rng):
    """Constraints of all kinds around a point of integers: one side, both sides, equal, and none."""
    A, inside = rng.integers(-3, 4, size=(4, 5)).astype(float), rng.integers(0, 3, size=5)
    at = A @ inside
    lb, ub = at - rng.integers(0, 3, size=4), at + rng.integers(0, 3, size=4)
    lb[0], ub[1] = -np.inf, np.inf
    lb[2] = ub[2] = at[2]
    lb[3], ub[3] = (-np.inf, np.inf) if rng.random() < 0.3 else (lb[3], ub[3])
    return A, lb, ub


@pytest.mark.slow
@quick
@given(seeds)
@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
def test_linear_constraints_against_milp(cls, seed):
    rng = np.random.default_rng(seed)
    A, lb, ub = ranges(rng)
    bounds = Bounds([-1, 0, -np.inf, 0, 0.5], [3, 2.5, 4, 3, 3.5])
    first = [LinearConstraint(A[:2], lb[:2], ub[:2]), LinearConstraint(sp.csr_array(A[2:]), lb[2:], ub[2:])]
    box = LinearConstraint(np.eye(5), -3.0, 4.0)  # bounds what Bounds do not
    C = rng.normal(size=(4, 5))
    kinds = 0 if cls is Polyhedron else 1
    region = cls(constraints=[*first, box], bounds=bounds)
    assert region.n_dim == 5
    try:
        W = region.argmin(C)
    except ValueError as error:
        assert "empty" in str(error)
        W = None
    for i, c in enumerate(C):
        res = milp(c, integrality=kinds, bounds=bounds, constraints=[*first, box], options={"mip_rel_gap": 0})
        assert (res.x is None) == (W is None)
        if W is not None:
            assert c @ W[i] == pytest.approx(res.fun, rel=1e-7, abs=1e-7)
    if W is None:
        return
    # Other ways to say the same, the first of which is that of scipy's documentation.
    for same in (
        (*first, box),
        [*first, (np.eye(5), -3.0, 4.0)],
        [(A, lb, ub), box],
        [LinearConstraint(A, lb, ub), box],
    ):
        again = cls(constraints=same, bounds=bounds).argmin(C)
        assert_allclose((C * again).sum(axis=1), (C * W).sum(axis=1), rtol=1e-7, atol=1e-7)
    mixed = cls(A_ub=np.eye(5), b_ub=np.full(5, 4.0), constraints=[*first, (np.eye(5), -3.0)], bounds=bounds).argmin(C)
    assert_allclose((C * mixed).sum(axis=1), (C * W).sum(axis=1), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
def test_one_linear_constraint(cls):
    C = [[-1.0, -2.0, -4.0]]
    for one in (LinearConstraint([1, 1, 1], 0, 2), LinearConstraint([[1, 1, 1]], ub=[2]), ([1, 1, 1], 0, 2)):
        region = cls(constraints=one, bounds=Bounds(0, 1))
        assert_array_equal(region.argmin(C), [[0.0, 1.0, 1.0]])
        assert_array_equal(clone(region).argmin(C), [[0.0, 1.0, 1.0]])
        assert_array_equal(pickle.loads(pickle.dumps(region)).argmin(C), [[0.0, 1.0, 1.0]])
    # No Bounds are those of scipy: nonnegative decisions.
    assert_array_equal(cls(constraints=one).argmin([[1.0, -2.0, 1.0]]), [[0.0, 2.0, 0.0]])
    with pytest.raises(ValueError, match="unbounded: decision 0 has no limit below"):
        cls(constraints=one, bounds=Bounds()).argmin(C)


@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
def test_sides_vary_beside_linear_constraints(cls):
    """Those that were given as b_ub and b_eq vary; those of constraints stay."""
    rng = np.random.default_rng(0)
    A, A_eq, C = [[1, 2, 1, 0]], [[1, 1, 1, 0]], rng.normal(size=(12, 4))
    more = [LinearConstraint([[0, 1, 0, 0], [1, 0, -1, 0]], [0, -1], [1, 1]), LinearConstraint([0, 0, 0, 1], 1, 1)]
    total = np.repeat([2, 3, 4], 4)
    params = {"b_ub": total + np.tile([0, 1], 6), "b_eq": total}
    region = cls(A, [4.0], A_eq, [3.0], constraints=more, bounds=(0, 3))
    assert region.row_shapes(4) == {"b_ub": (1,), "b_eq": (1,)}
    W = region.with_rows(params, 12, 4).argmin(C)
    for i in range(12):
        one = cls(A, [params["b_ub"][i]], A_eq, [params["b_eq"][i]], constraints=more, bounds=(0, 3))
        assert C[i] @ W[i] == pytest.approx(C[i] @ one.argmin(C[i]), abs=1e-8)
    assert (W[:, 3] == 1.0).all() and len(np.unique(W, axis=0)) > 4
    assert cls(constraints=more, bounds=(0, 3)).row_shapes(4) == {}


@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        (
            {"constraints": 3},
            TypeError,
            "constraints must be a scipy.optimize.LinearConstraint, a tuple .A, lb, ub., or",
        ),
        ({"constraints": [[1, 1]]}, TypeError, r"or a list of those; got \[1, 1\].*CvxpyRegion"),
        ({"constraints": [([1, 1], 0, 1, 2, 3)]}, TypeError, "constraints must be.*positional arguments"),
        (
            {"constraints": NonlinearConstraint(np.sum, 0, 1)},
            TypeError,
            "CvxpyRegion takes constraints that are not lin",
        ),
        ({"constraints": LinearConstraint([1, 1, 1], 0, 1)}, ValueError, "3 decision variables"),
        (
            {"A_ub": [[1, 1]], "b_ub": [1], "constraints": ([1, 1, 1], 0, 1)},
            ValueError,
            r"A of constraints.*2 decisions",
        ),
        (
            {"constraints": (np.eye(2), [0, 0, 0], 1)},
            TypeError,
            "constraints must be a scipy.optimize.LinearConstraint",
        ),
        ({"constraints": [(np.eye(2), [0, 0, 0], 1)]}, TypeError, "`lb`, `ub`.* must be broadcastable"),
        ({"constraints": LinearConstraint([np.nan, 1], 0, 1)}, ValueError, "A of constraints must be finite"),
        ({"constraints": LinearConstraint([1, 1], np.nan, 1)}, ValueError, "must not be NaN"),
        ({"constraints": LinearConstraint(np.eye(2), [0, 2], 1)}, ValueError, r"empty.*2.0 <= A\[1\] w <= 1.0"),
        ({"constraints": LinearConstraint([1, 1], np.inf, np.inf)}, ValueError, r"empty.*inf <= A\[0\] w <= inf"),
        ({"constraints": LinearConstraint([1, 1], 0)}, ValueError, "unbounded: decision 0 has no limit above"),
        ({"constraints": LinearConstraint([1, 1], 3, 4), "bounds": (0, 1)}, ValueError, "empty.*infeasible"),
        (
            {"A_ub": LinearConstraint([1, 1], 0, 1)},
            TypeError,
            "A_ub must be a matrix. Pass a LinearConstraint as constr",
        ),
        (
            {"A_eq": [LinearConstraint([1, 1], 0, 1)]},
            TypeError,
            "A_eq must be a matrix. Pass a LinearConstraint as const",
        ),
        ({"bounds": Bounds([0, 0, 0], 1), "constraints": ([1, 1], 0, 1)}, ValueError, "each of the 2 decisions"),
        ({"bounds": Bounds(np.inf, np.inf), "constraints": ([1, 1], 0, 1)}, ValueError, "empty.*of decision 0"),
    ],
)
def test_errors_of_linear_constraints(cls, params, error, match):
    with pytest.raises(error, match=match):
        cls(**params).argmin(np.ones(2))


def test_number_of_decisions():
    assert MixedInteger(**random_polytope(np.random.default_rng(15)), integrality=0).n_dim == 4
    assert MixedInteger(bounds=(0, 1), integrality=[1, 0, 1]).n_dim == 3
    assert Polyhedron(bounds=(0, 1)).n_dim is None
    assert Polyhedron(bounds=Bounds([0, 0], [1, 1])).n_dim == 2


def test_ties_of_box_and_top_k():
    assert_array_equal(sk.Box(-1.0, 2.0).argmin(np.zeros((1, 3))), [[-1.0, -1.0, -1.0]])
    # So many that a sort may change the order of equal numbers.
    C = np.tile([2.0, 1.0], 300)[None]
    assert_array_equal(np.flatnonzero(sk.TopK(5).argmin(C)[0]), [1, 3, 5, 7, 9])


def test_a_bound_on_the_diameter_is_called_one():
    region = sk.Polyhedron(A_ub=np.ones((1, 30)), b_ub=[10.0], bounds=(0, 1))
    assert region.diameter().kind == "upper bound"
    assert float(region.diameter()) == pytest.approx(np.sqrt(30.0))


def test_vertices_follow_the_parameters():
    region = sk.Polyhedron(A_ub=[[1.0, 1.0]], b_ub=[1.0])
    assert sorted(map(tuple, region.vertices().round(9) + 0.0)) == [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0)]
    region.set_params(b_ub=[3.0])
    assert sorted(map(tuple, region.vertices().round(9) + 0.0)) == [(0.0, 0.0), (0.0, 3.0), (3.0, 0.0)]


def test_paths_that_tie_up_to_rounding():
    region = sk.ShortestPath([(0, 1), (1, 2), (0, 2)], 0, 2)
    assert 0.1 + 0.2 != 0.3
    for truth, path in (([5.0, 5.0, 1.0], [1.0, 1.0, 0.0]), ([1.0, 1.0, 5.0], [0.0, 0.0, 1.0])):
        assert_array_equal(region.worst_argmin(np.array([[0.1, 0.2, 0.3]]), np.array([truth])), [path])


def test_items_without_weight_take_no_room():
    region = sk.Knapsack([0.0, 2.0, 0.0], 0.5, integer=False)
    assert_array_equal(region.argmin([[1.0, 1.0, 2.0]]), [[1.0, 0.25, 1.0]])


# -- products ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("regions", "sizes", "params", "message"),
    [
        ([], None, {}, "at least one region, got"),
        (["simplex"], [2], {}, "at least one region, got"),
        ([Simplex(), Box()], [2], {}, "2 regions, but sizes has 1 entries"),
        ([Simplex(), Box()], [2, 0], {}, r"positive integers, got 0 for regions\[1\]"),
        ([Simplex(), Box()], [2, 1.5], {}, r"positive integers, got 1.5 for regions\[1\]"),
        ([Simplex(), Box(sense="max")], [2, 1], {}, r"regions\[1\], Box, has sense='max', but the product sense='min'"),
        ([Simplex(), TopK(5)], [2, 3], {}, "TopK: k must be an integer between 0 and the number of costs 3"),
    ],
)
def test_products_that_are_none(regions, sizes, params, message):
    with pytest.raises(ValueError, match=message):
        Product(regions, sizes, **params)._prepare(3)


def test_products():
    region = Product([Simplex(), Product([Box(0, [1.0, 2.0]), TopK(1)], [2, 2])], [3, 4])
    assert region.n_dim == 7 and Product([Simplex()]).n_dim is None
    with pytest.raises(ValueError, match="exists in every dimension: say which one"):
        Product([Simplex()]).resolve_dim()
    with pytest.raises(ValueError, match="Simplex, exists in every dimension: say in sizes"):
        Product([Simplex()]).argmin([[1.0, 2.0]])
    assert [list(columns) for columns, _ in region.blocks()] == [[0, 1, 2], [3, 4], [5, 6]]
    assert region.equalities().shape == (2, 7)
    np.testing.assert_allclose(np.abs(region.equalities() @ region.argmin(np.eye(7)).T), [[3**-0.5] * 7, [2**-0.5] * 7])
    assert region.width() == 0.0 and region.diameter() == pytest.approx(np.sqrt(2 + 5 + 2))
    assert Product([Box(0, [1.0, 2.0]), Box(0, 0.5)], [2, 1]).width() == 0.5
    whole = Product([Knapsack([1, 2], 2), Box(sense="max")], [2, 1], sense="max")
    assert {name for name in CAPABILITIES if hasattr(whole, name)} == {"blocks", "equalities", "diameter"}
