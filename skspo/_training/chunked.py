"""The training problem where rows live elsewhere: in files, or on the workers of a cluster.

All that bundle and L-BFGS ask of an objective are sums over rows, of a size that does not depend on how many there are:

    survey        a triangular factor of [1 X C], from which follow means, spreads and least squares     once
    preparation   the optimal decisions W, which stay with the rows; the loss of the zero prediction     once
    sample        rows for a first fit in memory, from which the solver starts; at most SAMPLE_ELEMENTS  once
    a pass        loss and subgradient, or loss and cuts of the bundle method                            many times
    certificate   moments of dual decisions                                                              L-BFGS only

``Rows`` computes such sums, wherever it has the rows; ``ChunkedObjective`` knows which sums make the objective.  Tasks
are functions of one part of the data, a ``LinearObjective`` in common coordinates, and their results are added.

Survey.  With weights a_i, the factor R of sqrt(a) [1 X C] = Q R is found part by part: R of two parts is that of their
factors on top of each other.  It is as accurate as least squares by QR, and its columns below the first row are those
of centred data.  The first row of the data is subtracted from X, so that a constant column is zero exactly.

What is proved.  The bundle method averages cuts, that is moments of decisions in S: its bound is that of local data.
L-BFGS takes the decisions at the last point and corrects their moments, also as for local data, but forgets them: they
are computed anew whenever they are needed.  Where both bounds hold is said in
``objective``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ..losses import Loss
from ..regions._row_names import ALL_ROWS
from ..regions.base import Region
from .certificate import Bound, cancel_residual
from .design import SharedDesign
from .objective import ENOUGH_SAMPLES, LEAST_STEP, MANY_SAMPLES, SAMPLE_STEP, LinearObjective
from .rows import ALL, Every, Rows
from .survey import coordinates_of, triangle

#: corrections of the moments of dual decisions; each costs a pass
MAX_CORRECTIONS = 20

#: numbers (features, costs and decisions) of the largest sample that is fitted in memory: 32 MB.  The fit to one row in
#: eight, itself started from one in eight of those, is so near the optimum of all that few passes are left to do.
SAMPLE_ELEMENTS = 2**22


class GroupSums(NamedTuple):
    """Loss, constants and slopes of cuts of consecutive groups, of which parts may share the outermost."""

    value: float
    first: int
    b: np.ndarray
    A: np.ndarray

    def __add__(self, other: GroupSums) -> GroupSums:  # type: ignore[override]
        """Sum by group."""
        first = min(self.first, other.first)
        stop = max(self.first + len(self.b), other.first + len(other.b))
        b, A = np.zeros(stop - first), np.zeros((stop - first, *self.A.shape[1:]))
        for one in (self, other):
            where = slice(one.first - first, one.first - first + len(one.b))
            b[where] += one.b
            A[where] += one.A
        return GroupSums(self.value + other.value, first, b, A)


def part_cuts(part: LinearObjective, start: int, Theta: np.ndarray, edges: np.ndarray) -> GroupSums:
    """Cuts of the groups that have rows in this part."""
    n = part.n_samples
    low = int(np.searchsorted(edges, start, side="right")) - 1
    high = int(np.searchsorted(edges, start + n, side="left"))
    value, b, A = _fresh(part).cuts(Theta, np.clip(edges[low : high + 1] - start, 0, n))
    return GroupSums(value, low, b, A)


def part_gradient(part: LinearObjective, start: int, Theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Loss and subgradient."""
    return _fresh(part).loss_gradient(Theta)[:2]


def part_value(part: LinearObjective, start: int, Theta: np.ndarray) -> float:
    """Loss without the penalty."""
    return part._loss_at(Theta)


def part_decision_cost(part: LinearObjective, start: int, Theta: np.ndarray) -> float:
    """Cost of the decisions for the predictions, without the penalty."""
    return part._decision_cost_at(Theta)


def part_start(part: LinearObjective, start: int) -> tuple[Any, ...]:
    """Loss of the zero prediction; of a shared model also what says which coefficients are hidden."""
    trivial = part.trivial_value()
    if not isinstance(part.design, SharedDesign):
        return (trivial,)
    nothing = np.zeros((0, part.design.n_coef))
    return (trivial, part.design.full_gram, _Factor(getattr(part.design, "triangle", nothing)))


