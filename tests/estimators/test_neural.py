"""SPOMLPRegressor: gradients, conventions of MLPRegressor, decisions."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import (
    Box,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    LogBarrierSimplex,
    OracleRegion,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    TwoStageRegressor,
    spo_plus_loss,
)
from skspo._training.inputs import TrainingData
from skspo.datasets import make_cost_sensitive_classification, make_portfolio
from skspo.estimators._mlp import ACTIVATIONS, LOSSES, _Network

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def classes():
    return make_cost_sensitive_classification(120, degree=4, noise=0.5, random_state=0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(), (7,), (6, 5)])
@pytest.mark.parametrize("region", [EntropySimplex(sense="max"), LogBarrierSimplex(), Ellipsoid()], ids=str)
def test_gradients(loss, activation, hidden, region):
    """Against central differences in a random direction of all weights and biases."""
    rng = np.random.RandomState(0)
    X, y, weight = rng.normal(size=(15, 3)), 10 * rng.normal(size=(15, 4)), rng.rand(15)
    model = SPOMLPRegressor(region, loss=loss, hidden_layer_sizes=hidden, activation=activation, alpha=0.3)
    check_gradients(model, TrainingData(X, y, weight, None, {}), rng)


@pytest.mark.parametrize("loss", ["spo+", "squared_error"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("region", [Simplex(sense="max"), Box(-1, 1), Polyhedron(np.ones((1, 4)), [2.0])], ids=repr)
def test_gradients_of_polyhedra(loss, shared, region):
    """The loss is piecewise linear in the predictions; also with an offset and with one network for all costs."""
    rng = np.random.RandomState(0)
    X, y, weight, offset = (
        rng.normal(size=(15, 8)),
        10 * rng.normal(size=(15, 4)),
        rng.rand(15),
        rng.normal(size=(15, 4)),
    )
    model = SPOMLPRegressor(region, loss=loss, hidden_layer_sizes=(6,), activation="tanh", alpha=0.3, shared=shared)
    check_gradients(model, TrainingData(X, y, weight, offset, {}), rng)


def check_gradients(model, data, rng):
    region, rows = model.region, np.arange(2, 12)
    network = _Network(model, region, data, rng, None)

    def value():
        penalty = 0.5 * model.alpha / rows.size * sum(float(np.square(p).sum()) for p in network.params[::2])
        return network.gradients(rows)[0] + penalty

    _, grads = network.gradients(rows)
    directions = [rng.normal(size=p.shape) for p in network.params]
    slope = sum(float((g * v).sum()) for g, v in zip(grads, directions, strict=True))
    start, h = network.copy(), 1e-6
    ends = []
    for sign in (1.0, -1.0):
        network.params = [p + sign * h * v for p, v in zip(start, directions, strict=True)]
        ends.append(value())
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-6)


@pytest.mark.filterwarnings("ignore:No region was given:UserWarning")
@pytest.mark.filterwarnings("ignore:y has one column:UserWarning")
def test_squared_error_learns_what_mlp_regressor_learns():
    """Same architecture, optimizer and number of epochs: the same quality of fit on a smooth function."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])
    params = {"hidden_layer_sizes": (50,), "max_iter": 150, "random_state": 0, "tol": 0.0, "n_iter_no_change": 1000}
    ours = SPOMLPRegressor(loss="squared_error", **params).fit(X, y)
    theirs = MLPRegressor(**params).fit(X, y)
    errors = [np.square(model.predict(X) - y).mean() for model in (ours, theirs)]
    assert errors[0] < 1.3 * errors[1]
    assert len(ours.loss_curve_) == ours.n_iter_ == 150
    assert [coef.shape for coef in ours.coefs_] == [coef.shape for coef in theirs.coefs_]
    assert ours.loss_ == pytest.approx(2 * errors[0], rel=0.2)  # of the sum of both outputs, in the user's units


@pytest.mark.slow
def test_without_hidden_layer_it_comes_near_the_exact_linear_model():
    X, C = make_portfolio(100, n_assets=5, degree=4, noise=0.5, random_state=0)
    region = EntropySimplex()
    exact = SPOPlusRegressor(region).fit(X, C)
    params = {"alpha": 0.0, "learning_rate_init": 0.003, "batch_size": 100, "max_iter": 2000, "n_iter_no_change": 3000}
    model = SPOMLPRegressor(region, hidden_layer_sizes=(), tol=0.0, random_state=0, **params).fit(X, C)
    loss = spo_plus_loss(C, model.predict(X), region)
    assert exact.lower_bound_ <= loss <= 1.02 * exact.objective_


def test_decisions_are_better_than_those_of_a_linear_model():
    X, C = make_portfolio(4000, n_assets=10, degree=8, noise=0.5, random_state=0)
    region = EntropySimplex()
    network = SPOMLPRegressor(region, hidden_layer_sizes=(64,), max_iter=100, random_state=0).fit(X[:2000], C[:2000])
    linear = TwoStageRegressor(region=region).fit(X[:2000], C[:2000])
    assert network.score(X[2000:], C[2000:]) > 0.5 * linear.score(X[2000:], C[2000:])  # scores are negative losses


@pytest.mark.parametrize("region", [EntropySimplex(), LogBarrierSimplex(), Ellipsoid()], ids=str)
def test_spo_loss_falls(region):
    X, C = make_portfolio(200, n_assets=8, degree=4, noise=0.5, random_state=0)
    model = SPOMLPRegressor(region, loss="spo", hidden_layer_sizes=(32,), max_iter=40, random_state=0).fit(X, C)
    assert model.loss_curve_[-1] < 0.8 * model.loss_curve_[0]


