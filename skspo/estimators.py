"""scikit-learn estimators: validate, build the objective, pick the solver, store attributes."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_array, check_is_fitted, has_fit_parameter, validate_data

from .chunked import ChunkedObjective, LocalRows, Rows
from .chunks import ChunkedData, is_dask, is_large_memmap
from .deadline import Deadline, check_time_limit
from .design import apply_model, check_blocks
from .limits import check_largest, relative_weight
from .losses import SPOPlusLoss, check_offset, check_weight
from .metrics import normalized_spo_loss
from .objective import LinearObjective
from .persistence import VersionedState
from .regions.base import Region, check_region
from .report import DecisionReport, decision_report, visual_block
from .solvers import SOLVERS, Result, SGDSolver, Solver, history_of, make_solvers
from .solvers.bundle import SAMPLE_TOL


def _check_ndim(y: Any) -> None:
    # scikit-learn would refuse it as well, but not say whether X or y is meant.
    if getattr(y, "ndim", 1) > 2:
        raise ValueError(f"y must have shape (n_samples, n_costs) or (n_samples,), got {y.shape}.")


class TrainingData(NamedTuple):
    """Validated data, and what an estimator is to remember of them if the fit succeeds."""

    X: np.ndarray
    C: np.ndarray
    weight: np.ndarray | None
    offset: np.ndarray | None
    seen: dict[str, Any]

    def take(self, rows: np.ndarray) -> TrainingData:
        """Some of the samples."""
        weight, offset = (None if array is None else array[rows] for array in (self.weight, self.offset))
        return TrainingData(self.X[rows], self.C[rows], weight, offset, self.seen)


def remember(estimator: Any, learned: dict[str, Any], forget: tuple[str, ...] = ("feature_names_in_",)) -> None:
    """Replace what an estimator has learned in one step: an interrupt comes before it or after it, not in between."""
    kept = {name: value for name, value in vars(estimator).items() if name not in forget}
    estimator.__dict__ = kept | learned


@contextmanager
def rewound(rng: np.random.RandomState, stored: Callable[[], bool]) -> Iterator[None]:
    """Put a generator back if what was learned with it is not stored, so that a second try draws the same numbers."""
    state = rng.get_state()
    try:
        yield
    except BaseException:
        if not stored():
            rng.set_state(state)
        raise


def features_seen(noted: BaseEstimator) -> dict[str, Any]:
    """Number and names of features that scikit-learn has noted on an estimator."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: vars(noted)[name] for name in names if name in vars(noted)}


def check_training_data(
    estimator: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    *,
    reset: bool,
) -> TrainingData:
    """Validate features, costs, weights and offset."""
    _check_ndim(y)
    # On a copy: a fit that fails, here or later, leaves an earlier model as it was.
    noted = copy(estimator)
    with np.errstate(over="ignore", invalid="ignore"):  # the check for infinity adds everything up
        X_arr, y = validate_data(noted, X, y, reset=reset, dtype=np.float64, multi_output=True, y_numeric=True)
        C = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    seen = features_seen(noted)
    seen["_y_is_1d"] = C.ndim == 1
    C = C.reshape(X_arr.shape[0], -1)
    if getattr(estimator, "shared", False):
        check_blocks(X_arr.shape[1], C.shape[1])
    known = check_offset(offset, C.shape)
    check_largest(X=X_arr, y=C, offset=known)
    return TrainingData(X_arr, C, relative_weight(check_weight(sample_weight, X_arr)), known, seen)


