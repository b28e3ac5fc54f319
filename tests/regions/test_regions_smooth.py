"""Balls, level sets and modeled regions: closed forms against solvers, capabilities against their definitions."""

from __future__ import annotations

import pickle

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from regions_list import pnorm
from sklearn.base import clone

import skspo as sk
from skspo.calibration import diameter, relative_width
from skspo.calibration.geometry import bounding_box, directions_of
from skspo.regions._oracles.level_sets import entropy_argmin, entropy_value, log_barrier_argmin, log_barrier_value
from skspo.regions.balls import Ellipsoid, L1Ball, LqBall
from skspo.regions.level_sets import EntropySimplex, LogBarrierSimplex
from skspo.regions.markowitz import Markowitz
from skspo.regions.user import CvxpyRegion, OracleRegion

TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
D = 4
Q = np.array([[2.0, 0.5, 0.0, 0.1], [0.5, 1.0, 0.2, 0.0], [0.0, 0.2, 3.0, -0.4], [0.1, 0.0, -0.4, 0.7]])
CENTER = np.array([1.0, -2.0, 0.5, 0.0])


def pick_lowest(C):
    return np.eye(C.shape[1])[C.argmin(axis=1)]


def capped_ball(w):
    return [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.7]


def entropy_cone(w):
    return [cp.sum(cp.entr(w)) >= 0.6, cp.sum(w) == 1]


def power_cone(w):
    return [cp.PowCone3D(w[0], w[1], w[2], 0.3), w[3] == w[0] + 1, cp.abs(w) <= 2]


def spectral(w):
    M = cp.Variable((3, 3), PSD=True)
    return [cp.trace(M) == 1, w == cp.hstack([M[0, 0], M[0, 1], M[1, 2], M[2, 2]])]


# name -> (region, the same set as CVXPY constraints)
REGIONS = {
    "l1": (L1Ball(1.5), lambda w: [cp.norm1(w) <= 1.5]),
    "l2": (LqBall(2.0, 1.5), lambda w: [cp.norm(w) <= 1.5]),
    "lq": (LqBall(1.5, 2.0), lambda w: [pnorm(w, 1.5) <= 2.0]),
    "l1.2": (LqBall(1.2), lambda w: [pnorm(w, 1.2) <= 1.0]),
    "sphere": (Ellipsoid(radius=2.0), lambda w: [cp.norm(w) <= 2.0]),
    "ellipsoid": (
        Ellipsoid(Q, CENTER, 0.8),
        lambda w: [cp.norm(np.linalg.cholesky(Q).T @ (w - CENTER)) <= 0.8],
    ),
    "entropy": (EntropySimplex(), lambda w: [cp.sum(cp.entr(w)) >= 0.5 * np.log(12), cp.sum(w) == 1]),
    "entropy-loose": (EntropySimplex(-0.3), lambda w: [cp.sum(cp.entr(w)) >= 0.3, cp.sum(w) == 1]),
    "barrier": (LogBarrierSimplex(), lambda w: [cp.sum(cp.log(w)) >= -8 * np.log(4), cp.sum(w) == 1]),
    "barrier-tight": (LogBarrierSimplex(5.7), lambda w: [cp.sum(cp.log(w)) >= -5.7, cp.sum(w) == 1]),
    "markowitz": (Markowitz(Q, 0.6), lambda w: [w >= 0, cp.sum(w) == 1, cp.quad_form(w, Q) <= 0.6]),
    "markowitz-cash": (
        Markowitz(Q, 0.3, budget="at_most"),
        lambda w: [w >= 0, cp.sum(w) <= 1, cp.quad_form(w, Q) <= 0.3],
    ),
    "cvxpy": (CvxpyRegion(capped_ball, D), capped_ball),
    "cvxpy-exp": (CvxpyRegion(entropy_cone, D), entropy_cone),
    "cvxpy-pow": (CvxpyRegion(power_cone, D), power_cone),
    "cvxpy-psd": (CvxpyRegion(spectral, D), spectral),
}
SOLVED = ("markowitz", "markowitz-cash", "cvxpy", "cvxpy-exp", "cvxpy-pow", "cvxpy-psd")
STRONG = ("l2", "lq", "l1.2", "sphere", "ellipsoid", "entropy", "entropy-loose", "barrier", "barrier-tight")

