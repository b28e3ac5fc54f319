"""Training against independent results: other programs, other solvers, brute force; and the certificate."""

import warnings

import numpy as np
import pytest
from problems import noisy_data, spo_plus_objective
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from solver_problems import (
    PENALTIES,
    SMOOTH,
    small_data,
)

from skspo import (
    Box,
    ChunkedData,
    EntropySimplex,
    Knapsack,
    L1Ball,
    LogBarrierSimplex,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOPlusLoss,
    SPOPlusRegressor,
    TopK,
    spo_plus_loss,
)
from skspo._training.in_memory import InMemoryObjective
from skspo._training.objective import Bound, lower_bound
from skspo._training.run import Derived, Run
from skspo._utils.limits import Deadline
from skspo.datasets import make_portfolio, make_shortest_path
from skspo.solvers import (
    SOLVERS,
    BundleSolver,
    ConicSolver,
    DualSolver,
    InteriorPointSolver,
    NewtonSolver,
    SGDSolver,
    choose_solvers,
)
from skspo.solvers.interior_point.solver import predicted_work as interior_point_work


@pytest.mark.slow
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("region", SMOOTH, ids=str)
def test_auto_closes_the_gap_on_smooth_regions(region, penalty):
    X, C = small_data(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = SPOPlusRegressor(region, **penalty).fit(X, C)
    assert model.duality_gap_ <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("region", [Simplex(), L1Ball(), EntropySimplex()], ids=str)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_any_decisions_prove_a_bound(region, alpha):
    """dual_value(V) never exceeds the optimum, for all decisions V (with alpha=0: within the stated radius)."""
    X, C = small_data(4)
    objective = InMemoryObjective(SPOPlusLoss(region), X, C, alpha=alpha)
    model = SPOPlusRegressor(region, alpha=alpha).fit(X, C)
    optimum = model.objective_ / objective.scale
    Theta = objective.from_user(model.coef_, model.intercept_)
    rng = np.random.default_rng(0)
    for _ in range(15):
        V = region.argmin(rng.normal(size=C.shape))
        assert objective.dual_value(V, Theta).value <= optimum * (1 + 1e-9)
        assert lower_bound(objective, V, Theta, Deadline()).value <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("region", [Simplex(), ShortestPath.grid(2, 3), TopK(2), EntropySimplex()], ids=str)
def test_hidden_components_are_set_by_least_squares(region):
    d = region.n_dim or 5
    X, C = small_data(d)
    model = SPOPlusRegressor(region).fit(X, C)
    ls = LinearRegression().fit(X, C)
    E = region.equalities(d)
    assert E.shape[0] >= 1
    np.testing.assert_allclose(E @ model.coef_, E @ ls.coef_, atol=1e-9)
    np.testing.assert_allclose(E @ model.intercept_, E @ ls.intercept_, atol=1e-9)
    # Moving that component changes no loss.
    shifted = model.predict(X) + np.random.default_rng(0).normal(size=(len(X), E.shape[0])) @ E
    np.testing.assert_allclose(spo_plus_loss(C, shifted, region), model.objective_, rtol=1e-9)


def test_large_alpha_with_least_squares_prior_is_least_squares():
    X, C = small_data(4)
    ls = LinearRegression().fit(X, C).predict(X)
    near = SPOPlusRegressor(Simplex(), alpha=1e9, prior="least_squares").fit(X, C)
    np.testing.assert_allclose(near.predict(X), ls, rtol=1e-6)
    exact = SPOPlusRegressor(Simplex()).fit(X, C).objective_
    far = SPOPlusRegressor(Simplex(), alpha=1e-9, prior="least_squares").fit(X, C)
    assert far.objective_ == pytest.approx(exact, rel=1e-6)
    zero = SPOPlusRegressor(Simplex(), alpha=1e9).fit(X, C)
    np.testing.assert_allclose(zero.coef_, 0.0, atol=1e-6)


@pytest.mark.parametrize("cost_scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("feature_scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("region", [Simplex(), EntropySimplex()], ids=str)
def test_units_do_not_matter(region, cost_scale, feature_scale):
    X, C = make_portfolio(60, 3, 5, degree=2, noise=0.5, random_state=0)
    base = SPOPlusRegressor(region).fit(X, C)
    model = SPOPlusRegressor(region).fit(X * feature_scale, C * cost_scale)
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(base.objective_ * cost_scale, rel=2e-6)


def test_maximization_is_one_sign():
    X, C = small_data(4)
    low = SPOPlusRegressor(Simplex(), alpha=0.1).fit(X, C)
    high = SPOPlusRegressor(Simplex(sense="max"), alpha=0.1).fit(X, -C)
    np.testing.assert_allclose(high.predict(X), -low.predict(X))
    np.testing.assert_array_equal(high.decide(X), low.decide(X))
    assert high.score(X, -C) == low.score(X, C)


def test_auto_tries_the_able_solvers_in_the_order_of_their_estimates():
    def auto(region, n=10, d=4, **params):
        X, C = small_data(d, n=n)
        objective = InMemoryObjective(SPOPlusLoss(region), X, C, **params)
        names = choose_solvers(objective)
        work = [SOLVERS[name].estimate(objective, Run()).work for name in names]
        assert work == sorted(work) and np.isfinite(work).all()
        return names

    assert set(auto(Simplex())) == {"interior-point", "conic", "bundle", "dual"}
    assert set(auto(EntropySimplex())) == {"lbfgs", "newton", "conic", "bundle", "dual"}
    assert "newton" not in auto(EntropySimplex(), alpha=0.1, l1_ratio=0.5)
    assert set(auto(Knapsack([1, 2, 3, 4], 5))) == {"interior-point", "conic", "bundle", "dual"}  # on the hull
    assert set(auto(Knapsack(np.arange(1, 31), 200), d=30)) == {"bundle", "dual"}  # too many packings for a list
    assert auto(Box(), d=30)[0] == "intervals" and "intervals" not in auto(Simplex())
    # A pass is slow if the oracle is a solver, and interior point hardly needs it.
    assert auto(Polyhedron([[1, 2, 3, 4]], [5], bounds=(0, 1)), n=8_000)[0] == "interior-point"
    assert auto(Simplex(), n=30_000)[0] == "bundle"
    names = {"lbfgs", "newton", "intervals", "interior-point", "conic", "bundle", "dual", "sgd"}
    assert set(SOLVERS) == names


def test_auto_leaves_out_what_does_not_fit_into_memory(monkeypatch):
    X, C = small_data(4, n=1000)
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), X, C)
    memory = SOLVERS["conic"].estimate(objective, Run()).memory
    assert "conic" in choose_solvers(objective)
    monkeypatch.setattr("skspo.solvers.auto.memory_of_machine", lambda: memory)
    assert "conic" not in choose_solvers(objective)


