"""Steps of all samples together, for the tail of the dual method.

Sweeps move one sample at a time and converge slowly once the weights in use are right.  There the dual is a quadratic
function of the positive weights (piecewise, with an l1 penalty).  A direction for all samples together is found in one
of two ways.  A search along its projection onto the simplices takes the best of some lengths.

Newton's method (``Face.newton``) uses the second derivatives, with damping, if the weights in use are few enough for a
dense matrix.  The other is a step in the span of the last changes (``RecentSteps``): a group of sweeps is a linear
iteration, as Gauss-Seidel is, and the maximizer of the dual in the lengths of the last changes and of that of the
sweeps costs a few inner products of matrices that are at hand.  This is the method of conjugate gradients with sweeps
as the preconditioner, as long as no weight meets its bound.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from ..._training.balance import Averages
from ...regions._tolerances import RANK
from .cache import Cache
from .kernels import CLOSE
from .points import Points
from .problem import ScaledProblem

#: lengths that are tried: each is this share of the last one
LENGTHS, SHORTER = 6, 0.4

#: number of earlier changes
RECENT = 5


class Face:
    """The weights in use of the samples that have several; with ``every`` also their weights that are not in use."""

    def __init__(self, problem: ScaledProblem, cache: Cache | Points, every: bool = False) -> None:
        self.problem, self.cache = problem, cache
        # Without features there is no curvature: sweeps go to the best decision at once.
        self.used = ((problem.a > 0) & (problem.zz > 0))[cache.row]
        if every:
            several = np.zeros(problem.n, dtype=bool)
            several[cache.several] = True
            self.used &= several[cache.row]
        else:
            self.used &= cache.movable(cache.weight)
        self.rows = np.unique(cache.row[self.used])
        self.a = problem.a[self.rows]
        # Copied once: a copy for every product would take as long as the product.
        self.Z = problem.take(self.rows)
        self.slot = np.where(self.used, problem.a[cache.row], 0.0)

    @property
    def newton_size(self) -> tuple[float, float]:
        """Multiplications of ``newton``, and numbers that it keeps at a time."""
        if isinstance(self.cache, Points):
            return np.inf, np.inf
        size, (d, q) = float(self.size), self.problem.shape
        work = size**2 * (size / 3.0 + (d * q if self.problem.has_l1 else d + q))
        return work, size * (2.0 * size + (2.0 * d * q if self.problem.has_l1 else 2.0 * d + q))

    @property
    def size(self) -> int:
        """Number of directions."""
        return int(self.used.sum()) - self.rows.size

    def to_T(self, x: np.ndarray) -> np.ndarray:
        """Change of T with a change x of the weights that keeps their sums."""
        D = self.cache.combine(self.rows, x)
        D *= (2.0 * self.a)[:, None]
        return self.problem.rank(D, self.Z)

    def gradient(self, S: np.ndarray, lin: np.ndarray) -> np.ndarray:
        """a_i (lin_k - 2 v_k.S zs_i), minus the mean of the sample."""
        P = self.problem.predictions(-2.0 * S, self.Z)
        return self.slot * self.cache.collect(self.rows, self.used, P, lin, np.ones(lin.size))

    def newton(self, T: np.ndarray, damping: float) -> np.ndarray:
        """Newton direction from the matrix of second derivatives, its diagonal increased by a share ``damping``.

        Weights are often as many as coefficients, so that the matrix is close to singular and conjugate gradients take
        thousands of steps.
        """
        problem, cache = self.problem, self.cache
        assert isinstance(cache, Cache)
        g = self.gradient(problem.soft(T), cache.lin)
        # Differences to the heaviest decision of each sample are a basis of the directions that keep sums.
        order = np.flatnonzero(self.used)
        order = order[np.lexsort((-cache.weight[order], cache.row[order]))]
        first = np.append(True, cache.row[order][1:] != cache.row[order][:-1])
        heaviest = order[first]
        others, sample = order[~first], cache.row[order[~first]]
        reference = heaviest[np.searchsorted(cache.row[heaviest], sample)]
        V = (cache.decisions[others] - cache.decisions[reference]).toarray()
        V *= (2.0 * problem.a[sample])[:, None]
        Z = problem.scaled[sample]
        Z = Z.toarray() if sp.issparse(Z) else Z
        if problem.has_l1:
            seen = np.abs(T) > problem.thresholds
            J = (V[:, :, None] * Z[:, None, :]).reshape(V.shape[0], -1)[:, seen.ravel()]
            H = J @ J.T
        else:
            H = V @ V.T
            H *= Z @ Z.T
        diagonal = np.diagonal(H).copy()
        H[np.diag_indices_from(H)] += damping * diagonal + 1e-15 * diagonal.max() + 1e-300
        right, x = g[others] - g[reference], np.zeros_like(g)
        try:
            y = cho_solve(cho_factor(H, overwrite_a=True, check_finite=False), right, check_finite=False)
        except np.linalg.LinAlgError:
            return x  # more damping is needed
        x[others] = y
        np.subtract.at(x, reference, y)
        return x

    def ascend(self, T: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Search along x, projected: new T, increase of the dual, and the length of the step.

        The weights of the cache are changed in place.
        """
        problem, weight = self.problem, self.cache.weight
        # Projections of points far away are inaccurate.
        most = float(np.abs(weight).max(initial=0.0)) / CLOSE
        if not np.isfinite(x).all():
            return T, 0.0, 0.0
        x = x * min(1.0, most / max(float(np.abs(x).max(initial=0.0)), 1e-300))
        before, length = float(np.square(problem.soft(T)).sum()), 1.0
        best, best_gain, best_length = (weight, T), 0.0, 0.0
        for _ in range(LENGTHS):
            trial = weight + length * x
            self.cache.project(self.rows, self.used, trial)
            change = trial - weight
            moved = T + self.to_T(change)
            gain = float((self.slot * change) @ self.cache.lin)
            gain -= 0.5 * (float(np.square(problem.soft(moved)).sum()) - before)
            if gain > best_gain:
                best, best_gain, best_length = (trial, moved), gain, length
            elif best_gain > 0.0:
                break  # shorter steps are worse
            length *= SHORTER
        if best_gain > 0.0:
            weight[:] = best[0]
            self.cache.normalize()
        return best[1], best_gain, best_length


