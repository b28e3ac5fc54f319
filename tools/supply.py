"""Packaging checks: source archive and wheel, oldest and newest dependencies, licenses.

    python tools/supply.py                       build both, install each in an empty environment, the wheel also with
                                                 exactly the lower bounds, check and run the first model of the README
    python tools/supply.py --oldest [-- ARGS]    the tests with exactly the lower bounds of pyproject.toml
    python tools/supply.py --newest [-- ARGS]    the tests with the newest versions that they allow
    python tools/supply.py --licenses            write docs/licenses.md: licenses of all dependencies

ARGS are for pytest, ``-n 1`` by default; ``--oldest -- -n 2 -m "not slow"`` is part of .ci/run.  Everything runs in a
temporary directory, in a copy of the source tree; only the last command writes the page.  Bounds are read from
pyproject.toml; there is no second list.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licenses.md"

#: generated files and directories
MADE = ("__pycache__", "*.egg-info", ".*_cache", ".git", ".venv*", ".hypothesis", "build", "dist", "_build", "gallery")

#: last Python for which all of the lower bounds have wheels
LAST_OF_OLDEST = (3, 12)

REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<extras>\[[^]]*\])?>=(?P<version>[0-9][0-9A-Za-z.]*)")

# Run in the environment whose packages it lists: everything but pip, setuptools and the package itself.
LIST = """
import json
from importlib.metadata import distributions
rows = []
for dist in distributions():
    meta = dist.metadata
    kinds = [c.rsplit(" :: ", 1)[1] for c in meta.get_all("Classifier") or [] if c.startswith("License :: OSI")]
    text = meta.get("License-Expression") or "; ".join(kinds) or (meta.get("License") or "").strip()
    needs = [r for r in dist.requires or [] if "extra ==" not in r]
    rows.append([meta["Name"], dist.version, text.splitlines()[0] if text else "", needs])
print(json.dumps(rows))
"""


def project() -> dict[str, Any]:
    """Contents of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements(*extras: str) -> list[str]:
    """Requirements of the package and of these extras, as written."""
    table = project()["project"]
    return [*table["dependencies"], *(r for name in extras for r in table["optional-dependencies"][name])]


