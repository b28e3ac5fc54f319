"""Training on costs that were seen only for past decisions."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import (
    Knapsack,
    PartialFeedbackRegressor,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    TopK,
    TwoStageRegressor,
    decide,
    make_spo_scorer,
    row_params,
)
from skspo.datasets import make_shortest_path
from skspo.estimators._feedback_costs import (
    Nuisances,
    Propensity,
    corrections,
    held_out_error,
    inverse,
    pseudo_costs,
    residuals,
    unidentified,
)
from skspo.estimators._feedback_log import Log

GRID = ShortestPath.grid(3, 3)
PATHS = np.unique(GRID.argmin(np.random.default_rng(0).exponential(size=(500, 12))), axis=0)
LINEAR = {"nuisance": LinearRegression(), "method": "direct"}


def paths(n=120, seed=0):
    """Features, costs, and one random path of each sample."""
    X, C = make_shortest_path(n, n_features=3, grid=(3, 3), degree=2, random_state=seed)
    return X, C, PATHS[np.random.default_rng(seed).integers(len(PATHS), size=n)]


def choices(n=150, d=4, seed=0):
    """Features, linear costs of four alternatives, and a random one of each sample."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    C = X @ rng.normal(size=(2, d)) + rng.normal(size=d) + 0.1 * rng.normal(size=(n, d))
    return X, C, np.eye(d)[rng.integers(d, size=n)]


def least_squares(region=GRID):
    return TwoStageRegressor(LinearRegression(), region)


# -- pseudo-costs ------------------------------------------------------------------------------------------------------


def test_doubly_robust_costs_are_right_on_average_if_propensities_are():
    """The mean over all patterns of what was seen is the cost, whatever was predicted."""
    rng = np.random.default_rng(0)
    c, m, p = rng.normal(size=(3, 4))
    p = 0.1 + 0.8 * rng.random(4)
    mean = np.zeros(4)
    for k in range(16):
        seen = np.array([k >> j & 1 for j in range(4)], dtype=bool)
        log = Log(None, np.where(seen, c, np.nan)[None])
        mean += np.prod(np.where(seen, p, 1 - p)) * pseudo_costs(log, m[None], p[None], "doubly_robust_pinv")[0]
    np.testing.assert_allclose(mean, c, atol=1e-12)


@pytest.mark.parametrize("by_row", [False, True])
def test_doubly_robust_totals_are_right_on_average_for_every_decision(by_row):
    """The mean over all paths is the cost of every path, whatever was predicted."""
    rng = np.random.default_rng(0)
    c, m = rng.normal(size=(2, 12))
    n = len(PATHS)
    log = Log(None, np.full((n, 12), np.nan), PATHS, PATHS @ c)
    P = PATHS.T @ PATHS / n
    found = pseudo_costs(log, np.tile(m, (n, 1)), np.tile(P, (n, 1, 1)) if by_row else P, "doubly_robust_pinv")
    np.testing.assert_allclose(PATHS @ found.mean(axis=0), PATHS @ c, atol=1e-10)


def test_variants_of_the_inverse():
    values = np.array([0.0, 0.01, 0.5, 0.99])
    np.testing.assert_allclose(inverse(values, "doubly_robust_pinv"), [0, 100, 2, 1 / 0.99])
    clipped, added = (inverse(values, f"doubly_robust{name}") for name in ("", "_lambda"))
    assert clipped[0] == added[0] == 0
    assert clipped[1] < 100 and clipped[2] == 2 and clipped[3] == 1 / 0.99
    assert (added[1:] < inverse(values, "doubly_robust_pinv")[1:]).all()
    np.testing.assert_allclose(inverse(values, "doubly_robust", 0.5), [0, 2, 2, 1 / 0.99])
    np.testing.assert_allclose(inverse(values, "doubly_robust_lambda", 0.5), [0, 1 / 0.51, 1, 1 / 1.49])


