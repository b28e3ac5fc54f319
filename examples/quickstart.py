"""Fit SPO+ and least squares on shortest-path data, compare their decisions, draw a picture.

A driver crosses a 4 x 4 grid from corner to corner.  The cost of each of the 24 streets depends on five features in a
way that no linear model can represent (a polynomial of the given degree).  Least squares fits the costs; SPO+ fits the
same linear model so that the *routes* are cheap.  Run with ``python examples/quickstart.py [--out FILE]``.
"""

import argparse
import time

import numpy as np

from skspo import ShortestPath, SPOPlusRegressorCV, TwoStageRegressor, spo_loss
from skspo.datasets import make_shortest_path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=300, help="training samples (default 300)")
    parser.add_argument("--out", default="quickstart.png", help="picture to write (default quickstart.png)")
    args = parser.parse_args()

    region = ShortestPath.grid(4, 4)
    degrees = (1, 2, 4, 6, 8)
    rows, regrets = [], {}
    print(f"4x4 shortest path, {args.samples} training samples, noise 0.5, 10,000 test samples")
    print(f"{'degree':>6}  {'least squares':>13}  {'SPO+':>7}  {'ratio':>5}  {'certified gap':>13}  {'seconds':>7}")
    for degree in degrees:
        X, C, coef = make_shortest_path(
            args.samples, grid=(4, 4), degree=degree, noise=0.5, random_state=degree, return_coef=True
        )
        X_test, C_test = make_shortest_path(
            10_000, grid=(4, 4), degree=degree, noise=0.5, random_state=100 + degree, coef=coef
        )
        least_squares = TwoStageRegressor(region=region).fit(X, C)
        start = time.perf_counter()
        spo = SPOPlusRegressorCV(region).fit(X, C)
        seconds = time.perf_counter() - start
        a, b = -least_squares.score(X_test, C_test), -spo.score(X_test, C_test)
        rows.append((a, b))
        ratio, gap = b / a, spo.duality_gap_
        print(f"{degree:>6}  {a:>13.2%}  {b:>7.2%}  {ratio:>5.2f}  {gap:>13.1e}  {seconds:>7.2f}", flush=True)
        if degree == degrees[-1]:
            regrets = {
                name: spo_loss(C_test, model.predict(X_test), region, per_sample=True)
                for name, model in (("least squares", least_squares), ("SPO+", spo))
            }
    draw(degrees, np.array(rows), regrets, args.out)


def draw(degrees: tuple[int, ...], rows: np.ndarray, regrets: dict[str, np.ndarray], path: str) -> None:
    try:
        import matplotlib
    except ImportError:
        print("For the picture: pip install skspo[plot]")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colors = {"least squares": "tab:gray", "SPO+": "tab:blue"}
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for k, (name, color) in enumerate(colors.items()):
        left.plot(degrees, 100 * rows[:, k], "o-", color=color, label=name)
    left.set(xlabel="degree of the true costs (1: linear)", ylabel="extra cost of decisions, %", ylim=(0, None))
    left.set_title("What bad routes cost, on 10,000 new days")
    left.legend(frameon=False)
    for name, color in colors.items():
        losses = np.sort(regrets[name])
        right.plot(losses, np.linspace(0, 100, len(losses)), color=color, label=name)
    right.set(xlabel="regret of one day", ylabel="days with at most this regret, %", ylim=(0, 101))
    right.set_xlim(0, np.quantile(regrets["least squares"], 0.99))
    right.set_title(f"Regret day by day, degree {degrees[-1]}")
    right.legend(frameon=False, loc="lower right")
    fig.savefig(path, dpi=130)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
