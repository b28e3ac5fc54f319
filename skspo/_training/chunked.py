"""The training problem for rows in files or on the workers of a cluster.

The bundle method and L-BFGS need only sums over rows, whose size does not depend on the number of rows:

    survey        a triangular factor of [1 X C], from which follow means, spreads and least squares     once
    preparation   the optimal decisions W, stored with the rows; the loss of the zero prediction         once
    sample        rows for a fit in memory, the warm start of the solver; at most SAMPLE_ELEMENTS        once
    a pass        loss and subgradient, or loss and cuts of the bundle method                            many times
    certificate   moments of dual decisions                                                              L-BFGS only

Solvers that need more get all rows in memory, from ``loaded``.

``Rows`` computes such sums; ``ChunkedObjective`` combines them.  A task is a function of one part of the data, an
``InMemoryObjective`` in common coordinates, and the results of all parts are added.

Survey.  With weights a_i, the factor R of sqrt(a) [1 X C] = Q R is found part by part: R of two parts is that of their
factors on top of each other.  It is as accurate as least squares by QR, and its columns below the first row are those
of centered data.  The first row of the data is subtracted from X, so that a constant column is zero exactly.

What is proved.  The bundle method averages cuts, that is, moments of decisions in S: its bound is the same as in
memory.  L-BFGS corrects the moments of the decisions at the last point, also as in memory, but does not store these
decisions: they are computed again in each pass.  ``objective`` says for which models both bounds hold.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._utils.limits import Deadline
from ..losses import Loss
from ..regions._rows import ALL_ROWS
from ..regions.base import Region
from ..regions.capabilities import has
from .design import Design, SharedDesign, triangle
from .in_memory import KINK, InMemoryMoves, InMemoryObjective, region_normals
from .inputs import known_in, nearest_factor
from .objective import ZERO_BOUND, Bound, DecisionsAt, Dual, LinearObjective, Penalty, Undecided, sample_step
from .rows import ALL, Every, P, Rows, T, Task
from .run import Memory
from .survey import coordinates_of, survey_chunk

#: numbers (features, costs and decisions) of the rows that are loaded at most, as a sample or because their decisions
#: are undecided: 128 MB
SAMPLE_ELEMENTS = 2**24


class GroupSums(NamedTuple):
    """Loss, constants and slopes of cuts of consecutive groups; two parts may share a group at their border."""

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


def part_cuts(part: InMemoryObjective, start: int, Theta: np.ndarray, edges: np.ndarray) -> GroupSums:
    """Cuts of the groups that have rows in this part."""
    n = part.n_samples
    low = int(np.searchsorted(edges, start, side="right")) - 1
    high = int(np.searchsorted(edges, start + n, side="left"))
    # No cache of the oracle: it would be lost with a worker, and the result must not depend on that.
    value, b, A = part.cuts(Theta, np.clip(edges[low : high + 1] - start, 0, n))
    return GroupSums(value, low, b, A)


def part_result(part: InMemoryObjective, start: int, method: str, *args: Any) -> Any:
    """What a method of the part returns: ``loss_gradient``, ``mean_loss`` or ``mean_decision_cost``."""
    return getattr(part, method)(*args)


def part_products(part: InMemoryObjective, start: int, Theta: np.ndarray) -> np.ndarray:
    """Sums of products of visible predictions with visible costs, and with themselves."""
    V = part.design.predict(Theta)
    V = V if part.plain_offset is None else V + part.plain_offset
    return np.array([np.vdot(part.weight[:, None] * V, x) for x in (part.plain_costs, V)])


def part_start(part: InMemoryObjective, start: int) -> tuple[float, np.ndarray, _Factor]:
    """Loss of the zero prediction; for a shared model also what determines which coefficients are hidden."""
    gram = R = np.zeros((0, part.design.n_coef))
    if isinstance(part.design, SharedDesign):
        gram, R = part.design.full_gram, getattr(part.design, "triangle", R)
    return part.trivial_value(), gram, _Factor(R)


def part_moments(
    part: InMemoryObjective, start: int, dual: DecisionsAt, Theta: np.ndarray, K: np.ndarray | None, floor: float
) -> tuple[float, np.ndarray, float]:
    """Constant and slope of the bound of moved decisions, and the mean size of c - 2 c_hat."""
    moves = InMemoryMoves(part, dual, Theta, max(floor, 1e-300))
    return (*moves.moments(np.zeros(part.shape) if K is None else K), float(part.weight @ moves.size))


def part_gram(part: InMemoryObjective, start: int, Theta: np.ndarray, floor: float) -> np.ndarray:
    """Gram matrix of the features, with samples weighted by how far their decisions may move."""
    size = np.linalg.norm(part.C - 2.0 * part.design.predict(Theta), axis=1)
    return part.design.gram(1.0 / (size + max(floor, 1e-300)))


class RowSample(NamedTuple):
    """Some rows in the coordinates of solvers."""

    weight: np.ndarray
    Z: np.ndarray
    C: np.ndarray
    W: np.ndarray
    offset: np.ndarray  # no columns if there is none


def part_sample(part: InMemoryObjective, start: int) -> list[RowSample]:
    """The rows themselves; lists of several parts are added, so that rows are copied once."""
    nothing = np.zeros((part.n_samples, 0))
    W = part.W if part.loss.needs_decisions else nothing
    offset = nothing if part.plain_offset is None else part.plain_offset
    return [RowSample(part.weight, part.design.Z, part.plain_costs, W, offset)]


class UndecidedRows(NamedTuple):
    """Rows whose decisions differ between models, unless there are too many; and the cut of the others."""

    most: int
    found: int
    sample: list[RowSample]
    constant: float
    slope: np.ndarray

    def __add__(self, other: UndecidedRows) -> UndecidedRows:  # type: ignore[override]
        """Rows of both."""
        found = self.found + other.found
        sample = self.sample + other.sample if found <= self.most else []
        return UndecidedRows(self.most, found, sample, self.constant + other.constant, self.slope + other.slope)


def part_undecided(part: InMemoryObjective, start: int, Thetas: list[np.ndarray], most: int) -> UndecidedRows:
    """Rows whose decisions differ between models."""
    rows, constant, slope = part.compare_decisions(Thetas)
    sample = part_sample(part.take(rows[:most], 1.0), start)
    return UndecidedRows(most, rows.size, sample, constant, slope)


def part_weight(part: InMemoryObjective, start: int) -> float:
    """Total weight."""
    return float(part.weight.sum())


class _Factor(NamedTuple):
    """Triangular factor; ``+`` gives that of both parts."""

    R: np.ndarray

    def __add__(self, other: _Factor) -> _Factor:  # type: ignore[override]
        return _Factor(triangle(np.concatenate([self.R, other.R])))


class ChunkedObjective(LinearObjective):
    """Mean loss of a linear model plus its penalty, by sums over rows that are not in memory.

    Solvers with ``supports_chunks`` use it like any objective; the others use ``loaded``.  The region of the loss has
    been validated by ``check_region`` and is the same for all rows.  Other parameters are as in ``InMemoryObjective``.
    """

    in_memory = False

    def __init__(
        self,
        loss: Loss,
        rows: Rows,
        *,
        alpha: float = 0.0,
        l1_ratio: float = 0.0,
        prior: str = "zero",
        fit_intercept: bool = True,
        shared: bool = False,
    ) -> None:
        assert loss.region is not None
        if prior == "ridge":
            raise ValueError(
                "prior='ridge' needs all rows in memory, and these data are read in chunks or with dask. Use "
                "prior='least_squares', which is nearly the same with many samples, or prior='zero'."
            )
        region = loss.region
        x, y = rows.first()
        d = y.shape[1]
        # One number per feature, the same for all items of a shared model.
        reference = np.tile(x.reshape(d, -1)[0], d) if shared else x[0]
        known = known_in(region, y)
        normals = region_normals(region, d, known)
        survey = rows.survey(partial(survey_chunk, reference=reference, normals=normals, region=region, shared=shared))
        if not survey.weight > 0:
            raise ValueError("sample_weight is zero for every sample: at least one weight must be positive.")
        coordinates = coordinates_of(
            survey, reference, normals, fit_intercept=fit_intercept, center=prior == "zero", shared=shared
        )
        design = (SharedDesign if shared else Design).without_rows(
            coordinates.standardization, normals, fit_intercept=fit_intercept
        )
        design.known = known
        penalty = Penalty(alpha, l1_ratio, prior)
        super().__init__(loss, region, design, coordinates, penalty)
        self._template = InMemoryObjective.without_rows(loss, region, copy(design), coordinates, penalty)
        rows.prepare(self._template, survey.weight)
        self._n, self._rows, self._every = sum(survey.sizes), rows, ALL
        #: mean of the costs minus the offset, in the user's units and sense
        self.mean_cost = survey.mean[0]
        #: smallest and mean true costs, for ``Region._learn_bounds``
        self.costs_seen = region.to_min(survey.least)[None], survey.mean[1]
        self._survey, self._reference = survey.factor, reference
        self._reference_losses["zero"], gram, factor = self._sum(part_start)
        if isinstance(design, SharedDesign):
            design.full_gram, design.triangle = gram, factor.R

    def nearest_factor(self, coef: np.ndarray, intercept: np.ndarray | float, region: Region) -> float:
        """Factor of ``predict_rescaled`` for a linear model; known costs leave no choice."""
        if self.design.known.size:
            return 1.0
        if self.design.shared and self.normals.size:
            product, square = self._sum(part_products, self.from_user(coef, intercept))
            return product / square if product > 0.0 < square else 1.0
        # No pass: the factor has the same sums of squares and products as the table of the survey.
        R, columns = self._survey, np.atleast_2d(coef)
        p, d = columns.shape[1], columns.shape[0]
        ones, X, C = R[:, :1], R[:, 1 : p + 1], R[:, p + 1 : p + 1 + d]
        level = intercept + columns @ self._reference[:p]
        C_hat = self.region.to_min(ones * level + X @ columns.T) + C - R[:, -d:]
        return nearest_factor(C, C_hat, self.normals)

    def sampled(self, part: int = 0, parts: int = 1) -> LinearObjective | None:
        """Return one of ``parts`` parts of a sample of the rows, in memory unless it is too large; None if few rows."""
        n, d = self.n_samples, self.normals.shape[1]
        fewer = sample_step(n)
        if fewer is None:
            return None
        first, step = self._every.first + part * fewer * self._every.step, parts * fewer * self._every.step
        share = self._rows.reduce(Every(step, 1.0, first), part_weight)
        if not share > 0:
            return None
        other = copy(self)
        other._every, other._n = Every(step, share, first), -(-(n - part * fewer) // (parts * fewer))
        if other.n_samples * (self.design.Z.shape[1] + 3 * d) > SAMPLE_ELEMENTS:
            other._reference_losses = {"zero": other._sum(part_start)[0]}
            return other
        return other.loaded()

    @property
    def bytes_to_load(self) -> float:
        """Peak memory of ``loaded``: every row and its copy."""
        d = self.normals.shape[1]
        features = self.design.n_coef * (d if self.design.shared else 1)
        return 16.0 * self.n_samples * (features + 3.0 * d)

    def loaded(self) -> InMemoryObjective:
        """Return the same problem with all rows in memory."""
        return self._in_memory(self._sum(part_sample), ALL_ROWS[self._every.first :: self._every.step])

    def _in_memory(self, parts: list[RowSample], numbers: range = ALL_ROWS) -> InMemoryObjective:
        """Return the problem on some rows."""
        sample = RowSample(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        design = copy(self.design)
        design.Z, design.weight = sample.Z, sample.weight
        offset = sample.offset if sample.offset.size else None
        W = sample.W if self.loss.needs_decisions else None
        return self._template.with_design(design, sample.C, offset, W, numbers)

    def undecided_rows(self, Thetas: list[np.ndarray], most: int) -> Undecided | None:
        """Rows whose decisions differ between these models, by one pass."""
        rows = self._sum(part_undecided, Thetas, most)
        if rows.found > most:
            return None
        return Undecided(self._in_memory(rows.sample), rows.constant, rows.slope)

    def _sum(self, task: Task[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._rows.reduce(self._every, task, *args, **kwargs)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self._n

    def loss_gradient(self, Theta: np.ndarray, memory: Memory | None = None) -> tuple[float, np.ndarray]:
        """Weighted loss and its subgradient."""
        result: tuple[float, np.ndarray] = self._sum(part_result, "loss_gradient", Theta)
        return result

    def cuts(
        self, Theta: np.ndarray, edges: np.ndarray, memory: Memory | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Weighted loss, and a cut for each group of rows."""
        sums = self._sum(part_cuts, Theta, edges)
        return sums.value, sums.b, sums.A

    def mean_loss(self, Theta: np.ndarray) -> float:
        """Loss at Theta, without the penalty."""
        return float(self._sum(part_result, "mean_loss", Theta))

    def mean_decision_cost(self, Theta: np.ndarray) -> float:
        """Cost of the decisions, without the penalty."""
        return float(self._sum(part_result, "mean_decision_cost", Theta))

    def moves(self, dual: Dual, Theta: np.ndarray) -> ChunkedMoves:
        """Dual decisions that can be moved; each move is a pass over the rows."""
        assert isinstance(dual, DecisionsAt)
        return ChunkedMoves(self, dual, Theta)


class ChunkedMoves:
    """Dual decisions that can be moved, for rows in chunks (see ``InMemoryMoves``); Theta is the result."""

    def __init__(self, objective: ChunkedObjective, dual: DecisionsAt, Theta: np.ndarray) -> None:
        self.objective, self.dual, self.Theta = objective, dual, Theta
        self.can_move = has(objective.region, "repair")
        self.constant, self.slope, size = objective._sum(part_moments, dual, Theta, None, 0.0)
        self.floor = KINK * size

    def moments(self, K: np.ndarray) -> tuple[float, np.ndarray]:
        """Constant and slope of the bound of v_i(K)."""
        if not K.any():
            return self.constant, self.slope
        return self.objective._sum(part_moments, self.dual, self.Theta, K, self.floor)[:2]

    def gram(self) -> np.ndarray:
        """Gram matrix of the features, weighted with room_i."""
        return self.objective._sum(part_gram, self.Theta, self.floor)

    def mixed_bound(self, Theta: np.ndarray, deadline: Deadline, target: float) -> Bound:
        """Zero: decisions of single rows are not available."""
        return ZERO_BOUND
