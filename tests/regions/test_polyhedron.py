"""Polyhedron, and constraints in the conventions of scipy, against scipy."""

import gc
import pickle
import re
import weakref
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from brute_force import all_permutations, assert_worst, quick, random_polytope, seeds
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, linprog, milp
from sklearn.base import clone

import skspo as sk
from skspo import UnboundedRegionError
from skspo.calibration.geometry import _vertices, bounding_box
from skspo.regions._oracles import highs
from skspo.regions._oracles.highs import coordinate_bounds, solve_rows, worst_rows
from skspo.regions._oracles.highs_linear import LinearModel
from skspo.regions.assignment import Assignment
from skspo.regions.integer import MixedInteger
from skspo.regions.polyhedral import InequalityForm
from skspo.regions.polyhedron import Polyhedron


@quick
@given(seeds)
def test_polyhedron_against_linprog(seed):
    rng = np.random.default_rng(seed)
    problem = random_polytope(rng)
    sparse = problem | {"A_ub": sp.coo_array(problem["A_ub"]), "A_eq": sp.csc_matrix(problem["A_eq"])}
    C = rng.normal(size=(5, 4)) * 10.0 ** rng.integers(-6, 7, size=(5, 1))
    region = Polyhedron(**problem)
    W = region.argmin(C)
    assert_array_equal(W, Polyhedron(**sparse).argmin(C))
    assert region.inequality_form().violation(W).max() < 1e-8
    for w, c in zip(W, C, strict=True):
        res = linprog(c / np.abs(c).max(), **problem)
        assert c @ w / np.abs(c).max() == pytest.approx(res.fun, rel=1e-7, abs=1e-7)


def test_bounding_box_is_tight():
    region = Polyhedron(A_ub=[[1, 1, 1]], b_ub=[1], bounds=[(0, None), (0, 5), (-1, None)])
    low, high = bounding_box(region, 3)
    assert_allclose(low, [0, 0, -1])
    assert_allclose(high, [2, 2, 1])
    assert_allclose(coordinate_bounds(region.inequality_form())[1], [2, 5, 1])


def test_rows_of_constraints_of_any_scale():
    A, b = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([2.0, 3.0])
    C = -np.random.default_rng(12).random((20, 2))
    expected = Polyhedron(A, b).argmin(C)
    for scale in ([1e-8, 1e8], [1e8, 1e-8]):
        scale = np.array(scale)
        assert_allclose(Polyhedron(A * scale[:, None], b * scale).argmin(C), expected, atol=1e-9)


def test_worst_rows_against_vertices():
    rng = np.random.default_rng(13)
    points = all_permutations(3)
    C, C_true = (rng.integers(-1, 2, size=(40, 9)).astype(float) for _ in range(2))
    form = Assignment(3).inequality_form()
    W = worst_rows(form, 1e5 * C, 1e-5 * C_true)
    assert_worst(W, C, C_true, points)
    assert_array_equal(W, worst_rows(form, 1e5 * C, 1e-5 * C_true, n_jobs=2))


@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"A_ub": [[1, 1]], "b_ub": [-1]}, "infeasible"),
        ({"A_eq": [[1, 1], [1, 1]], "b_eq": [1, 2]}, "infeasible"),
        ({"bounds": [(0, 1), (3, 2)]}, "empty .infeasible.*decision 1"),
        ({"A_ub": [[1, 0]], "b_ub": [1]}, "unbounded: decision 1 has no limit above"),
        ({"A_ub": [[1, 0]], "b_ub": [1], "bounds": (None, 1)}, "unbounded: decision \\d has no limit (above|below)"),
        ({"A_ub": [[1, 1]]}, "without b_ub"),
        ({"b_eq": [1]}, "without A_eq"),
        ({"A_ub": [[1, 1]], "b_ub": [1, 2]}, "b_ub must have one entry"),
        ({"A_ub": [[1, 1]], "b_ub": [1], "A_eq": [[1, 1, 1]], "b_eq": [1]}, "A_eq must have one column"),
        ({"A_ub": [[1, np.inf]], "b_ub": [1]}, "finite"),
        ({"A_ub": [[1, 1]], "b_ub": [1], "bounds": [(0, 1)] * 3}, "list of 2 pairs"),
        ({"bounds": [(0, np.nan), (0, 1)]}, "NaN"),
        ({"A_ub": [[1, 1, 1]], "b_ub": [1]}, "3 decision variables"),
    ],
)
def test_constraint_errors(cls, params, match):
    with pytest.raises(ValueError, match=match):
        cls(**params).argmin(np.ones(2))


