"""Measures of figures: sizes of text on a page, what a legend covers, and colors for any color vision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

#: width of a figure on a page, in pixels; smaller figures are not enlarged
PAGE = 700

#: linear RGB as seen with complete color blindness of each kind (Machado, Oliveira and Fernandes 2009)
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}

TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def draw(figure: Figure) -> None:
    """Render a figure that was changed, so that all positions are known."""
    if figure.stale:
        figure.canvas.draw()


def sizes_on_page(figure: Figure) -> list[float]:
    """Sizes of all visible text, in pixels, where the figure is shown on a page."""
    draw(figure)
    scale = min(PAGE / figure.get_figwidth(), 96.0) / 72.0
    texts = figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_visible() and artist.get_text())
    return [scale * text.get_fontsize() for text in texts]


def overlaps(ax: Axes) -> bool:
    """Whether the legend covers data: a point of a line, a bar, or the title."""
    draw(ax.figure)
    legend = ax.get_legend()
    if legend is None:
        return False
    box = legend.get_window_extent()
    if Bbox.intersection(box, ax.title.get_window_extent()) and ax.get_title():
        return True
    frame = ax.get_window_extent()
    for line in ax.lines:
        points = line.get_transform().transform(np.column_stack(line.get_data()))
        points = points[np.isfinite(points).all(axis=1)]
        if any(frame.contains(*point) and box.contains(*point) for point in points):
            return True
    return any(Bbox.intersection(box, patch.get_window_extent()) is not None for patch in ax.patches)


def seen_by(colors: Iterable[str], vision: str) -> np.ndarray:
    """CIELAB coordinates of colors, as seen with a kind of color vision."""
    rgb = np.array([to_rgb(color) for color in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.transpose(VISION[vision]), 0.0, 1.0)
    x, y, z = (linear @ TO_XYZ.T / TO_XYZ.sum(axis=1)).T
    f = [np.where(v > 0.008856, np.cbrt(v), 7.787 * v + 16.0 / 116.0) for v in (x, y, z)]
    return np.stack([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])], axis=1)


def apart(colors: np.ndarray | Sequence[Sequence[float]]) -> float:
    """Smallest distance between two of the colors."""
    lab = np.asarray(colors)
    distances = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
    return float(distances[np.triu_indices(len(lab), 1)].min())
