"""Script of the separate process for large programs: ``backend_process`` starts it, waits for it, and may kill it.

It reads a program from its standard input and writes the answer of the back-end to its standard output.  It imports as
little as possible, so that it starts quickly.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp

#: options of a back-end, and its answer: status, solution and counts of iterations
Options: TypeAlias = dict[str, float | str]
Answer: TypeAlias = dict[str, Any]


class Program(TypedDict, total=False):
    """Clarabel: min q.x + x.P x / 2, b - A x in cones.  HiGHS: min q.x, lower <= A x <= b, and bounds of x."""

    backend: str
    options: Options
    q: np.ndarray
    A: sp.csc_array
    b: np.ndarray
    P: sp.csc_array
    cones: Sequence[tuple[str, object]]
    lower: np.ndarray
    bounds: tuple[np.ndarray | None, np.ndarray | None]


def solve_clarabel(program: Program, parent: int | None = None) -> Answer:
    """Solve with Clarabel; stop if the process ``parent`` has ended."""
    import clarabel

    make = {"zero": clarabel.ZeroConeT, "nonneg": clarabel.NonnegativeConeT, "soc": clarabel.SecondOrderConeT}
    make |= {"psd": clarabel.PSDTriangleConeT, "exp": lambda _: clarabel.ExponentialConeT(), "pow": clarabel.PowerConeT}
    make["genpow"] = lambda a: clarabel.GenPowerConeT(a, 1)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for name, value in program["options"].items():
        setattr(settings, name, value)
    cones = [make[kind](parameter) for kind, parameter in program["cones"]]
    solver = clarabel.DefaultSolver(program["P"], program["q"], program["A"], program["b"], cones, settings)
    if parent is not None and hasattr(solver, "set_termination_callback"):  # Clarabel 0.10 and later
        solver.set_termination_callback(lambda _: os.getppid() != parent)
    found = solver.solve()
    fields = ("x", "z", "s", "obj_val", "solve_time", "iterations")
    return {"status": str(found.status), **{name: getattr(found, name) for name in fields}}


def solve_highs(program: Program, parent: int | None = None) -> Answer:
    """Solve a linear program with HiGHS."""
    import highspy
    import numpy as np

    A, q = program["A"], program["q"]
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = A.shape
    lp.col_cost_, lp.row_lower_, lp.row_upper_ = q, program["lower"], program["b"]
    low, high = program["bounds"]
    lp.col_lower_ = np.full(q.size, -highspy.kHighsInf) if low is None else low
    lp.col_upper_ = np.full(q.size, highspy.kHighsInf) if high is None else high
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for name, value in program["options"].items():
        if highs.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise ValueError(f"HiGHS does not accept the option {name}={value!r}.")
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise RuntimeError("HiGHS does not accept the program.")
    highs.run()
    solution, info = highs.getSolution(), highs.getInfo()
    methods = ("ipm", "crossover", "pdlp", "qp", "simplex")
    return {
        "status": highs.getModelStatus().name,
        "x": np.array(solution.col_value),
        "y": np.array(solution.row_dual),
        "objective": info.objective_function_value,
        "seconds": highs.getRunTime(),
        "counts": {f"{name}_iteration_count": getattr(info, f"{name}_iteration_count") for name in methods},
    }


SOLVE = {"CLARABEL": solve_clarabel, "HIGHS": solve_highs}


def main() -> None:
    """Read a program, solve it, write the result or the error."""
    # Ctrl-C in a terminal is sent to all processes of the group; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Output of libraries must not be mixed with the result.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    program = pickle.load(sys.stdin.buffer)
    try:
        answer: Answer | str = SOLVE[program["backend"]](program, os.getppid())
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}"
    with out:
        pickle.dump(answer, out, protocol=pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
