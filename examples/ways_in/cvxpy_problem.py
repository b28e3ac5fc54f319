"""From a CVXPY problem with a cone: weights of assets with limited risk."""

import cvxpy as cp
import numpy as np

from skspo import SPOPlusRegressor, read_region

weights, factor = cp.Variable(5, name="weights", nonneg=True), np.diag([0.1, 0.2, 0.3, 0.2, 0.1])
problem = cp.Problem(cp.Maximize(cp.sum(weights)), [cp.sum(weights) == 1, cp.norm(factor @ weights) <= 0.1])
region, rng = read_region(problem), np.random.default_rng(0)
X = rng.normal(size=(200, 3))
V = [1, 2, 3, 2, 1] + X @ rng.normal(size=(3, 5)) + rng.normal(size=(200, 5))  # returns
model = SPOPlusRegressor(region, alpha=0.1).fit(X[:150], V[:150])
print(model.decide(X[150:155]).round(2))
