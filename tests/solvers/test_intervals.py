"""Boxes: all costs at once, against linear programs of one cost each and against the general methods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from skspo import Box, Product, Simplex, SPOPlusLoss
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo._utils.limits import Deadline
from skspo.solvers import ConicSolver, Status
from skspo.solvers.interior_point import intervals
from skspo.solvers.interior_point.intervals import IntervalSolver, is_box

LOWER, UPPER = np.array([-1.0, 0.0, 2.0, -3.0, 0.5]), np.array([1.0, 4.0, 2.0, -2.9, 0.6])  # the third is fixed


def data(d=5, n=80, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=(p, d)) + rng.normal(size=(n, d))


def optimum(X, C, lower, upper, weight=None):
    """Sum of the optima of linear programs: the loss of a cost is (upper - lower) max(|c| - 2 sign(c) c_hat, 0)."""
    n = len(X)
    weight = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    Z, total = np.column_stack([X, np.ones(n)]), 0.0
    for c, height in zip(C.T, np.broadcast_to(upper - lower, C.shape[1]), strict=True):
        sign = np.where(c < 0, -1.0, 1.0)[:, None]
        A = np.hstack([-2.0 * sign * Z, -np.eye(n)])
        cost = np.concatenate([np.zeros(Z.shape[1]), height * weight])
        bounds = [(None, None)] * Z.shape[1] + [(0, None)] * n
        total += linprog(cost, A, -np.abs(c), bounds=bounds, method="highs").fun
    return total


def check_against_programs(X, C, lower, upper, weight=None):
    objective = InMemoryObjective(SPOPlusLoss(Box(lower, upper)), X, C, weight)
    result = IntervalSolver().solve(objective, Run())
    best = optimum(X, C, np.asarray(lower), np.asarray(upper), weight)
    size = max(best, 1e-2 * objective.trivial_value() * objective.scale)
    assert result.converged and result.radius >= 1e4
    assert abs(result.objective * objective.scale - best) <= 1e-6 * size
    assert result.lower_bound * objective.scale <= best + 1e-9 * size
    assert_allclose(objective.value(result.coef), result.objective, rtol=1e-12)
    return result


@pytest.mark.parametrize("seed", range(3))
def test_linear_programs(seed):
    X, C = data(seed=seed)
    check_against_programs(X, C, LOWER, UPPER)
    check_against_programs(X, C, -1.0, 1.0, np.random.default_rng(seed).uniform(0.1, 5.0, size=80))


def test_degenerate_data():
    X, C = data()
    # Repeated rows, integers with many ties, costs of zero, a feature that is constant and one that is given twice.
    check_against_programs(np.repeat(X[:10], 8, axis=0), np.repeat(C[:10], 8, axis=0), -1.0, 1.0)
    check_against_programs(np.round(X), np.round(C), -1.0, 1.0)
    zeros = np.where(np.arange(5) == 1, 0.0, C)
    check_against_programs(X, zeros, 0.0, 1.0)
    check_against_programs(np.column_stack([X, X[:, 0], np.ones(80)]), C, 0.0, 1.0)
    # Costs of different sizes, and a few outliers.
    check_against_programs(X, C * 10.0 ** np.arange(-6, 4, 2), 0.0, 1.0)
    check_against_programs(X, np.where(np.random.default_rng(0).uniform(size=C.shape) < 0.02, 1e3 * C, C), 0.0, 1.0)


def test_perfect_predictions():
    """Fewer samples than features, and decisions that a linear model separates: the optimum is zero."""
    X, C = data(n=12, p=20)
    assert check_against_programs(X, C, -1.0, 1.0).objective <= 1e-8
    X, C = data(n=100, p=3)
    assert check_against_programs(X, np.sign(X @ np.ones((3, 5))) + 0 * C, -1.0, 1.0).objective <= 1e-7


@pytest.mark.parametrize("prior", ["zero", "least_squares"])
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
def test_ridge(alpha, prior):
    X, C = data()
    objective = InMemoryObjective(SPOPlusLoss(Box(LOWER, UPPER)), X, C, alpha=alpha, prior=prior)
    result, conic = IntervalSolver().solve(objective, Run()), ConicSolver().solve(objective, Run())
    assert result.converged
    assert result.lower_bound <= conic.objective * (1 + 1e-9) and conic.lower_bound <= result.objective * (1 + 1e-9)
    assert_allclose(result.objective, conic.objective, rtol=1e-5)
    # The penalty decides where the bounds do not.
    assert_array_equal(result.coef[2], objective.canonical(objective.prior)[2])


def test_only_boxes_and_separate_models():
    X, C = data()
    assert is_box(InMemoryObjective(SPOPlusLoss(Box()), X, C))
    for region in (Simplex(), Product([Simplex(), Box()], [2, 3])):
        assert not is_box(InMemoryObjective(SPOPlusLoss(region), X, C))
    shared = np.random.default_rng(0).normal(size=(80, 10))
    assert not is_box(InMemoryObjective(SPOPlusLoss(Box()), shared, C, shared=True))


def test_limits():
    """A solver that stops early has a valid bound and says why it stopped."""
    X, C = data()
    objective = InMemoryObjective(SPOPlusLoss(Box(-1.0, 1.0)), X, C)
    best = optimum(X, C, -1.0, 1.0) / objective.scale
    for max_iter in (0, 1, 4, 8):
        result = IntervalSolver(max_iter=max_iter, tol=1e-12).solve(objective, Run())
        assert result.status is Status.ITERATION_LIMIT and f"max_iter={max_iter}" in result.message
        assert result.lower_bound <= best * (1 + 1e-9) <= result.objective * (1 + 2e-9)
    run = Run(Deadline(0.0))
    late = IntervalSolver().solve(objective, run)
    assert late.status is Status.TIME_LIMIT and run.deadline.reached and late.lower_bound <= best


def test_a_cost_whose_matrix_is_singular_stops_where_it_is(monkeypatch):
    X, C = data()
    objective = InMemoryObjective(SPOPlusLoss(Box(-1.0, 1.0)), X, C)
    monkeypatch.setattr(intervals, "_inverse", lambda H: np.full_like(H, np.nan))
    result = IntervalSolver().solve(objective, Run())
    assert result.status is Status.NUMERICAL_LIMIT and "rounding" in result.message
    assert np.isfinite(result.coef).all() and 0.0 <= result.lower_bound <= result.objective
