"""The two examples of the theory: a distribution that is not calibrated, and one that shows the bound to be tight.

Conventions
-----------
    negative    L1Ball in the plane, c ~ (N((9 eps, 0), sigma^2 I) + N((-7 eps, 0), sigma^2 I)) / 2, c_hat = (0, eps)
    tightness   conv of the sphere of radius a in the first d - 1 coordinates and of +-b e_d, c ~ N(-e e_d, sigma^2 I),
                c_hat = e e_d
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from polyhedral_steps import partial_mean
from scipy.integrate import quad
from scipy.stats import chi

from skspo import L1Ball
from skspo._utils.params import integer
from skspo.calibration import CertifiedFloat, diameter, relative_width
from skspo.calibration._checks import check_positive
from skspo.regions.base import Region


class DoubleCone(Region):
    """Convex hull of a sphere in the first d - 1 coordinates and of two points on the last axis.

    Parameters
    ----------
    a : float, default=1.0
        Radius of the sphere.
    b : float, default=1.0
        Distance of the two points from the origin.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.

    Examples
    --------
    >>> from paper_examples import DoubleCone
    >>> DoubleCone(2.0, 3.0).argmin([[0.0, 1.0, 0.1], [0.0, 0.1, 1.0]])
    array([[-0., -2.,  0.],
           [ 0.,  0., -3.]])
    """

    def __init__(self, a: float = 1.0, b: float = 1.0, *, sense: str = "min") -> None:
        self.a = a
        self.b = b
        self.sense = sense

    def _prepare(self, d: int) -> tuple[float, float]:
        integer(2)("the number of costs of DoubleCone", d)
        check_positive("a", self.a)
        check_positive("b", self.b)
        return float(self.a), float(self.b)

    def _argmin(self, C: np.ndarray, data: tuple[float, float]) -> np.ndarray:
        a, b = data
        size = np.linalg.norm(C[:, :-1], axis=1)
        apex = b * np.abs(C[:, -1]) >= a * size
        W = np.zeros_like(C)
        W[:, :-1] = np.where(apex[:, None], 0.0, -a * C[:, :-1] / np.where(size > 0, size, 1.0)[:, None])
        W[:, -1] = np.where(apex, np.where(C[:, -1] < 0, b, -b), 0.0)
        return W

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """No rows: the double cone varies in every direction."""
        return np.zeros((0, self.resolve_dim(n_dim)))


@diameter.register
def _(region: DoubleCone, n_dim: int) -> CertifiedFloat:
    return CertifiedFloat(2.0 * max(region._data(n_dim)))


@relative_width.register
def _(region: DoubleCone, n_dim: int) -> CertifiedFloat:
    """Distance of opposite sides of the rhombus turned around the axis."""
    a, b = region._data(n_dim)
    return CertifiedFloat(2.0 * a * b / float(np.hypot(a, b)))


@dataclass(frozen=True)
class NegativeExample:
    """A symmetric distribution for which a vanishing excess SPO+ risk leaves the excess SPO risk as it is.

    Parameters
    ----------
    eps : float
        Excess SPO risk of the prediction.
    sigma : float
        Standard deviation of the two normals; as it goes to 0, so does the excess SPO+ risk.

    Examples
    --------
    >>> from paper_examples import NegativeExample
    >>> [NegativeExample(1.0, sigma).excess_spo_plus() < 1e-6 for sigma in (1.0, 0.1)]
    [False, True]
    """

    eps: float
    sigma: float

    def __post_init__(self) -> None:
        check_positive("eps", self.eps)
        check_positive("sigma", self.sigma)

    @property
    def region(self) -> L1Ball:
        """The unit l1 ball."""
        return L1Ball()

    @property
    def c_bar(self) -> np.ndarray:
        """Mean of the costs."""
        return np.array([self.eps, 0.0])

    @property
    def c_hat(self) -> np.ndarray:
        """The prediction."""
        return np.array([0.0, self.eps])

    def sample(self, n_samples: int, random_state: np.random.RandomState) -> np.ndarray:
        """Draws of the costs."""
        centers = np.where(random_state.randint(0, 2, size=n_samples) == 1, 9.0, -7.0) * self.eps
        C = self.sigma * random_state.normal(size=(n_samples, 2))
        C[:, 0] += centers
        return C

    def excess_spo(self) -> float:
        """Excess SPO risk of the prediction."""
        return self.eps

    def excess_spo_plus(self) -> float:
        r"""Excess SPO+ risk of the prediction.

        In the coordinates :math:`(c_1 \pm c_2) / \sqrt{2}` the ball is a square of side :math:`\sqrt{2}`, and
        :math:`\Delta` moves the second one only, by :math:`-\sqrt{2} \epsilon`.  The decision changes where that
        coordinate changes its sign.
        """
        kappa = np.sqrt(2.0) * self.eps
        means = np.array([-9.0, 7.0]) * self.eps / np.sqrt(2.0)  # of minus the second coordinate
        low, zero = np.array(-2.0 * kappa), np.array(0.0)
        return float(np.sqrt(2.0) * np.mean([partial_mean(low, zero, low, mean, self.sigma) for mean in means]))


@dataclass(frozen=True)
class TightnessExample:
    """Normal costs on a double cone: the excess SPO+ risk is as small as the polyhedral bound says, up to a constant.

    Parameters
    ----------
    a, b : float
        Radius of the sphere and distance of the two points.
    n_dim : int
        Dimension d, at least 2.
    shift : float
        Half the distance e of prediction and mean.
    sigma : float, default=1.0
        Standard deviation of the costs.

    Examples
    --------
    >>> from paper_examples import TightnessExample
    >>> example = TightnessExample(a=1.0, b=2.0, n_dim=3, shift=1e-3)
    >>> round(example.excess_spo_plus() / example.limit(), 3)
    1.0
    """

    a: float
    b: float
    n_dim: int
    shift: float
    sigma: float = 1.0

    def __post_init__(self) -> None:
        for name in ("a", "b", "shift", "sigma"):
            check_positive(name, getattr(self, name))
        integer(2)("n_dim", self.n_dim)

    @property
    def region(self) -> DoubleCone:
        """The double cone."""
        return DoubleCone(self.a, self.b)

    @property
    def c_bar(self) -> np.ndarray:
        """Mean of the costs."""
        return np.r_[np.zeros(self.n_dim - 1), -self.shift]

    @property
    def c_hat(self) -> np.ndarray:
        """The prediction."""
        return -self.c_bar

    def sample(self, n_samples: int, random_state: np.random.RandomState) -> np.ndarray:
        """Draws of the costs."""
        return self.c_bar + self.sigma * random_state.normal(size=(n_samples, self.n_dim))

    def excess_spo(self) -> float:
        """Excess SPO risk of the prediction: :math:`2 b e`."""
        return 2.0 * self.b * self.shift

    def excess_spo_plus(self) -> float:
        r"""Excess SPO+ risk of the prediction, by quadrature over the length of the first d - 1 costs.

        Given that length r the decision changes at :math:`\xi = \pm a r / b`, by b each time, and
        :math:`\lVert \Delta\rVert = 2 e`.
        """
        kappa = 2.0 * self.shift

        def given(length: float) -> float:
            zeta = np.array([-1.0, 1.0]) * self.a * length / self.b
            start = zeta - 2.0 * kappa
            return float(self.b * partial_mean(start, zeta, start, -self.shift, self.sigma).sum())

        law = chi(self.n_dim - 1, scale=self.sigma)
        top = float(law.isf(1e-16))
        return float(quad(lambda r: given(r) * law.pdf(r), 0.0, top, limit=400, epsabs=0.0, epsrel=1e-10)[0])

    def limit(self) -> float:
        r"""What the excess SPO+ risk is for small e.

        .. math:: \frac{16 \, b \, e^2}{\sqrt{2 \pi \sigma^2}} \left(\frac{b^2}{a^2 + b^2}\right)^{(d-1)/2}
        """
        shrink = (self.b**2 / (self.a**2 + self.b**2)) ** ((self.n_dim - 1) / 2.0)
        return float(16.0 * self.b * self.shift**2 / np.sqrt(2.0 * np.pi * self.sigma**2) * shrink)
