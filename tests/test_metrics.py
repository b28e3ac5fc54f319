"""Metrics: values by hand, weights as repetitions, scorers in scikit-learn's tools."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from regions_list import COVARIANCE, cheapest
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skspo as sk

# Simplex: row by row the prediction chooses 1 (cost 3, best 1), 0 (cost 2, best 2), 2 (cost -1, best -4).
C = np.array([[1.0, 3.0, 5.0], [2.0, 4.0, 9.0], [0.0, -4.0, -1.0]])
C_HAT = np.array([[2.0, 1.0, 7.0], [1.0, 2.0, 3.0], [0.0, 0.0, -1.0]])
LOSS = np.array([2.0, 0.0, 3.0])
BEST = np.array([1.0, 2.0, -4.0])
# SPO+: max(c - 2 c_hat) + 2 c_hat_j - c_j with j the best.
PLUS = np.array([1.0 + 4.0 - 1.0, 3.0 + 2.0 - 2.0, 1.0 + 0.0 + 4.0])
METRICS = [sk.spo_loss, sk.spo_plus_loss, sk.normalized_spo_loss]


# -- values ------------------------------------------------------------------------------------------------------------


def test_values_by_hand():
    region = sk.Simplex()
    assert_array_equal(sk.spo_loss(C, C_HAT, region, per_sample=True), LOSS)
    assert_array_equal(sk.spo_plus_loss(C, C_HAT, region, per_sample=True), PLUS)
    assert sk.spo_loss(C, C_HAT, region) == pytest.approx(5 / 3)
    assert sk.spo_plus_loss(C, C_HAT, region) == pytest.approx(4.0)
    assert sk.normalized_spo_loss(C, C_HAT, region) == pytest.approx(5 / 7)
    for metric in METRICS:
        assert type(metric(C, C_HAT, region)) is float


def test_values_to_be_maximized_by_hand():
    region = sk.Knapsack([1, 1, 1], 2)
    # Chosen by the prediction: {0, 2}, {1, 2}, none; best {1, 2}, {1, 2}, none.
    assert_array_equal(sk.spo_loss(C, C_HAT, region, per_sample=True), [2.0, 0.0, 0.0])
    assert sk.normalized_spo_loss(C, C_HAT, region) == pytest.approx(2.0 / (8.0 + 13.0))
    mirrored = sk.Knapsack([1, 1, 1], 2, sense="min")
    for metric in METRICS:
        assert metric(C, C_HAT, region) == metric(-C, -C_HAT, mirrored)


def test_default_region_is_the_unit_box():
    # Taken by the prediction: what has a negative cost, that is only the last one; best are the last two.
    assert_array_equal(sk.spo_loss(C, C_HAT, per_sample=True), [0.0, 0.0, 4.0])
    assert sk.spo_loss(C, C_HAT) == sk.spo_loss(C, C_HAT, sk.Box())


def test_two_routes_on_a_graph():
    region = sk.ShortestPath([("a", "b"), ("b", "c"), ("a", "c")], "a", "c")
    truth, prediction = [[1.0, 1.0, 3.0], [2.0, 2.0, 3.0]], [[2.0, 2.0, 3.0], [1.0, 1.0, 3.0]]
    assert_array_equal(sk.spo_loss(truth, prediction, region, per_sample=True), [1.0, 1.0])
    assert sk.normalized_spo_loss(truth, prediction, region) == pytest.approx(2 / 5)


# -- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_weights_are_repetitions(metric):
    counts = np.array([1, 0, 3])
    repeated = metric(np.repeat(C, counts, axis=0), np.repeat(C_HAT, counts, axis=0), sk.Simplex())
    assert metric(C, C_HAT, sk.Simplex(), sample_weight=counts) == pytest.approx(repeated, rel=1e-14)
    assert metric(C, C_HAT, sk.Simplex(), sample_weight=0.01 * counts) == pytest.approx(repeated, rel=1e-14)
    assert repeated != metric(C, C_HAT, sk.Simplex())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("weight", [None, [1.0, 0.5, 4.0]])
def test_the_metric_is_the_weighted_mean_of_per_sample(metric, weight):
    rows = metric(C, C_HAT, sk.Simplex(), sample_weight=weight, per_sample=True)
    assert rows.shape == (3,)
    assert metric(C, C_HAT, sk.Simplex(), sample_weight=weight) == pytest.approx(np.average(rows, weights=weight))


@pytest.mark.parametrize("metric", METRICS)
def test_wrong_weights(metric):
    for weight in ([1.0, 1.0], [[1.0, 1.0, 1.0]], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match=r"[Ss]ample.?[Ww]eight|weights"):
            metric(C, C_HAT, sk.Simplex(), sample_weight=weight)


# -- ties --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("region", "truth", "prediction", "oracle", "worst"),
    [
        (sk.Simplex(), [1.0, 3.0, 9.0], [2.0, 2.0, 5.0], 0.0, 2.0),
        (sk.Simplex(sense="max"), [3.0, 1.0, 9.0], [2.0, 2.0, 0.0], 6.0, 8.0),
        (sk.Box(), [1.0, -1.0, 5.0], [0.0, 0.0, 1.0], 1.0, 2.0),
        (sk.TopK(2), [1.0, 2.0, 7.0], [1.0, 3.0, 3.0], 0.0, 5.0),
        (sk.L1Ball(), [4.0, 1.0, 0.0], [1.0, 1.0, 0.0], 0.0, 3.0),
        (sk.ShortestPath([(0, 1), (1, 2), (0, 2)], 0, 2), [5.0, 5.0, 1.0], [1.0, 1.0, 2.0], 0.0, 9.0),
        # A unique decision for each prediction.
        (sk.Ellipsoid(), [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], 1.0, 1.0),
        # A zero prediction: the center by the oracle, the far end at worst.
        (sk.Ellipsoid(radius=3.0), [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], 3.0, 6.0),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, sk.Region) else "",
)
def test_ties_by_hand(region, truth, prediction, oracle, worst):
    if isinstance(region, sk.ShortestPath):
        # The two routes cost the same: the oracle may return either, the worst one is determined.
        assert sk.spo_loss([truth], [prediction], region) in (oracle, worst)
    else:
        assert sk.spo_loss([truth], [prediction], region) == pytest.approx(oracle)
    assert sk.spo_loss([truth], [prediction], region, ties="worst") == pytest.approx(worst)
    best = abs(np.dot(truth, region.argmin(truth)))
    assert sk.normalized_spo_loss([truth], [prediction], region, ties="worst") == pytest.approx(worst / best)


@pytest.mark.parametrize(
    "region",
    [sk.Knapsack([1, 1, 1, 1], 2), sk.OracleRegion(cheapest, 4), sk.Markowitz(COVARIANCE, 0.9)],
    ids=lambda region: type(region).__name__,
)
@pytest.mark.parametrize("metric", [sk.spo_loss, sk.normalized_spo_loss])
def test_regions_without_worst_argmin_raise(region, metric, unlisted):
    costs = np.ones((2, 4))
    with pytest.raises(ValueError, match=f"{type(region).__name__} cannot compute"):
        metric(costs, costs, region, ties="worst")


def test_unknown_ties():
    with pytest.raises(ValueError, match="ties must be"):
        sk.spo_loss(C, C_HAT, sk.Simplex(), ties="best")


# -- normalization -----------------------------------------------------------------------------------------------------


def test_best_costs_of_zero():
    """The loss is then divided by the largest cost of each sample, so that it has no units."""
    zero, other = np.array([[0.0, 5.0, 2.0], [0.0, 1.0, 3.0]]), np.array([[3.0, 4.0, 0.0]] * 2)
    assert sk.normalized_spo_loss(zero, zero, sk.Simplex()) == 0.0
    assert_array_equal(sk.normalized_spo_loss(zero, zero, sk.Simplex(), per_sample=True), [0.0, 0.0])
    with pytest.warns(UndefinedMetricWarning, match=r"largest cost of each sample.*metric='spo_loss'"):
        assert sk.normalized_spo_loss(zero, other, sk.Simplex()) == pytest.approx((2.0 + 3.0) / (5.0 + 3.0))
    with pytest.warns(UndefinedMetricWarning, match="largest cost"):
        rows = sk.normalized_spo_loss(zero, [zero[0], other[1]], sk.Simplex(), per_sample=True)
    assert_allclose(rows, [0.0, 3.0 / 4.0])
    with pytest.warns(UndefinedMetricWarning, match="largest cost"):
        loss = sk.normalized_spo_loss(zero, other, sk.Simplex(), sample_weight=[3.0, 1.0])
    assert loss == pytest.approx((3 * 2.0 + 3.0) / (3 * 5.0 + 3.0))


def test_samples_without_weight_do_not_affect_normalization():
    truth, prediction = np.array([[0.0, 0.0], [0.0, 5.0]]), np.array([[1.0, 2.0], [2.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for weight in ([1.0, 0.0], [1e278, 1e-47]):
            assert sk.normalized_spo_loss(truth, prediction, sk.Simplex(), sample_weight=weight) == 0.0


def test_best_costs_that_an_oracle_rounds_are_zero():
    """A solver of linear programs returns 1e-12 instead of 0, which must not be divided by."""

    def rounded(costs):
        W = np.full_like(costs, 1e-12)
        W[np.arange(len(costs)), costs.argmin(axis=1)] = 1.0
        return W

    region = sk.OracleRegion(rounded, 3)
    truth, prediction = [[0.0, 5.0, 2.0]], [[3.0, 4.0, 0.0]]
    with pytest.warns(UndefinedMetricWarning):
        assert sk.normalized_spo_loss(truth, prediction, region) == pytest.approx(2.0 / 5.0)


@pytest.mark.parametrize("scoring", [None, sk.make_spo_scorer(sk.Simplex())], ids=["score", "scorer"])
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_folds_of_both_kinds_have_no_units(scale, scoring):
    """Best costs are zero in one fold only: multiplying all costs must not change the average, nor any fold."""
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(60, 3)), rng.uniform(1.0, 2.0, size=(60, 4))
    costs[:20] -= costs[:20].min(axis=1, keepdims=True)
    model = sk.TwoStageRegressor(region=sk.Simplex())
    with pytest.warns(UndefinedMetricWarning, match="different scales") as caught:
        scores = cross_val_score(model, X, costs, cv=KFold(3), scoring=scoring)
    assert len(caught) == 1
    with pytest.warns(UndefinedMetricWarning, match="different scales"):
        scaled = cross_val_score(model, X, scale * costs, cv=KFold(3), scoring=scoring)
    assert_allclose(scaled, scores, rtol=1e-9)
    assert -1.0 <= scores[0] < 0.0


def test_forty_folds_warn_once():
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(80, 3)), rng.uniform(1.0, 2.0, size=(80, 4))
    costs -= costs.min(axis=1, keepdims=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = GridSearchCV(sk.TwoStageRegressor(region=sk.Simplex()), {"shared": [False]}, cv=40).fit(X, costs)
        assert [w.category for w in caught] == [UndefinedMetricWarning]
        assert caught[0].filename == __file__
        search.score(X, costs)  # another line: another warning
        assert len(caught) == 2


def test_warnings_as_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UndefinedMetricWarning):
                sk.normalized_spo_loss([[0.0, 1.0]], [[1.0, 0.0]], sk.Simplex())


def test_normalization_is_by_size_not_by_sum():
    # Best costs -1 and 1: their sum is zero, their sizes are not.
    truth, prediction = [[-1.0, 0.0], [1.0, 2.0]], [[0.0, -1.0], [1.0, 2.0]]
    assert sk.normalized_spo_loss(truth, prediction, sk.Simplex()) == pytest.approx(0.5)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_normalized_loss_has_no_units(scale):
    expected = sk.normalized_spo_loss(C, C_HAT, sk.Simplex())
    assert sk.normalized_spo_loss(scale * C, scale * C_HAT, sk.Simplex()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_wrong_costs(metric):
    with pytest.raises(ValueError, match="same shape"):
        metric(C, C_HAT[:, :2], sk.Simplex())
    with pytest.raises(ValueError, match="y_pred contains NaN"):
        metric(C, np.full_like(C, np.nan), sk.Simplex())
    with pytest.raises(ValueError, match="one cost per decision variable"):
        metric(C, C_HAT, sk.ShortestPath.grid(2, 2))
    with pytest.raises(TypeError, match="region must be a Region"):
        metric(C, C_HAT, "simplex")


# -- scorers -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, X @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(60, 4))


MODELS = [
    RandomForestRegressor(n_estimators=5, random_state=0),
    KNeighborsRegressor(3),
    make_pipeline(StandardScaler(), LinearRegression()),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


@models
@pytest.mark.parametrize("name", ["normalized_spo_loss", "spo_loss", "spo_plus_loss"])
def test_scorer_in_cross_val_score(model, name, data):
    X, y = data
    folds = KFold(3)
    scores = cross_val_score(model, X, y, scoring=sk.make_spo_scorer(sk.TopK(2), metric=name), cv=folds)
    metric = getattr(sk, name)
    expected = [
        -metric(y[test], model.fit(X[train], y[train]).predict(X[test]), sk.TopK(2)) for train, test in folds.split(X)
    ]
    assert_allclose(scores, expected, rtol=1e-12)
    assert (scores <= 0).all() and scores.mean() < 0


def test_scorer_in_grid_search_takes_the_smallest_loss(data):
    X, y = data
    region, sizes = sk.Simplex(), [1, 5, 40]
    search = GridSearchCV(
        KNeighborsRegressor(), {"n_neighbors": sizes}, scoring=sk.make_spo_scorer(region), cv=KFold(3)
    )
    search.fit(X, y)

    def loss(k, train, test):
        return sk.normalized_spo_loss(y[test], KNeighborsRegressor(k).fit(X[train], y[train]).predict(X[test]), region)

    losses = [np.mean([loss(k, *fold) for fold in KFold(3).split(X)]) for k in sizes]
    assert_allclose(-search.cv_results_["mean_test_score"], losses, rtol=1e-12)
    assert search.best_params_["n_neighbors"] == sizes[int(np.argmin(losses))]
    assert search.best_params_["n_neighbors"] != 40


def test_scorer_in_grid_search_over_a_pipeline_and_a_forest(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(n_estimators=5, random_state=0))
    grid = {"randomforestregressor__max_depth": [1, 4]}
    search = GridSearchCV(pipeline, grid, scoring=sk.make_spo_scorer(sk.TopK(2), metric="spo_loss"), cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == {"randomforestregressor__max_depth": 4}
    assert search.score(X, y) == -sk.spo_loss(y, search.predict(X), sk.TopK(2))


def test_scorer_of_a_perfect_model_is_zero_and_of_others_below(data):
    X, y = data
    scorer = sk.make_spo_scorer(sk.Simplex())
    assert scorer(KNeighborsRegressor(1).fit(X, y), X, y) == 0.0
    assert scorer(KNeighborsRegressor(60).fit(X, y), X, y) < 0.0


def test_scorer_passes_on_weights_and_options(data):
    X, y = data
    model = KNeighborsRegressor(1).fit(X, np.zeros_like(y))  # ties everywhere
    weight = np.random.default_rng(1).random(60)
    worst = sk.make_spo_scorer(sk.Simplex(), metric="spo_loss", ties="worst")
    expected = np.average(y.max(axis=1) - y.min(axis=1), weights=weight)
    assert worst(model, X, y, sample_weight=weight) == pytest.approx(-expected)
    first = np.average(y[:, 0] - y.min(axis=1), weights=weight)
    oracle = sk.make_spo_scorer(sk.Simplex(), metric="spo_loss")
    assert oracle(model, X, y, sample_weight=weight) == pytest.approx(-first)


def test_scorer_with_an_unknown_metric():
    with pytest.raises(ValueError, match="metric must be one of"):
        sk.make_spo_scorer(sk.Simplex(), metric="regret")


def test_a_loss_that_rounding_makes_negative_is_zero():
    # An oracle whose best decision for the truth is worse than another one by rounding.
    region = sk.OracleRegion(lambda C: np.where(C > 1.0, 1.0 + 1e-12, 1.0), 1)
    assert sk.SPOLoss(region).value([[2.0]], [[0.5]])[0] < 0.0
    assert_array_equal(sk.spo_loss([[2.0]], [[0.5]], region, per_sample=True), [0.0])


def test_no_warning_where_nothing_is_lost():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sk.normalized_spo_loss([[0.0, 1.0]], [[0.0, 1.0]], sk.Simplex()) == 0.0
