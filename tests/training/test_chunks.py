"""Fits to data in chunks equal those to data in memory, and need no more memory than a few chunks."""

import os
import subprocess
import sys
import textwrap
from itertools import chain, repeat

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import noisy_data, spo_plus_objective
from same import assert_same_fit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import skspo._training.chunked
import skspo.data.chunks
from skspo import (
    Box,
    ChunkedData,
    CvxpyRegion,
    EntropySimplex,
    Knapsack,
    LogBarrierSimplex,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
)
from skspo._training.chunked import ChunkedObjective, part_result
from skspo._training.in_memory import InMemoryObjective
from skspo._training.rows import LocalRows
from skspo.datasets import make_cost_sensitive_classification, make_knapsack, make_portfolio, make_shortest_path
from skspo.losses import SPOPlusLoss
from skspo.regions.check import check_region
from skspo.solvers import BundleSolver


@pytest.fixture(scope="module")
def paths():
    return make_shortest_path(600, grid=(3, 3), degree=4, noise=0.5, random_state=0)


PENALTIES = {
    "none": {},
    "ridge": {"alpha": 0.1},
    "lasso": {"alpha": 0.05, "l1_ratio": 1.0},
    "elastic-net": {"alpha": 0.1, "l1_ratio": 0.5},
    "least-squares": {"alpha": 0.1, "prior": "least_squares"},
    "no-intercept": {"fit_intercept": False},
}


@pytest.mark.parametrize("params", PENALTIES.values(), ids=PENALTIES)
def test_polyhedron_equals_local_fit(paths, params):
    X, C = paths
    local = SPOPlusRegressor(ShortestPath.grid(3, 3), **params).fit(X, C)
    for solver in ("bundle", "auto"):  # bundle reads the chunks where they are
        chunked = SPOPlusRegressor(ShortestPath.grid(3, 3), solver=solver, **params)
        chunked.fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=170))
        assert_same_fit(local, chunked)
        assert_allclose(chunked.score(X, C), local.score(X, C), atol=0.01)


@pytest.mark.parametrize("region", [EntropySimplex(), LogBarrierSimplex()], ids=lambda region: region.label)
@pytest.mark.parametrize("params", [PENALTIES[name] for name in ("none", "elastic-net", "least-squares")])
def test_strongly_convex_equals_local_fit(region, params):
    X, C = make_portfolio(300, 4, 8, degree=4, random_state=0)
    local = SPOPlusRegressor(region, **params).fit(X, C)
    chunked = SPOPlusRegressor(region, **params).fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=90))
    assert_same_fit(local, chunked)
    if local.solver_ == "lbfgs":
        assert chunked.solver_ == "lbfgs"


def test_maximization_weights_and_offset():
    X, C, weights = make_knapsack(200, 3, 6, random_state=0, return_weights=True)
    rng = np.random.default_rng(0)
    importance, offset = rng.integers(0, 4, size=200).astype(float), rng.normal(size=C.shape)
    region = Knapsack(weights, 0.5 * float(np.sum(weights)), integer=False)
    importance[:40] = 0.0  # a whole chunk without weight
    local = SPOPlusRegressor(region).fit(X, C, importance, offset)
    chunked = SPOPlusRegressor(region).fit_chunks(ChunkedData.from_arrays(X, C, importance, offset, chunk_rows=40))
    assert_same_fit(local, chunked)
    assert_allclose(
        chunked.score(X, C, importance, offset=offset), local.score(X, C, importance, offset=offset), atol=0.01
    )
    same = ChunkedData.from_arrays(X, C, offset=offset[0], chunk_rows=40)
    assert_same_fit(SPOPlusRegressor(region).fit(X, C, offset=offset[0]), SPOPlusRegressor(region).fit_chunks(same))


def test_shared_model_with_hidden_intercept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5 * 3)) + 7.0
    C = X.reshape(200, 5, 3) @ [1.0, -2.0, 0.5] + rng.normal(size=(200, 5)) + 3.0
    local = SPOPlusRegressor(Simplex(), shared=True).fit(X, C)
    chunked = SPOPlusRegressor(Simplex(), shared=True).fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=60))
    assert_same_fit(local, chunked)
    # On the simplex the intercept changes no decision: it is set by least squares, from all rows.
    assert_allclose(chunked.intercept_, local.intercept_, rtol=1e-4)


