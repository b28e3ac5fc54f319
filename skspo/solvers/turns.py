"""Solvers take turns, with budgets of counted work, until one closes the gap.

No rule can know how degenerate a problem is, and so which solver is the fastest.  Estimates (``Solver.estimate``) order
the solvers.  The first one gets a budget of a multiple of its estimate.  If it has not closed the gap by then, and does
not seem to close it soon, it pauses and the next one gets the same budget, and so on round, with budgets that double.
A paused solver goes on where it was.  The total is a small multiple of the work of the best solver, however wrong the
estimates are.

Work is counted, not timed: the same data give the same model on every machine, whatever else it does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._training.objective import LinearObjective
from .._training.run import Budget, Run
from .base import STEP, Solver, Status

#: budget of the first turn, as a multiple of the estimate of the first solver
FIRST_TURN = 2.0

#: a solver that can pause has no turn while its estimate is more than this multiple of the budget: estimates may be ten
#: times too large, and a turn of a few iterations is in vain.  Others have none while it is more than the budget.
TOO_LARGE = 10.0


def take_turns(
    objective: LinearObjective, run: Run, solvers: list[Solver], turn: Callable[[Solver], Status | None]
) -> None:
    """Give solvers their turns.

    Parameters
    ----------
    objective : LinearObjective
    run : Run
    solvers : list of Solver
        In the order of their estimates.
    turn : callable
        Runs a solver, whose budget is that of ``run``.  Returns the status of its result, or None to end.  A solver
        that is not paused has no other turn.
    """
    waiting = [(solver, solver.estimate(objective, run).work if len(solvers) > 1 else np.inf) for solver in solvers]
    allowance = FIRST_TURN * (waiting[0][1] or STEP)  # work may be too little to be counted
    while waiting:
        for entry in list(waiting):
            solver, estimate = entry
            alone = len(waiting) == 1
            if not alone and estimate > (TOO_LARGE if solver.can_pause else 1.0) * allowance:
                continue
            goes_on = True
            while goes_on:
                run.budget, before = Budget(np.inf if alone else allowance), len(run.history)
                status = turn(solver)
                if status is None:
                    return
                goes_on = status is Status.PAUSED and closing(objective, run.history[before:], solver.tol)
            if status is not Status.PAUSED:
                waiting.remove(entry)
        least = min((estimate for _, estimate in waiting), default=0.0)
        allowance = max(2.0 * allowance, least / TOO_LARGE)  # so that somebody has a turn


def closing(objective: LinearObjective, history: list[tuple[float, int, float, float, str]], tol: float) -> bool:
    """Whether the gap goes down so fast that it will be closed in as many steps as these or fewer."""
    gaps = [objective.relative_gap(value, bound) for _, _, value, bound, _ in history if np.isfinite(bound)]
    half = len(gaps) // 2
    if half < 2:
        return False
    first, last = min(gaps[:half]), min(gaps)
    if not 0.0 < last < first < np.inf:
        return False
    return bool(np.log(max(last / tol, 1.0)) <= 2.0 * np.log(first / last))
