"""Types of arguments that many signatures share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import pandas as pd

#: what the parameter ``random_state`` may be
RandomState: TypeAlias = int | np.random.RandomState | None

#: what ``region_params`` may be: parameters of a region, one row per sample; an array must be structured
RegionParams: TypeAlias = "Mapping[str, ArrayLike] | np.ndarray | pd.DataFrame"


class Predictor(Protocol):
    """Fitted regressor of costs."""

    def predict(self, X: ArrayLike, /) -> np.ndarray:
        """Predict costs."""
