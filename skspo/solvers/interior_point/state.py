"""Interior-point method: the polyhedra of all samples in reduced form, an iterate, and the work of a step."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ..._training.in_memory import InMemoryObjective
from ..._training.objective import LinearObjective
from ..._training.run import Derived, Run
from ..._utils.limits import BLOCK_ELEMENTS, BLOCK_NUMBERS, check_time
from ...regions._oracles.highs import coordinate_bounds
from ...regions._tolerances import RANK
from ...regions.capabilities import equalities_of, has
from ...regions.polyhedral import InequalityForm, StandardForm, patterns, relative_interior
from ..base import MATRIX_SPEED, STEP
from ..predictor_corrector import MOST, longest
from .banded import DualGraph
from .blocks import (
    Block,
    FeatureSums,
    LassoBlock,
    NormalMatrix,
    PlanarBlock,
    SharedBlock,
    packed_indices,
    packed_squares,
)
from .cycles import cycle_basis
from .quadratic import QuadraticBlock, SharedQuadraticBlock

#: distance from the start, in typical costs, at which the pull back to it is as strong as the barrier; less for curved
#: regions, whose oracles have a tolerance relative to the largest cost
PULL, CURVED_PULL = 10_000.0, 100.0

#: number of faces times the larger of the numbers of samples and faces from which banded matrices pay
PLANAR_WORK = 4_000

#: mu of the first iterate in typical costs
START = 0.3

#: the same for curved regions, and the share of the way to the boundary that their steps use: they need a third fewer
#: iterations
CURVED_START, CURVED_MOST = 0.1, 0.95

#: shares of a corrector that are tried
SHARES = (1.0, 0.5, 0.2)

#: arrays of the size of the iterate
COPIES = 20.0

#: operations of one iteration on each entry of the iterate
ITERATE = 100.0


class _Move(NamedTuple):
    """A search direction: of the coefficients, and of every block relative to its iterate."""

    dP: np.ndarray
    blocks: list[tuple[np.ndarray, ...]]

    def plus(self, extra: _Move, primal: float, dual: float) -> _Move:
        """Add a share of another direction; coefficients and dual slacks belong together."""
        shares = (primal, dual, primal, dual)
        blocks = [
            tuple(x + w * y if w else x for x, y, w in zip(mine, other, shares, strict=True))
            for mine, other in zip(self.blocks, extra.blocks, strict=True)
        ]
        return _Move(self.dP + dual * extra.dP, blocks)


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


class Polytope:
    """Form of some of the samples, and what the blocks of all of them share.

    ``derived`` is the cache of what depends on the region only; None if it varies.
    """

    def __init__(self, state: State, form: ReducedForm, derived: Derived | None) -> None:
        self.objective, self.form = state.objective, form
        self.a, self.Z, self.q, self.k = state.a, state.Z, state.q, state.k
        basis, shared = state.basis, state.objective.design.shared
        self.A, self.U = form.A, form.bounded
        m, N = form.A.shape
        self.b = form.center @ form.A.T
        # (N, k): costs of u from reduced coefficients, if there are some for each cost
        self.EZ = np.zeros((N, 0)) if shared else form.E.T @ basis
        self.S = form.S
        self.simple = m <= 1 and form.S is None  # M is diagonal, or diagonal minus rank one
        if not self.simple:  # (N, N - m), which may be large
            self.null = scipy.linalg.null_space(self.A) if m else np.eye(N)
            self.NZ = self.null.T @ self.EZ
        self.dual: Any = self._dual_graph(derived)
        # The lower triangle of a (k, k) matrix, row by row, and where its entries are in the sums over samples.
        self.packed = np.ravel_multi_index(np.tril_indices(self.k), (self.k, self.k))
        self.square, self.from_faces = packed_indices(self.k), None
        if self.dual is not None:
            self.square, self.from_faces = self.dual.square, self.dual.faces_T @ self.EZ
        # Products needed to form the matrices of many samples by one matrix product.
        if self.simple:
            self.AA = self.A.T**2
            self.AZ = self.A.T * self.EZ if m else self.EZ
            self.ZZ = packed_squares(self.EZ.T, self.EZ.T).T
        else:
            self.A_pinv = np.linalg.pinv(self.A)
        if form.S is not None:
            self._add_quadratic(form.S)

    def _dual_graph(self, derived: Derived | None) -> DualGraph | None:
        """Faces of a planar graph, if the equalities are those of flows and banded matrices pay."""
        m, N = self.A.shape
        if derived is None or self.S is not None or self.simple or self.objective.design.shared:
            return None
        if not large_enough(self.a.size, N - m):
            return None
        if derived.faces is None:
            faces = cycle_basis(self.A)
            derived.faces = [] if faces is None else [faces]
        return DualGraph(*derived.faces) if derived.faces else None

    def _add_quadratic(self, S: np.ndarray) -> None:
        values, vectors = np.linalg.eigh(S)
        some = values > 1e-14 * values[-1]
        self.G = (np.sqrt(values[some]) * vectors[:, some]).T  # u^T S u = |G u|^2
        if not self.objective.design.shared:
            N = len(S)
            self.square, self.from_faces = packed_indices(N), self.EZ
            self.packed = np.ravel_multi_index(np.tril_indices(N), (N, N))

    def seen(self, costs: np.ndarray) -> np.ndarray:
        """Costs of u in orthonormal coordinates of the null space of the equalities."""
        if not self.simple:
            return costs @ self.null
        if not self.A.shape[0]:
            return costs
        # A reflection that takes the only row of A to the first axis.
        axis = self.A[0].copy()
        axis[0] += np.copysign(np.linalg.norm(axis), axis[0])
        axis /= np.linalg.norm(axis)
        return (costs - 2.0 * np.outer(costs @ axis, axis))[:, 1:]

    def make_blocks(self) -> list[Any]:
        """Divide the samples."""
        shared, N = self.objective.design.shared, self.A.shape[1]
        null, q = N - self.A.shape[0], self.q
        # What a block computes for each sample: iterates, and the entries of its matrices.
        elements, products = (N * q, null * q) if shared else (N, self.k**2 if self.simple else null**2)
        if self.dual is not None:
            # Many operations on arrays of few elements: samples are divided only to save memory.
            elements, products = max(1, N // 2), null * self.dual.band
        size = max(1, min(BLOCK_NUMBERS // elements, BLOCK_ELEMENTS // products))
        Samples: Any = SharedBlock if shared else Block if self.dual is None else PlanarBlock
        if self.S is not None:
            Samples = SharedQuadraticBlock if shared else QuadraticBlock
        n = self.a.size if self.form.rows is None else self.form.rows.size
        return [Samples(self, slice(i, min(i + size, n))) for i in range(0, n, size)]


class State:
    """Iterate and Newton system of the method.

    There is one form, or several that together have all samples; ``derived`` has what depends on the region only.  A
    linear function with this ``slope`` is added to the objective.
    """

    def __init__(
        self,
        objective: InMemoryObjective,
        forms: list[ReducedForm],
        Theta: np.ndarray,
        derived: Derived,
        slope: np.ndarray | None = None,
    ) -> None:
        self.objective = objective
        self.a = objective.weight

        design, self.back = orthonormalized(objective)
        self.Z, self.q = design.Z, design.n_coef
        lasso = bool(objective.l1.any())
        # A ridge and the loss alike are blind to hidden directions; an l1 norm is not.
        self.basis = np.eye(objective.shape[0]) if lasso or design.shared else forms[0].directions
        if design.known.size and not design.shared:
            self.basis = self.basis @ scipy.linalg.null_space(self.basis[design.known])
        self.k = self.basis.shape[1]
        self.S = forms[0].S
        self.hold, self.most = (PULL**-2.0, MOST) if self.S is None else (CURVED_PULL**-2.0, CURVED_MOST)
        varies = forms[0].rows is not None
        #: decisions of samples that have only one, and offsets of the others
        self.offset = np.empty(objective.W.shape)
        for form in forms:
            self.offset[slice(None) if form.rows is None else form.rows] = form.offset
        self.parts = [Polytope(self, form, None if varies else derived) for form in forms if form.A.shape[1]]
        self.target = self.basis.T @ design.adjoint((objective.W - self.offset) * self.a[:, None])
        if slope is not None:
            self.target += 0.5 * self.basis.T @ slope @ self.back

        # P: reduced T = 2 Theta.  Start at the given coefficients, pinned down in the kept coordinates.
        self.start = 2.0 * self.basis.T @ Theta
        self.prior, self.l2 = np.zeros((self.k, self.q)), np.zeros((self.k, self.q))
        if objective.alpha > 0:
            self.prior, self.l2 = 2.0 * self.basis.T @ objective.prior, self.l2 + objective.l2
        else:
            self.start = self.start @ np.linalg.pinv(self.back).T
        # With a ridge the coefficients stand on both sides.
        self.one_step = bool(self.l2.any())
        self.blocks = [block for part in self.parts for block in part.make_blocks()]
        self.normal = NormalMatrix(self.q, self.k)
        self.lasso = LassoBlock(objective.l1, self.prior) if lasso else None
        #: the blocks and the penalty, if it is one
        self.cones: list[Block] = self.blocks + ([self.lasso] if self.lasso else [])
        self.restart(START if self.S is None else CURVED_START)
        self.scratch = np.empty((2, max(block.u.size for block in self.cones)))
        self.count = sum(float(block.a.sum()) * block.degree for block in self.blocks)

    def restart(self, size: float) -> None:
        """Go to the point of the central path, for the starting coefficients, where mu is ``size`` typical costs."""
        self.P = self.start
        seen, count = 0.0, 0
        for block in self.blocks:
            check_time()
            costs = block.shared.seen(block.costs(self.P))
            seen, count = seen + float(np.abs(costs).sum()), count + costs.size
        for block in self.cones:
            check_time()
            block.center(size * max(seen / count, 1e-8), self.P)

    def release(self) -> None:
        """Break the cycle of references between state and blocks: memory is free at once, not when it is collected."""
        self.blocks, self.cones = [], []

    # -- measures ------------------------------------------------------------------------------------------------------

    def gap(self) -> float:
        """Complementarity, which is the duality gap once both sides are feasible."""
        return sum(block.complementarity() for block in self.cones)

    def moments(self, iterates: list[np.ndarray] | None = None) -> np.ndarray:
        """Moments of the decisions, less their target, less half the penalty's subgradient: zero at the solution."""
        iterates = [block.u for block in self.blocks] if iterates is None else iterates
        R: Any = sum(block.moments(u) for block, u in zip(self.blocks, iterates, strict=True))
        if self.lasso:
            R = R + self.lasso.moments(self.lasso.u)
        return R - self.target - 0.25 * self.l2 * (self.P - self.prior)

    def growth(self) -> float:
        """Size of the coefficients relative to where they started, or to a tenth of a typical cost."""
        return float(np.linalg.norm(self.P)) / max(float(np.linalg.norm(self.start)), 0.1)

    def decisions(self, iterates: list[np.ndarray] | None = None) -> np.ndarray:
        """Decisions w of the samples, from u of the blocks; by default those of the iterate."""
        iterates = [block.u for block in self.blocks] if iterates is None else iterates
        W = self.offset.copy()
        for block, u in zip(self.blocks, iterates, strict=True):
            W[block.rows] = block.decisions(u)
        return W

    def matched_decisions(self) -> np.ndarray:
        """Decisions moved, inside the polytope and where there is room, until their moments match up to rounding.

        Du_i = -M_i E^T Y z_i cancels the residual of the moments, which the certificate charges for; M_i is small
        wherever u or t is.
        """
        for block in self.blocks:  # the next step prepares them again
            check_time()
            inverse = 1.0 / (block.u * block.u)
            curvature = block.add_barrier(block.u, 1.0, np.zeros_like(inverse), inverse)
            block.D = 1.0 / inverse
            block.F = block.factor(block.D, curvature)
        best, R = [block.u for block in self.blocks], self.moments()
        solvable = self._assemble() and self.normal.factor()
        for _ in range(5 if solvable else 0):  # the first step leaves rounding errors, unless it was shortened
            Y, worst, steps = self.normal.solve(R), 0.0, []
            for block, u in zip(self.blocks, best, strict=True):
                du = block.restore(block.F, block.D, u) - block.apply(block.F, block.D, block.slopes(Y))
                worst = max(worst, float((-du / u).max()), float(block.loss_of_room(block.u, du).max()))
                steps.append(du)
            length = min(1.0, 0.9 / max(worst, 1e-300))
            trial = [u + length * du for u, du in zip(best, steps, strict=True)]
            after = self.moments(trial)
            if not np.linalg.norm(after) < 0.7 * np.linalg.norm(R):
                break
            best, R = trial, after
        return self.decisions(best)

    def coefficients(self) -> np.ndarray:
        """Theta of the iterate, in the objective's coordinates."""
        Theta = 0.5 * self.basis @ self.P @ self.back.T
        return self.objective.canonical(Theta)

    # -- one iteration -------------------------------------------------------------------------------------------------

    def mu(self) -> float:
        """Average of the complementarity products of the samples."""
        return sum(block.complementarity() for block in self.blocks) / self.count

    def factor(self, mu: float) -> bool:
        """Matrices of the samples and the coupled one."""
        for block in self.cones:
            check_time()
            block.prepare(self.P)
        curvature = 0.25 * self.l2 + mu * self.hold
        if self.lasso:
            curvature += self.lasso.curvature()
        if not self._assemble() or not self.normal.factor(curvature):
            return False
        self.R = self.moments()
        return True

    def _assemble(self) -> bool:
        """Sum the samples' parts of the coupled matrix; False if it is not finite."""
        part = self.parts[0]
        sums = FeatureSums(self.q, part.packed.size if part.dual is None else part.dual.entries)
        for block in self.blocks:
            block.add_to(sums)
        if not np.isfinite(sums.sums).all():
            return False
        self.normal.fill(sums.sums, part.square, part.from_faces)
        return True

    def predictor(self) -> _Move:
        """Direction to feasibility and to products of zero."""
        return self._direction([block.predictor() for block in self.cones], self.R, feasibility=True)

    def after(self, move: _Move, primal: float, dual: float) -> float:
        """The same after a step."""
        pairs = zip(self.blocks, move.blocks, strict=False)  # without the penalty
        return sum(block.after(part, primal, dual) for block, part in pairs) / self.count

    def corrector(self, move: _Move, goal: float) -> _Move:
        """Predictor with as much of Mehrotra's corrector as makes the steps longest, and centrality correctors."""
        pairs = zip(self.cones, move.blocks, strict=True)
        targets = [block.second_order(part, goal) for block, part in pairs]
        corrector = self._direction(targets, -goal * self.hold * (self.P - self.start))
        return self._centered(*self._combine(move, corrector, 0.0, 0.0), goal)

    def _centered(self, move: _Move, ap: float, ad: float, goal: float) -> _Move:
        """Add centrality correctors while they make the steps longer."""
        for _ in range(4):
            if min(ap, ad) >= 0.9:
                break
            longer = min(1.0, ap + 0.3), min(1.0, ad + 0.3)
            pairs = zip(self.cones, move.blocks, strict=True)
            targets = [block.centrality(part, *longer, goal) for block, part in pairs]
            trial, cp, cd = self._combine(move, self._direction(targets), ap, ad)
            if cp + cd < ap + ad + 0.02:
                break
            move, ap, ad = trial, cp, cd
        return move

    def finite(self, move: _Move) -> Any:
        """Whether a direction has only finite numbers."""
        return np.isfinite(move.dP).all() and all(np.isfinite(x).all() for part in move.blocks for x in part)

    def advance(self, move: _Move, primal: float, dual: float) -> None:
        """Take a step of these lengths."""
        self.P = self.P + dual * move.dP
        for block, part in zip(self.cones, move.blocks, strict=True):
            block.advance(part, primal, dual)

    def _direction(self, targets: list[tuple[Any, Any]], rhs: Any = 0.0, feasibility: bool = False) -> _Move:
        """Newton direction for the blocks' complementarity targets, and a right-hand side for the coefficients."""
        check_time()
        rhs = rhs + sum(block.aim(*target, feasibility) for block, target in zip(self.cones, targets, strict=True))
        dP = self.normal.solve(rhs)
        dP += self.normal.solve(rhs - self.normal.product(dP))
        return _Move(dP, [block.complete(dP) for block in self.cones])

    def decreases(self, move: _Move) -> tuple[float, float]:
        """Largest relative decreases, primal and dual."""
        pairs = [
            (block.decrease(du, dt), block.dual_decrease(ds, dr))
            for block, (du, ds, dt, dr) in zip(self.cones, move.blocks, strict=True)
        ]
        return max(primal for primal, _ in pairs), max(dual for _, dual in pairs)

    def _decreases_with(self, move: _Move, extra: _Move) -> list[tuple[float, float]]:
        """The same for a direction plus each of ``SHARES`` of another."""
        worst = [(0.0, 0.0)] * len(SHARES)
        # All shares of a block while it is in the cache: this is the innermost loop.
        for block, (du, ds, dt, dr), (eu, es, et, er) in zip(self.cones, move.blocks, extra.blocks, strict=True):
            first, second = self.scratch[:, : du.size].reshape(2, *du.shape)
            for i, share in enumerate(SHARES):
                u = np.add(np.multiply(eu, share, out=first), du, out=first)
                s = np.add(np.multiply(es, share, out=second), ds, out=second)
                t, r = (dt + share * et, dr + share * er) if block.t.shape[1] else (dt, dr)
                primal, dual = worst[i]
                worst[i] = max(primal, block.decrease(u, t)), max(dual, block.dual_decrease(s, r))
        return worst

    def _combine(self, move: _Move, extra: _Move, ap: float, ad: float) -> tuple[_Move, float, float]:
        """Add as much of a corrector as makes the steps longest, separately for the two sides where they may differ.

        A full corrector often points out of the region that the linearization is good for (Colombo and Gondzio, 2008).
        """
        wp = wd = 0.0
        for w, decreases in zip(SHARES, self._decreases_with(move, extra), strict=True):
            cp, cd = longest(*decreases, 1.0, self.one_step)
            if cp > ap:
                ap, wp = cp, w
            if cd > ad:
                ad, wd = cd, w
            if min(cp, cd) >= 0.99:
                break
        return move.plus(extra, wp, wd), ap, ad


