"""What decisions cost, estimated from a log."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import PartialFeedbackRegressor, ShortestPath, Simplex, TwoStageRegressor, estimated_cost

GRID = ShortestPath.grid(3, 3)
PATHS = np.unique(GRID.argmin(np.random.default_rng(0).exponential(size=(500, 12))), axis=0)


def log(n=200, seed=0, d=4, noise=0.5):
    """Features, costs, a policy that knows the mean, and a random alternative of each sample."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    mean = X @ np.random.default_rng(99).normal(size=(2, d)) + 3
    C = mean + noise * rng.normal(size=(n, d))
    return X, C, Simplex().argmin(mean), np.eye(d)[rng.integers(d, size=n)]


def test_complete_costs_give_the_mean():
    X, C, W, past = log()
    result = estimated_cost(W, X, C, decisions=past, other="past", region=Simplex())
    cost, before = (W * C).sum(axis=1), (past * C).sum(axis=1)
    assert result.cost == pytest.approx(cost.mean())
    assert result.standard_error == pytest.approx(cost.std(ddof=1) / np.sqrt(200))
    assert result.other_cost == pytest.approx(before.mean())
    assert result.difference == pytest.approx((cost - before).mean())
    assert result.difference_standard_error == pytest.approx((cost - before).std(ddof=1) / np.sqrt(200))
    assert result.difference_interval.low < result.difference < result.difference_interval.high < 0


@pytest.mark.parametrize("totals", [False, True])
def test_what_was_done_costs_what_it_cost(totals):
    """With inverse propensities of one, and with any model, the past decisions cost what was paid."""
    X, C, _, past = log()
    y = (past * C).sum(axis=1) if totals else np.where(past > 0, C, np.nan)
    W = np.tile(past[:1], (200, 1))
    result = estimated_cost(W, X, y, decisions=past, other="past", region=Simplex())
    assert result.other_cost == pytest.approx((past * C).sum(axis=1).mean())
    assert result.difference == pytest.approx(result.cost - result.other_cost)


@pytest.mark.parametrize("totals", [False, True])
@pytest.mark.parametrize("method", ["doubly_robust", "inverse_propensity", "direct"])
def test_all_methods_estimate_the_cost(method, totals):
    X, C, W, past = log(4000)
    y = (past * C).sum(axis=1) if totals else np.where(past > 0, C, np.nan)
    given = {"decisions": past} if totals else {}
    result = estimated_cost(W, X, y, region=Simplex(), method=method, nuisance=LinearRegression(), **given)
    assert abs(result.cost - (W * C).sum(axis=1).mean()) < 4 * result.standard_error
    assert result.standard_error < 0.2


def test_doubly_robust_is_right_if_the_nuisance_is_wrong_and_exact_in_error():
    from sklearn.dummy import DummyRegressor

    X, C, W, past = log(4000)
    y = np.where(past > 0, C, np.nan)
    robust, direct = (
        estimated_cost(W, X, y, region=Simplex(), method=method, nuisance=DummyRegressor())
        for method in ("doubly_robust", "direct")
    )
    true = (W * C).sum(axis=1).mean()
    assert abs(robust.cost - true) < 4 * robust.standard_error
    assert abs(direct.cost - true) > 10 * direct.standard_error
    assert "Errors of the nuisance are not in the interval" in str(direct)


def test_groups_count_as_one():
    X, C, W, _ = log()
    result = estimated_cost(W, X, C, region=Simplex(), groups=np.repeat(np.arange(40), 5))
    means = (W * C).sum(axis=1).reshape(40, 5).mean(axis=1)
    assert result.standard_error == pytest.approx(means.std(ddof=1) / np.sqrt(40))
    assert result.n_groups == 40 and "in 40 groups" in str(result)


def test_weights():
    X, C, W, _ = log()
    weight = np.random.default_rng(0).integers(1, 4, size=200).astype(float)
    result = estimated_cost(W, X, C, region=Simplex(), sample_weight=weight)
    assert result.cost == pytest.approx(np.average((W * C).sum(axis=1), weights=weight))


