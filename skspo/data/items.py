"""Long tables, one row per sample and item, and the arrays of models with ``shared=True``.

Tables are data frames of pandas or polars; a package is imported only if the table belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    Column: TypeAlias = pd.Series | pl.Series
    Names: TypeAlias = Sequence[object] | pd.Index | pl.Series


class StackedItems(NamedTuple):
    """What :func:`stack_items` returns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d * q)
        Features: for each item, in the order of ``items``, its q features.
    C : ndarray of shape (n_samples, d), or None
        Costs; None if no column of costs was named.
    samples : ndarray of shape (n_samples,)
        Names of the samples, sorted.
    items : ndarray of shape (d,)
        Names of the items.
    rows : ndarray of shape (n_samples, d)
        Row of each sample and item in the table.
    """

    X: np.ndarray
    C: np.ndarray | None
    samples: np.ndarray
    items: np.ndarray
    rows: np.ndarray

    def unstack(self, values: ArrayLike) -> np.ndarray:
        """Turn predictions or decisions into a column of the table.

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
    df: pd.DataFrame | pl.DataFrame,
    *,
    sample: str,
    item: str,
    features: Sequence[str],
    cost: str | None = None,
    items: Sequence[object] | None = None,
) -> StackedItems:
    """Turn a table with one row per sample and item into the arrays of a model with ``shared=True``.

    Parameters
    ----------
    df : DataFrame of pandas or polars
        One row for every item of every sample, in any order.
    sample : str
        Column with the name of the sample, for example the day.  Samples are sorted by it: dates are then in order of
        time, as ``TimeSeriesSplit`` needs them.  Text is sorted alphabetically: convert dates that are text first.
    item : str
        Column with the name of the item, for example the hour.
    features : list of str
        Columns with the features of an item.
    cost : str or None, default=None
        Column with the cost of an item; None for new data, whose costs are unknown.
    items : list or None, default=None
        Names of the items, in the order of the region's decision variables.  None means all that occur, sorted.

    Returns
    -------
    stacked : StackedItems
        Named tuple ``(X, C, samples, items, rows)``: row i of ``X`` and ``C`` belongs to ``samples[i]``.  Its method
        ``unstack`` turns results into a column of the table.

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
    if not (_is_pandas(df) or hasattr(df, "get_column")):
        hint = " Call its method collect() first." if hasattr(df, "collect") else ""
        raise TypeError(
            "df must be a DataFrame of pandas or polars with one row per sample and item, got "
            f"{type(df).__name__}.{hint}"
        )
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
        if _has_missing(df[name]):
            raise ValueError(f"Column {name!r} has missing values: every row must say its sample and its item.")
    row_sample, samples = _number(df[sample], _sorted(df[sample], "Give the samples numbers or dates."))
    if items is not None and len(set(items := list(items))) != len(items):
        raise ValueError(f"items must be a list of different names, got [{', '.join(map(_plain, items))}].")
    order = _sorted(df[item], "Say their order with items=[...].") if items is None else items
    row_item, names = _number(df[item], order)
    if (row_item < 0).any():
        unknown = df[item].to_list()[int(np.argmax(row_item < 0))]
        raise ValueError(f"Column {item!r} has the item {_plain(unknown)}, which is not among items.")

    d = names.size
    cell = row_sample * d + row_item
    count = np.bincount(cell, minlength=samples.size * d)
    for wrong, what in ((count > 1, "occurs {} times"), (count == 0, "is missing")):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            where = f"item {_plain(names[first % d])} of sample {_plain(samples[first // d])}"
            raise ValueError(
                f"There must be exactly one row for every sample and item, but {where} {what.format(count[first])} "
                f"({int(wrong.sum())} such pairs in all)."
            )
    rows = np.empty(cell.size, dtype=np.intp)
    rows[cell] = np.arange(cell.size)
    X = _numbers(df, features)[rows].reshape(samples.size, -1)
    C = None if cost is None else _numbers(df, [cost])[rows].reshape(samples.size, d)
    return StackedItems(X, C, samples, names, rows.reshape(samples.size, d))


def _is_pandas(table: object) -> TypeGuard[pd.DataFrame | pd.Series]:
    """Whether a data frame or column is from pandas; otherwise it is from polars."""
    return hasattr(table, "iloc")


def _plain(value: object) -> str:
    """Format a value for a message: 'a', 3 or 2024-01-01 00:00:00, not np.str_('a')."""
    value = _unboxed(value)
    return str(value) if hasattr(value, "isoformat") else repr(value)


def _unboxed(value: object) -> object:
    """Convert a NumPy scalar to a Python object."""
    if not isinstance(value, np.generic):
        return value
    plain = value.item()
    if isinstance(value, np.datetime64 | np.timedelta64) and isinstance(plain, int):  # Python has no nanoseconds
        plain = value.astype(f"{value.dtype.kind}8[us]").item()
    return plain


def _has_missing(column: Column) -> bool:
    if _is_pandas(column):
        return bool(column.isna().any())
    return any(value is None or value != value for value in column.unique().to_list())


def _sorted(column: Column, remedy: str) -> pd.Index | pl.Series:
    """Unique values of a column, sorted by its package; categories in their own order."""
    try:
        if _is_pandas(column):
            import pandas as pd

            return pd.Index(column.unique()).sort_values()
        return column.unique().sort()
    except Exception as error:  # each package has its own classes
        raise ValueError(f"The values of column {column.name!r} cannot be sorted. {remedy}") from error


def _number(column: Column, names: Names) -> tuple[np.ndarray, np.ndarray]:
    """Index of each value among the names, -1 if it is not there, and the names as an array."""
    if _is_pandas(column):
        import pandas as pd

        return pd.Index(names).get_indexer(column), np.asarray(names)
    array = names.to_numpy() if hasattr(names, "to_numpy") else np.asarray(names)
    keys = names.to_list() if hasattr(names, "to_list") else map(_unboxed, names)
    place = {name: k for k, name in enumerate(keys)}
    return np.array([place.get(value, -1) for value in column.to_list()], dtype=np.intp), array


def _numbers(df: pd.DataFrame | pl.DataFrame, names: list[str]) -> np.ndarray:
    columns, wrong = [], []
    for name in names:
        try:
            values = df[name].to_numpy(dtype=np.float64) if _is_pandas(df) else df[name].to_numpy()
            columns.append(np.asarray(values, dtype=np.float64))
        except (TypeError, ValueError):
            wrong.append(name)
    if wrong:
        raise ValueError(
            f"Columns must be numbers, but {wrong} are not. Encode categories first, for example with "
            "OneHotEncoder of scikit-learn."
        )
    return np.column_stack(columns)
