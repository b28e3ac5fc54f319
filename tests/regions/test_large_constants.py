"""Big-M constraints and constraints that never bind."""

import itertools

import numpy as np
import pytest
from brute_force import seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skspo import Box, Knapsack, MixedInteger, Polyhedron, SolverError, SPOPlusRegressor
from skspo.regions._oracles.highs import tighten
from skspo.regions.polyhedral import InequalityForm

some = settings(max_examples=25, deadline=None)
constants = st.sampled_from([1e2, 1e5, 1e7, 1e9, 1e10, 1e11, 1e13])


def least_cost(prices, fixed, high, demand):
    """Fixed charge problem by enumeration of what is opened; the cheapest open ones are used first."""
    best = np.inf
    for opened in itertools.product((False, True), repeat=prices.size):
        opened = np.array(opened)
        order = np.flatnonzero(opened)[np.argsort(prices[opened])]
        before = np.cumsum(high[order]) - high[order]
        amounts = np.clip(demand - before, 0.0, high[order])
        if amounts.sum() >= demand - 1e-12:
            best = min(best, float(fixed[opened].sum() + prices[order] @ amounts))
    return best


@some
@given(seeds, constants, st.booleans(), st.booleans())
def test_fixed_charges(seed, M, whole, by_row):
    """Amounts x <= M y that are paid once more if they are not zero."""
    rng, k = np.random.default_rng(seed), 4
    high = rng.integers(1, 5, k).astype(float)
    prices, fixed, demand = rng.uniform(1, 3, k), rng.uniform(1, 9, k), float(rng.integers(1, high.sum()))
    A_ub = np.block([[np.eye(k), -M * np.eye(k)], [-np.ones((1, k)), np.zeros((1, k))]])
    b_ub = np.append(np.zeros(k), -demand)
    bounds = [(0, u) for u in high] + [(0, 1)] * k
    region = MixedInteger(A_ub, b_ub, bounds=bounds, integrality=[int(whole)] * k + [1] * k)
    c = np.concatenate([prices, fixed])
    if by_row:
        region = region.with_rows({"upper": np.append(high, np.ones(k))[None]}, 1, 2 * k)
    try:
        w = region.argmin(c[None])[0]
    except SolverError as error:
        assert by_row and "violates a constraint" in str(error)
        return
    x, y = w[:k], w[k:]
    assert set(y) <= {0.0, 1.0} and (x[y == 0] <= 1e-7).all() and x.sum() >= demand - 1e-7
    assert_allclose(c @ w, least_cost(prices, fixed, high, demand), rtol=1e-6)


@some
@given(seeds)
def test_tightened_constraints_have_the_same_integer_points(seed):
    rng, d = np.random.default_rng(seed), 4
    A, b = rng.integers(-5, 6, (3, d)).astype(float), rng.integers(-6, 7, 3).astype(float)
    A[rng.integers(3), rng.integers(d)] *= 1e6
    integers = np.append(rng.random(d - 1) < 0.7, False)
    lower, upper = -np.ones(d), rng.integers(0, 3, d).astype(float)
    form = InequalityForm.build(d, A, b, lower=lower, upper=upper)
    tight = tighten(form, integers)
    grids = [np.arange(a, u + 1) if z else np.linspace(a, u, 5) for a, u, z in zip(lower, upper, integers, strict=True)]
    points = np.array(list(itertools.product(*grids)))
    inside = [(points @ f.A_ub.toarray().T <= f.b_ub + 1e-7).all(axis=1) for f in (form, tight)]
    np.testing.assert_array_equal(*inside)


@pytest.mark.parametrize("M", [1e9, 1e13])
@pytest.mark.parametrize("integrality", [[0, 1], [1, 1]])
def test_big_constants_are_obeyed(M, integrality):
    region = MixedInteger(A_ub=[[1, -M]], b_ub=[0], bounds=(0, 1), integrality=integrality)
    np.testing.assert_array_equal(region.argmin([[-1.0, 0.1], [-1.0, 2.0]]), [[1, 1], [0, 0]])


LOOSE = {
    "right-hand side": ([[1, 1, 1]], [1e15]),
    "coefficient": ([[1e16, 1, 1]], [1e17]),
    "beside others": ([[1, 1, 1], [1, 2, 1e16], [-1e18, 0, 0]], [2, 1e17, 1e3]),
}


@pytest.mark.parametrize("solver", ["auto", "conic", "interior-point"])
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("name", LOOSE)
def test_constraints_that_never_bind(name, by_row, solver):
    A, b = LOOSE[name]
    rng = np.random.default_rng()
    X, C = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    params = {"b_ub": np.tile(b, (30, 1))} if by_row else None
    plain = Polyhedron([[1, 1, 1]], [2], bounds=(0, 1)) if len(b) > 1 else Box(0, 1)
    region = Polyhedron(A, b, bounds=(0, 1))
    model = SPOPlusRegressor(region, solver=solver, alpha=0.1).fit(X, C, region_params=params)
    truth = SPOPlusRegressor(plain, alpha=0.1).fit(X, C)
    assert_allclose(model.objective_, truth.objective_, rtol=3e-4)
    assert_allclose((C * region.argmin(C)).sum(axis=1), (C * plain.argmin(C)).sum(axis=1), atol=1e-7)
    assert region.inequality_form().b_ub.size == len(b) // 2


def test_constraints_that_never_bind_in_some_samples():
    """They stay if they bind in others."""
    region = Polyhedron([[1, 1, 1]], [2], bounds=(0, 1)).with_rows({"b_ub": [[1e9], [1.0]]}, 2, 3)
    assert region.inequality_form(3).b_ub.shape == (2, 1)
    assert_allclose(region.argmin([[-1.0, -2, -3], [-1, -2, -3]]), [[1, 1, 1], [0, 0, 1]])


def test_resources_that_never_run_out():
    region = Knapsack([[1, 2, 3], [1, 1, 1]], [1e16, 2], integer=False)
    assert region.inequality_form().b_ub.size == 1
    assert region._geometry().center.shape == (3,)
