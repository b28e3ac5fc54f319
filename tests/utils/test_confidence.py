"""Confidence bounds of means, compared with exact probabilities, exact bounds, SciPy and simulations."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skspo._utils.confidence import (
    MAX_TERMS,
    Bootstrap,
    bernstein_upper,
    betting_lower,
    group_terms,
    mean_and_error,
    mean_upper,
)

METHODS = ["betting", "bernstein"]


def upper(values, largest, delta, method):
    return mean_upper(values / len(values), np.full(len(values), 1 / len(values)), largest, delta, method)


def bootstrap(columns, level=0.95, n_resamples=2000, seed=0):
    return Bootstrap(group_terms(columns, None, None), level, n_resamples, np.random.default_rng(seed))


# -- proved bounds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 20, 300])
def test_not_below_the_exact_bound_of_a_share(method, n):
    """Of all bounds of a probability that increase with the number of successes, Clopper-Pearson is the smallest."""
    for delta in (0.05, 0.4):
        for k in range(0, n + 1, max(1, n // 20)):
            exact = stats.beta.ppf(1 - delta, k + 1, n - k) if k < n else 1.0
            bound = upper(np.arange(n) < k, 1.0, delta, method)
            assert exact <= bound + 1e-9 and bound <= 1.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delta", [0.02, 0.1, 0.4])
def test_exact_probability_of_failure_with_unequal_weights_and_distributions(method, delta):
    rng = np.random.default_rng(1)
    for _ in range(5):
        weight = rng.dirichlet(np.ones(7))
        chance, size = rng.uniform(size=7) ** 2, rng.uniform(0.3, 1.0, size=7)
        mu = float(weight @ (chance * size))
        failed = 0.0
        for hit in product([0.0, 1.0], repeat=7):
            if mean_upper(weight * size * hit, weight, 1.0, delta, method) < mu:
                failed += float(np.prod(np.where(hit, chance, 1 - chance)))
        assert failed <= delta


def test_betting_solves_its_equation():
    Y = np.random.default_rng(0).exponential(size=50)
    low = betting_lower(Y, 0.1)
    shares, weights = [1, 1 / 2, 1 / 4, 1 / 8], [1, 1 / 2, 1 / 3, 1 / 4]
    products = [np.prod(1 - s + s * Y / low) for s in shares]
    assert np.average(products, weights=weights) == pytest.approx(10.0, rel=1e-6)
    assert betting_lower(Y[::-1], 0.1) == pytest.approx(low, rel=1e-12)
    assert betting_lower(1e30 * Y, 0.1) == pytest.approx(1e30 * low, rel=1e-9)
    assert betting_lower(np.zeros(3), 0.1) == 0.0
    assert 0.0 <= betting_lower(np.eye(40)[0], 1e-9) < 1e-9


def test_bernstein_is_the_formula():
    Y = np.array([0.0, 1.0, 3.0, 0.5])
    log = np.log(2 / 0.2)
    expected = 1.125 + np.sqrt(2 * np.var(Y, ddof=1) * log / 4) + 7 * 5.0 * log / 9
    assert bernstein_upper(Y, 5.0, 0.2) == pytest.approx(expected, rel=1e-14)
    assert bernstein_upper(Y[:1], 5.0, 0.2) == 5.0
    # With weights a_i, the variables are n a_i Y_i, and the largest one can be as large as n max(a_i) r.
    weight = np.linspace(0.5, 1.5, 400) / 400
    terms = weight * np.random.default_rng(0).uniform(size=400)
    expected = 400 * terms.mean() + np.sqrt(2 * np.var(400 * terms, ddof=1) * log / 400) + 7 * 1.5 * log / (3 * 399)
    assert mean_upper(terms, weight, 1.0, 0.2, "bernstein") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [30, 300])
def test_coverage_of_proved_bounds(method, n):
    """Half of the regrets are zero, the rest exponential, capped at 4."""
    rng = np.random.default_rng(0)
    mu = 0.5 * (1 - np.exp(-4))
    samples = np.minimum(rng.exponential(size=(400, n)) * (rng.random((400, n)) < 0.5), 4.0)
    bounds = np.array([upper(sample, 4.0, 0.1, method) for sample in samples])
    assert (bounds >= mu).mean() >= 0.9
    assert bounds.mean() < 4.0  # not vacuous


def test_bounds_are_not_far_from_the_normal_approximation():
    rng = np.random.default_rng(0)
    loss = np.minimum(rng.exponential(size=20_000) * (rng.random(20_000) < 0.5), 10.0)
    normal = 1.645 * loss.std() / np.sqrt(len(loss))
    for method in METHODS:
        assert normal < upper(loss, 10.0, 0.05, method) - loss.mean() < 2.5 * normal


def test_betting_is_tighter_where_regrets_are_far_below_their_bound():
    loss = np.random.default_rng(0).exponential(size=1000)
    margin = {method: upper(loss, 50.0, 0.05, method) - loss.mean() for method in METHODS}
    assert margin["betting"] < 0.65 * margin["bernstein"]


# -- bootstrap ---------------------------------------------------------------------------------------------------------


def scipy_ends(ratios, data, statistic):
    """Ends of SciPy's BCa interval from given resamples."""
    options = {"paired": True, "method": "BCa", "vectorized": True}
    result = stats.bootstrap(data, statistic, n_resamples=10, **options)
    result.bootstrap_distribution = ratios
    return stats.bootstrap(data, statistic, n_resamples=0, bootstrap_result=result, **options).confidence_interval


