"""Assignments of workers to tasks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
from ._names import Names, number_names, ones_of, read_labels
from ._oracles.highs import map_rows, worst_rows
from ._rows import forbid, row_error
from .polyhedral import InequalityForm, PolyhedralRegion


class _Shape(NamedTuple):
    workers: int
    tasks: int
    available: np.ndarray | None = None  # (n, d); None means that all pairs are possible

    def present(self) -> tuple[np.ndarray, np.ndarray]:
        """Which workers and which tasks have an available pair in each sample."""
        assert self.available is not None
        pairs = self.available.reshape(-1, self.workers, self.tasks)
        return np.asarray(pairs.any(axis=2)), np.asarray(pairs.any(axis=1))


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
    workers, tasks : list of labels, default=None
        Names of the workers and of the tasks, instead of ``n`` and ``n_tasks``.  Costs are then those of "worker ->
        task", and the columns of data frames are compared with these names.
    n_jobs : int, default=None
        Number of threads.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Notes
    -----
    Not all pairs may be possible for every sample: ``region_params={"available": ...}``, a boolean array of shape
    (n_samples, n * n_tasks), in the methods of an estimator.  Workers and tasks without any available pair are absent.
    They have no partner, and the others are assigned as if they did not exist: everyone of the side that is smaller
    among those present has a partner.  If that is not possible, there is an error.

    Examples
    --------
    >>> from skspo import Assignment
    >>> Assignment(2).argmin([[1.0, 2.0, 1.0, 3.0]])
    array([[0., 1., 1., 0.]])

    Two workers and three tasks:

    >>> Assignment(2, 3).chosen([[1.0, 2.0, 3.0, 1.0, 4.0, 5.0]])
    [[(0, 1), (1, 0)]]

    The second one is absent today:

    >>> crews = Assignment(workers=["Ann", "Bob", "Cem"], tasks=["roof", "wall"])
    >>> today = crews.with_rows({"available": [[True, True, False, False, True, True]]}, 1, 6)
    >>> today.chosen([[5.0, 9.0, 1.0, 1.0, 4.0, 2.0]])
    [[('Ann', 'roof'), ('Cem', 'wall')]]
    """

    def __init__(
        self,
        n: int | None = None,
        n_tasks: int | None = None,
        *,
        workers: Sequence[Hashable] | None = None,
        tasks: Sequence[Hashable] | None = None,
        n_jobs: int | None = None,
        sense: str = "min",
        cost_bounds: CostBounds = None,
    ) -> None:
        self.n = n
        self.n_tasks = n_tasks
        self.workers = workers
        self.tasks = tasks
        self.n_jobs = n_jobs
        self.sense = sense
        self.cost_bounds = cost_bounds

    @property
    def n_dim(self) -> int | None:
        """Number of pairs; None if a number is to be inferred."""
        workers, tasks = self._sizes()
        if workers is None or (tasks is None and self.tasks is None and self.workers is not None):
            return None
        return workers * (workers if tasks is None else tasks)

    def _sizes(self) -> tuple[int | None, int | None]:
        """Numbers of workers and of tasks that are given."""
        found = []
        for number, names in (("n", "workers"), ("n_tasks", "tasks")):
            size, labels = getattr(self, number), getattr(self, names)
            integer = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
            if size is not None and not (integer and size >= 1):
                raise ValueError(f"Assignment: {number} must be a positive integer or None, got {shown(size)}.")
            if labels is not None:
                listed = read_labels(f"Assignment: {names}", labels)
                if size not in (None, len(listed)):
                    raise ValueError(
                        f"Assignment: {number}={size}, but there are {len(listed)} {names}; omit {number}."
                    )
                size = len(listed)
            found.append(None if size is None else int(size))
        return found[0], found[1]

    @property
    def variable_names(self) -> Names:  # type: ignore[override]
        """Names "worker -> task" of the pairs, by their labels or numbers; None if a number is to be inferred."""
        return None if self.n_dim is None else self._names(self.n_dim)

    def _labels(self, d: int) -> tuple[list[Hashable], list[Hashable]]:
        """Labels of workers and tasks, or their numbers."""
        workers, tasks, _ = self._data(d)
        return (
            list(range(workers) if self.workers is None else self.workers),
            list(range(tasks) if self.tasks is None else self.tasks),
        )

    def _names(self, d: int) -> Names:
        workers, tasks = self._labels(d)
        return number_names([f"{i} -> {j}" for i in workers for j in tasks])

    def _prepare(self, d: int) -> _Shape:
        workers, tasks = self._sizes()
        if workers is None and tasks is None:
            n = isqrt(d)
            if n * n != d:
                raise ValueError(
                    f"Assignment: the number of costs must be a square, n workers times n tasks; got {d}. Set n, or "
                    "n_tasks, if there are more workers than tasks or the other way round."
                )
            return _Shape(n, n)
        known, name = (tasks, "tasks") if workers is None else (workers, "workers")
        assert known is not None
        if d % known:
            raise ValueError(
                f"Assignment: the number of costs must be a multiple of the number of {name}, {known}; got {d}."
            )
        return _Shape(d // known, known) if workers is None else _Shape(known, d // known)

    def _argmin(self, C: np.ndarray, data: _Shape) -> np.ndarray:
        return _assign(forbid(C, data.available), data[:2], self.n_jobs)

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Pairs may be impossible."""
        return {"available": (d,)}

    def _read_rows(self, rows: dict[str, np.ndarray], data: _Shape, d: int) -> dict[str, np.ndarray]:
        self._argmin(np.zeros_like(rows["available"], dtype=np.float64), self._with_values(data, rows))  # each has one
        return rows

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        (workers, tasks), taken = self._labels(W.shape[1]), ones_of(W)
        if taken is None:  # a mixture of assignments
            return super()._describe(W, names)
        pairs = [(worker, task) for worker in workers for task in tasks]
        return [[pairs[e] for e in own] for own in taken]

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        form = self.inequality_form(C.shape[1])
        plain = replace(form, upper=np.full(C.shape[1], np.inf), b_eq=np.atleast_2d(form.b_eq)[0])
        return worst_rows(plain, C, C_true, n_jobs=self.n_jobs, rows=form.varying())

    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return {w >= 0, sums of rows and columns 1}; sums of the larger side at most 1.

        If pairs are available by sample, all sums are at most 1, and the number of pairs is given.
        """
        d = self.resolve_dim(n_dim)
        workers, tasks, available = shape = self._data(d)
        by_worker = sp.kron(sp.eye_array(workers, format="csr"), np.ones((1, tasks)), format="csr")
        by_task = sp.kron(np.ones((1, workers)), sp.eye_array(tasks, format="csr"), format="csr")
        both = sp.vstack([by_worker, by_task])
        if available is not None:
            pairs = np.minimum(*(present.sum(axis=1) for present in shape.present()))[:, None]
            upper = np.where(available, np.inf, 0.0)
            return InequalityForm.build(d, both, np.ones(both.shape[0]), np.ones((1, d)), pairs, upper=upper)
        if workers == tasks:
            return InequalityForm.build(d, A_eq=both, b_eq=np.ones(2 * tasks))
        few, many = (by_worker, by_task) if workers < tasks else (by_task, by_worker)
        return InequalityForm.build(d, many, np.ones(many.shape[0]), few, np.ones(few.shape[0]))


def _assign(C: np.ndarray, shape: tuple[int, int], n_jobs: int | None) -> np.ndarray:
    """Cheapest assignment of each row; an infinite cost excludes a pair."""

    def chunk(first: int, C: np.ndarray) -> np.ndarray:
        W = np.zeros((C.shape[0], *shape))
        for i, (w, c) in enumerate(zip(W, C.reshape(-1, *shape), strict=True)):
            check_time()
            possible = np.isfinite(c)
            rows, columns = possible.any(axis=1).nonzero()[0], possible.any(axis=0).nonzero()[0]  # those present
            try:
                i_rows, i_columns = linear_sum_assignment(c if possible.all() else c[np.ix_(rows, columns)])
                w[rows[i_rows], columns[i_columns]] = 1.0
            except ValueError:
                text = (
                    "Assignment: the region of {row} is empty, its available pairs (region_params) have no assignment "
                    f"of all {min(rows.size, columns.size)} of the smaller side."
                )
                raise row_error(InfeasibleRegionError, first + i, text) from None
        return W.reshape(C.shape)

    return map_rows(chunk, C, n_jobs=n_jobs)
