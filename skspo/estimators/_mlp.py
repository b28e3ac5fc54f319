"""SPOMLPRegressor: a neural network that is trained for its decisions, with Adam in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from .._training.baselines import fit_baselines
from .._training.in_memory import merge_rows
from .._training.inputs import (
    TrainingData,
    check_training_data,
    known_in,
    mean_cost,
    nearest_factor,
    restore_rng_on_failure,
    set_fitted,
)
from .._utils.adam import Adam
from .._utils.errors import warn_once
from .._utils.frames import check_values
from .._utils.params import BOOL, VERBOSE, Check, check_params, integer, is_integer, number, one_of
from .._utils.progress import Activity
from .._utils.types import RandomState
from ..losses import AbsoluteLoss, Loss, SPOLoss, SPOPlusLoss, SquaredLoss
from ..regions.base import Region
from ..regions.capabilities import has, project_visible
from ..regions.check import check_region
from ._base import DecisionRegressor, PartialFitMixin

LOSSES = {"spo+": SPOPlusLoss, "spo": SPOLoss, "squared_error": SquaredLoss, "absolute_error": AbsoluteLoss}

ArrayFunction: TypeAlias = Callable[[np.ndarray], np.ndarray]

#: function of each activation, and its derivative in terms of its value
ACTIVATIONS: dict[str, tuple[ArrayFunction, ArrayFunction]] = {
    "relu": (lambda z: np.maximum(z, 0.0), lambda a: (a > 0).astype(a.dtype)),
    "tanh": (np.tanh, lambda a: 1.0 - a * a),
    "logistic": (expit, lambda a: a * (1.0 - a)),
    "identity": (lambda z: z, np.ones_like),
}

#: orthonormal directions (m, d) of costs that change no decision, and a component (d,) along them
Level: TypeAlias = tuple[np.ndarray, np.ndarray]


class SPOMLPRegressor(PartialFitMixin, DecisionRegressor):
    """Neural network of costs, trained for its decisions.

    Conventions are those of scikit-learn's MLPRegressor; features should be scaled, for example with StandardScaler.
    Costs need not be: they are scaled for training, and the fitted network is in their original units.

    Parameters
    ----------
    region : Region or None, default=None
        Feasible region of the decisions.  None means the unit Box, which is rarely wanted: ``fit`` warns.
    loss : {"spo+", "spo", "squared_error", "absolute_error"} or Loss, default="spo+"
        Loss to minimize, also one of your own (see the guide, "Add a loss").  "spo", the decision loss itself, needs a
        region where decisions depend smoothly on the costs.
    hidden_layer_sizes : tuple of int, default=(256,)
        Number of units of each hidden layer; an empty tuple is a linear model.
    activation : {"relu", "tanh", "logistic", "identity"}, default="relu"
        Activation of the hidden units.
    shared : bool, default=False
        Whether one network serves all costs, each from its own features: X then has d consecutive blocks of q features,
        one block per cost (see :func:`stack_items`).
    learning_rate_init : float, default=0.001
        Step size of Adam.
    batch_size : int or "auto", default="auto"
        Samples per step; "auto" means min(200, n_samples).
    alpha : float, default=0.0001
        Strength of the l2 penalty on weights, divided by the number of samples as in MLPRegressor.
    max_iter : int, default=200
        Largest number of epochs.
    early_stopping : bool, default=False
        Hold out some samples, stop when their loss no longer improves, and keep the best network.
    validation_fraction : float, default=0.1
        Share of the samples to hold out.
    n_iter_no_change : int, default=10
        Epochs without an improvement by ``tol`` after which training stops.
    tol : float, default=0.0001
        Improvement of the loss, relative to the best so far, that counts.
    random_state : int, RandomState instance or None, default=None
        Weights at the start, order of samples, and held-out samples.
    verbose : int, default=0
        1 prints the loss of every epoch.
    warm_start : bool, default=False
        Continue from the previous fit.

    Attributes
    ----------
    coefs_, intercepts_ : list of ndarray
        Weights and biases of each layer, for features and costs in their own units.
    loss_ : float
        Mean loss, without penalty, over the last epoch.
    best_loss_ : float
        Smallest loss of an epoch, on held-out samples with early stopping.
    loss_curve_ : list of float
        ``loss_`` after every epoch.
    validation_losses_ : list of float
        Losses of the held-out samples after every epoch, with early stopping.
    n_iter_ : int
        Number of epochs.
    n_layers_ : int
        Number of layers, with input and output.
    prediction_factor_, region_, n_features_in_, feature_names_in_, cost_names_in_
        As in :class:`SPOPlusRegressor`.

    See Also
    --------
    SPOPlusRegressor : The linear model, trained exactly.

    Examples
    --------
    >>> from skspo import Simplex, SPOMLPRegressor
    >>> from skspo.datasets import make_cost_sensitive_classification
    >>> X, C = make_cost_sensitive_classification(200, degree=4, random_state=0)
    >>> model = SPOMLPRegressor(Simplex(), hidden_layer_sizes=(16,), random_state=0)
    >>> for _ in range(50):
    ...     model = model.partial_fit(X, C)
    >>> bool(model.loss_curve_[-1] < model.loss_curve_[0])
    True
    """

    coefs_: list[np.ndarray]
    intercepts_: list[np.ndarray]
    loss_curve_: list[float]
    best_loss_: float
    _rng: np.random.RandomState
    _adam: list[Adam]
    _scale: float
    _center: np.ndarray
    _y_is_1d: bool

    _level: Level | None = None

    def __init__(
        self,
        region: Region | None = None,
        *,
        loss: str | Loss = "spo+",
        hidden_layer_sizes: ArrayLike = (256,),
        activation: str = "relu",
        shared: bool = False,
        learning_rate_init: float = 0.001,
        batch_size: int | str = "auto",
        alpha: float = 0.0001,
        max_iter: int = 200,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        random_state: RandomState = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.region = region
        self.loss = loss
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.shared = shared
        self.learning_rate_init = learning_rate_init
        self.batch_size = batch_size
        self.alpha = alpha
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def _fit(self, X: ArrayLike, y: ArrayLike, **known: Any) -> None:
        plain, region, data = self._check_data(X, y, None, **known)
        rng = check_random_state(self.random_state)
        with restore_rng_on_failure(self, rng):
            stopped = self._train(plain, region, data, rng)
        if not stopped:
            warn_once(
                f"The loss was still improving after max_iter={self.max_iter} epochs. Increase max_iter, or "
                "learning_rate_init.",
                ConvergenceWarning,
            )

    def _train(self, plain: Region, region: Region, data: TrainingData, rng: np.random.RandomState) -> bool:
        """Train until the loss does not improve any more, which is returned, or for ``max_iter`` epochs."""
        again = self.warm_start and hasattr(self, "coefs_")
        train, test = self._split(data.X.shape[0], rng)
        network = _Network(self, region.take(train), data.take(train), rng, self if again else None)
        held_out = None if test is None else (region.take(test), data.take(test))
        curve: list[float] = list(self.loss_curve_) if again else []
        validation: list[float] = []
        best, best_params, idle, stopped = np.inf, network.copy(), 0, False
        activity = Activity(type(self).__name__, self.verbose, self.max_iter, "epochs")
        for _ in range(self.max_iter):
            curve.append(watched := network.epoch(rng))
            now = f"loss {watched:.6g}"
            if held_out is not None:
                validation.append(watched := network.evaluate(*held_out))
                now += f", held out {watched:.6g}"
            activity.advance()
            activity.update(now)
            if not np.isfinite(watched):
                raise ValueError(
                    "Training diverged: the loss is not finite any more. Scale the features, for example with "
                    "StandardScaler, or use a smaller learning_rate_init."
                )
            idle = 0 if watched < best - self.tol * abs(best if np.isfinite(best) else 0.0) else idle + 1
            if watched < best:
                best = watched
                if held_out is not None:
                    best_params = network.copy()
            stopped = idle >= self.n_iter_no_change or watched == 0.0
            if stopped:
                break
        # One factorization of the features, which takes less time than an epoch.
        baselines = fit_baselines(data.X, data.C, data.weight, data.offset, data.possible, shared=bool(self.shared))
        more: dict[str, object] = {"_baselines": baselines}
        kind = "training"
        if held_out is not None:
            network.params, kind, more["validation_losses_"] = best_params, "held-out", validation
        activity.finish(f"{activity.done} epochs, {kind} loss {best:.6g}" + ("" if stopped else ", still improving"))
        self._store(network, plain, data.input_attributes, curve, best, **more)
        return stopped

    def _partial_fit(self, X: ArrayLike, y: ArrayLike, **known: Any) -> None:
        """Train for one more epoch."""
        first = not hasattr(self, "coefs_")
        plain, region, data = self._check_data(X, y, None if first else self, **known)
        rng = self._rng if hasattr(self, "_rng") else check_random_state(self.random_state)
        with restore_rng_on_failure(self, rng):
            network = _Network(self, region, data, rng, None if first else self)
            loss = network.epoch(rng)
            curve, best = [*getattr(self, "loss_curve_", []), loss], min(loss, getattr(self, "best_loss_", np.inf))
            self._store(network, plain, data.input_attributes, curve, best, _rng=rng)

    def _predict_costs(self, X: ArrayLike) -> np.ndarray:
        check_values("X", X)
        X_arr = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        A = layers(X_arr, self.coefs_, self.intercepts_, ACTIVATIONS[self._activation][0])[-1]
        C_hat = with_level(A.reshape(X_arr.shape[0], -1), self._level)
        return C_hat.ravel() if self._y_is_1d else C_hat

    @property
    def _trains_on_region(self) -> bool:
        return self._loss_on(None).needs_decisions

    def _loss_on(self, region: Region | None) -> Loss:
        """Loss to be minimized on a region."""
        return self.loss.on(region) if isinstance(self.loss, Loss) else LOSSES[self.loss](region)

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "hidden_layer_sizes": Check(
            lambda value: all(is_integer(size) and size >= 1 for size in np.ravel(np.asarray(value, object)).tolist()),
            "positive integers",
        ),
        "loss": Check(
            lambda value: isinstance(value, Loss) or (isinstance(value, str) and value in LOSSES),
            f"one of {', '.join(map(repr, LOSSES))}, or a Loss",
        ),
        "activation": one_of(*ACTIVATIONS),
        "max_iter": integer(1),
        "verbose": VERBOSE,
        "n_iter_no_change": integer(1),
        "shared": BOOL,
        "batch_size": Check(
            lambda value: (is_integer(value) and value >= 1) or (isinstance(value, str) and value == "auto"),
            "'auto' or an integer of at least 1",
        ),
        "learning_rate_init": number(above=0.0),
        "alpha": number(0.0),
        "tol": number(0.0),
        "validation_fraction": number(above=0.0, below=1.0),
    }

    def _check_data(
        self, X: ArrayLike, y: ArrayLike, previous: SPOMLPRegressor | None, **known: Any
    ) -> tuple[Region, Region, TrainingData]:
        """Region to be stored, region of the samples, and the samples; equal ones are merged.

        ``previous`` is the network so far in ``partial_fit``.
        """
        check_params(self)
        data = check_training_data(self, X, y, **known, reset=previous is None)
        n, d = data.C.shape
        n_costs = d if previous is None else self.coefs_[-1].shape[1] * (data.X.shape[1] // self.coefs_[0].shape[0])
        if d != n_costs:
            raise ValueError(
                f"y has {d} columns, but the network so far has {n_costs} costs: every chunk must have the same ones. "
                "To start again, use fit or a new estimator."
            )
        plain = check_region(self.region, n_dim=d)
        if isinstance(self._loss_on(None), SPOLoss) and not has(plain, "derivative"):
            raise ValueError(
                f"loss='spo' needs decisions that depend smoothly on the costs, which is not so on "
                f"{type(plain).__name__}. Use loss='spo+', or a region with a derivative (EntropySimplex, "
                "LogBarrierSimplex, Ellipsoid, LqBall, Markowitz), or the linear SPORegressor."
            )
        region = plain.with_rows(known["region_params"], n, d)
        data = data.within(region)
        plain = data.learn_bounds(plain, region, previous)
        rows, weight = merge_rows(data.weight, data.X, data.C, data.offset, region._row_table(n))
        return plain, region.take(rows), data.take(rows)._replace(weight=weight)

    def _split(self, n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows to train on and rows to hold out."""
        if not self.early_stopping:
            return np.arange(n), None
        count = max(1, round(self.validation_fraction * n))
        if count >= n:
            raise ValueError(f"early_stopping needs at least two different samples of positive weight, got {n}.")
        order = rng.permutation(n)
        return np.sort(order[count:]), np.sort(order[:count])

    def _store(
        self,
        network: _Network,
        region: Region,
        input_attributes: dict[str, object],
        curve: list[float],
        best: float,
        **more: object,
    ) -> None:
        coefs, intercepts = network.in_user_units()
        learned = {
            "coefs_": coefs,
            "intercepts_": intercepts,
            "n_layers_": len(coefs) + 1,
            "region_": region,
            "prediction_factor_": network.nearest_factor(),
            "loss_curve_": curve,
            "loss_": curve[-1],
            "best_loss_": best,
            "n_iter_": len(curve),
            "_activation": self.activation,
            "_adam": network.adam,
            "_scale": network.scale,
            "_center": network.center,
            "_level": network.level(),
        }
        set_fitted(self, learned | input_attributes | more)


