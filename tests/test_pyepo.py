"""Regions as models of PyEPO: its own models, losses, metrics and generators give the same."""

import copy
import pickle

import cvxpy as cp
import numpy as np
import pytest

from skspo import Box, CvxpyRegion, Knapsack, ShortestPath, Simplex, SPOPlusLoss, normalized_spo_loss, spo_loss

torch = pytest.importorskip("torch")
pyepo = pytest.importorskip("pyepo")

from pyepo.data.dataset import optDataset  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from skspo.datasets import make_knapsack, make_shortest_path  # noqa: E402
from skspo.pyepo import BLOCK, RegionModel  # noqa: E402

WEIGHTS, CAPACITY = np.random.default_rng(3).integers(3, 8, (2, 12)), [20, 22]
LOADINGS = np.random.default_rng(5).normal(size=(6, 4))
COVARIANCE = LOADINGS @ LOADINGS.T + np.eye(6)


def portfolio():
    """The set of PyEPO's portfolios: weights that sum to one, with a bound on the variance."""
    limit = 2.25 * COVARIANCE.mean()
    return CvxpyRegion(
        lambda w: [w >= 0, cp.sum(w) == 1, cp.quad_form(w, COVARIANCE) <= limit],
        n_dim=6,
        sense="max",
    )


def solved(model, C):
    values = []
    for c in C:
        model.setObj(c)
        values.append(model.solve()[1])
    return np.array(values)


def own_model(name):
    """A model of PyEPO, with the solver that is installed."""
    for backend in ("gurobi", "ortools"):
        try:
            if name == "path":
                return pyepo.model.shortestPathModel((5, 5), backend=backend)
            if name == "portfolio":
                return pyepo.model.portfolioModel(6, COVARIANCE, backend=backend)
            return pyepo.model.knapsackModel(WEIGHTS, CAPACITY, backend=backend)
        except (ImportError, ValueError, AttributeError):
            continue
    pytest.skip("PyEPO has no solver here")


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("path", ShortestPath.grid(5, 5)),
        ("knapsack", Knapsack(WEIGHTS, CAPACITY, sense="max")),
        ("portfolio", portfolio()),
    ],
)
def test_optimal_values_of_pyepos_own_models(name, region):
    rng = np.random.default_rng(0)
    own, model = own_model(name), RegionModel(region)
    assert model.num_cost == own.num_cost
    assert model.modelSense == own.modelSense
    C = rng.uniform(0.5, 3, (100, model.num_cost))
    np.testing.assert_allclose(solved(model, C), solved(own, C), rtol=1e-5 if name == "portfolio" else 1e-6)


@pytest.mark.parametrize("region", [ShortestPath.grid(3, 3), Simplex(sense="max"), Box(-1, 2)], ids=repr)
@pytest.mark.parametrize("kind", ["matrix", "part", "list", "tensor", "transposed", "changed", "repeated"])
def test_decisions_are_those_of_the_region(region, kind):
    d = region.n_dim or 6
    C = np.random.default_rng(1).normal(size=(2 * BLOCK + 7, d))
    model = RegionModel(region, None if region.n_dim else d)
    rows = {
        "part": C[5:, :],
        "list": C.tolist(),
        "tensor": torch.tensor(C),
        "transposed": np.asfortranarray(C),
        "repeated": np.repeat(C, 2, axis=0),
    }.get(kind, C)
    decisions = []
    for i, c in enumerate(rows):
        if kind == "changed" and i % 3 == 0:
            C[i + 1 :] = -C[i + 1 :]
        model.setObj(c)
        decisions.append(model.solve()[0])
    np.testing.assert_array_equal(decisions, region.argmin(np.array([np.asarray(c) for c in rows])))


def test_a_batch_is_one_call_of_the_oracle(monkeypatch):
    calls = []
    model = RegionModel(Simplex(), num_cost=4)
    solve = model.region.argmin
    monkeypatch.setattr(model.region, "argmin", lambda C: calls.append(len(C)) or solve(C))
    loss = pyepo.func.SPOPlus(model, processes=1)
    c = torch.rand(32, 4)
    w = torch.as_tensor(solve(c.numpy()), dtype=torch.float32)
    loss(torch.rand(32, 4), c, w, (c * w).sum(1, keepdim=True))
    assert calls == [32]


