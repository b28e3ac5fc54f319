"""Costs that no decision can use: nothing depends on what the data contain there."""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import spo_plus_objective
from sklearn import config_context
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, cross_val_score

import skspo as sk
from skspo.boosting import XGBoostObjective

N, P, D = 60, 2, 9


def _problem(seed: int = 0):
    """Linear costs with noise, and which options are available."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P))
    C = 10.0 + X @ rng.normal(size=(P, D)) + rng.normal(size=(N, D))
    available = rng.random((N, D)) < 0.6
    available[:, :3] |= available.sum(axis=1, keepdims=True) < 3
    return X, C, available


def _fills(C, hole, seed: int = 1):
    rng = np.random.default_rng(seed)
    values = [np.nan, 0.0, 1000.0, -np.inf, rng.normal(size=C.shape) * 10.0 ** rng.integers(-3, 4, size=C.shape)]
    return [np.where(hole, value, C) for value in values]


def _pairs_available(available):
    """A mask of the pairs of an assignment that leaves the diagonal."""
    mask = available.copy()
    mask[:, [0, 4, 8]] = True
    return mask


EDGES = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d"), ("c", "e"), ("d", "e"), ("d", "f"), ("e", "f")]
STREETS = [("s", "a"), ("s", "b"), ("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("a", "c"), ("c", "a"), ("c", "t")]


def _leaves_s(ends):
    """Edges from s are used by trips that start there."""
    used = np.ones((N, D), dtype=bool)
    used[ends != "s", :2] = False
    return used


def _regions():
    """Region, parameters of each row, and which costs exist, from the definition."""
    _, _, available = _problem()
    pairs = _pairs_available(available)
    yield "simplex", sk.Simplex(), {"available": available}, available
    yield "simplex, maximized", sk.Simplex(sense="max"), {"available": available}, available
    yield "top k", sk.TopK(2), {"available": available}, available
    yield "box", sk.Box(-1.0, 1.0), {"available": available}, available
    yield "box of zero width", sk.Box(0.0, 1.0), {"upper": available.astype(float)}, available
    yield "knapsack", sk.Knapsack([1, 2, 3, 1, 2, 3, 1, 2, 3], 6), {"available": available}, available
    fractions = sk.Knapsack([1, 2, 3, 1, 2, 3, 1, 2, 3], 6, integer=False)
    yield "fractional knapsack", fractions, {"available": available}, available
    yield "assignment", sk.Assignment(3), {"available": pairs}, pairs
    polyhedron = sk.Polyhedron(A_eq=np.ones((1, D)), b_eq=[1.0])
    yield "polyhedron", polyhedron, {"upper": available.astype(float)}, available
    source = np.where(np.arange(N) % 3 == 0, "b", "a")
    used = np.ones((N, D), dtype=bool)
    used[source == "b", :2] = False  # edges that leave a
    yield "paths", sk.ShortestPath(EDGES, "a", "f"), {"source": source}, used
    ends = np.where(np.arange(N) % 3 == 0, "s", "a")
    yield "streets both ways", sk.ShortestPath(STREETS, "s", "t"), {"source": ends}, _leaves_s(ends)
    yield "dead edges", sk.ShortestPath(EDGES, "b", "f"), None, np.arange(D) >= 2
    yield "image", sk.LinearImage(sk.Simplex(), np.eye(D)[::-1]), {"available": available}, available[:, ::-1]
    product = sk.Product([sk.ShortestPath([*EDGES[:5], ("d", "g")], "a", "d"), sk.Simplex()], [6, 3])
    yield "product", product, None, np.arange(D) != 5


REGIONS = {name: rest for name, *rest in _regions()}


def _numbers(value):
    """All numbers inside dicts, lists and tuples."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in _numbers(value[key])]
    if isinstance(value, list | tuple):
        return [number for one in value for number in _numbers(one)]
    array = np.asarray(value)
    return [array] if array.dtype.kind in "biuf" else []


