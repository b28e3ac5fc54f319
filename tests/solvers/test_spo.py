"""SPORegressor: derivatives, line searches, the mixed-integer optimum, and that it is never worse than SPO+."""

import pickle
import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from problems import noisy_data
from regions_list import REGIONS
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skspo.solvers.spo.descent as descent
import skspo.solvers.spo.milp as milp_module
from skspo import (
    Assignment,
    Box,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    L1Ball,
    LogBarrierSimplex,
    LqBall,
    Markowitz,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOLoss,
    SPOPlusRegressor,
    SPORegressor,
    TopK,
    TwoStageRegressor,
    spo_loss,
)
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo._utils.limits import Deadline
from skspo.datasets import make_cost_sensitive_classification, make_portfolio
from skspo.solvers.base import Progress
from skspo.solvers.spo.descent import REACH, least_absolute, loss_along_lines
from skspo.solvers.spo.milp import MILPSolver, list_vertices

_A = np.random.default_rng(0).normal(size=(5, 5))
Q = _A @ _A.T + np.eye(5)
SMOOTH = [
    EntropySimplex(),
    EntropySimplex(-0.8),
    LogBarrierSimplex(),
    LogBarrierSimplex(20.0),
    Ellipsoid(Q, np.arange(5.0), 2.0),
    Ellipsoid(),
    LqBall(),
    LqBall(1.5, 3.0),
]
FINITE = [
    (Simplex(), 5),
    (Box(-1, 1), 4),
    (TopK(2), 5),
    (L1Ball(), 4),
    (ShortestPath.grid(3, 3), 12),
    (Assignment(3), 9),
    (Knapsack([3, 4, 5, 2, 1], 7), 5),
    (Knapsack([1, 2, 3, 4], 5, integer=False), 4),
    (Polyhedron([[1, 2, 3]], [4], bounds=(0, 1)), 3),
]
by_name = pytest.mark.parametrize("region", SMOOTH, ids=str)


def random_data(d, n=30, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, rng.normal(size=(n, d)) + X @ rng.normal(size=(p, d))


# -- derivatives -------------------------------------------------------------------------------------------------------


@by_name
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1e-6, 1.0, 1e6]), level=st.sampled_from([0.0, 1e3]))
def test_derivative_is_that_of_the_oracle(region, seed, size, level):
    """Central differences; ``level`` moves the costs near the point where they are constant, relative to their size."""
    rng = np.random.default_rng(seed)
    C, x = rng.normal(size=(2, 4, 5)) * size
    if isinstance(region, (EntropySimplex, LogBarrierSimplex)):
        C = C + level * size  # it changes no decision

    def difference(h):
        return (region.solve_min(C + h * x) - region.solve_min(C - h * x)) / (2 * h)

    # Extrapolated, because the third derivative is large where costs are nearly tied.
    numeric = (4.0 * difference(5e-6) - difference(1e-5)) / 3.0
    np.testing.assert_allclose(region.derivative(C, x), numeric, atol=1e-6 * max(np.abs(numeric).max(), 1.0))


@by_name
def test_derivative_near_the_degenerate_point(region):
    """Costs that hardly differ: the derivative grows as one over their size."""
    rng = np.random.default_rng(1)
    C, x = rng.normal(size=(2, 6, 5))
    base = 1.0 if isinstance(region, (EntropySimplex, LogBarrierSimplex)) else 0.0
    for small in (1e-2, 1e-4):
        ours = small * region.derivative(base + small * C, x)
        np.testing.assert_allclose(ours, region.derivative(C, x), rtol=1e-6, atol=1e-6 * np.abs(ours).max())
    assert (region.derivative(np.full((1, 5), base), x[:1]) == 0).all()


@by_name
def test_derivative_is_symmetric_and_sees_no_scale(region):
    rng = np.random.default_rng(2)
    C, x, y = rng.normal(size=(3, 50, 5))
    Jx, Jy, JC = (region.derivative(C, v) for v in (x, y, C))
    np.testing.assert_allclose((y * Jx).sum(axis=1), (x * Jy).sum(axis=1), atol=1e-9 * np.abs(Jx).max())
    assert np.abs(JC).max() <= 1e-8 * np.abs(Jx).max()
    assert ((x * Jx).sum(axis=1) <= 1e-9).all()  # the best cost is concave
    E = region.equalities(5)
    assert np.abs(Jx @ E.T).max(initial=0.0) <= 1e-9 * np.abs(Jx).max()


