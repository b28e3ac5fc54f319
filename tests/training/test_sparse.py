"""Sparse features: the same models as with dense ones, without making them dense."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal

import skspo as sk
from skspo._training import sparse
from skspo._training.in_memory import InMemoryObjective, merge_rows


@pytest.fixture
def stay_sparse(monkeypatch):
    monkeypatch.setattr(sparse, "BLOCK_ELEMENTS", 0)


def one_hot(n=300, levels=(6, 4), d=4, seed=0):
    """Two categorical features and a number that is zero now and then."""
    rng = np.random.default_rng(seed)
    codes = [np.eye(k)[rng.integers(0, k, n)] for k in levels]
    number = np.where(rng.uniform(size=n) < 0.3, 0.0, rng.normal(2.0, 3.0, size=n))
    X = np.column_stack([*codes, number])
    C = (X @ rng.normal(size=(X.shape[1], d))) ** 2 + rng.normal(size=(n, d))
    return X, C


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array])
@pytest.mark.parametrize("params", [{"alpha": 0.1}, {"alpha": 0.1, "prior": "least_squares"}, {"fit_intercept": False}])
def test_the_same_objective_as_with_dense_features(form, params, stay_sparse):
    X, C = one_hot()
    weight = np.random.default_rng(1).uniform(0.0, 2.0, size=len(X))
    loss = sk.SPOPlusLoss(sk.Simplex())
    dense = InMemoryObjective(loss, X, C, weight, **params)
    found = InMemoryObjective(loss, sparse.as_csr(form(X)), C, weight, **params)
    assert sp.issparse(found.design.Z)
    rng = np.random.default_rng(2)
    B, b = rng.normal(size=(C.shape[1], X.shape[1])), rng.normal(size=C.shape[1])
    b = b if params.get("fit_intercept", True) else 0.0 * b
    Theta, other = dense.from_user(B, b), found.from_user(B, b)
    assert found.value(other) == pytest.approx(dense.value(Theta), rel=1e-9)
    for a, c in zip(found.to_user(other), (B, b), strict=True):
        assert_allclose(a - a.mean(axis=0), c - c.mean(axis=0), atol=1e-9)  # what decisions can see
    # Least squares is the smallest of all solutions.
    for a, c in zip(found.least_squares_to_user(), dense.least_squares_to_user(), strict=True):
        assert_allclose(a, c, atol=1e-6)
    assert_allclose(
        found.design.gram(np.ones(found.n_samples)),
        (found.design.Z.toarray() * found.weight[:, None]).T @ found.design.Z.toarray(),
    )


@pytest.mark.parametrize("region", [sk.Simplex(), sk.EntropySimplex()], ids=repr)
@pytest.mark.parametrize("solver", ["auto", "bundle", "sgd"])
def test_the_same_fit_as_with_dense_features(region, solver, stay_sparse):
    X, C = one_hot()
    params = {"alpha": 0.05, "solver": solver, "random_state": 0, "tol": 1e-6 if solver != "sgd" else 1e-2}
    dense = sk.SPOPlusRegressor(region, alpha=0.05).fit(X, C)
    model = sk.SPOPlusRegressor(region, **params).fit(sp.csr_array(X), C)
    assert model.duality_gap_ <= params["tol"]
    assert dense.lower_bound_ <= model.objective_ * (1 + 1e-9)
    assert model.lower_bound_ <= dense.objective_ * (1 + 1e-9)
    for form in (sp.csr_array, sp.csc_array, np.asarray):
        assert_allclose(model.predict(form(X)), model.predict(X), rtol=1e-10)
        assert_allclose(model.decide(form(X)), model.decide(X), atol=1e-9)
        assert model.score(form(X), C) == pytest.approx(model.score(X, C), rel=1e-10)


def test_path_and_cross_validation(stay_sparse):
    X, C = one_hot()
    params = {"prior": "zero", "alphas": [1.0, 0.1, 0.01]}
    dense, found = (sk.spo_plus_path(features, C, sk.Simplex(), **params) for features in (X, sp.csr_array(X)))
    assert_allclose(found[3], dense[3], rtol=3e-6)  # objectives, to gaps of 1e-6
    assert max(found[4].max(), dense[4].max()) <= 1e-6
    params |= {"cv_tol": 1e-6, "cv": 2}
    dense, model = (sk.SPOPlusRegressorCV(sk.Simplex(), **params).fit(features, C) for features in (X, sp.csr_array(X)))
    assert model.alpha_ == dense.alpha_
    assert_allclose(
        model.cv_results_["mean_test_spo_plus_loss"], dense.cv_results_["mean_test_spo_plus_loss"], rtol=1e-3
    )


def test_equal_rows_are_merged_and_sorted():
    X, C = one_hot(20)
    rng = np.random.default_rng(3)
    repeats = rng.integers(0, 4, size=20)
    order = rng.permutation(repeats.sum())
    many_X, many_C = (
        sparse.as_csr(sp.csr_array(np.repeat(X, repeats, axis=0)[order])),
        np.repeat(C, repeats, axis=0)[order],
    )
    few_X = sparse.as_csr(sp.csr_array(X))
    many, many_weight = merge_rows(None, many_X, many_C)
    few, few_weight = merge_rows(repeats.astype(float), few_X, C)
    assert_array_equal(many_X[many].toarray(), few_X[few].toarray())
    assert_array_equal(many_C[many], C[few])
    assert_array_equal(many_weight, few_weight)
    # Stored zeros and unsorted entries are the same rows.
    stored = sp.csr_array((np.array([0.0, 1.0, 2.0]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3))
    assert sparse.as_csr(stored).indices.tolist() == [0, 1]


def test_small_features_are_made_dense_and_large_ones_refused_where_they_would_have_to_be(monkeypatch, stay_sparse):
    X, C = one_hot(40)
    with pytest.raises(ValueError, match=r"solver='interior-point' needs dense features.*'bundle'"):
        sk.SPOPlusRegressor(sk.Simplex(), solver="interior-point").fit(sp.csr_array(X), C)
    for model in (sk.SPORegressor(sk.Simplex()), sk.SPOPlusRegressor(sk.Simplex(), shared=True)):
        features = X[:, :4] if isinstance(model, sk.SPOPlusRegressor) else X
        with pytest.raises(ValueError, match=r"X is sparse.*GB"), sklearn.config_context(working_memory=1e-4):
            model.fit(sp.csr_array(features), C)
    monkeypatch.setattr(sparse, "BLOCK_ELEMENTS", 10**6)
    model = sk.SPOPlusRegressor(sk.Simplex(), solver="interior-point").fit(sp.csr_array(X), C)
    assert model.duality_gap_ <= 1e-6


def test_nearly_constant_columns_are_judged_as_if_they_were_dense():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(50, 1e6), 1e6 + 1e-3 * rng.normal(size=50), rng.normal(size=50)])
    C = rng.normal(size=(50, 3))
    loss = sk.SPOPlusLoss(sk.Simplex())
    dense = InMemoryObjective(loss, X, C)
    found = InMemoryObjective(loss, sparse.as_csr(sp.csr_array(X)), C)
    assert_array_equal(found.design.used, dense.design.used)
    assert found.design.used.tolist() == [False, True, True]
    assert_allclose(found.design.scale, dense.design.scale, rtol=1e-6)
