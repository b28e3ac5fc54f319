"""Availability, k, bounds, sources and targets of each sample: oracles, capabilities and training by brute force."""

import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
from certificate_sets import ROWS
from row_optimum import listed, optimum
from scipy.optimize import nnls

import skspo as sk
from skspo._utils.limits import TimeIsUp
from skspo.regions import polyhedral
from skspo.regions.capabilities import has
from skspo.regions.check import check_region
from skspo.solvers import SOLVERS

N = 25
ALL = pytest.mark.parametrize("name", ROWS)


def problem(name, n=N, seed=0):
    """Region, parameters, vertices of each sample, and the view."""
    region, rows, each = ROWS[name](n, np.random.default_rng(seed))
    d = each[0].shape[1]
    return region, rows, each, check_region(region, d).with_rows(rows, n, d)


def costs(each, seed=0, whole=False):
    rng = np.random.default_rng(seed)
    shape = (len(each), each[0].shape[1])
    return rng.integers(-2, 3, size=shape).astype(float) if whole else rng.normal(size=shape)


def some(rows, take):
    return {key: np.asarray(value)[take] for key, value in rows.items()}


@ALL
@pytest.mark.parametrize("whole", [False, True])
def test_oracle_by_brute_force(name, whole):
    _, _, each, view = problem(name, 60)
    for seed in range(3):
        C = costs(each, seed, whole)
        W = view.solve_min(C)
        for w, c, points in zip(W, C, each, strict=True):
            assert c @ w == pytest.approx((points @ c).min(), abs=1e-9)
            assert np.abs(points - w).max(axis=1).min() < 1e-9 or (whole and _inside(w, points))


def _inside(w, points):
    """Whether a decision is in the convex hull; oracles that are solvers may return any optimal vertex."""
    return nnls(np.vstack([points.T, np.ones(len(points))]), np.append(w, 1.0))[1] < 1e-9


@ALL
def test_views_can_be_taken_and_pickled(name):
    _, _, each, view = problem(name)
    C = costs(each)
    W, take = view.solve_min(C), np.array([7, 3, 3, 20])
    np.testing.assert_array_equal(view.take(take).solve_min(C[take]), W[take])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(view)).solve_min(C), W)
    assert view._row_table(N).shape[0] == N
    if has(view, "repair"):
        before = view.take(take).repair(W[take])
        view.repair(W)
        np.testing.assert_allclose(view.take(take).repair(W[take]), before, atol=1e-9)


@ALL
def test_support_in_cone_form(name):
    _, _, each, view = problem(name)
    if not has(view, "support_epigraph"):
        assert name == "available-items"
        return
    V = costs(each)
    expected = np.array([(points @ v).max() for points, v in zip(each, V, strict=True)])
    variable = cp.Variable(V.shape)
    t, constraints = view.support_epigraph(variable)
    cp.Problem(cp.Minimize(cp.sum(t)), [*constraints, variable == V]).solve(solver="CLARABEL")
    np.testing.assert_allclose(t.value, expected, atol=1e-6)


@ALL
def test_repair(name):
    """Decisions stay, others are moved to the nearest edge of the region, or near it."""
    _, _, each, view = problem(name)
    if not has(view, "repair"):
        return
    rng = np.random.default_rng(0)
    inside = np.array([rng.dirichlet(np.ones(len(points))) @ points for points in each])
    np.testing.assert_allclose(view.repair(inside), inside, atol=1e-9)
    repaired = view.repair(inside + rng.normal(size=inside.shape))
    for w, points in zip(repaired, each, strict=True):
        assert _inside(w, points)
    # Iterates of a solver that was stopped early may be anywhere.
    for size in (1e6, 1e12):
        for w, points in zip(view.repair(inside + size * rng.normal(size=inside.shape)), each, strict=True):
            assert _inside(w, points)


@ALL
def test_standard_form_and_interior(name):
    _, _, each, view = problem(name)
    if not has(view, "standard_form"):
        assert name == "available-items"
        return
    d = each[0].shape[1]
    form, (center, is_open) = view.standard_form(d), view._interior()
    assert form.varies
    np.testing.assert_allclose(center @ form.A.toarray().T, form.b, atol=1e-13)
    assert (np.minimum(center - form.lower, form.upper - center)[is_open] > 1e-9).all()
    for i, points in enumerate(each):
        low, high = points.min(axis=0) > form.lower[i, :d] + 1e-9, points.max(axis=0) < form.upper[i, :d] - 1e-9
        strict = (np.ptp(points, axis=0) > 1e-9) | (low & high)
        np.testing.assert_array_equal(strict, is_open[i, :d])
        assert _inside(center[i, :d], points)


