"""Training problems for the tests of solvers: regions, penalties, and their optima by other programs."""

import itertools
import warnings

import cvxpy as cp
import highspy
import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

from skspo import (
    Assignment,
    Box,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    L1Ball,
    LogBarrierSimplex,
    LqBall,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    TopK,
    spo_plus_loss,
)
from skspo.solvers import Result, Status


def gaps(objective, *shares):
    """Results of a solver that closes the gap step by step."""
    Theta = objective.least_squares
    value = objective.value(Theta)
    statuses = [Status.CONVERGED if share <= 1e-6 else Status.NUMERICAL_LIMIT for share in shares]
    return iter(
        [
            Result(Theta, value, (1.0 - share) * value, 1, status, gap=share)
            for share, status in zip(shares, statuses, strict=True)
        ]
    )


PENALTIES = [
    {},
    {"alpha": 0.05},
    {"alpha": 0.05, "prior": "least_squares"},
    {"alpha": 0.02, "l1_ratio": 1.0},
    {"alpha": 0.02, "l1_ratio": 0.5, "prior": "least_squares"},
]


def simplex_lp(X, C, fit_intercept=True):
    """Exact SPO+ training on the simplex, written directly for HiGHS: variables B (d, p), b (d,), t (n,).

    min (1/n) sum_i [ t_i + 2 (B x_i + b)_{j(i)} - c_{i j(i)} ]   s.t.  t_i + 2 (B x_i + b)_j >= c_ij
    """
    n, d = C.shape
    X1 = np.column_stack([X, np.ones(n)]) if fit_intercept else X
    best = C.argmin(axis=1)
    rows = sp.hstack([2 * sp.kron(sp.csr_array(X1), sp.eye_array(d)), sp.kron(sp.eye_array(n), np.ones((d, 1)))])
    cost = np.zeros((X1.shape[1], d))
    for i in range(n):
        cost[:, best[i]] += 2 * X1[i] / n
    cost = np.concatenate([cost.ravel(), np.full(n, 1 / n)])
    model = highspy.Highs()
    model.silent()
    for option, value in (
        ("solver", "ipm"),
        ("primal_feasibility_tolerance", 1e-9),
        ("dual_feasibility_tolerance", 1e-9),
    ):
        model.setOptionValue(option, value)
    A = sp.csc_array(rows)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = A.shape[1], A.shape[0]
    lp.col_cost_ = cost
    lp.col_lower_, lp.col_upper_ = np.full(A.shape[1], -np.inf), np.full(A.shape[1], np.inf)
    lp.row_lower_, lp.row_upper_ = C.ravel(), np.full(A.shape[0], np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    model.passModel(lp)
    model.run()
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return model.getInfo().objective_function_value - C[np.arange(n), best].mean()


def small_data(d, n=25, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * [1.0, 5.0, 0.2] + [0.0, 3.0, 0.0]
    B = rng.normal(size=(d, p))
    return X, (X @ B.T) ** 2 / 10 + rng.normal(size=(n, d)) + 1.0


def vertices_truth(vertices, X, C, sense="min", alpha=0.0, l1_ratio=0.0, prior="zero", weight=None):
    """SPO+ training over conv(vertices), as a textbook CVXPY model with one constraint per sample and vertex."""
    sign = -1.0 if sense == "max" else 1.0
    n, d = C.shape
    weight = np.ones(n) if weight is None else weight
    weight = weight / weight.sum()
    C = sign * C
    best = (C @ vertices.T).argmin(axis=1)
    B, b, t = cp.Variable((d, X.shape[1])), cp.Variable(d), cp.Variable(n)
    C_hat = X @ B.T + np.ones((n, 1)) @ cp.reshape(b, (1, d), order="C")
    constraints = [t >= (C - 2 * C_hat) @ v for v in vertices]
    W = vertices[best]
    value = weight @ (t + 2 * cp.sum(cp.multiply(C_hat, W), axis=1)) - weight @ (C * W).sum(axis=1)
    D = [B]
    if prior == "least_squares":
        ls = LinearRegression().fit(X, C, sample_weight=weight)
        D = [B - ls.coef_, b - ls.intercept_]
    penalty = sum(l1_ratio * cp.sum(cp.abs(e)) + (1 - l1_ratio) / 2 * cp.sum_squares(e) for e in D)
    problem = cp.Problem(cp.Minimize(value + alpha * penalty), constraints)
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


def box_vertices(d):
    return np.array(list(itertools.product([0.0, 1.0], repeat=d)))


POLYTOPES = [
    (Simplex(), np.eye(4)),
    (Simplex(sense="max"), np.eye(4)),
    (Box(), box_vertices(4)),
    (TopK(2), np.array([v for v in box_vertices(4) if v.sum() == 2])),
    (L1Ball(2.0), np.vstack([2 * np.eye(4), -2 * np.eye(4)])),
    (Knapsack([1, 1, 1, 1], 2, integer=False), np.array([v for v in box_vertices(4) if v.sum() <= 2])),
    (Polyhedron(A_eq=[[1, 1, 1, 1]], b_eq=[1]), np.eye(4)),
    (Assignment(2), np.array([[1.0, 0, 0, 1], [0, 1, 1, 0]])),
    (ShortestPath([(0, 1), (0, 2), (1, 2), (0, 2)], 0, 2), np.array([[1.0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])),
]


def user_objective(model, X, C):
    """The training objective from the fitted attributes alone, as written in the documentation."""
    region = model.surrogate_region if model.surrogate_region is not None else model.region
    value = spo_plus_loss(C, X @ model.coef_.T + model.intercept_, region)
    D = [model.coef_]
    if model.prior == "least_squares":
        ls = LinearRegression().fit(X, C)
        D = [model.coef_ - ls.coef_, model.intercept_ - ls.intercept_]
    return value + model.alpha * sum(
        model.l1_ratio * np.abs(e).sum() + (1 - model.l1_ratio) / 2 * (e**2).sum() for e in D
    )


SMOOTH = [
    EntropySimplex(),
    EntropySimplex(-0.7),
    LogBarrierSimplex(),
    Ellipsoid(np.diag([1.0, 2.0, 3.0, 4.0]), [1.0, 0.0, 0.0, 0.0], 2.0),
    LqBall(1.5),
    LqBall(2.0, 3.0, sense="max"),
]
EXACT = {}  # fits of exact_fit, which tests of several solvers compare with


def exact_fit(region, penalty):
    """A smooth region on ``small_data(4)`` by the conic solver, once for all tests."""
    key = str(region), str(penalty)
    if key not in EXACT:
        model = SPOPlusRegressor(region, solver="conic", tol=1e-8, **penalty)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            EXACT[key] = model.fit(*small_data(4))
    return EXACT[key]
