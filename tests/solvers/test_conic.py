"""The conic solver against linear programs, brute force over vertices, and back-ends that fail."""

import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from problems import noisy_data, spo_plus_objective
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from solver_problems import PENALTIES, POLYTOPES, gaps, simplex_lp, small_data, user_objective, vertices_truth

import skspo.solvers.conic as conic_module
from skspo import CvxpyRegion, L1Ball, Markowitz, Simplex, SPOPlusRegressor, spo_plus_loss
from skspo._training.run import Run
from skspo.datasets import make_cost_sensitive_classification
from skspo.solvers import ConicSolver


@pytest.mark.slow
def test_ten_classes_agree_with_a_direct_lp():
    X, C = make_cost_sensitive_classification(1000, degree=2, noise=0.5, random_state=0)
    truth = simplex_lp(X, C)
    models = {
        "interior-point": SPOPlusRegressor(Simplex(), solver="interior-point", tol=1e-8),
        "HIGHS": SPOPlusRegressor(Simplex(), solver=ConicSolver("HIGHS")),
        "CLARABEL": SPOPlusRegressor(Simplex(), solver=ConicSolver("CLARABEL")),
    }
    for name, model in models.items():
        model.fit(X, C)
        assert model.objective_ == pytest.approx(truth, rel=1e-7)
        assert model.lower_bound_ <= truth * (1 + 1e-9)
        # Five classes are separable from the other five.  Clarabel leaves 1e-7 of a decision on the wrong side, and the
        # bound is charged for that over a radius of 10,000.
        assert model.duality_gap_ <= {"interior-point": 1e-8, "HIGHS": 1e-6, "CLARABEL": 5e-6}[name]
        assert spo_plus_loss(C, model.predict(X), Simplex()) == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize(("region", "vertices"), POLYTOPES, ids=lambda v: v if isinstance(v, str) else None)
def test_conic_reaches_the_optimum_over_the_vertices(region, vertices, penalty):
    X, C = small_data(4)
    truth = vertices_truth(vertices, X, C, sense=region.sense, **penalty)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = SPOPlusRegressor(region, solver="conic", **penalty).fit(X, C)
    assert model.objective_ == pytest.approx(truth, rel=1e-6, abs=1e-8)
    assert model.lower_bound_ <= truth + 1e-8 * abs(truth)
    assert model.duality_gap_ <= 1e-6


@pytest.mark.parametrize(
    "region",
    [
        Markowitz(np.diag([1.0, 2.0, 3.0, 4.0]), 0.8),
        Markowitz(np.diag([1.0, 2.0, 3.0, 4.0]), 0.8, budget="at_most", sense="max"),
        CvxpyRegion(lambda w: [cp.norm(w, 2) <= 1, w >= -0.5, cp.sum(w) == 0.25], 4),
    ],
    ids=["markowitz", "markowitz-max", "cvxpy"],
)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_conic_on_modeled_regions_is_certified(region, alpha):
    X, C = small_data(4, n=15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SPOPlusRegressor(region, solver="conic", alpha=alpha).fit(X, C)
    assert model.duality_gap_ <= 1e-6
    assert user_objective(model, X, C) == pytest.approx(model.objective_, rel=1e-7)
    # No descent direction: a certificate independent of the package's.
    rng = np.random.default_rng(0)
    region_value = model.objective_
    for step in (1e-3, 1e-1):
        other = SPOPlusRegressor(region, alpha=alpha)
        other.coef_ = model.coef_ + step * rng.normal(size=model.coef_.shape)
        other.intercept_ = model.intercept_ + step * rng.normal(size=4)
        assert user_objective(other, X, C) >= region_value * (1 - 1e-6)


@pytest.mark.parametrize("backend", ["HIGHS", "CLARABEL"])
def test_back_ends_print_nothing(backend, capfd):
    X, C = small_data(4, n=15)
    SPOPlusRegressor(Simplex(), solver=ConicSolver(backend)).fit(X, C)
    assert capfd.readouterr() == ("", "")


def test_a_wrong_back_end_is_detected(monkeypatch):
    """A back-end with the status "optimal" and a wrong point must lead to a warning, never to a small gap."""
    X, C = small_data(4)
    truth = SPOPlusRegressor(Simplex()).fit(X, C).objective_
    solve = conic_module.solve_here

    def lie(problem, *args):
        solve(problem, *args)
        for variable in problem.variables():
            variable.value = variable.value + np.linspace(0.0, 0.5, variable.size).reshape(variable.shape)

    monkeypatch.setattr(conic_module, "solve_here", lie)
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        model = SPOPlusRegressor(Simplex(), solver="conic").fit(X, C)
    assert model.objective_ > truth
    assert model.lower_bound_ <= truth * (1 + 1e-9)


def test_a_failing_back_end_is_replaced(monkeypatch):
    X, C = small_data(4)
    truth = SPOPlusRegressor(Simplex()).fit(X, C).objective_
    solve = conic_module.solve_here

    def fail(problem, compiled, backend, options):
        if backend in failing:
            raise cp.SolverError("no")
        solve(problem, compiled, backend, options)

    monkeypatch.setattr(conic_module, "solve_here", fail)
    failing = {"HIGHS"}
    assert SPOPlusRegressor(Simplex(), solver="conic").fit(X, C).objective_ == pytest.approx(truth, rel=1e-7)
    failing = {"HIGHS", "CLARABEL"}
    with pytest.warns(ConvergenceWarning, match="CLARABEL: no"):
        model = SPOPlusRegressor(Simplex(), solver="conic").fit(X, C)
    ls = LinearRegression().fit(X, C).predict(X)
    assert model.objective_ == pytest.approx(spo_plus_loss(C, ls, Simplex()))
    assert model.lower_bound_ <= truth


def test_no_solver_module_reports_a_solvers_objective():
    """The status or objective of a back-end must never be reported as the result."""
    assert "problem.value" not in Path(conic_module.__file__).read_text()


def test_conic_returns_the_best_of_its_attempts(monkeypatch):
    objective = spo_plus_objective(*noisy_data())
    results = gaps(objective, 0.3, 0.1, 0.2)
    monkeypatch.setattr(ConicSolver, "finish", lambda *args: next(results))
    best = ConicSolver().solve(objective, Run())
    assert objective.relative_gap(best.objective, best.lower_bound) == pytest.approx(0.1)
    assert next(results, None) is None  # there were three


def test_conic_is_certified_with_weights():
    X, C = noisy_data(25)
    weight = np.random.default_rng(0).uniform(0.1, 5.0, size=25)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        # Not on the simplex, where a repaired decision does not depend on its size.
        model = SPOPlusRegressor(L1Ball(), solver="conic").fit(X, C, sample_weight=weight)
    assert model.duality_gap_ <= 1e-6
