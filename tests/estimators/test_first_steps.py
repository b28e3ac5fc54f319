"""Likely mistakes give a warning or an error: no region, missing offsets and capacities, reordered costs."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from marks import rest_is_slow
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import (
    AbsoluteLoss,
    Box,
    ChunkedData,
    Knapsack,
    ShortestPath,
    Simplex,
    SPOMLPRegressor,
    SPOPlusLoss,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    SquaredLoss,
    TwoStageRegressor,
    decision_report,
    make_spo_scorer,
    row_params,
    spo_loss,
    spo_plus_path,
)
from skspo.datasets import make_shortest_path
from skspo.plotting import RegretDisplay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ESTIMATORS = [
    SPOPlusRegressor(alpha=0.1),
    SPOPlusRegressorCV(n_alphas=2, cv=2),
    SPORegressor(max_iter=10, random_state=0),
    SPOMLPRegressor(hidden_layer_sizes=(4,), max_iter=2, random_state=0),
    TwoStageRegressor(),
]
EVERY = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
STREAMING = pytest.mark.parametrize("estimator", [ESTIMATORS[0], ESTIMATORS[3]], ids=lambda e: type(e).__name__)

REGION = Knapsack([3, 4, 5, 2], 8, integer=False)
N, D = 40, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
O = RNG.normal(size=(N, D))
C = O + 2.0 + X @ RNG.normal(size=(3, D)) + 0.3 * RNG.normal(size=(N, D))
ROWS = row_params(capacity=RNG.uniform(2.0, 12.0, N))
GIVEN = {"offset": O, "region_params": ROWS}


def said(action, category=UserWarning):
    """Messages of the warnings of skspo that are given once; other warnings are ignored."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in caught if w.category is category and w.filename == __file__]


# -- no region ---------------------------------------------------------------------------------------------------------


@EVERY
def test_missing_region_warns(estimator):
    X, C = make_shortest_path(60, grid=(3, 3), random_state=0)
    model = clone(estimator)
    messages = said(lambda: model.fit(X, C))
    assert len(messages) == 1
    assert "No region was given" in messages[0] and "region=Box() if you want the Box" in messages[0]
    assert said(lambda: (model.decide(X), model.score(X, C))) == []
    assert model.region is None
    for region in (Box(), ShortestPath.grid(3, 3)):
        assert said(lambda region=region: clone(estimator).set_params(region=region).fit(X, C)) == []
    # One line of the user, many fits.
    messages = said(lambda: cross_val_score(clone(estimator), X, C, cv=4))
    assert len(messages) == 1
    assert len(said(lambda: cross_val_score(make_pipeline(StandardScaler(), clone(estimator)), X, C, cv=4))) == 1


@STREAMING
def test_no_region_in_a_stream(estimator):
    X, C = make_shortest_path(60, grid=(3, 3), random_state=0)
    assert "No region was given" in said(lambda: clone(estimator).partial_fit(X, C))[0]


def test_no_region_elsewhere():
    X, C = make_shortest_path(60, grid=(3, 3), random_state=0)
    chunks = ChunkedData.from_arrays(X, C, chunk_rows=20)
    for action in (
        make_spo_scorer,
        lambda: spo_plus_path(X, C, n_alphas=2),
        lambda: spo_loss(C, C + 1.0),
        lambda: SPOPlusLoss().value(C, C + 1.0),
        lambda: SPOPlusRegressor().fit_chunks(chunks),
    ):
        messages = said(action)
        assert len(messages) == 1 and "No region was given" in messages[0]
    # The scorer has warned; its folds do not.
    with pytest.warns(UserWarning, match="No region"):
        scorer = make_spo_scorer()
    assert said(lambda: cross_val_score(LinearRegression(), X, C, scoring=scorer, cv=3)) == []
    # Losses that need no decisions need no region.
    assert said(lambda: (SquaredLoss().value(C, C + 1.0), AbsoluteLoss().value(C, C + 1.0))) == []


# -- offset and region_params ------------------------------------------------------------------------------------------


