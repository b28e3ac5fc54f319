"""Models along a path of penalties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._training.in_memory import InMemoryObjective
from .._training.objective import LinearObjective
from .._training.run import Run
from .._utils.errors import NotCertifiedWarning, warn_once
from .._utils.limits import Deadline, TimeIsUp
from .._utils.params import check_params, integer
from .._utils.progress import Activity
from .._utils.shown import shown
from .._utils.types import RandomState, RegionParams
from ..losses import SPOPlusLoss
from ..regions.base import Region
from ..solvers import Result, Solver, Status
from ..solvers.auto import SolverOptions
from ..solvers.base import certified
from ..solvers.checks import check_decided, check_oracle, unknown, without_bound
from ..solvers.driver import minimize
from ._spo_plus import SPOPlusRegressor, remedy

#: First finite alpha of the automatic grid, in units of |G|, the norm of the gradient at the prior.  A ridge moves
#: the prior by about |G| / alpha typical costs: almost no decision changes yet.
LARGEST = 1e2

#: Last alpha of the automatic grid, in units of |G|: the penalty is negligible.
SMALLEST = 1e-3


class Outcome(NamedTuple):
    """How well a fit converged."""

    solver: str
    gap: float
    status: Status
    message: str
    inexact: bool  # whether the oracle was found not to be optimal

    @classmethod
    def of(cls, objective: LinearObjective, result: Result, solver: str) -> Outcome:
        """Return the outcome of a fit."""
        return cls(solver, result.gap, result.status, result.message, objective.inexact)


class PathPoint(NamedTuple):
    """One model of a path."""

    objective: InMemoryObjective
    run: Run
    result: Result
    outcome: Outcome
    fitted: bool = True  # if not, it is a copy of the model before


def alpha_grid(
    objective: InMemoryObjective, run: Run, alphas: ArrayLike | None, n_alphas: int, l1_ratio: float
) -> np.ndarray:
    """Candidates in decreasing order: those given, or an automatic grid."""
    if alphas is None:
        try:
            with run.deadline.enforced():
                return automatic_alphas(objective, run, l1_ratio, n_alphas)
        except TimeIsUp:  # nothing will be fitted on this grid
            return np.geomspace(LARGEST, SMALLEST, n_alphas)
    try:
        grid = np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError):
        grid = np.array(np.nan)
    if grid.ndim != 1 or not grid.size or not (grid >= 0).all():
        raise ValueError(f"alphas must be None or a sequence of numbers of at least 0, got {shown(alphas)}.")
    if np.isinf(grid).any() and not objective.prior_is_fitted:
        raise ValueError(
            "alphas contains infinity, which means the prior itself and needs prior='least_squares' or 'ridge'; got "
            "prior='zero'. Use a large number."
        )
    return np.sort(grid)[::-1]


class PenaltyPath:
    """Models for decreasing alphas, each started from the one before; all share the caches of ``run``."""

    def __init__(self, objective: InMemoryObjective, run: Run, l1_ratio: float, options: SolverOptions) -> None:
        self.objective, self.run, self.l1_ratio, self.options = objective, run, l1_ratio, options
        self.points: list[PathPoint] = []
        # seconds by which a fit exceeded its time, and by which all fits so far exceeded their shares
        self._overhead, self._debt = 0.0, 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Without the caches of oracles, which may be handles of back-ends, and all models but the last."""
        last = [point._replace(run=replace(point.run, memory={})) for point in self.points[-1:]]
        return self.__dict__ | {"run": replace(self.run, memory={}), "points": last}

    def extend(
        self,
        alphas: np.ndarray,
        deadline: Deadline,
        n_left: int | None = None,
        judge: Callable[[PathPoint], None] = lambda point: None,
    ) -> list[PathPoint]:
        """Fit models for the next alphas, which decrease, and return them.

        ``n_left`` is the number of alphas until the deadline, by default those given.  ``judge`` is called with each
        model; its time is part of the model's share.  If shares are too short for a fit, some are copies.
        """
        first, n_left = len(self.points), len(alphas) if n_left is None else n_left
        for before, alpha in enumerate(alphas):
            name = f"alpha {alpha:.3g}"
            if first + n_left > 1:
                name += f", {len(self.points) + 1} of {first + n_left}"
            with Activity(name, self.options.verbose):
                self._add(float(alpha), deadline, n_left - before, judge)
        return self.points[first:]

    def _add(self, alpha: float, deadline: Deadline, n_left: int, judge: Callable[[PathPoint], None]) -> None:
        """Fit one model; ``n_left`` is the number of alphas until the deadline, with this one."""
        left = deadline.left()
        share = left / n_left
        penalty = (0.0, 0.0) if np.isinf(alpha) else (alpha, self.l1_ratio)
        problem = self.objective.with_penalty(*penalty)
        if self.points and not np.isinf(alpha) and (left <= 0 or self._debt >= share):
            self._debt -= share
            point = _not_fitted(problem, self.points[-1], deadline, self.options)
        else:
            # Half of the time at least is for progress.
            seconds = max(share, 2.0 * self._overhead)
            part = seconds / left if 0 < left < np.inf else 1.0
            own = self.run.with_deadline(deadline.share(min(part, 1.0)))
            start = self.points[-1].result.coef if self.points else None
            if np.isinf(alpha):
                point = _prior(problem, own)
            else:
                result, solver = minimize(problem, own, self.options, start)
                point = PathPoint(problem, own, result, Outcome.of(problem, result, solver.name))
        self.points.append(point)
        judge(point)
        if point.fitted and left < np.inf:
            spent = left - deadline.left()
            self._overhead = max(self._overhead, spent - seconds)
            self._debt = max(self._debt + spent - share, 0.0)


