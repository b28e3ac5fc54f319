"""Calibration functions and geometry: every value is computed in a second way, every wrong parameter is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from level_set_steps import angle_bound, decision_cost_bounds, gradient_bounds, level, optimality_bound
from numpy.testing import assert_allclose
from paper_examples import DoubleCone, NegativeExample, TightnessExample
from polyhedral_steps import power_sum_bound, transitions
from rotational_steps import mean_cosine
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gamma
from scipy.stats import chi2

import skspo as sk
from skspo.calibration import (
    LeastSquaresCalibration,
    PolyhedralCalibration,
    RiskCertificate,
    SampleComplexity,
    StronglyConvexCalibration,
    diameter,
    empirical_calibration,
    excess_risks,
    excess_spo_risk,
    generalization_bound,
    rademacher_bound,
    rademacher_monte_carlo,
    radial_calibration_constant,
    region_geometry,
    relative_width,
    risk_certificate,
    spo_plus_range,
    strong_convexity,
)
from skspo.calibration.enumeration import inradius_of_simplex, most_vertices, width_of_points
from skspo.calibration.geometry import _vertices, directions_of

Q = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.6]])


def random_parameters(rng):
    k, width = int(rng.integers(1, 9)), rng.uniform(0.1, 2.0)
    return dict(
        diameter=width * rng.uniform(1.0, 10.0),
        width=width,
        n_dim=k,
        M=rng.uniform(1.0, 5.0),
        alpha=rng.uniform(0.01, 1.0),
        beta=rng.uniform(0.05, 3.0),
        domain=None if rng.uniform() < 0.5 else rng.uniform(0.1, 10.0),
    )


def convex_envelope(x, f):
    """Lower convex hull of the points (x, f(x)), by Andrew's algorithm: no Legendre transform, no formula."""
    hull = []
    for point in zip(x, f, strict=True):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (x1 - x0) * (point[1] - y0) - (y1 - y0) * (point[0] - x0) <= 0:
                hull.pop()
            else:
                break
        hull.append(point)
    return np.interp(x, *np.transpose(hull))


