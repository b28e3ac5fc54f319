"""Polyhedra whose bounds and right-hand sides differ from sample to sample.

Conventions
-----------
    row form         {w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}    matrices of all samples, one row of
    standard form    {u : A u = b, lower <= u <= upper},  w = (u_1, ..., u_d)    b, lower and upper for each sample

An option that does not exist today has the bounds 0 and 0.  A variable is open in a sample if it is strictly between
its bounds at some decision: the bounds differ, and no constraint holds it at one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import null_space
from sklearn.utils.metaestimators import available_if

from .._utils.deadline import TimeIsUp, check_time
from .._utils.errors import InfeasibleRegionError, SolverError
from ._row_names import row_error, rows_named
from .per_sample import RowRegion
from .polyhedral import InequalityForm, StandardForm, polyhedral_geometry

if TYPE_CHECKING:
    import cvxpy as cp

#: samples that agree in which bounds exist and differ are treated together; with more sets of such samples there is no
#: standard form, because solvers would have to treat most samples one by one
MOST_PATTERNS = 64

#: largest violation of decisions of an oracle
FEASIBLE = 1e-8

#: an interior point is carried over from one sample to another if no slack shrinks by more than this factor
CARRIED = 0.1


class RowForm(NamedTuple):
    """{w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}, with one row of vectors for each sample."""

    A_ub: sp.csr_array
    b_ub: np.ndarray  # (n, m)
    A_eq: sp.csr_array
    b_eq: np.ndarray  # (n, k)
    lower: np.ndarray  # (n, d)
    upper: np.ndarray  # (n, d)

    def standard(self) -> StandardForm:
        """Add one slack per inequality."""
        (n, m), d = self.b_ub.shape, self.lower.shape[1]
        plain = InequalityForm.build(d, self.A_ub, np.zeros(m), self.A_eq, np.zeros(self.b_eq.shape[1])).standard()
        return plain._replace(
            b=np.concatenate([self.b_eq, self.b_ub], axis=1),
            lower=np.concatenate([self.lower, np.zeros((n, m))], axis=1),
            upper=np.concatenate([self.upper, np.full((n, m), np.inf)], axis=1),
        )

    def violation(self, W: np.ndarray) -> np.ndarray:
        """Largest violation of any constraint, one number per row of ``W``, relative to the decision."""
        parts = [
            (self.A_ub @ W.T).T - self.b_ub,
            np.abs((self.A_eq @ W.T).T - self.b_eq),
            self.lower - W,
            W - self.upper,
        ]
        return np.concatenate(parts, axis=1).max(axis=1, initial=0.0) / (1.0 + np.abs(W).max(axis=1, initial=0.0))


class Interior(NamedTuple):
    """A point of each sample's standard form that is strictly inside the bounds of its open variables."""

    center: np.ndarray  # (n, N)
    open: np.ndarray  # (n, N)


