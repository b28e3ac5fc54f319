"""Rows of costs per second: the oracles, compared with a solver that is called row by row.

The other methods, one core each:

    CVXPY    one problem per region, built once with the costs as a cp.Parameter and compiled once (DPP), then solved
             for each row with Clarabel (LP and cones) or HiGHS (integers): the fastest way to use CVXPY row by row
    HiGHS    scipy.optimize.linprog or milp, one call per row, on the same constraints as arrays

    python benchmarks/oracles.py            a minute
    python benchmarks/oracles.py --quick    seconds, fewer rows
    python benchmarks/oracles.py --out docs/benchmarks/README.md     also write table and results/oracles.json

Times are processor time.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", BLIS_NUM_THREADS="1")

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import cvxpy as cp
import numpy as np
from results import Table, out_option
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import skspo as sk
from skspo.regions._oracles.level_sets import entropy_argmin

FASTER = 500  # than CVXPY per row, on the 5x5 grid
ITERATIONS = 15  # of root finding at most, for 100,000 portfolios of 50 assets


def rows_per_second(solve: Callable[[np.ndarray], Any], C: np.ndarray, repeat: int = 3) -> float:
    """Best of a few runs, after a first one on a few rows, which fills the caches."""
    solve(C[:2])
    best = np.inf
    for _ in range(repeat):
        start = time.process_time()
        solve(C)
        best = min(best, time.process_time() - start)
    return len(C) / best


def cvxpy_rows(d: int, model: Callable[[cp.Variable], list[cp.Constraint]], solver: str = cp.CLARABEL, **kind: bool):
    """One CVXPY problem with a Parameter; returns the function that solves it row by row for the optimal values."""
    w, c = cp.Variable(d, **kind), cp.Parameter(d)
    problem = cp.Problem(cp.Minimize(c @ w), model(w))
    assert problem.is_dcp(dpp=True)

    def solve(C: np.ndarray) -> np.ndarray:
        values = np.empty(len(C))
        for i, row in enumerate(C):
            c.value = row
            values[i] = problem.solve(solver)
        return values

    return solve


def linprog_rows(form: Any):
    """One scipy call per row on the constraints of an InequalityForm."""

    def solve(C: np.ndarray) -> np.ndarray:
        bounds = np.column_stack([form.lower, form.upper])
        A_ub = form.A_ub if form.b_ub.size else None
        A_eq = form.A_eq if form.b_eq.size else None
        b_ub, b_eq = (form.b_ub if A_ub is not None else None), (form.b_eq if A_eq is not None else None)
        return np.array([linprog(c, A_ub, b_ub, A_eq, b_eq, bounds, method="highs").fun for c in C])

    return solve


def milp_rows(weights: np.ndarray, capacity: np.ndarray):
    limits = LinearConstraint(weights, ub=capacity)

    def solve(C: np.ndarray) -> np.ndarray:
        options = {"mip_rel_gap": 0.0}
        ones = np.ones(C.shape[1])
        return np.array(
            [milp(c, integrality=ones, bounds=Bounds(0, 1), constraints=limits, options=options).fun for c in C]
        )

    return solve


Solve = Callable[[np.ndarray], np.ndarray]


def duels(rng: np.random.Generator) -> Iterator[tuple[str, sk.Region, int, float, str, Solve]]:
    """Name, region, number of costs, rows relative to --rows, name and function of the other method."""

    def simplex(w: cp.Variable) -> list[cp.Constraint]:
        return [w >= 0, cp.sum(w) == 1]

    yield "Simplex", sk.Simplex(), 10, 1, "CVXPY", cvxpy_rows(10, simplex)
    yield "Box", sk.Box(), 10, 1, "CVXPY", cvxpy_rows(10, lambda w: [w >= 0, w <= 1])
    yield "TopK(5)", sk.TopK(5), 50, 1, "CVXPY", cvxpy_rows(50, lambda w: [w >= 0, w <= 1, cp.sum(w) == 5])
    yield "L1Ball", sk.L1Ball(), 50, 1, "CVXPY", cvxpy_rows(50, lambda w: [cp.norm1(w) <= 1])
    yield "LqBall(1.5)", sk.LqBall(1.5), 50, 1, "CVXPY", cvxpy_rows(50, lambda w: [cp.pnorm(w, 1.5, approx=False) <= 1])
    G = rng.normal(size=(50, 50)) / 7
    Q = G @ G.T + np.eye(50)
    yield (
        "Ellipsoid",
        sk.Ellipsoid(Q),
        50,
        1,
        "CVXPY",
        cvxpy_rows(50, lambda w: [cp.norm(np.linalg.cholesky(Q).T @ w) <= 1]),
    )
    r = -0.5 * (np.log(50) + np.log(49))
    yield (
        "EntropySimplex",
        sk.EntropySimplex(),
        50,
        1,
        "CVXPY",
        cvxpy_rows(50, lambda w: [cp.sum(cp.entr(w)) >= -r, cp.sum(w) == 1]),
    )
    barrier = 2 * 10 * np.log(10)
    yield (
        "LogBarrierSimplex",
        sk.LogBarrierSimplex(),
        10,
        1,
        "CVXPY",
        cvxpy_rows(10, lambda w: [-cp.sum(cp.log(w)) <= barrier, cp.sum(w) == 1]),
    )

    grid = sk.ShortestPath.grid(5, 5)
    form = grid.inequality_form()
    yield (
        "ShortestPath 5x5",
        grid,
        40,
        1,
        "CVXPY",
        cvxpy_rows(40, lambda w: [form.A_eq @ w == form.b_eq, w >= 0, w <= 1]),
    )
    yield "ShortestPath 5x5", grid, 40, 1, "HiGHS", linprog_rows(form)
    cycles = sk.ShortestPath([(i, j) for i in range(6) for j in range(6) if i != j], 0, 5)
    yield "ShortestPath K6 (cycles)", cycles, 30, 0.02, "HiGHS", linprog_rows(cycles.inequality_form())
    work = sk.Assignment(6)
    yield "Assignment 6x6", work, 36, 0.2, "HiGHS", linprog_rows(work.inequality_form())

    weights = rng.integers(3, 9, size=32)
    capacity = weights.sum() // 4
    pack = sk.Knapsack(weights, capacity, sense="min")
    yield (
        "Knapsack 32, whole",
        pack,
        32,
        0.2,
        "CVXPY",
        cvxpy_rows(32, lambda w: [weights @ w <= capacity], cp.HIGHS, boolean=True),
    )
    yield "Knapsack 32, whole", pack, 32, 0.2, "HiGHS", milp_rows(weights[None, :], np.array([capacity]))
    part = sk.Knapsack(weights, capacity, integer=False, sense="min")
    yield "Knapsack 32, fractional", part, 32, 1, "HiGHS", linprog_rows(part.inequality_form())

    A, b = rng.normal(size=(10, 20)), rng.random(10) + 1
    poly = sk.Polyhedron(A, b, bounds=(0, 1))
    yield "Polyhedron 10x20", poly, 20, 0.02, "CVXPY", cvxpy_rows(20, lambda w: [A @ w <= b, w >= 0, w <= 1])
    yield "Polyhedron 10x20", poly, 20, 0.02, "HiGHS", linprog_rows(poly.inequality_form())
    real = rng.random((2, 12)) + 0.5
    mixed = sk.MixedInteger(real, [3.0, 3.0], bounds=(0, 1), integrality=1)
    yield "MixedInteger 2x12", mixed, 12, 0.01, "HiGHS", milp_rows(real, np.array([3.0, 3.0]))

    def cut_ball(w: cp.Variable) -> list[cp.Constraint]:
        return [cp.norm(w) <= 1, w >= -0.5]

    yield "CvxpyRegion", sk.CvxpyRegion(cut_ball, 20), 20, 0.01, "CVXPY", cvxpy_rows(20, cut_ball)
    yield "OracleRegion (min index)", sk.OracleRegion(sk.Simplex().argmin, 10), 10, 1, "CVXPY", cvxpy_rows(10, simplex)
    cov = Q[:20, :20]
    risk = 0.2 * float(np.trace(cov)) / 20
    yield (
        "Markowitz",
        sk.Markowitz(cov, risk),
        20,
        0.01,
        "CVXPY",
        cvxpy_rows(20, lambda w: [*simplex(w), cp.quad_form(w, cov) <= risk]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="rows for the closed forms (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    out_option(parser)
    args = parser.parse_args()
    n = max(args.rows // 20 if args.quick else args.rows, 100)
    one_by_one = 10 if args.quick else 40
    rng = np.random.default_rng(0)
    columns = {"region": "", "d": "d", "rows": ",", "rows/s": ",.0f", "opponent": "", "its rows/s": ",.0f"}
    columns |= {"ratio": ",.0f", "difference of values": ".0e"}
    options = {"packages": ("cvxpy", "numpy", "scipy"), "file": args.out, "quick": args.quick}
    table = Table("oracles", key=("region", "opponent"), columns=columns, **options)
    print(table.head())
    grid_ratio = np.nan
    for name, region, d, share, opponent, solve in duels(rng):
        C = rng.normal(size=(max(int(n * share), one_by_one), d))
        ours = rows_per_second(region.argmin, C)
        start = C[:one_by_one]
        theirs = rows_per_second(solve, start, repeat=1)
        # Times are only comparable if the results agree.
        values = np.einsum("ij,ij->i", start, region.argmin(start))
        error = np.abs(values - solve(start)).max() / max(1.0, np.abs(values).max())
        assert error < 1e-4, (name, opponent, error)
        ratio = ours / theirs
        if name == "ShortestPath 5x5" and opponent == "CVXPY":
            grid_ratio = ratio
        row = {"region": name, "d": d, "rows": len(C), "rows/s": ours, "opponent": opponent, "its rows/s": theirs}
        print(table.add({**row, "ratio": ratio, "difference of values": error}), flush=True)

    C = rng.normal(size=(100_000, 50))
    region = sk.EntropySimplex()
    start = time.process_time()
    W = region.argmin(C)
    seconds = time.process_time() - start
    again, _, n_iter = entropy_argmin(C, region._data(50))
    assert np.array_equal(W, again)
    lines = [f"EntropySimplex, d=50, 100,000 rows: {seconds:.2f} s, {n_iter} iterations of root finding at most"]
    targets = {
        f"ShortestPath 5x5 at least {FASTER} times CVXPY per row: {grid_ratio:,.0f}": grid_ratio >= FASTER,
        f"EntropySimplex at most {ITERATIONS} iterations: {n_iter}": n_iter <= ITERATIONS,
    }
    lines += [f"target {'met' if met else 'MISSED'}: {text}" for text, met in targets.items()]
    print("", *lines, sep="\n")
    table.write(f"The opponents solve {one_by_one} rows, one call per row; CVXPY builds its problem once.", lines)


if __name__ == "__main__":
    main()
