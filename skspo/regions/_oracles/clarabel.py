"""Convex sets in cone form, and their oracle, Clarabel.

Conventions
-----------
    set         {w = x[columns] : b - A x in K}                                  K a product of the cones below
    oracle      min q.x  s.t.  A x + s = b, s in K                               only q differs between rows
    support     support(v) = min b.y  s.t.  A^T y = [v; 0], y in K*              by conic duality

The cones, in the order of CVXPY's Clarabel interface, as pairs (kind, parameter):

    zero n, nonneg n, soc n (first entry is the bound), psd n (upper triangle by columns, off-diagonal times sqrt(2)),
    exp (x, y, z with y exp(x/y) <= z), pow a (|z| <= x^a y^(1-a)), genpow a (|z| <= prod x_j^a_j)

Only arrays are stored, so a set can be pickled; a solver exists only during a call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce
from itertools import pairwise
from math import isqrt
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..._utils.errors import SolverError, import_clarabel, is_failure, suppress_failure
from ..._utils.limits import CLOCKS_DIFFER, carry_deadline, check_time, count_workers, in_fit, time_left
from .._rows import row_error, rows_named
from .._tolerances import EXACT, JUMP, PROVED, SOLVER
from .clarabel_cones import Cones, Parameter, cone_size, rows_inside
from .highs_linear import WIDE, much_larger, rows_at_once, usual_cost

if TYPE_CHECKING:
    import clarabel
    import cvxpy as cp

#: tolerances and step fractions, tried in turn: decisions are documented as feasible to 1e-8 and optimal to 1e-7, and
#: with the default long steps about one exponential-cone program in a thousand stalls
_ATTEMPTS = ((1e-10, 0.99), (1e-10, 0.9), (1e-8, 0.9))

#: statuses with a decision, and statuses after which nothing else is tried
_SOLVED = ("Solved", "AlmostSolved")
_FINAL = (*_SOLVED, "PrimalInfeasible", "DualInfeasible")


def _clarabel_cones(cones: Cones) -> list[object]:
    clarabel = import_clarabel()
    make = {
        "zero": clarabel.ZeroConeT,
        "nonneg": clarabel.NonnegativeConeT,
        "soc": clarabel.SecondOrderConeT,
        "psd": clarabel.PSDTriangleConeT,
        "exp": lambda _: clarabel.ExponentialConeT(),
        "pow": clarabel.PowerConeT,
        "genpow": lambda a: clarabel.GenPowerConeT(a, 1),
    }
    return [make[kind](parameter) for kind, parameter in cones]


def _settings(attempt: int) -> clarabel.DefaultSettings:
    clarabel = import_clarabel()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    # Both would change the structure of the problem, and q could not be updated.
    settings.presolve_enable = False
    settings.chordal_decomposition_enable = False
    tolerance, settings.max_step_fraction = _ATTEMPTS[attempt]
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = settings.reduced_tol_feas = EXACT  # "AlmostSolved"
    if time_left() < np.inf:
        settings.time_limit = max(time_left(), 1e-3)
    return settings


def _solution(solve: Callable[[], Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Primal, slack and dual solution, and the status; if Clarabel fails, that is the status."""
    check_time()
    try:
        found = solve()
        x, s, z = (np.asarray(vector, dtype=np.float64) for vector in (found.x, found.s, found.z))
        return x, s, z, str(found.status)
    except ImportError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        return np.zeros(0), np.zeros(0), np.zeros(0), f"{type(error).__name__}: {error}"


def without_rounding(D: np.ndarray) -> np.ndarray:
    """Directions without the errors of the decisions that they were computed from."""
    return np.where(np.abs(D) > PROVED * np.abs(D).max(axis=1, keepdims=True), D, 0.0)


