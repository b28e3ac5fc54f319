"""Regions in cone form, whose oracle is Clarabel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._oracles.clarabel import ConicSet, without_rounding
from ._oracles.enumeration import inradius_of_simplex
from .base import CertifiedFloat, Region, directions_of

if TYPE_CHECKING:
    import cvxpy as cp


def box_diameter(conic: ConicSet) -> float:
    """Diagonal of the bounding box, raised by the solver's tolerance."""
    low, high = conic.bounding_box
    return float(np.linalg.norm(high - low + 2e-8 * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))))


class ConicRegion(Region):
    """Base class of regions in cone form; ``_conic(n_dim)`` returns the :class:`ConicSet`."""

    n_jobs: int | None = None

    @property
    def oracle_is_solver(self) -> bool:
        """True: Clarabel."""
        return True

    def _conic(self, n_dim: int | None = None) -> ConicSet:
        raise NotImplementedError

    def _argmin(self, C: np.ndarray, data: object) -> np.ndarray:
        return self._conic(C.shape[1]).minimise(C, self.n_jobs)

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row of a CVXPY expression, by conic duality.

        Parameters
        ----------
        V : cvxpy.Expression of shape (n, d)

        Returns
        -------
        t : cvxpy.Expression of shape (n,)
            At least the support function, and equal to it when minimised.
        constraints : list of cvxpy constraints
        """
        return self._conic(V.shape[1]).support_epigraph(V)

    def bounding_box(self, n_dim: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Smallest box around the region, up to the solver's tolerance."""
        return self._conic(self.resolve_dim(n_dim)).bounding_box

    def relative_width(self, n_dim: int | None = None) -> CertifiedFloat:
        """Lower bound on the smallest extent over the directions in which decisions vary.

        It is twice the radius of the ball in a simplex of optimal decisions, lowered by the solver's tolerance.
        """
        d = self.resolve_dim(n_dim)
        U = directions_of(self, d)
        k = U.shape[1]
        if k == 0:
            return CertifiedFloat(0.0)
        # The k + 1 normals of a regular simplex, so that their decisions are spread around the region.
        spread = np.linalg.svd(np.ones((1, k + 1)))[2][1:].T
        W = self._solve_directions(without_rounding(spread @ U.T)) @ U
        radius = inradius_of_simplex(W - W[0])
        return CertifiedFloat(2.0 * max(radius - 1e-6 * max(1.0, float(np.abs(W).max())), 0.0), "lower bound")
