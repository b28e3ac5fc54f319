"""The value of an item is its predicted price times its known weight."""

import numpy as np

from skspo import Knapsack, LinearImage, SPOPlusRegressor

weights = np.array([3, 5, 7, 2, 4])
region = LinearImage(Knapsack(weights, 12), np.diag(weights))  # what is sold: u = weight x whether it is packed
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
prices = 10 + X @ rng.normal(size=(3, 5)) + rng.normal(size=(200, 5))
model = SPOPlusRegressor(region).fit(X[:150], prices[:150])
print("sold:", model.decide(X[150:151]))
print("packed:", region.inner_argmin(model.predict(X[150:151])))