def test_solver_errors():
    form = InequalityForm.build(2)
    with pytest.raises(ValueError, match="row 1 is unbounded"):
        solve_rows(form, np.array([[1.0, 1.0], [-1.0, 0.0]]))
    with pytest.raises(ValueError, match="unbounded"):
        solve_rows(form, np.array([[-1.0, 0.0]]), integrality=np.array([True, False]))


def ranges(rng):
    """Constraints of all kinds around a point of integers: one side, both sides, equal, and none."""
    A, inside = rng.integers(-3, 4, size=(4, 5)).astype(float), rng.integers(0, 3, size=5)
    at = A @ inside
    lb, ub = at - rng.integers(0, 3, size=4), at + rng.integers(0, 3, size=4)
    lb[0], ub[1] = -np.inf, np.inf
    lb[2] = ub[2] = at[2]
    lb[3], ub[3] = (-np.inf, np.inf) if rng.random() < 0.3 else (lb[3], ub[3])
    return A, lb, ub


def lowest_cost(c, constraints, bounds, integer):
    """Lowest cost within constraints and within -3 to 4, by enumeration or by SciPy; None if nothing is feasible."""
    if not integer:
        return milp(c, bounds=bounds, constraints=constraints).fun
    # Not by SciPy: version 1.13 returns infeasible points.
    lower, upper = np.ceil(np.maximum(bounds.lb, -3.0)), np.floor(np.minimum(bounds.ub, 4.0))
    points = np.array(list(product(*(np.arange(lo, hi + 1) for lo, hi in zip(lower, upper, strict=True)))))
    feasible = np.ones(len(points), dtype=bool)
    for constraint in constraints:
        values = points @ (constraint.A.toarray() if sp.issparse(constraint.A) else constraint.A).T
        feasible &= ((values >= constraint.lb - 1e-9) & (values <= constraint.ub + 1e-9)).all(axis=1)
    return (points[feasible] @ c).min() if feasible.any() else None


