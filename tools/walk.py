"""Number of modules, functions and calls between modules in one small fit.

    python tools/walk.py [--list]

A hop is a call from a function of one module of the package to a function of another.  Iterations repeat them, so the
number of different ones is printed as well.  ``--list`` prints the modules in the order in which they are entered, with
their numbers of functions.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import FrameType
from typing import Any


def main() -> None:
    """Trace ``SPOPlusRegressor(ShortestPath.grid(5, 5)).fit``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the modules, too")
    args = parser.parse_args()

    import skspo
    from skspo.datasets import make_shortest_path

    package = str(Path(skspo.__file__).parent)
    X, C = make_shortest_path(100, grid=(5, 5), degree=4, noise=0.5, random_state=0)
    model = skspo.SPOPlusRegressor(skspo.ShortestPath.grid(5, 5))
    model.fit(X, C)  # imports and caches are not counted

    functions: dict[str, set[str]] = {}
    hops: list[tuple[str, str]] = []

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(package):
            return
        module = file[len(package) + 1 :]
        functions.setdefault(module, set()).add(frame.f_code.co_qualname)
        caller = frame.f_back.f_code if frame.f_back is not None else None
        if caller is not None and caller.co_filename.startswith(package) and caller.co_filename != file:
            hops.append((caller.co_qualname, frame.f_code.co_qualname))

    sys.setprofile(trace)
    try:
        model.fit(X, C)
    finally:
        sys.setprofile(None)
    n_functions = sum(map(len, functions.values()))
    print(f"{len(functions)} modules, {n_functions} functions, {len(hops)} hops, {len(set(hops))} of them different")
    if args.list:
        for module, names in functions.items():
            print(f"{len(names):4}  {module}")


if __name__ == "__main__":
    main()
