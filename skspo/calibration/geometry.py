r"""Diameter and width of regions, and the constants of strongly convex level sets.

Conventions
-----------
    U (d, k)         orthonormal basis of the directions in which decisions vary
    diameter         max |w - w'|              exact, or an upper bound
    relative width   min over |v| = 1, v in span U, of max v.w - min v.w        exact, or a lower bound

``diameter`` and ``relative_width`` are dispatched on the class of the region.  A region of the user says its own by
registering a function of the region and the number of its decision variables::

    @diameter.register
    def _(region: MyRegion, n_dim: int) -> CertifiedFloat:
        return CertifiedFloat(2.0 * region.radius)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, linprog, minimize_scalar
from scipy.special import xlogy

from ..regions._oracles.clarabel import without_rounding
from ..regions._oracles.highs import coordinate_bounds
from ..regions.assignment import Assignment
from ..regions.balls import Ellipsoid, L1Ball, LqBall
from ..regions.base import Region, StrongConvexity
from ..regions.capabilities import CAPABILITIES, equalities_of, has, missing
from ..regions.check import check_region
from ..regions.graphs import ShortestPath
from ..regions.image import LinearImage
from ..regions.integer import Knapsack, MixedInteger
from ..regions.level_sets import EntropySimplex, LogBarrierSimplex
from ..regions.markowitz import Markowitz
from ..regions.polyhedral import PolyhedralRegion
from ..regions.polyhedron import read_symmetric
from ..regions.product import Product
from ..regions.simplex import Box, Simplex, TopK
from ..regions.tours import TravellingSalesman
from ..regions.user import CvxpyRegion
from .enumeration import diameter_of_points, enumerate_vertices, inradius_of_simplex, width_of_points


class CertifiedFloat(float):
    """A number that is exact or a proved bound, as its attribute ``kind`` says.

    Examples
    --------
    >>> from skspo.calibration import CertifiedFloat
    >>> CertifiedFloat(2.0, "upper bound")
    2.0 (upper bound)
    """

    kind: str

    def __new__(cls, value: float, kind: str = "exact") -> CertifiedFloat:
        """Make a float of the given kind."""
        if kind not in ("exact", "upper bound", "lower bound"):
            raise ValueError(f"kind must be 'exact', 'upper bound' or 'lower bound', got {kind!r}.")
        self = super().__new__(cls, value)
        self.kind = kind
        return self

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]
        return (float(self), self.kind)

    def __repr__(self) -> str:
        return f"{float(self)!r} ({self.kind})"


class Geometry(NamedTuple):
    """Diameter and width of a region within its affine hull, and the dimension of that hull."""

    diameter: CertifiedFloat
    width: CertifiedFloat
    n_dim: int


def need(region: Region, *names: str) -> None:
    """Raise an error if the region lacks one of the capabilities."""
    lacking = missing(region, names)
    if lacking:
        what = "; ".join(f"{name} ({CAPABILITIES.get(name, 'see its documentation')})" for name in lacking)
        raise TypeError(f"{type(region).__name__} does not offer what this bound needs: {what}.")


def region_geometry(region: Region, n_dim: int | None = None) -> Geometry:
    """Diameter, relative width and reduced dimension of a region.

    Parameters
    ----------
    region : Region
    n_dim : int, optional
        Number of decision variables, for a region that exists in every dimension.

    Returns
    -------
    geometry : Geometry
        ``diameter`` is exact or an upper bound, ``width`` exact or a lower bound; ``kind`` says which.

    Examples
    --------
    >>> from skspo import Simplex
    >>> from skspo.calibration import region_geometry
    >>> region_geometry(Simplex(), 4)
    Geometry(diameter=1.4142135623730951 (exact), width=1.0 (exact), n_dim=3)
    """
    d = region.resolve_dim(n_dim)
    region = check_region(region, d)
    longest, width = diameter(region, d), relative_width(region, d)
    need(region, "equalities")
    return Geometry(longest, width, directions_of(region, d).shape[1])


def directions_of(region: Region, d: int) -> np.ndarray:
    """Orthonormal basis (d, k) of the directions in which the region's decisions vary."""
    E = equalities_of(region, d)
    return np.linalg.svd(E, full_matrices=True)[2][E.shape[0] :].T if E.shape[0] else np.eye(d)