@pytest.mark.slow
@quick
@given(seeds)
@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
def test_linear_constraints_against_another_method(cls, seed):
    rng = np.random.default_rng(seed)
    A, lb, ub = ranges(rng)
    bounds = Bounds([-1, 0, -np.inf, 0, 0.5], [3, 2.5, 4, 3, 3.5])
    first = [LinearConstraint(A[:2], lb[:2], ub[:2]), LinearConstraint(sp.csr_array(A[2:]), lb[2:], ub[2:])]
    box = LinearConstraint(np.eye(5), -3.0, 4.0)  # bounds what Bounds do not
    C = rng.normal(size=(4, 5))
    region = cls(constraints=[*first, box], bounds=bounds)
    assert region.n_dim == 5
    try:
        W = region.argmin(C)
    except ValueError as error:
        assert "empty" in str(error)
        W = None
    for i, c in enumerate(C):
        best = lowest_cost(c, [*first, box], bounds, cls is MixedInteger)
        assert (best is None) == (W is None)
        if W is not None:
            assert c @ W[i] == pytest.approx(best, rel=1e-7, abs=1e-7)
    if W is None:
        return
    # Other ways to say the same, the first of which is that of scipy's documentation.
    for same in (
        (*first, box),
        [*first, (np.eye(5), -3.0, 4.0)],
        [(A, lb, ub), box],
        [LinearConstraint(A, lb, ub), box],
    ):
        again = cls(constraints=same, bounds=bounds).argmin(C)
        assert_allclose((C * again).sum(axis=1), (C * W).sum(axis=1), rtol=1e-7, atol=1e-7)
    mixed = cls(A_ub=np.eye(5), b_ub=np.full(5, 4.0), constraints=[*first, (np.eye(5), -3.0)], bounds=bounds).argmin(C)
    assert_allclose((C * mixed).sum(axis=1), (C * W).sum(axis=1), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
def test_one_linear_constraint(cls):
    C = [[-1.0, -2.0, -4.0]]
    for one in (LinearConstraint([1, 1, 1], 0, 2), LinearConstraint([[1, 1, 1]], ub=[2]), ([1, 1, 1], 0, 2)):
        region = cls(constraints=one, bounds=Bounds(0, 1))
        assert_array_equal(region.argmin(C), [[0.0, 1.0, 1.0]])
        assert_array_equal(clone(region).argmin(C), [[0.0, 1.0, 1.0]])
        assert_array_equal(pickle.loads(pickle.dumps(region)).argmin(C), [[0.0, 1.0, 1.0]])
    # No Bounds are those of scipy: nonnegative decisions.
    assert_array_equal(cls(constraints=one).argmin([[1.0, -2.0, 1.0]]), [[0.0, 2.0, 0.0]])
    with pytest.raises(ValueError, match=r"unbounded: decision \d has no limit (above|below)"):
        cls(constraints=one, bounds=Bounds()).argmin(C)


@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
def test_sides_vary_beside_linear_constraints(cls):
    """Those that were given as b_ub and b_eq vary; those of constraints stay."""
    rng = np.random.default_rng(0)
    A, A_eq, C = [[1, 2, 1, 0]], [[1, 1, 1, 0]], rng.normal(size=(12, 4))
    more = [LinearConstraint([[0, 1, 0, 0], [1, 0, -1, 0]], [0, -1], [1, 1]), LinearConstraint([0, 0, 0, 1], 1, 1)]
    total = np.repeat([2, 3, 4], 4)
    params = {"b_ub": total + np.tile([0, 1], 6), "b_eq": total}
    region = cls(A, [4.0], A_eq, [3.0], constraints=more, bounds=(0, 3))
    assert region.row_shapes(4) == {"b_ub": (1,), "b_eq": (1,), "lower": (4,), "upper": (4,)}
    W = region.with_rows(params, 12, 4).argmin(C)
    for i in range(12):
        one = cls(A, [params["b_ub"][i]], A_eq, [params["b_eq"][i]], constraints=more, bounds=(0, 3))
        assert C[i] @ W[i] == pytest.approx(C[i] @ one.argmin(C[i]), abs=1e-8)
    assert (W[:, 3] == 1.0).all() and len(np.unique(W, axis=0)) > 4
    assert cls(constraints=more, bounds=(0, 3)).row_shapes(4) == {"lower": (4,), "upper": (4,)}


@pytest.mark.parametrize("cls", [Polyhedron, MixedInteger])
@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        (
            {"constraints": 3},
            TypeError,
            "constraints must be a scipy.optimize.LinearConstraint, a tuple .A, lb, ub., or",
        ),
        ({"constraints": [[1, 1]]}, TypeError, r"or a list of those; got \[1, 1\].*CvxpyRegion"),
        ({"constraints": [([1, 1], 0, 1, 2, 3)]}, TypeError, "constraints must be.*positional arguments"),
        (
            {"constraints": NonlinearConstraint(np.sum, 0, 1)},
            TypeError,
            "CvxpyRegion takes constraints that are not lin",
        ),
        ({"constraints": LinearConstraint([1, 1, 1], 0, 1)}, ValueError, "3 decision variables"),
        (
            {"A_ub": [[1, 1]], "b_ub": [1], "constraints": ([1, 1, 1], 0, 1)},
            ValueError,
            r"A of constraints.*2 decisions",
        ),
        (
            {"constraints": (np.eye(2), [0, 0, 0], 1)},
            TypeError,
            "constraints must be a scipy.optimize.LinearConstraint",
        ),
        ({"constraints": [(np.eye(2), [0, 0, 0], 1)]}, TypeError, "`lb`, `ub`.* must be broadcastable"),
        ({"constraints": LinearConstraint([np.nan, 1], 0, 1)}, ValueError, "A of constraints must be finite"),
        ({"constraints": LinearConstraint([1, 1], np.nan, 1)}, ValueError, "must not be NaN"),
        ({"constraints": LinearConstraint(np.eye(2), [0, 2], 1)}, ValueError, r"empty.*2.0 <= A\[1\] w <= 1.0"),
        ({"constraints": LinearConstraint([1, 1], np.inf, np.inf)}, ValueError, r"empty.*inf <= A\[0\] w <= inf"),
        ({"constraints": LinearConstraint([1, 1], 0)}, ValueError, "unbounded: decision 0 has no limit above"),
        ({"constraints": LinearConstraint([1, 1], 3, 4), "bounds": (0, 1)}, ValueError, "empty.*infeasible"),
        (
            {"A_ub": LinearConstraint([1, 1], 0, 1)},
            TypeError,
            "A_ub must be a matrix. Pass a LinearConstraint as constr",
        ),
        (
            {"A_eq": [LinearConstraint([1, 1], 0, 1)]},
            TypeError,
            "A_eq must be a matrix. Pass a LinearConstraint as const",
        ),
        ({"bounds": Bounds([0, 0, 0], 1), "constraints": ([1, 1], 0, 1)}, ValueError, "each of the 2 decisions"),
        ({"bounds": Bounds(np.inf, np.inf), "constraints": ([1, 1], 0, 1)}, ValueError, "empty.*of decision 0"),
    ],
)
def test_errors_of_linear_constraints(cls, params, error, match):
    with pytest.raises(error, match=match):
        cls(**params).argmin(np.ones(2))


