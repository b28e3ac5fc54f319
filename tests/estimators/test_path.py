"""The regularization path, and the choice of the penalty by held-out decisions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import noisy_data, spo_plus_objective
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skspo import (
    Box,
    Ellipsoid,
    EntropySimplex,
    OracleRegion,
    ShortestPath,
    Simplex,
    SPOPlusLoss,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    TwoStageRegressor,
    spo_loss,
    spo_plus_loss,
    spo_plus_path,
)
from skspo._training.in_memory import InMemoryObjective
from skspo.datasets import make_cost_sensitive_classification, make_portfolio, make_shortest_path
from skspo.estimators import _folds
from skspo.estimators._folds import Table, excess_regret
from skspo.estimators._path import LARGEST


@pytest.fixture(scope="module")
def portfolio():
    return make_portfolio(60, 4, 5, degree=6, noise=0.5, random_state=0)


@pytest.fixture(scope="module")
def path_data():
    X, C, coef = make_shortest_path(60, 4, (3, 3), degree=6, noise=0.5, random_state=0, return_coef=True)
    X_test, C_test = make_shortest_path(1000, 4, (3, 3), degree=6, noise=0.5, random_state=1, coef=coef)
    return X, C, X_test, C_test


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "l1_ratio"), [("least_squares", 0.0), ("zero", 0.5)])
def test_path_agrees_with_single_fits(portfolio, prior, l1_ratio):
    """Standardized penalties: SPOPlusRegressor on standardized data.  Plain ones: on the data as they are."""
    X, C = portfolio
    X = X * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 0.0, 1.0]
    options = {"l1_ratio": l1_ratio, "prior": prior}
    scaler = StandardScaler().fit(X)
    cost_scale = InMemoryObjective(SPOPlusLoss(EntropySimplex()), X, C).cost_scale
    for standardize, X_fit, unit in ((True, scaler.transform(X), cost_scale), (False, X, 1.0)):
        alphas, coefs, intercepts, objectives, gaps = spo_plus_path(
            X, C, EntropySimplex(), alphas=[0.001, 0.1], standardize=standardize, **options
        )
        np.testing.assert_array_equal(alphas, [0.1, 0.001])
        assert gaps.max() <= 1e-6
        for k, alpha in enumerate(alphas):
            model = SPOPlusRegressor(EntropySimplex(), alpha=alpha, **options).fit(X_fit, C / unit)
            assert objectives[k] == pytest.approx(model.objective_ * unit, rel=2e-6)
            predicted = X @ coefs[k].T + intercepts[k]
            np.testing.assert_allclose(predicted, model.predict(X_fit) * unit, atol=0.02 * cost_scale)


def test_another_penalty_is_the_same_as_another_objective(portfolio):
    X, C = portfolio
    Theta = np.random.default_rng(0).normal(size=(5, 5))
    for standardized in (False, True):
        for prior in ("zero", "least_squares"):
            common = {"prior": prior, "standardized": standardized}
            changed = InMemoryObjective(SPOPlusLoss(EntropySimplex()), X, C, **common).with_penalty(0.3, 0.2)
            fresh = InMemoryObjective(SPOPlusLoss(EntropySimplex()), X, C, alpha=0.3, l1_ratio=0.2, **common)
            assert changed.value(Theta) == fresh.value(Theta)
            for a, b in zip(changed.to_user(Theta), fresh.to_user(Theta), strict=True):
                np.testing.assert_array_equal(a, b)


def test_path_runs_from_least_squares_to_no_penalty(path_data):
    X, C, *_ = path_data
    grid = ShortestPath.grid(3, 3)
    alphas, coefs, intercepts, objectives, gaps = spo_plus_path(X, C, grid, n_alphas=6)
    assert np.isinf(alphas[0])
    assert (np.diff(alphas) < 0).all()
    assert gaps.max() <= 1e-6
    least_squares = LinearRegression().fit(X, C)
    np.testing.assert_allclose(coefs[0], least_squares.coef_, atol=1e-10)
    np.testing.assert_allclose(intercepts[0], least_squares.intercept_, atol=1e-10)
    assert objectives[0] == pytest.approx(spo_plus_loss(C, least_squares.predict(X), grid))
    # The largest finite alpha is practically least squares, the smallest practically the plain minimizer.
    same = (grid.argmin(X @ coefs[1].T + intercepts[1]) == grid.argmin(least_squares.predict(X))).all(axis=1)
    assert same.mean() >= 0.9
    assert (np.diff(objectives) <= 1e-6 * objectives[0]).all()
    losses = [spo_plus_loss(C, X @ B.T + b, grid) for B, b in zip(coefs, intercepts, strict=True)]
    assert losses[-1] <= 1.1 * SPOPlusRegressor(grid).fit(X, C).objective_


def test_zero_prior_grid_starts_without_slopes(portfolio):
    X, C = portfolio
    alphas, coefs, *_ = spo_plus_path(X, C, EntropySimplex(), n_alphas=4, prior="zero")
    assert np.isfinite(alphas).all()
    assert np.abs(coefs[0]).max() < 0.1 * np.abs(coefs[-1]).max()
    _, coefs, *_ = spo_plus_path(X, C, EntropySimplex(), n_alphas=4, prior="zero", l1_ratio=1.0)
    assert (np.abs(coefs[0]) < 1e-6 * np.abs(coefs[-1]).max()).mean() > 0.7


def test_cv_picks_sensible_penalties(path_data):
    """Degree six: neither least squares nor the plain minimizer; a linear truth: close to least squares."""
    X, C, X_test, C_test = path_data
    grid = ShortestPath.grid(3, 3)
    model = SPOPlusRegressorCV(grid, n_alphas=6).fit(X, C)
    least_squares = TwoStageRegressor(region=grid).fit(X, C)
    assert np.isfinite(model.alpha_)
    assert model.score(X_test, C_test) > 0.95 * least_squares.score(X_test, C_test)  # scores are negative
    assert model.duality_gap_ <= 1e-6
    assert model.lower_bound_ <= model.objective_

    rng = np.random.default_rng(0)
    C = 5.0 + X @ rng.normal(size=(4, 12)) + 2.0 * rng.normal(size=(len(X), 12))
    model = SPOPlusRegressorCV(grid, alphas=[np.inf, 1e-4]).fit(X, C)
    assert np.isinf(model.alpha_)
    assert model.solver_ == "least_squares"
    assert model.duality_gap_ == 0
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, C).coef_, atol=1e-10)


def test_refit_is_spo_plus_regressor_on_standardized_data(path_data):
    X, C, X_test, _ = path_data
    grid = ShortestPath.grid(3, 3)
    model = SPOPlusRegressorCV(grid, alphas=[0.1], cv=2).fit(X, C)
    scaler = StandardScaler().fit(X)
    np.testing.assert_allclose(model.feature_scale_, scaler.scale_)
    plain = SPOPlusRegressor(grid, alpha=model.alpha_, prior="least_squares")
    plain.fit(scaler.transform(X), C / model.cost_scale_)
    assert model.objective_ == pytest.approx(plain.objective_ * model.cost_scale_, rel=2e-6)
    np.testing.assert_allclose(
        model.predict(X_test), plain.predict(scaler.transform(X_test)) * model.cost_scale_, rtol=0.01
    )


@pytest.mark.slow
def test_cv_results_are_those_of_grid_search(portfolio):
    X, C = portfolio
    region = Ellipsoid()
    alphas = [1.0, 0.1, 0.01]
    model = SPOPlusRegressorCV(region, alphas=alphas, cv=KFold(3), scoring="neg_mean_squared_error").fit(X, C)
    table = pd.DataFrame(model.cv_results_)
    assert table.shape == (3, 9)
    assert model.alpha_ == table.alpha[table.mean_test_score.argmax()]
    for k, (train, test) in enumerate(KFold(3).split(X)):
        for j, alpha in enumerate(alphas):
            single = SPOPlusRegressorCV(region, alphas=[alpha]).fit(X[train], C[train])
            error = np.mean((single.predict(X[test]) - C[test]) ** 2)
            assert table[f"split{k}_test_score"][j] == pytest.approx(-error, rel=1e-2)
    # Own losses: all held-out samples together, not the mean of unequal folds.
    folds = [(np.arange(10, 60), np.arange(10)), (np.arange(10), np.arange(10, 60))]
    single = SPOPlusRegressorCV(region, alphas=alphas[1:2]).fit(X[10:], C[10:])
    for scoring, metric in ((None, spo_plus_loss), ("spo_plus_loss", spo_plus_loss), ("spo_loss", spo_loss)):
        model = SPOPlusRegressorCV(region, alphas=alphas, cv=folds, scoring=scoring).fit(X, C)
        results = model.cv_results_
        pooled = (10 * results["split0_test_score"] + 50 * results["split1_test_score"]) / 60
        np.testing.assert_allclose(results["mean_test_score"], pooled)
        np.testing.assert_array_equal(results["mean_test_score"], -results[f"mean_test_{metric.__name__}"])
        assert model.alpha_ == alphas[np.argmax(pooled)]
        loss = metric(C[:10], single.predict(X[:10]), region)
        assert results["split0_test_score"][1] == pytest.approx(-loss, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "l1_ratio"), [("least_squares", 0.5), ("zero", 0.0)])
def test_units_change_no_decision(path_data, prior, l1_ratio):
    X, C, X_test, _ = path_data
    grid = ShortestPath.grid(3, 3)
    model = SPOPlusRegressorCV(grid, n_alphas=5, cv=3, prior=prior, l1_ratio=l1_ratio)
    reference = clone(model).fit(X, C)
    decisions = reference.decide(X_test)
    units = np.array([1e-3, 7.0, 1e4, 0.3])
    origin = np.array([0.0, -20.0, 1e4, 0.0])
    for feature, shift, cost in ((1.0, 0.0, 1e-3), (1.0, 0.0, 1e3), (units, 0.0, 1.0), (units, origin, 42.0)):
        other = clone(model).fit(X * feature + shift, C * cost)
        assert np.argmax(other.alphas_ == other.alpha_) == np.argmax(reference.alphas_ == reference.alpha_)
        assert other.alpha_ == pytest.approx(reference.alpha_, rel=1e-6)
        same = (other.decide(X_test * feature + shift) == decisions).all(axis=1)
        assert same.mean() >= 0.999


def test_jobs_change_nothing(portfolio):
    X, C = portfolio
    one = SPOPlusRegressorCV(Ellipsoid(), n_alphas=4, cv=3).fit(X, C)
    two = SPOPlusRegressorCV(Ellipsoid(), n_alphas=4, cv=3, n_jobs=2).fit(X, C)
    assert one.alpha_ == two.alpha_
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6)
    np.testing.assert_allclose(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"], rtol=1e-6)


@pytest.mark.parametrize("region", [Simplex(), Ellipsoid()], ids=str)
def test_weights_are_repetitions(region):
    X, C = make_cost_sensitive_classification(60, degree=2, noise=0.5, random_state=0)
    weight = np.random.default_rng(0).integers(0, 3, size=len(X))
    fold = np.arange(len(X)) % 3
    rows = np.repeat(np.arange(len(X)), weight)
    model = SPOPlusRegressorCV(region, n_alphas=4)
    weighted = clone(model).set_params(cv=list(splits(fold))).fit(X, C, sample_weight=weight)
    repeated = clone(model).set_params(cv=list(splits(fold[rows]))).fit(X[rows], C[rows])
    np.testing.assert_allclose(weighted.alphas_, repeated.alphas_)
    np.testing.assert_allclose(weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_)
    # Only the proportions count.
    scaled = clone(model).set_params(cv=list(splits(fold))).fit(X, C, sample_weight=2 * weight)
    np.testing.assert_allclose(scaled.coef_, weighted.coef_)


def splits(fold):
    for k in range(3):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


@pytest.mark.filterwarnings("ignore:No region was given:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_estimator_interface(portfolio):
    X, C = portfolio
    frame = pd.DataFrame(X, columns=list("abcd"))
    region = Ellipsoid()
    model = SPOPlusRegressorCV(region, n_alphas=3, cv=2, scoring="r2")
    before = dict(model.get_params())
    model.fit(frame, C)
    assert dict(model.get_params()) == before
    assert model.region is region
    assert list(model.feature_names_in_) == list("abcd")
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decide(frame), model.decide(frame))
    fresh = clone(model)
    assert not hasattr(fresh, "coef_")
    assert not hasattr(fresh, "partial_fit")
    search = GridSearchCV(make_pipeline(StandardScaler(), fresh), {"spoplusregressorcv__prior": ["zero"]}, cv=2)
    assert search.fit(X, C).best_estimator_[-1].coef_.shape == (5, 4)
    one_dimensional = SPOPlusRegressorCV(n_alphas=3, scoring="r2").fit(X, C[:, 0])
    assert one_dimensional.predict(X).shape == (60,)


def test_few_samples():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(3, 2)), rng.normal(size=(3, 4))
    model = SPOPlusRegressorCV(Simplex(), n_alphas=3).fit(X, C)
    assert "split2_test_score" in model.cv_results_
    assert "split3_test_score" not in model.cv_results_
    with pytest.raises(ValueError, match="n_samples=1"):
        SPOPlusRegressorCV(Simplex()).fit(X[:1], C[:1])
    with pytest.raises(ValueError, match="n_splits=5"):
        SPOPlusRegressorCV(Simplex(), cv=5).fit(X, C)
    with pytest.raises(ValueError, match="every training sample of a fold"):
        SPOPlusRegressorCV(Simplex(), cv=3).fit(X, C, sample_weight=[0, 0, 1])


def test_a_perfect_linear_model_is_least_squares():
    """Nothing to gain from a penalty: the gradient at least squares vanishes and least squares wins the ties."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    C = X @ rng.normal(size=(3, 4)) + 1.0
    model = SPOPlusRegressorCV(Simplex(), n_alphas=3).fit(X, C)
    assert np.isinf(model.alpha_)
    assert model.score(X, C) == 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alphas": [-1.0]}, "alphas must be"),
        ({"alphas": []}, "alphas must be"),
        ({"alphas": 1.0}, "alphas must be"),
        ({"alphas": ["many"]}, "alphas must be"),
        ({"alphas": [np.nan]}, "alphas must be"),
        ({"alphas": [np.inf], "prior": "zero"}, "infinity"),
        ({"n_alphas": 0}, "n_alphas must be"),
        ({"n_alphas": 2.5}, "n_alphas must be"),
        ({"prior": "one"}, "prior must be"),
        ({"l1_ratio": 2}, "l1_ratio must be"),
        ({"tol": -1}, "tol must be"),
        ({"solver": "magic"}, "solver must be"),
        ({"scoring": "magic"}, "scoring"),
    ],
)
def test_bad_parameters(portfolio, params, message):
    model = SPOPlusRegressorCV(EntropySimplex(), **params)
    with pytest.raises(ValueError, match=message):
        model.fit(*portfolio)
    assert not hasattr(model, "n_features_in_")


