"""The generators against the formulas written out in loops, and their means against simulation."""

import math

import numpy as np
import pytest
from marks import rest_is_slow
from sklearn.utils import check_random_state

from skspo.datasets import (
    _expected_ceil,
    make_cost_sensitive_classification,
    make_knapsack,
    make_portfolio,
    make_shortest_path,
)

MAKERS = {
    "portfolio": (make_portfolio, {"n_assets": 7}, 7),
    "classification": (make_cost_sensitive_classification, {"n_classes": 6}, 6),
    "shortest_path": (make_shortest_path, {"grid": (2, 3)}, 7),
    "knapsack": (make_knapsack, {"n_items": 7}, 7),
}
all_makers = pytest.mark.parametrize("name", MAKERS)
degrees = pytest.mark.parametrize("degree", [1, 2, 3, 8])


def cost_of(name, b, x, degree, eps, d):
    """One cost (or, for classification, the row of costs) from the formula, without any array."""
    p = len(x)
    t = sum(b_k * x_k for b_k, x_k in zip(b, x, strict=True))
    if name == "portfolio":
        return (1 + (1 + t / math.sqrt(p)) ** degree) * eps
    if name == "shortest_path":
        return ((t / math.sqrt(p) + 3) ** degree + 1) / 3.5**degree * eps
    if name == "knapsack":
        return math.ceil(5 * ((t / math.sqrt(p) + 3) ** degree + 1) / 3.5**degree * eps)
    u = math.copysign(abs(t) ** degree, t) * eps
    s = 1 / (1 + math.exp(-u)) if u > -700 else 0.0
    label = min(max(math.ceil(d * s), 1), d)
    return [abs(j - label) for j in range(1, d + 1)]


@all_makers
@degrees
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_formula(name, degree, noise):
    make, sizes, d = MAKERS[name]
    n, p = 30, 4
    X, C, coef = make(n, p, **sizes, degree=degree, noise=noise, random_state=3, return_coef=True)

    rng = check_random_state(3)  # the documented order of the draws
    if name == "knapsack":
        rng.randint(300, 800, size=(1, d))
    one_row = name == "classification"
    B = rng.binomial(1, 0.5, size=p if one_row else (d, p))
    features = rng.normal(size=(n, p))
    eps = rng.uniform(1 - noise, 1 + noise, size=n if one_row else (n, d))
    np.testing.assert_array_equal(coef, B)
    np.testing.assert_array_equal(X, features)
    if one_row:
        expected = [cost_of(name, B, x, degree, e, d) for x, e in zip(features, eps, strict=True)]
    else:
        expected = [[cost_of(name, B[j], features[i], degree, eps[i, j], d) for j in range(d)] for i in range(n)]
    np.testing.assert_allclose(C, expected, rtol=1e-12)


@all_makers
@degrees
@pytest.mark.parametrize("noise", rest_is_slow([0.5, 0.1, 1.5], 1))
def test_mean_given_the_features(name, degree, noise):
    """Simulate the noise many times at the same features."""
    make, sizes, d = MAKERS[name]
    X, _, coef, mean = make(
        6, 3, **sizes, degree=degree, noise=noise, random_state=1, return_coef=True, return_mean=True
    )
    rng = np.random.default_rng(0)
    for x, m in zip(X, mean, strict=True):
        if name == "classification":
            draws = np.array([cost_of(name, coef, x, degree, e, d) for e in rng.uniform(1 - noise, 1 + noise, 3000)])
        else:
            j = int(rng.integers(d))
            draws = np.array(
                [[cost_of(name, coef[j], x, degree, e, d)] for e in rng.uniform(1 - noise, 1 + noise, 3000)]
            )
            m = m[[j]]
        standard_error = draws.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(draws.mean(axis=0) - m) <= 5 * standard_error + 5e-3 * (standard_error == 0)).all()


@all_makers
def test_mean_is_uncorrelated_with_the_residual(name):
    """E[(c - mean) g(x)] = 0 for every g, over the generator's own samples."""
    make, sizes, _ = MAKERS[name]
    X, C, mean = make(20_000, 3, **sizes, degree=3, random_state=5, return_mean=True)
    for g in (np.ones(len(X)), X[:, 0], X[:, 1] > 0.5, np.cos(X.sum(axis=1))):
        terms = (C - mean) * g[:, None]
        assert (np.abs(terms.mean(axis=0)) <= 5 * terms.std(axis=0) / np.sqrt(len(X))).all()


@all_makers
@degrees
def test_without_noise_the_costs_are_the_mean(name, degree):
    make, sizes, _ = MAKERS[name]
    _, C, mean = make(500, **sizes, degree=degree, noise=0.0, random_state=0, return_mean=True)
    np.testing.assert_array_equal(C, mean)


