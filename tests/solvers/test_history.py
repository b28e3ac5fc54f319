"""The history of a fit: the progress of solvers, in units of cost, of bounded length."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skspo import EntropySimplex, ShortestPath, SPOPlusLoss, SPOPlusRegressor, SPOPlusRegressorCV, SPORegressor
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo.datasets import make_portfolio, make_shortest_path
from skspo.regions.check import check_region
from skspo.solvers import base

COLUMNS = ["time", "n_iter", "objective", "lower_bound", "duality_gap", "step"]


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(100, grid=(3, 3), degree=6, noise=0.5, random_state=0)


@pytest.mark.parametrize("solver", ["interior-point", "bundle", "dual", "conic", "sgd"])
def test_history_ends_with_the_result(data, solver):
    X, C = data
    model = SPOPlusRegressor(ShortestPath.grid(3, 3), solver=solver, alpha=0.1, max_iter=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # In units that make a wrong scale visible.
        model.fit(X, 1000.0 * C)
    history = model.history_
    assert list(history) == COLUMNS
    assert len({len(column) for column in history.values()}) == 1
    assert history["objective"][-1] == pytest.approx(model.objective_)
    assert history["lower_bound"][-1] == pytest.approx(model.lower_bound_)
    assert history["duality_gap"][-1] == pytest.approx(model.duality_gap_, abs=1e-12)
    assert (np.diff(history["time"]) >= 0).all() and history["time"][0] >= 0


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_descent_has_no_bound_on_its_way(solver):
    X, C = make_portfolio(50, 3, 5, degree=4, random_state=0)
    history = SPOPlusRegressor(EntropySimplex(), solver=solver).fit(X, C).history_
    assert np.isnan(history["lower_bound"][:-1]).all() and np.isfinite(history["lower_bound"][-1])
    assert np.isnan(history["duality_gap"][:-1]).all()


def test_a_second_solver_goes_on_where_the_first_stopped(data, capsys):
    X, C = data
    model = SPOPlusRegressor(ShortestPath.grid(3, 3), max_iter=2, verbose=2)  # interior point gives up, conic follows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, C)
    assert "conic: iteration" in capsys.readouterr().err  # the better of the two
    assert len(model.history_["time"]) >= 4
    assert (np.diff(model.history_["time"]) >= 0).all()
    assert (np.diff(model.history_["n_iter"]) >= 0).all()


def test_each_penalty_has_its_own_history(data):
    X, C = data
    model = SPOPlusRegressorCV(ShortestPath.grid(3, 3), alphas=[1.0, 0.1, 0.01], cv=2, solver="interior-point")
    alone = clone(model.fit(X, C)).set_params(alphas=[model.alpha_]).fit(X, C)
    np.testing.assert_array_equal(model.history_["n_iter"], alone.history_["n_iter"])
    assert model.history_["objective"][-1] == pytest.approx(model.objective_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_history_stays_short(data, monkeypatch):
    X, C = data
    monkeypatch.setattr(base, "HISTORY", 16)
    model = SPORegressor(ShortestPath.grid(3, 3), max_iter=300, random_state=0).fit(X, C)
    assert model.n_iter_ > 200
    assert 8 <= len(model.history_["time"]) <= 17
    # Thinned, not cut off: it still spans the run.
    n_iter = model.history_["n_iter"]
    assert np.diff(n_iter, prepend=0).max() < 0.2 * n_iter[-1]


def test_partial_fit_has_no_history(data):
    X, C = data
    assert len(SPOPlusRegressor(ShortestPath.grid(3, 3)).partial_fit(X, C).history_["time"]) == 0


def test_what_is_noted_of_each_solver(data, monkeypatch):
    X, C = data
    region = check_region(ShortestPath.grid(3, 3), C.shape[1])
    objective = InMemoryObjective(SPOPlusLoss(region), X, C)
    run = Run()
    first = base.Progress("first", objective, run, 0)
    first(3, 2.0, 1.0)
    second = base.Progress("second", objective, run, 0)
    second(1, 1.5, 1.0)
    assert [row[1] for row in run.history] == [3, 4]  # the count continues
    assert run.with_deadline(run.deadline).history == []
    monkeypatch.setattr(base, "HISTORY", 16)
    for n_iter in range(2, 100):
        second(n_iter, 1.0, 1.0)
    assert len(run.history) <= 17
    assert run.history[0][1] == 3  # the first one stays
