"""Figures in README and documentation are those of the results that the benchmarks wrote (``benchmarks/quoted.py``)."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)(```+)[^\n`]*\n.*?^\1\2 *$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


@pytest.fixture(scope="module")
def quoted():
    spec = importlib.util.spec_from_file_location("quoted", ROOT / "benchmarks" / "quoted.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "quoted", module)
        spec.loader.exec_module(module)
    return module


def test_quoted_figures(quoted):
    found = {str(page): problems for page in quoted.pages() if (problems := quoted.problems(page.read_text()))}
    assert found == {}, "run python benchmarks/quoted.py --write if the results are new"


def test_every_table_of_the_readme_is_quoted(quoted):
    text = (ROOT / "README.md").read_text()
    assert len(TABLE.findall(text)) == len(quoted.quoted(text)) >= 2


def test_no_other_figures_in_the_readme():
    """Text has no measured numbers, that is decimals or numbers with a unit.  The version of Python is allowed."""
    text = (ROOT / "README.md").read_text()
    for pattern in (FENCE, COMMENT, TABLE):
        text = pattern.sub("", text)
    text = re.sub(r"\]\([^)]*\)", "]", text.replace("Python 3.11", ""))
    unit = r"(?:s|ms|seconds?|minutes?|hours?|MB|GB|%|percent|times|points?)"
    assert re.findall(rf"\d+\.\d+|\d[\d,]* ?{unit}(?![\w-])", text) == []


ROW = {"name": "a", "n": 1000, "s": 0.1249, "share": 0.346, "gap": 4.4e-8, "more": {"x": 2.5}, "solver": "dual"}
PAGE = """text

<!-- figures: two -->
| problem | n | s | share | gap | x | solver | regret |
|---|---|---|---|---|---|---|---|
| A | 1,000 | 0.125 s | 34.6 % | 4e-08 | 2.5 | dual | 12.3 % |
| B |  | 3.0 s |  |  |  |  |  |

more
"""
SOURCES = """[two.t]
columns = ["-", "n", "s", "share", "gap", "more.x", "solver", "regret %"]
rows = ["a / 1000"]

[two.u]
columns = ["-", "-", "seconds", "-", "-", "-", "-", "-"]
rows = ["b"]
"""


@pytest.fixture
def folder(quoted, tmp_path, monkeypatch):
    """Results in a folder, and what the page quotes of them."""
    monkeypatch.setattr(quoted, "RESULTS", tmp_path)
    monkeypatch.setattr(quoted, "SOURCES", tmp_path / "quoted.toml")
    (tmp_path / "t.json").write_text(json.dumps({"key": ["name", "n"], "rows": [{**ROW, "regret %": 12.34}]}))
    (tmp_path / "u.json").write_text(json.dumps({"key": ["name"], "rows": [{"name": "b", "seconds": 2.96}]}))
    (tmp_path / "quoted.toml").write_text(SOURCES)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1,000", "1,001"),
        ("0.125", "0.124"),
        ("0.125", "0.12500"),
        ("34.6", "34.5"),
        ("4e-08", "5e-08"),
        ("| 2.5", "| 2.6"),
        ("dual", "bundle"),
        ("12.3", "12.4"),
        ("3.0", "2.9"),
        ("12.3 %", ""),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_figures_are_found_and_replaced(quoted, old, new):
    assert quoted.problems(PAGE) == [] and quoted.updated(PAGE) == PAGE
    assert PAGE.count(old) == 1
    wrong = PAGE.replace(old, new)
    assert len(quoted.problems(wrong)) == 1
    assert quoted.problems(quoted.updated(wrong)) == []
    if new and "0000" not in wrong and "00 s" not in wrong:
        assert quoted.updated(wrong) == PAGE


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("a / 1000", "b / 1000", "there is no such entry"),
        ("more.x", "more.y", "there is no such entry"),
        ('["b"]', '["b", "b"]', "has 3 rows, the table 2"),
        ("two.u", "three.u", "has 1 rows, the table 2"),
        ('"-", "n", "s"', '"-", "s"', "or the columns differ"),
        ("two.u", "two.v", "there is no such entry"),
    ],
)
def test_descriptions_that_do_not_fit(quoted, folder, old, new, said):
    assert SOURCES.count(old) == 1
    (folder / "quoted.toml").write_text(SOURCES.replace(old, new))
    assert said in quoted.problems(PAGE)[0]


@pytest.mark.usefixtures("folder")
def test_markers_that_do_not_fit(quoted):
    for old, new, said in (
        ("| A |", "| 7 s |", "is in a column without figures"),
        ("-->", "-->\n\ntext\n", "no table after it"),
        ("figures: two", "figures of two", "has another form"),
        ("figures: two", "figures: four", "has 0 rows, the table 2"),
    ):
        assert said in quoted.problems(PAGE.replace(old, new))[0]
