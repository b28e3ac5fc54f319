"""The documentation: code on pages runs, links are valid, and the API reference is complete."""

import ast
import doctest
import importlib
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import skspo

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILT = {"_build", "_templates", "gallery", "generated"}
PAGES = sorted(page for page in DOCS.rglob("*.md") if not BUILT & set(page.relative_to(DOCS).parts))
TESTS = {path.name: path for path in (ROOT / "tests").rglob("test_*.py")}  # names are unique, see below
NAMES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
TEXTS = [*(ROOT / name for name in NAMES), *PAGES]
OPTIONAL = {"skspo.torch.SPOPlusLoss", "skspo.pyepo.RegionModel"}  # modules that need more than the tests have
FIRST_PAGES = (ROOT / "README.md", DOCS / "index.md")
FENCE = re.compile(r"^( *)(```+|:::+)([^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)


def fenced(text):
    """Language and content of each fenced block, and the line where it starts."""
    return [(m[3].strip(), m[4], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]


def name_of(path):
    return str(path.relative_to(ROOT))


class Tolerant(doctest.OutputChecker):
    """Line by line, numbers may differ by one in the last place or by 1 %: optima are known to a tolerance."""

    NUMBER = re.compile(r"\d+(?:\.\d*)?(?:e[-+]?\d+)?")

    def check_output(self, want, got, optionflags):
        wanted, seen = want.splitlines(), got.splitlines()
        return super().check_output(want, got, optionflags) or (
            len(wanted) == len(seen) and all(self.same(a, b, optionflags) for a, b in zip(wanted, seen, strict=True))
        )

    def same(self, want, got, optionflags):
        if super().check_output(want + "\n", (got or "<BLANKLINE>") + "\n", optionflags):
            return True
        numbers = [[float(x) for x in self.NUMBER.findall(line)] for line in (want, got)]
        shapes = [self.NUMBER.sub("", line).split() for line in (want, got)]
        decimals = min((len(x.partition(".")[2]) for x in self.NUMBER.findall(want)), default=0)
        return shapes[0] == shapes[1] and np.allclose(*numbers, rtol=0.01, atol=1.01 * 10.0**-decimals)


def run_blocks(path):
    """Run every Python block of a page, in order and in one namespace; ``>>>`` are doctests."""
    matplotlib.use("Agg")
    globs = {"__name__": "__main__"}
    ran = 0
    for language, code, line in fenced(path.read_text()):
        if language != "python":
            continue
        ran += 1
        code = textwrap.dedent(code)  # blocks inside lists are indented
        if ">>>" not in code:
            exec(compile(code, f"{path}:{line}", "exec"), globs)
            continue
        test = doctest.DocTestParser().get_doctest(code, globs, name_of(path), str(path), line)
        said = []
        runner = doctest.DocTestRunner(Tolerant(), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        assert runner.run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)
        globs.update(test.globs)
    return ran


@pytest.mark.parametrize("path", [path for path in TEXTS if path not in FIRST_PAGES], ids=name_of)
def test_code_blocks_run(path, monkeypatch):
    monkeypatch.chdir(ROOT)  # paths on pages are those of the source tree
    monkeypatch.setattr(sys, "path", sys.path[:])
    ran = run_blocks(path)
    how_to = path.name == "CONTRIBUTING.md" or path.stem.startswith(("add_a_", "add_an_"))
    if how_to or (path.parent.name in ("guide", "migrating") and path.stem != "index"):
        included = "{literalinclude} ../../tests/" in path.read_text()  # that file is run as a test
        assert ran or included, "a page of the user guide without code"


@pytest.mark.parametrize("name", ["add_a_solver", "add_a_loss", "add_an_estimator"])
def test_pages_with_paths_run_from_any_directory(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for module in ("test_new_solver", "test_new_loss", "test_new_estimator"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    test_code_blocks_run(DOCS / f"guide/{name}.md", monkeypatch)


def test_only_known_languages():
    """A block in another language would be code that is not tested."""
    for path in PAGES:
        for language, _, line in fenced(path.read_text()):
            known = language in ("python", "bash", "text") or re.match(r"\{(?!code)", language)
            assert known, f"{name_of(path)}:{line} has a block of {language!r}"


@pytest.mark.parametrize("path", FIRST_PAGES, ids=name_of)
def test_first_block(path, capsys):
    """The only one of the page runs unchanged, and prints the output shown below it."""
    blocks = fenced(path.read_text())
    (first,) = (k for k, (language, _, _) in enumerate(blocks) if language == "python")
    assert path.name == "README.md" or sum(bool(line.strip()) for line in blocks[first][1].splitlines()) <= 10
    exec(compile(blocks[first][1], path.name, "exec"), {})
    assert blocks[first + 1][0] == "text"
    said = capsys.readouterr().out
    assert Tolerant().check_output(blocks[first + 1][1], said, 0), said


@pytest.mark.parametrize("name", ["with_torch", "with_pyepo", "with_regions_in_pyepo"])
def test_pages_for_users_of_other_packages(name):
    """If PyTorch and PyEPO are installed, the code on these pages runs as well."""
    pytest.importorskip("torch")
    if name != "with_torch":
        pytest.importorskip("pyepo")
    subprocess.run([sys.executable, str(DOCS / f"migrating/{name}.py")], cwd=ROOT, check=True, timeout=300)


@pytest.mark.parametrize("path", sorted((DOCS / "guide").glob("with_*.py")), ids=lambda path: path.stem)
def test_scripts_for_other_packages(path):
    """They check what they promise: the same model after loading, or on other workers."""
    pytest.importorskip(path.stem.removeprefix("with_"))
    runpy.run_path(str(path))


def test_the_region_of_the_contributing_guide():
    code = next(code for language, code, _ in fenced((ROOT / "CONTRIBUTING.md").read_text()) if language == "python")
    globs: dict = {}
    exec(textwrap.dedent(code), globs)
    C = np.random.default_rng(0).normal(size=(20, 4))
    np.testing.assert_array_equal(globs["Orthoplex"]().argmin(C), skspo.L1Ball().argmin(C))


def test_files_and_packages_of_the_contributing_guide():
    """Every file that it names exists, and its tree has every package, from the lowest layer to the highest."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:skspo|tests|docs|tools|\.ci|\.github)/[\w./]+)`", text)
    assert len(named) >= 15
    assert [name for name in named if not (ROOT / name).exists()] == []
    tree = next(code for language, code, _ in fenced(text) if language == "text" and code.startswith("skspo/\n"))
    packages = re.findall(r"^  (\w+)(?:/|\.py)  +\S", tree, re.MULTILINE)
    from test_layers import LAYERS

    assert packages == [package for layer in LAYERS for package in layer]


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_names_in_how_tos_exist(path):
    """Every `NAME` in `file.py` of the package is defined there."""
    for name, file in re.findall(r"`(\w+)` in\s+`(skspo/[\w/]+\.py)`", path.read_text()):
        source = (ROOT / file).read_text()
        assert re.search(rf"^(?:class |def |    def )?{name}\b", source, re.MULTILINE), f"{name} in {file}"


def test_included_files():
    """Every included file and its two markers exist."""
    found = 0
    for path in PAGES:
        for language, options, _ in fenced(path.read_text()):
            if not language.startswith("{literalinclude}"):
                continue
            found += 1
            included = (path.parent / language.removeprefix("{literalinclude}").strip()).resolve()
            text = included.read_text()
            ast.parse(text)
            for mark in re.findall(r"^:(?:start-after|end-before): (.*)$", options, re.MULTILINE):
                assert text.count(mark.strip(" '\"")) == 1, (name_of(path), mark)
    assert found >= 3


# -- links -------------------------------------------------------------------------------------------------------------


def anchors(text):
    """Names that GitHub and the site give to the headings of a page."""
    prose = FENCE.sub("", text)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_links(path):
    prose = FENCE.sub("", path.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose)):
        if ":" in target:  # elsewhere; the tests need no network
            assert re.match(r"https://[\w-]+(\.[\w-]+)+(/[\w./#%~?=&-]*)?$", target), target
            continue
        name, _, anchor = target.partition("#")
        file = path if not name else path.parent / name
        if (path.parent / name).resolve() == DOCS / "gallery/index.rst" or "/gallery/plot_" in f"/{name}":
            source = ROOT / "examples" / (Path(name).stem + ".py")
            assert name.endswith("index.rst") or source.exists(), target  # made from the examples
            continue
        assert file.exists(), f"{name_of(path)} links to {target}"
        if anchor:
            assert anchor in anchors(file.read_text()), f"{name_of(path)} links to {target}"


# -- the API reference -------------------------------------------------------------------------------------------------


def documented():
    """Full names that the pages in docs/api list."""
    names, module = set(), ""
    for line in "\n".join(page.read_text() for page in sorted((DOCS / "api").glob("[!i]*.rst"))).splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.match(r"   ([A-Za-z_][\w.]*)$|\.\. (?:autodata|py:data):: (\w+)$", line):
            names.add(f"{module}.{match[1] or match[2]}")
    return names


PARTS = ("boosting", "calibration", "plotting", "datasets", "solvers", "experiments")
MODULES = ("skspo", *(f"skspo.{name}" for name in PARTS))


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented(module):
    public = importlib.import_module(module).__all__
    assert {f"{module}.{name}" for name in public} - documented() == set()


def test_every_documented_name_exists():
    for name in documented() - OPTIONAL:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name
    assert documented() >= OPTIONAL


def test_the_solvers_page_has_every_solver():
    text = (DOCS / "guide/solvers.md").read_text()
    for name in skspo.solvers.SOLVERS:
        assert f"| `{name}` |" in text


def test_the_regions_page_has_every_region():
    text = (DOCS / "guide/regions.md").read_text()
    for name in skspo.regions.__all__:
        value = getattr(skspo, name)
        if isinstance(value, type) and issubclass(value, skspo.Region) and value is not skspo.Region:
            assert f"`{name}`" in text, name


def test_tolerance_of_doctests():
    check = Tolerant().check_output
    assert check("SPO+ 8.7%; CV 8.7%\n", "SPO+ 8.6%; CV 8.8%\n", 0)
    assert not check("SPO+ 8.7%\n", "SPO+ 9.0%\n", 0)
    assert not check("SPO+ 8.7%\n", "SPO 8.7%\n", 0)
    assert not check("True\n", "False\n", 0)


def test_docstrings_are_read_as_plain_text():
    """Bars and fitted attributes are not markup; directives and names of parameters are unchanged."""
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        from plain_docstrings import plain
    finally:
        sys.path.pop(0)
    formula = [".. math:: |B|_F", "    + coef_", ""]
    assert plain(["Minimize", "", *formula, "and |x|."]) == ["Minimize", "", *formula, r"and \|x\|."]
    assert plain(["coef_ : array of |x|", "    ``n_`` or n_."]) == [r"coef_ : array of \|x\|", r"    ``n_`` or n\_."]
    assert plain(["A.", "", ">>> coef_", "x_ |", "", "n_."]) == ["A.", "", ">>> coef_", "x_ |", "", r"n\_."]
    assert plain([r"Norm :math:`|x|` of x_."]) == [r"Norm :math:`|x|` of x\_."]


def test_names_of_test_files_are_unique():
    """In every folder: pages name files without their folders, and pytest imports them by these names."""
    files = [path.name for path in (ROOT / "tests").rglob("*.py")]
    assert sorted(set(files)) == sorted(files)


def test_paths_of_test_files_exist():
    for path in [*TEXTS, ROOT / "pyproject.toml", ROOT / "tools/make_fixture_models.py"]:
        if path.name != "CHANGELOG.md":  # which also names files of earlier versions
            for name in re.findall(r"\btests(?:/\w+)+(?:\.py)?", path.read_text()):
                assert (ROOT / name).exists(), f"{name_of(path)} names {name}"


def test_reliability_names_tests_that_exist():
    """Every `file.py::test` of the table, and every `::test` after it, which is of the same file."""
    text = (DOCS / "reliability.md").read_text()
    assert "@" not in text
    named, file = 0, ""
    for one, test in re.findall(r"`(test_\w+\.py)?(?:::(test_\w+))?`", text):
        file = one or file
        if file and test:
            named += 1
            source = TESTS[file].read_text()
            assert re.search(rf"^def {test}\(", source, flags=re.MULTILINE), f"{file} has no {test}"
    assert named >= 40
    for command in re.findall(r"`python ((?:tools|benchmarks)/\w+\.py)", text):
        assert (ROOT / command).exists(), command
