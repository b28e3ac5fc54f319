"""Generalization bounds, sample sizes, the empirical curve, its plot, and the risk certificate of a fitted model."""

from __future__ import annotations

import itertools
import math
import sys

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import skspo as sk
from skspo.calibration import (
    CalibrationDisplay,
    PolyhedralCalibration,
    SampleComplexity,
    StronglyConvexCalibration,
    diameter,
    empirical_calibration,
    excess_risks,
    excess_spo_risk,
    generalization_bound,
    rademacher_bound,
    rademacher_monte_carlo,
    risk_certificate,
    spo_plus_range,
)

matplotlib.use("Agg")


# -- Rademacher complexity ---------------------------------------------------------------------------------------------


def exact_rademacher(X, radius, d, norm):
    """All sign patterns: the definition, with the supremum over the ball as a dual norm."""
    n = X.shape[0]
    total = 0.0
    for signs in itertools.product((-1.0, 1.0), repeat=n * d):
        moment = np.reshape(signs, (n, d)).T @ X
        total += np.sqrt(np.square(moment).sum()) if norm == "frobenius" else np.abs(moment).max()
    return radius * total / (n * 2 ** (n * d))


@pytest.mark.parametrize("norm", ["frobenius", "l1"])
def test_rademacher_complexity_against_all_signs(norm):
    rng = np.random.default_rng(0)
    for n, d, p in ((3, 2, 2), (4, 2, 1), (2, 3, 3), (8, 1, 2)):
        X, radius = rng.normal(size=(n, p)), rng.uniform(0.5, 3.0)
        exact = exact_rademacher(X, radius, d, norm)
        estimate = rademacher_monte_carlo(X, radius, d, norm=norm, n_draws=2000, random_state=1)
        assert abs(estimate.value - exact) <= 4 * estimate.error
        bound = rademacher_bound(X, radius, d, norm=norm)
        assert exact <= bound <= 4 * exact


@pytest.mark.parametrize("norm", ["frobenius", "l1"])
def test_rademacher_bound_in_many_cases(norm):
    rng = np.random.default_rng(1)
    for _ in range(120):
        n, d, p = int(rng.integers(2, 60)), int(rng.integers(1, 8)), int(rng.integers(1, 10))
        X = rng.standard_t(3, size=(n, p))
        estimate = rademacher_monte_carlo(X, 1.0, d, norm=norm, n_draws=100, random_state=2)
        assert estimate.value <= rademacher_bound(X, 1.0, d, norm=norm) + 4 * estimate.error
        # Doubling the data halves the square.
        twice = rademacher_bound(np.concatenate([X, X]), 1.0, d, norm=norm)
        assert_allclose(twice, rademacher_bound(X, 1.0, d, norm=norm) / math.sqrt(2))


@pytest.mark.parametrize("norm", ["frobenius", "l1"])
def test_the_supremum_over_the_ball(norm):
    """The dual norm used above is the maximum of a linear function over the ball: maximize it numerically."""
    rng = np.random.default_rng(2)
    X, signs = rng.normal(size=(5, 2)), rng.choice([-1.0, 1.0], size=(5, 2))
    moment = signs.T @ X

    def value(b):
        size = np.linalg.norm(b) if norm == "frobenius" else np.abs(b).sum()
        return -float(moment.ravel() @ b) / size

    starts, options = rng.normal(size=(8, 4)), {"maxiter": 4000}
    best = max(-minimize(value, b, method="Nelder-Mead", options=options).fun for b in starts)
    dual = np.linalg.norm(moment) if norm == "frobenius" else np.abs(moment).max()
    assert_allclose(best, dual, rtol=1e-3)


# -- the SPO+ loss and its generalization ------------------------------------------------------------------------------

REGIONS = [(sk.Simplex(), 4), (sk.Box(-1, 2), 3), (sk.L1Ball(1.5), 4), (sk.Ellipsoid(radius=0.7), 3),
           (sk.EntropySimplex(), 4), (sk.ShortestPath.grid(2, 3), 7)]  # fmt: skip


