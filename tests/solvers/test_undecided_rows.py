"""The rows whose decisions are not known yet: optima and bounds are those of all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skspo import Simplex, SPOPlusLoss, SPOPlusRegressor
from skspo._training.chunked import ChunkedObjective
from skspo._training.in_memory import InMemoryObjective
from skspo._training.rows import LocalRows
from skspo._training.run import Run
from skspo.data.chunks import ChunkedData
from skspo.solvers import InteriorPointSolver


def data(d, n=300, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X @ rng.normal(size=(p, d))) ** 2 + rng.normal(size=(n, d)) + 1.0


def near(objective, size, count=4, seed=0):
    """Models at some distance from the optimum."""
    rng = np.random.default_rng(seed)
    best = InteriorPointSolver(tol=1e-3).solve(objective, Run()).coef
    return [best + size * rng.normal(size=objective.shape) for _ in range(count)]


def test_cut_of_decided_rows():
    """The cut is exact where decisions are the same, and below the loss everywhere."""
    region, d = Simplex(), 5
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


@pytest.mark.slow
def test_far_optimum_of_many_samples():
    """The optimum is thousands of typical costs away from least squares, where averaged cuts prove little."""
    from skspo.datasets import make_cost_sensitive_classification

    X, C = make_cost_sensitive_classification(200_000, 5, 10, degree=2, noise=0.5, random_state=0)[:2]
    model = SPOPlusRegressor(Simplex(), solver="bundle").fit(X, C)
    assert model.duality_gap_ <= 1e-6 and model.certificate_radius_ >= 1e4
