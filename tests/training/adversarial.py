"""Generated problems that are numerically hard (used by ``test_adversarial.py``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from small_sets import cheapest, corners, packings

import skspo as sk

# -- regions -----------------------------------------------------------------------------------------------------------


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
    """A numerically difficult array of the given kind."""
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
# Hypothesis prefers the ends of a list; most of the rare kinds are refused.
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
    """The same numbers (float32: rounded) in another memory layout or type."""
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
    """Data, region and parameters; ``vertices`` are those of the region, if there are few."""

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
    # Numbers whose squares overflow are not tested with scikit-learn's least squares.
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
