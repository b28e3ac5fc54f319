"""Rows in chunks are loaded into memory for solvers that do not read them chunk by chunk."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skspo import Box, ChunkedData, EntropySimplex, ShortestPath, Simplex, SPOPlusRegressor
from skspo._training.chunked import ChunkedObjective
from skspo._training.in_memory import InMemoryObjective
from skspo._training.rows import LocalRows
from skspo.datasets import make_cost_sensitive_classification, make_portfolio, make_shortest_path
from skspo.losses import SPOPlusLoss
from skspo.regions.check import check_region
from skspo.solvers import auto, choose_solvers

N = 241


@pytest.fixture(scope="module")
def paths():
    return make_shortest_path(N, grid=(3, 3), degree=4, noise=0.5, random_state=0)


def weight_and_offset():
    rng = np.random.default_rng(1)
    return rng.integers(0, 3, size=N).astype(float), rng.normal(size=(N, 12))


CASES = {
    "none": ({}, False),
    "weights and offset": ({}, True),
    "ridge without intercept": ({"alpha": 0.1, "fit_intercept": False}, True),
    "l1": ({"alpha": 0.05, "l1_ratio": 0.5}, False),
    "shared": ({"shared": True}, True),
    "prior": ({"alpha": 0.1, "prior": "least_squares"}, True),
}


@pytest.mark.parametrize("chunk_rows", [40, 7, N], ids=["last chunk of one row", "odd", "one chunk"])
@pytest.mark.parametrize("solver", ["interior-point", "dual"])
@pytest.mark.parametrize(("params", "more"), CASES.values(), ids=CASES)
def test_equals_local_fit(paths, solver, params, more, chunk_rows):
    X, C = paths
    X = np.random.default_rng(2).normal(size=(N, 24)) if params.get("shared") else X
    others = weight_and_offset() if more else (None, None)
    model = SPOPlusRegressor(ShortestPath.grid(3, 3), tol=1e-5, solver=solver, **params)
    model.fit_chunks(ChunkedData.from_arrays(X, C, *others, chunk_rows=chunk_rows))
    # Another algorithm, for rows in memory, and the value of the model by the loss itself.
    truth = SPOPlusRegressor(ShortestPath.grid(3, 3), tol=1e-7, solver="conic", **params).fit(X, C, *others)
    assert model.solver_ == solver
    assert 0.0 <= model.objective_ - model.lower_bound_ <= 1e-5 * model.objective_
    assert truth.lower_bound_ <= model.objective_ * (1 + 1e-9)
    assert model.lower_bound_ <= truth.objective_ * (1 + 1e-9)
    if not params.get("alpha"):
        objective = SPOPlusLoss(check_region(ShortestPath.grid(3, 3), 12))
        C_hat = model.predict(X) if others[1] is None else model.predict(X, offset=others[1])
        value = np.average(objective.value(C, C_hat), weights=others[0])
        assert_allclose(value, model.objective_, rtol=1e-9)


@pytest.mark.parametrize(
    ("region", "solver"), [(EntropySimplex(), "newton"), (Box(), "intervals"), (Simplex(), "conic")]
)
def test_other_solvers(region, solver):
    X, C = make_portfolio(100, 3, 5, degree=2, random_state=0)
    model = SPOPlusRegressor(region, solver=solver).fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=33))
    local = SPOPlusRegressor(region, solver=solver).fit(X, C)
    assert model.solver_ == solver
    assert_allclose(model.objective_, local.objective_, rtol=2e-6)


@pytest.fixture(scope="module")
def far_away():
    """Costs that linear models nearly interpolate, so that the bundle method stops at a gap of one."""
    return make_cost_sensitive_classification(1500, 15, 10, degree=2, noise=0.5, random_state=0)


def test_auto_loads_rows_if_reading_them_is_not_enough(far_away):
    data = ChunkedData.from_arrays(*far_away, chunk_rows=400)
    model = SPOPlusRegressor(Simplex(), tol=1e-4).fit_chunks(data)
    local = SPOPlusRegressor(Simplex(), tol=1e-6, solver="interior-point").fit(*far_away)
    assert model.duality_gap_ <= 1e-4
    assert model.lower_bound_ <= local.objective_ * (1 + 1e-9)
    assert local.lower_bound_ <= model.objective_ * (1 + 1e-9)
    again = SPOPlusRegressor(Simplex(), tol=1e-4).fit_chunks(data)
    assert_array_equal(again.coef_, model.coef_)


def test_rows_are_loaded_once_and_only_if_needed(far_away, monkeypatch):
    loads = []
    loaded = ChunkedObjective.loaded
    monkeypatch.setattr(ChunkedObjective, "loaded", lambda self: loads.append(self.n_samples) or loaded(self))
    data = ChunkedData.from_arrays(*far_away, chunk_rows=400)
    SPOPlusRegressor(Simplex(), solver="bundle", alpha=1.0).fit_chunks(data)
    assert not loads
    # Turns of solvers that pause and go on.
    monkeypatch.setattr("skspo.solvers.driver.FIRST_TURN", 0.1)
    model = SPOPlusRegressor(Simplex(), tol=1e-4).fit_chunks(data)
    assert model.duality_gap_ <= 1e-4
    assert loads == [1500]


def test_time_limit(far_away):
    data = ChunkedData.from_arrays(*far_away, chunk_rows=400)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = SPOPlusRegressor(Simplex(), solver="interior-point", tol=1e-9, time_limit=0.15).fit_chunks(data)
    local = SPOPlusRegressor(Simplex(), tol=1e-6, solver="interior-point").fit(*far_away)
    assert model.lower_bound_ <= local.objective_ <= model.objective_ * (1 + 1e-6)


def test_rows_that_do_not_fit_are_not_loaded(paths, monkeypatch):
    X, C = paths
    region = check_region(ShortestPath.grid(3, 3), 12)
    data = ChunkedData.from_arrays(X, C, chunk_rows=50)
    with LocalRows(data) as rows:
        objective = ChunkedObjective(SPOPlusLoss(region), rows)
        assert {"interior-point", "bundle"} <= set(choose_solvers(objective))
        whole = objective.loaded()
        arrays = (whole.design.Z, whole.weight, whole.C, whole.W)
        assert sum(array.nbytes for array in arrays) <= objective.bytes_to_load
        assert InMemoryObjective(SPOPlusLoss(region), X, C).bytes_to_load == 0.0
        monkeypatch.setattr(ChunkedObjective, "bytes_to_load", 2.0 * auto.memory_of_machine())
        assert choose_solvers(objective) == ["bundle"]
    for solver in ("interior-point", "conic", "sgd"):
        with pytest.raises(ValueError, match=r"all rows in memory.* chunk by chunk: 'bundle'.* partial_fit per chunk"):
            SPOPlusRegressor(ShortestPath.grid(3, 3), solver=solver).fit_chunks(data)
    assert SPOPlusRegressor(ShortestPath.grid(3, 3)).fit_chunks(data).solver_ == "bundle"


def test_memory_of_a_container(monkeypatch):
    machine = auto.memory_of_machine.__wrapped__
    free = machine()
    for limit, expected in (("1000\n", 1000.0), ("max\n", free)):
        monkeypatch.setattr(Path, "read_text", lambda self, limit=limit: limit)
        assert machine() == expected
