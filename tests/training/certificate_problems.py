"""Training problems with a known good model, for ``test_certificate.py``.

Data are generated from a model, whose objective, computed independently, is an upper bound of the optimum:

    linear     c = B x + b: no loss at the model
    near       the same with little noise
    scaled     c = s (B x + b) with s > 0 of heavy tails: no loss at the model times max s / 2, far from least squares
    noisy, cauchy, lognormal, sinh, ties, classes     with a loss of unknown size

or from a small problem that is solved directly: its rows repeated, once for each of many one-hot features, or its costs
repeated on a box.  ``choose(name, options)`` makes every choice, so that Hypothesis and a random generator can.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
from certificate_sets import LARGE, MEDIUM, SMALL, VARYING, Set, varying

import skspo as sk
from skspo.estimators._spo import SPO_SOLVERS
from skspo.regions.check import check_region
from skspo.solvers import SOLVERS

FEATURES = ["normal", "normal", "cauchy", "lognormal", "one-hot", "binary", "far"]
COSTS = ["linear", "near", "scaled", "scaled", "noisy", "noisy", "cauchy", "lognormal", "sinh", "ties", "classes"]
WEIGHTS = ["none", "none", "uniform", "span-3", "zeros", "counts"]
OFFSETS = ["none", "none", "none", "normal", "large"]


@dataclass
class Problem:
    """Data, a set, parameters of an estimator, and models that are known."""

    X: np.ndarray
    C: np.ndarray
    set: Set
    params: dict[str, Any] = field(default_factory=dict)
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    models: list[tuple[Any, Any]] = field(default_factory=list)
    place: str = "memory"
    kinds: dict[str, Any] = field(default_factory=dict)

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.X, self.C, self.weight, self.offset

    def __repr__(self) -> str:
        return f"Problem({self.kinds}, {self.params}, {self.place!r})"


# -- data --------------------------------------------------------------------------------------------------------------


def make_features(rng, n, p, kind):
    match kind:
        case "cauchy":
            return rng.standard_cauchy((n, p))
        case "lognormal":
            return rng.lognormal(0.0, 2.0, (n, p))
        case "one-hot":
            return np.eye(p)[rng.integers(p, size=n)]
        case "binary":
            return rng.integers(0, 2, (n, p)).astype(float)
        case "far":
            return 100.0 + rng.normal(size=(n, p))
    return rng.normal(size=(n, p))


def make_costs(rng, signal, kind):
    """Costs, and the factor of the signal that has no loss, if there is one."""
    n, d = signal.shape
    match kind:
        case "linear":
            return signal, 1.0
        case "near":
            return signal + 1e-3 * rng.normal(size=(n, d)), None
        case "scaled":
            s = np.abs(rng.standard_cauchy(n)) if rng.random() < 0.5 else rng.lognormal(0.0, 2.0, n)
            return s[:, None] * signal, 0.5 * float(s.max())
        case "noisy":
            return signal + rng.normal(size=(n, d)) * np.std(signal), None
        case "cauchy":
            return signal + rng.standard_cauchy((n, d)), None
        case "lognormal":
            return signal * rng.lognormal(0.0, 1.0, (n, d)), None
        case "sinh":
            size = np.abs(signal).max() or 1.0
            return np.sinh(3.0 * signal / size), None
        case "ties":
            return rng.integers(-1, 2, (n, d)).astype(float), None
    label = np.clip(np.round(signal[:, 0] / (np.std(signal[:, 0]) or 1.0) + d / 2), 0, d - 1)
    return np.abs(np.arange(d) - label[:, None]), None


def make_weights(rng, n, kind):
    match kind:
        case "uniform":
            return rng.uniform(0.5, 2.0, n)
        case "span-3":
            return 10.0 ** rng.uniform(-3.0, 3.0, n)
        case "zeros":
            weight = rng.integers(0, 2, n).astype(float)
            weight[rng.integers(n)] = 1.0
            return weight
        case "counts":
            return rng.integers(1, 4, n).astype(float)
    return None


def assemble(kinds: dict[str, Any], the_set: Set, params: dict[str, Any]) -> Problem:
    """The problem that these choices describe."""
    n, p, d, shared = kinds["n"], kinds["p"], kinds["d"], params["shared"]
    rng = np.random.default_rng(kinds["seed"])
    X = make_features(rng, n, p * d if shared else p, kinds["X"])
    B = rng.normal(size=p if shared else (d, p))
    b: Any = (rng.normal() if shared else rng.normal(size=d)) if params["fit_intercept"] else 0.0
    signal = X.reshape(n, d, p) @ B + b if shared else X @ B.T + b
    offset = None
    C, factor = make_costs(rng, signal, kinds["C"])
    if kinds["offset"] != "none" and kinds["C"] != "scaled":
        offset = (10.0 if kinds["offset"] == "large" else 1.0) * rng.normal(size=(n, d)) * (np.std(C) or 1.0)
        C = C + offset
    factors = {1.0, 30.0} if factor is None else {factor}
    models = [(f * B, f * b) for f in factors]
    if kinds["unit"] != 1.0:
        C, models = C * kinds["unit"], [(k * kinds["unit"], m * kinds["unit"]) for k, m in models]
        offset = None if offset is None else offset * kinds["unit"]
    weight = make_weights(rng, n, kinds["weight"])
    if params.get("alpha") and params["prior"] == "least_squares":
        # If least squares is not unique, only the package knows its prior.
        rows = (X if weight is None else X[weight > 0]).reshape(-1, p)
        rows = np.column_stack([rows, np.ones(len(rows))]) if params["fit_intercept"] else rows
        rows = rows / np.linalg.norm(rows, axis=0).clip(1e-300)
        if np.linalg.matrix_rank(rows, tol=1e-6) < rows.shape[1]:
            params = params | {"prior": "zero"}
    return Problem(X, C, the_set, params, weight, offset, models, kinds=kinds)


# -- choices -----------------------------------------------------------------------------------------------------------


def serving(the_set: Set, d: int, smooth: bool) -> list[str]:
    """Solvers that can work on the region."""
    region = check_region(the_set.region, d)
    if the_set.params is not None:
        rows = {name: np.asarray(the_set.params[name])[:1] for name in names_of(the_set.params)}
        region = region.with_rows(rows, 1, d)
    return [name for name, cls in SOLVERS.items() if not cls.missing(region) and (smooth or name != "newton")]


def names_of(params: Any) -> list[str]:
    return list(params) if isinstance(params, dict) else list(params.dtype.names)


def choose_penalty(choose) -> dict[str, Any]:
    alpha = choose("alpha", [0.0, 0.0, 0.0, 1e-3, 0.1, 10.0])
    return {
        "alpha": alpha,
        "l1_ratio": choose("l1_ratio", [0.0, 0.5, 1.0]) if alpha else 0.0,
        "prior": choose("prior", ["zero", "zero", "least_squares"]),
        "fit_intercept": choose("fit_intercept", [True, True, False]),
    }


def choose_data(choose) -> dict[str, Any]:
    return {
        "X": choose("X", FEATURES),
        "C": choose("C", COSTS),
        "weight": choose("weight", WEIGHTS),
        "offset": choose("offset", OFFSETS),
        "unit": choose("unit", [1.0, 1.0, 1.0, 1e-6, 1e6]),
        "seed": choose("seed", range(1000)),
    }


def choose_limits(choose, solver: str, place: str) -> dict[str, Any]:
    limits = {
        "tol": choose("tol", [1e-1, 1e-3, 1e-6]),
        "max_iter": choose("max_iter", [None, None, 1, 3, 20]),
        "time_limit": choose("time_limit", [None, None, None, 0.003, 0.03]),
        "random_state": 0,
    }
    if limits["max_iter"] is None and (solver in ("sgd", "bundle", "dual") or place != "memory"):
        limits["max_iter"] = 20 if solver == "sgd" else 100
    return limits


def small(choose) -> Problem:
    """A small problem on any region, with any solver and any storage of the rows."""
    name = choose("set", sorted(SMALL))
    sizes, make = SMALL[name]
    d = choose("d", sizes)
    the_set = make(d)
    place = choose("place", ["memory", "memory", "memory", "warm", "chunks", "memmap", "dask"])
    penalty = choose_penalty(choose)
    able = serving(the_set, d, smooth=not penalty["alpha"] * penalty["l1_ratio"])
    if place not in ("memory", "warm"):
        able = [solver for solver in able if SOLVERS[solver].supports_chunks]
    solver = choose("solver", ["auto", "auto", *able])
    params = {"shared": choose("shared", [False, False, False, True]), "solver": solver, **penalty}
    params |= choose_limits(choose, solver, place)
    kinds = {
        "set": name,
        "n": choose("n", [1, 2, 5] if the_set.slow else [1, 2, 5, 12, 30, 60]),
        "p": choose("p", [1, 2, 4, 9] if the_set.slow else [1, 2, 4, 9, 30]),
        "d": d,
        **choose_data(choose),
    }
    problem = assemble(kinds, the_set, params)
    problem.place = place
    return problem


def rows_vary(choose) -> Problem:
    """A small problem whose region varies by sample."""
    name = choose("set", VARYING)
    n = choose("n", [1, 2, 5, 12, 25])
    data = choose_data(choose)
    d, the_set = varying(name, n, np.random.default_rng(data["seed"] + 1))
    penalty = choose_penalty(choose)
    able = serving(the_set, d, smooth=not penalty["alpha"] * penalty["l1_ratio"])
    solver = choose("solver", ["auto", *able])
    params = {"shared": choose("shared", [False, False, True]), "solver": solver, **penalty}
    params |= choose_limits(choose, solver, "memory")
    return assemble({"set": name, "n": n, "p": choose("p", [1, 2, 4]), "d": d, **data}, the_set, params)


def medium(choose, n_samples=(4500,), limits=(0.3,)) -> Problem:
    """Thousands of samples, and less time than the solver needs."""
    name = choose("set", sorted(MEDIUM))
    sizes, make = MEDIUM[name]
    d = choose("d", sizes)
    the_set = make(d)
    place = choose("place", ["memory", "memory", "memory", "chunks", "memmap", "dask"])
    penalty = choose_penalty(choose)
    able = serving(the_set, d, smooth=not penalty["alpha"] * penalty["l1_ratio"])
    if place != "memory":
        able = [solver for solver in able if SOLVERS[solver].supports_chunks]
    # The conic solver cannot be stopped while it sets up thousands of cones.
    solver = choose("solver", ["auto", "auto", *(s for s in able if s != "conic")])
    params = {"shared": choose("shared", [False, False, False, True]), "solver": solver, **penalty}
    params |= {"tol": choose("tol", [1e-1, 1e-3, 1e-6]), "time_limit": choose("time_limit", list(limits))}
    params["random_state"] = 0
    kinds = {
        "set": name,
        "n": choose("n", list(n_samples)),
        "p": choose("p", [3, 8] if params["shared"] else [10, 25, 40]),
        "d": d,
        **choose_data(choose),
    }
    problem = assemble(kinds, the_set, params)
    problem.place = place
    return problem


def large(choose) -> Problem:
    """Up to a thousand costs or features, or 20,000 samples."""
    what = choose("large", ["costs", "features", "samples", "blocks", "copies", "coordinates"])
    if what == "samples":
        return medium(choose, (9000, 20_000), (0.5, 2.0))
    if what in ("blocks", "copies", "coordinates"):
        return grown(choose, what)
    sets = LARGE if what == "costs" else MEDIUM
    name = choose("set", sorted(sets))
    sizes, make = sets[name]
    d = choose("d", sizes)
    the_set = make(d)
    penalty = choose_penalty(choose)
    able = serving(the_set, d, smooth=not penalty["alpha"] * penalty["l1_ratio"])
    place = choose("place", ["memory", "memory", "chunks"])
    if place != "memory":
        able = [solver for solver in able if SOLVERS[solver].supports_chunks]
    solver = choose("solver", ["auto", "auto", *(s for s in able if s not in ("conic", "newton", "interior-point"))])
    params = {"shared": False, "solver": solver, **penalty, "tol": choose("tol", [1e-1, 1e-3, 1e-6])}
    params |= {"time_limit": choose("time_limit", [0.3, 2.0]), "random_state": 0}
    kinds = {
        "set": name,
        "n": choose("n", [30, 300] if what == "costs" else [100, 2000]),
        "p": choose("p", [1, 10] if what == "costs" else [300, 1000]),
        "d": d,
        **choose_data(choose),
    }
    problem = assemble(kinds, the_set, params)
    problem.place = place
    return problem


def grown(choose, how: str) -> Problem:
    """A small problem, solved directly, and a large one with the same optimum (see ``grow``)."""
    name = "box" if how == "coordinates" else choose("set", ["simplex", "box", "top-3", "grid", "knapsack", "oracle"])
    sizes, make = MEDIUM[name]
    d = choose("d", sizes)
    the_set = make(d)
    kinds = {"set": name, "n": choose("n", [5, 20, 40]), "p": choose("p", [1, 2, 4]), "d": d, **choose_data(choose)}
    kinds |= {"grown": how, "times": choose("times", [3, 30, 100, 300])}
    params = {"shared": False, "alpha": 0.0, "l1_ratio": 0.0, "prior": "zero", "fit_intercept": True}
    if how == "blocks":
        kinds |= {"p": 1, "X": "normal", "offset": "none", "weight": "none"}
    if how == "coordinates":
        kinds |= {"weight": "none", "offset": "none"}
    able = [s for s in serving(the_set, d, smooth=True) if s not in ("conic", "newton")]
    place = choose("place", ["memory", "memory", "chunks"])
    if place != "memory":
        able = [solver for solver in able if SOLVERS[solver].supports_chunks]
    params |= {"solver": choose("solver", ["auto", "auto", *able]), "tol": choose("tol", [1e-1, 1e-3, 1e-6])}
    params |= {"time_limit": choose("time_limit", [0.3, 2.0]), "random_state": 0}
    return replace(grow(assemble(kinds, the_set, params), how, kinds["times"]), place=place)


def grow(problem: Problem, how: str, times: int) -> Problem:
    """A larger problem with the same optimum, at a model made from that of the small one.

    copies       every row several times
    blocks       the rows once for each of several one-hot features; of the small problem only the intercept counts
    coordinates  the costs several times, on a box: the optimum is as many times as large
    """
    from certificate_judge import Exact

    n, d = problem.C.shape
    if how == "blocks":
        problem = replace(problem, X=np.zeros((n, 1)))
    best = Exact(problem).program()
    models = [] if best is None else [best]
    if how == "copies":
        weight = None if problem.weight is None else np.tile(problem.weight, times)
        offset = None if problem.offset is None else np.tile(problem.offset, (times, 1))
        X, C = np.tile(problem.X, (times, 1)), np.tile(problem.C, (times, 1))
        return replace(problem, X=X, C=C, weight=weight, offset=offset, models=problem.models + models)
    if how == "blocks":
        X, C = np.repeat(np.eye(times), n, axis=0), np.tile(problem.C, (times, 1))
        models = [(np.tile(intercept[:, None], (1, times)), np.zeros(d)) for _, intercept in models]
        return replace(problem, X=X, C=C, models=models)
    from certificate_sets import box

    models = [(np.tile(coef, (times, 1)), np.tile(intercept, times)) for coef, intercept in problem.models + models]
    return replace(problem, C=np.tile(problem.C, (1, times)), set=box(0.0, 1.0, d * times), models=models)


# -- fits --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def mapped(*arrays):
    """The arrays as memory-mapped files, which are read in chunks whatever their size."""
    with tempfile.TemporaryDirectory() as folder, mock.patch("skspo.data.chunks.IN_MEMORY_LIMIT", 0):
        maps = []
        for k, array in enumerate(arrays):
            path = os.path.join(folder, f"{k}.npy")
            np.save(path, array)
            maps.append(np.load(path, mmap_mode="r"))
        yield maps


def fit(model: Any, problem: Problem) -> Any:
    """Fit a model to rows in the storage of the problem."""
    X, C, weight, offset = problem.arrays
    n = X.shape[0]
    step = max(1, n // 3)
    match problem.place:
        case "chunks":
            return model.fit_chunks(sk.ChunkedData.from_arrays(X, C, weight, offset, chunk_rows=step))
        case "memmap":
            with mapped(X, C) as (X_map, C_map):
                return model.fit(X_map, C_map, weight, offset)
        case "dask":
            import dask
            import dask.array as da

            def lazy(array):
                return None if array is None else da.from_array(array, chunks=(step, *array.shape[1:]))

            with dask.config.set(num_workers=2):
                return model.fit(*map(lazy, (X, C, weight, offset)))
        case "warm":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.set_params(warm_start=True).fit(X, -np.roll(C, 1, axis=0), weight, offset)
    return model.fit(X, C, weight, offset, region_params=problem.set.params)


def spo(choose) -> Problem:
    """A small problem of the SPO loss."""
    name = choose("set", sorted(set(SMALL) - {"cvxpy"}))
    sizes, make = SMALL[name]
    d = choose("d", sizes)
    the_set = make(d)
    region = check_region(the_set.region, d)
    able = [solver for solver, cls in SPO_SOLVERS.items() if not cls.missing(region)]
    kinds = {"set": name, "n": choose("n", [1, 2, 5, 8]), "p": choose("p", [1, 2]), "d": d, **choose_data(choose)}
    params = {
        "solver": choose("solver", ["auto", *(s for s in able if s != "milp" or kinds["n"] * d <= 30)]),
        "init": choose("init", ["spo+", "least_squares", "absolute_error"]),
        "fit_intercept": choose("fit_intercept", [True, False]),
        "shared": choose("shared", [False, False, True]),
        "max_iter": choose("max_iter", [1, 3, 20]),
        "time_limit": choose("time_limit", [None, None, 0.01]),
        "tol": choose("tol", [1e-1, 1e-6]),
        "n_restarts": 1,
        "random_state": 0,
    }
    if params["solver"] == "milp":
        params |= {"max_iter": None, "time_limit": 0.5}
        kinds["offset"] = "none"
    return assemble(kinds, the_set, params)
