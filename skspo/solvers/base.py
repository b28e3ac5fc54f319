"""The Solver contract: minimise a LinearObjective and say how good the result provably is."""

from __future__ import annotations

import sys
import time
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from .._training.certificate import ZERO_BOUND, Bound
from .._training.objective import LinearObjective
from .._utils.deadline import StepTimer
from .._utils.threads import one_blas_thread
from ..losses import Loss
from ..regions.base import CAPABILITIES, Region


class Result(NamedTuple):
    """What a solver returns, in the objective's own units (see ``LinearObjective``)."""

    coef: np.ndarray
    objective: float  # evaluated by us at ``coef``, never a solver's word
    lower_bound: float  # proved by decisions in S
    n_iter: int
    converged: bool  # whether the relative gap is at most ``tol``
    message: str = ""  # why it stopped, if it did not converge
    radius: float = np.nan  # how far from least squares the bound is proved (see ``objective.Bound``)
    wrong_bound: bool = False  # whether the solver had a bound that is wrong, so that the trivial one took its place


class Solver(BaseEstimator):
    """Base class of solvers.

    ``requires`` names the region capabilities without which the solver cannot work, ``losses`` the losses that it
    minimises and proves its bounds for.  ``tol`` is a relative duality gap.
    """

    name: ClassVar[str] = ""
    requires: ClassVar[tuple[str, ...]] = ()
    losses: ClassVar[tuple[str, ...]] = ("SPO+",)
    #: whether the solver asks for nothing but sums over rows, so that they may live anywhere (``_training.chunked``)
    sums_suffice: ClassVar[bool] = False
    #: whether decisions that are not optimal do little harm; other solvers take every decision as exact
    tolerates_inexact: ClassVar[bool] = False

    tol: float
    max_iter: int | None

    def solve(self, objective: LinearObjective, coef_init: np.ndarray | None = None) -> Result:
        """Minimise the objective, from ``coef_init`` if the method can use a start."""
        raise NotImplementedError

    @classmethod
    def fits(cls, objective: LinearObjective) -> bool:
        """Whether the time that is left is enough to get anywhere: if not, "auto" takes another solver."""
        return True

    @classmethod
    def missing(cls, region: Region) -> list[str]:
        """Capabilities that this solver requires and the region does not have."""
        return [name for name in cls.requires if not hasattr(region, name)]

    def finish(
        self,
        objective: LinearObjective,
        candidates: list[tuple[np.ndarray, np.ndarray]],
        n_iter: int,
        message: str = "",
    ) -> Result:
        """Certify candidate (coefficients, dual decisions) pairs: best objective, best bound, relative gap.

        Bounds from different decisions may be combined because each one is proved on its own.
        """
        # A candidate beyond all bounds, whose value overflows, is the worst of all.
        values = [value if np.isfinite(value) else np.inf for value in (objective.value(T) for T, _ in candidates)]
        best = int(np.argmin(values))
        Theta, value = candidates[best][0], values[best]
        # Aim well inside the tolerance, but do not polish a proof for its own sake.
        target, enough = (value - share * self.tol * max(value, 0.0) for share in (0.1, 1.0))
        bound = ZERO_BOUND
        with one_blas_thread:  # many products of small matrices
            for _, V in candidates:
                if bound.value < target:
                    bound = max(bound, objective.lower_bound(V, Theta, target=target, enough=enough))
        return self.result(objective, Theta, value, bound, n_iter, message)

    def result(
        self,
        objective: LinearObjective,
        Theta: np.ndarray,
        value: float,
        bound: Bound,
        n_iter: int,
        message: str = "",
    ) -> Result:
        """Result with these coefficients, their objective and a bound."""
        # Rounding must not put the bound above the value: the two are then equal for all purposes.
        lower = min(bound.value, value)
        converged = objective.relative_gap(value, lower) <= self.tol
        return Result(Theta, value, lower, n_iter, converged, "" if converged else message, bound.radius)


