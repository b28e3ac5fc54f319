"""The bundle solver against the conic solver, brute force over vertices, and its own certificate."""

import itertools
import warnings

import numpy as np
import pytest
from marks import pairs
from numpy.testing import assert_array_equal
from problems import noisy_data
from sklearn.exceptions import ConvergenceWarning
from solver_problems import PENALTIES, small_data, vertices_truth

from skspo import (
    Box,
    EntropySimplex,
    Knapsack,
    L1Ball,
    OracleRegion,
    ShortestPath,
    Simplex,
    SPOPlusLoss,
    SPOPlusRegressor,
)
from skspo._training.in_memory import InMemoryObjective
from skspo._training.objective import Bound
from skspo._training.run import Run
from skspo.datasets import make_cost_sensitive_classification, make_shortest_path
from skspo.solvers import BundleSolver
from skspo.solvers.bundle.cut_model import PATIENCE, CutModel
from skspo.solvers.bundle.program import minimize_highest

WEIGHTS, CAPACITY = np.array([[3, 4, 2, 5], [2, 1, 4, 3]]), np.array([7, 6])
PACKINGS = np.array([v for v in itertools.product([0.0, 1.0], repeat=4) if (WEIGHTS @ v <= CAPACITY).all()])
REGIONS = [
    Simplex(),
    Simplex(sense="max"),
    Box(),
    L1Ball(2.0),
    ShortestPath([(0, 1), (0, 2), (1, 2), (0, 2)], 0, 2),
    EntropySimplex(),
]


def fit(region, X, C, **params):
    """Model, and whether the solver gave a warning."""
    weight = params.pop("weight", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SPOPlusRegressor(region, **{"solver": "bundle", **params}).fit(X, C, sample_weight=weight)
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
    return model, bool(caught)


def objective_of(region, X, C, **params):
    return InMemoryObjective(SPOPlusLoss(region), X, C, **params)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("region", REGIONS, ids=str)
def test_agrees_with_conic(region, penalty):
    X, C = small_data(4)
    exact = SPOPlusRegressor(region, solver="conic", tol=1e-9, **penalty)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        exact.fit(X, C)
    model, warned = fit(region, X, C, **penalty)
    assert not warned
    assert model.duality_gap_ <= 1e-6
    assert model.lower_bound_ <= exact.objective_ * (1 + 1e-9)
    assert exact.lower_bound_ <= model.objective_ * (1 + 1e-9)
    assert model.objective_ == pytest.approx(exact.objective_, rel=2e-6)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_integer_knapsack_reaches_the_optimum_over_the_packings(penalty):
    X, C = small_data(4)
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(X))
    region = Knapsack(WEIGHTS, CAPACITY, sense="max")
    truth = vertices_truth(PACKINGS, X, C, sense="max", weight=weight, **penalty)
    model, warned = fit(region, X, C, weight=weight, **penalty)
    assert not warned
    # The textbook model itself is solved to about 1e-8.
    assert model.lower_bound_ <= truth * (1 + 1e-7)
    assert model.objective_ == pytest.approx(truth, rel=2e-6)


@pytest.mark.parametrize("penalty", PENALTIES[:3], ids=str)
def test_an_oracle_is_enough(penalty):
    X, C = make_shortest_path(200, degree=4, noise=0.5, random_state=0)
    grid = ShortestPath.grid(5, 5)
    known, _ = fit(grid, X, C, **penalty)
    model, warned = fit(OracleRegion(grid.argmin, 40), X, C, **penalty)
    assert not warned
    assert model.duality_gap_ <= 1e-6
    assert model.n_iter_ <= 40
    assert model.objective_ == pytest.approx(known.objective_, rel=2e-6)


