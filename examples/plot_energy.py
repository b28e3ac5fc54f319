"""
Which half hours to sell electricity in
=======================================

A plant may run for some half hours of a day.  Each half hour uses a part of its budget of starts, fuel or staff.  This
is a 0-1 knapsack over the 48 half hours, whose values are prices that are unknown when the plan is made.  Each half
hour has its own features (calendar, forecasts of load, wind and price), and one linear model is used for all of them:
``shared=True``.

With the prices of the Irish market of 2011 to 2013, in the layout of the public predict-then-optimize benchmarks
(arrays ``X_1gtrain``, ``X_1gtest``, ``y_train``, ``y_test`` and ``weights``), run::

    python examples/plot_energy.py energy_prices.npz

Without a file the example generates synthetic prices with the same layout and fewer days.
"""

# %%
# A long table: one row per day and half hour
# -------------------------------------------
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression

from skspo import Knapsack, SPOPlusRegressor, TwoStageRegressor, normalized_spo_loss, stack_items

NAMES = [f"feature {k}" for k in range(8)]


def real_prices(path):
    """The benchmark's file as one table."""
    arrays = np.load(path)
    features = np.concatenate([arrays["X_1gtrain"], arrays["X_1gtest"]])[:, 1:]  # the first column is a group number
    table = pd.DataFrame(features.astype(float), columns=NAMES)
    table["price"] = np.concatenate([arrays["y_train"], arrays["y_test"]])
    return table, arrays["weights"]


def made_up_prices(days=160, seed=0):
    """Forecasts that know the price level of a day, but not its hours: errors in the level do not change plans."""
    rng = np.random.default_rng(seed)
    hour = np.tile(np.arange(48) / 2.0, (days, 1))
    number = np.repeat(np.arange(days)[:, None], 48, axis=1)
    level = 12 * rng.gumbel(size=(days, 1))
    load = 3 - 0.8 * np.cos(2 * np.pi * (hour - 5) / 24) + 0.5 * rng.normal(size=(days, 48))
    wind = np.abs(1 + 0.6 * rng.normal(size=(days, 1)) + 0.4 * rng.normal(size=(days, 48)))
    price = 40 + level + 7 * load + np.exp(load - wind) + 4 * rng.normal(size=(days, 48))
    forecast = 60 + level + 8 * rng.normal(size=(days, 48))
    columns = [hour, number % 7, number // 30, load, wind, forecast, load * wind, hour > 16]
    table = pd.DataFrame({name: np.asarray(x, dtype=float).ravel() for name, x in zip(NAMES, columns, strict=True)})
    table["price"] = price.ravel()
    return table, rng.choice([3, 5, 7], size=48)


path = Path(sys.argv[1]) if len(sys.argv) > 1 else None
table, weights = made_up_prices() if path is None else real_prices(path)
table["day"], table["half hour"] = np.divmod(np.arange(len(table)), 48)
table.head()

# %%
# Into arrays: one row per day, with 48 blocks of 8 features.
days = stack_items(table, sample="day", item="half hour", features=NAMES, cost="price")
print(f"X {days.X.shape}, C {days.C.shape}")

# %%
# Four models, three budgets, three shuffles of the days
# ------------------------------------------------------
# The measure is the normalized SPO loss: the revenue that the chosen half hours lose compared with the best ones,
# divided by the revenue of the best ones.
capacities, shuffles = (60, 120, 180), 3
regressors = {
    "least squares": LinearRegression(),
    "random forest": RandomForestRegressor(n_estimators=30, min_samples_leaf=5, random_state=0),
    "gradient boosting": HistGradientBoostingRegressor(max_iter=60, random_state=0),
}
losses, seconds = {}, {}


def fit(name, model):
    start = time.perf_counter()
    model.fit(days.X[train], days.C[train])
    seconds.setdefault(name, []).append(time.perf_counter() - start)
    return model.predict(days.X[test])


for shuffle in range(shuffles):
    order = np.random.RandomState(shuffle).permutation(len(days.X))
    # The benchmark's split: 550 days to train, 100 to choose parameters (not used here), 139 to test.
    train, test = order[: int(0.698 * len(order))], order[int(0.824 * len(order)) :]
    # These do not depend on the knapsack, and are fitted once for all capacities.
    predictions = {name: fit(name, TwoStageRegressor(model, shared=True)) for name, model in regressors.items()}
    for capacity in capacities:
        region = Knapsack(weights, capacity)
        predictions["SPO+"] = fit("SPO+", SPOPlusRegressor(region, shared=True))
        for name, C_hat in predictions.items():
            losses.setdefault((name, capacity), []).append(normalized_spo_loss(days.C[test], C_hat, region))

names = list(seconds)
print(f"{'':>18}  " + "  ".join(f"{f'capacity {c}':>12}" for c in capacities) + f"  {'seconds':>7}")
for name in names:
    row = "  ".join(f"{100 * np.mean(losses[name, c]):>10.1f} %" for c in capacities)
    print(f"{name:>18}  {row}  {np.mean(seconds[name]):>7.2f}")

# %%
# On the synthetic prices the linear model trained with SPO+ earns more than the same model trained by least squares.
# Trees can represent more than a linear model, but are fitted to prices, not to plans.
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for k, name in enumerate(names):
    heights = [100 * np.mean(losses[name, c]) for c in capacities]
    ax.bar(np.arange(3) + 0.2 * (k - 1.5), heights, 0.2, label=name)
ax.set(xticks=range(3), xticklabels=capacities, xlabel="capacity", ylabel="lost revenue on test days (%)")
ax.legend()
plt.show()

# %%
# One test day: the price, and the choices of two models at capacity 120.
region = Knapsack(weights, 120)
linear = TwoStageRegressor(region=region, shared=True).fit(days.X[train], days.C[train])
spo = SPOPlusRegressor(region, shared=True).fit(days.X[train], days.C[train])
regret = {
    label: ((region.argmin(days.C[test]) - model.decide(days.X[test])) * days.C[test]).sum(axis=1)
    for label, model in (("least squares", linear), ("SPO+", spo))
}
day = test[int(np.argsort(regret["least squares"] - regret["SPO+"])[-len(test) // 10])]  # a day that shows a difference
figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
ax.step(np.arange(48) / 2, days.C[day], where="post", color="black", label="price")
low, high = days.C[day].min(), days.C[day].max()
rows = {
    "best in hindsight": region.argmin(days.C[day]),
    "least squares": linear.decide(days.X[day : day + 1])[0],
    "SPO+": spo.decide(days.X[day : day + 1])[0],
}
for k, ((label, chosen), color) in enumerate(zip(rows.items(), ("gray", "C0", "C3"), strict=True)):
    y = low - (0.08 + 0.07 * k) * (high - low)
    on = np.flatnonzero(chosen > 0.5)
    ax.barh(np.full(on.size, y), 0.5, left=on / 2, height=0.05 * (high - low), align="center", color=color)
    ax.annotate(f"{label}: {days.C[day] @ chosen:.0f}", (24.3, y), va="center", annotation_clip=False)
ax.set(xlabel="hour", ylabel="price", title="choices for one test day, and what they earn", xlim=(0, 24))
plt.show()