class ConicSet:
    """{w = x[columns] : b - A x in K}, with its oracle, its support function and its affine hull."""

    def __init__(self, A: sp.sparray | sp.spmatrix, b: np.ndarray, cones: Cones, columns: np.ndarray) -> None:
        self.A = sp.csc_array(A)
        self.b = np.asarray(b, dtype=np.float64)
        self.cones = [c for c in cones if cone_size(*c)]
        self.columns = np.asarray(columns)
        if sum(cone_size(*c) for c in self.cones) != self.b.size:
            raise RuntimeError("The sizes of the cones and the number of rows differ; please report this as a bug.")

    @property
    def n_dim(self) -> int:
        """Number of decision variables."""
        return self.columns.size

    # -- oracle --------------------------------------------------------------------------------------------------------

    def _solver(self, q: np.ndarray, attempt: int = 0) -> clarabel.DefaultSolver:
        clarabel = import_clarabel()
        n = self.A.shape[1]
        return clarabel.DefaultSolver(
            sp.csc_array((n, n)), q, self.A, self.b, _clarabel_cones(self.cones), _settings(attempt)
        )

    def _solve(
        self, solver: clarabel.DefaultSolver | None, q: np.ndarray, first: int = 0
    ) -> tuple[np.ndarray, np.ndarray, str]:
        """Solve for one cost vector: x, its dual and the status; with a new solver if an attempt stalls."""
        status = "not tried"
        for attempt in range(first, len(_ATTEMPTS)):
            if attempt == 0 and solver is not None:
                solver.update(q=q, **({} if time_left() == np.inf else {"settings": _settings(0)}))
                x, _, z, status = _solution(solver.solve)
            else:
                x, _, z, status = _solution(lambda: self._solver(q, attempt).solve())  # noqa: B023
            if x.shape != q.shape or z.shape != self.b.shape:
                status = f"{status}, but no solution"
            if status in _FINAL:
                return x, z, status
        check_time(CLOCKS_DIFFER)
        return np.full(q.shape, np.nan), np.full(self.b.shape, np.nan), status

    def _trouble(self, q: np.ndarray, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Check the solution and the dual of each row: what is wrong, or an empty string.

        A dual z in K* with A^T z + q = 0 proves that no decision costs less than -b.z.
        """
        size = 1.0 + np.abs(self.b).max(initial=0.0)
        inside = rows_inside(self.cones, self.b - (self.A @ x.T).T, np.full(len(x), PROVED * size))
        scale = 1.0 + np.abs(z).max(axis=1, initial=0.0)
        proof = rows_inside(self.cones, z, SOLVER * scale, dual=True)
        with np.errstate(all="ignore"):
            proof &= np.abs((self.A.T @ z.T).T + q).max(axis=1) <= SOLVER * scale
            cost, bound = np.einsum("ij,ij->i", q, x), -(z @ self.b)
            proof &= np.abs(cost - bound) <= SOLVER * (scale + np.abs(cost) + np.abs(bound))
            w, costs = x[:, self.columns], q[:, self.columns]
            w = np.where(np.abs(w) > SOLVER * (1.0 + np.abs(w).max(axis=1))[:, None], w, 0.0)
            gap = np.abs(cost - bound) + np.abs(x).sum(axis=1) * (
                np.abs((self.A.T @ z.T).T + q).max(axis=1) + _ATTEMPTS[0][0]
            )
            if not in_fit():  # at the optimum of training many costs are zero up to rounding
                large = much_larger(costs)
                unclear = (JUMP * gap > usual_cost(costs, w)) & large.any(axis=1)
                if unclear.any():  # what can be gained among the other costs
                    low, high = self.bounding_box
                    unclear &= JUMP * gap > np.where(large, 0.0, np.abs(costs)) @ (high - low)
                proof &= ~unclear
        return np.where(~inside, "violates the constraints", np.where(~proof, "is not proved to be optimal", ""))

    def status(self, c: np.ndarray) -> str:
        """Clarabel's status for one cost vector."""
        return self._rows(c[None, :], strict=False)[1][0]

    def _rows(self, C: np.ndarray, strict: bool = True, first: int = 0) -> tuple[np.ndarray, list[str]]:
        """Decisions and statuses; ``strict`` raises an error unless all decisions pass our own checks."""
        # Always built with q = 0: the solver's scaling, and so the decision of a row, must not depend on other rows.
        solver = None
        with suppress_failure():
            solver = self._solver(np.zeros(self.A.shape[1]))
        W, outcomes = np.empty(C.shape), []
        step = rows_at_once(self.A)
        for start in range(0, C.shape[0], step):
            block = C[start : start + step]
            Q = np.zeros((block.shape[0], self.A.shape[1]))
            Q[:, self.columns] = block / np.where(block.any(axis=1), np.abs(block).max(axis=1), 1.0)[:, None]
            found = [self._solve(solver, q) for q in Q]
            if strict:
                lowered = self._lower(solver, Q, found)
                self._check_solved(lowered, found, first + start)
            W[start : start + step] = [x[self.columns] for x, _, _ in found]
            outcomes += [status for _, _, status in found]
        return W, outcomes

    def _lower(
        self, solver: clarabel.DefaultSolver | None, Q: np.ndarray, found: list[tuple[np.ndarray, np.ndarray, str]]
    ) -> np.ndarray:
        """Solve rows with costs that are much larger than others again, with lower ones; return the costs.

        If the decision does not use what was lowered, and nothing is cheaper than that, its full cost cannot make
        another decision better.
        """
        large = much_larger(Q)
        for i in np.flatnonzero(large.any(axis=1)):
            q, mask = Q[i], large[i]
            others = np.abs(q[~mask]).max()
            j = mask[self.columns]
            low, high = self.bounding_box
            bound = np.where(q[self.columns] > 0, low, high)[j]
            for factor in (JUMP, JUMP**2):  # Clarabel has seven digits of the others, then four
                lowered = np.where(mask, np.clip(q, -factor * others, factor * others), q) / (factor * others)
                x, z, status = self._solve(solver, lowered)
                w = x[self.columns]
                near = PROVED * (1.0 + np.abs(w).max())
                if status in _SOLVED and (np.maximum(np.abs(w[j]), np.abs(bound)) <= near).all():
                    x[self.columns[j]] = 0.0
                    found[i], Q = (x, z, status), np.concatenate([Q[:i], lowered[None], Q[i + 1 :]])
                    break
        return Q

    def _check_solved(self, Q: np.ndarray, found: list[tuple[np.ndarray, np.ndarray, str]], first: int) -> None:
        """Solve rows again that fail the checks, and raise an error if that does not help."""
        trouble = self._trouble(Q, np.array([x for x, _, _ in found]), np.array([z for _, z, _ in found]))
        for i in np.flatnonzero(trouble != ""):
            what, attempt = trouble[i], 1
            while what and found[i][2] in _SOLVED and attempt < len(_ATTEMPTS):
                found[i] = x, z, _ = self._solve(None, Q[i], attempt)
                (what,), attempt = self._trouble(Q[i : i + 1], x[None], z[None]), attempt + 1
            advice = "Badly scaled constraints are the usual cause; try units where decisions are near one."
            if found[i][2] not in _SOLVED:
                text = f"Clarabel could not minimize the costs of {{row}} over the region: status {found[i][2]}. "
                raise row_error(SolverError, first + int(i), text + advice)
            if what:
                text = f"Clarabel calls a decision for {{row}} optimal, but it {what}. "
                raise row_error(SolverError, first + int(i), text + (WIDE if much_larger(Q[[i]]).any() else advice))

    def minimize(self, C: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Minimize each row of costs, in ``n_jobs`` processes."""
        if C.shape[0] == 0:
            return np.empty(C.shape)
        from joblib import Parallel, delayed

        jobs = count_workers(n_jobs, C.shape[0])
        if jobs == 1:
            return self._rows(C)[0]
        # Processes, not threads: Clarabel holds the interpreter lock while it solves.
        rows, cuts = carry_deadline(self._rows), np.linspace(0, C.shape[0], jobs + 1).astype(int)
        parts = Parallel(n_jobs=jobs)(delayed(rows)(C[a:b], True, int(a)) for a, b in pairwise(cuts))
        return np.concatenate([W for W, _ in parts])

    def pull(self, W: np.ndarray) -> np.ndarray:
        """Move each row towards a relative interior point until it is inside.

        The program for the last feasible point on the way from the center to the row is strictly feasible, and Clarabel
        solves it reliably.  It does not reliably find the projection of a row that is only 1e-8 outside.
        """
        clarabel = import_clarabel()
        normals, center = self.hull
        steps = W - center
        steps -= (steps @ normals.T) @ normals
        others = np.setdiff1d(np.arange(self.A.shape[1]), self.columns)
        A_w, A_rest = self.A[:, self.columns].tocsr(), self.A[:, others].tocsr()
        # Equalities of the decision alone hold along the step if they hold at the center.  As constraints on theta
        # they would be 1e-17 theta = 1e-10.
        is_zero = np.concatenate([np.full(cone_size(*c), c[0] == "zero") for c in self.cones])
        solved = is_zero & (np.diff(A_rest.indptr) == 0)
        E = A_w[solved].toarray()
        center = center - np.linalg.pinv(E) @ (E @ center - self.b[solved])
        steps -= (np.linalg.pinv(E) @ (E @ steps.T)).T
        A_w, A_rest, b_rest = A_w[~solved], A_rest[~solved], self.b[~solved]
        left = [("zero", int((is_zero & ~solved).sum())), *(c for c in self.cones if c[0] != "zero")]
        n = others.size + 1
        q = np.zeros(n)
        q[-1] = -1.0  # maximize the share theta of the step
        b = np.concatenate([b_rest - A_w @ center, [2.0]])  # up to twice the step, to detect rows far inside
        kinds = [*(c for c in left if cone_size(*c)), ("nonneg", 1)]
        P, cones = sp.csc_array((n, n)), _clarabel_cones(kinds)
        # Only the last column, that of theta, differs from row to row.
        fixed, rows = A_rest.tocsc(), np.arange(b.size)
        indices = np.concatenate([fixed.indices, rows])
        indptr = np.concatenate([fixed.indptr, [indices.size]])
        last = np.hstack([(A_w @ steps.T).T, np.ones((W.shape[0], 1))])
        share = np.ones(W.shape[0])
        for i in range(W.shape[0]):
            A = sp.csc_array((np.concatenate([fixed.data, last[i]]), indices, indptr), shape=(b.size, n))
            found, status = [], ""
            for attempt in range(len(_ATTEMPTS)):
                solve = clarabel.DefaultSolver(P, q, A, b, cones, _settings(attempt)).solve
                x, s, _, status = _solution(solve)
                if x.shape == q.shape and s.shape == b.shape and np.isfinite(x).all():
                    # If s is in the cone, the residual bounds how far x is outside, whether it is optimal or not.
                    residual = float(np.abs(A @ x + s - b).max()) / (1.0 + np.abs(b).max())
                    if rows_inside(kinds, s[None], np.array([1e-10 * (1.0 + np.abs(s).max())]))[0]:
                        found.append((residual, float(x[-1])))
                if found and found[-1][0] <= 1e-9:
                    break
            outside, theta = min(found, default=(np.inf, 0.0))
            if not outside <= SOLVER:
                text = f"Clarabel could not move the decision of {{row}} into the region: status {status}."
                raise row_error(SolverError, i, text)
            # Rows far inside do not move; others keep a distance from the boundary above the solver's error.
            if theta <= 1.0 + SOLVER:
                share[i] = np.clip(theta, 0.0, 1.0) * (1.0 - 1e-10 - 10.0 * outside)
        return center + share[:, None] * steps

    # -- what follows from the oracle ----------------------------------------------------------------------------------

    @cached_property
    def box_points(self) -> np.ndarray:
        """The 2 d decisions that are lowest and highest in each coordinate."""
        eye = np.eye(self.n_dim)
        with rows_named("direction {}".format):
            return self.minimize(np.concatenate([eye, -eye]))

    @property
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest value of each coordinate, up to the solver's tolerance."""
        d = self.n_dim
        return self.box_points[:d].diagonal().copy(), self.box_points[d:].diagonal().copy()

    @property
    def normals(self) -> np.ndarray:
        """Orthonormal rows E with E w constant on the set."""
        return self.hull[0]

    @cached_property
    def hull(self) -> tuple[np.ndarray, np.ndarray]:
        """Normals of the affine hull and a relative interior point.

        Directions in which all known decisions agree are candidates.  The oracle computes the extent of the set along
        each; if it is not zero, the two decisions are added to the known ones.
        """
        points = self.box_points
        scale = max(float(np.linalg.norm(points.max(axis=0) - points.min(axis=0))), 1e-300)
        size = max(scale, float(np.abs(points).max()))
        tol = SOLVER * scale if scale > PROVED * size else PROVED * size
        normals = np.zeros((0, self.n_dim))
        for _ in range(self.n_dim + 1):
            _, sv, Vt = np.linalg.svd(points - points.mean(axis=0), full_matrices=True)
            candidates = Vt[int((sv > tol).sum()) :]
            if candidates.shape[0] == 0:
                break
            with rows_named("direction {}".format):
                D = without_rounding(candidates)
                low, high = self.minimize(D), self.minimize(-D)
            extent = np.einsum("ij,ij->i", high - low, candidates)
            if (extent <= tol).all():
                normals = candidates
                break
            points = np.concatenate([points, low[extent > tol], high[extent > tol]])
        return normals, points.mean(axis=0)

    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row of a CVXPY expression, by conic duality."""
        import cvxpy as cp

        n, d = V.shape
        constraints, totals, values = [], [], []
        start = 0
        for kind, group in _grouped(self.cones):
            sizes = [cone_size(kind, p) for p in group]
            Y = cp.Variable((n, sum(sizes)), nonneg=kind == "nonneg")
            constraints += _dual_cones(kind, group, Y)
            stop = start + sum(sizes)
            totals.append(Y @ sp.csr_array(self.A[start:stop]))
            values.append(Y @ self.b[start:stop])
            start = stop
        place = sp.csr_array((np.ones(d), (np.arange(d), self.columns)), shape=(d, self.A.shape[1]))
        return reduce(add, values), [reduce(add, totals) == V @ place, *constraints]


def _grouped(cones: Cones) -> list[tuple[str, list[Parameter]]]:
    """Group consecutive small cones of one kind, which become one vectorized constraint."""
    groups: list[tuple[str, list[Parameter]]] = []
    for kind, parameter in cones:
        if groups and groups[-1][0] == kind and kind in ("exp", "pow"):
            groups[-1][1].append(parameter)
        else:
            groups.append((kind, [parameter]))
    return groups


def _dual_cones(kind: str, group: list[Parameter], Y: cp.Variable) -> list[cp.Constraint]:
    """Constraints that put every row of ``Y`` into the dual cone."""
    import cvxpy as cp

    n = Y.shape[0]
    if kind == "soc":
        return [cp.SOC(Y[:, 0], Y[:, 1:], axis=1)] if Y.shape[1] > 1 else [Y[:, 0] >= 0]
    if kind == "exp":
        # (u, v, w) is in the dual cone if -u exp(v/u - 1) <= w.
        u, v, w = Y[:, 0::3], Y[:, 1::3], Y[:, 2::3]
        return [cp.ExpCone(u - v, -u, w)]
    if kind == "pow":
        a = np.broadcast_to(np.array(group, dtype=np.float64), (n, len(group)))
        return [cp.PowCone3D(cp.multiply(Y[:, 0::3], 1.0 / a), cp.multiply(Y[:, 1::3], 1.0 / (1.0 - a)), Y[:, 2::3], a)]
    if kind == "genpow":
        a = np.broadcast_to(np.array(group[0], dtype=np.float64), (n, Y.shape[1] - 1))
        return [cp.PowConeND(cp.multiply(Y[:, :-1], 1.0 / a), Y[:, -1], a, axis=1)]
    if kind == "psd":
        k = isqrt(2 * Y.shape[1])
        rows = [(i, j) for j in range(k) for i in range(j + 1)]
        entries = np.array([i + k * j for i, j in rows])
        scale = np.array([1.0 if i == j else np.sqrt(2.0) for i, j in rows])
        matrices = [cp.Variable((k, k), PSD=True) for _ in range(n)]
        return [Y[i] == cp.multiply(cp.vec(M, order="F")[entries], scale) for i, M in enumerate(matrices)]
    return []
