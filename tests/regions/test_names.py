"""Names of decision variables, and decisions in words."""

from __future__ import annotations

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
