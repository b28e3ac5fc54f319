"""Costs that were seen only for what was chosen: nuisance models, propensities and pseudo-costs.

Conventions
-----------
    c_i (d,) costs of sample i, less the offset      w_i past decision      o_ij = 1 if cost j of sample i was seen

    semi-bandit   c_ij where o_ij = 1            pi_j(x) = P(o_j = 1 | x)        H_i = diag(o_i / pi(x_i))
    bandit        z_i = c_i.w_i only             Sigma(x) = E[w w^T | x]         H_i = Sigma(x_i)^+ w_i w_i^T

    m(x) regression of the costs on x (the nuisance), fitted without sample i
    direct           c~_i = m(x_i), or what was seen with m(x_i) elsewhere
    doubly robust    c~_i = m(x_i) + H_i (c_i - m(x_i)),  where H_i c_i is known and E[H_i | x] v = v for decisions

E[c~ | x] = E[c | x] if m or the propensities are right.  Bandit: E z = m(x).w, so that z is regressed on the products
of w and features of x.  Nothing can be learned about the cost of a variable that was never seen: it gets the worst
prediction of the other costs of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.linalg import null_space, orth
from scipy.special import xlogy
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, PolynomialFeatures, StandardScaler
from sklearn.utils.validation import check_array, has_fit_parameter

from .._utils.confidence import mean_and_error
from .._utils.errors import warn_once
from .._utils.frames import take_rows
from .._utils.limits import count_workers
from .._utils.shown import shown
from ..regions.base import Region
from ..regions.capabilities import RANK
from ._feedback_log import Log, is_array, read_propensity
from ._folds import SIGNIFICANT, Splits, held_out_mean
from ._stacking_members import QUADRATIC, default_members

#: Propensities below this share of their mean are small.  On eleven logs of 5x5 paths (400 and 1000 samples, least
#: squares on doubly robust costs, quadratic ridge) the regret with 0.5 is lower than with 0.2 by 4 to 14 points on
#: three and at most 4 higher on the others.  1 is the same within 2 points and would clip half of what was seen.
SMALL = 0.5

#: penalties of the regression that finds out whether what was seen depends on the features, as of the default nuisance
RIDGE_ALPHAS = np.logspace(-3, 5, 17)

#: Penalty of the log-linear nuisance, for costs in units of the largest.  5x5 paths, 400 samples, degrees 2, 6 and 8:
#: 1e-5 to 1e-3 have the same regret within half a point, 1e-2 has up to four times as much if logs are self-selected.
LOG_PENALTY = 1e-3

DIRECT, NUISANCE = "direct", "nuisance"
ROBUST, LAMBDA, PINV = "doubly_robust", "doubly_robust_lambda", "doubly_robust_pinv"


# -- nuisance ----------------------------------------------------------------------------------------------------------


def default_nuisances(log: Log, seed: int) -> list[tuple[str, BaseEstimator]]:
    """Ridge, ridge with products of few features; of costs also boosted trees, and log-linear if none is negative."""
    n, p = np.shape(log.X)
    rows, width = (n * log.C.shape[1], p // log.C.shape[1]) if log.shared else (n, p)
    members: dict[str, Any] = dict(default_members(rows, width, seed))
    found = {"ridge": members["ridge"]}
    if width <= QUADRATIC:
        products = PolynomialFeatures(2, include_bias=False)
        found["quadratic ridge"] = make_pipeline(StandardScaler(), products, clone(members["ridge"].steps[-1][1]))
    if log.z is None:
        found["boosting"] = members["boosting"]
        if np.nanmin(log.C) >= 0.0:
            poisson = PoissonRegressor(alpha=LOG_PENALTY, max_iter=1000)
            scaled = TransformedTargetRegressor(poisson, transformer=MaxAbsScaler())
            found["log-linear"] = make_pipeline(StandardScaler(), scaled)
    return list(found.items())


class CostModel:
    """Regression of all costs on what was seen of them: fitted once for each cost, or once if all costs share it.

    No prediction is better than the best that was seen of a cost: decisions look for such predictions, which are often
    extrapolated.  Worse ones are possible: past decisions may have avoided what was expensive.
    """

    def __init__(self, regressor: BaseEstimator, log: Log) -> None:
        self.shared, self.worst, self.learned = log.shared, log.worst, log.learned
        seen = log.seen if log.weight is None else log.seen & (log.weight > 0)[:, None]
        if self.shared:
            parts = [(_items(log.X, len(self.learned)), log.C.ravel(), seen.ravel(), len(self.learned))]
        else:
            parts = [(log.X, log.C[:, j], seen[:, j], 1) for j in np.flatnonzero(self.learned)]
        self.models = []
        for X, y, some, items in parts:
            rows = np.flatnonzero(some)
            weight = None if log.weight is None else np.repeat(log.weight, items)[rows]
            # Regressors that cross-validate need two samples, and the logarithm of costs that are all 0 is not finite.
            varies = np.ptp(y[rows]) > 0.0
            model = _fit(regressor if varies else DummyRegressor(), take_rows(X, rows), y[rows], weight)
            self.models.append((model, (self.worst * y[rows]).min()))

    def predict(self, X: Any) -> np.ndarray:
        """Predicted costs, less the offset."""
        rows = _items(X, len(self.learned)) if self.shared else X
        parts = [
            self.worst * np.maximum(self.worst * np.ravel(model.predict(rows)), best) for model, best in self.models
        ]
        if self.shared:
            return _checked(parts[0].reshape(-1, len(self.learned)))
        M = np.zeros((np.shape(X)[0], len(self.learned)))
        M[:, self.learned] = np.column_stack(parts)
        return _checked(fill_worst(M, self.learned, self.worst))


class TotalModel:
    """Regression of all costs on totals of past decisions: linear in the products of decisions and features.

    The regressor is linear, at the end of a pipeline if features are to be transformed.
    """

    def __init__(self, regressor: BaseEstimator, log: Log) -> None:
        self.shared, self.worst, self.learned = log.shared, log.worst, log.learned
        last: Any = regressor.steps[-1][1] if isinstance(regressor, Pipeline) else regressor
        self.transformer = None
        if isinstance(regressor, Pipeline) and len(regressor.steps) > 1:
            rows = _items(log.X, len(self.learned)) if self.shared else log.X
            self.transformer = clone(regressor[:-1]).fit(rows)
        Z = self._features(log.X)
        if self.shared:
            self.coef = self._coef(last, np.einsum("nd,ndq->nq", log.W, Z), log.z, log.weight)
            return
        # First what costs have in common, so that the penalty shrinks the coefficients of each cost towards it.
        common = log.W.sum(axis=1, keepdims=True) * Z
        coef = self._coef(last, common, log.z, log.weight)
        design = (log.W[:, :, None] * Z[:, None, :]).reshape(len(log.z), -1)
        own = self._coef(last, design, log.z - common @ coef, log.weight)
        self.coef = coef + own.reshape(len(self.learned), -1)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted costs, less the offset."""
        Z = self._features(X)
        return _checked(Z @ self.coef if self.shared else fill_worst(Z @ self.coef.T, self.learned, self.worst))

    @staticmethod
    def _coef(regressor: Any, design: np.ndarray, z: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Coefficients of a linear regression without an intercept."""
        linear = clone(regressor)
        if "fit_intercept" in linear.get_params():
            linear.set_params(fit_intercept=False)
        linear = _fit(linear, design, z, weight)
        if not hasattr(linear, "coef_"):
            raise ValueError(
                f"Only totals were seen: the nuisance must be linear (with coef_), got {shown(regressor)}. Put "
                "nonlinear features before it: make_pipeline(SplineTransformer(), RidgeCV())."
            )
        return np.ravel(linear.coef_)

    def _features(self, X: Any) -> np.ndarray:
        """Features with a constant, (n, q); (n, d, q) of items if they share a model."""
        rows = _items(X, len(self.learned)) if self.shared else X
        Z = rows if self.transformer is None else self.transformer.transform(rows)
        Z = check_array(Z, dtype=np.float64, input_name="X")
        Z = np.column_stack([np.ones(len(Z)), Z])
        return Z.reshape(-1, len(self.learned), Z.shape[1]) if self.shared else Z


def fill_worst(M: np.ndarray, learned: np.ndarray, worst: float) -> np.ndarray:
    """Costs of variables that were never seen become the worst of the others of the sample."""
    if not learned.all() and learned.any():
        M[:, ~learned] = worst * (worst * M[:, learned]).max(axis=1, keepdims=True)
    return M


def _checked(M: np.ndarray) -> np.ndarray:
    if not np.isfinite(M).all():
        raise ValueError("The nuisance predicts NaN or infinity. Use another regressor, or other features.")
    return M


def _items(X: Any, d: int) -> np.ndarray:
    """One row of features per item."""
    rows = np.asarray(X)
    return rows.reshape(len(rows) * d, -1)


def _fit(regressor: BaseEstimator, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
    """Fit a clone; only the last step of a pipeline gets the weights."""
    model: Any = clone(regressor)
    if weight is None:
        return model.fit(X, y)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, TransformedTargetRegressor) and not has_fit_parameter(last, "sample_weight"):
        raise ValueError(f"The nuisance {type(last).__name__} does not accept sample_weight. Use another regressor.")
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    return model.fit(X, y, **{f"{prefix}sample_weight": weight})


class Nuisances:
    """Predictions for samples by models that were fitted without them; models are kept by the rows of their fit.

    ``fit`` returns a model of some samples, which has ``predict``.
    """

    def __init__(self, log: Log, splits: Splits, fit: Callable[[Log], Any], n_jobs: int | None = None) -> None:
        rows = np.arange(len(log.C))
        self.log, self.fit, self.n_jobs = log, fit, n_jobs
        self.splits = [(rows[train], rows[test]) for train, test in splits]  # they may be masks
        self.models: dict[bytes, Any] = {}

    def held_out(self, without: np.ndarray | None = None) -> np.ndarray:
        """Mean prediction for each row by models that saw neither it nor the rows ``without``, which have NaN."""
        gone = np.zeros(len(self.log.C), dtype=bool)
        gone[[] if without is None else without] = True
        parts = [(train[~gone[train]], test[~gone[test]]) for train, test in self.splits]
        parts = [(train, test) for train, test in parts if len(train) and len(test)]
        new = {train.tobytes(): train for train, _ in parts if train.tobytes() not in self.models}
        fits = (delayed(self.fit)(self.log.take(rows)) for rows in new.values())
        self.models |= zip(new, Parallel(count_workers(self.n_jobs, len(new)))(fits), strict=True)
        predicted = ((test, self.models[train.tobytes()].predict(take_rows(self.log.X, test))) for train, test in parts)
        return held_out_mean(self.log.C.shape, predicted)


def choose_nuisance(
    log: Log, splits: Splits, regressor: BaseEstimator | None, seed: int, n_jobs: int | None
) -> tuple[str, Nuisances, dict[str, float]]:
    """The candidate with the least error of what was seen in held-out rows, and these errors."""
    candidates = default_nuisances(log, seed) if regressor is None else [(type(regressor).__name__, regressor)]
    model = CostModel if log.z is None else TotalModel
    found, errors = {}, {}
    for name, candidate in candidates:
        found[name] = Nuisances(log, splits, partial(model, candidate), n_jobs)
        errors[name] = float(np.average(held_out_error(log, found[name].held_out()), weights=log.weight))
    name = min(errors, key=errors.__getitem__)
    return name, found[name], errors


def held_out_error(log: Log, M: np.ndarray) -> np.ndarray:
    """Error of each sample, 0 for those that are never held out: squared, or Poisson deviance of costs from 0 on.

    Both are least for the true mean.  The deviance gives more weight to errors of small costs, among which decisions
    choose; the squared error of costs that vary by powers of ten is that of the largest ones.
    """
    if log.z is not None or log.worst < 0 or np.nanmin(log.C) < 0.0:
        return np.square(np.nan_to_num(residuals(log, M))).sum(axis=1)
    y, judged = np.nan_to_num(log.C), log.seen & np.isfinite(M)
    # The deviance is infinite at a prediction of 0.  The mean of n costs is not known more precisely than to 1 / n.
    M = np.maximum(np.nan_to_num(M), y.sum() / max(int(np.count_nonzero(log.seen)), 1) ** 2)
    return np.where(judged, 2.0 * (xlogy(y, y) - xlogy(y, M) + M - y), 0.0).sum(axis=1)


def residuals(log: Log, M: np.ndarray) -> np.ndarray:
    """What was seen minus what was predicted, (n, d), 0 where nothing was seen; (n, 1) of totals."""
    if log.z is not None:
        return (log.z - np.einsum("ij,ij->i", log.W, M))[:, None]
    return np.where(log.seen, log.C - M, 0.0)


# -- propensities ------------------------------------------------------------------------------------------------------


class Propensity:
    """Probability of seeing each cost, (n, d), or the second moment of past decisions, (d, d).

    ``method`` is None, which means frequencies, a classifier, which is fitted once for each cost, or a known array.
    """

    def __init__(self, method: Any, log: Log) -> None:
        share = np.ones(len(log.C)) if log.weight is None else log.weight
        self.models: list[Any] = []
        self.totals = log.z is not None
        if isinstance(method, np.ndarray):
            self.mean = method
        elif self.totals:
            self.mean = (log.W * share[:, None]).T @ log.W / share.sum()
        else:
            could = share[:, None] * (np.ones(log.C.shape) if log.possible is None else log.possible)
            total = could.sum(axis=0)
            self.mean = (could * log.seen).sum(axis=0) / np.where(total > 0, total, 1.0)
            if method is None:
                return
            self.shared, self.least = log.shared, 1.0 / len(log.C)
            parts = [(log.X, log.seen[:, j], could[:, j]) for j in range(len(self.mean))]
            if log.shared:
                parts = [(_items(log.X, len(self.mean)), log.seen.ravel(), could.ravel())]
            for X, seen, weight in parts:
                rows = np.flatnonzero(weight)
                varies = seen[rows].any() and not seen[rows].all()
                given = None if log.weight is None else weight[rows]
                self.models.append(_fit(method, take_rows(X, rows), seen[rows], given) if varies else None)

    def predict(self, X: Any) -> np.ndarray:
        """Propensities of samples."""
        if self.totals:
            return self.mean
        P = np.array(np.broadcast_to(self.mean, (np.shape(X)[0], len(self.mean))))
        for j, model in enumerate(self.models):
            if model is not None:
                rows = _items(X, len(self.mean)) if self.shared else X
                # n samples cannot tell less than 1 / n from 0, which some classifiers predict where a cost was seen.
                chance = np.clip(model.predict_proba(rows)[:, 1], self.least, 1.0)
                P[:, slice(None) if self.shared else j] = chance.reshape(len(P), -1) if self.shared else chance
        return P


def fit_propensity(propensity: Any, log: Log) -> Callable[[Log], Propensity]:
    """What estimates propensities; an error if this is neither None, nor a classifier, nor an array."""
    if propensity is None or (is_array(propensity) and log.propensity is not None):
        return partial(Propensity, None)
    if is_array(propensity):
        d = log.C.shape[1]
        return partial(Propensity, read_propensity(propensity, log, (d,) if log.z is None else (d, d)))
    if not hasattr(propensity, "fit") or not is_classifier(propensity):
        raise TypeError(
            "propensity must be None (estimated from the log), a classifier with predict_proba, or an array of known "
            f"propensities, got {shown(propensity)}."
        )
    if log.z is not None:
        raise ValueError(
            "Only totals were seen, and a classifier cannot estimate the second moment of past decisions. Use "
            "propensity=None, or pass it as an array."
        )
    return partial(Propensity, propensity)


def default_steps(log: Log) -> list[BaseEstimator]:
    """Standardized features, and products of few."""
    width = np.shape(log.X)[1] // (log.C.shape[1] if log.shared else 1)
    return [StandardScaler(), *([PolynomialFeatures(2, include_bias=False)] if width <= QUADRATIC else [])]


class SeenModel:
    """Ridge regression of what was seen on the features, for all costs at once: probabilities, nearly."""

    def __init__(self, log: Log) -> None:
        d = log.C.shape[1]
        self.items = d if log.shared else 0
        seen = log.seen if log.possible is None else np.where(log.possible, log.seen, Propensity(None, log).mean)
        X, y, weight = log.X, seen.astype(np.float64), log.weight
        if log.shared:
            X, y, weight = _items(X, d), y.ravel(), None if weight is None else np.repeat(weight, d)
        self.model = _fit(make_pipeline(*default_steps(log), RidgeCV(RIDGE_ALPHAS)), X, y, weight)

    def predict(self, X: Any) -> np.ndarray:
        """Predictions, (n, d)."""
        found = self.model.predict(_items(X, self.items) if self.items else X)
        return np.asarray(found).reshape(np.shape(X)[0], -1)


def depends_on_features(log: Log, splits: Splits, groups: ArrayLike | None, n_jobs: int | None) -> bool:
    """Whether features predict what was seen in held-out samples, or which variables past decisions used.

    They do if a regression has a smaller squared error than frequencies, by some standard errors.  Features that are
    not finite numbers are not examined.
    """
    try:
        if not np.isfinite(np.asarray(log.X, dtype=np.float64)).all():
            return False
    except (TypeError, ValueError):
        return False
    marks = log._replace(C=np.where(log.seen, 0.0, np.nan), z=None)
    fits: tuple[Callable[[Log], Any], ...] = (partial(Propensity, None), SeenModel)
    frequent, modelled = (Nuisances(marks, splits, fit, n_jobs).held_out() for fit in fits)
    gain = np.square(log.seen - frequent) - np.square(log.seen - modelled)
    total = (gain if log.possible is None else np.where(log.possible, gain, 0.0)).sum(axis=1)
    held = np.flatnonzero(np.isfinite(frequent).all(axis=1))
    labels = None if groups is None else np.asarray(groups)[held]
    (mean,), (error,) = mean_and_error(total[held, None], take_rows(log.weight, held), labels)
    return bool(mean > SIGNIFICANT * error)


def choose_propensity(
    log: Log, splits: Splits, propensity: Any, groups: ArrayLike | None, n_jobs: int | None
) -> Nuisances:
    """What estimates propensities.

    Without ``propensity`` these are frequencies, or a logistic regression if what was seen depends on the features.  If
    only totals were seen it is the second moment of past decisions, and there is a warning if they did.
    """
    if propensity is None and log.propensity is None and depends_on_features(log, splits, groups, n_jobs):
        if log.z is None:
            warn_once(
                "What was seen depended on the features: propensities are probabilities of a logistic regression, "
                "instead of frequencies. If the probabilities of past decisions are known, pass them as propensity."
            )
            propensity = make_pipeline(*default_steps(log), LogisticRegression(max_iter=1000))
        else:
            warn_once(
                "Past decisions depended on the features, but their second moment E[w w^T] is estimated as if they did "
                "not. What is doubly robust then depends on the nuisance. Pass the second moment of each sample as "
                "propensity, if it is known."
            )
    return Nuisances(log, splits, fit_propensity(propensity, log), n_jobs)


def propensities(log: Log, chances: Nuisances, without: np.ndarray | None = None) -> np.ndarray:
    """Propensities that are known, or are estimated without the sample; a second moment needs no such care."""
    if log.propensity is not None:
        return log.propensity
    return chances.fit(log).predict(log.X) if log.z is not None else chances.held_out(without)


# -- pseudo-costs ------------------------------------------------------------------------------------------------------


def inverse(values: np.ndarray, method: str, small: float | None = None) -> np.ndarray:
    """Inverses of propensities or eigenvalues (the last axis), 0 of 0; those below ``small`` as ``method`` says."""
    values = np.maximum(values, 0.0)
    positive = values > RANK * values.max(axis=-1, keepdims=True, initial=0.0)
    number = np.maximum(positive.sum(axis=-1, keepdims=True), 1)
    least = SMALL * np.where(positive, values, 0.0).sum(axis=-1, keepdims=True) / number if small is None else small
    if method == ROBUST:
        values = np.maximum(values, least)
    elif method == LAMBDA:
        values = values + least
    return np.divide(1.0, values, out=np.zeros_like(values), where=positive)


def warn_clipped(log: Log, P: np.ndarray, method: str) -> None:
    """Say which share of what was seen has a propensity that is clipped."""
    if log.z is not None or method != ROBUST:
        return
    P = np.broadcast_to(P, log.C.shape)
    small = log.seen & (inverse(np.nan_to_num(P, nan=1.0), method) * P < 1.0 - RANK)
    if small.any():
        warn_once(
            f"The propensities of {np.count_nonzero(small) / np.count_nonzero(log.seen):.2%} of the costs that were "
            f"seen are small and were clipped, the smallest of which is {P[small].min():.2g}. Pseudo-costs are then "
            "biased as the nuisance is."
        )


def corrections(log: Log, residual: np.ndarray, P: np.ndarray, method: str) -> np.ndarray:
    """H r of each sample for what was seen minus what was predicted."""
    if log.z is None:
        return np.where(log.seen, inverse(np.nan_to_num(P, nan=1.0), method) * residual, 0.0)
    # Hu, Kallus, Mao and Wu clip eigenvalues at 1, and add 1, for decisions of 0 and 1; this has the same units.
    values, vectors = np.linalg.eigh(P)
    inverses = inverse(values, method, np.square(log.W).max())
    along = (log.W @ vectors if P.ndim == 2 else np.einsum("nj,njk->nk", log.W, vectors)) * inverses
    return (along @ vectors.T if P.ndim == 2 else np.einsum("njk,nk->nj", vectors, along)) * residual


def pseudo_costs(log: Log, M: np.ndarray, P: np.ndarray | None, method: str) -> np.ndarray:
    """Costs to train on or to evaluate with; NaN in rows without ``M``, and the offset alone where no cost exists."""
    if method in (DIRECT, NUISANCE):
        found = M if log.z is not None else np.where(log.seen, log.C, M)
    else:
        assert P is not None
        found = M + corrections(log, residuals(log, M), P, method)
    return log.with_offset(found if log.possible is None else np.where(log.possible, found, 0.0))


def unidentified(log: Log, region: Region | None) -> np.ndarray:
    """Variables whose cost the log does not determine, as far as decisions depend on it, shape (d,).

    If only totals were seen these are the directions that are orthogonal to all past decisions, without those in which
    decisions never vary.
    """
    d = log.C.shape[1]
    missing = ~log.learned if log.possible is None else ~log.learned & log.possible.any(axis=0)
    if log.z is None or log.shared:
        return missing
    null = null_space(log.W, rcond=RANK**0.5).T
    hidden = np.zeros((0, d)) if region is None else region._always_hidden(d)
    known = orth(np.vstack([hidden, np.eye(d)[missing]]).T) if missing.any() or len(hidden) else np.zeros((d, 0))
    rest = null - (null @ known) @ known.T
    return missing | (np.abs(rest) > RANK**0.5).any(axis=0)
