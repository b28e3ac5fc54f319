"""Rows of the user's data: parameters of a region that vary by sample, and which rows an error is about.

Training sorts, merges, splits and samples rows, and solvers ask for the decisions of some of them.  A region knows
which rows of the user's data its rows are (``Region.take``).  An oracle raises ``row_error`` with the row of the costs
that it got; ``Region.solve_min`` replaces it by the user's row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._utils.errors import InfeasibleRegionError
from .._utils.frames import COLUMNS, INDEX, check_index, check_values, column_labels, index_of
from .._utils.types import RegionParams
from ._names import check_variables

if TYPE_CHECKING:
    from .base import Region

#: all rows in order, however many there are
ALL_ROWS = range(sys.maxsize)


class RowNames(NamedTuple):
    """Rows of the user's data that a region's rows are."""

    numbers: range | np.ndarray = ALL_ROWS
    labels: np.ndarray | None = None  # a second name of each row, for example the index of a DataFrame
    label: str = "{}"  # how to print it

    def take(self, rows: slice | np.ndarray) -> RowNames:
        """Names of some of the rows."""
        numbers: range | np.ndarray
        if isinstance(self.numbers, np.ndarray):
            numbers = self.numbers[rows]
        elif isinstance(rows, slice):
            numbers = self.numbers[rows]
        else:
            rows = np.asarray(rows)
            rows = np.flatnonzero(rows) if rows.dtype == bool else rows
            numbers = self.numbers.start + self.numbers.step * rows
        return self._replace(numbers=numbers, labels=None if self.labels is None else self.labels[rows])

    def of(self, row: int) -> str:
        """Name of a row, for error messages."""
        if row >= len(self.numbers):  # not a row of this region: an IndexError would hide the error to be raised
            return f"row {row}"
        name = f"row {int(self.numbers[row])}"
        if self.labels is None or str(self.labels[row]) == str(self.numbers[row]):
            return name
        return f"{name} ({self.label.format(self.labels[row])})"


#: for ``row_error``
EMPTY = "The region of {row} is empty: no decision satisfies its constraints (region_params)."


def row_error(kind: type[Exception], row: int, text: str) -> Exception:
    """Error about one row of the costs; ``{row}`` in the text is replaced by its name."""
    error = kind(text.replace("{row}", f"row {row}"))
    vars(error).update(row=row, row_text=text)
    return error


def refuse_rows(wrong: np.ndarray | np.bool_, kind: type[Exception], text: Callable[[int], str]) -> None:
    """Raise an error about the first row that is wrong, if there is one."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise row_error(kind, row, text(row))


def name_row(error: Exception, name: Callable[[int], str]) -> None:
    """Put the name of its row into a ``row_error`` that has none yet; leave all other errors as they are."""
    text = error.__dict__.pop("row_text", None)
    if text is not None:
        error.args = (text.replace("{row}", name(error.__dict__.pop("row"))),)


@contextmanager
def rows_among(rows: np.ndarray) -> Iterator[None]:
    """Turn the row of a ``row_error`` about some of the rows into the number that it has among all of them."""
    try:
        yield
    except Exception as error:
        if "row_text" in vars(error):
            vars(error).update(row=int(rows[error.__dict__["row"]]))
        raise


@contextmanager
def rows_named(name: Callable[[int], str]) -> Iterator[None]:
    """Name the row of a ``row_error``; the innermost of several contexts does it."""
    try:
        yield
    except Exception as error:
        name_row(error, name)
        raise


# -- parameters that vary by sample ------------------------------------------------------------------------------------

#: field of ``row_params`` with the number of each row, so that errors can name it after cross-validation split the rows
ROW = "_row"

#: fields of ``row_params`` that are no parameters
EXTRA = (ROW, INDEX, COLUMNS)


