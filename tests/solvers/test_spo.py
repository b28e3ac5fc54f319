"""``SPORegressor``: line searches, what its objective is, and that it is never worse than SPO+."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import noisy_data
from regions_list import REGIONS
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from spo_problems import FINITE, random_data

import skspo.solvers.spo.descent as descent
from skspo import (
    Box,
    EntropySimplex,
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
