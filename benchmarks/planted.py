"""Planted arcs: linear models that are far from the truth, and two paths that decide nearly everything.

    python benchmarks/planted.py [--trials 20] [--samples 200 400]
    python benchmarks/planted.py --results planted.jsonl                  goes on where an interrupted run stopped
    python benchmarks/planted.py --quick                                  one trial of one cell, as a test
    python benchmarks/planted.py --out docs/benchmarks/README.md          also write table and results/planted.json

The data of Huang and Gupta, "Decision-Focused Learning with Directional Gradients" (2024): 5x5 paths, five normal
features and one that is uniform on (0, 2), costs of degree 6.  One path costs 2 on each of its arcs; another one costs
four times the sixth feature, at most 2.2; all other arcs cost 2.2 and more.  "normal" noise is added, "uniform" noise
multiplies.  Regret of 10,000 new samples at their mean costs, sum divided by sum; n training samples and 200 more, with
which the published methods choose among models, and to which the models here are fitted as well.

The published figures are read off a plot, means of 100 trials.  Standard errors are of the mean over the trials here.
``SPORegressor`` takes longer than the others together and has fewer trials, the first ones.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

from results import Table, out_option  # first: it also limits numpy to one thread

import numpy as np  # isort: skip

import skspo as sk

NOISES = ("normal", "uniform")
SAMPLES = (200, 400, 800, 1600)
#: arcs of the path that always costs 2, and of the one whose costs depend on the sixth feature
CERTAIN, RISKY = [1, 4, 9, 16, 24, 31, 36, 39], [0, 3, 8, 15, 23, 30, 35, 38]
#: (noise, method): published regret for each of SAMPLES
PUBLISHED = {
    ("normal", "SPO+"): (0.0333, 0.0286, 0.0271, 0.0264),
    ("normal", "FY"): (0.0224, 0.0174, 0.0169, 0.017),
    ("normal", "PG"): (0.0174, 0.0100, 0.0124, 0.0169),
    ("uniform", "SPO+"): (0.0383, 0.0326, 0.0306, 0.0306),
    ("uniform", "FY"): (0.0284, 0.0234, 0.0225, 0.0224),
    ("uniform", "PG"): (0.0219, 0.0179, 0.0201, 0.0159),
}
VALIDATION, N_TEST = 200, 10_000
SPO_TRIALS = 5
LS, SPO_PLUS, SPO, SPO_CV = "least squares", "SPO+", "SPO", "SPO CV"


def edges() -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Arcs between the diagonals of the grid: those that leave a node, and in the second half those that enter one."""
    arcs = []
    for layer in range(4):
        arcs += [((layer, i), (layer + 1, i + side)) for i in range(layer + 1) for side in (0, 1)]
    for layer in range(4, 8):
        arcs += [((layer, j + side), (layer + 1, j)) for j in range(8 - layer) for side in (0, 1)]
    return arcs


REGION = sk.ShortestPath(edges(), cost_bounds=None)


