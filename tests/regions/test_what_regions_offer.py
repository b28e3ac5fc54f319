"""What regions of ``regions_list.py`` offer besides decisions, against a model that is not our code."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from region_truth import costs, few, row_dot, sampled, size, solve, those_that_know, those_with, truth
from regions_list import REGIONS
from scipy.optimize import linprog

import skspo as sk
from skspo.calibration import diameter, relative_width
from skspo.calibration.geometry import directions_of
from skspo.regions.capabilities import CAPABILITIES, has


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
