"""Inequalities for decisions in strongly convex regions.

Conventions
-----------
    S = {w : f(w) <= r}     f mu-strongly convex and L-smooth on S, in the norm |.|_A of the directions of S
    |c|_*                   dual norm of c on the directions of S (see ``Subspace``)
    h = r - f_min

    decision_cost_bounds       mu / (2 sqrt(2 L h)) |c1|_* |w2 - w1|^2  <=  c1.(w2 - w1)  <=  L / (2 sqrt(2 mu h)) ...
    decision_distance_bounds   sqrt(2 mu h) / L |u1 - u2|_*  <=  |w2 - w1|  <=  sqrt(2 L h) / mu |u1 - u2|_*
    with wi = w*(ci) and ui = ci / |ci|_*

Each function takes rows of costs and returns a :class:`Sides` with one entry per row.  Costs must have a visible part:
with c2 = 0 the decision may lie inside S, where the upper bounds fail.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy
from sides import Sides, Subspace

from skspo import Ellipsoid, EntropySimplex, LogBarrierSimplex, LqBall
from skspo.calibration._checks import rows
from skspo.calibration.geometry import need, strong_convexity
from skspo.regions.base import Region, StrongConvexity
from skspo.regions.check import check_region


def _prepare(
    region: Region, c: ArrayLike, name: str, A: ArrayLike | None
) -> tuple[Region, np.ndarray, StrongConvexity, Subspace]:
    need(region, "strong_convexity", "equalities")
    C = rows(name, c)
    d = C.shape[1]
    region = check_region(region, d)
    constants = strong_convexity(region, d, A)
    if constants.depth <= 0:
        raise ValueError(f"{region!r} has only one decision: there is nothing to bound.")
    return region, region.to_min(C), constants, Subspace.of(region, d, A)


def _second(name: str, c: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    C = rows(name, c, shape[1])
    if C.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {C.shape}.")
    return C


def _check_visible(space: Subspace, **costs: np.ndarray) -> None:
    for name, C in costs.items():
        size = np.linalg.norm(C, axis=1)
        if (space.dual_norm(C) <= 1e-14 * size).any() or (size == 0).any():
            raise ValueError(
                f"{name} has a row without effect on decisions (zero, or constant over the region): its optimal "
                "decision is not unique, and the bound does not hold there."
            )


def optimality_bound(region: Region, c: ArrayLike, W: ArrayLike, A: ArrayLike | None = None) -> Sides:
    r"""Cost of any decisions over the best ones, from below.

    .. math:: c^\top (w - w^*(c)) \ge \frac{\mu}{2 \sqrt{2 L h}} \, \lVert c\rVert_* \lVert w - w^*(c)\rVert^2

    Here and below h is the level of the region above the minimum of its function.

    Parameters
    ----------
    region : Region
        With ``strong_convexity``.
    c : array-like of shape (n, d)
        Costs.
    W : array-like of shape (n, d)
        Feasible decisions.
    A : array-like of shape (d, d), optional
        Matrix of the norm; None means the 2-norm.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from level_set_steps import optimality_bound
    >>> optimality_bound(Ellipsoid(), [[1.0, 0.0]], [[1.0, 0.0]])
    Sides(lower=array([2.]), value=array([2.]), upper=array([inf]))
    """
    region, C, k, space = _prepare(region, c, "c", A)
    W_arr = _second("W", W, C.shape)
    step = W_arr - region.solve_min(C)
    factor = k.mu / (2.0 * np.sqrt(2.0 * k.L * k.depth)) if np.isfinite(k.L) else 0.0
    value = np.einsum("ij,ij->i", C, step)
    return Sides(factor * space.dual_norm(C) * space.norm(step) ** 2, value, np.full(C.shape[0], np.inf))


def decision_cost_bounds(region: Region, c1: ArrayLike, c2: ArrayLike, A: ArrayLike | None = None) -> Sides:
    r"""Both bounds on :math:`c_1^\top (w^*(c_2) - w^*(c_1))`, the SPO loss of the prediction c2 at the cost c1.

    Parameters
    ----------
    region : Region
        With ``strong_convexity``; if the function is not smooth (L infinite) the bounds are 0 and infinity.
    c1, c2 : array-like of shape (n, d)
        Costs with a visible part.
    A : array-like of shape (d, d), optional
        Matrix of the norm; None means the 2-norm.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from level_set_steps import decision_cost_bounds
    >>> decision_cost_bounds(Ellipsoid(), [[1.0, 0.0]], [[0.0, 1.0]])
    Sides(lower=array([1.]), value=array([1.]), upper=array([1.]))
    """
    region, C1, k, space = _prepare(region, c1, "c1", A)
    C2 = region.to_min(_second("c2", c2, C1.shape))
    _check_visible(space, c1=C1, c2=C2)
    step = region.solve_min(C2) - region.solve_min(C1)
    size = space.dual_norm(C1) * space.norm(step) ** 2
    value = np.einsum("ij,ij->i", C1, step)
    if not np.isfinite(k.L):
        return Sides(np.zeros(size.shape), value, np.full(size.shape, np.inf))
    lower = k.mu / (2.0 * np.sqrt(2.0 * k.L * k.depth)) * size
    return Sides(lower, value, k.L / (2.0 * np.sqrt(2.0 * k.mu * k.depth)) * size)


def decision_distance_bounds(region: Region, c1: ArrayLike, c2: ArrayLike, A: ArrayLike | None = None) -> Sides:
    """Both bounds on the distance of two optimal decisions in terms of the distance of the normalized costs.

    Parameters
    ----------
    region : Region
        With ``strong_convexity``; if the function is not smooth (L infinite) the bounds are 0 and infinity.
    c1, c2 : array-like of shape (n, d)
        Costs with a visible part.
    A : array-like of shape (d, d), optional
        Matrix of the norm; None means the 2-norm.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from level_set_steps import decision_distance_bounds
    >>> decision_distance_bounds(Ellipsoid(), [[1.0, 0.0]], [[-2.0, 0.0]])
    Sides(lower=array([2.]), value=array([2.]), upper=array([2.]))
    """
    region, C1, k, space = _prepare(region, c1, "c1", A)
    C2 = region.to_min(_second("c2", c2, C1.shape))
    _check_visible(space, c1=C1, c2=C2)
    gap = _normalized_gap(space, C1, C2)
    value = space.norm(region.solve_min(C2) - region.solve_min(C1))
    if not np.isfinite(k.L):
        return Sides(np.zeros(gap.shape), value, np.full(gap.shape, np.inf))
    return Sides(np.sqrt(2.0 * k.mu * k.depth) / k.L * gap, value, np.sqrt(2.0 * k.L * k.depth) / k.mu * gap)


def _normalized_gap(space: Subspace, C1: np.ndarray, C2: np.ndarray) -> np.ndarray:
    V1, V2 = space.whiten(C1), space.whiten(C2)
    V1, V2 = (V / np.linalg.norm(V, axis=1, keepdims=True) for V in (V1, V2))
    return np.linalg.norm(V1 - V2, axis=1)


def level(region: Region, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f and its gradient, for each row; the region is where f is at most the threshold or radius^2."""
    d = W.shape[1]
    with np.errstate(divide="ignore"):
        if isinstance(region, EntropySimplex):
            return xlogy(W, W).sum(axis=1), 1.0 + np.log(W)
        if isinstance(region, LogBarrierSimplex):
            return -np.log(W).sum(axis=1), -1.0 / W
    if isinstance(region, Ellipsoid):
        Q = np.eye(d) if region.Q is None else np.asarray(region.Q, dtype=float)
        step = W - (np.zeros(d) if region.center is None else np.asarray(region.center, dtype=float))
        return np.einsum("ij,jk,ik->i", step, Q, step), 2.0 * step @ Q
    if isinstance(region, LqBall):
        size = np.linalg.norm(W, ord=region.q, axis=1, keepdims=True)
        unit = W / np.where(size > 0, size, 1.0)
        return size[:, 0] ** 2, 2.0 * size * np.sign(unit) * np.abs(unit) ** (region.q - 1.0)
    raise TypeError(f"{type(region).__name__} is not the level set of a function that is known here")


