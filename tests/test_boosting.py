"""Objectives for XGBoost and LightGBM: the gradient, and fits where the packages are installed."""

import numpy as np
import pytest

from skspo import Knapsack, ShortestPath, Simplex, SPOPlusLoss, spo_plus_loss
from skspo.boosting import LightGBMObjective, XGBoostObjective
from skspo.datasets import make_shortest_path

REGION = ShortestPath.grid(3, 3)


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(400, grid=(3, 3), degree=6, noise=0.5, random_state=0)


class Data:
    """The methods of a LightGBM data set that the objective uses."""

    def __init__(self, label, weight=None):
        self.get_label = lambda: label
        self.get_weight = lambda: weight


@pytest.mark.parametrize("region", [Simplex(), Knapsack([2, 3, 4], 6), Simplex(sense="max")])
def test_gradient_is_that_of_the_loss(region):
    rng = np.random.default_rng(0)
    C, F, weight = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)), rng.random(20)
    gradient, hessian = XGBoostObjective(region, scale=3.0)(C, F, weight)
    np.testing.assert_allclose(gradient, 3.0 * weight[:, None] * SPOPlusLoss(region).gradient(C, F))
    np.testing.assert_array_equal(hessian, np.tile(weight[:, None], 3))
    rows = rng.permutation(20)[:7]
    some = LightGBMObjective(region, C, scale=3.0)(F[rows], Data(rows.astype(np.float32), weight[rows]))
    np.testing.assert_allclose(some, (gradient[rows], hessian[rows]))


def test_a_step_against_the_gradient_reduces_the_loss():
    rng = np.random.default_rng(1)
    C, F = rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
    gradient, hessian = XGBoostObjective(Simplex())(C, F)
    assert spo_plus_loss(C, F - 0.05 * gradient / hessian, Simplex()) < spo_plus_loss(C, F, Simplex())


def test_default_scale_makes_steps_proportional_to_costs():
    rng = np.random.default_rng(2)
    C, F = rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
    step, _ = XGBoostObjective(Simplex())(C, F)
    np.testing.assert_allclose(XGBoostObjective(Simplex())(100 * C, 100 * F)[0], 100 * step)


def test_other_costs_get_other_best_decisions():
    rng = np.random.default_rng(3)
    objective = XGBoostObjective(Simplex(), scale=1.0)
    for _ in range(3):
        C, F = rng.normal(size=(10, 3)), rng.normal(size=(10, 3))
        np.testing.assert_allclose(objective(C, F)[0], SPOPlusLoss(Simplex()).gradient(C, F))


def test_xgboost_continues_a_model_of_the_costs(data):
    xgboost = pytest.importorskip("xgboost")
    X, C = data
    options = {"multi_strategy": "multi_output_tree", "tree_method": "hist", "max_depth": 3, "n_jobs": 1}
    first = xgboost.XGBRegressor(n_estimators=40, learning_rate=0.1, **options).fit(X, C)
    objective = XGBoostObjective(REGION)
    model = xgboost.XGBRegressor(objective=objective, n_estimators=20, learning_rate=0.02, **options)
    model.fit(X, C, xgb_model=first.get_booster())
    assert model.get_booster().num_boosted_rounds() == 60
    assert spo_plus_loss(C, model.predict(X), REGION) < 0.95 * spo_plus_loss(C, first.predict(X), REGION)


def test_lightgbm_starts_at_other_predictions(data):
    lightgbm = pytest.importorskip("lightgbm")
    X, C = data
    start = np.tile(C.mean(axis=0), (len(C), 1))
    data_set = lightgbm.Dataset(X, label=np.arange(len(X)), init_score=start)
    parameters = {"objective": LightGBMObjective(REGION, C), "num_class": C.shape[1], "learning_rate": 0.05}
    booster = lightgbm.train({**parameters, "num_leaves": 8, "verbose": -1, "num_threads": 1}, data_set, 30)
    F = start + booster.predict(X, raw_score=True)
    assert spo_plus_loss(C, F, REGION) < 0.8 * spo_plus_loss(C, start, REGION)


def test_bad_input():
    C = np.ones((4, 3))
    with pytest.raises(ValueError, match="scale must be None or a finite number above 0"):
        XGBoostObjective(Simplex(), scale=0.0)
    with pytest.raises(ValueError, match="labels must be the rows of costs, 0 to 3"):
        LightGBMObjective(Simplex(), C)(C, Data(np.array([1.0, 2.0, 3.0, 4.0])))
    with pytest.raises(ValueError, match="set num_class=3"):
        LightGBMObjective(Simplex(), C)(C[:, 0], Data(np.arange(4.0)))
    with pytest.raises(ValueError, match="same shape"):
        XGBoostObjective(Simplex())(C, C[:, :2])
