"""Risk of a fitted model, from samples that were not used for training: proved bounds and bootstrap intervals.

With regrets l_i between 0 and b and weights a_i that add up to 1, the risk is sum_i a_i E[l_i]; it is at most an upper
bound of sum_i a_i l_i with probability ``level``.  For the difference of two models, which is between -b and b, each of
two bounds holds with half of the remaining probability.  With groups, l_i is the mean regret of group i and
a_i = 1 / number of groups: the bounds are those of its expectation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .._training.fitted import check_frames, innermost
from .._training.inputs import say_training_share, training_share
from .._utils.confidence import NO_INTERVAL, Bootstrap, Interval, mean_upper
from .._utils.params import integer, number, one_of
from .._utils.types import Predictor, RandomState, RegionParams
from ..metrics import _spo_losses
from ..regions.base import Region
from ._folds import numbers_in_memory
from ._report import N_RESAMPLES, ORACLE_TOLERANCE, Samples, check_level, describe_region

check_loss_bound = number(above=0.0)
check_method = one_of("betting", "bernstein")
check_resamples = integer(100)


@dataclass(frozen=True, kw_only=True)
class HeldOutRisk:
    """Result of :func:`~skspo.held_out_risk`: prints plainly.

    Intervals and bounds are pairs ``(low, high)``.  Figures that do not exist are NaN.

    Attributes
    ----------
    name, other_name : str
        Class of the model, and of the one it is compared with ("" if there is none).
    mean_loss, other_mean_loss, normalized_loss : float
        Mean regret (SPO loss) of both, and the ratio of the first to the mean absolute best cost.
    difference, ratio : float
        Mean regret minus that of the other model, negative if this model is better, and divided by it.
    interval, normalized_interval, difference_interval, ratio_interval : (float, float)
        Bootstrap intervals: approximate.
    group_mean_loss : float
        Mean over groups of the mean regret of a group; NaN without groups.
    upper_bound : float
        Proved upper bound of the risk, the expected regret; with groups, of the expected mean regret of a group.
    difference_bounds : (float, float)
        Proved interval of the difference of the two risks, with groups as well.
    loss_bound : float
        Assumed upper bound on the regret of any sample, or the cap.
    capped : bool
        Whether the proved bounds are for regrets that are capped at ``loss_bound``.
    level : float
        Probability with which each statement holds on its own.
    method : str
        Which inequality proves the bounds.
    n_samples, n_groups : int
        Number of samples with a positive weight, and of independent groups of them.
    region : Region
        Where decisions were made.
    assumptions : list of str
        What the proved bounds rest on.
    training_share : float
        Share of samples that a model was fitted to, as far as features and costs show it; NaN if it is not known.
    """

    name: str
    mean_loss: float
    normalized_loss: float
    interval: Interval
    normalized_interval: Interval
    capped: bool
    level: float
    method: str
    n_samples: int
    n_groups: int
    region: Region
    training_share: float = np.nan
    group_mean_loss: float = np.nan
    upper_bound: float = np.nan
    other_name: str = ""
    other_mean_loss: float = np.nan
    difference: float = np.nan
    difference_interval: Interval = NO_INTERVAL
    difference_bounds: Interval = NO_INTERVAL
    ratio: float = np.nan
    ratio_interval: Interval = NO_INTERVAL
    loss_bound: float = np.nan
    assumptions: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        title = f"Held-out risk of {self.name}, {self.n_samples:,} samples"
        if self.n_groups != self.n_samples:
            title += f" in {self.n_groups:,} groups"
        rows = [("mean regret", self.mean_loss, "{:.4g}", self.interval)]
        rows.append(("of best cost", self.normalized_loss, "{:.2%}", self.normalized_interval))
        rows.append(("mean of groups", self.group_mean_loss, "{:.4g}", NO_INTERVAL))
        if self.other_name:
            rows.append((f"mean regret of {self.other_name}", self.other_mean_loss, "{:.4g}", NO_INTERVAL))
            rows.append(("difference", self.difference, "{:.4g}", self.difference_interval))
            rows.append(("ratio", self.ratio, "{:.3f}", self.ratio_interval))
        table = [
            (label, form.format(value), "" if np.isnan(ends.low) else ends.text(form))
            for label, value, form, ends in rows
            if not np.isnan(value)
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        percent = f"{100 * self.level:g} %"
        lines = [f"{title}, {describe_region(self.region)}", *filter(None, [say_training_share(self.training_share)])]
        for label, value, ends in table:
            lines.append(f"  {label:<{widths[0]}}  {value:>{widths[1]}}  {ends}".rstrip())
        if np.isnan(self.interval.low):
            lines.append("There are too few samples or groups for intervals by bootstrap.")
        elif self.interval.low == self.interval.high:
            lines.append("All regrets are equal, so a bootstrap cannot say how much they vary; use the proved bound.")
        else:
            lines.append(f"Intervals: {percent}, BCa bootstrap, approximate.")
        if np.isnan(self.upper_bound):
            return "\n".join([*lines, "No proved bound: it needs loss_bound, cost_bounds or loss_cap."])
        lines.append(f"Proved, each with probability {percent} ({self.method}):")
        grouped = not np.isnan(self.group_mean_loss)
        cap = " (mean of a group)" if grouped else ""
        cap += f", capped at {self.loss_bound:.6g}," if self.capped else ""
        lines.append(f"  expected regret{cap} <= {self.upper_bound:.4g}")
        if self.other_name:
            low, high = self.difference_bounds
            lines.append(f"  {low:.4g} <= difference of expected regrets{cap} <= {high:.4g}")
        lines += ["if", *(f"  - {assumption}" for assumption in self.assumptions)]
        if grouped:
            lines.append(
                "The same holds for samples if the expected mean regret of a group does not depend on its size."
            )
        return "\n".join(lines)

    __repr__ = __str__


def held_out_risk(
    estimator: Predictor,
    X: ArrayLike,
    C: ArrayLike,
    *,
    other: Predictor | None = None,
    region: Region | None = None,
    loss_bound: float | None = None,
    cost_bounds: tuple[ArrayLike, ArrayLike] | None = None,
    loss_cap: float | None = None,
    level: float = 0.95,
    method: str = "betting",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    n_resamples: int = N_RESAMPLES,
    random_state: RandomState = 0,
) -> HeldOutRisk:
    r"""Bound the expected regret of a fitted model, and its difference to another model, from held-out samples.

    There are two kinds of statements.  *Bounds* are proved: they hold with probability ``level`` for every distribution
    of bounded regrets.  *Intervals* are from a bootstrap: they need no bound on the regret and are shorter, but
    approximate.

    Parameters
    ----------
    estimator : fitted estimator
        Any regressor of costs, also in a pipeline or a search.
    X : array-like of shape (n_samples, n_features)
        Features of samples that were not used for training, tuning or choosing the model.
    C : array-like of shape (n_samples, d)
        True costs.
    other : fitted estimator or None, default=None
        Model to compare with, on the same samples and in the same region.
    region, offset, region_params
        As in :func:`decision_report`.
    loss_bound : float or None, default=None
        Number that no regret exceeds, neither here nor in the future: the largest difference of the costs of two
        decisions.  It has to be known, not read off these data.
    cost_bounds : tuple (low, high) of floats or array-likes of shape (d,), optional
        Box that contains all cost vectors, now and in the future.  A bound on the regret is computed from it.
    loss_cap : float or None, default=None
        If no bound is known: regrets above this number count as this number in the proved bounds, which then assume
        nothing about costs.  To be chosen before the data are seen.  At most one of the three may be given; without
        any there are no proved bounds.
    level : float, default=0.95
        Probability with which each statement holds.  The bound on the risk is one-sided.
    method : {"betting", "bernstein"}, default="betting"
        Inequality of the proved bounds, to be chosen before the data are seen.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, which must not depend on the regrets.  With them the risk is the weighted mean of the expected regrets.
    groups : array-like of shape (n_samples,), optional
        Labels of samples that depend on each other, such as those of one day; only groups are independent.  What is
        proved is then about the expected mean regret of a group, large or small.
    n_resamples : int, default=2000
        Number of resamples of the bootstrap.
    random_state : int, RandomState or None, default=0
        Seed of the bootstrap.

    Returns
    -------
    risk : HeldOutRisk
        Prints the figures and the assumptions.

    See Also
    --------
    decision_report : Comparison with least squares and a constant prediction.
    skspo.calibration.risk_certificate : Bound from the training data, which is usually vacuous.

    Notes
    -----
    "betting" inverts a weighted mean, over fixed shares :math:`s`, of
    :math:`\prod_i (1 - s + s (b - \ell_i) / (b - r))`, whose expectation is at most 1; :math:`b` is the bound or the
    cap, :math:`\ell_i` the regret, :math:`r` the risk (Waudby-Smith & Ramdas, 2024).  "bernstein" is Theorem 11 of
    Maurer & Pontil (2009); its last term is large if typical regrets are far below :math:`b`.  Both hold for
    independent samples or groups that are not identically distributed.

    The bootstrap draws samples or groups with replacement, the same ones for both models, and corrects for bias and
    skewness (BCa).  It covers too rarely if large regrets are rare.

    Examples
    --------
    >>> from skspo import ShortestPath, SPOPlusRegressor, TwoStageRegressor, held_out_risk
    >>> from skspo.datasets import make_shortest_path
    >>> X, C = make_shortest_path(1200, grid=(3, 3), degree=6, random_state=0)
    >>> region = ShortestPath.grid(3, 3)
    >>> model = SPOPlusRegressor(region).fit(X[:200], C[:200])
    >>> least_squares = TwoStageRegressor(region=region).fit(X[:200], C[:200])
    >>> risk = held_out_risk(model, X[200:], C[200:], other=least_squares, loss_bound=40.0)
    >>> print(risk)
    Held-out risk of SPOPlusRegressor, 1,000 samples, ShortestPath, 12 variables
      mean regret ...
      of best cost ...
      mean regret of TwoStageRegressor ...
      difference ...
      ratio ...
    Intervals: 95 %, BCa bootstrap, approximate.
    Proved, each with probability 95 % (betting):
      expected regret <= ...
      ... <= difference of expected regrets <= ...
    if
      - the 1,000 samples are independent of each other and of the choice of the model
      - no regret exceeds 40, which was given
    >>> risk.difference < 0 < risk.mean_loss < risk.upper_bound
    True
    """
    check_level("level", level)
    check_method("method", method)
    check_resamples("n_resamples", n_resamples)
    models = [estimator] if other is None else [estimator, other]
    known: Any = {"sample_weight": sample_weight, "groups": groups, "offset": offset, "region_params": region_params}
    samples = Samples.of(models, X, C, "held_out_risk", region, **known)
    if isinstance(cost_bounds, tuple | list):  # the ends may be series, with the variables as index
        ends: dict[str, Any] = {f"cost_bounds[{k}]": end for k, end in enumerate(cost_bounds)}
        check_frames(estimator, region, C=C, **ends)
    found = [
        _spo_losses(samples.C, C_hat, samples.region, "oracle", samples.offset, region_params)
        for C_hat in samples.predicted
    ]
    best, losses = np.abs(found[0][1]), np.column_stack([loss for loss, *_ in found])
    largest, reason = _range(samples.region, samples.C, loss_bound, cost_bounds, loss_cap, region_params)
    worst = float(losses.max())
    if loss_cap is None and worst > largest * (1.0 + 1e-6):
        raise ValueError(f"loss_bound is {largest:.6g}, but a sample has a regret of {worst:.6g}: it is no bound.")

    terms = samples.terms(best, losses)
    _, size, own, *against = terms.sum(axis=0).tolist()
    bootstrap = Bootstrap(
        terms, level, n_resamples, np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    )
    more: dict[str, Any] = {}
    if other is not None:
        more |= {
            "other_name": type(innermost(other)).__name__,
            "other_mean_loss": against[0],
            "difference": own - against[0],
            "difference_interval": bootstrap.interval(2, 0, minus=3),
            "ratio": own / against[0] if against[0] > 0 else np.nan,
            "ratio_interval": bootstrap.interval(2, 3),
        }
    if groups is not None:
        more["group_mean_loss"] = float((terms[:, 2] / terms[:, 0]).mean())
    if np.isfinite(largest):
        capped = samples.terms(np.minimum(losses, largest))
        if groups is not None:  # every group counts the same
            capped /= len(capped) * capped[:, :1]
        more["upper_bound"], more["difference_bounds"] = _proved(capped, largest, 1.0 - level, method)
        more["loss_bound"] = largest
        more["assumptions"] = _assumptions(samples, len(terms), reason)
    return HeldOutRisk(
        name=type(innermost(estimator)).__name__,
        mean_loss=own,
        normalized_loss=own / size if size > 0 else np.nan,
        interval=bootstrap.interval(2, 0),
        normalized_interval=bootstrap.interval(2, 1),
        capped=loss_cap is not None,
        level=float(level),
        method=method,
        n_samples=len(losses) if samples.weight is None else int(np.count_nonzero(samples.weight)),
        n_groups=len(terms),
        region=samples.region,
        training_share=float(np.fmax.reduce([training_share(model, X, samples.C) for model in models])),
        **more,
    )


def _proved(terms: np.ndarray, largest: float, delta: float, method: str) -> tuple[float, Interval]:
    """Bounds of the risk, and of its difference to that of another model.

    Columns of ``terms``: weights, regrets of at most ``largest``, and those of the other model, if there is one.
    """
    share, own = terms[:, 0], terms[:, 1]
    upper = mean_upper(own, share, largest, delta, method)
    if terms.shape[1] == 2:
        return upper, NO_INTERVAL
    shift, difference = largest * share, own - terms[:, 2]
    low, high = (
        mean_upper(shift + signed, share, 2.0 * largest, delta / 2.0, method) - largest
        for signed in (-difference, difference)
    )
    return upper, Interval(-low, high)


def _assumptions(samples: Samples, n: int, reason: str) -> list[str]:
    """What the proved bounds rest on, in words; ``n`` is the number of independent samples or groups."""
    what = "samples" if samples.groups is None else "groups"
    assumptions = [f"the {n:,} {what} are independent of each other and of the choice of the model", reason]
    if samples.weight is not None:
        assumptions.append("the weights do not depend on the regrets; expected regrets are averaged with them")
    if samples.region._may_be_inexact or samples.region._fault is not None:
        assumptions.append("the oracle, which may be inexact, finds the best costs")
    return assumptions


def _range(
    region: Region,
    C: np.ndarray,
    loss_bound: float | None,
    cost_bounds: tuple[ArrayLike, ArrayLike] | None,
    loss_cap: float | None,
    region_params: RegionParams | None,
) -> tuple[float, str]:
    """Upper bound on the regret, infinite if there is none, and the assumption behind it."""
    if sum(given is not None for given in (loss_bound, cost_bounds, loss_cap)) > 1:
        raise ValueError("Give at most one of loss_bound, cost_bounds and loss_cap.")
    if loss_cap is not None:
        check_loss_bound("loss_cap", loss_cap)
        return float(loss_cap), f"the cap {loss_cap:.6g} was chosen without these samples"
    if loss_bound is not None:
        check_loss_bound("loss_bound", loss_bound)
        return float(loss_bound), f"no regret exceeds {loss_bound:.6g}, which was given"
    if cost_bounds is None:
        return np.inf, ""
    if region_params is not None:
        raise ValueError(
            "cost_bounds cannot be used with region_params, because future regions are unknown. Pass loss_bound."
        )
    if region._may_be_inexact or region._fault is not None:
        raise ValueError(
            f"cost_bounds needs an exact oracle, and that of {region.label} may be inexact. Pass loss_bound."
        )
    low, high = _check_box(cost_bounds, C, region)
    bound = regret_range(region, low, high)
    ends = f"[{low.min():.6g}, {high.max():.6g}]"
    box = (
        f"costs are in {ends}"
        if np.ptp(low) == 0 and np.ptp(high) == 0
        else f"costs are in the box given, within {ends}"
    )
    return bound, f"all {box}; then no regret exceeds {bound:.6g}"


def _check_box(
    cost_bounds: tuple[ArrayLike, ArrayLike], C: np.ndarray, region: Region
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the box of costs, of shape (d,); it must contain the costs of these samples, as far as they exist."""
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), C.shape[1:]) for end in cost_bounds)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cost_bounds must be a pair (low, high) of numbers, or of arrays of shape ({C.shape[1]},)."
        ) from error
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError("cost_bounds must be finite, and low must not exceed high.")
    possible = region.possible(*C.shape)
    outside = ((C < low) | (C > high)) & (True if possible is None else possible)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(
            f"The cost {C[row, column]:.6g} of sample {row}, column {column}, is outside of cost_bounds "
            f"[{low[column]:.6g}, {high[column]:.6g}]."
        )
    return low, high


