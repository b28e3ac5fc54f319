"""A portfolio that may change by at most 20 % against yesterday's holdings, with limits of risk and of one sector.

Returns are linear in the features here: least squares is as good as SPO+, and both are better than no trades.
"""

import cvxpy as cp
import numpy as np
import pandas as pd

from skspo import CvxpyRegion, SPOPlusRegressor, decide

assets, n, train = ["bank", "broker", "steel", "food", "power"], 120, 80
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 3))
returns = 0.5 + 0.5 * X @ rng.normal(size=(3, 5)) + rng.normal(size=(n, 5))  # percent
factor = np.linalg.cholesky(np.cov(returns[:train].T)).T
yesterday = cp.Parameter(5, name="yesterday", value=np.full(5, 0.2))


def rules(w):
    sector, risk, turnover = w[0] + w[1] <= 0.5, cp.norm(factor @ w) <= 0.9, cp.norm1(w - yesterday) <= 0.2
    return [w >= 0, cp.sum(w) == 1, sector, risk, turnover]


region = CvxpyRegion(rules, 5, sense="max", variable_names=assets)
past = {"yesterday": 0.18 + 0.1 * rng.dirichlet(np.ones(5), size=train)}  # what was held on the days of the past
model = SPOPlusRegressor(region, alpha=0.1, tol=1e-2).fit(X[:train], returns[:train], region_params=past)

held = [np.full(5, 0.2)]
for day in range(train, n):  # what is decided today is held tomorrow
    held.append(decide(model, X[[day]], region_params={"yesterday": held[-1][None]})[0])
W = pd.DataFrame(held, columns=assets)
print(W.head(4).round(3) + 0.0)
print(f"largest turnover {W.diff().abs().sum(axis=1).max():.3f}")
new = {"yesterday": np.array(held[:-1])}
keep = {"keep yesterday's holdings": new["yesterday"]}
print(model.report(X[train:], returns[train:], region_params=new, baselines=keep))
