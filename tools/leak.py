"""Fit many times in one process and check whether memory, files or threads are left behind.

    python tools/leak.py --fits 1000

Fits of every kind (solvers in NumPy, HiGHS, Clarabel and CVXPY, chunks in a temporary file, threads, streams, networks)
are repeated in turn.  Growth is the change of the resident set after a warm-up, in which libraries are loaded and
allocators reach their size: the median of the last tenth of the fits minus that of the first tenth.  The exit code is 1
if it is more than ``LIMIT_MB``, or if there are more open files or threads than after the warm-up.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from mmap import mmap
from typing import Any

import numpy as np

import skspo as sk
from skspo.datasets import make_portfolio, make_shortest_path

#: largest growth of the resident set after the warm-up: 1000 fits that leak one array each would exceed it
LIMIT_MB = 8.0

X, C = make_shortest_path(300, grid=(3, 3), degree=4, noise=0.5, random_state=0)
P, R = make_portfolio(100, 4, 5, degree=2, random_state=0)
GRID = sk.ShortestPath.grid(3, 3)
ROWS = np.random.default_rng(0).normal(size=(3, 5))


def capped(w: Any) -> list[Any]:
    """Constraints of a CvxpyRegion."""
    import cvxpy as cp

    return [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.7]


def _stream() -> Any:
    model = sk.SPOPlusRegressor(GRID, random_state=0)
    return model.partial_fit(X[:150], C[:150]).partial_fit(X[150:], C[150:])


def _chunks() -> Any:
    return sk.SPOPlusRegressor(GRID, tol=1e-2).fit_chunks(lambda: iter([(X[:150], C[:150]), (X[150:], C[150:])]))


KINDS: dict[str, Callable[[], Any]] = {
    "interior point": lambda: sk.SPOPlusRegressor(GRID, tol=1e-3).fit(X[:60], C[:60]),
    "bundle": lambda: sk.SPOPlusRegressor(GRID, solver="bundle", alpha=0.1, tol=1e-2).fit(X, C),
    "conic, HiGHS": lambda: sk.SPOPlusRegressor(sk.TopK(2), solver="conic").fit(P[:20], R[:20]),
    "conic, Clarabel": lambda: sk.SPOPlusRegressor(sk.TopK(2), solver="conic", alpha=0.1).fit(P[:20], R[:20]),
    "newton": lambda: sk.SPOPlusRegressor(sk.EntropySimplex()).fit(P, R),
    "polyhedron, threads": lambda: sk.SPOPlusRegressor(
        sk.Polyhedron([[1.0, 2.0, 3.0, 1.0, 1.0]], [2.0]), solver="bundle", tol=1e-2, n_jobs=2
    ).fit(P, R),
    "integers": lambda: (
        sk.TwoStageRegressor(region=sk.MixedInteger([[1.0, 2.0, 3.0, 1.0, 1.5]], [3.0], bounds=(0, 1), integrality=1))
        .fit(P, R)
        .decide(P[:3])
    ),
    "cvxpy region": lambda: sk.TwoStageRegressor(region=sk.CvxpyRegion(capped, 5)).fit(P, R).decide(P[:3]),
    "markowitz": lambda: sk.TwoStageRegressor(region=sk.Markowitz(np.eye(5), 0.5)).fit(P, R).decide(P[:3]),
    "chunks": _chunks,
    "stream": _stream,
    "spo": lambda: sk.SPORegressor(sk.Simplex(), n_restarts=0, max_iter=5).fit(P, R),
    "network": lambda: sk.SPOMLPRegressor(sk.Simplex(), hidden_layer_sizes=(8,), max_iter=3).fit(P, R),
    "cross-validation": lambda: sk.SPOPlusRegressorCV(sk.Simplex(), n_alphas=2, cv=2, tol=1e-2).fit(P, R),
}


def resident_mb() -> float:
    """Memory of this process (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def open_files() -> int:
    """File descriptors of this process (Linux)."""
    return len(os.listdir("/proc/self/fd"))


def system_threads() -> int:
    """Threads of this process, those of libraries included (Linux)."""
    return len(os.listdir("/proc/self/task"))


def measure(
    fits: int,
    warm_up: int,
    kinds: list[str] | None = None,
    keep: list[Any] | None = None,
    patience: float = 5.0,
) -> dict[str, Any]:
    """Measurements of a number of fits; results are appended to ``keep``, which creates a leak for tests."""
    names = list(KINDS) if kinds is None else kinds
    memory, before, start = [], (0, 0, 0), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # early stops do not matter here
        for k in range(warm_up + fits):
            if k == warm_up:
                gc.collect()
                before, start = (open_files(), system_threads(), threading.active_count()), time.perf_counter()
            model = KINDS[names[k % len(names)]]()
            if keep is not None:
                # Half a megabyte directly from the system: NumPy would reuse freed memory.
                page = mmap(-1, 2**19)
                page.write(b"1" * 2**19)
                keep.append((model, page))
            del model
            if k % 20 == 19:
                gc.collect()
            if k >= warm_up:
                memory.append(resident_mb())
    seconds = time.perf_counter() - start
    gc.collect()
    # Thread pools end with a short delay.
    deadline = time.perf_counter() + patience
    while system_threads() > before[1] and time.perf_counter() < deadline:
        time.sleep(0.05)
    after = (open_files(), system_threads(), threading.active_count())
    tenth = max(fits // 10, 1)
    return {
        "fits": fits,
        "seconds": round(seconds, 1),
        "resident MB after warm-up": round(memory[0], 1),
        "growth MB": round(float(np.median(memory[-tenth:]) - np.median(memory[:tenth])), 2),
        "files": after[0] - before[0],
        "system threads": after[1] - before[1],
        "Python threads": after[2] - before[2],
    }


def main() -> int:
    """Measure, print the figures as JSON, and return whether they are within the limits."""
    parser = argparse.ArgumentParser(description="Look for leaks over many fits.")
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--warm-up", type=int, default=10 * len(KINDS))
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this one; may be repeated")
    args = parser.parse_args()
    figures = measure(args.fits, args.warm_up, args.kind)
    print(json.dumps(figures))
    left = [name for name in ("files", "system threads", "Python threads") if figures[name] > 0]
    return int(figures["growth MB"] > LIMIT_MB or bool(left))


if __name__ == "__main__":
    sys.exit(main())
