"""Problems made to break numerics, and the judge of what comes out (used by ``test_adversarial.py``).

A problem is data, a region, and the parameters of an estimator.  Its outcome must be one of

    certified   a gap of at most ``tol``, checked by arithmetic that shares nothing with the package but its oracle
    warned      a ConvergenceWarning; coefficients, objective and bound are checked in the same way
    refused     a ValueError or TypeError that names the cause

and everything else is an AssertionError: other exceptions, NumPy's RuntimeWarning, numbers that are not finite, an
objective that is not the objective of the coefficients, a bound above what some other model attains.

The arithmetic is in long double, whose range (1e-4932 to 1e4932 on x86) holds every product of doubles.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import event
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning

import skspo as sk
from skspo._training.objective import LinearObjective
from skspo._utils.scaling import relative_weight
from skspo.losses import SPOPlusLoss
from skspo.regions.check import check_region

LONG = np.longdouble

#: errors that name their cause; a message that fits none of these does not help anybody
CAUSES = [
    r"^Input (X|y) contains (NaN|infinity)",
    r"cannot serve the region",
    r"a smooth penalty",
    r"^sample_weight is zero for every training sample of a fold",
    r"^Cross-validation needs at least 2 samples",
    r"^The penalty overflows: features of size .* Rescale",
    r"^(X|y|offset) has values of size .* use larger units",
    r"^The costs are of size .* use other units",
    r"^A feature varies by .* Rescale",
    r"^The offset is .* times as large as a typical cost",
]

#: how often each outcome came up in this process, by test
COUNTS: dict[str, Counter[str]] = {}


# -- regions -----------------------------------------------------------------------------------------------------------


def cheapest(C):
    return np.eye(C.shape[1])[C.argmin(axis=1)]


def corners(d):
    return np.array(list(itertools.product((0.0, 1.0), repeat=d)))


def packings(weights, capacity):
    points = corners(len(weights))
    return points[points @ np.array(weights, dtype=float) <= capacity]


def simplex(sense):
    return lambda d: (sk.Simplex(sense=sense), np.eye(d))


def box(low, high):
    return lambda d: (sk.Box(low, high), low + (high - low) * corners(d))


def markowitz(d):
    M = np.vander(np.linspace(0.2, 1.0, d), d)
    return sk.Markowitz(M @ M.T + 0.1 * np.eye(d), 2.0), None


def fixed(d, make, vertices=None):
    """A region of one dimension only."""
    return [d], lambda _: (make(), vertices)


PATHS = np.array([[1.0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
SIZES = [1, 2, 3, 5]

#: name -> (dimensions, d -> (region, vertices or None))
POLYHEDRA = {
    "simplex": (SIZES, simplex("min")),
    "simplex-max": (SIZES, simplex("max")),
    "box": ([1, 2, 3], box(0.0, 1.0)),
    "box-wide": ([1, 3], box(-1e6, 1e6)),
    "box-narrow": ([2], box(1.0, 1.0 + 1e-6)),
    "box-point": ([2], lambda d: (sk.Box(2.0, 2.0), np.full((1, d), 2.0))),
    "l1": (SIZES, lambda d: (sk.L1Ball(2.0), np.vstack([2 * np.eye(d), -2 * np.eye(d)]))),
    "top-2": ([2, 4], lambda d: (sk.TopK(2), np.array([v for v in corners(d) if v.sum() == 2]))),
    "path": fixed(4, lambda: sk.ShortestPath([(0, 1), (0, 2), (1, 2), (0, 2)], 0, 2), PATHS),
    "grid": fixed(7, lambda: sk.ShortestPath.grid(2, 3)),
    "knapsack-fractional": fixed(4, lambda: sk.Knapsack([3, 1, 4, 1], 5, integer=False)),
    "polyhedron": fixed(3, lambda: sk.Polyhedron([[1, 2, 3]], [4], bounds=(0, 2), sense="max")),
}
SMOOTH = {
    "entropy": ([2, 3, 5], lambda d: (sk.EntropySimplex(), None)),
    "entropy-loose": fixed(4, lambda: sk.EntropySimplex(-0.3)),
    "log-barrier": ([2, 3], lambda d: (sk.LogBarrierSimplex(), None)),
    "ellipsoid": ([1, 3], lambda d: (sk.Ellipsoid(np.diag(10.0 ** np.arange(d)), np.ones(d), 2.0), None)),
    "ellipsoid-thin": fixed(3, lambda: sk.Ellipsoid(np.diag([1e-6, 1.0, 1e6]), sense="max")),
    "ball": (SIZES, lambda d: (sk.LqBall(2.0), None)),
    "lq": ([2, 3], lambda d: (sk.LqBall(1.5, 3.0), None)),
    "markowitz": ([2, 3], markowitz),
}
ORACLES = {
    "knapsack": fixed(4, lambda: sk.Knapsack([3, 1, 4, 1], 5), packings([3, 1, 4, 1], 5)),
    "knapsack-min": fixed(3, lambda: sk.Knapsack([2, 3, 4], 5, sense="min"), packings([2, 3, 4], 5)),
    "oracle": ([1, 2, 4], lambda d: (sk.OracleRegion(cheapest), np.eye(d))),
    "integer": fixed(2, lambda: sk.MixedInteger([[2, 1]], [3], bounds=(0, 2), integrality=1)),
}

SOLVERS = {
    "polyhedra": ["auto", "auto", "interior-point", "interior-point", "conic", "bundle", "dual", "sgd"],
    "smooth": ["auto", "auto", "lbfgs", "newton", "conic", "bundle"],
    "oracles": ["auto", "bundle", "dual", "sgd"],
    "markowitz": ["auto", "interior-point", "conic", "bundle"],
}
FAMILIES = {"polyhedra": POLYHEDRA, "smooth": SMOOTH, "oracles": ORACLES}


# -- numbers -----------------------------------------------------------------------------------------------------------


def numbers(rng, shape, kind):
    """An array with one of many ways to be nasty."""
    G = rng.normal(size=shape)
    power = {"rows": (shape[0], 1), "columns": (1, shape[1]), "entries": shape}
    match kind:
        case "normal":
            return G
        case "zero":
            return np.zeros(shape)
        case "constant":
            return np.full(shape, 3.7)
        case "constant-columns":
            return np.broadcast_to(rng.normal(size=(1, shape[1])), shape).copy()
        case "constant-rows":
            return np.broadcast_to(rng.normal(size=(shape[0], 1)), shape).copy()
        case "ties":
            return rng.integers(-1, 2, size=shape).astype(float)
        case "integers":
            return rng.integers(-1000, 1000, size=shape).astype(float)
        case "one-entry":
            out = np.zeros(shape)
            out[rng.integers(shape[0]), rng.integers(shape[1])] = 5.0
            return out
        case "rank-one":
            return rng.normal(size=(shape[0], 1)) @ rng.normal(size=(1, shape[1]))
        case "duplicated-columns":
            return G[:, rng.integers(max(1, shape[1] // 2), size=shape[1])]
        case "nearly-duplicated-columns":
            return G[:, :1] + 1e-9 * G
        case "far-from-zero":
            return 1e8 + G
        case "nearly-constant":
            return 1.0 + 1e-13 * G
        case "outlier":
            out = G.copy()
            out[0] *= 1e9
            return out
        case "subnormal":
            return 1e-310 * G
        case "subnormal-beside-normal":
            return np.where(rng.random(shape) < 0.5, 1e-310, 1.0) * G
        case "tiny":
            return 1e-200 * G
        case "large":
            return 1e150 * G
        case "huge":
            return 1e300 * np.clip(G, -4, 4)
        case "huge-beside-normal":
            return np.where(rng.random(shape) < 0.3, 1e300, 1.0) * np.clip(G, -4, 4)
        case "largest":
            return np.finfo(float).max * np.sign(G)
        case _:
            how, size = kind.rsplit("-", 1)
            return G * 10.0 ** rng.uniform(-float(size), float(size), size=power[how])


RARE = ["tiny", "large", "huge", "huge-beside-normal", "largest", "subnormal", "subnormal-beside-normal"]
TAME_X = ["normal", "zero", "constant", "constant-columns", "ties", "integers", "one-entry", "rank-one"]
TAME_X += ["duplicated-columns", "nearly-duplicated-columns", "far-from-zero", "nearly-constant", "outlier"]
TAME_X += ["columns-12", "rows-6", "entries-12"]
TAME_C = ["normal", "zero", "constant", "constant-columns", "constant-rows", "ties", "integers", "one-entry"]
TAME_C += ["rank-one", "linear", "nearly-constant", "far-from-zero", "outlier", "rows-12", "columns-12", "entries-12"]
# Hypothesis likes the ends of a list; most of the rare ones are refused.
X_KINDS = [*TAME_X, "columns-100", *RARE, *TAME_X]
C_KINDS = [*TAME_C, "entries-100", *RARE, *TAME_C]
OFFSETS = ["none"] * 6 + ["normal", "normal", "huge", "zero", "outlier"] + ["none"] * 4
WEIGHTS = ["none", "ones", "span-9", "zeros", "subnormal", "huge", "span-300", "repeats", "none", "none"]
LAYOUTS = ["C", "C", "F", "strided", "read-only", "float32", "list", "frame", "objects"]


def weights(rng, n, kind):
    match kind:
        case "none":
            return None
        case "ones":
            return np.ones(n)
        case "zeros":
            weight = rng.integers(0, 2, size=n).astype(float)
            weight[rng.integers(n)] = 1.0
            return weight
        case "repeats":
            return rng.integers(1, 4, size=n).astype(float)
        case "subnormal":
            return 1e-310 * rng.integers(1, 4, size=n)
        case "huge":
            return 1e300 * rng.integers(1, 4, size=n)
        case _:
            size = float(kind.rsplit("-", 1)[1])
            return 10.0 ** rng.uniform(-size, size, size=n)


def lay_out(array, layout):
    """The same numbers (float32: other numbers) as somebody else's program may hand them over."""
    match layout:
        case "F":
            return np.asfortranarray(array)
        case "strided":
            wide = np.zeros((2 * array.shape[0], 3 * array.shape[1]))
            wide[::2, ::-3] = array
            return wide[::2, ::-3]
        case "read-only":
            array = array.copy()
            array.flags.writeable = False
            return array
        case "float32":
            with np.errstate(all="ignore"):
                return array.astype(np.float32)
        case "list":
            return array.tolist()
        case "frame":
            return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
        case "objects":
            return array.astype(object)
    return array


