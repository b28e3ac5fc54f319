"""Best decisions on level sets of the entropy and of the log barrier, many rows of costs at once.

Conventions
-----------
    entropy        f(w) = sum_j w_j log w_j     f_min = -log d     w*(c) = softmax(-beta c)
    log barrier    f(w) = -sum_j log w_j        f_min = d log d    w*(c) proportional to 1 / (c_j + nu)

beta and nu solve f(w*) = threshold, one number per row.  Both problems are invariant to c -> a c + b with a > 0, so
every row is mapped to G with minimum 0 and maximum 1 first.  Newton's method is applied to a transform of f that is
nearly linear at both ends (the uniform point, and all weight on the lowest cost), inside a bracket.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import xlogy

from ..._utils.limits import BLOCK_ELEMENTS
from .._tolerances import ROUNDING

_MAX_ITER = 200  # bisection alone would find a root among all doubles in about 60
_RTOL = 1e-10  # relative residual at which Newton's method stops; its last step squares the error
_EPS = float(np.finfo(float).eps)


def unit_costs(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Map each row to [0, 1]; also return by how much its costs differ.  Constant rows become zero."""
    # Halve first, so that differences of the largest floating-point numbers are finite.
    G = 0.5 * C
    G -= G.min(axis=1, keepdims=True)
    half = G.max(axis=1)
    G /= np.where(half == 0, 1.0, half)[:, None]
    return G, 2.0 * half


def _bracketed(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Newton's points if they are inside the bracket; otherwise its geometric mean, or 8 low if it is unbounded."""
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
    solve: Callable[[np.ndarray, float, np.ndarray | None], tuple[np.ndarray, np.ndarray, int]],
    C: np.ndarray,
    threshold: float,
    init: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Solve block by block; return the largest number of iterations of a block."""
    n, d = C.shape
    step = max(BLOCK_ELEMENTS // max(d, 1), 1)
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
    """Minimize each row of costs over {w >= 0, sum w = 1, sum w log w <= threshold}; the threshold is at least -log d.

    Returns the decisions softmax(-beta g), the inverse temperatures beta (0 where the cost is constant, infinite where
    the constraint is inactive), and the largest number of iterations of a row.  ``beta_init`` may have temperatures of
    similar costs; entries that are not finite and positive are replaced by an expansion at the uniform point.
    """
    return _in_blocks(_entropy_block, C, threshold, beta_init)


def _entropy_block(C: np.ndarray, r: float, init: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, int]:
    n, d = C.shape
    G, extent = unit_costs(C)
    constant = extent == 0
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
    low = np.full(active.size, np.sqrt(8.0 * gain) * (1.0 - ROUNDING))
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
    P = softmax(x[:, None] * G)
    W[active] = _nudge(P, entropy_value(P), r, -np.log(d))
    beta[active] = x
    return W, beta, n_iter


def _nudge(W: np.ndarray, f: np.ndarray, r: float, f_min: float) -> np.ndarray:
    """Mix with the uniform point, by the share that is sufficient for f <= r because f is convex."""
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
    """Minimize each row of costs over {w > 0, sum w = 1, -sum log w <= threshold}; the threshold is at least d log d.

    Returns the decisions, proportional to 1 / (g + nu), the shifts nu (infinite where the cost is constant), and the
    largest number of iterations of a row.  ``nu_init`` may have shifts of similar costs; entries that are not finite
    and positive are replaced by an expansion at the uniform point or at the vertex.
    """
    return _in_blocks(_log_barrier_block, C, threshold, nu_init)


def _log_barrier_block(C: np.ndarray, r: float, init: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, int]:
    n, d = C.shape
    G, extent = unit_costs(C)
    nu = np.full(n, np.inf)
    W = np.full((n, d), 1.0 / d)
    f_min = d * np.log(d)
    gain = (r - f_min) / d
    active = np.flatnonzero(extent)
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
    # For larger x the weights are subnormal numbers.
    x_max = 1e290
    x = np.clip(np.where(nu_far > 0.3, 1.0 / np.maximum(nu_far, 0.3), vertex), 1e-290, x_max)
    if init is not None:
        given = init[active]
        with np.errstate(divide="ignore"):
            x = np.where(np.isfinite(given) & (given > 0), np.clip(1.0 / np.abs(given), 1e-290, x_max), x)
    # The ratio of two weights is at most 1 + x, so (f - f_min) / d <= log((2 + x)^2 / (4 (1 + x))) by Kantorovich.
    excess = np.expm1(min(gain, 300.0))
    low = np.full(active.size, 2.0 * (excess + np.sqrt(excess * (1.0 + excess))) * (1.0 - ROUNDING))
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


def log_barrier_free(G: np.ndarray, mu: float) -> np.ndarray:
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


def softmax(G: np.ndarray) -> np.ndarray:
    """Weights proportional to exp(-g); the smallest g of a row is 0, so that nothing overflows."""
    E = np.exp(-G)
    return E / E.sum(axis=1, keepdims=True)


def mix_until_feasible(W: np.ndarray, value: Callable[[np.ndarray], np.ndarray], r: float) -> np.ndarray:
    """Clip, normalize, and mix with the uniform point just enough for f <= r; feasible rows stay as they are."""
    d = W.shape[1]
    W = np.maximum(W, 0.0)
    total = W.sum(axis=1, keepdims=True)
    # Keep a sum that is 1 up to rounding, so that repairing twice changes nothing.
    total = np.where(np.abs(total - 1.0) <= 4 * d * _EPS, 1.0, total)
    W = np.where(total > 0, W / np.where(total > 0, total, 1.0), 1.0 / d)
    f = value(W)
    bad = np.flatnonzero(f > r)
    P, low, high = W[bad], np.zeros(bad.size), np.ones(bad.size)  # low is infeasible, high feasible
    with np.errstate(invalid="ignore"):
        chord = (f[bad] - r) / (f[bad] - value(np.full((1, d), 1.0 / d)))
    share = np.where(np.isfinite(chord), np.clip(chord, 0.0, 1.0), 0.5)  # feasible, as f is convex
    while (high - low > ROUNDING).any():
        inside = value(P + share[:, None] * (1.0 / d - P)) <= r
        low, high = np.where(inside, low, share), np.where(inside, share, high)
        share = 0.5 * (low + high)
    W[bad] = P + high[:, None] * (1.0 / d - P)
    return W
