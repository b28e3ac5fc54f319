"""Weights of averages, changed so that moments vanish that no penalty absorbs.

The decisions of a sample, or the cuts of a group of samples, have weights >= 0 that sum to one.  Any weights prove a
lower bound, but without a ridge it is charged for the moments of the averages (see ``objective``).  Factors 1 + x_k of
the weights with

    x_k = (A_k - mean of its group).Y,      A_k what one unit of weight adds to the moments

keep the sums, leave zeros at zero, and change the moments by K Y, where K is a sum of covariances of the A_k under the
weights.  So Y solves a linear system: by a factorization if it is small, else by conjugate gradients.  Near the optimum
the bound changes to second order only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._utils.conjugate_gradients import conjugate_gradients
from .._utils.scaling import CLEAR

#: sets of factors: they must not be negative, so that one set may not be enough
SETS = 4

#: steps of conjugate gradients for a set
STEPS = 100

#: unknowns up to which a factorization takes less time than these steps: products of matrices are ten times as fast
DIRECT = 10 * STEPS


class Averages(ABC):
    """What the moments of weighted averages are."""

    @abstractmethod
    def excess(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Moments that no penalty absorbs, and a mask of the entries that are not absorbed; zero elsewhere."""

    @abstractmethod
    def change(self, weight: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Relative changes x_k of the weights."""

    @abstractmethod
    def effect(self, weight: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Change of the moments with relative changes of the weights."""

    @abstractmethod
    def matrix(self, weight: np.ndarray, inside: np.ndarray) -> np.ndarray | None:
        """K for the entries of a mask; None if it takes too long."""

    def longest(self, weight: np.ndarray, change: np.ndarray) -> float:
        """Length up to which weights times one plus ``change`` stay positive."""
        return 1.0 / max(-float(change.min(initial=0.0)), 1e-300)

    def moved(self, weight: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Weights after relative changes."""
        return weight * (1.0 + change)


def balanced(averages: Averages, weight: np.ndarray, late: Callable[[], bool]) -> Iterator[np.ndarray]:
    """Weights with smaller and smaller moments, after each set of factors."""
    first = np.inf
    for _ in range(SETS):
        excess, inside = averages.excess(weight)
        size = float(np.linalg.norm(excess))
        first = size if first == np.inf else first
        if size <= CLEAR * first or late():
            return
        with np.errstate(over="ignore", invalid="ignore"):  # factors that overflow are not used
            change = averages.change(weight, -_solved(averages, weight, excess, inside, late))
        if not np.isfinite(change).all():
            return
        length = min(1.0, 0.99 * averages.longest(weight, change))
        weight = averages.moved(weight, length * change)
        yield weight


def _solved(
    averages: Averages, weight: np.ndarray, excess: np.ndarray, inside: np.ndarray, late: Callable[[], bool]
) -> np.ndarray:
    """Y with K Y = ``excess``, as far as possible."""

    def apply(Y: np.ndarray) -> np.ndarray:
        return np.where(inside, averages.effect(weight, averages.change(weight, Y)), 0.0)

    K = averages.matrix(weight, inside) if int(inside.sum()) <= DIRECT else None
    if K is not None:
        K[np.diag_indices_from(K)] += np.finfo(float).eps * np.trace(K) + 1e-300  # K may be singular
        try:
            factor = cho_factor(K, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            K = None
    if K is None:
        return conjugate_gradients(apply, excess, STEPS, late=late)
    Y, rest = np.zeros_like(excess), excess
    for _ in range(SETS):  # iterative refinement, also where the diagonal was increased
        trial = Y.copy()
        trial[inside] += cho_solve(factor, rest[inside], check_finite=False)
        left = excess - apply(trial)
        if not np.linalg.norm(left) < np.linalg.norm(rest):
            break
        Y, rest = trial, left
    return Y