class RowData(NamedTuple):
    """What the oracle of a region needs of each sample, and for how many decision variables."""

    values: dict[str, np.ndarray]  # one row per sample
    n_dim: int
    cache: dict[str, Any]  # what was derived: tuples of arrays with one row per sample, and what holds for every part

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return len(next(iter(self.values.values())))

    def take(self, rows: slice | np.ndarray) -> RowData:
        """Data of some of the samples."""
        values = {name: array[rows] for name, array in self.values.items()}
        kept = {name: found for name, found in self.cache.items() if found is not False}  # may hold for a part
        cache = {k: tuple(array[rows] for array in x) if isinstance(x, tuple) else x for k, x in kept.items()}
        return RowData(values, self.n_dim, cache)

    def table(self) -> np.ndarray:
        """All values of each sample; equal samples have equal rows."""
        columns = [array.reshape(self.n_rows, -1) for array in self.values.values()]
        table = np.concatenate(columns, axis=1, dtype=np.float64)
        return np.nan_to_num(table, copy=False, posinf=1e300, neginf=-1e300)  # rows are subtracted from each other


def row_params(**params: ArrayLike) -> np.ndarray:
    """Parameters that vary by sample, in a form that cross-validation can split.

    Every method takes ``region_params`` as a dict of arrays, one row per sample, or of single values, such as
    ``{"capacity": 17}``, which serve all rows.  scikit-learn's cross-validation splits arrays but not
    dicts.  This function turns the same parameters into a structured array with one entry per sample.

    Parameters
    ----------
    **params : array-like of shape (n_samples,) or (n_samples, m)
        The values of each parameter of the region.

    Returns
    -------
    rows : structured ndarray of shape (n_samples,)
        One field per parameter, and ``"_row"``, the number of the row, which errors about a sample of a fold name.  The
        index and the columns of data frames are in ``"_index"`` and ``"_columns"``, and are checked by every method.

    Examples
    --------
    >>> import numpy as np
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skspo import Knapsack, SPOPlusRegressor, row_params
    >>> rng = np.random.default_rng(0)
    >>> X, C = rng.normal(size=(40, 2)), rng.normal(size=(40, 3))
    >>> rows = row_params(capacity=rng.integers(3, 12, size=40))
    >>> model = SPOPlusRegressor(Knapsack([3, 4, 5], 8)).fit(X, C, region_params=rows)
    >>> bool((model.decide(X, region_params=rows) @ [3, 4, 5] <= rows["capacity"]).all())
    True
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model.set_fit_request(region_params=True).set_score_request(region_params=True)
    ...     search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3).fit(X, C, region_params=rows)
    SPOPlusRegressor(region=Knapsack(capacity=8, sense='max', weights=[3, 4, 5]))
    """
    arrays = {name: _as_column(value) for name, value in params.items()}
    if not arrays or any(array.ndim == 0 for array in arrays.values()):
        raise ValueError("row_params needs arrays with one row per sample, for example capacity=[10, 12, 9].")
    lengths = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"All parameters must have one row per sample, got {lengths} rows.")
    for name in EXTRA:
        if name in arrays:
            raise ValueError(f"row_params: {name!r} is not a parameter, it is a field that row_params adds.")
    check_index(**params)
    n = next(iter(lengths.values()))
    arrays[ROW] = np.arange(n, dtype=np.int64)
    index = next((index for index in map(index_of, params.values()) if index is not None), None)
    if index is not None:
        arrays[INDEX] = index.astype(object).to_numpy()
    columns = {name: labels for name, value in params.items() if (labels := column_labels(value)) is not None}
    if columns:
        arrays[COLUMNS] = np.full(n, columns, dtype=object)
    rows = np.empty(n, dtype=np.dtype([(name, array.dtype, array.shape[1:]) for name, array in arrays.items()]))
    for name, array in arrays.items():
        rows[name] = array
    return rows


