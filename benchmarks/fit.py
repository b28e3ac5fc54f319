"""Time of exact fits: the solver that skspo chooses compared with the whole problem in CVXPY, in the same run.

    python benchmarks/fit.py [--quick]

"CVXPY" is the same training problem passed to CVXPY as one program (solver="conic" with Clarabel), as in a hand-written
script. Both columns reach the same certified objective.  One thread.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time

from skspo import EntropySimplex, LogBarrierSimplex, ShortestPath, Simplex, SPOPlusRegressor
from skspo.datasets import make_cost_sensitive_classification, make_portfolio, make_shortest_path
from skspo.solvers import ConicSolver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    n = 100 if parser.parse_args().quick else 1000
    cases = [
        ("ten classes, Simplex", Simplex(), make_cost_sensitive_classification(n, degree=2, noise=0.5, random_state=0)),
        ("portfolio, EntropySimplex d=50", EntropySimplex(), make_portfolio(n, degree=4, noise=0.5, random_state=0)),
        (
            "portfolio, LogBarrierSimplex d=10",
            LogBarrierSimplex(),
            make_portfolio(n, n_assets=10, degree=4, noise=0.5, random_state=0),
        ),
        (
            "shortest path 4x4",
            ShortestPath.grid(4, 4),
            make_shortest_path(n // 4, grid=(4, 4), degree=4, noise=0.5, random_state=0),
        ),
    ]
    columns = ("n", 5), ("solver", 7), ("skspo s", 8), ("CVXPY s", 8), ("ratio", 6), ("gap", 8), ("difference", 10)
    print(f"{'problem':<34}", *(f"{name:>{width}}" for name, width in columns))
    for name, region, (X, C) in cases:
        seconds, models = [], []
        for solver in ("auto", ConicSolver("CLARABEL")):
            start = time.perf_counter()
            models.append(SPOPlusRegressor(region, solver=solver).fit(X, C))
            seconds.append(time.perf_counter() - start)
        chosen, conic = models
        difference = abs(chosen.objective_ - conic.objective_) / conic.objective_
        print(
            f"{name:<34} {len(X):>5} {chosen.solver_:>7} {seconds[0]:>8.2f} {seconds[1]:>8.2f} "
            f"{seconds[1] / seconds[0]:>6.1f} {chosen.duality_gap_:>8.1e} {difference:>10.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
