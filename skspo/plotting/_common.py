"""Helpers of all displays: the import of Matplotlib, colors, legends, jumps, and estimators by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from .._utils.errors import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

OneOrTwoAxes: TypeAlias = "Axes | Sequence[Axes] | np.ndarray | None"

T = TypeVar("T")

#: colors of Okabe and Ito without black and yellow, which can be told apart with any kind of color vision
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")

#: most lines or points that are labeled one by one
FEW = 10

#: movements below this share of the extent of a variable are not jumps
SMALL = 1e-3


def pyplot(who: str) -> ModuleType:
    """Import pyplot, or raise an error that says how to install Matplotlib."""
    return import_optional("matplotlib.pyplot", "Matplotlib", who=who, install="skspo[plot]")


def axes_for(display: Any, ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Axes that are given, or those of a new figure, as attributes of a display."""
    if ax is None:
        _, ax = pyplot(type(display).__name__).subplots(figsize=size, layout="constrained")
    display.ax_, display.figure_ = ax, ax.figure
    return ax


def one_or_two(ax: OneOrTwoAxes) -> np.ndarray:
    """Axes as an array of one or two."""
    axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(axes) > 2:
        raise ValueError(f"ax must be one Axes or two, got {len(axes)}.")
    return axes


def check_named(estimators: Mapping[str, T], who: str) -> dict[str, T]:
    """Check that estimators are given in a dictionary by name."""
    if not isinstance(estimators, Mapping) or not estimators:
        raise TypeError(
            f"{who}.from_estimators takes a dictionary of fitted estimators by name, for example "
            f"{{'SPO+': model}}, got {type(estimators).__name__}. Use from_estimator for a single one."
        )
    return {str(name): estimator for name, estimator in estimators.items()}


def check_sample(sample: int, n: int) -> int:
    """Return the number of a sample, counted from zero; negative numbers count from the end."""
    if not -n <= sample < n:
        raise ValueError(f"sample must be one of the {n} samples, counted from zero, got {sample}.")
    return int(sample) % n


def line_style(k: int) -> dict[str, Any]:
    """Color and line style of line ``k``: solid lines first, then dashed ones."""
    return {"color": COLORS[k % len(COLORS)], "linestyle": ("-", "--", ":")[k // len(COLORS) % 3]}


def part_of_colors(cmap: str | Colormap, low: float, high: float) -> Colormap:
    """Part of a color map."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps.get_cmap(cmap)(np.linspace(low, high, 256)))


def legend_above(ax: Axes, title: str = "", **kwargs: Any) -> None:
    """Put the legend above the Axes, where it covers no data, and the title above it."""
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.1, frameon=False, ncols=3, **kwargs)
    if title:
        ax.set_title(title, pad=26)


class Jumps(NamedTuple):
    """Where a function of one variable jumps: positions (m,), and its values before and after (m, d)."""

    at: np.ndarray
    before: np.ndarray
    after: np.ndarray


def find_jumps(function: Callable[[np.ndarray], np.ndarray], positions: np.ndarray, values: np.ndarray) -> Jumps:
    """Find the jumps of a function from its values (n, d) at increasing positions (n,).

    Intervals are bisected.  The movement within an interval does not vanish with its length if there is a jump inside.
    Each interval gives at most one jump, the largest.
    """
    extent = np.maximum(np.ptp(values, axis=0), 1e-9 * np.ptp(values, axis=0).max() + 1e-300)

    def move(start: np.ndarray, end: np.ndarray) -> np.ndarray:
        return (np.abs(end - start) / extent).max(axis=1)

    low, high, before, after = positions[:-1], positions[1:], values[:-1], values[1:]
    for _ in range(12):  # more would compare costs that a numerical oracle cannot tell apart
        moved = move(before, after) > SMALL
        low, high, before, after = low[moved], high[moved], before[moved], after[moved]
        if not low.size:
            break
        middle = 0.5 * (low + high)
        value = function(middle)
        first = move(before, value) >= move(value, after)
        low, high = np.where(first, low, middle), np.where(first, middle, high)
        before, after = np.where(first[:, None], before, value), np.where(first[:, None], value, after)
    moved = move(before, after) > SMALL
    return Jumps(0.5 * (low + high)[moved], before[moved], after[moved])


def with_gaps(positions: np.ndarray, values: np.ndarray, jumps: Jumps) -> tuple[np.ndarray, np.ndarray]:
    """Positions and values of lines that end before each jump and start again after it."""
    m = len(jumps.at)
    x = np.concatenate([positions, np.repeat(jumps.at, 3)])
    inside = np.stack([jumps.before, np.full_like(jumps.before, np.nan), jumps.after], axis=1)
    y = np.concatenate([values, inside.reshape(3 * m, values.shape[1])])
    order = np.argsort(x, kind="stable")
    return x[order], y[order]
