"""The training problem of every linear estimator: data, loss, penalty and intercept in one object.

Conventions
-----------
    min_B  sum_i a_i l(B x_i, c_i)  +  alpha ( l1_ratio |B - B0|_1 + (1 - l1_ratio)/2 |B - B0|_F^2 ),   sum_i a_i = 1

    Internally costs are minimised (``sense`` is applied here, once), divided by their typical size ``cost_scale``, and
    freed from the component that decisions cannot see; features are standardised (see ``design``).  With s_k the scale
    of feature k the penalty of Theta_jk = B_jk s_k / cost_scale becomes

        l1_k |Theta_jk - Theta0_jk| + l2_k/2 (Theta_jk - Theta0_jk)^2,
        l1_k = alpha l1_ratio / s_k,   l2_k = alpha (1 - l1_ratio) cost_scale / s_k^2

    so that every number a solver sees is of order one.  ``scale`` turns objective values back into cost units.

    ``standardized=True`` penalises Theta itself, l1_k = alpha l1_ratio and l2_k = alpha (1 - l1_ratio), with the
    features centred where there is an intercept: alpha is then a number without units, and no change of the units of
    costs or features, nor of the origin of a feature, changes the model's decisions.

The dual bound (SPO+ only).  For any decisions v_i in S, support_S(u) >= u.v_i, hence

    objective(Theta) >= sum_i a_i c_i.(v_i - w_i) + <Theta, G> + penalty(Theta),   G = 2 sum_i a_i (w_i - v_i) z_i^T

and minimising the right-hand side over Theta is elementary where there is a ridge: the bound then holds for all Theta.
Where there is none it is -infinity unless G vanishes (or, with a lasso, |G| <= l1).  A remaining residual R is charged
as radius |R|_F, and the bound then holds within that radius of the *least-squares* Theta: for all models whose
coefficients, times the spread of their features, differ from least squares by at most ``radius`` typical costs.  The
centre does not depend on the solver, so a poor result cannot make its own bound look good.  The radius is at least
``CERTIFICATE_RADIUS`` and more than twice the distance of the returned model.  Solvers move the v_i until R vanishes up
to rounding; the charge is then negligible, and ``Bound.radius`` is as large as a charge of ``FREE_CHARGE`` allows.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from .._utils.deadline import Deadline, TimeIsUp
from .._utils.scaling import LARGEST_PENALTY, SMALLEST_PENALTY, check_offset_size, check_units, largest, power_of_two
from ..losses import Loss
from ..regions._row_names import ALL_ROWS
from ..regions.base import Region
from .certificate import CERTIFICATE_RADIUS, DISTANCE_FACTOR, FREE_CHARGE, ZERO_BOUND, Bound, cancel_residual
from .design import LinearDesign, SharedDesign, Standardization
from .merge import merge_rows
from .mixture import mixed_bound

#: number of samples from which on a fit to some of them is a good start; one in eight is taken then, or as many as are
#: enough, but no more than one in four
MANY_SAMPLES, SAMPLE_STEP, ENOUGH_SAMPLES, LEAST_STEP = 4_000, 8, 2_000, 4

#: costs of the rows that a pass works on at a time
BLOCK_ELEMENTS = 2**17

#: costs of decisions that differ by less than this share of the costs themselves are the same
ROUNDING = 4.0 * float(np.finfo(float).eps)

#: relative gaps are measured against the objective, but never against less than this share of the zero model's loss
GAP_FLOOR = 1e-2


class Coordinates(NamedTuple):
    """The units in which a solver sees a problem, to be used again for the next chunk of a stream."""

    standardization: Standardization
    cost_scale: float
    least_squares: np.ndarray  # the least-squares fit, as solvers see it
    hidden: np.ndarray  # what is kept from them of its component that decisions cannot see
    costs_constant: bool = False  # whether all decisions cost the same, but for rounding

    def without_rounding(self) -> Coordinates:
        """Return the same without a fit to differences of costs that are nothing but rounding."""
        return self._replace(least_squares=np.zeros_like(self.least_squares)) if self.costs_constant else self


class LinearObjective:
    """Mean loss of a linear model plus its penalty, as value, subgradient and lower bound.

    Parameters
    ----------
    loss : Loss
    region : Region
        Validated by ``check_region``.
    X : ndarray of shape (n, p), or (n, d p) for a shared model
    y : ndarray of shape (n, d)
        Costs or values as the user has them.
    sample_weight : ndarray of shape (n,), optional
    offset : ndarray of shape (n, d), optional
        Known part of the costs: predictions are the offset plus what the model says.
    alpha, l1_ratio : float
    prior : {"zero", "least_squares"}
    fit_intercept : bool
    shared : bool
        Whether one coefficient vector serves all costs.
    coordinates : Coordinates, optional
        Those of an earlier objective; by default they are derived from the data.
    standardized : bool
        Whether the penalty is on the coefficients of standardised features and normalised costs.
    """

    #: whether a solver may look at single rows; else it sees sums over them (see ``chunked``)
    in_memory: bool = True

    #: whether the time was up before the optimal decisions were known: no loss can be evaluated then
    undecided: bool = False

    #: when solvers are to be done; set by the estimator before it calls one, and kept by copies
    deadline: Deadline = Deadline()

    def __init__(
        self,
        loss: Loss,
        region: Region,
        X: np.ndarray,
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
    ) -> None:
        rows, weight = merge_rows(sample_weight, X, y, offset, region.row_table(X.shape[0]))
        X, y, region = X[rows], y[rows], region.take(rows)
        self.loss, self.region = loss, region
        weight = weight / weight.sum()
        C = region.to_min(y)
        known = None if offset is None else region.to_min(offset[rows])
        prior_is_least_squares = prior == "least_squares"
        self.prior_is_least_squares, self.standardized = prior_is_least_squares, standardized
        # The component of costs along the normals changes no decision and no loss; it is fitted by least squares.
        with Deadline().enforced():  # it belongs to the region and takes a moment: no limit
            d = y.shape[1]
            self.normals = region.equalities(d) if hasattr(region, "equalities") else np.zeros((0, d))
        self.design = (SharedDesign if shared else LinearDesign)(
            X,
            weight,
            self.normals,
            fit_intercept=fit_intercept,
            center=standardized or not prior_is_least_squares,
            standardization=None if coordinates is None else coordinates.standardization,
        )
        self.weight = weight
        self.coordinates = self._derive_coordinates(X, C, known) if coordinates is None else coordinates
        self.cost_scale = self.scale = self.coordinates.cost_scale
        self.least_squares = self.coordinates.least_squares
        known = None if known is None else self._normalised(known)
        check_offset_size(known)
        self._set_costs(self._normalised(C), known)
        self.W = None
        try:
            self.W = region.solve_min(C) if loss.needs_decisions else None
        except TimeIsUp:
            self.undecided = True

        self.prior = self.least_squares if prior_is_least_squares else np.zeros_like(self.least_squares)
        #: what a solver derives from the region alone; shared by all penalties
        self.derived: dict[str, Any] = {}
        #: what the oracle found at the last coefficients, to start from at the next
        self.memory: dict[str, Any] = {}
        #: what solvers reported on the way: seconds, iteration, objective and bound, in the units of the objective
        self.history: list[tuple[float, int, float, float]] = []
        #: losses of the zero model and of least squares, computed when they are asked for
        self._reference_losses: dict[str, float] = {}
        self._set_penalty(alpha, l1_ratio)

    def _set_costs(self, C: np.ndarray, offset: np.ndarray | None) -> None:
        #: normalised costs and offset as they are; ``C`` and ``offset`` are those that the loss works with
        self.plain_costs, self.plain_offset = C, offset
        self.C, self.offset = self.loss.absorb(C, offset)

    def _set_penalty(self, alpha: float, l1_ratio: float) -> None:
        self.alpha, self.l1_ratio = alpha, l1_ratio
        q, p = self.design.n_coef, self.design.n_features
        penalized = np.ones(q, dtype=bool)
        penalized[p:] = self.prior_is_least_squares
        s, cost_scale = np.ones(q), 1.0
        if not self.standardized:
            s[:p], cost_scale = self.design.scale, self.cost_scale
        with np.errstate(over="ignore"):
            self.l1 = np.where(penalized, alpha * l1_ratio / s, 0.0)
            self.l2 = np.where(penalized, (alpha * (1.0 - l1_ratio) / s) * (cost_scale / s), 0.0)
        if not (self.l1.max(initial=0.0) <= LARGEST_PENALTY and self.l2.max(initial=0.0) <= LARGEST_PENALTY):
            raise ValueError(
                f"The penalty overflows: features of size {s.min():.1e} and costs of size {self.cost_scale:.1e} are "
                "too far apart for alpha > 0. Rescale the features, for example with StandardScaler."
            )
        self.l1, self.l2 = (np.where(x < SMALLEST_PENALTY, 0.0, x) for x in (self.l1, self.l2))
        self.free = (self.l1 == 0) & (self.l2 == 0)
        self._hidden = self.coordinates.hidden.copy()
        if alpha > 0 and not self.prior_is_least_squares:
            # The penalty decides about slopes that decisions cannot see; the free intercept keeps the mean cost.
            self._hidden[:, :p] = 0.0

    def with_penalty(self, alpha: float, l1_ratio: float) -> LinearObjective:
        """Return the same data and loss with another penalty: nothing is copied and no oracle is called."""
        other = copy(self)
        other.history = []
        other._set_penalty(alpha, l1_ratio)
        return other

    def thinned(self, step: int) -> LinearObjective:
        """Return the same problem with every ``step``-th row only, in the same coordinates."""
        rows = slice(None, None, step)
        return self.take(rows, float(self.weight[rows].sum()))

    def take(self, rows: slice, share: float) -> LinearObjective:
        """Return the same problem on some of the rows, in the same coordinates, their weights divided by ``share``."""
        other = copy(self)
        other.weight = self.weight[rows] / share
        other.design = self.design.thinned(rows, other.weight)
        other.region = self.region.take(rows)
        other._set_costs(self.plain_costs[rows], None if self.plain_offset is None else self.plain_offset[rows])
        other.W = None if self.W is None else self.W[rows]
        other.memory, other.history, other._reference_losses = {}, [], {}
        return other

    def sampled(self) -> LinearObjective | None:
        """Return the same problem on a sample of the rows, in memory; None if there are few."""
        n = self.n_samples
        return self.thinned(min(SAMPLE_STEP, max(n // ENOUGH_SAMPLES, LEAST_STEP))) if n >= MANY_SAMPLES else None

    def with_rows(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        offset: np.ndarray | None = None,
        W: np.ndarray | None = None,
        numbers: range = ALL_ROWS,
    ) -> LinearObjective:
        """Return the same problem on other rows, in the same coordinates.

        Weights are taken as they are: those of all parts of a data set sum to one.  ``W`` are the optimal decisions, if
        they are known.  ``numbers`` are those of the rows among all rows, by which errors name them.
        """
        other = copy(self)
        other.region = self.region.numbered(numbers)
        C = self.region.to_min(y)
        known = None if offset is None else self._normalised(self.region.to_min(offset))
        other.weight, other.design = weight, self.design.with_rows(X, weight)
        other._set_costs(self._normalised(C), known)
        other.W = other.region.solve_min(C) if W is None and self.loss.needs_decisions else W
        other.memory, other._reference_losses = {}, {}
        return other

    def _derive_coordinates(self, X: np.ndarray, C: np.ndarray, known: np.ndarray | None) -> Coordinates:
        size, whole = (self._typical_size(costs) for costs in (self.project_visible(C), C))
        same = size <= ROUNDING * whole
        cost_scale = (whole if same else size) or 1.0
        check_units(self.design.standardization, cost_scale)
        unknown = C if known is None else C - known
        unit = power_of_two(largest(unknown))
        Theta = self.design.least_squares(X, unknown / unit, standardized=self.standardized) * (unit / cost_scale)
        coordinates = Coordinates(self.design.standardization, cost_scale, *self.design.split(Theta), same)
        return coordinates if known is not None or self.design.shared else coordinates.without_rounding()

    def _typical_size(self, C: np.ndarray) -> float:
        """Root of the mean square of the rows' lengths."""
        # In units of the largest cost (a power of two: exact), so that squares neither overflow nor vanish.
        unit = power_of_two(largest(C))
        return float(unit * np.sqrt(self.weight @ np.square(C / unit).sum(axis=1)))

    def _normalised(self, C: np.ndarray) -> np.ndarray:
        """Costs as solvers see them: what decisions can see of them, in units of the typical cost."""
        visible = self.project_visible(C) / self.cost_scale
        if self.coordinates.costs_constant:
            visible[np.abs(visible) <= ROUNDING * np.linalg.norm(C / self.cost_scale, axis=1, keepdims=True)] = 0.0
        return visible

    # -- value and subgradient -----------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of Theta: (d, q), or (1, q) for a shared model."""
        return self.least_squares.shape

    @property
    def n_samples(self) -> int:
        """Number of distinct rows."""
        return self.C.shape[0]

    @property
    def smooth_penalty(self) -> bool:
        """Whether the penalty has no absolute values."""
        return not self.l1.any()

    def penalty(self, Theta: np.ndarray) -> float:
        """Penalty of Theta."""
        D = Theta - self.prior
        return float((np.abs(D) @ self.l1).sum() + 0.5 * ((D * D) @ self.l2).sum())

    def penalty_gradient(self, Theta: np.ndarray) -> np.ndarray:
        """Subgradient of the penalty."""
        D = Theta - self.prior
        return np.sign(D) * self.l1 + D * self.l2

    def predict(self, Theta: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Predicted costs of the given rows, offset included, as the loss compares them with ``C``."""
        C_hat = self.design.predict(Theta, rows)
        return C_hat if self.offset is None else C_hat + self.offset[rows]

    def with_loss(self, loss: Loss) -> LinearObjective:
        """Return the same data with another loss of the same region."""
        other = copy(self)
        other.loss = loss
        other._set_costs(self.plain_costs, self.plain_offset)
        other._reference_losses = {}
        return other

    def loss_gradient(
        self, Theta: np.ndarray, rows: slice | np.ndarray = slice(None), weight: np.ndarray | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Weighted loss of the given rows, its subgradient in Theta, and in the predictions."""
        weight = self.weight[rows] if weight is None else weight
        W = None if self.W is None else self.W[rows]
        memory = self.memory if isinstance(rows, slice) and rows == slice(None) else None
        region = self.region if memory is not None else self.region.take(rows)
        value, G = self.loss.value_gradient_min(region, self.C[rows], self.predict(Theta, rows), W, memory)
        return float(weight @ value), self.design.adjoint(G * weight[:, None], rows), G

    def cuts(self, Theta: np.ndarray, edges: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Weighted loss at Theta, and a cut b_g + <A_g, .> below it for each group of rows (see ``solvers.bundle``).

        Parameters
        ----------
        Theta : ndarray
        edges : ndarray of int, shape (g + 1,)
            Group g has the rows from ``edges[g]`` to ``edges[g + 1]``, at least one.

        Returns
        -------
        value : float
        b : ndarray of shape (g,)
        A : ndarray of shape (g, *Theta.shape)
        """
        value, b, A = 0.0, np.zeros(len(edges) - 1), np.zeros((len(edges) - 1, *self.shape))
        for rows, region, memory in self._blocks():
            W = None if self.W is None else self.W[rows]
            losses, G = self.loss.value_gradient_min(region, self.C[rows], self.predict(Theta, rows), W, memory)
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

    def _blocks(self) -> list[tuple[slice, Region, dict[str, Any]]]:
        """Rows in blocks whose arrays fit into the processor's cache, with regions and what the oracle found there."""
        if "blocks" not in self.memory:
            n = self.n_samples
            # A solver gets all rows at once: it may work on several at a time, and the cache does not matter to it.
            size = n if self.region.oracle_is_solver else max(BLOCK_ELEMENTS // self.C.shape[1], 1)
            slices = [slice(start, min(start + size, n)) for start in range(0, n, max(size, 1))]
            self.memory["blocks"] = [
                (rows, self.region if len(slices) == 1 else self.region.take(rows), {}) for rows in slices
            ]
        return self.memory["blocks"]

    def value(self, Theta: np.ndarray) -> float:
        """Objective at Theta."""
        return self._loss_at(Theta) + self.penalty(Theta)

    def _loss_at(self, Theta: np.ndarray) -> float:
        """Loss at Theta, without the penalty."""
        return float(self.weight @ self.loss.value_min(self.region, self.C, self.predict(Theta), self.W))

    def decision_cost(self, Theta: np.ndarray) -> float:
        """Mean cost of the decisions for the predictions of Theta, plus the penalty.

        The oracle gets predictions in the user's units, as it will after the fit: a heuristic may depend on units.
        """
        return self._decision_cost_at(Theta) + self.penalty(Theta)

    def _decision_cost_at(self, Theta: np.ndarray) -> float:
        """Cost of the decisions, without the penalty."""
        C_hat = self.design.predict(Theta)
        C_hat = C_hat if self.plain_offset is None else C_hat + self.plain_offset
        W = self.region.solve_min(C_hat * self.cost_scale)
        return float(self.weight @ np.einsum("ij,ij->i", self.plain_costs, W))

    @property
    def inexact(self) -> bool:
        """Whether the region's oracle was found not to be optimal: losses may be negative, and bounds are not valid."""
        return self.region.fault is not None

    def value_gradient(self, Theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and subgradient at Theta."""
        value, G, _ = self.loss_gradient(Theta)
        return value + self.penalty(Theta), G + self.penalty_gradient(Theta)

    # -- the certificate -----------------------------------------------------------------------------------------------

    def decisions(self, Theta: np.ndarray) -> np.ndarray:
        """Decisions w*(2 c_hat - c): those that attain the support function at Theta."""
        return self.region.solve_min(2.0 * self.design.predict(Theta) - self.C, self.memory)

    def trivial_value(self) -> float:
        """Loss of the zero model: the mean distance between the best and the worst decision."""
        try:
            return self._reference_loss("zero", np.zeros(self.shape))
        except TimeIsUp:
            return 0.0  # gaps are then relative to the objective alone, and larger

    def references(self) -> list[tuple[np.ndarray, float]]:
        """Models that a result must not be worse than, with their objectives: least squares, and the zero model.

        The prior is one of the two.
        """
        models = [("least squares", self.least_squares), ("zero", np.zeros(self.shape))]
        hidden = np.where(self.free, 0.0, self.coordinates.hidden)
        if self.l1.any() and not self.prior_is_least_squares and hidden.any():
            # An l1 norm may be smaller with the component that decisions cannot see.
            models.append(("least squares", self.least_squares + hidden))
        return [(Theta, self._reference_loss(name, Theta) + self.penalty(Theta)) for name, Theta in models]

    def _reference_loss(self, name: str, Theta: np.ndarray) -> float:
        if name not in self._reference_losses:
            self._reference_losses[name] = self._loss_at(Theta)
        return self._reference_losses[name]

    def relative_gap(self, objective: float, lower_bound: float) -> float:
        """(objective - lower bound) / max(objective, 1 % of the loss of the zero prediction)."""
        if not np.isfinite(objective) or lower_bound == -np.inf:
            return np.inf
        gap = max(objective - lower_bound, 0.0)
        size = max(abs(objective), GAP_FLOOR * self.trivial_value())
        return gap / size if size > 0 else 0.0

    def radius(self, Theta: np.ndarray) -> float:
        """Distance from least squares within which a bound must hold if Theta is the result."""
        return max(CERTIFICATE_RADIUS, DISTANCE_FACTOR * self.distance(Theta))

    def distance(self, Theta: np.ndarray) -> float:
        """Distance from least squares."""
        return float(np.linalg.norm(Theta - self.least_squares))

    def dual_value(self, V: np.ndarray, Theta: np.ndarray) -> Bound:
        """Lower bound proved by decisions V in conv(S), if Theta is the result."""
        difference = (V - self.W) * self.weight[:, None]
        constant = float(np.einsum("ij,ij->", self.C, difference))
        return self.dual_value_from_moments(constant, -2.0 * self.design.adjoint(difference), Theta)

    def dual_value_from_moments(self, constant: float, G: np.ndarray, Theta: np.ndarray) -> Bound:
        """The same from sum_i a_i c_i.(v_i - w_i) and G = 2 sum_i a_i (w_i - v_i) z_i^T, which is all it depends on."""
        if not self.loss.has_dual_bound:
            raise TypeError(f"Decisions prove no lower bound of {type(self.loss).__name__}: it is not the SPO+ loss.")
        # <Theta, G> = <prior, G> + <Theta - prior, G>; the lasso absorbs |G| <= l1, the ridge the rest.
        excess = np.sign(G) * np.maximum(np.abs(G) - self.l1, 0.0)
        ridge = self.l2 > 0
        value = constant + float(np.vdot(self.prior, G)) - 0.5 * float(((excess**2)[:, ridge] / self.l2[ridge]).sum())
        R = np.where(ridge, 0.0, excess)
        residual = float(np.linalg.norm(R))
        if residual == 0.0:
            return Bound(value, np.inf)
        value += float(np.vdot(self.least_squares - self.prior, R))
        radius = max(self.radius(Theta), FREE_CHARGE * max(value, GAP_FLOOR * self.trivial_value()) / residual)
        return Bound(value - radius * residual, radius)

    def lower_bound(
        self,
        V: np.ndarray,
        Theta: np.ndarray,
        *,
        target: float = np.inf,
        enough: float = np.inf,
        max_iter: int = 50,
    ) -> Bound:
        """Best lower bound found from approximate dual decisions V.

        V is moved until it has the feature moments that it has at an optimum; if that does not do, other decisions are
        mixed in.  Every intermediate point in conv(S) proves a bound and the best one counts.  The loss and the penalty
        are nonnegative, so zero is always a bound.

        Parameters
        ----------
        V : ndarray of shape (n, d)
        Theta : ndarray
            The returned coefficients.
        target : float
            Stop as soon as this bound is reached.
        enough : float
            Mix in no other decisions if this bound is reached.
        max_iter : int
        """
        repair = getattr(self.region, "repair", None)
        best = ZERO_BOUND
        if repair is None:
            # Only the oracle's own decisions and their averages get here, and those lie in the convex hull of S.
            best = max(best, self.dual_value(V, Theta))
        else:
            try:
                V = repair(V)
            except RuntimeError:
                V = np.asarray(self.W)  # a back-end failed to move decisions into the region
            # Moving v_i off the maximiser of u.v, u = c - 2 c_hat, costs |u_i| times the square of the way: samples
            # with u_i near 0, where the loss has its kink and v_i may be anything, are moved first.
            size = np.linalg.norm(self.C - 2.0 * self.design.predict(Theta), axis=1)
            room = 1.0 / (size + 1e-9 * (float(size.max()) or 1.0))

            def moments(K: np.ndarray) -> tuple[float, np.ndarray]:
                moved = V if not K.any() else repair(V + room[:, None] * self.design.predict(K))
                difference = (moved - self.W) * self.weight[:, None]
                return float(np.einsum("ij,ij->", self.C, difference)), -2.0 * self.design.adjoint(difference)

            best = cancel_residual(self, moments, lambda: self.design.gram_pinv(room), Theta, target, max_iter)
        if best.value >= min(target, enough) or self.deadline.left() <= 0:
            return best
        return max(best, mixed_bound(self, V, Theta, target))

    def moment_residual(self, G: np.ndarray, Theta: np.ndarray) -> np.ndarray:
        """G minus what the penalty asks of it at Theta: zero for the dual decisions of an optimal Theta."""
        D = Theta - self.prior
        zero = np.abs(D) <= 1e-9 * max(float(np.abs(D).max()), 1e-300)
        at_zero = np.clip(G, -self.l1, self.l1)
        return G - np.where(zero, at_zero, -np.sign(D) * self.l1 - D * self.l2)

    # -- coefficients in and out ---------------------------------------------------------------------------------------

    def project_visible(self, C: np.ndarray) -> np.ndarray:
        """Remove from each row the component that decisions cannot see."""
        if not self.normals.size:
            return C
        hidden = (C @ self.normals.T) @ self.normals
        return np.subtract(C, hidden, out=hidden)

    def canonical(self, Theta: np.ndarray) -> np.ndarray:
        """Set what neither the loss nor the penalty can see: the objective does not move."""
        Theta = self.design.canonical(Theta, self.free, self.least_squares)
        # Constant columns are never used, whatever rounding errors a solver gives them.
        used = np.append(self.design.used, np.ones(self.design.n_coef - self.design.n_features, dtype=bool))
        return Theta if used.all() else np.where(used, Theta, 0.0)

    def to_user(self, Theta: np.ndarray) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept in the user's units and sense, the hidden component set by least squares."""
        coef, intercept = self.design.to_user((self.canonical(Theta) + self._hidden) * self.cost_scale)
        return self.region.to_min(coef), self.region.to_min(intercept)

    def least_squares_to_user(self) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept of least squares in the user's units and sense, whatever the penalty."""
        Theta = self.coordinates.least_squares + self.coordinates.hidden
        coef, intercept = self.design.to_user(Theta * self.cost_scale)
        return self.region.to_min(coef), self.region.to_min(intercept)

    def from_user(self, coef: np.ndarray, intercept: Any) -> np.ndarray:
        """Theta of coefficients in the user's units."""
        Theta = self.design.from_user(self.region.to_min(coef), self.region.to_min(intercept)) / self.cost_scale
        return Theta - self._hidden
