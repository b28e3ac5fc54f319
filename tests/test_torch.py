"""The PyTorch module gives the loss and the gradient of the NumPy loss."""

import copy
import pickle

import numpy as np
import pytest

from skspo import Box, EntropySimplex, Knapsack, OracleRegion, ShortestPath, Simplex, SPOPlusRegressor
from skspo import SPOPlusLoss as NumpyLoss
from skspo.datasets import make_shortest_path

torch = pytest.importorskip("torch")

from skspo.torch import SPOPlusLoss  # noqa: E402

REGIONS = [
    Simplex(),
    Simplex(sense="max"),
    Box(-1, 2),
    EntropySimplex(),
    ShortestPath.grid(3, 3),
    Knapsack(np.arange(1, 7), 9),
    None,
]


def costs(region, n=7, seed=0):
    d = 6 if region is None or region.n_dim is None else region.n_dim
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d))


@pytest.mark.parametrize("region", REGIONS, ids=repr)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_value_and_gradient_are_those_of_numpy(region, reduction):
    C, C_hat = costs(region)
    value, G = NumpyLoss(region).value_gradient(C, C_hat)
    predicted = torch.tensor(C_hat, requires_grad=True)
    loss = SPOPlusLoss(region, reduction)(predicted, torch.tensor(C))
    expected = value if reduction == "none" else getattr(value, reduction)()
    np.testing.assert_allclose(loss.detach().numpy(), expected, rtol=1e-12)
    weight = np.linspace(1, 2, len(C)) if reduction == "none" else np.ones(len(C))
    (loss * torch.tensor(weight)).sum().backward() if reduction == "none" else loss.backward()
    scale = weight / (len(C) if reduction == "mean" else 1)
    np.testing.assert_allclose(predicted.grad.numpy(), scale[:, None] * G, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("region", [Simplex(), EntropySimplex(), ShortestPath.grid(3, 3)], ids=repr)
def test_gradient_is_the_slope(region):
    """Against finite differences: the loss is smooth, or linear around a random prediction."""
    C, C_hat = costs(region, n=4)
    loss = SPOPlusLoss(region)
    predicted = torch.tensor(C_hat, requires_grad=True)
    assert torch.autograd.gradcheck(lambda T: loss(T, torch.tensor(C)), (predicted,), eps=1e-6, atol=1e-5)


def test_best_decisions_are_computed_once_if_given():
    calls = []

    def oracle(C):
        calls.append(len(C))
        return Simplex().argmin(C)

    C, C_hat = costs(Simplex())
    region = OracleRegion(oracle, 6)
    predicted = torch.tensor(C_hat, requires_grad=True)
    plain = SPOPlusLoss(region)
    a = plain(predicted, torch.tensor(C))
    calls.clear()
    plain(predicted, torch.tensor(C))
    without = sum(calls)
    calls.clear()
    b = plain(predicted, torch.tensor(C), torch.tensor(Simplex().argmin(C)))
    assert without == 2 * len(C) and sum(calls) == len(C)
    assert a.item() == b.item()


def test_precision_of_the_predictions_is_kept():
    C, C_hat = costs(Simplex())
    predicted = torch.tensor(C_hat, dtype=torch.float32, requires_grad=True)
    loss = SPOPlusLoss(Simplex())(predicted, torch.tensor(C))
    loss.backward()
    assert loss.dtype == predicted.grad.dtype == torch.float32
    assert loss.item() == pytest.approx(NumpyLoss(Simplex()).value(C, C_hat).mean(), rel=1e-5)


def test_training_reaches_the_certified_optimum():
    X, C = make_shortest_path(100, grid=(3, 3), degree=4, noise=0.5, random_state=0)
    region = ShortestPath.grid(3, 3)
    exact = SPOPlusRegressor(region).fit(X, C)
    torch.manual_seed(0)
    layer = torch.nn.Linear(X.shape[1], C.shape[1], dtype=torch.float64)
    loss_fn = SPOPlusLoss(region)
    X_t, C_t, W_t = torch.tensor(X), torch.tensor(C), torch.tensor(region.argmin(C))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 400)
    for _ in range(400):
        optimizer.zero_grad()
        loss_fn(layer(X_t), C_t, W_t).backward()
        optimizer.step()
        schedule.step()
    reached = loss_fn(layer(X_t), C_t, W_t).item()
    assert exact.lower_bound_ - 1e-9 <= reached <= 1.02 * exact.objective_


def test_bad_input():
    loss = SPOPlusLoss(Simplex())
    C = torch.zeros(2, 3)
    with pytest.raises(ValueError, match=r"same shape.*\(2, 3\), \(2, 4\)"):
        loss(C, torch.zeros(2, 4))
    with pytest.raises(ValueError, match="same shape"):
        loss(C[0], C[0])
    with pytest.raises(ValueError, match="not finite"):
        loss(C / 0, C)
    with pytest.raises(ValueError, match="reduction"):
        SPOPlusLoss(Simplex(), reduction="max")
    with pytest.raises(ValueError, match="12 decision variables"):
        SPOPlusLoss(ShortestPath.grid(3, 3))(C, C)


def test_module_copies_pickles_and_prints():
    C, C_hat = map(torch.tensor, costs(ShortestPath.grid(3, 3)))
    loss = SPOPlusLoss(ShortestPath.grid(3, 3))
    value = loss(C_hat, C).item()
    assert copy.deepcopy(loss)(C_hat, C).item() == value
    assert pickle.loads(pickle.dumps(loss))(C_hat, C).item() == value
    assert repr(loss) == "SPOPlusLoss(region=ShortestPath, reduction='mean')"
    # A region that is replaced is noticed.
    loss.region = Simplex()
    assert loss(C_hat, C).item() != value
