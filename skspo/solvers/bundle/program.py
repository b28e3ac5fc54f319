"""Interior-point method for the quadratic program of the bundle method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from ..._utils.limits import check_time
from ..predictor_corrector import MOST, step


def minimize_highest(
    A: np.ndarray, b: np.ndarray, group: np.ndarray, lasso: np.ndarray, offset: np.ndarray, accuracy: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimize sum_g max_{k in g} (b_k + A_k x) + |lasso x + offset|_1 + |x|^2 / 2 to an absolute accuracy.

    ``group`` is sorted.  Returns x; the multipliers of the rows, nonnegative and with sum one in each group, whatever
    the accuracy; and the coordinates with lasso x + offset = 0 up to rounding.
    """
    if A.shape[1] == 0:
        top = np.full(group[-1] + 1, -np.inf)
        np.maximum.at(top, group, b)
        highest = (b == top[group]).astype(float)
        return np.zeros(0), highest / np.bincount(group, highest)[group], np.zeros(0, dtype=np.intp)
    which = np.flatnonzero(lasso)
    basis = None
    if len(b) < A.shape[1] and len(which) == 0:
        # x = -A^T multipliers is in the span of the cuts.
        basis, triangle = np.linalg.qr(A.T)
        A = triangle.T
    x, multipliers, zero = _Program(A, b, group, which, lasso[which], offset[which]).run(accuracy)
    return x if basis is None else basis @ x, multipliers[: len(b)], which[zero]


class _Move(NamedTuple):
    """A search direction."""

    x: np.ndarray
    t: np.ndarray
    s: np.ndarray
    l: np.ndarray


