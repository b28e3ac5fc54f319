"""Are decisions, objectives and bounds those of another checkout?  Random problems, fitted with both.

    git worktree add ../before v0.3.0
    python tools/compare.py ../before                          200 problems, about ten minutes
    python tools/compare.py ../before --number 50 --seed 7

The problems are those that ``benchmarks/auto.py`` draws, in small sizes: 27 families of regions, with and without
penalties.  Two fits agree if the intervals between their bounds and objectives overlap, which are wide where a fit
reached its limit, and two oracles if their decisions cost the same, both up to rounding errors.

Columns: problems; rows of costs whose decisions are the same to the last bit; the largest relative difference of the
costs of decisions; fits whose objective is the same up to 1e-9; the largest relative difference of objectives; and what
does not agree.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import subprocess
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from auto_problems import drawn, make  # noqa: E402  # of this checkout, whatever package is imported

#: of costs, objectives and bounds, relative to their size
ROUNDING = 1e-9

#: limit of a fit in seconds; a fit that takes longer is compared by its interval
LIMIT = 20.0


def fits(seed: int, number: int) -> None:
    """Print decisions and fits of all problems with the package on the path, one line each."""
    import skspo as sk

    warnings.simplefilter("ignore")
    for problem in drawn(seed, number, quick=True):
        try:
            data = make(problem, 0)
            region = data.region
            params = data.fit.get("region_params")
            there = region.with_rows(params, *data.C.shape)
            directions = np.random.default_rng(problem.seed).normal(size=data.C.shape)
            decisions = [there.argmin(C) for C in (data.C, directions)]
            costs = [(W * C).sum(axis=1) for W, C in zip(decisions, (data.C, directions), strict=True)]
            model = sk.SPOPlusRegressor(
                region, alpha=problem.alpha, l1_ratio=problem.l1_ratio, tol=problem.tol, time_limit=LIMIT, **data.params
            ).fit(data.X, data.C, **data.fit)
        except Exception as error:  # a family that the other checkout does not have
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:100]}), flush=True)
            continue
        row = {
            "decisions": [hash(w.tobytes()) for W in decisions for w in W + 0.0],
            "costs": np.concatenate(costs).tolist(),
            "fit": [model.objective_, model.lower_bound_, model.duality_gap_],
        }
        print(json.dumps(row), flush=True)


def disagreement(here: dict[str, Any], there: dict[str, Any]) -> str:
    """What does not agree, or an empty text."""
    if "error" in here or "error" in there:
        return here.get("error") or f"not there: {there['error']}"
    costs = [np.array(row["costs"]) for row in (here, there)]
    if np.abs(costs[0] - costs[1]).max() > ROUNDING * np.abs(costs[1]).max():
        return "costs of decisions"
    (ours, our_bound, _), (theirs, their_bound, _) = here["fit"], there["fit"]
    size = ROUNDING * max(abs(ours), abs(theirs), 1.0)
    return "intervals" if our_bound > theirs + size or their_bound > ours + size else ""


def main() -> None:
    """Print the table, a line for each family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="folder of another checkout")
    parser.add_argument("--number", type=int, default=200, help="problems")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fits", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fits:
        fits(args.seed, args.number)
        return
    command = [sys.executable, __file__, ".", "--fits", "--seed", str(args.seed), "--number", str(args.number)]
    runs = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"},
        )
        for folder in (ROOT, args.before.resolve())
    ]
    families = defaultdict(list)
    for problem, *lines in zip(
        drawn(args.seed, args.number, quick=True), *(run.stdout or [] for run in runs), strict=True
    ):
        families[problem.family].append((problem, *map(json.loads, lines)))
    print("| family | problems | same decisions | costs | same objectives | objectives | does not agree |")
    print("| --- " * 7 + "|")
    for family, rows in families.items():
        known = [(a, b) for _, a, b in rows if "error" not in a and "error" not in b]
        equal = [x == y for a, b in known for x, y in zip(a["decisions"], b["decisions"], strict=True)]
        costs = [np.abs(np.subtract(a["costs"], b["costs"])).max() / np.abs(b["costs"]).max() for a, b in known]
        objectives = [abs(a["fit"][0] - b["fit"][0]) / max(abs(b["fit"][0]), 1e-9) for a, b in known]
        wrong = [f"{problem.name}: {text}" for problem, a, b in rows if (text := disagreement(a, b))]
        print(
            f"| {family} | {len(rows)} | {sum(equal)} of {len(equal)} | {max(costs, default=0):.0e} | "
            f"{sum(x < ROUNDING for x in objectives)} of {len(known)} | {max(objectives, default=0):.0e} | "
            f"{'; '.join(wrong)} |"
        )


if __name__ == "__main__":
    main()
