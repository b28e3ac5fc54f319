"""ConvergenceDisplay: objective, bound and gap of a fit by time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._common import OneOrTwoAxes, check_named, legend_above, line_style, one_or_two, pyplot


class ConvergenceDisplay:
    """Objective and lower bound of a fit, and the relative gap between them, by time.

    Parameters
    ----------
    histories : dict of str to dict of ndarrays
        ``history_`` of fitted estimators, by name.
    tols : dict of str to float, optional
        Tolerance of each fit.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the gap.
    axes_ : ndarray of matplotlib Axes
        Objective and bound, then the gap; or the gap alone.
    figure_ : matplotlib Figure
    objective_lines_, bound_lines_, gap_lines_ : lists of Line2D
        One per model.  The first two are empty if only the gap is drawn.

    Notes
    -----
    The display of one fit names its steps, if there are several: starts from easier problems, and the solvers' turns.

    Before the end a solver reports its current iterate, not the best so far, and bounds that are not verified.  Only
    the last point is the certificate.  Some solvers compute a bound only at the end; bound and gap are then single
    points.

    Examples
    --------
    >>> from skspo import ShortestPath, SPOPlusRegressor
    >>> from skspo.datasets import make_shortest_path
    >>> from skspo.plotting import ConvergenceDisplay
    >>> X, C = make_shortest_path(100, grid=(3, 3), degree=6, random_state=0)
    >>> model = SPOPlusRegressor(ShortestPath.grid(3, 3)).fit(X, C)
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> len(display.axes_)
    2
    """

    def __init__(
        self, *, histories: Mapping[str, Mapping[str, np.ndarray]], tols: Mapping[str, float] | None = None
    ) -> None:
        self.histories = dict(histories)
        self.tols = dict(tols or {})

    @classmethod
    def from_estimators(cls, estimators: Mapping[str, object], **kwargs: Any) -> ConvergenceDisplay:
        """Draw the fits of several estimators.

        Parameters
        ----------
        estimators : dict of str to fitted estimator
            By the names to be shown; each must have ``history_``.
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

        Returns
        -------
        display : ConvergenceDisplay
        """
        histories, tols = {}, {}
        for name, estimator in check_named(estimators, cls.__name__).items():
            history = getattr(estimator, "history_", None)
            if history is None or not len(history["time"]):
                raise ValueError(
                    f"{type(estimator).__name__} ({name}) has no history of a fit. SPOPlusRegressor, SPORegressor and "
                    "SPOPlusRegressorCV have one after fit, unless there was nothing to solve."
                )
            histories[name] = history
            tol = getattr(estimator, "tol", None)
            if tol:
                tols[name] = float(tol)
        return cls(histories=histories, tols=tols).plot(**kwargs)

    @classmethod
    def from_estimator(cls, estimator: object, *, name: str | None = None, **kwargs: Any) -> ConvergenceDisplay:
        """Draw the fit of one estimator.

        Parameters
        ----------
        estimator : fitted estimator
            One with ``history_``.
        name : str or None, default=None
            Name to be shown; None means that of the solver.
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

        Returns
        -------
        display : ConvergenceDisplay
        """
        if name is None:
            name = getattr(estimator, "solver_", type(estimator).__name__)
        return cls.from_estimators({name: estimator}, **kwargs)

    def plot(self, ax: OneOrTwoAxes = None, **kwargs: Any) -> ConvergenceDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, two of them, or None, default=None
            Two Axes show the objectives with their bounds, and the gaps; a single one shows the gaps.  None makes a new
            figure with two.
        **kwargs
            Passed to ``Axes.plot``.

        Returns
        -------
        self : ConvergenceDisplay
        """
        if ax is None:
            plt = pyplot(type(self).__name__)
            _, ax = plt.subplots(2, 1, sharex=True, figsize=(6, 5), layout="constrained")
        self.axes_ = one_or_two(ax)
        top, self.ax_ = self.axes_[0] if len(self.axes_) == 2 else None, self.axes_[-1]
        self.figure_ = self.ax_.figure
        self.objective_lines_, self.bound_lines_, self.gap_lines_ = [], [], []
        for k, (name, history) in enumerate(self.histories.items()):
            own = {"color": line_style(k)["color"], "marker": ".", "markersize": 5, "linewidth": 1.3, **kwargs}
            time, bound = history["time"], history["lower_bound"]
            proved = np.isfinite(bound)
            if top is not None:
                self.objective_lines_ += top.plot(time, history["objective"], label=name, **own)
                dashed = {"linestyle": "--", **own, "alpha": 0.7}
                self.bound_lines_ += top.plot(time[proved], bound[proved], **dashed)
            # The axis is logarithmic: draw a gap of zero at machine precision.
            gap = np.maximum(history["duality_gap"][proved], np.finfo(float).eps)
            self.gap_lines_ += self.ax_.plot(time[proved], gap, label=name, **own)
        if top is not None:
            top.set(ylabel="objective (solid)\nlower bound (dashed)", ylim=self._range())
        self.ax_.set(yscale="log", xlabel="seconds", ylabel="relative duality gap")
        for tol in sorted(set(self.tols.values())):
            self.ax_.axhline(tol, color="0.5", linewidth=0.8, linestyle=":")
            self.ax_.annotate(
                f"tol {tol:g}", (1, tol), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="0.4",
                fontsize="small", xytext=(-3, 1), textcoords="offset points",
            )  # fmt: skip
        if len(self.histories) > 1:
            legend_above(self.axes_[0])
        for name, history in self.histories.items() if len(self.histories) == 1 else ():
            self._mark_steps(history)
            if top is not None:
                top.set_title(name)
        return self

    def _mark_steps(self, history: Mapping[str, np.ndarray]) -> None:
        """Name the solvers and other steps where they begin, if there are several."""
        time, step = history["time"], history["step"]
        first = np.flatnonzero(np.append(True, step[1:] != step[:-1]))
        for k in first if len(first) > 1 else ():
            self.ax_.axvline(time[k], color="0.8", linewidth=0.8, zorder=0)
            self.ax_.annotate(
                step[k], (time[k], 1), xycoords=("data", "axes fraction"), rotation=90, va="top", color="0.4",
                fontsize="x-small", xytext=(1, -2), textcoords="offset points",
            )  # fmt: skip

    def _range(self) -> tuple[float, float]:
        """Vertical limits without early bounds close to zero and large early steps, which would flatten the rest."""
        low, high = np.inf, -np.inf
        for history in self.histories.values():
            values, bounds = history["objective"], history["lower_bound"]
            values = values[np.isfinite(values)]
            last = values[-1]
            first = max(values[0], last)
            low = min(low, max(2 * last - first, np.nanmin(np.append(bounds[bounds > 0], last))))
            high = max(high, first)
        pad = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return low - pad, high + pad