def test_oracles_that_are_solvers_are_asked_rarely(monkeypatch):
    """Interior point calls them for the optimal decisions, for its start, and for the certificate."""
    rows = []
    argmin = Polyhedron._argmin
    monkeypatch.setattr(Polyhedron, "_argmin", lambda self, C, data: rows.append(len(C)) or argmin(self, C, data))
    X, C = small_data(4, n=300)
    model = SPOPlusRegressor(Polyhedron([[1, 2, 3, 4]], [5], bounds=(0, 1)), solver="interior-point").fit(X, C)
    assert model.duality_gap_ <= 1e-6
    assert sum(rows) <= 5 * 300 < 300 * model.n_iter_


def test_exhausted_max_iter_gives_best_point_bound_and_warning():
    X, C = make_portfolio(100, degree=4, noise=0.5, random_state=0)
    exact = SPOPlusRegressor(EntropySimplex()).fit(X, C)
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .* max_iter=2"):
        model = SPOPlusRegressor(EntropySimplex(), solver="lbfgs", max_iter=2).fit(X, C)
    assert model.duality_gap_ > 1e-6
    assert model.lower_bound_ <= exact.objective_ * (1 + 1e-9) <= model.objective_ * (1 + 2e-9)


def test_verbose_prints_a_line(capsys):
    X, C = small_data(4)
    SPOPlusRegressor(EntropySimplex(), verbose=1).fit(X, C)
    assert "objective" in capsys.readouterr().err


def test_perfect_fit_has_zero_loss_and_a_small_gap():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    C = X @ rng.normal(size=(3, 5)) + 1.0
    model = SPOPlusRegressor(Simplex()).fit(X, C)
    assert model.objective_ == pytest.approx(0.0, abs=1e-8)
    assert model.duality_gap_ <= 1e-6
    assert model.score(X, C) == pytest.approx(0.0, abs=1e-8)


def test_more_features_than_samples_and_constant_columns():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(6, 10)), np.ones(6), np.zeros(6)])
    X = np.column_stack([X, X[:, 0]])
    C = rng.normal(size=(6, 4))
    for kwargs in ({}, {"alpha": 0.1}, {"fit_intercept": False}):
        model = SPOPlusRegressor(Simplex(), **kwargs).fit(X, C)
        assert model.duality_gap_ <= 1e-6
        assert np.isfinite(model.coef_).all()


def test_linprog_confirms_the_dual():
    """max sum c.(v - w) over v in S with the same feature moments is the optimum of training."""
    X, C = small_data(3, n=12)
    model = SPOPlusRegressor(Simplex(), tol=1e-9).fit(X, C)
    n, d = C.shape
    X1 = np.column_stack([X, np.ones(n)])
    W = Simplex().argmin(C)
    A_eq = np.vstack([np.kron(X1.T, np.eye(d)), np.kron(np.eye(n), np.ones((1, d)))])
    b_eq = np.concatenate([(X1.T @ W).ravel(), np.ones(n)])
    res = linprog(-C.ravel() / n, A_eq=A_eq, b_eq=b_eq)
    assert -res.fun - (C * W).sum() / n == pytest.approx(model.objective_, rel=1e-8)


