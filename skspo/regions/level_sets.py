"""Level sets of barrier functions on the unit simplex: EntropySimplex, LogBarrierSimplex.

Conventions
-----------
    entropy        f(w) = sum_j w_j log w_j     f_min = -log d     w*(c) = softmax(-beta c)
    log barrier    f(w) = -sum_j log w_j        f_min = d log d    w*(c) proportional to 1 / (c_j + nu)

beta and nu solve f(w*) = threshold, one number per row.  Both problems are invariant to c -> a c + b with a > 0, so
every row is first mapped to G in [0, 1] with minimum 0 and maximum 1, and beta and nu refer to G:

    beta -> 0 and nu -> inf     the uniform point, f = f_min
    beta -> inf and nu -> 0     all weight on the lowest cost

Newton's method runs on a transform of f that is nearly linear at both ends, inside a bracket, on unfinished rows only.
Since f is convex and the uniform point has f_min, what rounding leaves above the threshold is removed exactly by
mixing with the uniform point: f((1 - t) w + t/d) <= (1 - t) f(w) + t f_min.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlogy
from sklearn.utils.metaestimators import available_if

from .base import CertifiedFloat, Region, Smoothed, StrongConvexity, directions_of

# Rows are solved in blocks whose exponentials stay in the processor's cache.
_BLOCK = 1 << 17
_MAX_ITER = 200
# Relative accuracy of the root.  Newton's last step squares it, and the value of a decision depends on it linearly.
_RTOL = 1e-10
_EPS = float(np.finfo(float).eps)


def _normalise(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Map each row to [0, 1]; also say which rows are constant (they are returned as zeros)."""
    # Halving first, so that the range of the largest floating-point numbers is finite.
    G = 0.5 * C
    G -= G.min(axis=1, keepdims=True)
    extent = G.max(axis=1, keepdims=True)
    constant = extent[:, 0] == 0
    G /= np.where(extent == 0, 1.0, extent)
    return G, constant


