"""LossDisplay: SPO and SPO+ loss of one sample along the line between two predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._training.fitted import check_frames, fitted_region
from .._utils.types import Predictor
from ..losses import SPOPlusLoss, check_costs
from ..regions.base import Region
from ..regions.check import check_region
from ._common import COLORS, Jumps, axes_for, check_named, check_sample, find_jumps, legend_above, pyplot, with_gaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LossDisplay:
    """SPO loss and SPO+ loss of predictions on a line.

    On a polyhedron, the SPO loss jumps where the decision changes and is constant elsewhere, so that it has no useful
    gradient.  The SPO+ loss is convex, and nowhere below it.

    Parameters
    ----------
    positions : ndarray of shape (n_points,)
        Positions on the line: 0 is the first prediction, 1 the second one.
    spo, spo_plus : ndarray of shape (n_points,)
        Losses.
    jumps : tuple of (ndarray of shape (m,), ndarray of shape (m, 1), ndarray of shape (m, 1))
        Positions at which the decision jumps, and the SPO losses before and after.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of Line2D
        SPO loss, with a gap at each jump, and SPO+ loss.

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

    def __init__(self, *, positions: np.ndarray, spo: np.ndarray, spo_plus: np.ndarray, jumps: Jumps) -> None:
        self.positions = positions
        self.spo = spo
        self.spo_plus = spo_plus
        self.jumps = Jumps(*jumps)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Predictor],
        X: ArrayLike,
        C: ArrayLike,
        *,
        sample: int = 0,
        region: Region | None = None,
        **kwargs: Any,
    ) -> LossDisplay:
        """Draw the losses between the predictions of two fitted estimators.

        Parameters
        ----------
        estimators : dict of str to fitted estimator
            Two of them, by the names to be shown.
        X : array-like of shape (n_samples, n_features)
            Features.
        C : array-like of shape (n_samples, d)
            True costs.
        sample : int, default=0
            Which sample to show.
        region : Region or None, default=None
            Where decisions are made; None means the ``region_`` of the second estimator.
        **kwargs
            Passed to :meth:`from_predictions`.

        Returns
        -------
        display : LossDisplay
        """
        pyplot(cls.__name__)
        named = check_named(estimators, cls.__name__)
        if len(named) != 2:
            raise ValueError(f"{cls.__name__}.from_estimators takes two estimators, got {len(named)}.")
        for estimator in named.values():
            check_frames(estimator, region, X=X, C=C)
        (true, first), (_, second) = (check_costs(C, estimator.predict(X)) for estimator in named.values())
        i = check_sample(sample, len(true))
        kwargs = {"names": tuple(named), "title": f"sample {i}: SPO and SPO+ loss", **kwargs}
        return cls.from_predictions(true[i], first[i], second[i], fitted_region(estimator, region), **kwargs)

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
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

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
        best = region.argmin(true)

        def predict(positions: np.ndarray) -> np.ndarray:
            return start + positions[:, None] * (end - start)

        def spo(decisions: np.ndarray) -> np.ndarray:
            return (decisions - best) @ region.to_min(true).T

        positions = np.linspace(*limits, n_points)
        C_hat = predict(positions)
        decisions = region.decide(C_hat)
        C, W = np.repeat(true, n_points, axis=0), np.repeat(best, n_points, axis=0)
        changes = find_jumps(lambda at: region.decide(predict(at)), positions, decisions)
        return cls(
            positions=positions,
            spo=np.einsum("ij,ij->i", region.to_min(C), decisions - W),
            spo_plus=SPOPlusLoss(region).value(C, C_hat, W),
            jumps=Jumps(changes.at, spo(changes.before), spo(changes.after)),
        ).plot(**kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        names: tuple[str, str] = ("first prediction", "second prediction"),
        title: str = "SPO and SPO+ loss of one sample",
        **kwargs: Any,
    ) -> LossDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        names : tuple of two str, default=("first prediction", "second prediction")
            Names of the two predictions.
        title : str, default="SPO and SPO+ loss of one sample"
            Title; say which sample it is.
        **kwargs
            Passed to ``Axes.plot``, for both lines.

        Returns
        -------
        self : LossDisplay
        """
        ax = axes_for(self, ax, (6.0, 4.0))
        at, spo = with_gaps(self.positions, self.spo[:, None], self.jumps)
        style = {"linewidth": 2.5, **kwargs}
        self.lines_ = [
            *ax.plot(at, spo[:, 0], **{"color": COLORS[0], "label": "SPO loss", **style}),
            *ax.plot(
                self.positions, self.spo_plus, **{"color": COLORS[1], "linestyle": "--", "label": "SPO+ loss", **style}
            ),
        ]
        for k, jump in enumerate(self.jumps.at):
            label = "decision jumps" if k == 0 else None
            ax.axvline(jump, color="0.6", linewidth=1, linestyle=":", zorder=0, label=label)
        inside = [t for t in (0.0, 1.0) if self.positions[0] <= t <= self.positions[-1]]
        ax.set_xticks(inside, [f"{names[int(t)]}\n(t = {t:.0f})" for t in inside])
        ax.set(xlabel="prediction, on the line between the two", ylabel="loss, in units of the costs")
        legend_above(ax, title)
        return self
