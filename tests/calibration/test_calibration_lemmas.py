"""The lemmas one by one: both sides computed in a second way, and the inequality in at least 100 cases each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from level_set_steps import (
    angle_bound,
    decision_cost_bounds,
    decision_distance_bounds,
    gradient_bounds,
    level,
    optimality_bound,
    spo_plus_term_bound,
)
from numpy.testing import assert_allclose
from polyhedral_steps import (
    conditional_excess_bound,
    delta_bound,
    direction_excess_bound,
    power_sum_bound,
    transition_sum_bound,
    transitions,
)
from rotational_steps import least_risky_length, mean_cosine, mean_cosine_bound, mean_norm, surrogate_lower_risk
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from sides import Sides

import skspo as sk
from skspo.calibration import diameter, excess_risks, strong_convexity
from skspo.calibration.geometry import directions_of

ROOT = np.random.default_rng(98).normal(size=(4, 4))
Q = ROOT @ ROOT.T / 4 + 0.3 * np.eye(4)
A = np.diag([1.0, 2.0, 0.7, 1.5]) + 0.2

STRONG = {
    "ball": (sk.Ellipsoid(radius=1.7), None),
    "ball-A": (sk.Ellipsoid(), A),
    "ellipsoid": (sk.Ellipsoid(Q, [1.0, 2.0, 0.0, -1.0], sense="max"), None),
    "ellipsoid-own-norm": (sk.Ellipsoid(Q), Q),
    "ellipsoid-A": (sk.Ellipsoid(Q), A),
    "entropy": (sk.EntropySimplex(), None),
    "entropy-A": (sk.EntropySimplex(-1.35, sense="max"), A),
    "barrier": (sk.LogBarrierSimplex(6.0), None),
    "barrier-A": (sk.LogBarrierSimplex(), A),
}
strong = pytest.mark.parametrize("name", STRONG)
SMALL = [(sk.L1Ball(), 2), (sk.L1Ball(1.5), 3), (sk.Box([0.0, -1.0, 0.0], [1.0, 1.0, 3.0]), 3), (sk.Simplex(), 4),
         (sk.TopK(2, sense="max"), 4), (sk.ShortestPath.grid(2, 3), 7)]  # fmt: skip


def dual_norm(region, C, norm_matrix):
    """max {c.w : w a direction of the region, w^T A w <= 1}, by the stationarity of the Lagrangian."""
    d = C.shape[1]
    M = np.eye(d) if norm_matrix is None else norm_matrix
    E = region.equalities(d)
    m = E.shape[0]
    system = np.block([[M, E.T], [E, np.zeros((m, m))]])
    W = np.linalg.solve(system, np.concatenate([C.T, np.zeros((m, C.shape[0]))]))[:d].T
    return np.sqrt(np.einsum("ij,ij->i", C, W))


def pair(rng, n=200, d=4):
    """Costs far apart, close together, and opposite."""
    c1 = rng.normal(size=(n, d))
    step = rng.choice([0.05, 0.5, 3.0], size=(n, 1)) * rng.normal(size=(n, d))
    return c1, np.where(rng.uniform(size=(n, 1)) < 0.1, -c1, c1 + step)


# -- strongly convex level sets ----------------------------------------------------------------------------------------


@strong
def test_decision_cost_and_distance_bounds(name):
    """Lemmas 1, 2, 8 and 9, in 200 cases each."""
    region, norm_matrix = STRONG[name]
    c1, c2 = pair(np.random.default_rng(0))
    cost = decision_cost_bounds(region, c1, c2, norm_matrix)
    distance = decision_distance_bounds(region, c1, c2, norm_matrix)
    assert cost.hold() and distance.hold()
    # The same numbers without the code under test.
    k = strong_convexity(region, 4, norm_matrix)
    sign = -1.0 if region.sense == "max" else 1.0
    step = region.argmin(c2) - region.argmin(c1)
    M = np.eye(4) if norm_matrix is None else norm_matrix
    length = np.sqrt(np.einsum("ij,jk,ik->i", step, M, step))
    size1, size2 = dual_norm(region, c1, norm_matrix), dual_norm(region, c2, norm_matrix)
    gap = dual_norm(region, c1 / size1[:, None] - c2 / size2[:, None], norm_matrix)
    h = k.r - k.f_min
    assert_allclose(cost.value, sign * np.einsum("ij,ij->i", c1, step), atol=1e-12)
    assert_allclose(cost.lower, k.mu / math.sqrt(8 * k.L * h) * size1 * length**2, rtol=1e-7, atol=1e-15)
    assert_allclose(cost.upper, k.L / math.sqrt(8 * k.mu * h) * size1 * length**2, rtol=1e-7, atol=1e-15)
    assert_allclose(distance.value, length, rtol=1e-7, atol=1e-12)
    assert_allclose(distance.lower, math.sqrt(2 * k.mu * h) / k.L * gap, rtol=1e-5, atol=1e-7)
    assert_allclose(distance.upper, math.sqrt(2 * k.L * h) / k.mu * gap, rtol=1e-5, atol=1e-7)
    if name in ("ball", "ellipsoid-own-norm"):  # mu = L: both bounds are equalities
        assert_allclose(cost.lower, cost.value, rtol=1e-6, atol=1e-12)
        assert_allclose(cost.upper, cost.value, rtol=1e-6, atol=1e-12)
        assert_allclose(distance.lower, distance.upper, rtol=1e-9)


@strong
def test_optimality_bound_for_any_decision(name):
    """Lemmas 1 and 8, first half, for decisions on the boundary and inside."""
    region, norm_matrix = STRONG[name]
    rng = np.random.default_rng(1)
    c = rng.normal(size=(200, 4))
    W = region.argmin(rng.normal(size=(200, 4)))
    W = W + rng.uniform(size=(200, 1)) * (region.argmin(rng.normal(size=(200, 4))) - W)
    sides = optimality_bound(region, c, W, norm_matrix)
    assert sides.hold() and (sides.lower > 0).all()
    best = region.argmin(c)
    assert_allclose(sides.value, (-1 if region.sense == "max" else 1) * np.einsum("ij,ij->i", c, W - best), atol=1e-12)


@strong
def test_gradient_bounds(name):
    """Lemmas 10 and 11, inside and on the boundary."""
    region, norm_matrix = STRONG[name]
    rng = np.random.default_rng(2)
    center = region.argmin(np.zeros((1, 4)))
    W = center + rng.uniform(0.01, 1.0, size=(200, 1)) * (region.argmin(rng.normal(size=(200, 4))) - center)
    sides = gradient_bounds(region, W, norm_matrix)
    assert sides.hold(1e-8)
    f, grad = level(region, W)
    k = strong_convexity(region, 4, norm_matrix)
    assert_allclose(sides.value, dual_norm(region, grad, norm_matrix), rtol=1e-6)
    assert_allclose(sides.lower, np.sqrt(2 * k.mu * (f - k.f_min)), rtol=1e-9)
    assert_allclose(sides.upper, np.sqrt(2 * k.L * (f - k.f_min)), rtol=1e-9)


@strong
def test_excess_loss_and_angle_bounds(name):
    """Theorem 7 and Lemma 12."""
    region, norm_matrix = STRONG[name]
    rng = np.random.default_rng(3)
    c, moved = pair(rng)
    sides = spo_plus_term_bound(region, c, (moved - c) / 2, norm_matrix)
    assert sides.hold()
    k = strong_convexity(region, 4, norm_matrix)
    size, size_moved = dual_norm(region, c, norm_matrix), dual_norm(region, moved, norm_matrix)
    # <a, b> of the dual norm by polarization.
    inner = (dual_norm(region, c + moved, norm_matrix) ** 2 - dual_norm(region, c - moved, norm_matrix) ** 2) / 4
    factor = k.mu**2 * math.sqrt(k.r - k.f_min) / (math.sqrt(2) * k.L**2.5)
    assert_allclose(sides.lower, 2 * factor * (size_moved - inner / size), rtol=1e-4, atol=1e-9)
    mean, c_hat = pair(rng)
    angle = angle_bound(region, mean, c_hat, norm_matrix)
    assert angle.hold()
    sign = -1 if region.sense == "max" else 1
    excess = sign * np.einsum("ij,ij->i", mean, region.argmin(c_hat) - region.argmin(mean))
    inner = (dual_norm(region, mean + c_hat, norm_matrix) ** 2 - dual_norm(region, mean - c_hat, norm_matrix) ** 2) / 4
    size = dual_norm(region, mean, norm_matrix)
    assert_allclose(angle.value, 1 - inner / (size * dual_norm(region, c_hat, norm_matrix)), atol=1e-9)
    slope = k.mu**2.5 / (math.sqrt(2 * (k.r - k.f_min)) * k.L**2)
    assert_allclose(angle.lower * size, slope * excess, rtol=1e-6, atol=1e-12)


def test_not_smooth_has_no_upper_bound():
    c1, c2 = pair(np.random.default_rng(4))
    for bounds in (decision_cost_bounds, decision_distance_bounds):
        sides = bounds(sk.LqBall(1.5), c1, c2)
        assert sides.hold() and (sides.lower == 0).all() and np.isinf(sides.upper).all()


def test_sides_can_fail():
    assert not Sides(np.array([1.0]), np.array([0.9]), np.array([2.0])).hold()
    assert not Sides(np.array([0.0]), np.array([2.1]), np.array([2.0])).hold()
    assert Sides(np.array([0.0]), np.array([2.0]), np.array([np.inf])).hold()


def test_entropy_decisions_are_differentiable():
    """Lemma 15: central and one-sided difference quotients agree with the derivative, in 100 directions."""
    rng = np.random.default_rng(5)
    region = sk.EntropySimplex()
    c, v = rng.normal(size=(2, 100, 5))
    derivative = region.derivative(c, v)
    for h in (1e-4, -1e-4):
        quotient = (region.argmin(c + h * v) - region.argmin(c)) / h
        assert_allclose(quotient, derivative, atol=2e-3)
    quotient = (region.argmin(c + 1e-4 * v) - region.argmin(c - 1e-4 * v)) / 2e-4
    assert_allclose(quotient, derivative, atol=1e-5)


# -- polyhedra ---------------------------------------------------------------------------------------------------------


def test_excess_risk_is_at_most_the_extent_along_delta():
    """Lemma 3, 200 cases in each region."""
    rng = np.random.default_rng(6)
    for region, d in [*SMALL, (sk.EntropySimplex(), 4), (sk.Ellipsoid(Q), 4)]:
        mean, c_hat = pair(rng, d=d)
        sides = delta_bound(region, c_hat, mean)
        assert sides.hold()
        delta = c_hat - mean
        W, V = region.argmin(delta), region.argmin(-delta)
        sign = -1 if region.sense == "max" else 1
        assert_allclose(sides.upper, sign * np.einsum("ij,ij->i", delta, V - W), atol=1e-12)
        assert (sides.value > 0).sum() >= 20


def test_power_sums():
    """Lemma 4, 300 cases, against exact sums in Python."""
    rng = np.random.default_rng(7)
    closest = np.inf
    for _ in range(300):
        n, p = int(rng.integers(1, 8)), float(rng.uniform(0.0, 12.0))
        a, b = rng.exponential(size=(2, n)) * rng.choice([1e-3, 1.0], size=(2, n))
        sides = power_sum_bound(a, b, p)
        assert sides.hold()
        value = math.fsum(y * (1 + (x / y) ** 2) ** (-p / 2) for x, y in zip(a, b, strict=True))
        assert_allclose(sides.value, value)
        assert_allclose(sides.lower, sum(b) ** (p + 1) / (sum(a) + sum(b)) ** p)
        closest = min(closest, float(sides.value / sides.lower))
    assert closest < 1.01
    assert power_sum_bound([1.0, 0.0], [0.0, 1.0], 2.0).hold()


def random_line(rng, region, d):
    U = directions_of(region, d)
    v = U @ rng.normal(size=U.shape[1])
    return rng.normal(size=d), v / np.linalg.norm(v)


def test_transitions_by_scanning_the_line():
    rng = np.random.default_rng(8)
    for region, d in SMALL:
        for _ in range(5):
            c, v = random_line(rng, region, d)
            t = transitions(region, c, v)
            assert t.size > 0 and (np.diff(t.zeta) >= 0).all() and (np.diff(t.y) < 0).all()
            sign = -1 if region.sense == "max" else 1
            flat = c - (c @ v) * v
            # At a point between two transitions the decision has the height that was found.
            xi = np.sort(rng.uniform(-6, 6, size=400))
            y = sign * (region.argmin(flat + xi[:, None] * v) @ v)
            order = np.searchsorted(t.zeta, xi)
            clear = np.abs(xi[:, None] - t.zeta).min(axis=1, initial=np.inf) > 1e-9
            assert_allclose(y[clear], t.y[order][clear], atol=1e-9)


@pytest.mark.slow
def test_transition_sums():
    """Lemma 5, 150 lines."""
    rng = np.random.default_rng(9)
    for i in range(150):
        region, d = SMALL[i % len(SMALL)]
        c, v = random_line(rng, region, d)
        sides = transition_sum_bound(region, c, v)
        assert sides.hold() and sides.lower > 0
        t = transitions(region, c, v)
        k = d - region.equalities(d).shape[0]
        y = t.y[0] - t.y[-1]
        lower = y / (1 + math.sqrt(12) * float(diameter(region, d)) / y) ** (k - 1)
        value = sum((1 + 3 * (z / t.size) ** 2) ** (-(k - 1) / 2) * (a - b)
                    for z, a, b in zip(t.zeta, t.y[:-1], t.y[1:], strict=True))  # fmt: skip
        assert_allclose([sides.lower, sides.value], [lower, value])


def test_conditional_excess():
    """Lemma 6 in 200 cases; its value against an integral over the oracle's own decisions in 20 of them."""
    rng = np.random.default_rng(10)
    positive = 0
    for i in range(200):
        region, d = SMALL[i % len(SMALL)]
        c, v = random_line(rng, region, d)
        c *= rng.uniform(0.1, 2.0)
        t = transitions(region, c, v)
        sigma, kappa, xi_bar, alpha = rng.uniform(0.3, 2), rng.uniform(0.05, 3), rng.normal(), rng.uniform(0.1, 1)
        domain = None if i % 2 else sigma * rng.uniform(1.0, 4.0)
        part = rng.uniform(0.1, 1.0) * min(kappa, sigma)
        sides = conditional_excess_bound(
            t, xi_bar=xi_bar, sigma=sigma, kappa=kappa, kappa_tilde=part, alpha=alpha, domain=domain
        )
        assert sides.hold()
        positive += sides.lower > 0
        assert conditional_excess_bound(t, xi_bar=xi_bar, sigma=sigma, kappa=kappa, domain=domain).hold()
        if i < 20 and region.sense == "min":
            U = directions_of(region, d)
            flat = c @ U @ U.T
            flat -= (flat @ v) * v

            end = 12.0 if domain is None else math.sqrt(max(2 * domain**2 - t.size**2, 0.0))
            xi = np.linspace(max(xi_bar - 8 * sigma, -end), min(xi_bar + 8 * sigma, end), 4001)
            middle = (xi[1:] + xi[:-1]) / 2
            density = alpha * norm.pdf(middle, xi_bar, sigma)
            moved = flat + (middle[:, None] + 2 * kappa) * v
            W = region.argmin(flat + middle[:, None] * v) - region.argmin(moved)
            integral = np.einsum("i,ij,ij->", density, moved, W) * (xi[1] - xi[0])
            assert_allclose(sides.value, integral, rtol=5e-3, atol=1e-4)
    assert positive >= 100


