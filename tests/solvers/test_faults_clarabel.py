"""Regions whose oracle is Clarabel: if it fails or returns a wrong answer, decisions are right or there is an error."""

from types import SimpleNamespace

import clarabel
import cvxpy as cp
import numpy as np
import pytest
from fault_problems import D, PanicException, ball, data

from skspo import (
    CvxpyRegion,
    Markowitz,
    SPOPlusRegressor,
)
from skspo.regions import markowitz
from skspo.regions._oracles.clarabel_cones import rows_inside

RealClarabel = clarabel.DefaultSolver


class BrokenClarabel:
    """Clarabel with a fault in every ``every``-th solution."""

    fault, every, count = None, 1, 0

    def __init__(self, *args):
        self.real = RealClarabel(*args)

    def update(self, **kwargs):
        self.real.update(**kwargs)

    def solve(self):
        cls = type(self)
        cls.count += 1
        real = self.real.solve()
        found = SimpleNamespace(
            x=np.array(real.x), z=np.array(real.z), s=np.array(real.s), status=real.status, iterations=real.iterations
        )
        if cls.count % cls.every == 0:
            cls.fault(found)
        return found


def set_x(make):
    def spoil(found):
        found.x = make(found.x)

    return spoil


def set_s(found):
    found.x, found.s = found.x + 1.0, -found.s


def set_z(make):
    def spoil(found):
        found.z = make(found.z)

    return spoil


def panic(found):
    raise PanicException("called unwrap on a None")


def stop(found):
    found.status = "MaxTime"


CLARABEL_FAULTS = {
    "moved": set_x(lambda x: x + 0.05),
    "mirrored": set_x(lambda x: x[::-1].copy()),
    "average": set_x(lambda x: np.full_like(x, x.mean())),
    "nan": set_x(lambda x: x * np.nan),
    "empty": set_x(lambda x: x[:0]),
    "none": set_x(lambda x: None),
    "wrong duals": set_z(lambda z: z + 0.5),
    "opposite duals": set_z(lambda z: -z),
    "no duals": set_z(lambda z: 0.0 * z),
    "wrong slacks": set_s,
    "panic": panic,
    "time": stop,
}

CONES = {
    "soc": lambda: CvxpyRegion(ball, D),
    "markowitz": lambda: Markowitz(np.diag([1.0, 2.0, 3.0, 4.0]), 0.6, sense="max"),
    "exp": lambda: CvxpyRegion(lambda w: [cp.sum(cp.entr(w)) >= 1.0, cp.sum(w) == 1], D),
    "pow": lambda: CvxpyRegion(lambda w: [cp.norm(w - 0.2, 1.5) <= 1.0], D),
    "psd": lambda: CvxpyRegion(lambda w: [cp.lambda_max(cp.diag(w) + np.ones((D, D))) <= 5, w >= -1], D),
}


@pytest.mark.parametrize("fault", CLARABEL_FAULTS)
@pytest.mark.parametrize("name", CONES)
def test_decisions_of_clarabel_are_right_or_an_error(name, fault, monkeypatch):
    monkeypatch.setattr(markowitz, "ITERATIONS", 0)  # of Markowitz, which then leaves all rows to Clarabel
    C = np.random.default_rng(2).normal(size=(6, D))
    region = CONES[name]()
    truth = region.argmin(C)
    broken = type("Broken", (BrokenClarabel,), {"fault": staticmethod(CLARABEL_FAULTS[fault])})
    monkeypatch.setattr(clarabel, "DefaultSolver", broken)
    with pytest.raises(RuntimeError, match=r"Clarabel.*row 0"):
        region.argmin(C)
    # A second attempt helps if only the first one fails.
    broken.every, broken.count = 2, 1
    np.testing.assert_allclose((C * region.argmin(C)).sum(axis=1), (C * truth).sum(axis=1), atol=1e-5)