def test_loss_is_lipschitz_and_in_its_range():
    rng = np.random.default_rng(3)
    closest = 0.0
    for region, d in REGIONS:
        D = float(diameter(region, d))
        C, first, second = rng.normal(size=(3, 300, d)) * rng.choice([0.1, 1.0, 5.0], size=(3, 300, 1))
        loss = sk.SPOPlusLoss(region)
        one, two = loss.value(C, first), loss.value(C, second)
        assert (np.abs(one - two) <= 2 * D * np.linalg.norm(first - second, axis=1) + 1e-12).all()
        top = D * np.linalg.norm(C - 2 * first, axis=1)
        assert (one >= -1e-12).all() and (one <= top + 1e-12).all()
        closest = max(closest, float((one / top).max()))
        c, g = np.linalg.norm(C, axis=1).max(), np.linalg.norm(first, axis=1).max()
        assert one.max() <= spo_plus_range(D, c, g)
    assert closest > 0.9


def test_generalization_bound_value_and_coverage():
    """120 training sets: no model of a grid over the class deviates by more than the bound."""
    assert generalization_bound(0.2, 3.0, 5.0, 50, 0.1) == pytest.approx(
        4 * 2**0.5 * 3.0 * 0.2 + 5.0 * (2 * math.log(10.0) / 50) ** 0.5
    )
    rng = np.random.default_rng(4)
    region, n, radius = sk.Box(-1.0, 1.0), 40, 2.0
    loss = sk.SPOPlusLoss(region)
    angles = np.linspace(0, 2 * math.pi, 10, endpoint=False)
    models = [r * np.array([[math.cos(a)], [math.sin(a)]]) for r in (0.5, 2.0) for a in angles]

    def draw(m):
        X = rng.uniform(-1, 1, size=(m, 1))
        return X, X @ [[1.0, -0.5]] + rng.uniform(-1, 1, size=(m, 2))

    X, C = draw(20_000)
    truth = np.array([loss.value(C, X @ B.T).mean() for B in models])
    worst = []
    for _ in range(120):
        X, C = draw(n)
        worst.append(max(abs(loss.value(C, X @ B.T).mean() - t) for B, t in zip(models, truth, strict=True)))
    b = spo_plus_range(diameter(region, 2), math.hypot(2.0, 1.5), radius)
    bound = generalization_bound(rademacher_bound(np.ones((n, 1)), radius, 2), float(diameter(region, 2)), b, n, 0.05)
    assert max(worst) <= bound
    assert max(worst) > bound / 100


def test_sample_sizes():
    rng = np.random.default_rng(5)
    for i in range(120):
        if i % 2:
            calibration = PolyhedralCalibration(2.0, 1.5, int(rng.integers(1, 4)), 1.0, beta=0.5, domain=2.0)
        else:
            calibration = StronglyConvexCalibration(1.0, rng.uniform(1.0, 2.0), 3, rng.uniform(0.1, 2.0))
        plan = SampleComplexity(calibration, 2.0, rng.uniform(0.1, 2.0), rng.uniform(0.5, 5.0), rng.uniform(0.01, 0.49))
        eps = rng.uniform(0.05, 5.0)
        n = plan.sample_size(eps)
        assert plan.bound(n) <= eps
        assert n == 1 or plan.bound(min(n - 1, int(n * (1 - 1e-12)))) > eps
        # The excess SPO+ risk by its own formula.
        term = 4 * 2**0.5 * 2.0 * plan.complexity / n**0.5 + plan.loss_range * (2 * math.log(1 / plan.delta) / n) ** 0.5
        assert_allclose(plan.excess_surrogate(n), 2 * term)
        assert_allclose(plan.bound(n), excess_spo_risk(2 * term, calibration))
        # The rates of the corollaries, for all n.
        constant, exponent = plan.rate
        assert exponent == (0.25 if i % 2 else 0.5)
        for m in (1, 10, 10**4, 10**9, 10**14):
            assert plan.bound(m) <= constant * math.sqrt(math.log(1 / plan.delta)) / m**exponent * (1 + 1e-12)
        # The exponent is exact: asymptotically sixteen times the data halve (quarter) the bound.
        factor = plan.bound(16 * 10**18) / plan.bound(10**18)
        assert_allclose(factor, 0.5 if i % 2 else 0.25, rtol=1e-2)


