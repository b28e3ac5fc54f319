"""Two threads or one: cross-validation by ``n_jobs``, and fits by the number of BLAS threads.

    python benchmarks/threads.py                     everything, three minutes on an idle machine with two cores
    python benchmarks/threads.py --only CV           rows whose kind contains "CV"
    python benchmarks/threads.py --quick             two small rows, as a test
    python benchmarks/threads.py --out docs/benchmarks/README.md     also write table and results/threads.json

Seconds are those of the clock, the least of several runs that alternate between one thread and two.  The ratio is that
of one thread to two: above one, threads gain.  Rows "BLAS" have ``n_jobs=1`` and let BLAS use one or two threads.
Every row has a process of its own.  "same" says whether decisions or coefficients are the same to the last bit (BLAS:
whether the objective is the same to 1e-6).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

#: fewest and most runs with each number of threads, and seconds after which no more than the fewest are made
FEWEST, MOST, SECONDS = 3, 100, 8.0

Row = tuple[str, str, int]  # kind, problem, samples

ROWS: list[Row] = [
    ("CV", "ShortestPath 5x5", 1_000),
    ("CV", "Simplex d=10", 2_000),
    ("BLAS", "ShortestPath 10x10", 300),
    ("BLAS", "ShortestPath 5x5", 10_000),
    ("BLAS", "Simplex d=10, p=200, ridge", 2_000),
    ("BLAS", "EntropySimplex d=50", 20_000),
    ("BLAS", "Simplex d=10", 100_000),
]
QUICK: list[Row] = [("CV", "Simplex d=10", 100), ("BLAS", "Simplex d=10", 300)]


def problem(name: str, n: int) -> tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]:
    """Region, features, costs and parameters of a fit."""
    import skspo as sk
    from skspo.datasets import make_portfolio, make_shortest_path

    kind, rng = name.split()[0].rstrip(","), np.random.default_rng(0)
    if kind == "ShortestPath":
        side = int(name.split("x")[-1])
        X, C = make_shortest_path(n, grid=(side, side), degree=4, noise=0.5, random_state=0)
        return sk.ShortestPath.grid(side, side), X, C, {}
    if kind == "Simplex":
        X = rng.normal(size=(n, 200 if "p=200" in name else 5))
        C = (X[:, :5] @ rng.normal(size=(5, 10)) + 3.0) ** 2 + rng.normal(size=(n, 10))
        return sk.Simplex(), X, C, {"alpha": 0.01} if "ridge" in name else {}
    X, C = make_portfolio(n, 5, 50, degree=4, noise=0.5, random_state=0)
    return sk.EntropySimplex(), X, C, {}


def task(row: Row) -> Callable[[int], np.ndarray]:
    """What is timed, with a number of threads; it returns what must not depend on it."""
    from threadpoolctl import threadpool_limits

    import skspo as sk

    kind, name, n = row
    region, X, C, params = problem(name, n)
    if kind == "BLAS":

        def fit(threads: int) -> np.ndarray:
            with threadpool_limits(threads, user_api="blas"):
                return np.array([sk.SPOPlusRegressor(region, **params).fit(X, C).objective_])

        return fit
    return lambda threads: sk.SPOPlusRegressorCV(region, n_jobs=threads, **params).fit(X, C).coef_


def measure(row: Row, seconds: float) -> dict[str, Any]:
    """Shortest times with one thread and with two, in this process."""
    warnings.simplefilter("ignore")
    run = task(row)
    results = {threads: run(threads) for threads in (1, 2)}  # also loads what is needed
    times: dict[int, list[float]] = {1: [], 2: []}
    start = time.perf_counter()
    while len(times[2]) < MOST and (len(times[2]) < FEWEST or time.perf_counter() - start < seconds):
        for threads in (1, 2):
            begun = time.perf_counter()
            run(threads)
            times[threads].append(time.perf_counter() - begun)
    one, two = min(times[1]), min(times[2])
    size = np.abs(results[1]).max()
    same = np.abs(results[1] - results[2]).max() <= (1e-6 * size if row[0] == "BLAS" else 0.0)
    return {"one thread, s": one, "two threads, s": two, "ratio": one / two, "same": "yes" if same else "no"}


def main() -> None:
    if sys.argv[1:2] == ["--one"]:  # in the process of its own, before ``results`` limits the number of BLAS threads
        row, seconds = json.loads(sys.argv[2])
        print(json.dumps(measure(tuple(row), seconds)))
        return
    from results import Table, out_option

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose kind contains this")
    parser.add_argument("--quick", action="store_true", help="two small rows")
    out_option(parser)
    args = parser.parse_args()
    columns = {"kind": "", "problem": "", "n": ",", "one thread, s": ".3g", "two threads, s": ".3g"}
    columns |= {"ratio": ".2f", "same": ""}
    options = {"packages": ("numpy", "scipy", "scikit-learn"), "file": args.out, "quick": args.quick}
    table = Table("threads", key=("kind", "problem", "n"), columns=columns, **options)
    print(table.head())
    for row in QUICK if args.quick else ROWS:
        if args.only not in row[0]:
            continue
        threads = "2" if row[0] == "BLAS" else "1"
        env = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        command = [sys.executable, __file__, "--one", json.dumps([row, 0.2 if args.quick else SECONDS])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env, check=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        print(table.add({**dict(zip(("kind", "problem", "n"), row, strict=True)), **figures}), flush=True)
    table.write(f"{os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
