"""The dual solver against other solvers and brute force, its kernels against NumPy, and degenerate problems."""

import itertools
import os
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from marks import pairs
from numpy.testing import assert_allclose, assert_array_equal
from solver_problems import PENALTIES, POLYTOPES, SMOOTH, exact_fit, simplex_lp, small_data, vertices_truth

import skspo as sk
from skspo import SPOPlusLoss, SPOPlusRegressor
from skspo._training.balance import balanced
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo._training.sparse import as_csr
from skspo._utils.limits import Deadline
from skspo.solvers import DualSolver
from skspo.solvers.dual import kernels
from skspo.solvers.dual import solver as dual_module
from skspo.solvers.dual.cache import MOST_DECISIONS, Cache
from skspo.solvers.dual.face import Face, FreeMoments
from skspo.solvers.dual.problem import ScaledProblem

WEIGHTS, CAPACITY = np.array([[3, 4, 2, 5], [2, 1, 4, 3]]), np.array([7, 6])
PACKINGS = np.array([v for v in itertools.product([0.0, 1.0], repeat=4) if (WEIGHTS @ v <= CAPACITY).all()])


def objective_of(region, X, C, **params):
    region = sk.regions.check.check_region(region, C.shape[1])
    return InMemoryObjective(SPOPlusLoss(region), X, C, **params)


def dual_of(objective, V):
    """Lower bound of decisions with a ridge on all columns that G is not zero in, from its definition."""
    D = (V - objective.W) * objective.weight[:, None]
    G = -2.0 * D.T @ objective.design.Z
    excess = np.maximum(np.abs(G) - objective.l1, 0.0)
    ridge = objective.l2 > 0
    assert np.abs(excess[:, ~ridge]).max(initial=0.0) <= 1e-12
    return (
        (objective.C * D).sum()
        + (objective.prior * G).sum()
        - 0.5 * (excess[:, ridge] ** 2 / objective.l2[ridge]).sum()
    )


# -- optima ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize(
    ("region", "vertices"), POLYTOPES, ids=lambda x: str(x) if isinstance(x, sk.regions.base.Region) else ""
)
def test_agrees_with_brute_force(region, vertices, penalty):
    X, C = small_data(4)
    weight = np.random.default_rng(1).uniform(0.1, 2.0, size=len(X))
    model = SPOPlusRegressor(region, solver="dual", **penalty).fit(X, C, sample_weight=weight)
    truth = vertices_truth(vertices, X, C, sense=region.sense, weight=weight, **penalty)
    assert model.solver_ == "dual" and model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(truth, rel=2e-6, abs=1e-7)
    assert model.lower_bound_ <= truth * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize(("region", "penalty"), pairs(SMOOTH, PENALTIES, 2), ids=str)
def test_regions_that_are_no_polytopes(region, penalty):
    """Every oracle call finds a new decision."""
    X, C = small_data(4)
    exact = exact_fit(region, penalty)
    model = SPOPlusRegressor(region, solver="dual", tol=1e-5, **penalty).fit(X, C)
    assert model.duality_gap_ <= 1e-5
    assert exact.lower_bound_ <= model.objective_ * (1 + 1e-9)
    assert model.lower_bound_ <= exact.objective_ * (1 + 1e-9)


def test_integer_region_and_user_oracle():
    X, C = small_data(4)
    truth = vertices_truth(PACKINGS, X, C, sense="max", alpha=0.05)
    oracle = sk.OracleRegion(lambda V: PACKINGS[(V @ PACKINGS.T).argmax(axis=1)], 4, sense="max")
    for region in (sk.Knapsack(WEIGHTS, CAPACITY), oracle):
        model = SPOPlusRegressor(region, solver="dual", alpha=0.05).fit(X, C)
        assert model.duality_gap_ <= 1e-6
        assert model.objective_ == pytest.approx(truth, rel=2e-6)