def canonical(name: str) -> str:
    """Name of a package as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def oldest(requirement: str) -> str:
    """Turn a lower bound into a pin: ``numpy>=2.0`` into ``numpy==2.0``."""
    match = REQUIREMENT.fullmatch(requirement.strip())
    if match is None:
        raise ValueError(f"{requirement!r} is not of the form name>=version, so that it has no lower bound to test.")
    return f"{match['name']}{match['extras'] or ''}=={match['version']}"


def run(*command: str | Path, cwd: Path, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """Run a command, show it, and stop at errors."""
    print("$", " ".join(str(word) for word in command), flush=True)
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    env |= threads | {"MPLBACKEND": "Agg", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.run([str(word) for word in command], cwd=cwd, env=env, text=True, check=True, **kwargs)


def environment(folder: Path) -> Path:
    """Python of a new and empty virtual environment."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def copy_tree(folder: Path) -> Path:
    """Copy of the source tree."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*MADE))
    return folder


def first_model() -> str:
    """Code of the first Python block of the README."""
    match = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    if match is None:
        raise ValueError("README.md has no Python block.")
    return match[1]


def pins(*extras: str) -> list[str]:
    """Lower bounds of the package and of these extras as pins, for pip; only wheels, nothing is compiled."""
    if sys.version_info[:2] > LAST_OF_OLDEST:
        last = ".".join(map(str, LAST_OF_OLDEST))
        sys.exit(f"Some of the lower bounds have no wheels for Python after {last}. Run this with Python {last}.")
    return ["--only-binary=:all:", *(oldest(r) for r in requirements(*extras))]


# -- archives ----------------------------------------------------------------------------------------------------------


def build(work: Path) -> tuple[Path, Path]:
    """Source archive and wheel, the wheel built from the unpacked archive, so that files missing there are detected."""
    system = project()["build-system"]
    python = environment(work / "builder")
    run(python, "-m", "pip", "install", "-q", *system["requires"], cwd=work)
    dist = work / "dist"
    dist.mkdir()

    def make(what: str, tree: Path) -> Path:
        code = f"import sys, {system['build-backend']} as b; print(b.build_{what}(sys.argv[1]))"
        done = run(python, "-c", code, dist, cwd=tree, capture_output=True)
        return dist / done.stdout.splitlines()[-1]

    source = make("sdist", copy_tree(work / "tree"))
    with tarfile.open(source) as archive:
        archive.extractall(work / "unpacked", filter="data")
    (unpacked,) = (work / "unpacked").iterdir()
    return source, make("wheel", unpacked)


def missing_from_source(names: set[str]) -> list[str]:
    """Files missing from a source archive; names are relative to its directory."""
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "skspo/py.typed", "examples/quickstart.py"}
    # The tests read these.
    wanted |= {"CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "CITATION.cff", "conda/meta.yaml"}
    wanted |= {".pre-commit-config.yaml", ".ci/run"}
    wanted |= {str(path.relative_to(ROOT)) for path in (ROOT / ".github").rglob("*.*") if path.is_file()}
    wanted |= {str(path.relative_to(ROOT)) for part in ("skspo", "tests") for path in (ROOT / part).rglob("*.py")}
    return sorted(wanted - names)


def wrong_in_wheel(names: set[str]) -> list[str]:
    """Files missing from a wheel, and files that it should not have."""
    code = {str(path.relative_to(ROOT)) for path in (ROOT / "skspo").rglob("*.py")} | {"skspo/py.typed"}
    about = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    wrong = [f"missing: {name}" for name in sorted(code - names)]
    wrong += [f"not wanted: {name}" for name in sorted(names - code - about)]
    if not any(name.endswith("/LICENSE") for name in about):
        wrong.append("missing: LICENSE")
    return wrong


def check_archives(work: Path) -> None:
    """Build, check the contents, install each in its own environment, and fit a model."""
    source, wheel = build(work)
    with tarfile.open(source) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if not name.endswith("/")}
    wrong = [f"{source.name}: missing: {name}" for name in missing_from_source(files)]
    wrong += [f"{wheel.name}: {what}" for what in wrong_in_wheel(inside)]
    if wrong:
        raise SystemExit("\n".join(wrong))
    for path in (source, wheel):
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB, as it should be")
    for name, path, others in (("source", source, []), ("wheel", wheel, []), ("oldest", wheel, pins())):
        empty = work / f"use-{name}"
        python = environment(empty)
        run(python, "-m", "pip", "install", "-q", *others, path, cwd=empty)
        run(python, "-m", "pip", "check", cwd=empty)
        run(python, "-m", "pip", "list", cwd=empty)
        # Outside the source tree, so that the installed package is imported.
        run(python, "-c", "import skspo; print(skspo.__version__, skspo.__file__)", cwd=empty)
        (empty / "first_model.py").write_text(first_model())
        run(python, "first_model.py", cwd=empty)
        shutil.copy(ROOT / "examples" / "quickstart.py", empty)
        run(python, "quickstart.py", "--samples", "100", cwd=empty)


# -- oldest and newest dependencies ------------------------------------------------------------------------------------


def run_tests(work: Path, wanted: list[str], arguments: list[str]) -> None:
    """Install, check, and run the tests in a copy of the tree."""
    tree = copy_tree(work / "tree")
    python = environment(work / "environment")
    run(python, "-m", "pip", "install", "-q", *wanted, cwd=work)
    run(python, "-m", "pip", "install", "-q", "--no-deps", "-e", tree, cwd=work)
    run(python, "-m", "pip", "check", cwd=work)
    run(python, "-m", "pip", "list", cwd=work)
    run(python, "-m", "pytest", "-q", *arguments, cwd=tree)


# -- licenses ----------------------------------------------------------------------------------------------------------


def write_licenses(work: Path) -> None:
    """Table of all dependencies of the package, from its metadata."""
    python = environment(work / "environment")
    before = {canonical(row[0]) for row in json.loads(run(python, "-c", LIST, cwd=work, capture_output=True).stdout)}
    run(python, "-m", "pip", "install", "-q", *requirements(), cwd=work)
    packages = json.loads(run(python, "-c", LIST, cwd=work, capture_output=True).stdout)
    packages = [row for row in packages if canonical(row[0]) not in before]
    needed_by: dict[str, list[str]] = {canonical(row[0]): [] for row in packages}
    for name, _, _, needs in packages:
        for requirement in needs:
            other = canonical(re.match(r"[A-Za-z0-9._-]+", requirement)[0])  # type: ignore[index]
            if other in needed_by:
                needed_by[other].append(name)
    direct = {canonical(oldest(r).partition("==")[0]) for r in requirements()}
    lines = [
        "# Licenses",
        "",
        "skspo is under the BSD 3-Clause License. These are all packages that it installs, without extras, and their",
        "licenses, as stated in their metadata. Written by `python tools/supply.py --licenses`.",
        "",
        "| package | version | license | needed by |",
        "|---|---|---|---|",
    ]
    unknown = []
    for name, version, license, _ in sorted(packages, key=lambda row: canonical(row[0])):
        if not license:
            unknown.append(name)
        by = ["skspo"] * (canonical(name) in direct) + sorted(needed_by[canonical(name)], key=str.lower)
        lines.append(f"| {name} | {version} | {license or 'not stated'} | {', '.join(by)} |")
    PAGE.write_text("\n".join(lines) + "\n")
    print(PAGE.read_text())
    if unknown:
        print(f"Look up by hand: {unknown} state no license in their metadata.")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    for name in ("oldest", "newest", "licenses"):
        what.add_argument(f"--{name}", action="store_true")
    parser.add_argument("arguments", nargs="*", default=["-n", "1"], help="for pytest, after --")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="skspo-supply-") as folder:
        work = Path(folder)
        try:
            if args.oldest:
                run_tests(work, pins("test"), args.arguments)
            elif args.newest:
                run_tests(work, requirements("test"), args.arguments)
            elif args.licenses:
                write_licenses(work)
            else:
                check_archives(work)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{error}\n{error.stdout or ''}{error.stderr or ''}")


if __name__ == "__main__":
    main()