def _prior(objective: InMemoryObjective, run: Run) -> PathPoint:
    """Model for an infinite alpha: the prior, whose loss is also its bound."""
    try:
        with run.deadline.enforced():
            check_decided(objective, run)
            value = objective.value(objective.prior)
            objective.trivial_value()
            result = Result(objective.prior, value, value, 1, Status.CONVERGED, radius=np.inf, gap=0.0)
            check_oracle(objective, result)
            result = without_bound(objective, result)
    except TimeIsUp as error:
        result = unknown(objective.prior, str(error))
    return PathPoint(objective, run, result, Outcome.of(objective, result, objective.prior_name))


def _not_fitted(objective: InMemoryObjective, last: PathPoint, deadline: Deadline, options: SolverOptions) -> PathPoint:
    """Copy of the model before, because there is no time for a fit."""
    Theta = last.result.coef
    value = last.result.objective - last.objective.penalty(Theta) + objective.penalty(Theta)
    message = f"{deadline.message} before this fit"
    result = Result(Theta, value, 0.0, 0, Status.TIME_LIMIT, message, radius=np.inf)
    result = certified(objective, result, options.tol)
    return PathPoint(objective, last.run, result, Outcome.of(objective, result, last.outcome.solver), fitted=False)


def automatic_alphas(objective: LinearObjective, run: Run, l1_ratio: float, n_alphas: int) -> np.ndarray:
    """Decreasing grid from the prior to almost no penalty, in the units of the objective's penalty."""
    Theta = objective.prior.copy()
    if not objective.prior_is_fitted:
        p = objective.design.n_features
        Theta[:, p:] = objective.least_squares[:, p:]  # the mean cost
    check_decided(objective, run)
    G = objective.loss_gradient(Theta, run.memory)[1]
    unit = objective.with_penalty(1.0, l1_ratio)
    ridge, lasso = unit.l2 > 0, unit.l1 > 0
    size = float(np.linalg.norm(G[:, ridge] / unit.l2[ridge])) if ridge.any() else np.inf
    largest, smallest = LARGEST * size, SMALLEST * size
    if lasso.any():
        first = float(np.abs(G[:, lasso] / unit.l1[lasso]).max())
        largest = min(largest, first)
        smallest = min(smallest, SMALLEST * first)
    if not largest > 0:
        # The prior is optimal for every alpha.
        largest, smallest = LARGEST, SMALLEST
    if not objective.prior_is_fitted:
        return np.geomspace(largest, smallest, n_alphas)
    return np.concatenate([[np.inf], np.geomspace(largest, smallest, n_alphas - 1)])


def warn_about(outcomes: list[Outcome], tol: float, where: str) -> None:
    """One warning for any number of fits that did not reach the tolerance."""
    # If the oracle is not optimal, there are no gaps, and the region has warned.
    missed = [outcome for outcome in outcomes if outcome.status is not Status.CONVERGED and not outcome.inexact]
    if missed:
        worst = max(missed, key=lambda outcome: outcome.gap)
        why = f"{worst.solver}: {worst.message}" if worst.message else worst.solver
        warn_once(
            f"{len(missed)} of {len(outcomes)} fits {where} stopped above tol={tol:g}, the worst at a relative duality "
            f"gap of {worst.gap:.1e} ({why}). Their coefficients are the best found, and lower bounds hold. "
            f"{remedy(worst.status)}",
            NotCertifiedWarning,
        )
    late = [outcome for outcome in outcomes if outcome.inexact and outcome.status is Status.TIME_LIMIT]
    if late:
        warn_once(
            f"{len(late)} of {len(outcomes)} fits {where} stopped early: {late[0].message}. Their coefficients are the "
            "best found. Increase time_limit to go on.",
            NotCertifiedWarning,
        )


