"""Workers and tasks that are absent, labels, and choices of at most k, against all decisions."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import skspo as sk
from skspo.metrics import spo_loss


def cheapest(costs, possible):
    """Least cost of an assignment of everyone of the smaller side among those who have a possible pair."""
    rows, columns = np.flatnonzero(possible.any(axis=1)), np.flatnonzero(possible.any(axis=0))
    if rows.size > columns.size:
        return cheapest(costs.T, possible.T)
    best = np.inf
    for chosen in itertools.permutations(columns, rows.size):
        if possible[rows, chosen].all():
            best = min(best, costs[rows, chosen].sum())
    return best


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 3)])
def test_the_absent_do_not_matter(shape):
    rng = np.random.default_rng(0)
    d, n = shape[0] * shape[1], 60
    here = rng.random((n, shape[0])) < 0.7, rng.random((n, shape[1])) < 0.7
    available = (here[0][:, :, None] & here[1][:, None, :]).reshape(n, d)
    region = sk.Assignment(*shape).with_rows({"available": available}, n, d)
    C = rng.normal(size=(n, d))
    W = region.argmin(C)
    for w, c, possible in zip(W, C, available, strict=True):
        w, possible = w.reshape(shape), possible.reshape(shape)
        assert not w[~possible].any() and w.sum(axis=0).max() <= 1 and w.sum(axis=1).max() <= 1
        assert (c.reshape(shape) * w).sum() == pytest.approx(cheapest(c.reshape(shape), possible))
    assert not W[~available.any(axis=1)].any()  # nobody is there
    form = region.inequality_form(d)
    assert form.violation(W).max() < 1e-12
    C_true = rng.normal(size=(n, d))
    worst = region.worst_argmin(np.zeros((n, d)), C_true)
    for w, c, possible in zip(worst, C_true, available, strict=True):
        assert c @ w == pytest.approx(-cheapest(-c.reshape(shape), possible.reshape(shape)), abs=1e-7)


def test_training_with_absent_workers():
    rng = np.random.default_rng(1)
    X, here = rng.normal(size=(50, 3)), rng.random((50, 3)) < 0.8
    C, params = X @ rng.normal(size=(3, 9)) + 3.0, {"available": np.repeat(here, 3, axis=1)}
    fits = [
        sk.SPOPlusRegressor(sk.Assignment(3), alpha=0.1, solver=solver).fit(X, C, region_params=params)
        for solver in ("auto", "bundle", "interior-point")
    ]
    assert all(model.duality_gap_ <= 1e-6 for model in fits)
    assert fits[2].objective_ == pytest.approx(fits[1].objective_, rel=1e-5)
    assert not fits[0].decide(X, region_params=params)[~params["available"]].any()


def test_those_who_are_present_must_have_partners():
    with pytest.raises(sk.InfeasibleRegionError, match="row 1 is empty") as caught:
        sk.Assignment(3).with_rows({"available": [[1] * 9, [1, 0, 0, 1, 0, 0, 0, 1, 1]]}, 2, 9)
    assert "of all 3 of the smaller side" in str(caught.value)


def test_labels():
    region = sk.Assignment(workers=["Ann", "Bob"], tasks=["roof", "wall", "door"])
    assert region.n_dim == 6
    assert list(region.variable_names)[:2] == ["Ann -> roof", "Ann -> wall"]
    assert region.chosen([[3.0, 1.0, 2.0, 1.0, 2.0, 3.0]]) == [[("Ann", "wall"), ("Bob", "roof")]]
    assert sk.Assignment(tasks=["roof", "wall"]).chosen([[1.0, 2.0, 0.0, 5.0]]) == [[(0, "wall"), (1, "roof")]]
    frame = pd.DataFrame([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], columns=region.variable_names)
    assert_array_equal(region.argmin(frame), region.argmin(frame.to_numpy()))
    with pytest.raises(ValueError, match="order"):
        region.argmin(frame[frame.columns[::-1]])


def all_choices(d, k):
    points = np.array(list(itertools.product((0.0, 1.0), repeat=d)))
    return points[points.sum(axis=1) <= k]


def test_at_most_k_against_all_choices():
    rng = np.random.default_rng(2)
    for k in range(6):
        C, C_true = rng.integers(-2, 3, size=(30, 5)).astype(float), rng.normal(size=(30, 5))
        region, points = sk.TopK(k, at_most=True), all_choices(5, k)
        W = region.argmin(C)
        assert_array_equal((C * W).sum(axis=1), (C @ points.T).min(axis=1))
        worst = region.worst_argmin(C, C_true)
        for w, c, true in zip(worst, C, C_true, strict=True):
            value = points @ c
            assert true @ w == pytest.approx((points @ true)[value == value.min()].max())


def test_at_most_k_by_sample():
    """Fewer may be available than could be chosen."""
    rng = np.random.default_rng(3)
    n, C = 40, rng.normal(size=(40, 5))
    params = {"k": rng.integers(0, 6, size=n), "available": rng.random((n, 5)) < 0.5}
    region = sk.TopK(at_most=True).with_rows(params, n, 5)
    for w, c, k, there in zip(region.argmin(C), C, params["k"], params["available"], strict=True):
        assert c @ w == pytest.approx(np.sort(np.minimum(np.where(there, c, 0.0), 0.0))[:k].sum())
        assert not w[~there].any()
    model = sk.SPOPlusRegressor(sk.TopK(at_most=True), alpha=0.1).fit(C[:, :2], C, region_params=params)
    assert model.duality_gap_ <= 1e-6


def test_at_most_k_learns_when_to_choose_nothing():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2))
    V = X @ rng.normal(size=(2, 4))
    model = sk.SPOPlusRegressor(sk.TopK(2, at_most=True, sense="max"), alpha=0.0).fit(X, V)
    assert model.score(X, V) > -1e-6
    assert spo_loss(V, np.full_like(V, -1.0), model.region) == pytest.approx(
        np.sort(np.maximum(V, 0.0), axis=1)[:, -2:].sum(axis=1).mean()
    )


@pytest.mark.parametrize(
    ("make", "kind", "match"),
    [
        (lambda: sk.Assignment(workers="ab"), TypeError, "workers must be a list of labels"),
        (lambda: sk.Assignment(tasks=3), TypeError, "tasks must be a list of labels"),
        (lambda: sk.Assignment(workers=["a", "a"]), ValueError, "'a' is there 2 times"),
        (lambda: sk.Assignment(workers=[["a"], ["b"]]), TypeError, "hashable"),
        (lambda: sk.Assignment(3, workers=["a", "b"]), ValueError, "n=3, but there are 2 workers; omit n"),
        (lambda: sk.Assignment(n_tasks=3, tasks=["a", "b"]), ValueError, "n_tasks=3, but there are 2 tasks"),
        (lambda: sk.Assignment(workers=["a", "b", "c"]), ValueError, "a multiple of the number of workers, 3; got 4"),
        (lambda: sk.Assignment(tasks=["a", "b", "c"]), ValueError, "a multiple of the number of tasks, 3; got 4"),
        (lambda: sk.TopK(2, at_most=2), TypeError, "at_most must be True or False"),
        (lambda: sk.TopK(5, at_most=True), ValueError, "k must be an integer between 0"),
        (lambda: sk.TopK(-1, at_most=True), ValueError, "k must be an integer between 0"),
    ],
)
def test_wrong_parameters(make, kind, match):
    with pytest.raises(kind, match=match):
        make().argmin(np.ones((1, 4)))
