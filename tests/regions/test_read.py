"""read_region against the solvers of the packages that made the models, and against scipy.optimize.milp."""

import pickle
import warnings

import cvxpy as cp
import highspy
import numpy as np
import pytest
import scipy.sparse as sp
from model_sources import (
    COST,
    INTEGER,
    MPS,
    NAMES,
    SOURCES,
    XS,
    cvxpy_model,
    highs_model,
    in_order,
    linopy_model,
    pyomo_model,
    scipy_arguments,
    truth,
    write,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint
from sklearn.base import clone

import skspo as sk
from skspo import read_region


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_region(name, tmp_path):
    make, names, sense = SOURCES[name]
    region, objective = read_region(make(tmp_path), return_objective=True)
    columns = in_order(region, name)
    assert type(region) is sk.MixedInteger
    assert region.sense == sense
    if names is not None:
        assert sorted(region.names()) == sorted(names)
    assert_allclose(objective[columns], COST if sense == "max" else -COST)
    sign = -1.0 if sense == "max" else 1.0
    C = np.random.default_rng(0).normal(size=(12, 6))
    costs = np.tile(objective, (12, 1))  # other columns, such as the constant of a file, keep their cost
    costs[:, columns] = C
    W = region.argmin(costs)[:, columns]
    assert_allclose((C * W).sum(axis=1), [truth(c, sign=sign) for c in C], atol=1e-6)
    assert_array_equal(W[:, 3:5], W[:, 3:5].round())
    assert objective @ region.argmin(objective) == pytest.approx(sign * truth(-COST) + 7.0 * (objective.size > 6))
    again = pickle.loads(pickle.dumps(clone(region)))
    assert_array_equal(again.argmin(costs[:2])[:, columns], W[:2])


@pytest.mark.parametrize("name", ["highspy", "scipy", "cvxpy", "pyomo", "linopy"])
def test_models_without_integers_are_polyhedra(name):
    make = {
        "highspy": lambda: highs_model(0 * INTEGER), "scipy": lambda: scipy_arguments(None),
        "cvxpy": lambda: cvxpy_model(False), "pyomo": lambda: pyomo_model(False), "linopy": lambda: linopy_model(False),
    }  # fmt: skip
    region, objective = read_region(make[name](), return_objective=True)
    assert type(region) is sk.Polyhedron
    C = np.random.default_rng(1).normal(size=(12, 6))
    columns, sign = in_order(region, name), -1.0 if region.sense == "max" else 1.0
    W = region.argmin(C[:, np.argsort(columns)])[:, columns]
    assert_allclose((C * W).sum(axis=1), [truth(c, None, sign) for c in C], atol=1e-7)
    assert objective @ region.argmin(objective) == pytest.approx(sign * truth(-COST, None))


def test_the_optimum_of_other_solvers():
    problem = cvxpy_model()
    problem.solve(solver=cp.HIGHS)
    region, objective = read_region(problem, return_objective=True)
    assert objective @ region.argmin(objective) + 7 == pytest.approx(problem.value)
    highs = highs_model()
    highs.run()
    assert highs.getObjectiveValue() == pytest.approx(problem.value)
    region, objective = read_region(highs, return_objective=True)  # also after a run
    assert objective @ region.argmin(objective) + 7 == pytest.approx(problem.value)


@pytest.mark.parametrize("name", ["pyomo", "linopy"])
def test_the_optimum_of_modeling_packages(name):
    if name == "pyomo":
        model, pyo = pyomo_model(), pytest.importorskip("pyomo.environ")
        solver = pyo.SolverFactory("appsi_highs")
        if not solver.available(exception_flag=False):
            pytest.skip("Pyomo has no HiGHS")
        solver.solve(model)
        best = pyo.value(model.profit) - 7.0
    else:
        model = linopy_model()
        model.solve("highs", io_api="direct", output_flag=False)
        best = model.objective.value
    region, objective = read_region(model, return_objective=True)
    assert objective @ region.argmin(objective) == pytest.approx(best)


# -- which costs are predicted -----------------------------------------------------------------------------------------


def test_known_costs_of_the_other_variables():
    region, objective = read_region(highs_model(), ["s", "x1"], return_objective=True)
    assert type(region) is sk.LinearImage and region.sense == "max"
    assert list(region.names()) == ["s", "x1", "known cost"]
    assert_array_equal(region.known_cost, COST * [1, 0, 1, 1, 1, 0])
    assert_array_equal(objective, [5, 2, 1])
    assert objective @ region.argmin(objective) == pytest.approx(-truth(-COST))
    C = np.random.default_rng(0).normal(size=(8, 2))
    for c in C:
        full = COST.copy()
        full[[5, 1]] = c
        w, z = region.argmin(region.extend(c)), region.inner_argmin(region.extend(c))
        assert region.extend(c) @ w == pytest.approx(truth(full, sign=-1.0))
        assert_allclose(w, [z[5], z[1], region.known_cost @ z], atol=1e-12)


def test_without_other_costs_there_is_no_known_cost():
    constraints = cvxpy_model().constraints
    region = read_region(constraints, "x")
    assert list(region.names()) == XS[:3]
    assert region.known_cost is None and region.n_dim == 3 and region.sense == "min"
    c = np.array([1.0, -1.0, 0.5])
    assert c @ region.argmin(c) == pytest.approx(truth(np.append(c, [0, 0, 0])))


def test_variables_by_name_group_number_and_object():
    model = cvxpy_model()
    x, s = (next(v for v in model.variables() if v.name() == name) for name in ("x", "s"))
    expected = read_region(model, [*XS[:3], "s"]).matrix.toarray()
    for variables in (["x", "s"], [x, s], [0, 1, 2, "s"], ("x", s), np.array(["x", "s"])):
        assert_array_equal(read_region(model, variables).matrix.toarray(), expected)
    assert_array_equal(read_region(model, x).matrix.toarray(), expected[:3])
    assert_array_equal(read_region(model, "x[1]").matrix.toarray(), expected[1:2])
    assert_array_equal(read_region(scipy_arguments(), 2).matrix.toarray(), np.eye(6)[2:3])
    assert read_region(highs_model(), reversed(NAMES)).argmin([5, 0, 1, -1, 2, 3]) @ COST[::-1] == pytest.approx(
        -truth(-COST)
    )


def test_variables_of_highspy():
    highs = highspy.Highs()
    highs.silent()
    x, y = highs.addVariable(0, 4), highs.addIntegral(0, 3, name="y")
    highs.addConstr(x + y <= 5)
    assert_array_equal(read_region(highs, [y, x]).matrix.toarray(), [[0, 1], [1, 0]])


def test_variables_of_pyomo_and_linopy():
    model = pyomo_model()
    expected = read_region(model, XS[:3]).matrix.toarray()
    assert_array_equal(read_region(model, model.x).matrix.toarray(), expected)
    assert_array_equal(read_region(model, [model.x[0], model.x[1], model.x[2]]).matrix.toarray(), expected)
    model = linopy_model()
    assert list(read_region(model, model.variables["x"]).names()) == [*XS[:3], "known cost"]


def test_train_on_a_model_with_known_costs():
    region, objective = read_region(highs_model(0 * INTEGER), ["x0", "x1"], return_objective=True)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    C = X @ rng.normal(size=(2, 2)) + 1.0 + rng.normal(size=(30, 2))
    model = sk.SPOPlusRegressor(region, alpha=0.1).fit(X, region.extend(C), offset=region.offset)
    assert model.duality_gap_ <= 1e-6
    W = model.decide(X, offset=region.offset)
    C_hat = model.predict(X, offset=region.offset)
    best = [truth(c[0] * np.eye(6)[0] + c[1] * np.eye(6)[1] + c[2] * region.known_cost, None, -1.0) for c in C_hat]
    assert_allclose((C_hat * W).sum(axis=1), best, atol=1e-6)
    # As differences from the costs of the model: at least as good as its own decision.
    model = sk.SPOPlusRegressor(region).fit(X, region.extend(C), offset=objective)
    own = sk.SPOPlusLoss(region).value(region.extend(C), np.tile(objective, (30, 1))).mean()
    assert model.objective_ <= own + 1e-9


def test_blocks_references_and_parameters_of_pyomo():
    pyo = pytest.importorskip("pyomo.environ")
    m = pyo.ConcreteModel()
    m.goods = pyo.Set(initialize=["a", "b"])
    m.price = pyo.Param(m.goods, mutable=True, initialize={"a": 1, "b": 2})
    m.x = pyo.Var(m.goods, bounds=lambda m, i: (0, 1 + m.price[i]))
    m.same = pyo.Reference(m.x["a"])
    m.total = pyo.Expression(expr=sum(m.price[i] * m.x[i] for i in m.goods))
    m.rows = pyo.ConstraintList()
    m.rows.add(m.total <= 4)
    m.rows.add(m.x["a"] - m.x["b"] == 0.5 * m.x["a"] - 1)
    m.some = pyo.Constraint(m.goods, rule=lambda m, i: pyo.Constraint.Skip if i == "a" else m.x[i] <= 2)
    m.block = pyo.Block(m.goods, rule=lambda b, i: setattr(b, "v", pyo.Var(domain=pyo.Integers, bounds=(-3, 3))))
    m.least = pyo.Objective(expr=m.total + m.block["a"].v / 2)
    region, objective = read_region(m, return_objective=True)
    assert list(region.names()) == ["x[a]", "x[b]", "block[a].v", "block[b].v"]
    assert_array_equal(objective, [1, 2, 0.5, 0])
    assert_array_equal(region.A_ub.toarray(), [[1, 2, 0, 0], [0, 1, 0, 0]])
    assert_array_equal(region.b_ub, [4, 2])
    assert_array_equal([*region.A_eq.toarray()[0], *region.b_eq], [0.5, -1, 0, 0, -1])
    assert_array_equal(region.bounds, [[0, 2], [0, 3], [-3, 3], [-3, 3]])


# -- CVXPY -------------------------------------------------------------------------------------------------------------


def cone_problem():
    x, t = cp.Variable((2, 2), name="x", nonneg=True), cp.Variable(name="t", nonpos=True)
    covariance = cp.Variable((2, 2), PSD=True, name="P")
    objective = cp.Maximize(cp.sum(cp.multiply(np.array([[1.0, 2.0], [3.0, 4.0]]), x)) + t - cp.trace(covariance))
    limits = [cp.norm(x, "fro") <= 2, cp.sum(x) + t <= 2, t >= -1, covariance[0, 1] == 0.5, cp.trace(covariance) <= 3]
    return cp.Problem(objective, limits)


def test_cones():
    problem = cone_problem()
    problem.solve(solver=cp.CLARABEL)
    region, objective = read_region(problem, return_objective=True)
    assert type(region) is sk.CvxpyRegion
    assert list(region.names()) == ["x[0,0]", "x[0,1]", "x[1,0]", "x[1,1]", "t", "P[0,0]", "P[0,1]", "P[1,0]", "P[1,1]"]
    w = region.argmin(objective)
    assert objective @ w == pytest.approx(problem.value, abs=1e-6)
    assert_allclose(w, np.concatenate([v.value.ravel() for v in problem.variables()]), atol=1e-4)
    again = pickle.loads(pickle.dumps(clone(region)))
    assert_allclose(again.argmin(objective), w, atol=1e-8)
    some, own = read_region(problem, ["x"], return_objective=True)
    assert own @ some.argmin(own) == pytest.approx(problem.value, abs=1e-6)
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(15, 2)), some.extend(rng.normal(size=(15, 4)))
    assert sk.SPOPlusRegressor(some, alpha=0.1).fit(X, C, offset=some.offset).duality_gap_ <= 1e-5


