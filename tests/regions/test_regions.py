"""Decisions of every region of ``regions_list.py`` against a model that is not our code, and regions as objects."""

from __future__ import annotations

import pickle

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from regions_list import CENTER, COVARIANCE, Q, cheapest, cut_ball, dearest
from scipy.optimize import Bounds, LinearConstraint, linprog
from sklearn.base import clone

import skspo as sk
from skspo.calibration import CertifiedFloat, diameter, region_geometry, relative_width
from skspo.calibration.geometry import bounding_box
from skspo.regions.capabilities import equalities_of

try:
    import cloudpickle
except ImportError:  # joblib before 1.6 has its own copy
    from joblib.externals import cloudpickle

from region_truth import CASES, costs, every, knows, row_dot, size, truth

# -- argmin ------------------------------------------------------------------------------------------------------------


@every
def test_argmin_is_feasible_and_as_good_as_the_model(case):
    C = costs(case.d)
    W = case.region.argmin(C)
    assert W.shape == C.shape and W.dtype == np.float64
    assert truth(case.id).violation(W).max() <= 1e-8
    C_min = -C if case.region.sense == "max" else C
    best = truth(case.id).best(C_min)
    unit = np.maximum(np.abs(C).max(axis=1) * size(case), np.abs(best))
    assert (np.abs(row_dot(C_min, W) - best) <= 1e-7 * unit).all()


@every
def test_a_batch_is_its_rows_one_by_one(case):
    C = costs(case.d, seed=1)
    W = case.region.argmin(C)
    assert_array_equal(W, np.array([case.region.argmin(c) for c in C]))
    order = np.random.default_rng(0).permutation(len(C))
    assert_array_equal(case.region.argmin(C[order]), W[order])


@every
def test_costs_of_any_kind_of_array(case):
    C = np.round(costs(case.d)[:2] * 4)
    W = case.region.argmin(C)
    before = C.copy()
    for same in (C.tolist(), C.astype(int), C.astype(np.float32), np.asfortranarray(C)):
        assert_array_equal(case.region.argmin(same), W)
    assert_array_equal(C, before)
    assert case.region.argmin(np.empty((0, case.d))).shape == (0, case.d)