@pytest.mark.parametrize("region", [ShortestPath.grid(3, 3), Knapsack(np.arange(1, 6), 7, sense="max")], ids=repr)
def test_loss_and_regret_are_ours(region):
    d = region.n_dim
    rng = np.random.default_rng(2)
    X, C = rng.normal(size=(50, 3)), rng.uniform(1, 2, (50, d)).astype(np.float32)
    model, linear = RegionModel(region), torch.nn.Linear(3, d)
    data = optDataset(model, X, C)
    loader = DataLoader(data, batch_size=16)
    with torch.no_grad():
        C_hat = linear(data.feats).numpy()
    regret = pyepo.metric.regret(linear, model, loader)
    assert regret == pytest.approx(normalized_spo_loss(C, C_hat, region), rel=1e-4)
    each = pyepo.metric.regret(linear, model, loader, reduction="sum")
    assert each / 50 == pytest.approx(spo_loss(C, C_hat, region), rel=1e-4)

    value, G = SPOPlusLoss(region).value_gradient(C, C_hat)
    predicted = torch.tensor(C_hat, requires_grad=True)
    loss = pyepo.func.SPOPlus(model, processes=1, reduction="none")(predicted, data.costs, data.sols, data.objs)
    np.testing.assert_allclose(loss.detach().numpy().ravel(), value, atol=1e-4)
    loss.sum().backward()
    np.testing.assert_allclose(predicted.grad.numpy(), G, atol=1e-5)


@pytest.mark.parametrize("make", ["perturbedFenchelYoung", "negativeIdentity", "blackboxOpt", "NCE"])
def test_losses_of_pyepo_train(make):
    region = ShortestPath.grid(3, 3)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(64, 4))
    C = (np.exp(0.3 * X @ rng.normal(size=(4, region.n_dim)))).astype(np.float32)
    model = RegionModel(region)
    data = optDataset(model, X, C)
    more = {"dataset": data} if make == "NCE" else {}
    loss = getattr(pyepo.func, make)(model, processes=1, **more)
    torch.manual_seed(0)
    linear = torch.nn.Linear(4, region.n_dim)
    adam = torch.optim.Adam(linear.parameters(), 0.03)
    loader = DataLoader(data, batch_size=16)
    before = pyepo.metric.regret(linear, model, loader)
    for _ in range(15):
        for x, c, w, _ in loader:
            adam.zero_grad()
            C_hat = linear(x)
            decides = make in ("negativeIdentity", "blackboxOpt")
            value = (loss(C_hat) * c).sum(1).mean() if decides else loss(C_hat, w)
            value.backward()
            adam.step()
    assert pyepo.metric.regret(linear, model, loader) < before


@pytest.mark.parametrize(("seed", "degree", "noise"), [(42, 4, 0.5), (135, 1, 0.0), (7, 6, 0.3)])
def test_shortest_path_data_bit_by_bit(seed, degree, noise):
    X, C = pyepo.data.shortestpath.genData(50, 5, (4, 6), deg=degree, noise_width=noise, seed=seed)
    ours = make_shortest_path(50, 5, grid=(4, 6), degree=degree, noise=noise, random_state=seed)
    np.testing.assert_array_equal(ours[0], X)
    np.testing.assert_array_equal(ours[1].astype(np.float32), C)


@pytest.mark.parametrize(("seed", "degree", "noise", "dim"), [(135, 6, 0.5, 2), (3, 2, 0.0, 1)])
def test_knapsack_data_bit_by_bit(seed, degree, noise, dim):
    weights, X, C = pyepo.data.knapsack.genData(50, 5, 16, dim=dim, deg=degree, noise_width=noise, seed=seed)
    ours = make_knapsack(
        50, 5, 16, n_constraints=dim, degree=degree, noise=noise, random_state=seed, return_weights=True
    )
    np.testing.assert_array_equal(ours[0], X)
    np.testing.assert_array_equal(ours[1], C)
    np.testing.assert_array_equal(np.atleast_2d(ours[2]), weights)


def test_copies_pickles_and_rebuilds():
    model = RegionModel(Simplex(), num_cost=3)
    for other in (model.copy(), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.rebuild()):
        other.setObj([2, 1, 3])
        assert other.solve()[1] == 1
        assert other.num_cost == 3


def test_errors():
    with pytest.raises(ValueError, match="give num_cost"):
        RegionModel(Simplex())
    model = RegionModel(Simplex(), num_cost=3)
    with pytest.raises(ValueError, match="shape \\(3,\\)"):
        model.setObj([1, 2])
    with pytest.raises(TypeError, match="must be a Region"):
        RegionModel("simplex")
    model.setObj([1, np.nan, 2])
    with pytest.raises(ValueError, match="NaN"):
        model.solve()