def row_frames(region_params: RegionParams | None) -> tuple[dict[str, object], dict[str, object]]:
    """What has an index in ``region_params``, by its name in errors, and what has columns, by parameter."""
    if isinstance(region_params, Mapping):
        return {f"region_params[{key!r}]": value for key, value in region_params.items()}, dict(region_params)
    if not isinstance(region_params, np.ndarray):
        return {"region_params": region_params}, {}
    columns: Mapping[str, object] = {}
    if COLUMNS in (region_params.dtype.names or ()) and len(region_params):
        columns = region_params[COLUMNS][0]
    return {"region_params": region_params}, {key: SimpleNamespace(columns=some) for key, some in columns.items()}


def _as_column(value: ArrayLike) -> np.ndarray:
    """Numbers as floats; labels, such as the nodes of a graph, as they are."""
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind in "biuf" else array


def read_names(region_params: RegionParams) -> RowNames:
    """Names of the rows of ``region_params`` in errors: their position, and the index of a DataFrame or ``_row``."""
    if isinstance(region_params, np.ndarray):
        if (index := index_of(region_params)) is not None:
            return RowNames(labels=np.asarray(index), label="index {}")
        if ROW in (region_params.dtype.names or ()):
            return RowNames(labels=region_params[ROW], label="row {} of row_params")
    elif hasattr(region_params, "columns"):
        if ROW in region_params.columns:
            return RowNames(labels=np.asarray(region_params[ROW]), label="row {} of row_params")
        if hasattr(region_params, "index"):
            return RowNames(labels=np.asarray(region_params.index), label="index {}")
    return RowNames()


def read_rows(region: Region, region_params: RegionParams, n: int, d: int) -> dict[str, np.ndarray]:
    """Validate ``region_params``: a float array with ``n`` rows for each of the region's parameters.

    In a dict, a value may also be that of a single sample, which serves all rows.
    """
    name, shapes = region._title, region.row_shapes(d)
    source: Any = region_params
    if isinstance(source, np.ndarray) and source.dtype.names:
        keys = source.dtype.names
    elif isinstance(source, Mapping) or hasattr(source, "columns"):
        keys = getattr(source, "columns", source)
    else:
        raise TypeError(
            "region_params must be a dict of arrays with one row per sample, a DataFrame, or what row_params returns; "
            f"got {type(region_params).__name__}."
        )
    given = {str(key): source[key] for key in keys if str(key) not in EXTRA}
    by_row, by_column = row_frames(region_params)
    check_index(**by_row)
    by_variable = {f"region_params[{k!r}]": by_column[k] for k in by_column.keys() & region._rows_by_variable}
    for key, frame in by_variable.items():
        check_values(key, frame)
    check_variables(region._region_of_rows, **by_variable)
    if not shapes:
        raise ValueError(
            f"region_params is given, but {name} has no parameters that may vary by sample. Simplex, TopK, Box, "
            "Knapsack and Assignment (available), TopK (k), Box, Polyhedron and MixedInteger (lower, upper), Knapsack "
            "(capacity), Polyhedron and MixedInteger (b_ub, b_eq), ShortestPath (source, target, available), "
            "CvxpyRegion (its cvxpy.Parameters) have."
        )
    if not given:
        raise ValueError(f"region_params is empty; {name} can vary in {sorted(shapes)}.")
    for key in given:
        if key not in shapes:
            raise ValueError(f"region_params: {name} cannot vary by sample in {key!r}, only in {sorted(shapes)}.")
    single = isinstance(region_params, Mapping)
    return {key: _read_param(region, key, value, n, shapes[key], single) for key, value in given.items()}


