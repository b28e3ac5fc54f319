"""Problems and constraints of CVXPY.

The entries of all variables of a problem, row by row, are the decision w.  If all constraints are affine, CVXPY
compiles them into rows.  If not, they stay constraints of CVXPY, in which each variable is replaced by its part of w.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..user import CvxpyRegion
from ._model import LinearRows, Model

if TYPE_CHECKING:
    import cvxpy as cp

#: attributes of a variable that are bounds or integrality, and not a structure such as symmetry
SIMPLE = {"nonneg", "nonpos", "pos", "neg", "boolean", "integer", "bounds"}


def read_cvxpy(source: Any) -> Model:
    """Read a problem, a constraint or a list of constraints."""
    import cvxpy as cp

    problem = source if isinstance(source, cp.Problem) else cp.Problem(cp.Minimize(0), _list(source))
    for parameter in problem.parameters():
        if parameter.value is None:
            raise ValueError(f"read_region: the CVXPY parameter {parameter.name()!r} has no value.")
    if not problem.objective.expr.is_affine():
        raise ValueError(
            "read_region: the objective of the CVXPY problem is not linear and cannot be represented: "
            f"{problem.objective}. To leave it out, pass problem.constraints."
        )
    cells = Cells(problem.variables())
    sense = "max" if isinstance(problem.objective, cp.Maximize) else "min"
    other = [one for one in problem.constraints if not _is_linear(one)] + cells.structured
    if not other:
        rows, cost = _compile(cells, problem.constraints, problem.objective.expr)
        return Model(rows.region(cells.integers, sense, cells.names), cost)
    finite = [one for one in other if isinstance(one, cp.FiniteSet)]
    if finite:
        raise ValueError(f"read_region: the CVXPY constraint {finite[0]} cannot be represented. Use boolean variables.")
    if cells.integers.any():
        raise ValueError(
            f"read_region: the CVXPY problem has the integer variable {cells.names[int(np.argmax(cells.integers))]!r} "
            f"and {other[0]}, which is not linear. With integers, all constraints must be affine."
        )
    _, cost = _compile(cells, [], problem.objective.expr)
    constraints = Constraints(cells, problem.constraints)
    return Model(CvxpyRegion(constraints, cells.size, sense=sense, variable_names=cells.names), cost)


def _list(source: Any) -> list[cp.Constraint]:
    import cvxpy as cp

    listed = list(source) if isinstance(source, list | tuple) else [source]
    for one in listed:
        if not isinstance(one, cp.Constraint):
            raise TypeError(
                f"read_region: of CVXPY, source must be a Problem or a list of constraints, got a {type(one).__name__}."
            )
    return listed


def _is_linear(constraint: cp.Constraint) -> bool:
    from cvxpy.constraints import Equality, Inequality, NonNeg, NonPos, Zero

    kinds = (Equality, Inequality, NonNeg, NonPos, Zero)
    return isinstance(constraint, kinds) and all(one.is_affine() for one in constraint.args)


class Cells:
    """Entries of the variables of a problem as one vector w, row by row."""

    def __init__(self, variables: Sequence[cp.Variable]) -> None:
        if not variables:
            raise ValueError("read_region: the CVXPY constraints have no variables.")
        self.variables = list(variables)
        self.names: list[str] = []
        for v in variables:
            if v.is_complex():
                raise ValueError(
                    f"read_region: the CVXPY variable {v.name()!r} is complex; decisions are real numbers."
                )
            cells = [",".join(map(str, cell)) for cell in np.ndindex(v.shape)]
            self.names += [f"{v.name()}[{cell}]" if cell else v.name() for cell in cells]
        self.size = len(self.names)
        if len(set(self.names)) < self.size:
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ValueError(f"read_region: two CVXPY variables are called {twice!r}; names must be distinct.")
        #: which entries are integers
        self.integers = np.concatenate([_at(v, v.boolean_idx) | _at(v, v.integer_idx) for v in variables])
        self.lower, self.upper = np.concatenate([_bounds(v) for v in variables], axis=1)
        #: variables whose entries are not independent: symmetric ones, diagonal ones, ...
        self.structured = [v for v in variables if _attributes(v) - SIMPLE]

    def parts(self, w: cp.Expression) -> list[tuple[cp.Variable, cp.Expression]]:
        """Each variable, and its part of w in the same shape."""
        import cvxpy as cp

        ends = np.cumsum([v.size for v in self.variables])
        return [
            (v, cp.reshape(w[end - v.size : end], v.shape, order="C"))
            for v, end in zip(self.variables, ends, strict=True)
        ]


def _attributes(v: cp.Variable) -> set[str]:
    return {name for name, value in v.attributes.items() if value is not None and value is not False}


def _at(v: cp.Variable, cells: Any) -> np.ndarray:
    """Which entries of a variable are among the cells, which are indices as NumPy takes them."""
    found = np.zeros(v.size, dtype=bool)
    if len(cells):
        found[np.ravel_multi_index(tuple(cells), v.shape or (1,))] = True
    return found


def _bounds(v: cp.Variable) -> np.ndarray:
    """Lower and upper bounds of each entry."""
    bounds = np.array([np.full(v.size, -np.inf), np.full(v.size, np.inf)])
    given: Any = v.attributes.get("bounds") or ()
    for side, bound in enumerate(given):
        value = getattr(bound, "value", bound)  # of an expression
        if value is not None:
            bounds[side] = np.broadcast_to(value, v.shape).ravel()
    signs, binary = _attributes(v), _at(v, v.boolean_idx)
    lower = np.where(binary | bool(signs & {"nonneg", "pos"}), np.maximum(bounds[0], 0.0), bounds[0])
    upper = np.minimum(bounds[1], np.where(binary, 1.0, np.inf))
    return np.stack([lower, np.minimum(upper, 0.0) if signs & {"nonpos", "neg"} else upper])


class Constraints:
    """Constraints of a problem as a function of w, for ``CvxpyRegion``."""

    def __init__(self, cells: Cells, constraints: Sequence[cp.Constraint]) -> None:
        self.cells = cells
        self.constraints = list(constraints)

    def __call__(self, w: cp.Variable) -> list[cp.Constraint]:
        """Return the constraints on w."""
        cells = self.cells
        kept = {id(v) for v in cells.structured}  # they keep their structure and are equal to their part of w
        parts = cells.parts(w)
        replaced = {id(v): part for v, part in parts if id(v) not in kept}
        listed = [one.tree_copy(replaced) for one in self.constraints]
        listed += [v == part for v, part in parts if id(v) in kept]
        below, above = np.isfinite(cells.lower), np.isfinite(cells.upper)
        listed += [w[below] >= cells.lower[below]] if below.any() else []
        return listed + ([w[above] <= cells.upper[above]] if above.any() else [])


def _compile(
    cells: Cells, constraints: Sequence[cp.Constraint], objective: cp.Expression
) -> tuple[LinearRows, np.ndarray]:
    """Rows of affine constraints, and the coefficients of an affine objective."""
    import cvxpy as cp

    w = cp.Variable(cells.size, name="w")
    replaced = {id(v): part for v, part in cells.parts(w)}
    listed = [one.tree_copy(replaced) for one in constraints]
    listed.append(w >= 0)  # so that w is there if nothing else has it; these are the last rows
    data, _, _ = cp.Problem(cp.Minimize(objective.tree_copy(replaced)), listed).get_problem_data(cp.CLARABEL)
    d, dims = cells.size, data["dims"]
    A, b = sp.csr_array(data["A"]), np.asarray(data["b"])
    other = A.shape != (dims.zero + dims.nonneg, d) or data.get("P") is not None
    if other or (A[-d:] + sp.eye_array(d)).count_nonzero():
        raise RuntimeError("read_region: this version of CVXPY compiles problems in a way that skspo does not support.")
    A, high = A[:-d], b[:-d]  # A w = high, then A w <= high
    low = np.where(np.arange(high.size) < dims.zero, high, -np.inf)
    rows = LinearRows(A, low, high, cells.lower, cells.upper)
    return _bounds_from_rows(rows), np.asarray(data["c"], dtype=np.float64)


def _bounds_from_rows(rows: LinearRows) -> LinearRows:
    """Rows with a single entry are bounds, which oracles and solvers treat as such."""
    A = rows.A
    A.eliminate_zeros()
    single = np.diff(A.indptr) == 1
    lower, upper = rows.lower.copy(), rows.upper.copy()
    entries = A[single]
    with np.errstate(over="ignore"):
        ends = np.stack([rows.low[single] / entries.data, rows.high[single] / entries.data])
    np.maximum.at(lower, entries.indices, ends.min(axis=0))
    np.minimum.at(upper, entries.indices, ends.max(axis=0))
    return LinearRows(A[~single], rows.low[~single], rows.high[~single], lower, upper)
