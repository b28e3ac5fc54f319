"""Weights of a stack of models, chosen on held-out samples.

Conventions
-----------
    P (m, n, d)   held-out predictions of m members, less the offset, divided by their spreads
    v (m,)        weights; the stack predicts sum_k v_k P_k, plus the offset

There are few weights, so that the held-out regret itself can be compared.  It is a noisy, piecewise constant function
of the weights, and the best of many candidates is partly luck: its exact minimiser (``SPORegressor`` on these features)
has a lower regret on the held-out samples and a higher one on new samples.  So candidates are averaged, each with the
relative likelihood that it is as good as the best one, and the result is averaged with the weights that minimise the
SPO+ loss, which is convex and less noisy.

The regret of weights on the samples that chose them is too low, and so is that of the best two-stage member.  What is
reported of both is cross-fitted: the choice is made again without a part of the samples, and judged on this part.
"""

from __future__ import annotations

from math import erf
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from .._training.in_memory import InMemoryObjective
from .._training.run import Run
from .._utils.limits import Deadline
from ..losses import SPOPlusLoss
from ..regions.base import Region
from ..solvers.driver import SolverOptions, minimize

#: random candidates
DRAWS = 100

#: parameter of the Dirichlet distribution of random weights; below one, many members get almost no weight
CONCENTRATION = 0.7

#: ridge of the SPO+ weights: members that predict the same get equal weights
RIDGE = 1e-3

#: decimals of the SPO+ weights: further ones are noise, and may depend on the solver
DECIMALS = 2

#: parts of the held-out samples in cross-fitting, as many as there are folds by default
N_PARTS = 5

#: name of the weights that were chosen, among the candidates
STACK = "stack"


class HeldOut(NamedTuple):
    """Samples that were held out, and what the members predict for them."""

    P: np.ndarray  # (m, n, d) predictions, divided by their spreads
    C: np.ndarray  # (n, d) costs as given
    offset: np.ndarray | None  # (n, d)
    weight: np.ndarray | None  # (n,)
    region: Region  # region of these samples
    best: np.ndarray  # (n, d) optimal decisions
    spread: np.ndarray  # (m,) of the members

    def take(self, rows: np.ndarray) -> HeldOut:
        """Some of the samples."""
        offset, weight = (None if array is None else array[rows] for array in (self.offset, self.weight))
        region, best = self.region.take(rows), self.best[rows]
        return HeldOut(self.P[:, rows], self.C[rows], offset, weight, region, best, self.spread)

    def predict(self, weights: np.ndarray) -> np.ndarray:
        """Prediction of the stack, offset included."""
        C_hat = np.tensordot(weights, self.P, axes=1)
        return C_hat if self.offset is None else C_hat + self.offset

    def regret(self, weights: np.ndarray, others: HeldOut | None = None) -> np.ndarray:
        """SPO loss of each sample; the units of predictions, from ``others`` if given, matter if they are clipped."""
        region = self.region
        clips = region._clips(self.C.shape[1])
        C_hat = self.predict(weights) * (unit(self if others is None else others, weights) if clips else 1.0)
        W = region._decide_min(region.to_min(C_hat))
        return np.einsum("ij,ij->i", region.to_min(self.C), W - self.best)


class Candidates(NamedTuple):
    """Weights that were compared, with the regret of each sample; the last ones are those of the stack."""

    names: list[str]
    weights: np.ndarray  # (k, m)
    regrets: np.ndarray  # (k, n)

    def mean(self, weight: np.ndarray | None) -> np.ndarray:
        """Mean regret of each candidate."""
        return np.average(self.regrets, axis=1, weights=weight)


