"""Base class of solvers, their results, checks and progress reports."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from .._training.in_memory import InMemoryObjective
from .._training.objective import ZERO_BOUND, Bound, DecisionsAt, LinearObjective, lower_bound
from .._training.run import Run
from .._utils.limits import StepTimer, one_blas_thread
from .._utils.progress import Activity
from ..losses import Loss
from ..regions.base import Region
from ..regions.capabilities import CAPABILITIES, has
from ..regions.capabilities import missing as missing_capabilities


class Status(StrEnum):
    """Why a solver stopped."""

    #: the relative duality gap is at most ``tol``; without a dual bound: the stopping rule of the solver was met
    CONVERGED = "converged"
    #: ``max_iter``, or the solver's own limit, was reached
    ITERATION_LIMIT = "iteration limit"
    #: ``time_limit`` was reached
    TIME_LIMIT = "time limit"
    #: the budget of work of this turn was used up; the solver can go on
    PAUSED = "paused"
    #: no more progress is possible: rounding errors, a kink of the loss, or an oracle that is not optimal
    NUMERICAL_LIMIT = "numerical limit"
    #: the process of a back-end was killed by a signal
    INTERRUPTED = "interrupted"
    #: there is no result, or its bound is wrong
    FAILED = "failed"


class Result(NamedTuple):
    """Result of a solver, in the units of the objective (see ``LinearObjective``)."""

    coef: np.ndarray
    objective: float  # evaluated at ``coef``, not taken from a back-end
    lower_bound: float  # proved by decisions in S
    n_iter: int
    status: Status
    message: str = ""  # why it stopped, if it did not converge
    radius: float = np.nan  # radius around least squares within which the bound holds (see ``objective.Bound``)
    wrong_bound: bool = False  # whether the bound of the solver was wrong and has been replaced by zero
    gap: float = np.nan  # relative duality gap; set by ``certified``

    @property
    def converged(self) -> bool:
        """Whether the status is ``CONVERGED``."""
        return self.status is Status.CONVERGED


class Estimate(NamedTuple):
    """What a fit to ``tol`` is expected to take.

    One unit of work is one multiplication of an operation on arrays, about a nanosecond.  Solvers count their work in
    the same units (``Progress.spend``), so that a wrong estimate costs a bounded multiple of the best solver's time.
    """

    work: float
    memory: float  # bytes, at the peak, beyond the data


#: multiplications of a product or factorization of large matrices that take as long as one of an operation on arrays
MATRIX_SPEED = 30.0

#: work of oracles for each cost of a row: those that compare or sort, those that find a root of a smooth function, and
#: those that call a solver for every row, for linear programs, for conic programs, and for others, which search; 200
#: random rows of 4 to 144 costs were timed
SORT, ROOT, LINEAR, CONIC, SEARCH = 10.0, 100.0, 2e3, 5e3, 1e5

#: work of a call of such a solver, however small the program, from the same rows
CALL = 4e4

#: work of the interpreter in a step that solves equations or a program, however small: about a millisecond
STEP = 1e6

#: passes over the data that a certificate takes: values, decisions, and moves of decisions into the region
CERTIFICATE = 3.0

#: relative gap of the fit to an easier problem, a sample or some of the rows, which is only a start
START_TOL = 1e-2


def oracle_work(region: Region, d: int) -> float:
    """Work of the oracle for a row of d costs."""
    if not region.oracle_is_solver:
        return (ROOT if has(region, "smoothed") else SORT) * d
    return CALL + d * (LINEAR if has(region, "standard_form") else CONIC if has(region, "support_epigraph") else SEARCH)


def pass_work(objective: LinearObjective) -> float:
    """Work of predictions and decisions for all rows, and of the moments of the decisions."""
    d = objective.normals.shape[1]
    return objective.n_samples * (2.0 * d * features_per_row(objective) + oracle_work(objective.region, d))


def certificate_work(objective: LinearObjective) -> float:
    """Work of a certificate whose decisions are moved into the region."""
    region: Any = objective.region
    repair = 0.0
    if region._repair_is_solver:
        repair = CALL + LINEAR * region.standard_form(objective.normals.shape[1]).A.shape[1]
    return CERTIFICATE * (pass_work(objective) + objective.n_samples * repair)


def features_per_row(objective: LinearObjective) -> float:
    """Number of features of a row that are not zero."""
    Z: Any = objective.design.Z if objective.design.sparse else None
    return float(objective.design.n_coef) if Z is None else float(Z.nnz) / objective.n_samples


def certified(objective: LinearObjective, result: Result, tol: float) -> Result:
    """Result with its relative gap, and with a status that agrees with it.

    Gaps of results are computed only here.  For a loss without a dual bound the status of the solver is kept, because
    the gap to a bound of zero has no meaning.
    """
    # Rounding must not put the bound above the value.
    lower = min(result.lower_bound, result.objective)
    gap = objective.relative_gap(result.objective, lower)
    result = result._replace(lower_bound=lower, gap=gap)
    if not objective.loss.has_dual_bound:
        return result
    if result.objective < 0.0 and not objective.inexact:
        # Zero is a bound, so that the value is wrong by as much as it is negative.
        error = objective.relative_gap(0.0, result.objective)
        if error > tol:
            message = (
                f"the objective is {result.objective * objective.scale:.3g}, and optimal decisions never make it "
                "negative: they are not optimal, or rounding errors are large"
            )
            return result._replace(gap=max(gap, error), status=Status.NUMERICAL_LIMIT, message=message)
    if gap <= tol:
        return result._replace(status=Status.CONVERGED, message="")
    return result._replace(status=Status.NUMERICAL_LIMIT) if result.converged else result


def combined(objective: LinearObjective, one: Result, other: Result, tol: float) -> Result:
    """Coefficients of the better of two results, with the better of their bounds that is proved far enough."""
    first, second = (one, other) if one.objective <= other.objective else (other, one)
    needed = 2.0 * objective.distance(first.coef)
    bound = second if second.lower_bound > first.lower_bound and second.radius >= needed else first
    last = one if other.converged else other  # why the last solver stopped that did not converge
    result = first._replace(
        lower_bound=bound.lower_bound, radius=bound.radius, status=last.status, message=last.message
    )
    return certified(objective, result, tol)


#: kinds of penalties, and what they are called in error messages
PENALTIES = {
    "none": "no penalty (alpha=0)",
    "ridge": "a smooth penalty (l1_ratio=0)",
    "l1": "a penalty with an l1 norm (alpha > 0 and l1_ratio > 0)",
}


def penalty_kind(alpha: float, l1_ratio: float) -> str:
    """Kind of a penalty, one of ``PENALTIES``."""
    return "none" if alpha == 0 else "ridge" if l1_ratio == 0 else "l1"


class Solver(BaseEstimator):
    """Base class of solvers.

    A solver declares what it needs: ``requires`` names the region capabilities without which it cannot work,
    ``losses`` the losses that it minimizes and proves its bounds for, and ``penalties`` the kinds of penalties that it
    can handle (see ``PENALTIES``).  ``check_solver_serves`` compares all three with a training problem.  ``tol`` is a
    relative duality gap.
    """

    name: ClassVar[str] = ""
    requires: ClassVar[tuple[str, ...]] = ()
    losses: ClassVar[tuple[str, ...]] = ("SPO+",)
    penalties: ClassVar[tuple[str, ...]] = tuple(PENALTIES)
    #: whether the solver needs only sums over rows (see ``_training.chunked``); if not, rows are loaded into memory
    supports_chunks: ClassVar[bool] = False
    #: whether features may be in CSR form
    supports_sparse: ClassVar[bool] = False
    #: whether the solver stops when the budget of its turn is used up, and can go on later
    can_pause: ClassVar[bool] = True
    #: whether the driver fits a sample of the rows first, as a warm start, if there are many rows
    starts_from_sample: ClassVar[bool] = False
    #: whether the solver also works if decisions are not optimal
    tolerates_inexact: ClassVar[bool] = False

    def __init__(self, *, tol: float = 1e-6, max_iter: int | None = None, verbose: int = 0) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Minimize the objective.

        Parameters
        ----------
        objective : LinearObjective
        run : Run
            Time limit, history and caches.
        start : ndarray, optional
            Warm start, if the method can use it; by default least squares.
        """
        raise NotImplementedError

    @classmethod
    def estimate(cls, objective: LinearObjective, run: Run) -> Estimate:
        """Work and memory of a fit to the default tolerance; "auto" tries solvers in the order of their work."""
        return Estimate(np.inf, 0.0)

    @classmethod
    def loads_rows(cls, objective: LinearObjective) -> bool:
        """Whether the solver needs all rows in memory."""
        return not cls.supports_chunks

    @classmethod
    def fits(cls, objective: LinearObjective, run: Run) -> bool:
        """Whether the remaining time is enough for the first steps; if not, "auto" does not use the solver."""
        return True

    @classmethod
    def missing(cls, region: Region) -> list[str]:
        """Capabilities that this solver requires and the region does not have."""
        return missing_capabilities(region, cls.requires)

    @classmethod
    def shortcomings(cls, region: Region, loss: Loss, penalty: str) -> list[str]:
        """Why this solver cannot minimize a loss with a kind of penalty over a region; empty if it can."""
        found = []
        missing = cls.missing(region)
        if missing:
            what = "; ".join(f"{name} ({CAPABILITIES[name]})" for name in missing)
            found.append(f"cannot serve the region {region.label}, which lacks: {what}")
        if loss.name not in cls.losses:
            found.append(
                f"minimizes the {' or the '.join(cls.losses)} loss, and its bound is one of that loss; the {loss.name} "
                "loss is to be minimized here"
            )
        if penalty not in cls.penalties:
            found.append(f"needs {' or '.join(PENALTIES[p] for p in cls.penalties)}, but got {PENALTIES[penalty]}")
        return found

    def finish(
        self,
        objective: LinearObjective,
        run: Run,
        candidates: list[tuple[np.ndarray, np.ndarray | None]],
        n_iter: int,
        status: Status = Status.NUMERICAL_LIMIT,
        message: str = "",
        mix: bool = True,
    ) -> Result:
        """Certify candidate (coefficients, dual decisions) pairs: best objective, best bound, relative gap.

        None means the decisions at the coefficients.  Each bound is proved separately, so the best one can be combined
        with the best objective.  ``status`` and ``message`` say why the solver stopped if the gap is not closed;
        ``mix``, whether other decisions are mixed in where moving the given ones is not enough.
        """
        # A value that overflows counts as infinite.
        values = [value if np.isfinite(value) else np.inf for value in (objective.value(T) for T, _ in candidates)]
        best = int(np.argmin(values))
        Theta, value = candidates[best][0], values[best]
        # Aim at a tenth of the tolerance; the tolerance itself is enough.
        target, enough = (value - share * self.tol * max(value, 0.0) for share in (0.1, 1.0))
        enough = enough if mix else -np.inf
        bound = ZERO_BOUND
        with one_blas_thread:  # many products of small matrices
            for at, V in candidates:
                if bound.value < target:
                    dual = DecisionsAt(at) if V is None else V
                    proved = lower_bound(objective, dual, Theta, run.deadline, target=target, enough=enough)
                    bound = max(bound, proved)
        return self.result(objective, Theta, value, bound, n_iter, status, message)

    def result(
        self,
        objective: LinearObjective,
        Theta: np.ndarray,
        value: float,
        bound: Bound,
        n_iter: int,
        status: Status = Status.NUMERICAL_LIMIT,
        message: str = "",
    ) -> Result:
        """Certified result with these coefficients, their objective and a bound."""
        return certified(objective, Result(Theta, value, bound.value, n_iter, status, message, bound.radius), self.tol)


