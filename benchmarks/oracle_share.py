"""Share of a fit that the region's oracle takes, and what a compiled oracle could gain at most.

``SPOPlusRegressor(region, solver="auto").fit(X, C)`` runs on one thread, with a timer around ``Region.solve_min``.  All
times are processor times, and the fit with the shortest time of --repeat fits is counted.  If a share s of the fit is
the oracle and a compiled oracle is f times as fast, the whole fit is 1 / (1 - s + s / f) times as fast, and less than
1 / (1 - s) whatever f is.  The factors f were measured for C kernels on one thread.

    python benchmarks/oracle_share.py            a few minutes
    python benchmarks/oracle_share.py --quick    a tenth of the samples, as a test
    python benchmarks/oracle_share.py --out docs/benchmarks/README.md     also write table and results/oracle_share.json
"""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", BLIS_NUM_THREADS="1", RAYON_NUM_THREADS="1"
)

import argparse
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from results import Table, out_option
from sklearn.exceptions import ConvergenceWarning

import skspo as sk
from skspo.datasets import make_cost_sensitive_classification, make_knapsack, make_portfolio, make_shortest_path
from skspo.regions.base import Region

WANTED = 2.0  # a kernel is worth its code if a whole fit becomes this many times as fast

#: how many times as fast as the NumPy oracle a C kernel was, on one thread: the least and the most
PATHS, KNAPSACKS, ENTROPY = (3.4, 6.0), (1.4, 3.5), (3.6, 5.2)


class Case(NamedTuple):
    """A fit."""

    name: str
    region: Region
    make: Any  # function of the number of samples that returns X and C
    n: int
    factors: tuple[float, float] | None = None  # of a compiled oracle, where measured
    tol: float = 1e-6


def cases() -> Iterator[Case]:
    """Fits of ``benchmarks/exact.py`` whose oracle is NumPy code."""
    settings = {"degree": 4, "noise": 0.5, "random_state": 0}
    grid = partial(make_shortest_path, grid=(5, 5), **settings)
    yield Case("shortest path 5x5", sk.ShortestPath.grid(5, 5), grid, 1000, PATHS)
    yield Case("shortest path 5x5", sk.ShortestPath.grid(5, 5), grid, 10_000, PATHS)
    large = partial(make_shortest_path, grid=(10, 10), **settings)
    yield Case("shortest path 10x10", sk.ShortestPath.grid(10, 10), large, 300, PATHS)
    items = partial(make_knapsack, n_items=32, **settings)
    weights = np.random.default_rng(0).integers(3, 8, size=(2, 32))
    yield Case("0-1 knapsack 32x1, to 1e-3", sk.Knapsack(weights[0], 20), items, 1000, KNAPSACKS, 1e-3)
    yield Case("0-1 knapsack 32x2, to 1e-3", sk.Knapsack(weights, [20, 20]), items, 1000, KNAPSACKS, 1e-3)
    assets = partial(make_portfolio, n_assets=50, **settings)
    yield Case("entropy portfolio", sk.EntropySimplex(), assets, 1000, ENTROPY)
    classes = partial(make_cost_sensitive_classification, degree=2, noise=0.5, random_state=0)
    yield Case("ten classes", sk.Simplex(), classes, 100_000)


class Timed(NamedTuple):
    """Processor time of a fit, and that of the oracle with the number of its calls and rows."""

    fit: float
    oracle: float
    calls: int
    rows: int


@contextmanager
def timer() -> Iterator[list[float]]:
    """Measure the calls of ``Region.solve_min``: seconds, calls and rows."""
    total = [0.0, 0, 0]
    original = Region.solve_min

    def measured(self: Region, C: np.ndarray, *args: Any) -> np.ndarray:
        start = time.process_time()
        try:
            return original(self, C, *args)
        finally:
            total[0] += time.process_time() - start
            total[1] += 1
            total[2] += C.shape[0]

    Region.solve_min = measured  # type: ignore[method-assign]
    try:
        yield total
    finally:
        Region.solve_min = original  # type: ignore[method-assign]


def measure(case: Case, n: int, repeat: int) -> tuple[Timed, sk.SPOPlusRegressor]:
    """Fit several times; the fit that took the least time."""
    X, C = case.make(n)
    model = sk.SPOPlusRegressor(case.region, tol=case.tol)
    runs = []
    for _ in range(repeat):
        with timer() as oracle, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is printed
            start = time.process_time()
            model.fit(X, C)
            seconds = time.process_time() - start
        runs.append(Timed(seconds, oracle[0], int(oracle[1]), int(oracle[2])))
    return min(runs), model


def measured(case: Case, n: int, timed: Timed, model: sk.SPOPlusRegressor) -> dict[str, Any]:
    """One row of the table."""
    share = timed.oracle / timed.fit
    row = {"problem": case.name, "n": n, "d": model.intercept_.size, "solver": model.solver_}
    row |= {"gap": float(model.duality_gap_), "fit s": timed.fit, "calls": timed.calls, "oracle s": timed.oracle}
    row |= {"share": share, "limit": 1.0 / (1.0 - share), "possible": None}
    if case.factors is not None:
        row["possible"] = [1.0 / (1.0 - share + share / factor) for factor in case.factors]
    return row


COLUMNS = {
    "problem": "",
    "n": ",",
    "d": "d",
    "solver": "",
    "gap": ".0e",
    "fit s": ".3f",
    "calls": "d",
    "oracle s": ".3f",
    "share": ".0%",
    "possible": lambda row: "{:.2f} to {:.2f}".format(*row["possible"]) if row["possible"] else "-",
    "limit": ".2f",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="fits of each problem (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    out_option(parser)
    args = parser.parse_args()
    options = {"columns": COLUMNS, "packages": ("numpy", "scipy"), "file": args.out, "quick": args.quick}
    table = Table("oracle_share", key=("problem", "n"), **options)
    print(table.head())
    for case in cases():
        n = case.n // 10 if args.quick else case.n
        print(table.add(measured(case, n, *measure(case, n, args.repeat))), flush=True)
    worth = [f"{row['problem']}, n={row['n']:,}" for row in table.rows if row["limit"] >= WANTED]
    verdict = f"The oracle takes half of the fit or more, so that a factor of {WANTED:g} is possible at all: " + (
        "; ".join(worth) if worth else "nowhere."
    )
    print(verdict)
    table.write(notes=[verdict])


if __name__ == "__main__":
    main()
