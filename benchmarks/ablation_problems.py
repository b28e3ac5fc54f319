"""Problems of ``ablation.py``: families of regions, with sizes and data drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import skspo as sk
from skspo import datasets

Rng = np.random.Generator
#: region, features, costs, and arguments of ``fit``
Data = tuple[Any, Any, np.ndarray, dict[str, Any]]


def features(rng: Rng, n: int, p: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Costs are powers of linear functions of the features, with noise; the power is drawn, too."""
    X, k = rng.normal(size=(n, p)), min(p, 20)
    mean = X[:, :k] @ rng.normal(size=(k, d)) / np.sqrt(k) + 1.0
    return X, np.sign(mean) * np.abs(mean) ** rng.integers(1, 4) + rng.uniform(0.1, 1.0) * rng.normal(size=(n, d))


def of(make: Callable[[int, Rng], Any]) -> Callable[[Rng, int, int, int], Data]:
    """Family of regions, given the number of costs."""

    def problem(rng: Rng, n: int, p: int, d: int) -> Data:
        region = make(d, rng)
        return region, *features(rng, n, p, getattr(region, "n_dim", None) or d), {}

    return problem


def paths(rng: Rng, n: int, p: int, d: int) -> Data:
    """Grid with sides of ``d`` nodes."""
    X, C = datasets.make_shortest_path(
        n, p, (d, d), degree=int(rng.integers(1, 7)), noise=0.5, random_state=int(rng.integers(2**31))
    )
    return sk.ShortestPath.grid(d, d), X, C, {}


def streets(rng: Rng, n: int, p: int, d: int) -> Data:
    """Grid with streets in both directions, source and target by row."""
    nodes = [(i, j) for i in range(d) for j in range(d)]
    pairs = [((i, j), (i + a, j + b)) for i, j in nodes for a, b in ((1, 0), (0, 1)) if i + a < d and j + b < d]
    edges = [
        edge for u, v in pairs for edge in ((u[0] * d + u[1], v[0] * d + v[1]), (v[0] * d + v[1], u[0] * d + u[1]))
    ]
    X, C = features(rng, n, p, len(edges))
    ends = np.array([rng.choice(d * d, size=2, replace=False) for _ in range(n)])
    params = {"source": ends[:, 0], "target": ends[:, 1]}
    return sk.ShortestPath(edges, 0, d * d - 1), X, np.abs(C) + 0.1, {"region_params": params}


def knapsack(d: int, rng: Rng, resources: int = 1, integer: bool = True, whole: bool = True) -> Any:
    weights = rng.integers(3, 9, size=(resources, d)) + (0.0 if whole else rng.uniform(size=(resources, d)))
    return sk.Knapsack(weights, np.floor(0.3 * weights.sum(axis=1)), integer=integer)


def markowitz(d: int, rng: Rng) -> Any:
    factors = rng.normal(size=(d, 5))
    covariance = factors @ factors.T / 5 + 0.5 * np.eye(d)
    return sk.Markowitz(covariance, float(rng.uniform(1.2, 3.0) / np.linalg.inv(covariance).sum()))


def polyhedron(d: int, rng: Rng) -> Any:
    A = rng.uniform(size=(max(d // 3, 2), d))
    return sk.Polyhedron(A, 0.3 * A.sum(axis=1), bounds=(0, 1))


def mixed_integer(d: int, rng: Rng) -> Any:
    A = rng.uniform(size=(3, d))
    return sk.MixedInteger(A, 0.4 * A.sum(axis=1), bounds=(0, 1), sense="max")


def sets(d: int, rng: Rng) -> Any:
    V = np.unique((rng.uniform(size=(60 * d, d)) < 0.3).astype(float), axis=0)
    return sk.OracleRegion(lambda C: V[np.argmin(C @ V.T, axis=1)], n_dim=d)


def cvxpy(d: int, rng: Rng) -> Any:
    import cvxpy as cp

    return sk.CvxpyRegion(lambda w: [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.8], n_dim=d)


def repeated(rng: Rng, n: int, p: int, d: int) -> Data:
    """Each row ten times, on average."""
    X, C = features(rng, max(n // 10, 20), p, d)
    rows = rng.integers(len(X), size=n)
    return sk.Simplex(), X[rows], C[rows], {}


def decaying(rng: Rng, n: int, p: int, d: int) -> Data:
    """Weights that halve every thirtieth of the rows."""
    region, X, C, _ = paths(rng, n, p, d)
    return region, X, C, {"sample_weight": 0.5 ** (np.arange(n) / (n / 30.0))}


def one_hot(rng: Rng, n: int, p: int, d: int) -> Data:
    columns = np.column_stack([rng.choice(group, size=n) for group in np.array_split(np.arange(p), 5)])
    X = sp.csr_array((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 5)), shape=(n, p))
    return sk.Simplex(), X, X @ rng.normal(size=(p, d)) + rng.normal(size=(n, d)), {}


FAMILIES: dict[str, Callable[[Rng, int, int, int], Data]] = {
    "paths": paths,
    "streets": streets,
    "repeated rows": repeated,
    "decaying weights": decaying,
    "one-hot": one_hot,
    "simplex": of(lambda d, rng: sk.Simplex()),
    "top": of(lambda d, rng: sk.TopK(max(d // 5, 2))),
    "box": of(lambda d, rng: sk.Box(-1.0, rng.uniform(0.5, 2.0, size=d))),
    "fractional": of(lambda d, rng: knapsack(d, rng, integer=False)),
    "packing": of(lambda d, rng: knapsack(d, rng)),
    "two resources": of(lambda d, rng: knapsack(d, rng, 2, whole=False)),
    "mixed integer": of(mixed_integer),
    "assignment": of(lambda d, rng: sk.Assignment(d)),
    "polyhedron": of(polyhedron),
    "markowitz": of(markowitz),
    "entropy": of(lambda d, rng: sk.EntropySimplex()),
    "log barrier": of(lambda d, rng: sk.LogBarrierSimplex()),
    "lq ball": of(lambda d, rng: sk.LqBall(float(rng.uniform(1.1, 2.0)))),
    "ellipsoid": of(lambda d, rng: sk.Ellipsoid(np.diag(rng.uniform(0.5, 4.0, size=d)))),
    "sets": of(sets),
    "cvxpy": of(cvxpy),
    "product": of(lambda d, rng: sk.Product([sk.Simplex()] * 4, sizes=[d] * 4)),
}
