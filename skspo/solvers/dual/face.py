"""Conjugate gradients in the weights that are in use, for the tail of the dual method.

Sweeps move one sample at a time and converge slowly once the weights in use are right.  There the dual is a quadratic
function of the positive weights (piecewise, with an l1 penalty).  Conjugate gradients find an ascent direction for all
samples together, and a search along its projection onto the simplices takes the best of some lengths.
"""

from __future__ import annotations

import numpy as np

from . import kernels
from .cache import Cache
from .problem import ScaledProblem

#: conjugate gradients stop when the residual is this share of the gradient
ACCURACY = 1e-3

#: lengths that are tried: each is this share of the last one
LENGTHS, SHORTER = 6, 0.4

#: weights below this are zero
NO_WEIGHT = 1e-14


class Face:
    """The weights in use of the samples that have several.

    Parameters
    ----------
    problem : ScaledProblem
    cache : Cache
    """

    def __init__(self, problem: ScaledProblem, cache: Cache) -> None:
        self.problem, self.cache = problem, cache
        positive = cache.weight > 0
        count = np.add.reduceat(positive.astype(np.int64), cache.ptr[:-1])
        self.rows = np.flatnonzero((count > 1) & (problem.a > 0))
        several = np.zeros(cache.n, dtype=bool)
        several[self.rows] = True
        self.used = positive & several[cache.row]
        self.a = problem.a[self.rows]
        self.slot = np.where(self.used, problem.a[cache.row], 0.0)
        self.zeros, self.ones = np.zeros(cache.row.size), np.ones(cache.row.size)

    @property
    def size(self) -> int:
        """Number of directions."""
        return int(self.used.sum()) - self.rows.size

    def to_T(self, x: np.ndarray) -> np.ndarray:
        """Change of T with a change x of the weights that keeps their sums."""
        D = kernels.combine(self.rows, self.cache.blocks, x, self.cache.d)
        D *= (2.0 * self.a)[:, None]
        return self.problem.rank(D, self.rows)

    def gradient(self, S: np.ndarray, lin: np.ndarray) -> np.ndarray:
        """a_i (lin_k - 2 v_k.S zs_i), minus the mean of the sample."""
        P = self.problem.predictions(-2.0 * S, self.rows)
        return self.slot * kernels.collect(self.rows, self.cache.blocks, self.used, P, lin, self.ones)

    def direction(self, T: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Gradient, approximate Newton direction, and steps taken."""
        problem = self.problem
        g = self.gradient(problem.soft(T), self.cache.lin)
        seen = np.abs(T) > problem.thresholds if problem.has_l1 else None
        x, r, p = np.zeros_like(g), g, g
        rr = start = float(r @ r)
        taken = 0
        while taken < steps and rr > ACCURACY**2 * start:
            M = self.to_T(p)
            if seen is not None:
                M = np.where(seen, M, 0.0)
            Hp = -self.gradient(M, self.zeros)
            curvature = float(p @ Hp)
            taken += 1
            if not curvature > 1e-16 * float(p @ p):
                break
            x = x + (rr / curvature) * p
            r = r - (rr / curvature) * Hp
            new = float(r @ r)
            p, rr = r + (new / rr) * p, new
        return g, x, taken

    def ascend(self, T: np.ndarray, steps: int) -> tuple[np.ndarray, int, float]:
        """New T, steps and increase of the dual; the weights of the cache are changed in place."""
        if not self.rows.size:
            return T, 0, 0.0
        problem, weight = self.problem, self.cache.weight
        _, x, taken = self.direction(T, steps)
        before, best, length = float(np.square(problem.soft(T)).sum()), (0.0, weight, T), 1.0
        for _ in range(LENGTHS):
            trial = weight + length * x
            kernels.project(self.rows, self.cache.ptr, self.used, trial)
            trial[trial < NO_WEIGHT] = 0.0
            change = trial - weight
            moved = T + self.to_T(change)
            gain = float((self.slot * change) @ self.cache.lin)
            gain -= 0.5 * (float(np.square(problem.soft(moved)).sum()) - before)
            if gain > best[0]:
                best = gain, trial, moved
            elif best[0] > 0.0:
                break  # shorter steps are worse
            length *= SHORTER
        gain, trial, moved = best
        if gain > 0.0:
            weight[:] = trial
            self.cache.normalise()
        return moved, taken, gain
