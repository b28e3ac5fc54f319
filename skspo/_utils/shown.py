"""How values are shown in errors, and estimators and regions in print: without the entries of large arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: so many entries of an array or a list are shown, as scikit-learn does for lists
MOST_ENTRIES = 30

#: longest text of any other value
MOST_CHARACTERS = 300


class _Text:
    """What prints as the given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _count(value: object) -> int:
    """Number of entries of arrays, lists of lists and the like, counted up to a few more than are shown."""
    size = getattr(value, "size", None)
    if isinstance(size, int):
        return size
    if not isinstance(value, list | tuple | set | Mapping):
        return 1
    total = 0
    for part in value.values() if isinstance(value, Mapping) else value:
        total += _count(part)
        if total > MOST_ENTRIES:
            break
    return total


def shown(value: object) -> str:
    """Text of a value for errors: its ``repr``, or its type and size if it has many entries."""
    if _count(value) > MOST_ENTRIES:
        shape = getattr(value, "shape", None)
        size = f"length {len(value)}" if shape is None else f"shape {tuple(shape)}"  # type: ignore[arg-type]
        return f"<{type(value).__name__} of {size}>"
    text = repr(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


class ShortRepr:
    """Mixin: large arrays and lists among the parameters print as their type and size; must precede BaseEstimator."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        brief: Any = object.__new__(type(self))
        brief.__dict__.update(self.__dict__)
        get_params: Any = self.get_params  # type: ignore[attr-defined]
        for name, value in get_params(deep=False).items():
            parts = value if isinstance(value, list | tuple) else (value,)
            if any(isinstance(part, ShortRepr) for part in parts):  # scikit-learn would print all of their entries
                brief.__dict__[name] = _Text(repr(value))
            elif _count(value) > MOST_ENTRIES:
                brief.__dict__[name] = _Text(shown(value))
        text: str = super(ShortRepr, brief).__repr__(N_CHAR_MAX=N_CHAR_MAX)  # type: ignore[call-arg]
        return text
