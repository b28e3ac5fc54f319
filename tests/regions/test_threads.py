"""Decisions by several threads: the same bit for bit, with the deadline, the names of rows and the warm starts."""

import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import effective_n_jobs
from numpy.testing import assert_array_equal
from sklearn.base import clone

import skspo as sk
from skspo._utils import threads as pool
from skspo._utils.deadline import Deadline, TimeIsUp, check_time
from skspo._utils.errors import InfeasibleRegionError
from skspo.datasets import make_portfolio, make_shortest_path
from skspo.estimators import _folds
from skspo.estimators._folds import Fold
from skspo.regions import _threads
from skspo.regions._row_names import row_error
from skspo.regions.base import Region
from skspo.regions.integer import _RowKnapsack
from skspo.regions.level_sets import _SimplexLevelSet

RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(1, 6, size=(2, 12))

#: regions that use threads, and their number of costs
THREADED = {
    "simplex": (sk.Simplex(), 10),
    "top 3": (sk.TopK(3, sense="max"), 20),
    "entropy": (sk.EntropySimplex(), 50),
    "entropy, loose": (sk.EntropySimplex(-0.1), 7),
    "log barrier": (sk.LogBarrierSimplex(), 20),
    "knapsack": (sk.Knapsack(WEIGHTS[0], 9), 12),
    "two knapsacks": (sk.Knapsack(WEIGHTS, [9, 14], sense="min"), 12),
    "fractional knapsack": (sk.Knapsack(WEIGHTS[0], 9, integer=False), 12),
}