def patterns(table: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Equal rows of a boolean table: each of them, and the numbers of the rows."""
    if not table.shape[0]:
        return
    packed = np.ascontiguousarray(np.packbits(table, axis=1))
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    cuts = np.cumsum(np.bincount(inverse.ravel()))[:-1]
    for row, rows in zip(first, np.split(order, cuts), strict=True):
        yield table[row], rows


def _has_form(view: RowPolyhedral) -> bool:
    """Whether there is a standard form: no variable is without bounds, and few sets of bounds exist."""
    if not view._is_polyhedron:
        return False
    cache = view.__dict__.setdefault("_cache", {})
    if "has form" not in cache:
        form = view.row_form(view._n_columns())
        bounded = bool((np.isfinite(form.lower) | np.isfinite(form.upper)).all())
        few = bounded and sum(1 for _ in patterns(_kinds(form.lower, form.upper))) <= MOST_PATTERNS
        cache["has form"] = few
    return cache["has form"]


_if_polyhedron = available_if(lambda view: view._is_polyhedron)


def _kinds(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Which bounds exist, and which of them differ."""
    return np.concatenate([np.isfinite(lower), np.isfinite(upper), lower < upper], axis=1)


class RowPolyhedral(RowRegion):
    """View of a polyhedral region with one set of bounds and right-hand sides for each row of costs.

    A subclass writes ``_argmin`` and ``row_form``; the other capabilities follow from the latter.
    """

    @property
    def _is_polyhedron(self) -> bool:
        """Whether the decisions of a sample are all points of its polyhedron, and not only the integer ones."""
        return True

    def row_form(self, n_dim: int) -> RowForm:
        """Return the polyhedron of each sample."""
        raise NotImplementedError

    def _form_with(self, n_dim: int, **varying: np.ndarray) -> RowForm:
        """Row form of the plain region with other vectors."""
        form = self._plain_form(n_dim)
        vectors = {
            name: np.broadcast_to(varying.get(name, getattr(form, name)), (self.n_rows, getattr(form, name).size))
            for name in ("b_ub", "b_eq", "lower", "upper")
        }
        return RowForm(A_ub=form.A_ub, A_eq=form.A_eq, **vectors)

    def _plain_form(self, n_dim: int) -> InequalityForm:
        """Constraints of the plain region."""
        region: Any = self.region
        return region.inequality_form(n_dim)

    def _own_bounds(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        form = self.row_form(d)
        return form.lower, form.upper

    def _n_columns(self) -> int:
        """Number of decision variables, from the region or from the rows."""
        own = self.region.n_dim
        return max(array.shape[1] for array in self.rows.values() if array.ndim == 2) if own is None else own

    @available_if(_has_form)
    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """Return {A u = b, lower <= u <= upper}; b, lower and upper have one row for each sample."""
        return self.row_form(self._n_columns()).standard()

    def take(self, rows: slice | np.ndarray) -> RowRegion:
        """View of some of the rows."""
        some = super().take(rows)
        cache = self.__dict__.get("_cache", {})
        if "interior" in cache:
            some.__dict__["_cache"] = {"interior": Interior(*(array[rows] for array in cache["interior"]))}
        if cache.get("has form"):
            some.__dict__.setdefault("_cache", {})["has form"] = True
        return some

    def interior(self) -> Interior:
        """Interior points of the standard forms (cached)."""
        cache = self.__dict__.setdefault("_cache", {})
        found = cache.get("interior")
        if found is None:
            with rows_named(self._row_names.of):
                found = _interior(self.row_form(self._n_columns()).standard())
            cache["interior"] = found
        return found

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal basis of the given equalities and of the variables that are fixed in every sample."""
        form = self.row_form(self._n_columns())
        fixed = np.eye(form.lower.shape[1])[(form.lower == form.upper).all(axis=0)]
        return _basis(np.concatenate([form.A_eq.toarray(), fixed]))

    def _always_hidden(self, d: int) -> np.ndarray:
        """The given equalities: the bounds of other samples may differ."""
        return _basis(self.row_form(d).A_eq.toarray())

    @_if_polyhedron
    def repair(self, W: np.ndarray) -> np.ndarray:
        """Move nearly feasible decisions into the region: project on the affine hull, shrink towards the interior."""
        form, d = self.row_form(W.shape[1]), W.shape[1]
        standard = form.standard()
        try:
            center, is_open = self.interior()
        except TimeIsUp:
            # Averages of the oracle's decisions, which have its accuracy, are feasible without repair.
            if form.violation(W).max(initial=0.0) <= FEASIBLE:
                return W
            raise SolverError("There was no time to find a point inside the region of each sample.") from None
        step = W - center[:, :d]
        for kept, rows in patterns(is_open):
            equal = np.concatenate([form.A_eq.toarray(), np.eye(d)[~kept[:d]], form.A_ub.toarray()[~kept[d:]]])
            # Products with directions, not differences: rounding errors of large steps stay within the affine hull.
            U = null_space(_basis(equal)) if equal.size else np.eye(d)
            step[rows] = (step[rows] @ U) @ U.T
        move = np.concatenate([step, -(form.A_ub @ step.T).T], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(move > 0, move / (standard.upper - center), -move / (center - standard.lower))
        excess = np.where(is_open, excess, 0.0).max(axis=1, initial=1.0)
        return center[:, :d] + step / excess[:, None]

    @_if_polyhedron
    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row; see ``PolyhedralRegion.support_epigraph``."""
        import cvxpy as cp

        d = V.shape[1]
        form = self.row_form(d)
        up, low = np.isfinite(form.upper), np.isfinite(form.lower)
        some = up.any(axis=0)
        total, terms, constraints = 0.0 * V, [], []
        for matrix, rhs, inequality in (
            (form.A_ub, form.b_ub, True),
            (form.A_eq, form.b_eq, False),
            (sp.eye_array(d, format="csr")[some], np.where(up, form.upper, 0.0)[:, some], True),
        ):
            if rhs.shape[1]:
                y = cp.Variable(rhs.shape, nonneg=inequality)
                total = total + y @ matrix
                terms.append(cp.sum(cp.multiply(rhs, y), axis=1))
        if not up[:, some].all():  # the multiplier of a missing bound is zero
            constraints.append(cp.multiply((~up[:, some]).astype(float), y) == 0)
        # The multipliers of the lower bounds are eliminated: r = total - V.
        excess = total - V
        terms.append(-cp.sum(cp.multiply(np.where(low, form.lower, 0.0), excess), axis=1))
        constraints.append(excess >= 0)
        if not low.all():
            constraints.append(cp.multiply((~low).astype(float), excess) == 0)
        return reduce(add, terms), constraints


def _basis(A: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the rows of a matrix."""
    if not A.size:
        return np.zeros((0, A.shape[1]))
    _, sv, Vt = np.linalg.svd(A, full_matrices=False)
    return Vt[sv > 1e-10 * max(float(sv[0]), 1e-300)]


def _interior(form: StandardForm) -> Interior:
    """Interior points: one linear program where no other sample's point can be carried over."""
    n, N = form.lower.shape
    center, is_open = np.empty((n, N)), form.lower < form.upper
    A = form.A.toarray()
    for _, rows in patterns(_kinds(form.lower, form.upper)):
        _, first, inverse = np.unique(
            np.concatenate([form.b[rows], form.lower[rows], form.upper[rows]], axis=1),
            axis=0,
            return_index=True,
            return_inverse=True,
        )
        todo, like = rows[first], rows[first][inverse.ravel()]
        while todo.size:
            check_time()
            i, todo = int(todo[0]), todo[1:]
            center[i], is_open[i] = _interior_point(form, i)
            # Linear programs are solved to a tolerance of 1e-7.
            room = np.where(is_open[i], np.minimum(center[i] - form.lower[i], form.upper[i] - center[i]), 0.0)
            better = _onto(A, form.b[[i]], center[[i]], room)[0]
            if (np.abs(better - center[i]) <= 0.5 * room).all():
                center[i] = better
            if todo.size and (is_open[i] == (form.lower[i] < form.upper[i])).all():
                trial, good = _carry(A, form, center[i], i, todo)
                center[todo[good]] = trial[good]
                todo = todo[~good]
        center[rows], is_open[rows] = center[like], is_open[like]
    return Interior(center, is_open)


def _interior_point(form: StandardForm, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Interior point of one sample, and its open variables, by a linear program."""
    lower, upper = form.lower[i], form.upper[i]
    one = InequalityForm.build(lower.size, A_eq=form.A, b_eq=form.b[i], lower=lower, upper=upper)
    try:
        geometry = polyhedral_geometry(one)
    except InfeasibleRegionError:
        text = "The region of {row} is empty: no decision satisfies its constraints (region_params)."
        raise row_error(InfeasibleRegionError, i, text) from None
    up, low, is_open = np.isfinite(upper), np.isfinite(lower), np.ones(lower.size, dtype=bool)
    is_open[up] &= geometry.strict[: up.sum()]
    is_open[low] &= geometry.strict[up.sum() :]
    at_upper = np.zeros(lower.size, dtype=bool)
    at_upper[up] = ~geometry.strict[: up.sum()]
    center = np.where(is_open, geometry.center, np.where(at_upper, upper, lower))
    return center, is_open


def _onto(A: np.ndarray, b: np.ndarray, points: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Move points, one in each row, to A u = b, variables with much room most and those without room not at all."""
    most = 10.0 * room[np.isfinite(room)].max(initial=0.1)
    weight = np.minimum(room, most) ** 2  # variables without bounds have infinite room
    move = (weight * A).T @ np.linalg.pinv((A * weight) @ A.T, hermitian=True)
    for _ in range(2):  # the second time for rounding errors
        points = points + (b - points @ A.T) @ move.T
    return points


def _carry(
    A: np.ndarray, form: StandardForm, center: np.ndarray, i: int, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Points of other samples at the same place between their bounds, moved to A u = b; and which are good enough."""
    lower, upper = form.lower[rows], form.upper[rows]
    low, up = np.isfinite(form.lower[i]), np.isfinite(form.upper[i])
    is_open, both = form.lower[i] < form.upper[i], low & up
    below, above = center - form.lower[i], form.upper[i] - center  # infinite where there is no bound
    with np.errstate(invalid="ignore"):
        share = np.where(both & is_open, below / (below + above), 0.0)
        between = lower + share * (upper - lower)
        trial = np.where(both, between, np.where(low, lower + below, np.where(up, upper - above, center)))
    trial = _onto(A, form.b[rows], trial, np.where(is_open, np.minimum(below, above), 0.0))
    size = 1.0 + np.abs(trial).max(axis=1)
    with np.errstate(invalid="ignore"):
        inside = ((trial - lower >= CARRIED * below) | ~low | ~is_open) & (
            (upper - trial >= CARRIED * above) | ~up | ~is_open
        )
    residual = np.abs(trial @ A.T - form.b[rows]).max(axis=1, initial=0.0)
    return trial, inside.all(axis=1) & (residual <= 1e-12 * size * (1.0 + np.abs(A).sum(axis=1).max(initial=0.0)))


def check_available(label: str, available: np.ndarray, least: np.ndarray | int, what: str) -> None:
    """Raise an error that names a row with fewer available options than it needs."""
    count = available.sum(axis=1)
    short = count < least
    if short.any():
        row = int(np.argmax(short))
        needs = int(np.broadcast_to(least, count.shape)[row])
        text = f"{label}: the region of {{row}} is empty, {int(count[row])} of {available.shape[1]} options are "
        raise row_error(InfeasibleRegionError, row, text + f"available (region_params) and {what} {needs}.")


def rows_like(rows: dict[str, np.ndarray], name: str, default: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Values of a parameter in each row: the given ones, or the same for all."""
    n = next(iter(rows.values())).shape[0]
    return rows[name] if name in rows else np.broadcast_to(np.asarray(default), (n, *shape))