def test_variables_of_a_problem_are_not_changed():
    problem = cone_problem()
    before = [v.id for v in problem.variables()]
    read_region(problem)
    assert [v.id for v in problem.variables()] == before
    assert all(v.value is None for v in problem.variables())


def test_bounds_and_parameters_of_cvxpy():
    most = cp.Parameter(2, value=[3.0, 4.0])
    x = cp.Variable((2, 1), bounds=[np.array([[-1.0], [0.5]]), 9.0], name="x")
    y = cp.Variable(3, integer=[(0, 2)], name="y")
    region = read_region([most @ x <= 10, 2 * y <= 5, x[0] == 1, y >= 0])
    assert list(region.names()) == ["x[0,0]", "x[1,0]", "y[0]", "y[1]", "y[2]"]
    assert_array_equal(region.integrality, [0, 0, 1, 0, 1])
    assert_array_equal(region.bounds, [[1, 1], [0.5, 9], [0, 2.5], [0, 2.5], [0, 2.5]])
    assert_allclose(region.argmin(-np.ones(5)), [1, 1.75, 2, 2.5, 2])


def test_matrices_and_broadcasting_of_cvxpy():
    x, y = cp.Variable((2, 3), name="x"), cp.Variable(3, name="y")
    most = np.arange(6.0).reshape(2, 3)
    limits = [x >= -1, x <= most, cp.sum(x, axis=0) <= y, y <= 4, -2 <= y, cp.hstack([x[0, 0], y[1]]) == [0.0, 1.0]]
    limits += [cp.Constant(1) <= 2]
    region = read_region(limits)
    assert type(region) is sk.Polyhedron and region.A_ub.shape == (4, 9)  # three sums and the constant
    for c in np.random.default_rng(0).normal(size=(5, 9)):
        problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(c[:6].reshape(2, 3), x)) + c[6:] @ y), limits)
        problem.solve(solver=cp.HIGHS)
        assert c @ region.argmin(c) == pytest.approx(problem.value, abs=1e-7)
    with pytest.raises(sk.InfeasibleRegionError):
        read_region([*limits, cp.Constant(3) <= 2])


