"""Weighted averages of decisions as dual points, with weights that cancel the residual of the moments.

Conventions
-----------
    V_k (m, d) decisions in conv(S), sorted by sample; i(k) their samples
    alpha_k > 0 their weights, which sum to one for each sample

Any weights prove a lower bound, v_i = sum_k alpha_k V_k; without a ridge it is charged for the residual R of the
moments (see ``objective``).  Factors 1 + (V_k - v_i).Y z_i of the weights keep their sums and change the moments by

    sum_i a_i Cov_i Y z_i z_i^T,     Cov_i the covariance of the decisions of sample i under its weights,

so Y solves a linear system: by a factorisation if there are few coefficients, else by conjugate gradients, in time and
memory linear in samples, features and costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, null_space

from .._utils.conjugate_gradients import conjugate_gradients
from .._utils.limits import Deadline, TimeIsUp, check_time
from .certificate import Bound

if TYPE_CHECKING:
    from .in_memory import InMemoryObjective

#: largest number of conjugate-gradient steps for one set of factors, and of sets: factors must not be negative, so one
#: set may not be enough
STEPS, SETS = 100, 4

#: largest number of coefficients for which Y is found by a factorisation, its largest number of multiplications, and
#: the number of entries of covariances per block
DIRECT, DIRECT_WORK, BLOCK_ELEMENTS = 1_000, 1e10, 2**20

#: largest number of entries of all decisions: 512 MB
MOST_ELEMENTS = 2**26

#: weights of the other decisions in a mixture
SHARES = (1e-9, 1e-7, 1e-5, 1e-3, 1e-2)


class Mixture:
    """Weighted averages of decisions of each sample.

    Arrays of weights contain only the decisions of samples with several decisions.

    Parameters
    ----------
    objective : InMemoryObjective
    V : ndarray of shape (n, d)
        One decision of each sample.
    deadline : Deadline
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
        """Best bound of these weights and of those after cancelling the residual; Theta is the result.

        Weights are positive, and their sum is one for each sample.
        """
        obj = self.objective
        best = obj.dual_value_from_moments(*self.moments(weight), Theta)
        for _ in range(SETS if self.rows.size else 0):
            try:
                # Factors of tiny weights may overflow; they are not used then.
                with np.errstate(over="ignore", invalid="ignore"):
                    change = self._factors(weight)
            except TimeIsUp:
                break  # the bounds so far are valid
            if change is None:
                break
            weight = weight * (1.0 + min(1.0, 0.9 / max(-float(change.min()), 1e-300)) * change)
            weight = weight / np.add.reduceat(weight, self.first)[self.row]
            best = max(best, obj.dual_value_from_moments(*self.moments(weight), Theta))
        return best

    def _factors(self, weight: np.ndarray) -> np.ndarray | None:
        """Relative changes of the weights that cancel the residual; None if the residual is zero or the step fails."""
        obj = self.objective
        G = self.moments(weight)[1]
        # An l1 penalty absorbs slopes up to its size; larger ones are reduced to it.
        held = (obj.l2 == 0) & (np.abs(G) >= obj.l1 * (1.0 - 1e-9))
        excess = np.where(held, G - np.clip(G, -obj.l1, obj.l1), 0.0)
        if not excess.any():
            return None
        mean, a = self.average(weight), obj.weight[self.rows, None]

        def change(Y: np.ndarray) -> np.ndarray:
            P = obj.design.predict(Y, self.rows)
            return np.einsum("ij,ij->i", self.choices, P[self.row]) - np.einsum("ij,ij->i", mean, P)[self.row]

        def apply(Y: np.ndarray) -> np.ndarray:
            return np.where(held, 2.0 * obj.design.adjoint(self.average(weight * change(Y)) * a, self.rows), 0.0)

        size = excess.size
        work = self.rows.size * float(size) ** 2
        if size <= DIRECT and work <= DIRECT_WORK and self.deadline.allows(work + float(size) ** 3):
            Y = self._solve_directly(weight, mean, held, excess, apply)
        else:
            Y = conjugate_gradients(apply, excess, STEPS, late=lambda: self.deadline.left() <= 0)[0]
        result = change(Y)
        return result if np.isfinite(result).all() and result.any() else None

    def _solve_directly(
        self,
        weight: np.ndarray,
        mean: np.ndarray,
        held: np.ndarray,
        excess: np.ndarray,
        apply: Callable[[np.ndarray], np.ndarray],
    ) -> np.ndarray:
        """Y from a Cholesky factor of the matrix of ``apply``."""
        obj = self.objective
        # Slopes have no hidden component, unless an l1 penalty holds single entries.
        hidden = obj.normals.size > 0 and obj.smooth_penalty and not obj.design.shared
        basis = null_space(obj.normals) if hidden else np.eye(self.choices.shape[1])
        if not hidden:
            basis[:, obj.design.known] = 0.0
        d = basis.shape[1]
        matrix: Any = 0.0
        ends = np.append(self.first, self.row.size)
        block = max(1, BLOCK_ELEMENTS // d**2)
        for start in range(0, self.rows.size, block):
            check_time()
            stop = min(start + block, self.rows.size)
            mine = slice(ends[start], ends[stop])
            centered = (self.choices[mine] - mean[self.row[mine]]) @ basis
            outer = np.einsum("k,ki,kj->kij", weight[mine], centered, centered)
            covariances = np.add.reduceat(outer, self.first[start:stop] - ends[start])
            matrix = matrix + 2.0 * obj.design.curvature(covariances, self.rows[start:stop])
        inside = (held[:d] if hidden else held).ravel()
        matrix = matrix[np.ix_(inside, inside)]
        matrix[np.diag_indices_from(matrix)] += 1e-15 * max(float(np.trace(matrix)) / len(matrix), 1e-300)
        try:
            factor = cho_factor(matrix, check_finite=False)
        except np.linalg.LinAlgError:
            return conjugate_gradients(apply, excess, STEPS, late=lambda: self.deadline.left() <= 0)[0]
        Y, rest = np.zeros_like(excess), excess
        for _ in range(3):
            reduced = np.zeros(inside.size)
            right = (basis.T @ rest if hidden else rest).ravel()[inside]
            reduced[inside] = cho_solve(factor, right, check_finite=False)
            trial = Y + (basis @ reduced.reshape(d, -1) if hidden else reduced.reshape(excess.shape))
            new = excess - apply(trial)
            if not np.linalg.norm(new) < np.linalg.norm(rest):
                break
            Y, rest = trial, new
        return Y


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