@pytest.mark.parametrize(("method", "published"), [("", lambda v: np.maximum(v, 1)), ("_lambda", lambda v: v + 1)])
def test_variants_for_totals_are_those_of_the_paper(method, published):
    """Eigenvalues of the second moment below 1 are clipped, or 1 is added; other units change nothing."""
    rng = np.random.default_rng(0)
    z, (m,), P = PATHS @ rng.random(12), rng.normal(size=(1, 12)), PATHS.T @ PATHS / len(PATHS)
    vectors, values, _ = np.linalg.svd(P)
    keep = values > 1e-9
    H = (vectors[:, keep] / published(values[keep])) @ vectors[:, keep].T
    log = Log(None, np.full(PATHS.shape, np.nan), PATHS, z)
    M = np.tile(m, (len(PATHS), 1))
    found = pseudo_costs(log, M, P, f"doubly_robust{method}")
    np.testing.assert_allclose(found, M + (PATHS @ H) * (z - PATHS @ m)[:, None], atol=1e-12)
    units = log._replace(W=10 * PATHS)  # costs are then a tenth
    np.testing.assert_allclose(pseudo_costs(units, M / 10, 100 * P, f"doubly_robust{method}"), found / 10, atol=1e-12)


def test_direct_costs_keep_what_was_seen():
    X, C, W = choices()
    seen = np.where(W > 0, C, np.nan)
    model = PartialFeedbackRegressor(least_squares(Simplex()), **LINEAR).fit(X, seen)
    np.testing.assert_array_equal(model.pseudo_costs_[W > 0], C[W > 0])
    expected = np.empty_like(C)
    for train, test in KFold(5).split(X):
        for j in range(4):
            rows = train[W[train, j] > 0]
            predicted = LinearRegression().fit(X[rows], C[rows, j]).predict(X[test])
            expected[test, j] = np.maximum(predicted, C[rows, j].min())
    np.testing.assert_allclose(model.pseudo_costs_[W == 0], expected[W == 0])
    assert model.method_ == "direct" and model.feedback_ == "costs"
    trained = least_squares(Simplex()).fit(X, model.pseudo_costs_)
    np.testing.assert_allclose(model.predict(X), trained.predict(X))
    np.testing.assert_array_equal(model.decide(X), trained.decide(X))
    assert model.chosen(X) == trained.chosen(X)


def test_totals_of_linear_costs_without_noise_are_fully_recovered():
    """Costs of paths, not of streets, are determined by totals."""
    X, _, W = paths()
    B = np.random.default_rng(1).normal(size=(12, 3))
    C = X @ B.T + 5
    model = PartialFeedbackRegressor(least_squares(), nuisance=LinearRegression(), method="direct")
    model.fit(X, (W * C).sum(axis=1), decisions=W)
    assert model.feedback_ == "totals" and model.identified_.all()
    np.testing.assert_allclose(model.predict(X) @ PATHS.T, C @ PATHS.T, atol=1e-6)


def test_totals_with_features_of_items():
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(80, 4 * 2)), np.eye(4)[rng.integers(4, size=80)]
    C = X.reshape(80, 4, 2) @ [1.0, -2.0] + 3
    inner = TwoStageRegressor(LinearRegression(), Simplex(), shared=True)
    for y, given in (((W * C).sum(axis=1), {"decisions": W}), (np.where(W > 0, C, np.nan), {})):
        model = PartialFeedbackRegressor(inner, **LINEAR).fit(X, y, **given)
        np.testing.assert_allclose(model.predict(X), C, atol=1e-8)


def test_complete_costs_give_the_model_of_the_estimator():
    X, C, _ = paths()
    model = PartialFeedbackRegressor(SPOPlusRegressor(GRID, alpha=0.1)).fit(X, C)
    assert model.feedback_ == "full" and model.nuisance_ is None
    np.testing.assert_array_equal(model.predict(X), SPOPlusRegressor(GRID, alpha=0.1).fit(X, C).predict(X))
    assert model.score(X, C) == model.estimator_.score(X, C)
    assert "least squares" in str(model.report(X, C))


def test_other_models_say_who_takes_missing_costs():
    X, C, W = choices()
    with pytest.raises(ValueError, match="train with PartialFeedbackRegressor and evaluate with estimated_cost"):
        SPOPlusRegressor(Simplex()).fit(X, np.where(W > 0, C, np.nan))
    model = PartialFeedbackRegressor(least_squares(Simplex()), **LINEAR).fit(X, np.where(W > 0, C, np.nan))
    with pytest.raises(ValueError, match="evaluate with estimated_cost"):
        model.report(X, np.where(W > 0, C, np.nan))


