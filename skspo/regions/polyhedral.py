"""Base class of polyhedral regions, and the forms in which a polyhedron is written.

Conventions
-----------
    inequality form    {w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}           as in scipy.optimize.linprog
    standard form      {u : A u = b, lower <= u <= upper},  w = P u                       slacks follow w
    dual of the support function, with one multiplier per row and per finite bound:

        support_S(v) = min  b_ub.y + b_eq.z + upper.s - lower.r
                       s.t. A_ub^T y + A_eq^T z + s - r = v,   y, s, r >= 0

A polyhedral region implements ``_argmin`` and ``inequality_form``; the other capabilities follow from the latter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from .._utils.deadline import CLOCKS_DIFFER, check_time, predicted_seconds, time_left
from .._utils.errors import InfeasibleRegionError, SolverError
from .base import Region

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


class QuadraticForm(NamedTuple):
    """{u >= 0, sum u = b} in standard form with w^T Q w <= limit, and a strictly feasible u (None: there is none)."""

    standard: StandardForm
    Q: np.ndarray
    limit: float
    inside: np.ndarray | None


@dataclass(frozen=True)
class InequalityForm:
    """{w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}."""

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

        def rows(A: Matrix | None) -> sp.csr_array:
            return sp.csr_array((0, d)) if A is None else sp.csr_array(A, dtype=np.float64)

        def vector(b: ArrayLike | None) -> np.ndarray:
            return np.zeros(0) if b is None else np.asarray(b, dtype=np.float64).ravel()

        return InequalityForm(
            rows(A_ub),
            vector(b_ub),
            rows(A_eq),
            vector(b_eq),
            np.array(np.broadcast_to(np.asarray(lower, dtype=np.float64), (d,))),
            np.array(np.broadcast_to(np.asarray(upper, dtype=np.float64), (d,))),
        )

    def standard(self) -> StandardForm:
        """Add one slack per inequality."""
        m = self.A_ub.shape[0]
        A = sp.csr_array(
            sp.block_array(
                [[self.A_eq, sp.csr_array((self.A_eq.shape[0], m))], [self.A_ub, sp.eye_array(m, format="csr")]]
            )
        )
        return StandardForm(
            A,
            np.concatenate([self.b_eq, self.b_ub]),
            np.concatenate([self.lower, np.zeros(m)]),
            np.concatenate([self.upper, np.full(m, np.inf)]),
        )

    def inequalities(self) -> tuple[sp.csr_array, np.ndarray]:
        """All inequalities and finite bounds as one system M w <= q."""
        eye = sp.eye_array(self.lower.size, format="csr")
        up, low = np.isfinite(self.upper), np.isfinite(self.lower)
        M = sp.csr_array(sp.vstack([self.A_ub, eye[up], -eye[low]], format="csr"))
        return M, np.concatenate([self.b_ub, self.upper[up], -self.lower[low]])

    def without_loose(self) -> InequalityForm:
        """Without inequalities that no decision between the bounds reaches."""
        keep = ~(self.b_ub > largest_values(self.A_ub, self.lower, self.upper))
        return self if keep.all() else replace(self, A_ub=self.A_ub[keep], b_ub=self.b_ub[keep])

    def violation(self, W: np.ndarray) -> np.ndarray:
        """Largest violation of any constraint, one number per row of ``W``."""
        M, q = self.inequalities()
        parts = [np.zeros((W.shape[0], 1))]
        if q.size:
            parts.append((M @ W.T).T - q)
        if self.b_eq.size:
            parts.append(np.abs((self.A_eq @ W.T).T - self.b_eq))
        return np.concatenate(parts, axis=1).max(axis=1)


def largest_values(A: sp.csr_array, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Largest value of each row of A w between the bounds; they may have one row for each sample."""
    positive, negative = A.maximum(0.0), A.minimum(0.0)
    with np.errstate(invalid="ignore"):
        return (positive @ upper.T + negative @ lower.T).T


class PolyhedralGeometry(NamedTuple):
    """A relative interior point, all implied equalities, and bases of the affine hull."""

    center: np.ndarray  # (d,) strictly inside every inequality that is not an equality on S
    strict: np.ndarray  # rows of InequalityForm.inequalities() that can be strict on S
    normals: np.ndarray  # (d - k, d) orthonormal rows E with E w constant on S
    directions: np.ndarray  # (d, k) orthonormal basis of the directions in which decisions vary