@all_makers
def test_same_problem_from_the_same_coefficients(name):
    make, sizes, _ = MAKERS[name]
    X, _, coef = make(40, **sizes, degree=2, random_state=0, return_coef=True)
    X_test, C_test, coef_test, mean_test = make(
        50, **sizes, degree=2, coef=coef, random_state=1, return_coef=True, return_mean=True
    )
    np.testing.assert_array_equal(coef_test, coef)
    assert coef_test is not coef
    assert X_test.shape == (50, 5) and C_test.shape == mean_test.shape
    assert not np.isin(X_test, X).any()
    # Without noise the costs are a function of the features and the coefficients.
    _, C_clean = make(50, **sizes, degree=2, noise=0.0, coef=coef, random_state=1)
    if name in ("portfolio", "shortest_path"):
        np.testing.assert_array_equal(C_clean, mean_test)


@all_makers
def test_reproducible(name):
    make, sizes, d = MAKERS[name]
    first, again, other = (make(20, **sizes, random_state=seed) for seed in (7, 7, 8))
    assert len(first) == 2
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other[0])
    assert first[0].shape == (20, 5) and first[1].shape == (20, d)
    assert first[0].dtype == first[1].dtype == np.float64
    # Extras change no draw, and a generator that is passed on continues.
    X, C, *_ = make(20, **sizes, random_state=7, return_coef=True, return_mean=True)
    np.testing.assert_array_equal(X, first[0])
    np.testing.assert_array_equal(C, first[1])
    rng = check_random_state(7)
    np.testing.assert_array_equal(make(20, **sizes, random_state=rng)[0], first[0])
    assert not np.array_equal(make(20, **sizes, random_state=rng)[0], first[0])


def test_extras_come_in_the_documented_order():
    _, _, mean = make_portfolio(4, 3, 6, random_state=0, return_mean=True)
    assert mean.shape == (4, 6)
    _, _, coef, mean, weights = make_knapsack(
        4, 3, 6, random_state=0, return_coef=True, return_mean=True, return_weights=True
    )
    assert coef.shape == (6, 3) and mean.shape == (4, 6) and weights.shape == (6,)


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_classes", [2, 5, 10])
def test_degree_one_classification_has_a_linear_truth(n_classes, noise):
    """Lines of decreasing slope cut the score into intervals, so that a linear model makes the best decisions."""
    X, C, coef, mean = make_cost_sensitive_classification(
        2000, n_classes=n_classes, noise=noise, coef=[1, 0, 1, 1, 0], random_state=0, return_coef=True, return_mean=True
    )
    thresholds = [math.log(k / (n_classes - k)) for k in range(1, n_classes)]
    slopes = -np.arange(n_classes, dtype=float)
    intercepts = np.concatenate([[0.0], np.cumsum(thresholds)])
    decisions = (X @ np.outer(coef, slopes) + intercepts).argmin(axis=1)
    best = mean.min(axis=1)
    np.testing.assert_allclose(mean[np.arange(len(X)), decisions], best, atol=1e-12)
    if noise == 0.0:
        np.testing.assert_array_equal(decisions, C.argmin(axis=1))


@degrees
def test_classification_keeps_the_sign(degree):
    X, C, coef = make_cost_sensitive_classification(500, degree=degree, random_state=2, return_coef=True)
    label = C.argmin(axis=1)
    assert ((X @ coef > 0) == (label >= 5)).all()
    assert C.min() == 0 and (C.max(axis=1) == np.maximum(label, 9 - label)).all()


def test_classification_survives_a_saturated_sigmoid():
    X, C, mean = make_cost_sensitive_classification(
        200, degree=8, coef=np.full(5, 100.0), random_state=0, return_mean=True
    )
    assert np.isfinite(mean).all()
    score = 100 * X.sum(axis=1)
    far = np.abs(score) > 3  # sigmoid(3 ** 8 / 2) is one in floating point; closer to zero, other labels are right
    assert far.sum() > 150
    np.testing.assert_array_equal(C[far].argmin(axis=1), np.where(score[far] > 0, 9, 0))


def test_classification_with_zero_coefficients_is_the_middle_label():
    _, C, mean = make_cost_sensitive_classification(3, coef=np.zeros(5), random_state=0, return_mean=True)
    assert (C.argmin(axis=1) == 4).all()  # ceil(10 * 0.5) = 5, counted from one
    np.testing.assert_array_equal(C, mean)


