"""SPORegressor: test loss compared with the other losses, distance from the optimum, and time.

    python benchmarks/spo.py                 everything, about ten minutes
    python benchmarks/spo.py --quick         few draws, as a test
    python benchmarks/spo.py --out docs/benchmarks/README.md     also write tables and results/spo.json, spo_fits.json

1. Portfolio data of Liu and Grigas: d=50, p=5, noise 0.5, default threshold, n=300, mean normalized SPO loss of 10,000
   test samples.  "absolute" minimizes the absolute error exactly, one linear program per cost.
2. Random problems over the simplex: X and the noise are standard normal, c = B x + noise, 10 to 40 samples, 3 or 4
   costs, 2 features.  Line searches against the optimum by mixed-integer programming.
3. Seconds: one line search with n=10,000, d=10, and whole fits.
"""

from __future__ import annotations

import argparse
import time
import warnings

from results import Table, out_option  # first: it also limits numpy to one thread

import numpy as np  # isort: skip
from sklearn.linear_model import QuantileRegressor

import skspo as sk
from skspo._training.in_memory import InMemoryObjective
from skspo.datasets import make_cost_sensitive_classification, make_portfolio, make_shortest_path
from skspo.solvers.spo.descent import loss_along_lines

N_TRAIN, N_TEST = 300, 10_000


def portfolio(draws: int, table: Table) -> list[str]:
    region = sk.EntropySimplex()
    absolute = QuantileRegressor(alpha=0.0, solver="highs")
    methods = {
        "SPO": lambda: sk.SPORegressor(region, random_state=0),
        "SPO+": lambda: sk.SPOPlusRegressor(region),
        "absolute": lambda: sk.TwoStageRegressor(absolute, region),
        "squared": lambda: sk.TwoStageRegressor(region=region),
    }
    lines = []
    for degree in (1, 2, 4, 6, 8):
        losses = np.zeros((draws, len(methods)))
        for draw in range(draws):
            X, C = make_portfolio(N_TRAIN + N_TEST, degree=degree, noise=0.5, random_state=draw)
            for m, make in enumerate(methods.values()):
                model = make().fit(X[:N_TRAIN], C[:N_TRAIN])
                losses[draw, m] = sk.normalized_spo_loss(C[N_TRAIN:], model.predict(X[N_TRAIN:]), region)
        means, errors = losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(draws)
        row = {"degree": degree, "draws": draws, **dict(zip(methods, means, strict=True))}
        row |= {f"error of {name}": error for name, error in zip(methods, errors, strict=True)}
        print(table.add(row), flush=True)
        if degree >= 4:
            verdict = "met" if (np.diff(means) > 0).all() else "MISSED"
            lines.append(f"target {verdict}: degree {degree}: SPO < SPO+ < absolute < squared")
        else:
            spread = means.max() / means.min() - 1
            lines.append(f"degree {degree}: the four are within {100 * spread:.1f} % of each other")
    return lines


def optimum(instances: int, time_limit: float) -> list[str]:
    reached, near, proved, seconds, truth_seconds = 0, 0, 0, 0.0, 0.0
    for seed in range(instances):
        rng = np.random.default_rng(seed)
        n, d, p = int(rng.integers(10, 41)), int(rng.integers(3, 5)), 2
        X = rng.normal(size=(n, p))
        C = rng.normal(size=(n, d)) + X @ rng.normal(size=(p, d))
        start = time.perf_counter()
        model = sk.SPORegressor(sk.Simplex(), random_state=0).fit(X, C)
        middle = time.perf_counter()
        truth = sk.SPORegressor(sk.Simplex(), solver="milp", time_limit=time_limit).fit(X, C)
        seconds, truth_seconds = seconds + middle - start, truth_seconds + time.perf_counter() - middle
        proved += truth.status_ == "converged"
        reached += model.objective_ <= truth.objective_ * (1 + 1e-6) + 1e-12
        near += model.objective_ <= 1.05 * truth.objective_ + 1e-12
    return [
        f"{'target met' if near >= 0.8 * instances else 'target MISSED'}: line searches within 5 % of the optimum on "
        f"{near} of {instances} problems, at the optimum on {reached}; {proved} optima were proved within "
        f"{time_limit:g} s, the others are the best model found",
        f"mean seconds: line searches {seconds / instances:.1f}, mixed-integer program {truth_seconds / instances:.1f}",
    ]


def times(table: Table) -> list[str]:
    rng = np.random.default_rng(0)
    X, C = make_cost_sensitive_classification(10_000, degree=2, noise=0.5, random_state=0)
    objective = InMemoryObjective(sk.SPOLoss(sk.Simplex()), X, C)
    Theta, Delta = rng.normal(size=(2, *objective.shape))
    start = time.perf_counter()
    pieces = loss_along_lines(objective, Theta, Delta[None])
    lines = [f"one line search, n=10,000, d=10: {time.perf_counter() - start:.3f} s, {pieces.left.size:,} pieces"]
    grid = sk.ShortestPath.grid(5, 5)
    for name, region, data in (
        ("ten classes, n=1000", sk.Simplex(), (X[:1000], C[:1000])),
        ("shortest path 5x5, n=1000", grid, make_shortest_path(1000, degree=4, noise=0.5, random_state=0)),
        ("portfolio d=50, n=1000", sk.EntropySimplex(), make_portfolio(1000, degree=4, noise=0.5, random_state=0)),
    ):
        surrogate = sk.SPOPlusRegressor(region).fit(*data)
        before = sk.spo_loss(data[1], surrogate.predict(data[0]), region)
        start = time.process_time()
        model = sk.SPORegressor(region, random_state=0).fit(*data)
        row = {"problem": name, "s": time.process_time() - start, "solver": model.solver_, "iterations": model.n_iter_}
        print(table.add({**row, "SPO+": before, "SPO": float(model.objective_)}), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    out_option(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = {"degree": "d"}
    for name in ("SPO", "SPO+", "absolute", "squared"):
        columns[name] = lambda row, name=name: f"{row[name]:.4f} ({row[f'error of {name}']:.4f})"
    options = {"packages": ("numpy", "scipy", "scikit-learn", "highspy"), "file": args.out, "quick": args.quick}
    table = Table("spo", key=("degree",), columns=columns, **options)
    print(table.head())
    lines = portfolio(2 if args.quick else 10, table)
    print(*lines, sep="\n", flush=True)
    columns = {"problem": "", "s": ".1f", "solver": "", "iterations": "d", "SPO+": ".4f", "SPO": ".4f"}
    fits = Table("spo_fits", key=("problem",), columns=columns, **options)
    print("", fits.head(), sep="\n")
    more = times(fits)
    print(*more, sep="\n", flush=True)
    found = optimum(5 if args.quick else 50, 5.0 if args.quick else 30.0)
    print(*found, sep="\n")
    table.write(notes=[*lines, *found])
    fits.write("s: processor time. SPO+, SPO: SPO loss of the training set at the start, and at the end.", more)


if __name__ == "__main__":
    main()
