"""The training objective: values, units, samples of rows, and bounds by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import noisy_data, spo_plus_objective

import skspo as sk
from skspo._training.in_memory import InMemoryObjective
from skspo._training.objective import CERTIFICATE_RADIUS, GAP_FLOOR, DecisionsAt, lower_bound
from skspo._training.run import Run
from skspo._utils.limits import Deadline
from skspo.datasets import make_portfolio
from skspo.solvers import InteriorPointSolver, LBFGSSolver, NewtonSolver


def test_gap_is_relative_to_a_share_of_the_trivial_loss_at_least():
    X, C = noisy_data()
    objective = spo_plus_objective(X, C)
    trivial = (C.max(axis=1) - C.min(axis=1)).mean() / objective.scale
    assert objective.trivial_value() == pytest.approx(trivial, rel=1e-12)
    assert objective.relative_gap(1e-6, 0.0) == pytest.approx(1e-6 / (GAP_FLOOR * trivial), rel=1e-12)
    assert objective.relative_gap(2.0 * trivial, trivial) == pytest.approx(0.5)


def test_another_penalty_leaves_the_first_objective_as_it_was():
    objective = spo_plus_objective(*noisy_data())
    coef, intercept = objective.to_user(objective.least_squares)
    objective.with_penalty(1.0, 0.0)
    assert_array_equal(objective.to_user(objective.least_squares)[0], coef)
    assert_array_equal(objective.to_user(objective.least_squares)[1], intercept)


@pytest.mark.parametrize("prior", ["zero", "least_squares"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_coefficients_to_user_units_and_back(alpha, prior):
    objective = spo_plus_objective(*noisy_data(), alpha=alpha, prior=prior)
    Theta = objective.canonical(objective.least_squares)
    assert_allclose(objective.from_user(*objective.to_user(Theta)), Theta, atol=1e-12)


def test_a_sample_of_rows_has_a_trivial_loss_of_its_own():
    X, C = noisy_data(40)
    objective = spo_plus_objective(X, C, weight=np.linspace(1.0, 3.0, 40))
    objective.trivial_value()
    few = objective.thinned(7)
    extent = few.C.max(axis=1) - few.C.min(axis=1)
    assert few.trivial_value() == pytest.approx(float(few.weight @ extent), rel=1e-12)
    assert few.trivial_value() != pytest.approx(objective.trivial_value(), rel=1e-6)


def test_another_loss_uses_the_offset():
    X, C = noisy_data()
    offset = np.random.default_rng(1).normal(size=C.shape)
    region = sk.Simplex()
    spo = InMemoryObjective(sk.SPOLoss(region), X, C, offset=offset)
    Theta = np.random.default_rng(2).normal(size=spo.shape)
    expected, found = spo_plus_objective(X, C, offset=offset), spo.with_loss(sk.SPOPlusLoss(region))
    assert found.value(Theta) == pytest.approx(expected.value(Theta), rel=1e-12)
    # The bound comes from costs and predictions alone, so that the offset must be in the costs.
    assert_array_equal(found.decisions(Theta), expected.decisions(Theta))


def test_rows_of_a_batch_have_their_own_regions():
    X, C = noisy_data()
    rng = np.random.default_rng(3)
    lower = rng.uniform(-2.0, 0.0, size=C.shape)
    region = sk.Box().with_rows({"lower": lower, "upper": lower + rng.uniform(1.0, 3.0, size=C.shape)}, *C.shape)
    objective = spo_plus_objective(X, C, region)
    Theta, rows = rng.normal(size=objective.shape), np.array([11, 3, 17, 5])
    G = objective.batch_gradient(Theta, rows, np.ones(4))
    V = 2.0 * objective.design.predict(Theta, rows) - objective.C[rows]
    low, high = (bound[rows] for bound in objective.region._data(objective.C.shape[1]))
    best = np.where(objective.C[rows] < 0, high, low)
    expected = 2.0 * objective.design.adjoint(best - np.where(V < 0, high, low), rows)
    assert_allclose(G, expected, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_decisions_outside_the_region_prove_nothing(alpha):
    objective = spo_plus_objective(*noisy_data(), alpha=alpha)
    best = InteriorPointSolver().solve(objective, Run())
    # Matching moments, far outside the simplex: unrepaired they would prove wrong bounds.
    fit = np.linalg.lstsq(objective.design.Z, objective.C, rcond=None)[0]
    outside = objective.W + 10.0 * (objective.C - objective.design.Z @ fit)
    assert objective.dual_value(outside, best.coef).value > 2.0 * best.objective
    assert lower_bound(objective, outside, best.coef, Deadline()).value <= best.objective * (1.0 + 1e-9)


def test_residual_moments_vanish_at_an_optimum():
    """Dual decisions of an optimum have the moments that the penalty requires, so there is no residual."""
    for params in ({"alpha": 0.1}, {"alpha": 0.1, "prior": "least_squares"}, {"alpha": 0.05, "l1_ratio": 0.5}):
        X, C = make_portfolio(60, 3, 5, degree=2, random_state=0)
        objective = spo_plus_objective(X, C, sk.EntropySimplex(), **params)
        Theta = LBFGSSolver(tol=1e-9).solve(objective, Run()).coef
        V = objective.decisions(Theta)
        G = 2.0 * objective.design.adjoint((objective.W - V) * objective.weight[:, None])
        assert np.abs(objective.moment_residual(G, Theta)).max() < 1e-4
        assert np.abs(G).max() > 1e-2


@pytest.mark.parametrize("prior", ["zero", "least_squares"])
def test_bound_without_penalty_is_the_smallest_value_of_a_line_in_a_ball(prior):
    """min of a + <T, G> over |T - least squares| <= CERTIFICATE_RADIUS, for every prior."""
    objective = spo_plus_objective(*noisy_data(), prior=prior)
    rng = np.random.default_rng(0)
    Theta, V = rng.normal(size=objective.shape), rng.dirichlet(np.ones(4), size=objective.n_samples)
    G = 2.0 * sum(
        a * np.outer(w - v, z) for a, w, v, z in zip(objective.weight, objective.W, V, objective.design.Z, strict=True)
    )
    constant = float(objective.weight @ (objective.C * (V - objective.W)).sum(axis=1))
    expected = constant + (objective.least_squares * G).sum() - CERTIFICATE_RADIUS * np.linalg.norm(G)
    assert objective.dual_value(V, Theta).value == pytest.approx(expected, rel=1e-12)


def test_only_ratios_of_weights_matter():
    X, C = noisy_data()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=30)
    small, large = (
        sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1).fit(X, C, sample_weight=unit * weight) for unit in (1.0, 64.0)
    )
    assert small.objective_ == pytest.approx(large.objective_, rel=1e-9)
    mean = sk.spo_plus_loss(C, small.predict(X), sk.Simplex(), sample_weight=weight)
    assert small.objective_ == pytest.approx(mean + 0.05 * (small.coef_**2).sum(), rel=1e-9)


@pytest.mark.parametrize("seed", [2, 4])  # draws with a sample at the kink of the loss
def test_bound_does_not_suffer_from_a_hidden_component_of_the_coefficients(seed):
    """No decisions cancel the penalty's gradient along directions in which decisions do not vary."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    C = X @ rng.normal(size=(3, 3)) + rng.normal(size=(20, 3))
    objective = InMemoryObjective(sk.SPOPlusLoss(sk.EntropySimplex(-0.7)), X, C, alpha=0.1)
    result = NewtonSolver().solve(objective, Run())
    Theta = result.coef.copy()
    Theta[:, :3] += 1e-6 * objective.normals.T @ np.array([[1.0, -1.0, 2.0]])
    bound = lower_bound(objective, DecisionsAt(Theta), Theta, Deadline())
    assert bound.value <= result.objective
    assert result.objective - bound.value <= 2e-6 * result.objective