each = pytest.mark.parametrize("name", REGIONS)


def f_value(region, W):
    """The function whose level set the region is."""
    if isinstance(region, LqBall):
        return (np.abs(W) ** region.q).sum(axis=1) ** (2.0 / region.q)
    if isinstance(region, Ellipsoid):
        step = W - (0.0 if region.center is None else CENTER)
        return np.einsum("ij,jk,ik->i", step, np.eye(W.shape[1]) if region.Q is None else Q, step)
    return entropy_value(W) if isinstance(region, EntropySimplex) else log_barrier_value(W)


def violation(region, W):
    """How far decisions are outside, in a way that does not use the region's own code."""
    if isinstance(region, L1Ball):
        return np.abs(W).sum(axis=1) - region.radius
    if isinstance(region, (LqBall, Ellipsoid)):
        return f_value(region, W) - region.radius**2
    if isinstance(region, (EntropySimplex, LogBarrierSimplex)):
        f, r = f_value(region, np.maximum(W, 0.0)), region._data(W.shape[1])
        return np.max([f - r, np.abs(W.sum(axis=1) - 1.0), -W.min(axis=1)], axis=0)
    if isinstance(region, Markowitz):
        total = W.sum(axis=1) - 1.0
        risk = np.einsum("ij,jk,ik->i", W, Q, W) - region.max_risk
        return np.max([risk, np.abs(total) if region.budget == "equal" else total, -W.min(axis=1)], axis=0)
    a, b, c, e = W.T
    if region.constraints is capped_ball:
        return np.max([np.linalg.norm(W, axis=1) - 0.7, np.abs(W.sum(axis=1) - 1.0), -W.min(axis=1)], axis=0)
    if region.constraints is entropy_cone:
        f = entropy_value(np.maximum(W, 0.0))
        return np.max([f + 0.6, np.abs(W.sum(axis=1) - 1.0), -W.min(axis=1)], axis=0)
    if region.constraints is power_cone:
        # Near zero a power magnifies any error of its argument, so the arguments get the tolerance.
        power = np.maximum(a + 1e-8, 0.0) ** 0.3 * np.maximum(b + 1e-8, 0.0) ** 0.7
        return np.max([np.abs(c) - power, -a, -b, np.abs(e - a - 1.0), np.abs(W).max(axis=1) - 2.0], axis=0)
    # a, b, c, e are M[0, 0], M[0, 1], M[1, 2], M[2, 2]; a band matrix has a completion if its 2 x 2 blocks allow one.
    m = 1.0 - a - e
    return np.max([-a, -e, -m, b * b - a * m, c * c - e * m], axis=0)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@each
def test_argmin_against_clarabel(name):
    region, constraints = REGIONS[name]
    rng = np.random.default_rng(0)
    C = rng.standard_normal((6, D))
    w, c = cp.Variable(D), cp.Parameter(D)
    problem = cp.Problem(cp.Minimize(c @ w), constraints(w))
    best = []
    for row in C:
        c.value = row
        problem.solve(cp.CLARABEL, **TIGHT)
        best.append(problem.value)
    for scale in (1e-6, 1.0, 1e6):
        W = region.argmin(scale * C)
        assert violation(region, W[:2] if name in SOLVED else W).max() <= 1e-8
        assert_allclose((C * W).sum(axis=1), best, rtol=1e-7, atol=1e-8)
    assert_allclose(clone(region).set_params(sense="max").argmin(-C), region.argmin(C), atol=1e-12)
    assert_allclose(region.argmin(C[0]), region.argmin(C)[0], atol=1e-12)
    assert region.argmin(np.empty((0, D))).shape == (0, D)


