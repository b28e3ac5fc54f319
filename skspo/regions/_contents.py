"""Content of parameters that can be changed in place: arrays, lists, dicts, objects of SciPy and data frames.

A region keeps what it has prepared as long as its parameters are the same objects with the same content.  The
comparison reads every parameter once, which is little beside a decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint


class Content(NamedTuple):
    """An object that can be changed in place, and what it contained."""

    value: Any
    saved: tuple[Any, ...]
    elements: list[Any] | None  # kept, so that no new object can have the identity of an old one

    def changed(self) -> bool:
        """Whether it contains something else now."""
        return _read(self.value, _elements(self.value)) != self.saved


def contents_of(values: Iterable[Any]) -> list[Content]:
    """Everything in some values, also in nested ones, that can be changed in place and whose content is known.

    That of functions and other objects is not.  Regions check their own parameters.
    """
    found: dict[int, Content] = {}
    rest = list(values)
    while rest:
        value = rest.pop()
        if isinstance(value, tuple):
            rest.extend(value)
        elif id(value) not in found:
            elements = _elements(value)
            saved = _read(value, elements)
            if saved is not None:
                found[id(value)] = Content(value, saved, elements)
                rest.extend(elements or ())
    return list(found.values())


def _elements(value: Any) -> list[Any] | None:
    """Elements of an object that holds others; None for all other objects."""
    if isinstance(value, list):
        return value.copy()
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return value.ravel().tolist()
    if sp.issparse(value) or isinstance(value, Bounds | LinearConstraint):
        return list(vars(value).values())
    return None


def _read(value: Any, elements: list[Any] | None) -> tuple[Any, ...] | None:
    """Content of an object; None if it has none that can be changed in place."""
    if elements is not None:
        return tuple(map(id, elements))
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if hasattr(value, "__array__") and not isinstance(value, np.generic | type):  # frames and series
        array = np.asarray(value)
        return array.shape, array.tolist() if array.dtype.hasobject else array.tobytes()
    return None
