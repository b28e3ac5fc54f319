"""One point for each sample of a region that is a box with at most one linear constraint.

For such regions (choice of k, fractional knapsack, box) the dual can be maximized exactly in the point v_i of a sample:
a projection, which takes a few passes over its entries.  No decisions are kept, which would be many: those of a
knapsack with hundreds of items differ in many of them, from one outer iteration to the next.

Entries at their bounds rarely move.  The sweeps change the columns in use only, a small part: those between their
bounds, and those that a step of the sample by itself would change.

The interface is that of ``cache.Cache``: ``weight`` are the values of the columns in use, and what moves them keeps
coef.v where weights of decisions keep their sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._utils.scaling import CLEAR
from ...regions.capabilities import has
from . import kernels
from .kernels import HUGE, ROUNDING, Box, Columns
from .problem import ScaledProblem

#: columns in which decisions differ on average, up to which keeping decisions is as fast: those of a simplex
FEW_COLUMNS = 2.0


def box_of(region: Any, d: int) -> Box | None:
    """Bounds and constraint of a region, or None if it is no box with at most one constraint.

    Infinite upper bounds are replaced by those that the constraint implies.
    """
    if not has(region, "standard_form"):
        return None
    form = region.standard_form(d)
    m, n_slack = form.A.shape[0], form.A.shape[1] - d
    if form.project is not None or m > 1 or n_slack > m or form.varies:
        return None
    lower, upper, coef = form.lower[:d], form.upper[:d].copy(), np.zeros(d)
    low, high = -HUGE, HUGE
    if m:
        row = form.A.toarray()[0]
        slack = row[d:] * np.clip([form.lower[d:], form.upper[d:]], -HUGE, HUGE) if n_slack else np.zeros(2)
        coef, low, high = row[:d].copy(), form.b[0] - slack.max(), form.b[0] - slack.min()
    endless = np.isinf(upper)
    if (coef >= 0.0).all() and (coef[endless] > 0.0).all():
        upper[endless] = lower[endless] + (high - coef @ lower) / coef[endless]
    if not np.isfinite([*lower, *upper]).all():
        return None
    return Box(lower, upper, coef, max(float(low), -HUGE), min(float(high), HUGE))


def differ_little(V: np.ndarray, W: np.ndarray) -> bool:
    """Whether decisions differ in so few columns that it is as fast to keep them."""
    count = (V != W).sum(axis=1)
    return bool(count.sum() <= FEW_COLUMNS * np.count_nonzero(count))


class Points:
    """Points of all samples, of which those of the columns in use are changed; V are decisions at the start."""

    def __init__(self, box: Box, problem: ScaledProblem, V: np.ndarray) -> None:
        self.box, (self.n, self.d) = box, V.shape
        self.W, self.C = problem.W, problem.C
        self.start = V
        self.multipliers = np.zeros(self.n)
        self.V = V.copy()
        # Without features the dual is linear in the point, and the decision at the start is optimal.
        self.idle = problem.zz <= 0.0
        self.choose((V != self.W) & ~self.idle[:, None])

    def choose(self, play: np.ndarray) -> None:
        """Let these entries of V, shape (n, d), be in use."""
        self.row, cols = np.nonzero(play)
        self.ptr = np.searchsorted(self.row, np.arange(self.n + 1)).astype(np.int64)
        self.weight, self.lin = self.V[self.row, cols], self.C[self.row, cols]
        total = self.V @ self.box.coef
        fixed = total - np.bincount(self.row, self.box.coef[cols] * self.weight, minlength=self.n)
        self.columns = Columns(self.ptr, cols.astype(np.int32), self.lin, fixed)

    def mix(self, t: float) -> None:
        """Points between the optimal decisions and those at the start."""
        self.V = np.where(self.idle[:, None], self.start, (1.0 - t) * self.W + t * self.start)
        self.choose((self.start != self.W) & ~self.idle[:, None])

    def normalized(self, value: np.ndarray) -> np.ndarray:
        """Values within the constraint, which rounding errors violate."""
        value = value.copy()
        kernels.settle(self.columns, value, self.box)
        return value

    def normalize(self) -> None:
        """Let the values be within the constraint, in place."""
        kernels.settle(self.columns, self.weight, self.box)

    @property
    def several(self) -> np.ndarray:
        """Samples with columns in use."""
        return np.flatnonzero(np.diff(self.ptr) > 0)

    def average(self, value: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Points, and their linear parts."""
        V = self.V.copy()
        V[self.row, self.columns.cols] = self.weight if value is None else value
        return V, np.einsum("ij,ij->i", self.C, V)

    def extend(self, problem: ScaledProblem, predictions: np.ndarray) -> float:
        """Choose the columns in use, without an oracle; return a bound of the gap of the proximal problem."""
        self.V[self.row, self.columns.cols] = self.weight
        U = self.C - 2.0 * predictions
        play, gap = kernels.screen(self.V, U, problem.a, problem.zz, self.box, self.multipliers)
        self.choose(play)
        return float(gap)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def work(self, q: float) -> np.ndarray:
        """Multiplications of a sweep, for each sample; q is the number of its features that are not zero."""
        return np.diff(self.ptr) * (2.0 * q + 20.0)

    def sweep(self, problem: ScaledProblem, order: np.ndarray, T: np.ndarray, rest: np.ndarray) -> None:
        """Move the points of one sample after another; see ``kernels.sweep_points``."""
        points = self.columns, self.weight, self.box, self.multipliers
        penalty = problem.thresholds, problem.has_l1
        kernels.sweep_points(order, *points, T, *penalty, problem.features, problem.zz, problem.a, rest)

    def movable(self, value: np.ndarray) -> np.ndarray:
        """Values that can change in both directions."""
        used: np.ndarray = self.room(value) > ROUNDING * (self.box.upper - self.box.lower)[self.columns.cols]
        return used

    def room(self, value: np.ndarray) -> np.ndarray:
        """Distance to the nearer bound."""
        cols = self.columns.cols
        room: np.ndarray = np.minimum(value - self.box.lower[cols], self.box.upper[cols] - value)
        return room

    def slack(self, value: np.ndarray) -> np.ndarray:
        """Distance of coef.v to the nearer side of the constraint, for each sample; zero if it is rounding."""
        box, cols = self.box, self.columns.cols
        total = self.columns.fixed + np.bincount(self.row, box.coef[cols] * value, minlength=self.n)
        slack = np.minimum(np.minimum(box.high - total, total - box.low), HUGE)
        size = np.abs(box.coef) @ np.maximum(np.abs(box.lower), np.abs(box.upper))
        return np.where(slack > CLEAR * size, slack, 0.0)

    def longest(self, value: np.ndarray, change: np.ndarray) -> float:
        """Length up to which values plus ``change`` times their room stay within the bounds and the constraint."""
        slack = self.slack(value)
        total = np.bincount(self.row, self.box.coef[self.columns.cols] * self.room(value) * change, minlength=self.n)
        free = slack > 0.0
        most = float(np.abs(change).max(initial=0.0))
        return 1.0 / max(most, float(np.abs(total[free] / slack[free]).max(initial=0.0)), 1e-300)

    def relative(self, rows: np.ndarray, used: np.ndarray, P: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Entries p_ij of the values in use, minus a multiple of coef: times their room, they keep coef.v plus slack.

        The slack is a variable like the others, with itself as room.
        """
        x: np.ndarray = kernels.tangent(
            rows, self.columns, used, self.box.coef, P, np.zeros(value.size), self.room(value), self.slack(value)
        )
        return x

    def combine(self, rows: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Change of the points of the rows with a change x of the values in use."""
        D = np.zeros((self.n, self.d))
        D[self.row, self.columns.cols] = x
        return D[rows]

    def collect(
        self, rows: np.ndarray, used: np.ndarray, P: np.ndarray, lin: np.ndarray, shift: np.ndarray
    ) -> np.ndarray:
        """Sums lin + p_i of the values in use, minus a multiple of coef, so that ``shift`` times it keeps coef.v."""
        x: np.ndarray = kernels.tangent(rows, self.columns, used, self.box.coef, P, lin, shift, np.zeros(self.n))
        return x

    def project(self, rows: np.ndarray, used: np.ndarray, value: np.ndarray) -> None:
        """Project the values in use of the rows, in place."""
        kernels.project_points(rows, self.columns, used, value, self.box)

    def covariance(self, value: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Derivative of sum_i a_i v_i with respect to y in changes room (y - multiple of coef)."""
        cols = self.columns.cols
        room = self.room(value)
        H = np.zeros((self.n, self.d))
        H[self.row, cols] = room * self.box.coef[cols]
        total = H @ self.box.coef + self.slack(value)
        H *= np.sqrt(a / np.where(total > 0.0, total, 1.0))[:, None]
        M = -(H.T @ H)
        M[np.diag_indices_from(M)] += np.bincount(cols, a[self.row] * room, minlength=self.d)
        return M