def choose_weights(
    held: HeldOut,
    names: list[str],
    kind: str,
    draws: np.ndarray,
    deadline: Deadline,
    groups: np.ndarray | None = None,
) -> Candidates:
    """Compare members, equal weights and, for kind "decisions", random weights; add the weights of the stack.

    Parameters
    ----------
    held : HeldOut
    names : list of str
        Names of the members.
    kind : {"decisions", "spo+", "least_squares", "equal"}
        How to choose the weights of the stack.
    draws : ndarray of shape (n_draws, n_members)
        Random weights, see ``draw_weights``.
    deadline : Deadline
        After it, no further random weights are tried.
    groups : ndarray of shape (n,), optional
        Groups of samples, which count as one observation.
    """
    m = len(names)
    equal = np.full(m, 1.0 / m)
    tried = [*zip(names, np.eye(m), strict=True), ("equal weights", equal)]
    if kind == "decisions":
        surrogate = spo_plus_weights(held, deadline)
        clipped = np.maximum(surrogate, 0.0) if (surrogate > 0).any() else equal
        if held.offset is None:
            clipped = clipped / clipped.sum()
        draws = draws.copy()
        draws[::2] = 0.5 * (draws[::2] + clipped)
        tried += [("SPO+ weights", clipped), *((f"random weights {k}", draw) for k, draw in enumerate(draws))]
    regrets: list[np.ndarray] = []
    for k, (_, weights) in enumerate(tried):
        if k > m and deadline.left() <= 0:
            break
        regrets.append(held.regret(weights))
    tried = tried[: len(regrets)]
    W = np.array([weights for _, weights in tried])
    if kind == "decisions":
        chosen = 0.5 * (clipped + likelihoods(np.array(regrets), held.weight, groups) @ W)
    elif kind == "spo+":
        chosen = spo_plus_weights(held, deadline)
    elif kind == "least_squares":
        chosen = least_squares_weights(held)
    else:
        chosen = equal
    if not chosen.any():
        chosen = equal
    return Candidates(
        [*(name for name, _ in tried), STACK], np.vstack([W, chosen]), np.vstack([*regrets, held.regret(chosen)])
    )


def draw_weights(n_members: int, rng: np.random.RandomState) -> np.ndarray:
    """Random weights that add up to one."""
    return rng.dirichlet(np.full(n_members, CONCENTRATION), size=DRAWS)


def cross_fitted(
    held: HeldOut,
    judged: HeldOut,
    names: list[str],
    kind: str,
    draws: np.ndarray,
    deadline: Deadline,
    groups: np.ndarray | None,
    two_stage: list[bool],
) -> tuple[np.ndarray, np.ndarray]:
    """Regret of each sample, by weights that were chosen without its part, and by the best two-stage member there.

    Groups are not divided.  NaN if there is only one group, no time, or no two-stage member.

    Parameters
    ----------
    held : HeldOut
        For the choice.
    judged : HeldOut
        The same samples; of a member that chooses its penalty on held-out samples, the predictions are those of the
        penalty that is chosen without the fold.
    names, kind, draws, deadline, groups
        See ``choose_weights``.
    two_stage : list of bool
        Which members ignore decisions.
    """
    n = len(held.C)
    stack, baseline = np.full(n, np.nan), np.full(n, np.nan)
    unit = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    part = unit * N_PARTS // (unit.max() + 1)
    for k in np.unique(part):
        rest, rows = np.flatnonzero(part != k), np.flatnonzero(part == k)
        if not rest.size or deadline.left() <= 0:
            continue
        others, here = held.take(rest), judged.take(rows)
        candidates = choose_weights(others, names, kind, draws, deadline, None if groups is None else groups[rest])
        stack[rows] = here.regret(candidates.weights[-1], others)
        best = best_two_stage(candidates.mean(others.weight), two_stage)
        if best is not None:
            baseline[rows] = here.regret(np.eye(len(names))[best], others)
    return stack, baseline


def best_two_stage(mean: np.ndarray, two_stage: list[bool]) -> int | None:
    """Number of the member with the lowest mean regret of those that ignore decisions; None without any."""
    numbers = np.flatnonzero(two_stage)
    return int(numbers[np.argmin(mean[numbers])]) if numbers.size else None


def likelihoods(regrets: np.ndarray, weight: np.ndarray | None, groups: np.ndarray | None) -> np.ndarray:
    """Relative likelihoods that each candidate is as good as the one with the lowest mean regret; they add up to one.

    The likelihood is exp(-z^2 / 2), where z is the paired difference divided by its standard error.  The noisier the
    regrets are, the more candidates have a share.
    """
    mean = np.average(regrets, axis=1, weights=weight)
    worse = regrets - regrets[np.argmin(mean)]
    gap, error = np.average(worse, axis=1, weights=weight), standard_errors(worse, weight, groups)
    z = np.divide(gap, error, out=np.where(gap > 0, np.inf, 0.0), where=error > 0)
    likelihood = np.exp(-0.5 * np.square(z))
    return likelihood / likelihood.sum()


def share_of_stack(gain: float, error: float) -> float:
    """Confidence level at which the gain over the best two-stage member is significant; 0 if there is no gain."""
    if gain <= 0.0:
        return 0.0
    return erf(gain / (np.sqrt(2.0) * error)) if error > 0 else 1.0


def spo_plus_weights(held: HeldOut, deadline: Deadline) -> np.ndarray:
    """Weights that minimise the SPO+ loss; without an offset only their ratios matter, and their sizes add up to one.

    A shared linear model whose features are the predictions of the members.
    """
    n = held.P.shape[1]
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
    size = float(np.abs(weights).sum()) or 1.0
    rounded = np.round(weights / size, DECIMALS)
    return rounded / np.abs(rounded).sum() if held.offset is None and rounded.any() else rounded * size


