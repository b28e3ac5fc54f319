"""Names of decision variables, and decisions in words."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone

import skspo as sk

NAMED = [
    lambda names: sk.Polyhedron(A_eq=[[1, 1, 1]], b_eq=[1], variable_names=names),
    lambda names: sk.MixedInteger(A_ub=[[1, 1, 1]], b_ub=[1], variable_names=names),
    lambda names: sk.CvxpyRegion(lambda w: [w >= 0, sum(w) == 1], 3, variable_names=names),
    lambda names: sk.OracleRegion(lambda C: np.eye(3)[C.argmin(axis=1)], 3, variable_names=names),
]


@pytest.mark.parametrize("make", NAMED)
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_given_names(make, kind):
    names = kind(["oil", "gas", "coal"])
    region = make(names)
    assert region.variable_names is names
    assert list(clone(region).names()) == ["oil", "gas", "coal"]
    assert list(region.with_rows(None, 2, 3).names()) == ["oil", "gas", "coal"]
    assert make(None).names() is None


@pytest.mark.parametrize("make", NAMED)
@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["oil", "gas"], ValueError, "one name for each of the 3 decision variables, got 2"),
        (["oil", "gas", "oil"], ValueError, "distinct, but 'oil' is there 2 times"),
        (["oil", "gas", 3], TypeError, "list of strings, one for each decision variable, got 3 of type int"),
        ("abc", TypeError, "list of strings, one for each decision variable, got 'abc'"),
        (3, TypeError, "list of strings"),
    ],
)
def test_bad_names(make, names, error, message):
    region = make(names)
    for use in (lambda: region.argmin([[1.0, 2.0, 3.0]]), region.names):
        with pytest.raises(error, match=f"^{type(region).__name__}: variable_names must .*{message}"):
            use()


def test_names_of_edges():
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    assert sk.ShortestPath(edges).variable_names == ["a -> b", "b -> c", "a -> c"]
    assert sk.ShortestPath(nx.DiGraph(edges)).variable_names == ["a -> b", "a -> c", "b -> c"]
    assert sk.ShortestPath.grid(2, 2).variable_names == ["0 -> 1", "0 -> 2", "1 -> 3", "2 -> 3"]
    parallel = [("a", "b"), ("a", "b (2)"), ("a", "b"), ("a", "b"), ("b (2)", "b")]
    assert sk.ShortestPath(parallel).variable_names == [
        "a -> b", "a -> b (2)", "a -> b (3)", "a -> b (4)", "b (2) -> b"
    ]  # fmt: skip
    assert len(set(sk.ShortestPath([(1, 2), ("1", 2)], 1, 2).names())) == 2


def test_names_of_pairs():
    assert sk.Assignment(2).variable_names == ["0 -> 0", "0 -> 1", "1 -> 0", "1 -> 1"]
    assert sk.Assignment().variable_names is None
    assert list(sk.Assignment().names(4)) == sk.Assignment(2).variable_names


def test_names_of_images():
    inner = sk.Polyhedron(A_eq=[[1, 1, 1]], b_eq=[1], variable_names=["oil", "gas", "coal"])
    some = sk.LinearImage(inner, [[0, 2, 0], [1, 0, 0]])
    assert some.variable_names == ["gas", "oil"]
    mixed = sk.LinearImage(inner, [[0, 2, 1], [1, 0, 0]], known_cost=[1, 2, 3])
    assert mixed.variable_names == ["row 0", "oil", "known cost"]
    varies = mixed.with_rows({"known_cost": np.ones((4, 3))}, 4, 3)
    assert list(varies.names()) == mixed.variable_names
    assert sk.LinearImage(inner, np.ones((2, 3))).variable_names is None
    assert sk.LinearImage(sk.Simplex(), np.eye(3)).variable_names is None


def test_names_of_products():
    fuel = sk.Polyhedron(A_eq=[[1, 1]], b_eq=[1], variable_names=["oil", "gas"])
    pair = sk.Assignment(1)
    assert sk.Product([fuel, pair]).variable_names == ["oil", "gas", "0 -> 0"]
    assert sk.Product([fuel, fuel]).variable_names == ["0: oil", "0: gas", "1: oil", "1: gas"]
    assert sk.Product([fuel, sk.Simplex()], [2, 2]).variable_names == ["0: oil", "0: gas", "1: 0", "1: 1"]
    assert sk.Product([sk.Box(), sk.Simplex()], [2, 2]).variable_names is None


def test_plain_regions_have_no_names():
    for region in (sk.Simplex(), sk.TopK(2), sk.Box(), sk.Knapsack([1, 2, 3], 4)):
        assert region.variable_names is None
        assert region.names(3) is None


# -- decisions in words ------------------------------------------------------------------------------------------------


def test_words_of_paths():
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]
    path = sk.ShortestPath(edges)
    assert path.describe([[1, 1, 0, 1], [0, 0, 1, 1]]) == [["a", "b", "c", "d"], ["a", "c", "d"]]
    assert path.chosen([[1.0, 1.0, 3.0, 0.0], [1.0, 1.0, 1.0, 0.0]]) == [["a", "b", "c", "d"], ["a", "c", "d"]]
    assert path.describe([[0.5, 0.5, 0.5, 1.0]]) == [{"a -> b": 0.5, "b -> c": 0.5, "a -> c": 0.5, "c -> d": 1.0}]


def test_words_of_cycles():
    """A cycle that touches the path, and one beside it, which negative costs can make optimal."""
    edges = [("a", "b"), ("b", "c"), ("b", "x"), ("x", "b"), ("x", "y"), ("y", "z"), ("z", "y")]
    path = sk.ShortestPath(edges, "a", "c")
    assert path.describe([[1, 1, 0, 0, 0, 0, 0]]) == [["a", "b", "c"]]
    assert path.describe([[1, 1, 1, 1, 0, 0, 0]]) == [["a", "b", "c", ["b", "x", "b"]]]
    assert path.describe([[1, 1, 0, 0, 0, 1, 1]]) == [["a", "b", "c", ["y", "z", "y"]]]
    W = path.argmin([[1.0, 1.0, -2.0, 1.0, 9.0, 9.0, 9.0]])
    assert path.describe(W) == [["a", "b", "c", ["b", "x", "b"]]]


def test_words_of_every_route_are_walks():
    grid = sk.ShortestPath.grid(4, 3)
    W = grid.argmin(np.random.default_rng(0).normal(size=(50, grid.n_dim)))
    for w, words in zip(W, grid.describe(W), strict=True):
        taken = {tuple(edge) for edge in grid.edges[w == 1].tolist()}
        assert set(pairwise(words)) == taken
        assert (words[0], words[-1], len(taken)) == (0, 11, len(words) - 1)


def test_words_of_other_regions():
    names = ["oil", "gas", "coal"]
    assert sk.Simplex().chosen([[3.0, 1.0, 2.0]], names) == ["gas"]
    assert sk.Simplex().describe([[0.5, 0.5, 0.0]], names) == [{"oil": 0.5, "gas": 0.5}]
    assert sk.TopK(2).chosen([[3.0, 1.0, 2.0]], names) == [["gas", "coal"]]
    assert sk.Knapsack([3, 4, 5], 8).chosen([[3.0, 4.0, 6.0]]) == [["w0", "w2"]]
    assert sk.Knapsack([3, 4, 5], 8, integer=False).chosen([[3.0, 4.1, 6.0]], names) == [{"gas": 0.75, "coal": 1.0}]
    assert sk.Assignment(2).chosen([[1.0, 2.0, 1.0, 3.0]]) == [[(0, 1), (1, 0)]]
    fuel = sk.Polyhedron(A_eq=[[1, 1, 1]], b_eq=[2], variable_names=names)
    assert fuel.chosen([[1.0, 2.0, 3.0]]) == [{"oil": 2.0}]
    assert sk.Box(-1, 1).describe([[1e-9, -1.0, 0.0]], names) == [{"gas": -1.0}]
    assert sk.Box().describe(np.zeros((2, 3))) == [{}, {}]


def test_words_of_products_and_images():
    fuel = sk.Polyhedron(A_eq=[[1, 1]], b_eq=[1], variable_names=["oil", "gas"])
    both = sk.Product([fuel, sk.Simplex(), fuel], [2, 2, 2])
    C = [[1.0, 2.0, 5.0, 4.0, 3.0, 1.0]]
    assert both.chosen(C) == [[{"oil": 1.0}, "1: 1", {"gas": 1.0}]]
    assert both.chosen(C, list("abcdef")) == [[{"a": 1.0}, "d", {"f": 1.0}]]
    image = sk.LinearImage(sk.ShortestPath([("a", "b"), ("b", "c"), ("a", "c")]), [[1, 1, 0], [0, 0, 2]])
    assert image.chosen([[2.0, 3.0]]) == [["a", "b", "c"]]
    assert sk.LinearImage(sk.Box(), 2 * np.eye(2)).chosen([[-1.0, 1.0]], ["u", "v"]) == [{"u": 2.0}]


def test_bad_names_of_words():
    with pytest.raises(ValueError, match="names must have one name for each of the 3 decision variables, got 2"):
        sk.Simplex().describe([[1.0, 0.0, 0.0]], ["a", "b"])
    with pytest.raises(ValueError, match="4 decision variables, but the costs have 3"):
        sk.Assignment(2).describe([[1.0, 0.0, 0.0]])
