"""General polyhedra, in the conventions of scipy.optimize.linprog and scipy.optimize.milp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, LinearConstraint

from .._utils.errors import InfeasibleRegionError
from .._utils.shown import shown
from ._cost_bounds import CostBounds
from ._names import Names, say_variable
from ._oracles.highs import NOTHING, check_bounded, solve_rows, worst_rows
from ._rows import row_error
from .polyhedral import InequalityForm, Matrix, PolyhedralRegion

#: a lower and an upper bound; None means that there is none
Pair: TypeAlias = tuple[float | None, float | None]
BoundsLike: TypeAlias = Pair | Sequence[Pair] | np.ndarray | Bounds | None

#: constraints lb <= A w <= ub as scipy.optimize.milp takes them
ConstraintLike: TypeAlias = LinearConstraint | tuple[Matrix, ArrayLike, ArrayLike]
ConstraintsLike: TypeAlias = ConstraintLike | Sequence[ConstraintLike] | None


def read_numbers(what: str, value: object) -> np.ndarray:
    """Return an array of floats; the error names the parameter."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a number or a rectangular array of numbers, got {shown(value)}.") from None


def read_number(value: Any) -> float:
    """Return a number; NaN for everything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def read_positive(what: str, value: Any) -> float:
    """Return a positive finite number; the error names the parameter."""
    number = read_number(value)
    if not 0.0 < number < np.inf:
        raise ValueError(f"{what} must be a positive finite number, got {shown(value)}.")
    return number


def read_symmetric(what: str, value: ArrayLike, d: int) -> np.ndarray:
    """Return a symmetric matrix of shape (d, d); the error names the parameter."""
    A = read_numbers(what, value)
    if A.shape != (d, d):
        raise ValueError(f"{what} must be a square matrix of shape ({d}, {d}), got shape {A.shape}.")
    if not np.isfinite(A).all():
        raise ValueError(f"{what} must be finite, but it contains NaN or infinity.")
    asymmetry = float(np.abs(A - A.T).max())
    if asymmetry > 1e-10 * float(np.abs(A).max()):
        name = what.rpartition(" ")[2]
        raise ValueError(
            f"{what} must be symmetric, but it differs from its transpose by {asymmetry:.3g}. ({name} + {name}.T) / 2 "
            "describes the same set."
        )
    return (A + A.T) / 2.0


def list_constraints(name: str, constraints: ConstraintsLike) -> list[LinearConstraint]:
    """Return a list, from one constraint or several; each may be a tuple (A, lb, ub)."""
    if constraints is None:
        return []
    if isinstance(constraints, LinearConstraint):
        return [constraints]
    if isinstance(constraints, tuple):
        with suppress(TypeError, ValueError):  # else it is a tuple of constraints
            return [LinearConstraint(*constraints)]
    found = []
    for one in constraints if isinstance(constraints, list | tuple) else [constraints]:
        try:
            if not isinstance(one, LinearConstraint | tuple):
                raise TypeError("CvxpyRegion takes constraints that are not linear")
            found.append(one if isinstance(one, LinearConstraint) else LinearConstraint(*one))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name}: constraints must be a scipy.optimize.LinearConstraint, a tuple (A, lb, ub), or a list of "
                f"those; got {shown(one)}: {error}."
            ) from None
    return found


def _stack(parts: list[tuple[sp.csr_array, np.ndarray] | None]) -> tuple[sp.csr_array | None, np.ndarray | None]:
    given = [part for part in parts if part is not None]
    if not given:
        return None, None
    return sp.vstack([A for A, _ in given], format="csr"), np.concatenate([b for _, b in given])


def _read_matrix(what: str, A: Matrix) -> np.ndarray | sp.csr_array:
    if sp.issparse(A):
        return sp.csr_array(A, dtype=np.float64)
    if isinstance(A, LinearConstraint) or (
        isinstance(A, list | tuple) and any(isinstance(x, LinearConstraint) for x in A)
    ):
        raise TypeError(f"{what} must be a matrix. Pass a LinearConstraint as constraints=....")
    return np.atleast_2d(read_numbers(what, A))


def _read_linear(name: str, d: int, one: LinearConstraint) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Validate lb <= A w <= ub; scipy has checked the shapes of lb and ub."""
    A = sp.csr_array(one.A, dtype=np.float64)
    if A.shape[1] != d:
        raise ValueError(
            f"{name}: A of constraints must have one column for each of the {d} decisions, got shape {A.shape}."
        )
    lb, ub = (np.broadcast_to(np.asarray(b, dtype=np.float64), A.shape[:1]) for b in (one.lb, one.ub))
    if not np.isfinite(A.data).all():
        raise ValueError(f"{name}: A of constraints must be finite; leave out constraints that never matter.")
    if np.isnan(lb).any() or np.isnan(ub).any():
        raise ValueError(f"{name}: lb and ub of constraints must not be NaN; infinity means that there is no bound.")
    empty = (lb > ub) | (lb == np.inf) | (ub == -np.inf)
    if empty.any():
        i = int(np.argmax(empty))
        raise InfeasibleRegionError(
            f"{name}: the region is empty (infeasible), constraints require {lb[i]} <= A[{i}] w <= {ub[i]}."
        )
    return A, lb, ub


