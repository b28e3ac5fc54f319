"""Decisions as data frames and in words, and names in reports and displays."""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skspo as sk
from skspo.plotting import DecisionDisplay

FUELS = ["oil", "gas", "coal"]
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["wind", "sun"], index=[f"day {i}" for i in range(30)])
C = pd.DataFrame(rng.normal(size=(30, 3)) + X.to_numpy() @ rng.normal(size=(2, 3)), columns=FUELS, index=X.index)


def fuel(names=None):
    return sk.Polyhedron(A_eq=[[1, 1, 1]], b_eq=[1], variable_names=names)


def fit(region, y=C, X=X):
    return sk.SPOPlusRegressor(region, alpha=0.1).fit(X, y)


def test_frame_has_the_columns_of_the_costs_and_the_index_of_the_features():
    model = fit(sk.Simplex())
    W = model.decide(X, as_frame=True)
    assert list(W.columns) == FUELS
    pd.testing.assert_index_equal(W.index, X.index)
    np.testing.assert_array_equal(W.to_numpy(), model.decide(X))
    # Columns of costs and decisions are the same, so that they can be multiplied.
    cost = (C * W).sum(axis=1)
    np.testing.assert_allclose(cost, np.einsum("ij,ij->i", C, model.decide(X)))


@pytest.mark.parametrize(
    ("region", "y", "columns"),
    [
        (fuel(FUELS), C.to_numpy(), FUELS),
        (fuel(["a", "b", "c"]), C, FUELS),
        (fuel(), C.to_numpy(), ["w0", "w1", "w2"]),
        (sk.ShortestPath([("a", "b"), ("b", "c"), ("a", "c")]), C.to_numpy(), ["a -> b", "b -> c", "a -> c"]),
    ],
)
def test_columns(region, y, columns):
    W = fit(region, y, X.to_numpy()).decide(X.to_numpy(), as_frame=True)
    assert list(W.columns) == columns
    assert list(W.index) == list(range(30))


def test_words():
    model = fit(sk.TopK(2))
    W = model.decide(X)
    assert model.chosen(X) == [[FUELS[j] for j in np.flatnonzero(w)] for w in W]
    route = fit(sk.ShortestPath([("a", "b"), ("b", "c"), ("a", "c")]))
    for w, words in zip(route.decide(X), route.chosen(X), strict=True):
        assert words == (["a", "c"] if w[2] else ["a", "b", "c"])
    mine = fit(fuel(FUELS), C.to_numpy(), X.to_numpy())
    assert mine.chosen(X.to_numpy()[:1]) == [{FUELS[int(mine.decide(X.to_numpy()[:1]).argmax())]: 1.0}]


def test_words_of_rows_with_parameters_of_their_own():
    region = sk.Knapsack([3, 4, 5], 8)
    rows = {"capacity": np.full(30, 3.0)}
    model = sk.SPOPlusRegressor(region).fit(X, C, region_params=rows)
    assert {word for words in model.chosen(X, region_params=rows) for word in words} <= {"oil"}
    with pytest.warns(UserWarning, match="chosen was called without it"):
        model.chosen(X)


def test_shared_names_in_another_order_are_an_error():
    with pytest.raises(ValueError, match=r"another order: column 0 is 'gas' and should be 'oil'(.|\n)*variable_names"):
        fit(fuel(FUELS), C[["gas", "oil", "coal"]])
    fit(fuel(FUELS), C)
    fit(fuel(["a", "b", "c"]), C)


def test_pandas_is_needed_only_for_frames(monkeypatch):
    model = fit(sk.Simplex(), C, X.to_numpy())

    class Absent:  # as if it were not installed; scikit-learn 1.6 does not expect None in sys.modules
        def find_spec(name, path=None, target=None):
            if name == "pandas":
                raise ModuleNotFoundError(name)

    monkeypatch.delitem(sys.modules, "pandas")
    monkeypatch.setattr(sys, "meta_path", [Absent, *sys.meta_path])
    assert model.decide(X.to_numpy()).shape == (30, 3)
    with pytest.raises(ImportError, match="pip install pandas"):
        model.decide(X.to_numpy(), as_frame=True)


def test_frames_of_dask_collections_are_refused():
    da = pytest.importorskip("dask.array")
    model = fit(sk.Simplex(), C, X.to_numpy())
    with pytest.raises(ValueError, match="as_frame=True cannot be combined with dask"):
        model.decide(da.from_array(X.to_numpy(), chunks=10), as_frame=True)


def test_report_has_the_means_of_named_decisions():
    model = fit(sk.Simplex())
    report = sk.decision_report(model, X, C)
    W, best = model.decide(X), sk.Simplex().argmin(C)
    for j, name in enumerate(FUELS):
        assert report.chosen[name] == pytest.approx((W[:, j].mean(), best[:, j].mean()))
    assert report.to_dict()["chosen"] == report.chosen
    line = next(line for line in str(report).splitlines() if line.startswith("Mean decisions"))
    assert all(name in line for name in FUELS)
    weight = rng.integers(0, 3, 30)
    means = sk.decision_report(model, X, C, sample_weight=weight).chosen
    assert means["gas"][0] == pytest.approx(np.average(W[:, 1], weights=weight))
    plain = fit(sk.ShortestPath.grid(2, 2), rng.normal(size=(30, 4)), X)
    assert "Mean decisions" not in str(plain.report(X, rng.normal(size=(30, 4))))
    assert sk.decision_report(fit(fuel(FUELS), C.to_numpy()), X, C.to_numpy()).chosen.keys() == set(FUELS)


@pytest.mark.parametrize("region", [sk.Simplex(), sk.Box(), sk.Knapsack([3, 4, 5], 8)])
def test_displays_have_names(region):
    model = fit(region)
    search = GridSearchCV(make_pipeline(StandardScaler(), sk.SPOPlusRegressor(region, alpha=0.1)), {}, cv=2).fit(X, C)
    for estimator in (model, search):
        display = DecisionDisplay.from_estimator(estimator, X, C)
        assert {label.get_text() for label in display.ax_.get_xticklabels()} == set(FUELS)
    display = DecisionDisplay.from_estimator(model, X, C, labels=["x", "y", "z"])
    assert {label.get_text() for label in display.ax_.get_xticklabels()} == {"x", "y", "z"}
    plt.close("all")


def test_display_of_decisions_that_vary_by_sample():
    rows = {"capacity": np.full(30, 3.0)}
    region = sk.Knapsack([3, 4, 5], 8)
    model = sk.SPOPlusRegressor(region).fit(X, C, region_params=rows)
    display = DecisionDisplay.from_estimator(model, X, C, region_params=rows)
    assert (display.W @ [3, 4, 5] <= 3).all()
    assert (display.W_best @ [3, 4, 5] <= 3).all()
    assert (display.regret >= 0).all()
    plt.close("all")