class DecisionMixin(VersionedState):
    """``decide`` and ``score`` for every estimator that predicts costs and has a fitted ``region_``."""

    region_: Region

    def decide(self, X: ArrayLike, offset: ArrayLike | None = None, region_params: Any = None) -> np.ndarray:
        """Decisions for the predicted costs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        offset : array-like of shape (n_samples, d) or (d,), optional
            Known part of the costs: the cost is the offset plus what the model predicts.
        region_params : dict of array-like, or the like, optional
            Parameters of the region that vary by sample, one row per sample (see :func:`row_params`).

        Returns
        -------
        W : ndarray of shape (n_samples, d)
            One feasible decision per sample.
        """
        if is_dask(X):
            from .distributed import map_decide

            return map_decide(self, X, offset, region_params)
        C_hat = self.predict(X, offset=offset)  # type: ignore[attr-defined]
        C_hat = C_hat[:, None] if C_hat.ndim == 1 else C_hat
        return self.region_.with_rows(region_params, *C_hat.shape).argmin(C_hat)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: Any = None,
    ) -> float:
        """Minus the normalized SPO loss: 0 is as good as knowing the costs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples, d)
            True costs, offset included.
        sample_weight : array-like of shape (n_samples,), optional
        offset : array-like of shape (n_samples, d) or (d,), optional
            Known part of the costs: the cost is the offset plus what the model predicts.
        region_params : dict of array-like, or the like, optional
            Parameters of the region that vary by sample, one row per sample (see :func:`row_params`).

        Returns
        -------
        score : float
        """
        if is_dask(X, y):
            from .distributed import score_partitions

            return score_partitions(self, X, y, sample_weight, offset, region_params)
        C_hat = self.predict(X, offset=offset)  # type: ignore[attr-defined]
        return -float(
            normalized_spo_loss(y, C_hat, self.region_, sample_weight=sample_weight, region_params=region_params)
        )

    @staticmethod
    def _plus(C_hat: np.ndarray, offset: ArrayLike | None) -> np.ndarray:
        """Predictions with the known part of the costs."""
        known = check_offset(offset, (C_hat.shape[0], 1 if C_hat.ndim == 1 else C_hat.shape[1]))
        return C_hat if known is None else C_hat + known.reshape(C_hat.shape)

    def report(self, X: ArrayLike, y: ArrayLike, **kwargs: Any) -> DecisionReport:
        """Readable account of the decisions, beside least squares and a constant prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples, d)
            True costs.
        **kwargs
            Passed to :func:`skspo.decision_report`, for example ``X_train`` and ``C_train``.

        Returns
        -------
        report : DecisionReport
            Prints as a table; ``to_dict()`` has the figures.
        """
        return decision_report(self, X, y, **kwargs)

    def _sk_visual_block_(self) -> Any:
        # scikit-learn's hook for its diagrams, in notebooks and inside pipelines; it falls back to the plain diagram
        # should this raise.
        return visual_block(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # Decisions have several components, and the score is a loss, at most zero, not an R^2.
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True
        return tags


def result_gap(objective: LinearObjective, result: Result) -> float:
    """Relative duality gap; infinite if the region's oracle is known to be wrong, so that nothing is known."""
    if getattr(objective.region, "fault", None):
        return np.inf
    return objective.relative_gap(result.objective, result.lower_bound)


def audited(objective: LinearObjective, result: Result) -> Result:
    """Result with what is left of it if the region's oracle, taken on trust so far, is wrong.

    A region with doubts has an ``audit``, which raises an error or makes a ``fault``; nothing is certified then.
    """
    region: Any = objective.region
    if not hasattr(region, "audit"):
        return result
    d = objective.normals.shape[1]
    small = 1e-2 * objective.trivial_value()
    value = objective.value(result.coef)
    region.audit(d)  # last, when all decisions are known
    if not abs(value - result.objective) <= 1e-6 * max(value, result.objective, small):
        region.distrust(
            f"the oracle does not give the same answers again: the objective of the same model was "
            f"{result.objective * objective.scale:.9g} and is {value * objective.scale:.9g}.",
            d,
        )
    if region.fault is None:
        return result
    return result._replace(objective=value, lower_bound=0.0, converged=False, message="the oracle is not optimal")


class LinearSPOPlusMixin:
    """What every linear SPO+ estimator shares: validation, the solver's run, attributes and ``predict``."""

    region: Region | None
    surrogate_region: Region | None
    l1_ratio: float
    prior: str
    fit_intercept: bool
    shared: bool
    solver: str | Solver
    tol: float
    max_iter: int | None
    time_limit: float | None
    n_jobs: int | None
    random_state: Any
    verbose: int
    _y_is_1d: bool

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Predict costs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        offset : array-like of shape (n_samples, d) or (d,), optional
            Known part of the costs: the cost is the offset plus what the model predicts.

        Returns
        -------
        C_hat : ndarray of shape (n_samples, d), or (n_samples,) if y was one-dimensional
        """
        check_is_fitted(self)
        if is_dask(X):
            from .distributed import map_predict

            return map_predict(self, X, offset)
        X_arr: np.ndarray = validate_data(self, X, reset=False, dtype=np.float64)
        C_hat = apply_model(X_arr, self.coef_, self.intercept_)
        return self._plus(C_hat.ravel() if self._y_is_1d else C_hat, offset)  # type: ignore[attr-defined]

    def _check_params(self) -> None:
        largest = np.finfo(float).max
        for name, high, what in (
            ("alpha", largest, "of at least 0"),
            ("l1_ratio", 1.0, "between 0 and 1"),
            ("tol", largest, "of at least 0"),
        ):
            value = getattr(self, name, 0.0)  # the cross-validated estimator has no alpha
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0.0 <= float(value) <= high:
                raise ValueError(f"{name} must be a finite number {what}, got {value!r}.")
        if not isinstance(self.prior, str) or self.prior not in ("zero", "least_squares"):
            raise ValueError(f"prior must be 'zero' or 'least_squares', got {self.prior!r}.")
        for name in ("fit_intercept", "shared"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        for name, what in (("max_iter", "an integer of at least 1"), ("n_jobs", "an integer other than 0")):
            value = getattr(self, name)
            whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if value is not None and not (whole and (value >= 1 if name == "max_iter" else value != 0)):
                raise ValueError(f"{name} must be None or {what}, got {value!r}.")
        check_time_limit(self.time_limit)

    def _fits(self, d: int, n_features: int) -> bool:
        """Whether there are coefficients for so many costs and features."""
        shape = (n_features // d,) if self.shared else (d, n_features)
        return hasattr(self, "coef_") and self.coef_.shape == shape

    def _check_regions(
        self, C: np.ndarray, region_params: Any = None, n_jobs: int | None = None
    ) -> tuple[Region, Region, Region]:
        """Region to be remembered, and regions of these samples: of their decisions, and of the training loss.

        Oracles get ``n_jobs`` if they have none.
        """
        n, d = C.shape
        region = check_region(self.region, n_dim=d)
        regions = [region]
        if self.surrogate_region is not None:
            try:
                surrogate = check_region(self.surrogate_region, n_dim=d)
            except (TypeError, ValueError) as error:
                error.add_note("This is about surrogate_region, the region to train on.")
                raise
            if surrogate.sense != region.sense:
                raise ValueError(
                    f"region has sense={region.sense!r} and surrogate_region has sense={surrogate.sense!r}: "
                    "they must agree."
                )
            regions.append(surrogate)
        if n_jobs is not None:
            for r in regions:
                if r.get_params(deep=False).get("n_jobs", 0) is None:
                    r.set_params(n_jobs=n_jobs)
        views = []
        for r in regions:
            try:
                views.append(r.with_rows(region_params, n, d))
            except (TypeError, ValueError) as error:
                if r is not region:
                    error.add_note("This is about surrogate_region, which gets the same region_params.")
                raise
        return region, views[0], views[-1]

    def _solve(
        self,
        objective: LinearObjective,
        start: np.ndarray | None = None,
        solver: str | Solver | None = None,
        tol: float | None = None,
    ) -> tuple[Result, Solver]:
        """Result of the first solver that closes the gap, or of the one that came nearest to that.

        The solver and its tolerance are those of the estimator, unless they are given.
        """
        result, used = self._first_to_converge(objective, start, solver, tol)
        return audited(objective, result), used

    def _first_to_converge(
        self, objective: LinearObjective, start: np.ndarray | None, solver: str | Solver | None, tol: float | None
    ) -> tuple[Result, Solver]:
        solvers = make_solvers(
            self.solver if solver is None else solver,
            objective.region,
            objective,
            tol=self.tol if tol is None else tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            verbose=self.verbose,
        )
        if objective.trivial_value() == 0.0:
            # Every decision costs the same: relative gaps mean nothing, and there is nothing to do.
            Theta = objective.canonical(objective.prior if objective.alpha > 0 else objective.least_squares)
            value = objective.value(Theta)
            if value <= 0.0:
                return Result(Theta, value, value, 1, True), solvers[0]
        best: tuple[Result, Solver] | None = None
        deadline, trouble = objective.deadline, ""
        for candidate in solvers:
            if deadline.reached or deadline.left() <= 0:
                trouble = deadline.message
                break
            try:
                result = candidate.solve(objective, start)
            except ImportError as error:
                if best is None and candidate is solvers[-1]:
                    raise
                trouble = f"{candidate.name}: {error}"
                continue
            if result.converged:
                return result, candidate
            start = result.coef
            if best is None or result_gap(objective, result) < result_gap(objective, best[0]):
                best = result, candidate
        if best is None:
            # The time was over before a solver could start.
            Theta = objective.least_squares if start is None else start
            best = solvers[0].finish(objective, [(Theta, objective.decisions(Theta))], 0), solvers[0]
        if trouble and not best[0].converged and trouble not in best[0].message:
            best = best[0]._replace(message="; ".join(filter(None, (best[0].message, trouble)))), best[1]
        return best

    coef_: np.ndarray
    intercept_: np.ndarray
    duality_gap_: float

    def _store(
        self,
        objective: LinearObjective,
        result: Result,
        region: Region,
        solver: str,
        seen: dict[str, Any],
        **more: Any,
    ) -> None:
        coef, intercept = objective.to_user(result.coef)
        learned = {
            "coef_": coef,
            "intercept_": intercept,
            # Rounding must not put the value below a bound of zero.
            "objective_": max(result.objective, result.lower_bound) * objective.scale,
            "lower_bound_": result.lower_bound * objective.scale,
            "duality_gap_": result_gap(objective, result),
            "history_": history_of(objective),
            "n_iter_": max(result.n_iter, 1),
            "solver_": solver,
            "region_": region,
        }
        # A stream of chunks ends with a fit.
        remember(self, learned | seen | more, forget=("feature_names_in_", "_stream"))


class SPOPlusRegressor(LinearSPOPlusMixin, DecisionMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Linear model of costs whose decisions are good: exact minimisation of the SPO+ loss.

    Minimises, over coefficients B and intercept b,

        mean_i l_SPO+(B x_i + b, c_i) + alpha (l1_ratio |B - B0|_1 + (1 - l1_ratio)/2 |B - B0|_F^2).

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions.  None means the unit Box, which exists in every dimension.
    surrogate_region : Region or None, default=None
        Train on this region instead; decisions and scores still use ``region``.
    alpha : float, default=0.0
        Strength of the penalty.
    l1_ratio : float, default=0.0
        Share of the l1 norm in the penalty, between 0 (ridge) and 1 (lasso).
    prior : {"zero", "least_squares"}, default="zero"
        Where the penalty shrinks to: B0 = 0 with a free intercept, or the least-squares fit, intercept included, so
        that a large ``alpha`` gives least squares.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    shared : bool, default=False
        Whether one model serves all costs, each of which has features of its own: X then holds d consecutive blocks of
        q features, one block per cost (see :func:`stack_items`), and ``c_hat_j = coef_ . x_j + intercept_``.
    solver : {"auto", "lbfgs", "newton", "interior-point", "conic", "bundle", "sgd"} or Solver, default="auto"
        "auto" is decided by :func:`skspo.solvers.choose_solvers`: lbfgs and newton for strongly convex regions,
        interior-point for polyhedra and Markowitz, conic for other regions in cone form with moderate data (and where
        the others cannot close the gap), bundle where there is nothing but an oracle, for many samples and for shared
        models with few coefficients, else sgd.  A Solver instance uses its own parameters.
    tol : float, default=1e-6
        Relative duality gap to reach.
    max_iter : int or None, default=None
        Iteration limit (bundle: passes, sgd: epochs); None leaves the solver's own.
    time_limit : float or None, default=None
        Seconds after which ``fit`` ends with the best model so far, its bound and a warning.  The clock is looked at
        between iterations, or passes over data in chunks, so that one of them may take longer.
    warm_start : bool, default=False
        Start from the previous fit, where the solver can use a start.
    n_jobs : int or None, default=None
        Number of jobs of regions whose oracle is a solver; used if the region does not set its own.
    random_state : int, RandomState instance or None, default=None
        Order of the samples in sgd.
    verbose : int, default=0
        1 prints progress.

    Attributes
    ----------
    coef_ : ndarray of shape (d, n_features), or (q,) if shared
        Coefficients.  Their component that decisions cannot see is set by least squares.
    intercept_ : ndarray of shape (d,), or float if shared
        Intercept.
    objective_ : float
        Objective at the returned coefficients, evaluated by the loss itself.
    lower_bound_ : float
        Bound proved by dual decisions.  With a ridge on all coefficients it holds without restriction; otherwise it
        is proved for all models within a large distance of the returned one (see ``skspo.objective``).
    duality_gap_ : float
        (objective_ - lower_bound_) / max(objective_, 1 % of the loss of the zero prediction).
    n_iter_ : int
        Iterations of the solver.
    history_ : dict of ndarrays
        "time" in seconds, "n_iter", "objective", "lower_bound" and "duality_gap" as the solver reported them on its
        way, for :class:`skspo.plotting.ConvergenceDisplay`; NaN where there was no bound.  Empty after ``partial_fit``.
    solver_ : str
        Name of the solver used.
    region_ : Region
        Validated copy of ``region``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if X has string column names.

    See Also
    --------
    SPOPlusRegressorCV : Chooses the strength of the penalty by cross-validated decisions.
    TwoStageRegressor : Any regressor as predict-then-optimize baseline.

    Examples
    --------
    >>> from skspo import Simplex, SPOPlusRegressor
    >>> from skspo.datasets import make_cost_sensitive_classification
    >>> X, C = make_cost_sensitive_classification(100, degree=2, noise=0.5, random_state=0)
    >>> model = SPOPlusRegressor(region=Simplex()).fit(X, C)
    >>> bool(model.duality_gap_ <= 1e-6)
    True
    >>> model.decide(X[:1]).shape
    (1, 10)

    With features of each alternative rather than of the sample, one model serves all of them:

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 10 * 2))  # ten blocks of two features
    >>> C = X.reshape(100, 10, 2) @ [1.0, -2.0] + 3.0
    >>> model = SPOPlusRegressor(region=Simplex(), shared=True).fit(X, C)
    >>> model.coef_.shape
    (2,)
    >>> bool(model.score(X, C) > -1e-6)
    True
    """

    def __init__(
        self,
        region: Region | None = None,
        *,
        surrogate_region: Region | None = None,
        alpha: float = 0.0,
        l1_ratio: float = 0.0,
        prior: str = "zero",
        fit_intercept: bool = True,
        shared: bool = False,
        solver: str | Solver = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.region = region
        self.surrogate_region = surrogate_region
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.shared = shared
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: Any = None,
    ) -> SPOPlusRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a dask array or data frame
            Features.  Dask collections are worked on where they live; memory-mapped arrays larger than
            ``skspo.chunks.IN_MEMORY_LIMIT`` (256 MB, with y) are read in chunks.  Both need ``solver="auto"``,
            "bundle" or "lbfgs".
        y : array-like of shape (n_samples, d) or (n_samples,)
            Cost vectors (C in the documentation), one column per decision variable.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights of the samples; below 1e-280 of the largest they count as zero.
        offset : array-like of shape (n_samples, d) or (d,), optional
            Known part of the costs: the cost is the offset plus what the model is to predict.
        region_params : dict of array-like, or the like, optional
            Parameters of the region that vary by sample, one row per sample (see :func:`row_params`).

        Returns
        -------
        self : SPOPlusRegressor
        """
        self._check_params()
        deadline = Deadline(self.time_limit)
        if is_dask(X, y):
            from .distributed import DaskRows

            with DaskRows(self, X, y, sample_weight, offset, region_params) as rows:
                return self._fit_rows(rows, rows.seen, deadline)
        if is_large_memmap(X, y) and region_params is None and self._reads_chunks():
            return self.fit_chunks(ChunkedData.from_arrays(X, y, sample_weight, offset))
        data = check_training_data(self, X, y, sample_weight, offset, reset=True)
        region, _, training_region = self._check_regions(data.C, region_params, self.n_jobs)
        objective = self._objective(training_region, data)
        objective.deadline = deadline
        return self._minimise(objective, region, data.seen)

    def fit_chunks(self, chunks: Any) -> SPOPlusRegressor:
        """Fit the model to data that are read chunk by chunk, in bounded memory.

        The data are read once per pass of the solver ("bundle" or "lbfgs"), and four times before its first: for means
        and least squares, for optimal decisions, which are kept in a temporary file (where: see ``tempfile``), for
        the loss of the zero prediction, and for a sample, whose fit is the start.

        Parameters
        ----------
        chunks : ChunkedData, callable or iterable
            A function that returns an iterable of ``(X, y)``, ``(X, y, sample_weight)`` or
            ``(X, y, sample_weight, offset)``, or anything else that :class:`ChunkedData` takes.

        Returns
        -------
        self : SPOPlusRegressor

        Examples
        --------
        >>> from skspo import ShortestPath, SPOPlusRegressor
        >>> from skspo.datasets import make_shortest_path
        >>> def read():  # called for each pass: it could read files
        ...     for seed in range(3):
        ...         yield make_shortest_path(40, grid=(3, 3), random_state=seed)
        >>> model = SPOPlusRegressor(ShortestPath.grid(3, 3)).fit_chunks(read)
        >>> bool(model.duality_gap_ <= 1e-6)
        True
        """
        self._check_params()
        deadline = Deadline(self.time_limit)
        data = chunks if isinstance(chunks, ChunkedData) else ChunkedData(chunks)
        for chunk in data:
            if chunk.n_rows:
                seen = check_training_data(self, *chunk.head(), reset=True).seen
                break
        else:
            raise ValueError("There are no rows in the chunks: at least one is needed.")
        with LocalRows(data) as rows:
            return self._fit_rows(rows, seen, deadline)

    def _fit_rows(self, rows: Rows, seen: dict[str, Any], deadline: Deadline) -> SPOPlusRegressor:
        d = rows.first()[1].shape[1]
        region, _, training_region = self._check_regions(np.empty((0, d)), None, self.n_jobs)
        objective = ChunkedObjective(
            SPOPlusLoss(training_region),
            training_region,
            rows,
            alpha=float(self.alpha),
            l1_ratio=float(self.l1_ratio),
            prior=self.prior,
            fit_intercept=self.fit_intercept,
            shared=self.shared,
        )
        objective.deadline = deadline
        start = None if self.warm_start else self._fit_sample(objective)
        return self._minimise(objective, region, seen, start, depth=2)

    def _fit_sample(self, objective: LinearObjective) -> np.ndarray | None:
        """Coefficients that fit a sample of data in chunks; None if there is none."""
        sample = objective.sampled()
        if sample is None:
            return None
        sample.deadline = objective.deadline.share(0.5)
        start = None if sample.rows_at_hand else self._fit_sample(sample)
        # How well it is fitted matters little: it is not the data.
        return self._solve(sample, start, solver="auto", tol=max(self.tol, SAMPLE_TOL))[0].coef

    def _reads_chunks(self) -> bool:
        """Whether the solver that was asked for, if any, makes do with sums over rows."""
        solver = SOLVERS.get(self.solver) if isinstance(self.solver, str) else self.solver
        return self.solver == "auto" or bool(getattr(solver, "sums_suffice", False))

    def _minimise(
        self,
        objective: LinearObjective,
        region: Region,
        seen: dict[str, Any],
        start: np.ndarray | None = None,
        *,
        depth: int = 1,
    ) -> SPOPlusRegressor:
        """Run the solver, store the attributes, and warn the user, ``depth`` calls above, if the gap is too large."""
        if self.warm_start and self._fits(objective.normals.shape[1], seen["n_features_in_"]):
            start = objective.from_user(self.coef_, self.intercept_)
        result, solver = self._solve(objective, start)
        self._store(objective, result, region, solver.name, seen)
        if not result.converged:
            why = f" because {result.message}" if result.message else ""
            warnings.warn(
                f"The {solver.name} solver stopped at a relative duality gap of {self.duality_gap_:.1e}, above "
                f"tol={solver.tol:g}{why}. The coefficients are the best found and lower_bound_ is valid. "
                f"Increase {'time_limit' if objective.deadline.reached else 'max_iter'} or tol, or try another solver.",
                ConvergenceWarning,
                stacklevel=2 + depth,
            )
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: Any = None,
    ) -> SPOPlusRegressor:
        """Take one stochastic pass over a chunk of data (always with sgd).

        The first chunk sets the scale of features and costs and the start (its least-squares fit, or the coefficients
        of an earlier ``fit``), so it should not be tiny.  Streaming proves nothing: ``objective_`` is that of the
        chunk, ``lower_bound_`` is 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples, d) or (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        offset, region_params
            As in ``fit``.

        Returns
        -------
        self : SPOPlusRegressor
        """
        self._check_params()
        first = not hasattr(self, "coef_")
        data = check_training_data(self, X, y, sample_weight, offset, reset=first)
        if not first and not self._fits(data.C.shape[1], data.X.shape[1]):
            known = self.coef_.shape[0] if self.coef_.ndim == 2 else data.X.shape[1] // self.coef_.size
            raise ValueError(
                f"y has {data.C.shape[1]} columns, but the model so far has {known} costs: every chunk must "
                "have the same ones, and the same shared. To start anew, use fit or a new estimator."
            )
        region, _, training_region = self._check_regions(data.C, region_params, self.n_jobs)
        running = self.__dict__.get("_stream")
        objective = self._objective(training_region, data, coordinates=running and running[0])
        if running is None:
            start = None if first else objective.from_user(self.coef_, self.intercept_)
            stream = SGDSolver().start(objective, start)
            running = (objective.coordinates, stream, check_random_state(self.random_state))
        coordinates, stream, rng = running
        stream = deepcopy(stream)  # should the pass fail, the old one is as it was
        stream.rate = 0.1 * stream.first_rate / np.sqrt(1.0 + stream.epoch)
        with rewound(rng, lambda: self.__dict__.get("_stream", (None, None))[1] is stream):
            SGDSolver().run_epoch(objective, stream, rng)
            result = Result(stream.average, objective.value(stream.average), 0.0, stream.epoch, False)
            self._store(objective, result, region, "sgd", data.seen, _stream=(coordinates, stream, rng))
        return self

    def _objective(self, region: Region, data: TrainingData, coordinates: Any = None) -> LinearObjective:
        return LinearObjective(
            SPOPlusLoss(region),
            region,
            data.X,
            data.C,
            data.weight,
            offset=data.offset,
            alpha=float(self.alpha),
            l1_ratio=float(self.l1_ratio),
            prior=self.prior,
            fit_intercept=self.fit_intercept,
            shared=self.shared,
            coordinates=coordinates,
        )


class TwoStageRegressor(DecisionMixin, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Predict, then optimize: any scikit-learn regressor with ``decide`` and ``score``.

    Parameters
    ----------
    regressor : estimator or None, default=None
        Regressor of the costs; None means LinearRegression.  One that predicts a single output is fitted once per
        cost.
    region : Region or None, default=None
        Feasible region of the decisions; None means the unit Box.
    shared : bool, default=False
        Whether the regressor predicts one cost at a time, from features of its own, and serves all of them: X then
        holds d consecutive blocks of q features, one block per cost (see :func:`stack_items`).

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor.
    region_ : Region
        Validated copy of ``region``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if X has string column names.

    See Also
    --------
    SPOPlusRegressor : A linear model trained for its decisions.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from skspo import Simplex, TwoStageRegressor
    >>> from skspo.datasets import make_cost_sensitive_classification
    >>> X, C = make_cost_sensitive_classification(100, degree=2, random_state=0)
    >>> model = TwoStageRegressor(RandomForestRegressor(n_estimators=10, random_state=0), Simplex()).fit(X, C)
    >>> bool(model.score(X, C) <= 0)
    True
    """

    def __init__(self, regressor: Any = None, region: Region | None = None, *, shared: bool = False) -> None:
        self.regressor = regressor
        self.region = region
        self.shared = shared

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: Any = None,
    ) -> TwoStageRegressor:
        """Fit the regressor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples, d) or (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the regressor, which must accept it.
        offset : array-like of shape (n_samples, d) or (d,), optional
            Known part of the costs: the regressor is fitted to the rest.
        region_params : dict of array-like, or the like, optional
            Checked, and not used: the regressor does not know the region.

        Returns
        -------
        self : TwoStageRegressor
        """
        if self.regressor is not None and not hasattr(self.regressor, "fit"):
            raise TypeError(
                f"regressor must be a scikit-learn regressor, got {self.regressor!r}. The region is the second "
                "parameter: TwoStageRegressor(regressor, region)."
            )
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        _check_ndim(y)
        with np.errstate(over="ignore", invalid="ignore"):  # as above
            C = check_array(y, dtype="numeric", ensure_2d=False, input_name="y")
        d = 1 if C.ndim == 1 else C.shape[1]
        region = check_region(self.region, n_dim=d)
        region.with_rows(region_params, C.shape[0], d)
        known = check_offset(offset, (C.shape[0], d))
        if known is not None:
            C = C - known.reshape(C.shape)
        regressor = LinearRegression() if self.regressor is None else clone(self.regressor)
        fit_params: dict[str, Any] = {}
        if sample_weight is not None:
            if not has_fit_parameter(regressor, "sample_weight"):
                raise ValueError(
                    f"{type(regressor).__name__} does not accept sample_weight in fit. Use another regressor, or fit "
                    "without sample_weight."
                )
            fit_params["sample_weight"] = check_weight(sample_weight, X)
        if not isinstance(self.shared, (bool, np.bool_)):
            raise ValueError(f"shared must be True or False, got {self.shared!r}.")
        if self.shared:
            fit_params = {name: np.repeat(weight, d) for name, weight in fit_params.items()}
            regressor.fit(self._items(X, d), C.ravel(), **fit_params)
        else:
            if d > 1 and not get_tags(regressor).target_tags.multi_output:
                regressor = MultiOutputRegressor(regressor)
            # The regressor sees X as it is: it may want a DataFrame, or accept missing values.
            regressor.fit(X, C, **fit_params)
        # Only now is anything stored: a fit that fails leaves an earlier model as it was.
        noted = copy(self)
        validate_data(noted, X, skip_check_array=True)
        learned = {"regressor_": regressor, "region_": region}
        learned["_target_shape"] = C.shape[1:]  # some regressors drop a single column
        remember(self, learned | features_seen(noted))
        return self

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Predict costs with the fitted regressor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        offset : array-like of shape (n_samples, d) or (d,), optional
            Known part of the costs: the cost is the offset plus what the regressor predicts.

        Returns
        -------
        C_hat : ndarray of shape (n_samples, d), or (n_samples,) if y was one-dimensional
        """
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 2:  # anything else is for the regressor to refuse, with its own message
            validate_data(self, X, reset=False, skip_check_array=True)
        rows = self._items(X, int(np.prod(self._target_shape))) if self.shared else X
        C_hat = np.asarray(self.regressor_.predict(rows))
        return self._plus(C_hat.reshape(-1, *self._target_shape) if self._target_shape else C_hat.ravel(), offset)

    def _items(self, X: ArrayLike, d: int) -> np.ndarray:
        """One row of features per cost; what is in them is for the regressor to check."""
        rows = check_array(X, dtype=None, ensure_all_finite=False, estimator=self, input_name="X")
        check_blocks(rows.shape[1], d)
        return rows.reshape(rows.shape[0] * d, -1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(LinearRegression() if self.regressor is None else self.regressor)
        tags.input_tags = inner.input_tags
        tags.input_tags.sparse &= not self.shared
        tags.non_deterministic = inner.non_deterministic
        return tags
