"""Calibration by simulation: excess risks, and the search for the worst prediction.

Conventions
-----------
    cbar = E c       Delta = c_hat - cbar       all costs are minimized inside (``sense`` is applied on entry)

    excess SPO   cbar.(w*(c_hat) - w*(cbar))                       no simulation once cbar is known
    excess SPO+  E[l+(c_hat, c) - l+(cbar, c)]                     any distribution, relative to the prediction cbar
               = E[(c + 2 Delta).(w*(c) - w*(c + 2 Delta))]        if c is centrally symmetric about cbar

The second form is nonnegative for every c and zero unless the decision changes, so that its average is a much better
estimate.  The excess SPO+ risk is convex in c_hat and smallest at cbar; along a ray from cbar both it and
the excess SPO risk increase, so the best prediction of a ray is the first whose excess SPO risk reaches eps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.utils import check_random_state

from .._utils.limits import BLOCK_ELEMENTS
from .._utils.params import integer, number
from .._utils.types import RandomState
from ..regions.base import Region
from ..regions.check import check_region
from ._checks import check_count, check_levels, rows
from .geometry import directions_of


class ExcessRisks(NamedTuple):
    """Excess risks of predictions: SPO, SPO+, and the standard error of the latter."""

    spo: np.ndarray
    spo_plus: np.ndarray
    spo_plus_error: np.ndarray


def _spo_plus_terms(region: Region, Delta: np.ndarray, C: np.ndarray, W: np.ndarray) -> np.ndarray:
    """(c + 2 Delta).(w*(c) - w*(c + 2 Delta)) for every row of Delta and of C, shape (m, n)."""
    n, d = C.shape
    out = np.empty((Delta.shape[0], n))
    step = max(BLOCK_ELEMENTS // (n * d), 1)
    for i in range(0, Delta.shape[0], step):
        moved = C + 2.0 * Delta[i : i + step, None, :]
        W_moved = region.solve_min(moved.reshape(-1, d)).reshape(moved.shape)
        out[i : i + step] = np.einsum("mnd,mnd->mn", moved, W - W_moved)
    return out


def _spo_plus_differences(
    region: Region, C_hat: np.ndarray, c_bar: np.ndarray, C: np.ndarray, W: np.ndarray
) -> np.ndarray:
    """l+(c_hat, c) - l+(cbar, c) for every row of C_hat and of C, shape (m, n)."""

    def loss(c: np.ndarray) -> np.ndarray:
        V = 2.0 * c - C
        return np.einsum("nd,nd->n", V, W - region.solve_min(V))

    base = loss(c_bar)
    return np.stack([loss(c_hat) - base for c_hat in C_hat])


def excess_risks(
    region: Region, c_hat: ArrayLike, samples: ArrayLike, *, c_bar: ArrayLike | None = None, symmetric: bool = False
) -> ExcessRisks:
    """Excess SPO and SPO+ risk of predictions, given draws of the costs.

    Parameters
    ----------
    region : Region
    c_hat : array-like of shape (m, d) or (d,)
        Predictions.
    samples : array-like of shape (n, d)
        Draws of the costs, given one value of the features.
    c_bar : array-like of shape (d,), optional
        Mean of the costs; by default that of the samples.
    symmetric : bool, default=False
        Whether the costs are centrally symmetric about their mean.  Then the mean minimizes the SPO+ risk, and a
        better estimate is used.  Otherwise the excess is relative to the prediction ``c_bar``.

    Returns
    -------
    risks : ExcessRisks
        Arrays of shape (m,): ``spo``, ``spo_plus`` and its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo import L1Ball
    >>> from skspo.calibration import excess_risks
    >>> C = np.random.default_rng(0).normal([0.1, 0.0], 1.0, size=(1000, 2))
    >>> risks = excess_risks(L1Ball(), [0.0, 0.1], C, c_bar=[0.1, 0.0], symmetric=True)
    >>> float(risks.spo[0]), bool(risks.spo_plus[0] > 0)
    (0.1, True)
    """
    C = rows("samples", samples)
    if C.shape[0] < 2:
        raise ValueError(f"samples must have at least two rows, one per draw of the costs; got shape {C.shape}.")
    d = C.shape[1]
    C_hat = rows("c_hat", c_hat, d)
    mean = C.mean(axis=0) if c_bar is None else rows("c_bar", c_bar, d)[0]
    region = check_region(region, d)
    C, C_hat, mean = region.to_min(C), region.to_min(C_hat), region.to_min(mean)
    W = region.solve_min(C)
    if symmetric:
        terms = _spo_plus_terms(region, C_hat - mean, C, W)
    else:
        terms = _spo_plus_differences(region, C_hat, mean, C, W)
    spo = (region.solve_min(C_hat) - region.solve_min(mean[None])) @ mean
    return ExcessRisks(spo, terms.mean(axis=1), terms.std(axis=1, ddof=1) / np.sqrt(C.shape[0]))


class EmpiricalCalibration(NamedTuple):
    """Smallest excess SPO+ risk found, for each eps, with confidence limits at the prediction found.

    ``delta`` is the estimated excess SPO+ risk of ``predictions``; the infimum over all predictions can only be lower.
    ``lower`` and ``upper`` are confidence limits of that risk, from draws that the search does not use.  Where no
    prediction has an excess SPO risk of eps, ``delta`` is infinite and the prediction NaN.
    """

    eps: np.ndarray
    delta: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    predictions: np.ndarray
    excess_spo: np.ndarray


def _first_crossing(region: Region, c_bar: np.ndarray, V: np.ndarray, eps: float, scale: float) -> np.ndarray:
    """Smallest t, up to bisection, with excess SPO risk of cbar + t v at least eps; infinite if there is none."""
    best = float(c_bar @ region.solve_min(c_bar[None])[0])

    def reached(t: np.ndarray) -> np.ndarray:
        return region.solve_min(c_bar + t[:, None] * V) @ c_bar - best >= eps

    # The excess risk increases along the ray up to that of v itself, which cbar + t v reaches for a large t.
    low, high = np.zeros(V.shape[0]), np.full(V.shape[0], scale)
    for _ in range(30):
        short = ~reached(high)
        if not short.any():
            break
        low, high = np.where(short, high, low), np.where(short, 4.0 * high, high)
    possible = reached(high)
    for _ in range(40):
        middle = 0.5 * (low + high)
        ok = reached(middle)
        low, high = np.where(ok, low, middle), np.where(ok, middle, high)
    return np.where(possible, high, np.inf)


def empirical_calibration(
    region: Region,
    sampler: Callable[[int, np.random.RandomState], ArrayLike],
    eps: ArrayLike,
    *,
    c_bar: ArrayLike | None = None,
    n_samples: int = 4000,
    n_directions: int = 64,
    n_rounds: int = 8,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> EmpiricalCalibration:
    """Estimate the conditional calibration function of the SPO+ loss by search over predictions.

    Parameters
    ----------
    region : Region
    sampler : callable
        ``sampler(n, random_state)`` returns n draws of the costs, shape (n, d), from a distribution that is centrally
        symmetric about its mean.  Draws that contradict the symmetry or ``c_bar`` raise an error.
    eps : float or array-like
        Excess SPO risks, positive.
    c_bar : array-like of shape (d,), optional
        Mean of the costs; by default that of ``n_samples`` draws.
    n_samples : int, default=4000
        Draws for the search, and as many for the final estimate.
    n_directions, n_rounds : int, default=64 and 8
        Rays from the mean tried at a time, and how often the search continues around the best ones.
    confidence : float, default=0.95
        Probability with which the limits contain the risk of the prediction found, for each eps.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    result : EmpiricalCalibration

    Notes
    -----
    The search gives an upper bound: the calibration function is at most the excess SPO+ risk of the prediction found.

    Examples
    --------
    >>> from skspo import L1Ball
    >>> from skspo.calibration import PolyhedralCalibration, empirical_calibration
    >>> def sampler(n, rng):
    ...     return rng.normal([0.5, 0.0], 1.0, size=(n, 2))
    >>> found = empirical_calibration(L1Ball(), sampler, [0.2, 0.4], c_bar=[0.5, 0.0], n_samples=500, random_state=0)
    >>> bound = PolyhedralCalibration.from_region(L1Ball(), n_dim=2, M=1.0, beta=0.5)
    >>> bool((bound(found.eps) <= found.upper).all())
    True
    """
    levels = np.atleast_1d(check_levels("eps", eps, allow_zero=False))
    if levels.ndim != 1:
        raise ValueError(f"eps must be a number or one-dimensional, got shape {levels.shape}.")
    integer(2)("n_samples", n_samples)
    check_count("n_directions", n_directions)
    check_count("n_rounds", n_rounds)
    number(above=0.0, below=1.0)("confidence", confidence)
    rng = check_random_state(random_state)

    def draw() -> np.ndarray:
        C = rows("the draws of sampler", sampler(n_samples, rng))
        if C.shape[0] != n_samples:
            raise ValueError(f"sampler was asked for {n_samples} draws and returned {C.shape[0]}.")
        return C

    C = draw()
    d = C.shape[1]
    mean = C.mean(axis=0) if c_bar is None else rows("c_bar", c_bar, d)[0]
    region = check_region(region, d)
    C, mean = region.to_min(C), region.to_min(mean)
    W = region.solve_min(C)
    U = directions_of(region, d)
    fresh = region.to_min(draw())
    if c_bar is not None:
        _check_mean(fresh @ U, mean @ U)
    W_fresh = region.solve_min(fresh)
    scale = float(np.linalg.norm(mean @ U) + np.linalg.norm((C @ U).std(axis=0))) or 1.0

    m = levels.size
    delta, lower, upper, spo = (np.full(m, np.inf) for _ in range(4))
    predictions = np.full((m, d), np.nan)
    z = float(norm.ppf(0.5 + 0.5 * confidence))
    Delta, least = None, np.inf
    # From the largest eps down: a prediction that reaches a larger eps reaches a smaller one, too.
    for i in np.argsort(-levels, kind="stable"):
        found, value = _search(region, mean, C, W, U, float(levels[i]), scale, n_directions, n_rounds, rng)
        if value < least:
            Delta, least = found, value
        if Delta is None:
            continue
        terms = _spo_plus_terms(region, Delta[None], fresh, W_fresh)[0]
        _check_symmetry(terms, _spo_plus_differences(region, mean + Delta[None], mean, fresh, W_fresh)[0])
        error = z * float(terms.std(ddof=1)) / np.sqrt(n_samples)
        delta[i] = terms.mean()
        lower[i], upper[i] = max(delta[i] - error, 0.0), delta[i] + error
        predictions[i] = region.to_min(mean + Delta)
        spo[i] = float(mean @ (region.solve_min((mean + Delta)[None]) - region.solve_min(mean[None]))[0])
    return EmpiricalCalibration(levels, delta, lower, upper, predictions, spo)


def _search(
    region: Region,
    mean: np.ndarray,
    C: np.ndarray,
    W: np.ndarray,
    U: np.ndarray,
    eps: float,
    scale: float,
    n_directions: int,
    n_rounds: int,
    rng: np.random.RandomState,
) -> tuple[np.ndarray | None, float]:
    """Delta with excess SPO risk of at least eps and the least excess SPO+ risk found; None if none was reached."""
    k = U.shape[1]
    if k == 0:
        return None, np.inf
    visible = mean @ U
    V = np.concatenate([-visible[None], rng.normal(size=(n_directions, k)), np.eye(k), -np.eye(k)])
    best, least = None, np.inf
    for i in range(n_rounds):
        size = np.linalg.norm(V, axis=1, keepdims=True)
        V = V[size[:, 0] > 0] / size[size[:, 0] > 0]
        t = _first_crossing(region, mean, V @ U.T, eps, scale)
        possible = np.isfinite(t)
        if possible.any():
            Delta = (t[possible, None] * V[possible]) @ U.T
            value = _spo_plus_terms(region, Delta, C, W).mean(axis=1)
            if value.min() < least:
                best, least = Delta[value.argmin()], float(value.min())
        if best is None:
            V = rng.normal(size=(4 * n_directions, k))
        else:
            unit = best @ U / np.linalg.norm(best @ U)
            V = unit + 0.6 * 0.5**i * rng.normal(size=(n_directions, k)) / np.sqrt(k)
    return best, least


def _check_mean(C: np.ndarray, mean: np.ndarray) -> None:
    error = C.std(axis=0, ddof=1) / np.sqrt(C.shape[0])
    off = np.abs(C.mean(axis=0) - mean)
    if (off > 7.0 * error + 1e-9 * (1.0 + np.abs(mean))).any():
        raise ValueError(
            "c_bar is not the mean of the sampler: the mean of its draws is more than seven standard errors away."
        )


def _check_symmetry(terms: np.ndarray, differences: np.ndarray) -> None:
    gap = terms - differences
    error = gap.std(ddof=1) / np.sqrt(gap.size)
    if abs(gap.mean()) > 7.0 * error + 1e-9 * np.abs(differences).max(initial=0.0):
        raise ValueError(
            "The draws are not centrally symmetric about c_bar: two estimates of the excess SPO+ risk that agree for "
            f"symmetric costs, {terms.mean():.4g} and {differences.mean():.4g}, are more than seven standard errors "
            "apart."
        )
