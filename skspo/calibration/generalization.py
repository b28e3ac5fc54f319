"""From training risk to true risk: Rademacher complexity, generalization bounds, sample sizes.

Conventions
-----------
    R_n(H) = E sup_{g in H} (1/n) sum_i sigma_i.g(x_i)       sigma_i in {-1, 1}^d, independent
    H = {x -> B x : |B|_F <= radius}  or  {x -> B x : sum_jk |B_jk| <= radius};  an intercept is a feature equal to 1

The SPO+ loss is 2 D_S-Lipschitz in the prediction and lies between 0 and b = D_S sup |c - 2 g(x)|, so by the vector
contraction inequality, for all g in H at once, with probability at least 1 - delta,

    |true risk - training risk| <= 4 sqrt(2) D_S R_n(H) + b sqrt(2 log(1/delta) / n).

(The usual two-sided bound has sqrt(log(2/delta) / (2 n)), which is smaller for delta < 1/2.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from .._utils.params import integer, one_of
from .._utils.types import RandomState
from ._checks import check_count, check_delta, check_levels, check_nonnegative, check_positive
from .functions import CalibrationFunction, LeastSquaresCalibration, PolyhedralCalibration


def _check_class(X: ArrayLike, radius: float, n_outputs: int, norm: str) -> np.ndarray:
    check_positive("radius", radius)
    check_count("n_outputs", n_outputs)
    one_of("frobenius", "l1")("norm", norm)
    return check_array(X, dtype=np.float64, input_name="X")


def rademacher_bound(X: ArrayLike, radius: float, n_outputs: int, *, norm: str = "frobenius") -> float:
    r"""Upper bound on the multivariate Rademacher complexity of a linear class, on given features.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Features; add a column of ones if the class has an intercept.
    radius : float
        Radius of the ball of coefficients.
    n_outputs : int
        Number d of costs.
    norm : {"frobenius", "l1"}
        Norm of the coefficients: Euclidean, or the sum of absolute values.

    Returns
    -------
    bound : float
        With the radius r it is :math:`r \sqrt{d \sum_i \lVert x_i\rVert^2} / n` for the Frobenius norm, and
        :math:`r \sqrt{2 \log(2 d p)} \max_k \lVert X_k\rVert_2 / n`, over columns k, for the l1 norm.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo.calibration import rademacher_bound
    >>> rademacher_bound(np.ones((100, 1)), radius=2.0, n_outputs=4)
    0.4
    """
    X_arr = _check_class(X, radius, n_outputs, norm)
    n, p = X_arr.shape
    if norm == "frobenius":
        return float(radius * np.sqrt(n_outputs) * np.linalg.norm(X_arr) / n)
    return float(radius * np.sqrt(2.0 * np.log(2.0 * n_outputs * p)) * np.linalg.norm(X_arr, axis=0).max() / n)


class Estimate(NamedTuple):
    """A Monte-Carlo estimate and its standard error."""

    value: float
    error: float


def rademacher_monte_carlo(
    X: ArrayLike,
    radius: float,
    n_outputs: int,
    *,
    norm: str = "frobenius",
    n_draws: int = 200,
    random_state: RandomState = None,
) -> Estimate:
    r"""Monte-Carlo estimate of the multivariate Rademacher complexity of a linear class, on given features.

    Parameters
    ----------
    X, radius, n_outputs, norm
        As for :func:`rademacher_bound`.
    n_draws : int, default=200
        Number of draws of the signs.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    estimate : Estimate
        Value and standard error.  The supremum over the ball is a norm of :math:`\sum_i \sigma_i x_i^\top`, which is
        computed exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo.calibration import rademacher_monte_carlo
    >>> rademacher_monte_carlo(np.eye(4), radius=2.0, n_outputs=4, n_draws=10, random_state=0)
    Estimate(value=2.0, error=0.0)
    """
    X_arr = _check_class(X, radius, n_outputs, norm)
    integer(2)("n_draws", n_draws)
    rng = check_random_state(random_state)
    values = np.empty(n_draws)
    for i in range(n_draws):
        signs = rng.randint(0, 2, size=(X_arr.shape[0], n_outputs)) * 2.0 - 1.0
        moment = signs.T @ X_arr
        values[i] = np.linalg.norm(moment) if norm == "frobenius" else np.abs(moment).max()
    values *= radius / X_arr.shape[0]
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(n_draws)))


def spo_plus_range(diameter: float, cost_bound: float, prediction_bound: float) -> float:
    r"""Upper end b of the range of the SPO+ loss.

    .. math:: b = D_S (\sup \lVert c\rVert + 2 \sup \lVert g(x)\rVert) \ge D_S \sup \lVert c - 2 g(x)\rVert

    Parameters
    ----------
    diameter : float
        Diameter of the region, or an upper bound.
    cost_bound, prediction_bound : float
        Bounds on the length of costs and of predictions.

    Returns
    -------
    b : float
        The loss is between 0 and b.

    Examples
    --------
    >>> from skspo.calibration import spo_plus_range
    >>> spo_plus_range(2.0, cost_bound=1.0, prediction_bound=0.0)
    2.0
    """
    check_nonnegative("diameter", diameter)
    check_nonnegative("cost_bound", cost_bound)
    check_nonnegative("prediction_bound", prediction_bound)
    return float(diameter) * (cost_bound + 2.0 * prediction_bound)


def generalization_bound(rademacher: float, diameter: float, loss_range: float, n_samples: int, delta: float) -> float:
    r"""Largest difference of true and training SPO+ risk over the whole class, with probability 1 - delta.

    .. math:: 4 \sqrt{2} \, D_S R_n(H) + b \sqrt{2 \log(1/\delta) / n}

    Parameters
    ----------
    rademacher : float
        Multivariate Rademacher complexity :math:`R_n(H)` of the class for ``n_samples`` samples, or an upper bound.
    diameter : float
        Diameter :math:`D_S` of the region; the SPO+ loss is Lipschitz with the constant :math:`2 D_S`.
    loss_range : float
        Upper end b of the range of the SPO+ loss, see :func:`spo_plus_range`.
    n_samples : int
    delta : float
        Probability of failure, below 1/2.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> from skspo.calibration import generalization_bound
    >>> round(generalization_bound(0.01, 1.0, 2.0, 10_000, 0.05), 6)
    0.105523
    """
    check_nonnegative("rademacher", rademacher)
    check_nonnegative("diameter", diameter)
    check_nonnegative("loss_range", loss_range)
    check_count("n_samples", n_samples)
    check_delta(delta)
    return 4.0 * sqrt(2.0) * float(diameter) * rademacher + loss_range * sqrt(2.0 * log(1.0 / delta) / n_samples)


@dataclass(frozen=True)
class SampleComplexity:
    r"""Excess SPO risk of the minimizer of the training SPO+ risk, as a function of the sample size.

    It holds if :math:`\mathbb{E}[c \mid x]` is in the class H, :math:`R_n(H) \le C' / \sqrt{n}`, the SPO+ loss is at
    most ``loss_range`` on H, and the conditional distributions are in the class of ``calibration``.

    Parameters
    ----------
    calibration : CalibrationFunction
        Bound for the SPO+ loss.  A :class:`PolyhedralCalibration` must have a ``domain``: a density bounded below on
        the whole space means unbounded costs, for which the loss has no finite range.
    diameter : float
        Diameter of the region, or an upper bound.
    complexity : float
        The constant :math:`C'`.
    loss_range : float
        b, see :func:`spo_plus_range`.
    delta : float
        Probability of failure, below 1/2.

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from skspo.calibration import SampleComplexity, StronglyConvexCalibration
    >>> delta = StronglyConvexCalibration.from_region(Ellipsoid(), n_dim=3, beta=1.0)
    >>> plan = SampleComplexity(delta, diameter=2.0, complexity=1.0, loss_range=6.0, delta=0.05)
    >>> n = plan.sample_size(0.1)
    >>> bool(plan.bound(n) <= 0.1 < plan.bound(n - 1))
    True
    """

    calibration: CalibrationFunction
    diameter: float
    complexity: float
    loss_range: float
    delta: float

    def __post_init__(self) -> None:
        check_calibration(self.calibration)
        check_positive("diameter", self.diameter)
        check_nonnegative("complexity", self.complexity)
        check_positive("loss_range", self.loss_range)
        check_delta(self.delta)

    @property
    def surrogate_constant(self) -> float:
        r"""The excess SPO+ risk is at most this over :math:`\sqrt{n}`: twice the generalization bound."""
        deviation = self.loss_range * sqrt(2.0 * log(1.0 / self.delta))
        return 2.0 * (4.0 * sqrt(2.0) * float(self.diameter) * self.complexity + deviation)

    def excess_surrogate(self, n_samples: int) -> float:
        """Bound on the excess SPO+ risk with ``n_samples`` samples."""
        check_count("n_samples", n_samples)
        return self.surrogate_constant / sqrt(n_samples)

    def bound(self, n_samples: int) -> float:
        """Bound on the excess SPO risk with ``n_samples`` samples."""
        return float(self.calibration.inverse(self.excess_surrogate(n_samples)))

    def sample_size(self, eps: float) -> int:
        """Smallest number of samples (up to rounding) for which the bound on the excess SPO risk is at most ``eps``."""
        level = float(check_levels("eps", eps, allow_zero=False))
        target = float(self.calibration.biconjugate(level))
        if target == 0.0 or not np.isfinite((self.surrogate_constant / target) ** 2):
            raise OverflowError("No finite number of samples is enough: the constant of the bound is too small.")
        n = max(ceil((self.surrogate_constant / target) ** 2), 1)
        # Correct the rounding of the division, in steps that change a float.
        step = max(1, n >> 45)
        while self.bound(n) > level:
            n += step
        while step == 1 and n > 1 and self.bound(n - 1) <= level:
            n -= 1
        return n

    @property
    def rate(self) -> tuple[float, float]:
        r"""C and the exponent a of the corollaries: the bound is at most :math:`C \sqrt{\log(1/\delta)} / n^a`.

        a is 1/4 for polyhedra and 1/2 for strongly convex level sets.  C does not depend on delta or n.
        """
        uniform = 4.0 * sqrt(2.0) * float(self.diameter) * self.complexity / sqrt(log(2.0))
        spread = 2.0 * (uniform + self.loss_range * sqrt(2.0))
        constant = self.calibration.constant
        ratio = spread / constant if constant > 0 else np.inf
        if isinstance(self.calibration, PolyhedralCalibration):
            # The inverse of the envelope at height h is at most h + sqrt(h D_S M).
            return ratio + sqrt(ratio * self.calibration.knee) * log(2.0) ** -0.25, 0.25
        return ratio, 0.5


def check_calibration(calibration: CalibrationFunction) -> None:
    """Raise an error if this is not a bound for the SPO+ loss, or if its class of distributions has unbounded costs."""
    if not isinstance(calibration, CalibrationFunction) or isinstance(calibration, LeastSquaresCalibration):
        raise TypeError(f"calibration must be a bound for the SPO+ loss, got {calibration!r}.")
    if isinstance(calibration, PolyhedralCalibration) and calibration.domain is None:
        raise ValueError(
            "With a density that is bounded below by a normal one everywhere, costs are unbounded and the SPO+ loss "
            "has no finite range: give PolyhedralCalibration a domain, the bounded version of the class."
        )
