"""General polyhedra, in the conventions of scipy.optimize.linprog."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ._highs import coordinate_bounds, solve_rows, worst_rows
from .polyhedral_base import InequalityForm, PolyhedralRegion
from .rows import RowRegion


def read_numbers(what: str, value: Any) -> np.ndarray:
    """Return an array of floats, or say which parameter is not one."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a number or a rectangular array of numbers, got {value!r}.") from None


def count_decisions(A_ub: Any, A_eq: Any, bounds: Any) -> int | None:
    """Return the number of decision variables that matrices or a list of bounds speak of, None if they do not say."""
    for name, A in (("A_ub", A_ub), ("A_eq", A_eq)):
        if A is not None:
            return int(A.shape[-1] if sp.issparse(A) else np.atleast_2d(read_numbers(name, A)).shape[1])
    if hasattr(bounds, "lb"):
        size = max(np.size(bounds.lb), np.size(bounds.ub))
        return size if np.ndim(bounds.lb) or np.ndim(bounds.ub) else None
    table = np.array((0, None) if bounds is None else bounds, dtype=object)
    return table.shape[0] if table.ndim == 2 else None


def read_constraints(name: str, d: int, A_ub: Any, b_ub: Any, A_eq: Any, b_eq: Any, bounds: Any) -> InequalityForm:
    """Validate constraints on ``d`` decisions given in the conventions of scipy.optimize.linprog."""
    return InequalityForm.build(
        d,
        *_read_rows(name, d, "ub", A_ub, b_ub),
        *_read_rows(name, d, "eq", A_eq, b_eq),
        *_read_bounds(name, d, bounds),
    )


def _read_rows(name: str, d: int, kind: str, A: Any, b: Any) -> tuple[Any, np.ndarray | None]:
    if (A is None) != (b is None):
        there, missing = (f"A_{kind}", f"b_{kind}") if b is None else (f"b_{kind}", f"A_{kind}")
        raise ValueError(f"{name}: {there} is given without {missing}; both are needed.")
    if A is None:
        return None, None
    A = sp.csr_array(A, dtype=np.float64) if sp.issparse(A) else np.atleast_2d(read_numbers(f"{name}: A_{kind}", A))
    b = np.atleast_1d(read_numbers(f"{name}: b_{kind}", b))
    if A.ndim != 2 or A.shape[1] != d:
        raise ValueError(f"{name}: A_{kind} must have one column for each of the {d} decisions, got shape {A.shape}.")
    if b.shape != (A.shape[0],):
        raise ValueError(
            f"{name}: b_{kind} must have one entry for each row of A_{kind}, that is shape ({A.shape[0]},), "
            f"got shape {b.shape}."
        )
    if not np.isfinite(A.data if sp.issparse(A) else A).all() or not np.isfinite(b).all():
        raise ValueError(f"{name}: A_{kind} and b_{kind} must be finite; leave out the rows that do not bind.")
    return A, b


