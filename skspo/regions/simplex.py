"""Closed-form polyhedra: Simplex, Box, TopK."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._utils.errors import InfeasibleRegionError, UnboundedRegionError
from .._utils.shown import shown
from ._cost_bounds import CostBounds
from ._names import list_selected, ones_of
from ._rows import check_available, forbid, refuse_rows, rows_like
from .base import Region
from .polyhedral import InequalityForm, PolyhedralRegion
from .polyhedron import read_numbers

#: coordinates of a box that are trained together; more blocks would take longer, because every one has costs of its own
BLOCK = 20


class _Alternatives(NamedTuple):
    available: np.ndarray | None = None  # (n, d); None means all


class Simplex(PolyhedralRegion):
    r"""Unit simplex :math:`\{w \ge 0, \; \sum_j w_j = 1\}`: choose one of d alternatives.

    Not all alternatives may be there for every sample: ``region_params={"available": ...}``, a boolean array of shape
    (n_samples, d), in the methods of an estimator.

    Parameters
    ----------
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Examples
    --------
    >>> from skspo import Simplex
    >>> Simplex().argmin([[3.0, 1.0, 2.0]])
    array([[0., 1., 0.]])
    """

    def __init__(self, *, sense: str = "min", cost_bounds: CostBounds = None) -> None:
        self.sense = sense
        self.cost_bounds = cost_bounds

    def _prepare(self, d: int) -> _Alternatives:
        return _Alternatives()

    def _argmin(self, C: np.ndarray, data: _Alternatives) -> np.ndarray:
        W = np.zeros_like(C)
        W[np.arange(C.shape[0]), forbid(C, data.available).argmin(axis=1)] = 1.0
        return W

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Alternatives may be unavailable."""
        return {"available": (d,)}

    def _read_rows(self, rows: dict[str, np.ndarray], data: _Alternatives, d: int) -> dict[str, np.ndarray]:
        check_available("Simplex", rows["available"], 1, "it needs")
        return rows

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        ones = ones_of(W)
        if ones is None or any(own.size != 1 for own in ones):  # not what the oracle returns
            return super()._describe(W, names)
        return [str(names[own[0]]) for own in ones]

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        C = forbid(C, self._data(C.shape[1]).available)
        return self._argmin(np.where(C == C.min(axis=1, keepdims=True), -C_true, np.inf), _Alternatives())

    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return {w >= 0, sum w = 1}."""
        d = self.resolve_dim(n_dim)
        available = self._data(d).available
        upper = np.inf if available is None else np.where(available, np.inf, 0.0)
        return InequalityForm.build(d, A_eq=np.ones((1, d)), b_eq=[1.0], upper=upper)

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Clip to what is available and to the nonnegative orthant, and normalize."""
        available = self._data(W.shape[1]).available
        W, equal = np.maximum(W, 0.0), 1.0 / W.shape[1]
        if available is not None:
            W, equal = np.where(available, W, 0.0), available / available.sum(axis=1, keepdims=True)
        total = W.sum(axis=1, keepdims=True)
        return np.where(total > 0, W / np.where(total > 0, total, 1.0), equal)


class _Bounds(NamedTuple):
    lower: np.ndarray  # (d,) or (n, d)
    upper: np.ndarray


