"""Time and memory of exact fits that read their rows from files, for increasing numbers of rows.

    python benchmarks/scale.py                     all sizes, up to ten million rows: half an hour, and 5 GB of disk
    python benchmarks/scale.py --quick             10,000 rows
    python benchmarks/scale.py --sizes 1e6         other sizes
    python benchmarks/scale.py --where memmap      some of the ways to fit: memory, memmap, cluster, cluster-tuned
    python benchmarks/scale.py --features 20 50    more features, and other numbers of costs, to a gap of 1e-4
    python benchmarks/scale.py --out FILE.md       also write the table into this file, and results/scale.json (or
                                                   scale_features.json) beside it

"cluster-tuned" has workers whose malloc keeps memory for the next array instead of returning it immediately (see
TUNED).

"one of 20", "5 of 20" and "one of 40" have linear costs plus noise; those of the other problems are not linear.

Every fit runs in its own process (and, on the cluster, two worker processes), without a penalty, to a relative duality
gap of 1e-6, with five features.  Columns:

    passes      of the bundle method over the data; four more come before the first; iterations of other solvers
    s           the whole fit, data on disk to certified coefficients; the start of the cluster is not counted
    cpu s       processor time of the fit; on the cluster, of the driver and the workers together, dask's included
    s/pass      time of the bundle method by pass, its quadratic programs included
    RSS         largest resident memory of the process; on the cluster, of the driver and of the larger worker
    private     the same without pages of mapped files, which the system frees if it needs memory;
                sampled 20 times a second, and not on the cluster
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from results import Table, out_option

from skspo import ShortestPath, Simplex, SPOPlusRegressor, TopK
from skspo.datasets import make_cost_sensitive_classification, make_shortest_path

BLOCK = 100_000
WHERE = ["memory", "memmap", "cluster", "cluster-tuned"]
#: dask starts workers with MALLOC_TRIM_THRESHOLD_=65536: every array above 128 kB is then new memory, which the
#: system has to clear page by page.  With these values, in bytes, memory is used again.
TUNED = {"MALLOC_TRIM_THRESHOLD_": 2**26, "MALLOC_MMAP_THRESHOLD_": 2**25}
IN_MEMORY = 1_000_000  # rows of the largest fit in memory


def make_linear(
    n: int,
    *,
    n_features: int,
    n_costs: int,
    coef: np.ndarray | None = None,
    random_state: int = 0,
    return_coef: bool = False,
) -> tuple[np.ndarray, ...]:
    """Linear costs plus noise of half their standard deviation."""
    rng = np.random.default_rng(random_state)
    if coef is None:
        coef = rng.standard_normal((n_features, n_costs)) / np.sqrt(n_features)
    X = rng.standard_normal((n, n_features))
    C = 3.0 + X @ coef + 0.5 * rng.standard_normal((n, n_costs))
    return (X, C, coef) if return_coef else (X, C)


PROBLEMS = {
    "ten classes": (make_cost_sensitive_classification, {"degree": 2, "noise": 0.5}, Simplex(), 10),
    "5x5 paths": (
        make_shortest_path,
        {"grid": (5, 5), "degree": 4, "noise": 0.5},
        ShortestPath.grid(5, 5),
        40,
    ),
    "forty classes": (
        make_cost_sensitive_classification,
        {"degree": 2, "noise": 0.5, "n_classes": 40},
        Simplex(),
        40,
    ),
    "one of 20": (make_linear, {"n_costs": 20}, Simplex(), 20),
    "5 of 20": (make_linear, {"n_costs": 20}, TopK(5), 20),
    "one of 40": (make_linear, {"n_costs": 40}, Simplex(), 40),
}
#: problems without --features
FEW_FEATURES = ["ten classes", "5x5 paths"]


def write_data(problem: str, n: int, p: int, folder: Path) -> None:
    """Write X.npy and y.npy block by block: one true model, a seed per block."""
    make, params, _, d = PROBLEMS[problem]
    params = {**params, "n_features": p}
    *_, coef = make(10, **params, random_state=0, return_coef=True)
    X, C = (
        np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=np.float64, shape=(n, width))
        for name, width in (("X", p), ("y", d))
    )
    for start in range(0, n, BLOCK):
        rows = slice(start, min(start + BLOCK, n))
        X[rows], C[rows] = make(rows.stop - start, **params, coef=coef, random_state=start // BLOCK + 1)[:2]


class PrivateMemory(threading.Thread):
    """Largest private memory of this process so far, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, own_memory("RssAnon"))
            time.sleep(0.05)


def own_memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def peak_rss() -> int:
    # Not getrusage, which includes the memory of the parent at the start of the process.
    return own_memory("VmHWM")


