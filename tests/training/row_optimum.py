"""Least SPO+ loss of a linear model where the region varies by sample, by CVXPY."""

import cvxpy as cp
import numpy as np


def optimum(X, C, best, support, *, sense="min", alpha=0.0, offset=0.0, shared=False):
    """Least mean of support_i(c - 2 c_hat) + 2 c_hat.w_i - c.w_i, plus a ridge on slopes, by CVXPY."""
    sign = -1.0 if sense == "max" else 1.0
    n, d = C.shape
    V, C_hat = cp.Variable((n, d)), cp.Variable((n, d))
    if shared:
        B, b = cp.Variable((X.shape[1] // d, 1)), cp.Variable()
        model = cp.reshape(X.reshape(n * d, -1) @ B + b, (n, d), order="C")
    else:
        B, b = cp.Variable((X.shape[1], d)), cp.Variable((1, d))
        model = X @ B + np.ones((n, 1)) @ b
    t, constraints = support(V)
    constraints += [C_hat == sign * (offset + model), V == sign * C - 2 * C_hat]
    loss = (cp.sum(t) + 2 * cp.sum(cp.multiply(best, C_hat)) - float((sign * C * best).sum())) / n
    problem = cp.Problem(cp.Minimize(loss + 0.5 * alpha * cp.sum_squares(B)), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def listed(vertices):
    """Support functions of the convex hulls of a list of points for each row."""

    def support(V):
        t = cp.Variable(V.shape[0])
        return t, [t[i] >= points @ V[i] for i, points in enumerate(vertices)]

    return support
