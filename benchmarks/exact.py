"""Exact training compared with the fastest general method for the same optimum, in the same run on one thread.

The general methods (routes) are what an expert would write in fifty lines: the linear programming (or conic) dual of
the support function, derived by hand for each region, with an explicit epigraph and no redundant variable:

    CVXPY+Clarabel   the program in CVXPY, conic interior point
    CVXPY+HiGHS      the same program, HiGHS interior point without crossover       (linear programs)
    highspy          the same program as sparse matrices passed to HiGHS directly   (linear programs)

A route is counted if the SPO+ loss at its coefficients, evaluated by ``skspo.spo_plus_loss``, is within 1e-6 of the
best loss found by any route or by skspo.  The tolerance of its solver is 1e-7, or 1e-9 if that was not enough; then
only the second run is counted.  Times include everything from arrays to coefficients, for skspo also the certificate.
The time of the routes does not include the optimal decisions of the true costs.  Each time is the best of --repeat
runs, or of those that fit into ten seconds.

    python benchmarks/exact.py                   everything, about half an hour
    python benchmarks/exact.py --quick           a twentieth of the samples, as a test
    python benchmarks/exact.py --only paths      rows whose name is or else contains "paths"
    python benchmarks/exact.py --out docs/benchmarks/README.md     also write table and results/exact.json
"""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", BLIS_NUM_THREADS="1", RAYON_NUM_THREADS="1"
)

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import cvxpy as cp
import highspy
import numpy as np
import scipy.sparse as sp
from results import Table, out_option
from sklearn.exceptions import ConvergenceWarning

import skspo as sk
from skspo.datasets import make_cost_sensitive_classification, make_knapsack, make_portfolio, make_shortest_path

SAME = 1e-6  # relative difference of losses within which two routes have found the same optimum
ACCURACIES = (1e-7, 1e-9)  # tolerances of the general solvers; the second if the first is not enough
ENOUGH = 10.0  # seconds after which nothing is repeated

# -- the general routes ------------------------------------------------------------------------------------------------
#
#     min over B (q, d)   sum_i support_S(c_i - 2 B^T z_i) + 2 <B, sum_i z_i w_i^T>        z_i = (x_i, 1), w_i = w*(c_i)
#
# A sum, not a mean: the tolerances of the solvers are absolute and suit terms of order one.


