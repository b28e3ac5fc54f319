"""Balls with closed-form oracles: L1Ball, LqBall, Ellipsoid.

Conventions
-----------
    1/q + 1/q* = 1        support of {|w|_q <= radius}:  radius |v|_q*
    Q = L L^T             support of {(w - center)^T Q (w - center) <= radius^2}:  center.v + radius |L^-1 v|_2

Every row of costs is divided by its largest entry before a power or a square is taken, so costs may be of any scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dtrtri

from .._utils.errors import UnboundedRegionError
from .._utils.shown import shown
from ._cost_bounds import CostBounds
from .base import Region, StrongConvexity
from .capabilities import Memory
from .level_sets import LevelSet, SmoothedDecisions
from .polyhedral import StandardForm
from .polyhedron import read_number, read_numbers, read_positive, read_symmetric

if TYPE_CHECKING:
    import cvxpy as cp


def _unit_scale(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide each row by its largest absolute entry, which is returned as well; rows of zeros stay zero."""
    largest = np.abs(C).max(axis=1, keepdims=True)
    return C / np.where(largest == 0, 1.0, largest), largest


class _Ball(Region):
    """Base class of the balls, whose decisions vary in every direction."""

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """No rows."""
        return np.zeros((0, self.resolve_dim(n_dim)))