class Box(PolyhedralRegion):
    r"""Box :math:`\{l \le w \le u\}`: d independent decisions.

    Parameters
    ----------
    lower, upper : float or array-like of shape (d,), default=0.0 and 1.0
        Finite bounds l and u.  Two numbers make a region that exists in every dimension.  Both may vary by sample, with
        ``region_params={"upper": ...}`` in the methods of an estimator.  Decisions that are not available,
        ``region_params={"available": ...}``, are 0.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Examples
    --------
    >>> from skspo import Box
    >>> Box(-1, 1).argmin([[3.0, -1.0, 0.0]])
    array([[-1.,  1., -1.]])
    """

    def __init__(
        self, lower: ArrayLike = 0.0, upper: ArrayLike = 1.0, *, sense: str = "min", cost_bounds: CostBounds = None
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.sense = sense
        self.cost_bounds = cost_bounds

    @property
    def n_dim(self) -> int | None:
        """Length of the bounds; None if both are numbers."""
        sizes = [np.size(b) for b in (self.lower, self.upper) if np.ndim(b)]
        return max(sizes) if sizes else None

    def _prepare(self, d: int) -> _Bounds:
        bounds = []
        for name in ("lower", "upper"):
            value = read_numbers(f"Box: {name}", getattr(self, name))
            if value.ndim > 1 or (value.ndim == 1 and value.size != d):
                raise ValueError(f"Box: {name} must be a number or have shape ({d},), got shape {value.shape}.")
            if not np.isfinite(value).all():
                raise UnboundedRegionError(
                    f"Box: {name} must be finite, otherwise the region is unbounded; got {shown(value)}."
                )
            bounds.append(np.array(np.broadcast_to(value, (d,))))
        if (bounds[0] > bounds[1]).any():
            j = int(np.argmax(bounds[0] > bounds[1]))
            raise InfeasibleRegionError(
                f"Box: the region is empty, lower[{j}] = {bounds[0][j]} is above upper[{j}] = {bounds[1][j]}."
            )
        return _Bounds(*bounds)

    def _argmin(self, C: np.ndarray, data: _Bounds) -> np.ndarray:
        return np.where(C < 0, data.upper, data.lower)

    def blocks(self, n_dim: int | None = None) -> list[tuple[np.ndarray, Region]]:
        """Columns and boxes whose product this is: a few at a time, because every block has costs of its own."""
        d = self.resolve_dim(n_dim)
        lower, upper = self._data(d)
        parts = np.array_split(np.arange(d), -(-d // BLOCK))
        return [(part, Box(lower[part], upper[part], sense=self.sense)) for part in parts]

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Both bounds may vary by sample, and decisions may be unavailable."""
        return {"lower": (d,), "upper": (d,), "available": (d,)}

    def _read_rows(self, rows: dict[str, np.ndarray], data: _Bounds, d: int) -> dict[str, np.ndarray]:
        available = rows_like(rows, "available", True, (d,))
        lower = np.where(available, rows_like(rows, "lower", data.lower, (d,)), 0.0)
        upper = np.where(available, rows_like(rows, "upper", data.upper, (d,)), 0.0)
        text = "Box: the region of {row} is empty, a lower bound is above the upper one."
        refuse_rows((lower > upper).any(axis=1), InfeasibleRegionError, lambda _: text)
        return {"lower": lower, "upper": upper}

    def _own_bounds(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        return self._data(d)

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        return self.solve_min(np.where(C == 0, -C_true, C))

    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return {lower <= w <= upper}."""
        d = self.resolve_dim(n_dim)
        lower, upper = self._data(d)
        return InequalityForm.build(d, lower=lower, upper=upper)

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Unit vectors of the coordinates that are fixed, in every sample."""
        d = self.resolve_dim(n_dim)
        lower, upper = self._data(d)
        return np.eye(d)[(lower == upper).reshape(-1, d).all(axis=0)]

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Clip to the bounds."""
        return np.clip(W, *self._data(W.shape[1]))


class _Choices(NamedTuple):
    k: np.ndarray  # () or (n,)
    available: np.ndarray | None = None  # (n, d); None means all


class TopK(PolyhedralRegion):
    r"""Choose exactly k of d, :math:`\{0 \le w \le 1, \; \sum_j w_j = k\}`, or at most k.

    Parameters
    ----------
    k : int, default=1
        How many to choose, between 0 and d.  It may vary by sample, with ``region_params={"k": ...}`` in the methods of
        an estimator, and so may what there is to choose from: ``region_params={"available": ...}``, a boolean array
        of shape (n_samples, d).
    at_most : bool, default=False
        Whether fewer may be chosen: those whose costs are negative, or whose values are positive with ``sense="max"``.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.

    Examples
    --------
    >>> from skspo import TopK
    >>> TopK(2, sense="max").argmin([[3.0, 1.0, 2.0, 2.0]])
    array([[1., 0., 1., 0.]])
    >>> TopK(2, at_most=True, sense="max").argmin([[3.0, -1.0, -2.0, 0.0]])
    array([[1., 0., 0., 0.]])
    """

    def __init__(
        self, k: int = 1, *, at_most: bool = False, sense: str = "min", cost_bounds: CostBounds = None
    ) -> None:
        self.k = k
        self.at_most = at_most
        self.sense = sense
        self.cost_bounds = cost_bounds

    def _prepare(self, d: int) -> _Choices:
        k = self.k
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 0 <= k <= d:
            raise ValueError(f"TopK: k must be an integer between 0 and the number of costs {d}, got {shown(k)}.")
        if not isinstance(self.at_most, bool | np.bool_):
            raise TypeError(f"TopK: at_most must be True or False, got {shown(self.at_most)}.")
        return _Choices(np.array(int(k)))

    def _argmin(self, C: np.ndarray, data: _Choices) -> np.ndarray:
        C, k = forbid(C, data.available), data.k
        last = np.maximum(k, 1) - 1
        ordered = np.partition(C, np.unique(last), axis=1)
        # The largest cost that is chosen.
        highest = np.where(k > 0, ordered[:, last] if k.ndim == 0 else ordered[np.arange(len(C)), last], -np.inf)
        tied = C == highest[:, None]
        W = np.where(C <= highest[:, None], 1.0, 0.0)
        surplus = W.sum(axis=1) - k
        rows = np.flatnonzero(surplus > 0)
        if rows.size:
            # Among equal costs the lowest indices are chosen.
            places = tied[rows].sum(axis=1) - surplus[rows]
            W[rows] = np.where(tied[rows] & (np.cumsum(tied[rows], axis=1) > places[:, None]), 0.0, W[rows])
        return np.where(C < 0, W, 0.0) if self.at_most else W

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """How many to choose, and of what."""
        return {"k": (), "available": (d,)}

    def _read_rows(self, rows: dict[str, np.ndarray], data: _Choices, d: int) -> dict[str, np.ndarray]:
        k = rows_like(rows, "k", data.k, ())
        text = f"TopK: k must be an integer between 0 and the number of costs {d}, got"
        wrong = (k != np.floor(k)) | (k < 0) | (k > d)
        refuse_rows(wrong, ValueError, lambda row: f"{text} {k[row]:g} in {{row}}.")
        available = rows_like(rows, "available", True, (d,))
        if not self.at_most:
            check_available("TopK", available, k, "k is")
        return {"k": k.astype(np.int64), "available": available}

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        return list_selected(W, names)

    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        k, available = self._data(C.shape[1])
        C, W = forbid(C, available), np.zeros_like(C)
        first = np.broadcast_to(np.arange(C.shape[1]) < k[..., None], C.shape)
        np.put_along_axis(W, np.lexsort((-C_true, C), axis=1), first.astype(float), axis=1)
        return np.where((C < 0) | ((C == 0) & (C_true > 0)), W, 0.0) if self.at_most else W

    def inequality_form(self, n_dim: int | None = None) -> InequalityForm:
        """Return {0 <= w <= 1, sum w = k}, or at most k."""
        d = self.resolve_dim(n_dim)
        k, available = self._data(d)
        upper = 1.0 if available is None else available.astype(float)
        total, number = np.ones((1, d)), k[..., None].astype(float)
        if self.at_most:
            return self._tight(InequalityForm.build(d, total, number, upper=upper))
        return InequalityForm.build(d, A_eq=total, b_eq=number, upper=upper)