def functions(n=40, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield PolyhedralCalibration(**random_parameters(rng))
        mu = rng.uniform(0.1, 2.0)
        alpha = None if rng.uniform() < 0.5 else rng.uniform(0.1, 1.0)
        yield StronglyConvexCalibration(mu, mu * rng.uniform(1.0, 5.0), 3, rng.uniform(0.1, 3.0), alpha)
        yield LeastSquaresCalibration(rng.uniform(0.1, 10.0))


# -- values ------------------------------------------------------------------------------------------------------------


def test_polyhedral_values_by_direct_arithmetic_and_integration():
    rng = np.random.default_rng(1)
    for _ in range(100):
        p = random_parameters(rng)
        eps = rng.uniform(0.01, 3.0) * p["diameter"] * p["M"]
        xi = 1.0
        for _ in range(p["n_dim"] - 1):
            xi /= 1.0 + math.sqrt(12.0) * p["diameter"] / p["width"]
        factor = 1.0
        if p["domain"] is not None and p["n_dim"] > 1:
            # Share of a chi^2 distribution with k - 1 degrees of freedom below D^2 / sigma^2, for the largest sigma.
            factor = chi2.cdf((p["domain"] / min(p["domain"], p["M"])) ** 2, p["n_dim"] - 1)
        normal_at_1 = math.exp(-0.5) / math.sqrt(2 * math.pi)
        constant = p["alpha"] * xi * factor * normal_at_1 * math.exp(-1.0 - 1.5 * p["beta"] ** 2) / 4.0
        scaled = eps / (p["diameter"] * p["M"])
        expected = constant * (eps * scaled if scaled < 1 else eps)
        assert_allclose(PolyhedralCalibration(**p)(eps), expected, rtol=1e-10)


def test_domain_factor_is_an_incomplete_gamma_function():
    for k, domain, M in itertools.product((2, 3, 6, 11), (0.5, 1.0, 4.0), (1.0, 2.5)):
        top = 0.5 * (domain / min(domain, M)) ** 2
        integral = quad(lambda t, a=(k - 1) / 2: t ** (a - 1) * np.exp(-t), 0.0, top, epsabs=1e-14)[0]
        found = PolyhedralCalibration(2.0, 1.0, k, M, domain=domain).domain_factor
        assert_allclose(found, integral / gamma((k - 1) / 2), rtol=1e-6)
    assert PolyhedralCalibration(2.0, 1.0, 4, 1.0, domain=1e6).domain_factor == pytest.approx(1.0)


def test_strongly_convex_values_by_direct_arithmetic():
    ratio = 0.5
    fifth = StronglyConvexCalibration(1.0, 2.0, 4, beta=2.0)(0.3)
    assert fifth == pytest.approx(ratio**4 * math.sqrt(ratio) * 0.3 / 20.0)
    assert StronglyConvexCalibration(1.0, 2.0, 4, beta=2.0, alpha=0.25)(0.3) == pytest.approx(fifth / 4)


def test_biconjugate_is_the_convex_envelope():
    for f in functions():
        knee = getattr(f, "knee", 1.0)
        # A far point, because the envelope is that of the function on the whole half line.
        x = np.r_[np.linspace(0.0, 4.0 * knee, 4001), 1e7 * knee]
        envelope = convex_envelope(x, np.r_[0.0, f(x[1:])])
        assert_allclose(f.biconjugate(x)[:-1], envelope[:-1], rtol=1e-3, atol=1e-7 * f.biconjugate(knee))
        assert (f.biconjugate(x[1:]) <= f(x[1:]) * (1 + 1e-12)).all()


def test_inverse_solves_the_equation():
    rng = np.random.default_rng(2)
    for f in functions(seed=3):
        eps = 10.0 ** rng.uniform(-3, 3)
        excess = f.biconjugate(eps)
        root = brentq(lambda e, f=f, y=excess: float(f.biconjugate(e) - y), 0.0, 1e5, xtol=1e-13, rtol=1e-13)
        assert_allclose(excess_spo_risk(excess, f), root, rtol=1e-6)
        assert excess_spo_risk(0.0, f) == 0.0
    assert excess_spo_risk([0.0, 1.0], f).shape == (2,)


def test_the_knee_of_the_inverse():
    f = PolyhedralCalibration(2.0, 1.0, 2, 3.0)
    assert f.inverse(f.constant * 6.0 / 4.0) == pytest.approx(3.0)  # half of D_S M = 6
    assert f.inverse(f.constant * 10.0) == pytest.approx(11.5)


def test_a_constant_that_underflows():
    f = PolyhedralCalibration.from_region(sk.Box(), n_dim=2000, M=1.0)
    assert f.constant == 0.0 and f.log_constant < -1000
    assert f(1.0) == 0.0 and f.inverse(0.1) == np.inf and f.inverse(0.0) == 0.0


def test_better_parameters_give_better_bounds():
    base = dict(diameter=2.0, width=1.0, n_dim=3, M=2.0, alpha=0.5, beta=1.0, domain=2.0)
    reference = PolyhedralCalibration(**base)(0.5)
    for better in ({"alpha": 0.6}, {"beta": 0.9}, {"width": 1.2}, {"domain": 3.0}, {"domain": None}, {"n_dim": 2}):
        assert PolyhedralCalibration(**{**base, **better})(0.5) > reference
    for worse in ({"M": 2.5}, {"diameter": 2.5}):
        assert PolyhedralCalibration(**{**base, **worse})(0.5) < reference


# -- geometry ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", range(2, 10))
def test_simplex_width_by_the_facets_of_its_differences(d):
    if d <= 6:
        U = directions_of(sk.Simplex(), d)
        brute = width_of_points(U) if d > 2 else np.ptp(U)
        assert_allclose(relative_width(sk.Simplex(), d), brute)
    # Two-valued directions attain it, in every dimension.
    best = np.inf
    for p in range(1, d):
        v = np.r_[np.full(p, 1 / p), np.full(d - p, -1 / (d - p))]
        best = min(best, np.ptp(v) / np.linalg.norm(v))
    assert_allclose(relative_width(sk.Simplex(), d), best)


@pytest.mark.parametrize(("k", "d"), [(1, 4), (2, 4), (2, 5), (3, 5), (2, 6), (3, 6), (4, 6), (5, 6)])
def test_topk_geometry_by_enumeration(k, d):
    choices = np.array([w for w in itertools.product((0.0, 1.0), repeat=d) if sum(w) == k])
    points = choices @ directions_of(sk.TopK(k), d)
    assert_allclose(relative_width(sk.TopK(k), d), width_of_points(points))
    assert_allclose(diameter(sk.TopK(k), d), np.linalg.norm(points[:, None] - points, axis=2).max())


def test_small_polyhedra_are_exact_and_right():
    # A triangle in space: sides 3, 4, 5, width = height over the longest side.
    T = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    triangle = sk.Polyhedron(A_ub=np.array([[3.0, 4.0, 0.0], [-1.0, 0, 0], [0, -1.0, 0]]) @ T.T, b_ub=[12.0, 0.0, 0.0],
                             A_eq=T[:, 2:].T, b_eq=[1.0], bounds=(None, None))  # fmt: skip
    geometry = region_geometry(triangle)
    assert geometry.n_dim == 2 and geometry.diameter.kind == geometry.width.kind == "exact"
    assert_allclose([geometry.diameter, geometry.width], [5.0, 12.0 / 5.0])
    assert _vertices(triangle, 3).shape == (3, 3)
    # A segment, and a point.
    segment = sk.Polyhedron(A_eq=[[1.0, 1.0]], b_eq=[1.0], bounds=(0, 1))
    assert_allclose(region_geometry(segment)[:2], [math.sqrt(2)] * 2)
    point = sk.Polyhedron(A_eq=np.eye(2), b_eq=[1.0, 2.0], bounds=(None, None))
    assert region_geometry(point) == (0.0, 0.0, 0)


def test_assignment_and_path_polytopes_by_their_points():
    perms = np.array([np.eye(3)[list(p)].ravel() for p in itertools.permutations(range(3))])
    U = directions_of(sk.Assignment(3), 9)
    assert_allclose(relative_width(sk.Assignment(3), 9), width_of_points(perms @ U))
    big = relative_width(sk.Assignment(5), 25)
    assert big.kind == "lower bound" and big == pytest.approx(2.0 / 4.0)  # the ball around 1/5 everywhere
    grid = sk.ShortestPath.grid(2, 3)
    paths = np.unique(grid.argmin(np.random.default_rng(0).normal(size=(300, 7))), axis=0)
    assert len(paths) == 3
    assert_allclose(relative_width(grid, 7), width_of_points(paths @ directions_of(grid, 7)))


def test_level_set_width_is_at_most_any_extent_and_useful():
    rng = np.random.default_rng(4)
    for region in (sk.EntropySimplex(), sk.EntropySimplex(-0.3), sk.LogBarrierSimplex(), sk.LogBarrierSimplex(12.0)):
        d = 5
        U = directions_of(region, d)
        V = rng.normal(size=(3000, d - 1))
        V = np.concatenate([V, np.eye(d) @ U]) @ U.T
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        extent = np.einsum("ij,ij->i", V, region.solve_min(-V) - region.solve_min(V)).min()
        width = relative_width(region, d)
        assert width.kind == "lower bound"
        assert 0.3 * extent <= width <= extent
        # The inscribed ball fits, and a slightly larger one does not: it is nearly the largest.
        for scale, inside in ((1.0, True), (1.2, False)):
            ball = 1 / d + scale * float(width) / 2 * V
            feasible = (ball > 0).all() and (level(region, np.abs(ball))[0] <= region._data(d) + 1e-9).all()
            assert feasible == inside
    two = sk.EntropySimplex(-0.5)
    assert relative_width(two, 2).kind == "exact" and relative_width(two, 2) == pytest.approx(diameter(two, 2))


def test_double_cone_geometry_by_brute_force():
    rng = np.random.default_rng(5)
    for a, b in ((1.0, 2.0), (2.0, 1.0), (1.5, 1.5)):
        cone = DoubleCone(a, b)
        V = rng.normal(size=(100_000, 3))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        extent = np.einsum("ij,ij->i", V, cone.solve_min(-V) - cone.solve_min(V))
        assert relative_width(cone, 3) <= extent.min() <= 1.001 * relative_width(cone, 3)
        assert 0.999 * diameter(cone, 3) <= extent.max() <= diameter(cone, 3)  # some extent is the longest distance


def test_enumeration_helpers():
    assert most_vertices(6, 3) == 8 and most_vertices(5, 2) == 5 and most_vertices(8, 4) == 20  # cyclic polytopes
    regular = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
    assert inradius_of_simplex(regular) == pytest.approx(math.sqrt(3) / 6)
    assert inradius_of_simplex(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])) == 0.0