@dataclass
class Problem:
    """Data, region and parameters; ``vertices`` are those of the region, where there are few."""

    X: Any
    C: Any
    region: sk.Region
    vertices: np.ndarray | None
    params: dict[str, Any]
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    kinds: dict[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> dict[str, Any]:
        return {"sample_weight": self.weight, "offset": self.offset}

    def __repr__(self) -> str:
        return f"Problem({self.kinds}, {self.params}, {self.region})"


@st.composite
def problems(draw, family, estimator="spo+"):
    """Problems for an estimator on a family of regions, or on all."""
    regions = FAMILIES[family] if family in FAMILIES else POLYHEDRA | SMOOTH | ORACLES
    name = draw(st.sampled_from(sorted(regions)))
    sizes, make = regions[name]
    d = draw(st.sampled_from(sizes))
    region, vertices = make(d)
    # Sizes beyond the squares of which there are no numbers are for scikit-learn's least squares to cope with, or not.
    extreme = estimator != "two-stage"
    n = draw(st.sampled_from([1, 2, 3, 6, 12]))
    p = draw(st.sampled_from([1, 2, 3, 9]))
    kinds = {
        "region": name,
        "n": n,
        "p": p,
        "d": d,
        "X": draw(st.sampled_from(X_KINDS if extreme else TAME_X)),
        "C": draw(st.sampled_from(C_KINDS if extreme else TAME_C)),
        "weight": draw(st.sampled_from(WEIGHTS if extreme else ["none", "ones", "span-9", "zeros", "repeats"])),
        "layout": draw(st.sampled_from(LAYOUTS)),
        "offset": draw(st.sampled_from(OFFSETS if extreme else ["none", "normal", "zero"])),
        "repeated": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**31)),
    }
    shared = draw(st.sampled_from([False] * 4 + [True]))
    params: dict[str, Any] = {"shared": shared, "fit_intercept": draw(st.sampled_from([True, True, False]))}
    if estimator == "spo+":
        params["solver"] = draw(st.sampled_from(SOLVERS.get(name, SOLVERS[family])))
        params["alpha"] = draw(st.sampled_from([0.0, 0.0, 0.0, 1e-9, 0.1, 1e6]))
        params["l1_ratio"] = 0.0 if params["solver"] == "newton" else draw(st.sampled_from([0.0, 0.0, 0.5, 1.0]))
        params["prior"] = draw(st.sampled_from(["zero", "least_squares"]))
        if params["solver"] == "sgd":
            params |= {"max_iter": 20, "random_state": 0}
        elif params["solver"] in ("bundle", "lbfgs", "newton") or family == "oracles":
            params["max_iter"] = 100
    elif estimator == "cv":
        params["l1_ratio"] = draw(st.sampled_from([0.0, 0.5]))
        params["prior"] = draw(st.sampled_from(["zero", "least_squares"]))
        params["max_iter"] = 60
    elif estimator == "spo":
        params["alpha"] = draw(st.sampled_from([0.0, 0.1]))
        params["l1_ratio"] = draw(st.sampled_from([0.0, 0.5]))
    return assemble(kinds, params, region, vertices)


