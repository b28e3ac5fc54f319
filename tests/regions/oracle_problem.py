"""A small training problem, and its correct oracle, for the tests of ``OracleRegion``."""

import warnings
from contextlib import contextmanager

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skspo.datasets import make_cost_sensitive_classification

X, C = make_cost_sensitive_classification(40, 3, 4, degree=2, noise=0.5, random_state=0)


def cheapest(C):
    return np.eye(C.shape[1])[C.argmin(axis=1)]


@contextmanager
def only_the_region_warns():
    """One warning, that of the region, in what is called here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    (told,) = caught
    assert "OracleRegion: the oracle" in str(told.message) and not issubclass(told.category, ConvergenceWarning)
