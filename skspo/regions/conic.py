"""Regions in cone form, of which Clarabel finds decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._oracles.clarabel import ConicSet
from .base import Region

if TYPE_CHECKING:
    import cvxpy as cp


class ConicRegion(Region):
    """Base class of regions whose data have a cone form, ``conic``."""

    n_jobs: int | None

    def _conic(self, n_dim: int | None = None) -> ConicSet:
        conic: ConicSet = self._data(n_dim).conic
        return conic

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row of a CVXPY expression, by conic duality."""
        return self._conic(V.shape[1]).support_epigraph(V)
