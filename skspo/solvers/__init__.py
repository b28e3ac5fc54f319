"""Solvers of the training problem, by name.

=================  =========================================  ==========================================
name               what it asks of a region                   when to use it
=================  =========================================  ==========================================
``conic``          ``support_epigraph``, ``repair``           exact; any region in cone form, moderate n
``lbfgs``          ``strong_convexity``, ``repair``           exact; strongly convex regions, any n
``sgd``            nothing but ``argmin``                     approximate; everything else
=================  =========================================  ==========================================
"""

from __future__ import annotations

from typing import Any

from ..objective import LinearObjective
from ..regions.base import Region
from .base import Result, Solver, check_solver_serves
from .conic import ConicSolver
from .lbfgs import LBFGSSolver
from .sgd import SGDSolver

SOLVERS: dict[str, type[Solver]] = {cls.name: cls for cls in (ConicSolver, LBFGSSolver, SGDSolver)}

#: largest number of costs, n_samples * d, for which "auto" hands the whole problem to a conic solver
CONIC_LIMIT = 100_000


def choose_solver(region: Region, objective: LinearObjective) -> str:
    """Return the name of the solver that ``solver="auto"`` means.

    1. A strongly convex region makes the loss smooth: ``lbfgs``.
    2. A region in cone form and at most ``CONIC_LIMIT`` costs: ``conic``, exact.
    3. Otherwise: ``sgd``.
    """
    if not LBFGSSolver.missing(region):
        return "lbfgs"
    if not ConicSolver.missing(region) and objective.C.size <= CONIC_LIMIT:
        return "conic"
    return "sgd"


def make_solver(solver: str | Solver, region: Region, objective: LinearObjective, **params: Any) -> Solver:
    """Return a solver for a name or an instance, and check that it can serve the region.

    Parameters
    ----------
    solver : str or Solver
        A name of ``SOLVERS``, "auto", or an instance, which then uses its own parameters.
    region : Region
    objective : LinearObjective
    **params
        Parameters of the estimator; each solver takes those that it has.
    """
    if isinstance(solver, Solver):
        chosen = solver
    else:
        name = choose_solver(region, objective) if solver == "auto" else solver
        if name not in SOLVERS:
            raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, or a Solver; got {solver!r}.")
        cls = SOLVERS[name]
        known = cls._get_param_names()
        chosen = cls(**{key: value for key, value in params.items() if key in known})
    check_solver_serves(chosen, region, SOLVERS)
    return chosen


__all__ = [
    "CONIC_LIMIT",
    "SOLVERS",
    "ConicSolver",
    "LBFGSSolver",
    "Result",
    "SGDSolver",
    "Solver",
    "check_solver_serves",
    "choose_solver",
    "make_solver",
]
