"""Linear programs that share their constraints, solved with HiGHS one after the other.

Conventions
-----------
    min c.w  over  {w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}

Reasons for the design, from measurements:

- Every row of costs starts from the same feasible basis.  Starting from the optimum of the previous row would make the
  choice among ties depend on that row.  ``clearSolver`` is called before ``setBasis``: without it one row in twenty
  still changed, because edge weights and perturbations survive ``setBasis``.
- The start is primal feasible for every cost, so the primal simplex method needs no first phase.  On the flows of a
  5x5 grid it is a third faster than the dual one, and equally fast on dense problems.
- The option "threads" is not set: HiGHS fails with an error if it differs from what the process used before, for
  example through CVXPY.  ``parallel="off"`` is enough to keep one model on one thread.
- Tolerances of HiGHS are absolute, so costs and constraints are scaled by powers of two, which is exact.
- A cost of 1e9 among costs of one, the price of a forbidden option, is larger than the others divided by these
  tolerances.  So the proof of a decision is relative to the terms of its cost without much larger ones
  (``usual_cost``).  Where it fails the costs are refined (``LinearModel._refined``): the part that the multipliers
  explain is subtracted exactly, columns with a large reduced cost stay at their bound, and the rest is scaled and
  solved again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, pairwise
from math import fsum
from typing import NoReturn

import highspy
import numpy as np
import scipy.sparse as sp

from ..._utils.errors import InfeasibleRegionError, SolverError, UnboundedRegionError
from ..._utils.limits import BLOCK_NUMBERS, CLOCKS_DIFFER, check_time, time_left
from .._rows import EMPTY, row_error
from .._tolerances import EXACT, JUMP, NOISE, PROVED, SOLVER
from ..polyhedral import InequalityForm

Status = highspy.HighsModelStatus
Options = dict[str, bool | int | float | str]

Strategy = highspy.simplex_constants.SimplexStrategy
PRIMAL, DUAL = int(Strategy.kSimplexStrategyPrimal), int(Strategy.kSimplexStrategyDual)
TINY = float(np.sqrt(np.finfo(float).tiny))  # instead of a cost of zero
WIDE = (
    "Costs of very different sizes are the usual cause, such as 1e9 for an option that is forbidden: exclude it by a "
    "bound or with region_params instead."
)


def _power_of_two(x: np.ndarray) -> np.ndarray:
    """Exponents e with x / 2**e in [0.5, 1), and 0 for x = 0."""
    return np.frexp(x)[1]


def rows_at_once(A: sp.csr_array | sp.csc_array) -> int:
    """Rows of costs whose proofs are checked together, for constraints with this matrix."""
    return max(BLOCK_NUMBERS // sum(A.shape), 1)


def scale_costs(C: np.ndarray) -> np.ndarray:
    return np.ldexp(C, -_power_of_two(np.abs(C).max(axis=1, initial=0.0))[:, None])


def much_larger(C: np.ndarray) -> np.ndarray:
    """Mask of the costs of each row that are much larger than others; False in rows of ordinary costs."""
    sizes = np.sort(np.abs(C), axis=1)
    jumps = (sizes[:, 1:] > JUMP * sizes[:, :-1]) & (sizes[:, :-1] > NOISE * sizes[:, -1:])
    limit = np.where(jumps, sizes[:, :-1], np.inf).min(axis=1, initial=np.inf)
    return np.asarray(np.abs(C) > limit[:, None])


def usual_cost(C: np.ndarray, W: np.ndarray) -> np.ndarray:
    """What the proof of each decision is relative to: its cost, without costs that are much larger than others."""
    costs, amounts = np.abs(C), np.abs(W)
    largest = amounts.max(axis=1, initial=0.0)[:, None]
    used = amounts > EXACT * (1.0 + largest)
    terms = costs * np.where(used, amounts, np.where(largest > EXACT, largest, 1.0))
    terms *= costs > NOISE * costs.max(axis=1, initial=0.0)[:, None]
    least = np.where(terms > 0, terms, np.inf).min(axis=1, initial=np.inf)
    for i in np.flatnonzero(JUMP * least < terms.max(axis=1, initial=0.0)):
        ordered = np.sort(terms[i][terms[i] > 0])
        jumps = np.flatnonzero(JUMP * ordered[:-1] < ordered[1:])
        if jumps.size:
            terms[i] *= terms[i] <= ordered[jumps[0]]
    paid = np.einsum("ij,ij->i", terms, used)
    return np.where(paid > 0, paid, terms.sum(axis=1))


def _products(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products and their rounding errors (Dekker)."""

    def split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scaled = 134217729.0 * x  # 2^27 + 1
        high = scaled - (scaled - x)
        return high, x - high

    product, (a1, a2), (b1, b2) = a * b, split(a), split(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def bounds_of(form: InequalityForm, side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the decisions in one or several rows of ``sides``, or those of all rows."""
    k, d = form.b_ub.size + form.b_eq.size, form.lower.size
    if side.shape[-1] == k:
        return form.lower, form.upper
    return side[..., k : k + d], side[..., k + d :]


def _residual(c: np.ndarray, A: sp.csc_array, parts: list[np.ndarray]) -> np.ndarray:
    """Reduced costs c - A^T y for a sum y of several vectors, rounded once."""
    terms = np.stack([-x for y in parts for x in _products(A.data, y[A.indices])], axis=1).tolist()
    starts = A.indptr.tolist()
    return np.array([fsum(chain([x], *terms[a:b])) for x, (a, b) in zip(c.tolist(), pairwise(starts), strict=True)])


# -- models ------------------------------------------------------------------------------------------------------------


def new_model(
    form: InequalityForm, options: Options, integers: np.ndarray | None = None
) -> tuple[highspy.Highs, np.ndarray, np.ndarray]:
    """Pass the constraints to HiGHS; return the model and the bounds of its rows."""
    d = form.lower.size
    A = form.A
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
    set_options(highs, {"output_flag": False, "parallel": "off", "small_matrix_value": 1e-12, **options})
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS does not accept the constraints; numbers above 1e15 are a possible cause.")
    return highs, row_lower, row_upper


def set_options(highs: highspy.Highs, options: Options) -> None:
    for name, value in options.items():
        highs.setOptionValue(name, value)


def change_rows(highs: highspy.Highs, rows: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
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


def failed(row: int | str, error: Exception) -> Exception:
    """Error about an exception in HiGHS."""
    return _error(SolverError, row, f"HiGHS failed at {{row}}: {type(error).__name__}: {error}")


def raise_status(highs: highspy.Highs, status: Status, row: int | str, varies: bool = False) -> NoReturn:
    """Raise the error for a status that is not optimal."""
    if status == Status.kTimeLimit:
        check_time(CLOCKS_DIFFER)  # raises if it was the limit of the fit, not that of a row
    if varies and status in (Status.kInfeasible, Status.kUnboundedOrInfeasible):
        raise _error(InfeasibleRegionError, row, EMPTY)
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


class LinearModel:
    """A linear program whose costs change, solved by the simplex method from one feasible basis."""

    def __init__(self, form: InequalityForm, time_limit: float | None = None) -> None:
        options: Options = {
            "solver": "simplex",
            "simplex_strategy": PRIMAL,
            "presolve": "off",
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        }
        self.set_time_limit(time_limit)
        self.form = form
        self.A = form.A
        self.lower, self.upper = form.lower, form.upper
        self.highs, self.row_lower, self.row_upper = new_model(form, options)
        self.columns = np.arange(form.lower.size, dtype=np.int32)
        self.rows = np.arange(self.row_lower.size, dtype=np.int32)
        self.varies = False
        #: decision, reduced costs, multipliers and what counts as zero, of the last program whose costs were refined
        self.refined: tuple[np.ndarray, np.ndarray, np.ndarray, float] | None = None
        self.basis: highspy.HighsBasis | None = None
        self.minimize(np.zeros(form.lower.size), "the first feasible decision")
        self.basis = self.highs.getBasis()

    def set_time_limit(self, seconds: float | None) -> None:
        """Limit each row to so many seconds."""
        self.time_limit = np.inf if seconds is None else float(seconds)

    def run(self, c: np.ndarray, restart: bool = True) -> Status:
        """Minimize c.w, from the reference basis or from the end of the last run; return the status."""
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
        set_options(self.highs, {"simplex_strategy": DUAL, "presolve": "choose"})
        self.highs.run()
        set_options(self.highs, {"simplex_strategy": PRIMAL, "presolve": "off"})
        return self.highs.getModelStatus()

    def minimize(self, c: np.ndarray, row: int | str, restart: bool = True) -> np.ndarray:
        """Like ``run``, but return the decision, which is proved to be optimal, or raise an error."""
        self.refined = None
        w, y = self.optimum(c, row, restart)
        return w if self.gaps(c[None], w[None], y[None])[0] <= PROVED else self.minimize_again(c, row)

    def optimum(self, c: np.ndarray, row: int | str, restart: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Decision that HiGHS reports as optimal, and multipliers of the rows."""
        try:
            status = self.run(c, restart)
            if status == Status.kOptimal:
                return self._solution()
        except Exception as error:
            raise failed(row, error) from error
        raise_status(self.highs, status, row, self.varies)

    def minimize_again(self, c: np.ndarray, row: int | str) -> np.ndarray:
        """Minimize row of costs for which one linear program gave no proof."""
        gap, w = np.inf, np.zeros(0)
        for start in (self.run, lambda c: self._run_dual()):
            try:
                self.highs.changeColsCost(self.columns.size, self.columns, c)
                status = start(c)
                if status == Status.kOptimal:
                    w, gap = self._refined(c)
            except Exception as error:
                raise failed(row, error) from error
            finally:
                self._set_bounds(self.lower, self.upper, self.row_lower)
            if status != Status.kOptimal:
                raise_status(self.highs, status, row, self.varies)
            if gap <= PROVED:
                return w
        raise _error(
            SolverError,
            row,
            f"HiGHS calls a decision for {{row}} optimal, but its multipliers do not prove it: it might cost {gap:.1e} "
            f"more than the best one, relative to its cost. {WIDE}",
        )

    def _refined(self, c: np.ndarray) -> tuple[np.ndarray, float]:
        """From the optimum of the last run, the decision that is optimal at all scales of the costs, and its gap.

        Iterative refinement: for multipliers y, c.w = r.w + y.(A w) with r = c - A^T y.  Columns with a large reduced
        cost r stay at their bound, rows with a large multiplier stay active; on this face the rest of r is the cost.
        """
        A = sp.csc_array(self.A)
        equal = np.isfinite(self.row_lower)
        r, total, parts = c, np.zeros(self.rows.size), []
        size = float(np.ldexp(1.0, _power_of_two(np.abs(c).max(initial=0.0))))
        best, fixed = (np.zeros(0), np.inf), np.zeros(c.size, dtype=bool)
        while True:
            w, y = self._solution()
            # Few digits, so that products with coefficients are mostly exact.
            parts.append(np.rint(y * 2.0**30) * 2.0**-30 * size)
            total = total + parts[-1]
            zero = ~equal & (total > -SOLVER * size)
            parts, total = [np.where(zero, 0.0, part) for part in parts], np.where(zero, 0.0, total)
            r = _residual(c, A, parts)
            usual = float(usual_cost(c[None], w[None])[0])
            gap = self._excess(r, total, w) / max(usual, TINY)
            if not gap >= best[1]:
                best, self.refined = (w, gap), (w, r, total, PROVED * usual)
            if gap <= PROVED:
                break
            bound = np.where(r > 0, self.lower, self.upper)
            # Only what is at its bound here: a small multiplier may have been set to zero above.
            fixed = (np.abs(w - bound) <= EXACT) & ((np.abs(r) > SOLVER * size) | fixed)
            last, rest = size, np.abs(r[~fixed]).max(initial=0.0)
            size = float(np.ldexp(1.0, _power_of_two(rest))) if rest > 0 else 0.0
            if not size < last:  # no smaller scale is left
                break
            lower, upper = np.where(fixed, bound, self.lower), np.where(fixed, bound, self.upper)
            active = (total < 0) & (self.row_upper - self.A @ w <= EXACT)
            self._set_bounds(lower, upper, np.where(active, self.row_upper, self.row_lower))
            self.highs.changeColsCost(self.columns.size, self.columns, np.where(fixed, 0.0, r / (size or 1.0)))
            self.highs.run()
            if self.highs.getModelStatus() != Status.kOptimal:
                break
        return best

    def _excess(self, r: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
        """Upper bound on the excess cost of a decision: what bounds that are not active would allow to gain."""
        unit = 1.0 + float(np.abs(w).max(initial=0.0))
        room = np.where(r > 0, w - self.lower, self.upper - w)
        # A multiplier of a missing bound is a rounding error, or large enough to be noticed.
        room = np.where(np.isfinite(room), np.where(room > EXACT * unit, room, 0.0), unit)
        slack = np.where(np.isfinite(self.row_lower), 0.0, self.row_upper - self.A @ w)
        slack[slack <= EXACT * unit] = 0.0
        return float(np.abs(r) @ room + np.abs(y) @ slack)

    def _set_bounds(self, lower: np.ndarray, upper: np.ndarray, row_lower: np.ndarray) -> None:
        self.highs.changeColsBounds(self.columns.size, self.columns, lower, upper)
        if self.rows.size:
            change_rows(self.highs, self.rows, row_lower, self.row_upper)

    def _solution(self) -> tuple[np.ndarray, np.ndarray]:
        solution = self.highs.getSolution()
        w, y = (np.array(x, dtype=np.float64) for x in (solution.col_value, solution.row_dual))
        if w.shape != self.columns.shape or y.shape != self.rows.shape or not np.isfinite(w).all():
            raise SolverError(f"the status is optimal, but the solution is {w}.")
        return w, y

    def gaps(self, C: np.ndarray, W: np.ndarray, Y: np.ndarray, *sides: np.ndarray) -> np.ndarray:
        """Upper bound on the excess cost of each row's decision, relative to its usual cost.

        For any multipliers y of the rows, the cost is at least the minimum of y.(A w) + (c - A^T y).w over the bounds
        of rows and decisions.
        """
        row_lower, row_upper, lower, upper = self.row_lower, self.row_upper, self.lower, self.upper
        for side in sides:
            row_upper, (lower, upper) = side[:, : self.rows.size], bounds_of(self.form, side)
            row_lower = np.where(np.isfinite(row_lower), row_upper, -np.inf)
        finite = np.isfinite(Y).all(axis=1)
        # The multiplier of a missing bound of a row is zero, up to rounding.
        Y = np.where(finite[:, None] & (np.isfinite(row_lower) | (Y < 0)), Y, 0.0)
        reduced = C - (self.A.T @ Y.T).T
        # That of a missing bound of a decision is compared as if the decision could change by its size.
        unit = 1.0 + np.abs(W).max(axis=1, initial=0.0)[:, None]
        lower, upper = np.where(np.isfinite(lower), lower, W - unit), np.where(np.isfinite(upper), upper, W + unit)
        terms = np.concatenate([_least(Y, row_lower, row_upper), _least(reduced, lower, upper)], axis=1)
        gap = np.where(finite, np.einsum("ij,ij->i", C, W) - terms.sum(axis=1), np.inf)
        size = np.abs(terms).sum(axis=1) + np.einsum("ij,ij->i", np.abs(C), np.abs(W))
        rounding = 4.0 * np.finfo(float).eps * size  # of the sums
        return (gap + rounding) / np.maximum(usual_cost(C, W), TINY)

    def set_sides(self, side: np.ndarray) -> None:
        """Change the right-hand sides, and the bounds of the decisions if ``side`` has them."""
        self.varies, self.row_upper = True, side[: self.rows.size].copy()
        self.row_lower = np.where(np.isfinite(self.row_lower), self.row_upper, -np.inf)
        if self.rows.size:
            change_rows(self.highs, self.rows, self.row_lower, self.row_upper)
        if side.size > self.rows.size:
            self.lower, self.upper = (bound.copy() for bound in bounds_of(self.form, side))
            self.highs.changeColsBounds(self.columns.size, self.columns, self.lower, self.upper)

    def fix_optimal_face(self) -> None:
        """Turn every constraint with a nonzero multiplier into an equality."""
        solution = self.highs.getSolution()
        w, reduced, y, tie = self.refined or (
            np.array(solution.col_value),
            np.array(solution.col_dual),
            np.array(solution.row_dual),
            EXACT,
        )
        self.free = self.lower, self.upper, self.row_lower
        lower, upper = self.lower.copy(), self.upper.copy()
        # A positive reduced cost means that w_j is at its lower bound, a negative one that it is at its upper bound; of
        # a w_j that is not, the reduced cost is a rounding error.
        bound = np.where(reduced > 0, lower, upper)
        fixed = (np.abs(reduced) > tie) & (np.abs(w - bound) <= SOLVER)
        lower[fixed] = upper[fixed] = bound[fixed]
        self.highs.changeColsBounds(self.columns.size, self.columns, lower, upper)
        self.lower, self.upper = lower, upper
        if self.rows.size:
            active = (np.abs(y) > tie) & (self.row_upper - self.A @ w <= SOLVER)
            self.row_lower = np.where(active, self.row_upper, self.row_lower)
            change_rows(self.highs, self.rows, self.row_lower, self.row_upper)

    def release_face(self) -> None:
        """Undo ``fix_optimal_face``."""
        self.lower, self.upper, self.row_lower = self.free
        self._set_bounds(self.lower, self.upper, self.row_lower)
