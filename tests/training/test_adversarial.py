"""Numerically difficult problems: every fit is certified, warns, or is refused with the cause (see ``adversarial``).

By default the same 210 generated problems in every run;
``HYPOTHESIS_PROFILE=nightly pytest tests/training/test_adversarial.py`` makes twelve times as many, new ones each time.
With ``SKSPO_ADVERSARIAL_COUNTS=counts.json`` the outcomes are counted in that file; ``--hypothesis-show-statistics``
has their shares.
"""

import json
import os
import time
import warnings

import adversarial
import adversarial_judge
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from adversarial import problems
from adversarial_judge import judge_cv, judge_spo, judge_spo_plus, judge_two_stage
from hypothesis import HealthCheck, given, settings
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from small_sets import cheapest

from skspo import (
    Box,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    L1Ball,
    LqBall,
    OracleRegion,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    TopK,
    TwoStageRegressor,
    normalized_spo_loss,
    spo_plus_loss,
)
from skspo.solvers import ConicSolver

TIMES = {"ci": 1, "nightly": 12, "explore": 12}[os.environ.get("HYPOTHESIS_PROFILE", "ci")]

needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= 1024, reason="the judge computes in a wider range than that of doubles"
)


def generated(count, family, estimator="spo+"):
    """Run the checks on ``count`` generated problems, or on TIMES as many."""

    def decorate(judge):
        health = [HealthCheck.too_slow, HealthCheck.data_too_large]
        limits = settings(max_examples=count * TIMES, suppress_health_check=health)
        return needs_long_double(limits(given(problems(family, estimator))(judge)))

    return decorate


@pytest.fixture(scope="module", autouse=True)
def counts():
    yield
    path = os.environ.get("SKSPO_ADVERSARIAL_COUNTS")
    if path:
        total = {name: dict(sorted(outcomes.items())) for name, outcomes in adversarial_judge.COUNTS.items()}
        with open(path, "w") as file:
            json.dump(total, file, indent=1)


@pytest.mark.slow
@generated(75, "polyhedra")
def test_polyhedra(problem):
    adversarial_judge.count("SPO+ on polyhedra", judge_spo_plus(problem))


@pytest.mark.slow
@generated(50, "smooth")
def test_smooth_regions(problem):
    adversarial_judge.count("SPO+ on smooth regions", judge_spo_plus(problem))


@generated(30, "oracles")
def test_oracles(problem):
    adversarial_judge.count("SPO+ on oracles", judge_spo_plus(problem))


@generated(15, "all", "cv")
def test_cross_validation_and_path(problem):
    adversarial_judge.count("SPO+ cross-validation and path", judge_cv(problem))


@pytest.mark.slow
@generated(20, "all", "spo")
def test_spo(problem):
    adversarial_judge.count("SPO", judge_spo(problem))


@generated(20, "all", "two-stage")
def test_two_stage(problem):
    adversarial_judge.count("two-stage", judge_two_stage(problem))


# -- by hand -----------------------------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
X, C = rng.normal(size=(20, 3)).round(2), rng.normal(size=(20, 4)).round(2)


