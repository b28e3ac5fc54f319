"""``SPORegressorCV``: a linear model between the SPO+ fit and the SPO fit, chosen by held-out decisions.

The end of the descent of the SPO loss has the lowest regret on the training data, but it follows noise.  All models on
the line from the start to the end cost one descent; a penalty on the distance from the start needs one for each value.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .._training.in_memory import InMemoryObjective
from .._training.inputs import restore_rng_on_failure
from .._training.run import Run
from .._utils.frames import check_index
from .._utils.limits import Deadline, TimeIsUp, count_workers
from .._utils.params import Check, check_params, integer, one_of
from .._utils.progress import Activity, silent
from .._utils.shown import shown
from .._utils.types import RandomState
from ..losses import SPOLoss
from ..regions.base import Region
from ..solvers import Result, Solver, Status
from ..solvers.driver import SolverOptions, minimize_spo
from ._base import GroupsFitMixin
from ._cv import SPOPlusRegressorCV
from ._folds import SIGNIFICANT, Fold, Splitter, cv_splits, cv_table, excess_regret
from ._spo import choose_spo_solver
from ._spo_plus import LinearSPOPlusRegressor, warn_shortfall

#: iterations of a descent, unless the user says how many: to stop early is a further protection against overfitting
MAX_ITER = {"lbfgs": 300, "line-search": 1000}

#: regret of each held-out sample of a fold and each step, and the weights of the samples
Regrets: TypeAlias = tuple[np.ndarray, np.ndarray]


class _Line(NamedTuple):
    """The models between the start and the end of a descent."""

    objective: InMemoryObjective  # of the SPO loss
    run: Run
    start: np.ndarray
    result: Result  # the end
    solver: Solver

    def at(self, step: float) -> np.ndarray:
        """Coefficients after a part of the way."""
        return self.start + step * (self.result.coef - self.start)

    def result_at(self, step: float) -> Result:
        """Result of a part of the way, with its own objective."""
        if step == 1.0 or self.objective.undecided:
            return self.result
        value = self.objective.value(self.at(step))
        gap = self.objective.relative_gap(value, self.result.lower_bound)
        return self.result._replace(coef=self.at(step), objective=value, gap=gap)


class SPORegressorCV(GroupsFitMixin, LinearSPOPlusRegressor):
    """Linear model of costs between the SPO+ fit and the SPO fit, chosen by held-out decisions.

    :class:`SPORegressor` minimizes the regret of the training data.  With few samples it overfits.  This estimator
    starts at the SPO+ model, whose penalty is chosen as in :class:`SPOPlusRegressorCV`, minimizes the regret from
    there, and goes only a part of the way to the result: ``coef_ = start + step_ (end - start)``.  The step is the
    smallest one whose regret on held-out samples is within two standard errors of the lowest; 0 is the start.

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions.  None means the unit Box, and ``fit`` warns.
    init : {"spo+", "least_squares"}, default="spo+"
        The start: the SPO+ model with a cross-validated penalty, or least squares.
    steps : array-like or None, default=None
        Candidates between 0, the start, and 1, the SPO fit.  None means 0, 0.1, ..., 1.
    n_alphas : int, default=20
        Number of candidates for the penalty of the SPO+ model.
    fit_intercept, shared
        As in :class:`SPOPlusRegressor`.
    cv : int, cross-validation generator, iterable or None, default=None
        As everywhere in scikit-learn; None means five folds, or as many as there are samples.
    solver : {"auto", "lbfgs", "perturbation", "line-search", "milp"} or Solver, default="auto"
        As in :class:`SPORegressor`, but "auto" is "perturbation" where it is not "lbfgs".
    n_restarts, tol
        As in :class:`SPORegressor`; ``tol`` is also that of the SPO+ model.
    max_iter : int or None, default=None
        Iterations of each descent; None means 300 (lbfgs), 200 (perturbation) or 1000 line searches.
    time_limit : float or None, default=None
        Seconds for the whole ``fit``.  Half of it is for the SPO+ model; the folds and the fit to all data get equal
        shares of the rest.
    n_jobs : int or None, default=None
        Number of folds fitted at the same time; None means 1, and -1 as many as there are cores.
    random_state : int, RandomState instance or None, default=None
        Seed of random directions and restarts.
    verbose : int, default=0
        1 prints progress.

    Attributes
    ----------
    step_ : float
        The chosen step.
    steps_ : ndarray of shape (n_steps,)
        Candidates, in increasing order.
    alpha_ : float
        Penalty of the SPO+ model at the start, in standardized units; infinity if the start is least squares.
    cv_results_ : dict of ndarrays of shape (n_steps,)
        As in :class:`SPOPlusRegressorCV`, with "step" instead of "alpha" and scores that are minus the mean regret;
        "standard_error", of the difference to the step with the lowest regret.
    coef_, intercept_
        Of the chosen model, for features and costs as given.
    objective_ : float
        Mean SPO loss of the training data.
    lower_bound_, certificate_radius_, duality_gap_, status_, n_iter_, history_, solver_
        Of the descent on all data, as in :class:`SPORegressor`.
    prediction_factor_, region_, n_features_in_, feature_names_in_, cost_names_in_
        As in :class:`SPOPlusRegressor`.

    See Also
    --------
    SPORegressor : The whole way.
    SPOPlusRegressorCV : The start.

    Examples
    --------
    >>> from skspo import EntropySimplex, SPORegressorCV
    >>> from skspo.datasets import make_portfolio
    >>> X, C = make_portfolio(60, 3, 5, degree=6, noise=0.5, random_state=0)
    >>> model = SPORegressorCV(EntropySimplex(), n_alphas=5, cv=3, random_state=0).fit(X, C)
    >>> bool(0 <= model.step_ <= 1)
    True
    >>> model.cv_results_["mean_test_spo_loss"].shape
    (11,)
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "init": one_of("spo+", "least_squares"),
        "n_alphas": integer(1),
        "n_restarts": integer(0),
    }

    def __init__(
        self,
        region: Region | None = None,
        *,
        init: str = "spo+",
        steps: ArrayLike | None = None,
        n_alphas: int = 20,
        fit_intercept: bool = True,
        shared: bool = False,
        cv: Splitter | None = None,
        solver: str | Solver = "auto",
        n_restarts: int = 0,
        tol: float = 1e-6,
        max_iter: int | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.region = region
        self.init = init
        self.steps = steps
        self.n_alphas = n_alphas
        self.fit_intercept = fit_intercept
        self.shared = shared
        self.cv = cv
        self.solver = solver
        self.n_restarts = n_restarts
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, **known: Any) -> None:
        check_params(self)
        steps = self._check_steps()
        deadline = Deadline(self.time_limit)
        check_index(X=X, groups=groups)
        data, plain, here, _ = self._check_data(X, y, deadline, **known)
        region = data.learn_bounds(here, here)
        splits = cv_splits(self.cv, data.X, data.C, data.weight, groups)
        self._solver_for(region, 0)  # checks it
        rng, jobs = check_random_state(self.random_state), count_workers(self.n_jobs, len(splits))
        activity = Activity(type(self).__name__, self.verbose, len(splits) + 2, "steps")
        with activity, restore_rng_on_failure(self, rng):
            seeds = [int(seed) for seed in rng.randint(2**31 - 1, size=len(splits) + 1)]
            activity.update("penalty")
            start = self._start(seeds[-1])
            search, final = start._choose(data, (here, here, here), splits, deadline.share(0.5), groups)
            activity.advance()
            turns = -(-len(splits) // jobs) + 1  # the descent on all data comes last
            ends = [deadline.share((k // jobs + 1) / turns) for k in range(len(splits))]
            on_fold = delayed(self._on_fold if jobs == 1 else silent(self._on_fold))
            activity.update("descent on the folds")
            regrets = []
            for regret in Parallel(n_jobs=jobs, return_as="generator")(
                on_fold(fold, search.best, steps, seed, end)
                for fold, seed, end in zip(search.folds, seeds, ends, strict=False)
            ):
                regrets.append(regret)
                activity.advance()
                activity.update("descent on the folds" if len(regrets) < len(splits) else "descent on all data")
            cv_results, chosen = _judge(steps, regrets, [fold.groups for fold in search.folds])
            step = float(steps[chosen])
            line = self._descend(final.objective, region, final.result.coef, seeds[-1], deadline)
            result, solver = line.result_at(step), line.solver
            learned = {"step_": step, "steps_": steps, "alpha_": float(search.alphas[search.best])}
            learned["cv_results_"] = cv_results
            self._store(line.objective, line.run, result, plain, solver.name, data.input_attributes, data, **learned)
            regret = float(cv_results["mean_test_spo_loss"][chosen])
            activity.finish(f"step {step:.3g} is chosen, with a mean held-out SPO loss of {regret:.6g}")
        warn_shortfall(line.objective, result, solver)

    def _start(self, seed: int) -> SPOPlusRegressorCV:
        """The estimator of the start; least squares is an infinite penalty."""
        names = ("region", "n_alphas", "fit_intercept", "shared", "tol", "n_jobs", "verbose")
        alphas = None if self.init == "spo+" else [np.inf]
        return SPOPlusRegressorCV(**{k: getattr(self, k) for k in names}, alphas=alphas, random_state=seed)

    def _check_steps(self) -> np.ndarray:
        if self.steps is None:
            return np.linspace(0.0, 1.0, 11)
        try:
            steps = np.unique(np.asarray(self.steps, dtype=np.float64))
        except (TypeError, ValueError):
            steps = np.array([np.nan])
        if not steps.size or np.ndim(self.steps) != 1 or not ((steps >= 0) & (steps <= 1)).all():
            raise ValueError(f"steps must be None or a sequence of numbers between 0 and 1, got {shown(self.steps)}.")
        return steps

    def _solver_for(self, region: Region, seed: int) -> Solver:
        params = {name: getattr(self, name) for name in ("n_restarts", "tol", "max_iter", "verbose")}
        return choose_spo_solver(self.solver, region, params | {"random_state": seed}, "none", "perturbation")

    def _descend(
        self, surrogate: InMemoryObjective, region: Region, Theta: np.ndarray, seed: int, deadline: Deadline
    ) -> _Line:
        """Descend from a model of the SPO+ loss."""
        run = Run(deadline)
        objective = surrogate.with_penalty(0.0, 0.0).with_loss(SPOLoss(region))
        # Without the component that changes no decision, as the end of the descent.
        start, solver = objective.canonical(Theta), self._solver_for(region, seed)
        default = self.max_iter is None and solver is not self.solver and solver.name in MAX_ITER
        if default:
            solver.set_params(max_iter=MAX_ITER[solver.name])
        result, solver = minimize_spo(objective, run, solver, SolverOptions(verbose=self.verbose), start=start)
        if default and result.status is Status.ITERATION_LIMIT:
            result = result._replace(status=Status.CONVERGED, message="")  # only a limit of the user is reported
        return _Line(objective, run, start, result, solver)

    def _on_fold(self, fold: Fold, best: int, steps: np.ndarray, seed: int, deadline: Deadline) -> Regrets:
        """Regret of each held-out sample and step; no samples if there is no time."""
        if fold.weight.any():
            objective = fold.objective
            line = self._descend(objective, objective.region, objective.from_user(*fold.models[best]), seed, deadline)
            with suppress(TimeIsUp), deadline.enforced():
                # Predictions are linear in the step.
                start, end = (fold.predict(*line.objective.to_user(line.at(step))) for step in (0.0, 1.0))
                return np.stack([fold.regret(start + step * (end - start)) for step in steps], axis=1), fold.weight
        return np.zeros((0, len(steps))), np.zeros(0)


def _judge(
    steps: np.ndarray, folds: list[Regrets], groups: Sequence[np.ndarray | None] = ()
) -> tuple[dict[str, np.ndarray], int]:
    """Table of the cross-validation, and the number of the chosen step."""
    regret, weight = (np.concatenate(parts) for parts in zip(*folds, strict=True))
    if not weight.any():  # nothing was held out, or there was no time: the smallest step is chosen
        regret, weight = np.zeros((1, len(steps))), np.ones(1)
    mean = np.average(regret, axis=0, weights=weight)
    codes = [own for own, fold in zip(groups, folds, strict=False) if own is not None and len(fold[1])]
    excess, error = excess_regret(regret, weight, np.concatenate(codes) if codes else None)
    chosen = int(np.flatnonzero(excess <= SIGNIFICANT * error + 1e-9 * np.abs(mean).max())[0])
    empty = np.zeros(len(steps))
    splits = np.array([np.average(r, axis=0, weights=a) if a.any() else empty for r, a in folds])
    size = np.array([a.sum() for _, a in folds]) if any(a.any() for _, a in folds) else np.ones(len(folds))
    table = cv_table("step", steps, -splits, -mean, lambda values: np.average(values, axis=0, weights=size))
    return table | {"mean_test_spo_loss": mean, "standard_error": error}, chosen
