"""What every region promises, tested on every region of ``regions_list.py`` against a model that is not our code."""

from __future__ import annotations

import functools
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
from regions_list import CENTER, COVARIANCE, REGIONS, Q, cheapest, cut_ball, dearest
from scipy.optimize import Bounds, LinearConstraint, linprog
from sklearn.base import clone

import skspo as sk
from skspo.calibration import CertifiedFloat, diameter, region_geometry, relative_width
from skspo.calibration.geometry import bounding_box, directions_of
from skspo.regions.capabilities import CAPABILITIES, equalities_of, has
from skspo.solvers.conic import is_linear

try:
    import cloudpickle
except ImportError:  # joblib before 1.6 has its own copy
    from joblib.externals import cloudpickle

# Tolerance and step fraction of Clarabel, in turn: close to the limits of arithmetic some programs stall.
TIGHT = ((1e-11, 0.99), (1e-10, 0.9), (1e-9, 0.9), (1e-8, 0.9))
TIGHT_LP = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "mip_feasibility_tolerance": 1e-10,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 1e-10,
}
CASES = {case.id: case for case in REGIONS}
every = pytest.mark.parametrize("case", REGIONS, ids=lambda case: case.id)


def those_with(capability):
    cases = [case for case in REGIONS if hasattr(case.region, capability)]
    assert cases, f"no region has {capability}"
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


def knows(function, region):
    """Whether diameter or relative_width is known for a region."""
    unknown = function.dispatch(type(region)) is function.dispatch(object)
    inner = getattr(region, "region", region)
    return not unknown and not (function is relative_width and not getattr(inner, "_is_polyhedron", True))


def those_that_know(function):
    return pytest.mark.parametrize(
        "case", [case for case in REGIONS if knows(function, case.region)], ids=lambda case: case.id
    )


# -- costs and truths --------------------------------------------------------------------------------------------------


