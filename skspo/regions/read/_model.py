"""What every reader returns, and regions from constraints with two sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..base import Region
from ..integer import MixedInteger
from ..polyhedron import Polyhedron


class Model(NamedTuple):
    """A model that was read."""

    region: Region  # over all variables, with their names and the sense of the model
    cost: np.ndarray  # (d,) coefficients of the objective; zeros if there is none


class LinearRows(NamedTuple):
    """Constraints low <= A w <= high, and lower <= w <= upper; infinity means that there is no bound."""

    A: sp.csr_array
    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def region(self, integers: np.ndarray, sense: str, names: Sequence[str] | None) -> Polyhedron | MixedInteger:
        """Return the region; ``integers`` says which variables must be integers."""
        equal = self.low == self.high
        below, above = ~equal & (self.high < np.inf), ~equal & (self.low > -np.inf)
        A_ub = sp.vstack([self.A[below], -self.A[above]], format="csr")
        b_ub = np.concatenate([self.high[below], -self.low[above]])
        some = {"A_ub": A_ub, "b_ub": b_ub} if b_ub.size else {}
        some |= {"A_eq": self.A[equal], "b_eq": self.low[equal]} if equal.any() else {}
        bounds = np.column_stack([self.lower, self.upper])
        if not integers.any():
            return Polyhedron(**some, bounds=bounds, sense=sense, variable_names=names)
        kinds = integers.astype(int)
        return MixedInteger(**some, bounds=bounds, integrality=kinds, sense=sense, variable_names=names)
