"""Which module may import which: layers, from the lowest to the highest, and no cycles.

Imports inside functions count.  Imports for type checkers only do not: they are not executed.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: a module imports from its own package and from lower layers
LAYERS = [
    ["_version"],
    ["_utils"],
    ["regions"],
    ["losses"],
    ["data"],
    ["_training"],
    ["metrics", "solvers"],
    ["estimators"],
    ["boosting", "datasets", "plotting", "pyepo", "torch"],
    ["calibration"],
    ["experiments"],
]

LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}


def modules():
    """Name of each module, and its file."""
    for path in sorted((ROOT / "skspo").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports(name, path, known):
    """Modules of the package that a module imports."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    nodes = [ast.parse(path.read_text())]
    while nodes:
        node = nodes.pop()
        if is_for_type_checkers(node):
            continue
        nodes.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                if inner in known or module in known:
                    yield inner if inner in known else module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


@pytest.fixture(scope="module")
def graph():
    known = dict(modules())
    return {name: set(imports(name, path, known)) - {name} for name, path in known.items()}


def package_of(module):
    return module.split(".")[1] if "." in module else ""


def test_every_package_has_a_layer(graph):
    assert {package_of(module) for module in graph if package_of(module)} == set(LEVEL)


def test_imports_point_down(graph):
    for module, targets in graph.items():
        for target in targets:
            here, there = package_of(module), package_of(target)
            if here and here != there:
                assert there and LEVEL[there] < LEVEL[here], f"{module} imports {target}, which is not below it"


def test_no_cycles(graph):
    done, path = set(), []

    def visit(module):
        assert module not in path, "a cycle: " + " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        path.append(module)
        for target in sorted(graph[module]):
            visit(target)
        path.pop()
        done.add(module)

    for module in graph:
        visit(module)


def test_no_module_is_too_long():
    too_long = {name: lines for name, path in modules() if (lines := len(path.read_text().splitlines())) > 600}
    assert not too_long


def private_imports(source):
    """Modules and names of scikit-learn that start with an underscore and are imported."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith("sklearn.") and "._" in name)


def test_no_private_names_of_scikit_learn():
    """They differ from version to version."""
    assert list(private_imports("from sklearn.utils import _safe_indexing")) == ["sklearn.utils._safe_indexing"]
    assert list(private_imports("import sklearn.utils._tags\nfrom .x import _y")) == ["sklearn.utils._tags"]
    folders = ("benchmarks", "docs", "examples", "skspo", "tests", "tools")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): names for path in files if (names := list(private_imports(path.read_text())))}
    assert not found
