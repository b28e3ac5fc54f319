"""Piecewise linear lower model of the objective, and the bounds of its multipliers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, null_space
from scipy.sparse import csr_array

from ..._training.objective import LinearObjective
from ..._training.run import Run
from ..base import MATRIX_SPEED, STEP, pass_work
from .program import minimize_highest

#: a cut whose multiplier is below IDLE for PATIENCE iterations is dropped
IDLE, PATIENCE = 1e-6, 20

#: number of cuts per group beyond which only cuts with a multiplier are kept
ENOUGH_CUTS = 20

#: multipliers above BALANCED are changed to make averaged slopes vanish, in at most BALANCE_ROUNDS rounds, if the
#: predicted decrease is below a share of BALANCE_FROM of the objective, or below ten tolerances
BALANCED, BALANCE_ROUNDS, BALANCE_FROM = 1e-12, 4, 1e-5

#: numbers of the slopes of all cuts, at most: 64 MB
NUMBERS = 2**23

#: iterations of the program, typically
PROGRAM_ITERATIONS = 15.0

#: averaged constant and slope of cuts
Moments = tuple[float, np.ndarray]


def groups_for(objective: LinearObjective, columns: int) -> int:
    """Number of groups of samples for this many unknowns: fewer where a program takes longer."""
    most = 1000 if objective.region.oracle_is_solver else 200
    return min(objective.n_samples, max(16, min(most, int(2e8 / max(columns, 1) ** 2))))


def program_work(cuts: float, columns: int) -> float:
    """Work of one solution of the program."""
    least, most = min(cuts, columns), max(cuts, columns)
    return STEP + PROGRAM_ITERATIONS * (least**2 * most / MATRIX_SPEED + cuts * columns)


class CutModel:
    """Lower model of the objective: the highest cut of every group of samples, plus the penalty.

    Parameters
    ----------
    objective : LinearObjective
    run : Run
    n_groups, max_cuts : int or None
        See ``BundleSolver``.
    """

    def __init__(self, objective: LinearObjective, run: Run, n_groups: int | None, max_cuts: int | None) -> None:
        self.objective, self.run = objective, run
        # Slopes have no hidden component; the l1 norm depends on it.
        self.visible = np.eye(objective.shape[0])
        if objective.normals.shape[0] and objective.smooth_penalty and not objective.design.shared:
            self.visible = null_space(objective.normals)
        n, columns = objective.n_samples, self.visible.shape[1] * objective.shape[1]
        size = max(columns, 1)  # there may be no columns
        if n_groups is None:
            n_groups = groups_for(objective, columns)
        if max_cuts is not None:
            n_groups = min(n_groups, max_cuts // 4)
        self.n_groups = max(1, min(n_groups, n))
        most = NUMBERS // size if max_cuts is None else max_cuts
        self.max_cuts = max(most, 4 * self.n_groups)
        self.enough_cuts = min(ENOUGH_CUTS * self.n_groups, self.max_cuts)
        self.edges = np.linspace(0, n, self.n_groups + 1).round().astype(int)  # groups are consecutive rows
        self.A = np.zeros((0, columns))  # (k, d' q) slopes, d' <= d their visible directions
        self.b = np.zeros(0)  # (k,) constants
        self.group = np.zeros(0, dtype=np.intp)  # (k,) groups
        self.idle = np.zeros(0, dtype=np.intp)  # (k,) iterations since the multiplier was positive

    def reduce(self, Theta: np.ndarray) -> np.ndarray:
        """Visible component of coefficients or slopes, as a vector."""
        return (self.visible.T @ Theta).ravel()

    def expand(self, theta: np.ndarray) -> np.ndarray:
        """Coefficients or slopes, shape (d, q), from their visible component."""
        return self.visible @ theta.reshape(self.visible.shape[1], self.objective.shape[1])

    @property
    def work(self) -> float:
        """Work of a pass and of the program."""
        return pass_work(self.objective) + program_work(float(len(self.b)), self.A.shape[1])

    def highest(self, Theta: np.ndarray) -> np.ndarray:
        """Highest cut of each group at Theta."""
        top = np.full(self.n_groups, -np.inf)
        np.maximum.at(top, self.group, self.b + self.A @ self.reduce(Theta))
        return top

    def add(self, Theta: np.ndarray) -> tuple[float, int]:
        """Call the oracle and add cuts where the model is too low; return the objective and the number of new cuts."""
        obj = self.objective
        value, b, slopes = obj.cuts(Theta, self.edges, self.run.memory)
        A = np.array([self.reduce(slope) for slope in slopes])
        new = np.flatnonzero(b + A @ self.reduce(Theta) > self.highest(Theta) + 1e-15 * value)
        self._set(
            np.concatenate([self.A, A[new]]),
            np.concatenate([self.b, b[new]]),
            np.concatenate([self.group, new]),
            np.concatenate([self.idle, np.zeros(len(new), dtype=np.intp)]),
        )
        return value + obj.penalty(Theta), len(new)

    def minimize(
        self, center: np.ndarray, step: float, accuracy: float
    ) -> tuple[np.ndarray, float, Callable[[bool], Moments]]:
        """Minimise the model plus the proximal term.

        Returns
        -------
        Theta : ndarray of shape (d, q)
        value : float
            The model at Theta, without the proximal term.
        moments : callable
            Returns the averaged constant and slope of the cuts, shape (d, q); balanced if called with True.
        """
        obj = self.objective
        # Ridge and proximal term together are a constant plus |x|^2 / 2, where Theta = origin + root x.
        root = np.sqrt(1.0 / (obj.l2 + 1.0 / step))
        origin = (center / step + obj.l2 * obj.prior) * root**2
        shape = (self.visible.shape[1], obj.shape[1])
        scale = np.broadcast_to(root, shape).ravel()
        x, multipliers, zero = minimize_highest(
            self.A * scale,
            self.b + self.A @ self.reduce(origin),
            self.group,
            np.broadcast_to(obj.l1 * root, shape).ravel(),
            self.reduce(obj.l1 * (origin - obj.prior)),
            accuracy,
        )
        Theta = origin + self.expand(scale * x)
        zero = zero[np.abs(Theta - obj.prior).flat[zero] < 1e-9]
        Theta.flat[zero] = obj.prior.flat[zero]
        value = float(self.highest(Theta).sum()) + obj.penalty(Theta)
        A, b, group = self.A, self.b, self.group

        def moments(balance: bool) -> Moments:
            weights = self._balanced(multipliers, A, group) if balance else multipliers
            return float(weights @ b), self.expand(weights @ A)

        self._tidy(multipliers)
        return Theta, value, moments

    def _balanced(self, multipliers: np.ndarray, all_slopes: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Multipliers whose averaged slope vanishes, up to rounding, in columns without ridge.

        The proximal term leaves a slope of the order of 1 / step, and the bound is charged for it.  Factors
        1 + (A_k - mean of its group).y keep the sums of the groups.  The bound hardly changes otherwise, because active
        cuts are equally high at the solution.
        """
        obj = self.objective
        shape = (self.visible.shape[1], obj.shape[1])
        l1 = np.broadcast_to(obj.l1, shape).ravel()
        without_ridge = np.broadcast_to(obj.l2 == 0, shape).ravel()
        if not without_ridge.any():
            return multipliers
        active = np.flatnonzero(multipliers > BALANCED)
        A, group = all_slopes[active], groups[active]
        values, rest = multipliers[active], multipliers.copy()
        rest[active] = 0.0
        inactive, size, share = rest @ all_slopes, np.inf, 1.0
        for _ in range(BALANCE_ROUNDS):
            slope = inactive + values @ A
            # A slope within the l1 penalty is absorbed by it.
            columns = np.flatnonzero(without_ridge & (np.abs(slope) >= l1))
            excess = slope[columns] - np.clip(slope[columns], -l1[columns], l1[columns])
            size, before = float(np.linalg.norm(excess)), size
            work = float(len(columns)) ** 2 * (len(columns) / 3 + len(values))
            if size == 0.0 or (share == 1.0 and size > 0.5 * before) or not self.run.deadline.allows(work):
                break
            sums = np.bincount(group, values, minlength=self.n_groups)
            average = csr_array((values / sums[group], (group, np.arange(len(values)))), (self.n_groups, len(values)))
            centered = A[:, columns] - (average @ A[:, columns])[group]
            M = (centered * values[:, None]).T @ centered
            M[np.diag_indices_from(M)] += 1e-14 * float(np.einsum("ii->", M)) / len(columns)
            try:
                factor = cho_factor(M, lower=True, check_finite=False)
            except LinAlgError:
                break
            y = -cho_solve(factor, excess, check_finite=False)
            y -= cho_solve(factor, excess + (values * (centered @ y)) @ centered, check_finite=False)
            change = centered @ y
            largest = -float(change.min(initial=0.0))
            if not np.isfinite(largest):
                break
            share = min(1.0, 0.9 / max(largest, 1e-300))  # step length that keeps multipliers positive
            values = values * (1.0 + share * change)
        rest[active] = values
        return rest

    def _tidy(self, multipliers: np.ndarray) -> None:
        """Drop the cuts that have been idle longest; if there are still too many, average those of each group."""
        self.idle = np.where(multipliers > IDLE, 0, self.idle + 1)
        keep = np.flatnonzero(self.idle < PATIENCE)
        # An accurate solution has few positive multipliers; keep some of the other cuts, too.
        enough = max(self.enough_cuts - self.n_groups, int((self.idle == 0).sum()))
        if len(keep) > enough:
            order = np.lexsort((-multipliers[keep], self.idle[keep]))
            keep = np.sort(keep[order[:enough]])
        room = self.max_cuts - self.n_groups
        if len(keep) <= room:
            if len(keep) < len(self.b):
                self._set(self.A[keep], self.b[keep], self.group[keep], self.idle[keep])
            return
        average = csr_array((multipliers, (self.group, np.arange(len(self.b)))), shape=(self.n_groups, len(self.b)))
        keep = np.sort(np.argsort(-multipliers, kind="stable")[: room - self.n_groups])
        self._set(
            np.concatenate([average @ self.A, self.A[keep]]),
            np.concatenate([average @ self.b, self.b[keep]]),
            np.concatenate([np.arange(self.n_groups), self.group[keep]]),
            np.concatenate([np.zeros(self.n_groups, dtype=np.intp), self.idle[keep]]),
        )

    def _set(self, A: np.ndarray, b: np.ndarray, group: np.ndarray, idle: np.ndarray) -> None:
        if (np.diff(group) < 0).any():
            order = np.argsort(group, kind="stable")
            A, b, group, idle = A[order], b[order], group[order], idle[order]
        self.A, self.b, self.group, self.idle = A, b, group, idle
