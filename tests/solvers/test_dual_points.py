"""Points of boxes with one constraint in the dual solver: projections against a QP solver, fits against others."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from solver_problems import PENALTIES

import skspo as sk
from skspo import SPOPlusLoss, SPOPlusRegressor
from skspo._training.balance import balanced
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo.solvers import DualSolver
from skspo.solvers.dual import kernels
from skspo.solvers.dual.face import FreeMoments, RecentSteps
from skspo.solvers.dual.kernels import HUGE
from skspo.solvers.dual.points import Points, box_of, differ_little
from skspo.solvers.dual.problem import ScaledProblem

REGIONS = {
    "top": lambda rng, d: sk.TopK(d // 3),
    "knapsack": lambda rng, d: sk.Knapsack(rng.integers(1, 9, size=d), 2.0 * d, integer=False),
    "free items": lambda rng, d: sk.Knapsack(rng.integers(0, 3, size=d), 0.4 * d, integer=False),
    "any sign": lambda rng, d: sk.Polyhedron(A_ub=[rng.normal(size=d)], b_ub=[0.3], bounds=(-1, 1)),
    "budget": lambda rng, d: sk.Polyhedron(A_eq=[rng.uniform(0.5, 2.0, size=d)], b_eq=[1.0], bounds=(0, 0.4)),
    "box": lambda rng, d: sk.Box(-1.0, rng.uniform(0.0, 2.0, size=d)),
}


def data(d, n=60, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X @ rng.normal(size=(p, d)) / 2 + 1.0) ** 2 + rng.normal(size=(n, d))


def objective_of(region, X, C, **params):
    region = sk.regions.check.check_region(region, C.shape[1])
    return InMemoryObjective(SPOPlusLoss(region), X, C, **params)


def violation(box, V):
    total = V @ box.coef
    return max(
        (box.lower - V).max(), (V - box.upper).max(), (total - box.high).max(), (box.low - total).max()
    )  # fmt: skip


# -- the region --------------------------------------------------------------------------------------------------------


def test_box_of_regions():
    weights = np.array([2.0, 3.0, 0.0])
    assert box_of(sk.ShortestPath.grid(3, 3), 12) is None
    assert box_of(sk.Knapsack([2, 3], 4), 2) is None  # whole items
    assert box_of(sk.Knapsack([[2, 3], [1, 1]], [4, 1], integer=False), 2) is None  # two constraints
    assert box_of(sk.LqBall(2.0), 3) is None
    box = box_of(sk.Knapsack(weights, 4.0, integer=False), 3)
    assert_array_equal(box.coef, weights)
    assert (box.low, box.high) == (-HUGE, 4.0)
    box = box_of(sk.Simplex(), 3)
    assert (box.low, box.high) == (1.0, 1.0)
    assert_array_equal(box.upper, np.ones(3))  # implied by the constraint
    box = box_of(sk.Box(-1.0, 2.0), 2)
    assert (box.low, box.high) == (-HUGE, HUGE) and not box.coef.any()


@pytest.mark.parametrize("name", REGIONS)
def test_box_is_the_region(name):
    """The oracle's decisions are the optima of linear programs over the box."""
    rng = np.random.default_rng(1)
    region, d = REGIONS[name](rng, 9), 9
    box = box_of(sk.regions.check.check_region(region, d), d)
    for c in rng.normal(size=(20, d)):
        A = [row for row, side in ((box.coef, box.high), (-box.coef, -box.low)) if abs(side) < HUGE]
        b = [side for side in (box.high, -box.low) if abs(side) < HUGE]
        truth = linprog(c, A_ub=A or None, b_ub=b or None, bounds=np.column_stack([box.lower, box.upper])).fun
        w = region.solve_min(c[None])[0]
        assert c @ w == pytest.approx(truth, rel=1e-7, abs=1e-7)


def test_few_differences():
    W = np.eye(4)
    assert differ_little(W[[1, 0, 2, 3]], W) and differ_little(W, W)
    assert not differ_little(1.0 - W, W)


