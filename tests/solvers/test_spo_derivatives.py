"""Derivatives of decisions, and gradients of the SPO loss."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from spo_problems import SMOOTH, Q

import skspo.solvers.spo.descent as descent
from skspo import (
    EntropySimplex,
    LogBarrierSimplex,
    Markowitz,
    Simplex,
    SPOLoss,
)
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo.datasets import make_portfolio

by_name = pytest.mark.parametrize("region", SMOOTH, ids=str)


@by_name
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1e-6, 1.0, 1e6]), level=st.sampled_from([0.0, 1e3]))
def test_derivative_is_that_of_the_oracle(region, seed, size, level):
    """Central differences; ``level`` moves the costs near the point where they are constant, relative to their size."""
    rng = np.random.default_rng(seed)
    C, x = rng.normal(size=(2, 4, 5)) * size
    if isinstance(region, (EntropySimplex, LogBarrierSimplex)):
        C = C + level * size  # it changes no decision

    def difference(h):
        return (region.solve_min(C + h * x) - region.solve_min(C - h * x)) / (2 * h)

    # Extrapolated, because the third derivative is large where costs are nearly tied.
    numeric = (4.0 * difference(5e-6) - difference(1e-5)) / 3.0
    np.testing.assert_allclose(region.derivative(C, x), numeric, atol=1e-6 * max(np.abs(numeric).max(), 1.0))


@by_name
def test_derivative_near_the_degenerate_point(region):
    """Costs that hardly differ: the derivative grows as one over their size."""
    rng = np.random.default_rng(1)
    C, x = rng.normal(size=(2, 6, 5))
    base = 1.0 if isinstance(region, (EntropySimplex, LogBarrierSimplex)) else 0.0
    for small in (1e-2, 1e-4):
        ours = small * region.derivative(base + small * C, x)
        np.testing.assert_allclose(ours, region.derivative(C, x), rtol=1e-6, atol=1e-6 * np.abs(ours).max())
    assert (region.derivative(np.full((1, 5), base), x[:1]) == 0).all()


@by_name
def test_derivative_is_symmetric_and_sees_no_scale(region):
    rng = np.random.default_rng(2)
    C, x, y = rng.normal(size=(3, 50, 5))
    Jx, Jy, JC = (region.derivative(C, v) for v in (x, y, C))
    np.testing.assert_allclose((y * Jx).sum(axis=1), (x * Jy).sum(axis=1), atol=1e-9 * np.abs(Jx).max())
    assert np.abs(JC).max() <= 1e-8 * np.abs(Jx).max()
    assert ((x * Jx).sum(axis=1) <= 1e-9).all()  # the best cost is concave
    E = region.equalities(5)
    assert np.abs(Jx @ E.T).max(initial=0.0) <= 1e-9 * np.abs(Jx).max()


@pytest.mark.parametrize("budget", ["equal", "at_most"])
def test_derivative_of_markowitz(budget):
    """Against the decisions on the assets held, found by Newton's method on the optimality conditions.

    The oracle is an interior-point method: its decisions are within 1e-6, but the slope of that error is not small.
    """
    covariance = Q / 20
    limit = 1.5 / np.linalg.inv(covariance).sum()
    region = Markowitz(covariance, limit, budget=budget)
    C, x = np.random.default_rng(0).normal(size=(2, 30, 5))
    W, ours = region.solve_min(C), region.derivative(C, x)
    for c, v, w, derivative in zip(C, x, W, ours, strict=True):
        held = w > 1e-4
        spent = w.sum() > 1 - 1e-5
        if w @ covariance @ w < 0.999 * limit:
            assert (derivative == 0).all()
            continue
        if not np.array_equal(held, w > 1e-7):
            continue  # an asset is just about to enter or leave

        def solve(costs, w=w, held=held, spent=spent):
            """c + lam covariance w + nu = 0 on the assets held, w covariance w = limit, sum w = 1 if it is."""
            S, k = covariance[np.ix_(held, held)], int(held.sum())
            z = np.concatenate([w[held], [1.0, 0.0]])
            gradient = S @ z[:k]
            basis = np.column_stack([gradient, np.ones(k)]) if spent else gradient[:, None]
            z[k : k + basis.shape[1]] = np.linalg.lstsq(basis, -costs[held], rcond=None)[0]
            for _ in range(30):
                u, lam, nu = z[:k], z[k], z[k + 1]
                residual = np.concatenate(
                    [costs[held] + lam * S @ u + nu * spent, [(u @ S @ u - limit) / 2, u.sum() - 1 if spent else nu]]
                )
                J = np.zeros((k + 2, k + 2))
                J[:k, :k], J[:k, k], J[:k, k + 1], J[k, :k] = lam * S, S @ u, spent, S @ u
                J[k + 1, :k], J[k + 1, k + 1] = spent, not spent
                z = z - np.linalg.solve(J, residual)
            full = np.zeros(5)
            full[held] = z[:k]
            return full

        np.testing.assert_allclose(w, solve(c), atol=1e-5)
        h = 1e-5
        numeric = (solve(c + h * v) - solve(c - h * v)) / (2 * h)
        np.testing.assert_allclose(derivative, numeric, atol=1e-6 * max(np.abs(numeric).max(), 1.0))


@by_name
def test_gradient_of_the_loss(region):
    rng = np.random.default_rng(3)
    C, C_hat, x = rng.normal(size=(3, 20, 5))
    loss, h = SPOLoss(region), 1e-6
    slope = (loss.value(C, C_hat + h * x) - loss.value(C, C_hat - h * x)) / (2 * h)
    value, G = loss.value_gradient(C, C_hat)
    np.testing.assert_allclose((G * x).sum(axis=1), slope, rtol=1e-5, atol=1e-5 * np.abs(slope).max())
    np.testing.assert_array_equal(value, loss.value(C, C_hat))


def test_no_gradient_on_a_polyhedron():
    with pytest.raises(TypeError, match="piecewise constant"):
        SPOLoss(Simplex()).gradient([[1.0, 2.0]], [[2.0, 1.0]])


def test_gradient_on_the_sphere_of_given_norm(monkeypatch):
    """With a penalty, which depends on the fixed norm, and at a point of another norm."""
    X, C = make_portfolio(30, 3, 4, degree=2, random_state=0)
    region = EntropySimplex()
    objective = InMemoryObjective(SPOLoss(region), X, C, alpha=0.3)
    checked = []

    def minimize(function, start, **options):
        point = 1.3 * start + 0.1 * np.random.default_rng(0).normal(size=start.size)
        gradient = function(point)[1]
        steps = 1e-6 * np.eye(start.size)
        expected = [(function(point + step)[0] - function(point - step)[0]) / 2e-6 for step in steps]
        assert_allclose(gradient, expected, atol=1e-6)
        checked.append(np.abs(gradient).max())
        return SimpleNamespace(x=start, nit=0)

    monkeypatch.setattr(descent, "minimize", minimize)
    descent.SPOGradientSolver(n_restarts=0).solve(objective, Run(), objective.least_squares)
    assert checked
    assert max(checked) > 1e-3
