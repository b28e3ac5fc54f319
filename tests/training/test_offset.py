"""Known costs: the cost is an offset plus a prediction; against the same problem written for CVXPY."""

import itertools
import pickle

import cvxpy as cp
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_sets import packings

from skspo import (
    Box,
    ChunkedData,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    LogBarrierSimplex,
    ShortestPath,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    TopK,
    TwoStageRegressor,
    make_spo_scorer,
    normalized_spo_loss,
    spo_loss,
    spo_plus_loss,
    spo_plus_path,
)
from skspo._training.inputs import TrainingData
from skspo.estimators._mlp import LOSSES, _Network
from skspo.losses import check_offset

# Predictions with and without the offset are compared here; test_first_steps.py tests the warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*was fitted with offset, but (predict|score) was called without")

ESTIMATORS = [
    SPOPlusRegressor(Simplex()),
    SPOPlusRegressorCV(Simplex(), n_alphas=3, cv=2),
    SPORegressor(Simplex(), max_iter=20, random_state=0),
    SPOMLPRegressor(Simplex(), hidden_layer_sizes=(4,), max_iter=5, random_state=0),
    TwoStageRegressor(region=Simplex()),
]


def known_data(d, n=25, p=2, seed=0):
    """Costs whose known part is large and unrelated to the features."""
    rng = np.random.default_rng(seed)
    X, O = rng.normal(size=(n, p)), 2.0 * rng.normal(size=(n, d))
    C = O + np.sinh(X @ rng.normal(size=(p, d))) + 0.5 * rng.normal(size=(n, d))
    return X, C, O


WEIGHTS = np.array([3, 4, 5, 2])
POLYTOPES = [
    (Simplex(), np.eye(4)),
    (Simplex(sense="max"), np.eye(4)),
    (Box(-1, 2), np.array(list(itertools.product((-1.0, 2.0), repeat=4)))),
    (TopK(2), np.array([v for v in itertools.product((0.0, 1.0), repeat=4) if sum(v) == 2])),
    (Knapsack(WEIGHTS, 8), packings(WEIGHTS, 8)),
]
PENALTIES = [
    {},
    {"alpha": 0.3},
    {"alpha": 0.5, "prior": "least_squares"},
    {"alpha": 0.2, "l1_ratio": 0.5, "prior": "least_squares"},
    {"alpha": 0.2, "l1_ratio": 1.0, "fit_intercept": False},
]


