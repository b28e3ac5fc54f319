"""Images of regions, and costs for them."""

import numpy as np

import skspo as sk

WEIGHTS, ROOM = [3, 4, 5, 2], 8
MIX = np.array([[1.0, 2.0, 0.0, -1.0], [0.0, 1.0, 3.0, 0.5]])
FEES = np.array([0.5, -1.0, 0.3, 2.0])


def known_image(sense="min", integer=True):
    return sk.LinearImage(sk.Knapsack(WEIGHTS, ROOM, integer=integer, sense=sense), MIX, FEES)


def small_data(d, n=25):
    """Costs of both signs, with so much noise that no model has a loss of zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, X @ rng.normal(size=(2, d)) + 2.0 * rng.normal(size=(n, d))


def random_costs(d, n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


SQUARE = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 0.0], [1.0, 0.0, -1.0]])


SMOOTH = {
    "tall": sk.LinearImage(sk.Ellipsoid(radius=2), np.vstack([SQUARE, [[1, 1, 1]]])),
    "square": sk.LinearImage(sk.EntropySimplex(-0.7), SQUARE),
    "markowitz": sk.LinearImage(sk.Markowitz(np.diag([1.0, 2.0, 3.0]), 0.9), SQUARE),
}
