"""Regions that vary by sample: oracles against brute force, training against CVXPY, and how rows are routed."""

import itertools
import pickle
import warnings

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import sklearn
from row_optimum import listed, optimum
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from skspo import (
    Box,
    Knapsack,
    L1Ball,
    MixedInteger,
    Polyhedron,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    TwoStageRegressor,
    make_spo_scorer,
    normalized_spo_loss,
    row_params,
    spo_loss,
    spo_plus_loss,
    spo_plus_path,
)

N, D = 30, 4
RNG = np.random.default_rng(0)
W1, W2, W3 = [3, 4, 5, 9], [0.31, 0.42, 0.55, 0.17], [[3, 4, 5, 9], [2, 2, 7, 1]]
A_UB, A_EQ = np.array([[1.0, 2.0, -1.0, 0.5], [-1.0, 0.0, 2.0, 1.0]]), np.array([[1.0, 1.0, 1.0, 1.0]])
LOWER = RNG.normal(size=(N, D))
B_UB, B_EQ = RNG.uniform(2.0, 5.0, (N, 2)), RNG.uniform(0.5, 2.0, (N, 1))
GENERAL = Polyhedron(A_UB, [3.0, 3.0], A_EQ, [1.0], bounds=(0, 3))

#: region, its parameters by row, and the same region for one row
CASES = {
    "box": (Box(), {"lower": LOWER, "upper": LOWER + RNG.exponential(size=(N, D))}, Box),
    "box-upper": (Box(-1, 1), {"upper": RNG.uniform(0, 3, N)}, lambda upper: Box(-1, [upper] * D)),
    "knapsack": (Knapsack(W1, 8), {"capacity": RNG.integers(0, 25, N)}, lambda capacity: Knapsack(W1, capacity)),
    "knapsack-min": (
        Knapsack(W1, 8, sense="min"),
        {"capacity": RNG.integers(0, 25, N)},
        lambda capacity: Knapsack(W1, capacity, sense="min"),
    ),
    "knapsack-real": (Knapsack(W2, 1.0), {"capacity": RNG.uniform(0, 1.6, N)}, lambda capacity: Knapsack(W2, capacity)),
    "knapsack-two": (
        Knapsack(W3, 9),
        {"capacity": RNG.integers(0, 22, (N, 2))},
        lambda capacity: Knapsack(W3, capacity),
    ),
    "knapsack-roomy": (Knapsack(W1, 8), {"capacity": np.full(N, 21.0)}, lambda capacity: Knapsack(W1, capacity)),
    "fractional": (
        Knapsack(W1, 8, integer=False),
        {"capacity": RNG.uniform(0, 25, N)},
        lambda capacity: Knapsack(W1, capacity, integer=False),
    ),
    "fractional-two": (
        Knapsack(W3, 9, integer=False),
        {"capacity": RNG.uniform(0, 22, (N, 2))},
        lambda capacity: Knapsack(W3, capacity, integer=False),
    ),
    "polyhedron": (
        GENERAL,
        {"b_ub": B_UB, "b_eq": B_EQ},
        lambda b_ub, b_eq: Polyhedron(A_UB, b_ub, A_EQ, b_eq, bounds=(0, 3)),
    ),
    "polyhedron-eq": (GENERAL, {"b_eq": B_EQ}, lambda b_eq: clone(GENERAL).set_params(b_eq=b_eq)),
    "integer": (
        MixedInteger([W1], [8], bounds=(0, 2), integrality=[1, 1, 0, 1], sense="max"),
        {"b_ub": RNG.integers(0, 30, N)},
        lambda b_ub: MixedInteger([W1], [b_ub], bounds=(0, 2), integrality=[1, 1, 0, 1], sense="max"),
    ),
}
ALL = pytest.mark.parametrize("case", CASES)


def row(params, i):
    return {name: value[i] for name, value in params.items()}