FITTED = (
    "coef_ intercept_ objective_ lower_bound_ duality_gap_ certificate_radius_ cv_results_ cv_predictions_ alpha_ "
    "alphas_ cost_scale_ step_ coefs_ intercepts_ weights_ scales_ stack_share_ loss_"
).split()


def _results(model, X, y, params, fit_params=None):
    """Everything that a fit and its evaluation give."""
    given = {} if params is None else {"region_params": params}
    model.fit(X, y, **given)
    found = [getattr(model, name) for name in FITTED if hasattr(model, name)]
    found += [model._baselines.mean, model._baselines.coef, model._baselines.intercept]
    assert np.isfinite(model.predict(X)).all()
    found += [model.predict(X), model.decide(X, **given), model.score(X, y, **given)]
    report = model.report(X, y, **given)
    found += [report.rows, report.intervals, report.chosen]
    risk = sk.held_out_risk(model, X, y, loss_cap=10.0, n_resamples=100, **given)
    found += [risk.mean_loss, risk.interval, risk.upper_bound]
    return _numbers([one for one in found if one is not None])


def _assert_fill_does_not_matter(make, name, count=5):
    region, params, exists = REGIONS[name]
    X, C, _ = _problem()
    exists = np.broadcast_to(exists, C.shape)
    assert not exists.all()
    first = None
    for y in _fills(C, ~exists)[:count]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small problems need not be certified
            found = _results(make(region), X, y, params)
        if first is None:
            first = found
        assert len(found) == len(first)
        for one, other in zip(found, first, strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize("name", REGIONS)
def test_possible_is_what_the_region_can_choose(name):
    region, params, exists = REGIONS[name]
    view = region.with_rows(params, N, D)
    exists = np.broadcast_to(exists, (N, D))
    assert_array_equal(view.possible(N, D), exists)
    assert_array_equal(view.take(np.arange(7)).possible(7, D), exists[:7])
    rng = np.random.default_rng(3)
    chosen = np.zeros((N, D))
    for _ in range(40):
        chosen = np.maximum(chosen, np.abs(view.argmin(rng.normal(size=(N, D)))))
    assert not chosen[~exists].any()
    if name not in ("knapsack", "assignment"):  # items may be too heavy, and pairs leave no partner for the others
        assert chosen[exists].all()


@pytest.mark.parametrize("name", REGIONS)
def test_spo_plus(name):
    _assert_fill_does_not_matter(lambda region: sk.SPOPlusRegressor(region, alpha=0.01, tol=1e-3), name)


PRIORS = ["least_squares", "ridge"]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", ["simplex", "assignment", "paths"])
def test_spo_plus_with_cross_validation(name, prior):
    def make(region):
        return sk.SPOPlusRegressorCV(region, prior=prior, n_alphas=4, cv=3, store_cv_predictions=True)

    _assert_fill_does_not_matter(make, name, count=4)


MODELS = {
    "spo": lambda region: sk.SPORegressor(region, max_iter=20, n_restarts=0, random_state=0),
    "spo, cv": lambda region: sk.SPORegressorCV(region, max_iter=20, n_alphas=3, cv=3, random_state=0),
    "network": lambda region: sk.SPOMLPRegressor(region, hidden_layer_sizes=4, max_iter=5, random_state=0),
    "network, squared": lambda region: sk.SPOMLPRegressor(region, loss="squared_error", max_iter=5, random_state=0),
    "network, early stopping": lambda region: sk.SPOMLPRegressor(
        region, loss="absolute_error", max_iter=5, early_stopping=True, random_state=0
    ),
    "least squares": lambda region: sk.TwoStageRegressor(region=region),
    "visible": lambda region: sk.TwoStageRegressor(LinearRegression(), region, costs="visible"),
    "forest": lambda region: sk.TwoStageRegressor(RandomForestRegressor(5, random_state=0), region),
    "search": lambda region: sk.TwoStageRegressor(GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3), region),
    "stack": lambda region: sk.SPOStackingRegressor(
        region,
        [("ridge", Ridge()), ("forest", RandomForestRegressor(5, random_state=0)), ("spo+", sk.SPOPlusRegressor())],
        cv=3,
        random_state=0,
    ),
    "stack, spo+": lambda region: sk.SPOStackingRegressor(
        region,
        [("ridge", Ridge()), ("spo+", sk.SPOPlusRegressorCV(n_alphas=3))],
        weights="equal",
        costs="visible",
        cv=3,
        random_state=0,
    ),
}