class _Network:
    """Parameters and one epoch of training, in units where costs are of order one."""

    def __init__(
        self,
        model: SPOMLPRegressor,
        region: Region,
        data: TrainingData,
        rng: np.random.RandomState,
        previous: SPOMLPRegressor | None,
    ) -> None:
        self.model, self.region = model, region
        self.loss = model._loss_on(region)
        self.function, self.slope = ACTIVATIONS[model.activation]
        X, y = data.X, data.C
        self.weight: np.ndarray = data.weight  # type: ignore[assignment]
        items = y.shape[1] if model.shared else 1  # number of times that the network is applied to a sample
        hidden = np.ravel(model.hidden_layer_sizes).astype(int).tolist()
        sizes = [X.shape[1] // items, *hidden, y.shape[1] // items]
        if previous is None:
            offset, possible = (None if x is None else x.reshape(-1, sizes[-1]) for x in (data.offset, data.possible))
            self.center = mean_cost(y.reshape(-1, sizes[-1]), np.repeat(self.weight, items), offset, possible)
            size = float(np.sqrt(np.average(np.square(y).sum(axis=1), weights=self.weight)))
            self.scale = size if size > 0 else 1.0
            self.params = _glorot(sizes, model.activation, rng)
            self.adam = [Adam(p.shape) for p in self.params]
        else:
            shapes = [coef.shape for coef in previous.coefs_]
            if shapes != list(pairwise(sizes)):
                raise ValueError(
                    f"The network has layers {shapes}, but the parameters and data ask for {sizes}. Fit with "
                    "warm_start=False to start again."
                )
            self.center, self.scale = previous._center, previous._scale
            coefs, intercepts = list(previous.coefs_), list(previous.intercepts_)
            coefs[-1], intercepts[-1] = coefs[-1] / self.scale, (intercepts[-1] - self.center) / self.scale
            self.params = [p.copy() for pair in zip(coefs, intercepts, strict=True) for p in pair]
            self.adam = deepcopy(previous._adam)  # if training fails, the model is unchanged
        self.X = X
        self.known = known_in(region, y)
        self.C = region.to_min(y) / self.scale
        self.offset = self.fixed_part(region, data)
        # From unscaled costs: after a division, rounding may break ties differently.
        self.W = region.solve_min(region.to_min(y)) if self.loss.needs_decisions else None

    def fixed_part(self, region: Region, data: TrainingData) -> np.ndarray:
        """Mean cost plus offset, which is added to the output of the network."""
        mean = np.broadcast_to(self.center, data.C.shape)
        return region.to_min(mean if data.offset is None else mean + data.offset) / self.scale

    def nearest_factor(self) -> float:
        """Factor of ``predict_rescaled``; known costs leave no choice."""
        if self.known.size:
            return 1.0
        C_hat = self.region.to_min(self.forward(self.X)[-1].reshape(self.C.shape)) + self.offset
        d, possible = self.C.shape[1], self.region.possible(*self.C.shape)
        return nearest_factor(self.C, C_hat, self.region._always_hidden(d), self.weight, possible)

    def level(self) -> Level | None:
        """Part of the mean cost that training does not see, if clipping depends on it: directions and component."""
        d = self.C.shape[1]
        if not self.loss.needs_decisions or not self.region._clips(d):
            return None
        normals, mean = self.region._always_hidden(d), np.resize(self.center, d)
        return normals, normals.T @ (normals @ mean)

    def copy(self) -> list[np.ndarray]:
        return [p.copy() for p in self.params]

    def in_user_units(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        coefs, intercepts = self.params[::2], self.params[1::2]
        coefs[-1], intercepts[-1] = coefs[-1] * self.scale, intercepts[-1] * self.scale + self.center
        return coefs, intercepts

    def forward(self, X: np.ndarray) -> list[np.ndarray]:
        """Values of all layers; the last one is the prediction, less the mean cost, in the user's sense."""
        return layers(X, self.params[::2], self.params[1::2], self.function)

    def gradients(self, rows: np.ndarray) -> tuple[float, list[np.ndarray]]:
        """Weighted mean loss of some rows and the gradient of it and of their share of the penalty."""
        values = self.forward(self.X[rows])
        weight = self.weight[rows]
        total = float(weight.sum())
        region = self.region.take(rows)
        C_hat = region.to_min(values[-1].reshape(rows.size, -1)) + self.offset[rows]
        C_hat[:, self.known] = self.C[rows][:, self.known]
        W = None if self.W is None else self.W[rows]
        losses, G = self.loss.value_gradient_min(region, self.C[rows], C_hat, W)
        G[:, self.known] = 0.0
        delta = (region.to_min(G) * (weight / total)[:, None]).reshape(values[-1].shape)
        grads: list[np.ndarray] = [np.zeros(0)] * len(self.params)
        for i in range(len(self.params) // 2 - 1, -1, -1):
            grads[2 * i] = values[i].T @ delta + (self.model.alpha / rows.size) * self.params[2 * i]
            grads[2 * i + 1] = delta.sum(axis=0)
            if i:
                delta = (delta @ self.params[2 * i].T) * self.slope(values[i])
        return float(weight @ losses) / total, grads

    def epoch(self, rng: np.random.RandomState) -> float:
        """Train on every sample once; return the mean loss over the batches, in the user's units."""
        n = self.X.shape[0]
        batch = min(200, n) if self.model.batch_size == "auto" else min(int(self.model.batch_size), n)
        order = rng.permutation(n)
        total = mass = 0.0
        for start in range(0, n, batch):
            rows = order[start : start + batch]
            share = float(self.weight[rows].sum())
            loss, grads = self.gradients(rows)
            for param, grad, adam in zip(self.params, grads, self.adam, strict=True):
                param -= adam.step(grad, self.model.learning_rate_init)
            total, mass = total + share * loss, mass + share
        return total / mass * self.unit()

    def unit(self) -> float:
        """Unit of the loss: that of the costs, squared for the squared error."""
        return self.scale**2 if isinstance(self.loss, SquaredLoss) else self.scale

    def evaluate(self, region: Region, data: TrainingData) -> float:
        """Mean loss of other samples, in the user's units."""
        C_hat = region.to_min(self.forward(data.X)[-1].reshape(data.C.shape)) + self.fixed_part(region, data)
        C = region.to_min(data.C) / self.scale
        C_hat[:, self.known] = C[:, self.known]
        W = region.solve_min(region.to_min(data.C)) if self.loss.needs_decisions else None
        if isinstance(self.loss, SPOLoss):  # decisions of ``decide``, which clips
            known = 0.0 if data.offset is None else data.offset
            predicted = with_level(region.to_min(C_hat * self.scale) - known, self.level()) + known
            losses = np.einsum("ij,ij->i", C, region._decide_min(region.to_min(predicted)) - W)
        else:
            losses = self.loss.value_min(region, C, C_hat, W)
        return float(np.average(losses, weights=data.weight)) * self.unit()


def layers(
    X: np.ndarray, coefs: list[np.ndarray], intercepts: list[np.ndarray], function: ArrayFunction
) -> list[np.ndarray]:
    """Values of all layers; the last one has no activation."""
    values = [X.reshape(-1, coefs[0].shape[0])]
    for coef, intercept in zip(coefs, intercepts, strict=True):
        Z = values[-1] @ coef + intercept
        values.append(Z if len(values) == len(coefs) else function(Z))
    return values


def with_level(C_hat: np.ndarray, level: Level | None) -> np.ndarray:
    """Predictions less the offset, with another component that no decision without clipping depends on."""
    return C_hat if level is None else project_visible(C_hat, level[0]) + level[1]


def _glorot(sizes: list[int], activation: str, rng: np.random.RandomState) -> list[np.ndarray]:
    """Uniform weights that keep the variance across layers (Glorot and Bengio, 2010)."""
    params = []
    factor = 2.0 if activation == "logistic" else 6.0
    for fan_in, fan_out in pairwise(sizes):
        bound = np.sqrt(factor / (fan_in + fan_out))
        params += [rng.uniform(-bound, bound, (fan_in, fan_out)), rng.uniform(-bound, bound, fan_out)]
    return params
