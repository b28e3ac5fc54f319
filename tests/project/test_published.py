"""The commands that reproduce published tables: their data, their statistics, and a small run of each."""

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import skspo as sk

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(name):
    """A benchmark as a module; it limits threads for itself, so that the environment is a copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", dict(os.environ))
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module(name)


@pytest.fixture(scope="module")
def published():
    return load("published")


@pytest.fixture(scope="module")
def notebooks():
    return load("pyepo_notebooks")


# -- PyEPO's notebooks -------------------------------------------------------------------------------------------------


def test_data_of_the_notebooks(notebooks):
    """First and last numbers of ``genData`` of PyEPO 2.2.7 with the notebooks' arguments, and the split."""
    from sklearn.model_selection import train_test_split

    known = {
        "03": ([0.3539176, 1.0785899, 1.0139644], [0.13398203, 0.09520005, 0.05649983]),
        "08": ([0.45499226, 1.2250547, 0.47572318], [6.626548, 1.4583247, 3.3590443]),
    }
    for notebook, (first, last) in known.items():
        (X, X_test, C, C_test), _ = notebooks.notebook_data(notebook)
        n = notebooks.NOTEBOOKS[notebook][0]
        assert X.shape == (n, 5) and X_test.shape == (1000, 5) and C.shape == (n, 40) and C_test.shape == (1000, 40)
        train, test = train_test_split(np.arange(n + 1000), test_size=1000, random_state=42)
        order = np.argsort(np.concatenate([train, test]))
        features, costs = np.vstack([X, X_test])[order], np.vstack([C, C_test])[order]
        np.testing.assert_allclose(features[0, :3], [-0.68002472, 0.2322537, 0.29307247], rtol=1e-7)
        np.testing.assert_allclose(costs[0, :3], first, rtol=1e-7)
        np.testing.assert_allclose(costs[-1, -3:], last, rtol=1e-7)


def test_knapsacks_of_notebook_05(notebooks):
    """``genData`` of PyEPO 2.2.7 with dim=2, deg=6, noise_width=0.5, seed=135."""
    (X, X_test, C, C_test), region = notebooks.notebook_data("05")
    assert X.shape == (100, 5) and C.shape == (100, 16) and X_test.shape == (1000, 5) and C_test.shape == (1000, 16)
    assert region.sense == "max" and list(region.capacity) == [20, 20]
    np.testing.assert_allclose(region.weights[0, :4], [4.59, 4.87, 5.19, 7.59])
    np.testing.assert_allclose(region.weights[1, -2:], [7.56, 6.4])
    assert C.sum() + C_test.sum() == 77600
    first = np.flatnonzero(np.isclose(np.vstack([X, X_test])[:, 0], -0.58466682))
    np.testing.assert_array_equal(np.vstack([C, C_test])[first, :4], [[3, 3, 3, 7]])


def test_regrets_of_the_notebooks(notebooks):
    """Measured once: SPO+ on the data of notebook 03 is below every printed figure."""
    row = notebooks.measure("03", "SPO+")
    assert row["test regret %"] == pytest.approx(6.94, abs=0.02)
    assert row["test regret %"] < min(notebooks.PUBLISHED["03"].values())


def test_quick_run_of_the_notebooks(notebooks, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "argv", ["pyepo_notebooks.py", "--quick", "--out", str(tmp_path / "page.md")])
    notebooks.main()
    rows = json.loads((tmp_path / "results" / "pyepo_notebooks.json").read_text())["rows"]
    assert {row["method"] for row in rows if row["package"] == "skspo"} == {"least squares", "SPO+"}
    assert sum(row["package"] != "skspo" for row in rows) == 32
    assert "| 03 | PyEPO, as printed | AI-MLE | 7.24 | - |" in (tmp_path / "page.md").read_text()


# -- shortest paths ----------------------------------------------------------------------------------------------------


def test_published_medians(published):
    """All cells are there, and are those of the file if it is."""
    assert len(published.PUBLISHED) == 30
    folder = os.environ.get("SKSPO_ENERGY_DATA")
    if folder is None or not (Path(folder) / "published_shortest_path.csv").exists():
        return
    table = np.genfromtxt(Path(folder) / "published_shortest_path.csv", delimiter=",", names=True, dtype=None)
    for row in table:
        cell = int(row["n_train"]), int(row["degree"]), float(row["noise"])
        assert published.PUBLISHED[cell] == pytest.approx((row["spo_plus"], row["least_squares"]))
        assert published.PUBLISHED_TRIALS[cell[0]] == row["trials"]


