"""``decide`` and ``cross_val_decide``: decisions of pipelines, searches and other regressors."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import parallel_config
from marks import routes_score_of_pipelines
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skspo import (
    CostSensitiveClassifier,
    Knapsack,
    OracleRegion,
    Simplex,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    TopK,
    TwoStageRegressor,
    cross_val_decide,
    decide,
    held_out_risk,
    row_params,
)

rng = np.random.default_rng(0)
N, D = 40, 4
X = rng.normal(size=(N, 3))
C = X @ rng.normal(size=(3, D)) + rng.normal(size=(N, D))
OFFSET = 2 * rng.normal(size=(N, D))
CAPACITY = rng.integers(3, 12, size=N).astype(float)
WEIGHT = rng.uniform(0.1, 2.0, size=N)
KNAPSACK = Knapsack([3, 4, 5, 2], 8, sense="max")
MODEL = SPOPlusRegressor(Simplex(), alpha=0.1)
GRID = {"alpha": [0.1, 1.0]}


def pipeline(model=MODEL):
    return make_pipeline(StandardScaler(), clone(model))


def search(model=MODEL, grid=GRID):
    return GridSearchCV(clone(model), grid, cv=2)


def transformed(model=MODEL):
    return TransformedTargetRegressor(clone(model), transformer=StandardScaler())


COMPOSED = {
    "estimator": MODEL,
    "pipeline": pipeline(),
    "search": search(),
    "search of a pipeline": search(pipeline(), {"spoplusregressor__alpha": [0.1, 1.0]}),
    "pipeline with a search": pipeline(search()),
    "pipeline in a pipeline": pipeline(pipeline()),
    "transformed target": transformed(),
    "pipeline with a transformed target": pipeline(transformed()),
    "transformed target of a pipeline": transformed(pipeline()),
    "search of a transformed target": search(transformed(), {"regressor__alpha": [0.1, 1.0]}),
    "two stages": pipeline(TwoStageRegressor(Ridge(), Simplex())),
    "cv": pipeline(SPOPlusRegressorCV(Simplex(), n_alphas=3, cv=2)),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_decisions_are_those_of_the_predictions(name):
    model = clone(COMPOSED[name]).fit(X, C)
    W = decide(model, X)
    np.testing.assert_array_equal(W, Simplex().argmin(model.predict(X)))
    np.testing.assert_array_equal(decide(model, X, region=Simplex()), W)  # the same region may be given
    np.testing.assert_array_equal(cross_val_decide(COMPOSED[name], X, C, cv=3).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match=r"region=TopK\(k=2\) was given, but \w+ has a region of its own, Simplex"):
        decide(model, X, region=TopK(2))


def test_frozen_models_and_data_frames():
    frame, costs = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(C, columns=list("wxyz"))
    model = pipeline().fit(frame, costs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as "X does not have valid feature names"
        W = decide(model, frame)
        held_out = cross_val_decide(pipeline(), frame, costs)
    np.testing.assert_array_equal(W, decide(pipeline().fit(X, C), X))
    np.testing.assert_array_equal(held_out, cross_val_decide(pipeline(), X, C))
    np.testing.assert_array_equal(held_out, cross_val_decide(pipeline(), X.tolist(), C.tolist()))
    np.testing.assert_array_equal(decide(FrozenEstimator(pipeline().fit(X, C)), X), W)
    frozen = FrozenEstimator(clone(MODEL).fit(X, C))
    np.testing.assert_array_equal(decide(frozen, X, region=Simplex()), frozen.decide(X))


@pytest.mark.parametrize(
    "model",
    [RandomForestRegressor(5, random_state=0), make_pipeline(StandardScaler(), Ridge())],
    ids=["forest", "ridge"],
)
def test_regressors_without_a_region(model):
    fitted = clone(model).fit(X, C)
    W = decide(fitted, X, region=KNAPSACK, offset=OFFSET, region_params={"capacity": CAPACITY})
    values = fitted.predict(X) + OFFSET
    for i in range(N):  # one knapsack at a time
        one = Knapsack([3, 4, 5, 2], CAPACITY[i], sense="max")
        np.testing.assert_array_equal(W[i], one.argmin(values[i]))
    np.testing.assert_array_equal(
        cross_val_decide(model, X, C, region=KNAPSACK), KNAPSACK.argmin(cross_val_predict(model, X, C))
    )


def test_regressors_of_one_output():
    model = Ridge().fit(X, C[:, 0])
    np.testing.assert_array_equal(decide(model, X, region=TopK(1)), np.ones((N, 1)))
    W = cross_val_decide(DecisionTreeRegressor(random_state=0), X, C[:, 0], region=Knapsack([1], 1, sense="max"))
    assert set(np.unique(W)) == {0.0, 1.0} and W.shape == (N, 1)


def test_functions_in_regions_are_compared_by_identity():
    region = OracleRegion(lambda C: Simplex().argmin(C), D)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SPOPlusRegressor(region, max_iter=5, alpha=1.0).fit(X, C)
        assert decide(model, X, region=region).shape == C.shape
        with pytest.raises(ValueError, match="has a region of its own"):
            decide(model, X, region=OracleRegion(lambda C: Simplex().argmin(C), D))


def test_region_in_a_transformed_target_is_found_elsewhere():
    model = transformed().fit(X, C)
    assert "Simplex" in str(held_out_risk(model, X, C))


# -- offset, region_params, sample_weight ------------------------------------------------------------------------------

KNOWN = {
    "offset": {"offset": OFFSET},
    "one offset": {"offset": OFFSET[0]},
    "dict": {"region_params": {"capacity": CAPACITY}},
    "row_params": {"region_params": row_params(capacity=CAPACITY)},
    "frame": {"region_params": pd.DataFrame({"capacity": CAPACITY})},
    "weight": {"sample_weight": WEIGHT},
    "all": {"offset": OFFSET, "region_params": {"capacity": CAPACITY}, "sample_weight": WEIGHT},
}


CV = KFold(4, shuffle=True, random_state=0)


@cache
def by_hand(name):
    """Held-out decisions of a scaler and a model, fold by fold."""
    known, W = {} if name is None else KNOWN[name], np.empty(C.shape)
    offset = known.get("offset")
    offset = None if offset is None else np.broadcast_to(offset, C.shape)
    weight = known.get("sample_weight")
    rows = {"capacity": CAPACITY} if "region_params" in known else None
    for train, test in CV.split(X):
        take = lambda values, rows: None if values is None else values[rows]  # noqa: E731
        scaler = StandardScaler().fit(X[train])
        model = SPOPlusRegressor(KNAPSACK, alpha=0.1).fit(
            scaler.transform(X[train]),
            C[train],
            sample_weight=take(weight, train),
            offset=take(offset, train),
            region_params=None if rows is None else {"capacity": CAPACITY[train]},
        )
        W[test] = model.decide(
            scaler.transform(X[test]),
            offset=take(offset, test),
            region_params=None if rows is None else {"capacity": CAPACITY[test]},
        )
    return W


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known_about_samples_reaches_the_last_step(name, routing):
    known, model = KNOWN[name], pipeline(SPOPlusRegressor(KNAPSACK, alpha=0.1))
    with sklearn.config_context(enable_metadata_routing=routing), warnings.catch_warnings():
        warnings.simplefilter("error")
        W = cross_val_decide(model, X, C, cv=CV, **known)
    np.testing.assert_array_equal(W, by_hand(name))
    if "region_params" in known:
        assert (W @ [3, 4, 5, 2] <= CAPACITY).all()
    if name != "one offset":  # a constant is learned anyway
        assert (W != by_hand(None)).any()


def test_a_fitted_pipeline_with_offset_and_region_params():
    model = pipeline(SPOPlusRegressor(KNAPSACK, alpha=0.1))
    known = {"offset": OFFSET, "region_params": {"capacity": CAPACITY}}
    model.fit(X, C, **{f"spoplusregressor__{name}": value for name, value in known.items()})
    inner, features = model[-1], model[:-1].transform(X)
    np.testing.assert_array_equal(decide(model, X, **known), inner.decide(features, **known))
    with pytest.warns(UserWarning, match="was fitted with offset, but decide was called without it"):
        decide(model, X, region_params={"capacity": CAPACITY})


@routes_score_of_pipelines
def test_metadata_routing_in_a_search():
    with sklearn.config_context(enable_metadata_routing=True):
        model = SPOPlusRegressor(KNAPSACK).set_fit_request(offset=True, region_params=True)
        model = search(
            pipeline(model.set_score_request(offset=True, region_params=True)), {"spoplusregressor__alpha": [0.1, 1]}
        )
        known = {"offset": OFFSET, "region_params": row_params(capacity=CAPACITY)}
        cv = KFold(3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            W = cross_val_decide(model, X, C, cv=cv, **known)
        expected = np.empty(C.shape)
        for train, test in cv.split(X):
            fitted = clone(model).fit(X[train], C[train], **{name: value[train] for name, value in known.items()})
            expected[test] = decide(fitted, X[test], **{name: value[test] for name, value in known.items()})
        np.testing.assert_array_equal(W, expected)
        with pytest.raises(ValueError, match="sample_weight"):
            cross_val_decide(model, X, C, cv=cv, sample_weight=WEIGHT)


# -- folds -------------------------------------------------------------------------------------------------------------


def test_folds():
    np.testing.assert_array_equal(cross_val_decide(MODEL, X, C), Simplex().argmin(cross_val_predict(MODEL, X, C)))
    groups = np.arange(N) % 7
    one = cross_val_decide(MODEL, X, C, cv=GroupKFold(7), groups=groups)
    two = cross_val_decide(
        MODEL, X, C, cv=[(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(7)]
    )
    np.testing.assert_array_equal(one, two)
    W = cross_val_decide(MODEL, X, C, cv=TimeSeriesSplit(4))
    assert np.isnan(W[:8]).all() and np.isfinite(W[8:]).all()
    with parallel_config("threading"):
        np.testing.assert_array_equal(cross_val_decide(MODEL, X, C, n_jobs=2), cross_val_decide(MODEL, X, C))


def test_estimators_are_not_changed():
    plain = SPOPlusRegressor(alpha=0.1)
    outer = make_pipeline(StandardScaler(), plain)
    W = cross_val_decide(outer, X, C, region=Simplex())
    np.testing.assert_array_equal(W, cross_val_decide(pipeline(), X, C))
    assert plain.region is None and not hasattr(plain, "coef_")
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=0))
    cross_val_decide(forest, X, C, region=Simplex(), sample_weight=WEIGHT)
    assert isinstance(forest[-1], RandomForestRegressor)


# -- wrong input -------------------------------------------------------------------------------------------------------

FITTED = SPOPlusRegressor(Simplex(), alpha=0.1).fit(X, C)
RIDGE = Ridge().fit(X, C)

CASES = [
    ("not-fitted", lambda: decide(MODEL, X), NotFittedError, "SPOPlusRegressor instance is not fitted yet"),
    ("pipeline-not-fitted", lambda: decide(pipeline(), X), NotFittedError, "Pipeline instance is not fitted yet"),
    ("search-not-fitted", lambda: decide(search(), X), NotFittedError, "GridSearchCV instance is not fitted yet"),
    (
        "refit-false",
        lambda: decide(search().set_params(refit=False).fit(X, C), X),
        ValueError,
        "refit=False. Use refit=True",
    ),
    (
        "no-region",
        lambda: decide(RIDGE, X),
        ValueError,
        r"Ridge has no region.*Pass region=..., or wrap it in TwoStage",
    ),
    (
        "no-region-in-pipeline",
        lambda: decide(make_pipeline(StandardScaler(), Ridge()).fit(X, C), X),
        ValueError,
        "Ridge has no region.*Pass region=",
    ),
    (
        "two-regions",
        lambda: decide(FITTED, X, region=TopK(2)),
        ValueError,
        "has a region of its own, Simplex.*Leave region out",
    ),
    ("two-senses", lambda: decide(FITTED, X, region=Simplex(sense="max")), ValueError, "has a region of its own"),
    ("region-class", lambda: decide(RIDGE, X, region=Simplex), TypeError, "forget the parentheses"),
    ("region-class-2", lambda: decide(FITTED, X, region=Simplex), ValueError, "has a region of its own"),
    (
        "region-size",
        lambda: decide(RIDGE, X, region=Knapsack([1, 2], 2)),
        ValueError,
        "2 decision variables.*costs have 4 col",
    ),
    (
        "classifier",
        lambda: decide(LogisticRegression().fit(X, C[:, 0] > 0), X),
        TypeError,
        "LogisticRegression is a classifier",
    ),
    (
        "our-classifier",
        lambda: decide(CostSensitiveClassifier(None, Ridge()).fit(X, C[:, 0] > 0), X),
        TypeError,
        "is a classifier: its decisions are the labels of predict",
    ),
    ("offset-shape", lambda: decide(RIDGE, X, region=Simplex(), offset=OFFSET[:3]), ValueError, "offset"),
    (
        "region_params-unknown",
        lambda: decide(RIDGE, X, region=KNAPSACK, region_params={"weights": CAPACITY}),
        ValueError,
        "cannot vary by sample in 'weights'",
    ),
    (
        "offset-of-a-transformed-target",
        lambda: decide(transformed().fit(X, C, offset=OFFSET), X, offset=OFFSET),
        ValueError,
        "in units of transformed costs",
    ),
    ("cv-no-region", lambda: cross_val_decide(Ridge(), X, C), ValueError, r"Ridge has no region. Pass region="),
    (
        "cv-two-regions",
        lambda: cross_val_decide(pipeline(), X, C, region=TopK(2)),
        ValueError,
        "SPOPlusRegressor has a region of its own",
    ),
    (
        "cv-classifier",
        lambda: cross_val_decide(LogisticRegression(), X, C),
        TypeError,
        "LogisticRegression is a classifier",
    ),
    (
        "cv-transformer",
        lambda: cross_val_decide(StandardScaler(), X, C, region=Simplex()),
        TypeError,
        "must be a regressor",
    ),
    (
        "cv-no-model",
        lambda: cross_val_decide("ridge", X, C, region=Simplex()),
        TypeError,
        "must be a regressor.*'ridge'",
    ),
    (
        "cv-twice",
        lambda: cross_val_decide(MODEL, X, C, cv=ShuffleSplit(9, random_state=0)),
        ValueError,
        "is held out . times",
    ),
    ("cv-one", lambda: cross_val_decide(MODEL, X, C, cv=1), ValueError, "k-fold cross-validation requires at least"),
    (
        "cv-lengths",
        lambda: cross_val_decide(MODEL, X[:9], C),
        ValueError,
        r"inconsistent numbers of samples: \[9, 40\]",
    ),
    ("cv-costs-3d", lambda: cross_val_decide(MODEL, X, C[:, :, None]), ValueError, r"y must have shape"),
    ("cv-costs-nan", lambda: cross_val_decide(MODEL, X, C * np.nan), ValueError, "y contains NaN in row 0"),
    ("cv-n_jobs", lambda: cross_val_decide(MODEL, X, C, n_jobs=0), ValueError, "n_jobs must be None or an integer"),
    (
        "cv-params-length",
        lambda: cross_val_decide(SPOPlusRegressor(KNAPSACK), X, C, region_params={"capacity": CAPACITY[:9]}),
        ValueError,
        r"inconsistent numbers of samples: \[40, 40, 9\]",
    ),
    (
        "cv-search-without-routing",
        lambda: cross_val_decide(search(), X, C, offset=OFFSET),
        ValueError,
        r"passes offset on to its scorer only by metadata routing.*set_fit_request\(offset=True\)",
    ),
    (
        "cv-offset-of-a-transformed-target",
        lambda: cross_val_decide(transformed(), X, C, offset=OFFSET),
        ValueError,
        "transforms costs, but not the offset",
    ),
    (
        "cv-weight-of-a-regressor",
        lambda: cross_val_decide(
            make_pipeline(StandardScaler(), make_pipeline(LinearRegression())),
            X,
            C,
            region=Simplex(),
            sample_weight=-WEIGHT,
        ),
        ValueError,
        "Negative values.*sample_weight",
    ),
]


@pytest.mark.parametrize(("action", "error", "pattern"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_wrong_input(action, error, pattern):
    with pytest.raises(error, match=f"(?s){pattern}"):
        action()
