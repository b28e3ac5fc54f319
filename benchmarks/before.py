"""Is a fit slower than before?  Rows of ``exact.py`` and ``large.py`` with this checkout and with another one.

Fits with the two checkouts alternate, each in a process of its own on one thread, after a small fit that loads what is
needed.  Seconds are processor time, the least of the repetitions.

    git worktree add ../before v0.3.0
    python benchmarks/before.py ../before                     all rows, an hour
    python benchmarks/before.py ../before --only path5        rows whose name contains "path5"
    python benchmarks/before.py ../before --cap 60            a limit for every fit
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
from pathlib import Path
from typing import Any

import exact
import large

HERE = Path(__file__).parents[1]

#: repetitions, and seconds in total after which there is no other
REPEATS, LONG = 3, 20.0


def fit_exact(name: str) -> dict[str, Any]:
    """Fit a row of ``exact.py`` in this process."""
    warnings.simplefilter("ignore")
    case = next(case for case in exact.cases() if case.name == name)
    X, C = case.make(case.n)
    exact.fit(case, X[:40], C[:40])
    start = time.process_time()
    model, _ = exact.fit(case, X, C)
    return {"seconds": time.process_time() - start, "gap": float(model.duality_gap_), "solver": model.solver_}


def run(table: str, name: str, folder: Path, cap: float) -> dict[str, Any]:
    """Result of a fit in a process of its own."""
    command = [sys.executable, __file__, str(folder), "--cap", str(cap), "--one", table, name]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(folder)})
    if done.returncode:
        return {
            "solver": (done.stderr.strip().splitlines() or ["killed"])[-1][:60],
            "seconds": float("nan"),
            "gap": 1.0,
        }
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def shown(fit: dict[str, Any]) -> str:
    """Solver, seconds and gap."""
    return f"{fit['solver']} | {fit['seconds']:.2f} | {fit['gap']:.0e}"


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="folder of another checkout")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--cap", type=float, default=400.0, help="time limit of a fit of large.py in seconds")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        table, name = args.one
        print(json.dumps(fit_exact(name) if table == "exact" else large.measure(name, "auto", 100, args.cap)))
        return
    print(
        "| row | before | s | gap | now | s | gap | now / before |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    rows = [("exact", case.name) for case in exact.cases()] + [("large", name) for name in large.ROWS]
    for table, name in rows:
        if args.only not in name:
            continue
        fits: dict[Path, list[dict[str, Any]]] = {args.before.resolve(): [], HERE: []}
        while len(fits[HERE]) < REPEATS and sum(fit["seconds"] for both in fits.values() for fit in both) < LONG:
            for folder, done in fits.items():
                done.append(run(table, name, folder, args.cap))
        before, now = (min(done, key=lambda fit: fit["seconds"]) for done in fits.values())
        ratio = now["seconds"] / before["seconds"]
        print(f"| {table}: {name} | {shown(before)} | {shown(now)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
