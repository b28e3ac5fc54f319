"""The linear map from features to costs: hidden components, curvature, and least squares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import items_data, noisy_data
from sklearn.linear_model import LinearRegression

import skspo as sk
from skspo._training.design import Design, SharedDesign


def test_a_column_that_is_constant_up_to_rounding_has_no_coefficient():
    X, C = noisy_data(40)
    noisy = np.full(40, 1e6)
    noisy[::3] = np.nextafter(1e6, 2e6)
    model = sk.SPOPlusRegressor(sk.Simplex()).fit(np.column_stack([X, noisy]), C)
    plain = sk.SPOPlusRegressor(sk.Simplex()).fit(X, C)
    assert_array_equal(model.coef_[:, -1], 0.0)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-5)


def shared_design(n=12, d=3, weight=None, seed=0):
    """A shared model whose second feature is the same for all items of a sample and changes no decision."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d, 2))
    X[:, :, 1] = rng.normal(size=(n, 1))
    weight = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    return SharedDesign(X.reshape(n, -1), weight, np.full((1, d), 1.0 / np.sqrt(d)), fit_intercept=True, center=True)


def test_hidden_features_of_a_shared_model_are_exactly_zero():
    design = shared_design()
    assert_array_equal(design.Z[:, :, 1:], 0.0)
    assert np.abs(design.Z[:, :, 0]).max() > 0.1


def test_curvature_of_a_shared_model_by_hand():
    rng = np.random.default_rng(1)
    design = shared_design(weight=rng.uniform(0.1, 3.0, size=12))
    M = rng.normal(size=(5, 3, 3))
    M = M @ M.transpose(0, 2, 1)
    rows = slice(4, 9)
    expected = sum(design.weight[i] * design.Z[i].T @ M[i - 4] @ design.Z[i] for i in range(4, 9))
    assert_allclose(design.curvature(M, rows), expected, atol=1e-12)


def test_least_squares_prior_has_weights():
    X, C = noisy_data(30)
    weight = np.random.default_rng(0).uniform(0.1, 5.0, size=30)
    model = sk.SPOPlusRegressor(sk.Box(), alpha=1e7, prior="least_squares").fit(X, C, sample_weight=weight)
    truth = LinearRegression().fit(X, C, sample_weight=weight)
    assert_allclose(model.coef_, truth.coef_, atol=1e-5)
    assert np.abs(LinearRegression().fit(X, C).coef_ - truth.coef_).max() > 1e-2


@pytest.mark.parametrize("normals", [np.zeros((0, 4)), np.full((1, 4), 0.5)], ids=["all seen", "sum hidden"])
@pytest.mark.parametrize("cls", [Design, SharedDesign])
def test_design_contract(cls, normals):
    """Adjoint, Gram matrix, sensitivities and translations agree with ``predict``."""
    rng = np.random.default_rng(0)
    X, C = items_data(4)
    weight = np.full(len(X), 1 / len(X))
    design = cls(X, weight, normals, fit_intercept=True, center=True)
    Theta = rng.normal(size=(1 if design.shared else 4, design.n_coef))
    G = rng.normal(size=C.shape)
    assert np.vdot(design.predict(Theta), G) == pytest.approx(np.vdot(Theta, design.adjoint(G)))
    rows = np.array([3, 7, 1])
    np.testing.assert_allclose(design.predict(Theta, rows), design.predict(Theta)[rows])
    np.testing.assert_allclose(
        design.adjoint(G[rows], rows), design.adjoint(np.where(np.isin(range(25), rows)[:, None], G, 0))
    )
    M = rng.normal(size=(len(X), 4, 4))
    M = M + M.transpose(0, 2, 1)
    H = sum(design.curvature(M[rows], rows) for rows in (slice(0, 10), slice(10, None)))
    C_hat = design.predict(Theta)
    assert Theta.ravel() @ H @ Theta.ravel() == pytest.approx(weight @ np.einsum("ij,ijk,ik->i", C_hat, M, C_hat))
    S = rng.normal(size=(2, 4))
    np.testing.assert_allclose(design.sensitivity(S) @ Theta.ravel(), design.predict(Theta) @ S.T, atol=1e-12)
    if design.shared:
        room = rng.uniform(size=len(X))
        value = (weight * room) @ (design.predict(Theta) ** 2).sum(axis=1)
        assert (Theta @ design.gram(room) @ Theta.T).item() == pytest.approx(value)
    np.testing.assert_allclose(design.from_user(*design.to_user(Theta)), Theta, atol=1e-12)
    # The hidden part changes no visible prediction, and both parts together are the prediction.
    see = np.eye(4) - normals.T @ normals
    np.testing.assert_allclose(design.predict(design.visible(Theta)) @ see, design.predict(Theta) @ see, atol=1e-12)
    np.testing.assert_allclose(design.visible(design.visible(Theta)), design.visible(Theta), atol=1e-12)
