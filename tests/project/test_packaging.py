"""Properties of an installation: a fast import, types, a version, and public names."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest

import skspo

HEAVY = ["cvxpy", "clarabel", "numba", "matplotlib", "dask", "distributed", "networkx", "pandas"]
HEAVY += ["torch", "pyomo", "linopy"]


def test_import_is_light():
    """In a fresh interpreter: other tests have imported everything by now.

    scikit-learn imports pandas by itself if pandas is installed, so its imports are not counted.
    """
    code = (
        "import sys, sklearn.utils.validation; before = set(sys.modules); import skspo; "
        f"print(*[name for name in {HEAVY!r} if name in sys.modules and name not in before])"
    )
    root = Path(skspo.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


WITHOUT_EXTRAS = """
import sys
# Not by sys.modules["torch"] = None, which SciPy takes for a PyTorch without tensors.
class Absent:
    def find_spec(name, path=None, target=None):
        if name == "torch": raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent)
# scikit-learn imports pandas by itself, so that this is the way to see that skspo does not.
sys.modules |= dict.fromkeys(["pandas", "matplotlib", "dask"])
import skspo, skspo.plotting
class Lazy: ndim = 2; shape = (3, 2)
Lazy.__module__ = "dask.array.core"
for use in (
    lambda: __import__("skspo.torch"),
    lambda: skspo.SPOPlusRegressor().fit(Lazy(), Lazy()),
    lambda: skspo.plotting.RegretDisplay.from_estimators({"a": 1}, 1, 1),
    lambda: skspo.plotting.ConvergenceDisplay(histories={}).plot(),
):
    try:
        use()
    except ImportError as error:
        print(error)
