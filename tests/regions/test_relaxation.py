"""Relaxations: what they are, that they contain the region, and training on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from regions_list import REGIONS
from scipy.optimize import LinearConstraint, linprog

import skspo as sk

RNG = np.random.default_rng(0)
A, B = RNG.uniform(1.0, 9.0, size=(2, 6)), np.array([11.0, 13.0])
PACK = sk.MixedInteger(A, B, bounds=(0, 1), sense="max")
COSTS = RNG.normal(1.0, 2.0, size=(20, 6))


@pytest.mark.parametrize("case", REGIONS, ids=lambda case: case.id)
def test_every_region_has_a_relaxation_that_contains_it_or_says_that_there_is_none(case):
    region, C = case.region, np.random.default_rng(1).normal(size=(15, case.d))
    if isinstance(region, sk.OracleRegion):
        with pytest.raises(TypeError, match="has no relaxation: nothing but its oracle is known"):
            region.relaxation()
        return
    relaxed = region.relaxation()
    assert relaxed.sense == region.sense
    costs = region.to_min(C)
    least, lower = ((costs * r.argmin(C)).sum(axis=1) for r in (region, relaxed))
    assert (lower <= least + 1e-7 * (1.0 + np.abs(least))).all()
    assert relaxed.relaxation() is relaxed
    if relaxed is not region:
        too_many_constraints = isinstance(region, sk.TravellingSalesman)
        assert too_many_constraints or any(hasattr(relaxed, name) for name in ("standard_form", "support_epigraph"))
        assert relaxed.row_shapes(case.d) == region.row_shapes(case.d)


def least_by_linprog(C, **constraints):
    return [linprog(c, bounds=(0, 1), **constraints).fun for c in C]


def test_mixed_integer_is_the_linear_program():
    relaxed = PACK.relaxation()
    assert isinstance(relaxed, sk.Polyhedron)
    value = (COSTS * relaxed.argmin(COSTS)).sum(axis=1)
    assert_allclose(-value, least_by_linprog(-COSTS, A_ub=A, b_ub=B))
    assert (value > (COSTS * PACK.argmin(COSTS)).sum(axis=1) + 1e-6).any()


def test_mixed_integer_keeps_all_constraints():
    region = sk.MixedInteger(
        A,
        B,
        np.ones((1, 6)),
        [2.0],
        (0, 1),
        integrality=[1, 0, 1, 1, 0, 1],
        constraints=LinearConstraint(A[:1], ub=9.0),
        n_jobs=2,
        time_limit=5.0,
    )
    relaxed = region.relaxation()
    assert relaxed.n_jobs == 2
    value = (COSTS * relaxed.argmin(COSTS)).sum(axis=1)
    sides = {"A_ub": np.vstack([A, A[:1]]), "b_ub": [*B, 9.0], "A_eq": np.ones((1, 6)), "b_eq": [2.0]}
    assert_allclose(value, least_by_linprog(COSTS, **sides))


@pytest.mark.parametrize("weights", [A, np.array([3, 4, 5, 6, 7, 20])])
def test_knapsack_is_fractional(weights):
    region = sk.Knapsack(weights, 11.0)
    relaxed = region.relaxation()
    assert relaxed.integer is False and region.integer is True
    value = (COSTS * relaxed.argmin(COSTS)).sum(axis=1)
    expected = least_by_linprog(
        -COSTS, A_ub=np.atleast_2d(weights), b_ub=np.full(np.atleast_2d(weights).shape[0], 11.0)
    )
    assert_allclose(-value, expected)
    assert relaxed.relaxation() is relaxed


def test_image_and_product():
    M = RNG.normal(size=(3, 6))
    image = sk.LinearImage(PACK, M, known_cost=RNG.normal(size=6))
    relaxed = image.relaxation()
    assert isinstance(relaxed.region, sk.Polyhedron) and relaxed.matrix is M
    C = image.extend(RNG.normal(size=(10, 3)))
    pulled = C[:, :3] @ M + image.known_cost
    assert_allclose(-(C * relaxed.argmin(C)).sum(axis=1), least_by_linprog(-pulled, A_ub=A, b_ub=B))
    product = sk.Product([PACK, sk.Simplex(sense="max")], sizes=[6, 2], sense="max")
    relaxed = product.relaxation()
    assert isinstance(relaxed.regions[0], sk.Polyhedron) and relaxed.sizes == [6, 2]
    C = RNG.normal(size=(10, 8))
    expected = np.array(least_by_linprog(-C[:, :6], A_ub=A, b_ub=B)) - C[:, 6:].max(axis=1)
    assert_allclose(-(C * relaxed.argmin(C)).sum(axis=1), expected)
    simple = sk.Product([sk.Simplex(), sk.Box()], sizes=[2, 2])
    assert simple.relaxation() is simple
    image = sk.LinearImage(sk.Simplex(), np.eye(3))
    assert image.relaxation() is image


X = RNG.normal(size=(30, 2))
C = RNG.uniform(1.0, 3.0, size=(30, 6)) + np.abs(X @ RNG.normal(size=(2, 6)))


@pytest.mark.parametrize("kind", [sk.SPOPlusRegressor, sk.SPOPlusRegressorCV])
def test_training_on_the_relaxation(kind):
    params = {} if kind is sk.SPOPlusRegressor else {"n_alphas": 3, "cv": 2}
    models = [kind(PACK, surrogate_region=s, **params).fit(X, C) for s in ("relaxation", PACK.relaxation())]
    assert_allclose(models[0].coef_, models[1].coef_)
    assert models[0].duality_gap_ <= 1e-6
    W = models[0].decide(X)
    assert_allclose(W, np.round(W), atol=1e-9)  # decisions are integers
    assert_allclose(W, PACK.argmin(models[0].predict(X)))


def test_parameters_that_vary_by_sample():
    sides = {"b_ub": B * RNG.uniform(0.8, 1.2, size=(30, 2))}
    model = sk.SPOPlusRegressor(PACK, surrogate_region="relaxation", alpha=0.1, tol=1e-2).fit(X, C, region_params=sides)
    other = sk.SPOPlusRegressor(PACK.relaxation(), alpha=0.1, tol=1e-2).fit(X, C, region_params=sides)
    assert_allclose(model.objective_, other.objective_)


def oracle(c):
    return (c < 0).astype(float)


UNKNOWN = sk.OracleRegion(oracle, 6)
MISTAKES = {
    "another word": (lambda: sk.SPOPlusRegressor(PACK, surrogate_region="relax").fit(X, C), ValueError,
                     "surrogate_region must be a Region, 'relaxation', 'auto' or None, got 'relax'"),
    "another word, cv": (lambda: sk.SPOPlusRegressorCV(PACK, surrogate_region="lp").fit(X, C), ValueError, "got 'lp'"),
    "a number": (lambda: sk.SPOPlusRegressor(PACK, surrogate_region=1).fit(X, C), TypeError, "must be a Region"),
    "method": (lambda: sk.SPOPlusRegressor(PACK, surrogate_region=PACK.relaxation).fit(X, C), TypeError, "be a Region"),
    "oracle": (UNKNOWN.relaxation, TypeError, "OracleRegion has no relaxation.*surrogate_region"),
    "oracle in fit": (lambda: sk.SPOPlusRegressor(UNKNOWN, surrogate_region="relaxation").fit(X, C), TypeError,
                      "OracleRegion has no relaxation"),
    "oracle in image": (sk.LinearImage(UNKNOWN, np.eye(6)).relaxation, TypeError, "OracleRegion has no relaxation"),
    "oracle in product": (sk.Product([sk.Simplex(), UNKNOWN], [2, 6]).relaxation, TypeError, "OracleRegion has no"),
    "verbose": (lambda: sk.SPOPlusRegressor(PACK, verbose="yes").fit(X, C), ValueError, "verbose must be an integer"),
    "verbose, cv": (lambda: sk.SPOPlusRegressorCV(PACK, verbose=-1).fit(X, C), ValueError, "verbose must be .*got -1"),
    "verbose, stack": (lambda: sk.SPOStackingRegressor(PACK, verbose=None).fit(X, C), ValueError, "verbose must be"),
    "verbose, network": (lambda: sk.SPOMLPRegressor(PACK, verbose=1.5).fit(X, C), ValueError, "verbose must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    call, error, text = MISTAKES[name]
    with pytest.raises(error, match=text):
        call()


def test_cross_validation_trains_on_the_relaxation_unless_decisions_are_listed():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    large = sk.MixedInteger(rng.integers(1, 9, size=(2, 30)), [40, 40], bounds=(0, 1), sense="max")
    small = sk.MixedInteger(rng.integers(1, 9, size=(2, 6)), [12, 12], bounds=(0, 1), sense="max")
    for region, surrogate in ((large, "relaxation"), (small, None), (sk.OracleRegion(oracle, 6), None)):
        C = 1.0 + rng.uniform(size=(30, 30 if region is large else 6))
        params = {"n_alphas": 3, "cv": 2, "tol": 1e-3}
        model = sk.SPOPlusRegressorCV(region, **params).fit(X, C)
        same = sk.SPOPlusRegressorCV(region, surrogate_region=surrogate, **params).fit(X, C)
        assert_array_equal(model.coef_, same.coef_)
        assert set(np.unique(model.decide(X))) <= {0.0, 1.0}
