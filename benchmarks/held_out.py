"""Held-out risk: coverage and length of intervals and bounds, level 95 %.

    python benchmarks/held_out.py          about one minute

1. Regrets of a known distribution, 2,000 repetitions: share of the intervals and bounds that contain the mean.
2. 5x5 paths, models fitted to 1,000 samples, 200 disjoint sets of 1,000 held-out samples.  The risk is the mean of
   these 200,000.  Proved bounds are for regrets capped at 10.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from collections.abc import Callable

import numpy as np

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


def known(repetitions: int = 2000) -> None:
    print("| regrets | n | bootstrap | betting | Bernstein |")
    print("|---" * 5 + "|", flush=True)
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
            cells = [f"{100 * share:.1f} %" for share in covered.mean(axis=0)[: 1 if largest is None else 3]]
            print(f"| {name} | {n} | {' | '.join(cells)} |", flush=True)


def paths(n: int = 1000, n_sets: int = 200, cap: float = 10.0) -> None:
    print("| degree | regret | coverage: regret, of best cost, difference, ratio; betting, Bernstein ", end="")
    print("| half length: regret, of best cost, ratio | above the risk: betting, Bernstein |")
    print("|---" * 5 + "|", flush=True)
    region = sk.ShortestPath.grid(5, 5)
    for degree in (2, 4, 6, 8):
        common = {"grid": (5, 5), "degree": degree, "noise": 0.5}
        X, C, coef = make_shortest_path(n, random_state=0, return_coef=True, **common)
        model, other = sk.SPOPlusRegressor(region).fit(X, C), sk.TwoStageRegressor(region=region).fit(X, C)
        X, C = make_shortest_path(n * n_sets, random_state=9, coef=coef, **common)
        whole = sk.held_out_risk(model, X, C, other=other, n_resamples=100)
        capped = np.minimum(sk.spo_loss(C, model.predict(X), region, per_sample=True), cap).mean()
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
        cells = [", ".join(f"{100 * x:.1f}" for x in np.mean(part, axis=0)) for part in (covered, lengths, above)]
        print(f"| {degree} | {whole.normalized_loss:.2%} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    known()
    paths()
