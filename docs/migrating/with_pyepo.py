"""The PyEPO side of docs/migrating/pyepo.md: pip install torch pyepo gurobipy."""

# [pyepo]
import numpy as np
import pyepo
import torch
from pyepo.data.dataset import optDataset
from pyepo.data.shortestpath import genData
from pyepo.model.grb import shortestPathModel  # or pyepo.model.ort
from torch.utils.data import DataLoader

X, C = genData(300, 5, (5, 5), deg=6, noise_width=0.5, seed=135)
X_train, C_train, X_test, C_test = X[:200], C[:200], X[200:], C[200:]

optmodel = shortestPathModel((5, 5))
data = optDataset(optmodel, X_train, C_train)
loader = DataLoader(data, batch_size=32, shuffle=True)
linear = torch.nn.Linear(5, 40)
loss = pyepo.func.SPOPlus(optmodel, processes=1)
adam = torch.optim.Adam(linear.parameters(), lr=1e-2)
for _ in range(30):
    for x, c, w, z in loader:
        adam.zero_grad()
        loss(linear(x), c, w, z).backward()
        adam.step()

test = DataLoader(optDataset(optmodel, X_test, C_test), batch_size=32)
regret = pyepo.metric.regret(linear, optmodel, test)
# [end of pyepo]

# [check]
from skspo import ShortestPath, SPOPlusRegressor, normalized_spo_loss, spo_plus_loss

region = ShortestPath.grid(5, 5)  # the same edges in the same order
model = SPOPlusRegressor(region).fit(X_train, C_train)
with torch.no_grad():
    C_hat = linear(torch.as_tensor(X_test, dtype=torch.float32)).numpy().astype(np.float64)
    C_fit = linear(torch.as_tensor(X_train, dtype=torch.float32)).numpy().astype(np.float64)
assert np.isclose(normalized_spo_loss(C_test, C_hat, region), regret, rtol=1e-3)
assert spo_plus_loss(C_train, C_fit, region) >= model.lower_bound_  # no linear model has a smaller loss
# [end of check]
