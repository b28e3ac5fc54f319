"""The whole training problem as one linear or conic program, through CVXPY.

Conventions
-----------
    min  sum_i a_i t_i + 2 <Theta, sum_i a_i w_i z_i^T> - sum_i a_i c_i.w_i + penalty(Theta)
    s.t. V_i = c_i - 2 Theta z_i                        (dual variable: minus a_i times the dual decision v_i)
         t_i >= support_S(V_i)                          (region.support_epigraph)

V is an explicit variable, for two reasons: its dual variables are the dual decisions whatever the region, and CVXPY
1.9 derives wrong variable bounds for HiGHS from ``max`` applied to an affine expression (0 times infinity).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..objective import LinearObjective
from .base import Progress, Result, Solver

#: weight, relative to the average, below which dual variables say nothing: they are known to about this accuracy
NEGLIGIBLE = 1e-12


class ConicSolver(Solver):
    """Exact minimisation by CVXPY with Clarabel or HiGHS.

    Parameters
    ----------
    backend : {"auto", "CLARABEL", "HIGHS"}, default="auto"
        "auto" tries HiGHS if the problem is a linear program, then Clarabel, until a result is certified.
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Iteration limit of the back-end; None leaves the back-end's own.
    verbose : int, default=0
    """

    name = "conic"
    requires = ("support_epigraph", "repair")

    def __init__(
        self, backend: str = "auto", *, tol: float = 1e-6, max_iter: int | None = None, verbose: int = 0
    ) -> None:
        self.backend = backend
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def solve(self, objective: LinearObjective, coef_init: np.ndarray | None = None) -> Result:
        """Solve the program; a start is of no use to an interior-point method."""
        import cvxpy as cp

        if self.backend not in ("auto", "CLARABEL", "HIGHS"):
            raise ValueError(f"backend must be 'auto', 'CLARABEL' or 'HIGHS', got {self.backend!r}.")
        problem, Theta, link = self._model(objective)
        if self.backend == "HIGHS" and not problem.is_lp():
            # HiGHS also has an active-set method for quadratic programs, which does not finish at these sizes.
            raise ValueError(
                f"backend='HIGHS' is for linear programs, but {type(objective.region).__name__} with alpha="
                f"{objective.alpha:g} and l1_ratio={objective.l1_ratio:g} is not one. Use backend='CLARABEL'."
            )
        attempts = [("HIGHS", self._highs_options())] if problem.is_lp() else []
        # Duals at the back-end's usual accuracy prove only a loose bound; the last digits cost few iterations.
        attempts += [("CLARABEL", self._clarabel_options(accuracy)) for accuracy in (1e-12, 1e-9)]
        if self.backend != "auto":
            attempts = [attempt for attempt in attempts if attempt[0] == self.backend]
        progress = Progress(self.name, objective, self.verbose)
        best: Result | None = None
        trouble = []
        for backend, options in attempts:
            try:
                with warnings.catch_warnings():
                    # Inaccurate solutions are judged by our own certificate, below.
                    warnings.simplefilter("ignore")
                    problem.solve(solver=backend, **options)
            except (cp.SolverError, ArithmeticError, ValueError) as error:
                trouble.append(f"{backend}: {error}")
                continue
            if Theta.value is None or link.dual_value is None or not np.isfinite(Theta.value).all():
                trouble.append(f"{backend}: status {problem.status}")
                continue
            coef = objective.canonical(np.asarray(Theta.value))
            weight = objective.weight[:, None] * objective.n_samples
            # What the back-end knows about samples that hardly count is rounding error; any decisions will do for them.
            V = -link.dual_value / np.maximum(weight, NEGLIGIBLE)
            V = np.where(weight > NEGLIGIBLE, V, objective.decisions(coef))
            n_iter = int(problem.solver_stats.num_iters or 0)
            result = self.finish(objective, [(coef, np.nan_to_num(V))], n_iter, f"{backend}: status {problem.status}")
            progress(n_iter, result.objective, result.lower_bound, force=True)
            if best is None or result.objective - result.lower_bound < best.objective - best.lower_bound:
                best = result
            if result.converged:
                break
            trouble.append(result.message)
        if best is None:
            # Nothing usable came back: least squares is a valid model, and the bound says how little is known of it.
            Theta0 = objective.least_squares
            best = self.finish(objective, [(Theta0, objective.decisions(Theta0))], 0)
        return best._replace(message="; ".join(trouble)) if not best.converged else best

    def _model(self, objective: LinearObjective) -> tuple[Any, Any, Any]:
        import cvxpy as cp

        d, q = objective.shape
        Theta = cp.Variable((d, q))
        V = cp.Variable(objective.C.shape)
        link = V == objective.C - 2.0 * objective.design.predict(Theta)
        t, constraints = objective.region.support_epigraph(V)
        left, right = objective.design.hidden_basis(objective.free)
        if left.size and right.size:
            # Directions that nothing identifies would only cost the back-end accuracy.
            constraints.append(left @ Theta @ right == 0)
        a = objective.weight * objective.n_samples  # of order one
        moments = 2.0 * objective.design.adjoint(objective.W * a[:, None])
        cost = a @ t + cp.sum(cp.multiply(moments, Theta))
        D = Theta - objective.prior
        if objective.l1.any():
            T = cp.Variable((d, q))
            constraints += [T >= D, T >= -D]
            cost = cost + objective.n_samples * cp.sum(T @ objective.l1)
        if objective.l2.any():
            root = np.sqrt(0.5 * objective.n_samples * objective.l2)
            cost = cost + cp.sum_squares(cp.multiply(D, np.tile(root, (d, 1))))
        return cp.Problem(cp.Minimize(cost), [link, *constraints]), Theta, link

    def _clarabel_options(self, accuracy: float) -> dict[str, Any]:
        options: dict[str, Any] = {"tol_gap_abs": accuracy, "tol_gap_rel": accuracy, "tol_feas": accuracy}
        return options | ({"max_iter": self.max_iter} if self.max_iter is not None else {})

    def _highs_options(self) -> dict[str, Any]:
        # Interior point, then crossover: at these shapes the simplex method alone is slower.
        options: dict[str, Any] = {"solver": "ipm", "primal_feasibility_tolerance": 1e-9}
        options["dual_feasibility_tolerance"] = 1e-9
        # Usual are some dozens; without a limit it goes round in circles for ever on badly scaled programs.
        options["ipm_iteration_limit"] = 500
        if self.max_iter is not None:
            options |= {"simplex_iteration_limit": self.max_iter, "ipm_iteration_limit": self.max_iter}
        return {"highs_options": options}
