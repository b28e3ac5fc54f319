"""One model for all costs: against the same problem written for CVXPY, and tied coefficients."""

import itertools
import pickle

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from marks import pairs
from problems import items_data, spo_plus_objective
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_sets import packings

from skspo import (
    Box,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    Markowitz,
    OracleRegion,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    TopK,
    TwoStageRegressor,
    spo_loss,
    spo_plus_loss,
    spo_plus_path,
)

PENALTIES = [
    {},
    {"fit_intercept": False},
    {"alpha": 0.3},
    {"alpha": 0.5, "prior": "least_squares"},
    {"alpha": 0.2, "l1_ratio": 1.0},
    {"alpha": 0.2, "l1_ratio": 0.5, "prior": "least_squares"},
]


def paths():
    """Edges of a grid of two rows and three columns: horizontal of row 0, vertical, horizontal of row 1."""
    return np.array([[1, 1, 0, 0, 1, 0, 0], [1, 0, 0, 1, 0, 0, 1], [0, 0, 1, 0, 0, 1, 1]], dtype=float)


WEIGHTS = np.array([3, 4, 5, 2])
#: region, all its vertices
POLYTOPES = [
    (Simplex(), np.eye(4)),
    (Simplex(sense="max"), np.eye(4)),
    (Box(-1, 2), np.array(list(itertools.product((-1.0, 2.0), repeat=4)))),
    (TopK(2), np.array([v for v in itertools.product((0.0, 1.0), repeat=4) if sum(v) == 2])),
    (ShortestPath.grid(2, 3), paths()),
    (Polyhedron([[1, 1, 1, 1]], [1.0]), np.vstack([np.zeros(4), np.eye(4)])),
    (Knapsack(WEIGHTS, 8), packings(WEIGHTS, 8)),
]


def tied_optimum(
    X, C, support, *, sense="min", alpha=0.0, l1_ratio=0.0, prior="zero", fit_intercept=True, weight=None, best=None
):
    """Objective of the per-cost model whose coefficients are tied, B[j, block j] = beta and zero elsewhere, by CVXPY.

    ``support(V)`` gives epigraph variables and constraints of max_{w in S} v.w, ``best`` the optimal decisions.
    """
    sign = -1.0 if sense == "max" else 1.0
    n, d = C.shape
    q = X.shape[1] // d
    weight = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    B, b, beta, b0 = cp.Variable((d, d * q)), cp.Variable(d), cp.Variable(q), cp.Variable()
    pattern = np.kron(np.eye(d), np.ones((1, q)))
    constraints = [cp.multiply(1 - pattern, B) == 0, b == b0]
    constraints += [B[j, j * q : (j + 1) * q] == beta for j in range(d)]
    if not fit_intercept:
        constraints.append(b0 == 0)
    C_hat = X @ B.T + np.ones((n, 1)) @ cp.reshape(b, (1, d), order="C")
    V = cp.Variable((n, d))
    t, more = support(V)
    constraints += [V == sign * (C - 2 * C_hat), *more]
    loss = weight @ t + cp.sum(cp.multiply(weight[:, None] * best, 2 * sign * C_hat))
    loss -= float(weight @ (sign * C * best).sum(axis=1))
    beta_0, intercept_0 = np.zeros(q), 0.0
    shift = [beta]
    if prior == "least_squares":
        ls = LinearRegression(fit_intercept=fit_intercept).fit(
            X.reshape(n * d, q), C.ravel(), sample_weight=np.repeat(weight, d)
        )
        beta_0, intercept_0 = ls.coef_, ls.intercept_
        shift = [beta - beta_0] + ([b0 - intercept_0] if fit_intercept else [])
    penalty = sum(l1_ratio * cp.norm1(s) + 0.5 * (1 - l1_ratio) * cp.sum_squares(s) for s in shift)
    problem = cp.Problem(cp.Minimize(loss + alpha * penalty), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def vertex_support(vertices):
    def support(V):
        t = cp.Variable(V.shape[0])
        return t, [cp.reshape(t, (V.shape[0], 1), order="C") @ np.ones((1, len(vertices))) >= V @ vertices.T]

    return support


def best_vertices(C, vertices, sense):
    values = C @ vertices.T
    return vertices[values.argmax(axis=1) if sense == "max" else values.argmin(axis=1)]


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("k", "penalty"), pairs(range(len(POLYTOPES)), PENALTIES, 2), ids=str)
def test_objective_is_that_of_tied_coefficients(k, penalty):
    region, vertices = POLYTOPES[k]
    X, C = items_data(vertices.shape[1])
    truth = tied_optimum(
        X,
        C,
        vertex_support(vertices),
        sense=region.sense,
        best=best_vertices(C, vertices, region.sense),
        **penalty,
    )
    solvers = ["bundle", "dual"] if getattr(region, "integer", False) else ["interior-point", "conic", "bundle", "dual"]
    for solver in solvers:
        model = SPOPlusRegressor(region, shared=True, solver=solver, **penalty).fit(X, C)
        assert model.duality_gap_ <= 1e-6
        assert model.objective_ == pytest.approx(truth, rel=2e-6)
        assert model.lower_bound_ <= truth * (1 + 1e-8)
        assert model.coef_.shape == (3,)
        assert np.ndim(model.intercept_) == 0
        # The objective is what the predictions cost, penalty aside.
        loss = spo_plus_loss(C, model.predict(X), region)
        shift = np.append(model.coef_, model.intercept_ if penalty.get("prior") == "least_squares" else 0.0)
        if penalty.get("prior") == "least_squares":
            ls = LinearRegression().fit(X.reshape(C.size, 3), C.ravel())
            shift -= np.append(ls.coef_, ls.intercept_)
        ratio = penalty.get("l1_ratio", 0.0)
        loss += penalty.get("alpha", 0.0) * (ratio * np.abs(shift).sum() + 0.5 * (1 - ratio) * (shift @ shift))
        assert loss == pytest.approx(model.objective_, rel=1e-8)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("region", [Ellipsoid(radius=2.0), EntropySimplex()], ids=lambda r: type(r).__name__)
