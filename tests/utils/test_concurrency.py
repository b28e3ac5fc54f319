"""Simultaneous fits are independent, restore the state of the process, and leave nothing behind."""

import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from small_sets import capped
from threadpoolctl import ThreadpoolController, threadpool_limits

import skspo as sk
from skspo._utils.limits import SharedContext, one_blas_thread, quiet
from skspo.calibration import region_geometry
from skspo.datasets import make_portfolio, make_shortest_path

TESTS = Path(__file__).parents[1]
TOOLS = TESTS.parent / "tools"
X, C = make_shortest_path(80, grid=(3, 3), degree=4, noise=0.5, random_state=0)
P, R = make_portfolio(60, 3, 5, degree=2, random_state=0)


#: one object each, used by all fits at the same time
GRID = sk.ShortestPath.grid(3, 3)
TOP, ENTROPY, CVXPY = sk.TopK(2), sk.EntropySimplex(), sk.CvxpyRegion(capped, 5)
POLYHEDRON = sk.Polyhedron([[1.0, 2.0, 3.0, 1.0, 1.0]], [2.0])
INTEGERS = sk.MixedInteger([[1.0, 2.0, 3.0, 1.0, 1.5]], [3.0], bounds=(0, 1), integrality=1)
MARKOWITZ = sk.Markowitz(np.eye(5) + 0.2, 0.5)


def stream():
    model = sk.SPOPlusRegressor(GRID, random_state=0)
    return model.partial_fit(X[:40], C[:40]).partial_fit(X[40:], C[40:])


FITS = {
    "interior point": lambda: sk.SPOPlusRegressor(GRID).fit(X, C),
    "bundle": lambda: sk.SPOPlusRegressor(GRID, solver="bundle", alpha=0.1, tol=1e-3).fit(X, C),
    "conic, HiGHS": lambda: sk.SPOPlusRegressor(TOP, solver="conic").fit(P, R),
    "conic, Clarabel": lambda: sk.SPOPlusRegressor(TOP, solver="conic", alpha=0.1).fit(P, R),
    "newton": lambda: sk.SPOPlusRegressor(ENTROPY).fit(P, R),
    "lbfgs": lambda: sk.SPOPlusRegressor(ENTROPY, solver="lbfgs", tol=1e-4).fit(P, R),
    "HiGHS oracle": lambda: sk.SPOPlusRegressor(POLYHEDRON, solver="bundle", tol=1e-3).fit(P[:30], R[:30]),
    "HiGHS oracle, two threads": lambda: sk.TwoStageRegressor(region=clone(POLYHEDRON).set_params(n_jobs=2)).fit(P, R),
    "HiGHS integers": lambda: sk.TwoStageRegressor(region=INTEGERS).fit(P, R),
    "CVXPY region": lambda: sk.TwoStageRegressor(region=CVXPY).fit(P, R),
    "Clarabel oracle": lambda: sk.TwoStageRegressor(region=MARKOWITZ).fit(P, R),
    "chunks": lambda: sk.SPOPlusRegressor(GRID, tol=1e-3).fit_chunks(sk.ChunkedData.from_arrays(X, C, chunk_rows=50)),
    "stream": stream,
    "spo": lambda: sk.SPORegressor(TOP, n_restarts=1, random_state=0, max_iter=5).fit(P, R),
    "network": lambda: sk.SPOMLPRegressor(ENTROPY, hidden_layer_sizes=(4,), max_iter=5, random_state=0).fit(P, R),
    "cross-validation": lambda: sk.SPOPlusRegressorCV(TOP, n_alphas=3, cv=2, tol=1e-3).fit(P, R),
}


def run(name):
    """All numbers of a fit except times, and what it predicts and decides."""
    model = FITS[name]()
    data = X if model.n_features_in_ == X.shape[1] else P
    numbers = {"prediction": model.predict(data), "decision": model.decide(data[:10])}
    for attribute in ("coef_", "intercept_", "objective_", "lower_bound_", "n_iter_", "alpha_", "loss_curve_"):
        if hasattr(model, attribute):
            numbers[attribute] = np.asarray(getattr(model, attribute))
    return numbers


