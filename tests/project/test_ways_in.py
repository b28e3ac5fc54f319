"""The short scripts of examples/ways_in: from a file or an object of another package to decisions."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from skspo import SPOPlusRegressor, normalized_spo_loss

FOLDER = Path(__file__).parents[2] / "examples" / "ways_in"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def test_there_are_ten_and_they_are_short():
    assert len(SCRIPTS) >= 10
    for path in SCRIPTS:
        assert sum(bool(line.strip()) for line in path.read_text().splitlines()) < 15, path.name


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_decisions_of_the_script(path, capsys):
    """They are printed, and on new days they cost less than the best decision for the mean costs."""
    for package in ("pyomo", "linopy"):
        if path.stem.startswith(package):
            pytest.importorskip(package)
    script = runpy.run_path(str(path))
    assert capsys.readouterr().out.strip()
    model, region, X = (script[name] for name in ("model", "region", "X"))
    assert type(model) is SPOPlusRegressor
    costs = next(script[name] for name in ("C", "V", "prices") if name in script)
    costs = region.extend(costs) if hasattr(region, "extend") else np.asarray(costs)
    new = slice({200: 150, 100: 70, 60: 40, 40: 25}[len(X)], None)
    offset = getattr(region, "offset", None)
    W = model.decide(X[new], offset=offset)
    assert W.shape == (len(X[new]), region.n_dim)
    loss = -model.score(X[new], costs[new], offset=offset)
    mean = np.broadcast_to(costs[: new.start].mean(axis=0), costs[new].shape)
    assert loss < normalized_spo_loss(costs[new], mean, region)