def test_linear_program():
    X, C = small_data(5, n=80, seed=3)
    model = SPOPlusRegressor(sk.Simplex(), solver="dual").fit(X, C)
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(simplex_lp(X, C), rel=2e-6)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_shared_model(penalty):
    rng = np.random.default_rng(4)
    items = rng.normal(size=(60, 6, 3))
    C = items @ [1.0, -2.0, 0.5] + rng.normal(size=(60, 6))
    X = items.reshape(60, -1)
    offset = rng.normal(size=(60, 6))
    fits = [
        SPOPlusRegressor(sk.TopK(2), shared=True, solver=solver, **penalty).fit(X, C, offset=offset)
        for solver in ("dual", "interior-point")
    ]
    assert fits[0].duality_gap_ <= 1e-6
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=3e-6)


def test_regions_that_vary_by_sample():
    rng = np.random.default_rng(5)
    X, C = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    low = rng.normal(size=(40, 3))
    params = sk.row_params(lower=low, upper=low + rng.exponential(size=(40, 3)))
    fits = [
        SPOPlusRegressor(sk.Box(), solver=solver, alpha=0.05).fit(X, C, region_params=params)
        for solver in ("dual", "conic")
    ]
    assert fits[0].duality_gap_ <= 1e-6
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=3e-6)


def test_offset():
    X, C = small_data(4)
    offset = 0.5 * C[::-1]
    fits = [
        SPOPlusRegressor(sk.Simplex(), solver=solver, alpha=0.1).fit(X, C, offset=offset)
        for solver in ("dual", "interior-point")
    ]
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=3e-6)


def test_solver_backed_oracle():
    X, C = small_data(4, n=60)
    region = sk.Polyhedron(A_eq=[[1, 1, 1, 1]], b_eq=[1])
    assert region.oracle_is_solver
    result, other = (DualSolver().solve(objective_of(r, X, C, alpha=0.05), Run()) for r in (region, sk.Simplex()))
    assert result.gap <= 1e-6
    assert result.objective == pytest.approx(other.objective, rel=2e-6)


# -- the certificate ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [{"alpha": 0.05, "prior": "least_squares"}, {"alpha": 0.05, "l1_ratio": 0.5, "prior": "least_squares"}],
    ids=str,
)
def test_bound_is_that_of_decisions_in_the_hull(params):
    X, C = small_data(4)
    objective = objective_of(sk.Simplex(), X, C, **params)
    result, state = DualSolver().solve_from(objective, Run())
    V = state.cache.average()[0]
    assert (V >= 0).all()
    assert_allclose(V.sum(axis=1), 1.0, rtol=1e-12)
    assert result.lower_bound == pytest.approx(dual_of(objective, V), rel=2e-6)
    assert dual_of(objective, V) <= result.objective
    assert result.objective == objective.value(result.coef)


def test_weights_of_a_free_intercept_are_balanced():
    X, C = small_data(4, n=200)
    objective = objective_of(sk.Simplex(), X, C, alpha=0.05)
    result, state = DualSolver(tol=1e-4).solve_from(objective, Run())
    free = np.broadcast_to(objective.free, state.problem.shape)
    *_, weight = balanced(FreeMoments(state.problem, state.cache, free), state.cache.weight, lambda: False)
    assert (weight >= 0).all()
    assert_allclose(np.add.reduceat(weight, state.cache.ptr[:-1]), 1.0, rtol=1e-12)
    V = state.cache.average(weight)[0]
    assert np.abs(objective.weight @ (V - objective.W)).max() <= 1e-13
    assert np.abs(objective.weight @ (state.cache.average()[0] - objective.W)).max() > 1e-9
    assert dual_of(objective, V) <= result.objective


# -- kernels -----------------------------------------------------------------------------------------------------------


