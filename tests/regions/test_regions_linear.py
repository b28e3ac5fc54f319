"""Properties of all regions solved by dynamic programming, matching or HiGHS."""

import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from brute_force import random_polytope
from numpy.testing import assert_array_equal
from scipy.optimize import linprog
from sklearn.base import clone

import skspo as sk
from skspo.calibration import diameter, relative_width
from skspo.regions.assignment import Assignment
from skspo.regions.capabilities import CAPABILITIES, has
from skspo.regions.graphs import ShortestPath
from skspo.regions.integer import Knapsack, MixedInteger
from skspo.regions.polyhedral import InequalityForm
from skspo.regions.polyhedron import Polyhedron
from skspo.regions.product import Product
from skspo.regions.simplex import Box, Simplex, TopK


def rows_of(rng, n, d):
    """Costs of all scales and signs, with ties and zeros."""
    C = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 7, size=(n, 1))
    C[::3] = rng.integers(-1, 2, size=C[::3].shape)
    C[0] = 0.0
    return C


REGIONS = {
    "polyhedron": Polyhedron(**random_polytope(np.random.default_rng(0))),
    "box": Polyhedron(bounds=[(0, 1), (-1, 2), (3, 3)]),
    "simplex": Polyhedron(A_eq=np.ones((1, 6)), b_eq=[1.0]),
    "grid": ShortestPath.grid(3, 4),
    "cyclic": ShortestPath(nx.complete_graph(4).to_directed(), 0, 3),
    "assignment": Assignment(3),
    "knapsack": Knapsack([3, 4, 5, 9, 40, 0], 16),
    "knapsack-2": Knapsack([[3, 4, 5, 9], [2, 2, 7, 1]], [12, 8]),
    "knapsack-real": Knapsack([[0.3, 0.4, 0.55], [0.2, 0.7, 0.1]], 0.9),
    "knapsack-fractional": Knapsack([3, 4, 5, 9, 40, 0], 16, integer=False),
    "knapsack-fractional-2": Knapsack([[3, 4, 5, 9], [2, 2, 7, 1]], [12, 8], integer=False),
    "mixed": MixedInteger(A_ub=[[2, 3, 1, 1.5]], b_ub=[6.2], bounds=(0, 2), integrality=[1, 1, 0, 0]),
}


@pytest.fixture(params=REGIONS)
def region(request):
    return clone(REGIONS[request.param])


def test_rows_do_not_see_each_other(region):
    """Batched equals one by one, whatever the order and the number of threads, bit for bit, ties included."""
    rng = np.random.default_rng(1)
    C = rows_of(rng, 30, region.n_dim)
    W = region.argmin(C)
    assert_array_equal(W, np.array([region.argmin(c) for c in C]))
    order = rng.permutation(len(C))
    assert_array_equal(W[order], region.argmin(C[order]))
    if "n_jobs" in region.get_params():
        assert_array_equal(W, region.set_params(n_jobs=2).argmin(C))
    assert region.argmin(C[:0]).shape == (0, region.n_dim)


def test_scale_of_costs_does_not_matter(region):
    C = np.random.default_rng(2).normal(size=(20, region.n_dim))
    for scale in (2.0**-20, 2.0**20):
        assert_array_equal(region.argmin(C), region.argmin(scale * C))


def test_sense_flips_the_sign(region):
    C = np.random.default_rng(3).normal(size=(20, region.n_dim))
    low, high = clone(region).set_params(sense="min"), clone(region).set_params(sense="max")
    assert_array_equal(low.argmin(C), high.argmin(-C))


def test_clone_and_pickle(region):
    C = np.random.default_rng(4).normal(size=(5, region.n_dim))
    W = region.argmin(C)
    assert_array_equal(W, clone(region).argmin(C))
    assert_array_equal(W, pickle.loads(pickle.dumps(region)).argmin(C))
    assert type(region).__name__ in repr(region)


def test_diameter_covers_what_is_seen(region):
    W = region.argmin(rows_of(np.random.default_rng(5), 60, region.n_dim))
    seen = np.linalg.norm(W[:, None] - W, axis=2).max()
    longest = diameter(region, region.n_dim)
    assert seen <= longest + 1e-9
    assert longest.kind != "exact" or abs(seen - longest) < 1e-9


def test_decisions_are_feasible_and_optimal(region):
    if not hasattr(region, "inequality_form"):
        pytest.skip("not a polyhedron")
    C = rows_of(np.random.default_rng(6), 15, region.n_dim)
    W, form = region.solve_min(C), region.inequality_form()
    assert form.violation(W).max() < 1e-8
    for w, c in zip(W, C, strict=True):
        scale = max(np.abs(c).max(), 1e-300)
        best = _linprog(form, c / scale)
        assert c @ w / scale <= best + 1e-7 * (1 + abs(best))