def test_number_of_decisions():
    assert MixedInteger(**random_polytope(np.random.default_rng(15)), integrality=0).n_dim == 4
    assert MixedInteger(bounds=(0, 1), integrality=[1, 0, 1]).n_dim == 3
    assert Polyhedron(bounds=(0, 1)).n_dim is None
    assert Polyhedron(bounds=Bounds([0, 0], [1, 1])).n_dim == 2


def test_vertices_follow_the_parameters():
    region = sk.Polyhedron(A_ub=[[1.0, 1.0]], b_ub=[1.0])
    assert sorted(map(tuple, _vertices(region, 2).round(9) + 0.0)) == [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0)]
    region.set_params(b_ub=[3.0])
    assert sorted(map(tuple, _vertices(region, 2).round(9) + 0.0)) == [(0.0, 0.0), (0.0, 3.0), (3.0, 0.0)]


def random_cone_and_bounds(rng, d):
    """Constraints, about half of them unbounded, with implied equalities and all kinds of bounds."""
    A_ub = rng.integers(-2, 4, size=(int(rng.integers(1, d + 2)), d)).astype(float)
    A_eq = rng.integers(-1, 2, size=(int(rng.integers(0, 2)), d)).astype(float)
    inside = rng.uniform(0, 1, d)
    if rng.random() < 0.3:
        A_ub = np.concatenate([A_ub, -A_ub[:1]])
    kinds = rng.choice(4, size=d, p=[0.4, 0.2, 0.2, 0.2])
    bounds = [[(0, None), (None, 1), (None, None), (0, 1)][k] for k in kinds]
    return A_ub, A_ub @ inside + (rng.random(A_ub.shape[0]) < 0.8), A_eq, A_eq @ inside, bounds


def test_bounded_is_bounded_in_every_coordinate():
    rng, found = np.random.default_rng(0), []
    for _ in range(150):
        d = int(rng.integers(1, 5))
        A_ub, b_ub, A_eq, b_eq, bounds = random_cone_and_bounds(rng, d)
        ends = [
            linprog(c, A_ub, b_ub, A_eq, b_eq, bounds, options={"presolve": False}).status
            for c in (*np.eye(d), *-np.eye(d))
        ]
        assert set(ends) <= {0, 3}
        region = Polyhedron(A_ub, b_ub, A_eq, b_eq, bounds)
        found.append(3 in ends)
        if 3 not in ends:
            region.argmin(np.ones(d))
            continue
        with pytest.raises(UnboundedRegionError, match="has no limit") as error:
            region.argmin(np.ones(d))
        j, side = re.search(r"decision (\d) has no limit (\w+)", str(error.value)).groups()
        assert ends[int(j) + (d if side == "above" else 0)] == 3
    assert 30 < sum(found) < 120


def test_a_long_edge_is_no_ray():
    region = Polyhedron([[1e-9, 1.0]], [1.0])
    assert_allclose(region.argmin([-1.0, 0.0]), [1e9, 0.0])


def test_many_decisions_are_prepared_by_few_programs(monkeypatch):
    """Not by one for each decision: without upper bounds that took 7 s for 2,000 and 50 s for 4,000."""
    runs, run, d = [], LinearModel.run, 2000
    monkeypatch.setattr(LinearModel, "run", lambda *args: runs.append(0) or run(*args))
    A = sp.diags_array([np.ones(d), np.full(d - 1, 0.5)], offsets=[0, 1])
    Polyhedron(A, np.ones(d))._data(d)
    assert len(runs) <= 4


def test_the_last_linear_program_of_a_thread():
    """One row after the other, and regions in turn, give what one call gives; no model outlives its region."""
    rng = np.random.default_rng(4)
    regions = [Polyhedron(A, A.sum(axis=1) / 3, bounds=(0, 1)) for A in rng.uniform(size=(2, 5, 8))]
    C = rng.normal(size=(20, 8))
    together = [region.argmin(C) for region in regions]
    for i, c in enumerate(C):
        for region, W in zip(regions, together, strict=True):
            assert_array_equal(region.argmin(c), W[i])
            assert_array_equal(region.argmin(c), W[i])  # the same model again
            tight = {"b_ub": 0.5 * region.b_ub[None]}
            other = Polyhedron(region.A_ub, 0.5 * region.b_ub, bounds=(0, 1))
            assert_array_equal(region.with_rows(tight, 1, 8).argmin(c[None])[0], other.argmin(c))
    regions[1].argmin(C[0])
    model = weakref.ref(highs._last.program[1][0])
    del region, regions[1]
    gc.collect()
    assert model() is None