@pytest.mark.slow
def test_badly_conditioned_classes_are_certified():
    X, C = make_cost_sensitive_classification(500, degree=2, noise=0.5, random_state=0)
    exact = SPOPlusRegressor(Simplex(), solver="conic").fit(X, C)
    model, warned = fit(Simplex(), X, C)
    assert not warned
    assert model.duality_gap_ <= 1e-6
    # Each proof against the other's value.
    assert model.lower_bound_ <= exact.objective_ * (1 + 1e-9)
    assert exact.lower_bound_ <= model.objective_ * (1 + 1e-9)
    assert model.n_iter_ <= 100


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "penalty"), pairs([(1, 8), (1, None), (3, 30), (1000, 40)], PENALTIES, 2), ids=str)
def test_few_groups_and_few_cuts_give_valid_bounds(limits, penalty):
    """Averaged cuts are weaker but valid, whether or not the gap closes."""
    n_groups, max_cuts = limits
    X, C = small_data(4)
    truth = vertices_truth(np.eye(4), X, C, **penalty)
    solver = BundleSolver(tol=1e-5, max_iter=150, n_groups=n_groups, max_cuts=max_cuts)
    model, warned = fit(Simplex(), X, C, solver=solver, **penalty)
    assert warned == (model.duality_gap_ > 1e-5)
    assert model.lower_bound_ <= truth * (1 + 1e-7)
    assert truth * (1 - 1e-7) <= model.objective_ <= 1.05 * truth


def test_exhausted_max_iter():
    X, C = make_shortest_path(200, degree=4, noise=0.5, random_state=0)
    grid = ShortestPath.grid(5, 5)
    truth, _ = fit(grid, X, C)
    start = objective_of(grid, X, C)
    first = start.value(start.least_squares)
    previous = np.inf
    for max_iter in (1, 4, 8):
        objective = objective_of(grid, X, C)
        result = BundleSolver(max_iter=max_iter).solve(objective, Run())
        assert not result.converged
        assert result.message == f"max_iter={max_iter} passes were used up"
        assert result.n_iter == max_iter
        assert 0 <= result.lower_bound <= truth.objective_ / objective.scale * (1 + 1e-9)
        assert truth.lower_bound_ / objective.scale <= result.objective <= min(first, previous) * (1 + 1e-12)
        assert result.objective == pytest.approx(objective.value(result.coef), rel=1e-12)
        previous = result.objective
    with pytest.warns(ConvergenceWarning, match="max_iter=3 passes"):
        SPOPlusRegressor(grid, solver="bundle", max_iter=3).fit(X, C)


@pytest.mark.parametrize("penalty", PENALTIES[:3], ids=str)
def test_warm_start_needs_fewer_passes(penalty):
    X, C = make_shortest_path(200, degree=4, noise=0.5, random_state=0)
    objective = objective_of(ShortestPath.grid(5, 5), X, C, **penalty)
    cold = BundleSolver().solve(objective, Run())
    warm = BundleSolver().solve(objective, Run(), cold.coef)
    assert cold.converged
    assert warm.converged
    assert warm.n_iter < cold.n_iter


def test_perfect_fit_and_nothing_to_decide():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    C = X @ rng.normal(size=(3, 5)) + 1.0
    model, warned = fit(Simplex(), X, C)
    assert not warned
    assert model.objective_ == pytest.approx(0.0, abs=1e-8)
    model, warned = fit(Simplex(), X, np.ones((50, 5)))
    assert not warned
    assert model.objective_ == 0


def test_more_features_than_samples_and_constant_columns():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(6, 10)), np.ones(6), np.zeros(6)])
    X = np.column_stack([X, X[:, 0]])
    C = rng.normal(size=(6, 4))
    for params in ({}, {"alpha": 0.1}, {"alpha": 0.1, "l1_ratio": 1.0}, {"fit_intercept": False}):
        model, warned = fit(Simplex(), X, C, **params)
        assert not warned
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("cost_scale", [1e-8, 1e8])
@pytest.mark.parametrize("feature_scale", [1e-6, 1e6])
def test_units_do_not_matter(cost_scale, feature_scale):
    X, C = small_data(4)
    base, _ = fit(Box(), X, C)
    model, warned = fit(Box(), X * feature_scale, C * cost_scale)
    assert not warned
    assert model.objective_ == pytest.approx(base.objective_ * cost_scale, rel=2e-6)


