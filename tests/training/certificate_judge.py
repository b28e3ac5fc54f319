"""Independent checks of fitted models: objective, least squares, distances, optima (see ``certificate_problems.py``).

    loss_i = support(c - 2 c_hat) + 2 c_hat.w*(c) - c.w*(c)          the SPO+ loss, with ``Set.support``

In long double, unless there are so many numbers that this takes too long.  A model that is within the radius of the
certificate of least squares and has an objective below ``lower_bound_`` refutes the certificate.
"""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
from adversarial_judge import run
from certificate_problems import Problem, fit
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import skspo as sk
from skspo.regions.check import check_region

#: multiplications of a prediction up to which it is computed in long double
LONG_WORK = 2e6

#: largest numbers of rows and unknowns of a program that is solved directly
MOST_ROWS, MOST_UNKNOWNS = 2500, 150

#: rounding error of an objective or a bound, relative to max(objective, 1 % of the zero model's loss)
ROUNDING = 1e-9

#: regions whose oracles are no solvers, and look at the clock nevertheless
CLOCKED = (sk.Knapsack, sk.MixedInteger, sk.TravellingSalesman, sk.Assignment, sk.Markowitz)


class Exact:
    """Independent implementation of the training problem.  Models are pairs (coefficients, intercept) in user units."""

    def __init__(self, problem: Problem) -> None:
        self.problem, params = problem, problem.params
        n, d = problem.C.shape
        self.shared, self.intercept = params["shared"], params["fit_intercept"]
        self.alpha, self.l1_ratio = params.get("alpha", 0.0), params.get("l1_ratio", 0.0)
        self.prior_is_least_squares = params.get("prior", "zero") == "least_squares"
        items = d if self.shared else 1
        self.rows = problem.X.reshape(n * items, -1)
        self.number: Any = np.longdouble if self.rows.size * (1 if self.shared else d) <= LONG_WORK else np.float64
        region = check_region(problem.set.region, d)
        self.region = region if problem.set.params is None else region.with_rows(problem.set.params, n, d)
        self.sign = -1.0 if region.sense == "max" else 1.0
        possible = self.region.possible(n, d)
        #: costs that exist: the others are not data (``test_missing_costs.py`` checks which ones these are)
        self.exists = np.ones((n, d), dtype=bool) if possible is None else possible
        self.C = np.where(self.exists, self.sign * problem.C, 0.0).astype(self.number)
        self.offset = 0.0 if problem.offset is None else (self.sign * problem.offset).astype(self.number)
        weight = np.ones(n) if problem.weight is None else problem.weight
        self.weight = (weight / weight.sum()).astype(self.number)
        # If several decisions are optimal, the loss depends on the choice: use that of the package, if it is optimal.
        self.W = self.region.argmin(problem.C).astype(self.number)
        self.best = -problem.set.support(-self.C)
        size = np.abs(self.C).sum(axis=1) * np.abs(self.W).max(initial=1.0)
        error = np.abs((self.C * self.W).sum(axis=1) - self.best)
        assert (error <= 10.0 * problem.set.accuracy * size).all(), "the region's decisions are not optimal"
        self._set_coordinates()

    # -- objective -----------------------------------------------------------------------------------------------------

    def predict(self, coef, intercept):
        """Predictions, as costs to be minimized."""
        C_hat = self.rows.astype(self.number) @ np.asarray(coef, dtype=self.number).T + intercept
        return self.sign * C_hat.reshape(self.C.shape) + self.offset

    def loss(self, coef, intercept):
        C_hat = self.predict(coef, intercept)
        losses = self.problem.set.support(self.C - 2 * C_hat) + ((2 * C_hat - self.C) * self.W).sum(axis=1)
        return self.weight @ np.maximum(losses, 0.0)

    def penalty(self, coef, intercept):
        if not self.alpha:
            return 0.0
        pairs = [(coef, self.prior[0])]
        if self.prior_is_least_squares and self.intercept:
            pairs.append((intercept, self.prior[1]))
        D = [np.abs(np.asarray(B, dtype=self.number) - B0) for B, B0 in pairs]
        return self.alpha * sum((self.l1_ratio * a + (1.0 - self.l1_ratio) / 2 * a**2).sum() for a in D)

    def value(self, coef, intercept):
        return self.loss(coef, intercept) + self.penalty(coef, intercept)

    def size(self, coef, intercept):
        """Size of the terms whose difference is the loss: rounding errors are relative to this."""
        parts = np.abs(self.rows) @ np.abs(np.asarray(coef, dtype=float)).T + np.abs(np.asarray(intercept, dtype=float))
        total = np.abs(self.C) + 2 * (parts.reshape(self.C.shape) + np.abs(self.offset))
        return float(self.weight @ total.sum(axis=1)) * float(np.abs(self.W).max(initial=1.0))

    # -- distances -----------------------------------------------------------------------------------------------------

    def _set_coordinates(self) -> None:
        d = self.C.shape[1]
        items = d if self.shared else 1
        self.row_weight = np.repeat(self.weight.astype(float), items) / items
        # Samples without weight are not seen: a variable may be fixed in all others.
        seen = self.region.take(np.flatnonzero(self.weight > 0))
        normals = seen.equalities(d) if hasattr(seen, "equalities") else np.zeros((0, d))
        vertices = self.problem.set.vertices
        if vertices is not None and np.ndim(vertices) == 3:
            vertices = np.asarray(vertices)[self.weight > 0]
        if vertices is not None and normals.size:
            moves = np.asarray(vertices) - np.asarray(vertices)[..., :1, :]
            assert np.abs(moves @ normals.T).max() <= 1e-9, "decisions vary along a direction that is said to be hidden"
        self.normals = normals
        C = self.C.astype(float)
        visible = np.where(self.exists, C - (C @ normals.T) @ normals, 0.0)
        for i in np.flatnonzero(~self.exists.all(axis=1) & (self.weight > 0)):
            own = normals[:, self.exists[i]].T
            visible[i, self.exists[i]] = (C[i] - normals.T @ np.linalg.lstsq(own, C[i, self.exists[i]], rcond=1e-8)[0])[
                self.exists[i]
            ]
        self.cost_scale = float(np.sqrt(self.weight @ (visible**2).sum(axis=1)))
        whole = float(np.sqrt(self.weight @ (C**2).sum(axis=1)))
        self.cost_scale = (whole if self.cost_scale <= 1e-15 * whole else self.cost_scale) or 1.0
        center = self.intercept and not self.prior_is_least_squares
        self.mean = self.row_weight @ self.rows if center else np.zeros(self.rows.shape[1])
        spread = np.sqrt(self.row_weight @ (self.rows - self.mean) ** 2)
        largest = np.abs(self.rows[self.row_weight > 0]).max(axis=0)
        self.used = spread > 16 * np.finfo(float).eps * largest
        self.spread = np.where(self.used, spread, 1.0)
        Z = np.where(self.used, (self.rows - self.mean) / self.spread, 0.0)
        self.Z = np.column_stack([Z, np.ones(len(Z))]) if self.intercept else Z
        unknown = (C - self.offset).astype(float).reshape(len(Z), -1) / self.cost_scale
        root = np.sqrt(self.row_weight)[:, None]
        fitted, _, rank, _ = np.linalg.lstsq(root * self.Z, root * unknown, rcond=1e-11)
        q = self.Z.shape[1]
        lowest = rank
        exists = self.exists.reshape(unknown.shape)
        for j in np.flatnonzero(~exists.all(axis=0)):
            here = root * exists[:, [j]]
            fitted[:, j], _, own, _ = np.linalg.lstsq(here * self.Z, here[:, 0] * unknown[:, j], rcond=1e-11)
            # The package drops directions below 1e-6 of the largest one, for features as given.
            given = np.column_stack([self.rows, np.ones(len(self.rows))]) if self.intercept else self.rows
            own = min(own, np.linalg.matrix_rank(here * given, tol=1e-5 * np.linalg.norm(here * given)))
            lowest = min(lowest, own) if here.any() else lowest  # zero for a cost that never exists
        self.unique = lowest == int(self.used.sum()) + self.intercept
        #: whether the least-squares model, on which certificates rest, is known: costs that exist in few rows have many
        self.known = self.unique or bool(exists.all())
        #: directions of the features; models that differ in others only are the same
        self.span = None if rank == q else np.linalg.svd(root * self.Z, full_matrices=False)[2][:rank]
        self.least_squares = fitted.T
        self.prior: tuple[Any, Any] = self.to_user(fitted.T) if self.prior_is_least_squares else (0.0, 0.0)

    def theta(self, coef, intercept):
        """Coefficients times the spread of their features, and the intercept at their means, in typical costs."""
        coef = self.sign * np.atleast_2d(np.asarray(coef, dtype=float))
        Theta = np.where(self.used, coef * self.spread, 0.0)
        if self.intercept:
            at_mean = self.sign * np.ravel(intercept) * np.ones(len(coef)) + coef @ self.mean
            Theta = np.column_stack([Theta, at_mean])
        return Theta / self.cost_scale

    def to_user(self, Theta):
        p = self.rows.shape[1]
        coef = self.sign * self.cost_scale * np.where(self.used, Theta[:, :p] / self.spread, 0.0)
        intercept = np.zeros(len(coef))
        if self.intercept:
            intercept = self.sign * self.cost_scale * Theta[:, p] - coef @ self.mean
        return (coef[0], intercept[0]) if self.shared else (coef, intercept)

    def visible(self, Theta):
        return Theta - self.normals.T @ (self.normals @ Theta)

    def distance(self, coef, intercept):
        """Distance from least squares as in the certificate: only components that change the objective."""
        D = self.theta(coef, intercept) - self.least_squares
        if not self.shared and not self.prior_is_least_squares:
            if self.alpha * self.l1_ratio:
                # The l1 norm depends on all slopes.
                p = self.rows.shape[1]
                D[:, :p] += (self.least_squares - self.visible(self.least_squares))[:, :p]
                D[:, p:] = self.visible(D[:, p:])
            else:
                D = self.visible(D)
        if self.span is not None and not self.alpha:
            D = (D @ self.span.T) @ self.span
        return float(np.linalg.norm(D))

    def towards(self, model, radius):
        """The model, or the last point within the radius on the line from least squares to it."""
        distance = self.distance(*model)
        if distance <= radius:
            return model
        share = 0.999 * radius / distance
        start = self.least_squares
        return self.to_user(start + share * (self.theta(*model) - start))

    # -- optimum -------------------------------------------------------------------------------------------------------

    def program(self):
        """Optimal model, by HiGHS or Clarabel; None if the set has no description, or is too large.

        min  sum_i a_i (t_i + 2 c_hat_i.w_i) + sum_jk (l1_k s_jk + l2_k / 2 D_jk^2),    D = Theta - Theta0
        s.t. t_i >= (c_i - 2 c_hat_i).v for all vertices v,   or t_i >= center.u_i + |M^T u_i|, u_i = c_i - 2 c_hat_i,
             s >= D, s >= -D
        """
        vertices, norm = self.problem.set.vertices, self.problem.set.norm
        (n, d), q = self.C.shape, self.Z.shape[1]
        m = q if self.shared else d * q
        if vertices is None and norm is None:
            return None
        k = np.asarray(vertices).shape[-2] if vertices is not None else norm[1].shape[1] + 1
        if n * k > MOST_ROWS or m > MOST_UNKNOWNS or (self.prior_is_least_squares and self.alpha and not self.unique):
            return None
        # c_hat_i = offset_i + F_i theta
        Z = self.Z.reshape(n, -1, q)
        F = Z if self.shared else np.einsum("jl,iq->ijlq", np.eye(d), Z[:, 0]).reshape(n, d, m)
        a, W = self.weight.astype(float), self.W.astype(float)
        U = ((self.C - 2 * self.offset) / self.cost_scale).astype(float)  # u_i = U_i - 2 F_i theta
        columns = m + n + m  # theta, t, s
        s = np.append(self.spread, np.ones(q - len(self.spread)))
        penalized = np.append(
            np.ones(len(self.spread)), np.full(q - len(self.spread), float(self.prior_is_least_squares))
        )
        repeat = 1 if self.shared else d
        l1 = np.tile(self.alpha * self.l1_ratio / s * penalized, repeat)
        l2 = np.tile(self.alpha * (1.0 - self.l1_ratio) * self.cost_scale / s**2 * penalized, repeat)
        start = (self.least_squares if self.prior_is_least_squares else np.zeros((repeat, q))).ravel()
        linear = np.concatenate([2 * np.einsum("i,ij,ijm->m", a, W, F) - l2 * start, a, l1])
        l1_rows = np.hstack([np.vstack([np.eye(m), -np.eye(m)]), np.zeros((2 * m, n)), np.tile(-np.eye(m), (2, 1))])
        l1_right = np.concatenate([start, -start])
        if vertices is not None:
            V = np.broadcast_to(vertices, (n, *np.shape(vertices)[-2:]))
            A = np.hstack([-2 * np.einsum("ikj,ijm->ikm", V, F).reshape(-1, m), -np.repeat(np.eye(n), k, axis=0)])
            A = np.hstack([A, np.zeros((len(A), m))])
            right = -np.einsum("ikj,ij->ik", V, U).ravel()
            cones = [clarabel.NonnegativeConeT(len(A) + 2 * m)]
        else:
            center, M = norm
            # (t_i - center.u_i, M^T u_i) in the second-order cone; slack = right - A x.
            A, right = np.zeros((n, k, columns)), np.zeros((n, k))
            A[:, 0, :m], A[np.arange(n), 0, m + np.arange(n)] = -2 * np.einsum("j,ijm->im", center, F), -1.0
            right[:, 0] = -U @ center
            A[:, 1:, :m], right[:, 1:] = 2 * np.einsum("jl,ijm->ilm", M, F), U @ M
            A, right = A.reshape(n * k, columns), right.ravel()
            cones = [*[clarabel.SecondOrderConeT(k)] * n, clarabel.NonnegativeConeT(2 * m)]
        A, right = np.vstack([A, l1_rows]), np.concatenate([right, l1_right])
        if vertices is not None and not l2.any():
            x = linprog(linear, A, right, bounds=(None, None)).x
        else:
            settings = clarabel.DefaultSettings()
            settings.verbose = False
            P = sp.csc_matrix(np.diag(np.concatenate([l2, np.zeros(n + m)])))
            x = clarabel.DefaultSolver(P, linear, sp.csc_matrix(A), right, cones, settings).solve().x
        if x is None or not np.isfinite(x).all():
            return None
        return self.to_user(np.reshape(x[:m], (repeat, q)))