def _read_param(region: Region, key: str, value: ArrayLike, n: int, shape: tuple[int, ...], single: bool) -> np.ndarray:
    """One row for each of ``n`` samples; with ``single``, the value may also be that of one sample."""
    value = region._read_row_param(key, value)
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"region_params: {key} must be an array of numbers with one row per sample.") from None
    if single:
        array = _read_single(array, key, n, shape)
    if array.ndim == 0 or array.shape[0] != n:
        of_shape = f" of shape {shape}" if shape else ""
        raise ValueError(
            f"region_params: {key} must have one row for each of the {n} samples, or be a single value{of_shape} for "
            f"all of them, got shape {array.shape}. In cross-validation pass row_params(...), which is split with "
            "the samples; a dict is not."
        )
    fine = ~np.isnan(array) if key in region._rows_may_be_infinite else np.isfinite(array)
    if not fine.all():
        row, *column = np.argwhere(~fine)[0]
        where = f"{{row}}, column {column[0]}" if array[0].size > 1 else "{row}"
        raise row_error(ValueError, int(row), f"region_params: {key} must be finite, got {array[~fine][0]} in {where}.")
    if key == "available":
        return _read_mask(array, (n, *shape))
    if array.shape[1:] not in ((), shape):
        raise ValueError(f"region_params: {key} must have shape ({n},) or {(n, *shape)}, got {array.shape}.")
    column = array.reshape(n, *(1 for _ in shape)) if array.ndim == 1 else array
    return np.ascontiguousarray(np.broadcast_to(column, (n, *shape)))


def _read_single(array: np.ndarray, key: str, n: int, shape: tuple[int, ...]) -> np.ndarray:
    """Repeat a single value, of shape () or ``shape`` or (1, ``shape``), for all samples; other arrays as they are."""
    if array.shape not in ((), shape, (1, *(shape or (0,)))):
        return array
    if array.shape == (n,) and n > 1 and key != "available":
        raise ValueError(
            f"region_params: {key} of shape {shape} could be one number for each of the {n} samples, or one value for "
            f"all of them. Pass np.reshape({key}, (1, -1)) for one value, or one row per sample."
        )
    return np.broadcast_to(array, (n, *(array.shape[-len(shape) :] if shape and array.ndim else shape)))


def repeat_single(region_params: Mapping[str, ArrayLike], n: int, d: int) -> dict[str, ArrayLike]:
    """Return parameters with one row for each of ``n`` samples of ``d`` costs; single values are repeated.

    Without a region, single values are known by their shape: (), (d,) or (1, ...).
    """
    rows: dict[str, ArrayLike] = {}
    for key, value in region_params.items():
        array = np.asarray(value)
        single = array[0] if array.shape[:1] == (1,) else array
        is_single = array.shape in ((), (d,)) or array.shape[:1] == (1,)
        repeats = is_single and array.shape[:1] != (n,)
        rows[key] = np.broadcast_to(single, (n, *single.shape)) if repeats else value
    return rows


def _read_mask(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Which options are available: True and False, or 1 and 0, for every option of every sample."""
    if array.shape != shape:
        raise ValueError(
            f"region_params: available must have shape {shape}, one row for each sample and one column for each "
            f"option, got {array.shape}."
        )
    wrong = ~np.isin(array, (0.0, 1.0))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        text = f"region_params: available must be True or False, got {array[row, column]} in {{row}}, column {column}."
        raise row_error(ValueError, int(row), text)
    return array == 1.0


# -- options that are not available ------------------------------------------------------------------------------------


def forbid(C: np.ndarray, available: np.ndarray | None) -> np.ndarray:
    """Costs with infinity for what is not available; None means that everything is."""
    return C if available is None else np.where(available, C, np.inf)


def check_available(label: str, available: np.ndarray, least: np.ndarray | int, what: str) -> None:
    """Raise an error that names a row with fewer available options than it needs."""
    count = available.sum(axis=1)
    needs = np.broadcast_to(least, count.shape)

    def text(row: int) -> str:
        have = f"{int(count[row])} of {available.shape[1]} options are available (region_params)"
        return f"{label}: the region of {{row}} is empty, {have} and {what} {int(needs[row])}."

    refuse_rows(count < needs, InfeasibleRegionError, text)


def rows_like(rows: dict[str, np.ndarray], name: str, default: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Values of a parameter in each row: the given ones, or the same for all."""
    n = next(iter(rows.values())).shape[0]
    return rows[name] if name in rows else np.broadcast_to(np.asarray(default), (n, *shape))
