"""Dual block-coordinate ascent for models with many coefficients: any region, nothing but batched argmins.

Every sample keeps the few decisions that it has met, with the weights of a convex combination.  One outer iteration:

    improve    sweeps over the samples move the weights of the cached decisions (``kernels.sweep``), and so do steps of
               all samples together (``face``), until little is to be gained there
    certify    one oracle call for all rows: objective, lower bound, and the gap of the proximal problem
    balance    weights whose moments vanish where no penalty absorbs them (``face``), for a bound without a charge
    extend     decisions that beat the cached ones are added, those that have been without weight for long are dropped
    recenter   columns without a ridge have a proximal term; once its problem is solved well enough, the center moves:
               the method of multipliers

With a ridge, regions that are a box with at most one linear constraint keep one point for each sample in place of
decisions, and the sweeps project it (``points``).

With a ridge (also with an l1 norm beside it) the coefficients are an explicit function of the weights (``problem``).
Columns without one, that is the free intercept, all columns if alpha = 0, and those of a pure lasso, have the proximal
term.  A lasso absorbs moments up to its size; what is beyond is scaled down, decisions moving towards w_i.

The time of a sweep grows with the number of features times the number of costs in which a sample's decisions differ, so
that neither many coefficients nor many samples are an obstacle.  Small and degenerate problems without a ridge are for
interior point.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..._training.in_memory import InMemoryObjective
from ..._training.objective import LinearObjective
from ..._training.run import Run
from ..._utils.limits import one_blas_thread
from ..._utils.progress import Activity
from ..base import Estimate, Result, Solver, Status, features_per_row, pass_work, rows_of
from .ascent import Ascent, State
from .pool import PooledAscent, pool_of

#: multiplications for each sample, cost and feature that the fits of benchmarks/auto.py needed with a ridge
SWEEPS = 300.0

#: passes of the oracle that they needed
ORACLE_PASSES = 15.0

#: multiplications with a strong ridge, for each typical cost that the optimum is away from the prior
NEAR = 10.0

#: how many times as much of all they needed without a ridge
WITHOUT_RIDGE = 10.0

#: cached decisions for each sample
DECISIONS = 10.0

#: seconds that compiling takes for the first time, roughly
COMPILATION = 10.0

#: seconds for loading what was compiled before
LOADING = 0.2


class DualSolver(Solver):
    """Exact minimization by block-coordinate ascent of the dual.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Largest number of outer iterations, one batched argmin each; None: no limit.
    random_state : int, RandomState instance or None, default=None
        Order of the samples in the sweeps; None means 0, so that results can be repeated.
    verbose : int, default=0
    """

    name = "dual"
    requires = ()
    supports_sparse = True

    def __init__(
        self,
        *,
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(tol=tol, max_iter=max_iter, verbose=verbose)
        self.random_state = random_state

    @classmethod
    def estimate(cls, objective: LinearObjective, run: Run) -> Estimate:
        """Sweeps, some passes of the oracle, and loading the kernels; memory of a few decisions per sample."""
        d, n = objective.normals.shape[1], objective.n_samples
        entries = float(n * d) * features_per_row(objective)
        sweeps = min(SWEEPS, NEAR * distance_from_prior(objective, run))
        work = sweeps * entries + ORACLE_PASSES * pass_work(objective)
        if not objective.l2.any() and not may_interpolate(objective):
            work *= WITHOUT_RIDGE
        return Estimate(work + 1e9 * LOADING / run.n_fits, 8.0 * DECISIONS * n * d)

    @classmethod
    def fits(cls, objective: LinearObjective, run: Run) -> bool:
        """Whether there is time to load the kernels, or to compile them."""
        if f"{__package__}.kernels" in sys.modules:
            return True
        return run.deadline.left() >= (LOADING if compiled_before() else COMPILATION)

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Minimize from ``start`` or from least squares; ``n_iter`` counts outer iterations."""
        result, run.states.dual = self.solve_from(rows_of(objective), run, start, run.states.dual)
        return result

    def solve_from(
        self, objective: InMemoryObjective, run: Run, start: np.ndarray | None = None, state: State | None = None
    ) -> tuple[Result, State]:
        """Minimize from the state of a fit to the same rows, and return the new one."""
        load_kernels(self.verbose)
        with one_blas_thread:  # also for results that do not depend on the number of threads
            start = objective.least_squares if start is None else start
            ascent: Ascent | None = run.paused.pop(self.name, None)
            if ascent is None:
                pool = pool_of(objective, run)
                given = (self, objective, run, start, state)
                ascent = Ascent(*given) if pool is None else PooledAscent(*given, pool=pool)
            else:
                ascent.go_on(run, start)
            result = ascent.minimize()
            if result.status is Status.PAUSED:
                run.paused[self.name] = ascent
            return result, State(ascent.problem, ascent.cache, ascent.best, ascent.n_iter)


def may_interpolate(objective: LinearObjective) -> bool:
    """Whether there are so few samples that a model may decide about all of them without loss.

    Points in general position with random labels of two classes can be separated up to two samples per coefficient.
    With more directions in which decisions vary the number grows with their logarithm.
    """
    directions = max(objective.normals.shape[1] - objective.normals.shape[0], 1)
    return objective.n_samples <= (2.0 + np.log2(directions)) * objective.design.n_coef


def distance_from_prior(objective: LinearObjective, run: Run) -> float:
    """Distance of the optimum from the prior, in typical costs, as the gradient at the prior predicts it.

    It is infinite if a coefficient has no ridge, and where a gradient takes long.
    """
    quick = isinstance(objective, InMemoryObjective) and not (objective.region.oracle_is_solver or objective.undecided)
    if not quick or not (objective.l2 > 0).all():
        return np.inf
    return float(np.linalg.norm(objective.loss_gradient(objective.prior, run.memory)[1] / objective.l2))


@cache
def compiled_before() -> bool:
    """Whether numba's files beside the kernels are newer than their sources and numba itself."""
    folder = Path(__file__).parent
    numba = Path(find_spec("numba").origin)  # type: ignore[union-attr, arg-type]  # importing it takes a moment
    sources = folder / "kernels.py", numba
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    compiled = [file.stat().st_mtime for file in folder.glob(f"__pycache__/kernels.sweep-*.{version}.nbi")]
    return max(compiled, default=0.0) > max(file.stat().st_mtime for file in sources)


def load_kernels(verbose: int) -> None:
    """Import numba and the kernels, which compiles them if they are not in numba's cache."""
    name = f"{__package__}.kernels"
    if name in sys.modules:
        return
    Activity("dual", verbose).update("loading compiled kernels, which takes some seconds the first time", now=True)
    from . import kernels  # noqa: F401