@pytest.mark.parametrize("name", ["simplex", "dead edges"])
@pytest.mark.parametrize(
    "model", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("spo, cv", "stack"))) for name in MODELS]
)
def test_other_estimators(model, name):
    _assert_fill_does_not_matter(MODELS[model], name, count=3)


# -- other ways in -----------------------------------------------------------------------------------------------------


def _same_for_all_fills(compute, exists=None):
    """``compute(X, y, y_test, rows)`` gives the same numbers whatever fills the costs that do not exist."""
    X, C, available = _problem()
    exists = available if exists is None else np.broadcast_to(exists, C.shape)
    rows = sk.row_params(available=available)
    results = [_numbers(compute(X, y, rows)) for y in _fills(C, ~exists)[:4]]
    assert results[0]
    for found in results[1:]:
        assert len(found) == len(results[0])
        for one, other in zip(found, results[0], strict=True):
            assert_array_equal(one, other)


def test_partial_fit():
    def compute(X, y, rows):
        model = sk.SPOPlusRegressor(sk.Simplex(), random_state=0)
        network = sk.SPOMLPRegressor(sk.Simplex(), random_state=0)
        for part in (slice(0, 30), slice(30, None)):
            model.partial_fit(X[part], y[part], region_params=rows[part])
            network.partial_fit(X[part], y[part], region_params=rows[part])
        return [model.coef_, model.intercept_, *network.coefs_, *network.intercepts_]

    _same_for_all_fills(compute)


def test_weights_offset_and_sparse_features():
    def compute(X, y, rows):
        given = {"sample_weight": np.arange(N) % 3, "offset": np.linspace(0.0, 1.0, D), "region_params": rows}
        plain = sk.SPOPlusRegressor(sk.TopK(2), alpha=0.1, prior="ridge").fit(X, y, **given)
        cross = sk.SPOPlusRegressorCV(sk.Simplex(), n_alphas=3, cv=3).fit(X, y, **given)
        wide = sp.csr_array(np.pad(X, ((0, 0), (0, 40_000))))  # too wide to be made dense
        sparse = sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1, prior="least_squares").fit(wide, y, region_params=rows)
        return [plain.coef_, plain._baselines.coef, cross.coef_, cross.cost_scale_, sparse.coef_[:, :P]]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _same_for_all_fills(compute)


def test_shared_models():
    rng = np.random.default_rng(5)
    items = rng.normal(size=(N, D * 2))

    def compute(X, y, rows):
        found = []
        for model in (
            sk.SPOPlusRegressor(sk.Simplex(), shared=True, alpha=0.1, prior="least_squares"),
            sk.SPOPlusRegressor(sk.Simplex(), shared=True, alpha=0.1, prior="ridge"),
            sk.SPOMLPRegressor(sk.Simplex(), shared=True, max_iter=3, loss="squared_error", random_state=0),
            sk.TwoStageRegressor(Ridge(), sk.Simplex(), shared=True),
            sk.SPOStackingRegressor(sk.Simplex(), [("ridge", Ridge())], shared=True, cv=3),
        ):
            model.fit(items, y, region_params=rows)
            found += [model.predict(items), model._baselines.coef, model.report(items, y, region_params=rows).rows]
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _same_for_all_fills(compute)


