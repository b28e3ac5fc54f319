"""A failed fit leaves the model as it was, and no fit changes its parameters or data."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from input_problems import ONES, C, X, box_constraints, fit, names, put
from numpy.testing import assert_array_equal, assert_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from small_sets import cheapest

from skspo import (
    Assignment,
    Box,
    CvxpyRegion,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    LqBall,
    Markowitz,
    MixedInteger,
    OracleRegion,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    TopK,
    TwoStageRegressor,
)
from skspo.solvers import ConicSolver, SGDSolver

# -- failed fits -------------------------------------------------------------------------------------------------------

WIDE = np.concatenate([X, X[:, :2]], axis=1)


def other_names(n=20):
    return pd.DataFrame(WIDE[:n], columns=list("vwxyz"))


# A second fit that fails: at the features, the costs, the weights, the region, the solver, in all of them with
# features that differ in number and names from those of the first fit.
FAILURES = [
    ("X-nan", {"X": put(WIDE, np.nan)}, {}),
    ("y-nan", {"X": other_names(), "y": put(C, np.nan)}, {}),
    ("lengths", {"X": other_names(9)}, {}),
    ("weights-zero", {"X": other_names(), "sample_weight": 0 * ONES}, {}),
    ("weights-length", {"X": WIDE, "sample_weight": ONES[:3]}, {}),
    ("y-columns", {"X": WIDE, "y": C[:, :3]}, {}),
    ("y-1d", {"X": WIDE, "y": C[:, 0]}, {}),
    ("alpha", {"X": WIDE}, {"alpha": -1.0}),
    ("region-class", {"X": other_names()}, {"region": Simplex}),
    ("region-empty", {"X": other_names()}, {"region": Polyhedron(np.ones((1, 4)), [-1])}),
    ("surrogate", {"X": other_names()}, {"surrogate_region": Simplex(sense="max")}),
    ("solver-unknown", {"X": other_names()}, {"solver": "gradient"}),
    ("solver-unable", {"X": other_names()}, {"solver": "lbfgs"}),
    ("solver-backend", {"X": other_names()}, {"solver": ConicSolver(backend="HIGHS"), "alpha": 1.0}),
]


def assert_same_state(model, before):
    """Every fitted attribute is the same object, with the same content."""
    after = {name: value for name, value in vars(model).items() if name not in model.get_params(deep=False)}
    assert after.keys() == before[0].keys()
    assert all(after[name] is before[0][name] for name in after)
    assert pickle.dumps(after) == before[1]


def state(model):
    fitted = {name: value for name, value in vars(model).items() if name not in model.get_params(deep=False)}
    return fitted, pickle.dumps(fitted)


@pytest.mark.filterwarnings("ignore:The region of:UserWarning")
@pytest.mark.parametrize("X_first", [X, names("abc")], ids=["array", "names"])
@pytest.mark.parametrize(("data", "params"), [pytest.param(*case, id=name) for name, *case in FAILURES])
def test_a_failed_fit_leaves_the_old_model(X_first, data, params):
    model = SPOPlusRegressor(Box(np.zeros(4), 1.0)).fit(X_first, C)
    before, predicted = state(model), model.predict(X_first)
    decided, score = model.decide(X_first), model.score(X_first, C)
    old_params = {name: getattr(model, name) for name in params}
    model.set_params(**params)
    with pytest.raises((ValueError, TypeError)):
        model.fit(**({"y": C} | data))
    assert_same_state(model, before)
    assert_array_equal(model.predict(X_first), predicted)
    assert_array_equal(model.decide(X_first), decided)
    assert model.score(X_first, C) == score
    # After the mistake is corrected, the result is that of a first fit.
    model.set_params(**old_params)
    assert_array_equal(model.fit(X_first, C).predict(X_first), predicted)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("data", "params"), [pytest.param(*case, id=name) for name, *case in FAILURES if "solver" not in case[1]]
)
def test_a_failed_chunk_leaves_the_old_model(streaming, data, params):
    model = SPOPlusRegressor(Box(np.zeros(4), 1.0), random_state=0).fit(names("abc"), C)
    if streaming:
        model.partial_fit(names("abc"), C)
    before, predicted = state(model), model.predict(names("abc"))
    model.set_params(**params)
    # The right features, so that the chunk fails where it should.
    chunk = pd.DataFrame(np.asarray(data["X"])[:, :3], columns=list("abc"))
    chunk.iloc[0, 0] = np.nan if np.isnan(data["X"]).any(axis=None) else 0.0
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(**({"y": C} | data | {"X": chunk}))
    assert_same_state(model, before)
    assert_array_equal(model.predict(names("abc")), predicted)


def test_a_failed_first_fit_leaves_an_unfitted_model():
    model = SPOPlusRegressor(Simplex())
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError):
            method(names("abc"), put(C, np.nan))
        assert vars(model) == model.get_params(deep=False)
        with pytest.raises(NotFittedError):
            model.predict(X)


def test_a_new_fit_forgets_the_old_names():
    model = fit(names("abc"))
    assert list(model.feature_names_in_) == list("abc")
    assert not hasattr(model.fit(WIDE, C), "feature_names_in_")
    assert model.n_features_in_ == 5


@pytest.mark.parametrize(
    ("data", "params"), [pytest.param(*case, id=name) for name, *case in FAILURES if not case[1] or "region" in case[1]]
)
def test_a_failed_fit_leaves_the_old_two_stage_model(data, params):
    model = TwoStageRegressor(region=Box(np.zeros(4), 1.0)).fit(names("abc"), C)
    before, predicted = state(model), model.predict(names("abc"))
    model.set_params(**params)
    with pytest.raises((ValueError, TypeError)):
        model.fit(**({"y": C} | data))
    assert_same_state(model, before)
    assert_array_equal(model.predict(names("abc")), predicted)


class Fuse:
    """Oracle of the simplex that fails at one of its calls; ``None`` means never."""

    def __init__(self):
        self.calls, self.at = 0, None

    def __call__(self, costs):
        self.calls += 1
        if self.at is not None and self.calls > self.at:
            raise ZeroDivisionError("the user's own mistake")
        return cheapest(costs)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_oracle_that_fails_at_any_time_leaves_the_old_model(method):
    fuse = Fuse()
    model = SPOPlusRegressor(OracleRegion(fuse), max_iter=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        getattr(model, method)(X, C)
        fuse.calls = 0
        getattr(copy.deepcopy(model).set_params(region=model.region), method)(WIDE[:, 1:4], -C)
        n_calls = fuse.calls
    assert n_calls >= 3
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name != "region_"}
    copies = copy.deepcopy(fitted)
    theta = None if method == "fit" else copy.deepcopy(vars(model._stream[1]))
    for at in range(n_calls):
        fuse.calls, fuse.at = 0, at
        with pytest.raises(ZeroDivisionError, match="the user's own mistake"):
            getattr(model, method)(WIDE[:, 1:4], -C)
        for name, value in fitted.items():
            assert getattr(model, name) is value
            assert_equal(value, copies[name])
        if theta is not None:
            assert_array_equal(model._stream[1].Theta, theta["Theta"])
            assert_array_equal(model._stream[1].average, theta["average"])
            assert_array_equal(model._stream[1].adam.first, theta["adam"].first)
            assert model._stream[1].epoch == theta["epoch"] == 1


# -- unchanged inputs --------------------------------------------------------------------------------------------------

REGIONS = [
    Simplex(),
    Box([0.0, 0.0, 0.0, -1.0], 1.0),
    TopK(2, sense="max"),
    Polyhedron(np.ones((1, 4)), [2.0], bounds=(0, 1)),
    LqBall(1.5),
    Ellipsoid(np.diag([1.0, 2.0, 3.0, 4.0])),
    EntropySimplex(),
    Knapsack([1, 2, 3, 4], 5),
    Knapsack([1.0, 2.0, 3.0, 4.0], 5.0, integer=False),
    ShortestPath([("a", "b"), ("b", "c"), ("a", "c"), ("a", "c")], "a", "c"),
    Assignment(),
    MixedInteger(np.ones((1, 4)), [2.0], bounds=(0, 1), integrality=[1, 1, 0, 0]),
    Markowitz(np.eye(4), 0.5),
    OracleRegion(cheapest, 4),
    CvxpyRegion(box_constraints, 4),
]


@pytest.mark.slow
@pytest.mark.parametrize("region", REGIONS, ids=lambda region: type(region).__name__)
def test_fit_changes_neither_parameters_nor_data(region):
    solver = SGDSolver(max_iter=2, random_state=0)
    model = SPOPlusRegressor(region, surrogate_region=copy.deepcopy(region), solver=solver, n_jobs=1)
    params, pickled = model.get_params(), pickle.dumps(model.get_params(deep=False))
    own = pickle.dumps(region)
    data = X.copy(), C.copy(), ONES.copy()
    for array in data:
        array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*data).partial_fit(*data)
    model.decide(data[0])
    model.score(*data)
    TwoStageRegressor(region=region).fit(*data).score(*data)
    after = model.get_params()
    assert params.keys() == after.keys()
    assert all(after[name] is params[name] for name in params)
    assert model.region is region
    assert model.region_ is not region
    assert pickle.dumps(region) == own
    assert pickle.dumps(model.get_params(deep=False)) == pickled
    # The cache of a region is not pickled.
    region.argmin(C)
    assert pickle.dumps(region) == own
