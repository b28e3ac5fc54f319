"""From a linopy model: when to charge a battery, with predicted prices."""

import linopy
import numpy as np

from skspo import SPOPlusRegressor, read_region

m = linopy.Model()
charge = m.add_variables(lower=-1, upper=1, coords=[range(6)], dims=["hour"], name="charge")
m.add_constraints(charge.cumsum("hour") >= 0)
m.add_constraints(charge.cumsum("hour") <= 2)
region, rng = read_region(m), np.random.default_rng(0)
X = rng.normal(size=(200, 3))
C = 40 + 10 * X @ rng.normal(size=(3, 6)) + 3 * rng.normal(size=(200, 6))
model = SPOPlusRegressor(region).fit(X[:150], C[:150])
print(model.decide(X[150:], as_frame=True).head())
