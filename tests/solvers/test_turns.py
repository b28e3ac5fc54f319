"""Turns of solvers: budgets of counted work, pauses, and the order."""

from threading import Event, Thread

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pytest import MonkeyPatch
from threadpoolctl import threadpool_limits

import skspo as sk
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo.datasets import make_shortest_path
from skspo.losses import SPOPlusLoss
from skspo.solvers import BundleSolver, DualSolver, InteriorPointSolver, Solver, Status
from skspo.solvers.base import STEP, Estimate
from skspo.solvers.driver import FIRST_TURN, TOO_LARGE, SolverOptions, closing, minimize, take_turns


@pytest.fixture(scope="module")
def objective():
    X, C = make_shortest_path(150, 4, (4, 4), degree=6, noise=0.5, random_state=3)
    return InMemoryObjective(SPOPlusLoss(sk.ShortestPath.grid(4, 4)), X, C, alpha=0.01)


class Worker(Solver):
    """A solver that ends after some work."""

    def __init__(self, name, estimate, needs):
        self.name, self.guess, self.needs, self.spent, self.tol = name, estimate, needs, 0.0, 1e-6

    def estimate(self, objective, run):
        return Estimate(self.guess, 0.0)


def played(objective, *workers):
    """Turns of the workers until the first one ends: names and budgets."""
    run, turns = Run(), []

    def turn(worker):
        turns.append((worker.name, run.budget.limit))
        worker.spent += run.budget.limit
        return None if worker.spent >= worker.needs else Status.PAUSED

    take_turns(objective, run, list(workers), turn)
    return turns


def test_budgets_double_and_every_solver_gets_the_same(objective):
    first = FIRST_TURN * 1.0
    turns = played(objective, Worker("a", 1.0, np.inf), Worker("b", 3.0, 10.0))
    assert turns == [("a", first), ("b", first), ("a", 2 * first), ("b", 2 * first), ("a", 4 * first), ("b", 4 * first)]


def test_a_right_estimate_costs_nothing(objective):
    assert played(objective, Worker("a", 1.0, 1.9), Worker("b", 2.0, 1.0)) == [("a", FIRST_TURN)]