def models_to_try(exact: Exact, model: Any, second_opinion: bool):
    """Named models that may refute a certificate."""
    rng = np.random.default_rng(0)
    zero = np.zeros_like(exact.least_squares)
    here = exact.theta(model.coef_, model.intercept_)
    yield "the model itself", (model.coef_, model.intercept_)
    yield "zero", exact.to_user(zero)
    yield "least squares", exact.to_user(exact.least_squares)
    for k, known in enumerate(exact.problem.models):
        yield f"known model {k}", known
    if exact.C.size > 10_000:
        return
    for factor in (0.5, 2.0, 1e3):
        yield f"the model times {factor:g}", exact.to_user(factor * here)
    for length in (1e-6, 1e-2, 1.0):
        yield f"a model at {length:g}", exact.to_user(here + length * rng.normal(size=here.shape))
    best = exact.program()
    if best is not None:
        yield "the optimum by hand", best
    elif second_opinion:
        problem = exact.problem
        other = clone(model).set_params(tol=1e-7, max_iter=200, time_limit=0.5, warm_start=False)
        other.set_params(solver="bundle" if model.solver_ != "bundle" else "auto")
        run(lambda: other.fit(*problem.arrays, region_params=problem.set.params))
        yield f"that of {other.solver_}", (other.coef_, other.intercept_)


