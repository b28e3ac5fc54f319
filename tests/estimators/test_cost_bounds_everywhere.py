"""Every place where a prediction becomes a decision clips it to ``cost_bounds`` first; training does not.

Bounds whose ends are equal leave one cost vector, so that the decision is known whatever was predicted.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skspo as sk

STREETS = [
    (i, j) for a, b in [(0, 2), (2, 3), (3, 1), (0, 4), (4, 5), (5, 1), (2, 4), (3, 5)] for i, j in ((a, b), (b, a))
]
D = len(STREETS)
RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 3))
C = np.abs(X @ RNG.normal(size=(3, D)) + 0.5 + 0.3 * RNG.normal(size=(N, D))) + 0.05
FIXED = RNG.uniform(1.0, 2.0, size=D)
FREE = sk.ShortestPath(STREETS, 0, 1, cost_bounds=None)
REGION = sk.ShortestPath(STREETS, 0, 1, cost_bounds=(FIXED, FIXED))
W = np.tile(FREE.argmin(FIXED), (N, 1))
REGRET = ((W - FREE.argmin(C)) * C).sum(axis=1)
SIZE = (FREE.argmin(C) * C).sum(axis=1)
ENDS = {"source": [0] * N, "target": [1] * N}
MEMBERS = [("ridge", Ridge()), ("forest", RandomForestRegressor(5, random_state=0)), ("spo+", sk.SPOPlusRegressor())]


def least_squares(region=REGION):
    return sk.TwoStageRegressor(region=region).fit(X, C)


def chunks():
    yield X[:30], C[:30]
    yield X[30:], C[30:]


def twice(model):
    return model.partial_fit(X[:30], C[:30]).partial_fit(X[30:], C[30:])


def displayed():
    pytest.importorskip("matplotlib")
    from skspo.plotting import DecisionDisplay

    return DecisionDisplay.from_estimator(least_squares(), X, C).W


def shown_loss():
    pytest.importorskip("matplotlib")
    from skspo.plotting import LossDisplay

    models = {"a": least_squares(), "b": sk.TwoStageRegressor(Ridge(50.0), REGION).fit(X, C)}
    return LossDisplay.from_estimators(models, X, C, sample=3).spo


def stacked(weights="spo+"):
    return sk.SPOStackingRegressor(REGION, MEMBERS, weights=weights, cv=3, random_state=0).fit(X, C)


def from_dask():
    da = pytest.importorskip("dask.array")
    dX, dC = (da.from_array(array, chunks=(30, -1)) for array in (X, C))
    model = least_squares()
    return model.decide(dX).compute(), model.score(dX, dC)


DECISIONS = {
    "Region.decide": lambda: REGION.decide(C),
    "rows of a region": lambda: REGION.with_rows(ENDS, N, D).decide(C),
    "two stage": lambda: least_squares().decide(X),
    "two stage, visible costs": lambda: sk.TwoStageRegressor(region=REGION, costs="visible").fit(X, C).decide(X),
    "offset": lambda: sk.TwoStageRegressor(region=REGION).fit(X, C, offset=C / 2).decide(X, offset=C / 2),
    "ends by sample": lambda: sk.TwoStageRegressor(region=REGION)
    .fit(X, C, region_params=ENDS)
    .decide(X, region_params=ENDS),
    "as_frame": lambda: least_squares().decide(X, as_frame=True).to_numpy(),
    "SPOPlusRegressor": lambda: sk.SPOPlusRegressor(REGION, tol=0.1).fit(X, C).decide(X),
    "fit_chunks": lambda: sk.SPOPlusRegressor(REGION, tol=0.1).fit_chunks(chunks).decide(X),
    "partial_fit": lambda: twice(sk.SPOPlusRegressor(REGION)).decide(X),
    "SPORegressor": lambda: sk.SPORegressor(REGION, max_iter=3, random_state=0).fit(X, C).decide(X),
    "SPOMLPRegressor": lambda: twice(sk.SPOMLPRegressor(REGION, random_state=0)).decide(X),
    "SPOStackingRegressor": lambda: stacked().decide(X),
    "sk.decide": lambda: sk.decide(least_squares(), X),
    "sk.decide of a pipeline": lambda: sk.decide(
        make_pipeline(StandardScaler(), sk.TwoStageRegressor(region=REGION)).fit(X, C), X
    ),
    "sk.decide of a regressor": lambda: sk.decide(LinearRegression().fit(X, C), X, region=REGION),
    "sk.decide with an offset": lambda: sk.decide(LinearRegression().fit(X, C / 2), X, region=REGION, offset=C / 2),
    "cross_val_decide": lambda: sk.cross_val_decide(LinearRegression(), X, C, region=REGION, cv=3),
    "dask": lambda: from_dask()[0],
    "DecisionDisplay": displayed,
    "image": lambda: sk.LinearImage(FREE, np.eye(D), cost_bounds=(FIXED, FIXED)).decide(C),
    "inner region of an image": lambda: sk.LinearImage(REGION, np.eye(D)).decide(C),
    "image by sample": lambda: sk.LinearImage(REGION, np.eye(D)).with_rows(ENDS, N, D).decide(C),
    "product": lambda: sk.Product([REGION, sk.TopK(1)], [D, 2]).decide(np.hstack([C, np.ones((N, 2))]))[:, :D],
    "surrogate_region": lambda: sk.SPOPlusRegressor(REGION, surrogate_region=FREE, tol=0.1).fit(X, C).decide(X),
}  # fmt: skip


@pytest.mark.parametrize("entry", DECISIONS)
def test_decisions_are_clipped(entry):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        assert_array_equal(DECISIONS[entry](), W)
    assert (FREE.argmin(C) != W).any()


def test_decisions_in_words_are_clipped():
    assert least_squares().chosen(X) == REGION.chosen(C) == FREE.describe(W)


def cv_folds(model):
    """Held-out regret of a candidate."""
    return model.fit(X, C).cv_results_["mean_test_spo_loss"]


REGRETS = {
    "spo_loss": lambda: sk.spo_loss(C, C, REGION),
    "spo_loss, per sample": lambda: sk.spo_loss(C, C, REGION, per_sample=True),
    "spo_loss, worst ties": lambda: sk.spo_loss(C, C, REGION, ties="worst"),
    "spo_loss, ends by sample": lambda: sk.spo_loss(C, C, REGION, region_params=ENDS),
    "spo_loss, worst ties by sample": lambda: sk.spo_loss(C, C, REGION, region_params=ENDS, ties="worst"),
    "spo_loss, product": lambda: sk.spo_loss(C, C, sk.Product([REGION]), ties="worst"),
    "normalized_spo_loss": lambda: sk.normalized_spo_loss(C, C, REGION) * SIZE.mean(),
    "score": lambda: -least_squares().score(X, C) * SIZE.mean(),
    "scorer": lambda: -sk.make_spo_scorer(REGION, metric="spo_loss")(LinearRegression().fit(X, C), X, C),
    "cross_val_score": lambda: -cross_val_score(
        sk.TwoStageRegressor(region=FREE), X, C, cv=3, scoring=sk.make_spo_scorer(REGION, metric="spo_loss")
    ).mean(),
    "report": lambda: [row["spo_loss"] for row in sk.decision_report(least_squares(), X, C).rows.values()],
    "report of a stack": lambda: [row["spo_loss"] for row in stacked("equal").report(X, C).rows.values()],
    "held_out_risk": lambda: sk.held_out_risk(least_squares(), X, C, other=least_squares()).mean_loss,
    "dask": lambda: -from_dask()[1] * SIZE.mean(),
    "LossDisplay": lambda: shown_loss() - REGRET[3] + REGRET.mean(),
    "SPOPlusRegressorCV": lambda: cv_folds(sk.SPOPlusRegressorCV(REGION, alphas=[1.0, 0.1], cv=3, tol=0.1)),
    "SPOPlusRegressorCV, scorer": lambda: -sk.SPOPlusRegressorCV(
        REGION, alphas=[1.0], cv=3, tol=0.1, scoring=sk.make_spo_scorer(REGION, metric="spo_loss")
    ).fit(X, C).cv_results_["mean_test_score"],
    "SPORegressorCV": lambda: cv_folds(sk.SPORegressorCV(REGION, cv=2, max_iter=3, random_state=0)),
    "SPOStackingRegressor": lambda: stacked().cv_results_["mean_test_spo_loss"],
}  # fmt: skip


@pytest.mark.parametrize("entry", REGRETS)
def test_regrets_are_those_of_clipped_predictions(entry):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.asarray(REGRETS[entry]())
    assert_allclose(found, np.broadcast_to(REGRET if found.shape == (N,) else REGRET.mean(), found.shape), rtol=1e-9)
    assert REGRET.mean() > 0.1


def test_stack_has_no_gain_if_all_members_decide_the_same():
    model = stacked()
    assert model.stack_share_ == 0.0


def test_training_does_not_clip():
    """Coefficients and objective are those without bounds."""
    for free, clipped in (
        (sk.SPOPlusRegressor(region, alpha=0.1).fit(X, C) for region in (FREE, REGION)),
        (twice(sk.SPOMLPRegressor(region, random_state=0)) for region in (FREE, REGION)),
    ):
        assert_allclose(*(FREE.visible_costs(model.predict(X)) for model in (free, clipped)), atol=1e-9)
        assert getattr(free, "objective_", 0.0) == getattr(clipped, "objective_", 0.0)


def test_validation_loss_of_networks_is_that_of_decisions():
    region = sk.Ellipsoid(cost_bounds=(FIXED[:3], FIXED[:3]))
    costs = C[:, :3]
    model = sk.SPOMLPRegressor(region, loss="spo", early_stopping=True, max_iter=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, costs)
    assert len(set(np.round(model.validation_losses_, 12))) == 1


# -- cost_bounds="auto" ------------------------------------------------------------------------------------------------

AUTO = sk.ShortestPath(STREETS, 0, 1)


@pytest.mark.parametrize(
    "fit",
    [
        lambda region, weight: sk.TwoStageRegressor(region=region).fit(X, C, weight),
        lambda region, weight: sk.SPOPlusRegressor(region, tol=0.1).fit(X, C, weight),
        lambda region, weight: sk.SPOPlusRegressor(region, tol=0.1).fit_chunks(
            [(X[:20], C[:20], weight[:20]), (X[20:], C[20:], weight[20:])]
        ),
        lambda region, weight: sk.SPOPlusRegressorCV(region, alphas=[1.0], cv=2, tol=0.1).fit(X, C, weight),
        lambda region, weight: sk.SPORegressor(region, max_iter=2, random_state=0).fit(X, C, weight),
        lambda region, weight: sk.SPOMLPRegressor(region, max_iter=1, random_state=0).fit(X, C, weight),
        lambda region, weight: sk.SPOStackingRegressor(region, MEMBERS[:1], cv=2).fit(X, C, weight),
    ],
)  # fmt: skip
def test_fit_learns_the_bounds_of_graphs_with_cycles(fit):
    weight = np.random.default_rng(1).uniform(size=N)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(AUTO, weight)
        low, high = model.region_.cost_bounds
        assert_allclose(low, 0.2 * np.average(C, axis=0, weights=weight))
        assert high is None and AUTO.cost_bounds == "auto" and model.region.cost_bounds == "auto"
        acyclic = sk.ShortestPath([(0, 1), (1, 2), (0, 2)], 0, 2)
        assert sk.TwoStageRegressor(region=acyclic).fit(X, C[:, :3]).region_.cost_bounds == "auto"
        # Negative true costs: nothing is known.
        assert sk.TwoStageRegressor(region=AUTO).fit(X, C - 0.2).region_.cost_bounds is None
    with warnings.catch_warnings():  # the region was not changed by the user
        warnings.simplefilter("error")
        assert_array_equal(model.decide(X), FREE.argmin(np.maximum(model.predict(X), low)))
        assert_array_equal(sk.decide(model, X, region=AUTO), model.decide(X))


def test_the_first_chunk_sets_the_bounds_and_folds_learn_their_own():
    model = twice(sk.SPOPlusRegressor(AUTO))
    assert_allclose(model.region_.cost_bounds[0], 0.2 * C[:30].mean(axis=0))
    splits = list(KFold(3).split(X))
    model = sk.SPOPlusRegressorCV(AUTO, alphas=[1.0], cv=splits, tol=0.1, store_cv_predictions=True).fit(X, C)
    regret = np.empty(N)
    for train, test in splits:
        decided = FREE.argmin(np.maximum(model.cv_predictions_[test], 0.2 * C[train].mean(axis=0)))
        regret[test] = ((decided - FREE.argmin(C[test])) * C[test]).sum(axis=1)
    assert_allclose(model.cv_results_["mean_test_spo_loss"], regret.mean())


def test_values_to_be_maximized():
    """Minus the costs: the same decisions, with bounds in the units of the user."""
    values = sk.ShortestPath(STREETS, 0, 1, sense="max")
    model, mirrored = least_squares(AUTO), sk.TwoStageRegressor(region=values).fit(X, -C)
    low, high = mirrored.region_.cost_bounds
    assert low is None
    assert_allclose(high, -model.region_.cost_bounds[0])
    assert_array_equal(model.decide(X), mirrored.decide(X))
    assert model.score(X, C) == pytest.approx(mirrored.score(X, -C))


def test_streets_both_ways_are_much_better_with_the_default():
    """Decisions of least squares with cycles are what the default is for."""
    rng = np.random.default_rng(5)
    B, features = rng.integers(0, 2, size=(D, 5)), rng.normal(size=(400, 5))
    costs = ((features @ B.T / np.sqrt(5) + 3) ** 4 + 1) / 3.5**4 * rng.uniform(0.5, 1.5, size=(400, D))
    train, test = slice(100), slice(100, None)
    models = [sk.TwoStageRegressor(region=region).fit(features[train], costs[train]) for region in (AUTO, FREE)]
    clipped, free = (-model.score(features[test], costs[test]) for model in models)
    assert clipped < 0.5 * free


def test_classifiers_have_no_bounds():
    regressor = sk.SPOPlusRegressor(sk.Simplex(cost_bounds=(0, None)))
    model = sk.CostSensitiveClassifier([[0, 1], [2, 0]], regressor)
    with pytest.raises(ValueError, match="Simplex"):
        model.fit(X, (X[:, 0] > 0).astype(int))


@pytest.mark.parametrize("bounds", [(1, 0), (np.nan, 1), ([0, 1], None), "positive", 3.0])
def test_wrong_bounds_are_refused_by_fit(bounds):
    for region in (
        sk.Simplex(cost_bounds=bounds),
        sk.Box(cost_bounds=bounds),
        sk.Product([sk.TopK(1, cost_bounds=bounds)], [D]),
    ):
        with pytest.raises(ValueError, match="cost_bounds"):
            sk.SPOPlusRegressor(region).fit(X, C)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("offset", [None, C / 3])
def test_networks_predict_the_level_of_costs_if_predictions_are_clipped(offset):
    """The SPO+ loss does not determine predictions along potentials of the nodes, but clipping depends on them."""
    models = [
        sk.SPOMLPRegressor(region, max_iter=30, random_state=0).fit(X, C, offset=offset) for region in (FREE, AUTO)
    ]
    free, level = (model.predict(X, offset=offset) for model in models)
    assert_allclose(FREE.visible_costs(free), FREE.visible_costs(level), atol=1e-9)
    known = 0.0 if offset is None else offset
    hidden = level - known - FREE.visible_costs(level - known)
    mean = (C - known).mean(axis=0)
    assert_allclose(hidden, np.tile(mean - FREE.visible_costs(mean), (N, 1)), atol=1e-9)
    assert np.abs(free - level).max() > 0.01
