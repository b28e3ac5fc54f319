"""Both sides of an inequality, and the norms in which costs and decisions are measured."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skspo.calibration.geometry import check_norm, directions_of
from skspo.regions.base import Region


class Sides(NamedTuple):
    """Values of the sides of ``lower <= value <= upper``; a missing side is infinite."""

    lower: np.ndarray
    value: np.ndarray
    upper: np.ndarray

    def hold(self, tol: float = 1e-9) -> bool:
        """Whether both inequalities hold up to ``tol`` times the largest finite number involved."""
        sizes = np.concatenate([np.ravel(np.abs(side)) for side in self])
        slack = tol * float(sizes[np.isfinite(sizes)].max(initial=0.0))
        return bool((self.lower <= self.value + slack).all() and (self.value <= self.upper + slack).all())


class Subspace(NamedTuple):
    """The directions in which decisions vary, with an A-norm on them and its dual norm on costs.

    A cost acts on decisions only through c.w with w in the span of U, so its size is the dual norm on that span,

        |c|_* = max {c.w : w in span U, |w|_A <= 1} = |U^T c|_{(U^T A U)^-1},

    which for the 2-norm is the length of the orthogonal projection.  For another norm it is not the dual norm of the
    orthogonal projection, which is larger; see docs/errata.md.
    """

    U: np.ndarray  # (d, k) orthonormal
    factor: np.ndarray | None  # (k, k) lower triangular with U^T A U = F F^T; None for the 2-norm

    @staticmethod
    def of(region: Region, d: int, A: ArrayLike | None = None) -> Subspace:
        """Subspace of a region."""
        U = directions_of(region, d)
        return Subspace(U, None if A is None else np.linalg.cholesky(U.T @ check_norm(A, d) @ U))

    @property
    def dim(self) -> int:
        """Number of directions."""
        return self.U.shape[1]

    def whiten(self, C: np.ndarray) -> np.ndarray:
        """Coordinates of costs in which the dual norm is the 2-norm."""
        C = C @ self.U
        return C if self.factor is None else np.linalg.solve(self.factor, C.T).T

    def dual_norm(self, C: np.ndarray) -> np.ndarray:
        """Dual norm of each row of costs."""
        return np.linalg.norm(self.whiten(C), axis=-1)

    def norm(self, W: np.ndarray) -> np.ndarray:
        """A-norm of each row, a difference of decisions."""
        W = W @ self.U
        return np.linalg.norm(W if self.factor is None else W @ self.factor, axis=-1)
