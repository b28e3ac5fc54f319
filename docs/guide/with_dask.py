"""joblib on dask workers, for docs/guide/other_packages.md: pip install skspo[dask]."""

# [dask]
import joblib
from dask.distributed import Client

from skspo import ShortestPath, SPOPlusRegressorCV
from skspo.datasets import make_shortest_path

X, C = make_shortest_path(150, grid=(3, 3), degree=4, random_state=0)
model = SPOPlusRegressorCV(ShortestPath.grid(3, 3), n_alphas=5, cv=3, n_jobs=-1)
with Client(processes=False, dashboard_address=None) as client:  # or Client("tcp://scheduler:8786")
    with joblib.parallel_config(backend="dask"):
        model.fit(X, C)  # a fold is a task
# [end of dask]
alone = SPOPlusRegressorCV(ShortestPath.grid(3, 3), n_alphas=5, cv=3).fit(X, C)
assert (model.coef_ == alone.coef_).all()
