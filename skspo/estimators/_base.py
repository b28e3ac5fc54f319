"""``fit``, ``predict``, ``decide``, ``score`` and ``report`` of all regressors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._training.fitted import check_frames, check_metadata, decision_names, metadata_checked
from .._utils.errors import import_pandas
from .._utils.frames import is_dask
from .._utils.types import RegionParams
from .._utils.versioning import VersionedState
from ..losses import check_offset
from ..metrics import normalized_spo_loss
from ..regions._names import default_names
from ..regions.base import Region
from ._report import DecisionReport, decision_report

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.utils import Tags


class PartialFitMixin:
    """``partial_fit`` of estimators that can be trained chunk by chunk."""

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
    ) -> Self:
        """Train with one more pass over a chunk of data; the first chunk sets the typical size of features and costs.

        Parameters
        ----------
        X, y, sample_weight, offset, region_params
            As in ``fit``.

        Returns
        -------
        self : estimator
        """
        known = {"sample_weight": sample_weight, "offset": offset, "region_params": region_params}
        self._partial_fit(X, y, **known)  # type: ignore[attr-defined]
        return self


class GroupsFitMixin:
    """``fit`` of estimators that choose something by cross-validation."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose by cross-validation, and fit the model to all data.

        Parameters
        ----------
        X, y, sample_weight, offset, region_params
            As in :meth:`SPOPlusRegressor.fit`.
        groups : array-like of shape (n_samples,), optional
            Labels of samples that depend on each other, such as those of one day.  They are for splitters such as
            ``GroupKFold``, which is the default with groups, also for a number as ``cv``.  Standard errors then count
            groups, not samples.

        Returns
        -------
        self : estimator
        """
        known = {"sample_weight": sample_weight, "offset": offset, "region_params": region_params, "groups": groups}
        self._fit(X, y, **known)  # type: ignore[attr-defined]
        return self


class DecisionMixin(VersionedState):
    """``decide`` and ``score`` for every estimator that predicts costs and has a fitted ``region_``."""

    region_: Region
    _fitted_with: frozenset[str]

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples, d) or (n_samples,)
            Cost vectors (C in the documentation), one column per decision variable.  They may be NaN where the
            decision is always 0, see :meth:`Region.possible`.
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights of the samples; below 1e-280 of the largest they count as zero.
        offset : array-like of shape (n_samples, d) or (d,), optional
            Known part of the costs: the cost is the offset plus what the model is to predict.
        region_params : dict of array-like, or the like, optional
            Parameters of the region that vary by sample, one row per sample (see :func:`row_params`).

        Returns
        -------
        self : estimator
        """
        self._fit(X, y, sample_weight=sample_weight, offset=offset, region_params=region_params)
        return self

    def _fit(self, X: ArrayLike, y: ArrayLike, **known: Any) -> object:
        """Learn from features, costs and what else ``fit`` gets."""
        raise NotImplementedError

    #: whether predictions of dask collections are lazy
    _predicts_lazily = False

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Predict costs; a model that is trained for its decisions predicts scores for deciding.

        The differences of scores matter, and not their size: without a penalty they may be many times as large as the
        costs, or as small.  ``predict_rescaled`` returns them in the size of the costs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        offset : array-like of shape (n_samples, d) or (d,), optional
            Known part of the costs: the cost is the offset plus what the model predicts.

        Returns
        -------
        C_hat : ndarray of shape (n_samples, d), or (n_samples,) if y was one-dimensional (and had no totals)
        """
        check_is_fitted(self)
        check_frames(self, X=X, offset=offset)
        check_metadata(self, "predict", offset=offset)
        if self._predicts_lazily and is_dask(X):
            from ._dask import map_partitions

            return map_partitions(self, "predict", X, offset)
        if getattr(X, "ndim", 2) == 2:  # anything else is refused by ``_predict_costs``
            validate_data(self, X, reset=False, skip_check_array=True)
        return self._plus(self._predict_costs(X), offset)

    def _predict_costs(self, X: ArrayLike) -> np.ndarray:
        """Predictions less the offset, in the shape of y, for features whose values are not checked yet."""
        raise NotImplementedError

    def predict_rescaled(self, X: ArrayLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Predictions in the size of the costs, for reading: ``predict`` times one positive number.

        Training for decisions does not determine the size of predictions.  The number, ``prediction_factor_``, is that
        for which the predictions of the training data are nearest to the costs, in least squares.  The component that
        changes no decision (see :meth:`Region.visible_costs`) stays as it is.  Decisions are made with ``predict``.

        Parameters
        ----------
        X, offset
            As in ``predict``; the offset is rescaled together with the rest.

        Returns
        -------
        C_hat : ndarray of shape (n_samples, d), or (n_samples,) if y was one-dimensional
        """
        C_hat = self.predict(X, offset=offset)
        # Estimators without the factor are trained to predict the costs themselves.
        factor = getattr(self, "prediction_factor_", 1.0)

        def rescale(part: np.ndarray) -> np.ndarray:
            visible = self.region_.visible_costs(part.reshape(part.shape[0], -1)).reshape(part.shape)
            return part + (factor - 1.0) * visible

        return C_hat.map_blocks(rescale, dtype=np.float64) if is_dask(X) else rescale(C_hat)  # type: ignore[attr-defined]

    @property
    def _trains_on_region(self) -> bool:
        """Whether training depends on the region, and so on ``region_params``."""
        return True

    @property
    def _predicts_all_costs(self) -> bool:
        """Whether decisions in another region than that of training can be made with the predictions."""
        return True

    def decide(
        self,
        X: ArrayLike,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
        *,
        as_frame: bool = False,
    ) -> np.ndarray | pd.DataFrame:
        """Decisions for the predicted costs.

        Parameters
        ----------
        X, offset
            As in ``predict``.
        region_params : dict of array-like, or the like, optional
            Parameters of the region that vary by sample, one row per sample (see :func:`row_params`).
        as_frame : bool, default=False
            Return a pandas DataFrame.  Its columns are the names of the costs of ``fit`` if they were a data frame,
            otherwise the ``variable_names`` of the region, or w0, w1, ...; its index is that of ``X``.

        Returns
        -------
        W : ndarray or DataFrame of shape (n_samples, d)
            One feasible decision per sample.

        Warns
        -----
        UserWarning
            Once for each model, if ``offset`` or ``region_params`` was given to ``fit``, but not here, or vice versa.
        """
        check_frames(self, X=X, offset=offset, region_params=region_params)
        check_metadata(self, "decide", offset=offset, region_params=region_params)
        if is_dask(X):
            from ._dask import map_partitions

            if as_frame:
                raise ValueError("as_frame=True cannot be combined with dask collections; decide in partitions.")
            return map_partitions(self, "decide", X, offset, region_params)
        region, C_hat = self._predicted(X, offset, region_params)
        W = region.decide(C_hat)
        return as_data_frame(W, decision_names(self, self.region_, W.shape[1]), X) if as_frame else W

    def chosen(
        self, X: ArrayLike, offset: ArrayLike | None = None, region_params: RegionParams | None = None
    ) -> list[Any]:
        """Decisions for the predicted costs in words.

        Parameters
        ----------
        X, offset, region_params
            As in ``decide``.

        Returns
        -------
        words : list of length n_samples
            What was chosen for each sample: the nodes of a route, the selected items, the pairs of an assignment, or a
            dict of the variables that are not zero; see :meth:`skspo.Region.describe`.
        """
        check_frames(self, X=X, offset=offset, region_params=region_params)
        check_metadata(self, "chosen", offset=offset, region_params=region_params)
        region, C_hat = self._predicted(X, offset, region_params)
        return region.chosen(C_hat, getattr(self, "cost_names_in_", None))

    def _predicted(
        self, X: ArrayLike, offset: ArrayLike | None, region_params: RegionParams | None
    ) -> tuple[Region, np.ndarray]:
        """Region of these samples, and predicted costs."""
        with metadata_checked():
            C_hat = self.predict(X, offset=offset)
        C_hat = C_hat[:, None] if C_hat.ndim == 1 else C_hat
        return self.region_.with_rows(region_params, *C_hat.shape), C_hat

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
    ) -> float:
        """Minus the normalized SPO loss: 0 is as good as knowing the costs.

        It has no units (see :func:`normalized_spo_loss`).  Larger is better for both senses of the region: with
        ``sense="max"``, the default of :class:`Knapsack` only, predictions and ``y`` are values to be maximized.

        Parameters
        ----------
        X, offset, region_params
            As in ``decide``.
        y : array-like of shape (n_samples, d)
            True costs (values, if the region maximizes), offset included.  A data frame must have the columns of
            ``fit``, in the same order.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float

        Warns
        -----
        UserWarning
            As ``decide`` does; a search over folds warns once.
        """
        check_frames(self, X=X, y=y, sample_weight=sample_weight, offset=offset, region_params=region_params)
        check_metadata(self, "score", offset=offset, region_params=region_params)
        if is_dask(X, y):
            from ._dask import score_partitions

            return score_partitions(self, X, y, sample_weight, offset, region_params)
        with metadata_checked():
            C_hat = self.predict(X, offset=offset)
        return -float(
            normalized_spo_loss(y, C_hat, self.region_, sample_weight=sample_weight, region_params=region_params)
        )

    def _plus(self, C_hat: np.ndarray, offset: ArrayLike | None) -> np.ndarray:
        """Add the offset to predictions; known costs are exact."""
        checked = check_offset(offset, (C_hat.shape[0], 1 if C_hat.ndim == 1 else C_hat.shape[1]))
        C_hat = C_hat if checked is None else C_hat + checked.reshape(C_hat.shape)
        known = getattr(self, "_known_costs", ())
        if len(known):
            # Without the offset of the fit it is the rest that is predicted.
            C_hat[:, known] = 0.0 if checked is None and "offset" in self._fitted_with else 1.0
        return C_hat

    def report(self, X: ArrayLike, y: ArrayLike, **kwargs: Any) -> DecisionReport:
        """Report on the decisions, compared with those of least squares and of a constant prediction.

        Both baselines were fitted together with the model, to the same data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples, d)
            True costs.
        **kwargs
            Passed to :func:`skspo.decision_report`, for example ``offset``; ``X_train`` and ``C_train`` after
            ``partial_fit``, which computes no baselines.

        Returns
        -------
        report : DecisionReport
            Prints as a table; ``to_dict()`` has the figures.
        """
        return decision_report(self, X, y, **kwargs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # Decisions have several components, and the score is minus a loss, not an R^2.
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True
        return tags


def as_data_frame(W: np.ndarray, names: np.ndarray | None, X: object) -> pd.DataFrame:
    """Decisions as a data frame with the index of the features."""
    columns = default_names(W.shape[1]) if names is None else names
    return import_pandas().DataFrame(W, columns=columns, index=getattr(X, "index", None))


class DecisionRegressor(DecisionMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Base class of the regressors of costs."""
