"""RegularizationPathDisplay: how the penalty changes held-out losses, or the coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._training.fitted import check_frames
from ..metrics import spo_loss, spo_plus_loss
from ..regions.base import Region
from ._common import FEW, axes_for, line_style, part_of_colors, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from ..estimators import SPOPlusRegressorCV


class RegularizationPathDisplay:
    """Held-out losses, or coefficients, by strength of the penalty.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
        Strengths of the penalty.  Infinity and zero are drawn at the ends of the logarithmic axis and labeled.
    losses : dict of str to ndarray of shape (n_alphas,), optional
        Losses on held-out data, by name.
    coefs : ndarray of shape (n_alphas, d, n_features), optional
        Coefficients.
    chosen : float, optional
        The strength to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of Line2D
        One per loss, or one per coefficient.  Up to ten coefficients are labeled, more have a color scale.
    chosen_line_ : Line2D or None
        Where ``chosen`` is.

    Examples
    --------
    >>> from skspo import EntropySimplex, SPOPlusRegressorCV, spo_plus_path
    >>> from skspo.datasets import make_portfolio
    >>> from skspo.plotting import RegularizationPathDisplay
    >>> X, C = make_portfolio(60, 3, 5, degree=4, random_state=0)
    >>> model = SPOPlusRegressorCV(EntropySimplex(), n_alphas=5).fit(X, C)
    >>> len(RegularizationPathDisplay.from_estimator(model).lines_)
    2
    >>> path = spo_plus_path(X, C, EntropySimplex(), n_alphas=5)
    >>> len(RegularizationPathDisplay.from_path(path).lines_)  # one per coefficient
    15
    """

    def __init__(
        self,
        *,
        alphas: ArrayLike,
        losses: Mapping[str, ArrayLike] | None = None,
        coefs: np.ndarray | None = None,
        chosen: float | None = None,
    ) -> None:
        self.alphas = np.asarray(alphas, dtype=np.float64)
        self.losses = {name: np.asarray(loss, dtype=np.float64) for name, loss in (losses or {}).items()}
        self.coefs = coefs
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: SPOPlusRegressorCV, **kwargs: Any) -> RegularizationPathDisplay:
        """Draw the cross-validated losses of a fitted :class:`~skspo.SPOPlusRegressorCV`.

        Parameters
        ----------
        estimator : SPOPlusRegressorCV
            Fitted.
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

        Returns
        -------
        display : RegularizationPathDisplay
        """
        if not hasattr(estimator, "alphas"):
            raise TypeError(
                f"{cls.__name__}.from_estimator takes a fitted SPOPlusRegressorCV, got {type(estimator).__name__}. "
                "Use from_path for the output of spo_plus_path."
            )
        check_is_fitted(estimator)
        results = estimator.cv_results_
        losses = {
            "held-out SPO+ loss": results["mean_test_spo_plus_loss"],
            "held-out SPO loss": results["mean_test_spo_loss"],
        }
        return cls(alphas=estimator.alphas_, losses=losses, chosen=estimator.alpha_).plot(**kwargs)

    @classmethod
    def from_path(
        cls,
        path: tuple[np.ndarray, ...],
        X: ArrayLike | None = None,
        C: ArrayLike | None = None,
        region: Region | None = None,
        **kwargs: Any,
    ) -> RegularizationPathDisplay:
        """Draw the output of :func:`~skspo.spo_plus_path`.

        Parameters
        ----------
        path : tuple
            What ``spo_plus_path`` returned.
        X, C : array-likes of shape (n_samples, n_features) and (n_samples, d), optional
            Test data.  Without them the coefficients are drawn.
        region : Region or None, default=None
            Where decisions are made; None means the unit Box.
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

        Returns
        -------
        display : RegularizationPathDisplay
        """
        pyplot(cls.__name__)
        alphas, coefs, intercepts = path[:3]
        losses: dict[str, ArrayLike] = {}
        if (X is None) != (C is None):
            raise ValueError("X and C must be given together: the features and the true costs of the same samples.")
        if X is not None and C is not None:
            check_frames(None, region, X=X, C=C)
            predictions = [np.asarray(X) @ B.T + b for B, b in zip(coefs, intercepts, strict=True)]
            losses["SPO+ loss"] = np.array([spo_plus_loss(C, C_hat, region) for C_hat in predictions])
            losses["SPO loss"] = np.array([spo_loss(C, C_hat, region) for C_hat in predictions])
        return cls(alphas=alphas, losses=losses, coefs=coefs).plot(**kwargs)

    def plot(self, ax: Axes | None = None, *, kind: str | None = None, **kwargs: Any) -> RegularizationPathDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        kind : {"loss", "coef"} or None, default=None
            What to draw; None means losses if there are any.
        **kwargs
            Passed to ``Axes.plot``.

        Returns
        -------
        self : RegularizationPathDisplay
        """
        kind = kind or ("loss" if self.losses else "coef")
        if kind not in ("loss", "coef"):
            raise ValueError(f"kind must be 'loss' or 'coef', got {kind!r}.")
        if not self.losses if kind == "loss" else self.coefs is None:
            raise ValueError(
                f"kind={kind!r} has nothing to draw: losses come from a cross-validated estimator, or from a path with "
                "test data; coefficients come from a path."
            )
        ax = axes_for(self, ax, (6.0, 4.0))
        at, ticks = self._positions()
        self.lines_: list[Line2D] = []
        if kind == "loss":
            for name, loss in self.losses.items():
                style = line_style(len(self.lines_))
                self.lines_ += ax.plot(at, loss, **{"marker": "o", "markersize": 4, "label": name, **style, **kwargs})
            ax.set(ylabel="loss", ylim=(0, None))
            ax.margins(y=0.08)
        else:
            self._draw_coefs(ax, at, kwargs)
            ax.axhline(0.0, color="0.6", linewidth=0.6, zorder=0)
            ax.set(ylabel="coefficient")
        ax.set(xscale="log", xlabel="strength of the penalty, alpha")
        for position, label in ticks:
            ax.axvline(position, color="0.85", linewidth=6, zorder=0)
            place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
            ax.annotate(label, (position, 1), fontsize="small", **place)
        self.chosen_line_ = None
        if self.chosen is not None:
            (k,) = np.flatnonzero(self.alphas == self.chosen)[:1]
            self.chosen_line_ = ax.axvline(at[k], color="black", linewidth=1, linestyle="--", label="chosen")
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)  # where it covers no data
        return self

    def _draw_coefs(self, ax: Axes, at: np.ndarray, kwargs: dict[str, Any]) -> None:
        """One line per coefficient, with a label if there are few, and with a color scale if there are many."""
        B = np.asarray(self.coefs)
        _, d, p = B.shape
        many = d * p > FEW
        if many:
            from matplotlib.cm import ScalarMappable
            from matplotlib.colors import Normalize

            # Without the palest colors, which are hard to see on white.
            shades = ScalarMappable(Normalize(0, (p if p > 1 else d) - 1), part_of_colors("viridis", 0.0, 0.9))
            ax.figure.colorbar(shades, ax=ax, label=f"number of the {'feature' if p > 1 else 'cost'}")
        for i, j in np.ndindex(d, p):
            own: dict[str, Any] = {"linewidth": 1.5, "label": f"cost {i}, feature {j}", **line_style(i * p + j)}
            if many:
                own = {"linewidth": 1.0, "color": shades.to_rgba(j if p > 1 else i)}
            self.lines_ += ax.plot(at, B[:, i, j], **own | kwargs)

    def _positions(self) -> tuple[np.ndarray, list[tuple[float, str]]]:
        """Positions on a logarithmic axis, and labels of zero and infinity."""
        finite = self.alphas[np.isfinite(self.alphas) & (self.alphas > 0)]
        low, high = (finite.min(), finite.max()) if finite.size else (1.0, 1.0)
        at, ticks = self.alphas.copy(), []
        for value, position, label in ((np.inf, 10 * high, "least squares\n(∞)"), (0.0, low / 10, "none\n(0)")):
            if (self.alphas == value).any():
                at[self.alphas == value] = position
                ticks.append((float(position), label))
        return at, ticks