@pytest.fixture(scope="module")
def alone():
    """Results of one fit after the other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return {name: run(name) for name in FITS}


def assert_equal_results(results, alone):
    for name, numbers in results:
        assert list(numbers) == list(alone[name])
        for key, value in numbers.items():
            assert_array_equal(value, alone[name][key], err_msg=f"{name}: {key}")


@pytest.fixture
def impatient():
    """Threads that are interrupted as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_threads(alone, impatient):
    """Every fit twice, in random order, four at a time, on shared regions."""
    names = np.random.default_rng(0).permutation([*FITS, *FITS]).tolist()
    with ThreadPoolExecutor(4) as pool:
        assert_equal_results(zip(names, pool.map(run, names), strict=True), alone)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(alone, method):
    """After the parent has used every library; HiGHS and OpenBLAS have threads, which a fork does not copy."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    names = list(FITS) if method == "fork" else ["interior point", "conic, HiGHS", "HiGHS integers", "CVXPY region"]
    with ProcessPoolExecutor(2 if method == "fork" else 1, mp_context=multiprocessing.get_context(method)) as pool:
        futures = [(name, pool.submit(run, name)) for name in names]
        assert_equal_results([(name, future.result(timeout=120)) for name, future in futures], alone)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_fork_while_threads_fit():
    """With two BLAS threads, and other threads in the middle of fits: the child can still fit."""
    code = (
        "import os, sys, threading, time, warnings\n"
        f"sys.path[:0] = {[str(TESTS), str(TESTS / 'utils')]!r}\n"
        "from test_concurrency import FITS\n"
        "warnings.simplefilter('ignore')\n"
        "names = ['bundle', 'conic, HiGHS', 'HiGHS oracle']\n"
        "for name in names: FITS[name]()\n"
        "stop = threading.Event()\n"
        "def busy():\n"
        "    while not stop.is_set(): FITS['bundle']()\n"
        "thread = threading.Thread(target=busy); thread.start()\n"
        "codes = []\n"
        "for _ in range(2):\n"
        "    time.sleep(0.05)\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        for name in names: FITS[name]()\n"
        "        os._exit(0)\n"
        "    codes.append(os.waitpid(pid, 0)[1])\n"
        "stop.set(); thread.join()\n"
        "print(codes)\n"
    )
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.stdout.strip() == "[0, 0]", done.stderr


@pytest.mark.slow
def test_one_region_in_several_dimensions(impatient):
    """A region without a fixed dimension, used in several dimensions at the same time."""
    regions = [sk.Simplex(), sk.Box(), sk.TopK(2), sk.L1Ball(), sk.EntropySimplex(), sk.Assignment()]

    def ask(region, d):
        answers = [region.argmin(np.arange(d) - 1.5)]
        if hasattr(region, "inequality_form"):
            answers += [region._geometry(d).center, region_geometry(region, d)[:2], region.equalities(d)]
        return [np.asarray(answer, dtype=float) for answer in answers]

    tasks = [(region, d) for region in regions for d in ((4, 9) if isinstance(region, sk.Assignment) else (3, 4, 5))]
    expected = [ask(clone(region), d) for region, d in tasks]
    order = np.random.default_rng(0).permutation(len(tasks) * 15) % len(tasks)
    with ThreadPoolExecutor(4) as pool:
        for k, answers in zip(order, pool.map(lambda k: ask(*tasks[k]), order), strict=True):
            for answer, truth in zip(answers, expected[k], strict=True):
                assert_array_equal(answer, truth, err_msg=str(tasks[k]))


# -- irrelevant settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        sk.SPOPlusRegressor(POLYHEDRON, solver="bundle", tol=1e-4),
        sk.SPOPlusRegressor(INTEGERS, solver="sgd", max_iter=2, random_state=0),
        sk.SPORegressor(TOP, n_restarts=2, random_state=0, max_iter=5),
    ],
    ids=["HiGHS", "integers", "spo"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_number_of_jobs(model):
    """Threads; the processes of cross-validation and of Clarabel are compared in test_path and test_regions_smooth."""
    one, two = (clone(model).set_params(n_jobs=n).fit(P[:30], R[:30]) for n in (1, 2))
    assert_allclose(two.objective_, one.objective_, rtol=1e-9)
    assert_array_equal(two.decide(P), one.decide(P))


@pytest.mark.parametrize("name", ["bundle", "newton", "interior point", "conic, Clarabel", "cross-validation"])
def test_number_of_blas_threads(name):
    """The objective is the same to the tolerance, and decisions cost the same."""
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            models.append(FITS[name]())
    one, two = models
    assert_allclose(two.objective_, one.objective_, rtol=one.tol)
    data, costs = (X, C) if one.n_features_in_ == X.shape[1] else (P, R)
    assert_allclose(two.decide(data), one.decide(data), atol=1e-6)
    assert_allclose(two.score(data, costs), one.score(data, costs), atol=1e-6)


# -- state of the process ----------------------------------------------------------------------------------------------


def blas_threads():
    """Of all libraries that can have threads."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library.num_threads for library in libraries if getattr(library, "threading_layer", "") != "disabled"]


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2):
        # From threadpoolctl 3.8 on, only one thread at a time can change numbers: that must not be this one.
        for library in ThreadpoolController().select(internal_api="openblas").lib_controllers:
            getattr(library, "clear_controlling_thread", bool)()
        if set(blas_threads()) != {2}:
            pytest.skip("BLAS cannot use two threads here")
        yield


