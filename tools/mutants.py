"""Mutation testing: insert one mistake at a time into a copy of the source tree, and check whether a test fails.

    python tools/mutants.py [FILE ...] [--count N] [--seed K] [--tests ARGUMENT ...] [--timeout SECONDS] [--list]

Mistakes are drawn at random from all places where one of these is possible, so there is no list to maintain:

    comparison   <  to >=,  == to !=, ...          arithmetic   + to -,  * to /, ...
    logic        and to or, not x to x             number       2.0 to 3.0
    sign         -x to x

Annotations, tuning constants, messages of errors and warnings, and printing are not changed.

    killed     a test failed                              survived   all of them passed
    timeout    they did not end in time: most likely an endless loop, so it counts as detected

By default the tests are those that are not slow.  Some survivors do not change the behavior; the others show what is
not tested.  The exit code is always 0: a person has to judge the survivors.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

#: operators and their replacements
SWAPPED: dict[type[ast.AST], str] = {
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.And: "or",
    ast.Or: "and",
}

#: calls whose arguments are only read by people
MESSAGES = {"print", "warn", "progress", "ValueError", "TypeError", "RuntimeError"}


class Mutant(NamedTuple):
    """One mistake: the text between two positions of a file, and its replacement."""

    file: Path
    line: int
    start: int
    end: int
    old: str
    new: str


def is_left_alone(node: ast.AST, parent: ast.AST, depth: int) -> bool:
    """Whether no mistake below this node should be detected by tests."""
    if isinstance(node, (ast.Raise, ast.Assert, ast.arguments)) or (isinstance(parent, ast.AnnAssign) and depth == 1):
        return True
    if isinstance(parent, (ast.FunctionDef, ast.arg, ast.AnnAssign)):
        annotations = [getattr(parent, "returns", None), getattr(parent, "annotation", None)]
        if node in annotations or node in getattr(parent, "decorator_list", []):
            return True
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in MESSAGES
    # Constants of a module are tuning.
    return depth == 1 and isinstance(node, (ast.Assign, ast.AnnAssign))


def mutants_of(file: Path) -> Iterator[Mutant]:
    """All possible mistakes in a file."""
    text = file.read_text()
    lines = text.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line.encode()))
    data = text.encode()

    def place(line: int, column: int) -> int:
        return offsets[line - 1] + column

    def span(node: ast.expr) -> tuple[int, int]:
        return place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)

    def between(left: ast.expr, right: ast.expr, operator: ast.AST, symbol: str) -> Iterator[Mutant]:
        start, end = span(left)[1], span(right)[0]
        new = SWAPPED.get(type(operator))
        gap = data[start:end].decode()
        if new is not None and gap.count(symbol) == 1:
            at = start + gap.index(symbol)
            yield Mutant(file, left.end_lineno or 0, at, at + len(symbol), symbol, new)

    def visit(node: ast.AST, parent: ast.AST, depth: int) -> Iterator[Mutant]:
        if is_left_alone(node, parent, depth):
            return
        if isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, node.op, SYMBOLS.get(type(node.op), "?"))
        elif isinstance(node, ast.Compare):
            for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                yield from between(left, right, operator, SYMBOLS.get(type(operator), "?"))
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], node.op, SYMBOLS[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            start, symbol = span(node)[0], "-" if isinstance(node.op, ast.USub) else "not"
            yield Mutant(file, node.lineno, start, start + len(symbol), symbol, "")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            start, end = span(node)
            yield Mutant(file, node.lineno, start, end, data[start:end].decode(), repr(node.value + 1))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, node, depth + 1)

    tree = ast.parse(text)
    for node in tree.body:
        yield from visit(node, tree, 1)


SYMBOLS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.And: "and",
    ast.Or: "or",
}


def planted(mutant: Mutant) -> bytes:
    """Content of the file with the mistake in it."""
    data = mutant.file.read_bytes()
    return data[: mutant.start] + mutant.new.encode() + data[mutant.end :]


def outcome(tree: Path, tests: list[str], timeout: float) -> tuple[str, str]:
    """Whether the tests detect it, and the first test that failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
    # No byte code: two versions of a file of the same length within a second would be taken for the same.
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg"}
    try:
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "timeout", ""
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return {0: "survived", 1: "killed", 2: "killed"}.get(run.returncode, "error"), (failed or [""])[0]


def main() -> None:
    """Insert mistakes and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="files of skspo (default: all)")
    parser.add_argument("--count", type=int, default=20, help="number of mistakes (default 20)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (default 0)")
    parser.add_argument("--tests", nargs="+", default=["-m", "not slow", "-n", "2", "tests"], help="pytest arguments")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one mistake (default 600)")
    parser.add_argument("--list", action="store_true", help="print the mistakes and run nothing")
    args = parser.parse_args()
    files = [path.resolve() for path in args.files] or sorted((ROOT / "skspo").rglob("*.py"))
    everything = [mutant for file in files for mutant in mutants_of(file)]
    chosen = random.Random(args.seed).sample(everything, min(args.count, len(everything)))
    print(f"{len(chosen)} of {len(everything)} mistakes in {len(files)} files")
    if args.list:
        for mutant in chosen:
            print(f"{mutant.file.relative_to(ROOT)}:{mutant.line}  {mutant.old.strip()!r} -> {mutant.new.strip()!r}")
        return
    counts = dict.fromkeys(("killed", "timeout", "survived", "error"), 0)
    with tempfile.TemporaryDirectory(prefix="skspo-mutants-") as folder:
        tree = Path(folder) / "skspo"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv*", "__pycache__", "_build", "gallery"))
        for mutant in chosen:
            path = tree / mutant.file.relative_to(ROOT)
            original = path.read_bytes()
            path.write_bytes(planted(mutant))
            start = time.monotonic()
            try:
                word, test = outcome(tree, args.tests, args.timeout)
            finally:
                path.write_bytes(original)
            counts[word] += 1
            what = f"{mutant.file.relative_to(ROOT)}:{mutant.line}  {mutant.old.strip()!r} -> {mutant.new.strip()!r}"
            print(f"{word:9} {time.monotonic() - start:6.1f} s  {what}\n{'':21}{test[:150]}", flush=True)
    noticed = counts["killed"] + counts["timeout"]
    print(f"{noticed} of {len(chosen)} noticed; " + ", ".join(f"{n} {word}" for word, n in counts.items()))


if __name__ == "__main__":
    main()
