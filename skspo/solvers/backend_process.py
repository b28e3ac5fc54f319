"""Large conic programs in a process of their own, which can be ended at any time.

HiGHS and Clarabel look at the clock between iterations only, and Clarabel holds the interpreter's lock while it works,
so that neither a thread nor a signal handler of the same process gets a turn: a factorisation of minutes would neither
keep a time limit nor hear Ctrl-C.  A process of its own does: the caller waits for it in Python, and kills it when the
time is up or an exception, such as KeyboardInterrupt, ends the wait.  Its start takes a third of a second, so that
small programs are solved in the process of the caller.

It is started as a new interpreter, not by a fork, and gets the program through a pipe.  So it needs no guard in the
user's script, works from any thread, and inherits no locks.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._utils.errors import SolverError
from ..regions._oracles.cones import cone_size, cones_of
from . import _backend_worker

#: numbers in the constraints from which on a program is solved by another process: it takes a second or so then
LARGE_PROGRAM = 30_000

#: the worker finds what this process can import, wherever it is installed
_START = """
import json, runpy, sys
sys.path[:] = json.loads(sys.argv[1])
runpy.run_path(sys.argv[2], run_name="__main__")
"""


class BackendFailure(SolverError):
    """The back-end, or its process, ended without a result."""


class BackendInterrupted(BackendFailure):
    """A signal from outside ended the process of the back-end."""


def is_large(compiled: tuple[Any, ...]) -> bool:
    """Whether what ``cvxpy.Problem.get_problem_data`` returned is worth a process of its own."""
    return compiled[0]["A"].nnz >= LARGE_PROGRAM


def solve_in_process(
    problem: Any, compiled: tuple[Any, ...], backend: str, options: dict[str, Any], seconds: float
) -> None:
    """Solve a CVXPY problem in another process, and give it its values.

    Parameters
    ----------
    problem : cvxpy.Problem
    compiled : tuple
        What ``problem.get_problem_data`` returned for the back-end.
    backend : {"CLARABEL", "HIGHS"}
    options : dict
        Those of the back-end.
    seconds : float
        After which the process is killed; infinity means never.

    Raises
    ------
    BackendFailure
        If there is no result.
    """
    data, chain, inverse = compiled
    if backend == "HIGHS":
        program, read = _highs_program(data), _highs_result
    else:
        program, read = _clarabel_program(data), _clarabel_result
    answer = run_worker(program | {"backend": backend, "options": options}, seconds)
    problem.unpack_results(read(answer), chain, inverse)


def run_worker(program: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Solve a program in another process, which does not outlive this call.

    Parameters
    ----------
    program : dict
        See ``_backend_worker``.
    seconds : float
        After which the process is killed; infinity means never.

    Returns
    -------
    answer : dict
    """
    command = [sys.executable, "-c", _START, json.dumps(sys.path), _backend_worker.__file__]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
    except OSError:
        # Where no process may be started there is still this one, which is deaf until the back-end is done.
        return _backend_worker.SOLVE[program["backend"]](program)
    try:
        text = pickle.dumps(program, protocol=pickle.HIGHEST_PROTOCOL)
        out, _ = process.communicate(text, None if seconds == np.inf else seconds)
    except subprocess.TimeoutExpired:
        raise BackendFailure(f"stopped after {seconds:.3g} s, before it had a solution") from None
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
    try:
        answer = pickle.loads(out)
    except Exception:
        kind = BackendInterrupted if process.returncode < 0 else BackendFailure  # minus the number of the signal
        raise kind(f"its process ended with code {process.returncode}") from None
    if isinstance(answer, str):
        raise BackendFailure(answer)
    return answer


def _clarabel_program(data: dict[str, Any]) -> dict[str, Any]:
    dims, q = data["dims"], data["c"]
    P = data["P"] if "P" in data else sp.csc_array((q.size, q.size))
    cones = [cone for cone in cones_of(dims) if cone_size(*cone)]
    return {"P": sp.triu(P).tocsc(), "q": q, "A": sp.csc_array(data["A"]), "b": data["b"], "cones": cones}


def _clarabel_result(answer: dict[str, Any]) -> Any:
    arrays = {name: np.asarray(answer[name], dtype=np.float64) for name in ("x", "z", "s")}
    return SimpleNamespace(**(answer | arrays))


def _highs_program(data: dict[str, Any]) -> dict[str, Any]:
    b, n_equal = data["b"], data["dims"].zero
    lower = np.where(np.arange(b.size) < n_equal, b, -np.inf)
    bounds = data.get("lower_bounds"), data.get("upper_bounds")
    return {"q": data["c"], "A": sp.csc_array(data["A"]), "b": b, "lower": lower, "bounds": bounds}


def _highs_result(answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "solution": SimpleNamespace(col_value=answer["x"], row_dual=answer["y"]),
        "info": SimpleNamespace(objective_function_value=answer["objective"], **answer["iterations"]),
        "model_status": answer["status"],
        "run_time": answer["seconds"],
        "dual_ray": (None, None, np.zeros_like(answer["y"])),
    }
