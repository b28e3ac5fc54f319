"""Transform features of items one row per item, for models with ``shared=True``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._utils.versioning import VersionedState


class ItemTransformer(VersionedState, MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """Apply a transformer to the features of each item, before a model with ``shared=True``.

    X has d consecutive blocks of q features, one block per item (see :func:`stack_items`).  The transformer sees one
    row of q features per item, and its outputs are put side by side again.

    Parameters
    ----------
    transformer : estimator
        Transformer of rows of q features, for example ``StandardScaler()`` or a pipeline of transformers.  It is fitted
        without the costs.

    Attributes
    ----------
    transformer_ : estimator
        The fitted transformer.
    n_items_ : int
        Number of items d, the number of columns of y.
    n_features_in_ : int
        Number of features, d * q.

    Examples
    --------
    >>> from sklearn.kernel_approximation import Nystroem
    >>> from sklearn.pipeline import make_pipeline
    >>> from skspo import ItemTransformer, Simplex, SPOPlusRegressor
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, C = rng.normal(size=(30, 3 * 2)), rng.normal(size=(30, 3))  # 3 items with 2 features each
    >>> kernel = ItemTransformer(Nystroem(n_components=5, random_state=0))
    >>> model = make_pipeline(kernel, SPOPlusRegressor(Simplex(), shared=True, alpha=0.1)).fit(X, C)
    >>> model[:-1].transform(X).shape
    (30, 15)
    """

    def __init__(self, transformer: BaseEstimator) -> None:
        self.transformer = transformer

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> ItemTransformer:
        """Fit the transformer to one row per item.

        Parameters
        ----------
        X : array-like of shape (n_samples, d * q)
        y : array-like of shape (n_samples, d) or (n_samples,)
            Costs; only their number of columns is used.

        Returns
        -------
        self : ItemTransformer
        """
        if y is None:
            raise ValueError("ItemTransformer requires y to be passed: its number of columns is the number of items.")
        shape = np.shape(y)
        d = 1 if len(shape) < 2 else int(shape[1])
        rows: np.ndarray = validate_data(self, X, dtype=None, ensure_all_finite=False)
        if rows.shape[1] % d:
            raise ValueError(
                f"X has {rows.shape[1]} columns and y has {d}: X must have the same number of features for each of the "
                f"{d} items."
            )
        self.n_items_ = d
        self.transformer_ = clone(self.transformer).fit(self._items(rows))
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Transform the features of each item.

        Parameters
        ----------
        X : array-like of shape (n_samples, d * q)

        Returns
        -------
        Z : ndarray of shape (n_samples, d * k)
            k is the number of outputs of the transformer.
        """
        check_is_fitted(self)
        rows: np.ndarray = validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False)
        Z = self.transformer_.transform(self._items(rows))
        return check_array(Z.toarray() if issparse(Z) else Z, dtype=np.float64).reshape(rows.shape[0], -1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _items(self, rows: np.ndarray) -> np.ndarray:
        return rows.reshape(rows.shape[0] * self.n_items_, -1)