@ALL
def test_equalities_hold(name):
    _, _, each, view = problem(name)
    d = each[0].shape[1]
    for E in (view.equalities(d), view._always_hidden(d)):
        np.testing.assert_allclose(E @ E.T, np.eye(len(E)), atol=1e-12)
        for points in each:
            assert np.abs(np.ptp(points @ E.T, axis=0)).max(initial=0.0) < 1e-9


@ALL
def test_worst_decisions(name):
    _, _, each, view = problem(name, 40)
    if not has(view, "worst_argmin"):
        return
    C, C_true = costs(each, 0, True), costs(each, 1)
    W = view.worst_argmin(C, C_true)
    for w, c, true, points in zip(W, C, C_true, each, strict=True):
        value = points @ c
        assert true @ w == pytest.approx((points[value <= value.min() + 1e-9] @ true).max(), abs=1e-9)


# -- training ----------------------------------------------------------------------------------------------------------


def data(each, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(each), 2))
    return X, X @ rng.normal(size=(2, each[0].shape[1])) + costs(each, seed)


def truth(region, each, view, X, C, **penalty):
    best = view.argmin(C)
    return optimum(X, C, best, listed(each), sense=region.sense, **penalty)


@ALL
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_every_solver_finds_the_optimum(name, alpha):
    region, rows, each, view = problem(name)
    X, C = data(each)
    least = truth(region, each, view, X, C, alpha=alpha)
    able = [solver for solver, cls in SOLVERS.items() if not cls.missing(view) and solver != "sgd"]
    assert {"bundle", "dual"} <= set(able)
    assert ("interior-point" in able) == ("conic" in able) == (name != "available-items")
    for solver in ("auto", *able):
        if solver in ("bundle", "dual") and alpha == 0:
            continue  # slow on small problems without a penalty; the certificate tests have them
        model = sk.SPOPlusRegressor(region, alpha=alpha, solver=solver).fit(X, C, region_params=rows)
        assert model.duality_gap_ <= 1e-6
        assert model.objective_ == pytest.approx(least, rel=2e-6, abs=2e-6)
        assert model.lower_bound_ <= least + 1e-7 * (1 + least)


@ALL
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_certificate_of_rough_solutions(name):
    region, rows, each, view = problem(name)
    X, C = data(each, 1)
    least = truth(region, each, view, X, C, alpha=0.05)
    model = sk.SPOPlusRegressor(region, alpha=0.05, solver="sgd", max_iter=1, random_state=0)
    model.fit(X, C, region_params=rows)
    assert model.lower_bound_ <= least + 1e-7 * (1 + least)
    assert model.objective_ >= least - 1e-7 * (1 + least)


@pytest.mark.parametrize("name", ["available", "top", "bounds", "pairs", "paths"])
@pytest.mark.parametrize(
    "params", [{"shared": True}, {"l1_ratio": 0.5}, {"prior": "least_squares"}], ids=lambda params: next(iter(params))
)
def test_interior_point_with_other_models(name, params):
    """Interior point agrees with bundle, whose bound needs nothing but the oracle."""
    region, rows, each, _ = problem(name)
    X, C = data(each)
    if "shared" in params:
        X = np.random.default_rng(5).normal(size=(N, 2 * C.shape[1]))
    found = [
        sk.SPOPlusRegressor(region, alpha=0.1, solver=solver, **params).fit(X, C, region_params=rows)
        for solver in ("interior-point", "bundle")
    ]
    for model in found:
        assert model.duality_gap_ <= 1e-6
    assert found[0].objective_ == pytest.approx(found[1].objective_, rel=3e-6, abs=1e-7)


def test_many_patterns_have_no_standard_form(monkeypatch):
    """Then auto uses another solver, and closes the gap."""
    region, rows, each, _ = problem("available")
    X, C = data(each)
    first = sk.SPOPlusRegressor(region, alpha=0.1, solver="interior-point").fit(X, C, region_params=rows)
    monkeypatch.setattr(polyhedral, "MOST_PATTERNS", 3)
    second = sk.SPOPlusRegressor(region, alpha=0.1).fit(X, C, region_params=rows)
    assert second.solver_ != "interior-point"
    assert second.duality_gap_ <= 1e-6
    assert second.objective_ == pytest.approx(first.objective_, rel=2e-6)


