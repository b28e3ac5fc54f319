"""Risk certificate of a fitted model: a bound with its assumptions.

Conventions
-----------
    H = {x -> B x + b : |(B, b)|_F <= radius}     R_hat, R: training and true SPO+ risk     n samples

    R_hat(model) - min_H R_hat  <=  gap                                   certified optimization gap
    sup_H |R - R_hat|           <=  G     with probability 1 - delta      generalization term
    R(model) - min_H R          <=  gap + 2 G
    excess SPO risk             <=  inverse of the calibration bound at gap + 2 G, if E[c | x] is in H

The gap is the smallest of four numbers, each of them proved: the estimator's own duality gap, if it was trained on the
same data without a penalty; the same of a reference, an :class:`~skspo.SPOPlusRegressor` without penalty, if the
estimator is something else; the linearization of R_hat at the model, because a convex function is at least R_hat(model)
+ <B - B_model, subgradient>; and R_hat(model) itself, because losses are not negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted

from .._training.fitted import check_frames, innermost_features
from .._training.objective import CERTIFICATE_RADIUS
from .._utils.limits import quiet
from ..estimators._spo_plus import SPOPlusRegressor
from ..losses import SPOPlusLoss, check_costs, check_existing
from ..regions.base import Region
from ..regions.capabilities import equalities_of, project_visible
from ._checks import check_delta, check_positive
from .functions import CalibrationFunction, PolyhedralCalibration, StronglyConvexCalibration
from .generalization import check_calibration, generalization_bound, spo_plus_range
from .geometry import diameter, need, region_geometry


class LinearPredictor(Protocol):
    """Fitted linear model of costs."""

    coef_: np.ndarray
    intercept_: np.ndarray
    region_: Region


@dataclass(frozen=True)
class RiskCertificate:
    """Bound on the excess SPO risk of one model, with its assumptions; prints as a report.

    Attributes
    ----------
    training_risk : float
        Mean SPO+ loss on the data.
    optimization_gap : float
        Upper bound on the training risk minus the least one in the class.
    gap_source : str
        Which argument proves it.
    generalization_term : float
        Upper bound on the difference of true and training risk over the class.
    excess_surrogate_risk : float
        Gap plus twice the generalization term.
    excess_spo_risk : float
        The implied bound; it holds with probability ``1 - delta`` if the assumptions do.
    trivial_bound : float
        Bound for every model: the diameter of the region times the bound on costs.
    vacuous : bool
        Whether the implied bound is no better than ``trivial_bound``.
    delta : float
        Probability of failure.
    n_samples : int
    assumptions : list of str
    """

    training_risk: float
    optimization_gap: float
    gap_source: str
    generalization_term: float
    excess_surrogate_risk: float
    excess_spo_risk: float
    trivial_bound: float
    delta: float
    n_samples: int
    assumptions: list[str]

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no better than ``trivial_bound``."""
        return not self.excess_spo_risk < self.trivial_bound

    def __str__(self) -> str:
        lines = [
            f"Risk certificate, {self.n_samples} samples, with probability {1 - self.delta:g}",
            f"  training SPO+ risk             {self.training_risk:.6g}",
            f"  optimization gap, at most      {self.optimization_gap:.6g}  ({self.gap_source})",
            f"  generalization term            {self.generalization_term:.6g}",
            f"  excess SPO+ risk, at most      {self.excess_surrogate_risk:.6g}",
            f"  excess SPO risk, at most       {self.excess_spo_risk:.6g}",
            f"  true of every model            {self.trivial_bound:.6g}",
        ]
        if self.vacuous:
            lines.append("This bound is vacuous here: it says no more than what is true of every model.")
        lines.append("It rests on these assumptions:")
        lines += [f"  - {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)


def risk_certificate(
    estimator: LinearPredictor,
    X: ArrayLike,
    y: ArrayLike,
    calibration: CalibrationFunction,
    *,
    delta: float = 0.05,
    radius: float | None = None,
    cost_bound: float | None = None,
    feature_bound: float | None = None,
) -> RiskCertificate:
    """Bound the excess SPO risk of a fitted linear model, under stated assumptions.

    Parameters
    ----------
    estimator : fitted estimator
        A linear model with ``coef_``, ``intercept_`` and ``region_``, such as :class:`~skspo.SPOPlusRegressor`.
    X : array-like of shape (n_samples, n_features)
        Features the estimator was trained on.
    y : array-like of shape (n_samples, d)
        Costs it was trained on.
    calibration : CalibrationFunction
        Bound for the SPO+ loss and the class of distributions, for the estimator's region.  A polyhedral one needs a
        ``domain``: bounds on the risk need bounded costs.
    delta : float, default=0.05
        Probability of failure, below 1/2.
    radius : float, optional
        Frobenius norm of the largest model in the class, intercept included, chosen before the data were seen.
    cost_bound, feature_bound : float, optional
        Bounds that no cost vector and no feature vector (with a 1 for the intercept) can exceed, in Euclidean length.

    Returns
    -------
    certificate : RiskCertificate

    See Also
    --------
    skspo.held_out_risk : A bound from samples that were not used for training, which is rarely vacuous.

    Notes
    -----
    The defaults are read off the data: ``radius`` from the model, the bounds from the largest rows.  The theorem does
    not allow this, and the certificate lists it among its assumptions.  The bound is usually vacuous: its constants
    decrease exponentially with the dimension.

    Examples
    --------
    >>> from skspo import Ellipsoid, SPOPlusRegressor
    >>> from skspo.calibration import StronglyConvexCalibration, risk_certificate
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 2))
    >>> C = X @ rng.normal(size=(2, 3)) + 0.1 * rng.uniform(-1, 1, size=(200, 3))
    >>> model = SPOPlusRegressor(region=Ellipsoid()).fit(X, C)
    >>> delta = StronglyConvexCalibration.from_region(Ellipsoid(), n_dim=3, beta=1.0)
    >>> certificate = risk_certificate(model, X, C, delta, radius=3.0, cost_bound=4.0, feature_bound=2.0)
    >>> certificate.vacuous
    True
    """
    check_is_fitted(estimator)
    missing = [name for name in ("coef_", "intercept_", "region_") if not hasattr(estimator, name)]
    if missing or np.ndim(estimator.coef_) != 2:
        raise TypeError(
            f"risk_certificate is for linear models with coef_ of shape (d, n_features), intercept_ and region_; "
            f"{type(estimator).__name__} is not one."
        )
    check_calibration(calibration)
    check_delta(delta)
    check_frames(estimator, X=X, y=y)
    X_arr = check_array(innermost_features(estimator, X), dtype=np.float64, input_name="X")
    coef = np.column_stack([estimator.coef_, np.broadcast_to(estimator.intercept_, estimator.coef_.shape[0])])
    has_intercept = bool(getattr(estimator, "fit_intercept", True)) or bool(np.any(coef[:, -1]))
    Z = np.column_stack([X_arr, np.full(X_arr.shape[0], float(has_intercept))])
    if Z.shape[1] != coef.shape[1]:
        raise ValueError(f"X has {X_arr.shape[1]} features, but the estimator was fitted with {coef.shape[1] - 1}.")
    C, C_hat = check_costs(y, Z @ coef.T, may_miss=True)
    n, d = C.shape
    region = estimator.region_
    C = check_existing(C, region)[0]
    need(region, "equalities")
    dim = d - equalities_of(region, d).shape[0]
    if getattr(calibration, "n_dim", dim) != dim:
        raise ValueError(
            f"calibration is for a region of dimension {calibration.n_dim}, the estimator's region has {dim}."  # type: ignore[attr-defined]
        )
    size_of_region = diameter(region, d)
    _check_same_region(calibration, region, d)

    size = float(np.linalg.norm(coef))
    given = {"radius": radius, "cost_bound": cost_bound, "feature_bound": feature_bound}
    observed = {
        "radius": size,
        "cost_bound": float(np.linalg.norm(C, axis=1).max()),
        "feature_bound": float(np.linalg.norm(Z, axis=1).max()),
    }
    used = {}
    for name, value in given.items():
        if value is None:
            used[name] = observed[name]
            continue
        check_positive(name, value)
        used[name] = float(value)
        if value < observed[name] * (1.0 - 1e-12):
            what = "the model" if name == "radius" else "a row of the data"
            raise ValueError(f"{name} is {value!r}, but {what} has {observed[name]:.6g}: the bound would not apply.")
    if isinstance(calibration, PolyhedralCalibration) and calibration.domain is not None:
        if used["cost_bound"] < np.sqrt(2.0) * calibration.domain * (1.0 - 1e-12):
            raise ValueError(
                f"domain={calibration.domain:g} says that there are costs of length "
                f"{np.sqrt(2.0) * calibration.domain:.6g}, cost_bound={used['cost_bound']:.6g} that there are none: "
                "no distribution satisfies both."
            )

    loss = SPOPlusLoss(region)
    values, G = loss.value_gradient(C, C_hat)
    risk = float(values.mean())
    gap, source = _gap(estimator, risk, Z, C, coef, G, used["radius"])
    rademacher = float(used["radius"] * np.sqrt(d) * used["feature_bound"] / np.sqrt(n))
    loss_range = spo_plus_range(size_of_region, used["cost_bound"], used["radius"] * used["feature_bound"])
    term = generalization_bound(rademacher, size_of_region, loss_range, n, delta)
    excess = gap + 2.0 * term
    assumptions = [
        "the samples are independent and identically distributed",
        f"E[c | x] is a linear model with Frobenius norm at most {used['radius']:.6g}, intercept included",
        f"no cost vector is longer than {used['cost_bound']:.6g}, no feature vector (with the 1 of the intercept) "
        f"than {used['feature_bound']:.6g}",
        *calibration.assumptions(),
    ]
    if region._clips(d):
        assumptions.append("decisions are made without clipping predictions to cost_bounds")
    for name, value in given.items():
        if value is None:
            assumptions.append(f"{name}, which was read off the data, is a valid choice that does not depend on them")
    return RiskCertificate(
        risk,
        gap,
        source,
        term,
        excess,
        float(calibration.inverse(excess)),
        float(size_of_region) * used["cost_bound"],
        float(delta),
        n,
        assumptions,
    )


def _check_same_region(calibration: CalibrationFunction, region: Region, d: int) -> None:
    """Raise an error if the bound is provably for another region."""
    if isinstance(calibration, StronglyConvexCalibration):
        need(region, "strong_convexity")
    if isinstance(calibration, PolyhedralCalibration):
        geometry = region_geometry(region, d)
        given = (("diameter", calibration.diameter, 1.0), ("width", calibration.width, -1.0))
        for (name, value, sign), true in zip(given, geometry[:2], strict=True):
            if true.kind == "exact" and sign * float(value) < sign * float(true) - 1e-9 * float(true):
                raise ValueError(f"calibration is for a region of {name} {value!r}, but {region!r} has {true!r}.")


def _gap(
    estimator: LinearPredictor,
    risk: float,
    Z: np.ndarray,
    C: np.ndarray,
    coef: np.ndarray,
    G: np.ndarray,
    radius: float,
) -> tuple[float, str]:
    """Upper bound on the training risk minus the least one in the class, and what proves it."""
    choices = [(risk, "losses are not negative")]
    # R_hat(B) >= R_hat(B_hat) + <B - B_hat, S>, and <B, S> >= -radius |S| in the class.
    S = G.T @ Z / Z.shape[0]
    choices.append((float(np.vdot(coef, S)) + radius * float(np.linalg.norm(S)), "subgradient at the model"))
    if isinstance(estimator, SPOPlusRegressor) and _minimizes(estimator, risk):
        trained, proof = estimator, "the estimator's dual bound"
    else:
        proof = "the dual bound of a reference without penalty"
        trained = SPOPlusRegressor(estimator.region_, fit_intercept=bool(Z[0, -1]))
        with quiet:  # the bound is valid even if the fit stops early
            trained.fit(Z[:, :-1], C)
    if _covers(trained, Z, C, radius):
        choices.append((risk - float(trained.lower_bound_), proof))
    gap, source = min(choices)
    return max(gap, 0.0), source


def _minimizes(estimator: SPOPlusRegressor, risk: float) -> bool:
    """Whether its objective is the training risk: with a penalty, weights or other data it is another one."""
    alone = estimator.surrogate_region is None and not estimator.alpha > 0
    return alone and abs(estimator.objective_ - risk) <= 1e-6 * max(abs(estimator.objective_), risk)


def _covers(estimator: LinearPredictor, Z: np.ndarray, C: np.ndarray, radius: float) -> bool:
    """Whether every model of the class is where a bound without ridge is proved (see ``skspo._training.objective``)."""
    d = C.shape[1]
    visible = project_visible(C, equalities_of(estimator.region_, d))
    typical = float(np.sqrt(np.square(visible).sum(axis=1).mean()))
    # Theta = (B diag(s), b + B m) / typical with means m and spreads s of the features, |s_k| <= max |x|.
    X = Z[:, :-1]
    scale = np.sqrt(2.0 + (X.shape[1] + 1.0) * np.square(X).max(initial=0.0))
    size = float(np.hypot(np.linalg.norm(estimator.coef_), np.linalg.norm(estimator.intercept_)))
    return bool((radius + size) * scale <= CERTIFICATE_RADIUS * typical)
