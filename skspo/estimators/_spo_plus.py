"""``SPOPlusRegressor``: exact minimization of the SPO+ loss over linear models; what all linear estimators share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_array

from .._training.baselines import Baselines
from .._training.chunked import ChunkedObjective
from .._training.design import apply_model
from .._training.in_memory import InMemoryObjective
from .._training.inputs import Attributes, TrainingData, check_training_data, restore_rng_on_failure, set_fitted
from .._training.objective import NO_BOUND, ZERO_BOUND, Coordinates, LinearObjective
from .._training.rows import LocalRows, Rows
from .._training.run import Run
from .._training.sparse import to_dense
from .._utils.errors import NotCertifiedWarning, errors_note, warn_once
from .._utils.frames import check_values, is_dask
from .._utils.limits import Deadline, TimeIsUp
from .._utils.params import BOOL, N_JOBS, TIME_LIMIT, VERBOSE, Check, check_params, integer, number, one_of, optional
from .._utils.shown import shown
from .._utils.types import RandomState, RegionParams
from ..data.chunks import ChunkedData, is_large_memmap
from ..losses import Loss, SPOPlusLoss
from ..regions.base import Region
from ..regions.capabilities import knows_hull
from ..regions.check import check_region, view_in_time
from ..solvers import SOLVERS, Result, SGDSolver, Solver, Status, check_solver_serves, history_of
from ..solvers.any_loss import AnyLossSolver
from ..solvers.base import certified
from ..solvers.driver import SolverOptions, minimize, run_solvers
from ._base import DecisionRegressor, PartialFitMixin

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


def easier_region(region: Region, here: Region) -> Region | None:
    """The relaxation of a region of integers whose decisions are not listed; None if training needs no other region.

    ``here`` is the region with the parameters of the samples.
    """
    if knows_hull(here):
        return None
    try:
        return region.relaxation()
    except TypeError:  # there is none
        return None


def warn_shortfall(objective: LinearObjective, result: Result, solver: Solver) -> None:
    """Warn after a fit that did not converge: what happened, what holds for the model and its bound, what to do."""
    why, limit = result.message, LIMITS.get(result.status)
    if result.converged:
        return
    stopped, best = f"The {solver.name} solver stopped", "The coefficients are the best found"
    if objective.inexact:
        # The region has warned that there is no bound.  Warn only if the solver was stopped by a limit of the user.
        if limit is None or (limit == "max_iter" and solver.max_iter is None):
            return
        message = f"{stopped} early: {why}. {best}. Increase {limit} to go on."
    elif result.wrong_bound:
        message = (
            f"The lower bound of the {solver.name} solver was wrong: a known model has a smaller objective. It was "
            f"replaced by 0, which always holds, so that the relative duality gap is {result.gap:.1e}, above "
            f"tol={solver.tol:g}. {best}. Try another solver, or rescale the data."
        )
    elif not objective.loss.has_dual_bound:
        advice = f"Increase {limit} to go on" if limit else "Try another solver"
        message = f"{stopped} early: {why}. {best}, at least as good as the start. {advice}."
    else:
        message = (
            f"{stopped} at a relative duality gap of {result.gap:.1e}, above tol={solver.tol:g}"
            f"{f', because {why}' if why else ''}. {best}, and lower_bound_ holds. {remedy(result.status)}"
        )
    warn_once(message, NotCertifiedWarning)


class LinearSPOPlusRegressor(DecisionRegressor):
    """Validation, attributes and predictions of the linear estimators."""

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
        tags = super().__sklearn_tags__()
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
        self, X: ArrayLike, y: ArrayLike, deadline: Deadline, n_jobs: int | None = None, **known: Any
    ) -> tuple[TrainingData, Region, Region, Region]:
        """Validated data, region to be stored, region of these samples for decisions, and for training."""
        weight, offset, region_params = map(known.get, ("sample_weight", "offset", "region_params"))
        data = check_training_data(self, X, y, weight, offset, region_params, reset=True)
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
            if isinstance(surrogate, str) and surrogate == "auto":
                surrogate = easier_region(region, here)
            if surrogate is None:
                return region, here, here
            with errors_note("This is about surrogate_region, the region to train on, with the same region_params."):
                if isinstance(surrogate, str):
                    if surrogate != "relaxation":
                        raise ValueError(
                            f"surrogate_region must be a Region, 'relaxation', 'auto' or None, got {shown(surrogate)}."
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


class SPOPlusRegressor(PartialFitMixin, LinearSPOPlusRegressor):
    r"""Linear model of costs, trained for good decisions by exact minimization of the SPO+ loss.

    Minimizes, over coefficients :math:`B` and intercept :math:`b`,

    .. math:: \frac{1}{n} \sum_i \ell_+(B x_i + b, c_i)
        + \alpha \left(\rho \lVert B - B_0\rVert_1 + \frac{1 - \rho}{2} \lVert B - B_0\rVert_F^2\right)

    where :math:`\ell_+` is :func:`spo_plus_loss`, :math:`\alpha` is ``alpha`` and :math:`\rho` is ``l1_ratio``.

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions.  None means the unit Box, and ``fit`` warns.
    surrogate_region : Region, "relaxation", "auto" or None, default=None
        Train on this region instead; decisions and scores still use ``region``.  "relaxation" is
        ``region.relaxation()``, the region without integrality.  "auto" takes it for integer programs with too many
        decisions to list them, as :class:`SPOPlusRegressorCV` does.
    loss : Loss or None, default=None
        Loss to minimize instead of the SPO+ loss, such as one of your own (see the guide, "Add a loss").  There is no
        bound for it: ``lower_bound_`` is -inf.
    alpha : float, default=0.0
        Strength of the penalty.
    l1_ratio : float, default=0.0
        Share of the l1 norm in the penalty, between 0 (ridge) and 1 (lasso).
    prior : {"zero", "least_squares", "ridge"}, default="zero"
        :math:`B_0 = 0` with an intercept without penalty, or :math:`B_0` is the least-squares fit, intercept included,
        so that a large ``alpha`` gives least squares.  "ridge" is the same with a ridge regression on standardized
        features, whose penalty has the lowest leave-one-out error: for many features.  It needs all rows in memory.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    shared : bool, default=False
        Whether one model predicts all costs, each from its own features: X then has d consecutive blocks of q features,
        one block per cost (see :func:`stack_items`).  ``coef_`` times the j-th block, plus ``intercept_``, is cost j.
    solver : {"auto", "lbfgs", "newton", "intervals", "interior-point", "conic", "bundle", "dual", "sgd"} or Solver
        "auto" lets the solvers that can solve the problem take turns, until the gap is closed.  Those that expect to do
        the least work begin (see the guide, "Choosing a solver").  A Solver instance uses its own parameters.
    tol : float, default=1e-6
        Relative duality gap to reach.
    max_iter : int or None, default=None
        Iteration limit (bundle, dual: passes, sgd: epochs); None leaves the solver's own.
    time_limit : float or None, default=None
        Seconds after which ``fit`` ends with the best model so far, its bound and a warning.  ``fit`` may take ten
        percent longer plus half a second; a call of a user's oracle, or a pass over data in chunks, is not interrupted.
        Without time for the optimal decisions of all samples the model is least squares, and ``objective_`` infinite.
    warm_start : bool, default=False
        Start from the previous fit, where the solver can use a start.
    n_jobs : int or None, default=None
        Number of jobs of the region's oracle, if it is a solver and the region does not set its own; None means 1, and
        -1 all cores.  The model does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Order of the samples in sgd and dual.
    verbose : int, default=0
        1 prints progress.

    Attributes
    ----------
    coef_ : ndarray of shape (d, n_features), or (q,) if shared
        Coefficients.  The component that changes no decision is set by least squares.
    intercept_ : ndarray of shape (d,), or float if shared
        Intercept.
    objective_ : float
        Objective at the returned coefficients.  It may be negative if the oracle is not optimal.
    lower_bound_ : float
        Bound of the objective, proved for all linear models within ``certificate_radius_`` of least squares.  -inf if
        the region's oracle was found not to be optimal (see :class:`OracleRegion`).
    certificate_radius_ : float
        ``lower_bound_`` holds for every model whose coefficients, times the spread of their features, differ from least
        squares by at most this many typical costs (Frobenius norm).  It is at least 10,000 and twice the distance of
        the model itself; infinite if the bound holds for every linear model; NaN if there is no bound.
    duality_gap_ : float
        (objective_ - lower_bound_) / max(objective_, 1 % of the loss of the zero prediction); inf if there is no bound.
    prediction_factor_ : float
        Positive number by which ``predict_rescaled`` multiplies predictions, so that those of the training data are
        nearest to the costs, in least squares; after ``partial_fit`` that of the last chunk.
    status_ : str
        Why the solver stopped: "converged" if ``duality_gap_`` is at most ``tol``, "iteration limit", "time limit",
        "numerical limit" if no more progress was possible, "interrupted", or "failed".
    n_iter_ : int
        Iterations of the solver.
    history_ : dict of ndarrays
        Progress of the fit: "time" in seconds, "n_iter", "objective", "lower_bound", "duality_gap", and "step", the
        solver.  NaN is what was not evaluated.  For :class:`skspo.plotting.ConvergenceDisplay`.
    solver_ : str
        Name of the solver used.
    region_ : Region
        Validated copy of ``region``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if X has string column names.
    cost_names_in_ : ndarray of shape (d,)
        Names of costs, if y is a data frame; other methods then refuse other names or another order.

    See Also
    --------
    SPOPlusRegressorCV : Chooses the strength of the penalty by cross-validated decisions.
    TwoStageRegressor : Any regressor as predict-then-optimize baseline.

    Notes
    -----
    ``fit`` also takes dask arrays and data frames, whose partitions stay on their workers.  Memory-mapped arrays larger
    than ``skspo.data.chunks.IN_MEMORY_LIMIT`` (256 MB, with y) are read in chunks.  Solvers other than "bundle" and
    "lbfgs" load the rows into memory, and "auto" uses them only if half of the memory is enough.

    ``partial_fit`` always takes a step of sgd.  The first chunk also sets the start (its least-squares fit, or the
    coefficients of an earlier ``fit``), so it should not be tiny.  No bound is computed: ``objective_`` is that of the
    chunk, ``lower_bound_`` is 0.

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

    If each alternative has its own features, one model can predict all costs:

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 10 * 2))  # ten blocks of two features
    >>> C = X.reshape(100, 10, 2) @ [1.0, -2.0] + 3.0
    >>> model = SPOPlusRegressor(region=Simplex(), shared=True).fit(X, C)
    >>> model.coef_.shape
    (2,)
    >>> bool(model.score(X, C) > -1e-6)
    True
    """

    _keeps_sparse = True

    def __init__(
        self,
        region: Region | None = None,
        *,
        surrogate_region: Region | str | None = None,
        loss: Loss | None = None,
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
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.region = region
        self.surrogate_region = surrogate_region
        self.loss = loss
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

    def _fit(self, X: ArrayLike, y: ArrayLike, **known: Any) -> None:
        check_params(self)
        deadline = Deadline(self.time_limit)
        in_memory = type(X) is type(y) is np.ndarray
        if not in_memory and is_dask(X, y):
            from .._training.dask_rows import DaskRows

            with DaskRows(self, X, y, **known) as rows:
                self._fit_rows(rows, rows.input_attributes, deadline)
            return
        mapped = not in_memory and is_large_memmap(X, y)
        if mapped and known["region_params"] is None and self._reads_chunks():
            self.fit_chunks(ChunkedData.from_arrays(X, y, known["sample_weight"], known["offset"]))
            return
        data, region, _, training_region = self._check_data(X, y, deadline, self.n_jobs, **known)
        with deadline.enforced():
            objective = self._objective(self._loss_on(training_region), data)
        self._minimize(objective, Run(deadline), region, data.input_attributes, data)

    def fit_chunks(self, chunks: ChunkedData | Callable[[], Iterable[object]] | Iterable[object]) -> SPOPlusRegressor:
        """Fit the model to data that are read chunk by chunk.

        "bundle" and "lbfgs" read the data once per pass, in bounded memory, and four times before the first pass; the
        optimal decisions are stored in a temporary file.  Other solvers load all rows into memory; "auto" lets them
        take turns with the former if half of the memory of the computer is enough.

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
        check_params(self)
        deadline = Deadline(self.time_limit)
        data = chunks if isinstance(chunks, ChunkedData) else ChunkedData(chunks)
        for chunk in data:
            if chunk.n_rows:
                input_attributes = check_training_data(self, *chunk.head(), reset=True).input_attributes
                break
        else:
            raise ValueError("There are no rows in the chunks: at least one is needed.")
        input_attributes.pop("_seen")  # that of one chunk
        with LocalRows(data) as rows:
            return self._fit_rows(rows, input_attributes, deadline)

    def _loss_on(self, region: Region) -> Loss:
        """Loss to be minimized on a region."""
        loss = self.loss
        if loss is None or type(loss) is SPOPlusLoss:
            return SPOPlusLoss(region)
        if not isinstance(loss, Loss):
            raise TypeError(f"loss must be None, which means the SPO+ loss, or a skspo.losses.Loss, got {shown(loss)}.")
        if not loss.continuous or loss.has_dual_bound:
            what = "is not continuous: use SPORegressor" if not loss.continuous else "must not set has_dual_bound"
            raise ValueError(f"loss={shown(loss)} {what}. Bounds are proved for the SPO+ loss only.")
        if self.solver != "auto" and not isinstance(self.solver, Solver):
            raise ValueError(
                f"solver must be 'auto' or a Solver with a loss of your own, got {shown(self.solver)}, which minimizes "
                "the SPO+ loss."
            )
        return loss.on(region)

    def _check_spo_plus(self, what: str) -> None:
        if self.loss is not None and type(self.loss) is not SPOPlusLoss:
            raise ValueError(f"{what} minimize the SPO+ loss only. Use fit with arrays, or loss=None.")

    def _fit_rows(self, rows: Rows, input_attributes: Attributes, deadline: Deadline) -> SPOPlusRegressor:
        self._check_spo_plus("Chunks and dask collections")
        d = rows.first()[1].shape[1]
        region, _, training_region = self._check_regions((0, d), None, self.n_jobs, deadline)
        objective = ChunkedObjective(SPOPlusLoss(training_region), rows, **self._model_params())
        region = region._learn_bounds(*objective.costs_seen)
        return self._minimize(objective, Run(deadline), region, input_attributes, objective)

    def _reads_chunks(self) -> bool:
        """Whether the solver needs only sums over rows."""
        solver = SOLVERS.get(self.solver) if isinstance(self.solver, str) else self.solver
        if self.loss is not None:
            return False
        return self.solver == "auto" or bool(getattr(solver, "supports_chunks", False))

    def _minimize(
        self,
        objective: LinearObjective,
        run: Run,
        region: Region,
        input_attributes: Attributes,
        data: TrainingData | ChunkedObjective,
    ) -> SPOPlusRegressor:
        """Run the solver, store the attributes, and warn if the gap is too large."""
        start = None
        if self.warm_start and self._fits(objective.normals.shape[1], input_attributes["n_features_in_"]):
            start = objective.from_user(self.coef_, self.intercept_)
        with restore_rng_on_failure(self, self.random_state):
            if objective.loss.has_dual_bound:
                result, solver = minimize(objective, run, self._options(), start)
            else:
                solver = AnyLossSolver(tol=self.tol, max_iter=self.max_iter, verbose=self.verbose)
                solver = self.solver if isinstance(self.solver, Solver) else solver
                check_solver_serves(solver, objective.region, objective.loss, "none", SOLVERS)
                result, solver = run_solvers(objective, run, [solver], start)
            self._store(objective, run, result, region, solver.name, input_attributes, data)
        warn_shortfall(objective, result, solver)
        return self

    def _partial_fit(self, X: ArrayLike, y: ArrayLike, **known: Any) -> None:
        check_params(self)
        self._check_spo_plus("Steps of partial_fit")
        first = not hasattr(self, "coef_")
        data = check_training_data(self, X, y, **known, reset=first)
        if not first and not self._fits(data.C.shape[1], data.X.shape[1]):
            known = self.coef_.shape[0] if self.coef_.ndim == 2 else data.X.shape[1] // self.coef_.size
            raise ValueError(
                f"y has {data.C.shape[1]} columns, but the model so far has {known} costs: every chunk must "
                "have the same ones, and the same shared. To start anew, use fit or a new estimator."
            )
        region, here, training_region = self._check_regions(
            data.C.shape, known["region_params"], self.n_jobs, Deadline()
        )
        data = data.within(here, training_region)
        region = data.learn_bounds(region, here, None if first else self)
        running = getattr(self, "_stream", None)
        objective = self._objective(SPOPlusLoss(training_region), data, coordinates=running and running[0])
        if running is None:
            start = None if first else objective.from_user(self.coef_, self.intercept_)
            stream = SGDSolver().start(objective, start)
            running = (objective.coordinates, stream, check_random_state(self.random_state))
        coordinates, stream, rng = running
        stream = deepcopy(stream)  # if the pass fails, the old state is unchanged
        stream.rate = 0.1 * stream.first_rate / np.sqrt(1.0 + stream.epoch)
        with restore_rng_on_failure(self, rng):
            SGDSolver().run_epoch(objective, stream, rng)
            bound, radius = NO_BOUND if objective.inexact else ZERO_BOUND
            value = objective.value(stream.average)
            result = Result(stream.average, value, bound, stream.epoch, Status.ITERATION_LIMIT, radius=radius)
            result = certified(objective, result, self.tol)
            self._store(
                objective,
                Run(),
                result,
                region,
                "sgd",
                data.input_attributes,
                _stream=(coordinates, stream, rng),
                prediction_factor_=data.nearest_factor(*objective.to_user(stream.average), region),
            )