@each
def test_argmin_degenerate_costs_are_feasible(name):
    region, _ = REGIONS[name]
    C = np.array([[0.0] * D, [3.0] * D, [-2.0] * D, [1.0, 1.0, 2.0, 2.0], [0.0, 0.0, 0.0, -1.0], [1.0, 0.0, 0.0, 0.0]])
    W = region.argmin(C)
    assert np.isfinite(W).all()
    assert violation(region, W).max() <= 1e-8
    assert_array_equal(W, region.argmin(C))
    # Optimal: no worse than the decisions for nearby costs.
    near = region.argmin(C + 1e-3 * np.random.default_rng(1).standard_normal(C.shape))
    assert ((C * W).sum(axis=1) <= (C * near).sum(axis=1) + 1e-7).all()


@pytest.mark.parametrize("name", [n for n in REGIONS if n not in SOLVED])
def test_argmin_extreme_scales(name):
    region, _ = REGIONS[name]
    C = np.random.default_rng(0).standard_normal((20, D))
    W = region.argmin(C)
    with np.errstate(all="raise", under="ignore"):
        for scale in (1e-300, 1e-150, 1e150, 1e300):
            assert_allclose(region.argmin(scale * C), W, rtol=1e-9, atol=1e-9)


@each
def test_support_epigraph(name):
    region, _ = REGIONS[name]
    V = np.random.default_rng(3).standard_normal((3, D))
    expected = -(-V * region.solve_min(-V)).sum(axis=1)
    X = cp.Variable(V.shape)
    t, constraints = region.support_epigraph(X)
    assert t.shape == (3,)
    problem = cp.Problem(cp.Minimize(np.array([1.0, 2.0, 3.0]) @ t), [*constraints, X == V])
    assert problem.is_dcp()
    problem.solve(cp.CLARABEL)
    assert_allclose(t.value, expected, rtol=2e-6, atol=2e-6)


@each
def test_repair(name):
    region, _ = REGIONS[name]
    rng = np.random.default_rng(4)
    W = region.solve_min(rng.standard_normal((30, D)))
    center = W.mean(axis=0)
    inside = center + 0.5 * (W - center)
    moved = region.repair(W + 1e-4 * rng.standard_normal(W.shape))
    wild = region.repair(W + rng.standard_normal(W.shape))
    few = 4 if name.startswith("cvxpy") else None
    for repaired in (moved, wild, region.repair(W)):
        assert violation(region, repaired[:few]).max() <= 1e-8
    assert_allclose(moved, W, atol=2e-2)
    assert_allclose(region.repair(inside), inside, atol=1e-12)
    assert_allclose(region.repair(W), W, atol=1e-7)


@each
def test_equalities(name):
    region, _ = REGIONS[name]
    E = region.equalities(D)
    W = region.solve_min(np.random.default_rng(5).standard_normal((40, D)))
    singular = np.linalg.svd(W - W.mean(axis=0), compute_uv=False)
    assert E.shape == (D - (singular > 1e-5).sum(), D)
    assert_allclose(E @ E.T, np.eye(E.shape[0]), atol=1e-10)
    assert_allclose(W @ E.T - W[:1] @ E.T, 0.0, atol=1e-6)


