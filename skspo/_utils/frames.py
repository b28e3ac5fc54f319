"""Names and index of data frames: those of several arguments must agree.

Values are read by position.  Two frames whose columns or rows are the same in another order would be combined wrongly,
so that this is an error.  Rules, for every argument of every method:

    columns    names must be those that are known, in the same order, as for features in scikit-learn; labels that are
               not strings only must not be the same in another order
    index      the same labels in another order are an error; other labels are ignored, as in scikit-learn
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

if TYPE_CHECKING:
    import pandas as pd

#: so many names are listed in an error, as in scikit-learn
LISTED = 5

#: fields of ``row_params``: the index of the frames that it was made of, and the columns of each by parameter
INDEX, COLUMNS = "_index", "_columns"


class Known(NamedTuple):
    """Labels of columns that are known, in order."""

    labels: list[Any]
    source: str  # where they are from, for errors
    expression: str  # Python expression for them

    @property
    def named(self) -> bool:
        """Whether all labels are strings."""
        return all_strings(self.labels)


def all_strings(labels: Iterable[object]) -> bool:
    """Whether all labels are strings."""
    return all(isinstance(label, str) for label in labels)


def column_labels(data: object) -> list[Any] | None:
    """Labels of the columns of a data frame; None if there are none."""
    columns = getattr(data, "columns", None)
    return None if columns is None or callable(columns) else list(columns)


def column_names(data: object) -> np.ndarray | None:
    """Labels of the columns of a data frame; None if there are none, or if not all are strings."""
    labels = column_labels(data)
    return np.asarray(labels, dtype=object) if labels and all_strings(labels) else None


def as_rows(X: Any, *, accept_sparse: str | bool = False, estimator: object = None) -> Any:
    """Features whose rows can be selected: frames as they are, anything else as an array; values are checked later."""
    if hasattr(X, "iloc"):  # models may need the names and types of columns
        return X
    options = {"accept_sparse": accept_sparse, "estimator": estimator, "input_name": "X"}
    return check_array(X, dtype=None, ensure_all_finite=False, **options)


def take_rows(data: Any, rows: np.ndarray | slice) -> Any:
    """Some rows of an array, a sparse matrix, a data frame or a series; None of None."""
    return None if data is None else data.iloc[rows] if hasattr(data, "iloc") else data[rows]


def index_of(data: object) -> pd.Index | None:
    """Index of a frame or series of pandas, or of the frames that ``row_params`` was made of; None for others."""
    pd = sys.modules.get("pandas")  # without pandas there are no such frames
    if pd is None:
        return None
    if isinstance(data, np.ndarray):
        return pd.Index(data[INDEX]) if INDEX in (data.dtype.names or ()) else None
    index = getattr(data, "index", None)
    return index if isinstance(index, pd.Index) else None


def check_values(what: str, data: Any) -> None:
    """Raise an error that names the column if a frame or an array of objects holds text or dates.

    Missing values, such as None, are left to later checks: some of them are allowed.
    """
    if isinstance(data, list | tuple) and any(column_labels(part) is not None for part in data):
        raise ValueError(
            f"{what} is a list of data frames. Join them to one frame first, for example with pandas.concat({what})."
        )
    labels, types = column_labels(data), getattr(data, "dtypes", None)
    if types is not None and labels is not None and not is_dask(data):
        for j, (label, dtype) in enumerate(zip(labels, types, strict=True)):
            if not _is_number(dtype):
                _check_entries(f"column {label!r} of {what}", data.iloc[:, j] if hasattr(data, "iloc") else data[:, j])
    elif isinstance(data, np.ndarray) and data.ndim == 2 and not _is_number(data.dtype):
        for j, column in enumerate(data.T):
            _check_entries(f"column {j} of {what}", column)
    elif getattr(data, "ndim", 0) == 1 and not _is_number(getattr(data, "dtype", None)) and not is_dask(data):
        _check_entries(what, data)


def is_dask(*arrays: object) -> bool:
    """Whether any of the arguments is a dask collection; does not import dask."""
    return any(type(array).__module__.partition(".")[0] in ("dask", "dask_expr") for array in arrays)


def _is_number(dtype: Any) -> bool:
    """Whether values of a type of NumPy, pandas or polars are numbers or booleans."""
    if hasattr(dtype, "is_numeric"):
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biufc"


def _check_entries(where: str, column: Any) -> None:
    """Raise an error about the first entry that is text or a date."""
    for row, value in enumerate(np.asarray(column).tolist() if hasattr(column, "tolist") else list(column)):
        if isinstance(value, str | bytes) and not _reads_as_number(value):
            problem = f"could not convert string to float: {value!r} in row {row}"
        elif _is_date(value, column):
            problem = f"{np.asarray(column)[row]} in row {row} is a date or a duration"
        elif type(value).__name__ == "NAType":  # of pandas, in a column of objects
            raise ValueError(f"{where} must hold numbers: {value} in row {row}. Use NaN, or a type such as Float64.")
        else:
            continue
        raise ValueError(f"{where} must hold numbers: {problem}. Encode it as numbers first.")


def _reads_as_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_date(value: object, column: Any) -> bool:
    """Whether an entry of a column is a date, a time or a duration."""
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    return kind in ("M", "m") or isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.datetime64)


def check_columns(frames: Mapping[str, object], known: Known | None, *others: Known | None) -> Known | None:
    """Raise an error if columns of frames do not have the names that are known, in the same order.

    Only data frames are checked, and series whose index has some of the names.  If ``known`` is None the first frame
    with names says what they must be; it is returned.  ``others`` are right as well: if ``known`` is None and a frame
    shares a name with them, its names must be them.
    """
    for what, frame in frames.items():
        right = [names for names in (known, *others) if names is not None]
        labels, index = column_labels(frame), index_of(frame)
        named = labels is not None
        if labels is None and index is not None and right:  # a series: one value for each variable, or for each sample
            labels = list(index)
        if labels is None:
            continue
        if not any(labels == names.labels for names in right):
            for names in right:
                if (names is known and named) or set(labels) & set(names.labels):
                    _compare(what, labels, names)
                    break
        if named and known is None:
            known = Known(labels, f"the columns of {what}", f"{what}.columns")
    return known


def _compare(what: str, labels: list[Any], known: Known) -> None:
    """Raise an error if labels of columns are not the known ones, in the same order."""
    unseen = [label for label in labels if label not in set(known.labels)]
    missing = [label for label in known.labels if label not in set(labels)]
    if (unseen or missing or len(labels) != len(known.labels)) and not (all_strings(labels) and known.named):
        return  # other labels, for example a default RangeIndex beside names
    message = f"The columns of {what} should match {known.source}.\n"
    close = {label: get_close_matches(label, missing, n=1) for label in unseen[:LISTED]}
    for title, some in (("Unknown columns", unseen), ("Missing columns", missing)):
        hints = [f" (did you mean {close[label][0]!r}?)" if close.get(label) else "" for label in some[:LISTED]]
        lines = [f"- {label}{hint}\n" for label, hint in zip(some[:LISTED], hints, strict=True)]
        message += f"{title}:\n{''.join(lines)}" + "- ...\n" * (len(some) > LISTED) if some else ""
    if not unseen and not missing:
        message += _first_difference(labels, known.labels)
    raise ValueError(f"{message}Select them in order: {what}[{known.expression}].")


def _first_difference(labels: list[Any], known: list[Any]) -> str:
    """Line that says where lists of the same labels differ."""
    for j, (own, expected) in enumerate(zip(labels, known, strict=False)):
        if own != expected:
            return f"They are in another order: column {j} is {own!r} and should be {expected!r}.\n"
    return "A column is there more than once.\n"


def check_index(**given: object) -> None:
    """Raise an error if two frames or series of pandas have the same index labels in another order."""
    different: list[tuple[str, pd.Index]] = []
    for what, data in given.items():
        index = index_of(data)
        if index is None or any(index.equals(other) for _, other in different):
            continue
        for first, other in different:
            if _same_labels(index, other):
                row = next(i for i, (a, b) in enumerate(zip(index, other, strict=True)) if a != b)
                raise ValueError(
                    f"The index of {what} has the labels of that of {first} in another order: row {row} is "
                    f"{index[row]} in {what} and {other[row]} in {first}. Rows are combined by position. Bring them "
                    f"into the same order, {what}.loc[{first}.index], or pass arrays if they are in the same order "
                    "already."
                )
        different.append((what, index))


def _same_labels(one: pd.Index, other: pd.Index) -> bool:
    """Whether two indices have the same labels, each as often."""
    if len(one) != len(other) or not len(one) or one[0] not in other:  # most different ones end here
        return False
    both = one.append(other)  # of one type
    hashes = sys.modules["pandas"].util.hash_pandas_object(both, index=False).to_numpy().reshape(2, -1)
    return bool(np.array_equal(*np.sort(hashes, axis=1)))
