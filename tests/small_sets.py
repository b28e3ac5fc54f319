"""Small sets of decisions, and oracles and constraints of regions, for tests of all parts."""

import itertools

import cvxpy as cp
import numpy as np


def corners(d):
    """The corners of the unit cube."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=d)))


def packings(weights, capacity):
    """All sets of whole items whose weights fit, within each capacity if there are several."""
    sets = corners(np.shape(weights)[-1])
    return sets[(sets @ np.atleast_2d(weights).T <= np.asarray(capacity) + 1e-12).all(axis=1)]


# At module level, because regions that hold a function are pickled by its name.
def cheapest(C):
    """The alternative of least cost, in every row."""
    return np.eye(C.shape[1])[C.argmin(axis=1)]


def dearest(V):
    """The alternative of largest value, in every row."""
    return np.eye(V.shape[1])[V.argmax(axis=1)]


def capped(w):
    """Weights that sum to one, inside a ball."""
    return [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.7]
