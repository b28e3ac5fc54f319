"""Data and regions of the tests in which CVXPY, HiGHS and Clarabel fail."""

import cvxpy as cp
import numpy as np

from skspo import Knapsack, MixedInteger, Polyhedron, ShortestPath


class PanicException(BaseException):
    """The error of pyo3 for a panic in Rust, which is not an Exception."""


D = 4


def data(n=14, p=2, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=(p, d)) + rng.normal(size=(n, d)) + 1.0


def ball(w):
    return [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.8]


A_ub, b_ub = np.array([[1.0, 2.0, 1.0, 3.0], [2.0, 1.0, 4.0, 1.0]]), np.array([4.0, 5.0])
LINEAR = {
    "polyhedron": lambda: Polyhedron(A_ub, b_ub, bounds=(0, 2)),
    "equalities": lambda: Polyhedron(A_eq=[[1, 1, 1, 1]], b_eq=[2.0], bounds=(0, None)),
    "cycle": lambda: ShortestPath([(0, 1), (1, 0), (1, 2), (0, 2)], 0, 2),
    "integers": lambda: MixedInteger(A_ub, b_ub, bounds=(0, 2), integrality=1),
    "some integers": lambda: MixedInteger(A_ub, b_ub, bounds=(0, 2), integrality=[1, 0, 1, 0]),
    "two knapsacks": lambda: Knapsack(np.pi * A_ub, np.e * b_ub),
}
