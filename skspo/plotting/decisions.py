"""DecisionDisplay: decisions, also compared with the best ones in hindsight."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._training.fitted import check_frames, decision_names, fitted_region
from .._utils.errors import import_optional
from .._utils.shown import MOST_ENTRIES
from .._utils.types import Predictor, RegionParams
from ..losses import check_costs, check_existing
from ..regions import Assignment, Knapsack, ShortestPath, Simplex, TravellingSalesman
from ..regions.base import Region
from ..regions.check import check_region
from ._common import COLORS, axes_for, check_sample, legend_above, part_of_colors, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.colors import Colormap
    from matplotlib.container import BarContainer

CHOSEN, BEST, *_ = COLORS


class DecisionDisplay:
    """Decisions made with predicted costs, compared with the best ones in hindsight if the true costs are known.

    What is drawn depends on the region:

    - ``Simplex``: how often each alternative was chosen when each was best, over all samples;
    - ``ShortestPath``, ``TravellingSalesman``: the two paths or tours of one sample, on a map of the true costs;
    - ``Assignment``: the pairs of one sample, on the matrix of the true costs;
    - ``Knapsack``: the items of one sample in the order of their value per weight, with both choices;
    - any other region: the two decisions of one sample as bars.

    If the true costs are not known yet, the decisions are drawn alone, on a map of the predicted costs.

    Parameters
    ----------
    region : Region
        Where decisions are made.
    C : ndarray of shape (n_samples, d)
        True costs; predicted ones if ``predicted``.
    W : ndarray of shape (n_samples, d)
        Decisions made.
    region_params : dict of array-like, or the like, optional
        Parameters of the region that vary by sample, one row per sample (see :func:`skspo.row_params`).
    names : list of str, optional
        Names of the decision variables; None means those of the region.
    predicted : bool, default=False
        Whether ``C`` are predictions, so that nothing is known in hindsight.

    Attributes
    ----------
    W_best : ndarray of shape (n_samples, d) or None
        Best decisions in hindsight.
    regret : ndarray of shape (n_samples,) or None
        Cost of the decisions minus that of the best ones.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    chosen_, best_ : artists
        Of the decision made and of the best one, None if it is not known.  For the simplex both are the image.

    See Also
    --------
    RegretDisplay : What decisions cost, over all samples.

    Examples
    --------
    >>> from skspo import ShortestPath, SPOPlusRegressor
    >>> from skspo.datasets import make_shortest_path
    >>> from skspo.plotting import DecisionDisplay
    >>> X, C = make_shortest_path(100, grid=(4, 4), degree=6, random_state=0)
    >>> model = SPOPlusRegressor(ShortestPath.grid(4, 4)).fit(X, C)
    >>> display = DecisionDisplay.from_estimator(model, X, C, sample=3)
    >>> display.W.shape
    (100, 24)

    Tomorrow's routes:

    >>> display = DecisionDisplay.from_estimator(model, X[:5], sample=3)
    """

    chosen_: Any
    best_: Any

    def __init__(
        self,
        *,
        region: Region,
        C: ArrayLike,
        W: ArrayLike,
        region_params: RegionParams | None = None,
        names: ArrayLike | None = None,
        predicted: bool = False,
    ) -> None:
        check_frames(None, region, C=C, W=W, region_params=region_params)
        self.C, self.W = check_costs(C, W, may_miss=True)
        self.region = check_region(region, n_dim=self.C.shape[1])
        self.names = self.region.names(self.C.shape[1]) if names is None else np.asarray(names)
        rows = self.region.with_rows(region_params, *self.C.shape)
        self.predicted = predicted
        self.possible = rows.possible(*self.C.shape)
        self.W_best: np.ndarray | None = None
        self.regret: np.ndarray | None = None
        if not predicted:
            self.C = check_existing(self.C, rows, name="C")[0]
            self.W_best = rows.argmin(self.C)
            self.regret = np.einsum("ij,ij->i", self.region.to_min(self.C), self.W - self.W_best)

    @classmethod
    def from_estimator(
        cls,
        estimator: Predictor,
        X: ArrayLike,
        C: ArrayLike | None = None,
        *,
        region: Region | None = None,
        region_params: RegionParams | None = None,
        **kwargs: Any,
    ) -> DecisionDisplay:
        """Draw the decisions of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
        X : array-like of shape (n_samples, n_features)
            Features.
        C : array-like of shape (n_samples, d) or None, default=None
            True costs; None if they are not known yet.
        region, region_params
            As in :func:`skspo.decision_report`.
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

        Returns
        -------
        display : DecisionDisplay
        """
        check_frames(estimator, region, X=X, C=C, region_params=region_params)
        found, C_hat = fitted_region(estimator, region), estimator.predict(X)
        names = decision_names(estimator, found, np.shape(C_hat)[-1])
        return cls.from_predictions(C_hat, C, found, region_params=region_params, names=names, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        C_hat: ArrayLike,
        C: ArrayLike | None = None,
        region: Region | None = None,
        *,
        region_params: RegionParams | None = None,
        names: ArrayLike | None = None,
        **kwargs: Any,
    ) -> DecisionDisplay:
        """Draw the decisions made with predicted costs.

        Parameters
        ----------
        C_hat : array-like of shape (n_samples, d)
            Predicted costs.
        C, region_params
            As in :meth:`from_estimator`.
        region : Region or None, default=None
            Where decisions are made; None means the unit Box.
        names : list of str, optional
            Names of the decision variables; None means those of the region.
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

        Returns
        -------
        display : DecisionDisplay
        """
        pyplot(cls.__name__)
        check_frames(None, region, C=C, C_hat=C_hat, region_params=region_params)
        predicted = C is None
        C, C_hat = check_costs(C_hat if C is None else C, C_hat, may_miss=True)
        region = check_region(region, n_dim=C.shape[1])
        W = region.with_rows(region_params, *C.shape).decide(C_hat)
        display = cls(region=region, C=C, W=W, region_params=region_params, names=names, predicted=predicted)
        return display.plot(**kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        sample: int = 0,
        labels: ArrayLike | None = None,
        pos: Mapping[Hashable, ArrayLike] | None = None,
        cmap: str | Colormap | None = None,
        colorbar: bool = True,
    ) -> DecisionDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        sample : int, default=0
            Which sample to show.  The simplex shows all of them.
        labels : array-like of str of shape (d,), optional
            Names of the alternatives, items or variables; None means those of the display, or numbers.
        pos : dict of node to (x, y), optional
            Where the nodes of a graph are.  By default grids are drawn as such, and networkx graphs by the attribute
            "pos" of their nodes.  Other graphs are drawn by the spring layout of networkx, always with the same seed.
        cmap : str or Colormap, optional
            Colors of counts, or of the costs of edges or pairs.
        colorbar : bool, default=True
            Whether to draw a colorbar.

        Returns
        -------
        self : DecisionDisplay
        """
        n, d = self.C.shape
        i = check_sample(sample, n)
        labels = self.names if labels is None else labels
        names = np.array([str(j) for j in range(d)] if labels is None else [str(x) for x in np.asarray(labels)])
        if names.shape != (d,):
            raise ValueError(f"labels must be {d} names, one per decision variable, got {names.size}.")
        on_map = isinstance(self.region, (ShortestPath, TravellingSalesman))
        graph = GraphPositions.of(self.region, pos) if on_map else None
        square = on_map or isinstance(self.region, (Simplex, Assignment))
        ax = axes_for(self, ax, (5.5, 5.0) if square else (7.0, 4.0))
        if isinstance(self.region, Simplex):
            self._counts(ax, names, cmap, colorbar)
        elif graph is not None:
            self._paths(ax, i, graph, cmap, colorbar)
        elif isinstance(self.region, Assignment):
            self._pairs(ax, i, names, cmap, colorbar)
        else:
            self._bars(ax, i, names)
        return self

    def _summary(self, i: int) -> str:
        text = f"sample {i}: {self._what('predicted ')} {self.C[i] @ self.W[i]:.3g}"
        return text if self.W_best is None else f"{text}, in hindsight {self.C[i] @ self.W_best[i]:.3g}"

    def _what(self, if_predicted: str, if_true: str = "") -> str:
        """Name of the numbers in ``C``."""
        return (if_predicted if self.predicted else if_true) + ("value" if self.region.sense == "max" else "cost")

    def _draw(self, i: int, artist: Callable[[np.ndarray, bool], Any]) -> None:
        """Draw the decision made for a sample and, if it is known, the best one; ``artist`` gets whether it is that."""
        self.chosen_ = artist(self.W[i], False)
        self.best_ = None if self.W_best is None else artist(self.W_best[i], True)

    def _add_colorbar(self, ax: Axes, artist: Any, one: str) -> None:
        ax.figure.colorbar(artist, ax=ax, label=f"{self._what('predicted ', 'true ')} of {one}", shrink=0.8)

    def _counts(self, ax: Axes, names: np.ndarray, cmap: str | Colormap | None, colorbar: bool) -> None:
        if self.W_best is None or self.regret is None:
            self.chosen_, self.best_ = ax.bar(range(len(names)), self.W.sum(axis=0), color=CHOSEN), None
            _name_columns(ax, names)
            ax.set(xlabel="chosen", ylabel="samples", title=f"all {len(self.C)} samples")
            return
        d = len(names)
        counts = np.zeros((d, d), dtype=int)
        np.add.at(counts, (self.W_best.argmax(axis=1), self.W.argmax(axis=1)), 1)
        image = ax.imshow(counts, cmap=cmap or "Blues")
        self.chosen_ = self.best_ = image
        if d <= MOST_ENTRIES:
            middle = 0.5 * counts.max()
            for i, j in np.argwhere(counts):
                color = "white" if counts[i, j] > middle else "black"
                ax.text(j, i, counts[i, j], ha="center", va="center", color=color, fontsize=10 if d <= 10 else 8)
            _name_columns(ax, names)
            ax.set_yticks(range(d), names)
        ax.set(xlabel="chosen", ylabel="best in hindsight")
        if colorbar:
            ax.figure.colorbar(image, ax=ax, label="samples", shrink=0.8)
        share = np.mean(self.regret <= 1e-9 * np.abs(self.C).max(axis=1))
        ax.set_title(
            f"all {len(self.C)} samples: {share:.0%} as good as in hindsight,\nmean regret {self.regret.mean():.3g}"
        )

    def _pairs(self, ax: Axes, i: int, names: np.ndarray, cmap: str | Colormap | None, colorbar: bool) -> None:
        """Costs of an assignment as a matrix, with a mark for each pair."""
        shape = self.region._data(len(names))[:2]
        costs = self.C[i].reshape(shape)
        if self.possible is not None:
            costs = np.ma.masked_array(costs, ~self.possible[i].reshape(shape))
        image = ax.imshow(costs, cmap=part_of_colors(cmap or "Greys", 0.05, 0.75), aspect="equal")
        ax.set_facecolor("white")
        size = 15.0 * min(1.0, 14.0 / max(shape))  # the side of a mark in points

        def marks(W: np.ndarray, best: bool) -> PathCollection:
            rows, columns = np.divmod(np.flatnonzero(W > 1e-6), shape[1])
            style: dict[str, Any] = {"marker": "o", "label": "best in hindsight", "color": BEST}
            if not best:
                style = {"facecolors": "none", "edgecolors": CHOSEN, "linewidths": 0.22 * size}
                style |= {"marker": "s", "label": "chosen"}
            return ax.scatter(columns, rows, s=((0.6 if best else 1.3) * size) ** 2 * W[W > 1e-6], **style)

        self._draw(i, marks)
        workers, tasks = _sides(names, shape)
        if max(shape) <= MOST_ENTRIES:
            _name_columns(ax, tasks)
            ax.set_yticks(range(shape[0]), workers)
        ax.set(xlabel="task", ylabel="worker")
        if np.ma.is_masked(costs):
            rows, columns = np.nonzero(np.ma.getmaskarray(costs))
            ax.scatter(columns, rows, s=(0.4 * size) ** 2, marker="x", color="0.6", label="impossible")
        legend_above(ax, self._summary(i), markerscale=min(1.0, 8.0 / size))
        if colorbar:
            self._add_colorbar(ax, image, "a pair")

    def _paths(self, ax: Axes, i: int, graph: GraphPositions, cmap: str | Colormap | None, colorbar: bool) -> None:
        from matplotlib.collections import LineCollection

        # Leave out the palest quarter, so that the cheapest edge is visible.
        lanes = side_by_side(graph.ends)
        shades = part_of_colors(cmap or "Greys", 0.25, 1.0)
        roads = LineCollection(list(lanes), cmap=shades, linewidths=2.5, zorder=1, capstyle="round")
        roads.set_array(self.C[i])
        ax.add_collection(roads)

        def lines(W: np.ndarray, best: bool) -> LineCollection:
            taken = W > 1e-6
            drawn = LineCollection(
                list(lanes[taken]),
                colors=BEST if best else CHOSEN,
                linewidths=(2.5 if best else 7.0) * np.minimum(W[taken], 1.0),
                linestyles=[(0, (2, 1)) if best else "solid"],
                alpha=1.0 if best else 0.6,
                label="best in hindsight" if best else "chosen",
                zorder=3 if best else 2,
            )
            ax.add_collection(drawn)
            return drawn

        self._draw(i, lines)
        nodes = np.array(list(graph.pos.values()), dtype=np.float64)
        named = graph.named and len(nodes) <= MOST_ENTRIES
        x, y = nodes.T
        ax.scatter(x, y, s=260 if named else 12, color="white" if named else "0.3", edgecolors="0.3", zorder=4)
        for (x, y), node in zip(nodes if named else [], graph.pos, strict=False):
            ax.text(x, y, str(node), ha="center", va="center", fontsize="small", zorder=5, clip_on=True)
        # Adjust the limits, not the Axes, so that title and legend stay in place.
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0.07)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        legend_above(ax, self._summary(i))
        if colorbar:
            self._add_colorbar(ax, roads, "an edge")

    def _bars(self, ax: Axes, i: int, names: np.ndarray) -> None:
        """Bars of the decision made and of the best one, side by side."""
        at, height, width = np.arange(len(names)), np.ones(len(names)), 0.4
        if isinstance(self.region, Knapsack):
            weights = np.atleast_2d(np.asarray(self.region.weights, dtype=np.float64))
            height, width, what = self.C[i], 0.45, self._what("predicted ", "true ")
            alone = len(weights) == 1
            order = np.argsort(-height / (np.maximum(weights[0], 1e-12) if alone else 1.0), kind="stable")
            ax.bar(at, height[order], width=0.9, color="0.9", label="left behind")
            ax.set(xlabel=f"items, by {what}" + " per weight" * alone, ylabel=what)
        else:
            order = at
            ax.axhline(0.0, color="0.4", linewidth=0.6)
            ax.set(xlabel="decision variable", ylabel="decision")

        def bars(W: np.ndarray, best: bool) -> BarContainer:
            shift = 0.0 if self.W_best is None else 0.5 * width if best else -0.5 * width
            color, label = (BEST, "best in hindsight") if best else (CHOSEN, "chosen")
            return ax.bar(at + shift, (W * height)[order], width=width, color=color, label=label)

        self._draw(i, bars)
        names = names[order]
        shown = names if len(names) <= MOST_ENTRIES else names[:0]
        ax.set_xticks(range(len(shown)), shown, rotation=90 if max(map(len, names)) > 3 else 0)
        if len(names) > 15:
            ax.tick_params(axis="x", labelsize="small")
        legend_above(ax, self._summary(i))


