"""Level sets of strongly convex functions; those of barriers on the simplex: EntropySimplex, LogBarrierSimplex.

``_oracles/level_sets.py`` computes the decisions of the latter; its docstring has the conventions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.utils.metaestimators import available_if

from .._utils.errors import InfeasibleRegionError
from .._utils.shown import shown
from ._cost_bounds import CostBounds
from ._oracles.level_sets import (
    entropy_argmin,
    entropy_value,
    log_barrier_argmin,
    log_barrier_free,
    log_barrier_value,
    mix_until_feasible,
    softmax,
    unit_costs,
)
from .base import Region, Smoothed, StrongConvexity
from .capabilities import Memory
from .polyhedron import read_number

if TYPE_CHECKING:
    import cvxpy as cp


class SmoothedDecisions(NamedTuple):
    """Decisions for c.w + mu (f(w) - f_min), and minus their derivative in c: scale (base - sum of factor factor^T)."""

    W: np.ndarray  # (n, d)
    level: np.ndarray  # (n,) f(w) - f_min
    scale: np.ndarray  # (n,)
    base: np.ndarray  # (n, d) diagonals, or (1, d, d) one matrix for all rows
    factors: tuple[np.ndarray, ...]  # of shape (n, d)

    def matrix(self) -> np.ndarray:
        """Minus the derivative of each row, (n, d, d)."""
        M = np.zeros((*self.W.shape, self.W.shape[1]))
        if self.base.ndim == 2:
            np.einsum("ijj->ij", M)[:] = self.base
        else:
            M += self.base
        for factor in self.factors:
            M -= factor[:, :, None] * factor[:, None, :]
        return self.scale[:, None, None] * M

    def times(self, X: np.ndarray) -> np.ndarray:
        """Minus the derivative along each row of ``X``."""
        moved = self.base * X if self.base.ndim == 2 else X @ self.base[0]
        for factor in self.factors:
            moved = moved - factor * np.einsum("ij,ij->i", factor, X)[:, None]
        return self.scale[:, None] * moved


class LevelSet(Region):
    r"""Base class of level sets :math:`\{w : f(w) \le r\}` of strictly convex functions, which have no flat faces."""

    def _smooth(self, C: np.ndarray, mu: float, memory: Memory) -> SmoothedDecisions:
        """Minimize c.w + mu f(w); without ``mu`` the derivative is zero where it does not exist."""
        raise NotImplementedError

    def _indifferent(self, C: np.ndarray) -> np.ndarray:
        """Rows of costs for which all decisions are optimal, shape (n, 1)."""
        return (C == 0).all(axis=1, keepdims=True)

    def smoothed(self, C: np.ndarray, mu: float, memory: Memory | None = None, curvature: bool = False) -> Smoothed:
        """Minimize c.w + mu f(w) over the region (costs are minimized)."""
        found = self._smooth(C, mu, {} if memory is None else memory)
        return Smoothed(found.W, found.level, found.matrix() if curvature else None)

    def derivative(self, C: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Derivative of the decisions at costs ``C`` (both minimized), zero where there is none."""
        return -self._smooth(C, 0.0, {}).times(direction)

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        return self.solve_min(np.where(self._indifferent(C), -C_true, C))


def _check_threshold(region: _SimplexLevelSet, d: int, lowest: float, name: str) -> float:
    """Return the given threshold if it is a number above ``lowest``, the value of f at the uniform point."""
    given = region.threshold
    r = read_number(given)
    if not np.isfinite(r):
        raise ValueError(f"{type(region).__name__}: threshold must be a finite number or None, got {shown(given)}.")
    # With one alternative the region is the point w = 1.
    if r < lowest if d == 1 else r <= lowest:
        raise InfeasibleRegionError(
            f"{type(region).__name__}: the region is empty or a single point, threshold must be above {name} = "
            f"{lowest:.6g} for d = {d} decision variables, got {shown(given)}."
        )
    return r