def test_values_are_costs_with_the_other_sign():
    X, C, W = choices()
    seen = np.where(W > 0, C, np.nan)
    cost = PartialFeedbackRegressor(least_squares(Simplex()), method="doubly_robust", random_state=0).fit(X, seen)
    value = PartialFeedbackRegressor(least_squares(Simplex(sense="max")), method="doubly_robust", random_state=0)
    value.fit(X, -seen)
    np.testing.assert_allclose(value.pseudo_costs_, -cost.pseudo_costs_)
    np.testing.assert_array_equal(value.decide(X), cost.decide(X))
    np.testing.assert_allclose(value.score(X, -seen), cost.score(X, seen))


@pytest.mark.parametrize("totals", [False, True])
def test_offset_is_the_known_part(totals):
    X, C, W = choices()
    known = np.random.default_rng(5).normal(size=C.shape)

    def seen(costs):
        return (W * costs).sum(axis=1) if totals else np.where(W > 0, costs, np.nan)

    given = {"decisions": W} if totals else {}
    plain = PartialFeedbackRegressor(least_squares(Simplex()), **LINEAR).fit(X, seen(C), **given)
    other = PartialFeedbackRegressor(least_squares(Simplex()), **LINEAR)
    other.fit(X, seen(C + known), offset=known, **given)
    np.testing.assert_allclose(other.pseudo_costs_, plain.pseudo_costs_ + known)
    np.testing.assert_allclose(other.predict(X, offset=known), plain.predict(X) + known)
    # The score is minus the mean of doubly robust costs, offset included.
    log = Log(X, np.full_like(C, np.nan), W, (W * C).sum(axis=1)) if totals else Log(X, seen(C))
    target = pseudo_costs(log, plain.nuisance_.predict(X), plain.propensity_.predict(X), "doubly_robust_pinv")
    cost = ((target + known) * other.decide(X, offset=known)).sum(axis=1).mean()
    assert other.score(X, seen(C + known), offset=known, **given) == pytest.approx(-cost)


def test_weights_of_zero_leave_rows_out():
    X, C, W = choices()
    seen = np.where(W > 0, C, np.nan)
    weight = np.r_[np.ones(100), np.zeros(50)]
    folds = [(np.arange(100)[np.arange(100) % 5 != k], np.flatnonzero(np.arange(100) % 5 == k)) for k in range(5)]
    options = {"nuisance": LinearRegression(), "method": "doubly_robust", "cv": folds}
    weighted = PartialFeedbackRegressor(least_squares(Simplex()), **options).fit(X, seen, sample_weight=weight)
    fewer = PartialFeedbackRegressor(least_squares(Simplex()), **options).fit(X[:100], seen[:100])
    np.testing.assert_allclose(weighted.predict(X), fewer.predict(X))
    np.testing.assert_allclose(weighted.propensity_.mean, fewer.propensity_.mean)


def test_options_that_are_not_available_have_no_cost():
    X, C, _ = choices()
    rng = np.random.default_rng(0)
    available = rng.random(C.shape) < 0.6
    available[np.arange(len(C)), rng.integers(4, size=len(C))] = True
    W = Simplex().with_rows({"available": available}, *C.shape).argmin(rng.normal(size=C.shape))
    seen = np.where(W > 0, C, np.nan)
    model = PartialFeedbackRegressor(least_squares(Simplex()), method="doubly_robust", random_state=0)
    model.fit(X, seen, region_params={"available": available})
    assert (model.decide(X, region_params={"available": available}) <= available).all()
    # What the log contains where nothing could be chosen changes nothing.
    noise = np.where(available, seen, 1e6)
    again = clone(model).fit(X, noise, region_params={"available": available})
    np.testing.assert_array_equal(again.pseudo_costs_, model.pseudo_costs_)
    np.testing.assert_allclose(model.propensity_.mean, (W > 0).sum(axis=0) / available.sum(axis=0))


# -- no leaks ----------------------------------------------------------------------------------------------------------


def test_pseudo_costs_of_a_group_do_not_depend_on_it():
    X, C, W = choices()
    seen = np.where(W > 0, C, np.nan)
    groups = np.repeat(np.arange(30), 5)
    model = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=Ridge(), method="direct")
    before = model.fit(X, seen, groups=groups).pseudo_costs_
    changed = np.where((groups == 7)[:, None], seen + 100, seen)
    after = model.fit(X, changed, groups=groups).pseudo_costs_
    rows = groups == 7
    np.testing.assert_array_equal(before[rows][W[rows] == 0], after[rows][W[rows] == 0])
    assert np.abs(before[~rows] - after[~rows]).max() > 0.1


