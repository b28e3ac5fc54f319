"""The report of decisions and the HTML representation of estimators."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from skspo import (
    Box,
    ChunkedData,
    Knapsack,
    ShortestPath,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    TwoStageRegressor,
    decision_report,
    normalized_spo_loss,
    spo_loss,
)
from skspo.datasets import make_cost_sensitive_classification, make_shortest_path


@pytest.fixture(scope="module")
def data():
    X, C = make_shortest_path(200, grid=(3, 3), degree=6, noise=0.5, random_state=0)
    model = SPOPlusRegressor(ShortestPath.grid(3, 3)).fit(X[:100], C[:100])
    return model, X[:100], C[:100], X[100:], C[100:]


def test_figures_are_the_metrics(data):
    model, X_train, C_train, X, C = data
    report = decision_report(model, X, C, X_train=X_train, C_train=C_train)
    predictions = {
        "SPOPlusRegressor": model.predict(X),
        "least squares": LinearRegression().fit(X_train, C_train).predict(X),
        "constant prediction": np.tile(C_train.mean(axis=0), (len(X), 1)),
    }
    models = report.to_dict()["models"]
    assert list(models) == list(predictions)
    for name, C_hat in predictions.items():
        assert models[name]["spo_loss"] == pytest.approx(spo_loss(C, C_hat, model.region_))
        assert models[name]["normalized_spo_loss"] == pytest.approx(normalized_spo_loss(C, C_hat, model.region_))
        assert models[name]["rmse"] == pytest.approx(np.sqrt(((C_hat - C) ** 2).mean()))
        same = (model.region_.argmin(C_hat) == model.region_.argmin(C)).all(axis=1)  # ties have probability zero
        assert models[name]["share_optimal"] == pytest.approx(same.mean())
    assert report.to_dict()["certificate"]["duality_gap"] == model.duality_gap_


def noise(n=240, p=8, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), 3.0 + rng.normal(size=(n, d))


MODELS = [
    SPOPlusRegressor(),
    SPOPlusRegressor(alpha=0.5, l1_ratio=0.5),
    SPOPlusRegressor(fit_intercept=False),
    SPOPlusRegressor(solver="bundle", alpha=0.1, prior="least_squares"),
    SPOPlusRegressorCV(n_alphas=3, cv=2),
    SPORegressor(max_iter=20, random_state=0),
    SPOMLPRegressor(hidden_layer_sizes=(4,), max_iter=2, random_state=0),
    TwoStageRegressor(),
    TwoStageRegressor(RandomForestRegressor(n_estimators=3, random_state=0)),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model)[:40])
def test_models_keep_the_baselines_of_their_fit(model, sense, shared):
    """Compared on the same samples with least squares fitted to the same data, weights and offset included."""
    X, C = noise(p=10)
    rng = np.random.default_rng(1)
    weight, known = rng.integers(0, 3, size=120), rng.normal(size=C.shape)
    model = clone(model).set_params(region=Simplex(sense=sense), shared=shared)
    model.fit(X[:120], C[:120], sample_weight=weight, offset=known[:120])
    report = model.report(X[120:], C[120:], offset=known[120:])
    given = model.report(
        X[120:],
        C[120:],
        offset=known[120:],
        X_train=X[:120],
        C_train=C[:120],
        sample_weight_train=weight,
        offset_train=known[:120],
    )
    assert list(report.rows)[1:] == ["least squares", "constant prediction"]
    for name, row in given.rows.items():
        assert report.rows[name] == pytest.approx(row, rel=1e-9)
    assert "fitted to the same data as the model" in str(report)
    # By hand, on rows instead of weights.
    intercept = getattr(model, "fit_intercept", True)
    rows, target = (np.repeat(a[:120], weight, axis=0) for a in (X, C - known))
    if shared:
        ls = LinearRegression(fit_intercept=intercept).fit(rows.reshape(-1, 2), target.ravel())
        C_hat = ls.predict(X[120:].reshape(-1, 2)).reshape(120, 5)
    else:
        C_hat = LinearRegression(fit_intercept=intercept).fit(rows, target).predict(X[120:])
    expected = spo_loss(C[120:], C_hat + known[120:], model.region_)
    assert report.rows["least squares"]["spo_loss"] == pytest.approx(expected)
    expected = spo_loss(C[120:], target.mean(axis=0) + known[120:], model.region_)
    assert report.rows["constant prediction"]["spo_loss"] == pytest.approx(expected)


def test_no_gain_in_noise():
    """On the training samples, where an earlier version, with least squares by folds, showed a gain of a third."""
    X, C = noise()
    model = SPOPlusRegressor(Simplex()).fit(X, C)
    rows = model.report(X, C).rows
    seen = LinearRegression().fit(X, C).predict(X)
    assert rows["least squares"]["spo_loss"] == pytest.approx(spo_loss(C, seen, Simplex()))
    held_out = cross_val_predict(LinearRegression(), X, C, cv=KFold(5))
    assert spo_loss(C, held_out, Simplex()) > 1.2 * spo_loss(C, seen, Simplex())  # what it was compared with


def test_without_baselines_there_is_no_ratio(data):
    _, X_train, C_train, X, C = data
    region = ShortestPath.grid(3, 3)
    streamed = SPOPlusRegressor(region, random_state=0).fit(X_train, C_train).partial_fit(X_train, C_train)
    forest = RandomForestRegressor(n_estimators=3, random_state=0).fit(X_train, C_train)
    for model in (streamed, forest):
        report = decision_report(model, X, C, region=region)
        assert list(report.rows) == [type(model).__name__]
        assert "times that of" not in str(report) and "Pass X_train and C_train" in str(report)
        assert "times that of least squares" in str(
            decision_report(model, X, C, region=region, X_train=X_train, C_train=C_train)
        )


@pytest.mark.parametrize("search", [False, True])
def test_least_squares_sees_the_features_of_the_last_step(data, search):
    _, X_train, C_train, X, C = data
    pipe = make_pipeline(StandardScaler(), PolynomialFeatures(2), SPOPlusRegressor(ShortestPath.grid(3, 3), alpha=1.0))
    model = GridSearchCV(pipe, {"spoplusregressor__alpha": [1.0, 10.0]}, cv=2) if search else pipe
    rows = decision_report(model.fit(X_train, C_train), X, C).rows
    ls = make_pipeline(StandardScaler(), PolynomialFeatures(2), LinearRegression()).fit(X_train, C_train)
    expected = spo_loss(C, ls.predict(X), ShortestPath.grid(3, 3))
    assert rows["least squares"]["spo_loss"] == pytest.approx(expected)
    given = decision_report(model, X, C, X_train=X_train, C_train=C_train).rows
    assert given["least squares"] == pytest.approx(rows["least squares"])


@pytest.mark.parametrize("shared", [False, True])
def test_baselines_of_data_in_chunks(shared):
    X, C = noise(p=10)
    weight, known = np.random.default_rng(1).integers(0, 3, size=240).astype(float), np.linspace(0, 1, 5)
    region = Simplex(sense="max")
    whole = SPOPlusRegressor(region, alpha=0.1, shared=shared).fit(X, C, weight, known)
    parts = ChunkedData.from_arrays(X, C, weight, known, chunk_rows=70)
    chunked = SPOPlusRegressor(region, alpha=0.1, shared=shared).fit_chunks(parts)
    expected = whole.report(X, C, offset=known).rows
    for name, row in chunked.report(X, C, offset=known).rows.items():
        if name != "SPOPlusRegressor":
            assert row == pytest.approx(expected[name], rel=1e-9)


def test_two_stage_leaves_least_squares_of_large_data_to_the_user(monkeypatch):
    monkeypatch.setattr("skspo._training.baselines.QUICK_PRODUCTS", 1e3)
    X, C = noise()
    report = TwoStageRegressor(region=Simplex()).fit(X, C).report(X, C)
    assert list(report.rows) == ["TwoStageRegressor", "constant prediction"]
    assert "No least squares: it is computed at fit" in str(report) and "X_train and C_train" in str(report)


def test_weights_equal_repetitions(data):
    model, X_train, C_train, X, C = data
    weight = np.random.default_rng(0).integers(0, 3, size=len(X))
    a = model.report(X, C, X_train=X_train, C_train=C_train, sample_weight=weight)
    b = model.report(np.repeat(X, weight, axis=0), np.repeat(C, weight, axis=0), X_train=X_train, C_train=C_train)
    for name in a.rows:
        assert a.rows[name] == pytest.approx(b.rows[name])


def test_text_and_html_agree(data):
    model, X_train, C_train, X, C = data
    report = model.report(X, C, X_train=X_train, C_train=C_train, name="<mine>")
    text, page = str(report), report._repr_html_()
    assert repr(report) == text
    for cell in (f"{report.rows['<mine>']['normalized_spo_loss']:.2%}", f"{model.duality_gap_:.1e}", "12 variables"):
        assert cell in text and cell in page
    ratio = report.rows["<mine>"]["spo_loss"] / report.rows["least squares"]["spo_loss"]
    assert f"{ratio:.2f} times that of least squares" in text
    assert "<mine>" in text and "<mine>" not in page and "&lt;mine&gt;" in page
    assert len({len(line) for line in text.splitlines()[2:6]}) == 1  # columns are aligned


def test_any_regressor_with_a_region(data):
    _, X_train, C_train, X, C = data
    region = ShortestPath.grid(3, 3)
    pipe = make_pipeline(StandardScaler(), SPOPlusRegressor(region)).fit(X_train, C_train)
    assert "SPOPlusRegressor" in decision_report(pipe, X, C).rows
    forest = RandomForestRegressor(n_estimators=3, random_state=0).fit(X_train, C_train)
    with pytest.raises(ValueError, match="Pass region="):
        decision_report(forest, X, C)
    report = decision_report(forest, X, C, region=region)
    assert report.to_dict()["certificate"] == {} and "Fit:" not in str(report)
    with pytest.raises(ValueError, match="together"):
        decision_report(forest, X, C, region=region, X_train=X)


def test_right_class_costs_nothing():
    X, C = make_cost_sensitive_classification(60, degree=2, random_state=0)
    report = SPOPlusRegressor(Simplex()).fit(X, C).report(X, C)
    # All best costs are zero: the table has no relative regret, and there is no warning.
    assert np.isnan(report.rows["SPOPlusRegressor"]["normalized_spo_loss"])
    assert " - " in str(report)


def test_text_features_have_no_least_squares():
    frame = pd.DataFrame({"street": ["a", "b", "a", "c"] * 5})
    C = np.random.default_rng(0).normal(size=(20, 3))
    inner = make_pipeline(OneHotEncoder(), Ridge())
    report = TwoStageRegressor(inner, Box()).fit(frame, C).report(frame, C)
    assert list(report.rows) == ["TwoStageRegressor", "constant prediction"]
    assert "No least squares" in str(report)


def test_one_model_shared_by_all_costs():
    """The least-squares baseline of a shared model is shared as well: one block of features per cost."""

    class Shared(BaseEstimator):
        shared = True
        region_ = Simplex()

        def predict(self, X):
            return np.zeros((len(X), 4))

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4 * 2))
    C = X.reshape(50, 4, 2) @ [1.0, -2.0] + 3.0
    rows = decision_report(Shared(), X, C, X_train=X, C_train=C).rows
    assert rows["least squares"]["rmse"] == pytest.approx(0.0, abs=1e-9)


def test_one_dimensional_costs_and_maximization():
    X = np.linspace(-1, 1, 30)[:, None]
    y = X[:, 0] + 0.1
    report = SPOPlusRegressor(Box(sense="max")).fit(X, y).report(X, y)
    assert report.rows["SPOPlusRegressor"]["spo_loss"] == pytest.approx(0.0, abs=1e-9)
    assert "maximized" in str(report)


@pytest.mark.filterwarnings("ignore:.*was fitted with region_params:UserWarning")
def test_offsets_and_regions_that_vary_by_sample_reach_the_figures():
    from skspo import SPOPlusRegressor, normalized_spo_loss

    rng = np.random.default_rng(0)
    X, known = rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    C = 2.0 + X @ rng.normal(size=(3, 4)) + known
    params = {"capacity": rng.uniform(3.0, 8.0, size=60)}
    region = Knapsack([1, 2, 3, 4], 5, integer=False)
    model = SPOPlusRegressor(region).fit(X, C, offset=known, region_params=params)
    report = decision_report(model, X, C, offset=known, region_params=params, name="model").to_dict()["models"]
    loss = normalized_spo_loss(C, model.predict(X, offset=known), region, region_params=params)
    assert report["model"]["normalized_spo_loss"] == pytest.approx(loss)
    # The rest of the costs is linear in X, so least squares is perfect once the offset is known.
    assert report["least squares"]["rmse"] == pytest.approx(0.0, abs=1e-10)
    with pytest.warns(UserWarning, match="fitted with offset, but report was called without"):
        assert decision_report(model, X, C).to_dict()["models"]["least squares"]["rmse"] > 0.1
