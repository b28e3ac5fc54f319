"""Piecewise linear lower model of the objective, and the bounds of its multipliers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import null_space
from scipy.sparse import csr_array

from ..._training.balance import Averages, balanced
from ..._training.objective import LinearObjective, Moments
from ..._training.run import Run
from ..base import MATRIX_SPEED, STEP, pass_work
from .program import minimize_highest

#: multipliers below this are idle
IDLE = 1e-6

#: iterations after which an idle cut is dropped; with as many cuts per group, only cuts with a multiplier are kept
PATIENCE = 20

#: multipliers above this are positive: those of the interior-point method never vanish
ACTIVE = 1e-12

#: numbers of the slopes of all cuts, at most: 64 MB
NUMBERS = 2**23

#: iterations of the program, typically
PROGRAM_ITERATIONS = 15.0


def groups_for(objective: LinearObjective, columns: int) -> int:
    """Number of groups of samples for this many unknowns: fewer where a program takes longer."""
    most = 1000 if objective.region.oracle_is_solver else 200
    return min(objective.n_samples, max(16, min(most, int(2e8 / max(columns, 1) ** 2))))


def sees_hidden(objective: LinearObjective) -> bool:
    """Whether the model has columns for directions of the costs in which no decision varies: the l1 norm sees them."""
    return objective.design.shared or not objective.smooth_penalty or not objective.normals.shape[0]


def columns_of(objective: LinearObjective) -> int:
    """Number of unknowns of the program."""
    rows, n_coef = objective.shape
    return max(rows - (0 if sees_hidden(objective) else objective.normals.shape[0]), 0) * n_coef


def step_work(objective: LinearObjective, cuts: float, columns: int) -> float:
    """Work of a pass over the data and of a solution of the program, one after the other."""
    least, most = min(cuts, columns), max(cuts, columns)
    program = PROGRAM_ITERATIONS * (least**2 * most / MATRIX_SPEED + cuts * columns)
    return STEP + pass_work(objective) + program


class CutAverages(Averages):
    """Averaged slopes of cuts, to be balanced.

    ``A`` has the slopes in its rows, and ``constant`` is the averaged slope of other cuts.  The penalty absorbs ``l1``
    of the slope; coefficients that are ``free`` have no ridge.
    """

    def __init__(
        self, A: np.ndarray, group: np.ndarray, constant: np.ndarray, l1: np.ndarray, free: np.ndarray
    ) -> None:
        self.A, self.constant, self.l1, self.free = A, constant, l1, free
        self.group = np.unique(group, return_inverse=True)[1]

    def centered(self, weight: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values of cuts minus the mean of their group."""
        sums = np.bincount(self.group, weight)
        mean = csr_array((weight / sums[self.group], (self.group, np.arange(weight.size))), (sums.size, weight.size))
        result: np.ndarray = values - (mean @ values)[self.group]
        return result

    def excess(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slope without what the l1 penalty absorbs."""
        slope = self.constant + weight @ self.A
        held = self.free & (np.abs(slope) >= self.l1)
        return np.where(held, slope - np.clip(slope, -self.l1, self.l1), 0.0), held

    def change(self, weight: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Slopes along Y, minus their mean."""
        return self.centered(weight, self.A @ Y)

    def effect(self, weight: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Change of the averaged slope."""
        return (weight * change) @ self.A

    def matrix(self, weight: np.ndarray, inside: np.ndarray) -> np.ndarray | None:
        """Covariance of the slopes."""
        A = self.centered(weight, self.A[:, inside])
        K: np.ndarray = (A * weight[:, None]).T @ A
        return K


class CutModel:
    """Lower model of the objective: the highest cut of every group of samples, plus the penalty."""

    def __init__(self, objective: LinearObjective, run: Run, n_groups: int | None, max_cuts: int | None) -> None:
        self.objective, self.run = objective, run
        # Slopes have no hidden component.
        self.visible = np.eye(objective.shape[0]) if sees_hidden(objective) else null_space(objective.normals)
        n, columns = objective.n_samples, self.visible.shape[1] * objective.shape[1]
        size = max(columns, 1)  # there may be no columns
        if n_groups is None:
            n_groups = groups_for(objective, columns)
        if max_cuts is not None:
            n_groups = min(n_groups, max_cuts // 4)
        self.n_groups = max(1, min(n_groups, n))
        most = NUMBERS // size if max_cuts is None else max_cuts
        self.max_cuts = max(most, 4 * self.n_groups)
        self.enough_cuts = min(PATIENCE * self.n_groups, self.max_cuts)
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
        return step_work(self.objective, float(len(self.b)), self.A.shape[1])

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
        """Minimize the model plus the proximal term.

        Returns Theta, the model there without the proximal term, and a function for the averaged constant and slope of
        the cuts, balanced if it is called with True.
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

    def _balanced(self, multipliers: np.ndarray, slopes: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Multipliers whose averaged slope vanishes, up to rounding, in columns without ridge.

        The proximal term leaves a slope of the order of 1 / step, and the bound is charged for it.  The bound hardly
        changes otherwise, because active cuts are equally high at the solution.
        """
        obj, shape = self.objective, (self.visible.shape[1], self.objective.shape[1])
        l1, free = (np.broadcast_to(x, shape).ravel() for x in (obj.l1, obj.l2 == 0))
        if not free.any():
            return multipliers
        result = multipliers.copy()
        active = np.flatnonzero(multipliers > ACTIVE)
        result[active] = 0.0
        cuts = CutAverages(slopes[active], groups[active], result @ slopes, l1, free)
        deadline = self.run.deadline
        work = float(free.sum()) ** 2 * len(active)  # of the matrix of the system
        for weight in balanced(cuts, multipliers[active], lambda: not deadline.allows(work)):
            result[active] = weight
        return result

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