@pytest.mark.parametrize("alpha", [1e-9, 1e9])
def test_extreme_penalties(alpha):
    X, C = small_data(4)
    for prior, l1_ratio in itertools.product(["zero", "least_squares"], [0.0, 0.5, 1.0]):
        model, warned = fit(Simplex(), X, C, alpha=alpha, prior=prior, l1_ratio=l1_ratio)
        assert not warned
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("lasso", [0.0, 0.3, 30.0, 1e6])  # at last larger than every slope: all coefficients are zero
@pytest.mark.parametrize("size", [3, 40])
def test_quadratic_program_meets_its_optimality_conditions(size, lasso):
    rng = np.random.default_rng(0)
    group = np.sort(rng.integers(0, 8, 30))
    A, b = rng.normal(size=(30, size)), rng.normal(size=30)
    l1 = lasso * rng.uniform(size=size)
    offset = l1 * rng.normal(size=size)
    x, multipliers, zero = minimize_highest(A, b, np.unique(group, return_inverse=True)[1], l1, offset, 1e-12)

    def value(x):
        cuts = b + A @ x
        top = sum(cuts[group == g].max() for g in np.unique(group))
        return top + np.abs(l1 * x + offset).sum() + x @ x / 2

    assert multipliers.min() >= 0
    assert len(zero) == size or lasso < 1e6
    np.testing.assert_allclose((l1 * x + offset)[zero], 0.0, atol=1e-9)
    np.testing.assert_allclose(np.bincount(group, multipliers)[np.unique(group)], 1.0)
    for scale in (1e-3, 1e-1, 1.0):
        assert min(value(x + scale * rng.normal(size=size)) for _ in range(200)) >= value(x) - 1e-10
    # Multipliers prove the value from below: min_x multipliers.(b + A x) + |l1 x + offset| + x^2/2, by coordinates.
    slope = multipliers @ A
    ends = np.array([-slope - l1, -slope + l1, np.where(l1 > 0, -offset / np.where(l1 > 0, l1, 1.0), -slope)])
    pieces = slope * ends + np.abs(l1 * ends + offset) + ends**2 / 2
    assert multipliers @ b + pieces.min(axis=0).sum() == pytest.approx(value(x), abs=1e-9)


def test_verbose_prints_the_bound(capsys):
    X, C = small_data(4)
    SPOPlusRegressor(Simplex(), solver="bundle", verbose=1).fit(X, C)
    assert "bound" in capsys.readouterr().err


@pytest.mark.slow
def test_many_samples_start_from_the_fit_to_some(monkeypatch):
    """Same optimum as from least squares, with fewer passes over all rows."""
    region = Simplex()
    X, C = make_cost_sensitive_classification(8000, degree=2, noise=0.5, random_state=0)
    model = SPOPlusRegressor(region, solver="bundle", tol=1e-4).fit(X, C)
    monkeypatch.setattr("skspo._training.objective.MANY_SAMPLES", 10**9)
    plain = SPOPlusRegressor(region, solver="bundle", tol=1e-4).fit(X, C)
    assert max(model.duality_gap_, plain.duality_gap_) <= 1e-4
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-4)
    assert model.n_iter_ < 0.75 * plain.n_iter_
    # Progress is reported for all rows, not for the sample.
    # The value of the sample's fit on all rows is not known before the first pass.
    assert np.nanmin(model.history_["objective"]) >= model.objective_ * (1 - 1e-9)


