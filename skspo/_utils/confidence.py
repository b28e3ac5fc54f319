"""Confidence bounds of means: two that are proved, and the bootstrap, which is an approximation.

Conventions
-----------
    Y (n,) independent, not negative, not necessarily identically distributed      mu = mean of the E[Y_i]

Betting.  For every share s in (0, 1] the product K_s(m) = prod_i (1 - s + s Y_i / m) has, at m = mu,

    E K_s(mu) = prod_i (1 - s + s E[Y_i] / mu) <= (mean of these factors)^n = 1      geometric <= arithmetic mean

A weighted mean K of such products, with shares and weights fixed in advance, has the same property, so that
P(K(mu) >= 1 / delta) <= delta by Markov's inequality.  K decreases in m: the m with K(m) = 1 / delta is a lower bound
of mu with probability 1 - delta.  This is the capital of a gambler who bets that the mean is larger than m
(Waudby-Smith & Ramdas, 2024).  The order of the samples does not matter.

Empirical Bernstein (Maurer & Pontil, 2009, Theorem 11).  If Y_i <= r, with the sample variance V,

    mu <= mean(Y) + sqrt(2 V log(2 / delta) / n) + 7 r log(2 / delta) / (3 (n - 1))      with probability 1 - delta
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr, ndtri
from sklearn.utils import check_consistent_length, column_or_1d

from .limits import BLOCK_ELEMENTS
from .scaling import relative_weight

#: more terms than this are added up at random to this many, which preserves variance and skewness of their sum
MAX_TERMS = 5000

#: fewer terms than this have no bootstrap interval
MIN_TERMS = 10


class Interval(NamedTuple):
    """Two ends of an interval."""

    low: float
    high: float

    def text(self, form: str = "{:.4g}") -> str:
        """Both ends, formatted."""
        return f"{form.format(self.low)} to {form.format(self.high)}"


NO_INTERVAL = Interval(np.nan, np.nan)


def group_terms(columns: np.ndarray, weight: np.ndarray | None, groups: ArrayLike | None) -> np.ndarray:
    """Sums over each group of weights that sum to 1, in the first column, and of the weighted columns.

    Without groups every sample is one; groups without weight are left out.
    """
    n = len(columns)
    share = np.full(n, 1.0 / n)
    relative = relative_weight(weight)
    if relative is not None:
        share = relative / relative.sum()
    terms = share[:, None] * np.column_stack([np.ones(n), columns])
    if groups is not None:
        labels = column_or_1d(groups)
        check_consistent_length(columns, labels)
        try:
            place = np.unique(labels, return_inverse=True)[1]
        except TypeError as error:
            raise ValueError("groups must be labels of one type, such as integers or strings.") from error
        terms = np.column_stack([np.bincount(place, column) for column in terms.T])
    return terms[terms[:, 0] > 0]


def mean_and_error(
    values: np.ndarray, weight: np.ndarray | None, groups: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean of each column, and its standard error; samples of a group may depend on each other."""
    terms = group_terms(values, weight, groups)
    k, share, terms = len(terms), terms[:, :1], terms[:, 1:]
    mean = terms.sum(axis=0)
    return mean, np.sqrt((k / (k - 1) if k > 1 else np.nan) * np.square(terms - mean * share).sum(axis=0))


# -- proved ------------------------------------------------------------------------------------------------------------


def betting_lower(Y: np.ndarray, delta: float) -> float:
    """Lower bound, with probability ``1 - delta``, of the mean expectation of independent nonnegative variables."""
    mean = float(Y.mean())
    if mean <= 0:
        return 0.0
    Y = Y / mean
    # Shares around sqrt(2 log(1 / delta) / n) / (standard deviation / mean) are best; they must not depend on Y.  Large
    # ones have more weight, because for an upper bound of regrets far below their range the best share is near 1.
    k = np.arange(1 + np.ceil(0.5 * np.log2(len(Y))))
    shares, weights = 2.0**-k, 1.0 / (1.0 + k)
    weights /= weights.sum()

    def log_capital(m: float) -> float:
        with np.errstate(divide="ignore"):  # a share of 1 loses everything at Y = 0
            logs = [np.log1p(s * (Y / m - 1.0)).sum() for s in shares]
        return float(logsumexp(logs, b=weights)) + float(np.log(delta))

    low = 1.0  # where the capital is at most 1: geometric <= arithmetic mean
    while log_capital(low) < 0:
        low *= 0.5
        if low < 1e-100:
            return 0.0
    root = brentq(log_capital, low, 1.0, xtol=1e-13, rtol=1e-12)
    # Stay on the proved side of the root.
    return mean * max(low, root * (1.0 - 1e-9))


