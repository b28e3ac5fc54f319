"""OR-tools beside HiGHS: what docs/guide/regions.md says of it, and its oracle in a process of its own."""

import importlib.util
import os
import pickle
import subprocess
import sys
import textwrap
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import LinearConstraint

from skspo import MixedInteger, OracleRegion, Simplex, SPOPlusRegressor
from skspo.datasets import make_cost_sensitive_classification

FILE = Path(__file__).parents[2] / "docs/guide/ortools_oracle.py"
SPEC = importlib.util.spec_from_file_location("ortools_oracle", FILE)
page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page)
sys.modules["ortools_oracle"] = page  # where pickle looks for it

CP_SAT = "from ortools.sat.python import cp_model"


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)


def installed(name):
    try:
        return tuple(int(part) for part in version(name).split(".")[:2])
    except PackageNotFoundError:
        return None


def needs_ortools():
    if installed("ortools") is None or run(CP_SAT).returncode:
        pytest.skip("OR-tools is not installed")


@pytest.fixture
def make_oracle(tmp_path):
    """Oracle whose worker is the page's own, with another function to solve."""
    made = []

    def make(solve):
        script = tmp_path / f"worker{len(made)}.py"
        script.write_text(
            textwrap.dedent(f"""
            import importlib.util, os, sys
            import numpy as np
            spec = importlib.util.spec_from_file_location("page", {str(FILE)!r})
            page = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(page)
            def solve(C):
                {solve}
            page.solve = solve
            page.serve()
            """)
        )
        made.append(page.ProcessOracle(str(script)))
        return made[-1]

    yield make
    for oracle in made:
        oracle.close()


# -- the process, whatever it solves with ------------------------------------------------------------------------------

CHEAPEST = "return np.eye(C.shape[1])[C.argmin(axis=1)]"


def test_nothing_beside_the_script_is_executed(make_oracle, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    oracle = make_oracle(CHEAPEST)
    for name in ("json", "numpy", "pickle", "random"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)")
    assert_array_equal(oracle([[2.0, 1.0]]), [[0.0, 1.0]])


def test_training_asks_one_process(make_oracle):
    X, C = make_cost_sensitive_classification(40, 3, 4, degree=2, noise=0.5, random_state=0)
    oracle = make_oracle(CHEAPEST)
    model = SPOPlusRegressor(OracleRegion(oracle, 4)).fit(X, C)
    first = oracle._worker.pid
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(SPOPlusRegressor(Simplex()).fit(X, C).objective_, rel=2e-6)
    assert_array_equal(model.decide(X), Simplex().argmin(model.predict(X)))
    assert oracle._worker.pid == first != os.getpid()
    oracle.close()
    assert_array_equal(oracle(C), Simplex().argmin(C))
    assert oracle._worker.pid != first


def test_the_process_does_not_load_highs(make_oracle):
    oracle = make_oracle("return np.full(C.shape, float(bool({'highspy', 'skspo'} & set(sys.modules))))")
    assert oracle(np.ones((1, 2))).tolist() == [[0.0, 0.0]]


def test_what_a_solver_prints_is_no_answer(make_oracle, capfd):
    oracle = make_oracle("print('Solver 1.0'); os.system('echo license'); sys.stdout.flush(); return -C")
    assert_array_equal(oracle(np.ones((2, 3))), -np.ones((2, 3)))
    assert_array_equal(oracle(np.ones((2, 3))), -np.ones((2, 3)))
    assert "Solver 1.0" in capfd.readouterr().err


def test_an_error_comes_back_with_its_row(make_oracle):
    oracle = make_oracle("assert not (C > 5).any(), 'too dear'; return -C")
    region = OracleRegion(oracle, 2)
    with pytest.raises(RuntimeError, match="too dear") as caught:
        region.argmin([[1.0, 2.0], [3.0, 9.0], [2.0, 1.0]])
    assert "for row 1, [3., 9.]" in caught.value.__notes__[0]
    assert oracle(np.ones((1, 2))).tolist() == [[-1.0, -1.0]]  # it is still there


def test_a_process_that_ends(make_oracle):
    oracle = make_oracle("os._exit(3) if C[0, 0] == 7 else None; return -C")
    assert oracle(np.ones((1, 1))).tolist() == [[-1.0]]
    with pytest.raises(RuntimeError, match="ended with exit code 3"):
        oracle(np.full((1, 1), 7.0))
    assert oracle(np.ones((1, 1))).tolist() == [[-1.0]]


def test_an_interrupt_loses_no_answer(make_oracle, monkeypatch):
    oracle = make_oracle("return 2 * C")
    oracle(np.ones((1, 1)))
    real = pickle.load

    def interrupted(file):
        raise KeyboardInterrupt

    monkeypatch.setattr(page.pickle, "load", interrupted)
    with pytest.raises(KeyboardInterrupt):
        oracle(np.ones((1, 1)))
    monkeypatch.setattr(page.pickle, "load", real)
    assert oracle(np.full((1, 1), 5.0)).tolist() == [[10.0]]


def test_a_copy_has_a_process_of_its_own(make_oracle):
    oracle = make_oracle(CHEAPEST)
    oracle(np.ones((1, 2)))
    copy = pickle.loads(pickle.dumps(oracle))
    try:
        assert_array_equal(copy(np.array([[2.0, 1.0]])), [[0.0, 1.0]])
        assert copy._worker.pid != oracle._worker.pid
    finally:
        copy.close()


# -- OR-tools ----------------------------------------------------------------------------------------------------------


def test_ortools_in_a_process():
    needs_ortools()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    C = X @ rng.normal(size=(2, 6)) + rng.normal(size=(30, 6)) - 0.5
    pairs = np.zeros((2, 6))
    pairs[[0, 0, 1, 1], np.ravel(page.EXCLUSIVE)] = 1.0
    same = MixedInteger([page.WEIGHTS], [page.CAPACITY], bounds=(0, 1), constraints=LinearConstraint(pairs, ub=1))
    try:
        region = OracleRegion(page.oracle, 6)
        W = region.argmin(C)
        assert_allclose((C * W).sum(axis=1), (C * same.argmin(C)).sum(axis=1), rtol=1e-9)
        model = SPOPlusRegressor(region, tol=1e-3, alpha=0.1).fit(X, C)
        assert model.duality_gap_ <= 1e-3
        assert model.objective_ == pytest.approx(
            SPOPlusRegressor(same, tol=1e-3, alpha=0.1).fit(X, C).objective_, rel=2e-3
        )
    finally:
        page.oracle.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the page speaks of Linux")
@pytest.mark.parametrize("first", ["import skspo", CP_SAT])
def test_which_versions_cannot_be_loaded_together(first):
    """If this fails, the versions named in docs/guide/regions.md have changed for the better or the worse."""
    needs_ortools()
    ortools, highspy = installed("ortools"), installed("highspy")
    if ortools > (9, 15) or highspy > (1, 15):
        pytest.skip("later than what the page speaks of")
    second = CP_SAT if first != CP_SAT else "import skspo"
    done = run(f"{first}; {second}")
    if ortools >= (9, 12) and highspy >= (1, 15):
        assert done.returncode != 0 and "undefined symbol" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