@pytest.mark.parametrize("region", [Simplex(), ShortestPath.grid(2, 2), OracleRegion(Simplex().argmin, 4)], ids=str)
def test_spo_loss_needs_a_derivative(region):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"loss='spo' needs .*Use loss='spo\+'.*SPORegressor"):
        SPOMLPRegressor(region, loss="spo").fit(rng.normal(size=(10, 2)), rng.normal(size=(10, 4)))


def test_integer_regions():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(60, 3)), rng.normal(size=(60, 5))
    model = SPOMLPRegressor(Knapsack([3, 4, 5, 2, 1], 7), hidden_layer_sizes=(16,), max_iter=30, random_state=0)
    assert model.fit(X, C).loss_curve_[-1] < model.loss_curve_[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_units_of_costs_do_not_matter(loss):
    X, C = make_portfolio(80, n_assets=5, degree=2, random_state=0)
    model = SPOMLPRegressor(EntropySimplex(), loss=loss, hidden_layer_sizes=(8,), max_iter=5, random_state=0)
    one, other = clone(model).fit(X, C), clone(model).fit(X, 1e6 * C)
    np.testing.assert_allclose(other.predict(X), 1e6 * one.predict(X), rtol=1e-6)
    np.testing.assert_allclose(one.predict(X), clone(model).fit(X, C).predict(X))  # reproducible


def test_sense():
    X, C = make_portfolio(80, n_assets=5, degree=2, random_state=0)
    params = {"hidden_layer_sizes": (8,), "max_iter": 5, "random_state": 0}
    high = SPOMLPRegressor(EntropySimplex(sense="max"), **params).fit(X, C)
    assert (C * high.decide(X)).sum() > (C * EntropySimplex().argmin(high.predict(X))).sum()


def test_early_stopping_keeps_the_best_network(classes):
    X, C = classes
    params = {"early_stopping": True, "validation_fraction": 0.25, "learning_rate_init": 0.03, "random_state": 0}
    model = SPOMLPRegressor(Simplex(), hidden_layer_sizes=(32,), max_iter=200, **params).fit(X, C)
    assert len(model.validation_losses_) == model.n_iter_
    assert model.best_loss_ == min(model.validation_losses_)
    best = int(np.argmin(model.validation_losses_)) + 1
    assert best < model.n_iter_
    stopped = clone(model).set_params(max_iter=best).fit(X, C)  # the same epochs, and no more
    np.testing.assert_allclose(model.predict(X), stopped.predict(X), rtol=1e-9)


def test_partial_fit_warm_start_and_pickle(classes):
    X, C = classes
    model = SPOMLPRegressor(Simplex(), hidden_layer_sizes=(8,), max_iter=3, random_state=0)
    for _ in range(3):
        model = pickle.loads(pickle.dumps(model.partial_fit(X, C)))
    assert model.n_iter_ == 3
    whole = SPOMLPRegressor(Simplex(), hidden_layer_sizes=(8,), max_iter=3, random_state=0).fit(X, C)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)  # one call, one epoch
    more = whole.set_params(warm_start=True, max_iter=30).fit(X, C)
    assert more.n_iter_ > 3
    assert more.loss_ < model.loss_
    with pytest.raises(ValueError, match="3 columns"):
        model.partial_fit(X, C[:, :3])


def test_weights_of_zero_leave_samples_out(classes):
    X, C = classes
    weight = np.ones(len(X))
    weight[60:] = 0.0
    model = SPOMLPRegressor(Simplex(), hidden_layer_sizes=(8,), max_iter=5, batch_size=60, random_state=0)
    np.testing.assert_allclose(
        clone(model).fit(X, C, weight).predict(X), clone(model).fit(X[:60], C[:60]).predict(X), rtol=1e-9
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning")
@pytest.mark.filterwarnings("ignore:No region was given:UserWarning")
def test_pipeline_and_grid_search(classes):
    X, C = classes
    pipe = make_pipeline(StandardScaler(), SPOMLPRegressor(Simplex(), hidden_layer_sizes=(8,), max_iter=3))
    search = GridSearchCV(pipe, {"spomlpregressor__loss": ["spo+", "squared_error"]}, cv=2).fit(X, C)
    assert search.best_estimator_[-1].decide(X).shape == C.shape


def test_unfinished_training_warns(classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning, match="max_iter=2 epochs"):
            SPOMLPRegressor(Simplex(), max_iter=2, random_state=0).fit(*classes)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes must be positive integers"),
        ({"hidden_layer_sizes": (2.5,)}, "hidden_layer_sizes must be positive integers"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"activation": "gelu"}, "activation must be one of"),
        ({"max_iter": 0}, "max_iter must be an integer"),
        ({"batch_size": 0}, "batch_size must be 'auto'"),
        ({"learning_rate_init": 0.0}, "learning_rate_init must be a finite number above 0, got 0.0"),
        ({"alpha": -1.0}, "alpha must be a finite number of at least 0, got -1.0"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a finite number above 0 and below 1, got 1.0"),
    ],
)
def test_bad_parameters(classes, params, message):
    with pytest.raises(ValueError, match=message):
        SPOMLPRegressor(Simplex(), **params).fit(*classes)


def test_a_failed_fit_changes_nothing(classes):
    X, C = classes
    model = SPOMLPRegressor(Simplex(), hidden_layer_sizes=(8,), max_iter=3, warm_start=True, random_state=0).fit(X, C)
    before = pickle.dumps(model.__dict__)
    with pytest.raises(ValueError, match="Training diverged"), np.errstate(all="ignore"):
        model.set_params(learning_rate_init=1e308).fit(X, C)
    model.set_params(learning_rate_init=0.001)
    assert pickle.dumps(model.__dict__) == before
