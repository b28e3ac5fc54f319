"""Forms in which a polyhedron is written.

Conventions
-----------
    inequality form    {w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}           as in scipy.optimize.linprog
    standard form      {u : A u = b, lower <= u <= upper},  w = P u                       slacks follow w
    dual of the support function, with one multiplier per row and per finite bound:

        support_S(v) = min  b_ub.y + b_eq.z + upper.s - lower.r
                       s.t. A_ub^T y + A_eq^T z + s - r = v,   y, s, r >= 0

Vectors have one row for each sample if the region varies by sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg import null_space
from scipy.optimize import linprog

from .._utils.errors import InfeasibleRegionError, SolverError
from .._utils.limits import CLOCKS_DIFFER, check_time, predicted_seconds, time_left
from ._tolerances import SOLVER

#: singular values and eigenvalues below this share of the largest one are zero: those of graphs and sums are not that
#: small
RANK = 1e-10

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


def polyhedral_geometry(form: InequalityForm) -> PolyhedralGeometry:
    """Compute a relative interior point and the affine hull."""
    center, strict = relative_interior(form)
    equal = np.vstack([form.A_eq.toarray(), form.inequalities()[0][~strict].toarray()])
    check_time(predicted_seconds(4.0 * equal.size * min(equal.shape)))  # multiplications, at least
    return PolyhedralGeometry(center, strict, row_basis(equal))


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
