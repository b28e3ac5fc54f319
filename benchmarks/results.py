"""Results of a benchmark: rows with raw numbers in a JSON file, and the Markdown table that is written from them.

A benchmark defines its table, adds each row when it is measured, and writes the table at the end::

    from results import Table, out_option

    out_option(parser)                          # --out docs/benchmarks/README.md
    table = Table(
        "small_data",                           # results/small_data.json, and the markers of the section in --out
        key=("degree",),                        # the columns that identify a row
        columns={"degree": "d", "least squares": ".4f", "ratio": ".3f", "verdict": lambda row: "met" if ... else ""},
        packages=("numpy", "scipy"),            # versions to state, besides skspo
        file=args.out,                          # None: nothing is written
        quick=args.quick,                       # quick and full results are never mixed in one file
    )
    print(table.head())
    for degree in degrees:
        print(table.add({"degree": degree, "least squares": 0.0978, "ratio": 0.924}), flush=True)
    table.write(about="Draws 0 to 9.", notes=["target met: ..."])

A row is a dictionary of raw numbers (not rounded) and texts; entries that are no column are stored but not shown.  The
format of a column is a format specification, or a function of the row; None is shown as "-".  ``add`` writes the JSON
file at once.  A row with the key of an earlier one replaces it, all others are kept, so that running some rows only
(``--only``) updates these.  ``table.rows`` has all rows, also the earlier ones, for notes that compare them.  Every row
stores its date, the version of skspo and a hash of its sources ("run").  In the table, rows that do not have the date
and the sources of the last run are marked in a column "run".

    python benchmarks/results.py            lists for each file how many rows are of the present sources
    python benchmarks/results.py --write    also writes the section of tables from earlier versions; older.toml has the
                                            reasons why they were not run again, and a table without one is an error
"""

from __future__ import annotations

import os

os.environ.update(
    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", BLIS_NUM_THREADS="1", RAYON_NUM_THREADS="1"
)

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import math
import platform
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import skspo
from skspo.experiments.runner import write_atomically

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "README.md"
OLDER = Path(__file__).with_name("older.toml")

Row = dict[str, Any]
Format = str | Callable[[Row], str]


