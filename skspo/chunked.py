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

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import lstsq
from sklearn.linear_model import LinearRegression

from .baselines import mean_cost
from .chunks import Chunk, ChunkedData
from .design import LinearDesign, SharedDesign, Standardization
from .limits import check_units, largest, power_of_two
from .losses import Loss
from .objective import (
    ENOUGH_SAMPLES,
    LEAST_STEP,
    MANY_SAMPLES,
    ROUNDING,
    SAMPLE_STEP,
    Bound,
    Coordinates,
    LinearObjective,
)
from .regions._row_names import ALL_ROWS
from .regions.base import Region

#: corrections of the moments of dual decisions; each costs a pass
MAX_CORRECTIONS = 20


#: numbers (features, costs and decisions) of the largest sample that is fitted in memory: 32 MB.  The fit to one row in
#: eight, itself started from one in eight of those, is so near the optimum of all that few passes are left to do.
SAMPLE_ELEMENTS = 2**22


def add(*results: Any) -> Any:
    """Sum of the results of parts; None is that of a part without rows."""
    total: Any = None
    for result in results:
        if total is None:
            total = result
        elif isinstance(result, tuple) and not hasattr(result, "_fields"):
            total = tuple(a + b for a, b in zip(total, result, strict=True))
        elif result is not None:
            total = total + result
    return total


def triangle(table: np.ndarray) -> np.ndarray:
    """R of the QR factorisation."""
    R: Any = np.linalg.qr(table, mode="r")
    return R


# -- the survey --------------------------------------------------------------------------------------------------------


class Survey(NamedTuple):
    """What is to be known of the data before training; ``+`` is the survey of both."""

    sizes: tuple[int, ...]  # rows of each part
    factor: np.ndarray  # R of sqrt(weight) [1 X-first C U], one row per feature vector; U = C - offset, if there is one
    weight: float
    size: float  # Frobenius norm of the visible part of sqrt(weight) C
    largest: np.ndarray  # of |X|, by feature
    mean: np.ndarray  # of the costs less their known part, in the user's sense

    def __add__(self, other: Survey) -> Survey:  # type: ignore[override]
        """Survey of both."""
        if self.factor.shape[1] != other.factor.shape[1]:
            raise ValueError("Either all chunks have an offset, or none.")
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0 else 0.0
        return Survey(
            self.sizes + other.sizes,
            triangle(np.concatenate([self.factor, other.factor])),
            weight,
            float(np.hypot(self.size, other.size)),
            np.maximum(self.largest, other.largest),
            (1.0 - share) * self.mean + share * other.mean,
        )


def first_row(chunk: Chunk) -> tuple[np.ndarray, np.ndarray] | None:
    """First row of a chunk, to which all features are compared."""
    if chunk.n_rows == 0:
        return None
    rows = chunk.head().checked()
    return rows.X, rows.y


def survey_chunk(
    chunk: Chunk, reference: np.ndarray, normals: np.ndarray, to_min: Callable[[np.ndarray], np.ndarray], shared: bool
) -> Survey:
    """Survey of one chunk, after checking it."""
    X, y, weight, offset = chunk.checked()
    if X.shape[1] != reference.size or y.shape[1] != normals.shape[1]:
        raise ValueError(
            f"All chunks must have the same columns: the first has {reference.size} features and {normals.shape[1]} "
            f"costs, another {X.shape[1]} and {y.shape[1]}."
        )
    n, d = y.shape
    C = to_min(y)
    visible = C - (C @ normals.T) @ normals if normals.size else C
    # In units of the largest cost (a power of two: exact), so that squares neither overflow nor vanish.
    unit = np.ldexp(1.0, np.frexp(np.abs(visible).max(initial=0.0))[1] - 1)
    size = float(unit * np.sqrt(weight @ np.square(visible / unit).sum(axis=1))) if unit > 0 else 0.0
    targets = [C] if offset is None else [C, C - to_min(offset)]
    rows, root = X - reference, np.sqrt(weight)
    if shared:
        rows, root = rows.reshape(n * d, -1), np.repeat(root, d) / np.sqrt(d)
        targets = [target.reshape(-1, 1) for target in targets]
        X = X.reshape(n * d, -1)
    table = np.concatenate([np.ones((rows.shape[0], 1)), rows, *targets], axis=1) * root[:, None]
    mean = mean_cost(y, weight, offset) if weight.any() else np.zeros(d)
    return Survey((n,), triangle(table), float(weight.sum()), size, np.abs(X).max(axis=0, initial=0.0), mean)


def _column_norms(rows: np.ndarray) -> np.ndarray:
    """Lengths of columns, whose squares may overflow or vanish."""
    units = np.array([power_of_two(largest(column)) for column in rows.T])
    return units * np.linalg.norm(rows / units, axis=0)


