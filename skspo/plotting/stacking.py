"""StackingDisplay: held-out regrets of the members of a stack, and of the stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ._common import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..estimators import SPOStackingRegressor


class StackingDisplay:
    """Held-out regret of each member of a stack, with standard errors and weights.

    Parameters
    ----------
    names : list of str
        Members and the stack.
    regrets : array-like of shape (n_models,)
        Mean regret on held-out samples.
    errors : array-like of shape (n_models,)
        Standard errors of the means.
    weights : array-like of shape (n_models,)
        Weights in the stack; NaN where there is none.
    chosen : str
        The name to highlight.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : BarContainer
        One bar per model.

    See Also
    --------
    skspo.SPOStackingRegressor : The estimator.
    RegretDisplay : Regrets of single samples.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from skspo import ShortestPath, SPOPlusRegressor, SPOStackingRegressor
    >>> from skspo.datasets import make_shortest_path
    >>> from skspo.plotting import StackingDisplay
    >>> X, C = make_shortest_path(100, grid=(3, 3), degree=6, random_state=0)
    >>> members = [("ridge", Ridge()), ("spo+", SPOPlusRegressor(alpha=0.1))]
    >>> model = SPOStackingRegressor(ShortestPath.grid(3, 3), members, random_state=0).fit(X, C)
    >>> StackingDisplay.from_estimator(model).names
    ['ridge', 'spo+', 'equal weights', 'stack']
    """

    def __init__(
        self, *, names: list[str], regrets: ArrayLike, errors: ArrayLike, weights: ArrayLike, chosen: str
    ) -> None:
        self.names = list(names)
        self.regrets, self.errors, self.weights = (
            np.asarray(values, dtype=np.float64) for values in (regrets, errors, weights)
        )
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: SPOStackingRegressor, **kwargs: Any) -> StackingDisplay:
        """Draw the held-out regrets of a fitted stack.

        Parameters
        ----------
        estimator : fitted SPOStackingRegressor
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

        Returns
        -------
        display : StackingDisplay
        """
        check_is_fitted(estimator)
        results = estimator.cv_results_
        m = len(estimator.weights_)
        shown = [*range(m), m, len(results["candidate"]) - 1]  # members, equal weights, stack
        return cls(
            names=[str(results["candidate"][k]) for k in shown],
            regrets=results["mean_test_spo_loss"][shown],
            errors=results["se_test_spo_loss"][shown],
            weights=[*results["weights"][-1], np.nan, np.nan],
            chosen=estimator.chosen_,
        ).plot(**kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> StackingDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs
            Passed to ``Axes.barh``.

        Returns
        -------
        self : StackingDisplay
        """
        ax = axes_for(self, ax, (6.5, 0.45 * len(self.names) + 1.2))
        labels = [
            name if np.isnan(weight) else f"{name}  (weight {weight:.2f})"
            for name, weight in zip(self.names, self.weights, strict=True)
        ]
        style: dict[str, Any] = {
            "xerr": self.errors,
            "color": ["tab:orange" if name == self.chosen else "tab:blue" for name in self.names],
            "error_kw": {"ecolor": "0.3", "capsize": 3},
        }
        positions = np.arange(len(self.names))
        self.bars_ = ax.barh(positions, self.regrets, **{**style, **kwargs})
        ax.set_yticks(positions, labels)
        ax.invert_yaxis()
        ax.set_xlabel("mean regret of held-out samples, with its standard error")
        ax.set_title(f"chosen: {self.chosen}")
        return self
