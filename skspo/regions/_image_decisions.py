"""How images of regions clip predictions: the costs of u, and then those of z."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ._cost_bounds import Limits, clip, read_bounds, without_last
from ._names import Names
from .base import Region


class DecidesInside(Region):
    """Base class of ``LinearImage``: the decision is that of the inner region."""

    if TYPE_CHECKING:
        region: Region
        known_cost: ArrayLike | None
        _rows_known: np.ndarray | None

        def _inner(self) -> tuple[Region, int]: ...

        def _pull(self, C: np.ndarray) -> np.ndarray: ...

        def _push(self, Z: np.ndarray) -> np.ndarray: ...

        def _inner_min(self, C: np.ndarray) -> np.ndarray: ...

        def _of(self, inner: Region) -> Region: ...

    @property
    def _region_of_rows(self) -> Region:
        return self.region

    def _clipped(self, C: np.ndarray) -> np.ndarray:
        """Costs of z for predicted costs, clipped to ``cost_bounds``."""
        return self._pull(clip(C, self._limits(C.shape[1])))

    def _inner_decide(self, C: np.ndarray) -> np.ndarray:
        return self.region._named(self._row_names)._decide_min(self._clipped(C))

    def _decide_min(self, C: np.ndarray) -> np.ndarray:
        """K z for the decision z of the inner region."""
        return self._push(self._inner_decide(C))

    def _limits(self, d: int) -> Limits | None:
        if self.known_cost is None:
            return super()._limits(d)
        return without_last(read_bounds(self.cost_bounds, d - 1, self.sense, self.label))

    def _clips(self, d: int) -> bool:
        """Whether costs of u, or those of z, are clipped."""
        return super()._clips(d) or self.region._clips(self._inner()[1])

    def _learn_bounds(self, C: np.ndarray, mean: np.ndarray) -> Region:
        """Return the image of the inner region with learned bounds, if the known cost does not vary by sample."""
        if self._rows_known is not None:
            return self
        return self._of(self.region._learn_bounds(self._pull(C), self._pull(mean[None])[0]))

    def _check_true_costs(self, C: np.ndarray) -> None:
        """Check the costs of the inner region."""
        self.region._named(self._row_names)._check_true_costs(self._pull(C))

    def _decide_worst(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """``worst_argmin`` for predicted costs ``C``, which are clipped first."""
        return self._push(self.region._decide_worst(self._clipped(C), self._pull(C_true)))

    def inner_argmin(self, C: ArrayLike) -> np.ndarray:
        """Best z of the inner region for each row of costs; ``argmin`` gives :math:`M z`.

        Parameters
        ----------
        C : array-like of shape (n_samples, d) or (d,)
            Costs or values, with a last 1 if there is a known cost (``extend``).

        Returns
        -------
        Z : ndarray of shape (n_samples, m) or (m,)
        """
        return self._of_rows(C, self._inner_min)

    def chosen(self, C: ArrayLike, names: Names = None) -> list[Any]:
        """Decision z in words, if the variables of the inner region have names; else the best u."""
        if self.region.names(self._inner()[1]) is None:
            return super().chosen(C, names)
        return self.region.describe(np.atleast_2d(self._of_rows(C, self._inner_decide)))