def data(n=N, seed=0, p=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sinh(X @ rng.normal(size=(p, D))) + 0.5 * rng.normal(size=(n, D))


# -- oracles -----------------------------------------------------------------------------------------------------------


@ALL
def test_oracle_is_that_of_each_row(case):
    region, params, one = CASES[case]
    _, C = data()
    view = region.with_rows(params, N, D)
    W = view.argmin(C)
    expected = np.array([one(**row(params, i)).argmin(C[i]) for i in range(N)])
    np.testing.assert_allclose(W, expected, atol=1e-9)
    # Some of the rows, in any order, and through pickle and clone.
    rows = np.array([7, 3, 3, 29])
    np.testing.assert_allclose(view.take(rows).argmin(C[rows]), expected[rows], atol=1e-9)
    np.testing.assert_allclose(view.take(slice(5, 9)).argmin(C[5:9]), expected[5:9], atol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(view)).argmin(C), W)
    np.testing.assert_array_equal(clone(view).argmin(C), W)
    with pytest.raises(ValueError, match="There are 3 rows of costs, but region_params has 30 rows"):
        view.argmin(C[:3])


@ALL
def test_ties_are_those_of_each_row(case):
    region, params, one = CASES[case]
    if hasattr(region, "b_ub"):
        pytest.skip("the optimal vertex that HiGHS returns depends on where it starts")
    C = np.random.default_rng(1).integers(-2, 3, size=(N, D)).astype(float)
    expected = np.array([one(**row(params, i)).argmin(C[i]) for i in range(N)])
    np.testing.assert_allclose(region.with_rows(params, N, D).argmin(C), expected, atol=1e-9)


def test_packing_by_brute_force():
    rng = np.random.default_rng(0)
    weights, capacity = rng.integers(1, 8, (2, 6)), rng.integers(0, 20, (40, 2))
    C = rng.normal(size=(40, 6))
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=6)))
    W = Knapsack(weights, 10).with_rows({"capacity": capacity}, 40, 6).argmin(C)
    for w, room, c in zip(W, capacity, C, strict=True):
        assert (weights @ w <= room).all()
        assert c @ w == pytest.approx((sets[(sets @ weights.T <= room).all(axis=1)] @ c).max())


def test_linear_programs_against_scipy():
    _, C = data()
    W = GENERAL.with_rows({"b_ub": B_UB, "b_eq": B_EQ}, N, D).argmin(C)
    for i in range(N):
        truth = linprog(C[i], A_UB, B_UB[i], A_EQ, B_EQ[i], bounds=(0, 3))
        assert C[i] @ W[i] == pytest.approx(truth.fun, abs=1e-8)


def test_box_in_closed_form():
    region, params, _ = CASES["box"]
    _, C = data()
    view = region.with_rows(params, N, D)
    np.testing.assert_array_equal(view.argmin(C), np.where(C < 0, params["upper"], params["lower"]))
    W = 10 * np.random.default_rng(0).normal(size=C.shape)
    np.testing.assert_array_equal(view.repair(W), np.clip(W, params["lower"], params["upper"]))
    fixed = Box().with_rows({"lower": LOWER, "upper": LOWER + np.array([0, 1, 0, 1])}, N, D)
    np.testing.assert_array_equal(fixed.equalities(), np.eye(4)[[0, 2]])


# -- training ----------------------------------------------------------------------------------------------------------


def dual(params):
    """Support functions of {A_ub w <= b_i, A_eq w = e_i, 0 <= w <= 3} by duality."""

    def support(V):
        y, z, s = (cp.Variable((V.shape[0], k)) for k in (2, 1, D))
        value = cp.sum(cp.multiply(params["b_ub"], y), axis=1) + cp.sum(cp.multiply(params["b_eq"], z), axis=1)
        return value + 3 * cp.sum(s, axis=1), [y @ A_UB + z @ A_EQ + s >= V, y >= 0, s >= 0]

    return support


