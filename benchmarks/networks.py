"""Networks on cost-sensitive classification: for which training size, width and stopping is SPO+ the best loss?

The paper (Liu and Grigas, 2021, appendix) reports for classification "a similar pattern" as for portfolios, where SPO+
is the best surrogate for networks with 256 hidden units.  It prints neither the training size nor the settings of Adam.
Here both vary.  A row is a training size, a width, a step size and a stopping rule; its figures are mean SPO losses of
10,000 test samples over the draws.  A network is trained with Adam in batches of 200, a tenth of the samples is held
out, and training ends after 30 epochs in which neither held-out loss improved.  Stopping rules:

    loss         the epoch with the lowest held-out value of the loss that is minimised, as in skspo.experiments
    decisions    the epoch with the lowest held-out SPO loss
    hindsight    the epoch with the lowest SPO loss of the test samples, of those chosen above and every fifth: a limit

"best" is the loss of the conditional mean of the costs, which no model can beat in the mean.  "order" says whether the
mean of SPO+ is below those of absolute error and least squares; "SPO+ - least squares" is the mean difference of the
same draws, with its standard error.

    python benchmarks/networks.py                     every cell, about an hour of processor time
    python benchmarks/networks.py --quick             one small cell, as a test
    python benchmarks/networks.py --only n=20000      cells whose name contains this
    python benchmarks/networks.py --seconds 2400      start no cell after this many seconds of processor time
    python benchmarks/networks.py --out docs/benchmarks/README.md    also write table and results/networks.json
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from results import Table, out_option  # first: it also limits numpy to one thread

import numpy as np  # isort: skip

import skspo as sk
from skspo.datasets import make_cost_sensitive_classification

N_TEST, PATIENCE = 10_000, 30
BARRIER = sk.LogBarrierSimplex(2.0 * 10 * np.log(10))
METHODS = {
    "SPO+": (sk.Simplex(), "spo+"),
    "SPO+ barrier": (BARRIER, "spo+"),
    "absolute": (sk.Simplex(), "absolute_error"),
    "least squares": (sk.Simplex(), "squared_error"),
}
RULES = ("loss", "decisions", "hindsight")
EPOCHS = {60: 5, 300: 500, 1000: 500, 3000: 300, 10_000: 200, 20_000: 150}


class Cell(NamedTuple):
    """One setting."""

    degree: int
    noise: float
    n: int
    width: int
    rate: float
    decay: float = 1e-4

    @property
    def name(self) -> str:
        return f"degree={self.degree} noise={self.noise:g} n={self.n} width={self.width} rate={self.rate:g} " + (
            f"decay={self.decay:g}"
        )


def cells() -> Iterator[Cell]:
    """Sizes first, with the network of the paper; then step sizes, widths and weight decay."""
    for degree in (4, 8):
        for n in (1000, 20_000, 3000, 10_000, 300):
            yield Cell(degree, 0.5, n, 256, 0.01)
    for n in (1000, 20_000):
        for degree in (4, 8):
            yield Cell(degree, 0.5, n, 256, 0.001)
        for width in (8, 32, 1024) if n == 1000 else (8, 32):
            yield Cell(4, 0.5, n, width, 0.01)
        yield Cell(1, 0.5, n, 256, 0.01)
        yield Cell(4, 0.0, n, 256, 0.01)
        yield Cell(4, 0.5, n, 256, 0.01, 1.0)


def train(method: str, cell: Cell, data: tuple[np.ndarray, ...], seed: int) -> dict[str, float]:
    """Test loss at the epoch that each rule chooses, and the epochs."""
    X, C, X_test, C_test = data
    region, loss = METHODS[method]
    held = max(cell.n // 10, 1)
    model = sk.SPOMLPRegressor(
        region,
        loss=loss,
        hidden_layer_sizes=(cell.width,),
        learning_rate_init=cell.rate,
        alpha=cell.decay,
        random_state=seed,
    )
    best = dict.fromkeys(RULES, (np.inf, np.inf, 0))  # value by which the epoch is chosen, test loss, epoch
    for epoch in range(1, EPOCHS[cell.n] + 1):
        model.partial_fit(X[held:], C[held:])
        pred = model.predict(X[:held])
        error = pred - C[:held]
        values = {
            "loss": sk.spo_plus_loss(C[:held], pred, region) if loss == "spo+" else np.abs(error).mean(),
            "decisions": sk.spo_loss(C[:held], pred, sk.Simplex()),
        }
        if loss == "squared_error":
            values["loss"] = np.square(error).mean()
        better = [rule for rule, value in values.items() if value < best[rule][0]]
        if better or epoch % 5 == 0:
            values["hindsight"] = test = float(sk.spo_loss(C_test, model.predict(X_test), sk.Simplex()))
            for rule, value in values.items():
                best[rule] = min(best[rule], (float(value), test, epoch))
        if epoch - max(best[rule][2] for rule in ("loss", "decisions")) >= PATIENCE:
            break
    return {rule: test for rule, (_, test, _) in best.items()} | {
        f"{rule} epoch": at for rule, (*_, at) in best.items()
    }


def draw(cell: Cell, seed: int) -> tuple[dict[str, dict[str, float]], float, float]:
    """Results of each method, the loss of the linear SPO+ model and that of the conditional mean."""
    X, C, mean = make_cost_sensitive_classification(
        cell.n + N_TEST, degree=cell.degree, noise=cell.noise, random_state=seed, return_mean=True
    )
    n = cell.n
    found = {method: train(method, cell, (X[:n], C[:n], X[n:], C[n:]), seed) for method in METHODS}
    linear = sk.SPOPlusRegressor(sk.Simplex()).fit(X[:n], C[:n])
    losses = (sk.spo_loss(C[n:], pred, sk.Simplex()) for pred in (linear.predict(X[n:]), mean[n:]))
    return found, *(float(loss) for loss in losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--first", type=int, default=500, help="seed of the first draw")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no cell after this processor time")
    parser.add_argument("--quick", action="store_true", help="one small cell")
    out_option(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = {"degree": "d", "noise": "g", "n": ",", "width": "d", "rate": "g", "decay": "g", "stop": ""}
    columns |= dict.fromkeys(METHODS, ".4f") | {"linear SPO+": ".4f", "best": ".4f"}
    columns |= {
        "SPO+ - least squares": lambda row: f"{row['difference']:+.4f} ± {row['error']:.4f}",
        "order": "",
        "epochs": lambda row: ", ".join(f"{x:.0f}" for x in row["epochs"]),
    }
    key = ("degree", "noise", "n", "width", "rate", "decay", "stop")
    table = Table("networks", key=key, columns=columns, packages=("numpy",), file=args.out, quick=args.quick)
    print(table.head())
    for cell in [Cell(4, 0.5, 60, 8, 0.01)] if args.quick else cells():
        if args.only not in cell.name or time.process_time() > args.seconds:
            continue
        start = time.process_time()
        draws = [draw(cell, args.first + k) for k in range(args.draws)]
        seconds = time.process_time() - start
        for rule in RULES:
            losses = {method: np.array([found[method][rule] for found, _, _ in draws]) for method in METHODS}
            means = {method: values.mean() for method, values in losses.items()}
            gain = losses["SPO+"] - losses["least squares"]
            first = "SPO+" if means["SPO+"] < min(means["absolute"], means["least squares"]) else "other"
            row = {**cell._asdict(), "stop": rule, **means, "linear SPO+": np.mean([x for _, x, _ in draws])}
            row |= {"best": np.mean([x for _, _, x in draws]), "difference": gain.mean()}
            row |= {
                "error": gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0,
                "order": first,
                "draws": losses,
            }
            row |= {"epochs": [np.mean([found[m][f"{rule} epoch"] for found, _, _ in draws]) for m in METHODS]}
            print(table.add({**row, "seconds": seconds, "first draw": args.first}), flush=True)
    table.write(f"{args.draws} draws.")


if __name__ == "__main__":
    main()