class _RoundBall(_Ball, LevelSet):
    """Base class of the strictly convex balls: the optimal decision is unique unless all costs are zero."""

    def _support(self, C: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Dual norm |c|_* of each row, shape (n, 1), and the point of the unit ball with c.m = |c|_*; 0 for c = 0."""
        raise NotImplementedError

    def _norm(self, step: np.ndarray, data: Any) -> np.ndarray:
        """Distance from the center in the norm of the ball, shape (n, 1)."""
        raise NotImplementedError

    def _second_derivative(self, m: np.ndarray, data: Any) -> np.ndarray:
        """Second derivative of |c|_*^2 / 2, less (p - 2) m m^T; diagonals (n, d), or one matrix (1, d, d)."""
        raise NotImplementedError

    def _argmin(self, C: np.ndarray, data: Any) -> np.ndarray:
        return data.center - data.radius * self._support(C, data)[1] + 0.0

    def _smooth(self, C: np.ndarray, mu: float, memory: Memory) -> SmoothedDecisions:
        """Without the constraint the decision for c.w + mu |w - center|^2 is at the distance |c|_* / (2 mu)."""
        data = self._data(C.shape[1])
        size, m = self._support(C, data)
        free = size < 2.0 * mu * data.radius
        norm = np.where(free, size / (2.0 * mu or 1.0), data.radius)
        # The derivative of m is that of the gradient of |c|_*; the constraint, if it is active, keeps |m| = 1.
        p = data.q / (data.q - 1.0)
        factor = np.sqrt(np.where(free, p - 2.0, p - 1.0)) * m
        exists = size > np.sqrt(np.finfo(float).tiny)  # else squares would overflow
        scale = np.where(free, 0.5 / (mu or 1.0), np.where(exists, data.radius / np.where(exists, size, 1.0), 0.0))
        base = self._second_derivative(m, data)
        return SmoothedDecisions(data.center - norm * m, norm[:, 0] ** 2, scale[:, 0], base, (factor,))

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Shrink towards the center until inside."""
        data = self._data(W.shape[1])
        size = self._norm(W - data.center, data) / data.radius
        # center + (W - center) would move points that are already inside by a rounding error.
        return np.where(size > 1.0, data.center + (W - data.center) / np.maximum(size, 1.0), W)


class L1Ball(_Ball):
    r"""Cross-polytope :math:`\{\lVert w\rVert_1 \le r\}`: spend a budget on one of d coordinates, with either sign.

    The optimal decision has the entry :math:`-r \operatorname{sign}(c_j)` for the largest :math:`\lvert c_j\rvert`, of
    several the first one.  A zero counts as a positive cost, so that every decision is a vertex.

    Parameters
    ----------
    radius : float, default=1.0
        Radius r of the ball, positive.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Examples
    --------
    >>> from skspo import L1Ball
    >>> L1Ball(2.0).argmin([[1.0, -3.0, 2.0]])
    array([[0., 2., 0.]])
    """

    def __init__(self, radius: float = 1.0, *, sense: str = "min", cost_bounds: CostBounds = None) -> None:
        self.radius = radius
        self.sense = sense
        self.cost_bounds = cost_bounds

    def _prepare(self, d: int) -> float:
        return read_positive(f"{type(self).__name__}: radius", self.radius)

    def _argmin(self, C: np.ndarray, data: float) -> np.ndarray:
        rows, best = np.arange(C.shape[0]), np.abs(C).argmax(axis=1)
        W = np.zeros_like(C)
        W[rows, best] = np.where(C[rows, best] < 0, data, -data)
        return W

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        radius = self._data(C.shape[1])
        largest = np.abs(C).max(axis=1, keepdims=True)
        # The optimal face has the vertices -sign(c_j) e_j of the tied j; under C_true they cost -sign(c_j) c_true_j.
        cost = np.where(np.abs(C) == largest, -np.sign(C) * C_true, -np.inf)
        rows, worst = np.arange(C.shape[0]), cost.argmax(axis=1)
        W = np.zeros_like(C)
        W[rows, worst] = np.where(C[rows, worst] < 0, radius, -radius)
        # For zero costs the whole ball is optimal.
        return np.where(largest == 0, self._argmin(-C_true, radius), W)

    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """Return {u >= 0, sum u = radius} with u = (w+, w-, slack) and w = w+ - w-."""
        d = self.resolve_dim(n_dim)
        radius = self._data(d)
        eye = sp.eye_array(d, format="csr")
        return StandardForm(
            sp.csr_array(np.ones((1, 2 * d + 1))),
            np.array([radius]),
            np.zeros(2 * d + 1),
            np.full(2 * d + 1, np.inf),
            sp.csr_array(sp.hstack([eye, -eye, sp.csr_array((d, 1))])),
        )

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of radius max_j |v_j|: t >= v_j and t >= -v_j for all j."""
        import cvxpy as cp

        n, d = V.shape
        t = cp.Variable(n)
        T = cp.outer(t, np.ones(d))
        return self._data(d) * t, [T >= V, T >= -V]

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Shrink towards the center until the norm is at most the radius."""
        size = np.abs(W).sum(axis=1, keepdims=True) / self._data(W.shape[1])
        return W / np.maximum(size, 1.0)


class _LqData(NamedTuple):
    q: float
    radius: float
    center: float = 0.0


class LqBall(_RoundBall):
    r"""Ball :math:`\{\lVert w\rVert_q \le r\}` with :math:`1 < q \le 2`, a strongly convex set.

    The optimal decision is the Hölder dual of the cost: :math:`w_j` is proportional to
    :math:`-\operatorname{sign}(c_j) \lvert c_j\rvert^{1/(q-1)}`.  It is unique unless the cost is zero; then it is the
    center.

    Parameters
    ----------
    q : float, default=2.0
        Exponent of the norm, above 1 and at most 2.
    radius : float, default=1.0
        Radius r of the ball, positive.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Examples
    --------
    >>> from skspo import LqBall
    >>> LqBall().argmin([[3.0, -4.0]])
    array([[-0.6,  0.8]])
    """

    def __init__(
        self, q: float = 2.0, radius: float = 1.0, *, sense: str = "min", cost_bounds: CostBounds = None
    ) -> None:
        self.q = q
        self.radius = radius
        self.sense = sense
        self.cost_bounds = cost_bounds

    def _prepare(self, d: int) -> _LqData:
        q = read_number(self.q)
        if not 1.0 < q <= 2.0:
            raise ValueError(
                f"LqBall: q must be above 1 and at most 2, got {shown(self.q)}. For q = 1 use L1Ball, for q = inf "
                "use Box."
            )
        return _LqData(q, read_positive(f"{type(self).__name__}: radius", self.radius))

    def _support(self, C: np.ndarray, data: _LqData) -> tuple[np.ndarray, np.ndarray]:
        p, (unit, largest) = data.q / (data.q - 1.0), _unit_scale(C)
        length = np.linalg.norm(unit, ord=p, axis=1, keepdims=True)
        unit = unit / np.where(length > 0, length, 1.0)
        return length * largest, unit if p == 2.0 else np.sign(unit) * np.abs(unit) ** (p - 1.0)

    def _second_derivative(self, m: np.ndarray, data: _LqData) -> np.ndarray:
        p = data.q / (data.q - 1.0)
        return (p - 1.0) * np.abs(m) ** ((p - 2.0) / (p - 1.0))

    def _norm(self, step: np.ndarray, data: _LqData) -> np.ndarray:
        unit, largest = _unit_scale(step)
        return np.linalg.norm(unit, ord=data.q, axis=1, keepdims=True) * largest

    def strong_convexity(self, n_dim: int | None = None) -> StrongConvexity:
        r"""Return the constants of :math:`\lVert w\rVert_q^2`, at most :math:`r^2` on the ball.

        The function is :math:`2 (q - 1)`-strongly convex in the q-norm, hence in the smaller 2-norm.  It is smooth only
        for :math:`q = 2`; for :math:`q < 2` its curvature is unbounded where a coordinate vanishes, and L is
        infinite.
        """
        d = self.resolve_dim(n_dim)
        q, radius, _ = self._data(d)
        if d == 1:  # all norms are the absolute value
            q = 2.0
        return StrongConvexity(2.0 * (q - 1.0), 2.0 if q == 2.0 else np.inf, radius**2, 0.0)

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of radius |v|_q*: a second-order cone for q = 2, else |v_j| <= s_j^(1/q*) t^(1/q), sum s = t."""
        import cvxpy as cp

        n, d = V.shape
        q, radius, _ = self._data(d)
        t = cp.Variable(n)
        if q == 2.0:
            return radius * t, [cp.SOC(t, V, axis=1)]
        S = cp.Variable((n, d))
        T = cp.outer(t, np.ones(d))
        return radius * t, [cp.PowCone3D(S, T, V, np.full((n, d), 1.0 - 1.0 / q)), cp.sum(S, axis=1) == t]


class _EllipsoidData(NamedTuple):
    """Cholesky factor of Q, its inverse (both None for the identity) and the extreme eigenvalues of Q."""

    factor: np.ndarray | None  # lower triangular L with Q = L L^T
    inverse: np.ndarray | None  # L^-1
    eigenvalues: tuple[float, float]  # smallest, largest
    center: np.ndarray
    radius: float

    @property
    def q(self) -> float:
        """In other coordinates it is a ball in the 2-norm."""
        return 2.0


class Ellipsoid(_RoundBall):
    r"""Ellipsoid :math:`\{(w - m)^\top Q (w - m) \le r^2\}`, a strongly convex set.

    The optimal decision is :math:`m - r \, Q^{-1} c / \sqrt{c^\top Q^{-1} c}`.  It is unique unless the cost is zero;
    then it is the center.

    Parameters
    ----------
    Q : array-like of shape (d, d), default=None
        Symmetric positive definite matrix.  None means the identity.
    center : array-like of shape (d,), default=None
        Center m.  None means the origin; with ``Q=None`` as well the region exists in every dimension.
    radius : float, default=1.0
        Radius r in the norm of ``Q``, positive.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> Ellipsoid([[1.0, 0.0], [0.0, 4.0]], center=[1.0, 1.0]).argmin([[0.0, 3.0], [2.0, 0.0]])
    array([[1. , 0.5],
           [0. , 1. ]])
    """

    def __init__(
        self,
        Q: ArrayLike | None = None,
        center: ArrayLike | None = None,
        radius: float = 1.0,
        *,
        sense: str = "min",
        cost_bounds: CostBounds = None,
    ) -> None:
        self.Q = Q
        self.center = center
        self.radius = radius
        self.sense = sense
        self.cost_bounds = cost_bounds

    @property
    def n_dim(self) -> int | None:
        """Size of Q or of the center; None if both are None."""
        if self.Q is not None:
            shape = np.shape(self.Q)
            return shape[0] if shape else 1
        return None if self.center is None else int(np.size(self.center))

    def _prepare(self, d: int) -> _EllipsoidData:
        radius = read_positive(f"{type(self).__name__}: radius", self.radius)
        center = np.zeros(d) if self.center is None else read_numbers("Ellipsoid: center", self.center)
        if center.shape != (d,):
            raise ValueError(
                f"Ellipsoid: center must have shape ({d},), one entry per decision variable; got shape {center.shape}."
            )
        if not np.isfinite(center).all():
            raise ValueError(f"Ellipsoid: center must be finite, got {center}.")
        if self.Q is None:
            return _EllipsoidData(None, None, (1.0, 1.0), center, radius)
        Q = read_symmetric("Ellipsoid: Q", self.Q, d)
        values = np.linalg.eigvalsh(Q)
        # Below this the Cholesky factor is dominated by rounding errors.
        if values[0] <= d * np.finfo(float).eps * abs(values[-1]):
            raise UnboundedRegionError(
                f"Ellipsoid: Q must be positive definite, otherwise the region is unbounded; its smallest eigenvalue "
                f"is {values[0]:.3g}."
            )
        factor = np.linalg.cholesky(Q)
        return _EllipsoidData(factor, dtrtri(factor, lower=1)[0], (float(values[0]), float(values[-1])), center, radius)

    def _support(self, C: np.ndarray, data: _EllipsoidData) -> tuple[np.ndarray, np.ndarray]:
        unit, largest = _unit_scale(C)
        # One product per row, so that rounding in a row does not depend on the other rows.  A triangular solve for
        # all rows is slower: it waits for its threads, 10 ms per call on a busy machine.
        half = unit if data.inverse is None else (unit[:, None, :] @ data.inverse.T)[:, 0]
        length = np.linalg.norm(half, axis=1, keepdims=True)
        half = half / np.where(length > 0, length, 1.0)
        return length * largest, half if data.inverse is None else (half[:, None, :] @ data.inverse)[:, 0]

    def _second_derivative(self, m: np.ndarray, data: _EllipsoidData) -> np.ndarray:
        return np.ones_like(m) if data.inverse is None else (data.inverse.T @ data.inverse)[None]

    def _norm(self, step: np.ndarray, data: _EllipsoidData) -> np.ndarray:
        return np.linalg.norm(step if data.factor is None else step @ data.factor, axis=1, keepdims=True)

    def strong_convexity(self, n_dim: int | None = None) -> StrongConvexity:
        r"""Return the constants of :math:`(w - m)^\top Q (w - m)`: twice the extreme eigenvalues of Q."""
        data = self._data(self.resolve_dim(n_dim))
        return StrongConvexity(2.0 * data.eigenvalues[0], 2.0 * data.eigenvalues[1], data.radius**2, 0.0)

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of center.v + radius |L^-1 v|_2."""
        import cvxpy as cp

        n, d = V.shape
        data = self._data(d)
        t = cp.Variable(n)
        V_scaled = V if data.inverse is None else V @ data.inverse.T
        return V @ data.center + data.radius * t, [cp.SOC(t, V_scaled, axis=1)]
