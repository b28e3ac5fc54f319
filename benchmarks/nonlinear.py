"""Nonlinear models on 5x5 shortest paths: test regret of every member of a stack, and of the stack by kind of weights.

    python benchmarks/nonlinear.py                           ten draws of every cell, an hour on one core
    python benchmarks/nonlinear.py --samples 1000 --degrees 6 8 --draws 3
    python benchmarks/nonlinear.py --out nonlinear.json      goes on where an interrupted run stopped
    python benchmarks/nonlinear.py --quick                   one draw of one small cell, as a test

A figure is the normalized SPO loss of 5,000 new samples in percent: median over the draws, and the quartiles in
parentheses.  Every draw has its own coefficients.  The members are the default ones of ``SPOStackingRegressor``, fitted
once for all kinds of weights.  "best two-stage" is the two-stage member with the lowest *test* regret in each draw,
which nobody can know beforehand.  Seconds are processor time of the members and of the choice of weights.
Real data are in ``real.py``.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from results import markdown, setting, write_section

from skspo import (
    NotCertifiedWarning,
    ShortestPath,
    SPOStackingRegressor,
    TwoStageRegressor,
    normalized_spo_loss,
)
from skspo.datasets import make_shortest_path
from skspo.estimators._stacking_weights import STACK
from skspo.experiments.runner import write_atomically

REGION = ShortestPath.grid(5, 5)
NOISE, TEST = 0.5, 5_000
WEIGHTS = ("decisions", "spo+", "least_squares", "equal")
TWO_STAGE = ("ridge", "forest", "boosting")
COLUMNS = (
    "least squares", "ridge", "forest", "boosting", "best two-stage", "spo+", "spo+ kernel", "spo+ quadratic",
    *(f"stack, {kind}" for kind in WEIGHTS),
)  # fmt: skip


class OneFit(SPOStackingRegressor):
    """Stack that fits the members once, for several kinds of weights."""

    known: ClassVar[Any] = None

    def _fit_members(self, *args: Any) -> Any:
        if OneFit.known is None:
            OneFit.known = super()._fit_members(*args)
        predictions, models, seconds = OneFit.known
        return predictions, models, dict(seconds)


def run(n: int, degree: int, draw: int) -> dict[str, float]:
    """Test regret in percent of each model, and seconds."""
    X, C, coef = make_shortest_path(n, degree=degree, noise=NOISE, random_state=10_000 + draw, return_coef=True)
    X_test, C_test = make_shortest_path(TEST, degree=degree, noise=NOISE, random_state=20_000 + draw, coef=coef)

    def regret(C_hat: np.ndarray) -> float:
        return 100 * float(normalized_spo_loss(C_test, C_hat, REGION))

    OneFit.known, row = None, {}
    for kind in WEIGHTS:
        start = time.process_time()
        model = OneFit(REGION, weights=kind, random_state=0).fit(X, C)
        row[f"stack, {kind}"] = regret(model.predict(X_test))
        if kind == WEIGHTS[0]:
            row["seconds"] = time.process_time() - start
            row["seconds of weights"] = model.fit_seconds_["weights"]
            row["stacked"] = float(model.chosen_ == STACK)
            row |= {name: regret(member.predict(X_test)) for name, member in model.named_estimators_.items()}
    row["best two-stage"] = min(row[name] for name in TWO_STAGE)
    row["least squares"] = regret(TwoStageRegressor(region=REGION).fit(X, C).predict(X_test))
    return row


def middle(values: list[float]) -> str:
    """Median and quartiles."""
    low, median, high = np.percentile(values, [25, 50, 75])
    return f"{median:.2f} ({low:.2f}, {high:.2f})"


def verdicts(medians: dict[tuple[int, int], dict[str, float]]) -> list[str]:
    """Targets that are met or missed; a ratio is that of medians."""
    lines = []
    for (n, degree), row in medians.items():
        stack = row["stack, decisions"]
        targets = {6: (("spo+", 0.9), ("best two-stage", 0.9)), 8: (("spo+", 0.9), ("best two-stage", 0.9))}
        for other, most in targets.get(degree, ()) if n >= 1000 else ():
            met = "met" if stack <= most * row[other] else "MISSED"
            lines.append(
                f"target {met}: n={n:,}, degree {degree}: stack at most {most} times {other}: {stack / row[other]:.3f}"
            )
        if degree == 1:
            ratio = stack / row["least squares"]
            met = "met" if ratio <= 1.02 else "MISSED"
            lines.append(f"target {met}: n={n:,}, degree 1: stack at most 1.02 times least squares: {ratio:.3f}")
    return lines


def main() -> None:
    """Run the cells that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--degrees", type=int, nargs="+", default=[1, 2, 4, 6, 8])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one draw of n=60, degree 6")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no draw after this many seconds")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="results; those that are there are kept")
    parser.add_argument("--table", metavar="FILE.md", help="also write the table into this file")
    args = parser.parse_args()
    if args.quick:
        args.samples, args.degrees, args.draws = [60], [6], 1
    results: dict[str, dict[str, float]] = {}
    if args.out and args.out.exists():
        results = json.loads(args.out.read_text())
    start = time.monotonic()
    warnings.simplefilter("ignore", NotCertifiedWarning)
    for draw in range(args.draws):
        for n in args.samples:
            for degree in args.degrees:
                key = f"{n} {degree} {draw}"
                if key in results or time.monotonic() - start > args.seconds:
                    continue
                results[key] = row = run(n, degree, draw)
                if args.out:
                    write_atomically(args.out, json.dumps(results, indent=1))
                print(
                    f"[{time.monotonic() - start:.0f} s] n={n} degree={degree} draw={draw}: "
                    + ", ".join(f"{name} {row[name]:.2f}" for name in COLUMNS),
                    flush=True,
                )
    lines, medians = [], {}
    for n in args.samples:
        for degree in args.degrees:
            rows = [row for key, row in results.items() if key.rsplit(" ", 1)[0] == f"{n} {degree}"]
            if rows:
                medians[n, degree] = {name: float(np.median([row[name] for row in rows])) for name in rows[0]}
                figures = [middle([row[name] for row in rows]) for name in COLUMNS]
                stacked = f"{sum(row['stacked'] for row in rows):.0f} of {len(rows)}"
                lines.append((f"{n:,}", str(degree), *figures, stacked, f"{medians[n, degree]['seconds']:.0f}"))
    header = ("n", "degree", *COLUMNS, "not guarded", "s per fit")
    text = "\n".join(
        [
            setting("skspo", "scikit-learn", "numpy", "scipy"),
            "",
            markdown(header, lines),
            "",
            *(f"- {line}" for line in verdicts(medians)),
        ]
    )
    print("\n" + text)
    if args.table:
        write_section(args.table, "nonlinear", text)


if __name__ == "__main__":
    main()
