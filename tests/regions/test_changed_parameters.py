"""Parameters that change after a region was used: the next decision uses the new value, or there is an error."""

import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.base import clone

from skspo import (
    Box,
    CvxpyRegion,
    Knapsack,
    LinearImage,
    OracleRegion,
    Polyhedron,
    Product,
    ShortestPath,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    SPOStackingRegressor,
    TopK,
    TwoStageRegressor,
    cross_val_decide,
    decide,
    decision_report,
    held_out_risk,
    normalized_spo_loss,
    spo_loss,
    spo_plus_loss,
)
from skspo.calibration.geometry import bounding_box
from skspo.regions.check import same_value

D = 4
CAPACITY = cp.Parameter(name="capacity", value=1.0)


def knapsack(w):
    return [w >= 0, w <= 1, cp.sum(w) <= CAPACITY]


def with_rows(A, b):
    return CvxpyRegion(lambda w: [w >= 0, w <= 2, A @ w <= b], n_dim=D)


def highs(C, A, b):
    return np.array([linprog(c, A_ub=A, b_ub=b, bounds=(0, 2)).fun for c in C])


def test_cvxpy_parameter_with_a_new_value():
    rng = np.random.default_rng(0)
    A, b = cp.Parameter((3, D), name="A"), cp.Parameter(3, name="b")
    region, C = with_rows(A, b), rng.normal(size=(6, D))
    for _ in range(3):
        A.value, b.value = rng.uniform(0.2, 2.0, size=(3, D)), rng.uniform(0.5, 3.0, size=3)
        W = region.argmin(C)
        assert (W @ A.value.T <= b.value + 1e-6).all()
        np.testing.assert_allclose(np.einsum("ij,ij->i", C, W), highs(C, A.value, b.value), atol=1e-6)
        high = bounding_box(region, D)[1]
        np.testing.assert_allclose(high, -highs(-np.eye(D), A.value, b.value), atol=1e-6)
    b.value[:] = 0.1  # in place: the parameter is the same object
    assert (region.argmin(C) @ A.value.T <= 0.1 + 1e-6).all()


def test_unchanged_parameters_compile_once():
    CAPACITY.value, calls = 1.0, []
    region = CvxpyRegion(lambda w: calls.append(w) or knapsack(w), D)
    for _ in range(3):
        region.argmin(-np.arange(1.0, D + 1))
    assert len(calls) == 1


def test_cvxpy_parameter_without_a_value():
    budget = cp.Parameter(2, name="budget")
    region = CvxpyRegion(lambda w: [w >= 0, cp.sum(w) <= cp.sum(budget)], 3)
    with pytest.raises(ValueError, match=r"'budget' of shape \(2,\) in the constraints has no value. Set its .value"):
        region.argmin([1.0, 2.0, 3.0])
    budget.value = [1.0, 1.0]
    assert region.argmin([-1.0, 0.0, 1.0]).sum() == pytest.approx(2.0)
    budget.value = None
    with pytest.raises(ValueError, match=r"'budget'.*has no value"):
        region.argmin([1.0, 2.0, 3.0])


