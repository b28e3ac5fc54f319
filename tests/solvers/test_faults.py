"""Back-ends of solvers that fail: they raise, stop early, return wrong points or multipliers, or are missing.

In every case ``lower_bound_ <= optimum <= objective_``, and the warning says what failed.  The same for oracles is in
``test_faults_highs.py`` and ``test_faults_clarabel.py``.
"""

import sys
import warnings
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from fault_problems import LINEAR, D, PanicException, ball, data
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import skspo.solvers.conic as conic_module
import skspo.solvers.spo.milp
from skspo import (
    CvxpyRegion,
    Ellipsoid,
    EntropySimplex,
    LqBall,
    Markowitz,
    ShortestPath,
    Simplex,
    SPOPlusLoss,
    SPOPlusRegressor,
    SPORegressor,
    spo_loss,
    spo_plus_loss,
)
from skspo._training.in_memory import InMemoryObjective
from skspo._training.objective import lower_bound
from skspo._utils.limits import Deadline
from skspo.regions.check import check_region

ERRORS = [cp.SolverError("out of luck"), ValueError("x"), MemoryError(), AssertionError("odd"), PanicException("Rust")]
CONIC = [
    Simplex(),
    ShortestPath([(0, 1), (1, 2), (0, 2), (1, 2)], 0, 2),
    EntropySimplex(),
    Ellipsoid(np.diag([1.0, 2.0, 3.0, 4.0])),
    Markowitz(np.eye(D) + 0.2, 0.6),
    CvxpyRegion(ball, D),
]


TRUTHS = {}


def exact(region, X, C, **params):
    """A fit within 1e-5 of the optimum, before any fault is injected; once for all faults."""
    key = str(region), len(X), str(params)
    if key not in TRUTHS:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            TRUTHS[key] = SPOPlusRegressor(region, tol=1e-5, **params).fit(X, C)
    return TRUTHS[key]


# -- the conic solver --------------------------------------------------------------------------------------------------


def link_of(problem):
    """The constraint whose multipliers are the dual decisions: the first one."""
    return problem.constraints[0]


def shift(problem):
    for variable in problem.variables():
        variable.value = variable.value + np.linspace(0.0, 0.5, variable.size).reshape(variable.shape)


def set_duals(make):
    def spoil(problem):
        dual = link_of(problem).dual_variables[0]
        dual.save_value(make(np.random.default_rng(0), dual.shape))

    return spoil


def set_values(value):
    def spoil(problem):
        for variable in problem.variables():
            # As a solver would do: ``variable.value = `` only accepts finite real numbers.
            variable.save_value(None if value is None else np.full(variable.shape, value))

    return spoil


