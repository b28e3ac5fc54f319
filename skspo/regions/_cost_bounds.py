"""Bounds that predicted costs are clipped to before a decision is made with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._names import check_variables

#: (lower, upper), numbers or one number for each decision variable; None means no bound
CostBounds: TypeAlias = "tuple[ArrayLike | None, ArrayLike | None] | str | None"

#: validated bounds of shape (d,), for costs to be minimised
Limits: TypeAlias = tuple[np.ndarray, np.ndarray]


def read_bounds(given: CostBounds, d: int, sense: str, label: str) -> Limits | None:
    """Validate ``cost_bounds`` for ``d`` decision variables; None if there is no bound."""
    what = f"{label}: cost_bounds"
    if given is None:
        return None
    if isinstance(given, (str, dict)) or not hasattr(given, "__len__") or len(given) != 2:
        raise ValueError(
            f"{what} must be None or a pair (lower, upper) of numbers, or of arrays of shape ({d},); None in the pair "
            f"means no bound on that side. Got {given if isinstance(given, str) else type(given).__name__}."
        )
    ends = []
    for name, value, missing in zip(("lower", "upper"), given, (-np.inf, np.inf), strict=True):
        try:
            end = np.asarray(missing if value is None else value, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{what}: {name} must be a number, an array of numbers or None.") from None
        if end.shape not in ((), (d,)):
            raise ValueError(
                f"{what}: {name} must be a number or have shape ({d},), one for each decision variable; got shape "
                f"{end.shape}."
            )
        if np.isnan(end).any() or (end == -missing).any():
            raise ValueError(f"{what}: {name} must not contain NaN or {-missing:g}; None means no bound.")
        ends.append(np.broadcast_to(end, d))
    lower, upper = ends
    if (lower > upper).any():
        j = int(np.argmax(lower > upper))
        raise ValueError(f"{what}: lower exceeds upper, {lower[j]:g} > {upper[j]:g} for decision variable {j}.")
    return (-upper, -lower) if sense == "max" else (lower, upper)


def clip(C: np.ndarray, limits: Limits | None) -> np.ndarray:
    """Clip costs to be minimised."""
    result: Any = C if limits is None else np.clip(C, *limits)
    return result


class ClipsPredictions:
    """What every region does when a prediction becomes a decision.

    A region whose decisions contain those of others overrides ``_decide_min``, ``_decide_worst`` and ``_clips``.
    """

    #: (lower, upper), in the user's sense: ``decide`` clips costs to them; None if costs may be anything
    cost_bounds: CostBounds = None

    if TYPE_CHECKING:
        sense: str

        @property
        def label(self) -> str: ...

        worst_argmin: Callable[[np.ndarray, np.ndarray], np.ndarray]

        def solve_min(self, C: np.ndarray) -> np.ndarray: ...

        def _of_rows(self, C: ArrayLike, solve: Callable[[np.ndarray], np.ndarray]) -> np.ndarray: ...

    def decide(self, C: ArrayLike) -> np.ndarray:
        """Decision for each row of predicted costs, which are clipped to ``cost_bounds`` first.

        Estimators and metrics decide with this method.  Training uses ``argmin``, which does not clip.

        Parameters
        ----------
        C : array-like of shape (n_samples, d) or (d,)
            Predicted costs (``sense="min"``) or values (``sense="max"``).

        Returns
        -------
        W : ndarray of the same shape
            The decision of ``argmin`` for the clipped costs.

        Examples
        --------
        Going back and forth between two places would pay, if the prediction below zero were true:

        >>> from skspo import ShortestPath
        >>> streets = [("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")]
        >>> region = ShortestPath(streets, "a", "c", cost_bounds=(0.1, None))
        >>> region.argmin([1.0, -2.0, 1.0, 1.0]), region.decide([1.0, -2.0, 1.0, 1.0])
        (array([1., 1., 1., 0.]), array([0., 0., 1., 0.]))
        """
        return self._of_rows(C, self._decide_min)

    def _decide_min(self, C: np.ndarray) -> np.ndarray:
        """``decide`` for an already validated float64 array of costs to be minimised."""
        return self.solve_min(clip(C, self._limits(C.shape[1])))

    def _decide_worst(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """``worst_argmin`` for predicted costs ``C``, which are clipped to ``cost_bounds`` first."""
        return self.worst_argmin(clip(C, self._limits(C.shape[1])), C_true)

    def _limits(self, d: int) -> Limits | None:
        """Validated ``cost_bounds`` of ``d`` costs to be minimised."""
        if isinstance(self.cost_bounds, (tuple, list)):  # ends that are series may have names
            check_variables(self, **{f"cost_bounds[{i}]": end for i, end in enumerate(self.cost_bounds)})  # type: ignore[arg-type]
        return read_bounds(self.cost_bounds, d, self.sense, self.label)

    def _clips(self, d: int) -> bool:
        """Whether ``decide`` clips some of ``d`` costs."""
        return self._limits(d) is not None

    def _learn_bounds(self, C: np.ndarray, mean: np.ndarray) -> Self:
        """Region whose ``cost_bounds`` are numbers, if they are to be learned from true costs (``cost_bounds="auto"``).

        ``C`` has the true costs, in the user's sense, and ``mean`` their means over samples.
        """
        return self

    def _check_true_costs(self, C: np.ndarray) -> None:
        """Warn about true costs, to be minimised, that the region is not meant for."""
