"""Details that all other tests had let pass: each one was found by a mistake planted on purpose (tools/mutants.py)."""

import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import skspo as sk
import skspo._training.chunked
import skspo.calibration.generalization
import skspo.estimators._linear
import skspo.solvers.lbfgs
import skspo.solvers.spo.descent as descent
from skspo._training.certificate import CERTIFICATE_RADIUS, Bound
from skspo._training.chunked import ChunkedObjective, part_gradient
from skspo._training.design import SharedDesign
from skspo._training.merge import merge_rows
from skspo._training.objective import GAP_FLOOR, LinearObjective
from skspo._training.rows import LocalRows, _together
from skspo.data.chunks import Chunk
from skspo.datasets import make_cost_sensitive_classification, make_knapsack, make_portfolio
from skspo.estimators._cv import SPOPlusRegressorCV, _Fold
from skspo.estimators._path import LARGEST, spo_plus_path
from skspo.losses import check_offset
from skspo.regions.barriers import entropy_argmin, entropy_value, log_barrier_argmin, log_barrier_value
from skspo.solvers import (
    BundleSolver,
    ConicSolver,
    InteriorPointSolver,
    LBFGSSolver,
    NewtonSolver,
    Result,
    SGDSolver,
    Solver,
    Status,
)
from skspo.solvers.base import Progress
from skspo.solvers.interior_point.reduced_form import region_form
from skspo.solvers.sgd import AdamState, Stream
from skspo.solvers.spo.milp import MILPSolver


def data(n=30, p=3, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X @ rng.normal(size=(d, p)).T) ** 2 + rng.normal(size=(n, d)) + 1.0


def spo_plus(X, C, region=None, weight=None, **params):
    region = sk.Simplex() if region is None else region
    return LinearObjective(sk.SPOPlusLoss(region), region, X, C, weight, **params)


# -- losses and metrics ------------------------------------------------------------------------------------------------


def test_an_offset_of_as_many_costs_as_samples_is_the_same_for_all():
    known = np.array([1.0, 2.0, 3.0])
    assert_array_equal(check_offset(known, (3, 3)), [known, known, known])
    chunks = list(sk.ChunkedData.from_arrays(np.zeros((3, 2)), np.zeros((3, 3)), offset=known, chunk_rows=2))
    for chunk in chunks:
        assert_array_equal(chunk.arrays().offset, np.tile(known, (chunk.n_rows, 1)))


def test_decisions_of_one_sample_are_not_those_of_all():
    with pytest.raises(ValueError, match="W_true"):
        sk.SPOLoss(sk.Simplex()).value(np.ones((3, 2)), np.ones((3, 2)), W_true=np.array([[1.0, 0.0]]))


def test_a_loss_that_rounding_makes_negative_is_zero():
    # An oracle whose best decision for the truth is worse than another one by rounding.
    region = sk.OracleRegion(lambda C: np.where(C > 1.0, 1.0 + 1e-12, 1.0), 1)
    assert sk.SPOLoss(region).value([[2.0]], [[0.5]])[0] < 0.0
    assert_array_equal(sk.spo_loss([[2.0]], [[0.5]], region, per_sample=True), [0.0])


def test_no_warning_where_nothing_is_lost():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sk.normalized_spo_loss([[0.0, 1.0]], [[0.0, 1.0]], sk.Simplex()) == 0.0


# -- the objective -----------------------------------------------------------------------------------------------------


def test_gap_is_relative_to_a_share_of_the_trivial_loss_at_least():
    X, C = data()
    objective = spo_plus(X, C)
    trivial = (C.max(axis=1) - C.min(axis=1)).mean() / objective.scale
    assert objective.trivial_value() == pytest.approx(trivial, rel=1e-12)
    assert objective.relative_gap(1e-6, 0.0) == pytest.approx(1e-6 / (GAP_FLOOR * trivial), rel=1e-12)
    assert objective.relative_gap(2.0 * trivial, trivial) == pytest.approx(0.5)


def test_another_penalty_leaves_the_first_objective_as_it_was():
    objective = spo_plus(*data())
    coef, intercept = objective.to_user(objective.least_squares)
    objective.with_penalty(1.0, 0.0)
    assert_array_equal(objective.to_user(objective.least_squares)[0], coef)
    assert_array_equal(objective.to_user(objective.least_squares)[1], intercept)