def _read_rows(
    name: str, d: int, kind: str, A: Matrix | None, b: ArrayLike | None
) -> tuple[sp.csr_array, np.ndarray] | None:
    if A is None and b is None:
        return None
    if A is None or b is None:
        there, missing = (f"A_{kind}", f"b_{kind}") if b is None else (f"b_{kind}", f"A_{kind}")
        raise ValueError(f"{name}: {there} is given without {missing}; both are needed.")
    rows = _read_matrix(f"{name}: A_{kind}", A)
    sides = np.atleast_1d(read_numbers(f"{name}: b_{kind}", b))
    if rows.ndim != 2 or rows.shape[1] != d:
        raise ValueError(
            f"{name}: A_{kind} must have one column for each of the {d} decisions, got shape {rows.shape}."
        )
    if sides.shape != (rows.shape[0],):
        raise ValueError(
            f"{name}: b_{kind} must have one entry for each row of A_{kind}, that is shape ({rows.shape[0]},), "
            f"got shape {sides.shape}."
        )
    matrix = sp.csr_array(rows, dtype=np.float64)
    if not np.isfinite(matrix.data).all() or not np.isfinite(sides).all():
        raise ValueError(f"{name}: A_{kind} and b_{kind} must be finite; leave out constraints that never matter.")
    return matrix, sides


def _read_bounds(name: str, d: int, bounds: BoundsLike, names: Names = None) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(bounds, Bounds):
        try:
            table = np.column_stack([np.broadcast_to(bounds.lb, (d,)), np.broadcast_to(bounds.ub, (d,))])
        except ValueError:
            raise ValueError(
                f"{name}: bounds must be numbers or have one entry for each of the {d} decisions, got {shown(bounds)}."
            ) from None
    else:
        table = np.array((0, None) if bounds is None else bounds, dtype=object)
    if table.shape not in ((2,), (d, 2)):
        raise ValueError(
            f"{name}: bounds must be one pair (lower, upper) or a list of {d} pairs, one for each decision; "
            f"got {shown(bounds)}."
        )
    table = np.broadcast_to(table, (d, 2))
    lower = read_numbers(f"{name}: lower bounds", [-np.inf if x is None else x for x in table[:, 0]])
    upper = read_numbers(f"{name}: upper bounds", [np.inf if x is None else x for x in table[:, 1]])
    if np.isnan(lower).any() or np.isnan(upper).any():
        raise ValueError(f"{name}: bounds must not be NaN; None means that there is no bound.")
    empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if empty.any():
        j = int(np.argmax(empty))
        raise InfeasibleRegionError(
            f"{name}: the region is empty (infeasible), no number is between the lower bound {lower[j]} of "
            f"{say_variable(names, int(j))} and its upper bound {upper[j]}."
        )
    return lower, upper