def test_the_future_is_not_used_in_time_ordered_folds():
    X, C, W = choices()
    seen = np.where(W > 0, C, np.nan)
    model = PartialFeedbackRegressor(
        least_squares(Simplex()), nuisance=Ridge(), method="doubly_robust", cv=TimeSeriesSplit(4)
    )
    before = model.fit(X, seen).pseudo_costs_
    assert np.isnan(before[:30]).all() and np.isfinite(before[30:]).all()
    after = model.fit(X, np.where(np.arange(150)[:, None] >= 120, seen + 100, seen)).pseudo_costs_
    np.testing.assert_array_equal(before[:120], after[:120])


def test_the_choice_of_method_does_not_see_what_judges_it():
    X, C, W = choices()
    splits = list(KFold(5).split(X))
    held = splits[2][1]
    seen = np.where(W > 0, C, np.nan)
    changed = seen.copy()
    changed[held] += 100

    def predictions(costs):
        log = Log(X, costs)
        return Nuisances(log, splits, lambda part: _Mean(part)).held_out(without=held)

    rest = np.setdiff1d(np.arange(150), held)
    np.testing.assert_array_equal(predictions(seen)[rest], predictions(changed)[rest])
    assert np.isnan(predictions(seen)[held]).all()


class _Mean:
    def __init__(self, log):
        self.mean = np.nanmean(log.C, axis=0)

    def predict(self, X):
        return np.tile(self.mean, (len(X), 1))


# -- propensities ------------------------------------------------------------------------------------------------------


def test_propensities_frequencies_classifier_and_given():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    P = 1 / (1 + np.exp(-np.column_stack([X[:, 0], -X[:, 0], 0 * X[:, 0]])))
    log = Log(X, np.where(rng.random(P.shape) < P, 1.0, np.nan))
    np.testing.assert_allclose(Propensity(None, log).predict(X)[0], log.seen.mean(axis=0))
    assert np.abs(Propensity(LogisticRegression(), log).predict(X) - P).mean() < 0.02
    np.testing.assert_array_equal(Propensity(np.full(3, 0.25), log).predict(X), np.full(P.shape, 0.25))


def test_propensities_of_each_row_are_used():
    X, C, W = choices()
    seen = np.where(W > 0, C, np.nan)
    P = np.where(W > 0, np.random.default_rng(0).uniform(0.2, 0.9, size=C.shape), np.nan)  # only what was seen is used
    options = {"nuisance": Ridge(), "method": "doubly_robust_pinv"}
    model = PartialFeedbackRegressor(least_squares(Simplex()), **options).fit(X, seen, propensity=P)
    M = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=Ridge(), method="direct").fit(X, seen).pseudo_costs_
    np.testing.assert_array_equal(model.pseudo_costs_[W == 0], M[W == 0])
    same = PartialFeedbackRegressor(least_squares(Simplex()), **options, propensity=np.full(4, 0.25)).fit(X, seen)
    frequencies = PartialFeedbackRegressor(least_squares(Simplex()), **options).fit(X, seen)
    ratio = (same.pseudo_costs_ - M)[W == 0]
    np.testing.assert_array_equal(ratio, 0)
    assert not np.allclose(same.pseudo_costs_, frequencies.pseudo_costs_)


def test_clipped_propensities_are_said():
    X, C, _ = choices()
    seen = np.where(np.random.default_rng(0).random(C.shape) < [0.02, 0.9, 0.9, 0.9], C, np.nan)
    seen[:3, 0] = C[:3, 0]
    model = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=Ridge(), method="doubly_robust")
    with pytest.warns(UserWarning, match="propensities .* are small and were clipped"):
        model.fit(X[(~np.isnan(seen)).any(axis=1)], seen[(~np.isnan(seen)).any(axis=1)])


