"""Mixed-integer programs that share their constraints, solved with HiGHS row by row.

A call of the branch and bound of HiGHS takes milliseconds even if the program is tiny, and a linear program takes some
50 microseconds.  So a short search comes first (``_DepthFirst``): depth first, with linear programs that start from the
basis of their parent.  It ends at once if the optimum of the relaxation is integer, or if a first descent finds a
decision that costs no more than it.  Rows that need more nodes are left to HiGHS, which starts from the best decision
that was found.  Milliseconds for a row with HiGHS alone, and with the search before it: knapsacks of two resources with
8, 20 and 40 items 5.5 and 2.8, 14.7 and 13.8, 51.8 and 52.8; schedules with 411, 678 and 1580 binary decisions 36 and
9, 26 and 6, 162 and 103.  The searches of HiGHS for better decisions are off: with them knapsacks of five resources
with 20 and 40 items take 42 and 168, without 15 and 73.

Neither part uses what it knows from other rows, so that ties do not depend on how rows are grouped into calls.

The search proves its decision: the multipliers of every node that is not divided must give a bound that is not below
the cost, up to rounding; that HiGHS calls a node infeasible is taken as true.  HiGHS gives no such proof; there,
integers must be integers, and the cost must equal the objective and the bound that it reports.

HiGHS measures optimality relative to the largest cost.  Costs that are much larger than others are lowered first
(``_lower_costs``), to the size at which they still decide first; what that leaves unproved is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd
from time import perf_counter
from typing import NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp

from ..._utils.errors import InfeasibleRegionError, SolverError
from ..._utils.limits import check_time, in_fit
from .._rows import row_error
from .._tolerances import EXACT, JUMP, NOISE, PROVED, SOLVER
from ..polyhedral import InequalityForm
from .highs_linear import (
    DUAL,
    PRIMAL,
    WIDE,
    LinearModel,
    Options,
    Status,
    bounds_of,
    change_rows,
    failed,
    much_larger,
    new_model,
    raise_status,
    scale_costs,
    set_options,
    set_seconds,
    usual_cost,
)

NODES = 200  # linear programs in a search: some 10 ms, as long as HiGHS takes for a small program (see above)
#: a search goes on after its first decision if at most so many integers may differ in a better one; of columns of large
#: cost, so many sets of values are compared
FREE = 15


def solve_chunk(
    form: InequalityForm, C: np.ndarray, integers: np.ndarray, time_limit: float | None, first: int, *sides: np.ndarray
) -> np.ndarray:
    """Minimize every row of ``C`` over the points of a polyhedron whose selected coordinates are integers.

    Constraints and costs are scaled, ``time_limit`` has the seconds for each row, ``first`` is the number of the first
    row.  ``sides`` has the right-hand sides of each row, and its bounds if they vary, too.
    """
    W = np.empty_like(C)
    if not C.shape[0]:
        return W
    search, complete = _DepthFirst(form, integers), None
    total = np.inf if time_limit is None else float(time_limit)
    wide = np.any(much_larger(C), axis=1).tolist()
    for i, c in enumerate(C):
        check_time()
        start = perf_counter()
        side = sides[0][i] if sides else None

        def left(start: float = start) -> float:
            return max(total - (perf_counter() - start), 0.0)

        def solve(c: np.ndarray, row: int = first + i, side: np.ndarray | None = side) -> tuple[np.ndarray, bool]:
            nonlocal complete
            w = search.solve(c, row, left(), side)
            if w is not None:
                return w, True
            complete = complete or _BranchAndBound(form, integers)
            return complete.solve(c, row, left(), side, search.found), False

        if not wide[i]:
            W[i], _ = solve(c)
            continue
        k, (lower, upper) = form.b_ub.size, (form.lower, form.upper) if side is None else bounds_of(form, side)
        lowered, capped = _lower_costs(c, integers, lower, upper)
        W[i], _ = solve(lowered)
        # If what was lowered is as cheap as possible here, its full cost cannot make another decision better.
        if (np.abs(W[i] - np.where(c > 0, lower, upper))[capped] > EXACT).any():
            W[i], proved = solve(c)
            if not (proved or in_fit()):  # at the optimum of training many costs are zero up to rounding
                own = replace(form, lower=lower, upper=upper)
                if side is not None:
                    own = replace(own, b_ub=side[:k], b_eq=side[k : k + form.b_eq.size])
                settled = _settle(own, c, integers, capped, W[i], left, first + i)
                if settled is not None:
                    W[i] = settled
                elif usual_cost(c[None], W[[i]])[0] < SOLVER:  # the gap of HiGHS is more than a thousandth of it
                    text = "HiGHS cannot prove that its decision for {row} is optimal. " + WIDE
                    raise row_error(SolverError, first + i, text)
    return W


def tighten(form: InequalityForm, integers: np.ndarray) -> InequalityForm:
    """Reduce coefficients of integers that are larger than needed, such as big-M constants: the same integer points.

    HiGHS takes an integer for 0 if it is 1e-9, and 1e-9 of a large coefficient is enough to satisfy the row.
    """
    A, b = form.A_ub.copy(), form.b_ub.copy()
    for i in range(b.size):
        row = slice(A.indptr[i], A.indptr[i + 1])
        columns, values = A.indices[row], A.data[row]
        sizes = np.abs(values)
        large = integers[columns] & (sizes > JUMP * np.where(sizes > 0, sizes, np.inf).min(initial=np.inf))
        for k in np.flatnonzero(large):
            lower, upper = form.lower[columns], form.upper[columns]
            with np.errstate(invalid="ignore"):
                most = np.delete(np.where(values > 0, values * upper, values * lower), k).sum()
            # The row matters only if this integer is at the bound where it leaves least room for the others.
            end = upper[k] if values[k] > 0 else lower[k]
            room = b[i] - values[k] * end
            if np.isfinite(most - room) and most - room < sizes[k]:
                values[k] = np.sign(values[k]) * max(most - room, 0.0)
                b[i] = room + values[k] * end
    return replace(form, A_ub=A, b_ub=b)


def _settle(
    form: InequalityForm,
    c: np.ndarray,
    integers: np.ndarray,
    large: np.ndarray,
    w: np.ndarray,
    left: Callable[[], float],
    row: int,
) -> np.ndarray | None:
    """Best decision with the given values of the columns of large cost, if all other values are proved to be worse."""

    def solve(form: InequalityForm, c: np.ndarray) -> np.ndarray:
        try:
            w = _DepthFirst(form, integers).solve(c, row, left(), None)
        except InfeasibleRegionError:
            w = None
        return _BranchAndBound(form, integers).solve(c, row, left(), None) if w is None else w

    best = w
    for count in range(FREE):
        same = replace(form, lower=np.where(large, w, form.lower), upper=np.where(large, w, form.upper))
        w = solve(same, scale_costs(np.where(large, 0.0, c)[None])[0])
        best = w if count == 0 or c @ (w - best) < 0 else best
        low, high = large & (w == form.lower), large & (w == form.upper)
        if (large & ~(integers & (low | high))).any():
            break
        # At least one of these integers differs.
        other = sp.csr_array((high.astype(float) - low)[None])
        limit = form.upper[high].sum() - form.lower[low].sum() - 1.0
        form = replace(
            form, A_ub=sp.csr_array(sp.vstack([form.A_ub, other], format="csr")), b_ub=np.append(form.b_ub, limit)
        )
        try:
            w = solve(form, c)
        except InfeasibleRegionError:
            return best
        # HiGHS can tell costs apart that differ by ten times its gap.
        if c @ (w - best) > 10.0 * EXACT * (1.0 + float(np.abs(c) @ np.abs(w))):
            return best
    return None


def _lower_costs(
    c: np.ndarray, integers: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lower costs that are much larger than others, and mark those for which that may change the optimum.

    If costs of integers are multiples of a unit that is larger than everything that smaller costs can differ by, they
    decide first, whatever the unit is.
    """
    sizes, lowered, capped = np.abs(c), c.copy(), np.zeros(c.size, dtype=bool)
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    jumps = (ordered[1:] > JUMP * ordered[:-1]) & (ordered[:-1] > NOISE * ordered[-1])
    first, *groups = np.split(order, np.flatnonzero(jumps) + 1)
    span = np.where(upper > lower, upper - lower, 0.0)

    def reach(costs: np.ndarray, group: np.ndarray) -> float:
        used = group[costs[group] != 0]
        return float(np.abs(costs[used]) @ span[used])

    before = after = reach(c, first)
    largest = float(sizes[first].max())
    for group in groups:
        unit = _common_unit(sizes[group]) if integers[group].all() else 0.0
        if unit > 2.0 * before:
            new = float(np.ldexp(1.0, np.frexp(2.0 * after)[1]))
            lowered[group] = c[group] / unit * min(new, unit)
        else:
            limit = min(2.0 * after, 1e4 * largest) if np.isfinite(after) else 1e4 * largest
            high = group[sizes[group] > limit]
            lowered[high], capped[high] = np.sign(c[high]) * limit, True
        before, after = before + reach(c, group), after + reach(lowered, group)
        largest = max(largest, float(np.abs(lowered[group]).max()))
    # HiGHS gets costs whose smaller ones are of order one.
    return np.ldexp(lowered, -int(np.frexp(sizes[first].max())[1])), capped