def test_sample_sizes_beyond_integers_that_floats_can_tell_apart():
    plan = SampleComplexity(PolyhedralCalibration(9.0, 1.0, 12, 1.0, domain=1.0), 9.0, 1.0, 1.0, 0.1)
    n = plan.sample_size(0.01)
    assert n > 2**80 and plan.bound(n) <= 0.01 < plan.bound(int(n * 0.999))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["polyhedral", "level-set"])
def test_corollaries_on_trained_models(kind):
    """100 training sets each: the minimizer's excess SPO risk is within the bound for its class."""
    rng = np.random.default_rng(6)
    region = sk.Box(-1.0, 1.0) if kind == "polyhedral" else sk.Ellipsoid()
    truth = np.array([[1.0], [-0.6]])
    X_new = rng.uniform(-1, 1, size=(4000, 1))
    mean = X_new @ truth.T
    W = region.argmin(mean)
    radius, n = 6.0, 25
    if kind == "polyhedral":
        # Uniform noise on [-3, 3]^2 has the density 1/36, at least 0.05 times any N(cbar, I) wherever |c|^2 <= 2:
        # there it is inside the square, and the normal density is at most 1 / (2 pi).
        calibration = PolyhedralCalibration.from_region(region, n_dim=2, M=1.0, alpha=0.05, beta=1.2, domain=1.0)
        noise, cost_bound = (lambda m: rng.uniform(-3, 3, size=(m, 2))), math.hypot(4.0, 3.6)
    else:
        calibration = StronglyConvexCalibration.from_region(region, n_dim=2, beta=5.0)

        def noise(m):
            angle = rng.uniform(0, 2 * math.pi, size=m)
            return np.column_stack([np.cos(angle), np.sin(angle)])

        cost_bound = 1.0 + math.hypot(1.0, 0.6)
    b = spo_plus_range(diameter(region, 2), cost_bound, radius)
    plan = SampleComplexity(calibration, float(diameter(region, 2)), radius * 2**0.5, b, 0.05)
    worst = 0.0
    for _ in range(100):
        X = rng.uniform(-1, 1, size=(n, 1))
        model = sk.SPOPlusRegressor(region, fit_intercept=False, tol=1e-4).fit(X, X @ truth.T + noise(n))
        assert np.linalg.norm(model.coef_) <= radius
        excess = np.einsum("ij,ij->i", mean, model.decide(X_new) - W).mean()
        worst = max(worst, excess)
        assert 0 <= excess <= plan.bound(n)
    assert worst > 0.01


# -- the empirical curve -----------------------------------------------------------------------------------------------


def normal_sampler(mean, sigma=1.0):
    mean = np.asarray(mean, dtype=float)
    return lambda n, rng: mean + sigma * rng.normal(size=(n, mean.size))


def test_empirical_calibration_against_a_grid():
    """In the plane every direction can be tried: the search must come within noise of the best one."""
    mean, eps = np.array([0.6, 0.2]), [0.1, 0.5, 1.0]
    region = sk.L1Ball()
    found = empirical_calibration(region, normal_sampler(mean), eps, c_bar=mean, random_state=0)
    C = np.random.default_rng(7).normal(size=(2000, 2)) + mean
    grid = np.stack(np.meshgrid(np.linspace(-1.5, 1.5, 31), np.linspace(-1.5, 1.5, 31)), axis=-1).reshape(-1, 2)
    risks = excess_risks(region, grid, C, c_bar=mean, symmetric=True)
    for level, delta, low, high, c_hat, spo in zip(*found, strict=True):
        assert spo >= level
        best = risks.spo_plus[risks.spo >= level].min()
        assert delta <= 1.05 * best + 3 * risks.spo_plus_error.max()
        assert low <= delta <= high
        again = excess_risks(region, c_hat, C, c_bar=mean, symmetric=True)
        assert again.spo[0] == pytest.approx(spo)
        assert low - 3 * again.spo_plus_error[0] <= again.spo_plus[0] <= high + 3 * again.spo_plus_error[0]
    assert (np.diff(found.delta) > 0).all()
    # The order of eps only matters through the randomness of the search.
    again = empirical_calibration(region, normal_sampler(mean), eps[::-1], c_bar=mean, random_state=0)
    assert_allclose(again.delta[::-1], found.delta)