@pytest.mark.parametrize(
    ("region", "offset"), [(Simplex(), None), (EntropySimplex(), None), (Box(), 0.3), (ShortestPath.grid(2, 3), 0.1)]
)
def test_cuts_do_not_depend_on_blocks(region, offset, monkeypatch):
    """Blocks of two rows, which do not align with groups, or one block: the same up to rounding."""
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(23, 3)), rng.normal(size=(23, 7))
    known = None if offset is None else offset * rng.normal(size=C.shape)
    weight, edges = rng.uniform(size=23), np.array([0, 1, 2, 7, 20, 23])
    results = []
    for elements in (15, 10**6):
        monkeypatch.setattr("skspo._training.in_memory.BLOCK_NUMBERS", elements)
        objective = objective_of(region, X, C, sample_weight=weight, offset=known)
        points = [objective.least_squares, 2.0 * objective.least_squares, np.zeros(objective.shape)]
        results.append([objective.cuts(Theta, edges) for Theta in points])
        for Theta, (value, b, A) in zip(points, results[-1], strict=True):
            assert value == pytest.approx(objective.value(Theta))
            assert b.sum() + np.vdot(A.sum(axis=0), Theta) == pytest.approx(value)
    for one, other in zip(*results, strict=True):
        for mine, its in zip(one, other, strict=True):
            np.testing.assert_allclose(mine, its, atol=1e-9)


def test_cuts_of_regions_that_vary_by_row_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(20, 3)), rng.normal(size=(20, 4))
    params = {"upper": rng.uniform(1.0, 2.0, size=(20, 4))}
    models = []
    for elements in (8, 10**6):
        monkeypatch.setattr("skspo._training.in_memory.BLOCK_NUMBERS", elements)
        models.append(SPOPlusRegressor(Box(), solver="bundle").fit(X, C, region_params=params))
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-6)
    assert max(model.duality_gap_ for model in models) <= 1e-6


@pytest.mark.parametrize("every", [2, 20])
@pytest.mark.parametrize("max_cuts", [None, 8])
def test_active_cuts_are_kept_within_the_memory_limit(max_cuts, every):
    """Inactive cuts are dropped first, but not all at once, and cuts are averaged only at the limit of their number."""
    X, C = small_data(4)
    model = CutModel(objective_of(Simplex(), X, C), Run(), 2, max_cuts)
    n, enough = PATIENCE * 8, PATIENCE * 2 - 2
    group, number = np.arange(n) * 2 // n, np.arange(n, dtype=float)
    model._set(np.zeros((n, model.A.shape[1])), number, group, np.zeros(n, dtype=int))
    multipliers = np.where(number % every == 0, 1.0, 1e-9 / (1.0 + number))
    multipliers /= np.bincount(group, multipliers)[group]
    model._tidy(multipliers)
    active = np.flatnonzero(number % every == 0)
    if max_cuts is None:
        assert set(active) <= set(model.b)
        assert len(model.b) == max(enough, len(active))
    else:
        assert len(model.b) == max_cuts - 2
        averages = [multipliers[group == g] @ number[group == g] for g in (0, 1)]
        assert all(np.isclose(model.b, average).any() for average in averages)


class Halfway(InMemoryObjective):
    """For all decisions, the bound is half of the value at the point around which it is proved."""

    def dual_value_from_moments(self, constant, G, Theta):
        return Bound(0.5 * self.value(Theta), np.inf)


def test_bundle_proves_its_bound_around_the_point_that_it_returns():
    region = Simplex()
    for seed in range(3):
        X, C = make_cost_sensitive_classification(60, degree=2, random_state=seed)
        objective = Halfway(SPOPlusLoss(region), X, C)
        result = BundleSolver(tol=0.4, max_iter=30).solve(objective, Run())
        # The gap is one half wherever it is measured; half of an earlier value may look like less.
        assert result.lower_bound == pytest.approx(0.5 * result.objective, rel=1e-12)


def test_bundle_sets_coefficients_of_a_lasso_to_zero():
    X, C = noisy_data(60)
    params = {"alpha": 0.5, "l1_ratio": 1.0}
    exact = SPOPlusRegressor(Box(), solver="conic", **params).fit(X, C)
    model = SPOPlusRegressor(Box(), solver="bundle", tol=1e-8, **params).fit(X, C)
    small = np.abs(exact.coef_) < 1e-7
    assert small.any()
    assert_array_equal(model.coef_[small], 0.0)
