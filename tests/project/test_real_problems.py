"""The problems of ``benchmarks/real_problems.py`` and the runner ``benchmarks/real.py``.

Their data are in packages that the tests do not require; without them all but the digits are skipped.
"""

import importlib
import json
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge

from skspo import TopK, normalized_spo_loss, spo_loss

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = ["digits", "spam", "credit", "lending", "churn", "mailing", "houses", "deliveries", "cars", "queues"]
ORDERED = ["one_flight", "pizza", "nitrogen", "demand", "stations", "slots", "stocks", "portfolio"]


@pytest.fixture(scope="module")
def real():
    """The runner; it limits threads for itself, so that the environment is a copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", dict(os.environ))
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("real")


@pytest.fixture(scope="module")
def problems(real):
    return sys.modules["real_problems"]


@cache
def build(problems, name):
    if name not in problems.PROBLEMS:
        pytest.skip("the package with the data is not installed")
    return problems.PROBLEMS[name]()


@pytest.mark.parametrize("name", NAMES + ORDERED)
def test_arrays(problems, name):
    problem = build(problems, name)
    X, C = problem.X, problem.C
    n, d = C.shape
    assert len(X) == n and 200 <= n <= 3000 and 4 <= d <= 60
    assert np.isfinite(X).all() and np.isfinite(C).all()
    assert problem.ordered == (name in ORDERED)
    if problem.shared:
        assert X.shape[1] % d == 0
        X = X.reshape(n * d, -1)
    assert (X.std(axis=0) > 0).all()
    assert (C.std(axis=0) > 0).all()
    # No feature gives the cost away.
    target = C.reshape(-1, 1) if problem.shared else C
    correlation = np.corrcoef(X.T, target.T)[: X.shape[1], X.shape[1] :]
    assert np.abs(correlation).max() < 0.999


@pytest.mark.parametrize("name", NAMES + ORDERED)
def test_decisions_differ(problems, name):
    """The region accepts the costs, and no single decision is the best one for all samples."""
    problem = build(problems, name)
    C = problem.C[:200]
    W = problem.region.argmin(C)
    assert W.shape == C.shape and (W >= -1e-9).all() and (W <= 1 + 1e-9).all()
    assert len(np.unique(W.round(6), axis=0)) > 1
    everywhere_same = np.tile(problem.C.mean(axis=0), (len(C), 1))
    assert spo_loss(C, everywhere_same, problem.region) > 0


@pytest.mark.parametrize("name", ["digits", "credit", *ORDERED])
def test_splits(problems, name):
    problem = build(problems, name)
    splits = list(problem.splits())
    assert len(splits) == 10
    for (train, test), (again, _) in zip(splits, problem.splits(), strict=True):
        assert np.array_equal(train, again)
        assert len(test) >= 10 and not np.intersect1d(train, test).size
        if problem.ordered:
            assert train.max() < test.min()
        if problem.groups is not None:
            assert not np.intersect1d(problem.groups[train], problem.groups[test]).size
    if problem.ordered:
        tested = np.concatenate([test for _, test in splits])
        assert np.unique(tested).size == tested.size >= 0.48 * len(problem.C)


def changed(df, rows, columns):
    """A copy of a table with other numbers in some cells."""
    df = df.copy()
    df.loc[rows, columns] = np.random.default_rng(0).uniform(1.0, 100.0, (int(np.sum(rows)), len(columns)))
    return df


def last(df, count):
    return np.arange(len(df)) >= len(df) - count


def last_day(df):
    return ((df["month"] == 12) & (df["day"] == 31)).to_numpy()


#: name: for each table, what is not known yet when the last decision is made
UNKNOWN = {
    "demand": {"elecdemand": lambda df: changed(df, last(df, 48), ["Demand", "Temperature"])},
    "nitrogen": {"NOxEmissions": lambda df: changed(df, last(df, 24), ["LNOx", "LNOxEm", "sqrtWS"])},
    "stations": {"Chicago": lambda df: changed(df, last(df, 14), list(df.columns[1:22]))},
    "pizza": {"pizzaplace": lambda df: df[~((df["date"] == "2015-12-31") & (df["rownames"] % 3 > 0))]},
    "slots": {
        "flights": lambda df: changed(df, last_day(df), ["dep_delay", "arr_delay"]),
        "weather": lambda df: changed(df, last_weather(df, 5), ["temp", "humid", "wind_speed", "precip", "visib"]),
    },
    "one_flight": {
        "flights": lambda df: changed(df, last_day(df), ["dep_delay", "arr_delay"]),
        "weather": lambda df: changed(df, last_weather(df, 12), ["temp", "humid", "wind_speed", "precip", "visib"]),
    },
}


def last_weather(df, hour):
    days = df["month"] * 100 + df["day"]
    return ((days == days.max()) & (df["hour"] >= hour)).to_numpy()


@pytest.mark.parametrize("name", UNKNOWN)
def test_features_are_known_when_the_decision_is_made(problems, monkeypatch, name):
    """Other outcomes on the last day change its costs and no feature."""
    before = build(problems, name)
    table = problems.table

    def other_outcomes(package, item):
        return UNKNOWN[name].get(item, lambda df: df)(table(package, item))

    monkeypatch.setattr(problems, "table", other_outcomes)
    problems.flights.cache_clear()
    after = problems.PROBLEMS[name]()
    problems.flights.cache_clear()
    differs = (before.C != after.C).any(axis=1)
    final = before.groups == before.groups[-1] if before.groups is not None else last(before.C, 1)
    assert differs[final].all()
    np.testing.assert_array_equal(after.X, before.X)


def test_slots_are_means_of_their_flights(problems):
    problem = build(problems, "slots")
    df = problems.flights()
    late = df[(df["t"] == problem.groups[40]) & (df["hour"] == 9)].groupby("origin")["late"].mean()
    of_day = problem.C[problem.groups == problem.groups[40], 3]
    np.testing.assert_allclose(of_day, late[["EWR", "JFK", "LGA"]])


def test_past(real):
    data = sys.modules["real_data"]
    values = np.arange(10.0)[:, None]
    assert data.past(values, 1, 7)[8, 0].tolist() == [7.0, 1.0]
    assert data.mean_of_past(values, 3)[[0, 1, 2, 8], 0].tolist() == [0.0, 0.0, 0.5, 6.0]


def test_interval(real):
    """Disjoint test sets: the paired t-test; overlap widens the interval."""
    a, b = np.random.default_rng(0).normal(size=(2, 10))
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    half = real.interval(a - b, 0.0)
    np.testing.assert_allclose([(a - b).mean() - half, (a - b).mean() + half], [expected.low, expected.high])
    assert real.interval(a - b, 1 / 3) == pytest.approx(half * np.sqrt(1 + 10 / 3))


def test_kernel_features_of_items(real):
    """The value of an item is the square of its feature: no linear model ranks items, the kernel does."""
    X = np.random.default_rng(0).normal(size=(120, 5))
    problem = sys.modules["real_data"].Problem("squares", "", TopK(2, sense="max"), X, X**2)
    regret = [
        normalized_spo_loss(X[80:] ** 2, make(problem).fit(X[:80], X[:80] ** 2).predict(X[80:]), problem.region)
        for make in (real.spo_plus, real.kernel_spo_plus)
    ]
    assert regret[1] < 0.05 < 0.2 < regret[0]


def test_chosen_by_held_out_regret(real, problems):
    """Shrunk predictions have a larger squared error, and better decisions than a constant."""
    problem = problems.digits()
    X, C = problem.X[:200], problem.C[:200]
    shrunk, constant = Ridge(alpha=3e5), DummyRegressor()
    fits = real.Fits()
    by_regret = real.ChosenTwoStage(problem, [constant, shrunk], "regret", fits).fit(X, C)
    assert isinstance(by_regret.model_.regressor_, Ridge)
    seconds = by_regret.seconds_
    again = real.ChosenTwoStage(problem, [constant, shrunk], "regret", fits).fit(X, C)
    assert again.model_ is by_regret.model_ and again.seconds_ == seconds > 0


def test_run_and_go_on(real, monkeypatch, tmp_path, capsys):
    file = tmp_path / "real.json"
    models = ["least squares", "SPO+"]
    command = ["real.py", "--quick", "--only", "digits", "--models", *models, "--out", str(file)]
    monkeypatch.setattr(sys, "argv", command)
    real.main()
    saved = json.loads(file.read_text())
    assert saved["setting"] == {"splits": 2, "quick": True}
    for name in models:
        rows = saved["results"]["digits"][name]
        assert sorted(rows) == ["0", "1"] and all(0 <= row["regret"] <= 100 for row in rows.values())

    # Of an interrupted run only the rest is computed.
    first = saved["results"]["digits"]["SPO+"].pop("1")
    file.write_text(json.dumps(saved))
    run = real.run_split
    computed = []
    monkeypatch.setattr(
        real, "run_split", lambda problem, names, *rows: computed.append(names) or run(problem, names, *rows)
    )
    real.main()
    assert computed == [["SPO+"]]
    again = json.loads(file.read_text())["results"]["digits"]["SPO+"]["1"]
    assert again["regret"] == first["regret"]

    monkeypatch.setattr(sys, "argv", [*command, "--splits", "3"])
    with pytest.raises(SystemExit):
        real.main()
    assert "name another file" in capsys.readouterr().err


def test_verdict(real, problems):
    problem = problems.digits()
    rows = {
        real.BASELINE: [5.0, 5.2, 5.1],
        "better": [3.0, 3.3, 3.1],
        "same": [5.3, 4.9, 5.1],
        "worse": [8.0, 8.3, 8.1],
    }
    results = {
        name: {str(k): {"regret": regret, "seconds": 1.0} for k, regret in enumerate(values)}
        for name, values in rows.items()
    }
    verdicts = {line[0]: line[-1] for line in real.summary(problem, results, 3)}
    assert verdicts == {real.BASELINE: "", "better": "gains", "same": "level", "worse": "loses"}
