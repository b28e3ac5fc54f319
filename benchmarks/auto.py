"""Does ``solver="auto"`` ever take much longer than the best solver that can be asked for?

Three groups of problems (see ``auto_problems``): "grid" has regular sizes, "families" what is not on the grid (l1
penalties, shared models, products, regions of users, masks, weights that decay, sparse features, ...), and "drawn" has
sizes, penalties and data that are drawn at random.  The seed of the draw is printed, and another one each time, so that
nobody can tune to it; ``--seed`` repeats a draw.

Every problem has a process of its own, on one thread, a copy of one that has loaded the compiled kernels.  Seconds are
processor time, that of processes of back-ends included; of fits of less than a second the shortest of up to three.
A solver counts if it reaches the certified gap of the row, 1e-6 unless its name says otherwise.  "auto" has ``--cap``
seconds.  Where it reaches the gap, every other solver that can serve the problem has the time of "auto" and LEAST
seconds more, because it is no better if it needs longer; elsewhere it has the whole cap.

The last column is the time of "auto" divided by that of the best solver, where times below EQUAL count as EQUAL.  The
criterion is: at most 2 in 95 % of the rows, never above 4, and no row where another solver reaches the gap and "auto"
does not.  Rows above 2 are marked.

    python benchmarks/auto.py                              families and drawn problems, half an hour on an idle machine
    python benchmarks/auto.py --group grid                 the grid, an hour
    python benchmarks/auto.py --group drawn --seed 123     the same draw again
    python benchmarks/auto.py --quick                      some problems, minutes
    python benchmarks/auto.py --only streets               rows whose name contains "streets"
    python benchmarks/auto.py --out docs/benchmarks/README.md              also write table and results/auto.json
    python benchmarks/auto.py --out docs/benchmarks/README.md --missing    only rows that are not in results/auto.json
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import itertools
import resource
import secrets
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from auto_problems import Problem, drawn, families, grid, make
from results import Table, out_option

#: the criterion: largest ratio to the best solver in this share of the rows, and in any row
MARKED, SHARE, WORST = 2.0, 0.95, 4.0

#: seconds below which times are equal: a fit has set-up and a certificate of about 10 to 40 ms, whatever the solver,
#: and nobody waits for the difference
EQUAL = 0.05

#: seconds that other solvers have beyond the time of "auto", so that those that are faster are not hurried at the end
LEAST = 0.5

#: number of fits of which the shortest counts, and the seconds in total after which there is no other
REPEATS, SHORT = 3, 1.0

#: seed of the data of problems that are not drawn
SEED = 7

SOLVERS = ("dual", "interior-point", "bundle", "intervals", "lbfgs", "newton", "conic", "sgd")


def processor_time() -> float:
    """Seconds of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def fastest(problem: Problem, solver: str, cap: float) -> dict[str, Any] | None:
    """Shortest of a few fits; None if the solver cannot serve the problem."""
    import skspo as sk

    best: dict[str, Any] | None = None
    spent = 0.0
    for _ in range(REPEATS):
        data = make(problem, SEED)
        model = sk.SPOPlusRegressor(
            data.region,
            solver=solver,
            alpha=problem.alpha,
            l1_ratio=problem.l1_ratio,
            tol=problem.tol,
            time_limit=cap,
            random_state=0,
            **data.params,
        )
        start = processor_time()
        try:
            model.fit(data.X, data.C, **data.fit)
        except (ValueError, MemoryError):
            if solver == "auto":
                raise
            return None
        seconds = processor_time() - start
        if best is None or seconds < best["seconds"]:
            best = {"seconds": seconds, "gap": float(model.duality_gap_), "solver": model.solver_}
        spent += seconds
        if spent > SHORT:
            break
    return best


def warm_up() -> None:
    """Load the kernels for decisions and for points."""
    import numpy as np

    import skspo as sk

    rng = np.random.default_rng(0)
    small = rng.normal(size=(40, 3)), rng.normal(size=(40, 4))
    for kind in (sk.Simplex(), sk.TopK(2)):
        sk.SPOPlusRegressor(kind, solver="dual", alpha=0.1).fit(*small)


def measure(problem: Problem, cap: float, solvers: list[str]) -> dict[str, Any]:
    """Fits of one problem by all solvers, in this process."""
    from skspo._utils import limits

    warnings.simplefilter("ignore")
    wall_clock = limits.perf_counter
    results: dict[str, Any] = {}
    whole = cap
    for solver in ["auto", *solvers]:
        # Limits are processor time, too, because others may use the machine; conic runs in a process of its own.
        limits.perf_counter = wall_clock if solver == "conic" else time.process_time
        results[solver] = fastest(problem, solver, cap)
        if solver == "auto" and results["auto"]["gap"] <= problem.tol:
            cap = min(cap, results["auto"]["seconds"] + LEAST)
    if results["auto"]["seconds"] < SHORT:
        # The first fits of a process pay for memory that the system hands out.
        limits.perf_counter = time.process_time
        results["auto"] = min(results["auto"], fastest(problem, "auto", whole), key=lambda r: r["seconds"])
    return results


