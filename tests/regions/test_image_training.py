"""Training on a ``LinearImage`` against problems written for CVXPY, and known costs."""

import itertools
import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from image_problems import FEES, MIX, ROOM, SMOOTH, SQUARE, WEIGHTS, known_image, random_costs, small_data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from small_sets import corners, packings

import skspo as sk
from skspo.regions.capabilities import has
from skspo.solvers.interior_point.intervals import IntervalSolver


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
