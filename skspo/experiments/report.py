"""Turn trials into a summary table (CSV and Markdown) and figures (PNG and PDF)."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._utils.errors import import_optional
from .runner import write_atomically
from .studies import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: colors that also differ in lightness
COLORS = {
    "SPO": "#1b7837",
    "SPO+": "#2166ac",
    "SPO+ barrier": "#67a9cf",
    "absolute": "#ef8a62",
    "least squares": "#b2182b",
}


class Table(NamedTuple):
    """The trials of a study, by setting and method."""

    names: list[str]
    values: dict[tuple[str, ...], dict[str, list[float]]]


def write_report(study: Study, file: Path, *, figures: bool = True) -> list[Path]:
    """Write summary.csv, summary.md and the figure next to ``trials.csv``; return what was written."""
    with file.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    table = Table(header[:-3], defaultdict(lambda: defaultdict(list)))
    for row in rows:
        table.values[tuple(row[:-3])][row[-2]].append(float(row[-1]))
    written = _summary(study, table, file.parent)
    return written + _figure(study, table, file.parent) if figures else written


def _summary(study: Study, table: Table, folder: Path) -> list[Path]:
    header = [*table.names, "method", "trials", "mean", "standard error", "median", "lower quartile", "upper quartile"]
    rows = []
    for setting, methods in sorted(table.values.items(), key=lambda item: [_number(cell) for cell in item[0]]):
        for method, values in methods.items():
            x = np.array(values)
            error = x.std(ddof=1) / np.sqrt(x.size) if x.size > 1 else np.nan
            quartiles = np.quantile(x, [0.5, 0.25, 0.75])
            cells = [f"{v:.5g}" for v in (x.mean(), error, *quartiles)]
            rows.append([*setting, method, str(x.size), *cells])
    comma, pipe = folder / "summary.csv", folder / "summary.md"
    write_atomically(comma, "".join(",".join(row) + "\n" for row in [header, *rows]))
    lines = [f"# {study.title}", "", f"Values are the {study.metric} of test samples.", ""]
    lines += [f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows]]
    for name, sizes, trials in _curves(study, table):
        lines += ["", f"{name}: slope {_slope(sizes, trials):.2f} on log-log axes."]
    write_atomically(pipe, "\n".join(lines) + "\n")
    return [comma, pipe]


def _figure(study: Study, table: Table, folder: Path) -> list[Path]:
    more = ", or use --no-figures."
    matplotlib = import_optional("matplotlib.figure", "Matplotlib", who="A figure", install="skspo[plot]", more=more)
    across = table.names.index(study.across)
    hidden = {study.across, "threshold"}
    panels: dict[tuple[tuple[str, str], ...], list[tuple[str, ...]]] = defaultdict(list)
    for setting in table.values:
        panels[tuple((n, s) for n, s in zip(table.names, setting, strict=True) if n not in hidden)].append(setting)
    n_panels = 1 if study.curves else len(panels)
    # Two columns of panels fit the width of a page with readable type.
    columns = min(n_panels, 2)
    rows = -(-n_panels // columns)
    figure = matplotlib.Figure(layout="constrained")
    figure.set_figheight(figure.get_figheight() * (1 + rows) / (1 + columns))  # one more for title and legend
    axes = figure.subplots(rows, columns, squeeze=False)
    ordered = sorted(panels.items(), key=lambda item: sorted(item[0], key=lambda pair: pair[0] == "degree"))
    for i, (panel, settings) in enumerate([] if study.curves else ordered):
        ax = axes[i // columns, i % columns]
        _boxes(ax, sorted(settings, key=lambda setting: _number(setting[across])), across, table)
        named = [f"{value} model" if name == "model" else f"{name} {value}" for name, value in panel]
        ax.set_title(", ".join(named), fontsize=10)
        ax.set(xlabel=study.across, ylabel=study.metric)
    for name, sizes, trials in _curves(study, table):
        _draw_curve(axes[0, 0], sizes, trials, name)
        axes[0, 0].set(xlabel=study.across, ylabel=f"{study.metric}, relative to the smallest {study.across}")
    for ax in axes.ravel()[n_panels:]:
        ax.set_visible(False)
    figure.suptitle(study.title, fontsize=11)
    if study.curves:
        axes[0, 0].legend(fontsize=9)
    else:  # under the panels, because no corner is free in every panel
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=len(handles[0]), fontsize=9, frameon=False)
    written = []
    for kind in ("png", "pdf"):
        written.append(folder / f"{study.name}.{kind}")
        image = io.BytesIO()
        figure.savefig(image, format=kind, dpi=150, metadata={"CreationDate": None} if kind == "pdf" else None)
        write_atomically(written[-1], image.getvalue())
    return written


def _boxes(ax: Axes, settings: list[tuple[str, ...]], across: int, table: Table) -> None:
    methods = list(table.values[settings[0]])
    width = 0.8 / len(methods)
    for m, method in enumerate(methods):
        places = np.arange(len(settings)) + (m - (len(methods) - 1) / 2) * width
        boxes = ax.boxplot(
            [table.values[setting][method] for setting in settings],
            positions=places,
            widths=0.85 * width,
            patch_artist=True,
            manage_ticks=False,
            flierprops={"markersize": 2},
            medianprops={"color": "black"},
        )
        for box in boxes["boxes"]:
            box.set_facecolor(COLORS.get(method, "gray"))
        ax.plot([], [], "s", color=COLORS.get(method, "gray"), label=method)
    ax.set_xticks(np.arange(len(settings)), [setting[across] for setting in settings], fontsize=9)
    ax.grid(axis="y", alpha=0.3)


def _curves(study: Study, table: Table) -> list[tuple[str, np.ndarray, list[list[float]]]]:
    """Name, horizontal positions and trials of every curve of a study that has curves."""
    if not study.curves:
        return []
    across, which = table.names.index(study.across), table.names.index(study.curves)
    curves = []
    for name in sorted({setting[which] for setting in table.values}):
        settings = [setting for setting in table.values if setting[which] == name]
        settings.sort(key=lambda setting: float(setting[across]))
        values = [next(iter(table.values[setting].values())) for setting in settings]
        curves.append((name, np.array([float(setting[across]) for setting in settings]), values))
    return curves


def _slope(x: np.ndarray, values: list[list[float]]) -> float:
    """Slope of the line through the means on log-log axes."""
    means = np.array([np.mean(v) for v in values])
    positive = means > 0
    return float(np.polyfit(np.log(x[positive]), np.log(means[positive]), 1)[0]) if positive.sum() > 1 else np.nan


def _draw_curve(ax: Axes, x: np.ndarray, values: list[list[float]], name: str) -> None:
    """Mean over trials, relative to the first size, with its slope on log-log axes."""
    means = np.array([np.mean(v) for v in values])
    errors = np.array([np.std(v) / np.sqrt(len(v)) for v in values])
    color = COLORS["SPO+"] if name == "polyhedron" else COLORS["SPO"]
    label = f"{name}: slope {_slope(x, values):.2f}"
    ax.errorbar(x, means / means[0], errors / means[0], color=color, marker="o", capsize=2, label=label)
    ax.set(xscale="log", yscale="log")
    ax.grid(alpha=0.3, which="both")


def _number(cell: str) -> tuple[int, float, str]:
    try:
        return 0, float(cell), ""
    except ValueError:
        return 1, 0.0, cell
