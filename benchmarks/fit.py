"""Time of exact fits: the solver that skspo chooses compared with the whole problem in CVXPY, in the same run.

    python benchmarks/fit.py [--quick] [--out docs/benchmarks/README.md]

"CVXPY" is the same training problem passed to CVXPY as one program (solver="conic" with Clarabel), as in a hand-written
script. Both columns reach the same certified objective.  One thread, processor time.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time

from results import Table, out_option

from skspo import EntropySimplex, LogBarrierSimplex, ShortestPath, Simplex, SPOPlusRegressor
from skspo.datasets import make_cost_sensitive_classification, make_portfolio, make_shortest_path
from skspo.solvers import ConicSolver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    out_option(parser)
    args = parser.parse_args()
    n = 100 if args.quick else 1000
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
    columns = {"problem": "", "n": ",", "solver": "", "skspo s": ".2f", "CVXPY s": ".2f", "ratio": ".1f", "gap": ".1e"}
    columns |= {"difference": ".1e"}
    options = {"packages": ("numpy", "scipy", "cvxpy", "clarabel"), "file": args.out, "quick": args.quick}
    table = Table("fit", key=("problem",), columns=columns, **options)
    print(table.head())
    for name, region, (X, C) in cases:
        seconds, models = [], []
        for solver in ("auto", ConicSolver("CLARABEL")):
            start = time.process_time()
            models.append(SPOPlusRegressor(region, solver=solver).fit(X, C))
            seconds.append(time.process_time() - start)
        chosen, conic = models
        difference = abs(chosen.objective_ - conic.objective_) / conic.objective_
        row = {"problem": name, "n": len(X), "solver": chosen.solver_, "skspo s": seconds[0], "CVXPY s": seconds[1]}
        row |= {"ratio": seconds[1] / seconds[0], "gap": float(chosen.duality_gap_), "difference": difference}
        print(table.add(row), flush=True)
    table.write()


if __name__ == "__main__":
    main()
