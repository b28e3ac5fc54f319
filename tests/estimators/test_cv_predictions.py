"""Held-out predictions of the chosen penalty."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import items_data, noisy_data
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
)

from skspo import Box, Knapsack, Simplex, SPOPlusRegressorCV, TopK, spo_loss, spo_plus_loss


def fitted(region, X, C, *, alphas=(1.0, 0.1, 0.01), cv=3, metadata=None, **params):
    model = SPOPlusRegressorCV(region, alphas=list(alphas), cv=cv, store_cv_predictions=True, **params)
    return model.fit(X, C, **(metadata or {}))


@pytest.mark.parametrize("sense", ["min", "max"])
def test_least_squares_gives_cross_val_predict(sense):
    X, C = noisy_data(40)
    model = fitted(Simplex(sense=sense), X, C, alphas=[np.inf], cv=4)
    assert_allclose(model.cv_predictions_, cross_val_predict(LinearRegression(), X, C, cv=4), atol=1e-9)


def test_they_are_stored_only_on_request():
    X, C = noisy_data(40)
    model = fitted(Simplex(), X, C)
    assert model.cv_predictions_.shape == C.shape
    model.set_params(store_cv_predictions=False).fit(X, C)
    assert not hasattr(model, "cv_predictions_")
    with pytest.raises(ValueError, match="store_cv_predictions must be"):
        model.set_params(store_cv_predictions="yes").fit(X, C)


CASES = {
    "plain": (Simplex(), {}),
    "values": (TopK(2, sense="max"), {}),
    "weights": (Simplex(), {"sample_weight": np.arange(40) % 3}),
    "offset": (Simplex(), {"offset": np.random.default_rng(1).normal(size=(40, 4))}),
    "offset of costs": (Simplex(), {"offset": np.arange(4.0)}),
    "region_params": (
        Knapsack(np.ones(4), 2.0),
        {"region_params": {"capacity": np.random.default_rng(1).uniform(0.5, 3.0, size=40)}},
    ),
}


@pytest.mark.parametrize("scoring", ["spo_plus_loss", "spo_loss"])
@pytest.mark.parametrize("case", CASES)
def test_their_loss_is_the_score_of_the_chosen_penalty(case, scoring):
    """All models that hold out a sample are of the chosen penalty, and predictions are in the units of the costs."""
    X, C = noisy_data(40)
    region, metadata = CASES[case]
    model = fitted(region, X, C, metadata=metadata, scoring=scoring)
    metric = {"spo_plus_loss": spo_plus_loss, "spo_loss": spo_loss}[scoring]
    own = {name: value for name, value in metadata.items() if name != "offset"}
    loss = metric(C, model.cv_predictions_, region, **own)
    assert loss == pytest.approx(-model.cv_results_["mean_test_score"].max(), rel=1e-9)


def test_shared_models():
    X, C = items_data(4, n=30)
    model = fitted(Simplex(), X, C, shared=True)
    assert model.cv_predictions_.shape == (30, 4)
    loss = spo_plus_loss(C, model.cv_predictions_, Simplex())
    assert loss == pytest.approx(-model.cv_results_["mean_test_score"].max(), rel=1e-9)


def test_one_dimensional_costs():
    X, C = noisy_data(40)
    y = C[:, 0] - np.median(C[:, 0])
    model = fitted(Box(-1.0, 1.0), X, y, alphas=[np.inf], cv=4)
    assert model.cv_predictions_.shape == model.predict(X).shape == (40,)
    assert_allclose(model.cv_predictions_, cross_val_predict(LinearRegression(), X, y, cv=4), atol=1e-9)


def test_sparse_features():
    X, C = noisy_data(40)
    X[np.abs(X) < 0.5] = 0.0
    assert_allclose(
        fitted(Simplex(), sp.csr_array(X), C, alphas=[np.inf]).cv_predictions_,
        cross_val_predict(LinearRegression(), X, C, cv=3),
        atol=1e-9,
    )


SPLITTERS = {
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "random": ShuffleSplit(3, test_size=0.3, random_state=0),
    "time series": TimeSeriesSplit(3),
    "groups": list(GroupKFold(3).split(np.zeros((40, 1)), groups=np.arange(40) % 7)),
    "lists": [(list(range(30)), [31, 35]), (list(range(10, 40)), [])],
}


@pytest.mark.parametrize("name", SPLITTERS)
def test_samples_that_are_held_out_never_or_several_times(name):
    X, C = noisy_data(40)
    cv, offset = SPLITTERS[name], np.random.default_rng(1).normal(size=C.shape)
    model = fitted(Simplex(), X, C, alphas=[np.inf], cv=cv, metadata={"offset": offset})
    expected = np.full((40, 40, 4), np.nan)
    for k, (train, test) in enumerate(cv if isinstance(cv, list) else cv.split(X)):
        least_squares = LinearRegression().fit(X[train], (C - offset)[train])
        for i in test:
            expected[k, i] = least_squares.predict(X[i : i + 1]) + offset[i]
    held_out = ~np.isnan(expected).all(axis=(0, 2))
    assert_array_equal(np.isnan(model.cv_predictions_).any(axis=1), ~held_out)
    assert_allclose(model.cv_predictions_[held_out], np.nanmean(expected[:, held_out], axis=0), atol=1e-9)


def test_jobs_change_no_prediction():
    X, C = noisy_data(40)
    one, two = (fitted(Simplex(), X, C, n_jobs=jobs).cv_predictions_ for jobs in (1, 2))
    assert_allclose(one, two, rtol=1e-9)
