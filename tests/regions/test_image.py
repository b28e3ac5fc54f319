"""``LinearImage``: decisions against its inner region and enumeration, parameters, and mistakes."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from image_problems import FEES, MIX, ROOM, SMOOTH, SQUARE, WEIGHTS, known_image, random_costs, small_data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from small_sets import cheapest, packings

import skspo as sk
from skspo.regions.capabilities import has

# -- the oracle --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("kind", [np.array, np.ndarray.tolist, sp.csr_array, sp.coo_matrix])
def test_argmin_is_the_inner_one_at_the_transposed_costs(sense, kind):
    inner = sk.Knapsack(WEIGHTS, ROOM, sense=sense)
    region, C = sk.LinearImage(inner, kind(MIX)), random_costs(2)
    Z = inner.argmin(C @ MIX)
    assert region.sense == sense and region.n_dim == 2
    assert_array_equal(region.inner_argmin(C), Z)
    assert_allclose(region.argmin(C), Z @ MIX.T, rtol=1e-15)
    assert_array_equal(region.inner_argmin(C[0]), Z[0])


@pytest.mark.parametrize("sense", ["min", "max"])
def test_known_cost_by_enumeration(sense):
    region, C = known_image(sense), random_costs(2)
    value = packings(WEIGHTS, ROOM) @ (C @ MIX + FEES).T
    best = value.min(axis=0) if sense == "min" else value.max(axis=0)
    Z, W = region.inner_argmin(region.extend(C)), region.argmin(region.extend(C))
    assert_allclose(np.einsum("ij,ij->i", C @ MIX + FEES, Z), best, rtol=1e-12)
    assert_allclose(W, np.column_stack([Z @ MIX.T, Z @ FEES]), rtol=1e-12)
    assert_array_equal(region.offset, [0, 0, 1])
    assert_array_equal(region.extend(C[0]), [*C[0], 1])


def test_without_a_known_cost_nothing_is_added():
    region, C = sk.LinearImage(sk.Box(), MIX), random_costs(2)
    assert_array_equal(region.extend(C), C)
    assert region.offset is None


@pytest.mark.parametrize("sense", ["min", "max"])
def test_losses_with_a_known_cost_by_enumeration(sense):
    region, C, C_hat = known_image(sense), random_costs(2), random_costs(2, seed=1)
    sign, points = (1 if sense == "min" else -1), packings(WEIGHTS, ROOM)

    def total(costs):  # [i, k]: cost of point k in sample i, to be minimized
        return sign * (costs @ MIX + FEES) @ points.T

    rows = np.arange(len(C))
    true, predicted = total(C), total(C_hat)
    best, chosen = true.argmin(axis=1), predicted.argmin(axis=1)
    spo = true[rows, chosen] - true[rows, best]
    assert_allclose(sk.SPOLoss(region).value(region.extend(C), region.extend(C_hat)), spo, atol=1e-12)
    doubled = total(2 * C_hat - C)
    plus = doubled[rows, best] - doubled.min(axis=1)
    assert_allclose(sk.SPOPlusLoss(region).value(region.extend(C), region.extend(C_hat)), plus, atol=1e-12)
    expected = spo.sum() / np.abs(true.min(axis=1)).sum()
    assert sk.normalized_spo_loss(region.extend(C), region.extend(C_hat), region) == pytest.approx(expected)


def test_a_curved_region_without_a_unique_z_has_no_repair():
    region = sk.LinearImage(sk.Ellipsoid(radius=2), SQUARE[:2])
    X, C = small_data(2, n=20)
    assert has(region, "strong_convexity") and not has(region, "repair")
    assert sk.SPOPlusRegressor(region, alpha=0.1).fit(X, C).duality_gap_ <= 1e-5
    with pytest.raises(ValueError, match="lacks: repair"):
        sk.SPOPlusRegressor(region, solver="lbfgs").fit(X, C)


def test_derivative_is_that_of_the_decisions():
    region = SMOOTH["tall"]
    C, D = random_costs(4, 5), random_costs(4, 5, seed=1)
    numeric = (region.solve_min(C + 1e-6 * D) - region.solve_min(C - 1e-6 * D)) / 2e-6
    assert_allclose(region.derivative(C, D), numeric, atol=1e-6)
    smoothed = region.smoothed(C, 0.3, curvature=True)
    numeric = (region.smoothed(C + 1e-6 * D, 0.3).W - region.smoothed(C - 1e-6 * D, 0.3).W) / 2e-6
    assert_allclose(-np.einsum("ijk,ik->ij", smoothed.M, D), numeric, atol=1e-6)


# -- parameters --------------------------------------------------------------------------------------------------------


def each_row(rows, C, make):
    return np.array([make({name: value[i] for name, value in rows.items()}).argmin(c) for i, c in enumerate(C)])


@pytest.mark.parametrize("names", [["capacity"], ["known_cost"], ["capacity", "known_cost"]], ids="+".join)
def test_parameters_of_each_sample(names):
    rng, n = np.random.default_rng(0), 12
    rows = {"capacity": rng.integers(3, 12, n), "known_cost": rng.normal(size=(n, 4))}
    rows = {name: rows[name] for name in names}
    region, C = known_image(), np.column_stack([random_costs(2, n), np.linspace(-1, 2, n)])

    def alone(values):
        inner = sk.Knapsack(WEIGHTS, values.get("capacity", ROOM), sense="min")
        return sk.LinearImage(inner, MIX, values.get("known_cost", FEES))

    expected = each_row(rows, C, alone)
    view = region.with_rows(rows, n, 3)
    assert_allclose(view.argmin(C), expected, atol=1e-12)
    some = np.array([7, 2, 2, 11])
    assert_allclose(view.take(some).argmin(C[some]), expected[some], atol=1e-12)
    assert len(np.unique(view._row_table(n), axis=0)) == len(np.unique(np.column_stack(list(rows.values())), axis=0))
    with pytest.raises(ValueError, match="but region_params has 12 rows"):
        view.argmin(C[:3])
    X, Y = small_data(2, n=n)
    model = sk.SPOPlusRegressor(region).fit(X, region.extend(Y), offset=region.offset, region_params=rows)
    W = model.decide(X, offset=region.offset, region_params=rows)
    assert_allclose(W, each_row(rows, model.predict(X, offset=region.offset), alone), atol=1e-12)


def test_bounds_of_each_sample_and_a_known_cost_in_cone_form():
    rng, n = np.random.default_rng(0), 15
    rows = {"upper": rng.uniform(0.5, 2.0, (n, 2)), "known_cost": rng.normal(size=(n, 2))}
    region = sk.LinearImage(sk.Box(), [[1.0, 0.5], [0.0, 2.0]], [1.0, -1.0])
    X, C = small_data(2, n=n)
    models = [
        sk.SPOPlusRegressor(region, solver=solver, alpha=0.1).fit(
            X, region.extend(C), offset=region.offset, region_params=rows
        )
        for solver in ("conic", "bundle")
    ]
    assert all(model.duality_gap_ <= 2e-6 for model in models)
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=4e-6)


def test_errors_name_the_row_of_the_user():
    with pytest.raises(sk.InfeasibleRegionError, match="the region of row 1 is empty"):
        known_image().with_rows({"capacity": [3, -1, 4]}, 3, 3)
    region = sk.LinearImage(sk.Polyhedron([[1.0, 1.0]], [1.0]), [[1.0, 2.0]])
    view = region.with_rows({"b_ub": [1.0, 2.0, -3.0]}, 3, 1)
    with pytest.raises(ValueError, match="row 2"):
        view.take(np.array([2, 0])).argmin(np.ones((2, 1)))


def test_new_parameters_of_the_inner_region_are_respected():
    region = sk.LinearImage(sk.Polyhedron(A_ub=[[1, 1, 1]], b_ub=[1]), np.diag([1.0, 2.0, 3.0]))
    assert region.equalities().shape == (0, 3)
    region.set_params(region__A_eq=[[1, 1, 1]], region__b_eq=[1])
    normal = np.array([6.0, 3.0, 2.0]) / 7.0
    assert_allclose(np.abs(region.equalities()), normal[None])
    assert_allclose(region.argmin([-1.0, -1.0, -1.0]), [0, 0, 3])
    region.set_params(matrix=np.eye(3))
    assert_allclose(region.argmin([1.0, 1.0, -1.0]), [0, 0, 1])
    assert_allclose(np.abs(region.equalities()), np.full((1, 3), 3**-0.5))


def test_search_over_a_parameter_of_the_inner_region():
    X, C = small_data(2, n=20)
    model = sk.SPOPlusRegressor(sk.LinearImage(sk.Knapsack(WEIGHTS, ROOM), MIX))
    search = GridSearchCV(model, {"region__region__capacity": [3, 14]}, cv=2).fit(X, C)
    used = search.best_estimator_.region_
    assert used.region.capacity == search.best_params_["region__region__capacity"]
    assert_array_equal(search.best_estimator_.decide(X), pickle.loads(pickle.dumps(search.best_estimator_)).decide(X))
    assert clone(used).get_params()["region__capacity"] == used.region.capacity


def test_what_is_constant():
    """Every task is run once, so that the total energy is constant, and so is what the matrix makes so."""
    once = sk.Polyhedron(A_eq=np.kron(np.eye(2), np.ones((1, 3))), b_eq=[1, 1], bounds=(0, 1))
    power = np.kron([[2.0, 5.0]], np.eye(3))
    assert_allclose(np.abs(sk.LinearImage(once, power).equalities()), np.full((1, 3), 3**-0.5))
    twice = sk.LinearImage(sk.Box(), [[1.0, 2.0], [0.0, 0.0], [1e6, 2e6], [0.0, 1e-6]])
    E = twice.equalities()
    assert E.shape == (2, 4)
    assert_allclose(E @ np.array(twice.matrix), 0.0, atol=1e-9)


def test_image_of_an_image_and_of_a_function():
    inner = sk.LinearImage(sk.Box(), [[1.0, 1.0]], [3.0, -1.0])
    outer = sk.LinearImage(inner, [[2.0, 1.0], [0.0, 1.0]])
    C = random_costs(2)
    Z = (C @ [[2, 1], [0, 1]] @ [[1, 1], [3, -1]] < 0).astype(float)
    assert_allclose(outer.argmin(C), Z @ np.transpose([[1, 1], [3, -1]]) @ np.transpose([[2, 1], [0, 1]]))
    function = sk.LinearImage(sk.OracleRegion(cheapest, 3), SQUARE)
    assert_allclose(function.argmin(random_costs(3)), sk.LinearImage(sk.Simplex(), SQUARE).argmin(random_costs(3)))
    bad = sk.LinearImage(sk.OracleRegion(lambda C: np.eye(3)[np.round(C).argmin(axis=1)]), np.eye(3))
    with pytest.raises(ValueError, match="the oracle is not optimal"):
        bad.argmin([[1.2, 0.9, 5.0], [5.0, 7.0, 9.0], [7.0, 5.0, 9.0]])


def test_capabilities_follow_the_inner_region():
    offers = {
        name: {x for x in ("standard_form", "quadratic_form", "support_epigraph", "repair", "derivative")
               if has(region, x)}
        for name, region in {
            "integer": known_image(), "fractional": known_image(integer=False), "markowitz": SMOOTH["markowitz"],
            "wide markowitz": sk.LinearImage(SMOOTH["markowitz"].region, SQUARE[:1]), "tall": SMOOTH["tall"],
        }.items()
    }  # fmt: skip
    assert offers["integer"] == offers["fractional"]  # a list of decisions has a convex hull
    assert offers["fractional"] == {"standard_form", "support_epigraph", "repair"}
    assert offers["markowitz"] == {"quadratic_form", "support_epigraph", "repair", "derivative"}
    assert offers["wide markowitz"] == {"support_epigraph", "derivative"}
    assert offers["tall"] == {"support_epigraph", "repair", "derivative"}


# -- mistakes ----------------------------------------------------------------------------------------------------------

BOX, TWO = sk.Box([0.0, 0.0, 0.0], 1.0), np.ones((2, 3))
MISTAKES = {
    "class": (lambda: sk.LinearImage(sk.Simplex, np.eye(3)), TypeError, "forget the parentheses"),
    "no region": (lambda: sk.LinearImage(None, np.eye(3)), TypeError, "region must be a Region"),
    "swapped": (lambda: sk.LinearImage(np.eye(3), BOX), (TypeError, ValueError), "(region|matrix) must be"),
    "vector": (lambda: sk.LinearImage(BOX, [1.0, 2.0, 3.0]), ValueError, r"must have shape \(d, m\).*got shape \(3,\)"),
    "ragged": (lambda: sk.LinearImage(BOX, [[1.0, 2.0], [3.0]]), ValueError, "rectangular array of numbers"),
    "no rows": (lambda: sk.LinearImage(BOX, np.zeros((0, 3))), ValueError, r"got shape \(0, 3\)"),
    "columns": (lambda: sk.LinearImage(BOX, np.ones((3, 4))), ValueError, "one column for each of the 3 variables"),
    "nan": (lambda: sk.LinearImage(BOX, np.full((3, 3), np.nan)), ValueError, "matrix must be finite"),
    "sparse inf": (lambda: sk.LinearImage(BOX, sp.csr_array([[np.inf, 0, 0]] * 3)), ValueError, "must be finite"),
    "complex": (lambda: sk.LinearImage(BOX, 1j * np.eye(3)), ValueError, "real entries"),
    "words": (lambda: sk.LinearImage(BOX, [["a", "b", "c"]]), ValueError, "array of numbers"),
    "known shape": (lambda: sk.LinearImage(BOX, TWO, [1.0, 2.0]), ValueError, r"shape \(3,\), got shape \(2,\)"),
    "known rows": (lambda: sk.LinearImage(BOX, TWO, np.ones((5, 3))), ValueError, "passed as region_params"),
    "known nan": (lambda: sk.LinearImage(BOX, TWO, [1.0, 2.0, np.nan]), ValueError, "known_cost must be finite"),
    "known words": (lambda: sk.LinearImage(BOX, TWO, "fee"), ValueError, "known_cost must be a number"),
    "inner": (lambda: sk.LinearImage(sk.TopK(4), np.eye(3)), ValueError, "k must be"),
    "inner sense": (lambda: sk.LinearImage(sk.Box(sense="most"), np.eye(3)), ValueError, "sense must be"),
    "not extended": (lambda: sk.LinearImage(BOX, np.eye(3), np.ones(3)), ValueError, r"extend\(C\) appends"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    make, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        make().argmin(np.ones((2, 3)))
    with pytest.raises(kind, match=message):
        sk.SPOPlusRegressor(make()).fit(np.ones((4, 1)), np.ones((4, 3)))


def test_mistakes_in_methods():
    region = known_image()
    for wrong in (np.ones((2, 3)), np.ones(4), 1.0, np.ones((1, 2, 2))):
        with pytest.raises(ValueError, match="one cost for each of the 2 rows of matrix"):
            region.extend(wrong)
    with pytest.raises(ValueError, match="one cost per decision variable"):
        region.inner_argmin(np.ones((2, 5)))
    with pytest.raises(ValueError, match="contains NaN"):
        region.inner_argmin([np.nan, 1.0, 1.0])
    with pytest.raises(ValueError, match="cannot vary by sample in 'known_cost'"):
        sk.LinearImage(sk.Knapsack(WEIGHTS, ROOM), MIX).with_rows({"known_cost": np.ones((2, 4))}, 2, 2)
    with pytest.raises(ValueError, match=r"known_cost must have shape \(2,\) or \(2, 4\)"):
        region.with_rows({"known_cost": np.ones((2, 3))}, 2, 3)
