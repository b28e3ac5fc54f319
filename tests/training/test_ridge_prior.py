"""``prior="ridge"``: the penalty shrinks towards a ridge regression."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import Box, ShortestPath, Simplex, SPOPlusRegressor, SPOPlusRegressorCV, spo_plus_path
from skspo._training.regression import RIDGE_ALPHAS
from skspo.datasets import make_shortest_path


def many_features(n: int = 40, p: int = 60, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 10.0, p) + rng.normal(size=p)
    return X, X[:, :3] @ rng.normal(size=(3, d)) + rng.normal(size=(n, d))


def best_ridge(Z: np.ndarray, visible: np.ndarray, C: np.ndarray, fit_intercept: bool = True) -> Ridge:
    """Ridge regression whose penalty is the best of a search by brute force, leaving out one sample at a time."""
    n = len(Z)
    errors = []
    for alpha in n * RIDGE_ALPHAS:
        error = 0.0
        for i in range(n):
            rest = np.arange(n) != i
            model = Ridge(alpha, fit_intercept=fit_intercept).fit(Z[rest], visible[rest])
            error += np.square(model.predict(Z[[i]]) - visible[i]).sum()
        errors.append(error)
    return Ridge(n * RIDGE_ALPHAS[int(np.argmin(errors))], fit_intercept=fit_intercept).fit(Z, C)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_infinite_alpha_is_the_ridge_fit_with_the_lowest_leave_one_out_error(fit_intercept):
    X, C = many_features(n=20, p=25)
    model = SPOPlusRegressorCV(Simplex(), prior="ridge", alphas=[np.inf], fit_intercept=fit_intercept).fit(X, C)
    scaler = StandardScaler(with_mean=fit_intercept).fit(X)
    Z = scaler.transform(X) if fit_intercept else X / np.sqrt(np.square(X).mean(axis=0))
    # The sum of a decision is 1: only differences of costs matter.
    truth = best_ridge(Z, C - C.mean(axis=1, keepdims=True), C, fit_intercept)
    np.testing.assert_allclose(model.predict(X), truth.predict(Z), rtol=1e-7, atol=1e-8)
    assert model.alpha_ == np.inf
    assert model.solver_ == "ridge"
    assert model.duality_gap_ == 0.0


def test_a_large_alpha_gives_nearly_the_ridge_fit_and_a_small_one_does_not():
    X, C = make_shortest_path(60, grid=(3, 3), degree=4, noise=0.5, random_state=0)
    region = ShortestPath.grid(3, 3)
    alphas, coefs, intercepts, _, gaps = spo_plus_path(X, C, region, prior="ridge", alphas=[np.inf, 1e6, 1e-3])
    predictions = [X @ coef.T + intercept for coef, intercept in zip(coefs, intercepts, strict=True)]
    assert np.isinf(alphas[0])
    assert gaps.max() <= 1e-6
    size = np.abs(predictions[0]).max()
    np.testing.assert_allclose(predictions[1], predictions[0], atol=1e-4 * size)
    assert np.abs(predictions[2] - predictions[0]).max() > 1e-2 * size


@pytest.mark.parametrize("solver", ["auto", "conic", "bundle", "dual", "interior-point"])
def test_it_is_the_zero_prior_with_the_ridge_predictions_as_offset(solver):
    # Without an intercept both penalties are on the same coefficients.
    X, C = many_features(n=30, p=5)
    X = X / np.sqrt(np.square(X).mean(axis=0))
    common = {"alpha": 0.1, "fit_intercept": False, "tol": 1e-8}
    model = SPOPlusRegressor(Simplex(), prior="ridge", solver=solver, **common).fit(X, C)
    ridge = RidgeCV(30 * RIDGE_ALPHAS, fit_intercept=False).fit(X, C - C.mean(axis=1, keepdims=True))
    offset = Ridge(ridge.alpha_, fit_intercept=False).fit(X, C).predict(X)
    other = SPOPlusRegressor(Simplex(), prior="zero", **common).fit(X, C, offset=offset)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), other.predict(X, offset=offset), atol=1e-3)


def test_units_change_no_decision():
    X, C = many_features()
    region = Simplex()
    model = SPOPlusRegressorCV(region, prior="ridge", n_alphas=5).fit(X, C)
    unit = 10.0 ** np.linspace(-4, 4, X.shape[1])
    other = SPOPlusRegressorCV(region, prior="ridge", n_alphas=5).fit(X * unit + 3.0 * unit, 1e5 * C)
    assert other.alpha_ == pytest.approx(model.alpha_, rel=1e-6)
    np.testing.assert_array_equal(other.decide(X * unit + 3.0 * unit), model.decide(X))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_features(fit_intercept):
    rng = np.random.default_rng(0)
    X = (rng.random((40, 12)) < 0.3).astype(float)
    C = X[:, :4] + rng.normal(size=(40, 4))
    common = {"prior": "ridge", "fit_intercept": fit_intercept}
    model = SPOPlusRegressorCV(Simplex(), alphas=[np.inf], **common).fit(csr_array(X), C)
    # Sparse features are not centered: with an intercept or not, the unit is their root mean square.
    Z = X / model.feature_scale_
    truth = best_ridge(Z, C - C.mean(axis=1, keepdims=True), C, fit_intercept)
    np.testing.assert_allclose(model.predict(X), truth.predict(Z), rtol=1e-7, atol=1e-8)
    fitted = SPOPlusRegressor(Simplex(), alpha=0.1, **common).fit(csr_array(X), C)
    assert fitted.duality_gap_ <= 1e-6


def test_a_shared_model():
    rng = np.random.default_rng(1)
    items = rng.normal(size=(30, 4, 6))
    C = items[:, :, 0] - items[:, :, 1] + 0.5 * rng.normal(size=(30, 4))
    X = items.reshape(30, -1)
    model = SPOPlusRegressorCV(Box(-1.0, 1.0), shared=True, prior="ridge", alphas=[np.inf]).fit(X, C)
    flat = items.reshape(-1, 6)
    truth = make_pipeline(StandardScaler(), RidgeCV(120 * RIDGE_ALPHAS)).fit(flat, C.ravel())
    np.testing.assert_allclose(model.predict(X).ravel(), truth.predict(flat), rtol=1e-7)
    fitted = SPOPlusRegressor(Box(-1.0, 1.0), shared=True, prior="ridge", alpha=0.1).fit(X, C)
    assert fitted.duality_gap_ <= 1e-6


def test_samples_without_weight_change_nothing():
    X, C = many_features(n=30)
    weight = np.r_[np.full(20, 2.0), np.zeros(10)]
    model = SPOPlusRegressor(Simplex(), prior="ridge", alpha=1.0).fit(X, C, sample_weight=weight)
    other = SPOPlusRegressor(Simplex(), prior="ridge", alpha=1.0).fit(X[:20], C[:20])
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_samples_for_an_error_give_the_mean_cost(n):
    X, C = many_features(n=n, p=3)
    model = SPOPlusRegressor(Simplex(), prior="ridge", alpha=1e8).fit(X, C)
    np.testing.assert_allclose(model.predict(X), np.tile(C.mean(axis=0), (n, 1)), atol=1e-5)


def test_chunks_are_refused():
    X, C = many_features()
    with pytest.raises(ValueError, match="prior='ridge' needs all rows in memory"):
        SPOPlusRegressor(Simplex(), prior="ridge", alpha=1.0).fit_chunks([(X, C)])
    with pytest.raises(ValueError, match="infinity"):
        SPOPlusRegressorCV(Simplex(), prior="zero", alphas=[np.inf]).fit(X, C)


def test_it_does_not_overfit_where_least_squares_does():
    # 50 samples, 35 features, 40 samples in a fold: least squares has large coefficients.
    regret = {"ridge": 0.0, "least_squares": 0.0}
    for seed in range(3):
        X, C = many_features(n=250, p=35, seed=seed)
        for prior in regret:
            model = SPOPlusRegressorCV(Simplex(), prior=prior, n_alphas=8).fit(X[:50], C[:50])
            regret[prior] -= model.score(X[50:], C[50:])
    assert regret["ridge"] < 0.9 * regret["least_squares"]
