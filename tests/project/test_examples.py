"""Every example runs unchanged in an empty directory; those of the gallery draw a figure."""

import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


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

    with plt.rc_context():
        yield run
    plt.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("plot_*.py")), ids=lambda path: path.stem)
def test_gallery(path, run, monkeypatch):
    shown = []

    def show(*args, **kwargs):
        for number in plt.get_fignums():
            figure = plt.figure(number)
            figure.canvas.draw()
            shown.append(len(figure.axes))
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    assert "SPO+" in run(path)  # the result is printed, not only drawn
    assert any(shown)


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
