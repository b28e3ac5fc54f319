"""What does each special path of the solvers gain?  Fits with it, and with one name replaced so that it is off.

Every special path is a switch: names of skspo and what replaces them.  Its problems are of the families where it can
matter, half of them with ``solver="auto"``, with sizes and data drawn at random from a seed.  Fits with and without the
path alternate; seconds are those of the processor, also of processes that were started, the median of up to three fits
each, after a small fit that loads what is needed.  The ratio is the time without the path, divided by that with it.
Fits that end at the cap (processor time, too) count with the gap that they have then.  A path that gains less than 1.5
everywhere, and that closes no gap, is not worth its lines.

    python benchmarks/ablation.py                               all switches, a quarter of an hour on a busy machine
    python benchmarks/ablation.py --only points --only face     some of them, by name
    python benchmarks/ablation.py --list                        names, lines of code, families
    python benchmarks/ablation.py --seed 2                      other problems
    python benchmarks/ablation.py --quick                       two switches, as a test
    python benchmarks/ablation.py --out docs/benchmarks/README.md    also write table and results/ablation.json
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import contextlib
import resource
import time
import warnings
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from ablation_problems import FAMILIES, Data
from results import Table, out_option

import skspo as sk
from skspo._training.objective import ZERO_BOUND
from skspo._utils import limits
from skspo.solvers.dual.solver import DualSolver
from skspo.solvers.interior_point.state import State

Range = tuple[int, int]

#: fits with and without the path at most, and seconds in total after which there is no other
REPEATS, SHORT = 3, 2.0


class Case(NamedTuple):
    """Problems of a family: ranges of sizes, and parameters of the estimator."""

    family: str
    solver: str = "auto"
    n: Range = (300, 3000)
    p: Range = (3, 20)
    d: Range = (5, 20)
    alpha: float = 0.0
    l1_ratio: float = 0.0
    alphas: tuple[float, ...] = ()  # penalties to choose from by cross-validation

    def draw(self, seed: int, name: str, at: int) -> tuple[str, Data]:
        """Text about the size, and the problem; the text, the number of the case and the seed decide about it."""
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), at])
        n, p, d = (round(float(np.exp(rng.uniform(*np.log(limits))))) for limits in (self.n, self.p, self.d))
        data = FAMILIES[self.family](rng, n, p, d)
        return f"n={n} p={p} d={data[2].shape[1]}", data

    def fit(self, data: Data, cap: float) -> tuple[float, float, str]:
        """Seconds, gap and solver of a fit."""
        region, X, C, arguments = data
        if self.alphas:
            model: Any = sk.SPOPlusRegressorCV(region, alphas=self.alphas, cv=3, solver=self.solver)
        else:
            params = {"alpha": self.alpha, "l1_ratio": self.l1_ratio, "random_state": 0}
            model = sk.SPOPlusRegressor(region, solver=self.solver, time_limit=cap, **params)
        start = seconds_used()
        model.fit(X, C, **arguments)
        return seconds_used() - start, float(model.duality_gap_), str(model.solver_)


def seconds_used() -> float:
    """Processor time of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


# -- switches ----------------------------------------------------------------------------------------------------------


class Switch(NamedTuple):
    """A special path: what replaces which names to turn it off, and where it can matter."""

    replaced: dict[str, Any]  # names in skspo
    cases: list[Case]
    where: str  # files, or functions, that would go with it


def nothing(*args: Any, **kwargs: Any) -> None:
    """Return nothing."""


def no(*args: Any, **kwargs: Any) -> bool:
    """Return False."""
    return False


#: the attribute is false, whatever is assigned to it
NEVER = property(lambda self: False, lambda self, value: None)


def unable(name: str) -> dict[str, Any]:
    """A solver that "auto" does not know."""
    return {f"solvers.{name}.shortcomings": classmethod(lambda cls, *args: ["is off"])}


def without_state(self: Any, objective: Any, run: Any, start: Any = None, state: Any = None) -> Any:
    """``DualSolver.solve_from`` without the state of another fit."""
    return SOLVE_FROM(self, objective, run, start, None)


SOLVE_FROM = DualSolver.solve_from
DECISIONS = State.decisions


