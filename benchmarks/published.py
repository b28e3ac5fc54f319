"""Published figures of 5x5 shortest paths, all 30 cells: three numbers of samples, five degrees, two levels of noise.

    python benchmarks/published.py                                  all 30 cells, an hour and a half on one core
    python benchmarks/published.py --samples 100 --trials 25        fewer
    python benchmarks/published.py --results published.jsonl        goes on where an interrupted run stopped; several
                                                                    processes may share the file
    python benchmarks/published.py --quick                          one trial of two cells with 30 samples, as a test

Elmachtoub and Grigas publish 48 to 50 trials of each cell with their reference implementation (repository
paulgrigas/SmartPredictThenOptimize, plots/shortest_path.csv).  The medians of the normalized SPO loss, in percent, are
copied below.  The data are those of ``make_shortest_path``; every trial has its own coefficients, training samples and
10,000 test samples, and no two cells share a draw.

What was published is not what the names say.  With 100 and 1000 samples, "SPO+" and "least squares" are lasso models:
the best of ten penalties, 1e-6 to 100 in the units of the costs, by the SPO loss of 25 % more samples.  With 5000
samples there is no penalty.  The methods here:

    least squares            no penalty
    least squares, lasso     the published procedure, with 25 % more samples, to check that data and figures agree
    SPO+                     SPOPlusRegressor, no penalty
    SPO+ CV                  SPOPlusRegressorCV with its defaults
    stack                    SPOStackingRegressor of two members, SPO+ CV on the features and on their products; chosen
                             before any of these cells was run, by other draws with 100 samples

Standard errors of medians and of ratios of medians are from 2,000 bootstrap samples of the trials.  Those of the
published figures are computed in the same way from as many trials as were published, since only their medians are known
here.  z is a difference divided by its standard error.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from results import Table, code_hash, out_option  # first: it also limits numpy to one thread

import numpy as np  # isort: skip
from numpy.linalg import norm
from sklearn.linear_model import Lasso
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import skspo as sk
from skspo.datasets import make_shortest_path

CODE = code_hash()
Cell = tuple[int, int, float]  # samples, degree, noise
REGION = sk.ShortestPath.grid(5, 5)
DEGREES = (1, 2, 4, 6, 8)
#: (samples, noise): published medians in percent by degree, of SPO+ and of least squares
MEDIANS = {
    (100, 0.0): ((0.0, 0.16, 1.53, 4.64, 9.32), (0.0, 0.17, 2.16, 8.27, 22.51)),
    (100, 0.5): ((17.99, 12.61, 10.33, 12.49, 16.29), (16.95, 11.29, 10.21, 16.17, 25.0)),
    (1000, 0.0): ((0.0, 0.05, 0.59, 2.04, 4.39), (0.0, 0.13, 1.98, 6.91, 15.67)),
    (1000, 0.5): ((15.78, 10.71, 7.63, 8.45, 10.65), (15.6, 10.65, 8.75, 12.66, 21.1)),
    (5000, 0.0): ((0.0, 0.04, 0.51, 1.7, 4.21), (0.0, 0.13, 1.92, 6.52, 15.74)),
    (5000, 0.5): ((15.49, 10.67, 7.46, 7.85, 10.04), (15.45, 10.67, 8.64, 12.47, 21.82)),
}
PUBLISHED: dict[Cell, tuple[float, float]] = {
    (n, degree, noise): pair
    for (n, noise), rows in MEDIANS.items()
    for degree, pair in zip(DEGREES, zip(*rows, strict=True), strict=True)
}
PUBLISHED_TRIALS = {100: 50, 1000: 50, 5000: 48}
#: as many trials as were published, and those of them with the stack, which takes longer
TRIALS = PUBLISHED_TRIALS
STACK_TRIALS = {100: 25, 1000: 15, 5000: 8}
TEST = 10_000
TINY = 0.2  # percent: medians below are rounding and ties
FEW = 5  # trials with SPO+ CV, for the verdicts
BOOTSTRAP = 2_000
LS, LASSO, SPO, CV, STACK = "least squares", "least squares, lasso", "SPO+", "SPO+ CV", "stack"
METHODS = (LS, LASSO, SPO, CV, STACK)


class HoldoutLasso:
    """Least squares as published: the lasso among ten with the lowest SPO loss of other samples."""

    def __init__(self, X_holdout: np.ndarray, C_holdout: np.ndarray, scale: float) -> None:
        self.holdout, self.scale = (X_holdout, C_holdout), scale

    def fit(self, X: np.ndarray, C: np.ndarray) -> HoldoutLasso:
        # The published costs are ``scale`` times as large, and so is their penalty; its form is that of scikit-learn.
        models = [Lasso(alpha=penalty / self.scale, tol=1e-6, max_iter=100_000) for penalty in np.logspace(-6, 2, 10)]
        X_holdout, C_holdout = self.holdout
        losses = [sk.spo_loss(C_holdout, model.fit(X, C).predict(X_holdout), REGION) for model in models]
        self.model_ = models[int(np.argmin(losses))]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X)


def stack() -> sk.SPOStackingRegressor:
    products = make_pipeline(PolynomialFeatures(2, include_bias=False), sk.SPOPlusRegressorCV())
    return sk.SPOStackingRegressor(
        REGION, [("linear", sk.SPOPlusRegressorCV()), ("products", products)], random_state=0
    )


def run_trial(cell: Cell, trial: int, quick: bool = False) -> dict[str, Any]:
    """Normalized SPO loss of the test samples in percent, and seconds of processor time, of each method."""
    n, degree, noise = cell
    seeds = np.random.SeedSequence((n, degree, round(10 * noise), trial)).generate_state(2)
    n, test = (30, 500) if quick else (n, TEST)
    X, C, coef = make_shortest_path(
        n + n // 4, degree=degree, noise=noise, random_state=int(seeds[0]), return_coef=True
    )
    X_test, C_test = make_shortest_path(test, degree=degree, noise=noise, random_state=int(seeds[1]), coef=coef)
    losses: dict[str, float] = {}
    seconds: dict[str, float | None] = {}

    def measure(name: str, model: Any, fit: bool = True) -> Any:
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sk.NotCertifiedWarning)
            model = model.fit(X[:n], C[:n]) if fit else model
        seconds[name] = round(time.process_time() - start, 3) if fit else None
        losses[name] = round(100 * float(sk.normalized_spo_loss(C_test, model.predict(X_test), REGION)), 5)
        return model

    measure(LS, sk.TwoStageRegressor(region=REGION))
    if n == 5000:  # without a penalty
        losses[LASSO], seconds[LASSO] = losses[LS], seconds[LS]
    else:
        # ``make_shortest_path`` divides the published costs by 3.5^degree.
        measure(LASSO, HoldoutLasso(X[n:], C[n:], 3.5**degree))
    measure(SPO, sk.SPOPlusRegressor(REGION))
    if trial < STACK_TRIALS[cell[0]]:
        stacked = measure(STACK, stack())
        # The first member is fitted in the same way, with the same folds; the first trial checks that.
        measure(CV, stacked.named_estimators_["linear"], fit=False)
    if trial == 0 or trial >= STACK_TRIALS[cell[0]]:
        member = losses.get(CV)
        measure(CV, sk.SPOPlusRegressorCV(REGION))
        if member not in (None, losses[CV]):
            raise RuntimeError(f"the member of the stack has {member}, SPOPlusRegressorCV {losses[CV]}")
    done = {"n": cell[0], "degree": degree, "noise": noise, "trial": trial, "loss": losses, "seconds": seconds}
    return done | {"code": CODE}


# -- medians and their errors ------------------------------------------------------------------------------------------


def error(statistic: Callable[..., np.ndarray], size: int, *columns: np.ndarray) -> float:
    """Standard error of a statistic of medians of ``size`` trials, by the bootstrap; the same trials of all columns."""
    rows = np.random.default_rng(0).integers(len(columns[0]), size=(BOOTSTRAP, size))
    values = statistic(*(np.median(column[rows], axis=1) for column in columns))
    return float(np.std(values))


def values(trials: list[dict[str, Any]], entry: str, name: str) -> np.ndarray:
    """Losses or seconds of a method in the trials that have it."""
    return np.array([trial[entry][name] for trial in trials if trial[entry].get(name) is not None], dtype=float)


class Summary:
    """Medians of one cell, ratios to least squares, their standard errors, and distances from what is published."""

    def __init__(self, cell: Cell, trials: list[dict[str, Any]]) -> None:
        self.cell = cell
        self.published = PUBLISHED[cell]
        size = PUBLISHED_TRIALS[cell[0]]
        losses = {name: values(trials, "loss", name) for name in METHODS}
        self.seconds = {name: float(values(trials, "seconds", name).mean()) for name in METHODS}
        self.numbers = {name: len(losses[name]) for name in METHODS}
        self.median = {name: float(np.median(losses[name])) for name in METHODS}
        self.error = {name: error(lambda m: m, len(losses[name]), losses[name]) for name in METHODS}
        self.counts = min(self.published) > TINY
        rounding = 0.005 / np.sqrt(3)  # of the published figures
        self.z = {
            name: (self.median[name] - self.published[1])
            / norm([self.error[name], error(lambda m: m, size, losses[name]), rounding])
            for name in (LS, LASSO)
        }
        if self.counts:
            pair = losses[CV], losses[LS]
            self.ratio = float(np.median(pair[0]) / np.median(pair[1]))
            self.published_ratio = self.published[0] / self.published[1]
            self.ratio_error = error(np.divide, len(trials), *pair)
            errors = [self.ratio_error, error(np.divide, size, *pair), rounding / self.published[1]]
            self.z_ratio = (self.ratio - self.published_ratio) / norm(errors)

    @property
    def name(self) -> str:
        n, degree, noise = self.cell
        return f"n={n:,}, degree {degree}, noise {noise:g}"

    def row(self) -> dict[str, Any]:
        """What is stored, and shown by ``COLUMNS``."""
        row = dict(zip(("n", "degree", "noise"), self.cell, strict=True)) | {"trials": self.numbers}
        row |= {"SPO+, published": self.published[0], "least squares, published": self.published[1]}
        row |= {"median": self.median, "error": self.error, "z": self.z, "seconds": self.seconds}
        if self.counts:
            row |= {"ratio": self.ratio, "ratio error": self.ratio_error, "z of ratio": self.z_ratio}
            row["published ratio"] = self.published_ratio
        return row


def figure(name: str) -> Callable[[dict[str, Any]], str]:
    """Median of a method with its standard error."""
    return lambda row: f"{row['median'][name]:.2f} ({row['error'][name]:.2f})"


COLUMNS = {
    "n": ",",
    "degree": "d",
    "noise": "g",
    "trials": lambda row: " / ".join(str(row["trials"][name]) for name in (LS, CV, STACK)),
    "least squares, published": ".2f",
    LS: figure(LS),
    LASSO: figure(LASSO),
    "SPO+, published": ".2f",
    SPO: figure(SPO),
    CV: figure(CV),
    STACK: figure(STACK),
    "SPO+ CV / least squares": lambda row: f"{row['ratio']:.3f} ({row['ratio error']:.3f})" if "ratio" in row else "",
    "published ratio": lambda row: f"{row['published ratio']:.3f}" if "ratio" in row else "",
}


def verdicts(summaries: list[Summary]) -> Iterator[str]:
    """What must hold, and every cell in which it does not."""

    def line(met: bool, text: str) -> str:
        return f"target {'met' if met else 'MISSED'}: {text}"

    few = [summary.name for summary in summaries if summary.numbers[CV] < FEW]
    if few:
        yield f"fewer than {FEW} trials, not counted below: {'; '.join(few)}"
    cells = [summary for summary in summaries if summary.counts and summary.numbers[CV] >= FEW]
    if not cells:
        return
    above = [s for s in cells if s.ratio > s.published_ratio]
    share = 1 - len(above) / len(cells)
    yield line(
        share >= 0.8,
        f"SPO+ CV / least squares is at most the published ratio in at least 80 % of the cells whose published medians "
        f"are above {TINY} %: {len(cells) - len(above)} of {len(cells)}",
    )
    beyond = sum(s.z_ratio > 2 for s in cells)
    yield f"that ratio is above the published one by more than two standard errors in {beyond} of {len(cells)} cells"
    for s in above:
        ours, theirs = f"{s.ratio:.3f} ({s.ratio_error:.3f})", f"{s.published_ratio:.3f}"
        yield f"above: {s.name}: {ours}, published {theirs}, z = {s.z_ratio:+.1f}"
    high = [s for s in cells if s.cell[1] >= 4]
    worse = [s for s in high if s.median[STACK] >= min(s.published)]
    yield line(
        not worse,
        f"the stack is below both published medians in every such cell of degree 4 or more: "
        f"{len(high) - len(worse)} of {len(high)}",
    )
    for s in worse:
        yield f"above: {s.name}: stack {s.median[STACK]:.2f} ({s.error[STACK]:.2f}), published {min(s.published):.2f}"
    for name in (LASSO, LS):
        z = np.abs([s.z[name] for s in cells])
        far = [f"{s.name} ({s.z[name]:+.1f})" for s in cells if abs(s.z[name]) > 2]
        agrees = np.mean(z > 2) <= 0.1 and z.max() <= 3.3  # chances of 5 % and of 3 % in 30 cells
        text = (
            f"{name}: within two standard errors of the published median in {np.sum(z <= 2)} of {len(cells)} cells, "
            f"largest |z| {z.max():.1f}" + (f"; beyond two: {', '.join(far)}" if far else "")
        )
        yield line(bool(agrees), text) if name == LASSO else text


def read_trials(file: Path | None) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Trials that are in the file, by cell and number."""
    lines = file.read_text().splitlines() if file and file.exists() else []
    return {(t["n"], t["degree"], t["noise"], t["trial"]): t for t in map(json.loads, lines)}


