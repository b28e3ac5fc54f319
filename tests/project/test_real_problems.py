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
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

from skspo import SPOPlusRegressorCV, TopK, TwoStageRegressor, normalized_spo_loss, spo_loss
from skspo.estimators._stacking_members import make_member

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


CHEAP = {
    "ridge": Ridge(),
    "forest 3": DummyRegressor(),
    "forest 20": KNeighborsRegressor(3),
    "boosting 15": KNeighborsRegressor(10),
    "boosting 6": Ridge(1e4),
}


def squares(real, n=90, d=5):
    """The value of an item is the square of its feature, and noise."""
    X, noise = np.random.default_rng(0).normal(size=(2, n, d))
    return sys.modules["real_data"].Problem("squares", "", TopK(2, sense="max"), X, X**2 + noise)


def test_models_of_one_split(real, monkeypatch, tmp_path):
    """The baseline has the lowest regret by cross-validation; members of a stack are fitted once."""
    monkeypatch.setattr(real, "USER", CHEAP)
    problem = squares(real)
    region, train, test = problem.region, np.arange(60), np.arange(60, 90)
    X, C = problem.X[train], problem.C[train]
    held_out = {
        name: spo_loss(C, cross_val_predict(two_stage(regressor, region), X, C, cv=real.folds(problem)), region)
        for name, regressor in CHEAP.items()
    }

    def regret(name):
        model = two_stage(CHEAP[name], region).fit(X, C)
        return 100 * normalized_spo_loss(problem.C[test], model.predict(problem.X[test]), region)

    row = real.run_split(problem, train, test, tmp_path)
    best = min(held_out, key=held_out.get)
    assert row[real.BASELINE] == pytest.approx(regret(best))
    assert row["least squares"] == pytest.approx(regret("ridge"))
    assert row["forest"] == pytest.approx(regret(min(("forest 3", "forest 20"), key=held_out.get)))
    assert 0.0 <= row["share"] <= 1.0 and 0.0 <= row["changed"] <= 100.0
    # The features of the kernel are needed here.
    assert row["kernel SPO+"] < row["SPO+"]

    def refuse(*args):
        raise AssertionError

    monkeypatch.setattr(real.SPOStackingRegressor, "_fit_members", refuse)
    again = real.run_split(problem, train, test, tmp_path)
    assert {name: again[name] for name in real.MODELS} == {name: row[name] for name in real.MODELS}
    # Other samples are fitted again.
    with pytest.raises(AssertionError):
        real.run_split(problem, train[1:], test, tmp_path)


def two_stage(regressor, region):
    return TwoStageRegressor(regressor, region, shared=True)


def test_regressors_of_problems_with_the_same_samples_are_fitted_once(real):
    members = [
        real.key_of(make_member("a", Ridge(), region, shared=True, costs=costs))
        for region, costs in ((TopK(1), "all"), (TopK(2), "all"), (TopK(1), "visible"), (TopK(2), "visible"))
    ]
    assert members[0] == members[1] and len(set(members)) == 3
    spo_plus = [real.key_of(make_member("a", SPOPlusRegressorCV(), TopK(k), shared=True, costs="all")) for k in (1, 2)]
    assert spo_plus[0] != spo_plus[1]


def test_run_and_go_on(real, monkeypatch, tmp_path):
    monkeypatch.setattr(real, "USER", CHEAP)
    monkeypatch.setattr(real, "PROBLEMS", {"squares": lambda: squares(real)})
    page = tmp_path / "README.md"
    command = ["real.py", "--quick", "--out", str(page)]
    monkeypatch.setattr(sys, "argv", [*command, "--only", "squares"])
    real.main()
    file = tmp_path / "results" / "real.json"
    saved = json.loads(file.read_text())
    (row,) = saved["rows"]
    assert sorted(row["splits"]) == ["0", "1"] and row["about"] == {"splits": 2, "seed": real.SEED}
    for name in real.MODELS:
        assert row[name] == pytest.approx(np.mean([row["splits"][k][name] for k in "01"]))
        assert f"| {row[name]:.2f} |" in page.read_text()
    assert "mean of the 1 ratios" in saved["notes"][-1]

    # Of an interrupted run only the rest is computed.
    first = row["splits"].pop("1")
    file.write_text(json.dumps(saved))
    run, computed = real.run_split, []
    monkeypatch.setattr(real, "run_split", lambda *args: computed.append(args[1]) or run(*args))
    real.main()
    assert len(computed) == 1
    again = json.loads(file.read_text())["rows"][0]["splits"]["1"]
    assert again["stack"] == first["stack"]


def test_verdict(real):
    baseline = np.array([5.0, 5.2, 5.1])
    rows = {"gains": [3.0, 3.3, 3.1], "level": [5.3, 4.9, 5.1], "loses": [8.0, 8.3, 8.1]}
    for verdict, values in rows.items():
        found = real.compare(np.array(values), baseline, 0.0)
        assert found["verdict"] == verdict
        assert found["ratio"] == pytest.approx(np.mean(values) / 5.1)
        assert found["half"] == real.interval(np.array(values) - baseline, 0.0)