def test_offset_and_values():
    X, C, W, past = log()
    y, known = np.where(past > 0, C, np.nan), np.random.default_rng(0).normal(size=C.shape)
    plain = estimated_cost(W, X, y, region=Simplex(), nuisance=LinearRegression())
    more = estimated_cost(W, X, y + known, region=Simplex(), nuisance=LinearRegression(), offset=known)
    assert more.cost == pytest.approx(plain.cost + (W * known).sum(axis=1).mean())
    value = estimated_cost(W, X, -y, region=Simplex(sense="max"), nuisance=LinearRegression())
    assert value.cost == pytest.approx(-plain.cost)


def test_models_pipelines_and_frames():
    X, C, _, past = log()
    model = TwoStageRegressor(LinearRegression(), Simplex()).fit(X[:100], C[:100])
    pipeline = make_pipeline(StandardScaler(), TwoStageRegressor(Ridge(), Simplex())).fit(X[:100], C[:100])
    y = (past * C).sum(axis=1)
    given = {"decisions": past[100:], "nuisance": LinearRegression()}
    one = estimated_cost(model, X[100:], y[100:], other=pipeline, **given)
    two = estimated_cost(model.decide(X[100:]), X[100:], y[100:], region=Simplex(), **given)
    assert one.cost == two.cost and np.isfinite(one.difference)
    assert np.isnan(one.training_share) or one.training_share == 0
    same = estimated_cost(model, X[100:], C[100:], other=model)
    assert same.difference == 0 and same.difference_interval.low == 0
    inside = estimated_cost(model, X[:100], C[:100])
    assert inside.training_share == 1 and "fitted to" in str(inside)
    regressor = LinearRegression().fit(X[:100], C[:100])
    assert estimated_cost(regressor, X[100:], y[100:], region=Simplex(), **given).cost == one.cost
    names = list("abcd")
    framed = PartialFeedbackRegressor(model, method="direct").fit(X, y, decisions=pd.DataFrame(past, columns=names))
    shuffled = pd.DataFrame(past, columns=names)[["b", "d", "a", "c"]]
    results = [estimated_cost(framed, X, y, decisions=D, other="past").cost for D in (shuffled, past)]
    assert results[0] == results[1]


def test_decisions_that_rest_on_what_was_never_seen():
    X, C, _, past = log()
    rows = past[:, 0] == 0
    X, C, past = X[rows], C[rows], past[rows]
    result = estimated_cost(np.eye(4)[[0] * len(X)], X, np.where(past > 0, C, np.nan), region=Simplex())
    assert result.unseen_share == 1 and "100% of the decisions use variables whose cost was never seen" in str(result)


@pytest.mark.parametrize("totals", [False, True])
def test_effective_samples_of_random_decisions(totals, recwarn):
    """One of four options is seen: as many samples as had the same decision tell something."""
    X, C, W, past = log(4000)
    y = (past * C).sum(axis=1) if totals else np.where(past > 0, C, np.nan)
    given = {"decisions": past} if totals else {}
    frequencies = None if totals else np.full(4, 0.25)
    result = estimated_cost(W, X, y, region=Simplex(), nuisance=Ridge(), propensity=frequencies, **given)
    assert result.effective_samples == pytest.approx((W * past).sum(), rel=0.01)
    assert not [warning for warning in recwarn if "Few past decisions" in str(warning.message)]
    direct = estimated_cost(W, X, y, region=Simplex(), nuisance=Ridge(), method="direct", **given)
    assert np.isnan(direct.effective_samples)