@pytest.mark.parametrize("region", [sk.Ellipsoid(Q, radius=0.7), sk.Ellipsoid(), sk.LqBall(), sk.EntropySimplex(),
                                    sk.LogBarrierSimplex(4.0)], ids=repr)  # fmt: skip
def test_strong_convexity_in_a_norm_by_second_differences(region):
    """mu and L are the extreme curvatures of f relative to the A-norm: compared with f along many segments."""
    rng = np.random.default_rng(6)
    root = rng.normal(size=(3, 3))
    for A in (None, Q, root @ root.T + 0.1 * np.eye(3)):
        mu, L, r, f_min = strong_convexity(region, 3, A)
        W, V = (region.solve_min(rng.normal(size=(4000, 3))) for _ in range(2))
        # Also short segments, for the curvature at a single point.
        V = W + (V - W) * rng.choice([1.0, 0.05], size=(4000, 1))
        step = V - W
        size = np.einsum("ij,jk,ik->i", step, np.eye(3) if A is None else A, step)
        f_w, grad = level(region, W)
        rest = 2.0 * (level(region, V)[0] - f_w - np.einsum("ij,ij->i", grad, step))
        keep = size > 1e-6 * size.max()
        assert (rest[keep] >= (mu * (1 - 1e-6) * size)[keep]).all()
        assert (rest[keep] <= (L * (1 + 1e-6) * size)[keep]).all()
        assert_allclose(f_w, r, rtol=1e-7)
        assert f_min == pytest.approx(level(region, region.solve_min(np.ones((1, 3)) * 0.0))[0][0])
    if isinstance(region, sk.Ellipsoid) and region.Q is not None:
        assert strong_convexity(region, 3, Q)[:2] == pytest.approx((2.0, 2.0))  # its own norm