def self_selected(n=2000, seed=0, totals=False):
    """Features, what was seen of the costs of two options, decisions, and propensities that depend on the features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    C = np.column_stack([2 * X[:, 0], 0 * X[:, 0]]) + 0.1 * rng.normal(size=(n, 2))
    first = 1 / (1 + np.exp(X[:, 0]))  # the first option is chosen where it is cheap
    W = np.eye(2)[(rng.random(n) > first).astype(int)]
    y = (W * C).sum(axis=1) if totals else np.where(W > 0, C, np.nan)
    return X, y, W, np.column_stack([first, 1 - first])


def test_frequencies_if_what_was_seen_does_not_depend_on_features(recwarn):
    model = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=Ridge(), method="doubly_robust_pinv")
    for seed in range(5):
        X, C, W = choices(seed=seed)
        seen = np.where(W > 0, C, np.nan)
        known = clone(model).set_params(propensity=W.mean(axis=0)).fit(X, seen)
        np.testing.assert_allclose(model.fit(X, seen).propensity_.predict(X), known.propensity_.predict(X))
    assert not [warning for warning in recwarn if "depended on the features" in str(warning.message)]


@pytest.mark.filterwarnings("ignore:The propensities of")
@pytest.mark.parametrize("method", ["doubly_robust_pinv", "auto"])
def test_propensities_depend_on_features_if_what_was_seen_does(method):
    """The pseudo-costs of a constant nuisance are then right on average, those with frequencies are not."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    X, seen, _, P = self_selected()
    model = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=DummyRegressor(), method=method)
    with pytest.warns(UserWarning, match="What was seen depended on the features"):
        model.fit(X, seen)
    assert np.abs(model.propensity_.predict(X) - P).mean() < 0.03
    if method == "auto":
        assert model.method_ == "doubly_robust"
    else:
        frequencies = clone(model).set_params(propensity=DummyClassifier()).fit(X, seen)
        bias = [abs(fitted.pseudo_costs_[:, 0].mean() - 2 * X[:, 0].mean()) for fitted in (model, frequencies)]
        assert bias[0] < 0.15 and bias[1] > 0.5


def test_self_selected_items_of_one_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3, 1))  # one feature of each of three items
    C = X[:, :, 0] + 0.1 * rng.normal(size=(400, 3))
    W = Simplex().argmin(X[:, :, 0] + rng.normal(size=(400, 3)))
    member = TwoStageRegressor(LinearRegression(), Simplex(), shared=True)
    model = PartialFeedbackRegressor(member, nuisance=Ridge(), method="doubly_robust")
    with pytest.warns(UserWarning, match="What was seen depended on the features"):
        model.fit(X.reshape(400, 3), np.where(W > 0, C, np.nan))
    P = model.propensity_.predict(X.reshape(400, 3))
    assert np.corrcoef(P.ravel(), X.ravel())[0, 1] < -0.8  # cheap items were seen


def test_features_that_are_no_numbers_give_frequencies():
    from sklearn.preprocessing import OneHotEncoder

    _, C, W = choices()
    X, seen = np.array([["sun"], ["rain"]] * 75, dtype=object), np.where(W > 0, C, np.nan)
    coded = make_pipeline(OneHotEncoder(), LinearRegression())
    model = PartialFeedbackRegressor(
        make_pipeline(OneHotEncoder(), least_squares(Simplex())), nuisance=coded, method="doubly_robust"
    )
    np.testing.assert_allclose(model.fit(pd.DataFrame(X, columns=["sky"]), seen).propensity_.mean, W.mean(axis=0))


def test_totals_of_self_selected_decisions_are_said():
    X, total, W, _ = self_selected(totals=True)
    model = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=Ridge(), method="doubly_robust")
    with pytest.warns(UserWarning, match="Past decisions depended on the features, but their second moment"):
        model.fit(X, total, decisions=W)
    np.testing.assert_allclose(model.propensity_.mean, W.T @ W / len(W))


# -- what is not identified --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("totals", [False, True])
def test_a_street_that_was_never_driven_is_named_and_avoided(totals):
    X, C, W = paths(200)
    last = int(np.flatnonzero(PATHS.any(axis=0))[-2])
    rows = W[:, last] == 0
    X, C, W = X[rows], C[rows], W[rows]
    unseen = ~W.any(axis=0)
    y, given = ((W * C).sum(axis=1), {"decisions": W}) if totals else (np.where(W > 0, C, np.nan), {})
    model = PartialFeedbackRegressor(least_squares(), method="direct", random_state=0)
    with pytest.warns(UserWarning, match="says nothing about the cost of .*" + str(GRID.names()[last])):
        model.fit(X, y, **given)
    np.testing.assert_array_equal(model.identified_, ~unseen)
    assert not model.decide(X)[:, unseen].any()
    worst = np.where(unseen, -np.inf, model.nuisance_.predict(X)).max(axis=1)
    np.testing.assert_array_equal(model.nuisance_.predict(X)[:, last], worst)


