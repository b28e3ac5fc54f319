"""SPORegressorCV: regret on new data, compared with least squares, its start and the whole way.

    python benchmarks/spo_cv.py [--draws 3] [--first 100] [--jobs 1]       about half an hour of processor time
    python benchmarks/spo_cv.py --quick                                    one case, 40 samples, one draw, as a test
    python benchmarks/spo_cv.py --out docs/benchmarks/README.md            also write table and results/spo_cv.json

Portfolio data of Liu and Grigas: d=50, p=5, n=300, noise 0.5; the entropy is a share of log d, and 0.997 is the
default.  Shortest paths on a 5 x 5 grid: n=100 and 300, noise 0.5.  Columns are means over the draws of the normalized
SPO loss of 5000 new samples; "worst" is the largest ratio of SPORegressorCV to its start, SPOPlusRegressorCV.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from results import Table, out_option

import skspo as sk
from skspo.datasets import make_portfolio, make_shortest_path

N_TEST = 5000


def portfolio(share: float | None, degree: int, n: int, seed: int) -> tuple[sk.Region, np.ndarray, np.ndarray]:
    X, C = make_portfolio(n + N_TEST, degree=degree, noise=0.5, random_state=seed)
    return sk.EntropySimplex(None if share is None else -share * np.log(C.shape[1])), X, C


def path(share: None, degree: int, n: int, seed: int) -> tuple[sk.Region, np.ndarray, np.ndarray]:
    X, C = make_shortest_path(n + N_TEST, degree=degree, noise=0.5, random_state=seed)
    return sk.ShortestPath.grid(5, 5), X, C


def run(make, share: float | None, degree: int, n: int, seed: int) -> tuple[float, ...]:
    """Losses of the four models, the step, and seconds of processor time of SPORegressorCV."""
    warnings.simplefilter("ignore")
    region, X, C = make(share, degree, n, seed)
    models = [
        sk.TwoStageRegressor(region=region),
        sk.SPOPlusRegressorCV(region, n_alphas=10, tol=1e-4),
        sk.SPORegressor(region, n_restarts=0, random_state=0),
        sk.SPORegressorCV(region, n_alphas=10, random_state=0),
    ]
    losses = []
    for model in models:
        start = time.process_time()
        losses.append(-model.fit(X[:n], C[:n]).score(X[n:], C[n:]))
        seconds = time.process_time() - start
    return *losses, models[-1].step_, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first", type=int, default=100, help="seed of the first draw")
    parser.add_argument("--jobs", type=int, default=1, help="draws at the same time")
    parser.add_argument("--quick", action="store_true", help="one case, 40 samples, one draw")
    out_option(parser)
    args = parser.parse_args()
    names = "least squares", "SPO+ CV", "SPO", "SPO CV"
    columns = {"problem": "", "degree": "d", **dict.fromkeys(names, ".4f"), "worst": ".3f"}
    columns |= {"steps": lambda row: " ".join(f"{step:.1f}" for step in row["steps"]), "s per fit": ".1f"}
    options = {"packages": ("numpy", "scipy"), "file": args.out, "quick": args.quick}
    table = Table("spo_cv", key=("problem", "degree"), columns=columns, **options)
    print(table.head())
    cases = [
        (f"portfolio, {share or 0.997}", portfolio, share, 300, degree) for share in (None, 0.7) for degree in (2, 6)
    ]
    cases += [(f"paths, n={n}", path, None, n, degree) for n in (100, 300) for degree in (1, 2, 4, 6, 8)]
    if args.quick:
        cases, args.draws = [("paths, n=40", path, None, 40, 6)], 1
    for name, make, share, n, degree in cases:
        rows = Parallel(n_jobs=args.jobs)(
            delayed(run)(make, share, degree, n, args.first + draw) for draw in range(args.draws)
        )
        found = np.array(rows)
        *losses, _, seconds = found.mean(axis=0)
        row = {"problem": name, "degree": degree, **dict(zip(names, losses, strict=True))}
        row |= {"worst": (found[:, 3] / found[:, 1]).max(), "steps": found[:, 4], "s per fit": seconds}
        print(table.add(row), flush=True)
    table.write(f"Draws {args.first} to {args.first + args.draws - 1}.")


if __name__ == "__main__":
    main()
