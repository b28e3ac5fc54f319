"""Base class of the linear estimators: parameters, solvers, attributes and predictions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_array

from .._training.baselines import Baselines
from .._training.chunked import ChunkedObjective
from .._training.design import apply_model
from .._training.in_memory import InMemoryObjective
from .._training.inputs import Attributes, TrainingData, check_training_data, set_fitted
from .._training.objective import Coordinates, LinearObjective
from .._training.run import Run
from .._training.sparse import to_dense
from .._utils.errors import NotCertifiedWarning, errors_note, warn_once
from .._utils.frames import check_values
from .._utils.limits import Deadline, TimeIsUp
from .._utils.params import BOOL, N_JOBS, TIME_LIMIT, VERBOSE, Check, integer, number, one_of, optional
from .._utils.shown import shown
from .._utils.types import RandomState, RegionParams
from ..losses import Loss
from ..regions.base import Region
from ..regions.check import check_region, view_in_time
from ..solvers import Result, Solver, Status, history_of
from ..solvers.driver import SolverOptions

#: the parameter that stopped a solver, by status
LIMITS = {Status.TIME_LIMIT: "time_limit", Status.ITERATION_LIMIT: "max_iter"}


def remedy(status: Status) -> str:
    """Advice if the gap is above the tolerance."""
    return f"Increase {' or '.join(filter(None, (LIMITS.get(status), 'tol')))}, or try another solver."


def rows_of(region: Region, region_params: RegionParams | None, shape: tuple[int, ...], n_jobs: int | None) -> Region:
    """Region of these samples; the oracle gets ``n_jobs`` if the region does not set its own."""
    if n_jobs is not None and region.get_params(deep=False).get("n_jobs", 0) is None:
        region.set_params(n_jobs=n_jobs)
    return view_in_time(region, region_params, *shape)


def warn_shortfall(objective: LinearObjective, result: Result, solver: Solver) -> None:
    """Warn after a fit that did not converge."""
    message = _shortfall(objective, result, solver)
    if message:
        warn_once(message, NotCertifiedWarning)


def _shortfall(objective: LinearObjective, result: Result, solver: Solver) -> str:
    """Text of the warning after a fit that did not converge; empty if there is nothing to warn about.

    It says what happened, what that means for the model and its bound, and what to do.
    """
    why = result.message
    limit = LIMITS.get(result.status)
    if result.converged:
        return ""
    if objective.inexact:
        # The region has warned that there is no bound.  Warn only if the solver was stopped by a limit of the user.
        if limit is None or (limit == "max_iter" and solver.max_iter is None):
            return ""
        return (
            f"The {solver.name} solver stopped early: {why}. The coefficients are the best found. Increase {limit} to "
            "go on."
        )
    if not objective.loss.has_dual_bound and not result.wrong_bound:
        return (
            f"The {solver.name} solver stopped early: {why}. The coefficients are the best found, at least as good as "
            f"the start. {f'Increase {limit} to go on' if limit else 'Try another solver'}."
        )
    if result.wrong_bound:
        return (
            f"The lower bound of the {solver.name} solver was wrong: a known model has a smaller objective. It was "
            f"replaced by 0, which always holds, so that the relative duality gap is {result.gap:.1e}, above "
            f"tol={solver.tol:g}. The coefficients are the best found. Try another solver, or rescale the data."
        )
    return (
        f"The {solver.name} solver stopped at a relative duality gap of {result.gap:.1e}, above tol={solver.tol:g}"
        f"{f', because {why}' if why else ''}. The coefficients are the best found, and lower_bound_ holds. "
        f"{remedy(result.status)}"
    )


class LinearSPOPlusMixin:
    """Validation, attributes and predictions of the linear estimators; it must precede ``DecisionMixin``."""

    region: Region | None
    l1_ratio: float
    prior: str
    fit_intercept: bool
    shared: bool
    solver: str | Solver
    tol: float
    max_iter: int | None
    time_limit: float | None
    n_jobs: int | None
    random_state: RandomState
    verbose: int
    _y_is_1d: bool
    _predicts_lazily = True
    #: whether sparse features stay sparse in a fit
    _keeps_sparse = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags

    def _predict_costs(self, X: ArrayLike) -> np.ndarray:
        check_values("X", X)
        X_arr = check_array(X, dtype=np.float64, accept_sparse="csr", estimator=self, input_name="X")
        if issparse(X_arr) and self.shared:
            X_arr = to_dense(X_arr, type(self).__name__)
        C_hat = apply_model(X_arr, self.coef_, self.intercept_)
        return C_hat.ravel() if self._y_is_1d else C_hat

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "alpha": number(0.0),
        "l1_ratio": number(0.0, 1.0),
        "tol": number(0.0),
        "prior": one_of("zero", "least_squares", "ridge"),
        "fit_intercept": BOOL,
        "shared": BOOL,
        "max_iter": optional(integer(1)),
        "n_jobs": N_JOBS,
        "time_limit": TIME_LIMIT,
        "verbose": VERBOSE,
    }

    def _fits(self, d: int, n_features: int) -> bool:
        """Whether there are coefficients, for this number of costs and features."""
        shape = (n_features // d,) if self.shared else (d, n_features)
        return hasattr(self, "coef_") and self.coef_.shape == shape

    def _check_data(
        self,
        X: ArrayLike,
        y: ArrayLike,
        deadline: Deadline,
        n_jobs: int | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
    ) -> tuple[TrainingData, Region, Region, Region]:
        """Validated data, region to be stored, region of these samples for decisions, and for training."""
        data = check_training_data(self, X, y, sample_weight, offset, region_params, reset=True)
        region, here, training_region = self._check_regions(data.C.shape, region_params, n_jobs, deadline)
        data = data.within(here, training_region)
        return data, data.learn_bounds(region, here), here, training_region

    def _check_regions(
        self, shape: tuple[int, ...], region_params: RegionParams | None, n_jobs: int | None, deadline: Deadline
    ) -> tuple[Region, Region, Region]:
        """Region to be stored, region of these samples for decisions, and region of these samples for training.

        Regions get ``n_jobs`` if they have none.  If there is no time to prepare them, the deadline has passed, and no
        decision is made in them before the fit ends.
        """
        surrogate = getattr(self, "surrogate_region", None)
        with deadline.enforced():
            region = check_region(self.region, n_dim=shape[1])
            here = rows_of(region, region_params, shape, n_jobs)
            if surrogate is None:
                return region, here, here
            with errors_note("This is about surrogate_region, the region to train on, with the same region_params."):
                if isinstance(surrogate, str):
                    if surrogate != "relaxation":
                        raise ValueError(
                            f"surrogate_region must be a Region, 'relaxation' or None, got {shown(surrogate)}."
                        )
                    surrogate = region.relaxation()
                training_region = check_region(surrogate, n_dim=shape[1])
                there = rows_of(training_region, region_params, shape, n_jobs)
        if training_region.sense != region.sense:
            raise ValueError(
                f"region has sense={region.sense!r} and surrogate_region has sense={training_region.sense!r}: they "
                "must agree."
            )
        return region, here, there

    def _objective(
        self, loss: Loss, data: TrainingData, coordinates: Coordinates | None = None, *, standardized: bool = False
    ) -> InMemoryObjective:
        """Training problem."""
        X, C, weight, offset, _, possible = data
        how = {"coordinates": coordinates, "standardized": standardized, **self._model_params()}
        return InMemoryObjective(loss, X, C, weight, offset=offset, possible=possible, **how)

    def _model_params(self) -> dict[str, Any]:
        """Penalty and kind of the model; without a penalty if the estimator has no ``alpha``."""
        return {
            "alpha": float(getattr(self, "alpha", 0.0)),
            "l1_ratio": float(self.l1_ratio),
            "prior": getattr(self, "prior", "zero"),
            "fit_intercept": self.fit_intercept,
            "shared": self.shared,
        }

    def _options(self) -> SolverOptions:
        """Solver and its parameters."""
        return SolverOptions(self.solver, self.tol, self.max_iter, self.random_state, self.verbose)

    coef_: np.ndarray
    intercept_: np.ndarray
    duality_gap_: float
    status_: str

    def _store(
        self,
        objective: LinearObjective,
        run: Run,
        result: Result,
        region: Region,
        solver: str,
        input_attributes: Attributes,
        data: TrainingData | ChunkedObjective | None = None,
        **more: object,
    ) -> None:
        """Store the fitted attributes; if all training data are given, also the baselines and the factor."""
        coef, intercept = objective.to_user(result.coef)
        if data is not None:
            more["_baselines"] = Baselines(data.mean_cost, *objective.least_squares_to_user())
            try:
                with run.deadline.enforced():
                    more["prediction_factor_"] = data.nearest_factor(coef, intercept, region)
            except TimeIsUp:  # the region could not be prepared in time
                more["prediction_factor_"] = 1.0
        bound = max(result.lower_bound, 0.0) if np.isfinite(result.lower_bound) else -np.inf
        learned = {
            "coef_": coef,
            "intercept_": intercept,
            # Rounding must not put the value below a bound of zero.
            "objective_": max(result.objective, bound) * objective.scale,
            "lower_bound_": bound * objective.scale,
            "duality_gap_": result.gap,
            "status_": result.status.value,
            "certificate_radius_": float(result.radius),
            "history_": history_of(objective, run),
            "n_iter_": max(result.n_iter, 1),
            "solver_": solver,
            "region_": region,
        }
        # A fit ends a sequence of calls of ``partial_fit``.
        set_fitted(self, learned | input_attributes | more, forget=("_stream",))