class _Program:
    """Primal-dual interior-point method for ``minimize_highest``.

    With tops t_g, slacks s_k = t_g(k) - b_k - A_k x >= 0 and multipliers l_k >= 0 the conditions are

        x + A^T l = 0,   sum_{k in g} l_k = 1,   l_k s_k = mu

    and Newton's matrix, after elimination, is the identity plus the covariance of the cuts within each group, weighted
    with l_k / s_k.  The terms |lasso x_j + offset| are groups of two cuts that touch one coordinate each.
    """

    most, one_step = MOST, True

    def __init__(
        self, A: np.ndarray, b: np.ndarray, group: np.ndarray, which: np.ndarray, lasso: np.ndarray, offset: np.ndarray
    ) -> None:
        self.A, self.which, self.lasso = A, which, lasso
        self.x = np.zeros(A.shape[1])
        k, n_pairs, n_groups = len(b), len(which), len(np.unique(group))
        pairs = n_groups + np.arange(n_pairs)
        self.k, self.n_pairs, self.n_groups = k, n_pairs, n_groups + n_pairs
        self.b = np.concatenate([b, offset, -offset])
        self.group = np.concatenate([group, pairs, pairs])
        self.mean = csr_array(
            (np.ones(k), np.arange(k), np.searchsorted(group, np.arange(n_groups + 1))), shape=(n_groups, k)
        )
        top, low = np.full(self.n_groups, -np.inf), np.full(self.n_groups, np.inf)
        np.maximum.at(top, self.group, self.b)
        np.minimum.at(low, self.group, self.b)
        spread = top - low
        # The start is centered within each group; slacks must not be lost to rounding.
        least = max(1e-3 * float(spread.mean()), 1e-12 * float(np.abs(self.b).max()), 1e-100)
        self.t = top + np.maximum(spread, least)
        self.s = self.t[self.group] - self.b
        self.l = (1.0 / self.s) / self.total(1.0 / self.s)[self.group]

    def times(self, x: np.ndarray) -> np.ndarray:
        """Slopes of all cuts along x."""
        pair = self.lasso * x[self.which]
        return np.concatenate([self.A @ x, pair, -pair])

    def adjoint(self, multipliers: np.ndarray) -> np.ndarray:
        """Weighted sum of the slopes."""
        k, n_pairs = self.k, self.n_pairs
        total = multipliers[:k] @ self.A
        total[self.which] += self.lasso * (multipliers[k : k + n_pairs] - multipliers[k + n_pairs :])
        return total

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sums over groups."""
        return np.bincount(self.group, values, minlength=self.n_groups)

    def mu(self) -> float:
        return float(self.l @ self.s) / len(self.l)

    def factor(self, mu: float) -> bool:
        """Cholesky factor of Newton's matrix."""
        check_time()
        k, n_pairs, group = self.k, self.n_pairs, self.group[: self.k]
        self.D = D = self.l / self.s
        self.T = self.total(D)
        self.mean.data = D[:k] / self.T[group]
        centered = self.A - (self.mean @ self.A)[group]
        centered *= np.sqrt(D[:k])[:, None]
        M = centered.T @ centered
        diagonal = np.einsum("ii->i", M)
        diagonal += 1.0
        plus, minus = D[k : k + n_pairs], D[k + n_pairs :]
        diagonal[self.which] += 4.0 * self.lasso**2 * plus * (minus / (plus + minus))
        try:
            self.cholesky = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return False
        return True

    def _direction(self, r: np.ndarray) -> _Move:
        """Newton's step in x, t, s and l to feasibility, and by r in the products l s."""
        D, T, s, group = self.D, self.T, self.s, self.group
        r_x, r_l, r_s = self.residuals
        q = r / s - D * r_s
        u = (self.total(q) - r_l) / T
        dx = cho_solve(self.cholesky, r_x - self.adjoint(q - D * u[group]), check_finite=False)
        slope = self.times(dx)
        dt = u + self.total(D * slope) / T
        ds = dt[group] - slope + r_s
        dl = r / s - D * ds
        # One step of iterative refinement, so that x + A^T l is small.
        more = cho_solve(self.cholesky, r_x - dx - self.adjoint(dl), check_finite=False)
        slope = self.times(more)
        more_t = self.total(D * slope) / T
        more_s = more_t[group] - slope
        return _Move(dx + more, dt + more_t, ds + more_s, dl - D * more_s)

    def predictor(self) -> _Move:
        return self._direction(-self.l * self.s)

    def after(self, move: _Move, primal: float, dual: float) -> float:
        return float((self.s + dual * move.s) @ (self.l + primal * move.l)) / len(self.l)

    def corrector(self, move: _Move, goal: float) -> _Move:
        return self._direction(goal - self.l * self.s - move.s * move.l)

    def decreases(self, move: _Move) -> tuple[float, float]:
        with np.errstate(over="ignore"):  # a tiny slack
            return float((-move.l / self.l).max()), float((-move.s / self.s).max())

    def finite(self, move: _Move) -> Any:
        return np.isfinite(move.x).all()

    def advance(self, move: _Move, primal: float, dual: float) -> None:
        self.x, self.t = self.x + dual * move.x, self.t + dual * move.t
        self.s, self.l = self.s + dual * move.s, self.l + primal * move.l

    def run(self, accuracy: float, max_iter: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return x, the multipliers, and which of the absolute values vanish."""
        group, total = self.group, self.total
        best, best_merit, age = (self.x, self.s, self.l), np.inf, 0
        for _ in range(max_iter):
            r_x = -self.x - self.adjoint(self.l)
            self.residuals = r_x, 1.0 - total(self.l), self.t[group] - self.times(self.x) - self.b - self.s
            # Because of rounding errors later iterates may be worse.
            merit = max(float(self.l @ self.s), 1e4 * float(r_x @ r_x))
            age = 0 if merit < 0.9 * best_merit else age + 1
            if merit < best_merit:
                best, best_merit = (self.x, self.s, self.l), merit
            if merit <= accuracy or age > 8 or max(step(self)) == 0.0:
                break
        x, s, l = best
        k, n_pairs = self.k, self.n_pairs
        small = s < 1e-2 * l
        return x, l / total(l)[group], small[k : k + n_pairs] & small[k + n_pairs :]
