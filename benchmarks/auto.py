"""How good is ``solver="auto"``?  Its time beside that of every solver that can be asked for, on a grid of problems.

Every problem has a process of its own, on one thread, with a small fit at first that loads compiled kernels.  Seconds
are those of the processor; of fits of less than a second the shortest of up to three.  A solver counts if it
reaches a certified gap of 1e-6.  Where "auto" reaches it, the others are stopped after one and a half times the time of
"auto" and a second, because then they are no better; elsewhere they get the whole cap, which is processor time as well.
The last column is the time of "auto" divided by that of the best solver (1 means that "auto" is the best); rows above
1.5 are marked, and so are rows where another solver reaches the gap and "auto" does not.

    python benchmarks/auto.py                              the whole grid, two hours on an idle machine
    python benchmarks/auto.py --quick                      a dozen problems, minutes
    python benchmarks/auto.py --only paths                 rows whose name contains "paths"
    python benchmarks/auto.py --out docs/benchmarks/README.md              also write table and results/auto.json
    python benchmarks/auto.py --out docs/benchmarks/README.md --missing    only rows that are not in results/auto.json
    python benchmarks/auto.py --out docs/benchmarks/README.md --replay     run nothing: the first solver of the present
                                                                           sources, by the stored times of all solvers
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
from results import Table, out_option

#: relative gap to reach, and the ratio to the best solver above which a row is marked
TOL, MARKED = 1e-6, 1.5

#: number of fits of which the shortest counts, and the seconds in total after which there is no other
REPEATS, SHORT = 3, 2.0

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


def make(problem: Problem, seed: int) -> Any:
    """Region, features and costs."""
    if problem.family == "paths":
        return paths(problem.n, problem.p, problem.d, seed)
    if problem.family == "markowitz":
        return portfolios(problem.n, problem.d, seed)
    return classes(problem.n, problem.p, problem.d, seed, FAMILIES[problem.family])


def fastest(problem: Problem, solver: str, cap: float, seed: int) -> dict[str, Any] | None:
    """Shortest of a few fits; None if the solver cannot serve the problem."""
    import skspo as sk

    best: dict[str, Any] | None = None
    spent = 0.0
    for _ in range(REPEATS):
        region, X, C = make(problem, seed)
        model = sk.SPOPlusRegressor(region, solver=solver, alpha=problem.alpha, time_limit=cap, random_state=0)
        start = time.process_time()
        try:
            model.fit(X, C)
        except ValueError:
            return None
        seconds = time.process_time() - start
        if best is None or seconds < best["seconds"]:
            best = {"seconds": seconds, "gap": float(model.duality_gap_), "solver": model.solver_}
        spent += seconds
        if spent > SHORT:
            break
    return best


def measure(problem: Problem, cap: float, seed: int, solvers: list[str]) -> dict[str, Any]:
    """Fits of one problem by all solvers, in this process."""
    import numpy as np

    import skspo as sk
    from skspo._utils import deadline

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    small = rng.normal(size=(40, 3)), rng.normal(size=(40, 4))
    for kind in (sk.Simplex(), sk.TopK(2)):  # load the kernels for decisions and for points
        sk.SPOPlusRegressor(kind, solver="dual", alpha=0.1).fit(*small)
    wall_clock, cpu_clock = deadline.perf_counter, time.process_time
    results: dict[str, Any] = {}
    for solver in ["auto", *solvers]:
        # Limits are processor time, too, because others may use the machine; conic runs in a process of its own.
        deadline.perf_counter = wall_clock if solver == "conic" else cpu_clock  # type: ignore[attr-defined]
        results[solver] = fastest(problem, solver, cap, seed)
        if solver == "auto" and results["auto"]["gap"] <= TOL:
            # A second more: if there is little time, also the least-squares fit at the start is done in a hurry.
            cap = min(cap, MARKED * results["auto"]["seconds"] + 1.0)
    if results["auto"]["seconds"] < SHORT:
        # The first fits of a process pay for memory that the system hands out.
        results["auto"] = min(results["auto"], fastest(problem, "auto", cap, seed), key=lambda r: r["seconds"])
    return results


def run(problem: Problem, cap: float, seed: int, solvers: list[str]) -> dict[str, Any] | None:
    """The same in a process of its own; None if it failed."""
    command = [sys.executable, __file__, "--one", json.dumps([*problem, cap, seed, solvers])]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
    if done.returncode:
        print(f"{problem.name}: {(done.stderr.splitlines() or ['killed'])[-1]}", file=sys.stderr)
        return None
    results: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results


def cell(result: dict[str, Any] | None) -> str:
    """Seconds, with the gap if it is too large."""
    if result is None:
        return ""
    return f"{result['seconds']:.2f}" + ("" if result["gap"] <= TOL else f" ({result['gap']:.0e})")


def compared(fits: dict[str, Any], chosen: str = "auto") -> tuple[float, bool]:
    """Time of the chosen solver divided by that of the best one, and whether it loses.

    The ratio is NaN if the chosen solver did not reach the gap in the time that it had.
    """
    fit = fits.get(chosen)
    times = [r["seconds"] for name, r in fits.items() if name != "auto" and r is not None and r["gap"] <= TOL]
    if fit is None or fit["gap"] > TOL:
        return float("nan"), bool(times)
    ratio = fit["seconds"] / min([fit["seconds"], *times])
    return ratio, ratio > MARKED


def verdict(row: dict[str, Any]) -> str:
    """Ratio of the times of "auto" and of the best solver, marked where "auto" loses."""
    ratio, loses = compared(row["fits"])
    return ("-" if ratio != ratio else f"{ratio:.2f}") + " **" * loses


def chosen(problem: Problem, seed: int) -> list[str]:
    """Solvers among which "auto" chooses at present, in the order of their estimates."""
    from skspo._training.in_memory import InMemoryObjective
    from skspo.losses import SPOPlusLoss
    from skspo.solvers import choose_solvers

    region, X, C = make(problem, seed)
    return choose_solvers(InMemoryObjective(SPOPlusLoss(region), X, C, alpha=problem.alpha))


def replay(problem: Problem, row: dict[str, Any]) -> tuple[str, bool]:
    """A line about the present choice, by the stored times of its first solver, and whether it loses."""
    names = chosen(problem, row["seed"])
    ratio, loses = compared(row["fits"], names[0])
    known = row["fits"]["auto"]["solver"]
    change = "" if names[0] == known else f", was {known}"
    return f"{problem.name}: {', '.join(names)}{change}; {ratio:.2f}" + " **" * loses, loses


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a dozen problems")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--solvers", default=",".join(SOLVERS), help="comma-separated")
    parser.add_argument("--cap", type=float, default=60.0, help="time limit of a fit in seconds")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--missing", action="store_true", help="only rows that are not in the results beside --out")
    parser.add_argument("--replay", action="store_true", help="run nothing: the present choice by the stored times")
    out_option(parser)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        *fields, cap, seed, solvers = json.loads(args.one)
        print(json.dumps(measure(Problem(*fields), cap, seed, solvers)))
        return
    solvers = args.solvers.split(",")
    table = Table(
        "auto",
        key=("problem",),
        columns={
            "problem": "",
            "auto": lambda row: row["fits"]["auto"]["solver"],
            "seconds": lambda row: cell(row["fits"]["auto"]),
            **{name: lambda row, name=name: cell(row["fits"].get(name)) for name in solvers},  # type: ignore[misc]
            "auto / best": verdict,
        },
        packages=("numpy", "scipy", "numba", "cvxpy", "clarabel", "highspy"),
        file=args.out,
        quick=args.quick,
    )
    problems = sorted(grid(args.quick), key=lambda problem: problem.n)
    selected = [problem for problem in problems if args.only in problem.name]
    known = {row["problem"]: row for row in table.rows}
    if args.replay:
        lines = [replay(problem, known[problem.name]) for problem in selected if problem.name in known]
        print("\n".join(line for line, _ in lines))
        print(f"\nThe first solver loses in {sum(loses for _, loses in lines)} of {len(lines)} rows.")
        return
    print(table.head())
    for problem in selected:
        if args.missing and problem.name in known:
            continue
        fits = run(problem, args.cap, args.seed, solvers)
        if fits is not None:
            row = {"problem": problem.name, "limit": args.cap, "seed": args.seed, "fits": fits}
            print(table.add(row), flush=True)
    order = {problem.name: at for at, problem in enumerate(problems)}
    table.rows.sort(key=lambda row: order[row["problem"]])
    lost = [row["problem"] for row in table.rows if compared(row["fits"])[1]]
    about = f"Seed {args.seed}, cap {args.cap:g} s."
    table.write(about, [f'"auto" loses in {len(lost)} of {len(table.rows)} rows: {"; ".join(lost) or "-"}'])
    print(f"\n{len(lost)} rows where auto loses.")


if __name__ == "__main__":
    main()
