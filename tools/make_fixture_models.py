"""Write models of this version, for the test that later versions can read them.

    python tools/make_fixture_models.py tests/fixtures

writes ``models-VERSION.pkl.gz``, a dictionary of fitted models, and ``models-VERSION.npz``, their predictions and
decisions.  VERSION is without ".dev0": the models are written again until the version is released.
"""

from __future__ import annotations

import argparse
import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np

import skspo as sk
from skspo.datasets import make_portfolio, make_shortest_path


def models() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Fitted models by name, and the features to predict from by the same names."""
    X, C = make_shortest_path(60, grid=(2, 3), n_features=3, degree=4, noise=0.5, random_state=0)
    P, R = make_portfolio(60, 3, 4, degree=2, random_state=0)
    grid, entropy = sk.ShortestPath.grid(2, 3), sk.EntropySimplex()
    covariance = np.eye(4) + 0.2
    stream = sk.SPOPlusRegressor(grid, random_state=0)
    for half in (slice(30), slice(30, None)):
        stream.partial_fit(X[half], C[half])
    fitted = {
        "interior point": sk.SPOPlusRegressor(grid).fit(X, C),
        "bundle": sk.SPOPlusRegressor(sk.TopK(2), solver="bundle", alpha=0.1).fit(X, C),
        "newton": sk.SPOPlusRegressor(entropy).fit(P, R),
        "surrogate": sk.SPOPlusRegressor(sk.Simplex(sense="max"), surrogate_region=sk.Simplex(sense="max")).fit(P, R),
        "partial": stream,
        "cross-validated": sk.SPOPlusRegressorCV(grid, n_alphas=3, cv=2, tol=1e-4).fit(X, C),
        "polyhedron": sk.SPORegressor(sk.Polyhedron([[1.0, 2.0, 3.0, 1.0]], [2.0]), n_restarts=0).fit(P, R),
        "two stages": sk.TwoStageRegressor(region=sk.Knapsack([3, 4, 5, 2], 7)).fit(P, R),
        "conic": sk.TwoStageRegressor(region=sk.Markowitz(covariance, 0.9)).fit(P, R),
        "network": sk.SPOMLPRegressor(entropy, hidden_layer_sizes=(4,), tol=10.0, random_state=0).fit(P, R),
    }
    on_paths = {"interior point", "bundle", "partial", "cross-validated"}
    return fitted, {name: (X if name in on_paths else P)[:8] for name in fitted}


def main() -> None:
    """Fit, predict and write."""
    parser = argparse.ArgumentParser(description="Write models of the skspo that is imported.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    fitted, features = models()
    arrays = {}
    for name, model in fitted.items():
        arrays |= {
            f"{name}/X": features[name],
            f"{name}/prediction": model.predict(features[name]),
            f"{name}/decision": model.decide(features[name]),
        }
    stem = f"models-{sk.__version__.removesuffix('.dev0')}"
    # The same bytes every time: no name, no date.
    with (folder / f"{stem}.pkl.gz").open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        pickle.dump(fitted, file, protocol=4)
    np.savez_compressed(folder / f"{stem}.npz", **arrays)


if __name__ == "__main__":
    main()
