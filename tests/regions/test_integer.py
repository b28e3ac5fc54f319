"""Knapsack and MixedInteger, against enumeration and scipy."""

import inspect
import itertools

import numpy as np
import pytest
from brute_force import assert_best, quick, seeds
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from sklearn.base import clone

import skspo as sk
from skspo.calibration import diameter, relative_width
from skspo.regions._oracles import highs_integer
from skspo.regions._oracles.highs import solve_rows
from skspo.regions.capabilities import CAPABILITIES, missing
from skspo.regions.integer import Knapsack, MixedInteger
from skspo.regions.polyhedral import InequalityForm
from skspo.regions.polyhedron import Polyhedron


def all_packings(weights, capacity):
    subsets = np.array(list(itertools.product((0.0, 1.0), repeat=np.shape(weights)[-1])))
    return subsets[(subsets @ np.atleast_2d(weights).T <= np.asarray(capacity) + 1e-9).all(axis=1)]


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
    assert np.linalg.norm(points[:, None] - points, axis=2).max() <= diameter(region, d) + 1e-9


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
    others = {"strong_convexity", "derivative", "smoothed", "quadratic_form", "audit", "blocks"}
    whole, fractional = Knapsack([3, 4], 5), Knapsack([3, 4], 5, integer=False)
    assert set(missing(Knapsack(np.ones(40), 20), CAPABILITIES)) == set(CAPABILITIES)
    assert set(missing(whole, CAPABILITIES)) == others  # those of the convex hull of a list
    assert set(missing(fractional, CAPABILITIES)) == others
    assert not hasattr(whole, "inequality_form")
    assert fractional.equalities().shape == (0, 2)
    assert relative_width(fractional, 2) > 0
    assert fractional.inequality_form().violation(fractional.repair(np.array([[1.1, 1.0]]))).max() < 1e-12
    assert relative_width(Knapsack([3, 4], 0, integer=False), 2) == 0.0


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


def test_items_without_weight_take_no_room():
    region = sk.Knapsack([0.0, 2.0, 0.0], 0.5, integer=False)
    assert_array_equal(region.argmin([[1.0, 1.0, 2.0]]), [[1.0, 0.25, 1.0]])


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


@pytest.mark.parametrize("nodes", [0, 3, 200])
def test_search_and_branch_and_bound_agree_with_all_points(nodes, monkeypatch, unlisted):
    """Rows that the short search solves, and rows that it leaves to HiGHS, have the least cost of all points."""
    monkeypatch.setattr(highs_integer, "NODES", nodes)
    left = []
    solve = highs_integer._BranchAndBound.solve
    monkeypatch.setattr(highs_integer._BranchAndBound, "solve", lambda *args: left.append(1) or solve(*args))
    rng = np.random.default_rng(3)
    A, C = rng.uniform(1.0, 4.0, size=(2, 6)), rng.normal(size=(40, 6)) - 0.5
    points = np.array(list(itertools.product(range(-1, 3), repeat=6)), dtype=float)
    for sides in (np.full((40, 2), 6.0), rng.uniform(2.0, 9.0, size=(40, 2))):
        region = MixedInteger(A, [6.0, 6.0], bounds=(-1, 2.5))
        W = region.with_rows({"b_ub": sides}, 40, 6).argmin(C)
        feasible = ((points @ A.T)[None] <= sides[:, None] + 1e-9).all(axis=2)
        assert_allclose((C * W).sum(axis=1), np.where(feasible, C @ points.T, np.inf).min(axis=1))
        # A row does not depend on the other rows of the call.
        assert_array_equal(region.with_rows({"b_ub": sides[7:8]}, 1, 6).argmin(C[7:8]), W[7:8])
    assert (len(left) > 0) == (nodes < 200)


def test_branch_and_bound_starts_from_what_the_search_has_found(monkeypatch, unlisted):
    starts, solve = {}, highs_integer._BranchAndBound.solve

    def noted(self, c, row, seconds, side, start):
        starts[row] = start
        return solve(self, c, row, seconds, side, start)

    monkeypatch.setattr(highs_integer._BranchAndBound, "solve", noted)
    rng = np.random.default_rng(0)
    A, C = rng.random((3, 20)), -rng.uniform(1.0, 2.0, size=(4, 20))
    W = MixedInteger(A, A.sum(axis=1) / 3, bounds=(0, 1)).argmin(C)
    assert starts
    for row, start in starts.items():
        assert ((start == 0) | (start == 1)).all() and (A @ start <= A.sum(axis=1) / 3 + 1e-9).all()
        assert C[row] @ W[row] <= C[row] @ start + 1e-9


def test_branch_and_bound_does_not_trust_its_start():
    rng = np.random.default_rng(5)
    A, c = rng.uniform(1.0, 4.0, size=(2, 8)), -rng.uniform(1.0, 2.0, size=8)
    form = InequalityForm.build(8, A, [8.0, 8.0], upper=1.0).scaled
    model = highs_integer._BranchAndBound(form, np.ones(8, dtype=bool))
    best = model.solve(c, 0, np.inf, None)
    for start in (np.zeros(8), np.ones(8), np.full(8, 0.5), best):  # poor, infeasible, not integer, the best one
        assert c @ model.solve(c, 0, np.inf, None, start) == pytest.approx(c @ best)


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