def main() -> None:
    """Run the trials that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", choices=sorted(TRIALS), default=sorted(TRIALS))
    parser.add_argument("--degrees", type=int, nargs="+", choices=DEGREES, default=list(DEGREES))
    parser.add_argument("--noise", type=float, nargs="+", choices=(0.0, 0.5), default=[0.0, 0.5])
    parser.add_argument(
        "--trials",
        type=int,
        help=f"trials of each cell (default: {TRIALS}, of which {STACK_TRIALS} with the stack)",
    )
    parser.add_argument("--results", type=Path, metavar="FILE.jsonl", help="trials; those that are there are kept")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no trial after this many seconds")
    parser.add_argument("--quick", action="store_true", help="one trial of two cells with 30 samples")
    out_option(parser)
    args = parser.parse_args()
    if args.quick:
        args.samples, args.degrees, args.noise, args.trials = [100], [4], [0.0, 0.5], 1
    cells = [(n, degree, noise) for n in args.samples for degree in args.degrees for noise in args.noise]
    known = read_trials(args.results)
    start = time.monotonic()
    # Trial by trial, so that an interrupted run has something of every cell; in random order, for several processes.
    for trial in range(args.trials or max(TRIALS[n] for n in args.samples)):
        for k in np.random.default_rng().permutation(len(cells)):
            cell = cells[k]
            if time.monotonic() - start > args.seconds or trial >= (args.trials or TRIALS[cell[0]]):
                continue
            known |= read_trials(args.results)
            if (*cell, trial) in known:
                continue
            known[*cell, trial] = done = run_trial(cell, trial, args.quick)
            if args.results:
                with args.results.open("a") as file:
                    file.write(json.dumps(done) + "\n")
            print(f"[{time.monotonic() - start:.0f} s] {cell}, trial {trial}: {done['loss']}", flush=True)
    table = Table(
        "published",
        key=("n", "degree", "noise"),
        columns=COLUMNS,
        packages=("scikit-learn", "numpy", "scipy"),
        file=args.out,
        quick=args.quick,
    )
    print("", table.head(), sep="\n")
    summaries, codes = [], set()
    for cell in cells:
        trials = [done for key, done in sorted(known.items()) if key[:3] == cell]
        if trials:
            codes |= {done["code"] for done in trials}
            summaries.append(Summary(cell, trials))
            print(table.add(summaries[-1].row()))
    lines = [] if args.quick else list(verdicts(summaries))
    for n in args.samples:
        of_n = [summary.seconds for summary in summaries if summary.cell[0] == n]
        if of_n:
            means = ", ".join(f"{name} {np.nanmean([s[name] for s in of_n]):.2f}" for name in METHODS)
            lines.append(f"seconds of processor time of a fit, n={n:,}: {means}")
    if codes - {CODE}:
        lines.append(f"The trials are of code {', '.join(sorted(codes))}.")
    print("", *lines, sep="\n")
    table.write(notes=lines)


if __name__ == "__main__":
    main()
