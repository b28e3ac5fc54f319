"""Regions as models of PyEPO, for docs/migrating/pyepo.md: pip install skspo[pyepo]."""

# [regions]
import pyepo
import torch
from pyepo.data.dataset import optDataset
from torch.utils.data import DataLoader

from skspo import ShortestPath
from skspo.datasets import make_shortest_path
from skspo.pyepo import RegionModel

X, C = make_shortest_path(200, grid=(5, 5), degree=6, random_state=0)
optmodel = RegionModel(ShortestPath.grid(5, 5))
loader = DataLoader(optDataset(optmodel, X, C), batch_size=32, shuffle=True)

torch.manual_seed(0)
linear = torch.nn.Linear(5, 40)
loss = pyepo.func.perturbedFenchelYoung(optmodel, processes=1)  # a loss that skspo does not have
adam = torch.optim.Adam(linear.parameters(), lr=1e-2)
before = pyepo.metric.regret(linear, optmodel, loader)
for _ in range(10):
    for x, _c, w, _z in loader:
        adam.zero_grad()
        loss(linear(x), w).backward()
        adam.step()
# [end of regions]
assert pyepo.metric.regret(linear, optmodel, loader) < before
