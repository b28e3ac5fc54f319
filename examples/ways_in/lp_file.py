"""From an LP file: the costs of gas and coal are predicted, all others are those of the file."""

from pathlib import Path

import numpy as np

from skspo import SPOPlusRegressor, read_region

region = read_region(Path(__file__).with_name("power.lp"), variables=["gas", "coal"])
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
C = [20, 15] + 5 * X @ rng.normal(size=(3, 2)) + rng.normal(size=(40, 2))
model = SPOPlusRegressor(region, alpha=0.1, prior="least_squares", tol=1e-3)
model.fit(X[:25], region.extend(C[:25]))
print(model.decide(X[25:27]))  # gas, coal, and the known cost
plans = region.inner_argmin(model.predict(X[25:27]))
print(region.region.names(), plans)  # all variables of the file
