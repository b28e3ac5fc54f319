"""From a model of highspy: shares in projects, with predicted profits."""

import highspy
import numpy as np

from skspo import SPOPlusRegressor, read_region

highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
projects = [highs.addVariable(0, 1, obj=1, name=name) for name in ("bridge", "tunnel", "road", "park")]
highs.addConstr(sum(cost * w for cost, w in zip([5, 7, 4, 2], projects, strict=True)) <= 10)
highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
region, rng = read_region(highs), np.random.default_rng(0)
X = rng.normal(size=(200, 3))
V = [6, 8, 5, 3] + X @ rng.normal(size=(3, 4)) + rng.normal(size=(200, 4))
model = SPOPlusRegressor(region).fit(X[:150], V[:150])
print(model.chosen(X[150:155]))
