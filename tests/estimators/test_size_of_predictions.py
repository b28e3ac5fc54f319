"""The size of predictions, which decisions do not depend on."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn.base import clone

import skspo as sk
from skspo._training.baselines import nearest_factor
from skspo.data import ChunkedData

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
C = 3.0 + X @ RNG.normal(size=(4, 5)) + RNG.normal(size=(60, 5))
W = RNG.uniform(0.1, 2.0, size=60)
OFFSET = RNG.uniform(0.0, 2.0, size=(60, 5))

MODELS = {
    "plain": sk.SPOPlusRegressor(),
    "penalty": sk.SPOPlusRegressor(alpha=0.1, prior="least_squares"),
    "values": sk.SPOPlusRegressor(sk.TopK(2, sense="max"), alpha=0.1),
    "cv": sk.SPOPlusRegressorCV(n_alphas=4, cv=3),
    "spo": sk.SPORegressor(n_restarts=0, random_state=0),
    "spo-cv": sk.SPORegressorCV(n_restarts=0, cv=2, random_state=0),
    "network": sk.SPOMLPRegressor(max_iter=20, random_state=0),
}


def nearest(C, C_hat, weight):
    """The factor by a search."""
    return minimize_scalar(lambda s: (weight @ (C - s * C_hat) ** 2).sum(), bounds=(0, 1e3), options={"xatol": 1e-9}).x


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("given", [(), ("sample_weight",), ("offset",), ("sample_weight", "offset")], ids="+".join)
@pytest.mark.parametrize("name", MODELS)
def test_factor_is_nearest_to_the_costs(name, given):
    model = clone(MODELS[name])
    model.set_params(region=model.region or sk.TopK(2))
    known = {key: {"sample_weight": W, "offset": OFFSET}[key] for key in given}
    model.fit(X, C, **known)
    offset = known.get("offset")
    C_hat = model.predict(X, offset=offset)
    weight = known.get("sample_weight", np.ones(60))
    factor = nearest_factor(C, C_hat, weight)
    assert model.prediction_factor_ == pytest.approx(factor, rel=1e-9) and factor > 0
    assert factor == pytest.approx(nearest(C, C_hat, weight), rel=1e-4)
    rescaled = model.predict_rescaled(X, offset=offset)
    np.testing.assert_allclose(rescaled, factor * C_hat)
    # A power of two changes no bit; any factor changes no decision but ties.
    np.testing.assert_array_equal(model.region_.argmin(4.0 * C_hat), model.decide(X, offset=offset))
    chosen, again = (
        np.einsum("ij,ij->i", C_hat, w) for w in (model.decide(X, offset=offset), model.region_.argmin(rescaled))
    )
    np.testing.assert_allclose(again, chosen, rtol=1e-9)


def test_chunks_passes_and_sparse_features_have_the_same_factor():
    region = sk.TopK(2, sense="max")
    for offset in (None, OFFSET):
        expected = sk.SPOPlusRegressor(region, alpha=0.1).fit(X, C, W, offset)
        chunks = ChunkedData.from_arrays(X, C, W, offset, chunk_rows=17)
        for model in (
            sk.SPOPlusRegressor(region, alpha=0.1).fit_chunks(chunks),
            sk.SPOPlusRegressor(region, alpha=0.1).fit(sp.csr_array(X), C, W, offset),
            sk.SPOPlusRegressor(region, random_state=0).partial_fit(X, C, W, offset),
        ):
            factor = nearest_factor(C, model.predict(X, offset=offset), W)
            assert model.prediction_factor_ == pytest.approx(factor, rel=1e-8)
        assert expected.prediction_factor_ == pytest.approx(nearest_factor(C, expected.predict(X, offset=offset), W))


def test_shared_models_in_chunks():
    items = RNG.normal(size=(40, 5 * 2))
    costs = items.reshape(40, 5, 2) @ [1.0, -2.0] + 3.0 + RNG.normal(size=(40, 5))
    model = sk.SPOPlusRegressor(sk.Simplex(), shared=True, alpha=0.1)
    model.fit_chunks(ChunkedData.from_arrays(items, costs, chunk_rows=11))
    assert model.prediction_factor_ == pytest.approx(nearest_factor(costs, model.predict(items)), rel=1e-8)


def test_least_squares_has_the_factor_one():
    model = sk.SPOPlusRegressor(sk.Box(-1, 1), alpha=1e9, prior="least_squares").fit(X, C)
    assert model.prediction_factor_ == pytest.approx(1.0, rel=1e-6)
    two_stage = sk.TwoStageRegressor(region=sk.Box(-1, 1)).fit(X, C)
    np.testing.assert_array_equal(two_stage.predict_rescaled(X), two_stage.predict(X))


def test_no_positive_factor():
    assert nearest_factor(C, -C) == 1.0
    assert nearest_factor(C, np.zeros_like(C)) == 1.0
    assert nearest_factor(0.0 * C, C) == 1.0
    assert nearest_factor(C * 1e200, C * 1e-100) == pytest.approx(1e300)
    mask = RNG.random(C.shape) < 0.5
    C_hat = C + RNG.normal(size=C.shape)
    assert nearest_factor(np.where(mask, C, 0.0), C_hat, None, mask) == pytest.approx(
        nearest_factor(np.where(mask, C, 0.0), np.where(mask, C_hat, 0.0))
    )


def test_report_has_the_ratio_of_sizes():
    """Without a penalty, and with a loss of zero, the size of predictions is arbitrary."""
    x = RNG.normal(size=(40, 30))
    costs = 0.1 * RNG.normal(size=(40, 2))
    model = sk.SPOPlusRegressor(sk.Simplex()).fit(x[:35], costs[:35])
    model.coef_, model.intercept_ = 50.0 * model.coef_, 50.0 * model.intercept_
    report = model.report(x[35:], costs[35:])
    C_hat = model.predict(x[35:])
    ratio = np.sqrt((C_hat**2).mean() / (costs[35:] ** 2).mean())
    assert report.rows["SPOPlusRegressor"]["size"] == pytest.approx(ratio)
    assert f"{ratio:.3g} times as large as the costs: they are scores for deciding" in str(report)
    exact = sk.SPOPlusRegressor(sk.Simplex(), alpha=1e9, prior="least_squares").fit(X, C).report(X, C)
    assert "scores for deciding" not in str(exact)
    assert exact.rows["SPOPlusRegressor"]["size"] == pytest.approx(exact.rows["least squares"]["size"])
    assert np.isnan(sk.decision_report(model, x, 0.0 * np.ones((40, 2))).rows["SPOPlusRegressor"]["size"])