@each
def test_diameter_and_width(name):
    region, _ = REGIONS[name]
    rng = np.random.default_rng(6)
    n = 50 if name in SOLVED else 2000
    directions = np.concatenate([rng.standard_normal((n, D)), np.eye(D), np.ones((1, D))])
    if isinstance(region, Ellipsoid) and region.Q is not None:
        directions = np.concatenate([directions, np.linalg.eigh(Q)[1].T])
    U = directions_of(region, D)
    directions = np.round(directions @ U @ U.T, 5)  # without the errors of U, which are costs of another size
    directions = directions[np.linalg.norm(directions, axis=1) > 1e-9]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    low, high = region.solve_min(directions), region.solve_min(-directions)
    W = np.concatenate([low, high])
    largest = np.sqrt(((W[:, None] - W[None, :400]) ** 2).sum(axis=2)).max()
    extents = ((high - low) * directions).sum(axis=1)
    longest = diameter(region, D)
    assert largest <= longest * (1 + 1e-9)
    assert longest.kind == "upper bound" or largest >= 0.97 * longest
    width = relative_width(region, D)
    if width.kind == "exact":
        assert extents.min() >= width - 1e-8
        assert extents.min() <= width + 1e-8
    else:
        assert width.kind == "lower bound"
        assert 0.0 < width <= extents.min()