class Linear(NamedTuple):
    """support_S(v) = min {b.y : G y >= P v}, with y >= 0 if ``nonneg``: the dual of max {v.w : w in S}."""

    G: sp.csr_array
    b: np.ndarray
    P: sp.csr_array
    nonneg: bool

    def __call__(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        Y = cp.Variable((V.shape[0], self.b.size), nonneg=self.nonneg)
        return Y @ self.b, [Y @ self.G.T >= (V if self.P.shape[0] == V.shape[1] else V @ self.P.T)]


def simplex(d: int) -> Linear:
    """t >= v_j."""
    return Linear(sp.csr_array(np.ones((d, 1))), np.ones(1), sp.eye_array(d, format="csr"), False)


def ball(d: int) -> Linear:
    """t >= v_j and t >= -v_j."""
    eye = sp.eye_array(d, format="csr")
    return Linear(sp.csr_array(np.ones((2 * d, 1))), np.ones(1), sp.vstack([eye, -eye], format="csr"), False)


def box(d: int) -> Linear:
    """sum_j y_j with y_j >= v_j and y_j >= 0."""
    eye = sp.eye_array(d, format="csr")
    return Linear(eye, np.ones(d), eye, True)


def knapsack(weights: np.ndarray, capacity: float) -> Linear:
    """capacity y_0 + sum_j y_j with weight_j y_0 + y_j >= v_j: a price of the capacity and one of each item."""
    eye = sp.eye_array(weights.size, format="csr")
    G = sp.hstack([sp.csr_array(weights[:, None]), eye], format="csr")
    return Linear(G, np.r_[capacity, np.ones(weights.size)], eye, True)


def path(edges: np.ndarray, source: int, target: int) -> Linear:
    """Potentials: y_head - y_tail >= v_e, minimize y_target, where y_source = 0 is left out."""
    d, nodes = len(edges), int(edges.max()) + 1
    ones = np.ones(d)
    columns = np.r_[edges[:, 1], edges[:, 0]]
    G = sp.csr_array((np.r_[ones, -ones], (np.r_[np.arange(d), np.arange(d)], columns)), shape=(d, nodes))
    keep = np.delete(np.arange(nodes), source)
    return Linear(sp.csr_array(G[:, keep]), (keep == target).astype(float), sp.eye_array(d, format="csr"), False)


def entropy(V: cp.Expression, threshold: float) -> tuple[cp.Expression, list[cp.Constraint]]:
    """min over u of u log sum_j exp(v_j / u) + u threshold: u exp((v_j - s) / u) <= e_j, sum_j e_j <= u."""
    n, d = V.shape
    s, u, E = cp.Variable((n, 1)), cp.Variable((n, 1)), cp.Variable((n, d))
    ones = np.ones((1, d))
    return s[:, 0] + threshold * u[:, 0], [cp.ExpCone(V - s @ ones, u @ ones, E), cp.sum(E, axis=1) <= u[:, 0]]


def markowitz(V: cp.Expression, root: np.ndarray, max_risk: float) -> tuple[cp.Expression, list[cp.Constraint]]:
    """s + sqrt(max_risk) r with s + (root y)_j >= v_j and |y|_2 <= r, where covariance = root root^T."""
    n, d = V.shape
    s, r, Y = cp.Variable((n, 1)), cp.Variable(n), cp.Variable((n, d))
    return s[:, 0] + np.sqrt(max_risk) * r, [s @ np.ones((1, d)) + Y @ root.T >= V, cp.SOC(r, Y, axis=1)]


class Data(NamedTuple):
    Z: np.ndarray  # (n, q) features and a column of ones
    C: np.ndarray  # (n, d) costs to be minimized
    W: np.ndarray  # (n, d) their optimal decisions


def with_cvxpy(
    data: Data, epigraph: Callable[[Any], Any], budget: float, accuracy: float, solver: str
) -> np.ndarray | None:
    B = cp.Variable((data.Z.shape[1], data.C.shape[1]))
    t, constraints = epigraph(data.C - 2 * data.Z @ B)
    cost = cp.sum(t) + 2 * cp.sum(cp.multiply(data.Z.T @ data.W, B))
    if solver == cp.HIGHS:
        options: dict[str, Any] = {"highs_options": highs_options(budget, accuracy)}
    else:
        options = {"time_limit": budget, "max_threads": 1}
        options |= dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), accuracy)
    cp.Problem(cp.Minimize(cost), constraints).solve(solver=solver, **options)
    return B.value


def highs_options(budget: float, accuracy: float) -> dict[str, Any]:
    # Crossover hardly changes the loss and takes up to a tenth of the time.
    options = {"solver": "ipm", "run_crossover": "off", "ipm_optimality_tolerance": accuracy}
    return options | {"time_limit": budget, "threads": 1}


