"""Every example runs unchanged in an empty directory; those of the gallery run when the site is built.

The test of the gallery is skipped unless the site was built: ``python -m sphinx -b html docs docs/_build/html``.
"""

import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
BUILT = EXAMPLES.parent / "docs/gallery"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a script and return what it prints; an interpreter for each of them would take most of the time."""

    def run(path):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [str(path)])
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            runpy.run_path(str(path), run_name="__main__")
        assert not list(tmp_path.iterdir()), "an example left files behind"
        return capsys.readouterr().out

    return run


@pytest.mark.skipif(not BUILT.exists(), reason="the site is not built")
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("plot_*.py")), ids=lambda path: path.stem)
def test_gallery(path):
    """The site runs the script, and an error stops its build; it prints its result and draws a figure."""
    after = (BUILT / f"{path.stem}.rst").read_text().split(".. rst-class:: sphx-glr-script-out\n")[1:]
    assert any("SPO+" in re.split(r"\n(?=\S)", text)[0] for text in after)  # up to the next line without an indent
    assert (BUILT / "images" / f"sphx_glr_{path.stem}_001.png").exists()


@pytest.mark.slow
def test_quickstart(tmp_path):
    """In an interpreter of its own, as users start it."""
    command = [sys.executable, EXAMPLES / "quickstart.py", "--samples", "100", "--out", "picture.png"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "certified gap" in done.stdout
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("everyday/*.py")), ids=lambda path: path.stem)
def test_everyday(path, run):
    """Decisions and a report beside least squares and a rule, in less than 40 lines."""
    assert sum(bool(line.strip()) for line in path.read_text().splitlines()) < 40
    text = run(path)
    assert re.search("\nSPOPlusRegressor(CV)? ", text) and "\nleast squares " in text
    assert not text.startswith("Decisions on"), "a decision is printed first"


def test_gallery_has_titles():
    """What sphinx-gallery needs: a docstring that starts with a title and its underline, and cells."""
    paths = sorted(EXAMPLES.glob("plot_*.py"))
    assert paths
    for path in paths:
        text = path.read_text()
        assert text.startswith('"""\n'), path
        title, underline = text.splitlines()[1:3]
        assert underline == "=" * len(title), path
        assert "\n# %%\n" in text, path