def judge(problem: Problem) -> str:
    """Fit SPOPlusRegressor; raise an AssertionError if an attribute is wrong."""
    model = sk.SPOPlusRegressor(problem.set.region, **problem.params)
    outcome, _ = run(lambda: fit(model, problem))
    if outcome != "refused":
        judge_model(problem, model, outcome == "warned", second_opinion=problem.X.shape[0] <= 100)
    return outcome


def judge_model(problem: Problem, model: Any, warned: bool, second_opinion: bool = False) -> None:
    """Check the attributes of a fitted SPO+ model."""
    if model.objective_ == np.inf:
        judge_unknown(problem, model, warned)
        return
    for name in ("coef_", "intercept_", "objective_", "lower_bound_", "duality_gap_"):
        assert np.isfinite(getattr(model, name)).all(), f"{name} is {getattr(model, name)}"
    exact = Exact(problem)
    if not exact.known:
        return
    mine = (model.coef_, model.intercept_)
    trivial = exact.loss(*exact.to_user(np.zeros_like(exact.least_squares)))

    def rounding(value, candidate):
        measure = ROUNDING * max(float(value), 0.01 * float(trivial))
        return measure + (problem.set.accuracy + 1e-13) * exact.size(*candidate)

    value = exact.value(*mine)
    slack = rounding(value, mine)
    assert abs(model.objective_ - value) <= slack, f"objective_ is {model.objective_}, by hand it is {value}"
    objective, bound = model.objective_, model.lower_bound_
    assert 0.0 <= bound <= objective, f"{bound=}, {objective=}"
    measure = max(objective, 0.01 * float(trivial))
    gap = (objective - bound) / measure if measure > 0 else 0.0
    assert abs(gap - model.duality_gap_) <= 1e-6 * gap + slack / (measure or 1.0), f"{model.duality_gap_=}, {gap=}"
    assert warned == (model.duality_gap_ > model.tol), f"warned: {warned}, with a gap of {model.duality_gap_}"

    radius, distance = model.certificate_radius_, exact.distance(*mine)
    assert radius >= 10_000.0 and radius >= 2.0 * distance * (1.0 - 1e-6), f"{radius=}, {distance=}"
    if exact.alpha * (1.0 - exact.l1_ratio) and (exact.prior_is_least_squares or not exact.intercept):
        assert radius == np.inf, f"a ridge on all coefficients, but {radius=}"

    for name, candidate in models_to_try(exact, model, second_opinion):
        near = exact.towards(candidate, radius)
        known = exact.value(*near)
        allowed = rounding(known, near)
        assert bound <= known + allowed, f"lower_bound_ is {bound}, {name} attains {known}; {objective=}, {radius=}"
        if not warned:
            allowed += model.tol * measure
            assert objective <= known + allowed, f"no warning, objective_ is {objective}, {name} attains {known}"
        if name in ("zero", "least squares") and not (exact.alpha and not exact.unique):
            assert objective <= exact.value(*candidate) + rounding(known, candidate), (
                f"objective_ is {objective}, {name} attains {known}"
            )
    # Exact zeros are the last step; after a gap that was closed in time there may be no time for it.
    in_time = problem.params.get("time_limit") is None
    if exact.alpha * exact.l1_ratio and not exact.prior_is_least_squares and not warned and in_time:
        judge_zeros(exact, model, trivial)