def with_highspy(data: Data, epigraph: Linear, budget: float, accuracy: float) -> np.ndarray | None:
    n, d = data.C.shape
    q, m = data.Z.shape[1], epigraph.b.size
    # G y_i + 2 P B^T z_i >= P c_i for every i; columns: y_1, ..., y_n, then B row by row
    blocks = [sp.kron(sp.eye_array(n), epigraph.G), 2 * sp.kron(sp.csr_array(data.Z), epigraph.P)]
    A = sp.hstack(blocks, format="csc")
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = A.shape
    lp.col_cost_ = np.r_[np.tile(epigraph.b, n), 2 * (data.Z.T @ data.W).ravel()]
    lp.col_lower_ = np.r_[np.full(n * m, 0.0 if epigraph.nonneg else -np.inf), np.full(q * d, -np.inf)]
    lp.col_upper_ = np.full(A.shape[1], np.inf)
    lp.row_lower_ = (data.C @ epigraph.P.T).ravel()
    lp.row_upper_ = np.full(A.shape[0], np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    highs = highspy.Highs()
    for name, value in ({"output_flag": False} | highs_options(budget, accuracy)).items():
        highs.setOptionValue(name, value)
    highs.passModel(lp)
    highs.run()
    solution = np.array(highs.getSolution().col_value)
    return solution[n * m :].reshape(q, d) if solution.size else None


ROUTES: dict[str, Callable[..., np.ndarray | None]] = {
    "CVXPY+Clarabel": partial(with_cvxpy, solver=cp.CLARABEL),
    "CVXPY+HiGHS": partial(with_cvxpy, solver=cp.HIGHS),
    "highspy": with_highspy,
}

# -- the problems ------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    name: str
    problem: str
    region: sk.Region
    make: Callable[[int], tuple[np.ndarray, np.ndarray]]
    n: int
    solver: str
    epigraph: Callable[[Any], Any] | None = None  # None: skspo alone
    tol: float = 1e-6


def cases() -> Iterator[Case]:
    classes = partial(make_cost_sensitive_classification, degree=2, noise=0.5, random_state=0)
    for n in (1000, 5000, 20_000, 100_000, 1_000_000):
        epigraph = simplex(10) if n <= 5000 else None
        yield Case(f"classes-{n}", "ten classes", sk.Simplex(), classes, n, "auto", epigraph)
    grid = sk.ShortestPath.grid(5, 5)
    paths = partial(make_shortest_path, grid=(5, 5), degree=4, noise=0.5, random_state=0)
    potentials = path(np.asarray(grid.edges), 0, 24)
    yield Case("paths-1000", "shortest path 5x5", grid, paths, 1000, "auto", potentials)
    yield Case("paths-10000", "shortest path 5x5", grid, paths, 10_000, "auto")
    large = sk.ShortestPath.grid(10, 10)
    long = partial(make_shortest_path, grid=(10, 10), degree=4, noise=0.5, random_state=0)
    potentials = path(np.asarray(large.edges), 0, 99)
    yield Case("paths-10x10", "shortest path 10x10", large, long, 300, "auto", potentials)

    threshold = -0.5 * (np.log(50) + np.log(49))
    assets = partial(make_portfolio, n_assets=50, degree=4, noise=0.5, random_state=0)
    level_set = partial(entropy, threshold=threshold)
    yield Case("entropy", "entropy portfolio", sk.EntropySimplex(threshold), assets, 1000, "auto", level_set)

    items = partial(make_knapsack, n_items=32, degree=4, noise=0.5, random_state=0)
    weights = items(1, return_weights=True)[-1]
    part = sk.Knapsack(weights, 20.0, integer=False)
    prices = knapsack(weights, 20.0)
    yield Case("fractional", "fractional knapsack", part, items, 1000, "auto", prices)

    def centered(n: int) -> tuple[np.ndarray, np.ndarray]:
        X, C = make_portfolio(n, n_assets=20, degree=4, noise=0.5, random_state=0)
        return X, C - C.mean(axis=0)

    yield Case("l1ball", "L1 ball", sk.L1Ball(), centered, 1000, "auto", ball(20))
    yield Case("box", "box", sk.Box(), centered, 1000, "auto", box(20))
    root = np.random.default_rng(0).normal(size=(20, 20)) / 5 + np.eye(20)
    covariance = root @ root.T
    max_risk = 2.0 / float(np.linalg.inv(covariance).sum())  # twice the smallest risk without the bounds
    cone = partial(markowitz, root=root, max_risk=max_risk)
    yield Case("markowitz", "Markowitz", sk.Markowitz(covariance, max_risk), centered, 300, "auto", cone)

    two = np.random.default_rng(0).integers(3, 8, size=(2, 32))
    whole = sk.Knapsack(two, [20, 20])
    yield Case("bundle-knapsack", "0-1 knapsack 32x2, to 1e-3", whole, items, 1000, "bundle", tol=1e-3)
    yield Case("bundle-paths", "shortest path 5x5, to 1e-3", grid, paths, 1000, "bundle", tol=1e-3)


def fastest(row: dict[str, Any], start: str = "") -> tuple[str | None, float | None]:
    """Name and seconds of the fastest counted route, among those whose name has this prefix."""
    times = [(s, name) for name, s in row["routes"].items() if isinstance(s, float) and name.startswith(start)]
    return (min(times)[1], min(times)[0]) if times else (None, None)


def ratio(row: dict[str, Any], start: str = "") -> float | None:
    """How many times as long that route takes."""
    seconds = fastest(row, start)[1]
    return seconds / row["skspo s"] if seconds and row["optimal"] and row["converged"] else None


def targets(rows: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, bool]]:
    """Targets, measured values, and whether the targets are met; only for rows that ran."""

    def at_least(name: str, factor: float, start: str = "") -> Iterator[tuple[str, str, bool]]:
        if name in rows:
            row, against = rows[name], {"": "the fastest general route"}.get(start, start)
            found = ratio(row, start)
            what = f"{row['problem']}, n={row['n']:,}: at least {factor:g} times as fast as {against}"
            yield what, f"{found:.1f}" if found else "no valid ratio", bool(found and found >= factor)

    yield from at_least("classes-5000", 10)
    if {"classes-5000", "classes-100000"} <= set(rows):
        small, large = rows["classes-5000"], rows["classes-100000"]
        exponent = np.log(large["skspo s"] / small["skspo s"]) / np.log(large["n"] / small["n"])
        what = f"ten classes: time grows as n^1.15 at most from n={small['n']:,} to {large['n']:,}"
        yield what, f"n^{exponent:.2f}", bool(exponent <= 1.15 and large["gap"] <= 1e-6)
    for name in ("classes-100000", "paths-10000"):
        if name in rows:
            row = rows[name]
            what = f"{row['problem']}, n={row['n']:,}: certified gap at most 1e-6"
            yield what, f"{row['gap']:.1e}", bool(row["gap"] <= 1e-6)
    yield from at_least("paths-1000", 15)
    yield from at_least("entropy", 25, "CVXPY+Clarabel")
    for name in ("fractional", "l1ball", "box", "markowitz"):
        yield from at_least(name, 1, "CVXPY")
    for name in ("bundle-knapsack", "bundle-paths"):
        if name in rows:
            row = rows[name]
            yield f"{row['problem']}: reached", f"{row['gap']:.1e} in {row['skspo s']:.2f} s", bool(row["gap"] <= 1e-3)


