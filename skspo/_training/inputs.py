"""Validation of training data, and the attributes that describe them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, validate_data

from .._utils.scaling import check_largest, relative_weight
from .._utils.types import RegionParams
from ..losses import check_offset, check_weight
from .baselines import mean_cost
from .design import check_blocks
from .fitted import check_cost_names, check_metadata, check_order, cost_names, fitted_with
from .sparse import as_csr, is_small, to_dense

#: attributes of a fitted estimator, by name
Attributes: TypeAlias = dict[str, Any]


def check_ndim(y: object) -> None:
    """Raise an error if costs have more than two dimensions."""
    # The error of scikit-learn does not say whether it is about X or y.
    if getattr(y, "ndim", 1) > 2:
        raise ValueError(f"y must have shape (n_samples, n_costs) or (n_samples,), got {getattr(y, 'shape', None)}.")


class TrainingData(NamedTuple):
    """Validated data, and the attributes that the estimator gets if the fit succeeds."""

    X: np.ndarray | csr_array
    C: np.ndarray
    weight: np.ndarray | None
    offset: np.ndarray | None
    input_attributes: Attributes

    @property
    def mean_cost(self) -> np.ndarray:
        """Mean of the costs minus the offset."""
        return mean_cost(self.C, self.weight, self.offset)

    def take(self, rows: np.ndarray) -> TrainingData:
        """Some of the samples."""
        weight, offset = (None if array is None else array[rows] for array in (self.weight, self.offset))
        return TrainingData(self.X[rows], self.C[rows], weight, offset, self.input_attributes)


#: attributes that not every fit sets
OPTIONAL = ("feature_names_in_", "cost_names_in_", "cv_predictions_", "_baselines")


def set_fitted(estimator: object, learned: Attributes, forget: tuple[str, ...] = ()) -> None:
    """Replace the fitted attributes in one step, so that an interrupt cannot leave half of them."""
    kept = {name: value for name, value in vars(estimator).items() if name not in (*OPTIONAL, *forget)}
    estimator.__dict__ = kept | learned


@contextmanager
def restore_rng_on_failure(rng: np.random.RandomState, stored: Callable[[], bool]) -> Iterator[None]:
    """Restore the state of a generator if a fit fails, so that a second try draws the same numbers."""
    state = rng.get_state()
    try:
        yield
    except BaseException:
        if not stored():
            rng.set_state(state)
        raise


def feature_attributes(noted: object) -> Attributes:
    """Number and names of features, as scikit-learn has stored them on an estimator."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: vars(noted)[name] for name in names if name in vars(noted)}


def cost_attributes(estimator: object, y: object, *, reset: bool, **metadata: object) -> Attributes:
    """Names of the costs, and of the metadata that are not None; checked against the last fit unless ``reset``."""
    names, given = cost_names(y), fitted_with(**metadata)
    if not reset:
        check_cost_names(estimator, y)
        check_metadata(estimator, "partial_fit", **metadata)
        names = getattr(estimator, "cost_names_in_", None)
        given |= getattr(estimator, "_fitted_with", frozenset())
    check_order(names, getattr(estimator, "region", None))
    attributes: Attributes = {"_fitted_with": given}
    return attributes if names is None else attributes | {"cost_names_in_": names}


def check_training_data(
    estimator: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    region_params: RegionParams | None = None,
    *,
    reset: bool,
) -> TrainingData:
    """Validate features, costs, weights and offset; ``region_params`` are not looked at."""
    check_ndim(y)
    attributes = cost_attributes(estimator, y, reset=reset, offset=offset, region_params=region_params)
    # On a copy: if the fit fails, an earlier model is unchanged.
    noted = copy(estimator)
    accepted = "csr" if get_tags(estimator).input_tags.sparse else False
    with np.errstate(over="ignore", invalid="ignore"):  # the check for infinity computes a sum
        X_arr, y = validate_data(
            noted, X, y, reset=reset, dtype=np.float64, accept_sparse=accepted, multi_output=True, y_numeric=True
        )
        C = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    attributes |= feature_attributes(noted) | {"_y_is_1d": C.ndim == 1}
    C = C.reshape(X_arr.shape[0], -1)
    if getattr(estimator, "shared", False):
        check_blocks(X_arr.shape[1], C.shape[1])
    if issparse(X_arr):
        X_arr = as_csr(X_arr)
        if not getattr(estimator, "_keeps_sparse", False) or getattr(estimator, "shared", False):
            X_arr = to_dense(X_arr, type(estimator).__name__)
        elif is_small(X_arr):
            X_arr = X_arr.toarray()
    known = check_offset(offset, C.shape)
    check_largest(X=X_arr.data if issparse(X_arr) else X_arr, y=C, offset=known)
    return TrainingData(X_arr, C, relative_weight(check_weight(sample_weight, X_arr)), known, attributes)
