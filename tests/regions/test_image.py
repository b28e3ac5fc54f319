"""LinearImage against its inner region, enumeration, and training problems written for CVXPY."""

import itertools
import os
import pickle
import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from small_sets import cheapest, corners, packings

import skspo as sk
from skspo.regions.capabilities import has
from skspo.solvers.interior_point.intervals import IntervalSolver

WEIGHTS, ROOM = [3, 4, 5, 2], 8
MIX = np.array([[1.0, 2.0, 0.0, -1.0], [0.0, 1.0, 3.0, 0.5]])
FEES = np.array([0.5, -1.0, 0.3, 2.0])


def known_image(sense="min", integer=True):
    return sk.LinearImage(sk.Knapsack(WEIGHTS, ROOM, integer=integer, sense=sense), MIX, FEES)


def small_data(d, n=25):
    """Costs of both signs, with so much noise that no model has a loss of zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, X @ rng.normal(size=(2, d)) + 2.0 * rng.normal(size=(n, d))


def random_costs(d, n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


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


# -- training ----------------------------------------------------------------------------------------------------------


def training_truth(points, X, C, offset=None, pinned=False, sense="min", alpha=0.0):
    """SPO+ training over conv(points) with an offset; ``pinned``: nothing is predicted for the last cost."""
    sign, (n, d) = (-1.0 if sense == "max" else 1.0), C.shape
    C, offset = sign * C, sign * (np.zeros(d) if offset is None else offset)
    W = points[(C @ points.T).argmin(axis=1)]
    B, b, t = cp.Variable((d, X.shape[1])), cp.Variable((1, d)), cp.Variable(n)
    C_hat = X @ B.T + np.ones((n, 1)) @ (b + offset[None])
    value = cp.sum(t + 2 * cp.sum(cp.multiply(C_hat, W), axis=1)) / n - (C * W).sum() / n
    constraints = [t >= (C - 2 * C_hat) @ point for point in points] + ([B[-1] == 0, b[0, -1] == 0] if pinned else [])
    problem = cp.Problem(cp.Minimize(value + alpha / 2 * cp.sum_squares(B)), constraints)
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


def assert_reaches(model, truth):
    assert model.objective_ == pytest.approx(truth, rel=2e-6, abs=1e-8)
    assert model.lower_bound_ <= truth + 1e-8 * max(abs(truth), 1.0)
    assert model.duality_gap_ <= 2e-6


TOP = corners(4)[corners(4).sum(axis=1) == 2]
SUMS = [[1, 1, 0, 0], [0, 0, 2, 1]]
TRIANGLE = np.array([[0, 0, 0], [4, 0, 0], [0, 2, 0], [0, 0, 4 / 3]])
FREE = sk.Polyhedron(np.vstack([[[1, 2, 3]], -np.eye(3)]), [4, 0, 0, 0], bounds=(None, None))
SQUARE = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 0.0], [1.0, 0.0, -1.0]])

POLYHEDRAL = {
    "diagonal": (sk.LinearImage(sk.TopK(2), np.diag([2.0, -1.0, 0.5, 3.0])), TOP * [2.0, -1.0, 0.5, 3.0]),
    "sums": (sk.LinearImage(sk.TopK(2, sense="max"), SUMS), TOP @ np.transpose(SUMS)),
    "invertible": (sk.LinearImage(sk.Polyhedron([[1, 2, 3]], [4]), SQUARE), TRIANGLE @ SQUARE.T),
    "no bounds": (sk.LinearImage(FREE, SQUARE[:2]), TRIANGLE @ SQUARE[:2].T),
    "known": (known_image(integer=False), None),
    "product": (sk.LinearImage(sk.Product([sk.Simplex(), sk.Box()], [2, 1]), SQUARE[[0, 2]]),
                np.array([[a, 1 - a, b] for a in (0, 1) for b in (0, 1)]) @ SQUARE[[0, 2]].T),
}  # fmt: skip


def test_free_variables_within_a_product():
    """The polyhedron has slacks and no bounds, so that its variables are not the first ones of the standard form."""
    region = sk.LinearImage(sk.Product([sk.Simplex(), FREE, FREE], [2, 3, 3]), np.ones((2, 8)) - np.eye(2, 8, 4))
    one = [np.concatenate(parts) for parts in itertools.product(np.eye(2), TRIANGLE, TRIANGLE)]
    X, C = small_data(2, n=20)
    truth = training_truth(np.array(one) @ region.matrix.T, X, C)
    assert_reaches(sk.SPOPlusRegressor(region, solver="interior-point").fit(X, C), truth)


def fractional_points():
    region = sk.Knapsack(WEIGHTS, ROOM, integer=False)
    points = region.solve_min(np.random.default_rng(0).normal(size=(20_000, 4)) * [3, 4, 5, 2])
    return np.unique(points.round(12), axis=0) @ np.vstack([MIX, FEES]).T


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("name", POLYHEDRAL)
def test_solvers_reach_the_optimum_over_the_images_of_vertices(name, alpha):
    region, points = POLYHEDRAL[name]
    points = fractional_points() if points is None else points
    X, C = small_data(points.shape[1] - (region.offset is not None), n=20)
    C = region.extend(C)
    known = region.offset is not None
    truth = training_truth(points, X, C, region.offset, pinned=known, sense=region.sense, alpha=alpha)
    assert truth > 0.1
    for solver in ("interior-point", "conic", "bundle", "dual"):
        model = sk.SPOPlusRegressor(region, solver=solver, alpha=alpha).fit(X, C)
        assert_reaches(model, truth)
        if known:
            C_hat = model.predict(X)
            assert_array_equal(C_hat[:, -1], 1.0)
            assert_allclose(model.fit(X, C, offset=region.offset).predict(X, region.offset), C_hat)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_bound_with_a_known_cost_of_integers(sense):
    region = known_image(sense)
    X, C = small_data(2, n=20)
    C, points = region.extend(C), packings(WEIGHTS, ROOM) @ np.vstack([MIX, FEES]).T
    truth = training_truth(points, X, C, region.offset, pinned=True, sense=sense)
    assert_reaches(sk.SPOPlusRegressor(region).fit(X, C, offset=region.offset), truth)


def items(X, d):
    """Features of a shared model that is one model per cost, with zeros for the known cost."""
    own = np.column_stack([X, np.ones(len(X))])
    table = np.zeros((len(X), d + 1, d * own.shape[1]))
    for j in range(d):
        table[:, j, j * own.shape[1] : (j + 1) * own.shape[1]] = own
    return table.reshape(len(X), -1)


def test_a_shared_model_with_zeros_leaves_the_known_cost_as_it_is():
    region = known_image()
    X, C = small_data(2, n=20)
    C, points = region.extend(C), packings(WEIGHTS, ROOM) @ np.vstack([MIX, FEES]).T
    model = sk.SPOPlusRegressor(region, shared=True, fit_intercept=False)
    model.fit(items(X, 2), C, offset=region.offset)
    assert_reaches(model, training_truth(points, X, C, region.offset, pinned=True))
    assert_array_equal(model.predict(items(X, 2), offset=region.offset)[:, -1], 1.0)


KNOWN = sk.LinearImage(sk.Knapsack(WEIGHTS, ROOM, integer=False), MIX, FEES)
SMOOTH_KNOWN = sk.LinearImage(sk.EntropySimplex(), np.eye(4), FEES)
ONE_MODEL_PER_KIND = [
    sk.SPOPlusRegressor(alpha=0.1),
    sk.SPOPlusRegressor(alpha=0.1, prior="ridge"),
    sk.SPOPlusRegressor(fit_intercept=False),
    sk.SPOPlusRegressor(alpha=0.1, l1_ratio=0.5),
    sk.SPOPlusRegressor(alpha=0.1, solver="sgd", random_state=0, tol=1e-3),
    sk.SPOPlusRegressorCV(n_alphas=3, cv=2),
    sk.SPORegressor(n_restarts=0, random_state=0),
    sk.SPOMLPRegressor(max_iter=5, random_state=0),
    sk.SPOStackingRegressor(estimators=[("a", sk.SPOPlusRegressor(KNOWN, alpha=0.1))], cv=2),
    sk.TwoStageRegressor(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("model", ONE_MODEL_PER_KIND, ids=lambda model: type(model).__name__)
def test_known_costs_are_exact_in_every_model(model, with_offset):
    X, C = small_data(2, n=30)
    Y, known = KNOWN.extend(C), {"offset": KNOWN.offset} if with_offset else {}
    fitted = clone(model).set_params(region=KNOWN).fit(X[:20], Y[:20], **known)
    for copy in (fitted, pickle.loads(pickle.dumps(fitted))):
        C_hat = copy.predict(X, **known)
        assert_array_equal(C_hat[:, -1], 1.0)
        assert_array_equal(copy.decide(X, **known), KNOWN.argmin(C_hat))
        assert copy.score(X, Y, **known) == pytest.approx(-sk.normalized_spo_loss(Y, C_hat, KNOWN))
        assert copy.report(X, Y, **known).rows[type(model).__name__]["spo_loss"] == pytest.approx(
            sk.spo_loss(Y, C_hat, KNOWN)
        )


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "conic", "bundle", "sgd"])
def test_known_costs_of_a_strongly_convex_region(solver):
    X, C = small_data(4, n=20)
    Y = SMOOTH_KNOWN.extend(C)
    models = [
        sk.SPOPlusRegressor(SMOOTH_KNOWN, solver=name, alpha=0.1, tol=1e-4, random_state=0).fit(X, Y)
        for name in (solver, "bundle")
    ]
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=2e-4)
    assert all(model.duality_gap_ <= 1e-4 for model in models)
    assert_array_equal(models[0].predict(X)[:, -1], 1.0)


def test_known_costs_in_products_chunks_sparse_features_and_passes():
    X, C = small_data(3, n=60)
    region = sk.Product([sk.Box(sense=KNOWN.sense), KNOWN], sizes=[1, 3], sense=KNOWN.sense)
    Y = np.column_stack([C, np.ones(60)])
    expected = sk.SPOPlusRegressor(region, alpha=0.1).fit(X, Y)
    assert_array_equal(expected.predict(X)[:, -1], 1.0)
    chunks = sk.data.ChunkedData.from_arrays(X, Y, chunk_rows=25)
    for model in (
        sk.SPOPlusRegressor(region, alpha=0.1).fit_chunks(chunks),
        sk.SPOPlusRegressor(region, alpha=0.1).fit(sp.csr_array(X), Y),
    ):
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-5)
        assert_array_equal(model.predict(X)[:, -1], 1.0)
    model = sk.SPOPlusRegressor(region, random_state=0)
    for part in (slice(0, 30), slice(30, 60)):
        model.partial_fit(X[part], Y[part])
    assert_array_equal(model.predict(X)[:, -1], 1.0)


def test_costs_that_are_not_extended_are_predicted():
    """The last cost is known if it is 1 in all samples, as ``extend`` makes it."""
    X, C = small_data(3)
    model = sk.SPOPlusRegressor(KNOWN, alpha=0.1).fit(X, C)
    assert np.ptp(model.predict(X)[:, -1]) > 0.1


def test_extended_frames_keep_names_and_index():
    pd = pytest.importorskip("pandas")
    X, C = small_data(2)
    frame = pd.DataFrame(C, columns=["gas", "coal"], index=pd.date_range("2024-01-01", periods=len(C)))
    longer = KNOWN.extend(frame)
    assert list(longer.columns) == ["gas", "coal", "known cost"] and longer.index.equals(frame.index)
    assert_array_equal(longer.to_numpy(), KNOWN.extend(C))
    assert list(frame.columns) == ["gas", "coal"]
    model = sk.SPOPlusRegressor(KNOWN, alpha=0.1).fit(X, longer)
    assert list(model.cost_names_in_) == ["gas", "coal", "known cost"]
    assert list(KNOWN.extend(longer.iloc[:, 1:]).columns) == ["coal", "known cost", "known cost (2)"]
    assert sk.LinearImage(sk.Box(), MIX).extend(frame) is frame


def test_extended_polars_frames_keep_names():
    pl = pytest.importorskip("polars")
    longer = KNOWN.extend(pl.DataFrame({"gas": [1, 2], "coal": [3, 4]}))
    assert longer.columns == ["gas", "coal", "known cost"] and longer["known cost"].to_list() == [1.0, 1.0]


@pytest.mark.parametrize("integer", [False, True])
def test_price_times_weight_is_the_inner_region_with_scaled_costs(integer):
    """Row j of the coefficients is scaled by the weight of item j: the same models, losses and optima."""
    inner = sk.Knapsack(WEIGHTS, ROOM, integer=integer)
    X, C = small_data(4, n=40)
    image = sk.SPOPlusRegressor(sk.LinearImage(inner, np.diag(WEIGHTS)), tol=1e-7).fit(X, C)
    plain = sk.SPOPlusRegressor(inner, tol=1e-7).fit(X, C * WEIGHTS)
    gap = 1e-6 * plain.objective_
    assert plain.objective_ > 1.0
    assert abs(image.objective_ - plain.objective_) <= gap
    assert max(image.lower_bound_, plain.lower_bound_) <= min(image.objective_, plain.objective_) + 1e-9
    assert_array_equal(image.decide(X) / WEIGHTS, inner.argmin(image.predict(X) * WEIGHTS))


def test_diagonal_images_keep_the_fast_forms():
    box = sk.LinearImage(sk.Box(-1, 2), np.diag([2.0, -1.0, 0.5])).standard_form()
    assert box.project is None and box.A.shape == (0, 3)
    assert_array_equal([box.lower, box.upper], [[-2, -2, -0.5], [4, 1, 1]])
    X, C = small_data(3)
    region = sk.LinearImage(sk.Box(), np.diag([2.0, 1.0, 0.5]))
    image = sk.SPOPlusRegressor(region, solver=IntervalSolver()).fit(X, C)
    assert_reaches(image, training_truth(corners(3) * [2.0, 1.0, 0.5], X, C))


def test_products_are_trained_one_factor_at_a_time():
    inner = sk.Product([sk.Simplex(), sk.TopK(1), sk.Simplex()], [3, 2, 2])
    M = np.zeros((5, 7))
    M[[3, 0], :3], M[2, 3:5], M[4, 5:] = [[1, 2, 0], [0, 1, 1]], [1, -1], [2, 1]  # row 1 is zero
    region = sk.LinearImage(inner, M)
    assert [columns.tolist() for columns, _ in region.blocks()] == [[0, 1, 3], [2], [4]]
    C, W = random_costs(5), np.zeros((40, 5))
    for columns, factor in region.blocks():
        W[:, columns] = factor.argmin(C[:, columns])
    assert_array_equal(W, region.argmin(C))
    X, C = small_data(5)
    model = sk.SPOPlusRegressor(region).fit(X, C)
    assert_reaches(model, sk.SPOPlusRegressor(region, solver="bundle").fit(X, C).objective_)
    M[4, 0] = 1.0
    assert not has(region.set_params(matrix=M.copy()), "blocks")
    assert not has(sk.LinearImage(sk.Box(), np.eye(40), np.ones(40)), "blocks")


SMOOTH = {
    "tall": sk.LinearImage(sk.Ellipsoid(radius=2), np.vstack([SQUARE, [[1, 1, 1]]])),
    "square": sk.LinearImage(sk.EntropySimplex(-0.7), SQUARE),
    "markowitz": sk.LinearImage(sk.Markowitz(np.diag([1.0, 2.0, 3.0]), 0.9), SQUARE),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_solvers_of_curved_regions_agree(name):
    region = SMOOTH[name]
    X, C = small_data(region.n_dim, n=20)
    solvers = ["conic", "bundle", "newton", "interior-point" if name == "markowitz" else "lbfgs"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [sk.SPOPlusRegressor(region, solver=solver, alpha=0.1).fit(X, C) for solver in solvers]
    for model in models:  # lbfgs proves little at a kink of the loss, also on the plain region; "auto" goes on
        assert model.duality_gap_ <= 2e-6 or model.solver_ == "lbfgs"
    value = [model.objective_ for model in models]
    assert max(value) - min(value) <= 3e-6 * value[0]
    assert max(model.lower_bound_ for model in models) <= min(value) * (1 + 1e-9)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
@pytest.mark.parametrize("name", SMOOTH)
def test_auto_closes_the_gap_on_curved_images(name, l1_ratio):
    """Also where one sample is at the kink of the loss, as with the square matrix."""
    X, C = small_data(SMOOTH[name].n_dim, n=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = sk.SPOPlusRegressor(SMOOTH[name], alpha=0.1, l1_ratio=l1_ratio).fit(X, C)
    assert model.duality_gap_ <= 1e-6


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


# -- a schedule --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integer", [True, False])
def test_a_schedule_against_a_direct_model(integer):
    """Tasks of several hours on one machine, prices per hour, and a fee for late starts."""
    duration, power, use, hours, capacity = [2, 3, 1], [4.0, 1.0, 2.5], [1.0, 2.0, 1.0], 6, 2.5
    starts = [(task, t) for task in range(3) for t in range(hours - duration[task] + 1)]
    runs = np.zeros((3, hours, len(starts)))
    for column, (task, t) in enumerate(starts):
        runs[task, t : t + duration[task], column] = 1.0
    once = np.array([[float(task == k) for task, _ in starts] for k in range(3)])
    kind = sk.MixedInteger if integer else sk.Polyhedron
    tasks = kind(np.tensordot(use, runs, 1), np.full(hours, capacity), once, np.ones(3), (0, 1))
    fee = np.array([0.7 * t for _, t in starts])
    region = sk.LinearImage(tasks, np.tensordot(power, runs, 1), fee)
    limits = [LinearConstraint(once, 1, 1), LinearConstraint(np.tensordot(use, runs, 1), ub=capacity)]
    for price in random_costs(hours, 10) + 1.0:
        cost = fee + sum(power[task] * price[t : t + duration[task]].sum() * (np.array(starts) == (task, t)).all(axis=1)
                         for task, t in starts)  # fmt: skip
        direct = milp(cost, constraints=limits, bounds=Bounds(0, 1), integrality=int(integer))
        z = region.inner_argmin(region.extend(price))
        assert region.extend(price) @ region.argmin(region.extend(price)) == pytest.approx(direct.fun)
        assert cost @ z == pytest.approx(direct.fun)


def direct_schedule(text, price):
    """Least cost of a day, from the lines of an instance: variables for tasks, machines and starts, one by one."""
    lines = [[float(x) for x in line.split()] for line in text.splitlines()]
    n_machines = int(lines[2][0])
    capacity, body = lines[4 : 3 + 2 * n_machines : 2], lines[4 + 2 * n_machines :]
    tasks = list(zip(body[::2], body[1::2], strict=True))
    assert len(tasks) == lines[3 + 2 * n_machines][0]
    names = [(j, k, t) for j, ((_, length, first, last, _), _) in enumerate(tasks) for k in range(n_machines)
             for t in range(48) if first <= t and t + length <= last]  # fmt: skip
    cost = [tasks[j][0][4] * price[t : t + int(tasks[j][0][1])].sum() for j, _, t in names]
    limits = [LinearConstraint([float(j == i) for j, _, _ in names], 1, 1) for i in range(len(tasks))]
    for k in range(n_machines):
        for r, most in enumerate(capacity[k]):
            for t in range(48):
                use = [tasks[j][1][r] * (kk == k and s <= t < s + tasks[j][0][1]) for j, kk, s in names]
                limits.append(LinearConstraint(use, ub=most))
    found = milp(cost, constraints=limits, bounds=Bounds(0, 1), integrality=1, options={"mip_rel_gap": 0.0})
    assert found.success
    return found.fun


TWO_MACHINES = (
    "30\n2\n2\n0 0 0 0\n10 7\n1 0 0 0\n6 8\n4\n0 6 2 30 12.5\n6 3\n1 20 1 40 6\n5 4\n2 4 0 7 15\n5 5\n3 9 5 44 4\n6 2"
)
DATA = os.environ.get("SKSPO_ENERGY_DATA")


def scheduling_example():
    """Functions of the example that need no data."""
    example = {}
    source = (Path(__file__).parents[2] / "examples" / "plot_scheduling.py").read_text()
    exec(source.split("folder = ")[0], example)
    return example, source


def test_the_schedule_of_the_example_is_short():
    """Instance and region, from the text of a file: under 40 lines."""
    _, source = scheduling_example()
    lines = source.split("def read_instance")[1].split("folder = ")[0].splitlines()
    assert len([line for line in lines if line.strip()]) < 40


def days_of_prices():
    """The last 20 days of the market without gaps, or some that are made up."""
    if DATA is None:
        return 50 + 20 * random_costs(48, 5)
    lines = (Path(DATA) / "energy_scheduling" / "prices2013.dat").read_text().splitlines()[1:]
    prices = np.array([float(line.split()[-1].replace("NA", "nan")) for line in lines]).reshape(-1, 48)
    return prices[~np.isnan(prices).any(axis=1)][-20:]


@pytest.mark.parametrize("name", ["two machines", "load1", "load2", "load3"])
def test_the_schedule_of_the_example_against_a_direct_model(name):
    """The real instances only where they are: the data are not part of the package."""
    if DATA is None and name != "two machines":
        pytest.skip("SKSPO_ENERGY_DATA is not set")
    example, _ = scheduling_example()
    folder = Path(DATA or "") / "energy_scheduling"
    text = TWO_MACHINES if name == "two machines" else (folder / f"{name}.txt").read_text().strip()
    region, starts = example["schedule"](*example["read_instance"](text))
    C = days_of_prices()
    value = [direct_schedule(text, price) for price in C]
    assert_allclose((C * region.argmin(C)).sum(axis=1), value, rtol=1e-9)
    Z = region.inner_argmin(C)
    assert Z.shape[1] == len(starts)
    assert_array_equal(Z.sum(axis=1), np.full(len(C), len({task for task, _, _ in starts})))


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