def _linprog(form, c):
    res = linprog(
        c, form.A_ub if form.b_ub.size else None, form.b_ub if form.b_ub.size else None,
        form.A_eq if form.b_eq.size else None, form.b_eq if form.b_eq.size else None,
        np.column_stack([form.lower, form.upper]),
    )  # fmt: skip
    assert res.status == 0
    return res.fun


def test_worst_argmin_two_stage_linprog(region):
    """The optimal face, written as one more constraint c.w <= optimum, and the true cost maximized on it."""
    if not hasattr(region, "worst_argmin") or not hasattr(region, "inequality_form"):
        pytest.skip("no worst_argmin, or not of a polyhedron")
    rng = np.random.default_rng(7)
    C = rng.integers(-1, 2, size=(12, region.n_dim)).astype(float)
    C[0] = 0.0
    C_true = rng.normal(size=C.shape)
    W, form = region.worst_argmin(C, C_true), region.inequality_form()
    assert form.violation(W).max() < 1e-8
    for w, c, c_true in zip(W, C, C_true, strict=True):
        best = _linprog(form, c)
        assert c @ w == pytest.approx(best, abs=1e-8)
        face = InequalityForm.build(
            c.size, sp.vstack([form.A_ub, sp.csr_array(c[None])]), np.append(form.b_ub, best + 1e-9),
            form.A_eq, form.b_eq, form.lower, form.upper,
        )  # fmt: skip
        assert c_true @ w == pytest.approx(-_linprog(face, -c_true), abs=1e-6)


def test_ties_of_box_and_top_k():
    assert_array_equal(sk.Box(-1.0, 2.0).argmin(np.zeros((1, 3))), [[-1.0, -1.0, -1.0]])
    # So many that a sort may change the order of equal numbers.
    C = np.tile([2.0, 1.0], 300)[None]
    assert_array_equal(np.flatnonzero(sk.TopK(5).argmin(C)[0]), [1, 3, 5, 7, 9])


def test_a_bound_on_the_diameter_is_called_one():
    region = sk.Polyhedron(A_ub=np.ones((1, 30)), b_ub=[10.0], bounds=(0, 1))
    assert diameter(region, 30).kind == "upper bound"
    assert float(diameter(region, 30)) == pytest.approx(np.sqrt(30.0))


# -- products ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("regions", "sizes", "params", "message"),
    [
        ([], None, {}, "at least one region, got"),
        (["simplex"], [2], {}, "at least one region, got"),
        ([Simplex(), Box()], [2], {}, "2 regions, but sizes has 1 entries"),
        ([Simplex(), Box()], [2, 0], {}, r"positive integers, got 0 for regions\[1\]"),
        ([Simplex(), Box()], [2, 1.5], {}, r"positive integers, got 1.5 for regions\[1\]"),
        ([Simplex(), Box(sense="max")], [2, 1], {}, r"regions\[1\], Box, has sense='max', but the product sense='min'"),
        ([Simplex(), TopK(5)], [2, 3], {}, "TopK: k must be an integer between 0 and the number of costs 3"),
    ],
)
def test_products_that_are_none(regions, sizes, params, message):
    with pytest.raises(ValueError, match=message):
        Product(regions, sizes, **params)._prepare(3)


def test_products():
    region = Product([Simplex(), Product([Box(0, [1.0, 2.0]), TopK(1)], [2, 2])], [3, 4])
    assert region.n_dim == 7 and Product([Simplex()]).n_dim is None
    with pytest.raises(ValueError, match="exists in every dimension: say which one"):
        Product([Simplex()]).resolve_dim()
    with pytest.raises(ValueError, match="Simplex, exists in every dimension: say in sizes"):
        Product([Simplex()]).argmin([[1.0, 2.0]])
    assert [list(columns) for columns, _ in region.blocks()] == [[0, 1, 2], [3, 4], [5, 6]]
    assert region.equalities().shape == (2, 7)
    np.testing.assert_allclose(np.abs(region.equalities() @ region.argmin(np.eye(7)).T), [[3**-0.5] * 7, [2**-0.5] * 7])
    assert diameter(region, 7) == pytest.approx(np.sqrt(2 + 5 + 2))
    assert relative_width(region, 7) == 1.0
    assert relative_width(Product([Box(0, [1.0, 2.0]), Box(0, 0.5)], [2, 1]), 3) == 0.5
    whole = Product([Knapsack(np.ones(40), 20), Box(sense="max")], [40, 1], sense="max")
    assert {name for name in CAPABILITIES if has(whole, name)} == {"blocks", "equalities"}