def scaled_problem(rng, *, csr=False, l1=0.0, n=12, d=5, q=4):
    Z = rng.normal(size=(n, q)) * (rng.uniform(size=(n, q)) < 0.6)
    Z[0] = 0.0  # a sample without features
    weight = rng.uniform(0.5, 1.0, size=n)
    weight[1] = 0.0
    C, W = rng.normal(size=(n, d)), np.eye(d)[rng.integers(d, size=n)]
    prior = np.zeros((d, q))
    return ScaledProblem(
        sp.csr_array(Z) if csr else Z, C, W, weight / weight.sum(), np.full(q, l1), np.full(q, 0.3), prior, 1.0
    )


def filled_cache(problem, rng, k=4):
    cache = Cache(problem.W_vectors, problem.W_lin)
    for _ in range(k):
        V = rng.integers(0, 3, size=problem.C.shape).astype(float)
        rows = np.flatnonzero(rng.uniform(size=problem.n) < 0.8)
        cache.add(rows, V[rows], problem.encode(V)[1][rows], 10)
    return cache


def reference_sweep(order, problem, cache, T, pairs):
    """The same in NumPy, with whole decisions instead of the columns in which they differ."""
    weight, gain = cache.weight.copy(), 0.0
    V = np.zeros((cache.row.size, cache.d))
    for r in range(cache.row.size):
        V[r, cache.idx[cache.at[r] : cache.at[r + 1]]] = cache.val[cache.at[r] : cache.at[r + 1]]
    Z = problem.scaled.toarray() if sp.issparse(problem.scaled) else problem.scaled
    for i in order:
        mine = np.flatnonzero(cache.row == i)
        scores = V[mine] @ (problem.C[i] - 2.0 * problem.soft(T) @ Z[i])
        curvature = 4.0 * problem.a[i] * (Z[i] @ Z[i])
        for _ in range(pairs):
            high = int(scores.argmax())
            low = int(np.where(weight[mine] > 0, scores, np.inf).argmin())
            rise = scores[high] - scores[low]
            if rise <= 1e-13:
                break
            direction = V[mine[high]] - V[mine[low]]
            bend = curvature * (direction @ direction)
            step = min(rise / bend, weight[mine[low]]) if bend > 0 else weight[mine[low]]
            weight[mine[high]] += step
            weight[mine[low]] -= step
            scores = scores - curvature * step * (V[mine] @ direction)
            T = T + 2.0 * problem.a[i] * step * np.outer(direction, Z[i])
            gain += problem.a[i] * step * (rise - 0.5 * bend * step)
    return weight, T, gain


def dual_value(problem, cache):
    constant, M = problem.moments(cache)
    return constant - 0.5 * np.square(problem.soft(M)).sum()


@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize("csr", [False, True])
def test_sweep_is_what_numpy_does(csr, l1):
    rng = np.random.default_rng(6)
    problem = scaled_problem(rng, csr=csr, l1=l1)
    cache = filled_cache(problem, rng)
    # After a step two scores are equal, and rounding decides which one is next: one step at a time, from new weights.
    for _ in range(4):
        cache.weight[:] = rng.uniform(size=cache.weight.size) * (rng.uniform(size=cache.weight.size) < 0.8) + 1e-3
        cache.normalize()
        T = problem.moments(cache)[1]
        before = dual_value(problem, cache)
        order = rng.permutation(cache.several[problem.a[cache.several] > 0])
        weight, expected, gain = reference_sweep(order, problem, cache, T, 1)
        rest = np.zeros(problem.n)
        kernels.sweep(
            order, cache.blocks, cache.weight, T, problem.thresholds, problem.has_l1, problem.features, problem.zz,
            problem.a, 1, rest,
        )  # fmt: skip
        assert_allclose(cache.weight, weight, rtol=1e-9, atol=1e-12)
        assert_allclose(T, expected, rtol=1e-9, atol=1e-12)
        assert_allclose(T, problem.moments(cache)[1], rtol=1e-9, atol=1e-12)
        after = dual_value(problem, cache)
        # The model of the sweep is exact without an l1 penalty, and below the dual with one.
        assert after - before >= gain - 1e-12
        if not l1:
            assert after - before == pytest.approx(gain, rel=1e-9)
        before = after
    assert (rest >= 0).all() and rest.any()
    kernels.sweep(
        order, cache.blocks, cache.weight, T, problem.thresholds, problem.has_l1, problem.features, problem.zz,
        problem.a, 10, rest,
    )  # fmt: skip
    assert dual_value(problem, cache) > before