def _name_columns(ax: Axes, names: Sequence[str] | np.ndarray) -> None:
    long = max(map(len, names)) > 3
    ax.set_xticks(range(len(names)), names, rotation=45 if long else 0, ha="right" if long else "center")


def _sides(names: np.ndarray, shape: tuple[int, int]) -> tuple[list[str], list[str]]:
    """Names of workers and of tasks, from names "worker -> task" of the pairs; numbers if these are not such names."""
    parts = [str(name).split(" -> ") for name in names]
    if all(len(part) == 2 for part in parts):
        workers, tasks = [part[0] for part in parts[:: shape[1]]], [part[1] for part in parts[: shape[1]]]
        if parts == [[worker, task] for worker in workers for task in tasks]:
            return workers, tasks
    return [str(i) for i in range(shape[0])], [str(j) for j in range(shape[1])]


class GraphPositions(NamedTuple):
    """A graph in the plane."""

    pos: dict[Hashable, ArrayLike]  # by node
    ends: np.ndarray  # of the edges, shape (d, 2, 2): edge, tail and head, x and y
    named: bool  # whether the nodes need names: where they are does not say which they are

    @classmethod
    def of(cls, region: ShortestPath | TravellingSalesman, pos: Mapping[Hashable, ArrayLike] | None) -> GraphPositions:
        """Positions that are given, those of the nodes, of a grid, or of the spring layout."""
        pairs, named = region._pairs(), True
        if pos is None and isinstance(region, ShortestPath) and hasattr(region.edges, "is_directed"):  # networkx
            pos = {node: data["pos"] for node, data in region.edges.nodes(data=True) if "pos" in data}
        if not pos:
            pos = _grid_positions(pairs)
            named = not pos
        if not pos:
            who, more = "A drawing of a graph whose nodes have no positions", ", or pass pos={node: (x, y), ...}."
            nx = import_optional("networkx", "NetworkX", who=who, install="skspo[graph]", more=more)
            pos = nx.spring_layout(nx.Graph(pairs), seed=0, iterations=200)  # always the same
        try:
            nodes = {node: pos[node] for pair in pairs for node in pair}
        except KeyError as error:
            raise ValueError(
                f"The position of node {error} is not known. Pass pos={{node: (x, y), ...}} with all nodes, or none."
            ) from None
        ends = np.array([[nodes[tail], nodes[head]] for tail, head in pairs], dtype=np.float64)
        return cls(nodes, ends, named)