def test_poor_overlap_is_said():
    """The policy chooses the first option, which was nearly never chosen."""
    X, C, _, _ = log(400)
    P = np.tile([0.01, 0.33, 0.33, 0.33], (400, 1))
    past = np.eye(4)[np.arange(400) % 3 + 1]
    past[:4] = [1, 0, 0, 0]
    y, W = np.where(past > 0, C, np.nan), np.eye(4)[[0] * 400]
    with pytest.warns(UserWarning, match="one sample has 25% of the weight, and all tell as much as 4 samples"):
        result = estimated_cost(W, X, y, region=Simplex(), nuisance=Ridge(), propensity=P)
    assert result.effective_samples == pytest.approx(4)
    with pytest.warns(UserWarning, match="one group has 100% of the weight"):
        estimated_cost(W, X, y, region=Simplex(), nuisance=Ridge(), propensity=P, groups=np.arange(400) // 4)


def test_self_selected_logs_are_right_without_propensities():
    """With a constant nuisance only propensities that depend on the features give the cost of what was rarely done."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    C = np.column_stack([2 * X[:, 0], 0 * X[:, 0]]) + 0.1 * rng.normal(size=(4000, 2))
    past = np.eye(2)[(rng.random(4000) > 1 / (1 + np.exp(X[:, 0]))).astype(int)]
    W, given = np.eye(2)[[0] * 4000], {"region": Simplex(), "nuisance": DummyRegressor()}
    with pytest.warns(UserWarning, match="What was seen depended on the features"):
        found = estimated_cost(W, X, np.where(past > 0, C, np.nan), **given)
    assert abs(found.cost - C[:, 0].mean()) < 4 * found.standard_error
    wrong = estimated_cost(W, X, np.where(past > 0, C, np.nan), propensity=DummyClassifier(), **given)
    assert abs(wrong.cost - C[:, 0].mean()) > 10 * wrong.standard_error


def test_time_ordered_folds_leave_the_first_samples_out():
    from sklearn.model_selection import TimeSeriesSplit

    X, C, W, past = log()
    y = np.where(past > 0, C, np.nan)
    assert estimated_cost(W, X, y, region=Simplex(), cv=TimeSeriesSplit(4), nuisance=Ridge()).n_samples == 160


def cover(case, runs=120, n=300):
    """Share of intervals that contain the expected cost of a policy, and the mean of their standardized errors."""
    found = []
    for seed in range(runs):
        rng = np.random.default_rng([seed, 11])
        X = rng.normal(size=(n, 2))
        mean = np.column_stack([X[:, 0], -X[:, 0], X[:, 1]]) + 2
        noise = rng.exponential(size=mean.shape) - 1 if case == "skewed" else 0.5 * rng.normal(size=mean.shape)
        C, W = mean + noise, Simplex().argmin(mean)
        given, P = {}, None
        if case == "small":
            P = np.where(X[:, :1] > 0, [[0.1, 0.45, 0.45]], [[0.45, 0.45, 0.1]])
            past = np.eye(3)[(rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, 2)]
            given = {"propensity": P}
        else:
            past = np.eye(3)[rng.integers(3, size=n)]
        y = np.where(past > 0, C, np.nan)
        if case == "totals":
            y, given = (past * C).sum(axis=1), {"decisions": past}
        result = estimated_cost(W, X, y, region=Simplex(), nuisance=Ridge(), **given)
        # The expectation of min of three normal numbers of these means, from many samples.
        found.append((result.interval.low, result.interval.high, (result.cost - EXPECTED) / result.standard_error))
    low, high, score = np.array(found).T
    return ((low <= EXPECTED) & (high >= EXPECTED)).mean(), score.mean()


_X = np.random.default_rng(1).normal(size=(1_000_000, 2))
EXPECTED = float((np.minimum(-np.abs(_X[:, 0]), _X[:, 1]) + 2).mean())


@pytest.mark.slow
@pytest.mark.parametrize("case", ["plain", "skewed", "small", "totals"])
def test_intervals_cover(case):
    """120 intervals of 95 %: 108 to 119 hits have a probability of 98 %."""
    share, bias = cover(case)
    assert 0.90 <= share <= 1.0
    assert abs(bias) < 4 / np.sqrt(120)
