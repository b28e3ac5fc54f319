"""Large models: what ``solver="auto"`` takes to a certified gap, on one thread, beside single solvers.

Every fit runs in a process of its own, after a small one that loads (or compiles) what the solver needs.  Seconds are
those of the processor for ``fit``, everything from arrays to the certificate.  MB is the peak of the process (VmHWM),
of which about 250 are imports.  A fit that reaches the time limit counts with the gap that it had then.  ``cap`` is in
seconds of the clock.

    python benchmarks/large.py                       everything, an hour or two
    python benchmarks/large.py --only path5          rows whose name contains "path5"
    python benchmarks/large.py --solvers auto,dual,interior-point,bundle --cap 60 --seed 3
    python benchmarks/large.py --before ../other     "auto" of another checkout as well, where the target is a ratio
    python benchmarks/large.py --quick               a few problems and a limit of 5 s, as a test
    python benchmarks/large.py --out docs/benchmarks/README.md     also write table and results/large.json
"""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", BLIS_NUM_THREADS="1", RAYON_NUM_THREADS="1"
)

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from results import Table, out_option
from scipy.sparse import csr_array

Data = tuple[Any, np.ndarray, np.ndarray]


def classes(n: int, p: int, d: int, seed: int, region: Any = None) -> Data:
    """Costs of d classes: squares of linear functions of twenty features (all, if fewer), with noise."""
    import skspo as sk

    rng = np.random.default_rng(seed)
    X, k = rng.normal(size=(n, p)), min(p, 20)
    C = (X[:, :k] @ rng.normal(size=(k, d)) / np.sqrt(k) + 1.0) ** 2 + 0.5 * rng.normal(size=(n, d))
    return sk.Simplex() if region is None else region(d, rng), X, C


def paths(n: int, p: int, size: int, seed: int) -> Data:
    """Costs of edges as in the literature: degree four, multiplicative noise of one half."""
    import skspo as sk
    from skspo.datasets import make_shortest_path

    X, C = make_shortest_path(n, p, (size, size), degree=4, noise=0.5, random_state=seed)
    return sk.ShortestPath.grid(size, size), X, C


def one_hot(n: int, p: int, d: int, seed: int) -> Data:
    """Five groups of categories, one of each per sample, as a CSR matrix."""
    import scipy.sparse as sp

    import skspo as sk

    rng = np.random.default_rng(seed)
    columns = np.column_stack([rng.choice(group, size=n) for group in np.array_split(np.arange(p), 5)])
    X = sp.csr_array((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 5)), shape=(n, p))
    return sk.Simplex(), X, X @ rng.normal(size=(p, d)) + rng.normal(size=(n, d))


def portfolios(n: int, d: int, seed: int) -> Data:
    """Returns of assets with a covariance of five factors, and a limit of the risk of half that of equal weights."""
    import skspo as sk
    from skspo.datasets import make_portfolio

    X, C = make_portfolio(n, 5, d, degree=4, noise=0.5, random_state=seed)
    factors = np.random.default_rng(seed).normal(size=(d, 5))
    covariance = factors @ factors.T / 5 + 0.5 * np.eye(d)
    return sk.Markowitz(covariance, 0.1), X, C


