"""What a region may offer beyond its oracle, as a typed protocol.

Every region has ``argmin``.  Everything else is an optional method, and a region offers a capability by having that
method.  Solvers, losses, metrics and bounds name the capabilities that they need; ``has`` and ``missing`` are the only
places that look for them.

The question is asked of the object, not of its class: a region may lose a method with a parameter, as
``EntropySimplex`` does with ``threshold=0`` (``sklearn.utils.metaestimators.available_if``).  ``isinstance`` with a
protocol would not notice.

Conventions
-----------
    C (n, d) costs to be minimized, whatever ``sense`` is      W (n, d) decisions      n_dim: d, or None if it is fixed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._utils.limits import BLOCK_ELEMENTS
from ._tolerances import RANK

if TYPE_CHECKING:
    import cvxpy as cp

    from .base import Region, Smoothed, StrongConvexity
    from .polyhedral import QuadraticForm, StandardForm

#: what a region keeps between two calls of its oracle for the same rows; it belongs to the caller
Memory = dict[str, Any]


class Capabilities(Protocol):
    """All optional methods.  The first line of a docstring is what error messages call the capability."""

    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """The region as {u : A u = b, lower <= u <= upper}.

        Its convex hull consists of the decisions w = P u.
        """

    def quadratic_form(self, n_dim: int | None = None) -> QuadraticForm:
        """The region as {u : u >= 0, sum u = b} with one convex quadratic constraint."""

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """The support function in cone form, for CVXPY.

        An expression of shape (n,), at least max over w of v.w for each row v of V, and equal to it when minimized; and
        the constraints that it needs.
        """

    def strong_convexity(self, n_dim: int | None = None) -> StrongConvexity:
        """The constants of a strongly convex level set; the SPO+ loss is then differentiable.

        The region is {w : f(w) <= r}, and the constants of f hold on all of it, in the 2-norm.
        """

    def derivative(self, C: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """The derivative of decisions in the costs; the SPO loss is then differentiable.

        That of w*(c) along each row of ``direction``, almost everywhere.  The matrix is symmetric.
        """

    def smoothed(self, C: np.ndarray, mu: float, memory: Memory | None = None, curvature: bool = False) -> Smoothed:
        """Decisions for costs plus a multiple of the level function, for Newton's method.

        Minimize c.w + mu f(w) over the region; with ``curvature`` also return minus the derivative in c.
        """

    def blocks(self, n_dim: int | None = None) -> list[tuple[np.ndarray, Region]]:
        """The regions whose product it is, so that they can be trained one at a time.

        The indices of the decision variables of each factor, and the factor.
        """

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """The directions in which decisions never vary.

        Orthonormal rows E, shape (k, d), with E w constant on the region.  Costs along them change no decision.
        """

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Moving nearly feasible decisions into the region.

        Points of its convex hull, close to W.  Lower bounds are proved with them.
        """

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """The worst of all optimal decisions.

        Among the decisions optimal for C, the one with the largest cost under C_true.
        """

    def audit(self, n_dim: int) -> None:
        """Checks of decisions that a user's function returned.

        Compare the decisions of the first call with all that are known now.  The region also has ``distrust``.
        """


#: capabilities that a region does not have if its parameters vary by sample
PLAIN_ONLY = {"quadratic_form", "blocks", "strong_convexity"}

#: what error messages call each capability
CAPABILITIES = {
    name: method.__doc__[0].lower() + method.__doc__.splitlines()[0][1:-1]
    for name, method in vars(Capabilities).items()
    if not name.startswith("_")
}


def has(region: object, name: str) -> bool:
    """Whether the region offers a capability now, with its present parameters.

    The name is one of ``CAPABILITIES``, or that of a method that a region and a solver of the user agreed on.

    Examples
    --------
    >>> from skspo import EntropySimplex
    >>> from skspo.regions.capabilities import has
    >>> has(EntropySimplex(), "smoothed"), has(EntropySimplex(threshold=0.0), "smoothed")
    (True, False)
    """
    return hasattr(region, name) and not (name in PLAIN_ONLY and getattr(region, "_varies", False))


def knows_hull(region: object) -> bool:
    """Whether one of the forms of the region describes its convex hull, as those of listed decisions do."""
    return any(has(region, name) for name in ("standard_form", "quadratic_form", "support_epigraph"))


def missing(region: object, names: Iterable[str]) -> list[str]:
    """Return those of the named capabilities that the region does not offer."""
    return [name for name in names if not has(region, name)]


def equalities_of(region: Region, d: int) -> np.ndarray:
    """Orthonormal rows E with E w constant on the region; no rows if the region does not know any."""
    return region.equalities(d) if has(region, "equalities") else np.zeros((0, d))


def project_visible(C: np.ndarray, normals: np.ndarray, possible: np.ndarray | None = None) -> np.ndarray:
    """Remove from each row the component along the orthonormal rows ``normals``, which changes no decision.

    With ``possible``, of the shape of C, only these entries of a row and of the normals count, and the others are 0.
    """
    if possible is None:
        if not normals.size:
            return C
        hidden = (C @ normals.T) @ normals
        return np.subtract(C, hidden, out=hidden)
    visible = np.where(possible, C, 0.0)
    k = len(normals)
    if not k:
        return visible
    packed = np.ascontiguousarray(np.packbits(possible, axis=1))
    _, first_of, kind = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    kinds, kind = possible[first_of], kind.ravel()
    block = max(1, BLOCK_ELEMENTS // (k * max(k, C.shape[1])))
    order = np.argsort(kind, kind="stable")
    for start in range(0, len(kinds), block):
        N = normals * kinds[start : start + block, None, :]
        inverse = np.linalg.pinv(N @ N.transpose(0, 2, 1), rcond=RANK, hermitian=True)
        first, last = np.searchsorted(kind[order], (start, start + block))
        for at in range(first, last, block):  # a part of the rows of these kinds, so that their normals fit into memory
            rows = order[at : min(at + block, last)]
            mine = kind[rows] - start
            inner = np.einsum("ikj,ij->ik", N[mine], visible[rows])
            visible[rows] -= np.einsum("ik,ikj->ij", np.einsum("ikl,il->ik", inverse[mine], inner), N[mine])
    return visible
