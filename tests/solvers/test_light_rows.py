"""Rows of negligible weight are left out of the search, not of the objective."""

import re

import cvxpy as cp
import numpy as np
import pytest
from problems import spo_plus_objective
from sklearn.exceptions import ConvergenceWarning

from skspo import Box, ShortestPath, Simplex, SPOPlusRegressor, SPOPlusRegressorCV, spo_plus_loss
from skspo.datasets import make_shortest_path
from skspo.solvers import BundleSolver
from skspo.solvers.steps import rows_that_matter


def decaying(n, half):
    return 0.5 ** (np.arange(n)[::-1] / half)


def objective_of(model, X, C, weight, alpha):
    """Objective on all rows, from the public metric."""
    loss = spo_plus_loss(C, model.predict(X), model.region_, sample_weight=weight)
    return loss + 0.5 * alpha * float(np.square(model.coef_).sum())


def test_weights_that_halve_every_week(capsys):
    X, C = make_shortest_path(1500, degree=4, noise=0.5, random_state=0)
    weight, region = decaying(1500, 7.0), ShortestPath.grid(5, 5)
    model = SPOPlusRegressor(region, alpha=0.1, time_limit=60, verbose=2).fit(X, C, weight)
    assert model.status_ == "converged"
    assert model.duality_gap_ <= 1e-6
    assert model.n_iter_ < 1000
    assert model.objective_ == pytest.approx(objective_of(model, X, C, weight, 0.1), rel=1e-9)
    cut = SPOPlusRegressor(region, alpha=0.1).fit(X, C, np.where(weight < 1e-9 * weight.max(), 0.0, weight))
    assert model.objective_ == pytest.approx(cut.objective_, rel=2e-6)
    assert "of 1500 rows, the others have negligible weight" in capsys.readouterr().err
    assert model.history_["objective"][-1] == pytest.approx(model.objective_)
    assert model.history_["duality_gap"][-1] == pytest.approx(model.duality_gap_, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_objective_and_bound_are_those_of_all_rows(alpha):
    """Against an explicit convex program with all rows, for weights of many orders of magnitude."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, p, d = 90, 2, 3
        X = rng.normal(size=(n, p))
        C = rng.normal(size=(n, d)) + X @ rng.normal(size=(p, d))
        weight = decaying(n, 1.5)
        model = SPOPlusRegressor(Simplex(), alpha=alpha).fit(X, C, weight)
        B, b, W = cp.Variable((d, p)), cp.Variable(d), np.eye(d)[C.argmin(axis=1)]
        worst, C_hat = cp.Variable(n), X @ B.T + np.ones((n, 1)) @ cp.reshape(b, (1, d), order="C")
        loss = worst + cp.sum(cp.multiply(2 * C_hat - C, W), axis=1)
        limits = [worst >= C[:, j] - 2 * C_hat[:, j] for j in range(d)]
        total = weight @ loss / weight.sum() + 0.5 * alpha * cp.sum_squares(B)
        truth = cp.Problem(cp.Minimize(total), limits).solve(solver=cp.CLARABEL)
        assert model.duality_gap_ <= 1e-6
        assert model.objective_ == pytest.approx(objective_of(model, X, C, weight, alpha), rel=1e-9)
        # Weights that differ so much cost the reference some digits; its value is that of a model, up to rounding.
        assert model.objective_ <= truth * (1 + 1.1e-6) + 1e-8
        assert model.objective_ == pytest.approx(truth, rel=1e-5)
        assert model.lower_bound_ <= truth + 1e-7


def test_rows_that_matter_at_the_model_take_part_after_all(capsys):
    """Rows of small weight whose features are so large that their loss counts."""
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    weight = np.ones(60)
    C += 3.0 * X
    X[50:] *= 1e8
    weight[50:] = 1e-12
    model = SPOPlusRegressor(Box(0, 1), alpha=1e-3, fit_intercept=False, verbose=2).fit(X, C, weight)
    told = capsys.readouterr().err
    searches = [int(rows) for rows in re.findall(r"(\d+) of 60 rows, the others", told)]
    assert searches[0] == 50 and searches[-1] > 50
    assert model.status_ == "converged"
    assert model.objective_ == pytest.approx(objective_of(model, X, C, weight, 1e-3), rel=1e-9)
    without = SPOPlusRegressor(Box(0, 1), alpha=1e-3, fit_intercept=False).fit(X[:50], C[:50])
    assert model.lower_bound_ <= objective_of(without, X, C, weight, 1e-3)
    assert model.lower_bound_ > without.objective_ * (1 + 1e-5)  # no bound of the first rows closes the gap


def test_rows_are_left_out_only_if_weights_differ_by_orders_of_magnitude():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(2000, 2)), rng.normal(size=(2000, 3))
    for weight in (None, rng.uniform(0.01, 1.0, size=2000), np.repeat([1.0, 0.0], 1000)):
        assert rows_that_matter(spo_plus_objective(X, C, weight=weight), 0.1) is None
    objective = spo_plus_objective(X, C, weight=np.repeat([1.0, 1e-12], 1000))
    assert rows_that_matter(objective, 1e-6).sum() == 1000
    assert rows_that_matter(objective, 0.0) is None


def test_solver_instances_keep_their_parameters():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(80, 2)), rng.normal(size=(80, 3))
    solver = BundleSolver(tol=1e-4)
    model = SPOPlusRegressor(Simplex(), solver=solver, alpha=0.1).fit(X, C, decaying(80, 1.0))
    assert model.duality_gap_ <= solver.tol == 1e-4
    assert model.solver_ == "bundle"


def test_a_search_that_is_stopped_ends_with_the_objective_of_all_rows():
    X, C = make_shortest_path(400, degree=4, noise=0.5, random_state=0)
    weight = decaying(400, 7.0)
    with pytest.warns(ConvergenceWarning, match="above tol=1e-06"):
        model = SPOPlusRegressor(ShortestPath.grid(5, 5), solver="sgd", max_iter=3).fit(X, C, weight)
    assert model.status_ == "iteration limit"
    assert model.duality_gap_ > 1e-6
    assert model.objective_ == pytest.approx(objective_of(model, X, C, weight, 0.0), rel=1e-9)


def test_paths_with_weights_that_decay():
    X, C = make_shortest_path(120, grid=(3, 3), degree=4, noise=0.5, random_state=0)
    model = SPOPlusRegressorCV(ShortestPath.grid(3, 3), n_alphas=3, cv=2).fit(X, C, decaying(120, 2.0))
    assert model.duality_gap_ <= 1e-4
