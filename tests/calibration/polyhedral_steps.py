"""The steps of the proof of the polyhedral bound, evaluated numerically.

Conventions
-----------
    v unit vector (the direction of Delta = kappa v)      c' = component of c orthogonal to v, as decisions see it
    w*(c' + xi v) for xi from -infinity to infinity takes the values w_1, ..., w_k, with y_i = v.w_i decreasing, and
    changes from w_i to w_(i+1) at xi = zeta_i

    (c + 2 Delta).(w*(c) - w*(c + 2 Delta))
        = sum_i 1{zeta_i - 2 kappa <= xi <= zeta_i} (xi + 2 kappa - zeta_i) (y_i - y_(i+1))
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, ndtr
from sides import Sides

from skspo._utils.params import number
from skspo.calibration._checks import check_nonnegative, check_positive, check_share, rows
from skspo.calibration.geometry import directions_of, region_geometry
from skspo.regions.base import Region
from skspo.regions.check import check_region

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def delta_bound(region: Region, c_hat: ArrayLike, c_bar: ArrayLike) -> Sides:
    r"""Excess SPO risk of predictions, at most the extent of the region along their error.

    The extent is :math:`\Delta^\top (w^*(-\Delta) - w^*(\Delta))`.

    Parameters
    ----------
    region : Region
    c_hat, c_bar : array-like of shape (n, d)
        Predictions and means.

    Returns
    -------
    sides : Sides
        ``value`` is the excess SPO risk, ``upper`` the extent.

    Examples
    --------
    >>> from skspo import Box
    >>> from polyhedral_steps import delta_bound
    >>> delta_bound(Box(), [[1.0, 0.0]], [[-1.0, 0.0]])
    Sides(lower=array([0.]), value=array([1.]), upper=array([2.]))
    """
    mean = rows("c_bar", c_bar)
    region = check_region(region, mean.shape[1])
    mean, C_hat = region.to_min(mean), region.to_min(rows("c_hat", c_hat, mean.shape[1]))
    Delta = C_hat - mean
    value = np.einsum("ij,ij->i", mean, region.solve_min(C_hat) - region.solve_min(mean))
    upper = np.einsum("ij,ij->i", Delta, region.solve_min(-Delta) - region.solve_min(Delta))
    return Sides(np.zeros(value.shape), value, upper)


def power_sum_bound(a: ArrayLike, b: ArrayLike, p: float) -> Sides:
    r"""Inequality for sums of powers, with A and B the sums of a and b.

    .. math:: \sum_i b_i \left(1 + \frac{a_i^2}{b_i^2}\right)^{-p/2} \ge B \left(1 + \frac{A}{B}\right)^{-p}

    Parameters
    ----------
    a, b : array-like of shape (n,)
        Nonnegative, with positive sums; a term with :math:`b_i = 0` is zero.
    p : float
        Nonnegative.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from polyhedral_steps import power_sum_bound
    >>> power_sum_bound([1.0], [1.0], 2.0)
    Sides(lower=array(0.25), value=array(0.5), upper=array(inf))
    """
    a_arr, b_arr = (np.asarray(x, dtype=np.float64) for x in (a, b))
    if a_arr.shape != b_arr.shape or a_arr.ndim != 1 or (a_arr < 0).any() or (b_arr < 0).any():
        raise ValueError("a and b must be nonnegative, one-dimensional and of the same length.")
    total_a, total_b = a_arr.sum(), b_arr.sum()
    if not (total_a > 0 and total_b > 0):
        raise ValueError("a and b must have positive sums.")
    check_nonnegative("p", p)
    keep = b_arr > 0
    value = (b_arr[keep] * (1.0 + (a_arr[keep] / b_arr[keep]) ** 2) ** (-p / 2.0)).sum()
    return Sides(np.asarray(total_b * (1.0 + total_a / total_b) ** -p), np.asarray(value), np.asarray(np.inf))


class Transitions(NamedTuple):
    """Changes of the decision as a cost moves along a direction."""

    zeta: np.ndarray  # (k - 1,) increasing
    y: np.ndarray  # (k,) decreasing: v.w_i
    size: float  # |c'|
    n_dim: int  # dimension of the affine hull


def transitions(region: Region, c: ArrayLike, direction: ArrayLike) -> Transitions:
    r"""All changes of the optimal decision along the line :math:`c' + \xi v`, for a polyhedral region.

    Parameters
    ----------
    region : Region
        Its oracle returns vertices.
    c : array-like of shape (d,)
        A cost; its component along the direction does not matter.
    direction : array-like of shape (d,)
        The direction v, which must be one in which decisions vary.

    Returns
    -------
    transitions : Transitions

    Examples
    --------
    >>> from skspo import L1Ball
    >>> from polyhedral_steps import transitions
    >>> t = transitions(L1Ball(), [2.0, 0.0], [0.0, 1.0])
    >>> t.zeta, t.y
    (array([-2.,  2.]), array([ 1.,  0., -1.]))
    """
    c_arr = rows("c", c)[0]
    d = c_arr.size
    region = check_region(region, d)
    U = directions_of(region, d)
    v = region.to_min(rows("direction", direction, d)[0] @ U @ U.T)
    if not np.linalg.norm(v) > 1e-12 * np.linalg.norm(rows("direction", direction)[0]):
        raise ValueError("direction must be one in which decisions vary.")
    v = v / np.linalg.norm(v)
    c_arr = region.to_min(c_arr) @ U @ U.T
    c_arr = c_arr - (c_arr @ v) * v
    size = float(np.linalg.norm(c_arr))

    def best(xi: float) -> np.ndarray:
        return region.solve_min((c_arr + xi * v)[None])[0]

    far = 1e7 * max(size, 1.0)
    found: list[tuple[float, np.ndarray, np.ndarray]] = []
    open_pairs = [(best(-far), best(far))]
    while open_pairs:
        first, last = open_pairs.pop()
        drop = v @ (first - last)
        if drop <= 1e-12:
            continue
        xi = -(c_arr @ (first - last)) / drop
        middle = best(xi)
        cost = c_arr + xi * v
        if cost @ middle < cost @ first - 1e-10 * (1.0 + abs(cost @ first)):
            open_pairs += [(first, middle), (middle, last)]
        else:
            found.append((float(xi), first, last))
    found.sort(key=lambda item: (item[0], -float(v @ item[1])))
    y = [float(v @ w) for _, w, _ in found] + [float(v @ found[-1][2])] if found else [float(v @ best(0.0))]
    return Transitions(np.array([item[0] for item in found]), np.array(y), size, U.shape[1])


def transition_sum_bound(region: Region, c: ArrayLike, direction: ArrayLike) -> Sides:
    r"""Weighted sum of the changes of the decision along a line, and its lower bound.

    .. math:: \sum_i (1 + 3 \zeta_i^2)^{-(k-1)/2} (y_i - y_{i+1}) \ge (1 + 2 \sqrt{3} \, D_S / Y)^{1-k} \, Y

    for :math:`\lVert c'\rVert = 1`, with Y the extent of the region along the direction.

    Parameters
    ----------
    region, c, direction
        As for :func:`transitions`; c is scaled so that :math:`\lVert c'\rVert = 1`.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from skspo import L1Ball
    >>> from polyhedral_steps import transition_sum_bound
    >>> transition_sum_bound(L1Ball(), [2.0, 0.0], [0.0, 1.0]).hold()
    True
    """
    t = transitions(region, c, direction)
    if t.size == 0:
        raise ValueError("c must have a component orthogonal to direction.")
    diameter = float(region_geometry(region, rows("c", c).shape[1]).diameter)
    value = ((1.0 + 3.0 * (t.zeta / t.size) ** 2) ** (-(t.n_dim - 1) / 2.0) * -np.diff(t.y)).sum()
    extent = t.y[0] - t.y[-1]
    lower = extent * (1.0 + 2.0 * np.sqrt(3.0) * diameter / extent) ** (1 - t.n_dim)
    return Sides(np.asarray(lower), np.asarray(value), np.asarray(np.inf))


def conditional_excess_bound(
    t: Transitions,
    *,
    xi_bar: float,
    sigma: float,
    kappa: float,
    kappa_tilde: float | None = None,
    alpha: float = 1.0,
    domain: float | None = None,
) -> Sides:
    r"""Excess SPO+ risk given :math:`c'`, for :math:`\Delta = \kappa v`, and its lower bound.

    The value is that of the smallest density allowed, :math:`\alpha N(\bar \xi, \sigma^2)`, cut off where
    :math:`\lVert c'\rVert^2 + \xi^2 > 2 D^2`: whatever else the distribution of :math:`\xi` contains can only add to
    it.

    Parameters
    ----------
    t : Transitions
        Of :math:`c'` along v.
    xi_bar, sigma : float
        Mean and standard deviation of the normal density.
    kappa : float
        Length of :math:`\Delta`, positive.
    kappa_tilde : float, optional
        Any number in [0, kappa]; by default min(kappa, sigma).  With ``domain``, at most that.
    alpha : float, default=1.0
    domain : float or None
        D, if the density is bounded below on a ball only.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from skspo import L1Ball
    >>> from polyhedral_steps import conditional_excess_bound, transitions
    >>> t = transitions(L1Ball(), [2.0, 0.0], [0.0, 1.0])
    >>> conditional_excess_bound(t, xi_bar=0.0, sigma=1.0, kappa=0.5).hold()
    True
    """
    check_positive("sigma", sigma)
    check_positive("kappa", kappa)
    check_share("alpha", alpha)
    part = min(kappa, sigma) if kappa_tilde is None else kappa_tilde
    number(above=0.0, high=kappa)("kappa_tilde", part)
    jumps = -np.diff(t.y)
    reach = np.inf
    inside = np.ones(t.zeta.shape, dtype=bool)
    if domain is not None:
        check_positive("domain", domain)
        number(0.0, domain)("kappa_tilde", part, "it may not exceed domain")
        # |c'| <= D / m_i with m_i^2 = 1 + 3 zeta_i^2 / |c'|^2
        inside = t.size**2 + 3.0 * t.zeta**2 <= domain**2
        reach = np.sqrt(max(2.0 * domain**2 - t.size**2, 0.0))
    low, high = np.clip(t.zeta - 2.0 * kappa, -reach, reach), np.clip(t.zeta, -reach, reach)
    value = alpha * (jumps * partial_mean(low, high, t.zeta - 2.0 * kappa, xi_bar, sigma)).sum()
    weight = np.exp(-1.5 * (t.zeta / sigma) ** 2) * inside / np.sqrt(2.0 * np.pi * sigma**2)
    lower = 0.5 * alpha * part * kappa * np.exp(-1.5 * (part**2 + xi_bar**2) / sigma**2) * (weight * jumps).sum()
    return Sides(np.asarray(lower), np.asarray(value), np.asarray(np.inf))


def partial_mean(low: np.ndarray, high: np.ndarray, start: np.ndarray, mean: float, sigma: float) -> np.ndarray:
    """E[(xi - start) 1{low <= xi <= high}] for a normal xi."""
    a, b = (low - mean) / sigma, (high - mean) / sigma
    density = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / np.sqrt(2.0 * np.pi)
    wide = sigma * density + (mean - start) * (ndtr(b) - ndtr(a))
    # On a short interval the two terms cancel; there the integrand is nearly a polynomial.
    x = 0.5 * (a + b)[..., None] + 0.5 * (b - a)[..., None] * _NODES
    weight = 0.5 * (b - a)[..., None] * _WEIGHTS * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
    narrow = (weight * (mean + sigma * x - start[..., None])).sum(axis=-1)
    return np.where(b - a < 1.0, narrow, wide)


def direction_excess_bound(
    region: Region,
    c_bar: ArrayLike,
    delta: ArrayLike,
    *,
    sigma: float,
    kappa_tilde: float | None = None,
    alpha: float = 1.0,
    domain: float | None = None,
) -> float:
    r"""Lower bound on the excess SPO+ risk of the prediction :math:`\bar c + \Delta`, before an SPO risk enters.

    Parameters
    ----------
    region : Region
        With a diameter and a relative width.
    c_bar, delta : array-like of shape (d,)
        Mean, and difference of prediction and mean.
    sigma : float
        The density is at least ``alpha`` times that of :math:`N(\bar c, \sigma^2 I)`.
    kappa_tilde : float, optional
        At least 0 and at most :math:`\lVert \Delta\rVert`; by default :math:`\min(\lVert \Delta\rVert, \sigma)`.
    alpha : float, default=1.0
    domain : float or None
        D, if the density is bounded below only where :math:`\lVert c\rVert^2 \le 2 D^2`; at least ``sigma``.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> from skspo import L1Ball
    >>> from polyhedral_steps import direction_excess_bound
    >>> round(direction_excess_bound(L1Ball(), [0.1, 0.0], [0.0, 0.2], sigma=1.0), 6)
    0.001267
    """
    mean = rows("c_bar", c_bar)[0]
    d = mean.size
    geometry = region_geometry(region, d)
    region = check_region(region, d)
    U = directions_of(region, d)
    step = rows("delta", delta, d)[0] @ U
    check_positive("sigma", sigma)
    check_share("alpha", alpha)
    kappa = float(np.linalg.norm(step))
    if kappa == 0:
        return 0.0
    part = min(kappa, sigma) if kappa_tilde is None else kappa_tilde
    number(above=0.0, high=kappa)("kappa_tilde", part)
    v = step / kappa
    along = float(mean @ U @ v)
    across = float(np.linalg.norm(mean @ U - along * v))
    factor = 1.0
    if domain is not None:
        number(sigma)("domain", domain, "sigma may not exceed it")
        number(0.0, domain)("kappa_tilde", part, "it may not exceed domain")
        if geometry.n_dim > 1:
            factor = float(gammainc((geometry.n_dim - 1) / 2.0, 0.5 * (domain / sigma) ** 2))
    direction = region.to_min((U @ v)[None])
    extent = float(((region.solve_min(-direction) - region.solve_min(direction)) @ direction.T)[0, 0])
    xi = (1.0 + 2.0 * np.sqrt(3.0) * float(geometry.diameter) / float(geometry.width)) ** (1 - geometry.n_dim)
    decay = np.exp(-(3.0 * part**2 + 3.0 * along**2 + across**2) / (2.0 * sigma**2))
    return float(alpha * part * kappa * decay / (4.0 * np.sqrt(2.0 * np.pi) * sigma) * factor * xi * extent)