def test_level_gradient_by_finite_differences():
    rng = np.random.default_rng(7)
    for region in (sk.Ellipsoid(Q, [1.0, 0.0, -1.0]), sk.LqBall(1.5), sk.EntropySimplex(), sk.LogBarrierSimplex(4.0)):
        W = 0.9 * region.solve_min(rng.normal(size=(5, 3))) + 0.1 * region.solve_min(np.zeros((1, 3)))
        f, grad = level(region, W)
        for j, h in itertools.product(range(3), (1e-6,)):
            step = h * np.eye(3)[j]
            slope = (level(region, W + step)[0] - level(region, W - step)[0]) / (2 * h)
            assert_allclose(grad[:, j], slope, rtol=1e-5, atol=1e-6)
        assert f.shape == (5,)


# -- wrong parameters --------------------------------------------------------------------------------------------------

GOOD = dict(diameter=2.0, width=1.0, n_dim=3, M=2.0, alpha=0.5, beta=1.0, domain=None)
STRONG = StronglyConvexCalibration(1.0, 2.0, 3)
BALL = sk.Ellipsoid()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"M": 0.9}, "M must be .*at least 1"),
        ({"M": np.inf}, "M must be"),
        ({"M": "2"}, "M must be"),
        ({"alpha": 1.1}, "alpha must be .*at most 1"),
        ({"alpha": 0.0}, "alpha must be .*above 0"),
        ({"alpha": True}, "alpha must be"),
        ({"beta": 0.0}, "beta must be .*above 0"),
        ({"beta": np.nan}, "beta must be"),
        ({"domain": -1.0}, "domain must be .*above 0"),
        ({"width": 0.0}, "width must be .*degenerate"),
        ({"width": 3.0}, "above diameter"),
        ({"diameter": 0.0}, "diameter must be .*one decision"),
        ({"n_dim": 0}, "n_dim must be an integer of at least 1"),
        ({"n_dim": 2.0}, "n_dim must be an integer"),
    ],
)
def test_polyhedral_parameters_out_of_range(change, match):
    with pytest.raises(ValueError, match=match):
        PolyhedralCalibration(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ((0.0, 1.0, 3), "mu must be"),
        ((1.0, np.inf, 3), "L must be"),
        ((2.0, 1.0, 3), "above L"),
        ((1.0, 1.0, 1), "n_dim must be an integer of at least 2.*not calibrated"),
        ((1.0, 1.0, 3, 0.0), "beta must be"),
        ((1.0, 1.0, 3, 1.0, 1.5), "alpha must be"),
    ],
)
def test_strongly_convex_parameters_out_of_range(args, match):
    with pytest.raises(ValueError, match=match):
        StronglyConvexCalibration(*args)


