"""Costs of labels: a matrix by true and predicted class, or one row per sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .frames import LISTED, check_values


def read_cost_matrix(cost_matrix: Any, labels: np.ndarray) -> np.ndarray:
    """Costs ``[true, predicted]`` of labels in their order; None means 1 for every wrong label.

    The index and the columns of a data frame are labels, in any order; others than ``labels`` are ignored.
    """
    k = len(labels)
    if cost_matrix is None:
        return 1.0 - np.eye(k)
    if hasattr(cost_matrix, "columns") and hasattr(cost_matrix, "index"):
        rows = _positions("cost_matrix", "row", list(cost_matrix.index), labels)
        columns = _positions("cost_matrix", "column", list(cost_matrix.columns), labels)
        return _numbers("cost_matrix", cost_matrix)[np.ix_(rows, columns)]
    costs = _numbers("cost_matrix", cost_matrix)
    if costs.ndim != 2 or costs.shape[0] != costs.shape[1]:
        raise ValueError(
            "cost_matrix must be square, with one row per true class and one column per predicted class, got shape "
            f"{costs.shape}."
        )
    if len(costs) != k:
        raise ValueError(
            f"cost_matrix has shape {costs.shape}, but there are {k} classes: {_listed(labels)}. If a part of the data "
            "lacks a class, pass the matrix as a data frame whose index and columns are the classes."
        )
    return costs


def read_costs(costs: Any, n: int, labels: np.ndarray) -> np.ndarray:
    """Costs of each label, in their order, for each of ``n`` samples; the columns of a data frame are labels."""
    values = _numbers("costs", costs)
    if values.ndim != 2 or len(values) != n:
        raise ValueError(
            f"costs must have one row for each of the {n} samples and one column per class, got shape {values.shape}."
        )
    if hasattr(costs, "columns"):
        return values[:, _positions("costs", "column", list(costs.columns), labels)]
    if values.shape[1] != len(labels):
        raise ValueError(
            f"costs has {values.shape[1]} columns, but there are {len(labels)} classes: {_listed(labels)}. The columns "
            "must be in this order; those of a data frame may be in any order."
        )
    return values


def _numbers(name: str, values: Any) -> np.ndarray:
    """Array of finite numbers."""
    check_values(name, values)
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        shown = repr(values) if np.ndim(values) == 0 else f"an array of shape {np.shape(values)}"
        raise ValueError(f"{name} must be an array of numbers, got {shown}.") from None
    if not np.isfinite(numbers).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        raise ValueError(f"{name} must be finite, got {numbers[place]} at {place}.")
    return numbers


def _positions(name: str, kind: str, given: list[object], labels: np.ndarray) -> list[int]:
    """Where the labels are in the index or the columns of a data frame."""
    if len(set(given)) < len(given):
        raise ValueError(f"{name}: each class must have one {kind}, but the frame has these: {_listed(given)}.")
    missing = [label for label in labels.tolist() if label not in given]
    if missing:
        raise ValueError(
            f"{name} has no {kind} for the classes {_listed(missing)}; the {kind}s of the frame are {_listed(given)}."
        )
    return [given.index(label) for label in labels.tolist()]


def _listed(labels: Sequence[object] | np.ndarray) -> str:
    some = list(labels.tolist() if isinstance(labels, np.ndarray) else labels)
    return ", ".join(map(repr, some[:LISTED])) + (", ..." if len(some) > LISTED else "")