def test_smooth_regions(region, penalty):
    X, C = items_data(4)

    def support(V):
        if isinstance(region, Ellipsoid):
            t = cp.Variable(V.shape[0])
            return t, [t >= 2.0 * cp.norm(V, axis=1)]
        return region.support_epigraph(V)

    best = region.argmin(C)
    truth = tied_optimum(X, C, support, best=best, **penalty)
    smooth = ["newton"] if penalty.get("l1_ratio", 0.0) == 0 else []
    for solver in ("lbfgs", "conic", "auto", *smooth):
        model = SPOPlusRegressor(region, shared=True, solver=solver, **penalty).fit(X, C)
        assert model.duality_gap_ <= 1e-6
        assert model.objective_ == pytest.approx(truth, rel=2e-6)


def test_quadratic_constraint():
    X, C = items_data(4)
    region = Markowitz(np.eye(4) + 0.2, 0.7)
    models = [
        SPOPlusRegressor(region, shared=True, solver=solver, alpha=0.1).fit(X, C)
        for solver in ("interior-point", "conic")
    ]
    assert all(model.duality_gap_ <= 1e-6 for model in models)
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=2e-6)


def test_many_equalities_and_many_samples():
    """More than one block of samples, and a region whose matrices are factored orthogonally."""
    X, C = items_data(40, n=400, q=2)
    region = ShortestPath.grid(5, 5)
    exact = SPOPlusRegressor(region, shared=True, solver="interior-point").fit(X, C)
    assert exact.duality_gap_ <= 1e-6
    bundle = SPOPlusRegressor(region, shared=True).fit(X, C)
    assert bundle.solver_ == "bundle"  # few coefficients
    assert bundle.duality_gap_ <= 1e-6
    assert bundle.objective_ == pytest.approx(exact.objective_, rel=2e-6)


