"""
When to run which task
======================

Tasks have to be run on machines, each within its time window and without a break.  They use energy, whose price for
each half hour is unknown when the schedule is made.  The decision is a schedule, but what is paid for is the energy of
each half hour.  :class:`~skspo.LinearImage` connects the two: z says which task starts when and on which machine,
u = M z is the energy of each half hour, and one price is predicted for each of the 48 entries of u.

The format of the instances is that of energy-aware scheduling (CSPLib problem 059) in the public predict-then-optimize
benchmarks.  With a folder that has ``energy_scheduling/load1.txt`` and the prices of the Irish market,
``energy_scheduling/prices2013.dat``, run::

    SKSPO_ENERGY_DATA=folder python examples/plot_scheduling.py

Without it the example uses a small instance and synthetic prices.
"""

# %%
# A schedule as a region
# ----------------------
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.sparse import csr_array, lil_array
from sklearn.linear_model import LinearRegression

from skspo import LinearImage, MixedInteger, SPOPlusRegressor, TwoStageRegressor, normalized_spo_loss

SMALL = """30 1 1 0 0 0 0 100 4
0 6 2 30 120 60
1 9 12 44 60 35
2 4 0 48 150 60
3 12 5 40 40 30"""


def read_instance(text):
    """Capacities (machine, resource), and tasks (duration, first start, last end, power, use of each resource)."""
    numbers = iter(text.split())
    minutes, n_resources, n_machines = (int(next(numbers)) for _ in range(3))
    machines = [[float(next(numbers)) for _ in range(4 + n_resources)] for _ in range(n_machines)]
    tasks = [[float(next(numbers)) for _ in range(5 + n_resources)] for _ in range(int(next(numbers)))]
    return 24 * 60 // minutes, np.array(machines)[:, 4:], np.array(tasks)[:, 1:]


def schedule(periods, capacity, tasks):
    """The region, and the task, machine and start of each variable of the inner region."""
    starts = [
        (task, machine, t)
        for task, (duration, first, last, *_) in enumerate(tasks)
        for machine in range(len(capacity))
        for t in range(int(first), min(int(last), periods) - int(duration) + 1)
    ]
    once, energy = lil_array((len(tasks), len(starts))), lil_array((periods, len(starts)))
    load = lil_array((capacity.size * periods, len(starts)))
    for column, (task, machine, t) in enumerate(starts):
        duration, power, use = int(tasks[task, 0]), tasks[task, 3], tasks[task, 4:]
        once[task, column] = 1
        for period in range(t, t + duration):
            energy[period, column] = power
            for resource, amount in enumerate(use):
                load[(machine * len(use) + resource) * periods + period, column] = amount
    limits = np.repeat(capacity.ravel(), periods)
    inner = MixedInteger(csr_array(load), limits, csr_array(once), np.ones(len(tasks)), bounds=(0, 1))
    return LinearImage(inner, csr_array(energy)), starts


folder = os.environ.get("SKSPO_ENERGY_DATA")
text = SMALL if folder is None else (Path(folder) / "energy_scheduling" / "load1.txt").read_text()
periods, capacity, tasks = read_instance(text)
region, starts = schedule(periods, capacity, tasks)
print(f"{len(tasks)} tasks, {len(capacity)} machines, {len(starts)} binary variables, {region.n_dim} prices")

# %%
# Prices
# ------
# One row per day, with a block of features for each half hour: the hour, forecasts of wind, load and price, and
# products of them.


def real_prices(path, days=60):
    """Features and prices of the last days without gaps."""
    table = pd.read_csv(path, sep=r"\s+", quotechar='"')
    columns = ["PeriodOfDay", "ForecastWindProduction", "SystemLoadEA", "SMPEA", "SMPEP2"]
    table = table[columns].to_numpy(dtype=float).reshape(-1, 48, 5)
    table = table[~np.isnan(table).any(axis=(1, 2))][-days:]
    return table[:, :, :4], table[:, :, 4]


def made_up_prices(days=60, seed=0):
    """The forecast of the price knows the level of the day, the load and the wind know its hours."""
    rng = np.random.default_rng(seed)
    hour = np.tile(np.arange(periods), (days, 1))
    level = 12 * rng.gumbel(size=(days, 1))
    load = 3 - 0.8 * np.cos(2 * np.pi * (hour / 2 - 5) / 24) + 0.5 * rng.normal(size=(days, periods))
    wind = np.abs(1 + 0.6 * rng.normal(size=(days, 1)) + 0.4 * rng.normal(size=(days, periods)))
    price = 40 + level + 7 * load + np.exp(load - wind) + 4 * rng.normal(size=(days, periods))
    return np.stack([hour, wind, load, 60 + level + 8 * rng.normal(size=(days, periods))], axis=2), price


if folder is None:
    features, C = made_up_prices()
else:
    features, C = real_prices(Path(folder) / "energy_scheduling" / "prices2013.dat")
features = (features - features.mean(axis=(0, 1))) / features.std(axis=(0, 1))
features = np.concatenate([features, features[:, :, 1:2] * features[:, :, 2:]], axis=2)
X = features.reshape(len(C), -1)
train, test = np.arange(len(C)) < 2 * len(C) // 3, np.arange(len(C)) >= 2 * len(C) // 3

# %%
# Train and decide
# ----------------
# One linear model predicts the prices of all half hours (``shared=True``).
models = {
    "least squares": TwoStageRegressor(LinearRegression(), region, shared=True),
    "SPO+": SPOPlusRegressor(region, shared=True, tol=1e-3, time_limit=60),
}
for name, model in models.items():
    model.fit(X[train], C[train])
    loss = normalized_spo_loss(C[test], model.predict(X[test]), region)
    print(f"{name:>13}: schedules cost {100 * loss:.2f} % more than the best ones")

# %%
# The energy of each half hour on one day, and the schedule behind it: ``inner_argmin`` gives z.
day = np.flatnonzero(test)[0]
figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(8, 5), layout="constrained")
above.step(np.arange(periods), C[day], where="post", color="black", label="price")
above.step(np.arange(periods), models["SPO+"].predict(X[[day]])[0], where="post", label="predicted by SPO+")
above.set_ylabel("price")
above.legend()
for shift, (name, model) in enumerate(models.items()):
    for column in np.flatnonzero(region.inner_argmin(model.predict(X[[day]]))[0] > 0.5):
        task, machine, t = starts[column]
        label = name if task == 0 else None
        below.barh(task + 0.4 * shift, tasks[task, 0], left=t, height=0.35, color=f"C{shift}", label=label)
below.set(xlabel="half hour", ylabel="task", yticks=range(len(tasks)))
below.legend()
plt.show()
