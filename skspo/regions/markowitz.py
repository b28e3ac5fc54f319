"""Portfolios whose risk is limited."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from sklearn.utils.metaestimators import available_if

from .._utils.errors import InfeasibleRegionError, SolverError
from .._utils.scaling import powers_of_two
from .._utils.shown import shown
from ._cost_bounds import CostBounds
from ._oracles.clarabel import ConicSet
from ._oracles.clarabel_cones import Cones
from ._oracles.markowitz import Face, PortfolioOracle
from ._rows import rows_among
from ._tolerances import EXACT, ROUNDING
from .base import Smoothed
from .capabilities import Memory
from .conic import ConicRegion
from .polyhedral import QuadraticForm, StandardForm
from .polyhedron import read_positive, read_symmetric


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


class Markowitz(ConicRegion):
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