def test_few_linear_programs(monkeypatch):
    """Interior points are carried over from sample to sample, unless constraints differ much."""
    calls = []
    one = polyhedral._interior_point
    monkeypatch.setattr(polyhedral, "_interior_point", lambda *args: calls.append(args) or one(*args))
    region = sk.Polyhedron([[1, 2, 3]], [4], [[1, 1, 1]], [2], bounds=(0, 2))
    rng = np.random.default_rng(0)
    rows = {"b_ub": rng.uniform(4, 5, 300), "b_eq": rng.uniform(1.8, 2, 300), "upper": rng.uniform(2, 3, (300, 3))}
    view = region.with_rows(rows, 300, 3)
    view._interior()
    assert len(calls) <= 3
    calls.clear()
    view._interior()
    view.take(np.arange(5))._interior()
    assert not calls


@pytest.mark.parametrize("solver", ["interior-point", "bundle", "conic", "auto"])
def test_no_time_for_interior_points(monkeypatch, solver):
    """The bound is still valid, and there is a warning."""

    def late(*args):
        raise TimeIsUp

    region, rows, each, view = problem("bounds")
    X, C = data(each)
    least = truth(region, each, view, X, C, alpha=0.1)
    monkeypatch.setattr(polyhedral, "_interior_point", late)
    with warnings.catch_warnings(record=True):
        model = sk.SPOPlusRegressor(region, alpha=0.1, solver=solver, time_limit=60).fit(X, C, region_params=rows)
    assert model.lower_bound_ <= least * (1 + 1e-7) <= model.objective_ * (1 + 2e-7)
    with pytest.raises(sk.SolverError, match="no time to find a point inside"):
        view.repair(view.argmin(C) + 1.0)
    W = view.argmin(C)
    np.testing.assert_array_equal(view.repair(W), W)


# -- the same as the plain region --------------------------------------------------------------------------------------

PLAIN = [
    (sk.Simplex(), {"available": np.ones((N, 4))}, sk.Simplex(), 4),
    (sk.TopK(2), {"available": np.ones((N, 4), dtype=bool)}, sk.TopK(2), 4),
    (sk.TopK(1), {"k": np.full(N, 3)}, sk.TopK(3), 4),
    (sk.Box(-1, 2), {"available": np.ones((N, 4))}, sk.Box(-1, 2), 4),
    (sk.Knapsack([3, 4, 5, 9], 8), {"available": np.ones((N, 4))}, sk.Knapsack([3, 4, 5, 9], 8), 4),
    (sk.Knapsack([3, 4], 6, integer=False), {"available": np.ones((N, 2))}, sk.Knapsack([3, 4], 6, integer=False), 2),
    (sk.Assignment(2, 3), {"available": np.ones((N, 6))}, sk.Assignment(2, 3), 6),
    (sk.Assignment(2), {"available": np.ones((N, 4))}, sk.Assignment(2), 4),
    (
        sk.ShortestPath.grid(3, 3),
        {"source": np.full(N, 1), "target": np.full(N, 7)},
        sk.ShortestPath(sk.ShortestPath.grid(3, 3).edges, 1, 7),
        12,
    ),
    (
        sk.Polyhedron([[1, 2, 4]], [6], [[1, 1, 1]], [2]),
        {"upper": np.tile([1.5, np.inf, 1.0], (N, 1)), "lower": np.full(N, 0.1)},
        sk.Polyhedron([[1, 2, 4]], [6], [[1, 1, 1]], [2], bounds=[(0.1, 1.5), (0.1, None), (0.1, 1.0)]),
        3,
    ),
    (
        sk.MixedInteger([[1, 2, 4]], [6], bounds=(0, 3)),
        {"upper": np.tile([1, 0, 2], (N, 1)), "lower": np.zeros(N)},
        sk.MixedInteger([[1, 2, 4]], [6], bounds=[(0, 1), (0, 0), (0, 2)]),
        3,
    ),
]


