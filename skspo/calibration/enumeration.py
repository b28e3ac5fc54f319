"""Vertices of small polyhedra, and from them the exact diameter and width.

Conventions
-----------
    P = {x in R^k : N x <= s} with s > 0       bounded, the origin strictly inside
    K = P - P = {x - y : x, y in P}            symmetric about the origin

The extent of P in a direction v, max v.x - min v.x, is the support function of K.  Its smallest value over unit vectors
is the distance of the origin to the nearest facet of K, because the largest ball around the origin in K touches that
facet.  Hence the facets of K give the exact width.
"""

from __future__ import annotations

from math import comb

import numpy as np
from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

#: vertices are enumerated if there are at most so many in at most so many dimensions: the hull of all differences
#: grows quickly with both
MAX_VERTICES = 100
MAX_DIM = 5


def most_vertices(n_rows: int, k: int) -> int:
    """Largest number of vertices of a polytope with ``n_rows`` facets in ``k`` dimensions (McMullen's theorem)."""
    if k <= 1 or n_rows <= k:
        return 2
    return comb(n_rows - (k + 1) // 2, n_rows - k) + comb(n_rows - (k + 2) // 2, n_rows - k)


def enumerate_vertices(N: np.ndarray, s: np.ndarray) -> np.ndarray | None:
    """Vertices of {x : N x <= s}, s > 0, one per row; None if there may be too many of them."""
    k = N.shape[1]
    if k < 2 or k > MAX_DIM or most_vertices(N.shape[0], k) > MAX_VERTICES:
        return None
    norms = np.linalg.norm(N, axis=1)
    keep = norms > 0
    try:
        half = HalfspaceIntersection(np.column_stack([N, -s])[keep] / norms[keep, None], np.zeros(k))
    except QhullError:
        return None
    points = half.intersections
    if not np.isfinite(points).all():
        return None
    # A vertex is found several times if more than k rows meet in it.
    size = np.abs(points).max(initial=0.0)
    _, first = np.unique(np.round(points / (1e-9 * size), 0), axis=0, return_index=True)
    return points[np.sort(first)]


def diameter_of_points(points: np.ndarray) -> float:
    """Largest distance between two points."""
    return float(np.sqrt(max(float(np.square(points - p).sum(axis=1).max()) for p in points)))


def width_of_points(points: np.ndarray) -> float | None:
    """Smallest extent of the hull of ``points`` over all unit directions; None if Qhull fails."""
    differences = (points[:, None, :] - points[None, :, :]).reshape(-1, points.shape[1])
    try:
        hull = ConvexHull(differences)
    except QhullError:
        return None
    # Each row of equations is a unit normal n and an offset b with n.x + b <= 0 on the hull.
    return float((-hull.equations[:, -1]).min())


def inradius_of_simplex(points: np.ndarray) -> float:
    """Radius of the largest ball in the simplex with the given k + 1 vertices in R^k; 0 if it is flat."""
    k = points.shape[1]
    system = np.column_stack([points, np.ones(k + 1)])
    if np.linalg.cond(system) > 1e12:
        return 0.0
    # Barycentric coordinates are affine functions; their slopes are the inverse heights over the facets.
    slopes = np.linalg.inv(system)[:k]
    return float(1.0 / np.linalg.norm(slopes, axis=0).sum())