@pytest.mark.parametrize(("seed", "row"), [(1, 89), (20, 53), (21, 80)])
def test_rows_on_which_the_primal_simplex_method_gives_up(seed, row):
    """HiGHS 1.15's primal method ends there with the status Unknown, and it takes that method if it may choose."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(10, 20)), rng.random(10) + 1
    C = rng.normal(size=(600, 20))[row - 5 : row + 5]
    region = sk.Polyhedron(A, b, bounds=(0, 1))
    expected = [linprog(c, A, b, bounds=(0, 1), method="highs-ds").fun for c in C]
    assert_allclose(row_dot(C, region.argmin(C)), expected, rtol=1e-9)


@every
def test_costs_that_are_wrong(case):
    C = costs(case.d)[:2]
    for bad in (np.nan, np.inf):
        C[1, 0] = bad
        with pytest.raises(ValueError, match=r"[Ii]nput C contains"):
            case.region.argmin(C)
    if case.region.n_dim is not None:
        with pytest.raises(ValueError, match="one cost per decision variable"):
            case.region.argmin(np.ones((2, case.d + 1)))


def sense_of(region):
    """Parameter that is the sense."""
    return "region__sense" if isinstance(region, sk.LinearImage) else "sense"


@every
def test_max_is_min_of_the_negative(case):
    C = costs(case.d, seed=2)
    if isinstance(case.region, sk.OracleRegion):  # the user's function minimizes or maximizes, we do not
        other = sk.OracleRegion(*((cheapest,) if case.region.sense == "max" else (dearest, 4)))
        other.sense = "min" if case.region.sense == "max" else "max"
    else:
        other = clone(case.region)
        # The regions of a product have its sense, and an image has that of its region.
        for region in (other, *getattr(other, "regions", ())):
            region.set_params(**{sense_of(region): "min" if case.region.sense == "max" else "max"})
    assert_array_equal(other.argmin(-C), case.region.argmin(C))


# -- value objects -----------------------------------------------------------------------------------------------------


@every
def test_clone_and_pickle_give_the_same_answers(case):
    C = costs(case.d, seed=4)
    W = case.region.argmin(C)
    for copy in (
        clone(case.region),
        pickle.loads(pickle.dumps(case.region)),
        cloudpickle.loads(cloudpickle.dumps(case.region)),
    ):
        assert copy is not case.region and type(copy) is type(case.region)
        assert_array_equal(copy.argmin(C), W)


@every
def test_pickle_has_parameters_and_nothing_else(case):
    used = clone(case.region)
    for name in ("standard_form", "strong_convexity", "equalities"):
        if hasattr(used, name):  # whatever can be cached is cached now
            getattr(used, name)(case.d)
    used.argmin(costs(case.d)[:2])
    assert set(used.__getstate__()) - {"_sklearn_version", "_skspo_version"} == set(used.get_params(deep=False))
    assert set(vars(clone(used))) == set(used.get_params(deep=False))
    blob = pickle.dumps(used)
    assert not any(solver in blob for solver in (b"highspy", b"clarabel", b"_cache"))


@every
def test_repr_shows_the_class_and_can_be_html(case):
    assert repr(case.region).startswith(type(case.region).__name__ + "(")
    assert type(case.region).__name__ in case.region._repr_html_()


@every
def test_changing_the_sense_is_noticed(case):
    region, C = clone(case.region), costs(case.d)
    region.argmin(C)
    region.set_params(**{sense_of(region): "Max"})
    with pytest.raises(ValueError, match="sense must be"):
        region.argmin(C)


CHANGES = [
    (sk.Box(), {"upper": 2.0}),
    (sk.Box(np.zeros(4), np.ones(4)), {"lower": -np.ones(4)}),
    (sk.TopK(1), {"k": 2}),
    (sk.L1Ball(), {"radius": 2.0}),
    (sk.LqBall(), {"q": 1.5}),
    (sk.Ellipsoid(Q, CENTER), {"Q": np.eye(4)}),
    (sk.Ellipsoid(Q, CENTER), {"center": None}),
    (sk.EntropySimplex(), {"threshold": -0.5}),
    (sk.LogBarrierSimplex(), {"threshold": 5.7}),
    (sk.Polyhedron(np.ones((1, 4)), [1.0]), {"b_ub": [2.0]}),
    (sk.MixedInteger(np.ones((1, 4)), [1.5]), {"integrality": 0}),
    (sk.ShortestPath([(0, 1), (0, 1), (1, 2), (0, 2)], 0, 2), {"target": 1}),
    (sk.Knapsack([1, 2, 3, 4], 5), {"integer": False}),
    (sk.Knapsack([1, 2, 3, 4], 5), {"capacity": 6}),
    (sk.Markowitz(COVARIANCE, 0.9), {"max_risk": 1.5}),
    (sk.Markowitz(COVARIANCE, 0.9), {"budget": "at_most"}),
    (sk.CvxpyRegion(cut_ball, 4), {"constraints": lambda w: [cp.norm(w) <= 1]}),
    (sk.OracleRegion(cheapest, 4), {"oracle": lambda C: 2.0 * cheapest(C)}),
]


@pytest.mark.parametrize(
    ("region", "change"), CHANGES, ids=lambda x: "-".join(x) if isinstance(x, dict) else type(x).__name__
)
def test_new_parameters_are_respected(region, change):
    C = np.random.default_rng(0).normal(size=(8, 4))
    region = clone(region)
    before = region.argmin(C)
    known = knows(diameter, region)
    if known:
        diameter(region, 4)
    region.set_params(**change)
    fresh = type(region)(**region.get_params(deep=False))
    assert_array_equal(region.argmin(C), fresh.argmin(C))
    assert np.abs(region.argmin(C) - before).max() > 1e-3
    if known:
        assert diameter(region, 4) == diameter(fresh, 4)
    for name in ("equalities", "inequality_form"):
        if hasattr(region, name):
            for a, b in zip(_arrays(getattr(region, name)(4)), _arrays(getattr(fresh, name)(4)), strict=True):
                assert_array_equal(a, b)
    assert region.get_params()[next(iter(change))] is next(iter(change.values()))


def _arrays(form):
    if isinstance(form, np.ndarray):
        return [form]
    return [form.A_ub.toarray(), form.b_ub, form.A_eq.toarray(), form.b_eq, form.lower, form.upper]


def double(array, *where):
    """Multiply in place an array, or the numbers of a list, or one of their elements."""
    for k in where[:-1]:
        array = array[k]
    last = where[-1] if where else slice(None)
    array[last] = 2.0 * np.asarray(array[last]) if isinstance(array, np.ndarray) else 2.0 * array[last]


WRITTEN = {
    "array": (sk.Box(0, np.ones(4)), lambda r: double(r.upper)),
    "list": (sk.Box(0, [1.0, 1.0, 1.0, 1.0]), lambda r: double(r.upper, 1)),
    "series": (sk.Box(0, pd.Series(np.ones(4))), lambda r: r.upper.__setitem__(2, 5.0)),
    "nested lists": (sk.Polyhedron([[1.0, 1, 1, 2]], [1.0]), lambda r: double(r.A_ub, 0, 0)),
    "matrix": (sk.Polyhedron(np.ones((1, 4)), [1.0]), lambda r: double(r.A_ub, (0, 1))),
    "sparse matrix": (sk.Polyhedron(sp.csr_array(np.ones((1, 4))), [1.0]), lambda r: double(r.A_ub.data, 1)),
    "list of lists": (sk.Polyhedron(sp.lil_array(np.ones((1, 4))), [1.0]), lambda r: r.A_ub.__setitem__((0, 1), 2.0)),
    "side": (sk.Polyhedron(np.ones((1, 4)), np.ones(1)), lambda r: double(r.b_ub)),
    "pairs": (sk.Polyhedron(bounds=[(0, 1)] * 4), lambda r: r.bounds.__setitem__(2, (0, 3))),
    "Bounds": (sk.Polyhedron(bounds=Bounds(np.zeros(4), np.ones(4))), lambda r: double(r.bounds.ub)),
    "LinearConstraint": (
        sk.Polyhedron(constraints=[LinearConstraint(np.ones((1, 4)), ub=np.ones(1))]),
        lambda r: double(r.constraints[0].ub),
    ),
    "tuple": (sk.MixedInteger(constraints=(np.ones((1, 4)), 0.0, np.ones(1))), lambda r: double(r.constraints[2])),
    "integrality": (
        sk.MixedInteger(np.ones((1, 4)), [1.5], integrality=np.ones(4)),
        lambda r: double(r.integrality) or r.integrality.fill(0),
    ),
    "weights": (sk.Knapsack(np.array([1.0, 2.0, 3.0, 4.0]), 5), lambda r: double(r.weights, 0)),
    "edges": (sk.ShortestPath([(0, 1), (0, 1), (1, 2), (0, 2)], 0, 2), lambda r: r.edges.__setitem__(3, (1, 0))),
    "Q": (sk.Ellipsoid(np.eye(4)), lambda r: double(r.Q, (0, 0))),
    "covariance": (sk.Markowitz(COVARIANCE.copy(), 0.9), lambda r: double(r.covariance, (0, 0))),
    "part": (sk.Product([sk.Simplex(), sk.Box(0, np.ones(2))], [2, 2]), lambda r: double(r.regions[1].upper)),
    "inner": (sk.LinearImage(sk.Box(0, np.ones(2)), np.ones((4, 2))), lambda r: double(r.region.upper)),
    "map": (sk.LinearImage(sk.Simplex(), np.eye(4)), lambda r: double(r.matrix, (0, 0))),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_into_a_parameter_is_noticed(name):
    """The answer is that of a new region with the same parameters, of every method."""
    region, write = clone(WRITTEN[name][0]), WRITTEN[name][1]
    C = np.random.default_rng(0).normal(size=(40, 4)) - 0.5
    before = region.argmin(C)
    functions = [function for function in (diameter, relative_width) if knows(function, region)]
    for function in (*functions, bounding_box):
        function(region, 4)
    write(region)
    fresh = clone(region)
    assert_array_equal(region.argmin(C), fresh.argmin(C))
    assert np.abs(region.argmin(C) - before).max() > 1e-3
    for function in (*functions, bounding_box, equalities_of):
        assert_array_equal(function(region, 4), function(fresh, 4))


@every
def test_nothing_is_prepared_twice(case, monkeypatch):
    region, C, calls = clone(case.region), costs(case.d)[:2], []
    prepare = type(region)._prepare
    monkeypatch.setattr(type(region), "_prepare", lambda self, d: calls.append(self) or prepare(self, d))
    for _ in range(3):
        region.argmin(C)
    assert sum(one is region for one in calls) == 1


def test_geometry_follows_the_parameters():
    region = sk.Polyhedron(A_ub=np.ones((1, 3)), b_ub=[1.0])
    assert region.equalities().shape == (0, 3)
    region.set_params(A_eq=np.ones((1, 3)), b_eq=[1.0])
    assert_allclose(np.abs(region.equalities()), np.full((1, 3), 3**-0.5))


def test_dimensions():
    with pytest.raises(ValueError, match="say which one"):
        region_geometry(sk.Simplex())
    region = sk.TopK(2)
    assert region.argmin(np.ones((1, 3))).shape == (1, 3)
    assert region.argmin(np.ones((1, 5))).shape == (1, 5)
    with pytest.raises(ValueError, match="k must be"):
        region.argmin(np.ones((1, 1)))


def test_check_region_returns_a_copy_and_explains_mistakes():
    region = sk.Box(0, 2)
    copy = sk.check_region(region, 3)
    assert copy is not region and copy.get_params() == region.get_params()
    with pytest.warns(UserWarning, match="No region was given"):
        assert isinstance(sk.check_region(None, 3), sk.Box)
    with pytest.raises(TypeError, match="forget the parentheses"):
        sk.check_region(sk.Simplex, 3)
    with pytest.raises(TypeError, match="OracleRegion"):
        sk.check_region(cheapest, 3)
    with pytest.raises(ValueError, match="one cost per decision variable"):
        sk.check_region(sk.Box([0.0, 0.0], 1.0), 3)


def test_certified_float():
    bound = CertifiedFloat(2.5, "upper bound")
    assert bound == 2.5 and repr(bound) == "2.5 (upper bound)"
    again = pickle.loads(pickle.dumps(bound))
    assert again == 2.5 and again.kind == "upper bound"
    with pytest.raises(ValueError, match="kind must be"):
        CertifiedFloat(1.0, "approximate")


# -- properties --------------------------------------------------------------------------------------------------------

FAST = ["simplex", "box-arrays", "topk", "l1", "lq-1.5", "ellipsoid", "entropy", "entropy-loose", "barrier", "grid",
        "path-dead-end", "knapsack", "knapsack-fractional", "assignment", "polyhedron"]  # fmt: skip
fast = pytest.mark.parametrize("case", [CASES[name] for name in FAST], ids=FAST)
# Multiples of 1/4 tie often, other numbers never.
number = st.integers(-20, 20).map(lambda k: k / 4) | st.floats(-5, 5).map(lambda x: round(x, 6))


@fast
@given(data=st.data())
def test_no_returned_decision_is_better_than_the_optimal_one(case, data):
    C = data.draw(arrays(float, (4, case.d), elements=number))
    W = case.region.argmin(C)
    C_min = case.region.to_min(C)
    value = C_min @ W.T  # [i, j] is the cost of decision j under the costs i
    assert (value.diagonal()[:, None] <= value + 1e-8 * size(case)).all()


@fast
@given(data=st.data())
def test_scaling_costs_scales_values(case, data):
    C = data.draw(arrays(float, (3, case.d), elements=number))
    scale = data.draw(st.sampled_from([1e-6, 0.3, 7.0, 1e6]))
    value, scaled = row_dot(C, case.region.argmin(C)), row_dot(C, case.region.argmin(scale * C))
    assert_allclose(scaled, value, atol=1e-8 * size(case) * max(1.0, np.abs(C).max()))