@pytest.mark.parametrize("csr", [False, True])
def test_face_directions(csr):
    """Newton without damping reaches the optimum of the face."""
    rng = np.random.default_rng(7)
    problem = scaled_problem(rng, csr=csr, d=8, q=6)
    cache = filled_cache(problem, rng, k=2)
    cache.weight[:] = 1.0
    cache.normalize()
    T = problem.moments(cache)[1]
    face = Face(problem, cache)
    x = face.newton(T, 1e-12)
    sums = np.add.reduceat(x, cache.ptr[:-1])
    assert np.abs(sums).max() <= 1e-9 * np.abs(x).max()
    gradient = face.gradient(problem.soft(T + face.to_T(x)), cache.lin)
    start = face.gradient(problem.soft(T), cache.lin)
    assert np.abs(gradient[np.flatnonzero(problem.zz[cache.row] > 0)]).max() <= 1e-6 * np.abs(start).max()
    before = dual_value(problem, cache)
    moved, gain, _ = face.ascend(T, x)
    assert gain > 0
    assert dual_value(problem, cache) - before == pytest.approx(gain, rel=1e-6)
    assert_allclose(moved, problem.moments(cache)[1], atol=1e-9)


def test_projection_onto_simplices():
    rng = np.random.default_rng(8)
    ptr = np.array([0, 3, 4, 9])
    used = np.array([True, True, True, False, True, True, False, True, True])
    weight = rng.normal(size=9)
    projected = weight.copy()
    kernels.project(np.array([0, 2]), ptr, used, projected)
    for rows in (slice(0, 3), slice(4, 9)):
        w, p = weight[rows][used[rows]], projected[rows][used[rows]]
        assert (p >= 0).all() and p.sum() == pytest.approx(1.0)
        shift = (w - p)[p > 0]
        assert_allclose(shift, shift[0], rtol=1e-12)  # the same for all that stay positive
        assert (w[p == 0] <= shift[0] + 1e-12).all()
    assert_array_equal(projected[[3, 6]], weight[[3, 6]])


def test_cache_adds_drops_and_averages():
    rng = np.random.default_rng(9)
    problem = scaled_problem(rng)
    cache = filled_cache(problem, rng)
    cache.weight[:] = rng.uniform(size=cache.weight.size)
    cache.weight[cache.ptr[2] + 1 : cache.ptr[3]] = 0.0
    cache.normalize()
    V, lin = cache.average()
    assert_allclose(lin, (problem.C * V).sum(axis=1), rtol=1e-12, atol=1e-14)
    cache.add(np.array([2]), V[2:3] + 1.0, lin[2:3], 0)
    assert np.diff(cache.ptr)[2] == 2  # those without weight are gone, the new one is there
    assert_allclose(cache.average()[0], V, rtol=1e-12, atol=1e-14)
    blocks = cache.blocks
    for i in range(problem.n):
        cols = blocks.cols[blocks.cptr[i] : blocks.cptr[i + 1]]
        dense = cache.decisions[cache.ptr[i] : cache.ptr[i + 1]].toarray()
        assert_array_equal(np.sort(cols), np.flatnonzero((dense != dense[0]).any(axis=0)))
        assert_array_equal(blocks.val[blocks.vptr[i] : blocks.vptr[i + 1]].reshape(dense.shape[0], -1), dense[:, cols])


def test_cache_stays_bounded():
    rng = np.random.default_rng(10)
    problem = scaled_problem(rng)
    cache = Cache(problem.W_vectors, problem.W_lin)
    for _ in range(3 * MOST_DECISIONS):
        V = rng.normal(size=problem.C.shape)
        cache.add(np.arange(problem.n), V, problem.encode(V)[1], 10**6)
        cache.weight[cache.age == 0] += 0.1
        cache.normalize()
        before, lin = cache.average()
        assert_allclose(lin, (problem.C * before).sum(axis=1), rtol=1e-9, atol=1e-12)
    assert np.diff(cache.ptr).max() <= MOST_DECISIONS


