"""RegretDisplay: regret of each sample, for several models."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length

from .._training.fitted import check_frames, check_metadata, fitted_region, metadata_checked
from .._utils.types import Predictor, RegionParams
from ..metrics import normalized_spo_loss, spo_loss
from ..regions.base import Region
from ._common import axes_for, check_named, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RegretDisplay:
    """Box plots of the regret of each sample, one box per model, with the same samples connected.

    Regret is the cost of a decision minus that of the best one in hindsight.  It is often zero and sometimes large, so
    that a mean hides much.  Lines connect the regrets of the same sample.

    Parameters
    ----------
    regrets : dict of str to ndarray of shape (n_samples,)
        Regret of every sample, by name of the model.
    normalized : bool, default=False
        Whether regrets are divided by the mean size of the best costs.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    boxes_ : dict of artists, as returned by ``Axes.boxplot``
    points_ : list of PathCollection
        Samples, one collection per model.
    pairs_ : LineCollection or None
        Lines between the regrets of the same sample; None with a single model.

    See Also
    --------
    DecisionDisplay : Single decisions.
    skspo.decision_report : The same comparison in numbers.

    Examples
    --------
    >>> from skspo import ShortestPath, SPOPlusRegressor, TwoStageRegressor
    >>> from skspo.datasets import make_shortest_path
    >>> from skspo.plotting import RegretDisplay
    >>> X, C = make_shortest_path(200, grid=(3, 3), degree=6, random_state=0)
    >>> region = ShortestPath.grid(3, 3)
    >>> models = {"least squares": TwoStageRegressor(region=region), "SPO+": SPOPlusRegressor(region=region)}
    >>> for model in models.values():
    ...     _ = model.fit(X[:100], C[:100])
    >>> display = RegretDisplay.from_estimators(models, X[100:], C[100:])
    >>> list(display.regrets)
    ['least squares', 'SPO+']
    """

    def __init__(self, *, regrets: Mapping[str, ArrayLike], normalized: bool = False) -> None:
        self.regrets = {str(name): np.asarray(regret, dtype=np.float64) for name, regret in regrets.items()}
        self.normalized = normalized

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Predictor],
        X: ArrayLike,
        C: ArrayLike,
        *,
        region: Region | None = None,
        normalize: bool = False,
        offset: ArrayLike | None = None,
        region_params: RegionParams | None = None,
        **kwargs: Any,
    ) -> RegretDisplay:
        """Draw the regrets of fitted estimators.

        Parameters
        ----------
        estimators : dict of str to fitted estimator
            By the names to be shown.
        X : array-like of shape (n_samples, n_features)
            Features, preferably of samples that were not used for fitting.
        C : array-like of shape (n_samples, d)
            True costs.
        region, offset, region_params
            As in :func:`skspo.decision_report`.
        normalize : bool, default=False
            Divide by the mean size of the best costs, so that the mean of each box is minus the model's ``score``.
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

        Returns
        -------
        display : RegretDisplay
        """
        pyplot(cls.__name__)
        metric = normalized_spo_loss if normalize else spo_loss
        known: Any = {"offset": offset, "region_params": region_params}
        regrets = {}
        for name, estimator in check_named(estimators, cls.__name__).items():
            check_metadata(estimator, cls.__name__, **known)
            check_frames(estimator, region, X=X, C=C, **known)
            with metadata_checked():
                C_hat = estimator.predict(X)
            regrets[name] = metric(C, C_hat, fitted_region(estimator, region), per_sample=True, **known)
        return cls(regrets=regrets, normalized=normalize).plot(**kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Predictor, X: ArrayLike, C: ArrayLike, *, name: str | None = None, **kwargs: Any
    ) -> RegretDisplay:
        """Draw the regrets of one fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
        X, C
            As in :meth:`from_estimators`.
        name : str or None, default=None
            Name to be shown; None means that of the class.
        **kwargs
            As in :meth:`from_estimators`.

        Returns
        -------
        display : RegretDisplay
        """
        return cls.from_estimators({type(estimator).__name__ if name is None else name: estimator}, X, C, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        predictions: Mapping[str, ArrayLike],
        C: ArrayLike,
        region: Region | None = None,
        *,
        normalize: bool = False,
        **kwargs: Any,
    ) -> RegretDisplay:
        """Draw the regrets of predicted costs.

        Parameters
        ----------
        predictions : dict of str to array-like of shape (n_samples, d)
            Predicted costs, by the names to be shown.
        region : Region or None, default=None
            Where decisions are made; None means the unit Box.
        C, normalize, **kwargs
            As in :meth:`from_estimators`.

        Returns
        -------
        display : RegretDisplay
        """
        pyplot(cls.__name__)
        metric = normalized_spo_loss if normalize else spo_loss
        named = check_named(predictions, cls.__name__)
        regrets = {name: metric(C, C_hat, region, per_sample=True) for name, C_hat in named.items()}
        return cls(regrets=regrets, normalized=normalize).plot(**kwargs)

    def plot(
        self, ax: Axes | None = None, *, max_points: int = 150, in_view: float = 0.98, **kwargs: Any
    ) -> RegretDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        max_points : int, default=150
            Number of samples that are drawn as points and lines, spread evenly; boxes and means are those of all.
        in_view : float, default=0.98
            Share of each model's samples within the limits of the axis.  The number above them is written at the top.
            1 shows all samples, which may make the boxes small.
        **kwargs
            Passed to ``Axes.boxplot``.

        Returns
        -------
        self : RegretDisplay
        """
        from matplotlib.collections import LineCollection

        check_consistent_length(*self.regrets.values())
        names, unit = list(self.regrets), 100.0 if self.normalized else 1.0
        values = [unit * regret for regret in self.regrets.values()]
        ax = axes_for(self, ax, (min(max(1.5 * len(names) + 1.0, 4.0), 12.0), 4.5))
        n = len(values[0])
        shown = np.unique(np.linspace(0, n - 1, min(n, max_points)).astype(int))
        # The same shift in every box keeps the lines parallel.
        shift = 0.14 * np.random.RandomState(0).uniform(-1, 1, size=shown.size)
        positions = np.arange(1, len(names) + 1)
        self.pairs_ = None
        points = [np.stack([at + shift, v[shown]], axis=1) for at, v in zip(positions, values, strict=True)]
        if len(names) > 1:
            lines = list(np.stack(points, axis=1))
            self.pairs_ = LineCollection(lines, colors="0.6", linewidths=0.5, alpha=0.3, zorder=1)
            ax.add_collection(self.pairs_)
        dots: dict[str, Any] = {"s": 9, "color": "tab:blue", "alpha": 0.45, "linewidths": 0, "zorder": 2}
        self.points_ = [ax.scatter(*own.T, **dots) for own in points]
        style: dict[str, Any] = {
            "positions": positions,
            "widths": 0.5,
            "showfliers": False,  # the points show them
            "showmeans": True,
            "zorder": 3,
            "meanprops": {"marker": "D", "markerfacecolor": "tab:red", "markeredgecolor": "white", "markersize": 7},
            "medianprops": {"color": "black", "linewidth": 1.5},
        }
        self.boxes_ = ax.boxplot(values, **{**style, **kwargs})
        sign = " %" if self.normalized else ""
        # Wrap names, so that they do not overlap.
        names = [fill(name, 12 if len(names) > 4 else 20) for name in names]
        ax.set_xticks(positions, [f"{name}\nmean {v.mean():.3g}{sign}" for name, v in zip(names, values, strict=True)])
        ends = [float(line.get_ydata().max()) for name in ("whiskers", "means") for line in self.boxes_[name]]
        top = max(*ends, *(float(np.quantile(v, in_view)) for v in values)) or 1.0
        # From below zero, so that samples at zero are visible.
        ax.set(xlim=(0.4, len(names) + 0.6), ylim=(-0.02 * top, 1.07 * top))
        for at, v in zip(positions, values, strict=True):
            beyond = int((v > 1.07 * top).sum())
            if beyond:
                ax.annotate(
                    f"{beyond} above", (at, 0.99), xycoords=("data", "axes fraction"), ha="center", va="top",
                    color="0.4", fontsize="small",
                )  # fmt: skip
        ax.set_ylabel("regret of a sample, % of the mean best cost" if self.normalized else "regret of a sample")
        return self