def _simplex_certificate(**change):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    model = sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1).fit(X, C)
    options = dict(calibration=PolyhedralCalibration.from_region(sk.Simplex(), n_dim=3, M=1.0, domain=1.0))
    return risk_certificate(model, X, C, **{**options, **change})


BAD_CALLS = {
    "eps-zero": (lambda: STRONG(0.0), ValueError, "eps must be positive"),
    "eps-negative": (lambda: STRONG([0.1, -0.1]), ValueError, "eps must be positive"),
    "excess-negative": (lambda: excess_spo_risk(-1e-9, STRONG), ValueError, "must be nonnegative"),
    "excess-nan": (lambda: excess_spo_risk(np.nan, STRONG), ValueError, "must be nonnegative and finite"),
    "one-decision": (
        lambda: PolyhedralCalibration.from_region(sk.Box(np.zeros(2), np.zeros(2)), M=1.0), ValueError, "one decision"),
    "integer-region": (
        lambda: PolyhedralCalibration.from_region(sk.Knapsack([1, 2], 2), M=1.0), TypeError, "relative_width"),
    "not-level-set": (
        lambda: StronglyConvexCalibration.from_region(sk.Simplex(), n_dim=3), TypeError, "strong_convexity"),
    "not-smooth": (lambda: StronglyConvexCalibration.from_region(sk.LqBall(1.5), n_dim=3), ValueError, "L is infinite"),
    "segment": (lambda: StronglyConvexCalibration.from_region(sk.EntropySimplex(-0.5), n_dim=2), ValueError, "n_dim"),
    "no-dimension": (lambda: region_geometry(sk.Simplex()), ValueError, "say which one"),
    "no-diameter": (
        lambda: LeastSquaresCalibration.from_region(sk.OracleRegion(lambda C: C, 2)), TypeError, "diameter"),
    "norm-shape": (lambda: strong_convexity(BALL, 3, np.eye(2)), ValueError, r"a square matrix of shape \(3, 3\)"),
    "norm-symmetric": (lambda: strong_convexity(BALL, 2, [[1.0, 0.5], [0.0, 1.0]]), ValueError, "symmetric"),
    "norm-definite": (lambda: strong_convexity(BALL, 2, np.diag([1.0, 0.0])), ValueError, "positive definite"),
    "delta-half": (lambda: generalization_bound(0.1, 1.0, 1.0, 10, 0.5), ValueError, "delta must be"),
    "delta-zero": (lambda: generalization_bound(0.1, 1.0, 1.0, 10, 0.0), ValueError, "delta must be"),
    "n-zero": (lambda: generalization_bound(0.1, 1.0, 1.0, 0, 0.1), ValueError, "n_samples"),
    "rademacher-negative": (lambda: generalization_bound(-0.1, 1.0, 1.0, 10, 0.1), ValueError, "rademacher"),
    "radius-zero": (lambda: rademacher_bound(np.ones((2, 2)), 0.0, 2), ValueError, "radius"),
    "norm-name": (lambda: rademacher_bound(np.ones((2, 2)), 1.0, 2, norm="nuclear"), ValueError, "norm must be"),
    "one-draw": (lambda: rademacher_monte_carlo(np.ones((2, 2)), 1.0, 2, n_draws=1), ValueError, "n_draws"),
    "range-negative": (lambda: spo_plus_range(1.0, -1.0, 1.0), ValueError, "cost_bound"),
    "unbounded-costs": (
        lambda: SampleComplexity(PolyhedralCalibration(**GOOD), 2.0, 1.0, 1.0, 0.1), ValueError, "no finite range"),
    "least-squares-rate": (
        lambda: SampleComplexity(LeastSquaresCalibration(1.0), 2.0, 1.0, 1.0, 0.1), TypeError, "SPO\\+ loss"),
    "uncountable": (
        lambda: SampleComplexity(PolyhedralCalibration(9.0, 1.0, 500, 1.0, domain=1.0), 9.0, 1.0, 1.0, 0.1)
        .sample_size(0.1), OverflowError, "too small"),
    "samples-one": (lambda: excess_risks(BALL, [1.0, 0.0], [[1.0, 0.0]]), ValueError, "two rows"),
    "samples-shape": (lambda: excess_risks(BALL, [1.0, 0.0, 0.0], np.ones((5, 2))), ValueError, "c_hat must have"),
    "samples-nan": (lambda: excess_risks(BALL, [1.0, 0.0], np.full((5, 2), np.nan)), ValueError, "must be finite"),
    "wrong-mean": (
        lambda: empirical_calibration(BALL, lambda n, r: r.normal(size=(n, 2)), 0.1, c_bar=[1.0, 0.0]),
        ValueError, "not the mean"),
    "not-symmetric": (
        lambda: empirical_calibration(BALL, lambda n, r: r.exponential(size=(n, 2)) ** 3 - 5.0, 0.3, n_samples=20_000,
                                      c_bar=[1.0, 1.0], random_state=0), ValueError, "not centrally symmetric"),
    "too-few-draws": (
        lambda: empirical_calibration(BALL, lambda n, r: r.normal(size=(5, 2)), 0.1), ValueError, "asked for 4000"),
    "confidence": (
        lambda: empirical_calibration(BALL, lambda n, r: r.normal(size=(n, 2)), 0.1, confidence=1.0),
        ValueError, "confidence"),
    "invisible-cost": (
        lambda: decision_cost_bounds(sk.EntropySimplex(), [[1.0, 2.0, 3.0]], [[2.0, 2.0, 2.0]]),
        ValueError, "c2 has a row without effect on decisions"),
    "zero-cost": (lambda: angle_bound(BALL, [[0.0, 0.0]], [[1.0, 0.0]]), ValueError, "c_bar has a row"),
    "shape-mismatch": (lambda: optimality_bound(BALL, np.ones((2, 2)), np.ones((3, 2))), ValueError, "W must have"),
    "no-level": (lambda: gradient_bounds(sk.Simplex(), [[1.0, 0.0]]), TypeError, "level"),
    "one-dimension": (lambda: mean_cosine(1.0, 1.0, 1), ValueError, "n_dim"),
    "radii": (lambda: radial_calibration_constant(1.0, [0.0], 1.0, 1.0, 3), ValueError, "radii must be positive"),
    "power-negative": (lambda: power_sum_bound([1.0], [1.0], -1.0), ValueError, "p must be"),
    "power-empty": (lambda: power_sum_bound([0.0], [1.0], 1.0), ValueError, "positive sums"),
    "hidden-direction": (lambda: transitions(sk.Simplex(), [1.0, 0.0], [1.0, 1.0]), ValueError, "decisions vary"),
    "example": (lambda: NegativeExample(1.0, 0.0), ValueError, "sigma"),
    "tightness": (lambda: TightnessExample(1.0, 1.0, 1, 0.1), ValueError, "n_dim"),
    "cone": (lambda: DoubleCone(-1.0).argmin([[1.0, 2.0]]), ValueError, "a must be"),
    "certificate-unfitted": (
        lambda: risk_certificate(sk.SPOPlusRegressor(), [[1.0]], [[1.0]], STRONG), Exception, "not fitted"),
    "certificate-radius": (lambda: _simplex_certificate(radius=1e-3), ValueError, "radius is 0.001, but the model"),
    "certificate-costs": (lambda: _simplex_certificate(cost_bound=0.1), ValueError, "a row of the data"),
    "certificate-delta": (lambda: _simplex_certificate(delta=0.7), ValueError, "delta must be"),
    "certificate-dimension": (
        lambda: _simplex_certificate(calibration=PolyhedralCalibration(1.5, 1.0, 3, 1.0, domain=1.0)),
        ValueError, "dimension 3"),
    "certificate-diameter": (
        lambda: _simplex_certificate(calibration=PolyhedralCalibration(1.0, 1.0, 2, 1.0, domain=1.0)),
        ValueError, "diameter"),
    "certificate-width": (
        lambda: _simplex_certificate(calibration=PolyhedralCalibration(1.5, 1.4, 2, 1.0, domain=1.0)),
        ValueError, "width"),
    "certificate-kind": (
        lambda: _simplex_certificate(calibration=StronglyConvexCalibration(1.0, 1.0, 2)), TypeError,
        "strong_convexity"),
    "certificate-unbounded": (
        lambda: _simplex_certificate(calibration=PolyhedralCalibration.from_region(sk.Simplex(), n_dim=3, M=1.0)),
        ValueError, "no finite range"),
    "certificate-contradiction": (
        lambda: _simplex_certificate(
            calibration=PolyhedralCalibration.from_region(sk.Simplex(), n_dim=3, M=1.0, domain=100.0)),
        ValueError, "no distribution satisfies both"),
    "certificate-squares": (
        lambda: _simplex_certificate(calibration=LeastSquaresCalibration(1.0)), TypeError, "SPO\\+ loss"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CALLS)
def test_misuse_gets_a_clear_error(name):
    call, error, match = BAD_CALLS[name]
    with pytest.raises(error, match=match):
        call()


def test_the_certificate_needs_a_linear_model():
    X, C = np.random.default_rng(0).normal(size=(2, 20, 3))
    model = sk.TwoStageRegressor(region=sk.Ellipsoid()).fit(X, C)
    with pytest.raises(TypeError, match="linear models"):
        risk_certificate(model, X, C, STRONG)
    assert isinstance(_simplex_certificate(), RiskCertificate)


def test_slope_for_one_rotationally_symmetric_distribution():
    # Costs at the distances 1 and 3 from a mean of length 1: min(s, t) s / (t^2 + s t) is 1/2 and 1/12.
    slope = sk.calibration.radial_calibration_constant(1.0, [1.0, 3.0], 1.0, 4.0, 2)
    assert slope == pytest.approx(0.5 * (1.0 / 2.0 + 1.0 / 12.0) * 0.25**4.5 / 2.0, rel=1e-12)
