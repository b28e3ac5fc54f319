"""The polyhedron of every sample as the interior-point method wants it: nothing fixed, shifted, redundant or free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ..._training.run import Run
from ...regions._oracles.highs import coordinate_bounds
from ...regions._tolerances import RANK
from ...regions.capabilities import equalities_of, has
from ...regions.polyhedral import InequalityForm, StandardForm, patterns, relative_interior


class ReducedForm(NamedTuple):
    """{w = offset + E u : A u = b, u >= 0, u[bounded] <= h} with A of full row rank and a strictly feasible u.

    If the region varies by sample, ``offset``, ``h`` and ``center`` have one row for each sample, and samples in which
    different variables are fixed have forms of their own.
    """

    A: np.ndarray  # (m, N)
    E: np.ndarray  # (d, N)
    offset: np.ndarray  # (d,)
    bounded: np.ndarray  # indices of variables with an upper bound
    h: np.ndarray  # their bounds
    center: np.ndarray  # (N,) strictly feasible
    S: np.ndarray | None  # (N, N): u^T S u <= 1 as well
    directions: np.ndarray  # (d, k) orthonormal basis of the directions of w
    rows: np.ndarray | None = None  # the samples, if the region varies


def forms_of(objective: Any, run: Run) -> list[ReducedForm]:
    """Reduced forms of the region of an objective, which together have all samples; none if it has no interior."""
    region, d = objective.region, objective.normals.shape[1]
    if has(region, "standard_form") and region.standard_form(d).varies:
        return list(reduce_rows(region, d))
    if run.derived.forms is None:
        form = region_form(region, d)
        run.derived.forms = [] if form is None else [form]
    return run.derived.forms


def region_form(region: Any, d: int) -> ReducedForm | None:
    """Reduced form of a polyhedral region, or of one with a quadratic constraint; None if that has no interior."""
    if has(region, "standard_form"):
        return reduce_form(region.standard_form(d), d)
    quadratic = region.quadratic_form(d)
    if quadratic.inside is None:
        return None
    # Nothing is fixed, shifted or mirrored: there is a point strictly inside, and all lower bounds are zero.
    form = reduce_form(quadratic.standard, d)
    if form.bounded.size or form.A.shape[0] != 1 or not (form.A == 1.0).all():
        raise ValueError(f"quadratic_form of {type(region).__name__}: the polyhedron must be {{u >= 0, sum u = b}}.")
    return form._replace(center=quadratic.inside, S=form.E.T @ quadratic.Q @ form.E / quadratic.limit)


def with_bounds(form: StandardForm) -> StandardForm:
    """Give variables that have no bound at all two that cannot be active."""
    free = ~np.isfinite(form.lower) & ~np.isfinite(form.upper)
    if not free.any():
        return form
    bounds = {"lower": form.lower, "upper": form.upper}
    low, high = coordinate_bounds(InequalityForm.build(free.size, A_eq=form.A, b_eq=form.b, **bounds), columns=free)
    room = 1.0 + (high - low)[free]
    low[free] -= room
    high[free] += room
    return form._replace(lower=low, upper=high)


def reduce_form(standard: StandardForm, d: int) -> ReducedForm:
    """Remove variables that are fixed, openly or by implication, shift bounds to zero, drop redundant equalities."""
    standard = with_bounds(standard)  # a variable without bounds has no scaling
    lower, upper = standard.lower, standard.upper
    N = lower.size
    E = np.eye(d, N) if standard.project is None else standard.project.toarray()
    form = InequalityForm.build(N, A_eq=standard.A, b_eq=standard.b, lower=lower, upper=upper)
    center, strict = relative_interior(form)
    up, low_ = np.isfinite(upper), np.isfinite(lower)
    # ``strict`` lists the finite upper bounds, then the finite lower bounds.
    strict_up, strict_low = np.ones(N, dtype=bool), np.ones(N, dtype=bool)
    strict_up[up] = strict[: up.sum()]
    strict_low[low_] = strict[up.sum() :]
    kept = strict_up & strict_low
    at = np.where(kept, center, np.where(strict_low, upper, lower))
    return _shifted(standard.A.toarray(), E, lower, upper, kept, at)


def reduce_rows(region: Any, d: int) -> Iterator[ReducedForm]:
    """Reduced forms of a region that varies by sample, one for each set of variables that are fixed together."""
    standard: StandardForm = region.standard_form(d)
    interior = region._interior()
    lower, upper, A = standard.lower, standard.upper, standard.A.toarray()
    E = np.eye(d, lower.shape[1]) if standard.project is None else standard.project.toarray()
    # Directions that are constant in some samples only are left to the penalty and the proximal term.
    normals = equalities_of(region, d)
    directions = scipy.linalg.null_space(normals) if normals.size else np.eye(d)
    table = np.concatenate([interior.open, np.isfinite(lower), np.isfinite(upper)], axis=1)
    for pattern, rows in patterns(table):
        kept = pattern[: lower.shape[1]]
        form = _shifted(A, E, lower[rows], upper[rows], kept, interior.center[rows])
        if form.A.shape[0] == form.A.shape[1]:  # the equalities leave only one decision
            form = _shifted(A, E, lower[rows], upper[rows], np.zeros_like(kept), interior.center[rows])
        yield form._replace(directions=directions, rows=rows)


def _shifted(
    A: np.ndarray, E: np.ndarray, lower: np.ndarray, upper: np.ndarray, kept: np.ndarray, at: np.ndarray
) -> ReducedForm:
    """Form of the variables that are kept; the others are fixed.  ``at`` is feasible; vectors may have rows."""
    # Variables with only an upper bound are mirrored, so that every variable has the lower bound zero.
    low = np.isfinite(lower if lower.ndim == 1 else lower[0])  # the same in all rows
    sign = np.where(low, 1.0, -1.0)[kept]
    base = np.where(low, lower, upper)[..., kept]
    offset = at[..., ~kept] @ E[:, ~kept].T + base @ E[:, kept].T
    A = A[:, kept] * sign
    Q = np.zeros((A.shape[1], 0))  # orthonormal basis of the rows of A
    if not A.size:
        A = np.zeros((0, A.shape[1]))  # no equalities, or nothing left for them to say
    else:
        Q, R, pivots = scipy.linalg.qr(A.T, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(R))
        rank = int((diagonal > RANK * max(float(diagonal[0]), 1e-300)).sum())
        A, Q = A[pivots[:rank]], Q[:, :rank]
    E = E[:, kept] * sign
    span = (upper - lower)[..., kept]
    bounded = np.flatnonzero(np.isfinite(span if span.ndim == 1 else span[0]))
    center = (at[..., kept] - base) * sign
    # What is left of E in the directions in which u varies; rounding errors are relative to E.
    U, sv, _ = np.linalg.svd(E - (E @ Q) @ Q.T, full_matrices=False)
    directions = U[:, sv > RANK * max(float(np.linalg.norm(E)), 1e-300)]
    return ReducedForm(A, E, offset, bounded, span[..., bounded], center, None, directions)
