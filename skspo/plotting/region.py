"""RegionDisplay: a region of two or three variables, and what the best decision does as the costs turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import ConvexHull

from ..regions.base import Region
from ..regions.check import check_region
from ._common import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: singular values of the decisions below this share of the largest are directions in which the region has no extent
FLAT = 1e-7

#: most decisions that are marked and labelled
FEW = 12


class RegionDisplay:
    """A region with two or three decision variables, and its best decision as the cost vector turns.

    The costs turn once around a circle in a plane in which the region has an extent.  The first picture shows the
    region, in that plane, and the decisions that are best for some of these costs, with the colour of the costs.  The
    second one shows each decision variable against the angle of the costs: polyhedra jump from corner to corner, curved
    regions move.

    Parameters
    ----------
    angles : ndarray of shape (n_angles,)
        Angles of the costs, from 0 to 2 pi.
    decisions : ndarray of shape (n_angles, d)
        Best decision for each of them.
    hull : ndarray of shape (n_points, d)
        Decisions for many costs; their convex hull is drawn.
    basis : ndarray of shape (k, d)
        Orthonormal directions in which the region has an extent; the first two are those of the costs.
    name : str, default="region"
        Title.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        Region and decision variables.
    figure_ : matplotlib Figure

    See Also
    --------
    LossDisplay : SPO and SPO+ loss between two predictions.

    Examples
    --------
    >>> from skspo import Simplex
    >>> from skspo.plotting import RegionDisplay
    >>> display = RegionDisplay.from_region(Simplex(), n_dim=3)
    >>> display.basis.shape  # the simplex of three variables is a triangle
    (2, 3)
    """

    def __init__(
        self, *, angles: np.ndarray, decisions: np.ndarray, hull: np.ndarray, basis: np.ndarray, name: str = "region"
    ) -> None:
        self.angles = angles
        self.decisions = decisions
        self.hull = hull
        self.basis = basis
        self.name = name

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
            Passed to :meth:`plot`.

        Returns
        -------
        display : RegionDisplay
        """
        pyplot(cls.__name__)
        d = n_dim or region.n_dim or 3
        region = check_region(region, n_dim=d)
        if d not in (2, 3):
            raise ValueError(f"RegionDisplay draws regions with 2 or 3 decision variables, got {d}.")
        costs = np.random.default_rng(0).normal(size=(2000, d))
        hull = region.argmin(costs)
        _, spread, directions = np.linalg.svd(hull - hull.mean(axis=0), full_matrices=False)
        k = int(np.count_nonzero(spread > FLAT * max(spread[0], 1e-300)))
        if k < 2:
            raise ValueError("RegionDisplay: the region is a point or a segment; there is nothing to turn around.")
        basis = np.eye(d) if k == d else directions[:k]
        angles = np.linspace(0.0, 2.0 * np.pi, n_angles)
        turning = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ basis[:2]
        return cls(
            angles=angles,
            decisions=region.argmin(turning),
            hull=hull,
            basis=basis,
            name=type(region).__name__,
        ).plot(**kwargs)

    def plot(self, axes: tuple[Axes, Axes] | None = None) -> RegionDisplay:
        """Draw the display.

        Parameters
        ----------
        axes : tuple of two matplotlib Axes, optional
            For the region and for the decision variables; None makes a new figure.  A region with an extent in three
            directions needs a first one with ``projection="3d"``.

        Returns
        -------
        self : RegionDisplay
        """
        plt = pyplot(type(self).__name__)
        solid = len(self.basis) == 3
        if axes is None:
            figure = plt.figure(figsize=(9.0, 3.6), layout="constrained")
            first = figure.add_subplot(1, 2, 1, projection="3d" if solid else None)
            axes = first, figure.add_subplot(1, 2, 2)
        left, right = axes
        self._draw_region(left, solid)
        self._draw_variables(right)
        self.axes_, self.figure_ = [left, right], left.figure
        return self

    def _draw_region(self, ax: Any, solid: bool) -> None:
        points, turned = self.hull @ self.basis.T, self.decisions @ self.basis.T
        hull = ConvexHull(points)
        if solid:
            from mpl_toolkits.mplot3d.art3d import Poly3DCollection

            faces = points[hull.simplices]
            ax.add_collection3d(Poly3DCollection(faces, facecolor="0.85", edgecolor="none", alpha=0.35))
            ax.set_zlabel("$w_3$")
            ax.set_box_aspect(np.ptp(points, axis=0))
        else:
            ax.fill(*points[hull.vertices].T, facecolor="0.9", edgecolor="0.6")
            ax.set_aspect("equal")
        ax.scatter(*turned.T, c=self.angles, cmap="hsv", vmin=0.0, vmax=2.0 * np.pi, s=18, zorder=3)
        corners = np.unique(self.decisions.round(6), axis=0)
        if len(corners) <= FEW and not solid:
            middle = points.mean(axis=0)
            for corner in corners:
                at = corner @ self.basis.T
                text = "(" + ", ".join(f"{value:.3g}" for value in corner + 0.0) + ")"
                side = np.sign(at - middle)
                align = {-1.0: "right", 0.0: "center", 1.0: "left"}[float(side[0])]
                ax.annotate(text, at, xytext=6 * side, textcoords="offset points", ha=align, fontsize=9)
        if len(self.basis) == self.decisions.shape[1]:
            ax.set_xlabel("$w_1$")
            ax.set_ylabel("$w_2$")
        else:
            ax.set_axis_off()
        ax.margins(0.2)
        ax.set_title(self.name)

    def _draw_variables(self, ax: Axes) -> None:
        for j, values in enumerate(self.decisions.T):
            ax.plot(np.degrees(self.angles), values, label=f"$w_{j + 1}$", linewidth=2)
        ax.scatter(
            np.degrees(self.angles),
            np.full(self.angles.shape, self.decisions.min() - 0.12 * np.ptp(self.decisions)),
            c=self.angles,
            cmap="hsv",
            marker="s",
            s=12,
        )
        ax.set_xticks(range(0, 361, 90))
        ax.set_xlabel("angle of the costs in degrees")
        ax.set_ylabel("best decision")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
