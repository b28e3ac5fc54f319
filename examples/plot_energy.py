"""
Electricity: first the features, then the loss
==============================================

A plant may run for some half hours of a day.  Each half hour has a weight, its share of a budget of starts, fuel or
staff, and a value: the price times the weight, plus noise.  Choosing half hours is a 0-1 knapsack over 48 items whose
values are unknown when the plan is made.  Each item has eight features of its own (calendar, forecasts of wind, load
and price, carbon dioxide), and one model is used for all items: ``shared=True``.

The public predict-then-optimize benchmarks use such data from the Irish market, 2011 to 2013, and give models these
eight features.  The weight is not among them, so no model can know the largest part of the value.  This example
compares models with and without the weight, and with the forecast of the price times the weight, which learns nothing.

With a folder that has the benchmark's file, ``energy_prices.npz``, run::

    SKSPO_ENERGY_DATA=folder python examples/plot_energy.py

Without it the example generates synthetic prices with the same layout and fewer days.
"""

# %%
# A long table: one row per day and half hour
# -------------------------------------------
import os
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from skspo import Knapsack, SPOPlusRegressor, TwoStageRegressor, normalized_spo_loss, stack_items

NAMES = ["holiday", "weekday", "week", "month", "wind", "load", "price", "CO2"]  # "price" is a forecast


def real_values(path):
    """The benchmark's file as one table."""
    arrays = np.load(path)
    features = np.concatenate([arrays["X_1gtrain"], arrays["X_1gtest"]])[:, 1:]  # the first column is a group number
    table = pd.DataFrame(features.astype(float), columns=NAMES)
    table["value"] = np.concatenate([arrays["y_train"], arrays["y_test"]])
    return table, arrays["weights"]