# -- files and lists ---------------------------------------------------------------------------------------------------


def test_scipy_lists():
    limit = LinearConstraint([1, 2, 4], ub=6)
    for source in (limit, [limit], (limit, Bounds(0, np.inf)), {"A_ub": [[1, 2, 4]], "b_ub": [6]}):
        assert_array_equal(read_region(source).argmin([-1.0, -1.0, -1.0]), [6, 0, 0])
    assert_array_equal(read_region(Bounds([0, 1], 2)).argmin([1.0, -1.0]), [0, 2])
    region, objective = read_region({"c": [1, -1, 0], "bounds": (0, 5)}, return_objective=True)
    assert_array_equal(region.argmin(objective)[:2], [0, 5])
    assert read_region({"c": [1, -1, 0], "bounds": Bounds(0, 5), "integrality": 1}).n_dim == 3


def test_a_model_without_names():
    region = read_region(highs_model(names=[]))
    assert region.variable_names is None
    some = highs_model(names=[])
    some.passColName(0, "first")
    assert list(read_region(some).names()) == ["first", *(f"column {j}" for j in range(1, 6))]


def test_what_highs_ignores_is_a_warning(tmp_path):
    path = write(tmp_path, "a.mps", MPS.replace("x obj 1 c1", "x obj 1 c7"))
    with pytest.warns(UserWarning, match='HiGHS read .*a.mps.*"c7" in COLUMNS section is not defined: ignored'):
        read_region(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_region(write(tmp_path, "b.mps", MPS))


def test_large_sparse_models_stay_sparse():
    d = 3000
    chain = sp.diags_array([np.ones(d), np.ones(d - 1)], offsets=[0, 1])
    region = read_region({"c": np.ones(d), "constraints": LinearConstraint(chain, ub=1), "bounds": Bounds(0, 1)})
    image = read_region({"c": np.ones(d), "constraints": LinearConstraint(chain, ub=1), "bounds": Bounds(0, 1)}, [0, 7])
    assert sp.issparse(region.inequality_form(d).A_ub) and sp.issparse(image.matrix)
    assert_array_equal(image.argmin(image.extend([-1.0, -1.0])), [1, 1, 0])


def test_scaling_of_linopy_is_undone():
    linopy = pytest.importorskip("linopy")
    m = linopy.Model()
    if "scaling" not in m.add_variables.__code__.co_varnames:
        pytest.skip("this version of linopy does not scale")
    x = m.add_variables(lower=0, upper=3, name="x", scaling=10.0)
    y = m.add_variables(lower=-1, upper=5, name="y")
    m.add_constraints(x + 2 * y <= 4, scaling=7.0)
    m.add_objective(3 * x - 2 * y, scaling=5.0)
    region, objective = read_region(m, return_objective=True)
    assert_array_equal(objective, [3, -2])
    assert_allclose(region.argmin([[-1.0, -1.0], [-1.0, -3.0]]), [[3, 0.5], [0, 2]])
    assert_allclose(region.bounds, [[0, 3], [-1, 5]])
