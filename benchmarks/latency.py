"""In production: milliseconds of one decision, and seconds of training again every night, with and without warm start.

    python benchmarks/latency.py [--calls 300] [--only decisions]
    python benchmarks/latency.py --quick                              few calls, two regions, as a test
    python benchmarks/latency.py --out docs/benchmarks/README.md      also write both tables

"decide" is ``model.decide`` with one row of features, prediction and checks included; "oracle" is ``region.argmin``
with one row of costs; "of 1,000" is one row of ``model.decide`` with 1,000 rows; "scipy" is ``scipy.optimize.linprog``
or ``milp`` with one row of costs, where the region is written in their constraints.  Milliseconds of processor time,
medians.

Training again: ten nights, each with one percent more samples than the night before.  ``warm_start=True`` starts at the
model of the night before.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from results import Table, out_option  # first: it also limits numpy to one thread

import numpy as np  # isort: skip
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import skspo as sk
from skspo.datasets import make_cost_sensitive_classification, make_shortest_path

P, ROWS, NIGHTS = 5, 1000, 10


def regions() -> dict[str, tuple[sk.Region, int]]:
    """Regions and their numbers of costs."""
    rng = np.random.default_rng(0)
    A, B, weights = rng.uniform(size=(15, 30)), rng.uniform(size=(3, 30)), rng.integers(3, 9, (2, 16))
    return {
        "Simplex, 10": (sk.Simplex(), 10),
        "ShortestPath 5x5, 40": (sk.ShortestPath.grid(5, 5), 40),
        "ShortestPath 20x20, 760": (sk.ShortestPath.grid(20, 20), 760),
        "TopK, 50": (sk.TopK(5), 50),
        "Knapsack, one capacity, 50": (sk.Knapsack(rng.integers(3, 9, 50), 60, sense="min"), 50),
        "Knapsack, two capacities, 16": (sk.Knapsack(weights, [20, 20], sense="min"), 16),
        "Assignment 10x10, 100": (sk.Assignment(10), 100),
        "Polyhedron, 15 rows, 30": (sk.Polyhedron(A_ub=A, b_ub=A.sum(axis=1) / 3, bounds=(0, 1)), 30),
        "MixedInteger, 3 rows, 20": (sk.MixedInteger(B[:, :20], B[:, :20].sum(axis=1) / 3, bounds=(0, 1)), 20),
        "MixedInteger, 3 rows, 20, one not integer": (
            sk.MixedInteger(B[:, :20], B[:, :20].sum(axis=1) / 3, bounds=(0, 1), integrality=[1] * 19 + [0]),
            20,
        ),
        "MixedInteger, 3 rows, 30": (sk.MixedInteger(B, B.sum(axis=1) / 3, bounds=(0, 1)), 30),
        "Markowitz, 20": (sk.Markowitz(np.eye(20) + 0.1, 0.2), 20),
    }


def milliseconds(call: Callable[[int], object], calls: int, before: int = 2) -> float:
    """Median processor time of a call, after some others."""
    seconds = []
    for i in range(calls + before):
        start = time.process_time()
        call(i)
        seconds.append(time.process_time() - start)
    return 1e3 * float(np.median(seconds[before:]))


def decisions(name: str, calls: int) -> dict[str, float | str]:
    region, d = regions()[name]
    rng = np.random.default_rng(1)
    X, X_new = rng.normal(size=(200, P)), rng.normal(size=(ROWS, P))
    C = rng.uniform(1, 2, (200, d)) + X @ rng.uniform(-0.3, 0.3, (P, d))
    C = -C if name.startswith(("Knapsack", "MixedInteger", "Polyhedron")) else C
    model = sk.TwoStageRegressor(region=region).fit(X, C)
    C_hat = model.predict(X_new)
    scipy = None
    if isinstance(region, sk.Polyhedron | sk.MixedInteger):
        few = calls if isinstance(region, sk.Polyhedron) else min(calls, 30)  # up to a tenth of a second each
        scipy = milliseconds(lambda i: by_scipy(region, C_hat[i]), few)
    return {
        "region": name,
        "decide": milliseconds(lambda i: model.decide(X_new[i : i + 1]), calls),
        "oracle": milliseconds(lambda i: model.region_.argmin(C_hat[i]), calls),
        "of 1,000": milliseconds(lambda i: model.decide(X_new), 1, before=0) / ROWS,
        "scipy": scipy,
    }


def by_scipy(region: sk.Polyhedron | sk.MixedInteger, c: np.ndarray) -> np.ndarray:
    if isinstance(region, sk.MixedInteger):
        limit = LinearConstraint(region.A_ub, ub=region.b_ub)
        return milp(
            c, constraints=limit, bounds=Bounds(0, 1), integrality=np.broadcast_to(region.integrality, c.size)
        ).x
    return linprog(c, A_ub=region.A_ub, b_ub=region.b_ub, bounds=region.bounds).x


def retraining(problem: str, solver: str, alpha: float, n: int, nights: int) -> dict[str, float | str]:
    if problem == "ten classes":
        region: sk.Region = sk.Simplex()
        X, C = make_cost_sensitive_classification(int(1.5 * n), 10, degree=4, random_state=5)
    else:
        region = sk.ShortestPath.grid(5, 5)
        X, C = make_shortest_path(int(1.5 * n), degree=4, random_state=5)
    seconds, values = {}, {}
    for warm in (False, True):
        model = sk.SPOPlusRegressor(region, solver=solver, alpha=alpha, warm_start=warm)
        model.fit(X[:n], C[:n])
        start = time.process_time()
        for night in range(1, nights + 1):
            rows = n + night * n // 100
            model.fit(X[:rows], C[:rows])
        seconds[warm], values[warm] = time.process_time() - start, model.objective_
    row = {"problem": problem, "alpha": alpha, "solver": solver, "n": n, "chosen": model.solver_}
    row |= {"cold, s": seconds[False] / nights, "warm, s": seconds[True] / nights}
    return row | {"ratio": seconds[False] / seconds[True], "difference": abs(values[True] - values[False])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--only", choices=["decisions", "retraining"])
    parser.add_argument("--quick", action="store_true")
    out_option(parser)
    args = parser.parse_args()
    if args.only != "retraining":
        table_of_decisions(args)
    if args.only != "decisions":
        table_of_retraining(args)


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    return {"packages": ("numpy", "highspy", "scipy"), "file": args.out, "quick": args.quick}


def table_of_decisions(args: argparse.Namespace) -> None:
    names = list(regions())[:2] if args.quick else list(regions())
    columns = {"region": "", "decide": ".3f", "oracle": ".3f", "of 1,000": ".4f", "scipy": ".2f"}
    table = Table("latency", key=("region",), columns=columns, **options_of(args))
    print(table.head())
    for name in names:
        print(table.add(decisions(name, 10 if args.quick else args.calls)), flush=True)
    table.write("Milliseconds.")


def table_of_retraining(args: argparse.Namespace) -> None:
    columns = {"problem": "", "alpha": "g", "n": ",", "solver": "", "chosen": "", "cold, s": ".3f", "warm, s": ".3f"}
    columns |= {"ratio": ".2f"}
    table = Table("retraining", key=("problem", "alpha", "solver"), columns=columns, **options_of(args))
    print(table.head())
    n, nights = (200, 2) if args.quick else (2000, NIGHTS)
    for problem in ("ten classes", "5x5 paths"):
        for alpha in (0.0, 0.1):
            for solver in ("auto",) if args.quick else ("auto", "bundle", "interior-point", "dual"):
                if solver != "dual" or alpha > 0:
                    print(table.add(retraining(problem, solver, alpha, n, nights)), flush=True)
    table.write("Seconds of one night.")


if __name__ == "__main__":
    main()
