"""The batched oracle of Markowitz: against Clarabel, brute force and the conditions of optimality."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skspo import Markowitz, SolverError, SPOPlusRegressor
from skspo._utils.limits import Deadline, TimeIsUp
from skspo.regions import markowitz
from skspo.regions._oracles import clarabel


@pytest.fixture
def clarabel_rows(monkeypatch):
    """Numbers of rows that Clarabel was asked for."""
    asked = []
    minimize = clarabel.ConicSet.minimize

    def counted(self, C, n_jobs=None):
        asked.append(len(C))
        return minimize(self, C, n_jobs)

    monkeypatch.setattr(clarabel.ConicSet, "minimize", counted)
    return asked


def covariances(rng, d):
    root = rng.normal(size=(d, d)) / np.sqrt(d)
    yield "plain", root @ root.T + 0.1 * np.eye(d)
    yield "diagonal", np.diag(rng.uniform(0.1, 2.0, size=d))
    spread = rng.uniform(0.5, 2.0, size=d)
    yield "correlated", (0.7 + 0.3 * np.eye(d)) * np.outer(spread, spread)
    few = rng.normal(size=(d, max(d // 2, 1)))
    yield "singular", few @ few.T / few.shape[1]
    yield "one factor", np.outer(spread, spread)
    yield "twins", np.kron(np.eye((d + 1) // 2), np.ones((2, 2)))[:d, :d]


def violation(region, cov, W):
    total = W.sum(axis=1) - 1.0
    risk = np.einsum("ij,jk,ik->i", W, cov, W) / region.max_risk - 1.0
    return np.max([risk, np.abs(total) if region.budget == "equal" else total, -W.min(axis=1)])


def lower_bounds(region, cov, C, W):
    """What every decision costs at least: the best over lam of min_j (c + lam cov w)_j - lam sqrt(risk max_risk)."""
    g = W @ cov
    root = np.sqrt(np.maximum(np.einsum("ij,ij->i", g, W), 0.0) * region.max_risk)
    best = np.full(len(C), -np.inf)
    # The bound is concave and piecewise linear in lam; it is largest where two of its pieces meet.
    for i, (c, slope) in enumerate(zip(C, g, strict=True)):
        pairs = np.array(list(itertools.combinations(range(len(c)), 2)), dtype=int).reshape(-1, 2)
        steep = slope[pairs[:, 1]] - slope[pairs[:, 0]]
        level = c[pairs[:, 0]] - c[pairs[:, 1]]
        lams = level[steep != 0] / steep[steep != 0]
        if region.budget == "at_most":
            lams = np.concatenate([lams, -c[slope != 0] / slope[slope != 0]])
        lams = np.concatenate([[0.0], lams[lams > 0]])
        low = (c + lams[:, None] * slope).min(axis=1)
        low = low if region.budget == "equal" else np.minimum(low, 0.0)
        best[i] = (low - lams * root[i]).max()
    return best


@pytest.mark.parametrize("budget", ["equal", "at_most"])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 25])
def test_decisions_are_feasible_and_optimal(d, budget):
    rng = np.random.default_rng(d)
    for name, cov in covariances(rng, d):
        safest = Markowitz(cov, 1e6)._data(d).safest
        smallest = float(safest @ cov @ safest)
        for slack in (0.02, 0.2, 10.0):
            region = Markowitz(cov, smallest + slack * np.trace(cov) / d, budget=budget)
            C = rng.normal(size=(40, d))
            C[:8] = C[:8].round()  # ties
            C[8], C[9], C[10] = 0.0, 1.0, -1.0
            C[11:14] *= 1e8
            C[14:17] *= 1e-8
            C[17] = np.abs(C[17])
            W = region.argmin(C)
            assert violation(region, cov, W) <= 1e-8, name
            size = np.abs(C).max(axis=1) + (C == 0).all(axis=1)
            cost = np.einsum("ij,ij->i", C, W)
            assert (cost - lower_bounds(region, cov, C, W) <= 1e-7 * size).all(), (name, slack)
            reference = region._data(d).conic.minimize(C[::4])
            assert_allclose(cost[::4] / size[::4], np.einsum("ij,ij->i", C[::4], reference) / size[::4], atol=1e-7)


def test_against_a_fine_grid():
    """Three assets, all portfolios in steps of 1/400."""
    cov = np.array([[1.0, 0.3, -0.2], [0.3, 0.5, 0.1], [-0.2, 0.1, 2.0]])
    steps = np.arange(401) / 400
    grid = np.array([(a, b, 1.0 - a - b) for a in steps for b in steps if a + b <= 1.0 + 1e-12])
    C = np.random.default_rng(0).normal(size=(50, 3))
    for risk in (0.4, 0.6, 1.5):
        inside = grid[np.einsum("ij,jk,ik->i", grid, cov, grid) <= risk]
        best = (C @ inside.T).min(axis=1)
        cost = np.einsum("ij,ij->i", C, Markowitz(cov, risk).argmin(C))
        assert (cost <= best + 1e-12).all() and (cost >= best - 0.02).all()


def test_vertices_are_exact_and_values_are_maximized():
    cov = np.diag([1.0, 4.0, 0.5])
    C = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [2.0, 2.0, 1.0], [1.0, 1.0, 1.0 + 1e-9]])
    W = Markowitz(cov, 5.0).argmin(C)
    assert_array_equal(W[:3], np.eye(3)[[0, 1, 2]])
    assert_allclose(np.einsum("ij,ij->i", C, W), C.min(axis=1), rtol=1e-12)
    assert_array_equal(Markowitz(cov, 5.0, sense="max").argmin(-C), W)


def test_clarabel_is_rarely_asked(clarabel_rows):
    rng = np.random.default_rng(0)
    for d, (name, cov) in itertools.product((5, 40), covariances(rng, 40)):
        cov = cov[:d, :d]
        region = Markowitz(cov, 0.5 * np.trace(cov) / d, budget="at_most")
        region.argmin(rng.normal(size=(200, d)))
        assert sum(clarabel_rows[1:]) <= 4, name  # the first is for the portfolio of smallest risk
        clarabel_rows.clear()


def test_rows_without_a_proof_go_to_clarabel(clarabel_rows, monkeypatch):
    rng = np.random.default_rng(0)
    region, C = Markowitz(np.eye(4) + 0.1, 0.5), rng.normal(size=(9, 4))
    region._data(4)
    right = region.argmin(C)
    minimize = markowitz.PortfolioOracle.minimize

    def spoiled(self, C, *args):
        W, lam, face = minimize(self, C, *args)
        W[2], lam[4], W[6] = np.roll(W[2], 1), np.nan, np.nan
        lam[7] *= 1.01
        return W, lam, face

    monkeypatch.setattr(markowitz.PortfolioOracle, "minimize", spoiled)
    clarabel_rows.clear()
    assert_allclose(region.argmin(C), right, atol=1e-6)
    assert clarabel_rows == [4]

    def fails(self, C, n_jobs=None):
        raise clarabel.row_error(SolverError, 1, "no solution for {row}")

    monkeypatch.setattr(clarabel.ConicSet, "minimize", fails)
    with pytest.raises(SolverError, match="no solution for row 4"):
        region.argmin(C)
    with pytest.raises(SolverError, match="no solution for row 24"):
        region.take(np.arange(20, 29)).solve_min(C)


@pytest.mark.parametrize("budget", ["equal", "at_most"])
def test_memory_changes_nothing(budget):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(12, 12)) / 4.0
    region, memory = Markowitz(root @ root.T + 0.1 * np.eye(12), 0.3, budget=budget), {}
    C = rng.normal(size=(60, 12))
    for _ in range(4):
        W = region.solve_min(C, memory)
        assert_array_equal(W, region.solve_min(C))
        assert_array_equal(W[17], region.solve_min(C[17:18])[0])
        C = C + 0.2 * rng.normal(size=C.shape)
    assert region.solve_min(C[:5], memory).shape == (5, 12)  # other rows: the memory is of no use
    assert region.solve_min(C[:0], memory).shape == (0, 12)


def test_large_common_costs_do_not_blur_decisions():
    rng = np.random.default_rng(0)
    region, C = Markowitz(np.eye(6) + 0.2, 0.5), rng.integers(-8, 9, size=(30, 6)).astype(float)
    W = region.argmin(C)
    assert_allclose(region.argmin(C + 2.0**30), W, atol=1e-12)
    assert_allclose(region.argmin(C * 1e300), W, atol=1e-12)


def test_blocks_of_rows(monkeypatch):
    rng = np.random.default_rng(0)
    region, C = Markowitz(np.eye(6) + 0.2, 0.5), rng.normal(size=(50, 6))
    W = region.argmin(C)
    monkeypatch.setattr(markowitz, "BLOCK_ELEMENTS", 1)
    assert_array_equal(region.argmin(C), W)


def test_deadline():
    region, deadline = Markowitz(np.eye(6) + 0.2, 0.5), Deadline(1e-9)
    region._data(6)
    with pytest.raises(TimeIsUp), deadline.enforced():
        region.argmin(np.random.default_rng(0).normal(size=(50, 6)))


def test_fit(clarabel_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    C = X @ rng.normal(size=(3, 6)) + rng.normal(size=(80, 6))
    region = Markowitz(np.eye(6) + 0.2, 0.5)
    exact = SPOPlusRegressor(region, solver="conic").fit(X, C)
    clarabel_rows.clear()
    model = SPOPlusRegressor(region).fit(X, C)
    assert model.solver_ == "newton" and model.duality_gap_ <= 1e-6
    assert_allclose(model.objective_, exact.objective_, rtol=1e-5)
    assert sum(clarabel_rows) <= 2
    assert not region.oracle_is_solver


# -- smoothed decisions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [3.0, 0.2, 0.01])
@pytest.mark.parametrize("budget", ["equal", "at_most"])
def test_smoothed_decisions_against_cvxpy(budget, mu):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5)) / 3.0
    cov = root @ root.T + 0.2 * np.eye(5)
    region = Markowitz(cov, 0.3, budget=budget)
    least = region._data(5).safest @ cov @ region._data(5).safest / 0.6
    C = np.concatenate([rng.normal(size=(6, 5)), np.zeros((1, 5)), np.ones((1, 5))])
    W, level, M = region.smoothed(C, mu)
    assert M is None and violation(region, cov, W) <= 1e-10
    for c, w, up in zip(C, W, level, strict=True):
        x = cp.Variable(5)
        f = cp.quad_form(x, cov) / 0.6
        constraints = [x >= 0, cp.sum(x) == 1 if budget == "equal" else cp.sum(x) <= 1, f <= 0.5]
        best = cp.Problem(cp.Minimize(c @ x + mu * (f - least)), constraints).solve(solver=cp.CLARABEL)
        assert up == pytest.approx(w @ cov @ w / 0.6 - least, abs=1e-12)
        assert c @ w + mu * up == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("mu", [3.0, 0.2, 0.01])
@pytest.mark.parametrize("budget", ["equal", "at_most"])
def test_smoothed_matrix_is_minus_the_derivative(budget, mu):
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5)) / 3.0
    region = Markowitz(root @ root.T + 0.2 * np.eye(5), 0.3, budget=budget)
    C, h = 3.0 * rng.normal(size=(20, 5)), 1e-6
    M = region.smoothed(C, mu, curvature=True).M
    for j, e in enumerate(np.eye(5)):
        plus, minus = region.smoothed(C + h * e, mu).W, region.smoothed(C - h * e, mu).W
        assert_allclose(-(plus - minus) / (2 * h), M[:, :, j], atol=1e-5 * max(1.0, np.abs(M).max()))
    assert np.linalg.eigvalsh(M).min() > -1e-10 * np.abs(M).max()


def test_smoothed_limits(monkeypatch):
    rng = np.random.default_rng(2)
    region, C = Markowitz(np.eye(5) + 0.2, 0.5), rng.normal(size=(20, 5))
    assert_allclose(region.smoothed(C, 1e-12).W, region.argmin(C), atol=1e-9)
    assert_allclose(region.smoothed(C, 1e9).W, 0.2, atol=1e-7)
    # A singular covariance gives decisions that do not move smoothly, and a single portfolio none at all.
    assert not hasattr(Markowitz(np.ones((3, 3)), 2.0), "smoothed")
    assert not hasattr(Markowitz(np.eye(3), -1.0), "smoothed")
    alone = Markowitz(np.eye(3), 1.0 / 3.0).smoothed(C[:, :3], 0.1, curvature=True)
    assert_allclose(alone.W, 1.0 / 3.0, atol=1e-7)
    assert not alone.M.any() and not alone.level.any()
    # Where pivoting fails, decisions are those of Clarabel, without smoothing.
    least = np.einsum("ij,ij->i", C, region.argmin(C))
    monkeypatch.setattr(markowitz, "ITERATIONS", 0)
    rough = region.smoothed(C, 0.1, curvature=True)
    assert_allclose(np.einsum("ij,ij->i", C, rough.W), least, atol=1e-8)
    assert not rough.M.any()


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("risk", [0.22, 0.5, 2.0])
def test_newton(risk, alpha):
    """From nearly one decision to the whole simplex."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    C = X @ rng.normal(size=(3, 8)) + rng.normal(size=(60, 8))
    region = Markowitz(0.8 * np.eye(8) + 0.1, risk)
    model = SPOPlusRegressor(region, solver="newton", alpha=alpha).fit(X, C)
    exact = SPOPlusRegressor(region, solver="interior-point", alpha=alpha).fit(X, C)
    assert model.duality_gap_ <= 1e-6 and exact.duality_gap_ <= 1e-6
    assert_allclose(model.objective_, exact.objective_, rtol=2e-6)