def bernstein_upper(Y: np.ndarray, largest: float, delta: float) -> float:
    """Upper bound of the mean expectation of independent variables between 0 and ``largest``."""
    n, log = len(Y), float(np.log(2.0 / delta))
    if n < 2:
        return largest
    spread = np.sqrt(2.0 * Y.var(ddof=1) * log / n)
    return float(Y.mean() + spread + 7.0 * largest * log / (3.0 * (n - 1)))


def mean_upper(terms: np.ndarray, weight: np.ndarray, largest: float, delta: float, method: str) -> float:
    """Upper bound of a weighted mean of expectations, with probability ``1 - delta``.

    Each of the independent ``terms`` is a weighted sum of numbers between 0 and ``largest``, with the total weight that
    ``weight`` says; all weights sum to 1.  ``method`` is "betting" or "bernstein".
    """
    n = len(terms)
    terms = np.clip(terms, 0.0, weight * largest)  # they exceed their bounds by rounding only
    if method == "betting":
        bound = largest - n * betting_lower(weight * largest - terms, delta)
    else:
        bound = bernstein_upper(n * terms, n * float(weight.max()) * largest, delta)
    return min(bound, largest)


# -- approximate -------------------------------------------------------------------------------------------------------


class Bootstrap:
    """BCa bootstrap intervals (Efron, 1987) of ratios of sums, all from the same resamples of the rows of ``terms``."""

    def __init__(self, terms: np.ndarray, level: float, n_resamples: int, rng: np.random.Generator) -> None:
        n = len(terms)
        if n > MAX_TERMS:
            place = rng.permutation(n) % MAX_TERMS
            terms = np.column_stack([np.bincount(place, column, MAX_TERMS) for column in terms.T])
            n = MAX_TERMS
        self.terms, self.level = terms, level
        self.totals = np.empty((n_resamples, terms.shape[1]))
        rows = max(1, BLOCK_ELEMENTS // n)
        for start in range(0, n_resamples, rows):
            part = self.totals[start : start + rows]
            drawn = rng.integers(n, size=(len(part), n)) + n * np.arange(len(part))[:, None]
            counts = np.bincount(drawn.ravel(), minlength=part.shape[0] * n).reshape(len(part), n)
            part[:] = counts.astype(np.float64) @ terms

    def interval(self, numerator: int, denominator: int, minus: int | None = None) -> Interval:
        """Interval of a ratio of two sums, given by their columns; terms of the denominator must not be negative.

        If ``minus`` is given, that sum is subtracted from the numerator.
        """
        tops, bottoms = self._columns(self.terms, numerator, denominator, minus)
        bottom = float(bottoms.sum())
        if len(tops) < MIN_TERMS or not bottom > 0:
            return NO_INTERVAL
        estimate = float(tops.sum()) / bottom
        influence = tops - estimate * bottoms
        size = float(np.abs(influence).max())
        if size <= 1e-12 * float(np.abs(tops).max()):
            return Interval(estimate, estimate)  # all equal
        rest = bottom - bottoms
        if (rest > 1e-9 * bottom).all():
            # Jackknife: the estimate minus that without term i is influence_i / rest_i.
            influence = influence / rest
            influence -= influence.mean()
        influence /= np.abs(influence).max()
        acceleration = float((influence**3).sum() / (6.0 * np.square(influence).sum() ** 1.5))
        tops, bottoms = self._columns(self.totals, numerator, denominator, minus)
        ratios = np.full(len(tops), np.inf)
        np.divide(tops, bottoms, out=ratios, where=bottoms > 0)
        # Ratios that are equal to the estimate differ from it by rounding.
        slack = 1e-12 * (abs(estimate) + float(np.abs(tops).max()) / bottom)
        below = float((ratios < estimate - slack).mean() + (ratios <= estimate + slack).mean()) / 2.0
        limit = 0.5 / len(ratios)
        bias = float(ndtri(np.clip(below, limit, 1.0 - limit)))
        normal = bias + ndtri([0.5 - self.level / 2.0, 0.5 + self.level / 2.0])
        # Beyond a pole of the correction, the end is that of all resamples.
        scale = np.maximum(1.0 - acceleration * normal, 1e-9)
        low, high = np.quantile(ratios, ndtr(bias + normal / scale), method="closest_observation")
        return Interval(float(low), float(high))

    @staticmethod
    def _columns(sums: np.ndarray, numerator: int, denominator: int, minus: int | None) -> tuple[np.ndarray, ...]:
        top = sums[:, numerator] if minus is None else sums[:, numerator] - sums[:, minus]
        return top, sums[:, denominator]
