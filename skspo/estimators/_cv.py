"""Choice of the penalty of SPO+ by cross-validation.

Penalties are in standardized units: neither the units of costs nor the units or the origin of a feature change a
decision.  The held-out SPO loss is the goal, but it is noisy.  The held-out SPO+ loss bounds it, varies smoothly with
the penalty, and chooses models with a lower SPO loss on new data (``benchmarks/small_data.py``).  With skewed costs it
may choose worse decisions with confidence (``benchmarks/skewed.py``), so that the default takes the candidate with the
lowest SPO loss if that is significantly lower.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import check_scoring

from .._training.in_memory import InMemoryObjective
from .._training.inputs import TrainingData, restore_rng_on_failure, set_fitted
from .._training.run import Run
from .._utils.frames import check_index
from .._utils.limits import Deadline
from .._utils.params import BOOL, Check, check_params, integer, number, optional
from .._utils.progress import Activity
from .._utils.types import RandomState
from ..losses import SPOPlusLoss
from ..regions.base import Region
from ..solvers import Solver
from ._base import GroupsFitMixin
from ._folds import Fold, Parts, Search, Splits, Splitter, choose, cv_splits, fit_folds, held_out_predictions
from ._path import PathPoint, PenaltyPath, alpha_grid, warn_about
from ._spo_plus import LinearSPOPlusRegressor, SPOPlusRegressor

#: Relative duality gap of the fits on folds, unless ``tol`` is larger: below the differences between candidates.
CV_TOL = 1e-3


class SPOPlusRegressorCV(GroupsFitMixin, LinearSPOPlusRegressor):
    """Linear model of costs, trained for its decisions, with a cross-validated penalty.

    With few samples the exact minimizer of the SPO+ loss overfits.  This estimator shrinks it towards least squares, or
    another ``prior``, and chooses how far by the losses on held-out data.  Least squares itself is among the
    candidates.

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions.  None means the unit Box, and ``fit`` warns.
    surrogate_region : Region, "relaxation", "auto" or None, default="auto"
        Train on this region instead; held-out decisions and scores still use ``region``.  "relaxation" is
        ``region.relaxation()``, the region without integrality.  "auto" takes the relaxation of integer programs with
        too many decisions to list them: fits take seconds instead of minutes, and regrets are no higher
        (``benchmarks/integer.py``).  None is ``region`` itself.
    alphas : array-like or None, default=None
        Candidates, at least 0, in standardized units (see Notes); infinity is the prior itself, unless
        ``prior="zero"``.  None means an automatic grid.
    n_alphas : int, default=20
        Length of the automatic grid, infinity included.
    l1_ratio : float, default=0.0
        Share of the l1 norm in the penalty, between 0 (ridge) and 1 (lasso).
    prior : {"zero", "least_squares", "ridge"}, default="least_squares"
        The model to which the penalty shrinks, as in :class:`SPOPlusRegressor`.  With many features for the number of
        samples, such as products of features or kernel features, least squares overfits, and "ridge" is better.
    fit_intercept, shared, solver
        As in :class:`SPOPlusRegressor`.
    cv : int, cross-validation generator, iterable or None, default=None
        As everywhere in scikit-learn; None means five folds, or as many as there are samples.  With ``groups`` in
        ``fit``, None and numbers mean folds of whole groups.
    scoring : {"spo_plus_loss", "spo_loss"}, scorer name, callable or None, default=None
        The criterion: the total SPO+ or SPO loss of the held-out samples of all folds.  None means "spo_plus_loss",
        unless the SPO loss of another candidate is lower by more than two standard errors, as happens with skewed
        costs; and "spo_loss" if the region's oracle is found not to be optimal (see :class:`OracleRegion`).  Any other
        scikit-learn scorer, also ``make_spo_scorer(region)``, is averaged over folds.
    tol : float, default=1e-6
        Relative duality gap to reach in the fit to all data.
    max_iter : int or None, default=None
        Iteration limit of each fit; None leaves the solver's own.
    cv_tol : float or None, default=None
        Relative duality gap of the fits on folds, unless ``solver`` is an instance.  None means the larger of ``tol``
        and 1e-3.
    patience : int or None, default=3
        The path ends after this many candidates in a row that are worse than the best one so far, both by their score
        and by their held-out SPO+ loss, by more than the standard error of the difference over folds.  None means that
        all candidates are fitted.
    store_cv_predictions : bool, default=False
        Whether to store the held-out predictions of the chosen candidate in ``cv_predictions_``.
    time_limit : float or None, default=None
        Seconds for the whole ``fit``: folds, candidates and the fit to all data get equal shares of the remaining time.
        If that is too short for a fit, some models are copied to the next smaller candidates.
    n_jobs : int or None, default=None
        Number of folds fitted at the same time; None means 1, and -1 as many as there are cores.
    random_state, verbose
        As in :class:`SPOPlusRegressor`.

    Attributes
    ----------
    alpha_ : float
        The chosen penalty, in standardized units; infinity if the prior, such as least squares, was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        Candidates, in decreasing order.
    cv_results_ : dict of ndarrays of shape (n_alphas,)
        "alpha"; "split0_test_score", ... one per fold: minus the mean loss, or the value of the scorer;
        "mean_test_score", over all held-out samples together (a scorer: over folds); "std_test_score", over folds;
        "rank_test_score"; "mean_test_spo_loss" and "mean_test_spo_plus_loss".  NaN after the end of the path.
    cv_predictions_ : ndarray of shape (n_samples, d), or (n_samples,) if y was one-dimensional
        Held-out predictions of the chosen alpha, offset included: of models that were fitted without the fold of the
        sample, which has helped to choose alpha.  The mean if a sample is held out more than once, NaN if it never is.
        Only if ``store_cv_predictions=True``.
    coef_, intercept_
        Of the fit to all data, for features and costs as given.
    feature_scale_ : ndarray of shape (n_features,), or (q,) if shared
        Spread of each feature in the training data.
    cost_scale_ : float
        Typical size of the component of costs that changes decisions.
    objective_, lower_bound_, certificate_radius_, duality_gap_, status_, n_iter_, history_, solver_
        Of the fit to all data, as in :class:`SPOPlusRegressor`; ``objective_`` is in units of cost, penalty included.
        ``solver_`` is the name of the prior, such as "least_squares", if ``alpha_`` is infinite.
    prediction_factor_, region_, n_features_in_, feature_names_in_, cost_names_in_
        As in :class:`SPOPlusRegressor`.

    See Also
    --------
    SPOPlusRegressor : One penalty, on coefficients as given.
    spo_plus_path : The models for all penalties.

    Notes
    -----
    Penalties are in standardized units: with features centered (if there is an intercept) and divided by
    ``feature_scale_``, and costs divided by ``cost_scale_``, ``SPOPlusRegressor(alpha=alpha_)`` is the same model.  In
    each fold both scales are those of its training part.

    The automatic grid goes from a penalty with which almost no decision changes to a negligible one.

    Examples
    --------
    >>> from skspo import EntropySimplex, SPOPlusRegressorCV
    >>> from skspo.datasets import make_portfolio
    >>> X, C = make_portfolio(50, 3, 5, degree=4, noise=0.5, random_state=0)
    >>> model = SPOPlusRegressorCV(EntropySimplex(), n_alphas=5).fit(X, C)
    >>> bool(model.alpha_ in model.alphas_)
    True
    >>> model.decide(X[:1]).shape
    (1, 5)
    """

    _keeps_sparse = True
    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_alphas": integer(1),
        "cv_tol": optional(number(0.0)),
        "patience": optional(integer(1)),
        "store_cv_predictions": BOOL,
    }

    def __init__(
        self,
        region: Region | None = None,
        *,
        surrogate_region: Region | str | None = "auto",
        alphas: ArrayLike | None = None,
        n_alphas: int = 20,
        l1_ratio: float = 0.0,
        prior: str = "least_squares",
        fit_intercept: bool = True,
        shared: bool = False,
        cv: Splitter | None = None,
        scoring: str | Callable[..., float] | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        cv_tol: float | None = None,
        patience: int | None = 3,
        store_cv_predictions: bool = False,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.region = region
        self.surrogate_region = surrogate_region
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.l1_ratio = l1_ratio
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.shared = shared
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cv_tol = cv_tol
        self.patience = patience
        self.store_cv_predictions = store_cv_predictions
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        splits: Splits | None = None,
        parts: Parts | None = None,
        **known: Any,
    ) -> tuple[TrainingData, Search]:
        """Fit; a stack gives its own folds, and needs what happened on them."""
        check_params(self)
        deadline = Deadline(self.time_limit)
        check_index(X=X, groups=groups)
        data, plain, region, training_region = self._check_data(X, y, deadline, **known)
        if not self._pooled and any(known.get(name) is not None for name in ("offset", "region_params")):
            raise ValueError(
                f"scoring={self.scoring!r} is not told about offset and region_params. Use scoring=None, 'spo_loss' or "
                "'spo_plus_loss', or GridSearchCV with metadata routing."
            )
        splits = cv_splits(self.cv if splits is None else splits, data.X, data.C, data.weight, groups)
        search, final = self._choose(data, (plain, region, training_region), splits, deadline, groups, parts)
        objective, run, result, outcome, _ = final
        learned = {
            "alpha_": float(search.alphas[search.best]),
            "alphas_": search.alphas,
            "feature_scale_": objective.design.scale,
            "cost_scale_": objective.cost_scale,
            "cv_results_": search.results(),
        }
        if self.store_cv_predictions:
            learned["cv_predictions_"] = held_out_predictions(data, search, [search.best] * len(splits))
        self._store(objective, run, result, plain, outcome.solver, data.input_attributes, data, **learned)
        warn_about([outcome], self.tol, "to all data")
        warn_about(search.outcomes, self._cv_tol, "on the folds")
        return data, search

    def _choose(
        self,
        data: TrainingData,
        regions: tuple[Region, Region, Region],
        splits: Splits,
        deadline: Deadline,
        groups: ArrayLike | None = None,
        parts: Parts | None = None,
    ) -> tuple[Search, PathPoint]:
        """Choose the penalty by cross-validation and fit the model to all data, without setting attributes.

        ``regions``: for scorers, of the samples, and of the samples for training.
        """
        plain, region, training_region = regions
        with deadline.enforced():
            objective = self._training_problem(training_region, data)
        alphas = alpha_grid(objective, Run(deadline), self.alphas, int(self.n_alphas), float(self.l1_ratio))
        n_fits = len(splits) * len(alphas)
        codes = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        activity = Activity(type(self).__name__, self.verbose, n_fits + 1, "fits")
        with activity, restore_rng_on_failure(self, self.random_state):
            score = None if self._pooled else partial(self._score, check_scoring(self, self.scoring), plain)
            how: dict[str, Any] = {"score": score, "n_fits": n_fits, "parts": parts, "groups": codes}
            folds = [
                Fold(self, region, training_region, data, *rows, name=f"fold {k + 1} of {len(splits)}", **how)
                for k, rows in enumerate(splits)
            ]
            pooled, guarded = self._pooled, self.scoring is None
            folds, table = fit_folds(
                folds, alphas, deadline, self.n_jobs, self.patience, pooled=pooled, guarded=guarded, activity=activity
            )
            best = choose(folds, table, guarded=guarded)
            search = Search(folds, table, alphas, best, splits, guarded)
            path = PenaltyPath(objective, Run(deadline, n_fits=n_fits), float(self.l1_ratio), self._options())
            activity.update("fit to all data")
            (final,) = path.extend(alphas[best : best + 1], deadline)
            activity.finish(
                f"alpha {alphas[best]:.3g}, number {best + 1} of {len(alphas)}, is best with a mean held-out score of "
                f"{table.mean(table.scores)[best]:.6g}; gap {final.outcome.gap:.1e}"
            )
        return search, final

    @property
    def _pooled(self) -> bool:
        """Whether the criterion is a loss, which is averaged over samples."""
        return self.scoring is None or (isinstance(self.scoring, str) and self.scoring in ("spo_loss", "spo_plus_loss"))

    @property
    def _cv_tol(self) -> float:
        """Relative duality gap of the fits on folds."""
        return max(self.tol, CV_TOL) if self.cv_tol is None else self.cv_tol

    def _training_problem(self, region: Region, data: TrainingData) -> InMemoryObjective:
        return self._objective(SPOPlusLoss(region), data, standardized=True)

    def _score(self, scorer: Callable[..., float], region: Region, point: PathPoint, data: TrainingData) -> float:
        """Value of a scikit-learn scorer for a model, on held-out data."""
        one_cost = data.input_attributes["_y_is_1d"]
        coef, intercept = point.objective.to_user(point.result.coef)
        learned = {"coef_": coef, "intercept_": intercept, "region_": region}
        model = SPOPlusRegressor(region, shared=self.shared)
        set_fitted(model, learned | {"_y_is_1d": one_cost, "_fitted_with": frozenset()})
        known = {} if data.weight is None else {"sample_weight": data.weight}
        return scorer(model, data.X, data.C.ravel() if one_cost else data.C, **known)
