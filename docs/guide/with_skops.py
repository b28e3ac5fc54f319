"""A model in the format of skops, for docs/guide/other_packages.md: pip install skops."""

# [skops]
import skops.io

from skspo import ShortestPath, SPOPlusRegressor
from skspo.datasets import make_shortest_path

X, C = make_shortest_path(150, grid=(3, 3), degree=4, random_state=0)
model = SPOPlusRegressor(ShortestPath.grid(3, 3)).fit(X, C)
data = skops.io.dumps(model)  # or dump(model, "model.skops")
trusted = [
    "builtins.frozenset",
    "skspo._training.baselines.Baselines",  # least squares, for the report
    "skspo.estimators._spo_plus.SPOPlusRegressor",
    "skspo.regions.graphs.ShortestPath",
]
assert skops.io.get_untrusted_types(data=data) == trusted
loaded = skops.io.loads(data, trusted=trusted)
# [end of skops]
assert (loaded.predict(X) == model.predict(X)).all()
assert (loaded.decide(X) == model.decide(X)).all()
assert str(loaded.report(X, C)) == str(model.report(X, C))
