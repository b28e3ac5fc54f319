"""Exact minimization of the SPO loss by mixed-integer programming over the vertices of the region.

    min  sum_i a_i sum_v (c_i.v - c_i.w_i) delta_iv  +  penalty(Theta)
    s.t. sum_v delta_iv = 1,   delta binary,   |Theta_jk| <= 1
         (Theta z_i).(u - v) >= MARGIN - M_i (1 - delta_iv)        for all samples i and vertices u != v

The loss does not change when a prediction is multiplied by a positive number, so the box excludes no model.  The margin
excludes Theta = 0, for which every decision is optimal: each sample's decision must be the best by MARGIN, in units
where features have unit variance and the largest coefficient is at most one.  The optimum and the bound are those of
such models; ties are excluded.

The bound is that of HiGHS.  Unlike those of the other solvers it is not proved here; it is only dropped if a known
model has a smaller loss.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from ..._training.in_memory import InMemoryObjective
from ..._training.objective import LinearObjective
from ..._training.run import Run
from ..._utils.limits import TimeIsUp, check_time
from ...regions.base import Region
from ...regions.capabilities import has
from ...regions.polyhedral import StandardForm
from ..base import Progress, Result, Solver, Status, certified, rows_of

#: by how much a decision must be better than any other
MARGIN = 1e-3

#: largest number of bases that are tried to list the vertices: some seconds
MAX_BASES = 50_000

#: largest number of vertices: each sample has one binary variable for each
MAX_VERTICES = 200

#: multiplications that take as long as one number of the program
PROGRAM = 1_000.0


def list_vertices(region: Region, d: int) -> np.ndarray:
    """All vertices of a small polyhedral region, shape (n_vertices, d), by trying every basis."""
    name = type(region).__name__
    if not has(region, "standard_form"):
        raise ValueError(
            f"solver='milp' needs the vertices of the region, but {name} has no standard_form. Use "
            "solver='line-search', which needs nothing but argmin."
        )
    form = region.standard_form(d)
    if form.varies:
        raise ValueError(
            f"solver='milp' needs the vertices of the region, but those of {region.label} are not the same for all "
            "samples. Use solver='line-search', which needs nothing but argmin."
        )
    points = _basic_solutions(form, f"{name} with d={d}")
    vertices = np.unique(np.round(points[:, :d] if form.project is None else points @ form.project.T, 12), axis=0)
    if form.project is not None:
        # A vertex of the lifted polyhedron need not be a vertex of the region.
        vertices = vertices[[_is_extreme(vertices, i) for i in range(len(vertices))]]
    if len(vertices) > MAX_VERTICES:
        raise ValueError(
            f"solver='milp' has one binary variable per sample and vertex, and {name} with d={d} has {len(vertices)} "
            f"vertices (the limit is {MAX_VERTICES}). Use solver='line-search'."
        )
    return vertices


def _basic_solutions(form: StandardForm, name: str) -> np.ndarray:
    """Feasible points in which all variables outside of a basis are at a bound."""
    A, b = form.A.toarray(), np.asarray(form.b, dtype=np.float64)
    independent: list[int] = []
    for i in range(A.shape[0]):
        if np.linalg.matrix_rank(A[[*independent, i]]) > len(independent):
            independent.append(i)
    A, b = A[independent], b[independent]
    m, N = A.shape
    ends = [sorted({*filter(np.isfinite, bounds)}) for bounds in zip(form.lower, form.upper, strict=True)]
    most = comb(N, m) * max(len(e) for e in ends) ** (N - m) if N > m else 1
    if most > MAX_BASES:
        raise ValueError(
            f"solver='milp' lists the vertices of the region, and {name} has too many bases for that "
            f"(up to {most:.0e}; the limit is {MAX_BASES:,}). It is for small problems; use solver='line-search'."
        )
    found = []
    slack = 1e-9 * (1.0 + np.abs(b).max(initial=0.0))
    for basis in combinations(range(N), m):
        check_time()
        rest = [j for j in range(N) if j not in basis]
        square = A[:, basis]
        if m and abs(np.linalg.det(square)) < 1e-12:
            continue
        for values in product(*(ends[j] for j in rest)):
            u = np.zeros(N)
            u[rest] = values
            if m:
                u[list(basis)] = np.linalg.solve(square, b - A[:, rest] @ np.asarray(values, dtype=np.float64))
            if (u >= form.lower - slack).all() and (u <= form.upper + slack).all():
                found.append(u)
    return np.array(found)


def _is_extreme(points: np.ndarray, i: int) -> bool:
    """Whether a point is not a convex combination of the others."""
    others = np.delete(points, i, axis=0)
    if len(others) == 0:
        return True
    A, b = np.vstack([others.T, np.ones(len(others))]), np.append(points[i], 1.0)
    x = linprog(np.zeros(len(others)), A_eq=A, b_eq=b).x
    # Check the weights themselves.  An extra point does no harm: it is never the best by the margin.
    return x is None or not ((x >= -1e-9).all() and np.abs(A @ x - b).max() <= 1e-7 * (1.0 + np.abs(b).max()))


class _Program(NamedTuple):
    """The program of an objective, with n_pairs ordered pairs (v, u) of vertices."""

    costs: np.ndarray  # (n, n_vertices) weighted losses
    pairs: np.ndarray  # (n_pairs, 2)
    left: np.ndarray  # (n * n_pairs, Theta.size): (Theta z_i).(u - v), sample by sample

    @staticmethod
    def of(objective: InMemoryObjective, V: np.ndarray) -> _Program:
        """Program over the vertices V."""
        (n, d), count = objective.C.shape, len(V)
        losses = objective.C @ V.T - (objective.C * objective.W).sum(axis=1, keepdims=True)
        # Hidden components of the coefficients are left out.
        visible = np.eye(d) - objective.normals.T @ objective.normals if objective.normals.size else np.eye(d)
        pairs = np.array([(v, u) for v in range(count) for u in range(count) if u != v], dtype=int).reshape(-1, 2)
        step = (V[pairs[:, 1]] - V[pairs[:, 0]]) @ visible
        left = objective.design.sensitivity(step).reshape(n * len(pairs), objective.least_squares.size)
        return _Program(objective.weight[:, None] * losses, pairs, left)

    def solve(
        self, shape: tuple[int, int], options: dict[str, float]
    ) -> tuple[Status, str, int, float, np.ndarray | None]:
        """Run HiGHS: status, message, number of nodes, bound and coefficients."""
        (n, count), size = self.costs.shape, self.left.shape[1]
        # (Theta z_i).(u - v) - M_i delta_iv >= MARGIN - M_i
        reach = np.abs(self.left).sum(axis=1) + MARGIN
        rows = np.arange(reach.size)
        chosen = (np.arange(n)[:, None] * count + self.pairs[:, 0]).ravel()
        big = sp.csr_array((-reach, (rows, chosen)), shape=(rows.size, n * count))
        best = LinearConstraint(sp.hstack([sp.csr_array(self.left), big], format="csr"), MARGIN - reach, np.inf)
        one = sp.hstack([sp.csr_array((n, size)), sp.kron(sp.eye_array(n), np.ones((1, count)))], format="csr")
        try:
            result = milp(
                np.concatenate([np.zeros(size), self.costs.ravel()]),
                integrality=np.repeat([0, 1], [size, n * count]),
                bounds=Bounds(np.repeat([-1.0, 0.0], [size, n * count]), 1.0),
                constraints=[best, LinearConstraint(one, 1.0, 1.0)],
                options=options,
            )
            # 0: solved, 1: stopped at the time limit, the only limit there is, 2 and more: no solution.
            status = {0: Status.NUMERICAL_LIMIT, 1: Status.TIME_LIMIT}.get(int(result.status), Status.FAILED)
            nodes = int(getattr(result, "mip_node_count", 0) or 0)
            bound = float(getattr(result, "mip_dual_bound", None) or 0.0)
            Theta = None if result.x is None else np.asarray(result.x, dtype=np.float64)[:size].reshape(shape)
            return status, str(result.message), nodes, max(0.0, bound) if np.isfinite(bound) else 0.0, Theta
        except Exception as error:
            return Status.FAILED, f"{type(error).__name__}: {error}", 0, 0.0, None

    def value(self, Theta: np.ndarray) -> float:
        """Loss of a model after scaling into the box; infinite if a decision is not the best one by the margin."""
        n, count = self.costs.shape
        if count < 2:
            return float(self.costs.sum())
        scaled = Theta.ravel() / max(float(np.abs(Theta).max()), 1e-300)
        ahead = (self.left @ scaled).reshape(n, -1) >= MARGIN
        chosen = np.array([ahead[:, self.pairs[:, 0] == v].all(axis=1) for v in range(count)]).T  # (n, count)
        return float(self.costs[chosen].sum()) if chosen.any(axis=1).all() else np.inf


class MILPSolver(Solver):
    """Minimization of the SPO loss for small data, over all models whose decisions are unique by ``MARGIN``.

    ``tol`` is the relative gap between the objective and the bound of the program.
    """

    name = "milp"
    requires = ("standard_form",)
    losses = ("SPO",)
    penalties = ("none",)

    def __init__(self, *, tol: float = 1e-6, time_limit: float | None = None, verbose: int = 0) -> None:
        self.tol = tol
        self.time_limit = time_limit
        self.verbose = verbose

    max_iter = None

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Solve the program; ``start`` is returned if nothing better is found."""
        objective = rows_of(objective)
        if objective.offset is not None:
            # With an offset the norm of the coefficients matters, so they cannot be restricted to a box.
            raise ValueError("solver='milp' cannot serve an offset. Use solver='line-search'.")
        V = list_vertices(objective.region, objective.C.shape[1])
        work = PROGRAM * objective.n_samples * len(V) ** 2 * float(objective.least_squares.size)
        if not run.deadline.allows(work, 0.5):
            run.deadline.reached = True
            raise TimeIsUp(f"{run.deadline.message} before the program could be built")
        program = _Program.of(objective, V)
        options: dict[str, float] = {"mip_rel_gap": 0.1 * self.tol, "disp": self.verbose > 1}
        seconds = min(np.inf if self.time_limit is None else float(self.time_limit), 0.9 * run.deadline.left())
        if seconds < np.inf:
            options["time_limit"] = max(seconds, 0.0)
        status, message, nodes, bound, found = program.solve(objective.shape, options)
        candidates = [objective.least_squares if start is None else start]
        if found is not None and np.isfinite(found).all():
            candidates.append(objective.canonical(found))
        values = [objective.value(Theta) for Theta in candidates]
        i = int(np.argmin(values))
        # HiGHS claims this bound.  It is wrong if a feasible model of the program has a smaller loss.
        wrong = bound > min(map(program.value, candidates)) + 1e-6 * (1.0 + abs(bound))
        bound = 0.0 if wrong else bound
        progress = Progress(self.name, objective, run, self.verbose, tol=self.tol)
        progress(nodes, values[i], 0.0, force=True)
        if wrong:
            status = Status.FAILED
        elif objective.relative_gap(values[i], bound) <= self.tol:
            status, message = Status.CONVERGED, ""
        if message:
            message = f"HiGHS: {message}"
            if bound > 0.0:
                message += (
                    f" No model whose decisions are unique by a margin of {MARGIN:g} has a loss below "
                    f"{bound * objective.scale:.6g}."
                )
        result = Result(candidates[i], values[i], 0.0, nodes, status, message, np.inf, wrong)
        return certified(objective, result, self.tol)