def truth_of(case, X, C, **kwargs):
    region, params, one = CASES[case]
    best = np.array([one(**row(params, i)).argmin(C[i]) for i in range(len(C))])
    if case == "polyhedron":
        return optimum(X, C, best, dual(params), **kwargs)
    if case == "box":
        vertices = [
            np.array(list(itertools.product(*zip(low, high, strict=True))))
            for low, high in zip(params["lower"], params["upper"], strict=True)
        ]
    else:
        sets = np.array(list(itertools.product((0.0, 1.0), repeat=D)))
        vertices = [sets[sets @ W1 <= room] for room in params["capacity"]]
    return optimum(X, C, best, listed(vertices), sense=region.sense, **kwargs)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize(
    ("case", "solver"),
    [
        *(("box", solver) for solver in ("interior-point", "conic", "bundle")),
        ("knapsack", "bundle"),
        *(("polyhedron", solver) for solver in ("interior-point", "conic", "bundle")),
    ],
)
def test_exact_training(case, solver, alpha):
    region, params, _ = CASES[case]
    X, C = data()
    truth = truth_of(case, X, C, alpha=alpha)
    for name in (solver, "auto"):
        model = SPOPlusRegressor(region, solver=name, alpha=alpha).fit(X, C, region_params=params)
        assert model.duality_gap_ <= 1e-6
        assert model.objective_ == pytest.approx(truth, rel=2e-6)
        assert model.lower_bound_ <= truth * (1 + 1e-8)
        if alpha == 0:
            loss = spo_plus_loss(C, model.predict(X), region, region_params=params)
            assert loss == pytest.approx(model.objective_, rel=1e-9)
            # Without the differences the loss is larger.
            plain = SPOPlusRegressor(region).fit(X, C).predict(X)
            assert spo_plus_loss(C, plain, region, region_params=params) > truth * (1 + 1e-3)


@pytest.mark.parametrize("case", ["box", "knapsack"])
def test_shared_model_with_offset(case):
    """All three at once."""
    region, params, _ = CASES[case]
    rng = np.random.default_rng(0)
    X, O = rng.normal(size=(N, D * 2)), rng.normal(size=(N, D))
    C = O + X.reshape(N, D, 2) @ [1.0, -1.0] + rng.normal(size=(N, D))
    truth = truth_of(case, X, C, alpha=0.1, offset=O, shared=True)
    model = SPOPlusRegressor(region, shared=True, alpha=0.1).fit(X, C, offset=O, region_params=params)
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(truth, rel=2e-6)


@pytest.mark.parametrize("case", ["box", "knapsack", "fractional", "polyhedron"])
def test_equal_rows_are_the_plain_region(case):
    region, params, one = CASES[case]
    params = {name: np.repeat(value[:1], N, axis=0) for name, value in params.items()}
    X, C = data()
    plain = SPOPlusRegressor(one(**row(params, 0)), alpha=0.01, tol=1e-8).fit(X, C)
    model = SPOPlusRegressor(region, alpha=0.01, tol=1e-8).fit(X, C, region_params=params)
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-8)
    assert model.duality_gap_ <= 1e-8
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=2e-2)


def test_equal_samples_with_different_regions_stay_apart():
    X, C = data(10)
    X, C, room = np.vstack([X, X]), np.vstack([C, C]), np.repeat([4.0, 20.0], 10)
    region = Knapsack(W1, 8)
    both = SPOPlusRegressor(region, alpha=0.1).fit(X, C, region_params={"capacity": room})
    value = 0.5 * 0.1 * (both.coef_**2).sum() + np.mean(
        [spo_plus_loss(C[:10], both.predict(X[:10]), Knapsack(W1, capacity)) for capacity in (4, 20)]
    )
    assert both.objective_ == pytest.approx(value, rel=1e-9)
    weight = np.random.default_rng(0).integers(0, 3, 20)
    weighted = SPOPlusRegressor(region).fit(X, C, sample_weight=weight, region_params={"capacity": room})
    X, C, room = (np.repeat(a, weight, axis=0) for a in (X, C, room))
    repeated = SPOPlusRegressor(region).fit(X, C, region_params={"capacity": room})
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)