def uses(model, X, C, **given):
    """All methods that make decisions, by name."""
    region = {} if hasattr(model, "region_") else {"region": REGION}
    return {
        "decide": lambda: model.decide(X, **given),
        "score": lambda: model.score(X, C, **given),
        "report": lambda: decision_report(model, X, C, **region, **given),
        "RegretDisplay": lambda: RegretDisplay.from_estimator(model, X, C, **given),
    }


@EVERY
@pytest.mark.parametrize("name", ["offset", "region_params"])
def test_argument_of_fit_missing_later(estimator, name):
    fitted = clone(estimator).set_params(region=REGION).fit(X, C, **{name: GIVEN[name]})
    kept = pickle.dumps(fitted)
    for method in ("decide", "score", "report", "RegretDisplay"):
        model = pickle.loads(kept)
        assert said(uses(model, X, C, **{name: GIVEN[name]})[method]) == []
        messages = said(uses(model, X, C)[method])
        assert len(messages) == 1
        start = f"{type(model).__name__} was fitted with {name}, but {method} was called without it"
        assert messages[0].startswith(start)
        assert f"set_fit_request({name}=True).set_score_request({name}=True)" in messages[0]
        # Once for each model.
        assert [said(use) for use in uses(model, X, C).values()] == [[]] * 4
    messages = said(lambda: pickle.loads(kept).predict(X))
    if name == "offset":
        assert len(messages) == 1 and "offset=np.zeros(d) if it is added later" in messages[0]
        assert said(lambda: pickle.loads(kept).predict(X, offset=np.zeros(D))) == []
    else:
        assert messages == []  # predictions do not depend on the region


@EVERY
@pytest.mark.parametrize("name", ["offset", "region_params"])
def test_argument_missing_in_fit(estimator, name):
    fitted = clone(estimator).set_params(region=REGION).fit(X, C)
    kept = pickle.dumps(fitted)
    for method in ("decide", "score", "report", "RegretDisplay"):
        model = pickle.loads(kept)
        assert said(uses(model, X, C)[method]) == []
        messages = said(uses(model, X, C, **{name: GIVEN[name]})[method])
        if name == "region_params" and (method == "decide" or isinstance(model, TwoStageRegressor)):
            assert messages == []  # values of today; or the training does not depend on the region
        else:
            assert len(messages) == 1
            assert f"was fitted without {name}, but {method} was called with it" in messages[0]
            assert f"Pass {name} to fit as well" in messages[0]


def test_networks_that_do_not_train_on_the_region():
    for loss, count in (("spo+", 1), ("squared_error", 0)):
        model = SPOMLPRegressor(REGION, loss=loss, hidden_layer_sizes=(), max_iter=2, random_state=0).fit(X, C)
        assert len(said(lambda model=model: model.score(X, C, region_params=ROWS))) == count


def test_warnings_are_reset_by_another_fit():
    model = SPOPlusRegressor(REGION).fit(X, C, offset=O)
    assert len(said(lambda: model.decide(X))) == 1
    assert said(lambda: model.fit(X, C).decide(X)) == []
    assert len(said(lambda: model.decide(X, offset=O))) == 1


@STREAMING
def test_partial_fit_warns_too(estimator):
    model = clone(estimator).set_params(region=REGION).partial_fit(X, C, offset=O)
    assert said(lambda: model.partial_fit(X, C, offset=O)) == []
    assert "fitted with offset, but partial_fit was called without it" in said(lambda: model.partial_fit(X, C))[0]
    model = clone(estimator).set_params(region=REGION).partial_fit(X, C)
    assert "fitted without offset, but partial_fit" in said(lambda: model.partial_fit(X, C, offset=O))[0]


def test_chunks_with_an_offset():
    model = SPOPlusRegressor(Simplex()).fit_chunks(ChunkedData.from_arrays(X, C, None, O, chunk_rows=15))
    assert said(lambda: model.decide(X, offset=O)) == []
    assert "fitted with offset" in said(lambda: model.decide(X))[0]


