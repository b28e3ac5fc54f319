"""
Routes in a road network
========================

A courier crosses a town every day.  The travel time of each street depends on the traffic of the day, and only five
indicators are known in the morning (the forecast, events, holidays, ...).  Streets have two directions, so the graph
has cycles, unlike the grids of the other examples; :class:`~skspo.ShortestPath` accepts a networkx graph.

Travel times follow the formula of the US Bureau of Public Roads, which is common in traffic engineering: a street of
load ``x`` (traffic over capacity) takes ``1 + 0.15 x ** 4`` times as long as an empty one.  The load is linear in the
indicators and the travel time is not, so every linear model of travel times has errors.  SPO+ puts these errors where
they change few routes.
"""

# %%
# A town
# ------
# Crossings are the nodes of a lattice with random displacements.  Two crossings are connected if no other crossing lies
# in the circle between them (a Gabriel graph).
import networkx as nx
import numpy as np

rng = np.random.default_rng(0)
SIDE = 5
places = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), axis=-1).reshape(-1, 2)
places = places + rng.uniform(-0.35, 0.35, size=places.shape)
apart = ((places[:, None] - places) ** 2).sum(axis=-1)
graph = nx.DiGraph()
graph.add_nodes_from((v, {"pos": place}) for v, place in enumerate(places))
for u, v in zip(*np.nonzero(apart), strict=True):
    blocked = apart[u] + apart[v] < apart[u, v]  # crossings in the circle between u and v
    if not blocked.any():
        graph.add_edge(int(u), int(v), length=float(np.sqrt(apart[u, v])))
source, target = 0, SIDE**2 - 1
edges = list(graph.edges())
length = np.array([graph.edges[edge]["length"] for edge in edges])
print(f"{graph.number_of_nodes()} crossings, {len(edges)} one-way streets")

# %%
# Days
# ----
load = rng.uniform(0.7, 1.2, size=len(edges))
influence = rng.uniform(0.0, 0.35, size=(len(edges), 5)) * (rng.random((len(edges), 5)) < 0.5)


def days(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indicators in the morning and travel times, of n days."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    x = np.maximum(load + X @ influence.T, 0.1) * rng.lognormal(0.0, 0.1, size=(n, len(edges)))
    return X, length * (1.0 + 0.15 * x**4)


X, C = days(200, seed=1)
X_test, C_test = days(500, seed=2)

# %%
# Cycles, and how to train without them
# -------------------------------------
# A shortest route contains no cycle.  But SPO+ needs the best flow for the costs ``2 c_hat - c``, many of which are
# negative, and in a graph with cycles this flow uses cycles.  This works, but it is slow: every sample is a linear
# program with all streets.
#
# A ``surrogate_region`` is faster: *train* on the streets that lead closer to the target, where there are no cycles and
# paths are found by dynamic programming, and *decide* in the whole graph.  The other streets are replaced by edges that
# no path from source to target can use; their flow is zero.
from skspo import ShortestPath, SPOPlusRegressor, SPOPlusRegressorCV, TwoStageRegressor, normalized_spo_loss

region = ShortestPath(graph, source, target)
to_target = nx.single_source_dijkstra_path_length(graph.reverse(), target, weight="length")
forward = [(u, v) if to_target[v] < to_target[u] else (f"nowhere {u}", f"{u} to {v}") for u, v in edges]
acyclic = ShortestPath(forward, source, target)
lost = (C_test * (acyclic.argmin(C_test) - region.argmin(C_test))).sum() / (C_test * region.argmin(C_test)).sum()
print(f"Routes that never turn back are {lost:.4%} slower, in hindsight")

# %%
# Models
# ------
import time

from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

forest = RandomForestRegressor(30, min_samples_leaf=3, random_state=0)
boosting = GradientBoostingRegressor(n_estimators=20, random_state=0)
models = {
    "least squares": TwoStageRegressor(region=region),
    "random forest": TwoStageRegressor(forest, region),
    "gradient boosting": TwoStageRegressor(boosting, region),
    "SPO+, whole graph": SPOPlusRegressor(region, alpha=0.1, prior="least_squares", tol=1e-4),
    "SPO+, acyclic": SPOPlusRegressor(region, surrogate_region=acyclic, alpha=0.1, prior="least_squares", tol=1e-4),
    "SPO+, acyclic, CV": SPOPlusRegressorCV(region, surrogate_region=acyclic, n_alphas=4, cv=3, tol=1e-4),
}
constant = np.tile(C.mean(axis=0), (len(C_test), 1))
print(f"{'':20s} {'time lost':>9s} {'seconds to fit':>15s}")
print(f"{'always one route':20s} {normalized_spo_loss(C_test, constant, region):>9.2%}")
for name, model in models.items():
    start = time.perf_counter()
    model.fit(X, C)
    seconds = time.perf_counter() - start
    print(f"{name:20s} {-model.score(X_test, C_test):>9.2%} {seconds:>15.2f}", flush=True)

# %%
# Time lost is the extra travel time compared with the best routes in hindsight, on new days.  The linear model trained
# with SPO+ loses about half as much as the one fitted by least squares, and no more than the forest, which is not
# linear.  Boosting is about as good as SPO+ on the whole graph.  Training on the acyclic graph takes a fraction of the
# time and is somewhat less accurate.
#
# One day on which the two linear models differ much, and all days:
import matplotlib.pyplot as plt

from skspo.plotting import DecisionDisplay, RegretDisplay

costs = {name: (C_test * models[name].decide(X_test)).sum(axis=1) for name in ("least squares", "SPO+, acyclic")}
day = int(np.argsort(costs["least squares"] - costs["SPO+, acyclic"])[-20])
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.8), width_ratios=(1, 1.2, 1), layout="constrained")
for ax, name, colorbar in ((left, "least squares", False), (middle, "SPO+, acyclic", True)):
    display = DecisionDisplay.from_estimator(models[name], X_test, C_test, sample=day, ax=ax, colorbar=colorbar)
    ax.set_title(f"{name}:\n{display.ax_.get_title()}")
shown = {name: models[name] for name in ("least squares", "gradient boosting", "SPO+, acyclic")}
RegretDisplay.from_estimators(shown, X_test, C_test, normalize=True, ax=right)
plt.show()