def polyhedral_geometry(form: InequalityForm) -> PolyhedralGeometry:
    """Compute a relative interior point and the affine hull with one linear program.

    Maximise the number of strict inequalities over the cone above S:

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
    if (M @ center - q > 1e-6 * size).any() or (off > 1e-6 * size).any():
        raise SolverError("HiGHS reported a point as optimal that violates the constraints of the region.")
    equal = np.vstack([form.A_eq.toarray(), M[~strict].toarray()])
    if equal.shape[0]:
        check_time(predicted_seconds(4.0 * equal.shape[0] * d * d))  # multiplications, at least
        _, sv, Vt = np.linalg.svd(equal, full_matrices=True)
        rank = int((sv > 1e-10 * max(sv[0], 1e-300)).sum())
        normals, directions = Vt[:rank], Vt[rank:].T
    else:
        normals, directions = np.zeros((0, d)), np.eye(d)
    return PolyhedralGeometry(center, strict, normals, directions)


class PolyhedralRegion(Region):
    """Base class of regions that have an ``inequality_form``."""

    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return the region as {A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}."""
        raise NotImplementedError

    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """Return the region as {A u = b, lower <= u <= upper}: one slack per inequality, after the decisions."""
        return self.inequality_form(n_dim).standard()

    def _geometry(self, n_dim: int | None = None) -> PolyhedralGeometry:
        """Relative interior point and affine hull (cached until a parameter is replaced)."""
        d = self.resolve_dim(n_dim)
        entry = self._entry(d)
        cached = self._cache.get("geometry")
        if cached is None or cached[0] is not entry:
            form = self.inequality_form(d)
            geometry = polyhedral_geometry(form)
            self._check_implied(form, geometry)
            cached = (entry, geometry)
            self._cache["geometry"] = cached
        return cached[1]

    def _check_implied(self, form: InequalityForm, geometry: PolyhedralGeometry) -> None:
        """Check with the oracle that the implied equalities hold for decisions in both directions."""
        M, _ = form.inequalities()
        implied = M[~geometry.strict].toarray()
        if implied.shape[0]:
            implied /= np.maximum(np.abs(implied).max(axis=1, keepdims=True), 1e-300)
            low, high = self._solve_directions(implied), self._solve_directions(-implied)
            extent = np.einsum("ij,ij->i", high - low, implied)
            if (extent > 1e-6 * (1.0 + np.abs(np.concatenate([low, high])).max())).any():
                raise SolverError("HiGHS reported an implied equality that feasible decisions violate.")

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal rows E with E w constant on the region."""
        return self._geometry(n_dim).normals

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Move nearly feasible decisions into the region: project on the affine hull, shrink towards the interior."""
        geo = self._geometry(W.shape[1])
        M, q = self.inequality_form(W.shape[1]).inequalities()
        M, q = M[geo.strict], q[geo.strict]
        step = W - geo.center
        step = step @ geo.directions @ geo.directions.T
        slack = q - M @ geo.center
        excess = (M @ step.T).T / slack
        return geo.center + step / np.maximum(excess.max(axis=1, initial=1.0), 1.0)[:, None]

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row of a CVXPY expression, by linear programming duality.

        Parameters
        ----------
        V : cvxpy.Expression of shape (n, d)

        Returns
        -------
        t : cvxpy.Expression of shape (n,)
            At least the support function, and equal to it when minimised.
        constraints : list of cvxpy constraints
        """
        import cvxpy as cp

        n, d = V.shape
        form = self.inequality_form(d)
        up, low = np.isfinite(form.upper), np.isfinite(form.lower)
        eye = sp.eye_array(d, format="csr")
        total, terms, constraints = 0.0 * V, [], []
        rows = ((form.A_ub, form.b_ub, True), (form.A_eq, form.b_eq, False), (eye[up], form.upper[up], True))
        for matrix, rhs, inequality in rows:
            if rhs.size:
                y = cp.Variable((n, rhs.size), nonneg=inequality)
                total = total + y @ matrix
                terms.append(y @ rhs)
        # The multipliers of the lower bounds are eliminated: r = total - V.
        excess = total - V
        if low.any():
            constraints.append(excess[:, np.flatnonzero(low)] >= 0)
            terms.append(-(excess @ np.where(low, form.lower, 0.0)))
        if not low.all():
            constraints.append(excess[:, np.flatnonzero(~low)] == 0)
        return reduce(add, terms), constraints
