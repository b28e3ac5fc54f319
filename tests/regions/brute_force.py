"""Truths by enumeration, and random problems, for the tests of regions."""

import itertools

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

seeds = st.integers(0, 2**32 - 1)


quick = settings(max_examples=15, deadline=None)


def all_permutations(n):
    return np.array([np.eye(n)[list(p)].ravel() for p in itertools.permutations(range(n))])


def assert_best(W, C, points):
    """W minimizes C over the points and is one of them."""
    assert_allclose((W * C).sum(axis=1), (C @ points.T).min(axis=1), rtol=1e-9, atol=1e-9)
    assert (np.abs(W[:, None, :] - points).max(axis=2).min(axis=1) < 1e-8).all()


def assert_worst(W, C, C_true, points):
    """W is optimal for C, and no optimal point costs more under C_true."""
    costs = C @ points.T
    tied = costs <= costs.min(axis=1, keepdims=True) + 1e-9
    assert_allclose((W * C).sum(axis=1), costs.min(axis=1), atol=1e-8)
    assert_allclose((W * C_true).sum(axis=1), np.where(tied, C_true @ points.T, -np.inf).max(axis=1), atol=1e-7)


def random_polytope(rng, d=4, m=3):
    A_ub, inside = rng.normal(size=(m, d)), rng.random(d)
    A_eq = rng.normal(size=(1, d))
    return {
        "A_ub": A_ub, "b_ub": A_ub @ inside + rng.random(m), "A_eq": A_eq, "b_eq": A_eq @ inside,
        "bounds": [(0, 2)] * (d - 1) + [(-1, 3)],
    }  # fmt: skip