def orthonormalized(objective: InMemoryObjective) -> tuple[Any, np.ndarray]:
    """Design whose features are orthonormal if no penalty fixes their coordinates, and the matrix that leads back."""
    design = copy(objective.design)
    back = np.eye(design.n_coef)
    if objective.alpha == 0:
        values, vectors = np.linalg.eigh(design.gram(np.ones(objective.n_samples)))
        keep = values > 1e-13 * values[-1]
        back = vectors[:, keep] / np.sqrt(values[keep])
        design.Z = design.Z @ back
    return design, back


def large_enough(n_samples: float, n_faces: int) -> bool:
    """Whether banded matrices pay: with few samples their many operations take longer than the few on dense ones."""
    return n_faces * max(n_samples, n_faces) >= PLANAR_WORK


# -- work, from the sizes of a problem -------------------------------------------------------------------------------


def coupled_size(objective: LinearObjective) -> int:
    """Number of reduced coefficients: the size of the coupled matrix."""
    q = objective.design.n_coef
    return q if objective.design.shared else (objective.normals.shape[1] - objective.normals.shape[0]) * q


def predicted_work(objective: LinearObjective, run: Run, share: float = 1.0) -> float:
    """Multiplications of one iteration, roughly, for a share of the rows.

    They are those of the small matrices of every sample, and of one factorization.
    """
    d, q = objective.normals.shape[1], objective.design.n_coef
    n = share * objective.n_samples
    region: Any = objective.region
    curved = not has(region, "standard_form")
    A = (region.quadratic_form(d).standard if curved else region.standard_form(d)).A
    N, k = A.shape[1], d - objective.normals.shape[0]
    null = max(N - A.shape[0], k)
    small = N**3 if curved else N * k**2 if A.shape[0] == 1 else 2 * N * null**2 + 2 * null**3
    if null == k and not objective.design.shared and large_enough(n, null):
        if run.derived.planar is None:
            flows = A.shape[0] > 1 and not curved
            run.derived.planar = flows and cycle_basis(A.toarray()) is not None
        if run.derived.planar:
            small = int(null**2.5)  # bands of about the root of the number of faces
    if objective.design.shared:
        return n * float(small + N * null * q + null * q**2) + float(q) ** 3
    # The matrix is symmetric, and so are its blocks.
    return n * float(small + k**2 * q**2 / 4) + float(k * q) ** 3 / 3


def iteration_work(objective: LinearObjective, run: Run, share: float = 1.0) -> float:
    """Work of one iteration: products and factorizations, and operations on arrays of the size of the iterate."""
    region: Any = objective.region
    d = objective.normals.shape[1]
    form = region.standard_form(d) if has(region, "standard_form") else region.quadratic_form(d).standard
    entries = share * objective.n_samples * form.A.shape[1]
    n_forms = sum(1 for _ in patterns(form.lower < form.upper)) if form.varies else 1
    return n_forms * STEP + predicted_work(objective, run, share) / MATRIX_SPEED + ITERATE * entries
