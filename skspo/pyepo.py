"""Regions of this package as optimization models of PyEPO.

``import pyepo`` in this file is PyEPO: imports are absolute.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .regions.base import Region
from .regions.check import check_region

try:
    import torch
    from pyepo import EPO
    from pyepo.model.opt import optModel
except ImportError as error:
    raise ImportError("skspo.pyepo needs PyEPO and PyTorch: pip install skspo[pyepo]") from error

__all__ = ["RegionModel"]

#: rows that are solved at once: a usual batch, and few enough for oracles that are slow
BLOCK = 128


class RegionModel(optModel):
    """Optimization model of PyEPO whose decisions come from a region.

    All losses, datasets and metrics of PyEPO take it as they take their own models.  No other solver is needed, and
    no license.  PyEPO asks for the decisions of a batch row by row; the region solves many rows at once, when the
    first of them is asked for.

    Parameters
    ----------
    region : Region
        Feasible region of the decisions.  Its ``sense`` becomes the ``modelSense`` of the model.
    num_cost : int, optional
        Number of costs.  Needed if the region does not know it, as ``Simplex()``.

    See Also
    --------
    skspo.torch.SPOPlusLoss : The SPO+ loss as a module of PyTorch, without PyEPO.

    Examples
    --------
    >>> from skspo import ShortestPath
    >>> from skspo.pyepo import RegionModel
    >>> model = RegionModel(ShortestPath.grid(2, 2))
    >>> model.setObj([1, 5, 1, 1])
    >>> model.solve()
    (array([1., 0., 1., 0.]), 2.0)
    """

    def __init__(self, region: Region, num_cost: int | None = None) -> None:
        if isinstance(region, Region) and region.n_dim is None and num_cost is None:
            raise ValueError(f"{type(region).__name__} has no fixed number of costs: give num_cost.")
        self._n_costs: int = num_cost or getattr(region, "n_dim", None) or 1
        self.region = check_region(region, n_dim=self._n_costs)
        self.modelSense = EPO.MAXIMIZE if self.region.sense == "max" else EPO.MINIMIZE
        self._block = (np.empty((0, self._n_costs)),) * 2  # costs, and their decisions
        super().__init__()

    def _getModel(self) -> tuple[Region, range]:
        return self.region, range(self._n_costs)

    def setObj(self, c: Any) -> None:
        """Set the costs.

        Parameters
        ----------
        c : array-like of shape (num_cost,)
            Costs of the entries of a decision.
        """
        row = c.detach().cpu().numpy() if isinstance(c, torch.Tensor) else np.asarray(c)
        if row.shape != (self.num_cost,):
            raise ValueError(f"c must have shape ({self.num_cost},), got {row.shape}.")
        self._row = row

    def solve(self) -> tuple[np.ndarray, float]:
        """Best decision for the costs, and its cost.

        Returns
        -------
        sol : ndarray of shape (num_cost,)
            Best decision.
        obj : float
            Its cost.
        """
        sol = self._decision(self._row)
        return sol, float(np.asarray(self._row, dtype=np.float64) @ sol)

    def _decision(self, row: np.ndarray) -> np.ndarray:
        costs, decisions = self._block
        if not len(costs) or not np.array_equal(costs[0], row):
            costs = _rows_from(row).copy()
            decisions = self.region.argmin(costs)
        self._block = costs[1:], decisions[1:]
        return decisions[0].copy()


def _rows_from(row: np.ndarray) -> np.ndarray:
    """The row and those below it, if it is a view of a row of a matrix; else the row alone, as a matrix."""
    matrix = row.base
    if isinstance(matrix, np.ndarray) and matrix.shape[1:] == row.shape and matrix.flags.c_contiguous:
        start = row.__array_interface__["data"][0] - matrix.__array_interface__["data"][0]
        i, rest = divmod(start, matrix.strides[0])
        if rest == 0 and row.strides == matrix.strides[1:]:
            return matrix[i : i + BLOCK]
    return row[None]