def test_shared_models_ignore_edges_that_are_never_used():
    """One regression of all costs: zeros of costs that do not exist are no data."""
    region, _, exists = REGIONS["dead edges"]
    rng = np.random.default_rng(6)
    items = rng.normal(size=(N, D, 2))
    C = 10.0 + items @ [1.0, -2.0]
    y = np.where(exists, C, np.nan)
    X = items.reshape(N, -1)
    for model in (
        sk.SPOPlusRegressor(region, shared=True),
        sk.SPOPlusRegressor(region, shared=True, alpha=1.0, prior="ridge"),
        sk.TwoStageRegressor(LinearRegression(), region, shared=True),
    ):
        model.fit(X, y)
        assert_allclose(model._baselines.least_squares(X), C, rtol=1e-6)
    model = sk.SPOPlusRegressor(region, shared=True).fit_chunks([(X[:25], y[:25]), (X[25:], y[25:])])
    assert_allclose(model._baselines.least_squares(X), C, rtol=1e-6)


def test_surrogate_region_and_path():
    def compute(X, y, rows):
        region = sk.Knapsack([1, 2, 3, 1, 2, 3, 1, 2, 3], 6)
        model = sk.SPOPlusRegressor(region, surrogate_region="relaxation", alpha=0.1).fit(X, y, region_params=rows)
        path = sk.spo_plus_path(X, y, sk.Simplex(), n_alphas=3, region_params=rows)
        return [model.coef_, model.objective_, *path]

    _same_for_all_fills(compute)


def test_a_cost_that_the_surrogate_can_use_must_be_there():
    X, C, available = _problem()
    hole = np.where(available, C, np.nan)
    model = sk.SPOPlusRegressor(sk.Box(0.0, 1.0), surrogate_region=sk.Box(0.0, 1.0))
    model.fit(X, hole, region_params={"upper": available.astype(float)})
    with pytest.raises(ValueError, match="contains NaN"):
        sk.SPOPlusRegressor(sk.Box(0.0, [0.0] * 2), surrogate_region=sk.Box(0.0, 1.0)).fit(X, hole[:, :2])


def test_searches_scorers_and_held_out_decisions():
    def compute(X, y, rows):
        # Not a pipeline: in scikit-learn 1.6 a search passes nothing on to the score of a pipeline.
        model = sk.SPOPlusRegressor(sk.Simplex()).set_fit_request(region_params=True)
        model.set_score_request(region_params=True)
        search = GridSearchCV(model, {"alpha": [0.01, 1.0]}, cv=3)
        search.fit(X, y, region_params=rows)
        scorer = sk.make_spo_scorer(sk.Simplex()).set_score_request(region_params=True)
        forest = sk.TwoStageRegressor(RandomForestRegressor(5, random_state=0), sk.Simplex())
        forest.set_fit_request(region_params=True)
        scores = cross_val_score(forest, X, y, scoring=scorer, cv=3, params={"region_params": rows})
        W = sk.cross_val_decide(Ridge(), X, y, region=sk.Simplex(), cv=3, region_params=rows)
        return [search.cv_results_["mean_test_score"], search.best_estimator_.coef_, scores, W]

    with config_context(enable_metadata_routing=True):
        _same_for_all_fills(compute)


def test_metrics_and_losses():
    _, C, available = _problem()
    C_hat = C + np.random.default_rng(2).normal(size=C.shape)

    def compute(X, y, rows):
        found = [
            metric(y, C_hat, sk.Simplex(), region_params=rows, per_sample=True)
            for metric in (sk.spo_loss, sk.spo_plus_loss, sk.normalized_spo_loss)
        ]
        found.append(sk.spo_loss(y, C_hat, sk.Simplex(), region_params=rows, ties="worst"))
        view = sk.Simplex().with_rows(rows, N, D)
        return [*found, view.visible_costs(np.where(np.isfinite(y), y, 7.0))]

    _same_for_all_fills(compute)
    open_costs, open_predictions = np.where(available, C, np.inf), np.where(available, C_hat, np.inf)
    by_hand = C[np.arange(N), open_predictions.argmin(axis=1)] - open_costs.min(axis=1)
    found = sk.spo_loss(C, C_hat, sk.Simplex(), region_params={"available": available}, per_sample=True)
    assert_allclose(found, by_hand, atol=1e-12)


