"""``benchmarks/all.py`` runs every benchmark, goes on after a failure, and says what it did not run."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
HELPERS = {"ablation_problems", "all", "auto_problems", "before", "quoted", "real_data", "real_problems", "results"}

GOOD = """
import argparse, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--quick", action="store_true")
def out_option(parser):
    parser.add_argument("--out")
out_option(parser)
args = parser.parse_args()
pathlib.Path(args.out).write_text(f"quick {args.quick}")
"""


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """The module, with a folder of three small benchmarks and a file that is none."""
    spec = importlib.util.spec_from_file_location("run_all", FOLDER / "all.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "a_bad.py").write_text("# out_option(parser)\nprint('so far')\nraise ValueError('too large')\n")
    (folder / "b_good.py").write_text(GOOD)
    (folder / "c_absent.py").write_text("# out_option(parser)\n")
    (folder / "helper.py").write_text("raise ValueError\n")
    monkeypatch.setattr(module, "HERE", folder)
    monkeypatch.setattr(module, "PAGE", tmp_path / "docs.md")
    monkeypatch.setattr(module, "PACKAGES", {"c_absent": ("numpy", "no_such_package")})
    monkeypatch.setattr(module.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    return module


def test_a_failure_does_not_stop_the_others(runner, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["all.py", "--quick"])
    assert runner.main() == 1
    said = re.sub(r"\d+ s", "0 s", capsys.readouterr().out).splitlines()
    assert said == [
        f"tables: {tmp_path / 'README.md'}",
        f"logs: {tmp_path}",
        "[1 of 3] a_bad: 0 s, FAILED",
        "[2 of 3] b_good: 0 s",
        "[3 of 3] c_absent: not run, not installed: no_such_package",
        "",
        "1 of 3 benchmarks ended without an error.",
        "failed:",
        "  a_bad: ended with 1: ValueError: too large",
        "not run:",
        "  c_absent: not installed: no_such_package",
    ]
    assert (tmp_path / "README.md").read_text() == "quick True"
    assert (tmp_path / "a_bad.log").read_text().startswith("so far\n")


def test_some_benchmarks_in_full(runner, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["all.py", "--only", "b_good"])
    assert runner.main() == 0
    assert (tmp_path / "docs.md").read_text() == "quick False"
    assert "1 of 1 benchmarks ended without an error." in capsys.readouterr().out


def test_missing_data(runner, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "DATA", {"b_good": "SOME_DATA"})
    monkeypatch.delenv("SOME_DATA", raising=False)
    assert runner.missing("b_good", quick=False) == "SOME_DATA names no folder"
    assert runner.missing("b_good", quick=True) == ""
    monkeypatch.setenv("SOME_DATA", str(tmp_path))
    assert runner.missing("b_good", quick=False) == ""


def test_packages_and_options_are_those_of_benchmarks():
    spec = importlib.util.spec_from_file_location("run_all", FOLDER / "all.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = {file.stem for file in FOLDER.glob("*.py")} - HELPERS
    assert set(module.benchmarks()) <= names
    assert {*module.PACKAGES, *module.DATA, *module.OPTIONS} <= names
    page = (FOLDER.parent / "docs/benchmarks/README.md").read_text()
    for name in names:
        assert f"`python benchmarks/{name}.py`" in page, f"docs/benchmarks/README.md does not list {name}.py"


def test_names_that_benchmarks_import_from_each_other_exist():
    trees = {path.stem: ast.parse(path.read_text()) for path in FOLDER.glob("*.py")}
    defined = {}
    for name, tree in trees.items():
        nodes = [node for top in tree.body for node in (top, *getattr(top, "body", []))]
        targets = [t.id for node in nodes for t in ast.walk(node) if isinstance(t, ast.Name)]
        imported = [a.asname or a.name for node in nodes if isinstance(node, ast.ImportFrom) for a in node.names]
        defined[name] = {getattr(node, "name", None) for node in nodes} | {*targets, *imported}
    found = 0
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in trees:
                found += 1
                missing = {alias.name for alias in node.names} - defined[node.module]
                assert not missing, f"{name}.py imports {missing} from {node.module}.py"
    assert found > 15
