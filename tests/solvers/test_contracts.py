"""The contract of solvers: why they stopped, what they need, and typed errors."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import skspo as sk
import skspo.solvers
from skspo._training.in_memory import InMemoryObjective
from skspo._training.objective import GAP_FLOOR
from skspo._training.run import Run
from skspo.datasets import make_portfolio
from skspo.solvers import SOLVERS, Result, Solver, Status, check_solver_serves
from skspo.solvers.backend_process import BackendFailure, BackendInterrupted
from skspo.solvers.base import certified, combined
from skspo.solvers.checks import guarded, without_bound

X, C = make_portfolio(60, 3, 5, degree=4, noise=0.5, random_state=0)


def objective_of(region, loss=sk.SPOPlusLoss, **params):
    return InMemoryObjective(loss(region), X, C, **params)


def fitted(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, C)


# -- status ------------------------------------------------------------------------------------------------------------


def test_status_is_a_string():
    assert [status.value for status in Status] == [
        "converged",
        "iteration limit",
        "time limit",
        "paused",
        "numerical limit",
        "interrupted",
        "failed",
    ]
    assert pickle.loads(pickle.dumps(Status.FAILED)) is Status.FAILED


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_say_why_they_stopped(name):
    region = sk.EntropySimplex() if name in ("lbfgs", "newton") else sk.Simplex()
    region = sk.Box() if name == "intervals" else region
    short = SOLVERS[name](tol=1e-12, max_iter=1).solve(objective_of(region), Run())
    assert short.status is Status.ITERATION_LIMIT and not short.converged and short.message
    if name == "sgd":
        return
    done = SOLVERS[name]().solve(objective_of(region), Run())
    assert done.status is Status.CONVERGED and done.converged and not done.message
    for result in (short, done):
        assert result.gap == objective_of(region).relative_gap(result.objective, result.lower_bound)


@pytest.mark.parametrize(
    ("model", "status", "limit"),
    [
        (sk.SPOPlusRegressor(sk.Simplex()), "converged", None),
        (sk.SPOPlusRegressor(sk.Simplex(), solver="bundle", max_iter=3), "iteration limit", "max_iter"),
        (sk.SPOPlusRegressor(sk.Simplex(), time_limit=1e-9), "time limit", "time_limit"),
        (sk.SPOPlusRegressorCV(sk.Simplex(), alphas=[np.inf, 1.0]), "converged", None),
        (sk.SPOPlusRegressorCV(sk.Simplex(), prior="zero", alphas=[1.0], time_limit=1e-9), "time limit", "time_limit"),
        (sk.SPORegressor(sk.Simplex(), init="least_squares", max_iter=5), "iteration limit", "max_iter"),
        (sk.SPORegressor(sk.Simplex(), time_limit=1e-9), "time limit", "time_limit"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_fitted_status_and_remedy(model, status, limit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, C)
    assert type(model.status_) is str and model.status_ == status
    told = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert bool(told) == (status != "converged")
    for warning in told:
        assert issubclass(warning.category, sk.NotCertifiedWarning)
        assert f"Increase {limit}" in str(warning.message)


def test_numerical_limit_does_not_advise_more_iterations():
    with pytest.warns(sk.NotCertifiedWarning, match=r"Increase tol, or try another solver\.") as caught:
        model = sk.SPOPlusRegressor(sk.Simplex(), solver="interior-point", tol=0.0, max_iter=10_000).fit(X, C)
    assert model.status_ == "numerical limit"
    assert "Increase max_iter" not in str(caught[0].message)


def test_partial_fit_has_a_status():
    assert sk.SPOPlusRegressor(sk.Simplex()).partial_fit(X, C).status_ == "iteration limit"


def test_certified_status_agrees_with_the_gap():
    objective = objective_of(sk.Simplex())
    Theta = objective.least_squares
    value = objective.value(Theta)
    boast = certified(objective, Result(Theta, value, 0.5 * value, 1, Status.CONVERGED), 1e-6)
    assert boast.status is Status.NUMERICAL_LIMIT and boast.gap == pytest.approx(0.5)
    closed = certified(objective, Result(Theta, value, value, 1, Status.TIME_LIMIT, "late"), 1e-6)
    assert closed.status is Status.CONVERGED and closed.message == "" and closed.gap == 0.0
    # The SPO loss has no dual bound: there the solver's own rule counts.
    spo = objective_of(sk.Simplex(), sk.SPOLoss)
    assert certified(spo, Result(Theta, value, 0.0, 1, Status.CONVERGED), 1e-6).status is Status.CONVERGED


def test_a_negative_objective_is_not_certified():
    objective = objective_of(sk.Simplex())
    Theta, size = objective.least_squares, GAP_FLOOR * objective.trivial_value()
    wrong = certified(objective, Result(Theta, -size, 0.0, 1, Status.CONVERGED), 1e-6)
    assert wrong.status is Status.NUMERICAL_LIMIT and wrong.gap == 1.0 and "negative" in wrong.message
    rounded = certified(objective, Result(Theta, -1e-9 * size, 0.0, 1, Status.CONVERGED), 1e-6)
    assert rounded.status is Status.CONVERGED and rounded.gap == 0.0


class WorstFarAway(sk.Simplex):
    """Takes the worst decision where costs are large."""

    def _argmin(self, C, data):
        return super()._argmin(np.where(np.abs(C).max(axis=1, keepdims=True) > 3.0, -C, C), data)


def test_a_wrong_oracle_does_not_look_like_a_perfect_model():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(50, 2)), np.abs(rng.normal(size=(50, 4)))
    with pytest.warns(sk.NotCertifiedWarning, match="the objective is -"):
        model = sk.SPOPlusRegressor(WorstFarAway(), solver="bundle").fit(X, C)
    assert model.status_ == "numerical limit" and model.duality_gap_ > 1.0


def test_driver_keeps_the_status_consistent():
    objective = objective_of(sk.Simplex())
    Theta = objective.least_squares
    value = objective.value(Theta)
    one = certified(objective, Result(Theta, value, 0.2 * value, 1, Status.NUMERICAL_LIMIT, "a", np.inf), 1e-6)
    other = certified(objective, Result(Theta, value, 0.6 * value, 1, Status.ITERATION_LIMIT, "b", np.inf), 1e-6)
    both = combined(objective, one, other, 1e-6)
    assert (both.status, both.message, both.gap) == (Status.ITERATION_LIMIT, "b", pytest.approx(0.4))
    assert guarded(objective, both, [(Theta, value)], 1e-6).gap == both.gap
    wrong = guarded(objective, both._replace(lower_bound=3.0 * value), [(Theta, value)], 1e-6)
    assert wrong.status is Status.FAILED and wrong.wrong_bound and wrong.gap == 1.0
    assert without_bound(objective, both) is both


def test_gap_and_status_without_an_exact_oracle():
    rng = np.random.default_rng(0)
    region = sk.OracleRegion(lambda costs: np.eye(5)[rng.integers(0, 5, len(costs))], 5, on_suboptimal="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sk.SPOPlusRegressor(region, random_state=0).fit(X, C)
    assert model.duality_gap_ == np.inf and model.status_ != "converged"


class Silent(Solver):
    """Returns least squares with the status converged, and computes no gap."""

    name = "silent"
    tol = 1e-6
    max_iter = None

    def solve(self, objective, run, start=None):
        """Return the given result."""
        return Result(objective.least_squares, -1.0, 0.0, 1, Status.CONVERGED)


class Boastful(Silent):
    """Also returns a bound above its objective."""

    def solve(self, objective, run, start=None):
        """Return the given result."""
        return super().solve(objective, run)._replace(lower_bound=1e9)


def test_a_wrong_bound_is_a_failure():
    with pytest.warns(sk.NotCertifiedWarning, match="lower bound of the silent solver was wrong"):
        model = sk.SPOPlusRegressor(sk.Simplex(), solver=Boastful()).fit(X, C)
    assert model.status_ == "failed" and model.lower_bound_ == 0.0 and model.duality_gap_ == 1.0


def test_results_of_user_solvers_are_checked():
    model = fitted(sk.SPOPlusRegressor(sk.Simplex(), solver=Silent()))
    assert model.status_ == "numerical limit" and model.duality_gap_ == 1.0 and model.objective_ > 0.0


# -- what solvers need -------------------------------------------------------------------------------------------------


def test_one_check_for_region_loss_and_penalty():
    smooth, flat = sk.EntropySimplex(), sk.Simplex()
    newton = SOLVERS["newton"]()
    check_solver_serves(newton, smooth, sk.SPOPlusLoss(smooth), "ridge", SOLVERS)
    with pytest.raises(ValueError) as caught:
        check_solver_serves(newton, flat, sk.SPOLoss(flat), "l1", SOLVERS)
    for part in ("the region Simplex", "lacks: smoothed", "the SPO loss is to be", "a smooth penalty (l1_ratio=0)"):
        assert part in str(caught.value)
    with pytest.raises(ValueError, match=r"smooth penalty.*l1 norm.*Solvers that can: 'lbfgs', 'conic', 'bundle'"):
        sk.SPOPlusRegressor(smooth, solver="newton", alpha=0.1, l1_ratio=0.5).fit(X, C)
    sk.SPOPlusRegressor(smooth, solver="newton", alpha=0.0, l1_ratio=0.5).fit(X, C)  # there is no penalty
    with pytest.raises(ValueError, match=r"'milp' needs no penalty \(alpha=0\), but got .*that can: 'line-search'"):
        sk.SPORegressor(flat, solver="milp", alpha=0.1).fit(X, C)


def test_dual_bounds_are_for_spo_plus_only():
    objective = objective_of(sk.EntropySimplex(), sk.SPOLoss)
    Theta = objective.least_squares
    with pytest.raises(TypeError, match="no lower bound of SPOLoss"):
        objective.dual_value(objective.W, Theta)
    with pytest.raises(TypeError, match="no lower bound of SPOLoss"):
        objective.dual_value_from_moments(0.0, np.zeros(objective.shape), Theta)
    assert objective_of(sk.EntropySimplex()).dual_value(objective.W, Theta).value == 0.0


def test_tuning_constants_are_not_exported():
    assert not [name for name in skspo.solvers.__all__ if name.isupper() and name != "SOLVERS"]


# -- oracles that are solvers ------------------------------------------------------------------------------------------


def test_one_fact_about_oracles_that_are_solvers(monkeypatch):
    """Blocks of rows and groups of cuts depend on ``oracle_is_solver``, not on whether there is a cone form."""
    from skspo.solvers.bundle.cut_model import CutModel

    monkeypatch.setattr("skspo._training.in_memory.BLOCK_NUMBERS", 1_000)
    monkeypatch.setattr("skspo.regions.listed.MOST_POINTS", 0)  # a list of decisions has a cone form
    n = 2_000
    rng = np.random.default_rng(0)
    features, costs = rng.normal(size=(n, 1)), rng.normal(size=(n, 2))
    cheap, solver = sk.Knapsack([1, 2], 2), sk.OracleRegion(sk.Simplex().argmin, 2)
    assert not hasattr(cheap, "support_epigraph") and not cheap.oracle_is_solver and solver.oracle_is_solver
    for region, groups in ((cheap, 200), (solver, 1000)):
        objective = InMemoryObjective(sk.SPOPlusLoss(region), features, costs)
        assert CutModel(objective, Run(), None, None).n_groups == groups
        assert (len(objective._blocks({})) == 1) == region.oracle_is_solver


# -- errors ------------------------------------------------------------------------------------------------------------

EMPTY = [
    lambda: sk.Polyhedron([[1.0, 1.0]], [-1.0], bounds=(0, 1)).argmin([[1.0, 2.0]]),
    lambda: sk.Polyhedron(A_eq=[[1.0, 1.0]], b_eq=[3.0], bounds=[(2, 1), (0, 1)]).argmin([[1.0, 2.0]]),
    lambda: sk.MixedInteger([[1.0, 1.0]], [-1.0], bounds=(0, 1)).argmin([[1.0, 2.0]]),
    lambda: sk.Knapsack([1, 1], -1).argmin([[1.0, 2.0]]),
    lambda: sk.Box(1.0, 0.0).argmin([[1.0, 2.0]]),
    lambda: sk.ShortestPath([(0, 1), (2, 3)], 0, 3).argmin([[1.0, 2.0]]),
    lambda: sk.Markowitz(np.eye(2), 0.1).argmin([[1.0, 2.0]]),
    lambda: sk.CvxpyRegion(lambda w: [w >= 1, w <= 0], 2).argmin([[1.0, 2.0]]),
]

UNBOUNDED = [
    lambda: sk.Polyhedron([[1.0, 1.0]], [1.0], bounds=(None, None)).argmin([[1.0, 2.0]]),
    lambda: sk.Box(0.0, np.inf).argmin([[1.0, 2.0]]),
    lambda: sk.CvxpyRegion(lambda w: [w >= 1], 2).argmin([[1.0, 2.0]]),
]


@pytest.mark.parametrize(
    ("call", "kind", "builtin"),
    [(call, sk.InfeasibleRegionError, ValueError) for call in EMPTY]
    + [(call, sk.UnboundedRegionError, ValueError) for call in UNBOUNDED]
    + [(lambda: slow().argmin(np.ones((1, 60))), sk.SolverError, RuntimeError)],
)
def test_regions_raise_typed_errors(call, kind, builtin):
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, sk.SkspoError) and isinstance(caught.value, builtin)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is kind and str(again) == str(caught.value)


def slow():
    """A program for which the time of a row is not enough."""
    rng = np.random.default_rng(0)
    A = rng.integers(1, 100, size=(30, 60))
    return sk.MixedInteger(-A, -A.sum(axis=1) / 2, bounds=(0, 1), time_limit=1e-9)


def test_failures_of_back_ends_are_solver_errors():
    for kind in (BackendFailure, BackendInterrupted):
        assert issubclass(kind, sk.SolverError) and issubclass(kind, RuntimeError)


def test_warning_is_one_of_scikit_learn():
    assert issubclass(sk.NotCertifiedWarning, ConvergenceWarning)
    assert type(pickle.loads(pickle.dumps(sk.NotCertifiedWarning("gap")))) is sk.NotCertifiedWarning
