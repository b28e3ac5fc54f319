"""Streets that can be used both ways: clipped and unclipped predictions, cross-validated SPO+ and a stack.

    python benchmarks/streets.py [--draws 10] [--samples 100]
    python benchmarks/streets.py --quick                                  one draw of 30 samples, as a test
    python benchmarks/streets.py --out docs/benchmarks/README.md          also write table and results/streets.json

The recipe of Tang and Khalil, "Multi-task predict-then-optimize" (CPAIOR 2023), with graphs and data of its own: random
connected graphs of 30 nodes and 54 streets, one cost for both directions, ten features, costs of degree 4 with noise
0.5, which are positive.  Each draw has its own graph, ends, coefficients, n training samples and 1000 test samples.

Predictions of a linear model may be negative, and the best flow then contains cycles.  "clipped" is the default of
``ShortestPath.undirected``: at least a fifth of the mean training cost of each street.  The published models avoid
negative predictions by a softplus, so "least squares, clipped" is the one to compare with their squared error.  Ratios
are medians over the draws of the regret divided by that of "least squares, clipped", with bootstrap standard errors; a
draw has no ratio if one path is always the best.  "stack" weighs cross-validated SPO+, least squares, and a ridge
regression on the products of the features.

The table is written after each draw.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from results import Table, out_option  # first: it also limits numpy to one thread

import networkx as nx  # isort: skip
import numpy as np
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import skspo as sk

NODES, STREETS, FEATURES, DEGREE, NOISE = 30, 54, 10, 4, 0.5
SAMPLES, TEST, BOOTSTRAP = (100, 1000), 1000, 2000
#: published mean regrets in percent with 100 samples, three tasks
PUBLISHED = {"squared error": (6.63, 5.59, 14.34), "SPO+": (3.89, 4.14, 9.57), "both": (3.59, 3.54, 7.74)}
BASE = "least squares, clipped"


def stack(region: sk.Region) -> sk.SPOStackingRegressor:
    products = make_pipeline(PolynomialFeatures(2, include_bias=False), RidgeCV(np.logspace(-2, 4, 13)))
    members = [("SPO+ CV", sk.SPOPlusRegressorCV()), ("least squares", LinearRegression()), ("products", products)]
    return sk.SPOStackingRegressor(region, members, random_state=0)


CV, STACK = "SPO+ CV", "stack"
#: bounds of least squares, as shares of the mean training cost of each street; "auto" is a fifth
BOUNDS: dict[str, Any] = {
    "least squares, not clipped": None,
    "least squares, clipped at zero": 0.0,
    "least squares, clipped at a tenth": 0.1,
    BASE: "auto",
    "least squares, clipped at three tenths": 0.3,
}
METHODS = (*BOUNDS, CV, STACK)


def draw(n: int, seed: int) -> tuple[tuple[Any, ...], list[np.ndarray], list[np.ndarray]]:
    """Streets and their ends, training data, test data."""
    rng = np.random.default_rng((n, seed))
    graph = nx.empty_graph()
    while graph.number_of_edges() == 0 or not nx.is_connected(graph):
        graph = nx.gnm_random_graph(NODES, STREETS, seed=int(rng.integers(2**31)))
    source, target = rng.choice(NODES, 2, replace=False).tolist()
    B, X = rng.binomial(1, 0.5, (STREETS, FEATURES)), rng.normal(size=(n + TEST, FEATURES))
    C = ((X @ B.T / np.sqrt(FEATURES) + 3) ** DEGREE + 1) / 3.5**DEGREE
    C *= rng.uniform(1 - NOISE, 1 + NOISE, C.shape)
    return (list(graph.edges), source, target), [X[:n], C[:n]], [X[n:], C[n:]]


def run(n: int, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """Regret in percent of each method, and seconds of processor time of its fit."""
    streets, train, test = draw(n, seed)
    models: dict[str, Any] = {}
    for name, share in BOUNDS.items():
        bounds = (share * train[1].mean(axis=0), None) if isinstance(share, float) else share
        models[name] = sk.TwoStageRegressor(region=sk.ShortestPath.undirected(*streets, cost_bounds=bounds))
    models[STACK] = stack(sk.ShortestPath.undirected(*streets))
    regret, seconds = {}, {}
    for name, model in models.items():
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sk.NotCertifiedWarning)
            model.fit(*train)
        seconds[name] = time.process_time() - start
        regret[name] = -100 * model.score(*test)
    # The first member of the stack is fitted to all samples, as SPOPlusRegressorCV alone would be.
    member = models[STACK].named_estimators_[CV]
    regret[CV] = 100 * float(sk.normalized_spo_loss(test[1], member.predict(test[0]), models[STACK].region_))
    return regret, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--samples", type=int, nargs="+", default=SAMPLES, choices=SAMPLES)
    parser.add_argument("--quick", action="store_true", help="one draw of 30 samples")
    out_option(parser)
    args = parser.parse_args()
    samples, draws = ([30], 1) if args.quick else (args.samples, args.draws)
    columns = {"n": ",", "method": "", "draws": "d", "mean regret %": ".2f", "median regret %": ".2f"}
    columns["median ratio"] = lambda row: f"{row['ratio']:.3f} ({row['error']:.3f})"
    columns |= {"better in": "d", "s per fit": ".2f"}
    options = {"packages": ("numpy", "scipy", "networkx", "highspy"), "file": args.out, "quick": args.quick}
    table = Table("streets", key=("n", "method"), columns=columns, **options)
    print(table.head())
    squared = PUBLISHED["squared error"]
    notes = [
        f"published, 100 samples, three tasks, mean regret divided by that of squared error: {name} "
        + " / ".join(f"{value / base:.3f}" for value, base in zip(PUBLISHED[name], squared, strict=True))
        for name in ("SPO+", "both")
    ]
    for n in samples:
        runs: list[tuple[dict[str, float], dict[str, float]]] = []
        for seed in range(draws):
            runs.append(run(n, seed))
            lines = [table.add(summary(n, name, runs)) for name in METHODS]
            table.write("Seeds (n, draw), draws from 0 on.", notes=notes)
        print(*lines, sep="\n", flush=True)
    print("", *notes, sep="\n")


def summary(n: int, name: str, runs: list[tuple[dict[str, float], dict[str, float]]]) -> dict[str, Any]:
    """Regrets of a method over the draws, and their ratio to those of least squares, clipped."""
    values = np.array([regret[name] for regret, _ in runs])
    base = np.array([regret[BASE] for regret, _ in runs])
    ratios = values[base > 0] / base[base > 0]
    again = np.random.default_rng(0).integers(len(ratios), size=(BOOTSTRAP, len(ratios)))
    row = {"n": n, "method": name, "draws": len(runs), "mean regret %": values.mean(), "ratio": np.median(ratios)}
    row |= {"median regret %": np.median(values), "error": np.median(ratios[again], axis=1).std(), "regrets": values}
    seconds = None if name == CV else np.mean([seconds[name] for _, seconds in runs])
    return row | {"better in": np.sum(ratios < 1), "s per fit": seconds}


if __name__ == "__main__":
    main()