def test_span_of_past_decisions():
    """Two of six paths: their difference is known, other streets are not."""
    some = PATHS[:2]
    log = Log(None, np.full((2, 12), np.nan), some, np.ones(2))
    lost = unidentified(log, GRID)
    assert lost[~some.any(axis=0)].all()
    everything = Log(None, np.full((6, 12), np.nan), PATHS, np.ones(6))
    assert not unidentified(everything, GRID).any()


def test_an_error_if_every_decision_rests_on_what_was_never_seen():
    X, C, _ = choices()
    seen = C.copy()
    seen[:, 0] = np.nan
    with (
        pytest.warns(UserWarning, match="says nothing about the cost of 1 of 4 decision variables: w0"),
        pytest.raises(ValueError, match="All decisions of the fitted model use a variable about whose cost"),
    ):
        PartialFeedbackRegressor(least_squares(TopK(4)), **LINEAR).fit(X, seen)


# -- choice of the method ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The propensities of")
def test_auto_takes_doubly_robust_if_the_nuisance_is_wrong():
    """The first cost is mostly seen where it is low, the nuisance is constant, and the propensities are known."""
    from sklearn.dummy import DummyRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    C = np.column_stack([2 * X[:, 0], 0.0 * X[:, 0]]) + 0.1 * rng.normal(size=(2000, 2))
    P = np.column_stack([np.where(X[:, 0] > 0, 0.1, 0.9), np.ones(2000)])  # low costs are seen
    seen = np.where(rng.random(P.shape) < P, C, np.nan)
    model = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=DummyRegressor(), cv=3)
    model.fit(X, seen, propensity=P)
    assert model.method_ == "doubly_robust"
    results = model.cv_results_
    assert results["direct"] - results["doubly_robust"] > 2 * results["standard_error"]
    good = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=LinearRegression(), cv=3)
    assert good.fit(X, seen, propensity=P).method_ == "direct"


def test_auto_takes_the_nuisance_if_the_estimator_is_wrong():
    """Costs are quadratic, and the estimator is linear; its own decisions are chosen if they are better."""
    X = np.random.default_rng(0).normal(size=(600, 1))
    C = np.column_stack([X[:, 0] ** 2 - 1, 0 * X[:, 0]]) + 0.1 * np.random.default_rng(1).normal(size=(600, 2))
    seen = np.where(np.eye(2)[np.random.default_rng(2).integers(2, size=600)] > 0, C, np.nan)
    known = np.tile([0.3, 0.0], (600, 1))
    model = PartialFeedbackRegressor(least_squares(Simplex()), random_state=0).fit(X, seen + known, offset=known)
    assert model.nuisance_name_ == "quadratic ridge" and model.method_ == "nuisance"
    results = model.cv_results_
    assert min(results, key=results.get) in ("nuisance", "standard_error")
    assert results["direct"] - results["nuisance"] > 2 * results["standard_error"]
    np.testing.assert_allclose(model.predict(X, offset=known), model.nuisance_.predict(X) + known)
    W = Simplex().argmin(model.nuisance_.predict(X) + known)
    np.testing.assert_array_equal(model.decide(X, offset=known), W)
    named = clone(model).set_params(method="nuisance").fit(X, seen + known, offset=known)
    np.testing.assert_array_equal(named.predict(X, offset=known), model.predict(X, offset=known))
    value = PartialFeedbackRegressor(least_squares(Simplex(sense="max")), random_state=0)
    assert value.fit(X, -seen - known, offset=-known).method_ == "nuisance"
    linear = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=Ridge(), method="nuisance").fit(X[:, :1], seen)
    copy = pickle.loads(pickle.dumps(linear))
    assert copy.score(X, seen) == linear.score(X, seen)