@singledispatch
def diameter(region: Region, n_dim: int) -> CertifiedFloat:
    """Largest distance between two decisions, or an upper bound on it.

    Parameters
    ----------
    region : Region
    n_dim : int
        Number of decision variables.

    Returns
    -------
    diameter : CertifiedFloat

    Examples
    --------
    >>> from skspo import Box
    >>> from skspo.calibration import diameter
    >>> diameter(Box(0, [3.0, 4.0]), 2)
    5.0 (exact)

    A region of the user says its own:

    >>> from skspo import OracleRegion
    >>> from skspo.calibration import CertifiedFloat
    >>> class Signs(OracleRegion):
    ...     pass
    >>> @diameter.register
    ... def _(region: Signs, n_dim: int) -> CertifiedFloat:
    ...     return CertifiedFloat(2.0 * n_dim**0.5)
    >>> diameter(Signs(lambda c: -c / abs(c), 4), 4)
    4.0 (exact)
    """
    raise _unknown(region, "diameter", diameter)


@singledispatch
def relative_width(region: Region, n_dim: int) -> CertifiedFloat:
    """Smallest extent over the directions in which decisions vary, or a lower bound on it; 0 for a point.

    Parameters
    ----------
    region : Region
    n_dim : int
        Number of decision variables.

    Returns
    -------
    width : CertifiedFloat

    Examples
    --------
    >>> from skspo import Box
    >>> from skspo.calibration import relative_width
    >>> relative_width(Box(0, [3.0, 4.0, 0.0]), 3)
    3.0 (exact)
    """
    raise _unknown(region, "relative_width", relative_width)


def _unknown(region: Region, name: str, function: Any) -> TypeError:
    known = sorted(cls.__name__ for cls in function.registry if cls is not object)
    return TypeError(
        f"The {name} of {region.label} is not known; it is for {', '.join(known)}. A calibration function takes the "
        f"number as an argument, too, or register a function of your region: @skspo.calibration.{name}.register."
    )


def strong_convexity(region: Region, n_dim: int, A: ArrayLike | None = None) -> StrongConvexity:
    r"""Constants of the function whose level set the region is, in the 2-norm or in the norm :math:`\sqrt{w^\top A w}`.

    The eigenvalues of the second derivative are between :math:`\mu` and :math:`L`, and those of A between a and b, on
    the directions of the region.  So the constants in the norm of A are :math:`\mu / b` and :math:`L / a`; for an
    ellipsoid they are twice the extreme eigenvalues of :math:`A^{-1} Q`, hence both 2 for :math:`A = Q`.

    Parameters
    ----------
    region : Region
        With ``strong_convexity``.
    n_dim : int
        Number of decision variables.
    A : array-like of shape (d, d), optional
        Matrix of the norm; None means the 2-norm.

    Returns
    -------
    constants : StrongConvexity

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from skspo.calibration import strong_convexity
    >>> strong_convexity(Ellipsoid([[2.0, 0.0], [0.0, 1.0]]), 2)
    StrongConvexity(mu=2.0, L=4.0, r=1.0, f_min=0.0)
    """
    need(region, "strong_convexity")
    offers: Any = region
    constants: StrongConvexity = offers.strong_convexity(n_dim)
    if A is None:
        return constants
    A = check_norm(A, n_dim)
    if isinstance(region, Ellipsoid):
        factor = region._data(n_dim)[0]
        half = np.linalg.solve(np.linalg.cholesky(A), np.eye(n_dim) if factor is None else factor)
        low, high = 2.0 * np.linalg.eigvalsh(half @ half.T)[[0, -1]]
    else:
        U = directions_of(region, n_dim)
        norms = np.linalg.eigvalsh(U.T @ A @ U)
        low, high = constants.mu / norms[-1], constants.L / norms[0]
    return constants._replace(mu=float(low), L=float(high))


