"""Exact zeros of coefficients under an l1 penalty."""

from __future__ import annotations

import numpy as np

from .._training.objective import LinearObjective
from .._utils.limits import check_time
from .base import Result, certified

#: thresholds, relative to the largest coefficient, below which coefficients are set to zero; and the share of the
#: tolerance by which that may increase the objective
ZERO_LEVELS, ZERO_SHARE = 10.0 ** -np.arange(0.0, 12.5, 0.25), 0.1


def with_exact_zeros(objective: LinearObjective, result: Result, known: float, tol: float) -> Result:
    """Set small coefficients under an l1 penalty exactly to those of the prior.

    Interior-point and stochastic methods end near zero, not at it.  The objective may increase by a small share of the
    tolerance, but not above ``known``, the best objective of the reference models.  If the oracle is not optimal,
    ``result.objective`` is the cost of decisions, and the same holds for it.
    """
    measure = objective.decision_cost if objective.inexact else objective.value
    penalized = objective.l1 > 0
    D = result.coef - objective.prior
    largest = float(np.abs(D[:, penalized]).max(initial=0.0))
    if largest == 0.0:
        return result
    allowed = result.objective + ZERO_SHARE * tol * objective.gap_size(abs(result.objective))
    allowed = min(allowed, max(known, result.objective))
    low, high = 0, len(ZERO_LEVELS)  # bisection for the first threshold that is allowed
    best = result
    while low < high:
        check_time()
        middle = (low + high) // 2
        small = penalized & (np.abs(D) <= ZERO_LEVELS[middle] * largest)
        Theta = np.where(small, objective.prior, result.coef)
        value = measure(Theta) if (Theta != result.coef).any() else result.objective
        if value <= allowed:
            best, high = result._replace(coef=Theta, objective=value), middle
        else:
            low = middle + 1
    Theta = sparsest(objective, best.coef)
    if (Theta != best.coef).any():
        value = measure(Theta)
        if value <= allowed:
            best = best._replace(coef=Theta, objective=value)
    best = certified(objective, best, tol)
    return result if result.converged and not best.converged else best


def sparsest(objective: LinearObjective, Theta: np.ndarray) -> np.ndarray:
    """Coefficients with more zeros, no larger l1 norm, and the same decisions.

    The component of a column x along the normals N changes no decision, so x may be replaced by x + N^T h.  The l1 norm
    does not increase along one of +-N^T h until an entry vanishes.  Elimination then removes this entry from the other
    directions, so that it stays zero.
    """
    D = Theta - objective.prior
    for k in np.flatnonzero((objective.l1 > 0) & (objective.l2 == 0)) if objective.l1.any() else ():
        x, N = D[:, k].copy(), [] if objective.design.shared else list(objective.normals.copy())
        zeros, size = np.flatnonzero(x == 0.0).tolist(), float(np.abs(x).max(initial=0.0))
        while N:
            check_time()
            if zeros:
                j = zeros.pop()
                r = int(np.argmax([abs(row[j]) for row in N]))
                pivot = N[r]
                if abs(pivot[j]) <= 1e-9:
                    continue
                N.pop(r)
                N = [row - (row[j] / pivot[j]) * pivot for row in N]
                for row in N:
                    row[j] = 0.0
                continue
            direction = N[-1]
            direction = np.where(np.abs(direction) <= 1e-9 * np.abs(direction).max(), 0.0, direction)
            if float(np.sign(x) @ direction) > 0:
                direction = -direction
            towards = x * direction < 0
            if not towards.any():
                N.pop()
                continue
            lengths = np.where(towards, -x / np.where(towards, direction, 1.0), np.inf)
            j = int(np.argmin(lengths))
            x = x + lengths[j] * direction
            # Set other entries that vanish at the same step length to zero, too.
            gone = np.union1d(np.flatnonzero((x != 0.0) & (np.abs(x) <= 1e-12 * size)), [j])
            x[gone] = 0.0
            zeros.extend(gone.tolist())
        D[:, k] = x
    return objective.prior + D