def test_derivative_with_a_singular_covariance():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(2, 7))
    region = Markowitz(F.T @ F, np.square(F).sum() / 7)
    C, X, h = rng.normal(size=(200, 7)), rng.normal(size=(200, 7)), 1e-5
    numeric = (region.argmin(C + h * X) - region.argmin(C - h * X)) / (2 * h)
    assert np.abs(numeric).max() > 1e-3
    np.testing.assert_allclose(region.derivative(C, X), numeric, atol=1e-4)


def test_smoothed_decisions_that_buy_nothing():
    rng = np.random.default_rng(0)
    region = Markowitz(np.eye(3), 0.5, budget="at_most")
    found = region.smoothed(1.0 + rng.random((4, 3)), 0.1, curvature=True)
    assert (found.W == 0).all() and (found.level == 0).all() and (found.M == 0).all()


def test_safest_portfolio_of_assets_of_very_different_risks():
    """No asset has a smaller covariance with it than the others: the conditions of optimality."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        F = rng.normal(size=(int(rng.integers(1, 60)), 40)) * np.exp(2.0 * rng.normal(size=40))
        Q = F.T @ F
        w = Markowitz(Q, Q.diagonal().max())._data().safest
        assert (w >= 0).all() and w.sum() == pytest.approx(1.0)
        assert w @ Q @ w - (Q @ w).min() <= 1e-12 * Q.max()