def made_up_values(days=160, seed=0):
    """Prices depend on wind and load in a way that the forecast of the price knows only in part."""
    rng = np.random.default_rng(seed)
    hour, day = np.arange(48) / 2.0, np.arange(days)[:, None] + np.zeros(48)
    load = 3 - 0.8 * np.cos(2 * np.pi * (hour - 5) / 24) + 0.5 * rng.normal(size=(days, 48))
    wind = np.abs(1 + 0.6 * rng.normal(size=(days, 1)) + 0.4 * rng.normal(size=(days, 48)))
    price = 20 + 7 * load + np.exp(load - wind)
    forecast = price - 0.5 * np.exp(load - wind) + 3 * rng.normal(size=(days, 48))
    weights = rng.choice([3, 5, 7], size=48)
    value = (price + 2 * rng.normal(size=(days, 48))) * weights + 25 * rng.normal(size=(days, 48))
    carbon = 500 - 40 * wind + 20 * rng.normal(size=(days, 48))
    columns = [rng.random((days, 1)) < 0.03, day % 7, day // 7, day // 30, wind, load, forecast, carbon]
    columns = [np.broadcast_to(column, (days, 48)).astype(float).ravel() for column in columns]
    table = pd.DataFrame(dict(zip(NAMES, columns, strict=True)))
    table["value"] = value.ravel()
    return table, weights


folder = os.environ.get("SKSPO_ENERGY_DATA")
table, weights = made_up_values() if folder is None else real_values(Path(folder) / "energy_prices.npz")
table["day"], table["half hour"] = np.divmod(np.arange(len(table)), 48)
table["weight"] = weights[table["half hour"]]

# %%
# What is the value?  Divided by the weight it has the size of the price, whatever the weight is.
by_weight = table.assign(ratio=table["value"] / table["weight"]).groupby("weight")[["price", "value", "ratio"]].mean()
print(by_weight.round(1))
known = table["price"] * table["weight"]
print(f"correlation of the value with the forecast {np.corrcoef(table['value'], table['price'])[0, 1]:.2f}, "
      f"with the forecast times the weight {np.corrcoef(table['value'], known)[0, 1]:.2f}")  # fmt: skip

# %%
# Two sets of features
# --------------------
# The eight features alone, and what a person who knows the weights would use: the features times the weight, and the
# weight.  A linear model can represent price times weight only with the second set.
for name in NAMES:
    table[f"{name} x weight"] = table[name] * table["weight"]
sets = {"8 features": NAMES, "with the weight": [*(f"{name} x weight" for name in NAMES), "weight"]}
data = {
    label: stack_items(table, sample="day", item="half hour", features=names, cost="value")
    for label, names in sets.items()
}
forecast = known.to_numpy().reshape(-1, 48)
C = data["8 features"].C
print({label: days.X.shape for label, days in data.items()}, C.shape)

# %%
# Three models, three budgets, several shuffles of the days
# ---------------------------------------------------------
# The measure is the normalized SPO loss: the value that the chosen half hours lose compared with the best ones, divided
# by the value of the best ones.
capacities, shuffles = (60, 120, 180), 2 if folder is None else 4
regressors = {
    "least squares": LinearRegression(),
    "gradient boosting": HistGradientBoostingRegressor(max_iter=60, random_state=0),
}
losses, seconds = {}, {}
start = time.perf_counter()
for shuffle in range(shuffles):
    order = np.random.RandomState(shuffle).permutation(len(C))
    # The benchmark's split: 550 days to train, 100 to choose parameters (not used here), 139 to test.
    train, test = order[: int(0.698 * len(order))], order[int(0.824 * len(order)) :]
    for label, days in data.items():
        predictions = {"forecast x weight": forecast[test]}
        for capacity in capacities:
            region = Knapsack(weights, capacity)
            if capacity == capacities[0]:  # these do not depend on the knapsack, and are fitted once
                for name, model in regressors.items():
                    two_stage = TwoStageRegressor(model, region, shared=True).fit(days.X[train], C[train])
                    predictions[name] = two_stage.predict(days.X[test])
            spo = SPOPlusRegressor(region, shared=True).fit(days.X[train], C[train])
            for name, C_hat in {**predictions, "SPO+": spo.predict(days.X[test])}.items():
                loss = 100 * normalized_spo_loss(C[test], C_hat, region)
                losses.setdefault((label, name, capacity), []).append(loss)

models = ["least squares", "gradient boosting", "SPO+", "forecast x weight"]
for label in sets:
    print(f"\n{label:>18}  " + "  ".join(f"{f'capacity {c}':>12}" for c in capacities))
    for name in models:
        row = "  ".join(f"{np.mean(losses[label, name, c]):>10.1f} %" for c in capacities)
        print(f"{name:>18}  {row}")
print(f"\n{time.perf_counter() - start:.0f} s")

# %%
# The prices of the Irish market, by the command above (test loss in percent at capacities 60, 120 and 180, mean of four
# shuffles):
#
# =================  ==================  ==================
# model              8 features          with the weight
# =================  ==================  ==================
# least squares      16.9 / 11.1 / 3.5   8.3 / 4.4 / 2.1
# gradient boosting  17.2 / 11.2 / 3.6   9.2 / 4.6 / 2.2
# SPO+               12.9 / 6.0 / 2.5    8.0 / 4.3 / 2.2
# forecast x weight  10.3 / 5.3 / 2.4    10.3 / 5.3 / 2.4
# =================  ==================  ==================
#
# With the eight features, SPO+ is far better than least squares, but all three models are worse than the forecast times
# the weight: SPO+ only makes up for a part of what the features lack.  With the weight, the worst model is better than
# every model without it, and SPO+ and least squares are nearly level.  So look first at what a model can know, and
# compare it with a rule that learns nothing.  The choice of the loss comes after that.
figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 4), layout="constrained")
for ax, label in zip(axes, sets, strict=True):
    for k, name in enumerate(models):
        heights = [np.mean(losses[label, name, c]) for c in capacities]
        ax.bar(np.arange(3) + 0.2 * (k - 1.5), heights, 0.2, label=name)
    ax.set(xticks=range(3), xticklabels=capacities, xlabel="capacity", title=label)
axes[0].set_ylabel("lost value on test days (%)")
axes[1].legend()
plt.show()
