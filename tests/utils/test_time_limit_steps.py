"""``time_limit`` within long steps, and before a step that would take too long."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from clock_problems import ASSETS, CLASSES, GRID, PATHS, Clock
from marks import rest_is_slow
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from skspo import (
    CvxpyRegion,
    EntropySimplex,
    LqBall,
    MixedInteger,
    Polyhedron,
    Simplex,
    SPOPlusLoss,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
)
from skspo._training import balance
from skspo._training.design import Design
from skspo._training.in_memory import InMemoryMoves, InMemoryObjective
from skspo._training.regression import quick_regression
from skspo._training.run import Run
from skspo._utils import limits
from skspo._utils.limits import Deadline
from skspo.regions._oracles import highs_integer
from skspo.regions._oracles.clarabel import ConicSet
from skspo.regions._oracles.highs_linear import LinearModel
from skspo.solvers import choose_solvers
from skspo.solvers.interior_point.blocks import Block

# -- inside a step -----------------------------------------------------------------------------------------------------


def spent(clock, model, X, C, seconds):
    """Fit within a limit; return the seconds that it took."""
    before = clock.now
    with pytest.warns(ConvergenceWarning, match=rf"time_limit={seconds} s was reached"):
        model.set_params(time_limit=seconds).fit(X, C)
    return clock.now - before


def box(**params):
    """A polyhedron whose oracle is HiGHS, row by row."""
    return Polyhedron(A_ub=np.ones((1, 5)), b_ub=[2.0], bounds=(0, 1), **params)


ROW_BY_ROW = {
    "HiGHS": (box(), LinearModel, "optimum"),
    "HiGHS-threads": (box(n_jobs=2), LinearModel, "optimum"),
    "branch-and-bound": (
        MixedInteger([[3, 4, 5, 3, 4.5]], [9], bounds=(0, 1), integrality=[1, 1, 1, 1, 0], sense="max"),
        highs_integer._DepthFirst,
        "solve",
    ),
    "Clarabel": (CvxpyRegion(lambda w: [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.8], 5), ConicSet, "_solve"),
}


@pytest.mark.parametrize("name", rest_is_slow(ROW_BY_ROW, 2))
def test_oracles_check_the_time_between_rows(name, monkeypatch):
    region, where, method = ROW_BY_ROW[name]
    X, C = ASSETS
    region.argmin(C)  # the preparation is not measured
    free = SPOPlusRegressor(region).fit(X, C)
    clock = Clock(monkeypatch)
    clock.count(monkeypatch, where, method)  # a second per row
    model = SPOPlusRegressor(region)
    # The best decisions of 60 samples are not known after 20 s: nothing can be evaluated.
    assert spent(clock, model, X, C, 20) <= 26
    assert model.objective_ == np.inf and model.duality_gap_ == np.inf and model.lower_bound_ == 0.0
    expected = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), C, rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), np.column_stack([np.ones(len(X)), X]) @ expected, atol=1e-8)
    # A limit in the last pass returns the model before that pass.
    before = clock.now
    model.set_params(time_limit=None).fit(X, C)
    for seconds in (int(clock.now - before) - 10, int(clock.now - before) - 40):
        assert spent(clock, model, X, C, seconds) <= 1.1 * seconds
        assert np.isfinite(model.objective_)
        assert model.lower_bound_ <= free.objective_ * (1 + 1e-6) <= model.objective_ * (1 + 2e-6)


@pytest.mark.parametrize("make", [SPORegressor, SPOPlusRegressorCV])
@pytest.mark.parametrize("seconds", [20, 150, 260])
def test_other_estimators_with_slow_oracles(make, seconds, monkeypatch):
    X, C = ASSETS
    region = box()
    region.argmin(C)
    clock = Clock(monkeypatch)
    clock.count(monkeypatch, LinearModel, "optimum")
    model = make(region, random_state=0)
    assert spent(clock, model, X, C, seconds) <= 1.1 * seconds
    assert np.isfinite(model.predict(X)).all()
    assert 0.0 == model.lower_bound_ <= model.objective_


@pytest.mark.parametrize("where, limits", [("prepare", (7, 30, 90)), ("center", (7, 17)), ("factor", (7, 90, 200))])
def test_interior_point_checks_the_time_between_blocks(where, limits, monkeypatch):
    X, C = PATHS
    free = SPOPlusRegressor(GRID, solver="interior-point").fit(X, C)
    monkeypatch.setattr("skspo.solvers.interior_point.state.BLOCK_NUMBERS", 12 * 3)  # three samples per block
    clock = Clock(monkeypatch)
    clock.count(monkeypatch, Block, where)
    model = SPOPlusRegressor(GRID, solver="interior-point")
    for seconds in limits:  # an iteration takes 20 s, and so does the start
        assert spent(clock, model, X, C, seconds) <= 1.1 * seconds + 1.0
        assert model.lower_bound_ <= free.objective_ * (1 + 1e-9) <= model.objective_ * (1 + 1e-8)


def test_newton_checks_the_time_between_blocks(monkeypatch):
    X, C = ASSETS
    free = SPOPlusRegressor(EntropySimplex(), solver="newton").fit(X, C)
    monkeypatch.setattr("skspo.solvers.newton.BLOCK_ELEMENTS", 25 * 3)
    clock = Clock(monkeypatch)
    clock.count(monkeypatch, Design, "curvature")
    model = SPOPlusRegressor(EntropySimplex(), solver="newton")
    for seconds in (7, 30, 50):
        assert spent(clock, model, X, C, seconds) <= 1.1 * seconds + 1.0
        assert model.lower_bound_ <= free.objective_ * (1 + 1e-9) <= model.objective_ * (1 + 1e-8)


# -- before a step -----------------------------------------------------------------------------------------------------


@pytest.fixture
def slow_machine(monkeypatch):
    """A machine on which, by prediction, only the smallest products fit into a limit."""
    monkeypatch.setattr("skspo._utils.limits._speed", lambda: 1e-3)


def test_the_speed_of_the_machine_is_measured(monkeypatch):
    monkeypatch.setattr("skspo._utils.limits.perf_counter", None)  # the clock of a test is not used
    assert 1e7 < limits._speed.__wrapped__() < 1e14
    monkeypatch.setattr("skspo._utils.limits._speed", lambda: 100.0)
    assert limits.predicted_seconds(250.0) == 2.5


def test_auto_chooses_a_solver_that_makes_progress(slow_machine):
    X, C = CLASSES
    for region, first in ((Simplex(), "interior-point"), (LqBall(1.2), "newton")):
        objective = InMemoryObjective(SPOPlusLoss(region), X, C)
        assert first in choose_solvers(objective) and "conic" in choose_solvers(objective)
        assert not {first, "conic"} & set(choose_solvers(objective, Run(Deadline(10.0))))
    ridge = InMemoryObjective(SPOPlusLoss(Simplex()), X, C, alpha=0.1)
    assert choose_solvers(ridge)[0] == "interior-point"
    assert sorted(choose_solvers(ridge, Run(Deadline(100.0)))) == ["bundle", "dual"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SPOPlusRegressor(Simplex(), time_limit=1.0, random_state=0).fit(X, C)
    assert model.solver_ in {"bundle", "dual"} and model.lower_bound_ <= model.objective_ < np.inf


@pytest.mark.parametrize("solver", ["interior-point", "newton", "conic"])
def test_a_step_that_does_not_fit_is_not_started(solver, slow_machine, monkeypatch):
    X, C = ASSETS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skspo.solvers.interior_point.state.State.__init__", None)  # an error if it is called
        patch.setattr("skspo.solvers.newton.cho_factor", None)
        patch.setattr(cp.Problem, "get_problem_data", None)
        patch.setattr("skspo.solvers.conic.ConicSolver._model", None)
        region = Simplex() if solver != "newton" else EntropySimplex()
        with pytest.warns(ConvergenceWarning, match="time_limit=60 s was reached"):
            model = SPOPlusRegressor(region, solver=solver, time_limit=60).fit(X, C)
    assert 0.0 <= model.lower_bound_ <= model.objective_
    free = SPOPlusRegressor(region, solver=solver).fit(X, C)
    assert free.duality_gap_ <= 1e-6  # without a limit nothing is predicted


@pytest.mark.parametrize(
    ("where", "name", "region", "data", "params"),
    [
        (InMemoryMoves, "gram", LqBall(1.5), ASSETS, {"solver": "lbfgs"}),
        (balance, "cho_factor", Simplex(), CLASSES, {"solver": "sgd", "max_iter": 20, "random_state": 0}),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_certificates_are_computed_only_in_time(where, name, region, data, params, slow_machine, monkeypatch):
    """Their factorizations are left out if they do not fit into the limit."""
    original, calls = getattr(where, name), []
    monkeypatch.setattr(where, name, lambda *args, **options: calls.append(name) or original(*args, **options))
    model = SPOPlusRegressor(region, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*data)
        assert calls
        calls.clear()
        model.set_params(time_limit=60).fit(*data)
    assert not calls
    assert 0.0 <= model.lower_bound_ <= model.objective_


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("one_cost", [True, False])
@pytest.mark.parametrize("kind", ["full rank", "collinear", "wide"])
def test_quick_least_squares(kind, fit_intercept, one_cost):
    """Normal equations if they are accurate, otherwise a pivoted factorization: the same result as scikit-learn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) * [1.0, 1e3, 1e-3, 1.0] + [0.0, 5.0, 0.0, 1.0]
    if kind == "collinear":
        X = np.column_stack([X, X[:, 0] - X[:, 3]])
    if kind == "wide":
        X = rng.normal(size=(80, 100)) + 1.0
    C, weight = rng.normal(size=(80, 3)), rng.uniform(0.5, 2.0, 80)
    C = C[:, 0] if one_cost else C
    expected = LinearRegression(fit_intercept=fit_intercept).fit(X, C, sample_weight=weight)
    coef, intercept = quick_regression(X, C, weight, fit_intercept)
    np.testing.assert_allclose(coef, expected.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(intercept, expected.intercept_, rtol=1e-6, atol=1e-8)


def test_quick_least_squares_only_under_a_short_limit(monkeypatch):
    X, C = CLASSES
    calls = []
    monkeypatch.setattr(
        "skspo._training.design.quick_regression", lambda *args: calls.append(1) or quick_regression(*args)
    )
    free = SPOPlusRegressor(Simplex()).fit(X, C)
    SPOPlusRegressor(Simplex(), time_limit=1e6).fit(X, C)
    assert not calls
    monkeypatch.setattr("skspo._utils.limits._speed", lambda: 1.0)
    with pytest.warns(ConvergenceWarning):
        model = SPOPlusRegressor(Simplex(), time_limit=1.0, solver="sgd", random_state=0).fit(X, C)
    assert calls
    assert model.lower_bound_ <= free.objective_ <= model.objective_ * (1 + 1e-9)
