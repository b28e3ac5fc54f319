"""Oracles that are mixed-integer programs: how often they are asked, with and without a pool of known decisions.

Three problems: a 0-1 knapsack with whole weights and many samples, whose oracle is fast but treated as a slow one, so
that passes can be counted; a 0-1 knapsack with two resources, which HiGHS solves row by row; and the energy-aware
scheduling of ``examples/plot_scheduling.py`` if there are data.  All methods train to the same certified relative gap
(--tol), except the relaxation, whose gap is that of an easier problem.  ``passes`` is the number of rows for which the
oracle was asked, divided by the number of samples; three of them are asked by every fit of the region itself: optimal
decisions, and the losses of two reference models.  Seconds are those of the processor, for ``fit``, on one thread;
``of the oracle`` counts HiGHS only.  ``regret`` is the normalized SPO loss on samples that were not trained on.

    python benchmarks/slow_oracle.py                                     some minutes
    SKSPO_ENERGY_DATA=folder python benchmarks/slow_oracle.py            also the schedule
    python benchmarks/slow_oracle.py --quick                             small, as a test
    python benchmarks/slow_oracle.py --out docs/benchmarks/README.md     also write table and results/slow_oracle.json
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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from results import Table, out_option
from sklearn.exceptions import ConvergenceWarning

import skspo as sk
from skspo.regions._oracles import highs
from skspo.solvers import BundleSolver, DualSolver
from skspo.solvers.dual import solver as dual

COLUMNS = {"problem": "", "n": "d", "d": "d", "method": "", "tol": ".0e", "passes": ".1f", "gap": ".1e"}
COLUMNS |= {"seconds": ".1f", "of the oracle": ".1f", "regret": ".2%"}
METHODS = ("bundle", "dual without pool", "dual", "relaxation")


class Problem(NamedTuple):
    """A region, training and test data, and parameters of the model."""

    name: str
    region: Any
    X: np.ndarray
    C: np.ndarray
    X_test: np.ndarray
    C_test: np.ndarray
    params: dict[str, Any]


def knapsack(n: int, items: int, features: int, alpha: float) -> Problem:
    """Values of items that are a polynomial of degree four in the features, with noise; two resources."""
    rng = np.random.default_rng(0)
    slopes, X = rng.binomial(1, 0.5, size=(items, features)), rng.normal(size=(2 * n, features))
    C = ((X @ slopes.T) / np.sqrt(features) + 3.0) ** 4 / 27.0 * rng.uniform(0.5, 1.5, size=(2 * n, items)) + 1.0
    weights = rng.uniform(1.0, 10.0, size=(2, items))
    region = sk.MixedInteger(weights, 0.4 * weights.sum(axis=1), bounds=(0, 1), sense="max")
    name = f"knapsack, {items} items, p={features}"
    return Problem(name, region, X[:n], C[:n], X[n:], C[n:], {"alpha": alpha})


class CountedKnapsack(sk.Knapsack):
    """A knapsack that is solved by dynamic programming, treated as if it were slow."""

    rows = 0

    @property
    def oracle_is_solver(self) -> bool:
        """True, although it is fast."""
        return True

    def _argmin(self, C: np.ndarray, data: Any) -> np.ndarray:
        CountedKnapsack.rows += len(C)
        return super()._argmin(C, data)


def whole_knapsack(n: int, features: int, alpha: float) -> Problem:
    """The same with whole weights."""
    problem = knapsack(n, 30, features, alpha)
    weights = np.random.default_rng(1).integers(3, 8, size=30)
    region = CountedKnapsack(weights, int(0.3 * weights.sum()))
    return problem._replace(name=f"whole weights, 30 items, p={features}", region=region)


def schedules(folder: Path, days: int) -> Iterator[Problem]:
    """The last days of the price data: one model for each half hour, and one for all."""
    example: dict[str, Any] = {}
    source = (Path(__file__).parents[1] / "examples" / "plot_scheduling.py").read_text()
    exec(source.split("folder = ")[0], example)
    exec("def real_prices" + source.split("def real_prices")[1].split("def made_up")[0], example)
    region, _ = example["schedule"](*example["read_instance"]((folder / "load1.txt").read_text()))
    features, C = example["real_prices"](folder / "prices2013.dat", 2 * days)
    features = (features - features.mean(axis=(0, 1))) / features.std(axis=(0, 1))
    daily = features[:, ::8, 1:].reshape(2 * days, -1)
    yield Problem("schedule, p=18", region, daily[:days], C[:days], daily[days:], C[days:], {"alpha": 1000.0})
    blocks = np.concatenate([features, features[:, :, 1:2] * features[:, :, 2:]], axis=2).reshape(2 * days, -1)
    yield Problem("schedule, shared model", region, blocks[:days], C[:days], blocks[days:], C[days:], {"shared": True})


@contextmanager
def counter() -> Iterator[list[float]]:
    """Rows that HiGHS solved as mixed-integer programs, and seconds."""
    total, CountedKnapsack.rows = [0.0, 0.0], 0
    original = highs.solve_rows

    def counted(form: Any, C: np.ndarray, **options: Any) -> np.ndarray:
        start = time.process_time()
        try:
            return original(form, C, **options)
        finally:
            if options.get("integrality") is not None:
                total[0] += len(C)
                total[1] += time.process_time() - start

    places = [sk.regions.integer, highs]
    for place in places:
        place.solve_rows = counted  # type: ignore[attr-defined]
    try:
        yield total
    finally:
        for place in places:
            place.solve_rows = original  # type: ignore[attr-defined]


@contextmanager
def without_pool() -> Iterator[None]:
    """Let the dual method ask the oracle as it does if samples have different regions."""
    original = dual.pool_of
    dual.pool_of = lambda objective, run: None  # type: ignore[assignment]
    try:
        yield
    finally:
        dual.pool_of = original


def measure(problem: Problem, method: str, tol: float, limit: int) -> dict[str, Any]:
    """One row of the table."""
    solver: Any = DualSolver(tol=tol, max_iter=limit)
    if method in ("bundle", "relaxation"):
        solver = BundleSolver(tol=tol, max_iter=limit) if method == "bundle" else "auto"
    model = sk.SPOPlusRegressor(problem.region, solver=solver, tol=tol, **problem.params)
    if method == "relaxation":
        model.set_params(surrogate_region="relaxation")
    with counter() as oracle, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is printed
        start = time.process_time()
        if method == "dual without pool":
            with without_pool():
                model.fit(problem.X, problem.C)
        else:
            model.fit(problem.X, problem.C)
        seconds = time.process_time() - start
        rows, inside = oracle[0] + CountedKnapsack.rows, oracle[1]
    regret = sk.normalized_spo_loss(problem.C_test, model.predict(problem.X_test), problem.region)
    n, d = problem.C.shape
    row = {"problem": problem.name, "n": n, "d": d, "method": method, "tol": tol, "passes": rows / n}
    row |= {"gap": float(model.duality_gap_), "seconds": seconds, "of the oracle": inside, "regret": float(regret)}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tol", type=float, default=1e-2, help="relative gap (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=100, help="passes at most (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=60, help="training samples (default: %(default)s)")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--methods", default="; ".join(METHODS), help="separated by semicolons")
    parser.add_argument("--quick", action="store_true", help="ten samples, eight items")
    out_option(parser)
    args = parser.parse_args()
    n, items = (10, 8) if args.quick else (args.samples, 20)
    problems = [whole_knapsack(n if args.quick else 300, p, 0.1) for p in (5, 30)]
    problems += [knapsack(n, items, 5, 0.1), knapsack(n, items, 30, 0.1)]
    if "SKSPO_ENERGY_DATA" in os.environ and not args.quick:
        problems += schedules(Path(os.environ["SKSPO_ENERGY_DATA"], "energy_scheduling"), n)
    dual.load_kernels(0)
    key, packages = ("problem", "n", "method", "tol"), ("numpy", "scipy", "highspy")
    table = Table("slow_oracle", key=key, columns=COLUMNS, packages=packages, file=args.out, quick=args.quick)
    print(table.head(), flush=True)
    for problem in problems:
        if args.only in problem.name:
            for method in args.methods.split("; "):
                print(table.add(measure(problem, method, args.tol, args.limit)), flush=True)
    table.write()


if __name__ == "__main__":
    main()
