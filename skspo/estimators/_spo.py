"""``SPORegressor``: a linear model that minimizes the SPO loss."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from .._training.inputs import restore_rng_on_failure
from .._training.run import Run
from .._utils.limits import Deadline
from .._utils.params import Check, check_params, integer, one_of, optional
from .._utils.shown import shown
from .._utils.types import RandomState
from ..losses import SPOLoss
from ..regions.base import Region
from ..solvers import Solver, check_solver_serves
from ..solvers.base import penalty_kind
from ..solvers.driver import SolverOptions, minimize_spo
from ..solvers.spo.descent import LineSearchSolver, SPOGradientSolver
from ..solvers.spo.milp import MILPSolver
from ..solvers.spo.perturbation import PerturbationSolver
from ._spo_plus import LinearSPOPlusRegressor, warn_shortfall

#: solvers of the SPO loss, by name
SPO_SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls for cls in (SPOGradientSolver, LineSearchSolver, PerturbationSolver, MILPSolver)
}

INITS = ("spo+", "least_squares", "absolute_error")


class SPORegressor(LinearSPOPlusRegressor):
    """Linear model of costs that minimizes the SPO loss: what its decisions cost beyond the best ones.

    The loss is not convex and, on polyhedra, piecewise constant.  Training starts at the SPO+ fit.  The objective is at
    most that of the start, of least squares and of the zero model.

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions.  None means the unit Box, and ``fit`` warns.
    solver : {"auto", "lbfgs", "line-search", "perturbation", "milp"} or Solver, default="auto"
        "lbfgs" needs decisions that vary smoothly with the costs, as on ``EntropySimplex`` or ``Ellipsoid``.  Two
        solvers need only ``argmin``: "line-search" has the lower loss on the training data; "perturbation", a descent
        of a smoother loss (Huang and Gupta, 2024), is many times faster, and often better on new data.  "milp" finds
        the best model of small problems over polyhedra with few vertices, among those whose decisions are unique by a
        margin.  "auto" is "lbfgs" if the region allows it, else "line-search".
    init : {"spo+", "least_squares", "absolute_error"}, default="spo+"
        The start.
    n_restarts : int or None, default=None
        Number of further descents, from random points around the best one.  None means 2 for lbfgs, and at most 200 for
        line-search, within ``max_iter``.
    alpha : float, default=0.0
        Strength of the penalty.  The loss does not change when predictions are multiplied by a positive number, so the
        penalty is that of coefficients scaled to the norm of the start.
    l1_ratio, fit_intercept, shared
        As in :class:`SPOPlusRegressor`.
    tol : float, default=1e-6
        lbfgs: size of the gradient; line-search: relative decrease that counts; milp: relative gap.  The start is
        fitted with the same tolerance.
    max_iter : int or None, default=None
        Iterations (lbfgs) or line searches of all descents together; None leaves the solver's own.
    time_limit : float or None, default=None
        Seconds after which ``fit`` ends with the best model so far, its bound and a warning, as in
        :class:`SPOPlusRegressor`.
    random_state : int, RandomState instance or None, default=None
        Seed of random directions and restarts.
    n_jobs, verbose
        As in :class:`SPOPlusRegressor`.
    warm_start : bool, default=False
        Start from the previous fit instead of ``init``.

    Attributes
    ----------
    coef_ : ndarray of shape (d, n_features), or (q,) if shared
        Coefficients, with the norm of the start.  The component that changes no decision is set by least squares.
    intercept_ : ndarray of shape (d,), or float if shared
        Intercept.
    objective_ : float
        Mean SPO loss of the training data, of decisions as ``decide`` makes them, plus the penalty.
    lower_bound_ : float
        0, a bound of every SPO loss.  -inf if the region's oracle was found not to be optimal (see
        :class:`OracleRegion`): the loss may then be negative.
    certificate_radius_ : float
        Infinite: the bound holds for every model.  NaN if there is no bound.
    duality_gap_ : float
        (objective_ - lower_bound_) / max(objective_, 1 % of the loss of the zero prediction).  Usually 1.
    status_ : str
        Why the solver stopped: "converged" if it met its own rule (see ``tol``), otherwise as in
        :class:`SPOPlusRegressor`.  With solver="milp", "converged" means that no model whose decisions are unique by
        the margin is better by more than ``tol``.
    n_iter_ : int
        Iterations of the solver.
    history_ : dict of ndarrays
        Progress of the solver, as in :class:`SPOPlusRegressor`.
    solver_ : str
        Name of the solver used.
    prediction_factor_, region_, n_features_in_, feature_names_in_, cost_names_in_
        As in :class:`SPOPlusRegressor`.

    See Also
    --------
    SPORegressorCV : Shrinks this model towards the SPO+ model, as far as held-out decisions ask for.
    SPOPlusRegressor : The convex surrogate, with a certificate.

    Examples
    --------
    >>> from skspo import Simplex, SPOPlusRegressor, SPORegressor, spo_loss
    >>> from skspo.datasets import make_cost_sensitive_classification
    >>> X, C = make_cost_sensitive_classification(60, degree=2, noise=0.5, random_state=0)
    >>> spo_plus = SPOPlusRegressor(region=Simplex()).fit(X, C)
    >>> spo = SPORegressor(region=Simplex(), max_iter=100, random_state=0).fit(X, C)
    >>> bool(spo_loss(C, spo.predict(X), Simplex()) <= spo_loss(C, spo_plus.predict(X), Simplex()))
    True
    """

    def __init__(
        self,
        region: Region | None = None,
        *,
        solver: str | Solver = "auto",
        init: str = "spo+",
        n_restarts: int | None = None,
        alpha: float = 0.0,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        shared: bool = False,
        tol: float = 1e-6,
        max_iter: int | None = None,
        time_limit: float | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.region = region
        self.solver = solver
        self.init = init
        self.n_restarts = n_restarts
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.shared = shared
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start

    def _fit(self, X: ArrayLike, y: ArrayLike, **known: Any) -> None:
        check_params(self)
        deadline = Deadline(self.time_limit)
        data, plain, region, _ = self._check_data(X, y, deadline, self.n_jobs, **known)
        region = data.learn_bounds(region, region)
        names = ("n_restarts", "tol", "max_iter", "time_limit", "random_state", "verbose")
        params = {name: getattr(self, name) for name in names}
        penalty = penalty_kind(float(self.alpha), float(self.l1_ratio))
        solver = choose_spo_solver(self.solver, region, params, penalty)
        with deadline.enforced():
            objective = self._objective(SPOLoss(region), data)
        start = None
        if self.warm_start and self._fits(data.C.shape[1], data.X.shape[1]):
            start = objective.from_user(self.coef_, self.intercept_)
        run, options = Run(deadline), SolverOptions("auto", self.tol, None, self.random_state, self.verbose)
        with restore_rng_on_failure(self, self.random_state):
            result, solver = minimize_spo(objective, run, solver, options, init=self.init, start=start)
            self._store(objective, run, result, plain, solver.name, data.input_attributes, data)
        warn_shortfall(objective, result, solver)

    _parameter_checks: ClassVar[dict[str, Check]] = {"init": one_of(*INITS), "n_restarts": optional(integer(0))}


def choose_spo_solver(
    given: str | Solver, region: Region, params: dict[str, Any], penalty: str, without_gradient: str = "line-search"
) -> Solver:
    """Solver of the SPO loss, by its name with those parameters that it has, or as it is.

    "auto" is "lbfgs" if decisions vary smoothly with costs, else ``without_gradient``.
    """
    solver, name = given, given
    if not isinstance(solver, Solver):
        if name == "auto":
            name = without_gradient if SPOGradientSolver.missing(region) else "lbfgs"
        if not isinstance(name, str) or name not in SPO_SOLVERS:
            raise ValueError(f"solver must be 'auto' or one of {sorted(SPO_SOLVERS)}, or a Solver; got {shown(name)}.")
        known = SPO_SOLVERS[name]._get_param_names()
        solver = SPO_SOLVERS[name](**{key: value for key, value in params.items() if key in known})
    check_solver_serves(solver, region, SPOLoss(region), penalty, SPO_SOLVERS)
    return solver
