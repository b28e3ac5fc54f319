"""The region of the tutorial docs/guide/add_a_region.md, which shows this file, and the tests that it recommends."""

import pickle
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from skspo import Region, SPOPlusRegressor, normalized_spo_loss


# [region]
class ConsecutiveHours(Region):
    """Run for a number of hours in a row: one window of the day.

    Parameters
    ----------
    length : int, default=3
        Number of hours.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    """

    def __init__(self, length=3, *, sense="min"):
        self.length = length
        self.sense = sense

    def _prepare(self, d):
        if not 1 <= self.length <= d:
            raise ValueError(f"ConsecutiveHours: length must be between 1 and {d}, the hours; got {self.length!r}.")
        starts = np.arange(d - self.length + 1)[:, None]
        hours = np.arange(d)
        return ((starts <= hours) & (hours < starts + self.length)).astype(float)  # (windows, d)

    def _argmin(self, C, windows):
        return windows[(C @ windows.T).argmin(axis=1)]


# [end of region]


# [cone form]
class ExactConsecutiveHours(ConsecutiveHours):
    """The same, with all that the conic solver asks for."""

    def support_epigraph(self, V):
        """Cone form of the largest v.w over the windows: t >= v.w for each of them."""
        windows = self._data(V.shape[1])
        t = cp.Variable(V.shape[0])
        return t, [cp.reshape(t, (V.shape[0], 1), order="C") @ np.ones((1, len(windows))) >= V @ windows.T]

    def repair(self, W):
        """Mixture of windows that is nearly W: undo the sums, clip, normalize."""
        windows = self._data(W.shape[1])
        mixture = np.maximum(np.linalg.lstsq(windows.T, W.T)[0].T, 0.0)
        total = mixture.sum(axis=1, keepdims=True)
        mixture = np.where(total > 0, mixture / np.where(total > 0, total, 1.0), 1.0 / len(windows))
        return mixture @ windows


# [end of cone form]


# [by sample]
class Windows(NamedTuple):
    """What the oracle needs: one length, or one for each row."""

    length: np.ndarray


class HoursOfEachDay(ConsecutiveHours):
    """The same, with a number of hours that may vary by sample."""

    def _prepare(self, d):
        return Windows(self._check(np.array([self.length]), d))

    def row_shapes(self, d):
        """Parameters that may vary by sample, and the shape of one sample's value."""
        return {"length": ()}

    def _read_rows(self, rows, data, d):
        return {"length": self._check(rows["length"], d)}

    def _check(self, length, d):
        if ((length < 1) | (length > d)).any():
            raise ValueError(f"HoursOfEachDay: length must be between 1 and {d}, the hours; got {length.tolist()}.")
        return length

    def _argmin(self, C, data):
        length, hours = data.length[:, None].astype(int), np.arange(C.shape[1])
        sums = np.pad(C.cumsum(axis=1), ((0, 0), (1, 0)))
        ends = np.broadcast_to(np.minimum(hours + length, C.shape[1]), C.shape)
        totals = np.where(hours + length <= C.shape[1], np.take_along_axis(sums, ends, axis=1) - sums[:, :-1], np.inf)
        start = totals.argmin(axis=1)[:, None]
        return ((start <= hours) & (hours < start + length)).astype(float)


# [end of by sample]


# [tests]
def costs(n=200, d=8, seed=0):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(n, d))
    C[::4] = rng.integers(-1, 2, size=C[::4].shape)  # ties
    return C


@pytest.mark.parametrize("length", [1, 3, 8])
def test_oracle_against_all_windows(length):
    C = costs()
    W = ConsecutiveHours(length).argmin(C)
    every = np.stack([C[:, k : k + length].sum(axis=1) for k in range(8 - length + 1)])
    assert_allclose((C * W).sum(axis=1), every.min(axis=0))
    assert set(np.unique(W)) <= {0.0, 1.0} and (W.sum(axis=1) == length).all()


def test_lengths_that_vary_by_sample():
    C = costs()
    lengths = 1 + np.arange(len(C)) % 8
    W = HoursOfEachDay().with_rows({"length": lengths}, *C.shape).argmin(C)
    for length in range(1, 9):
        rows = lengths == length
        best = (C[rows] * ConsecutiveHours(length).argmin(C[rows])).sum(axis=1)
        assert_allclose((C * W)[rows].sum(axis=1), best, atol=1e-12)
        assert_allclose((C * HoursOfEachDay(length).argmin(C))[rows].sum(axis=1), best, atol=1e-12)
    X, C = days(60, seed=0)
    params = {"length": 1 + np.arange(60) % 3}
    model = SPOPlusRegressor(HoursOfEachDay()).fit(X, C, region_params=params)
    assert (model.decide(X, region_params=params).sum(axis=1) == params["length"]).all()
    with pytest.raises(ValueError, match="length must be between 1 and 8"):
        model.decide(X, region_params={"length": np.full(60, 9)})


def test_sense_is_one_sign():
    assert_array_equal(ConsecutiveHours(2, sense="max").argmin(costs()), ConsecutiveHours(2).argmin(-costs()))


def test_clone_and_pickle():
    region = ConsecutiveHours(2)
    for copy in (clone(region), pickle.loads(pickle.dumps(region))):
        assert repr(copy) == "ConsecutiveHours(length=2)"
        assert_array_equal(copy.argmin(costs()), region.argmin(costs()))


def test_errors():
    with pytest.raises(ValueError, match="length must be between 1 and 8"):
        ConsecutiveHours(9).argmin(costs())


def days(n, seed):
    """Prices of eight hours that depend on the weather, and not linearly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    hours = np.arange(8)
    return X, np.exp(0.5 * X[:, :1] + np.cos(hours - 2 * X[:, 1:]) + 0.2 * rng.normal(size=(n, 8)))


@pytest.mark.parametrize("region", [ConsecutiveHours(3), ExactConsecutiveHours(3)], ids=["oracle", "cone form"])
def test_training_is_certified(region):
    X, C = days(60, seed=0)
    model = SPOPlusRegressor(region).fit(X, C)
    assert 0 <= model.duality_gap_ <= 1e-6


def test_decisions_beat_least_squares():
    region = ConsecutiveHours(3)
    X, C = days(200, seed=0)
    X_new, C_new = days(1000, seed=1)
    least_squares = LinearRegression().fit(X, C).predict(X_new)
    model = SPOPlusRegressor(region).fit(X, C)
    assert -model.score(X_new, C_new) < normalized_spo_loss(C_new, least_squares, region)


# [end of tests]
