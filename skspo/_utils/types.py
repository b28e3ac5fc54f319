"""Types of arguments that many signatures share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

#: what the parameter ``random_state`` may be
RandomState: TypeAlias = int | np.random.RandomState | None


class Frame(Protocol):
    """Data frame of pandas or polars."""

    @property
    def columns(self) -> Iterable[str]:
        """Names of the columns."""

    def __getitem__(self, name: str, /) -> ArrayLike:
        """Return a column."""


#: what ``region_params`` may be: parameters of a region, one row per sample; an array must be structured
RegionParams: TypeAlias = Mapping[str, ArrayLike] | np.ndarray | Frame


class Predictor(Protocol):
    """Fitted regressor of costs."""

    def predict(self, X: ArrayLike, /) -> np.ndarray:
        """Predict costs."""