# -- contract ----------------------------------------------------------------------------------------------------------


def test_sparse_features():
    """A design whose features are a CSR matrix gives the same as a dense one."""
    rng = np.random.default_rng(11)
    X = (rng.uniform(size=(200, 30)) < 0.1).astype(float)
    C = X @ rng.normal(size=(30, 4)) + rng.normal(size=(200, 4))
    objective = objective_of(sk.Simplex(), X, C, alpha=0.05, fit_intercept=False)
    dense = DualSolver().solve(objective, Run())
    objective = objective_of(sk.Simplex(), as_csr(sp.csr_array(X)), C, alpha=0.05, fit_intercept=False)
    assert objective.design.sparse
    sparse = DualSolver().solve(objective, Run())
    assert dense.gap <= 1e-6 and sparse.gap <= 1e-6
    assert sparse.objective == pytest.approx(dense.objective, rel=2e-6)


def test_deterministic():
    X, C = small_data(4, n=100)
    fits = [SPOPlusRegressor(sk.Simplex(), solver="dual", alpha=0.01).fit(X, C) for _ in range(2)]
    assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].lower_bound_ == fits[1].lower_bound_
    other = SPOPlusRegressor(sk.Simplex(), solver="dual", alpha=0.01, random_state=5, tol=1e-3).fit(X, C)
    again = SPOPlusRegressor(sk.Simplex(), solver="dual", alpha=0.01, random_state=5, tol=1e-3).fit(X, C)
    assert_array_equal(other.coef_, again.coef_)


@pytest.mark.parametrize("shared", [False, True])
def test_starts_from_a_state(shared):
    """The cached decisions of another penalty save iterations; over several problems, because single counts vary."""
    cold_passes = warm_passes = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 12))
        C = rng.normal(size=(100, 4)) + (X[:, :4] if not shared else X.reshape(100, 4, 3) @ [1.0, 2.0, 3.0])
        objective = objective_of(sk.Simplex(), X, C, alpha=0.05, shared=shared)
        other = objective.with_penalty(0.03, 0.0)
        cold = DualSolver().solve(other, Run())
        _, state = DualSolver().solve_from(objective, Run())
        warm, _ = DualSolver().solve_from(other, Run(), state.coef, state)
        assert cold.gap <= 1e-6 and warm.gap <= 1e-6
        assert warm.objective == pytest.approx(cold.objective, rel=2e-6)
        cold_passes, warm_passes = cold_passes + cold.n_iter, warm_passes + warm.n_iter
    assert warm_passes < cold_passes


def test_warm_start():
    X, C = small_data(4, n=100)
    model = SPOPlusRegressor(sk.Simplex(), solver="dual", alpha=0.05, warm_start=True).fit(X, C)
    first = model.objective_
    assert model.fit(X, C).objective_ == pytest.approx(first, rel=2e-6)
    assert model.duality_gap_ <= 1e-6


def test_limit_of_iterations():
    X, C = small_data(4, n=100)
    with pytest.warns(UserWarning, match="max_iter=2"):
        model = SPOPlusRegressor(sk.Simplex(), solver="dual", max_iter=2, tol=1e-9).fit(X, C)
    assert model.n_iter_ == 2
    assert 0.0 <= model.lower_bound_ <= model.objective_


def test_time_limit():
    rng = np.random.default_rng(13)
    region = sk.ShortestPath.grid(6, 6)
    X, C = rng.normal(size=(800, 60)), rng.uniform(size=(800, 60))
    objective = objective_of(region, X, C, alpha=1e-4)
    DualSolver(max_iter=1).solve(objective, Run())  # compiles
    run = Run(Deadline(0.6))
    with run.deadline.enforced():
        result = DualSolver(tol=1e-12).solve(objective, run)
    assert run.deadline.left() > -1.0
    assert result.status == "time limit" and "time_limit=0.6" in result.message
    assert 0.0 <= result.lower_bound <= result.objective
    assert result.objective == pytest.approx(objective.value(result.coef), rel=1e-9)


