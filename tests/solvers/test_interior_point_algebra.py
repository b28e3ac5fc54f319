"""Linear algebra of the interior-point method: assembly, faces of planar graphs, banded factors, memory."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info, threadpool_limits

from skspo import ShortestPath, SPOPlusLoss
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Derived, Run
from skspo.datasets import make_shortest_path
from skspo.solvers.interior_point import blocks
from skspo.solvers.interior_point.banded import DualGraph
from skspo.solvers.interior_point.blocks import FeatureSums, NormalMatrix, packed_indices
from skspo.solvers.interior_point.cycles import cycle_basis
from skspo.solvers.interior_point.solver import InteriorPointSolver
from skspo.solvers.interior_point.state import State, region_form


def incidence(edges, n_nodes):
    """Incidence matrix without the row of the last node."""
    A = np.zeros((n_nodes, len(edges)))
    for j, (tail, head) in enumerate(edges):
        A[tail, j] += 1.0
        A[head, j] -= 1.0
    return A[:-1]


def grid_faces(size):
    return cycle_basis(region_form(ShortestPath.grid(size, size), 2 * size * (size - 1)).A)


# -- assembly ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elements", [1, 200, 2**18])
def test_matrix_is_the_sum_of_kronecker_products(elements, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_NUMBERS", elements)
    monkeypatch.setattr(blocks, "PANEL_SAMPLES", 7)
    rng = np.random.default_rng(0)
    n, q, k = 30, 5, 4
    Z, a, Y = rng.normal(size=(n, q)), rng.random(n), rng.normal(size=(n, k, k))
    K = Y @ Y.transpose(0, 2, 1)
    sums = FeatureSums(q, k * (k + 1) // 2)
    sums.add(K[:, *np.tril_indices(k)].T, Z, a)
    normal = NormalMatrix(q, k)
    normal.fill(sums.sums, packed_indices(k))
    truth = sum(weight * np.kron(np.outer(z, z), kernel) for weight, z, kernel in zip(a, Z, K, strict=True))
    assert_allclose(normal.H, truth, rtol=1e-12, atol=1e-12)

    curvature = rng.random((k, q))
    x = rng.normal(size=(k, q))
    assert normal.factor(curvature)
    truth += np.diag(curvature.T.ravel())
    # The product is that with the matrix, although the factor has taken half of its place.
    assert_allclose(normal.product(x).T.ravel(), truth @ x.T.ravel(), rtol=1e-12)
    assert_allclose(normal.solve(x).T.ravel(), np.linalg.solve(truth, x.T.ravel()), rtol=1e-8)


def test_singular_matrices_are_regularized_and_indefinite_ones_refused():
    normal = NormalMatrix(1, 3)
    normal.fill(np.ones((1, 6)), packed_indices(3))
    normal.H[1, 1] -= 1e-11  # needs more than the first shift
    assert normal.factor()
    assert_allclose(normal.product(np.array([[1.0], [2.0], [4.0]])).ravel(), [7.0, 7.0, 7.0], rtol=1e-10)
    normal.fill(np.array([[1.0, 3.0, 1.0, 0.0, 0.0, 1.0]]), packed_indices(3))
    assert not normal.factor()


# -- faces -------------------------------------------------------------------------------------------------------------


def test_faces_of_a_grid_are_its_squares():
    faces = grid_faces(6)
    assert faces.shape == (60, 25)
    assert (np.abs(faces).sum(axis=0) == 4).all()


@pytest.mark.parametrize("seed", range(100))
def test_faces_exist_exactly_for_planar_graphs(seed):
    nx = pytest.importorskip("networkx")
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    # Connected by a tree; parallel edges, bridges and cut nodes occur.
    edges = [(i, int(rng.integers(0, i))) for i in range(1, n)]
    edges += [tuple(rng.choice(n, 2, replace=False).tolist()) for _ in range(int(rng.integers(0, 2 * n)))]
    rng.shuffle(edges)
    A = incidence(edges, n)
    faces = cycle_basis(A)
    assert (faces is not None) == nx.check_planarity(nx.Graph(edges))[0]
    if faces is not None:
        assert faces.shape[1] == len(edges) - n + 1
        assert not faces.size or np.linalg.matrix_rank(faces) == faces.shape[1]
        assert not (A @ faces).any()
        assert ((faces == 1).sum(axis=1) <= 1).all()
        assert ((faces == -1).sum(axis=1) <= 1).all()


@pytest.mark.parametrize(
    "A",
    [np.zeros((0, 3)), np.array([[1.0, 2.0]]), np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), np.array([[1.0, 0.0]])],
    ids=["empty", "weights", "two tails", "loop"],
)
def test_other_matrices_have_no_faces(A):
    assert cycle_basis(A) is None


def test_complete_graphs():
    for n, planar in ((4, True), (5, False)):
        assert (cycle_basis(incidence([(i, j) for i in range(n) for j in range(i)], n)) is not None) == planar


# -- banded factors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_banded_factor_is_that_of_the_dense_matrix(size):
    rng = np.random.default_rng(size)
    dual = DualGraph(grid_faces(size))
    assert dual.band <= size
    N = dual.faces.toarray()
    D = 10.0 ** rng.uniform(-2, 2, size=(6, N.shape[0]))
    x = rng.normal(size=D.shape)
    factor = dual.factor(D)
    inverses = dual.inverse(factor, slice(1, 5))
    applied = dual.apply(factor, x)
    for i in range(6):
        truth = np.linalg.inv(N.T @ (N / D[i][:, None]))
        assert_allclose(applied[i], N @ truth @ N.T @ x[i], rtol=1e-9, atol=1e-9 * np.abs(applied[i]).max())
        if 1 <= i < 5:
            assert_allclose(inverses[:, i - 1][dual.square], truth, rtol=1e-9)


def exact_inverse(G):
    """Inverse by fractions."""
    k = len(G)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(k))] for i, row in enumerate(G)]
    for j in range(k):
        rows[j] = [x / rows[j][j] for x in rows[j]]
        for i in range(k):
            if i != j:
                rows[i] = [x - rows[i][j] * y for x, y in zip(rows[i], rows[j], strict=True)]
    return np.array([[float(x) for x in row[k:]] for row in rows])


def test_every_entry_of_the_inverse_is_accurate_however_much_scalings_differ():
    """At a vertex scalings are of size 1 / mu or mu; Cholesky's method with differences loses all digits there."""
    rng = np.random.default_rng(0)
    dual = DualGraph(grid_faces(4))
    N = dual.faces.toarray()
    D = 2.0 ** rng.choice([-60, 0, 60], size=(3, N.shape[0])) * (1.0 + rng.integers(0, 8, size=(3, N.shape[0])) / 8.0)
    inverses = dual.inverse(dual.factor(D), slice(0, 3))
    for i in range(3):
        weights = [1 / Fraction(x) for x in D[i]]
        k = N.shape[1]
        G = [[sum(int(N[e, r] * N[e, c]) * w for e, w in enumerate(weights)) for c in range(k)] for r in range(k)]
        truth = exact_inverse(G)
        assert truth.max() / truth.min() > 1e20
        assert_allclose(inverses[:, i][dual.square], truth, rtol=1e-13)


