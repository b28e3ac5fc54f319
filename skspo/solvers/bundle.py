"""Proximal bundle method: any region, exact, nothing but batched argmins.

The samples are split into groups, and each group g has its own model of its share of the loss.  A pass of the oracle
at some Theta gives decisions v_i, and with them one cut per group, which holds for all Theta (see ``objective``):

    loss_g(Theta) >= b + <A, Theta>,   b = sum_i a_i c_i.(v_i - w_i),   A = 2 sum_i a_i (w_i - v_i) z_i^T    (i in g)

The next point minimises the model, that is, the sum over groups of the highest cut, plus the penalty, which is not
approximated, plus |Theta - centre|^2 / (2 step).  The multipliers of the cuts sum to one in each group and say how to
average the v_i, so the averaged (b, A) are the moments of decisions in conv(S), and those prove a lower bound.

The start.  Where samples are many, some of them say almost as well where the optimum is: the method starts from the fit
to one in eight, which starts from one in eight of those, and so on.  The smallest sample is fitted by interior point
where the region allows it.  Each level needs two dozen passes, so that the whole takes little more than the last one.

Many groups make few passes: with one sample per group the model is exact as soon as every sample has met the decisions
that matter to it, and the bound needs no ridge.  What they cost is time for the quadratic program.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, null_space
from scipy.sparse import csr_array

from .._process import one_blas_thread
from ..deadline import TimeIsUp, check_time
from ..objective import GAP_FLOOR, ZERO_BOUND, LinearObjective
from .base import Progress, Result, Solver
from .interior_point import InteriorPointSolver

#: largest proximal step; subgradients and coefficients are of order one
MAX_STEP = 1e9

#: relative gap of the fit to a sample; more would not bring it nearer to the optimum of all
SAMPLE_TOL = 1e-3

#: a cut whose multiplier stays below this is idle, and is dropped after so many iterations
IDLE, PATIENCE = 1e-6, 20

#: cuts per group, beyond which there are only those with a multiplier
ENOUGH_CUTS = 20

#: multipliers above BALANCED are changed to make averaged slopes vanish, in at most so many rounds, as soon as the
#: predicted decrease is below this share of the objective, or below ten tolerances
BALANCED, BALANCE_ROUNDS, BALANCE_FROM = 1e-12, 4, 1e-5

#: averaged constant and slope of cuts
Moments = tuple[float, np.ndarray]


class BundleSolver(Solver):
    """Exact minimisation by cutting planes around the best point.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Largest number of passes over the data, one batched argmin each; None means 500.
    max_cuts : int or None, default=None
        Number of cuts that the model may have; beyond it they are averaged.  None means as many as fit into 64 MB.
        Beyond 20 per group only those stay that have a multiplier.
    n_groups : int or None, default=None
        Number of groups of samples with a model of their own.  None means 200, or 1000 if the region has no cone form
        (its oracle is then likely to be slow, and passes are what counts), but fewer if coefficients are many.
    verbose : int, default=0
    """

    name = "bundle"
    requires = ()
    sums_suffice = True

    def __init__(
        self,
        *,
        tol: float = 1e-6,
        max_iter: int | None = None,
        max_cuts: int | None = None,
        n_groups: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.max_cuts = max_cuts
        self.n_groups = n_groups
        self.verbose = verbose

    def solve(self, objective: LinearObjective, coef_init: np.ndarray | None = None) -> Result:
        """Minimise from ``coef_init``, or from the fit to a sample, or from least squares; ``n_iter`` counts passes."""
        with one_blas_thread:  # the program's matrices are small
            return self._solve(objective, coef_init)

    def _solve(self, objective: LinearObjective, coef_init: np.ndarray | None) -> Result:
        limit = 500 if self.max_iter is None else max(self.max_iter, 1)
        progress = Progress(self.name, objective, self.verbose)
        model = CutModel(objective, self.n_groups, self.max_cuts)
        start = self._start(objective) if coef_init is None else coef_init
        progress.begin()
        centre, (value, _), n_iter = start, model.add(start), 1
        if start is not objective.least_squares:
            # The optimum of a sample may be a poor model of all rows: least squares is a candidate, too.
            other, _ = model.add(objective.least_squares)
            n_iter += 1
            if other < value:
                centre, value = objective.least_squares, other
        gradient = model.expand(model.A.sum(axis=0)) + objective.penalty_gradient(centre)
        # The step that would bring the objective to zero if it were linear.
        step = min(max(value / max(float(np.vdot(gradient, gradient)), 1e-300), 1e-12), MAX_STEP)
        moments: Moments = (0.0, np.zeros(objective.shape))  # those of v_i = w_i, which prove that zero is a bound
        bound, message, decrease, close = ZERO_BOUND, "", value, True
        proving, polishing, proved, rounds = False, False, -np.inf, 0
        while objective.relative_gap(value, bound.value) > self.tol:
            if progress.late():
                message = objective.deadline.message
                break
            size = max(value, GAP_FLOOR * objective.trivial_value())
            accuracy = max(min(1e-2 * (value - bound.value), 0.1 * max(decrease, 0.0)), 1e-2 * self.tol * size)
            if proving:
                # The residual slope is of the order of sqrt(accuracy / step), and it is charged for.
                accuracy = 1e-14 * size
            try:
                trial, predicted, balance = model.minimize(centre, step, accuracy)
            except TimeIsUp:
                message = objective.deadline.message
                break
            decrease = value - predicted
            # Balancing takes a factorisation, and far from the optimum the bound is poor anyway.
            close = decrease <= max(BALANCE_FROM, 10.0 * self.tol) * size
            # Without a ridge the radius of a bound grows with the distance of the best point, so that it may change.
            candidates: list[Moments] = [moments, balance(False), *([balance(True)] if close else [])]
            bounds = [objective.dual_value_from_moments(*m, centre) for m in candidates]
            moments, bound = candidates[bounds.index(max(bounds))], max(ZERO_BOUND, *bounds)
            progress(n_iter, value, bound.value)
            if objective.relative_gap(value, bound.value) <= self.tol:
                break
            again, proving = proving, decrease <= 0.1 * self.tol * size
            if proving and not again:
                proved = -np.inf
                continue  # the same more accurately
            new_bound = max(bounds[1:]).value
            if proving and not polishing and new_bound > proved and step < MAX_STEP:
                # The model promises nothing near the centre, and the proof needs that it promises nothing far away.
                proved, step = new_bound, min(10.0 * step, MAX_STEP)
                continue
            if proving and not polishing:
                # Rounding has stopped the proof.  The program is better conditioned for a shorter step, which gives a
                # better centre, from which it will do.
                polishing, rounds, step = True, rounds + 1, 1e-3 * step
                if rounds <= 5:
                    continue
            if proving and rounds > 5:
                message = "the quadratic program is solved as accurately as it can be"
                break
            polishing = False
            if n_iter >= limit:
                message = f"max_iter={limit} passes were used up"
                break
            try:
                new, n_cuts = model.add(trial)
            except TimeIsUp:
                message = objective.deadline.message
                break
            n_iter += 1
            if not proving and n_cuts == 0 and new >= value:
                message = "the quadratic program is solved as accurately as it can be"
                break
            ratio = (value - new) / max(decrease, 1e-300)
            if proving:
                proved = -np.inf
            elif ratio > 0.5:
                step = min(step * min(max(0.5 / max(1.0 - ratio, 1e-2), 2.0), 10.0), MAX_STEP)
            elif ratio < -1.0:
                step = step * max(1.0 / (1.0 - ratio), 0.1)
            if ratio > 1e-3 or (proving and new < value):
                centre, value = trial, new
                bound = max(ZERO_BOUND, objective.dual_value_from_moments(*moments, centre))
        if message and not close:
            # Stopped early: the last multipliers prove something, too.
            bound = max(bound, objective.dual_value_from_moments(*balance(True), centre))
        progress(n_iter, value, bound.value, force=True)
        return self.result(objective, centre, value, bound, n_iter, message)

    def _start(self, objective: LinearObjective) -> np.ndarray:
        """Return the optimum of a sample, if there are many rows and they are at hand, or least squares."""
        sample = objective.sampled() if objective.rows_at_hand else None
        if sample is None:
            return objective.least_squares
        sample.deadline = objective.deadline.share(0.5)
        interior = not InteriorPointSolver.missing(objective.region) and sample.sampled() is None
        solver = InteriorPointSolver if interior else BundleSolver
        try:
            with sample.deadline.enforced():
                return solver(tol=max(self.tol, SAMPLE_TOL), verbose=self.verbose).solve(sample).coef
        except TimeIsUp:
            return objective.least_squares


class CutModel:
    """Lower model of the objective: the highest cut of every group of samples, plus the penalty.

    Parameters
    ----------
    objective : LinearObjective
    n_groups, max_cuts : int or None
        See ``BundleSolver``.
    """

    def __init__(self, objective: LinearObjective, n_groups: int | None, max_cuts: int | None) -> None:
        self.objective = objective
        # Slopes have no component that decisions cannot see; an l1 norm has one.
        self.visible = np.eye(objective.shape[0])
        if objective.normals.shape[0] and objective.smooth_penalty and not objective.design.shared:
            self.visible = null_space(objective.normals)
        n, columns = objective.n_samples, self.visible.shape[1] * objective.shape[1]
        size = max(columns, 1)  # no columns: nothing that decisions could see
        if n_groups is None:
            most = 200 if hasattr(objective.region, "support_epigraph") else 1000
            n_groups = max(16, min(most, int(2e8 / size**2)))
        if max_cuts is not None:
            n_groups = min(n_groups, max_cuts // 4)
        self.n_groups = max(1, min(n_groups, n))
        most = 2**23 // size if max_cuts is None else max_cuts
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

    def highest(self, Theta: np.ndarray) -> np.ndarray:
        """Highest cut of each group at Theta."""
        top = np.full(self.n_groups, -np.inf)
        np.maximum.at(top, self.group, self.b + self.A @ self.reduce(Theta))
        return top

    def add(self, Theta: np.ndarray) -> tuple[float, int]:
        """Call the oracle and cut where the model is too low; return the objective and the number of cuts."""
        obj = self.objective
        value, b, slopes = obj.cuts(Theta, self.edges)
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
        self, centre: np.ndarray, step: float, accuracy: float
    ) -> tuple[np.ndarray, float, Callable[[bool], Moments]]:
        """Minimise the model plus the proximal term.

        Returns
        -------
        Theta : ndarray of shape (d, q)
        value : float
            The model at Theta, without the proximal term.
        moments : callable
            Gives the averaged constant and slope of the cuts, shape (d, q); balanced if it is called with True.
        """
        obj = self.objective
        # Ridge and proximal term together are a constant plus |x|^2 / 2, where Theta = origin + root x.
        root = np.sqrt(1.0 / (obj.l2 + 1.0 / step))
        origin = (centre / step + obj.l2 * obj.prior) * root**2
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
        """Multipliers whose averaged slope vanishes, up to rounding, where no ridge makes up for it.

        The program with the proximal term leaves a slope of the order of 1 / step, and the bound is charged for it.
        Factors 1 + (A_k - mean of its group).y keep the sums of the groups.  The bound hardly changes otherwise: the
        cuts that matter are equally high at the solution.
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
            if size == 0.0 or (share == 1.0 and size > 0.5 * before) or not obj.deadline.allows(work):
                break
            sums = np.bincount(group, values, minlength=self.n_groups)
            average = csr_array((values / sums[group], (group, np.arange(len(values)))), (self.n_groups, len(values)))
            centred = A[:, columns] - (average @ A[:, columns])[group]
            M = (centred * values[:, None]).T @ centred
            M[np.diag_indices_from(M)] += 1e-14 * float(np.einsum("ii->", M)) / len(columns)
            try:
                factor = cho_factor(M, lower=True, check_finite=False)
            except LinAlgError:
                break
            y = -cho_solve(factor, excess, check_finite=False)
            y -= cho_solve(factor, excess + (values * (centred @ y)) @ centred, check_finite=False)
            change = centred @ y
            largest = -float(change.min(initial=0.0))
            if not np.isfinite(largest):
                break
            share = min(1.0, 0.9 / max(largest, 1e-300))  # of the step: multipliers stay positive
            values = values * (1.0 + share * change)
        rest[active] = values
        return rest

    def _tidy(self, multipliers: np.ndarray) -> None:
        """Drop cuts that have been idle longest; if the rest is still too many, average those of each group."""
        self.idle = np.where(multipliers > IDLE, 0, self.idle + 1)
        keep = np.flatnonzero(self.idle < PATIENCE)
        # An accurate program has few multipliers: the rest is not to be thrown away at once.
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


