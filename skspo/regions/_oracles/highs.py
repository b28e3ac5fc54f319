"""Linear and mixed-integer programs that share their constraints, solved with HiGHS row by row.

Conventions
-----------
    min c.w  over  {w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}   for every row c of C

One HiGHS model is built per call and thread, and only its costs change (``highs_linear.py``, ``highs_integer.py``).  It
is not stored in the region, so regions can be cloned and pickled.  Each thread keeps its last linear program, so that
decisions for one row at a time do not build it again.  HiGHS releases the interpreter lock while it runs, so threads
scale; processes would only take longer to start.

The status "optimal" is not taken as a proof.  A decision is returned only if it satisfies the constraints and, in a
linear program, if the multipliers prove that no decision costs less.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed

from ..._utils.errors import SolverError, UnboundedRegionError
from ..._utils.limits import carry_deadline, check_time, count_workers
from .._names import Names, say_variable
from .._rows import row_error
from .._tolerances import FEASIBLE, PROVED, SOLVER
from ..polyhedral import InequalityForm
from .highs_integer import solve_chunk, tighten
from .highs_linear import (
    TINY,
    LinearModel,
    Status,
    bounds_of,
    much_larger,
    raise_status,
    rows_at_once,
    scale_costs,
)

NOTHING: Mapping[str, np.ndarray] = {}  # no vector varies


class _Last(threading.local):
    """Last linear program of a thread: its constraints, and a list with the model, empty once they are gone."""

    program: tuple[weakref.ref[InequalityForm], list[LinearModel]] | None = None


_last = _Last()


def _take_model(form: InequalityForm, time_limit: float | None) -> LinearModel:
    """The last model of this thread if it has these constraints, else a new one."""
    last, _last.program = _last.program, None  # an error leaves nothing behind
    if last is None or last[0]() is not form:
        return LinearModel(form.scaled, time_limit)
    model = last[1].pop()
    model.set_time_limit(time_limit)
    return model


def _keep_model(form: InequalityForm, model: LinearModel) -> None:
    """Keep a model for the next call, as long as its constraints are needed."""
    kept = [model]
    _last.program = weakref.ref(form, lambda _: kept.clear()), kept


def map_rows(func: Callable[..., np.ndarray], *arrays: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Apply ``func(first_row, *arrays)`` to chunks of rows, in threads, and stack the results in order."""
    n = arrays[0].shape[0]
    k = count_workers(n_jobs, n)
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
    rows: Mapping[str, np.ndarray] = NOTHING,
) -> np.ndarray:
    """Minimize every row of ``C`` over a polyhedron; decisions that ``integrality`` (d,) marks must be integers.

    The result does not depend on the number of threads ``n_jobs``, nor on how rows are grouped into calls.  Vectors of
    the form that differ from row to row ("b_ub", "b_eq", "lower", "upper") are in ``rows``, and ``time_limit`` has the
    seconds for each row.  Errors say that the region is empty, a problem unbounded, or that HiGHS found no solution.
    """
    sides = _sides(form, rows, C.shape[0])
    C = scale_costs(C)
    integers = None if integrality is None or not np.any(integrality) else np.asarray(integrality, dtype=bool)

    def chunk(first: int, C: np.ndarray, *sides: np.ndarray) -> np.ndarray:
        check_time()
        if integers is not None:
            tight = form.scaled if sides else tighten(form.scaled, integers).scaled
            return solve_chunk(tight, C, integers, time_limit, first, *sides)
        if not C.shape[0]:
            return np.empty_like(C)
        model, parts, step = _take_model(form, time_limit), [], rows_at_once(form.A)
        for start in range(0, C.shape[0], step):
            rows = slice(start, start + step)
            parts.append(_linear_block(model, C[rows], first + start, *(side[rows] for side in sides)))
        if not sides:
            _keep_model(form, model)
        return np.concatenate(parts)

    return _checked(form.scaled, map_rows(chunk, C, *sides, n_jobs=n_jobs), *sides, integers=integers)


def _sides(form: InequalityForm, rows: Mapping[str, np.ndarray], n: int) -> tuple[np.ndarray, ...]:
    """Right-hand sides of each row of costs and, if bounds vary, its lower and upper bounds; nothing if none vary."""
    if not rows:
        return ()
    names = ("b_ub", "b_eq", "lower", "upper")[: 4 if {"lower", "upper"} & set(rows) else 2]
    vectors = (rows.get(name, getattr(form, name)) for name in names)
    sides = np.concatenate([np.broadcast_to(x, (n, x.shape[-1])) for x in vectors], axis=1)
    sides[:, : form.b_ub.size + form.b_eq.size] *= form.factors
    return (sides,)


def worst_rows(
    form: InequalityForm,
    C: np.ndarray,
    C_true: np.ndarray,
    *,
    n_jobs: int | None = None,
    rows: Mapping[str, np.ndarray] = NOTHING,
) -> np.ndarray:
    """Among the decisions optimal for each row of ``C``, the one with the largest cost under ``C_true``.

    By complementary slackness, on the optimal face every constraint with a nonzero multiplier is active, for any
    optimal multipliers.  These constraints become equalities, and the true cost is maximized.
    """
    sides = _sides(form, rows, C.shape[0])
    form, C, C_true = form.scaled, scale_costs(C), scale_costs(C_true)

    def chunk(first: int, C: np.ndarray, C_true: np.ndarray, *sides: np.ndarray) -> np.ndarray:
        W = np.empty_like(C)
        if C.shape[0]:
            model, wide = LinearModel(form), np.any(much_larger(C), axis=1).tolist()
            for i in range(C.shape[0]):
                check_time()
                for side in sides:
                    model.set_sides(side[i])
                best = C[i] @ (model.minimize_again if wide[i] else model.minimize)(C[i], first + i)
                model.fix_optimal_face()
                W[i] = model.minimize(-C_true[i], first + i, restart=False)
                model.release_face()
                if not C[i] @ W[i] <= best + SOLVER * (1.0 + np.abs(C[i]) @ np.abs(W[i])):
                    raise row_error(
                        SolverError, first + i, f"HiGHS calls a decision for {{row}} optimal that is not: {W[i]}."
                    )
        return W

    return _checked(form, map_rows(chunk, C, C_true, *sides, n_jobs=n_jobs), *sides)