def assemble(kinds, params, region, vertices):
    """The problem that these choices describe."""
    n, p, d, shared = kinds["n"], kinds["p"], kinds["d"], params["shared"]
    rng = np.random.default_rng(kinds["seed"])
    X = numbers(rng, (n, d * p if shared else p), kinds["X"])
    if kinds["C"] == "linear":
        Z = np.clip(X, -1e100, 1e100)
        C = Z @ rng.normal(size=(Z.shape[1], d)) + rng.normal(size=d)
    else:
        C = numbers(rng, (n, d), kinds["C"])
    if kinds["repeated"]:
        rows = rng.integers(n, size=n)
        X, C = X[rows], C[rows]
    offset = None if kinds["offset"] == "none" else numbers(rng, (n, d), kinds["offset"])
    weight = weights(rng, n, kinds["weight"])
    layout = kinds["layout"]
    return Problem(lay_out(X, layout), lay_out(C, layout), region, vertices, params, weight, offset, kinds)


# -- the judge ---------------------------------------------------------------------------------------------------------


class Truth:
    """The training objective of a problem, in long double, from its definition."""

    def __init__(self, problem: Problem, params: dict[str, Any]) -> None:
        self.problem, self.params = problem, params
        self.region = problem.region
        X, C = (np.asarray(np.asarray(a).tolist(), dtype=np.float64) for a in (problem.X, problem.C))
        n, d = C.shape
        self.sign = -1 if self.region.sense == "max" else 1
        self.X, self.C = X.astype(LONG), C.astype(LONG)
        self.offset = LONG(0) if problem.offset is None else problem.offset.astype(LONG)
        # Weights below 1e-280 of the largest count as zero.
        weight = np.ones(n, dtype=LONG) if problem.weight is None else relative_weight(problem.weight).astype(LONG)
        self.weight = weight / weight.sum()
        self.W = self.region.argmin(C).astype(LONG)
        self.shared, self.intercept = params["shared"], params["fit_intercept"]
        self.alpha, self.l1_ratio = LONG(params["alpha"]), LONG(params["l1_ratio"])
        self.prior_is_least_squares = params["prior"] == "least_squares"
        self.rows = self.X.reshape(n * d, -1) if self.shared else self.X
        row_weight = np.repeat(self.weight, d) / d if self.shared else self.weight
        center = self.intercept and not self.prior_is_least_squares
        self.mean = row_weight @ self.rows if center else np.zeros(self.rows.shape[1], dtype=LONG)
        spread = np.sqrt(row_weight @ (self.rows - self.mean) ** 2)
        positive = self.rows[row_weight > 0]
        self.used = spread > 16 * np.finfo(float).eps * np.abs(positive).max(axis=0)
        self.spread = np.where(self.used, spread, 1)
        normals = self.region.equalities(d) if hasattr(self.region, "equalities") else np.zeros((0, d))
        normals = normals.astype(LONG)
        visible = self.C - (self.C @ normals.T) @ normals
        size = np.sqrt(self.weight @ (visible**2).sum(axis=1))
        self.cost_scale = size if size > 0 else LONG(1)
        self.accuracy = 1e-6 if isinstance(self.region, sk.Markowitz) else 1e-15  # of the oracle, relative to costs
        self.standardized = LONG(0)  # penalty of standardised coefficients, in units of cost
        self.prior = self.least_squares() if self.prior_is_least_squares and self.alpha > 0 else None

    def least_squares(self):
        """The model that the penalty shrinks to, and around which a bound holds.

        Where it is not unique, or only numerically so, only the package can say which one it takes.
        """
        region = check_region(self.region, self.C.shape[1])
        objective = LinearObjective(
            SPOPlusLoss(region),
            region,
            self.X.astype(float),
            self.C.astype(float),
            relative_weight(self.problem.weight),
            offset=self.problem.offset,
            prior=self.params["prior"],
            fit_intercept=self.intercept,
            shared=self.shared,
            alpha=float(self.alpha),
            l1_ratio=float(self.l1_ratio),
        )
        coef, intercept = (np.asarray(a, dtype=LONG) for a in objective.to_user(objective.least_squares))
        return coef, intercept

    def predict(self, coef, intercept):
        if self.shared:
            return (self.rows @ coef + intercept).reshape(self.C.shape) + self.offset
        return self.X @ coef.T + intercept + self.offset

    def penalty(self, coef, intercept):
        """Penalty, and what the last digit of a coefficient may change it by."""
        pairs = [(coef, LONG(0))] if self.prior is None else [(coef, self.prior[0])]
        if self.prior is not None and self.intercept:
            pairs.append((intercept, self.prior[1]))
        value, rounding = LONG(0), LONG(0)
        for B, B0 in pairs:
            D, digit = np.abs(B - B0), 64 * np.finfo(float).eps * (np.abs(B) + np.abs(B0))
            value += (self.l1_ratio * D + (1 - self.l1_ratio) / 2 * D**2).sum()
            rounding += (self.l1_ratio * digit + (1 - self.l1_ratio) * (D + digit) * digit).sum()
        return self.alpha * value, self.alpha * rounding

    def decide(self, V):
        """Best decisions; rows are scaled by a power of two, which changes none and keeps them doubles."""
        exponent = np.frexp(np.abs(V).max(axis=1))[1]
        return self.region.argmin(np.ldexp(V, -exponent[:, None]).astype(np.float64)).astype(LONG)

    def loss(self, C_hat):
        """Weighted SPO+ loss of predictions and the size of what it is the difference of."""
        V = 2 * C_hat - self.C
        gap = self.W - self.decide(V)
        value = self.weight @ (V * gap).sum(axis=1) * self.sign
        width = np.abs(self.W).max() + np.abs(gap).max()
        return value, width * (self.weight @ (np.abs(self.C) + 2 * np.abs(C_hat)).sum(axis=1))

    def value(self, coef, intercept):
        # An oracle's rounding may put the loss below zero, where it never is, and a little below its true value.
        loss, size = self.loss(self.predict(coef, intercept))
        value = max(loss + self.accuracy * size, LONG(0)) + self.penalty(coef, intercept)[0]
        if self.standardized:
            D = np.abs(self.to_theta(coef, intercept)[:, : self.rows.shape[1]])
            value += self.standardized * (self.l1_ratio * D + (1 - self.l1_ratio) / 2 * D**2).sum()
        return value

    def regret(self, C_hat):
        """Weighted SPO loss."""
        return self.weight @ (self.C * (self.decide(C_hat) - self.W)).sum(axis=1) * self.sign

    def trivial(self):
        return self.loss(np.zeros_like(self.C) + self.offset)[0]

    # -- coordinates in which distances are measured -------------------------------------------------------------------

    def to_theta(self, coef, intercept):
        Theta = np.atleast_2d(np.where(self.used, coef * self.spread, 0))
        if not self.intercept:
            return Theta / self.cost_scale
        last = np.atleast_1d(intercept + coef @ self.mean)[:, None]
        return np.concatenate([Theta, last], axis=1) / self.cost_scale

    def to_user(self, Theta):
        p = self.rows.shape[1]
        coef = np.where(self.used, Theta[:, :p] * self.cost_scale / self.spread, 0)
        intercept = Theta[:, p] * self.cost_scale - coef @ self.mean if self.intercept else np.zeros(len(Theta))
        return (coef[0], intercept[0]) if self.shared else (coef, intercept)

    def features(self):
        Z = np.where(self.used, (self.rows - self.mean) / self.spread, 0)
        return np.concatenate([Z, np.ones((len(Z), 1), dtype=LONG)], axis=1) if self.intercept else Z

    def rivals(self, coef, intercept, rng):
        """Other models: whoever beats the bound refutes it."""
        here = self.to_theta(coef, intercept)
        Z = self.features()
        C_hat = self.predict(coef, intercept)
        G = 2 * (self.W - self.decide(2 * C_hat - self.C)) * self.weight[:, None] * self.sign
        if self.shared:
            down = -(G.ravel() @ Z)[None]
            target = (self.C - self.offset).ravel()[:, None]
        else:
            down = -(G.T @ Z)
            target = self.C - self.offset
        yield np.zeros_like(here)
        Z64, T64 = Z.astype(float), (target / self.cost_scale).astype(float)
        yield np.linalg.lstsq(Z64, T64, rcond=None)[0].T.astype(LONG)
        size = max(np.linalg.norm(down), LONG(1e-300))
        for length in (1e-7, 1e-5, 1e-3, 0.1, 10.0):
            yield here + length * down / size
            yield here + length * rng.normal(size=here.shape)
        yield here * LONG(0.5)
        yield here * LONG(2.0)
        if self.problem.vertices is not None and self.alpha == 0:
            best = self.linear_program(Z64)
            if best is not None:
                yield best

    def linear_program(self, Z):
        """Minimise sum_i a_i [t_i + 2 c_hat_i.w_i] subject to t_i >= (c_i - 2 c_hat_i).v for all vertices v."""
        n, d = self.C.shape
        vertices = self.problem.vertices * float(self.sign)
        q = Z.shape[1]
        if self.shared:
            row = np.einsum("kj,ijq->ikq", vertices, Z.reshape(n, d, q)).reshape(n * len(vertices), q)
            gain = np.einsum("i,ij,ijq->q", *(np.asarray(a, float) for a in (self.weight, self.W, Z.reshape(n, d, q))))
        else:
            row = np.einsum("kj,iq->ikjq", vertices, Z).reshape(n * len(vertices), d * q)
            gain = np.einsum("i,ij,iq->jq", *(np.asarray(a, float) for a in (self.weight, self.W, Z))).ravel()
        A = np.hstack([-2 * row, -np.repeat(np.eye(n), len(vertices), axis=0)])
        C = ((self.C - (0 if self.problem.offset is None else 2 * self.offset)) / self.cost_scale).astype(float)
        cost = np.concatenate([2 * gain * self.sign, self.weight.astype(float)])
        if not all(np.isfinite(a).all() and np.abs(a).max() < 1e15 for a in (A, C)):
            return None
        result = linprog(cost, A, -(C @ vertices.T).ravel(), bounds=(None, None))
        if result.x is None:
            return None
        return np.reshape(result.x[: row.shape[1]], (-1, q)).astype(LONG)


