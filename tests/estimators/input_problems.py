"""Data for tests of wrong input, and helpers that change them."""

import numpy as np
import pandas as pd

from skspo import Simplex, SPOPlusRegressor

rng = np.random.default_rng(0)
X, C = rng.normal(size=(20, 3)), rng.normal(size=(20, 4))
ONES = np.ones(20)


def put(array, value):
    """A copy with one entry replaced."""
    array = array.copy()
    array.flat[5] = value
    return array


def names(columns):
    """The features as a data frame."""
    return pd.DataFrame(X, columns=list(columns))


def fit(X=X, y=C, sample_weight=None, **params):
    return SPOPlusRegressor(**({"region": Simplex()} | params)).fit(X, y, sample_weight)


def box_constraints(w):
    return [w >= 0, w <= 1]