@pytest.mark.slow
def test_direction_excess_bound():
    """Lemma 7 in 120 cases, by simulation: all normal, or normal on the ball and elsewhere far away."""
    rng = np.random.default_rng(11)
    ratios = []
    for i in range(120):
        region, d = SMALL[i % len(SMALL)]
        if region.sense == "max":
            region = sk.TopK(2)
        U = directions_of(region, d)
        k = U.shape[1]
        sigma = rng.uniform(0.5, 2.0)
        mean, delta = sigma * 0.7 * rng.normal(size=(2, k))
        C = mean + sigma * rng.normal(size=(5000, k))
        domain = None
        if i % 2:
            domain = sigma * rng.uniform(1.0, 3.0)
            near = (np.square(C).sum(axis=1) <= 2 * domain**2) | (np.square(2 * mean - C).sum(axis=1) <= 2 * domain**2)
            # Far out along one ray a shift by 2 Delta changes no decision, and the term is zero.
            C[~near] = mean + rng.choice([-1e3, 1e3], size=(~near).sum())[:, None] * rng.normal(size=k)
        bound = direction_excess_bound(region, U @ mean, U @ delta, sigma=sigma, domain=domain)
        risks = excess_risks(region, U @ (mean + delta), C @ U.T, c_bar=U @ mean, symmetric=True)
        assert 0 < bound <= risks.spo_plus[0] - 5 * risks.spo_plus_error[0]
        ratios.append(risks.spo_plus[0] / bound)
    assert min(ratios) < 100


