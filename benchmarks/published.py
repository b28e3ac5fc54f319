"""Published figures: shortest path 5x5, n=5000, noise 0.5, no regularisation, normalized SPO loss on test samples.

Medians published for the reference implementation of Elmachtoub and Grigas: degree 4: SPO+ 7.46 %, least squares
8.64 %; degree 8: 10.04 % and 21.8 %.

    python benchmarks/published.py [--draws 5] [--out docs/benchmarks/README.md]
"""

from __future__ import annotations

import argparse

from results import markdown, setting, write_section  # first: it also limits numpy to one thread

import numpy as np  # isort: skip

import skspo as sk
from skspo.datasets import make_shortest_path

PUBLISHED = {4: (7.46, 8.64), 8: (10.04, 21.8)}
RANGES = {4: ((7.0, 8.3), (8.1, 9.4))}  # in which our means should lie


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", metavar="FILE.md", help="also write the table into this file")
    args = parser.parse_args()
    region = sk.ShortestPath.grid(5, 5)
    header = ("degree", "method", "published median", *(f"draw {i}" for i in range(args.draws)), "mean", "largest gap")
    table, lines = [], []
    for degree, published in PUBLISHED.items():
        losses, gaps = np.zeros((2, args.draws)), []
        for draw in range(args.draws):
            X, C = make_shortest_path(15_000, grid=(5, 5), degree=degree, noise=0.5, random_state=draw)
            models = [
                sk.SPOPlusRegressor(region).fit(X[:5000], C[:5000]),
                sk.TwoStageRegressor(region=region).fit(X[:5000], C[:5000]),
            ]
            gaps.append(models[0].duality_gap_)
            for m, model in enumerate(models):
                losses[m, draw] = 100 * sk.normalized_spo_loss(C[5000:], model.predict(X[5000:]), region)
        for m, name in enumerate(("SPO+", "least squares")):
            mean = losses[m].mean()
            cells = (f"{x:.2f} %" for x in losses[m])
            gap = f"{max(gaps):.0e}" if m == 0 else "-"
            table.append((str(degree), name, f"{published[m]} %", *cells, f"{mean:.2f} %", gap))
            print("  ".join(table[-1]), flush=True)
            if degree in RANGES:
                low, high = RANGES[degree][m]
                verdict = "met" if low <= mean <= high else "MISSED"
                lines.append(
                    f"target {verdict}: degree {degree}, {name}: mean between {low} and {high} %: {mean:.2f} %"
                )
    print(*lines, sep="\n")
    if args.out:
        about = setting("skspo", "numpy", "scipy")
        write_section(
            args.out, "published", f"{about}.\n\n{markdown(header, table)}\n\n" + "\n".join(f"- {x}" for x in lines)
        )


if __name__ == "__main__":
    main()
