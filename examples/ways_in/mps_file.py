"""From an MPS file: the costs of all variables are predicted."""

from pathlib import Path

import numpy as np

from skspo import SPOPlusRegressor, read_region

region = read_region(Path(__file__).with_name("transport.mps"))
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))  # features of each day
C = 6 + X @ rng.normal(size=(3, region.n_dim)) + rng.normal(size=(200, region.n_dim))  # costs of each day
model = SPOPlusRegressor(region).fit(X[:150], C[:150])
print(model.decide(X[150:], as_frame=True).head())