def test_equalities_of_integer_decisions():
    """Given equalities and decisions that bounds fix, compared with all points."""
    rows = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1e3, 1e3]])
    bounds = [(0, 1), (0, 1), (0, 1), (0, 2), (0, 2)]
    problem = {"A_eq": rows, "b_eq": [2.0, 2e3], "bounds": [*bounds[:2], (0, 0.5), *bounds[3:]]}
    points = np.array(list(itertools.product(range(2), range(2), [0], range(3), range(3))), dtype=float)
    points = points[(points @ rows.T == problem["b_eq"]).all(axis=1)]
    region = MixedInteger(**problem)
    E = region.equalities()
    assert_allclose(E @ E.T, np.eye(len(E)), atol=1e-12)
    assert_allclose(E @ (points - points[0]).T, 0.0, atol=1e-12)
    # The third decision is 0, so that the first two are 1.
    assert len(E) == 4
    C = np.random.default_rng(0).normal(size=(6, 5))
    assert_allclose(region.visible_costs(C) @ E.T, 0.0, atol=1e-12)
    assert_allclose((C * region.argmin(region.visible_costs(C))).sum(axis=1), (C @ points.T).min(axis=1))
    # With right-hand sides that vary, only decisions that are fixed whatever they are.
    varying = region.with_rows({"b_eq": np.tile(problem["b_eq"], (6, 1))}, 6, 5)
    assert_allclose(varying.equalities(5) @ (points - points[0]).T, 0.0, atol=1e-12)
    assert len(varying.equalities(5)) == 3
    assert MixedInteger(bounds=(0, 1)).equalities(3).shape == (0, 3)


def test_training_ignores_costs_along_equalities_of_integer_decisions():
    """The same program as a polytope with integer vertices and as an integer region: one optimum."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    C = X @ rng.normal(size=(2, 4)) + rng.normal(size=(40, 4))
    rows = {"A_eq": [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]], "b_eq": [1, 1, 1], "bounds": (0, 1)}
    models = [sk.SPOPlusRegressor(region).fit(X, C) for region in (MixedInteger(**rows), sk.Assignment(2))]
    assert max(model.duality_gap_ for model in models) <= 1e-6
    assert_allclose(models[0].objective_, models[1].objective_, rtol=1e-5)
    E = models[0].region_.equalities(4)
    assert len(E) == 3
    assert_allclose(E @ models[0].coef_, E @ models[1].coef_, atol=1e-8)  # set by least squares


def test_the_sense_of_a_knapsack_is_shown():
    """No other region maximizes by default."""
    for sense in ("max", "min"):
        region = sk.Knapsack([3, 4, 5], 8, **({} if sense == "max" else {"sense": sense}))
        for shown in (region, clone(region), sk.SPOPlusRegressor(region, alpha=0.5), sk.Product([region], sense=sense)):
            assert f"Knapsack(capacity=8, sense='{sense}', weights=[3, 4, 5])" in repr(shown)
        rng = np.random.default_rng(0)
        X, C = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
        model = sk.SPOPlusRegressor(region, alpha=0.1).fit(X, C)
        assert ("maximized" in str(model.report(X, C))) == (sense == "max")
        assert ("maximized" in str(sk.held_out_risk(model, X, C, n_resamples=100))) == (sense == "max")
    assert "Knapsack" in sk.SPOPlusRegressor.score.__doc__ and 'sense="max"' in sk.SPOPlusRegressor.score.__doc__
    names = [name for name in sk.regions.__all__ if hasattr(getattr(sk.regions, name), "get_params")]
    defaults = {name: inspect.signature(getattr(sk.regions, name)).parameters.get("sense") for name in names}
    assert [name for name, sense in defaults.items() if sense is not None and sense.default != "min"] == ["Knapsack"]


WEIGHTS = np.random.default_rng(0).integers(1, 6, size=(2, 12))


@pytest.mark.parametrize(
    ("region", "capacities"),
    [
        (sk.Knapsack(WEIGHTS[0], 9), np.random.default_rng(1).integers(0, 40, size=101)),
        (sk.Knapsack(WEIGHTS, [9, 14]), np.random.default_rng(2).integers(0, 40, size=(101, 2))),
        (sk.Knapsack(WEIGHTS[0], 9, integer=False), np.random.default_rng(3).uniform(0, 40, size=101)),
    ],
    ids=["whole", "two resources", "fractional"],
)
def test_capacity_of_each_row(region, capacities):
    """Ties included; each row is compared with its own region."""
    rng = np.random.default_rng(4)
    C = rng.integers(-3, 8, size=(101, 12)) + rng.choice([0.0, 0.25], size=(101, 12))
    capacities[40:70] = 40  # nothing is binding there
    view = region.with_rows({"capacity": capacities}, 101, 12)
    expected = view.argmin(C)
    for row in range(0, 101, 10):
        assert_array_equal(clone(region).set_params(capacity=capacities[row]).argmin(C[row]), expected[row])
    some = rng.permutation(101)[:60]
    assert_array_equal(view.take(some).argmin(C[some]), expected[some])
    with pytest.raises(ValueError, match="100 rows of costs, but region_params has 101"):
        view.argmin(C[:100])