# -- kernels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("size", [0.1, 3.0, 1e4])
def test_projection_is_that_of_a_qp_solver(name, size):
    rng = np.random.default_rng(2)
    d = 12
    box = box_of(sk.regions.check.check_region(REGIONS[name](rng, d), d), d)
    out, multiplier = np.empty(d), 0.0
    for y in size * rng.normal(size=(6, d)):
        x = cp.Variable(d)
        rows = [box.lower <= x, x <= box.upper]
        rows += [box.coef @ x <= box.high] if box.high < HUGE else []
        rows += [box.coef @ x >= box.low] if box.low > -HUGE else []
        problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x) / size - (y / size) @ x), rows)
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        multiplier = kernels.nearest(y, box.lower, box.upper, box.coef, box.low, box.high, multiplier, out)
        assert_allclose(out, x.value, atol=1e-5 * max(size, 1.0) ** 0.5)
        assert violation(box, out[None]) <= 1e-15 * d * max(size, 10.0)  # rounding errors of y
        assert np.square(out - y).sum() <= np.square(x.value - y).sum() * (1 + 1e-9)
        # From any other multiplier it is the same point.
        again = np.empty(d)
        for start in (0.0, 10.0 * multiplier, 0.1 * multiplier):
            kernels.nearest(y, box.lower, box.upper, box.coef, box.low, box.high, start, again)
            assert_allclose(again, out, atol=1e-11 * size + 1e-12)


@pytest.mark.parametrize("name", REGIONS)
def test_slack_bounds_what_the_best_decision_gains(name):
    rng = np.random.default_rng(3)
    d = 9
    region = REGIONS[name](rng, d)
    box = box_of(sk.regions.check.check_region(region, d), d)
    for u in rng.normal(size=(20, d)):
        v = region.solve_min(rng.normal(size=(3, d))).mean(axis=0)
        best = float(u @ (region.solve_min(-u[None])[0] - v))
        for price in (0.0, 0.3, 1.0, -0.5):
            if (price > 0 and box.high == HUGE) or (price < 0 and box.low == -HUGE):
                continue
            gap = kernels.slack(v, u, box.lower, box.upper, box.coef, box.low, box.high, price)
            assert gap >= best - 1e-12


def scaled(region, d, *, csr=False, l1=0.0, n=15, q=4):
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(n, q)) * (rng.uniform(size=(n, q)) < 0.7)
    Z[0] = 0.0  # a sample without features
    weight = rng.uniform(0.5, 1.0, size=n)
    weight[1] = 0.0
    C = rng.normal(size=(n, d))
    W, V = region.solve_min(C), region.solve_min(-C)
    features = sp.csr_array(Z) if csr else Z
    args = weight / weight.sum(), np.full(q, l1), np.full(q, 0.05), np.zeros((d, q)), 1.0
    problem = ScaledProblem(features, C, W, *args)
    points = Points(box_of(sk.regions.check.check_region(region, d), d), problem, V)
    points.mix(0.4)
    return problem, points


def dual_value(problem, points):
    constant, M = problem.moments(points)
    return constant - 0.5 * np.square(problem.soft(M)).sum()


@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("name", REGIONS)
def test_sweeps_ascend_to_the_optimum(name, csr, l1):
    rng = np.random.default_rng(5)
    d = 9
    region = REGIONS[name](rng, d)
    problem, points = scaled(region, d, csr=csr, l1=l1)
    T = problem.moments(points)[1]
    rest = np.zeros(problem.n)
    busy = np.flatnonzero((problem.a > 0) & (problem.zz > 0))
    before = dual_value(problem, points)
    for k in range(1500):
        points.extend(problem, problem.predictions(problem.soft(T)))
        order = np.intersect1d(points.several, busy)
        points.sweep(problem, order, T, rest)
        if k >= 30:
            continue
        assert_allclose(T, problem.moments(points)[1], atol=1e-12)
        after = dual_value(problem, points)
        assert after > before if k == 0 else after >= before - 1e-12
        before = after
        assert violation(points.box, points.average()[0]) <= 1e-12
    predictions = problem.predictions(problem.soft(T))
    U = problem.C - 2.0 * predictions
    V = points.average()[0]
    gap = problem.a @ ((region.solve_min(-U) - V) * U).sum(axis=1)
    assert violation(points.box, V) <= 1e-12
    assert gap <= 1e-4 * before
    assert gap - 1e-12 <= points.extend(problem, predictions) <= 1e-3 * before


