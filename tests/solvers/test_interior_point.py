"""The interior-point solver against CVXPY, on random and on degenerate problems."""

import tracemalloc
import warnings
from itertools import combinations

import numpy as np
import pytest
from marks import NIGHTLY, pairs
from numpy.testing import assert_allclose
from problems import noisy_data
from sklearn.exceptions import ConvergenceWarning
from solver_problems import PENALTIES, POLYTOPES, small_data

from skspo import (
    Assignment,
    Box,
    Knapsack,
    L1Ball,
    Markowitz,
    Polyhedron,
    Product,
    ShortestPath,
    Simplex,
    SPOPlusLoss,
    SPOPlusRegressor,
    TopK,
)
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo.datasets import make_shortest_path
from skspo.solvers import ConicSolver
from skspo.solvers.interior_point.solver import InteriorPointSolver
from skspo.solvers.interior_point.state import region_form

_ROOT = np.random.default_rng(0).normal(size=(4, 4))
COVARIANCE = _ROOT @ _ROOT.T + 0.1 * np.eye(4)
SMALLEST = 1.0 / float(np.linalg.inv(COVARIANCE).sum())  # or less: the minimum-risk portfolio may need negative weights
REGIONS = [region for region, _ in POLYTOPES] + [
    Box([0, 0, -1, 2], [1, 0, 2, 5]),  # a fixed variable
    Polyhedron([[1, 1, 1, 1], [-1, 2, 0, 1]], [2, 3], bounds=(-1, 1.5)),
    # no bounds at all: the constraints alone bound it
    Polyhedron(np.vstack([np.eye(4), -np.eye(4), np.ones(4)]), [1, 1, 1, 1, 1, 1, 1, 1, 2], bounds=(None, None)),
    # w0 = w1 = 0 by implication, and a redundant equality
    Polyhedron([[1, 1, 0, 0]], [0], [[0, 0, 1, 1], [0, 0, 2, 2]], [1, 2]),
    # only an upper bound on one variable
    Polyhedron([[-1, 0, 0, 0]], [1], [[0, 1, 1, 1]], [2], bounds=[(None, 1), (0, 1), (0, 1), (0, 1)]),
    ShortestPath([(0, 1), (1, 2), (2, 0), (0, 2)], 0, 2),  # a cycle
    ShortestPath([(0, 1), (1, 2), (0, 2), (0, 3)], 0, 2),  # a dead end
    Knapsack([1, 2, 3, 4], 5, integer=False),
    Knapsack([[1, 2, 3, 4], [4, 1, 2, 1]], [5, 4], integer=False),
    Assignment(2, sense="max"),
    Markowitz(COVARIANCE, 1.2 * SMALLEST),
    Markowitz(COVARIANCE, 3.0 * SMALLEST, sense="max"),
    Markowitz(COVARIANCE, 0.5 * SMALLEST, budget="at_most"),
]


def certified_by_both(region, X, C, weight=None, tol=1e-6, **penalty):
    objective = InMemoryObjective(SPOPlusLoss(region), X, C, weight, **penalty)
    conic = ConicSolver().solve(objective, Run())
    ours = InteriorPointSolver(tol=tol).solve(objective, Run())
    # Clarabel's duals leave moments of 2e-11 in Markowitz regions, which costs 1e-5 over a radius of 10,000.
    accurate = 1e-4 if isinstance(region, Markowitz) else 1e-6
    assert objective.relative_gap(conic.objective, conic.lower_bound) <= accurate
    size = max(conic.objective, 1e-2 * objective.trivial_value())
    slack = 1e-9 * size
    if isinstance(region, (Polyhedron, Markowitz)):
        # Objectives are evaluated by the oracle, here a solver: its tolerance is 1e-9 of |2 c_hat - c|, and
        # coefficients in flat directions may be large.  ``test_bound_against_all_vertices`` has no such tolerance.
        costs = [2.0 * objective.design.predict(result.coef) - objective.C for result in (conic, ours)]
        slack += 1e-9 * max(float(objective.weight @ np.abs(U).sum(axis=1)) for U in costs)
    assert ours.lower_bound <= conic.objective + slack
    assert conic.lower_bound <= ours.objective + slack
    assert ours.converged, ours.message
    assert objective.relative_gap(ours.objective, ours.lower_bound) <= tol
    assert abs(ours.objective - conic.objective) <= 2e-6 * size
    return ours


