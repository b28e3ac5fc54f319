"""Weights of the dual method to be balanced: the moments of columns without a penalty are to vanish."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..._training.balance import Averages
from .cache import Cache
from .points import Points
from .problem import ScaledProblem


class FreeMoments(Averages):
    """Moments of the cached decisions, or of points, in the free entries of T, which are to vanish."""

    def __init__(self, problem: ScaledProblem, cache: Cache | Points, free: np.ndarray) -> None:
        self.problem, self.cache, self.free = problem, cache, free
        self.used = cache.movable(cache.weight) & (problem.a > 0)[cache.row]
        self.rows = np.unique(cache.row[self.used])
        self.Z, self.a = problem.take(self.rows), 2.0 * problem.a[self.rows, None]

    def excess(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Moments in the free entries."""
        return np.where(self.free, self.problem.moments(self.cache, weight)[1], 0.0), self.free

    def change(self, weight: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """(v_k - v_i).Y zs_i of each decision."""
        return self.cache.relative(self.rows, self.used, self.problem.predictions(Y, self.Z), weight)

    def effect(self, weight: np.ndarray, change: np.ndarray) -> np.ndarray:
        """2 sum_i a_i dv_i zs_i^T."""
        D = self.cache.combine(self.rows, self.cache.room(weight) * change)
        return self.problem.rank(D * self.a, self.Z)

    def matrix(self, weight: np.ndarray, inside: np.ndarray) -> np.ndarray | None:
        """2 sum_i a_i zs_i^2 Cov_i, if the intercept is the only free column."""
        columns = np.flatnonzero(inside.any(axis=0))
        if columns.size != 1:
            return None
        z = self.problem.scaled[:, columns]
        z = (z.toarray() if sp.issparse(z) else z).ravel()
        K: np.ndarray = 2.0 * self.cache.covariance(weight, self.problem.a * z * z)
        return K[np.ix_(inside[:, columns[0]], inside[:, columns[0]])]

    def longest(self, weight: np.ndarray, change: np.ndarray) -> float:
        """Length up to which weights stay within their bounds."""
        return self.cache.longest(weight, change)

    def moved(self, weight: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Weights after changes relative to their room."""
        return self.cache.normalized(weight + change * self.cache.room(weight))
