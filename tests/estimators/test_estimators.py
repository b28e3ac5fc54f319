"""Estimators in pipelines and searches, with data frames, weights, streaming and pickles."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from problems import noisy_data, spo_plus_objective
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skspo.solvers.driver
from skspo import (
    Box,
    EntropySimplex,
    Knapsack,
    LogBarrierSimplex,
    OracleRegion,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    TwoStageRegressor,
    make_spo_scorer,
    normalized_spo_loss,
    spo_loss,
    spo_plus_loss,
)
from skspo.datasets import make_cost_sensitive_classification, make_portfolio, make_shortest_path
from skspo.solvers import Result, Solver, Status

# The right class costs nothing, so the normalized loss of these data is not divided by the best costs, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")


@pytest.fixture(scope="module")
def classes():
    return make_cost_sensitive_classification(150, degree=2, noise=0.5, random_state=0)


def test_pipeline_and_grid_search(classes):
    X, C = classes
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SPOPlusRegressor(region=Simplex())),
        {"spoplusregressor__alpha": [0.001, 0.1, 10.0]},
        scoring=make_spo_scorer(Simplex()),
        cv=3,
    ).fit(X, C)
    assert search.best_params_["spoplusregressor__alpha"] in (0.001, 0.1)
    held_out = search.cv_results_["mean_test_score"]
    assert held_out.argmax() != 2
    assert search.score(X, C) == pytest.approx(-normalized_spo_loss(C, search.predict(X), Simplex()))
    # A Pipeline has no decide: use the region, or wrap it in TwoStageRegressor.
    decisions = Simplex().argmin(search.predict(X))
    wrapped = TwoStageRegressor(search.best_estimator_, Simplex()).fit(X, C)
    np.testing.assert_array_equal(wrapped.decide(X), decisions)


def test_region_parameters_are_searchable():
    X, C = make_portfolio(60, 3, 6, degree=4, noise=0.5, random_state=0)
    thresholds = [-1.75, -1.0]
    search = GridSearchCV(
        SPOPlusRegressor(region=Simplex(), surrogate_region=EntropySimplex()),
        {"surrogate_region__threshold": thresholds, "alpha": [0.0, 0.1]},
        scoring=make_spo_scorer(Simplex(), metric="spo_loss"),
        cv=2,
    ).fit(X, C)
    assert search.best_estimator_.surrogate_region.threshold in thresholds
    model = SPOPlusRegressor(region=EntropySimplex()).set_params(region__threshold=-1.0)
    assert model.fit(X, C).region_.threshold == -1.0


def test_data_frames_keep_their_names(classes):
    X, C = classes
    frame = pd.DataFrame(X, columns=list("abcde"))
    costs = pd.DataFrame(C, columns=[f"class {j}" for j in range(10)])
    model = SPOPlusRegressor(Simplex()).fit(frame, costs)
    assert list(model.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(model.coef_, SPOPlusRegressor(Simplex()).fit(X, C).coef_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("bacde")])
    two_stage = TwoStageRegressor(RandomForestRegressor(n_estimators=3, random_state=0), Simplex()).fit(frame, costs)
    assert list(two_stage.feature_names_in_) == list("abcde")


def test_sample_weight_is_routed(classes):
    X, C = classes
    weight = np.random.default_rng(0).integers(0, 3, size=len(X)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SPOPlusRegressor(Simplex()).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scorer = make_spo_scorer(Simplex()).set_score_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        result = cross_validate(
            pipe,
            X,
            C,
            scoring=scorer,
            cv=3,
            params={"sample_weight": weight},
            return_estimator=True,
            return_indices=True,
        )
    for k, fitted in enumerate(result["estimator"]):
        train, test = result["indices"]["train"][k], result["indices"]["test"][k]
        repeats = weight[train].astype(int)
        scaled = fitted[0].transform(X[train])
        by_hand = SPOPlusRegressor(Simplex())
        by_hand.fit(np.repeat(scaled, repeats, axis=0), np.repeat(C[train], repeats, axis=0))
        np.testing.assert_allclose(by_hand.coef_, fitted[1].coef_, rtol=1e-10)
        expected = -normalized_spo_loss(C[test], fitted.predict(X[test]), Simplex(), sample_weight=weight[test])
        assert result["test_score"][k] == pytest.approx(expected)


def test_spo_plus_beats_least_squares_for_nonlinear_costs():
    """Degree 8 shortest path: the published ordering, on held-out data."""
    grid = ShortestPath.grid(3, 3)
    X, C, coef = make_shortest_path(300, 5, (3, 3), degree=8, noise=0.5, random_state=0, return_coef=True)
    X_test, C_test = make_shortest_path(5000, 5, (3, 3), degree=8, noise=0.5, random_state=1, coef=coef)
    spo = SPOPlusRegressor(grid).fit(X, C)
    least_squares = TwoStageRegressor(region=grid).fit(X, C)
    assert spo.score(X_test, C_test) > 0.8 * least_squares.score(X_test, C_test)  # scores are negative


def test_decide_is_the_oracle_of_predict_and_score_is_the_metric(classes):
    X, C = classes
    for model in (SPOPlusRegressor(Simplex()), TwoStageRegressor(region=Simplex())):
        model.fit(X, C)
        np.testing.assert_array_equal(model.decide(X), Simplex().argmin(model.predict(X)))
        assert model.score(X, C) == -normalized_spo_loss(C, model.predict(X), Simplex())
        regret = ((model.decide(X) - Simplex().argmin(C)) * C).sum(axis=1)
        np.testing.assert_allclose(spo_loss(C, model.predict(X), Simplex(), per_sample=True), regret)


def test_surrogate_region_is_used_for_training(classes):
    X, C = classes
    model = SPOPlusRegressor(Simplex(), surrogate_region=LogBarrierSimplex(), alpha=0.01).fit(X, C)
    assert set(np.unique(model.decide(X))) == {0.0, 1.0}
    value = spo_plus_loss(C, model.predict(X), LogBarrierSimplex()) + 0.005 * (model.coef_**2).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.region_.get_params() == Simplex().get_params()


@pytest.mark.parametrize(
    "region", [Knapsack([3, 4, 5, 6], 9), Knapsack([3, 4, 5, 6], 9, integer=False), Box(sense="max")], ids=str
)
def test_maximizing_regions(region):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    C = np.maximum(X @ rng.normal(size=(2, 4)), 0) ** 2 + rng.normal(size=(80, 4)) * 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SPOPlusRegressor(region, random_state=0).fit(X, C)
    assert model.objective_ <= spo_plus_loss(C, LinearRegression().fit(X, C).predict(X), region)
    chosen = (C * model.decide(X)).sum()
    assert (C * region.argmin(np.zeros_like(C))).sum() < chosen <= (C * region.argmin(C)).sum()


def test_two_stage_takes_single_output_regressors(classes):
    X, C = classes
    model = TwoStageRegressor(GradientBoostingRegressor(n_estimators=3, random_state=0), Simplex()).fit(X, C)
    column = GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, C[:, 4]).predict(X)
    np.testing.assert_array_equal(model.predict(X)[:, 4], column)
    weighted = TwoStageRegressor(region=Simplex()).fit(X, C, sample_weight=np.arange(len(X)))
    direct = LinearRegression().fit(X, C, sample_weight=np.arange(len(X)))
    np.testing.assert_allclose(weighted.predict(X), direct.predict(X))


def test_partial_fit_learns_from_a_stream():
    grid = ShortestPath.grid(3, 3)
    X, C = make_shortest_path(3000, 5, (3, 3), degree=6, noise=0.5, random_state=0)
    model = SPOPlusRegressor(grid, random_state=0)
    for start in range(0, 3000, 250):
        model.partial_fit(X[start : start + 250], C[start : start + 250])
    first = LinearRegression().fit(X[:250], C[:250])
    everything = LinearRegression().fit(X, C)
    value = spo_plus_loss(C, model.predict(X), grid)
    assert value < spo_plus_loss(C, everything.predict(X), grid)
    assert value < 0.9 * spo_plus_loss(C, first.predict(X), grid)
    assert model.lower_bound_ == 0.0
    assert model.n_iter_ == 12
    again = SPOPlusRegressor(grid, random_state=0)
    for start in range(0, 3000, 250):
        again = pickle.loads(pickle.dumps(again))  # partial_fit continues after pickling
        again.partial_fit(X[start : start + 250], C[start : start + 250])
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_partial_fit_continues_after_fit(classes):
    X, C = classes
    model = SPOPlusRegressor(Simplex(), alpha=0.1, random_state=0).fit(X, C)
    before = spo_plus_loss(C, model.predict(X), Simplex())
    model.partial_fit(X, C)
    assert model.solver_ == "sgd"
    assert spo_plus_loss(C, model.predict(X), Simplex()) < 1.2 * before


def test_warm_start_starts_where_the_last_fit_ended():
    X, C = make_portfolio(200, 5, 10, degree=4, noise=0.5, random_state=0)
    model = SPOPlusRegressor(EntropySimplex(), warm_start=True).fit(X, C)
    cold = model.n_iter_
    value = model.objective_
    model.fit(X, C)
    assert model.n_iter_ < cold
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert SPOPlusRegressor(EntropySimplex()).fit(X, C).n_iter_ == cold


@pytest.mark.slow
def test_random_state_makes_sgd_reproducible(classes):
    X, C = classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        a, b, c = (SPOPlusRegressor(Simplex(), solver="sgd", max_iter=40, random_state=s).fit(X, C) for s in (0, 0, 1))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert not np.array_equal(a.coef_, c.coef_)


def test_fit_changes_no_parameter_and_pickles(classes):
    X, C = classes
    region = Simplex()
    model = SPOPlusRegressor(region, alpha=0.1)
    before = {k: v for k, v in model.get_params().items()}
    model.fit(X, C)
    assert model.region is region
    assert {k: v for k, v in model.get_params().items()} == before
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decide(X), model.decide(X))
    fresh = clone(model)
    assert not hasattr(fresh, "coef_")
    assert fresh.region is not region


@pytest.mark.filterwarnings("ignore:No region was given:UserWarning")
@pytest.mark.filterwarnings("ignore:y has one column:UserWarning")
def test_one_dimensional_costs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=50)
    model = SPOPlusRegressor().fit(X, y)
    assert model.predict(X).shape == (50,)
    assert model.decide(X).shape == (50, 1)
    assert model.coef_.shape == (1, 2)
    assert model.score(X, y) <= 0


def test_n_jobs_reaches_the_oracle_and_changes_nothing():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    region = Polyhedron(A_ub=[[1, 1, 1]], b_ub=[2], bounds=(0, 1))
    one = SPOPlusRegressor(region).fit(X, C)
    two = SPOPlusRegressor(region, n_jobs=2).fit(X, C)
    assert region.n_jobs is None
    assert two.region_.n_jobs == 2
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.decide(X), two.decide(X))


def test_interrupt_leaves_an_unfitted_estimator_unfitted(classes):
    X, C = classes

    def oracle(costs):
        raise KeyboardInterrupt

    model = SPOPlusRegressor(OracleRegion(oracle, 10))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, C)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "n_features_in_")


def test_certificate_is_in_units_of_cost():
    X, C = noisy_data(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        params = {"alpha": 1e-3, "prior": "least_squares", "solver": "bundle", "max_iter": 2}
        model = SPOPlusRegressor(Simplex(), **params).fit(X, 1000.0 * C)
    assert 1e-3 < model.duality_gap_ < 0.9
    assert model.objective_ - model.lower_bound_ == pytest.approx(model.duality_gap_ * model.objective_, rel=1e-9)


def test_names_of_features_are_those_of_the_last_fit():
    X, C = noisy_data()
    model = SPOPlusRegressor(Simplex()).fit(pd.DataFrame(X, columns=["a", "b", "c"]), C)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert not hasattr(model.fit(X, C), "feature_names_in_")


def test_rate_of_a_stream_falls():
    X, C = noisy_data()
    model = SPOPlusRegressor(Simplex(), random_state=0)
    rates = [model.partial_fit(X, C)._stream[1].rate for _ in range(3)]
    assert_allclose(rates, rates[0] / np.sqrt([1.0, 2.0, 3.0]))


def test_a_pass_that_fails_leaves_the_stream_as_it_was():
    X, C = noisy_data()
    fail = []

    def oracle(C):
        if fail and fail.pop():
            raise RuntimeError("no decision today")
        return Simplex().argmin(C)

    model = SPOPlusRegressor(OracleRegion(oracle, 4), random_state=0).partial_fit(X, C)
    coef, (_, stream, _) = model.coef_.copy(), model._stream
    Theta, average, epoch = stream.Theta.copy(), stream.average.copy(), stream.epoch
    fail[:] = [True, False]  # the second call, in the middle of the pass
    with pytest.raises(RuntimeError, match="no decision today"):
        model.partial_fit(X, C)
    _, stream, _ = model._stream
    assert stream.epoch == epoch
    assert_array_equal(stream.Theta, Theta)
    assert_array_equal(stream.average, average)
    assert_array_equal(model.coef_, coef)


def test_fit_resets_partial_fit():
    X, C = noisy_data()
    model = SPOPlusRegressor(Simplex(), random_state=0).partial_fit(X, C)
    fitted = model.fit(X, C).coef_
    other = SPOPlusRegressor(Simplex(), random_state=0).fit(X, C)
    assert_array_equal(fitted, other.coef_)
    assert_array_equal(model.partial_fit(X, C).coef_, other.partial_fit(X, C).coef_)


class Stub(Solver):
    """Returns given results."""

    name = "stub"

    def __init__(self, result=None, tol=1e-6):
        self.result = result
        self.tol = tol

    def solve(self, objective, run, start=None):
        """Return the given result."""
        return self.result


def test_best_result_of_several_failing_solvers(monkeypatch):
    X, C = noisy_data()
    Theta = spo_plus_objective(X, C).least_squares
    value = spo_plus_objective(X, C).value(Theta)
    results = [Result(Theta, value, bound * value, 7, Status.ITERATION_LIMIT, "", np.inf) for bound in (0.2, 0.9, 0.5)]
    monkeypatch.setattr(skspo.solvers.driver, "make_solvers", lambda *args, **kwargs: [Stub(r) for r in results])
    with pytest.warns(ConvergenceWarning, match=r"gap of 1\.0e-01"):
        model = SPOPlusRegressor(Simplex()).fit(X, C)
    assert model.lower_bound_ == pytest.approx(0.9 * model.objective_)


def test_number_of_jobs_of_the_region_counts():
    X, C = noisy_data(6)
    for own, expected in ((None, 1), (2, 2)):
        region = Polyhedron(A_eq=np.ones((1, 4)), b_eq=[1], n_jobs=own)
        assert SPOPlusRegressor(region, n_jobs=1).fit(X, C).region_.n_jobs == expected
