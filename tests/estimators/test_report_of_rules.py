"""Reports beside rules of one's own, and decisions of searches with names."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import Knapsack, ShortestPath, Simplex, SPOPlusRegressor, TwoStageRegressor, chosen, decide, decision_report
from skspo.datasets import make_cost_sensitive_classification, make_knapsack, make_shortest_path


@pytest.fixture(scope="module")
def paths():
    X, C = make_shortest_path(200, grid=(3, 3), degree=6, random_state=0)
    region = ShortestPath.grid(3, 3)
    return X, C, SPOPlusRegressor(region, alpha=0.1).fit(X[:150], C[:150])


def test_costs_of_decisions(paths):
    X, C, model = paths
    report = model.report(X[150:], C[150:])
    W = model.decide(X[150:])
    assert report.rows["SPOPlusRegressor"]["cost"] == pytest.approx((C[150:] * W).sum(axis=1).mean())
    frame = report.to_frame()
    assert list(frame.index) == list(report.rows)
    assert frame.loc["least squares", "spo_loss"] == report.rows["least squares"]["spo_loss"]
    best = (C[150:] * model.region_.argmin(C[150:])).sum(axis=1).mean()
    np.testing.assert_allclose(frame["cost"] - frame["spo_loss"], best)


def test_values_are_maximized():
    X, C, weights = make_knapsack(80, n_items=6, random_state=0, return_weights=True)
    region = Knapsack(weights, 12, sense="max")
    model = SPOPlusRegressor(region, alpha=0.1).fit(X, C)
    rule = np.tile(region.argmin(C.mean(axis=0)), (80, 1))
    report = model.report(X, C, baselines={"rule": rule})
    best = (C * region.argmin(C)).sum(axis=1).mean()
    for row in report.rows.values():
        assert row["cost"] + row["spo_loss"] == pytest.approx(best)
    assert " value " in str(report) and "<th>value</th>" in report._repr_html_()


def test_baselines(paths):
    X, C, model = paths
    X, C = X[150:], C[150:]
    weight = np.arange(1.0, 51.0)
    rule = np.tile(model.region_.argmin(C.mean(axis=0)), (50, 1))
    other = TwoStageRegressor(region=model.region_).fit(*paths[:2])
    report = model.report(X, C, sample_weight=weight, baselines={"rule": rule, "other": other})
    expected = np.average((C * rule).sum(axis=1), weights=weight)
    assert report.rows["rule"]["cost"] == pytest.approx(expected)
    assert np.isnan(report.rows["rule"]["rmse"])
    assert report.rows["other"] == other.report(X, C, sample_weight=weight).rows["TwoStageRegressor"]
    assert "times that of rule" in str(report)
    low, high = report.intervals["rule"][:2]
    assert low < report.rows["SPOPlusRegressor"]["spo_loss"] / report.rows["rule"]["spo_loss"] < high


def test_errors_of_baselines(paths):
    X, C, model = paths
    with pytest.raises(ValueError, match="better than all decisions of the region"):
        model.report(X, C, baselines={"rule": np.zeros_like(C)})
    with pytest.raises(ValueError, match="already a row 'least squares'"):
        model.report(X, C, baselines={"least squares": model.decide(X)})
    for rule in (model.decide(X)[:, :3], model.decide(X)[0], "least squares"):
        with pytest.raises(ValueError, match=r"baselines\['rule'\] must be decisions of shape \("):
            model.report(X, C, baselines={"rule": rule})
    for baselines in (model.decide(X), {1: model.decide(X)}, "rule"):
        with pytest.raises(TypeError, match="baselines must be a dict from names"):
            model.report(X, C, baselines=baselines)
    text = np.full(C.shape, "a")
    for rule, words in ((np.full_like(C, np.nan), "contains NaN"), (text, "must hold numbers")):
        with pytest.raises(ValueError, match=rf"baselines\['rule'\] {words}"):
            model.report(X, C, baselines={"rule": rule})
    for rule in (None, lambda X: X, 1.0):
        with pytest.raises(ValueError, match=r"baselines\['rule'\] must be decisions of shape"):
            model.report(X, C, baselines={"rule": rule})
    with pytest.raises(NotFittedError):
        model.report(X, C, baselines={"other": SPOPlusRegressor(model.region)})


def test_baselines_in_another_order(paths):
    """Columns and rows of a data frame are those of the costs, or there is an error."""
    X, C, model = paths
    names = [f"road {j}" for j in range(C.shape[1])]
    X, C = pd.DataFrame(X), pd.DataFrame(C, columns=names)
    model = SPOPlusRegressor(model.region, alpha=0.1).fit(X, C)
    rule = model.decide(X, as_frame=True)
    rows = model.report(X, C, baselines={"rule": rule}).rows
    assert rows["rule"]["spo_loss"] == rows["SPOPlusRegressor"]["spo_loss"]
    for wrong, words in ((rule[names[::-1]], "in another order: column 0"), (rule[::-1], "in another order: row 0")):
        with pytest.raises(ValueError, match=rf"baselines\['rule'\](.|\n)*{words}"):
            model.report(X, C, baselines={"rule": wrong})


def test_decisions_of_a_search_have_names():
    X, C = make_cost_sensitive_classification(60, n_features=3, n_classes=3, random_state=0)
    X = pd.DataFrame(X, columns=list("xyz"), index=pd.date_range("2026-01-01", periods=60))
    C = pd.DataFrame(C, columns=["walk", "bus", "train"], index=X.index)
    pipeline = make_pipeline(StandardScaler(), SPOPlusRegressor(Simplex()))
    search = GridSearchCV(pipeline, {"spoplusregressor__alpha": [0.1, 1.0]}, cv=3).fit(X, C)
    W = decide(search, X, as_frame=True)
    assert list(W.columns) == list(C.columns)
    pd.testing.assert_index_equal(W.index, X.index)
    np.testing.assert_array_equal(W.to_numpy(), decide(search, X))
    model = search.best_estimator_[-1]
    assert chosen(search, X) == model.chosen(search.best_estimator_[:-1].transform(X))
    plain = decide(TwoStageRegressor(region=Simplex()).fit(X.to_numpy(), C.to_numpy()), X.to_numpy(), as_frame=True)
    assert list(plain.columns) == ["w0", "w1", "w2"]


def test_routes_along_streets_are_chosen_in_words():
    """The words of the inner region, also from pipelines, other regressors and transformed targets."""
    rng = np.random.default_rng(0)
    region = ShortestPath.undirected([("a", "b"), ("c", "b"), ("a", "c")], "a", "c")
    X = rng.normal(size=(30, 2))
    C = np.array([2.0, 2.0, 4.0]) + X @ rng.normal(size=(2, 3)) / 3
    model = TwoStageRegressor(region=region).fit(X, C)
    words = model.chosen(X)
    assert {tuple(route) for route in words} == {("a", "b", "c"), ("a", "c")}
    assert chosen(model, X) == words
    assert chosen(make_pipeline(TwoStageRegressor(region=region)).fit(X, C), X) == words
    assert chosen(LinearRegression().fit(X, C), X, region=region) == words
    target = TransformedTargetRegressor(
        TwoStageRegressor(region=region), func=lambda c: 2 * c, inverse_func=lambda c: c / 2
    )
    assert chosen(target.fit(X, C), X) == words
    away = {"source": ["b"] * 30}
    assert {route[0] for route in chosen(model, X, region_params=away)} == {"b"}


def test_chosen_needs_a_region(paths):
    X, C, _ = paths
    model = LinearRegression().fit(X, C)
    with pytest.raises(ValueError, match="has no region"):
        chosen(model, X)
    region = ShortestPath.grid(3, 3)
    assert chosen(model, X, region=region) == region.chosen(model.predict(X))
    assert decision_report(model, X, C, region=region).to_frame().shape == (1, 6)
