"""How good is ``solver="auto"``?  Its time beside that of every solver that can be asked for, on a grid of problems.

Every fit runs in a process of its own, on one thread, after a small fit that loads compiled kernels.  Seconds are those
of the processor.  A solver counts if it reaches a certified gap of 1e-6.  Where "auto" reaches it, the others are
stopped after the time of "auto", because then they are no better; elsewhere they get the whole cap.  The last column is
the time of "auto" divided by that of the best solver that was not stopped (1 means that "auto" is the best); rows above
1.5 are marked, and so are rows where another solver reaches the gap and "auto" does not.

    python benchmarks/auto.py                  the whole grid, an hour on an idle machine
    python benchmarks/auto.py --quick          a dozen problems, minutes
    python benchmarks/auto.py --only paths     rows whose name contains "paths"
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from large import assignment, box, classes, knapsack, packing, paths, portfolios, top

#: relative gap to reach, and the ratio to the best solver above which a row is marked
TOL, MARKED = 1e-6, 1.5

SOLVERS = ("dual", "interior-point", "bundle", "separable", "lbfgs", "newton", "conic", "sgd")


def entropy(d: int, rng: Any) -> Any:
    import skspo as sk

    return sk.EntropySimplex()


def l1_ball(d: int, rng: Any) -> Any:
    import skspo as sk

    return sk.L1Ball()


FAMILIES = {
    "simplex": None,
    "top": top,
    "fractional": knapsack,
    "assignment": assignment,
    "packing": packing,
    "box": box,
    "entropy": entropy,
    "l1ball": l1_ball,
}


class Problem(NamedTuple):
    """One problem of the grid; ``d`` is the side of the grid for paths."""

    family: str
    n: int
    p: int
    d: int
    alpha: float

    @property
    def name(self) -> str:
        """Name of the row."""
        return f"{self.family} n={self.n} p={self.p} d={self.d} alpha={self.alpha:g}"


def grid(quick: bool) -> Iterator[Problem]:
    """Problems: all families, from a thousand to a hundred thousand samples, from 5 to 1000 features."""
    if quick:
        for alpha in (0.01, 0.0):
            for p in (5, 50, 200):
                yield Problem("simplex", 2000, p, 10, alpha)
                yield Problem("paths", 1000, p, 5, alpha)
        yield Problem("packing", 1000, 20, 32, 0.01)
        yield Problem("top", 1000, 5, 200, 0.01)
        return
    for alpha in (0.01, 0.0):
        for n in (1000, 10_000, 100_000):
            for p in (5, 50, 200, 1000):
                if n * p <= 10_000_000:
                    yield Problem("simplex", n, p, 10, alpha)
                    yield Problem("paths", n, p, 5, alpha)
        for family in ("simplex", "top", "fractional"):
            for d in (100, 1000):
                yield Problem(family, 1000, 5, d, alpha)
        yield Problem("assignment", 500, 5, 400, alpha)
        for family in ("box", "entropy", "l1ball"):
            for n, p, d in ((1000, 5, 20), (1000, 50, 20), (1000, 5, 200), (20_000, 5, 20)):
                yield Problem(family, n, p, d, alpha)
        for n, d in ((300, 20), (2000, 20), (300, 60)):
            yield Problem("markowitz", n, 5, d, alpha)
        for p in (5, 20, 100):
            yield Problem("packing", 1000, p, 32, alpha)


def make(problem: Problem, seed: int = 7) -> Any:
    """Region, features and costs."""
    if problem.family == "paths":
        return paths(problem.n, problem.p, problem.d, seed)
    if problem.family == "markowitz":
        return portfolios(problem.n, problem.d, seed)
    return classes(problem.n, problem.p, problem.d, seed, FAMILIES[problem.family])


def measure(problem: Problem, solver: str, cap: float) -> dict[str, Any]:
    """One fit, in this process."""
    import numpy as np

    import skspo as sk

    warnings.simplefilter("ignore")
    region, X, C = make(problem)
    rng = np.random.default_rng(0)
    sk.SPOPlusRegressor(sk.Simplex(), solver="dual", alpha=0.1).fit(rng.normal(size=(40, 3)), rng.normal(size=(40, 4)))
    start, wall = time.process_time(), time.perf_counter()
    model = sk.SPOPlusRegressor(region, solver=solver, alpha=problem.alpha, time_limit=cap, random_state=0).fit(X, C)
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    return {"seconds": seconds, "wall": wall, "gap": float(model.duality_gap_), "solver": model.solver_}


def run(problem: Problem, solver: str, cap: float) -> dict[str, Any] | None:
    """The same in a process of its own; None if the solver cannot serve the problem."""
    command = [sys.executable, __file__, "--one", json.dumps([*problem, solver, cap])]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
    result: dict[str, Any] | None = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
    return result


def cell(result: dict[str, Any] | None) -> str:
    """Seconds, with the gap if it is too large."""
    if result is None:
        return ""
    return f"{result['seconds']:.2f}" + ("" if result["gap"] <= TOL else f" ({result['gap']:.0e})")


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a dozen problems")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--cap", type=float, default=60.0, help="time limit of a fit in seconds")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        *fields, solver, cap = json.loads(args.one)
        print(json.dumps(measure(Problem(*fields), solver, cap)))
        return
    print(f"| problem | auto | {' | '.join(SOLVERS)} | auto / best |")
    print("|---" * (len(SOLVERS) + 3) + "|")
    lost = 0
    for problem in grid(args.quick):
        if args.only not in problem.name:
            continue
        auto = run(problem, "auto", args.cap)
        assert auto is not None
        done = auto["gap"] <= TOL
        # A tenth of a second more: solvers stop a little before their limit.
        cap = min(args.cap, 1.1 * auto["wall"] + 0.1) if done else args.cap
        others = [run(problem, solver, cap) for solver in SOLVERS]
        times = [other["seconds"] for other in others if other is not None and other["gap"] <= TOL]
        ratio = auto["seconds"] / min([auto["seconds"], *times]) if done else float("nan")
        loses = ratio > MARKED or (bool(times) and not done)
        lost += loses
        cells = " | ".join(map(cell, others))
        mark = " **" if loses else ""
        print(f"| {problem.name} | {auto['solver']} {cell(auto)} | {cells} | {ratio:.2f}{mark} |", flush=True)
    print(f"\n{lost} rows where auto loses.")


if __name__ == "__main__":
    main()
