"""Held-out risk: coverage and length of intervals and bounds, level 95 %.

    python benchmarks/held_out.py             one or two minutes
    python benchmarks/held_out.py --quick     few repetitions, as a test
    python benchmarks/held_out.py --out docs/benchmarks/README.md
                                              also write tables and results/held_out_known.json, held_out_paths.json

1. Regrets of a known distribution, 2,000 repetitions: share of the intervals and bounds that contain the mean.
2. 5x5 paths, models fitted to 1,000 samples, 200 disjoint sets of 1,000 held-out samples.  The risk is the mean of
   these 200,000.  Proved bounds are for regrets capped at 10.  "shortest" is 1.96 standard errors of the mean regret of
   a set, computed from the standard deviation of all 200,000 regrets: half the length of the normal interval for known
   variance, and asymptotically of any interval with this coverage.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from results import Table, out_option

import skspo as sk
from skspo._utils.confidence import Bootstrap, group_terms, mean_upper
from skspo.datasets import make_shortest_path

Draw = Callable[[np.random.Generator, int], np.ndarray]

#: regrets, their mean, and their largest value
REGRETS: dict[str, tuple[Draw, float, float | None]] = {
    "half zero, half exponential, capped at 4": (
        lambda rng, n: np.minimum(rng.exponential(size=n) * (rng.random(n) < 0.5), 4.0),
        0.5 * (1.0 - np.exp(-4.0)),
        4.0,
    ),
    "lognormal": (lambda rng, n: np.exp(rng.normal(size=n)), float(np.exp(0.5)), None),
    "2 % one, the rest zero": (lambda rng, n: 1.0 * (rng.random(n) < 0.02), 0.02, 1.0),
}


def known(repetitions: int, options: dict[str, Any]) -> None:
    columns = {"regrets": "", "n": ",", "bootstrap": ".1%", "betting": ".1%", "Bernstein": ".1%"}
    table = Table("held_out_known", key=("regrets", "n"), columns=columns, **options)
    print(table.head(), flush=True)
    for name, (draw, mean, largest) in REGRETS.items():
        for n in (50, 200, 1000):
            rng = np.random.default_rng(0)
            covered = np.zeros((repetitions, 3))
            for row in covered:
                terms = group_terms(draw(rng, n)[:, None], None, None)
                low, high = Bootstrap(terms, 0.95, 600, rng).interval(1, 0)
                row[0] = low <= mean <= high
                for k, method in enumerate(("betting", "bernstein"), 1):
                    row[k] = largest is not None and mean_upper(*terms.T[::-1], largest, 0.05, method) >= mean
            shares = covered.mean(axis=0)
            row = {"regrets": name, "n": n, "bootstrap": shares[0]}
            if largest is not None:
                row |= {"betting": shares[1], "Bernstein": shares[2]}
            print(table.add(row), flush=True)
    table.write(f"{repetitions:,} repetitions.")


NAMES = ("regret", "of best cost", "difference", "ratio")


def paths(n_sets: int, options: dict[str, Any], n: int = 1000, cap: float = 10.0) -> None:
    columns = {"degree": "d", "normalized SPO loss": ".2%"} | {f"covered, {name}": ".1%" for name in NAMES}
    columns |= {"covered, betting": ".1%", "covered, Bernstein": ".1%", "± regret": ".1%", "shortest": ".1%"}
    columns |= {"sd / mean": ".2f", "± of best cost": ".2%", "± ratio": ".3f"}
    columns |= {"betting, above": ".1%", "Bernstein, above": ".1%"}
    table = Table("held_out_paths", key=("degree",), columns=columns, **options)
    print(table.head(), flush=True)
    region = sk.ShortestPath.grid(5, 5)
    for degree in (2, 4, 6, 8):
        common = {"grid": (5, 5), "degree": degree, "noise": 0.5}
        X, C, coef = make_shortest_path(n, random_state=0, return_coef=True, **common)
        model, other = sk.SPOPlusRegressor(region).fit(X, C), sk.TwoStageRegressor(region=region).fit(X, C)
        X, C = make_shortest_path(n * n_sets, random_state=9, coef=coef, **common)
        whole = sk.held_out_risk(model, X, C, other=other, n_resamples=100)
        regrets = sk.spo_loss(C, model.predict(X), region, per_sample=True)
        capped, spread = np.minimum(regrets, cap).mean(), regrets.std() / regrets.mean()
        truths = [whole.mean_loss, whole.normalized_loss, whole.difference, whole.ratio]
        covered, lengths, above = [], [], []
        for k in range(n_sets):
            rows = slice(n * k, n * (k + 1))
            risks = [
                sk.held_out_risk(model, X[rows], C[rows], other=other, loss_cap=cap, method=method)
                for method in ("betting", "bernstein")
            ]
            risk = risks[0]
            ends = [risk.interval, risk.normalized_interval, risk.difference_interval, risk.ratio_interval]
            inside = [low <= truth <= high for (low, high), truth in zip(ends, truths, strict=True)]
            covered.append([*inside, *(risk.upper_bound >= capped for risk in risks)])
            half = [float(high - low) / 2.0 for low, high in ends]
            lengths.append([half[0] / risk.mean_loss, half[1], half[3]])
            above.append([risk.upper_bound / capped - 1.0 for risk in risks])
        row = {"degree": degree, "normalized SPO loss": whole.normalized_loss, "sets": n_sets, "n": n}
        shares, half = np.mean(covered, axis=0), np.mean(lengths, axis=0)
        names = [f"covered, {name}" for name in (*NAMES, "betting", "Bernstein")]
        row |= dict(zip(names, shares, strict=True)) | {"sd / mean": spread, "shortest": 1.96 * spread / np.sqrt(n)}
        row |= dict(zip(("± regret", "± of best cost", "± ratio"), half, strict=True))
        row |= dict(zip(("betting, above", "Bernstein, above"), np.mean(above, axis=0), strict=True))
        print(table.add(row), flush=True)
    table.write(f"{n_sets} sets of {n:,} samples.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    out_option(parser)
    args = parser.parse_args()
    options = {"packages": ("numpy", "scipy"), "file": args.out, "quick": args.quick}
    known(20 if args.quick else 2000, options)
    print()
    paths(2 if args.quick else 200, options)


if __name__ == "__main__":
    main()
