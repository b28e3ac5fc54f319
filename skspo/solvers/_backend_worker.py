"""A process of its own for a program that takes long: ``backend_process`` starts it, waits for it, and may end it.

Run as a script, it reads a program from its standard input and writes what the back-end found to its standard output.
It imports no more than it needs, so that it starts in a fraction of a second.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any


def solve_clarabel(program: dict[str, Any], parent: int | None = None) -> dict[str, Any]:
    """Solve with Clarabel; ``parent`` is the process without which nobody wants the result."""
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
    if parent is not None:
        solver.set_termination_callback(lambda _: os.getppid() != parent)
    found = solver.solve()
    fields = ("x", "z", "s", "obj_val", "solve_time", "iterations")
    return {"status": str(found.status), **{name: getattr(found, name) for name in fields}}


def solve_highs(program: dict[str, Any], parent: int | None = None) -> dict[str, Any]:
    """Solve a linear program with HiGHS: min q.x, lower <= A x <= b, and bounds of x."""
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
    counts = ("ipm", "crossover", "pdlp", "qp", "simplex")
    return {
        "status": highs.getModelStatus().name,
        "x": np.array(solution.col_value),
        "y": np.array(solution.row_dual),
        "objective": info.objective_function_value,
        "seconds": highs.getRunTime(),
        "iterations": {f"{name}_iteration_count": getattr(info, f"{name}_iteration_count") for name in counts},
    }


SOLVE = {"CLARABEL": solve_clarabel, "HIGHS": solve_highs}


def main() -> None:
    """Read a program, solve it, write the result or the error."""
    # Ctrl-C in a terminal reaches the whole group of processes; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What libraries print must not get between the bytes of the result.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    program = pickle.load(sys.stdin.buffer)
    try:
        answer: Any = SOLVE[program["backend"]](program, os.getppid())
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}"
    with out:
        pickle.dump(answer, out, protocol=pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
