"""Nonlinear models on 5x5 shortest paths: test regret of every member of a stack, and of the stack by kind of weights.

    python benchmarks/nonlinear.py --out docs/benchmarks/README.md      ten draws of every cell, an hour on one core
    python benchmarks/nonlinear.py --samples 1000 --degrees 6 8 --draws 3
    python benchmarks/nonlinear.py --quick                              one draw of one small cell, as a test

With ``--out`` an interrupted run goes on where it stopped.
A figure is the normalized SPO loss of 5,000 new samples in percent: median over the draws, and the quartiles in
parentheses.  Every draw has its own coefficients.  The members are the default ones of ``SPOStackingRegressor``, fitted
once for all kinds of weights.  "best two-stage" is the two-stage member with the lowest *test* regret in each draw,
which nobody can know beforehand.  "share" is the median share of the stack that the guard left.  Seconds are processor
time of the members and of the choice of weights.
Real data are in ``real.py``.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
import warnings
from typing import Any, ClassVar

import numpy as np
from results import Row, Table, out_option

from skspo import (
    NotCertifiedWarning,
    ShortestPath,
    SPOStackingRegressor,
    TwoStageRegressor,
    normalized_spo_loss,
)
from skspo.datasets import make_shortest_path

REGION = ShortestPath.grid(5, 5)
NOISE, TEST = 0.5, 5_000
WEIGHTS = ("spo+", "equal")
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
        return OneFit.known


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
            row["share"] = model.stack_share_
            row |= {name: regret(member.predict(X_test)) for name, member in model.named_estimators_.items()}
    row["best two-stage"] = min(row[name] for name in TWO_STAGE)
    row["least squares"] = regret(TwoStageRegressor(region=REGION).fit(X, C).predict(X_test))
    return row


def middle(values: list[float]) -> str:
    """Median and quartiles."""
    low, median, high = np.percentile(values, [25, 50, 75])
    return f"{median:.2f} ({low:.2f}, {high:.2f})"


def summary(n: int, degree: int, draws: dict[str, dict[str, float]]) -> Row:
    """One row of the table: medians, and what was measured by the number of the draw."""
    rows = list(draws.values())
    return {"n": n, "degree": degree, **{k: np.median([row[k] for row in rows]) for k in rows[0]}, "draws": draws}


def verdicts(rows: list[Row]) -> list[str]:
    """Targets that are met or missed; a ratio is that of medians."""
    lines = []
    for row in rows:
        n, degree = row["n"], row["degree"]
        targets = [("spo+", 0.9), ("best two-stage", 0.9)] if degree in (6, 8) and n >= 1000 else []
        targets += [("least squares", 1.02)] if degree == 1 else []
        for other, most in targets:
            ratio = row["stack, spo+"] / row[other]
            met = "met" if ratio <= most else "MISSED"
            lines.append(f"target {met}: n={n:,}, degree {degree}: stack at most {most} times {other}: {ratio:.3f}")
    return lines


def main() -> None:
    """Run the cells that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--degrees", type=int, nargs="+", default=[1, 2, 4, 6, 8])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one draw of n=60, degree 6")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no draw after this many seconds")
    out_option(parser)
    args = parser.parse_args()
    if args.quick:
        args.samples, args.degrees, args.draws = [60], [6], 1
    table = Table(
        "nonlinear",
        key=("n", "degree"),
        columns={
            "n": ",",
            "degree": "d",
            **{name: lambda row, name=name: middle([draw[name] for draw in row["draws"].values()]) for name in COLUMNS},
            "share": ".2f",
            "draws": lambda row: str(len(row["draws"])),
            "s per fit": lambda row: f"{row['seconds']:.0f}",
        },
        packages=("scikit-learn", "numpy", "scipy"),
        file=args.out,
        quick=args.quick,
    )
    print(table.head(), flush=True)
    start = time.monotonic()
    known = {(row["n"], row["degree"]): row["draws"] for row in table.added()}
    warnings.simplefilter("ignore", NotCertifiedWarning)
    for draw in range(args.draws):
        for n in args.samples:
            for degree in args.degrees:
                draws = known.setdefault((n, degree), {})
                if str(draw) in draws or time.monotonic() - start > args.seconds:
                    continue
                draws[str(draw)] = row = run(n, degree, draw)
                table.add(summary(n, degree, draws))
                figures = ", ".join(f"{name} {row[name]:.2f}" for name in COLUMNS)
                print(
                    f"[{time.monotonic() - start:.0f} s] n={n} degree={degree} draw={draw}: {figures}, "
                    f"share {row['share']:.2f}, {row['seconds']:.0f} s",
                    flush=True,
                )
    table.rows.sort(key=table.key_of)
    notes = verdicts(table.rows)
    print("\n".join(["", table.text(), "", *notes]))
    table.write(notes=notes)


if __name__ == "__main__":
    main()