"""


def test_errors_name_the_extra():
    """In an interpreter that finds none of the packages that are not required."""
    root = Path(skspo.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"pip install skspo\[(\w+)\]", done.stdout) == ["torch", "dask", "plot", "plot"]
    assert "Dask collections need dask: pip install skspo[dask]" in done.stdout


def test_assertions_of_tests_hold_with_python_O():
    """Also those of modules that tests share: one of them writes a model file."""
    root = Path(__file__).parents[2]
    arguments = ["-p", "no:cacheprovider", "-q", "tests/regions/test_read.py", "-k", "same_region and highspy.mps"]
    done = subprocess.run([sys.executable, "-O", "-m", "pytest", *arguments], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_version():
    assert skspo.__version__.count(".") >= 2
    try:
        installed = metadata.version("skspo")
    except metadata.PackageNotFoundError:
        pytest.skip("skspo is not installed, only importable")
    assert skspo.__version__ == installed


def test_the_build_reads_the_version_without_importing_anything():
    """The build environment has no NumPy, so that the version must be a literal in the module that is named."""
    root = Path(__file__).parents[2]
    if not (root / "pyproject.toml").is_file():
        pytest.skip("no source tree")
    table = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["dynamic"]["version"]
    module, _, name = table["attr"].rpartition(".")
    path = root.joinpath(*module.split("."))
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
    literals = {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
    }
    assert literals.get(name) == skspo.__version__


def test_typed():
    assert resources.files("skspo").joinpath("py.typed").is_file()


def test_public_names():
    assert skspo.__all__, "there is no public interface"
    assert [name for name in skspo.__all__ if not hasattr(skspo, name)] == []
    assert len(set(skspo.__all__)) == len(skspo.__all__)


def test_star_import():
    namespace: dict = {}
    exec("from skspo import *", namespace)
    assert set(skspo.__all__) <= set(namespace)


def test_every_requirement_has_a_lower_bound_and_a_license(monkeypatch):
    """What tools/supply.py relies on; the package may be installed without the source tree."""
    root = Path(__file__).parents[2]
    if not (root / "pyproject.toml").is_file():
        pytest.skip("no source tree")
    monkeypatch.syspath_prepend(str(root / "tools"))
    import supply

    page = (root / "docs" / "licenses.md").read_text()
    listed = {supply.canonical(line.split("|")[1].strip()) for line in page.splitlines() if line.startswith("|")}
    for requirement in supply.requirements():
        name, version = supply.oldest(requirement).split("==")
        assert version[0].isdigit()
        assert supply.canonical(name) in listed, f"{name}: run python tools/supply.py --licenses"
    assert [supply.oldest(requirement) for requirement in supply.requirements("test", "plot", "dask", "graph")]
    assert "not stated" not in page
    with pytest.raises(ValueError, match="no lower bound"):
        supply.oldest("numpy<3")


def test_oldest_versions_need_a_python_that_has_their_wheels(monkeypatch):
    root = Path(__file__).parents[2]
    monkeypatch.syspath_prepend(str(root / "tools"))
    import supply

    monkeypatch.setattr(supply, "LAST_OF_OLDEST", sys.version_info[:2])
    pins = supply.pins("test")
    for requirement in supply.requirements("test"):
        assert requirement.replace(">=", "==") in pins
    monkeypatch.setattr(supply, "LAST_OF_OLDEST", (3, 10))
    with pytest.raises(SystemExit, match=r"no wheels for Python after 3\.10"):
        supply.pins()


def test_conda_recipe():
    """Its requirements are those of pyproject.toml, and so are its summary and license."""
    root = Path(__file__).parents[2]
    if not (root / "pyproject.toml").is_file():
        pytest.skip("no source tree")
    yaml = pytest.importorskip("yaml")  # installed with dask
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    project = settings["project"]
    recipe = yaml.safe_load((root / "conda/meta.yaml").read_text())
    python = f"python {project['requires-python']}"
    assert recipe["package"]["name"] == project["name"]
    assert recipe["requirements"]["run"] == [python, *(r.replace(">=", " >=") for r in project["dependencies"])]
    build = [r.replace(">=", " >=") for r in settings["build-system"]["requires"]]
    assert recipe["requirements"]["host"] == [python, "pip", *build]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]
    assert [recipe["about"]["license_file"]] == project["license-files"]
    assert (root / recipe["test"]["source_files"][0]).is_file()


def test_page_of_versions():
    root = Path(__file__).parents[2]
    if not (root / "pyproject.toml").is_file():
        pytest.skip("no source tree")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = dict(requirement.split(">=") for requirement in project["dependencies"])
    wanted["python"] = project["requires-python"].removeprefix(">=")
    rows = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \| [\d.]+ \|$", (root / "docs/versions.md").read_text(), re.MULTILINE)
    assert {name.lower(): version for name, version in rows} == wanted


def test_released_version_is_the_same_everywhere():
    root = Path(__file__).parents[2]
    if not (root / "pyproject.toml").is_file():
        pytest.skip("no source tree")
    if "dev" in skspo.__version__:
        pytest.skip("these files name the last release")
    yaml = pytest.importorskip("yaml")  # installed with dask
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    headings = [line for line in (root / "CHANGELOG.md").read_text().splitlines() if line[:4] == "## ["]
    released = [line for line in headings if line != "## [Unreleased]"]
    assert released[0] == f"## [{skspo.__version__}] - {citation['date-released']}"
    assert citation["version"] == skspo.__version__
    assert yaml.safe_load((root / "conda/meta.yaml").read_text())["package"]["version"] == skspo.__version__


def test_contents_of_archives(monkeypatch):
    root = Path(__file__).parents[2]
    monkeypatch.syspath_prepend(str(root / "tools"))
    import supply

    code = {str(path.relative_to(root)) for path in (root / "skspo").rglob("*.py")} | {"skspo/py.typed"}
    about = {"skspo-0.1.0.dist-info/METADATA", "skspo-0.1.0.dist-info/licenses/LICENSE"}
    assert supply.wrong_in_wheel(code | about) == []
    assert supply.wrong_in_wheel(code | about | {"tests/test_x.py"}) == ["not wanted: tests/test_x.py"]
    assert supply.wrong_in_wheel(code - {"skspo/py.typed"}) == ["missing: skspo/py.typed", "missing: LICENSE"]
    assert {"LICENSE", "skspo/py.typed", "tests/project/test_packaging.py"} <= set(supply.missing_from_source(set()))


def test_settings_of_the_project():
    """They can be parsed, and call existing files."""
    root = Path(__file__).parents[2]
    if not (root / "pyproject.toml").is_file():
        pytest.skip("no source tree")
    yaml = pytest.importorskip("yaml")  # installed with dask
    hooks = yaml.safe_load((root / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"], "a hook that has to be fetched"
    assert [hook["id"] for hook in hooks[0]["hooks"]] == ["ruff-check", "ruff-format", "mypy"]
    for hook in hooks[0]["hooks"]:
        # The same commands as in .ci/run, apart from the paths.
        assert " ".join(hook["entry"].split()[:4]).removesuffix(" --force-exclude") in (root / ".ci/run").read_text()

    jobs = yaml.safe_load((root / ".github/workflows/ci.yml").read_text())["jobs"]
    assert {step["run"] for step in jobs["checks"]["steps"] if "run" in step} == {"bash .ci/run"}
    declared = (root / "pyproject.toml").read_text()
    pythons = jobs["checks"]["strategy"]["matrix"]["python"]
    assert f'requires-python = ">={pythons[0]}"' in declared
    assert re.findall(r"Python :: (3\.\d+)", declared) == pythons
    (command,) = (step["run"] for step in jobs["dependencies"]["steps"] if "run" in step)
    assert command.startswith("python tools/supply.py --${{ matrix.versions }}")
    rows = {row["versions"]: row["python"] for row in jobs["dependencies"]["strategy"]["matrix"]["include"]}
    assert rows == {"oldest": pythons[0], "newest": pythons[-1]}

    for name in ("bug_report", "feature_request"):
        form = yaml.safe_load((root / f".github/ISSUE_TEMPLATE/{name}.yml").read_text())
        assert {"name", "description", "body"} <= set(form)
        assert all({"type", "id", "attributes"} <= set(field) for field in form["body"])

    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert f'license = "{citation["license"]}"' in declared
    assert [reference["year"] for reference in citation["references"]] == [2022, 2021]
