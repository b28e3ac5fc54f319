"""Held-out risk of a model: bounds, intervals, assumptions and errors."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import (
    Box,
    Ellipsoid,
    Knapsack,
    L1Ball,
    OracleRegion,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    TopK,
    TwoStageRegressor,
    decision_report,
    held_out_risk,
    make_spo_scorer,
    normalized_spo_loss,
    spo_loss,
)
from skspo._utils.confidence import mean_upper
from skspo.datasets import make_shortest_path
from skspo.estimators._held_out import regret_range

PATH = ShortestPath.grid(3, 3)


@pytest.fixture(scope="module")
def data():
    X, C = make_shortest_path(700, grid=(3, 3), degree=6, noise=0.5, random_state=0)
    models = SPOPlusRegressor(PATH).fit(X[:200], C[:200]), TwoStageRegressor(region=PATH).fit(X[:200], C[:200])
    return *models, X[200:], C[200:]


def numbers(risk):
    """All figures of a result."""
    names = ("mean_loss", "normalized_loss", "upper_bound", "difference", "ratio")
    pairs = ("interval", "normalized_interval", "difference_interval", "difference_bounds", "ratio_interval")
    return np.array([*(getattr(risk, n) for n in names), *(end for n in pairs for end in getattr(risk, n))])


def test_figures_are_the_metrics(data):
    model, other, X, C = data
    risk = held_out_risk(model, X, C, other=other, loss_cap=5.0)
    own, against = (spo_loss(C, m.predict(X), PATH, per_sample=True) for m in (model, other))
    assert risk.mean_loss == pytest.approx(own.mean())
    assert risk.normalized_loss == pytest.approx(normalized_spo_loss(C, model.predict(X), PATH))
    assert risk.difference == pytest.approx((own - against).mean())
    assert risk.ratio == pytest.approx(own.mean() / against.mean())
    # The upper bound is one-sided; each side of the difference fails with half the probability.
    share = np.full(len(X), 1 / len(X))
    own, against = np.minimum(own, 5.0), np.minimum(against, 5.0)
    assert risk.upper_bound == pytest.approx(mean_upper(own * share, share, 5.0, 0.05, "betting"))
    above = mean_upper((own - against + 5.0) * share, share, 10.0, 0.025, "betting") - 5.0
    assert risk.difference_bounds.high == pytest.approx(above)
    # Two-sided normal intervals are close to those of the bootstrap, and proved bounds are outside of them.
    half = 1.96 * (own - against).std() / np.sqrt(len(X))
    low, high = risk.difference_interval
    assert high - low == pytest.approx(2 * half, rel=0.2)
    assert risk.difference_bounds.low < low < risk.difference < high < risk.difference_bounds.high
    assert risk.mean_loss < risk.interval.high < risk.upper_bound < 5.0


def test_the_cap_is_that_of_each_sample(data):
    model, other, X, C = data
    groups = np.arange(len(X)) // 2
    losses = [spo_loss(C, m.predict(X), PATH, per_sample=True) for m in (model, other)]
    own, against = (np.minimum(loss, 0.3).reshape(-1, 2).sum(axis=1) / len(X) for loss in losses)
    assert losses[0].max() > 0.3
    risk = held_out_risk(model, X, C, other=other, groups=groups, loss_cap=0.3)
    share = np.full(250, 1 / 250)
    assert risk.upper_bound == pytest.approx(mean_upper(own, share, 0.3, 0.05, "betting"))
    below = 0.3 - mean_upper(against - own + 0.3 * share, share, 0.6, 0.025, "betting")
    assert risk.difference_bounds.low == pytest.approx(below)


def test_the_difference_is_antisymmetric_and_zero_for_the_same_model(data):
    model, other, X, C = data
    one = held_out_risk(model, X, C, other=other, loss_cap=5.0)
    two = held_out_risk(other, X, C, other=model, loss_cap=5.0)
    assert one.difference == pytest.approx(-two.difference)
    np.testing.assert_allclose(one.difference_bounds, -np.array(two.difference_bounds)[::-1], rtol=1e-7)
    same = held_out_risk(model, X, C, other=model, loss_cap=5.0)
    assert same.difference == 0.0 and same.difference_interval == (0.0, 0.0) and same.ratio_interval == (1.0, 1.0)
    assert same.difference_bounds.low < 0.0 < same.difference_bounds.high


@pytest.mark.parametrize("method", ["betting", "bernstein"])
def test_coverage(method):
    """Costs with a known risk: one of two alternatives costs 0, the other one 1, and predictions are constant."""
    model = Constant([0.0, 1.0])
    rng = np.random.default_rng(0)
    covered, both = 0, 0
    for _ in range(200):
        wrong = rng.random(60) < 0.2
        C = np.column_stack([wrong, ~wrong]).astype(float)
        risk = held_out_risk(
            model,
            C,
            C,
            other=Constant([1.0, 0.0]),
            region=Simplex(),
            cost_bounds=(0, 1),
            level=0.9,
            method=method,
            n_resamples=100,
        )
        assert risk.loss_bound == pytest.approx(1.0, rel=1e-5)
        covered += 0.2 <= risk.upper_bound
        both += risk.difference_bounds.low <= -0.6 <= risk.difference_bounds.high
    assert covered >= 180 and both >= 180


class Constant:
    """Model with the same prediction for all samples."""

    def __init__(self, c):
        self.c = c

    def predict(self, X):
        return np.tile(self.c, (len(X), 1))


def test_groups_and_weights(data):
    model, other, X, C = data
    plain = held_out_risk(model, X, C, other=other, loss_cap=5.0)
    thrice = {"groups": np.repeat(np.arange(len(X)), 3)}
    X3, C3 = np.repeat(X, 3, axis=0), np.repeat(C, 3, axis=0)
    grouped = held_out_risk(model, X3, C3, other=other, loss_cap=5.0, **thrice)
    np.testing.assert_allclose(numbers(grouped), numbers(plain), rtol=1e-6)
    assert (grouped.n_samples, grouped.n_groups) == (1500, 500) and "in 500 groups" in str(grouped)
    ignored = held_out_risk(model, X3, C3, other=other, loss_cap=5.0)
    assert np.ptp(ignored.interval) < 0.7 * np.ptp(plain.interval) and ignored.upper_bound < plain.upper_bound
    # Weights of zero and one select samples, and their unit does not matter.
    weight = np.arange(len(X)) % 2
    some = held_out_risk(model, X, C, other=other, loss_cap=5.0, sample_weight=1e-3 * weight)
    half = held_out_risk(model, X[1::2], C[1::2], other=other, loss_cap=5.0)
    np.testing.assert_allclose(numbers(some), numbers(half), rtol=1e-6)
    assert some.n_samples == 250 and "the weights do not depend" in str(some)
    # Labels of any kind.
    names = np.array([f"day {k}" for k in thrice["groups"]])
    assert held_out_risk(model, X3, C3, groups=names).n_groups == 500


def grouped_wrongs(case, rng, n):
    """Labels of groups, and whether the first of two options is the wrong one, which costs 1."""
    if case == "large groups are bad":  # the expected regret of a sample is 20 / 20.9
        bad = rng.random(n) < 0.1
        sizes, chance = np.where(bad, 200, 1), 1.0 * bad
    elif case == "small groups are bad":
        bad = rng.random(n) < 0.3
        sizes, chance = np.where(bad, 1, 30), 1.0 * bad
    else:  # the size says nothing
        sizes, chance = rng.geometric(0.1, size=n), rng.beta(1.0, 3.0, size=n)
    groups = np.repeat(np.arange(n), sizes)
    return groups, rng.random(len(groups)) < chance[groups]


#: number of groups, and expected mean regret of a group
GROUPED = {"large groups are bad": (10, 0.1), "small groups are bad": (60, 0.3), "the size says nothing": (60, 0.25)}


@pytest.mark.parametrize("method", ["betting", "bernstein"])
@pytest.mark.parametrize("case", GROUPED)
def test_coverage_with_groups_of_random_sizes(case, method):
    """What is proved is the mean of a group; it is that of a sample if it does not depend on the size."""
    n, truth = GROUPED[case]
    rng = np.random.default_rng(0)
    upper, low, high = [], [], []
    for _ in range(100):
        groups, wrong = grouped_wrongs(case, rng, n)
        C = np.column_stack([wrong, ~wrong]).astype(float)
        models = Constant([0.0, 1.0]), Constant([1.0, 0.0])
        given = {"groups": groups, "region": Simplex(), "loss_bound": 1.0, "level": 0.9, "n_resamples": 100}
        risk = held_out_risk(models[0], C, C, other=models[1], method=method, **given)
        upper.append(risk.upper_bound)
        low.append(risk.difference_bounds.low)
        high.append(risk.difference_bounds.high)
        assert risk.group_mean_loss == pytest.approx(np.mean([wrong[groups == g].mean() for g in np.unique(groups)]))
    assert (np.array(upper) >= truth).mean() >= 0.9
    difference = 2 * truth - 1  # the other model is wrong where this one is right
    assert ((np.array(low) <= difference) & (difference <= np.array(high))).mean() >= 0.9
    assert np.mean(upper) < truth + 0.4 or (method, n) == ("bernstein", 10)  # not vacuous
    text = str(risk)
    assert "expected regret (mean of a group) <=" in text and f"{risk.group_mean_loss:.4g}" in text
    assert "if the expected mean regret of a group does not depend on its size" in text


def test_seed(data):
    model, _, X, C = data
    first = held_out_risk(model, X, C)
    assert held_out_risk(model, X, C).interval == first.interval
    assert held_out_risk(model, X, C, random_state=1).interval != first.interval
    assert held_out_risk(model, X, C, random_state=np.random.RandomState(1)).interval != first.interval


def test_any_fitted_estimator(data):
    model, _, X, C = data
    pipe = make_pipeline(StandardScaler(), SPOPlusRegressor(PATH)).fit(X, C)
    search = GridSearchCV(
        TwoStageRegressor(Ridge(), PATH), {"regressor__alpha": [0.1, 1.0]}, scoring=make_spo_scorer(PATH), cv=2
    ).fit(X, C)
    forest = RandomForestRegressor(n_estimators=2, random_state=0).fit(X, C)
    risk = held_out_risk(pipe, X, C, other=search)
    assert (risk.name, risk.other_name) == ("SPOPlusRegressor", "TwoStageRegressor")
    assert held_out_risk(model, X, C, other=forest).other_mean_loss == pytest.approx(
        spo_loss(C, forest.predict(X), PATH)
    )
    with pytest.raises(ValueError, match="Pass region="):
        held_out_risk(forest, X, C)
    assert held_out_risk(forest, X, C, region=PATH).name == "RandomForestRegressor"


def test_offset_region_params_and_names_of_costs():
    rng = np.random.default_rng(0)
    X, known = rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    C = pd.DataFrame(2.0 + X @ rng.normal(size=(3, 4)) + rng.normal(size=(60, 4)) + known, columns=list("abcd"))
    params = {"capacity": rng.uniform(3.0, 8.0, size=60)}
    region = Knapsack([1, 2, 3, 4], 5, integer=False)
    model = SPOPlusRegressor(region).fit(X, C, offset=known, region_params=params)
    risk = held_out_risk(model, X, C, offset=known, region_params=params, loss_bound=100.0)
    assert risk.mean_loss == pytest.approx(
        spo_loss(C, model.predict(X, offset=known), region, region_params=params), rel=1e-9
    )
    with pytest.raises(ValueError, match="future regions are unknown"):
        held_out_risk(model, X, C, offset=known, region_params=params, cost_bounds=(-99, 99))
    with pytest.raises(ValueError, match="match the costs of fit"):
        held_out_risk(model, X, C[list("badc")], offset=known, region_params=params)
    with pytest.warns(UserWarning, match="but held_out_risk was called without"):
        held_out_risk(model, X, C, region_params=params)


def test_text(data):
    model, other, X, C = data
    plain = str(held_out_risk(model, X, C))
    assert "No proved bound: it needs" in plain and "difference" not in plain and "nan" not in plain
    risk = held_out_risk(model, X, C, other=other, loss_cap=5.0, level=0.9, method="bernstein")
    text = str(risk)
    assert repr(risk) == text and "nan" not in text
    assert "Intervals: 90 %, BCa bootstrap, approximate." in text
    assert "Proved, each with probability 90 % (bernstein):" in text
    assert f"expected regret, capped at 5, <= {risk.upper_bound:.4g}" in text
    assert "the cap 5 was chosen without these samples" in text
    few = str(held_out_risk(model, X[:5], C[:5], loss_cap=5.0))
    assert "too few samples" in few and "expected regret, capped" in few
    perfect = held_out_risk(Constant([0.0, 1.0]), X[:50], np.tile([0.0, 1.0], (50, 1)), region=Simplex(), loss_bound=1)
    assert "All regrets are equal" in str(perfect) and "of best cost" not in str(perfect)
    assert 0.0 < perfect.upper_bound < 0.2


def test_no_more_than_the_range():
    C = np.tile([1.0, 0.0], (3, 1))
    risk = held_out_risk(Constant([0.0, 1.0]), C, C, region=Simplex(), other=Constant([1.0, 0.0]), loss_bound=1.0)
    assert risk.upper_bound == 1.0 and risk.difference_bounds.high == 1.0
    assert np.isnan(risk.ratio) and "ratio" not in str(risk)


# -- range of the regret from a box of costs ---------------------------------------------------------------------------

REGIONS = [
    Simplex(),
    Simplex(sense="max"),
    Box(-1.0, 2.0),
    L1Ball(1.5),
    TopK(2),
    Knapsack([1, 2, 3, 1], 4),
    Knapsack([1, 2, 3, 1], 4, integer=False),
    Ellipsoid(radius=2.0, center=[1.0, 0.0, 0.0, -3.0]),
]


@pytest.mark.parametrize("region", REGIONS, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_range_is_a_bound(region, seed):
    """The regret is convex in the costs, so its maximum over a box is attained at a corner."""
    rng = np.random.default_rng(seed)
    low = rng.normal(size=4)
    high = low + rng.exponential(size=4) * (rng.random(4) < 0.8)
    corners = np.array(list(product(*zip(low, high, strict=True))))
    largest = np.einsum("ij,ij->i", corners, region.argmin(-corners) - region.argmin(corners))
    exact = float(np.abs(largest).max())
    bound = regret_range(region, low, high)
    assert exact <= bound <= 5.0 * exact + 1e-4
    if isinstance(region, Box):
        assert bound == pytest.approx(exact, rel=1e-4)


def test_range_is_exact_on_paths_simplices_and_their_complements(monkeypatch):
    monkeypatch.setattr("skspo.estimators._held_out.numbers_in_memory", lambda: 30)  # several blocks
    assert regret_range(PATH, np.full(12, 1.0), np.full(12, 3.0)) == pytest.approx(4 * 2.0, rel=1e-4)
    assert regret_range(Simplex(), np.array([0.0, 2.0]), np.array([1.0, 5.0])) == pytest.approx(5.0, rel=1e-4)
    assert regret_range(TopK(3), np.full(4, 1.0), np.full(4, 3.0)) == pytest.approx(2.0, rel=1e-4)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"level": 1.0}, "level must be"),
        ({"level": "high"}, "level must be"),
        ({"method": "hoeffding"}, "method must be 'betting' or 'bernstein'"),
        ({"n_resamples": 10}, "n_resamples must be an integer of at least 100"),
        ({"loss_bound": -1.0}, "loss_bound must be a finite number above 0"),
        ({"loss_cap": np.inf}, "loss_cap must be a finite number above 0"),
        ({"loss_bound": 1e-3}, "it is no bound"),
        ({"loss_bound": 1.0, "loss_cap": 2.0}, "at most one of"),
        ({"cost_bounds": 3.0}, "must be a pair"),
        ({"cost_bounds": (0.0, [1.0, 2.0])}, r"of shape \(12,\)"),
        ({"cost_bounds": (5.0, -5.0)}, "must not exceed high"),
        ({"cost_bounds": (0.0, np.inf)}, "must be finite"),
        ({"cost_bounds": (0.0, 0.1)}, "is outside of cost_bounds"),
        ({"groups": [1, 2]}, "inconsistent numbers of samples"),
        ({"sample_weight": -np.ones(500)}, "Negative values"),
        ({"other": Constant([1.0, 2.0])}, "must have the same shape"),
    ],
)
def test_bad_input(data, given, message):
    model, _, X, C = data
    with pytest.raises(ValueError, match=message):
        held_out_risk(model, X, C, **given)


def test_inexact_oracles():
    rng = np.random.default_rng(0)
    C = rng.uniform(size=(30, 3))
    region = OracleRegion(Simplex().argmin, 3, on_suboptimal="warn")
    model = Constant([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="exact oracle"):
        held_out_risk(model, C, C, region=region, cost_bounds=(0, 1))
    assert "which may be inexact" in str(held_out_risk(model, C, C, region=region, loss_bound=1.0))


# -- the report --------------------------------------------------------------------------------------------------------


def test_the_report_has_the_same_intervals(data):
    model, other, X, C = data
    report = decision_report(model, X, C)
    risk = held_out_risk(model, X, C, other=other)
    for name, interval in (
        ("spo_loss", risk.interval),
        ("normalized_spo_loss", risk.normalized_interval),
        ("least squares", risk.ratio_interval),
    ):
        np.testing.assert_allclose(report.intervals[name], interval, rtol=0, atol=0.15 * np.ptp(interval))
    text, page = str(report), report._repr_html_()
    line = f"Approximate 95 % intervals (bootstrap): regret {report.intervals['spo_loss'].text()}"
    assert line in text and line in page
    assert f"times that of least squares ({report.intervals['least squares'].text('{:.2f}')})" in text
    assert report.to_dict()["intervals"]["constant prediction"] == tuple(report.intervals["constant prediction"])
    wide = decision_report(model, X, C, level=0.999)
    assert np.ptp(wide.intervals["spo_loss"]) > 1.3 * np.ptp(report.intervals["spo_loss"])
    few = decision_report(model, X, C, groups=np.arange(len(X)) % 12)
    assert few.intervals["spo_loss"] != report.intervals["spo_loss"]
    assert "intervals" not in str(decision_report(model, X, C, groups=np.arange(len(X)) % 5))
    with pytest.raises(ValueError, match="level must be"):
        decision_report(model, X, C, level=95)


def test_the_report_of_a_model_without_baselines(data):
    _, _, X, C = data
    text = str(decision_report(Constant(C.mean(axis=0)), X, C, region=PATH))
    assert "intervals (bootstrap): regret" in text and "brackets" not in text