def check_predictions(problem: Problem, model: Any, truth: Truth) -> tuple[Any, Any]:
    """Loss of the coefficients, and what rounding may do to it; everything must be finite."""
    for name in ("coef_", "intercept_", "objective_", "lower_bound_", "duality_gap_"):
        assert np.isfinite(getattr(model, name)).all(), f"{name} is {getattr(model, name)}"
    coef, intercept = (np.asarray(a, dtype=LONG) for a in (model.coef_, model.intercept_))
    predicted = model.predict(problem.X, problem.offset).reshape(truth.C.shape)
    assert np.isfinite(predicted).all(), "predictions of the training data are not finite"
    exact = truth.predict(coef, intercept)
    # What adding up in doubles may lose of a prediction.
    parts = (np.abs(truth.rows) @ np.abs(coef).T + np.abs(intercept)).reshape(truth.C.shape) + np.abs(truth.offset)
    lost = 64 * np.finfo(float).eps * parts
    assert (np.abs(predicted - exact) <= lost + 1e-320).all(), "predict is not X coef + intercept"
    loss, size = truth.loss(exact)
    width = np.abs(truth.W).max() + np.abs(truth.decide(2 * exact - truth.C)).max()
    return loss, max(truth.accuracy, 1e-9) * size + width * (truth.weight @ lost.sum(axis=1)) + LONG(1e-320)


