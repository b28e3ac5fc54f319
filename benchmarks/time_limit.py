"""Accuracy of ``time_limit``: seconds by which fits exceeded it, by solver, region and kind of data.

    python benchmarks/time_limit.py                     limits of 0.5, 1 and 2 seconds, about four minutes
    python benchmarks/time_limit.py --limits 0.2 5      other limits
    python benchmarks/time_limit.py --only bundle dask  some of the cases
    python benchmarks/time_limit.py --only large        cases in which a single step may take longer than the limit
    python benchmarks/time_limit.py --quick             two cases with a limit of half a second, as a test
    python benchmarks/time_limit.py --out docs/benchmarks/README.md     also write table and results/time_limit.json

A limit may be exceeded by at most a tenth plus half a second: "kept" says whether this holds.  "Longest step" is the
largest difference of times in ``history_``, without the certificate; fits that converge before the limit are marked,
because they do not test it.  Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

from results import Table, out_option  # first: it also limits numpy to one thread

import cvxpy as cp  # isort: skip
import numpy as np  # isort: skip
from sklearn.exceptions import ConvergenceWarning

import skspo as sk
from skspo.datasets import make_cost_sensitive_classification, make_knapsack, make_portfolio, make_shortest_path

Case = tuple[Callable[[float], Any], Callable[[], Any]]


def classes(n: int, p: int = 5, d: int = 10) -> Any:
    return make_cost_sensitive_classification(n, p, d, degree=2, noise=0.5, random_state=0)


def paths(n: int, side: int = 5) -> Any:
    return make_shortest_path(n, 5, (side, side), degree=6, noise=0.5, random_state=0)


def portfolio(n: int, d: int) -> Any:
    return make_portfolio(n, 5, d, degree=6, random_state=0)


def oracle(C: np.ndarray) -> np.ndarray:
    return np.eye(C.shape[1])[C.argmin(axis=1)]


def spo_plus(region: Any, **params: Any) -> Callable[[float], Any]:
    return lambda limit: sk.SPOPlusRegressor(region, time_limit=limit, random_state=0, **params)


grid = sk.ShortestPath.grid(5, 5)
ball = sk.CvxpyRegion(lambda w: [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.8], n_dim=6)
lasso = {"alpha": 0.01, "l1_ratio": 1.0}
CASES: dict[str, Case] = {
    "interior-point, Simplex": (spo_plus(sk.Simplex(), solver="interior-point"), lambda: classes(20_000)),
    "interior-point, ShortestPath": (spo_plus(grid, solver="interior-point"), lambda: paths(2_000)),
    "interior-point, ShortestPath, l1": (spo_plus(grid, solver="interior-point", **lasso), lambda: paths(2_000)),
    "interior-point, Markowitz": (spo_plus(sk.Markowitz(np.eye(10) + 0.1, 0.4)), lambda: portfolio(300, 10)),
    "bundle, ShortestPath": (spo_plus(grid, solver="bundle"), lambda: paths(4_000)),
    "bundle, ShortestPath, many samples": (spo_plus(grid, solver="bundle"), lambda: paths(20_000)),
    "bundle, Knapsack": (spo_plus(sk.Knapsack(np.arange(3, 35), 120)), lambda: make_knapsack(300, random_state=0)),
    "bundle, OracleRegion": (spo_plus(sk.OracleRegion(oracle, 10)), lambda: classes(4_000)),
    "lbfgs, EntropySimplex": (spo_plus(sk.EntropySimplex(), solver="lbfgs"), lambda: portfolio(4_000, 50)),
    "lbfgs, EntropySimplex, l1": (spo_plus(sk.EntropySimplex(), solver="lbfgs", **lasso), lambda: portfolio(4_000, 50)),
    "newton, EntropySimplex": (spo_plus(sk.EntropySimplex(), solver="newton"), lambda: portfolio(4_000, 20)),
    "auto, LqBall": (spo_plus(sk.LqBall(1.5)), lambda: portfolio(10_000, 50)),
    "sgd, ShortestPath": (spo_plus(grid, solver="sgd"), lambda: paths(2_000)),
    "conic (HiGHS), Simplex": (spo_plus(sk.Simplex(), solver="conic"), lambda: classes(2_000)),
    "conic (Clarabel), EntropySimplex": (spo_plus(sk.EntropySimplex(), solver="conic"), lambda: portfolio(200, 20)),
    "conic (Clarabel), CvxpyRegion": (spo_plus(ball), lambda: portfolio(100, 6)),
    "SPOPlusRegressorCV, Box": (lambda t: sk.SPOPlusRegressorCV(time_limit=t), lambda: classes(2_000)),
    "SPORegressor line-search, Simplex": (
        lambda t: sk.SPORegressor(sk.Simplex(), time_limit=t, random_state=0),
        lambda: classes(500),
    ),
    "SPORegressor lbfgs, EntropySimplex": (
        lambda t: sk.SPORegressor(sk.EntropySimplex(), time_limit=t, random_state=0),
        lambda: portfolio(1_000, 50),
    ),
    "SPORegressor milp, Simplex": (
        lambda t: sk.SPORegressor(sk.Simplex(), solver="milp", time_limit=t, random_state=0),
        lambda: classes(30),
    ),
}

markowitz = sk.Markowitz(np.eye(300) + 0.1, 0.4)
large_grid, conic_grid = sk.ShortestPath.grid(20, 20), sk.ShortestPath.grid(8, 8)
clarabel = sk.solvers.ConicSolver("CLARABEL")
CASES |= {
    "large: Simplex, p = 1000": (spo_plus(sk.Simplex()), lambda: classes(2_000, 1_000)),
    "large: Simplex, p = 1000, ridge": (spo_plus(sk.Simplex(), alpha=0.01), lambda: classes(2_000, 1_000)),
    "large: interior-point, p = 1000": (spo_plus(sk.Simplex(), solver="interior-point"), lambda: classes(2_000, 1_000)),
    "large: bundle, p = 1000": (spo_plus(sk.Simplex(), solver="bundle"), lambda: classes(2_000, 1_000)),
    "large: conic, p = 1000": (spo_plus(sk.Simplex(), solver="conic"), lambda: classes(2_000, 1_000)),
    "large: Simplex, p = 2000": (spo_plus(sk.Simplex()), lambda: classes(2_000, 2_000)),
    "large: Simplex, d = 300, p = 100": (spo_plus(sk.Simplex()), lambda: classes(2_000, 100, 300)),
    "large: Markowitz, d = 300": (spo_plus(markowitz), lambda: portfolio(100, 300)),
    "large: ShortestPath 20x20": (spo_plus(large_grid), lambda: paths(300, 20)),
    "large: interior-point, 20x20": (spo_plus(large_grid, solver="interior-point"), lambda: paths(300, 20)),
    "large: conic (HiGHS), 8x8": (spo_plus(conic_grid, solver="conic"), lambda: paths(800, 8)),
    "large: conic (Clarabel), 8x8": (spo_plus(conic_grid, solver=clarabel), lambda: paths(800, 8)),
    "large: newton, d = 200": (spo_plus(sk.EntropySimplex(), solver="newton"), lambda: portfolio(1_000, 200)),
    "large: SPOPlusRegressorCV, 2000 alphas": (
        lambda t: sk.SPOPlusRegressorCV(sk.Simplex(), n_alphas=2_000, time_limit=t),
        lambda: classes(200),
    ),
    "large: SPOPlusRegressorCV, 10x10": (
        lambda t: sk.SPOPlusRegressorCV(sk.ShortestPath.grid(10, 10), time_limit=t),
        lambda: paths(300, 10),
    ),
    "large: SPORegressor, p = 1000": (
        lambda t: sk.SPORegressor(sk.Simplex(), time_limit=t, random_state=0),
        lambda: classes(2_000, 1_000),
    ),
    "large: SPORegressor milp": (
        lambda t: sk.SPORegressor(sk.Simplex(), solver="milp", time_limit=t, random_state=0),
        lambda: classes(1_000, 50, 20),
    ),
}


class InChunks:
    """A fit to data that are read in chunks, or partitions of a dask array."""

    def __init__(self, limit: float, dask: bool) -> None:
        self.model, self.dask = sk.SPOPlusRegressor(grid, time_limit=limit), dask

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        if self.dask:
            import dask.array as da

            return self.model.fit(da.from_array(X, chunks=(1000, -1)), da.from_array(y, chunks=(1000, -1)))
        return self.model.fit_chunks(sk.ChunkedData.from_arrays(X, y, chunk_rows=1000))


CASES["chunks, ShortestPath"] = (lambda t: InChunks(t, dask=False), lambda: paths(10_000))
CASES["dask, ShortestPath"] = (lambda t: InChunks(t, dask=True), lambda: paths(10_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--quick", action="store_true", help="two cases, half a second")
    out_option(parser)
    args = parser.parse_args()
    if args.quick:
        args.limits, args.only = [0.5], ["interior-point, Simplex", "interior-point, Markowitz"]
    columns = {"case": "", "limit, s": "g", "took, s": ".2f", "beyond": "+.0%", "kept": "", "longest step, s": ".3f"}
    columns |= {"gap": ".0e", "stopped by": ""}
    options = {"packages": ("numpy", "scipy", "cvxpy"), "file": args.out, "quick": args.quick}
    table = Table("time_limit", key=("case", "limit, s"), columns=columns, **options)
    print(table.head())
    for name, (make, data) in CASES.items():
        if not any(word in name for word in args.only):
            continue
        X, C = data()
        for limit in args.limits:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                start = time.perf_counter()
                model = make(limit).fit(X, C)
                took = time.perf_counter() - start
            texts = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
            why = "time_limit" if any("time_limit=" in text for text in texts) else "other" if texts else "converged"
            step = np.diff(model.history_["time"][:-1], prepend=0.0).max(initial=0.0)
            kept = "yes" if took <= 1.1 * limit + 0.5 else "no"
            row = {"case": name, "limit, s": limit, "took, s": took, "beyond": took / limit - 1, "kept": kept}
            row |= {"longest step, s": step, "gap": float(model.duality_gap_), "stopped by": why}
            print(table.add(row), flush=True)
    kept = sum(row["kept"] == "yes" for row in table.rows)
    table.write(notes=[f"kept in {kept} of {len(table.rows)} fits"])


if __name__ == "__main__":
    main()