def top(d: int, rng: np.random.Generator) -> Any:
    import skspo as sk

    return sk.TopK(d // 20)


def box(d: int, rng: np.random.Generator) -> Any:
    import skspo as sk

    return sk.Box(-1.0, 1.0)


def knapsack(d: int, rng: np.random.Generator, integer: bool = False) -> Any:
    import skspo as sk

    weights = rng.integers(3, 9, size=d)
    return sk.Knapsack(weights, int(weights.sum() * 0.3), integer=integer)


def packing(d: int, rng: np.random.Generator) -> Any:
    return knapsack(d, rng, True)


def assignment(d: int, rng: np.random.Generator) -> Any:
    import skspo as sk

    return sk.Assignment(round(d**0.5))


class Row(NamedTuple):
    """One problem."""

    make: Callable[[int], Data]
    params: dict[str, Any]
    tol: float
    target: str
    search: bool = False  # whether to choose among 20 penalties by five folds


RIDGE = {"alpha": 0.01}
ROWS: dict[str, Row] = {
    **{
        f"simplex10 p={p}": Row(lambda seed, p=p: classes(2000, p, 10, seed), RIDGE, 1e-6, target)  # type: ignore[misc]
        for p, target in ((200, "8 times today's"), (500, "25 times"), (1000, "1.5 times p=500"))
    },
    **{
        f"path5 p={p}": Row(lambda seed, p=p: paths(1000, p, 5, seed), RIDGE, 1e-6, target)  # type: ignore[misc]
        for p, target in ((50, "-"), (100, "2 times"), (150, "2 times"), (200, "4 times"), (500, "3 s"))
    },
    "path5 n=10000 p=50": Row(lambda seed: paths(10_000, 50, 5, seed), RIDGE, 1e-6, "2 times"),
    "path20 alpha=0.1 ls": Row(
        lambda seed: paths(500, 5, 20, seed), {"alpha": 0.1, "prior": "least_squares"}, 1e-6, "2 s"
    ),
    "path20 alpha=0.1": Row(lambda seed: paths(500, 5, 20, seed), {"alpha": 0.1}, 1e-6, "10 s"),
    "path20 alpha=0.01": Row(lambda seed: paths(500, 5, 20, seed), RIDGE, 1e-5, "20 s"),
    "path30 alpha=0.1": Row(lambda seed: paths(500, 5, 30, seed), {"alpha": 0.1}, 1e-4, "60 s"),
    "top 50 of 1000": Row(lambda seed: classes(1000, 5, 1000, seed, top), RIDGE, 1e-4, "15 s"),
    "simplex1000": Row(lambda seed: classes(1000, 5, 1000, seed), RIDGE, 1e-4, "15 s"),
    "fractional knapsack1000": Row(lambda seed: classes(1000, 5, 1000, seed, knapsack), RIDGE, 1e-4, "15 s"),
    "box1000 alpha=0": Row(lambda seed: classes(1000, 5, 1000, seed, box), {"alpha": 0.0}, 1e-6, "2 s"),
    "assignment20": Row(lambda seed: classes(500, 5, 400, seed, assignment), RIDGE, 1e-4, "30 s"),
    "knapsack32 p=20": Row(lambda seed: classes(1000, 20, 32, seed, packing), RIDGE, 1e-6, "10 times bundle"),
    "one-hot p=2000": Row(lambda seed: one_hot(20_000, 2000, 10, seed), RIDGE, 1e-6, "3 s, 500 MB"),
    "simplex100 p=1000": Row(lambda seed: classes(5000, 1000, 100, seed), RIDGE, 1e-6, "20 s"),
    "simplex1000 p=1000": Row(lambda seed: classes(5000, 1000, 1000, seed), RIDGE, 1e-4, "300 s, 4 GB"),
    "path10 alpha=0": Row(lambda seed: paths(300, 5, 10, seed), {"alpha": 0.0}, 1e-6, "3 times"),
    "markowitz20": Row(lambda seed: portfolios(300, 20, seed), {"alpha": 0.0}, 1e-6, "2 times"),
    "markowitz100": Row(lambda seed: portfolios(300, 100, seed), {"alpha": 0.0}, 1e-6, "5 times"),
    "path5 p=50, 20 x 5 fits": Row(lambda seed: paths(1000, 50, 5, seed), {}, 1e-6, "5 times", search=True),
}


def peak() -> float:
    """Peak memory of this process in MB; NaN where the system does not say."""
    try:
        status = pathlib.Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measure(name: str, solver: str, seed: int, cap: float) -> dict[str, Any]:
    """Fit one row with one solver, in this process."""
    import skspo as sk

    row = ROWS[name]
    region, X, C = row.make(seed)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    # Loads numba and compiles, which is not part of the fit: decisions, points, and sparse features.
    small = rng.normal(size=(40, 3)), rng.normal(size=(40, 4))
    sparse = csr_array(small[0])
    sparse.resize(40, 60_000)  # smaller ones are made dense
    for warm in {solver, "dual"} & {"dual", "interior-point", "bundle", "auto"}:
        for kind, features in ((sk.Simplex(), small[0]), (sk.TopK(2), small[0]), (sk.Simplex(), sparse)):
            with contextlib.suppress(ValueError, TypeError):  # other checkouts may have no such solver
                sk.SPOPlusRegressor(kind, solver=warm, alpha=0.01).fit(features, small[1])
    estimator = sk.SPOPlusRegressorCV if row.search else sk.SPOPlusRegressor
    start = time.process_time()
    model = estimator(region, solver=solver, tol=row.tol, time_limit=cap, **row.params).fit(X, C)
    seconds = time.process_time() - start
    return {
        "solver": model.solver_,
        "seconds": seconds,
        "gap": float(model.duality_gap_),
        "objective": float(model.objective_),
        "n_iter": int(model.n_iter_),
        "MB": peak(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--solvers", default="auto", help="comma-separated")
    parser.add_argument("--before", help="folder of another checkout whose solver='auto' is measured, too")
    parser.add_argument("--cap", type=float, default=300.0, help="time limit of a fit in seconds")
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="a few problems, with a limit of 5 s")
    out_option(parser)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # row and solver, in the process of its own
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one, args.seed, args.cap)))
        return
    if args.quick:
        args.cap = min(args.cap, 5.0)
    table = Table(
        "large",
        key=("problem", "asked"),
        columns=COLUMNS,
        packages=("numpy", "scipy", "numba"),
        file=args.out,
        quick=args.quick,
    )
    print(table.head())
    for name, row in ROWS.items():
        if args.only not in name or (args.quick and name not in QUICK):
            continue
        before = run(name, "auto", args.before, args) if args.before and "times" in row.target else None
        for solver in args.solvers.split(","):
            line = {"problem": name, "asked": solver, "target": row.target, "tol": row.tol, "seed": args.seed}
            line |= {"limit": args.cap, **run(name, solver, str(pathlib.Path(__file__).parents[1]), args)}
            earlier = [old.get("before") for old in table.rows if table.key_of(old) == (name, solver)]
            other = before or (earlier[0] if earlier else None)
            if other and "seconds" in other and "seconds" in line:
                line["before"] = {"date": table.run["date"], **other}
                if other["gap"] <= row.tol:
                    line["ratio"] = other["seconds"] / line["seconds"]
            print(table.add(line), flush=True)
    table.write(f"Seed {args.seed}.")


def compared(row: dict[str, Any]) -> str:
    """What the other checkout took, and the ratio if it reached the tolerance."""
    if "before" not in row:
        return ""
    before, ratio = row["before"], f" ({row['ratio']:.1f} times)" if "ratio" in row else ""
    date = f", on {before['date']}" if before["date"] != row["run"]["date"] else ""
    return f"{before['solver']}, {before['seconds']:.2f} s, gap {before['gap']:.1e}, {before['MB']:.0f} MB{ratio}{date}"


COLUMNS = {
    "problem": "",
    "solver": "",
    "seconds": lambda row: f"{row['seconds']:.2f}" if "seconds" in row else row["failed"],
    "gap": ".1e",
    "objective": ".8g",
    "MB": ".0f",
    "before": compared,
    "target": "",
}
QUICK = ("simplex10 p=200", "path5 p=50", "one-hot p=2000", "markowitz20")


def run(name: str, solver: str, folder: str, args: argparse.Namespace) -> dict[str, Any]:
    """Result of a fit in a process of its own, with the package in this folder; or why there is none."""
    command = [sys.executable, __file__, "--one", name, solver, "--cap", str(args.cap), "--seed", str(args.seed)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": folder})
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1][:80]
        return {"solver": solver, "failed": why}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
