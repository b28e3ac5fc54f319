"""CalibrationDisplay: the empirical calibration function with its theoretical lower bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..plotting._common import axes_for, legend_above, pyplot
from ..regions.base import Region
from .empirical import EmpiricalCalibration, empirical_calibration
from .functions import CalibrationFunction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


class CalibrationDisplay:
    """Empirical calibration function with confidence limits, and the theoretical lower bound.

    It is recommended to use :meth:`from_sampler` or :meth:`from_result` to create a display.

    Parameters
    ----------
    result : EmpiricalCalibration
        Output of :func:`empirical_calibration`.
    calibration : CalibrationFunction, optional
        The theoretical lower bound to draw under the curve.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure containing them.
    line_ : matplotlib Artist
        The empirical curve.
    bound_ : matplotlib Artist or None
        The theoretical bound.

    Examples
    --------
    >>> from skspo import L1Ball
    >>> from skspo.calibration import CalibrationDisplay, PolyhedralCalibration
    >>> def sampler(n, rng):
    ...     return rng.normal([0.5, 0.0], 1.0, size=(n, 2))
    >>> bound = PolyhedralCalibration.from_region(L1Ball(), n_dim=2, M=1.0, beta=0.5)
    >>> display = CalibrationDisplay.from_sampler(
    ...     L1Ball(), sampler, [0.2, 0.4], bound, c_bar=[0.5, 0.0], n_samples=200, random_state=0
    ... )
    >>> display.ax_.get_xlabel()
    'excess SPO risk'
    """

    line_: Line2D
    bound_: Line2D | None

    def __init__(self, result: EmpiricalCalibration, calibration: CalibrationFunction | None = None) -> None:
        self.result = result
        self.calibration = calibration

    @classmethod
    def from_sampler(
        cls,
        region: Region,
        sampler: Callable[[int, np.random.RandomState], ArrayLike],
        eps: ArrayLike,
        calibration: CalibrationFunction | None = None,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> CalibrationDisplay:
        """Search for the worst predictions and plot.

        Parameters
        ----------
        region, sampler, eps
            As for :func:`empirical_calibration`, which gets ``kwargs`` as well.
        calibration, ax
            As in :meth:`from_result`.

        Returns
        -------
        display : CalibrationDisplay
        """
        pyplot("CalibrationDisplay")  # before the search, which takes longer
        return cls.from_result(empirical_calibration(region, sampler, eps, **kwargs), calibration, ax=ax)

    @classmethod
    def from_result(
        cls, result: EmpiricalCalibration, calibration: CalibrationFunction | None = None, *, ax: Axes | None = None
    ) -> CalibrationDisplay:
        """Plot the output of :func:`empirical_calibration`.

        Parameters
        ----------
        result : EmpiricalCalibration
        calibration : CalibrationFunction, optional
            The theoretical lower bound.
        ax : matplotlib Axes, optional
            Axes to plot on; by default new ones are made.

        Returns
        -------
        display : CalibrationDisplay
        """
        return cls(result, calibration).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> CalibrationDisplay:
        """Draw both curves on logarithmic axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to plot on; by default new ones are made.

        Returns
        -------
        display : CalibrationDisplay
        """
        ax = axes_for(self, ax, (6.0, 4.0))
        order = np.argsort(self.result.eps)
        eps, delta, low, high = (np.asarray(field)[order] for field in self.result[:4])
        seen = np.isfinite(delta)
        (self.line_,) = ax.plot(eps[seen], delta[seen], marker="o", label="smallest found")
        ax.fill_between(eps[seen], low[seen], high[seen], alpha=0.3, color=self.line_.get_color())
        self.bound_ = None
        if self.calibration is not None:
            bound = self.calibration(eps)
            if (bound > 0).all():
                (self.bound_,) = ax.plot(eps, bound, linestyle="--", color="black", label="proved lower bound")
        ax.set(xscale="log", yscale="log", xlabel="excess SPO risk", ylabel="excess SPO+ risk")
        legend_above(ax)
        return self
