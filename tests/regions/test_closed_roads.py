"""Closed roads and streets in both directions, against networkx."""

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import skspo as sk

CYCLIC = [(a, b) for a, b in nx.grid_2d_graph(3, 3).to_directed().edges()]
STREETS = list(nx.grid_2d_graph(3, 3).edges())


def shortest(edges, costs, there, source, target):
    graph = nx.DiGraph()
    graph.add_nodes_from(node for edge in edges for node in edge)
    graph.add_weighted_edges_from((*e, c) for e, c, is_open in zip(edges, costs, there, strict=True) if is_open)
    try:
        return nx.shortest_path_length(graph, source, target, weight="weight")
    except nx.NetworkXNoPath:
        return np.inf


def problem(kind, n=40, closed=0.15):
    """Costs, open roads and ends of each sample, with a path in each."""
    rng = np.random.default_rng(0)
    edges = CYCLIC if kind == "cyclic" else [tuple(edge) for edge in sk.ShortestPath.grid(4, 4).edges.tolist()]
    nodes = sorted({node for edge in edges for node in edge})
    C, open_, ends, best = [], [], [], []
    while len(C) < n:
        c, there = rng.random(len(edges)) + 0.1, rng.random(len(edges)) > closed
        source, target = (nodes[int(k)] for k in rng.permutation(len(nodes))[:2])
        least = shortest(edges, c, there, source, target)
        if np.isfinite(least):
            C, open_, ends, best = [*C, c], [*open_, there], [*ends, (source, target)], [*best, least]
    region = sk.ShortestPath(edges, nodes[0], nodes[-1])
    params = {"available": np.array(open_), "source": [e[0] for e in ends], "target": [e[1] for e in ends]}
    return region, np.array(C), params, np.array(best)


@pytest.mark.parametrize("kind", ["acyclic", "cyclic"])
def test_closed_roads_together_with_ends(kind):
    region, C, params, best = problem(kind)
    n, d = C.shape
    rows = region.with_rows(params, n, d)
    W = rows.argmin(C)
    np.testing.assert_allclose((C * W).sum(axis=1), best)
    assert not W[~params["available"]].any()
    assert [words[0] for words in rows.describe(W)] == params["source"]
    assert rows.inequality_form(d).violation(W).max() < 1e-9
    assert not (rows.possible(n, d) & ~params["available"]).any()
    some = np.array([7, 2, 30])
    np.testing.assert_array_equal(rows.take(some).argmin(C[some]), W[some])
    C_true = np.random.default_rng(1).random(C.shape)
    worst = rows.worst_argmin(np.ones_like(C), C_true)
    fewest = rows.argmin(np.ones_like(C)).sum(axis=1)
    np.testing.assert_allclose(worst.sum(axis=1), fewest)
    assert ((C_true * worst).sum(axis=1) >= (C_true * rows.argmin(np.ones_like(C))).sum(axis=1) - 1e-9).all()


def test_the_worst_of_the_shortest_paths_with_closed_roads():
    """Four ways of two edges; the worst open one."""
    edges = [("s", k) for k in range(4)] + [(k, "t") for k in range(4)]
    region = sk.ShortestPath(edges, "s", "t")
    C_true = np.array([[1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0]] * 2)
    params = {"available": [[1, 1, 1, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0, 0]]}
    worst = region.with_rows(params, 2, 8).worst_argmin(np.ones((2, 8)), C_true)
    np.testing.assert_array_equal((worst * C_true).sum(axis=1), [3.0, 2.0])


@pytest.mark.parametrize("kind", ["acyclic", "cyclic"])
def test_only_closed_roads(kind):
    """The ends are those of the region."""
    region, C, params, _ = problem(kind, closed=0.1)
    nodes = sorted({node for edge in region._pairs() for node in edge})
    best = [
        shortest(region._pairs(), c, there, nodes[0], nodes[-1])
        for c, there in zip(C, params["available"], strict=True)
    ]
    keep = np.isfinite(best)
    W = region.with_rows({"available": params["available"][keep]}, keep.sum(), C.shape[1]).argmin(C[keep])
    np.testing.assert_allclose((C[keep] * W).sum(axis=1), np.array(best)[keep])


@pytest.mark.parametrize("kind", ["acyclic", "cyclic"])
def test_training_with_closed_roads(kind):
    region, C, params, _ = problem(kind, closed=0.05)
    region.set_params(cost_bounds=None)
    X = np.random.default_rng(2).normal(size=(len(C), 2))
    C = C + np.abs(X @ np.random.default_rng(3).normal(size=(2, C.shape[1])))
    missing = np.where(params["available"], C, np.nan)  # closed roads have no costs
    fits = [
        sk.SPOPlusRegressor(region, alpha=0.3, solver=solver, tol=1e-4).fit(X, C_, region_params=params)
        for solver, C_ in (("bundle", C), ("auto", missing))
    ]
    assert all(model.duality_gap_ <= 1e-4 for model in fits)
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=3e-4)