def gradient_bounds(region: Region, W: ArrayLike, A: ArrayLike | None = None) -> Sides:
    r"""Both bounds on the gradient of the function whose level set the region is.

    .. math:: \sqrt{2 \mu (f(w) - f_{\min})} \le \lVert \nabla f(w)\rVert_* \le \sqrt{2 L (f(w) - f_{\min})}

    Parameters
    ----------
    region : Region
        With ``strong_convexity``.
    W : array-like of shape (n, d)
        Feasible decisions.
    A : array-like of shape (d, d), optional
        Matrix of the norm; None means the 2-norm.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from level_set_steps import gradient_bounds
    >>> gradient_bounds(Ellipsoid(), [[0.6, 0.0]])
    Sides(lower=array([1.2]), value=array([1.2]), upper=array([1.2]))
    """
    W_arr = rows("W", W)
    region, _, k, space = _prepare(region, W, "W", A)
    f, G = level(region, W_arr)
    height = np.maximum(f - k.f_min, 0.0)
    with np.errstate(invalid="ignore"):
        upper = np.where(height > 0, np.sqrt(2.0 * k.L * height), np.inf if np.isinf(k.L) else 0.0)
    return Sides(np.sqrt(2.0 * k.mu * height), space.dual_norm(G), upper)


def spo_plus_term_bound(region: Region, c: ArrayLike, delta: ArrayLike, A: ArrayLike | None = None) -> Sides:
    r"""Lower bound on the excess SPO+ loss for symmetric costs.

    .. math:: (c + 2 \Delta)^\top (w^*(c) - w^*(c + 2 \Delta))
        \ge \frac{\mu^2 \sqrt{h}}{\sqrt{2} L^{5/2}} \, \lVert c + 2 \Delta\rVert_* \lVert u - u'\rVert_*^2
        = \frac{\sqrt{2} \mu^2 \sqrt{h}}{L^{5/2}}
        \left(\lVert c + 2 \Delta\rVert_* - \frac{\langle c, c + 2 \Delta \rangle_*}{\lVert c\rVert_*}\right)

    with :math:`u, u'` the normalized costs.

    Parameters
    ----------
    region : Region
        With ``strong_convexity`` and a finite L.
    c, delta : array-like of shape (n, d)
        Costs, and differences of prediction and mean; c and c + 2 delta need a visible part.
    A : array-like of shape (d, d), optional
        Matrix of the norm; None means the 2-norm.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from level_set_steps import spo_plus_term_bound
    >>> spo_plus_term_bound(Ellipsoid(), [[1.0, 0.0]], [[-1.0, 0.0]])
    Sides(lower=array([2.]), value=array([2.]), upper=array([inf]))
    """
    region, C, k, space = _prepare(region, c, "c", A)
    moved = C + 2.0 * region.to_min(_second("delta", delta, C.shape))
    _check_visible(space, c=C, **{"c + 2 delta": moved})
    factor = k.mu**2 * np.sqrt(k.depth) / (np.sqrt(2.0) * k.L**2.5)
    value = np.einsum("ij,ij->i", moved, region.solve_min(C) - region.solve_min(moved))
    lower = factor * space.dual_norm(moved) * _normalized_gap(space, C, moved) ** 2
    return Sides(lower, value, np.full(value.shape, np.inf))


