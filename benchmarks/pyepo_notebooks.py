"""Notebooks of PyEPO on their own data and seeds: test regret and seconds of skspo next to PyEPO's printed figures.

    python benchmarks/pyepo_notebooks.py [--out docs/benchmarks/README.md]
    python benchmarks/pyepo_notebooks.py --quick             a few samples and two methods, as a test

Five features, noise 0.5, 1000 test samples.  Notebooks 03 ("training and testing") and 08 ("kNN robust losses"):
shortest paths on a 5x5 grid, of degree 4 with 1000 training samples, and of degree 6 with 100.  Both draw
``genData(1000 + n, 5, (5, 5), degree, noise_width=0.5, seed=42)`` and split by ``train_test_split(..., test_size=1000,
random_state=42)``.  Notebook 05 ("2D knapsack solving and training"): 0-1 knapsacks of 16 items with two capacities of
20, degree 6, 100 training samples, seed 135, and 246 for the split.  ``make_shortest_path`` and ``make_knapsack`` draw
the same numbers in the same order as PyEPO; it stores costs with single precision, and so does ``notebook_data``.
PyEPO is not needed.

The figures of PyEPO are those printed in the notebooks of its repository (khalil-research/PyEPO), after the last epoch
of the linear model.  Its seconds are not listed: notebooks 03 and 08 sum ``elapsed`` inside the loop over batches, from
one start per epoch, so that running sums are added up, and all are of another machine.  Those of skspo are processor
time of ``fit`` on one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

from results import Table, out_option  # first: it also limits numpy to one thread

import numpy as np  # isort: skip
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import skspo as sk
from skspo.datasets import make_knapsack, make_shortest_path

#: notebook: training samples, degree, seed of the data, seed of the split
NOTEBOOKS = {"03": (1000, 4, 42, 42), "05": (100, 6, 135, 246), "08": (100, 6, 42, 42)}
#: notebook: regret in percent, by method of PyEPO
PUBLISHED = {
    "03": {
        "AI-MLE": 7.24,
        "PFYL": 7.29,
        "RFWO": 7.40,
        "PFYL, multiplicative": 7.54,
        "SPO+": 7.59,
        "RFYL": 7.79,
        "LTR, pointwise": 8.47,
        "NID": 8.90,
        "LTR, listwise": 9.59,
        "LTR, pairwise": 9.73,
        "DPO": 9.88,
        "NCE": 10.29,
        "I-MLE": 12.07,
        "CMAP": 12.97,
        "PG": 14.16,
        "DBB": 15.12,
    },
    "05": {
        "SPO+": 6.27,
        "NCE": 6.89,
        "PFYL": 8.03,
        "RFYL": 8.40,
        "RFWO": 10.02,
        "two-stage": 10.55,
        "NID": 11.01,
        "DPO": 12.21,
        "LTR": 12.37,
        "I-MLE": 13.98,
        "DBB": 17.00,
        "PG": 18.97,
    },
    "08": {"SPO+, kNN-smoothed costs": 10.86, "PFYL, kNN-smoothed costs": 11.89, "SPO+": 13.13, "PFYL": 16.49},
}


def notebook_data(notebook: str) -> tuple[list[np.ndarray], sk.Region]:
    """X_train, X_test, C_train, C_test of a notebook, and its region."""
    n, degree, seed, split_seed = NOTEBOOKS[notebook]
    options = {"degree": degree, "noise": 0.5, "random_state": seed}
    region: sk.Region = sk.ShortestPath.grid(5, 5)
    if notebook == "05":
        X, C, weights = make_knapsack(n + 1000, 5, 16, n_constraints=2, return_weights=True, **options)
        region = sk.Knapsack(weights, [20, 20])
    else:
        X, C = make_shortest_path(n + 1000, grid=(5, 5), **options)
    C = C.astype(np.float32).astype(float)
    return train_test_split(X, C, test_size=1000, random_state=split_seed), region


def quadratic(model: Any) -> Any:
    """The model on the features and their products."""
    return make_pipeline(PolynomialFeatures(2, include_bias=False), model)


def two_members(region: sk.Region) -> sk.SPOStackingRegressor:
    members = [("linear", sk.SPOPlusRegressorCV()), ("quadratic", quadratic(sk.SPOPlusRegressorCV()))]
    return sk.SPOStackingRegressor(region, members, random_state=0)


#: methods, as functions of the region
MODELS: dict[str, Callable[[sk.Region], Any]] = {
    "least squares": lambda region: sk.TwoStageRegressor(region=region),
    "gradient boosting": lambda region: sk.TwoStageRegressor(HistGradientBoostingRegressor(random_state=0), region),
    "SPO+": lambda region: sk.SPOPlusRegressor(region),
    "SPO+ CV": lambda region: sk.SPOPlusRegressorCV(region),
    "SPO+, quadratic features": lambda region: quadratic(sk.SPOPlusRegressor(region)),
    "SPO+ CV, quadratic features": lambda region: quadratic(sk.SPOPlusRegressorCV(region)),
    "stack of SPO+ CV and SPO+ CV, quadratic features": two_members,
    "SPOStackingRegressor with its defaults": lambda region: sk.SPOStackingRegressor(region, random_state=0),
}
#: the methods of regions of integers
OF_INTEGERS: dict[str, Callable[[sk.Region], Any]] = {
    "SPO+ CV, trained on the relaxation": lambda region: sk.SPOPlusRegressorCV(region, surrogate_region="relaxation")
}


def models(notebook: str) -> dict[str, Callable[[sk.Region], Any]]:
    return MODELS | OF_INTEGERS if notebook == "05" else MODELS


COLUMNS = {"notebook": "", "package": "", "method": "", "test regret %": ".2f", "seconds": ".2f"}


def measure(notebook: str, name: str, n: int | None = None) -> dict[str, float]:
    """Test regret in percent, and processor time of the fit to the first n samples."""
    (X, X_test, C, C_test), region = notebook_data(notebook)
    model = models(notebook)[name](region)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sk.NotCertifiedWarning)
        models(notebook)[name](region).fit(X[:40], C[:40])  # lazy imports and compiled kernels
        start = time.process_time()
        model.fit(X[:n], C[:n])
        seconds = time.process_time() - start
    regret = 100 * float(sk.normalized_spo_loss(C_test, model.predict(X_test), region))
    return {"test regret %": regret, "seconds": seconds}


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="50 training samples and two methods")
    out_option(parser)
    args = parser.parse_args()
    table = Table(
        "pyepo_notebooks",
        key=("notebook", "package", "method"),
        columns=COLUMNS,
        packages=("scikit-learn", "numpy", "scipy"),
        file=args.out,
        quick=args.quick,
    )
    print(table.head())
    notes = []
    for notebook, published in PUBLISHED.items():
        for name in ("least squares", "SPO+") if args.quick else models(notebook):
            row = {"notebook": notebook, "package": "skspo", "method": name}
            print(table.add(row | measure(notebook, name, 50 if args.quick else None)), flush=True)
        for name, regret in published.items():
            row = {"notebook": notebook, "package": "PyEPO, as printed", "method": name, "test regret %": regret}
            print(table.add(row | {"seconds": None}), flush=True)
        rows = [row for row in table.rows if row["notebook"] == notebook and row["package"] == "skspo"]
        best = min(published.values())
        below = [f"{row['method']} {row['test regret %']:.2f} %" for row in rows if row["test regret %"] < best]
        notes.append(
            f"notebook {notebook}: the lowest figure of PyEPO is {best:.2f} %; {len(below)} of {len(rows)} methods are "
            f"below it: {'; '.join(below)}"
        )
    print("", *notes, sep="\n")
    table.write(notes=notes)


if __name__ == "__main__":
    main()