def part_moments(
    part: LinearObjective,
    start: int,
    Theta: np.ndarray,
    centre: np.ndarray,
    K: np.ndarray | None,
    floor: float,
) -> tuple[float, np.ndarray, float]:
    """Constant and slope of the bound that dual decisions prove, and the mean size of c - 2 c_hat."""
    V = part.region.repair(_fresh(part).decisions(Theta)) if hasattr(part.region, "repair") else part.decisions(Theta)
    room, size = _room(part, centre, floor)
    if K is not None:
        V = part.region.repair(V + room[:, None] * part.design.predict(K))
    difference = (V - part.W) * part.weight[:, None]
    constant = float(np.einsum("ij,ij->", part.C, difference))
    return constant, -2.0 * part.design.adjoint(difference), size


def part_gram(part: LinearObjective, start: int, centre: np.ndarray, floor: float) -> np.ndarray:
    """Gram matrix of the features, with the samples weighted by how far their decisions may move."""
    return part.design.gram(_room(part, centre, floor)[0])


def _room(part: LinearObjective, centre: np.ndarray, floor: float) -> tuple[np.ndarray, float]:
    # As in ``LinearObjective.lower_bound``: samples near the kink of the loss are moved first.
    size = np.linalg.norm(part.C - 2.0 * part.design.predict(centre), axis=1)
    return 1.0 / (size + max(floor, 1e-300)), float(part.weight @ size)


def _fresh(part: LinearObjective) -> LinearObjective:
    # What an oracle remembers of the last call is lost with a worker, and must not make a difference.
    part = copy(part)
    part.memory = {}
    return part


