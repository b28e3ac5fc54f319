"""Portfolios whose risk is limited: Markowitz, and its oracle for all rows of costs at once.

Conventions
-----------
    min c.w   s.t.  w >= 0,  sum w = 1 (or <= 1),  w^T Q w <= 1                    Q in units of the largest risk

    optimal iff   c + lam Q w = nu 1 + s,   s >= 0,  s.w = 0,  lam >= 0,  lam (1 - w^T Q w) = 0
                  nu <= 0 and nu (1 - sum w) = 0 if the sum may be below one

If it is known which assets are held and whether all is spent, w is known.  On the held assets let

    ( Q_HH  1 ) ( c~ )   ( c )        ( Q_HH  1 ) ( safest )   ( 0 )
    ( 1^T   0 ) ( m  ) = ( 0 ),       ( 1^T   0 ) (  -risk ) = ( 1 )        without the border if not all is spent

    w = safest - rho c~ / |c~|,   rho^2 = 1 - risk,   |c~|^2 = c.c~,   lam = |c~| / rho,   nu = m + lam risk

Assets with w < 0 then leave, those with s < 0 enter, all at a time; if that does not lead on, one at a time (block
principal pivoting, as for linear complementarity problems).  Where Q is nearly singular that may go on for long.  Rows
that are left are solved with Q + theta I, theta from the mean of Q's diagonal down to nothing, each from the last.

The proof does not depend on how w was found: for every lam >= 0 and g = lam Q w,

    c.x = (c + g).x - g.x >= min_j (c + g)_j - lam |G w|,   Q = G^T G,   for all x in the region

and if the sum may be below one, the same with min(min_j (c + g)_j, 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from sklearn.utils.metaestimators import available_if

from .._utils.errors import InfeasibleRegionError, SolverError
from .._utils.limits import BLOCK_ELEMENTS, check_time
from .._utils.scaling import powers_of_two
from .._utils.shown import shown
from ._cost_bounds import CostBounds
from ._oracles.clarabel import ConicSet
from ._oracles.clarabel_cones import Cones
from ._rows import rows_among
from ._tolerances import EXACT, ROUNDING
from .base import Region, Smoothed
from .capabilities import Memory
from .polyhedral import QuadraticForm, StandardForm
from .polyhedron import read_positive, read_symmetric

if TYPE_CHECKING:
    import cvxpy as cp

#: iterations of pivoting, in the second half one asset at a time; rows that are left take the detour below
ITERATIONS = 30

#: shares of the mean risk that are added to nearly singular matrices on the way to none, each a tenth of the last
DETOUR = 10.0 ** -np.arange(12)


class _MarkowitzData(NamedTuple):
    conic: ConicSet
    oracle: PortfolioOracle
    covariance: np.ndarray
    factor: np.ndarray  # G with covariance = G^T G
    max_risk: float
    safest: np.ndarray  # the decision of smallest risk
    equal: bool
    alone: bool  # whether it is the only feasible one
    definite: bool  # whether the covariance is far from singular


def _definite(region: Markowitz) -> bool:
    """Whether all portfolios have a risk of their own; parameters that are not valid are an error elsewhere."""
    try:
        return bool(region._data(region.n_dim).definite)
    except (ValueError, SolverError):
        return False


class Markowitz(Region):
    r"""Portfolios with a risk limit, :math:`\{w \ge 0, \; \sum_j w_j = 1, \; w^\top \Sigma w \le r\}`.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Symmetric positive semidefinite matrix :math:`\Sigma`.
    max_risk : float
        Largest variance r of the portfolio, positive.
    budget : {"equal", "at_most"}, default="equal"
        Whether all money is invested, or some may be kept, :math:`\sum_j w_j \le 1`.
    n_jobs : int, default=None
        Number of processes for rows that are left to Clarabel, because rounding keeps the batched method from a proof.
        None means 1.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values; predicted returns are values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Examples
    --------
    >>> from skspo import Markowitz
    >>> region = Markowitz([[1.0, 0.0], [0.0, 4.0]], max_risk=2.0, sense="max")
    >>> region.argmin([[1.0, 3.0], [3.0, 1.0]]).round(3) + 0.0
    array([[0.31, 0.69],
           [1.  , 0.  ]])
    """

    def __init__(
        self,
        covariance: ArrayLike,
        max_risk: float,
        *,
        budget: str = "equal",
        n_jobs: int | None = None,
        sense: str = "min",
        cost_bounds: CostBounds = None,
    ) -> None:
        self.covariance = covariance
        self.max_risk = max_risk
        self.budget = budget
        self.n_jobs = n_jobs
        self.sense = sense
        self.cost_bounds = cost_bounds

    @property
    def n_dim(self) -> int | None:
        """Size of the covariance matrix."""
        shape = np.shape(self.covariance)
        return shape[0] if shape else 1

    def _prepare(self, d: int) -> _MarkowitzData:
        cov = read_symmetric("Markowitz: covariance", self.covariance, d)
        values, vectors = np.linalg.eigh(cov)
        if values[0] < -1e-8 * np.abs(cov).max():
            raise ValueError(
                f"Markowitz: covariance must be positive semidefinite, but its smallest eigenvalue is {values[0]:.3g}."
            )
        max_risk = read_positive("Markowitz: max_risk", self.max_risk)
        if self.budget not in ("equal", "at_most"):
            raise ValueError(f"Markowitz: budget must be 'equal' or 'at_most', got {shown(self.budget)}.")
        equal = self.budget == "equal"
        keep = values > 1e-13 * max(float(values[-1]), 0.0)
        if keep.all():
            # Triangular, so that the solver has half as much to factorize.
            factor = np.linalg.cholesky(cov).T
        else:
            factor = np.sqrt(values[keep])[:, None] * vectors[:, keep].T
        safest = _safest_portfolio(factor, d) if equal else np.zeros(d)
        smallest = float(np.square(factor @ safest).sum())
        if smallest > max_risk * (1.0 + 1e-9):
            raise InfeasibleRegionError(
                f"Markowitz: the region is infeasible, max_risk = {max_risk:.6g} is below the smallest risk "
                f"that any portfolio attains, {smallest:.6g}."
            )
        # In units of the risk limit, so that all rows of the cones are of the same size:
        #   sum w = 1 (or sum w <= 1),   -w <= 0,   (1, G w / sqrt(max_risk)) in the second-order cone
        G = factor / np.sqrt(max_risk)
        k = G.shape[0]
        A = sp.vstack(
            [sp.csr_array(np.ones((1, d))), -sp.eye_array(d), sp.csr_array((1, d)), sp.csr_array(-G)], format="csc"
        )
        b = np.concatenate([[1.0], np.zeros(d), [1.0], np.zeros(k)])
        cones: Cones = [("zero", 1), ("nonneg", d)] if equal else [("nonneg", d + 1)]
        conic = ConicSet(A, b, [*cones, ("soc", k + 1)], np.arange(d))
        # A cone program without an interior is more than a solver can be asked for, and here there is nothing to solve.
        alone = bool(keep.all()) and smallest >= max_risk * (1.0 - ROUNDING)
        return _MarkowitzData(
            conic,
            PortfolioOracle(G, equal),
            cov,
            factor,
            max_risk,
            safest,
            equal,
            alone,
            bool(values[0] > 1e-8 * values[-1]),
        )

    def _argmin_again(self, C: np.ndarray, data: _MarkowitzData, memory: Memory) -> np.ndarray:
        """Decisions from the assets that were held for the last costs, each with a proof that it is optimal."""
        if data.alone or C.shape[0] == 0:
            return np.tile(data.safest, (C.shape[0], 1))
        W, rest, _ = self._decide(C, data, memory)
        rows = np.flatnonzero(rest)
        if rows.size:
            with rows_among(rows):
                W[rows] = data.conic.minimize(C[rows], self.n_jobs)
        return W

    def _decide(
        self, C: np.ndarray, data: _MarkowitzData, memory: Memory, mu: float = 0.0, curvature: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Decisions for c.w + mu w^T covariance w / (2 max_risk), whether they lack a proof, and their derivatives."""
        n, d = C.shape
        W = np.tile(data.safest, (n, 1))
        # In units of the spread of a row's costs.  If all is spent, a cost that all assets share does not matter.
        unit = _size(C)
        costs = C / unit
        if data.equal:
            costs -= costs.min(axis=1, keepdims=True)
        spread = _size(costs)
        costs /= spread
        # Elsewhere all decisions cost the same, or buying nothing costs least: the safest decision is one of the best.
        rows = np.flatnonzero(costs.any(axis=1) if data.equal else (costs < 0).any(axis=1))
        costs, face = costs[rows], memory.get("face")
        if not isinstance(face, Face) or face.held.shape != C.shape:
            face = None
        least = (mu / unit / spread)[rows, 0]
        found, multiplier, last = data.oracle.minimize(costs, None if face is None else face.take(rows), least)
        memory["face"] = last.put(rows, n)
        found = np.maximum(found, 0.0)
        total = found.sum(axis=1, keepdims=True)
        found /= total if data.equal else np.maximum(total, 1.0)
        W[rows] = found
        unproved = np.zeros(n, dtype=bool)
        unproved[rows] = ~(data.oracle.gap(costs, found, multiplier, least) <= EXACT * (1.0 + least))
        if not curvature:
            return W, unproved, None
        M = np.zeros((n, d, d))
        M[rows] = data.oracle.derivatives(costs, last, multiplier, least) / (unit * spread)[rows, :, None]
        M[unproved] = 0.0
        return W, unproved, M

    @available_if(_definite)
    def smoothed(self, C: np.ndarray, mu: float, memory: Memory | None = None, curvature: bool = False) -> Smoothed:
        """Minimize c.w + mu w^T covariance w / (2 max_risk) over the region (costs are minimized).

        The limit of the risk alone asks for some multiplier; the decision is that of the larger one of it and mu.
        Absent if the covariance is singular, or nearly so.
        """
        data = self._data(C.shape[1])
        memory = {} if memory is None else memory
        if data.alone:
            M = np.zeros((*C.shape, C.shape[1])) if curvature else None
            return Smoothed(np.tile(data.safest, (C.shape[0], 1)), np.zeros(C.shape[0]), M)
        W, rest, M = self._decide(C, data, memory, mu, curvature)
        if rest.any():  # without the smoothing, at least
            W[rest] = self.take(rest).solve_min(C[rest])
        risk = np.square(W @ data.oracle.G.T).sum(axis=1) - np.square(data.oracle.G @ data.safest).sum()
        return Smoothed(W, np.maximum(0.5 * risk, 0.0), M)

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row of a CVXPY expression, by conic duality."""
        conic: ConicSet = self._data(V.shape[1]).conic
        return conic.support_epigraph(V)

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """One row, (1, ..., 1) / sqrt(d), if the whole budget is spent; none otherwise."""
        d = self.resolve_dim(n_dim)
        return np.full((1, d), 1.0 / np.sqrt(d)) if self._data(d).equal else np.zeros((0, d))

    def quadratic_form(self, n_dim: int | None = None) -> QuadraticForm:
        """Portfolios, with a slack for what is not spent, and the limit of the risk."""
        d = self.resolve_dim(n_dim)
        data = self._data(d)
        N = d if data.equal else d + 1
        standard = StandardForm(sp.csr_array(np.ones((1, N))), np.ones(1), np.zeros(N), np.full(N, np.inf))
        if not data.equal:
            standard = standard._replace(project=sp.eye_array(d, N, format="csr"))
        # From the safest portfolio towards the middle, up to half of the risk that is allowed beyond the smallest.
        smallest = float(np.square(data.factor @ data.safest).sum())
        middle, inside = np.full(d, 1.0 / N), None
        for share in 0.5 ** np.arange(30) if smallest < data.max_risk * (1.0 - 1e-9) else ():
            w = data.safest + share * (middle - data.safest)
            if float(np.square(data.factor @ w).sum()) <= 0.5 * (smallest + data.max_risk):
                inside = w if data.equal else np.append(w, 1.0 - w.sum())
                break
        return QuadraticForm(standard, data.covariance, data.max_risk, inside)

    def derivative(self, C: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Derivative of the decisions at costs ``C`` (both minimized), where no asset is just about to enter or leave.

        Zero where the risk is below its limit, because the decision is a vertex, and where Clarabel found the decision.
        """
        data = self._data(C.shape[1])
        if data.alone:
            return np.zeros_like(C)
        M = self._decide(C, data, {}, curvature=True)[2]
        assert M is not None
        return -np.einsum("ijk,ik->ij", M, direction)

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Clip, normalize, and mix with the portfolio of smallest risk until the limit is met."""
        data = self._data(W.shape[1])
        W = np.maximum(W, 0.0)
        total = W.sum(axis=1, keepdims=True)
        if data.equal:
            # A sum of 1 up to rounding is left alone, so that repairing twice is repairing once.
            total = np.where(np.abs(total - 1.0) <= 1e-14 * W.shape[1], 1.0, total)
            W = np.where(total > 0, W / np.where(total > 0, total, 1.0), data.safest)
        else:
            W = W / np.maximum(total, 1.0)
        # Along safest + s step the risk is a s^2 + 2 b s + c, at most the limit up to one root.
        step = W - data.safest
        moved, base = step @ data.factor.T, data.factor @ data.safest
        a, b = np.square(moved).sum(axis=1), moved @ base
        room = max(data.max_risk - float(base @ base), 0.0)
        risk = np.square(W @ data.factor.T).sum(axis=1)
        root = np.sqrt(b * b + a * room)
        # b >= 0 if safest is, but it is only as safe as the solver is exact; each form is free of cancellation.
        top, bottom = np.where(b >= 0, room, root - b), np.where(b >= 0, root + b, a)
        s = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), 0.0)
        outside = (risk > data.max_risk)[:, None]
        return np.where(outside, data.safest + np.minimum(s, 1.0)[:, None] * step, W)


def _size(C: np.ndarray) -> np.ndarray:
    """Size of each row as a power of two, shape (n, 1), so that dividing changes no digit; one if all are zero."""
    return powers_of_two(np.abs(C).max(axis=1, keepdims=True))


def _safest_portfolio(factor: np.ndarray, d: int) -> np.ndarray:
    """Minimize |G w| over the simplex.

    For a portfolio w, the least of |t G w|^2 + (1 - t)^2 over t >= 0 increases with |G w|.  So the best nonnegative
    vector is a multiple of the safest portfolio.
    """
    scale = float(np.linalg.norm(factor, axis=0).max(initial=0.0)) or 1.0
    A = np.vstack([factor / scale, np.ones(d)])
    w = nnls(A, np.eye(len(A))[-1], maxiter=100 * d)[0]
    return w / w.sum()


# -- oracle ------------------------------------------------------------------------------------------------------------


class Face(NamedTuple):
    """Which assets are held in each row, and whether all money is spent."""

    held: np.ndarray  # (n, d) bool
    spent: np.ndarray  # (n,) bool

    def take(self, rows: np.ndarray) -> Face:
        """Faces of some rows."""
        return Face(self.held[rows], self.spent[rows])

    def put(self, rows: np.ndarray, n: int) -> Face:
        """Return these faces as rows among n, the others with all assets."""
        if rows.size == n:
            return self
        face = Face(np.ones((n, self.held.shape[1]), dtype=bool), np.ones(n, dtype=bool))
        face.held[rows], face.spent[rows] = self
        return face


class _Point(NamedTuple):
    """Best decision on a face, of any sign, and its multipliers."""

    W: np.ndarray  # (n, d)
    lam: np.ndarray  # (n,), infinite if every decision on the face is too risky: W is then the safest
    nu: np.ndarray  # (n,), divided by lam if that is infinite


class PortfolioOracle:
    """Minimize rows of costs over portfolios with w^T Q w <= 1, whose weights sum to one, or to at most one.

    Q = G^T G may be singular, G has the shape (k, d).
    """

    def __init__(self, G: np.ndarray, equal: bool) -> None:
        self.G, self.equal = G, equal
        Q = G.T @ G
        values = np.linalg.eigvalsh(Q)
        # A little more risk of each asset makes a singular matrix definite; proofs use the true one.
        least = len(Q) * np.finfo(float).eps * max(float(values[-1]), 1.0)
        self.Q = Q + max(least - float(values[0]), 0.0) * np.eye(len(Q))
        d = len(Q)
        self.all_held = np.linalg.inv(np.block([[self.Q, np.ones((d, 1))], [np.ones((1, d)), np.zeros((1, 1))]]))

    def minimize(
        self, C: np.ndarray, start: Face | None = None, least: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, Face]:
        """Decisions, their multipliers lam of the risk, and their faces; NaN in rows that were not solved.

        The costs are of size one, and ``start`` has the assets that are likely to be held, as those for similar costs.
        With ``least``, the smallest multiplier of a row, c.w + least w^T Q w / 2 is minimized.
        """
        least = np.broadcast_to(np.asarray(least, dtype=np.float64), len(C))
        W, lam, face = self._pivot(C, self.Q, start, least)
        rows, way = np.flatnonzero(np.isnan(lam)), None
        for share in np.append(DETOUR, 0.0) if rows.size else ():
            theta = share * float(np.trace(self.Q)) / len(self.Q)
            found, multiplier, way = self._pivot(C[rows], self.Q + theta * np.eye(len(self.Q)), way, least[rows])
            known = ~np.isnan(multiplier)
            found, multiplier, rows, way = found[known], multiplier[known], rows[known], way.take(known)
        if rows.size and way is not None:
            W[rows], lam[rows], face.held[rows], face.spent[rows] = found, multiplier, way.held, way.spent
        # With an infinite multiplier there is no decision within the limit of the risk, but for rounding.
        lam[np.isinf(lam)] = np.nan
        return W, lam, face

    def _pivot(
        self, C: np.ndarray, Q: np.ndarray, start: Face | None, least: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Face]:
        """Decisions, multipliers and faces by pivoting; NaN in rows that need more iterations."""
        n, d = C.shape
        W, multiplier = np.full((n, d), np.nan), np.full(n, np.nan)
        found = Face(np.ones((n, d), dtype=bool), np.ones(n, dtype=bool))
        rows, face = np.arange(n), found if start is None else start
        for n_iter in range(ITERATIONS if n else 0):
            c = C[rows]
            at_once = n_iter == 0 and start is None and Q is self.Q
            point = self._all_held(c, least) if at_once else _best_on(c, Q, face, least[rows])
            wrong, wrong_budget = self._wrong(c, Q, face, point)
            count = wrong.sum(axis=1) + wrong_budget
            # The first products are of all rows together, and their rounding differs from that of single rows.
            right = count == 0 if not at_once else np.zeros(len(rows), dtype=bool)
            done = rows[right]
            W[done], multiplier[done] = point.W[right], point.lam[right]
            found.held[done], found.spent[done] = face.take(right)
            rows, wrong, wrong_budget = (x[~right] for x in (rows, wrong, wrong_budget))
            if rows.size == 0:
                break
            if 2 * n_iter >= ITERATIONS:  # one at a time, the last one, is slower, and does not repeat itself
                wrong &= (np.cumsum(wrong[:, ::-1], axis=1)[:, ::-1] == 1) & ~wrong_budget[:, None]
            held, spent = face.take(~right)
            face = Face(held ^ wrong, spent ^ wrong_budget)
            empty = np.flatnonzero(~face.held.any(axis=1))
            face.held[empty, C[rows[empty]].argmin(axis=1)] = True
        return W, multiplier, found

    def gap(self, C: np.ndarray, W: np.ndarray, lam: np.ndarray, least: np.ndarray | float = 0.0) -> np.ndarray:
        """Cost of decisions minus what every decision costs at least, by the multipliers of the risk.

        With ``least``, costs of x include least x^T Q x / 2, which is at least least (x^T Q w - w^T Q w / 2).
        """
        GW = W @ self.G.T
        low = (C + lam[:, None] * (GW @ self.G)).min(axis=1)
        low = low if self.equal else np.minimum(low, 0.0)
        risk = np.square(GW).sum(axis=1)
        return np.einsum("ij,ij->i", C, W) + least * risk - (low - (lam - least) * np.sqrt(risk))

    def derivatives(self, C: np.ndarray, face: Face, lam: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Minus the derivatives of decisions in the costs, (n, d, d), if no asset is just about to enter or leave.

        (P - c~ c~^T / |c~|^2) / lam with P the upper block of the inverse of the matrix above, without the second term
        where the limit of the risk is not reached.
        """
        M = np.zeros((len(C), *self.Q.shape))
        for rows, columns, matrix in _systems(self.Q, face):
            k = columns.shape[1]
            P = np.linalg.inv(matrix)[:, :k, :k]
            c = C[rows[:, None], columns]
            tilted = np.einsum("ijk,ik->ij", P, c)
            size = np.einsum("ij,ij->i", c, tilted)
            reached = (lam[rows] > least[rows]) & (size > 0)
            tilted *= np.where(reached, 1.0 / np.sqrt(np.where(reached, size, 1.0)), 0.0)[:, None]
            P -= tilted[:, :, None] * tilted[:, None, :]
            P /= np.where(lam[rows] > 0, lam[rows], np.inf)[:, None, None]
            M[rows[:, None, None], columns[:, :, None], columns[:, None, :]] = P
        return M

    def _wrong(self, C: np.ndarray, Q: np.ndarray, face: Face, point: _Point) -> tuple[np.ndarray, np.ndarray]:
        """Assets that should be held and are not, or the other way round; and the same of what is not spent."""
        risky = np.isinf(point.lam)
        lam = np.where(risky, 1.0, point.lam)
        slack = np.where(risky[:, None], 0.0, C) + lam[:, None] * (point.W @ Q) - point.nu[:, None]
        limit = -ROUNDING * (1.0 + lam)
        wrong = np.where(face.held, point.W < -ROUNDING, slack < limit[:, None])
        if self.equal:
            return wrong, np.zeros(len(C), dtype=bool)
        return wrong, np.where(face.spent, (point.nu > -limit) | risky, point.W.sum(axis=1) > 1.0 + ROUNDING)

    def _all_held(self, C: np.ndarray, least: np.ndarray) -> _Point:
        """Best decisions if every asset is held and all is spent: one matrix serves all rows."""
        d = C.shape[1]
        tilted = np.column_stack([C, np.zeros(len(C))]) @ self.all_held
        safest = np.tile(self.all_held[d], (len(C), 1))
        return _Point(*_best(C, np.ones(len(C), dtype=bool), tilted, safest, least))


