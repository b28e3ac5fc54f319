"""RegionDisplay: a region of two or three variables, and what the best decision does as the costs turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import ConvexHull

from ..regions._tolerances import SOLVER
from ..regions.base import Region
from ..regions.check import check_region
from ._common import FEW, Jumps, OneOrTwoAxes, find_jumps, legend_above, line_style, one_or_two, pyplot, with_gaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

#: number of arrows, their length as a share of the extent, and the ratio of extents beyond which there are none
ARROWS, LENGTH, SLIM = 24, 0.22, 8.0

#: elevation and azimuth from which a body is seen, in degrees: almost along the normal of the plane of the costs
VIEW = (28.0, 38.0)

#: colors of 0, 90, 180 and 270 degrees; opposite directions differ in hue or in lightness for every color vision
WHEEL = ("#0072B2", "#30123b", "#D55E00", "#e8c33a")


@dataclass(eq=False, kw_only=True, repr=False)
class RegionDisplay:
    """A region with two or three decision variables, and its best decision as the cost vector turns.

    The costs turn once around a circle.  The first picture shows the region and the decisions that are best for some of
    these costs.  Each arrow is at the best decision and points against the costs (along the values, if they are
    maximized), with the color of their angle.  Arrows that share a corner are its normal cone.  The second picture
    shows each decision variable against the angle of the costs: polyhedra jump from corner to corner, curved regions
    move.

    Parameters
    ----------
    angles : ndarray of shape (n_angles,)
        Angles of the costs, between 0 and 2 pi.
    costs : ndarray of shape (n_angles, d)
        Costs of each angle.
    decisions : ndarray of shape (n_angles, d)
        Best decision for each of them.
    jumps : tuple of (ndarray of shape (m,), ndarray of shape (m, d), ndarray of shape (m, d))
        Angles at which the best decision jumps, and the decisions before and after.
    hull : ndarray of shape (n_points, d)
        Decisions for many costs; their convex hull is drawn.
    basis : ndarray of shape (k, d)
        Orthonormal directions in which the region has an extent.  These are the axes of the first picture.
    name : str, default="region"
        Title.
    sense : {"min", "max"}, default="min"
        Whether costs are minimized or values are maximized.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the region.
    axes_ : ndarray of matplotlib Axes
        Region and decision variables, or the region alone.
    figure_ : matplotlib Figure
    lines_ : list of Line2D
        One per decision variable; empty if only the region is drawn.

    See Also
    --------
    LossDisplay : SPO and SPO+ loss between two predictions.

    Notes
    -----
    If the region has an extent in three directions, the costs turn in the plane where they sum to zero.  If it has an
    extent in two directions out of three, they turn in its plane.

    Examples
    --------
    >>> from skspo import Simplex
    >>> from skspo.plotting import RegionDisplay
    >>> display = RegionDisplay.from_region(Simplex(), n_dim=3)
    >>> display.basis.shape  # the simplex of three variables is a triangle
    (2, 3)
    >>> len(display.jumps.at)  # one for each side
    3
    """

    angles: np.ndarray
    costs: np.ndarray
    decisions: np.ndarray
    jumps: Jumps
    hull: np.ndarray
    basis: np.ndarray
    name: str = "region"
    sense: str = "min"

    def __post_init__(self) -> None:
        self.jumps = Jumps(*self.jumps)
        #: arrows point against the costs, or along the values
        self._steps = (1.0 if self.sense == "max" else -1.0) * self.costs @ self.basis.T

    @classmethod
    def from_region(
        cls, region: Region, *, n_dim: int | None = None, n_angles: int = 720, **kwargs: Any
    ) -> RegionDisplay:
        """Draw a region.

        Parameters
        ----------
        region : Region
        n_dim : int, optional
            Number of decision variables, 2 or 3; by default that of the region, or 3 if it has none.
        n_angles : int, default=720
            Number of cost vectors.
        **kwargs
            Passed to :meth:`plot`, such as ``ax``.

        Returns
        -------
        display : RegionDisplay
        """
        pyplot(cls.__name__)
        d = n_dim or region.n_dim or 3
        region = check_region(region, n_dim=d)
        if d not in (2, 3):
            raise ValueError(f"RegionDisplay draws regions with 2 or 3 decision variables, got {d}.")
        hull = region.argmin(np.random.default_rng(0).normal(size=(2000, d)))
        _, spread, directions = np.linalg.svd(hull - hull.mean(axis=0), full_matrices=False)
        k = int(np.count_nonzero(spread > SOLVER * max(spread[0], 1e-300)))
        if k < 2:
            raise ValueError("RegionDisplay: the region is a point or a segment; there is nothing to turn around.")
        basis = np.eye(d) if k == d else _upright(directions[:2])
        plane = basis if k == 2 else np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])

        def turn(angles: np.ndarray) -> np.ndarray:
            return np.stack([np.cos(angles), np.sin(angles)], axis=1) @ plane

        # No angle is a simple fraction of the circle: there decisions often tie.
        angles = 2.0 * np.pi * (np.arange(n_angles) + 0.382) / n_angles
        costs = turn(angles)
        decisions = region.argmin(costs)
        closed = np.append(angles, angles[0] + 2.0 * np.pi), np.append(decisions, decisions[:1], axis=0)
        jumps = find_jumps(lambda at: region.argmin(turn(at)), *closed)
        return cls(
            angles=angles,
            costs=costs,
            decisions=decisions,
            jumps=jumps._replace(at=jumps.at % (2.0 * np.pi)),
            hull=hull,
            basis=basis,
            name=type(region).__name__,
            sense=region.sense,
        ).plot(**kwargs)

    def plot(self, ax: OneOrTwoAxes = None) -> RegionDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, two of them, or None, default=None
            Two Axes show the region and the decision variables, a single one shows the region.  None makes a new figure
            with two.  A region with an extent in three directions needs a first one with ``projection="3d"``.

        Returns
        -------
        self : RegionDisplay
        """
        solid = len(self.basis) == 3
        if ax is None:
            figure = pyplot(type(self).__name__).figure(figsize=(7.6, 3.5), layout="constrained")
            ax = [figure.add_subplot(1, 2, 1, projection="3d" if solid else None), figure.add_subplot(1, 2, 2)]
        self.axes_ = one_or_two(ax)
        self.ax_ = self.axes_[0]
        if solid and self.ax_.name != "3d":
            raise ValueError(
                f"{self.name} has an extent in three directions: the first Axes must have projection='3d', for example "
                "plt.figure().add_subplot(projection='3d')."
            )
        self.figure_ = self.ax_.figure
        (self._draw_solid if solid else self._draw_plane)(self.ax_)
        where = "along the values" if self.sense == "max" else "against the costs"
        self.ax_.set_title(f"{self.name}\narrows point {where}", fontsize="medium")
        self.lines_: list[Any] = []
        if len(self.axes_) == 2:
            self._draw_variables(self.axes_[1])
        return self

    def _arrows(self, extent: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Starts and steps of the arrows in the coordinates of the picture, and their colors."""
        shown = np.arange(ARROWS) * len(self.angles) // ARROWS
        steps = LENGTH * extent * self._steps[shown]
        return self.decisions[shown] @ self.basis.T, steps, color_wheel()(self.angles[shown] / (2.0 * np.pi))

    def _labels(self) -> list[tuple[np.ndarray, np.ndarray, str]]:
        """Decisions with their direction of the arrows and text, if there are few."""
        corners, which = np.unique(self.decisions.round(6) + 0.0, axis=0, return_inverse=True)
        if len(corners) > FEW:
            return []
        found = []
        for j, corner in enumerate(corners):
            pull = self._steps[which.ravel() == j].sum(axis=0)
            text = "(" + ", ".join(np.format_float_positional(x, 3, fractional=False, trim="-") for x in corner) + ")"
            found.append((corner @ self.basis.T, pull / max(float(np.linalg.norm(pull)), 1e-300), text))
        return found

    def _draw_plane(self, ax: Axes) -> None:
        points, turned = self.hull @ self.basis.T, self.decisions @ self.basis.T
        low, high = points.min(axis=0), points.max(axis=0)
        slim = bool((high - low).max() > SLIM * (high - low).min())
        ax.fill(*points[ConvexHull(points).vertices].T, facecolor="0.92", edgecolor="0.6", zorder=1)
        ax.scatter(turned[:, 0], turned[:, 1], s=14, color="black", linewidths=0, zorder=3)
        extent = (high - low) if slim else np.full(2, (high - low).max())
        if not slim:  # with different scales, arrows would not be normal to the boundary
            starts, steps, colors = self._arrows(extent[0])
            ax.quiver(*starts.T, *steps.T, color=colors, angles="xy", scale_units="xy", scale=1, width=0.009, zorder=2)
            ax.set_aspect("equal")
        labels = self._labels()
        for at, pull, text in labels:
            horizontal, vertical = np.where(np.abs(pull) > 0.35, np.sign(pull), 0.0)
            ax.annotate(
                text,
                at + (0.0 if slim else 1.1) * LENGTH * extent * pull,
                xytext=(4 * horizontal, 4 * vertical),
                textcoords="offset points",
                ha={-1.0: "right", 0.0: "center", 1.0: "left"}[float(horizontal)],
                va={-1.0: "top", 0.0: "center", 1.0: "bottom"}[float(vertical)],
            )
        if len(self.basis) == self.decisions.shape[1]:
            ax.set(xlabel="$w_1$", ylabel="$w_2$")
        else:
            ax.set_axis_off()
            middle = points.mean(axis=0)
            for j in range(0 if labels else self.basis.shape[1]):  # say where each variable is large
                if np.linalg.norm(self.basis[:, j]) > 1e-6:
                    outwards = self.basis[:, j] / np.linalg.norm(self.basis[:, j])
                    x, y = middle + extent * outwards * (1.0, 0.85)
                    ax.text(x, y, f"$w_{j + 1}$ large", ha="center", va="center")
        # Room for arrows and labels.
        middle = 0.5 * (low + high)
        room = extent * (1.25, 0.98) if labels or len(self.basis) < self.decisions.shape[1] else 0.75 * extent
        ax.set(xlim=(middle[0] - room[0], middle[0] + room[0]), ylim=(middle[1] - room[1], middle[1] + room[1]))

    def _draw_solid(self, ax: Any) -> None:
        from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

        points = self.hull
        hull = ConvexHull(points)
        low, high = points.min(axis=0), points.max(axis=0)
        extent, labels = float((high - low).max()), self._labels()
        ax.add_collection3d(Poly3DCollection(points[hull.simplices], facecolor="0.8", edgecolor="none", alpha=0.2))
        edges = _edges(hull)
        if len(edges):
            ax.add_collection3d(Line3DCollection(points[edges], colors="0.5", linewidths=0.8))
        ax.scatter(*self.decisions.T, s=14, color="black", depthshade=False, linewidths=0)
        if extent <= SLIM * (high - low).min():
            starts, steps, colors = self._arrows(extent)
            # Each arrow has one line for its shaft and two for its head, in this order.
            heads = np.repeat(colors, 2, axis=0)
            ax.quiver(*starts.T, *steps.T, colors=np.concatenate([colors, heads]), linewidths=1.8)
            ax.set_box_aspect(high - low + 2.0 * LENGTH * extent, zoom=1.05 if labels else 1.0)
        right = np.array([-np.sin(np.radians(VIEW[1])), np.cos(np.radians(VIEW[1])), 0.0])  # on the screen
        for at, pull, text in labels:
            side = np.sign(pull @ right) if abs(pull @ right) > 0.35 else 0.0
            align = {-1.0: "right", 0.0: "center", 1.0: "left"}[float(side)]
            ax.text(*(at + (1.7 - 0.5 * abs(side)) * LENGTH * extent * pull), text, ha=align, va="center", zorder=10)
        room = LENGTH * extent
        for k, (name, axis) in enumerate(zip("xyz", (ax.xaxis, ax.yaxis, ax.zaxis), strict=True)):
            axis.set_rotate_label(False)
            ax.set(**{f"{name}lim": (low[k] - room, high[k] + room), f"{name}label": f"$w_{k + 1}$"})
            ax.locator_params(axis=name, nbins=4)
        if labels:  # they say more than the axes
            ax.set_axis_off()
        ax.view_init(*VIEW)

    def _draw_variables(self, ax: Axes) -> None:
        jumps = self.jumps._replace(at=np.degrees(self.jumps.at))
        degrees, values = with_gaps(np.degrees(self.angles), self.decisions, jumps)
        widths = (5.0, 3.2, 1.6)  # where lines lie on each other, all are visible
        self.lines_ = [
            ax.plot(degrees, own, label=f"$w_{j + 1}$", linewidth=widths[j], **line_style(j))[0]
            for j, own in enumerate(values.T)
        ]
        dotted: dict[str, Any] = {"color": "0.6", "linestyle": ":", "linewidth": 1, "zorder": 0}
        for before, after in zip(jumps.before.T, jumps.after.T, strict=True):
            ax.vlines(jumps.at, before, after, **dotted)
        low, extent = self.decisions.min(), np.ptp(self.decisions)
        ax.pcolormesh(
            np.linspace(0.0, 360.0, 361),
            low - extent * np.array([0.18, 0.1]),
            np.arange(0.5, 360.5)[None, :],
            cmap=color_wheel(),
            vmin=0.0,
            vmax=360.0,
        )
        ax.set(xlim=(0, 360), xticks=range(0, 361, 90), xlabel="angle of the costs, in degrees", ylabel="best decision")
        legend_above(ax)


def color_wheel() -> Colormap:
    """Colors of angles, from 0 to 1."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("angles", [*WHEEL, WHEEL[0]])


def _upright(plane: np.ndarray) -> np.ndarray:
    """Orthonormal basis of a plane in space, with the third coordinate upwards, or the second if that is constant."""
    shadows = plane.T @ plane  # projections of the unit vectors
    up = shadows[2] if np.linalg.norm(shadows[2]) > 1e-6 else shadows[1]
    up = up / np.linalg.norm(up)
    across = plane.T @ np.array([[0.0, 1.0], [-1.0, 0.0]]) @ (plane @ up)
    across *= np.sign(across[np.argmax(np.abs(across) > 1e-6)])
    return np.stack([across, up]) + 0.0


def _edges(hull: ConvexHull) -> np.ndarray:
    """Pairs of points where two faces of a body meet at an angle; the triangles of a face or a curved part do not."""
    pairs = []
    for triangle, (simplex, neighbors) in enumerate(zip(hull.simplices, hull.neighbors, strict=True)):
        for corner, other in enumerate(neighbors):  # neighbor k is opposite of corner k
            if other > triangle and hull.equations[triangle, :3] @ hull.equations[other, :3] < 0.9:
                pairs.append(np.delete(simplex, corner))
    return np.array(pairs, dtype=int).reshape(-1, 2)