def check_model(problem: Problem, model: Any, truth: Truth) -> None:
    """What a fitted SPO+ model claims, against the truth."""
    loss, slack = check_predictions(problem, model, truth)
    coef, intercept = (np.asarray(a, dtype=LONG) for a in (model.coef_, model.intercept_))
    penalty, rounding = truth.penalty(coef, intercept)
    # A penalty below 1e-100 of a standardised coefficient is none.
    objective, slack = loss + penalty, slack + rounding + 1e-90 * truth.cost_scale * (truth.alpha > 0)
    assert abs(model.objective_ - objective) <= slack + 1e-9 * objective, (
        f"objective_ is {model.objective_}, the objective of the coefficients is {objective}, slack {slack}"
    )
    assert -slack <= model.lower_bound_ <= model.objective_
    measure = max(LONG(model.objective_), truth.trivial() / 100)
    gap = (LONG(model.objective_) - model.lower_bound_) / measure if measure > 0 else LONG(0)
    allowed = 1e-6 * gap + slack / max(measure, LONG(1e-320))
    assert abs(gap - model.duality_gap_) <= allowed, f"duality_gap_ is {model.duality_gap_}, the gap is {gap}"
    # A ridge on everything makes the bound hold without restriction.
    ridge = truth.alpha * (1 - truth.l1_ratio) * truth.cost_scale / truth.spread.max() ** 2
    check_bound(model, truth, slack, everywhere=ridge > 1e-90 and (truth.prior_is_least_squares or not truth.intercept))


