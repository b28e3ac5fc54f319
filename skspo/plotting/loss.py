"""LossDisplay: SPO and SPO+ loss of one sample along the line between two predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..losses import SPOLoss, SPOPlusLoss, check_costs
from ..regions.base import Region
from ..regions.check import check_region
from ._common import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LossDisplay:
    """SPO loss and SPO+ loss of predictions on a line.

    The SPO loss jumps where the decision changes and is constant elsewhere, so that it has no useful gradient.  The
    SPO+ loss is convex, and nowhere below it.

    Parameters
    ----------
    positions : ndarray of shape (n_points,)
        Positions on the line: 0 is the first prediction, 1 the second one.
    spo, spo_plus : ndarray of shape (n_points,)
        Losses.
    changes : ndarray
        Positions at which the decision changes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of Line2D
        SPO loss and SPO+ loss.

    See Also
    --------
    RegionDisplay : What the best decision does as the costs turn.

    Examples
    --------
    >>> from skspo import Simplex
    >>> from skspo.plotting import LossDisplay
    >>> display = LossDisplay.from_predictions([1, 2, 3], [3, 2, 1], [1, 2, 3], Simplex())
    >>> bool((display.spo <= display.spo_plus).all())
    True
    """

    def __init__(self, *, positions: np.ndarray, spo: np.ndarray, spo_plus: np.ndarray, changes: np.ndarray) -> None:
        self.positions = positions
        self.spo = spo
        self.spo_plus = spo_plus
        self.changes = changes

    @classmethod
    def from_predictions(
        cls,
        c: ArrayLike,
        first: ArrayLike,
        second: ArrayLike,
        region: Region,
        *,
        limits: tuple[float, float] = (-0.25, 1.25),
        n_points: int = 1001,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> LossDisplay:
        """Draw the losses of the predictions ``first + t (second - first)``.

        Parameters
        ----------
        c : array-like of shape (d,)
            True costs.
        first, second : array-like of shape (d,)
            Predictions at t = 0 and t = 1.
        region : Region
        limits : tuple of float, default=(-0.25, 1.25)
            Smallest and largest t.
        n_points : int, default=1001
            Number of predictions.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : LossDisplay
        """
        pyplot(cls.__name__)
        true, start = check_costs(np.atleast_2d(c), np.atleast_2d(first))
        _, end = check_costs(true, np.atleast_2d(second))
        if len(true) != 1:
            raise ValueError(f"LossDisplay draws one sample: c must have shape (d,), got {np.shape(c)}.")
        region = check_region(region, n_dim=true.shape[1])
        positions = np.linspace(*limits, n_points)
        C_hat = start + positions[:, None] * (end - start)
        C = np.repeat(true, n_points, axis=0)
        W = np.repeat(region.argmin(true), n_points, axis=0)
        decisions = region.argmin(C_hat)
        moved = np.abs(np.diff(decisions, axis=0)).max(axis=1) > 1e-6
        smooth = np.count_nonzero(moved) > 0.1 * n_points  # decisions that move all the time have no jumps
        changes = 0.5 * (positions[1:] + positions[:-1])[moved]
        return cls(
            positions=positions,
            spo=SPOLoss(region).value(C, C_hat, W),
            spo_plus=SPOPlusLoss(region).value(C, C_hat, W),
            changes=changes[:0] if smooth else changes,
        ).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> LossDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs
            Passed to ``Axes.plot``, for both lines.

        Returns
        -------
        self : LossDisplay
        """
        plt = pyplot(type(self).__name__)
        if ax is None:
            _, ax = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
        spo = self.spo.copy()
        # A gap in the line at each jump: the loss has no values in between.
        jumps = np.searchsorted(self.positions, self.changes)
        spo[jumps[jumps < len(spo)]] = np.nan
        self.lines_ = [
            *ax.plot(self.positions, spo, **{"color": "tab:blue", "linewidth": 2, "label": "SPO loss", **kwargs}),
            *ax.plot(
                self.positions, self.spo_plus, **{"color": "tab:orange", "linewidth": 2, "label": "SPO+ loss", **kwargs}
            ),
        ]
        for k, change in enumerate(self.changes):
            ax.axvline(change, color="0.8", linewidth=1, zorder=0, label="decision changes" if k == 0 else None)
        ax.set_xlabel("position between the predictions")
        ax.set_ylabel("loss")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