def judge_unknown(problem: Problem, model: Any, warned: bool) -> None:
    """If the time is too short for one pass of a slow oracle, no loss is known: there is a warning, and no bound.

    The model is the one that training starts from: least squares, a warm start, or the SPO+ model.
    """
    assert warned and problem.params.get("time_limit") is not None
    region = problem.set.region
    assert region.oracle_is_solver or isinstance(region, CLOCKED), "this oracle ignores the clock"
    assert (model.lower_bound_, model.duality_gap_) == (0.0, np.inf)
    exact = Exact(problem)
    if exact.unique and problem.place != "warm" and isinstance(model, sk.SPOPlusRegressor):
        distance = exact.distance(model.coef_, model.intercept_)
        assert distance <= 1e-6, f"the model is {distance} away from least squares"


def judge_zeros(exact: Exact, model: Any, trivial: Any) -> None:
    """With an l1 penalty no coefficient is nearly zero if exact zero is as good."""
    Theta = exact.theta(model.coef_, 0.0)[:, : exact.rows.shape[1]]
    tiny = (np.abs(Theta) <= 1e-6 * np.abs(Theta).max()) & (Theta != 0)
    if tiny.any():
        coef = np.where(tiny.reshape(model.coef_.shape), 0.0, model.coef_)
        value = exact.value(coef, model.intercept_)
        allowed = model.objective_ + 0.01 * model.tol * max(model.objective_, 0.01 * float(trivial))
        assert value > allowed, f"{tiny.sum()} coefficients are nearly zero, but not zero"


