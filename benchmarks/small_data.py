"""Few samples: test SPO loss of the cross-validated model compared with least squares, on 5x5 shortest paths.

    python benchmarks/small_data.py [--draws 10] [--degrees 1 4 6 8] [--jobs 1] [--samples 100] [--first 0]

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
from results import markdown, setting, write_section

from skspo import ShortestPath, SPOPlusRegressorCV, TwoStageRegressor, normalized_spo_loss, spo_plus_path
from skspo.datasets import make_shortest_path

TARGETS = {1: 1.03, 4: 0.95, 6: 0.78, 8: 0.65}


def run(degree: int, draw: int, n: int) -> tuple[float, float, float, float, float]:
    """Test loss of least squares, of the chosen model, of another choice and of the best one; seconds of the fit."""
    region = ShortestPath.grid(5, 5)
    X, C, coef = make_shortest_path(n, degree=degree, noise=0.5, random_state=draw, return_coef=True)
    X_test, C_test = make_shortest_path(10_000, degree=degree, noise=0.5, random_state=1000 + draw, coef=coef)
    start = time.perf_counter()
    model = SPOPlusRegressorCV(region).fit(X, C)
    seconds = time.perf_counter() - start
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
    parser.add_argument("--out", metavar="FILE.md", help="also write the table into this file")
    args = parser.parse_args()
    table = []
    columns = "degree", "least squares", "SPO+ CV", "ratio", "target", "", "worst draw", "by SPO loss", "hindsight"
    print(*(f"{name:>13}" for name in (*columns, "s per fit")))
    for degree in args.degrees:
        rows = Parallel(n_jobs=args.jobs)(
            delayed(run)(degree, args.first + draw, args.samples) for draw in range(args.draws)
        )
        least_squares, chosen, by_spo_loss, hindsight, seconds = np.array(rows).T
        mean = least_squares.mean()
        ratio, target = chosen.mean() / mean, TARGETS.get(degree, np.nan)
        verdict = "" if np.isnan(target) else "met" if ratio <= target else "missed"
        row = [str(degree), f"{mean:.4f}", f"{chosen.mean():.4f}", f"{ratio:.3f}", f"{target:.2f}", verdict]
        row += [
            f"{x:.3f}" for x in ((chosen / least_squares).max(), by_spo_loss.mean() / mean, hindsight.mean() / mean)
        ]
        table.append((*row, f"{seconds.mean():.1f}"))
        print(*(f"{cell:>13}" for cell in table[-1]), flush=True)
    if args.out:
        about = f"{setting('skspo', 'numpy', 'scipy')}. Draws {args.first} to {args.first + args.draws - 1}."
        write_section(args.out, "small", f"{about}\n\n{markdown((*columns, 's per fit'), table)}")


if __name__ == "__main__":
    main()