def load(path: str, start: int, stop: int) -> np.ndarray:
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def report(model: SPOPlusRegressor, seconds: float, **more: object) -> None:
    history = model.history_["time"]
    row = {"passes": model.n_iter_, "s": seconds, "gap": model.duality_gap_, "solver": model.solver_, **more}
    row["s/pass"] = float(history[-1]) / model.n_iter_
    print(json.dumps(row))


def fit_local(problem: str, folder: Path, where: str, tol: float) -> None:
    import skspo.data.chunks

    region = PROBLEMS[problem][2]
    X, C = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("X", "y"))
    if where == "memory":
        X, C = np.array(X), np.array(C)
    else:
        skspo.data.chunks.IN_MEMORY_LIMIT = 0  # small ones are read in chunks as well, to measure the cost
    private = PrivateMemory()
    private.start()
    began, used = time.perf_counter(), time.process_time()
    model = SPOPlusRegressor(region, tol=tol).fit(X, C)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    report(model, seconds, cpu=used, rss=peak_rss(), private=private.peak)


def fit_cluster(problem: str, folder: Path, tuned: bool, tol: float) -> None:
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    region, d = PROBLEMS[problem][2:]
    n, p = np.load(folder / "X.npy", mmap_mode="r").shape
    edges = np.linspace(0, n, max(2, n // BLOCK) + 1).astype(int)

    def lazy(name: str, width: int) -> da.Array:
        parts = [
            da.from_delayed(
                dask.delayed(load)(str(folder / f"{name}.npy"), int(low), int(high)), (int(high - low), width), float
            )
            for low, high in pairwise(edges)
        ]
        return da.concatenate(parts)

    if tuned:
        dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": size for name, size in TUNED.items()})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:

        def used() -> float:
            return time.process_time() + sum(client.run(time.process_time).values())

        began, before = time.perf_counter(), used()
        model = SPOPlusRegressor(region, tol=tol).fit(lazy("X", p), lazy("y", d))
        seconds, cpu = time.perf_counter() - began, used() - before
        report(model, seconds, cpu=cpu, rss=peak_rss(), worker=max(client.run(peak_rss).values()))


def run(problem: str, folder: Path, where: str, tol: float) -> dict:
    command = [sys.executable, __file__, "--child", problem, str(folder), where, str(tol)]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    row = json.loads(done.stdout.splitlines()[-1])
    megabytes = {name: row.pop(name) / 2**20 for name in ("rss", "worker", "private") if name in row}
    return row | megabytes | {"cpu s": row.pop("cpu"), "private, MB": megabytes.get("private")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 rows")
    parser.add_argument("--sizes", nargs="+", type=float, help="numbers of rows")
    parser.add_argument("--features", nargs="+", type=int, help="numbers of features")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS)
    parser.add_argument("--where", nargs="+", choices=WHERE)
    out_option(parser)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        warnings.simplefilter("ignore")  # the gap is in the table
        problem, folder, where = args.child[:3]
        if where.startswith("cluster"):
            fit_cluster(problem, Path(folder), where == "cluster-tuned", float(args.child[3]))
        else:
            fit_local(problem, Path(folder), where, float(args.child[3]))
        return
    many = args.features is not None
    sizes = [int(n) for n in args.sizes or ([1e4] if args.quick else [1e5, 4e5] if many else [1e4, 1e5, 1e6, 1e7])]
    columns = {
        "problem": "",
        "n": ",",
        **({"p": "d", "d": "d"} if many else {}),
        "where": "",
        "solver": "",
        "passes": "d",
        "s": seconds,
        "cpu s": ".1f",
    }
    columns |= {"s/pass": ".3f", "gap": ".0e", "RSS, MB": resident, "private, MB": ".0f"}
    options = {"packages": ("numpy", "scipy"), "file": args.out, "quick": args.quick}
    name, key = ("scale_features", ("problem", "n", "p", "where")) if many else ("scale", ("problem", "n", "where"))
    table = Table(name, key=key, columns=columns, **options)
    print(table.head(), flush=True)
    problems = args.problems or (list(PROBLEMS) if many else FEW_FEATURES)
    for problem, n, p in product(problems, sizes, args.features or [5]):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_data(problem, n, p, folder)
            for where in args.where or WHERE:
                if where == "memory" and n > IN_MEMORY:
                    continue
                row = run(problem, folder, where, 1e-4 if many else 1e-6)
                print(
                    table.add({"problem": problem, "n": n, "p": p, "d": PROBLEMS[problem][3], "where": where, **row}),
                    flush=True,
                )
    table.write()


def seconds(row: dict) -> str:
    return f"failed: {row['error']}" if "error" in row else f"{row['s']:.1f}"


def resident(row: dict) -> str:
    if "error" in row:
        return ""
    return f"{row['rss']:.0f}" + (f" + {row['worker']:.0f} per worker" if "worker" in row else "")


if __name__ == "__main__":
    main()