SPOILED = {
    "wrong point": shift,
    "far point": set_values(1e6),
    "absurd point": set_values(1e250),
    "nan": set_values(np.nan),
    "infinite": set_values(np.inf),
    "none": set_values(None),
    "random duals": set_duals(lambda rng, shape: rng.normal(size=shape)),
    "large duals": set_duals(lambda rng, shape: 1e12 * rng.normal(size=shape)),
    "nan duals": set_duals(lambda rng, shape: np.full(shape, np.nan)),
    "infinite duals": set_duals(lambda rng, shape: np.full(shape, np.inf)),
    "no duals": set_duals(lambda rng, shape: np.zeros(shape)),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", SPOILED)
@pytest.mark.parametrize("region", CONIC, ids=lambda region: type(region).__name__)
def test_wrong_answers_are_detected(region, fault, monkeypatch):
    X, C = data()
    truth = exact(region, X, C)
    solve = conic_module.solve_here

    def lie(problem, *args):
        solve(problem, *args)
        SPOILED[fault](problem)

    monkeypatch.setattr(conic_module, "solve_here", lie)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SPOPlusRegressor(region, solver="conic", tol=1e-5).fit(X, C)
    # A repaired dual may be sufficient; then the result is correct, otherwise there is a warning.
    assert model.lower_bound_ <= truth.objective_ * (1 + 1e-9)
    assert truth.lower_bound_ <= model.objective_ * (1 + 1e-9)
    told = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert bool(told) == (model.duality_gap_ > 1e-5)
    # The reported objective is that of the model, and not worse than least squares.
    assert model.objective_ == pytest.approx(spo_plus_loss(C, model.predict(X), region), rel=1e-6)
    assert model.objective_ <= spo_plus_loss(C, LinearRegression().fit(X, C).predict(X), region) * (1 + 1e-9)
    if fault in ("far point", "absurd point", "nan", "infinite", "none"):
        assert told and "CLARABEL" in str(told[0].message)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_the_next_back_end_is_tried_and_errors_are_reported(error, monkeypatch):
    X, C = data()
    truth = exact(Simplex(), X, C)
    solve, tried = conic_module.solve_here, []

    def fail(problem, compiled, backend, options):
        tried.append(backend)
        if backend in failing:
            raise error
        solve(problem, compiled, backend, options)

    monkeypatch.setattr(conic_module, "solve_here", fail)
    failing = {"HIGHS"}
    model = SPOPlusRegressor(Simplex(), solver="conic").fit(X, C)
    assert tried == ["HIGHS", "CLARABEL"]
    assert model.duality_gap_ <= 1e-6
    failing = {"HIGHS", "CLARABEL"}
    what = str(error) or type(error).__name__
    with pytest.warns(ConvergenceWarning, match=f"HIGHS: {what}; CLARABEL: {what}"):
        model = SPOPlusRegressor(Simplex(), solver="conic").fit(X, C)
    assert model.lower_bound_ <= truth.objective_
    assert model.objective_ == pytest.approx(spo_plus_loss(C, LinearRegression().fit(X, C).predict(X), Simplex()))


@pytest.mark.parametrize("wish", [KeyboardInterrupt, SystemExit])
def test_interrupts_are_not_caught(wish, monkeypatch):
    def stop(*args, **kwargs):
        raise wish

    monkeypatch.setattr(conic_module, "solve_here", stop)
    X, C = data()
    model = SPOPlusRegressor(Simplex(), solver="conic")
    with pytest.raises(wish):
        model.fit(X, C)
    assert not hasattr(model, "coef_")


def test_a_back_end_that_does_nothing(monkeypatch):
    monkeypatch.setattr(conic_module, "solve_here", lambda *args: None)
    X, C = data()
    with pytest.warns(ConvergenceWarning, match="HIGHS: status None, but no finite solution"):
        model = SPOPlusRegressor(Simplex(), solver="conic").fit(X, C)
    assert model.lower_bound_ <= exact(Simplex(), X, C, solver="interior-point").objective_


def test_the_chain_goes_on_with_the_best_result(monkeypatch):
    """The result of an earlier solver is kept if a later one fails."""
    X, C = data()
    monkeypatch.setattr(conic_module, "solve_here", lambda problem, *args: set_values(1e6)(problem))
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        alone = SPOPlusRegressor(Simplex(), solver="interior-point", max_iter=3).fit(X, C)
    with pytest.warns(ConvergenceWarning):
        chain = SPOPlusRegressor(Simplex(), max_iter=3).fit(X, C)
    assert chain.duality_gap_ <= alone.duality_gap_


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("region", CONIC, ids=lambda region: type(region).__name__)
def test_arbitrary_duals_prove_valid_bounds(region, scale):
    """Arbitrary numbers instead of dual decisions give a valid bound."""
    X, C = data(12)
    region = check_region(region, D)
    for params in ({}, {"alpha": 0.1, "prior": "least_squares"}):
        truth = exact(region, X, C, **params)
        objective = InMemoryObjective(SPOPlusLoss(region), X, C, **params)
        Theta = objective.from_user(truth.coef_, truth.intercept_)
        for seed in range(3):
            V = scale * np.random.default_rng(seed).normal(size=C.shape)
            bound = lower_bound(objective, V, Theta, Deadline()).value * objective.scale
            assert 0 <= bound <= truth.objective_ * (1 + 1e-9)


# -- not installed -----------------------------------------------------------------------------------------------------


def test_without_cvxpy(monkeypatch):
    X, C = data()
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"needs CVXPY.*pip install cvxpy"):
        SPOPlusRegressor(Simplex(), solver="conic").fit(X, C)
    with pytest.raises(ImportError, match="needs CVXPY"):
        CvxpyRegion(ball, D).argmin(C)
    # The other solvers do not need it, and a chain skips the conic solver.
    assert SPOPlusRegressor(Simplex()).fit(X, C).duality_gap_ <= 1e-6
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .*; conic: This needs CVXPY"):
        model = SPOPlusRegressor(Simplex(), max_iter=2).fit(X, C)
    assert model.solver_ != "conic"
    assert 0 <= model.lower_bound_ <= exact(Simplex(), X, C).objective_ <= model.objective_ * (1 + 1e-5)


