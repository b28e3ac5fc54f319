"""Quadratic constraints in the interior-point method: second-order cones, matrices of samples, portfolios."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skspo import Markowitz, SPOPlusRegressor
from skspo.datasets import make_portfolio
from skspo.solvers.interior_point import quadratic
from skspo.solvers.interior_point.quadratic import QuadraticBlock, decrease, determinant
from skspo.solvers.interior_point.state import region_form


def cone_vectors(rng, n, k, nearness):
    """Vectors inside the cone, some of them near its boundary."""
    x = rng.normal(size=(n, k + 1))
    x[:, 0] = np.linalg.norm(x[:, 1:], axis=1) * (1.0 + nearness * rng.random(n))
    return x


def block_of(G):
    block = QuadraticBlock.__new__(QuadraticBlock)
    block.shared = SimpleNamespace(G=G, S=G.T @ G, b=np.ones(1))
    return block


def exact_product(B, x):
    """N (N^T B N)^{-1} N^T x with rational numbers, for N = (I, -1): solve B u + nu 1 = x, sum u = 0."""
    n = len(x)
    rows = [[Fraction(v) for v in row] + [Fraction(1)] for row in B] + [[Fraction(1)] * n + [Fraction(0)]]
    right = [Fraction(float(v)) for v in x] + [Fraction(0)]
    for i in range(n + 1):
        best = max(range(i, n + 1), key=lambda j: abs(rows[j][i]))
        rows[i], rows[best], right[i], right[best] = rows[best], rows[i], right[best], right[i]
        for j in range(n + 1):
            if j != i:
                ratio = rows[j][i] / rows[i][i]
                rows[j] = [a - ratio * b for a, b in zip(rows[j], rows[i], strict=True)]
                right[j] -= ratio * right[i]
    return [float(right[i] / rows[i][i]) for i in range(n)]


@pytest.mark.parametrize("nearness", [1.0, 1e-6])
def test_scaled_slack_and_multiplier_are_one_point(nearness):
    rng = np.random.default_rng(0)
    n, k, N = 6, 4, 5
    G = rng.normal(size=(k, N))
    block = block_of(G)
    block.t, block.r = cone_vectors(rng, n, k, nearness), cone_vectors(rng, n, k, nearness)
    block.residual = np.zeros((n, N))
    weight, slope = block.scale_upper()
    assert_allclose(block.scaled(block.t, inverse=True), block.point, rtol=1e-8, atol=1e-8 * np.abs(block.point).max())
    assert_allclose(block.residual, -block.r[:, 1:] @ G)
    # The curvature is G^T W^{-2} G, with W^{-1} column by column.
    for i in range(n):
        inverse = np.empty((k + 1, N))
        for j in range(N):
            inverse[:, j] = block.scaled(np.tile(np.r_[0.0, G[:, j]], (n, 1)), inverse=True)[i]
        truth = inverse.T @ inverse
        found = weight[i] * block.shared.S + np.outer(slope[i], slope[i])
        assert_allclose(found, truth, rtol=1e-8, atol=1e-8 * np.abs(truth).max())


def test_division_undoes_the_product_of_the_cone():
    rng = np.random.default_rng(1)
    block = block_of(np.eye(3))
    block.point, x = cone_vectors(rng, 7, 3, 0.5), rng.normal(size=(7, 4))
    assert_allclose(block.divided(quadratic.jordan(block.point, x)), x, rtol=1e-10, atol=1e-10)


def test_one_over_the_decrease_is_the_way_to_the_boundary():
    rng = np.random.default_rng(2)
    x, dx = cone_vectors(rng, 200, 4, 1.0), rng.normal(size=(200, 5))
    ratio = decrease(x, dx)
    ends = ratio > 0
    assert 50 < ends.sum() < 200
    for share, inside in ((0.999, True), (1.001, False)):
        y = x[ends] + share / ratio[ends, None] * dx[ends]
        assert ((y[:, 0] > np.linalg.norm(y[:, 1:], axis=1)) == inside).all()
    y = x[~ends] + 1e6 * dx[~ends]
    assert ((y[:, 0] > 0) & (determinant(y) > 0)).all()


@pytest.mark.parametrize("small", [1e-10, 10.0], ids=["Cholesky", "orthogonal"])
@pytest.mark.parametrize("rank", [2, 6])
def test_matrices_of_samples(small, rank, monkeypatch):
    monkeypatch.setattr(quadratic, "SMALL", small)
    rng = np.random.default_rng(rank)
    n, N = 8, 6
    block = block_of(rng.normal(size=(rank, N)))
    D, weight = 10.0 ** rng.uniform(-6, 3, size=(n, N)), 10.0 ** rng.uniform(-2, 2, size=(n, 1))
    slope, x = rng.normal(size=(n, N)), rng.normal(size=(n, N))
    F = block.factor(D, (weight, slope))
    du = block.apply(F, D, x)
    M = F.products()
    for i in range(n):
        B = np.diag(1.0 / D[i]) + weight[i] * block.shared.S + np.outer(slope[i], slope[i])
        truth = exact_product(B, x[i])
        # Relative to what each variable can move: small variables have small errors.
        room = np.sqrt(np.diag(M[i]))
        assert_allclose(du[i] / room, truth / room, rtol=0, atol=1e-9 * np.linalg.norm(np.array(truth) / room))
        assert_allclose(M[i] @ (x[i] - x[i].mean()), truth, rtol=1e-6, atol=1e-9 * np.abs(truth).max())


def test_products_are_accurate_at_the_boundary_of_the_constraint():
    """M is tiny along the slope, by which B is multiplied in turn, and large elsewhere."""
    rng = np.random.default_rng(5)
    n, N = 20, 6
    block = block_of(rng.normal(size=(2, N)))
    D, weight = 10.0 ** rng.uniform(2, 5, size=(n, N)), np.ones((n, 1))
    slope = 1e4 * rng.normal(size=(n, N))
    # With y = M0 slope for the matrix without the slope, slope.M slope = slope.y / (1 + slope.y).
    truth = np.empty(n)
    for i in range(n):
        y = float(slope[i] @ exact_product(np.diag(1.0 / D[i]) + weight[i] * block.shared.S, slope[i]))
        truth[i] = y / (1.0 + y)

    F = block.factor(D, (weight, slope))
    du = block.apply(F, D, slope)
    assert np.abs(np.einsum("ij,ij->i", slope, du) / truth - 1.0).max() < 1e-8
    multiplied = np.einsum("ij,ijk,ik->i", slope, F.products(), slope)
    assert np.abs(multiplied / truth - 1.0).max() > 1e-6  # M itself would not do


def test_few_iterations():
    """With the constraint as a linear slack there were 54."""
    X, C = make_portfolio(200, 5, 50, degree=4, noise=0.5, random_state=100)
    factors = np.random.default_rng(100).normal(size=(50, 5))
    region = Markowitz(factors @ factors.T / 5 + 0.5 * np.eye(50), 0.1)
    model = SPOPlusRegressor(region, solver="interior-point", alpha=0.0).fit(X, C)
    assert model.duality_gap_ <= 1e-6
    assert model.n_iter_ <= 25


@pytest.mark.parametrize("share", [1e-3, 0.1])
@pytest.mark.parametrize("seed", [22, 23])
def test_singular_covariance(seed, share):
    """Many portfolios have the same risk, and the money that may be kept is another one without any."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(4, 19))
    X = rng.normal(size=(47, 8))
    C = X @ rng.normal(size=(8, 19)) + 0.1 * rng.normal(size=(47, 19))
    region = Markowitz(G.T @ G, share * np.abs(G.T @ G).max(), budget="at_most")
    model = SPOPlusRegressor(region, solver="interior-point", alpha=0.0).fit(X, C)
    assert model.duality_gap_ <= 1e-6


def test_other_polyhedra_are_refused():
    class Half(Markowitz):
        def quadratic_form(self, n_dim=None):
            form = super().quadratic_form(n_dim)
            return form._replace(standard=form.standard._replace(A=2.0 * form.standard.A, b=2.0 * form.standard.b))

    with pytest.raises(ValueError, match="quadratic_form of Half"):
        region_form(Half(np.eye(3), 1.0), 3)
