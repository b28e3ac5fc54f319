"""CVXPY regions whose parameters vary by sample, against a problem of CVXPY for each sample."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import skspo as sk
from skspo.regions.capabilities import CAPABILITIES, has

SECTORS = np.kron(np.eye(3), np.ones(2))
FACTOR = np.random.default_rng(0).normal(size=(6, 6))
RISK = FACTOR @ FACTOR.T / 6 + 0.1 * np.eye(6)


def portfolio(yesterday, turnover=None, limit=1.0):
    """Weights with sector caps, a variance limit and a turnover limit against yesterday's holdings."""
    turnover = 0.4 if turnover is None else turnover
    return lambda w: [
        w >= 0,
        cp.sum(w) == 1,
        SECTORS @ w <= 0.6,
        cp.quad_form(w, cp.psd_wrap(RISK)) <= limit,
        cp.norm1(w - yesterday) <= turnover,
    ]


def parameter(name="yesterday", value=None, **traits):
    value = np.full(6, 1 / 6) if value is None else value
    return cp.Parameter(np.shape(value), name=name, value=value, **traits)


def rows(n, seed=1):
    rng = np.random.default_rng(seed)
    holdings = 0.3 * rng.dirichlet(np.ones(6), size=n) + 0.7 / 6
    return holdings, rng.normal(size=(n, 6))


def best(c, constraints):
    w = cp.Variable(6)
    problem = cp.Problem(cp.Minimize(c @ w), constraints(w))
    problem.solve(solver="CLARABEL")
    return problem.value


def test_turnover_against_cvxpy():
    holdings, C = rows(12)
    turnover = np.linspace(0.1, 0.8, 12)
    region = sk.CvxpyRegion(portfolio(parameter(), parameter("turnover", 0.4, nonneg=True)), 6)
    own = region.with_rows({"yesterday": holdings, "turnover": turnover}, 12, 6)
    W = own.argmin(C)
    for w, c, y, most in zip(W, C, holdings, turnover, strict=True):
        assert c @ w == pytest.approx(best(c, portfolio(y, most)), abs=1e-6)
        assert np.abs(w - y).sum() <= most + 1e-6
    some = np.array([5, 2])
    np.testing.assert_array_equal(own.take(some).argmin(C[some]), W[some])
    # The plain region and its parameters are as before.
    assert region.argmin(C[:1]) @ C[0] == pytest.approx(best(C[0], portfolio(np.full(6, 1 / 6))), abs=1e-6)
    assert {name for name in CAPABILITIES if has(own, name)} == set()
    assert has(region, "repair") and has(region, "support_epigraph")


def test_one_value_for_all_rows():
    holdings, C = rows(4)
    region = sk.CvxpyRegion(portfolio(parameter()), 6)
    many = region.with_rows({"yesterday": np.tile(holdings[:1], (4, 1))}, 4, 6).argmin(C)
    np.testing.assert_allclose(region.with_rows({"yesterday": holdings[0]}, 4, 6).argmin(C), many)


def test_matrices_by_sample():
    """A parameter with two axes that multiplies the decision, so that the matrix of the cones differs."""
    rng = np.random.default_rng(2)
    A = parameter("A", np.ones((2, 3)))
    region = sk.CvxpyRegion(lambda w: [w >= 0, w <= 1, A @ w <= 1], 3)
    values, C = rng.random((8, 2, 3)), -rng.random((8, 3))
    W = region.with_rows({"A": values}, 8, 3).argmin(C)
    for w, c, M in zip(W, C, values, strict=True):
        x = cp.Variable(3)
        problem = cp.Problem(cp.Minimize(c @ x), [x >= 0, x <= 1, M @ x <= 1])
        problem.solve(solver="CLARABEL")
        assert c @ w == pytest.approx(problem.value, abs=1e-6)


def test_training():
    holdings, noise = rows(12)
    X = np.random.default_rng(3).normal(size=(12, 2))
    C = X @ np.random.default_rng(4).normal(size=(2, 6)) + 0.1 * noise
    region, params = sk.CvxpyRegion(portfolio(parameter()), 6), {"yesterday": holdings}
    model = sk.SPOPlusRegressor(region, alpha=0.1, tol=1e-3).fit(X, C, region_params=params)
    assert model.solver_ in ("bundle", "dual") and model.duality_gap_ <= 1e-3
    W = model.decide(X, region_params=params)
    assert (np.abs(W - holdings).sum(axis=1) <= 0.4 + 1e-6).all()
    assert model.score(X, C, region_params=params) <= 0
    with pytest.raises(ValueError, match="conic"):
        sk.SPOPlusRegressor(region, solver="conic").fit(X, C, region_params=params)


def test_an_empty_row_is_named():
    region = sk.CvxpyRegion(lambda w: [w >= 0, cp.sum(w) == 1, w[0] <= LIMIT], 2)
    with pytest.raises(sk.InfeasibleRegionError, match="region of row 1 is empty"):
        region.with_rows({"limit": [0.5, -1.0]}, 2, 2).argmin(np.ones((2, 2)))


LIMIT = cp.Parameter(name="limit", value=0.5)


def capped(w):
    return [w >= 0, cp.sum(w) == 1, w[0] <= LIMIT]


def two_of_a_name(w):
    return [w >= 0, cp.sum(w) <= cp.Parameter(name="b", value=1.0), w <= cp.Parameter(name="b", value=2.0)]


def not_dpp(w):
    a, b = cp.Parameter(name="a", value=1.0), cp.Parameter(name="b", value=1.0)
    return [w >= 0, cp.sum(w) <= a * b]


def positive(w):
    return [w >= 0, cp.sum(w) <= cp.Parameter(name="b", value=1.0, nonneg=True)]


def no_value(w):
    return [w >= 0, cp.sum(w) <= cp.Parameter(name="b")]


@pytest.mark.parametrize(
    ("constraints", "params", "match"),
    [
        (capped, {"limits": [0.5, 0.5]}, r"cannot vary by sample in 'limits', only in \['limit'\]"),
        (capped, {"limit": [0.5, 0.5, 0.5]}, "one row for each of the 2 samples"),
        (capped, {"limit": [[0.5, 0.1], [0.5, 0.1]]}, "must have shape"),
        (capped, {"limit": [0.5, np.nan]}, "limit must be finite, got nan in row 1"),
        (capped, {"limit": [0.5, np.inf]}, "limit must be finite"),
        (capped, {"limit": ["a", "b"]}, "limit must be an array of numbers"),
        (capped, {}, "region_params is empty"),
        (capped, [0.5, 0.5], "must be a dict of arrays"),
        (capped, pd.DataFrame({"cap": [0.1, 0.2]}), "cannot vary by sample in 'cap'"),
        (two_of_a_name, {"b": [1.0, 1.0]}, "two parameters have the name 'b'"),
        (not_dpp, {"a": [1.0, 1.0]}, "not DPP"),
        (positive, {"b": [1.0, -1.0]}, "b of row 1 is not what its parameter says: nonneg"),
        (no_value, {"b": [1.0, 1.0]}, "has no value"),
        (lambda w: [w >= 0, w <= 1], {"b": [1.0, 1.0]}, "has no parameters that may vary by sample"),
    ],
)
def test_wrong_parameters(constraints, params, match):
    with pytest.raises((ValueError, TypeError), match=match):
        sk.CvxpyRegion(constraints, 2).with_rows(params, 2, 2)
