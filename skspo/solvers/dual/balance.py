"""Weights near the given ones for which the moments of columns without a penalty vanish.

The lower bound charges for moments of columns that no penalty absorbs (see ``_training.objective``).  Factors
1 + (v_k - v_i).Y zs_i of the weights keep their sums, leave zeros at zero, and change the moments by

    2 sum_i a_i Cov_i Y zs_i zs_i^T,      Cov_i the covariance of the decisions of sample i under its weights

Y solves a linear system: d x d if the intercept is the only such column, else by conjugate gradients.  At the optimum
of the weights the dual changes to second order only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from ..._utils.conjugate_gradients import conjugate_gradients
from .cache import Cache
from .points import Points
from .problem import ScaledProblem

#: costs up to which the system of the intercept is solved directly, and the multiplications that its matrix may take
DIRECT, DIRECT_WORK = 2500, 3e9

#: conjugate-gradient steps for one set of factors; sets at most, because factors that would be negative are cut short
STEPS, SETS = 100, 4

#: length of a change that was cut short, below which there is no other one
LEAST_LENGTH = 0.5

#: share of the moments that is rounding
VANISHED = 1e-13


def balanced(
    problem: ScaledProblem, cache: Cache | Points, free: np.ndarray, late: Callable[[], bool], sets: int = SETS
) -> np.ndarray:
    """Weights whose moments vanish in the free columns as far as possible.

    Parameters
    ----------
    problem : ScaledProblem
    cache : Cache or Points
    free : ndarray of bool
        Entries of T whose moments are to vanish.
    late : callable
        Whether to stop.
    sets : int
        Largest number of sets of factors.
    """
    weight = cache.weight.copy()
    factor: Factor | None = None
    enough = None
    for _ in range(sets):
        M = np.where(free, problem.moments(cache, weight)[1], 0.0)
        size = float(np.abs(M).max(initial=0.0))
        enough = max(VANISHED * size, 1e-17) if enough is None else enough
        if size <= enough or late():
            break
        change_of = Changes(problem, cache, free, weight)
        with np.errstate(over="ignore", invalid="ignore"):  # factors that overflow are not used
            if change_of.is_direct:
                # The covariances change little with the weights, unless the last change was cut short.
                factor = change_of.factor() if factor is None else factor
                change = change_of.direct(M, factor)
            else:
                change = change_of.iterative(M, late)
        if not np.isfinite(change).all():
            break
        length = min(1.0, 0.99 * cache.longest(weight, change))
        factor = factor if length == 1.0 else None
        weight = cache.normalized(weight + length * change * cache.room(weight))
        if length < LEAST_LENGTH:
            break  # the moments are too large to vanish
    return weight


#: Cholesky factor of a matrix, as ``scipy.linalg.cho_factor`` returns it
Factor = tuple[np.ndarray, bool]


class Changes:
    """Relative changes of the weights that cancel moments.

    Parameters
    ----------
    problem : ScaledProblem
    cache : Cache or Points
    free : ndarray of bool
        Entries of T whose moments are to vanish.
    weight : ndarray
    """

    def __init__(self, problem: ScaledProblem, cache: Cache | Points, free: np.ndarray, weight: np.ndarray) -> None:
        self.problem, self.cache, self.free, self.weight = problem, cache, free, weight
        self.used, self.room = cache.movable(weight) & (problem.a > 0)[cache.row], cache.room(weight)
        self.rows = np.unique(cache.row[self.used])
        self.Z = problem.take(self.rows)
        self.columns = np.flatnonzero(free.any(axis=0))

    @property
    def is_direct(self) -> bool:
        """Whether the intercept is the only column, and its system is small."""
        return self.columns.size == 1 and self.cache.d <= DIRECT and self.cache.covariance_work() <= DIRECT_WORK

    def of(self, Y: np.ndarray) -> np.ndarray:
        """(v_k - v_i).Y zs_i of each decision."""
        P = self.problem.predictions(Y, self.Z)
        return self.cache.relative(self.rows, self.used, P, self.weight)

    @property
    def inside(self) -> np.ndarray:
        """Rows of the only free column."""
        return np.flatnonzero(self.free[:, self.columns[0]])

    def factor(self) -> Factor:
        """Cholesky factor of the system of the intercept."""
        z = self.problem.scaled[:, self.columns]
        z = (z.toarray() if sp.issparse(z) else z).ravel()
        inside = np.ix_(self.inside, self.inside)
        K = 2.0 * self.cache.covariance(self.weight, self.problem.a * z * z)[inside]
        K[np.diag_indices_from(K)] += 1e-13 * np.trace(K) / len(K) + 1e-300
        return cho_factor(K, overwrite_a=True, check_finite=False)

    def direct(self, M: np.ndarray, factor: Factor) -> np.ndarray:
        """Changes that cancel M, by the factor."""
        Y = np.zeros_like(M)
        Y[self.inside, self.columns[0]] = cho_solve(factor, -M[self.inside, self.columns[0]], check_finite=False)
        return self.of(Y)

    def iterative(self, M: np.ndarray, late: Callable[[], bool]) -> np.ndarray:
        """Changes that cancel M, by conjugate gradients."""
        a = (2.0 * self.problem.a[self.rows])[:, None]

        def apply(Y: np.ndarray) -> np.ndarray:
            D = self.cache.combine(self.rows, self.room * self.of(Y))
            return np.where(self.free, self.problem.rank(D * a, self.Z), 0.0)

        return self.of(conjugate_gradients(apply, -M, STEPS, accuracy=1e-12, late=late)[0])