class _Constraints(NamedTuple):
    form: InequalityForm
    integers: np.ndarray | None = None  # (d,) which decisions are integers; None if none is
    rows: Mapping[str, np.ndarray] = NOTHING  # vectors of the form that vary by sample


class ConstrainedRegion(PolyhedralRegion):
    """Base class of regions given by matrices, bounds and constraints, in the conventions of scipy; see Polyhedron."""

    def __init__(
        self,
        A_ub: Matrix | None = None,
        b_ub: ArrayLike | None = None,
        A_eq: Matrix | None = None,
        b_eq: ArrayLike | None = None,
        bounds: BoundsLike = (0, None),
        *,
        constraints: ConstraintsLike = None,
        n_jobs: int | None = None,
        sense: str = "min",
        cost_bounds: CostBounds = None,
        variable_names: Names = None,
    ) -> None:
        self.A_ub = A_ub
        self.b_ub = b_ub
        self.A_eq = A_eq
        self.b_eq = b_eq
        self.bounds = bounds
        self.constraints = constraints
        self.n_jobs = n_jobs
        self.sense = sense
        self.cost_bounds = cost_bounds
        self.variable_names = variable_names

    @property
    def n_dim(self) -> int | None:
        """Number of columns of the matrices, or length of the list of bounds; None if there are neither."""
        matrices = [("A_ub", self.A_ub), ("A_eq", self.A_eq)]
        matrices += [("constraints", one.A) for one in list_constraints(self.label, self.constraints)]
        for name, A in matrices:
            if A is not None:
                return int(np.shape(A)[-1] if sp.issparse(A) else _read_matrix(f"{self.label}: {name}", A).shape[1])
        if isinstance(self.bounds, Bounds):
            sizes = [np.size(b) for b in (self.bounds.lb, self.bounds.ub) if np.ndim(b)]
            return max(sizes) if sizes else None
        table = np.array((0, None) if self.bounds is None else self.bounds, dtype=object)
        return table.shape[0] if table.ndim == 2 else None

    @property
    def oracle_is_solver(self) -> bool:
        """True: HiGHS."""
        return True

    def _form(self, d: int) -> InequalityForm:
        """Validated constraints: the rows of ``A_ub`` and ``A_eq``, then those of ``constraints``."""
        upper = [_read_rows(self.label, d, "ub", self.A_ub, self.b_ub)]
        equal = [_read_rows(self.label, d, "eq", self.A_eq, self.b_eq)]
        for one in list_constraints(self.label, self.constraints):
            A, lb, ub = _read_linear(self.label, d, one)
            same = lb == ub
            equal.append((A[same], lb[same]))
            upper.append((A[~same & (ub < np.inf)], ub[~same & (ub < np.inf)]))
            upper.append((-A[~same & (lb > -np.inf)], -lb[~same & (lb > -np.inf)]))
        bounds = _read_bounds(self.label, d, self.bounds, self._names(d))
        return InequalityForm.build(d, *_stack(upper), *_stack(equal), *bounds)

    def _argmin(self, C: np.ndarray, data: _Constraints) -> np.ndarray:
        return solve_rows(data.form, C, integrality=data.integers, n_jobs=self.n_jobs, rows=data.rows)

    def _constraints(self, d: int) -> InequalityForm:
        data = self._data(d)
        return replace(data.form, **data.rows)

    def _own_bounds(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        if self._rows is None:
            return _read_bounds(self.label, d, self.bounds, self._names(d))  # no program is solved for them
        form = self._constraints(d)
        return form.lower, form.upper

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Bounds may vary by sample, and so may the right-hand sides ``b_ub`` and ``b_eq``, if they are given."""
        given = {"b_ub": self.b_ub, "b_eq": self.b_eq}
        shapes: dict[str, tuple[int, ...]] = {"lower": (d,), "upper": (d,)}
        return shapes | {name: (np.size(b),) for name, b in given.items() if b is not None and np.size(b)}

    _rows_may_be_infinite = frozenset({"lower", "upper"})

    def _read_rows(self, rows: dict[str, np.ndarray], data: _Constraints, d: int) -> dict[str, np.ndarray]:
        n, form = next(iter(rows.values())).shape[0], data.form
        for key in {"b_ub", "b_eq"} & set(rows):  # those of further constraints are the same for all samples
            rest = getattr(form, key)[rows[key].shape[1] :]
            rows[key] = np.concatenate([rows[key], np.broadcast_to(rest, (n, rest.size))], axis=1)
        lower, upper = (np.broadcast_to(rows.get(name, getattr(form, name)), (n, d)) for name in ("lower", "upper"))
        empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
        if empty.any():
            row, j = map(int, np.argwhere(empty)[0])
            text = f"{self.label}: the region of {{row}} is empty, no number is between the lower bound "
            text += f"{lower[row, j]} of decision {j} and its upper bound {upper[row, j]}."
            raise row_error(InfeasibleRegionError, row, text)
        return rows

    def _with_values(self, data: _Constraints, values: dict[str, np.ndarray]) -> _Constraints:
        return data._replace(rows=values)


class Polyhedron(ConstrainedRegion):
    r"""Polyhedron, solved with HiGHS.

    .. math:: \{w : A_{ub} w \le b_{ub}, \; A_{eq} w = b_{eq}, \; l \le w \le u\}

    The conventions are those of :func:`scipy.optimize.linprog`; note that decisions are nonnegative by default.  The
    ``constraints`` and ``bounds`` of :func:`scipy.optimize.milp` are accepted as well.  The region must be nonempty and
    bounded, which is checked on first use.

    Parameters
    ----------
    A_ub : array-like or sparse matrix of shape (m, d), default=None
    b_ub : array-like of shape (m,), default=None
        Inequalities :math:`A_{ub} w \le b_{ub}`.
    A_eq : array-like or sparse matrix of shape (k, d), default=None
    b_eq : array-like of shape (k,), default=None
        Equalities :math:`A_{eq} w = b_{eq}`.  Right-hand sides may vary by sample, with
        ``region_params={"b_eq": ...}`` in the methods of an estimator.
    bounds : pair, list of d pairs, or scipy.optimize.Bounds, default=(0, None)
        Lower bound l and upper bound u of all decisions, or of each; None means that there is no bound.  They may
        vary by sample, with ``region_params={"lower": ..., "upper": ...}``.
    constraints : LinearConstraint, tuple (A, lb, ub), or list of those, default=None
        Further constraints ``lb <= A @ w <= ub`` (:class:`scipy.optimize.LinearConstraint`).  They are the same for all
        samples.
    n_jobs : int, default=None
        Number of threads.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.
    variable_names : list of str, default=None
        One name for each decision variable, for example those of the columns of a model.

    Examples
    --------
    >>> from skspo import Polyhedron
    >>> blend = Polyhedron(A_ub=[[1, 2, 4]], b_ub=[6], A_eq=[[1, 1, 1]], b_eq=[2])
    >>> blend.argmin([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    array([[0., 1., 1.],
           [2., 0., 0.]])

    The same with the objects of :func:`scipy.optimize.milp`:

    >>> from scipy.optimize import Bounds, LinearConstraint
    >>> limits = [LinearConstraint([1, 2, 4], ub=6), LinearConstraint([1, 1, 1], 2, 2)]
    >>> Polyhedron(constraints=limits, bounds=Bounds(0)).argmin([[3.0, 2.0, 1.0]])
    array([[0., 1., 1.]])
    """

    def _prepare(self, d: int) -> _Constraints:
        form = self._form(d)
        check_bounded(form, self._names(d))
        return _Constraints(form)

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        data = self._data(C.shape[1])
        return worst_rows(data.form, C, C_true, n_jobs=self.n_jobs, rows=data.rows)

    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return the constraints as they were given, without inequalities that bounds leave loose."""
        return self._tight(self._constraints(self.resolve_dim(n_dim)))
