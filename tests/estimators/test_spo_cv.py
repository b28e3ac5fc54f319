"""``SPORegressorCV``: models between the SPO+ fit and the SPO fit, chosen by held-out decisions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skspo as sk
from skspo.datasets import make_portfolio, make_shortest_path
from skspo.estimators._spo_cv import _judge

SMALL = {"n_alphas": 3, "cv": 3, "tol": 1e-5, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore:The (lbfgs|line-search) solver stopped early. max_iter")


@pytest.fixture(scope="module")
def portfolio():
    return make_portfolio(60, 3, 5, degree=6, noise=0.5, random_state=0)


@pytest.fixture(scope="module")
def paths():
    return make_shortest_path(60, 3, (3, 3), degree=6, noise=0.5, random_state=0)


def test_a_step_of_zero_is_the_spo_plus_model(portfolio, paths):
    for region, (X, C) in ((sk.EntropySimplex(), portfolio), (sk.ShortestPath.grid(3, 3), paths)):
        start = sk.SPOPlusRegressorCV(region, n_alphas=3, cv=3, tol=1e-5).fit(X, C)
        model = sk.SPORegressorCV(region, steps=[0.0], max_iter=30, **SMALL).fit(X, C)
        assert model.alpha_ == pytest.approx(start.alpha_)
        assert model.step_ == 0.0
        # Both are optimal up to the tolerance; the SPO+ loss is the same.
        losses = [sk.spo_plus_loss(C, m.predict(X), region) for m in (model, start)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)
        assert model.objective_ == pytest.approx(sk.spo_loss(C, model.predict(X), region))


def test_a_step_of_one_is_the_spo_model(portfolio):
    X, C = portfolio
    region = sk.EntropySimplex()
    spo = sk.SPORegressor(region, init="least_squares", n_restarts=0, max_iter=20, tol=1e-5).fit(X, C)
    model = sk.SPORegressorCV(region, init="least_squares", steps=[1.0], max_iter=20, **SMALL).fit(X, C)
    assert np.isinf(model.alpha_)
    assert model.objective_ == pytest.approx(spo.objective_, rel=1e-4)
    assert_allclose(model.decide(X), spo.decide(X), atol=1e-3)


def test_predictions_lie_between(paths):
    X, C = paths
    region = sk.ShortestPath.grid(3, 3)
    models = [
        sk.SPORegressorCV(region, init="least_squares", steps=[s], max_iter=64, **SMALL).fit(X, C) for s in (0, 0.3, 1)
    ]
    start, between, end = (region.visible_costs(model.predict(X)) for model in models)
    assert_allclose(between, 0.7 * start + 0.3 * end, atol=1e-9 * np.abs(start).max())
    assert np.abs(end - start).max() > 1e-3
    assert models[2].objective_ < models[0].objective_


def test_scores_are_those_of_models_fitted_to_the_folds(portfolio):
    X, C = portfolio
    region, cv = sk.EntropySimplex(), KFold(3)
    params = {"init": "least_squares", "max_iter": 20, "random_state": 0}
    weight = np.random.default_rng(0).uniform(size=len(X))
    model = sk.SPORegressorCV(region, steps=[1.0, 0.4], cv=cv, **params).fit(X, C, weight)
    assert_array_equal(model.steps_, [0.4, 1.0])
    for k, (train, test) in enumerate(cv.split(X)):
        for j, step in enumerate(model.steps_):
            single = sk.SPORegressorCV(region, steps=[step], cv=2, **params).fit(X[train], C[train], weight[train])
            loss = sk.spo_loss(C[test], single.predict(X[test]), region, sample_weight=weight[test])
            assert -model.cv_results_[f"split{k}_test_score"][j] == pytest.approx(loss, rel=1e-5)
    sizes = [weight[test].sum() for _, test in cv.split(X)]
    mean = np.average([model.cv_results_[f"split{k}_test_score"] for k in range(3)], axis=0, weights=sizes)
    assert_allclose(model.cv_results_["mean_test_score"], mean)


def test_smallest_step_within_two_standard_errors():
    steps = np.array([0.0, 0.5, 1.0])
    gain = np.array([1.0, 0.0, 3.0, 2.0])  # of a step of 1 over one of 0: mean 1.5, standard error 0.56
    regret = np.column_stack([5.0 + gain, 5.0 + 0.5 * gain, np.full(4, 5.0)])
    table, chosen = _judge(steps, [(regret[:2], np.ones(2)), (regret[2:], np.ones(2))])
    assert chosen == 2  # 1.5 > 1.12 and 0.75 > 0.56
    assert_allclose(table["mean_test_spo_loss"], [6.5, 5.75, 5.0])
    assert_allclose(table["standard_error"], [gain.std() / 2, gain.std() / 4, 0.0])
    assert_array_equal(table["rank_test_score"], [3, 2, 1])
    assert_allclose(table["split1_test_score"], [-7.5, -6.25, -5.0])
    # Mean 0.9 and standard error 0.62: not enough for the whole way, and half of it is not better either.
    gain = np.array([0.0, 0.0, 3.0, 0.6])
    regret = np.column_stack([5.0 + gain, 5.0 + 0.5 * gain, np.full(4, 5.0)])
    assert _judge(steps, [(regret, np.ones(4))])[1] == 0
    # Samples without weight do not count.
    assert _judge(steps, [(regret, np.array([0.0, 0.0, 1.0, 0.0]))])[1] == 2


def test_ties_go_to_the_start():
    table, chosen = _judge(np.array([0.0, 1.0]), [(np.ones((5, 2)), np.ones(5))])
    assert chosen == 0
    assert_array_equal(table["rank_test_score"], [1, 1])
    assert _judge(np.array([0.2, 1.0]), [(np.zeros((0, 2)), np.zeros(0))])[1] == 0


def test_units_do_not_matter(portfolio):
    X, C = portfolio
    region = sk.EntropySimplex()
    plain = sk.SPORegressorCV(region, max_iter=20, **SMALL).fit(X, C)
    scale = np.array([100.0, 0.01, 1.0])
    other = sk.SPORegressorCV(region, max_iter=20, **SMALL).fit(X * scale + 3.0 * scale, 7.0 * C)
    assert other.step_ == plain.step_
    assert_allclose(other.decide(X * scale + 3.0 * scale), plain.decide(X), atol=1e-3)


def test_values_to_be_maximized(portfolio):
    X, C = portfolio
    params = {"max_iter": 20, **SMALL}
    low = sk.SPORegressorCV(sk.EntropySimplex(), **params).fit(X, C)
    high = sk.SPORegressorCV(sk.EntropySimplex(sense="max"), **params).fit(X, -C)
    assert high.step_ == low.step_
    assert high.objective_ == pytest.approx(low.objective_, rel=1e-6)
    assert_allclose(high.decide(X), low.decide(X), atol=1e-6)


def test_offset_and_parameters_of_samples(paths):
    X, C = paths
    rng = np.random.default_rng(1)
    O, params = rng.uniform(size=C.shape), {"upper": rng.uniform(0.5, 1.0, size=C.shape)}
    model = sk.SPORegressorCV(sk.Box(-1, 1), max_iter=32, **SMALL).fit(X, C - 1, offset=O, region_params=params)
    W = model.decide(X, offset=O, region_params=params)
    assert (W <= params["upper"]).all()
    best = sk.Box(-1, 1).with_rows(params, *C.shape).argmin(C - 1)
    assert model.objective_ == pytest.approx(((W - best) * (C - 1)).sum(axis=1).mean())


def test_frames_shared_models_and_one_cost(paths):
    X, C = paths
    frame = pd.DataFrame(X, columns=list("abc"))
    costs = pd.DataFrame(C[:, :3], columns=list("xyz"))
    model = sk.SPORegressorCV(sk.Simplex(), max_iter=16, **SMALL).fit(frame, costs)
    assert list(model.feature_names_in_) == list("abc") and list(model.cost_names_in_) == list("xyz")
    assert "SPORegressorCV" in str(model.report(frame, costs))
    shared = sk.SPORegressorCV(sk.Simplex(), shared=True, max_iter=16, **SMALL).fit(np.tile(X, 3), C[:, :3])
    assert shared.coef_.shape == (3,) and isinstance(shared.intercept_, float)
    one = sk.SPORegressorCV(sk.Box(-1, 1), max_iter=16, **SMALL).fit(X, C[:, 0] - C[:, 0].mean())
    assert one.predict(X).shape == (60,)


def test_clone_pickle_jobs_and_search(paths):
    X, C = paths
    model = sk.SPORegressorCV(sk.ShortestPath.grid(3, 3), max_iter=16, **SMALL)
    fitted = clone(model).fit(X, C)
    same = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(same.predict(X), fitted.predict(X))
    two = clone(model).set_params(n_jobs=2).fit(X, C)
    assert_array_equal(two.coef_, fitted.coef_)
    pipeline = make_pipeline(StandardScaler(), model.set_params(region=sk.Simplex()))
    search = GridSearchCV(pipeline, {"sporegressorcv__init": ["spo+", "least_squares"]}, cv=2).fit(X, C[:, :4])
    assert search.best_score_ <= 0


def test_random_generators_advance_and_are_restored_on_failure(paths):
    X, C = paths
    rng = np.random.RandomState(0)
    model = sk.SPORegressorCV(sk.Simplex(), max_iter=16, **(SMALL | {"random_state": rng}))
    with pytest.raises(ValueError, match="solver must be"):
        clone(model).set_params(random_state=rng, solver="sgd").fit(X, C)
    assert rng.get_state()[2] == np.random.RandomState(0).get_state()[2]
    first = model.fit(X, C).coef_
    assert_array_equal(first, sk.SPORegressorCV(sk.Simplex(), max_iter=16, **SMALL).fit(X, C).coef_)


def test_time_limit(paths):
    X, C = paths
    with pytest.warns(sk.NotCertifiedWarning):
        model = sk.SPORegressorCV(sk.ShortestPath.grid(3, 3), time_limit=1e-9).fit(X, C)
    assert model.status_ == "time limit"
    assert model.step_ == 0.0
    assert np.isfinite(model.predict(X)).all()


def test_bad_parameters(paths):
    X, C = paths
    for steps in ([], [-0.1], [0.5, 1.5], "all", [[0.5]], 0.5, [np.nan]):
        with pytest.raises(ValueError, match="steps must be None or a sequence of numbers between 0 and 1"):
            sk.SPORegressorCV(sk.Simplex(), steps=steps).fit(X, C)
    with pytest.raises(ValueError, match="init must be 'spo\\+' or 'least_squares'"):
        sk.SPORegressorCV(sk.Simplex(), init="zero").fit(X, C)
    with pytest.raises(ValueError, match="at least 2 samples"):
        sk.SPORegressorCV(sk.Simplex()).fit(X[:1], C[:1])


@pytest.mark.slow
def test_overfits_less_than_the_spo_model():
    """Loose entropy constraint, 60 samples: the regret on new data is near the start or below, and below SPO."""
    region = sk.EntropySimplex(-0.7 * np.log(6))
    ratios = []
    for draw in range(2):
        X, C = make_portfolio(2060, 5, 6, degree=2, noise=0.5, random_state=draw)
        models = [
            sk.SPOPlusRegressorCV(region, n_alphas=8, tol=1e-4),
            sk.SPORegressor(region, n_restarts=0, max_iter=1000),
            sk.SPORegressorCV(region, n_alphas=8, tol=1e-4, random_state=0),
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start, spo, chosen = (sk.spo_loss(C[60:], m.fit(X[:60], C[:60]).predict(X[60:]), region) for m in models)
        ratios.append((chosen / start, chosen / spo))
    to_start, to_spo = np.mean(ratios, axis=0)
    assert to_start < 1.01
    assert to_spo < 1.0
    assert np.max(ratios, axis=0)[0] < 1.05
