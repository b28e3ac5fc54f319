"""Parameters: what is allowed, as a function and in words, and whether they have changed.

An estimator lists the checks of its parameters in the class attribute ``_parameter_checks``; those of its base classes
hold, too.  ``check_params`` applies all of them.

What was prepared from parameters is kept as long as they are the same objects with the same content (``contents_of``).
The comparison reads every parameter once, which is little beside a decision.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint

from .shown import shown


class Check(NamedTuple):
    """A condition on the value of a parameter."""

    accepts: Callable[[object], bool]
    expected: str  # what is accepted, in words that follow "must be"

    def __call__(self, name: str, value: object, why: str = "") -> None:
        """Raise an error if the value of the parameter ``name`` is not allowed; it may say why."""
        if not self.accepts(value):
            reason = f" ({why})" if why else ""
            raise ValueError(f"{name} must be {self.expected}{reason}, got {shown(value)}.")


def check_params(estimator: object) -> None:
    """Check the parameters that an estimator has, the base class first."""
    for cls in reversed(type(estimator).__mro__):
        checks: Mapping[str, Check] = vars(cls).get("_parameter_checks", {})
        for name, check in checks.items():
            if hasattr(estimator, name):
                check(name, getattr(estimator, name))


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, also one of NumPy, but not a bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number, also one of NumPy, but not a bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def number(
    low: float | None = None, high: float | None = None, *, above: float | None = None, below: float | None = None
) -> Check:
    """Finite number of at least ``low`` and at most ``high``, or strictly ``above`` and ``below`` some limits."""

    def accepts(value: object) -> bool:
        return (
            is_number(value)
            and bool(np.isfinite(float(value)))
            and (low is None or value >= low)
            and (high is None or value <= high)
            and (above is None or value > above)
            and (below is None or value < below)
        )

    limits = (("of at least", low), ("above", above), ("at most", high), ("below", below))
    words = " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
    if low is not None and high is not None:
        words = f"between {low:g} and {high:g}"
    return Check(accepts, f"a finite number {words}".strip())


def integer(low: int) -> Check:
    """Integer of at least ``low``."""
    return Check(lambda value: is_integer(value) and value >= low, f"an integer of at least {low}")


def one_of(*names: str) -> Check:
    """One of some strings."""
    words = " or ".join(map(repr, names)) if len(names) < 3 else f"one of {', '.join(map(repr, names))}"
    return Check(lambda value: isinstance(value, str) and value in names, words)


def optional(check: Check) -> Check:
    """None, or what another check allows."""
    return Check(lambda value: value is None or check.accepts(value), f"None or {check.expected}")


#: True or False, also those of NumPy
BOOL = Check(lambda value: isinstance(value, bool | np.bool_), "True or False")

#: how much progress is shown
VERBOSE = Check(
    lambda value: isinstance(value, bool | np.bool_) or (is_integer(value) and value >= 0), "an integer of at least 0"
)

#: number of processes or threads, as joblib takes it
N_JOBS = optional(Check(lambda value: is_integer(value) and value != 0, "an integer other than 0"))

#: seconds, where infinity means without a limit
TIME_LIMIT = optional(Check(lambda value: is_number(value) and value > 0, "a positive number of seconds"))


# -- content of parameters that can be changed in place: arrays, lists, dicts, objects of SciPy and data frames --------


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