def cold(self: Any, C: np.ndarray, data: float, memory: Any) -> np.ndarray:
    """Decisions of a level set without a warm start."""
    W: np.ndarray = self._solve(C, data, None)[0]
    return W


PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01)
IP, DUAL, BUNDLE = "solvers.interior_point", "solvers.dual", "solvers.bundle"
SMALL, MIDDLE, LARGE = (300, 1000), (1000, 4000), (25_000, 60_000)

SWITCHES: dict[str, Switch] = {
    # the driver
    "fit to a sample first": Switch(
        {"solvers.driver.fit_sample": nothing},
        [
            Case("simplex", "bundle", LARGE, (5, 20), (5, 12)),
            Case("simplex", "auto", LARGE, (5, 20), (5, 12)),
            Case("paths", "bundle", LARGE, (3, 6), (4, 5), 0.01),
            Case("paths", "auto", LARGE, (3, 6), (4, 5), 0.01),
        ],
        "steps.fit_sample",
    ),
    "rows that matter": Switch(
        {"solvers.driver.fit_heavy_rows": nothing},
        [
            Case("decaying weights", "auto", SMALL, (3, 6), (4, 5), 0.1),
            Case("decaying weights", "interior-point", SMALL, (3, 6), (4, 5)),
        ],
        "steps.rows_that_matter, fit_heavy_rows",
    ),
    "equal rows merged": Switch(
        {
            "_training.in_memory.merge_rows": lambda weight, *arrays: (
                np.arange(arrays[0].shape[0]),
                np.ones(arrays[0].shape[0]) if weight is None else weight,
            )
        },
        [
            Case("repeated rows", "interior-point", (5000, 20_000)),
            Case("repeated rows", "auto", (5000, 20_000), alpha=0.01),
            Case("simplex", "auto", (5000, 20_000), (3, 8), (5, 10)),
        ],
        "merge.merge_rows",
    ),
    "exact zeros": Switch(
        {"solvers.checks.with_exact_zeros": lambda objective, result, *args: result},
        [
            Case("simplex", "interior-point", SMALL, (10, 30), (5, 10), 0.01, 1.0),
            Case("paths", "auto", SMALL, (5, 10), (4, 5), 0.01, 1.0),
        ],
        "exact_zeros.py",
    ),
    # interior point
    "planar graphs": Switch(
        {f"{IP}.state.cycle_basis": nothing},
        [
            Case("paths", "interior-point", (500, 2000), (3, 8), (5, 7)),
            Case("paths", "auto", (500, 2000), (3, 8), (5, 7)),
            Case("paths", "interior-point", (60, 200), (3, 5), (9, 12)),
            Case("paths", "auto", (60, 200), (3, 5), (9, 12)),
        ],
        "cycles.py, banded.py",
    ),
    "one equality": Switch(
        {f"{IP}.state.Polytope.simple": NEVER},
        [
            Case("simplex", "interior-point", SMALL, (3, 10), (8, 20)),
            Case("top", "auto", SMALL, (3, 8), (10, 20)),
        ],
        "blocks.py, state.py: simple",
    ),
    "differences of products": Switch(
        {f"{IP}.blocks.LARGE": 0.0},
        [Case("simplex", "interior-point", MIDDLE, (3, 20)), Case("top", "auto", MIDDLE, (3, 20))],
        "blocks.py: Block.products",
    ),
    "start far away": Switch(
        {f"{IP}.solver.GROWN": np.inf},
        [
            Case("simplex", "interior-point", (100, 300), (20, 60), (5, 10)),
            Case("paths", "interior-point", (60, 150), (15, 40), (4, 5)),
            Case("simplex", "interior-point", (4000, 20_000), (20, 60), (5, 10)),
            Case("top", "auto", (100, 300), (20, 60), (10, 20)),
        ],
        "interior_point/solver.py: _Search._step",
    ),
    "second-order cone": Switch(
        {f"{IP}.solver.has": lambda region, name: name != "quadratic_form" and hasattr(region, name)},
        [
            Case("markowitz", "auto", SMALL, (3, 6), (5, 15)),
            Case("markowitz", "auto", SMALL, (3, 6), (20, 50), 0.01),
            Case("markowitz", "auto", MIDDLE, (3, 6), (10, 20)),
        ],
        "quadratic.py",
    ),
    "shares of correctors": Switch(
        {f"{IP}.state.SHARES": (1.0,)},
        [
            Case("simplex", "interior-point", MIDDLE),
            Case("paths", "auto", MIDDLE, (3, 8), (4, 5)),
            Case("paths", "interior-point", SMALL, (3, 5), (7, 9)),
        ],
        "state.py: _combine",
    ),
    # boxes and products
    "intervals": Switch(
        {f"{IP}.intervals.IntervalSolver.fits": classmethod(no)},
        [
            Case("box", "intervals", MIDDLE, (3, 20), (5, 30)),
            Case("box", "auto", MIDDLE, (3, 20), (5, 30)),
            Case("box", "auto", MIDDLE, (3, 20), (5, 30), 0.01),
        ],
        "intervals.py",
    ),
    "products split": Switch(
        {"solvers.driver.fit_factors": nothing},
        [Case("product", "auto", MIDDLE, (3, 10), (5, 10)), Case("product", "auto", MIDDLE, (3, 10), (5, 10), 0.01)],
        "product.py",
    ),
    # smooth regions
    "newton": Switch(
        unable("newton.NewtonSolver"),
        [
            Case(family, "auto", SMALL, (3, 8), (5, 20), alpha)
            for family, alpha in (("entropy", 0.0), ("log barrier", 0.0), ("lq ball", 0.0), ("lq ball", 0.01))
        ],
        "newton.py",
    ),
    "lbfgs": Switch(
        unable("lbfgs.LBFGSSolver"),
        [
            Case(family, "auto", SMALL, (3, 8), (5, 20), alpha)
            for family, alpha in (("entropy", 0.01), ("log barrier", 0.0), ("lq ball", 0.01), ("ellipsoid", 0.0))
        ],
        "lbfgs.py: LBFGSSolver",
    ),
    # bundle
    "balanced cuts": Switch(
        {f"{BUNDLE}.cut_model.CutModel._balanced": lambda self, multipliers, *args: multipliers},
        [
            Case("simplex", "bundle", SMALL, (3, 6), (4, 8)),
            Case("paths", "bundle", SMALL, (2, 4), (3, 4)),
            Case("sets", "auto", (60, 150), (3, 6), (8, 12)),
        ],
        "cut_model.py: _balanced",
    ),
    "polished centers": Switch(
        {f"{BUNDLE}.solver.POLISHED": 0},
        [
            Case("simplex", "bundle", SMALL, (3, 6), (4, 8)),
            Case("paths", "bundle", SMALL, (2, 4), (3, 4)),
            Case("sets", "auto", (60, 150), (3, 6), (8, 12)),
        ],
        "bundle/solver.py: Phase.POLISH",
    ),
    "groups of cuts": Switch(
        {f"{BUNDLE}.cut_model.groups_for": lambda *args: 1},
        [Case("simplex", "bundle", SMALL, (3, 6), (4, 8)), Case("sets", "auto", (60, 150), (3, 6), (8, 12))],
        "cut_model.py: groups_for",
    ),
    "visible directions": Switch(
        {f"{BUNDLE}.cut_model.null_space": lambda N: np.eye(N.shape[1])},
        [Case("simplex", "bundle", SMALL, (3, 6), (4, 8)), Case("paths", "bundle", SMALL, (2, 4), (3, 5), 0.01)],
        "cut_model.py: visible",
    ),
    # dual
    "points": Switch(
        {f"{DUAL}.points.box_of": nothing},
        [
            Case("top", "dual", SMALL, (3, 10), (50, 200), 0.01),
            Case("fractional", "dual", SMALL, (3, 10), (50, 200), 0.01),
            Case("box", "dual", SMALL, (3, 10), (30, 80), 0.01, 0.5),
            Case("top", "auto", SMALL, (3, 10), (50, 200), 0.01),
            Case("fractional", "auto", SMALL, (30, 60), (50, 200), 0.01),
        ],
        "points.py and its kernels",
    ),
    "decisions that differ little": Switch(
        {f"{DUAL}.points.differ_little": no},
        [
            Case("simplex", "dual", MIDDLE, (20, 100), (5, 20), 0.01),
            Case("simplex", "auto", MIDDLE, (50, 200), (5, 20), 0.01),
        ],
        "points.py: differ_little",
    ),
    "recent steps": Switch(
        {f"{DUAL}.face.RecentSteps.ascend": lambda self, T: T},
        [
            Case("simplex", "dual", MIDDLE, (20, 60), (5, 20), 0.01),
            Case("paths", "dual", SMALL, (20, 60), (5, 7), 0.001),
            Case("paths", "auto", SMALL, (20, 60), (5, 7), 0.01),
            Case("simplex", "dual", SMALL, (20, 50), (5, 10)),
            Case("one-hot", "auto", MIDDLE, (50, 200), (5, 10), 0.001),
        ],
        "face.py: RecentSteps",
    ),
    "all weights together": Switch(
        {f"{DUAL}.ascent.Ascent.newton": nothing},
        [
            Case("simplex", "dual", SMALL, (30, 60), (5, 10)),
            Case("paths", "dual", SMALL, (20, 50), (4, 5)),
            Case("paths", "auto", SMALL, (30, 60), (4, 5)),
            Case("simplex", "auto", MIDDLE, (50, 100), (5, 20), 0.001),
            Case("top", "dual", SMALL, (10, 30), (20, 50)),
        ],
        "face.py",
    ),
    "Newton steps in the dual": Switch(
        {f"{DUAL}.ascent.NEWTON_MEMORY": -1.0},
        [
            Case("simplex", "dual", SMALL, (30, 60), (5, 10)),
            Case("paths", "dual", SMALL, (20, 50), (4, 5)),
            Case("paths", "auto", SMALL, (30, 60), (4, 5)),
            Case("simplex", "auto", SMALL, (30, 60), (5, 20), 0.001),
        ],
        "face.py: newton",
    ),
    "balanced weights": Switch(
        {f"{DUAL}.ascent.Ascent.balance": nothing},
        [
            Case("simplex", "dual", SMALL, (20, 50), (5, 10)),
            Case("paths", "dual", SMALL, (5, 20), (4, 5), 0.01),
            Case("top", "auto", SMALL, (5, 20), (20, 100), 0.01),
        ],
        "balance.py",
    ),
    "balanced weights, directly": Switch(
        {"_training.balance.DIRECT": 0},
        [
            Case("simplex", "dual", MIDDLE, (20, 50), (5, 20), 0.01),
            Case("paths", "auto", SMALL, (20, 50), (5, 8), 0.01),
            Case("top", "dual", SMALL, (5, 20), (50, 200), 0.01),
        ],
        "balance.py: matrix; covariance",
    ),
    "whitening": Switch(
        {f"{DUAL}.problem.whitening_of": nothing},
        [
            Case("simplex", "dual", SMALL, (20, 50), (5, 10)),
            Case("paths", "dual", SMALL, (10, 30), (4, 5)),
            Case("top", "auto", SMALL, (10, 30), (20, 60)),
        ],
        "problem.py: whitening_of",
    ),
    "pool": Switch(
        {f"{DUAL}.solver.pool_of": nothing},
        [
            Case("two resources", "dual", (60, 150), (3, 6), (10, 20), 0.01),
            Case("two resources", "auto", (60, 150), (3, 6), (10, 20)),
            Case("mixed integer", "dual", (60, 150), (3, 6), (8, 15), 0.01),
            Case("sets", "dual", (60, 150), (3, 6), (8, 12), 0.01),
            Case("cvxpy", "dual", (60, 150), (3, 6), (5, 8), 0.01),
        ],
        "dual/pool.py",
    ),
    "state of the last penalty": Switch(
        {f"{DUAL}.solver.DualSolver.solve_from": without_state},
        [
            Case("simplex", "dual", SMALL, (20, 50), (5, 10), alphas=PENALTIES),
            Case("paths", "auto", SMALL, (20, 40), (4, 5), alphas=PENALTIES),
        ],
        "Run.states, Ascent(state)",
    ),
    # certificates
    "mixtures": Switch(
        {"_training.in_memory.mixed_bound": lambda *args: ZERO_BOUND},
        [
            Case("simplex", "dual", SMALL, (5, 20), (5, 10)),
            Case("ellipsoid", "lbfgs", SMALL, (3, 8), (5, 10)),
            Case("paths", "conic", (60, 150), (3, 5), (3, 4)),
            Case("sets", "auto", (60, 150), (3, 6), (8, 12)),
            Case("cvxpy", "auto", (30, 60), (2, 3), (4, 6)),
        ],
        "mixture.py: mixed_bound",
    ),
    "mixtures, directly": Switch(
        {"_training.balance.DIRECT": 0},
        [
            Case("simplex", "dual", SMALL, (5, 20), (5, 10)),
            Case("simplex", "sgd", SMALL, (3, 6), (5, 10)),
            Case("cvxpy", "auto", (30, 60), (2, 3), (4, 6)),
        ],
        "mixture.py: matrix",
    ),
    "moved decisions": Switch(
        {"_training.objective.MAX_MOVES": 0},
        [
            Case("ellipsoid", "lbfgs", SMALL, (3, 8), (5, 10)),
            Case("paths", "conic", (60, 150), (3, 5), (3, 4)),
            Case("entropy", "auto", SMALL, (3, 8), (5, 10)),
            Case("simplex", "auto", SMALL, (3, 8), (5, 10)),
        ],
        "objective.py: cancel_residual",
    ),
    "Anderson acceleration": Switch(
        {"_training.objective.extrapolated": lambda points, steps: 0.0},
        [
            Case("ellipsoid", "lbfgs", SMALL, (3, 8), (5, 10)),
            Case("entropy", "auto", SMALL, (3, 8), (5, 10)),
            Case("paths", "conic", (60, 150), (3, 5), (3, 4)),
        ],
        "objective.py: extrapolated",
    ),
    "proof of stochastic fits": Switch(
        {"solvers.sgd.prove": lambda objective, Theta, *args: (Theta, objective.value(Theta), ZERO_BOUND)},
        [
            Case("simplex", "sgd", SMALL, (3, 6), (5, 10), 0.01),
            Case("paths", "sgd", SMALL, (3, 6), (4, 5)),
        ],
        "smoothed_proof.py",
    ),
    # conic
    "process of the back-end": Switch(
        {"solvers.conic.is_large": no},
        [
            Case("simplex", "conic", (300, 600), (3, 6), (10, 20)),
            Case("markowitz", "conic", (60, 120), (2, 4), (10, 20)),
        ],
        "backend_process.py, _backend_worker.py",
    ),
    "HiGHS before Clarabel": Switch(
        {"solvers.conic.is_linear": no},
        [
            Case("simplex", "conic", (100, 300), (3, 6), (5, 10)),
            Case("paths", "conic", (60, 150), (3, 5), (3, 4)),
            Case("polyhedron", "conic", (60, 100), (2, 4), (5, 8)),
        ],
        "conic.py: _attempts, is_linear; backend_process.py: _highs_*",
    ),
    # oracles
    "short search": Switch(
        {"regions._oracles.highs_integer._DepthFirst.solve": nothing},
        [
            Case("two resources", "dual", (60, 150), (3, 6), (10, 20), 0.01),
            Case("mixed integer", "auto", (60, 150), (3, 6), (8, 15), 0.01),
        ],
        "mixed_integer.py: _DepthFirst",
    ),
    "table of a knapsack": Switch(
        {"regions.integer._whole_numbers": nothing},
        [
            Case("packing", "dual", (60, 150), (3, 6), (10, 20), 0.01),
            Case("packing", "auto", (60, 150), (3, 6), (10, 20), 0.01),
        ],
        "integer.py: _pack_whole",
    ),
    "warm starts of level sets": Switch(
        {"regions.level_sets._SimplexLevelSet._argmin_again": cold},
        [
            Case("entropy", "lbfgs", MIDDLE, (3, 8), (10, 40)),
            Case("log barrier", "auto", MIDDLE, (3, 8), (10, 40)),
        ],
        "memory of level_sets.py",
    ),
    "blocks of rows": Switch(
        {"_training.in_memory.BLOCK_NUMBERS": 2**62, "regions.graphs.BLOCK_NUMBERS": 2**62},
        [
            Case("simplex", "bundle", LARGE, (3, 8), (5, 12)),
            Case("paths", "auto", LARGE, (3, 5), (4, 5)),
        ],
        "in_memory.py: _blocks; _sweep.py: BLOCK_NUMBERS",
    ),
    "dynamic program of paths": Switch(
        {"regions.graphs.plan_sweep": nothing},
        [Case("paths", "dual", SMALL, (3, 8), (4, 5), 0.01), Case("paths", "auto", SMALL, (3, 8), (4, 5))],
        "_sweep.py",
    ),
}


