"""Calibration functions: bounds on the excess SPO risk in terms of the excess surrogate risk.

Conventions
-----------
    delta(eps)       a lower bound on the excess surrogate risk of every prediction whose excess SPO risk is >= eps
    delta**(eps)     its convex envelope, for which Jensen's inequality averages over x
    inverse(excess)  the largest eps with delta**(eps) <= excess: an upper bound on the excess SPO risk

All of them are (constant) x (shape): min(eps^2 / k, eps) with k = D_S M for polyhedra, eps for strongly convex level
sets, eps^2 / D_S^2 for least squares.  The constants are products of powers with the dimension as exponent, so they are
computed as logarithms; one that underflows is 0, and the bound is then trivial.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, log, log1p, pi, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc

from .._utils.params import integer, number
from ..regions.base import Region
from ..regions.check import check_region
from ._checks import check_count, check_levels, check_positive, check_share
from .geometry import diameter, directions_of, need, region_geometry, strong_convexity

#: one number, or an array of the shape of the argument
Levels: TypeAlias = np.float64 | np.ndarray


class CalibrationFunction:
    """Lower bound on a calibration function; called with eps, it returns the bound.

    Subclasses give the logarithm of the constant and the shape.
    """

    #: name of the surrogate loss
    surrogate: str = "SPO+"

    @property
    def log_constant(self) -> float:
        """Natural logarithm of the constant; -infinity if it is zero."""
        raise NotImplementedError

    @property
    def constant(self) -> float:
        """The constant; 0 if it underflows."""
        return exp(self.log_constant)

    def assumptions(self) -> list[str]:
        """Assumptions on the distribution of costs given features, and on the region."""
        raise NotImplementedError

    def _shape(self, eps: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _envelope(self, eps: np.ndarray) -> np.ndarray:
        return self._shape(eps)  # of a convex shape

    def _envelope_inverse(self, height: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def __call__(self, eps: ArrayLike) -> Levels:
        """Smallest excess surrogate risk that an excess SPO risk of ``eps`` > 0 allows."""
        return self.constant * self._shape(check_levels("eps", eps, allow_zero=False))

    def biconjugate(self, eps: ArrayLike) -> Levels:
        """Convex envelope of the function, at ``eps``, which is not negative."""
        return self.constant * self._envelope(check_levels("eps", eps, allow_zero=True))

    def inverse(self, excess: ArrayLike) -> Levels:
        """Largest excess SPO risk that is compatible with the given excess surrogate risk."""
        excess_arr = check_levels("excess_surrogate_risk", excess, allow_zero=True)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            height = np.where(excess_arr == 0, 0.0, excess_arr / np.float64(self.constant))
        return self._envelope_inverse(height)[()]


@dataclass(frozen=True)
class PolyhedralCalibration(CalibrationFunction):
    r"""SPO+ on a polyhedron: quadratic for small excess risks, then linear.

    .. math:: \delta(\epsilon) = K \min\left(\frac{\epsilon^2}{D_S M}, \epsilon\right), \quad
        K = \frac{\alpha \, \Xi}{4 \sqrt{2 \pi} \, e^{3 (1 + \beta^2) / 2}}, \quad
        \Xi = \left(1 + 2 \sqrt{3} \, \frac{D_S}{d_S}\right)^{1-k}

    It holds for conditional distributions that are continuous, centrally symmetric about their mean :math:`\bar c`, and
    have a density of at least :math:`\alpha` times that of :math:`N(\bar c, \sigma^2 I)`, for some :math:`\sigma \le M`
    with :math:`\lVert \bar c\rVert \le \beta \sigma`.  With ``domain`` D the density is bounded below only where
    :math:`\lVert c\rVert^2 \le 2 D^2`, :math:`\sigma \le D`, and K is multiplied by

    .. math:: \gamma\left(\tfrac{k-1}{2}, \tfrac{D^2}{2 \min(D, M)^2}\right) / \, \Gamma\left(\tfrac{k-1}{2}\right)

    Parameters
    ----------
    diameter, width : float
        Diameter :math:`D_S` (or an upper bound) and width :math:`d_S` (or a lower bound), in the affine hull.
    n_dim : int
        Dimension k of the affine hull.
    M : float
        Upper bound on :math:`\sigma`, at least 1.
    alpha : float
        Share of the normal density, above 0 and at most 1.
    beta : float
        Bound on :math:`\lVert \bar c\rVert / \sigma`, positive.
    domain : float or None
        D, if the density is bounded below only on the ball of radius :math:`\sqrt{2} D` around zero.

    Notes
    -----
    For a region inside a hyperplane the width in the surrounding space is 0 and the bound would be trivial.  Costs act
    on such a region through their projection on its directions only, and the projection of a distribution of the class
    (``domain=None``) is in the class again, in k dimensions and with the same M, alpha and beta.  With ``domain`` the
    condition is on the distribution of the projected costs.

    The proof passes to the limit, so the bound also holds for convex regions that are not polyhedra, at predictions
    and means whose optimal decision is unique.

    Examples
    --------
    >>> from skspo import Simplex
    >>> from skspo.calibration import PolyhedralCalibration
    >>> delta = PolyhedralCalibration.from_region(Simplex(), n_dim=3, M=1.0, alpha=1.0, beta=1.0)
    >>> float(round(delta(0.1) * 1e6, 3))
    7.022
    >>> float(round(delta.inverse(delta(0.1)), 12))
    0.1
    """

    diameter: float
    width: float
    n_dim: int
    M: float
    alpha: float = 1.0
    beta: float = 1.0
    domain: float | None = None

    def __post_init__(self) -> None:
        check_positive("diameter", self.diameter, "the region must have more than one decision")
        check_positive("width", self.width, "a degenerate region: use the width in its affine hull")
        if self.width > self.diameter * (1.0 + 1e-9):
            raise ValueError(f"width {self.width} is above diameter {self.diameter}: no region has both.")
        check_count("n_dim", self.n_dim)
        number(1.0)("M", self.M)
        check_share("alpha", self.alpha, "no density is above alpha > 1 times another")
        check_positive("beta", self.beta)
        if self.domain is not None:
            check_positive("domain", self.domain)

    @classmethod
    def from_region(
        cls,
        region: Region,
        *,
        M: float,
        alpha: float = 1.0,
        beta: float = 1.0,
        domain: float | None = None,
        n_dim: int | None = None,
    ) -> PolyhedralCalibration:
        """Bound for a region, with its diameter, relative width and reduced dimension."""
        geometry = region_geometry(region, n_dim)
        if geometry.n_dim == 0:
            raise ValueError(f"{region!r} has only one decision, so that there is no bound.")
        if geometry.width <= 0:
            raise ValueError(f"{region!r} is degenerate: no positive lower bound on its relative width is known.")
        return cls(geometry.diameter, geometry.width, geometry.n_dim, M, alpha, beta, domain)

    @property
    def xi(self) -> float:
        r"""The factor :math:`\Xi = (1 + 2 \sqrt{3} \, D_S / d_S)^{1-k}`."""
        return exp(self._log_xi)

    @property
    def _log_xi(self) -> float:
        return (1 - self.n_dim) * log1p(2.0 * sqrt(3.0) * float(self.diameter) / float(self.width))

    @property
    def domain_factor(self) -> float:
        """The factor for a density that is bounded below on a ball only; 1 without ``domain``."""
        # In one dimension there is a single transition, at zero, and it lies inside every ball.
        if self.domain is None or self.n_dim == 1:
            return 1.0
        # sigma is at most D and at most M, and the factor decreases in sigma.
        return float(gammainc((self.n_dim - 1) / 2.0, 0.5 * (self.domain / min(self.domain, self.M)) ** 2))

    @property
    def log_constant(self) -> float:
        """Natural logarithm of the constant."""
        factor = self.domain_factor
        if factor == 0.0:
            return -np.inf
        return log(self.alpha) + self._log_xi + log(factor) - log(4.0 * sqrt(2.0 * pi)) - 1.5 * (1.0 + self.beta**2)

    @property
    def knee(self) -> float:
        """:math:`D_S M`, where the quadratic part ends."""
        return float(self.diameter) * self.M

    def assumptions(self) -> list[str]:
        """Assumptions of the bound."""
        where = "for every c" if self.domain is None else f"wherever |c|^2 <= {2 * self.domain**2:g}"
        most = self.M if self.domain is None else min(self.M, self.domain)
        return [
            "the distribution of costs given features is continuous and centrally symmetric about its mean cbar",
            f"its density is at least {self.alpha:g} times that of N(cbar, sigma^2 I) {where}, "
            f"for some sigma <= {most:g} with |cbar| <= {self.beta:g} sigma, "
            f"in the {self.n_dim} directions in which decisions vary",
            f"the region is convex with diameter at most {float(self.diameter):g} and width at least "
            f"{float(self.width):g} in its affine hull",
        ]

    def _shape(self, eps: np.ndarray) -> np.ndarray:
        return np.minimum(eps * (eps / self.knee), eps)

    def _envelope(self, eps: np.ndarray) -> np.ndarray:
        # The line of slope 1 touches the parabola at half the knee.
        return np.where(eps <= self.knee / 2.0, eps * (eps / self.knee), eps - self.knee / 4.0)

    def _envelope_inverse(self, height: np.ndarray) -> np.ndarray:
        return np.where(height <= self.knee / 4.0, np.sqrt(height * self.knee), height + self.knee / 4.0)


@dataclass(frozen=True)
class StronglyConvexCalibration(CalibrationFunction):
    r"""SPO+ on a level set of a smooth and strongly convex function: a linear function.

    .. math:: \delta(\epsilon) = \frac{(\mu / L)^{9/2}}{4 (1 + \beta^2)} \, \epsilon

    It is multiplied by ``alpha`` if that is given.  It holds for conditional distributions that are rotationally
    symmetric about their mean :math:`\bar c` in the norm :math:`\lVert \cdot \rVert_*` dual to the A-norm, with

    .. math:: \mathbb{E} \lVert c - \bar c\rVert_*^2 \le \beta^2 \lVert \bar c\rVert_*^2

    or, if ``alpha`` is given, :math:`P(\lVert c - \bar c\rVert_* \le \beta \lVert \bar c\rVert_*) \ge \alpha`.  In a
    region with equalities all norms are those of the projected costs.

    Parameters
    ----------
    mu, L : float
        Strong convexity and smoothness on the region, in the A-norm.
    n_dim : int
        Dimension of the affine hull, at least 2: in one dimension the statement is false (docs/errata.md).
    beta : float
        Bound on the relative spread of costs, positive.
    alpha : float or None
        None for the bound on the second moment; a probability for the other class.

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from skspo.calibration import StronglyConvexCalibration
    >>> delta = StronglyConvexCalibration.from_region(Ellipsoid(), n_dim=3, beta=1.0)
    >>> float(round(delta(0.1), 12))
    0.0125
    """

    mu: float
    L: float
    n_dim: int
    beta: float = 1.0
    alpha: float | None = None

    def __post_init__(self) -> None:
        check_positive("mu", self.mu, "the region must be a level set of a strongly convex function")
        check_positive("L", self.L, "the function must be smooth on the region")
        if self.mu > self.L * (1.0 + 1e-12):
            raise ValueError(f"mu {self.mu} is above L {self.L}: no function has both.")
        integer(2)("n_dim", self.n_dim, "in one dimension the SPO+ risk is not calibrated in this class")
        check_positive("beta", self.beta)
        if self.alpha is not None:
            check_share("alpha", self.alpha, "a probability")

    @classmethod
    def from_region(
        cls,
        region: Region,
        *,
        beta: float = 1.0,
        alpha: float | None = None,
        A: ArrayLike | None = None,
        n_dim: int | None = None,
    ) -> StronglyConvexCalibration:
        """Bound for a region that offers ``strong_convexity``, in the 2-norm or the A-norm."""
        need(region, "strong_convexity", "equalities")
        d = region.resolve_dim(n_dim)
        region = check_region(region, d)
        constants = strong_convexity(region, d, A)
        if not np.isfinite(constants.L):
            raise ValueError(
                f"{region!r} is not a level set of a smooth function: L is infinite, and there is no linear bound."
            )
        return cls(constants.mu, constants.L, directions_of(region, d).shape[1], beta, alpha)

    @property
    def log_constant(self) -> float:
        """Natural logarithm of the constant."""
        ratio = min(log(self.mu) - log(self.L), 0.0)
        return 4.5 * ratio - log(4.0) - log1p(self.beta**2) + (0.0 if self.alpha is None else log(self.alpha))

    def assumptions(self) -> list[str]:
        """Assumptions of the bound."""
        spread = (
            f"E|c - cbar|^2 <= {self.beta:g}^2 |cbar|^2"
            if self.alpha is None
            else f"P(|c - cbar| <= {self.beta:g} |cbar|) >= {self.alpha:g}"
        )
        return [
            "the distribution of costs given features is rotationally symmetric about its mean cbar",
            f"{spread}, in the {self.n_dim} directions in which decisions vary",
            f"the region is a level set of a function that is {self.mu:g}-strongly convex and {self.L:g}-smooth on it",
        ]

    def _shape(self, eps: np.ndarray) -> np.ndarray:
        return eps

    def _envelope_inverse(self, height: np.ndarray) -> np.ndarray:
        return height


@dataclass(frozen=True)
class LeastSquaresCalibration(CalibrationFunction):
    r"""Squared error: :math:`\epsilon^2 / D_S^2`, for every distribution with a finite second moment.

    Parameters
    ----------
    diameter : float
        Diameter of the region, or an upper bound.

    Examples
    --------
    >>> from skspo import Simplex
    >>> from skspo.calibration import LeastSquaresCalibration
    >>> float(round(LeastSquaresCalibration.from_region(Simplex(), n_dim=3)(0.1), 6))
    0.005
    """

    diameter: float
    surrogate: str = field(default="least squares", init=False)

    def __post_init__(self) -> None:
        check_positive("diameter", self.diameter, "the region must have more than one decision")

    @classmethod
    def from_region(cls, region: Region, *, n_dim: int | None = None) -> LeastSquaresCalibration:
        """Bound for a region with a diameter."""
        d = region.resolve_dim(n_dim)
        return cls(diameter(check_region(region, d), d))

    @property
    def log_constant(self) -> float:
        """Natural logarithm of :math:`1 / D_S^2`."""
        return -2.0 * log(float(self.diameter))

    def assumptions(self) -> list[str]:
        """Assumptions of the bound."""
        return ["costs have a finite second moment", f"the region has diameter at most {float(self.diameter):g}"]

    def _shape(self, eps: np.ndarray) -> np.ndarray:
        return eps * eps

    def _envelope_inverse(self, height: np.ndarray) -> np.ndarray:
        return np.sqrt(height)


def excess_spo_risk(excess_surrogate_risk: ArrayLike, calibration: CalibrationFunction) -> Levels:
    """Upper bound on the excess SPO risk that an excess surrogate risk implies.

    Parameters
    ----------
    excess_surrogate_risk : float or array-like
        How far the surrogate's risk is from the best over all predictors, nonnegative.
    calibration : CalibrationFunction
        Bound for a region and a class of distributions.

    Returns
    -------
    bound : float or ndarray
        The excess SPO risk is at most this; infinite if the bound is trivial.

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from skspo.calibration import StronglyConvexCalibration, excess_spo_risk
    >>> delta = StronglyConvexCalibration.from_region(Ellipsoid(), n_dim=3, beta=1.0)
    >>> float(round(excess_spo_risk(0.01, delta), 12))
    0.08
    """
    return calibration.inverse(excess_surrogate_risk)


def radial_calibration_constant(c_bar_norm: float, radii: ArrayLike, mu: float, L: float, n_dim: int) -> float:
    r"""Slope of the calibration bound for one rotationally symmetric distribution.

    .. math:: \delta(\epsilon) \ge \mathbb{E}\left[\frac{s \min(s, t)}{t^2 + s t}\right]
        \frac{\mu^{9/2}}{2 L^{9/2}} \, \epsilon, \quad s = \lVert \bar c\rVert, \quad t = \lVert c - \bar c\rVert

    Parameters
    ----------
    c_bar_norm : float
        s, positive.
    radii : array-like
        Values of t, equally likely, positive.
    mu, L : float
        Strong convexity and smoothness of the function whose level set the region is.
    n_dim : int
        Dimension of the affine hull, at least 2.

    Returns
    -------
    slope : float

    Examples
    --------
    >>> from skspo.calibration import radial_calibration_constant
    >>> radial_calibration_constant(1.0, [1.0], 2.0, 2.0, 3)
    0.25
    """
    check_positive("c_bar_norm", c_bar_norm)
    s = float(c_bar_norm)
    t = check_levels("radii", radii, allow_zero=False)
    check_positive("mu", mu)
    number(mu)("L", L, "no function has mu > L")
    integer(2)("n_dim", n_dim)
    return float((np.minimum(s, t) * s / (t * t + s * t)).mean() * (mu / L) ** 4.5 / 2.0)
