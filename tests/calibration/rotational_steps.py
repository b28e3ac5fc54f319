"""Rotationally symmetric costs: the averages behind the bound for strongly convex level sets.

Conventions
-----------
    costs in coordinates in which the dual norm is the 2-norm;  s = |cbar|,  t = |c - cbar|,  k dimensions
    c = cbar + t u with u uniform on the unit sphere; its cosine x with a fixed axis has density ~ (1 - x^2)^((k-3)/2)

By symmetry E|c + zeta| and E[(c + zeta) / |c + zeta|] depend on zeta only through |cbar + zeta|, so everything below is
a function of lengths and is computed by one-dimensional quadrature.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln
from sides import Sides

from skspo._utils.params import integer, number
from skspo.calibration._checks import check_nonnegative, check_positive


def _sphere_average(function: Callable[[float], float], k: int) -> float:
    """Average of a function of the cosine with a fixed axis over the unit sphere in k >= 2 dimensions."""
    # In the angle the density is sin^(k-2), times a constant.
    log_constant = gammaln(k / 2.0) - gammaln((k - 1) / 2.0) - 0.5 * np.log(np.pi)
    value, _ = quad(
        lambda a: function(np.cos(a)) * np.sin(a) ** (k - 2), 0.0, np.pi, limit=400, epsabs=1e-13, epsrel=1e-11
    )
    return float(np.exp(log_constant) * value)


def mean_norm(s: float, t: float, n_dim: int) -> float:
    r"""Mean of :math:`\lVert b + t u\rVert` for a vector b of length s and u uniform on the unit sphere.

    It depends on b through its length only, so that :math:`\lVert \bar c + \zeta\rVert = \lVert \bar c\rVert` gives
    :math:`\mathbb{E} \lVert c + \zeta\rVert = \mathbb{E} \lVert c\rVert`.

    Parameters
    ----------
    s, t : float
        Lengths, nonnegative.
    n_dim : int
        At least 2.

    Returns
    -------
    mean : float

    Examples
    --------
    >>> from rotational_steps import mean_norm
    >>> round(mean_norm(0.0, 2.0, 3), 6)
    2.0
    """
    _check(s, t, n_dim)
    return _sphere_average(lambda x: np.sqrt(max(s * s + 2.0 * s * t * x + t * t, 0.0)), n_dim)


def mean_cosine(s: float, t: float, n_dim: int) -> float:
    r"""Mean cosine of the angle between b and :math:`b + t u`, for a vector b of length s and u uniform on the sphere.

    As a function of s it is :math:`s \zeta(s)` of the paper's notation, and it does not decrease.

    Parameters
    ----------
    s, t : float
        Lengths, s positive.
    n_dim : int
        At least 2.

    Returns
    -------
    mean : float

    Examples
    --------
    >>> import numpy as np
    >>> from rotational_steps import mean_cosine
    >>> round(mean_cosine(1.0, 1.0, 2) * np.pi, 6)
    2.0
    """
    _check(s, t, n_dim)
    check_positive("s", s)

    def cosine(x: float) -> float:
        length = np.sqrt(max(s * s + 2.0 * s * t * x + t * t, 0.0))
        return (s + t * x) / length if length > 0 else 0.0

    return _sphere_average(cosine, n_dim)


def mean_cosine_bound(s: float, t: float, n_dim: int) -> Sides:
    r""":func:`mean_cosine` and its lower bound :math:`s \min(s, t) / (t^2 + s t)`.

    Parameters
    ----------
    s, t : float
        Lengths, positive.
    n_dim : int
        At least 2; the bound is false in one dimension.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from rotational_steps import mean_cosine_bound
    >>> mean_cosine_bound(1.0, 2.0, 3).hold()
    True
    """
    check_positive("t", t)
    value = mean_cosine(s, t, n_dim)
    return Sides(np.asarray(s * min(s, t) / (t * t + s * t)), np.asarray(value), np.asarray(np.inf))


def surrogate_lower_risk(length: float, angle: float, s: float, t: float, n_dim: int) -> float:
    r"""Risk that bounds the SPO+ risk from below, up to a constant.

    .. math:: \mathbb{E}\left[\lVert c + 2 \Delta\rVert - \frac{\langle c, c + 2 \Delta \rangle}{\lVert c\rVert}\right]

    Parameters
    ----------
    length, angle : float
        Length of the prediction :math:`\hat c = \bar c + \Delta` and its angle with :math:`\bar c`.
    s, t : float
        :math:`\lVert \bar c\rVert` and :math:`\lVert c - \bar c\rVert`, positive.
    n_dim : int
        At least 2.

    Returns
    -------
    risk : float
        Nonnegative.

    Examples
    --------
    >>> import numpy as np
    >>> from rotational_steps import surrogate_lower_risk
    >>> abs(surrogate_lower_risk(1.0, 0.0, 1.0, 0.5, 3)) < 1e-9
    True
    """
    check_nonnegative("length", length)
    number(0.0, np.pi)("angle", angle)
    shifted = np.sqrt(max(4.0 * length**2 - 4.0 * length * s * np.cos(angle) + s * s, 0.0))
    drift = 2.0 * mean_cosine(s, t, n_dim) * (length * np.cos(angle) - s)
    return float(mean_norm(shifted, t, n_dim) - mean_norm(s, t, n_dim) - drift)


def least_risky_length(s: float, angle: float) -> float:
    r"""Length of the prediction with the least :func:`surrogate_lower_risk` among those at a given angle with the mean.

    It is s times the cosine of the angle, the foot of the perpendicular from :math:`\bar c`, where
    :math:`\lVert \bar c + 2 \Delta\rVert = \lVert \bar c\rVert`; and 0 for an obtuse angle.

    Parameters
    ----------
    s : float
        :math:`\lVert \bar c\rVert`, positive.
    angle : float
        Between 0 and :math:`\pi`.

    Returns
    -------
    length : float

    Examples
    --------
    >>> from rotational_steps import least_risky_length
    >>> least_risky_length(2.0, 0.0), least_risky_length(2.0, 2.0)
    (2.0, 0.0)
    """
    check_positive("s", s)
    number(0.0, np.pi)("angle", angle)
    return float(s * max(np.cos(angle), 0.0))


def _check(s: float, t: float, n_dim: int) -> None:
    check_nonnegative("s", s)
    check_nonnegative("t", t)
    integer(2)("n_dim", n_dim)
