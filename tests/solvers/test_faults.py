"""Libraries that fail: CVXPY, HiGHS and Clarabel raise, stop, lie about points and multipliers, or are missing.

Whatever they do, ``lower_bound_ <= optimum <= objective_``, a region returns optimal decisions or raises, and the user
is told what failed.
"""

import re
import sys
import warnings
from types import SimpleNamespace

import clarabel
import cvxpy as cp
import highspy
import numpy as np
import pytest
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import skspo.regions.polyhedral
import skspo.solvers.spo.milp
from skspo import (
    CvxpyRegion,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    LqBall,
    Markowitz,
    MixedInteger,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOPlusLoss,
    SPOPlusRegressor,
    SPORegressor,
    spo_loss,
    spo_plus_loss,
)
from skspo._training.objective import LinearObjective
from skspo.regions._oracles import portfolio
from skspo.regions._oracles.cones import rows_inside
from skspo.regions.check import check_region


class PanicException(BaseException):
    """What pyo3 calls a panic in Rust: no Exception."""


D = 4
ERRORS = [cp.SolverError("out of luck"), ValueError("x"), MemoryError(), AssertionError("odd"), PanicException("Rust")]


def data(n=14, p=2, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=(p, d)) + rng.normal(size=(n, d)) + 1.0


def ball(w):
    return [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.8]


CONIC = [
    Simplex(),
    ShortestPath([(0, 1), (1, 2), (0, 2), (1, 2)], 0, 2),
    EntropySimplex(),
    Ellipsoid(np.diag([1.0, 2.0, 3.0, 4.0])),
    Markowitz(np.eye(D) + 0.2, 0.6),
    CvxpyRegion(ball, D),
]