# -- other estimators --------------------------------------------------------------------------------------------------


def judge_spo(problem: Problem) -> str:
    """SPORegressor: its objective is the loss of its decisions, not above that of least squares and zero."""
    model = sk.SPORegressor(problem.set.region, **problem.params)
    outcome, _ = run(lambda: fit(model, problem))
    if outcome == "refused":
        return outcome
    if model.objective_ == np.inf:
        judge_unknown(problem, model, outcome == "warned")
        return outcome
    exact = Exact(problem)
    if not exact.known:
        return outcome

    def regret(C_hat):
        return float(exact.weight @ (exact.C * exact.region.argmin(C_hat)).sum(axis=1) - exact.weight @ exact.best)

    def predicted(coef, intercept):
        return np.asarray(exact.sign * exact.predict(coef, intercept), dtype=float)

    trivial = regret(predicted(*exact.to_user(np.zeros_like(exact.least_squares))))
    slack = (problem.set.accuracy + 1e-12) * exact.size(0.0 * model.coef_, 0.0)
    slack *= 1.0 if problem.set.vertices is not None else 1e3  # decisions move with the predictions
    C_hat = model.predict(problem.X, problem.offset).reshape(exact.C.shape)
    assert np.isfinite(C_hat).all()
    value = regret(C_hat)
    # Ties up to rounding may be decided either way.
    if problem.set.vertices is not None:
        low, high = regret_range(exact, exact.sign * C_hat)
    else:
        noise = 1e-9 * np.abs(C_hat).max() * np.random.default_rng(0).normal(size=(50, *C_hat.shape))
        near = [regret(C_hat + E) for E in noise]
        low, high = min(value, *near), max(value, *near)
    assert low - slack <= model.objective_ <= high + slack, f"objective_ is {model.objective_}, the loss is {value}"
    assert -slack <= model.lower_bound_ <= model.objective_ + slack, f"{model.lower_bound_=}, {model.objective_=}"
    fitted = regret_range(exact, exact.sign * predicted(*exact.to_user(exact.least_squares)))[1]
    fitted = max(fitted, regret(predicted(*exact.to_user(exact.least_squares))))
    assert model.objective_ <= fitted + slack, f"objective_ is {model.objective_}, least squares has {fitted}"
    assert model.objective_ <= trivial + slack, f"objective_ is {model.objective_}, zero has {trivial}"
    found = model.lower_bound_, model.certificate_radius_
    assert found == (0.0, np.inf), f"lower_bound_ and its radius are {found}"
    return outcome