# All regions without a penalty: linear programs are the most degenerate problems.
CASES = [(region, {}) for region in REGIONS] + pairs(REGIONS, PENALTIES[1:], 2)


@pytest.mark.parametrize(
    ("region", "penalty"), CASES, ids=lambda x: str(x) if isinstance(x, dict) else type(x).__name__
)
def test_agrees_with_conic(region, penalty):
    X, C = small_data(4, n=20)
    certified_by_both(region, X, C, **penalty)


@pytest.mark.parametrize("seed", range(200 if NIGHTLY else 60))
def test_random_problems(seed):
    """Regions x penalties x weights x shapes: n < p, collinear, constant and zero features, duplicated rows, ties."""
    rng = np.random.default_rng(seed)
    d, n, p = int(rng.integers(2, 7)), int(rng.integers(1, 30)), int(rng.integers(1, 7))
    X = rng.normal(size=(n, p)) * np.exp2(rng.integers(-8, 8, size=p)) + rng.integers(-3, 4, size=p)
    C = rng.normal(size=(n, d)) + (X / np.abs(X).max()) @ rng.normal(size=(p, d))
    if seed % 3 == 0 and p > 1:
        X[:, 1] = 2 * X[:, 0]
    if seed % 4 == 0:
        X[:, -1] = rng.choice([0.0, 5.0])
    if seed % 5 == 0:
        C = np.round(2 * C)  # ties
    if seed % 6 == 0:
        X, C = np.vstack([X, X[: n // 2]]), np.vstack([C, C[: n // 2]])
    weight = rng.integers(0, 4, size=len(X)) + (0.5 if rng.random() < 0.5 else 0.0)
    weight[0] += 1.0
    A = rng.normal(size=(3, d))
    region = [
        Simplex(),
        Box(-rng.random(d), rng.random(d)),
        TopK(int(rng.integers(1, d))),
        L1Ball(2.0),
        Knapsack(rng.random(d) + 0.1, d / 4, integer=False),
        Polyhedron(A, A @ np.full(d, 0.5) + rng.random(3), bounds=(0, 1)),
    ][seed % 6]
    penalty = PENALTIES[int(rng.integers(len(PENALTIES)))]
    certified_by_both(region, X, C, weight if rng.random() < 0.7 else None, **penalty)


@pytest.mark.parametrize("seed", range(15))
def test_bound_against_all_vertices(seed):
    """The oracle of a Polyhedron is a solver with a tolerance; the list of all vertices has none."""
    rng = np.random.default_rng(seed)
    d, n, p = int(rng.integers(2, 6)), int(rng.integers(1, 30)), int(rng.integers(1, 7))
    X = rng.normal(size=(n, p)) * np.exp2(rng.integers(-8, 8, size=p)) + rng.integers(-3, 4, size=p)
    C = rng.normal(size=(n, d)) + (X / np.abs(X).max()) @ rng.normal(size=(p, d))
    A = rng.normal(size=(3, d))
    b = A @ np.full(d, 0.5) + rng.random(3)
    G, h = np.vstack([A, np.eye(d), -np.eye(d)]), np.r_[b, np.ones(d), np.zeros(d)]
    corners = (np.linalg.solve(G[list(i)], h[list(i)]) for i in combinations(range(d + d + 3), d) if _regular(G, i))
    vertices = np.array([x for x in corners if (G @ x <= h + 1e-12).all()])
    region = Polyhedron(A, b, bounds=(0, 1))
    objective = InMemoryObjective(SPOPlusLoss(region), X, C, None, **PENALTIES[seed % len(PENALTIES)])
    for solver in (InteriorPointSolver(), ConicSolver()):
        result = solver.solve(objective, Run())
        U = 2.0 * objective.design.predict(result.coef) - objective.C
        losses = np.einsum("ij,ij->i", U, objective.W) - (U @ vertices.T).min(axis=1)
        exact = float(objective.weight @ losses) + objective.penalty(result.coef)
        size = max(exact, 1e-2 * objective.trivial_value())
        assert result.lower_bound <= exact + 1e-12 * size
        assert abs(result.objective - exact) <= 1e-8 * size


def _regular(G, rows):
    return abs(np.linalg.det(G[list(rows)])) > 1e-9


@pytest.mark.parametrize("cost_scale", [1e-8, 1e8])
@pytest.mark.parametrize("feature_scale", [1e-6, 1e6])
def test_units_do_not_matter(cost_scale, feature_scale):
    grid = ShortestPath.grid(3, 3)
    X, C = make_shortest_path(100, grid=(3, 3), degree=4, noise=0.5, random_state=0)
    base = SPOPlusRegressor(grid, solver="interior-point").fit(X, C)
    model = SPOPlusRegressor(grid, solver="interior-point").fit(X * feature_scale, C * cost_scale)
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(base.objective_ * cost_scale, rel=2e-6)
    changed = (model.decide(X * feature_scale) != base.decide(X)).any(axis=1)
    assert changed.mean() <= 0.05  # ties between optimal models


@pytest.mark.slow
def test_more_samples_than_one_chunk(monkeypatch):
    X, C = make_shortest_path(300, grid=(3, 3), degree=4, noise=0.5, random_state=0)
    grid = ShortestPath.grid(3, 3)
    whole = SPOPlusRegressor(grid, solver="interior-point").fit(X, C)
    monkeypatch.setattr("skspo.solvers.interior_point.state.BLOCK_NUMBERS", 1)
    chunked = SPOPlusRegressor(grid, solver="interior-point").fit(X, C)
    assert chunked.objective_ == pytest.approx(whole.objective_, rel=1e-9)
    assert chunked.n_iter_ == whole.n_iter_


def test_max_iter_gives_the_best_point_and_a_valid_bound():
    X, C = make_shortest_path(100, grid=(3, 3), degree=4, noise=0.5, random_state=0)
    grid = ShortestPath.grid(3, 3)
    exact = SPOPlusRegressor(grid, solver="interior-point").fit(X, C)
    for limit in (1, 3, 6):
        with pytest.warns(ConvergenceWarning, match=f"max_iter={limit} was reached"):
            model = SPOPlusRegressor(grid, solver="interior-point", max_iter=limit).fit(X, C)
        assert model.lower_bound_ <= exact.objective_ * (1 + 1e-9) <= model.objective_ * (1 + 2e-9)
        assert model.n_iter_ == limit


def test_a_region_of_one_point_and_perfect_fits():
    X, C = small_data(3, n=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        point = SPOPlusRegressor(Box([1, 2, 3], [1, 2, 3]), solver="interior-point", alpha=0.1).fit(X, C)
        costs = X @ np.ones((3, 4)) + X[:, :1] * [1, 2, 3, 4]
        perfect = SPOPlusRegressor(Simplex(), solver="interior-point").fit(X, costs)
    assert point.objective_ == pytest.approx(0.0, abs=1e-12)
    assert perfect.objective_ == pytest.approx(0.0, abs=1e-8)


def test_a_risk_limit_without_interior_uses_conic():
    """Only the minimum-risk portfolio is feasible: there is no interior."""
    X, C = small_data(3, n=20)
    model = SPOPlusRegressor(Markowitz(np.eye(3), 1.0 / 3.0)).fit(X, C)
    assert model.objective_ == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("region", REGIONS, ids=lambda r: type(r).__name__)
def test_reduced_form_is_the_region(region):
    """Its center is strictly feasible, and its decisions are the region's."""
    form = region_form(region, 4)
    assert (form.center > 0).all()
    assert form.S is None or form.center @ form.S @ form.center < 1
    assert (form.center[form.bounded] < form.h).all()
    assert form.A.shape[0] == 0 or np.linalg.matrix_rank(form.A) == form.A.shape[0]
    w = form.offset + form.E @ form.center
    np.testing.assert_allclose(region.repair(w[None, :])[0], w, atol=1e-9)
    assert form.directions.shape[1] + region.equalities(4).shape[0] == 4
    np.testing.assert_allclose(region.equalities(4) @ form.directions, 0.0, atol=1e-9)


def test_thinned_objective_is_that_of_the_rows():
    X, C = small_data(4, n=30)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=30)
    whole = InMemoryObjective(SPOPlusLoss(Simplex()), X, C, weight)
    Theta = np.random.default_rng(1).normal(size=whole.shape)
    parts = [whole.take(slice(i, None, 3), 1.0).loss_gradient(Theta) for i in range(3)]
    thin = whole.thinned(3)
    assert thin.n_samples == 10
    assert thin.weight.sum() == pytest.approx(1.0)
    share = whole.weight[::3].sum()
    assert thin.value(Theta) * share == pytest.approx(parts[0][0])
    np.testing.assert_allclose(thin.value_gradient(Theta)[1] * share, parts[0][1])
    assert whole.value(Theta) == pytest.approx(sum(part[0] for part in parts))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_variables_without_bounds_anywhere_in_a_product(first, shared):
    """Slacks of one factor come before the variables of the next, so their places differ."""
    cross = Polyhedron(A_ub=[[1, 1], [1, -1], [-1, 1], [-1, -1]], b_ub=np.ones(4), bounds=(None, None))
    factors = [(cross, 2), (Simplex(), 3)]
    factors = factors if first else factors[::-1]
    region = Product([factor for factor, _ in factors], [size for _, size in factors])
    X, C = noisy_data(30, d=5)
    X = np.random.default_rng(1).normal(size=(30, 10)) if shared else X
    same = Product([L1Ball() if factor is cross else factor for factor, _ in factors], region.sizes)
    params = {"solver": "interior-point", "shared": shared}
    models = [SPOPlusRegressor(kind, **params).fit(X, C) for kind in (region, same)]
    assert max(model.duality_gap_ for model in models) <= 1e-6
    assert_allclose(models[0].objective_, models[1].objective_, rtol=1e-5)


def test_reduced_form_of_decisions_fixed_at_their_upper_bound():
    # w_0 + w_1 >= 2 within the unit box leaves only w_2 free.
    region = Polyhedron(A_ub=[[-1.0, -1.0, 0.0]], b_ub=[-2.0], bounds=(0, 1))
    form = region_form(region, 3)
    assert_allclose((form.offset + form.E @ form.center)[:2], 1.0)
    assert form.directions.shape == (3, 1)
    X, C = noisy_data(20, d=3)
    model = SPOPlusRegressor(region, solver="interior-point").fit(X, C)
    assert model.duality_gap_ <= 1e-6


def test_a_hull_of_many_decisions_needs_no_square_matrix():
    rng = np.random.default_rng(0)
    region = Knapsack(rng.integers(3, 9, (2, 18)), [24.0, 25.0])
    X, C = noisy_data(10, d=18)
    size = len(region._points(18).V)
    tracemalloc.start()
    model = SPOPlusRegressor(region, alpha=0.1, solver="interior-point", tol=1e-5).fit(X, C)  # 6e-6 is the end
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < 8 * size**2 / 2
    other = SPOPlusRegressor(region, alpha=0.1, solver="bundle").fit(X, C)
    assert model.duality_gap_ <= 1e-5
    assert other.duality_gap_ <= 1e-6
    assert_allclose(model.objective_, other.objective_, rtol=1e-5)
