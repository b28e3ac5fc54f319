"""Ctrl-C, and the processes that back-ends run in."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skspo import EntropySimplex, LqBall, ShortestPath, Simplex, SPOPlusRegressor
from skspo.datasets import make_cost_sensitive_classification, make_portfolio, make_shortest_path
from skspo.solvers import ConicSolver, backend_process
from skspo.solvers.backend_process import BackendFailure, run_worker

CLASSES = make_cost_sensitive_classification(60, 3, 5, degree=2, noise=0.5, random_state=0)
ASSETS = make_portfolio(60, 3, 5, degree=4, noise=0.5, random_state=0)
PATHS = make_shortest_path(60, 3, (3, 3), degree=6, noise=0.5, random_state=0)


@pytest.fixture
def processes(monkeypatch):
    """Solve every program in a separate process, and list these processes."""
    started = []

    class Popen(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(backend_process, "LARGE_PROGRAM", 0)
    monkeypatch.setattr(backend_process.subprocess, "Popen", Popen)
    return started


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend, region, data, params",
    [
        ("HIGHS", Simplex(), CLASSES, {}),
        ("HIGHS", ShortestPath.grid(3, 3), PATHS, {"alpha": 0.01, "l1_ratio": 1.0}),
        ("CLARABEL", Simplex(), CLASSES, {}),
        ("CLARABEL", Simplex(), CLASSES, {"alpha": 0.01}),  # a quadratic objective
        ("CLARABEL", EntropySimplex(), ASSETS, {}),  # exponential cones
        ("CLARABEL", LqBall(1.5), ASSETS, {}),  # power cones
    ],
)
def test_a_process_finds_the_same(backend, region, data, params, processes, monkeypatch):
    X, C = data
    model = SPOPlusRegressor(region, solver=ConicSolver(backend), **params).fit(X, C)
    assert len(processes) == 1 and processes[0].returncode == 0
    monkeypatch.setattr(backend_process, "LARGE_PROGRAM", 10**9)
    here = SPOPlusRegressor(region, solver=ConicSolver(backend), **params).fit(X, C)
    assert len(processes) == 1
    assert model.duality_gap_ <= 1e-6 and here.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(here.objective_, rel=2e-6)
    assert model.n_iter_ == here.n_iter_


def program(n=400):
    """A linear program that takes seconds: random, dense, degenerate."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    A = sp.csc_array(rng.normal(size=(6 * n, n)))
    return {"backend": "HIGHS", "A": A, "b": np.ones(6 * n), "lower": np.full(6 * n, -np.inf)} | {
        "q": rng.normal(size=n),
        "bounds": (np.full(n, -1.0), np.ones(n)),
        "options": {"solver": "simplex"},
    }


def test_a_process_is_killed_when_its_time_is_up(processes):
    start = time.perf_counter()
    with pytest.raises(BackendFailure, match=r"stopped after 0\.05 s"):
        run_worker(program(), 0.05)
    assert time.perf_counter() - start < 10
    assert processes[0].returncode not in (None, 0)


