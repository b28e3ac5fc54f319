"""The pool of decisions for slow oracles: fewer rows are asked, and nothing that is reported depends on it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import skspo as sk
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo._utils.limits import Budget, TimeIsUp
from skspo.losses import SPOPlusLoss
from skspo.solvers import BundleSolver, DualSolver, Status
from skspo.solvers.dual.pool import DecisionPool, can_pool, pool_of

RNG = np.random.default_rng(0)


class SlowKnapsack(sk.Knapsack):
    """A fast oracle that the package takes for a slow one, and that counts rows."""

    rows = 0

    @property
    def oracle_is_solver(self):
        return True

    def _argmin(self, C, data):
        SlowKnapsack.rows += len(C)
        return super()._argmin(C, data)


def problem(n=120, d=12, p=4):
    X = RNG.normal(size=(n, p))
    C = (np.abs(X @ RNG.normal(size=(p, d)) + 3.0)) ** 2 * RNG.uniform(0.5, 1.5, size=(n, d))
    weights = RNG.integers(3, 8, size=d)
    return SlowKnapsack(weights, int(0.4 * weights.sum())), X, C


REGION, X, C = problem()


def objective_of(region, alpha=0.1, X=X, C=C):
    return InMemoryObjective(SPOPlusLoss(region), X, C, alpha=alpha)


# -- the pool ----------------------------------------------------------------------------------------------------------


def test_a_pool_has_each_decision_once_and_finds_the_best():
    pool = DecisionPool(5)
    V = RNG.integers(0, 2, size=(200, 5)).astype(float)
    for k in range(0, 200, 50):
        pool.add(V[k : k + 50])
    assert_array_equal(pool.V, np.unique(V, axis=0))
    U = RNG.normal(size=(30, 5))
    assert_allclose((U * pool.best(U)).sum(axis=1), (U @ V.T).max(axis=1))


def test_a_full_pool_drops_what_has_not_been_used(monkeypatch):
    monkeypatch.setattr("skspo.solvers.dual.pool.BLOCK_ELEMENTS", 7)  # rows in several blocks
    pool = DecisionPool(3)
    first = RNG.normal(size=(100, 3))
    pool.add(first)
    U = RNG.normal(size=(40, 3))
    best = pool.best(U)
    pool.add(RNG.normal(size=(50, 3)))
    assert len(pool.V) == 100
    assert_array_equal((U * pool.best(U)).sum(axis=1) >= (U * best).sum(axis=1), np.ones(40, dtype=bool))


def test_who_can_pool():
    assert can_pool(objective_of(REGION))
    assert not can_pool(objective_of(sk.Knapsack(REGION.weights, REGION.capacity)))  # fast
    varies = REGION.with_rows({"capacity": np.full(len(C), 20.0)}, *C.shape)
    assert not can_pool(objective_of(varies))
    inexact = sk.OracleRegion(REGION.argmin, C.shape[1], sense="max", on_suboptimal="warn")
    assert not can_pool(objective_of(inexact))


def test_runs_with_other_penalties_share_a_pool():
    run, objective = Run(), objective_of(REGION)
    pool = pool_of(objective, run)
    assert pool is pool_of(objective.with_penalty(1.0, 0.0), run.with_deadline(run.deadline))
    assert_array_equal(pool.V, np.unique(objective.W, axis=0))


# -- the dual method ---------------------------------------------------------------------------------------------------


PENALTIES = [
    {"alpha": 0.1},
    {"alpha": 0.0},
    {"alpha": 0.1, "prior": "least_squares"},
    {"alpha": 0.02, "l1_ratio": 1.0},
    {"alpha": 0.05, "l1_ratio": 0.5},
]


@pytest.mark.parametrize("params", PENALTIES, ids=str)
def test_the_same_optimum(params):
    tol = 1e-3
    model = sk.SPOPlusRegressor(REGION, solver=DualSolver(tol=tol), **params).fit(X, C)
    other = sk.SPOPlusRegressor(REGION, solver=BundleSolver(tol=tol), **params).fit(X, C)
    assert model.duality_gap_ <= tol and other.duality_gap_ <= tol
    # Each bound is below the objective of the other.
    assert model.lower_bound_ <= other.objective_ * (1 + 1e-9)
    assert other.lower_bound_ <= model.objective_ * (1 + 1e-9)
    # The objective is that of the oracle, evaluated here by the definition of the loss.
    C_hat = model.predict(X)
    W = REGION.argmin(C)
    V = REGION.argmin(2.0 * C_hat - C)
    loss = ((2.0 * C_hat - C) * V).sum(axis=1) - 2.0 * (C_hat * W).sum(axis=1) + (C * W).sum(axis=1)
    if params["alpha"] == 0.0:
        assert model.objective_ == pytest.approx(loss.mean(), rel=1e-9)
    elif "prior" not in params:
        B, l1 = model.coef_, params.get("l1_ratio", 0.0)
        penalty = params["alpha"] * (l1 * np.abs(B).sum() + 0.5 * (1 - l1) * (B**2).sum())
        assert model.objective_ == pytest.approx(loss.mean() + penalty, rel=1e-9)


def test_a_shared_model():
    items = RNG.normal(size=(60, 12, 3))
    costs = 3.0 + items @ np.array([1.0, -1.0, 0.5]) + 0.5 * RNG.normal(size=(60, 12))
    params = {"shared": True, "alpha": 0.1, "tol": 1e-3}
    dual, bundle = (
        sk.SPOPlusRegressor(REGION, solver=s, **params).fit(items.reshape(60, -1), costs) for s in ("dual", "bundle")
    )
    assert dual.duality_gap_ <= 1e-3
    assert dual.lower_bound_ <= bundle.objective_ * (1 + 1e-9) and bundle.lower_bound_ <= dual.objective_ * (1 + 1e-9)


def test_fewer_rows_are_asked(monkeypatch):
    def rows():
        SlowKnapsack.rows = 0
        model = sk.SPOPlusRegressor(REGION, alpha=0.1, solver=DualSolver(tol=1e-3)).fit(X, C)
        assert model.duality_gap_ <= 1e-3
        return SlowKnapsack.rows / len(C)

    pooled = rows()
    monkeypatch.setattr("skspo.solvers.dual.solver.pool_of", lambda objective, run: None)
    assert pooled < 0.6 * rows()


def test_decisions_and_scores_are_those_of_the_oracle():
    model = sk.SPOPlusRegressor(REGION, alpha=0.1, solver="dual", tol=1e-2).fit(X, C)
    SlowKnapsack.rows = 0
    W = model.decide(X)
    assert SlowKnapsack.rows == len(X)
    assert_array_equal(W, sk.Knapsack(REGION.weights, REGION.capacity).argmin(model.predict(X)))
    model.score(X, C)
    assert SlowKnapsack.rows == 3 * len(X)


def test_results_can_be_repeated():
    one, other = (sk.SPOPlusRegressor(REGION, alpha=0.1, solver="dual", tol=1e-3).fit(X, C) for _ in range(2))
    assert_array_equal(one.coef_, other.coef_)


def test_a_wrong_pool_cannot_make_a_wrong_bound(monkeypatch):
    """If the pool finds nothing, the oracle is asked; what is proved does not depend on what the pool contains."""
    monkeypatch.setattr(DecisionPool, "best", lambda self, U: self.V[np.zeros(len(U), dtype=int)])
    model = sk.SPOPlusRegressor(REGION, alpha=0.1, solver=DualSolver(tol=1e-2)).fit(X, C)
    monkeypatch.undo()
    other = sk.SPOPlusRegressor(REGION, alpha=0.1, solver="bundle", tol=1e-3).fit(X, C)
    assert model.duality_gap_ <= 1e-2
    assert model.lower_bound_ <= other.objective_ * (1 + 1e-9) and other.lower_bound_ <= model.objective_ * (1 + 1e-9)


def test_going_on_from_a_better_model_of_another_solver():
    """The objective is that of the new model, not one with the decisions of the model before."""
    objective, run = objective_of(REGION), Run()
    solver = DualSolver(tol=1e-6)
    run.budget = Budget(0.0)
    paused = solver.solve(objective, run)
    assert paused.status is Status.PAUSED
    better = BundleSolver(tol=1e-6).solve(objective, Run()).coef
    run.budget = Budget(0.0)
    result = solver.solve(objective, run, better)
    assert result.objective < paused.objective
    assert result.objective == pytest.approx(objective.value(result.coef), rel=1e-12)
    assert result.lower_bound <= objective.value(better) * (1 + 1e-9)


def test_a_path_and_cross_validation():
    alphas, _, _, objectives, gaps = sk.spo_plus_path(X, C, REGION, solver="dual", n_alphas=4, tol=1e-2)
    assert (gaps <= 1e-2).all()
    by_bundle = sk.spo_plus_path(X, C, REGION, alphas=alphas, solver="bundle", tol=1e-2)
    assert_allclose(objectives, by_bundle[3], rtol=2e-2)


def test_a_fit_that_stops_early():
    """Its objective is that of the oracle, and its bound holds."""
    with pytest.warns(sk.NotCertifiedWarning, match="max_iter=2"):
        model = sk.SPOPlusRegressor(REGION, alpha=0.1, solver=DualSolver(tol=0.0, max_iter=2)).fit(X, C)
    other = sk.SPOPlusRegressor(REGION, alpha=0.1, solver="bundle", tol=1e-3).fit(X, C)
    assert model.n_iter_ == 2 and model.lower_bound_ <= other.objective_ * (1 + 1e-9)
    assert other.lower_bound_ <= model.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("passes", [4, 6, 8])
def test_a_time_limit(passes, monkeypatch):
    """With time for a few passes, the objective is that of the oracle, for a model better than least squares."""
    now, original = [0.0], SlowKnapsack._argmin
    monkeypatch.setattr("skspo._utils.limits.perf_counter", lambda: now[0])

    def slow(self, C, data):
        now[0] += len(C)
        if now[0] > passes * len(X):
            raise TimeIsUp
        return original(self, C, data)

    monkeypatch.setattr(SlowKnapsack, "_argmin", slow)
    with pytest.warns(sk.NotCertifiedWarning, match="time_limit"):
        model = sk.SPOPlusRegressor(REGION, alpha=0.1, solver="dual", time_limit=passes * len(X)).fit(X, C)
    monkeypatch.undo()
    best = sk.SPOPlusRegressor(REGION, alpha=0.1, solver="bundle", tol=1e-3).fit(X, C)
    objective = objective_of(REGION)
    least_squares = objective.value(objective.least_squares) * objective.scale
    assert best.lower_bound_ <= model.objective_ * (1 + 1e-9) and model.lower_bound_ <= best.objective_ * (1 + 1e-9)
    if passes > 4:
        assert model.objective_ < 0.5 * (least_squares + best.objective_)
        assert model.duality_gap_ < 0.5