def regret_range(exact: Exact, C_hat: np.ndarray) -> tuple[float, float]:
    """Smallest and largest SPO loss of decisions that are optimal for the predictions up to rounding."""
    vertices = exact.problem.set.vertices
    if vertices is None:
        return -np.inf, np.inf
    V = np.broadcast_to(vertices, (len(C_hat), *np.shape(vertices)[-2:]))
    scores = np.einsum("ij,ikj->ik", C_hat, V)
    tied = scores <= scores.min(axis=1, keepdims=True) + 1e-9 * np.abs(C_hat).sum(axis=1, keepdims=True)
    costs = np.einsum("ij,ikj->ik", exact.C.astype(float), V)
    ends = np.where(tied, costs, np.inf).min(axis=1), np.where(tied, costs, -np.inf).max(axis=1)
    low, high = (float(exact.weight @ (end - exact.best)) for end in ends)
    return low, high


def judge_stream(problem: Problem, chunks: int) -> str:
    """partial_fit: the objective is that of the last chunk, and nothing is proved."""
    model = sk.SPOPlusRegressor(problem.set.region, **problem.params | {"solver": "auto"})
    rows = np.array_split(np.arange(problem.X.shape[0]), chunks)
    rows = [r for r in rows if r.size and (problem.weight is None or problem.weight[r].any())]

    def part(r):
        return [None if a is None else a[r] for a in problem.arrays]

    outcome, _ = run(lambda: [model.partial_fit(*part(r)) for r in rows])
    if outcome == "refused":
        return outcome
    last = rows[-1]
    X, C, weight, offset = part(last)
    chunk = Problem(X, C, problem.set, problem.params | {"alpha": 0.0}, weight, offset)
    loss, slack = Exact(chunk).loss(model.coef_, model.intercept_), Exact(chunk).size(model.coef_, model.intercept_)
    slack = float(slack) * (problem.set.accuracy + 1e-12) + 1e-9 * float(loss)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_)
    assert model.lower_bound_ == 0.0 and model.certificate_radius_ == np.inf
    if not problem.params["alpha"]:
        assert abs(model.objective_ - loss) <= slack, f"objective_ is {model.objective_}, the loss is {loss}"
    assert model.objective_ >= loss - slack
    return outcome


