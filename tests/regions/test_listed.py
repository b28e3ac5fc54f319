"""Lists of the decisions of small regions of integers, against all points of a box."""

import itertools

import numpy as np
import pytest
from brute_force import assert_best, quick, seeds
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

import skspo as sk
from skspo.metrics import spo_loss
from skspo.regions import listed
from skspo.regions.capabilities import has


def random_program(rng, d):
    """Random constraints of both kinds, and all their points by brute force."""
    lower = rng.integers(-2, 1, size=d)
    upper = lower + rng.integers(0, 4, size=d)
    inside = rng.integers(lower, upper + 1)
    A_ub, A_eq = rng.normal(size=(int(rng.integers(0, 3)), d)).round(1), rng.integers(-1, 2, size=(1, d))
    problem = {"A_ub": A_ub, "b_ub": A_ub @ inside + 0.5, "A_eq": A_eq, "b_eq": A_eq @ inside}
    box = np.array(list(itertools.product(*map(range, lower, upper + 1))), dtype=float)
    kept = (box @ A_ub.T <= problem["b_ub"] + 1e-9).all(axis=1) & (box @ A_eq.T == problem["b_eq"]).all(axis=1)
    return problem | {"bounds": list(zip(lower, upper, strict=True))}, box[kept]


def rows_of(points):
    return sorted(map(tuple, points))