def spo_plus_path(
    X: ArrayLike,
    C: ArrayLike,
    region: Region | None = None,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 20,
    l1_ratio: float = 0.0,
    prior: str = "least_squares",
    fit_intercept: bool = True,
    shared: bool = False,
    standardize: bool = True,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    region_params: RegionParams | None = None,
    solver: str | Solver = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    random_state: RandomState = None,
    verbose: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Linear SPO+ models for a decreasing sequence of penalties, each started from the one before.

    Parameters
    ----------
    X, C, sample_weight, offset, region_params
        As in :meth:`SPOPlusRegressor.fit`, where the costs ``C`` are called y.
    region : Region or None, default=None
        Feasible region; None means the unit Box, and a warning.
    alphas : array-like or None, default=None
        Strengths of the penalty, at least 0; infinity is the prior itself, unless ``prior="zero"``.  None means an
        automatic grid.
    n_alphas : int, default=20
        Length of the automatic grid.
    l1_ratio, prior, fit_intercept, shared
        As in :class:`SPOPlusRegressor`.
    standardize : bool, default=True
        Whether ``alphas`` refer to standardized features and normalized costs (see :class:`SPOPlusRegressorCV`), or,
        as in :class:`SPOPlusRegressor`, to the data as given.
    solver, tol, max_iter, random_state, verbose
        As in :class:`SPOPlusRegressor`.
    time_limit : float or None, default=None
        Seconds for the whole path; each model gets an equal share of the remaining time.  If that is not enough for a
        fit, some models are copied to the next smaller alphas.

    Returns
    -------
    alphas : ndarray of shape (n_alphas,)
        In decreasing order.
    coefs : ndarray of shape (n_alphas, d, n_features), or (n_alphas, q) if shared
    intercepts : ndarray of shape (n_alphas, d), or (n_alphas,) if shared
    objectives : ndarray of shape (n_alphas,)
        Objectives, penalty included, in units of cost.
    gaps : ndarray of shape (n_alphas,)
        Relative duality gaps.

    See Also
    --------
    SPOPlusRegressorCV : Chooses among the models of the path.

    Examples
    --------
    >>> from skspo import EntropySimplex, spo_plus_path
    >>> from skspo.datasets import make_portfolio
    >>> X, C = make_portfolio(50, 3, 5, degree=4, random_state=0)
    >>> alphas, coefs, intercepts, objectives, gaps = spo_plus_path(X, C, EntropySimplex(), n_alphas=5)
    >>> coefs.shape
    (5, 5, 3)
    >>> bool(gaps.max() <= 1e-6)
    True
    """
    model = SPOPlusRegressor(
        region,
        l1_ratio=l1_ratio,
        prior=prior,
        fit_intercept=fit_intercept,
        shared=shared,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        random_state=random_state,
        verbose=verbose,
    )
    integer(1)("n_alphas", n_alphas)
    check_params(model)
    run = Run(Deadline(time_limit))
    known: dict[str, Any] = {"sample_weight": sample_weight, "offset": offset, "region_params": region_params}
    data, _, region, _ = model._check_data(X, C, run.deadline, **known)
    with run.deadline.enforced():
        objective = model._objective(SPOPlusLoss(region), data, standardized=standardize)
    grid = alpha_grid(objective, run, alphas, n_alphas, float(l1_ratio))
    path = PenaltyPath(objective, replace(run, n_fits=len(grid)), float(l1_ratio), model._options())
    with Activity("spo_plus_path", verbose, len(grid), "alphas") as activity:
        points = path.extend(grid, run.deadline, judge=lambda point: activity.advance())
        activity.finish(f"{len(grid)} alphas, largest gap {max(point.outcome.gap for point in points):.1e}")
    warn_about([point.outcome for point in points], tol, "on the path")
    coefs, intercepts = zip(*(point.objective.to_user(point.result.coef) for point in points), strict=True)
    values = np.array([point.result.objective * objective.scale for point in points])
    return grid, np.array(coefs), np.array(intercepts), values, np.array([point.outcome.gap for point in points])
