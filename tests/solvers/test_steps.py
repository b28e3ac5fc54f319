"""Steps of a fit beside the solvers: starts, and what the history and ``verbose`` say about them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import skspo as sk
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo.datasets import make_shortest_path
from skspo.losses import SPOPlusLoss
from skspo.regions.capabilities import has
from skspo.regions.check import check_region
from skspo.solvers.auto import SolverOptions
from skspo.solvers.driver import minimize
from skspo.solvers.steps import fit_relaxation

pytestmark = pytest.mark.usefixtures("unlisted")


def program(d, n, seed, p=3):
    """Random 0-1 program with several constraints, features and values."""
    rng = np.random.default_rng([d, n, seed])
    A = rng.integers(1, 9, size=(2, d)).astype(float)
    b = np.floor(A.sum(axis=1) * rng.uniform(0.3, 0.6, 2))
    X = rng.normal(size=(n, p))
    V = np.abs(X @ rng.normal(size=(p, d)) + 2.0) ** 2 * rng.uniform(0.5, 1.5, (n, d))
    return sk.MixedInteger(A_ub=A, b_ub=b, bounds=(0, 1), sense="max"), A, b, X, V


def feasible_sets(A, b):
    d = A.shape[1]
    everything = ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(float)
    return everything[(everything @ A.T <= b + 1e-9).all(axis=1)]


def objectives(region, X, V, alpha=0.0):
    """Objective of the region, and that of its relaxation with the same optimal decisions."""
    region = check_region(region, V.shape[1])
    relaxed = check_region(region.relaxation(), V.shape[1])
    objective = InMemoryObjective(SPOPlusLoss(region), X, V, alpha=alpha)
    return objective, objective.with_loss(SPOPlusLoss(relaxed), relaxed)


@pytest.mark.parametrize("seed", range(3))
def test_the_relaxation_bounds_the_objective_from_above(seed):
    region, _, _, X, V = program(9, 30, seed)
    whole, relaxed = objectives(region, X, V, alpha=0.1)
    rng = np.random.default_rng(seed)
    larger = 0
    for _ in range(10):
        Theta = rng.normal(size=whole.shape) * 10.0 ** rng.uniform(-1, 1)
        assert relaxed.value(Theta) >= whole.value(Theta) - 1e-9
        larger += relaxed.value(Theta) > whole.value(Theta) + 1e-6
    assert larger  # the relaxation is not the convex hull


def test_an_exact_relaxation_has_the_same_objective():
    """Assignments: the polyhedron without integrality is the convex hull."""
    A = np.concatenate([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))])
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(20, 2)), rng.normal(size=(20, 9))
    whole, relaxed = objectives(sk.MixedInteger(A_eq=A, b_eq=np.ones(6), bounds=(0, 1)), X, C)
    for _ in range(10):
        Theta = rng.normal(size=whole.shape)
        assert relaxed.value(Theta) == pytest.approx(whole.value(Theta), rel=1e-9)


@pytest.mark.parametrize(("seed", "alpha"), [(0, 0.0), (1, 0.1)])
def test_objective_and_bound_are_those_of_the_integers(seed, alpha):
    """Against the same fit over the list of all feasible decisions, which has no relaxation."""
    region, A, b, X, V = program(7, 30, seed)
    model = sk.SPOPlusRegressor(region, alpha=alpha, tol=1e-4).fit(X, V)
    every = feasible_sets(A, b)
    listed = sk.OracleRegion(lambda C: every[np.argmax(C @ every.T, axis=1)], sense="max")
    truth = sk.SPOPlusRegressor(listed, alpha=alpha, tol=1e-6).fit(X, V)
    assert model.history_["step"][0] == "relaxation" and "relaxation" not in truth.history_["step"]
    assert np.isnan(model.history_["lower_bound"][0])
    assert model.status_ == truth.status_ == "converged"
    assert model.lower_bound_ <= truth.objective_ * (1 + 1e-9)
    assert truth.lower_bound_ <= model.objective_ * (1 + 1e-9)
    assert model.objective_ <= truth.objective_ * (1 + 2e-4)


def test_the_start_is_warm_and_its_value_counts():
    region, _, _, X, V = program(10, 60, 1)
    whole, relaxed = objectives(region, X, V, alpha=0.01)
    run = Run()
    ((Theta, value),) = fit_relaxation(whole, run, SolverOptions(), minimize)
    assert value == pytest.approx(whole.value(Theta), rel=1e-12)
    least_squares, zero = (value for _, value in whole.references()[:2])
    assert value < 0.8 * min(least_squares, zero)
    assert value <= relaxed.value(Theta) <= 1.02 * minimize(relaxed, Run(), SolverOptions())[0].objective
    ((again, _),) = fit_relaxation(whole, run, SolverOptions(), minimize)  # the region is prepared once
    assert_array_equal(again, Theta)


@pytest.mark.parametrize("region", [sk.Simplex(), sk.EntropySimplex(), sk.Knapsack([1, 2, 3, 4], 5, integer=False)])
def test_convex_regions_have_no_such_start(region):
    X, C = np.random.default_rng(0).normal(size=(2, 30, 4))
    assert "relaxation" not in sk.SPOPlusRegressor(region).fit(X, C).history_["step"]


def test_regions_that_vary_by_sample():
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(40, 2)), rng.uniform(1.0, 2.0, size=(40, 5))
    params = {"capacity": rng.integers(4, 9, size=40)}
    model = sk.SPOPlusRegressor(sk.Knapsack([2, 3, 4, 3, 2], 6)).fit(X, V, region_params=params)
    assert model.duality_gap_ <= 1e-6


NOW = [0.0]  # seconds


class SlowProgram(sk.MixedInteger):
    """An oracle that takes its time."""

    def _argmin(self, C, data):
        NOW[0] += 0.6
        return super()._argmin(C, data)


def test_a_short_time_limit_ends_with_the_start(monkeypatch):
    """There is time for the start, and not for the values of the models that it is compared with."""
    monkeypatch.setattr("skspo._utils.limits.perf_counter", lambda: NOW[0])
    plain, _, _, X, V = program(8, 30, 0)
    region = SlowProgram(**plain.get_params(deep=False))
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = sk.SPOPlusRegressor(region, alpha=0.01, time_limit=2.2).fit(X, V)
    assert model.history_["step"][0] == "relaxation"
    assert model.lower_bound_ >= 0.0
    other = sk.SPOPlusRegressor(plain, alpha=0.01, tol=0.05).fit(X, V)
    zero = sk.spo_plus_loss(V, np.zeros_like(V), plain)
    assert np.isinf(model.objective_) or model.objective_ < 0.5 * (other.objective_ + zero)


def test_history_and_verbose_name_the_steps(capsys):
    X, C = make_shortest_path(5000, grid=(3, 3), degree=4, noise=0.5, random_state=0)
    model = sk.SPOPlusRegressor(sk.ShortestPath.grid(3, 3), solver="bundle", tol=1e-3, verbose=2).fit(X, C)
    steps = model.history_["step"]
    assert steps[0].startswith("sample of") and set(steps[1:]) == {"bundle"}
    assert np.isnan(model.history_["objective"][0]) and np.isfinite(model.history_["objective"][1:]).all()
    assert f"{steps[0]} | " in capsys.readouterr().err
    light = 0.5 ** (np.arange(200)[::-1] / 5.0)
    steps = sk.SPOPlusRegressor(sk.ShortestPath.grid(3, 3), alpha=0.1).fit(X[:200], C[:200], light).history_["step"]
    assert steps[-1] == "all rows" and steps[0].split(", ")[0].endswith("of 200 rows")
    short = sk.SPORegressor(sk.ShortestPath.grid(3, 3), n_restarts=0, max_iter=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        history = short.fit(X[:100], C[:100]).history_
    assert list(dict.fromkeys(history["step"])) == ["start (spo+)", "line-search"]
    assert np.isfinite(history["objective"]).all()


def test_a_list_of_decisions_is_no_relaxation():
    assert not has(sk.OracleRegion(lambda C: C), "standard_form")
    with pytest.raises(TypeError, match="no relaxation"):
        sk.OracleRegion(lambda C: C).relaxation()