@pytest.mark.parametrize("budget", ["equal", "at_most"])
def test_derivative_of_markowitz(budget):
    """Against the decisions on the assets held, found by Newton's method on the optimality conditions.

    The oracle is an interior-point method: its decisions are within 1e-6, but the slope of that error is not small.
    """
    covariance = Q / 20
    limit = 1.5 / np.linalg.inv(covariance).sum()
    region = Markowitz(covariance, limit, budget=budget)
    C, x = np.random.default_rng(0).normal(size=(2, 30, 5))
    W, ours = region.solve_min(C), region.derivative(C, x)
    for c, v, w, derivative in zip(C, x, W, ours, strict=True):
        held = w > 1e-4
        spent = w.sum() > 1 - 1e-5
        if w @ covariance @ w < 0.999 * limit:
            assert (derivative == 0).all()
            continue
        if not np.array_equal(held, w > 1e-7):
            continue  # an asset is just about to enter or leave

        def solve(costs, w=w, held=held, spent=spent):
            """c + lam covariance w + nu = 0 on the assets held, w covariance w = limit, sum w = 1 if it is."""
            S, k = covariance[np.ix_(held, held)], int(held.sum())
            z = np.concatenate([w[held], [1.0, 0.0]])
            gradient = S @ z[:k]
            basis = np.column_stack([gradient, np.ones(k)]) if spent else gradient[:, None]
            z[k : k + basis.shape[1]] = np.linalg.lstsq(basis, -costs[held], rcond=None)[0]
            for _ in range(30):
                u, lam, nu = z[:k], z[k], z[k + 1]
                residual = np.concatenate(
                    [costs[held] + lam * S @ u + nu * spent, [(u @ S @ u - limit) / 2, u.sum() - 1 if spent else nu]]
                )
                J = np.zeros((k + 2, k + 2))
                J[:k, :k], J[:k, k], J[:k, k + 1], J[k, :k] = lam * S, S @ u, spent, S @ u
                J[k + 1, :k], J[k + 1, k + 1] = spent, not spent
                z = z - np.linalg.solve(J, residual)
            full = np.zeros(5)
            full[held] = z[:k]
            return full

        np.testing.assert_allclose(w, solve(c), atol=1e-5)
        h = 1e-5
        numeric = (solve(c + h * v) - solve(c - h * v)) / (2 * h)
        np.testing.assert_allclose(derivative, numeric, atol=1e-6 * max(np.abs(numeric).max(), 1.0))


@by_name
def test_gradient_of_the_loss(region):
    rng = np.random.default_rng(3)
    C, C_hat, x = rng.normal(size=(3, 20, 5))
    loss, h = SPOLoss(region), 1e-6
    slope = (loss.value(C, C_hat + h * x) - loss.value(C, C_hat - h * x)) / (2 * h)
    value, G = loss.value_gradient(C, C_hat)
    np.testing.assert_allclose((G * x).sum(axis=1), slope, rtol=1e-5, atol=1e-5 * np.abs(slope).max())
    np.testing.assert_array_equal(value, loss.value(C, C_hat))


def test_no_gradient_on_a_polyhedron():
    with pytest.raises(TypeError, match="piecewise constant"):
        SPOLoss(Simplex()).gradient([[1.0, 2.0]], [[2.0, 1.0]])


# -- line searches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("region", "d"), FINITE, ids=str)
def test_line_search_evaluates_the_whole_line(region, d):
    X, C = random_data(d)
    objective = InMemoryObjective(SPOLoss(region), X, C)
    rng = np.random.default_rng(1)
    Theta, *Deltas = rng.normal(size=(4, *objective.shape))
    line, left, right, value = loss_along_lines(objective, Theta, np.array(Deltas))
    for k, Delta in enumerate(Deltas):
        mine = line == k
        assert left[mine][0] == -REACH
        assert right[mine][-1] == REACH
        np.testing.assert_array_equal(left[mine][1:], right[mine][:-1])
        for tau in rng.uniform(-REACH, REACH, size=60):
            expected = value[mine][np.searchsorted(left[mine], tau) - 1]
            assert objective.value(Theta + tau * Delta) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("case", REGIONS, ids=lambda case: case.id)
