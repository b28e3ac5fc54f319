"""Polyhedra: the forms in which they are written, and the base class of regions that have such a form.

Conventions
-----------
    inequality form    {w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}           as in scipy.optimize.linprog
    standard form      {u : A u = b, lower <= u <= upper},  w = P u                       slacks follow w
    dual of the support function, with one multiplier per row and per finite bound:

        support_S(v) = min  b_ub.y + b_eq.z + upper.s - lower.r
                       s.t. A_ub^T y + A_eq^T z + s - r = v,   y, s, r >= 0

If the region varies by sample, matrices are those of all samples, and vectors have one row for each.  An option that
does not exist today has the bounds 0 and 0.  A variable is open in a sample if it is strictly between its bounds at
some decision: the bounds differ, and no constraint holds it at one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg import null_space
from scipy.optimize import linprog
from sklearn.utils.metaestimators import available_if

from .._utils.errors import InfeasibleRegionError, SolverError
from .._utils.limits import CLOCKS_DIFFER, TimeIsUp, check_time, predicted_seconds, time_left
from ._rows import EMPTY, row_error, rows_named
from ._tolerances import FEASIBLE, RANK, ROUNDING, SOLVER
from .base import Region
from .capabilities import project_visible

if TYPE_CHECKING:
    import cvxpy as cp

#: a dense matrix or a sparse one
Matrix: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix


class StandardForm(NamedTuple):
    """{u : A u = b, lower <= u <= upper} with decisions w = project @ u (None: the first d entries of u).

    If the region varies by sample, b, lower and upper have one row for each sample.
    """

    A: sp.csr_array
    b: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    project: sp.csr_array | None = None

    @property
    def varies(self) -> bool:
        """Whether b, lower and upper have one row for each sample."""
        return self.b.ndim == 2

    def map_to(self, d: int) -> sp.csr_array:
        """``project`` as a matrix, for d decisions."""
        return sp.eye_array(d, self.lower.shape[-1], format="csr") if self.project is None else self.project


class QuadraticForm(NamedTuple):
    """{u >= 0, sum u = b} in standard form with w^T Q w <= limit, and a strictly feasible u (None: there is none)."""

    standard: StandardForm
    Q: np.ndarray
    limit: float
    inside: np.ndarray | None


@dataclass(frozen=True)
class InequalityForm:
    """{w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}; vectors may have one row for each sample."""

    A_ub: sp.csr_array
    b_ub: np.ndarray
    A_eq: sp.csr_array
    b_eq: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @staticmethod
    def build(
        d: int,
        A_ub: Matrix | None = None,
        b_ub: ArrayLike | None = None,
        A_eq: Matrix | None = None,
        b_eq: ArrayLike | None = None,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
    ) -> InequalityForm:
        """Use defaults for what is missing; matrices become sparse, vectors float64."""
        none = np.zeros(0)
        A_ub, A_eq = (sp.csr_array((0, d) if A is None else A, dtype=np.float64) for A in (A_ub, A_eq))
        b_ub, b_eq = (none if b is None else np.atleast_1d(np.asarray(b, dtype=np.float64)) for b in (b_ub, b_eq))
        ends = [np.asarray(end, dtype=np.float64) for end in (lower, upper)]
        low, high = (np.array(np.broadcast_to(end, np.broadcast_shapes(end.shape, (d,)))) for end in ends)
        return InequalityForm(A_ub, b_ub, A_eq, b_eq, low, high)

    @cached_property
    def A(self) -> sp.csr_array:
        """Inequalities, then equalities."""
        return sp.csr_array(sp.vstack([self.A_ub, self.A_eq], format="csr"))

    @cached_property
    def sizes(self) -> sp.csr_array:
        """Absolute values of ``A``."""
        return abs(self.A)

    @cached_property
    def largest(self) -> np.ndarray:
        """Largest absolute value of each row of ``A``."""
        return np.asarray(self.sizes.max(axis=1).toarray()).ravel() if self.A.shape[0] else np.zeros(0)

    @cached_property
    def factors(self) -> np.ndarray:
        """Powers of two that scale the largest coefficient of each row of ``A`` to [0.5, 1)."""
        return np.ldexp(1.0, -np.frexp(self.largest)[1])

    @cached_property
    def scaled(self) -> InequalityForm:
        """The same constraints, their rows multiplied by ``factors``."""
        above, equal = np.split(self.factors, [self.A_ub.shape[0]])
        A_ub, A_eq = (sp.csr_array(sp.diags_array(f) @ A) for f, A in ((above, self.A_ub), (equal, self.A_eq)))
        return InequalityForm(A_ub, self.b_ub * above, A_eq, self.b_eq * equal, self.lower, self.upper)

    def varying(self) -> dict[str, np.ndarray]:
        """Vectors that have one row for each sample."""
        vectors = {name: getattr(self, name) for name in ("b_ub", "b_eq", "lower", "upper")}
        return {name: vector for name, vector in vectors.items() if vector.ndim == 2}

    def in_rows(self) -> InequalityForm:
        """The same with one row of all vectors for each sample, if some have."""
        vectors = {name: getattr(self, name) for name in ("b_ub", "b_eq", "lower", "upper")}
        if not (varying := self.varying()):
            return self
        n = len(next(iter(varying.values())))
        return replace(self, **{name: np.broadcast_to(x, (n, x.shape[-1])) for name, x in vectors.items()})

    def standard(self) -> StandardForm:
        """Add one slack per inequality."""
        m, form = self.A_ub.shape[0], self.in_rows()
        A = sp.csr_array(
            sp.block_array(
                [[self.A_eq, sp.csr_array((self.A_eq.shape[0], m))], [self.A_ub, sp.eye_array(m, format="csr")]]
            )
        )
        return StandardForm(
            A,
            np.concatenate([form.b_eq, form.b_ub], axis=-1),
            np.concatenate([form.lower, np.zeros_like(form.b_ub)], axis=-1),
            np.concatenate([form.upper, np.full_like(form.b_ub, np.inf)], axis=-1),
        )

    def inequalities(self) -> tuple[sp.csr_array, np.ndarray]:
        """All inequalities and finite bounds as one system M w <= q."""
        eye = sp.eye_array(self.lower.size, format="csr")
        up, low = np.isfinite(self.upper), np.isfinite(self.lower)
        M = sp.csr_array(sp.vstack([self.A_ub, eye[up], -eye[low]], format="csr"))
        return M, np.concatenate([self.b_ub, self.upper[up], -self.lower[low]])

    def loose(self) -> np.ndarray:
        """Inequalities that no decision between the bounds reaches, of any sample."""
        form = self.in_rows()
        positive, negative = form.A_ub.maximum(0.0), form.A_ub.minimum(0.0)
        with np.errstate(invalid="ignore"):
            loose = form.b_ub > (positive @ form.upper.T + negative @ form.lower.T).T
        return loose.all(axis=0) if loose.ndim == 2 else loose

    def without(self, loose: np.ndarray) -> InequalityForm:
        """Without some of the inequalities."""
        return replace(self, A_ub=self.A_ub[~loose], b_ub=self.b_ub[..., ~loose]) if loose.any() else self

    def violation(self, W: np.ndarray) -> np.ndarray:
        """Largest violation of any constraint, one number per row of ``W``."""
        over = [(self.A_ub @ W.T).T - self.b_ub, self.lower - W, W - self.upper]
        return np.concatenate([*over, np.abs((self.A_eq @ W.T).T - self.b_eq)], axis=1).max(axis=1, initial=0.0)


class PolyhedralGeometry(NamedTuple):
    """A relative interior point, all implied equalities, and the affine hull."""

    center: np.ndarray  # (d,) strictly inside every inequality that is not an equality on S
    strict: np.ndarray  # rows of InequalityForm.inequalities() that can be strict on S
    normals: np.ndarray  # (d - k, d) orthonormal rows E with E w constant on S

    def directions(self) -> np.ndarray:
        """Orthonormal basis of the directions in which decisions vary, shape (d, k)."""
        return null_space(self.normals) if self.normals.size else np.eye(self.center.size)


def relative_interior(form: InequalityForm) -> tuple[np.ndarray, np.ndarray]:
    """Return ``center`` and ``strict`` of ``PolyhedralGeometry``, by one linear program.

    Maximize the number of strict inequalities over the cone above S:

        max sum_j s_j   s.t.   M u + s <= t q,   A_eq u = t b_eq,   0 <= s <= 1,   t >= 1.

    If (u, t) is scaled up, every inequality that can be strict reaches s_j = 1.  So s_j = 0 for the implied equalities
    and for no others, and u / t is a relative interior point.
    """
    M, q = form.inequalities()
    m, d = M.shape
    scale = np.maximum(np.maximum(np.abs(M).max(axis=1).toarray().ravel() if m else np.zeros(0), np.abs(q)), 1e-300)
    M, q = sp.csr_array(sp.diags_array(1.0 / scale) @ M), q / scale
    A_ub = sp.hstack([M, sp.eye_array(m), -q[:, None]], format="csr")
    k = form.b_eq.size
    A_eq = sp.hstack([form.A_eq, sp.csr_array((k, m)), -form.b_eq[:, None]], format="csr") if k else None
    bounds = [(None, None)] * d + [(0.0, 1.0)] * m + [(1.0, None)]
    cost = np.concatenate([np.zeros(d), -np.ones(m), [0.0]])
    limit = {"time_limit": max(time_left(), 0.0)} if time_left() < np.inf else {}
    b_eq = np.zeros(k) if k else None
    res = linprog(cost, A_ub=A_ub, b_ub=np.zeros(m), A_eq=A_eq, b_eq=b_eq, bounds=bounds, options=limit)
    if res.status == 1:
        check_time(CLOCKS_DIFFER)
    if res.status == 2:
        raise InfeasibleRegionError("The region is empty: no decision satisfies all constraints at once.")
    if res.x is None or res.status != 0 or not np.isfinite(res.x).all() or not res.x[-1] > 0.5:
        raise SolverError(f"HiGHS found no point inside the region: {res.message} (status {res.status}).")
    strict = res.x[d : d + m] > 0.5
    center = res.x[:d] / res.x[-1]
    size = 1.0 + float(np.abs(center).max(initial=0.0))
    off = np.abs(form.A_eq @ center - form.b_eq) / np.maximum(np.abs(form.A_eq).max(axis=1).toarray().ravel(), 1e-300)
    if (M @ center - q > SOLVER * size).any() or (off > SOLVER * size).any():
        raise SolverError("HiGHS reported a point as optimal that violates the constraints of the region.")
    return center, strict


def row_basis(A: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the rows of a matrix, which may be of different sizes."""
    if not A.size:
        return np.zeros((0, A.shape[1]))
    _, sv, Vt = np.linalg.svd(A / np.maximum(np.abs(A).max(axis=1, keepdims=True), 1e-300), full_matrices=False)
    return Vt[sv > RANK * max(float(sv[0]), 1e-300)]


