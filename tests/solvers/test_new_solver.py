"""The solver of the tutorial docs/guide/add_a_solver.md, which shows this file, and the tests that it recommends."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skspo import Box, Simplex, SPOPlusRegressor, SPORegressor, TopK
from skspo.solvers import Solver, Status
from skspo.solvers.base import Progress


# [solver]
class SubgradientSolver(Solver):
    """Plain subgradient method with steps of length 1 / sqrt(k).

    Parameters
    ----------
    tol : float, default=1e-2
        Relative duality gap.
    max_iter : int, default=2000
        Number of steps.
    verbose : int, default=0
    """

    name = "subgradient"

    def __init__(self, *, tol=1e-2, max_iter=2000, verbose=0):
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def solve(self, objective, run, start=None):
        """Minimize from ``start`` or from least squares."""
        Theta = objective.least_squares if start is None else start
        progress = Progress(self.name, objective, run, self.verbose)
        best, lowest = Theta, np.inf
        V, total = np.zeros_like(objective.C), 0.0
        for k in range(1, self.max_iter + 1):
            value, G = objective.value_gradient(Theta, run.memory)
            progress(k, value)
            if value < lowest:
                best, lowest = Theta, value
            length = np.linalg.norm(G)
            if length == 0.0 or progress.late():
                break
            step = 1.0 / (length * np.sqrt(k))
            # Later decisions are better, hence the factor k.
            V += k * step * objective.decisions(Theta, run.memory)
            total += k * step
            Theta = Theta - step * G
        status, message = Status.ITERATION_LIMIT, f"max_iter={self.max_iter} was reached"
        if run.deadline.reached:
            status, message = Status.TIME_LIMIT, run.deadline.message
        candidates = [(best, None)]  # None: the decisions at these coefficients
        if total > 0.0:
            candidates.append((best, V / total))
        return self.finish(objective, run, candidates, k, status, message)


# [end of solver]


# [tests]
def problem(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X @ rng.normal(size=(3, d))) ** 2 + rng.normal(size=(n, d))


@pytest.mark.parametrize("region", [Simplex(), Box(), TopK(2)], ids=repr)
def test_value_and_bound_against_an_exact_solver(region):
    X, C = problem()
    exact = SPOPlusRegressor(region, alpha=0.1).fit(X, C)
    model = SPOPlusRegressor(region, alpha=0.1, solver=SubgradientSolver()).fit(X, C)
    assert model.solver_ == "subgradient"
    assert model.duality_gap_ <= 1e-2
    # Two values and two bounds of the same problem: every bound is below every value.
    assert model.lower_bound_ <= exact.objective_ * (1 + 1e-9)
    assert exact.lower_bound_ <= model.objective_ * (1 + 1e-9)


def test_a_fit_that_ends_early_warns_and_its_bound_holds():
    X, C = problem()
    exact = SPOPlusRegressor(Simplex(), alpha=0.1).fit(X, C)
    model = SPOPlusRegressor(Simplex(), alpha=0.1, solver=SubgradientSolver(tol=1e-6, max_iter=3))
    with pytest.warns(ConvergenceWarning, match="max_iter=3 was reached"):
        model.fit(X, C)
    assert model.n_iter_ == 3 and model.duality_gap_ > 1e-6
    assert model.lower_bound_ <= exact.objective_ * (1 + 1e-9)


def test_parameters_survive_clone():
    model = clone(SPOPlusRegressor(Simplex(), solver=SubgradientSolver(max_iter=7)))
    assert model.get_params()["solver__max_iter"] == 7
    assert repr(model.set_params(solver__max_iter=8).solver) == "SubgradientSolver(max_iter=8)"


def test_only_the_loss_that_it_is_made_for():
    X, C = problem()
    with pytest.raises(ValueError, match=r"solver='subgradient' minimizes the SPO\+ loss"):
        SPORegressor(Simplex(), solver=SubgradientSolver()).fit(X, C)


# [end of tests]


class Boastful(SubgradientSolver):
    """Returns an objective of zero, and a bound above the optimum."""

    def solve(self, objective, run, start=None):
        result = super().solve(objective, run, start)
        return result._replace(objective=0.0, lower_bound=1e3, status=Status.CONVERGED, message="")


def test_claims_are_checked():
    X, C = problem()
    model = SPOPlusRegressor(Simplex(), alpha=0.1, solver=Boastful())
    with pytest.warns(ConvergenceWarning, match="bound of the subgradient solver was wrong"):
        model.fit(X, C)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        honest = SPOPlusRegressor(Simplex(), alpha=0.1, solver=SubgradientSolver()).fit(X, C)
    assert_allclose(model.objective_, honest.objective_)
    assert model.lower_bound_ == 0.0
