"""Functions of users that are heuristics: the fit continues, returns the best candidate and claims no bound."""

import re
import warnings

import numpy as np
import pytest
from oracle_problem import C, X, cheapest, only_the_region_warns
from sklearn.linear_model import LinearRegression

from skspo import (
    Assignment,
    ChunkedData,
    Knapsack,
    OracleRegion,
    SPOLoss,
    SPOPlusLoss,
    SPOPlusRegressor,
    TopK,
    TwoStageRegressor,
    check_region,
    normalized_spo_loss,
)
from skspo._training.chunked import ChunkedObjective
from skspo._training.in_memory import InMemoryObjective
from skspo._training.rows import LocalRows


def polynomial_costs(n, p, d, degree, noise, rng, B=None):
    B = rng.normal(size=(d, p)) if B is None else B
    X = rng.normal(size=(n, p))
    C = 0.5 + (3.0 + X @ B.T / np.sqrt(p)) ** degree / 3.0 ** (degree - 1)
    return X, C * rng.uniform(1.0 - noise, 1.0 + noise, size=C.shape), B


def greedy_knapsack(V, weights, capacity, least=0.0):
    """Take what is worth most per weight as long as it fits."""
    order = np.argsort(-V / weights, axis=1)
    W, left, rows = np.zeros_like(V), np.full(len(V), float(capacity)), np.arange(len(V))
    for k in range(V.shape[1]):
        j = order[:, k]
        take = (weights[j] <= left) & (V[rows, j] > least)
        W[rows[take], j[take]] = 1.0
        left[take] -= weights[j[take]]
    return W


def greedy_assignment(C, k):
    """Take the cheapest pair that is left, again and again."""
    M, W, rows = C.reshape(-1, k, k).copy(), np.zeros((len(C), k, k)), np.arange(len(C))
    for _ in range(k):
        i, j = np.divmod(M.reshape(len(C), -1).argmin(axis=1), k)
        W[rows, i, j] = 1.0
        M[rows, i, :] = M[rows, :, j] = np.inf
    return W.reshape(len(C), -1)


def loose_gap(V, weights, capacity, gap):
    """A decision whose value is within a relative gap of the best one, as a solver returns it that stops early."""
    points = ((np.arange(2 ** len(weights))[:, None] >> np.arange(len(weights))) & 1).astype(float)
    points = points[points @ weights <= capacity]
    values = V @ points.T
    best = values.max(axis=1, keepdims=True)
    return points[(values >= best - gap * np.abs(best)).argmax(axis=1)]


WEIGHTS = np.array([3, 8, 5, 4, 7, 6, 3, 5, 4, 8])


