"""Scaling by powers of two, and limits on the size of numbers.

Doubles end at 1.8e308 and lose digits below 2.2e-308.  Solvers see scaled features and costs, so that almost any size
is allowed.  Coefficients, predictions and losses are in the user's units; if those come close to the limits of doubles,
no fit is possible, and the error says which units to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .._training.design import Standardization

#: limits on features, costs and costs per feature, such that sums and products do not overflow
SMALLEST, LARGEST = 1e-280, 1e280

#: limits on penalties and offsets in units of the typical cost: smaller ones have no effect, and larger ones leave
#: nothing to fit; the squares of both are finite
NEGLIGIBLE, OVERWHELMING = 1e-100, 1e50

#: a larger relative difference is no rounding error, whatever the number of terms
CLEAR = 1e-12


def largest(array: np.ndarray) -> float:
    """Largest absolute value; 0 of an empty array."""
    return float(max(array.max(initial=0.0), -array.min(initial=0.0)))


def powers_of_two(sizes: np.ndarray) -> np.ndarray:
    """Powers of two of about these sizes; 1 for 0."""
    return np.where(sizes > 0, np.ldexp(1.0, np.frexp(sizes)[1] - 1), 1.0)


def power_of_two(size: float) -> float:
    """Largest power of two that is at most ``size``; 1 for 0.  Division by it is exact."""
    return float(np.ldexp(1.0, np.frexp(size)[1] - 1)) if size > 0 else 1.0


def relative_weight(weight: np.ndarray | None) -> np.ndarray | None:
    """Weights in units of the largest, so that their sum is finite; negligible ones become zero."""
    if weight is None:
        return None
    weight = weight / power_of_two(largest(weight))
    return np.where(weight < SMALLEST, 0.0, weight)


def check_largest(**arrays: np.ndarray | None) -> None:
    """Raise an error if sums and products of the values of an array may overflow."""
    for name, array in arrays.items():
        size = 0.0 if array is None else largest(array)
        if size > LARGEST:
            raise ValueError(
                f"{name} has values of size {size:.1e}. Beyond {LARGEST:g} their sums and products overflow: use "
                "larger units."
            )


def check_units(standardization: Standardization, cost_scale: float) -> None:
    """Raise an error if coefficients, which are costs per feature, cannot be represented."""
    if not SMALLEST <= cost_scale <= LARGEST:
        raise ValueError(
            f"The costs are of size {cost_scale:.1e}. Outside {SMALLEST:g} to {LARGEST:g} doubles lose their digits: "
            "use other units of cost."
        )
    scales = standardization.scale[standardization.used]
    for scale in (scales.min(initial=1.0), scales.max(initial=1.0)):
        ratio = np.log10(cost_scale) - np.log10(scale)
        if not SMALLEST <= scale <= LARGEST or not np.log10(SMALLEST) <= ratio <= np.log10(LARGEST):
            raise ValueError(
                f"A feature varies by {scale:.1e} and costs are of size {cost_scale:.1e}: coefficients, which are "
                "costs per feature, would leave the range of doubles. Rescale the features, for example with "
                "StandardScaler, or the costs."
            )


def check_offset_size(offset: np.ndarray | None) -> None:
    """Raise an error if the offset, in units of the typical cost, is so large that the rest is lost to rounding."""
    if offset is not None and largest(offset) > OVERWHELMING:
        raise ValueError(
            f"offset is {largest(offset):.1e} times the typical cost; the rest is lost to rounding. Check its units."
        )
