"""Large conic programs in a separate process, which can be killed at any time.

HiGHS and Clarabel check the time only between iterations, and Clarabel holds the interpreter lock, so that other
threads and signal handlers of the same process cannot run: a factorization that takes minutes would ignore both the
time limit and Ctrl-C.  The caller waits for the separate process, and kills it at the time limit or when an exception,
such as KeyboardInterrupt, ends the wait.  The start takes a third of a second, so small programs are solved in the
process of the caller.

The process is a new interpreter, not a fork, and receives the program through a pipe.  Therefore user scripts need no
``if __name__ == "__main__"``, it can be started from any thread, and it inherits no locks.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._utils.errors import SolverError
from ..regions._oracles.clarabel_cones import cone_size, cones_of
from . import _backend_worker
from ._backend_worker import Answer, Options, Program

if TYPE_CHECKING:
    import cvxpy as cp
    from cvxpy.reductions.solvers.solving_chain import SolvingChain

#: number of entries of the constraints from which a program is solved by another process; this takes about a second
LARGE_PROGRAM = 30_000

#: the worker gets the import path of this process, without "", which stands for the current directory: a file there
#: that is named like a module of the standard library, such as json.py, must not be executed
_START = """
import json, runpy, sys
sys.path[:] = filter(None, json.loads(sys.argv[1]))
runpy.run_path(sys.argv[2], run_name="__main__")
"""

#: arrays of a program as CVXPY names them: min c.x + x.P x / 2, where b - A x is in the cones of ``dims``
ProblemData: TypeAlias = dict[str, Any]

#: what ``cvxpy.Problem.get_problem_data`` returns: data, and two objects that translate the solution back
Compiled: TypeAlias = tuple[ProblemData, "SolvingChain", list[object]]


class BackendFailure(SolverError):
    """The back-end, or its process, stopped without a result."""


class BackendInterrupted(BackendFailure):
    """The process of the back-end was killed by a signal."""


def is_large(compiled: Compiled) -> bool:
    """Whether a program is large enough for a separate process."""
    return sum(compiled[0][name].nnz for name in ("A", "F") if name in compiled[0]) >= LARGE_PROGRAM


def solve_in_process(problem: cp.Problem, compiled: Compiled, backend: str, options: Options, seconds: float) -> None:
    """Solve a CVXPY problem in another process, and set the values of its variables.

    ``compiled`` is the result of ``problem.get_problem_data`` for the back-end.  After ``seconds`` the process is
    killed.
    """
    _set_values(problem, compiled, backend, run_worker(_program(compiled, backend, options), seconds))


def solve_here(problem: cp.Problem, compiled: Compiled, backend: str, options: Options) -> None:
    """Solve a CVXPY problem in this process, without output, and set the values of its variables.

    ``cvxpy.Problem.solve`` is not used: CVXPY 1.6 passes the model to HiGHS before the option that turns its output
    off.
    """
    program = _program(compiled, backend, options)
    _set_values(problem, compiled, backend, _backend_worker.SOLVE[backend](program))


def _program(compiled: Compiled, backend: str, options: Options) -> Program:
    program = _highs_program(compiled[0]) if backend == "HIGHS" else _clarabel_program(compiled[0])
    return program | {"backend": backend, "options": options}


def _set_values(problem: cp.Problem, compiled: Compiled, backend: str, answer: Answer) -> None:
    arrays = {name: np.asarray(answer[name], dtype=np.float64) for name in ("x", "z", "s") if backend == "CLARABEL"}
    result = _highs_result(answer) if backend == "HIGHS" else SimpleNamespace(**(answer | arrays))
    problem.unpack_results(result, compiled[1], compiled[2])


def run_worker(program: Program, seconds: float) -> Answer:
    """Solve a program in another process, which ends with this call, after ``seconds`` at the latest."""
    # -I: the interpreter itself imports nothing from the current directory or from PYTHONPATH
    command = [sys.executable, "-I", "-c", _START, json.dumps(sys.path), _backend_worker.__file__]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
    except OSError:
        # No process can be started: use this one, which cannot be interrupted.
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


def _clarabel_program(data: ProblemData) -> Program:
    dims, q = data["dims"], data["c"]
    P = data["P"] if "P" in data else sp.csc_array((q.size, q.size))
    cones = [cone for cone in cones_of(dims) if cone_size(*cone)]
    return {"P": sp.triu(P).tocsc(), "q": q, "A": sp.csc_array(data["A"]), "b": data["b"], "cones": cones}


def _highs_program(data: ProblemData) -> Program:
    if "F" in data:  # CVXPY 1.6: min q.x, A x = b, F x <= G
        A, b, q = sp.vstack([data["A"], data["F"]]), np.concatenate([data["b"], data["G"]]), data["q"]
        n_equal = data["b"].size
    else:
        A, b, q, n_equal = data["A"], data["b"], data["c"], data["dims"].zero
    lower = np.where(np.arange(b.size) < n_equal, b, -np.inf)
    bounds = data.get("lower_bounds"), data.get("upper_bounds")
    return {"q": q, "A": sp.csc_array(A), "b": b, "lower": lower, "bounds": bounds}


def _highs_result(answer: Answer) -> dict[str, object]:
    return {
        "solution": SimpleNamespace(col_value=answer["x"], row_dual=answer["y"]),
        "info": SimpleNamespace(objective_function_value=answer["objective"], **answer["counts"]),
        "model_status": answer["status"],
        "run_time": answer["seconds"],
        "dual_ray": (None, None, np.zeros_like(answer["y"])),
    }
