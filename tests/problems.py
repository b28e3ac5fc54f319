"""Small training problems with random numbers, for tests of all parts."""

import numpy as np

import skspo as sk
from skspo._training.in_memory import InMemoryObjective


def noisy_data(n=30, p=3, d=4, seed=0):
    """Costs that no linear model fits exactly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X @ rng.normal(size=(d, p)).T) ** 2 + rng.normal(size=(n, d)) + 1.0


def spo_plus_objective(X, C, region=None, weight=None, **params):
    """The SPO+ training problem, by default on the simplex."""
    region = sk.Simplex() if region is None else region
    return InMemoryObjective(sk.SPOPlusLoss(region), X, C, weight, **params)


def items_data(d, n=25, q=3, seed=0, noise=0.4):
    """Costs of items from their own features, one of which is the same for all items of a sample."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d, q)) * [1.0, 3.0, 0.5][:q] + [0.0, 2.0, 1.0][:q]
    if q > 2:
        X[:, :, 2] = rng.normal(size=(n, 1))
    C = np.exp(0.5 * X[:, :, 0]) + X[:, :, 1:].sum(axis=2) + 1.0 + noise * rng.normal(size=(n, d))
    return X.reshape(n, d * q), C - 4.0  # both signs, so that decisions on a box differ