@pytest.mark.parametrize("fault", CLARABEL_FAULTS)
def test_repair_by_clarabel_ends_inside_or_in_an_error(fault, monkeypatch):
    region = CONES["soc"]()
    W = np.random.default_rng(2).normal(size=(6, D))
    region.repair(W)
    broken = type("Broken", (BrokenClarabel,), {"fault": staticmethod(CLARABEL_FAULTS[fault])})
    monkeypatch.setattr(clarabel, "DefaultSolver", broken)
    try:
        inside = region.repair(W)
    except RuntimeError as error:
        assert "Clarabel could not move the decision of row" in str(error)
    else:
        assert (inside >= -1e-7).all()
        np.testing.assert_allclose(inside.sum(axis=1), 1.0, atol=1e-7)
        assert (np.linalg.norm(inside, axis=1) <= 0.8 + 1e-7).all()


@pytest.mark.parametrize("name", CONES)
def test_a_fit_with_a_failing_clarabel_raises(name, monkeypatch):
    monkeypatch.setattr(markowitz, "ITERATIONS", 0)  # of Markowitz, which then leaves all rows to Clarabel
    X, C = data()
    model = SPOPlusRegressor(CONES[name]())
    broken = type("Broken", (BrokenClarabel,), {"fault": staticmethod(CLARABEL_FAULTS["moved"])})
    monkeypatch.setattr(clarabel, "DefaultSolver", broken)
    with pytest.raises(RuntimeError, match=r"Clarabel calls a decision for (row|direction) \d+ optimal, but it"):
        model.fit(X, C)
    assert not hasattr(model, "coef_")


def test_cones_by_hand():
    """Membership against points whose side is known; the duals by their definition, on random points of the cones."""
    rng = np.random.default_rng(0)
    n = 400
    points = {
        ("nonneg", 3): np.abs(rng.normal(size=(n, 3))),
        ("soc", 3): np.column_stack([np.full(n, 2.0), *(rng.uniform(-1, 1, size=(2, n)))]),
        ("exp", None): np.column_stack(
            [x := rng.normal(size=n), y := rng.uniform(0.1, 2, n), y * np.exp(x / y) + rng.uniform(0, 1, n)]
        ),
        ("pow", 0.3): np.column_stack(
            [x := rng.uniform(0, 2, n), y := rng.uniform(0, 2, n), x**0.3 * y**0.7 * rng.uniform(-1, 1, n)]
        ),
        ("genpow", (0.2, 0.8)): np.column_stack(
            [x := rng.uniform(0, 2, n), y := rng.uniform(0, 2, n), x**0.2 * y**0.8 * rng.uniform(-1, 1, n)]
        ),
    }
    roots = rng.normal(size=(n, 2, 2))
    squares = roots @ roots.transpose(0, 2, 1)
    points["psd", 2] = np.column_stack([squares[:, 0, 0], np.sqrt(2) * squares[:, 0, 1], squares[:, 1, 1]])
    tol = np.full(n, 1e-9)
    for cone, S in points.items():
        assert rows_inside([cone], S, tol).all(), cone
        # A vector is outside the dual if and only if it has a negative product with some point of the cone.
        Z = rng.normal(size=(n, S.shape[1]))
        products = S @ Z.T
        dual = rows_inside([cone], Z, tol, dual=True)
        assert (products[:, dual] >= -1e-6).all(), cone
        assert dual.sum() > 10, cone
        assert (products[:, ~dual] < 0).any(axis=0).mean() > 0.7, cone
        # A point that has a negative product with some dual vector is outside.
        outside = (Z @ Z[dual].T < -1e-6).any(axis=1)
        assert not rows_inside([cone], Z[outside], tol[: outside.sum()]).any(), cone
    assert rows_inside([("zero", 2)], np.array([[0.0, 0.0], [0.0, 1e-3]]), np.full(2, 1e-6)).tolist() == [True, False]