def _coordinates(
    survey: Survey, reference: np.ndarray, normals: np.ndarray, *, fit_intercept: bool, center: bool, shared: bool
) -> Coordinates:
    """The same coordinates as those of local data, from their survey."""
    d, p = normals.shape[1], survey.largest.size
    R = survey.factor / np.sqrt(survey.weight)
    ones, X = R[:, :1], R[:, 1 : p + 1]
    target = R[:, -1:] if shared else R[:, -d:]
    raw = X + ones * reference[:p]  # what was subtracted comes back
    mean = raw[0] / ones[0, 0]
    deviation, below = X[1:], target[1:]
    rounding = 16 * np.finfo(float).eps * survey.largest
    # Least squares would take what rounding leaves of a constant column for a feature.
    deviation = np.where(_column_norms(deviation) > rounding, deviation, 0.0)
    centred = fit_intercept and center
    spread = _column_norms(deviation if centred else raw)
    used = spread > rounding
    standardization = Standardization(mean if centred else np.zeros(p), np.where(used, spread, 1.0), used)
    costs = R[:, p + 1 : p + 2] * np.sqrt(d) if shared else R[:, p + 1 : p + 1 + d]
    unit = power_of_two(largest(costs))
    size, whole = survey.size / np.sqrt(survey.weight), unit * float(np.linalg.norm(costs / unit))
    same = size <= ROUNDING * whole
    cost_scale = (whole if same else size) or 1.0
    check_units(standardization, cost_scale)
    cond = LinearRegression().tol  # the least-squares fit of local data is scikit-learn's, with its cut-off
    if fit_intercept:
        coef = lstsq(deviation, below / unit, cond=cond)[0].T * unit
        intercept = target[0] / ones[0, 0] - coef @ mean
    else:
        coef = lstsq(raw, target / unit, cond=cond)[0].T * unit
        intercept = np.zeros(target.shape[1])
    design = (SharedDesign if shared else LinearDesign)(
        np.zeros((1, d * p if shared else p)),
        np.ones(1),
        normals,
        fit_intercept=fit_intercept,
        center=center,
        standardization=standardization,
    )
    Theta = design.from_user(coef[0], float(intercept[0])) if shared else design.from_user(coef, intercept)
    coordinates = Coordinates(standardization, float(cost_scale), *design.split(Theta / cost_scale), bool(same))
    known = R.shape[1] > p + 1 + costs.shape[1]
    return coordinates if known or shared else coordinates.without_rounding()


# -- where the rows live -----------------------------------------------------------------------------------------------


def build_part(
    template: LinearObjective, chunk: Chunk, total: float, numbers: range, W: np.ndarray | None = None
) -> LinearObjective:
    """Part of the objective that belongs to a chunk, the rows with these numbers, with the optimal decisions."""
    X, y, weight, offset = chunk.arrays()
    if y.shape[0] == 0:
        W = y  # nothing to ask an oracle
    return template.with_rows(X, y, weight / total, offset, W, numbers)