@pytest.mark.parametrize("center", [0.0, 1e3])
@pytest.mark.parametrize("prior", ["zero", "least_squares"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coordinates_are_those_of_local_data(center, prior, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) * [1.0, 1e-2, 1e2, 0.0] + center
    C = rng.normal(size=(500, 3)) + X[:, :1]
    region = check_region(Simplex(), 3)
    params = {"prior": prior, "fit_intercept": fit_intercept, "alpha": 0.1}
    local = InMemoryObjective(SPOPlusLoss(region), X, C, **params)
    with LocalRows(ChunkedData.from_arrays(X, C, chunk_rows=130)) as rows:
        chunked = ChunkedObjective(SPOPlusLoss(region), rows, **params)
        assert_allclose(chunked.cost_scale, local.cost_scale, rtol=1e-12)
        assert_array_equal(chunked.design.used, local.design.used)
        assert_allclose(chunked.design.mean, local.design.mean, rtol=1e-12)
        assert_allclose(chunked.design.scale, local.design.scale, rtol=1e-9)
        assert_allclose(chunked.trivial_value(), local.trivial_value(), rtol=1e-12)
        # Predictions, not coefficients, which have few correct digits for a column around 1e3 with a deviation of 1e-2.
        assert_allclose(
            local.design.predict(chunked.least_squares), local.design.predict(local.least_squares), atol=1e-5
        )
        Theta = local.least_squares + rng.normal(size=local.shape)
        assert_allclose(chunked.value(Theta), local.value(Theta), rtol=1e-9)
        value, G = chunked.value_gradient(Theta)
        assert_allclose(value, local.value(Theta), rtol=1e-9)
        assert_allclose(G, local.value_gradient(Theta)[1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("chunk_rows", [1, 7, 64, 1000])
def test_cuts_of_groups_do_not_depend_on_chunks(paths, chunk_rows):
    X, C = paths[0][:100], paths[1][:100]
    region = check_region(ShortestPath.grid(3, 3), C.shape[1])
    edges = np.array([0, 10, 25, 26, 70, 100])

    def cuts(chunk_rows):
        with LocalRows(ChunkedData.from_arrays(X, C, chunk_rows=chunk_rows)) as rows:
            objective = ChunkedObjective(SPOPlusLoss(region), rows)
            return objective.cuts(objective.least_squares, edges)

    for mine, whole in zip(cuts(chunk_rows), cuts(100), strict=True):
        assert_allclose(mine, whole, atol=1e-12)


def test_a_sample_has_equally_spaced_rows(monkeypatch):
    """Value, cuts and rows of a sample that stays in chunks are those of the same rows in memory."""
    monkeypatch.setattr(skspo._training.objective, "MANY_SAMPLES", 30)
    monkeypatch.setattr(skspo._training.objective, "ENOUGH_SAMPLES", 4)
    X, C = make_shortest_path(300, grid=(3, 3), degree=4, noise=0.5, random_state=0)
    weight = np.random.default_rng(0).uniform(size=300)
    offset = np.random.default_rng(1).normal(size=C.shape)
    region = check_region(ShortestPath.grid(3, 3), C.shape[1])
    data = ChunkedData.from_arrays(X, C, weight, offset, chunk_rows=5)  # some have no row of the sample
    edges = np.array([0, 3, 20, 38])
    with LocalRows(data) as rows:
        whole = ChunkedObjective(SPOPlusLoss(region), rows)
        Theta = np.random.default_rng(2).normal(size=whole.shape)
        local = whole.sampled()
        monkeypatch.setattr(skspo._training.chunked, "SAMPLE_ELEMENTS", 10)
        sample = whole.sampled()
        smaller = sample.sampled()
        truth = whole._template.with_rows(X[::8], C[::8], weight[::8] / weight[::8].sum(), offset[::8])
        assert local.in_memory and not sample.in_memory
        assert sample.n_samples == local.n_samples == truth.n_samples == 38
        last = whole._template.with_rows(X[::64], C[::64], weight[::64] / weight[::64].sum(), offset[::64])
        assert smaller.n_samples == 5
        assert_allclose(smaller.value(Theta), last.value(Theta))
        assert_allclose(local.C, truth.C)
        assert_allclose([sample.value(Theta), local.value(Theta)], truth.value(Theta))
        assert_allclose([sample.trivial_value(), local.trivial_value()], truth.trivial_value())
        for mine, its in zip(sample.cuts(Theta, edges), truth.cuts(Theta, edges), strict=True):
            assert_allclose(mine, its, atol=1e-12)


def test_start_from_a_sample(monkeypatch):
    X, C = make_shortest_path(3000, grid=(3, 3), degree=6, noise=0.5, random_state=0)
    data = ChunkedData.from_arrays(X, C, chunk_rows=500)
    region = ShortestPath.grid(3, 3)
    plain = SPOPlusRegressor(region).fit_chunks(data)
    # The sample is in memory; or it is not, and has a sample itself.
    for enough, elements, share in ((1000, 2**22, 0.2), (150, 12_000, 0.5)):
        monkeypatch.setattr(skspo._training.objective, "MANY_SAMPLES", 2 * enough)
        monkeypatch.setattr(skspo._training.objective, "ENOUGH_SAMPLES", enough)
        monkeypatch.setattr(skspo._training.chunked, "SAMPLE_ELEMENTS", elements)
        started = SPOPlusRegressor(region).fit_chunks(data)
        assert_same_fit(plain, started)
        first = share * plain.history_["objective"][0] + (1 - share) * plain.objective_
        assert started.history_["step"][0].startswith("sample of") and started.history_["objective"][1] < first
    again = SPOPlusRegressor(region, warm_start=True).fit_chunks(data)
    again.fit_chunks(data)
    assert again.history_["objective"][0] <= again.objective_ * (1 + 1e-6)


def test_every_kind_of_source(paths, tmp_path):
    X, C = paths
    region = ShortestPath.grid(3, 3)
    model = SPOPlusRegressor(region, alpha=0.1, prior="least_squares")
    reference = model.fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=250)).coef_
    names, costs = [f"x{j}" for j in range(X.shape[1])], [f"c{j}" for j in range(C.shape[1])]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", C)
    table = pd.concat([pd.DataFrame(X, columns=names), pd.DataFrame(C, columns=costs)], axis=1)
    table.iloc[:250].to_parquet(tmp_path / "part-0.parquet")
    table.iloc[250:].assign(more=1.0).to_parquet(tmp_path / "part-1.parquet")
    sources = {
        "function": lambda: ((X[k : k + 250], C[k : k + 250]) for k in (0, 250, 500)),
        "list": [(X[k : k + 250], C[k : k + 250], np.ones(len(C[k : k + 250]))) for k in (0, 250, 500)],
        "empty chunks": [(X[:0], C[:0]), *((X[k : k + 250], C[k : k + 250]) for k in (0, 250, 500))],
        "npy": ChunkedData.from_npy(tmp_path / "X.npy", tmp_path / "y.npy", chunk_rows=250),
    }
    for name, source in sources.items():
        assert_array_equal(model.fit_chunks(source).coef_, reference, err_msg=name)
    parquet = ChunkedData.from_parquet(
        [tmp_path / "part-0.parquet", tmp_path / "part-1.parquet"], names, costs, chunk_rows=250
    )
    model.fit_chunks(parquet)
    assert_array_equal(model.coef_, reference)
    assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match=r"no columns \['price'\]"):
        ChunkedData.from_parquet(tmp_path / "part-0.parquet", names, ["price"])


def test_large_memory_maps_are_read_in_chunks(paths, tmp_path, monkeypatch):
    X, C = paths
    for name, array in (("X", X), ("y", C)):
        np.save(tmp_path / f"{name}.npy", array)
    X_map, C_map = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "y"))
    region = ShortestPath.grid(3, 3)
    small = SPOPlusRegressor(region).fit(X_map, C_map)
    monkeypatch.setattr(skspo.data.chunks, "IN_MEMORY_LIMIT", 0)
    passes, count = [], ChunkedObjective._sum
    monkeypatch.setattr(ChunkedObjective, "_sum", lambda *args: passes.append(1) or count(*args))
    large = SPOPlusRegressor(region, solver="bundle").fit(X_map, C_map)  # others need all rows in memory
    assert len(passes) >= large.n_iter_
    assert_same_fit(small, large)
    # Another solver is used if it is requested.
    assert SPOPlusRegressor(region, solver="interior-point").fit(X_map, C_map).solver_ == "interior-point"


