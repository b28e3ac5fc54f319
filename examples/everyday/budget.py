"""Which repairs are done with the budget of the month; what each of them is worth is predicted."""

import numpy as np
import pandas as pd

from skspo import Knapsack, SPOPlusRegressorCV, decide

repairs = ["roof", "lift", "boiler", "windows", "doors", "paint", "drains", "wiring"]
cost = np.array([30, 22, 18, 15, 8, 5, 12, 20])  # thousands
region = Knapsack(cost, 60)  # it maximizes

rng = np.random.default_rng(0)
n, train = 160, 120
X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["age", "rain", "frost", "complaints"])
level = np.exp(0.5 * X.to_numpy() @ rng.normal(size=(4, 8))) * rng.uniform(0.7, 1.3, size=(n, 8))
worth = pd.DataFrame(1.5 * cost * level, columns=repairs)
budget = rng.integers(40, 80, size=n)
needed = rng.random((n, 8)) < 0.8  # the other repairs are not needed this month
past, new = ({"capacity": budget[rows], "available": needed[rows]} for rows in (slice(train), slice(train, n)))
model = SPOPlusRegressorCV(region, cv=3).fit(X[:train], worth[:train], region_params=past)

W = decide(model, X[train:], region_params=new, as_frame=True)
print(W.astype(int).assign(spent=W @ cost, budget=budget[train:]).head(4))
# Today's rule: the best repairs for their usual worth.
usual = np.tile(worth[:train].mean(), (n - train, 1))
rule = region.with_rows(new, n - train, 8).argmin(usual)
print(model.report(X[train:], worth[train:], region_params=new, baselines={"usual worth": rule}))