def check_solver_serves(
    solver: Solver, region: Region, loss: Loss, penalty: str, others: dict[str, type[Solver]]
) -> None:
    """Raise an error if a solver cannot be used for a training problem; it suggests those of the others that can."""
    found = solver.shortcomings(region, loss, penalty)
    if found:
        able = [repr(name) for name, cls in others.items() if not cls.shortcomings(region, loss, penalty)]
        instead = f"Solvers that can: {', '.join(able)}; or leave" if able else "Leave"
        raise ValueError(
            f"solver={(solver.name or type(solver).__name__)!r} {'. It also '.join(found)}. {instead} solver='auto'."
        )


def rows_of(objective: LinearObjective) -> InMemoryObjective:
    """Narrow the type of an objective whose rows are in memory."""
    if not isinstance(objective, InMemoryObjective):
        raise TypeError("This solver needs all rows in memory.")
    return objective


def check_data(
    solver: Solver, objective: LinearObjective, others: dict[str, type[Solver]], memory: float, limit: float
) -> None:
    """Raise an error if the solver needs more than ``limit`` bytes to load the rows, or if it needs dense features."""
    if memory > limit:
        able = [
            repr(k) for k, cls in others.items() if not (cls.loads_rows(objective) or cls.missing(objective.region))
        ]
        raise ValueError(
            f"solver={solver.name!r} needs all rows in memory, and to load them takes {memory / 2**30:.2g} GB, more "
            f"than half of the memory of this computer. Solvers that read them chunk by chunk: {', '.join(able)}; or "
            "leave solver='auto'. To stream with sgd, call partial_fit per chunk."
        )
    if objective.design.sparse and not solver.supports_sparse:
        able = [repr(name) for name, cls in others.items() if cls.supports_sparse and not cls.missing(objective.region)]
        raise ValueError(
            f"solver={solver.name!r} needs dense features, but X is sparse. Solvers for sparse features: "
            f"{', '.join(able)}; or leave solver='auto', or pass X.toarray()."
        )


