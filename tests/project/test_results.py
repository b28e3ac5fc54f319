"""Results of benchmarks: rows in JSON, and the tables written from them (``benchmarks/results.py``)."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import skspo

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results():
    spec = importlib.util.spec_from_file_location("results", ROOT / "benchmarks" / "results.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", dict(os.environ))  # it limits threads for itself
        patch.setitem(sys.modules, "results", module)
        spec.loader.exec_module(module)
    return module


def table_of(results, file, **options):
    columns = {"n": ",", "loss": ".3f", "solver": "", "verdict": lambda row: "met" if row["loss"] < 1 else "missed"}
    return results.Table("a", key=("n",), columns=columns, packages=("numpy",), file=file, **options)


def test_rows_and_table(results, tmp_path):
    file = tmp_path / "README.md"
    file.write_text("# Title\n<!-- a:begin -->\nold\n<!-- a:end -->\nbelow\n")
    table = table_of(results, file)
    assert table.add({"n": 1000, "loss": np.float64(0.12345), "solver": None, "seconds": np.inf}) == (
        "| 1,000 | 0.123 | - | met |"
    )
    table.write("Five draws.", ["a note"])
    head, section, below = file.read_text().replace("<!-- a:end -->", "<!-- a:begin -->").split("<!-- a:begin -->")
    assert head == "# Title\n" and below == "\nbelow\n"
    first, *lines = section.strip().splitlines()
    assert first.startswith(table.run["date"]) and f"skspo {skspo.__version__}, numpy {np.__version__}" in first
    assert first.endswith(f"code {results.code_hash()}. Five draws.")
    assert lines == [
        "",
        "| n | loss | solver | verdict |",
        "| --- | --- | --- | --- |",
        "| 1,000 | 0.123 | - | met |",
        "",
        "- a note",
    ]
    saved = json.loads((tmp_path / "results" / "a.json").read_text())
    run = {"date": table.run["date"], "version": skspo.__version__, "code": results.code_hash()}
    assert saved["rows"] == [{"n": 1000, "loss": 0.12345, "solver": None, "seconds": None, "run": run}]
    assert saved["notes"] == ["a note"] and saved["key"] == ["n"]


def test_rows_that_were_not_run_again_are_marked(results, tmp_path, monkeypatch):
    file = tmp_path / "README.md"
    table = table_of(results, file)
    for n in (1, 2, 3):
        table.add({"n": n, "loss": n / 2, "solver": "dual"})
    table.write()
    assert "run" not in file.read_text()
    monkeypatch.setattr(results, "code_hash", lambda: "0123abcd")
    again = table_of(results, file)
    again.add({"n": 2, "loss": 5.0, "solver": "dual"})
    again.add({"n": 4, "loss": 6.0, "solver": "dual"})
    again.write()
    old = f"{table.run['date']}, {skspo.__version__}, code {table.run['code']}"
    assert file.read_text().splitlines()[3:9] == [
        "| n | loss | solver | verdict | run |",
        "| --- | --- | --- | --- | --- |",
        f"| 1 | 0.500 | dual | met | {old} |",
        "| 2 | 5.000 | dual | missed |  |",
        "| 4 | 6.000 | dual | missed |  |",
        f"| 3 | 1.500 | dual | missed | {old} |",
    ]
    assert [row["n"] for row in again.rows] == [1, 2, 4, 3]
    assert [row["n"] for row in again.added()] == [2, 4]


def test_quick_and_full_results_are_not_mixed(results, tmp_path):
    table_of(results, tmp_path / "README.md").add({"n": 1, "loss": 0.5})
    with pytest.raises(ValueError, match=r"a\.json has full results, not quick; name another --out"):
        table_of(results, tmp_path / "README.md", quick=True)


def test_nothing_is_written_without_a_file(results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = table_of(results, None)
    table.add({"n": 1, "loss": 0.5})
    table.write()
    assert os.listdir(tmp_path) == []


def test_every_result_file_has_its_table(results):
    """Rows have unique keys and state their run, and the page has a section for each file."""
    page = results.PAGE.read_text()
    for file in (results.PAGE.parent / "results").glob("*.json"):
        saved = json.loads(file.read_text())
        keys = [tuple(row[name] for name in saved["key"]) for row in saved["rows"]]
        assert len(set(keys)) == len(keys) > 0
        assert all(set(row["run"]) == {"date", "version", "code"} for row in saved["rows"])
        assert saved["name"] == file.stem and saved["profile"] == "full"
        assert f"<!-- {file.stem}:begin -->" in page


def test_tables_of_earlier_versions_have_a_reason(results, tmp_path, monkeypatch):
    """Each table with rows of an earlier version says why it was not run again; the page has the list."""
    assert [name for name, _, reason in results.older() if not reason] == [], "add a sentence to benchmarks/older.toml"
    assert set(results.tomllib.loads(results.OLDER.read_text())) <= set(results.saved_tables())
    assert results.older_section() in results.PAGE.read_text(), "run python benchmarks/results.py --write"
    (tmp_path / "older.toml").write_text("")
    monkeypatch.setattr(results, "OLDER", tmp_path / "older.toml")
    monkeypatch.setattr(results.skspo, "__version__", "99.0")
    assert {name for name, _, reason in results.older() if not reason} == set(results.saved_tables())
