"""One prediction for several variables: all edges of a zone have the same price per kilometer."""

import numpy as np

from skspo import LinearImage, ShortestPath, SPOPlusRegressor

grid = ShortestPath.grid(4, 4)
rng = np.random.default_rng(0)
zone, km = np.arange(grid.n_dim) % 3, rng.uniform(1, 5, grid.n_dim)
region = LinearImage(grid, (zone == np.arange(3)[:, None]) * km)  # kilometres in each zone
X = rng.normal(size=(200, 4))
C = 3 + X @ rng.normal(size=(4, 3)) + rng.normal(size=(200, 3))
model = SPOPlusRegressor(region).fit(X[:150], C[:150])
print(grid.describe(region.inner_argmin(model.predict(X[150:152]))))