def test_sgd_and_streaming():
    region, params, _ = CASES["knapsack"]
    X, C = data()
    exact = SPOPlusRegressor(region, alpha=0.1).fit(X, C, region_params=params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # whether the gap is closed does not matter here
        rough = SPOPlusRegressor(region, alpha=0.1, solver="sgd", random_state=0).fit(X, C, region_params=params)
    assert exact.objective_ * (1 - 1e-6) <= rough.objective_ <= 1.05 * exact.objective_
    assert rough.lower_bound_ <= exact.objective_ * (1 + 1e-6)
    stream = SPOPlusRegressor(region, alpha=0.1, random_state=0)
    for _ in range(100):
        stream.partial_fit(X, C, region_params=params)
    assert exact.objective_ * (1 - 1e-6) <= stream.objective_ <= 1.1 * exact.objective_


@pytest.mark.parametrize(
    ("case", "solver", "able"),
    [
        ("box", "lbfgs", "'interior-point', 'conic', 'bundle', 'dual', 'sgd'"),
        ("knapsack", "conic", "'bundle', 'dual', 'sgd'"),
        ("knapsack", "interior-point", "'bundle', 'dual', 'sgd'"),
        ("polyhedron", "newton", "'interior-point', 'conic', 'bundle', 'dual', 'sgd'"),
    ],
)
def test_solvers_without_support_raise(case, solver, able):
    region, params, _ = CASES[case]
    name = type(region).__name__
    with pytest.raises(ValueError, match=rf"{solver}.*{name} that varies by sample \(region_params\).*can: {able};"):
        SPOPlusRegressor(region, solver=solver).fit(*data(), region_params=params)


def test_milp_refuses_region_params():
    region, params, _ = CASES["box"]
    with pytest.raises(ValueError, match=r"milp.*Box that varies by sample.*line-search"):
        SPORegressor(region, solver="milp").fit(*data(), region_params=params)


def test_surrogate_gets_the_same_rows():
    _, params, _ = CASES["knapsack"]
    X, C = data()
    model = SPOPlusRegressor(Knapsack(W1, 8), surrogate_region=Knapsack(W1, 8, integer=False), alpha=0.1)
    relaxed = SPOPlusRegressor(Knapsack(W1, 8, integer=False), alpha=0.1).fit(X, C, region_params=params)
    model.fit(X, C, region_params=params)
    assert model.objective_ == pytest.approx(relaxed.objective_, rel=2e-6)
    W = model.decide(X, region_params=params)
    assert np.isin(W, (0, 1)).all()
    assert (W @ W1 <= params["capacity"]).all()
    with pytest.raises(ValueError, match="Simplex cannot vary by sample in 'capacity'") as caught:
        model.set_params(surrogate_region=Simplex(sense="max")).fit(X, C, region_params=params)
    assert "surrogate_region, the region to train on, with the same region_params" in caught.value.__notes__[0]


# -- estimators --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        SPOPlusRegressor(alpha=0.1),
        SPOPlusRegressorCV(n_alphas=3, cv=2),
        SPORegressor(max_iter=30, random_state=0),
        SPOMLPRegressor(hidden_layer_sizes=(4,), max_iter=5, early_stopping=True, random_state=0),
        TwoStageRegressor(),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("case", ["box", "knapsack", "polyhedron"])
def test_every_estimator(case, estimator):
    region, params, one = CASES[case]
    X, C = data()
    model = clone(estimator).set_params(region=region).fit(X, C, region_params=params)
    C_hat = model.predict(X)
    W = model.decide(X, region_params=params)
    expected = np.array([one(**row(params, i)).argmin(C_hat[i]) for i in range(N)])
    np.testing.assert_allclose(W, expected, atol=1e-8)
    best = np.array([C[i] @ one(**row(params, i)).argmin(C[i]) for i in range(N)])
    regret = np.abs((C * W).sum(axis=1) - best)
    assert model.score(X, C, region_params=params) == pytest.approx(-regret.sum() / np.abs(best).sum())
    assert spo_loss(C, C_hat, region, region_params=params) == pytest.approx(regret.mean())
    # The fitted region has no rows: new samples have their own parameters.
    assert type(model.region_) is type(region)
    some = row(params, slice(0, 3))
    np.testing.assert_allclose(model.decide(X[:3], region_params=some), W[:3], atol=1e-8)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decide(X, region_params=params), W)