def judge_network(problem: Problem, **params: Any) -> str:
    """SPOMLPRegressor: with negligible steps, its loss is the loss at its weights; nothing is NaN."""
    model = sk.SPOMLPRegressor(problem.set.region, shared=problem.params["shared"], random_state=0, **params)
    try:
        outcome, _ = run(lambda: fit(model, problem))
    except ValueError as error:
        if "Training diverged" in str(error):
            return "refused"
        raise
    if outcome == "refused":
        return outcome
    C_hat = model.predict(problem.X, problem.offset).reshape(problem.C.shape)
    assert np.isfinite(C_hat).all() and np.isfinite(model.loss_) and np.isfinite(model.loss_curve_).all()
    if params["learning_rate_init"] < 1e-200:
        exact = Exact(problem)
        C_hat = exact.sign * C_hat
        losses = problem.set.support(exact.C - 2 * C_hat) + ((2 * C_hat - exact.C) * exact.W).sum(axis=1)
        size = float((np.abs(exact.C) + 2 * np.abs(C_hat)).sum(axis=1).max()) * float(np.abs(exact.W).max(initial=1.0))
        loss = float(exact.weight @ losses)
        assert abs(model.loss_ - loss) <= (problem.set.accuracy + 1e-10) * size, f"loss_ {model.loss_}, loss {loss}"
    return outcome


__all__ = ["ConvergenceWarning", "Exact", "judge", "judge_model", "judge_network", "judge_spo", "judge_stream"]