# -- measurements ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def off(switch: Switch) -> Iterator[None]:
    """Replace the names of a switch."""
    with contextlib.ExitStack() as stack:
        for name, value in switch.replaced.items():
            stack.enter_context(patch(f"skspo.{name}", value, create=value is NEVER))
        yield


def measure(name: str, at: int, seed: int, cap: float) -> dict[str, Any]:
    """One row of the table."""
    switch = SWITCHES[name]
    case = switch.cases[at]
    size, data = case.draw(seed, name, at)
    fits: tuple[list[Any], list[Any]] = ([], [])
    trouble = ""
    while len(fits[0]) < REPEATS and sum(fit[0] for side in fits for fit in side) < SHORT and not trouble:
        fits[0].append(case.fit(data, cap))
        try:
            with off(switch):
                fits[1].append(case.fit(data, cap))
        except (ValueError, RuntimeError) as error:
            trouble = type(error).__name__
    (seconds, gap, solver), other = (
        (float(np.median([fit[0] for fit in side])), side[-1][1], side[-1][2]) if side else (np.nan, np.nan, trouble)
        for side in fits
    )
    penalty = f" alpha={case.alpha:g}" * bool(case.alpha) + f" l1_ratio={case.l1_ratio:g}" * bool(case.l1_ratio)
    row = {"path": name, "problem": f"{case.family} {size}{penalty}", "solver": case.solver, "seed": seed}
    row |= {"with, s": seconds, "without, s": other[0], "ratio": other[0] / seconds}
    return row | {"gap with": gap, "gap without": other[1], "ran": solver, "ran without": other[2]}


