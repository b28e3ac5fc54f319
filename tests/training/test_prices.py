"""Costs of 1e4 to 1e12 in the training data, the price of forbidden options."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skspo import (
    Assignment,
    MixedInteger,
    OracleRegion,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    TwoStageRegressor,
)

PRICES = [1e4, 1e6, 1e9, 1e12]


def priced(M, n=40, d=5, seed=None, always=False):
    """Costs of 1 to 3; options that are forbidden in some rows, or one in all rows, cost M."""
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(n, 2)), rng.uniform(1, 3, (n, d))
    C[:, 0] += 0.3 * np.tanh(X[:, 0])
    closed = np.zeros((n, d), dtype=bool)
    if always:
        closed[:, -1] = True
    else:
        closed[rng.choice(n, n // 4, replace=False), rng.integers(1, d, n // 4)] = True
    return X, np.where(closed, M, C), closed


@pytest.mark.parametrize("M", PRICES)
@pytest.mark.parametrize(
    "estimator",
    [SPOPlusRegressor(), SPOPlusRegressorCV(cv=2, n_alphas=2), SPORegressor(max_iter=5), TwoStageRegressor()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_prices_are_a_warning_that_names_them(estimator, M):
    X, C, closed = priced(M)
    row, column = np.argwhere(closed)[0]
    estimator = type(estimator)(**estimator.get_params(deep=False) | {"region": Simplex()})
    count = int(closed.sum())
    with pytest.warns(UserWarning, match=rf"^{count} costs are .* row {row}, of decision {column}\. .*'available'"):
        estimator.fit(X, C)


def test_what_no_region_param_excludes_has_another_remedy():
    X, C, _ = priced(1e9, d=3)
    path = ShortestPath([(0, 1), (1, 2), (0, 2)], 0, 2)
    with pytest.warns(UserWarning, match="decision . .'. -> .'.*region_params={'available'"):
        SPOPlusRegressor(path).fit(X, C)
    own = OracleRegion(path.argmin, 3, variable_names=["a", "b", "c"])
    with pytest.warns(UserWarning, match="decision . .'[abc]'.*a region without it"):
        SPOPlusRegressor(own).fit(X, C)
    with pytest.warns(UserWarning, match="region_params={'upper'"):
        SPOPlusRegressor(Polyhedron(A_eq=[[1, 1, 1]], b_eq=[1])).fit(X, C)


def test_a_price_in_every_row():
    X, C, _ = priced(1e9, always=True)
    with pytest.warns(UserWarning, match="^40 costs"):
        SPOPlusRegressor(Simplex()).fit(X, C)


@pytest.mark.parametrize(
    "kind", ["normal", "lognormal", "zeros", "units", "constant", "tiny", "all equal", "one near zero"]
)
def test_ordinary_costs_give_no_warning(kind):
    rng = np.random.default_rng()
    X, C = rng.normal(size=(50, 2)), rng.normal(size=(50, 4))
    C = {
        "normal": C, "lognormal": np.exp(2 * C), "zeros": np.where(C > 0, C, 0.0), "units": C * [1, 1e3, 1e6, 1e9],
        "constant": C + np.array([0, 0, 0, 1e5]),
        "tiny": np.where(C > 1, 1e-9 * C, C), "all equal": np.full((50, 4), 7.0),
        "one near zero": np.where(np.arange(200).reshape(50, 4) == 7, 1e-3, 1.5 + 0.2 * np.tanh(C)),
    }[kind]  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*costs are more than")
        SPOPlusRegressor(Simplex(), alpha=0.1).fit(X, C)


COVER = np.array([[1, 2, 1, 3, 1], [2, 1, 1, 1, 1]])
REGIONS = {
    "simplex": Simplex(),
    "polyhedron": Polyhedron(-COVER, [-3, -2], bounds=(0, 1)),
    "integers": MixedInteger(-COVER, [-3, -2], bounds=(0, 1)),
}


@pytest.mark.filterwarnings("ignore:.*costs are more than", "ignore::skspo.NotCertifiedWarning")
@pytest.mark.parametrize("M", PRICES)
@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("name", REGIONS)
def test_certificates_hold(name, always, M):
    """The objective is the loss of the coefficients, and no bound is above what another solver finds."""
    X, C, closed = priced(M, seed=3, always=always)
    region = REGIONS[name]
    fits = [SPOPlusRegressor(region, alpha=0, solver=s, time_limit=2).fit(X, C) for s in ("auto", "bundle")]
    C_hat, W = fits[0].predict(X), region.argmin(C)
    losses = ((2 * C_hat - C) * (W - region.argmin(2 * C_hat - C))).sum(axis=1)
    assert_allclose(fits[0].objective_, losses.mean(), rtol=1e-6, atol=1e-9 * M)
    for one, other in (fits, fits[::-1]):
        assert one.lower_bound_ <= other.objective_ * (1 + 1e-9)
    if always:  # the price is learned: the option is not used
        assert_allclose(fits[0].decide(X)[closed], 0.0, atol=1e-6)


def test_excluded_options_have_no_price():
    """The remedy of the warning."""
    X, C, closed = priced(1e9, n=60, d=9)
    closed[:, ::4] = False
    C = np.where(closed, np.nan, C)
    available = {"available": ~closed}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*costs are more than")
        SPOPlusRegressor(Assignment(3), alpha=0.1).fit(X, np.where(C > 1e3, 3.0, C), region_params=available)