# -- polyhedra that differ from sample to sample -----------------------------------------------------------------------

#: samples that agree in which bounds exist and differ are treated together; with more sets of such samples there is no
#: standard form, because solvers would have to treat most samples one by one
MOST_PATTERNS = 64

#: an interior point is carried over from one sample to another if no slack shrinks by more than this factor
CARRIED = 0.1


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


def _kinds(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Which bounds exist, and which of them differ."""
    return np.concatenate([np.isfinite(lower), np.isfinite(upper), lower < upper], axis=1)


def repair_rows(form: InequalityForm, interior: Callable[[], Interior], W: np.ndarray) -> np.ndarray:
    """Move each sample's decision into its region: project on the affine hull, shrink towards the interior."""
    form, d = form.in_rows(), W.shape[1]
    standard = form.standard()
    try:
        center, is_open = interior()
    except TimeIsUp:
        # Averages of the oracle's decisions, which have its accuracy, are feasible without repair.
        if (form.violation(W) <= FEASIBLE * (1.0 + np.abs(W).max(axis=1, initial=0.0))).all():
            return W
        raise SolverError("There was no time to find a point inside the region of each sample.") from None
    step = W - center[:, :d]
    for kept, rows in patterns(is_open):
        equal = np.concatenate([form.A_eq.toarray(), np.eye(d)[~kept[:d]], form.A_ub.toarray()[~kept[d:]]])
        # Products with directions, not differences: rounding errors of large steps stay within the affine hull.
        U = null_space(row_basis(equal)) if equal.size else np.eye(d)
        step[rows] = (step[rows] @ U) @ U.T
    move = np.concatenate([step, -(form.A_ub @ step.T).T], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(move > 0, move / (standard.upper - center), -move / (center - standard.lower))
    excess = np.where(is_open, excess, 0.0).max(axis=1, initial=1.0)
    return center[:, :d] + step / excess[:, None]


def fixed_directions(A_eq: sp.csr_array, fixed: np.ndarray | None = None) -> np.ndarray:
    """Orthonormal basis of the rows of ``A_eq`` and of the unit vectors of fixed decisions."""
    rows = A_eq.toarray()
    return row_basis(rows if fixed is None else np.concatenate([rows, np.eye(fixed.size)[fixed]]))


def find_interior(form: StandardForm) -> Interior:
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
        inside, strict = relative_interior(one)
    except InfeasibleRegionError:
        raise row_error(InfeasibleRegionError, i, EMPTY) from None
    up, low, is_open = np.isfinite(upper), np.isfinite(lower), np.ones(lower.size, dtype=bool)
    is_open[up] &= strict[: up.sum()]
    is_open[low] &= strict[up.sum() :]
    at_upper = np.zeros(lower.size, dtype=bool)
    at_upper[up] = ~strict[: up.sum()]
    center = np.where(is_open, inside, np.where(at_upper, upper, lower))
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
    return trial, inside.all(axis=1) & (residual <= ROUNDING * size * (1.0 + np.abs(A).sum(axis=1).max(initial=0.0)))


# -- regions -----------------------------------------------------------------------------------------------------------

_if_polyhedron = available_if(lambda region: region._is_polyhedron)


def _has_standard_form(region: PolyhedralRegion) -> bool:
    """Whether solvers can use a standard form: if it varies, all variables have bounds, and few sets of those exist."""
    if region._rows is None or not region._is_polyhedron:
        return region._is_polyhedron
    cache = region._rows.cache
    if "few patterns" not in cache:
        form = region._constraints(region._rows.n_dim).in_rows()
        bounded = (np.isfinite(form.lower) | np.isfinite(form.upper)).all()
        few = bounded and sum(1 for _ in patterns(_kinds(form.lower, form.upper))) <= MOST_PATTERNS
        cache["few patterns"] = bool(few)
    return bool(cache["few patterns"])


class PolyhedralRegion(Region):
    """Base class of regions that have an ``inequality_form``, and of those of integer points of a polyhedron."""

    @property
    def _is_polyhedron(self) -> bool:
        """Whether the decisions are all points of the polyhedron, and not only integer ones."""
        return True

    @_if_polyhedron
    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return the region as {A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}.

        If parameters vary by sample, the vectors that depend on them have one row for each sample.
        """
        raise NotImplementedError

    def _constraints(self, d: int) -> InequalityForm:
        """Linear constraints of the decisions, also of those that must be integers."""
        return self.inequality_form(d)

    def _tight(self, form: InequalityForm) -> InequalityForm:
        """Without inequalities that no decision between the bounds reaches; for parts of the samples the same ones."""
        if self._rows is None:
            return form.without(form.loose())
        if "loose" not in self._rows.cache:
            self._rows.cache["loose"] = form.loose()
        return form.without(self._rows.cache["loose"])

    def _own_bounds(self, d: int) -> tuple[np.ndarray, np.ndarray] | None:
        if self._rows is None:
            return None
        form = self._constraints(d)
        return form.lower, form.upper

    @available_if(_has_standard_form)
    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """Return the region as {A u = b, lower <= u <= upper}: one slack per inequality, after the decisions."""
        return self.inequality_form(n_dim).standard()

    @available_if(lambda region: region._rows is not None and region._is_polyhedron)
    def _interior(self) -> Interior:
        """Points inside the standard form of each sample, if parameters vary by sample (cached)."""
        assert self._rows is not None
        if "interior" not in self._rows.cache:
            with rows_named(self._row_names.of):
                found = find_interior(self.inequality_form(self._rows.n_dim).standard())
            self._rows.cache["interior"] = found
        return Interior(*self._rows.cache["interior"])

    @_if_polyhedron
    def _geometry(self, n_dim: int | None = None) -> PolyhedralGeometry:
        """Relative interior point and affine hull (cached until a parameter is replaced)."""
        d = self.resolve_dim(n_dim)
        return cast("PolyhedralGeometry", self._derived("geometry", d, lambda: self._find_geometry(d)))

    def _find_geometry(self, d: int) -> PolyhedralGeometry:
        form = self.inequality_form(d)
        center, strict = relative_interior(form)
        implied = form.inequalities()[0][~strict].toarray()
        equal = np.vstack([form.A_eq.toarray(), implied])
        check_time(predicted_seconds(4.0 * equal.size * min(equal.shape)))  # multiplications, at least
        geometry = PolyhedralGeometry(center, strict, row_basis(equal))
        if implied.shape[0]:  # check with the oracle that they hold for decisions in both directions
            implied /= np.maximum(np.abs(implied).max(axis=1, keepdims=True), 1e-300)
            low, high = self._solve_directions(implied), self._solve_directions(-implied)
            extent = np.einsum("ij,ij->i", high - low, implied)
            if (extent > SOLVER * (1.0 + np.abs(np.concatenate([low, high])).max())).any():
                raise SolverError("HiGHS reported an implied equality that feasible decisions violate.")
        return geometry

    @available_if(lambda region: region._is_polyhedron or region._rows is not None)
    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal rows E with E w constant on the region; if it varies, those of all samples that are given."""
        if self._rows is None:
            return self._geometry(n_dim).normals
        form = self._constraints(self.resolve_dim(n_dim)).in_rows()
        return fixed_directions(form.A_eq, (form.lower == form.upper).all(axis=0))

    def _always_hidden(self, d: int) -> np.ndarray:
        if self._rows is None:
            return super()._always_hidden(d)
        return fixed_directions(self._constraints(d).A_eq)  # the bounds of other samples may differ

    @_if_polyhedron
    def repair(self, W: np.ndarray) -> np.ndarray:
        """Move nearly feasible decisions into the region: project on the affine hull, shrink towards the interior."""
        if self._rows is not None:
            return repair_rows(self.inequality_form(W.shape[1]), self._interior, W)
        geo = self._geometry(W.shape[1])
        M, q = self.inequality_form(W.shape[1]).inequalities()
        M, q = M[geo.strict], q[geo.strict]
        step = project_visible(W - geo.center, geo.normals)
        slack = q - M @ geo.center
        excess = (M @ step.T).T / slack
        return geo.center + step / np.maximum(excess.max(axis=1, initial=1.0), 1.0)[:, None]

    @_if_polyhedron
    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row of a CVXPY expression, by linear programming duality."""
        import cvxpy as cp

        n, d = V.shape
        form = self.inequality_form(d)
        up, low = np.isfinite(form.upper), np.isfinite(form.lower)
        some_up, some_low = (mask.reshape(-1, d).any(axis=0) for mask in (up, low))
        total, terms, constraints = 0.0 * V, [], []
        upper = np.where(up, form.upper, 0.0)[..., some_up]
        eye = sp.eye_array(d, format="csr")
        for matrix, rhs, inequality in (
            (form.A_ub, form.b_ub, True),
            (form.A_eq, form.b_eq, False),
            (eye[some_up], upper, True),
        ):
            if matrix.shape[0]:
                y = cp.Variable((n, matrix.shape[0]), nonneg=inequality)
                total = total + y @ matrix
                terms.append(y @ rhs if rhs.ndim == 1 else cp.sum(cp.multiply(rhs, y), axis=1))
        if not up[..., some_up].all():  # the multiplier of a bound that a sample does not have is zero
            constraints.append(cp.multiply((~up[:, some_up]).astype(float), y) == 0)
        # The multipliers of the lower bounds are eliminated: r = total - V.
        excess, lower = total - V, np.where(low, form.lower, 0.0)
        if some_low.any():
            constraints.append(excess[:, np.flatnonzero(some_low)] >= 0)
            terms.append(-(excess @ lower if lower.ndim == 1 else cp.sum(cp.multiply(lower, excess), axis=1)))
        if not some_low.all():
            constraints.append(excess[:, np.flatnonzero(~some_low)] == 0)
        if not low[..., some_low].all():
            constraints.append(cp.multiply((~low).astype(float), excess) == 0)
        return reduce(add, terms), constraints
