"""Regions of ``regions_list.py`` by models that are not our code, costs for them, and parameters of tests."""

from __future__ import annotations

import functools

import cvxpy as cp
import numpy as np
import pytest
from regions_list import REGIONS
from scipy.optimize import linprog

import skspo as sk
from skspo.calibration import relative_width
from skspo.solvers.conic import is_linear

# Tolerance and step fraction of Clarabel, in turn: close to the limits of arithmetic some programs stall.
TIGHT = ((1e-11, 0.99), (1e-10, 0.9), (1e-9, 0.9), (1e-8, 0.9))
TIGHT_LP = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "mip_feasibility_tolerance": 1e-10,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 1e-10,
}
CASES = {case.id: case for case in REGIONS}
every = pytest.mark.parametrize("case", REGIONS, ids=lambda case: case.id)


def those_with(capability):
    cases = [case for case in REGIONS if hasattr(case.region, capability)]
    assert cases, f"no region has {capability}"
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


def knows(function, region):
    """Whether diameter or relative_width is known for a region."""
    unknown = function.dispatch(type(region)) is function.dispatch(object)
    inner = getattr(region, "region", region)
    return not unknown and not (function is relative_width and not getattr(inner, "_is_polyhedron", True))


def those_that_know(function):
    return pytest.mark.parametrize(
        "case", [case for case in REGIONS if knows(function, case.region)], ids=lambda case: case.id
    )


def costs(d, seed=0):
    """Rows of both signs and all scales, with ties, zeros, and constant rows."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(6, d)) * np.array([1, 1, 1e-6, 1e-6, 1e6, 1e6])[:, None]
    one_sided = rng.uniform(0.5, 2.0, size=(2, d)) * np.array([[1], [-1]])
    ties = rng.integers(-2, 3, size=(5, d)) * np.array([1, 1, 1, 1e-6, 1e6])[:, None]
    some_zeros = rng.normal(size=(2, d)) * (rng.random((2, d)) < 0.5)
    one_entry = np.eye(d)[[0, d - 1]] * np.array([[3.0], [-3.0]])
    constant = np.array([0.0, 1.0, -1.0, 1e6, -1e-6])[:, None] * np.ones(d)
    return np.concatenate([normal, one_sided, ties, some_zeros, one_entry, constant])


def sampled(case, n=400, seed=3):
    """Many decisions, for costs in random directions and along the axes."""
    rng = np.random.default_rng(seed)
    C = np.concatenate([rng.normal(size=(n, case.d)), np.eye(case.d), -np.eye(case.d)])
    return case.region.solve_min(np.concatenate([C, -C]))


def few(case):
    """Number of samples that a solver call for each row can afford."""
    solved = ("path-cyclic", "knapsack-real", "knapsack-fractional-two", "image-max")
    kinds = (sk.CvxpyRegion, sk.Markowitz, sk.MixedInteger, sk.Polyhedron)
    return 15 if isinstance(case.region, kinds) or case.id in solved else 200


def solve(problem, linear):
    """Optimal value, to at least 1e-8."""
    if linear:
        problem.solve(cp.HIGHS, **TIGHT_LP)
        assert problem.status == "optimal"
        return problem.value
    for tolerance, step in TIGHT:
        names = [f"{kind}tol_{name}" for kind in ("", "reduced_") for name in ("gap_abs", "gap_rel", "feas")]
        try:
            problem.solve(cp.CLARABEL, max_step_fraction=step, **dict.fromkeys(names, tolerance))
        except cp.SolverError:
            continue
        assert problem.status == "optimal"
        return problem.value
    raise AssertionError("Clarabel could not solve the model")


class Truth:
    """The set of a case, by its model alone."""

    def __init__(self, case):
        self.d = case.d
        self.integers = list(case.integers)
        self.points = case.model if isinstance(case.model, np.ndarray) else None
        if self.points is None:
            self.w = cp.Variable(case.d, integer=(self.integers,)) if self.integers else cp.Variable(case.d)
            self.constraints = case.model(self.w)
            self.cost = cp.Parameter(case.d)
            self.problem = cp.Problem(cp.Minimize(self.cost @ self.w), self.constraints)
            self.linear = bool(self.integers) or is_linear(self.problem)

    def best(self, C):
        """Optimal value of each row, solved for costs of size one and scaled back."""
        if self.points is not None:
            return (C @ self.points.T).min(axis=1)
        values = []
        for c in C:
            scale = np.abs(c).max() or 1.0
            self.cost.value = c / scale
            values.append(scale * solve(self.problem, self.linear))
        return np.array(values)

    def worst(self, c, c_true):
        """Largest c_true.w among the decisions that are optimal for c, and how far from the truth it may be."""
        if self.points is not None:
            value = self.points @ c
            return (self.points @ c_true)[value <= value.min() + 1e-9].max(), 1e-12
        # It is minus the derivative of the optimal value in the direction of -c_true (Danskin).  On a flat set the
        # value is linear near c, on a curved one the quotient is too large by a multiple of the step.
        step, error = (1e-3, 1e-9) if self.linear else (2e-5, 1e-3)
        here, there, best_of_all = self.best(np.array([c, c - step * c_true, -c_true]))
        return (-best_of_all, 1e-7) if not c.any() else ((here - there) / step, error)

    def outside(self, W):
        """How far each row is from the convex hull."""
        if self.points is None:
            return self.violation(W)
        m, d = self.points.shape
        ones = np.ones((d, 1))
        A_ub = np.vstack([np.hstack([self.points.T, -ones]), np.hstack([-self.points.T, -ones])])
        total = {"A_eq": np.append(np.ones(m), 0.0)[None], "b_eq": [1.0]}
        cost = np.append(np.zeros(m), 1.0)
        return np.array([linprog(cost, A_ub, np.append(w, -w), **total).fun for w in W])

    def violation(self, W):
        """Largest violation of any constraint by each row."""
        if self.points is not None:
            return np.abs(W[:, None, :] - self.points).max(axis=2).min(axis=1)
        worst = []
        for w in W:
            self.w.save_value(w)
            broken = np.abs(w[self.integers] - np.round(w[self.integers])).max(initial=0.0)
            worst.append(max(broken, *(np.max(c.violation()) for c in self.constraints)))
        return np.array(worst)


@functools.cache
def truth(case_id):
    return Truth(CASES[case_id])


def size(case):
    """Largest entry of any decision, or one: what an error of a decision is relative to."""
    return max(1.0, np.abs(sampled(case, 5)).max())


def row_dot(A, B):
    return np.einsum("ij,ij->i", A, B)
