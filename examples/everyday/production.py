"""What to produce, in whole batches, if the capacities of machines change by day; margins are predicted."""

import numpy as np
import pandas as pd

from skspo import MixedInteger, SPOPlusRegressor, decide

products, machines = ["chair", "table", "shelf", "bed", "desk"], ["saw", "lathe", "paint"]
hours = np.array([[1.0, 2.0, 1.5, 3.0, 2.5], [2.0, 1.0, 0.0, 2.0, 1.0], [0.5, 1.0, 1.0, 2.0, 1.5]])  # of a batch
region = MixedInteger(hours, [8.0, 6.0, 5.0], bounds=(0, 4), variable_names=products, sense="max")

rng = np.random.default_rng(0)
n, train = 200, 150
X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["season", "orders", "export"])
usual = np.array([10.0, 14.0, 9.0, 25.0, 20.0])
margin = usual * np.exp(0.5 * X.to_numpy() @ rng.normal(size=(3, 5))) * rng.uniform(0.7, 1.3, size=(n, 5))
margin = pd.DataFrame(margin, columns=products)
capacity = np.array([8.0, 6.0, 5.0]) - rng.integers(4, size=(n, 3))  # less what maintenance takes
past, new = {"b_ub": capacity[:train]}, {"b_ub": capacity[train:]}
model = SPOPlusRegressor(region, alpha=0.1).fit(X[:train], margin[:train], region_params=past)

W = decide(model, X[train:], region_params=new, as_frame=True)
used = pd.DataFrame(W.to_numpy() @ hours.T, columns=machines, index=W.index)
print(W.astype(int).join(used).head(3))
print("capacities:", *capacity[train : train + 3].tolist())
# Today's rule: the best plan for usual margins.
rule = region.with_rows(new, n - train, 5).argmin(np.tile(usual, (n - train, 1)))
print(model.report(X[train:], margin[train:], region_params=new, baselines={"today's rule": rule}))
