"""Fits on a real cluster of two worker processes: same result, fixed traffic, and workers that die."""

import contextlib
import os
import pickle
import signal
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import noisy_data
from same import assert_same_fit
from sklearn.model_selection import GridSearchCV

from skspo import EntropySimplex, ShortestPath, Simplex, SPOPlusRegressor, TwoStageRegressor, make_spo_scorer
from skspo._training.chunked import ChunkedObjective
from skspo.datasets import make_portfolio, make_shortest_path
from skspo.losses import SPOPlusLoss
from skspo.regions.check import check_region

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from skspo._training.dask_rows import DaskRows  # noqa: E402

REGION = ShortestPath.grid(3, 3)
X, C = make_shortest_path(1200, grid=(3, 3), degree=4, noise=0.5, random_state=0)
NAMES, COSTS = [f"x{j}" for j in range(X.shape[1])], [f"c{j}" for j in range(C.shape[1])]


@contextlib.contextmanager
def new_client():
    """Two worker processes, each with a nanny that restarts it, and a client that knows their scheduler's address."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "10s", "distributed.nanny.pre-spawn-environ": {}}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster.scheduler_address, timeout=30) as client,
    ):
        yield client, cluster


@pytest.fixture(scope="module")
def client():
    with new_client() as (client, _):
        yield client


@pytest.fixture(scope="module")
def local():
    return SPOPlusRegressor(REGION).fit(X, C)


def lazy(*arrays, rows=300):
    return [da.from_array(array, chunks=(rows, -1) if array.ndim == 2 else rows) for array in arrays]


def test_fit_on_two_workers(client, local):
    model = SPOPlusRegressor(REGION).fit(*lazy(X, C))
    assert len(client.scheduler_info()["workers"]) == 2
    assert_same_fit(local, model)
    assert model.solver_ == "bundle"
    # Without a cluster dask's threads are used, in the same order.
    with dask.config.set(scheduler="threads"):
        assert_array_equal(SPOPlusRegressor(REGION).fit(*lazy(X, C)).coef_, model.coef_)


def test_solver_that_loads_rows(client, local):
    model = SPOPlusRegressor(REGION, solver="interior-point").fit(*lazy(X, C, rows=401))
    assert_same_fit(local, model)
    assert model.solver_ == "interior-point"


def test_rows_of_different_partitions_weights_and_offset(client):
    rng = np.random.default_rng(0)
    weight, offset = rng.integers(0, 3, size=1200).astype(float), 0.3 * rng.random(size=C.shape)
    local = SPOPlusRegressor(REGION, alpha=0.1, prior="least_squares").fit(X, C, weight, offset)
    lazy_X, lazy_C = da.from_array(X, chunks=(500, 2)), da.from_array(C, chunks=(350, 5))
    model = SPOPlusRegressor(REGION, alpha=0.1, prior="least_squares")
    model.fit(lazy_X, lazy_C, da.from_array(weight, chunks=100), offset)
    assert_same_fit(local, model)
    assert_allclose(
        model.score(lazy_X, lazy_C, weight, offset=offset), model.score(X, C, weight, offset=offset), rtol=1e-12
    )


def test_data_frames_with_empty_partitions(client, local):
    table = pd.concat([pd.DataFrame(X, columns=NAMES), pd.DataFrame(C, columns=COSTS)], axis=1)
    extra = table.assign(keep=1.0)
    extra.loc[300:599, "keep"] = 0.0
    frame = dd.from_pandas(extra, npartitions=4)
    kept = frame[frame.keep > 0]
    model = SPOPlusRegressor(REGION).fit(kept[NAMES], kept[COSTS])
    rows = np.r_[0:300, 600:1200]
    assert_same_fit(SPOPlusRegressor(REGION).fit(X[rows], C[rows]), model)
    assert list(model.feature_names_in_) == NAMES
    C_hat = model.predict(kept[NAMES])
    assert isinstance(C_hat, da.Array)
    assert_allclose(C_hat.compute(), model.predict(table[NAMES].iloc[rows]))
    assert_allclose(model.score(kept[NAMES], kept[COSTS]), model.score(table[NAMES].iloc[rows], C[rows]), rtol=1e-12)


def test_strongly_convex_region(client):
    X, C = make_portfolio(400, 4, 8, degree=4, random_state=0)
    local = SPOPlusRegressor(EntropySimplex(), solver="lbfgs").fit(X, C)
    model = SPOPlusRegressor(EntropySimplex()).fit(*lazy(X, C, rows=100))
    assert model.solver_ == "lbfgs"
    assert_same_fit(local, model)


def test_shared_model(client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5 * 3))
    C = X.reshape(200, 5, 3) @ [1.0, -2.0, 0.5] + rng.normal(size=(200, 5)) + 3.0
    local = SPOPlusRegressor(Simplex(), shared=True).fit(X, C)
    model = SPOPlusRegressor(Simplex(), shared=True).fit(*lazy(X, C, rows=60))
    assert_same_fit(local, model)
    assert_allclose(model.intercept_, local.intercept_, rtol=1e-4)
    assert_allclose(model.predict(lazy(X, rows=60)[0]).compute(), model.predict(X))


def test_prediction_is_lazy(client, local):
    calls = da.from_delayed(dask.delayed(pytest.fail)("computed"), shape=(10, X.shape[1]), dtype=float)
    for method, reference in (("predict", local.predict(X)), ("decide", local.decide(X))):
        result = getattr(local, method)(calls)
        assert isinstance(result, da.Array) and result.shape == (10, C.shape[1])
        with pytest.raises(BaseException, match="computed"):
            result.compute(scheduler="sync")
        result = getattr(local, method)(lazy(X)[0])
        assert result.chunks[0] == (300,) * 4
        assert_allclose(result.compute(), reference)
    assert_allclose(local.score(*lazy(X, C)), local.score(X, C), rtol=1e-12)
    with pytest.raises(ValueError, match="3 features"):
        local.predict(lazy(X[:, :3])[0])
    baseline = TwoStageRegressor(region=REGION).fit(X, C)
    assert_allclose(baseline.decide(lazy(X)[0]).compute(), baseline.decide(X))
    one = SPOPlusRegressor().fit(X, C[:, 0])
    lazy_one = SPOPlusRegressor().fit(*lazy(X, C[:, 0]))
    assert_same_fit(one, lazy_one)
    assert lazy_one.predict(lazy(X)[0]).shape == (1200,)
    assert_allclose(one.predict(lazy(X)[0]).compute(), one.predict(X))


class Traffic:
    """Bytes that arrive in this process, that is, at the scheduler and at the driver."""

    def __init__(self, monkeypatch):
        import distributed.comm.tcp as tcp

        self.bytes, original = 0, tcp.from_frames

        def count(frames, *args, **kwargs):
            self.bytes += sum(memoryview(frame).nbytes for frame in frames)
            return original(frames, *args, **kwargs)

        monkeypatch.setattr(tcp, "from_frames", count)


def test_bytes_per_pass_do_not_grow_with_rows(client, monkeypatch):
    traffic = Traffic(monkeypatch)
    region = check_region(REGION, C.shape[1])
    per_pass, sizes = {}, {}
    for n in (1_000, 16_000):
        many_X, many_C = make_shortest_path(n, grid=(3, 3), degree=4, noise=0.5, random_state=0)
        data = (*lazy(many_X, many_C, rows=n // 4), None, None, None)
        with DaskRows(SPOPlusRegressor(REGION), *data) as rows:
            objective = ChunkedObjective(SPOPlusLoss(region), rows)
            edges = np.linspace(0, n, 201).astype(int)
            passes, before = rows.n_passes, traffic.bytes
            for _ in range(10):
                result = objective.cuts(objective.least_squares, edges)
            assert rows.n_passes - passes == 10
            per_pass[n] = (traffic.bytes - before) / 10
            sizes[n] = len(pickle.dumps(result))
    # Loss, constants and slopes; the rest are dask's messages about tasks and workers.
    assert sizes[1_000] == sizes[16_000]
    assert per_pass[16_000] >= sizes[16_000]  # the result itself was counted
    assert per_pass[16_000] <= 1.25 * per_pass[1_000]
    assert per_pass[16_000] < 0.2 * many_C.nbytes


def kill_worker_at(monkeypatch, client, number):
    """SIGKILL one of the workers just before some pass: its parts are lost, which is not yet known."""
    original, killed = DaskRows.reduce, []

    def reduce(self, task, *args, **every):
        if self.n_passes == number and not killed:
            pid = next(iter(client.run(os.getpid).values()))
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)
        return original(self, task, *args, **every)

    monkeypatch.setattr(DaskRows, "reduce", reduce)
    return killed


def fit_without(monkeypatch, number, remove):
    """Fit while ``remove`` removes the cluster before some pass; return the error and the time until it is raised."""
    original, began = DaskRows.reduce, []

    def reduce(self, task, *args, **every):
        if self.n_passes == number and not began:
            began.append(time.monotonic())
            remove()
        return original(self, task, *args, **every)

    monkeypatch.setattr(DaskRows, "reduce", reduce)
    with dask.config.set({"skspo.no-workers-timeout": 2.0}), pytest.raises(RuntimeError) as error:
        SPOPlusRegressor(REGION).fit(*lazy(X, C))
    return str(error.value), time.monotonic() - began[0]


@pytest.mark.slow
def test_a_cluster_that_fails():
    """One cluster for all, because its processes take much longer to start than the fits."""
    with new_client() as (client, cluster):
        undisturbed = SPOPlusRegressor(REGION).fit(*lazy(X, C))
        # A worker is killed in the middle of a fit.
        with pytest.MonkeyPatch.context() as patch:
            killed = kill_worker_at(patch, client, 6)
            model = SPOPlusRegressor(REGION).fit(*lazy(X, C))
        assert len(killed) == 1
        client.wait_for_workers(2, timeout=60)
        assert killed[0] not in client.run(os.getpid).values()  # it is dead, and its nanny started another
        assert_array_equal(model.coef_, undisturbed.coef_)
        assert model.objective_ == undisturbed.objective_
        assert model.duality_gap_ <= 1e-6
        # All workers are gone.
        with pytest.MonkeyPatch.context() as patch:
            message, seconds = fit_without(patch, 5, lambda: cluster.scale(0))
        assert "has had no workers for 2 seconds" in message
        assert "no-workers-timeout" in message
        assert seconds < 60
        # The next fit works as soon as there are workers.
        cluster.scale(1)
        client.wait_for_workers(1, timeout=60)
        assert SPOPlusRegressor(REGION).fit(*lazy(X, C)).duality_gap_ <= 1e-6
        # The scheduler is gone.
        with pytest.MonkeyPatch.context() as patch:
            message, seconds = fit_without(patch, 5, cluster.close)
    assert "cannot be reached any more" in message
    assert seconds < 90


def test_grid_search_on_the_workers(client):
    search = GridSearchCV(
        SPOPlusRegressor(REGION, prior="least_squares"), {"alpha": [0.1, 1.0]}, scoring=make_spo_scorer(REGION), cv=2
    )
    here = search.fit(X[:120], C[:120]).cv_results_["mean_test_score"]
    with joblib.parallel_backend("dask"):
        there = search.fit(X[:120], C[:120]).cv_results_["mean_test_score"]
    assert_allclose(there, here, rtol=1e-9)


def test_bad_input(client):
    lazy_X, lazy_C = lazy(X, C)
    model = SPOPlusRegressor(REGION)
    with pytest.raises(TypeError, match="must both be dask collections"):
        model.fit(lazy_X, C)
    with pytest.raises(ValueError, match="the same number of rows"):
        model.fit(lazy_X, lazy_C[:700])
    with pytest.raises(ValueError, match="cannot combine region_params with dask"):
        model.fit(lazy_X, lazy_C, region_params={"capacity": np.ones(1200)})
    with pytest.raises(ValueError, match="X contains NaN"):
        model.fit(da.where(lazy_X > 1.0, np.nan, lazy_X), lazy_C)
    with pytest.raises(ValueError, match="12 decision variables"):
        model.fit(lazy_X, lazy_C[:, :5].rechunk((300, -1)))
    assert not hasattr(model, "coef_")


def test_dask_scores_with_weights_and_offset():
    da = pytest.importorskip("dask.array")
    X, C = noisy_data(30)
    rng = np.random.default_rng(0)
    weight, offset = rng.uniform(0.1, 3.0, size=30), rng.normal(size=C.shape)
    model = SPOPlusRegressor(Simplex()).fit(X, C, offset=offset)
    lazy = [da.from_array(array, chunks=(7, *array.shape[1:])) for array in (X, C, weight, offset)]
    score = model.score(lazy[0], lazy[1], sample_weight=lazy[2], offset=lazy[3])
    assert score == pytest.approx(model.score(X, C, sample_weight=weight, offset=offset), rel=1e-12)
    assert score != pytest.approx(model.score(X, C, offset=offset), rel=1e-3)
    assert score != pytest.approx(model.score(X, C, sample_weight=weight), rel=1e-3)
