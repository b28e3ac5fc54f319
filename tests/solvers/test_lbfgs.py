"""L-BFGS on smooth regions against the conic solver, and its certificate."""

import warnings

import pytest
from marks import pairs
from numpy.testing import assert_allclose
from problems import noisy_data, spo_plus_objective
from sklearn.exceptions import ConvergenceWarning
from solver_problems import PENALTIES, SMOOTH, exact_fit, gaps, small_data, user_objective

import skspo.solvers.lbfgs
from skspo import Ellipsoid, EntropySimplex, LogBarrierSimplex, LqBall, SPOPlusRegressor
from skspo._training.run import Run
from skspo.datasets import make_portfolio
from skspo.solvers import LBFGSSolver


@pytest.mark.slow
@pytest.mark.parametrize(("region", "penalty"), pairs(SMOOTH, PENALTIES, 3), ids=str)
def test_lbfgs_agrees_with_conic(region, penalty):
    X, C = small_data(4)
    conic = exact_fit(region, penalty)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lbfgs = SPOPlusRegressor(region, solver="lbfgs", **penalty).fit(X, C)
    # With so few samples some optima interpolate a sample, where the loss is not differentiable and descent may stall:
    # then there is a warning with the correct gap.  ``auto`` continues with conic (next test).
    assert caught or lbfgs.duality_gap_ <= 1e-6
    assert conic.duality_gap_ <= 1e-6
    assert conic.objective_ * (1 - 1e-6) <= lbfgs.objective_
    assert lbfgs.objective_ <= conic.objective_ * (1 + max(1.01 * lbfgs.duality_gap_, 1e-6))
    assert lbfgs.lower_bound_ <= conic.objective_ * (1 + 1e-9)
    assert conic.lower_bound_ <= lbfgs.objective_ * (1 + 1e-9)
    for model in (conic, lbfgs):
        assert user_objective(model, X, C) == pytest.approx(model.objective_, rel=1e-8, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("region", [EntropySimplex(), LogBarrierSimplex(), Ellipsoid(), LqBall(1.5)], ids=str)
def test_lbfgs_is_certified_when_samples_are_many(region):
    X, C = make_portfolio(300, 5, 10, degree=4, noise=0.5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = SPOPlusRegressor(region, solver="lbfgs").fit(X, C)
    assert model.duality_gap_ <= 1e-6


def test_lbfgs_is_certified_with_an_elastic_net():
    X, C = make_portfolio(80, 3, 5, degree=2, random_state=0)
    for prior in ("zero", "least_squares"):
        objective = spo_plus_objective(X, C, EntropySimplex(), alpha=0.3, l1_ratio=0.3, prior=prior)
        assert LBFGSSolver().solve(objective, Run()).converged


def test_lbfgs_reduces_its_gradient_tolerance_while_it_helps(monkeypatch):
    objective = spo_plus_objective(*noisy_data(), EntropySimplex())
    results, asked = gaps(objective, 0.5, 0.1, 0.01, 1e-7), []

    def descend(objective, Theta, limit, gradient_tol, report, memory):
        asked.append(gradient_tol)
        return Theta, 1

    monkeypatch.setattr(skspo.solvers.lbfgs, "descend", descend)
    monkeypatch.setattr(LBFGSSolver, "finish", lambda *args, **options: next(results))
    assert LBFGSSolver().solve(objective, Run()).converged
    assert_allclose(asked, [1e-8, 1e-10, 1e-12, 1e-14])
