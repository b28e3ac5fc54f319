"""The loss of the tutorial docs/guide/add_a_loss.md, which shows this file, and the tests that it recommends."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from skspo import (
    Box,
    Ellipsoid,
    NotCertifiedWarning,
    Simplex,
    SPOLoss,
    SPOMLPRegressor,
    SPOPlusLoss,
    SPOPlusRegressor,
    TopK,
)
from skspo._training.in_memory import InMemoryObjective
from skspo.losses import Loss
from skspo.regions.check import check_region
from skspo.solvers import SGDSolver


# [loss]
class SPOPlusWithDistance(Loss):
    """SPO+ loss, plus ``share`` times the distance between predicted and true costs.

    Both parts are in units of cost, so that ``share`` has no units.

    Parameters
    ----------
    region : Region or None
        Feasible region; None means the unit Box.
    share : float, default=0.1
        Weight of the distance.
    """

    name = "SPO+ with distance"

    def __init__(self, region=None, share=0.1):
        super().__init__(region)
        self.share = share

    def value_gradient_min(self, region, C, C_hat, W, memory=None):
        """Value and subgradient of each sample."""
        V = 2.0 * C_hat - C
        difference = W - region.solve_min(V, memory)
        E = C_hat - C
        distance = np.linalg.norm(E, axis=1)
        value = (V * difference).sum(axis=1) + self.share * distance
        # At a distance of zero, zero is a subgradient.
        unit = E / np.where(distance > 0, distance, 1.0)[:, None]
        return value, 2.0 * difference + self.share * unit


# [end of loss]


# [tests of the loss]
def problem(n=80, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X @ rng.normal(size=(3, d))) ** 2 + rng.normal(size=(n, d))


REGIONS = [Box(), Simplex(sense="max"), TopK(2), Ellipsoid()]


@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_value_is_the_sum_of_its_parts(region):
    C, C_hat = problem(seed=0)[1], problem(seed=1)[1]
    value = SPOPlusWithDistance(region, share=0.3).value(C, C_hat)
    assert_allclose(value, SPOPlusLoss(region).value(C, C_hat) + 0.3 * np.linalg.norm(C_hat - C, axis=1))


@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_gradient_against_differences(region):
    loss = SPOPlusWithDistance(region, share=0.3)
    C, C_hat = problem(n=20, seed=0)[1], problem(n=20, seed=1)[1]
    for c, c_hat, g in zip(C, C_hat, loss.gradient(C, C_hat), strict=True):
        assert_allclose(g, approx_fprime(c_hat, lambda v, c=c: loss.value([c], [v])[0], 1e-7), atol=1e-5)


@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_subgradients_are_below_the_loss(region):
    """Also where the loss is not differentiable: at the true costs both parts are not."""
    loss = SPOPlusWithDistance(region, share=0.3)
    C, C_hat, other = (problem(seed=seed)[1] for seed in range(3))
    C_hat[::2], C_hat[1::4] = C[::2], 0.5 * C[1::4]
    value, G = loss.value_gradient(C, C_hat)
    assert (loss.value(C, other) >= value + (G * (other - C_hat)).sum(axis=1) - 1e-9).all()


# [end of tests of the loss]


# [train with SciPy]
def fit_with_scipy(loss, X, C):
    """Linear model without a penalty, from least squares; the loss must be differentiable."""
    Z = np.column_stack([X, np.ones(len(X))])
    W = loss.region.argmin(C)  # computed once

    def mean_loss(b):
        value, G = loss.value_gradient(C, Z @ b.reshape(Z.shape[1], -1), W)
        return value.mean(), (Z.T @ G).ravel() / len(Z)

    start = np.linalg.lstsq(Z, C)[0]
    result = minimize(mean_loss, start.ravel(), jac=True, method="L-BFGS-B")
    return result.x.reshape(start.shape), result.fun


# [end of train with SciPy]


# [train with an estimator]
def fit_with_estimator(loss, X, C, offset=None, **params):
    """The same with an estimator: penalties, offsets, sample weights, decisions, scores."""
    model = SPOPlusRegressor(loss.region, loss=loss, **params)
    return model.fit(X, C, offset=offset)


# [end of train with an estimator]


# [tests of training]
def test_both_ways_agree():
    X, C = problem()
    loss = SPOPlusWithDistance(Ellipsoid(), share=0.3)
    B, value = fit_with_scipy(loss, X, C)
    model = fit_with_estimator(loss, X, C)
    assert_allclose(model.objective_, value, rtol=1e-5)
    assert_allclose(loss.value(C, model.predict(X)).mean(), model.objective_)
    assert_allclose(loss.value(C, X @ B[:-1] + B[-1]).mean(), value)


def test_trade_off_between_the_two_parts():
    """Minimizers of f and f + share g: the second has no larger g, and the first no larger f."""
    X, C = problem()
    spo_plus, parts = SPOPlusLoss(Ellipsoid()), []
    for share in (0.0, 1.0):
        model = fit_with_estimator(SPOPlusWithDistance(Ellipsoid(), share), X, C, alpha=1e-3)
        C_hat = model.predict(X)
        penalty = 0.5e-3 * (model.coef_**2).sum()
        parts.append((spo_plus.value(C, C_hat).mean() + penalty, np.linalg.norm(C_hat - C, axis=1).mean()))
    assert parts[0][0] < parts[1][0]
    assert parts[0][1] > parts[1][1]


def test_an_offset_is_part_of_the_prediction():
    X, C = problem()
    offset = problem(seed=1)[1]
    loss = SPOPlusWithDistance(Ellipsoid(), share=0.3)
    model = fit_with_estimator(loss, X, C, offset=offset)
    assert_allclose(loss.value(C, model.predict(X, offset=offset)).mean(), model.objective_)


# [end of tests of training]


@pytest.mark.parametrize("region", REGIONS, ids=repr)
@pytest.mark.parametrize("params", [{}, {"alpha": 0.1}, {"alpha": 0.05, "l1_ratio": 0.5}], ids=repr)
def test_without_the_distance_the_optimum_is_that_of_the_certificate(region, params):
    """Also on polyhedra, where the loss has kinks."""
    X, C = problem()
    certified = SPOPlusRegressor(region, **params).fit(X, C)
    model = fit_with_estimator(SPOPlusWithDistance(region, share=0.0), X, C, **params)
    smooth = isinstance(region, Ellipsoid) and not params.get("l1_ratio")
    assert model.objective_ >= certified.lower_bound_ * (1 - 1e-9)
    assert model.objective_ <= certified.objective_ * (1 + (1e-4 if smooth else 0.02))
    assert model.lower_bound_ == -np.inf and np.isinf(model.duality_gap_) and model.solver_ == "descent"


class Distance(Loss):
    """Loss that needs no decisions."""

    name, needs_decisions = "distance", False

    def value_gradient_min(self, region, C, C_hat, W, memory=None):
        assert W is None
        distance = np.sqrt(1.0 + ((C_hat - C) ** 2).sum(axis=1))
        return distance, (C_hat - C) / distance[:, None]


def test_a_loss_without_decisions_weights_and_neural_networks():
    X, C = problem()
    weight = np.random.default_rng(0).uniform(size=len(X))
    model = SPOPlusRegressor(Box(), loss=Distance()).fit(X, C, weight)
    assert np.abs(model.predict(X) - C).mean() < 1.2 * np.abs(LinearRegression().fit(X, C).predict(X) - C).mean()
    same = clone(model).fit(np.vstack([X, X]), np.vstack([C, C]), np.concatenate([weight, weight]))
    assert_allclose(same.objective_, model.objective_, rtol=1e-5)
    network = SPOMLPRegressor(Ellipsoid(), loss=SPOPlusWithDistance(), max_iter=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(X, C)
    assert network.loss_curve_[-1] < network.loss_curve_[0]


def test_limits_end_the_descent():
    X, C = problem()
    for limit in ({"max_iter": 3}, {"time_limit": 1e-9}):
        with pytest.warns(NotCertifiedWarning, match=f"Increase {next(iter(limit))}"):
            model = SPOPlusRegressor(Simplex(), loss=SPOPlusWithDistance(), **limit).fit(X, C)
        assert model.status_.endswith("limit") and np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"loss": "spo+"}, TypeError, "loss must be None"),
        ({"loss": SPOLoss()}, ValueError, "is not continuous: use SPORegressor"),
        ({"loss": Distance(), "solver": "bundle"}, ValueError, "solver must be 'auto' or a Solver with a loss"),
        ({"loss": Distance(), "solver": SGDSolver()}, ValueError, "distance loss is to be minimized"),
    ],
)
def test_losses_that_cannot_be_minimized(params, error, message):
    X, C = problem()
    with pytest.raises(error, match=message):
        SPOPlusRegressor(Simplex(), **params).fit(X, C)
    with pytest.raises(ValueError, match="minimize the SPO\\+ loss only"):
        SPOPlusRegressor(Simplex(), loss=Distance()).partial_fit(X, C)


def test_no_bound_of_another_loss():
    """A bound of the SPO+ loss is not a bound of this loss."""
    X, C = problem()
    region = check_region(Ellipsoid(), n_dim=C.shape[1])
    objective = InMemoryObjective(SPOPlusWithDistance(region), X, C)
    with pytest.raises(TypeError, match="prove no lower bound of SPOPlusWithDistance"):
        objective.dual_value(objective.W, objective.least_squares)
