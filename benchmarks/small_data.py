"""Few samples: test SPO loss of the cross-validated model compared with least squares, on 5x5 shortest paths.

    python benchmarks/small_data.py [--draws 10] [--degrees 1 4 6 8] [--jobs 1] [--samples 100] [--first 0]
    python benchmarks/small_data.py --quick      one draw of 40 samples, as a test
    python benchmarks/small_data.py --out docs/benchmarks/README.md     also write table and results/small_data.json

Every draw has its own coefficients, training samples and 10,000 test samples; columns are means over the draws of the
normalized SPO loss.  "by SPO loss" is the ratio if alpha were chosen by the held-out SPO loss instead of the SPO+ loss,
"hindsight" that of the best alpha of each draw on the test data.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time

import numpy as np
from joblib import Parallel, delayed
from results import Table, out_option

from skspo import ShortestPath, SPOPlusRegressorCV, TwoStageRegressor, normalized_spo_loss, spo_plus_path
from skspo.datasets import make_shortest_path

TARGETS = {1: 1.03, 4: 0.95, 6: 0.78, 8: 0.65}


def run(degree: int, draw: int, n: int) -> tuple[float, float, float, float, float]:
    """Test loss of least squares, of the chosen model, of another choice and of the best one; seconds of the fit."""
    region = ShortestPath.grid(5, 5)
    X, C, coef = make_shortest_path(n, degree=degree, noise=0.5, random_state=draw, return_coef=True)
    X_test, C_test = make_shortest_path(10_000, degree=degree, noise=0.5, random_state=1000 + draw, coef=coef)
    start = time.process_time()
    model = SPOPlusRegressorCV(region).fit(X, C)
    seconds = time.process_time() - start
    least_squares = TwoStageRegressor(region=region).fit(X, C)
    _, coefs, intercepts, _, _ = spo_plus_path(X, C, region, alphas=model.alphas_)
    path = [normalized_spo_loss(C_test, X_test @ B.T + b, region) for B, b in zip(coefs, intercepts, strict=True)]
    by_spo_loss = path[np.nanargmin(model.cv_results_["mean_test_spo_loss"])]
    return -least_squares.score(X_test, C_test), -model.score(X_test, C_test), by_spo_loss, min(path), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--degrees", type=int, nargs="+", default=list(TARGETS))
    parser.add_argument("--jobs", type=int, default=1, help="draws at the same time")
    parser.add_argument("--samples", type=int, default=100, help="training samples")
    parser.add_argument("--quick", action="store_true", help="one draw of 40 samples")
    out_option(parser)
    args = parser.parse_args()
    if args.quick:
        args.draws, args.samples = 1, 40
    columns = {
        "samples": "d",
        "degree": "d",
        "least squares": ".4f",
        "SPO+ CV": ".4f",
        "ratio": ".3f",
        "target": ".2f",
        "verdict": "",
        "worst draw": ".3f",
        "by SPO loss": ".3f",
        "hindsight": ".3f",
        "s per fit": ".1f",
    }
    key, packages = ("samples", "degree"), ("numpy", "scipy")
    table = Table("small_data", key=key, columns=columns, packages=packages, file=args.out, quick=args.quick)
    print(table.head())
    for degree in args.degrees:
        draws = Parallel(n_jobs=args.jobs)(
            delayed(run)(degree, args.first + draw, args.samples) for draw in range(args.draws)
        )
        least_squares, chosen, by_spo_loss, hindsight, seconds = np.array(draws).T
        mean = least_squares.mean()
        row = {"samples": args.samples, "degree": degree, "least squares": mean, "SPO+ CV": chosen.mean()}
        row |= {"ratio": chosen.mean() / mean, "target": TARGETS.get(degree)}
        row |= {"worst draw": (chosen / least_squares).max(), "by SPO loss": by_spo_loss.mean() / mean}
        row |= {"hindsight": hindsight.mean() / mean, "s per fit": seconds.mean(), "draws": args.draws}
        if row["target"] is not None:
            row["verdict"] = "met" if row["ratio"] <= row["target"] else "missed"
        print(table.add(row), flush=True)
    table.write(f"Draws {args.first} to {args.first + args.draws - 1}.")


if __name__ == "__main__":
    main()
