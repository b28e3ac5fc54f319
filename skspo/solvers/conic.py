"""The whole training problem as one linear or conic program, through CVXPY.

Conventions
-----------
    min  sum_i a_i t_i + 2 <Theta, sum_i a_i w_i z_i^T> - sum_i a_i c_i.w_i + penalty(Theta)
    s.t. V_i = c_i - 2 Theta z_i                        (dual variable: minus a_i times the dual decision v_i)
         t_i >= support_S(V_i)                          (region.support_epigraph)

Large programs are solved in a separate process (see ``backend_process``).

V is an explicit variable for two reasons: its dual variables are the dual decisions for every region, and CVXPY 1.9
derives wrong variable bounds for HiGHS from ``max`` applied to an affine expression (0 times infinity).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._training.in_memory import InMemoryObjective
from .._training.objective import ZERO_BOUND, LinearObjective
from .._training.run import Run
from .._utils.errors import import_cvxpy, is_failure
from .._utils.limits import quiet
from .._utils.shown import shown
from ..regions.capabilities import has
from ._backend_worker import Options
from .backend_process import BackendInterrupted, Compiled, is_large, solve_here, solve_in_process
from .base import Estimate, Progress, Result, Solver, Status, certificate_work, combined, rows_of

if TYPE_CHECKING:
    import cvxpy as cp

#: weight, relative to the average, below which the dual variables of a sample are only rounding errors
NEGLIGIBLE = 1e-12

#: multiplications that take as long as the compilation by CVXPY of a small program, and of one number of constraints
COMPILE_ANY, COMPILE = 2e8, 25_000.0

#: bytes for each number of the constraints: of CVXPY's matrices, the back-end's copy and its factor
MEMORY = 400.0

#: shares of the remaining time after which a back-end is asked to stop, and after which its process is killed
STOP, KILL = 0.8, 0.9

#: seconds that the process of a back-end needs to start
PROCESS_START = 0.4


def _numbers(objective: LinearObjective) -> float:
    """Number of entries of the constraints, at least: of each sample one for each cost and feature, and its image."""
    region: Any = objective.region
    d = objective.normals.shape[1]
    project = region.standard_form(d).project if has(region, "standard_form") else None
    return float(objective.n_samples) * (d * objective.design.n_coef + (0 if project is None else project.nnz))


class _Program(NamedTuple):
    problem: cp.Problem
    Theta: cp.Variable
    link: cp.Constraint  # its dual variables are the dual decisions


class ConicSolver(Solver):
    """Exact minimization by CVXPY with Clarabel or HiGHS.

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
    can_pause = False

    def __init__(
        self, backend: str = "auto", *, tol: float = 1e-6, max_iter: int | None = None, verbose: int = 0
    ) -> None:
        super().__init__(tol=tol, max_iter=max_iter, verbose=verbose)
        self.backend = backend

    @classmethod
    def estimate(cls, objective: LinearObjective, run: Run) -> Estimate:
        """Compilation by CVXPY, a solution that takes about as long for each number, and a certificate."""
        work = COMPILE_ANY + 2.0 * COMPILE * _numbers(objective) + certificate_work(objective)
        return Estimate(work, MEMORY * _numbers(objective))

    @classmethod
    def fits(cls, objective: LinearObjective, run: Run) -> bool:
        """Whether CVXPY can compile the program within half of the remaining time."""
        return run.deadline.allows(COMPILE * _numbers(objective), 0.5)

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Solve the program; ``start`` is returned if nothing better is found."""
        objective = rows_of(objective)
        import_cvxpy()
        if self.backend not in ("auto", "CLARABEL", "HIGHS"):
            raise ValueError(f"backend must be 'auto', 'CLARABEL' or 'HIGHS', got {shown(self.backend)}.")
        progress = Progress(self.name, objective, run, self.verbose, tol=self.tol)
        start = objective.least_squares if start is None else start
        if not run.deadline.allows(COMPILE * _numbers(objective)):
            run.deadline.reached = True
            message = f"CVXPY would not compile the program in time ({run.deadline.message})"
            return self.result(objective, start, objective.value(start), ZERO_BOUND, 0, Status.TIME_LIMIT, message)
        program = self._model(objective)
        attempts = self._attempts(objective, is_linear(program.problem))
        best: Result | None = None
        trouble: list[str] = []
        stop = Status.FAILED  # why the last attempt was not enough
        for backend, options in attempts:
            if progress.late():
                break
            result, stop, message = self._attempt(objective, run, program, backend, options)
            if result is not None:
                progress(result.n_iter, result.objective, result.lower_bound, force=True)
                if best is None or result.objective - result.lower_bound < best.objective - best.lower_bound:
                    best = result
                if best.converged:
                    return best
            trouble.append(message)
        if run.deadline.reached or progress.late():  # a back-end may have stopped at its time limit
            stop = Status.TIME_LIMIT
            trouble.append(run.deadline.message)
        best = self._not_worse(objective, run, best, start)
        progress(best.n_iter, best.objective, best.lower_bound, force=True)
        return best if best.converged else best._replace(status=stop, message="; ".join(filter(None, trouble)))

    def _attempts(self, objective: InMemoryObjective, linear: bool) -> list[tuple[str, Options]]:
        """Back-ends to try, with their options."""
        if self.backend == "HIGHS" and not linear:
            # The active-set method of HiGHS for quadratic programs is too slow at these sizes.
            raise ValueError(
                f"backend='HIGHS' is for linear programs, but {type(objective.region).__name__} with alpha="
                f"{objective.alpha:g} and l1_ratio={objective.l1_ratio:g} is not one. Use backend='CLARABEL'."
            )
        # Interior point, then crossover: the simplex method alone is slower here.
        highs: Options = {"solver": "ipm", "primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
        # Typical are a few dozen; on badly scaled programs HiGHS does not terminate without a limit.
        highs["ipm_iteration_limit"] = 500
        clarabel: Options = {}
        if self.max_iter is not None:
            highs |= {"simplex_iteration_limit": self.max_iter, "ipm_iteration_limit": self.max_iter}
            clarabel["max_iter"] = self.max_iter
        attempts = [("HIGHS", highs)] if linear else []
        # At the default accuracy the bound is loose; a higher accuracy takes only a few more iterations.
        for accuracy in (1e-12, 1e-9):
            tolerances: Options = {"tol_gap_abs": accuracy, "tol_gap_rel": accuracy, "tol_feas": accuracy}
            attempts.append(("CLARABEL", tolerances | clarabel))
        return [attempt for attempt in attempts if self.backend in ("auto", attempt[0])]

    def _attempt(
        self, objective: InMemoryObjective, run: Run, program: _Program, backend: str, options: Options
    ) -> tuple[Result | None, Status, str]:
        """Certified result of a back-end, if there is one, and why it may not be enough."""
        problem = program.problem
        try:
            with quiet:  # the accuracy of solutions is checked by the certificate below
                compiled = problem.get_problem_data(backend, solver_opts={})  # CVXPY caches it
                left = run.deadline.left()
                if left <= 0:
                    run.deadline.reached = True
                    return None, Status.TIME_LIMIT, ""
                self._run(problem, compiled, backend, options, left)
            candidate = self._candidate(objective, program)
            status, n_iter = problem.status, int(getattr(problem.solver_stats, "num_iters", None) or 0)
        except BaseException as error:
            if not is_failure(error):
                raise
            stop = Status.INTERRUPTED if isinstance(error, BackendInterrupted) else Status.FAILED
            return None, stop, f"{backend}: {str(error) or type(error).__name__}"
        if candidate is None:
            return None, Status.FAILED, f"{backend}: status {status}, but no finite solution"
        limited = self.max_iter is not None and n_iter >= self.max_iter
        stop = Status.ITERATION_LIMIT if limited else Status.NUMERICAL_LIMIT
        result = self.finish(objective, run, [candidate], n_iter, stop, f"{backend}: status {status}")
        return result, stop, result.message

    def _not_worse(self, objective: InMemoryObjective, run: Run, best: Result | None, start: np.ndarray) -> Result:
        """Result that is not worse than the start, which is the result if there is no other."""
        value = objective.value(start)
        if best is not None and value >= best.objective:
            return best
        if best is None and run.deadline.reached:
            return self.result(objective, start, value, ZERO_BOUND, 0)
        other = self.finish(objective, run, [(start, None)], 0 if best is None else best.n_iter)
        return other if best is None else combined(objective, best, other, self.tol)

    @staticmethod
    def _run(problem: cp.Problem, compiled: Compiled, backend: str, options: Options, seconds: float) -> None:
        """Solve the problem with a time limit that leaves some of these seconds for the certificate."""
        large = is_large(compiled)
        if seconds < np.inf:
            options = options | {"time_limit": max(STOP * seconds - (PROCESS_START if large else 0.0), 1e-3)}
        if large:
            # An exception while waiting, such as Ctrl-C, ends the process.
            solve_in_process(problem, compiled, backend, options, KILL * seconds)
        else:
            solve_here(problem, compiled, backend, options)

    @staticmethod
    def _candidate(objective: InMemoryObjective, program: _Program) -> tuple[np.ndarray, np.ndarray] | None:
        """Coefficients and dual decisions, not yet checked; None if there is no finite solution."""
        _, Theta, link = program
        if Theta.value is None or link.dual_value is None or not np.isfinite(Theta.value).all():
            return None
        coef = objective.canonical(np.asarray(Theta.value, dtype=np.float64).reshape(objective.shape))
        dual = np.asarray(link.dual_value, dtype=np.float64).reshape(objective.C.shape)
        weight = objective.weight[:, None] * objective.n_samples
        # Dual variables of samples with a negligible weight are rounding errors; use decisions of the oracle for them.
        V = np.where(weight > NEGLIGIBLE, -dual / np.maximum(weight, NEGLIGIBLE), objective.decisions(coef))
        return coef, np.nan_to_num(V, posinf=0.0, neginf=0.0)

    @staticmethod
    def _model(objective: InMemoryObjective) -> _Program:
        import cvxpy as cp

        d, q = objective.shape
        Theta = cp.Variable((d, q))
        V = cp.Variable(objective.C.shape)
        link = V == objective.C - 2.0 * objective.design.predict(Theta)
        t, constraints = objective.region.support_epigraph(V)
        left, right = objective.design.hidden_basis(objective.free)
        if left.size and right.size:
            # Directions that do not change the objective would make the back-end less accurate.
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
        return _Program(cp.Problem(cp.Minimize(cost), [link, *constraints]), Theta, link)


def is_linear(problem: cp.Problem) -> bool:
    """Whether a problem is a linear program.  Old versions of CVXPY have no ``Problem.is_lp``."""
    from cvxpy.constraints import Equality, Inequality, NonNeg, NonPos, Zero

    for constraint in problem.constraints:
        inequality = isinstance(constraint, Inequality | NonNeg | NonPos)
        if not isinstance(constraint, Equality | Zero) and not (inequality and constraint.expr.is_pwl()):
            return False
    semidefinite = any(v.attributes[name] for v in problem.variables() for name in ("PSD", "NSD", "hermitian"))
    return not semidefinite and problem.is_dcp() and problem.objective.args[0].is_pwl()