def fit_chunks(source, region=None, **params):
    return SPOPlusRegressor(region, **params).fit_chunks(source)


X5, C5 = np.arange(10.0).reshape(5, 2), np.arange(15.0).reshape(5, 3)
ONE = (X5, C5)
BAD = {
    "iterator": (lambda: fit_chunks(iter([ONE])), TypeError, r"fit_chunks\(read\) instead of fit_chunks\(read\(\)\)"),
    "number": (lambda: fit_chunks(5), TypeError, "must be a function that returns an iterable"),
    "array": (lambda: fit_chunks([X5]), TypeError, r"A chunk must be a tuple \(X, y\)"),
    "nothing": (lambda: fit_chunks([]), ValueError, "There are no rows in the chunks"),
    "no rows": (lambda: fit_chunks([(X5[:0], C5[:0])]), ValueError, "There are no rows in the chunks"),
    "nan": (lambda: fit_chunks([ONE, (np.full_like(X5, np.nan), C5)]), ValueError, "X contains NaN"),
    "lengths": (lambda: fit_chunks([ONE, (X5[:3], C5)]), ValueError, "inconsistent numbers of samples"),
    "features": (lambda: fit_chunks([ONE, (X5[:, :1], C5)]), ValueError, "All chunks must have the same columns"),
    "costs": (lambda: fit_chunks([ONE, (X5, C5[:, :1])]), ValueError, "All chunks must have the same columns"),
    "names": (
        lambda: fit_chunks([(pd.DataFrame(X5, columns=["a", "b"]), C5), (pd.DataFrame(X5, columns=["b", "a"]), C5)]),
        ValueError,
        "All chunks must have the same columns",
    ),
    "offset": (lambda: fit_chunks([(X5, C5, None, C5), ONE]), ValueError, "Either all chunks have an offset"),
    "weights": (lambda: fit_chunks([(X5, C5, np.zeros(5))]), ValueError, "sample_weight is zero for every sample"),
    "negative": (lambda: fit_chunks([(X5, C5, -np.ones(5))]), ValueError, "Negative values"),
    "chunk_rows": (lambda: ChunkedData.from_arrays(X5, C5, chunk_rows=0), ValueError, "chunk_rows must be None or"),
}


