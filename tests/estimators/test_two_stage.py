"""``TwoStageRegressor``: fitting to the component of costs that decisions depend on."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from regions_list import REGIONS
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

import skspo as sk

RNG = np.random.default_rng(0)

#: regions, with a matrix A, written by hand, with A w constant on the region
ROWS_AND_COLUMNS = np.concatenate([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))])
PATH_EDGES = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]
INCIDENCE = np.array([[(u == v) - (w == v) for u, w in PATH_EDGES] for v in "sabt"], dtype=float)
EQUALITIES = {
    "simplex": (sk.Simplex(), np.ones((1, 6))),
    "values": (sk.TopK(2, sense="max"), np.ones((1, 5))),
    "entropy": (sk.EntropySimplex(), np.ones((1, 4))),
    "assignment": (sk.Assignment(3), ROWS_AND_COLUMNS),
    "path": (sk.ShortestPath(PATH_EDGES, "s", "t"), INCIDENCE),
    "polyhedron": (sk.Polyhedron(A_eq=[[1, 2, 1, 0]], b_eq=[2], bounds=(0, 3)), np.array([[1.0, 2.0, 1.0, 0.0]])),
    "fixed": (sk.Box([0, 1, 0], [1, 1, 1]), np.array([[0.0, 1.0, 0.0]])),
    "product": (
        sk.Product([sk.Simplex(), sk.Box()], [2, 2]),
        np.array([[1.0, 1.0, 0.0, 0.0]]),
    ),
}


def data(d, n=80, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=(p, d)) + 2.0 * rng.normal(size=(n, 1)) + rng.normal(size=(n, d))


@pytest.mark.parametrize("region, A", EQUALITIES.values(), ids=EQUALITIES)
def test_visible_costs_are_the_residual_of_a_regression_on_the_equalities(region, A):
    C = RNG.normal(size=(7, A.shape[1]))
    residual = C - np.linalg.lstsq(A.T, C.T, rcond=None)[0].T @ A
    assert_allclose(region.visible_costs(C), residual, atol=1e-9)
    assert_allclose(region.visible_costs(C[0]), residual[0], atol=1e-9)


def test_known_projections():
    C = RNG.normal(size=(4, 9))
    assert_allclose(sk.Simplex().visible_costs(C), C - C.mean(axis=1, keepdims=True))
    T = C.reshape(4, 3, 3)
    centered = T - T.mean(axis=1, keepdims=True) - T.mean(axis=2, keepdims=True) + T.mean(axis=(1, 2), keepdims=True)
    assert_allclose(sk.Assignment(3).visible_costs(C), centered.reshape(4, 9), atol=1e-12)
    # On a square there are two paths: only their difference is visible.
    square = sk.ShortestPath([("s", "a"), ("a", "t"), ("s", "b"), ("b", "t")], "s", "t")
    cost = RNG.normal(size=4)
    assert_allclose(square.visible_costs(cost), cost @ [1, 1, -1, -1] / 4 * np.array([1, 1, -1, -1]), atol=1e-12)


@pytest.mark.parametrize("case", REGIONS, ids=lambda case: case.id)
def test_visible_costs_keep_all_differences_of_decisions(case):
    """Decisions of any region, not only optimal ones: their costs change by one number per sample."""
    C = RNG.normal(size=(5, case.d))
    hidden = C - case.region.visible_costs(C)
    W = case.region.argmin(RNG.normal(size=(20, case.d)))
    spread = np.ptp(hidden @ W.T, axis=1)
    assert spread.max() <= 1e-7 * max(1.0, np.abs(W).max())
    assert_allclose(case.region.visible_costs(C - hidden), C - hidden, atol=1e-9)


def test_region_without_equalities():
    X, C = data(4)
    for region in (sk.L1Ball(), sk.Box(), sk.MixedInteger(bounds=(0, 1))):
        assert_array_equal(region.visible_costs(C), C)
        models = [sk.TwoStageRegressor(Ridge(), region, costs=costs).fit(X, C) for costs in ("all", "visible")]
        assert_array_equal(*(model.predict(X) for model in models))


@pytest.mark.parametrize("region, A", EQUALITIES.values(), ids=EQUALITIES)
@pytest.mark.parametrize("regressor", [None, DecisionTreeRegressor(max_depth=3, random_state=0)])
def test_costs_along_equalities_change_nothing(region, A, regressor):
    X, C = data(A.shape[1])
    moved = C + 5.0 * RNG.normal(size=(len(X), A.shape[0])) @ A
    models = [sk.TwoStageRegressor(regressor, region, costs="visible").fit(X, y) for y in (C, moved)]
    predictions = [model.predict(X) for model in models]
    assert_allclose(*predictions, atol=1e-8)
    assert_allclose(*(model.decide(X) for model in models), atol=1e-6)
    assert np.abs(sk.TwoStageRegressor(regressor, region).fit(X, moved).predict(X) - predictions[0]).max() > 0.1
    # Nor do they in predictions.
    lam = RNG.normal(size=(len(X), A.shape[0]))
    assert_allclose(region.argmin(predictions[0] + lam @ A), region.argmin(predictions[0]), atol=1e-6)


@pytest.mark.parametrize("region, A", EQUALITIES.values(), ids=EQUALITIES)
def test_least_squares_decides_as_before(region, A):
    X, C = data(A.shape[1])
    weight = RNG.uniform(size=len(X))
    visible, plain = (
        sk.TwoStageRegressor(region=region, costs=costs).fit(X, C, sample_weight=weight) for costs in ("visible", "all")
    )
    assert_allclose(visible.decide(X), plain.decide(X), atol=1e-6)
    assert visible.score(X, C) == pytest.approx(plain.score(X, C))
    assert_allclose(visible.predict(X), region.visible_costs(plain.predict(X)), atol=1e-8)


def test_offset_is_subtracted_first_and_added_last():
    X, C = data(4)
    offset = RNG.normal(size=C.shape)
    model = sk.TwoStageRegressor(Ridge(), sk.Simplex(), costs="visible").fit(X, C, offset=offset)
    rest = C - offset
    by_hand = Ridge().fit(X, rest - rest.mean(axis=1, keepdims=True)).predict(X) + offset
    assert_allclose(model.predict(X, offset=offset), by_hand)
    assert_array_equal(model.decide(X, offset=offset), sk.Simplex().argmin(by_hand))


def test_shared_regressor_with_weights():
    rng = np.random.default_rng(3)
    X, C, weight = rng.normal(size=(50, 12)), rng.normal(size=(50, 4)), rng.uniform(size=50)
    centered = C - C.mean(axis=1, keepdims=True)
    for regressor in (LinearRegression(), DecisionTreeRegressor(max_depth=3, random_state=0)):
        model = sk.TwoStageRegressor(regressor, sk.TopK(2), shared=True, costs="visible").fit(X, C, weight)
        by_hand = regressor.fit(X.reshape(-1, 3), centered.ravel(), sample_weight=np.repeat(weight, 4))
        assert_allclose(model.predict(X), by_hand.predict(X.reshape(-1, 3)).reshape(50, 4))


def test_one_cost():
    X, C = data(1)
    with pytest.warns(UserWarning, match="y has one column"):
        model = sk.TwoStageRegressor(region=sk.Simplex(), costs="visible").fit(X, C)
    assert_array_equal(model.predict(X), np.zeros((len(X), 1)))
    model = sk.TwoStageRegressor(region=sk.Box(), costs="visible").fit(X, C.ravel())
    assert_allclose(model.predict(X), LinearRegression().fit(X, C.ravel()).predict(X))


def test_whole_numbers_and_frames():
    pd = pytest.importorskip("pandas")
    X, C = data(3)
    counts = np.round(3 * C).astype(int)
    models = [
        sk.TwoStageRegressor(region=sk.TopK(1), costs="visible").fit(X, y) for y in (counts, counts.astype(float))
    ]
    assert_array_equal(*(model.predict(X) for model in models))
    frame = sk.TwoStageRegressor(region=sk.TopK(1), costs="visible").fit(X, pd.DataFrame(counts, columns=list("abc")))
    assert_allclose(frame.predict(X), models[0].predict(X), atol=1e-12)
    assert list(frame.cost_names_in_) == list("abc")


def test_right_hand_sides_may_vary_by_sample():
    X, C = data(4)
    region = sk.Polyhedron(A_eq=[[1, 1, 1, 1]], b_eq=[1], bounds=(0, 1))
    params = {"b_eq": RNG.uniform(1, 3, size=len(X))}
    model = sk.TwoStageRegressor(region=region, costs="visible").fit(X, C, region_params=params)
    assert_allclose(model.predict(X).sum(axis=1), 0.0, atol=1e-9)
    plain = sk.TwoStageRegressor(region=region).fit(X, C, region_params=params)
    assert_allclose(model.decide(X, region_params=params), plain.decide(X, region_params=params), atol=1e-6)


def test_implied_equalities_hold_for_some_right_hand_sides_only():
    """w_1 + w_2 <= 0 fixes both variables, but only for the plain region."""
    X, C = data(3)
    region = sk.Polyhedron(A_ub=[[1, 1, 0]], b_ub=[0], bounds=(0, 1))
    params = {"b_ub": np.linspace(0, 1, len(X))}
    assert_allclose(region.visible_costs(C)[:, :2], 0.0, atol=1e-12)
    model = sk.TwoStageRegressor(region=region, costs="visible").fit(X, C, region_params=params)
    assert_allclose(model.predict(X), LinearRegression().fit(X, C).predict(X))
    without = sk.TwoStageRegressor(region=region, costs="visible").fit(X, C)
    with pytest.warns(UserWarning, match="region_params"):
        without.decide(X, region_params=params)


def test_fixed_variables_of_boxes_that_vary_by_sample_are_visible():
    """The bounds of later samples may differ."""
    X, C = data(3)
    lower, upper = np.tile([0.0, 1.0, 0.0], (len(X), 1)), np.ones((len(X), 3))
    model = sk.TwoStageRegressor(region=sk.Box(), costs="visible")
    model.fit(X, C, region_params={"lower": lower, "upper": upper})
    assert_allclose(model.predict(X), LinearRegression().fit(X, C).predict(X))


def test_bad_value():
    X, C = data(3)
    with pytest.raises(ValueError, match="costs must be 'all' or 'visible', got 'seen'"):
        sk.TwoStageRegressor(region=sk.Simplex(), costs="seen").fit(X, C)
    with pytest.raises(ValueError, match="9 decision variables, but the costs have 3 columns"):
        sk.Assignment(3).visible_costs(C)