def test_recent_steps_are_faster_than_sweeps():
    region, d = sk.Knapsack(np.arange(1, 10), 15, integer=False), 9
    best = []
    for accelerate in (False, True):
        problem, points = scaled(region, d, n=60, q=12)
        T = problem.moments(points)[1]
        rest = np.zeros(problem.n)
        busy = np.flatnonzero((problem.a > 0) & (problem.zz > 0))
        for _ in range(10):
            points.extend(problem, problem.predictions(problem.soft(T)))
            recent = RecentSteps(problem, points, T)
            for _ in range(8):
                points.sweep(problem, np.intersect1d(points.several, busy), T, rest)
                before = dual_value(problem, points)
                if accelerate:
                    T = recent.ascend(T)
                assert dual_value(problem, points) >= before - 1e-13
                assert_allclose(T, problem.moments(points)[1], atol=1e-11)
                assert violation(points.box, points.average()[0]) <= 1e-12
        U = problem.C - 2.0 * problem.predictions(problem.soft(T))
        best.append(problem.a @ ((region.solve_min(-U) - points.average()[0]) * U).sum(axis=1))
    assert best[1] < 0.5 * best[0]


# -- fits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("name", REGIONS)
def test_agrees_with_another_solver(name, penalty):
    region = REGIONS[name](np.random.default_rng(6), 8)
    X, C = data(8)
    weight = np.random.default_rng(7).uniform(0.1, 2.0, size=len(X))
    # The last digits take long without any ridge, as they do with cached decisions.
    tol = 1e-5 if penalty.get("l1_ratio") == 1.0 else 1e-6
    fits = [
        SPOPlusRegressor(region, solver=solver, tol=tol, **penalty).fit(X, C, sample_weight=weight)
        for solver in ("dual", "conic")
    ]
    assert fits[0].duality_gap_ <= tol
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=5.0 * tol)
    assert fits[0].lower_bound_ <= fits[1].objective_ * (1 + 1e-9)


@pytest.mark.parametrize("name", ["top", "knapsack"])
def test_bound_is_that_of_points_in_the_region(name):
    X, C = data(20, n=100)
    region = REGIONS[name](np.random.default_rng(8), 20)
    objective = objective_of(region, X, C, alpha=0.05)
    result, state = DualSolver(tol=1e-4).solve_from(objective, Run())
    assert isinstance(state.cache, Points)
    free = np.broadcast_to(objective.free, state.problem.shape)
    *_, weight = balanced(FreeMoments(state.problem, state.cache, free), state.cache.weight, lambda: False)
    V = state.cache.average(weight)[0]
    assert violation(state.cache.box, V) <= 1e-12
    assert np.abs(objective.weight @ (V - objective.W)).max() <= 1e-11
    assert np.abs(objective.weight @ (state.cache.average()[0] - objective.W)).max() > 1e-8
    D = (V - objective.W) * objective.weight[:, None]
    G, ridge = -2.0 * D.T @ objective.design.Z, objective.l2 > 0
    bound = (objective.C * D).sum() - 0.5 * (G[:, ridge] ** 2 / objective.l2[ridge]).sum()
    exact = DualSolver(tol=1e-9).solve(objective, Run())
    assert bound <= exact.objective * (1 + 1e-12)
    assert bound >= exact.objective * (1 - 1e-3)
    assert result.lower_bound <= exact.objective


def test_starts_from_a_state():
    X, C = data(12, n=100)
    objective = objective_of(sk.TopK(3), X, C, alpha=0.05)
    other = objective.with_penalty(0.03, 0.0)
    cold = DualSolver().solve(other, Run())
    _, state = DualSolver().solve_from(objective, Run())
    assert isinstance(state.cache, Points)
    warm, _ = DualSolver().solve_from(other, Run(), state.coef, state)
    assert warm.gap <= 1e-6
    assert warm.objective == pytest.approx(cold.objective, rel=2e-6)