@quick
@given(seeds)
def test_lists_have_all_points_of_random_programs(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    problem, points = random_program(rng, d)
    region = sk.MixedInteger(**problem)
    assert rows_of(region._points(d).V) == rows_of(points)
    C = np.concatenate([rng.normal(size=(9, d)), rng.integers(-1, 2, size=(9, d))]).astype(float)
    assert_best(region.argmin(C), C, points)
    W, C_true = region.worst_argmin(C, -C[::-1]), -C[::-1]
    for w, c, true in zip(W, C, C_true, strict=True):
        value = points @ c
        assert true @ w == pytest.approx((points @ true)[value <= value.min() + 1e-9].max(), abs=1e-9)
    E = region.equalities()
    assert_allclose(E @ (points - points[0]).T, 0.0, atol=1e-9)
    assert len(E) == d - np.linalg.matrix_rank(points - points[0])


@quick
@given(seeds)
def test_rows_use_their_own_points(seed):
    """Each row of a region that varies by sample has the best of its own points, and the worst among ties."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 5)), 7
    A, A_eq = rng.integers(0, 4, size=(2, d)), np.ones((1, d))
    rows = {
        "b_ub": rng.integers(3, 9, size=(n, 2)).astype(float),
        "b_eq": rng.integers(0, 2, size=(n, 1)).astype(float),
    }
    rows |= {"lower": np.zeros((n, d)), "upper": rng.choice([1.0, 1.5, 2.0], size=(n, d))}
    region = sk.MixedInteger(A, [9, 9], A_eq, [1], bounds=(0, 2)).with_rows(rows, n, d)
    C, C_true = rng.integers(-2, 3, size=(n, d)).astype(float), rng.normal(size=(n, d))
    box = np.array(list(itertools.product(range(3), repeat=d)), dtype=float)
    assert region._points(d) is not None and not has(region, "standard_form")
    W, worst = region.argmin(C), region.worst_argmin(C, C_true)
    for i, c in enumerate(C):
        fine = (box @ A.T <= rows["b_ub"][i]).all(axis=1) & (box.sum(axis=1) == rows["b_eq"][i])
        points = box[fine & (box <= rows["upper"][i]).all(axis=1)]
        assert_best(W[[i]], c[None], points)
        value = points @ c
        assert C_true[i] @ worst[i] == pytest.approx((points @ C_true[i])[value == value.min()].max(), abs=1e-9)
    half = region.take(np.array([4, 1]))
    assert_array_equal(half.argmin(C[[4, 1]]), W[[4, 1]])


def test_knapsacks_whose_capacity_and_items_vary():
    rng = np.random.default_rng(4)
    weights = rng.uniform(1.0, 3.0, size=(2, 7))
    capacity, available = rng.uniform(2.0, 9.0, size=(12, 2)), rng.random((12, 7)) < 0.7
    region = sk.Knapsack(weights, 4.0).with_rows({"capacity": capacity, "available": available}, 12, 7)
    V, C_true = rng.integers(-1, 4, size=(12, 7)).astype(float), rng.normal(size=(12, 7))
    W, worst = region.argmin(V), region.worst_argmin(-V, C_true)
    subsets = np.array(list(itertools.product((0.0, 1.0), repeat=7)))
    for i in range(12):
        points = subsets[(subsets @ weights.T <= capacity[i]).all(axis=1) & ~(subsets @ ~available[i] > 0)]
        assert_best(W[[i]], -V[[i]], points)
        value = points @ V[i]
        assert C_true[i] @ worst[i] == pytest.approx((points @ C_true[i])[value == value.max()].max())


def test_an_empty_row_is_named():
    region = sk.MixedInteger([[2, 2]], [3], [[1, 1]], [1], bounds=(0, 1))
    with pytest.raises(sk.InfeasibleRegionError, match="The region of row 2 is empty"):
        region.with_rows({"b_eq": [[1], [0], [2]]}, 3, 2).argmin(np.ones((3, 2)))
    with pytest.raises(sk.InfeasibleRegionError, match="The region of row 0 is empty"):  # no decision in any row
        region.with_rows({"b_ub": [[-1], [0]]}, 2, 2).argmin(np.ones((2, 2)))


def test_regions_of_many_decisions_are_not_listed():
    """Neither many points, nor a long search; continuous decisions and missing bounds neither."""
    few = sk.MixedInteger(np.ones((1, 30)), [2], bounds=(0, 1))
    assert len(few._points(30).V) == 1 + 30 + 30 * 29 / 2
    assert sk.MixedInteger(np.ones((1, 30)), [20], bounds=(0, 1))._points(30) is None
    assert sk.MixedInteger(np.ones((1, 2)), [2], bounds=(0, 1), integrality=[1, 0])._points(2) is None
    assert sk.MixedInteger(np.ones((1, 2)), [2])._points(2) is None
    assert sk.MixedInteger(np.ones((1, 2)), [1e9], bounds=(0, 1e8))._points(2) is None
    assert few.oracle_is_solver is False and sk.MixedInteger(np.ones((1, 2)), [2]).oracle_is_solver


def test_decimal_weights_that_add_up_to_the_capacity():
    """0.1 + 0.2 is above 0.3 by rounding, and fits."""
    region = sk.Knapsack([[0.1, 0.2, 0.3]], [0.3])
    assert region._data(3).method == "search"
    assert_array_equal(region.argmin([[2.0, 2.0, 3.0]]), [[1, 1, 0]])


def test_a_large_coefficient_hides_no_violation():
    """The tolerance is relative to the terms of a decision, and not to coefficients of what is not used."""
    region = sk.MixedInteger([[1.0, 1.0, 1e9]], [1.0], bounds=(0, 1), sense="max")
    assert_array_equal(region.argmin([[1.0, 1.0, 5.0]]), [[1, 0, 0]])


def test_ties_do_not_depend_on_other_rows():
    region = sk.Knapsack(np.full((2, 8), 0.3), [0.95, 1.3])
    V = np.tile(np.random.default_rng(0).random(4).round(1) + 0.1, 2)
    W = region.argmin(np.tile(V, (500, 1)))
    assert_array_equal(W, np.tile(region.argmin(V), (500, 1)))


def test_prices_hide_no_other_costs():
    """One of two items whose value is 1e12 fits, and the others decide; so they do about ties."""
    region, M = sk.Knapsack([[1.1, 1.1, 0.3, 0.3, 0.3]] * 2, [1.5, 1.6]), 1e12
    assert region._points(5) is not None
    values = np.array([[M, 0.1, 0.3, 0.2, 0.25], [M, M, 0.1, 0.3, 0.2], [M, M + 0.5, 0.1, 0.3, 0.2]])
    assert_array_equal(region.argmin(values), [[1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 0, 1, 0]])
    worst = region.worst_argmin(-values, np.array([[0.0, 1.0, 5.0, 0.0, 5.0]] * 3))
    assert_array_equal(worst, [[1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 1, 0, 1, 0]])


def test_sums_that_are_equal_up_to_rounding_are_ties():
    region = sk.MixedInteger(A_eq=[[1, 1, 2]], b_eq=[2], bounds=(0, 1))
    c, others = np.array([[0.1, 0.2, 0.3]]), np.array([[1.0, 1.0, 3.0]])
    assert 0.1 + 0.2 > 0.3
    for sign, worst in ((1.0, [[0, 0, 1]]), (-1.0, [[1, 1, 0]])):
        assert_array_equal(region.worst_argmin(c, sign * others), worst)


def problem_of_packings(n=40):
    rng = np.random.default_rng(1)
    weights, X = rng.uniform(1.0, 3.0, size=(2, 8)).round(2), rng.normal(size=(n, 2))
    return sk.Knapsack(weights, 6.0), X, np.exp(X @ rng.normal(size=(2, 8)) / 2) + rng.random((n, 8))


@pytest.mark.parametrize("solver", ["bundle", "conic", "interior-point", "dual"])
def test_solvers_agree_on_listed_regions(solver):
    region, X, C = problem_of_packings()
    fits = [sk.SPOPlusRegressor(region, alpha=0.1, solver=name, tol=1e-5).fit(X, C) for name in (solver, "bundle")]
    assert all(fit.duality_gap_ <= 1e-5 for fit in fits)
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=2e-5)


def test_images_and_products_of_listed_regions():
    region, _, _ = problem_of_packings()
    image = sk.LinearImage(region, np.kron(np.eye(4), [1.0, 2.0]))
    both = sk.Product([image, region], sense="max")
    assert not both.oracle_is_solver and has(both, "worst_argmin") and has(both, "standard_form")
    V = np.random.default_rng(2).integers(-1, 3, size=(30, 12)).astype(float)
    points = region._points(8).V
    sums = points @ image.matrix.T
    W, C_true = both.argmin(V), np.ones((30, 12))
    assert_best(W[:, :4], -V[:, :4], sums)
    assert_best(W[:, 4:], -V[:, 4:], points)
    worst = both.worst_argmin(-V, C_true)[:, :4]
    for w, v in zip(worst, V[:, :4], strict=True):
        assert w.sum() == pytest.approx(sums.sum(axis=1)[sums @ v >= (sums @ v).max() - 1e-9].max())


def test_ties_are_resolved_against_the_model_in_metrics():
    region = sk.Knapsack([[0.5, 0.5, 0.6]], 1.1)
    C, equal = [[3.0, 2.0, 1.0]], [[1.0, 1.0, 1.0]]
    assert spo_loss(C, equal, region) == 0.0
    assert spo_loss(C, equal, region, ties="worst") == 2.0


def test_the_search_stops_at_its_limit(monkeypatch):
    monkeypatch.setattr(listed, "SEARCH", 100)
    region = sk.Knapsack(np.linspace(0.5, 1.5, 10), 3.0)
    assert region._points(10) is None
    V = np.random.default_rng(0).random((5, 10))
    subsets = np.array(list(itertools.product((0.0, 1.0), repeat=10)))
    assert_best(region.argmin(V), -V, subsets[subsets @ np.linspace(0.5, 1.5, 10) <= 3.0 + 1e-9])
