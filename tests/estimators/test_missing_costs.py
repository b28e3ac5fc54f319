"""Costs that no decision can use: nothing depends on what the data contain there."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV

import skspo as sk

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


def _regions():
    """Region, parameters of each row, and which costs exist, from the definition."""
    _, _, available = _problem()
    pairs = _pairs_available(available)
    yield "simplex", sk.Simplex(), {"available": available}, available
    yield "simplex, maximised", sk.Simplex(sense="max"), {"available": available}, available
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
    yield "dead edges", sk.ShortestPath(EDGES, "b", "f"), None, np.arange(D) >= 2
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
        weights="least_squares",
        costs="visible",
        cv=3,
        random_state=0,
    ),
}


@pytest.mark.parametrize("name", ["simplex", "dead edges"])
@pytest.mark.parametrize("model", MODELS)
def test_other_estimators(model, name):
    _assert_fill_does_not_matter(MODELS[model], name, count=3)