def angle_bound(region: Region, c_bar: ArrayLike, c_hat: ArrayLike, A: ArrayLike | None = None) -> Sides:
    r"""How far a prediction must point away from the mean for its excess SPO risk: a lower bound on 1 - cos.

    .. math:: 1 - \cos(\bar c, \hat c) \ge \frac{\mu^{5/2}}{\sqrt{2 h} \, L^2 \lVert \bar c\rVert_*} \, \epsilon

    for an excess SPO risk of :math:`\epsilon`.

    Parameters
    ----------
    region : Region
        With ``strong_convexity`` and a finite L.
    c_bar, c_hat : array-like of shape (n, d)
        Means and predictions with a visible part.
    A : array-like of shape (d, d), optional
        Matrix of the norm; None means the 2-norm.

    Returns
    -------
    sides : Sides

    Examples
    --------
    >>> from skspo import Ellipsoid
    >>> from level_set_steps import angle_bound
    >>> angle_bound(Ellipsoid(), [[1.0, 0.0]], [[-1.0, 0.0]])
    Sides(lower=array([2.]), value=array([2.]), upper=array([inf]))
    """
    region, mean, k, space = _prepare(region, c_bar, "c_bar", A)
    C_hat = region.to_min(_second("c_hat", c_hat, mean.shape))
    _check_visible(space, c_bar=mean, c_hat=C_hat)
    excess = np.einsum("ij,ij->i", mean, region.solve_min(C_hat) - region.solve_min(mean))
    lower = k.mu**2.5 / (np.sqrt(2.0 * k.depth) * k.L**2 * space.dual_norm(mean)) * excess
    return Sides(lower, 0.5 * _normalized_gap(space, mean, C_hat) ** 2, np.full(excess.shape, np.inf))