#: regions that do not
OTHERS = {
    "path": (sk.ShortestPath.grid(3, 3), 12),
    "cycles": (sk.ShortestPath([("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")], "a", "c"), 4),
    "polyhedron": (sk.Polyhedron([[1.0, 1.0]], [1.0], bounds=(0, 1)), 2),
    "knapsack, HiGHS": (sk.Knapsack(WEIGHTS[0] + 0.5, 9.3), 12),
    "ellipsoid": (sk.Ellipsoid(np.diag([1.0, 2.0])), 2),
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Threads for a few rows."""
    for kind in (sk.Simplex, sk.TopK, sk.Knapsack, _RowKnapsack, _SimplexLevelSet, Costly):
        original = kind._thread_numbers

        def few(self, d, original=original):
            return None if original(self, d) is None else 4

        monkeypatch.setattr(kind, "_thread_numbers", few)


@pytest.fixture
def blocks(monkeypatch):
    """How many blocks each call of an oracle with threads had."""
    counts = []

    def noted(tasks):
        counts.append(len(tasks))
        pool.run_together(tasks)

    monkeypatch.setattr(_threads, "run_together", noted)
    return counts


def costs(n, d, seed=0):
    """Costs of which some rows are constant, tied, zero, tiny or huge."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(n, d))
    C[::7] = np.round(C[::7])
    C[::11] = 1.5
    C[::13] = 0.0
    C[::17] *= 1e-12
    C[::19] *= 1e12
    return C


class Costly(Region):
    """The cheapest of the alternatives; rows whose first cost is 99 have none."""

    def _thread_numbers(self, d):
        return 100

    def _argmin(self, C, data):
        bad = np.flatnonzero(C[:, 0] == 99.0)
        if bad.size:
            raise row_error(InfeasibleRegionError, int(bad[0]), "The region of {row} is empty.")
        check_time()
        return np.eye(C.shape[1])[C.argmin(axis=1)]


# -- decisions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", THREADED)
@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_decisions_are_the_same(small_blocks, name, n_threads):
    region, d = THREADED[name]
    for n in (1, 2, 3, 50, 1001):
        C = costs(n, d)
        assert_array_equal(region.with_threads(n_threads).argmin(C), region.argmin(C))


@pytest.mark.parametrize("name", THREADED)
def test_decisions_of_large_blocks_are_the_same(name):
    """Blocks as they are without the fixture."""
    region, d = THREADED[name]
    C = costs(5 * region._thread_numbers(d) // d, d)
    assert_array_equal(region.with_threads(5).argmin(C), region.argmin(C))


@pytest.mark.parametrize("name", ["entropy", "entropy, loose", "log barrier"])
def test_warm_starts_are_the_same(small_blocks, name):
    """Also if the number of threads changes between two calls."""
    region, d = THREADED[name]
    C, step = costs(200, d), 0.01 * costs(200, d, seed=1)
    one, several = {}, {}
    for k, n_threads in enumerate((2, 3, 1, 5)):
        W = region.with_threads(n_threads).solve_min(C + k * step, several)
        assert_array_equal(W, region.solve_min(C + k * step, one))
        assert several.keys() == one.keys()
        assert several["root"].shape == (200,)
        assert_array_equal(several["root"], one["root"])


@pytest.mark.parametrize("name", THREADED)
def test_number_of_blocks(blocks, name):
    """As many as there are threads, if each has enough rows."""
    region, d = THREADED[name]
    rows = -(-region._thread_numbers(d) // d)
    for n, n_threads in ((3 * rows, 1), (2 * rows - 2, 2), (2 * rows, 2), (3 * rows, 9)):
        region.with_threads(n_threads).argmin(np.ones((n, d)))
    assert blocks == [2, 3]


def test_blocks_run_in_different_threads():
    """Each waits for the other."""
    meeting, names = threading.Barrier(2), []

    def task():
        names.append(threading.current_thread().name)
        meeting.wait(10)

    pool.run_together([task, task])
    assert sorted(name.startswith("skspo") for name in names) == [False, True]
    assert threading.current_thread().name in names


@pytest.mark.parametrize("name", OTHERS)
def test_other_regions_are_left_alone(small_blocks, blocks, name):
    region, d = OTHERS[name]
    C = RNG.normal(size=(40, d))
    assert_array_equal(region.with_threads(4).argmin(C), region.argmin(C))
    assert blocks == []


def test_one_region_for_every_number_of_threads():
    """Views share what was prepared, and the region itself is not changed."""
    region = sk.TopK(3)
    view = region.with_threads(3)
    assert (view._n_threads, region._n_threads) == (3, 1)
    assert view._data(40) is region._data(40)
    assert view.take(slice(0, 5))._n_threads == 3
    assert view.with_threads(1)._n_threads == 1
    assert view.with_threads(3) is view
    for other in (clone(view), pickle.loads(pickle.dumps(view))):
        assert other._n_threads == 1
        assert_array_equal(other.argmin(np.ones(40)), region.argmin(np.ones(40)))


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("region", "capacity"),
    [
        (sk.Knapsack(WEIGHTS[0], 9), RNG.integers(0, 40, size=101)),
        (sk.Knapsack(WEIGHTS, [9, 14]), RNG.integers(0, 40, size=(101, 2))),
        (sk.Knapsack(WEIGHTS[0], 9, integer=False), RNG.uniform(0, 40, size=101)),
    ],
    ids=["whole", "two resources", "fractional"],
)
def test_parameters_of_each_row(small_blocks, blocks, region, capacity):
    """Ties included; each row is compared with its own region."""
    C = RNG.integers(-3, 8, size=(101, 12)) + RNG.choice([0.0, 0.25], size=(101, 12))
    capacity[40:70] = 40  # nothing is binding in the whole second block of four
    view = region.with_rows({"capacity": capacity}, 101, 12)
    expected = view.argmin(C)
    for row in range(0, 101, 10):
        alone = clone(region).set_params(capacity=capacity[row])
        assert_array_equal(alone.argmin(C[row]), expected[row])
    some = RNG.permutation(101)[:60]
    for n_threads in (2, 4):
        several = view.with_threads(n_threads)
        assert_array_equal(several.argmin(C), expected)
        assert_array_equal(several.take(some).argmin(C[some]), expected[some])
    assert blocks == [2, 2, 4, 4]
    with pytest.raises(ValueError, match="100 rows of costs, but region_params has 101"):
        several.argmin(C[:100])


def test_errors_name_the_row(small_blocks):
    """The first of several, in the numbers of the user's data."""
    C = np.random.default_rng(0).normal(size=(60, 5))
    C[[23, 41, 59], 0] = 99.0
    for n_threads in (1, 2, 3):
        region = Costly().with_threads(n_threads)
        with pytest.raises(InfeasibleRegionError, match=r"^The region of row 23 is empty"):
            region.argmin(C)
        with pytest.raises(InfeasibleRegionError, match=r"^The region of row 1023 is empty"):
            region.numbered(range(1000, 1060)).solve_min(C)
        with pytest.raises(InfeasibleRegionError, match=r"^The region of row 41 is empty"):
            region.take(np.arange(30, 60)).solve_min(C[30:])


# -- threads -----------------------------------------------------------------------------------------------------------


def test_the_deadline_is_carried(small_blocks):
    C = np.ones((20, 5))
    deadline = Deadline(1e-9)
    with deadline.enforced(), pytest.raises(TimeIsUp):
        Costly().with_threads(2).solve_min(C)
    assert deadline.reached

    def other():
        check_time()

    late = Deadline(1e-9)
    with late.enforced(), pytest.raises(TimeIsUp):
        pool.run_together([lambda: None, other])
    pool.run_together([lambda: None, other])  # the thread has no deadline left over


def test_floating_point_errors_are_handled_as_by_the_caller():
    def divide():
        np.array([1.0]) / np.array([0.0])

    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        pool.run_together([lambda: None, divide])
    with np.errstate(divide="ignore"):
        pool.run_together([lambda: None, divide])


def test_all_tasks_end_before_an_error_is_raised():
    ended = []

    def fails():
        raise KeyboardInterrupt

    def slow():
        time.sleep(0.05)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        pool.run_together([fails, slow])
    assert ended == [True]


def test_one_pool_for_the_process(small_blocks):
    region, d = THREADED["knapsack"]
    C = costs(60, d)
    expected = region.argmin(C)
    region.with_threads(2).argmin(C)
    before = pool._shared_pool(), threading.active_count()
    with ThreadPoolExecutor(4) as users:  # more callers than threads: they must not wait for each other
        for W in users.map(region.with_threads(3).argmin, [C] * 40):
            assert_array_equal(W, expected)
    assert pool._shared_pool() is before[0]
    assert threading.active_count() <= before[1] + os.cpu_count()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_fork(small_blocks):
    """The child has none of the threads, and one of them might have held the lock."""
    region, d = THREADED["knapsack"]
    C = costs(60, d)
    expected = region.with_threads(2).argmin(C)
    with pool._pool_lock:
        pid = os.fork()
        if pid == 0:
            same = np.array_equal(region.with_threads(2).argmin(C), expected)
            os._exit(0 if same else 1)
    for _ in range(200):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        pytest.fail("the child waits for threads that do not exist")
    assert status == 0
    assert_array_equal(region.with_threads(2).argmin(C), expected)


# -- estimators --------------------------------------------------------------------------------------------------------

X, C = make_shortest_path(60, grid=(3, 3), degree=4, noise=0.5, random_state=0)
P, R = make_portfolio(60, n_assets=5, degree=4, noise=0.5, random_state=0)
TOP = sk.TopK(3)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (sk.SPOPlusRegressor(TOP, solver="bundle", tol=1e-4), (X, C)),
        (sk.SPOPlusRegressor(TOP, solver="dual", alpha=0.1), (X, C)),
        (sk.SPOPlusRegressor(TOP, solver="interior-point"), (X, C)),
        (sk.SPOPlusRegressor(TOP, solver="sgd", alpha=0.1, max_iter=20, random_state=0), (X, C)),
        (sk.SPOPlusRegressor(sk.EntropySimplex(), solver="newton"), (P, R)),
        (sk.SPOPlusRegressor(sk.EntropySimplex(), solver="lbfgs"), (P, R)),
        (sk.SPORegressor(TOP, n_restarts=1, random_state=0, max_iter=20), (X, C)),
        (sk.SPOPlusRegressorCV(TOP, alphas=[1.0, 0.1], cv=2, solver="bundle", tol=1e-3), (X, C)),
    ],
    ids=["bundle", "dual", "interior-point", "sgd", "newton", "lbfgs", "spo", "cv"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_do_not_depend_on_threads(small_blocks, blocks, model, data):
    one = clone(model).fit(*data)
    assert blocks == []
    three = clone(model).set_params(n_jobs=3).fit(*data)
    assert 3 in blocks
    assert_array_equal(three.coef_, one.coef_)
    assert three.objective_ == one.objective_
    assert three.lower_bound_ == one.lower_bound_
    assert three.region_._n_threads == 1


def test_all_cores(small_blocks, blocks):
    sk.SPOPlusRegressor(TOP, solver="bundle", tol=1e-4, n_jobs=-1).fit(X, C)
    assert set(blocks) <= {effective_n_jobs(-1)}
    assert len(blocks) > 0 or effective_n_jobs(-1) == 1


def test_folds_have_no_threads(small_blocks, blocks, monkeypatch):
    """They are fitted at the same time already; the fit to all data has threads."""
    seen = []
    original = Fold.advance

    def advance(self, *args):
        before = len(blocks)
        fold = original(self, *args)
        seen.append((fold.region._n_threads, fold._path.objective.region._n_threads))
        assert len(blocks) == before
        return fold

    @contextmanager
    def one_after_the_other(n_jobs, return_as):
        yield lambda tasks: [f(*args, **kwargs) for f, args, kwargs in tasks]

    monkeypatch.setattr(Fold, "advance", advance)
    monkeypatch.setattr(_folds, "Parallel", one_after_the_other)
    sk.SPOPlusRegressorCV(TOP, alphas=[1.0, 0.1], cv=2, solver="bundle", tol=1e-3, n_jobs=2).fit(X, C)
    assert seen == [(1, 1)] * 2
    assert set(blocks) == {2}


def test_chunks(small_blocks, blocks):
    """Chunks are read one after the other, so that each may be worked on by threads."""
    chunks = [(X[:30], C[:30]), (X[30:], C[30:])]
    one, two = (
        sk.SPOPlusRegressor(TOP, solver="bundle", tol=1e-4, n_jobs=n).fit_chunks(lambda: iter(chunks)) for n in (1, 2)
    )
    assert set(blocks) == {2}
    assert_array_equal(two.coef_, one.coef_)


def test_dask_workers_have_no_threads_of_their_own(small_blocks, blocks):
    da = pytest.importorskip("dask.array")
    data = [da.from_array(array, chunks=(20, -1)) for array in (X, C)]
    sk.SPOPlusRegressor(TOP, solver="bundle", tol=1e-4, n_jobs=2).fit(*data)
    assert blocks == []
