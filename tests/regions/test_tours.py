"""TravellingSalesman, against all tours and against an integer program with all subtour constraints."""

import itertools

import numpy as np
import pytest
from brute_force import assert_best
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import skspo as sk
from skspo.calibration import diameter, relative_width
from skspo.plotting import DecisionDisplay
from skspo.regions import listed
from skspo.regions.tours import list_tours, pairs_of, violated_cuts


def all_tours(n):
    """Tours by their orders of nodes, each in both directions and once."""
    number = {pair: k for k, pair in enumerate(itertools.combinations(range(n), 2))}
    points = set()
    for order in itertools.permutations(range(1, n)):
        w = [0.0] * len(number)
        for a, b in itertools.pairwise((0, *order, 0)):
            w[number[min(a, b), max(a, b)]] = 1.0
        points.add(tuple(w))
    return np.array(sorted(points, reverse=True))


def constraints(n):
    """Two edges at each node, and at least two out of each set of nodes."""
    pairs = list(itertools.combinations(range(n), 2))
    rows, low = [], []
    for size in range(1, n // 2 + 1):
        for inside in itertools.combinations(range(n), size):
            rows.append([float((a in inside) != (b in inside)) for a, b in pairs])
            low.append((2.0, 2.0 if size == 1 else np.inf))
    return np.array(rows), *np.array(low).T


@pytest.mark.parametrize("n", [3, 4, 5, 7])
def test_lists_have_all_tours(n):
    assert_array_equal(list_tours(n), all_tours(n))


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_diameter(n):
    points = all_tours(n)
    largest = max(np.linalg.norm(points - w, axis=1).max() for w in points)
    for region in (sk.TravellingSalesman(n), sk.TravellingSalesman(n, integer=False)):
        assert diameter(region, region.n_dim) == pytest.approx(largest)
        with pytest.raises(TypeError, match="no relative_width, because its constraints are too many"):
            relative_width(region, region.n_dim)


@pytest.mark.parametrize("n", [4, 6, 7])
def test_branch_and_bound_against_all_tours(n, monkeypatch):
    points = all_tours(n)
    rng = np.random.default_rng(n)
    C = np.concatenate([rng.normal(size=(40, points.shape[1])), rng.integers(-1, 2, size=(20, points.shape[1]))])
    assert_best(sk.TravellingSalesman(n).argmin(C), C, points)
    monkeypatch.setattr(listed, "MOST_POINTS", 0)
    region = sk.TravellingSalesman(n)
    assert region.oracle_is_solver
    W = region.argmin(C)
    assert_best(W, C, points)
    assert set(map(tuple, W)) <= set(map(tuple, points))
    for rows in (slice(7, 8), slice(40, 60)):  # whatever was solved before
        assert_array_equal(sk.TravellingSalesman(n).argmin(C[rows]), W[rows])
    assert_array_equal(sk.TravellingSalesman(n, n_jobs=2).argmin(C), W)
    assert_best(sk.TravellingSalesman(n, sense="max").argmin(C), -C, points)


def test_tours_and_relaxation_against_milp():
    """With ten nodes, where tours are not listed: all constraints written out."""
    n = 10
    A, low, high = constraints(n)
    limits, bounds = LinearConstraint(A, low, high), Bounds(0, 1)
    rng = np.random.default_rng(0)
    points = rng.random((n, 2))
    first, second = pairs_of(n)
    distance = np.linalg.norm(points[first] - points[second], axis=1)
    # Two triangles and three ways between them: half of each triangle and all three ways cost less than any tour.
    links = {(0, 3): 0, (1, 4): 0, (2, 6): 0, (6, 7): 0, (7, 8): 0, (8, 9): 0, (5, 9): 0}
    links |= {(0, 1): 1, (0, 2): 1, (1, 2): 1, (3, 4): 1, (3, 5): 1, (4, 5): 1}
    prism = np.array([links.get(pair, 3.0) for pair in zip(first.tolist(), second.tolist(), strict=True)])
    C = [distance * rng.uniform(0.3, 1.7, size=(6, 45)), rng.integers(1, 4, size=(6, 45)), prism + rng.random((6, 45))]
    C = np.concatenate([*C, prism[None]])
    region = sk.TravellingSalesman(n)
    W, R = region.argmin(C), region.relaxation().argmin(C)
    gaps = 0
    for w, r, c in zip(W, R, C, strict=True):
        whole = milp(c, constraints=limits, bounds=bounds, integrality=np.ones(45)).fun
        part = milp(c, constraints=limits, bounds=bounds).fun
        assert c @ w == pytest.approx(whole, abs=1e-7)
        assert c @ r == pytest.approx(part, abs=1e-6)
        assert (A @ w >= low).all() and (A @ r >= low - 1e-5).all()
        gaps += whole > part + 1e-6
    assert gaps  # some relaxations are not tours
    assert all(len(tour) == n + 1 and tour[0] == tour[-1] for tour in region.describe(W))


def test_cuts_against_all_sets():
    """There is a cut if and only if a set of nodes lacks edges, and every cut is of such a set."""
    n, rng = 7, np.random.default_rng(1)
    ends, tours = pairs_of(n), all_tours(n)
    A, low, high = constraints(n)
    degree = A[np.isfinite(high)]
    found = set()
    for _ in range(300):
        c = rng.normal(size=21)
        x = linprog(c, A_eq=degree, b_eq=np.full(n, 2.0), bounds=(0, 1)).x
        x = (x + tours[rng.integers(len(tours))] * rng.random()) / 1.5 if rng.random() < 0.3 else x
        x = x * 2.0 / max((degree @ x).max(), 2.0)
        if np.abs(degree @ x - 2.0).max() > 1e-9:
            continue
        sets = violated_cuts(x, n, ends)
        assert bool(sets) == bool((A @ x < low - 1e-5).any())
        for inside in sets:
            assert 0 < inside.sum() < n and x[inside[ends[0]] != inside[ends[1]]].sum() < 2.0 - 1e-7
        found.add(len(sets) > 0)
    assert found == {True, False}


def test_words_names_and_capabilities():
    region = sk.TravellingSalesman(["depot", "a", "b", "c"])
    assert region.n_dim == 6 and region.names()[1] == "depot - b"
    assert region.describe([[0, 1, 1, 1, 1, 0]]) == [["depot", "b", "a", "c", "depot"]]
    assert region.describe([[0.5, 1, 0.5, 1, 0.5, 0.5]])[0]["a - b"] == 1.0
    assert region.describe(np.zeros((1, 6))) == [[]]
    assert region.describe(np.ones((1, 6)))[0]["a - b"] == 1.0  # every edge
    two = [float({a, b} <= {0, 1, 2} or {a, b} <= {3, 4, 5}) for a, b in itertools.combinations(range(6), 2)]
    assert len(sk.TravellingSalesman(6).describe([two])[0]) == 6  # two tours: the edges, not one of the tours
    assert sk.TravellingSalesman(3).chosen([[1.0, 2.0, 3.0]]) == [[0, 1, 2, 0]]
    for n in (5, 12):
        E = sk.TravellingSalesman(n).equalities()
        W = sk.TravellingSalesman(n).argmin(np.random.default_rng(0).normal(size=(6, n * (n - 1) // 2)))
        assert E.shape == (n, n * (n - 1) // 2)
        assert_allclose(E @ (W - W[0]).T, 0.0, atol=1e-9)
    relaxed = region.relaxation()
    assert relaxed.relaxation() is relaxed and not relaxed.integer


@pytest.mark.parametrize("kind", ["integers", "relaxation"])
def test_training(kind):
    rng = np.random.default_rng(3)
    n, X = 8, rng.normal(size=(25, 3))
    C = np.exp(0.3 * X @ rng.normal(size=(3, 28))) + rng.random(28)
    region = sk.TravellingSalesman(n)
    surrogate = "relaxation" if kind == "relaxation" else None
    model = sk.SPOPlusRegressor(region, alpha=0.1, surrogate_region=surrogate, tol=1e-3).fit(X, C)
    assert model.duality_gap_ <= 1e-3
    assert all(len(tour) == n + 1 for tour in model.chosen(X[:3]))


def test_a_picture_of_tours():
    rng = np.random.default_rng(0)
    region, C = sk.TravellingSalesman(6), rng.random((2, 15))
    pos = {node: point for node, point in enumerate(rng.random((6, 2)))}
    display = DecisionDisplay.from_predictions(C[::-1], C, region, pos=pos)
    assert len(display.chosen_.get_segments()) == 6 and len(display.best_.get_segments()) == 6
    plt.close(display.figure_)


@pytest.mark.parametrize(
    ("nodes", "kind", "match"),
    [
        (2, ValueError, "at least 3 nodes"),
        (True, TypeError, "must be a list of labels"),
        (4.0, TypeError, "must be a list of labels"),
        ("abcd", TypeError, "must be a list of labels"),
        (["a", "b"], ValueError, "at least 3 nodes"),
        (["a", "b", "a", "c"], ValueError, "'a' is there 2 times"),
        ([["a"], ["b"], ["c"]], TypeError, "hashable"),
    ],
)
def test_wrong_nodes(nodes, kind, match):
    with pytest.raises(kind, match=match):
        sk.TravellingSalesman(nodes).argmin(np.ones(6))


def test_wrong_number_of_costs():
    with pytest.raises(ValueError, match="has 10 decision variables, but the costs have 20 columns"):
        sk.TravellingSalesman(5).argmin(np.ones((1, 20)))
