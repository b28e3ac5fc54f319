"""Weights of a stack of models, chosen on held-out samples.

With held-out predictions P of shape (m, n, d), less the offset and divided by their spreads, the stack with weights v
predicts sum_k v_k P_k plus the offset.  The weights minimize the SPO+ loss: the regret itself is a noisy, piecewise
constant function of them.
"""

from __future__ import annotations

from math import erf
from typing import Any, NamedTuple

import numpy as np

from .._training.in_memory import InMemoryObjective
from .._training.run import Run
from .._utils.confidence import mean_and_error
from .._utils.frames import take_rows
from .._utils.limits import Deadline
from .._utils.scaling import relative_weight
from ..losses import SPOPlusLoss
from ..regions.base import Region
from ..solvers.driver import SolverOptions, minimize
from ._folds import cv_splits
from ._stacking_members import Rows

#: Strength of the ridge on the weights: small next to the loss, but members that predict the same get equal weights.
RIDGE = 1e-3

#: name of the stack among its members
STACK = "stack"


class HeldOut(NamedTuple):
    """Samples that were held out, and what the members predict for them."""

    P: np.ndarray  # (m, n, d) predictions, divided by their spreads
    C: np.ndarray  # (n, d) costs as given
    offset: np.ndarray | None  # (n, d)
    weight: np.ndarray | None  # (n,)
    groups: np.ndarray | None  # (n,) samples of one group count as one observation
    region: Region  # region of these samples
    best: np.ndarray  # (n, d) optimal decisions
    spread: np.ndarray  # (m,) of the members

    @classmethod
    def of(cls, P: np.ndarray, C: np.ndarray, data: Rows, region: Region) -> HeldOut:
        """Samples of positive weight that all members have predicted."""
        weight = relative_weight(data.weight)
        rows = np.flatnonzero(np.isfinite(P).all(axis=(0, 2)))
        rows = rows if weight is None else rows[weight[rows] > 0]
        offset, weight, groups = (take_rows(x, rows) for x in (data.offset, weight, data.groups))
        P, C, here = P[:, rows], C[rows], region.take(rows)
        spread = np.ones(len(P)) if offset is not None else spreads(here, P, weight)
        return cls(P / spread[:, None, None], C, offset, weight, groups, here, here.solve_min(here.to_min(C)), spread)

    def take(self, rows: np.ndarray) -> HeldOut:
        """Some of the samples."""
        offset, weight, groups = (take_rows(x, rows) for x in (self.offset, self.weight, self.groups))
        region, best = self.region.take(rows), self.best[rows]
        return HeldOut(self.P[:, rows], self.C[rows], offset, weight, groups, region, best, self.spread)

    def predict(self, weights: np.ndarray) -> np.ndarray:
        """Prediction of the stack, offset included."""
        C_hat = np.tensordot(weights, self.P, axes=1)
        return C_hat if self.offset is None else C_hat + self.offset

    def regret(self, weights: np.ndarray, others: HeldOut | None = None) -> np.ndarray:
        """SPO loss of each sample; the units of predictions, from ``others`` if given, matter if they are clipped."""
        region = self.region
        clips = region._clips(self.C.shape[1])
        C_hat = self.predict(weights) * ((others or self).unit(weights) if clips else 1.0)
        W = region._decide_min(region.to_min(C_hat))
        return np.einsum("ij,ij->i", region.to_min(self.C), W - self.best)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Weighted mean over the samples, in the last axis."""
        return np.average(values, axis=-1, weights=self.weight)

    def unit(self, weights: np.ndarray) -> float:
        """Factor that gives the prediction of the stack the units of the costs."""
        if self.offset is not None:
            return 1.0
        alone = np.flatnonzero(weights)
        if alone.size == 1 and np.isclose(weights[alone[0]], 1.0, rtol=1e-12):
            return float(self.spread[alone[0]])
        root = np.ones(len(self.C)) if self.weight is None else np.sqrt(self.weight)
        predicted, costs = (self.region.visible_costs(part) * root[:, None] for part in (self.predict(weights), self.C))
        size = float(np.square(predicted).sum())
        factor = float((predicted * costs).sum()) / size if size > 0 else 0.0
        # A negative factor would turn every decision around.
        return factor if factor > 0 else float(np.abs(weights) @ self.spread)


class Choice(NamedTuple):
    """Weights of the stack without ``guard``, and how it compares with the members."""

    weights: np.ndarray  # (m,)
    best: int | None  # number of the best two-stage member
    share: float  # confidence level at which the regret of the stack is lower than that of the best two-stage member
    regrets: np.ndarray  # (m, n) of the members
    cross_fitted: np.ndarray  # (2, n) of the stack and of the best two-stage member

    def figures(self, held: HeldOut, names: list[str]) -> dict[str, Any]:
        """Means and standard errors of the held-out regrets, as ``cv_results_``."""
        m = len(names)
        stack, baseline = self.cross_fitted
        equal = np.full(m, 1.0 / m)
        regrets = np.vstack([self.regrets, held.regret(equal), stack])
        mean, error = mean_and_error(regrets.T, held.weight, held.groups)
        mean_gain, gain_error = mean_and_error((baseline - regrets).T, held.weight, held.groups)
        size = float(held.mean(np.abs(np.einsum("ij,ij->i", held.C, held.best))))
        return {
            "candidate": np.array([*names, "equal weights", STACK], dtype=object),
            "weights": np.vstack([np.eye(m), equal, self.weights]),
            "mean_test_spo_loss": mean,
            "se_test_spo_loss": error,
            "mean_test_normalized_spo_loss": mean / size if size > 0 else np.full_like(mean, np.nan),
            "mean_gain": mean_gain,
            "se_gain": gain_error,
            "rank_test_spo_loss": 1 + (mean[:, None] > mean).sum(axis=1),
        }


def choose(held: HeldOut, two_stage: list[bool], kind: str, deadline: Deadline) -> Choice:
    """Choose weights and the best of the members that ignore decisions, ``two_stage``, and cross-fit their regrets.

    Groups are not divided.  Cross-fitted regrets are NaN if there is only one group or no time.
    """
    alone, free = np.eye(len(two_stage)), np.flatnonzero(two_stage)
    regrets = np.stack([held.regret(weights) for weights in alone])

    def best_of(samples: HeldOut, losses: np.ndarray) -> int | None:
        return int(free[np.argmin(samples.mean(losses[free]))]) if free.size else None

    weights, best, share = choose_weights(held, kind, deadline), best_of(held, regrets), 1.0
    if best is not None:
        gains = (regrets[best] - held.regret(weights))[:, None]
        share = share_of_stack(*(float(figure[0]) for figure in mean_and_error(gains, held.weight, held.groups)))
    n = len(held.C)
    judged = np.full((2, n), np.nan)
    units = n if held.groups is None else len(np.unique(held.groups))
    for rest, rows in cv_splits(None, held.C, held.C, held.weight, held.groups) if units > 1 else []:
        if deadline.left() <= 0:
            break
        others, here = held.take(rest), held.take(rows)
        judged[0, rows] = here.regret(choose_weights(others, kind, deadline), others)
        member = best_of(others, regrets[:, rest])
        if member is not None:
            judged[1, rows] = here.regret(alone[member], others)
    return Choice(weights, best, share, regrets, judged)


def choose_weights(held: HeldOut, kind: str, deadline: Deadline) -> np.ndarray:
    """Weights of the stack; without an offset their sizes add up to one, because only their ratios matter.

    Those of kind "spo+" are a shared linear model whose features are the predictions of the members.
    """
    m, n = held.P.shape[:2]
    equal = np.full(m, 1.0 / m)
    if kind == "equal":
        return equal
    objective = InMemoryObjective(
        SPOPlusLoss(held.region),
        held.P.transpose(1, 2, 0).reshape(n, -1),
        held.C,
        held.weight,
        offset=held.offset,
        alpha=RIDGE,
        l1_ratio=0.0,
        prior="zero",
        fit_intercept=False,
        shared=True,
        possible=held.region.possible(*held.C.shape),
    )
    result, _ = minimize(objective, Run(deadline), SolverOptions())
    weights = np.asarray(objective.to_user(result.coef)[0])
    if not weights.any():
        return equal
    return weights / np.abs(weights).sum() if held.offset is None else weights


def share_of_stack(gain: float, error: float) -> float:
    """Confidence level at which the gain over the best two-stage member is significant; 0 if there is no gain."""
    if gain <= 0.0:
        return 0.0
    return erf(gain / (np.sqrt(2.0) * error)) if error > 0 else 1.0


def spreads(region: Region, P: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Standard deviation of the part of the predictions that decisions depend on.

    Decisions do not change if predictions are multiplied by a positive number, so that the units of a member are
    arbitrary, unless there is an offset.
    """
    visible = np.stack([region.visible_costs(part) for part in P])
    mean = np.average(visible, axis=1, weights=weight).mean(axis=1)
    squares = np.square(visible - mean[:, None, None]).mean(axis=2)
    spread = np.sqrt(np.average(squares, axis=1, weights=weight))
    size = np.abs(P).max(axis=(1, 2))
    return np.where(spread > 1e-12 * size, spread, np.where(size > 0, size, 1.0))
