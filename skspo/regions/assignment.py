"""Assignments of workers to tasks."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from .._utils.errors import InfeasibleRegionError
from .._utils.limits import check_time
from .._utils.shown import shown
from ._cost_bounds import CostBounds
from ._names import Names, ones_of
from ._oracles.highs import map_rows, worst_rows
from ._row_names import row_error
from .forms import InequalityForm
from .polyhedral import PolyhedralRegion
from .row_polyhedra import forbid


class _Shape(NamedTuple):
    workers: int
    tasks: int
    available: np.ndarray | None = None  # (n, d); None means that all pairs are possible


class Assignment(PolyhedralRegion):
    """Assign workers to tasks, one to one: everyone of the smaller side has a partner.

    The decision is a matrix with one row per worker and one column per task, row by row, with entries 1 for pairs.  The
    region is the convex hull of all assignments: nonnegative matrices whose rows and columns sum to one, or to at most
    one on the larger side.

    Parameters
    ----------
    n : int, default=None
        Number of workers; the decision of worker i and task j is number ``i * n_tasks + j``.  None means that
        it follows from the number of costs.
    n_tasks : int, default=None
        Number of tasks; None means as many as workers.
    n_jobs : int, default=None
        Number of threads.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Notes
    -----
    Not all pairs may be possible for every sample: ``region_params={"available": ...}``, a boolean array of shape
    (n_samples, n * n_tasks), in the methods of an estimator.

    Examples
    --------
    >>> from skspo import Assignment
    >>> Assignment(2).argmin([[1.0, 2.0, 1.0, 3.0]])
    array([[0., 1., 1., 0.]])

    Two workers and three tasks:

    >>> Assignment(2, 3).chosen([[1.0, 2.0, 3.0, 1.0, 4.0, 5.0]])
    [[(0, 1), (1, 0)]]
    """

    n_tasks: int | None = None  # regions that were pickled by version 0.3 have no such parameter

    def __init__(
        self,
        n: int | None = None,
        n_tasks: int | None = None,
        *,
        n_jobs: int | None = None,
        sense: str = "min",
        cost_bounds: CostBounds = None,
    ) -> None:
        self.n = n
        self.n_tasks = n_tasks
        self.n_jobs = n_jobs
        self.sense = sense
        self.cost_bounds = cost_bounds

    @property
    def n_dim(self) -> int | None:
        """Number of pairs; None if n is to be inferred."""
        for name in ("n", "n_tasks"):
            value = getattr(self, name)
            integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if value is not None and not (integer and value >= 1):
                raise ValueError(f"Assignment: {name} must be a positive integer or None, got {shown(value)}.")
        if self.n is None:
            return None
        return int(self.n) * int(self.n if self.n_tasks is None else self.n_tasks)

    @property
    def variable_names(self) -> Names:  # type: ignore[override]
        """Names "worker -> task" of the pairs, by their numbers; None if n is to be inferred."""
        return None if self.n_dim is None else self._names(self.n_dim)

    def _names(self, d: int) -> Names:
        workers, tasks, _ = self._data(d)
        return [f"{i} -> {j}" for i in range(workers) for j in range(tasks)]

    def _prepare(self, d: int) -> _Shape:
        if self.n is not None:
            return _Shape(int(self.n), d // int(self.n))
        if self.n_tasks is None:
            n = isqrt(d)
            if n * n != d:
                raise ValueError(
                    f"Assignment: the number of costs must be a square, n workers times n tasks; got {d}. Set n, or "
                    "n_tasks, if there are more workers than tasks or the other way round."
                )
            return _Shape(n, n)
        if d % int(self.n_tasks):
            raise ValueError(f"Assignment: the number of costs must be a multiple of n_tasks={self.n_tasks}, got {d}.")
        return _Shape(d // int(self.n_tasks), int(self.n_tasks))

    def _argmin(self, C: np.ndarray, data: _Shape) -> np.ndarray:
        return _assign(forbid(C, data.available), data[:2], self.n_jobs)

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Pairs may be impossible."""
        return {"available": (d,)}

    def _read_rows(self, rows: dict[str, np.ndarray], data: _Shape, d: int) -> dict[str, np.ndarray]:
        self._argmin(np.zeros_like(rows["available"], dtype=np.float64), self._with_values(data, rows))  # each has one
        return rows

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        (_, tasks, _), taken = self._data(W.shape[1]), ones_of(W)
        if taken is None:  # a mixture of assignments
            return super()._describe(W, names)
        return [[divmod(int(e), tasks) for e in own] for own in taken]

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimised)."""
        form = self.inequality_form(C.shape[1])
        plain = replace(form, upper=np.full(C.shape[1], np.inf))
        return worst_rows(plain, C, C_true, n_jobs=self.n_jobs, rows=form.varying())

    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return {w >= 0, sums of rows and columns 1}; sums of the larger side at most 1."""
        d = self.resolve_dim(n_dim)
        workers, tasks, available = self._data(d)
        upper = np.inf if available is None else np.where(available, np.inf, 0.0)
        by_worker = sp.kron(sp.eye_array(workers, format="csr"), np.ones((1, tasks)), format="csr")
        by_task = sp.kron(np.ones((1, workers)), sp.eye_array(tasks, format="csr"), format="csr")
        if workers == tasks:
            return InequalityForm.build(d, A_eq=sp.vstack([by_worker, by_task]), b_eq=np.ones(2 * tasks), upper=upper)
        few, many = (by_worker, by_task) if workers < tasks else (by_task, by_worker)
        return InequalityForm.build(d, many, np.ones(many.shape[0]), few, np.ones(few.shape[0]), upper=upper)


def _assign(C: np.ndarray, shape: tuple[int, int], n_jobs: int | None) -> np.ndarray:
    """Cheapest assignment of each row; an infinite cost excludes a pair."""

    def chunk(first: int, C: np.ndarray) -> np.ndarray:
        W = np.zeros((C.shape[0], *shape))
        for i, (w, c) in enumerate(zip(W, C.reshape(-1, *shape), strict=True)):
            check_time()
            try:
                w[linear_sum_assignment(c)] = 1.0
            except ValueError:
                text = (
                    "Assignment: the region of {row} is empty, its available pairs (region_params) have no assignment "
                    f"of all {min(shape)} of the smaller side."
                )
                raise row_error(InfeasibleRegionError, first + i, text) from None
        return W.reshape(C.shape)

    return map_rows(chunk, C, n_jobs=n_jobs)
