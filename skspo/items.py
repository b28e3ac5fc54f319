"""Long tables, one row per sample and item, and the arrays that models with ``shared=True`` work on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import pandas as pd


class StackedItems(NamedTuple):
    """What :func:`stack_items` returns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d * q)
        Features: for each item, in the order of ``items``, its q features.
    C : ndarray of shape (n_samples, d), or None
        Costs; None if no column of costs was named.
    samples : ndarray of shape (n_samples,)
        Names of the samples, in the order of their first rows.
    items : ndarray of shape (d,)
        Names of the items.
    rows : ndarray of shape (n_samples, d)
        Where sample and item stand in the table.
    """

    X: np.ndarray
    C: np.ndarray | None
    samples: np.ndarray
    items: np.ndarray
    rows: np.ndarray

    def unstack(self, values: ArrayLike) -> np.ndarray:
        """Put predictions or decisions next to the rows of the table.

        Parameters
        ----------
        values : array-like of shape (n_samples, d)

        Returns
        -------
        column : ndarray of shape (n_samples * d,)
            In the order of the table's rows: ``df["chosen"] = stacked.unstack(model.decide(stacked.X))``.
        """
        array = np.asarray(values)
        if array.shape != self.rows.shape:
            raise ValueError(
                f"values must have one row per sample and one column per item, that is shape {self.rows.shape}, got "
                f"{array.shape}."
            )
        column = np.empty(array.size, dtype=array.dtype)
        column[self.rows.ravel()] = array.ravel()
        return column


def stack_items(
    df: pd.DataFrame,
    *,
    sample: str,
    item: str,
    features: Sequence[str],
    cost: str | None = None,
    items: Sequence[Any] | None = None,
) -> StackedItems:
    """Turn a table with one row per sample and item into the arrays of a model with ``shared=True``.

    Parameters
    ----------
    df : pandas.DataFrame
        One row for every item of every sample, in any order.
    sample : str
        Column that says to which decision a row belongs, for example the day.
    item : str
        Column that says which alternative it is, for example the hour.
    features : list of str
        Columns with the features of an item.
    cost : str or None, default=None
        Column with its cost; None for new data, whose costs are not known yet.
    items : list or None, default=None
        Names of the items, in the order of the region's decision variables.  None means all that occur, sorted.

    Returns
    -------
    stacked : StackedItems
        Named tuple ``(X, C, samples, items, rows)``; its method ``unstack`` is the way back.

    Examples
    --------
    >>> import pandas as pd
    >>> from skspo import Simplex, SPOPlusRegressor, stack_items
    >>> df = pd.DataFrame(
    ...     {
    ...         "day": [1, 1, 2, 2, 3, 3],
    ...         "route": ["A", "B", "A", "B", "B", "A"],
    ...         "km": [10, 8, 10, 8, 8, 10],
    ...         "rain": [0, 1, 0, 3, 2, 2],
    ...         "minutes": [10.0, 9.0, 10.0, 12.0, 11.0, 13.0],
    ...     }
    ... )
    >>> stacked = stack_items(df, sample="day", item="route", features=["km", "rain"], cost="minutes")
    >>> stacked.X
    array([[10.,  0.,  8.,  1.],
           [10.,  0.,  8.,  3.],
           [10.,  2.,  8.,  2.]])
    >>> model = SPOPlusRegressor(Simplex(), shared=True).fit(stacked.X, stacked.C)
    >>> df["chosen"] = stacked.unstack(model.decide(stacked.X))
    >>> df[["day", "route", "chosen"]].head(2)
       day route  chosen
    0    1     A     0.0
    1    1     B     1.0
    """
    if not hasattr(df, "columns") or not hasattr(df, "loc"):
        raise TypeError(f"df must be a pandas DataFrame with one row per sample and item, got {type(df).__name__}.")
    if isinstance(features, str):
        raise TypeError(f"features must be a list of column names, got the string {features!r}. Use [{features!r}].")
    features = list(features)
    if not features:
        raise ValueError("features is empty: name at least one column.")
    missing = [name for name in (sample, item, *features, cost) if name is not None and name not in df.columns]
    if missing:
        raise ValueError(f"df has no column {missing[0]!r}; it has {list(df.columns)}.")
    if not len(df):
        raise ValueError("df has no rows.")
    for name in (sample, item):
        if df[name].isna().any():
            raise ValueError(f"Column {name!r} has missing values: every row must say its sample and its item.")
    row_sample, samples = _number(df[sample])
    if items is not None and len(set(items := list(items))) != len(items):
        raise ValueError(f"items must be a list of different names, got {items!r}.")
    row_item, names = _number(df[item], _item_order(df[item]) if items is None else items)
    if (row_item < 0).any():
        raise ValueError(
            f"Column {item!r} has the item {df[item].iloc[int(np.argmax(row_item < 0))]!r}, which is not among items."
        )

    d = names.size
    cell = row_sample * d + row_item
    count = np.bincount(cell, minlength=samples.size * d)
    for wrong, what in ((count > 1, "occurs {} times"), (count == 0, "is missing")):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"There must be exactly one row for every sample and item, but item {names[first % d]!r} of sample "
                f"{samples[first // d]!r} {what.format(count[first])} ({int(wrong.sum())} such pairs in all)."
            )
    rows = np.empty(cell.size, dtype=np.intp)
    rows[cell] = np.arange(cell.size)
    X = _numbers(df, features)[rows].reshape(samples.size, -1)
    C = None if cost is None else _numbers(df, [cost])[rows].reshape(samples.size, d)
    return StackedItems(X, C, samples, names, rows.reshape(samples.size, d))


def _item_order(column: Any) -> Any:
    import pandas as pd

    try:
        return pd.Index(column.unique()).sort_values()
    except TypeError:
        raise ValueError(
            f"The items of column {column.name!r} cannot be sorted. Say their order with items=[...]."
        ) from None


def _number(column: Any, names: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Places of the values among the names, -1 if they are not there; by default in the order of first occurrence."""
    import pandas as pd

    if names is None:
        names = pd.unique(column)
    return pd.Index(names).get_indexer(column), np.asarray(names)


def _numbers(df: pd.DataFrame, names: list[str]) -> np.ndarray:
    try:
        return df[names].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        wrong = [name for name in names if df[name].dtype.kind not in "biuf"]
        raise ValueError(
            f"Columns must be numbers, but {wrong or names} are not. Encode categories first, for example with "
            "pandas.get_dummies."
        ) from None
