"""Samples that are held out decide on nothing that is fitted, and there must be some."""

import numpy as np
import pytest

from skspo import Simplex, SPOPlusRegressor, SPOPlusRegressorCV, SPORegressorCV, SPOStackingRegressor, cross_val_decide


@pytest.mark.parametrize("estimator", [SPOPlusRegressorCV, SPORegressorCV, SPOStackingRegressor])
def test_held_out_weights_of_zero_are_refused(estimator):
    """Every candidate would have the same score."""
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(40, 3)), rng.normal(size=(40, 4))
    first, last = np.arange(20), np.arange(20, 40)
    weight = 1.0 * (np.arange(40) < 20)
    with pytest.raises(ValueError, match="sample_weight is zero for every sample that cv holds out"):
        estimator(Simplex(), cv=[(first, last)]).fit(X, C, sample_weight=weight)
    with pytest.raises(ValueError, match="cv holds no sample out"):
        estimator(Simplex(), cv=[(first, last[:0])]).fit(X, C)
    # Decisions for samples without weight are possible.
    W = cross_val_decide(SPOPlusRegressor(Simplex()), X, C, sample_weight=weight, cv=[(first, last)])
    assert np.isfinite(W[last]).all()
