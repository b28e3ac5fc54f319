"""The choice of ``solver="auto"``: the solvers that can solve a problem, in the order of their estimates."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._training.objective import LinearObjective
from .._training.run import Run
from .._utils.shown import shown
from .base import Solver, check_data, check_solver_serves, penalty_kind
from .bundle.solver import BundleSolver
from .conic import ConicSolver
from .dual.solver import DualSolver
from .interior_point.intervals import IntervalSolver
from .interior_point.solver import InteriorPointSolver
from .lbfgs import LBFGSSolver
from .newton import NewtonSolver
from .sgd import SGDSolver

SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls
    for cls in (
        LBFGSSolver,
        NewtonSolver,
        IntervalSolver,
        InteriorPointSolver,
        ConicSolver,
        BundleSolver,
        DualSolver,
        SGDSolver,
    )
}


class SolverOptions(NamedTuple):
    """A solver, by name or as an instance, or "auto"; and the parameters of solvers that are not instances."""

    solver: str | Solver = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0


#: share of the machine's memory that a solver may be expected to use
MEMORY_SHARE = 0.5


@cache
def memory_of_machine() -> float:
    """Bytes, at most those of the container; not those that are free now, on which the choice must not depend."""
    memory = np.inf
    with suppress(AttributeError, ValueError, OSError):  # not known on this system
        memory = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):  # versions 2 and 1 of control groups
        with suppress(ValueError, OSError):
            memory = min(memory, float(Path("/sys/fs/cgroup", limit).read_text()))
    return memory


def bytes_to_load(objective: LinearObjective, solver: Solver | type[Solver]) -> float:
    """Memory of the rows, if they have to be loaded for a solver."""
    return objective.bytes_to_load if solver.loads_rows(objective) else 0.0


def choose_solvers(objective: LinearObjective, run: Run | None = None) -> list[str]:
    """Return the solvers among which ``solver="auto"`` chooses, those first that are expected to do the least work.

    They are those that can minimize the objective, that fit into memory, and that fit into ``time_limit``.  Data in
    chunks or on a cluster are loaded into memory for solvers that do not read them where they are.  Solvers take
    turns until the duality gap is closed (see ``skspo.solvers.driver``), so that the order is not decisive.  ``sgd`` is
    used if there is no other.  It is also added if the oracle may be a heuristic
    (``OracleRegion(on_suboptimal="warn")``), but then it runs only if the oracle was found not to be optimal, because
    the other solvers need exact decisions.

    Parameters
    ----------
    objective : LinearObjective
    run : Run, optional
        Gives the time limit; by default there is none.

    Returns
    -------
    names : list of str
    """
    run = Run() if run is None else run
    penalty = penalty_kind(objective.alpha, objective.l1_ratio)
    work = {}
    for name, solver in SOLVERS.items():
        able = solver.supports_sparse or not objective.design.sparse
        if not able or solver.shortcomings(objective.region, objective.loss, penalty):
            continue
        estimate = solver.estimate(objective, run)
        memory = estimate.memory + bytes_to_load(objective, solver)
        fits = memory <= MEMORY_SHARE * memory_of_machine() and solver.fits(objective, run)
        if fits and estimate.work < np.inf:
            work[name] = estimate.work
    names = sorted(work, key=lambda name: work[name])
    if objective.in_memory and (not names or objective.region._may_be_inexact):
        names.append("sgd")
    return names


def make_solvers(objective: LinearObjective, run: Run, solver: str | Solver, **params: Any) -> list[Solver]:
    """Return the solvers to try, for a name or an instance, after checking that they can solve the problem.

    Parameters
    ----------
    objective : LinearObjective
    run : Run
    solver : str or Solver
        A name of ``SOLVERS``, "auto", or an instance, which then uses its own parameters.
    **params
        Parameters of the estimator; each solver takes those that it has.
    """
    if isinstance(solver, Solver):
        chosen = [solver]
    else:
        names = choose_solvers(objective, run) if solver == "auto" else [solver]
        if not isinstance(solver, str) or not set(names) <= set(SOLVERS):
            raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, or a Solver; got {shown(solver)}.")
        chosen = []
        for name in names:
            known = SOLVERS[name]._get_param_names()
            chosen.append(SOLVERS[name](**{key: value for key, value in params.items() if key in known}))
    penalty = penalty_kind(objective.alpha, objective.l1_ratio)
    for candidate in chosen:
        check_solver_serves(candidate, objective.region, objective.loss, penalty, SOLVERS)
        check_data(
            candidate, objective, SOLVERS, bytes_to_load(objective, candidate), MEMORY_SHARE * memory_of_machine()
        )
    return chosen
