"""How much each warehouse sends to each shop; orders change every day, and freight rates are predicted."""

import numpy as np
import pandas as pd

from skspo import Polyhedron, SPOPlusRegressor, decide

warehouses, shops = ["north", "south", "east"], ["A", "B", "C", "D", "E"]
lanes = pd.MultiIndex.from_product([warehouses, shops])
sent = np.kron(np.eye(3), np.ones(5))  # what leaves each warehouse
received = np.kron(np.ones(3), np.eye(5))  # what reaches each shop
stock, usual_orders = np.array([60.0, 50.0, 50.0]), np.full(5, 25.0)
names = [f"{a} -> {b}" for a, b in lanes]
region = Polyhedron(sent, stock, received, usual_orders, bounds=(0, 60), variable_names=names)

rng = np.random.default_rng(0)
n, train = 200, 150
X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["diesel", "rain", "holiday", "demand"])
distance = rng.uniform(2, 4, size=15)
level = np.exp(0.3 * X.to_numpy() @ rng.normal(size=(4, 15))) * rng.uniform(0.9, 1.1, size=(n, 15))
rate = pd.DataFrame(distance * level, columns=names)
orders = {"b_eq": rng.uniform(15, 32, size=(n, 5)).round()}
past, new = {"b_eq": orders["b_eq"][:train]}, {"b_eq": orders["b_eq"][train:]}
model = SPOPlusRegressor(region, alpha=0.1, tol=1e-2).fit(X[:train], rate[:train], region_params=past)

W = decide(model, X[train:], region_params=new, as_frame=True)
print(pd.DataFrame(W.iloc[0].to_numpy().reshape(3, 5), index=warehouses, columns=shops))
print("orders:", new["b_eq"][0])
# Today's rule: distances, whatever the rates of the day are.
rule = region.with_rows(new, n - train, 15).argmin(np.tile(distance, (n - train, 1)))
print(model.report(X[train:], rate[train:], region_params=new, baselines={"by distance": rule}))
