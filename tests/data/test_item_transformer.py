"""``ItemTransformer``: the transformer sees one row per item."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from skspo import ItemTransformer, Simplex, SPOPlusRegressor

RNG = np.random.default_rng(0)
X, C = RNG.normal(size=(30, 6)), RNG.normal(size=(30, 3))


def test_rows_of_items():
    Z = ItemTransformer(StandardScaler()).fit_transform(X, C)
    assert_allclose(Z.reshape(90, 2), StandardScaler().fit_transform(X.reshape(90, 2)))
    transformer = ItemTransformer(PolynomialFeatures(2, include_bias=False)).fit(X, C)
    assert transformer.n_items_ == 3 and transformer.transform(X[:4]).shape == (4, 15)
    # New data may have any number of rows; they are transformed with what was learned.
    assert_allclose(transformer.transform(X[:1]), transformer.transform(X)[:1])


def test_one_cost_and_sparse_output():
    codes = RNG.integers(0, 3, size=(30, 2)).astype(float)
    Z = ItemTransformer(OneHotEncoder()).fit_transform(codes, C[:, 0])
    assert isinstance(Z, np.ndarray) and Z.shape == (30, 6)
    assert_allclose(Z.sum(axis=1), 2.0)


def test_in_a_pipeline():
    model = make_pipeline(
        ItemTransformer(PolynomialFeatures(2, include_bias=False)), SPOPlusRegressor(Simplex(), shared=True, alpha=0.1)
    )
    assert model.fit(X, C)[-1].coef_.shape == (5,)
    assert clone(model).get_params()["itemtransformer__transformer__degree"] == 2


def test_bad_input():
    with pytest.raises(ValueError, match="X has 6 columns and y has 4"):
        ItemTransformer(StandardScaler()).fit(X, np.zeros((30, 4)))
    with pytest.raises(ValueError, match="requires y"):
        ItemTransformer(StandardScaler()).fit(X, None)
    with pytest.raises(ValueError, match="5 features"):
        ItemTransformer(StandardScaler()).fit(X, C).transform(X[:, :5])
