"""How many features?  Regret and seconds of SPO+ on 5 to 2,000 features of the same five numbers.

    python benchmarks/features.py                     five draws, a quarter of an hour
    python benchmarks/features.py --draws 1 --most 100
    python benchmarks/features.py --quick             two small draws, as a test
    python benchmarks/features.py --out docs/benchmarks/README.md     also write table and results/features.json

5x5 shortest paths, n=1000, degree 6, noise 0.5.  Features are those of the data, polynomials, splines, and random ones
of a Gaussian kernel beside the linear ones.  "SPO+" is ``SPOPlusRegressorCV(prior="zero")``, "ridge" is ``RidgeCV`` on
the same features, then the optimization.  A figure is the normalized SPO loss of 5,000 new samples in percent: the
median over the draws, with the smallest and the largest in parentheses.  "ratio" is the median of SPO+ / ridge of a
draw.  Seconds are processor time of the fit of SPO+, the choice of the penalty included.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from results import Table, out_option
from sklearn.base import BaseEstimator
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, SplineTransformer, StandardScaler

from skspo import NotCertifiedWarning, ShortestPath, SPOPlusRegressorCV, TwoStageRegressor
from skspo.datasets import make_shortest_path

REGION, GAMMA = ShortestPath.grid(5, 5), 0.1


def transformers(n: int) -> Iterator[tuple[str, BaseEstimator]]:
    """Transformers by name."""
    yield "as given", FunctionTransformer()
    for degree in (2, 3):
        yield f"polynomials of degree {degree}", PolynomialFeatures(degree, include_bias=False)
    yield "splines", SplineTransformer(n_knots=6)
    for k in (60, 200, 500):
        if k <= n:
            yield (
                f"Nystroem {k}",
                make_union(FunctionTransformer(), Nystroem(gamma=GAMMA, n_components=k, random_state=0)),
            )
    fourier = RBFSampler(gamma=GAMMA, n_components=2000, random_state=0)
    yield "random Fourier 2000", make_union(FunctionTransformer(), fourier)


def spread(name: str) -> Callable[[dict[str, Any]], str]:
    """Column with the median over the draws, the smallest and the largest."""

    def cell(row: dict[str, Any]) -> str:
        return f"{np.median(row[name]):.2f} ({min(row[name]):.2f} to {max(row[name]):.2f})"

    return cell


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--most", type=int, default=3000, help="largest number of features")
    parser.add_argument("--quick", action="store_true", help="two draws of 60 samples, up to 30 features")
    out_option(parser)
    args = parser.parse_args()
    if args.quick:
        args.draws, args.samples, args.most = 2, 60, 30
    warnings.simplefilter("ignore", NotCertifiedWarning)
    columns = {"features": "", "number": "d", "SPO+ %": spread("SPO+ %"), "ridge %": spread("ridge %")}
    columns |= {"ratio": ".3f", "seconds of SPO+": ".1f"}
    options = {"packages": ("scikit-learn", "numpy"), "file": args.out, "quick": args.quick}
    table = Table("features", key=("features",), columns=columns, **options)
    print(table.head())
    for name, transformer in transformers(args.samples):
        rows, p = [], 0
        for draw in range(args.draws):
            seed = 30_000 + draw
            X, C, coef = make_shortest_path(args.samples, degree=6, noise=0.5, random_state=seed, return_coef=True)
            X_test, C_test = make_shortest_path(5_000, degree=6, noise=0.5, random_state=40_000 + draw, coef=coef)
            features = make_pipeline(StandardScaler(), transformer)
            Z, Z_test = features.fit_transform(X), features.transform(X_test)
            p = Z.shape[1]
            if p > args.most:
                break
            start = time.process_time()
            model = SPOPlusRegressorCV(REGION, prior="zero").fit(Z, C)
            seconds = time.process_time() - start
            ridge = TwoStageRegressor(RidgeCV(np.logspace(-3, 3, 13)), REGION).fit(Z, C)
            rows.append((-100 * model.score(Z_test, C_test), -100 * ridge.score(Z_test, C_test), seconds))
        if rows:
            spo_plus, two_stage, seconds = np.array(rows).T
            row = {"features": name, "number": p, "SPO+ %": spo_plus, "ridge %": two_stage}
            row |= {"ratio": np.median(spo_plus / two_stage), "seconds of SPO+": np.median(seconds)}
            print(table.add(row), flush=True)
    table.write(f"{args.draws} draws: median, and the smallest and the largest in parentheses.")


if __name__ == "__main__":
    main()
