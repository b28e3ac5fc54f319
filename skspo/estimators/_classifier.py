"""``CostSensitiveClassifier``: labels whose predicted cost is least."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from .._training.inputs import set_fitted
from .._utils.cost_matrix import read_cost_matrix, read_costs
from .._utils.errors import warn_once
from .._utils.frames import check_index
from .._utils.shown import shown
from .._utils.versioning import VersionedState
from ..losses import check_weight
from ..metrics import mean_cost
from ..regions.check import same_value
from ..regions.simplex import Simplex
from ._compose import find_model, fit_with, with_region
from ._cv import SPOPlusRegressorCV
from ._folds import N_FOLDS, Splits, Splitter
from ._two_stage import noted_features


class CostSensitiveClassifier(VersionedState, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classifier that predicts the label with the least predicted cost.

    A model predicts the cost of each label from the features.  By default it is a linear model that is trained for the
    cost of its decisions with the SPO+ loss.  Any regressor of costs is possible, and also any classifier with
    probabilities: then the predicted costs are expected costs.

    Parameters
    ----------
    cost_matrix : array-like of shape (n_classes, n_classes), data frame, "balanced" or None, default=None
        ``cost_matrix[j, k]`` is the cost of predicting class k if class j is true; classes are in sorted order, as in
        ``classes_``.  Negative costs are gains.  The index and the columns of a data frame are labels, in any order.
        "balanced": a wrong label costs ``n_samples / (n_classes * n_samples_of_the_true_class)``.  None means 1 for
        every wrong label, unless ``costs`` are passed to ``fit``.
    estimator : estimator or None, default=None
        Estimator of skspo, without a region or with ``region=Simplex()``; any multi-output regressor; or a classifier
        with ``predict_proba``; also at the end of a pipeline.  None means
        ``SPOPlusRegressorCV(prior="zero", n_alphas=10)``.
    cv : int, cross-validation generator, iterable or None, default=None
        Folds of an estimator with a parameter ``cv`` that is None, such as the default.  None means stratified folds,
        five or as many as the smallest class has samples, at least two.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    cost_matrix_ : ndarray of shape (n_classes, n_classes) or None
        Costs in the order of ``classes_``; None if ``fit`` got the costs of each sample.
    estimator_ : estimator
        The fitted model.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if X has string column names.

    See Also
    --------
    mean_cost : The metric.
    SPOPlusRegressorCV : The default model.
    sklearn.model_selection.TunedThresholdClassifierCV : Tunes the threshold of binary classifiers.

    Notes
    -----
    ``score`` is minus the mean cost, so that searches choose by cost.  Use ``scoring="accuracy"`` for the accuracy.

    The SPO+ loss of a :class:`Simplex` with costs 0 and 1 is a multi-class hinge loss.  Well-calibrated probabilities,
    for which a classifier is passed as ``estimator``, are often better if costs are a matrix
    (``benchmarks/classifier.py``).  If costs vary by sample, a model of costs needs no formula for them.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from skspo import CostSensitiveClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = CostSensitiveClassifier([[0, 1, 4], [2, 0, 1], [5, 3, 0]]).fit(X, y)
    >>> model.predict(X_test[:3]).shape
    (3,)
    >>> bool(-1 <= model.score(X_test, y_test) <= 0)  # minus the mean cost
    True
    """

    def __init__(
        self,
        cost_matrix: ArrayLike | str | None = None,
        estimator: BaseEstimator | None = None,
        *,
        cv: Splitter | None = None,
    ) -> None:
        self.cost_matrix = cost_matrix
        self.estimator = estimator
        self.cv = cv

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, costs: ArrayLike | None = None
    ) -> CostSensitiveClassifier:
        """Fit the model of costs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights of the samples.
        costs : array-like of shape (n_samples, n_classes) or data frame, optional
            Cost of predicting each class for each sample, in the order of ``classes_``, or with the labels as names of
            columns.  Instead of ``cost_matrix``.

        Returns
        -------
        self : CostSensitiveClassifier
        """
        if not hasattr(self._model, "fit"):
            raise TypeError(
                f"estimator must be an estimator of skspo, a regressor or a classifier, got "
                f"{shown(self.estimator)}. The cost matrix is the first parameter: "
                "CostSensitiveClassifier(cost_matrix, estimator)."
            )
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        check_consistent_length(X, labels)
        check_index(X=X, y=y, sample_weight=sample_weight, costs=costs)
        attributes = noted_features(self, X)
        weight = check_weight(sample_weight, X)
        classes, number = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            some = "no samples" if not len(classes) else f"one class, {classes.tolist()[0]!r}"
            raise ValueError(f"A classifier needs samples of at least 2 classes, but y has {some}.")
        matrix = None
        if costs is None:
            matrix = self._cost_matrix(classes, number, weight)
            C = matrix[number]
        else:
            if self.cost_matrix is not None:
                raise ValueError("cost_matrix and costs are both given. Use cost_matrix=None, or fit without costs.")
            if is_classifier(self._model):
                raise ValueError(
                    f"{type(self._model).__name__} predicts probabilities, which give no expected cost if costs vary "
                    "by sample. Use a regressor or an estimator of skspo, or fit without costs."
                )
            C = read_costs(costs, len(labels), classes)
            if (np.ptp(C, axis=1) == 0).all():
                raise ValueError("costs: all classes cost the same in every sample, so there is nothing to learn.")
        learned = {"classes_": classes, "cost_matrix_": matrix, "estimator_": self._fit_model(X, labels, C, weight)}
        set_fitted(self, attributes | learned)
        return self

    def _cost_matrix(self, classes: np.ndarray, number: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Checked costs in the order of the classes."""
        if isinstance(self.cost_matrix, str):
            if self.cost_matrix != "balanced":
                raise ValueError(f"cost_matrix must be an array, 'balanced' or None, got {shown(self.cost_matrix)}.")
            counts = np.bincount(number, weight, len(classes))
            each = counts.sum() / (len(classes) * np.where(counts > 0, counts, np.inf))
            return each[:, None] * read_cost_matrix(None, classes)
        matrix = read_cost_matrix(self.cost_matrix, classes)
        if (np.ptp(matrix, axis=1) == 0).all():
            raise ValueError("cost_matrix: all classes cost the same in every row, so there is nothing to learn.")
        right = matrix.diagonal()
        if (right == matrix.max(axis=1)).all():
            raise ValueError(
                "cost_matrix: in every row the right class costs most, so these are gains. Pass -cost_matrix."
            )
        best = matrix.min(axis=1)
        if (right > best).any():
            j = int(np.argmax(right > best))
            true, other = (classes.tolist()[k] for k in (j, int(matrix[j].argmin())))
            warn_once(
                f"cost_matrix: if {true!r} is true, predicting {other!r} costs {best[j]:g} and the right class "
                f"{right[j]:g}. Rows must be true classes, and columns predicted ones."
            )
        return matrix

    @property
    def _model(self) -> Any:
        """The estimator, or the default one."""
        return SPOPlusRegressorCV(prior="zero", n_alphas=10) if self.estimator is None else self.estimator

    def _fit_model(self, X: ArrayLike, labels: np.ndarray, C: np.ndarray, weight: np.ndarray | None) -> Any:
        """Fit a copy of the estimator to costs, or to labels if it is a classifier."""
        given = self._model
        if is_classifier(given):
            if not hasattr(given, "predict_proba"):
                raise TypeError(
                    f"estimator must be a regressor, or a classifier with predict_proba, but {type(given).__name__} "
                    "has none. CalibratedClassifierCV adds it."
                )
            model, target = clone(given), labels
        else:
            own = find_model(given)
            if own is not None and own.region is not None and not same_value(own.region, Simplex()):
                raise ValueError(
                    f"estimator must decide in Simplex(), one variable per class, but its region is {own.region!r}."
                )
            model, target = with_region(given, Simplex()), C
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        if last.get_params(deep=False).get("cv", 0) is None:
            last.set_params(cv=self._splits(X, labels))
        return fit_with(model, X, target, sample_weight=weight)

    def _splits(self, X: Any, labels: np.ndarray) -> Splits | None:
        """Folds in which all classes occur, if possible."""
        cv = self.cv
        if cv is None:
            counts = np.unique(labels, return_counts=True)[1]
            if counts.max() < 2:
                return None
            cv = StratifiedKFold(int(np.clip(counts.min(), 2, N_FOLDS)))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            return list(check_cv(cv, labels, classifier=True).split(X, labels))

    def predict_costs(self, X: ArrayLike) -> np.ndarray:
        """Predicted cost of each label.

        Only a classifier or a regressor predicts expected costs.  The predictions of estimators that are trained for
        their decisions are good for comparing labels, but their size means little.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        C_hat : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 2:  # the model refuses anything else
            validate_data(self, X, reset=False, skip_check_array=True)
        if is_classifier(self.estimator_):
            return np.asarray(self.estimator_.predict_proba(X)) @ self.cost_matrix_
        return np.asarray(self.estimator_.predict(X))

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Minus the predicted cost of each label; for two classes, by how much the second one costs less.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        C_hat = self.predict_costs(X)
        return C_hat[:, 0] - C_hat[:, 1] if len(self.classes_) == 2 else -C_hat

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Labels with the least predicted cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The first one of ``classes_`` in case of ties.
        """
        C_hat = self.predict_costs(X)
        return self.classes_[C_hat.argmin(axis=1)]

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, costs: ArrayLike | None = None
    ) -> float:
        """Minus the mean cost of the predicted labels.

        Parameters
        ----------
        X, y, sample_weight, costs
            As in ``fit``; the costs are needed if ``fit`` got them.

        Returns
        -------
        score : float
        """
        check_index(X=X, y=y, sample_weight=sample_weight, costs=costs)
        predicted = self.predict(X)
        if costs is not None:
            return -mean_cost(predicted, predicted, costs=costs, labels=self.classes_, sample_weight=sample_weight)
        if self.cost_matrix_ is None:
            raise ValueError(
                f"{type(self).__name__} was fitted with costs, but score was called without them. Pass costs as well. "
                "Cross-validation and searches pass them on if metadata routing is enabled, "
                "sklearn.set_config(enable_metadata_routing=True), and they are requested for both: "
                "model.set_fit_request(costs=True).set_score_request(costs=True)."
            )
        # A data frame may have more classes than the training data.
        by_label = self.cost_matrix is None or hasattr(self.cost_matrix, "columns")
        matrix, labels = (self.cost_matrix, None) if by_label else (self.cost_matrix_, self.classes_)
        return -mean_cost(y, predicted, matrix, labels=labels, sample_weight=sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        model = self._model
        if hasattr(model, "fit"):  # anything else is refused by fit
            inner = get_tags(model)
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
            tags.non_deterministic = inner.non_deterministic
        return tags
