"""LightGBM with the SPO+ loss, for docs/guide/other_packages.md: pip install lightgbm."""

# [lightgbm]
import lightgbm
import numpy as np
from sklearn.linear_model import LinearRegression

from skspo import ShortestPath, normalized_spo_loss
from skspo.boosting import LightGBMObjective
from skspo.datasets import make_shortest_path

X, C = make_shortest_path(2000, grid=(3, 3), degree=6, noise=0.5, random_state=0)
X, X_new, C, C_new = X[:1000], X[1000:], C[:1000], C[1000:]
region = ShortestPath.grid(3, 3)
linear = LinearRegression().fit(X, C)
data = lightgbm.Dataset(X, label=np.arange(len(X)), init_score=linear.predict(X))  # the label of a sample is its row
parameters = {"objective": LightGBMObjective(region, C), "num_class": C.shape[1], "learning_rate": 0.02}
booster = lightgbm.train({**parameters, "num_leaves": 8, "verbose": -1}, data, num_boost_round=40)
C_hat = linear.predict(X_new) + booster.predict(X_new, raw_score=True)
routes = region.decide(C_hat)
# [end of lightgbm]
print(f"least squares: {normalized_spo_loss(C_new, linear.predict(X_new), region):.1%}")
print(f"with trees for the decisions: {normalized_spo_loss(C_new, C_hat, region):.1%}")
assert routes.shape == C_new.shape