def test_what_goes_wrong_in_the_process_is_a_failure_of_the_back_end(processes, monkeypatch):
    with pytest.raises(BackendFailure, match="does not accept the option no_such_option"):
        run_worker(program(3) | {"options": {"no_such_option": 1}}, np.inf)
    monkeypatch.setattr(backend_process, "_START", "import os; os.abort()")
    with pytest.raises(BackendFailure, match="its process ended with code"):
        run_worker(program(3), np.inf)
    # A fit continues with the next back-end, and warns if there is none.
    with pytest.warns(ConvergenceWarning, match="HIGHS: its process ended with code"):
        model = SPOPlusRegressor(Simplex(), solver=ConicSolver("HIGHS")).fit(*CLASSES)
    assert 0 <= model.lower_bound_ <= model.objective_


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Current directory whose files have the names of modules; they leave a trace if they are executed."""
    trace = tmp_path / "executed"
    for name in (
        "json",
        "numpy",
        "os",
        "pickle",
        "random",
        "runpy",
        "scipy",
        "signal",
        "struct",
        "highspy",
        "clarabel",
    ):
        (tmp_path / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write({name!r})\nraise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return trace


@pytest.mark.parametrize("path", [[], [""]], ids=["script", "notebook"])  # a notebook has "" in its import path
def test_nothing_in_the_current_directory_is_executed(path, hostile, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep)  # two empty entries, which are the current directory
    monkeypatch.setattr(sys, "path", path + sys.path)
    assert run_worker(program(3), np.inf)["status"] == "kOptimal"
    assert not hostile.exists()


def test_tests_do_not_execute_the_current_directory(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    assert subprocess.run([sys.executable, "-c", "import json"], cwd=tmp_path).returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="signals are sent in another way")
def test_tests_that_are_started_with_sigint_ignored(tmp_path):
    """As by nohup in the background: the interpreters that tests start handle SIGINT all the same."""
    (tmp_path / "test_child.py").write_text(
        "import signal, subprocess, sys\n"
        "def test_child():\n"
        "    code = 'import signal, sys; sys.exit(signal.getsignal(2) != signal.default_int_handler)'\n"
        "    assert subprocess.run([sys.executable, '-c', code]).returncode == 0\n"
    )
    (tmp_path / "conftest.py").write_bytes((Path(__file__).parents[1] / "conftest.py").read_bytes())
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    code = f"import os, signal; signal.signal(2, signal.SIG_IGN); os.execv(sys.executable, {arguments!r})"
    done = subprocess.run([sys.executable, "-c", f"import sys; {code}"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_without_a_process_the_program_is_solved_here(processes, monkeypatch):
    monkeypatch.setattr(backend_process.sys, "executable", "/no/such/interpreter")
    for backend in ("HIGHS", "CLARABEL"):
        model = SPOPlusRegressor(Simplex(), solver=ConicSolver(backend)).fit(*CLASSES)
        assert model.duality_gap_ <= 1e-6
    assert not processes


def test_in_another_thread(processes):
    results = []

    def fit():
        results.append(SPOPlusRegressor(Simplex(), solver=ConicSolver("CLARABEL")).fit(*CLASSES).duality_gap_)

    threads = [threading.Thread(target=fit) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2 and max(results) <= 1e-6


HEAD = """
    import sys
    import numpy as np
    import skspo
    from skspo.datasets import make_portfolio, make_shortest_path

    def begin():
        print("begin", flush=True)

    def interrupted(work):
        try:
            work()
        except KeyboardInterrupt:
            print("heard", flush=True)
        else:
            print("done", flush=True)
"""

# A program that takes minutes; within it, an iteration or the setup takes several seconds.  CVXPY is done when the
# process of the back-end is started.
CONIC = """
    from skspo.solvers import backend_process

    X, C = make_shortest_path(800, 5, (8, 8), degree=6, noise=0.5, random_state=0)
    solver, run = skspo.solvers.ConicSolver(sys.argv[1]), backend_process.run_worker
    backend_process.run_worker = lambda *args: begin() or run(*args)
    interrupted(lambda: skspo.SPOPlusRegressor(skspo.ShortestPath.grid(8, 8), solver=solver).fit(X, C))
"""

# Many rows for HiGHS and Clarabel, which take half a minute together and milliseconds each.
ROWS = """
    import cvxpy as cp

    A = np.abs(np.random.default_rng(0).normal(size=(60, 80)))
    regions = {
        "HIGHS": lambda: skspo.Polyhedron(A_ub=A, b_ub=np.ones(60), bounds=(0, 1), sense="max"),
        "HIGHS-2": lambda: skspo.Polyhedron(A_ub=A, b_ub=np.ones(60), bounds=(0, 1), sense="max", n_jobs=2),
        "CLARABEL": lambda: skspo.CvxpyRegion(lambda w: [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.4], n_dim=80),
    }
    region = regions[sys.argv[1]]()
    C = make_portfolio(20_000, 5, 80, degree=6, random_state=0)[1]
    begin()
    interrupted(lambda: region.argmin(C))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent in another way")
@pytest.mark.parametrize(
    "script, which", [(CONIC, "HIGHS"), (CONIC, "CLARABEL"), (ROWS, "HIGHS"), (ROWS, "HIGHS-2"), (ROWS, "CLARABEL")]
)
def test_ctrl_c_stops_back_ends(script, which):
    command = [sys.executable, "-c", textwrap.dedent(HEAD) + textwrap.dedent(script), which]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout.readline() == "begin\n"
            time.sleep(2)
            assert process.poll() is None
            os.kill(process.pid, signal.SIGINT)
            start = time.perf_counter()
            out, _ = process.communicate(timeout=60)
            assert out == "heard\n"
            assert time.perf_counter() - start < 15  # it takes a fraction of a second
            with pytest.raises(ProcessLookupError):  # nothing is left of the group
                for _ in range(100):
                    os.killpg(process.pid, 0)
                    time.sleep(0.1)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