#: name: exact region, heuristic, degree of the costs, their noise, number of costs
HEURISTICS = {
    "greedy": (Knapsack(WEIGHTS, 18), lambda V: greedy_knapsack(V, WEIGHTS, 18), 2, 0.1),
    "careless": (Knapsack(WEIGHTS, 18), lambda V: greedy_knapsack(V, WEIGHTS, 18, -np.inf), 1, 0.1),
    "gap of 20 %": (Knapsack(WEIGHTS, 18), lambda V: loose_gap(V, WEIGHTS, 18, 0.2), 1, 0.5),
    "gap of 0.5 %": (Knapsack(WEIGHTS, 18), lambda V: loose_gap(V, WEIGHTS, 18, 5e-3), 4, 0.5),
    "assignment": (Assignment(4), lambda C: greedy_assignment(C, 4), 3, 0.1),
    "signs ignored": (TopK(3), lambda C: TopK(3).argmin(np.abs(C)), 1, 0.1),
    "negative costs ignored": (TopK(3), lambda C: TopK(3).argmin(np.maximum(C, 0.0)), 3, 0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HEURISTICS)
def test_auto_makes_the_best_of_a_heuristic(name):
    """Not worse than least squares or any solver, by the heuristic's own decisions; on new data not much worse."""
    exact, oracle, degree, noise = HEURISTICS[name]
    rng = np.random.default_rng(0)
    d = 16 if name == "assignment" else 10
    X, C, B = polynomial_costs(150, 5, d, degree, noise, rng)
    X_new, C_new, _ = polynomial_costs(2000, 5, d, degree, noise, rng, B)
    region = OracleRegion(oracle, d, sense=exact.sense, on_suboptimal="warn")
    models = {"least squares": TwoStageRegressor(region=region).fit(X, C)}
    for solver in ("auto", "bundle", "sgd"):
        with only_the_region_warns():
            models[solver] = SPOPlusRegressor(region, solver=solver, random_state=0).fit(X, C)

    def regret(model, X, C):
        sign, best = (-1.0 if exact.sense == "max" else 1.0), (C * exact.argmin(C)).sum()
        return sign * ((C * oracle(model.predict(X))).sum() - best) / abs(best)

    auto = models.pop("auto")
    for other in models.values():
        assert regret(auto, X, C) <= regret(other, X, C) + 1e-9
    assert regret(auto, X_new, C_new) <= 1.1 * min(regret(other, X_new, C_new) for other in models.values()) + 0.005


@pytest.mark.slow
def test_training_pays_with_a_heuristic_that_is_nearly_exact():
    exact, oracle, degree, noise = HEURISTICS["gap of 0.5 %"]
    rng = np.random.default_rng(0)
    X, C, B = polynomial_costs(150, 5, 10, degree, noise, rng)
    X_new, C_new, _ = polynomial_costs(2000, 5, 10, degree, noise, rng, B)
    with only_the_region_warns():
        region = OracleRegion(oracle, 10, sense="max", on_suboptimal="warn")
        model = SPOPlusRegressor(region, random_state=0).fit(X, C)
    true = SPOPlusRegressor(exact).fit(X, C)
    mine, truth, simple = (
        normalized_spo_loss(C_new, m.predict(X_new), exact) for m in (model, true, LinearRegression().fit(X, C))
    )
    assert truth < 0.8 * simple
    assert mine < truth + 0.2 * (simple - truth)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", "bundle", "sgd"])
@pytest.mark.parametrize("offset", [False, True])
def test_the_objective_is_the_loss_that_was_evaluated(solver, offset):
    """Also where it is negative, which only decisions that are not optimal can make it."""
    oracle = HEURISTICS["signs ignored"][1]
    X, C, _ = polynomial_costs(60, 5, 10, 2, 0.1, np.random.default_rng(3))
    known = 0.25 * C if offset else None
    region = OracleRegion(oracle, 10, on_suboptimal="warn")
    with only_the_region_warns():
        model = SPOPlusRegressor(region, solver=solver, random_state=0).fit(X, C, offset=known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = SPOPlusLoss(region).value(C, model.predict(X, offset=known)).mean()
    assert model.objective_ == pytest.approx(loss, abs=1e-9)
    assert model.objective_ < -0.01 or offset
    assert model.lower_bound_ == -np.inf


@pytest.mark.parametrize("prior", ["zero", "least_squares"])
@pytest.mark.parametrize("offset", [False, True])
def test_candidates_are_judged_by_decisions_in_the_users_units(prior, offset):
    """The heuristic rounds to whole numbers, so that units matter; what is known of the costs counts."""
    rng = np.random.default_rng(0)
    units = []

    def rounded(costs):
        units.append(np.abs(costs).mean())
        return cheapest(np.round(costs))

    C_large = 1000.0 * C
    known = 300.0 * rng.normal(size=C.shape) if offset else None
    region = check_region(OracleRegion(rounded, 4, on_suboptimal="warn"), 4)
    params = {"alpha": 1e-3, "prior": prior}
    local = InMemoryObjective(SPOPlusLoss(region), X, C_large, None, offset=known, **params)
    Theta = local.least_squares + 0.1 * rng.normal(size=local.shape)
    coef, intercept = local.to_user(Theta)
    C_hat = X @ coef.T + intercept + (0.0 if known is None else known)
    expected = (C_large * cheapest(np.round(C_hat))).sum(axis=1).mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = (local.decision_cost(Theta) - local.penalty(Theta)) * local.scale
        assert units[-1] > 10.0
        assert found == pytest.approx(expected, rel=1e-9)
        # The same from some of the rows, with another loss, and from rows in chunks.
        half = local.take(slice(None, None, 2), float(local.weight[::2].sum()))
        rest = local.take(slice(1, None, 2), float(local.weight[1::2].sum()))
        parts = [part.mean_decision_cost(Theta) * local.weight[k::2].sum() for k, part in enumerate((half, rest))]
        assert sum(parts) * local.scale == pytest.approx(expected, rel=1e-9)
        other = local.with_loss(SPOLoss(region))
        assert other.mean_decision_cost(Theta) * local.scale == pytest.approx(expected, rel=1e-9)
        with LocalRows(ChunkedData.from_arrays(X, C_large, None, known, chunk_rows=7)) as rows:
            chunked = ChunkedObjective(SPOPlusLoss(region), rows, **params)
            cost = chunked.mean_decision_cost(chunked.from_user(coef, intercept)) * chunked.scale
            assert cost == pytest.approx(expected, rel=1e-9)


def test_an_l1_penalty_still_makes_zeros():
    _, oracle, degree, noise = HEURISTICS["greedy"]
    X, C, _ = polynomial_costs(100, 5, 10, degree, noise, np.random.default_rng(0))
    X[:, 3:] = np.random.default_rng(1).normal(size=(100, 2))  # says nothing about the costs
    region = OracleRegion(oracle, 10, sense="max", on_suboptimal="warn")
    with only_the_region_warns():
        model = SPOPlusRegressor(region, alpha=0.3, l1_ratio=1.0, random_state=0).fit(X, C)
    assert 0 < (model.coef_ == 0.0).mean() < 1
    assert model.lower_bound_ == -np.inf


def test_a_penalty_that_is_strong_beats_least_squares():
    """The penalty counts when candidates are compared: what was asked for is a model near zero."""
    _, oracle, degree, noise = HEURISTICS["greedy"]
    X, C, _ = polynomial_costs(100, 5, 10, degree, noise, np.random.default_rng(0))
    region = OracleRegion(oracle, 10, sense="max", on_suboptimal="warn")
    with only_the_region_warns():
        model = SPOPlusRegressor(region, alpha=1e4, random_state=0).fit(X, C)
    assert np.abs(model.coef_).max() < 1e-2 * np.abs(LinearRegression().fit(X, C).coef_).max()


def test_time_and_iterations_are_told_about():
    _, oracle, degree, noise = HEURISTICS["greedy"]
    X, C, _ = polynomial_costs(60, 5, 10, degree, noise, np.random.default_rng(0))
    region = OracleRegion(oracle, 10, sense="max", on_suboptimal="warn")
    for params, name in (({"max_iter": 2}, "max_iter"), ({"time_limit": 1e-6}, "time_limit")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SPOPlusRegressor(region, random_state=0, **params).fit(X, C)
        first, second = (str(w.message) for w in caught)
        assert first.startswith("OracleRegion")
        assert re.search(rf"solver stopped early: {name}=.* Increase {name} to go on", second) and "bound" not in second
        assert model.lower_bound_ == -np.inf
