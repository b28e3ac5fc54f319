"""``SPOStackingRegressor``: several models of costs, weighted by the decisions that they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import Bunch, Tags, check_random_state, get_tags

from .._training.baselines import quick_baselines
from .._training.design import check_blocks
from .._training.inputs import set_fitted
from .._utils.errors import NotCertifiedWarning, warn_once
from .._utils.frames import as_rows
from .._utils.limits import Deadline, count_workers
from .._utils.params import BOOL, N_JOBS, TIME_LIMIT, VERBOSE, Check, check_params, one_of
from .._utils.progress import Activity
from .._utils.shown import shown
from .._utils.types import RandomState
from ..regions._rows import read_rows, row_params
from ..regions.base import Region
from ._base import DecisionRegressor, GroupsFitMixin
from ._folds import Splits, Splitter, cv_splits, held_out_mean
from ._report import DecisionReport, Samples, decision_report
from ._stacking_members import Member, Named, Rows, default_members, make_member, make_tasks, predict_member
from ._stacking_weights import STACK, HeldOut, choose
from ._two_stage import check_raw_data


@dataclass
class MemberResult:
    """What was fitted of a member."""

    member: Member
    parts: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)  # rows, their held-out predictions
    model: BaseEstimator | None = None  # fitted to all rows; None if there was no time
    seconds: float = 0.0


class SPOStackingRegressor(GroupsFitMixin, MetaEstimatorMixin, DecisionRegressor):
    """Stack of models of costs whose weights are chosen by held-out decisions.

    Each member is fitted to parts of the data and predicts the rest.  The prediction of the stack is a weighted mean of
    the members' predictions; the weights are those with the best decisions on held-out samples.  The members are then
    fitted to all data.  Members may be of any kind: regressors that know nothing of decisions, and models that are
    trained for them.

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions.  None means the unit Box, and ``fit`` warns.
    estimators : list of (str, estimator) or None, default=None
        Members by name: regressors of scikit-learn, estimators of skspo, and pipelines that end with one of them.
        Estimators of skspo whose ``region`` is None get that of the stack.  None means ridge regression, a random
        forest, histogram gradient boosting, :class:`SPOPlusRegressorCV`, the same with Nystroem features, and, if there
        are at most nine features, the same with their products.
    weights : {"spo+", "equal"}, default="spo+"
        "spo+": the weights that minimize the SPO+ loss of held-out samples; they may be negative.  "equal": the mean of
        all members.
    cv : int, cross-validation generator, iterable or None, default=None
        As everywhere in scikit-learn; None means five folds, or as many as there are samples.  Samples that are never
        held out, as in ``TimeSeriesSplit``, do not take part in the choice of weights.
    guard : bool, default=True
        Whether to mix the stack with the best member that was not trained for decisions.  The share of the stack is the
        confidence level at which its regret on held-out samples is smaller; 0 if it is not smaller.
    costs : {"all", "visible"}, default="all"
        What regressors without a region are fitted to, as in :class:`TwoStageRegressor`.
    shared : bool, default=False
        Whether X has d consecutive blocks of q features, one block per cost (see :func:`stack_items`).  Members see one
        row of q features per item.
    time_limit : float or None, default=None
        Seconds for the whole ``fit``.  Members that would start after the limit are left out, with a warning; members
        of scikit-learn cannot be interrupted.  The first member is always fitted.
    n_jobs : int or None, default=None
        Number of members and folds that are fitted at the same time; None means 1, and -1 as many as there are cores.
    random_state : int, RandomState instance or None, default=None
        Of the default members.
    verbose : int, default=0
        1 prints progress: each member with its seconds, and the choice; 2 also each fold.

    Attributes
    ----------
    estimators_ : list of estimators
        Members, fitted to all data.
    named_estimators_ : Bunch
        Members by name.
    weights_ : ndarray of shape (n_members,)
        Weights of the members, after ``guard``.  Without an offset their sizes add up to one.
    scales_ : ndarray of shape (n_members,)
        Factors that give the predictions of all members the same spread: ``predict`` is the sum of
        ``weights_ * scales_`` times the predictions of the members.
    chosen_ : str
        "stack", or the name of the member that is used alone, because of ``guard``.
    stack_share_ : float
        Share of the stack, between 0 and 1; the rest is that of the best two-stage member.  1 without ``guard``.
    cv_results_ : dict of ndarrays
        Figures of held-out samples, for the members, for equal weights and for the stack without ``guard``:
        "candidate" (names); "weights" (one row per candidate); "mean_test_spo_loss" and "se_test_spo_loss", mean and
        standard error; "mean_test_normalized_spo_loss"; "mean_gain" and "se_gain", by how much the regret of the best
        two-stage member is larger, with the standard error of the paired difference (NaN without such a member);
        "rank_test_spo_loss".  Those of the stack and of the best two-stage member are cross-fitted (see Notes; NaN if
        there was no time, or only one group).
    best_two_stage_ : str or None
        Name of the best member that was not trained for decisions.
    n_held_out_ : int
        Number of samples that were held out.
    fit_seconds_ : dict of str to float
        Seconds of all fits of each member; together with "weights".
    region_, n_features_in_, feature_names_in_, cost_names_in_
        As in :class:`SPOPlusRegressor`.

    See Also
    --------
    TwoStageRegressor : One regressor, then optimization.
    SPOPlusRegressorCV : A linear model trained for its decisions.
    skspo.plotting.StackingDisplay : Held-out regrets of the members and the stack.

    Notes
    -----
    All steps of all members are fitted again for every fold, searches included: what predicts a sample has not seen its
    costs.  A member that is a :class:`SPOPlusRegressorCV` without a ``cv`` of its own, also at the end of a pipeline,
    chooses its penalty on the folds of the stack, for each fold without it, which takes a sixth of the time.

    The best weights are partly luck, and so is the best two-stage member: on the samples that have chosen them their
    regrets are too low.  Therefore the regrets and gains that are reported are cross-fitted: for each of five parts of
    the held-out samples, weights and member are chosen on the other parts.  The weights and ``guard`` of the stack
    itself are from all held-out samples.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skspo import ShortestPath, SPOPlusRegressor, SPOStackingRegressor
    >>> from skspo.datasets import make_shortest_path
    >>> X, C = make_shortest_path(200, grid=(3, 3), degree=6, noise=0.5, random_state=0)
    >>> members = [
    ...     ("ridge", Ridge()),
    ...     ("tree", DecisionTreeRegressor(max_depth=5, random_state=0)),
    ...     ("spo+", SPOPlusRegressor(alpha=0.01)),
    ... ]
    >>> model = SPOStackingRegressor(ShortestPath.grid(3, 3), members, random_state=0).fit(X, C)
    >>> model.weights_.shape
    (3,)
    >>> model.decide(X[:2]).shape
    (2, 12)
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "weights": one_of("spo+", "equal"),
        "guard": BOOL,
        "costs": one_of("all", "visible"),
        "shared": BOOL,
        "time_limit": TIME_LIMIT,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        region: Region | None = None,
        estimators: Sequence[Named] | None = None,
        *,
        weights: str = "spo+",
        cv: Splitter | None = None,
        guard: bool = True,
        costs: str = "all",
        shared: bool = False,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.region = region
        self.estimators = estimators
        self.weights = weights
        self.cv = cv
        self.guard = guard
        self.costs = costs
        self.shared = shared
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the stack and, if ``deep``, its members by name and their parameters.

        Parameters
        ----------
        deep : bool, default=True

        Returns
        -------
        params : dict
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        for name, member in self._named() if deep else []:
            params[name] = member
            params |= {f"{name}__{key}": value for key, value in member.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> SPOStackingRegressor:
        """Set parameters of the stack, replace members by name, or set parameters of members.

        Parameters
        ----------
        **params
            For example ``weights="equal"``, ``ridge=Ridge()`` or ``ridge__alpha=2.0``.

        Returns
        -------
        self : SPOStackingRegressor
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        members = dict(self._named())
        replaced = {name: params.pop(name) for name in list(params) if name in members}
        if replaced:
            self.estimators = [(name, replaced.get(name, member)) for name, member in members.items()]
        super().set_params(**params)
        return self

    def _named(self) -> list[Named]:
        """Members that were given, if they are pairs of a name and an estimator."""
        given = self.estimators if isinstance(self.estimators, list | tuple) else []
        return [pair for pair in given if isinstance(pair, tuple) and len(pair) == 2 and hasattr(pair[1], "get_params")]

    def _members(self, n: int, n_features: int, d: int, region: Region, seed: int) -> list[Member]:
        """Validated members: those that were given, or the default ones."""
        estimators = self.estimators
        if estimators is None:
            rows, width = (n * d, n_features // d) if self.shared else (n, n_features)
            estimators = default_members(rows, width, seed)
        wrong = not isinstance(estimators, list | tuple) or not estimators
        if wrong or any(not isinstance(pair, tuple) or len(pair) != 2 for pair in estimators):
            raise ValueError(f"estimators must be a list of (name, estimator) pairs, got {shown(estimators)}.")
        names = [name for name, _ in estimators]
        own = set(type(self)._get_param_names())
        for name in names:
            if not isinstance(name, str) or not name or "__" in name or name in own or names.count(name) > 1:
                raise ValueError(
                    "Names of estimators must be different strings without '__' that are no parameters of the stack; "
                    f"got {shown(names)}."
                )
        return [
            make_member(name, estimator, region, shared=bool(self.shared), costs=self.costs)
            for name, estimator in estimators
        ]

    def _fit(self, X: ArrayLike, y: ArrayLike, **known: Any) -> None:
        check_params(self)
        deadline = Deadline(self.time_limit)
        raw = check_raw_data(self, X, y, deadline, **known)
        X = as_rows(X, accept_sparse="csr", estimator=self)
        (n, d), n_features = raw.C.shape, np.shape(X)[1]
        if self.shared:
            check_blocks(n_features, d)
        params, groups = known["region_params"], known["groups"]
        params = None if params is None else row_params(**read_rows(raw.region, params, n, d))
        groups = None if groups is None else np.asarray(groups)
        # Members get the weights as they are: their size matters next to a penalty.
        data = Rows(X, raw.C.reshape(raw.shape), raw.weight, raw.offset, params, groups)
        rng = check_random_state(self.random_state)
        members = self._members(n, n_features, d, raw.region, int(rng.randint(2**31 - 1)))
        splits = [(np.asarray(a), np.asarray(b)) for a, b in cv_splits(self.cv, X, raw.C, raw.weight, groups) if len(b)]
        progress = Activity("stack", self.verbose, len(make_tasks(members, splits)), "fits")
        with progress:
            results = self._fit_members(members, splits, data, deadline, progress)
        fits = [fit for fit in results if fit.model is not None]
        if len(fits) < len(members):
            late = ", ".join(repr(fit.member.name) for fit in results if fit.model is None)
            warn_once(
                f"time_limit={self.time_limit:g} s was reached before these members were fitted: {late}. The stack "
                "does without them. Increase time_limit, or put the members that matter first.",
                NotCertifiedWarning,
            )

        start = perf_counter()
        names = [fit.member.name for fit in fits]
        models: list[Any] = [fit.model for fit in fits]
        P = np.stack([held_out_mean((n, d), fit.parts) for fit in fits])  # less the offset
        held = HeldOut.of(P, raw.C, data, raw.view)
        choice = choose(held, [fit.member.two_stage for fit in fits], self.weights, deadline)
        share = choice.share if self.guard else 1.0
        weights, best = share * choice.weights, choice.best
        if best is not None:
            weights[best] += 1.0 - share
        chosen = STACK if share > 0 or best is None else names[best]
        figures = choice.figures(held, names)
        learned = {
            "estimators_": models,
            "named_estimators_": Bunch(**dict(zip(names, models, strict=True))),
            "weights_": weights,
            "scales_": held.unit(weights) / held.spread,
            "chosen_": chosen,
            "stack_share_": share,
            "cv_results_": figures,
            "best_two_stage_": None if best is None else names[best],
            "n_held_out_": len(held.C),
            "fit_seconds_": {fit.member.name: fit.seconds for fit in results} | {"weights": perf_counter() - start},
            "region_": raw.region,
            "_target_shape": raw.shape[1:],
            "_baselines": quick_baselines(
                X, n_features, raw.C, raw.weight, raw.offset, raw.possible, shared=bool(self.shared)
            ),
        }
        set_fitted(self, learned | raw.attributes)
        regret = 100 * figures["mean_test_normalized_spo_loss"]
        progress.finish(
            f"{chosen} chosen, share {share:.2f}; held-out regret of the stack {regret[-1]:.3g} %"
            + ("" if best is None else f", of {names[best]}, the best two-stage member, {regret[best]:.3g} %")
        )

    def _fit_members(
        self, members: list[Member], splits: Splits, data: Rows, deadline: Deadline, progress: Activity
    ) -> list[MemberResult]:
        """Fit all members to the training part of each split and to all rows, ``n_jobs`` fits at the same time."""
        tasks = make_tasks(members, splits)
        results = {member.name: MemberResult(member) for member in members}
        jobs = count_workers(self.n_jobs, len(tasks))
        if jobs == 1:
            progress.update(tasks[0].label)
        done = Parallel(n_jobs=jobs, return_as="generator")(delayed(task.run)(data, deadline) for task in tasks)
        for task, (fit, spent) in zip(tasks, done, strict=True):
            result = results[task.member.name]
            result.model, result.seconds = fit.model, result.seconds + spent
            if fit.rows is not None and fit.predictions is not None:
                held_out = np.isfinite(fit.predictions).all(axis=1)
                result.parts.append((fit.rows[held_out], fit.predictions[held_out]))
            progress.advance()
            progress.update(task.label)
            Activity("", self.verbose).finish(f"{spent:.1f} s")
        return list(results.values())

    def _predict_costs(self, X: ArrayLike) -> np.ndarray:
        X = as_rows(X, accept_sparse="csr", estimator=self)
        factors = self.weights_ * self.scales_
        used = np.flatnonzero(factors)
        C_hat = sum(factors[k] * predict_member(self.estimators_[k], X) for k in used)
        assert isinstance(C_hat, np.ndarray)
        return C_hat if self._target_shape else C_hat.ravel()

    def report(self, X: ArrayLike, y: ArrayLike, **kwargs: Any) -> DecisionReport:
        """Report on the decisions of the stack, its members and two baselines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples, d)
            True costs.
        **kwargs
            Passed to :func:`skspo.decision_report`.

        Returns
        -------
        report : DecisionReport
            The members follow the baselines; each is named with its weight.
        """
        report = decision_report(self, X, y, **kwargs)
        known = {key: kwargs.get(key) for key in ("sample_weight", "groups", "offset", "region_params")}
        samples = Samples.of([self], X, y, "report", report.region, **known)
        for name, model, weight in zip(self.named_estimators_, self.estimators_, self.weights_, strict=True):
            report.rows[f"member {name} (weight {weight:.2f})"] = samples.figures(predict_member(model, X))[0]
        return report

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = [get_tags(member).input_tags for _, member in self._named()]
        if self.estimators is not None and inner:
            tags.input_tags.sparse = all(each.sparse for each in inner) and not self.shared
            tags.input_tags.allow_nan = all(each.allow_nan for each in inner)
            tags.input_tags.string = all(each.string for each in inner)
        return tags