def test_lasso_of_the_publication(published):
    """Stationarity of mean |c - B x|^2 + 2 penalty |B|_1 in the published units, and the choice by the holdout."""
    rng = np.random.default_rng(0)
    X, X_holdout = rng.normal(size=(60, 5)), rng.normal(size=(15, 5))
    B = rng.normal(size=(5, 40))
    C, C_holdout = X @ B + rng.normal(size=(60, 40)), X_holdout @ B + rng.normal(size=(15, 40))
    scale = 3.5**2
    model = published.HoldoutLasso(X_holdout, C_holdout, scale).fit(X, C)
    lasso = model.model_
    penalty = lasso.alpha * scale
    assert np.isclose(np.log10(penalty) % (8 / 9) % (8 / 9), np.log10(1e-6) % (8 / 9), atol=1e-6)
    gradient = 2 * X.T @ (scale * (model.predict(X) - C)) / len(X)
    sizes = np.where(lasso.coef_.T != 0, np.abs(gradient + 2 * penalty * np.sign(lasso.coef_.T)), 0.0)
    assert sizes.max() < 1e-3 * max(penalty, 1.0) and np.abs(gradient).max() <= 2 * penalty * 1.01 + 1e-3
    others = [published.Lasso(alpha=a / scale, tol=1e-6, max_iter=100_000).fit(X, C) for a in np.logspace(-6, 2, 10)]
    losses = [sk.spo_loss(C_holdout, other.predict(X_holdout), published.REGION) for other in others]
    assert sk.spo_loss(C_holdout, model.predict(X_holdout), published.REGION) == pytest.approx(min(losses))


def test_standard_error_of_a_median(published):
    """Of normal numbers: sqrt(pi / 2 / size)."""
    values = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    assert published.error(lambda m: m, 50, values) == pytest.approx(np.sqrt(np.pi / 100), rel=0.06)
    # The same trials of both columns: the ratio of a column to its double has no error.
    assert published.error(np.divide, 50, values, 2 * values) == pytest.approx(0.0, abs=1e-12)


def made_up_trials(published, cell, losses, n=20):
    """Trials around the given losses."""
    noise = 0.001 * stats.norm.ppf((np.arange(n) + 0.5) / n)
    return [
        {"loss": {name: loss + e for name, loss in losses.items()}, "seconds": dict.fromkeys(published.METHODS, 1.0)}
        for e in noise
    ]


def test_verdicts(published):
    good = dict(zip(published.METHODS, (8.75, 8.75, 7.6, 7.5, 7.0), strict=True))
    cells = [(1000, 4, 0.5), (1000, 1, 0.0)]  # the second has medians of zero and does not count
    summaries = [published.Summary(cell, made_up_trials(published, cell, good)) for cell in cells]
    lines = list(published.verdicts(summaries))
    assert lines[0].startswith("target met") and lines[0].endswith("1 of 1") and lines[1].endswith("in 0 of 1 cells")
    assert lines[2].startswith("target met") and lines[2].endswith("1 of 1")
    assert lines[3].startswith("target met: least squares, lasso")

    bad = dict(zip(published.METHODS, (8.75, 9.5, 7.6, 7.9, 7.7), strict=True))
    lines = list(published.verdicts([published.Summary(cells[0], made_up_trials(published, cells[0], bad))]))
    assert lines[0].startswith("target MISSED") and lines[1].endswith("in 1 of 1 cells")
    assert lines[2].startswith("above: n=1,000, degree 4, noise 0.5: 0.903")
    assert lines[3].startswith("target MISSED") and "stack 7.70" in lines[4]
    assert lines[5].startswith("target MISSED: least squares, lasso")

    one = published.Summary(cells[0], made_up_trials(published, cells[0], bad, n=1))
    assert list(published.verdicts([one])) == ["fewer than 5 trials, not counted below: n=1,000, degree 4, noise 0.5"]


def test_run_and_go_on(published, monkeypatch, tmp_path):
    """An interrupted run only computes what is missing."""
    file, page = tmp_path / "trials.jsonl", tmp_path / "page.md"
    monkeypatch.setattr(sys, "argv", ["published.py", "--quick", "--results", str(file), "--out", str(page)])
    computed = []

    def run_trial(cell, trial, quick):
        computed.append(cell)
        losses = dict.fromkeys(published.METHODS, 5.0 + cell[2])
        done = dict(zip(("n", "degree", "noise"), cell, strict=True), trial=trial, code="0", loss=losses)
        return done | {"seconds": dict.fromkeys(published.METHODS, 1.0)}

    monkeypatch.setattr(published, "run_trial", run_trial)
    published.main()
    first, second = file.read_text().splitlines()
    file.write_text(first + "\n")
    published.main()
    assert sorted(computed[:2]) == [(100, 4, 0.0), (100, 4, 0.5)] and computed[2:] == [computed[1]]
    assert file.read_text().splitlines() == [first, second]
    rows = json.loads((tmp_path / "results" / "published.json").read_text())["rows"]
    assert [row["median"]["stack"] for row in rows] == [5.0, 5.5]


