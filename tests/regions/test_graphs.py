"""ShortestPath and Assignment, against enumeration."""

import itertools

import networkx as nx
import numpy as np
import pytest
from brute_force import all_permutations, assert_best, assert_worst, quick, seeds
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

import skspo as sk
from skspo.calibration import diameter
from skspo.regions._oracles.highs import solve_rows
from skspo.regions.assignment import Assignment
from skspo.regions.graphs import ShortestPath


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


def random_dag(rng):
    n = int(rng.integers(2, 7))
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6]
    edges += [(0, n - 1)] + ([edges[0]] if edges else [])  # reachable, and a parallel edge
    edges = [edges[k] for k in rng.permutation(len(edges))]
    labels = rng.permutation(n).tolist()
    return [(labels[a], labels[b]) for a, b in edges], labels[0], labels[n - 1]


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
    assert far <= diameter(region, region.n_dim) + 1e-12


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
    assert diameter(ShortestPath.grid(1, 4), 3) == 0.0
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
        ShortestPath([], 0, 1).equalities()
    with pytest.raises(ValueError, match="two nodes"):
        ShortestPath.grid(1, 1)


def test_paths_that_tie_up_to_rounding():
    region = sk.ShortestPath([(0, 1), (1, 2), (0, 2)], 0, 2)
    assert 0.1 + 0.2 != 0.3
    for truth, path in (([5.0, 5.0, 1.0], [1.0, 1.0, 0.0]), ([1.0, 1.0, 5.0], [0.0, 0.0, 1.0])):
        assert_array_equal(region.worst_argmin(np.array([[0.1, 0.2, 0.3]]), np.array([truth])), [path])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_assignment_against_all_permutations(n):
    rng = np.random.default_rng(n)
    C = rng.normal(size=(50, n * n))
    assert_best(Assignment().argmin(C), C, all_permutations(n))
    C, C_true = (rng.integers(-1, 2, size=C.shape).astype(float) for _ in range(2))
    assert_best(Assignment(n).argmin(C), C, all_permutations(n))
    assert_worst(Assignment(n).worst_argmin(C, C_true), C, C_true, all_permutations(n))
    points = all_permutations(n)
    assert diameter(Assignment(n), n * n) == pytest.approx(np.linalg.norm(points[:, None] - points, axis=2).max())
    assert Assignment().inequality_form(n * n).violation(points).max() == 0.0


def test_assignment_errors():
    with pytest.raises(ValueError, match="square"):
        Assignment().argmin(np.zeros(5))
    with pytest.raises(ValueError, match="9 decision variables"):
        Assignment(3).argmin(np.zeros(4))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 3), (3, 1), (2, 3), (4, 2), (3, 3)])
def test_rectangular_assignments(n, m):
    rng = np.random.default_rng(0)
    points = []
    for order in itertools.permutations(range(max(n, m)), min(n, m)):
        pairs = np.eye(max(n, m))[list(order)]
        points.append((pairs if n <= m else pairs.T).ravel())
    points = np.array(points)
    C, C_true = rng.normal(size=(30, n * m)), rng.integers(-1, 2, size=(30, n * m)).astype(float)
    for region in (Assignment(n, m), Assignment(n_tasks=m)):
        assert_best(region.argmin(C), C, points)
        assert_worst(region.worst_argmin(C_true, C), C_true, C, points)
        assert region.inequality_form(n * m).violation(points).max() == 0.0
        assert diameter(region, n * m) == pytest.approx(np.linalg.norm(points[:, None] - points, axis=2).max())
    names = Assignment(n, m).variable_names
    assert (names[0], names[-1], len(names)) == ("0 -> 0", f"{n - 1} -> {m - 1}", n * m)


def test_rows_with_ends_of_their_own_have_one_program_and_the_decisions_of_separate_ones():
    """Streets both ways, with costs of both signs, in one call and with a region for each pair of ends."""
    nodes = list(itertools.product(range(3), range(3)))
    edges = [(a, b) for a in nodes for b in nodes if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    rng = np.random.default_rng(0)
    C = rng.normal(size=(30, len(edges)))
    ends = [tuple(nodes[k] for k in rng.permutation(9)[:2]) for _ in range(30)]
    params = {"source": [a for a, _ in ends], "target": [b for _, b in ends]}
    region = ShortestPath(edges, nodes[0], nodes[-1]).with_rows(params, 30, len(edges))
    W = region.argmin(C)
    for w, c, (source, target) in zip(W, C, ends, strict=True):
        (alone,) = ShortestPath(edges, source, target).argmin(c[None])
        assert_allclose(w, alone, atol=1e-9)
