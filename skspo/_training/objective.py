"""The training problem of the linear estimators: loss, penalty and intercept.

Conventions
-----------
    min_B  sum_i a_i l(B x_i, c_i)  +  alpha ( l1_ratio |B - B0|_1 + (1 - l1_ratio)/2 |B - B0|_F^2 ),   sum_i a_i = 1

    Internally costs are minimized (``sense`` is applied here, once), divided by their typical size ``cost_scale``, and
    projected (see "Hidden components" in ``design``); features are standardized.  With s_k the scale of feature k
    the penalty of Theta_jk = B_jk s_k / cost_scale becomes

        l1_k |Theta_jk - Theta0_jk| + l2_k/2 (Theta_jk - Theta0_jk)^2,
        l1_k = alpha l1_ratio / s_k,   l2_k = alpha (1 - l1_ratio) cost_scale / s_k^2

    so that all numbers in a solver are of order one.  ``scale`` converts objective values to units of cost.

    ``standardized=True`` penalizes Theta itself, l1_k = alpha l1_ratio and l2_k = alpha (1 - l1_ratio), with centered
    features if there is an intercept.  Then alpha has no units, and neither the units of costs or features nor the
    origin of a feature change the decisions.

The dual bound (SPO+ only).  For any decisions v_i in S, support_S(u) >= u.v_i, hence

    objective(Theta) >= sum_i a_i c_i.(v_i - w_i) + <Theta, G> + penalty(Theta),   G = 2 sum_i a_i (w_i - v_i) z_i^T

and minimizing the right-hand side over Theta is elementary where there is a ridge: the bound then holds for all Theta.
Where there is none it is -infinity unless G vanishes (or, with a lasso, |G| <= l1).  A remaining residual R is charged
as radius |R|_F, and the bound then holds within that radius of the *least-squares* Theta: for all models whose
coefficients, times the spread of their features, differ from least squares by at most ``radius`` typical costs.  The
center does not depend on the result of the solver; otherwise a poor result could have a bound near its own value.  The
radius is at least ``CERTIFICATE_RADIUS`` and more than twice the distance of the returned model.  Solvers move the v_i
until R vanishes up to rounding.  The charge is then negligible, and ``Bound.radius`` is as large as a charge of
``FREE_CHARGE`` allows.

``LinearObjective`` is the base class; ``InMemoryObjective`` has rows in arrays, ``ChunkedObjective`` in files or on a
cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from .._utils.limits import Deadline, StepTimer, TimeIsUp
from .._utils.scaling import CLEAR, NEGLIGIBLE, OVERWHELMING
from ..losses import Loss
from ..regions.base import Region
from .design import Design, Standardization
from .run import Memory

if TYPE_CHECKING:
    from .chunked import ChunkedMoves
    from .in_memory import InMemoryMoves, InMemoryObjective

#: number of samples from which a fit to a sample is used as a warm start
MANY_SAMPLES = 4_000

#: the sample has about so many rows, between every SAMPLE_STEP-th and twice as many
ENOUGH_SAMPLES, SAMPLE_STEP = 2_000, 8

#: relative gaps are measured against the objective, but never against less than this share of the zero model's loss
GAP_FLOOR = 1e-2

#: smallest radius around least squares for which a bound without ridge is proved, in units of the typical cost
CERTIFICATE_RADIUS = 10_000.0

#: smallest radius as a multiple of the distance of the returned model.  The documented multiple is 2; the rest is a
#: margin for coefficients that are set to zero afterwards.
DISTANCE_FACTOR = 2.5

#: largest number of moves of dual decisions, each a pass over the rows
MAX_MOVES = 50

#: number of steps after which ``cancel_residual`` stops if the residual has not been halved
RESIDUAL_PATIENCE = 10

#: multiplications of a pseudo-inverse, divided by the cube of its size
PSEUDO_INVERSE = 15.0

#: relative decrease of the bound that is accepted for a larger radius
FREE_CHARGE = 1e-10


class Bound(NamedTuple):
    """Lower bound of the objective, and the radius around least squares within which it holds."""

    value: float = 0.0
    radius: float = np.inf  # in the coordinates of Theta; infinite if the bound holds for all models


#: losses and penalties are nonnegative
ZERO_BOUND = Bound()

#: no bound: the oracle is not optimal, and the loss may be negative
NO_BOUND = Bound(-np.inf, np.nan)


#: constant and slope of a bound, from decisions in conv(S)
Moments = tuple[float, np.ndarray]


class DecisionsAt(NamedTuple):
    """The decisions w*(2 c_hat - c) of all rows at Theta, which are computed when they are needed."""

    Theta: np.ndarray


#: dual decisions of all rows, or the coefficients that give them
Dual = np.ndarray | DecisionsAt


class Coordinates(NamedTuple):
    """Units of features and costs, and least squares in them; ``partial_fit`` uses those of the first chunk."""

    standardization: Standardization
    cost_scale: float
    least_squares: np.ndarray  # the least-squares fit, without its hidden component
    hidden: np.ndarray  # the hidden component of least squares
    costs_constant: bool = False  # whether all decisions cost the same, up to rounding
    ridge: tuple[np.ndarray, np.ndarray] | None = None  # both components of the ridge fit, if it is the prior

    def without_rounding(self) -> Coordinates:
        """Return the same, with least squares set to zero if differences of costs are only rounding errors."""
        if not self.costs_constant:
            return self
        nothing = np.zeros_like(self.least_squares)
        return self._replace(least_squares=nothing, ridge=self.ridge and (nothing, self.ridge[1]))

    def columns(self, columns: np.ndarray) -> Coordinates:
        """Return those of some of the costs."""
        ridge = self.ridge and (self.ridge[0][columns], self.ridge[1][columns])
        return self._replace(least_squares=self.least_squares[columns], hidden=self.hidden[columns], ridge=ridge)


class Penalty(NamedTuple):
    """Parameters of the penalty, as the estimators have them."""

    alpha: float = 0.0
    l1_ratio: float = 0.0
    prior: str = "zero"  # or "least_squares", "ridge"
    standardized: bool = False  # whether alpha refers to standardized features and normalized costs


class Undecided(NamedTuple):
    """Some of the rows, and a cut below the loss of all others: loss(Theta) >= constant + <slope, Theta>."""

    rows: InMemoryObjective  # their weights are those that they have among all rows
    constant: float
    slope: np.ndarray


def sample_step(n: int) -> int | None:
    """Return k such that every k-th of n rows is a good sample; None if there are few rows."""
    return min(SAMPLE_STEP, max(n // ENOUGH_SAMPLES, SAMPLE_STEP // 2)) if n >= MANY_SAMPLES else None


class LinearObjective(ABC):
    """Mean loss of a linear model plus its penalty, as value, subgradient and lower bound.

    The region is that of the loss, for the rows of the objective.
    """

    #: whether all rows are in memory; otherwise sums over rows are available, and ``loaded``
    in_memory: ClassVar[bool]

    def __init__(self, loss: Loss, region: Region, design: Design, coordinates: Coordinates, penalty: Penalty) -> None:
        self.loss, self.region, self.design, self.coordinates = loss, region, design, coordinates
        self.normals = design.normals
        #: those along which costs may be projected: not the unit vectors of known costs
        self.cost_normals = design.normals[: len(design.normals) - design.known.size]
        self.cost_scale = self.scale = coordinates.cost_scale
        self.least_squares = coordinates.least_squares
        self.prior_name, self.standardized = penalty.prior, penalty.standardized
        #: hidden component of the model without a penalty, or that is shrunk towards its prior
        self.prior, self._fitted_hidden = np.zeros_like(self.least_squares), coordinates.hidden
        if self.prior_name == "least_squares":
            self.prior = self.least_squares
        elif self.prior_name == "ridge":
            assert coordinates.ridge is not None
            self.prior, self._fitted_hidden = coordinates.ridge
        #: cache of the losses of the zero model and of least squares
        self._reference_losses: dict[str, float] = {}
        self._set_penalty(penalty.alpha, penalty.l1_ratio)

    def _set_penalty(self, alpha: float, l1_ratio: float) -> None:
        self.alpha, self.l1_ratio = alpha, l1_ratio
        q, p = self.design.n_coef, self.design.n_features
        penalized = np.ones(q, dtype=bool)
        penalized[p:] = self.prior_is_fitted
        s, cost_scale = np.ones(q), 1.0
        if not self.standardized:
            s[:p], cost_scale = self.design.scale, self.cost_scale
        with np.errstate(over="ignore"):
            self.l1 = np.where(penalized, alpha * l1_ratio / s, 0.0)
            self.l2 = np.where(penalized, (alpha * (1.0 - l1_ratio) / s) * (cost_scale / s), 0.0)
        if not (self.l1.max(initial=0.0) <= OVERWHELMING and self.l2.max(initial=0.0) <= OVERWHELMING):
            raise ValueError(
                f"The penalty overflows: features of size {s.min():.1e} and costs of size {self.cost_scale:.1e} are "
                "too far apart for alpha > 0. Rescale the features, for example with StandardScaler."
            )
        self.l1, self.l2 = (np.where(x < NEGLIGIBLE, 0.0, x) for x in (self.l1, self.l2))
        self.free = (self.l1 == 0) & (self.l2 == 0)
        self._hidden = self._fitted_hidden.copy()
        if alpha > 0 and not self.prior_is_fitted:
            # The penalty shrinks hidden slopes to zero; the intercept, without penalty, keeps the mean cost.
            self._hidden[:, :p] = 0.0

    def with_penalty(self, alpha: float, l1_ratio: float) -> Self:
        """Return the same data and loss with another penalty; no data are copied and no oracle is called."""
        other = copy(self)
        other._set_penalty(alpha, l1_ratio)
        return other

    # -- sums over rows ------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def bytes_to_load(self) -> float:
        """Memory that ``loaded`` needs; zero if all rows are in memory."""

    @abstractmethod
    def loaded(self) -> InMemoryObjective:
        """Return the same problem with all rows in memory."""

    @abstractmethod
    def sampled(self, part: int = 0, parts: int = 1) -> LinearObjective | None:
        """Return the same problem on one of ``parts`` parts of a sample of the rows; None if there are few rows."""

    @abstractmethod
    def mean_loss(self, Theta: np.ndarray) -> float:
        """Weighted loss at Theta, without the penalty."""

    @abstractmethod
    def mean_decision_cost(self, Theta: np.ndarray) -> float:
        """Weighted cost of the decisions for the predictions of Theta, without the penalty."""

    @abstractmethod
    def loss_gradient(self, Theta: np.ndarray, memory: Memory | None = None) -> tuple[float, np.ndarray]:
        """Weighted loss and its subgradient in Theta; ``memory`` is the cache of the oracle."""

    @abstractmethod
    def cuts(
        self, Theta: np.ndarray, edges: np.ndarray, memory: Memory | None = None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Weighted loss at Theta, and a cut b_g + <A_g, .> below it for each group of rows (see ``solvers.bundle``).

        Group g has the rows from ``edges[g]`` to ``edges[g + 1]``, at least one.
        """

    @abstractmethod
    def undecided_rows(self, Thetas: list[np.ndarray], most: int) -> Undecided | None:
        """Rows whose decisions w*(2 c_hat - c) differ between these models; None if there are more than ``most``."""

    @abstractmethod
    def moves(self, dual: Dual, Theta: np.ndarray) -> InMemoryMoves | ChunkedMoves:
        """Dual decisions that can be moved, for ``lower_bound``; Theta is the result."""

    # -- value and subgradient -----------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of Theta: (d, q), or (1, q) for a shared model."""
        rows, columns = self.least_squares.shape
        return rows, columns

    @property
    def prior_is_fitted(self) -> bool:
        """Whether the prior is a model of the data, so that its intercept is part of the penalty."""
        return self.prior_name != "zero"

    @property
    def smooth_penalty(self) -> bool:
        """Whether the penalty has no absolute values."""
        return not self.l1.any()

    @property
    def inexact(self) -> bool:
        """Whether the region's oracle was found not to be optimal: losses may be negative, and no bound is valid."""
        return self.region._fault is not None

    def penalty(self, Theta: np.ndarray) -> float:
        """Penalty of Theta."""
        D = Theta - self.prior
        return float((np.abs(D) @ self.l1).sum() + 0.5 * ((D * D) @ self.l2).sum())

    def penalty_gradient(self, Theta: np.ndarray) -> np.ndarray:
        """Subgradient of the penalty."""
        D = Theta - self.prior
        return np.sign(D) * self.l1 + D * self.l2

    def value(self, Theta: np.ndarray) -> float:
        """Objective at Theta."""
        return self.mean_loss(Theta) + self.penalty(Theta)

    def value_gradient(self, Theta: np.ndarray, memory: Memory | None = None) -> tuple[float, np.ndarray]:
        """Objective and subgradient at Theta."""
        value, G = self.loss_gradient(Theta, memory)
        return value + self.penalty(Theta), G + self.penalty_gradient(Theta)

    def decision_cost(self, Theta: np.ndarray) -> float:
        """Mean cost of the decisions for the predictions of Theta, plus the penalty.

        The oracle gets predictions in the user's units, as after the fit: a heuristic may depend on units.
        """
        return self.mean_decision_cost(Theta) + self.penalty(Theta)

    def trivial_value(self) -> float:
        """Loss of the zero model: the mean cost of the worst decision minus that of the best one."""
        try:
            return self._reference_loss("zero", np.zeros(self.shape))
        except TimeIsUp:
            return 0.0  # gaps are then relative to the objective only, and larger

    def references(self) -> list[tuple[np.ndarray, float]]:
        """Least squares, the zero model and the prior, with their objectives.

        The result of a fit must not be worse.
        """
        models = [("least squares", self.least_squares), ("zero", np.zeros(self.shape))]
        if self.prior_name == "ridge":
            models.append(("ridge", self.prior))
        hidden = np.where(self.free, 0.0, self.coordinates.hidden)
        if self.l1.any() and not self.prior_is_fitted and hidden.any():
            # The l1 norm may be smaller with the hidden component.
            models.append(("least squares", self.least_squares + hidden))
        return [(Theta, self._reference_loss(name, Theta) + self.penalty(Theta)) for name, Theta in models]

    def _reference_loss(self, name: str, Theta: np.ndarray) -> float:
        if name not in self._reference_losses:
            self._reference_losses[name] = self.mean_loss(Theta)
        return self._reference_losses[name]

    # -- the certificate -----------------------------------------------------------------------------------------------

    def relative_gap(self, objective: float, lower_bound: float) -> float:
        """(objective - lower bound) / max(objective, 1 % of the loss of the zero prediction)."""
        if not np.isfinite(objective) or lower_bound == -np.inf:
            return np.inf
        gap = max(objective - lower_bound, 0.0)
        size = self.gap_size(abs(objective))
        return gap / size if size > 0 else 0.0

    def gap_size(self, value: float) -> float:
        """What a gap of this value is relative to."""
        return max(value, GAP_FLOOR * self.trivial_value())

    def radius(self, Theta: np.ndarray) -> float:
        """Radius around least squares within which a bound must hold if Theta is the result."""
        return max(CERTIFICATE_RADIUS, DISTANCE_FACTOR * self.distance(Theta))

    def distance(self, Theta: np.ndarray) -> float:
        """Distance from least squares."""
        return float(np.linalg.norm(Theta - self.least_squares))

    def dual_value_from_moments(self, constant: float, G: np.ndarray, Theta: np.ndarray) -> Bound:
        """Lower bound proved by decisions in conv(S), if Theta is the result.

        ``constant`` is sum_i a_i c_i.(v_i - w_i), and G = 2 sum_i a_i (w_i - v_i) z_i^T.
        """
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
        radius = max(self.radius(Theta), FREE_CHARGE * self.gap_size(value) / residual)
        return Bound(value - radius * residual, radius)

    def moment_residual(self, G: np.ndarray, Theta: np.ndarray) -> np.ndarray:
        """G plus a subgradient of the penalty at Theta: zero for the dual decisions of an optimal Theta."""
        D = Theta - self.prior
        zero = np.abs(D) <= 1e-9 * max(float(np.abs(D).max()), 1e-300)
        at_zero = np.clip(G, -self.l1, self.l1)
        return G - np.where(zero, at_zero, -np.sign(D) * self.l1 - D * self.l2)

    # -- coefficients in and out ---------------------------------------------------------------------------------------

    def canonical(self, Theta: np.ndarray) -> np.ndarray:
        """Set the hidden component of columns without penalty; the objective does not change."""
        Theta = self.design.canonical(Theta, self.free, self.least_squares)
        # Coefficients of constant columns are zero up to rounding.
        return (
            Theta
            if self.design.used.all()
            else np.where(np.append(self.design.used, True)[: self.shape[1]], Theta, 0.0)
        )

    def to_user(self, Theta: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """Coefficients and intercept in the user's units and sense, the hidden component set by least squares."""
        return self._to_user(self.canonical(Theta) + self._hidden)

    def least_squares_to_user(self) -> tuple[np.ndarray, np.ndarray | float]:
        """Coefficients and intercept of least squares in the user's units and sense."""
        return self._to_user(self.coordinates.least_squares + self.coordinates.hidden)

    def _to_user(self, Theta: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        coef, intercept = self.design.to_user(Theta * self.cost_scale)
        intercept = self.region.to_min(np.asarray(intercept))
        return self.region.to_min(coef), float(intercept) if self.design.shared else intercept

    def from_user(self, coef: np.ndarray, intercept: np.ndarray | float) -> np.ndarray:
        """Theta of coefficients in the user's units."""
        Theta = (
            self.design.from_user(self.region.to_min(coef), self.region.to_min(np.asarray(intercept))) / self.cost_scale
        )
        return Theta - self._hidden


# -- proved bounds -----------------------------------------------------------------------------------------------------


def best_proof(objective: LinearObjective, proofs: list[Moments], Theta: np.ndarray) -> tuple[Moments, Bound]:
    """Moments that prove the best bound if Theta is the result, and that bound.

    Without a ridge, bounds depend on the distance of Theta, so that they are computed again when it changes.
    """
    bounds = [objective.dual_value_from_moments(*moments, Theta) for moments in proofs]
    return proofs[bounds.index(max(bounds))], max(ZERO_BOUND, *bounds)


def lower_bound(
    objective: LinearObjective,
    dual: Dual,
    Theta: np.ndarray,
    deadline: Deadline,
    *,
    target: float = np.inf,
    enough: float = np.inf,
) -> Bound:
    """Best lower bound found from approximate dual decisions.

    They are in conv(S), or near it if the region can repair them, and Theta is the result.  They are moved until their
    moments are those of an optimum; if that fails, and ``enough`` is not reached, other decisions are mixed in.  Every
    intermediate point in conv(S) proves a bound, and the best one is returned, or the first one that reaches
    ``target``.  The loss and the penalty are nonnegative, so zero is always a bound.
    """
    moves = objective.moves(dual, Theta)
    best = cancel_residual(objective, moves, Theta, deadline, target)
    if best.value >= min(target, enough) or deadline.left() <= 0:
        return best
    return max(best, moves.mixed_bound(Theta, deadline, target))


def cancel_residual(
    objective: LinearObjective,
    moves: InMemoryMoves | ChunkedMoves,
    Theta: np.ndarray,
    deadline: Deadline,
    target: float,
) -> Bound:
    """Best bound of dual decisions v_i(K) that are moved until their moments are those of an optimum.

    If no decision had to be repaired, one step with the Gram matrix would cancel the residual R(K).  Decisions at the
    boundary move in some directions only, so the step is repeated, with Anderson acceleration.
    """
    timer = StepTimer(deadline, 0.0, 0.0)
    K, best, lowest, age = np.zeros(objective.shape), ZERO_BOUND, np.inf, 0
    most = MAX_MOVES if moves.can_move else 0
    points: list[np.ndarray] = []
    steps: list[np.ndarray] = []
    pinv: np.ndarray | None = None
    for n_iter in range(most + 1):
        try:
            constant, G = moves.moments(K)
        except RuntimeError:
            break  # a back-end failed to repair decisions; the bounds so far are valid
        best = max(best, objective.dual_value_from_moments(constant, G, Theta))
        # The penalty may leave a hidden component, which no decisions can cancel.
        R = objective.design.visible(objective.moment_residual(G, Theta))
        residual = float(np.linalg.norm(R))
        age = 0 if residual <= 0.5 * lowest else age + 1
        lowest = min(lowest, residual) if age == 0 else lowest
        stop = residual == 0.0 or not np.isfinite(residual) or age > RESIDUAL_PATIENCE or n_iter == most
        if best.value >= target or stop or timer.late():
            break
        if pinv is None:
            if not deadline.allows(PSEUDO_INVERSE * float(objective.shape[1]) ** 3):
                deadline.reached = True
                break
            pinv = np.linalg.pinv(moves.gram(), rcond=1e-14, hermitian=True)
        # sum_i a_i dV_i z_i^T = R / 2 cancels the residual.
        step = 0.5 * R @ pinv
        points, steps = [*points, K.ravel()], [*steps, step.ravel()]
        K = K + step
        if len(points) > 1:
            K = K - np.reshape(extrapolated(points, steps), objective.shape)
    return best


def extrapolated(points: list[np.ndarray], steps: list[np.ndarray]) -> np.ndarray:
    """What Anderson acceleration subtracts from the last point plus its step."""
    dK, ds = np.diff(points, axis=0).T, np.diff(steps, axis=0).T
    share = np.linalg.lstsq(ds, steps[-1], rcond=CLEAR)[0]
    return (dK + ds) @ share
