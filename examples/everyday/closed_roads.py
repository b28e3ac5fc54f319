"""Routes in a town with streets in both directions, where one is closed each day and each trip has its own ends.

SPO+ and least squares are level here: the interval of the ratio of their regrets contains one.
"""

import networkx as nx
import numpy as np

from skspo import ShortestPath, SPOPlusRegressor, chosen

rng = np.random.default_rng(0)
town = nx.relabel_nodes(nx.grid_2d_graph(4, 4), lambda node: "ABCD"[node[0]] + "1234"[node[1]])
region = ShortestPath.undirected(town, "A1", "D4")  # one cost for each street
streets, d, n, train = list(region.variable_names), region.n_dim, 200, 150
X = rng.normal(size=(n, 4))  # rain, hour of the day, and so on
minutes = 4 * np.exp(X @ rng.normal(size=(4, d)) / 2) * rng.uniform(0.8, 1.2, size=(n, d))

there, closed = np.ones((n, d), dtype=bool), rng.integers(d, size=n)
there[np.arange(n), closed] = False
trips = {
    "source": rng.choice(["A1", "B1"], size=n),
    "target": rng.choice(["D4", "C4", "D3"], size=n),
    "available": np.hstack([there, there]),  # one column for each street in each direction; another `back` is possible
}
past, new = ({name: values[rows] for name, values in trips.items()} for rows in (slice(train), slice(train, n)))
model = SPOPlusRegressor(region, alpha=0.1, tol=1e-2).fit(X[:train], minutes[:train], region_params=past)

for day, route in enumerate(chosen(model, X[train:], region_params=new)[:3], start=train):
    print(f"{streets[closed[day]]} is closed: {' '.join(route)}")
fewest = region.with_rows(new, n - train, d).argmin(np.ones((n - train, d)))
print(model.report(X[train:], minutes[train:], region_params=new, baselines={"fewest streets": fewest}))