@pytest.mark.parametrize("make", [EntropySimplex, LogBarrierSimplex])
def test_level_set_diameter_is_a_useful_bound(make):
    rng = np.random.default_rng(0)
    for d in (2, 3, 10, 50):
        region = make()
        half = np.where(np.arange(d) < d // 2, 1.0, -1.0)
        C = np.concatenate([rng.standard_normal((300, d)), half[None, :], np.eye(d)[:2]])
        W = region.solve_min(np.concatenate([C, -C]))
        largest = np.sqrt(np.maximum(((W[:, None] - W[None]) ** 2).sum(axis=2), 0.0)).max()
        longest = diameter(region, d)
        assert largest <= longest * (1 + 1e-9)
        assert largest >= (0.999 if d == 2 else 0.65) * longest
        assert longest.kind == ("exact" if d == 2 else "upper bound")


@pytest.mark.parametrize("name", STRONG)
def test_strong_convexity(name):
    region, _ = REGIONS[name]
    mu, L, r, f_min = region.strong_convexity(D)
    rng = np.random.default_rng(7)
    W = region.solve_min(np.concatenate([rng.standard_normal((500, D)), np.eye(D), -np.eye(D)]))
    center = W.mean(axis=0)
    # The definition, along segments of the region: f((a+b)/2) <= (f(a)+f(b))/2 - mu/8 |a-b|^2, and >= with L.
    a, b = W, center + rng.random((W.shape[0], 1)) * (W[::-1] - center)
    gap = (f_value(region, a) + f_value(region, b)) / 2 - f_value(region, (a + b) / 2)
    distance2 = ((a - b) ** 2).sum(axis=1)
    assert (gap >= mu / 8 * distance2 * (1 - 1e-9) - 1e-12).all()
    if np.isfinite(L):
        assert (gap <= L / 8 * distance2 * (1 + 1e-9) + 1e-12).all()
    assert_allclose(f_value(region, W[:500]), r, rtol=1e-7)
    assert f_value(region, region.solve_min(np.zeros((1, D))))[0] == pytest.approx(f_min, abs=1e-12)
    assert mu <= L
    if isinstance(region, (EntropySimplex, LogBarrierSimplex)):
        hessian = 1.0 / np.maximum(W, 1e-300) ** (1 if isinstance(region, EntropySimplex) else 2)
        assert hessian.min() == pytest.approx(mu, rel=1e-6)
        if np.isfinite(L):
            assert hessian.max() == pytest.approx(L, rel=1e-5)


def test_lq_strong_convexity_smoothness():
    assert LqBall(2.0).strong_convexity(3) == (2.0, 2.0, 1.0, 0.0)
    assert LqBall(1.5, 2.0).strong_convexity(3) == (1.0, np.inf, 4.0, 0.0)
    assert LqBall(1.5).strong_convexity(1).L == 2.0
    assert not hasattr(L1Ball(), "strong_convexity")


@pytest.mark.parametrize("name", [n for n in REGIONS if n not in SOLVED])
def test_worst_argmin(name):
    region, _ = REGIONS[name]
    rng = np.random.default_rng(8)
    C_true = rng.standard_normal((7, D))
    C = rng.standard_normal((7, D))
    C[0] = 0.0
    C[1] = [1.0, 1.0, 2.0, 3.0]
    C[2] = [-2.0, 2.0, 2.0, 1.0]
    W, best = region.worst_argmin(C, C_true), region.solve_min(C)
    assert violation(region, W).max() <= 1e-9
    assert_allclose((C * W).sum(axis=1), (C * best).sum(axis=1), rtol=1e-9, atol=1e-9)
    # The worst optimal decision is the limit of decisions for costs tilted against the truth.
    tilted = region.solve_min(C - 1e-9 * C_true)
    worst, reached = (C_true * W).sum(axis=1), (C_true * tilted).sum(axis=1)
    assert_allclose(worst, reached, rtol=1e-3, atol=1e-3)
    assert (worst >= (C_true * best).sum(axis=1) - 1e-9).all()


# -- balls -------------------------------------------------------------------------------------------------------------


def test_ball_ties_and_zeros():
    assert_array_equal(L1Ball(2.0).argmin([[1.0, -1.0], [0.0, 0.0], [0.0, -3.0]]), [[-2, 0], [-2, 0], [0, 2]])
    for region in (LqBall(), LqBall(1.3), Ellipsoid()):
        assert_array_equal(region.argmin([[0.0, 0.0]]), [[0.0, 0.0]])
    assert_array_equal(Ellipsoid(Q, CENTER).argmin(np.zeros((1, D))), CENTER[None])
    assert_allclose(LqBall(1.000001).argmin([[3.0, -1.0]]), [[-1.0, 0.0]])


def test_l1_standard_form():
    A, b, lower, upper, project = L1Ball(2.0).standard_form(3)
    W = L1Ball(2.0).argmin(np.random.default_rng(0).standard_normal((5, 3)))
    for w in W:
        u = np.concatenate([np.maximum(w, 0), np.maximum(-w, 0), [2.0 - np.abs(w).sum()]])
        assert_allclose(A @ u, b)
        assert ((lower <= u) & (u <= upper)).all()
        assert_allclose(project @ u, w)
    assert project.shape == (3, 7)


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (L1Ball(0.0), "radius must be a positive finite number, got 0.0"),
        (LqBall(radius=np.inf), "radius must be a positive finite number"),
        (LqBall(1.0), "q must be above 1 and at most 2, got 1.0. For q = 1 use L1Ball"),
        (LqBall("a"), "q must be above 1 and at most 2"),
        (Ellipsoid(np.ones((3, 2))), r"Q must be a square matrix of shape \(3, 3\), got shape \(3, 2\)"),
        (Ellipsoid([[1.0, 2.0, 0], [0.0, 1.0, 0], [0, 0, 1]]), "Q must be symmetric.*transpose by 2"),
        (Ellipsoid(np.diag([1.0, 1.0, -1.0])), "Q must be positive definite.*smallest eigenvalue is -1"),
        (Ellipsoid(np.diag([1.0, 1.0, 0.0])), "Q must be positive definite.*unbounded"),
        (Ellipsoid(np.eye(3), [1.0, 2.0]), r"center must have shape \(3,\).*got shape \(2,\)"),
        (Ellipsoid(center=[1.0, 2.0]), "has 2 decision variables, but the costs have 3"),
        (Ellipsoid(radius=-1.0), "radius must be a positive"),
        (EntropySimplex(-np.log(3.0)), "empty or a single point, threshold must be above -log d = -1.09861"),
        (EntropySimplex(0.1), r"at most 0.*use Simplex\(\)"),
        (EntropySimplex("x"), "threshold must be a finite number or None, got 'x'"),
        (EntropySimplex(sense="up"), "sense must be"),
        (LogBarrierSimplex(3.0), "empty or a single point, threshold must be above d log d = 3.29584"),
        (LogBarrierSimplex(np.inf), "threshold must be a finite number"),
        (Markowitz(np.ones((3, 2)), 1.0), r"covariance must be a square matrix of shape \(3, 3\)"),
        (Markowitz(np.triu(np.ones((3, 3))), 1.0), "covariance must be symmetric"),
        (Markowitz(np.diag([1.0, 1.0, -1.0]), 1.0), "positive semidefinite, but its smallest eigenvalue is -1"),
        (Markowitz(np.eye(3), 0.0), "max_risk must be a positive finite number, got 0.0"),
        (Markowitz(np.eye(3), 0.2), "infeasible, max_risk = 0.2 is below the smallest risk.*0.333333"),
        (Markowitz(np.eye(3), 1.0, budget="all"), "budget must be 'equal' or 'at_most', got 'all'"),
        (CvxpyRegion(lambda w: [w >= 0, cp.sum(w) <= -1], 3), "region is empty, the constraints are infeasible"),
        (CvxpyRegion(lambda w: [w[:2] >= 0, w <= 1, w[0] + w[1] <= 1], 3), r"unbounded, w\[2\] can be arbitrarily low"),
        (CvxpyRegion(lambda w: [w >= 0, cp.norm(w) >= 1], 3), r"the constraint 1.0 <= .*norm.* is not DCP"),
        (CvxpyRegion(lambda w: [w == cp.Variable(3, boolean=True)], 3), "integer variable.*MixedInteger, or OracleReg"),
        (CvxpyRegion(lambda w: [w >= 0, w <= 1], None), "n_dim must be a positive integer, got None"),
        (OracleRegion(pick_lowest, 4), "has 4 decision variables, but the costs have 3"),
        (OracleRegion(lambda C: C[:, :1]), r"decisions of the same shape \(2, 3\).*returned shape \(2, 1\)"),
        (OracleRegion(lambda C: C * np.nan), "not finite for row 0"),
        (OracleRegion(lambda C: "no"), r"must return an array of numbers of shape \(2, 3\)"),
    ],
)
def test_errors(region, message):
    with pytest.raises(ValueError, match=message):
        region.argmin(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (OracleRegion(3), "oracle must be a function"),
        (CvxpyRegion([], 3), "constraints must be a function w -> list of CVXPY constraints"),
        (CvxpyRegion(lambda w: None, 3), "must return a list of CVXPY constraints, got None"),
    ],
)
def test_type_errors(region, message):
    with pytest.raises(TypeError, match=message):
        region.argmin(np.ones((2, 3)))