def costs(d, seed=0):
    """Rows of both signs and all scales, with ties, zeros, and constant rows."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(6, d)) * np.array([1, 1, 1e-6, 1e-6, 1e6, 1e6])[:, None]
    one_sided = rng.uniform(0.5, 2.0, size=(2, d)) * np.array([[1], [-1]])
    ties = rng.integers(-2, 3, size=(5, d)) * np.array([1, 1, 1, 1e-6, 1e6])[:, None]
    some_zeros = rng.normal(size=(2, d)) * (rng.random((2, d)) < 0.5)
    one_entry = np.eye(d)[[0, d - 1]] * np.array([[3.0], [-3.0]])
    constant = np.array([0.0, 1.0, -1.0, 1e6, -1e-6])[:, None] * np.ones(d)
    return np.concatenate([normal, one_sided, ties, some_zeros, one_entry, constant])


def sampled(case, n=400, seed=3):
    """Many decisions, for costs in random directions and along the axes."""
    rng = np.random.default_rng(seed)
    C = np.concatenate([rng.normal(size=(n, case.d)), np.eye(case.d), -np.eye(case.d)])
    return case.region.solve_min(np.concatenate([C, -C]))


def few(case):
    """Number of samples that a solver call for each row can afford."""
    solved = ("path-cyclic", "knapsack-real", "knapsack-fractional-two", "image-max")
    kinds = (sk.CvxpyRegion, sk.Markowitz, sk.MixedInteger, sk.Polyhedron)
    return 15 if isinstance(case.region, kinds) or case.id in solved else 200


def solve(problem, linear):
    """Optimal value, to at least 1e-8."""
    if linear:
        problem.solve(cp.HIGHS, **TIGHT_LP)
        assert problem.status == "optimal"
        return problem.value
    for tolerance, step in TIGHT:
        names = [f"{kind}tol_{name}" for kind in ("", "reduced_") for name in ("gap_abs", "gap_rel", "feas")]
        try:
            problem.solve(cp.CLARABEL, max_step_fraction=step, **dict.fromkeys(names, tolerance))
        except cp.SolverError:
            continue
        assert problem.status == "optimal"
        return problem.value
    raise AssertionError("Clarabel could not solve the model")


class Truth:
    """The set of a case, by its model alone."""

    def __init__(self, case):
        self.d = case.d
        self.integers = list(case.integers)
        self.points = case.model if isinstance(case.model, np.ndarray) else None
        if self.points is None:
            self.w = cp.Variable(case.d, integer=(self.integers,)) if self.integers else cp.Variable(case.d)
            self.constraints = case.model(self.w)
            self.cost = cp.Parameter(case.d)
            self.problem = cp.Problem(cp.Minimize(self.cost @ self.w), self.constraints)
            self.linear = bool(self.integers) or is_linear(self.problem)

    def best(self, C):
        """Optimal value of each row, solved for costs of size one and scaled back."""
        if self.points is not None:
            return (C @ self.points.T).min(axis=1)
        values = []
        for c in C:
            scale = np.abs(c).max() or 1.0
            self.cost.value = c / scale
            values.append(scale * solve(self.problem, self.linear))
        return np.array(values)

    def worst(self, c, c_true):
        """Largest c_true.w among the decisions that are optimal for c, and how far from the truth it may be."""
        if self.points is not None:
            value = self.points @ c
            return (self.points @ c_true)[value <= value.min() + 1e-9].max(), 1e-12
        # It is minus the derivative of the optimal value in the direction of -c_true (Danskin).  On a flat set the
        # value is linear near c, on a curved one the quotient is too large by a multiple of the step.
        step, error = (1e-3, 1e-9) if self.linear else (2e-5, 1e-3)
        here, there, best_of_all = self.best(np.array([c, c - step * c_true, -c_true]))
        return (-best_of_all, 1e-7) if not c.any() else ((here - there) / step, error)

    def outside(self, W):
        """How far each row is from the convex hull."""
        if self.points is None:
            return self.violation(W)
        m, d = self.points.shape
        ones = np.ones((d, 1))
        A_ub = np.vstack([np.hstack([self.points.T, -ones]), np.hstack([-self.points.T, -ones])])
        total = {"A_eq": np.append(np.ones(m), 0.0)[None], "b_eq": [1.0]}
        cost = np.append(np.zeros(m), 1.0)
        return np.array([linprog(cost, A_ub, np.append(w, -w), **total).fun for w in W])

    def violation(self, W):
        """Largest violation of any constraint by each row."""
        if self.points is not None:
            return np.abs(W[:, None, :] - self.points).max(axis=2).min(axis=1)
        worst = []
        for w in W:
            self.w.save_value(w)
            broken = np.abs(w[self.integers] - np.round(w[self.integers])).max(initial=0.0)
            worst.append(max(broken, *(np.max(c.violation()) for c in self.constraints)))
        return np.array(worst)


@functools.cache
def truth(case_id):
    return Truth(CASES[case_id])


def size(case):
    """Largest entry of any decision, or one: what an error of a decision is relative to."""
    return max(1.0, np.abs(sampled(case, 5)).max())


def row_dot(A, B):
    return np.einsum("ij,ij->i", A, B)


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


# -- capabilities ------------------------------------------------------------------------------------------------------


@those_with("support_epigraph")
def test_support_epigraph_minimized_is_the_support_function(case):
    rng = np.random.default_rng(5)
    V = np.concatenate([rng.normal(size=(3, case.d)), rng.integers(-1, 2, size=(2, case.d)), np.zeros((1, case.d))])
    expression = cp.Variable(V.shape)  # a variable, as in training: the constraints must be convex in it
    t, constraints = case.region.support_epigraph(expression)
    assert t.shape == (len(V),)
    solve(cp.Problem(cp.Minimize(cp.sum(t)), [*constraints, expression == V]), linear=False)
    support = row_dot(V, case.region.solve_min(-V))
    assert_allclose(t.value, support, rtol=1e-6, atol=1e-6 * size(case))


@those_with("standard_form")
def test_standard_form_has_the_same_optimum(case):
    form = case.region.standard_form(case.d)
    bounds = np.column_stack([form.lower, form.upper])
    C = costs(case.d)
    C = C[np.abs(C).max(axis=1) > 1e-3]  # the tolerances of linprog are absolute
    C /= np.abs(C).max(axis=1, keepdims=True)
    for c, w in zip(C, case.region.solve_min(C), strict=True):
        cost = np.r_[c, np.zeros(form.A.shape[1] - case.d)] if form.project is None else form.project.T @ c
        res = linprog(cost, A_eq=form.A, b_eq=form.b, bounds=bounds, options={"dual_feasibility_tolerance": 1e-10})
        assert res.status == 0
        assert_allclose(res.fun, c @ w, rtol=1e-8, atol=1e-8 * size(case))


@those_with("equalities")
def test_equalities_are_all_that_decisions_have_in_common(case):
    E = case.region.equalities(case.d)
    assert E.shape[1] == case.d
    assert_allclose(E @ E.T, np.eye(len(E)), atol=1e-10)
    W = sampled(case, few(case))
    differences = W - W[0]
    assert np.abs(differences @ E.T).max(initial=0.0) <= 1e-8 * size(case)
    # ... and the decisions differ in every other direction.
    singular = np.linalg.svd(differences, compute_uv=False)
    assert (singular > 1e-6).sum() == case.d - len(E)


@those_with("repair")
def test_repair_moves_little_and_ends_inside(case):
    W = sampled(case, 5)
    rng = np.random.default_rng(6)
    for noise in (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-3):
        moved = W + noise * rng.normal(size=W.shape)
        before = moved.copy()
        repaired = case.region.repair(moved)
        assert_array_equal(moved, before)
        assert truth(case.id).outside(repaired).max() <= 1e-8
        assert np.abs(repaired - moved).max() <= 1e-7 * size(case) + 100 * noise


@those_with("repair")
def test_repair_of_something_far_away_ends_inside(case):
    W = np.random.default_rng(7).normal(size=(10, case.d)) * 10
    assert truth(case.id).outside(case.region.repair(W)).max() <= 1e-8 * size(case)


@those_with("worst_argmin")
def test_worst_argmin_is_optimal_and_the_worst(case):
    rng = np.random.default_rng(8)
    C = np.concatenate([rng.integers(-1, 2, size=(5, case.d)), np.zeros((1, case.d)), np.ones((1, case.d)),
                        rng.normal(size=(2, case.d))]).astype(float)  # fmt: skip
    C_true = rng.normal(size=C.shape)
    W, best = case.region.worst_argmin(C, C_true), case.region.solve_min(C)
    unit = size(case)
    assert truth(case.id).violation(W).max() <= 1e-8
    assert_allclose(row_dot(C, W), row_dot(C, best), rtol=0, atol=1e-7 * unit)
    value = row_dot(C_true, W)
    assert (value >= row_dot(C_true, best) - 1e-7 * unit).all()
    for c, c_true, found in zip(C, C_true, value, strict=True):
        worst, error = truth(case.id).worst(c, c_true)
        assert abs(found - worst) <= error * unit


@pytest.mark.slow
@those_that_know(diameter)
def test_diameter_is_at_least_any_distance(case):
    W, d = sampled(case, few(case)), case.d
    known = diameter(case.region, d)
    assert known.kind in ("exact", "upper bound")
    # The first half are decisions for C, the second for -C; go on towards the furthest pairs.
    low, high = np.split(W, 2)
    for _ in range(6):
        direction = np.round(high - low, 5)  # without the errors of the decisions
        low, high = case.region.solve_min(direction), case.region.solve_min(-direction)
    W = np.concatenate([W, low, high])
    longest = np.sqrt(max(np.square(W - w).sum(axis=1).max() for w in W))
    assert longest <= known * (1 + 1e-9)
    if known.kind == "exact":
        assert longest >= 0.97 * known


def smallest_extent(case, U):
    """Search over unit vectors in the span of U: random ones, axes, principal axes, then around the best one."""
    W, rng = sampled(case, few(case)), np.random.default_rng(9)
    principal = np.linalg.svd(W - W.mean(axis=0))[2]
    V = np.concatenate([rng.normal(size=(few(case), case.d)), np.eye(case.d), np.ones((1, case.d)), principal])
    best, least = None, np.inf
    for step in 0.5 ** np.arange(12):
        V = V @ U @ U.T
        V = V[np.linalg.norm(V, axis=1) > 1e-9]
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        extent = row_dot(V, case.region.solve_min(-V) - case.region.solve_min(V))
        if extent.min() < least:
            best, least = V[extent.argmin()], extent.min()
        V = best + step * rng.normal(size=(few(case), case.d)) / np.sqrt(case.d)
    return least


@those_that_know(relative_width)
def test_relative_width_is_at_most_any_extent_in_the_affine_hull(case):
    width, U = relative_width(case.region, case.d), directions_of(case.region, case.d)
    assert width.kind in ("exact", "lower bound")
    if U.shape[1] == 0:
        assert width == 0.0
        return
    extent = smallest_extent(case, U)
    assert 0.0 < width <= extent + 1e-9 * size(case)
    if width.kind == "exact":
        assert extent <= 1.03 * width


@those_with("strong_convexity")
def test_strong_convexity_has_the_balls_it_promises(case):
    mu, L, r, f_min = case.region.strong_convexity(case.d)
    assert 0 < mu <= L and f_min < r < np.inf
    if np.isinf(L):
        return  # f is not smooth, which is then all that is promised; test_regions_smooth.py tests mu itself
    # A level set of such an f contains the ball of radius a/8 |w - w'|^2 around the middle of any w and w', in its
    # affine hull, with a = mu / sqrt(2 L (r - f_min)) (Journée et al., 2010).
    a = mu / np.sqrt(2 * L * (r - f_min))
    W, C = sampled(case, 100), np.random.default_rng(10).normal(size=(50, case.d))
    E = case.region.equalities(case.d)
    C -= C @ E.T @ E
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    best = row_dot(C, case.region.solve_min(C))
    half = len(W) // 2
    for u, v in ((W[:half], W[half:]), (W[:half], np.roll(W[:half], 1, axis=0))):
        lowest = C @ ((u + v) / 2).T - a / 8 * np.square(u - v).sum(axis=1)
        assert (best[:, None] <= lowest + 1e-9).all()


def test_capabilities_are_what_the_family_has():
    offers = {case.id: {name for name in CAPABILITIES if has(case.region, name)} for case in REGIONS}
    polyhedral = {"standard_form", "support_epigraph", "equalities", "repair", "worst_argmin"}
    smooth = polyhedral - {"standard_form"} | {"strong_convexity", "derivative", "smoothed"}
    assert offers["box"] == polyhedral | {"blocks"}
    assert offers["product"] == polyhedral | {"blocks"}
    listed = ("integer", "knapsack")
    for name in ("simplex", "topk", "l1", "polyhedron", "grid", "knapsack-fractional", "assignment", *listed):
        assert offers[name] == polyhedral, name
    for name in ("lq-1.5", "ellipsoid", "entropy", "barrier"):
        assert offers[name] == smooth, name
    assert offers["mixed"] == {"equalities"}
    assert offers["oracle"] == {"audit"}
    assert not has(sk.EntropySimplex(0.0), "strong_convexity")  # the whole simplex


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
