"""Minibatch Adam with iterate averaging: any region, any number of samples.

Weighted averages of the decisions found during the fit prove a lower bound (see ``smoothed_proof``), so that a
stochastic fit has a certificate, too, although a looser one.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from .._training.in_memory import InMemoryObjective
from .._training.objective import NO_BOUND, ZERO_BOUND, LinearObjective
from .._training.run import Run
from .._utils.adam import Adam
from .._utils.limits import Deadline, TimeIsUp, one_blas_thread
from .._utils.types import RandomState
from .base import Progress, Result, Solver, Status, rows_of
from .smoothed_proof import prove


class Stream:
    """State of a stochastic run: iterate, averaged iterate, moments, learning rate, number of passes."""

    def __init__(self, Theta: np.ndarray, rate: float) -> None:
        self.rate = self.first_rate = rate
        self.epoch = 0
        self.restart(Theta)

    def restart(self, Theta: np.ndarray) -> None:
        """Start a new stage of averaging at Theta."""
        self.Theta = Theta.copy()
        self.average = Theta.copy()
        self.adam = Adam(Theta.shape, epsilon=1e-12, correct_first=True)
        self.stage = 0


class SGDSolver(Solver):
    """Stochastic fallback for large data and for regions known only by their oracle.

    The learning rate decreases in stages: when the averaged iterate has not improved for ``n_iter_no_change`` passes,
    the next stage starts at the best point with a third of the rate.  The run ends when the rate is below a thousandth
    of the first.

    Parameters
    ----------
    learning_rate : float, default=0.5
        First step, in units of the typical cost of one decision variable per standardized feature.
    batch_size : int or None, default=None
        None means a fiftieth of the data, between 32 and 1024.
    n_iter_no_change : int, default=4
        Passes without a relative improvement of the objective by ``early_stopping_tol`` that end a stage.
    early_stopping_tol : float, default=1e-4
    tol : float, default=1e-6
        Relative duality gap.
    max_iter : int or None, default=None
        Number of passes over the data; None means 500.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
    """

    name = "sgd"
    supports_sparse = True
    tolerates_inexact = True

    def __init__(
        self,
        *,
        learning_rate: float = 0.5,
        batch_size: int | None = None,
        n_iter_no_change: int = 4,
        early_stopping_tol: float = 1e-4,
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(tol=tol, max_iter=max_iter, verbose=verbose)
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping_tol = early_stopping_tol
        self.random_state = random_state

    def start(self, objective: InMemoryObjective, start: np.ndarray | None = None) -> Stream:
        """Start at ``start`` or at least squares."""
        # Cost vectors are scaled to norm one, so a single cost has size 1 / sqrt(d).
        rate = self.learning_rate / float(np.sqrt(objective.C.shape[1]))
        return Stream(objective.least_squares if start is None else start, rate)

    def solve(self, objective: LinearObjective, run: Run, start: np.ndarray | None = None) -> Result:
        """Run stages until the learning rate is below its limit."""
        objective = rows_of(objective)
        rng = check_random_state(self.random_state)
        limit = 500 if self.max_iter is None else self.max_iter
        stream = self.start(objective, start)
        progress = Progress(self.name, objective, run, self.verbose, tol=self.tol)
        best_Theta, best = stream.average.copy(), objective.value(stream.average)
        last_rate = 1e-3 * stream.rate
        met: list[np.ndarray] = []  # coefficients at the ends of stages
        stalled = 0
        while stream.epoch < limit and stream.rate >= last_rate and not progress.late():
            try:
                self.run_epoch(objective, stream, rng)
                value = objective.value(stream.average)
            except TimeIsUp:
                break
            # If the oracle is not optimal, the objective may be negative.
            stalled = 0 if value < best - self.early_stopping_tol * abs(best) else stalled + 1
            if value < best:
                best, best_Theta = value, stream.average.copy()
            if stalled >= self.n_iter_no_change:
                met += [stream.Theta, stream.average]
                stalled = 0
                stream.rate /= 3.0
                stream.restart(best_Theta)
            progress(stream.epoch, best)
        if run.deadline.reached:
            status, message = Status.TIME_LIMIT, run.deadline.message
        elif stream.rate < last_rate:
            status, message = Status.NUMERICAL_LIMIT, "the objective stopped improving"
        else:
            status, message = Status.ITERATION_LIMIT, f"max_iter={limit} passes were used up"
        met.append(stream.Theta)
        try:
            with one_blas_thread:  # many products of small matrices
                proof = prove(objective, best_Theta, met, self.tol, progress, run.deadline, stream.epoch)
            if objective.inexact:
                # The loss is not reliable and nothing is proved; the cost of decisions is known.
                best_Theta = cheapest(objective, [best_Theta, proof[0], *reversed(met)], run.deadline)
                proof = best_Theta, objective.value(best_Theta), NO_BOUND
        except TimeIsUp:
            proof = best_Theta, best, NO_BOUND if objective.inexact else ZERO_BOUND
        result = self.result(objective, *proof, stream.epoch, status, message)
        progress(stream.epoch, result.objective, result.lower_bound, force=True)
        return result

    def run_epoch(self, objective: InMemoryObjective, stream: Stream, rng: np.random.RandomState) -> None:
        """Pass once over the data in random order."""
        n = objective.n_samples
        batch = self.batch_size or int(np.clip(n // 50, 32, 1024))
        order = rng.permutation(n)
        total = np.zeros_like(stream.Theta)
        stream.epoch += 1
        stream.stage += 1
        # Polynomial-decay averaging within a stage: recent passes have more weight.
        mix = min(1.0, 4.0 / (stream.stage + 3.0))
        for start in range(0, n, batch):
            rows = order[start : start + batch]
            # Rows are drawn uniformly; weights times n / batch make the gradient unbiased.
            weight = objective.weight[rows] * (n / rows.size)
            G = objective.batch_gradient(stream.Theta, rows, weight)
            stream.Theta = stream.Theta - stream.adam.step(G + objective.penalty_gradient(stream.Theta), stream.rate)
            total += stream.Theta * rows.size
        stream.average += mix * (total / n - stream.average)


def cheapest(objective: LinearObjective, models: list[np.ndarray], deadline: Deadline) -> np.ndarray:
    """Model whose decisions cost least on the training data; at the time limit, the best of those evaluated so far."""
    best, lowest = models[0], np.inf
    for Theta in models:
        cost = objective.decision_cost(Theta)
        if cost < lowest:
            best, lowest = Theta, cost
        if deadline.left() <= 0:
            break
    return best
