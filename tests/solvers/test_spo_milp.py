"""The mixed-integer program for the SPO loss: its optimum, and the models for which its bound holds."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from spo_problems import FINITE, random_data

import skspo.solvers.spo.milp as milp_module
from skspo import (
    Box,
    Knapsack,
    ShortestPath,
    Simplex,
    SPOLoss,
    SPOPlusRegressor,
    SPORegressor,
    spo_loss,
)
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo.solvers.spo.milp import MILPSolver, list_vertices


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


def test_milp_refuses_what_it_cannot_do_and_stops_in_time(monkeypatch):
    X, C = random_data(5)
    with pytest.raises(ValueError, match="too many bases"):
        SPORegressor(ShortestPath.grid(5, 5), solver="milp").fit(*random_data(40))
    with pytest.raises(ValueError, match="standard_form"):
        SPORegressor(Knapsack(np.arange(1, 31), 200), solver="milp").fit(*random_data(30))
    with pytest.raises(ValueError, match="no penalty"):
        SPORegressor(Simplex(), solver="milp", alpha=1.0).fit(X, C)
    X, C = random_data(5, n=60, p=4)
    # The program alone has half a second, so that the start is complete on a busy machine as well.
    real = milp_module.milp
    monkeypatch.setattr(
        milp_module, "milp", lambda *args, **more: real(*args, **more | {"options": {"time_limit": 0.5}})
    )
    with pytest.warns(ConvergenceWarning, match=r"milp.*stopped early"):
        model = SPORegressor(Simplex(), solver="milp").fit(X, C)
    assert 0 <= model.lower_bound_ <= model.objective_
    assert model.objective_ <= spo_loss(C, SPOPlusRegressor(Simplex()).fit(X, C).predict(X), Simplex()) + 1e-12


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