class RecentSteps:
    """The last changes of the weights, and those of T with them.  Decisions are not added while this is in use."""

    def __init__(self, problem: ScaledProblem, cache: Cache | Points, T: np.ndarray) -> None:
        self.problem, self.cache = problem, cache
        self.steps: list[tuple[np.ndarray, np.ndarray]] = []
        self.start = cache.weight.copy(), T.copy()

    @cached_property
    def face(self) -> Face:
        """All weights of the samples that have several, in use or not."""
        return Face(self.problem, self.cache, every=True)

    def change(self, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Change since the last call of ``ascend``."""
        return self.cache.weight - self.start[0], T - self.start[1]

    def ascend(self, T: np.ndarray) -> np.ndarray:
        """Maximize the dual over the span of the changes, after sweeps; return the new T."""
        steps = [self.change(T), *self.steps]
        weights, moments = np.stack([x for x, _ in steps]), np.stack([M.ravel() for _, M in steps])
        slope = weights @ (self.face.slot * self.cache.lin) - moments @ self.problem.soft(T).ravel()
        Q = moments @ moments.T
        size, gain = np.sqrt(np.diagonal(Q)), 0.0
        if size.all():
            Q /= np.outer(size, size)
            Q[np.diag_indices_from(Q)] += RANK
            lengths = np.linalg.solve(Q, slope / size) / size
            T, gain, _ = self.face.ascend(T, lengths @ weights)
        self.steps = [self.change(T), *(self.steps if gain > 0.0 else [])][:RECENT]
        self.start = self.cache.weight.copy(), T.copy()
        return T


class FreeMoments(Face, Averages):
    """Moments in the free entries of T, which are to vanish so that a bound has no charge."""

    def __init__(self, problem: ScaledProblem, cache: Cache | Points, free: np.ndarray) -> None:
        super().__init__(problem, cache)
        self.free = free

    def excess(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Moments in the free entries."""
        return np.where(self.free, self.problem.moments(self.cache, weight)[1], 0.0), self.free

    def change(self, weight: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """(v_k - v_i).Y zs_i of each decision."""
        return self.cache.relative(self.rows, self.used, self.problem.predictions(Y, self.Z), weight)

    def effect(self, weight: np.ndarray, change: np.ndarray) -> np.ndarray:
        """2 sum_i a_i dv_i zs_i^T."""
        return self.to_T(self.cache.room(weight) * change)

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
