"""What all displays share: Matplotlib when it is needed, and estimators by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def pyplot(who: str) -> ModuleType:
    """Matplotlib's pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{who} needs Matplotlib: pip install skspo[plot]") from error
    return plt


def check_named(estimators: Mapping[str, T], who: str) -> dict[str, T]:
    """Return the estimators by name, or say what was expected."""
    if not isinstance(estimators, Mapping) or not estimators:
        raise TypeError(
            f"{who}.from_estimators takes a dictionary of fitted estimators by name, for example "
            f"{{'SPO+': model}}, got {type(estimators).__name__}. For a single one there is from_estimator."
        )
    return {str(name): estimator for name, estimator in estimators.items()}