def test_losses_boosting_and_bounds_of_a_graph_with_dead_edges():
    region, _, exists = REGIONS["dead edges"]

    def compute(X, y, rows):
        C_hat = np.tile(np.linspace(1.0, 2.0, D), (N, 1))
        model = sk.SPOPlusRegressor(region).fit(X, y)
        risk = sk.held_out_risk(model, X, y, cost_bounds=(4.0, 16.0), n_resamples=100)
        return [
            *sk.SPOPlusLoss(region).value_gradient(y, C_hat),
            *sk.SquaredLoss(region).value_gradient(y, C_hat),
            *sk.AbsoluteLoss(region).value_gradient(y, C_hat),
            *XGBoostObjective(region)(y, C_hat),
            *[risk.upper_bound, risk.mean_loss],
        ]

    _same_for_all_fills(compute, exists)


def test_reports_of_models_with_training_data():
    def compute(X, y, rows):
        model = LinearRegression().fit(X, np.where(np.isfinite(y), 1.0, 0.0) * 0.0)
        report = sk.decision_report(
            model, X, y, X_train=X, C_train=y, region=sk.Simplex(), region_params=rows, region_params_train=rows
        )
        return [report.rows, report.intervals]

    _same_for_all_fills(compute)


def test_chunks_and_memory_maps(tmp_path):
    region, _, exists = REGIONS["dead edges"]

    def compute(X, y, rows):
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        found = []
        for chunks in (
            [(X[:25], y[:25]), (X[25:], y[25:])],
            sk.ChunkedData.from_npy(tmp_path / "X.npy", tmp_path / "y.npy", chunk_rows=20),
        ):
            model = sk.SPOPlusRegressor(region).fit_chunks(chunks)
            found += [model.coef_, model.intercept_, model.objective_, model.lower_bound_, model._baselines.mean]
        return found

    _same_for_all_fills(compute, exists)
    X, C, _ = _problem()
    whole = sk.SPOPlusRegressor(region).fit(X, C)
    chunked = sk.SPOPlusRegressor(region).fit_chunks([(X[:25], np.where(exists, C, np.nan)[:25]), (X[25:], C[25:])])
    assert_allclose(chunked.objective_, whole.objective_, atol=1e-5)


def test_dask_collections():
    da = pytest.importorskip("dask.array")
    region, _, exists = REGIONS["dead edges"]

    def compute(X, y, rows):
        X_da, y_da = da.from_array(X, chunks=(25, P)), da.from_array(y, chunks=(25, D))
        model = sk.SPOPlusRegressor(region).fit(X_da, y_da)
        return [model.coef_, model.intercept_, model.objective_, model.score(X_da, y_da)]

    _same_for_all_fills(compute, exists)


# -- what the figures are ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_mean_and_rmse_are_those_of_the_open_rows(weighted):
    X, C, available = _problem()
    weight = np.random.default_rng(4).integers(1, 4, size=N).astype(float) if weighted else None
    params = {"available": available}
    y = np.where(available, C, np.nan)
    by_hand = [
        LinearRegression().fit(X[rows], C[rows, j], sample_weight=None if weight is None else weight[rows])
        for j, rows in enumerate(available.T)
    ]
    mean = [
        np.average(C[rows, j], weights=None if weight is None else weight[rows]) for j, rows in enumerate(available.T)
    ]
    predicted = np.column_stack([model.predict(X) for model in by_hand])
    share = available * (1.0 if weight is None else weight[:, None])
    rmse = np.sqrt((share * (predicted - C) ** 2).sum() / share.sum())
    for make in (sk.SPOPlusRegressor, sk.TwoStageRegressor, sk.SPOMLPRegressor):
        model = make(region=sk.Simplex())
        if make is sk.SPOMLPRegressor:
            model.set_params(max_iter=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, sample_weight=weight, region_params=params)
        assert_allclose(model._baselines.mean, mean)
        assert_allclose(model._baselines.least_squares(X), predicted)
        report = model.report(X, y, sample_weight=weight, region_params=params)
        assert_allclose(report.rows["least squares"]["rmse"], rmse)
    regret = sk.normalized_spo_loss(y, predicted, sk.Simplex(), sample_weight=weight, region_params=params)
    assert_allclose(report.rows["least squares"]["normalized_spo_loss"], regret)


