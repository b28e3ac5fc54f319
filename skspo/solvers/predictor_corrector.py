"""The step of primal-dual interior-point methods: predictor and corrector (Mehrotra, 1992).

The loop and its rules are here.  Iterates know their Newton systems: ``interior_point.state`` that of all samples,
``interior_point.intervals`` those of all costs of a box, and ``bundle.program`` that of the bundle's quadratic program.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

#: a number, or an array of one for each problem if several are solved at once
Number: TypeAlias = Any
#: a search direction
Move: TypeAlias = Any

#: share of the way to the boundary that a step uses, as usual
MOST = 0.995

#: complementarity products aim at mu (mu of the predictor / mu)^3, as Mehrotra proposes, but not below this share of mu
LEAST_CENTERING = 1e-6

#: length below which a step is no progress
SHORTEST = 1e-6


class _System(Protocol):
    most: float  # share of the way to the boundary that a step uses
    one_step: bool  # whether primal and dual steps must have the same length

    def mu(self) -> Number: ...  # average of the complementarity products
    def factor(self, mu: Number) -> bool: ...  # prepare the Newton system, if that is possible
    def predictor(self) -> Move: ...  # direction to feasibility and to products of zero
    def corrector(self, move: Move, goal: Number) -> Move: ...  # to products ``goal``, to second order
    def decreases(self, move: Move) -> tuple[Number, Number]: ...  # largest relative ones, of primal and dual variables
    def after(self, move: Move, primal: Number, dual: Number) -> Number: ...  # mu after a predictor of these lengths
    def finite(self, move: Move) -> Any: ...  # whether all numbers of a direction are
    def advance(self, move: Move, primal: Number, dual: Number) -> None: ...


def step(system: _System) -> tuple[Number, Number]:
    """Predictor and corrector; return the primal and dual lengths of the step, zero if no progress is possible."""
    mu = system.mu()
    if not system.factor(mu):
        return 0.0, 0.0
    move = system.predictor()
    lengths = longest(*system.decreases(move), 1.0, system.one_step)
    with np.errstate(all="ignore"):  # products that overflow, or that are all zero
        left = np.minimum(np.divide(system.after(move, *lengths), mu), 1.0)
    goal = np.maximum(left**3, LEAST_CENTERING) * mu
    move = system.corrector(move, goal)
    primal, dual = longest(*system.decreases(move), system.most, system.one_step)
    moves = system.finite(move) & (np.maximum(primal, dual) >= SHORTEST)
    primal, dual = np.where(moves, primal, 0.0), np.where(moves, dual, 0.0)
    if moves.any():
        system.advance(move, primal, dual)
    return primal, dual


def longest(primal: Number, dual: Number, most: float, one_step: bool) -> tuple[Number, Number]:
    """Longest steps for these relative decreases, at most one, that use no more than ``most`` of the way."""
    ap, ad = (np.minimum(1.0, most / np.maximum(decrease, 1e-300)) for decrease in (primal, dual))
    if one_step:
        ap = ad = np.minimum(ap, ad)
    return ap, ad
