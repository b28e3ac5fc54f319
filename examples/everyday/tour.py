"""The tour of a van through a depot and seven stops; the minutes between them are predicted."""

import matplotlib.pyplot as plt
import numpy as np

from skspo import SPOPlusRegressor, TravellingSalesman, chosen
from skspo.plotting import DecisionDisplay

rng = np.random.default_rng(0)
stops = ["depot", "mill", "port", "mall", "farm", "lake", "park", "fort"]
region = TravellingSalesman(stops)
where = dict(zip(stops, rng.random((8, 2)), strict=True))
pairs = [pair.split(" - ") for pair in region.variable_names]
length = np.array([np.linalg.norm(where[a] - where[b]) for a, b in pairs])
n, train = 150, 100
X = rng.normal(size=(n, 4))  # weather, weekday, and so on
traffic = np.exp(0.4 * X @ rng.normal(size=(4, length.size)))
minutes = 30 * length * traffic * rng.uniform(0.8, 1.2, size=traffic.shape)
model = SPOPlusRegressor(region, alpha=0.1, tol=1e-2).fit(X[:train], minutes[:train])

for tour in chosen(model, X[train : train + 3]):
    print(" - ".join(tour))
shortest = np.tile(region.argmin(length), (n - train, 1))
print(model.report(X[train:], minutes[train:], baselines={"shortest tour": shortest}))
DecisionDisplay.from_estimator(model, X[train : train + 3], minutes[train : train + 3], pos=where)
plt.show()
