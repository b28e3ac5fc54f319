"""What a region may offer beyond its oracle, as typed protocols.

Every region has ``argmin``.  Everything else is an optional method, and a region offers a capability by having that
method.  Solvers, losses, metrics and bounds name the capabilities that they need; ``has`` and ``missing`` are the only
places that look for them.

The question is asked of the object, not of its class: a region may lose a method with a parameter, as ``Knapsack`` does
with ``integer=True`` (``sklearn.utils.metaestimators.available_if``).  ``isinstance`` with a protocol would not notice.

Conventions
-----------
    C (n, d) costs to be minimised, whatever ``sense`` is      W (n, d) decisions      n_dim: d, or None if it is fixed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._utils.limits import BLOCK_ELEMENTS

if TYPE_CHECKING:
    import cvxpy as cp

    from .base import Region, Smoothed, StrongConvexity
    from .forms import QuadraticForm, StandardForm

#: what a region keeps between two calls of its oracle for the same rows; it belongs to the caller
Memory = dict[str, Any]

#: eigenvalues below this share of the largest one are zero: those of graphs and sums are not that small
RANK = 1e-10


class HasStandardForm(Protocol):
    """The convex hull of the region is a polyhedron {u : A u = b, lower <= u <= upper}, with w = P u."""

    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """Return the matrices."""


class HasQuadraticForm(Protocol):
    """The region is {u >= 0, sum u = b} with one more constraint w^T Q w <= limit, Q positive semidefinite."""

    def quadratic_form(self, n_dim: int | None = None) -> QuadraticForm:
        """Return the matrices and a strictly feasible point, if there is one."""


class HasBlocks(Protocol):
    """The region is a product of regions of some of the decision variables each."""

    def blocks(self, n_dim: int | None = None) -> list[tuple[np.ndarray, Region]]:
        """Return the indices of the variables of each factor, and the factor."""


class HasSupportEpigraph(Protocol):
    """CVXPY constraints that describe the support function, max over w of v.w."""

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Return an expression of shape (n,), at least the support of each row of V and equal when minimised."""


class HasStrongConvexity(Protocol):
    """The region is {w : f(w) <= r} for a strongly convex function f, within the affine hull of the region."""

    def strong_convexity(self, n_dim: int | None = None) -> StrongConvexity:
        """Return constants that hold on the whole region, in the 2-norm."""


class HasDerivative(Protocol):
    """Decisions are differentiable in the costs, almost everywhere."""

    def derivative(self, C: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the derivative of w*(c) along each row of ``direction``.  The matrix is symmetric."""


class HasSmoothed(Protocol):
    """A multiple of the function f of ``strong_convexity`` can be added to the costs."""

    def smoothed(self, C: np.ndarray, mu: float, memory: Memory | None = None, curvature: bool = False) -> Smoothed:
        """Minimise c.w + mu f(w) over the region; with ``curvature`` also return minus the derivative in c."""


class HasEqualities(Protocol):
    """Directions in which decisions do not vary are known.  Costs along them change no decision."""

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Return orthonormal rows E, shape (k, d), with E w constant on the region."""


class HasRepair(Protocol):
    """Decisions that are feasible up to rounding can be made feasible."""

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Return points of the convex hull of the region, close to W.  Lower bounds are proved with them."""


class HasWorstArgmin(Protocol):
    """All optimal decisions are known, not only the one that the oracle returns."""

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Return, among the decisions optimal for C, the one with the largest cost under C_true."""


class HasAudit(Protocol):
    """The oracle is a function of the user, which may be wrong; the region checks what it returned."""

    def audit(self, n_dim: int) -> None:
        """Compare the decisions of the first call with all that are known now."""

    def distrust(self, why: str, n_dim: int) -> None:
        """Record that the oracle is not optimal: raise an error, or warn once."""


#: capabilities, with what error messages call them and the protocol of their methods
_TABLE: dict[str, tuple[str, type[object]]] = {
    "standard_form": ("the region as {u : A u = b, lower <= u <= upper}", HasStandardForm),
    "quadratic_form": (
        "the region as {u : u >= 0, sum u = b} with one convex quadratic constraint",
        HasQuadraticForm,
    ),
    "support_epigraph": ("the support function in cone form, for CVXPY", HasSupportEpigraph),
    "strong_convexity": (
        "the constants of a strongly convex level set; the SPO+ loss is then differentiable",
        HasStrongConvexity,
    ),
    "derivative": ("the derivative of decisions in the costs; the SPO loss is then differentiable", HasDerivative),
    "smoothed": ("decisions for costs plus a multiple of the level function, for Newton's method", HasSmoothed),
    "blocks": ("the regions whose product it is, so that they can be trained one at a time", HasBlocks),
    "equalities": ("the directions in which decisions never vary", HasEqualities),
    "repair": ("moving nearly feasible decisions into the region", HasRepair),
    "worst_argmin": ("the worst of all optimal decisions", HasWorstArgmin),
    "audit": ("checks of decisions that a user's function returned", HasAudit),
}

#: capabilities that a region does not have if its parameters vary by sample
PLAIN_ONLY = {"quadratic_form", "blocks", "strong_convexity"}

CAPABILITIES = {name: text for name, (text, _) in _TABLE.items()}
PROTOCOLS = {name: protocol for name, (_, protocol) in _TABLE.items()}


def has(region: object, name: str) -> bool:
    """Whether the region offers a capability now, with its present parameters.

    Parameters
    ----------
    region : Region
    name : str
        One of ``CAPABILITIES``, or a method that a region and a solver of the user agreed on.

    Returns
    -------
    has : bool

    Examples
    --------
    >>> from skspo import Knapsack
    >>> from skspo.regions.capabilities import has
    >>> has(Knapsack([3, 4], 5), "standard_form"), has(Knapsack([3, 4], 5, integer=False), "standard_form")
    (False, True)
    """
    return hasattr(region, name) and not (name in PLAIN_ONLY and getattr(region, "_varies", False))


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
