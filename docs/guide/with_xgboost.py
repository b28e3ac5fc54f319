"""XGBoost with the SPO+ loss, for docs/guide/other_packages.md: pip install xgboost."""

# [xgboost]
from xgboost import XGBRegressor

from skspo import ShortestPath, decide, normalized_spo_loss
from skspo.boosting import XGBoostObjective
from skspo.datasets import make_shortest_path

X, C = make_shortest_path(2000, grid=(3, 3), degree=6, noise=0.5, random_state=0)
X, X_new, C, C_new = X[:1000], X[1000:], C[:1000], C[1000:]
region = ShortestPath.grid(3, 3)
trees = {"multi_strategy": "multi_output_tree", "tree_method": "hist", "max_depth": 3}
costs = XGBRegressor(n_estimators=60, learning_rate=0.1, **trees).fit(X, C)
decisions = XGBRegressor(objective=XGBoostObjective(region), n_estimators=40, learning_rate=0.02, **trees)
decisions.fit(X, C, xgb_model=costs.get_booster())  # continues the model of the costs
routes = decide(decisions, X_new, region=region)
# [end of xgboost]
for name, model in {"costs": costs, "costs, then decisions": decisions}.items():
    print(f"{name}: {normalized_spo_loss(C_new, model.predict(X_new), region):.1%}")
assert routes.shape == C_new.shape