def check_norm(A: ArrayLike, d: int) -> np.ndarray:
    """Return the matrix of an A-norm: symmetric, positive definite, of shape (d, d)."""
    A_arr = read_symmetric("strong_convexity: A", A, d)
    smallest, largest = np.linalg.eigvalsh(A_arr)[[0, -1]]
    if smallest <= d * np.finfo(float).eps * abs(largest):
        raise ValueError(f"strong_convexity: A must be positive definite; its smallest eigenvalue is {smallest:.3g}.")
    return A_arr


# -- polyhedra ---------------------------------------------------------------------------------------------------------


def bounding_box(region: Region, n_dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Smallest box around a region: lowest and highest value of each coordinate, by the oracle."""
    if isinstance(region, Markowitz | CvxpyRegion):
        box: tuple[np.ndarray, np.ndarray] = region._data(n_dim).conic.bounding_box
        return box
    eye = np.eye(n_dim)
    return region._solve_directions(eye).diagonal().copy(), region._solve_directions(-eye).diagonal().copy()


def _vertices(region: Region, d: int) -> np.ndarray | None:
    """All vertices of a polyhedron, one per row; None if there may be too many."""
    if not (isinstance(region, PolyhedralRegion) and region._is_polyhedron and has(region, "standard_form")):
        return None
    geo = region._geometry(d)
    M, q = region.inequality_form(d).inequalities()
    M, q = M[geo.strict], q[geo.strict]
    U = geo.directions()
    points = enumerate_vertices(M @ U, q - M @ geo.center)
    return None if points is None else geo.center + points @ U.T


def _segment(region: PolyhedralRegion, d: int) -> float | None:
    """Length of a region of dimension one or zero; None for all others."""
    U = region._geometry(d).directions()
    if U.shape[1] > 1:
        return None
    return float(((region._solve_directions(-U.T) - region._solve_directions(U.T)) @ U).sum()) if U.shape[1] else 0.0


@diameter.register
def _polyhedral_diameter(region: PolyhedralRegion, n_dim: int) -> CertifiedFloat:
    """Exact for small polyhedra, whose vertices are listed, and for segments; else the diagonal of the bounding box."""
    segment = _segment(region, n_dim)
    if segment is not None:
        return CertifiedFloat(segment)
    points = _vertices(region, n_dim)
    if points is not None:
        return CertifiedFloat(diameter_of_points(points))
    low, high = bounding_box(region, n_dim)
    return CertifiedFloat(float(np.linalg.norm(high - low)), "upper bound")


@relative_width.register
def _polyhedral_width(region: PolyhedralRegion, n_dim: int) -> CertifiedFloat:
    """Exact for small polyhedra and segments; otherwise twice the radius of a ball inscribed in the affine hull."""
    if not region._is_polyhedron:
        if not has(region.relaxation(), "standard_form"):
            raise TypeError(f"{region.label} has no relative_width, because its constraints are too many to be listed.")
        raise TypeError(
            f"{region.label} has no relative_width, because its decisions are integers and it is not convex; "
            "region.relaxation() has one."
        )
    geo = region._geometry(n_dim)
    segment = _segment(region, n_dim)
    if segment is not None:
        return CertifiedFloat(segment)
    points, U = _vertices(region, n_dim), geo.directions()
    exact = None if points is None else width_of_points((points - geo.center) @ U)
    if exact is not None:
        return CertifiedFloat(exact)
    M, q = region.inequality_form(n_dim).inequalities()
    N, q = M[geo.strict] @ U, q[geo.strict] - M[geo.strict] @ geo.center
    k, norms = N.shape[1], np.linalg.norm(N, axis=1)
    A_ub = np.column_stack([N, norms])
    res = linprog(np.r_[np.zeros(k), -1.0], A_ub=A_ub, b_ub=q, bounds=[(None, None)] * k + [(0, None)])
    x, radius = (np.zeros(k), 0.0) if res.x is None else (res.x[:k], res.x[-1])
    # The bound is the radius that fits around the center, computed here; the solver's objective proves nothing.
    nonzero = norms > 0
    radius = min(radius, float(((q - N @ x)[nonzero] / norms[nonzero]).min()))
    return CertifiedFloat(2.0 * max(radius, 0.0), "lower bound")


@diameter.register
def _(region: Simplex, n_dim: int) -> CertifiedFloat:
    return CertifiedFloat(np.sqrt(2.0) if n_dim > 1 else 0.0)


@relative_width.register
def _(region: Simplex, n_dim: int) -> CertifiedFloat:
    # Among the directions v with sum 0 and extent max v_j - min v_j = 1, the longest have only two different values,
    # because a convex function is largest at a vertex.  With p entries of one value, |v|^2 = p (d - p) / d.
    p = n_dim // 2
    return CertifiedFloat(float(np.sqrt(1.0 / p + 1.0 / (n_dim - p))) if n_dim > 1 else 0.0)


@diameter.register
def _(region: TopK, n_dim: int) -> CertifiedFloat:
    k = int(region._data(n_dim).k)
    if region.at_most:  # two disjoint choices of k, if there are so many
        return CertifiedFloat(float(np.sqrt(min(2 * k, n_dim))))
    return CertifiedFloat(float(np.sqrt(2.0 * min(k, n_dim - k))))


@relative_width.register
def _(region: TopK, n_dim: int) -> CertifiedFloat:
    if region.at_most:
        return _polyhedral_width(region, n_dim)
    # With m = min(k, d - k), the differences of two decisions are the x with sum zero, |x_j| <= 1 and, for all sets P,
    # sum_{j in P} x_j <= m.  Every facet of this set has as normal the projection of the indicator of some P.  With p
    # elements of P the extent is min(p, d - p, m) / sqrt(p (d - p) / d), smallest for p = 1 or p = d // 2.
    k = int(region._data(n_dim).k)
    m = min(k, n_dim - k)
    if m == 0:
        return CertifiedFloat(0.0)
    return CertifiedFloat(
        float(min(min(p, n_dim - p, m) * np.sqrt(n_dim / (p * (n_dim - p))) for p in (1, n_dim // 2)))
    )


@diameter.register
def _(region: Box, n_dim: int) -> CertifiedFloat:
    lower, upper = region._data(n_dim)
    return CertifiedFloat(float(np.linalg.norm(upper - lower)))


@relative_width.register
def _(region: Box, n_dim: int) -> CertifiedFloat:
    lower, upper = region._data(n_dim)
    edges = (upper - lower)[upper > lower]
    return CertifiedFloat(float(edges.min()) if edges.size else 0.0)


@diameter.register
def _(region: Assignment, n_dim: int) -> CertifiedFloat:
    workers, tasks, _ = region._data(n_dim)  # two assignments that have nothing in common
    return CertifiedFloat(float(np.sqrt(2.0 * min(workers, tasks))) if max(workers, tasks) > 1 else 0.0)


@diameter.register
def _(region: ShortestPath, n_dim: int) -> CertifiedFloat:
    data = region._data(n_dim)
    if data.sweep is None:
        return _polyhedral_diameter(region, n_dim)
    if data.used.size == data.sweep.length:  # there is only one path
        return CertifiedFloat(0.0)
    if data.used.size <= 20:  # vertices of larger graphs are not enumerated
        exact = _polyhedral_diameter(region, n_dim)
        if exact.kind == "exact":
            return exact
    # Two paths of at most L edges differ in at most 2 L edges.
    return CertifiedFloat(float(np.sqrt(min(2 * data.sweep.length, data.used.size))), "upper bound")


@diameter.register
def _(region: TravellingSalesman, n_dim: int) -> CertifiedFloat:
    # The n edges of a tour can all be left out by another one if there are at least five nodes.  The squared distance
    # of points of the relaxation is at most the sum of their entries, 2 n.  With four nodes two of the edges stay.
    n = region._data(n_dim)
    return CertifiedFloat(float(np.sqrt(2.0 * n)) if n > 4 else 2.0 * (n - 3))


@diameter.register
def _(region: Knapsack, n_dim: int) -> CertifiedFloat:
    if not region.integer:
        return _polyhedral_diameter(region, n_dim)
    form = region._data(n_dim).form
    weights = form.A_ub.toarray()  # each item alone in the knapsack
    with np.errstate(divide="ignore", over="ignore"):
        share = np.where(weights > 0, form.b_ub[:, None] / np.where(weights > 0, weights, 1.0), np.inf)
    return CertifiedFloat(float(np.linalg.norm(np.minimum(form.upper, share.min(axis=0)))), "upper bound")


@diameter.register
def _(region: MixedInteger, n_dim: int) -> CertifiedFloat:
    data = region._data(n_dim)
    low, high = region._rounded(*coordinate_bounds(data.form))
    return CertifiedFloat(float(np.linalg.norm(high - low)), "upper bound")


# -- balls and level sets ----------------------------------------------------------------------------------------------


@diameter.register
def _(region: L1Ball | LqBall, n_dim: int) -> CertifiedFloat:
    region._data(n_dim)
    return CertifiedFloat(2.0 * float(region.radius))  # the points on the axes are farthest from the center


@relative_width.register
def _(region: L1Ball | LqBall, n_dim: int) -> CertifiedFloat:
    region._data(n_dim)
    q = 1.0 if isinstance(region, L1Ball) else float(region.q)
    return CertifiedFloat(2.0 * float(region.radius) * n_dim ** (0.5 - 1.0 / q))  # the extent along (1, ..., 1)


@diameter.register
def _(region: Ellipsoid, n_dim: int) -> CertifiedFloat:
    _, _, (smallest, _), _, radius = region._data(n_dim)
    return CertifiedFloat(2.0 * radius / np.sqrt(smallest))


@relative_width.register
def _(region: Ellipsoid, n_dim: int) -> CertifiedFloat:
    _, _, (_, largest), _, radius = region._data(n_dim)
    return CertifiedFloat(2.0 * radius / np.sqrt(largest))


@diameter.register
def _(region: EntropySimplex | LogBarrierSimplex, n_dim: int) -> CertifiedFloat:
    # Let m be the midpoint of two decisions and a its largest coordinate.  phi(x) = x log x has the curvature 1 / x and
    # phi(x + h) + phi(x - h) >= 2 phi(x) + h^2 / x, hence the squared distance is at most 8 a (r - f(m)), where f is
    # the sum of phi and f(m) at least the smallest value with a coordinate a.  The bound is the maximum over a of this
    # log-concave function.  For the log barrier the curvature is 1 / x^2, and a is a^2.
    r, (smallest, largest) = region._data(n_dim), region._extremes(n_dim)
    if n_dim <= 2 or (isinstance(region, EntropySimplex) and r >= 0.0):
        return CertifiedFloat(0.0 if n_dim == 1 else np.sqrt(2.0) * (largest - smallest))

    def square(a: float) -> float:
        return 8.0 * a**region._power * (r - region._floor(a, 1.0 - a, n_dim))

    curved = _largest(square, 1.0 / n_dim, min(largest, 1.0 - 1e-16))
    # For any two decisions w.w' >= min w and w.w <= max w.
    return CertifiedFloat(float(np.sqrt(min(curved, 2.0 * (largest - smallest)))), "upper bound")


def _largest(function: Callable[[float], float], low: float, high: float) -> float:
    """Upper bound on a log-concave, hence unimodal, function: its maximum, raised by more than the search's error."""
    res = minimize_scalar(lambda a: -function(a), bounds=(low, high), method="bounded", options={"xatol": 1e-10 * high})
    return max(-float(res.fun), function(low)) * (1.0 + 1e-9)


@relative_width.register
def _(region: EntropySimplex | LogBarrierSimplex, n_dim: int) -> CertifiedFloat:
    # Within (1 - x) / sqrt(d (d - 1)) of the uniform point u every d w_j is at least x.  f(w) - f(u) is a sum of
    # phi(d w_j) with phi(1) = phi'(1) = 0 and phi'' decreasing, so phi(y) <= phi(x) (y - 1)^2 / (x - 1)^2 for y >= x:
    # f - f_min is at most a multiple of phi(x), and the ball is inside as long as that is at most r - f_min.
    d, depth = n_dim, region._data(n_dim) - region._f_min(n_dim)
    smallest, largest = region._extremes(d)
    if d <= 2:
        return CertifiedFloat(0.0 if d == 1 else np.sqrt(2.0) * (largest - smallest))

    def excess(x: float) -> float:
        entropy = isinstance(region, EntropySimplex)
        phi = float(xlogy(x, x) - x + 1.0) / (d - 1.0) if entropy else float(x - 1.0 - np.log(x)) * d / (d - 1.0)
        return phi - depth

    low = np.finfo(float).tiny
    x = low if excess(low) <= 0.0 else brentq(excess, low, 1.0, xtol=1e-15)
    while excess(x) > 0.0:  # the root is approximate; move until the inequality holds
        x += 1e-12 * (1.0 - x)
    return CertifiedFloat(2.0 * (1.0 - x) / np.sqrt(d * (d - 1.0)), "lower bound")


@diameter.register
def _(region: Markowitz | CvxpyRegion, n_dim: int) -> CertifiedFloat:
    low, high = bounding_box(region, n_dim)  # up to the solver's tolerance
    box = high - low + 2e-8 * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    most = np.sqrt(2.0) if isinstance(region, Markowitz) else np.inf  # a portfolio is in the simplex
    return CertifiedFloat(min(float(np.linalg.norm(box)), float(most)), "upper bound")


@relative_width.register
def _(region: Markowitz | CvxpyRegion, n_dim: int) -> CertifiedFloat:
    """Twice the radius of the ball in a simplex of optimal decisions, lowered by the solver's tolerance."""
    U = directions_of(region, n_dim)
    k = U.shape[1]
    if k == 0:
        return CertifiedFloat(0.0)
    # The k + 1 normals of a regular simplex, so that their decisions are spread around the region.
    normals = np.linalg.svd(np.ones((1, k + 1)))[2][1:].T @ U.T
    W = region._solve_directions(without_rounding(normals)) @ U
    radius = inradius_of_simplex(W - W[0])
    return CertifiedFloat(2.0 * max(radius - 1e-6 * max(1.0, float(np.abs(W).max())), 0.0), "lower bound")


# -- regions made of regions -------------------------------------------------------------------------------------------


@diameter.register
def _(region: Product, n_dim: int) -> CertifiedFloat:
    found = [diameter(part, columns.stop - columns.start) for columns, part in region._data(n_dim)]
    exact = all(value.kind == "exact" for value in found)
    return CertifiedFloat(float(np.linalg.norm(found)), "exact" if exact else "upper bound")


@relative_width.register
def _(region: Product, n_dim: int) -> CertifiedFloat:
    # The extents of the regions add up, and a direction of one of them alone is a direction, too.
    sizes = [(part, columns.stop - columns.start) for columns, part in region._data(n_dim)]
    found = [relative_width(part, d) for part, d in sizes if equalities_of(part, d).shape[0] < d]
    return min(found, key=lambda value: (float(value), value.kind), default=CertifiedFloat(0.0))


@diameter.register
def _(region: LinearImage, n_dim: int) -> CertifiedFloat:
    inner, m, points = _inside(region, "diameter", diameter)
    if points is not None:
        return CertifiedFloat(diameter_of_points(points))
    return CertifiedFloat(region._directions().high * float(diameter(inner, m)), "upper bound")


@relative_width.register
def _(region: LinearImage, n_dim: int) -> CertifiedFloat:
    inner, m, points = _inside(region, "relative_width", relative_width)
    U = directions_of(region, n_dim)
    if U.shape[1] == 0:
        return CertifiedFloat(0.0)
    if points is not None:
        flat = (points - points[0]) @ U
        exact = float(np.ptp(flat)) if U.shape[1] == 1 else width_of_points(flat)
        if exact is not None:
            return CertifiedFloat(exact)
    return CertifiedFloat(region._directions().low * float(relative_width(inner, m)), "lower bound")


def _inside(region: LinearImage, name: str, function: Any) -> tuple[Region, int, np.ndarray | None]:
    """Inner region, its dimension, and decisions whose hull is the image, if the inner region has few vertices."""
    inner, m = region._inner()
    if region._varies:
        raise _unknown(region, name, function)
    points = _vertices(inner, m)
    return inner, m, None if points is None else region._push(points)
