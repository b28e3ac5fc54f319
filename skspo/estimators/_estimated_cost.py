"""What decisions cost, estimated from a log in which costs were seen only for what was chosen.

Conventions
-----------
    c~_i pseudo-costs (see ``_feedback_costs.py``)      w_i decision of the policy      a_i weights, sum 1

    estimate = sum_i a_i c~_i.w_i      unbiased for doubly robust c~ if m or the propensities are right, because it is
                                       linear in c~, and the folds of m do not contain sample i
    standard error = root of G / (G - 1) sum_g (sum_{i in g} a_i (c~_i.w_i - estimate))^2 over G groups of samples
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from .._training.fitted import check_frames, deciding_model
from .._training.inputs import say_training_share, training_share
from .._utils.confidence import NO_INTERVAL, Bootstrap, Interval, group_terms, mean_and_error
from .._utils.errors import warn_once
from .._utils.frames import as_rows, check_index, take_rows
from .._utils.params import one_of
from .._utils.types import Predictor, RandomState, RegionParams
from ..regions.base import Region
from ._decide import decide
from ._feedback_costs import (
    DIRECT,
    PINV,
    ROBUST,
    choose_nuisance,
    choose_propensity,
    corrections,
    propensities,
    pseudo_costs,
    unidentified,
)
from ._feedback_log import Log, align, check_feasible, read_log
from ._folds import Splitter, cv_splits
from ._report import N_RESAMPLES, check_level

IPS = "inverse_propensity"

#: Share of one sample in the weights from which on overlap is poor.  Of 360 intervals of 95 % (six settings of
#: coverage in ``benchmarks/feedback.py``, 60 draws) 93 % are right if the share is below 0.04, and 86 % if it is not.
HEAVY = 0.03

check_method = one_of(DIRECT, IPS, ROBUST)


@dataclass(frozen=True)
class EstimatedCost:
    """Result of :func:`~skspo.estimated_cost`: prints plainly.

    Attributes
    ----------
    cost, standard_error : float
        Estimated mean cost of the decisions (value, if the region maximizes), and its standard error.
    interval : (float, float)
        Bootstrap interval of the cost; NaN for fewer than ten samples or groups.
    other_cost : float
        The same of the other policy, or the mean cost of past decisions; NaN if there is none.
    difference, difference_standard_error : float
        Cost minus that of the other policy, on the same samples.
    difference_interval : (float, float)
        Bootstrap interval of the difference.
    level : float
        Level of the intervals.
    method : str
        How costs were estimated.
    unseen_share : float
        Share of samples whose decision uses a variable about whose cost the log says nothing.
    n_samples, n_groups : int
        Number of samples, and of independent groups of them.
    nuisance : str
        Regression of the costs; empty if there is none.
    training_share : float
        Share of samples that the policy was fitted to, as far as features and costs show it; NaN if it is not known.
    effective_samples : float
        (sum of weights)^2 / sum of squares of the weights with which costs that were seen count, by sample or group: as
        many samples with the same decisions would tell as much.  NaN without propensities.
    """

    cost: float
    standard_error: float
    interval: Interval
    other_cost: float
    difference: float
    difference_standard_error: float
    difference_interval: Interval
    level: float
    method: str
    unseen_share: float
    n_samples: int
    n_groups: int
    nuisance: str
    training_share: float = np.nan
    effective_samples: float = np.nan

    def __str__(self) -> str:
        groups = "" if self.n_groups == self.n_samples else f" in {self.n_groups:,} groups"
        rows = [("mean cost", self.cost, self.standard_error, self.interval)]
        if not np.isnan(self.other_cost):
            rows.append(("compared with", self.other_cost, np.nan, NO_INTERVAL))
            rows.append(("difference", self.difference, self.difference_standard_error, self.difference_interval))
        lines = [f"Estimated from {self.n_samples:,} samples{groups}, {self.method}"]
        for label, value, error, ends in rows:
            error_text = "" if np.isnan(error) else f"standard error {error:.2g}"
            interval = "" if np.isnan(ends.low) else f", {100 * self.level:g} % interval {ends.text()}"
            lines.append(f"  {label:<13}  {value:.4g}  {error_text}{interval}".rstrip())
        if self.method == DIRECT:
            lines.append("Errors of the nuisance are not in the interval: use doubly_robust.")
        if self.unseen_share > 0:
            lines.append(f"{self.unseen_share:.0%} of the decisions use variables whose cost was never seen.")
        return "\n".join([*lines, *filter(None, [say_training_share(self.training_share)])])

    __repr__ = __str__


def estimated_cost(
    policy: Predictor | ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    *,
    decisions: ArrayLike | None = None,
    other: Predictor | ArrayLike | str | None = None,
    region: Region | None = None,
    method: str = ROBUST,
    nuisance: BaseEstimator | None = None,
    propensity: BaseEstimator | ArrayLike | None = None,
    cv: Splitter = 5,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    level: float = 0.95,
    n_jobs: int | None = None,
    random_state: RandomState = 0,
) -> EstimatedCost:
    """Mean cost of decisions, estimated from a log in which costs were seen only for what was chosen.

    Parameters
    ----------
    policy : fitted estimator, or array-like of shape (n_samples, d)
        Model that decides, or its decisions for these samples.
    X : array-like of shape (n_samples, n_features)
        Features of samples that were not used for training.
    y : array-like of shape (n_samples, d) or (n_samples,)
        Costs, NaN where they were not seen; or the total cost of each past decision.
    decisions : array-like of shape (n_samples, d), optional
        Past decisions.  They are needed if y has totals, and to compare with them.
    other : fitted estimator, array-like or "past", optional
        Policy to compare with on the same samples; "past" means past decisions, whose cost is known.
    region : Region or None, default=None
        Where decisions are made; None means that of the policy.
    method : {"doubly_robust", "direct", "inverse_propensity"}, default="doubly_robust"
        "direct" predicts the costs that were not seen, and is biased as the predictions are.  "inverse_propensity" uses
        costs that were seen, divided by the probability of seeing them.  "doubly_robust" is right if one of both is.
    nuisance, propensity, cv, n_jobs
        As in :class:`PartialFeedbackRegressor`; ``propensity`` may have one row for each sample.
    groups : array-like of shape (n_samples,), optional
        Labels of samples that depend on each other: standard errors and intervals count groups.
    sample_weight, offset, region_params
        As in :meth:`PartialFeedbackRegressor.fit`.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, RandomState or None, default=0
        Seed of the default nuisances and of the bootstrap.

    Returns
    -------
    result : EstimatedCost
        Prints the figures.

    See Also
    --------
    PartialFeedbackRegressor : Training on the same kind of log.

    Notes
    -----
    Nothing is clipped here, so that the estimate is not biased: where the policy does what was rarely done, the
    standard error is large; if one sample has much of the weight, the interval may be too short, and there is a
    warning.  The standard error counts the sampling of the samples.  No estimate is right if past decisions depended on
    something that influences costs and is not in X.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo import PartialFeedbackRegressor, ShortestPath, SPOPlusRegressor, estimated_cost
    >>> from skspo.datasets import make_shortest_path
    >>> X, C = make_shortest_path(600, grid=(3, 3), degree=4, random_state=0)
    >>> region = ShortestPath.grid(3, 3)
    >>> driven = region.argmin(np.random.default_rng(0).exponential(size=C.shape))
    >>> seen = np.where(driven > 0, C, np.nan)
    >>> model = PartialFeedbackRegressor(SPOPlusRegressor(region, alpha=0.1), random_state=0).fit(X[:300], seen[:300])
    >>> saved = estimated_cost(model, X[300:], seen[300:], decisions=driven[300:], other="past")
    >>> print(saved)
    Estimated from 300 samples, doubly_robust
      mean cost      ...  standard error ..., 95 % interval ... to ...
      compared with  ...
      difference     -...  standard error ..., 95 % interval -... to -...
    >>> true = ((model.decide(X[300:]) - driven[300:]) * C[300:]).sum(axis=1).mean()
    >>> bool(abs(saved.difference - true) < 3 * saved.difference_standard_error)
    True
    """
    check_level("level", level)
    check_method("method", method)
    model = policy if hasattr(policy, "predict") else None
    known: dict[str, Any] = {"sample_weight": sample_weight, "offset": offset, "region_params": region_params}
    fitted = deciding_model(model)
    region = getattr(fitted, "region_", None) if region is None else region
    if region is None:
        raise ValueError(
            "The policy has no region, so that it is not known which decisions are possible. Pass region=..."
        )
    names = getattr(fitted, "cost_names_in_", None)
    decisions = align(decisions, y, region, names)
    propensity = align(propensity, y, region, names, name="propensity")
    if decisions is None or np.ndim(y) == 2:
        check_frames(model, region, X=X, y=y, groups=groups, **known)
    check_index(X=X, y=y, decisions=decisions, propensity=propensity, groups=groups)
    rows = as_rows(X)
    shared = bool(getattr(fitted, "shared", False))
    log, view = read_log(rows, y, decisions, propensity, region, shared=shared, **known)
    n, d = log.C.shape
    W = _decisions_of(policy, "policy", X, view, n, d, offset, region_params)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    name, target, P = _target(log, method, nuisance, propensity, cv, groups, seed, n_jobs)
    past = isinstance(other, str)
    if past and (other != "past" or log.W is None):
        raise ValueError(f"other must be a policy, its decisions, or 'past' if decisions are given, got {other!r}.")
    policies, values = [W], [np.einsum("ij,ij->i", target, W)]
    if past:
        seen = log.z if log.z is not None else np.einsum("ij,ij->i", np.nan_to_num(log.C), log.W)
        values.append(seen if log.offset is None else seen + np.einsum("ij,ij->i", log.offset, log.W))
    elif other is not None:
        V = _decisions_of(other, "other", X, view, n, d, offset, region_params)
        values.append(np.einsum("ij,ij->i", target, V))
        policies.append(V)
    found = np.isfinite(values[0])  # rows that are never held out have no estimate
    values = [value[found] for value in values]
    weight = take_rows(log.weight, found)
    labels = None if groups is None else np.asarray(groups)[found]
    effective = np.nan if P is None else _effective_samples(log, policies, P, groups)
    terms = group_terms(np.column_stack(values), weight, labels)
    bootstrap = Bootstrap(terms, level, N_RESAMPLES, np.random.default_rng(seed))
    # Without another policy: NaN.
    against = values[1] if len(values) > 1 else np.full_like(values[0], np.nan)
    means, errors = mean_and_error(np.column_stack([values[0], against, values[0] - against]), weight, labels)
    lost = unidentified(log, view)
    return EstimatedCost(
        cost=float(means[0]),
        standard_error=float(errors[0]),
        interval=bootstrap.interval(1, 0),
        other_cost=float(means[1]),
        difference=float(means[2]),
        difference_standard_error=float(errors[2]),
        difference_interval=NO_INTERVAL if len(values) == 1 else bootstrap.interval(1, 0, minus=2),
        level=float(level),
        method=method,
        unseen_share=float((W[:, lost] != 0.0).any(axis=1).mean()),
        n_samples=int(found.sum()),
        n_groups=len(terms),
        nuisance=name,
        training_share=np.nan if model is None else training_share(model, X, np.asarray(y, float).reshape(n, -1)),
        effective_samples=effective,
    )


def _effective_samples(log: Log, policies: list[np.ndarray], P: np.ndarray, groups: ArrayLike | None) -> float:
    """How many samples with the same decisions would tell as much (Kish); a warning if one has much of the weight."""
    counts = corrections(log, np.ones_like(log.C if log.z is None else log.z[:, None]), P, PINV)
    effective, heaviest = np.inf, 0.0
    for W in policies:
        terms = np.einsum("ij,ij->i", counts, np.abs(W) if log.z is None else W)
        weights = group_terms(np.abs(terms)[:, None], log.weight, groups)[:, 1]
        total = weights.sum()
        effective = min(effective, float(total**2 / np.square(weights).sum()) if total > 0 else 0.0)
        heaviest = max(heaviest, float(weights.max() / total) if total > 0 else 1.0)
    if heaviest > HEAVY:
        warn_once(
            f"Few past decisions were like these: one {'sample' if groups is None else 'group'} has "
            f"{heaviest:.0%} of the weight, and all tell as much as {effective:.0f} samples with the same decisions "
            "would. The standard error is not reliable, and the interval may be too short."
        )
    return effective


def _target(
    log: Log,
    method: str,
    nuisance: BaseEstimator | None,
    propensity: Any,
    cv: Splitter,
    groups: ArrayLike | None,
    seed: int,
    n_jobs: int | None,
) -> tuple[str, np.ndarray, np.ndarray | None]:
    """Name of the nuisance, pseudo-costs of all samples, and propensities."""
    if log.complete:
        return "", log.with_offset(np.nan_to_num(log.C)), None
    splits = cv_splits(cv, log.X, log.C, log.weight, groups, scored=False)
    P = None
    if method != DIRECT:
        P = propensities(log, choose_propensity(log, splits, propensity, groups, n_jobs))
    if method == IPS:
        return "", pseudo_costs(log, np.zeros_like(log.C), P, PINV), P
    name, nuisances, _ = choose_nuisance(log, splits, nuisance, seed, n_jobs)
    return name, pseudo_costs(log, nuisances.held_out(), P, PINV if method == ROBUST else method), P


def _decisions_of(
    policy: Any,
    name: str,
    X: ArrayLike,
    view: Region,
    n: int,
    d: int,
    offset: ArrayLike | None,
    region_params: RegionParams | None,
) -> np.ndarray:
    """Decisions of a policy, which may be decisions already."""
    if hasattr(policy, "predict"):
        own = None if deciding_model(policy) is not None else view
        return decide(policy, X, region=own, offset=offset, region_params=region_params)
    W = check_array(align(policy, None, view), dtype=np.float64, ensure_2d=False, input_name=name)
    if W.shape != (n, d):
        raise ValueError(f"{name} must be a fitted model, or decisions of shape {(n, d)}, got shape {W.shape}.")
    check_feasible(W, view, view.possible(n, d), name, f"decision of {name}")
    return W
