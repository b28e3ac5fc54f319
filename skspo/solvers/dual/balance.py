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

from . import kernels
from .cache import Cache
from .problem import ScaledProblem

#: costs up to which the system of the intercept is solved directly, and the multiplications that its matrix may take
DIRECT, DIRECT_WORK = 1500, 3e8

#: conjugate-gradient steps for one set of factors; sets at most, because factors that would be negative are cut short
STEPS, SETS = 100, 4


def balanced(
    problem: ScaledProblem, cache: Cache, free: np.ndarray, late: Callable[[], bool], sets: int = SETS
) -> np.ndarray:
    """Weights whose moments vanish in the free columns as far as possible.

    Parameters
    ----------
    problem : ScaledProblem
    cache : Cache
    free : ndarray of bool
        Entries of T whose moments are to vanish.
    late : callable
        Whether to stop.
    sets : int
        Largest number of sets of factors.
    """
    weight = cache.weight.copy()
    for _ in range(sets):
        M = np.where(free, problem.moments(cache, weight)[1], 0.0)
        size = float(np.abs(M).max(initial=0.0))
        if size <= 1e-17 or late():
            break
        with np.errstate(over="ignore", invalid="ignore"):  # factors that overflow are not used
            change = factors(problem, cache, free, weight, M, late)
        if not np.isfinite(change).all():
            break
        lowest = float(change.min(initial=0.0))
        weight *= 1.0 + change * min(1.0, 0.99 / max(-lowest, 1e-300))
        weight /= np.add.reduceat(weight, cache.ptr[:-1])[cache.row]
    return weight


def factors(
    problem: ScaledProblem,
    cache: Cache,
    free: np.ndarray,
    weight: np.ndarray,
    M: np.ndarray,
    late: Callable[[], bool],
) -> np.ndarray:
    """Relative changes of the weights that cancel the moments M."""
    positive = weight > 0
    several = np.add.reduceat(positive.astype(np.int64), cache.ptr[:-1]) > 1
    rows = np.flatnonzero(several & (problem.a > 0))
    used = positive & several[cache.row]
    a, zeros = (2.0 * problem.a[rows])[:, None], np.zeros(weight.size)

    def change(Y: np.ndarray) -> np.ndarray:
        return kernels.collect(rows, cache.blocks, used, problem.predictions(Y, rows), zeros, weight)

    def apply(Y: np.ndarray) -> np.ndarray:
        D = kernels.combine(rows, cache.blocks, weight * change(Y), cache.d)
        return np.where(free, problem.rank(D * a, rows), 0.0)

    columns = np.flatnonzero(free.any(axis=0))
    blocks = cache.blocks
    work = float(np.diff(blocks.ptr) @ np.square(np.diff(blocks.cptr).astype(float)))
    if columns.size != 1 or cache.d > DIRECT or work > DIRECT_WORK:
        return change(solve(apply, -M, late))
    column = columns[0]
    inside = np.flatnonzero(free[:, column])
    z = problem.scaled[:, [column]]
    z = (z.toarray() if sp.issparse(z) else z).ravel()
    K = 2.0 * kernels.covariance(blocks, weight, problem.a * z * z, cache.d)[np.ix_(inside, inside)]
    K[np.diag_indices_from(K)] += 1e-13 * np.trace(K) / inside.size + 1e-300
    Y = np.zeros_like(M)
    Y[inside, column] = np.linalg.solve(K, -M[inside, column])
    return change(Y)


def solve(apply: Callable[[np.ndarray], np.ndarray], right: np.ndarray, late: Callable[[], bool]) -> np.ndarray:
    """Solve with a positive semidefinite operator by conjugate gradients."""
    Y, r, p = np.zeros_like(right), right, right
    rr = start = float(np.vdot(r, r))
    for _ in range(STEPS):
        Hp = apply(p)
        curvature = float(np.vdot(p, Hp))
        if not curvature > 0.0 or rr <= 1e-24 * start or late():
            break
        Y, r = Y + (rr / curvature) * p, r - (rr / curvature) * Hp
        new = float(np.vdot(r, r))
        p, rr = r + (new / rr) * p, new
    return Y
