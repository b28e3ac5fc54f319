"""Linear and mixed-integer programs that share their constraints, solved with HiGHS row by row.

Conventions
-----------
    min c.w  over  {w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}   for every row c of C

One HiGHS model is built per call and thread, and only its costs change.  It is not stored in the region, so regions
can be cloned and pickled.  Reasons for the design, from measurements:

- Every row starts from the same feasible basis.  Starting from the optimum of the previous row would make the choice
  among ties depend on that row.  ``clearSolver`` is called before ``setBasis``: without it one row in twenty still
  changed, because edge weights and perturbations survive ``setBasis``.
- The start is primal feasible for every cost, so the primal simplex method needs no first phase.  On the flows of a
  5x5 grid it is a third faster than the dual one, and equally fast on dense problems.
- HiGHS releases the interpreter lock while it runs, so threads scale; processes would only take longer to start.
- The option "threads" is not set: HiGHS fails with an error if it differs from what the process used before, for
  example through CVXPY.  ``parallel="off"`` is enough to keep one model on one thread.
- Tolerances of HiGHS are absolute, so costs and constraints are scaled by powers of two, which is exact.

The status "optimal" is not taken as a proof.  A decision is returned only if it satisfies the constraints and, in a
linear program, if the multipliers prove that no decision costs less.  For a mixed-integer program there is no such
proof; there, integers must be integers, and the cost must equal the objective and the bound that HiGHS reports.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NoReturn

import highspy
import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs

from ..._utils.deadline import CLOCKS_DIFFER, carry_deadline, check_time, time_left
from ..._utils.errors import InfeasibleRegionError, SolverError, UnboundedRegionError
from .._names import Names, say_variable
from .._row_names import row_error
from ..polyhedral import InequalityForm

Status = highspy.HighsModelStatus
Options = dict[str, bool | int | float | str]

PRIMAL, DUAL = 4, 1  # values of the option simplex_strategy
TIE = 1e-9  # smaller multipliers, for costs of order one, count as zero
FEASIBLE = 1e-8  # largest violation of a returned decision, for constraints and decisions of order one
BLOCK = 1024  # rows whose proofs are checked together
PROVED = 1e-7  # largest difference between the cost of a decision and the bound, relative to the terms of the cost


def map_rows(func: Callable[..., np.ndarray], *arrays: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Apply ``func(first_row, *arrays)`` to chunks of rows, in threads, and stack the results in order."""
    n = arrays[0].shape[0]
    k = max(min(effective_n_jobs(n_jobs), n), 1)
    if k == 1:
        return func(0, *arrays)
    cuts = np.linspace(0, n, k + 1).astype(int)
    carried = carry_deadline(func)
    parts = Parallel(n_jobs=k, require="sharedmem")(
        delayed(carried)(int(a), *(array[a:b] for array in arrays)) for a, b in pairwise(cuts)
    )
    return np.concatenate(parts)