def _read_bounds(name: str, d: int, bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    if hasattr(bounds, "lb"):  # scipy.optimize.Bounds
        try:
            table = np.column_stack([np.broadcast_to(bounds.lb, (d,)), np.broadcast_to(bounds.ub, (d,))])
        except ValueError:
            raise ValueError(f"{name}: bounds must be for {d} decisions, got {bounds!r}.") from None
    else:
        table = np.array((0, None) if bounds is None else bounds, dtype=object)
    if table.shape not in ((2,), (d, 2)):
        raise ValueError(
            f"{name}: bounds must be one pair (lower, upper) or a list of {d} pairs, one for each decision; "
            f"got {bounds!r}."
        )
    table = np.broadcast_to(table, (d, 2))
    lower = read_numbers(f"{name}: lower bounds", [-np.inf if x is None else x for x in table[:, 0]])
    upper = read_numbers(f"{name}: upper bounds", [np.inf if x is None else x for x in table[:, 1]])
    if np.isnan(lower).any() or np.isnan(upper).any():
        raise ValueError(f"{name}: bounds must not be NaN; None means that there is no bound.")
    if (lower > upper).any():
        j = int(np.argmax(lower > upper))
        raise ValueError(
            f"{name}: the region is empty (infeasible), the lower bound {lower[j]} of decision {j} is above its "
            f"upper bound {upper[j]}."
        )
    return lower, upper


class _PolyhedronData(NamedTuple):
    form: InequalityForm
    low: np.ndarray  # the given bounds, and the extreme values where none is given
    high: np.ndarray


class Polyhedron(PolyhedralRegion):
    """Polyhedron {A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}, solved with HiGHS.

    The conventions are those of :func:`scipy.optimize.linprog`; note that decisions are nonnegative by default.  The
    region must be nonempty and bounded, which is checked on first use.

    Parameters
    ----------
    A_ub : array-like or sparse matrix of shape (m, d), default=None
    b_ub : array-like of shape (m,), default=None
        Inequalities A_ub w <= b_ub.
    A_eq : array-like or sparse matrix of shape (k, d), default=None
    b_eq : array-like of shape (k,), default=None
        Equalities A_eq w = b_eq.  Right-hand sides may vary by sample, with ``region_params={"b_eq": ...}`` in the
        methods of an estimator.
    bounds : pair or list of d pairs, default=(0, None)
        Lower and upper bound of all decisions, or of each; None means that there is no bound.
    n_jobs : int, default=None
        Number of threads.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.

    Examples
    --------
    >>> from skspo import Polyhedron
    >>> blend = Polyhedron(A_ub=[[1, 2, 4]], b_ub=[6], A_eq=[[1, 1, 1]], b_eq=[2])
    >>> blend.argmin([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    array([[0., 1., 1.],
           [2., 0., 0.]])
    """

    def __init__(
        self,
        A_ub: Any = None,
        b_ub: ArrayLike | None = None,
        A_eq: Any = None,
        b_eq: ArrayLike | None = None,
        bounds: Any = (0, None),
        *,
        n_jobs: int | None = None,
        sense: str = "min",
    ) -> None:
        self.A_ub = A_ub
        self.b_ub = b_ub
        self.A_eq = A_eq
        self.b_eq = b_eq
        self.bounds = bounds
        self.n_jobs = n_jobs
        self.sense = sense

    @property
    def n_dim(self) -> int | None:
        """Number of columns of the matrices, or length of the list of bounds; None if there are neither."""
        return count_decisions(self.A_ub, self.A_eq, self.bounds)

    @property
    def asks_solver(self) -> bool:
        """Yes, HiGHS."""
        return True

    def _prepare(self, d: int) -> _PolyhedronData:
        form = read_constraints("Polyhedron", d, self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.bounds)
        return _PolyhedronData(form, *coordinate_bounds(form))

    def _argmin(self, C: np.ndarray, data: _PolyhedronData) -> np.ndarray:
        return solve_rows(data.form, C, n_jobs=self.n_jobs)

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Right-hand sides may vary by sample."""
        form = self._data(d).form
        return {name: b.shape for name, b in (("b_ub", form.b_ub), ("b_eq", form.b_eq)) if b.size}

    def _view(self, rows: dict[str, np.ndarray], d: int) -> RowPolyhedron:
        return RowPolyhedron(self, {"rhs": stack_sides(self._data(d).form, rows)})

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimised)."""
        return worst_rows(self._data(C.shape[1]).form, C, C_true, n_jobs=self.n_jobs)

    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return the constraints as they were given."""
        return self._data(self.resolve_dim(n_dim)).form

    def bounding_box(self, n_dim: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Smallest box around the region: the sides without a bound are known already, the others are solved for."""
        d = self.resolve_dim(n_dim)
        form, low, high = self._data(d)
        low, high, eye = low.copy(), high.copy(), np.eye(d)
        below, above = np.isfinite(form.lower), np.isfinite(form.upper)
        low[below] = self.solve_min(eye[below])[:, below].diagonal()
        high[above] = self.solve_min(-eye[above])[:, above].diagonal()
        return low, high


def stack_sides(form: InequalityForm, rows: dict[str, np.ndarray]) -> np.ndarray:
    """Right-hand sides of every row, inequalities first; those that do not vary are the form's."""
    n = next(iter(rows.values())).shape[0]
    sides = [rows.get(name, np.broadcast_to(b, (n, b.size))) for name, b in (("b_ub", form.b_ub), ("b_eq", form.b_eq))]
    return np.concatenate(sides, axis=1)


class RowPolyhedron(RowRegion):
    """Polyhedra with right-hand sides of their own, solved with HiGHS."""

    def _form(self, d: int) -> InequalityForm:
        return self.region._data(d).form

    def _argmin(self, C: np.ndarray, data: Any) -> np.ndarray:
        return solve_rows(self._form(C.shape[1]), C, n_jobs=self.region.n_jobs, rhs=data["rhs"])

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal basis of the given equalities: others may hold for some samples only."""
        form = self._form(self.resolve_dim(n_dim))
        if not form.b_eq.size:
            return np.zeros((0, form.lower.size))
        _, sv, Vt = np.linalg.svd(form.A_eq.toarray(), full_matrices=False)
        return Vt[sv > 1e-10 * max(float(sv[0]), 1e-300)]