def _systems(Q: np.ndarray, face: Face) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, the assets that they hold, and the matrices of their linear systems, some at a time.

    Rows with as many assets go together: a row's decision must not depend on the others, not even by rounding.
    """
    count = face.held.sum(axis=1)
    order = np.argsort(count, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(count[order])) + 1) if len(count) else ():
        k = int(count[group[0]])
        block = max(BLOCK_ELEMENTS // (k + 1) ** 2, 1)
        for first in range(0, group.size, block):
            check_time()
            rows = group[first : first + block]
            columns, spent = np.nonzero(face.held[rows])[1].reshape(-1, k), face.spent[rows]
            matrix = np.zeros((rows.size, k + 1, k + 1))
            matrix[:, :k, :k] = Q[columns[:, :, None], columns[:, None, :]]
            matrix[:, k, :k] = matrix[:, :k, k] = spent[:, None]
            matrix[:, k, k] = ~spent
            yield rows, columns, matrix


def _best_on(C: np.ndarray, Q: np.ndarray, face: Face, least: np.ndarray) -> _Point:
    """Best decision of each row on its face, by one small linear system per row."""
    n, d = C.shape
    W, lam, nu = np.zeros((n, d)), np.empty(n), np.empty(n)
    for rows, columns, matrix in _systems(Q, face):
        k, spent = columns.shape[1], face.spent[rows]
        right = np.zeros((rows.size, k + 1, 2))
        right[:, :k, 0] = c = C[rows[:, None], columns]
        right[:, k, 1] = spent
        try:
            tilted, safest = np.moveaxis(np.linalg.solve(matrix, right), 2, 0)
        except np.linalg.LinAlgError:
            tilted = safest = np.full((rows.size, k + 1), np.nan)  # no solution, which is found by looking at it
        W[rows[:, None], columns], lam[rows], nu[rows] = _best(c, spent, tilted, safest, least[rows])
    return _Point(W, lam, nu)


def _best(
    c: np.ndarray, spent: np.ndarray, tilted: np.ndarray, safest: np.ndarray, least: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decisions and multipliers from the solutions (c~, m) and (safest, -risk) of the two systems above."""
    tilted, shift, safest, room = tilted[:, :-1], tilted[:, -1], safest[:, :-1], 1.0 + safest[:, -1]
    # Where held assets cost the same, all decisions on the face do.
    high, low = c.max(axis=1), c.min(axis=1)
    spread = np.where(spent, high - low, np.maximum(high, -low))
    size = np.where(spread > ROUNDING, np.sqrt(np.maximum(np.einsum("ij,ij->i", c, tilted), 0.0)), 0.0)
    risky, rho = room <= 0.0, np.sqrt(np.maximum(room, 0.0))
    lam = np.where(risky, np.inf, np.maximum(size / np.where(risky, 1.0, rho), least))
    step = np.where(size == 0.0, 0.0, 1.0 / np.where(lam == 0.0, 1.0, lam))
    nu = np.where(risky, 1.0 - room, shift + np.where(risky, 0.0, lam) * (1.0 - room))
    return safest - step[:, None] * tilted, lam, nu
