"""Integer programs: decisions per second, and training on the relaxation, on the integers, or by cross-validation.

    python benchmarks/integer.py --out docs/benchmarks/README.md      about an hour
    python benchmarks/integer.py --draws 10 --only "knapsack 2x16"
    python benchmarks/integer.py --quick                              small versions, as a test

Costs are ((B x / sqrt 5 + 3)^6 + 1) / 3.5^6 times a typical cost and U(.5, 1.5), with five standard normal features and
a Bernoulli matrix B, as in PyEPO's generators.  100 days to train, 100 to test; each draw has its own seed, constraints
included.  Rows per second are those of the first draw, compared with scipy.optimize.milp, one row after the other; for
tours violated subtour constraints are added to it until there are none.  Seconds are processor time.  Regrets are test
regrets in percent, the mean over the draws.  "difference" is the regret of the relaxation less that of the integers,
with its standard error over the draws.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from typing import Any

from results import Table, out_option  # first: it also limits numpy to one thread

import numpy as np  # isort: skip
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

import skspo as sk
from skspo.metrics import normalized_spo_loss

N_TRAIN, N_TEST, P = 100, 100, 5


def knapsack(rng: np.random.Generator, resources: int, items: int) -> tuple[sk.Region, np.ndarray]:
    """Decimal weights, capacities for a quarter of the weight."""
    weights = rng.integers(300, 800, size=(resources, items)) / 100
    return sk.Knapsack(weights, np.round(weights.sum(axis=1) / 4, 1)), np.full(items, 5.0)


def packing(rng: np.random.Generator, sets: int, elements: int) -> tuple[sk.Region, np.ndarray]:
    """Sets of three elements each, of which those that are chosen must not overlap."""
    contains = np.zeros((elements, sets))
    for j in range(sets):
        contains[rng.choice(elements, size=3, replace=False), j] = 1.0
    return sk.MixedInteger(contains, np.ones(elements), bounds=(0, 1), sense="max"), np.full(sets, 5.0)


def tour(rng: np.random.Generator, n: int) -> tuple[sk.Region, np.ndarray]:
    """Nodes in the unit square."""
    points, pairs = rng.random((n, 2)), np.array(list(itertools.combinations(range(n), 2))).T
    return sk.TravellingSalesman(n), np.linalg.norm(points[pairs[0]] - points[pairs[1]], axis=1)


def commitment(rng: np.random.Generator, units: int, hours: int) -> tuple[sk.Region, np.ndarray]:
    """Units are on or off, starts cost a known amount, and those that are on produce between bounds."""
    capacity = rng.uniform(30, 80, size=units)
    demand = rng.uniform(0.4, 0.8, size=hours) * capacity.sum()
    k = units * hours
    on, start, power = (np.arange(k).reshape(units, hours) + part * k for part in range(3))
    A, b = [], []

    def limit(terms: list[tuple[int, float]], most: float) -> None:
        row = np.zeros(3 * k)
        for j, a in terms:
            row[j] = a
        A.append(row)
        b.append(most)

    for t in range(hours):
        limit([(power[u, t], -1.0) for u in range(units)], -demand[t])
        for u in range(units):
            limit([(power[u, t], 1.0), (on[u, t], -capacity[u])], 0.0)
            limit([(power[u, t], -1.0), (on[u, t], 0.4 * capacity[u])], 0.0)
            limit([(on[u, t], 1.0), (start[u, t], -1.0), *([(on[u, t - 1], -1.0)] if t else [])], 0.0)
    bounds = [(0, 1)] * (2 * k) + [(0, 100)] * k
    region = sk.MixedInteger(np.array(A), b, bounds=bounds, integrality=np.repeat([1, 1, 0], k))
    return region, np.concatenate([np.full(k, 20.0), np.full(k, 60.0), np.repeat(rng.uniform(1, 4, size=units), hours)])


def schedule(rng: np.random.Generator, tasks: int, hours: int) -> tuple[sk.Region, np.ndarray]:
    """Each task runs once without a break, at most two of them at a time; prices per hour are predicted."""
    length, use = rng.integers(1, 5, size=tasks), rng.uniform(1, 5, size=tasks)
    starts = [(i, t) for i in range(tasks) for t in range(hours - length[i] + 1)]
    once, busy = np.zeros((tasks, len(starts))), np.zeros((hours, len(starts)))
    for j, (i, t) in enumerate(starts):
        once[i, j], busy[t : t + length[i], j] = 1.0, 1.0
    power = busy * use[[i for i, _ in starts]]
    inner = sk.MixedInteger(busy, np.full(hours, 2.0), once, np.ones(tasks), bounds=(0, 1))
    return sk.LinearImage(inner, power), np.full(hours, 30.0)


PROBLEMS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "knapsack 1x10": (knapsack, (1, 10)),
    "knapsack 2x16": (knapsack, (2, 16)),
    "knapsack 2x32": (knapsack, (2, 32)),
    "knapsack 5x20": (knapsack, (5, 20)),
    "knapsack 3x60": (knapsack, (3, 60)),
    "packing 30 of 20": (packing, (30, 20)),
    "tour of 8": (tour, (8,)),
    "tour of 12": (tour, (12,)),
    "tour of 20": (tour, (20,)),
    "unit commitment 5x12": (commitment, (5, 12)),
    "schedule 6x24": (schedule, (6, 24)),
}
QUICK = ("knapsack 1x10", "tour of 8")


def data(rng: np.random.Generator, typical: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features and costs of all days."""
    n, d = N_TRAIN + N_TEST, typical.size
    B, X = rng.integers(0, 2, size=(d, P)), rng.normal(size=(n, P))
    factor = ((X @ B.T / np.sqrt(P) + 3.0) ** 6 + 1.0) / 3.5**6
    return X, typical * factor * rng.uniform(0.5, 1.5, size=(n, d))


