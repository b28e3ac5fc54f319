"""From the constraints and bounds of scipy.optimize: a blend of four oils."""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint

from skspo import SPOPlusRegressor, read_region

whole, quality = LinearConstraint([1, 1, 1, 1], 1, 1), LinearConstraint([91, 95, 98, 87], lb=93)
region = read_region([whole, quality, Bounds(0, 0.6)])
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
C = [50, 55, 60, 45] + 5 * X @ rng.normal(size=(3, 4)) + rng.normal(size=(200, 4))
model = SPOPlusRegressor(region).fit(X[:150], C[:150])
print(model.decide(X[150:155]).round(2))