def test_sgd_is_near_and_its_bound_is_valid():
    X, C = items_data(4, n=200)
    exact = SPOPlusRegressor(Simplex(), shared=True, alpha=0.1).fit(X, C)
    rough = SPOPlusRegressor(Simplex(), shared=True, alpha=0.1, solver="sgd", tol=1e-4, random_state=0).fit(X, C)
    assert exact.objective_ * (1 - 1e-6) <= rough.objective_ <= (1 + 1e-4) * exact.objective_
    assert 0 <= rough.lower_bound_ <= exact.objective_ * (1 + 1e-6)


def test_weights_are_repetitions():
    X, C = items_data(4)
    repeats = np.random.default_rng(1).integers(0, 3, len(X))
    for region in (Simplex(), Box()):
        weighted = SPOPlusRegressor(region, shared=True).fit(X, C, sample_weight=repeats)
        repeated = SPOPlusRegressor(region, shared=True).fit(
            np.repeat(X, repeats, axis=0), np.repeat(C, repeats, axis=0)
        )
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)


def test_order_of_items_does_not_matter():
    X, C = items_data(4)
    order = [2, 0, 3, 1]
    X_other = X.reshape(-1, 4, 3)[:, order].reshape(len(X), -1)
    for alpha in (0.0, 0.3):
        one = SPOPlusRegressor(Simplex(), shared=True, alpha=alpha).fit(X, C)
        other = SPOPlusRegressor(Simplex(), shared=True, alpha=alpha).fit(X_other, C[:, order])
        assert one.objective_ == pytest.approx(other.objective_, rel=2e-6)


def test_units_of_features_do_not_matter():
    X, C = items_data(4)
    scale = np.tile([1e-6, 1.0, 1e8], 4)
    plain = SPOPlusRegressor(Knapsack(WEIGHTS, 8), shared=True).fit(X, C)
    scaled = SPOPlusRegressor(Knapsack(WEIGHTS, 8), shared=True).fit(X * scale + 5.0 * scale, 1e4 * C)
    assert scaled.objective_ == pytest.approx(1e4 * plain.objective_, rel=2e-6)


def test_one_cost_is_the_other_layout():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(30, 3)), rng.normal(size=(30, 1))
    for params in ({}, {"alpha": 0.1}, {"alpha": 0.1, "prior": "least_squares"}):
        shared = SPOPlusRegressor(Box(-1, 1), shared=True, **params).fit(X, C)
        plain = SPOPlusRegressor(Box(-1, 1), **params).fit(X, C)
        assert shared.objective_ == pytest.approx(plain.objective_, rel=2e-6)


# -- hidden components -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["interior-point", "conic", "bundle", "dual"])
def test_hidden_coefficients_are_least_squares_given_the_others(solver):
    """The sum of decisions is fixed, so that neither the intercept nor a feature of the whole sample matters."""
    X, C = items_data(4)
    C = C + 1000.0
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = SPOPlusRegressor(Simplex(), shared=True, solver=solver).fit(X, C, sample_weight=weight)
    error = (C - model.predict(X)) * weight[:, None]
    assert error.sum() == pytest.approx(0.0, abs=1e-8 * np.abs(error).sum())
    constant = X.reshape(-1, 4, 3)[:, :, 2]
    assert (error * constant).sum() == pytest.approx(0.0, abs=1e-8 * np.abs(error).sum())
    # The objective does not depend on them.
    moved = model.predict(X) + 3.0 - 5.0 * constant
    assert spo_plus_loss(C, moved, Simplex(), sample_weight=weight) == pytest.approx(model.objective_, rel=1e-9)


def test_a_penalty_decides_about_hidden_slopes_and_the_free_intercept_keeps_the_mean():
    X, C = items_data(4)
    model = SPOPlusRegressor(Simplex(), shared=True, alpha=0.3, solver="interior-point").fit(X, C)
    assert model.coef_[2] == pytest.approx(0.0, abs=1e-7)
    assert model.predict(X).mean() == pytest.approx(C.mean())