@pytest.mark.parametrize("scale", [3.7, 1e40, 1e-40])
@pytest.mark.parametrize("region", [Simplex(), EntropySimplex(), LogBarrierSimplex(), TopK(2)], ids=str)
@pytest.mark.parametrize("params", [{}, {"alpha": 0.1, "prior": "least_squares"}, {"shared": True}], ids=str)
def test_costs_that_are_the_same_for_all_decisions(region, params, scale):
    """The differences are rounding errors, which are not fitted, and least squares predicts the costs."""
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(40, 10)), scale * rng.uniform(size=(40, 1)) * np.ones(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SPOPlusRegressor(region, **params).fit(X, C)
        chunked = SPOPlusRegressor(region, **params).fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=15))
    for m in (model, chunked):
        assert m.objective_ == 0
        assert m.duality_gap_ == 0
        np.testing.assert_allclose(m.predict(X).mean() / scale, C.mean() / scale)


def test_differences_of_costs_beside_a_large_common_cost():
    """They are fitted as long as they exceed rounding errors."""
    X, C = small_data(4)
    plain = SPOPlusRegressor(Simplex()).fit(X, C)
    model = SPOPlusRegressor(Simplex()).fit(X, C + 1e9)
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)


def test_a_bound_is_never_above_the_value():
    objective = spo_plus_objective(*noisy_data())
    objective.dual_value_from_moments = lambda constant, G, Theta: Bound(1e9, np.inf)
    for solver in (SGDSolver(max_iter=1, random_state=0), BundleSolver()):
        result = solver.solve(objective, Run())
        assert result.lower_bound == result.objective


@pytest.mark.parametrize(
    ("solver", "region"),
    [(InteriorPointSolver(max_iter=1), Simplex()), (NewtonSolver(max_iter=1), EntropySimplex())],
)
def test_never_worse_than_the_start(solver, region):
    objective = spo_plus_objective(*make_portfolio(12, 3, 4, degree=4, random_state=0), region)
    start = ConicSolver().solve(objective, Run()).coef
    assert solver.solve(objective, Run(), start).objective <= objective.value(start) * (1.0 + 1e-12)


def test_auto_uses_dual_for_many_coefficients():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(400, 400)), rng.normal(size=(400, 10))

    def auto(p=400, **params):
        return choose_solvers(InMemoryObjective(SPOPlusLoss(Simplex()), X[:, :p], C, alpha=0.01, **params))

    assert auto()[0] == "dual" and auto(p=20)[0] == "interior-point"


def test_predicted_work_knows_planar_graphs():
    """Banded factors make iterations on a grid an order of magnitude cheaper than dense ones."""
    X, C = make_shortest_path(300, 5, (10, 10), random_state=0)
    run, grid = Run(), ShortestPath.grid(10, 10)
    work = interior_point_work(InMemoryObjective(SPOPlusLoss(grid), X, C), run)
    assert run.derived.planar
    dense = Run(derived=Derived(planar=False))
    assert 10.0 * work < interior_point_work(InMemoryObjective(SPOPlusLoss(grid), X, C), dense)


def test_states_of_a_run_serve_the_next_penalty():
    """The dual method starts from its cached decisions, and needs fewer passes than from the coefficients alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    C = (X @ rng.normal(size=(30, 6))) ** 2 / 30 + rng.normal(size=(200, 6))
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), X, C, prior="least_squares")
    run = Run()
    first = DualSolver().solve(objective.with_penalty(0.1, 0.0), run)
    assert run.states.dual.coef is not None and first.converged
    other = objective.with_penalty(0.08, 0.0)
    warm = DualSolver().solve(other, run.with_deadline(Deadline()), first.coef)
    cold = DualSolver().solve(other, Run(), first.coef)
    assert warm.converged and cold.converged
    assert warm.objective == pytest.approx(cold.objective, rel=2e-6)
    assert warm.n_iter < cold.n_iter


def test_dual_is_expected_to_need_few_passes_near_the_prior():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    C = (X @ rng.normal(size=(10, 6))) ** 2 / 10 + rng.normal(size=(200, 6))
    objective = InMemoryObjective(SPOPlusLoss(Simplex()), X, C, prior="least_squares", standardized=True)
    slope = float(np.linalg.norm(objective.loss_gradient(objective.prior)[1]))
    work = [
        DualSolver.estimate(objective.with_penalty(share * slope, 0.0), Run(n_fits=10_000)).work
        for share in (1.0, 0.1, 0.01, 0.001)
    ]
    assert work == sorted(work) and work[0] < 0.5 * work[-1]