def test_direction_excess_bound_by_hand():
    """In one dimension, where everything but the transition at zero drops out."""
    bound = direction_excess_bound(sk.Box(-1.0, 1.0), [0.3], [0.4], sigma=0.8)
    expected = 0.4 * 0.4 * 2.0 / 4.0 * math.exp(-1.5 * (0.4**2 + 0.3**2) / 0.64) / (0.8 * math.sqrt(2 * math.pi))
    assert bound == pytest.approx(expected)
    unseen = direction_excess_bound(sk.Simplex(), [1.0, 2.0], [0.5, 0.5], sigma=1.0)
    assert unseen == pytest.approx(0.0, abs=1e-30)  # such a Delta changes no decision


# -- rotationally symmetric costs --------------------------------------------------------------------------------------


def sphere(rng, n, k):
    U = rng.normal(size=(n, k))
    return U / np.linalg.norm(U, axis=1, keepdims=True)


def test_averages_over_the_sphere_by_simulation():
    """Proposition 1 among them: |cbar + zeta| = |cbar| gives the same mean norm."""
    rng = np.random.default_rng(12)
    n = 20_000
    for _ in range(100):
        k, s, t = int(rng.integers(2, 8)), rng.uniform(0.1, 3.0), rng.uniform(0.1, 3.0)
        mean, other = s * sphere(rng, 2, k)  # other = cbar + zeta with the same length
        noise = t * sphere(rng, n, k)
        for center in (mean, other):
            lengths = np.linalg.norm(center + noise, axis=1)
            assert abs(lengths.mean() - mean_norm(s, t, k)) <= 5 * lengths.std() / math.sqrt(n)
        cosines = (mean + noise) @ mean / (s * np.linalg.norm(mean + noise, axis=1))
        assert abs(cosines.mean() - mean_cosine(s, t, k)) <= 5 * cosines.std() / math.sqrt(n)


