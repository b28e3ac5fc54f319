"""
Walk-forward portfolios of real stocks
======================================

Every week a portfolio of twenty stocks is chosen from past prices.  The weights must be diversified: their
entropy is at least that of ten equal holdings, which is the region :class:`~skspo.EntropySimplex`.  The predicted
numbers are returns, to be maximized.

Stock returns are nearly unpredictable.  This example shows how to set up such a study so that the result can be trusted
(walk-forward validation, standard errors for every figure).  The result: the models hardly differ.

The prices are daily closes of twenty large US companies from 1990 to 2022 from the package `skfolio
<https://skfolio.org>`_: ``pip install skfolio``.  Without it the example runs on random walks.
"""

# %%
# Prices
# ------
# The file is read from the installed package; nothing is downloaded.
from importlib.util import find_spec
from pathlib import Path

import numpy as np


def load_returns() -> tuple[np.ndarray, list[str], str]:
    """Daily returns, (days, assets), names of the assets, and where they come from."""
    package = find_spec("skfolio")
    path = Path(package.origin).parent / "datasets/data/sp500_dataset.csv.gz" if package and package.origin else None
    if path is not None and path.exists():
        prices = np.genfromtxt(path, delimiter=",", skip_header=1)[:, 1:]
        names = np.loadtxt(path, delimiter=",", max_rows=1, dtype=str)[1:].tolist()
        return prices[1:] / prices[:-1] - 1.0, names, "daily closes of real stocks"
    rng = np.random.default_rng(0)
    market = 0.01 * rng.standard_normal((8000, 1))
    own = 0.015 * rng.standard_normal((8000, 20))
    return 0.0004 + market + own, [f"asset {j}" for j in range(20)], "synthetic data (random walks)"


returns, names, source = load_returns()
print(f"{source}: {len(returns)} days, {len(names)} assets")

# %%
# Features and values
# -------------------
# At the close of every fifth day we know what the market did over a day, a week and a month, how nervous it is, and how
# far stocks have drifted apart.  The values are the returns over the next five days, in percent.  Weeks do not overlap,
# so no return is in two samples.
HORIZON = 5


def past(x: np.ndarray, days: int) -> np.ndarray:
    """Sums over the last days, the present one included; the first ones are incomplete."""
    total = np.cumsum(np.concatenate([np.zeros_like(x[:1]), x]), axis=0)
    start = np.maximum(np.arange(1, len(x) + 1) - days, 0)
    return total[1:] - total[start]


market = returns.mean(axis=1)
month = past(returns, 21)
features = {
    "day": market,
    "week": past(market, 5),
    "month": past(market, 21),
    "volatility": np.sqrt(past(market**2, 21)),
    "dispersion": month.std(axis=1),
}
today = np.arange(21, len(returns) - HORIZON, HORIZON)
X = np.column_stack([feature[today] for feature in features.values()])
X = X / X[: len(X) // 6].std(axis=0)  # in units of the first years, which are never tested on
growth = np.log1p(returns)
values = 100.0 * np.expm1(past(growth, HORIZON)[today + HORIZON])
print(f"{len(X)} weeks, {X.shape[1]} features")

# %%
# Walk forward
# ------------
# Each model is fitted to the past and decides the following years, five times.  ``SPOPlusRegressorCV`` chooses its
# penalty inside the past, again walking forward.
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import TimeSeriesSplit

from skspo import EntropySimplex, SPOPlusRegressorCV, TwoStageRegressor

region = EntropySimplex(-np.log(10), sense="max")
forest = RandomForestRegressor(30, min_samples_leaf=20, random_state=0)
boosting = HistGradientBoostingRegressor(max_iter=20, random_state=0)
models = {
    "least squares": TwoStageRegressor(region=region),
    "random forest": TwoStageRegressor(forest, region),
    "gradient boosting": TwoStageRegressor(boosting, region),
    "SPO+": SPOPlusRegressorCV(region, n_alphas=6, cv=TimeSeriesSplit(3), tol=1e-4),
}
splits = list(TimeSeriesSplit(5).split(X))
tested = np.concatenate([test for _, test in splits])
weights = {"equal weights": np.full((len(tested), len(names)), 1.0 / len(names))}
averages = [np.tile(values[train].mean(axis=0), (len(test), 1)) for train, test in splits]
weights["past mean"] = region.argmin(np.concatenate(averages))
for name, model in models.items():
    decisions = [model.fit(X[train], values[train]).decide(X[test]) for train, test in splits]
    weights[name] = np.concatenate(decisions)
weights["hindsight"] = region.argmin(values[tested])

# %%
# Results
# -------
# Transaction costs are ignored.
earned = {name: (W * values[tested]).sum(axis=1) for name, W in weights.items()}
print(f"{'':20s} {'% a week':>9s} {'deviation':>10s} {'beyond equal weights':>22s} {'beyond least squares':>22s}")
for name, r in earned.items():
    texts = []
    for other in ("equal weights", "least squares"):
        extra = r - earned[other]
        texts.append("" if name == other else f"{extra.mean():+.3f} +- {extra.std() / np.sqrt(len(extra)):.3f}")
    print(f"{name:20s} {r.mean():>9.3f} {r.std():>10.2f} {texts[0]:>22s} {texts[1]:>22s}")

# %%
# With the real prices the differences between the models are within the noise: after 26 years SPO+, forest and boosting
# are all within one standard error of least squares.  All of them, and the mean of the past, earn a little more than
# equal weights, at a larger risk.  Even this has a survivorship bias, because the data are companies that are large
# *today*.  Hindsight earns ten times as much: the possible gain is large, but the features predict little of it.
#
# SPO+ cannot create information that the features do not have.  Here it is not worse than least squares: it shrinks
# towards least squares, with a penalty chosen on past data, and stays close to it if there is nothing else to learn.
# The theory also requires more diversification than ten names out of twenty: for such a loose threshold it does not
# guarantee that SPO+ is better than least squares.
import matplotlib.pyplot as plt

from skspo.plotting import DecisionDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
for name, r in earned.items():
    if name not in ("hindsight", "equal weights"):
        years = np.arange(len(r)) / 52
        left.plot(years, np.cumsum(np.log1p(r / 100) - np.log1p(earned["equal weights"] / 100)), label=name)
left.axhline(0.0, color="black", linewidth=0.8)
left.set(xlabel="years", ylabel="log wealth beyond equal weights", title="Walking forward, without costs of trading")
left.legend(frameon=False)
DecisionDisplay(region=region, C=values[tested], W=weights["SPO+"]).plot(ax=right, sample=-1, labels=names)
right.set(title=f"SPO+ in the last week, in %: {right.get_title()}", xlabel="", ylabel="weight")
plt.show()
