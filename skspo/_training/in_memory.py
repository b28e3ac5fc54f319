"""The training problem with all rows in memory."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import null_space
from scipy.sparse import csr_array, issparse

from .._utils.limits import BLOCK_NUMBERS, PREPARATION, Deadline, TimeIsUp, share_of_time
from .._utils.scaling import check_offset_size, check_units, largest, power_of_two
from ..losses import Loss
from ..regions._rows import ALL_ROWS
from ..regions.base import Region
from ..regions.capabilities import equalities_of, project_visible
from .design import Design, Intercept, SharedDesign, apply_model
from .inputs import known_in
from .mixture import mixed_bound
from .objective import (
    Bound,
    Coordinates,
    DecisionsAt,
    Dual,
    LinearObjective,
    Penalty,
    Undecided,
    sample_step,
)
from .run import Memory
from .sparse import SparseDesign

#: relative difference below which costs of decisions are equal
ROUNDING = 4.0 * float(np.finfo(float).eps)

#: added to |c - 2 c_hat|, relative to the largest one, before it is inverted
KINK = 1e-9


#: rows may be left out of a search if their weights are at most this share of the mean weight: nearly equal weights
#: cause no trouble
LIGHT = 1e-3


class Given(NamedTuple):
    """Features and offset (to be minimized) of all rows as the user has them, and the rows of the objective."""

    X: np.ndarray | csr_array
    offset: np.ndarray | None
    rows: np.ndarray


def region_normals(region: Region, d: int, known: np.ndarray) -> np.ndarray:
    """Orthonormal directions of coefficients that are not trained, shape (m, d).

    Those in which decisions never vary, unless there is no time to find them, and last the unit vectors of known
    costs, to which the others are orthogonal.
    """
    try:
        with share_of_time(PREPARATION):
            normals = equalities_of(region, d)
    except TimeIsUp:
        normals = np.zeros((0, d))
    if not known.size:
        return normals
    if normals.size:
        normals = null_space(normals[:, known].T).T @ normals
        normals[:, known] = 0.0
    return np.concatenate([normals, np.eye(d)[known]])


def with_known(offset: np.ndarray | None, known: np.ndarray, C: np.ndarray) -> np.ndarray | None:
    """Offset in which the known costs are those of ``C``."""
    if not known.size:
        return offset
    offset = np.zeros(C.shape) if offset is None else offset.copy()
    offset[:, known] = C[:, known]
    return offset


def merge_rows(
    sample_weight: np.ndarray | None, *arrays: np.ndarray | csr_array | None
) -> tuple[np.ndarray, np.ndarray]:
    """Drop rows of weight zero, merge rows that are equal in all of the arrays, and sort.

    A row of weight two and a repeated row are then exactly the same problem.  The optimum of a linear program need not
    be unique, so only equal input guarantees equal results.  Returns one row of each set of equal rows, and their total
    weight.
    """
    given = [array for array in arrays if array is not None]
    weight = np.ones(given[0].shape[0]) if sample_weight is None else sample_weight
    keep = np.flatnonzero(weight > 0)
    sparse = [array[keep] for array in given if issparse(array)]
    rows = np.concatenate([array[keep] for array in given if not issparse(array)], axis=1)
    # Sort by one number per row; only if there are ties, by all columns.
    key = (rows * np.cos(np.arange(1.0, rows.shape[1] + 1.0))).sum(axis=1)
    keys = [key, *(X @ np.cos(np.arange(1.0, X.shape[1] + 1.0)) for X in sparse)]
    order = np.lexsort(keys)
    if (np.diff(key[order]) == 0).any():
        order = np.lexsort((*rows.T[::-1], *keys))
    rows = rows[order]
    new = np.ones(rows.shape[0], dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    for X in sparse:
        X = X[order]
        difference = abs(X[1:] - X[:-1])
        new[1:] |= difference.max(axis=1).toarray().ravel() > 0 if len(new) > 1 else False
    weight = np.add.reduceat(weight[keep][order], np.flatnonzero(new))
    return keep[order[new]], weight


class InMemoryObjective(LinearObjective):
    """Mean loss of a linear model plus its penalty, for rows in memory.

    X has shape (n, p), or (n, d p) for a shared model, in which one coefficient vector predicts all costs.  y are costs
    or values as the user has them, and the offset is the known part of the costs, which is added to predictions.  The
    region of the loss has been validated by ``check_region``.  ``coordinates`` are those of an earlier objective; None
    means that they are computed from the data.  With ``standardized`` the penalty is on the coefficients of
    standardized features and normalized costs.  ``possible`` says which costs exist; the others are 0.

    ``C`` are costs to be minimized, projected, in units of ``cost_scale``, and ``W`` their optimal decisions.  The sum
    of ``weight`` is one.  With ``undecided`` the time limit was reached before W was computed: no loss can be evaluated
    then.
    """

    in_memory = True
    undecided = False
    #: data as the user has them; None of some of the costs, and of rows in chunks
    _given: Given | None = None

    def __init__(
        self,
        loss: Loss,
        X: np.ndarray | csr_array,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        offset: np.ndarray | None = None,
        alpha: float = 0.0,
        l1_ratio: float = 0.0,
        prior: str = "zero",
        fit_intercept: bool = True,
        shared: bool = False,
        coordinates: Coordinates | None = None,
        standardized: bool = False,
        possible: np.ndarray | None = None,
    ) -> None:
        assert loss.region is not None
        rows, weight = merge_rows(sample_weight, X, y, offset, loss.region._row_table(X.shape[0]))
        given = Given(X, None if offset is None else loss.region.to_min(offset), rows)
        X, y, region = X[rows], y[rows], loss.region.take(rows)
        weight = weight / weight.sum()
        C = region.to_min(y)
        possible = None if possible is None else possible[rows]
        known = None if offset is None else region.to_min(offset[rows])
        kind = SharedDesign if shared else SparseDesign if issparse(X) else Design
        known_costs = known_in(region, y)
        design = kind(
            X,
            weight,
            region_normals(region, y.shape[1], known_costs),
            fit_intercept=fit_intercept,
            center=standardized or prior == "zero",
            standardization=None if coordinates is None else coordinates.standardization,
        )
        design.known = known_costs
        if coordinates is None:
            coordinates = derive_coordinates(design, X, C, known, standardized, possible, with_ridge=prior == "ridge")
        super().__init__(loss, region, design, coordinates, Penalty(alpha, l1_ratio, prior, standardized))
        known = with_known(known, known_costs, C)
        known = None if known is None else self.normalized(known, possible)
        check_offset_size(known)
        self._set_rows(region, design, weight, self.normalized(C, possible), known, None)
        self._given = given
        try:
            self._W = region.solve_min(C) if loss.needs_decisions else None
        except TimeIsUp:
            self.undecided = True

    @classmethod
    def without_rows(
        cls, loss: Loss, region: Region, design: Design, coordinates: Coordinates, penalty: Penalty
    ) -> Self:
        """Return an objective without rows; ``with_rows`` adds rows."""
        self = cls.__new__(cls)
        LinearObjective.__init__(self, loss, region, design, coordinates, penalty)
        nothing = np.zeros((0, design.normals.shape[1]))
        self._set_rows(region, design, np.zeros(0), nothing, None, nothing)
        return self

    def _set_rows(
        self,
        region: Region,
        design: Design,
        weight: np.ndarray,
        C: np.ndarray,
        offset: np.ndarray | None,
        W: np.ndarray | None,
    ) -> None:
        """Set the arrays of rows: normalized costs and offset, and optimal decisions W."""
        self.region, self.design, self.weight, self._W = region, design, weight, W
        self._reference_losses = {}
        self._given = None
        #: by hash of Theta: whether the loss is smaller without the hidden component (see ``_stored``)
        self._bare: dict[int, bool] = {}
        #: normalized costs and offset; the loss may replace them by ``C`` and ``offset``
        self.plain_costs, self.plain_offset = C, offset
        self.C, self.offset = self.loss.absorb(C, offset)

    def normalized(self, C: np.ndarray, possible: np.ndarray | None = None) -> np.ndarray:
        """Costs without their hidden component, in units of the typical cost."""
        visible = project_visible(C, self.cost_normals, possible) / self.cost_scale
        if self.coordinates.costs_constant:
            visible[np.abs(visible) <= ROUNDING * np.linalg.norm(C / self.cost_scale, axis=1, keepdims=True)] = 0.0
        return visible

    @property
    def W(self) -> np.ndarray:
        """Optimal decisions; an error if the loss does not need them, or if there was no time to compute them."""
        assert self._W is not None
        return self._W

    # -- the same problem on other rows --------------------------------------------------------------------------------

    @property
    def light(self) -> np.ndarray:
        """Whether the weight of each row is so small that the row may be left out of a search."""
        return self.weight <= LIGHT * self.weight.mean()

    def take(self, rows: slice | np.ndarray, share: float) -> Self:
        """Return the same problem on some of the rows, in the same coordinates, their weights divided by ``share``."""
        weight = self.weight[rows] / share
        other = copy(self)
        other._set_rows(
            self.region.take(rows),
            self.design.thinned(rows, weight),
            weight,
            self.plain_costs[rows],
            None if self.plain_offset is None else self.plain_offset[rows],
            None if self._W is None else self._W[rows],
        )
        return other

    def thinned(self, step: int, first: int = 0) -> Self:
        """Return the same problem with every ``step``-th row only, in the same coordinates."""
        rows = slice(first, None, step)
        return self.take(rows, float(self.weight[rows].sum()))

    @property
    def bytes_to_load(self) -> float:
        """Zero: the rows are in memory."""
        return 0.0

    def loaded(self) -> Self:
        """Return the objective itself."""
        return self

    def sampled(self, part: int = 0, parts: int = 1) -> Self | None:
        """Return the same problem on one of ``parts`` parts of a sample of the rows; None if there are few rows."""
        step = sample_step(self.n_samples)
        return None if step is None else self.thinned(step * parts, part * step)

    def with_rows(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        offset: np.ndarray | None = None,
        W: np.ndarray | None = None,
        numbers: range = ALL_ROWS,
    ) -> Self:
        """Return the same problem on other rows, in the same coordinates.

        Weights are not normalized: those of all parts of a data set sum to one.  ``W`` are the optimal decisions, if
        they are known.  ``numbers`` are the row numbers for error messages.
        """
        region = self.region._numbered(numbers)
        C = region.to_min(y)
        known = with_known(None if offset is None else region.to_min(offset), self.design.known, C)
        known = None if known is None else self.normalized(known)
        if W is None and self.loss.needs_decisions:
            W = region.solve_min(C)
        other = copy(self)
        other._set_rows(region, self.design.with_rows(X, weight), weight, self.normalized(C), known, W)
        return other

    def with_design(
        self, design: Design, C: np.ndarray, offset: np.ndarray | None, W: np.ndarray | None, numbers: range
    ) -> Self:
        """Return the same problem on other rows, which are already in the coordinates of solvers."""
        other = copy(self)
        other._set_rows(self.region._numbered(numbers), design, design.weight, C, offset, W)
        return other

    def of_costs(self, columns: np.ndarray, region: Region) -> Self:
        """Return the part of some of the costs, in the same coordinates, for this factor of the region, a product."""
        region = region._named(self.region._row_names)
        design = copy(self.design)
        design.known = np.flatnonzero(np.isin(columns, self.design.known))
        design.normals = region_normals(region, columns.size, design.known)
        coordinates = self.coordinates.columns(columns)
        other = copy(self)
        penalty = Penalty(self.alpha, self.l1_ratio, self.prior_name, self.standardized)
        LinearObjective.__init__(other, self.loss, region, design, coordinates, penalty)
        arrays = (self.plain_costs, self.plain_offset, self._W)
        C, offset, W = (None if array is None else np.ascontiguousarray(array[:, columns]) for array in arrays)
        assert C is not None
        other._set_rows(region, design, self.weight, C, offset, W)
        return other

    def with_loss(self, loss: Loss, region: Region | None = None) -> Self:
        """Return the same data and decisions W with another loss, of the same region or of one that contains it."""
        other = copy(self)
        other.loss = loss
        other._set_rows(region or self.region, self.design, self.weight, self.plain_costs, self.plain_offset, self._W)
        other._given = self._given
        return other

    # -- sums over rows ------------------------------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Number of distinct rows."""
        return self.C.shape[0]

    def predict(self, Theta: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Predicted costs of the given rows, offset included, in the units of ``C``."""
        C_hat = self.design.predict(Theta, rows)
        return C_hat if self.offset is None else C_hat + self.offset[rows]

    def mean_loss(self, Theta: np.ndarray) -> float:
        """Weighted loss at Theta, without the penalty."""
        if self._given is None or self.loss.continuous:
            return float(self.weight @ self.losses(Theta))
        found = [self._loss_of(self._given, *self._to_user(whole)) for whole in self._stored(Theta)]
        best = int(np.argmin(found))
        self._bare[hash(Theta.tobytes())] = best == 1
        return found[best]

    def losses(self, Theta: np.ndarray) -> np.ndarray:
        """Loss of each row at Theta."""
        return self.loss.value_min(self.region, self.C, self.predict(Theta), self._W)

    def to_user(self, Theta: np.ndarray) -> tuple[np.ndarray, Intercept]:
        """Coefficients and intercept in the user's units and sense, as ``mean_loss`` has evaluated them."""
        return self._to_user(self._stored(Theta)[self._bare.get(hash(Theta.tobytes()), False)])

    def _stored(self, Theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Theta as it is stored, and without the hidden component.

        If predictions are tied, the decision depends on rounding errors, which differ between units.  So a loss that is
        not continuous is evaluated at coefficients in the user's units.  The hidden component has rounding errors of
        its own and is left out if the loss is smaller without it.
        """
        return self.canonical(Theta) + self._hidden, self.design.visible(Theta, self.free)

    def _loss_of(self, given: Given, coef: np.ndarray, intercept: Intercept) -> float:
        """Weighted SPO loss, the only one that is not continuous, of coefficients in the user's units."""
        C_hat = self.region.to_min(apply_model(given.X, coef, intercept))
        C_hat = (C_hat if given.offset is None else C_hat + given.offset)[given.rows]
        # Decisions are made with predictions that are clipped to ``cost_bounds``.
        regret = np.einsum("ij,ij->i", self.C, self.region._decide_min(C_hat) - self.W)
        return float(self.weight @ regret)

    def mean_decision_cost(self, Theta: np.ndarray) -> float:
        """Weighted cost of the decisions, without the penalty."""
        C_hat = self.design.predict(Theta)
        C_hat = C_hat if self.plain_offset is None else C_hat + self.plain_offset
        W = self.region.solve_min(C_hat * self.cost_scale)
        return float(self.weight @ np.einsum("ij,ij->i", self.plain_costs, W))

    def loss_gradient(self, Theta: np.ndarray, memory: Memory | None = None) -> tuple[float, np.ndarray]:
        """Weighted loss and its subgradient in Theta."""
        value, G = self.loss.value_gradient_min(self.region, self.C, self.predict(Theta), self._W, memory)
        return float(self.weight @ value), self.design.adjoint(G * self.weight[:, None])

    def batch_gradient(self, Theta: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Subgradient in Theta of the loss of some rows, with these weights."""
        W = None if self._W is None else self._W[rows]
        G = self.loss.value_gradient_min(self.region.take(rows), self.C[rows], self.predict(Theta, rows), W)[1]
        return self.design.adjoint(G * weight[:, None], rows)

    def cuts(
        self, Theta: np.ndarray, edges: np.ndarray, memory: Memory | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Weighted loss, and a cut for each group of rows."""
        value, b, A = 0.0, np.zeros(len(edges) - 1), np.zeros((len(edges) - 1, *self.shape))
        for rows, region, block_memory in self._blocks({} if memory is None else memory):
            W = None if self._W is None else self._W[rows]
            losses, G = self.loss.value_gradient_min(region, self.C[rows], self.predict(Theta, rows), W, block_memory)
            value += float(self.weight[rows] @ losses)
            G *= self.weight[rows, None]
            first = int(np.searchsorted(edges, rows.start, side="right")) - 1
            last = int(np.searchsorted(edges, rows.stop, side="left"))
            for g in range(first, last):
                mine = slice(max(edges[g], rows.start), min(edges[g + 1], rows.stop))
                share = G[mine.start - rows.start : mine.stop - rows.start]
                b[g] -= 0.5 * float(np.vdot(self.C[mine], share))
                A[g] += self.design.adjoint(share, mine)
        return value, b, A

    def _blocks(self, memory: Memory) -> list[tuple[slice, Region, Memory]]:
        """Blocks of rows that fit into the processor cache, with their regions and caches of the oracle."""
        if "blocks" not in memory:
            n = self.n_samples
            # An oracle that is a solver gets all rows at once, because it may solve several at the same time.
            size = n if self.region.oracle_is_solver else max(BLOCK_NUMBERS // self.C.shape[1], 1)
            slices = [slice(start, min(start + size, n)) for start in range(0, n, max(size, 1))]
            memory["blocks"] = [
                (rows, self.region if len(slices) == 1 else self.region.take(rows), {}) for rows in slices
            ]
        return memory["blocks"]

    def undecided_rows(self, Thetas: list[np.ndarray], most: int) -> Undecided | None:
        """Rows whose decisions differ between these models."""
        differ, constant, slope = self.compare_decisions(Thetas)
        if differ.size > most:
            return None
        return Undecided(self.take(differ, 1.0), constant, slope)

    def compare_decisions(self, Thetas: list[np.ndarray]) -> tuple[np.ndarray, float, np.ndarray]:
        """Rows whose decisions differ between these models; constant and slope of the cut of the others."""
        found, constant, slope = [np.zeros(0, dtype=np.intp)], 0.0, np.zeros(self.shape)
        for rows, region, _ in self._blocks({}):
            C = self.C[rows]
            first, *others = (region.solve_min(2.0 * self.design.predict(Theta, rows) - C) for Theta in Thetas)
            differ = np.zeros(len(C), dtype=bool)
            for V in others:
                differ |= (V != first).any(axis=1)
            found.append(rows.start + np.flatnonzero(differ))
            difference = (first - self.W[rows]) * self.weight[rows, None]
            difference[differ] = 0.0
            constant += float(np.einsum("ij,ij->", C, difference))
            slope -= 2.0 * self.design.adjoint(difference, rows)
        return np.concatenate(found), constant, slope

    # -- the certificate -----------------------------------------------------------------------------------------------

    def decisions(self, Theta: np.ndarray, memory: Memory | None = None) -> np.ndarray:
        """Decisions w*(2 c_hat - c), which attain the support function at Theta."""
        return self.region.solve_min(2.0 * self.design.predict(Theta) - self.C, memory)

    def dual_value(self, V: np.ndarray, Theta: np.ndarray) -> Bound:
        """Lower bound proved by decisions V in conv(S), if Theta is the result."""
        return self.dual_value_from_moments(*self.moments(V), Theta)

    def moments(self, V: np.ndarray) -> tuple[float, np.ndarray]:
        """Constant and slope of the bound of decisions V."""
        difference = (V - self.W) * self.weight[:, None]
        return float(np.einsum("ij,ij->", self.C, difference)), -2.0 * self.design.adjoint(difference)

    def moves(self, dual: Dual, Theta: np.ndarray) -> InMemoryMoves:
        """Dual decisions that can be moved; Theta is the result."""
        return InMemoryMoves(self, dual, Theta)


class InMemoryMoves:
    """Dual decisions v_i(K) = repair(v_i + room_i K z_i), for rows in memory; Theta is the result.

    K has the shape of the coefficients, and ``repair`` projects into conv(S); not every region can.
    Moving v_i away from the maximizer of u.v, u = c - 2 c_hat, costs about |u_i| times the squared distance.  Therefore
    samples with u_i near 0, the kink of the loss, are moved first.  ``floor`` is added to |u_i|; None means a small
    share of the largest |u_i|.
    """

    def __init__(self, objective: InMemoryObjective, dual: Dual, Theta: np.ndarray, floor: float | None = None) -> None:
        self.objective = objective
        V = objective.decisions(dual.Theta) if isinstance(dual, DecisionsAt) else dual
        self._repair = getattr(objective.region, "repair", None)
        # Without ``repair``, V are decisions of the oracle or their averages, which are in conv(S).
        self.can_move = self._repair is not None
        if self._repair is not None:
            try:
                V = self._repair(V)
            except RuntimeError:
                V = objective.W  # a back-end failed to repair the decisions
        self.V = V
        self.size = np.linalg.norm(objective.C - 2.0 * objective.design.predict(Theta), axis=1)
        self.room = 1.0 / (self.size + (KINK * (float(self.size.max(initial=0.0)) or 1.0) if floor is None else floor))

    def moments(self, K: np.ndarray) -> tuple[float, np.ndarray]:
        """Constant and slope of the bound of v_i(K)."""
        if self._repair is None or not K.any():
            return self.objective.moments(self.V)
        return self.objective.moments(self._repair(self.V + self.room[:, None] * self.objective.design.predict(K)))

    def gram(self) -> np.ndarray:
        """Gram matrix of the features, weighted with room_i."""
        return self.objective.design.gram(self.room)

    def mixed_bound(self, Theta: np.ndarray, deadline: Deadline, target: float) -> Bound:
        """Bound of mixtures with other decisions."""
        return mixed_bound(self.objective, self.V, Theta, deadline, target)


def derive_coordinates(
    design: Design,
    X: np.ndarray,
    C: np.ndarray,
    known: np.ndarray | None,
    standardized: bool,
    possible: np.ndarray | None = None,
    *,
    with_ridge: bool,
) -> Coordinates:
    """Units of features and costs, and least squares and the ridge fit in them."""
    size, whole = (_typical_size(costs, design.weight) for costs in (project_visible(C, design.normals, possible), C))
    same = size <= ROUNDING * whole
    cost_scale = (whole if same else size) or 1.0
    check_units(design.standardization, cost_scale)
    unknown = C if known is None else C - known
    unit = power_of_two(largest(unknown))
    Theta = design.least_squares(X, unknown / unit, possible, standardized=standardized) * (unit / cost_scale)
    ridge = design.split(design.ridge(X, unknown / unit, possible) * (unit / cost_scale)) if with_ridge else None
    coordinates = Coordinates(design.standardization, cost_scale, *design.split(Theta), same, ridge)
    return coordinates if known is not None or design.shared else coordinates.without_rounding()


def _typical_size(C: np.ndarray, weight: np.ndarray) -> float:
    """Root mean square of the norms of the rows."""
    # In units of the largest cost (a power of two: exact), so that squares neither overflow nor vanish.
    unit = power_of_two(largest(C))
    return float(unit * np.sqrt(weight @ np.square(C / unit).sum(axis=1)))