def coordinate_bounds(form: InequalityForm, columns: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Finite bounds of every decision (or of some): the given ones, else its smallest and largest value."""
    low, high = form.lower.copy(), form.upper.copy()
    model = LinearModel(form.scaled)
    for bound, sign in ((low, 1.0), (high, -1.0)):
        missing = ~np.isfinite(bound) & (True if columns is None else columns)
        for j in map(int, np.flatnonzero(missing)):
            check_time()
            bound[j] = model.minimize(_direction(low.size, j, sign), f"the bounds of w[{j}]")[j]
    return low, high


def check_bounded(form: InequalityForm, names: Names = None) -> None:
    """Raise an error if a polyhedron is empty or unbounded; ``names`` are those of the decisions.

    It is bounded if and only if it has no ray r, that is A_ub r <= 0, A_eq r = 0, r_j >= 0 where there is a lower and
    r_j <= 0 where there is an upper bound.  One or two linear programs look for a ray with -1 <= r <= 1; what they find
    is confirmed along the coordinates, because small coefficients make long edges look like rays.
    """
    check_time()
    scaled = form.scaled
    model = LinearModel(scaled)  # an error if the region is empty
    below, above = np.isfinite(form.lower), np.isfinite(form.upper)
    while not (below & above).all():
        check_time()
        r = _ray(scaled, below, above)
        if r is None:
            return
        for j in map(int, np.flatnonzero(np.abs(r) > 0.5 * np.abs(r).max())):
            check_time()
            sign = -np.sign(r[j])
            status = model.run(_direction(r.size, j, sign))
            if status == Status.kUnbounded:
                raise UnboundedRegionError(
                    f"The region is unbounded: {say_variable(names, j)} has no limit "
                    f"{'below' if sign > 0 else 'above'}. "
                    "A region must be bounded, otherwise some costs have no best decision: add bounds."
                )
            if status != Status.kOptimal:
                raise_status(model.highs, status, f"the bounds of {say_variable(names, j)}")
            (below if sign > 0 else above)[j] = True


def _direction(d: int, j: int, sign: float) -> np.ndarray:
    c = np.zeros(d)
    c[j] = sign
    return c


def _ray(form: InequalityForm, below: np.ndarray, above: np.ndarray) -> np.ndarray | None:
    """Direction in which decisions can go without end; None if there is none."""
    m, k = form.A_ub.shape[0], form.A_eq.shape[0]
    low, high = np.where(below, 0.0, -1.0), np.where(above, 0.0, 1.0)
    model = LinearModel(InequalityForm(form.A_ub, np.zeros(m), form.A_eq, np.zeros(k), low, high))
    # No term of this cost is positive.  If their sum is never negative, the rays are a subspace of the free decisions,
    # and are all orthogonal to a random direction only if there are none.
    cost = form.A_ub.T @ np.ones(m) - (high == 1.0) * (low == 0.0) + (low == -1.0) * (high == 0.0)
    free = (~below & ~above) * np.random.default_rng(0).normal(size=below.size)
    for c in (cost, free):
        if c.any():
            r, _ = model.optimum(c, "a direction without end")
            if np.abs(r).max() > SOLVER:  # else tolerances allow it
                return r
    return None


def _checked(form: InequalityForm, W: np.ndarray, *sides: np.ndarray, integers: np.ndarray | None = None) -> np.ndarray:
    """Clip to the bounds, and check the other constraints."""
    lower, upper = form.lower, form.upper
    for side in sides:
        lower, upper = bounds_of(form, side)
    size = 1.0 + np.abs(W).max(axis=1, initial=0.0)
    excess = np.maximum(lower - W, W - upper).max(axis=1, initial=0.0) / size
    W = np.clip(W, lower, upper) + 0.0  # no negative zeros
    if W.shape[0]:
        m, b = form.b_ub.size, np.append(form.b_ub, form.b_eq)
        for side in sides:
            b = side[:, : form.A.shape[0]]
        over = (form.A @ W.T).T - b
        over[:, m:] = np.abs(over[:, m:])
        # Integers are exact, so that a violation is relative to what is in the row, however large the coefficients
        # of integers are that are zero.  Other decisions have errors relative to the size of the decision.
        largest = form.largest if integers is None else (form.sizes * ~integers).max(axis=1).toarray().ravel()
        terms = np.abs(b) + (form.sizes @ np.abs(W).T).T + np.outer(size, largest)
        over = np.where(over > FEASIBLE * terms, over / np.maximum(terms, TINY), 0.0)
        excess = np.maximum(excess, over.max(axis=1, initial=0.0))
        i = int(excess.argmax())
        if not excess[i] <= FEASIBLE:
            text = (
                f"HiGHS calls a decision for {{row}} optimal, but it violates a constraint, by {excess[i]:.1e} of its "
                "terms. Large coefficients (big-M constants) are a usual cause: use smaller ones."
            )
            raise row_error(SolverError, i, text)
    return W


def _linear_block(model: LinearModel, C: np.ndarray, first: int, *sides: np.ndarray) -> np.ndarray:
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
        W[i] = model.minimize_again(C[i], first + i)
    return W