@pytest.mark.slow
def test_trial(published):
    """A trial with 30 samples is the same whenever it runs."""
    done, again = (published.run_trial((100, 4, 0.5), trial, quick=True) for trial in (1, 1))
    assert done["loss"] == again["loss"] and set(done["loss"]) == set(published.METHODS)
    assert all(0 < loss < 100 for loss in done["loss"].values())


# -- scheduling --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scheduling():
    return load("scheduling")


TWO_MACHINES = (
    "30\n2\n2\n0 0 0 0\n10 7\n1 0 0 0\n6 8\n4\n0 6 2 30 12.5\n6 3\n1 20 1 40 6\n5 4\n2 4 0 7 15\n5 5\n3 9 5 44 4\n6 2"
)


def test_the_faster_oracle_of_schedules(scheduling):
    """Its schedules cost what those of the integer program cost; most are found without it."""
    schedules = scheduling.Schedules(TWO_MACHINES)
    rng = np.random.default_rng(0)
    C = np.vstack([50 + 10 * rng.normal(size=(6, 48)), np.full((1, 48), 7.0), 20 * rng.normal(size=(6, 48))])
    W = schedules(C.copy())
    best = (C * schedules.integer.argmin(C)).sum(axis=1)
    np.testing.assert_allclose((C * W).sum(axis=1), best, rtol=1e-9)
    assert schedules.asked == 13 and 0 < schedules.left < 10  # both ways were used
    # The energy of all tasks, whatever the schedule is.
    np.testing.assert_allclose(W.sum(axis=1), 6 * 12.5 + 20 * 6 + 4 * 15 + 9 * 4)


def test_prices_of_the_schedules(scheduling):
    folder = os.environ.get("SKSPO_ENERGY_DATA")
    if folder is None:
        pytest.skip("SKSPO_ENERGY_DATA is not set")
    features, C = scheduling.read_prices(Path(folder) / "energy_scheduling" / "prices2013.dat")
    with np.load(Path(folder) / "energy_prices.npz") as file:  # the same features, from another source
        known = np.vstack([file["X_1gtrain"], file["X_1gtest"]])[:, 1:].reshape(-1, 48, 8)
    np.testing.assert_allclose(features, known, rtol=1e-6)
    assert C.shape == (789, 48)


@pytest.mark.slow
def test_quick_run_of_the_schedules(scheduling, monkeypatch, tmp_path):
    page, file = tmp_path / "page.md", tmp_path / "fits.jsonl"
    command = ["scheduling.py", "--quick", "--integer", "0", "--results", str(file), "--out", str(page)]
    monkeypatch.setattr(sys, "argv", command)
    scheduling.main()
    rows = {row["method"]: row for row in json.loads((tmp_path / "results" / "scheduling.json").read_text())["rows"]}
    assert rows["SPO+"]["seeds"] == 2 and rows["SPO+"]["regret"] < rows["least squares"]["regret"]
    assert rows["least squares"]["ratio to two-stage"] == 1.0
    before = file.read_text()
    scheduling.main()
    assert file.read_text() == before  # nothing is fitted again


# -- streets both ways -------------------------------------------------------------------------------------------------


def test_ratios_of_streets():
    """By hand: the median of 0.5, 0.75 and 1; the draw in which nothing can be decided does not count."""
    streets = load("streets")
    runs = [
        ({streets.BASE: base, streets.STACK: own}, {streets.STACK: 1.0})
        for base, own in ((4, 2), (4, 3), (1, 1), (0, 0))
    ]
    row = streets.summary(100, streets.STACK, runs)
    assert row["ratio"] == 0.75 and row["better in"] == 2 and row["draws"] == 4 and row["mean regret %"] == 1.5


def test_data_of_streets():
    (edges, source, target), (X, C), (X_test, C_test) = load("streets").draw(100, 0)
    assert len(edges) == 54 and len({node for edge in edges for node in edge}) == 30 and source != target
    assert X.shape == (100, 10) and C.shape == (100, 54) and len(X_test) == len(C_test) == 1000 and (C > 0).all()
