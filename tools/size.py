"""How large the package is: lines, tuned numbers, modules of a plain fit, complex functions, members of regions.

    python tools/size.py                the working tree
    python tools/size.py --base REV     another commit beside it
    python tools/size.py --list         also every number, function and member that is counted

Tuned numbers are upper-case names of modules and classes with a numeric value.  Complexity is one more than the number
of branches, loops, handlers, comprehensions and ``and`` or ``or``, without those of functions inside.  Members are the
public names of a class, except those of scikit-learn's ``BaseEstimator``.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: run with the package of each tree: public names of the regions
MEMBERS = """
import json, skspo.regions as regions
from sklearn.base import BaseEstimator
from skspo.regions.base import Region
classes = [Region] + [c for c in map(regions.__dict__.get, regions.__all__) if isinstance(c, type) and c is not Region]
public = lambda c: sorted(n for n in dir(c) if n[0] != "_" and n not in dir(BaseEstimator))
print(json.dumps({c.__name__: public(c) for c in classes if issubclass(c, Region)}))
"""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DECISIONS = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension, ast.Assert, ast.match_case)

#: functions of a larger complexity are listed
LIMIT = 20


def numbers(tree: ast.Module) -> Iterator[str]:
    """Names of tuned numbers of a module and its classes."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for node in [statement for scope in (tree, *classes) for statement in scope.body]:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if value is not None and is_numeric(value):
            names = [name.id for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name)]
            yield from (name for name in names if name.isupper())


def is_numeric(value: ast.expr) -> bool:
    """Whether an expression consists of numbers: no text, and at least one number."""
    leaves = [type(leaf.value) for leaf in ast.walk(value) if isinstance(leaf, ast.Constant)]
    return bool(leaves) and set(leaves) <= {int, float}


def complexity(function: ast.AST) -> int:
    """One more than the number of decisions of a function."""
    total, inside = 1, list(ast.iter_child_nodes(function))
    while inside:
        node = inside.pop()
        total += len(node.values) - 1 if isinstance(node, ast.BoolOp) else isinstance(node, DECISIONS)
        inside += () if isinstance(node, FUNCTIONS) else ast.iter_child_nodes(node)
    return total


def run(command: list[str], tree: Path) -> str:
    """Output of a command that imports the package of a tree."""
    paths = os.pathsep.join([str(tree), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        command, cwd=tree, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    ).stdout


def measure(tree: Path) -> dict[str, list[str]]:
    """For each thing that is counted, what there is of it."""
    files = sorted((tree / "skspo").rglob("*.py"))
    texts = {str(file.relative_to(tree)): file.read_text() for file in files}
    parsed = {name: ast.parse(text) for name, text in texts.items()}
    nodes = [(name, node) for name, tree_ in parsed.items() for node in ast.walk(tree_)]
    walk = run([sys.executable, str(ROOT / "tools/walk.py"), "--list"], tree).splitlines()[1:]
    result = {
        "lines": [name for name, text in texts.items() for _ in text.splitlines()],
        "tuned numbers": [f"{name} {number}" for name, module in parsed.items() for number in numbers(module)],
        "_Row classes": [
            f"{name} {node.name}" for name, node in nodes if isinstance(node, ast.ClassDef) and node.name[:4] == "_Row"
        ],
        "modules of a fit": [line.split()[-1] for line in walk],
        f"functions above {LIMIT}": [
            f"{name} {node.name} {complexity(node)}"
            for name, node in nodes
            if isinstance(node, FUNCTIONS) and complexity(node) > LIMIT
        ],
    }
    members = json.loads(run([sys.executable, "-c", MEMBERS], tree))
    return result | {f"members of {name}": names for name, names in members.items()}


def main() -> None:
    """Print the counts of one or two trees."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", metavar="REV", help="a commit to compare with")
    parser.add_argument("--list", action="store_true", help="print what is counted, too")
    args = parser.parse_args()

    columns = {"here": measure(ROOT)}
    if args.base:
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(["git", "-C", str(ROOT), "archive", args.base, "skspo"], stdout=-1, check=True)
            subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
            columns = {args.base[:12]: measure(Path(folder).resolve()), **columns}
    print(f"{'':28}" + "".join(f"{name:>14}" for name in columns))
    for row in dict.fromkeys(row for column in columns.values() for row in column):
        print(f"{row:28}" + "".join(f"{len(column[row]) if row in column else '':>14}" for column in columns.values()))
    if args.list:
        base = columns["here"]["members of Region"]
        for row, items in columns["here"].items():
            if row != "lines":
                print(f"\n{row}:", *items if items is base else sorted(set(items).difference(base)), sep="\n    ")


if __name__ == "__main__":
    main()