def _grid_positions(pairs: Sequence[Sequence[Hashable]]) -> dict[Hashable, ArrayLike]:
    """Positions of ``ShortestPath.grid``, with nodes numbered row by row; empty for any other graph."""
    steps = {head - tail for tail, head in pairs if isinstance(head, int) and isinstance(tail, int)}
    last = max((head for _, head in pairs if isinstance(head, int)), default=0)
    # A single column has the same edges as a single row, and is drawn as one.
    for cols in sorted(steps | {last + 1}, reverse=True):
        rows = (last + 1) // max(cols, 1)
        if cols >= 1 and rows * cols == last + 1 >= 2:
            if ShortestPath.grid(rows, cols).edges.tolist() == [list(pair) for pair in pairs]:
                return {v: (float(v % cols), -float(v // cols)) for v in range(last + 1)}
    return {}


def side_by_side(ends: np.ndarray) -> np.ndarray:
    """Edges; the two directions of a two-way edge are moved apart, each to its right."""
    there = {tuple(edge.ravel()) for edge in ends}
    two_way = np.array([tuple(edge[::-1].ravel()) in there for edge in ends])
    along = ends[:, 1] - ends[:, 0]
    length = np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
    right = np.stack([along[:, 1], -along[:, 0]], axis=1) / length
    shift = 0.05 * float(np.median(length)) * right * two_way[:, None]
    return ends + shift[:, None, :]