def least_squares_weights(held: HeldOut) -> np.ndarray:
    """Nonnegative weights with the least squared error of the components of costs that decisions depend on."""
    root = np.ones(held.P.shape[1]) if held.weight is None else np.sqrt(held.weight)
    target = held.C if held.offset is None else held.C - held.offset
    visible = [held.region.visible_costs(part) * root[:, None] for part in (*held.P, target)]
    columns = np.stack([part.ravel() for part in visible], axis=1)
    # A factor of the columns has the same minimiser, and few rows.
    R = np.asarray(np.linalg.qr(columns / (np.abs(columns).max() or 1.0), mode="r"))
    return nnls(R[:, :-1], R[:, -1])[0]


def spreads(region: Region, P: np.ndarray, offset: np.ndarray | None, weight: np.ndarray | None) -> np.ndarray:
    """Standard deviation of the part of the predictions that decisions depend on; 1 if there is an offset.

    Decisions do not change if predictions are multiplied by a positive number, so that the units of a member are
    arbitrary.  With an offset they are not.
    """
    if offset is not None:
        return np.ones(len(P))
    visible = np.stack([region.visible_costs(part) for part in P])
    mean = np.average(visible, axis=1, weights=weight).mean(axis=1)
    squares = np.square(visible - mean[:, None, None]).mean(axis=2)
    spread = np.sqrt(np.average(squares, axis=1, weights=weight))
    size = np.abs(P).max(axis=(1, 2))
    return np.where(spread > 1e-12 * size, spread, np.where(size > 0, size, 1.0))


def scales(held: HeldOut, weights: np.ndarray) -> np.ndarray:
    """Factors of the members: equal spreads, in units of the costs."""
    return unit(held, weights) / held.spread


def unit(held: HeldOut, weights: np.ndarray) -> float:
    """Factor that gives the prediction of the stack the units of the costs."""
    if held.offset is not None:
        return 1.0
    alone = np.flatnonzero(weights)
    if alone.size == 1 and np.isclose(weights[alone[0]], 1.0, rtol=1e-12):
        return float(held.spread[alone[0]])
    root = np.ones(len(held.C)) if held.weight is None else np.sqrt(held.weight)
    predicted, costs = (held.region.visible_costs(part) * root[:, None] for part in (held.predict(weights), held.C))
    size = float(np.square(predicted).sum())
    factor = float((predicted * costs).sum()) / size if size > 0 else 0.0
    # A negative factor would turn every decision around.
    return factor if factor > 0 else float(np.abs(weights) @ held.spread)


def compare(
    held: HeldOut,
    judged: HeldOut,
    candidates: Candidates,
    stack: np.ndarray,
    baseline: np.ndarray,
    groups: np.ndarray | None,
) -> dict[str, Any]:
    """Means and standard errors of the held-out regrets; those of members, stack and baseline are cross-fitted."""
    weight, m = judged.weight, len(judged.P)
    members = [
        candidates.regrets[k] if np.array_equal(held.P[k], judged.P[k]) else judged.regret(alone)
        for k, alone in enumerate(np.eye(m))
    ]
    regrets = np.vstack([*members, candidates.regrets[m:-1], stack])
    mean = np.average(regrets, axis=1, weights=weight)
    optimal = np.abs(np.einsum("ij,ij->i", judged.C, judged.best))
    size = float(np.average(optimal, weights=weight))
    gains = baseline - regrets
    return {
        "candidate": np.array(candidates.names, dtype=object),
        "weights": candidates.weights,
        "mean_test_spo_loss": mean,
        "se_test_spo_loss": standard_errors(regrets, weight, groups),
        "mean_test_normalized_spo_loss": mean / size if size > 0 else np.full_like(mean, np.nan),
        "mean_gain": np.average(gains, axis=1, weights=weight),
        "se_gain": standard_errors(gains, weight, groups),
        "rank_test_spo_loss": 1 + (mean[:, None] > mean).sum(axis=1),
    }


def standard_errors(values: np.ndarray, weight: np.ndarray | None, groups: np.ndarray | None) -> np.ndarray:
    """Standard error of the weighted mean of each row of values; samples of one group count as one observation."""
    n = values.shape[1]
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    terms = share * (values - values @ share[:, None])
    if groups is not None:
        _, codes = np.unique(groups, return_inverse=True)
        terms = np.stack([np.bincount(codes, row) for row in terms])
    k = terms.shape[1]
    return np.sqrt(np.square(terms).sum(axis=1) * (k / max(k - 1, 1)))
