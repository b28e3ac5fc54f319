"""Losses: identities of SPO+ on many regions, values by hand, gradients against finite differences."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from regions_list import CENTER, Q
from sklearn.base import clone

import skspo as sk
from skspo.losses import check_costs

# name -> (region, number of costs)
REGIONS = {
    "simplex": (sk.Simplex(), 4),
    "box": (sk.Box([-1.0, 0.0, 2.0], [1.0, 3.0, 2.0]), 3),
    "topk": (sk.TopK(2), 5),
    "l1": (sk.L1Ball(1.5), 4),
    "grid": (sk.ShortestPath.grid(3, 3), 12),
    "entropy": (sk.EntropySimplex(), 4),
    "entropy-loose": (sk.EntropySimplex(-0.3), 4),
    "barrier": (sk.LogBarrierSimplex(), 4),
    "ellipsoid": (sk.Ellipsoid(Q, CENTER, 0.8), 4),
    "lq": (sk.LqBall(1.5, 2.0), 3),
    "knapsack": (sk.Knapsack([3, 4, 5, 2], 8), 4),
    "knapsack-fractional": (sk.Knapsack([3, 4, 5, 2], 8, integer=False), 4),
}
SMOOTH = ("entropy", "entropy-loose", "barrier", "ellipsoid", "lq")
each = pytest.mark.parametrize("name", REGIONS)
# Multiples of 1/4 tie often, other numbers never.
number = st.integers(-20, 20).map(lambda k: k / 4) | st.floats(-5, 5).map(lambda x: round(x, 6))
N = 3
TOL = 1e-8  # of losses, for costs of size 5 and decisions of size 3


def draw(data, d, count):
    return [data.draw(arrays(float, (N, d), elements=number)) for _ in range(count)]


# -- SPO+ --------------------------------------------------------------------------------------------------------------


@each
@given(data=st.data())
def test_spo_plus_bounds_spo_and_both_are_nonnegative(name, data):
    region, d = REGIONS[name]
    C, C_hat = draw(data, d, 2)
    spo, plus = sk.SPOLoss(region).value(C, C_hat), sk.SPOPlusLoss(region).value(C, C_hat)
    assert spo.shape == plus.shape == (N,)
    assert (spo >= -TOL).all()
    assert (plus >= spo - TOL).all()


@pytest.mark.slow
@each
@given(data=st.data())
def test_perfect_predictions_lose_nothing(name, data):
    region, d = REGIONS[name]
    (C,) = draw(data, d, 1)
    for loss in (sk.SPOPlusLoss(region), sk.SPOLoss(region), sk.SquaredLoss(region), sk.AbsoluteLoss(region)):
        assert_allclose(loss.value(C, C), 0.0, atol=1e-12)


@each
@given(data=st.data())
def test_values_are_those_of_the_definition(name, data):
    region, d = REGIONS[name]
    C, C_hat = draw(data, d, 2)
    sign = -1.0 if region.sense == "max" else 1.0

    def z(costs):
        return sign * (costs * region.argmin(costs)).sum(axis=1)

    W = region.argmin(C)
    # support(c - 2 c_hat) = -z(2 c_hat - c)
    plus = -z(2 * C_hat - C) + 2 * sign * (C_hat * W).sum(axis=1) - z(C)
    assert_allclose(sk.SPOPlusLoss(region).value(C, C_hat), plus, rtol=0, atol=TOL)
    spo = sign * (C * region.argmin(C_hat)).sum(axis=1) - z(C)
    assert_allclose(sk.SPOLoss(region).value(C, C_hat), spo, rtol=0, atol=TOL)


@pytest.mark.slow
@each
@given(data=st.data(), t=st.floats(0, 1))
def test_spo_plus_is_convex(name, data, t):
    region, d = REGIONS[name]
    C, A, B = draw(data, d, 3)
    loss = sk.SPOPlusLoss(region)
    between = loss.value(C, t * A + (1 - t) * B)
    assert (between <= t * loss.value(C, A) + (1 - t) * loss.value(C, B) + TOL).all()


@pytest.mark.slow
@each
@given(data=st.data())
def test_subgradient_inequality(name, data):
    region, d = REGIONS[name]
    C, A, B = draw(data, d, 3)
    loss = sk.SPOPlusLoss(region)
    value, G = loss.value_gradient(C, A)
    assert_array_equal(value, loss.value(C, A))
    assert_array_equal(G, loss.gradient(C, A))
    assert (loss.value(C, B) >= value + (G * (B - A)).sum(axis=1) - TOL).all()


@each
@given(data=st.data(), scale=st.sampled_from([1e-6, 0.3, 7.0, 1e6]))
def test_losses_scale_with_costs(name, data, scale):
    region, d = REGIONS[name]
    C, C_hat = draw(data, d, 2)
    loss = sk.SPOPlusLoss(region)
    assert_allclose(loss.value(scale * C, scale * C_hat) / scale, loss.value(C, C_hat), rtol=0, atol=TOL)


@pytest.mark.parametrize("name", ["simplex", "topk", "entropy", "barrier"])
@given(data=st.data(), shift=st.integers(-8, 8))
def test_adding_a_constant_if_decisions_have_a_fixed_sum(name, data, shift):
    region, d = REGIONS[name]
    C, C_hat = draw(data, d, 2)
    for loss in (sk.SPOPlusLoss(region), sk.SquaredLoss(region)):
        shifted, value = loss.value(C, C_hat + shift), loss.value(C, C_hat)
        if isinstance(loss, sk.SPOPlusLoss):
            assert_allclose(shifted, value, rtol=0, atol=TOL)
        elif shift:
            assert_allclose(shifted - value, d * shift**2 + 2 * shift * (C_hat - C).sum(axis=1), atol=1e-9)


@pytest.mark.slow
@each
@given(data=st.data())
def test_maximization_is_the_mirror_image(name, data):
    region, d = REGIONS[name]
    C, C_hat = draw(data, d, 2)
    mirror = clone(region).set_params(sense="min" if region.sense == "max" else "max")
    for loss in (sk.SPOPlusLoss, sk.SPOLoss, sk.SquaredLoss, sk.AbsoluteLoss):
        assert_array_equal(loss(mirror).value(-C, -C_hat), loss(region).value(C, C_hat))
    for loss in (sk.SPOPlusLoss, sk.SquaredLoss, sk.AbsoluteLoss):
        assert_array_equal(loss(mirror).gradient(-C, -C_hat), -loss(region).gradient(C, C_hat))


@pytest.mark.parametrize("name", SMOOTH)
@given(data=st.data())
def test_gradient_is_the_derivative_where_there_is_one(name, data):
    region, d = REGIONS[name]
    C, C_hat = draw(data, d, 2)
    V = np.sort(2 * C_hat - C, axis=1)
    # Away from the costs without a unique decision: constant ones, zero, and tied lowest costs of a loose threshold.
    assume((V[:, 1] - V[:, 0]).min() > 0.5 and np.linalg.norm(V, axis=1).min() > 0.5)
    loss, h = sk.SPOPlusLoss(region), 1e-5
    G = loss.gradient(C, C_hat)
    for step in np.eye(d) * h:
        difference = (loss.value(C, C_hat + step) - loss.value(C, C_hat - step)) / (2 * h)
        assert_allclose((G * step).sum(axis=1) / h, difference, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["grid", "entropy", "ellipsoid"])
def test_the_best_constant_prediction_is_that_of_a_conic_program(name):
    """A training problem with one vector: the smallest mean loss, from subgradients and by CVXPY."""
    region, d = REGIONS[name]
    C = np.random.default_rng(0).normal(size=(5, d)) + 1.0
    W = region.argmin(C)
    c_hat = cp.Variable(d)
    V = cp.vstack([c - 2 * c_hat for c in C])
    t, constraints = region.support_epigraph(V)
    problem = cp.Problem(cp.Minimize(cp.sum(t) / 5 + 2 * c_hat @ W.mean(axis=0)), [*constraints, cp.norm(c_hat) <= 3])
    problem.solve(cp.CLARABEL)
    loss = sk.SPOPlusLoss(region)
    best = loss.value(C, np.tile(c_hat.value, (5, 1))).mean()
    assert_allclose(problem.value - (C * W).sum(axis=1).mean(), best, rtol=1e-6, atol=1e-6)
    for other in np.random.default_rng(1).normal(size=(50, d)):
        other *= min(1.0, 3.0 / np.linalg.norm(other))
        assert loss.value(C, np.tile(other, (5, 1))).mean() >= best - 1e-6


def test_spo_plus_by_hand():
    # Simplex: max(c - 2 c_hat) + 2 c_hat_j - c_j with j the best class.
    C, C_hat = [[1.0, 2.0, 4.0]], [[3.0, 1.0, 0.0]]
    loss = sk.SPOPlusLoss(sk.Simplex())
    assert_array_equal(loss.value(C, C_hat), [4.0 + 6.0 - 1.0])
    assert_array_equal(loss.gradient(C, C_hat), [[2.0, 0.0, -2.0]])
    assert_array_equal(sk.SPOLoss(sk.Simplex()).value(C, C_hat), [3.0])
    # Maximization: the best value is 4, the decision for C_hat earns 1.
    most = sk.Simplex(sense="max")
    assert_array_equal(sk.SPOLoss(most).value(C, C_hat), [3.0])
    # c = (-1, -2, -4), c_hat = (-3, -1, 0): max(c - 2 c_hat) = 5, 2 c_hat_3 = 0, z = -4.
    assert_array_equal(sk.SPOPlusLoss(most).value(C, C_hat), [9.0])
    # In values, more of the first is worse and more of the third better.
    assert_array_equal(sk.SPOPlusLoss(most).gradient(C, C_hat), [[2.0, 0.0, -2.0]])
    # Box in one dimension, c = 1: w* = 0 and l+ = max(c - 2 c_hat, 0).
    assert_array_equal(sk.SPOPlusLoss().value([[1.0]] * 3, [[-1.0], [0.25], [2.0]]), [3.0, 0.5, 0.0])
    assert_array_equal(sk.SPOPlusLoss().gradient([[1.0]] * 3, [[-1.0], [0.25], [2.0]]), [[-2.0], [-2.0], [0.0]])


def test_given_optimal_decisions_are_used():
    C, C_hat = np.array([[1.0, 1.0]]), np.array([[3.0, 1.0]])
    loss = sk.SPOPlusLoss(sk.Simplex())
    # Both alternatives are optimal for C; the oracle would take the first.
    first, second = loss.gradient(C, C_hat), loss.gradient(C, C_hat, W_true=np.array([[0.0, 1.0]]))
    assert_array_equal(first, [[2.0, -2.0]])
    assert_array_equal(second, [[0.0, 0.0]])
    assert_array_equal(loss.value(C, C_hat, W_true=np.array([[0.0, 1.0]])), [0.0])
    assert_array_equal(sk.SPOLoss(sk.Simplex()).value(C, C_hat, W_true=np.array([[0.0, 1.0]])), [0.0])


# -- the others --------------------------------------------------------------------------------------------------------


@given(data=st.data())
def test_squared_and_absolute(data):
    C, C_hat = draw(data, 4, 2)
    squared, absolute = sk.SquaredLoss(), sk.AbsoluteLoss()
    assert_allclose(squared.value(C, C_hat), np.linalg.norm(C - C_hat, axis=1) ** 2, rtol=1e-12)
    assert_allclose(absolute.value(C, C_hat), np.linalg.norm(C - C_hat, 1, axis=1), rtol=1e-12)
    assert_allclose(squared.gradient(C, C_hat), 2 * (C_hat - C), rtol=1e-12)
    G = absolute.gradient(C, C_hat)
    assert_array_equal(G[C_hat > C], 1.0)
    assert_array_equal(G[C_hat < C], -1.0)
    assert_array_equal(G[C_hat == C], 0.0)
    for loss in (squared, absolute):
        value, G = loss.value_gradient(C, C_hat)
        (other,) = draw(data, 4, 1)
        assert (loss.value(C, other) >= value + (G * (other - C_hat)).sum(axis=1) - 1e-9).all()


def test_spo_loss_has_no_gradient():
    for method in ("gradient", "value_gradient"):
        with pytest.raises(TypeError, match="SPOPlusLoss"):
            getattr(sk.SPOLoss(sk.Simplex()), method)([[1.0, 2.0]], [[2.0, 1.0]])


LOSSES = [sk.SPOPlusLoss, sk.SPOLoss, sk.SquaredLoss, sk.AbsoluteLoss]


@pytest.mark.parametrize("loss", LOSSES)
def test_wrong_input(loss):
    good = np.ones((3, 2))
    with pytest.raises(ValueError, match="same shape"):
        loss(sk.Simplex()).value(good, np.ones((3, 3)))
    with pytest.raises(ValueError, match="same shape"):
        loss(sk.Simplex()).value(good, np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"\(n_samples, n_costs\)|dim 3"):
        loss(sk.Simplex()).value(np.ones((3, 2, 2)), np.ones((3, 2, 2)))
    with pytest.raises(ValueError, match="y_pred contains NaN"):
        loss(sk.Simplex()).value(good, np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="y_true contains infinity"):
        loss(sk.Simplex()).value(np.full((3, 2), np.inf), good)
    with pytest.raises(ValueError, match="one cost per decision variable"):
        loss(sk.ShortestPath.grid(2, 2)).value(good, good)
    with pytest.raises(TypeError, match="region must be a Region"):
        loss("simplex").value(good, good)


def test_one_dimensional_input_and_lists():
    assert [a.shape for a in check_costs([1.0, 2.0], [[1.0], [2.0]])] == [(2, 1), (2, 1)]
    assert_array_equal(sk.SPOLoss().value([1, -1], [-1, 1]), [1.0, 1.0])


@pytest.mark.parametrize("loss", LOSSES)
def test_inputs_stay_as_they_are(loss):
    C, C_hat = np.random.default_rng(0).normal(size=(2, 5, 3))
    copies = C.copy(), C_hat.copy()
    loss(sk.Simplex(sense="max")).value(C, C_hat)
    assert_array_equal(C, copies[0])
    assert_array_equal(C_hat, copies[1])


def test_decisions_of_one_sample_are_not_those_of_all():
    with pytest.raises(ValueError, match="W_true"):
        sk.SPOLoss(sk.Simplex()).value(np.ones((3, 2)), np.ones((3, 2)), W_true=np.array([[1.0, 0.0]]))
