"""Losses of a prediction: value and gradient, batched over samples.

Conventions
-----------
    C (n, d) true costs     C_hat (n, d) predicted costs     W = w*(C) (n, d) optimal decisions, computed once

    SPO    l(c_hat, c)  = c.w*(c_hat) - z*(c)
    SPO+   l+(c_hat, c) = support_S(c - 2 c_hat) + 2 c_hat.w*(c) - z*(c) = (2 c_hat - c).(w*(c) - w*(2 c_hat - c))
           subgradient in c_hat:  2 (w*(c) - w*(2 c_hat - c))

The public methods take costs or values in the user's sense.  The ``*_min`` methods, called by the objective and the
solvers, take costs to be minimized: the sign of ``sense="max"`` has been applied already.
"""

from __future__ import annotations

from copy import copy
from numbers import Number
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_non_negative

from ._utils.frames import check_columns, check_index, check_values, column_names
from .regions._names import known_names
from .regions.base import Region
from .regions.capabilities import Memory, has
from .regions.check import check_region
from .regions.simplex import Box


class Loss:
    """Base class of losses.  A loss depends on the region but not on the model.

    Parameters
    ----------
    region : Region or None
        None means the unit Box.
    """

    #: name of the loss, which solvers list in ``losses``
    name: str = ""

    #: whether the loss needs the optimal decisions
    needs_decisions: bool = True

    #: whether decisions prove a lower bound on the mean loss (see ``_training/objective.py``)
    has_dual_bound: bool = False

    #: whether the loss is continuous in the prediction; if not, rounding errors can change it by a lot
    continuous: bool = True

    def __init__(self, region: Region | None = None) -> None:
        self.region = region

    def on(self, region: Region | None) -> Self:
        """Return the same loss on another region, as an estimator needs it."""
        other = copy(self)
        other.region = region
        return other

    def value(self, C_true: ArrayLike, C_pred: ArrayLike, W_true: np.ndarray | None = None) -> np.ndarray:
        """Loss of each sample, shape (n_samples,)."""
        region, C, C_hat, W = self._check(C_true, C_pred, W_true)
        return self.value_min(region, region.to_min(C), region.to_min(C_hat), W)

    def gradient(self, C_true: ArrayLike, C_pred: ArrayLike, W_true: np.ndarray | None = None) -> np.ndarray:
        """(Sub)gradient of each sample's loss in its prediction, shape (n_samples, d)."""
        return self.value_gradient(C_true, C_pred, W_true)[1]

    def value_gradient(
        self, C_true: ArrayLike, C_pred: ArrayLike, W_true: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Value and gradient with one call of the oracle."""
        region, C, C_hat, W = self._check(C_true, C_pred, W_true)
        value, G = self.value_gradient_min(region, region.to_min(C), region.to_min(C_hat), W)
        return value, region.to_min(G)

    def absorb(self, C: np.ndarray, offset: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Costs and offset that give the same loss for the same W; without an offset if possible."""
        return C, offset

    def value_min(self, region: Region, C: np.ndarray, C_hat: np.ndarray, W: np.ndarray | None) -> np.ndarray:
        """Value of each sample, for costs to be minimized."""
        return self.value_gradient_min(region, C, C_hat, W)[0]

    def value_gradient_min(
        self, region: Region, C: np.ndarray, C_hat: np.ndarray, W: np.ndarray | None, memory: Memory | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Value and gradient of each sample, for costs to be minimized; ``memory`` is for ``Region.solve_min``."""
        raise NotImplementedError

    def _check(
        self, C_true: ArrayLike, C_pred: ArrayLike, W_true: np.ndarray | None
    ) -> tuple[Region, np.ndarray, np.ndarray, np.ndarray | None]:
        C, C_hat = check_costs(C_true, C_pred, self.region, may_miss=True)
        # Losses that do not need decisions need no region.
        region = check_region(self.region if self.needs_decisions else self.region or Box(), n_dim=C.shape[1])
        C = check_existing(C, region, name="y_true", names=column_names(C_true))[0]
        if W_true is not None:
            W_true = check_array(W_true, dtype=np.float64, input_name="W_true")
            if W_true.shape != C.shape:
                raise ValueError(
                    f"W_true, the optimal decisions for y_true, must have its shape {C.shape}, got {W_true.shape}."
                )
        elif self.needs_decisions:
            W_true = region.solve_min(region.to_min(C))
        return region, C, C_hat, W_true


def check_costs(
    C_true: ArrayLike, C_pred: ArrayLike, region: Region | None = None, *, may_miss: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return two finite float arrays of the same shape (n_samples, d); a vector becomes a single column.

    Names of data frames must be those of the region's variables, if it has any.  With ``may_miss``, true costs are not
    checked for NaN and infinity: ``check_existing`` does it, with the region.
    """
    given = {"y_true": C_true, "y_pred": C_pred}
    for name, value in given.items():
        check_values(name, value)
    check_columns(given, None, known_names(region, C_true, C_pred) if isinstance(region, Region) else None)
    check_index(**given)
    arrays = []
    for name, value in given.items():
        finite = not (may_miss and name == "y_true")
        arr = check_array(
            value, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_all_finite=finite, input_name=name
        )
        if arr.ndim > 2:
            raise ValueError(f"{name} must have shape (n_samples, n_costs), got {arr.shape}.")
        arrays.append(arr[:, None] if arr.ndim == 1 else arr)
    if arrays[0].shape != arrays[1].shape:
        raise ValueError(f"y_true and y_pred must have the same shape, got {arrays[0].shape} and {arrays[1].shape}.")
    return arrays[0], arrays[1]


def check_existing(
    C: np.ndarray, *regions: Region, name: str = "y", names: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Replace costs that no decision can use by 0; an error, with ``name`` and ``names``, if another is not finite.

    A cost exists if its decision variable can be nonzero in one of the regions of these samples.  The second result
    says which do; None if all do.
    """
    masks = [region.possible(*C.shape) for region in regions]
    given = [mask for mask in masks if mask is not None]
    possible = np.logical_or.reduce(given) if given and len(given) == len(masks) else None
    finite = np.isfinite(C) if possible is None else np.isfinite(C) | ~possible
    if not finite.all():
        row, column = (int(k) for k in np.argwhere(~finite)[0])
        number = int(finite.size - np.count_nonzero(finite))
        what = "NaN" if np.isnan(C[row, column]) else "infinity or a value too large for dtype('float64')"
        label = "" if names is None else f" ({names[column]!r})"
        more = f" (and in {number - 1} other places)" if number > 1 else ""
        raise ValueError(
            f"Input {name} contains {what} in row {row}, column {column}{label}{more}. A cost may be missing only "
            "where no decision can use it: an option that is not available (region_params), an edge on no path from "
            "source to target, a variable with the bounds 0 and 0. If costs were seen only for past decisions, train "
            "with PartialFeedbackRegressor and evaluate with estimated_cost."
        )
    return (C, None) if possible is None else (np.where(possible, C, 0.0), possible)


def check_weight(sample_weight: ArrayLike | None, X: ArrayLike) -> np.ndarray | None:
    """Return nonnegative finite weights, one per sample, not all zero; None stays None."""
    if sample_weight is None:
        return None
    n = X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n, sample_weight, dtype=np.float64)
    weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n},): one weight per sample.")
    check_non_negative(weight, "`sample_weight`")
    if not weight.any():
        raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
    return weight


def check_offset(offset: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return a finite offset of shape (n_samples, d), from one of that shape or (d,); None stays None."""
    if offset is None:
        return None
    n, d = shape
    known = check_array(
        np.atleast_1d(offset),
        dtype=np.float64,
        ensure_2d=False,
        allow_nd=True,
        ensure_min_samples=0,
        input_name="offset",
    )
    if known.shape == (n,) and d == 1:
        known = known[:, None]
    if known.shape not in ((n, d), (d,)):
        raise ValueError(
            f"offset, the known part of the costs, must have shape {(n, d)}, or ({d},) if it is the same for all "
            f"samples; got {known.shape}."
        )
    return np.array(np.broadcast_to(known, (n, d)))


class SPOPlusLoss(Loss):
    r"""SPO+ loss: the convex surrogate of the decision loss.

    .. math:: \ell_+(\hat c, c) = \max_{w \in S} \, (c - 2 \hat c)^\top w + 2 \hat c^\top w^*(c) - c^\top w^*(c)

    Its subgradient in the prediction is :math:`2 (w^*(c) - w^*(2 \hat c - c))`.

    Parameters
    ----------
    region : Region or None
        Feasible region; None means the unit Box.

    Examples
    --------
    >>> from skspo import Simplex, SPOPlusLoss
    >>> loss = SPOPlusLoss(Simplex())
    >>> loss.value([[1.0, 2.0]], [[2.0, 1.0]])
    array([3.])
    >>> loss.gradient([[1.0, 2.0]], [[2.0, 1.0]])
    array([[ 2., -2.]])
    """

    name = "SPO+"
    has_dual_bound = True

    def absorb(self, C: np.ndarray, offset: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        r"""Subtract twice the offset from the costs: the loss depends on 2 C_hat - C and W only."""
        return (C, None) if offset is None else (C - 2.0 * offset, None)

    def value_gradient_min(
        self, region: Region, C: np.ndarray, C_hat: np.ndarray, W: np.ndarray | None, memory: Memory | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Value and subgradient; the subgradient is twice the difference of two decisions."""
        # In place: allocating large arrays takes longer than the arithmetic.
        V = 2.0 * C_hat
        V -= C
        difference = W - region.solve_min(V, memory)
        value = np.einsum("ij,ij->i", V, difference)
        difference *= 2.0
        return value, difference


class SPOLoss(Loss):
    r"""SPO loss: the cost of the decision made with the prediction, minus the cost of the best decision.

    .. math:: \ell(\hat c, c) = c^\top w^*(\hat c) - c^\top w^*(c)

    Predictions are not clipped to the region's ``cost_bounds``; :func:`skspo.spo_loss` clips them.

    On polyhedra it is piecewise constant and has no useful gradient.  On regions with a ``derivative`` it has a
    gradient, except at predictions that cost the same for all decisions.

    Parameters
    ----------
    region : Region or None
        Feasible region; None means the unit Box.

    Examples
    --------
    >>> from skspo import Simplex, SPOLoss
    >>> SPOLoss(Simplex()).value([[1.0, 2.0]], [[2.0, 1.0]])
    array([1.])
    """

    name = "SPO"
    continuous = False

    def value_min(self, region: Region, C: np.ndarray, C_hat: np.ndarray, W: np.ndarray | None) -> np.ndarray:
        """Regret of the decision made with the prediction."""
        return np.einsum("ij,ij->i", C, region.solve_min(C_hat) - W)

    def value_gradient_min(
        self, region: Region, C: np.ndarray, C_hat: np.ndarray, W: np.ndarray | None, memory: Memory | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Value and gradient, for regions with a ``derivative``."""
        if not has(region, "derivative"):
            raise TypeError(
                f"The SPO loss has no gradient for {type(region).__name__}: its decisions are not differentiable in "
                "the costs, and the loss is piecewise constant. Use SPOPlusLoss, its convex surrogate, or train with "
                "SPORegressor, which needs no gradient."
            )
        value = np.einsum("ij,ij->i", C, region.solve_min(C_hat, memory) - W)
        return value, region.derivative(C_hat, C)  # the matrix is symmetric


class _ErrorLoss(Loss):
    """A loss of the errors of predictions, which are 0 for costs that do not exist."""

    needs_decisions = False

    def value_gradient_min(
        self, region: Region, C: np.ndarray, C_hat: np.ndarray, W: np.ndarray | None, memory: Memory | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Value and (sub)gradient."""
        possible = region.possible(*C.shape)
        return self._of_errors(C_hat - C if possible is None else np.where(possible, C_hat - C, 0.0))

    def _of_errors(self, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


class SquaredLoss(_ErrorLoss):
    r"""Squared error :math:`\lVert \hat c - c\rVert_2^2`, which ignores the region.

    Examples
    --------
    >>> from skspo import SquaredLoss
    >>> SquaredLoss().value([[1.0, 2.0]], [[2.0, 4.0]])
    array([5.])
    """

    def _of_errors(self, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.einsum("ij,ij->i", E, E), 2.0 * E


class AbsoluteLoss(_ErrorLoss):
    r"""Absolute error :math:`\lVert \hat c - c\rVert_1`, which ignores the region.

    Examples
    --------
    >>> from skspo import AbsoluteLoss
    >>> AbsoluteLoss().value([[1.0, 2.0]], [[2.0, 4.0]])
    array([3.])
    """

    def _of_errors(self, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.abs(E).sum(axis=1), np.sign(E)