@pytest.mark.parametrize(("call", "error", "message"), BAD.values(), ids=BAD)
@pytest.mark.filterwarnings("ignore:No region was given")
def test_bad_chunks(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_source_that_changes_between_passes(paths):
    X, C = paths
    lengths = chain([600] * 6, repeat(500))

    def read():
        n = next(lengths)
        yield X[:n], C[:n]

    with pytest.raises(ValueError, match="other numbers of rows when they were read again"):
        SPOPlusRegressor(ShortestPath.grid(3, 3)).fit_chunks(read)


def test_temporary_files_are_removed(paths, tmp_path, monkeypatch):
    X, C = paths
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    present = []

    class Spy(BundleSolver):
        def solve(self, objective, run, start=None):
            file = objective._rows._scratch
            present.append(os.fstat(file.fileno()).st_size)
            # It has no name, so that nothing is left even if the process is killed.
            assert not list(tmp_path.iterdir())
            return super().solve(objective, run, start)

    SPOPlusRegressor(ShortestPath.grid(3, 3), solver=Spy()).fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=200))
    assert present == [C.size]  # one byte for each binary decision
    assert not list(tmp_path.iterdir())


def test_unfinished_fit_warns_where_the_user_called(paths):
    X, C = paths
    with pytest.warns(ConvergenceWarning, match="max_iter=2 passes") as record:
        SPOPlusRegressor(ShortestPath.grid(3, 3), solver="bundle", max_iter=2).fit_chunks(ChunkedData.from_arrays(X, C))
    assert record[0].filename == __file__


def test_streaming_chunks_with_partial_fit(paths):
    X, C = paths
    model = SPOPlusRegressor(ShortestPath.grid(3, 3), random_state=0)
    data = ChunkedData.from_arrays(X, C, chunk_rows=200)
    for _ in range(20):
        for chunk in data:
            model.partial_fit(chunk.X, chunk.y)
    exact = SPOPlusRegressor(ShortestPath.grid(3, 3)).fit_chunks(data)
    region = check_region(ShortestPath.grid(3, 3), C.shape[1])
    objective = InMemoryObjective(SPOPlusLoss(region), X, C)
    value = objective.value(objective.from_user(model.coef_, model.intercept_)) * objective.scale
    assert exact.objective_ <= value * (1 + 1e-6)
    assert value <= 1.05 * exact.objective_


def sorted_box(w):
    import cvxpy as cp

    return [cp.norm(w, 2) <= 1, w >= -0.5]


@pytest.mark.slow
@pytest.mark.parametrize(
    "region",
    [
        Polyhedron(A_ub=[[1.0, 2.0, 1.0]], b_ub=[2.0], bounds=(0, 1)),
        CvxpyRegion(sorted_box, 3),
    ],
    ids=lambda region: region.label,
)
def test_n_jobs_changes_no_chunked_fit(region):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    C = X @ rng.normal(size=(2, 3)) + 0.3 * rng.normal(size=(20, 3))
    data = ChunkedData.from_arrays(X, C, chunk_rows=9)
    model = SPOPlusRegressor(region, alpha=0.1, solver="bundle", tol=1e-4)
    fits = [clone(model).set_params(n_jobs=jobs).fit_chunks(data) for jobs in (1, 2)]
    for fit in fits[1:]:
        assert_array_equal(fit.coef_, fits[0].coef_)
        assert_array_equal(fit.decide(X), fits[0].decide(X))


