"""The PyTorch side of docs/migrating/pyepo.md: pip install skspo[torch]."""

# [torch]
import torch

from skspo import ShortestPath
from skspo.datasets import make_shortest_path
from skspo.torch import SPOPlusLoss

X, C = make_shortest_path(200, grid=(5, 5), degree=6, random_state=0)
region = ShortestPath.grid(5, 5)
W = torch.as_tensor(region.argmin(C))  # the best routes never change
X, C = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(C, dtype=torch.float32)

network = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.ReLU(), torch.nn.Linear(32, 40))
loss = SPOPlusLoss(region)
adam = torch.optim.Adam(network.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    for rows in torch.randperm(200).split(32):
        adam.zero_grad()
        value = loss(network(X[rows]), C[rows], W[rows])  # the whole batch in one call of the oracle
        value.backward()
        adam.step()
    losses.append(value.item())
# [end of torch]
assert losses[-1] < losses[0]