def exact(region, X, C, **params):
    """Objective within 1e-5 of the optimum, by whatever works, before anything is broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return SPOPlusRegressor(region, tol=1e-5, **params).fit(X, C)


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
            # As a solver would: ``variable.value = `` insists on finite real numbers.
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
def test_wrong_answers_are_found_out(region, fault, monkeypatch):
    X, C = data()
    truth = exact(region, X, C)
    solve = cp.Problem.solve

    def lie(problem, *args, **kwargs):
        value = solve(problem, *args, **kwargs)
        SPOILED[fault](problem)
        return value

    monkeypatch.setattr(cp.Problem, "solve", lie)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SPOPlusRegressor(region, solver="conic", tol=1e-5).fit(X, C)
    # A repaired proof may do; then the result is right, and otherwise there is a warning.
    assert model.lower_bound_ <= truth.objective_ * (1 + 1e-9)
    assert truth.lower_bound_ <= model.objective_ * (1 + 1e-9)
    told = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert bool(told) == (model.duality_gap_ > 1e-5)
    # What is reported is what the model does, and it is no worse than least squares.
    assert model.objective_ == pytest.approx(spo_plus_loss(C, model.predict(X), region), rel=1e-6)
    assert model.objective_ <= spo_plus_loss(C, LinearRegression().fit(X, C).predict(X), region) * (1 + 1e-9)
    if fault in ("far point", "absurd point", "nan", "infinite", "none"):
        assert told and "CLARABEL" in str(told[0].message)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_the_next_back_end_is_tried_and_errors_are_reported(error, monkeypatch):
    X, C = data()
    truth = exact(Simplex(), X, C)
    solve, tried = cp.Problem.solve, []

    def fail(problem, *args, solver=None, **kwargs):
        tried.append(solver)
        if solver in failing:
            raise error
        return solve(problem, *args, solver=solver, **kwargs)

    monkeypatch.setattr(cp.Problem, "solve", fail)
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
def test_whoever_wants_to_stop_may(wish, monkeypatch):
    def stop(*args, **kwargs):
        raise wish

    monkeypatch.setattr(cp.Problem, "solve", stop)
    X, C = data()
    model = SPOPlusRegressor(Simplex(), solver="conic")
    with pytest.raises(wish):
        model.fit(X, C)
    assert not hasattr(model, "coef_")


def test_a_back_end_that_does_nothing(monkeypatch):
    monkeypatch.setattr(cp.Problem, "solve", lambda *args, **kwargs: None)
    X, C = data()
    with pytest.warns(ConvergenceWarning, match="HIGHS: status None, but no finite solution"):
        model = SPOPlusRegressor(Simplex(), solver="conic").fit(X, C)
    assert model.lower_bound_ <= exact(Simplex(), X, C, solver="interior-point").objective_


def test_the_chain_goes_on_with_the_best_result(monkeypatch):
    """What an earlier solver found is not lost to a later one that fails."""
    X, C = data()
    monkeypatch.setattr(cp.Problem, "solve", lambda problem, **kwargs: set_values(1e6)(problem))
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        alone = SPOPlusRegressor(Simplex(), solver="interior-point", max_iter=3).fit(X, C)
    with pytest.warns(ConvergenceWarning):
        chain = SPOPlusRegressor(Simplex(), max_iter=3).fit(X, C)
    assert chain.duality_gap_ <= alone.duality_gap_


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("region", CONIC, ids=lambda region: type(region).__name__)
def test_no_duals_prove_too_much(region, scale):
    """Any numbers at all in place of dual decisions prove a bound that holds."""
    X, C = data(12)
    region = check_region(region, D)
    for params in ({}, {"alpha": 0.1, "prior": "least_squares"}):
        truth = exact(region, X, C, **params)
        objective = LinearObjective(SPOPlusLoss(region), region, X, C, **params)
        Theta = objective.from_user(truth.coef_, truth.intercept_)
        for seed in range(3):
            V = scale * np.random.default_rng(seed).normal(size=C.shape)
            bound = objective.lower_bound(V, Theta, max_iter=5).value * objective.scale
            assert 0 <= bound <= truth.objective_ * (1 + 1e-9)


# -- not installed -----------------------------------------------------------------------------------------------------


def test_without_cvxpy(monkeypatch):
    X, C = data()
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"needs CVXPY.*pip install cvxpy"):
        SPOPlusRegressor(Simplex(), solver="conic").fit(X, C)
    with pytest.raises(ImportError, match="needs CVXPY"):
        CvxpyRegion(ball, D).argmin(C)
    # The others do not need it, and in a chain it is one solver less.
    assert SPOPlusRegressor(Simplex()).fit(X, C).duality_gap_ <= 1e-6
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 was reached; conic: This needs CVXPY"):
        model = SPOPlusRegressor(Simplex(), max_iter=2).fit(X, C)
    assert model.solver_ == "interior-point"


def test_without_clarabel(monkeypatch):
    X, C = data()
    conic = CvxpyRegion(ball, D)
    conic.argmin(C)
    monkeypatch.setitem(sys.modules, "clarabel", None)
    for region in (Markowitz(np.eye(D), 0.5), conic):
        with pytest.raises(ImportError, match=r"needs Clarabel.*pip install clarabel"):
            region.argmin(C)
    # A linear program has HiGHS.
    assert SPOPlusRegressor(Simplex(), solver="conic").fit(X, C).duality_gap_ <= 1e-6
    with pytest.warns(ConvergenceWarning, match="(?i)clarabel"):
        SPOPlusRegressor(LqBall(1.5), solver="conic").fit(X, C)


# -- regions whose oracle is HiGHS -------------------------------------------------------------------------------------

A_ub, b_ub = np.array([[1.0, 2.0, 1.0, 3.0], [2.0, 1.0, 4.0, 1.0]]), np.array([4.0, 5.0])
LINEAR = {
    "polyhedron": lambda: Polyhedron(A_ub, b_ub, bounds=(0, 2)),
    "equalities": lambda: Polyhedron(A_eq=[[1, 1, 1, 1]], b_eq=[2.0], bounds=(0, None)),
    "cycle": lambda: ShortestPath([(0, 1), (1, 0), (1, 2), (0, 2)], 0, 2),
    "integers": lambda: MixedInteger(A_ub, b_ub, bounds=(0, 2), integrality=1),
    "some integers": lambda: MixedInteger(A_ub, b_ub, bounds=(0, 2), integrality=[1, 0, 1, 0]),
    "two knapsacks": lambda: Knapsack(np.pi * A_ub, np.e * b_ub),
}

RealHighs = highspy.Highs


def broken_highs(monkeypatch, solution=None, status=None, run=None, info=None, after=0):
    """Let HiGHS misbehave from the ``after``-th look at a solution on."""
    looks = []

    class Broken(RealHighs):
        def getSolution(self):
            real = super().getSolution()
            looks.append(1)
            if solution is None or len(looks) <= after:
                return real
            w, y = np.array(real.col_value), np.array(real.row_dual)
            w, y = solution(w, y)
            return SimpleNamespace(col_value=w, row_dual=y, col_dual=np.array(real.col_dual))

        def getModelStatus(self):
            return super().getModelStatus() if status is None or len(looks) < after else status

        def run(self):
            if run is not None and len(looks) >= after:
                raise run
            return super().run()

        def getInfo(self):
            real = super().getInfo()
            return real if info is None else info(real)

    monkeypatch.setattr(highspy, "Highs", Broken)


#: what a solver meets first: the feasible start of linear programs, or the first row
FIRST = "(row 0|the first feasible decision)"

WRONG = {
    "infeasible": lambda w, y: (w + 1.0, y),
    "beyond bounds": lambda w, y: (np.where(w == w.min(), -5.0, w), y),
    "nan": lambda w, y: (w * np.nan, y),
    "empty": lambda w, y: (w[:0], y),
    "none": lambda w, y: (None, y),
    "zero": lambda w, y: (0.0 * w, y),
    "another": lambda w, y: (w[::-1].copy(), y),
    "not integer": lambda w, y: (0.5 * w, y),
}


@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("name", LINEAR)
def test_decisions_of_highs_are_right_or_an_error(name, fault, monkeypatch):
    C = np.random.default_rng(1).normal(size=(8, D)) - 0.3
    truth = LINEAR[name]().argmin(C)
    region = LINEAR[name]()
    if fault != "nan":  # half of them already while the region is prepared
        region.argmin(C)
    broken_highs(monkeypatch, WRONG[fault])
    wrong = 0
    for i in range(len(C)):
        try:
            W = region.argmin(C[i : i + 1])
        except RuntimeError as error:
            assert "HiGHS" in str(error) and (re.search(FIRST, str(error)) or fault == "nan")
            wrong += 1
        else:
            np.testing.assert_allclose(C[i] @ W[0], C[i] @ truth[i], atol=1e-6)
    assert wrong > 0


@pytest.mark.parametrize("duals", [lambda y: y + 1.0, lambda y: -y, lambda y: y * np.nan, lambda y: y[:0]])
@pytest.mark.parametrize("name", ["polyhedron", "equalities", "cycle"])
def test_wrong_multipliers_prove_nothing(name, duals, monkeypatch):
    C = np.random.default_rng(1).normal(size=(8, D)) - 0.3
    region = LINEAR[name]()
    region.argmin(C)
    broken_highs(monkeypatch, lambda w, y: (w, duals(y)))
    with pytest.raises(RuntimeError, match="HiGHS"):
        region.argmin(C)


@pytest.mark.parametrize("name", ["polyhedron", "equalities"])
def test_the_other_simplex_method_is_tried(name, monkeypatch):
    C = np.random.default_rng(1).normal(size=(3, D)) - 0.3
    region = LINEAR[name]()
    truth = region.argmin(C)
    count = []

    def once(w, y):
        # The first look is at the feasible start, those after it are at the rows.
        count.append(1)
        return (w[::-1] + 0.5, y) if 1 < len(count) <= 4 else (w, y)

    broken_highs(monkeypatch, once)
    np.testing.assert_allclose(region.argmin(C), truth, atol=1e-9)
    assert len(count) == 7


def test_multipliers_of_rows_with_sides_of_their_own(monkeypatch):
    C = np.random.default_rng(1).normal(size=(8, D)) - 0.3
    region = LINEAR["polyhedron"]()
    sides = {"b_ub": b_ub * np.linspace(0.5, 2.0, 8)[:, None]}
    W = region.with_rows(sides, 8, D).argmin(C)
    for i in range(8):
        res = scipy.optimize.linprog(C[i], A_ub=A_ub, b_ub=sides["b_ub"][i], bounds=(0, 2))
        assert C[i] @ W[i] == pytest.approx(res.fun, abs=1e-8)
    broken_highs(monkeypatch, lambda w, y: (0.9 * w, y))
    with pytest.raises(RuntimeError, match="HiGHS calls a decision for row 0 optimal"):
        region.with_rows(sides, 8, D).argmin(C)


@pytest.mark.parametrize("name", LINEAR)
def test_highs_raises(name, monkeypatch):
    C = np.random.default_rng(1).normal(size=(3, D))
    region = LINEAR[name]()
    region.argmin(C)
    broken_highs(monkeypatch, run=OSError("disk on fire"))
    with pytest.raises(RuntimeError, match=f"HiGHS failed at {FIRST}: OSError: disk on fire") as caught:
        region.argmin(C)
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("name", LINEAR)
def test_highs_stops_early(name, monkeypatch):
    C = np.random.default_rng(1).normal(size=(3, D))
    region = LINEAR[name]()
    region.argmin(C)
    broken_highs(monkeypatch, status=highspy.HighsModelStatus.kTimeLimit)
    with pytest.raises(RuntimeError, match=f"HiGHS stopped without an optimal decision for {FIRST}: Time limit"):
        region.argmin(C)


def test_the_cost_of_integers_is_what_highs_says(monkeypatch):
    region = LINEAR["integers"]()
    C = np.random.default_rng(1).normal(size=(3, D)) - 1.0
    region.argmin(C)
    for name in ("objective_function_value", "mip_dual_bound"):

        def wrong(real, name=name):
            fake = {key: getattr(real, key) for key in ("objective_function_value", "mip_dual_bound")}
            return SimpleNamespace(**{**fake, name: fake[name] - 0.5})

        broken_highs(monkeypatch, info=wrong)
        with pytest.raises(RuntimeError, match=r"HiGHS failed at row 0.*the decision costs .* but HiGHS says"):
            region.argmin(C)


def test_a_failing_oracle_leaves_an_earlier_model(monkeypatch):
    X, C = data()
    model = SPOPlusRegressor(LINEAR["polyhedron"]()).fit(X, C)
    before = model.coef_.copy()
    broken_highs(monkeypatch, WRONG["zero"], after=30)
    with pytest.raises(RuntimeError, match="HiGHS"):
        model.fit(X + 1.0, C)
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("fault", ["raises", "stops", "outside", "equalities"])
def test_the_inside_of_a_polyhedron(fault, monkeypatch):
    """The relative interior comes from one linear program of SciPy, in which decisions are not believed either."""
    module = skspo.regions.polyhedral
    real = module.linprog

    def broken(*args, **kwargs):
        if fault == "raises":
            raise OSError("disk on fire")
        res = real(*args, **kwargs)
        if fault == "stops":
            res.x, res.status = None, 1
        elif fault == "outside":
            res.x[:D] += 100.0 * res.x[-1]
        else:
            res.x[D:-1] = 0.0  # nothing can be strict
        return res

    monkeypatch.setattr(module, "linprog", broken)
    region = LINEAR["polyhedron"]()
    with pytest.raises((RuntimeError, OSError), match=r"HiGHS|disk"):
        region.equalities(D)


# -- regions whose oracle is Clarabel ----------------------------------------------------------------------------------

RealClarabel = clarabel.DefaultSolver


class BrokenClarabel:
    """Clarabel with a fault in every ``every``-th solution."""

    fault, every, count = None, 1, 0

    def __init__(self, *args):
        self.real = RealClarabel(*args)

    def update(self, **kwargs):
        self.real.update(**kwargs)

    def solve(self):
        cls = type(self)
        cls.count += 1
        real = self.real.solve()
        found = SimpleNamespace(
            x=np.array(real.x), z=np.array(real.z), s=np.array(real.s), status=real.status, iterations=real.iterations
        )
        if cls.count % cls.every == 0:
            cls.fault(found)
        return found


def set_x(make):
    def spoil(found):
        found.x = make(found.x)

    return spoil


def set_s(found):
    found.x, found.s = found.x + 1.0, -found.s


def set_z(make):
    def spoil(found):
        found.z = make(found.z)

    return spoil


def panic(found):
    raise PanicException("called unwrap on a None")


def stop(found):
    found.status = "MaxTime"


CLARABEL_FAULTS = {
    "moved": set_x(lambda x: x + 0.05),
    "mirrored": set_x(lambda x: x[::-1].copy()),
    "average": set_x(lambda x: np.full_like(x, x.mean())),
    "nan": set_x(lambda x: x * np.nan),
    "empty": set_x(lambda x: x[:0]),
    "none": set_x(lambda x: None),
    "wrong duals": set_z(lambda z: z + 0.5),
    "opposite duals": set_z(lambda z: -z),
    "no duals": set_z(lambda z: 0.0 * z),
    "wrong slacks": set_s,
    "panic": panic,
    "time": stop,
}

CONES = {
    "soc": lambda: CvxpyRegion(ball, D),
    "markowitz": lambda: Markowitz(np.diag([1.0, 2.0, 3.0, 4.0]), 0.6, sense="max"),
    "exp": lambda: CvxpyRegion(lambda w: [cp.sum(cp.entr(w)) >= 1.0, cp.sum(w) == 1], D),
    "pow": lambda: CvxpyRegion(lambda w: [cp.norm(w - 0.2, 1.5) <= 1.0], D),
    "psd": lambda: CvxpyRegion(lambda w: [cp.lambda_max(cp.diag(w) + np.ones((D, D))) <= 5, w >= -1], D),
}


@pytest.mark.parametrize("fault", CLARABEL_FAULTS)
@pytest.mark.parametrize("name", CONES)
def test_decisions_of_clarabel_are_right_or_an_error(name, fault, monkeypatch):
    monkeypatch.setattr(portfolio, "ITERATIONS", 0)  # of Markowitz, which then leaves all rows to Clarabel
    C = np.random.default_rng(2).normal(size=(6, D))
    region = CONES[name]()
    truth = region.argmin(C)
    broken = type("Broken", (BrokenClarabel,), {"fault": staticmethod(CLARABEL_FAULTS[fault])})
    monkeypatch.setattr(clarabel, "DefaultSolver", broken)
    with pytest.raises(RuntimeError, match=r"Clarabel.*row 0"):
        region.argmin(C)
    # A second attempt helps if only the first one fails.
    broken.every, broken.count = 2, 1
    np.testing.assert_allclose((C * region.argmin(C)).sum(axis=1), (C * truth).sum(axis=1), atol=1e-5)


@pytest.mark.parametrize("fault", CLARABEL_FAULTS)
def test_repair_by_clarabel_ends_inside_or_in_an_error(fault, monkeypatch):
    region = CONES["soc"]()
    W = np.random.default_rng(2).normal(size=(6, D))
    region.repair(W)
    broken = type("Broken", (BrokenClarabel,), {"fault": staticmethod(CLARABEL_FAULTS[fault])})
    monkeypatch.setattr(clarabel, "DefaultSolver", broken)
    try:
        inside = region.repair(W)
    except RuntimeError as error:
        assert "Clarabel could not move the decision of row" in str(error)
    else:
        assert (inside >= -1e-7).all()
        np.testing.assert_allclose(inside.sum(axis=1), 1.0, atol=1e-7)
        assert (np.linalg.norm(inside, axis=1) <= 0.8 + 1e-7).all()


def test_a_fit_with_a_failing_clarabel_says_so(monkeypatch):
    X, C = data()
    model = SPOPlusRegressor(CONES["markowitz"]())
    broken = type("Broken", (BrokenClarabel,), {"fault": staticmethod(CLARABEL_FAULTS["moved"])})
    monkeypatch.setattr(clarabel, "DefaultSolver", broken)
    with pytest.raises(RuntimeError, match="Clarabel calls a decision for the smallest risk optimal, but it violates"):
        model.fit(X, C)
    assert not hasattr(model, "coef_")


def test_cones_by_hand():
    """Membership against points whose side is known; the duals by their definition, on random points of the cones."""
    rng = np.random.default_rng(0)
    n = 400
    points = {
        ("nonneg", 3): np.abs(rng.normal(size=(n, 3))),
        ("soc", 3): np.column_stack([np.full(n, 2.0), *(rng.uniform(-1, 1, size=(2, n)))]),
        ("exp", None): np.column_stack(
            [x := rng.normal(size=n), y := rng.uniform(0.1, 2, n), y * np.exp(x / y) + rng.uniform(0, 1, n)]
        ),
        ("pow", 0.3): np.column_stack(
            [x := rng.uniform(0, 2, n), y := rng.uniform(0, 2, n), x**0.3 * y**0.7 * rng.uniform(-1, 1, n)]
        ),
        ("genpow", (0.2, 0.8)): np.column_stack(
            [x := rng.uniform(0, 2, n), y := rng.uniform(0, 2, n), x**0.2 * y**0.8 * rng.uniform(-1, 1, n)]
        ),
    }
    roots = rng.normal(size=(n, 2, 2))
    squares = roots @ roots.transpose(0, 2, 1)
    points["psd", 2] = np.column_stack([squares[:, 0, 0], np.sqrt(2) * squares[:, 0, 1], squares[:, 1, 1]])
    tol = np.full(n, 1e-9)
    for cone, S in points.items():
        assert rows_inside([cone], S, tol).all(), cone
        # Anything with a negative product with a point of the cone is not in the dual, and nothing else is kept out.
        Z = rng.normal(size=(n, S.shape[1]))
        products = S @ Z.T
        dual = rows_inside([cone], Z, tol, dual=True)
        assert (products[:, dual] >= -1e-6).all(), cone
        assert dual.sum() > 10, cone
        assert (products[:, ~dual] < 0).any(axis=0).mean() > 0.7, cone
        # And a point that has a negative product with some dual is outside.
        outside = (Z @ Z[dual].T < -1e-6).any(axis=1)
        assert not rows_inside([cone], Z[outside], tol[: outside.sum()]).any(), cone
    assert rows_inside([("zero", 2)], np.array([[0.0, 0.0], [0.0, 1e-3]]), np.full(2, 1e-6)).tolist() == [True, False]


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
    assert 0 < truth.lower_bound_ <= lowest * (1 + 1e-9)
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
    assert model.lower_bound_ <= truth.objective_ * (1 + 1e-9)
    assert truth.lower_bound_ <= model.objective_ * (1 + 1e-9)
    assert model.objective_ == pytest.approx(spo_loss(C, model.predict(X), Simplex()), abs=1e-9)
    told = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert bool(told) == (model.duality_gap_ > 1e-6)
    if fault == "bound":
        assert "The lower bound of the milp solver was wrong: a known model has" in str(told[0].message)
        assert "lower_bound_ holds" not in str(told[0].message)
    if fault == "raises":
        assert "OSError: disk on fire" in str(told[0].message)
        start = SPOPlusRegressor(Simplex()).fit(X, C)
        assert model.objective_ == pytest.approx(spo_loss(C, start.predict(X), Simplex()))


def test_vertices_do_not_depend_on_the_word_of_a_solver(monkeypatch):
    # A region whose lifted form has vertices that are none of its own.
    region = check_region(LINEAR["polyhedron"](), D)
    truth = skspo.solvers.spo.milp.list_vertices(region, D)
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2]])
    assert [skspo.solvers.spo.milp._is_extreme(points, i) for i in range(4)] == [True, True, True, False]
    monkeypatch.setattr(skspo.solvers.spo.milp, "linprog", lambda *a, **k: SimpleNamespace(x=None, status=4))
    assert skspo.solvers.spo.milp._is_extreme(points, 3)  # too many are harmless
    monkeypatch.setattr(skspo.solvers.spo.milp, "linprog", lambda *a, **k: SimpleNamespace(x=np.ones(3), status=0))
    assert skspo.solvers.spo.milp._is_extreme(points, 0)  # no weights, no proof
    assert len(truth) > 4
