"""Synthetic data: features, costs and, optionally, the true model.

Conventions
-----------
    X (n, p) features ~ N(0, I)      C (n, d) costs      coef (d, p) or (p,), entries Bernoulli(1/2)
    eps ~ U(1 - noise, 1 + noise)    multiplicative noise, independent of X and of mean one

Every generator returns ``X, C`` and then, in this order, what was asked for: ``coef`` (``return_coef=True``) and
``mean`` (``return_mean=True``), the conditional mean E[c | x] in closed form.  A decision's expected cost is linear in
c, so a predictor that returns ``mean`` makes the best decisions that are possible: it is the reference for excess
risks.

The coefficients define the problem, the rest is sampling.  To draw further samples of the same problem, say a test
set, pass them back: ``make_portfolio(1000, coef=coef)``.  Within a call the order of the draws is fixed (coefficients,
features, noise), and asking for extras does not change the data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit
from sklearn.utils import check_random_state

from ._utils.params import is_integer, is_number
from ._utils.types import RandomState

__all__ = ["make_cost_sensitive_classification", "make_knapsack", "make_portfolio", "make_shortest_path"]


def make_portfolio(
    n_samples: int = 100,
    n_features: int = 5,
    n_assets: int = 50,
    *,
    degree: int = 1,
    noise: float = 0.5,
    coef: ArrayLike | None = None,
    random_state: RandomState = None,
    return_coef: bool = False,
    return_mean: bool = False,
) -> tuple[np.ndarray, ...]:
    r"""Costs of assets whose dependence on the features is a polynomial.

    .. math:: c_j = \left(1 + (1 + b_j^\top x / \sqrt{p})^k\right) \epsilon_j

    with :math:`b_j` the j-th row of the coefficients, :math:`k` the degree and :math:`\epsilon_j` the noise.  At degree
    one a linear model with an intercept contains the truth; the larger the degree, the worse its misspecification.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_features : int, default=5
        Number of features p.
    n_assets : int, default=50
        Number of assets, that is of costs d.
    degree : int, default=1
        Degree of the polynomial, at least one.
    noise : float, default=0.5
        Half-width of the multiplicative noise.  Zero makes the costs a function of the features.
    coef : array-like of shape (n_assets, n_features), default=None
        Coefficients from an earlier call, to sample the same problem again.  None draws new ones.
    random_state : int, RandomState instance or None, default=None
        Pass an int for the same data at every call.
    return_coef : bool, default=False
        Whether to return the coefficients.
    return_mean : bool, default=False
        Whether to return the conditional mean of the costs.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Features.
    C : ndarray of shape (n_samples, n_assets)
        Costs.
    coef : ndarray of shape (n_assets, n_features)
        Coefficients.  Only if ``return_coef``.
    mean : ndarray of shape (n_samples, n_assets)
        Conditional mean :math:`\mathbb{E}[c \mid x]` of every sample.  Only if ``return_mean``.

    References
    ----------
    Liu, H. and Grigas, P. (2021). Risk Bounds and Calibration for a Smart Predict-then-Optimize Method.

    Examples
    --------
    A training and a test set of the same problem:

    >>> from skspo.datasets import make_portfolio
    >>> X, C, coef = make_portfolio(300, degree=4, random_state=0, return_coef=True)
    >>> X_test, C_test = make_portfolio(1000, degree=4, coef=coef, random_state=1)
    >>> C.shape, C_test.shape
    ((300, 50), (1000, 50))
    """
    n, p, d = _check_sizes(n_samples=n_samples, n_features=n_features, n_assets=n_assets)
    degree, noise, rng = _check_draw(degree, noise, random_state)
    B, X = _coef_and_features(coef, (d, p), n, rng)
    mean = 1.0 + (1.0 + X @ B.T / np.sqrt(p)) ** degree
    C = mean * rng.uniform(1.0 - noise, 1.0 + noise, size=(n, d))
    return _pack(X, C, (return_coef, B), (return_mean, mean))


def make_cost_sensitive_classification(
    n_samples: int = 100,
    n_features: int = 5,
    n_classes: int = 10,
    *,
    degree: int = 1,
    noise: float = 0.5,
    coef: ArrayLike | None = None,
    random_state: RandomState = None,
    return_coef: bool = False,
    return_mean: bool = False,
) -> tuple[np.ndarray, ...]:
    r"""Costs of choosing a class when the classes are ordered and being further off costs more.

    A score in (0, 1) is cut into :math:`d` equal parts, one for each class, and class j costs its distance to the true
    label:

    .. math:: s = \frac{1}{1 + e^{-t}}, \quad t = \operatorname{sign}(b^\top x) \lvert b^\top x\rvert^k \epsilon, \quad
        c_j = \left\lvert j - \lceil d s \rceil \right\rvert, \quad j = 1, \ldots, d

    with coefficients :math:`b`, the degree :math:`k` and the noise :math:`\epsilon`.

    Parameters
    ----------
    n_samples, n_features, noise, random_state, return_coef, return_mean
        As in :func:`make_portfolio`.
    n_classes : int, default=10
        Number of classes, that is of costs d; at least two.
    degree : int, default=1
        Degree of the score's argument, at least one.
    coef : array-like of shape (n_features,), default=None
        Coefficients from an earlier call, to sample the same problem again.  None draws new ones.

    Returns
    -------
    X, C, coef, mean : ndarrays
        As in :func:`make_portfolio`, but ``coef`` has shape (n_features,).  The label, counted from zero, is
        ``C.argmin(axis=1)``.

    Notes
    -----
    The sign is kept at every degree.  With :math:`(b^\top x)^k` instead of its absolute value an odd degree would lose
    it, and no linear model could describe even the problem of degree one.  For even degrees the two agree.

    All coefficients are zero with probability :math:`2^{-p}`; every label is then the middle one.

    The best decision is the median label, and the noise has median one, so it is the label without noise (as long as
    ``noise <= 1``).  At degree one a linear model contains it: the classes are intervals of :math:`b^\top x`.

    References
    ----------
    Liu, H. and Grigas, P. (2021). Risk Bounds and Calibration for a Smart Predict-then-Optimize Method.

    Examples
    --------
    >>> from skspo.datasets import make_cost_sensitive_classification
    >>> X, C = make_cost_sensitive_classification(3, n_classes=4, random_state=0)
    >>> C
    array([[3., 2., 1., 0.],
           [3., 2., 1., 0.],
           [1., 0., 1., 2.]])
    """
    n, p, d = _check_sizes(n_samples=n_samples, n_features=n_features, n_classes=n_classes)
    if d < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes!r}: with one class there is nothing to choose.")
    degree, noise, rng = _check_draw(degree, noise, random_state)
    b, X = _coef_and_features(coef, (p,), n, rng)
    Xb = X @ b
    signal = np.sign(Xb) * np.abs(Xb) ** degree
    eps = rng.uniform(1.0 - noise, 1.0 + noise, size=n)

    # ceil(d sigmoid(u)) <= k exactly if u <= logit(k / d).  Comparing with these thresholds keeps the label in 1..d
    # when the sigmoid rounds to 0 or 1, and makes the labels and their distribution below agree to the last bit.
    thresholds = logit(np.arange(1, d) / d)
    label = np.searchsorted(thresholds, signal * eps, side="left")  # from zero
    C = np.abs(np.arange(d) - label[:, None]).astype(np.float64)
    if not return_mean:
        return _pack(X, C, (return_coef, b))

    # F[:, k - 1] = P(lab <= k | x), and |j - lab| = sum_{k < j} [lab <= k] + sum_{k >= j} [lab > k].
    lower, upper = _noise_interval(signal, noise)
    width = (upper - lower)[:, None]
    gap = thresholds - lower[:, None]
    F = np.where(width > 0, np.clip(gap / np.where(width > 0, width, 1.0), 0.0, 1.0), gap >= 0)
    mean = np.zeros((n, d))
    mean[:, 1:] += np.cumsum(F, axis=1)
    mean[:, :-1] += np.cumsum((1.0 - F)[:, ::-1], axis=1)[:, ::-1]
    return _pack(X, C, (return_coef, b), (True, mean))


def make_shortest_path(
    n_samples: int = 100,
    n_features: int = 5,
    grid: tuple[int, int] = (5, 5),
    *,
    degree: int = 1,
    noise: float = 0.5,
    coef: ArrayLike | None = None,
    random_state: RandomState = None,
    return_coef: bool = False,
    return_mean: bool = False,
) -> tuple[np.ndarray, ...]:
    r"""Costs of the edges of a grid, to be crossed from one corner to the opposite one.

    .. math:: c_j = \frac{(b_j^\top x / \sqrt{p} + 3)^k + 1}{3.5^k} \, \epsilon_j

    with :math:`b_j` the j-th row of the coefficients, :math:`k` the degree and :math:`\epsilon_j` the noise.

    Parameters
    ----------
    n_samples, n_features, degree, noise, coef, random_state, return_coef, return_mean
        As in :func:`make_portfolio`.
    grid : tuple of two ints, default=(5, 5)
        Rows and columns of nodes.  With r rows and s columns there are :math:`r (s - 1) + (r - 1) s` edges.

    Returns
    -------
    X, C, coef, mean : ndarrays
        As in :func:`make_portfolio`, with one cost for each edge of ``ShortestPath.grid(rows, cols)``.

    Notes
    -----
    Costs are positive unless ``degree`` is odd and :math:`b_j^\top x < -4 \sqrt{p}`, which is rare, or ``noise``
    exceeds one.

    References
    ----------
    Elmachtoub, A. N. and Grigas, P. (2022). Smart "Predict, then Optimize". Management Science 68.

    Examples
    --------
    >>> from skspo.datasets import make_shortest_path
    >>> X, C, mean = make_shortest_path(100, grid=(5, 5), degree=4, random_state=0, return_mean=True)
    >>> X.shape, C.shape, mean.shape
    ((100, 5), (100, 40), (100, 40))
    """
    n, p = _check_sizes(n_samples=n_samples, n_features=n_features)
    try:
        rows, cols = grid
    except (TypeError, ValueError):
        raise ValueError(f"grid must be two integers, rows and columns of nodes, got {grid!r}.") from None
    rows, cols = _check_sizes(**{"grid[0]": rows, "grid[1]": cols})
    d = rows * (cols - 1) + (rows - 1) * cols
    if d == 0:
        raise ValueError(f"grid must have at least two nodes, otherwise there are no edges; got {grid!r}.")
    degree, noise, rng = _check_draw(degree, noise, random_state)
    B, X = _coef_and_features(coef, (d, p), n, rng)
    mean = ((X @ B.T / np.sqrt(p) + 3.0) ** degree + 1.0) / 3.5**degree
    C = mean * rng.uniform(1.0 - noise, 1.0 + noise, size=(n, d))
    return _pack(X, C, (return_coef, B), (return_mean, mean))


def make_knapsack(
    n_samples: int = 100,
    n_features: int = 5,
    n_items: int = 32,
    *,
    n_constraints: int = 1,
    degree: int = 1,
    noise: float = 0.5,
    coef: ArrayLike | None = None,
    random_state: RandomState = None,
    return_coef: bool = False,
    return_mean: bool = False,
    return_weights: bool = False,
) -> tuple[np.ndarray, ...]:
    r"""Values of items that compete for room in a knapsack.

    .. math:: c_j = \left\lceil 5 \, \frac{(b_j^\top x / \sqrt{p} + 3)^k + 1}{3.5^k} \, \epsilon_j \right\rceil

    with :math:`b_j` the j-th row of the coefficients, :math:`k` the degree and :math:`\epsilon_j` the noise.  The
    values are to be maximized: ``Knapsack(weights, capacity, sense="max")``.

    Parameters
    ----------
    n_samples, n_features, degree, noise, coef, random_state, return_coef, return_mean
        As in :func:`make_portfolio`.
    n_items : int, default=32
        Number of items, that is of values d.
    n_constraints : int, default=1
        Number of weights of each item.
    return_weights : bool, default=False
        Whether to return the weights.  They are drawn with the coefficients and describe the same problem, so this
        cannot be combined with ``coef``: keep the weights of the first call.

    Returns
    -------
    X, C, coef, mean : ndarrays
        As in :func:`make_portfolio`, with the values of the items.
    weights : ndarray of shape (n_items,) or (n_constraints, n_items)
        Weights, uniform on 3.00, 3.01, ..., 7.99; one-dimensional if ``n_constraints`` is one.  Only if
        ``return_weights``.  In hundredths they are integers: ``np.rint(100 * weights)``.

    References
    ----------
    Tang, B. and Khalil, E. B. (2024). PyEPO: a PyTorch-based end-to-end predict-then-optimize library for linear and
    integer programming. Mathematical Programming Computation 16.

    Examples
    --------
    >>> from skspo.datasets import make_knapsack
    >>> X, C, coef, weights = make_knapsack(100, n_items=8, random_state=0, return_coef=True, return_weights=True)
    >>> C[0]
    array([4., 4., 4., 4., 5., 3., 4., 9.])
    >>> weights
    array([4.72, 3.47, 4.17, 4.92, 6.23, 5.51, 4.95, 6.59])
    >>> X_test, C_test = make_knapsack(1000, n_items=8, coef=coef, random_state=1)
    """
    n, p, d, m = _check_sizes(n_samples=n_samples, n_features=n_features, n_items=n_items, n_constraints=n_constraints)
    degree, noise, rng = _check_draw(degree, noise, random_state)
    if return_weights and coef is not None:
        raise ValueError(
            "return_weights=True draws new weights, but coef belongs to a problem that already has some. "
            "Keep the weights that the first call returned, or leave coef out."
        )
    if coef is None:
        weights = rng.randint(300, 800, size=(m, d)) / 100.0
    B, X = _coef_and_features(coef, (d, p), n, rng)
    signal = 5.0 * ((X @ B.T / np.sqrt(p) + 3.0) ** degree + 1.0) / 3.5**degree
    C = np.ceil(signal * rng.uniform(1.0 - noise, 1.0 + noise, size=(n, d)))
    mean = _expected_ceil(*_noise_interval(signal, noise)) if return_mean else signal
    drawn = (weights[0] if m == 1 else weights) if return_weights else signal
    return _pack(X, C, (return_coef, B), (return_mean, mean), (return_weights, drawn))


def _noise_interval(signal: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the interval on which ``signal * eps`` is uniform."""
    ends = signal * (1.0 - noise), signal * (1.0 + noise)
    return np.minimum(*ends), np.maximum(*ends)


