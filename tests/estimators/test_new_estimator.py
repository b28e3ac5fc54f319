"""The estimator of the tutorial docs/guide/add_an_estimator.md, which shows this file, and recommended tests."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_array

from skspo import Box, ShortestPath, Simplex, decision_report
from skspo._training.inputs import check_training_data, set_fitted
from skspo._utils.params import check_params, number
from skspo.datasets import make_shortest_path
from skspo.estimators._base import DecisionRegressor
from skspo.regions.check import check_region


# [estimator]
class KernelRegressor(DecisionRegressor):
    """Mean of the costs in the training data, where near samples count more.

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions.
    width : float, default=1.0
        Distance at which the weight of a sample is 0.61 of the largest.
    """

    _parameter_checks = {"width": number(above=0.0)}

    def __init__(self, region=None, *, width=1.0):
        self.region = region
        self.width = width

    def fit(self, X, y, sample_weight=None, offset=None, region_params=None):
        """Store the training data."""
        check_params(self)
        data = check_training_data(self, X, y, sample_weight, offset, region_params, reset=True)
        region = check_region(self.region, n_dim=data.C.shape[1])
        view = region.with_rows(region_params, *data.C.shape)  # the region of each sample
        data = data.within(view)  # 0 for costs that no decision can use
        learned = {
            "X_": data.X,
            "C_": data.C if data.offset is None else data.C - data.offset,
            "weight_": np.ones(len(data.C)) if data.weight is None else data.weight,
            "region_": data.learn_bounds(region, view),
        }
        set_fitted(self, learned | data.input_attributes)
        return self

    def _predict_costs(self, X):
        X = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        exponent = -0.5 * (cdist(X, self.X_) / self.width) ** 2
        weight = np.exp(exponent - exponent.max(axis=1, keepdims=True)) * self.weight_
        C_hat = (weight / weight.sum(axis=1, keepdims=True)) @ self.C_
        return C_hat.ravel() if self._y_is_1d else C_hat


# [end of estimator]


# [tests]
@parametrize_with_checks([KernelRegressor(Box(-1, 1))])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_decisions_scores_and_search():
    X, C = make_shortest_path(120, 3, (3, 3), degree=4, noise=0.5, random_state=0)
    model = KernelRegressor(ShortestPath.grid(3, 3), width=0.5)
    search = GridSearchCV(model, {"width": [0.01, 0.5, 100.0]}, cv=3).fit(X, C)
    assert search.best_params_ == {"width": 0.5}
    assert_allclose(
        search.best_estimator_.score(X, C),
        -decision_report(search, X, C).rows["KernelRegressor"]["normalized_spo_loss"],
    )
    with pytest.raises(ValueError, match="width must be a finite number above 0"):
        KernelRegressor(width=0.0).fit(X, C)


def test_weights_offset_names_and_parameters_of_samples():
    X, C = make_shortest_path(60, 3, (3, 3), random_state=0)
    costs, weight = pd.DataFrame(C[:, :3], columns=list("abc")), np.arange(60.0)
    model = KernelRegressor(Simplex()).fit(X, costs, weight)
    repeated = KernelRegressor(Simplex()).fit(
        np.repeat(X, np.arange(60), axis=0), np.repeat(C[:, :3], np.arange(60), axis=0)
    )
    assert_allclose(model.predict(X), repeated.predict(X))
    assert list(model.decide(X, as_frame=True).columns) == list("abc")
    shifted = KernelRegressor(Simplex()).fit(X, costs + 7.0, weight, offset=np.full(3, 7.0))
    assert_allclose(shifted.predict(X, offset=np.full(3, 7.0)), model.predict(X) + 7.0)
    available = np.random.default_rng(0).random((60, 3)) < 0.7
    available[:, 0] = True
    model = KernelRegressor(Simplex()).fit(
        X, np.where(available, C[:, :3], np.nan), region_params={"available": available}
    )
    W = model.decide(X, region_params={"available": available})
    assert_array_equal(W[~available], 0.0)


# [end of tests]