def out_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--out``."""
    parser.add_argument(
        "--out", metavar="FILE.md", help="also write the table into this file, and its rows into results/ beside it"
    )


def code_hash() -> str:
    """First eight digits of the SHA-256 of the sources of skspo, names included."""
    package = Path(skspo.__file__).parent
    total = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        content = source.read_bytes()
        total.update(f"{source.relative_to(package).as_posix()} {len(content)}\n".encode() + content)
    return total.hexdigest()[:8]


def setting(*packages: str) -> str:
    """Date, processor and versions, without the name of the machine."""
    cpu = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        cpu = found[1].strip() if found else cpu
    versions = [f"skspo {skspo.__version__}"]
    versions += [f"{name} {importlib.metadata.version(name)}" for name in packages if name != "skspo"]
    date, python = datetime.date.today().isoformat(), platform.python_version()
    return f"{date}, one thread of {cpu}, Python {python}, {', '.join(versions)}"


def markdown(header: Sequence[str], table: Iterable[Sequence[str]]) -> str:
    lines = [header, ("---",) * len(header), *table]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_section(file: str | Path, name: str, text: str) -> None:
    """Replace the text between ``<!-- name:begin -->`` and ``<!-- name:end -->``, or append it with the markers."""
    path, begin, end = Path(file), f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    old = path.read_text() if path.exists() else ""
    if begin not in old or end not in old:
        old = f"{old}{begin}\n{end}\n"
    head, rest = old.split(begin, 1)
    write_atomically(path, f"{head}{begin}\n{text.strip()}\n{end}{rest.split(end, 1)[1]}")


class Table:
    """Rows of a benchmark; see the head of this module.

    Parameters
    ----------
    name : str
        Name of the JSON file and of the section.
    key : sequence of str
        Entries of a row that identify it.
    columns : mapping of str to str or callable
        Title and format of each column.
    packages : sequence of str, default=()
        Packages whose versions are stated.
    file : str or Path, optional
        Markdown file; the rows are written to ``results/NAME.json`` in the same folder.
    quick : bool, default=False
        Whether this is the quick profile.
    """

    def __init__(
        self,
        name: str,
        *,
        key: Sequence[str],
        columns: Mapping[str, Format],
        packages: Sequence[str] = (),
        file: str | Path | None = None,
        quick: bool = False,
    ) -> None:
        self.name, self.key, self.columns = name, tuple(key), dict(columns)
        self.file = None if file is None else Path(file)
        self.setting = f"{setting(*packages)}, code {code_hash()}"
        self.run = {"date": self.setting[:10], "version": skspo.__version__, "code": code_hash()}
        self.profile = "quick" if quick else "full"
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self._next = 0  # where a row with a new key is inserted
        if self.json is not None and self.json.exists():
            saved = json.loads(self.json.read_text())
            if saved["profile"] != self.profile:
                raise ValueError(f"{self.json} has {saved['profile']} results, not {self.profile}; name another --out.")
            self.rows, self.notes = saved["rows"], saved["notes"]
            self._next = len(self.rows)

    @property
    def json(self) -> Path | None:
        """File of the rows."""
        return None if self.file is None else self.file.parent / "results" / f"{self.name}.json"

    def head(self) -> str:
        """Setting, titles and the line below them."""
        return f"{self.setting}\n\n{markdown(tuple(self.columns), [])}"

    def add(self, row: Mapping[str, Any]) -> str:
        """Add or replace a row, write the JSON file, and return the row as a line of the table."""
        new = {**{name: plain(value) for name, value in row.items()}, "run": self.run}
        keys = [self.key_of(old) for old in self.rows]
        if self.key_of(new) in keys:
            at = keys.index(self.key_of(new))
            self.rows[at] = new
        else:
            at = self._next
            self.rows.insert(at, new)
        self._next = at + 1
        self._save()
        return "| " + " | ".join(self.cells(new)) + " |"

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """Values that identify a row."""
        return tuple(row[name] for name in self.key)

    def added(self) -> list[Row]:
        """Rows that were added by this process, or by another one with the same sources on the same day."""
        return [row for row in self.rows if row["run"] == self.run]

    def cells(self, row: Row) -> list[str]:
        """Formatted columns of a row."""
        return [form(row) if callable(form) else formatted(row.get(name), form) for name, form in self.columns.items()]

    def text(self) -> str:
        """All rows as a Markdown table, where those of other runs are marked."""
        header, lines = list(self.columns), [self.cells(row) for row in self.rows]
        marks = [self.mark(row["run"]) for row in self.rows]
        if any(marks):
            header.append("run")
            for line, mark in zip(lines, marks, strict=True):
                line.append(mark)
        return markdown(header, lines)

    def mark(self, run: Row) -> str:
        """What distinguishes an earlier run from this one; nothing if it has the same date and sources."""
        if run == self.run:
            return ""
        return f"{run['date']}, {run['version']}, " + (f"code {run['code']}" if run["code"] else "earlier code")

    def write(self, about: str = "", notes: Iterable[str] = ()) -> None:
        """Write the table and the notes into the section of the file, and both into the JSON file.

        Parameters
        ----------
        about : str, default=""
            Sentences to add to date and versions.
        notes : iterable of str, default=()
            Lines below the table.
        """
        if self.file is None:
            return
        self.notes = list(notes)
        self._save()
        listed = "\n".join(f"- {line}" for line in self.notes)
        head = " ".join([f"{self.setting}.", about]).strip()
        write_section(self.file, self.name, f"{head}\n\n{self.text()}\n\n{listed}")

    def _save(self) -> None:
        if self.json is None:
            return
        self.json.parent.mkdir(parents=True, exist_ok=True)
        start = {"name": self.name, "profile": self.profile, "setting": self.setting, "key": list(self.key)}
        rows = ",\n".join("  " + json.dumps(row, allow_nan=False) for row in self.rows)
        head = json.dumps({**start, "notes": self.notes}, indent=1)[:-2]
        write_atomically(self.json, f'{head},\n "rows": [\n{rows}\n ]\n}}\n')


def plain(value: Any) -> Any:
    """The value in types that JSON has; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def formatted(value: Any, form: str) -> str:
    """A value as a cell of a table."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else format(value, form)


def saved_tables() -> dict[str, list[Row]]:
    """Runs ("run") of the rows of every file of results, by the name of the file."""
    files = sorted((PAGE.parent / "results").glob("*.json"))
    return {file.stem: [row["run"] for row in json.loads(file.read_text())["rows"]] for file in files}


def older() -> list[tuple[str, list[Row], str]]:
    """Tables with rows of an earlier version: name, runs of these rows, and why they were not run again."""
    reasons = tomllib.loads(OLDER.read_text())
    found = []
    for name, runs in saved_tables().items():
        if before := [run for run in runs if run["version"] != skspo.__version__]:
            found.append((name, before, reasons.get(name, "")))
    return found


def older_section() -> str:
    """The section of tables from earlier versions."""
    rows = [(name, ", ".join(sorted({run["version"] for run in runs})), reason) for name, runs, reason in older()]
    return markdown(("table", "version", "why not again"), rows)


def main() -> int:
    parser = argparse.ArgumentParser(description="Which results are of the present sources.")
    parser.add_argument("--write", action="store_true", help="write the section of tables from earlier versions")
    args = parser.parse_args()
    present, reasons = code_hash(), {name: reason for name, _, reason in older()}
    print(f"present sources: skspo {skspo.__version__}, code {present}")
    for name, runs in saved_tables().items():
        current, dates = sum(run["code"] == present for run in runs), sorted({run["date"] for run in runs})
        why = f"; earlier version: {reasons[name] or 'NO REASON'}" if name in reasons else ""
        print(f"{name:<18} {current:>4} of {len(runs):>4} rows are of these sources; run {', '.join(dates)}{why}")
    if args.write:
        write_section(PAGE, "older", older_section())
    return sum(not reason for reason in reasons.values())


if __name__ == "__main__":
    sys.exit(main())
