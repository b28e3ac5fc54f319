"""Helpers of all displays: the import of Matplotlib, and estimators by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def pyplot(who: str) -> ModuleType:
    """Import pyplot, or raise an error that says how to install Matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{who} needs Matplotlib: pip install skspo[plot]") from error
    return plt


def check_named(estimators: Mapping[str, T], who: str) -> dict[str, T]:
    """Check that estimators are given in a dictionary by name."""
    if not isinstance(estimators, Mapping) or not estimators:
        raise TypeError(
            f"{who}.from_estimators takes a dictionary of fitted estimators by name, for example "
            f"{{'SPO+': model}}, got {type(estimators).__name__}. Use from_estimator for a single one."
        )
    return {str(name): estimator for name, estimator in estimators.items()}
