"""The loss of the tutorial docs/guide/add_a_loss.md, which shows this file, and the tests that it recommends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize

from skspo import Box, Ellipsoid, Simplex, SPOPlusLoss, TopK
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo.losses import Loss
from skspo.regions.check import check_region
from skspo.solvers import make_solvers
from skspo.solvers.lbfgs import descend


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


# [train with an objective]
def fit_with_objective(loss, X, C, **params):
    """The same with the parts of skspo: standardised features, penalties, offsets, sample weights."""
    objective = InMemoryObjective(loss, X, C, **params)
    Theta, _ = descend(objective, objective.least_squares, 1000, 1e-9)
    coef, intercept = objective.to_user(Theta)
    return coef, intercept, objective.value(Theta) * objective.scale


# [end of train with an objective]


# [tests of training]
def test_both_ways_agree():
    X, C = problem()
    loss = SPOPlusWithDistance(Ellipsoid(), share=0.3)
    B, value = fit_with_scipy(loss, X, C)
    coef, intercept, same = fit_with_objective(loss, X, C)
    assert_allclose(same, value, rtol=1e-5)
    assert_allclose(loss.value(C, X @ coef.T + intercept).mean(), same)
    assert_allclose(loss.value(C, X @ B[:-1] + B[-1]).mean(), value)


def test_trade_off_between_the_two_parts():
    """Minimisers of f and f + share g: the second has no larger g, and the first no larger f."""
    X, C = problem()
    spo_plus, parts = SPOPlusLoss(Ellipsoid()), []
    for share in (0.0, 1.0):
        coef, intercept, _ = fit_with_objective(SPOPlusWithDistance(Ellipsoid(), share), X, C, alpha=1e-3)
        C_hat = X @ coef.T + intercept
        penalty = 0.5e-3 * (coef**2).sum()
        parts.append((spo_plus.value(C, C_hat).mean() + penalty, np.linalg.norm(C_hat - C, axis=1).mean()))
    assert parts[0][0] < parts[1][0]
    assert parts[0][1] > parts[1][1]


def test_an_offset_is_part_of_the_prediction():
    X, C = problem()
    offset = problem(seed=1)[1]
    loss = SPOPlusWithDistance(Ellipsoid(), share=0.3)
    coef, intercept, value = fit_with_objective(loss, X, C, offset=offset)
    assert_allclose(loss.value(C, X @ coef.T + intercept + offset).mean(), value)


def test_solvers_refuse_an_unsupported_loss():
    """A bound of the SPO+ loss is not a bound of this loss."""
    X, C = problem()
    region = check_region(Ellipsoid(), n_dim=C.shape[1])
    objective = InMemoryObjective(SPOPlusWithDistance(region), X, C)
    with pytest.raises(ValueError, match=r"the SPO\+ with distance loss is to be minimised here"):
        make_solvers(objective, Run(), "lbfgs")
    with pytest.raises(TypeError, match="prove no lower bound of SPOPlusWithDistance"):
        objective.dual_value(objective.W, objective.least_squares)


# [end of tests of training]
