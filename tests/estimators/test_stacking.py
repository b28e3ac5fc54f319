"""``SPOStackingRegressor``: cross-fitting, choice of weights, guard, layouts and metadata."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import items_data
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from skspo import (
    Box,
    Knapsack,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPOStackingRegressor,
    TopK,
    TwoStageRegressor,
    row_params,
    spo_loss,
    spo_plus_loss,
)
from skspo._utils.limits import Deadline
from skspo.datasets import make_shortest_path
from skspo.estimators._stacking_members import default_members
from skspo.estimators._stacking_weights import HeldOut, choose, choose_weights, share_of_stack

GRID = ShortestPath.grid(3, 3)
MEMBERS = [
    ("ridge", Ridge()),
    ("tree", DecisionTreeRegressor(max_depth=4, random_state=0)),
    ("spo+", SPOPlusRegressor(alpha=0.1)),
]


@pytest.fixture(scope="module")
def paths():
    X, C, coef = make_shortest_path(120, 4, (3, 3), degree=6, noise=0.5, random_state=0, return_coef=True)
    X_test, C_test = make_shortest_path(500, 4, (3, 3), degree=6, noise=0.5, random_state=1, coef=coef)
    return X, C, X_test, C_test


def held_out(model, X, C):
    """Held-out predictions of a regressor, by scikit-learn."""
    return cross_val_predict(model, X, C, cv=KFold(5))


@pytest.mark.filterwarnings("ignore:No region was given")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        SPOStackingRegressor(Box(-1, 1), MEMBERS, cv=2),
        SPOStackingRegressor(Simplex(), [("ols", LinearRegression()), ("spo+", SPOPlusRegressor(alpha=1.0))]),
        SPOStackingRegressor(
            Box(-1, 1), [("ols", LinearRegression()), ("ridge", Ridge())], cv=2, shared=True, weights="equal"
        ),
    ]
)
@pytest.mark.filterwarnings("ignore:y has one column:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- what is computed --------------------------------------------------------------------------------------------------


def test_held_out_regrets_are_those_of_cross_val_predict(paths):
    X, C, _, _ = paths
    model = SPOStackingRegressor(GRID, MEMBERS, random_state=0).fit(X, C)
    results = model.cv_results_
    assert list(results["candidate"][:3]) == ["ridge", "tree", "spo+"]
    for k, (_, member) in enumerate(MEMBERS):
        member = clone(member).set_params(region=GRID) if k == 2 else member
        losses = spo_loss(C, held_out(member, X, C), GRID, per_sample=True)
        assert results["mean_test_spo_loss"][k] == pytest.approx(losses.mean(), rel=1e-6)
        assert results["se_test_spo_loss"][k] == pytest.approx(losses.std(ddof=1) / np.sqrt(len(C)), rel=1e-6)
    best = int(np.argmin(results["mean_test_spo_loss"][:2]))
    assert model.best_two_stage_ == ["ridge", "tree"][best]
    # Gains are differences to one baseline.
    assert_allclose(
        results["mean_gain"] + results["mean_test_spo_loss"], results["mean_gain"][0] + results["mean_test_spo_loss"][0]
    )
    assert results["candidate"][-1] == "stack" and model.n_held_out_ == len(C)


def spread_predictions(X, C):
    """Held-out predictions of MEMBERS, divided by their spreads."""
    P = np.stack(
        [
            held_out(clone(member).set_params(region=GRID) if i == 2 else member, X, C)
            for i, (_, member) in enumerate(MEMBERS)
        ]
    )
    return P / np.stack([GRID.visible_costs(part).std() for part in P])[:, None, None]


def test_prediction_is_the_weighted_sum_of_the_members(paths):
    X, C, X_test, C_test = paths
    model = SPOStackingRegressor(GRID, MEMBERS, guard=False, random_state=0).fit(X, C)
    assert model.chosen_ == "stack"
    alone = [
        Ridge().fit(X, C).predict(X_test),
        DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, C).predict(X_test),
        SPOPlusRegressor(GRID, alpha=0.1).fit(X, C).predict(X_test),
    ]
    expected = sum(w * s * P for w, s, P in zip(model.weights_, model.scales_, alone, strict=True))
    assert_allclose(model.predict(X_test), expected, rtol=1e-6, atol=1e-9)
    # In units of cost: a multiple of the prediction fits the visible costs no better.
    visible = GRID.visible_costs(model.predict(X_test)), GRID.visible_costs(C_test)
    best = (visible[0] * visible[1]).sum() / (visible[0] ** 2).sum()
    assert 0.5 < best < 2.0
    assert_allclose(np.abs(model.weights_).sum(), 1.0)


def test_units_of_a_member_do_not_matter(paths):
    """Decisions depend on directions only, so that members are compared in units of their spread."""

    class Scaled(RegressorMixin, BaseEstimator):
        def __init__(self, factor=1.0):
            self.factor = factor

        def fit(self, X, y):
            self.model_ = Ridge().fit(X, y)
            return self

        def predict(self, X):
            return self.factor * self.model_.predict(X)

    X, C, X_test, _ = paths
    decisions = []
    for factor in (1.0, 1e4):
        members = [("ridge", Scaled(factor)), *MEMBERS[1:]]
        model = SPOStackingRegressor(GRID, members, guard=False, random_state=0).fit(X, C)
        decisions.append(model.decide(X_test))
    assert (decisions[0] == decisions[1]).all(axis=1).mean() > 0.99


def test_spo_plus_weights_minimize_the_loss(paths):
    X, C, _, _ = paths
    model = SPOStackingRegressor(GRID, MEMBERS, guard=False).fit(X, C)
    members = [
        Ridge(),
        DecisionTreeRegressor(max_depth=4, random_state=0),
        SPOPlusRegressor(GRID, alpha=0.1),
    ]
    P = np.stack([held_out(member, X, C) for member in members], axis=2).reshape(len(C), -1)
    # The best multiple of the weights, which are normalized.
    direction = (model.weights_ * model.scales_) @ P.reshape(len(C), C.shape[1], 3).transpose(2, 0, 1).reshape(3, -1)
    direction = direction.reshape(C.shape)
    loss = min(spo_plus_loss(C, t * direction, GRID) for t in np.geomspace(0.2, 5.0, 400))
    optimum = SPOPlusRegressor(GRID, shared=True, fit_intercept=False).fit(P, C).objective_
    assert optimum <= loss * (1 + 1e-9)
    assert loss <= optimum * (1 + 5e-3)


def test_equal_weights(paths):
    X, C, _, _ = paths
    model = SPOStackingRegressor(GRID, MEMBERS, weights="equal", guard=False).fit(X, C)
    assert_allclose(model.weights_, 1 / 3)
    assert list(model.cv_results_["candidate"]) == ["ridge", "tree", "spo+", "equal weights", "stack"]


def test_penalty_is_chosen_once_on_the_folds_of_the_stack(paths):
    X, C, X_test, _ = paths
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    for member in (SPOPlusRegressorCV(n_alphas=4), make_pipeline(StandardScaler(), SPOPlusRegressorCV(n_alphas=4))):
        stack = SPOStackingRegressor(GRID, [("linear", member)], cv=folds, guard=False).fit(X, C)
        alone = SPOPlusRegressorCV(GRID, n_alphas=4, cv=folds, store_cv_predictions=True).fit(X, C)
        assert_allclose(stack.predict(X_test), alone.predict(X_test), rtol=1e-4, atol=1e-4)
        loss = spo_loss(C, alone.cv_predictions_, GRID)
        assert stack.cv_results_["mean_test_spo_loss"][0] == pytest.approx(loss, rel=0.02)
    fitted = stack.named_estimators_["linear"].steps[-1][1]
    assert fitted.cv is None and not fitted.store_cv_predictions and not hasattr(fitted, "cv_predictions_")


# -- what is reported --------------------------------------------------------------------------------------------------


def noise(seed, m=3, n=40, groups=None):
    """Predictions and costs that have nothing in common."""
    rng = np.random.RandomState(seed)
    P, C = rng.normal(size=(m, n, 4)), rng.normal(size=(n, 4))
    return HeldOut(P, C, None, None, groups, Simplex().with_rows(None, n, 4), Simplex().argmin(C), np.ones(m))


def cross_fitted(held, two_stage, kind="spo+", seconds=None):
    """Regrets of the stack and of the best two-stage member on samples that have not chosen them."""
    return choose(held, two_stage, kind, Deadline(seconds)).cross_fitted


def test_the_reported_gain_in_noise_is_zero():
    """No decision is better than another, but the best of many weights seems to be."""
    two_stage, apparent, reported = [True] + 4 * [False], [], []
    for seed in range(40):
        held = noise(seed, m=5, n=30)
        choice = choose(held, two_stage, "spo+", Deadline())
        apparent.append((choice.regrets[0] - held.regret(choice.weights)).mean())
        results = choice.figures(held, list("abcde"))
        reported.append(results["mean_gain"][-1])
        assert results["mean_test_spo_loss"][0] - reported[-1] == pytest.approx(results["mean_test_spo_loss"][-1])
    luck = np.array(apparent) - reported
    assert luck.mean() > 3 * luck.std() / np.sqrt(40)
    assert abs(np.mean(reported)) < 2 * np.std(reported) / np.sqrt(40)


@pytest.mark.parametrize("region", [Simplex(), Simplex(cost_bounds=(0.5, None))], ids=repr)
def test_the_decisions_that_are_reported_do_not_depend_on_the_costs_that_judge_them(region):
    """Ten times the costs of a part have ten times the regret."""
    held, two_stage = noise(0), [True, True, False]
    held = held._replace(region=region.with_rows(None, 40, 4), P=held.P + 1.0)
    plain = cross_fitted(held, two_stage)
    for part in np.arange(40).reshape(5, 8):
        C = held.C.copy()
        C[part] *= 10.0
        changed = cross_fitted(held._replace(C=C), two_stage)
        assert_allclose(changed[:, part], 10.0 * plain[:, part], atol=1e-12)


def test_cross_fitting_does_not_divide_groups():
    held, two_stage = noise(0), [True, True, False]
    one = cross_fitted(held._replace(groups=np.arange(40)), two_stage)
    assert np.isfinite(one).all()
    thrice = held._replace(groups=np.arange(40)).take(np.repeat(np.arange(40), 3))
    three = cross_fitted(thrice, two_stage)
    for group in range(40):
        rows = np.flatnonzero(thrice.groups == group)
        assert np.ptp(three[:, rows], axis=1).max() < 1e-12
    # Nothing can be chosen without the only group, or without time.
    for seconds, groups in ((None, np.zeros(40)), (0.0, None)):
        assert np.isnan(cross_fitted(held._replace(groups=groups), two_stage, "equal", seconds)).all()


def test_reported_figures_of_a_member_are_of_penalties_that_are_chosen_without_the_fold(paths):
    X, C = paths[0][:40], paths[1][:40]
    alphas, folds = np.geomspace(30.0, 0.03, 12), list(KFold(4).split(X))
    options = {"cv": folds, "patience": None, "scoring": "spo_plus_loss", "cv_tol": 1e-6}
    alone = SPOPlusRegressorCV(GRID, alphas=alphas, **options).fit(X, C)
    scores = np.stack([alone.cv_results_[f"split{k}_test_score"] for k in range(4)])
    each = [
        SPOPlusRegressorCV(GRID, alphas=[a], store_cv_predictions=True, **options).fit(X, C).cv_predictions_
        for a in alphas
    ]
    choices = [np.delete(scores, k, axis=0).mean(axis=0).argmax() for k in range(4)]
    assert set(choices) != {int(scores.mean(axis=0).argmax())}  # otherwise this test says nothing
    nested = np.concatenate([each[a][test] for a, (_, test) in zip(choices, folds, strict=True)])
    member = SPOPlusRegressorCV(alphas=alphas, **(options | {"cv": None}))
    stack = SPOStackingRegressor(GRID, [("ridge", Ridge()), ("spo+", member)], cv=folds, random_state=0).fit(X, C)
    assert stack.cv_results_["mean_test_spo_loss"][1] == pytest.approx(spo_loss(C, nested, GRID), rel=1e-3)
    assert stack.named_estimators_["spo+"].alpha_ == alone.alpha_
    assert not any("nested" in name for name in vars(stack.named_estimators_["spo+"]))


# -- guard -------------------------------------------------------------------------------------------------------------


def test_guard_mixes_with_the_two_stage_member_by_confidence(paths):
    X, C, X_test, C_test = paths
    # Linear costs: least squares is as good as anything.
    rng = np.random.default_rng(0)
    B = rng.normal(size=(5, 4))
    linear = X @ B.T + 0.1 * rng.normal(size=(len(X), 5))
    members = [("ols", LinearRegression()), ("mean", DummyRegressor())]
    model = SPOStackingRegressor(Simplex(), members, weights="equal").fit(X, linear)
    assert model.cv_results_["mean_gain"][-1] <= 0.0
    assert model.chosen_ == model.best_two_stage_ == "ols" and model.stack_share_ == 0.0
    assert_array_equal(model.weights_, [1.0, 0.0])
    assert_allclose(model.predict(X_test), LinearRegression().fit(X, linear).predict(X_test))
    # Degree 6: SPO+ is better than a constant by far.
    members = [("mean", DummyRegressor()), ("spo+", SPOPlusRegressor(alpha=0.1))]
    model = SPOStackingRegressor(GRID, members, random_state=0).fit(X, C)
    assert model.chosen_ == "stack" and model.weights_[1] > 0.5 and model.stack_share_ > 0.99
    assert model.score(X_test, C_test) > TwoStageRegressor(DummyRegressor(), GRID).fit(X, C).score(X_test, C_test)
    # In between: a convex combination.
    model = SPOStackingRegressor(GRID, MEMBERS, random_state=0).fit(X, C)
    P, alone = spread_predictions(X, C), np.eye(3)[["ridge", "tree", "spo+"].index(model.best_two_stage_)]
    both = (alone, model.cv_results_["weights"][-1])
    regrets = [spo_loss(C, np.tensordot(weights, P, 1), GRID, per_sample=True) for weights in both]
    gain = regrets[0] - regrets[1]  # of the samples that have chosen the weights
    z = gain.mean() / (gain.std(ddof=1) / np.sqrt(len(C)))
    assert model.stack_share_ == pytest.approx(max(0.0, 2 * norm.cdf(z) - 1))
    share = model.stack_share_
    assert_allclose(model.weights_, share * model.cv_results_["weights"][-1] + (1 - share) * alone)
    assert SPOStackingRegressor(GRID, MEMBERS, guard=False, random_state=0).fit(X, C).stack_share_ == 1.0


def test_share_of_the_stack():
    assert share_of_stack(-1.0, 1.0) == share_of_stack(0.0, 0.0) == share_of_stack(0.0, 1.0) == 0.0
    assert share_of_stack(1.0, 0.0) == 1.0
    assert share_of_stack(1.96, 1.0) == pytest.approx(0.95, abs=1e-4)


def test_no_two_stage_member(paths):
    X, C, _, _ = paths
    model = SPOStackingRegressor(GRID, [("a", SPOPlusRegressor()), ("b", SPOPlusRegressor(alpha=1.0))]).fit(X, C)
    assert model.best_two_stage_ is None and model.chosen_ == "stack"
    assert np.isnan(model.cv_results_["mean_gain"]).all()
    # A search over a model that is trained for its decisions is not a two-stage member, either.
    search = GridSearchCV(SPOPlusRegressor(GRID), {"alpha": [0.1, 1.0]}, cv=2)
    assert SPOStackingRegressor(GRID, [("search", search)], cv=2).fit(X, C).best_two_stage_ is None


# -- data --------------------------------------------------------------------------------------------------------------


def test_default_members(paths):
    X, C, X_test, C_test = paths
    names = [name for name, _ in default_members(100, 4, 0)]
    assert names == ["ridge", "forest", "boosting", "spo+", "spo+ kernel", "spo+ quadratic"]
    assert [name for name, _ in default_members(100, 10, 0)] == names[:5]
    model = SPOStackingRegressor(GRID, random_state=0, n_jobs=2).fit(X[:60], C[:60])
    assert list(model.named_estimators_) == names
    again = SPOStackingRegressor(GRID, random_state=0).fit(X[:60], C[:60])
    assert_allclose(model.predict(X_test), again.predict(X_test), rtol=1e-6)
    assert set(model.fit_seconds_) == {*names, "weights"}
    assert model.best_two_stage_ in names[:3]
    assert model.score(X_test, C_test) > -1.0


def test_items():
    X, C = items_data(5, n=60, q=3)
    members = [
        ("ridge", make_pipeline(StandardScaler(), Ridge())),
        ("spo+", SPOPlusRegressorCV(n_alphas=3)),
        ("quadratic", make_pipeline(PolynomialFeatures(2, include_bias=False), SPOPlusRegressor(alpha=0.1))),
    ]
    model = SPOStackingRegressor(TopK(2), members, shared=True, guard=False, random_state=0).fit(X, C)
    # Members see one row per item.
    assert model.named_estimators_["ridge"].steps[-1][1].regressor_.coef_.shape == (3,)
    assert model.named_estimators_["quadratic"].steps[-1][1].coef_.shape == (9,)
    # Exchanging two items exchanges their predictions.
    order = [1, 0, 2, 3, 4]
    swapped = X.reshape(-1, 5, 3)[:, order].reshape(X.shape)
    assert_allclose(model.predict(swapped), model.predict(X)[:, order])
    assert SPOStackingRegressor(TopK(2), shared=True, random_state=0, cv=2).fit(X, C).weights_.shape == (6,)
    with pytest.raises(ValueError, match="consecutive blocks of features"):
        SPOStackingRegressor(TopK(2), members, shared=True).fit(X[:, :-1], C)


def test_offset_weights_and_region_params():
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(80, 3)), 3.0 * rng.normal(size=(80, 4))
    C = offset + X @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(80, 4)) - 1.0
    rows = row_params(capacity=rng.uniform(2.0, 12.0, 80))
    region = Knapsack([3, 4, 5, 2], 8, integer=False)
    weight = rng.uniform(0.5, 2.0, 80)
    members = [("ridge", make_pipeline(StandardScaler(), Ridge())), ("spo+", SPOPlusRegressorCV(n_alphas=3))]
    model = SPOStackingRegressor(region, members, random_state=0, guard=False)
    model.fit(X, C, sample_weight=weight, offset=offset, region_params=rows)
    assert_array_equal(model.scales_, 1.0)
    P = np.zeros_like(C)
    for train, test in KFold(5).split(X):
        scaler = StandardScaler().fit(X[train])
        ridge = Ridge().fit(scaler.transform(X[train]), (C - offset)[train], sample_weight=weight[train])
        P[test] = ridge.predict(scaler.transform(X[test]))
    loss = spo_loss(C, P, region, sample_weight=weight, offset=offset, region_params=rows)
    assert model.cv_results_["mean_test_spo_loss"][0] == pytest.approx(loss)
    assert_allclose(model.predict(X, offset=offset) - offset, model.predict(X, offset=np.zeros(4)))
    assert model.score(X, C, weight, offset, rows) > -0.2
    as_dict = {"capacity": rows["capacity"]}
    again = clone(model).fit(X, C, sample_weight=weight, offset=offset, region_params=as_dict)
    assert_allclose(again.weights_, model.weights_)
    assert (model.decide(X, offset, rows) @ [3, 4, 5, 2] <= rows["capacity"] + 1e-9).all()


def test_splitters(paths):
    X, C, _, _ = paths
    members = [("ols", LinearRegression()), ("spo+", SPOPlusRegressor(alpha=0.1))]
    model = SPOStackingRegressor(GRID, members, cv=TimeSeriesSplit(3)).fit(X, C)
    assert model.n_held_out_ == 90  # the first block is never held out
    groups = np.repeat(np.arange(12), 10)
    model = SPOStackingRegressor(GRID, members, cv=GroupKFold(3)).fit(X, C, groups=groups)
    assert model.n_held_out_ == 120
    ungrouped = SPOStackingRegressor(GRID, members, cv=list(GroupKFold(3).split(X, C, groups))).fit(X, C)
    assert_allclose(model.cv_results_["mean_test_spo_loss"][0], ungrouped.cv_results_["mean_test_spo_loss"][0])
    assert model.cv_results_["se_test_spo_loss"][0] != ungrouped.cv_results_["se_test_spo_loss"][0]


def test_data_frames_with_text():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "city": rng.choice(["A", "B", "C"], 60)})
    C = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    encode = ColumnTransformer([("city", OneHotEncoder(), ["city"])], remainder="passthrough")
    members = [
        ("ridge", make_pipeline(encode, Ridge())),
        ("spo+", make_pipeline(encode, SPOPlusRegressorCV(n_alphas=2))),
    ]
    model = SPOStackingRegressor(Simplex(), members, cv=3).fit(frame, C)
    assert model.predict(frame).shape == (60, 3)
    assert list(model.feature_names_in_) == ["x", "city"] and list(model.cost_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"x": "z"}))


def test_polars():
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    frame = polars.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60)})
    C = rng.normal(size=(60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SPOStackingRegressor(Simplex(), MEMBERS[:2], cv=3, random_state=0).fit(frame, C)
        predicted = model.predict(frame)
    expected = (
        SPOStackingRegressor(Simplex(), MEMBERS[:2], cv=3, random_state=0)
        .fit(frame.to_numpy(), C)
        .predict(frame.to_numpy())
    )
    assert_allclose(predicted, expected)
    assert list(model.feature_names_in_) == ["x", "z"]


def test_parameters_of_members(paths):
    X, C, _, _ = paths
    model = SPOStackingRegressor(GRID, MEMBERS)
    assert model.get_params()["ridge__alpha"] == 1.0 and "ridge" not in model.get_params(deep=False)
    model.set_params(ridge__alpha=5.0, tree=KNeighborsRegressor(), weights="equal")
    assert dict(model.estimators)["ridge"].alpha == 5.0
    assert isinstance(dict(model.estimators)["tree"], KNeighborsRegressor) and MEMBERS[1][1].max_depth == 4
    MEMBERS[0][1].set_params(alpha=1.0)
    search = GridSearchCV(SPOStackingRegressor(GRID, MEMBERS[:2]), {"ridge__alpha": [0.1, 10.0]}, cv=2).fit(X, C)
    assert search.best_params_["ridge__alpha"] in (0.1, 10.0)
    # fit changes neither the parameters nor the members that were given.
    before = repr(MEMBERS)
    fitted = SPOStackingRegressor(GRID, MEMBERS).fit(X, C)
    assert repr(MEMBERS) == before and not hasattr(MEMBERS[0][1], "coef_")
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_visible_costs_of_members(paths):
    """Trees that are fitted to visible costs ignore a common term of all costs."""
    X, C, X_test, _ = paths
    members = [("tree", DecisionTreeRegressor(max_depth=4, random_state=0))]
    rng = np.random.default_rng(0)
    C = C[:, :5]
    common = 100.0 * rng.normal(size=(len(C), 1))
    stacks = [
        SPOStackingRegressor(Simplex(), members, costs="visible").fit(X, costs).decide(X_test)
        for costs in (C, C + common)
    ]
    assert_array_equal(*stacks)


# -- limits and errors -------------------------------------------------------------------------------------------------


def test_time_limit_leaves_members_out(paths):
    X, C, X_test, _ = paths
    slow = [("ridge", Ridge()), ("spo+", SPOPlusRegressorCV(n_alphas=50))]
    with pytest.warns(UserWarning, match="time_limit=1e-06 s was reached before these members were fitted: 'spo\\+'"):
        model = SPOStackingRegressor(GRID, slow, time_limit=1e-6).fit(X, C)
    assert list(model.named_estimators_) == ["ridge"]
    assert_allclose(model.predict(X_test), Ridge().fit(X, C).predict(X_test))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SPOStackingRegressor(GRID, MEMBERS, time_limit=100.0).fit(X, C)
    assert 0 < model.named_estimators_["spo+"].time_limit <= 100.0  # the limit that it was fitted with


def test_weights_without_time():
    weights = choose_weights(noise(0), "spo+", Deadline(0.0))
    assert np.isfinite(weights).all() and np.abs(weights).sum() == pytest.approx(1.0)


def test_progress(paths, capsys):
    X, C, _, _ = paths
    SPOStackingRegressor(GRID, MEMBERS[:2], verbose=1).fit(X, C)
    text = capsys.readouterr()
    assert text.out == "" and "; held-out regret of the stack" in text.err.splitlines()[-1]
    SPOStackingRegressor(GRID, MEMBERS[:2], verbose=2).fit(X, C)
    text = capsys.readouterr().err
    assert "stack: 11 of 12 fits, tree, fold 5 of 5 | " in text and "stack: 12 of 12 fits, tree, all rows | " in text


def test_report_lists_the_members(paths):
    X, C, X_test, C_test = paths
    model = SPOStackingRegressor(GRID, MEMBERS, guard=False, random_state=0).fit(X, C)
    report = model.report(X_test, C_test)
    rows = report.to_dict()["models"]
    assert list(rows)[:3] == ["SPOStackingRegressor", "least squares", "constant prediction"]
    (ridge,) = (row for name, row in rows.items() if name.startswith("member ridge"))
    assert ridge["spo_loss"] == pytest.approx(spo_loss(C_test, Ridge().fit(X, C).predict(X_test), GRID))
    assert rows["SPOStackingRegressor"]["spo_loss"] == pytest.approx(spo_loss(C_test, model.predict(X_test), GRID))
    assert "times that of member" not in str(report)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"estimators": []}, "list of \\(name, estimator\\) pairs"),
        ({"estimators": [Ridge()]}, "list of \\(name, estimator\\) pairs"),
        ({"estimators": [("a", Ridge()), ("a", Ridge())]}, "different strings"),
        ({"estimators": [("a__b", Ridge())]}, "different strings"),
        ({"estimators": [("weights", Ridge())]}, "no parameters of the stack"),
        ({"estimators": [("a", StandardScaler())]}, "must end with a regressor"),
        ({"weights": "best"}, "weights must be .spo\\+"),
        ({"guard": "yes"}, "guard must be True or False"),
        ({"costs": "some"}, "costs must be"),
        ({"time_limit": -1}, "time_limit must be"),
        ({"cv": [([0, 1], [])]}, "holds no sample out"),
    ],
)
def test_bad_input(paths, params, match):
    X, C, _, _ = paths
    given = {"estimators": MEMBERS[:1], **params}
    with pytest.raises((ValueError, TypeError), match=match):
        SPOStackingRegressor(GRID, **given).fit(X, C)


def test_errors_name_the_member(paths):
    X, C, _, _ = paths
    X = X.copy()
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        SPOStackingRegressor(GRID, MEMBERS).fit(X, C)
    assert "member 'ridge'" in "".join(caught.value.__notes__)

    class Broken(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            self.shape_ = y.shape[1]
            return self

        def predict(self, X):
            return np.full((len(X), self.shape_), np.nan)

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.target_tags.multi_output = True
            return tags

    with pytest.raises(ValueError, match="contain NaN") as caught:
        SPOStackingRegressor(GRID, [("broken", Broken())]).fit(paths[0], C)
    assert "member 'broken'" in "".join(caught.value.__notes__)
    with pytest.raises(ValueError, match="does not accept sample_weight"):
        SPOStackingRegressor(GRID, [("knn", KNeighborsRegressor())]).fit(paths[0], C, sample_weight=np.ones(len(C)))