class Every(NamedTuple):
    """Every ``step``-th of all rows, which together have this share of the weight."""

    step: int = 1
    share: float = 1.0

    def of(self, start: int) -> tuple[slice, int]:
        """Which rows of a part whose first one is ``start``, and how many of them came before."""
        return slice(-start % self.step, None, self.step), -(-start // self.step)


ALL = Every()


class Rows(ABC):
    """Sums over rows, computed where they are."""

    #: rows of each part, known after the survey
    sizes: tuple[int, ...] = ()

    @abstractmethod
    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """First row of X and of y."""

    @abstractmethod
    def survey(self, *args: Any) -> Survey:
        """Sum of ``survey_chunk(chunk, *args)`` over all chunks."""

    @abstractmethod
    def prepare(self, template: LinearObjective, total: float) -> None:
        """Make the parts of the objective and their optimal decisions."""

    @abstractmethod
    def reduce(self, task: Callable[..., Any], *args: Any, every: Every = ALL) -> Any:
        """Sum of ``task(part, first row of the part, *args)`` over all parts, in a fixed order.

        With ``every`` the parts have some of the rows only, which are counted as if there were no others.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back what was kept."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class LocalRows(Rows):
    """Chunks that are read one after the other; optimal decisions are kept in a temporary file.

    The file has no name, so that the system takes it back however the process ends.

    Parameters
    ----------
    data : ChunkedData
    """

    def __init__(self, data: ChunkedData) -> None:
        self.data = data
        self._scratch: Any = None
        self._kept: list[tuple[int, np.dtype, tuple[int, ...]]] = []  # where and what a chunk's decisions are

    def _chunks(self) -> Iterator[Chunk]:
        return (chunk for chunk in self.data if chunk.n_rows)

    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """First row of the first chunk."""
        for chunk in self._chunks():
            row = first_row(chunk)
            assert row is not None
            return row
        raise ValueError("There are no rows in the chunks: at least one is needed.")

    def survey(self, *args: Any) -> Survey:
        """One pass over the raw data."""
        total: Any = None
        names: Any = None
        for chunk in self._chunks():
            mine = [list(getattr(table, "columns", ())) for table in (chunk.X, chunk.y)]
            names = mine if names is None else names
            for first, other in zip(names, mine, strict=True):
                if first != other:
                    raise ValueError(f"All chunks must have the same columns: the first has {first}, another {other}.")
            total = add(total, survey_chunk(chunk, *args))
        self.sizes = total.sizes
        return total

    def prepare(self, template: LinearObjective, total: float) -> None:
        """One pass over the raw data, one call of the oracle per chunk."""
        self._template, self._total = template, total
        self._scratch = tempfile.TemporaryFile(buffering=0)  # whatever cannot be written is known at once
        start = 0
        for chunk in self._chunks():
            region = template.region.numbered(ALL_ROWS[start:])
            W = region.solve_min(region.to_min(chunk.arrays().y))
            start += len(W)
            # Many regions decide yes or no: then a byte is enough.
            small = W.astype(np.int8) if np.abs(W).max(initial=0.0) <= 127 else W
            self._keep(small if (small == W).all() else W)

    def _keep(self, W: np.ndarray) -> None:
        """Append decisions to the file."""
        self._kept.append((self._scratch.tell(), W.dtype, W.shape))
        left = np.ascontiguousarray(W).data.cast("B")
        try:
            while left:
                left = left[self._scratch.write(left) :]
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: the optimal decisions, {W.nbytes // W.shape[0]} bytes for each of "
                f"{sum(self.sizes)} rows, do not fit into {tempfile.gettempdir()}. Set the environment variable TMPDIR "
                "to a folder with more room, and start Python again",
            ) from error

    def _decisions(self, k: int) -> np.ndarray:
        """Decisions of a chunk, from the file."""
        position, dtype, shape = self._kept[k]
        self._scratch.seek(position)
        return np.fromfile(self._scratch, dtype, int(np.prod(shape))).reshape(shape)

    def reduce(self, task: Callable[..., Any], *args: Any, every: Every = ALL) -> Any:
        """One pass over the data."""
        total, start = None, 0
        for k, (chunk, size) in enumerate(_together(self._chunks(), self.sizes)):
            rows, before = every.of(start)
            numbers = ALL_ROWS[start:][rows]
            start += size
            W = self._decisions(k)[rows].astype(np.float64)
            if len(W):
                part = build_part(self._template, chunk.take(rows), every.share * self._total, numbers, W)
                total = add(total, task(part, before, *args))
        return total

    def close(self) -> None:
        """Give the temporary file back."""
        if self._scratch is not None:
            self._scratch.close()


def _together(chunks: Iterable[Chunk], sizes: tuple[int, ...]) -> Iterator[tuple[Chunk, int]]:
    """Chunks and their sizes, which must be those of the first pass."""
    expected = iter(sizes)
    for chunk in chunks:
        size = next(expected, 0)
        if chunk.n_rows != size:
            break
        yield chunk, size
    else:
        if next(expected, None) is None:
            return
    raise ValueError(
        "The chunks had other numbers of rows when they were read again: the source must give the same rows in the "
        "same order every time."
    )


# -- tasks: functions of a part of the objective -----------------------------------------------------------------------


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
        V = part.region.repair(V + room[:, None] * part.design.predict(K))  # type: ignore[attr-defined]
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


# -- the objective -----------------------------------------------------------------------------------------------------


class DecisionsAt(NamedTuple):
    """Stands for the decisions w*(2 c_hat - c) of all rows at Theta, which are nowhere together."""

    Theta: np.ndarray


class ChunkedObjective(LinearObjective):
    """Mean loss of a linear model plus its penalty, by sums over rows that live elsewhere.

    Solvers with ``sums_suffice`` use it like a ``LinearObjective``; whatever would look at single rows is missing.

    Parameters
    ----------
    loss : Loss
    region : Region
        Validated by ``check_region``; the same for all rows.
    rows : Rows
    alpha, l1_ratio, prior, fit_intercept, shared
        As in ``LinearObjective``.
    """

    rows_at_hand = False

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
        coordinates = _coordinates(
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
        local.W = sample.W if self.loss.decides else None
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
        return self._cancel_residual(moments, gram_pinv, Theta, target, most)
