"""Regions of integer decisions: MixedInteger, Knapsack."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from .._utils.errors import InfeasibleRegionError
from .._utils.limits import BLOCK_NUMBERS, check_time
from .._utils.shown import shown
from ._cost_bounds import CostBounds
from ._names import Names, list_selected
from ._oracles.highs import NOTHING, check_bounded, solve_rows
from ._rows import refuse_rows, rows_like, rows_named
from ._tolerances import ROUNDING, SOLVER
from .listed import IntegerRegion, has_hull
from .polyhedral import InequalityForm, Matrix, fixed_directions
from .polyhedron import (
    BoundsLike,
    ConstrainedRegion,
    ConstraintsLike,
    Polyhedron,
    _Constraints,
    read_numbers,
)

MAX_CELLS = 2**22  # largest table of a row, which takes 13 ms, as long as branch and bound; larger ones are not used


class MixedInteger(IntegerRegion, ConstrainedRegion):
    r"""Integer points of a polyhedron: listed if they are few, else solved with HiGHS.

    .. math:: \{w \in \mathbb{Z}^d : A_{ub} w \le b_{ub}, \; A_{eq} w = b_{eq}, \; l \le w \le u\}

    All decisions are integers by default; ``integrality`` selects some of them.  :class:`Polyhedron` is the region of
    continuous decisions.  All other conventions are those of :func:`scipy.optimize.linprog` and
    :func:`scipy.optimize.milp`: constraints are matrices, ``LinearConstraint`` objects, or both.  The region must be
    nonempty and bounded, which is checked on first use.

    Parameters
    ----------
    A_ub : array-like or sparse matrix of shape (m, d), default=None
    b_ub : array-like of shape (m,), default=None
        Inequalities :math:`A_{ub} w \le b_{ub}`.
    A_eq : array-like or sparse matrix of shape (k, d), default=None
    b_eq : array-like of shape (k,), default=None
        Equalities :math:`A_{eq} w = b_{eq}`.
    bounds : pair, list of d pairs, or scipy.optimize.Bounds, default=(0, None)
        Lower bound l and upper bound u of all decisions, or of each; None means that there is no bound.
    integrality : {0, 1} or array-like of shape (d,), default=1
        1 for an integer decision, 0 for a continuous one.
    constraints : LinearConstraint, tuple (A, lb, ub), or list of those, default=None
        Further constraints ``lb <= A @ w <= ub`` (:class:`scipy.optimize.LinearConstraint`).  They are the same for all
        samples.
    n_jobs : int, default=None
        Number of threads.
    time_limit : float, default=None
        Seconds for each row of costs, after which an error is raised.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.
    variable_names : list of str, default=None
        One name for each decision variable, for example those of the columns of a model.

    Examples
    --------
    >>> from skspo import MixedInteger
    >>> MixedInteger(A_ub=[[2, 2, 2]], b_ub=[3], bounds=(0, 1), sense="max").argmin([[3.0, 2.0, 1.0]])
    array([[1., 0., 0.]])

    The last decision may be a fraction, and the constraints are those of :func:`scipy.optimize.milp`:

    >>> from scipy.optimize import Bounds, LinearConstraint
    >>> limit = LinearConstraint([[2, 2, 2]], ub=3)
    >>> region = MixedInteger(constraints=limit, bounds=Bounds(0, 1), integrality=[1, 1, 0], sense="max")
    >>> region.argmin([[3.0, 2.0, 1.0]])
    array([[1. , 0. , 0.5]])
    """

    def __init__(
        self,
        A_ub: Matrix | None = None,
        b_ub: ArrayLike | None = None,
        A_eq: Matrix | None = None,
        b_eq: ArrayLike | None = None,
        bounds: BoundsLike = (0, None),
        integrality: ArrayLike = 1,
        *,
        constraints: ConstraintsLike = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        sense: str = "min",
        cost_bounds: CostBounds = None,
        variable_names: Names = None,
    ) -> None:
        shared: Any = {"constraints": constraints, "n_jobs": n_jobs, "sense": sense, "cost_bounds": cost_bounds}
        ConstrainedRegion.__init__(self, A_ub, b_ub, A_eq, b_eq, bounds, **shared, variable_names=variable_names)
        self.integrality = integrality
        self.time_limit = time_limit

    @property
    def n_dim(self) -> int | None:
        """Number of columns of the matrices, or length of a list; None if there are neither."""
        d = super().n_dim
        return np.size(self.integrality) if d is None and np.ndim(self.integrality) else d

    @property
    def _is_polyhedron(self) -> bool:
        return False

    def _prepare(self, d: int) -> _Constraints:
        form = self._form(d)
        kinds = np.asarray(1 if self.integrality is None else self.integrality)
        if kinds.shape not in ((), (d,)):
            raise ValueError(
                f"MixedInteger: integrality must be a number or have shape ({d},), got shape {kinds.shape}."
            )
        if not np.isin(kinds, (0, 1)).all():
            raise ValueError(
                "MixedInteger: integrality must be 0 (continuous) or 1 (integer) for each decision; semi-continuous "
                "decisions (2 and 3) are not supported; model them with an extra binary decision."
            )
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, numbers.Real) and limit > 0):
            raise ValueError(f"MixedInteger: time_limit must be a positive number or None, got {shown(limit)}.")
        integers = np.array(np.broadcast_to(kinds == 1, (d,)))
        check_bounded(form, self._names(d))
        if integers.any():
            # The linear relaxation is feasible; check that it contains an integer point.
            with rows_named(lambda _: "costs of zero"):
                solve_rows(form, np.zeros((1, d)), integrality=integers, time_limit=self.time_limit)
        return _Constraints(form, integers)

    def _all_integers(self, d: int) -> bool:
        integers = self._data(d).integers
        return integers is not None and bool(integers.all())

    def _argmin(self, C: np.ndarray, data: _Constraints) -> np.ndarray:
        if (points := self._points(C.shape[1])) is not None:
            return points.argmin(C, data.rows)
        options: Any = {"integrality": data.integers, "n_jobs": self.n_jobs, "time_limit": self.time_limit}
        return solve_rows(data.form, C, rows=data.rows, **options)

    def relaxation(self) -> Polyhedron:
        """Return the polyhedron of the same constraints, without integrality."""
        params = self.get_params(deep=False)
        return self._with_same_rows(Polyhedron(**{name: params[name] for name in Polyhedron._get_param_names()}))

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal rows E with E w constant: given equalities, and given bounds that are equal in all samples."""
        d = self.resolve_dim(n_dim)
        if has_hull(self):
            return super().equalities(d)
        form = self._constraints(d)
        low, high = self._rounded(form.lower, form.upper)
        return fixed_directions(form.A_eq, np.equal(low, high).reshape(-1, d).all(axis=0))

    def _rounded(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the relaxation, those of integers rounded to integers."""
        integers = self._data(low.shape[-1]).integers
        return np.where(integers, np.ceil(low - SOLVER), low), np.where(integers, np.floor(high + SOLVER), high)


class _KnapsackData(NamedTuple):
    form: InequalityForm  # the linear relaxation; for integer=True without the items that never fit
    method: str  # "all", "table", "search", "ratio" or "linear"
    weights: np.ndarray  # (m, d); for "table" integers without a common factor, only rows that can bind
    capacity: np.ndarray  # (1, m) or (n, m)
    rows: Mapping[str, np.ndarray] = NOTHING  # vectors of the form that vary by sample
    available: np.ndarray | None = None  # (n, d); None means all


class Knapsack(IntegerRegion):
    r"""Fill a knapsack, :math:`\{0 \le w \le 1, \; a^\top w \le b\}`, with whole items (default) or parts of them.

    Whole items with integer weights are packed by dynamic programming, for all rows at once, unless capacities are
    very large.  Fractional items with one capacity are packed in the order of value per weight.  Otherwise all packings
    are listed if there are at most 100,000, or HiGHS solves a mixed-integer or linear program for each row.

    Parameters
    ----------
    weights : array-like of shape (d,) or (m, d)
        Nonnegative weights a of the items, in one or several resources.
    capacity : float or array-like of shape (m,)
        How much of each resource there is, b.  It may vary by sample, with ``region_params={"capacity": ...}`` in the
        methods of an estimator, and so may the items: ``region_params={"available": ...}``, a boolean array of shape
        (n_samples, d).
    integer : bool, default=True
        Whether items are taken whole.
    n_jobs : int, default=None
        Number of threads; used only with HiGHS.
    sense : {"min", "max"}, default="max"
        Whether the predicted numbers are costs or values.  All other regions have the default "min".
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Examples
    --------
    >>> from skspo import Knapsack
    >>> Knapsack([3, 4, 5], 8).argmin([[3.0, 4.0, 6.0]])
    array([[1., 0., 1.]])
    >>> Knapsack([3, 4, 5], 8, integer=False).argmin([[3.0, 4.1, 6.0]])
    array([[0.  , 0.75, 1.  ]])
    """

    def __init__(
        self,
        weights: ArrayLike,
        capacity: ArrayLike,
        *,
        integer: bool = True,
        n_jobs: int | None = None,
        sense: str = "max",
        cost_bounds: CostBounds = None,
    ) -> None:
        self.weights = weights
        self.capacity = capacity
        self.integer = integer
        self.n_jobs = n_jobs
        self.sense = sense
        self.cost_bounds = cost_bounds

    @property
    def n_dim(self) -> int | None:
        """Number of items."""
        shape = np.shape(self.weights)
        return shape[-1] if shape else None

    @property
    def oracle_is_solver(self) -> bool:
        """True if HiGHS is needed: neither dynamic programming nor sorting is possible."""
        return self._data(self.resolve_dim()).method in ("search", "linear") and super().oracle_is_solver

    def _prepare(self, d: int) -> _KnapsackData:
        weights = read_numbers("Knapsack: weights", self.weights)
        if weights.ndim not in (1, 2):
            raise ValueError(f"Knapsack: weights must have shape (d,) or (m, d), got shape {weights.shape}.")
        weights = np.atleast_2d(weights)
        if not isinstance(self.integer, bool | np.bool_):
            raise TypeError(f"Knapsack: integer must be True or False, got {shown(self.integer)}.")
        m = weights.shape[0]
        capacity = read_numbers("Knapsack: capacity", self.capacity)
        if capacity.shape not in ((), (m,)):
            raise ValueError(
                f"Knapsack: capacity must be a number or have shape ({m},), one for each row of weights, "
                f"got shape {capacity.shape}."
            )
        capacity = np.array(np.broadcast_to(capacity, (m,)))
        if not np.isfinite(weights).all() or not np.isfinite(capacity).all():
            raise ValueError(
                "Knapsack: weights and capacity must be finite numbers. Leave out items that never fit and resources "
                "that never run out."
            )
        if (weights < 0).any():
            raise ValueError(
                f"Knapsack: weights must be nonnegative, got {weights.min()}. "
                "MixedInteger and Polyhedron accept constraints of any sign."
            )
        if (capacity < 0).any():
            raise InfeasibleRegionError(
                f"Knapsack: the region is empty, the capacity {capacity.min()} is negative; it must be at least 0."
            )
        room = capacity * (1.0 + ROUNDING)  # see _whole_numbers
        fits = (weights <= room[:, None]).all(axis=0)
        upper = fits.astype(np.float64) if self.integer else 1.0
        form = InequalityForm.build(d, A_ub=weights, b_ub=capacity, upper=upper)
        if (weights.sum(axis=1) <= room).all():
            return _KnapsackData(form, "all", weights, capacity[None])
        return _KnapsackData(form, *self._method(weights, capacity[None]))

    def _method(self, weights: np.ndarray, capacity: np.ndarray) -> tuple[str, np.ndarray, np.ndarray]:
        """How to pack for capacities (n, m), and what that needs."""
        if not self.integer:
            return "ratio" if len(weights) == 1 else "linear", weights, capacity
        table = _whole_numbers(weights, capacity)
        return ("search", weights, capacity) if table is None else ("table", *table)

    def _argmin(self, C: np.ndarray, data: _KnapsackData) -> np.ndarray:
        if data.available is not None:
            C = np.where(data.available, C, 0.0)  # items without value are not taken
        if data.method == "all":
            return (C < 0).astype(np.float64)
        if data.method == "table":
            return _pack_whole(C, data.weights, data.capacity)
        if data.method == "ratio":
            return _pack_fractions(C, data.weights[0], data.capacity)
        if (points := self._points(C.shape[1])) is not None:
            W = points.argmin(C, self._constraints(C.shape[1]).varying())
        else:
            integers = np.ones(C.shape[1], dtype=bool) if data.method == "search" else None
            W = solve_rows(data.form, C, integrality=integers, n_jobs=self.n_jobs, rows=data.rows)
        # Remove items without value: the decision stays feasible and its value the same.
        return np.where(C < 0, W, 0.0)

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """The capacity may vary by sample, and items may be unavailable."""
        return {"capacity": self._data(d).form.b_ub.shape, "available": (d,)}

    def _read_rows(self, rows: dict[str, np.ndarray], data: _KnapsackData, d: int) -> dict[str, np.ndarray]:
        form = data.form
        capacity = rows_like(rows, "capacity", form.b_ub, form.b_ub.shape)
        low, text = capacity.min(axis=1, initial=0.0), "Knapsack: the region of {row} is empty, the capacity"
        refuse_rows(low < 0, InfeasibleRegionError, lambda row: f"{text} {low[row]} is negative.")
        # A capacity above the weight of all items makes no difference, but the table would grow with it.
        total = np.asarray(form.A_ub.sum(axis=1)).ravel()
        return rows | {"capacity": np.minimum(capacity, total)}

    def _with_values(self, data: _KnapsackData, values: dict[str, np.ndarray]) -> _KnapsackData:
        # The upper bounds of the plain region exclude items that do not fit there but may fit here.
        form = replace(data.form, upper=np.ones(data.form.upper.size))
        method = self._method(form.A_ub.toarray(), values["capacity"])
        return _KnapsackData(form, *method, {"b_ub": values["capacity"]}, values.get("available"))

    @property
    def _is_polyhedron(self) -> bool:
        return not self.integer

    def _constraints(self, d: int) -> InequalityForm:
        data = self._data(d)
        form = replace(data.form, **data.rows)
        return form if data.available is None else replace(form, upper=data.available.astype(float))

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        return list_selected(W, names) if self.integer else super()._describe(W, names)

    @available_if(lambda region: not region.integer)
    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return {0 <= w <= 1, weights.w <= capacity}, without resources that never run out."""
        return self._tight(self._constraints(self.resolve_dim(n_dim)))


# scikit-learn prints parameters that differ from the default of the signature.  No other region maximizes by default:
# its sense is always printed.
_signature = inspect.signature(Knapsack.__init__)
vars(Knapsack.__init__)["__signature__"] = _signature.replace(
    parameters=[
        parameter.replace(default=parameter.empty) if name == "sense" else parameter
        for name, parameter in _signature.parameters.items()
    ]
)


def _whole_numbers(weights: np.ndarray, capacity: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Integer weights (m, d) without a common factor and capacities (n, m), of the resources that can be binding.

    None if weights are not integers, or if the table of dynamic programming would be too large.
    """
    if not (weights.max(initial=0.0) < 2**53 and (weights == np.floor(weights)).all()):
        return None
    # Capacities are often computed, as 0.1 * total: ignore rounding errors below a sum of weights.
    room = capacity * (1.0 + ROUNDING)
    binding = (weights.sum(axis=1) > room).any(axis=0)
    whole = weights[binding].astype(np.int64)
    divisors = np.gcd.reduce(whole, axis=1)
    limits = np.floor(room[:, binding] / divisors)
    if weights.shape[1] * np.prod(limits.max(axis=0, initial=0.0) + 1.0) > MAX_CELLS:
        return None
    return whole // divisors[:, None], limits.astype(np.int64)


def _pack_whole(C: np.ndarray, weights: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Whole items with integer weights: dynamic programming over items and capacities, last item first.

    best[r] is the value of the best choice among items j, ..., d - 1 that weighs at most r (one index per resource),
    take[j, r] whether it contains item j.  Items are then read in order, so that of equal choices the one with the
    lowest index is taken.  The table is built for the largest capacity; each row is read from its own capacity on,
    shape (n, m) or (1, m).
    """
    n, d = C.shape
    largest = capacity.max(axis=0, initial=0)
    shape = tuple(int(r) + 1 for r in largest)
    cells = int(np.prod(shape))
    stride = cells // np.cumprod(shape, dtype=np.int64)  # how far apart in memory r and r + 1 are, for each resource
    start = np.broadcast_to(capacity @ stride, (n,))
    W = np.zeros((n, d))
    # The table of choices has at most 16 times as many bytes as that of a row has cells, 64 MB.
    size = min(max(min(BLOCK_NUMBERS // cells, n), 16), 16 * MAX_CELLS // (d * cells))
    for a in range(0, n, size):
        check_time()
        # Items without value get minus infinity and are never taken.
        values = np.where(C[a : a + size] < 0, -C[a : a + size], -np.inf).T.copy()
        rows = np.arange(values.shape[1])
        best = np.zeros((*shape, rows.size))
        with_item = np.empty_like(best)
        take = np.zeros((d, *shape, rows.size), dtype=bool)
        for j in reversed(range(d)):
            if (weights[:, j] <= largest).all():
                before = tuple(slice(0, k - int(w)) for k, w in zip(shape, weights[:, j], strict=True))
                after = tuple(slice(int(w), None) for w in weights[:, j])
                np.add(best[before], values[j], out=with_item[after])
                np.greater_equal(with_item[after], best[after], out=take[j][after])
                np.maximum(with_item[after], best[after], out=best[after])
        take = take.reshape(d, cells, rows.size)
        room = start[a : a + size].copy()
        for j in range(d):
            taken = take[j, room, rows]
            W[a + rows, j] = taken
            room -= np.where(taken, int(stride @ weights[:, j]), 0)
    return W


def _pack_fractions(C: np.ndarray, weights: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Fractional items: the best value per weight first, until the capacity is reached."""
    free = weights == 0
    with np.errstate(over="ignore"):
        # Items without weight come first; items without value are removed at the end.
        ratio = np.where(free, -np.inf, C / np.where(free, 1.0, weights))
    ratio = np.where(C < 0, ratio, np.inf)
    order = np.argsort(ratio, axis=1, kind="stable")
    sorted_weights = np.where(np.take_along_axis(C < 0, order, axis=1), weights[order], 0.0)
    before = np.cumsum(sorted_weights, axis=1) - sorted_weights
    share = np.clip((capacity - before) / np.where(sorted_weights > 0, sorted_weights, 1.0), 0.0, 1.0)
    share[sorted_weights == 0] = 1.0
    W = np.empty_like(C)
    np.put_along_axis(W, order, share, axis=1)
    return np.where(C < 0, W, 0.0)
