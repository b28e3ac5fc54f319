"""Bounds that predicted costs are clipped to before a decision is made with them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

#: (lower, upper), numbers or one number for each decision variable; None means no bound
CostBounds: TypeAlias = "tuple[ArrayLike | None, ArrayLike | None] | str | None"

#: validated bounds of shape (d,), for costs to be minimized
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
    """Clip costs to be minimized."""
    result: Any = C if limits is None else np.clip(C, *limits)
    return result