def test_sparse_features_with_long_indices_compile_nothing_new():
    X, C = small_data(4)
    short, long = as_csr(X), as_csr(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    problems = [
        ScaledProblem(
            Z, C, np.eye(4)[np.zeros(len(C), int)], np.full(len(C), 1 / len(C)), *np.ones((2, 3)), np.zeros((4, 3)), 1.0
        )
        for Z in (short, long)
    ]
    for name in ("indptr", "indices"):
        assert {getattr(problem.features, name).dtype for problem in problems} == {np.dtype(np.int32)}
        assert_array_equal(*(getattr(problem.features, name) for problem in problems))


@pytest.mark.parametrize("compiled", [False, True])
def test_little_time_is_enough_for_compiled_kernels(monkeypatch, compiled):
    objective = objective_of(sk.Simplex(), *small_data(4))
    monkeypatch.setattr(dual_module, "compiled_before", lambda: compiled)
    monkeypatch.delitem(sys.modules, kernels.__name__)
    assert DualSolver.fits(objective, Run(Deadline(5.0))) is compiled
    assert DualSolver.fits(objective, Run(Deadline(20.0)))
    assert not DualSolver.fits(objective, Run(Deadline(0.1)))


def test_compiled_before(monkeypatch, tmp_path):
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    index = tmp_path / "__pycache__" / f"kernels.sweep-100.{version}.nbi"
    index.parent.mkdir()
    monkeypatch.setattr(dual_module, "__file__", str(tmp_path / "solver.py"))

    def answer():
        dual_module.compiled_before.cache_clear()
        return dual_module.compiled_before()

    (tmp_path / "kernels.py").touch()
    assert not answer()  # nothing there
    index.touch()
    os.utime(index, (2e9, 2e9))
    assert answer()
    os.utime(tmp_path / "kernels.py", (3e9, 3e9))
    assert not answer()  # the sources changed since
    dual_module.compiled_before.cache_clear()


def test_progress(capsys):
    X, C = small_data(4)
    SPOPlusRegressor(sk.Simplex(), solver="dual", verbose=1).fit(X, C)
    assert "dual: converged" in capsys.readouterr().err


# -- degenerate problems -----------------------------------------------------------------------------------------------


def degenerate():
    rng = np.random.default_rng(14)
    X, C = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    separable = np.where(np.arange(3) == (X[:, :1] > 0), -1.0, 1.0)
    far_apart = C * 10.0 ** rng.uniform(-6, 6, size=(30, 1))
    ties = np.round(C)
    return {
        "one sample": (sk.Simplex(), X[:1], C[:1], {}),
        "one cost": (sk.Box(), X, C[:, :1], {}),
        "one decision": (sk.Simplex(), X, C[:, :1], {}),
        "constant features": (sk.Simplex(), np.ones((30, 2)), C, {}),
        "no features": (sk.Simplex(), np.ones((30, 2)), C, {"fit_intercept": False}),
        "zero weights": (sk.Simplex(), X, C, {"sample_weight": (np.arange(30) % 3 == 0).astype(float)}),
        "constant costs": (sk.Simplex(), X, np.ones((30, 3)), {}),
        "the same decision": (sk.Simplex(), X, np.tile([0.0, 1.0, 2.0], (30, 1)), {}),
        "separable": (sk.Simplex(), X, separable, {}),
        "sizes far apart": (sk.Simplex(), X, far_apart, {}),
        "ties": (sk.TopK(2), X, ties, {}),
        "interpolation": (sk.TopK(2), rng.normal(size=(30, 60)), C, {}),
    }


@pytest.mark.parametrize(
    "penalty", [{}, {"alpha": 0.1}, {"alpha": 0.1, "l1_ratio": 0.5}, {"alpha": 0.1, "l1_ratio": 1.0}], ids=str
)
@pytest.mark.parametrize("name", degenerate())
@pytest.mark.filterwarnings("ignore:y has one column")
def test_degenerate(name, penalty):
    region, X, C, params = degenerate()[name]
    weight = params.pop("sample_weight", None)
    fits = [
        SPOPlusRegressor(region, solver=solver, **params, **penalty).fit(X, C, sample_weight=weight)
        for solver in ("dual", "conic")
    ]
    assert fits[0].duality_gap_ <= 1e-6
    assert np.isfinite(fits[0].coef_).all()
    scale = max(abs(fits[1].objective_), 1e-2 * np.abs(C).max())
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, abs=2e-6 * scale)


