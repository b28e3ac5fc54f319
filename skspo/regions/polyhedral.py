"""Base class of regions that are given by linear constraints.

A subclass implements ``_argmin`` and ``inequality_form``; the other capabilities follow from the latter.  Decisions may
have to be integers (``_is_polyhedron``): then the region has none of the capabilities of a polyhedron.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if

from .._utils.errors import SolverError
from ._row_names import rows_named
from ._tolerances import SOLVER
from .base import Region
from .capabilities import project_visible
from .forms import InequalityForm, PolyhedralGeometry, StandardForm, polyhedral_geometry
from .row_polyhedra import Interior, find_interior, fixed_directions, has_few_patterns, repair_rows

if TYPE_CHECKING:
    import cvxpy as cp

_if_polyhedron = available_if(lambda region: region._is_polyhedron)


def _has_standard_form(region: PolyhedralRegion) -> bool:
    """Whether solvers can use a standard form: if it varies by sample, there must be few sets of bounds."""
    if region._rows is None or not region._is_polyhedron:
        return region._is_polyhedron
    cache = region._rows.cache
    if "few patterns" not in cache:
        cache["few patterns"] = has_few_patterns(region._constraints(region._rows.n_dim))
    return bool(cache["few patterns"])


class PolyhedralRegion(Region):
    """Base class of regions that have an ``inequality_form``, and of those of integer points of a polyhedron."""

    @property
    def _is_polyhedron(self) -> bool:
        """Whether the decisions are all points of the polyhedron, and not only integer ones."""
        return True

    @_if_polyhedron
    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return the region as {A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}.

        If parameters vary by sample, the vectors that depend on them have one row for each sample.
        """
        raise NotImplementedError

    def _constraints(self, d: int) -> InequalityForm:
        """Linear constraints of the decisions, also of those that must be integers."""
        return self.inequality_form(d)

    def _tight(self, form: InequalityForm) -> InequalityForm:
        """Without inequalities that no decision between the bounds reaches; for parts of the samples the same ones."""
        if self._rows is None:
            return form.without(form.loose())
        if "loose" not in self._rows.cache:
            self._rows.cache["loose"] = form.loose()
        return form.without(self._rows.cache["loose"])

    def _own_bounds(self, d: int) -> tuple[np.ndarray, np.ndarray] | None:
        if self._rows is None:
            return None
        form = self._constraints(d)
        return form.lower, form.upper

    @available_if(_has_standard_form)
    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """Return the region as {A u = b, lower <= u <= upper}: one slack per inequality, after the decisions."""
        return self.inequality_form(n_dim).standard()

    @available_if(lambda region: region._rows is not None and region._is_polyhedron)
    def _interior(self) -> Interior:
        """Points inside the standard form of each sample, if parameters vary by sample (cached)."""
        assert self._rows is not None
        if "interior" not in self._rows.cache:
            with rows_named(self._row_names.of):
                found = find_interior(self.inequality_form(self._rows.n_dim).standard())
            self._rows.cache["interior"] = found
        return Interior(*self._rows.cache["interior"])

    @_if_polyhedron
    def _geometry(self, n_dim: int | None = None) -> PolyhedralGeometry:
        """Relative interior point and affine hull (cached until a parameter is replaced)."""
        d = self.resolve_dim(n_dim)
        return cast("PolyhedralGeometry", self._derived("geometry", d, lambda: self._find_geometry(d)))

    def _find_geometry(self, d: int) -> PolyhedralGeometry:
        form = self.inequality_form(d)
        geometry = polyhedral_geometry(form)
        implied = form.inequalities()[0][~geometry.strict].toarray()
        if implied.shape[0]:  # check with the oracle that they hold for decisions in both directions
            implied /= np.maximum(np.abs(implied).max(axis=1, keepdims=True), 1e-300)
            low, high = self._solve_directions(implied), self._solve_directions(-implied)
            extent = np.einsum("ij,ij->i", high - low, implied)
            if (extent > SOLVER * (1.0 + np.abs(np.concatenate([low, high])).max())).any():
                raise SolverError("HiGHS reported an implied equality that feasible decisions violate.")
        return geometry

    @available_if(lambda region: region._is_polyhedron or region._rows is not None)
    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal rows E with E w constant on the region; if it varies, those of all samples that are given."""
        if self._rows is None:
            return self._geometry(n_dim).normals
        form = self._constraints(self.resolve_dim(n_dim)).in_rows()
        return fixed_directions(form.A_eq, (form.lower == form.upper).all(axis=0))

    def _always_hidden(self, d: int) -> np.ndarray:
        if self._rows is None:
            return super()._always_hidden(d)
        return fixed_directions(self._constraints(d).A_eq)  # the bounds of other samples may differ

    @_if_polyhedron
    def repair(self, W: np.ndarray) -> np.ndarray:
        """Move nearly feasible decisions into the region: project on the affine hull, shrink towards the interior."""
        if self._rows is not None:
            return repair_rows(self.inequality_form(W.shape[1]), self._interior, W)
        geo = self._geometry(W.shape[1])
        M, q = self.inequality_form(W.shape[1]).inequalities()
        M, q = M[geo.strict], q[geo.strict]
        step = project_visible(W - geo.center, geo.normals)
        slack = q - M @ geo.center
        excess = (M @ step.T).T / slack
        return geo.center + step / np.maximum(excess.max(axis=1, initial=1.0), 1.0)[:, None]

    @_if_polyhedron
    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row of a CVXPY expression, by linear programming duality."""
        import cvxpy as cp

        n, d = V.shape
        form = self.inequality_form(d)
        up, low = np.isfinite(form.upper), np.isfinite(form.lower)
        some_up, some_low = (mask.reshape(-1, d).any(axis=0) for mask in (up, low))
        total, terms, constraints = 0.0 * V, [], []
        upper = np.where(up, form.upper, 0.0)[..., some_up]
        eye = sp.eye_array(d, format="csr")
        for matrix, rhs, inequality in (
            (form.A_ub, form.b_ub, True),
            (form.A_eq, form.b_eq, False),
            (eye[some_up], upper, True),
        ):
            if matrix.shape[0]:
                y = cp.Variable((n, matrix.shape[0]), nonneg=inequality)
                total = total + y @ matrix
                terms.append(y @ rhs if rhs.ndim == 1 else cp.sum(cp.multiply(rhs, y), axis=1))
        if not up[..., some_up].all():  # the multiplier of a bound that a sample does not have is zero
            constraints.append(cp.multiply((~up[:, some_up]).astype(float), y) == 0)
        # The multipliers of the lower bounds are eliminated: r = total - V.
        excess, lower = total - V, np.where(low, form.lower, 0.0)
        if some_low.any():
            constraints.append(excess[:, np.flatnonzero(some_low)] >= 0)
            terms.append(-(excess @ lower if lower.ndim == 1 else cp.sum(cp.multiply(lower, excess), axis=1)))
        if not some_low.all():
            constraints.append(excess[:, np.flatnonzero(~some_low)] == 0)
        if not low[..., some_low].all():
            constraints.append(cp.multiply((~low).astype(float), excess) == 0)
        return reduce(add, terms), constraints
