"""Products are trained one factor at a time: optima and bounds are those of the whole problem."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from solver_problems import PENALTIES

from skspo import (
    Box,
    EntropySimplex,
    Knapsack,
    Markowitz,
    OracleRegion,
    Product,
    ShortestPath,
    Simplex,
    SPOPlusLoss,
    SPOPlusRegressor,
    TopK,
)
from skspo._training.in_memory import InMemoryObjective
from skspo._training.objective import Bound
from skspo._training.run import Run
from skspo._utils.limits import Deadline
from skspo.regions import simplex
from skspo.solvers import BundleSolver, ConicSolver, InteriorPointSolver, Status, choose_solvers
from skspo.solvers.auto import SolverOptions
from skspo.solvers.driver import minimize
from skspo.solvers.product import combined_bound, factors_of


def data(d, n=60, p=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=(p, d)) + rng.normal(size=(n, d))


def objective_of(region, d, **params):
    X, C = data(d)
    return InMemoryObjective(SPOPlusLoss(region), X, C, **params)


def solve(objective, run=None, start=None, **params):
    return minimize(objective, run or Run(), SolverOptions(**params), start)[0]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(simplex, "BLOCK", 3)


LOWER, UPPER = -np.arange(1.0, 9.0), np.array([0.0, 1.0, -3.0, 2.0, 1.0, 0.0, 1.0, 5.0])  # the third is fixed


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("params", PENALTIES, ids=str)
@pytest.mark.parametrize(
    "region", [Box(), Box(-1.0, 2.0, sense="max"), Box(LOWER, UPPER)], ids=["unit", "max", "arrays"]
)
def test_boxes(region, params):
    X, C = data(8)
    weight, offset = np.random.default_rng(1).uniform(0.5, 2.0, size=60), 0.3 * np.roll(C, 1, axis=1)
    for more in ({}, {"sample_weight": weight, "offset": offset}):
        parts = SPOPlusRegressor(region, **params).fit(X, C, **more)
        objective = objective_of(region, 8, **more, **params)
        whole = InteriorPointSolver().solve(objective, Run())
        assert whole.gap <= 1e-6 and parts.duality_gap_ <= 1e-6
        assert_allclose(parts.objective_, whole.objective * objective.scale, rtol=2e-6)
        assert parts.lower_bound_ <= whole.objective * objective.scale * (1 + 1e-9)
        assert parts.certificate_radius_ >= 1e4


PRODUCTS = {
    "polyhedra": Product([Simplex(), TopK(2), Box()], [3, 4, 2]),
    "values": Product([Knapsack([3, 4, 5], 7, integer=False), Box(-1, 1, sense="max")], [3, 2], sense="max"),
    "smooth": Product([EntropySimplex(), Simplex()], [4, 3]),
    "risk": Product([Markowitz(np.eye(4) + 0.2, 0.6), ShortestPath.grid(2, 2)]),
    "nested": Product([Product([Simplex(), Simplex()], [2, 3]), Box()], [5, 3]),
}


@pytest.mark.parametrize("params", [PENALTIES[0], PENALTIES[1], PENALTIES[4]], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, params):
    region = PRODUCTS[name]
    X, C = data(sum(columns.size for columns, _ in region.blocks(region.n_dim)))
    objective = objective_of(region, C.shape[1], **params)
    conic = ConicSolver().solve(objective, Run())  # the whole
    for solver in ("auto", "bundle", ConicSolver()):
        parts = SPOPlusRegressor(region, solver=solver, **params).fit(X, C)
        # The value of each is an upper bound of the optimum, and the other's bound is below it.
        assert parts.lower_bound_ <= conic.objective * objective.scale * (1 + 1e-9)
        assert conic.lower_bound * objective.scale <= parts.objective_ * (1 + 1e-9)
        assert_allclose(parts.objective_, conic.objective * objective.scale, rtol=1e-4)
        if solver == "auto":
            assert parts.duality_gap_ <= 1e-6 and (np.diff(parts.history_["n_iter"]) >= 0).all()


def test_solvers_are_those_of_the_factors():
    """A solver has to serve the factors, not the product."""
    region = Product([EntropySimplex(), EntropySimplex()], [3, 4])
    X, C = data(7)
    for solver in ("lbfgs", "newton", "dual"):
        model = SPOPlusRegressor(region, alpha=0.1, solver=solver).fit(X, C)
        assert model.solver_ == solver and model.duality_gap_ <= 1e-6
    with pytest.raises(ValueError, match="cannot serve the region EntropySimplex"):
        SPOPlusRegressor(region, solver="interior-point").fit(X, C)


def test_sparse_features():
    region = Product([Simplex(), TopK(2)], [3, 4])
    X, C = data(7, p=5)
    X[np.abs(X) < 1.0] = 0.0
    dense = SPOPlusRegressor(region, alpha=0.1, solver="dual").fit(X, C)
    sparse = SPOPlusRegressor(region, alpha=0.1, solver="dual").fit(csr_array(X), C)
    assert dense.duality_gap_ <= 1e-6 and sparse.duality_gap_ <= 1e-6


def test_a_user_solver_gets_the_whole_problem():
    class Mine(BundleSolver):
        name = "mine"

        def solve(self, objective, run, start=None):
            shapes.append(objective.shape)
            return super().solve(objective, run, start)

    shapes = []
    X, C = data(7)
    model = SPOPlusRegressor(Product([Simplex(), Simplex()], [3, 4]), alpha=0.1, solver=Mine()).fit(X, C)
    assert model.solver_ == "mine" and len(shapes) == 1 and shapes[0][0] == 7


def test_integer_regions():
    region = Product([Knapsack([3, 4, 5, 2], 7, sense="min"), Simplex()], [4, 3])
    X, C = data(7)
    parts = SPOPlusRegressor(region, alpha=0.05).fit(X, C)
    objective = objective_of(region, 7, alpha=0.05)
    whole = BundleSolver().solve(objective, Run())
    assert parts.duality_gap_ <= 1e-6 and whole.gap <= 1e-6
    assert_allclose(parts.objective_, whole.objective * objective.scale, rtol=2e-6)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("params", PENALTIES, ids=str)
def test_objectives_of_blocks_add_up(params):
    rng = np.random.default_rng(0)
    for region, d in ((Box(LOWER, UPPER), 8), (PRODUCTS["polyhedra"], 9)):
        objective = objective_of(region, d, **params)
        blocks = factors_of(objective)
        assert_array_equal(np.sort(np.concatenate([columns for columns, _ in blocks])), np.arange(d))
        Theta = objective.canonical(rng.normal(size=objective.shape))
        parts = [block.value(Theta[columns]) for columns, block in blocks]
        assert_allclose(sum(parts), objective.value(Theta), rtol=1e-12)
        trivial = sum(block.trivial_value() for _, block in blocks)
        assert_allclose(trivial, objective.trivial_value(), rtol=1e-12)
        V = region.solve_min(rng.normal(size=(60, d)))
        if objective.alpha > 0 and params.get("prior") == "least_squares":
            bounds = [block.dual_value(V[:, columns], Theta[columns]).value for columns, block in blocks]
            if objective.l2.all():
                assert_allclose(sum(bounds), objective.dual_value(V, Theta).value, rtol=1e-10)


def test_a_shared_model_is_one_block():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(50, 8)), rng.normal(size=(50, 4))
    region = Product([Simplex(), Simplex()], [2, 2])
    objective = InMemoryObjective(SPOPlusLoss(region), X, C, shared=True)
    assert factors_of(objective) == []
    assert_allclose(solve(objective).objective, InteriorPointSolver().solve(objective, Run()).objective, rtol=1e-5)


def test_what_is_split():
    assert len(factors_of(objective_of(Box(), 41))) == 3
    # A small box is one problem, and has a solver of its own, which cannot handle an l1 penalty.
    assert factors_of(objective_of(Box(), 20)) == []
    assert choose_solvers(objective_of(Box(), 20))[0] == "intervals"
    assert "intervals" not in choose_solvers(objective_of(Box(), 20, alpha=0.1, l1_ratio=0.5))
    assert factors_of(objective_of(Product([Simplex()], [4]), 4)) == []
    rows = np.random.default_rng(0).uniform(size=(60, 41))
    region = Box().with_rows({"upper": 1.0 + rows}, 60, 41)
    assert factors_of(objective_of(region, 41)) == []
    assert "intervals" not in choose_solvers(objective_of(region, 41))
    X, C = data(5)
    with pytest.raises(ValueError, match=r"'intervals'.*blocks"):
        SPOPlusRegressor(Simplex(), solver="intervals").fit(X, C)
    with pytest.raises(ValueError, match="'intervals' is for boxes"):
        SPOPlusRegressor(Box(), solver="intervals", shared=True).fit(X @ np.ones((2, 5)), C)


def test_bounds_that_do_not_hold_far_enough_are_dropped():
    bounds = [Bound(1.0, np.inf), Bound(2.0, 30.0), Bound(4.0, 50.0)]
    assert combined_bound(bounds, 20.0) == Bound(7.0, 30.0)
    assert combined_bound(bounds, 40.0) == Bound(5.0, 50.0)
    assert combined_bound(bounds, 60.0) == Bound(1.0, np.inf)


@pytest.mark.usefixtures("small_blocks")
def test_the_bound_holds_within_its_radius():
    """No model near or far, within the radius, is below the bound; blocks are solved badly on purpose."""
    rng = np.random.default_rng(0)
    for max_iter in (1, 3, 6):
        objective = objective_of(Box(-1.0, 1.0), 8)
        result = solve(objective, solver="intervals", max_iter=max_iter, tol=1e-12)
        assert result.radius >= objective.radius(result.coef)
        best = InteriorPointSolver(tol=1e-9).solve(objective, Run())
        assert result.lower_bound <= best.objective * (1 + 1e-9)
        for size in (1e-2, 1.0, 1e3):
            step = rng.normal(size=objective.shape)
            Theta = objective.least_squares + size * step / np.linalg.norm(step)
            assert objective.value(Theta) >= result.lower_bound * (1 - 1e-9)


@pytest.mark.usefixtures("small_blocks")
def test_start_history_and_limits(capsys):
    objective = objective_of(Box(), 8)
    run = Run()
    done = solve(objective, run, verbose=1)
    assert done.status is Status.CONVERGED and not done.message
    assert "product: iteration" in capsys.readouterr().err
    history = np.array([row[:4] for row in run.history])
    assert len(history) == 4 and (np.diff(history[:, 0]) >= 0).all() and (np.diff(history[:, 1]) >= 0).all()
    assert history[-1, 2] == done.objective and history[-1, 3] == done.lower_bound
    # On the way, factors that are not solved yet count as they were at the start.
    assert (history[:, 2] >= done.objective * (1 - 1e-9)).all()
    assert (history[:, 2] <= objective.value(objective.least_squares) * (1 + 1e-9)).all()
    again = solve(objective, start=done.coef)
    assert again.converged and again.objective <= done.objective * (1 + 1e-6)

    short = solve(objective, solver="intervals", max_iter=1, tol=1e-12)
    assert short.status is Status.ITERATION_LIMIT and short.message

    run = Run(Deadline(0.0))
    late = solve(objective, run, done.coef)
    assert run.deadline.reached and late.status is Status.TIME_LIMIT and "time_limit" in late.message
    assert_array_equal(late.coef, done.coef)
    assert late.lower_bound == 0.0


def test_blocks_without_loss():
    """A block of fixed decisions, and one whose costs are all the same."""
    X, C = data(6)
    C[:, 3:] = C[:, 3:4]
    region = Product([Box(1.0, 1.0), Box(), Simplex()], [1, 2, 3])
    model = SPOPlusRegressor(region).fit(X, C)
    assert model.duality_gap_ <= 1e-6
    alone = SPOPlusRegressor(Box()).fit(X, C[:, 1:3])
    assert_allclose(model.objective_, alone.objective_, rtol=1e-5)


def test_bundle_goes_on_where_interior_point_cannot():
    region = Product([OracleRegion(Simplex().argmin, 3), Simplex()], [3, 3])
    X, C = data(6)
    model = SPOPlusRegressor(region, alpha=0.1).fit(X, C)
    plain = Product([Simplex(), Simplex()], [3, 3])
    objective = InMemoryObjective(SPOPlusLoss(plain), X, C, alpha=0.1)
    assert model.duality_gap_ <= 1e-6
    assert_allclose(model.objective_, BundleSolver().solve(objective, Run()).objective * objective.scale, rtol=2e-6)