def test_knapsack_values_and_weights():
    _, C, weights = make_knapsack(50, n_items=40, degree=4, random_state=0, return_weights=True)
    assert (C == np.rint(C)).all() and C.min() >= 1
    assert weights.min() >= 3 and weights.max() < 8
    np.testing.assert_allclose(100 * weights, np.rint(100 * weights), atol=1e-9)
    _, _, weights = make_knapsack(5, n_items=4, n_constraints=2, random_state=0, return_weights=True)
    assert weights.shape == (2, 4)
    _, _, coef = make_knapsack(5, random_state=0, return_coef=True)
    with pytest.raises(ValueError, match="Keep the weights"):
        make_knapsack(5, coef=coef, return_weights=True)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(0.2, 0.9), (0.2, 1.0), (0.5, 3.25), (-2.5, 1.75), (-3.0, -1.0), (2.0, 2.0), (1.3, 1.3), (0.0, 1e-9), (7, 1234.5)],
)
def test_expected_ceil(lower, upper):
    u = lower + (upper - lower) * (np.arange(1_000_000) + 0.5) / 1_000_000
    value = _expected_ceil(np.array([lower]), np.array([upper]))[0]
    assert value == pytest.approx(np.ceil(u).mean() if upper > lower else math.ceil(lower), abs=1e-5 * (1 + abs(upper)))


@all_makers
@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples must be at least 1, got 0"),
        ({"n_samples": 2.5}, TypeError, "n_samples must be an integer, got 2.5"),
        ({"n_features": True}, TypeError, "n_features must be an integer"),
        ({"degree": 0}, ValueError, "degree must be at least 1"),
        ({"degree": 1.5}, TypeError, "degree must be an integer"),
        ({"noise": -0.1}, ValueError, "noise must be finite and at least 0"),
        ({"noise": float("nan")}, ValueError, "noise must be finite"),
        ({"noise": "low"}, TypeError, "noise must be a number"),
        ({"coef": np.ones((3, 3))}, ValueError, r"coef must have shape .* got \(3, 3\)"),
        ({"random_state": "seed"}, ValueError, "seed"),
    ],
)
def test_clear_errors(name, params, error, message):
    make, sizes, _ = MAKERS[name]
    with pytest.raises(error, match=message):
        make(**sizes, **params)


@all_makers
def test_coef_must_be_finite(name):
    make, sizes, _ = MAKERS[name]
    coef = make(2, **sizes, random_state=0, return_coef=True)[2]
    coef[0] = np.inf
    with pytest.raises(ValueError, match="coef must be finite"):
        make(2, **sizes, coef=coef)


def test_errors_of_single_generators():
    with pytest.raises(ValueError, match="n_classes must be at least 2"):
        make_cost_sensitive_classification(n_classes=1)
    with pytest.raises(ValueError, match="grid must be two integers"):
        make_shortest_path(grid=5)
    with pytest.raises(ValueError, match="at least two nodes"):
        make_shortest_path(grid=(1, 1))
    with pytest.raises(TypeError, match=r"grid\[1\] must be an integer"):
        make_shortest_path(grid=(2, 2.0))
    with pytest.raises(ValueError, match="n_constraints must be at least 1"):
        make_knapsack(n_constraints=0)


@pytest.mark.parametrize(("grid", "n_edges"), [((5, 5), 40), ((1, 2), 1), ((3, 4), 17)])
def test_grid_edges(grid, n_edges):
    assert make_shortest_path(2, grid=grid)[1].shape == (2, n_edges)


def test_coefficients_of_a_data_set_are_a_copy():
    _, _, coef = make_portfolio(3, 2, 4, random_state=0, return_coef=True)
    returned = make_portfolio(3, 2, 4, coef=coef, return_coef=True)[2]
    assert returned is not coef
    assert not np.shares_memory(returned, coef)


def test_mean_of_negative_values_of_a_knapsack():
    # An odd degree and large coefficients make some signals negative: then the noise turns the interval around.
    coef = np.full((3, 2), 6.0)
    X, _, mean = make_knapsack(400, 2, 3, degree=1, noise=0.5, coef=coef, random_state=0, return_mean=True)
    signal = 5.0 * (X @ coef.T / np.sqrt(2) + 4.0) / 3.5
    rows = np.flatnonzero((signal < -5.0).all(axis=1))[:5]
    assert rows.size
    eps = (np.arange(200_000) + 0.5) / 200_000 + 0.5
    for i in rows:
        assert mean[i, 0] == pytest.approx(np.ceil(signal[i, 0] * eps).mean(), abs=1e-3)


def test_weights_of_a_knapsack_reach_both_ends():
    weights = make_knapsack(1, n_items=20_000, random_state=0, return_weights=True)[-1]
    assert weights.min() == 3.0
    assert weights.max() == 7.99