def _common_unit(sizes: np.ndarray) -> float:
    """Largest number of which all sizes are integer multiples."""
    exponent = int(np.frexp(sizes)[1].min()) - 53
    return float(np.ldexp(float(gcd(*(int(x) for x in np.ldexp(sizes, -exponent)))), exponent))


class _Node(NamedTuple):
    bound: float  # cost of the optimum of the parent
    y: np.ndarray  # its multipliers
    lower: np.ndarray
    upper: np.ndarray
    basis: highspy.HighsBasis | None  # None: go on from the last linear program


class _DepthFirst(LinearModel):
    """Branch and bound with few nodes."""

    def __init__(self, form: InequalityForm, integers: np.ndarray) -> None:
        super().__init__(form)
        self.integers = np.flatnonzero(integers)
        #: best decision of the last search, proved or not
        self.found: np.ndarray | None = None
        # Rounding up decides more where decisions add up to a given number.
        self.up_first = np.zeros(form.lower.size, dtype=bool)
        self.up_first[form.A_eq.indices] = True

    def solve(self, c: np.ndarray, row: int, seconds: float, side: np.ndarray | None) -> np.ndarray | None:
        """Best decision, or None if it was not found and proved."""
        self.found = None
        if side is not None:
            self.set_sides(side)
        try:
            self.highs.changeColsCost(self.columns.size, self.columns, c)
            self.highs.clearSolver()
            set_seconds(self.highs, seconds)
            best, ends = self._search(c)
            self.found = best
        except SolverError:
            return None
        except Exception as error:
            raise failed(row, error) from error
        return best if best is not None and ends and self._proved(c, best, ends) else None

    def _search(self, c: np.ndarray) -> tuple[np.ndarray | None, list[_Node]]:
        """Best decision or None, and the nodes that were not divided; none if the search was not finished."""
        best, limit, root, reduced = None, np.inf, 0.0, c
        ends: list[_Node] = []
        nodes = [_Node(-np.inf, np.zeros(self.rows.size), self.lower, self.upper, self.basis)]
        for count in range(NODES):
            node = nodes.pop()
            status = self._relax(node, PRIMAL if count == 0 else DUAL)
            if status == Status.kOptimal:
                w, y = self._solution()
                cost = float(c @ w)
                if count == 0:
                    root, reduced = cost, np.abs(np.array(self.highs.getSolution().col_dual)[self.integers])
                rest = np.abs(w - np.rint(w))[self.integers]
                if cost >= limit:
                    ends.append(node._replace(y=y))
                elif rest.max() > EXACT:
                    nodes.extend(self._divide(node, w, y, cost, int(self.integers[rest.argmax()])))
                else:
                    ends.append(node._replace(y=y))
                    w[self.integers] = np.rint(w[self.integers])
                    best, cost = w, float(c @ w)
                    limit = cost - EXACT * (1.0 + float(np.abs(c) @ np.abs(w)))
            elif status != Status.kInfeasible:
                break
            while nodes and nodes[-1].bound >= limit:
                ends.append(nodes.pop())
            if not nodes:
                return best, ends
            # In better decisions, integers with a larger reduced cost than this difference are at the same bound.
            if best is not None and np.count_nonzero(reduced <= limit - root + EXACT) > FREE:
                break
        return best, []

    def _relax(self, node: _Node, strategy: int) -> Status:
        """Solve the linear program of a node."""
        self.highs.changeColsBounds(self.columns.size, self.columns, node.lower, node.upper)
        if node.basis is not None:
            self.highs.setBasis(node.basis)
        set_options(self.highs, {"simplex_strategy": strategy})
        self.highs.run()
        return self.highs.getModelStatus()

    def _divide(self, node: _Node, w: np.ndarray, y: np.ndarray, cost: float, j: int) -> list[_Node]:
        """Two nodes with w_j rounded up and down; the last one is solved first."""
        lower, upper, below = node.lower.copy(), node.upper.copy(), np.floor(w[j])
        lower[j], upper[j] = below + 1.0, below
        up, down = _Node(cost, y, lower, node.upper, None), _Node(cost, y, node.lower, upper, None)
        pair = (down, up) if self.up_first[j] or w[j] - below > 0.5 else (up, down)
        pair = (pair[0]._replace(basis=self.highs.getBasis()), pair[1])
        return [child for child in pair if child.lower[j] <= child.upper[j]]

    def _proved(self, c: np.ndarray, best: np.ndarray, ends: list[_Node]) -> bool:
        """Whether the decision satisfies the constraints, and no end of the search has a better one."""
        values = self.A @ best
        if np.maximum(self.row_lower - values, values - self.row_upper).max(initial=0.0) > EXACT:
            return False
        sides = np.array([np.concatenate([self.row_upper, node.lower, node.upper]) for node in ends])
        C, W = (np.broadcast_to(x, (len(ends), x.size)) for x in (c, best))
        return bool((self.gaps(C, W, np.array([node.y for node in ends]), sides) <= PROVED).all())