def test_line_search_improves():
    region, params, _ = CASES["knapsack"]
    X, C = data()
    start = SPOPlusRegressor(region).fit(X, C, region_params=params)
    model = SPORegressor(region, random_state=0, max_iter=500).fit(X, C, region_params=params)
    before = spo_loss(C, start.predict(X), region, region_params=params)
    assert model.objective_ == pytest.approx(spo_loss(C, model.predict(X), region, region_params=params), abs=1e-9)
    assert model.objective_ < before


def test_network_trains_on_the_rows():
    """Without hidden layers it ends near the exact optimum of the varying region."""
    region, params, _ = CASES["box"]
    X, C = data()
    exact = SPOPlusRegressor(region).fit(X, C, region_params=params)
    model = SPOMLPRegressor(region, hidden_layer_sizes=(), alpha=0.0, random_state=0, batch_size=10)
    model.set_params(max_iter=2000, n_iter_no_change=2000, tol=0.0, learning_rate_init=0.002)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, C, region_params=params)
    loss = spo_plus_loss(C, model.predict(X), region, region_params=params)
    assert exact.objective_ * (1 - 1e-6) <= loss <= 1.05 * exact.objective_


def test_path_and_cross_validation():
    region, params, _ = CASES["knapsack"]
    X, C = data()
    *_, gaps = spo_plus_path(X, C, region, n_alphas=4, region_params=params)
    assert gaps.max() <= 1e-6
    model = SPOPlusRegressorCV(region, alphas=[np.inf, 0.1], cv=3, scoring="spo_loss").fit(X, C, region_params=params)
    losses = []
    for train, test in KFold(3).split(X):
        C_hat = TwoStageRegressor().fit(X[train], C[train]).predict(X[test])
        losses.append(spo_loss(C[test], C_hat, region, region_params=row(params, test)))
    assert model.cv_results_["mean_test_spo_loss"][0] == pytest.approx(np.mean(losses))


# -- routing -----------------------------------------------------------------------------------------------------------


def test_rows_are_routed_and_split():
    region, params, _ = CASES["box"]
    X, C = data()
    rows = row_params(**params)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SPOPlusRegressor(region).set_fit_request(region_params=True).set_score_request(region_params=True)
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3).fit(X, C, region_params=rows)
        scorer = make_spo_scorer(region).set_score_request(region_params=True)
        forest = RandomForestRegressor(n_estimators=3, random_state=0)
        scores = cross_val_score(forest, X, C, scoring=scorer, cv=3, params={"region_params": rows})
        with pytest.raises(ValueError, match=r"lower must have one row for each of the 20 samples.*pass row_params"):
            GridSearchCV(model, {"alpha": [0.1]}, cv=3, error_score="raise").fit(X, C, region_params=params)
    for k, (train, test) in enumerate(KFold(3).split(X)):
        by_hand = SPOPlusRegressor(region, alpha=0.1).fit(X[train], C[train], region_params=row(params, train))
        score = by_hand.score(X[test], C[test], region_params=row(params, test))
        assert search.cv_results_[f"split{k}_test_score"][0] == pytest.approx(score)
        C_hat = clone(forest).fit(X[train], C[train]).predict(X[test])
        loss = normalized_spo_loss(C[test], C_hat, region, region_params=row(params, test))
        assert scores[k] == pytest.approx(-loss)