def _expected_ceil(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """E[ceil(u)] for u uniform on [lower, upper], elementwise.

    Counted from m = ceil(lower), the integrand is 0 on (lower, m], 1 on (m, m + 1], ...: with k = ceil(upper) - m its
    integral is k (upper - m) - k (k - 1) / 2.  Counting from m instead of from 0 avoids the cancellation.
    """
    m = np.ceil(lower)
    k = np.ceil(upper) - m
    integral = k * (upper - m) - k * (k - 1.0) / 2.0
    width = upper - lower
    return m + integral / np.where(width > 0, width, 1.0)  # no width: k = 0 and the integral vanishes


def _check_sizes(**sizes: int) -> tuple[int, ...]:
    """Return the arguments as ints, if they are integers of at least one."""
    for name, value in sizes.items():
        if not is_integer(value):
            raise TypeError(f"{name} must be an integer, got {value!r}.")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}.")
    return tuple(int(value) for value in sizes.values())


def _check_draw(degree: int, noise: float, random_state: RandomState) -> tuple[int, float, np.random.RandomState]:
    """Degree as an int of at least one, noise as a finite, nonnegative float, and the generator of random numbers."""
    (degree,) = _check_sizes(degree=degree)
    if not is_number(noise):
        raise TypeError(f"noise must be a number, the half-width of the multiplicative noise; got {noise!r}.")
    if not 0.0 <= noise < np.inf:
        raise ValueError(f"noise must be finite and at least 0, got {noise!r}.")
    return degree, float(noise), check_random_state(random_state)


def _coef_and_features(
    coef: ArrayLike | None, shape: tuple[int, ...], n: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients, checked if they are passed by the user and drawn if not, and features."""
    # A copy, because it is returned.
    B = np.array(rng.binomial(1, 0.5, size=shape) if coef is None else coef, dtype=np.float64)
    if B.shape != shape:
        raise ValueError(
            f"coef must have shape {shape} for these sizes, got {B.shape}. Pass the sizes of the call that returned it."
        )
    if not np.isfinite(B).all():
        raise ValueError("coef must be finite.")
    return B, rng.normal(size=(n, shape[-1]))


def _pack(X: np.ndarray, C: np.ndarray, *extras: tuple[bool, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return X, C and the extras that were asked for."""
    return (X, C, *(extra for wanted, extra in extras if wanted))
