"""The runner of experiments: no trial is lost, results do not depend on the order, and every study runs."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from skspo.experiments import STUDIES, Study, run_study, write_report
from skspo.experiments import studies as module
from skspo.experiments.__main__ import main
from skspo.experiments.runner import seed_of

CONDITIONS = [{"degree": degree, "noise": 0.5} for degree in (1, 2)]


def methods(condition):
    return ["one", "other"]


def slow_trial(condition, seed, optimizer):
    """Some numbers that depend on the seed, after a while."""
    time.sleep(0.02)
    rng = np.random.default_rng(seed)
    return {"one": float(rng.normal() + condition["degree"]), "other": float(rng.normal())}


STUDY = Study("toy", "A toy", "loss", "degree", lambda quick: CONDITIONS, methods, slow_trial)


def test_final_file_does_not_depend_on_jobs(tmp_path):
    files = [run_study(STUDY, tmp_path / str(jobs), trials=4, jobs=jobs, verbose=0) for jobs in (1, 2)]
    texts = [file.read_text() for file in files]
    assert texts[0] == texts[1]
    assert len(texts[0].splitlines()) == 1 + 2 * 4 * 2
    other = run_study(STUDY, tmp_path / "seed", trials=4, seed=1, verbose=0).read_text()
    assert other != texts[0]


@pytest.mark.slow
def test_a_killed_run_continues_with_the_same_result(tmp_path):
    """SIGKILL at some time, twice; then the rest."""
    code = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "from test_experiments import STUDY\nfrom skspo.experiments import run_study\n"
        f"run_study(STUDY, {str(tmp_path / 'killed')!r}, trials=40, verbose=0)\n"
    )
    file = tmp_path / "killed" / "toy" / "trials.csv"
    for lines in (8, 40):
        process = subprocess.Popen([sys.executable, "-c", code])
        deadline = time.monotonic() + 60
        while not (file.exists() and len(file.read_text().splitlines()) > lines):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(file.read_text().splitlines()) < 1 + 2 * 40 * 2
    kept = set(file.read_text().splitlines()[1:30])
    resumed = run_study(STUDY, tmp_path / "killed", trials=40, verbose=0).read_text()
    assert kept <= set(resumed.splitlines())
    assert resumed == run_study(STUDY, tmp_path / "whole", trials=40, verbose=0).read_text()


def test_incomplete_trials_are_repeated(tmp_path):
    file = run_study(STUDY, tmp_path, trials=3, verbose=0)
    whole = file.read_text()
    lines = whole.splitlines(keepends=True)
    file.write_text("".join(lines[:-2]) + lines[-2][:9])  # half a line
    assert run_study(STUDY, tmp_path, trials=3, verbose=0).read_text() == whole
    file.write_text("".join(lines[:-1]))  # a trial without its last method
    assert run_study(STUDY, tmp_path, trials=3, verbose=0).read_text() == whole


def test_other_settings_do_not_mix(tmp_path):
    run_study(STUDY, tmp_path, trials=1, verbose=0)
    with pytest.raises(ValueError, match=r"other settings.*--no-resume"):
        run_study(STUDY, tmp_path, trials=1, seed=7, verbose=0)
    run_study(STUDY, tmp_path, trials=1, seed=7, resume=False, verbose=0)
    manifest = json.loads((tmp_path / "toy" / "manifest.json").read_text())
    assert manifest["settings"]["seed"] == 7
    assert manifest["versions"]["numpy"] == np.__version__


def test_seeds_are_all_different():
    states = {
        tuple(seed_of(seed, study, condition, trial).generate_state(2))
        for seed in range(3)
        for study in ("portfolio", "barrier")
        for condition in CONDITIONS
        for trial in range(20)
    }
    assert len(states) == 3 * 2 * 2 * 20


def test_report(tmp_path):
    file = run_study(STUDY, tmp_path, trials=5, verbose=0)
    written = write_report(STUDY, file, figures=False)
    assert [path.name for path in written] == ["summary.csv", "summary.md"]
    rows = [line.split(",") for line in written[0].read_text().splitlines()]
    values = [float(line.split(",")[-1]) for line in file.read_text().splitlines()[1:] if line.startswith("1,0.5")]
    one = next(row for row in rows[1:] if row[:3] == ["1", "0.5", "one"])
    assert float(one[4]) == pytest.approx(np.mean(values[::2]), rel=1e-4)
    pytest.importorskip("matplotlib")
    names = [path.name for path in write_report(STUDY, file)]
    assert names[2:] == ["toy.png", "toy.pdf"]
    assert all((file.parent / name).stat().st_size > 1000 for name in names[2:])


def test_slopes_of_curves(tmp_path):
    """Values 3 n^-0.5, with noise of mean one: the slope is found, in the summary and in the figure."""
    pytest.importorskip("matplotlib")
    conditions = [{"region": "polyhedron", "n": n} for n in (100, 400, 1600)]

    def trial(condition, seed, optimizer):
        return {"SPO+": 3.0 * condition["n"] ** -0.5 * float(np.random.default_rng(seed).uniform(0.99, 1.01))}

    study = Study("curve", "A curve", "loss", "n", lambda quick: conditions, lambda c: ["SPO+"], trial, "region")
    written = write_report(study, run_study(study, tmp_path, trials=3, verbose=0))
    assert "polyhedron: slope -0.50 on log-log axes." in written[1].read_text()
    assert written[2].stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_runs(name, tmp_path, monkeypatch, capsys):
    """The quick settings with few test samples and one trial; all settings have a name for every value."""
    monkeypatch.setattr(module, "N_TEST", 100)
    small = [condition | ({"n": 50} if "n" in condition else {}) for condition in STUDIES[name].conditions(True)]
    small = [dict(items) for items in {tuple(condition.items()) for condition in small}]
    study = STUDIES[name]._replace(conditions=lambda quick: small[:1])
    monkeypatch.setitem(STUDIES, name, study)
    assert main([name, "--quick", "--trials", "1", "--out", str(tmp_path), "--no-figures"]) == 0
    printed = capsys.readouterr().out
    assert "summary.md" in printed
    rows = (tmp_path / name / "trials.csv").read_text().splitlines()
    assert len(rows) == 1 + len(study.methods(small[0]))
    assert all(np.isfinite(float(row.split(",")[-1])) for row in rows[1:])


def test_networks_and_adam(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "N_TEST", 100)
    network = {"model": "network", "noise": 0.5, "degree": 2}
    seed = np.random.SeedSequence(0)
    monkeypatch.setattr(module, "SPOMLPRegressor", lambda *a, **k: _quick(*a, **k))  # the same network for three epochs
    for study, condition, optimizer in (
        (STUDIES["portfolio"], network, "exact"),
        (STUDIES["classification"], network | {"model": "linear"}, "adam"),
    ):
        values = study.trial(condition, seed, optimizer)
        assert list(values) == study.methods(condition)
        assert np.isfinite(list(values.values())).all()


def _quick(*args, **params):
    from skspo import SPOMLPRegressor

    return SPOMLPRegressor(*args, **params | {"max_iter": 3})


def test_wrong_number_of_trials(tmp_path, capsys):
    assert main(["portfolio", "--quick", "--trials", "0", "--out", str(tmp_path)]) == 2
    assert "trials must be at least 1" in capsys.readouterr().err