# -- level sets --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [None, -3.0, -0.5])
def test_entropy_iterations_on_many_rows(threshold):
    C = np.random.default_rng(0).standard_normal((100_000, 50))
    r = EntropySimplex(threshold)._data(50)
    W, beta, n_iter = entropy_argmin(C, r)
    assert n_iter <= 15
    assert (entropy_value(W) <= r + 1e-12).all()
    # A good start saves iterations and changes nothing.
    warm, _, n_warm = entropy_argmin(C[:1000], r, beta[:1000] * 1.001)
    assert n_warm <= min(n_iter, 4)
    assert_allclose(warm, W[:1000], rtol=1e-7, atol=1e-12)


def test_log_barrier_iterations_on_many_rows():
    C = np.random.default_rng(0).standard_normal((100_000, 50))
    r = LogBarrierSimplex()._data(50)
    W, nu, n_iter = log_barrier_argmin(C, r)
    assert n_iter <= 15
    assert (log_barrier_value(W) <= r + 1e-10).all()
    warm, _, n_warm = log_barrier_argmin(C[:1000], r, nu[:1000] * 1.001)
    assert n_warm <= 3
    assert_allclose(warm, W[:1000], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("d", [2, 3, 50, 300])
@pytest.mark.parametrize("power", [1, 5])
def test_level_sets_meet_the_kkt_conditions(d, power):
    """The dual bound u log sum exp(-c/u) proves optimality for every threshold from tight to loose."""
    C = np.random.default_rng(d).standard_normal((200, d)) ** power
    span = np.ptp(C, axis=1)
    for fraction in (1e-8, 1e-3, 0.1, 0.5, 0.9, 0.999):
        r = -np.log(d) * (1.0 - fraction)
        W, beta, _ = entropy_argmin(C, r)
        assert (entropy_value(W) <= r + 1e-13 * d).all()
        u = (span / beta)[:, None]
        low = C.min(axis=1, keepdims=True)
        bound = low[:, 0] - u[:, 0] * (np.log(np.exp((low - C) / u).sum(axis=1)) + r)
        assert ((C * W).sum(axis=1) - bound <= 1e-8 * span).all()
    for factor in (1.0 + 1e-8, 1.001, 1.2, 2.0, 20.0):
        r = factor * d * np.log(d)
        W, nu, _ = log_barrier_argmin(C, r)
        assert (log_barrier_value(W) <= r * (1.0 + 1e-13)).all()
        G = (C - C.min(axis=1, keepdims=True)) / span[:, None]
        u = 1.0 / (1.0 / (G + nu[:, None])).sum(axis=1)
        terms = np.log((G + nu[:, None]) / u[:, None])
        bound = -(nu + (r - d) * u - u * terms.sum(axis=1))
        assert ((G * W).sum(axis=1) - bound <= 1e-8).all()


def test_entropy_ties():
    C = np.array([[1.0, 1.0, 2.0], [1.0, 2.0, 2.0], [5.0, 5.0, 5.0], [1.0, 1.0 + 1e-13, 2.0]])
    W = EntropySimplex(-0.5).argmin(C)
    assert_allclose(W[0], [0.5, 0.5, 0.0])
    assert_allclose(W[1][1], W[1][2])
    assert_allclose(W[2], 1 / 3)
    assert entropy_value(W).max() <= -0.5 + 1e-12
    assert (C[3] @ W[3]) <= 1.0 + 1e-12
    # Below -log 2 two alternatives are not enough, and the constraint stays active.
    W = EntropySimplex(-0.8).argmin(C)
    assert_allclose(entropy_value(W[:2]), -0.8)
    assert_array_equal(EntropySimplex(0.0).argmin([[3.0, 1.0, 2.0]]), [[0.0, 1.0, 0.0]])
    assert not hasattr(EntropySimplex(0.0), "strong_convexity")
    assert diameter(EntropySimplex(0.0), 3) == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("make", [EntropySimplex, LogBarrierSimplex])
def test_one_alternative(make):
    region = make()
    assert_array_equal(region.argmin([[3.0], [-1.0], [0.0]]), np.ones((3, 1)))
    assert_array_equal(make(0.0).argmin([[3.0]]), [[1.0]])
    assert diameter(region, 1) == 0.0
    assert_array_equal(region.equalities(1), [[1.0]])
    assert region.strong_convexity(1)[:2] == (1.0, 1.0)
    assert_array_equal(region.repair(np.array([[0.9]])), [[1.0]])


def test_default_thresholds():
    assert -np.log(50) < EntropySimplex()._data(50) < -np.log(49)
    assert np.isfinite(EntropySimplex().strong_convexity(50).L)
    assert EntropySimplex(-1.0).strong_convexity(50).L == np.inf
    assert LogBarrierSimplex()._data(10) == pytest.approx(20 * np.log(10))


# -- modeled regions --------------------------------------------------------------------------------------------------


def test_oracle_gets_the_users_sense_and_a_copy():
    seen = []

    def oracle(values):
        seen.append(values.copy())
        values[:] = 7.0
        return np.eye(3, dtype=int)[seen[-1].argmax(axis=1)]

    region = OracleRegion(oracle, sense="max")
    C = np.array([[1.0, 5.0, 2.0]])
    W = region.argmin(C)
    assert_array_equal(seen[0], [[1.0, 5.0, 2.0]])
    assert_array_equal(C, [[1.0, 5.0, 2.0]])
    assert_array_equal(W, [[0.0, 1.0, 0.0]])
    assert W.dtype == np.float64
    inner = -C
    region.solve_min(inner)
    assert_array_equal(inner, -C)
    assert clone(region).oracle is oracle
    assert OracleRegion(pick_lowest).argmin(np.empty((0, 3))).shape == (0, 3)
    assert OracleRegion(pick_lowest).n_dim is None


class Unclonable:
    def __call__(self, w):
        return capped_ball(w)

    def __deepcopy__(self, memo):
        raise AssertionError("deep-copied")


def test_clone_shares_callables():
    function = Unclonable()
    assert clone(CvxpyRegion(function, 3)).constraints is function
    assert clone(OracleRegion(function)).oracle is function


@each
def test_clone_and_pickle(name):
    region, _ = REGIONS[name]
    C = np.random.default_rng(9).standard_normal((2, D))
    W = region.argmin(C)
    twins = [clone(region)]
    if name[:2] != "cv" or region.constraints.__module__ == __name__:
        twins.append(pickle.loads(pickle.dumps(region)))
    for twin in twins:
        assert "_cache" not in vars(twin)
        assert_allclose(twin.argmin(C), W, atol=1e-12)
        assert repr(twin) == repr(region)


def test_cvxpy_region_rows_do_not_influence_each_other():
    region = CvxpyRegion(capped_ball, D, n_jobs=2)
    C = np.random.default_rng(10).standard_normal((8, D)) * 10.0 ** np.arange(-4, 4)[:, None]
    together = region.argmin(C)
    alone = np.array([region.argmin(c) for c in C])
    assert_allclose(together, alone, atol=1e-12)


def test_cvxpy_region_finds_hidden_equalities():
    region = CvxpyRegion(lambda w: [w[0] <= w[1], w[1] <= w[0], cp.norm(w) <= 1, cp.square(w[2] - w[3]) <= 0], 4)
    E = region.equalities()
    assert E.shape == (2, 4)
    assert_allclose(E @ np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]]).T, 0.0, atol=1e-6)
    low, high = bounding_box(region, 4)
    assert_allclose([low, high], np.outer([-1, 1], np.full(4, np.sqrt(0.5))), atol=1e-6)