def test_prior_of_an_infinite_penalty():
    X, C, available = _problem()
    y, params = np.where(available, C, np.nan), {"available": available}
    model = sk.SPOPlusRegressorCV(sk.Simplex(), prior="ridge", alphas=[np.inf], cv=2).fit(X, y, region_params=params)
    mean = [C[i, available[i]].mean() for i in range(N)]
    penalties = np.logspace(-6.0, 3.0, 19)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    differences = C - np.array(mean)[:, None]
    predicted = []
    for j, rows in enumerate(available.T):
        n = rows.sum()
        alpha = RidgeCV(n * penalties).fit(Z[rows], differences[rows, j]).alpha_
        predicted.append(Ridge(alpha).fit(Z[rows], C[rows, j]).predict(Z))
    assert_allclose(model.predict(X), np.column_stack(predicted), rtol=1e-6)


def test_typical_cost_is_that_of_differences_between_open_options():
    X, C, available = _problem()
    params = {"available": available}
    sizes = [np.square(C[i, available[i]] - C[i, available[i]].mean()).sum() for i in range(N)]
    model = sk.SPOPlusRegressorCV(sk.Simplex(), alphas=[1.0], cv=2).fit(X, C, region_params=params)
    assert_allclose(model.cost_scale_, np.sqrt(np.mean(sizes)))
    # Adding a number to all costs of a sample changes no decision.
    moved = sk.SPOPlusRegressorCV(sk.Simplex(), alphas=[1.0], cv=2).fit(X, C + 1e4, region_params=params)
    assert_allclose(moved.cost_scale_, model.cost_scale_, rtol=1e-9)
    assert_allclose(moved.objective_, model.objective_, rtol=1e-6)


def test_visible_costs_beside_bounds_of_predictions():
    _assert_fill_does_not_matter(MODELS["visible"], "streets both ways", count=3)


@pytest.mark.parametrize("name", ["simplex", "assignment", "paths"])
def test_visible_costs_are_orthogonal_to_what_the_open_decisions_share(name):
    region, params, exists = REGIONS[name]
    _, C, _ = _problem()
    view = region.with_rows(params, N, D)
    visible, normals = view.visible_costs(C), view._always_hidden(D)
    for i in range(N):
        N_i = normals[:, exists[i]].T
        expected = C[i, exists[i]] - N_i @ np.linalg.lstsq(N_i, C[i, exists[i]], rcond=1e-8)[0]
        assert_allclose(visible[i, exists[i]], expected, atol=1e-9)
        assert not visible[i, ~exists[i]].any()


def test_filling_with_zero_gives_no_gain_that_does_not_exist():
    """Linear costs: least squares of the open rows is hard to beat, whatever is filled in."""
    rng = np.random.default_rng(0)
    B, level = rng.normal(size=(5, 8)), 10.0 + rng.normal(size=8)

    def draw(n):
        X = rng.normal(size=(n, 5))
        available = rng.random((n, 8)) < 0.5
        available[np.arange(n), rng.integers(8, size=n)] = True
        return X, np.where(available, level + X @ B + 0.5 * rng.normal(size=(n, 8)), 0.0), available

    (X, C, available), (X_new, C_new, new) = draw(400), draw(2000)
    model = sk.SPOPlusRegressor(sk.Simplex()).fit(X, C, region_params={"available": available})
    rows = model.report(X_new, C_new, region_params={"available": new}).rows
    regret = {name: row["normalized_spo_loss"] for name, row in rows.items()}
    assert regret["least squares"] < 1.1 * regret["SPOPlusRegressor"]