#: largest number of rows of the history of a fit; when it is full, every second row is dropped
HISTORY = 1000


class Progress:
    """Progress reports of a solver: rows of ``run.history`` and, if verbose, a task of ``_utils.progress``.

    ``late()``, called once per step, says whether to stop because of the time limit; ``begin()`` starts the clock of
    the first step.  The certificate takes about ``after`` steps.  With ``tol`` the time that is left is estimated.
    ``spend(work)``, called once per step, counts work and says whether to pause; ``done`` is the number of iterations
    before a pause.
    """

    def __init__(
        self,
        name: str,
        objective: LinearObjective,
        run: Run,
        verbose: int,
        after: float = 1.0,
        tol: float | None = None,
        done: int = 0,
    ) -> None:
        self.objective, self.history, self.tol = objective, run.history, tol
        self.task = Activity(name, verbose) if verbose else None
        self.step = f"{run.step}, {name}" if run.step else name
        self.deadline, self.start = run.deadline, time.perf_counter()
        # A second solver appends to the history of the first one.
        seconds, n_iter = run.history[-1][:2] if run.history else (0.0, 0)
        self.before = seconds, n_iter - done
        self.calls, self.every = 0, 1
        self.first: tuple[float, float] | None = None  # time and gap when there was one first
        timer = StepTimer(run.deadline, steps=after)
        self.begin, self.late = timer.begin, timer.late
        self.budget = run.budget

    def spend(self, work: float) -> bool:
        """Count the work of a step; whether the budget of this turn is used up."""
        self.budget.spent += work
        return self.budget.used_up

    def __call__(self, n_iter: int, value: float, bound: float | None = None, *, force: bool = False) -> None:
        """Record the state of the solver and show it; ``force`` is for the last one."""
        now = time.perf_counter()
        if force or self.calls % self.every == 0:
            self._record(now, n_iter, value, np.nan if bound is None else bound)
        self.calls += 1
        if self.task is None or not self.task.verbose:
            return
        text, left = f"iteration {n_iter}, objective {value * self.objective.scale:.6g}", None
        if bound is not None:
            gap = self.objective.relative_gap(value, bound)
            text += f", bound {bound * self.objective.scale:.6g}, gap {gap:.1e}"
            left = self._left(now, gap)
        if force:
            self.task.finish(text)
        else:
            self.task.update(text, left)

    def _left(self, now: float, gap: float) -> float | None:
        """Estimated seconds until the gap is closed, if it goes on to decrease at the same rate; None if unknown."""
        if self.tol is None or not 0.0 < gap < 1.0:
            return None
        if self.first is None:
            self.first = now, gap
        begun, first = self.first
        if gap >= first:
            return None
        left = (now - begun) * np.log(max(gap / self.tol, 1.0)) / np.log(first / gap)
        return float(min(left, max(self.deadline.left(), 0.0)))

    def _record(self, now: float, n_iter: int, value: float, bound: float) -> None:
        if len(self.history) >= HISTORY:
            del self.history[1::2]
            self.every *= 2
        self.history.append((self.before[0] + now - self.start, self.before[1] + n_iter, value, bound, self.step))


def history_of(objective: LinearObjective, run: Run) -> dict[str, np.ndarray]:
    """History of a run, as columns in units of cost; an unknown bound is NaN.

    The objective is that of the current iterate, which may be worse than an earlier one.  The bound is only proved in
    the last row, where the certificate is computed.  If the oracle is not optimal there are no bounds.  "step" is the
    solver, or the step of the driver.
    """
    rows = np.array([row[:4] for row in run.history], dtype=np.float64).reshape(-1, 4)
    if objective.inexact:
        rows[:, 3] = np.nan
    gaps = [np.nan if np.isnan(bound) else objective.relative_gap(value, bound) for _, _, value, bound in rows]
    return {
        "time": rows[:, 0],
        "n_iter": rows[:, 1].astype(int),
        "objective": rows[:, 2] * objective.scale,
        "lower_bound": rows[:, 3] * objective.scale,
        "duality_gap": np.array(gaps, dtype=np.float64),
        "step": np.array([row[4] for row in run.history], dtype=str),
    }