def solve_rows(
    form: InequalityForm,
    C: np.ndarray,
    *,
    integrality: np.ndarray | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    rhs: np.ndarray | None = None,
    bounds: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Minimise every row of ``C`` over a polyhedron, or over its points with integer coordinates.

    Parameters
    ----------
    form : InequalityForm
    C : ndarray of shape (n, d)
        Finite costs of any scale.
    integrality : bool ndarray of shape (d,), default=None
        Which decisions must be integers.
    n_jobs : int, default=None
        Number of threads.  The result does not depend on it, nor on how rows are grouped into calls.
    time_limit : float, default=None
        Seconds for each row.
    rhs : ndarray of shape (n, m + k), default=None
        Right-hand sides of each row, of the m inequalities and then of the k equalities; None means those of ``form``.
    bounds : pair of ndarray of shape (n, d), default=None
        Lower and upper bounds of the decisions of each row; None means those of ``form``.

    Returns
    -------
    W : ndarray of shape (n, d)

    Raises
    ------
    ValueError
        If the region is empty or a problem unbounded.
    SolverError
        If HiGHS stops without a solution, for instance at the time limit.
    TimeIsUp
        If the time limit of the fit is reached.
    """
    # One row of ``sides`` has the right-hand sides and, if bounds vary, lower and upper bounds of a row of costs.
    sides: tuple[np.ndarray, ...] = ()
    if rhs is not None or bounds is not None:
        rhs = np.tile(np.concatenate([form.b_ub, form.b_eq]), (C.shape[0], 1)) if rhs is None else rhs
        scaled = rhs * np.concatenate([_row_factors(form.A_ub), _row_factors(form.A_eq)])
        sides = (np.concatenate([scaled, *(() if bounds is None else bounds)], axis=1),)
    form, C = _scale_constraints(form), _scale_costs(C)
    integers = None if integrality is None or not np.any(integrality) else np.asarray(integrality, dtype=bool)

    def chunk(first: int, C: np.ndarray, *sides: np.ndarray) -> np.ndarray:
        check_time()
        if integers is not None:
            return _mixed_integer_chunk(form, C, integers, time_limit, first, *sides)
        if not C.shape[0]:
            return np.empty_like(C)
        model, parts = _LinearModel(form, time_limit), []
        for start in range(0, C.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            parts.append(_linear_block(model, C[rows], first + start, *(side[rows] for side in sides)))
        return np.concatenate(parts)

    return _checked(form, map_rows(chunk, C, *sides, n_jobs=n_jobs), *sides)


def worst_rows(form: InequalityForm, C: np.ndarray, C_true: np.ndarray, *, n_jobs: int | None = None) -> np.ndarray:
    """Among the decisions optimal for each row of ``C``, the one with the largest cost under ``C_true``.

    By complementary slackness, on the optimal face every constraint with a nonzero multiplier is active, for any
    optimal multipliers.  These constraints become equalities, and the true cost is maximised.

    Parameters
    ----------
    form : InequalityForm
    C, C_true : ndarray of shape (n, d)
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    W : ndarray of shape (n, d)
    """
    form, C, C_true = _scale_constraints(form), _scale_costs(C), _scale_costs(C_true)

    def chunk(first: int, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        W = np.empty_like(C)
        if C.shape[0]:
            model = _LinearModel(form)
            for i in range(C.shape[0]):
                check_time()
                best = C[i] @ model.minimise(C[i], first + i)
                model.fix_optimal_face()
                W[i] = model.minimise(-C_true[i], first + i, restart=False)
                model.release_face()
                if not C[i] @ W[i] <= best + 1e-6 * (1.0 + np.abs(C[i]) @ np.abs(W[i])):
                    raise row_error(
                        SolverError, first + i, f"HiGHS calls a decision for {{row}} optimal that is not: {W[i]}."
                    )
        return W

    return _checked(form, map_rows(chunk, C, C_true, n_jobs=n_jobs))


def coordinate_bounds(
    form: InequalityForm, names: Names = None, columns: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Finite bounds of every decision: the given ones, or the smallest and largest value where there is none.

    Parameters
    ----------
    form : InequalityForm
    names : list of str, default=None
        Names of the decisions, for error messages.
    columns : ndarray of shape (d,), default=None
        Mask of the decisions whose bounds are wanted; None means all.

    Returns
    -------
    low, high : ndarray of shape (d,)

    Raises
    ------
    ValueError
        If the region is empty or unbounded.
    """
    low, high = form.lower.copy(), form.upper.copy()
    model = _LinearModel(_scale_constraints(form))
    for bound, sign in ((low, 1.0), (high, -1.0)):
        missing = ~np.isfinite(bound) & (True if columns is None else columns)
        for j in np.flatnonzero(missing):
            c = np.zeros(low.size)
            c[j] = sign
            status = model.run(c)
            if status == Status.kUnbounded:
                side = "below" if sign > 0 else "above"
                raise UnboundedRegionError(
                    f"The region is unbounded: {say_variable(names, int(j))} has no limit {side}. "
                    "A region must be bounded, otherwise some costs have no best decision: add bounds."
                )
            what = f"the bounds of {say_variable(names, int(j))}"
            if status != Status.kOptimal:
                _raise(model.highs, status, what)
            bound[j] = model.minimise(c, what)[j]
    return low, high


# -- scaling -----------------------------------------------------------------------------------------------------------


def _power_of_two(x: np.ndarray) -> np.ndarray:
    """Exponents e with x / 2**e in [0.5, 1), and 0 for x = 0."""
    return np.frexp(x)[1]


def _scale_costs(C: np.ndarray) -> np.ndarray:
    return np.ldexp(C, -_power_of_two(np.abs(C).max(axis=1, initial=0.0))[:, None])


def _row_factors(A: sp.csr_array) -> np.ndarray:
    return np.ldexp(1.0, -_power_of_two(abs(A).max(axis=1).toarray().ravel())) if A.shape[0] else np.zeros(0)


def _scale_constraints(form: InequalityForm) -> InequalityForm:
    def scaled(A: sp.csr_array, b: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
        factor = _row_factors(A)
        return sp.csr_array(sp.diags_array(factor) @ A), b * factor

    return InequalityForm(*scaled(form.A_ub, form.b_ub), *scaled(form.A_eq, form.b_eq), form.lower, form.upper)


def _checked(form: InequalityForm, W: np.ndarray, *sides: np.ndarray) -> np.ndarray:
    """Clip to the bounds, and check the other constraints."""
    lower, upper = form.lower, form.upper
    for side in sides:
        lower, upper = _bounds_of(form, side)
    beyond = np.maximum(lower - W, W - upper).max(axis=1, initial=0.0)
    W = np.clip(W, lower, upper) + 0.0  # no negative zeros
    if W.shape[0]:
        violation = form.violation(W)
        for side in sides:
            m, k = form.b_ub.size, form.b_eq.size
            over = (form.A_ub @ W.T).T - side[:, :m]
            off = np.abs((form.A_eq @ W.T).T - side[:, m : m + k])
            violation = np.maximum(over.max(axis=1, initial=0.0), off.max(axis=1, initial=0.0))
        excess = np.maximum(violation, beyond) / (1.0 + np.abs(W).max(axis=1, initial=0.0))
        i = int(excess.argmax())
        if not excess[i] <= FEASIBLE:
            text = (
                f"HiGHS calls a decision for {{row}} optimal, but it violates a constraint by {excess[i]:.1e}: {W[i]}."
            )
            raise row_error(SolverError, i, text)
    return W


def _bounds_of(form: InequalityForm, side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the decisions in one or several rows of ``sides``, or those of all rows."""
    k, d = form.b_ub.size + form.b_eq.size, form.lower.size
    if side.shape[-1] == k:
        return form.lower, form.upper
    return side[..., k : k + d], side[..., k + d :]


# -- models ------------------------------------------------------------------------------------------------------------


def _new_model(
    form: InequalityForm, options: Options, integers: np.ndarray | None = None
) -> tuple[highspy.Highs, np.ndarray, np.ndarray]:
    """Pass the constraints to HiGHS; return the model and the bounds of its rows."""
    d = form.lower.size
    A = sp.csr_array(sp.vstack([form.A_ub, form.A_eq], format="csr"))
    row_upper = np.concatenate([form.b_ub, form.b_eq])
    row_lower = np.concatenate([np.full(form.b_ub.size, -np.inf), form.b_eq])
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = d, row_upper.size
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.zeros(d), form.lower, form.upper
    lp.row_lower_, lp.row_upper_ = row_lower, row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    if integers is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(z)] for z in integers]
    highs = highspy.Highs()
    _set(highs, {"output_flag": False, "parallel": "off", "small_matrix_value": 1e-12, **options})
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS does not accept the constraints; numbers above 1e15 are a possible cause.")
    return highs, row_lower, row_upper


def _set(highs: highspy.Highs, options: Options) -> None:
    for name, value in options.items():
        highs.setOptionValue(name, value)


def _change_rows(highs: highspy.Highs, rows: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    # Old versions of highspy change one row at a time; the stubs of new ones lack the method for several.
    change: Callable[..., object] | None = getattr(highs, "changeRowsBounds", None)
    if change is not None:
        change(rows.size, rows, lower, upper)
        return
    for row, low, high in zip(rows.tolist(), lower.tolist(), upper.tolist(), strict=True):
        highs.changeRowBounds(row, low, high)


def set_seconds(highs: highspy.Highs, seconds: float) -> None:
    """Limit the next run to so many seconds, and to the time that the fit has left."""
    # HiGHS compares the limit with the time of all runs of a model together.
    highs.setOptionValue("time_limit", highs.getRunTime() + min(seconds, max(time_left(), 0.0)))


def _error(kind: type[Exception], row: int | str, text: str) -> Exception:
    """Error about a row of costs, or about another program, which a string describes."""
    return kind(text.replace("{row}", row)) if isinstance(row, str) else row_error(kind, row, text)


def _failed(row: int | str, error: Exception) -> Exception:
    """Error about an exception in HiGHS."""
    return _error(SolverError, row, f"HiGHS failed at {{row}}: {type(error).__name__}: {error}")


def _raise(highs: highspy.Highs, status: Status, row: int | str, varies: bool = False) -> NoReturn:
    """Raise the error for a status that is not optimal."""
    if status == Status.kTimeLimit:
        check_time(CLOCKS_DIFFER)  # raises if it was the limit of the fit, not that of a row
    if varies and status in (Status.kInfeasible, Status.kUnboundedOrInfeasible):
        raise _error(
            InfeasibleRegionError,
            row,
            "The region of {row} is empty: no decision satisfies its constraints (region_params).",
        )
    if status == Status.kInfeasible:
        raise InfeasibleRegionError(
            "The region is empty: its constraints are infeasible, no decision satisfies all of them."
        )
    if status in (Status.kUnbounded, Status.kUnboundedOrInfeasible):
        raise _error(
            UnboundedRegionError, row, "The problem of {row} is unbounded: the region must be bounded, add bounds."
        )
    text = f"HiGHS stopped without an optimal decision for {{row}}: {highs.modelStatusToString(status)}."
    raise _error(SolverError, row, text)


def _least(y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Minimum of y x over lower <= x <= upper, for each entry."""
    return np.where(y > 0, y, 0.0) * np.where(y > 0, lower, 0.0) + np.where(y < 0, y, 0.0) * np.where(y < 0, upper, 0.0)


def _linear_block(model: _LinearModel, C: np.ndarray, first: int, *sides: np.ndarray) -> np.ndarray:
    """Solve the linear program of each row, then check the proofs of all of them."""
    W, Y = np.empty_like(C), np.empty((C.shape[0], model.rows.size))
    for k, c in enumerate(C):
        check_time()
        for side in sides:
            model.set_sides(side[k])
        W[k], Y[k] = model.optimum(c, first + k)
    for i in map(int, np.flatnonzero(~(model.gaps(C, W, Y, *sides) <= PROVED))):
        for side in sides:
            model.set_sides(side[i])
        W[i] = model.minimise_again(C[i], first + i)
    return W


class _LinearModel:
    """A linear program whose costs change, solved by the simplex method from one feasible basis."""

    def __init__(self, form: InequalityForm, time_limit: float | None = None) -> None:
        options: Options = {
            "solver": "simplex",
            "simplex_strategy": PRIMAL,
            "presolve": "off",
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        }
        self.time_limit = np.inf if time_limit is None else float(time_limit)
        self.form = form
        self.A = sp.csr_array(sp.vstack([form.A_ub, form.A_eq], format="csr"))
        self.lower, self.upper = form.lower, form.upper
        self.highs, self.row_lower, self.row_upper = _new_model(form, options)
        self.columns = np.arange(form.lower.size, dtype=np.int32)
        self.rows = np.arange(self.row_lower.size, dtype=np.int32)
        self.varies = False
        self.basis: highspy.HighsBasis | None = None
        self.minimise(np.zeros(form.lower.size), "the first feasible decision")
        self.basis = self.highs.getBasis()

    def run(self, c: np.ndarray, restart: bool = True) -> Status:
        """Minimise c.w, from the reference basis or from the end of the last run; return the status."""
        self.highs.changeColsCost(self.columns.size, self.columns, c)
        set_seconds(self.highs, self.time_limit)
        if restart:
            self.highs.clearSolver()
            if self.basis is not None:
                self.highs.setBasis(self.basis)
        self.highs.run()
        status = self.highs.getModelStatus()
        if status in (Status.kOptimal, Status.kInfeasible, Status.kUnbounded, Status.kTimeLimit):
            return status
        # The primal method fails on one row in a thousand of dense problems; use the dual one.  With the strategy
        # "choose" HiGHS would use the primal method again.
        return self._run_dual()

    def _run_dual(self) -> Status:
        self.highs.clearSolver()
        _set(self.highs, {"simplex_strategy": DUAL, "presolve": "choose"})
        self.highs.run()
        _set(self.highs, {"simplex_strategy": PRIMAL, "presolve": "off"})
        return self.highs.getModelStatus()

    def minimise(self, c: np.ndarray, row: int | str, restart: bool = True) -> np.ndarray:
        """Like ``run``, but return the decision, which is proved to be optimal, or raise an error."""
        w, y = self.optimum(c, row, restart)
        return w if self.gaps(c[None], w[None], y[None])[0] <= PROVED else self.minimise_again(c, row)

    def optimum(self, c: np.ndarray, row: int | str, restart: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Decision that HiGHS reports as optimal, and multipliers of the rows."""
        try:
            status = self.run(c, restart)
            if status == Status.kOptimal:
                return self._solution()
        except Exception as error:
            raise _failed(row, error) from error
        _raise(self.highs, status, row, self.varies)

    def minimise_again(self, c: np.ndarray, row: int | str) -> np.ndarray:
        """Minimise with the dual method, for rows where the primal one gave no proof."""
        try:
            self.highs.changeColsCost(self.columns.size, self.columns, c)
            status = self._run_dual()
            if status == Status.kOptimal:
                w, y = self._solution()
        except Exception as error:
            raise _failed(row, error) from error
        if status != Status.kOptimal:
            _raise(self.highs, status, row, self.varies)
        (gap,) = self.gaps(c[None], w[None], y[None])
        if not gap <= PROVED:
            raise _error(
                SolverError,
                row,
                f"HiGHS calls a decision for {{row}} optimal, but its multipliers do not prove it: {w} might "
                f"cost {gap:.1e} more than the best one.",
            )
        return w

    def _solution(self) -> tuple[np.ndarray, np.ndarray]:
        solution = self.highs.getSolution()
        w, y = (np.array(x, dtype=np.float64) for x in (solution.col_value, solution.row_dual))
        if w.shape != self.columns.shape or y.shape != self.rows.shape or not np.isfinite(w).all():
            raise SolverError(f"the status is optimal, but the solution is {w}.")
        return w, y

    def gaps(self, C: np.ndarray, W: np.ndarray, Y: np.ndarray, *sides: np.ndarray) -> np.ndarray:
        """Upper bound on the excess cost of each row's decision, relative to the terms of its cost.

        For any multipliers y of the rows, the cost is at least the minimum of y.(A w) + (c - A^T y).w over the bounds
        of rows and decisions.
        """
        row_lower, row_upper, lower, upper = self.row_lower, self.row_upper, self.lower, self.upper
        for side in sides:
            row_upper, (lower, upper) = side[:, : self.rows.size], _bounds_of(self.form, side)
            row_lower = np.where(np.isfinite(row_lower), row_upper, -np.inf)
        reduced = C - (self.A.T @ Y.T).T
        rows, columns = _least(Y, row_lower, row_upper), _least(reduced, lower, upper)
        terms = np.concatenate([rows, columns], axis=1)
        # The multiplier of a missing bound must be zero, up to rounding.
        rounding = np.isinf(terms) & (np.abs(np.concatenate([Y, reduced], axis=1)) <= TIE)
        terms[rounding] = 0.0
        gap = np.where(np.isfinite(Y).all(axis=1), np.einsum("ij,ij->i", C, W) - terms.sum(axis=1), np.inf)
        terms[np.isinf(terms)] = 0.0
        return gap / (1.0 + np.abs(terms).sum(axis=1) + np.einsum("ij,ij->i", np.abs(C), np.abs(W)))

    def set_sides(self, side: np.ndarray) -> None:
        """Change the right-hand sides, and the bounds of the decisions if ``side`` has them."""
        self.varies, self.row_upper = True, side[: self.rows.size].copy()
        self.row_lower = np.where(np.isfinite(self.row_lower), self.row_upper, -np.inf)
        if self.rows.size:
            _change_rows(self.highs, self.rows, self.row_lower, self.row_upper)
        if side.size > self.rows.size:
            self.lower, self.upper = (bound.copy() for bound in _bounds_of(self.form, side))
            self.highs.changeColsBounds(self.columns.size, self.columns, self.lower, self.upper)

    def fix_optimal_face(self) -> None:
        """Turn every constraint with a nonzero multiplier into an equality."""
        solution, form = self.highs.getSolution(), self.form
        w, reduced = np.array(solution.col_value), np.array(solution.col_dual)
        lower, upper = form.lower.copy(), form.upper.copy()
        fixed = np.abs(reduced) > TIE
        # A positive reduced cost means that w_j is at its lower bound, a negative one that it is at its upper bound.
        bound = np.where(reduced > 0, lower, upper)
        lower[fixed] = upper[fixed] = np.where(np.isfinite(bound), bound, w)[fixed]
        self.highs.changeColsBounds(self.columns.size, self.columns, lower, upper)
        self.lower, self.upper = lower, upper
        if self.rows.size:
            active = np.abs(np.array(solution.row_dual)) > TIE
            self.free_rows, self.row_lower = self.row_lower, np.where(active, self.row_upper, self.row_lower)
            _change_rows(self.highs, self.rows, self.row_lower, self.row_upper)

    def release_face(self) -> None:
        """Undo ``fix_optimal_face``."""
        self.lower, self.upper = self.form.lower, self.form.upper
        self.highs.changeColsBounds(self.columns.size, self.columns, self.lower, self.upper)
        if self.rows.size:
            self.row_lower = self.free_rows
            _change_rows(self.highs, self.rows, self.row_lower, self.row_upper)


def _mixed_integer_chunk(
    form: InequalityForm, C: np.ndarray, integers: np.ndarray, time_limit: float | None, first: int, *sides: np.ndarray
) -> np.ndarray:
    """Solve every row by branch and bound, round the integers, and solve again for the continuous decisions."""
    W = np.empty_like(C)
    if not C.shape[0]:
        return W
    options: Options = {
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-9,
        "mip_feasibility_tolerance": 1e-9,
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
    }
    seconds = np.inf if time_limit is None else float(time_limit)
    highs, row_lower, _ = _new_model(form, options, integers)
    rows = np.arange(row_lower.size, dtype=np.int32)
    columns = np.arange(C.shape[1], dtype=np.int32)
    fixed = np.flatnonzero(integers).astype(np.int32)
    polish = None if integers.all() else _new_model(form, {"primal_feasibility_tolerance": 1e-10})[0]
    for i, c in enumerate(C):
        check_time()
        set_seconds(highs, seconds)
        for side in sides:
            high = side[i, : rows.size].copy()
            low = np.where(np.isfinite(row_lower), high, -np.inf)
            for model in (highs,) if polish is None else (highs, polish):
                if rows.size:
                    _change_rows(model, rows, low, high)
                if side.shape[1] > rows.size:
                    lower, upper = (bound.copy() for bound in _bounds_of(form, side[i]))
                    model.changeColsBounds(columns.size, columns, lower, upper)
        highs.changeColsCost(columns.size, columns, c)
        # Clear the solver: the incumbent of the previous row would decide ties.
        try:
            highs.clearSolver()
            highs.run()
            status = highs.getModelStatus()
            if status == Status.kUnboundedOrInfeasible:
                highs.setOptionValue("presolve", "off")
                highs.clearSolver()
                highs.run()
                status = highs.getModelStatus()
                highs.setOptionValue("presolve", "choose")
            if status == Status.kOptimal:
                W[i] = _integer_solution(highs, c, integers)
        except Exception as error:
            raise _failed(first + i, error) from error
        if status != Status.kOptimal:
            _raise(highs, status, first + i, bool(sides))
        W[i, integers] = np.rint(W[i, integers])
        if polish is not None:
            # After rounding, the continuous decisions may have to move slightly.
            polish.changeColsCost(columns.size, columns, c)
            polish.changeColsBounds(fixed.size, fixed, W[i, integers], W[i, integers])
            polish.clearSolver()
            polish.run()
            if polish.getModelStatus() != Status.kOptimal:
                raise row_error(
                    SolverError,
                    first + i,
                    "The decision for {row} is feasible only while its integers are not exactly integers. "
                    "Use smaller coefficients (big-M constants) in the constraints.",
                )
            polished = np.where(integers, W[i], polish.getSolution().col_value)
            if not c @ polished <= c @ W[i] + 1e-6 * (1.0 + np.abs(c) @ np.abs(W[i])):
                text = f"HiGHS calls a decision for {{row}} optimal that is not: {polished}."
                raise row_error(SolverError, first + i, text)
            W[i] = polished
    return W


def _integer_solution(highs: highspy.Highs, c: np.ndarray, integers: np.ndarray) -> np.ndarray:
    """Solution of a mixed-integer program, after a check against what HiGHS reports."""
    w, info = np.array(highs.getSolution().col_value, dtype=np.float64), highs.getInfo()
    if w.shape != c.shape or not np.isfinite(w).all():
        raise SolverError(f"the status is optimal, but the solution is {w}.")
    if (np.abs(w - np.rint(w))[integers] > 1e-5).any():
        raise SolverError(f"the status is optimal, but not all integers are integers: {w}.")
    cost, slack = float(c @ w), 1e-6 * (1.0 + float(np.abs(c) @ np.abs(w)))
    for name, value in (("cost", info.objective_function_value), ("bound of all costs", info.mip_dual_bound)):
        if not abs(cost - value) <= slack:
            raise SolverError(f"the decision costs {cost:.6g}, but HiGHS says that its {name} is {value:.6g}: {w}.")
    return w
