"""The test of symmetric costs: it holds its level, and finds skewness that matters for SPO+."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LinearRegression

import skspo as sk
from skspo.calibration import symmetry_test


def items(seed, skewed, n=1000, d=5):
    """Items whose conditional mean is linear, with more noise for some of them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d, 3))
    mean = Z @ [1.0, -0.5, 0.0]
    noise = rng.exponential(size=mean.shape) - 1.0 if skewed else rng.normal(size=mean.shape)
    return Z.reshape(n, -1), mean + np.exp(0.7 * Z[:, :, 2]) * noise, mean


@pytest.mark.parametrize("region", [sk.Simplex(), sk.TopK(2, sense="max"), sk.EntropySimplex()], ids=str)
def test_level_and_power(region):
    values = {
        skewed: np.array([symmetry_test(X, C, mean, region, shared=True, n_flips=99).p_value for X, C, mean in data])
        for skewed, data in ((s, [items(seed, s) for seed in range(40)]) for s in (False, True))
    }
    # 40 draws at a level of 10 %: more than 10 rejections have a probability below 0.1 %.
    assert (values[False] <= 0.1).sum() <= 10
    assert (values[True] <= 0.05).mean() >= 0.9


def test_level_with_fitted_predictions():
    """Least squares on the same samples: the test is not more likely to reject."""
    found = []
    for seed in range(40):
        X, C, _ = items(seed, skewed=False)
        rows = X.reshape(-1, 3)
        C_hat = LinearRegression().fit(rows, C.ravel()).predict(rows).reshape(C.shape)
        found.append(symmetry_test(X, C, C_hat, sk.Simplex(), shared=True, n_flips=99).p_value)
    assert (np.array(found) <= 0.1).sum() <= 10


def test_one_model_per_cost():
    """Skewed noise of one cost, whose spread depends on the only feature."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 1))
    mean = np.column_stack([0.5 * X[:, 0], np.zeros(3000)])
    spread = np.column_stack([np.exp(X[:, 0]), np.ones(3000)])
    for noise, found in ((rng.normal(size=mean.shape), False), (rng.exponential(size=mean.shape) - 1.0, True)):
        assert (symmetry_test(X, mean + spread * noise, mean, sk.Simplex()).p_value < 0.01) is found


def test_statistic_by_hand():
    X, C, mean = items(0, skewed=True, n=20)
    test = symmetry_test(X, C, mean, sk.Simplex(), shared=True)
    Z = np.column_stack([X.reshape(-1, 3), np.ones(100)])
    G = (sk.Simplex().argmin(C) - sk.Simplex().argmin(2 * mean - C)).ravel()
    # The squared length of a projection on the columns of Z, without the direction of the predictions, relative to its
    # mean over independent signs of samples.
    P = Z @ np.linalg.pinv(Z)
    v = P @ (mean - mean.mean(axis=1, keepdims=True)).ravel()
    P = P - np.outer(v, v) / (v @ v)
    blocks = sum(
        G[5 * i : 5 * i + 5] @ P[5 * i : 5 * i + 5, 5 * i : 5 * i + 5] @ G[5 * i : 5 * i + 5] for i in range(20)
    )
    assert test.ratio == pytest.approx(G @ P @ G / blocks)


def test_a_change_of_scale_does_not_count():
    """With equal skewed noise SPO+ scales predictions, but its decisions are those of the conditional mean."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(4000, 5, 3))
    mean = Z @ [1.0, -0.5, 0.0]
    C = mean + 2.0 * (rng.exponential(size=mean.shape) - 1.0)
    assert symmetry_test(Z.reshape(4000, -1), C, mean, sk.Simplex(), shared=True, n_flips=199).p_value > 0.05


def test_invariance():
    X, C, mean = items(1, skewed=True, n=60)
    plain = symmetry_test(X, C, mean, sk.Simplex(), shared=True)
    scaled = symmetry_test(7.0 * X + 3.0, 2.0 * C + 1.0, 2.0 * mean + 1.0, sk.Simplex(), shared=True)
    assert scaled.p_value == plain.p_value and scaled.ratio == pytest.approx(plain.ratio)
    values = symmetry_test(X, -C, -mean, sk.Simplex(sense="max"), shared=True)
    assert_array_equal(values, plain)


def test_perfect_predictions_and_parameters_of_samples():
    X, C, _ = items(2, skewed=True, n=30)
    assert symmetry_test(X, C, C, sk.Simplex(), shared=True) == (1.0, 1.0)
    params = {"upper": np.random.default_rng(0).uniform(1, 2, size=C.shape)}
    assert 0 < symmetry_test(X, C, 0 * C, sk.Box(-1, 1), shared=True, region_params=params).p_value <= 1


def test_bad_input():
    X, C, mean = items(2, skewed=True, n=30)
    with pytest.raises(ValueError, match="same shape"):
        symmetry_test(X, C, mean[:, :3], sk.Simplex())
    with pytest.raises(ValueError, match="n_flips must be an integer of at least 1"):
        symmetry_test(X, C, mean, sk.Simplex(), n_flips=0)
    with pytest.raises(ValueError, match="inconsistent"):
        symmetry_test(X[:5], C, mean, sk.Simplex())