def optimum(X, C, O, vertices, *, sense="min", alpha=0.0, l1_ratio=0.0, prior="zero", fit_intercept=True):
    """Mean of max_v (c - 2 c_hat).v + 2 c_hat.w - c.w with c_hat = o + B x + b, and the penalty, by CVXPY."""
    sign = -1.0 if sense == "max" else 1.0
    n, d = C.shape
    best = vertices[(sign * C @ vertices.T).argmin(axis=1)]
    B, b, t = cp.Variable((d, X.shape[1])), cp.Variable((1, d)), cp.Variable((n, 1))
    C_hat = sign * (O + X @ B.T + np.ones((n, 1)) @ b)
    constraints = [t @ np.ones((1, len(vertices))) >= (sign * C - 2 * C_hat) @ vertices.T]
    if not fit_intercept:
        constraints.append(b == 0)
    loss = (cp.sum(t) + 2 * cp.sum(cp.multiply(best, C_hat)) - float((sign * C * best).sum())) / n
    shift = [B]
    if prior == "least_squares":
        ls = LinearRegression().fit(X, C - O)
        shift = [B - ls.coef_, b - ls.intercept_[None, :]]
    penalty = sum(l1_ratio * cp.sum(cp.abs(s)) + 0.5 * (1 - l1_ratio) * cp.sum_squares(s) for s in shift)
    problem = cp.Problem(cp.Minimize(loss + alpha * penalty), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize(("region", "vertices"), POLYTOPES, ids=[type(r).__name__ + r.sense for r, _ in POLYTOPES])
def test_exact_training(region, vertices, penalty):
    X, C, O = known_data(4)
    truth = optimum(X, C, O, vertices, sense=region.sense, **penalty)
    for solver in (
        ["bundle", "dual"] if getattr(region, "integer", False) else ["interior-point", "conic", "bundle", "dual"]
    ):
        model = SPOPlusRegressor(region, solver=solver, **penalty).fit(X, C, offset=O)
        assert model.duality_gap_ <= 1e-6
        assert model.objective_ == pytest.approx(truth, rel=2e-6)
        assert model.lower_bound_ <= truth * (1 + 1e-8)
        if not penalty:
            loss = spo_plus_loss(C, model.predict(X, offset=O), region)
            assert loss == pytest.approx(model.objective_, rel=1e-9)
            # It agrees with the metrics.
            assert spo_plus_loss(C, model.predict(X), region, offset=O) == pytest.approx(loss, rel=1e-12)
            # Without the offset the loss is larger.
            assert SPOPlusRegressor(region, solver=solver).fit(X, C).objective_ > 1.5 * truth


@pytest.mark.parametrize("region", [Ellipsoid(), EntropySimplex(), LogBarrierSimplex()], ids=lambda r: type(r).__name__)
def test_smooth_regions(region):
    X, C, O = known_data(4)
    models = [
        SPOPlusRegressor(region, solver=solver, alpha=0.1).fit(X, C, offset=O)
        for solver in ("newton", "lbfgs", "conic")
    ]
    assert all(model.duality_gap_ <= 1e-6 for model in models)
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=2e-6)
    # The definition, with an independent minimizer.
    from scipy.optimize import minimize

    def value(theta):
        theta = theta.reshape(4, 3)
        loss = spo_plus_loss(C, O + X @ theta[:, :2].T + theta[:, 2], region)
        return loss + 0.05 * (theta[:, :2] ** 2).sum()

    start = np.column_stack([models[0].coef_, models[0].intercept_]).ravel()
    assert value(start) == pytest.approx(models[0].objective_, rel=1e-8)
    better = minimize(value, start, method="Powell", options={"maxfev": 500}).fun
    assert better >= models[0].lower_bound_ * (1 - 1e-9)
    assert better >= models[0].objective_ * (1 - 2e-6)


