"""No more workers than tasks."""

import ast
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.linear_model import Ridge

import skspo
from skspo.experiments import Study, run_study

N_JOBS = 40
X = np.random.default_rng(0).normal(size=(30, 2))
C = np.random.default_rng(1).normal(size=(30, 3))
SEEN = np.where(np.arange(30)[:, None] % 3 == np.arange(3), C, np.nan)
POLYHEDRON = skspo.Polyhedron(A_eq=np.ones((1, 3)), b_eq=[1.0], bounds=(0, 1), n_jobs=N_JOBS)


def two_trials(tmp_path):
    def trial(condition, seed, optimizer):
        return {"a": 1.0}

    study = Study("study", "Study", "value", "x", lambda quick: [{"x": 1.0}], lambda condition: ["a"], trial)
    run_study(study, tmp_path, trials=2, jobs=N_JOBS, verbose=0)


def cone(_):
    cp = pytest.importorskip("cvxpy")
    skspo.CvxpyRegion(lambda w: [w >= 0, cp.norm(w) <= 1], 3, n_jobs=N_JOBS).argmin(C[:2])


#: each use of joblib.Parallel: the module, the number of its tasks, and a call
USES = {
    "estimators/_folds.py": (3, lambda _: skspo.SPOPlusRegressorCV(skspo.Simplex(), cv=3, n_jobs=N_JOBS).fit(X, C)),
    "estimators/_spo_cv.py": (
        3,
        lambda _: skspo.SPORegressorCV(skspo.Simplex(), cv=3, init="least_squares", n_jobs=N_JOBS).fit(X, C),
    ),
    "estimators/_stacking.py": (
        4,
        lambda _: skspo.SPOStackingRegressor(skspo.Simplex(), [("a", Ridge())], cv=3, n_jobs=N_JOBS).fit(X, C),
    ),
    "estimators/_decide.py": (
        3,
        lambda _: skspo.cross_val_decide(Ridge(), X, C, region=skspo.Simplex(), cv=3, n_jobs=N_JOBS),
    ),
    "estimators/_feedback_costs.py": (
        3,
        lambda _: skspo.PartialFeedbackRegressor(
            skspo.SPOPlusRegressor(skspo.Simplex(), alpha=0.1), nuisance=Ridge(), cv=3, n_jobs=N_JOBS
        ).fit(X, SEEN),
    ),
    "experiments/runner.py": (2, two_trials),
    "regions/_oracles/highs.py": (2, lambda _: POLYHEDRON.argmin(C[:2])),
    "regions/_oracles/clarabel.py": (2, cone),
}


def test_all_uses_are_listed():
    package = Path(skspo.__file__).parent
    found = set()
    for file in package.rglob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        if any(getattr(func, "id", getattr(func, "attr", None)) == "Parallel" for func in calls):
            found.add(file.relative_to(package).as_posix())
    assert found == set(USES)


@pytest.mark.parametrize("use", USES)
def test_no_more_workers_than_tasks(use, monkeypatch, tmp_path):
    n_tasks, call = USES[use]
    asked, counts = {}, []
    original, run = joblib.Parallel.__init__, joblib.Parallel.__call__

    def noted(self, n_jobs=None, **options):
        asked[self] = n_jobs
        original(self, n_jobs=1, **options)  # what is asked for matters, not that they run

    def counted(self, tasks):
        tasks = list(tasks)
        counts.append((asked[self], max(len(tasks), 1)))
        return run(self, tasks)

    monkeypatch.setattr(joblib.Parallel, "__init__", noted)
    monkeypatch.setattr(joblib.Parallel, "__call__", counted)
    call(tmp_path)
    assert all(workers == tasks for workers, tasks in counts)
    assert max(tasks for _, tasks in counts) == n_tasks