@pytest.mark.filterwarnings("ignore:What was seen depended", "ignore:Past decisions depended")
@pytest.mark.parametrize("case", ["weights", "time", "groups", "shared", "totals"])
def test_auto_with_everything_that_samples_may_have(case):
    X, C, W = choices(80)
    member, y, given, params = least_squares(Simplex()), np.where(W > 0, C, np.nan), {}, {"nuisance": Ridge()}
    if case == "weights":
        given = {"sample_weight": np.r_[np.zeros(10), 1e-9, np.full(69, 1e3)]}
    elif case == "time":
        params["cv"] = TimeSeriesSplit(4)
    elif case == "groups":
        given = {"groups": np.arange(80) // 4}
    elif case == "shared":
        X, member = C.repeat(2, axis=1), TwoStageRegressor(LinearRegression(), Simplex(), shared=True)
    else:
        y, given = (W * C).sum(axis=1), {"decisions": W}
    model = PartialFeedbackRegressor(member, **params).fit(X, y, **given)
    assert model.method_ in ("direct", "nuisance", "doubly_robust")
    assert np.isfinite(model.predict(X)).all() and model.predict(X).shape == C.shape


def test_the_default_nuisance_is_the_best_of_three():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    shapes = {"ridge": X[:, 0], "quadratic ridge": X[:, 0] * X[:, 1], "boosting": np.sign(X[:, 0]) * (X[:, 1] > 0)}
    for name, f in shapes.items():
        C = np.column_stack([f, -f]) + 0.05 * rng.normal(size=(400, 2))
        seen = np.where(np.eye(2)[rng.integers(2, size=400)] > 0, C, np.nan)
        model = PartialFeedbackRegressor(least_squares(Simplex()), method="direct", random_state=0).fit(X, seen)
        assert model.nuisance_name_ == name == min(model.nuisance_errors_, key=model.nuisance_errors_.get)


def test_errors_of_costs_from_zero_on_are_deviances():
    from sklearn.metrics import mean_poisson_deviance

    rng = np.random.default_rng(0)
    C, M = rng.exponential(size=(2, 50, 3))
    log = Log(None, np.where(rng.random(C.shape) < 0.5, C, np.nan))
    expected = mean_poisson_deviance(C[log.seen], M[log.seen]) * log.seen.sum()
    assert held_out_error(log, M).sum() == pytest.approx(expected)
    M[:10] = np.nan  # never held out
    assert (held_out_error(log, M)[:10] == 0).all()
    for other in (log._replace(worst=-1.0), log._replace(C=log.C - 10)):
        np.testing.assert_allclose(held_out_error(other, M)[10:], np.square(residuals(other, M)[10:]).sum(axis=1))


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def test_grid_search_on_a_log():
    X, C, W = paths()
    seen = np.where(W > 0, C, np.nan)
    model = PartialFeedbackRegressor(SPOPlusRegressor(GRID), nuisance=Ridge(), method="direct")
    search = GridSearchCV(model, {"estimator__alpha": [0.01, 1.0]}, cv=3, error_score="raise").fit(X, seen)
    assert (search.cv_results_["mean_test_score"] < 0).all()
    assert decide(search, X).shape == C.shape
    same = GridSearchCV(model, {"estimator__alpha": [0.01, 1.0]}, cv=3, scoring=make_spo_scorer(GRID)).fit(X, seen)
    np.testing.assert_array_equal(same.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])


def test_metadata_is_routed():
    X, C, W = paths()
    totals = (W * C).sum(axis=1)
    model = PartialFeedbackRegressor(SPOPlusRegressor(GRID), nuisance=Ridge(), method="direct")
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(decisions=True).set_score_request(decisions=True)
        search = GridSearchCV(model, {"estimator__alpha": [0.01, 1.0]}, cv=3, error_score="raise")
        search.fit(X, totals, decisions=W)
        scorer = make_spo_scorer(GRID).set_score_request(decisions=True)
        search.set_params(scoring=scorer).fit(X, totals, decisions=W)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_pipelines_inside_and_outside():
    X, C, W = paths()
    seen = np.where(W > 0, C, np.nan)
    inside = PartialFeedbackRegressor(
        make_pipeline(StandardScaler(), SPOPlusRegressor(GRID, alpha=0.1, tol=1e-10)), **LINEAR
    )
    outside = make_pipeline(
        StandardScaler(), PartialFeedbackRegressor(SPOPlusRegressor(GRID, alpha=0.1, tol=1e-10), **LINEAR)
    )
    inside.fit(X, seen)
    outside.fit(X, seen)
    assert inside.region_.n_dim == 12 and inside.score(X, seen) < 0
    np.testing.assert_allclose(inside.predict(X), outside.predict(X), atol=1e-6)


def test_clone_and_pickle():
    X, C, W = paths()
    model = PartialFeedbackRegressor(SPOPlusRegressor(GRID, alpha=0.1), method="doubly_robust", random_state=3)
    model.fit(X, (W * C).sum(axis=1), decisions=W)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decide(X), model.decide(X))
    assert copy.score(X, (W * C).sum(axis=1), decisions=W) == model.score(X, (W * C).sum(axis=1), decisions=W)
    again = clone(model).fit(X, (W * C).sum(axis=1), decisions=W)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert clone(model).get_params()["method"] == "doubly_robust"


