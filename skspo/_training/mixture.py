"""Weighted averages of decisions as dual points, with weights that cancel the residual of the moments.

Conventions
-----------
    V_k (m, d) decisions in conv(S), sorted by sample; i(k) their samples
    alpha_k > 0 their weights, which sum to one for each sample

Any weights prove a lower bound, v_i = sum_k alpha_k V_k; without a ridge it is charged for the residual R of the
moments (see ``objective``), which other weights cancel (see ``balance``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.limits import BLOCK_ELEMENTS, Deadline, TimeIsUp, check_time
from .balance import DIRECT, Averages, balanced
from .objective import Bound

if TYPE_CHECKING:
    from .in_memory import InMemoryObjective

#: largest number of entries of all decisions: 512 MB
MOST_ELEMENTS = 2**26

#: weights of the other decisions in a mixture
SHARES = (1e-9, 1e-7, 1e-5, 1e-3, 1e-2)


class Mixture(Averages):
    """Weighted averages of decisions of each sample, at first one, V.

    Arrays of weights contain only the decisions of samples with several decisions.
    """

    def __init__(self, objective: InMemoryObjective, V: np.ndarray, deadline: Deadline) -> None:
        self.objective, self.deadline = objective, deadline
        self.W = objective.W
        self.V, self.sample = V, np.arange(objective.n_samples)
        self._arrange()

    def add(self, samples: np.ndarray, V: np.ndarray) -> None:
        """Add one decision for each of these samples, unless there are too many."""
        if self.V.size + V.size > MOST_ELEMENTS:
            return
        self.V, self.sample = np.concatenate([self.V, V]), np.concatenate([self.sample, samples])
        order = np.argsort(self.sample, kind="stable")
        self.V, self.sample = self.V[order], self.sample[order]
        self._arrange()

    def _arrange(self) -> None:
        obj = self.objective
        several = (np.bincount(self.sample, minlength=obj.n_samples) > 1)[self.sample]
        single = self.sample[~several]
        difference = (self.V[~several] - self.W[single]) * obj.weight[single, None]
        #: constant and slope of the samples with a single decision
        self.constant = float(np.einsum("ij,ij->", obj.C[single], difference))
        self.slope = -2.0 * obj.design.adjoint(difference, single)
        #: the other samples, the start of their decisions, and the index of the sample of each decision
        self.rows, self.first, self.row = np.unique(self.sample[several], return_index=True, return_inverse=True)
        self.choices = self.V[several]

    def best_scores(self, U: np.ndarray) -> np.ndarray:
        """Largest V_k.u_i of each sample."""
        first = np.searchsorted(self.sample, np.arange(U.shape[0]))
        return np.maximum.reduceat(np.einsum("ij,ij->i", self.V, U[self.sample]), first)

    def average(self, weight: np.ndarray) -> np.ndarray:
        """Sums of weighted decisions, for the samples with several."""
        return np.add.reduceat(weight[:, None] * self.choices, self.first)

    def moments(self, weight: np.ndarray) -> tuple[float, np.ndarray]:
        """Constant and slope of the bound (see ``LinearObjective.dual_value_from_moments``)."""
        if not self.rows.size:
            return self.constant, self.slope
        obj = self.objective
        difference = (self.average(weight) - self.W[self.rows]) * obj.weight[self.rows, None]
        constant = self.constant + float(np.einsum("ij,ij->", obj.C[self.rows], difference))
        return constant, self.slope - 2.0 * obj.design.adjoint(difference, self.rows)

    def bound(self, weight: np.ndarray, Theta: np.ndarray) -> Bound:
        """Best bound of these weights and of those after balancing; Theta is the result.

        Weights are positive, and their sum is one for each sample.
        """
        obj = self.objective
        best = obj.dual_value_from_moments(*self.moments(weight), Theta)
        try:
            for other in balanced(self, weight, lambda: self.deadline.left() <= 0) if self.rows.size else ():
                best = max(best, obj.dual_value_from_moments(*self.moments(other), Theta))
        except TimeIsUp:
            pass  # the bounds so far are valid
        return best

    # -- averages to be balanced ---------------------------------------------------------------------------------------

    def excess(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Minus the slope, without what an l1 penalty absorbs."""
        l1, G = self.objective.l1, self.moments(weight)[1]
        held = (self.objective.l2 == 0) & (np.abs(G) >= l1)
        return np.where(held, np.clip(G, -l1, l1) - G, 0.0), held

    def change(self, weight: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """(V_k - v_i).Y z_i of each decision."""
        P = self.objective.design.predict(Y, self.rows)
        x: np.ndarray = np.einsum("ij,ij->i", self.choices, P[self.row])
        return x - np.add.reduceat(weight * x, self.first)[self.row]

    def effect(self, weight: np.ndarray, change: np.ndarray) -> np.ndarray:
        """2 sum_i a_i dv_i z_i^T."""
        a = 2.0 * self.objective.weight[self.rows, None]
        return self.objective.design.adjoint(self.average(weight * change) * a, self.rows)

    def matrix(self, weight: np.ndarray, inside: np.ndarray) -> np.ndarray | None:
        """2 sum_i a_i Cov_i times z_i z_i^T, in blocks of samples."""
        if inside.size > DIRECT or not self.deadline.allows(self.rows.size * float(inside.size) ** 2):
            return None
        mean, ends = self.average(weight), np.append(self.first, self.row.size)
        block = max(1, BLOCK_ELEMENTS // self.choices.shape[1] ** 2)
        K: Any = 0.0
        for start in range(0, self.rows.size, block):
            check_time()
            stop = min(start + block, self.rows.size)
            mine = slice(ends[start], ends[stop])
            centered = self.choices[mine] - mean[self.row[mine]]
            centered[:, self.objective.design.known] = 0.0  # these costs are not predicted
            outer = np.einsum("k,ki,kj->kij", weight[mine], centered, centered)
            covariances = np.add.reduceat(outer, self.first[start:stop] - ends[start])
            K = K + 2.0 * self.objective.design.curvature(covariances, self.rows[start:stop])
        result: np.ndarray = K[np.ix_(inside.ravel(), inside.ravel())]
        return result

    def moved(self, weight: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Weights after relative changes; sums are one again, whatever the rounding errors."""
        weight = super().moved(weight, change)
        total: np.ndarray = np.add.reduceat(weight, self.first)[self.row]
        return weight / total


def mixed_bound(
    objective: InMemoryObjective, V: np.ndarray, Theta: np.ndarray, deadline: Deadline, target: float
) -> Bound:
    """Bound of decisions V in conv(S) after mixing in other decisions with small weights to cancel the residual.

    The others are the optimal ones, and those that attain the loss at Theta, the result.  The search stops as soon as
    the bound reaches ``target``.
    """
    mixture = Mixture(objective, V, deadline)
    for other in (mixture.W, objective.decisions(Theta)):
        rows = np.flatnonzero((other != V).any(axis=1))
        mixture.add(rows, other[rows])
    count = np.diff(np.append(mixture.first, mixture.row.size))[mixture.row]
    given = np.zeros(mixture.row.size, dtype=bool)
    given[mixture.first] = True  # the first of each sample
    best = objective.dual_value(V, Theta)
    for share in SHARES:
        if best.value >= target or not mixture.rows.size or deadline.left() <= 0:
            break
        weight = np.where(given, 1.0 - share, share / np.maximum(count - 1, 1))
        best = max(best, mixture.bound(weight, Theta))
    return best
