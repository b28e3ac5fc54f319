"""``PartialFeedbackRegressor``: train on costs that were seen only for what was chosen."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from .._training.baselines import quick_baselines
from .._training.fitted import check_frames, fitted_region, metadata_checked
from .._training.inputs import check_ndim, frame_attributes, seen_or_none, set_fitted
from .._utils.confidence import mean_and_error
from .._utils.errors import warn_once
from .._utils.frames import LISTED, as_rows, check_index, column_names, take_rows
from .._utils.params import N_JOBS, VERBOSE, Check, check_params, one_of
from .._utils.progress import Activity
from .._utils.shown import shown
from .._utils.types import RandomState, RegionParams
from ..regions._names import Names, default_names
from ..regions.base import Region
from ._base import DecisionRegressor
from ._compose import check_no_classifier, find_model, fit_with
from ._decide import decide
from ._estimated_cost import estimated_cost
from ._feedback_costs import (
    DIRECT,
    LAMBDA,
    NUISANCE,
    PINV,
    ROBUST,
    Nuisances,
    choose_nuisance,
    choose_propensity,
    fit_propensity,
    propensities,
    pseudo_costs,
    unidentified,
    warn_clipped,
)
from ._feedback_log import Log, align, read_log
from ._folds import Splitter, cv_splits
from ._stacking_members import predict_member
from ._two_stage import TwoStageRegressor, noted_features


class PartialFeedbackRegressor(MetaEstimatorMixin, DecisionRegressor):
    """Train an estimator on costs that were seen only for past decisions.

    Logs rarely have the whole cost vector of a sample: they have the travel times of the streets that were driven, or
    the total of the bill.  This estimator predicts what was not seen by a regression (the nuisance), which is fitted
    without the sample, and trains another estimator on these pseudo-costs.

    Parameters
    ----------
    estimator : estimator
        What is trained: an estimator of skspo with a region, also in a pipeline, or any regressor.
    nuisance : regressor or None, default=None
        Regression of the costs.  None means the one of ridge, ridge on products of features, and boosted trees that
        predicts held-out costs best.  If only totals were seen it must be linear; a pipeline may transform features.
    method : {"auto", "direct", "nuisance", "doubly_robust", "doubly_robust_lambda", "doubly_robust_pinv"}, \
            default="auto"
        Pseudo-costs.  "direct": what was seen, and predictions elsewhere.  "doubly_robust": predictions, corrected by
        what was seen divided by its probability; small probabilities are clipped.  "doubly_robust_lambda" adds to all
        of them instead, and "doubly_robust_pinv" divides by them as they are.  If only totals were seen, these are
        eigenvalues of the second moment of past decisions, and small is what is below 1 for decisions of 0 and 1.
        "nuisance": ``predict`` gives the costs that the nuisance predicts, and ``estimator`` is not used.  "auto": the
        one of "direct", "nuisance" and "doubly_robust" whose held-out decisions have the lowest estimated cost.
    propensity : None, classifier or array-like, default=None
        Probability of seeing each cost.  None: its frequency in the log; or, with a warning, a logistic regression on
        the features, if they are finite numbers and a regression predicts which costs were seen in held-out samples
        better than frequencies, by two standard errors.  A classifier is fitted once for each cost.  An array of shape
        (d,) is known, or of shape (d, d) the second moment of past decisions if only totals were seen; None then means
        that of the log, with a warning if decisions depended on the features.
    cv : int, cross-validation generator or iterable, default=5
        Folds of the nuisance.  With ``groups``, a number means folds of whole groups; use ``TimeSeriesSplit`` for logs
        whose future must not be used.  Samples that are never held out are not used for training.
    n_jobs : int or None, default=None
        Number of folds that are fitted at the same time.
    random_state : int, RandomState or None, default=None
        Seed of the default nuisances.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, which does not decide if ``method_`` is "nuisance".
    region_ : Region
        Where decisions are made.
    pseudo_costs_ : ndarray of shape (n_samples, d)
        What ``estimator_`` was trained on, offset included; NaN in rows that were not used.
    nuisance_ : object or None
        Regression of all samples; ``predict(X)`` gives all costs, less the offset.  None if all costs were seen.
    nuisance_name_ : str
        Which one was chosen.
    nuisance_errors_ : dict of str to float
        Mean held-out error of what was seen, summed over costs, of each candidate: the squared error, or the Poisson
        deviance if costs are minimized and none is negative.
    method_ : str
        Which method was used.
    feedback_ : {"full", "costs", "totals"}
        What was seen: all costs, some of them, or totals of past decisions.
    identified_ : bool ndarray of shape (d,)
        Whether the log says something about the cost of each variable.  The others count as the worst of the sample.
    cv_results_ : dict
        With ``method="auto"``: doubly robust estimate of the mean cost of held-out decisions by method, and the
        standard error of the difference between the best two.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if X has string column names.
    cost_names_in_ : ndarray of shape (d,)
        Names of costs, if y or ``decisions`` is a data frame with string column names.

    See Also
    --------
    estimated_cost : What decisions cost, estimated from the same kind of log.

    Notes
    -----
    Doubly robust pseudo-costs are right on average if the nuisance or the propensities are (Hu, Kallus, Mao and Wu,
    2024).  Both are wrong if past decisions depended on something that influences costs and is not in X.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo import PartialFeedbackRegressor, ShortestPath, SPOPlusRegressor
    >>> from skspo.datasets import make_shortest_path
    >>> X, C = make_shortest_path(300, grid=(3, 3), degree=4, random_state=0)
    >>> region = ShortestPath.grid(3, 3)
    >>> driven = region.argmin(np.random.default_rng(0).exponential(size=C.shape))  # one path of each day
    >>> seen = np.where(driven > 0, C, np.nan)
    >>> model = PartialFeedbackRegressor(SPOPlusRegressor(region, alpha=0.1), random_state=0).fit(X[:200], seen[:200])
    >>> model.feedback_, bool(model.identified_.all())
    ('costs', True)
    >>> bool(model.score(X[200:], C[200:]) > -0.2)
    True

    If only the total of each day is known:

    >>> total = (driven * C).sum(axis=1)
    >>> model = PartialFeedbackRegressor(SPOPlusRegressor(region, alpha=0.1), random_state=0)
    >>> model.fit(X[:200], total[:200], decisions=driven[:200]).feedback_
    'totals'
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "method": one_of("auto", DIRECT, NUISANCE, ROBUST, LAMBDA, PINV),
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        nuisance: BaseEstimator | None = None,
        method: str = "auto",
        propensity: BaseEstimator | ArrayLike | None = None,
        cv: Splitter = 5,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.nuisance = nuisance
        self.method = method
        self.propensity = propensity
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def region(self) -> Region | None:
        """Region of the estimator."""
        return getattr(find_model(self.estimator), "region", None)

    @property
    def shared(self) -> bool:
        """Whether the estimator predicts each cost from features of its own."""
        return bool(getattr(find_model(self.estimator), "shared", False))

    @property
    def _trains_on_region(self) -> bool:
        return bool(getattr(find_model(self.estimator), "_trains_on_region", False))

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
        *,
        decisions: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> PartialFeedbackRegressor:
        """Predict the costs that were not seen, and fit the estimator to them.

        Parameters
        ----------
        X, sample_weight, offset, region_params
            As in :meth:`SPOPlusRegressor.fit`; ``y`` includes the offset.
        y : array-like of shape (n_samples, d) or (n_samples,)
            Costs, NaN where they were not seen; or the total cost of each past decision.
        decisions : array-like of shape (n_samples, d), optional
            Past decisions.  They are needed if y has totals.  Columns of a data frame may be in another order than
            those of ``y``, or than the variables of the region.
        propensity : array-like of shape (n_samples, d) or (n_samples, d, d), optional
            What the parameter ``propensity`` is, if it is known for each sample.
        groups : array-like of shape (n_samples,), optional
            Groups of samples, which are not separated by the folds.

        Returns
        -------
        self : PartialFeedbackRegressor
        """
        check_params(self)
        model = self._model()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        check_ndim(y)
        decisions = align(decisions, y, self.region)
        totals = decisions is not None and np.ndim(y) == 1
        given: dict[str, Any] = {"sample_weight": sample_weight, "offset": offset, "region_params": region_params}
        columns: Any = decisions if totals else y
        attributes = frame_attributes(self, X, columns, reset=True, groups=groups, **given)
        chances = self.propensity if propensity is None else propensity
        chances = align(chances, y, self.region, column_names(decisions), name="propensity")
        check_index(X=X, y=y, decisions=decisions, propensity=chances)
        attributes |= noted_features(self, X)
        X = as_rows(X, estimator=self)
        log, view = read_log(X, y, decisions, chances, self.region, shared=self.shared, **given)
        n, d = log.C.shape
        names = attributes.get("cost_names_in_", view.names(d))
        lost = unidentified(log, view)
        learned: dict[str, Any] = {"feedback_": "totals" if totals else "full" if log.complete else "costs"}
        if log.complete:
            target = log.with_offset(np.nan_to_num(log.C))
            learned |= {"method_": DIRECT, "nuisance_": None, "propensity_": None, "nuisance_name_": ""}
            learned |= {"nuisance_errors_": {}, "cv_results_": {}}
        else:
            with Activity("partial feedback", self.verbose) as progress:
                target, fits = self._pseudo_costs(log, model, chances, groups, progress)
                progress.update("estimator")
            learned |= fits
        rows = np.flatnonzero(np.isfinite(target).all(axis=1))
        fitted = _train(model, log, target, rows)
        nuisance = learned["nuisance_"] if learned["method_"] == NUISANCE else None
        if lost.any():
            _check_unidentified(lost, _decide(fitted, log, rows, nuisance), names)
        parts = (take_rows(part, rows) for part in (log.weight, log.offset, log.possible))
        learned |= {
            "estimator_": fitted,
            "region_": fitted_region(fitted),
            "pseudo_costs_": target,
            "identified_": ~lost,
            "_target_shape": () if log.flat else (d,),
            "_seen": seen_or_none(X, np.asarray(y, dtype=np.float64).reshape(n, -1)),
            "_baselines": quick_baselines(take_rows(X, rows), np.shape(X)[1], target[rows], *parts, shared=self.shared),
        }
        if totals:
            attributes["_known_costs"] = ()
        set_fitted(self, learned | attributes)
        return self

    def _model(self) -> Any:
        """The estimator; a regressor that decides nothing is wrapped."""
        if not hasattr(self.estimator, "fit") or not hasattr(self.estimator, "predict"):
            raise TypeError(
                f"estimator must be an estimator of skspo with a region, or a regressor, got {shown(self.estimator)}."
            )
        check_no_classifier(self.estimator, type(self).__name__)
        return self.estimator if find_model(self.estimator) is not None else TwoStageRegressor(self.estimator)

    def _pseudo_costs(
        self, log: Log, model: Any, propensity: Any, groups: ArrayLike | None, progress: Activity
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Pseudo-costs, and what was fitted for them."""
        progress.update("nuisance")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        splits = cv_splits(self.cv, log.X, log.C, log.weight, groups, scored=False)
        name, nuisances, errors = choose_nuisance(log, splits, self.nuisance, seed, self.n_jobs)
        method, results = self.method, dict[str, float]()
        if method in (DIRECT, NUISANCE):
            chances = Nuisances(log, splits, fit_propensity(propensity, log), self.n_jobs)
        else:
            progress.update("propensities")
            chances = choose_propensity(log, splits, propensity, groups, self.n_jobs)
        if method == "auto":
            progress.update("method")
            method, results = _choose_method(log, model, nuisances, chances, groups)
        final = None
        if method not in (DIRECT, NUISANCE):
            final = propensities(log, chances)
            warn_clipped(log, final, method)
        fits = {"method_": method, "cv_results_": results, "nuisance_name_": name, "nuisance_errors_": errors}
        fits |= {"nuisance_": nuisances.fit(log), "propensity_": chances.fit(log)}
        return pseudo_costs(log, nuisances.held_out(), final, method), fits

    def _predict_costs(self, X: ArrayLike) -> np.ndarray:
        rows = as_rows(X, estimator=self)
        C_hat = self.nuisance_.predict(rows) if self.method_ == NUISANCE else predict_member(self.estimator_, rows)
        return C_hat if self._target_shape else C_hat.ravel()

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
        *,
        decisions: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
    ) -> float:
        """Minus the estimated mean cost of the decisions (plus the mean value, if the region maximizes).

        The estimate is doubly robust, with ``nuisance_`` and ``propensity_``.  If no cost is missing, the score is that
        of all other estimators: minus the normalized SPO loss.

        Parameters
        ----------
        X, y, sample_weight, offset, region_params, decisions, propensity
            As in ``fit``.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        given: dict[str, Any] = {"sample_weight": sample_weight, "offset": offset, "region_params": region_params}
        names = getattr(self, "cost_names_in_", None)
        decisions = align(decisions, y, self.region_, names)
        if decisions is None:
            check_frames(self, X=X, y=y, **given)
        chances = self.propensity if propensity is None else propensity
        chances = align(chances, y, self.region_, names, name="propensity")
        log, _ = read_log(X, y, decisions, chances, self.region_, shared=self.shared, **given)
        if log.complete:
            return super().score(X, y, **given)
        W = self.decide(X, offset=offset, region_params=region_params)
        if self.nuisance_ is None:  # fitted to complete costs
            result = estimated_cost(W, X, y, decisions=decisions, region=self.region_, propensity=chances, **given)
            return -log.worst * result.cost
        features = as_rows(X, estimator=self)
        fitted = self.propensity_ if propensity is None else fit_propensity(propensity, log)(log)
        P = fitted.predict(features) if log.propensity is None else log.propensity
        target = pseudo_costs(log, self.nuisance_.predict(features), P, PINV)
        return -log.worst * float(np.average(np.einsum("ij,ij->i", target, W), weights=log.weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.input_tags.sparse = False
        tags.non_deterministic = inner.non_deterministic
        return tags


def _train(model: Any, log: Log, target: np.ndarray, rows: np.ndarray) -> Any:
    """The model, fitted to pseudo-costs of some rows."""
    some, y = log.take(rows), target[rows].ravel() if log.flat else target[rows]
    known = {"sample_weight": some.weight, "offset": some.offset, "region_params": some.region_params}
    return fit_with(clone(model), some.X, y, **known)


def _decide(fitted: Any, log: Log, rows: np.ndarray, nuisance: Any = None) -> np.ndarray:
    """Decisions for some rows of a fitted model, or of a nuisance in the region of this model."""
    some = log.take(rows)
    policy, region = (fitted, None) if nuisance is None else (nuisance, fitted_region(fitted))
    with metadata_checked():
        return np.asarray(decide(policy, some.X, region=region, offset=some.offset, region_params=some.region_params))


def _choose_method(
    log: Log, model: Any, nuisances: Nuisances, chances: Nuisances, groups: ArrayLike | None
) -> tuple[str, dict[str, float]]:
    """The method whose held-out decisions have the lowest doubly robust estimate of their cost."""
    names = (DIRECT, NUISANCE, ROBUST)
    values = np.full((len(log.C), len(names)), np.nan)
    judge = pseudo_costs(log, nuisances.held_out(), propensities(log, chances), PINV)
    for train, test in nuisances.splits:
        M, P = nuisances.held_out(without=test), propensities(log, chances, without=test)
        rows = train[np.isfinite(M[train]).all(axis=1)]
        if not rows.size:
            continue
        direct, robust = (_train(model, log, pseudo_costs(log, M, P, name), rows) for name in (DIRECT, ROBUST))
        own = nuisances.models[train.tobytes()]
        decisions = (_decide(direct, log, test), _decide(direct, log, test, own), _decide(robust, log, test))
        values[test] = np.column_stack([np.einsum("ij,ij->i", judge[test], W) for W in decisions])
    held = np.flatnonzero(np.isfinite(values).all(axis=1))
    if not held.size:
        raise ValueError("method='auto' needs at least three folds. Use another cv, or name the method.")
    values, weight = values[held], take_rows(log.weight, held)
    labels = None if groups is None else np.asarray(groups)[held]
    means, _ = mean_and_error(values, weight, labels)
    best, second = np.argsort(log.worst * means, kind="stable")[:2]
    _, (error,) = mean_and_error(values[:, [best]] - values[:, [second]], weight, labels)
    return names[best], dict(zip(names, means.tolist(), strict=True)) | {"standard_error": float(error)}


def _check_unidentified(lost: np.ndarray, W: np.ndarray, names: Names) -> None:
    """Warn that the log says nothing about some variables; an error if all decisions use them."""
    share = (W[:, lost] != 0.0).any(axis=1).mean()
    named = default_names(len(lost)) if names is None else np.asarray(names)
    which = [str(named[j]) for j in np.flatnonzero(lost)]
    listed = ", ".join(which[:LISTED]) + (f" and {len(which) - LISTED} more" if len(which) > LISTED else "")
    warn_once(
        f"The log says nothing about the cost of {len(which)} of {len(lost)} decision variables: {listed}. They count "
        f"as the worst of each sample, and {share:.0%} of the decisions of the fitted model use them. See identified_."
    )
    if share == 1.0:
        raise ValueError(
            f"All decisions of the fitted model use a variable about whose cost the log says nothing: {listed}. Add "
            "samples with other decisions, or exclude these variables from the region."
        )