@EVERY
@pytest.mark.parametrize("name", ["offset", "region_params"])
@pytest.mark.parametrize(
    "scoring", rest_is_slow([make_spo_scorer(REGION), None, make_spo_scorer(REGION, metric="spo_loss")], 1)
)
def test_search_without_routing(estimator, name, scoring):
    """It fits every fold with its rows and scores without them; there is one warning for all folds."""
    model = clone(estimator).set_params(region=REGION)
    search = GridSearchCV(model, {"region": [REGION]}, cv=4, scoring=scoring)
    messages = said(lambda: search.fit(X, C, **{name: GIVEN[name]}))
    called = "score" if scoring is None else "the scorer"
    assert len(messages) == 1
    assert messages[0].startswith(f"{type(model).__name__} was fitted with {name}, but {called} was called without it")
    # The best model warns, too.
    assert len(said(lambda: search.score(X, C))) == 1
    pipe = make_pipeline(StandardScaler(), model)
    params = {f"{pipe.steps[-1][0]}__{name}": GIVEN[name]}
    assert len(said(lambda: cross_validate(pipe, X, C, cv=4, scoring=scoring, params=params))) == 1


@EVERY
@pytest.mark.parametrize("name", ["offset", "region_params"])
def test_search_with_routing_is_silent(estimator, name):
    scorer = make_spo_scorer(REGION)
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(estimator).set_params(region=REGION)
        model.set_fit_request(**{name: True}).set_score_request(**{name: True})
        given = {name: GIVEN[name]}
        assert said(lambda: GridSearchCV(model, {"region": [REGION]}, cv=3).fit(X, C, **given)) == []
        scorer = scorer.set_score_request(**{name: True})
        # The scorer predicts without the offset, and adds it itself.
        assert said(lambda: cross_val_score(model, X, C, cv=3, scoring=scorer, params=given)) == []
        # Requested for one of the two only.
        model.set_fit_request(**{name: False})
        messages = said(lambda: GridSearchCV(model, {"region": [REGION]}, cv=3).fit(X, C, **given))
        trained = name == "offset" or not isinstance(estimator, TwoStageRegressor)
        assert len(messages) == trained
        forest = RandomForestRegressor(n_estimators=2, random_state=0)
        assert said(lambda: cross_val_score(forest, X, C, cv=3, scoring=scorer, params=given)) == []


def test_scorers_of_scikit_learn_do_not_use_the_offset():
    model = SPOPlusRegressor(REGION)
    messages = said(lambda: cross_val_score(model, X, C, cv=3, scoring="r2", params={"offset": O}))
    assert len(messages) == 1 and "offset, but predict was called without it" in messages[0]


def test_dask():
    da = pytest.importorskip("dask.array")
    lazy_X, lazy_C, lazy_O = (da.from_array(a, chunks=(15, -1)) for a in (X, C, O))
    model = SPOPlusRegressor(REGION).fit(lazy_X, lazy_C, offset=lazy_O)
    kept = pickle.dumps(model)
    for name, use, well in (
        ("predict", lambda m: m.predict(lazy_X).compute(), lambda m: m.predict(lazy_X, offset=lazy_O).compute()),
        ("decide", lambda m: m.decide(lazy_X).compute(), lambda m: m.decide(lazy_X, offset=lazy_O).compute()),
        ("score", lambda m: m.score(lazy_X, lazy_C), lambda m: m.score(lazy_X, lazy_C, offset=lazy_O)),
    ):
        model = pickle.loads(kept)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            well(model)
            assert not caught
            use(model)
        assert len(caught) == 1 and f"fitted with offset, but {name} was called without it" in str(caught[0].message)
    rows = SPOPlusRegressor(REGION).fit(X, C, region_params=ROWS)
    assert "fitted with region_params, but score" in said(lambda: rows.score(lazy_X, lazy_C))[0]
    # Best costs of zero: the same as in memory.
    zero = C - C.min(axis=1, keepdims=True)
    model = SPOPlusRegressor(Simplex(), alpha=0.1).fit(X, zero)
    with pytest.warns(sklearn.exceptions.UndefinedMetricWarning):
        local = model.score(X, zero)
    with pytest.warns(sklearn.exceptions.UndefinedMetricWarning):
        assert model.score(lazy_X, da.from_array(zero, chunks=(15, -1))) == pytest.approx(local)


