"""Tables of README and documentation that quote results of the benchmarks: check their figures, or update them.

    python benchmarks/quoted.py            list figures that differ from the results; the exit code is their number
    python benchmarks/quoted.py --write    replace them, with as many places as they had

A table that quotes results has a marker on the line before it, ``<!-- figures: speed -->``, and ``quoted.toml`` says
what it quotes::

    [speed.exact]                                       # rows of docs/benchmarks/results/exact.json
    columns = ["-", "n", "skspo s", "ratio"]            # their entry for each column of the table; "-": a text
    rows = ["classes-5000", "paths-1000"]               # key of each row; several values are joined by " / "

A section for another file adds rows to the same table.  An entry that is not at the top level of a row is named by its
path, joined by dots.  A cell may have a unit after its number; with "%" the entry is a share, unless its name ends with
"%".
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "benchmarks" / "results"
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
QUOTED = re.compile(r"<!-- figures: (\S+) -->\n((?:^\|[^\n]*\n)+)", re.MULTILINE)
SOURCES = Path(__file__).with_name("quoted.toml")


class Cell(NamedTuple):
    """A quoted figure: where it is from, what the page says, and what it should say."""

    source: str
    found: str
    expected: str


def pages() -> list[Path]:
    """README and the pages of the documentation."""
    return [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)]


def split(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rounded(cell: str, value: Any, share: bool) -> str:
    """The value as the cell writes it: the same places, thousands separator and unit."""
    if value is None or isinstance(value, str):
        return value or ""
    match = NUMBER.match(cell)
    if match is None:
        return f"{value:.3g}"
    text, unit = match[0], cell[match.end() :]
    if "%" in unit and share:
        value = 100 * value
    mantissa, e, _ = text.partition("e")
    kind = f".{len(mantissa.partition('.')[2])}{'e' if e else 'f'}"
    return format(value, ("+" if text[0] == "+" else "") + ("," if "," in text else "") + kind) + unit


def quoted(text: str) -> list[tuple[str, list[list[Cell | str]], list[str]]]:
    """For each table that quotes results: its text, its rows, and what is wrong with its description."""
    sources = tomllib.loads(SOURCES.read_text())
    return [(table, *read(name, sources.get(name, {}), table)) for name, table in QUOTED.findall(text)]


def read(name: str, parts: dict[str, Any], table: str) -> tuple[list[list[Cell | str]], list[str]]:
    """Cells of a table with their figures, and what is wrong with its description."""
    header, _, *lines = table.strip().splitlines()
    expected = [(file, key, part["columns"]) for file, part in parts.items() for key in part["rows"]]
    if len(lines) != len(expected) or any(len(split(header)) != len(columns) for _, _, columns in expected):
        return [], [f"{name}: {SOURCES.name} has {len(expected)} rows, the table {len(lines)}; or the columns differ"]
    found: list[list[Cell | str]] = []
    wrong = []
    results = {file: rows_of(file) for file in parts}
    for (file, key, columns), line in zip(expected, lines, strict=True):
        found.append([])
        for column, cell in zip(columns, split(line), strict=True):
            source = f"{file}, {key}, {column}"
            if column == "-":
                if re.fullmatch(NUMBER.pattern + r"( ?(s|MB|%|times))?", cell):
                    wrong.append(f"{source}: {cell!r} is in a column without figures")
                found[-1].append(cell)
            elif key not in results[file] or (value := entry(results[file][key], column)) is KeyError:
                wrong.append(f"{source}: there is no such entry")
                found[-1].append(cell)
            else:
                found[-1].append(Cell(source, cell, rounded(cell, value, not column.endswith("%"))))
    return found, wrong


def rows_of(name: str) -> dict[str, dict[str, Any]]:
    """Rows of a file of results by their keys; none if there is no such file."""
    file = RESULTS / f"{name}.json"
    if not file.exists():
        return {}
    saved = json.loads(file.read_text())
    return {" / ".join(str(row[part]) for part in saved["key"]): row for row in saved["rows"]}


def entry(row: dict[str, Any], path: str) -> Any:
    """Entry of a row, by its name or by a path of names joined by dots; KeyError if there is none."""
    if path in row:
        return row[path]
    value: Any = row
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return KeyError
        value = value[name]
    return value


def problems(text: str) -> list[str]:
    """Figures of a text that differ from the results, and markers that do not fit."""
    found = []
    if text.count("<!-- figures") != len(quoted(text)):
        found.append("a marker '<!-- figures' has another form, or no table after it")
    for _, rows, wrong in quoted(text):
        found += wrong
        cells = (cell for row in rows for cell in row if isinstance(cell, Cell))
        found += [f"{cell.source}: {cell.found!r} should be {cell.expected!r}" for cell in cells if cell[1] != cell[2]]
    return found


def updated(text: str) -> str:
    """The text with the figures of the results."""
    for table, rows, _ in quoted(text):
        head = table.splitlines()[:2]
        lines = [" | ".join(cell.expected if isinstance(cell, Cell) else cell for cell in row) for row in rows]
        if rows:
            text = text.replace(table, "\n".join([*head, *(f"| {line} |" for line in lines)]) + "\n")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the figures")
    args = parser.parse_args()
    count = 0
    for page in pages():
        text = page.read_text()
        for problem in problems(text):
            print(f"{page.relative_to(ROOT)}: {problem}")
        if args.write and updated(text) != text:
            page.write_text(updated(text))
        count += len(problems(page.read_text()))
    return count


if __name__ == "__main__":
    sys.exit(main())