def run(problem: Problem, cap: float, solvers: list[str]) -> dict[str, Any] | None:
    """The same in a copy of this process; None if it failed."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        try:
            return pool.submit(measure, problem, cap, solvers).result()
        except Exception as error:
            print(f"{problem.name}: {str(error) or type(error).__name__}", file=sys.stderr)
            return None


def cell(result: dict[str, Any] | None, tol: float) -> str:
    """Seconds, with the gap if it is too large."""
    if result is None:
        return ""
    gap = result["gap"]
    reached = "" if gap is not None and gap <= tol else f" ({'-' if gap is None else format(gap, '.0e')})"
    return f"{result['seconds']:.2f}{reached}"


def ratio(row: dict[str, Any]) -> float | None:
    """Time of "auto" divided by that of the best solver; infinite if only another one reached the gap.

    None if no solver did.
    """
    reached = {
        name: max(fit["seconds"], EQUAL)
        for name, fit in row["fits"].items()
        if fit is not None and fit["gap"] is not None and fit["gap"] <= row["tol"]
    }
    if not reached:
        return None
    return reached.get("auto", float("inf")) / min(reached.values())


def verdict(row: dict[str, Any]) -> str:
    """The ratio, marked if it is too large."""
    found = ratio(row)
    return "-" if found is None else f"{found:.2f}" + " **" * (found > MARKED)


def criterion(rows: list[dict[str, Any]]) -> list[str]:
    """Lines that say whether the criterion is met."""
    ratios = {row["problem"]: found for row in rows if (found := ratio(row)) is not None}
    good = sum(found <= MARKED for found in ratios.values())
    worst = max(ratios.values(), default=1.0)
    lost = [name for name, found in ratios.items() if found == float("inf")]
    met = good >= SHARE * len(ratios) and worst <= WORST
    return [
        f'criterion {"met" if met else "not met"}: "auto" is within {MARKED:g} of the best solver in {good} of '
        f"{len(ratios)} rows ({good / max(len(ratios), 1):.1%}, wanted {SHARE:.0%}); the largest ratio is {worst:.2f} "
        f"(wanted at most {WORST:g}); {len(rows) - len(ratios)} more rows that no solver closed",
        f"rows that another solver closed and auto did not: {'; '.join(lost) or '-'}",
        f"rows above {MARKED:g}: {'; '.join(f'{name} ({r:.2f})' for name, r in ratios.items() if r > MARKED) or '-'}",
    ]


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="some small problems")
    parser.add_argument("--group", default="families,drawn", help="comma-separated: grid, families, drawn")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument(
        "--largest", type=float, default=float("inf"), help="rows with at most so many n times p times d"
    )
    parser.add_argument("--solvers", default=",".join(SOLVERS), help="comma-separated")
    parser.add_argument("--cap", type=float, default=60.0, help="time limit of a fit in seconds")
    parser.add_argument(
        "--seed", type=int, help="that of the problems that are drawn; another one each time by default"
    )
    parser.add_argument("--number", type=int, default=44, help="number of problems that are drawn")
    parser.add_argument("--missing", action="store_true", help="only rows that are not in the results beside --out")
    out_option(parser)
    args = parser.parse_args()
    warm_up()
    seed = secrets.randbelow(1_000_000) if args.seed is None else args.seed
    number = 4 if args.quick else args.number
    groups = {"grid": grid(args.quick), "families": families(args.quick), "drawn": drawn(seed, number, args.quick)}
    solvers = args.solvers.split(",")
    table = Table(
        "auto",
        key=("problem",),
        columns={
            "problem": "",
            "auto": lambda row: row["fits"]["auto"]["solver"],
            "seconds": lambda row: cell(row["fits"]["auto"], row["tol"]),
            **{name: lambda row, name=name: cell(row["fits"].get(name), row["tol"]) for name in solvers},  # type: ignore[misc]
            "auto / best": verdict,
        },
        packages=("numpy", "scipy", "numba", "cvxpy", "clarabel", "highspy"),
        file=args.out,
        quick=args.quick,
    )
    problems = {
        name: sorted(group, key=lambda problem: problem.n * problem.p * problem.d) for name, group in groups.items()
    }
    order = {problem.name: at for at, problem in enumerate(itertools.chain(*problems.values()))}
    table.rows[:] = [row for row in table.rows if row["problem"] in order]  # no rows of another draw
    known = {row["problem"] for row in table.rows}
    print(f"seed of the drawn problems: {seed}\n\n{table.head()}")
    for group in args.group.split(","):
        for problem in problems[group]:
            size = float(problem.n * problem.p * problem.d)
            if args.only not in problem.name or size > args.largest or (args.missing and problem.name in known):
                continue
            fits = run(problem, args.cap, solvers)
            if fits is not None:
                row = {"problem": problem.name, "tol": problem.tol, "limit": args.cap, "fits": fits}
                print(table.add(row), flush=True)
    table.rows.sort(key=lambda row: order[row["problem"]])
    notes = criterion(table.rows)
    table.write(f"Seed of the drawn problems {seed}, cap {args.cap:g} s.", notes)
    print("\n" + "\n".join(notes))


if __name__ == "__main__":
    main()