def test_averages_in_closed_form():
    # In three dimensions the cosine with an axis is uniform, so both integrals are elementary.
    for s, t in ((1.0, 0.5), (0.5, 1.0), (2.0, 2.0)):
        lo, hi = abs(s - t), s + t
        assert_allclose(mean_norm(s, t, 3), (hi**3 - lo**3) / (6 * s * t))
        slope = (mean_norm(s + 1e-5, t, 3) - mean_norm(s - 1e-5, t, 3)) / 2e-5
        assert_allclose(mean_cosine(s, t, 3), slope, atol=1e-6)  # the gradient of the mean norm
    assert_allclose(mean_cosine(1.0, 1.0, 2), 2 / math.pi)
    assert_allclose(mean_norm(1.0, 1.0, 2), 4 / math.pi)  # mean chord of a circle


def test_mean_cosine_bound():
    """Proposition 2 on 300 triples, the plane included, where the paper's proof does not apply."""
    rng = np.random.default_rng(13)
    closest = np.inf
    for _ in range(300):
        k, s, t = int(rng.choice([2, 2, 3, 5, 20])), 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-2, 2)
        sides = mean_cosine_bound(s, t, k)
        assert sides.hold(1e-9)
        inverse_tangent = s / (s + t) * min(s / t, 1.0)
        assert_allclose(sides.lower, inverse_tangent)
        closest = min(closest, float(sides.value / sides.lower))
    assert closest < 1.5