def minimize_highest(
    A: np.ndarray, b: np.ndarray, group: np.ndarray, lasso: np.ndarray, offset: np.ndarray, accuracy: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimise sum_g max_{k in g} (b_k + A_k x) + |lasso x + offset|_1 + |x|^2 / 2.

    Parameters
    ----------
    A : ndarray of shape (k, m)
    b : ndarray of shape (k,)
    group : ndarray of shape (k,)
        Sorted.
    lasso, offset : ndarray of shape (m,)
    accuracy : float
        Absolute accuracy of the value.

    Returns
    -------
    x : ndarray of shape (m,)
    multipliers : ndarray of shape (k,)
        Nonnegative; they sum to one in each group, whatever the accuracy.
    zero : ndarray of int
        Coordinates with lasso x + offset = 0, which rounding would otherwise hide.
    """
    if A.shape[1] == 0:
        top = np.full(group[-1] + 1, -np.inf)
        np.maximum.at(top, group, b)
        highest = (b == top[group]).astype(float)
        return np.zeros(0), highest / np.bincount(group, highest)[group], np.zeros(0, dtype=np.intp)
    # No multipliers make a slope steeper than this, and where an absolute value is steeper still it vanishes.
    vanishing = lasso > 0
    if vanishing.any():
        steepest = np.maximum.reduceat(np.abs(A), np.flatnonzero(np.diff(group, prepend=-1))).sum(axis=0)
        vanishing &= np.abs(offset) <= lasso * (lasso - steepest)
    if vanishing.any():
        free = np.flatnonzero(~vanishing)
        x = np.where(vanishing, -offset / np.where(vanishing, lasso, 1.0), 0.0)
        x[free], multipliers, zero = minimize_highest(A[:, free], b + A @ x, group, lasso[free], offset[free], accuracy)
        return x, multipliers, np.sort(np.concatenate([np.flatnonzero(vanishing), free[zero]]))
    multipliers = np.ones(len(b))
    # A group with a single cut is linear and moves the origin.
    several = np.flatnonzero(np.bincount(group)[group] > 1)
    shift = -np.delete(A, several, axis=0).sum(axis=0)
    A, b = A[several], b[several] + A[several] @ shift
    group = np.unique(group[several], return_inverse=True)[1]
    which = np.flatnonzero(lasso)
    if len(b) + len(which) == 0:
        return shift, multipliers, which
    basis = None
    if len(b) < A.shape[1] and len(which) == 0:
        # x = -A^T multipliers: few cuts span few directions.
        basis, triangle = np.linalg.qr(A.T)
        A = triangle.T
    x, values, zero = _InteriorPoint(A, b, group, which, lasso[which], (offset + lasso * shift)[which]).run(accuracy)
    multipliers[several] = values[: len(several)]
    return shift + (x if basis is None else basis @ x), multipliers, which[zero]


class _InteriorPoint:
    """Primal-dual interior-point method (Mehrotra's predictor and corrector) for ``minimize_highest``.

    With tops t_g, slacks s_k = t_g(k) - b_k - A_k x >= 0 and multipliers l_k >= 0 the conditions are

        x + A^T l = 0,   sum_{k in g} l_k = 1,   l_k s_k = mu

    and Newton's matrix, after elimination, is the identity plus the covariance of the cuts within each group, weighted
    with l_k / s_k.  The terms |lasso x_j + offset| are groups of two cuts that touch one coordinate each.
    """

    def __init__(
        self, A: np.ndarray, b: np.ndarray, group: np.ndarray, which: np.ndarray, lasso: np.ndarray, offset: np.ndarray
    ) -> None:
        self.A, self.which, self.lasso = A, which, lasso
        k, n_pairs, n_groups = len(b), len(which), len(np.unique(group))
        pairs = n_groups + np.arange(n_pairs)
        self.k, self.n_pairs, self.n_groups = k, n_pairs, n_groups + n_pairs
        self.b = np.concatenate([b, offset, -offset])
        self.group = np.concatenate([group, pairs, pairs])
        self.mean = csr_array(
            (np.ones(k), np.arange(k), np.searchsorted(group, np.arange(n_groups + 1))), shape=(n_groups, k)
        )

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

    def factorize(self, D: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, bool]:
        """Cholesky factor of Newton's matrix."""
        k, n_pairs, group = self.k, self.n_pairs, self.group[: self.k]
        self.mean.data = D[:k] / T[group]
        centred = self.A - (self.mean @ self.A)[group]
        centred *= np.sqrt(D[:k])[:, None]
        M = centred.T @ centred
        diagonal = np.einsum("ii->i", M)
        diagonal += 1.0
        plus, minus = D[k : k + n_pairs], D[k + n_pairs :]
        diagonal[self.which] += 4.0 * self.lasso**2 * plus * (minus / (plus + minus))
        return cho_factor(M, lower=True, overwrite_a=True, check_finite=False)

    def direction(
        self,
        factor: tuple[np.ndarray, bool],
        D: np.ndarray,
        T: np.ndarray,
        s: np.ndarray,
        r_x: np.ndarray,
        r_l: np.ndarray,
        r_s: np.ndarray,
        r: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Newton's step in x, t, s and l for given residuals; r is that of l_k s_k = mu."""
        group = self.group
        q = r / s - D * r_s
        u = (self.total(q) - r_l) / T
        dx = cho_solve(factor, r_x - self.adjoint(q - D * u[group]), check_finite=False)
        slope = self.times(dx)
        dt = u + self.total(D * slope) / T
        ds = dt[group] - slope + r_s
        dl = r / s - D * ds
        # One refinement: the multipliers are worth as much as x + A^T l is small.
        more = cho_solve(factor, r_x - dx - self.adjoint(dl), check_finite=False)
        slope = self.times(more)
        more_t = self.total(D * slope) / T
        more_s = more_t[group] - slope
        return dx + more, dt + more_t, ds + more_s, dl - D * more_s

    def run(self, accuracy: float, max_iter: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return x, the multipliers, and which of the absolute values vanish."""
        group, total = self.group, self.total
        x = np.zeros(self.A.shape[1])
        top, low = np.full(self.n_groups, -np.inf), np.full(self.n_groups, np.inf)
        np.maximum.at(top, group, self.b)
        np.minimum.at(low, group, self.b)
        spread = top - low
        # Centred within each group from the start; what is added must not get lost beside the cuts themselves.
        least = max(1e-3 * float(spread.mean()), 1e-12 * float(np.abs(self.b).max()), 1e-100)
        t = top + np.maximum(spread, least)
        s = t[group] - self.b
        l = (1.0 / s) / total(1.0 / s)[group]
        best, best_merit, age = (x, s, l), np.inf, 0
        for _ in range(max_iter):
            check_time()
            r_x = -x - self.adjoint(l)
            r_l = 1.0 - total(l)
            r_s = t[group] - self.times(x) - self.b - s
            gap = float(l @ s)
            # Rounding ends the progress at some point, and later iterates may be worse.
            merit = max(gap, 1e4 * float(r_x @ r_x))
            age = 0 if merit < 0.9 * best_merit else age + 1
            if merit < best_merit:
                best, best_merit = (x, s, l), merit
            if merit <= accuracy or age > 8:
                break
            D = l / s
            T = total(D)
            try:
                factor = self.factorize(D, T)
            except LinAlgError:
                break

            system = (factor, D, T, s, r_x, r_l, r_s)
            _, _, ds, dl = self.direction(*system, -l * s)
            a = min(_longest(s, ds), _longest(l, dl))
            mu = gap / len(l)
            sigma = min(float((s + a * ds) @ (l + a * dl)) / gap, 1.0) ** 3
            dx, dt, ds, dl = self.direction(*system, sigma * mu - l * s - ds * dl)
            a = 0.995 * min(_longest(s, ds), _longest(l, dl))
            if not (a > 1e-8 and np.isfinite(dx).all()):
                break
            x, t, s, l = x + a * dx, t + a * dt, s + a * ds, l + a * dl
        x, s, l = best
        k, n_pairs = self.k, self.n_pairs
        small = s < 1e-2 * l
        return x, l / total(l)[group], small[k : k + n_pairs] & small[k + n_pairs :]


def _longest(value: np.ndarray, change: np.ndarray) -> float:
    """Longest step of at most one that keeps the values nonnegative."""
    falling = change < 0
    with np.errstate(over="ignore"):  # a change that is nothing beside the value
        return min(1.0, float((value[falling] / -change[falling]).min(initial=1.0)))