def test_the_total_is_a_small_multiple_of_the_best(objective):
    """Whatever the estimates say, with three solvers less than about a dozen times."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        needs, guesses = 10.0 ** rng.uniform(0, 4, 3), np.sort(10.0 ** rng.uniform(0, 4, 3))
        workers = [Worker(str(k), g, n) for k, (g, n) in enumerate(zip(guesses, needs, strict=True))]
        total = sum(budget for _, budget in played(objective, *workers) if np.isfinite(budget))
        assert total <= 12.0 * max(needs.min(), guesses[0], guesses[np.argmin(needs)] / TOO_LARGE)


def test_no_turn_that_is_much_too_short(objective):
    turns = played(objective, Worker("a", 1.0, np.inf), Worker("b", 1000.0, 1.0))
    assert turns[-1][0] == "b" and turns[-1][1] >= 1000.0 / TOO_LARGE
    assert [name for name, _ in turns].count("b") == 1


def test_a_solver_that_cannot_pause_waits_for_the_budget_of_its_estimate(objective):
    one, whole = Worker("a", 1.0, np.inf), Worker("b", 9.0, 9.0)
    whole.can_pause = False
    assert played(objective, one, whole)[-1] == ("b", 16.0)


def test_estimates_of_zero_give_budgets(objective):
    turns = played(objective, Worker("a", 0.0, np.inf), Worker("b", 0.0, 1e7))
    assert turns[0] == ("a", FIRST_TURN * STEP) and turns[-1][0] == "b"


def test_the_last_solver_has_no_budget(objective):
    run, seen = Run(), []

    def turn(worker):
        seen.append((worker.name, run.budget.limit))
        return Status.NUMERICAL_LIMIT

    take_turns(objective, run, [Worker("a", 1.0, 1.0), Worker("b", 1.0, 1.0)], turn)
    assert seen == [("a", FIRST_TURN), ("b", np.inf)]


def test_others_have_a_turn_after_a_solver_without_work(objective):
    run, seen = Run(), []

    def turn(worker):
        seen.append(worker.name)
        return Status.NUMERICAL_LIMIT

    take_turns(objective, run, [Worker("a", 0.0, 1.0), Worker("b", 5.0, 1.0), Worker("c", 700.0, 1.0)], turn)
    assert seen == ["a", "b", "c"]


def test_a_gap_that_goes_down_fast_is_waited_for(objective):
    def history(gaps):
        return [(0.0, k, 1.0, 1.0 - gap, "a") for k, gap in enumerate(gaps)]

    assert closing(objective, history([1e-1, 1e-2, 1e-3, 1e-4]), 1e-6)
    assert not closing(objective, history([1e-1, 9e-2, 8e-2, 7e-2]), 1e-6)
    assert not closing(objective, history([1e-1, 1e-1, 1e-1, 1e-1]), 1e-6)
    assert not closing(objective, [(0.0, k, 1.0, np.nan, "a") for k in range(9)], 1e-6)
    assert not closing(objective, [], 1e-6)


def test_no_state_is_kept_after_the_last_turn(objective, monkeypatch):
    """Runs are kept for other penalties and sent to other processes."""
    monkeypatch.setattr("skspo.solvers.driver.FIRST_TURN", 1e-3)
    monkeypatch.setattr("skspo.solvers.driver.TOO_LARGE", 1e9)
    monkeypatch.setattr("skspo.solvers.driver.closing", lambda *args: False)
    run = Run()
    result, _ = minimize(objective, run, SolverOptions())
    assert result.converged and len({row[4] for row in run.history}) > 1  # several solvers had turns
    assert not run.paused


@pytest.mark.parametrize("kind", [BundleSolver, DualSolver, InteriorPointSolver])
def test_a_paused_solver_goes_on_where_it_was(kind, objective):
    """With pauses after every step the result is the same as without, unless a proof ends it earlier."""
    solver, run = kind(), Run()
    whole = solver.solve(objective, Run())
    assert whole.converged
    pauses, start = 0, None
    while True:
        run.budget.limit, run.budget.spent = 1.0, 0.0
        result = solver.solve(objective, run, start)
        if result.status is not Status.PAUSED:
            break
        assert result.lower_bound <= whole.objective * (1 + 1e-9) and solver.name in run.paused
        pauses, start = pauses + 1, result.coef
    assert result.converged and pauses > 2 and not run.paused
    if kind is DualSolver:  # the others prove a bound before a pause, and so may end earlier
        assert_array_equal(result.coef, whole.coef)
    assert abs(result.objective - whole.objective) <= 2e-6 * whole.objective
    assert np.diff(np.array([row[1] for row in run.history])).min() >= 0


def test_a_better_model_of_another_solver_is_taken_over(objective):
    best = InteriorPointSolver().solve(objective, Run())
    for solver in (BundleSolver(), DualSolver()):
        run = Run()
        run.budget.limit = 1.0
        first = solver.solve(objective, run)
        assert first.status is Status.PAUSED and first.objective > best.objective * (1 + 1e-4)
        run.budget.limit, run.budget.spent = 1.0, 0.0
        second = solver.solve(objective, run, best.coef)
        assert second.objective <= best.objective * (1 + 1e-9)


def test_wrong_estimates_change_the_order_but_not_the_result(objective, monkeypatch):
    right, _ = minimize(objective, Run(), SolverOptions())
    for kind in (BundleSolver, DualSolver, InteriorPointSolver):
        with monkeypatch.context() as patch:
            patch.setattr(kind, "estimate", classmethod(lambda cls, objective, run: Estimate(1e3, 0.0)))
            result, _ = minimize(objective, Run(), SolverOptions())
        assert result.converged and abs(result.objective - right.objective) <= 2e-6 * right.objective


def test_a_problem_on_which_dual_stalls_is_solved_by_another():
    """A region of which only a list of decisions is known, and no ridge."""
    rng = np.random.default_rng(0)
    everything = ((np.arange(2**12)[:, None] >> np.arange(12)) & 1).astype(float)
    V = everything[(everything @ rng.integers(3, 8, size=(2, 12)).T <= 20).all(axis=1)]
    X = rng.normal(size=(60, 4))
    C = -(((X @ rng.binomial(1, 0.5, (12, 4)).T / 2 + 3) ** 6 + 1) / 3.5**6) * rng.uniform(0.5, 1.5, (60, 12))
    region = sk.OracleRegion(lambda C: V[np.argmin(C @ V.T, axis=1)])
    objective = InMemoryObjective(SPOPlusLoss(region), X, C)
    run = Run()
    result, _ = minimize(objective, run, SolverOptions())
    assert result.converged and len(run.history) > 1


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_data_give_the_same_bits_whatever_else_the_machine_does(threads):
    """Turns depend on counted work, not on time: three solvers pause here, also while another thread is busy."""
    rng = np.random.default_rng(1)
    V = np.unique((rng.uniform(size=(300, 10)) < 0.4).astype(float)[1:], axis=0)
    X = rng.normal(size=(40, 3))
    C = np.abs(X @ rng.normal(size=(3, 10)) + 1.0) ** 4 * rng.uniform(0.5, 1.5, (40, 10))
    oracle = sk.OracleRegion(lambda costs: V[np.argmin(costs @ V.T, axis=1)], 10)
    problems = [(oracle, X, C), (sk.ShortestPath.grid(4, 4), *make_shortest_path(150, 4, (4, 4), random_state=3))]

    def fitted():
        models = []
        for region, features, costs in problems:
            with MonkeyPatch.context() as patch:
                for kind in (BundleSolver, DualSolver, InteriorPointSolver):  # so that nobody ends in the first turn
                    patch.setattr(kind, "estimate", classmethod(lambda cls, objective, run: Estimate(1e5, 0.0)))
                models.append(sk.SPOPlusRegressor(region).fit(features, costs))
            assert len(set(models[-1].history_["step"])) > 1
        return [(m.coef_, m.intercept_, m.objective_, m.lower_bound_, m.history_["objective"]) for m in models]

    once = fitted()
    stop = Event()
    busy = Thread(target=lambda: [np.linalg.qr(rng.normal(size=(60, 60))) for _ in iter(stop.is_set, True)])
    busy.start()
    try:
        with threadpool_limits(threads):
            again = fitted()
    finally:
        stop.set()
        busy.join()
    for first, second in zip(once, again, strict=True):
        for one, other in zip(first, second, strict=True):
            assert_array_equal(one, other)