def test_forms_of_the_rows():
    region, params, _ = CASES["knapsack"]
    X, C = data()
    model = SPOPlusRegressor(region, alpha=0.1)
    W = model.fit(X, C, region_params=params).decide(X, region_params=params)
    for form in (row_params(**params), pd.DataFrame(params), {"capacity": list(params["capacity"])}):
        again = clone(model).fit(X, C, region_params=form)
        np.testing.assert_array_equal(again.decide(X, region_params=form), W)
    # One number per sample is the same for all bounds.
    upper = np.random.default_rng(0).uniform(0, 2, N)
    np.testing.assert_array_equal(
        Box().with_rows({"upper": upper}, N, D).argmin(-np.ones((N, D))), np.tile(upper[:, None], (1, D))
    )


@pytest.mark.parametrize(
    ("region", "params", "error", "message"),
    [
        (L1Ball(), {"radius": np.ones(N)}, ValueError, r"L1Ball has no parameters.*Box.*Knapsack.*Polyhedron"),
        (
            Box(),
            {"radius": np.ones(N)},
            ValueError,
            r"Box cannot vary by sample in 'radius', only in \['available', 'lower', 'upper'\]",
        ),
        (Box(), {}, ValueError, "region_params is empty"),
        (Box(), np.ones(N), TypeError, "must be a dict of arrays"),
        (Box(), {"upper": np.ones(5)}, ValueError, "upper must have one row for each of the 30 samples"),
        (Box(), {"upper": np.ones((N, 3))}, ValueError, r"must have shape \(30,\) or \(30, 4\), got \(30, 3\)"),
        (Box(), {"upper": np.full(N, np.inf)}, ValueError, "upper must be finite"),
        (Box(), {"upper": ["a"] * N}, ValueError, "upper must be an array of numbers"),
        (Box(), {"upper": -np.ones(N)}, ValueError, "region of row 0 is empty"),
        (Knapsack(W1, 8), {"capacity": np.arange(N) - 3.0}, ValueError, "region of row 0 is empty.*negative"),
        (GENERAL, {"b_eq": np.arange(N) + 1.0}, ValueError, "region of row [0-9]+ is empty"),
        (Polyhedron([W1], [8]), {"b_eq": np.ones(N)}, ValueError, r"only in \['b_ub', 'lower', 'upper'\]"),
    ],
)
def test_bad_input(region, params, error, message):
    X, C = data()
    with pytest.raises(error, match=message):
        SPOPlusRegressor(region).fit(X, C, region_params=params)
    with pytest.raises(error, match=message):
        spo_loss(C, C + 1.0, region, region_params=params)


def test_bad_row_params():
    with pytest.raises(ValueError, match="one row per sample, got"):
        row_params(lower=[1, 2], upper=[1, 2, 3])
    for bad in ({}, {"capacity": 3}):
        with pytest.raises(ValueError, match="needs arrays with one row per sample"):
            row_params(**bad)


def test_view_without_worst_argmin_raises(unlisted):
    _, C = data()
    region, params, _ = CASES["knapsack"]
    with pytest.raises(ValueError, match="Knapsack that varies by sample"):
        spo_loss(C, C, region, region_params=params, ties="worst")
    region, params, _ = CASES["box"]
    zero = np.zeros_like(C)
    worst = ((params["upper"] - params["lower"]) * np.abs(C)).sum(axis=1).mean()
    assert spo_loss(C, zero, region, region_params=params, ties="worst") == pytest.approx(worst)


def test_as_many_costs_as_rows_of_a_region():
    region = Box().with_rows({"upper": np.ones((3, 2))}, 3, 2)
    for n in (2, 4):
        with pytest.raises(ValueError, match="region_params has 3 rows"):
            region.solve_min(np.ones((n, 2)))