class _BranchAndBound:
    """A mixed-integer program whose costs change, and a linear program for its continuous decisions."""

    def __init__(self, form: InequalityForm, integers: np.ndarray) -> None:
        options: Options = {
            "mip_rel_gap": 0.0,
            "mip_abs_gap": EXACT,
            "mip_feasibility_tolerance": EXACT,
            "primal_feasibility_tolerance": EXACT,
            "dual_feasibility_tolerance": EXACT,
            # For programs that take milliseconds, searches for better decisions and restarts take most of the time.
            "mip_heuristic_run_feasibility_jump": False,
            "mip_heuristic_run_rins": False,
            "mip_heuristic_run_rens": False,
            "mip_heuristic_run_root_reduced_cost": False,
            "mip_allow_restart": False,
        }
        self.form, self.integers = form, integers
        self.highs, self.row_lower, _ = new_model(form, options, integers)
        self.rows = np.arange(self.row_lower.size, dtype=np.int32)
        self.columns = np.arange(integers.size, dtype=np.int32)
        self.fixed = np.flatnonzero(integers).astype(np.int32)
        self.polish = None if integers.all() else new_model(form, {"primal_feasibility_tolerance": 1e-10})[0]

    def solve(
        self, c: np.ndarray, row: int, seconds: float, side: np.ndarray | None, start: np.ndarray | None = None
    ) -> np.ndarray:
        """Minimize, round the integers, and minimize again over the continuous decisions; ``start`` may be good."""
        set_seconds(self.highs, seconds)
        if side is not None:
            self._set_sides(side)
        highs = self.highs
        highs.changeColsCost(self.columns.size, self.columns, c)
        # Clear the solver: the incumbent of the previous row would decide ties.
        try:
            highs.clearSolver()
            if start is not None:
                known = highspy.HighsSolution()
                known.col_value = start
                highs.setSolution(known)
            highs.run()
            status = highs.getModelStatus()
            if status == Status.kUnboundedOrInfeasible:
                highs.setOptionValue("presolve", "off")
                highs.clearSolver()
                highs.run()
                status = highs.getModelStatus()
                highs.setOptionValue("presolve", "choose")
            if status == Status.kOptimal:
                w = _integer_solution(highs, c, self.integers)
        except Exception as error:
            raise failed(row, error) from error
        if status != Status.kOptimal:
            raise_status(highs, status, row, side is not None)
        w[self.integers] = np.rint(w[self.integers])
        return w if self.polish is None else self._polished(self.polish, c, w, row)

    def _set_sides(self, side: np.ndarray) -> None:
        high = side[: self.rows.size].copy()
        low = np.where(np.isfinite(self.row_lower), high, -np.inf)
        for model in (self.highs,) if self.polish is None else (self.highs, self.polish):
            if self.rows.size:
                change_rows(model, self.rows, low, high)
            if side.size > self.rows.size:
                lower, upper = (bound.copy() for bound in bounds_of(self.form, side))
                model.changeColsBounds(self.columns.size, self.columns, lower, upper)

    def _polished(self, polish: highspy.Highs, c: np.ndarray, w: np.ndarray, row: int) -> np.ndarray:
        """After rounding, the continuous decisions may have to move slightly."""
        polish.changeColsCost(self.columns.size, self.columns, c)
        polish.changeColsBounds(self.fixed.size, self.fixed, w[self.integers], w[self.integers])
        polish.clearSolver()
        polish.run()
        if polish.getModelStatus() != Status.kOptimal:
            raise row_error(
                SolverError,
                row,
                "The decision for {row} is feasible only while its integers are not exactly integers. "
                "Use smaller coefficients (big-M constants) in the constraints.",
            )
        polished = np.where(self.integers, w, polish.getSolution().col_value)
        if not c @ polished <= c @ w + SOLVER * (1.0 + np.abs(c) @ np.abs(w)):
            raise row_error(SolverError, row, f"HiGHS calls a decision for {{row}} optimal that is not: {polished}.")
        return polished


def _integer_solution(highs: highspy.Highs, c: np.ndarray, integers: np.ndarray) -> np.ndarray:
    """Solution of a mixed-integer program, after a check against what HiGHS reports."""
    w, info = np.array(highs.getSolution().col_value, dtype=np.float64), highs.getInfo()
    if w.shape != c.shape or not np.isfinite(w).all():
        raise SolverError(f"the status is optimal, but the solution is {w}.")
    if (np.abs(w - np.rint(w))[integers] > 1e-5).any():
        raise SolverError(f"the status is optimal, but not all integers are integers: {w}.")
    cost, slack = float(c @ w), SOLVER * (1.0 + float(np.abs(c) @ np.abs(w)))
    for name, value in (("cost", info.objective_function_value), ("bound of all costs", info.mip_dual_bound)):
        if not abs(cost - value) <= slack:
            raise SolverError(f"the decision costs {cost:.6g}, but HiGHS says that its {name} is {value:.6g}: {w}.")
    return w