def test_products_of_parameters_are_numbers():
    p, q = cp.Parameter(value=2.0), cp.Parameter(value=1.0)
    region = CvxpyRegion(lambda w: [w >= 0, w <= 1, p * q * cp.sum(w) <= 2], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert region.argmin([-3.0, -2.0, -1.0]).sum() == pytest.approx(1.0)
        q.value = 0.5
        assert region.argmin([-3.0, -2.0, -1.0]).sum() == pytest.approx(2.0)


def test_models_images_clones_and_pickles_use_the_new_value():
    rng = np.random.default_rng(0)
    CAPACITY.value = 1.0
    region = CvxpyRegion(knapsack, D, sense="max")
    X = rng.normal(size=(20, 2))
    model = SPOPlusRegressor(region, alpha=0.1, tol=1e-2).fit(X, 1.0 + rng.uniform(size=(20, D)))
    image = LinearImage(region, np.ones((1, D)))
    assert image.argmin([1.0])[0] == pytest.approx(1.0)
    copies = [region, clone(region), pickle.loads(pickle.dumps(region))]
    CAPACITY.value = 3.0
    np.testing.assert_allclose(model.decide(X).sum(axis=1), 3.0, atol=1e-6)
    np.testing.assert_allclose(image.argmin([1.0]), 3.0, atol=1e-6)
    for copy in copies:
        np.testing.assert_allclose(copy.argmin(np.ones(D)).sum(), 3.0, atol=1e-6)


# -- the region of a fitted model --------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X, C = RNG.normal(size=(30, 2)), RNG.uniform(1.0, 2.0, size=(30, 3))
WEIGHTS = [3.0, 4.0, 5.0]


def messages(call):
    """Texts of the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("method", ["decide", "chosen", "score", "report", "held_out_risk", "skspo.decide"])
def test_a_region_changed_after_fit_warns_once(method):
    model = SPOPlusRegressor(Knapsack(WEIGHTS, 8), alpha=0.1).fit(X, C)
    before = model.decide(X)
    call = {
        "decide": lambda: model.decide(X),
        "chosen": lambda: model.chosen(X),
        "score": lambda: model.score(X, C),
        "report": lambda: model.report(X, C),
        "held_out_risk": lambda: held_out_risk(model, X, C, n_resamples=100),
        "skspo.decide": lambda: decide(model, X),
    }[method]
    assert messages(call) == []
    model.set_params(region__capacity=3)
    (text,) = messages(call)
    assert "region of SPOPlusRegressor was changed (capacity) after fit" in text
    assert "Call fit again, or pass region_params={'capacity': ...}" in text
    assert messages(call) == []
    np.testing.assert_array_equal(model.decide(X), before)
    assert messages(lambda: model.fit(X, C).decide(X)) == []
    assert (model.decide(X) @ WEIGHTS <= 3 + 1e-9).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model", [SPOPlusRegressorCV(n_alphas=2, cv=2), TwoStageRegressor(), SPORegressor(n_restarts=0)]
)
def test_every_estimator_compares_regions(model):
    fitted = clone(model).set_params(region=Product([Box(0, 1), Simplex()], sizes=[1, 2])).fit(X, C)
    fitted = pickle.loads(pickle.dumps(fitted))
    assert messages(lambda: fitted.set_params(region=clone(fitted.region)).decide(X)) == []
    fitted.region = Product([Box(0, 2), Simplex()], sizes=[1, 2])
    assert len(messages(lambda: fitted.decide(X))) == 1
    assert messages(lambda: fitted.predict(X)) == []


def test_partial_fit_takes_the_changed_region():
    model = SPOPlusRegressor(Knapsack(WEIGHTS, 8)).partial_fit(X, C)
    model.set_params(region__capacity=3)
    assert messages(lambda: model.partial_fit(X, C)) == []
    assert messages(lambda: model.decide(X)) == []


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ([1, 2], np.array([1.0, 2.0]), True),
        ([1, 2], (1, 3), False),
        ([np.ones(2), "a"], [np.ones(2), "a"], True),
        ([np.ones(2), "a"], [np.zeros(2), "a"], False),
        (None, 3.0, False),
        (3.0, "3", False),
        (OracleRegion(np.sign), OracleRegion(np.cos), True),  # not functions of Python: cannot be compared
        (OracleRegion(messages), OracleRegion(highs), False),
        ([(0, 1), (1, 2)], [(0, 1), (1, 2)], True),
        (object(), object(), True),
        (Box(0, 1), Simplex(), False),
        (LinearImage(Simplex(), np.eye(2)), LinearImage(Simplex(sense="max"), np.eye(2)), False),
    ],
)
def test_values_of_parameters_are_compared(a, b, same):
    assert same_value(a, b) is same


# -- single values in region_params ------------------------------------------------------------------------------------

SINGLE = {
    "capacity": (Knapsack(WEIGHTS, 8), "capacity", 4.0),
    "available": (Simplex(), "available", [True, False, True]),
    "k": (TopK(1), "k", 2),
    "upper": (Box(0, 1), "upper", [3.0, 2.0, 1.0]),
    "upper, one number": (Box(0, 1), "upper", 2.0),
    "b_ub": (Polyhedron([[1.0, 1.0, 2.0]], [2.0], bounds=(0, 1)), "b_ub", [1.5]),
    "target": (ShortestPath([("s", "a"), ("a", "t"), ("s", "t")], "s", "t"), "target", "a"),
    "target, pair": (ShortestPath([((0, 0), (0, 1)), ((0, 1), (1, 1)), ((0, 0), (1, 1))]), "target", (0, 1)),
    "image": (LinearImage(Simplex(), np.eye(3), known_cost=[0.0, 0.0, 0.0]), "known_cost", [1.0, 2.0, 3.0]),
}


def repeated(value, n):
    """The value for each of n rows."""
    return [value] * n


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_single_values_serve_all_rows(name, n):
    region, key, value = SINGLE[name]
    d = region.resolve_dim(region.n_dim or 3)
    costs = RNG.normal(size=(n, d))
    expected = region.with_rows({key: repeated(value, n)}, n, d).argmin(costs)
    np.testing.assert_array_equal(region.with_rows({key: value}, n, d).argmin(costs), expected)
    if key not in ("available", "known_cost"):
        np.testing.assert_allclose(clone(region).set_params(**{key: value}).argmin(costs), expected, atol=1e-9)


def test_single_value_or_one_number_per_row():
    """With as many rows as variables an array of numbers could mean both."""
    costs, upper = -np.ones((3, 3)), [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match=r"upper of shape \(3,\) could be one number for each of the 3 samples"):
        Box(0, 1).with_rows({"upper": upper}, 3, 3)
    one = Box(0, 1).with_rows({"upper": np.reshape(upper, (1, -1))}, 3, 3).argmin(costs)
    np.testing.assert_array_equal(one, [upper] * 3)
    np.testing.assert_array_equal(Box(0, 1).with_rows({"upper": upper}, 2, 3).argmin(costs[:2]), [upper] * 2)
    rows = Simplex().with_rows({"available": [True, False, True]}, 3, 3)  # a mask has one row per sample otherwise
    assert (rows.argmin(np.array([[2.0, 1.0, 3.0]] * 3)) == [1, 0, 0]).all()
    with pytest.raises(ValueError, match=r"one row for each of the 4 samples, or be a single value of shape \(3,\)"):
        Box(0, 1).with_rows({"upper": [1.0, 2.0]}, 4, 3)
    with pytest.raises(ValueError, match="target 'x' is unknown"):
        SINGLE["target"][0].with_rows({"target": "x"}, 4, 3)


FITTED = Knapsack(WEIGHTS, 8)
TODAY = {"capacity": 4.0}
ROWS = {"capacity": np.full(len(X), 4.0)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "use",
    [
        lambda p: SPOPlusRegressor(FITTED, alpha=0.1).fit(X, C, region_params=p).predict(X),
        lambda p: SPOPlusRegressor(FITTED, random_state=0).partial_fit(X, C, region_params=p).predict(X),
        lambda p: SPOPlusRegressorCV(FITTED, n_alphas=3, cv=2).fit(X, C, region_params=p).predict(X),
        lambda p: SPORegressor(FITTED, n_restarts=0, random_state=0).fit(X, C, region_params=p).predict(X),
        lambda p: SPOMLPRegressor(FITTED, max_iter=2, random_state=0).fit(X, C, region_params=p).predict(X),
        lambda p: TwoStageRegressor(region=FITTED).fit(X, C, region_params=p).decide(X, region_params=p),
        lambda p: (
            SPOStackingRegressor(FITTED, [("a", SPOPlusRegressor(FITTED, alpha=0.1))], cv=2)
            .fit(X, C, region_params=p)
            .predict(X)
        ),
        lambda p: SPOPlusRegressor(FITTED, alpha=0.1).fit(X, C, region_params=p).score(X, C, region_params=p),
        lambda p: cross_val_decide(SPOPlusRegressor(FITTED, alpha=0.1), X, C, cv=3, region_params=p),
        lambda p: spo_loss(C, C[::-1], FITTED, region_params=p),
        lambda p: spo_plus_loss(C, C[::-1], FITTED, region_params=p),
        lambda p: normalized_spo_loss(C, C[::-1], FITTED, region_params=p),
    ],
)
def test_single_values_at_every_method(use):
    np.testing.assert_array_equal(use(TODAY), use(ROWS))


def test_masks_of_all_folds():
    mask = [True, False, True]
    rows = {"available": np.tile(mask, (len(X), 1))}
    expected = cross_val_decide(SPOPlusRegressor(Simplex(), alpha=0.1), X, C, cv=3, region_params=rows)
    for one in (mask, [mask]):
        W = cross_val_decide(SPOPlusRegressor(Simplex(), alpha=0.1), X, C, cv=3, region_params={"available": one})
        np.testing.assert_array_equal(W, expected)


def test_reports_and_bounds_take_single_values():
    model = SPOPlusRegressor(FITTED, alpha=0.1).fit(X, C, region_params=TODAY)
    one, rows = (decision_report(model, X, C, region_params=p).to_dict() for p in (TODAY, ROWS))
    assert one == rows
    one, rows = (held_out_risk(model, X, C, region_params=p, n_resamples=100) for p in (TODAY, ROWS))
    assert str(one) == str(rows)


def test_dask_takes_single_values():
    da = pytest.importorskip("dask.array")
    model = SPOPlusRegressor(FITTED, alpha=0.1).fit(X, C, region_params=TODAY)
    lazy_X, lazy_C = da.from_array(X, chunks=(8, 2)), da.from_array(C, chunks=(8, 3))
    W = model.decide(lazy_X, region_params=TODAY).compute()
    np.testing.assert_array_equal(W, model.decide(X, region_params=TODAY))
    assert model.score(lazy_X, lazy_C, region_params=TODAY) == pytest.approx(model.score(X, C, region_params=ROWS))
    with pytest.raises(ValueError, match="single values that serve all rows"):
        model.decide(lazy_X, region_params=np.zeros(3, dtype=[("capacity", float)]))


def test_values_of_today_are_used_without_a_warning():
    model = SPOPlusRegressor(FITTED, alpha=0.1).fit(X, C)
    for params in (TODAY, ROWS):
        assert messages(lambda params=params: model.decide(X, region_params=params)) == []
        assert messages(lambda params=params: model.chosen(X, region_params=params)) == []
    assert (model.decide(X, region_params=TODAY) @ WEIGHTS <= 4.0 + 1e-9).all()
    # A figure in another region than that of training is worth a warning.
    assert "was fitted without region_params" in messages(lambda: model.score(X, C, region_params=ROWS))[0]