def check_solver_serves(solver: Solver, region: Region, loss: Loss, others: dict[str, type[Solver]]) -> None:
    """Raise an error that says what is missing and which solvers would do."""
    able = [repr(name) for name, cls in others.items() if not cls.missing(region) and loss.name in cls.losses]
    if loss.name not in solver.losses:
        raise ValueError(
            f"solver={type(solver).__name__} minimises the {' or the '.join(solver.losses)} loss, and its bound is "
            f"one of that loss; the {loss.name} loss is to be minimised here. Solvers that can: {', '.join(able)}; or "
            "leave solver='auto'."
        )
    missing = solver.missing(region)
    if missing:
        what = "; ".join(f"{name} ({CAPABILITIES[name]})" for name in missing)
        raise ValueError(
            f"solver={solver.name!r} cannot serve the region {region.label}, which lacks: {what}. "
            f"Solvers that can: {', '.join(able)}; or leave solver='auto'."
        )


def check_rows_at_hand(solver: Solver, objective: LinearObjective, others: dict[str, type[Solver]]) -> None:
    """Raise an error if the solver looks at single rows and the objective has only sums over them."""
    if not (solver.sums_suffice or objective.rows_at_hand):
        able = [repr(name) for name, cls in others.items() if cls.sums_suffice and not cls.missing(objective.region)]
        raise ValueError(
            f"solver={solver.name!r} needs all rows in memory, but the data come in chunks. Solvers that read them "
            f"chunk by chunk: {', '.join(able)}; or leave solver='auto'. To stream with sgd, call partial_fit "
            "per chunk."
        )


#: rows of the history of a fit; when it is full, every second one is dropped
HISTORY = 1000


class Progress:
    """What a solver reports: kept in ``objective.history`` and, if verbose, one line that is overwritten.

    It also tells the solver when to stop for lack of time: ``late()``, asked once per step, after an optional
    ``begin()``.  The certificate takes about ``after`` steps.
    """

    def __init__(self, name: str, objective: LinearObjective, verbose: int, after: float = 1.0) -> None:
        self.name, self.objective, self.verbose = name, objective, verbose
        self.start = self.last = time.perf_counter()
        # A second solver goes on where the first one stopped.
        self.before = objective.history[-1][:2] if objective.history else (0.0, 0)
        self.calls, self.every = 0, 1
        timer = StepTimer(objective.deadline, steps=after)
        self.begin, self.late = timer.begin, timer.late

    def __call__(self, n_iter: int, value: float, bound: float | None = None, *, force: bool = False) -> None:
        """Note the state of the solver and print it, at most ten times a second."""
        now = time.perf_counter()
        if force or self.calls % self.every == 0:
            self._record(now, n_iter, value, np.nan if bound is None else bound)
        self.calls += 1
        if not self.verbose or (not force and now - self.last < 0.1):
            return
        self.last = now
        text = f"{self.name}: iteration {n_iter}  objective {value * self.objective.scale:.6g}"
        if bound is not None:
            gap = self.objective.relative_gap(value, bound)
            text += f"  bound {bound * self.objective.scale:.6g}  gap {gap:.1e}"
        end = "\r" if sys.stderr.isatty() and not force else "\n"
        print(f"{text}  {now - self.start:.1f} s", end=end, file=sys.stderr, flush=True)

    def _record(self, now: float, n_iter: int, value: float, bound: float) -> None:
        history = self.objective.history
        if len(history) >= HISTORY:
            del history[1::2]
            self.every *= 2
        history.append((self.before[0] + now - self.start, self.before[1] + n_iter, value, bound))


def history_of(objective: LinearObjective) -> dict[str, np.ndarray]:
    """What the solvers of an objective reported, as columns in units of cost; an unknown bound is NaN.

    The solver reports its iterate of the time, which may be worse than an earlier one, and a bound that is only proved
    in the last row, where the certificate is computed.  If the oracle is not optimal there are no bounds.
    """
    rows = np.array(objective.history, dtype=np.float64).reshape(-1, 4)
    if objective.inexact:
        rows[:, 3] = np.nan
    gaps = [np.nan if np.isnan(bound) else objective.relative_gap(value, bound) for _, _, value, bound in rows]
    return {
        "time": rows[:, 0],
        "n_iter": rows[:, 1].astype(int),
        "objective": rows[:, 2] * objective.scale,
        "lower_bound": rows[:, 3] * objective.scale,
        "duality_gap": np.array(gaps, dtype=np.float64),
    }
