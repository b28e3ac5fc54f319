"""Bad logs: what was wrong, what was expected, what to do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from skspo import (
    Box,
    CostSensitiveClassifier,
    PartialFeedbackRegressor,
    ShortestPath,
    Simplex,
    TopK,
    TwoStageRegressor,
    estimated_cost,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
C = X @ RNG.normal(size=(2, 3)) + 3
W = np.eye(3)[np.arange(40) % 3]
SEEN = np.where(W > 0, C, np.nan)
TOTALS = (W * C).sum(axis=1)


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


def make(**params):
    params = {"nuisance": Ridge(), "method": "doubly_robust", **params}
    estimator = params.pop("estimator", TwoStageRegressor(LinearRegression(), Simplex()))
    return PartialFeedbackRegressor(estimator, **params)


BAD_FITS = [
    ({}, (X, changed(SEEN, 7, np.nan)), {}, "contains NaN only in 1 rows, the first of which is row 7"),
    ({}, (X, changed(SEEN, (0, 0), np.inf)), {}, "Input y contains infinity"),
    ({}, (X, SEEN[:-1]), {}, "inconsistent numbers of samples"),
    ({}, (X, None), {}, "requires y to be passed"),
    ({}, (X, TOTALS), {}, "one decision only"),
    ({}, (X, TOTALS), {"decisions": W[:-1]}, "decisions must have one row for each of the 40 samples"),
    ({}, (X, TOTALS), {"decisions": TOTALS}, "decisions must have one row for each of the 40 samples"),
    ({}, (X, TOTALS), {"decisions": changed(W, (3, 0), np.nan)}, "Input decisions contains NaN"),
    ({}, (X, TOTALS), {"decisions": 2 * W}, "past decision of row 0 is not in Simplex, and 40 of 40 rows"),
    ({}, (X, TOTALS), {"decisions": changed(W, 5, [1, 1, 0])}, "past decision of row 5 is not in Simplex"),
    ({}, (X, changed(TOTALS, 4, np.nan)), {"decisions": W}, "the first of which is row 4, is not known"),
    ({}, (X, SEEN[:, :2]), {"decisions": W}, "y has 2 columns, but decisions has 3"),
    ({}, (X, SEEN), {"decisions": np.roll(W, 1, axis=1)}, "row 0 uses decision 1, but its cost in y is NaN"),
    (
        {"estimator": TwoStageRegressor(LinearRegression(), TopK())},
        (X, TOTALS),
        {"decisions": W[:, [0]]},
        "is not in TopK",
    ),
    ({}, (X, SEEN), {"propensity": np.full((40, 2), 0.5)}, "probability that each cost is seen, of shape \\(3,\\)"),
    ({}, (X, SEEN), {"propensity": np.zeros((40, 3))}, "above 0 and at most 1 where a cost was seen, got 0 in row 0"),
    ({}, (X, SEEN), {"propensity": np.full((40, 3), np.inf)}, "at most 1 where a cost was seen, got inf"),
    ({}, (X, SEEN), {"propensity": np.full((40, 3), 3.0)}, "probability of seeing this cost, not its inverse"),
    ({"propensity": [0.5, 0.5]}, (X, SEEN), {}, "of shape \\(3,\\)"),
    ({"propensity": [0.5, 0.0, 0.5]}, (X, SEEN), {}, "above 0 and at most 1"),
    ({}, (X, TOTALS), {"decisions": W, "propensity": np.ones((40, 3))}, "second moment of past decisions"),
    ({"propensity": np.triu(np.ones((3, 3)))}, (X, TOTALS), {"decisions": W}, "must be finite and symmetric"),
    ({"propensity": -np.eye(3)}, (X, TOTALS), {"decisions": W}, "must be positive semidefinite"),
    ({"propensity": np.zeros((3, 3))}, (X, TOTALS), {"decisions": W}, "must be positive semidefinite and not zero"),
    ({"propensity": LogisticRegression()}, (X, TOTALS), {"decisions": W}, "cannot estimate the second moment"),
    ({"nuisance": KNeighborsRegressor()}, (X, TOTALS), {"decisions": W}, "the nuisance must be linear"),
    (
        {"nuisance": KNeighborsRegressor()},
        (X, SEEN),
        {"sample_weight": np.ones(40)},
        "KNeighborsRegressor does not accept sample_weight",
    ),
    ({"method": "robust"}, (X, SEEN), {}, "method must be one of"),
    ({"n_jobs": 0}, (X, SEEN), {}, "n_jobs must be"),
    ({"verbose": -1}, (X, SEEN), {}, "verbose must be"),
    ({"method": "auto", "cv": 2}, (X, SEEN), {}, "needs at least three folds"),
    ({}, (X, SEEN), {"groups": np.zeros(40)}, "at least 2 groups"),
    (
        {"estimator": TwoStageRegressor(LinearRegression(), ShortestPath.grid(2, 2))},
        (X, TOTALS),
        {},
        "has 4 decision variables, but the costs have 1 columns",
    ),
]


@pytest.mark.parametrize(("params", "data", "given", "message"), BAD_FITS)
def test_bad_fits(params, data, given, message):
    with pytest.raises(ValueError, match=message):
        make(**params).fit(*data, **given)


BAD_TYPES = [
    ({"estimator": Simplex()}, "estimator must be an estimator of skspo with a region, or a regressor"),
    ({"estimator": LogisticRegression()}, "needs predicted costs, but LogisticRegression is a classifier"),
    ({"estimator": CostSensitiveClassifier()}, "is a classifier"),
    ({"propensity": LinearRegression()}, "propensity must be None"),
    ({"propensity": 0.3}, "propensity must be None"),
]


@pytest.mark.parametrize(("params", "message"), BAD_TYPES)
def test_bad_types(params, message):
    with pytest.raises(TypeError, match=message):
        make(**params).fit(X, SEEN)


def test_totals_of_decisions_that_are_zero():

    model = make(estimator=TwoStageRegressor(LinearRegression(), Box(0, 1)))
    with pytest.raises(ValueError, match="Row 2 of decisions is zero, but its total in y is"):
        model.fit(X, TOTALS, decisions=changed(W, 2, 0.0))


def test_streets_in_another_order_are_not_paths():
    region = ShortestPath.grid(3, 3)
    paths = region.argmin(np.random.default_rng(0).exponential(size=(40, 12)))
    model = make(estimator=TwoStageRegressor(LinearRegression(), region))
    with pytest.raises(ValueError, match=r"is not in ShortestPath.*check the order of the columns"):
        model.fit(X, paths.sum(axis=1), decisions=np.roll(paths, 1, axis=1))


def test_every_point_that_is_no_path_is_found():
    """Against a list of all paths: every other set of three or four streets is refused."""
    from itertools import combinations

    from skspo.estimators._feedback_log import check_feasible

    region = ShortestPath.grid(3, 3)
    paths = {tuple(w) for w in region.argmin(np.random.default_rng(0).exponential(size=(500, 12)))}
    assert len(paths) == 6
    for k in (3, 4):
        for some in combinations(range(12), k):
            w = np.isin(np.arange(12), some).astype(float)
            if tuple(w) in paths:
                check_feasible(w[None], region, None)
            else:
                with pytest.raises(ValueError, match="is not in"):
                    check_feasible(w[None], region, None)


def test_names_of_decisions_that_are_not_those_of_the_costs():
    frame = pd.DataFrame(SEEN, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="The columns of decisions should match"):
        make().fit(X, frame, decisions=pd.DataFrame(W, columns=["a", "b", "z"]))


def test_rows_of_decisions_in_another_order():
    totals, frame = pd.Series(TOTALS), pd.DataFrame(W, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="The index of decisions has the labels"):
        make().fit(X, totals, decisions=frame[::-1])


def test_a_nuisance_that_predicts_nan():
    class Broken(Ridge):
        def predict(self, X):
            return np.full(len(X), np.nan)

    with pytest.raises(ValueError, match="The nuisance predicts NaN or infinity"):
        make(nuisance=Broken()).fit(X, SEEN)


def test_a_failed_fit_does_not_change_the_model():
    model = make().fit(X, SEEN)
    before = model.predict(X)
    with pytest.raises(ValueError, match="NaN only"):
        model.fit(X, changed(SEEN, 0, np.nan))
    np.testing.assert_array_equal(model.predict(X), before)


BAD_ESTIMATES = [
    ((W, X, SEEN), {}, ValueError, "has no region"),
    ((W[:-1], X, SEEN), {"region": Simplex()}, ValueError, "policy must be a fitted model, or decisions of shape"),
    ((2 * W, X, SEEN), {"region": Simplex()}, ValueError, "decision of policy of row 0 is not in Simplex"),
    ((W, X, SEEN), {"region": Simplex(), "other": 1 - W}, ValueError, "other must have one feasible decision"),
    ((W, X, SEEN), {"region": Simplex(), "other": "before"}, ValueError, "other must be a policy"),
    ((W, X, SEEN), {"region": Simplex(), "other": "past"}, ValueError, "'past' if decisions are given"),
    ((W, X, SEEN), {"region": Simplex(), "method": "ips"}, ValueError, "method must be one of"),
    ((W, X, SEEN), {"region": Simplex(), "level": 1.0}, ValueError, "level must be"),
    ((W, X, SEEN), {"region": Simplex(), "propensity": np.full(3, 2.0)}, ValueError, "above 0 and at most 1"),
    ((LinearRegression(), X, SEEN), {"region": Simplex()}, ValueError, "not fitted"),
]


@pytest.mark.parametrize(("args", "given", "error", "message"), BAD_ESTIMATES)
def test_bad_estimates(args, given, error, message):
    with pytest.raises(error, match=message):
        estimated_cost(*args, **{"nuisance": LinearRegression(), **given})


def test_boosting_needs_costs():
    with pytest.raises(ValueError, match="must be linear"):
        make(nuisance=HistGradientBoostingRegressor()).fit(X, TOTALS, decisions=W)
