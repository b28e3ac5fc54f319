"""Tables of README and documentation that quote results of the benchmarks: check their figures, or update them.

    python benchmarks/quoted.py            list figures that differ from the results; the exit code is their number
    python benchmarks/quoted.py --write    replace them, with as many places as they had

A table that quotes results has a comment before it::

    <!-- figures of exact.json
    - | n | skspo s | ratio
    classes-5000
    paths-1000
    -->

The first line names the file in docs/benchmarks/results, the second one the column of the file for each column of the
table ("-": a text), and each other line the key of one row of the table, where several values are joined by " / ".  An
entry that is not at the top level of a row is named by its path, joined by dots.  A cell may have a unit after its
number; with "%" the entry is a share, unless its name ends with "%".
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "benchmarks" / "results"
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
QUOTED = re.compile(r"<!-- figures of (\w+)\.json\n(.*?)\n-->\n\s*((?:^\|[^\n]*\n)+)", re.MULTILINE | re.DOTALL)


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
    """For each table that quotes results: its text, its rows, and what is wrong with its comment."""
    return [(table, *read(name, spec, table)) for name, spec, table in QUOTED.findall(text)]


def read(name: str, spec: str, table: str) -> tuple[list[list[Cell | str]], list[str]]:
    """Cells of a table with their figures, and what is wrong with its comment."""
    file = RESULTS / f"{name}.json"
    if not file.exists():
        return [], [f"there is no {file.name}"]
    saved = json.loads(file.read_text())
    rows = {" / ".join(str(row[part]) for part in saved["key"]): row for row in saved["rows"]}
    columns, keys = split(spec.splitlines()[0]), [line.strip() for line in spec.splitlines()[1:]]
    header, _, *lines = table.strip().splitlines()
    if len(lines) != len(keys) or len(split(header)) != len(columns):
        shapes = f"{len(lines)} x {len(split(header))}", f"{len(keys)} x {len(columns)}"
        return [], [f"{name}: the table is {shapes[0]}, its comment describes {shapes[1]}"]
    found: list[list[Cell | str]] = []
    wrong = []
    for key, line in zip(keys, lines, strict=True):
        found.append([])
        for column, cell in zip(columns, split(line), strict=True):
            source = f"{name}, {key}, {column}"
            if column == "-":
                if re.fullmatch(NUMBER.pattern + r"( ?(s|MB|%|times))?", cell):
                    wrong.append(f"{source}: {cell!r} is in a column without figures")
                found[-1].append(cell)
            elif key not in rows or (value := entry(rows[key], column)) is KeyError:
                wrong.append(f"{source}: there is no such entry")
                found[-1].append(cell)
            else:
                found[-1].append(Cell(source, cell, rounded(cell, value, not column.endswith("%"))))
    return found, wrong


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
    """Figures of a text that differ from the results, and comments that do not fit."""
    found = []
    if text.count("<!-- figures of") != len(quoted(text)):
        found.append("a comment '<!-- figures of' has another form, or no table after it")
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