@pytest.mark.slow
def test_empirical_calibration_in_closed_form():
    """On [-1, 1] with N(m, s): the best prediction is just below zero, Delta = -m, and the risk an integral."""
    m, s = 0.5, 1.0
    found = empirical_calibration(sk.Box(-1.0, 1.0), normal_sampler([m], s), [0.3, 1.0], c_bar=[m], n_samples=100_000,
                                  random_state=1)  # fmt: skip
    # E[(c - 2 m)(w*(c) - w*(c - 2 m))] = 2 E[(2 m - c) 1{0 < c < 2 m}], any eps up to 2 m.
    c = np.linspace(0, 2 * m, 100_001)
    density = np.exp(-0.5 * ((c - m) / s) ** 2) / (s * math.sqrt(2 * math.pi))
    exact = 2 * np.trapezoid((2 * m - c) * density, c)
    assert (found.lower <= exact).all() and (exact <= found.upper).all()
    assert_allclose(found.predictions, 0.0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("region", "mean"),
    [(sk.Simplex(), [0.3, 0.0, -0.2]), (sk.Simplex(sense="max"), [0.3, 0.0, -0.2]), (sk.Ellipsoid(), [0.5, 0.5]),
     (sk.EntropySimplex(), [1.0, 0.0, 0.5])],
    ids=["simplex", "simplex-max", "ball", "entropy"],
)  # fmt: skip
def test_theory_is_below_the_empirical_curve(region, mean):
    d = len(mean)
    visible = np.asarray(mean) - (np.mean(mean) if region.equalities(d).shape[0] else 0.0)
    if hasattr(region, "strong_convexity"):
        k = d - region.equalities(d).shape[0]
        bound = StronglyConvexCalibration.from_region(region, n_dim=d, beta=math.sqrt(k) / np.linalg.norm(visible))
    else:
        bound = PolyhedralCalibration.from_region(region, n_dim=d, M=1.0, beta=float(np.linalg.norm(visible)))
    reach = float(visible @ (region.argmin(-visible) - region.argmin(visible))) * (-1 if region.sense == "max" else 1)
    eps = np.array([0.1, 0.5, 0.9]) * reach
    found = empirical_calibration(region, normal_sampler(mean), eps, c_bar=mean, n_samples=1000, n_directions=16,
                                  random_state=2)  # fmt: skip
    assert np.isfinite(found.delta).all()
    assert (bound(eps) <= found.lower).all()
    beyond = empirical_calibration(region, normal_sampler(mean), 1.01 * reach, c_bar=mean, n_samples=99, random_state=2)
    assert np.isinf(beyond.delta[0]) and np.isnan(beyond.predictions).all()


def test_empirical_calibration_without_a_mean_and_repeatable():
    options = dict(n_samples=500, n_directions=8, n_rounds=2, random_state=3)
    first = empirical_calibration(sk.L1Ball(), normal_sampler([0.5, 0.0]), 0.2, **options)
    second = empirical_calibration(sk.L1Ball(), normal_sampler([0.5, 0.0]), 0.2, **options)
    assert first.delta.shape == (1,) and first.predictions.shape == (1, 2)
    assert_allclose(first.delta, second.delta, rtol=0)


# -- the picture -------------------------------------------------------------------------------------------------------


def test_display():
    import matplotlib.pyplot as plt

    bound = PolyhedralCalibration.from_region(sk.L1Ball(), n_dim=2, M=1.0, beta=0.5)
    options = dict(c_bar=[0.5, 0.0], n_samples=200, n_rounds=2, random_state=0)
    sampler = normal_sampler([0.5, 0.0])
    display = CalibrationDisplay.from_sampler(sk.L1Ball(), sampler, [0.4, 0.2, 3.0], bound, **options)
    assert display.figure_ is display.ax_.figure
    x, y = display.line_.get_data()
    assert_allclose(x, [0.2, 0.4])  # sorted, and without the eps that no prediction reaches
    assert_allclose(y, display.result.delta[[1, 0]])
    assert_allclose(display.bound_.get_data()[1], bound(np.array([0.2, 0.4, 3.0])))
    assert len(display.ax_.get_legend().get_texts()) == 2
    fig, ax = plt.subplots()
    again = CalibrationDisplay(display.result).plot(ax=ax)
    assert again.ax_ is ax and again.figure_ is fig and again.bound_ is None
    assert CalibrationDisplay.from_result(display.result, bound, ax=ax).ax_ is ax
    plt.close("all")


