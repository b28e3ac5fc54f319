"""Names of decision variables."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from .._utils.frames import Known, check_columns, check_values, column_labels, index_of
from .._utils.shown import shown
from ._tolerances import SOLVER

if TYPE_CHECKING:
    from .base import Region

#: one name for each decision variable; None if they have none
Names: TypeAlias = "Sequence[str] | np.ndarray | None"


def check_names(names: ArrayLike | None, d: int, what: str) -> np.ndarray | None:
    """Return ``d`` distinct strings in an array of objects, or None; the error calls them ``what``."""
    if names is None:
        return None
    listed: list[Any] = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    wrong = [name for name in listed if not isinstance(name, str)]
    if isinstance(names, str) or wrong:
        got = repr(names) if isinstance(names, str) else f"{wrong[0]!r} of type {type(wrong[0]).__name__}"
        raise TypeError(f"{what} must be a list of strings, one for each decision variable, got {got}.")
    if len(listed) != d:
        raise ValueError(f"{what} must have one name for each of the {d} decision variables, got {len(listed)}.")
    if len(set(listed)) < d:
        twice = next(name for name in listed if listed.count(name) > 1)
        raise ValueError(f"{what} must be distinct, but {twice!r} is there {listed.count(twice)} times.")
    return np.array([str(name) for name in listed], dtype=object)


def known_names(region: Region, *frames: object) -> Known | None:
    """Names of a region's variables for comparison with columns of data frames; None if there are none."""
    if all(column_labels(frame) is None and index_of(frame) is None for frame in frames):
        return None  # names are not computed if there is nothing to compare
    d = region.n_dim or next((len(labels) for labels in map(column_labels, frames) if labels is not None), None)
    names = None if d is None else region.names(d)
    expression = f"region.names({d})" if region.variable_names is None else "list(region.variable_names)"
    return None if names is None else Known(list(names), f"the variables of {region.label}", expression)


def check_variables(region: Region, **frames: object) -> None:
    """Raise an error if columns of data frames do not agree with each other, or with the region's variables."""
    check_columns(frames, None, known_names(region, *frames.values()))


def read_costs(region: Region, C: ArrayLike) -> tuple[np.ndarray, bool]:
    """Validated rows of costs, and whether a single vector was given."""
    check_values("C", C)
    check_variables(region, C=C)
    C_arr = np.asarray(C)
    one_row = C_arr.ndim == 1
    rows = C_arr[None, :] if one_row else C_arr
    return check_array(rows, dtype=np.float64, ensure_min_samples=0, input_name="C"), one_row


def say_variable(names: Names, j: int) -> str:
    """Number of a decision variable, and its name if it has one, for error messages."""
    return f"decision {j}" if names is None else f"decision {j} ({str(names[j])!r})"


def number_names(names: Sequence[str]) -> list[str]:
    """Make names distinct: the second of equal ones gets the suffix " (2)"."""
    taken, count, found = set(names), dict.fromkeys(names, 0), []
    for name in names:
        count[name] += 1
        own = name
        while count[name] > 1 and (own := f"{name} ({count[name]})") in taken:
            count[name] += 1
        taken.add(own)
        found.append(own)
    return found


def read_labels(what: str, labels: Any) -> list[Hashable]:
    """Return distinct labels of any kind as a list."""
    if isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
        raise TypeError(f"{what} must be a list of labels, got {shown(labels)}.")
    listed = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    try:
        count = dict.fromkeys(listed, 0)
    except TypeError:
        raise TypeError(f"{what} must be hashable, such as strings or numbers, got {shown(labels)}.") from None
    if len(count) < len(listed):
        twice = next(label for label in listed if listed.count(label) > 1)
        raise ValueError(f"{what} must be distinct, but {twice!r} is there {listed.count(twice)} times.")
    return listed


def default_names(d: int) -> np.ndarray:
    """Names of decision variables that have none: w0, w1, ..."""
    return np.array([f"w{j}" for j in range(d)], dtype=object)


def names_of_rows(matrix: sp.csr_array, names: Names, known_cost: bool) -> list[str] | None:
    """Names of M z: a row with a single entry has the name of its variable, other rows are numbered."""
    if names is None:
        return None
    nonzero = sp.csr_array(matrix != 0)
    single = np.diff(nonzero.indptr) == 1
    if not single.any():
        return None
    rows = [str(names[nonzero.indices[nonzero.indptr[i]]]) if alone else f"row {i}" for i, alone in enumerate(single)]
    return number_names([*rows, "known cost"] if known_cost else rows)


def with_ones(frame: Any) -> Any:
    """Append the column "known cost" of ones to a data frame of pandas or polars."""
    name = number_names([*map(str, frame.columns), "known cost"])[-1]
    if hasattr(frame, "assign"):
        return frame.assign(**{name: 1.0})
    import polars as pl

    return frame.with_columns(pl.lit(1.0).alias(name))


def names_side_by_side(parts: Sequence[tuple[int, Names]]) -> list[str] | None:
    """Names of the variables of several regions; they get the number of the region if they are not distinct."""
    if all(names is None for _, names in parts):
        return None
    listed = [[str(j) for j in range(size)] if names is None else list(names) for size, names in parts]
    flat = [name for own in listed for name in own]
    if len(set(flat)) == len(flat) and all(names is not None for _, names in parts):
        return flat
    return [f"{i}: {name}" for i, own in enumerate(listed) for name in own]


# -- decisions in words ------------------------------------------------------------------------------------------------


def list_amounts(W: np.ndarray, names: np.ndarray) -> list[dict[str, float]]:
    """Entries of each decision that are not zero, by name."""
    some = np.abs(W) > SOLVER * np.abs(W).max(axis=1, keepdims=True, initial=0.0)
    return [{str(names[j]): float(w[j]) for j in np.flatnonzero(own)} for w, own in zip(W, some, strict=True)]


def ones_of(W: np.ndarray) -> list[np.ndarray] | None:
    """Entries of each decision that are one; None if some are neither zero nor one."""
    if not np.minimum(np.abs(W), np.abs(W - 1.0)).max(initial=0.0) <= SOLVER:
        return None
    return [np.flatnonzero(w > 0.5) for w in W]


def list_selected(W: np.ndarray, names: np.ndarray) -> list[Any]:
    """Names of the entries of each decision that are one; amounts if some are neither zero nor one."""
    ones = ones_of(W)
    return list_amounts(W, names) if ones is None else [[str(names[j]) for j in own] for own in ones]