@pytest.mark.parametrize("region", [Simplex(), Knapsack(WEIGHTS, 8)], ids=["simplex", "knapsack"])
def test_a_large_alpha_is_pooled_least_squares(region):
    X, C = items_data(4)
    ls = LinearRegression().fit(X.reshape(-1, 3), C.ravel())
    model = SPOPlusRegressor(region, shared=True, alpha=1e8, prior="least_squares").fit(X, C)
    np.testing.assert_allclose(model.coef_, ls.coef_, rtol=1e-5)
    assert model.intercept_ == pytest.approx(ls.intercept_, rel=1e-5)


def test_only_the_features_of_an_item_make_its_cost():
    X, C = items_data(4)
    model = SPOPlusRegressor(Box(), shared=True).fit(X, C)
    np.testing.assert_allclose(model.predict(X), X.reshape(-1, 4, 3) @ model.coef_ + model.intercept_)


def test_only_hidden_features():
    """All features are those of the sample: they change no decision, and the fit is least squares."""
    X, C = items_data(4)
    X = np.tile(X.reshape(-1, 4, 3)[:, :1, :], (1, 4, 1)).reshape(len(X), -1)
    model = SPOPlusRegressor(Simplex(), shared=True).fit(X, C)
    ls = LinearRegression().fit(X.reshape(-1, 3), C.ravel())
    np.testing.assert_allclose(model.predict(X).ravel(), ls.predict(X.reshape(-1, 3)), rtol=1e-6)


def test_a_hidden_intercept_is_exactly_zero_for_solvers():
    X, C = items_data(4)
    objective = spo_plus_objective(X, C, shared=True)
    assert (objective.design.Z[:, :, -1] == 0).all()
    basis = objective.design.hidden_basis(objective.free)[1]
    assert basis.shape == (4, 2)  # the intercept and the feature of the sample
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)


# -- other estimators --------------------------------------------------------------------------------------------------


def test_path_and_cross_validation():
    X, C = items_data(4, n=60)
    alphas, coefs, intercepts, objectives, gaps = spo_plus_path(X, C, Simplex(), shared=True, n_alphas=6)
    assert coefs.shape == (6, 3)
    assert intercepts.shape == (6,)
    assert gaps.max() <= 1e-6
    ls = LinearRegression().fit(X.reshape(-1, 3), C.ravel())
    assert np.isinf(alphas[0])
    np.testing.assert_allclose(coefs[0], ls.coef_)
    np.testing.assert_allclose(intercepts[0], ls.intercept_)
    assert (np.diff(objectives) <= 1e-6 * objectives[:-1]).all()
    model = SPOPlusRegressorCV(Simplex(), shared=True, n_alphas=6).fit(X, C)
    assert model.coef_.shape == (3,)
    assert model.feature_scale_.shape == (3,)
    # The same model on standardized data.
    Z = X.reshape(-1, 3)
    Z = ((Z - Z.mean(axis=0)) / model.feature_scale_).reshape(len(X), -1)
    if np.isfinite(model.alpha_):
        again = SPOPlusRegressor(Simplex(), shared=True, alpha=model.alpha_, prior="least_squares")
        again.fit(Z, C / model.cost_scale_)
        assert again.objective_ * model.cost_scale_ == pytest.approx(model.objective_, rel=2e-6)


