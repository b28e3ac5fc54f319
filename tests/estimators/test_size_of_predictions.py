"""The size of predictions, which decisions do not depend on."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import skspo as sk
from skspo._training.inputs import nearest_factor
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


def nearest(region, C, C_hat, weight=None):
    """The factor by regression through the origin on the component of the predictions that decisions see."""
    visible = region.visible_costs(C_hat)
    fit = LinearRegression(fit_intercept=False)
    weight = None if weight is None else np.repeat(weight, C.shape[1])
    return fit.fit(visible.reshape(-1, 1), (C - C_hat + visible).ravel(), sample_weight=weight).coef_[0]


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
    region, factor = model.region_, model.prediction_factor_
    assert factor == pytest.approx(nearest(region, C, C_hat, known.get("sample_weight"))) and factor > 0
    rescaled = model.predict_rescaled(X, offset=offset)
    np.testing.assert_allclose(region.visible_costs(rescaled), factor * region.visible_costs(C_hat))
    np.testing.assert_allclose(
        rescaled - region.visible_costs(rescaled), C_hat - region.visible_costs(C_hat), atol=1e-9
    )
    chosen, again = (
        np.einsum("ij,ij->i", C_hat, w) for w in (model.decide(X, offset=offset), model.region_.argmin(rescaled))
    )
    np.testing.assert_allclose(again, chosen, rtol=1e-9)


def test_chunks_passes_and_sparse_features_have_the_same_factor():
    region = sk.TopK(2, sense="max")
    for offset in (None, OFFSET):
        chunks = ChunkedData.from_arrays(X, C, W, offset, chunk_rows=17)
        for model in (
            sk.SPOPlusRegressor(region, alpha=0.1).fit_chunks(chunks),
            sk.SPOPlusRegressor(region, alpha=0.1).fit(sp.csr_array(X), C, W, offset),
            sk.SPOPlusRegressor(region, random_state=0).partial_fit(X, C, W, offset),
        ):
            factor = nearest(region, C, model.predict(X, offset=offset), W)
            assert model.prediction_factor_ == pytest.approx(factor, rel=1e-8)


def test_shared_models_in_chunks():
    items = RNG.normal(size=(40, 5 * 2))
    costs = items.reshape(40, 5, 2) @ [1.0, -2.0] + 3.0 + RNG.normal(size=(40, 5))
    for region in (sk.Simplex(), sk.Box(-1, 1)):  # with and without a component that changes no decision
        model = sk.SPOPlusRegressor(region, shared=True, alpha=0.1)
        model.fit_chunks(ChunkedData.from_arrays(items, costs, chunk_rows=11))
        assert model.prediction_factor_ == pytest.approx(nearest(region, costs, model.predict(items)), rel=1e-6)


def test_known_costs_leave_no_choice():
    region = sk.LinearImage(sk.Simplex(), np.eye(5), known_cost=[0.1, 0.2, 0.3, 0.4, 0.5])
    model = sk.SPOPlusRegressor(region, alpha=0.1).fit(X, region.extend(C))
    assert model.prediction_factor_ == 1.0
    np.testing.assert_array_equal(model.predict_rescaled(X), model.predict(X))


def test_one_dimensional_costs_and_dask():
    model = sk.SPOPlusRegressor(sk.Box(-1, 1), alpha=0.1).fit(X, C[:, 0] - 3.0)
    assert model.predict_rescaled(X).shape == (60,)
    np.testing.assert_allclose(model.predict_rescaled(X), model.prediction_factor_ * model.predict(X))
    da = pytest.importorskip("dask.array")
    model = sk.SPOPlusRegressor(sk.TopK(2), alpha=0.1).fit(X, C)
    lazy = model.predict_rescaled(da.from_array(X, chunks=(20, 4))).compute()
    np.testing.assert_allclose(lazy, model.predict_rescaled(X))


def test_least_squares_has_the_factor_one():
    model = sk.SPOPlusRegressor(sk.Box(-1, 1), alpha=1e9, prior="least_squares").fit(X, C)
    assert model.prediction_factor_ == pytest.approx(1.0, rel=1e-6)
    two_stage = sk.TwoStageRegressor(region=sk.Box(-1, 1)).fit(X, C)
    np.testing.assert_array_equal(two_stage.predict_rescaled(X), two_stage.predict(X))


def test_no_positive_factor():
    N = np.zeros((0, 5))
    assert nearest_factor(C, -C, N) == 1.0
    assert nearest_factor(C, np.zeros_like(C), N) == 1.0
    assert nearest_factor(0.0 * C, C, N) == 1.0
    assert nearest_factor(C * 1e200, C * 1e-100, N) == pytest.approx(1e300)
    mask = RNG.random(C.shape) < 0.5
    C_hat = C + RNG.normal(size=C.shape)
    assert nearest_factor(np.where(mask, C, 0.0), C_hat, N, None, mask) == pytest.approx(
        nearest_factor(np.where(mask, C, 0.0), np.where(mask, C_hat, 0.0), N)
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
