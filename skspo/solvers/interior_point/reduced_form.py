"""The polyhedron of every sample as the interior-point method wants it: nothing fixed, shifted, redundant or free."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ...regions._oracles.highs import with_bounds
from ...regions.capabilities import has
from ...regions.polyhedral import InequalityForm, StandardForm, polyhedral_geometry


class ReducedForm(NamedTuple):
    """{w = offset + E u : A u = b, u >= 0, u[bounded] <= h} with A of full row rank and a strictly feasible u."""

    A: np.ndarray  # (m, N)
    E: np.ndarray  # (d, N)
    offset: np.ndarray  # (d,)
    bounded: np.ndarray  # indices of variables with an upper bound
    h: np.ndarray  # their bounds
    center: np.ndarray  # (N,) strictly feasible
    S: np.ndarray | None  # (N, N): u^T S u <= 1 as well
    directions: np.ndarray  # (d, k) orthonormal basis of the directions of w


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


def reduce_form(standard: StandardForm, d: int) -> ReducedForm:
    """Remove variables that are fixed, openly or by implication, shift bounds to zero, drop redundant equalities."""
    standard = with_bounds(standard)  # a variable without bounds has no scaling
    lower, upper = standard.lower, standard.upper
    N = lower.size
    E = np.eye(d, N) if standard.project is None else standard.project.toarray()
    form = InequalityForm.build(N, A_eq=standard.A, b_eq=standard.b, lower=lower, upper=upper)
    geometry = polyhedral_geometry(form)
    up, low_ = np.isfinite(upper), np.isfinite(lower)
    # geometry.strict lists the finite upper bounds, then the finite lower bounds.
    strict_up, strict_low = np.ones(N, dtype=bool), np.ones(N, dtype=bool)
    strict_up[up] = geometry.strict[: up.sum()]
    strict_low[low_] = geometry.strict[up.sum() :]
    kept = strict_up & strict_low
    fixed = np.where(strict_low, upper, lower)
    u_fixed = np.where(kept, 0.0, fixed)
    # Variables with only an upper bound are mirrored, so that every variable has the lower bound zero.
    sign = np.where(low_, 1.0, -1.0)[kept]
    base = np.where(low_, lower, upper)[kept]
    offset = E @ u_fixed + E[:, kept] @ base
    A = standard.A.toarray()[:, kept] * sign
    if not A.size:
        A = np.zeros((0, A.shape[1]))  # no equalities, or nothing left for them to say
    else:
        _, R, pivots = scipy.linalg.qr(A.T, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(R))
        A = A[pivots[: int((diagonal > 1e-10 * max(float(diagonal[0]), 1e-300)).sum())]]
    E = E[:, kept] * sign
    span = upper[kept] - lower[kept]
    bounded = np.flatnonzero(np.isfinite(span))
    center = (geometry.center[kept] - base) * sign
    null = scipy.linalg.null_space(A) if A.shape[0] else np.eye(A.shape[1])
    U, sv, _ = np.linalg.svd(E @ null, full_matrices=False)
    directions = U[:, sv > 1e-10 * max(float(sv.max(initial=0.0)), 1e-300)] if sv.size else np.zeros((d, 0))
    return ReducedForm(A, E, offset, bounded, span[bounded], center, None, directions)