def check_bound(model: Any, truth: Truth, slack: Any, everywhere: bool) -> None:
    """Whether any rival within the radius of the certificate, or anywhere, is below the lower bound."""
    coef, intercept = (np.asarray(a, dtype=LONG) for a in (model.coef_, model.intercept_))
    centre, radius = truth.to_theta(*truth.least_squares()), model.certificate_radius_
    assert radius >= 10_000 and (radius == np.inf or not everywhere), f"certificate_radius_ is {radius}"
    for k, Theta in enumerate(truth.rivals(coef, intercept, np.random.default_rng(0))):
        distance = np.linalg.norm(Theta - centre)
        if distance > radius:
            Theta = centre + (Theta - centre) * (LONG(0.999) * radius / distance)
        value = truth.value(*truth.to_user(Theta))
        assert model.lower_bound_ <= value + slack, (
            f"lower_bound_ is {model.lower_bound_}, but rival {k} attains {value} (objective_ {model.objective_})"
        )


def count(test: str, outcome: str) -> None:
    """Note an outcome, here and in Hypothesis's statistics."""
    event(outcome)
    COUNTS.setdefault(test, Counter())[outcome] += 1


def run(action) -> tuple[str, Any]:
    """Outcome of an action, and what it returned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            result = action()
        except (ValueError, TypeError) as error:
            # LinAlgError is a ValueError, too.
            if isinstance(error, np.linalg.LinAlgError) or not any(re.search(cause, str(error)) for cause in CAUSES):
                raise
            return "refused", None
    others = [
        str(w.message) for w in caught if not issubclass(w.category, (ConvergenceWarning, UndefinedMetricWarning))
    ]
    assert not others, f"warnings: {others}"
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return "warned" if warned else "certified", result


def use(model: Any, problem: Problem) -> None:
    """Fit and use a model."""
    model.fit(problem.X, problem.C, **problem.data)
    W = model.decide(problem.X, problem.offset)
    score = model.score(problem.X, problem.C, problem.weight, problem.offset)
    assert np.isfinite(W).all(), "decisions are not finite"
    assert np.isfinite(score) and score <= 0, f"the score is {score}"


def judge_spo_plus(problem: Problem) -> str:
    """SPOPlusRegressor."""
    model = sk.SPOPlusRegressor(problem.region, **problem.params)
    outcome, _ = run(lambda: use(model, problem))
    if outcome != "refused":
        small = model.duality_gap_ <= model.tol
        assert small == (outcome == "certified"), f"{outcome} with a gap of {model.duality_gap_}"
        check_model(problem, model, Truth(problem, model.get_params()))
    return outcome


def judge_cv(problem: Problem) -> str:
    """SPOPlusRegressorCV, and the path that it chooses from."""
    common = problem.params | {"n_alphas": 3}
    model = sk.SPOPlusRegressorCV(problem.region, cv=2, **common)
    outcome, _ = run(lambda: use(model, problem))
    path_outcome, path = run(lambda: sk.spo_plus_path(problem.X, problem.C, problem.region, **common, **problem.data))
    if outcome != "refused":
        for name, scores in model.cv_results_.items():
            assert np.isfinite(scores).all() or name == "alpha", f"{name} is {scores}"
        truth = Truth(problem, model.get_params() | {"alpha": 0.0})
        loss, slack = check_predictions(problem, model, truth)
        assert loss <= model.objective_ * (1 + 1e-9) + slack, f"objective_ is {model.objective_}, the loss alone {loss}"
        assert -slack <= model.lower_bound_ <= model.objective_
        if not truth.prior_is_least_squares:
            # The penalty is that of standardised coefficients.
            truth.standardized = model.alpha_ * truth.cost_scale
            check_bound(model, truth, slack, everywhere=False)
    if path_outcome != "refused":
        _, coefs, intercepts, objectives, gaps = path
        for array in (coefs, intercepts, objectives, gaps):
            assert np.isfinite(array).all()
        assert (gaps >= 0).all()
        assert path_outcome == "warned" or (gaps <= 1e-6).all()
    return max(outcome, path_outcome, key=["refused", "certified", "warned"].index)


def judge_spo(problem: Problem) -> str:
    """SPORegressor: at least as good as the SPO+ model it starts from, and its objective is what it says."""
    model = sk.SPORegressor(problem.region, max_iter=20, n_restarts=1, random_state=0, **problem.params)
    outcome, _ = run(lambda: use(model, problem))
    if outcome != "refused":
        truth = Truth(problem, model.get_params() | {"prior": "zero"})
        _, slack = check_predictions(problem, model, truth)
        assert -slack <= model.lower_bound_ <= model.objective_
        regret = truth.regret(truth.predict(model.coef_.astype(LONG), np.asarray(model.intercept_, dtype=LONG)))
        assert regret >= -slack
    return outcome


def judge_two_stage(problem: Problem) -> str:
    """TwoStageRegressor with its linear regression."""
    model = sk.TwoStageRegressor(None, problem.region, shared=problem.params["shared"])
    outcome, _ = run(lambda: use(model, problem))
    if outcome != "refused":
        assert np.isfinite(model.predict(problem.X, problem.offset)).all()
    return outcome