def test_cross_validation_does_not_depend_on_units():
    X, C = items_data(4, n=60)
    scale = np.tile([1e-3, 1.0, 1e4], 4)
    plain = SPOPlusRegressorCV(Simplex(), shared=True, n_alphas=5, tol=1e-9).fit(X, C)
    scaled = SPOPlusRegressorCV(Simplex(), shared=True, n_alphas=5, tol=1e-9).fit(X * scale + 3.0 * scale, 7.0 * C)
    assert scaled.alpha_ == pytest.approx(plain.alpha_, rel=1e-6)
    np.testing.assert_allclose(scaled.predict(X * scale + 3.0 * scale), 7.0 * plain.predict(X), rtol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("region", [Simplex(), Knapsack(WEIGHTS, 8), EntropySimplex()], ids=lambda r: type(r).__name__)
def test_spo_is_never_worse_than_its_start(region):
    X, C = items_data(4, noise=2.0)
    for init in ("spo+", "least_squares", "absolute_error"):
        start = SPOPlusRegressor(region, shared=True).fit(X, C)
        if init == "least_squares":
            start = SPOPlusRegressor(region, shared=True, alpha=1e9, prior="least_squares").fit(X, C)
        model = SPORegressor(region, shared=True, init=init, max_iter=200, random_state=0)
        model.fit(X, C)
        assert model.coef_.shape == (3,)
        assert model.objective_ == pytest.approx(spo_loss(C, model.predict(X), region), rel=1e-6, abs=1e-9)
        if init != "absolute_error":
            assert model.objective_ <= spo_loss(C, start.predict(X), region) * (1 + 1e-6) + 1e-9


@pytest.mark.slow
def test_milp_is_the_best_of_all_directions():
    X, C = items_data(3, n=12, q=2, noise=2.0)
    model = SPORegressor(Simplex(), shared=True, solver="milp", fit_intercept=False).fit(X, C)
    angles = np.linspace(0, 2 * np.pi, 7201)
    beta = np.column_stack([np.cos(angles), np.sin(angles)])
    C_hat = np.einsum("ijq,bq->bij", X.reshape(12, 3, 2), beta).reshape(-1, 3)
    losses = spo_loss(np.tile(C, (len(beta), 1)), C_hat, Simplex(), per_sample=True).reshape(-1, 12).mean(axis=1)
    assert model.objective_ == pytest.approx(losses.min(), abs=1e-9)
    assert model.objective_ == pytest.approx(spo_loss(C, model.predict(X), Simplex()), abs=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["spo+", "squared_error"])
def test_network_is_applied_to_every_item(loss):
    X, C = items_data(4, n=80)
    X, C = X / 3.0, C / 5.0
    model = SPOMLPRegressor(
        Simplex(),
        loss=loss,
        shared=True,
        hidden_layer_sizes=(8,),
        max_iter=400,
        learning_rate_init=0.01,
        random_state=0,
    )
    model.fit(X, C)
    assert [coef.shape for coef in model.coefs_] == [(3, 8), (8, 1)]
    hidden = np.maximum(X.reshape(-1, 3) @ model.coefs_[0] + model.intercepts_[0], 0)
    np.testing.assert_allclose(model.predict(X).ravel(), (hidden @ model.coefs_[1] + model.intercepts_[1]).ravel())
    # It learns: better than a linear model where the truth is not linear.
    linear = LinearRegression().fit(X.reshape(-1, 3), C.ravel()).predict(X.reshape(-1, 3)).reshape(C.shape)
    if loss == "squared_error":
        assert ((model.predict(X) - C) ** 2).mean() < ((linear - C) ** 2).mean()
    else:
        assert spo_plus_loss(C, model.predict(X), Simplex()) < spo_plus_loss(C, linear, Simplex())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_network_without_hidden_layers_reaches_the_exact_optimum():
    """Its gradient is that of the shared model: started anywhere, it ends near the certified optimum."""
    X, C = items_data(4, n=60)
    X = StandardScaler().fit_transform(X.reshape(-1, 3)).reshape(len(X), -1)
    exact = SPOPlusRegressor(Ellipsoid(), shared=True).fit(X, C)
    model = SPOMLPRegressor(Ellipsoid(), shared=True, hidden_layer_sizes=(), alpha=0.0, random_state=0)
    model.set_params(max_iter=3000, n_iter_no_change=3000, tol=0.0, learning_rate_init=0.003, batch_size=60)
    model.fit(X, C)
    assert spo_plus_loss(C, model.predict(X), Ellipsoid()) == pytest.approx(exact.objective_, rel=1e-3)


def test_network_continues_training():
    X, C = items_data(4)
    model = SPOMLPRegressor(Simplex(), shared=True, hidden_layer_sizes=(4,), random_state=0)
    model.partial_fit(X, C).partial_fit(X, C)
    assert model.n_iter_ == 2
    with pytest.raises(ValueError, match="y has 3 columns, but the network so far has 4 costs"):
        model.partial_fit(X, C[:, :3])


def test_two_stage_is_pooled():
    X, C = items_data(4)
    weight = np.random.default_rng(0).uniform(size=len(X))
    rows, costs, weights = X.reshape(-1, 3), C.ravel(), np.repeat(weight, 4)
    for regressor in (LinearRegression(), RandomForestRegressor(n_estimators=3, random_state=0)):
        model = TwoStageRegressor(regressor, Simplex(), shared=True).fit(X, C, sample_weight=weight)
        by_hand = clone(regressor).fit(rows, costs, sample_weight=weights).predict(rows).reshape(C.shape)
        np.testing.assert_allclose(model.predict(X), by_hand)
        np.testing.assert_array_equal(model.decide(X), Simplex().argmin(by_hand))
    with pytest.raises(ValueError, match="13 features"):
        model.predict(np.zeros((2, 13)))


def test_stream_and_warm_start():
    X, C = items_data(4, n=200)
    model = SPOPlusRegressor(Simplex(), shared=True, random_state=0)
    for _ in range(20):
        model.partial_fit(X, C)
    exact = SPOPlusRegressor(Simplex(), shared=True, warm_start=True, solver="bundle").fit(X, C)
    assert model.coef_.shape == (3,)
    assert model.objective_ <= 1.1 * exact.objective_
    first = exact.n_iter_
    assert exact.fit(X, C).n_iter_ < first
    with pytest.raises(ValueError, match="but the model so far has 4 costs"):
        model.partial_fit(X, C[:, :3])


# -- interface ---------------------------------------------------------------------------------------------------------


def test_clone_pickle_search_and_pipeline():
    X, C = items_data(4, n=40)
    model = SPOPlusRegressor(Simplex(), shared=True)
    assert clone(model).get_params()["shared"] is True
    fitted = model.fit(X, C)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    search = GridSearchCV(SPOPlusRegressor(Simplex()), {"shared": [True, False], "alpha": [0.1]}, cv=3).fit(X, C)
    assert search.best_params_["shared"] is True  # the truth is shared, and three samples per coefficient are few
    pipe = make_pipeline(StandardScaler(), SPOPlusRegressor(Simplex(), shared=True)).fit(X, C)
    assert pipe.predict(X).shape == C.shape
    names = [f"item{j}_{name}" for j in range(4) for name in "abc"]
    frame = SPOPlusRegressor(Simplex(), shared=True).fit(pd.DataFrame(X, columns=names), C)
    assert frame.feature_names_in_[3] == "item1_a"
    np.testing.assert_allclose(frame.coef_, fitted.coef_)


def test_oracle_regions():
    X, C = items_data(4)
    region = OracleRegion(lambda C: np.eye(C.shape[1])[C.argmin(axis=1)], 4)
    model = SPOPlusRegressor(region, shared=True, alpha=0.1).fit(X, C)
    assert model.solver_ == "bundle"
    # The oracle does not reveal that the sum is constant, which only matters for a free intercept.
    assert model.objective_ == pytest.approx(
        SPOPlusRegressor(Simplex(), shared=True, alpha=0.1).fit(X, C).objective_, rel=2e-6
    )


@pytest.mark.parametrize(
    "cls", [SPOPlusRegressor, SPOPlusRegressorCV, SPORegressor, SPOMLPRegressor, TwoStageRegressor]
)
def test_bad_input(cls):
    X, C = items_data(4)
    with pytest.raises(ValueError, match="X has 11 features, which is not a multiple of 4"):
        cls(region=Simplex(), shared=True).fit(X[:, :11], C)
    with pytest.raises(ValueError, match="shared must be True or False, got 'yes'"):
        cls(region=Simplex(), shared="yes").fit(X, C)