@pytest.mark.parametrize(("region", "rows", "plain", "d"), PLAIN, ids=lambda x: type(x).__name__ if x else "")
def test_equal_rows_are_a_plain_region(region, rows, plain, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    C = X @ rng.normal(size=(2, d)) + rng.normal(size=(N, d))
    view = region.with_rows(rows, N, d)
    W = view.argmin(C)
    np.testing.assert_allclose(W, plain.argmin(C), atol=1e-9)
    first = sk.SPOPlusRegressor(region, alpha=0.05, tol=1e-8).fit(X, C, region_params=rows)
    second = sk.SPOPlusRegressor(plain, alpha=0.05, tol=1e-8).fit(X, C)
    assert first.duality_gap_ <= 1e-8
    assert first.objective_ == pytest.approx(second.objective_, rel=2e-8)


def test_rows_reach_searches_and_words():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(N, 2)), rng.normal(size=(N, 7))
    rows = sk.row_params(source=["a", "b"] * 12 + ["c"], target=["d"] * 20 + ["e"] * 5)
    path = sk.ShortestPath([("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("c", "e")])
    model = sk.SPOPlusRegressor(path, alpha=0.1).fit(X, C, region_params=rows)
    for words, one in zip(model.chosen(X, region_params=rows), rows, strict=True):
        assert (words[0], words[-1]) == (one["source"], one["target"])
    frame = model.decide(X, region_params=rows, as_frame=True)
    assert list(frame.columns) == path.variable_names
    take = np.arange(4)
    np.testing.assert_array_equal(model.decide(X[:4], region_params=rows[take]), frame.to_numpy()[:4])


def test_labels_of_nodes_may_be_tuples():
    path = sk.ShortestPath([((0, 0), (0, 1)), ((0, 1), (1, 1)), ((0, 0), (1, 1))], (0, 0), (1, 1))
    view = path.with_rows({"source": [(0, 0), (0, 1)]}, 2, 3)
    np.testing.assert_array_equal(view.argmin(np.ones((2, 3))), [[0, 0, 1], [0, 1, 0]])


def test_paths_with_cycles_between_some_nodes_only():
    """HiGHS where there is a cycle, dynamic programming elsewhere."""
    edges = [("s", "a"), ("a", "b"), ("b", "a"), ("b", "t"), ("s", "b"), ("a", "t"), ("t", "u"), ("t", "v"), ("v", "u")]
    path = sk.ShortestPath(edges, "s", "t")
    rows = {"source": ["s", "t", "a", "t"], "target": ["t", "u", "t", "u"]}
    view = path.with_rows(rows, 4, 9)
    C = np.random.default_rng(0).uniform(0.1, 1, (4, 9))
    W = view.argmin(C)
    for i in range(4):
        one = sk.ShortestPath(edges, rows["source"][i], rows["target"][i])
        np.testing.assert_allclose(W[i], one.argmin(C[i]), atol=1e-9)
    assert view.oracle_is_solver
    assert sorted(paths.sweep is None for _, paths in view._data(9).groups(4)) == [False, True, True]


@pytest.mark.parametrize("matrix", [np.diag([1.0, 2.0, -1.0, 0.5]), np.array([[1.0, 1, 0, 0], [0, 0, 2, 1]])])
@pytest.mark.parametrize("name", ["top", "available"])
def test_images_of_regions_that_vary(name, matrix):
    """Also if the matrix is not injective: the inner decision is found by a linear program for each row."""
    region, rows, each, _ = problem(name)
    image = sk.LinearImage(region, matrix)
    X, C = data([points @ matrix.T for points in each])
    found = [
        sk.SPOPlusRegressor(image, alpha=0.1, solver=solver).fit(X, C, region_params=rows)
        for solver in ("interior-point", "bundle", "auto")
    ]
    for model in found:
        assert model.duality_gap_ <= 1e-6
        assert model.objective_ == pytest.approx(found[1].objective_, rel=3e-6)


def test_images_of_paths_between_different_nodes():
    region, rows, each, _ = problem("paths")
    image = sk.LinearImage(region, np.ones((1, 7)), known_cost=np.arange(7.0))
    both = image.with_rows(rows | {"known_cost": np.tile(np.arange(7.0), (N, 1))}, N, 2)
    W = both.argmin(np.ones((N, 2)))
    best = [(points @ (1.0 + np.arange(7.0))).min() for points in each]
    np.testing.assert_allclose(W.sum(axis=1), best)
    words = image.with_rows(rows, N, 2).chosen(np.ones((N, 2)))
    assert [own[0] for own in words] == rows["source"]


@pytest.mark.parametrize("solver", ["conic", "bundle", "dual"])
def test_free_variables(solver):
    """A variable without bounds has infinite room to move in."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    C = X @ rng.normal(size=(2, 3)) + rng.normal(size=(40, 3))
    sides = np.vstack([np.eye(3), -np.eye(3)])
    widths = 1.0 + rng.random((40, 6))
    free = sk.Polyhedron(A_ub=sides, b_ub=np.ones(6), bounds=(None, None))
    model = sk.SPOPlusRegressor(free, alpha=0.1, solver=solver).fit(X, C, region_params={"b_ub": widths})
    bounds = {"lower": -widths[:, 3:], "upper": widths[:, :3]}
    box = sk.SPOPlusRegressor(sk.Box(-1.0, 1.0), alpha=0.1).fit(X, C, region_params=bounds)
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(box.objective_, rel=2e-6)