def test_mean_direction():
    """Lemma 13: E[(c + D)/|c + D|] points along cbar + D, with a length that grows with |cbar + D|; 100 cases."""
    rng = np.random.default_rng(14)
    n = 20_000
    for _ in range(100):
        k, t = int(rng.integers(2, 6)), rng.uniform(0.2, 2.0)
        mean, delta = rng.normal(size=(2, k))
        C = mean + t * sphere(rng, n, k) + delta
        units = C / np.linalg.norm(C, axis=1, keepdims=True)
        s = float(np.linalg.norm(mean + delta))
        expected = mean_cosine(s, t, k) * (mean + delta) / s
        assert (np.abs(units.mean(axis=0) - expected) <= 5 * units.std(axis=0) / math.sqrt(n)).all()
        grown = mean_cosine(s * rng.uniform(1.0, 3.0), t, k)
        assert grown >= mean_cosine(s, t, k) - 1e-10


def test_least_risky_prediction():
    """Lemma 14: among predictions at an angle, the foot of the perpendicular is least risky; 100 cases."""
    rng = np.random.default_rng(15)
    for i in range(100):
        k, s, t = int(rng.integers(2, 6)), rng.uniform(0.5, 2.0), rng.uniform(0.2, 3.0)
        angle = rng.uniform(0.1, 3.1)
        length = least_risky_length(s, angle)
        least = surrogate_lower_risk(length, angle, s, t, k)
        if i < 20:
            found = minimize_scalar(lambda x, a=angle, s=s, t=t, k=k: surrogate_lower_risk(x, a, s, t, k),
                                    bounds=(0.0, 4 * s), method="bounded", options={"xatol": 1e-7})  # fmt: skip
            assert least <= found.fun + 1e-8
            if angle < 1.5:
                assert found.x == pytest.approx(length, abs=2e-3 * s)
                # There |cbar + 2 Delta| = |2 c_hat - cbar| = |cbar|.
                c_hat = length * np.array([math.cos(angle), math.sin(angle)])
                assert np.linalg.norm(2 * c_hat - [s, 0.0]) == pytest.approx(s)
        for other in (0.5 * length + 0.1, 2 * length + 0.1):
            assert least <= surrogate_lower_risk(other, angle, s, t, k) + 1e-9


def test_surrogate_lower_risk_by_simulation():
    rng = np.random.default_rng(16)
    for _ in range(20):
        k, s, t = int(rng.integers(2, 5)), rng.uniform(0.5, 2.0), rng.uniform(0.2, 2.0)
        length, angle = rng.uniform(0.0, 3.0), rng.uniform(0.0, math.pi)
        mean = s * np.eye(k)[0]
        c_hat = length * (math.cos(angle) * np.eye(k)[0] + math.sin(angle) * np.eye(k)[1])
        C = mean + t * sphere(rng, 50_000, k)
        moved = C + 2 * (c_hat - mean)
        value = np.linalg.norm(moved, axis=1) - np.einsum("ij,ij->i", C, moved) / np.linalg.norm(C, axis=1)
        expected = surrogate_lower_risk(length, angle, s, t, k)
        assert abs(value.mean() - expected) <= 5 * value.std() / math.sqrt(len(value)) + 1e-9