class _SimplexLevelSet(LevelSet):
    """Base class of the two level sets, which lie in {sum w = 1} and are symmetric in the coordinates."""

    #: oracle and function f
    _solve: Callable[[np.ndarray, float, np.ndarray | None], tuple[np.ndarray, np.ndarray, int]]
    _value: Callable[[np.ndarray], np.ndarray]

    #: the second derivative of f in a weight is w^-power
    _power: float

    def __init__(self, threshold: float | None = None, *, sense: str = "min", cost_bounds: CostBounds = None) -> None:
        self.threshold = threshold
        self.sense = sense
        self.cost_bounds = cost_bounds

    def _argmin_again(self, C: np.ndarray, data: float, memory: Memory) -> np.ndarray:
        W, memory["root"], _ = self._solve(C, data, memory.get("root"))
        return W

    def _indifferent(self, C: np.ndarray) -> np.ndarray:
        return (C == C[:, :1]).all(axis=1, keepdims=True)

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Clip, normalize, and mix with the uniform point until the decision is feasible."""
        return mix_until_feasible(W, self._value, self._data(W.shape[1]))

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """One row, (1, ..., 1) / sqrt(d): the decisions of a level set sum to one."""
        d = self.resolve_dim(n_dim)
        self._data(d)
        return np.eye(1) if d == 1 else np.full((1, d), 1.0 / np.sqrt(d))

    def _f_min(self, d: int) -> float:
        raise NotImplementedError

    def strong_convexity(self, n_dim: int | None = None) -> StrongConvexity:
        r"""Return the constants of f, whose second derivative is a power of each weight.

        L is infinite if decisions may have zeros: for the entropy with a threshold of at least :math:`-\log(d - 1)`.
        """
        d = self.resolve_dim(n_dim)
        r = self._data(d)
        with np.errstate(divide="ignore", over="ignore"):
            L, mu = np.array(self._extremes(d)) ** -self._power
        return StrongConvexity(float(mu), float(L), r, self._f_min(d))

    def _floor(self, a: float, rest: float, d: int) -> float:
        """Smallest f with one coordinate ``a``, the others, which are equal then, adding up to ``rest``."""
        return float(self._value(np.append(a, np.full(d - 1, rest / (d - 1.0)))[None])[0])

    def _extremes(self, d: int) -> tuple[float, float]:
        """Smallest and largest coordinate of any decision; the other coordinates are then equal."""
        r = self._data(d)
        if d == 1:
            return 1.0, 1.0

        def excess(x: float) -> float:
            return self._floor(float(expit(x)), float(expit(-x)), d) - r

        # f increases from the uniform point on, in both directions.
        equal = -np.log(d - 1.0)
        smallest, largest = (
            expit(brentq(excess, *sorted((equal, x)), xtol=1e-14)) if excess(x) > 0 else limit
            for x, limit in ((-700.0, 0.0), (700.0, 1.0))
        )
        return float(smallest), float(largest)


def _below_zero(region: EntropySimplex) -> bool:
    """Whether the entropy constraint can be active; ``_prepare`` checks thresholds that are not numbers."""
    threshold = region.threshold
    return not isinstance(threshold, (int, float, np.number)) or bool(threshold < 0)


class EntropySimplex(_SimplexLevelSet):
    r"""Entropy-constrained simplex: a diversified portfolio.

    .. math:: \{w \ge 0, \; \sum_j w_j = 1, \; \sum_j w_j \log w_j \le r\}

    The optimal decision is a softmax of the negated costs, at the temperature for which the constraint is active.

    Parameters
    ----------
    threshold : float, default=None
        The number r, above :math:`-\log d`, for which only the uniform portfolio is feasible, and at most 0, for which
        the constraint is inactive and the region is the whole simplex.  None means the midpoint of :math:`-\log d` and
        :math:`-\log(d - 1)`: below :math:`-\log(d - 1)` no decision has a zero, the entropy is smooth on the region and
        the paper's theory holds.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Notes
    -----
    The optimal decision is unique unless the constraint is inactive: m lowest costs are equal and
    :math:`r \ge -\log m`.  Then every feasible portfolio of those m alternatives is optimal, and ``argmin`` returns
    the uniform one, as it does for constant costs.

    Examples
    --------
    >>> from skspo import EntropySimplex
    >>> EntropySimplex(threshold=-0.9).argmin([[1.0, 2.0, 3.0]]).round(3)
    array([[0.617, 0.267, 0.116]])
    """

    _solve = staticmethod(entropy_argmin)
    _value = staticmethod(entropy_value)
    _power = 1.0

    def _prepare(self, d: int) -> float:
        if self.threshold is None:
            return 0.0 if d == 1 else -0.5 * (np.log(d) + np.log(d - 1.0))
        r = _check_threshold(self, d, -np.log(d) + 0.0, "-log d")
        if r > 0.0:
            raise ValueError(
                f"EntropySimplex: threshold must be at most 0, where the constraint is already inactive, "
                f"got {shown(self.threshold)}. For the whole simplex use Simplex()."
            )
        return r

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        r = self._data(C.shape[1])
        W, beta, _ = entropy_argmin(C, r)
        # Where the constraint is inactive the optimal face is a smaller region of the same kind.
        for i in np.flatnonzero((beta == 0.0) | np.isinf(beta)):
            tied = C[i] == C[i].min()
            W[i, tied] = entropy_argmin(-C_true[i : i + 1, tied], r)[0][0]
        return W

    def _f_min(self, d: int) -> float:
        return -np.log(d) + 0.0

    # With a threshold of 0 the region is a polytope.
    derivative = available_if(_below_zero)(LevelSet.derivative)
    smoothed = available_if(_below_zero)(LevelSet.smoothed)
    strong_convexity = available_if(_below_zero)(_SimplexLevelSet.strong_convexity)

    def _smooth(self, C: np.ndarray, mu: float, memory: Memory) -> SmoothedDecisions:
        """With t the temperature of ``argmin``, the decision is the softmax at the larger of t and mu."""
        d = C.shape[1]
        W, beta, _ = entropy_argmin(C, self._data(d), memory.get("root"))
        memory["root"] = beta
        G, extent = unit_costs(C)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(beta > 0, extent / beta, 0.0)
        free = t < mu  # the constraint is inactive
        t = np.maximum(t, mu)
        scale = np.where(t > 0, 1.0 / np.where(t > 0, t, 1.0), 0.0)
        P = softmax(G * (extent * scale)[:, None])
        W[free] = P[free]
        # Use P, not W, which was moved by a rounding error to be feasible: if the lowest costs are nearly tied, weights
        # of 1e-16 on all others would dominate the variance.
        spread = G - np.einsum("ij,ij->i", P, G)[:, None]
        variance = np.einsum("ij,ij,ij->i", P, spread, spread)
        variance = np.where(free | (variance <= 0), np.inf, variance)
        factors = P, P * (spread / np.sqrt(variance)[:, None])
        return SmoothedDecisions(W, entropy_value(W) + np.log(d), scale, P, factors)

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of min over u >= 0 of u log sum_j exp(v_j / u) + u threshold.

        With s for the first term: u exp((v_j - s) / u) <= e_j and sum_j e_j <= u, an exponential cone per entry.
        """
        import cvxpy as cp

        n, d = V.shape
        r = self._data(d)
        s, u, E = cp.Variable(n), cp.Variable(n), cp.Variable((n, d))
        S, U = cp.outer(s, np.ones(d)), cp.outer(u, np.ones(d))
        return s + r * u, [cp.ExpCone(V - S, U, E), cp.sum(E, axis=1) <= u]