@pytest.mark.parametrize("prior", ["zero", "least_squares"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_coefficients_there_and_back(alpha, prior):
    objective = spo_plus(*data(), alpha=alpha, prior=prior)
    Theta = objective.canonical(objective.least_squares)
    assert_allclose(objective.from_user(*objective.to_user(Theta)), Theta, atol=1e-12)


def test_a_sample_of_rows_has_a_trivial_loss_of_its_own():
    X, C = data(40)
    objective = spo_plus(X, C, weight=np.linspace(1.0, 3.0, 40))
    objective.trivial_value()
    few = objective.thinned(7)
    extent = few.C.max(axis=1) - few.C.min(axis=1)
    assert few.trivial_value() == pytest.approx(float(few.weight @ extent), rel=1e-12)
    assert few.trivial_value() != pytest.approx(objective.trivial_value(), rel=1e-6)


def test_another_loss_knows_the_offset():
    X, C = data()
    offset = np.random.default_rng(1).normal(size=C.shape)
    region = sk.Simplex()
    spo = LinearObjective(sk.SPOLoss(region), region, X, C, offset=offset)
    Theta = np.random.default_rng(2).normal(size=spo.shape)
    expected, found = spo_plus(X, C, offset=offset), spo.with_loss(sk.SPOPlusLoss(region))
    assert found.value(Theta) == pytest.approx(expected.value(Theta), rel=1e-12)
    # The bound comes from costs and predictions alone, so that the offset must be in the costs.
    assert_array_equal(found.decisions(Theta), expected.decisions(Theta))


def test_rows_of_a_batch_have_their_own_regions():
    X, C = data()
    rng = np.random.default_rng(3)
    lower = rng.uniform(-2.0, 0.0, size=C.shape)
    region = sk.Box().with_rows({"lower": lower, "upper": lower + rng.uniform(1.0, 3.0, size=C.shape)}, *C.shape)
    objective = spo_plus(X, C, region)
    Theta, rows = rng.normal(size=objective.shape), np.array([11, 3, 17, 5])
    value, _, _ = objective.loss_gradient(Theta, rows, np.ones(4))
    V = 2.0 * objective.design.predict(Theta, rows) - objective.C[rows]
    low, high = objective.region.rows["lower"][rows], objective.region.rows["upper"][rows]
    best = np.where(objective.C[rows] < 0, high, low)
    assert value == pytest.approx((V * (best - np.where(V < 0, high, low))).sum(), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_decisions_outside_the_region_prove_nothing(alpha):
    objective = spo_plus(*data(), alpha=alpha)
    best = InteriorPointSolver().solve(objective)
    # Moments that match, far off the simplex: as they are they would prove anything.
    fit = np.linalg.lstsq(objective.design.Z, objective.C, rcond=None)[0]
    outside = objective.W + 10.0 * (objective.C - objective.design.Z @ fit)
    assert objective.dual_value(outside, best.coef).value > 2.0 * best.objective
    assert objective.lower_bound(outside, best.coef).value <= best.objective * (1.0 + 1e-9)


def test_residual_moments_vanish_at_an_optimum():
    """Dual decisions of an optimum have the moments that the penalty asks for, so nothing is left to correct."""
    for params in ({"alpha": 0.1}, {"alpha": 0.1, "prior": "least_squares"}, {"alpha": 0.05, "l1_ratio": 0.5}):
        objective = spo_plus(*make_portfolio(60, 3, 5, degree=2, random_state=0), sk.EntropySimplex(), **params)
        Theta = LBFGSSolver(tol=1e-9).solve(objective).coef
        V = objective.decisions(Theta)
        G = 2.0 * objective.design.adjoint((objective.W - V) * objective.weight[:, None])
        assert np.abs(objective.moment_residual(G, Theta)).max() < 1e-4
        assert np.abs(G).max() > 1e-2


def test_rows_with_equal_keys_are_still_told_apart():
    # Two kinds of rows that the sorting key cannot tell apart, alternating.
    ratio = np.cos(1.0) / np.cos(2.0)
    kinds = np.array([[1.0, 0.0], [0.0, ratio]])
    key = (kinds * np.cos([1.0, 2.0])).sum(axis=1)
    assert key[0] == key[1]
    rows, weight = merge_rows(None, kinds[[0, 1, 0, 1, 0]])
    assert len(rows) == 2
    assert sorted(weight) == [2.0, 3.0]


def test_a_column_that_is_constant_up_to_rounding_has_no_coefficient():
    X, C = data(40)
    noisy = np.full(40, 1e6)
    noisy[::3] = np.nextafter(1e6, 2e6)
    model = sk.SPOPlusRegressor(sk.Simplex()).fit(np.column_stack([X, noisy]), C)
    plain = sk.SPOPlusRegressor(sk.Simplex()).fit(X, C)
    assert_array_equal(model.coef_[:, -1], 0.0)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-5)


# -- solvers -----------------------------------------------------------------------------------------------------------


def test_a_bound_is_never_above_the_value():
    objective = spo_plus(*data())
    objective.lower_bound = lambda *args, **kwargs: Bound(1e9, np.inf)
    objective.dual_value_from_moments = lambda constant, G, Theta: Bound(1e9, np.inf)
    for solver in (SGDSolver(max_iter=1, random_state=0), BundleSolver()):
        result = solver.solve(objective)
        assert result.lower_bound == result.objective


@pytest.mark.parametrize(
    ("solver", "region"),
    [(InteriorPointSolver(max_iter=1), sk.Simplex()), (NewtonSolver(max_iter=1), sk.EntropySimplex())],
)
def test_never_worse_than_the_start(solver, region):
    objective = spo_plus(*make_portfolio(12, 3, 4, degree=4, random_state=0), region)
    start = ConicSolver().solve(objective).coef
    assert solver.solve(objective, start).objective <= objective.value(start) * (1.0 + 1e-12)


class Halfway(LinearObjective):
    """Whatever the decisions, the bound is half of the value at the point around which it is proved."""

    def dual_value_from_moments(self, constant, G, Theta):
        return Bound(0.5 * self.value(Theta), np.inf)


def test_bundle_proves_its_bound_around_the_point_that_it_returns():
    region = sk.Simplex()
    for seed in range(3):
        X, C = make_cost_sensitive_classification(60, degree=2, random_state=seed)
        objective = Halfway(sk.SPOPlusLoss(region), region, X, C)
        result = BundleSolver(tol=0.4, max_iter=30).solve(objective)
        # The gap is one half wherever it is measured; half of an earlier value may look like less.
        assert result.lower_bound == pytest.approx(0.5 * result.objective, rel=1e-12)


def test_lbfgs_is_certified_with_an_elastic_net():
    X, C = make_portfolio(80, 3, 5, degree=2, random_state=0)
    for prior in ("zero", "least_squares"):
        objective = spo_plus(X, C, sk.EntropySimplex(), alpha=0.3, l1_ratio=0.3, prior=prior)
        assert LBFGSSolver().solve(objective).converged


def gapped(Theta, value, share):
    status = Status.CONVERGED if share <= 1e-6 else Status.NUMERICAL_LIMIT
    return Result(Theta, value, (1.0 - share) * value, 1, status, gap=share)


def gaps(objective, *shares):
    """Results of a solver that closes the gap step by step."""
    Theta = objective.least_squares
    value = objective.value(Theta)
    return iter([gapped(Theta, value, share) for share in shares])


def test_lbfgs_asks_for_a_smaller_gradient_as_long_as_that_helps(monkeypatch):
    objective = spo_plus(*data(), sk.EntropySimplex())
    results, asked = gaps(objective, 0.5, 0.1, 0.01, 1e-7), []

    def descend(objective, Theta, limit, gradient_tol, report):
        asked.append(gradient_tol)
        return Theta, 1

    monkeypatch.setattr(skspo.solvers.lbfgs, "descend", descend)
    monkeypatch.setattr(LBFGSSolver, "finish", lambda *args: next(results))
    assert LBFGSSolver().solve(objective).converged
    assert_allclose(asked, [1e-8, 1e-10, 1e-12, 1e-14])


def test_conic_returns_the_best_of_its_attempts(monkeypatch):
    objective = spo_plus(*data())
    results = gaps(objective, 0.3, 0.1, 0.2)
    monkeypatch.setattr(ConicSolver, "finish", lambda *args: next(results))
    best = ConicSolver().solve(objective)
    assert objective.relative_gap(best.objective, best.lower_bound) == pytest.approx(0.1)
    assert next(results, None) is None  # there were three


@pytest.mark.parametrize("region", [sk.EntropySimplex(), sk.LqBall(1.5)], ids=str)
def test_newton_needs_few_steps(region):
    X, C = make_portfolio(80, 3, 4, degree=2, random_state=0)
    result = NewtonSolver().solve(spo_plus(X, C, region, alpha=0.1))
    assert result.converged
    assert result.n_iter <= 15  # with any other matrix it would be more than forty


def test_bundle_sets_coefficients_of_a_lasso_to_zero():
    X, C = data(60)
    params = {"alpha": 0.5, "l1_ratio": 1.0}
    exact = sk.SPOPlusRegressor(sk.Box(), solver="conic", **params).fit(X, C)
    model = sk.SPOPlusRegressor(sk.Box(), solver="bundle", tol=1e-8, **params).fit(X, C)
    small = np.abs(exact.coef_) < 1e-7
    assert small.any()
    assert_array_equal(model.coef_[small], 0.0)


def test_conic_is_certified_with_weights():
    X, C = data(25)
    weight = np.random.default_rng(0).uniform(0.1, 5.0, size=25)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        # Not on the simplex, where a repaired decision does not depend on its size.
        model = sk.SPOPlusRegressor(sk.L1Ball(), solver="conic").fit(X, C, sample_weight=weight)
    assert model.duality_gap_ <= 1e-6


def test_first_step_of_adam_is_the_learning_rate():
    gradient = np.array([3.0, -0.02, 1e-3])
    assert_allclose(AdamState((3,)).step(gradient, 0.25), 0.25 * np.sign(gradient), rtol=1e-6)


def test_averages_of_a_stream_are_its_own():
    Theta = np.zeros((2, 2))
    stream = Stream(Theta, 1.0)
    stream.average += 1.0
    stream.Theta += 1.0
    assert_array_equal(Theta, 0.0)


# -- the SPO loss itself -----------------------------------------------------------------------------------------------


def test_loss_along_lines_with_weights():
    X, C = data(20)
    region = sk.Simplex()
    weight = np.random.default_rng(0).uniform(0.2, 4.0, size=20)
    objective = LinearObjective(sk.SPOLoss(region), region, X, C, weight)
    rng = np.random.default_rng(1)
    Theta, Deltas = rng.normal(size=objective.shape), rng.normal(size=(2, *objective.shape))
    pieces = descent.loss_along_lines(objective, Theta, Deltas)
    for line, left, right, value in zip(*pieces, strict=True):
        if right - left > 1e-9:
            assert objective.value(Theta + 0.5 * (left + right) * Deltas[line]) == pytest.approx(value, abs=1e-12)


def test_widest_of_equally_good_pieces(monkeypatch):
    X, C = data(5)
    region = sk.Simplex()
    objective = LinearObjective(sk.SPOLoss(region), region, X, C)
    ends = np.array([-4.0, -1.0, 0.0, 3.0, 4.0])
    pieces = descent.Pieces(np.zeros(4, dtype=int), ends[:-1], ends[1:], np.array([1.0, 0.0, 0.0, 1.0]))
    monkeypatch.setattr(descent, "loss_along_lines", lambda *args: pieces)
    Theta, Delta = np.zeros(objective.shape), np.ones(objective.shape)
    norm = float(np.linalg.norm(1.5 * Delta))
    found = descent.LineSearchSolver()._best_on_lines(objective, Theta + Delta, Delta[None], norm)
    assert_allclose(found, 1.5 * Delta)  # (1 + 1.5) Delta, scaled to the norm
    found = descent.LineSearchSolver()._best_on_lines(objective, np.eye(*objective.shape), Delta[None], 1.0)
    expected = np.eye(*objective.shape) + 1.5 * Delta
    assert_allclose(found, expected / np.linalg.norm(expected))


def test_line_search_walks_along_a_plateau(monkeypatch):
    """A step that is no worse is taken: other directions may lead down from there."""
    X, C = data(8)
    region = sk.Simplex()
    objective = LinearObjective(sk.SPOLoss(region), region, X, C)
    seen = []
    monkeypatch.setattr(objective, "value", lambda Theta: 1.0)
    solver = descent.LineSearchSolver()

    def best(objective, Theta, Deltas, norm):
        seen.append(Theta)
        return Theta + 1.0

    monkeypatch.setattr(solver, "_best_on_lines", best)
    progress = Progress("line-search", objective, 0)
    solver._descend(objective, objective.least_squares, 1.0, 10**6, np.random.RandomState(0), progress, 0)
    assert len(seen) > 1
    assert all((b == a + 1.0).all() for a, b in pairwise(seen))


def test_a_budget_that_nobody_set_is_no_reason_to_warn(monkeypatch):
    monkeypatch.setattr(descent.LineSearchSolver, "_limit", lambda self, size: self.max_iter or 3)
    X, C = make_cost_sensitive_classification(200, degree=2, noise=0.9, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        sk.SPORegressor(sk.Simplex(), random_state=0).fit(X, C)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        sk.SPORegressor(sk.Simplex(), max_iter=3, random_state=0).fit(X, C)


def test_milp_counts_weights():
    # Two alternatives, one feature, an intercept: a model is a threshold and a side.
    # Without weights it would be best to sacrifice the third sample, with them the first two.
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    C = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    weight = np.array([1.0, 1.0, 5.0, 1.0, 1.0])
    regret = C - C.min(axis=1, keepdims=True)
    best = min(
        (weight * np.where(x < threshold, regret[:, side], regret[:, 1 - side])).sum()
        for threshold in np.arange(-2.5, 3.0)
        for side in (0, 1)
    )
    model = sk.SPORegressor(sk.Simplex(), solver="milp").fit(x[:, None], C, sample_weight=weight)
    assert model.objective_ == pytest.approx(best / weight.sum(), rel=1e-9)
    assert model.duality_gap_ <= 1e-6


def test_milp_bound_is_not_above_a_start_without_margin():
    # The first two samples can be told apart, but by less than the margin.
    x = np.array([0.0, 1e-5, 10.0])
    C = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    region = sk.Simplex()
    objective = LinearObjective(sk.SPOLoss(region), region, x[:, None], C)
    start = objective.from_user(np.array([[1.0], [-1.0]]), np.array([-5e-6, 5e-6]))
    assert objective.value(start) == 0.0
    result = MILPSolver().solve(objective, start)
    assert result.objective == result.lower_bound == 0.0


# -- regions -----------------------------------------------------------------------------------------------------------


def test_ties_of_box_and_top_k():
    assert_array_equal(sk.Box(-1.0, 2.0).argmin(np.zeros((1, 3))), [[-1.0, -1.0, -1.0]])
    # So many that a sort may change the order of equal numbers.
    C = np.tile([2.0, 1.0], 300)[None]
    assert_array_equal(np.flatnonzero(sk.TopK(5).argmin(C)[0]), [1, 3, 5, 7, 9])


def test_axes_of_an_ellipsoid():
    region = sk.Ellipsoid(np.diag([4.0, 0.25]), radius=3.0)
    assert float(region.diameter()) == pytest.approx(12.0)
    assert float(region.width()) == pytest.approx(3.0)


def test_a_bound_on_the_diameter_is_called_one():
    region = sk.Polyhedron(A_ub=np.ones((1, 30)), b_ub=[10.0], bounds=(0, 1))
    assert region.diameter().kind == "upper bound"
    assert float(region.diameter()) == pytest.approx(np.sqrt(30.0))


def test_vertices_follow_the_parameters():
    region = sk.Polyhedron(A_ub=[[1.0, 1.0]], b_ub=[1.0])
    assert sorted(map(tuple, region.vertices().round(9) + 0.0)) == [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0)]
    region.set_params(b_ub=[3.0])
    assert sorted(map(tuple, region.vertices().round(9) + 0.0)) == [(0.0, 0.0), (0.0, 3.0), (3.0, 0.0)]


def test_paths_that_tie_up_to_rounding():
    region = sk.ShortestPath([(0, 1), (1, 2), (0, 2)], 0, 2)
    assert 0.1 + 0.2 != 0.3
    for truth, path in (([5.0, 5.0, 1.0], [1.0, 1.0, 0.0]), ([1.0, 1.0, 5.0], [0.0, 0.0, 1.0])):
        assert_array_equal(region.worst_argmin(np.array([[0.1, 0.2, 0.3]]), np.array([truth])), [path])


def test_items_without_weight_take_no_room():
    region = sk.Knapsack([0.0, 2.0, 0.0], 0.5, integer=False)
    assert_array_equal(region.argmin([[1.0, 1.0, 2.0]]), [[1.0, 0.25, 1.0]])


def test_as_many_costs_as_rows_of_a_region():
    region = sk.Box().with_rows({"upper": np.ones((3, 2))}, 3, 2)
    for n in (2, 4):
        with pytest.raises(ValueError, match="region_params has 3 rows"):
            region.solve_min(np.ones((n, 2)))


@pytest.mark.parametrize(
    ("solve", "value", "threshold"),
    [
        (entropy_argmin, entropy_value, -1.2),
        (entropy_argmin, entropy_value, -0.2),
        (log_barrier_argmin, log_barrier_value, 8.0),
        (log_barrier_argmin, log_barrier_value, 20.0),
    ],
)
def test_decisions_of_level_sets_are_inside_to_the_last_digit(solve, value, threshold):
    C = np.random.default_rng(0).normal(size=(3000, 4))
    assert (value(solve(C, threshold)[0]) - threshold).max() <= 1e-15 * max(1.0, abs(threshold))


def test_reduced_form_of_decisions_fixed_at_their_upper_bound():
    # w_0 + w_1 >= 2 within the unit box leaves w_2 to decide.
    region = sk.Polyhedron(A_ub=[[-1.0, -1.0, 0.0]], b_ub=[-2.0], bounds=(0, 1))
    form = region_form(region, 3)
    assert_allclose((form.offset + form.E @ form.center)[:2], 1.0)
    assert form.directions.shape == (3, 1)
    X, C = data(20, d=3)
    model = sk.SPOPlusRegressor(region, solver="interior-point").fit(X, C)
    assert model.duality_gap_ <= 1e-6


# -- estimators --------------------------------------------------------------------------------------------------------


def test_certificate_is_in_units_of_cost():
    X, C = data(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        params = {"alpha": 1e-3, "prior": "least_squares", "solver": "bundle", "max_iter": 2}
        model = sk.SPOPlusRegressor(sk.Simplex(), **params).fit(X, 1000.0 * C)
    assert 1e-3 < model.duality_gap_ < 0.9
    assert model.objective_ - model.lower_bound_ == pytest.approx(model.duality_gap_ * model.objective_, rel=1e-9)


def test_names_of_features_are_those_of_the_last_fit():
    X, C = data()
    model = sk.SPOPlusRegressor(sk.Simplex()).fit(pd.DataFrame(X, columns=["a", "b", "c"]), C)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert not hasattr(model.fit(X, C), "feature_names_in_")


def test_rate_of_a_stream_falls():
    X, C = data()
    model = sk.SPOPlusRegressor(sk.Simplex(), random_state=0)
    rates = [model.partial_fit(X, C)._stream[1].rate for _ in range(3)]
    assert_allclose(rates, rates[0] / np.sqrt([1.0, 2.0, 3.0]))


def test_a_pass_that_fails_leaves_the_stream_as_it_was():
    X, C = data()
    fail = []

    def oracle(C):
        if fail and fail.pop():
            raise RuntimeError("no decision today")
        return sk.Simplex().argmin(C)

    model = sk.SPOPlusRegressor(sk.OracleRegion(oracle, 4), random_state=0).partial_fit(X, C)
    coef, (_, stream, _) = model.coef_.copy(), model._stream
    Theta, average, epoch = stream.Theta.copy(), stream.average.copy(), stream.epoch
    fail[:] = [True, False]  # the second call, in the middle of the pass
    with pytest.raises(RuntimeError, match="no decision today"):
        model.partial_fit(X, C)
    _, stream, _ = model._stream
    assert stream.epoch == epoch
    assert_array_equal(stream.Theta, Theta)
    assert_array_equal(stream.average, average)
    assert_array_equal(model.coef_, coef)


def test_fit_ends_a_stream():
    X, C = data()
    model = sk.SPOPlusRegressor(sk.Simplex(), random_state=0).partial_fit(X, C)
    fitted = model.fit(X, C).coef_
    other = sk.SPOPlusRegressor(sk.Simplex(), random_state=0).fit(X, C)
    assert_array_equal(fitted, other.coef_)
    assert_array_equal(model.partial_fit(X, C).coef_, other.partial_fit(X, C).coef_)


class Stub(Solver):
    """Returns what it is told."""

    name = "stub"

    def __init__(self, result=None, tol=1e-6):
        self.result = result
        self.tol = tol

    def solve(self, objective, coef_init=None):
        """As told."""
        return self.result


def test_of_several_solvers_that_fail_the_best_counts(monkeypatch):
    X, C = data()
    Theta = spo_plus(X, C).least_squares
    value = spo_plus(X, C).value(Theta)
    results = [Result(Theta, value, bound * value, 7, Status.ITERATION_LIMIT, "", np.inf) for bound in (0.2, 0.9, 0.5)]
    monkeypatch.setattr(skspo.estimators._linear, "make_solvers", lambda *args, **kwargs: [Stub(r) for r in results])
    with pytest.warns(ConvergenceWarning, match=r"gap of 1\.0e-01"):
        model = sk.SPOPlusRegressor(sk.Simplex()).fit(X, C)
    assert model.lower_bound_ == pytest.approx(0.9 * model.objective_)


def test_number_of_jobs_of_the_region_counts():
    X, C = data(6)
    for own, expected in ((None, 1), (2, 2)):
        region = sk.Polyhedron(A_eq=np.ones((1, 4)), b_eq=[1], n_jobs=own)
        assert sk.SPOPlusRegressor(region, n_jobs=1).fit(X, C).region_.n_jobs == expected


# -- the path ----------------------------------------------------------------------------------------------------------


def test_ties_of_the_path_go_to_the_larger_alpha(monkeypatch):
    X, C = data(20)
    scores = np.array([-2.0, -1.0, -1.0 + 1e-13, -3.0])
    zero = np.zeros(4)
    monkeypatch.setattr(SPOPlusRegressorCV, "_fold", lambda self, *args: _Fold(scores, 1.0, zero, zero, []))
    model = SPOPlusRegressorCV(sk.Simplex(), alphas=[10.0, 1.0, 0.1, 0.01]).fit(X, C)
    assert model.alpha_ == 1.0


def test_folds_count_by_their_size():
    X, C = data(11)
    train, test = np.arange(11), np.arange(11)
    model = SPOPlusRegressorCV(
        sk.Simplex(), alphas=[1.0, 0.1], cv=[(train[:8], test[8:]), (train[8:], test[:8])], scoring="spo_loss"
    ).fit(X, C)
    results = model.cv_results_
    pooled = (3 * results["split0_test_score"] + 8 * results["split1_test_score"]) / 11
    assert_allclose(results["mean_test_score"], pooled)
    assert_allclose(results["mean_test_score"], -results["mean_test_spo_loss"])
    assert (results["split0_test_score"] != results["split1_test_score"]).any()


def test_lasso_path_starts_where_the_first_coefficient_moves():
    X, C = make_portfolio(60, 4, 5, degree=3, random_state=0)
    params = {"prior": "least_squares", "l1_ratio": 1.0, "tol": 1e-8}
    infinite, first, _ = spo_plus_path(X, C, sk.EntropySimplex(), n_alphas=3, **params)[0]
    alphas = [infinite, 1.001 * first, 0.9 * first]
    _, coefs, intercepts, *_ = spo_plus_path(X, C, sk.EntropySimplex(), alphas=alphas, **params)
    models = [np.column_stack(pair) for pair in zip(coefs, intercepts, strict=True)]
    assert_allclose(models[1], models[0], atol=1e-7)
    assert np.abs(models[2] - models[0]).max() > 1e-4


def test_grid_without_a_prior_starts_at_the_mean_cost():
    X, C = make_portfolio(60, 4, 5, degree=3, random_state=0)
    region = sk.EntropySimplex()
    objective = spo_plus(X, C, region, standardized=True)
    Theta = np.zeros(objective.shape)
    Theta[:, -1] = objective.C.mean(axis=0)
    slopes = []
    for index in np.ndindex(Theta[:, :-1].shape):
        step = np.zeros_like(Theta)
        step[index] = 1e-6
        slopes.append((objective.value(Theta + step) - objective.value(Theta - step)) / 2e-6)
    grid = spo_plus_path(X, C, region, n_alphas=2, prior="zero", max_iter=1000)[0]
    assert grid[0] == pytest.approx(LARGEST * np.linalg.norm(slopes), rel=1e-5)


# -- data in chunks ----------------------------------------------------------------------------------------------------


def chunked(X, C, chunk_rows, region, weight=None):
    rows = LocalRows(sk.ChunkedData.from_arrays(X, C, weight, chunk_rows=chunk_rows))
    return rows, ChunkedObjective(sk.SPOPlusLoss(region), region, rows)


def test_sample_of_rows_does_not_depend_on_chunks(monkeypatch):
    monkeypatch.setattr(skspo._training.chunked, "MANY_SAMPLES", 50)
    monkeypatch.setattr(skspo._training.chunked, "ENOUGH_SAMPLES", 10)
    X, C = make_cost_sensitive_classification(103, random_state=0)
    samples = []
    for chunk_rows in (200, 13, 10):
        rows, objective = chunked(X, C, chunk_rows, sk.Simplex())
        with rows:
            samples.append(objective.sampled())
    assert samples[0].n_samples == 13  # every eighth of 103
    for sample in samples[1:]:
        assert_allclose(sample.C, samples[0].C, atol=1e-12)
        assert_allclose(sample.design.Z, samples[0].design.Z, atol=1e-12)


def test_parts_forget_what_the_oracle_found():
    X, C = make_portfolio(20, 3, 4, degree=2, random_state=0)
    part = spo_plus(X, C, sk.EntropySimplex())
    part_gradient(part, 0, part.least_squares)
    assert part.memory == {}
    part.loss_gradient(part.least_squares)
    assert part.memory != {}


def test_a_chunk_may_weigh_nothing():
    X, C = data(30)
    weight = np.repeat([1.0, 0.0, 2.0], 10)
    chunks = sk.ChunkedData.from_arrays(X, C, weight, chunk_rows=10)
    model = sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1).fit_chunks(chunks)
    local = sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1).fit(X, C, sample_weight=weight)
    assert model.objective_ == pytest.approx(local.objective_, rel=1e-5)


def test_dask_scores_with_weights_and_offset():
    da = pytest.importorskip("dask.array")
    X, C = data(30)
    rng = np.random.default_rng(0)
    weight, offset = rng.uniform(0.1, 3.0, size=30), rng.normal(size=C.shape)
    model = sk.SPOPlusRegressor(sk.Simplex()).fit(X, C, offset=offset)
    lazy = [da.from_array(array, chunks=(7, *array.shape[1:])) for array in (X, C, weight, offset)]
    score = model.score(lazy[0], lazy[1], sample_weight=lazy[2], offset=lazy[3])
    assert score == pytest.approx(model.score(X, C, sample_weight=weight, offset=offset), rel=1e-12)
    assert score != pytest.approx(model.score(X, C, offset=offset), rel=1e-3)
    assert score != pytest.approx(model.score(X, C, sample_weight=weight), rel=1e-3)


# -- data sets and tables ----------------------------------------------------------------------------------------------


def test_coefficients_of_a_data_set_are_a_copy():
    _, _, coef = make_portfolio(3, 2, 4, random_state=0, return_coef=True)
    returned = make_portfolio(3, 2, 4, coef=coef, return_coef=True)[2]
    assert returned is not coef
    assert not np.shares_memory(returned, coef)


def test_mean_of_negative_values_of_a_knapsack():
    # An odd degree and large coefficients make some signals negative: then the noise turns the interval around.
    coef = np.full((3, 2), 6.0)
    X, _, mean = make_knapsack(400, 2, 3, degree=1, noise=0.5, coef=coef, random_state=0, return_mean=True)
    signal = 5.0 * (X @ coef.T / np.sqrt(2) + 4.0) / 3.5
    rows = np.flatnonzero((signal < -5.0).all(axis=1))[:5]
    assert rows.size
    eps = (np.arange(200_000) + 0.5) / 200_000 + 0.5
    for i in rows:
        assert mean[i, 0] == pytest.approx(np.ceil(signal[i, 0] * eps).mean(), abs=1e-3)


def test_weights_of_a_knapsack_reach_both_ends():
    weights = make_knapsack(1, n_items=20_000, random_state=0, return_weights=True)[-1]
    assert weights.min() == 3.0
    assert weights.max() == 7.99


def test_samples_are_sorted():
    df = pd.DataFrame({"day": [9, 9, 2, 2, 5, 5], "item": list("abbaab"), "x": np.arange(6.0)})
    stacked = sk.stack_items(df, sample="day", item="item", features=["x"])
    assert list(stacked.samples) == [2, 5, 9]
    assert_array_equal(stacked.X, [[3.0, 2.0], [4.0, 5.0], [0.0, 1.0]])


# -- the linear map ----------------------------------------------------------------------------------------------------


def shared_design(n=12, d=3, weight=None, seed=0):
    """A shared model whose second feature is the same for all items of a sample, so that decisions cannot see it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d, 2))
    X[:, :, 1] = rng.normal(size=(n, 1))
    weight = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    return SharedDesign(X.reshape(n, -1), weight, np.full((1, d), 1.0 / np.sqrt(d)), fit_intercept=True, center=True)


def test_hidden_features_of_a_shared_model_are_exactly_zero():
    design = shared_design()
    assert_array_equal(design.Z[:, :, 1:], 0.0)
    assert np.abs(design.Z[:, :, 0]).max() > 0.1


def test_curvature_of_a_shared_model_by_hand():
    rng = np.random.default_rng(1)
    design = shared_design(weight=rng.uniform(0.1, 3.0, size=12))
    M = rng.normal(size=(5, 3, 3))
    M = M @ M.transpose(0, 2, 1)
    rows = slice(4, 9)
    expected = sum(design.weight[i] * design.Z[i].T @ M[i - 4] @ design.Z[i] for i in range(4, 9))
    assert_allclose(design.curvature(M, rows), expected, atol=1e-12)


def test_least_squares_prior_has_weights():
    X, C = data(30)
    weight = np.random.default_rng(0).uniform(0.1, 5.0, size=30)
    model = sk.SPOPlusRegressor(sk.Box(), alpha=1e7, prior="least_squares").fit(X, C, sample_weight=weight)
    truth = LinearRegression().fit(X, C, sample_weight=weight)
    assert_allclose(model.coef_, truth.coef_, atol=1e-5)
    assert np.abs(LinearRegression().fit(X, C).coef_ - truth.coef_).max() > 1e-2


def test_gradient_on_the_sphere_of_given_norm(monkeypatch):
    """With a penalty, which sees the length that is kept fixed, and at a point of another length."""
    X, C = make_portfolio(30, 3, 4, degree=2, random_state=0)
    region = sk.EntropySimplex()
    objective = LinearObjective(sk.SPOLoss(region), region, X, C, alpha=0.3)
    checked = []

    def minimize(function, start, **options):
        point = 1.3 * start + 0.1 * np.random.default_rng(0).normal(size=start.size)
        gradient = function(point)[1]
        steps = 1e-6 * np.eye(start.size)
        expected = [(function(point + step)[0] - function(point - step)[0]) / 2e-6 for step in steps]
        assert_allclose(gradient, expected, atol=1e-6)
        checked.append(np.abs(gradient).max())
        return SimpleNamespace(x=start, nit=0)

    monkeypatch.setattr(descent, "minimize", minimize)
    descent.SPOGradientSolver(n_restarts=0).solve(objective, objective.least_squares)
    assert checked
    assert max(checked) > 1e-3


# -- found last --------------------------------------------------------------------------------------------------------


def test_best_candidate_of_the_path_has_rank_one():
    X, C = data(20)
    model = SPOPlusRegressorCV(sk.Simplex(), alphas=[1.0, 0.1, 0.01], cv=3).fit(X, C)
    mean, rank = model.cv_results_["mean_test_score"], model.cv_results_["rank_test_score"]
    assert len(set(mean)) == 3
    assert_array_equal(rank[np.argsort(-mean)], [1, 2, 3])


def test_warm_start_of_the_decision_loss():
    X, C = make_cost_sensitive_classification(60, degree=2, noise=0.9, random_state=0)
    model = sk.SPORegressor(sk.Simplex(), random_state=0, max_iter=300, n_restarts=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        good = model.fit(X, C).objective_
        fresh = sk.SPORegressor(sk.Simplex(), init="least_squares", max_iter=1, n_restarts=0, random_state=1).fit(X, C)
        assert fresh.objective_ > good * 1.01
        model.set_params(init="least_squares", warm_start=True, max_iter=1).fit(X, C)
    assert model.objective_ <= good * (1.0 + 1e-12)


def test_coordinates_of_a_shared_model_in_chunks():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(20, 6)), rng.normal(size=(20, 3))
    local = spo_plus(X, C, shared=True)
    rows = LocalRows(sk.ChunkedData.from_arrays(X, C, chunk_rows=7))
    with rows:
        found = ChunkedObjective(sk.SPOPlusLoss(sk.Simplex()), sk.Simplex(), rows, shared=True)
    assert_allclose(found.design.scale, local.design.scale, rtol=1e-12)
    assert found.cost_scale == pytest.approx(local.cost_scale, rel=1e-12)


def test_chunks_that_are_missing_in_a_later_pass():
    chunks = [Chunk(np.zeros((n, 2)), np.zeros((n, 3))) for n in (4, 5)]
    assert [size for _, size in _together(chunks, (4, 5))] == [4, 5]
    for later in (chunks[:1], [], [*chunks, chunks[0]], chunks[::-1]):
        with pytest.raises(ValueError, match="same rows in the"):
            list(_together(later, (4, 5)))


def test_sample_size_steps_back_over_a_division_that_was_rounded_up(monkeypatch):
    bound = sk.calibration.SampleComplexity(
        sk.calibration.StronglyConvexCalibration(1.0, 1.0, 3, 1.0), 1.0, 1.0, 1.0, 0.1
    )
    n = bound.sample_size(0.5)
    assert bound.bound(n) <= 0.5 < bound.bound(n - 1)
    monkeypatch.setattr(sk.calibration.generalization, "ceil", lambda x: int(np.ceil(x)) + 3)
    assert bound.sample_size(0.5) == n


def test_slope_for_one_rotationally_symmetric_distribution():
    # Costs at the distances 1 and 3 from a mean of length 1: min(s, t) s / (t^2 + s t) is 1/2 and 1/12.
    slope = sk.calibration.radial_calibration_constant(1.0, [1.0, 3.0], 1.0, 4.0, 2)
    assert slope == pytest.approx(0.5 * (1.0 / 2.0 + 1.0 / 12.0) * 0.25**4.5 / 2.0, rel=1e-12)


@pytest.mark.parametrize("prior", ["zero", "least_squares"])
def test_bound_without_penalty_is_the_smallest_value_of_a_line_in_a_ball(prior):
    """min of a + <T, G> over |T - least squares| <= CERTIFICATE_RADIUS, whatever the penalty would shrink to."""
    objective = spo_plus(*data(), prior=prior)
    rng = np.random.default_rng(0)
    Theta, V = rng.normal(size=objective.shape), rng.dirichlet(np.ones(4), size=objective.n_samples)
    G = 2.0 * sum(
        a * np.outer(w - v, z) for a, w, v, z in zip(objective.weight, objective.W, V, objective.design.Z, strict=True)
    )
    constant = float(objective.weight @ (objective.C * (V - objective.W)).sum(axis=1))
    expected = constant + (objective.least_squares * G).sum() - CERTIFICATE_RADIUS * np.linalg.norm(G)
    assert objective.dual_value(V, Theta).value == pytest.approx(expected, rel=1e-12)


def test_only_ratios_of_weights_matter():
    X, C = data()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=30)
    small, large = (
        sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1).fit(X, C, sample_weight=unit * weight) for unit in (1.0, 64.0)
    )
    assert small.objective_ == pytest.approx(large.objective_, rel=1e-9)
    mean = sk.spo_plus_loss(C, small.predict(X), sk.Simplex(), sample_weight=weight)
    assert small.objective_ == pytest.approx(mean + 0.05 * (small.coef_**2).sum(), rel=1e-9)