def test_never_worse_than_spo_plus(case):
    slow = not hasattr(case.region, "support_epigraph")
    X, C = random_data(case.d, n=8 if slow else 12, p=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plus = SPOPlusRegressor(case.region).fit(X, C)
        spo = SPORegressor(case.region, max_iter=8 if slow else 30, random_state=0).fit(X, C)
    start, end = (spo_loss(C, model.predict(X), case.region) for model in (plus, spo))
    # An oracle that is a solver has a tolerance, which decides ties.
    assert end <= start + 1e-7 * max(start, 1e-2)
    # Coefficients were converted to other units and back, and a conic solver has a limited accuracy.
    assert spo.objective_ == pytest.approx(end, rel=1e-6, abs=1e-5 if case.id[:5] in ("cvxpy", "marko") else 1e-7)
    assert spo.lower_bound_ == 0.0
    assert spo.solver_ == ("lbfgs" if hasattr(case.region, "derivative") else "line-search")


@pytest.mark.slow
def test_line_searches_reach_the_optimum_of_small_problems():
    reached = 0
    for seed in range(5):
        X, C = random_data(3, n=12, p=1, seed=seed)
        exact = SPORegressor(Simplex(), solver="milp").fit(X, C)
        found = SPORegressor(Simplex(), n_restarts=50, random_state=0).fit(X, C)
        assert exact.status_ == "converged"
        reached += found.objective_ <= 1.05 * exact.objective_ + 1e-12
    assert reached >= 4


# -- mixed-integer programs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("region", "d"), [(r, d) for r, d in FINITE if hasattr(r, "standard_form")], ids=str)
def test_vertices_are_all_that_the_oracle_returns(region, d):
    vertices = list_vertices(region, d)
    W = region.solve_min(np.random.default_rng(0).normal(size=(500, d)))
    distance = np.abs(W[:, None] - vertices).max(axis=2)
    assert (distance.min(axis=1) < 1e-7).all()
    seen = set(distance.argmin(axis=1))
    if len(vertices) < 50:
        assert len(seen) == len(vertices)


@pytest.mark.parametrize(("region", "d"), [(Simplex(), 3), (Box(), 2), (ShortestPath.grid(2, 3), 7)], ids=str)
def test_milp_is_at_most_the_loss_of_any_model(region, d):
    X, C = random_data(d, n=10, p=1)
    model = SPORegressor(region, solver="milp").fit(X, C)
    assert model.status_ == "converged"
    assert model.objective_ == pytest.approx(spo_loss(C, model.predict(X), region))
    objective = InMemoryObjective(SPOLoss(region), X, C)
    rng = np.random.default_rng(0)
    values = [objective.value(rng.normal(size=objective.shape)) for _ in range(5000)]
    assert min(values) * objective.scale >= model.lower_bound_ - 1e-9
    assert min(values) * objective.scale <= 1.2 * model.objective_ + 1e-9  # a brute force comes near it


def test_milp_refuses_what_it_cannot_do_and_stops_in_time():
    X, C = random_data(5)
    with pytest.raises(ValueError, match="too many bases"):
        SPORegressor(ShortestPath.grid(5, 5), solver="milp").fit(*random_data(40))
    with pytest.raises(ValueError, match="standard_form"):
        SPORegressor(Knapsack(np.arange(1, 31), 200), solver="milp").fit(*random_data(30))
    with pytest.raises(ValueError, match="no penalty"):
        SPORegressor(Simplex(), solver="milp", alpha=1.0).fit(X, C)
    X, C = random_data(5, n=60, p=4)
    with pytest.warns(ConvergenceWarning, match=r"milp.*stopped early"):
        model = SPORegressor(Simplex(), solver="milp", time_limit=0.5).fit(X, C)
    assert 0 <= model.lower_bound_ <= model.objective_
    assert model.objective_ <= spo_loss(C, SPOPlusRegressor(Simplex()).fit(X, C).predict(X), Simplex()) + 1e-12


# -- the estimator -----------------------------------------------------------------------------------------------------


def test_spo_beats_spo_plus_where_the_model_is_wrong():
    """One draw of the paper's portfolio at degree 8; benchmarks/spo.py has the mean of ten and all degrees."""
    X, C = make_portfolio(2300, degree=8, noise=0.5, random_state=0)
    region = EntropySimplex()
    spo = SPORegressor(region, random_state=0).fit(X[:300], C[:300])
    plus = SPOPlusRegressor(region).fit(X[:300], C[:300])
    assert spo.score(X[300:], C[300:]) > plus.score(X[300:], C[300:])


@pytest.mark.parametrize("region", [Simplex(), EntropySimplex()], ids=str)
def test_scale_of_predictions_is_that_of_the_start(region):
    X, C = make_cost_sensitive_classification(100, degree=2, random_state=0)
    model = SPORegressor(region, max_iter=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scaled, model = clone(model).fit(X, 1e6 * C), model.fit(X, C)
    assert scaled.objective_ == pytest.approx(1e6 * model.objective_, rel=1e-6)
    assert 0.05 < np.abs(scaled.predict(X)).mean() / np.abs(1e6 * model.predict(X)).mean() < 20


def test_penalty_weighs_slopes_against_the_intercept():
    X, C = make_cost_sensitive_classification(60, degree=2, random_state=0)
    slopes = []
    for alpha in (0.0, 10.0):
        for region in (Simplex(), EntropySimplex()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = SPORegressor(region, init="least_squares", alpha=alpha, max_iter=200, random_state=0).fit(X, C)
            slopes.append(np.linalg.norm(model.coef_) / np.linalg.norm(model.intercept_))
    assert slopes[2] < slopes[0]
    assert slopes[3] < slopes[1]


def test_reproducible_and_restartable():
    X, C = make_cost_sensitive_classification(80, degree=2, random_state=0)
    model = SPORegressor(Simplex(), max_iter=100, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=100 was reached"):
        model.fit(X, C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again = pickle.loads(pickle.dumps(clone(model))).fit(X, C)
        np.testing.assert_array_equal(again.coef_, model.coef_)
        before = model.objective_
        assert model.set_params(warm_start=True).fit(X, C).objective_ <= before * (1 + 1e-9)
        # A weight of two is a repeated row.
        weight = np.where(np.arange(80) < 40, 2.0, 1.0)
        once = clone(again).fit(X, C, weight)
        twice = clone(again).fit(np.vstack([X, X[:40]]), np.vstack([C, C[:40]]))
    np.testing.assert_allclose(once.coef_, twice.coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_slots_into_pipelines_and_grid_searches():
    X, C = make_cost_sensitive_classification(60, degree=2, random_state=0)
    pipe = make_pipeline(StandardScaler(), SPORegressor(Simplex(), max_iter=20, random_state=0))
    grid = {"sporegressor__init": ["spo+", "least_squares", "absolute_error"], "sporegressor__alpha": [0.0, 0.1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = GridSearchCV(pipe, grid, cv=2).fit(X, C)
    assert search.best_estimator_[-1].decide(X).shape == C.shape


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"init": "zero"}, "init must be one of"),
        ({"n_restarts": -1}, "n_restarts must be None or an integer"),
        ({"n_restarts": 1.5}, "n_restarts must be None or an integer"),
        ({"time_limit": 0}, "time_limit must be None or a positive"),
        ({"solver": "conic"}, "solver must be 'auto' or one of"),
        ({"solver": "lbfgs"}, "lacks: derivative"),
        ({"alpha": -1.0}, "alpha must be"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        SPORegressor(Simplex(), **params).fit(*random_data(4))


def test_least_absolute_start():
    X, C = random_data(2, n=200)
    C[:20] += 50.0  # outliers, which hardly affect the absolute error
    objective = InMemoryObjective(SPOLoss(Box()), X, C)

    def error(Theta):
        return float(objective.weight @ np.abs(objective.C - objective.design.predict(Theta)).sum(axis=1))

    rng = np.random.default_rng(0)
    Theta = least_absolute(objective, Deadline())
    assert error(Theta) < 0.9 * error(objective.least_squares)
    assert all(error(Theta) <= error(Theta + 0.01 * rng.normal(size=Theta.shape)) * (1 + 1e-4) for _ in range(100))


def test_loss_along_lines_with_weights():
    X, C = noisy_data(20)
    region = Simplex()
    weight = np.random.default_rng(0).uniform(0.2, 4.0, size=20)
    objective = InMemoryObjective(SPOLoss(region), X, C, weight)
    rng = np.random.default_rng(1)
    Theta, Deltas = rng.normal(size=objective.shape), rng.normal(size=(2, *objective.shape))
    pieces = descent.loss_along_lines(objective, Theta, Deltas)
    for line, left, right, value in zip(*pieces, strict=True):
        if right - left > 1e-9:
            assert objective.value(Theta + 0.5 * (left + right) * Deltas[line]) == pytest.approx(value, abs=1e-12)


def test_widest_of_equally_good_pieces(monkeypatch):
    X, C = noisy_data(5)
    region = Simplex()
    objective = InMemoryObjective(SPOLoss(region), X, C)
    ends = np.array([-4.0, -1.0, 0.0, 3.0, 4.0])
    pieces = descent.Pieces(np.zeros(4, dtype=int), ends[:-1], ends[1:], np.array([1.0, 0.0, 0.0, 1.0]))
    monkeypatch.setattr(descent, "loss_along_lines", lambda *args: pieces)
    Theta, Delta = np.zeros(objective.shape), np.ones(objective.shape)
    norm = float(np.linalg.norm(1.5 * Delta))
    found = descent.LineSearchSolver()._best_on_lines(objective, Theta + Delta, Delta[None], norm)
    assert_allclose(found, 1.5 * Delta)  # (1 + 1.5) Delta, scaled to the norm
    found = descent.LineSearchSolver()._best_on_lines(objective, np.eye(*objective.shape), Delta[None], 1.0)
    expected = np.eye(*objective.shape) + 1.5 * Delta
    assert_allclose(found, expected / np.linalg.norm(expected))


def test_line_search_walks_along_a_plateau(monkeypatch):
    """A step that is no worse is taken: other directions may lead down from there."""
    X, C = noisy_data(8)
    region = Simplex()
    objective = InMemoryObjective(SPOLoss(region), X, C)
    seen = []
    monkeypatch.setattr(objective, "value", lambda Theta: 1.0)
    solver = descent.LineSearchSolver()

    def best(objective, Theta, Deltas, norm):
        seen.append(Theta)
        return Theta + 1.0

    monkeypatch.setattr(solver, "_best_on_lines", best)
    progress = Progress("line-search", objective, Run(), 0)
    fit = descent.Fit(objective, Run(), 1.0, np.random.RandomState(0), progress, 10**6)
    solver._descend(fit, objective.least_squares, 0)
    assert len(seen) > 1
    assert all((b == a + 1.0).all() for a, b in pairwise(seen))


def test_default_iteration_limit_does_not_warn(monkeypatch):
    monkeypatch.setattr(descent.LineSearchSolver, "_limit", lambda self, size: self.max_iter or 3)
    X, C = make_cost_sensitive_classification(200, degree=2, noise=0.9, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        SPORegressor(Simplex(), random_state=0).fit(X, C)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        SPORegressor(Simplex(), max_iter=3, random_state=0).fit(X, C)


def test_milp_counts_weights():
    # Two alternatives, one feature, an intercept: a model is a threshold and a side.
    # Without weights it would be best to sacrifice the third sample, with them the first two.
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    C = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    weight = np.array([1.0, 1.0, 5.0, 1.0, 1.0])
    regret = C - C.min(axis=1, keepdims=True)
    best = min(
        (weight * np.where(x < threshold, regret[:, side], regret[:, 1 - side])).sum()
        for threshold in np.arange(-2.5, 3.0)
        for side in (0, 1)
    )
    model = SPORegressor(Simplex(), solver="milp").fit(x[:, None], C, sample_weight=weight)
    assert model.objective_ == pytest.approx(best / weight.sum(), rel=1e-9)
    assert model.status_ == "converged"


def test_milp_keeps_a_start_without_margin():
    # The first two samples can be separated, but by less than the margin.
    x = np.array([0.0, 1e-5, 10.0])
    C = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    region = Simplex()
    objective = InMemoryObjective(SPOLoss(region), x[:, None], C)
    start = objective.from_user(np.array([[1.0], [-1.0]]), np.array([-5e-6, 5e-6]))
    assert objective.value(start) == 0.0
    result = MILPSolver().solve(objective, Run(), start)
    assert result.objective == result.lower_bound == 0.0


def test_gradient_on_the_sphere_of_given_norm(monkeypatch):
    """With a penalty, which depends on the fixed norm, and at a point of another norm."""
    X, C = make_portfolio(30, 3, 4, degree=2, random_state=0)
    region = EntropySimplex()
    objective = InMemoryObjective(SPOLoss(region), X, C, alpha=0.3)
    checked = []

    def minimize(function, start, **options):
        point = 1.3 * start + 0.1 * np.random.default_rng(0).normal(size=start.size)
        gradient = function(point)[1]
        steps = 1e-6 * np.eye(start.size)
        expected = [(function(point + step)[0] - function(point - step)[0]) / 2e-6 for step in steps]
        assert_allclose(gradient, expected, atol=1e-6)
        checked.append(np.abs(gradient).max())
        return SimpleNamespace(x=start, nit=0)

    monkeypatch.setattr(descent, "minimize", minimize)
    descent.SPOGradientSolver(n_restarts=0).solve(objective, Run(), objective.least_squares)
    assert checked
    assert max(checked) > 1e-3


def test_warm_start_of_the_decision_loss():
    X, C = make_cost_sensitive_classification(60, degree=2, noise=0.9, random_state=0)
    model = SPORegressor(Simplex(), random_state=0, max_iter=300, n_restarts=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        good = model.fit(X, C).objective_
        fresh = SPORegressor(Simplex(), init="least_squares", max_iter=1, n_restarts=0, random_state=1).fit(X, C)
        assert fresh.objective_ > good * 1.01
        model.set_params(init="least_squares", warm_start=True, max_iter=1).fit(X, C)
    assert model.objective_ <= good * (1.0 + 1e-12)


@pytest.mark.parametrize("solver", ["auto", "milp"])
def test_objective_is_the_loss_of_the_returned_coefficients_at_ties(solver):
    """Integer data without an intercept: predictions are often tied, and rounding errors decide."""
    tied = 0
    for seed in range(60 if solver == "auto" else 15):
        rng = np.random.default_rng(seed)
        n, p, d = rng.integers(2, 7), rng.integers(1, 3), rng.integers(2, 5)
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
        C = rng.integers(0, 6, size=(n, d)).astype(float)
        region = [Simplex(), Box(0, 1), Simplex(sense="max"), TopK(max(1, d - 1))][seed % 4]
        weight = rng.integers(1, 3, size=n).astype(float) if seed % 3 == 0 else None
        offset = rng.integers(-1, 2, size=d).astype(float) if seed % 5 == 0 and solver == "auto" else None
        data = {"sample_weight": weight, "offset": offset}
        plus = SPOPlusRegressor(region, fit_intercept=False).fit(X, C, **data)
        model = SPORegressor(region, solver=solver, fit_intercept=False, n_restarts=2, max_iter=30, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, C, **data)
        loss, before = (spo_loss(C, m.predict(X, offset=offset), region, sample_weight=weight) for m in (model, plus))
        assert model.objective_ == pytest.approx(loss, abs=1e-12)
        assert loss <= before + 1e-12
        prediction = model.predict(X, offset=offset)
        tied += bool((np.diff(np.sort(prediction, axis=1), axis=1) == 0).any())
    assert tied > 5


def test_the_zero_model_is_returned_with_its_ties():
    """The first option is the best one for all samples; among models without an intercept only a tie chooses it."""
    X = np.array([[2.0], [-2.0], [2.0], [-2.0]])
    C = np.array([[0, 1, 0, 2], [0, 1, 2, 1], [0, 3, 3, 0], [0, 1, 3, 5.0]])
    model = SPORegressor(Simplex(), fit_intercept=False, n_restarts=2, max_iter=30, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=30"):
        model.fit(X, C)
    assert model.objective_ == spo_loss(C, model.predict(X), Simplex()) == 0.0


def test_milp_bound_holds_for_models_without_margin():
    """Brute force over two alternatives and a feature, where a model is a threshold and a side.

    Some neighbors can be separated, but by less than the margin of the program.
    """
    region, thin = Simplex(), 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = np.repeat(np.arange(4.0), 2) + np.tile([0.0, 1e-5], 4)
        C = rng.integers(0, 4, size=(8, 2)).astype(float)
        regret = C - C.min(axis=1, keepdims=True)
        best = min(
            np.where(x < threshold, regret[:, side], regret[:, 1 - side]).mean()
            for threshold in [-1.0, *(x + 5e-6)]
            for side in (0, 1)
        )
        model = SPORegressor(region, solver="milp", init="least_squares").fit(x[:, None], C)
        assert model.status_ == "converged"
        assert model.lower_bound_ <= best + 1e-12
        assert model.certificate_radius_ == np.inf
        assert (model.duality_gap_ == 0.0) == (model.objective_ == 0.0)
        thin += model.objective_ > best + 1e-9
    assert thin > 0


def test_milp_stopped_early_says_for_which_models_its_bound_holds(monkeypatch):
    real = milp_module.milp

    def stopped(*args, **kwargs):
        result = real(*args, **kwargs)
        result.status, result.mip_dual_bound = 1, 0.5 * result.mip_dual_bound
        return result

    monkeypatch.setattr(milp_module, "milp", stopped)
    X, C = random_data(3, n=10, p=1)
    with pytest.warns(
        ConvergenceWarning, match=r"No model whose decisions are unique by a margin of 0\.001 has a loss"
    ):
        model = SPORegressor(Simplex(), solver="milp").fit(X, C)
    assert (model.status_, model.lower_bound_) == ("time limit", 0.0)


@pytest.mark.parametrize("bounds", ["auto", (0.5, None)], ids=["learned", "given"])
def test_objective_is_that_of_decisions_with_clipped_predictions(bounds):
    """Streets both ways: predictions below zero are clipped before deciding, and that is what is evaluated."""
    streets = [(a, b) for a in range(4) for b in range(4) if a != b]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(25, 2))
        C = np.abs(1.0 + X @ rng.normal(size=(2, 12)) + rng.normal(size=(25, 12))) + 0.05
        region = ShortestPath(streets, 0, 3, cost_bounds=bounds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SPORegressor(region, max_iter=20, random_state=0).fit(X, C)
        plus = SPOPlusRegressor(region).fit(X, C)
        loss, start = (spo_loss(C, m.predict(X), m.region_) for m in (model, plus))
        assert model.objective_ == pytest.approx(loss, abs=1e-12)
        assert loss <= start + 1e-12


@pytest.mark.parametrize("region", [Simplex(), Simplex(sense="max"), TopK(2)], ids=repr)
def test_perturbation_descent(region):
    """Never worse than its start, and better on costs that no linear model predicts; the status is not a proof."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    C = np.exp(X @ rng.normal(size=(3, 4))) + 0.1 * rng.normal(size=(150, 4))
    start = SPOPlusRegressor(region, alpha=0.1).fit(X, C)
    model = SPORegressor(region, solver="perturbation", init="least_squares").fit(X, C)
    again = SPORegressor(region, solver="perturbation", init="least_squares").fit(X, C)
    losses = [spo_loss(C, m.predict(X), region) for m in (model, start, TwoStageRegressor(region=region).fit(X, C))]
    assert losses[0] <= losses[2] and losses[0] < losses[1]
    assert model.objective_ == pytest.approx(losses[0])
    assert (again.coef_ == model.coef_).all()