def test_shared_model():
    """With an offset that takes the place of a feature whose coefficient is known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4, 2))
    C = X @ [1.0, 2.0] + 0.3 * rng.normal(size=(40, 4))
    region = Knapsack(WEIGHTS, 8)
    model = SPOPlusRegressor(region, shared=True, solver="bundle").fit(X[:, :, 0], C, offset=2.0 * X[:, :, 1])
    both = SPOPlusRegressor(region, shared=True).fit(X.reshape(40, -1), C)
    assert model.coef_.shape == (1,)
    assert both.objective_ * (1 - 1e-6) <= model.objective_ <= 1.2 * both.objective_


def test_zero_offset_and_complete_offset():
    X, C, O = known_data(4)
    plain = SPOPlusRegressor(Simplex()).fit(X, C)
    zero = SPOPlusRegressor(Simplex()).fit(X, C, offset=np.zeros(4))
    np.testing.assert_allclose(zero.predict(X), plain.predict(X), rtol=1e-9)
    everything = SPOPlusRegressor(Simplex(), alpha=1.0).fit(X, C, offset=C)
    assert everything.objective_ == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(everything.predict(X, offset=C), C, atol=1e-6)
    one = SPOPlusRegressor(Simplex()).fit(X, C, offset=O[0])
    all_rows = SPOPlusRegressor(Simplex()).fit(X, C, offset=np.tile(O[0], (len(X), 1)))
    np.testing.assert_array_equal(one.coef_, all_rows.coef_)
    np.testing.assert_array_equal(one.predict(X, offset=O[0]), all_rows.predict(X) + O[0])


def test_large_alpha_is_least_squares_of_the_rest():
    X, C, O = known_data(4)
    ls = LinearRegression().fit(X, C - O)
    model = SPOPlusRegressor(Simplex(), alpha=1e8, prior="least_squares").fit(X, C, offset=O)
    np.testing.assert_allclose(model.coef_, ls.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, ls.intercept_, atol=1e-6)


def test_hidden_components_are_fitted_to_the_rest():
    X, C, O = known_data(4)
    O = O + 1000.0
    C = C + 1000.0
    model = SPOPlusRegressor(Simplex()).fit(X, C, offset=O)
    residual = (C - model.predict(X, offset=O)).sum(axis=1)
    np.testing.assert_allclose(np.column_stack([X, np.ones(len(X))]).T @ residual, 0.0, atol=1e-8)


def test_equal_samples_with_different_offsets_stay_apart():
    X, C, O = known_data(3, n=10)
    X2, C2, O2 = np.vstack([X, X]), np.vstack([C, C]), np.vstack([O, -O])
    model = SPOPlusRegressor(Simplex()).fit(X2, C2, offset=O2)
    assert model.objective_ == pytest.approx(optimum(X2, C2, O2, np.eye(3)), rel=2e-6)
    weight = np.random.default_rng(0).integers(0, 3, 20)
    weighted = SPOPlusRegressor(Simplex()).fit(X2, C2, sample_weight=weight, offset=O2)
    repeated = SPOPlusRegressor(Simplex()).fit(
        *(np.repeat(a, weight, axis=0) for a in (X2, C2)), offset=np.repeat(O2, weight, axis=0)
    )
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)


# -- the SPO loss ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_line_search_is_the_best_of_all_numbers():
    """One coefficient: the loss on a fine grid of the line, on which its sign and its size matter."""
    rng = np.random.default_rng(3)
    X, O = rng.normal(size=(12, 3)), rng.normal(size=(12, 3))
    C = O + 0.7 * X + rng.normal(size=(12, 3))
    model = SPORegressor(Simplex(), shared=True, fit_intercept=False, max_iter=500, random_state=0).fit(X, C, offset=O)
    grid = np.linspace(-20, 20, 40001)
    chosen = (O + grid[:, None, None] * X).argmin(axis=2)
    losses = (C[np.arange(12), chosen] - C.min(axis=1)).mean(axis=1)
    assert model.objective_ <= losses.min() + 1e-9
    assert spo_loss(C, model.predict(X, offset=O), Simplex()) == pytest.approx(model.objective_, abs=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("region", [Simplex(), EntropySimplex(), Knapsack(WEIGHTS, 8)], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("init", ["spo+", "least_squares", "absolute_error"])
def test_spo_is_never_worse_than_its_start(region, init):
    X, C, O = known_data(4)
    model = SPORegressor(region, init=init, max_iter=200, random_state=0).fit(X, C, offset=O)
    assert model.objective_ == pytest.approx(spo_loss(C, model.predict(X, offset=O), region), rel=1e-6, abs=1e-9)
    if init == "spo+":
        start = SPOPlusRegressor(region).fit(X, C, offset=O).predict(X, offset=O)
    else:
        start = O + LinearRegression().fit(X, C - O).predict(X)
    if init != "absolute_error":
        assert model.objective_ <= spo_loss(C, start, region) * (1 + 1e-9) + 1e-9


def test_milp_refuses_offsets():
    X, C, O = known_data(3)
    with pytest.raises(ValueError, match=r"milp' cannot serve an offset\. Use solver='line-search'"):
        SPORegressor(Simplex(), solver="milp").fit(X, C, offset=O)


# -- other estimators --------------------------------------------------------------------------------------------------


def test_two_stage():
    X, C, O = known_data(4)
    model = TwoStageRegressor(Ridge(), Simplex()).fit(X, C, offset=O)
    np.testing.assert_allclose(model.predict(X, offset=O), O + Ridge().fit(X, C - O).predict(X))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shared", [False, True])
def test_gradients_of_the_network(loss, shared):
    rng = np.random.RandomState(0)
    X, C, weight, O = rng.normal(size=(15, 8)), 10 * rng.normal(size=(15, 4)), rng.rand(15), rng.normal(size=(15, 4))
    region = EntropySimplex(sense="max")
    model = SPOMLPRegressor(region, loss=loss, hidden_layer_sizes=(5,), activation="tanh", shared=shared, alpha=0.0)
    data = TrainingData(X, C, weight, O, {})
    network = _Network(model, region, data, rng, None)
    rows = np.arange(2, 12)
    _, grads = network.gradients(rows)
    directions = [rng.normal(size=p.shape) for p in network.params]
    slope = sum(float((g * v).sum()) for g, v in zip(grads, directions, strict=True))
    start, ends = network.copy(), []
    for sign in (1.0, -1.0):
        network.params = [p + sign * 1e-6 * v for p, v in zip(start, directions, strict=True)]
        ends.append(network.gradients(rows)[0])
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-7)
    # The value is that of the prediction in the user's units, offset included.
    network.params = start
    some = data.take(rows)
    coefs, intercepts = network.in_user_units()
    items = X[rows].reshape(-1, 2) if shared else X[rows]
    C_hat = O[rows] + (np.tanh(items @ coefs[0] + intercepts[0]) @ coefs[1] + intercepts[1]).reshape(10, 4)
    expected = np.average(LOSSES[loss](region).value(C[rows], C_hat), weights=weight[rows])
    network.params = [p for pair in zip(coefs, intercepts, strict=True) for p in pair]
    network.params[-2], network.params[-1] = (
        coefs[-1] / network.scale,
        (intercepts[-1] - network.center) / network.scale,
    )
    assert network.evaluate(region, some) == pytest.approx(expected)


def test_path_and_cross_validation():
    X, C, O = known_data(4, n=60)
    _, _, _, objectives, gaps = spo_plus_path(X, C, Simplex(), alphas=[1.0, 0.1], standardize=False, offset=O)
    assert gaps.max() <= 1e-6
    for alpha, value in zip((1.0, 0.1), objectives, strict=True):
        model = SPOPlusRegressor(Simplex(), alpha=alpha, prior="least_squares").fit(X, C, offset=O)
        assert model.objective_ == pytest.approx(value, rel=2e-6)
    model = SPOPlusRegressorCV(Simplex(), alphas=[np.inf, 0.05], cv=3, scoring="spo_loss").fit(X, C, offset=O)
    losses = []
    for train, test in KFold(3).split(X):
        C_hat = O[test] + LinearRegression().fit(X[train], C[train] - O[train]).predict(X[test])
        losses.append(spo_loss(C[test], C_hat, Simplex()))
    assert model.cv_results_["mean_test_spo_loss"][0] == pytest.approx(np.mean(losses))


def test_streaming():
    X, C, O = known_data(4, n=200)
    model = SPOPlusRegressor(Simplex(), random_state=0)
    for _ in range(30):
        model.partial_fit(X, C, offset=O)
    exact = SPOPlusRegressor(Simplex()).fit(X, C, offset=O)
    assert exact.objective_ * (1 - 1e-6) <= model.objective_ <= 1.05 * exact.objective_
    exact = SPOPlusRegressor(Simplex(), alpha=0.01).fit(X, C, offset=O)
    rough = SPOPlusRegressor(Simplex(), alpha=0.01, solver="sgd", tol=1e-4, random_state=0).fit(X, C, offset=O)
    assert rough.lower_bound_ <= exact.objective_ * (1 + 1e-6)
    assert exact.objective_ * (1 - 1e-6) <= rough.objective_ <= exact.objective_ * (1 + 1e-4)


# -- interface ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_estimator(estimator):
    X, C, O = known_data(4)
    model = sklearn.clone(estimator).fit(X, C, offset=O)
    np.testing.assert_allclose(model.predict(X, offset=O), model.predict(X) + O)
    np.testing.assert_array_equal(model.decide(X, offset=O), Simplex().argmin(model.predict(X) + O))
    expected = -normalized_spo_loss(C, model.predict(X) + O, Simplex())
    assert model.score(X, C, offset=O) == pytest.approx(expected)
    assert model.score(X, C, offset=O) > model.score(X, C)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X, offset=O), model.predict(X, offset=O))
    for bad in (O[:5], O[:, :3], O[0, :3], np.zeros((25, 4, 1)), 3.0):
        with pytest.raises(ValueError, match="offset, the known part"):
            sklearn.clone(estimator).fit(X, C, offset=bad)
    with pytest.raises(ValueError, match="offset contains NaN"):
        sklearn.clone(estimator).fit(X, C, offset=np.full((25, 4), np.nan))
    with pytest.raises(ValueError, match=r"offset, the known part of the costs, must have shape \(25, 4\)"):
        model.predict(X, offset=O[:3])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_one_cost(estimator):
    X, C, O = known_data(1)
    estimator = sklearn.clone(estimator).set_params(region=Box(-1, 1))
    flat = sklearn.clone(estimator).fit(X, C.ravel(), offset=O.ravel())
    column = sklearn.clone(estimator).fit(X, C, offset=O)
    assert flat.predict(X, offset=O.ravel()).shape == (25,)
    np.testing.assert_array_equal(flat.predict(X, offset=O), column.predict(X, offset=O).ravel())
    np.testing.assert_array_equal(flat.decide(X, offset=O), column.decide(X, offset=O))


def test_offset_is_routed():
    X, C, O = known_data(4, n=60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SPOPlusRegressor(Simplex()).set_fit_request(offset=True).set_score_request(offset=True)
        search = GridSearchCV(model, {"alpha": [0.01, 1.0]}, cv=3).fit(X, C, offset=O)
        scorer = make_spo_scorer(Simplex()).set_score_request(offset=True)
        plain = TwoStageRegressor(region=Simplex()).set_fit_request(offset=True)
        pipe = make_pipeline(StandardScaler(), plain)
        scored = cross_validate(pipe, X, C, scoring=scorer, cv=3, params={"offset": O})
        decided = make_pipeline(StandardScaler(), plain.set_predict_request(offset=True)).fit(X, C, offset=O)
        np.testing.assert_allclose(decided.predict(X, offset=O), decided.predict(X) + O)
    for k, (train, test) in enumerate(KFold(3).split(X)):
        by_hand = SPOPlusRegressor(Simplex(), alpha=0.01).fit(X[train], C[train], offset=O[train])
        score = by_hand.score(X[test], C[test], offset=O[test])
        assert search.cv_results_[f"split{k}_test_score"][0] == pytest.approx(score)
        C_hat = O[test] + LinearRegression().fit(X[train], C[train] - O[train]).predict(X[test])
        assert scored["test_score"][k] == pytest.approx(-normalized_spo_loss(C[test], C_hat, Simplex()))
    np.testing.assert_allclose(search.best_estimator_.predict(X, offset=O), search.predict(X) + O)


def test_another_scorer_is_refused():
    X, C, O = known_data(4)
    with pytest.raises(ValueError, match="scoring='r2' is not told about offset and region_params"):
        SPOPlusRegressorCV(Simplex(), scoring="r2").fit(X, C, offset=O)


def test_known_tolls():
    """Costs are a toll that is known and a time that is not: with the toll as offset the route is the right one."""
    rng = np.random.default_rng(0)
    region = ShortestPath.grid(2, 3)
    X = rng.normal(size=(300, 2))
    time, toll = 3.0 + X @ rng.normal(size=(2, 7)), rng.exponential(2.0, size=(300, 7))
    model = SPOPlusRegressor(region).fit(X[:200], (time + toll)[:200], offset=toll[:200])
    assert model.score(X[200:], (time + toll)[200:], offset=toll[200:]) == pytest.approx(0.0, abs=1e-6)


def test_an_offset_of_as_many_costs_as_samples_is_the_same_for_all():
    known = np.array([1.0, 2.0, 3.0])
    assert_array_equal(check_offset(known, (3, 3)), [known, known, known])
    chunks = list(ChunkedData.from_arrays(np.zeros((3, 2)), np.zeros((3, 3)), offset=known, chunk_rows=2))
    for chunk in chunks:
        assert_array_equal(chunk.arrays().offset, np.tile(known, (chunk.n_rows, 1)))
