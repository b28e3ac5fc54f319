"""Polyhedra whose bounds and right-hand sides differ from sample to sample.

Conventions
-----------
    inequality form  {w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}    matrices of all samples, one row of
    standard form    {u : A u = b, lower <= u <= upper},  w = (u_1, ..., u_d)    b, lower and upper for each sample

An option that does not exist today has the bounds 0 and 0.  A variable is open in a sample if it is strictly between
its bounds at some decision: the bounds differ, and no constraint holds it at one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import null_space

from .._utils.errors import InfeasibleRegionError, SolverError
from .._utils.limits import TimeIsUp, check_time
from ._oracles.highs import FEASIBLE
from ._row_names import EMPTY, refuse_rows, row_error
from ._tolerances import ROUNDING
from .forms import InequalityForm, StandardForm, relative_interior, row_basis

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


def has_few_patterns(form: InequalityForm) -> bool:
    """Whether every variable has a bound, and few sets of bounds exist."""
    form = form.in_rows()
    bounded = bool((np.isfinite(form.lower) | np.isfinite(form.upper)).all())
    return bounded and sum(1 for _ in patterns(_kinds(form.lower, form.upper))) <= MOST_PATTERNS


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


def forbid(C: np.ndarray, available: np.ndarray | None) -> np.ndarray:
    """Costs with infinity for what is not available; None means that everything is."""
    return C if available is None else np.where(available, C, np.inf)


def check_available(label: str, available: np.ndarray, least: np.ndarray | int, what: str) -> None:
    """Raise an error that names a row with fewer available options than it needs."""
    count = available.sum(axis=1)
    needs = np.broadcast_to(least, count.shape)

    def text(row: int) -> str:
        have = f"{int(count[row])} of {available.shape[1]} options are available (region_params)"
        return f"{label}: the region of {{row}} is empty, {have} and {what} {int(needs[row])}."

    refuse_rows(count < needs, InfeasibleRegionError, text)


def rows_like(rows: dict[str, np.ndarray], name: str, default: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Values of a parameter in each row: the given ones, or the same for all."""
    n = next(iter(rows.values())).shape[0]
    return rows[name] if name in rows else np.broadcast_to(np.asarray(default), (n, *shape))