def by_milp(region: Any, c: np.ndarray) -> float:
    """Least cost of one row by scipy."""
    if isinstance(region, sk.LinearImage):
        return by_milp(region.region, region.matrix.T @ c)
    form = region._constraints(c.size)
    integers = (
        np.ones(c.size) if not isinstance(region, sk.MixedInteger) else np.broadcast_to(region.integrality, c.size)
    )
    A = vstack([form.A_ub, form.A_eq])
    low, high = np.append(np.full(form.b_ub.size, -np.inf), form.b_eq), np.append(form.b_ub, form.b_eq)
    while True:
        limits = LinearConstraint(A, low, high)
        found = milp(c, constraints=limits, bounds=Bounds(form.lower, form.upper), integrality=integers)
        if not isinstance(region, sk.TravellingSalesman):
            return float(found.fun)
        n = form.A_eq.shape[0]
        first, second = np.triu_indices(n, 1)
        used = found.x > 0.5
        count, label = connected_components(csr_array((np.ones(used.sum()), (first[used], second[used])), shape=(n, n)))
        if count == 1:
            return float(found.fun)
        cuts = np.array([(label[first] == k) != (label[second] == k) for k in range(count)], dtype=float)
        A, low, high = vstack([A, cuts]), np.append(low, np.full(count, 2.0)), np.append(high, np.full(count, np.inf))


def speed(region: Any, C: np.ndarray) -> tuple[float, float]:
    """Rows per second of the region and of scipy; both must find the same costs."""
    region.argmin(C[:1])  # prepares it
    start = time.process_time()
    W = region.argmin(C)
    ours = len(C) / (time.process_time() - start)
    some = region.to_min(C[:5])
    start = time.process_time()
    best = [by_milp(region, c) for c in some]
    theirs = len(some) / (time.process_time() - start)
    np.testing.assert_allclose((some * W[:5]).sum(axis=1), best, rtol=1e-6, atol=1e-9)
    return ours, theirs


def models(region: sk.Region, limit: float) -> dict[str, Any]:
    options: dict[str, Any] = {"tol": 1e-2, "time_limit": limit}
    return {
        "least squares": sk.TwoStageRegressor(region=region),
        "relaxation": sk.SPOPlusRegressor(region, alpha=0.1, surrogate_region="relaxation", **options),
        "integers": sk.SPOPlusRegressor(region, alpha=0.1, **options),
        "relaxation CV": sk.SPOPlusRegressorCV(region, surrogate_region="relaxation", cv=3, **options),
        "integers CV": sk.SPOPlusRegressorCV(region, surrogate_region=None, cv=3, **options),
    }


def run(name: str, draws: int, limit: float) -> dict[str, Any]:
    """One row of the table."""
    make, sizes = PROBLEMS[name]
    regrets: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    speeds = []
    for draw in range(draws):
        rng = np.random.default_rng([sum(map(ord, name)), draw])
        region, typical = make(rng, *sizes)
        X, C = data(rng, typical)
        if draw == 0:
            speeds = speed(region, region.to_min(np.abs(C[:100])) if region.sense == "min" else C[:100])
        for model_name, model in models(region, limit).items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X[:N_TRAIN], C[:N_TRAIN])
            seconds.setdefault(model_name, []).append(time.process_time() - start)
            loss = normalized_spo_loss(C[N_TRAIN:], model.predict(X[N_TRAIN:]), region)
            regrets.setdefault(model_name, []).append(100 * loss)
    row: dict[str, Any] = {"problem": name, "draws": draws, "rows/s": speeds[0], "rows/s, milp": speeds[1]}
    row |= {model_name: float(np.mean(values)) for model_name, values in regrets.items()}
    row |= {f"s, {model_name}": float(np.median(values)) for model_name, values in seconds.items()}
    row |= {"difference": difference(regrets), "difference CV": difference(regrets, " CV")}
    return row | {"limit": limit, "regrets": regrets}


def difference(regrets: dict[str, list[float]], end: str = "") -> str | None:
    """Regret of the relaxation less that of the integers: the mean and its standard error over the draws."""
    less = np.subtract(regrets[f"relaxation{end}"], regrets[f"integers{end}"])
    return f"{less.mean():+.2f} ({less.std(ddof=1) / np.sqrt(less.size):.2f})" if less.size > 1 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2, help="draws of each problem")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a fit")
    parser.add_argument("--only", choices=list(PROBLEMS), action="append", help="some of the problems; repeatable")
    parser.add_argument("--quick", action="store_true", help="small versions, as a test")
    out_option(parser)
    args = parser.parse_args()
    names = args.only or (QUICK if args.quick else PROBLEMS)
    both = ("least squares", "relaxation", "integers", "relaxation CV", "integers CV")
    columns = {"problem": "", "rows/s": ",.0f", "rows/s, milp": ",.0f"} | dict.fromkeys(both, ".2f")
    columns |= {"difference": "", "difference CV": ""}
    columns |= {f"s, {name}": ".2f" for name in both[1:]} | {"limit": "g", "draws": "d"}
    table = Table(
        "integer", key=("problem",), columns=columns, packages=("highspy", "scipy"), file=args.out, quick=args.quick
    )
    print(table.head())
    for name in names:
        print(table.add(run(name, 1 if args.quick else args.draws, args.limit)), flush=True)
    table.write(about=f"{N_TRAIN} days to train, {N_TEST} to test.")


if __name__ == "__main__":
    main()