# -- features that are far from uncorrelated ---------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [[1.0] * 6, [1.0, 10.0, 0.1, 1.0, 5.0, 1.0]], ids=["equal", "unequal"])
def test_features_far_from_zero_without_intercept(spread):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, C = 100.0 + rng.normal(size=(15, 6)) * spread, rng.normal(size=(15, 4))
        model = sk.SPOPlusRegressor(sk.Simplex(), solver="dual", fit_intercept=False, max_iter=120).fit(X, C)
        best = simplex_lp(X, C, fit_intercept=False)
        assert model.duality_gap_ <= 1e-6
        assert model.lower_bound_ <= best + 1e-7
        assert model.objective_ == pytest.approx(best, abs=1e-6)


def test_optima_far_from_least_squares_are_reached():
    """The loss decreases along a ray; steps of one length would take thousands of iterations."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(15, 6))
    C = rng.normal(size=(15, 4)) + X @ rng.normal(size=(6, 4))
    model = sk.SPOPlusRegressor(sk.Simplex(), solver="dual", fit_intercept=False).fit(X, C)
    assert model.status_ == "converged"
    assert model.objective_ == pytest.approx(simplex_lp(X, C, fit_intercept=False), abs=1e-6)


@pytest.mark.parametrize("rank", [4, 2])
def test_whitening_changes_coordinates_only(rank):
    rng = np.random.default_rng(0)
    n, d, q = 40, 3, 4
    Z = 100.0 + rng.normal(size=(n, rank)) @ rng.normal(size=(rank, q))
    C, W, V = rng.normal(size=(n, d)), np.eye(d)[rng.integers(d, size=n)], np.eye(d)[rng.integers(d, size=n)]
    a, nothing = np.full(n, 1.0 / n), np.zeros(q)
    problem = ScaledProblem(Z, C, W, a, nothing, nothing, np.zeros((d, q)), 0.3)
    gram = (problem.scaled * a[:, None]).T @ problem.scaled * 0.3
    assert_allclose(gram[-rank:, -rank:], np.eye(rank), atol=1e-6)
    Theta = rng.normal(size=(d, q))
    T = problem.base(Theta)
    assert_allclose(problem.theta(T), Theta, atol=1e-9)
    assert_allclose(problem.predictions(problem.soft(T)), Z @ Theta.T, atol=1e-7)
    cache = Cache.of(problem, V)
    cache.mix(1.0)
    expected = 2.0 * (W - V).T @ Z / n
    assert_allclose(problem.slope(problem.moments(cache)[1]), expected, atol=1e-9 * np.abs(expected).max())


def test_only_columns_without_any_penalty_are_combined():
    rng = np.random.default_rng(0)
    for l1, l2, white in ((0.0, 0.0, True), (0.1, 0.0, False), (0.0, 0.1, False)):
        Z, C, prior = 5.0 + rng.normal(size=(30, 3)), rng.normal(size=(30, 2)), np.zeros((2, 3))
        args = np.full(30, 1 / 30), np.full(3, l1), np.full(3, l2), prior, 1.0
        assert (ScaledProblem(Z, C, np.eye(2)[np.zeros(30, int)], *args).whitening is not None) == white