def test_one_cost(paths):
    X, y = paths[0], paths[1][:, 0] - paths[1][:, 0].mean()
    local = SPOPlusRegressor(Box()).fit(X, y)
    chunked = SPOPlusRegressor(Box()).fit_chunks(ChunkedData.from_arrays(X, y, chunk_rows=200))
    assert_same_fit(local, chunked)
    assert chunked.predict(X).shape == y.shape


#: fits memory-mapped arrays of 38 MB, with a limit on the memory beyond that after the imports
LIMITED = """
    import resource, sys
    import numpy as np
    from skspo import ChunkedData, Simplex, SPOPlusRegressor
    import skspo.data.chunks

    folder, how, room = sys.argv[1], sys.argv[2], int(sys.argv[3])
    X, C = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in ("X", "y"))
    model = SPOPlusRegressor(Simplex(), alpha=1e-2, prior="least_squares")
    model.fit(X[:200], C[:200])  # whatever is loaded on first use
    if how == "chunked":
        skspo.data.chunks.IN_MEMORY_LIMIT = 0
    used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (1024 * used + room * 2**20,) * 2)
    try:
        model.fit(X, C)
    except MemoryError:
        print("MemoryError")
    else:
        print(model.solver_, model.duality_gap_ <= 1e-6)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA counts private memory on Linux only")
def test_memory_limit(tmp_path):
    X, C = make_cost_sensitive_classification(320_000, degree=2, noise=0.5, random_state=0)
    for name, array in (("X", X), ("y", C)):
        np.save(tmp_path / f"{name}.npy", array)
    assert X.nbytes + C.nbytes > 36 * 2**20

    def run(how, room):
        command = [sys.executable, "-c", textwrap.dedent(LIMITED), str(tmp_path), how, str(room)]
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env).stdout.split()

    assert run("chunked", 100) == ["bundle", "True"]
    assert run("in memory", 100) == ["MemoryError"]


def chunked_objective(X, C, chunk_rows, region, weight=None):
    rows = LocalRows(ChunkedData.from_arrays(X, C, weight, chunk_rows=chunk_rows))
    return rows, ChunkedObjective(SPOPlusLoss(region), rows)


def test_sample_of_rows_does_not_depend_on_chunks(monkeypatch):
    monkeypatch.setattr(skspo._training.objective, "MANY_SAMPLES", 50)
    monkeypatch.setattr(skspo._training.objective, "ENOUGH_SAMPLES", 10)
    X, C = make_cost_sensitive_classification(103, random_state=0)
    samples = []
    for chunk_rows in (200, 13, 10):
        rows, objective = chunked_objective(X, C, chunk_rows, Simplex())
        with rows:
            samples.append(objective.sampled())
    assert samples[0].n_samples == 13  # every eighth of 103
    for sample in samples[1:]:
        assert_allclose(sample.C, samples[0].C, atol=1e-12)
        assert_allclose(sample.design.Z, samples[0].design.Z, atol=1e-12)


def test_parts_do_not_keep_oracle_results():
    X, C = make_portfolio(20, 3, 4, degree=2, random_state=0)
    part = spo_plus_objective(X, C, EntropySimplex())
    before = set(vars(part))
    part_result(part, 0, "loss_gradient", part.least_squares)
    assert set(vars(part)) == before
    memory = {}
    part.loss_gradient(part.least_squares, memory)
    assert memory


def test_a_chunk_with_zero_weight():
    X, C = noisy_data(30)
    weight = np.repeat([1.0, 0.0, 2.0], 10)
    chunks = ChunkedData.from_arrays(X, C, weight, chunk_rows=10)
    model = SPOPlusRegressor(Simplex(), alpha=0.1).fit_chunks(chunks)
    local = SPOPlusRegressor(Simplex(), alpha=0.1).fit(X, C, sample_weight=weight)
    assert model.objective_ == pytest.approx(local.objective_, rel=1e-5)


def test_coordinates_of_a_shared_model_in_chunks():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(20, 6)), rng.normal(size=(20, 3))
    local = spo_plus_objective(X, C, shared=True)
    rows = LocalRows(ChunkedData.from_arrays(X, C, chunk_rows=7))
    with rows:
        found = ChunkedObjective(SPOPlusLoss(Simplex()), rows, shared=True)
    assert_allclose(found.design.scale, local.design.scale, rtol=1e-12)
    assert found.cost_scale == pytest.approx(local.cost_scale, rel=1e-12)