# -- measuring ---------------------------------------------------------------------------------------------------------


class Timer:
    """Best of a few runs by the chosen clock; stores the largest ratio of wall-clock to processor time."""

    def __init__(self, repeat: int, clock: str) -> None:
        self.repeat = repeat
        self.clock = clock
        self.busy = 1.0
        self.wall = 0.0  # of the last run

    def __call__(self, run: Callable[[], Any]) -> tuple[float, Any]:
        best, total, result = np.inf, 0.0, None
        for _ in range(self.repeat):
            start = time.perf_counter(), time.process_time()
            result = run()
            self.wall = wall = time.perf_counter() - start[0]
            cpu = time.process_time() - start[1]
            if wall > 0.1:
                self.busy = max(self.busy, wall / cpu)
            best = min(best, cpu if self.clock == "cpu" else wall)
            total += wall
            if total > ENOUGH:
                break
        return best, result


def fit(case: Case, X: np.ndarray, C: np.ndarray) -> tuple[sk.SPOPlusRegressor, bool]:
    model = sk.SPOPlusRegressor(case.region, solver=case.solver, tol=case.tol)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, C)
    return model, not any(issubclass(w.category, ConvergenceWarning) for w in caught)


def attempt(
    case: Case, data: Data, route: Callable[..., Any], timer: Timer, budget: float
) -> tuple[float | str, float]:
    """Seconds of a route, or why there are none, and the loss at its coefficients."""
    highspy.Highs.resetGlobalScheduler(True)  # otherwise the number of threads is that of the first call
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            route(Data(*(array[:40] for array in data)), case.epigraph, budget)
            seconds, B = timer(lambda: route(data, case.epigraph, budget))
    except (cp.SolverError, ArithmeticError, ValueError) as error:
        return f"failed ({type(error).__name__})", np.inf
    if timer.wall > budget:
        return f"beyond {budget:g} s", np.inf
    if B is None or not np.isfinite(B).all():
        return "no solution", np.inf
    pred = case.region.to_min(data.Z @ B)
    return seconds, sk.spo_plus_loss(case.region.to_min(data.C), pred, case.region)