@pytest.mark.parametrize("penalty", [{}, {"alpha": 0.1}, {"alpha": 0.1, "l1_ratio": 0.5}], ids=str)
def test_planar_and_dense_matrices_lead_to_the_same_optimum(penalty, monkeypatch):
    region = ShortestPath.grid(4, 4)
    X, C = make_shortest_path(60, grid=(4, 4), degree=4, noise=0.5, random_state=0)
    results = []
    for work, planar in ((0, True), (np.inf, False)):
        monkeypatch.setattr("skspo.solvers.interior_point.state.PLANAR_WORK", work)
        objective = InMemoryObjective(SPOPlusLoss(region), X, C, None, **penalty)
        assert (
            State(objective, [region_form(region, 24)], objective.least_squares, Derived()).parts[0].dual is not None
        ) == planar
        results.append(InteriorPointSolver(tol=1e-7).solve(objective, Run()))  # 1e-8 is where rounding errors begin
        assert results[-1].converged
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-7)
    assert results[0].lower_bound <= results[1].objective * (1 + 1e-12)


# -- threads and memory ------------------------------------------------------------------------------------------------


def test_all_of_it_runs_with_one_blas_thread(monkeypatch):
    """Two threads made a fit to a 10x10 grid take twice as long."""
    seen = []

    def watch(owner, name):
        original = getattr(owner, name)

        def watched(*args, **kwargs):
            seen.append((name, max(library["num_threads"] for library in threadpool_info() if is_blas(library))))
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    def is_blas(library):
        return library["user_api"] == "blas"

    names = [(State, "__init__"), (State, "predictor"), (NormalMatrix, "factor")]
    for owner, name in names:
        watch(owner, name)
    X, C = make_shortest_path(30, grid=(3, 3), random_state=0)
    region = ShortestPath.grid(3, 3)
    objective = InMemoryObjective(SPOPlusLoss(region), X, C, None)
    with threadpool_limits(2, user_api="blas"):
        if max(library["num_threads"] for library in threadpool_info() if is_blas(library)) == 1:
            pytest.skip("BLAS has a single thread here")
        assert InteriorPointSolver().solve(objective, Run()).converged
    assert set(seen) == {(name, 1) for _, name in names}


PEAK = """
import resource
import numpy as np
from skspo import Simplex, SPOPlusLoss
from skspo._training.in_memory import InMemoryObjective
from skspo._training.run import Run
from skspo.solvers.interior_point.solver import InteriorPointSolver

rng = np.random.default_rng(0)
X, C = rng.normal(size=(4500, 300)), rng.normal(size=(4500, 10))
objective = InMemoryObjective(SPOPlusLoss(Simplex()), X, C, None, alpha=0.01)
objective.least_squares
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
InteriorPointSolver(max_iter=1).solve(objective, Run())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="units of ru_maxrss")
def test_memory_is_that_of_one_normal_matrix():
    """Its products of features would take 3.2 GB; the matrix has 59 MB, the sums that fill it a quarter of that."""
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(done.stdout) / 1024 < 130