# -- refusals and warnings ---------------------------------------------------------------------------------------------

NAN_SOMEWHERE = {
    "fit": lambda X, y, params: sk.SPOPlusRegressor(sk.Simplex()).fit(X, y, region_params=params),
    "two stages": lambda X, y, params: sk.TwoStageRegressor(region=sk.Simplex()).fit(X, y, region_params=params),
    "stack": lambda X, y, params: sk.SPOStackingRegressor(sk.Simplex(), [("ridge", Ridge())]).fit(
        X, y, region_params=params
    ),
    "metric": lambda X, y, params: sk.spo_loss(y, np.zeros(y.shape), sk.Simplex(), region_params=params),
    "chunks": lambda X, y, params: sk.SPOPlusRegressor(sk.Simplex()).fit_chunks([(X, y)]),
    "cross_val_decide": lambda X, y, params: sk.cross_val_decide(
        Ridge(), X, y, region=sk.Simplex(), region_params=params
    ),
}


@pytest.mark.parametrize("where", NAN_SOMEWHERE)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_missing_cost_that_a_decision_can_use_is_refused(where, value):
    X, C, available = _problem()
    y = np.where(available, C, np.nan)
    row = 50  # in the training part of the first fold
    column = int(np.flatnonzero(available[row])[-1])
    y[row, column] = value
    with pytest.raises(ValueError, match=r"NaN|infinity") as caught:
        NAN_SOMEWHERE[where](X, y if where != "chunks" else np.where(available, y, 0.0), {"available": available})
    if where in ("fit", "two stages", "stack", "metric", "chunks"):
        assert f"row {row}, column {column}" in str(caught.value)
        assert "not available" in str(caught.value)


def test_a_cost_that_no_sample_has_is_predicted_as_zero_with_a_warning():
    X, C, available = _problem()
    available[:, 4] = False
    y, params = np.where(available, C, np.nan), {"available": available}
    for model in (
        sk.SPOPlusRegressor(sk.Simplex()),
        sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1, prior="ridge"),
        sk.TwoStageRegressor(RandomForestRegressor(3, random_state=0), sk.Simplex()),
    ):
        with pytest.warns(UserWarning, match="No sample has a cost for 1 of 9 decision variables.*number 4"):
            model.fit(X, y, region_params=params)
        assert_allclose(model.predict(X)[:, 4], 0.0, atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # edges that are never used need no warning
        sk.SPOPlusRegressor(REGIONS["dead edges"][0]).fit(X, C)


def test_least_squares_of_the_open_rows_is_fast():
    """One factorization per cost, which takes no longer than the regressions of scikit-learn."""
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(4000, 20)), rng.normal(size=(4000, 40))
    available = rng.random(C.shape) < 0.7
    available[:, 0] = True

    def seconds(fit):
        start = time.process_time()
        fit()
        return time.process_time() - start

    box = sk.Box()
    masked = seconds(lambda: spo_plus_objective(X, C * available, box, possible=available))
    each = seconds(lambda: [LinearRegression().fit(X[rows], C[rows, j]) for j, rows in enumerate(available.T)])
    assert masked < 3.0 * each


@pytest.mark.parametrize("prior", ["zero", "ridge"])
def test_without_time_for_one_regression_per_cost(prior):
    """The regressions share the time; before, each of them had all of it, and some failed."""
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(2000, 200)), rng.normal(size=(2000, 40))
    available = rng.random(C.shape) < 0.7
    available[:, 0] = True
    model = sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1, prior=prior, time_limit=1e-3)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, C, region_params={"available": available})
    assert time.process_time() - start < 3.0
    assert np.isfinite(model.coef_).all()
