"""A cheap mix of animal feed with enough protein and fat: prices of ingredients are predicted, for tomorrow's order."""

import numpy as np
import pandas as pd

from skspo import Polyhedron, SPOPlusRegressor, decide

table = pd.DataFrame(
    {"protein": [9, 12, 44, 34, 60, 0], "fat": [4, 2, 1, 2, 9, 99], "fiber": [2, 5, 7, 12, 1, 0], "most": 60},
    index=["corn", "barley", "soy", "rape", "fish", "oil"],
)
region = Polyhedron(
    A_ub=np.array([-table["protein"], -table["fat"], table["fiber"]]) / 100,
    b_ub=np.array([-18.0, -4.0, 5.0]),  # kilograms for each 100 kg: at least 18 and 4, at most 5
    A_eq=np.ones((1, 6)),
    b_eq=[100.0],
    bounds=[(0, most) for most in table["most"]],
    variable_names=list(table.index),
)

rng = np.random.default_rng(0)
n, train = 250, 200
X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["harvest", "oil price", "exports", "weather"])
usual = np.array([0.20, 0.18, 0.40, 0.28, 1.10, 0.90])
level = np.exp(0.3 * X.to_numpy() @ rng.normal(size=(4, 6))) * rng.uniform(0.9, 1.1, size=(n, 6))
price = pd.DataFrame(usual * level, columns=table.index)
model = SPOPlusRegressor(region, alpha=0.1).fit(X[:train], price[:train])

mix = decide(model, X[train:], as_frame=True)
print(mix.head(3).round(1) + 0.0)
content = mix @ table[["protein", "fat", "fiber"]] / 100
print(content.agg(["min", "max"]).round(1))
rule = np.tile(region.argmin(price[:train].mean()), (n - train, 1))
print(model.report(X[train:], price[train:], baselines={"the same mix every day": rule}))