class RowSample(NamedTuple):
    """Some rows in the coordinates of solvers; ``+`` is one after the other."""

    weight: np.ndarray
    Z: np.ndarray
    C: np.ndarray
    W: np.ndarray
    offset: np.ndarray  # no columns if there is none

    def __add__(self, other: RowSample) -> RowSample:  # type: ignore[override]
        """All rows of both."""
        return RowSample(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def part_sample(part: LinearObjective, start: int) -> RowSample:
    """The rows themselves."""
    nothing = np.zeros((part.n_samples, 0))
    W, offset = (nothing if array is None else array for array in (part.W, part.plain_offset))
    return RowSample(part.weight, part.design.Z, part.plain_costs, W, offset)


def part_weight(part: LinearObjective, start: int) -> float:
    """Total weight."""
    return float(part.weight.sum())


class _Factor(NamedTuple):
    """Triangular factor; ``+`` is that of both."""

    R: np.ndarray

    def __add__(self, other: _Factor) -> _Factor:  # type: ignore[override]
        return _Factor(triangle(np.concatenate([self.R, other.R])))


class DecisionsAt(NamedTuple):
    """Stands for the decisions w*(2 c_hat - c) of all rows at Theta, which are nowhere together."""

    Theta: np.ndarray


class ChunkedObjective(LinearObjective):
    """Mean loss of a linear model plus its penalty, by sums over rows that live elsewhere.

    Solvers with ``supports_chunks`` use it like a ``LinearObjective``; whatever would look at single rows is missing.

    Parameters
    ----------
    loss : Loss
    region : Region
        Validated by ``check_region``; the same for all rows.
    rows : Rows
    alpha, l1_ratio, prior, fit_intercept, shared
        As in ``LinearObjective``.
    """

    in_memory = False

    def __init__(
        self,
        loss: Loss,
        region: Region,
        rows: Rows,
        *,
        alpha: float = 0.0,
        l1_ratio: float = 0.0,
        prior: str = "zero",
        fit_intercept: bool = True,
        shared: bool = False,
    ) -> None:
        x, y = rows.first()
        d = y.shape[1]
        # One number per feature, the same for all items of a shared model.
        reference = np.tile(x.reshape(d, -1)[0], d) if shared else x[0]
        normals = region.equalities(d) if hasattr(region, "equalities") else np.zeros((0, d))
        survey = rows.survey(reference, normals, region.to_min, shared)
        if not survey.weight > 0:
            raise ValueError("sample_weight is zero for every sample: at least one weight must be positive.")
        coordinates = coordinates_of(
            survey, reference, normals, fit_intercept=fit_intercept, center=prior != "least_squares", shared=shared
        )
        params: dict[str, Any] = {
            "alpha": alpha,
            "l1_ratio": l1_ratio,
            "prior": prior,
            "fit_intercept": fit_intercept,
            "shared": shared,
            "coordinates": coordinates,
        }
        super().__init__(loss, region, x, y, **params)
        self._template = LinearObjective(loss, region, x, y, **params)
        rows.prepare(self._template, survey.weight)
        self._n, self._rows, self._every = sum(survey.sizes), rows, ALL
        #: mean of the costs less their known part, in the user's units and sense
        self.mean_cost = survey.mean
        # One row stood for all of them so far; nothing may be computed from it.
        self.design.Z, self.design.weight = self.design.Z[:0], self.design.weight[:0]
        del self.C, self.W, self.weight, self.plain_costs, self.plain_offset
        self._reference_losses["zero"], *hidden = self._sum(part_start)
        if isinstance(self.design, SharedDesign):
            self.design.full_gram, self.design.triangle, self.design._bases = hidden[0], hidden[1].R, {}

    def sampled(self) -> LinearObjective | None:
        """Return the same problem on a sample of the rows, in memory unless it is too large; None if there are few."""
        n, width = self.n_samples, self.design.Z.shape[1] + 3 * self._template.C.shape[1]
        if n < MANY_SAMPLES:
            return None
        fewer = min(SAMPLE_STEP, max(n // ENOUGH_SAMPLES, LEAST_STEP))
        step = fewer * self._every.step
        share = self._rows.reduce(part_weight, every=Every(step))
        if not share > 0:
            return None
        other = copy(self)
        other._every, other._n, other.history = Every(step, share), -(-n // fewer), []
        if other.n_samples * width > SAMPLE_ELEMENTS:
            other._reference_losses = {"zero": other._sum(part_start)[0]}
            return other
        sample: RowSample = other._sum(part_sample)
        local = copy(self._template)
        local.region = self._template.region.numbered(ALL_ROWS[::step])
        local.weight = sample.weight
        local.design = copy(self.design)
        local.design.Z, local.design.weight = sample.Z, local.weight
        local._set_costs(sample.C, sample.offset if sample.offset.size else None)
        local.W = sample.W if self.loss.needs_decisions else None
        local.memory, local.history, local._reference_losses = {}, [], {}
        return local

    def _sum(self, task: Callable[..., Any], *args: Any) -> Any:
        return self._rows.reduce(task, *args, every=self._every)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self._n

    def loss_gradient(
        self, Theta: np.ndarray, rows: slice | np.ndarray = slice(None), weight: np.ndarray | None = None
    ) -> tuple[float, np.ndarray, Any]:
        """Weighted loss and its subgradient; there are no subgradients in the predictions."""
        if not (isinstance(rows, slice) and rows == slice(None)) or weight is not None:
            raise TypeError("Single rows of data in chunks cannot be looked at.")
        return (*self._sum(part_gradient, Theta), None)

    def cuts(self, Theta: np.ndarray, edges: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Weighted loss, and a cut for each group of rows."""
        sums: GroupSums = self._sum(part_cuts, Theta, edges)
        return sums.value, sums.b, sums.A

    def _loss_at(self, Theta: np.ndarray) -> float:
        """Loss at Theta, without the penalty."""
        return self._sum(part_value, Theta)

    def _decision_cost_at(self, Theta: np.ndarray) -> float:
        """Cost of the decisions, without the penalty."""
        return self._sum(part_decision_cost, Theta)

    def decisions(self, Theta: np.ndarray) -> Any:
        """What stands for the decisions at Theta in ``lower_bound``."""
        return DecisionsAt(Theta)

    def lower_bound(
        self,
        V: Any,
        Theta: np.ndarray,
        *,
        target: float = np.inf,
        enough: float = np.inf,
        max_iter: int = MAX_CORRECTIONS,
    ) -> Bound:
        """Best lower bound from the decisions that V stands for; as for local data, by passes over the rows."""
        constant, G, size = self._sum(part_moments, V.Theta, Theta, None, 0.0)
        floor = 1e-9 * size

        def moments(K: np.ndarray) -> tuple[float, np.ndarray]:
            return self._sum(part_moments, V.Theta, Theta, K, floor)[:2] if K.any() else (constant, G)

        def gram_pinv() -> np.ndarray:
            return np.linalg.pinv(self._sum(part_gram, Theta, floor), rcond=1e-14, hermitian=True)

        most = max_iter if hasattr(self.region, "repair") else 0
        return cancel_residual(self, moments, gram_pinv, Theta, target, most)