def test_bootstrap_agrees_with_scipy():
    rng = np.random.default_rng(0)
    a, b = np.exp(rng.normal(size=(2, 30)))
    ours = bootstrap(np.column_stack([a, b]), n_resamples=50_000)
    ones, tops, bottoms = ours.totals.T
    np.testing.assert_allclose(ones, 1.0)
    assert tops.std() == pytest.approx(a.std() / np.sqrt(30), rel=0.02)  # of the mean of 30 independent draws
    statistics = {
        (1, 0): (tops, (a,), lambda a, axis: a.mean(axis)),
        (1, 2): (tops / bottoms, (a, b), lambda a, b, axis: a.mean(axis) / b.mean(axis)),
        (1, 0, 2): (tops - bottoms, (a, b), lambda a, b, axis: (a - b).mean(axis)),
    }
    for key, (ratios, data, statistic) in statistics.items():
        low, high = scipy_ends(ratios, data, statistic)
        np.testing.assert_allclose(ours.interval(*key), (low, high), rtol=0, atol=1e-3 * (high - low))


def test_bootstrap_of_few_different_values_agrees_with_scipy():
    loss = 1.0 * (np.arange(60) < 3)  # a fifth of the resamples has exactly the observed mean
    ours = bootstrap(loss[:, None])
    ratios = np.round(60 * ours.totals[:, 1]) / 60
    low, high = scipy_ends(ratios, (loss,), lambda a, axis: a.mean(axis))
    assert ours.interval(1, 0) == pytest.approx((low, high))


def coverage(draw, mu, n, repetitions=400):
    rng = np.random.default_rng(0)
    ends = [bootstrap(draw(rng, n)[:, None], n_resamples=600, seed=k).interval(1, 0) for k in range(repetitions)]
    return np.mean([low <= mu <= high for low, high in ends])


def test_coverage_of_the_bootstrap():
    def moderate(rng, n):
        return rng.exponential(size=n) * (rng.random(n) < 0.5)

    def rare(rng, n):
        return 1.0 * (rng.random(n) < 0.02)

    error = 3 * np.sqrt(0.95 * 0.05 / 400)
    assert abs(coverage(moderate, 0.5, 200) - 0.95) < error
    # As documented: the mean is determined by one sample or none.
    assert coverage(rare, 0.02, 50) < 0.8


def test_many_samples_are_added_up():
    rng = np.random.default_rng(0)
    loss = rng.exponential(size=4 * MAX_TERMS + 3)
    ours = bootstrap(loss[:, None])
    assert ours.terms.shape == (MAX_TERMS, 2)
    np.testing.assert_allclose(ours.terms.sum(axis=0), [1.0, loss.mean()])
    half = 1.96 * loss.std() / np.sqrt(len(loss))
    np.testing.assert_allclose(ours.interval(1, 0), [loss.mean() - half, loss.mean() + half], rtol=0, atol=0.2 * half)


def test_degenerate_bootstrap():
    constant = np.full((20, 1), 3.0)
    assert bootstrap(constant).interval(1, 0) == pytest.approx((3.0, 3.0))
    assert bootstrap(0 * constant).interval(1, 0) == (0.0, 0.0)
    assert np.isnan(bootstrap(np.column_stack([constant, 0 * constant])).interval(1, 2)).all()  # nothing to divide by
    assert np.isnan(bootstrap(np.arange(9.0)[:, None]).interval(1, 0)).all()  # too few
    one = np.column_stack([constant, np.eye(20)[0]])  # a third of the resamples has a denominator of zero
    low, high = bootstrap(one).interval(1, 2)
    assert 0 < low < np.inf and high == np.inf


def test_terms_of_groups():
    columns = np.array([[1.0], [2.0], [3.0], [4.0]])
    terms = group_terms(columns, np.array([1.0, 1.0, 2.0, 0.0]), ["b", "a", "b", "c"])
    np.testing.assert_allclose(terms, [[0.25, 0.5], [0.75, 1.75]])  # the group c has no weight
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        group_terms(columns, None, [1, 2])
    with pytest.raises(ValueError, match="labels of one type"):
        group_terms(columns, None, np.array([1, "a", None, 2], dtype=object))


def test_standard_errors():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 2))
    mean, error = mean_and_error(values, None, None)
    assert_allclose(mean, values.mean(axis=0))
    assert_allclose(error, values.std(axis=0, ddof=1) / np.sqrt(60))
    # Copies of a sample in one group do not make the mean more certain.
    assert_allclose(mean_and_error(np.repeat(values, 5, axis=0), None, np.repeat(np.arange(60), 5)), (mean, error))
    assert_allclose(mean_and_error(values, np.full(60, 3.0), None), (mean, error))
    assert np.isnan(mean_and_error(values, None, np.zeros(60))[1]).all()