def overlap(context, first_leaves_first):
    """Two threads inside a context at the same time; what ``look`` saw inside each."""
    entered, left, seen = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()], []
    order = (0, 1) if first_leaves_first else (1, 0)

    def visit(me):
        if me == 1:
            assert entered[0].wait(10)
        with context:
            entered[me].set()
            assert entered[1].wait(10)
            if me == order[1]:
                assert left[order[0]].wait(10)
            seen.append(blas_threads())
        left[me].set()

    threads = [threading.Thread(target=visit, args=(me,)) for me in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [event.is_set() for event in left] == [True, True]
    return seen


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_blas_threads_are_restored_by_the_last_fit(two_blas_threads, first_leaves_first):
    seen = overlap(one_blas_thread, first_leaves_first)
    assert {count for counts in seen for count in counts} == {1}
    assert set(blas_threads()) == {2}
    with one_blas_thread, one_blas_thread:
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_blas_threads_after_overlapping_fits(two_blas_threads):
    """The oracle of the first fit waits until the second has begun, and that of the second until the first is done."""
    began, done, inside = threading.Event(), threading.Event(), []

    def first(costs):
        assert began.wait(10)
        return np.eye(costs.shape[1])[costs.argmin(axis=1)]

    def second(costs):
        began.set()
        if len(inside) > 0:  # not while the decisions are prepared, but in the solver
            assert done.wait(10)
        inside.append(set(blas_threads()))
        return np.eye(costs.shape[1])[costs.argmin(axis=1)]

    def fit(oracle):
        model = sk.SPOPlusRegressor(sk.OracleRegion(oracle, 5), solver="bundle", tol=0.5).fit(P, R)
        if oracle is first:
            done.set()
        return model.duality_gap_

    with ThreadPoolExecutor(2) as pool:
        gaps = list(pool.map(fit, (first, second)))
    assert max(gaps) <= 0.5
    assert {1} in inside
    assert set(blas_threads()) == {2}


def test_blas_threads_after_a_failed_fit(two_blas_threads):
    calls = []

    def breaks(costs):
        calls.append(set(blas_threads()))
        if len(calls) > 3:
            raise RuntimeError("no more")
        return np.eye(costs.shape[1])[costs.argmin(axis=1)]

    with pytest.raises(RuntimeError, match="no more"):
        sk.SPOPlusRegressor(sk.OracleRegion(breaks, 5), solver="bundle").fit(P, R)
    assert calls[-1] == {1}
    assert set(blas_threads()) == {2}


def test_a_limit_set_by_somebody_else_is_kept(two_blas_threads):
    with one_blas_thread:
        pass
    with threadpool_limits(1), one_blas_thread:
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_warning_filters_are_restored_by_the_last_fit(first_leaves_first):
    before = list(warnings.filters)
    overlap(quiet, first_leaves_first)
    assert warnings.filters == before


def test_other_threads_still_warn():
    """While one thread wants no warnings of CVXPY, another one's fit says that it did not converge."""
    with quiet, ThreadPoolExecutor(1) as pool, pytest.warns(ConvergenceWarning, match="max_iter=1 passes"):
        pool.submit(sk.SPOPlusRegressor(TOP, solver="bundle", max_iter=1).fit, P, R).result()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_fork_does_not_wait_for_other_threads():
    class Context:
        def __enter__(self):
            entered.append(os.getpid())

        def __exit__(self, *exc):
            left.append(os.getpid())

    entered, left = [], []
    context = SharedContext(Context)
    inside, go = threading.Event(), threading.Event()

    def other():
        with context:
            inside.set()
            go.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    with context:  # this thread is inside as well, and the child continues here
        pid = os.fork()
        if pid == 0:
            me = os.getpid()
            context.__exit__(None, None, None)
            nobody = left == [me]
            with context:
                again = entered[-1] == me
            os._exit(0 if nobody and again and left == [me, me] else 1)
        assert os.waitpid(pid, 0)[1] == 0
    go.set()
    thread.join(10)
    assert entered == left == [os.getpid()]


# -- leaks -------------------------------------------------------------------------------------------------------------


def leak_tool():
    spec = importlib.util.spec_from_file_location("leak", TOOLS / "leak.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks into /proc")
@pytest.mark.parametrize(
    "fits",
    [
        28,
        pytest.param(
            1000,
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif("SKSPO_LEAK" not in os.environ, reason="takes minutes; set SKSPO_LEAK=1"),
            ],
        ),
    ],
)
def test_nothing_leaks(fits):
    """In a separate process, so that earlier tests are not measured."""
    done = subprocess.run(
        [sys.executable, str(TOOLS / "leak.py"), "--fits", str(fits), "--warm-up", "14"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["fits"] == fits


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks into /proc")
def test_a_leak_is_detected():
    """Half a megabyte kept by each of thirty fits."""
    leak = leak_tool()
    leak.KINDS["nothing"] = float
    assert leak.measure(30, 4, ["nothing"], patience=0.0)["growth MB"] < leak.LIMIT_MB
    assert leak.measure(30, 4, ["nothing"], keep=[], patience=0.0)["growth MB"] > leak.LIMIT_MB
