"""The rows whose decisions are not known yet: optima and bounds are those of all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from solver_problems import PENALTIES

from skspo import Box, EntropySimplex, Knapsack, ShortestPath, Simplex, SPOPlusLoss, SPOPlusRegressor
from skspo._training.chunked import ChunkedObjective
from skspo._training.in_memory import InMemoryObjective
from skspo._training.rows import LocalRows
from skspo._training.run import Run
from skspo._utils.limits import Deadline
from skspo.data.chunks import ChunkedData
from skspo.solvers import BundleSolver, ConicSolver, InteriorPointSolver, undecided_rows
from skspo.solvers.bundle import solver as bundle
from skspo.solvers.undecided_rows import can_finish, finish_with_undecided_rows

REGIONS = {
    "simplex": (Simplex(), 5),
    "values": (Knapsack([3, 4, 5, 2], 7, integer=False), 4),
    "path": (ShortestPath.grid(3, 3), 12),
    "box": (Box(-1.0, 2.0), 4),
}


def data(d, n=300, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X @ rng.normal(size=(p, d))) ** 2 + rng.normal(size=(n, d)) + 1.0


def near(objective, size, count=4, seed=0):
    """Models at some distance from the optimum."""
    rng = np.random.default_rng(seed)
    best = InteriorPointSolver(tol=1e-3).solve(objective, Run()).coef
    return [best + size * rng.normal(size=objective.shape) for _ in range(count)]


@pytest.mark.parametrize("params", PENALTIES, ids=str)
@pytest.mark.parametrize("name", REGIONS)
def test_optima_and_bounds(name, params):
    region, d = REGIONS[name]
    X, C = data(d)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))
    objective = InMemoryObjective(SPOPlusLoss(region), X, C, weight, **params)
    Thetas = near(objective, 1e-2)
    assert can_finish(objective)
    Theta, value, bound = finish_with_undecided_rows(objective, Run(), Thetas, objective.value(Thetas[0]), 1e-6)
    conic = ConicSolver().solve(objective, Run())
    assert_allclose(value, objective.value(Theta), rtol=1e-12)
    assert objective.relative_gap(value, bound.value) <= 1e-6 and bound.radius >= objective.radius(Theta)
    assert_allclose(value, conic.objective, rtol=1e-5)
    assert bound.value <= conic.objective * (1 + 1e-9) and conic.lower_bound <= value * (1 + 1e-9)


@pytest.mark.parametrize("size", [0.3, 3.0, 100.0])
@pytest.mark.parametrize("name", REGIONS)
def test_bounds_hold_whatever_the_models(name, size, monkeypatch):
    """One round from models that are far away: rows are taken as decided that are not."""
    region, d = REGIONS[name]
    monkeypatch.setattr(undecided_rows, "ROUNDS", 1)
    objective = InMemoryObjective(SPOPlusLoss(region), *data(d))
    best = InteriorPointSolver(tol=1e-9).solve(objective, Run())
    for seed in range(3):
        Thetas = near(objective, size, 2, seed)
        found = finish_with_undecided_rows(objective, Run(), Thetas, objective.value(Thetas[0]), 1e-6)
        assert found is not None
        assert found[2].value <= best.objective * (1 + 1e-9) <= found[1] * (1 + 2e-9)


def test_cut_of_decided_rows():
    """The cut is exact where decisions are the same, and below the loss everywhere."""
    region, d = REGIONS["simplex"]
    objective = InMemoryObjective(SPOPlusLoss(region), *data(d))
    Thetas = near(objective, 0.02)
    found = objective.undecided_rows(Thetas, 300)
    V = [objective.decisions(Theta) for Theta in Thetas]
    differ = np.flatnonzero(np.any([(other != V[0]).any(axis=1) for other in V], axis=0))
    assert 0 < differ.size < 200
    assert_array_equal(found.rows.C, objective.C[differ])
    assert_array_equal(found.rows.weight, objective.weight[differ])
    far = np.random.default_rng(0).normal(size=objective.shape)
    for Theta, exact in [*((Theta, True) for Theta in Thetas), (far, False)]:
        below = found.rows.mean_loss(Theta) + found.constant + np.vdot(found.slope, Theta)
        assert below <= objective.mean_loss(Theta) * (1 + 1e-12)
        assert (abs(below - objective.mean_loss(Theta)) <= 1e-12) == exact
    assert objective.undecided_rows(Thetas, differ.size - 1) is None


@pytest.mark.parametrize("shared", [False, True])
def test_chunks(shared):
    region = Simplex()
    X, C = data(5)
    X = np.random.default_rng(2).normal(size=(300, 10)) if shared else X
    whole = InMemoryObjective(SPOPlusLoss(region), X, C, shared=shared)
    Thetas = near(whole, 0.05)
    mine = whole.undecided_rows(Thetas, 300)
    with LocalRows(ChunkedData.from_arrays(X, C, chunk_rows=70)) as rows:
        objective = ChunkedObjective(SPOPlusLoss(region), rows, shared=shared)
        found = objective.undecided_rows(Thetas, 300)
        # Rows in memory are sorted.
        assert_allclose(np.sort(found.rows.C, axis=0), np.sort(mine.rows.C, axis=0), atol=1e-12)
        assert_allclose(found.rows.weight, mine.rows.weight, rtol=1e-12)
        assert_allclose(found.constant, mine.constant, rtol=1e-10)
        assert_allclose(found.slope, mine.slope, atol=1e-12)
        assert objective.undecided_rows(Thetas, mine.rows.n_samples - 1) is None
        _, value, bound = finish_with_undecided_rows(objective, Run(), Thetas, objective.value(Thetas[0]), 1e-6)
    best = InteriorPointSolver(tol=1e-9).solve(whole, Run())
    assert objective.relative_gap(value, bound.value) <= 1e-6
    assert_allclose(value, best.objective, rtol=1e-6)
    assert bound.value <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize("params", PENALTIES, ids=str)
def test_bundle(monkeypatch, params):
    monkeypatch.setattr(bundle, "FINISH_FROM", 100)
    X, C = data(5, n=2000)
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), X, C, **params)
    best = InteriorPointSolver(tol=1e-8).solve(objective, Run())
    used = []
    finish = bundle.finish_with_undecided_rows
    monkeypatch.setattr(bundle, "finish_with_undecided_rows", lambda *args: used.append(1) or finish(*args))
    result = BundleSolver(tol=1e-7).solve(objective, Run())
    assert result.converged and result.gap <= 1e-7 and used
    assert_allclose(result.objective, best.objective, rtol=2e-7)
    assert result.lower_bound <= best.objective * (1 + 1e-9)


def test_where_it_cannot_be_used():
    X, C = data(4)
    assert not can_finish(InMemoryObjective(SPOPlusLoss(EntropySimplex()), X, C))
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), X, C)
    Thetas = near(objective, 1e-2)
    # The same model twice: no row is undecided.
    assert finish_with_undecided_rows(objective, Run(), [Thetas[0]] * 2, 1.0, 1e-6) is None
    deadline = Deadline(0.0)
    with deadline.enforced():
        assert finish_with_undecided_rows(objective, Run(deadline), Thetas, 1.0, 1e-6) is None


def test_tried_again_while_too_many_rows_are_undecided(monkeypatch):
    """After the first try there is another one every few passes, until the rows are few enough."""
    monkeypatch.setattr(bundle, "FINISH_FROM", 300)
    X, C = data(5)
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), X, C)
    passes, finish = [], bundle.finish_with_undecided_rows

    def third_time(*args):
        passes.append(0)
        return finish(*args) if len(passes) == 3 else None

    monkeypatch.setattr(bundle, "finish_with_undecided_rows", third_time)
    monkeypatch.setattr(bundle, "FIRST_TRY", 2)
    monkeypatch.setattr(bundle, "TRY_AGAIN", 1)
    monkeypatch.setattr(bundle, "FINISH_AT", 0.0)
    result = BundleSolver().solve(objective, Run())
    best = InteriorPointSolver(tol=1e-8).solve(objective, Run())
    assert result.converged and len(passes) == 3 and result.n_iter == 4
    assert_allclose(result.objective, best.objective, rtol=2e-6)


@pytest.mark.slow
def test_far_optimum_of_many_samples():
    """The optimum is thousands of typical costs away from least squares, where averaged cuts prove little."""
    from skspo.datasets import make_cost_sensitive_classification

    X, C = make_cost_sensitive_classification(200_000, 5, 10, degree=2, noise=0.5, random_state=0)[:2]
    model = SPOPlusRegressor(Simplex(), solver="bundle").fit(X, C)
    assert model.duality_gap_ <= 1e-6 and model.certificate_radius_ >= 1e4
