"""Regions whose parameters differ from sample to sample, for example one capacity per row of costs.

Conventions
-----------
    region     the plain region; ``Region.row_shapes`` lists the parameters that may vary
    rows       dict from such a parameter to an array with one row per sample

A view takes exactly these rows of costs; ``take`` selects some of them.  A view may have the same capabilities as every
region; those of polyhedra are in ``row_polyhedra``.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ._cost_bounds import CostBounds, Limits
from ._names import Names
from ._row_names import rows_named
from .base import Region
from .capabilities import Memory


class RowRegion(Region):
    """View of a region with one set of parameters for each row of costs; see ``Region.with_rows``.

    Parameters
    ----------
    region : Region
        Validated.
    rows : dict of ndarray
        What the oracle needs of each row, one row per sample.
    """

    def __init__(self, region: Region, rows: dict[str, np.ndarray]) -> None:
        self.region = region
        self.rows = rows

    @property
    def sense(self) -> str:  # type: ignore[override]
        """That of the plain region."""
        return self.region.sense

    @property
    def n_dim(self) -> int | None:
        """That of the plain region."""
        return self.region.n_dim

    @property
    def oracle_is_solver(self) -> bool:
        """Whether that of the plain region is."""
        return self.region.oracle_is_solver

    @property
    def variable_names(self) -> Names:  # type: ignore[override]
        """Those of the plain region."""
        return self.region.variable_names

    @property
    def cost_bounds(self) -> CostBounds:  # type: ignore[override]
        """Those of the plain region."""
        return self.region.cost_bounds

    def _limits(self, d: int) -> Limits | None:
        return self.region._limits(d)

    def _clips(self, d: int) -> bool:
        """Whether the plain region clips."""
        return self.region._clips(d)

    def _learn_bounds(self, C: np.ndarray, mean: np.ndarray) -> RowRegion:
        """View of the region with learned bounds."""
        other = cast("RowRegion", self._named(self._row_names))
        other.region = self.region._learn_bounds(C, mean)
        return other

    def _names(self, d: int) -> Names:
        return self.region._names(d)

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        return self.region._describe(W, names)

    @property
    def label(self) -> str:
        """Name in error messages."""
        return f"{self.region.label} that varies by sample (region_params)"

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return int(next(iter(self.rows.values())).shape[0])

    def take(self, rows: slice | np.ndarray) -> RowRegion:
        """View of some of the rows."""
        some = type(self)(self.region, {name: array[rows] for name, array in self.rows.items()})
        some._row_names = self._row_names.take(rows)
        return some

    def _row_table(self, n: int) -> np.ndarray:
        """All parameters of each row; equal samples have equal rows."""
        table = np.concatenate([array.reshape(n, -1) for array in self.rows.values()], axis=1, dtype=np.float64)
        return np.nan_to_num(table, copy=False, posinf=1e300, neginf=-1e300)  # rows are subtracted from each other

    def solve_min(self, C: np.ndarray, memory: Memory | None = None) -> np.ndarray:
        """Minimise the costs of exactly these rows."""
        if C.shape[0] != self.n_rows:
            raise ValueError(f"There are {C.shape[0]} rows of costs, but region_params has {self.n_rows} rows.")
        with rows_named(self._row_names.of):
            return self._argmin(C, self.rows)