def test_display_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install skspo\[plot\]"):
        CalibrationDisplay.from_sampler(sk.L1Ball(), normal_sampler([0.5, 0.0]), 0.2)


# -- the certificate ---------------------------------------------------------------------------------------------------


def circle_data(n, seed, noise=0.05):
    """Features on [-1, 1], a linear mean, noise on a circle: rotationally symmetric and bounded."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], size=(n, 1)) * rng.uniform(0.5, 1.0, size=(n, 1))
    angle = rng.uniform(0, 2 * math.pi, size=n)
    return X, X @ [[0.6, 0.8]] + noise * np.column_stack([np.cos(angle), np.sin(angle)])


BALL = StronglyConvexCalibration.from_region(sk.Ellipsoid(), n_dim=2, beta=0.1)
BOUNDS = dict(radius=1.2, cost_bound=1.05, feature_bound=1.0)


def test_certificate_that_is_not_vacuous():
    n, D = 100_000, 2.0
    X, C = circle_data(n, 0)
    model = sk.SPOPlusRegressor(sk.Ellipsoid(), fit_intercept=False, tol=1e-4).fit(X, C)
    certificate = risk_certificate(model, X, C, BALL, **BOUNDS)
    assert not certificate.vacuous and "vacuous" not in str(certificate)
    assert certificate.excess_spo_risk < 0.6 * certificate.trivial_bound
    # Every number by hand.
    term = 4 * 2**0.5 * D * 1.2 * 2**0.5 / n**0.5 + D * (1.05 + 2.4) * (2 * math.log(20) / n) ** 0.5
    assert_allclose(certificate.generalization_term, term)
    assert_allclose(certificate.training_risk, sk.spo_plus_loss(C, model.predict(X), sk.Ellipsoid()))
    assert_allclose(certificate.excess_surrogate_risk, certificate.optimization_gap + 2 * term)
    assert_allclose(certificate.excess_spo_risk, certificate.excess_surrogate_risk * 4 * 1.01, rtol=1e-9)
    assert_allclose(certificate.trivial_bound, 2.1)
    # And the model's true excess risk, known from the true mean, is within it.
    X_new, _ = circle_data(10_000, 1)
    mean = X_new @ [[0.6, 0.8]]
    excess = np.einsum("ij,ij->i", mean, model.decide(X_new) - sk.Ellipsoid().argmin(mean)).mean()
    assert 0 <= excess <= certificate.excess_spo_risk


def test_vacuous_certificate_is_reported():
    X, C = circle_data(100, 2)
    model = sk.SPOPlusRegressor(sk.Ellipsoid(), fit_intercept=False).fit(X, C)
    certificate = risk_certificate(model, X, C, BALL, **BOUNDS)
    text = str(certificate)
    assert certificate.vacuous and "This bound is vacuous here" in text
    for word in ("training SPO+ risk", "optimization gap", "generalization term", "independent and identically",
                 "rotationally symmetric", "E[c | x] is a linear model"):  # fmt: skip
        assert word in text
    assert "read off the data" not in text
    guessed = risk_certificate(model, X, C, BALL)
    assert str(guessed).count("read off the data") == 3
    assert guessed.n_samples == 100


def exact_minimum(region, X, C, radius):
    """Least training risk over |B|_F <= radius, by CVXPY."""
    import cvxpy as cp

    n, d = C.shape
    B = cp.Variable((d, X.shape[1]))
    V = C - 2 * X @ B.T
    support, constraints = region.support_epigraph(V)
    W = region.argmin(C)
    loss = (cp.sum(support) + 2 * cp.sum(cp.multiply(X @ B.T, W)) - (C * W).sum()) / n
    problem = cp.Problem(cp.Minimize(loss), [*constraints, cp.norm(B, "fro") <= radius])
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "source"),
    [
        (sk.SPOPlusRegressor(fit_intercept=False), "estimator's dual bound"),
        (sk.SPOPlusRegressor(fit_intercept=False, alpha=1e-3), "dual bound"),
        (sk.SPOPlusRegressor(fit_intercept=False, alpha=1e-3, prior="least_squares", l1_ratio=0.3), "dual bound"),
        (sk.SPOPlusRegressor(fit_intercept=False, alpha=5.0), "reference"),
        (sk.SPOPlusRegressor(fit_intercept=False, surrogate_region=sk.EntropySimplex()), "reference"),
        (sk.SPORegressor(fit_intercept=False), "reference"),
    ],
    ids=["plain", "ridge", "least-squares-prior", "heavy-ridge", "surrogate", "spo"],
)
def test_optimization_gap_is_proved(estimator, source):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 2))
    C = X @ rng.normal(size=(2, 3)) + rng.normal(size=(40, 3))
    region = sk.Simplex()
    model = estimator.set_params(region=region).fit(X, C)
    radius = 6.0 + float(np.linalg.norm(model.coef_))  # so large that it does not bind
    calibration = PolyhedralCalibration.from_region(region, n_dim=3, M=1.0, domain=0.5)
    certificate = risk_certificate(model, X, C, calibration, radius=radius)
    gap = certificate.training_risk - exact_minimum(region, X, C, radius)
    assert gap - 1e-6 <= certificate.optimization_gap <= gap + 1e-3 * certificate.training_risk
    assert source in certificate.gap_source


def test_certificate_of_other_data_does_not_use_the_fit():
    X, C = circle_data(300, 3, noise=0.9)
    model = sk.SPOPlusRegressor(sk.L1Ball(), fit_intercept=False).fit(X, C)
    calibration = PolyhedralCalibration.from_region(sk.L1Ball(), n_dim=2, M=1.0, domain=0.5)
    assert "estimator's dual bound" in risk_certificate(model, X, C, calibration).gap_source
    X_other, C_other = circle_data(300, 4, noise=0.9)
    assert "estimator's dual bound" not in risk_certificate(model, X_other, C_other, calibration).gap_source
    weighted = sk.SPOPlusRegressor(sk.L1Ball(), fit_intercept=False).fit(X, C, sample_weight=np.arange(300.0))
    assert "estimator's dual bound" not in risk_certificate(weighted, X, C, calibration).gap_source


def test_a_class_beyond_the_certificate_is_not_covered():
    """Without a ridge a dual bound holds within a radius; for a larger class a weaker bound is used."""
    X, C = circle_data(50, 5, noise=0.9)
    model = sk.SPOPlusRegressor(sk.L1Ball(), fit_intercept=False).fit(X, C)
    calibration = PolyhedralCalibration.from_region(sk.L1Ball(), n_dim=2, M=1.0, domain=0.5)
    assert "dual bound" not in risk_certificate(model, X, C, calibration, radius=1e4).gap_source


def test_certificate_with_intercept_and_sense():
    rng = np.random.default_rng(9)
    X = rng.uniform(-1, 1, size=(60, 2))
    C = X @ rng.normal(size=(2, 3)) + 1.0 + 0.1 * rng.normal(size=(60, 3))
    values = {}
    for sense, sign in (("min", 1.0), ("max", -1.0)):
        model = sk.SPOPlusRegressor(sk.Ellipsoid(sense=sense), alpha=0.01).fit(X, sign * C)
        calibration = StronglyConvexCalibration.from_region(sk.Ellipsoid(), n_dim=3)
        values[sense] = risk_certificate(model, X, sign * C, calibration)
    assert_allclose(values["min"].training_risk, values["max"].training_risk, rtol=1e-4)
    assert_allclose(values["min"].generalization_term, values["max"].generalization_term, rtol=1e-3)


def test_sample_size_steps_back_over_a_division_that_was_rounded_up(monkeypatch):
    bound = sk.calibration.SampleComplexity(
        sk.calibration.StronglyConvexCalibration(1.0, 1.0, 3, 1.0), 1.0, 1.0, 1.0, 0.1
    )
    n = bound.sample_size(0.5)
    assert bound.bound(n) <= 0.5 < bound.bound(n - 1)
    monkeypatch.setattr(sk.calibration.generalization, "ceil", lambda x: int(np.ceil(x)) + 3)
    assert bound.sample_size(0.5) == n
