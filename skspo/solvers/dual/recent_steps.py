"""Steps in the span of the last changes, for sweeps that converge slowly.

Where the weights in use are right, a group of sweeps is a linear iteration, as Gauss-Seidel is.  The dual is a
quadratic function of the lengths of the last changes and of that of the sweeps: its maximizer costs a few inner
products of matrices that are at hand.  This is the method of conjugate gradients with sweeps as the preconditioner, as
long as no weight meets its bound; a projection and a line search take care of bounds.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .cache import Cache
from .face import Face
from .points import Points
from .problem import ScaledProblem

#: number of earlier changes
MEMORY = 5

#: share of the diagonal that is added to the matrix of inner products
DAMPING = 1e-10


class RecentSteps:
    """The last changes of the weights, and those of T with them.

    Parameters
    ----------
    problem : ScaledProblem
    cache : Cache or Points
        Decisions are not added while this is in use.
    T : ndarray
        Scaled coefficients of its weights.
    """

    def __init__(self, problem: ScaledProblem, cache: Cache | Points, T: np.ndarray) -> None:
        self.problem, self.cache = problem, cache
        self.steps: list[tuple[np.ndarray, np.ndarray]] = []
        self.start = cache.weight.copy(), T.copy()

    @cached_property
    def face(self) -> Face:
        """All weights of the samples that have several, in use or not."""
        return Face(self.problem, self.cache, every=True)

    def change(self, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Change since the last call of ``ascend``."""
        return self.cache.weight - self.start[0], T - self.start[1]

    def ascend(self, T: np.ndarray) -> np.ndarray:
        """Maximize the dual over the span of the changes, after sweeps; return the new T."""
        steps = [self.change(T), *self.steps]
        weights, moments = np.stack([x for x, _ in steps]), np.stack([M.ravel() for _, M in steps])
        slope = weights @ (self.face.slot * self.cache.lin) - moments @ self.problem.soft(T).ravel()
        Q = moments @ moments.T
        size, gain = np.sqrt(np.diagonal(Q)), 0.0
        if size.all():
            Q /= np.outer(size, size)
            Q[np.diag_indices_from(Q)] += DAMPING
            lengths = np.linalg.solve(Q, slope / size) / size
            T, gain, _ = self.face.ascend(T, lengths @ weights)
        self.steps = [self.change(T), *(self.steps if gain > 0.0 else [])][:MEMORY]
        self.start = self.cache.weight.copy(), T.copy()
        return T
