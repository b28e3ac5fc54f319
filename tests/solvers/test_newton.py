"""Newton's method on level sets: smoothed decisions against other solvers, kinks, loose thresholds, certificates."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from problems import spo_plus_objective
from sklearn.exceptions import ConvergenceWarning

from skspo import Ellipsoid, EntropySimplex, LogBarrierSimplex, LqBall, SPOPlusRegressor
from skspo._training.run import Run
from skspo.datasets import make_cost_sensitive_classification, make_portfolio
from skspo.solvers import NewtonSolver

Q = np.array([[2.0, 0.5, 0.0, 0.1], [0.5, 1.0, 0.2, 0.0], [0.0, 0.2, 3.0, 0.4], [0.1, 0.0, 0.4, 1.5]])
CENTER = np.array([1.0, -2.0, 0.5, 0.0])

#: region, and f as a CVXPY expression with its minimum
REGIONS = {
    "entropy": (EntropySimplex(), lambda w: -cp.sum(cp.entr(w)), -np.log(4)),
    "entropy, loose": (EntropySimplex(-0.4), lambda w: -cp.sum(cp.entr(w)), -np.log(4)),
    "log barrier": (LogBarrierSimplex(), lambda w: -cp.sum(cp.log(w)), 4 * np.log(4)),
    "log barrier, tight": (LogBarrierSimplex(6.0), lambda w: -cp.sum(cp.log(w)), 4 * np.log(4)),
    "ball": (LqBall(2.0, 3.0), lambda w: cp.sum_squares(w), 0.0),
    "q ball": (LqBall(1.5, 2.0), lambda w: cp.square(cp.pnorm(w, 1.5)), 0.0),
    "ellipsoid": (Ellipsoid(Q, CENTER, 1.5), lambda w: cp.quad_form(w - CENTER, Q), 0.0),
    "identity": (Ellipsoid(), lambda w: cp.sum_squares(w), 0.0),
}


@pytest.mark.parametrize("mu", [3.0, 0.2, 0.01])
@pytest.mark.parametrize("name", REGIONS)
def test_smoothed_decisions_against_cvxpy(name, mu):
    region, f, f_min = REGIONS[name]
    C = np.random.default_rng(0).normal(size=(5, 4))
    W, level, _ = region.smoothed(C, mu)
    np.testing.assert_allclose(region.repair(W), W, atol=1e-12)
    constants = region.strong_convexity(4)
    for c, w, up in zip(C, W, level, strict=True):
        x = cp.Variable(4)
        constraints = [f(x) <= constants.r]
        if isinstance(region, EntropySimplex | LogBarrierSimplex):
            constraints.append(cp.sum(x) == 1)
        best = cp.Problem(cp.Minimize(c @ x + mu * (f(x) - f_min)), constraints).solve(solver=cp.CLARABEL)
        value = float(f(cp.Constant(w)).value) - f_min
        assert up == pytest.approx(value, abs=1e-12)
        assert c @ w + mu * up == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("mu", [3.0, 0.2, 0.01])
@pytest.mark.parametrize("name", REGIONS)
def test_matrix_is_minus_the_derivative(name, mu):
    region = REGIONS[name][0]
    rng = np.random.default_rng(1)
    C = rng.normal(size=(20, 4))
    M = region.smoothed(C, mu, curvature=True).M
    h = 1e-5
    for j, e in enumerate(np.eye(4)):
        plus, minus = region.smoothed(C + h * e, mu).W, region.smoothed(C - h * e, mu).W
        np.testing.assert_allclose(-(plus - minus) / (2 * h), M[:, :, j], atol=2e-5 * max(1.0, np.abs(M).max()))
    assert np.linalg.eigvalsh(M).min() > -1e-10 * np.abs(M).max()
    np.testing.assert_allclose(M, M.transpose(0, 2, 1), atol=1e-12 * np.abs(M).max())


@pytest.mark.parametrize("name", REGIONS)
def test_small_mu_is_the_oracle_and_large_mu_the_middle(name):
    region = REGIONS[name][0]
    C = np.random.default_rng(2).normal(size=(10, 4))
    W = region.smoothed(C, 1e-9).W
    np.testing.assert_allclose(np.einsum("ij,ij->i", C, W), np.einsum("ij,ij->i", C, region.argmin(C)), atol=1e-7)
    assert (region.smoothed(C, 1e9).level < 1e-12).all()
    # Costs that do not change decisions: only f matters.
    flat = region.smoothed(np.zeros((1, 4)), 0.1, curvature=True)
    assert flat.level[0] < 1e-14
    assert np.isfinite(flat.M).all()


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [{}, {"alpha": 0.05}, {"alpha": 0.1, "prior": "least_squares"}], ids=str)
@pytest.mark.parametrize("name", [name for name in REGIONS if name != "ellipsoid"])
def test_agrees_with_conic(name, penalty):
    """Few samples: the optimum has kinks, where L-BFGS stalls."""
    X, C = make_portfolio(25, 3, 4, degree=4, noise=0.5, random_state=3)
    region = REGIONS[name][0]
    newton = SPOPlusRegressor(region, solver="newton", **penalty).fit(X, C)
    conic = SPOPlusRegressor(region, solver="conic", **penalty).fit(X, C)
    assert newton.solver_ == "newton"
    for model in (newton, conic):
        assert model.duality_gap_ <= 1e-6
    assert newton.objective_ == pytest.approx(conic.objective_, rel=2e-6)
    assert newton.lower_bound_ <= conic.objective_ * (1 + 1e-9)


@pytest.mark.slow
def test_loose_entropy_where_gradients_stall():
    """Entropy 0.3 log d on 20 assets: nearly polyhedral."""
    X, C = make_portfolio(80, 5, 20, degree=2, noise=0.5, random_state=5)
    region = EntropySimplex(-0.3 * np.log(20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        lbfgs = SPOPlusRegressor(region, solver="lbfgs", max_iter=500).fit(X, C)
    assert lbfgs.duality_gap_ > 1e-4
    # Several samples have nearly tied costs at the optimum; their decisions must not depend on rounding.
    for noise in (0.0, 1e-14, 1e-13):
        C_near = C * (1.0 + noise * np.random.default_rng(0).normal(size=C.shape))
        newton = SPOPlusRegressor(region, solver="newton").fit(X, C_near)
        assert newton.duality_gap_ <= 1e-6
        assert newton.objective_ < lbfgs.objective_


def test_matrix_where_the_lowest_costs_are_nearly_tied():
    """Decisions do not change when all costs above the lowest are scaled: M c = 0 where the constraint is active."""
    C = np.array([[0.0, 1e-8, 2e-8, 0.5, 0.7, 0.9]])
    region = EntropySimplex(-0.9)
    M = region.smoothed(C, 1e-12, curvature=True).M[0]
    assert np.abs(M @ C[0]).max() < 1e-6 * np.abs(M[:3, :3]).max() * 2e-8
    x = np.array([[0.0, 1.0, -1.0, 0.0, 0.0, 0.0]])
    h = 1e-11
    numeric = (region.argmin(C + h * x) - region.argmin(C - h * x)) / (2 * h)
    np.testing.assert_allclose(region.derivative(C, x), numeric, atol=1e-3 * np.abs(numeric).max())
    np.testing.assert_allclose(-M @ x[0], numeric[0], atol=1e-3 * np.abs(numeric).max())


@pytest.mark.slow
def test_cost_per_step_needs_no_cone_program():
    """A loss that is not differentiable gives no warning, also for sizes beyond the limit of the conic solver."""
    X, C = make_cost_sensitive_classification(12_000, degree=2, noise=0.5, random_state=0)
    model = SPOPlusRegressor(LogBarrierSimplex()).fit(X, C)
    assert model.solver_ in ("newton", "lbfgs")
    assert model.duality_gap_ <= 1e-6


def test_limits_and_errors():
    X, C = make_portfolio(30, 3, 4, degree=4, noise=0.5, random_state=0)
    exact = SPOPlusRegressor(EntropySimplex(), solver="newton").fit(X, C)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        short = SPOPlusRegressor(EntropySimplex(), solver="newton", max_iter=1).fit(X, C)
    assert short.lower_bound_ <= exact.objective_ * (1 + 1e-9)
    assert short.objective_ >= exact.objective_ * (1 - 1e-6)
    with pytest.raises(ValueError, match="smooth penalty"):
        SPOPlusRegressor(EntropySimplex(), solver="newton", alpha=0.1, l1_ratio=0.5).fit(X, C)


def test_perfect_predictions_and_constant_costs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    for C in (np.ones((20, 3)), np.tile([1.0, 2.0, 3.0], (20, 1)), X @ rng.normal(size=(2, 3))):
        model = SPOPlusRegressor(EntropySimplex(-0.9), solver="newton").fit(X, C)
        assert model.duality_gap_ <= 1e-6
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("region", [EntropySimplex(), LqBall(1.5)], ids=str)
def test_newton_needs_few_steps(region):
    X, C = make_portfolio(80, 3, 4, degree=2, random_state=0)
    result = NewtonSolver().solve(spo_plus_objective(X, C, region, alpha=0.1), Run())
    assert result.converged
    assert result.n_iter <= 15  # with any other matrix it would be more than forty