def strict(action):
    """The result, without any warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return action()


def fit(X=X, y=C, region=None, sample_weight=None, offset=None, **params):
    region = Simplex() if region is None else region
    return strict(lambda: SPOPlusRegressor(region, **params).fit(X, y, sample_weight, offset))


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": lambda a: adversarial.lay_out(a, "strided"),
    "read-only": lambda a: adversarial.lay_out(a, "read-only"),
    "list": np.ndarray.tolist,
    "objects": lambda a: a.astype(object),
    "frame": pd.DataFrame,
    "object-frame": lambda a: pd.DataFrame(a, dtype=object),
    "nullable-frame": lambda a: pd.DataFrame(a).convert_dtypes(),
    "big-endian": lambda a: a.astype(">f8"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "region", [Simplex(), EntropySimplex(), OracleRegion(cheapest)], ids=lambda region: region.label
)
def test_the_layout_of_arrays_changes_nothing(layout, region):
    change = LAYOUTS[layout]
    model, other = fit(region=region), fit(change(X), change(C), region)
    assert_array_equal(other.coef_, model.coef_)
    assert_array_equal(other.intercept_, model.intercept_)
    assert_array_equal(other.predict(change(X)), model.predict(X))
    assert_array_equal(other.decide(change(X)), model.decide(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8, bool])
def test_the_type_of_numbers_changes_nothing(dtype):
    X_cast, C_cast = (100 * X).astype(np.int8).astype(dtype), np.abs(10 * C).astype(np.int8).astype(dtype)
    model, other = fit(X_cast.astype(float), C_cast.astype(float)), fit(X_cast, C_cast)
    assert_array_equal(other.coef_, model.coef_)
    assert_array_equal(other.predict(X_cast), model.predict(X_cast.astype(float)))


def test_polars_frames_equal_arrays():
    pl = pytest.importorskip("polars")
    names, costs = list("abc"), list("wxyz")
    X_pl, C_pl = pl.DataFrame(X, schema=names), pl.DataFrame(C, schema=costs)
    model, other = fit(), fit(X_pl, C_pl)
    assert_array_equal(other.coef_, model.coef_)
    assert list(other.feature_names_in_) == names
    assert_array_equal(other.decide(X_pl), model.decide(X))
    with pytest.raises(ValueError, match="feature names"):
        other.predict(X_pl.rename({"a": "q"}))
    whole = X_pl.with_columns(pl.Series("b", [1, 2] * 10))  # columns of different types
    assert_array_equal(fit(whole, C_pl).coef_, fit(whole.to_numpy().astype(float), C).coef_)
    with pytest.raises(ValueError, match="could not convert string to float"):
        fit(X_pl.with_columns(pl.Series("b", ["red"] * 20)), C_pl)


def test_frames_with_text_or_gaps_are_refused():
    frame = pd.DataFrame(X, columns=list("abc")).astype(object)
    frame.loc[3, "b"] = "red"
    with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
        fit(frame)
    gaps = pd.DataFrame(X, columns=list("abc")).convert_dtypes()
    gaps.loc[3, "b"] = pd.NA
    with pytest.raises(ValueError, match="X contains NaN"):
        fit(gaps)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_features(form):
    """Linear models accept them (see test_sparse.py); a shared two-stage model and a network do not."""
    S = form(X)
    for model in (
        SPOPlusRegressor(Simplex()).fit(S, C),
        SPOPlusRegressor(Simplex(), random_state=0).partial_fit(S, C),
        SPOPlusRegressorCV(Simplex(), n_alphas=3).fit(S, C),
        SPORegressor(Simplex(), max_iter=20, random_state=0).fit(S, C),
    ):
        np.testing.assert_allclose(model.predict(S), model.predict(X), rtol=1e-9, atol=1e-12)
    with pytest.raises(TypeError, match=r"Sparse data was passed.*dense data is required.*toarray"):
        TwoStageRegressor(None, Simplex(), shared=True).fit(form(np.tile(X, 4)), C)
    # The two-stage estimator accepts the input of its regressor.
    model = TwoStageRegressor(None, Simplex()).fit(S, C)
    np.testing.assert_allclose(model.predict(S), TwoStageRegressor(None, Simplex()).fit(X, C).predict(X), atol=1e-6)
    assert model.decide(S).shape == C.shape


@pytest.mark.parametrize("unit", [2.0**1000, 2.0**-1000, 2.0**-1070])
def test_the_unit_of_weights_does_not_matter(unit):
    weight = rng.integers(1, 9, size=20).astype(float)
    model, other = fit(sample_weight=weight), fit(sample_weight=weight * unit)
    assert_array_equal(other.coef_, model.coef_)
    C_hat = model.predict(X)
    one, same = (lambda w=w: spo_plus_loss(C, C_hat, Simplex(), sample_weight=w) for w in (weight, weight * unit))
    assert strict(one) == strict(same)
    assert strict(lambda: model.score(X, C, weight * unit)) == model.score(X, C, weight)


def test_negligible_weights_are_zero():
    weight = np.ones(20)
    weight[:5] = 1e-300
    assert_array_equal(fit(sample_weight=weight).coef_, fit(X[5:], C[5:]).coef_)


@pytest.mark.parametrize("unit", [2.0**900, 2.0**-900])
@pytest.mark.parametrize("prior", ["zero", "least_squares"])
@pytest.mark.parametrize("region", [Simplex(), EntropySimplex(), Knapsack([1, 1, 2, 3], 4)], ids=str)
def test_extreme_units_only_scale_the_result(region, prior, unit):
    model = fit(region=region, prior=prior)
    costs, features = fit(X, C * unit, region, prior=prior), fit(X * unit, C, region, prior=prior)
    assert costs.objective_ == pytest.approx(model.objective_ * unit, rel=2e-6)
    assert features.objective_ == pytest.approx(model.objective_, rel=2e-6)
    both = fit(X * unit, C * unit, region, prior=prior)  # rows are in the same order, so that rounding is the same
    assert_array_equal(both.coef_, model.coef_)
    assert_array_equal(both.intercept_, model.intercept_ * unit)


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        ({"X": X * 1e300}, r"X has values of size .*e\+300. Beyond 1e\+280"),
        ({"y": C * 1e300}, r"y has values of size .*e\+300. Beyond 1e\+280"),
        ({"offset": C * 1e300}, r"offset has values of size .*e\+300. Beyond 1e\+280"),
        ({"offset": C * 1e120}, r"offset is .*e\+120 times the typical cost"),
        ({"y": C * 1e-310}, r"The costs are of size .*e-310. .* use other units of cost"),
        ({"X": X * 1e-310}, r"A feature varies by .*e-311 and costs are of size .* Rescale the features"),
        ({"X": X * 1e-200, "y": C * 1e200}, r"A feature varies by .*e-201 and costs are of size .*e\+200"),
        ({"X": X * 1e200, "y": C * 1e-200}, r"A feature varies by .*e\+200 and costs are of size .*e-200"),
        ({"X": X * 1e-60, "alpha": 1.0}, r"The penalty overflows: features of size .*e-61"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_numbers_outside_the_range_of_doubles_are_refused(change, pattern):
    model = fit()
    before = model.coef_.copy()
    data = {name: change.get(name) for name in ("X", "y", "offset")}
    model.set_params(**{name: value for name, value in change.items() if name == "alpha"})
    X_bad, C_bad = (X if data["X"] is None else data["X"]), (C if data["y"] is None else data["y"])
    with pytest.raises(ValueError, match=pattern):
        strict(lambda: model.fit(X_bad, C_bad, offset=data["offset"]))
    assert_array_equal(model.coef_, before)


def test_chunks_have_the_same_limits():
    with pytest.raises(ValueError, match="y has values of size"):
        SPOPlusRegressor(Simplex()).fit_chunks([(X, C), (X, C * 1e300)])
    with pytest.raises(ValueError, match=r"A feature varies by .* Rescale"):
        SPOPlusRegressor(Simplex()).fit_chunks([(X * 1e-310, C)] * 2)


# -- mistakes found by generated problems ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "interior-point", "conic", "bundle"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("region", [TopK(4), Box(2.0, 2.0), Box([0, 1, 2, 3], [0, 1, 2, 3])], ids=str)
def test_a_region_of_one_decision(region, alpha, solver):
    model = fit(region=region, solver=solver, alpha=alpha)
    assert model.objective_ == pytest.approx(0.0, abs=1e-9)
    assert_array_equal(model.decide(X), np.tile(region.argmin(C[0]), (20, 1)))


def test_the_back_end_does_not_cycle():
    """HiGHS never stopped on this badly scaled program."""
    kinds = {"X": "entries-12", "C": "subnormal-beside-normal", "offset": "normal", "weight": "none", "layout": "C"}
    kinds |= {"n": 6, "p": 1, "d": 7, "repeated": True, "seed": 23506113}
    region = ShortestPath.grid(2, 3)
    problem = adversarial.assemble(kinds, {"shared": False, "fit_intercept": False}, region, None)
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning):
        model = SPOPlusRegressor(region, fit_intercept=False, solver=ConicSolver("HIGHS"))
        model.fit(problem.X, problem.C, offset=problem.offset)
    assert np.isfinite(model.coef_).all()
    assert time.perf_counter() - start < 120.0  # it is a fraction of a second


def test_back_ends_ignore_samples_of_tiny_weight():
    weight = np.where(np.arange(20) < 10, 1.0, 1e-200)
    model = fit(sample_weight=weight, solver="conic")
    assert model.duality_gap_ <= 1e-6
    heavy = fit(X[:10], C[:10], solver="conic")
    assert model.objective_ == pytest.approx(heavy.objective_, rel=1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_costs_without_a_visible_component(shared):
    nothing = np.zeros((20, 8))
    for region in (Simplex(), EntropySimplex(), L1Ball()):
        fit(nothing, C, region, fit_intercept=False, shared=shared)
        strict(lambda region=region: SPORegressor(region, fit_intercept=False, shared=shared).fit(nothing, 0 * C + 3.7))


@pytest.mark.slow
def test_costs_of_zero_with_an_offset():
    offset = C.copy()
    offset[0] *= 1e9
    for solver in ("line-search", "auto"):
        region = Simplex() if solver == "line-search" else EntropySimplex()
        model = SPORegressor(region, solver=solver, alpha=0.1, max_iter=20, random_state=0)
        outcome, _ = adversarial_judge.run(lambda model=model: model.fit(X, 0 * C, offset=offset))
        assert outcome != "refused"
        assert np.isfinite(model.coef_).all()
        assert model.objective_ >= 0.0


def test_constant_columns_have_no_penalty():
    constant = np.column_stack([X, np.full(20, 3.7), np.zeros(20)])
    for params in ({"l1_ratio": 0.5}, {"l1_ratio": 0.0}):
        model = fit(constant, C, alpha=10.0, solver="conic", **params)
        assert_array_equal(model.coef_[:, 3:], 0.0)
        penalty = params["l1_ratio"] * np.abs(model.coef_).sum() + (1 - params["l1_ratio"]) / 2 * (model.coef_**2).sum()
        loss = spo_plus_loss(C, model.predict(constant), Simplex())
        assert model.objective_ == pytest.approx(loss + 10.0 * penalty, rel=1e-9)


def test_negligible_best_costs_do_not_normalize_the_loss():
    C_true, C_hat = np.array([[1e-310, 1.0]]), np.array([[1.0, 0.0]])
    with pytest.warns(UndefinedMetricWarning, match="best costs are zero") as caught:
        assert normalized_spo_loss(C_true, C_hat, Simplex()) == 1.0
    assert len(caught) == 1  # and no warning about an overflow


@pytest.mark.parametrize("region", [LqBall(), LqBall(1.5), Ellipsoid()], ids=str)
def test_decisions_of_balls_have_no_derivative_at_zero_costs(region):
    costs = np.array([[1e-310, 2e-310], [1.0, 2.0], [0.0, 0.0]])
    moved = strict(lambda: region.derivative(costs, np.array([[1.0, 0.0]] * 3)))
    assert_array_equal(moved[[0, 2]], 0.0)
    # The other row, by finite differences.
    step = 1e-6 * np.array([[1.0, 0.0]])
    quotient = (region.argmin(costs[1:2] + step) - region.argmin(costs[1:2] - step)) / 2e-6
    np.testing.assert_allclose(moved[1:2], quotient, rtol=1e-6)
    M = strict(lambda: region.smoothed(costs, 1e-3, curvature=True).M)
    assert np.isfinite(M).all()
