"""Class labels as costs: one decision variable may leave nothing to decide, and every model has a perfect score."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import MultiOutputRegressor, RegressorChain

from skspo import (
    Assignment,
    Box,
    CostSensitiveClassifier,
    EntropySimplex,
    Knapsack,
    L1Ball,
    LogBarrierSimplex,
    Markowitz,
    Polyhedron,
    Product,
    ShortestPath,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    SPORegressorCV,
    SPOStackingRegressor,
    TopK,
    TwoStageRegressor,
    cross_val_decide,
    normalized_spo_loss,
    spo_plus_loss,
    spo_plus_path,
)

rng = np.random.default_rng(0)
X, LABELS = rng.normal(size=(30, 2)), rng.integers(0, 3, size=30)
POINTS = [
    Simplex(),
    Simplex(sense="max"),
    TopK(1),
    TopK(2),
    Assignment(),
    EntropySimplex(),
    LogBarrierSimplex(),
    Markowitz([[1.0]], 2.0),
    ShortestPath([("a", "b")]),
    Product([Simplex()], [1]),
    Polyhedron(A_eq=[[2]], b_eq=[3]),
    Box(1, 1),
]
ESTIMATORS = [
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    SPORegressorCV,
    SPOMLPRegressor,
    SPOStackingRegressor,
    lambda region: TwoStageRegressor(region=region),
]


def refused(function, *args, **kwargs):
    with pytest.raises(ValueError) as caught:
        function(*args, **kwargs)
    assert "CostSensitiveClassifier" in str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))


@pytest.mark.parametrize("region", POINTS, ids=str)
def test_labels_are_refused_where_there_is_one_decision_only(region):
    refused(SPOPlusRegressor(region).fit, X, LABELS)
    refused(SPOPlusRegressor(region).fit, X, pd.Series(LABELS))
    refused(SPOPlusRegressor(region).fit, X, LABELS.tolist())


@pytest.mark.parametrize("make", ESTIMATORS)
def test_every_estimator_refuses_labels(make):
    refused(make(Simplex()).fit, X, LABELS)


def test_functions_refuse_labels():
    refused(SPOPlusRegressor(Simplex()).partial_fit, X, LABELS)
    refused(SPOPlusRegressor(Simplex()).fit_chunks, [(X, LABELS)])
    refused(cross_val_decide, LinearRegression(), X, LABELS, region=Simplex())
    refused(spo_plus_path, X, LABELS, Simplex())
    refused(normalized_spo_loss, LABELS, LABELS, Simplex())
    refused(spo_plus_loss, LABELS, LABELS, TopK())


@pytest.mark.parametrize("wrapper", [MultiOutputRegressor, RegressorChain])
@pytest.mark.parametrize("region", [Simplex(), TopK(1)], ids=str)
def test_one_model_for_each_cost_is_refused(wrapper, region):
    refused(wrapper(SPOPlusRegressor(region)).fit, X, np.eye(3)[LABELS])


@pytest.mark.parametrize("region", [Box(), Box(-1, 1), L1Ball(), Knapsack([1], 1, sense="max")], ids=str)
def test_one_variable_with_several_decisions_is_a_problem(region):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SPOPlusRegressor(region).fit(X, X[:, 0])
        assert model.decide(X).shape == (30, 1)
        assert np.ptp(model.decide(X)) > 0


def test_a_column_with_one_decision_warns():
    with pytest.warns(UserWarning, match="y has one column, and Simplex.*CostSensitiveClassifier"):
        SPOPlusRegressor(Simplex()).fit(X, LABELS[:, None])


def test_what_the_error_recommends_works():
    assert CostSensitiveClassifier(cv=2).fit(X, LABELS).predict(X).shape == (30,)
