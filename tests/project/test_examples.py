"""Every example runs unchanged in an empty directory; those of the gallery draw a figure."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

# Counts the figures that an example shows.
COUNT = """
import runpy, sys
import matplotlib.pyplot as plt
shown = []
def show(*args, **kwargs):
    for number in plt.get_fignums():
        figure = plt.figure(number)
        figure.canvas.draw()
        shown.append(len(figure.axes))
    plt.close("all")
plt.show = show
runpy.run_path(sys.argv.pop(), run_name="__main__")  # an example may read its own arguments
print("figures:", sum(n > 0 for n in shown))
"""


def run(arguments, directory):
    # One thread: examples are small, and tests share the cores.
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", *arguments],
        capture_output=True,
        text=True,
        cwd=directory,
        env=os.environ | limits,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("plot_*.py")), ids=lambda path: path.stem)
def test_gallery(path, tmp_path):
    text = run(["-c", COUNT, str(path)], tmp_path)
    assert int(text.rsplit("figures:", 1)[1]) >= 1
    assert "SPO+" in text  # the result is printed, not only drawn
    assert not list(tmp_path.iterdir()), "an example left files behind"


@pytest.mark.slow
def test_quickstart(tmp_path):
    text = run([str(EXAMPLES / "quickstart.py"), "--samples", "100", "--out", "picture.png"], tmp_path)
    assert "certified gap" in text
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("everyday/*.py")), ids=lambda path: path.stem)
def test_everyday(path, tmp_path):
    """Decisions and a report beside least squares and a rule, in less than 40 lines."""
    assert sum(bool(line.strip()) for line in path.read_text().splitlines()) < 40
    text = run([str(path)], tmp_path)
    assert re.search("\nSPOPlusRegressor(CV)? ", text) and "\nleast squares " in text
    assert not text.startswith("Decisions on"), "a decision is printed first"
    assert not list(tmp_path.iterdir()), "an example left files behind"


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