@pytest.mark.parametrize("edges", [[("a", "b"), ("b", "c")], [("a", "b"), ("b", "a"), ("b", "c")]])
def test_no_open_path(edges):
    region, d = sk.ShortestPath(edges, "a", "c"), len(edges)
    closed = np.ones((3, d))
    closed[1, -1] = 0
    with pytest.raises(sk.InfeasibleRegionError, match="row 1 is empty"):
        region.with_rows({"available": closed}, 3, d).argmin(np.ones((3, d)))


def test_streets_in_both_directions():
    graph = nx.grid_2d_graph(3, 3)
    rng = np.random.default_rng(4)
    C, nodes = rng.random((30, len(STREETS))) + 0.1, list(graph)
    region = sk.ShortestPath.undirected(graph, nodes[0], nodes[-1])
    assert region.n_dim == len(STREETS) and region.names()[0] == "(0, 0) - (1, 0)"
    ends = [tuple(nodes[int(k)] for k in rng.permutation(9)[:2]) for _ in C]
    params = {"source": [a for a, _ in ends], "target": [b for _, b in ends]}
    rows = region.with_rows(params, 30, len(STREETS))
    W = rows.argmin(C)
    for w, c, (a, b), words in zip(W, C, ends, rows.chosen(C), strict=True):
        nx.set_edge_attributes(graph, dict(zip(STREETS, c, strict=True)), "weight")
        assert c @ w == pytest.approx(nx.shortest_path_length(graph, a, b, weight="weight"))
        assert words == nx.shortest_path(graph, a, b, weight="weight")
    # One street is closed in both directions.
    open_ = np.ones((1, 2 * len(STREETS)), dtype=bool)
    open_[0, [0, len(STREETS)]] = False
    closed = region.with_rows({"available": open_}, 1, len(STREETS)).argmin(C[:1])
    assert closed[0, 0] == 0
    X = rng.normal(size=(30, 2))
    model = sk.SPOPlusRegressor(region, alpha=0.1, tol=1e-4).fit(X, C, region_params=params)
    assert model.duality_gap_ <= 1e-4
    assert (model.region_.region.cost_bounds[0] > 0).all()  # learned: a prediction below zero makes no cycle


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: sk.ShortestPath(nx.Graph([("a", "b")]), "a", "b"), "ShortestPath.undirected"),
        (lambda: sk.ShortestPath.undirected(nx.DiGraph([("a", "b")]), "a", "b"), "the graph is directed"),
        (lambda: sk.ShortestPath.undirected([("a", "b")], "a", "c"), "target 'c' is unknown"),
        (lambda: sk.ShortestPath.undirected([("a", "b")], "x", "b"), "source 'x' is unknown"),
        (lambda: sk.ShortestPath.undirected([("a", "b", "c")], "a", "b"), "edge 0 is"),
        (lambda: sk.ShortestPath.undirected([], "a", "b"), "no edges"),
        (lambda: sk.ShortestPath.undirected([("a", "b")], "a", "b", cost_bounds="none"), "'auto', None or a pair"),
        (lambda: sk.ShortestPath.undirected([("a", "b")], "a", "b", cost_bounds=(2, 1)), "lower exceeds upper"),
        (lambda: sk.ShortestPath.undirected([("a", "a")], "a", "b"), "to itself"),
        (lambda: sk.LinearImage(sk.Simplex(), np.eye(1), labels=["a", "b"]), "labels must have one name for each"),
    ],
)
def test_wrong_graphs(make, match):
    with pytest.raises(ValueError, match=match):
        make().decide(np.ones((1, 1)))
        make().names()


@pytest.mark.parametrize(
    ("available", "match"),
    [
        (np.ones((2, 3)), "must have one row for each"),
        (np.ones((3, 2)), "available must have shape"),
        (np.full((3, 3), 2.0), "must be True or False"),
        (np.full((3, 3), np.nan), "finite"),
        ([["open"] * 3] * 3, "array of numbers"),
    ],
)
def test_wrong_availability(available, match):
    with pytest.raises(ValueError, match=match):
        sk.ShortestPath([("a", "b"), ("b", "c"), ("a", "c")]).with_rows({"available": available}, 3, 3)


@pytest.mark.parametrize("copy", [lambda region: region, clone, lambda region: pickle.loads(pickle.dumps(region))])
def test_errors_about_streets_have_the_name_that_users_write(copy):
    def streets(**params):
        return copy(sk.ShortestPath.undirected([("a", "b"), ("c", "b"), ("a", "c")], "a", "c", **params))

    for fault in (
        lambda: streets().argmin([[1.0, 2.0]]),
        lambda: streets().extend([1.0, 2.0]),
        lambda: streets(cost_bounds=(2.0, 1.0)).decide([[1.0, 2.0, 3.0]]),
        lambda: streets().with_rows({"lower": [0.0]}, 1, 3),
        lambda: streets().argmin(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["c - b", "a - b", "a - c"])),
    ):
        with pytest.raises(ValueError) as error:
            fault()
        assert "ShortestPath.undirected" in str(error.value)
        assert "LinearImage" not in str(error.value)