def test_region_params_of_a_knapsack():
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(60, 2)), rng.integers(2, size=(60, 3)).astype(float)
    C = X @ rng.normal(size=(2, 3)) + 2
    capacity = W @ [3, 4, 5] + rng.integers(3, size=60)
    seen = np.where(rng.random((60, 3)) < 0.7, C, np.nan)
    seen[:, 0] = C[:, 0]
    model = PartialFeedbackRegressor(SPOPlusRegressor(Knapsack([3, 4, 5], 8), alpha=0.1), **LINEAR)
    rows = row_params(capacity=capacity)
    model.fit(X, seen, region_params=rows)
    assert (model.decide(X, region_params=rows) @ [3, 4, 5] <= capacity).all()
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(region_params=True).set_score_request(region_params=True)
        search = GridSearchCV(model, {"estimator__alpha": [0.1, 1.0]}, cv=3, error_score="raise")
        assert search.fit(X, seen, region_params=rows).best_score_ > 0


# -- names -------------------------------------------------------------------------------------------------------------


def test_columns_of_decisions_in_another_order_are_matched():
    X, C, W = choices()
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(W, columns=names)
    region = Polyhedron(A_eq=np.ones((1, 4)), b_eq=[1], bounds=(0, 1), variable_names=names)
    totals = (W * C).sum(axis=1)
    model = PartialFeedbackRegressor(least_squares(region), **LINEAR).fit(X, totals, decisions=frame)
    other = PartialFeedbackRegressor(least_squares(region), **LINEAR).fit(
        X, totals, decisions=frame[["d", "b", "a", "c"]]
    )
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert list(other.cost_names_in_) == names
    shuffled = frame[["c", "a", "d", "b"]]
    assert model.score(X, totals, decisions=shuffled) == model.score(X, totals, decisions=frame)
    seen = pd.DataFrame(np.where(W > 0, C, np.nan), columns=names)
    model = PartialFeedbackRegressor(least_squares(Simplex()), **LINEAR).fit(X, seen, decisions=shuffled)
    assert list(model.decide(X, as_frame=True).columns) == names


def test_propensities_are_matched_by_name():
    X, C, W = choices()
    names = list("abcd")
    y, P = pd.DataFrame(np.where(W > 0, C, np.nan), columns=names), np.tile([0.4, 0.3, 0.2, 0.1], (150, 1))
    frame = pd.DataFrame(P, columns=names)
    model = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=Ridge(), method="doubly_robust_pinv")
    expected = model.fit(X, y, propensity=P).pseudo_costs_
    shuffled = frame[["c", "a", "d", "b"]]
    np.testing.assert_array_equal(model.fit(X, y, propensity=shuffled).pseudo_costs_, expected)
    assert model.score(X, y, propensity=shuffled) == model.score(X, y, propensity=P)
    with pytest.raises(ValueError, match="The columns of propensity should match"):
        model.fit(X, y, propensity=frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="The index of propensity has the labels"):
        model.fit(X, y, propensity=frame[::-1])


def test_costs_that_are_all_zero(recwarn):
    X, C, W = choices()
    seen = np.where(W > 0, np.abs(C) * [0, 1, 1, 1], np.nan)
    model = PartialFeedbackRegressor(least_squares(Simplex()), method="direct", random_state=0).fit(X, seen)
    np.testing.assert_array_equal(model.nuisance_.predict(X)[:, 0], 0.0)
    assert not recwarn


def test_the_share_of_decisions_that_rest_on_what_was_never_seen_is_said():
    X, C, _ = choices()
    always = np.eye(4)[[1] * 150]
    model = PartialFeedbackRegressor(least_squares(Simplex()), nuisance=Ridge(), method="doubly_robust")
    with pytest.warns(UserWarning, match=r"nothing about the cost of 3 of 4 .* and [1-9]\d?% of the decisions"):
        model.fit(X, C[:, 1], decisions=always)


def test_residuals_of_rows_that_are_not_held_out_are_not_used():
    log = Log(None, np.array([[1.0, np.nan], [np.nan, 2.0]]))
    found = corrections(log, np.array([[np.nan, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5]] * 2), "doubly_robust_pinv")
    assert np.isnan(found[0, 0]) and found[1, 1] == 2.0
