"""Networks on cost-sensitive classification: for which training size, width and stopping is SPO+ the best loss?

The paper (Liu and Grigas, 2021, appendix) reports for classification "a similar pattern" as for portfolios, where SPO+
is the best surrogate for networks with 256 hidden units.  It prints neither the training size nor the settings of Adam.
Here both vary.  A row is a training size, a width, a step size and a weight decay; its figures are mean SPO losses of
10,000 test samples over the draws, for SPO+ / SPO+ with a log barrier / absolute error / least squares.  Networks are
trained with Adam in batches of 200; a tenth of the samples is held out.  Columns, by the epoch whose network is used:

    held-out loss        the lowest held-out value of the loss that is minimized, as in skspo.experiments
    held-out decisions   the lowest held-out SPO loss
    hindsight            the lowest SPO loss of the test samples, of the other epochs here and every fifth: a limit
    2, 5, 20 epochs      so many epochs, whatever the losses are; "last": as many as EPOCHS says

"best" is the loss of the conditional mean of the costs, which no model can beat in expectation.  "SPO+ first" names the
columns in which the mean of SPO+ is below those of absolute error and least squares; "SPO+ - least squares" is the mean
difference of the same draws by held-out loss, with its standard error.

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
from typing import Any, NamedTuple

from results import Table, out_option  # first: it also limits numpy to one thread

import numpy as np  # isort: skip

import skspo as sk
from skspo.datasets import make_cost_sensitive_classification

N_TEST = 10_000
BARRIER = sk.LogBarrierSimplex(2.0 * 10 * np.log(10))
METHODS = {
    "SPO+": (sk.Simplex(), "spo+"),
    "SPO+ barrier": (BARRIER, "spo+"),
    "absolute": (sk.Simplex(), "absolute_error"),
    "least squares": (sk.Simplex(), "squared_error"),
}
MARKS = {2: "2 epochs", 5: "5 epochs", 20: "20 epochs"}
RULES = ("held-out loss", "held-out decisions", "hindsight", *MARKS.values(), "last")
EPOCHS = {60: 20, 300: 500, 1000: 500, 3000: 300, 10_000: 200, 20_000: 150}


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


def train(method: str, cell: Cell, data: tuple[np.ndarray, ...], seed: int) -> dict[str, tuple[float, int]]:
    """Test loss at the epoch that each rule chooses, and the epoch."""
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
            "held-out loss": sk.spo_plus_loss(C[:held], pred, region) if loss == "spo+" else np.abs(error).mean(),
            "held-out decisions": sk.spo_loss(C[:held], pred, sk.Simplex()),
        }
        if loss == "squared_error":
            values["held-out loss"] = np.square(error).mean()
        if epoch in MARKS:
            values[MARKS[epoch]] = 0.0
        if epoch == EPOCHS[cell.n]:
            values["last"] = 0.0
        if epoch % 5 == 0 or any(value < best[rule][0] for rule, value in values.items()):
            values["hindsight"] = test = float(sk.spo_loss(C_test, model.predict(X_test), sk.Simplex()))
            for rule, value in values.items():
                best[rule] = min(best[rule], (float(value), test, epoch))
    return {rule: (test, epoch) for rule, (_, test, epoch) in best.items()}


def draw(cell: Cell, seed: int) -> tuple[dict[str, dict[str, tuple[float, int]]], float, float]:
    """Results of each method, the loss of the linear SPO+ model and that of the conditional mean."""
    X, C, mean = make_cost_sensitive_classification(
        cell.n + N_TEST, degree=cell.degree, noise=cell.noise, random_state=seed, return_mean=True
    )
    n = cell.n
    found = {method: train(method, cell, (X[:n], C[:n], X[n:], C[n:]), seed) for method in METHODS}
    linear = sk.SPOPlusRegressor(sk.Simplex()).fit(X[:n], C[:n])
    losses = (sk.spo_loss(C[n:], pred, sk.Simplex()) for pred in (linear.predict(X[n:]), mean[n:]))
    return found, *(float(loss) for loss in losses)


def rank(rule: dict[str, Any], method: str) -> float:
    """Mean loss, where the second version of SPO+ does not count."""
    return np.inf if method == "SPO+ barrier" else rule["means"][method]


def difference(row: dict[str, Any]) -> str:
    rule = row["rules"]["held-out loss"]
    return f"{rule['difference']:+.4f}" + (f" ± {rule['error']:.4f}" if rule["error"] is not None else "")


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
    columns = {"degree": "d", "noise": "g", "n": ",", "width": "d", "rate": "g", "decay": "g"}
    for rule in RULES:
        columns[rule] = lambda row, rule=rule: " / ".join(f"{row['rules'][rule]['means'][m]:.3f}" for m in METHODS)
    columns |= {"linear SPO+": ".3f", "best": ".3f", "SPO+ first": "", "SPO+ - least squares": difference}
    columns["draws"] = lambda row: str(len(row["rules"]["last"]["draws"]["SPO+"]))
    key = ("degree", "noise", "n", "width", "rate", "decay")
    table = Table("networks", key=key, columns=columns, packages=("numpy",), file=args.out, quick=args.quick)
    print(table.head())
    for cell in [Cell(4, 0.5, 60, 8, 0.01)] if args.quick else cells():
        if args.only not in cell.name or time.process_time() > args.seconds:
            continue
        start = time.process_time()
        draws = [draw(cell, args.first + k) for k in range(args.draws)]
        rules = {}
        for rule in RULES:
            losses = {method: np.array([found[method][rule][0] for found, _, _ in draws]) for method in METHODS}
            epochs = {method: np.mean([found[method][rule][1] for found, _, _ in draws]) for method in METHODS}
            gain = losses["SPO+"] - losses["least squares"]
            error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else None
            rules[rule] = {"means": {method: values.mean() for method, values in losses.items()}, "epochs": epochs}
            rules[rule] |= {"difference": gain.mean(), "error": error, "draws": losses}
        ahead = [rule for rule in RULES if min(rules[rule]["means"], key=lambda m: rank(rules[rule], m)) == "SPO+"]
        row = {**cell._asdict(), "rules": rules, "SPO+ first": ", ".join(ahead) or "nowhere"}
        row |= {"linear SPO+": np.mean([x for _, x, _ in draws]), "best": np.mean([x for _, _, x in draws])}
        print(table.add({**row, "seconds": time.process_time() - start, "first draw": args.first}), flush=True)
    table.write()


if __name__ == "__main__":
    main()
