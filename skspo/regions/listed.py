"""Regions of few integer decisions, all of which are listed.

Conventions
-----------
    V (m, d) all decisions, in descending lexicographic order, so that of equal costs lower indices are chosen
    S = C V^T (n, m) their costs in each row;  w*(c) = the first row of V whose cost is least

The list is found once, by a search over the decisions one variable after the other, which leaves out what no further
choice can make feasible.  If parameters vary by sample, the list is that of all samples together, and each row uses
those of its decisions that are feasible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if

from .._utils.errors import InfeasibleRegionError
from .._utils.limits import BLOCK_NUMBERS, check_time
from ._oracles.highs import NOTHING, worst_rows
from ._oracles.highs_linear import usual_cost
from ._rows import EMPTY, row_error
from ._tolerances import EXACT, RANK, ROUNDING
from .image import LinearImage
from .polyhedral import InequalityForm, PolyhedralRegion, StandardForm, _has_standard_form
from .simplex import Simplex

if TYPE_CHECKING:
    import cvxpy as cp

MOST_POINTS = 100_000  # decisions in a list; a row of costs then takes as long as the smallest programs of HiGHS
SEARCH = 2**26  # numbers that the search computes at most: about half a second


class PointList:
    """All decisions of a region, shape (m, d), and its constraints, whose vectors may have one row for each sample."""

    def __init__(self, V: np.ndarray, form: InequalityForm) -> None:
        self.V, self.A_ub, self.A_eq = V, form.A_ub, form.A_eq
        differ = {name: (vector != vector[:1]).any(axis=0) for name, vector in form.varying().items()}
        #: entries of the vectors that are not the same for all samples
        self.differ = {name: np.flatnonzero(some) for name, some in differ.items()}
        self.columns = np.ascontiguousarray(V.T)
        self.size = np.abs(V).max(axis=0, initial=0.0)

    @cached_property
    def hull(self) -> LinearImage:
        """Convex hull: the image of the simplex of their weights."""
        return LinearImage(Simplex(), self.columns)

    @cached_property
    def normals(self) -> np.ndarray:
        """Orthonormal rows E with E w constant."""
        centered = self.V - self.V[0]
        values, vectors = np.linalg.eigh(centered.T @ centered)
        return vectors[:, values <= RANK * max(float(values[-1]), 1.0)].T

    def argmin(self, C: np.ndarray, sides: Mapping[str, np.ndarray] = NOTHING) -> np.ndarray:
        """Cheapest decision of each row; ``sides`` are the vectors of the form that vary by sample."""
        W = np.empty_like(C)
        for rows, more in self._excess(C, sides):
            W[rows] = self.V[more.argmin(axis=1)]
        return W

    def worst(self, C: np.ndarray, C_true: np.ndarray, sides: Mapping[str, np.ndarray] = NOTHING) -> np.ndarray:
        """Among the cheapest decisions of each row the one that costs most under ``C_true``."""
        W = np.empty_like(C)
        for rows, more in self._excess(C, sides):
            tied = more <= ROUNDING * usual_cost(C[rows], self.V[more.argmin(axis=1)])[:, None]
            W[rows] = self.V[np.where(tied, C_true[rows] @ self.columns, -np.inf).argmax(axis=1)]
        return W

    def _excess(self, C: np.ndarray, sides: Mapping[str, np.ndarray]) -> Iterator[tuple[slice, np.ndarray]]:
        """What each decision costs more than the cheapest one, for blocks of rows."""
        step = max(BLOCK_NUMBERS // max(len(self.V), 1), 16)
        largest = np.abs(C) @ self.size
        for start in range(0, len(C), step):
            check_time()
            rows = slice(start, start + step)
            S = C[rows] @ self.columns
            if sides:
                S[~self._feasible({name: vector[rows] for name, vector in sides.items()})] = np.inf
            least = S.min(axis=1, initial=np.inf)
            if np.isinf(least).any():
                raise row_error(InfeasibleRegionError, start + int(np.isinf(least).argmax()), EMPTY)
            S -= least[:, None]
            close = S <= ROUNDING * largest[rows][:, None]
            unclear = np.flatnonzero(close.sum(axis=1) > 1)
            if unclear.size:
                S[unclear] = self._exact_excess(C[rows][unclear], close[unclear], largest[rows][unclear])
            yield rows, S

    def _exact_excess(self, C: np.ndarray, close: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """What decisions whose costs are close cost more than the cheapest, also if prices of 1e12 hide other costs.

        Costs are split into multiples of a power of two, whose sums are exact, and rests that are tiny.
        """
        power = np.ldexp(1.0, np.frexp(largest)[1] + 1)[:, None]
        rounded = (C + power) - power
        first = close.argmax(axis=1)[:, None]
        more = np.zeros(close.shape)  # cost, less that of the first of them
        for part in (rounded, C - rounded):
            S = part @ self.columns
            more += S - np.take_along_axis(S, first, axis=1)
        more[~close] = np.inf
        return np.asarray(more - more.min(axis=1)[:, None])

    def _feasible(self, sides: dict[str, np.ndarray]) -> np.ndarray:
        """Which decisions are feasible for vectors of the form with one row for each sample."""
        n = len(next(iter(sides.values())))
        feasible = np.ones((n, len(self.V)), dtype=bool)
        for name, bound in sides.items():
            amounts, terms = self._amounts[name]
            for j in self.differ[name]:
                over = amounts[j] - bound[:, [j]]
                over = np.abs(over) if name == "b_eq" else -over if name == "lower" else over
                feasible &= over <= EXACT * (terms[j] + np.abs(bound[:, [j]]))
        return feasible

    @cached_property
    def _amounts(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """What each vector of the form limits, for all decisions, and the sum of its absolute terms."""
        size = np.abs(self.columns)
        return {
            "b_ub": (self.A_ub @ self.columns, abs(self.A_ub) @ size),
            "b_eq": (self.A_eq @ self.columns, abs(self.A_eq) @ size),
            "lower": (self.columns, size),
            "upper": (self.columns, size),
        }


def list_points(form: InequalityForm) -> PointList | None:
    """All integer points of a polyhedron, of all samples together; None if there are many, or the search takes long."""
    b_ub, b_eq, lower, upper = map(np.atleast_2d, (form.b_ub, form.b_eq, form.lower, form.upper))
    lower, upper = np.ceil(lower.min(axis=0) - EXACT), np.floor(upper.max(axis=0) + EXACT)
    A = sp.csc_array(sp.vstack([form.A_ub, form.A_eq]))
    if A.shape[0] * A.shape[1] > SEARCH or not (np.isfinite(lower) & np.isfinite(upper)).all():
        return None
    low = np.append(np.full(b_ub.shape[1], -np.inf), b_eq.min(axis=0))
    high = np.append(b_ub.max(axis=0), b_eq.max(axis=0))
    V = _search(A, low, high, lower, upper)
    if V is None:
        return None
    # The search is generous: rounding errors of partial sums are relative to the largest decisions.
    amounts, terms = A @ V.T, abs(A) @ np.abs(V.T)
    room = EXACT * (terms + np.abs(high)[:, None])
    feasible = (amounts <= high[:, None] + room) & (amounts >= low[:, None] - room)
    return PointList(V[feasible.all(axis=0)], form)


def _search(
    A: sp.csc_array, low: np.ndarray, high: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray | None:
    """Integer points with low <= A w <= high, choosing the variables one after the other."""
    dense = A.toarray()
    ends = np.sort(np.stack([dense * lower, dense * upper]), axis=0)
    # What the variables from j on can add at least and at most.
    least, most = (np.cumsum(end[:, ::-1], axis=1)[:, ::-1] for end in ends)
    least, most = (np.append(rest, np.zeros((len(rest), 1)), axis=1) for rest in (least, most))
    room = EXACT * (np.abs(ends).max(axis=0).sum(axis=1) + np.abs(high))
    low, high = low - room, high + room
    amounts = np.zeros((A.shape[0], 1))
    steps: list[tuple[np.ndarray, np.ndarray]] = []
    work = 0.0
    for j in range(A.shape[1]):
        check_time()
        own = A.indices[A.indptr[j] : A.indptr[j + 1]]
        work += float(amounts.size + (own.size + 1) * amounts.shape[1] * (upper[j] - lower[j] + 1.0))
        if work > SEARCH:
            return None
        values = np.arange(upper[j], lower[j] - 1.0, -1.0)
        after = amounts[own][:, :, None] + dense[own, j][:, None, None] * values
        possible = after + least[own, j + 1][:, None, None] <= high[own][:, None, None]
        possible &= after + most[own, j + 1][:, None, None] >= low[own][:, None, None]
        parent, value = np.nonzero(possible.all(axis=0))
        if parent.size > MOST_POINTS:
            return None
        amounts = amounts[:, parent]
        amounts[own] = after[:, parent, value]
        steps.append((parent, values[value]))
    V = np.empty((amounts.shape[1], A.shape[1]))
    point = np.arange(len(V))
    for j, (parent, value) in reversed(list(enumerate(steps))):
        V[:, j], point = value[point], parent[point]
    return V


class IntegerRegion(PolyhedralRegion):
    """Base class of regions of integers.  Those of few decisions have the capabilities of their convex hull."""

    @property
    def oracle_is_solver(self) -> bool:
        """Whether HiGHS is needed, because there are too many decisions for a list."""
        return self._points() is None

    def relaxation(self) -> PolyhedralRegion:
        """Return the same region with ``integer=False``."""
        if not self.integer:
            return self
        return self._with_same_rows(type(self)(**(self.get_params(deep=False) | {"integer": False})))

    def _points(self, n_dim: int | None = None) -> PointList | None:
        """All decisions; None if not all of them are integers, or if there are many."""
        d = self.n_dim if n_dim is None else n_dim
        if d is None or not self._all_integers(d):
            return None
        entry = self._entry(d)
        kept = self._cache if self._rows is None else self._rows.cache
        if "points" not in kept or kept["points"][0] is not entry:
            kept["points"] = [entry, self._list(d)]
        return kept["points"][1]

    def _list(self, d: int) -> PointList | None:
        return list_points(self._constraints(d))

    def _all_integers(self, d: int) -> bool:
        return not self._is_polyhedron

    def _hull(self, d: int) -> LinearImage:
        points = self._points(d)
        assert points is not None
        return points.hull

    @available_if(lambda region: has_hull(region) or _has_standard_form(region))
    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """Return the convex hull as {A u = b, lower <= u <= upper, w = P u}."""
        return (
            super().standard_form(n_dim) if self._is_polyhedron else self._hull(self.resolve_dim(n_dim)).standard_form()
        )

    @available_if(lambda region: has_hull(region) or region._is_polyhedron)
    def repair(self, W: np.ndarray) -> np.ndarray:
        """Move nearly feasible decisions into the convex hull."""
        return super().repair(W) if self._is_polyhedron else self._hull(W.shape[1]).repair(W)

    @property
    def _repair_is_solver(self) -> bool:
        """True for points of a convex hull."""
        return not self._is_polyhedron

    @available_if(lambda region: has_hull(region) or region._is_polyhedron)
    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function."""
        return super().support_epigraph(V) if self._is_polyhedron else self._hull(V.shape[1]).support_epigraph(V)

    @available_if(lambda region: region._is_polyhedron or region._rows is not None or has_hull(region))
    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal rows E with E w constant on the region; if it varies, those of all samples that are given."""
        points = self._points(n_dim) if self._rows is None else None
        return super().equalities(n_dim) if points is None else points.normals

    @available_if(lambda region: region._is_polyhedron or region._points() is not None)
    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        form, points = self._constraints(C.shape[1]), self._points(C.shape[1])
        if points is not None:
            return points.worst(C, C_true, form.varying())
        return worst_rows(self._data(C.shape[1]).form, C, C_true, n_jobs=self.n_jobs, rows=form.varying())


def has_hull(region: IntegerRegion) -> bool:
    """Whether the convex hull of all decisions is known, and is the same for all samples."""
    return region._rows is None and region._points() is not None