def measure(case: Case, timer: Timer, budget: float, log: Callable[[str], None]) -> dict[str, Any]:
    X, C = case.make(case.n)
    fit(case, X[:40], C[:40])  # lazy imports
    seconds, (model, converged) = timer(lambda: fit(case, X, C))
    loss = sk.spo_plus_loss(C, model.predict(X), case.region)
    row = {"name": case.name, "problem": case.problem, "n": case.n, "d": C.shape[1], "solver": model.solver_}
    row |= {"skspo s": seconds, "gap": float(model.duality_gap_), "converged": converged, "optimal": True}
    row["routes"] = routes = {}  # seconds, or why it is not counted
    if case.epigraph is not None:
        C_min = case.region.to_min(C)
        data = Data(np.column_stack([X, np.ones(len(X))]), C_min, case.region.solve_min(C_min))
        # Relative in the same way as the gap of skspo: data that a linear model fits perfectly have the optimum 0.
        scale = max(loss, 0.01 * sk.spo_plus_loss(C, np.zeros_like(C), case.region))
        losses = {}
        for name, route in ROUTES.items():
            if name != "CVXPY+Clarabel" and not isinstance(case.epigraph, Linear):
                continue
            for accuracy in ACCURACIES:
                routes[name], losses[name] = attempt(case, data, partial(route, accuracy=accuracy), timer, budget)
                log(f"  {name} at {accuracy:g}: {routes[name]}, loss {losses[name]:.9g} (skspo: {loss:.9g})")
                if losses[name] - loss <= SAME * scale or timer.wall > budget:
                    break
        best = min([loss, *(value for value in losses.values() if np.isfinite(value))])
        row["optimal"] = bool(loss - best <= max(SAME, case.tol) * scale)  # as good as the best route
        for name, value in losses.items():
            if isinstance(routes[name], float) and value - best > SAME * scale:
                routes[name] = f"off by {(value - best) / scale:.0e} after {routes[name]:.1f} s"
    row["general route"], row["its s"] = fastest(row)
    row["ratio"] = ratio(row)
    return row


# -- reporting ---------------------------------------------------------------------------------------------------------


def gap(row: dict[str, Any]) -> str:
    marks = ("" if row["converged"] else " (not converged)") + ("" if row["optimal"] else " (not optimal)")
    return f"{row['gap']:.0e}{marks}"


def others(row: dict[str, Any]) -> str:
    """Routes that are not the fastest."""
    shown = [
        f"{name} {value:.2f}" if isinstance(value, float) else f"{name}: {value}"
        for name, value in row["routes"].items()
        if name != row["general route"]
    ]
    return "; ".join(shown) or "-"


COLUMNS = {
    "problem": "",
    "n": ",",
    "d": "d",
    "solver": "",
    "skspo s": lambda row: f"{row['skspo s']:.3f}" if row["skspo s"] < 1 else f"{row['skspo s']:.2f}",
    "gap": gap,
    "general route": "",
    "its s": ".2f",
    "ratio": ".1f",
    "the others": others,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the samples")
    parser.add_argument("--only", metavar="NAME", action="append", help="only this row; repeatable")
    parser.add_argument("--repeat", type=int, default=3, help="best of so many runs (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds for a route (default: %(default)s)")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: on a machine that others use")
    out_option(parser)
    parser.add_argument("--verbose", action="store_true", help="print each route as it ends")
    args = parser.parse_args()
    timer = Timer(args.repeat, args.clock)
    packages = "numpy", "scipy", "cvxpy", "clarabel", "highspy"
    table = Table("exact", key=("name",), columns=COLUMNS, packages=packages, file=args.out, quick=args.quick)
    print(table.head())
    names = {case.name for case in cases()}
    chosen = {name for text in args.only or [""] for name in ({text} & names or names) if text in name}
    for case in cases():
        if case.name not in chosen:
            continue
        if args.quick:
            case.n = max(case.n // 20, 50)
        row = measure(case, timer, args.budget, print if args.verbose else lambda text: None)
        print(table.add(row), flush=True)
    notes = []
    if timer.busy > 1.2 and args.clock == "wall":
        notes.append(f"The machine was busy: up to {timer.busy:.1f} times the processor's time; try --clock cpu.")
    if args.clock == "cpu":
        notes.append("Times are processor time.")
    if args.quick:
        notes.append("--quick: a twentieth of the samples, so the targets mean nothing.")
    verdict = {True: "target met", False: "target MISSED"} if not args.quick else dict.fromkeys((True, False), "figure")
    lines = [
        f"{verdict[ok]}: {what}: {figure}" for what, figure, ok in targets({row["name"]: row for row in table.rows})
    ]
    print("", *lines, *notes, sep="\n")
    table.write(notes=[*lines, *notes])


if __name__ == "__main__":
    main()
