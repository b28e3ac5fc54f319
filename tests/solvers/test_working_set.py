"""The interior-point method for many rows, with the undecided ones only: same optima, in memory, chunks and Dask."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import skspo._training.objective
from skspo import Box, ShortestPath, Simplex, SPOPlusLoss, SPOPlusRegressor, TopK
from skspo._training.chunked import ChunkedObjective
from skspo._training.in_memory import InMemoryObjective
from skspo._training.rows import Every, LocalRows
from skspo._training.run import Run
from skspo._utils.limits import Budget, Deadline
from skspo.data.chunks import ChunkedData
from skspo.datasets import make_cost_sensitive_classification
from skspo.solvers import BundleSolver, InteriorPointSolver, Status, undecided_rows
from skspo.solvers.bundle import solver as bundle
from skspo.solvers.interior_point import solver as module
from skspo.solvers.interior_point.state import forms_of
from skspo.solvers.undecided_rows import WorkingSet, leaves_out_rows, minimize_undecided

REGIONS = {
    "simplex": (Simplex(), 6),
    "top": (TopK(2), 6),
    "box": (Box(-1.0, 2.0), 3),
    "path": (ShortestPath.grid(3, 3), 12),
}


@pytest.fixture
def few(monkeypatch):
    """Rows are left out of small problems as well, and their samples are small."""
    monkeypatch.setattr(skspo._training.objective, "MANY_SAMPLES", 1500)
    monkeypatch.setattr(skspo._training.objective, "ENOUGH_SAMPLES", 200)
    monkeypatch.setattr(undecided_rows, "TYPICAL_ROUNDS", 1.0)
    monkeypatch.setattr(undecided_rows, "TOO_MANY", 1.0)


def data(d, n=2000, p=3, seed=11):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X @ rng.normal(size=(p, d))) ** 2 + rng.normal(size=(n, d)) + 1.0


def all_rows(objective, **params):
    """Fit with all rows."""
    solver = InteriorPointSolver(**params)
    return solver._solve(objective, Run(), None)


def chunked(X, C, region, chunk_rows=333, **params):
    rows = LocalRows(ChunkedData.from_arrays(X, C, chunk_rows=chunk_rows))
    return rows, ChunkedObjective(SPOPlusLoss(region), rows, **params)


@pytest.mark.parametrize("alpha, l1_ratio", [(0.0, 0.0), (0.01, 0.0), (0.01, 0.5)])
@pytest.mark.parametrize("name", REGIONS)
def test_same_optimum_as_with_all_rows(few, name, alpha, l1_ratio):
    region, d = REGIONS[name]
    X, C = data(d)
    weight = np.random.default_rng(5).uniform(0.5, 2.0, size=len(X))
    objective = InMemoryObjective(SPOPlusLoss(region), X, C, weight, alpha=alpha, l1_ratio=l1_ratio)
    assert leaves_out_rows(objective)
    run = Run()
    solver = InteriorPointSolver(tol=1e-6)
    search = WorkingSet(objective, solver.tol, objective.least_squares, np.inf, [])
    result = search.run(run, solver, solver._fit_sample)
    best = all_rows(objective, tol=1e-9)
    assert result.converged and result.gap <= 1e-6
    assert_allclose(result.objective, objective.value(result.coef), rtol=1e-12)
    assert best.objective * (1 - 1e-9) <= result.objective <= best.objective * (1 + 2e-6)
    assert result.lower_bound <= best.objective * (1 + 1e-9)
    assert result.radius >= objective.radius(result.coef)
    assert run.budget.spent > 0


@pytest.mark.parametrize("name", ["top", "path"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_a_round_proves_the_gap_of_what_it_minimizes(name, tol):
    """Moments that do not vanish are charged for: the complementarity alone is not the gap."""
    region, d = REGIONS[name]
    objective, run = InMemoryObjective(SPOPlusLoss(region), *data(d)), Run()
    start, noise = objective.least_squares, np.random.default_rng(0).normal(size=(3, *objective.shape))
    found = objective.undecided_rows([start, *(start + 0.05 * noise)], objective.n_samples)
    gap = tol * objective.value(start)
    Theta, moments, _ = minimize_undecided(found, forms_of(found.rows, run), run, start, gap)
    value = found.rows.value(Theta) + found.constant + np.vdot(found.slope, Theta)
    assert 0.0 <= value - objective.dual_value_from_moments(*moments, Theta).value <= 2.0 * gap


def test_a_minimum_far_away_is_approached_in_parts():
    """The last point that is worse has rows that are decided otherwise, and fewer than the minimum."""
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), *data(6))
    start, best = objective.least_squares, all_rows(objective, tol=1e-9).coef
    search = WorkingSet(objective, 1e-6, start, objective.value(start), [])
    far = start + 300.0 * (best - start)
    assert objective.value(far) > objective.value(start)
    worse = search._nearest_failure(far)
    assert objective.value(worse) >= objective.value(start) > search.best[1] == objective.value(search.best[0])
    assert_allclose(search.best[0] - start, undecided_rows.CLOSER * (worse - start))
    differ = [objective.compare_decisions([start, Theta])[0].size for Theta in (search.best[0], worse, far)]
    assert differ[0] <= differ[1] < differ[2] and differ[1] > 0


def test_chunks(few, monkeypatch):
    """Chunks give the same optimum as memory, and not all rows are loaded."""
    load = ChunkedObjective._in_memory
    loaded = []

    def count(objective, parts, *args):
        loaded.append(sum(len(part.weight) for part in parts))
        return load(objective, parts, *args)

    monkeypatch.setattr(ChunkedObjective, "_in_memory", count)
    region = Simplex()
    X, C = data(6)
    best = all_rows(InMemoryObjective(SPOPlusLoss(region), X, C), tol=1e-9)
    for chunk_rows in (333, 2000):
        rows, objective = chunked(X, C, region, chunk_rows)
        with rows:
            assert leaves_out_rows(objective)
            result = InteriorPointSolver().solve(objective, Run())
        assert result.converged and result.lower_bound <= best.objective * (1 + 1e-9)
        assert_allclose(result.objective, best.objective, rtol=2e-6)
    assert len(loaded) >= 6 and max(loaded) < len(X)


def test_same_data_same_bits(few):
    X, C = data(6)
    coefs = []
    for _ in range(2):
        rows, objective = chunked(X, C, Simplex())
        with rows:
            coefs.append(InteriorPointSolver().solve(objective, Run()).coef)
    assert_array_equal(*coefs)


def test_too_many_undecided_rows_for_memory(few, monkeypatch):
    monkeypatch.setattr(undecided_rows, "SAMPLE_ELEMENTS", 2000)
    rows, objective = chunked(*data(6), Simplex())
    with rows:
        result = InteriorPointSolver().solve(objective, Run())
    assert result.status is Status.NUMERICAL_LIMIT and "do not fit into memory" in result.message
    assert np.isfinite(result.objective) and result.lower_bound == 0.0


@pytest.mark.parametrize("name, value", [("ROUNDS", 0), ("TOO_MANY", 0.01)])
def test_all_rows_if_the_gap_is_not_closed_or_many_are_undecided(few, monkeypatch, name, value):
    monkeypatch.setattr(undecided_rows, name, value)
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), *data(6))
    used = []
    plain = InteriorPointSolver._solve
    monkeypatch.setattr(
        module.InteriorPointSolver, "_solve", lambda *args: used.append(args[1].n_samples) or plain(*args)
    )
    assert InteriorPointSolver().solve(objective, Run()).converged
    assert used[-1] == objective.n_samples


def test_pauses_between_rounds(few):
    """A fit that is interrupted by budgets ends where it would have ended without them."""
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), *data(6))
    whole = InteriorPointSolver().solve(objective, Run())
    run, solver, turns = Run(), InteriorPointSolver(), 0
    while True:
        run.budget = Budget(1.0)
        result = solver.solve(objective, run)
        turns += 1
        if result.status is not Status.PAUSED:
            break
    assert turns > 1 and result.converged
    assert_array_equal(result.coef, whole.coef)
    assert not run.paused


@pytest.mark.parametrize("p, rounds", [(3, 1.0), (6, 2.0)])
def test_bundle_method_ends_with_undecided_rows(few, monkeypatch, p, rounds):
    """What counts is how many rows are undecided between its points, not how many are expected."""
    monkeypatch.setattr(bundle, "FIRST_TRY", 3)
    monkeypatch.setattr(undecided_rows, "TYPICAL_ROUNDS", rounds)
    monkeypatch.setattr(undecided_rows, "FINISHING", 1e-3)  # the rows are few, and so is the work of the passes
    used, finish = [], bundle.finish_with_undecided_rows
    monkeypatch.setattr(bundle, "finish_with_undecided_rows", lambda *args: used.append(1) or finish(*args))
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), *data(6, p=p))
    assert leaves_out_rows(objective) == (p == 3)
    best = all_rows(objective, tol=1e-9)
    result = BundleSolver(tol=1e-7).solve(objective, Run())
    # It is tried after 3, 6 and 12 passes, and models that are better but not proved yet take another one.
    assert result.converged and used and result.n_iter < 24
    assert_allclose(result.objective, best.objective, rtol=2e-7)
    assert result.lower_bound <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize("seed", [1, 25])
def test_bundle_method_goes_on_from_a_better_model_of_undecided_rows(monkeypatch, seed):
    """The trial point of its last program is not one for the center that it has moved to."""
    monkeypatch.setattr(skspo._training.objective, "MANY_SAMPLES", 300)
    monkeypatch.setattr(skspo._training.objective, "ENOUGH_SAMPLES", 60)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 3))
    C = X @ rng.normal(size=(3, 4))
    C = (C > C.min(axis=1, keepdims=True)).astype(float)  # a linear model without loss
    result = BundleSolver().solve(InMemoryObjective(SPOPlusLoss(Simplex()), X, C), Run())
    assert result.converged and result.gap <= 1e-6


def test_bound_holds_around_a_better_model_far_away(few):
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), *data(6))
    solver = InteriorPointSolver(tol=1e-6)
    search = WorkingSet(objective, solver.tol, objective.least_squares, np.inf, [])
    assert search.run(Run(), solver, solver._fit_sample).converged and search.bound.value > 0.0
    far = objective.least_squares + 1e6 * np.ones(objective.shape)
    search.best = far, search.best[1]
    assert search.round(Run(), objective.n_samples, 1e-3)
    assert search.bound.radius >= 2.0 * objective.distance(search.best[0])


def test_undecided_rows_take_no_more_work_than_allowed(few):
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), *data(6))
    models = [fit.coef for fit in (all_rows(objective, tol=1e-2), all_rows(objective, tol=1e-4))]
    value, run = objective.value(models[0]), Run()
    assert undecided_rows.finish_with_undecided_rows(objective, run, models, value, 1e-7, 0.0) is None
    assert run.budget.spent == 0.0
    assert undecided_rows.finish_with_undecided_rows(objective, run, models, value, 1e-7, 1e12) is not None


def test_time_limit(few):
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), *data(6))
    deadline = Deadline(0.0)
    with deadline.enforced():
        result = InteriorPointSolver().solve(objective, Run(deadline))
    assert result.status is Status.TIME_LIMIT and deadline.reached


@pytest.mark.parametrize("step, first", [(1, 0), (1, 6), (3, 2), (7, 8), (16, 8)])
def test_rows_from_the_first_one_on(step, first):
    every, found = Every(step, 1.0, first), []
    for start, size in ((0, 4), (4, 5), (9, 20)):
        rows, before = every.of(start)
        assert before == len(found)
        found += list(range(start, start + size))[rows]
    assert found == list(range(first, 29, step))


def test_samples_have_no_common_row(few):
    X, C = data(6)
    X[:, 0] = np.arange(len(X))
    whole = InMemoryObjective(SPOPlusLoss(Simplex()), X, C)
    rows, objective = chunked(X, C, Simplex())
    with rows:
        for samples in (
            [whole.sampled(part, 2) for part in range(2)],
            [objective.sampled(part, 2) for part in range(2)],
        ):
            first, second = (set(sample.design.Z[:, 0]) for sample in samples)
            assert not first & second and len(first | second) == sum(sample.n_samples for sample in samples) == 250
            assert all(abs(sample.weight.sum() - 1.0) <= 1e-12 for sample in samples)


@pytest.mark.slow
def test_optimum_far_away():
    """Without a penalty, and thousands of typical costs away from least squares."""
    X, C = make_cost_sensitive_classification(20_000, 8, 10, degree=2, noise=0.5, random_state=91)
    best = all_rows(InMemoryObjective(SPOPlusLoss(Simplex()), X, C), tol=1e-7)
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), X, C)
    for fit in (
        lambda model: model.fit(X, C),
        lambda model: model.fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=3000)),
    ):
        model = fit(SPOPlusRegressor(Simplex(), solver="interior-point", tol=1e-4))
        assert model.duality_gap_ <= 1e-4
        scaled = model.objective_ / objective.scale
        assert best.lower_bound * (1 - 1e-9) <= scaled <= best.objective * (1 + 1.1e-4)