def verdict(row: dict[str, Any]) -> str:
    """The ratio, marked where the path pays: by time, or because the gap is closed with it only."""
    gaps = [np.inf if row[name] is None else row[name] for name in ("gap with", "gap without")]
    closes = gaps[0] <= 1e-4 < gaps[1]
    ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
    return ratio + " **" * (closes or (row["ratio"] or 0.0) >= 1.5)


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="name of a switch; repeatable")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cap", type=float, default=4.0, help="time limit of a fit in seconds")
    parser.add_argument("--list", action="store_true", help="print the switches and run none")
    parser.add_argument("--quick", action="store_true", help="two switches, as a test")
    out_option(parser)
    args = parser.parse_args()
    names = args.only or (["one equality", "balanced cuts"] if args.quick else list(SWITCHES))
    if unknown := set(names) - set(SWITCHES):
        parser.error(f"no switches: {', '.join(sorted(unknown))}; see --list")
    if args.list:
        for name in names:
            families = ", ".join(dict.fromkeys(case.family for case in SWITCHES[name].cases))
            print(f"{name:<36} {families:<50} {SWITCHES[name].where}")
        return
    columns: dict[str, Any] = {"path": "", "problem": "", "solver": "", "with, s": ".2f", "without, s": ".2f"}
    columns |= {"ratio": verdict, "gap with": ".0e", "gap without": ".0e"}
    columns["path is"] = lambda row: "" if row["path"] in SWITCHES else "deleted"
    table = Table(
        "ablation",
        key=("path", "problem", "solver"),
        columns=columns,
        packages=("numpy", "scipy", "numba", "cvxpy", "clarabel", "highspy"),
        file=args.out,
        quick=args.quick,
    )
    print(table.head(), flush=True)
    warnings.simplefilter("ignore")
    small = np.random.default_rng(0).normal(size=(40, 3)), np.random.default_rng(1).normal(size=(40, 4))
    for region in (sk.Simplex(), sk.TopK(2)):  # loads the kernels for decisions and for points
        sk.SPOPlusRegressor(region, solver="dual", alpha=0.1).fit(*small)
    limits.perf_counter = time.process_time  # type: ignore[attr-defined]  # others may use the machine
    for name in names:
        for at in range(len(SWITCHES[name].cases)):
            print(table.add(measure(name, at, args.seed, args.cap)), flush=True)
    table.write(f"Seed {args.seed}, cap {args.cap:g} s.")


if __name__ == "__main__":
    main()
