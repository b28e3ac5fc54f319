"""Parameters that change after a region was used: the next decision uses the new value, or there is an error."""

import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.base import clone

from skspo import CvxpyRegion, LinearImage, SPOPlusRegressor

D = 4
CAPACITY = cp.Parameter(name="capacity", value=1.0)


def knapsack(w):
    return [w >= 0, w <= 1, cp.sum(w) <= CAPACITY]


def with_rows(A, b):
    return CvxpyRegion(lambda w: [w >= 0, w <= 2, A @ w <= b], n_dim=D)


def highs(C, A, b):
    return np.array([linprog(c, A_ub=A, b_ub=b, bounds=(0, 2)).fun for c in C])


def test_cvxpy_parameter_with_a_new_value():
    rng = np.random.default_rng(0)
    A, b = cp.Parameter((3, D), name="A"), cp.Parameter(3, name="b")
    region, C = with_rows(A, b), rng.normal(size=(6, D))
    for _ in range(3):
        A.value, b.value = rng.uniform(0.2, 2.0, size=(3, D)), rng.uniform(0.5, 3.0, size=3)
        W = region.argmin(C)
        assert (W @ A.value.T <= b.value + 1e-6).all()
        np.testing.assert_allclose(np.einsum("ij,ij->i", C, W), highs(C, A.value, b.value), atol=1e-6)
        high = region.bounding_box()[1]
        np.testing.assert_allclose(high, -highs(-np.eye(D), A.value, b.value), atol=1e-6)
    b.value[:] = 0.1  # in place: the parameter is the same object
    assert (region.argmin(C) @ A.value.T <= 0.1 + 1e-6).all()


def test_unchanged_parameters_compile_once():
    CAPACITY.value, calls = 1.0, []
    region = CvxpyRegion(lambda w: calls.append(w) or knapsack(w), D)
    for _ in range(3):
        region.argmin(-np.arange(1.0, D + 1))
    assert len(calls) == 1


def test_cvxpy_parameter_without_a_value():
    budget = cp.Parameter(2, name="budget")
    region = CvxpyRegion(lambda w: [w >= 0, cp.sum(w) <= cp.sum(budget)], 3)
    with pytest.raises(ValueError, match=r"'budget' of shape \(2,\) in the constraints has no value. Set its .value"):
        region.argmin([1.0, 2.0, 3.0])
    budget.value = [1.0, 1.0]
    assert region.argmin([-1.0, 0.0, 1.0]).sum() == pytest.approx(2.0)
    budget.value = None
    with pytest.raises(ValueError, match=r"'budget'.*has no value"):
        region.argmin([1.0, 2.0, 3.0])


def test_products_of_parameters_are_numbers():
    p, q = cp.Parameter(value=2.0), cp.Parameter(value=1.0)
    region = CvxpyRegion(lambda w: [w >= 0, w <= 1, p * q * cp.sum(w) <= 2], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert region.argmin([-3.0, -2.0, -1.0]).sum() == pytest.approx(1.0)
        q.value = 0.5
        assert region.argmin([-3.0, -2.0, -1.0]).sum() == pytest.approx(2.0)


def test_models_images_clones_and_pickles_use_the_new_value():
    rng = np.random.default_rng(0)
    CAPACITY.value = 1.0
    region = CvxpyRegion(knapsack, D, sense="max")
    X = rng.normal(size=(20, 2))
    model = SPOPlusRegressor(region, alpha=0.1, tol=1e-2).fit(X, 1.0 + rng.uniform(size=(20, D)))
    image = LinearImage(region, np.ones((1, D)))
    assert image.argmin([1.0])[0] == pytest.approx(1.0)
    copies = [region, clone(region), pickle.loads(pickle.dumps(region))]
    CAPACITY.value = 3.0
    np.testing.assert_allclose(model.decide(X).sum(axis=1), 3.0, atol=1e-6)
    np.testing.assert_allclose(image.argmin([1.0]), 3.0, atol=1e-6)
    for copy in copies:
        np.testing.assert_allclose(copy.argmin(np.ones(D)).sum(), 3.0, atol=1e-6)