def regret_range(region: Region, low: np.ndarray, high: np.ndarray) -> float:
    """Upper bound of c.w - c.v over decisions w, v and costs c between ``low`` and ``high``.

    Let l <= w <= u hold for all decisions, and c = m + e with the center m and |e| <= h.  Each of these is a bound:

        high.(w - l) - low.(v - l)           because w - l and v - l are not negative
        high.(u - v) - low.(u - w)           the same for u - v and u - w
        m.(w - v) + h.(u - l)                because |w - v| <= u - l

    The first is attained on simplices and paths.
    """
    d = len(low)
    center, half = (low + high) / 2.0, (high - low) / 2.0

    def support(V: np.ndarray) -> np.ndarray:
        """Largest v.w of each row."""
        return np.einsum("ij,ij->i", V, region.solve_min(-V))

    least, most = np.empty(d), np.empty(d)
    for start in range(0, d, rows := max(1, numbers_in_memory() // d)):
        part = slice(start, min(start + rows, d))
        E = np.eye(part.stop - part.start, d, k=start)
        most[part], least[part] = support(E), -support(-E)
    V = np.array([high, low, center])
    top, bottom = support(V), -support(-V)
    bounds = [
        (top[0] - high @ least) - (bottom[1] - low @ least),
        (high @ most - bottom[0]) - (low @ most - top[1]),
        top[2] - bottom[2] + half @ (most - least),
    ]
    scale = np.maximum(np.abs(low), np.abs(high)) @ np.maximum(np.abs(least), np.abs(most))
    return float(min(bounds)) + ORACLE_TOLERANCE * float(scale)