def test_without_clarabel(monkeypatch):
    X, C = data()
    conic = CvxpyRegion(ball, D)
    conic.argmin(C)
    markowitz = Markowitz(np.eye(D), 0.5)
    W = markowitz.argmin(C)
    monkeypatch.setitem(sys.modules, "clarabel", None)
    np.testing.assert_array_equal(markowitz.argmin(C), W)  # Clarabel gets only rows without a proof
    with monkeypatch.context() as patch:
        patch.setattr("skspo.regions.markowitz.EXACT", -1.0)
        for region in (markowitz, conic):
            with pytest.raises(ImportError, match=r"needs Clarabel.*pip install clarabel"):
                region.argmin(C)
    # Linear programs use HiGHS.
    assert SPOPlusRegressor(Simplex(), solver="conic").fit(X, C).duality_gap_ <= 1e-6
    with pytest.warns(ConvergenceWarning, match="(?i)clarabel"):
        SPOPlusRegressor(LqBall(1.5), solver="conic").fit(X, C)


# -- the exact SPO loss by mixed-integer programming -------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    """Data, the optimum by mixed-integer programming, and the lowest loss of many random models."""
    X, C = data(12, 1, 3, seed=3)
    truth = SPORegressor(Simplex(), solver="milp").fit(X, C)
    rng = np.random.default_rng(0)
    features = np.column_stack([X, np.ones(len(X))])
    C_hat = np.einsum("ij,kjl->kil", features, rng.normal(size=(5000, 2, 3)))
    chosen = np.take_along_axis(C[None], C_hat.argmin(axis=2)[:, :, None], axis=2)[:, :, 0]
    return X, C, truth, float((chosen.mean(axis=1) - C.min(axis=1).mean()).min())


MILP_FAULTS = {
    "bound": lambda res: setattr(res, "mip_dual_bound", res.mip_dual_bound + 10.0),
    "nan bound": lambda res: setattr(res, "mip_dual_bound", np.nan),
    "no bound": lambda res: setattr(res, "mip_dual_bound", None),
    "none": lambda res: setattr(res, "x", None),
    "nan": lambda res: setattr(res, "x", res.x * np.nan),
    "short": lambda res: setattr(res, "x", res.x[:1]),
    "opposite": lambda res: setattr(res, "x", -res.x),
    "zero": lambda res: setattr(res, "x", 0.0 * res.x),
}


@pytest.mark.parametrize("fault", [*MILP_FAULTS, "raises"])
def test_milp(fault, small, monkeypatch):
    X, C, truth, lowest = small
    assert truth.status_ == "converged"
    assert 0 == truth.lower_bound_ < truth.objective_ <= lowest * (1 + 1e-9)
    real = skspo.solvers.spo.milp.milp

    def broken(*args, **kwargs):
        if fault == "raises":
            raise OSError("disk on fire")
        res = real(*args, **kwargs)
        MILP_FAULTS[fault](res)
        return res

    monkeypatch.setattr(skspo.solvers.spo.milp, "milp", broken)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SPORegressor(Simplex(), solver="milp").fit(X, C)
    assert model.lower_bound_ == 0.0
    assert truth.objective_ <= model.objective_ * (1 + 1e-9)
    assert model.objective_ == pytest.approx(spo_loss(C, model.predict(X), Simplex()), abs=1e-9)
    told = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert bool(told) == (model.status_ != "converged")
    if fault == "bound":
        assert "The lower bound of the milp solver was wrong: a known model has" in str(told[0].message)
        assert "lower_bound_ holds" not in str(told[0].message)
    if fault == "raises":
        assert "OSError: disk on fire" in str(told[0].message)
        start = SPOPlusRegressor(Simplex()).fit(X, C)
        assert model.objective_ == pytest.approx(spo_loss(C, start.predict(X), Simplex()))


def test_vertices_with_a_failing_solver(monkeypatch):
    # A region whose lifted form has additional vertices.
    region = check_region(LINEAR["polyhedron"](), D)
    truth = skspo.solvers.spo.milp.list_vertices(region, D)
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2]])
    assert [skspo.solvers.spo.milp._is_extreme(points, i) for i in range(4)] == [True, True, True, False]
    monkeypatch.setattr(skspo.solvers.spo.milp, "linprog", lambda *a, **k: SimpleNamespace(x=None, status=4))
    assert skspo.solvers.spo.milp._is_extreme(points, 3)  # additional points are harmless
    monkeypatch.setattr(skspo.solvers.spo.milp, "linprog", lambda *a, **k: SimpleNamespace(x=np.ones(3), status=0))
    assert skspo.solvers.spo.milp._is_extreme(points, 0)  # no weights, no proof
    assert len(truth) > 4
