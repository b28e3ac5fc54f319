"""Stochastic subgradients: how close they come, their bound, and streams."""

import warnings

import numpy as np
import pytest
from marks import rest_is_slow
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from solver_problems import PENALTIES

from skspo import OracleRegion, ShortestPath, Simplex, SPOPlusRegressor
from skspo.datasets import make_cost_sensitive_classification, make_shortest_path
from skspo.solvers.sgd import Stream


@pytest.mark.parametrize("penalty", rest_is_slow(PENALTIES, 2, str))
def test_sgd_comes_close_and_its_bound_holds(penalty):
    X, C = make_cost_sensitive_classification(300, degree=2, noise=0.5, random_state=1)
    exact = SPOPlusRegressor(Simplex(), solver="conic", **penalty).fit(X, C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SPOPlusRegressor(Simplex(), solver="sgd", random_state=0, **penalty).fit(X, C)
    # Unpenalized, this problem is badly conditioned: least squares is 330 % off.
    close = 1.001 if penalty else 1.05
    assert exact.objective_ * (1 - 1e-9) <= model.objective_ <= close * exact.objective_
    assert model.lower_bound_ <= exact.objective_ * (1 + 1e-9)
    assert model.duality_gap_ <= (1e-3 if penalty else 0.1)


@pytest.mark.slow
def test_sgd_with_an_oracle_only():
    X, C = make_shortest_path(100, grid=(4, 4), degree=4, noise=0.5, random_state=0)
    grid = ShortestPath.grid(4, 4)
    with pytest.warns(ConvergenceWarning):
        oracle = SPOPlusRegressor(OracleRegion(grid.argmin, 24), solver="sgd", random_state=0).fit(X, C)
    exact = SPOPlusRegressor(grid, solver="interior-point").fit(X, C)
    assert exact.duality_gap_ <= 1e-6
    assert exact.objective_ <= oracle.objective_ <= 1.05 * exact.objective_
    for solver in ("auto", "dual", "bundle"):  # "dual" with a pool of decisions
        model = SPOPlusRegressor(OracleRegion(grid.argmin, 24), solver=solver).fit(X, C)
        assert model.duality_gap_ <= 1e-6
        assert model.objective_ == pytest.approx(exact.objective_, rel=2e-6)
    # Averages of oracle decisions prove a bound also without any knowledge of the set.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ridge = oracle.set_params(alpha=0.1, prior="least_squares").fit(X, C)
    assert 0 < ridge.lower_bound_ < ridge.objective_
    assert ridge.duality_gap_ < 0.5


def test_averages_of_a_stream_are_its_own():
    Theta = np.zeros((2, 2))
    stream = Stream(Theta, 1.0)
    stream.average += 1.0
    stream.Theta += 1.0
    assert_array_equal(Theta, 0.0)