def make(n: int, noise: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, costs and mean costs."""
    B = np.random.RandomState(1).binomial(1, 0.5, (REGION.n_dim, 5))
    X = np.column_stack([rng.normal(size=(n, 5)), rng.uniform(0, 2, n)])
    mean = ((X[:, :5] @ B.T / np.sqrt(5) + 3) ** 6 + 1) / 3.5**6 + 2.2
    mean[:, CERTAIN] = 2.0
    mean[:, RISKY] = np.minimum(4 * X[:, [5]], 2.2)
    if noise == "normal":
        return X, mean + rng.normal(0, 0.3, mean.shape), mean
    return X, mean * rng.uniform(0.7, 1.3, mean.shape), mean


def models(trial: int) -> dict[str, sk.TwoStageRegressor]:
    """Methods of a trial."""
    found = {
        LS: sk.TwoStageRegressor(region=REGION),
        SPO_PLUS: sk.SPOPlusRegressor(REGION),
        SPO_CV: sk.SPORegressorCV(REGION, random_state=trial),
    }
    return found | ({SPO: sk.SPORegressor(REGION, random_state=trial)} if trial < SPO_TRIALS else {})


def run_trial(n: int, noise: str, trial: int) -> tuple[dict[str, float], dict[str, float]]:
    """Regret of each method on new samples, and seconds of processor time."""
    rng = np.random.default_rng((n, NOISES.index(noise), trial))
    X, C, _ = make(n + VALIDATION, noise, rng)
    X_test, _, mean = make(N_TEST, noise, rng)
    regret, seconds = {}, {}
    for name, model in models(trial).items():
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sk.NotCertifiedWarning)
            model.fit(X, C)
        seconds[name] = time.process_time() - start
        regret[name] = float(sk.normalized_spo_loss(mean, model.predict(X_test), REGION))
    return regret, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--samples", type=int, nargs="+", default=SAMPLES, choices=SAMPLES)
    parser.add_argument("--results", type=Path, metavar="FILE.jsonl", help="trials; those that are there are kept")
    parser.add_argument("--quick", action="store_true", help="one trial of one cell")
    out_option(parser)
    args = parser.parse_args()
    cells = [(noise, n) for noise in NOISES for n in args.samples]
    if args.quick:
        cells, args.trials = [("normal", 200)], 1

    def with_error(name: str):
        def text(row: dict) -> str:
            error = row["error"][name]
            return f"{row['regret'][name]:.4f}" + ("" if error is None else f" ({error:.4f})")

        return text

    columns = {"noise": "", "n": ",", "trials": lambda row: f"{row['trials']} / {min(row['trials'], SPO_TRIALS)}"}
    columns |= {LS: with_error(LS)} | {f"{name}, published": ".4f" for name in ("SPO+", "FY", "PG")}
    columns |= {name: with_error(name) for name in (SPO_PLUS, SPO, SPO_CV)}
    columns |= {
        "s, SPO": lambda row: f"{row['seconds'][SPO]:.1f}",
        "s, SPO CV": lambda row: f"{row['seconds'][SPO_CV]:.1f}",
    }
    options = {"packages": ("numpy", "scipy"), "file": args.out, "quick": args.quick}
    table = Table("planted", key=("noise", "n"), columns=columns, **options)
    lines = args.results.read_text().splitlines() if args.results and args.results.exists() else []
    known = {(noise, n, trial): done for noise, n, trial, *done in map(json.loads, lines)}
    for trial in range(args.trials):  # trial by trial, so that an interrupted run has something of every cell
        for noise, n in cells:
            if (noise, n, trial) not in known:
                known[noise, n, trial] = done = run_trial(n, noise, trial)
                if args.results:
                    with args.results.open("a") as file:
                        file.write(json.dumps((noise, n, trial, *done)) + "\n")
                print(noise, n, trial, done[0], flush=True)
    print(table.head())
    for noise, n in cells:
        print(table.add(summary(noise, n, [known[noise, n, trial] for trial in range(args.trials)])))
    below = [row for row in table.rows if row["regret"][SPO_CV] <= row["PG, published"]]
    verdict = f"SPORegressorCV is at most the published PG in {len(below)} of {len(table.rows)} cells"
    print(verdict)
    table.write(f"Seeds (n, noise, trial), trials 0 to {args.trials - 1}.", notes=[verdict])


def summary(noise: str, n: int, trials: list[Any]) -> dict[str, Any]:
    """Means over the trials of a cell, with their standard errors."""
    row: dict[str, Any] = {"noise": noise, "n": n, "trials": len(trials), "regret": {}, "error": {}, "seconds": {}}
    for name in models(0):
        values = np.array([regret[name] for regret, _ in trials if name in regret])
        row["regret"][name] = values.mean()
        row["error"][name] = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
        row["seconds"][name] = np.mean([seconds[name] for _, seconds in trials if name in seconds])
    return row | {f"{name}, published": PUBLISHED[noise, name][SAMPLES.index(n)] for name in ("SPO+", "FY", "PG")}


if __name__ == "__main__":
    main()