class LogBarrierSimplex(_SimplexLevelSet):
    r"""Simplex with a logarithmic barrier: every alternative gets a share.

    .. math:: \{w > 0, \; \sum_j w_j = 1, \; -\sum_j \log w_j \le r\}

    The optimal decision is proportional to :math:`1 / (c_j + \nu)`, with the shift for which the constraint is active.

    Parameters
    ----------
    threshold : float, default=None
        The number r, above :math:`d \log d`, for which only the uniform point is feasible.  None means twice that, as
        in the paper.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Notes
    -----
    The optimal decision is unique unless the cost is constant; then it is the uniform point.

    Examples
    --------
    >>> from skspo import LogBarrierSimplex
    >>> LogBarrierSimplex(threshold=4.0).argmin([[1.0, 2.0, 3.0]]).round(3)
    array([[0.654, 0.216, 0.129]])
    """

    _solve = staticmethod(log_barrier_argmin)
    _value = staticmethod(log_barrier_value)
    _power = 2.0

    def _prepare(self, d: int) -> float:
        if self.threshold is None:
            return 2.0 * d * np.log(d)
        return _check_threshold(self, d, d * np.log(d), "d log d")

    def _smooth(self, C: np.ndarray, mu: float, memory: Memory) -> SmoothedDecisions:
        """The decision is s / (c + nu) with s the larger of mu and the multiplier t of the constraint in ``argmin``."""
        d = C.shape[1]
        W, nu, _ = log_barrier_argmin(C, self._data(d), memory.get("root"))
        memory["root"] = nu
        G, extent = unit_costs(C)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(extent > 0, extent / (1.0 / (G + nu[:, None])).sum(axis=1), 0.0)
        free = t < mu  # the constraint is inactive
        W[free] = log_barrier_free(G[free] * extent[free, None], mu)
        t = np.maximum(t, mu)
        square = W * W
        total = square.sum(axis=1, keepdims=True)
        # The gradient -1 / w of f, in the metric w^2 and made to sum to zero, has the squared length d - 1 / sum w^2.
        size = d - 1.0 / total
        size = np.where(free[:, None] | (size <= 0), np.inf, size)
        factors = square / np.sqrt(total), (W - square / total) / np.sqrt(size)
        scale = np.where(t > 0, 1.0 / np.where(t > 0, t, 1.0), 0.0)
        return SmoothedDecisions(W, log_barrier_value(W) - d * np.log(d), scale, square, factors)

    def _f_min(self, d: int) -> float:
        return d * np.log(d)

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of min over u >= 0 and s of s + (threshold - d) u + sum_j u log(u / (s - v_j)).

        This is the Lagrangian dual, with s for sum w = 1 and u for the barrier; the best w_j is u / (s - v_j).  With
        k_j for a term of the sum: u exp(-k_j / u) <= s - v_j, an exponential cone per entry.
        """
        import cvxpy as cp

        n, d = V.shape
        r = self._data(d)
        s, u, K = cp.Variable(n), cp.Variable(n), cp.Variable((n, d))
        S, U = cp.outer(s, np.ones(d)), cp.outer(u, np.ones(d))
        return s + (r - d) * u + cp.sum(K, axis=1), [cp.ExpCone(-K, U, S - V)]
