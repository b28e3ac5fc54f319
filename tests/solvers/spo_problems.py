"""Regions and data for the tests of the SPO loss."""

import numpy as np

from skspo import (
    Assignment,
    Box,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    L1Ball,
    LogBarrierSimplex,
    LqBall,
    Polyhedron,
    ShortestPath,
    Simplex,
    TopK,
)

_A = np.random.default_rng(0).normal(size=(5, 5))
Q = _A @ _A.T + np.eye(5)
SMOOTH = [
    EntropySimplex(),
    EntropySimplex(-0.8),
    LogBarrierSimplex(),
    LogBarrierSimplex(20.0),
    Ellipsoid(Q, np.arange(5.0), 2.0),
    Ellipsoid(),
    LqBall(),
    LqBall(1.5, 3.0),
]
FINITE = [
    (Simplex(), 5),
    (Box(-1, 1), 4),
    (TopK(2), 5),
    (L1Ball(), 4),
    (ShortestPath.grid(3, 3), 12),
    (Assignment(3), 9),
    (Knapsack([3, 4, 5, 2, 1], 7), 5),
    (Knapsack([1, 2, 3, 4], 5, integer=False), 4),
    (Polyhedron([[1, 2, 3]], [4], bounds=(0, 1)), 3),
]


def random_data(d, n=30, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, rng.normal(size=(n, d)) + X @ rng.normal(size=(p, d))