# -- names of costs ----------------------------------------------------------------------------------------------------

NAMES = ["home", "work", "shop", "school"]
FRAME = pd.DataFrame(C, columns=NAMES)
OTHERS = {
    "reordered": (FRAME[NAMES[::-1]], "another order: column 0 is 'school' and should be 'home'"),
    "renamed": (FRAME.rename(columns={"shop": "bank"}), r"Unknown columns:\n- bank\n[^-]*Missing columns:\n- shop\n"),
}


@EVERY
def test_names_of_costs_are_stored(estimator):
    estimator = clone(estimator).set_params(region=REGION)
    model = clone(estimator).fit(X, FRAME)
    assert list(model.cost_names_in_) == NAMES
    assert model.cost_names_in_.dtype == object
    score = model.score(X, C)
    assert model.score(X, FRAME) == pytest.approx(score, rel=1e-12)
    np.testing.assert_allclose(clone(estimator).fit(X, C).predict(X), model.predict(X), rtol=1e-9)
    pipe = make_pipeline(StandardScaler(), clone(estimator)).fit(X, FRAME)
    for frame, message in OTHERS.values():
        for use in (
            lambda frame=frame: model.score(X, frame),
            lambda frame=frame: model.report(X, frame),
            lambda frame=frame: model.report(X, C, X_train=X, C_train=frame),
            lambda frame=frame: make_spo_scorer(REGION)(model, X, frame),
            lambda frame=frame: decision_report(pipe, X, frame),
            lambda frame=frame: RegretDisplay.from_estimator(model, X, frame),
        ):
            with pytest.raises(ValueError, match=message):
                use()
    reordered = OTHERS["reordered"][0]
    assert model.score(X, reordered[model.cost_names_in_]) == pytest.approx(score, rel=1e-12)  # as the message says
    # A search keeps data frames, and a new fit resets the names.
    assert np.isfinite(cross_val_score(clone(estimator), X, FRAME, cv=2)).all()
    assert list(pickle.loads(pickle.dumps(model)).cost_names_in_) == NAMES
    assert list(model.fit(X, reordered).cost_names_in_) == NAMES[::-1]
    for unnamed in (C, pd.DataFrame(C)):
        assert not hasattr(model.fit(X, unnamed), "cost_names_in_")
        model.score(X, FRAME)


@STREAMING
@pytest.mark.parametrize("kind", OTHERS)
def test_names_of_costs_in_a_stream(estimator, kind):
    frame, message = OTHERS[kind]
    model = clone(estimator).set_params(region=REGION).partial_fit(X, FRAME).partial_fit(X, C).partial_fit(X, FRAME)
    assert list(model.cost_names_in_) == NAMES
    before = model.predict(X)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, frame)
    np.testing.assert_array_equal(model.predict(X), before)


def test_names_of_costs_in_chunks():
    first, other = (X[:20], FRAME[:20]), (X[20:], OTHERS["reordered"][0][20:])
    model = SPOPlusRegressor(REGION).fit_chunks([first, (X[20:], FRAME[20:])])
    assert list(model.cost_names_in_) == NAMES
    with pytest.raises(ValueError, match=r"All chunks must have the same columns: the first has \['home', 'work'"):
        SPOPlusRegressor(REGION).fit_chunks([first, other])


def test_names_of_costs_in_dask():
    dd = pytest.importorskip("dask.dataframe")
    lazy_X = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]), npartitions=2)
    model = SPOPlusRegressor(REGION).fit(lazy_X, dd.from_pandas(FRAME, npartitions=2))
    assert list(model.cost_names_in_) == NAMES
    for frame, message in OTHERS.values():
        with pytest.raises(ValueError, match=message):
            model.score(lazy_X, dd.from_pandas(frame, npartitions=2))