def _bracketed(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Keep Newton's points if inside the bracket; otherwise its geometric middle, or a jump while there is no end."""
    with np.errstate(over="ignore", invalid="ignore"):
        open_end = np.isinf(high)
        middle = np.where(open_end, 8.0 * low, np.sqrt(low) * np.sqrt(high))
        return np.where((x > low) & (x < np.where(open_end, 1e3 * low, high)), x, middle)


def _newton(
    evaluate: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
    x: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> int:
    """Find the roots ``x`` in place.

    ``evaluate(rows, x)`` returns the residual (increasing in x), Newton's next point, and which rows are done.
    """
    rows = np.arange(x.size)
    n_iter = 0
    while rows.size and n_iter < _MAX_ITER:
        n_iter += 1
        residual, newton, done = evaluate(rows, x[rows])
        below = residual < 0
        low[rows] = np.where(below, x[rows], low[rows])
        high[rows] = np.where(below, high[rows], x[rows])
        todo = ~(done | (high[rows] <= (1.0 + 4 * _EPS) * low[rows]))
        rows, newton = rows[todo], newton[todo]
        x[rows] = _bracketed(newton, low[rows], high[rows])
    return n_iter


def _in_blocks(
    solve: Callable[..., tuple[np.ndarray, np.ndarray, int]], C: np.ndarray, threshold: float, init: Any
) -> tuple[np.ndarray, np.ndarray, int]:
    """Solve block by block; the number of iterations is the largest one."""
    n, d = C.shape
    step = max(_BLOCK // max(d, 1), 1)
    W, root, n_iter = np.empty((n, d)), np.empty(n), 0
    for i in range(0, n, step):
        block = slice(i, i + step)
        W[block], root[block], k = solve(C[block], threshold, None if init is None else init[block])
        n_iter = max(n_iter, k)
    return W, root, n_iter


# -- entropy -----------------------------------------------------------------------------------------------------------


def entropy_value(W: np.ndarray) -> np.ndarray:
    """Sum of w log w for each row, with 0 log 0 = 0."""
    return xlogy(W, W).sum(axis=1)


def entropy_argmin(
    C: np.ndarray, threshold: float, beta_init: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Minimise each row of costs over {w >= 0, sum w = 1, sum w log w <= threshold}.

    Parameters
    ----------
    C : ndarray of shape (n, d)
        Costs, of any scale.
    threshold : float
        At least ``-log d``.
    beta_init : ndarray of shape (n,), default=None
        Initial inverse temperatures, for instance those of similar costs; entries that are not finite and positive are
        replaced by the default, a second-order expansion at the uniform point.

    Returns
    -------
    W : ndarray of shape (n, d)
        ``softmax(-beta G)`` with G the costs of a row mapped to [0, 1].
    beta : ndarray of shape (n,)
        Inverse temperatures: 0 where the cost is constant, infinite where the constraint is inactive.
    n_iter : int
        Iterations of Newton's method that the slowest row needed.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo.regions.level_sets import entropy_argmin
    >>> W, beta, n_iter = entropy_argmin(np.array([[1.0, 2.0, 3.0]]), -0.9)
    >>> W.round(3)
    array([[0.617, 0.267, 0.116]])
    """
    return _in_blocks(_entropy_block, C, threshold, beta_init)


def _entropy_block(C: np.ndarray, r: float, init: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, int]:
    n, d = C.shape
    G, constant = _normalise(C)
    tied = G == 0.0
    ceiling = -np.log(tied.sum(axis=1))  # sup of f over all beta: the uniform distribution on the m lowest costs
    beta = np.zeros(n)
    W = np.full((n, d), 1.0 / d)
    gain = r + np.log(d)
    if gain <= 0.0:
        return W, beta, 0
    loose = ~constant & (ceiling <= r)
    if loose.any():
        W[loose] = tied[loose] / tied[loose].sum(axis=1, keepdims=True)
        beta[loose] = np.inf
    active = np.flatnonzero(~constant & ~loose)
    if active.size == 0:
        return W, beta, 0
    if active.size < n:
        G, ceiling = G[active], ceiling[active]

    # G has variance at most 1/4 under any distribution and df/dbeta = beta var, so f <= -log d + beta^2 / 8.
    low = np.full(active.size, np.sqrt(8.0 * gain) * (1.0 - 1e-12))
    high = np.full(active.size, np.inf)
    x = np.maximum(np.sqrt(2.0 * gain / G.var(axis=1)), low)
    if init is not None:
        given = init[active]
        x = np.where(np.isfinite(given) & (given > 0), np.maximum(given, low), x)
    target = np.log(gain) - np.log(ceiling - r)
    # The transform below is linear in log beta for tight thresholds and linear in beta for loose ones.
    tight = gain < 0.3 * (ceiling + np.log(d))
    noise = 8.0 * _EPS * np.log(d)

    def evaluate(rows: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        g = G if rows.size == G.shape[0] else G[rows]
        E = np.exp(-b[:, None] * g)
        Z = E.sum(axis=1)
        E *= g
        mean = E.sum(axis=1) / Z
        var = np.einsum("ij,ij->i", E, g) / Z - mean**2
        f = -b * mean - np.log(Z)
        # The logit of f between its two limits.
        above, under = np.maximum(f + np.log(d), 1e-300), np.maximum(ceiling[rows] - f, 1e-300)
        residual = np.log(above) - np.log(under) - target[rows]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            slope = b * np.maximum(var, 0.0) * (1.0 / above + 1.0 / under)
            step = residual / slope
            newton = np.where(tight[rows], b * np.exp(np.clip(-step / b, -3.0, 3.0)), b - step)
        done = (np.abs(residual) <= _RTOL) | (np.abs(f - r) <= noise)
        return residual, newton, done

    n_iter = _newton(evaluate, x, low, high)
    # exp(-beta g) is at most 1 and its largest entry is 1: nothing overflows, and the sum is at least 1.
    P = np.exp(-x[:, None] * G)
    P /= P.sum(axis=1, keepdims=True)
    W[active] = _nudge(P, entropy_value(P), r, -np.log(d))
    beta[active] = x
    return W, beta, n_iter


def _nudge(W: np.ndarray, f: np.ndarray, r: float, f_min: float) -> np.ndarray:
    """Mix with the uniform point as much as convexity says suffices for f <= r."""
    excess = f - r
    if (excess <= 0.0).all():
        return W
    t = np.where(excess > 0.0, excess / np.maximum(f - f_min, excess), 0.0)[:, None]
    return W + t * (1.0 / W.shape[1] - W)


# -- log barrier -------------------------------------------------------------------------------------------------------


def log_barrier_value(W: np.ndarray) -> np.ndarray:
    """Minus the sum of log w for each row; infinite on the boundary."""
    with np.errstate(divide="ignore"):
        return -np.log(W).sum(axis=1)


def log_barrier_argmin(
    C: np.ndarray, threshold: float, nu_init: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Minimise each row of costs over {w > 0, sum w = 1, -sum log w <= threshold}.

    Parameters
    ----------
    C : ndarray of shape (n, d)
        Costs, of any scale.
    threshold : float
        At least ``d log d``.
    nu_init : ndarray of shape (n,), default=None
        Initial shifts, for instance those of similar costs; entries that are not finite and positive are replaced by
        the default, an expansion at the uniform point or at the vertex.

    Returns
    -------
    W : ndarray of shape (n, d)
        Proportional to ``1 / (G + nu)`` with G the costs of a row mapped to [0, 1].
    nu : ndarray of shape (n,)
        Shifts; infinite where the cost is constant.
    n_iter : int
        Iterations of Newton's method that the slowest row needed.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo.regions.level_sets import log_barrier_argmin
    >>> W, nu, n_iter = log_barrier_argmin(np.array([[1.0, 2.0, 3.0]]), 4.0)
    >>> W.round(3)
    array([[0.654, 0.216, 0.129]])
    """
    return _in_blocks(_log_barrier_block, C, threshold, nu_init)


def _log_barrier_block(C: np.ndarray, r: float, init: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, int]:
    n, d = C.shape
    G, constant = _normalise(C)
    nu = np.full(n, np.inf)
    W = np.full((n, d), 1.0 / d)
    f_min = d * np.log(d)
    gain = (r - f_min) / d
    active = np.flatnonzero(~constant)
    if gain <= 0.0 or active.size == 0:
        return W, nu, 0
    if active.size < n:
        G = G[active]

    # Towards the uniform point f - f_min ~ d var / (2 (nu + mean)^2); towards the vertex, with m lowest costs,
    # f - f_min ~ -(d - m) log nu + sum log g + d log(m / d).  The unknown is x = 1/nu, so that f increases in it.
    mean, var = G.mean(axis=1), G.var(axis=1)
    m = (G == 0.0).sum(axis=1)
    with np.errstate(divide="ignore", over="ignore"):
        log_g = np.log(np.where(G == 0.0, 1.0, G)).sum(axis=1)
        vertex = np.exp(np.minimum((r - f_min - log_g - d * np.log(m / d)) / (d - m), 690.0))
    nu_far = np.sqrt(var / (2.0 * gain)) - mean
    # Past this nu the weights are subnormal numbers; a larger f is out of reach, and so is a better decision.
    x_max = 1e290
    x = np.clip(np.where(nu_far > 0.3, 1.0 / np.maximum(nu_far, 0.3), vertex), 1e-290, x_max)
    if init is not None:
        given = init[active]
        with np.errstate(divide="ignore"):
            x = np.where(np.isfinite(given) & (given > 0), np.clip(1.0 / np.abs(given), 1e-290, x_max), x)
    # The ratio of two weights is at most 1 + x, so (f - f_min) / d <= log((2 + x)^2 / (4 (1 + x))) by Kantorovich.
    excess = np.expm1(min(gain, 300.0))
    low = np.full(active.size, 2.0 * (excess + np.sqrt(excess * (1.0 + excess))) * (1.0 - 1e-12))
    high = np.full(active.size, np.inf)
    x = np.clip(x, low, None)
    target = _log_expm1(np.array(gain))
    noise = 8.0 * _EPS * (np.log(d) + gain)

    def evaluate(rows: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        g = G if rows.size == G.shape[0] else G[rows]
        S = 1.0 + y[:, None] * g  # (g + nu) / nu
        logs = np.log(S).sum(axis=1)
        np.divide(1.0, S, out=S)
        s1 = S.mean(axis=1)
        s2 = np.einsum("ij,ij->i", S, S) / d
        e = logs / d + np.log(s1)  # (f - f_min) / d
        # log(exp(e) - 1) is log e near the uniform point and e near the vertex: linear in log y at both ends.
        residual = _log_expm1(np.maximum(e, 1e-300)) - target
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            slope = np.maximum(s2 - s1**2, 0.0) / s1 / -np.expm1(-np.maximum(e, 1e-300))  # d residual / d log y
            newton = y * np.exp(np.clip(-residual / slope, -20.0, 20.0))
        done = (np.abs(residual) <= _RTOL) | (np.abs(e - gain) <= noise) | ((y >= x_max) & (residual < 0))
        return residual, np.minimum(newton, x_max), done

    n_iter = _newton(evaluate, x, low, high)
    P = 1.0 / (1.0 + x[:, None] * G)
    P /= P.sum(axis=1, keepdims=True)
    W[active] = _nudge(P, log_barrier_value(P), r, f_min)
    nu[active] = 1.0 / x
    return W, nu, n_iter


def _log_expm1(e: np.ndarray) -> np.ndarray:
    """log(exp(e) - 1) without overflow."""
    return e + np.log(-np.expm1(-e))


def _log_barrier_free(G: np.ndarray, mu: float) -> np.ndarray:
    """Weights mu / (g + t) that sum to one, for rows with minimum 0."""
    t = np.full(G.shape[0], mu)  # the root lies between mu and d mu
    for _ in range(_MAX_ITER):
        S = 1.0 / (G + t[:, None])
        total = S.sum(axis=1)
        # Newton's method on 1 / total = mu, whose left side is concave: the points increase towards the root.
        step = (mu - 1.0 / total) * total**2 / np.einsum("ij,ij->i", S, S)
        t = t + step
        if (step <= 1e-14 * t).all():
            break
    S = 1.0 / (G + t[:, None])
    return S / S.sum(axis=1, keepdims=True)


def _from_lowest(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Costs of each row above its lowest, and the largest of them."""
    G = C - C.min(axis=1, keepdims=True)
    return G, G.max(axis=1)


def _softmax(G: np.ndarray) -> np.ndarray:
    """Weights proportional to exp(-g); the smallest g of a row is 0."""
    E = np.exp(-G)
    return E / E.sum(axis=1, keepdims=True)


def _diagonal_less(diagonal: np.ndarray, *factors: np.ndarray) -> np.ndarray:
    """diag(diagonal) less the outer products of the factors with themselves, for every row."""
    M = np.zeros((*diagonal.shape, diagonal.shape[1]))
    np.einsum("ijj->ij", M)[:] = diagonal
    for factor in factors:
        M -= factor[:, :, None] * factor[:, None, :]
    return M


# -- shared by both regions --------------------------------------------------------------------------------------------


def _mix_until_feasible(W: np.ndarray, value: Callable[[np.ndarray], np.ndarray], r: float) -> np.ndarray:
    """Clip, normalise, and mix with the uniform point just enough for f <= r; feasible rows stay as they are."""
    d = W.shape[1]
    clipped = np.maximum(W, 0.0)
    total = clipped.sum(axis=1, keepdims=True)
    # A sum of 1 up to rounding is left alone, so that repairing twice is repairing once.
    total = np.where(np.abs(total - 1.0) <= 4 * d * _EPS, 1.0, total)
    W = np.where(total > 0, clipped / np.where(total > 0, total, 1.0), 1.0 / d)
    f_high = value(W)
    bad = np.flatnonzero(f_high > r)
    if bad.size == 0:
        return W
    P, f_low = W[bad], f_high[bad]
    low, high = np.zeros(bad.size), np.ones(bad.size)  # low is infeasible, high feasible
    f_high = value(np.full((bad.size, d), 1.0 / d))
    for _ in range(60):
        # Where the chord crosses r a convex function is below r: always feasible, and often nearly tight.
        with np.errstate(invalid="ignore"):
            chord = high - (high - low) * (r - f_high) / (f_low - f_high)
        chord = np.where(np.isfinite(f_low), np.clip(chord, low, high), high)
        for t in (chord, 0.5 * (low + chord)):
            f = value(P + t[:, None] * (1.0 / d - P))
            inside = f <= r
            high, f_high = np.where(inside, t, high), np.where(inside, f, f_high)
            low, f_low = np.where(inside, low, t), np.where(inside, f_low, f)
        if (high - low <= 1e-12).all():
            break
    W[bad] = P + high[:, None] * (1.0 / d - P)
    return W


def _check_threshold(region: Region, d: int, lowest: float, name: str) -> float:
    """Return the given threshold if it is a number above ``lowest``, the value of f at the uniform point."""
    given = region.threshold  # type: ignore[attr-defined]
    try:
        r = float(given)
    except (TypeError, ValueError):
        r = np.nan
    if not np.isfinite(r):
        raise ValueError(f"{type(region).__name__}: threshold must be a finite number or None, got {given!r}.")
    # With one alternative the region is the point w = 1 whatever the threshold allows.
    if r < lowest if d == 1 else r <= lowest:
        raise ValueError(
            f"{type(region).__name__}: the region is empty or a single point, threshold must be above {name} = "
            f"{lowest:.6g} for d = {d} decision variables, got {given!r}."
        )
    return r


class _SimplexLevelSet(Region):
    """What the two level sets share: they lie in {sum w = 1} and are symmetric in the coordinates."""

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """One row, (1, ..., 1) / sqrt(d): the decisions of a level set sum to one."""
        d = self.resolve_dim(n_dim)
        self._data(d)
        return np.eye(1) if d == 1 else np.full((1, d), 1.0 / np.sqrt(d))

    def width(self, n_dim: int | None = None) -> CertifiedFloat:
        """0, because the region lies in a hyperplane."""
        self._data(self.resolve_dim(n_dim))
        return CertifiedFloat(0.0)

    def _extremes(self, d: int) -> tuple[float, float]:
        raise NotImplementedError

    def _gain(self, x: float, d: int) -> float:
        """Largest f - f_min at the distance (1 - x) / sqrt(d (d - 1)) from the uniform point, or a bound on it."""
        raise NotImplementedError

    def relative_width(self, n_dim: int | None = None) -> CertifiedFloat:
        """Lower bound on the smallest extent within {sum w = 1}: twice the radius of a ball; exact for d <= 2.

        Within (1 - x) / sqrt(d (d - 1)) of the uniform point u every d w_j is at least x.  f(w) - f(u) is a sum of
        phi(d w_j) with phi(1) = phi'(1) = 0 and phi'' decreasing, so phi(y) <= phi(x) (y - 1)^2 / (x - 1)^2 for y >= x:
        f - f_min is at most a multiple of phi(x), and the ball is inside as long as that is at most r - f_min.
        """
        d = self.resolve_dim(n_dim)
        depth = self._data(d) - self._f_min(d)
        smallest, largest = self._extremes(d)
        if d <= 2:
            return CertifiedFloat(0.0 if d == 1 else np.sqrt(2.0) * (largest - smallest))
        low = np.finfo(float).tiny
        x = low if self._gain(low, d) <= depth else brentq(lambda y: self._gain(y, d) - depth, low, 1.0, xtol=1e-15)
        # Not what the root finder says but a point where the inequality has been checked.
        while self._gain(x, d) > depth:
            x += 1e-12 * (1.0 - x)
        return CertifiedFloat(2.0 * (1.0 - x) / np.sqrt(d * (d - 1.0)), "lower bound")

    def _f_min(self, d: int) -> float:
        raise NotImplementedError


def _below_zero(region: Any) -> bool:
    """Whether the entropy constraint cuts anything off; a threshold that is not a number is an error elsewhere."""
    threshold = region.threshold
    return not isinstance(threshold, (int, float, np.number)) or bool(threshold < 0)


class EntropySimplex(_SimplexLevelSet):
    """Entropy-constrained simplex {w >= 0, sum w = 1, sum w log w <= threshold}: a diversified portfolio.

    The optimal decision is a softmax of the negated costs, at the one temperature that meets the threshold.

    Parameters
    ----------
    threshold : float, default=None
        Above ``-log d``, where only the uniform portfolio is left, and at most 0, where the constraint is inactive and
        the region is the whole simplex.  None means the midpoint of ``-log d`` and ``-log(d - 1)``: below
        ``-log(d - 1)`` no decision has a zero, the entropy is smooth on the region and the paper's theory holds.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.

    Notes
    -----
    The optimal decision is unique unless the constraint is inactive: m lowest costs are equal and
    ``threshold >= -log m``.  Then every portfolio of those m that meets the threshold is optimal, and ``argmin``
    returns the uniform one; so it does for a constant cost.

    Examples
    --------
    >>> from skspo import EntropySimplex
    >>> EntropySimplex(threshold=-0.9).argmin([[1.0, 2.0, 3.0]]).round(3)
    array([[0.617, 0.267, 0.116]])
    """

    def __init__(self, threshold: float | None = None, *, sense: str = "min") -> None:
        self.threshold = threshold
        self.sense = sense

    def _prepare(self, d: int) -> float:
        if self.threshold is None:
            return 0.0 if d == 1 else -0.5 * (np.log(d) + np.log(d - 1.0))
        r = _check_threshold(self, d, -np.log(d) + 0.0, "-log d")
        if r > 0.0:
            raise ValueError(
                f"EntropySimplex: threshold must be at most 0, where the constraint is already inactive, "
                f"got {self.threshold!r}. For the whole simplex use Simplex()."
            )
        return r

    def _argmin_again(self, C: np.ndarray, data: Any, memory: dict[str, Any]) -> np.ndarray:
        W, memory["root"], _ = entropy_argmin(C, data, memory.get("root"))
        return W

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimised)."""
        r = self._data(C.shape[1])
        W, beta, _ = entropy_argmin(C, r)
        # Where the constraint is inactive the optimal face is a smaller region of the same kind.
        for i in np.flatnonzero((beta == 0.0) | np.isinf(beta)):
            tied = C[i] == C[i].min()
            W[i, tied] = entropy_argmin(-C_true[i : i + 1, tied], r)[0][0]
        return W

    @available_if(_below_zero)
    def derivative(self, C: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Derivative of the decisions at costs ``C`` (both minimised); zero for constant costs, where there is none.

        With means and covariances under w = softmax(-beta c) it is
        -beta w ((x - mean x) - cov(x, c) / var(c) (c - mean c)), and zero where the constraint is not active.
        """
        beta = entropy_argmin(C, self._data(C.shape[1]))[1]
        G, extent = _from_lowest(C)
        # A vertex, or constant costs: nothing moves, or everything does.
        moves = np.isfinite(beta) & (beta > 0)
        beta = np.where(moves, beta, 0.0) / np.where(moves, extent, 1.0)
        W = _softmax(G * beta[:, None])
        x = direction - (W * direction).sum(axis=1, keepdims=True)
        c = G - (W * G).sum(axis=1, keepdims=True)
        variance = (W * c * c).sum(axis=1, keepdims=True)
        slope = (W * x * c).sum(axis=1, keepdims=True) / np.where(variance > 0, variance, 1.0)
        return np.where(variance > 0, -beta[:, None] * W * (x - slope * c), 0.0)

    def level(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f(w) = sum w log w and its gradient, for each row; the region is where f is at most the threshold."""
        with np.errstate(divide="ignore"):
            return entropy_value(W), 1.0 + np.log(W)

    def _f_min(self, d: int) -> float:
        return -np.log(d) + 0.0

    def _gain(self, x: float, d: int) -> float:
        return float(xlogy(x, x) - x + 1.0) / (d - 1.0)

    @available_if(_below_zero)
    def smoothed(
        self, C: np.ndarray, mu: float, memory: dict[str, Any] | None = None, curvature: bool = False
    ) -> Smoothed:
        """Minimise c.w + mu f(w) over the region (costs are minimised): a softmax at temperature mu or above.

        The constraint alone asks for some temperature t; the decision is the softmax at the larger of t and mu.
        """
        memory = {} if memory is None else memory
        d = C.shape[1]
        W, beta, _ = entropy_argmin(C, self._data(d), memory.get("root"))
        memory["root"] = beta
        G, extent = _from_lowest(C)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(beta > 0, extent / beta, 0.0)
        free = t < mu  # the constraint is not active
        P = _softmax(G / np.maximum(t, mu)[:, None])
        W[free] = P[free]
        level = entropy_value(W) + np.log(d)
        if not curvature:
            return Smoothed(W, level, None)
        # Not of W, which was moved by a rounding error to be feasible: where the lowest costs are nearly tied, weights
        # of 1e-16 on all others would be most of the variance.
        spread = G - np.einsum("ij,ij->i", P, G)[:, None]
        variance = np.einsum("ij,ij,ij->i", P, spread, spread)
        variance = np.where(free | (variance <= 0), np.inf, variance)
        M = _diagonal_less(P, P, P * (spread / np.sqrt(variance)[:, None]))
        return Smoothed(W, level, M / np.maximum(t, mu)[:, None, None])

    @available_if(_below_zero)
    def strong_convexity(self, n_dim: int | None = None, A: ArrayLike | None = None) -> StrongConvexity:
        """Return the constants of f(w) = sum w log w on the region: 1 / max w and 1 / min w, both attained.

        For ``threshold >= -log(d - 1)`` decisions may have zeros and L is infinite.  The method is absent when the
        threshold is 0: the region is then a polytope.
        """
        d = self.resolve_dim(n_dim)
        r = self._data(d)
        smallest, largest = self._extremes(d)
        constants = StrongConvexity(1.0 / largest, 1.0 / smallest if smallest > 0 else np.inf, r, self._f_min(d))
        return constants if A is None else constants.in_norm(A, directions_of(self, d))

    def _extremes(self, d: int) -> tuple[float, float]:
        """Smallest and largest coordinate of any decision; the other coordinates are then equal."""
        r = self._data(d)
        if d == 1:
            return 1.0, 1.0
        smallest = 0.0 if r >= -np.log(d - 1.0) else brentq(lambda a: self._floor(a, d) - r, 0.0, 1.0 / d, xtol=1e-300)
        largest = 1.0 if r >= 0.0 else brentq(lambda a: self._floor(a, d) - r, 1.0 / d, 1.0, xtol=1e-300)
        return float(smallest), float(largest)

    @staticmethod
    def _floor(a: float, d: int) -> float:
        """Smallest f among the portfolios with one coordinate equal to ``a``."""
        return float(xlogy(a, a) + xlogy(1.0 - a, (1.0 - a) / (d - 1.0)))

    def support_epigraph(self, V: Any) -> tuple[Any, list[Any]]:
        """Cone form of min over u >= 0 of u log sum_j exp(v_j / u) + u threshold.

        With s for the first term: u exp((v_j - s) / u) <= e_j and sum_j e_j <= u, an exponential cone per entry.
        """
        import cvxpy as cp

        n, d = V.shape
        r = self._data(d)
        s, u, E = cp.Variable(n), cp.Variable(n), cp.Variable((n, d))
        row = np.ones((1, d))
        S, U = cp.reshape(s, (n, 1), order="C") @ row, cp.reshape(u, (n, 1), order="C") @ row
        return s + r * u, [cp.ExpCone(V - S, U, E), cp.sum(E, axis=1) <= u]

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Clip, normalise, and mix with the uniform portfolio until the threshold is met."""
        return _mix_until_feasible(W, entropy_value, self._data(W.shape[1]))

    def diameter(self, n_dim: int | None = None) -> CertifiedFloat:
        """Upper bound on the largest distance between two decisions; exact for d <= 2 and for the whole simplex.

        Let m be the midpoint and a its largest coordinate.  Since x log x has curvature 1/x, and x + h and x - h
        together at least h^2 / x more than twice the middle, ``distance^2 <= 8 a (threshold - f(m))``, and f(m) is at
        least the smallest value with a coordinate a.  The bound is the maximum over a of this log-concave function.
        """
        d = self.resolve_dim(n_dim)
        r = self._data(d)
        smallest, largest = self._extremes(d)
        if d <= 2 or r >= 0.0:
            return CertifiedFloat(0.0 if d == 1 else np.sqrt(2.0) * (largest - smallest))
        curved = _largest_product(lambda a: 8.0 * a * (r - self._floor(a, d)), 1.0 / d, largest)
        return CertifiedFloat(float(np.sqrt(min(curved, 2.0 * (largest - smallest)))), "upper bound")


def _largest_product(function: Callable[[float], float], low: float, high: float) -> float:
    """Maximum of a log-concave, hence unimodal, function; raised by more than the search can miss."""
    res = minimize_scalar(lambda a: -function(a), bounds=(low, high), method="bounded", options={"xatol": 1e-10 * high})
    return max(-float(res.fun), function(low)) * (1.0 + 1e-9)


class LogBarrierSimplex(_SimplexLevelSet):
    """Simplex with a logarithmic barrier {w > 0, sum w = 1, -sum log w <= threshold}: every alternative gets a share.

    The optimal decision is proportional to ``1 / (c_j + nu)``, with the one shift nu that meets the threshold.

    Parameters
    ----------
    threshold : float, default=None
        Above ``d log d``, where only the uniform point is left.  None means ``2 d log d``, as in the paper.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.

    Notes
    -----
    The optimal decision is unique unless the cost is constant; then it is the uniform point.

    Examples
    --------
    >>> from skspo import LogBarrierSimplex
    >>> LogBarrierSimplex(threshold=4.0).argmin([[1.0, 2.0, 3.0]]).round(3)
    array([[0.654, 0.216, 0.129]])
    """

    def __init__(self, threshold: float | None = None, *, sense: str = "min") -> None:
        self.threshold = threshold
        self.sense = sense

    def _prepare(self, d: int) -> float:
        if self.threshold is None:
            return 2.0 * d * np.log(d)
        return _check_threshold(self, d, d * np.log(d), "d log d")

    def _argmin_again(self, C: np.ndarray, data: Any, memory: dict[str, Any]) -> np.ndarray:
        W, memory["root"], _ = log_barrier_argmin(C, data, memory.get("root"))
        return W

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimised)."""
        constant = (C == C[:, :1]).all(axis=1, keepdims=True)
        return self.solve_min(np.where(constant, -C_true, C))

    def derivative(self, C: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Derivative of the decisions at costs ``C`` (both minimised); zero for constant costs, where there is none.

        At the optimum c = lambda / w - nu, and the decision moves by -1 / lambda times w^2 x, made orthogonal (in the
        metric w^2) to the gradients 1 and 1 / w of the two constraints.
        """
        d = C.shape[1]
        W = log_barrier_argmin(C, self._data(d))[0]
        inverse = 1.0 / W
        spread = inverse - inverse.mean(axis=1, keepdims=True)
        square = (spread * spread).sum(axis=1, keepdims=True)
        lam = (C * spread).sum(axis=1, keepdims=True) / np.where(square > 0, square, 1.0)
        # In z = w x the metric is the usual one and the gradients are w and 1.
        z = W * direction
        z = z - z.mean(axis=1, keepdims=True)
        w = W - W.mean(axis=1, keepdims=True)
        size = (w * w).sum(axis=1, keepdims=True)
        smooth = (lam > 0) & (size > 0)
        z = z - w * ((w * z).sum(axis=1, keepdims=True) / np.where(smooth, size, 1.0))
        return np.where(smooth, -W * z / np.where(smooth, lam, 1.0), 0.0)

    def smoothed(
        self, C: np.ndarray, mu: float, memory: dict[str, Any] | None = None, curvature: bool = False
    ) -> Smoothed:
        """Minimise c.w + mu f(w) over the region (costs are minimised): w = t / (c + nu) with t = mu or above.

        The constraint alone asks for some multiplier t; the decision is that of the larger of t and mu.
        """
        memory = {} if memory is None else memory
        d = C.shape[1]
        W, nu, _ = log_barrier_argmin(C, self._data(d), memory.get("root"))
        memory["root"] = nu
        G, extent = _from_lowest(C)
        positive = extent > 0
        S = G / np.where(positive, extent, 1.0)[:, None] + nu[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(positive, extent / (1.0 / S).sum(axis=1), 0.0)
        free = t < mu  # the constraint is not active
        W[free] = _log_barrier_free(G[free], mu)
        level = log_barrier_value(W) - d * np.log(d)
        if not curvature:
            return Smoothed(W, level, None)
        square = W * W
        total = square.sum(axis=1, keepdims=True)
        # The gradient -1 / w of f, in the metric w^2 and made to sum to zero, has the squared length d - 1 / sum w^2.
        size = d - 1.0 / total
        size = np.where(free[:, None] | (size <= 0), np.inf, size)
        M = _diagonal_less(square, square / np.sqrt(total), (W - square / total) / np.sqrt(size))
        return Smoothed(W, level, M / np.maximum(t, mu)[:, None, None])

    def level(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f(w) = -sum log w and its gradient, for each row; the region is where f is at most the threshold."""
        with np.errstate(divide="ignore"):
            return log_barrier_value(W), -1.0 / W

    def _f_min(self, d: int) -> float:
        return d * np.log(d)

    def _gain(self, x: float, d: int) -> float:
        return float(x - 1.0 - np.log(x)) * d / (d - 1.0)

    def strong_convexity(self, n_dim: int | None = None, A: ArrayLike | None = None) -> StrongConvexity:
        """Return the constants of f(w) = -sum log w on the region: 1 / max w^2 and 1 / min w^2, both attained."""
        d = self.resolve_dim(n_dim)
        r = self._data(d)
        smallest, largest = self._extremes(d)
        with np.errstate(over="ignore"):
            constants = StrongConvexity(largest**-2.0, float(np.float64(smallest) ** -2.0), r, self._f_min(d))
        return constants if A is None else constants.in_norm(A, directions_of(self, d))

    def _extremes(self, d: int) -> tuple[float, float]:
        """Smallest and largest coordinate of any decision; the other coordinates are then equal."""
        r = self._data(d)
        if d == 1:
            return 1.0, 1.0
        # In the variable log(a / (1 - a)) the function is asymptotically linear and can be bracketed by its slopes.
        root = -np.log(d - 1.0)
        reach = r + 1.0
        smallest = brentq(lambda x: self._floor(x, d) - r, root - reach, root, xtol=1e-14)
        largest = brentq(lambda x: self._floor(x, d) - r, root, root + reach, xtol=1e-14)
        return float(1.0 / (1.0 + np.exp(min(-smallest, 700.0)))), float(1.0 / (1.0 + np.exp(-largest)))

    @staticmethod
    def _floor(x: float, d: int) -> float:
        """Smallest f among the points with one coordinate a, given as x = log(a / (1 - a))."""
        return float(np.logaddexp(0.0, -x) + (d - 1.0) * (np.logaddexp(0.0, x) + np.log(d - 1.0)))

    def support_epigraph(self, V: Any) -> tuple[Any, list[Any]]:
        """Cone form of min over u >= 0 and s of s + (threshold - d) u + sum_j u log(u / (s - v_j)).

        It is the Lagrangian dual, with s for sum w = 1 and u for the barrier: each w_j is at best u / (s - v_j).  With
        k_j for a term of the sum: u exp(-k_j / u) <= s - v_j, an exponential cone per entry.
        """
        import cvxpy as cp

        n, d = V.shape
        r = self._data(d)
        s, u, K = cp.Variable(n), cp.Variable(n), cp.Variable((n, d))
        row = np.ones((1, d))
        S, U = cp.reshape(s, (n, 1), order="C") @ row, cp.reshape(u, (n, 1), order="C") @ row
        return s + (r - d) * u + cp.sum(K, axis=1), [cp.ExpCone(-K, U, S - V)]

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Clip, normalise, and mix with the uniform point until the threshold is met."""
        return _mix_until_feasible(W, log_barrier_value, self._data(W.shape[1]))

    def diameter(self, n_dim: int | None = None) -> CertifiedFloat:
        """Upper bound on the largest distance between two decisions; exact for d <= 2.

        As for :class:`EntropySimplex` with the curvature 1/x^2: ``distance^2 <= 8 a^2 (threshold - f(m))``.
        """
        d = self.resolve_dim(n_dim)
        r = self._data(d)
        smallest, largest = self._extremes(d)
        if d <= 2:
            return CertifiedFloat(0.0 if d == 1 else np.sqrt(2.0) * (largest - smallest))

        def product(a: float) -> float:
            return 8.0 * a * a * (r - self._floor(float(np.log(a) - np.log1p(-a)), d))

        # For any two decisions w.w' >= min w and w.w <= max w.
        curved = _largest_product(product, 1.0 / d, min(largest, 1.0 - 1e-16))
        return CertifiedFloat(float(np.sqrt(min(curved, 2.0 * (largest - smallest)))), "upper bound")
