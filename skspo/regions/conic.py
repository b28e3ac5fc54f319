"""Regions in cone form, whose oracle is Clarabel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._oracles.clarabel import ConicSet
from .base import Region

if TYPE_CHECKING:
    import cvxpy as cp


class ConicRegion(Region):
    """Base class of regions in cone form; ``_conic(n_dim)`` returns the :class:`ConicSet`."""

    n_jobs: int | None

    @property
    def oracle_is_solver(self) -> bool:
        """True: Clarabel."""
        return True

    def _conic(self, n_dim: int | None = None) -> ConicSet:
        raise NotImplementedError

    def _argmin(self, C: np.ndarray, data: object) -> np.ndarray:
        return self._conic(C.shape[1]).minimize(C, self.n_jobs)

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row of a CVXPY expression, by conic duality."""
        return self._conic(V.shape[1]).support_epigraph(V)