def test_solver_failure_is_an_error():
    region = CvxpyRegion(capped_ball, D)
    conic = region._data(D).conic
    conic.b[:] = -1.0
    with pytest.raises(RuntimeError, match=r"could not minimize the costs of row 0 .*status PrimalInfeasible"):
        region.argmin(np.ones((1, D)))


def test_markowitz_with_singular_covariance():
    factor = np.array([[1.0, -1.0, 0.0]])
    region = Markowitz(factor.T @ factor, 0.04)
    W = region.argmin([[-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    assert_allclose(W, [[0.6, 0.4, 0.0], [0.0, 0.0, 1.0]], atol=1e-7)
    assert_allclose(Markowitz(np.zeros((2, 2)), 1.0).argmin([[1.0, 2.0]]), [[1.0, 0.0]], atol=1e-8)


def test_axes_of_an_ellipsoid():
    region = sk.Ellipsoid(np.diag([4.0, 0.25]), radius=3.0)
    assert float(diameter(region, 2)) == pytest.approx(12.0)
    assert float(relative_width(region, 2)) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("solve", "value", "threshold"),
    [
        (entropy_argmin, entropy_value, -1.2),
        (entropy_argmin, entropy_value, -0.2),
        (log_barrier_argmin, log_barrier_value, 8.0),
        (log_barrier_argmin, log_barrier_value, 20.0),
    ],
)
def test_decisions_of_level_sets_are_inside_to_the_last_digit(solve, value, threshold):
    C = np.random.default_rng(0).normal(size=(3000, 4))
    assert (value(solve(C, threshold)[0]) - threshold).max() <= 1e-15 * max(1.0, abs(threshold))