def test_one_warning_for_all_folds():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(30, 2)), rng.normal(size=(30, 4))
    model = SPOPlusRegressorCV(Simplex(), solver="bundle", max_iter=1, n_alphas=4, cv_tol=1e-6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, C)
    caught = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert sum("fits on the folds" in text for text in caught) == 1
    assert len(caught) <= 2
    assert "15 of 20" in caught[-1]


def test_surrogate_region_is_used_for_training():
    X, C = make_cost_sensitive_classification(60, degree=2, noise=0.5, random_state=0)
    model = SPOPlusRegressorCV(Simplex(), surrogate_region=EntropySimplex(), n_alphas=4, cv=2).fit(X, C)
    assert model.solver_ in ("newton", "lbfgs", "least_squares")
    assert set(np.unique(model.decide(X))) == {0.0, 1.0}


def test_regions_with_only_an_oracle(portfolio):
    X, C = portfolio
    region = OracleRegion(Simplex().argmin, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SPOPlusRegressorCV(region, n_alphas=3, cv=2, max_iter=20, random_state=0).fit(X, C)
    assert model.decide(X).shape == C.shape


ESTIMATORS = [
    SPOPlusRegressorCV(n_alphas=2, cv=2),
    SPOPlusRegressorCV(Box(-1, 1), n_alphas=2, cv=2, prior="zero", l1_ratio=0.5),
    SPOPlusRegressorCV(Ellipsoid(), alphas=[np.inf, 0.1], cv=2),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_ties_of_the_path_go_to_the_larger_alpha(monkeypatch):
    X, C = noisy_data(20)
    scores = np.array([[-2.0, -1.0, -1.0 + 1e-13, -3.0]])
    table = Table(scores, scores, scores, np.ones(1), True, 4)
    monkeypatch.setattr(_folds, "fit_folds", lambda *args, **kwargs: ([], table))
    model = SPOPlusRegressorCV(Simplex(), alphas=[10.0, 1.0, 0.1, 0.01]).fit(X, C)
    assert model.alpha_ == 1.0


def test_excess_regret_is_a_paired_difference():
    rng = np.random.default_rng(0)
    level = 100.0 * rng.uniform(size=(50, 1))  # the same for all candidates
    regret, weight = level + rng.uniform(size=(50, 3)) + [0.0, 1.0, 2.0], rng.integers(0, 3, size=50).astype(float)
    excess, error = excess_regret(regret, weight)
    gain = regret[:, 2] - regret[:, 0]
    assert excess[0] == error[0] == 0.0
    assert excess[2] == pytest.approx(np.average(gain, weights=weight))
    residual = weight / weight.sum() * (gain - excess[2])
    assert error[2] == pytest.approx(np.linalg.norm(residual))
    assert error[2] < 0.2


@pytest.mark.parametrize("skewed", [False, True])
def test_skewed_costs_do_not_deceive_the_default_criterion(skewed):
    """The conditional mean is linear; the noise of some items is larger, and skewed or not."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(3000, 6, 3))
    mean = Z @ [1.0, -0.5, 0.0]
    noise = rng.exponential(size=mean.shape) - 1.0 if skewed else rng.normal(size=mean.shape)
    X, C = Z.reshape(3000, -1), mean + 2.0 * np.exp(0.7 * Z[:, :, 2]) * noise
    options = {"shared": True, "n_alphas": 6, "cv": 3, "tol": 1e-3}
    chosen, by_surrogate = (
        SPOPlusRegressorCV(Simplex(), scoring=scoring, **options).fit(X[:2000], C[:2000])
        for scoring in (None, "spo_plus_loss")
    )
    regret = [spo_loss(mean[2000:], model.predict(X[2000:]), Simplex()) for model in (chosen, by_surrogate)]
    if skewed:
        assert chosen.alpha_ > by_surrogate.alpha_
        assert regret[0] < 0.5 * regret[1]
    else:
        # Another candidate may be significantly better by chance, but then it is hardly worse for new samples.
        assert regret[0] < 1.1 * regret[1]


def test_folds_count_by_their_size():
    X, C = noisy_data(11)
    train, test = np.arange(11), np.arange(11)
    model = SPOPlusRegressorCV(
        Simplex(), alphas=[1.0, 0.1], cv=[(train[:8], test[8:]), (train[8:], test[:8])], scoring="spo_loss"
    ).fit(X, C)
    results = model.cv_results_
    pooled = (3 * results["split0_test_score"] + 8 * results["split1_test_score"]) / 11
    assert_allclose(results["mean_test_score"], pooled)
    assert_allclose(results["mean_test_score"], -results["mean_test_spo_loss"])
    assert (results["split0_test_score"] != results["split1_test_score"]).any()


def test_lasso_path_starts_where_the_first_coefficient_moves():
    X, C = make_portfolio(60, 4, 5, degree=3, random_state=0)
    params = {"prior": "least_squares", "l1_ratio": 1.0, "tol": 1e-8}
    infinite, first, _ = spo_plus_path(X, C, EntropySimplex(), n_alphas=3, **params)[0]
    alphas = [infinite, 1.001 * first, 0.9 * first]
    _, coefs, intercepts, *_ = spo_plus_path(X, C, EntropySimplex(), alphas=alphas, **params)
    models = [np.column_stack(pair) for pair in zip(coefs, intercepts, strict=True)]
    assert_allclose(models[1], models[0], atol=1e-7)
    assert np.abs(models[2] - models[0]).max() > 1e-4


def test_grid_without_a_prior_starts_at_the_mean_cost():
    X, C = make_portfolio(60, 4, 5, degree=3, random_state=0)
    region = EntropySimplex()
    objective = spo_plus_objective(X, C, region, standardized=True)
    Theta = np.zeros(objective.shape)
    Theta[:, -1] = objective.C.mean(axis=0)
    slopes = []
    for index in np.ndindex(Theta[:, :-1].shape):
        step = np.zeros_like(Theta)
        step[index] = 1e-6
        slopes.append((objective.value(Theta + step) - objective.value(Theta - step)) / 2e-6)
    grid = spo_plus_path(X, C, region, n_alphas=2, prior="zero", max_iter=1000)[0]
    assert grid[0] == pytest.approx(LARGEST * np.linalg.norm(slopes), rel=1e-5)


def test_best_candidate_of_the_path_has_rank_one():
    X, C = noisy_data(20)
    model = SPOPlusRegressorCV(Simplex(), alphas=[1.0, 0.1, 0.01], cv=3).fit(X, C)
    mean, rank = model.cv_results_["mean_test_score"], model.cv_results_["rank_test_score"]
    assert len(set(mean)) == 3
    assert_array_equal(rank[np.argsort(-mean)], [1, 2, 3])


def test_lasso_paths_have_exact_zeros():
    X, C = make_shortest_path(100, 6, grid=(3, 3), degree=4, random_state=0)
    _, coefs, _, _, gaps = spo_plus_path(X, C, ShortestPath.grid(3, 3), l1_ratio=1.0, prior="zero", n_alphas=5)
    assert gaps.max() <= 1e-6
    zeros = [(coef == 0).mean() for coef in coefs]
    assert zeros[0] >= 0.9 and zeros[0] > zeros[-1]
    for coef in coefs:
        assert not ((coef != 0) & (np.abs(coef) <= 1e-9 * np.abs(coef).max())).any()
