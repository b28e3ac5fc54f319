"""A model in MLflow, for docs/guide/other_packages.md: pip install mlflow."""

# [mlflow]
import tempfile
from pathlib import Path

import mlflow.pyfunc
import mlflow.sklearn

from skspo import ShortestPath, SPOPlusRegressor
from skspo.datasets import make_shortest_path

X, C = make_shortest_path(150, grid=(3, 3), degree=4, random_state=0)
model = SPOPlusRegressor(ShortestPath.grid(3, 3)).fit(X, C)
folder = Path(tempfile.mkdtemp()) / "model"
mlflow.sklearn.save_model(model, folder, serialization_format="pickle", pip_requirements=["skspo"])
loaded = mlflow.sklearn.load_model(folder)  # the estimator, with decide
costs = mlflow.pyfunc.load_model(folder).predict(X)  # what a server returns: predicted costs
routes = model.region_.argmin(costs)
# [end of mlflow]
assert (loaded.predict(X) == model.predict(X)).all()
assert (routes == model.decide(X)).all()
