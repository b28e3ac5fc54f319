"""One model in the words of every package that read_region reads."""

import gzip
import shutil

import cvxpy as cp
import highspy
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

# One model in the words of every package: a <=, a >=, an equation and a range, bounds of all kinds, a maximum.
#
#     max 3 x0 + 2 x1 - x2 + y0 + 5 s + 7
#     x0 + x1 + x2 + y0 <= 6,   x1 - x0 >= -6,   x2 + y1 + s = 2,   1 <= x0 + y0 - y1 <= 5
#     -1 <= x0 <= 4,   x1 <= 3,   0 <= x2,   y integer in [0, 3] and {0, 1},   -2 <= s <= 1
NAMES = ["x0", "x1", "x2", "y0", "y1", "s"]
COST = np.array([3.0, 2.0, -1.0, 1.0, 0.0, 5.0])
A = np.array([[1, 1, 1, 1, 0, 0], [-1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 1, 1], [1, 0, 0, 1, -1, 0]], dtype=float)
LOW, HIGH = np.array([-np.inf, -6, 2, 1]), np.array([6, np.inf, 2, 5])
LOWER, UPPER = np.array([-1, -np.inf, 0, 0, 0, -2]), np.array([4, 3, np.inf, 3, 1, 1])
INTEGER = np.array([0, 0, 0, 1, 1, 0])


def truth(cost, integer=INTEGER, sign=1.0):
    """Least value of the cost over the model."""
    limits = LinearConstraint(A, LOW, HIGH)
    found = milp(sign * cost, constraints=limits, bounds=Bounds(LOWER, UPPER), integrality=integer)
    assert found.success
    return sign * found.fun


# -- the model in each package -----------------------------------------------------------------------------------------


def highs_model(integer=INTEGER, names=NAMES):
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = 6, 4
    lp.col_cost_, lp.col_lower_, lp.col_upper_, lp.row_lower_, lp.row_upper_ = COST, LOWER, UPPER, LOW, HIGH
    lp.sense_, lp.offset_ = highspy.ObjSense.kMaximize, 7.0
    rows = sp.csr_array(A)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    lp.integrality_ = [highspy.HighsVarType.kInteger if k else highspy.HighsVarType.kContinuous for k in integer]
    lp.col_names_ = names
    highs = highspy.Highs()
    highs.silent()
    highs.passModel(lp)
    return highs


def highs_file(tmp_path, name):
    with_names = highs_model()
    path = tmp_path / name.removesuffix(".gz")
    assert with_names.writeModel(str(path)) != highspy.HighsStatus.kError
    if name.endswith(".gz"):
        with open(path, "rb") as plain, gzip.open(tmp_path / name, "wb") as packed:
            shutil.copyfileobj(plain, packed)
    return tmp_path / name


def cvxpy_model(integer=True):
    x, y0 = cp.Variable(3, name="x"), cp.Variable(name="y0", integer=integer)
    y1, s = cp.Variable(name="y1", boolean=integer), cp.Variable(name="s", bounds=[-2, 1])
    constraints = [
        cp.sum(x) + y0 <= 6, x[1] - x[0] >= -6, x[2] + y1 + s == 2, 1 <= x[0] + y0 - y1, x[0] + y0 - y1 <= 5,
        x[0] >= -1, x[0] <= 4, 2 * x[1] <= 6, -x[2] <= 0, y0 >= 0, y0 <= 3, y1 >= 0, y1 <= 1,
    ]  # fmt: skip
    return cp.Problem(cp.Maximize(np.array([3, 2, -1]) @ x + y0 + 5 * s + 7), constraints)


def pyomo_model(integer=True):
    pyo = pytest.importorskip("pyomo.environ")
    m = pyo.ConcreteModel()
    m.x = pyo.Var([0, 1, 2], bounds=lambda m, i: [(-1, 4), (None, 3), (0, None)][i])
    m.y0 = pyo.Var(domain=pyo.NonNegativeIntegers if integer else pyo.NonNegativeReals, bounds=(None, 3))
    m.y1 = pyo.Var(domain=pyo.Binary if integer else pyo.UnitInterval)
    m.fixed = pyo.Var(initialize=2.0)
    m.fixed.fix()
    m.inner = pyo.Block()
    m.inner.s = pyo.Var(bounds=(-2, 1))
    m.most = pyo.Constraint(expr=m.x[0] + m.x[1] + m.x[2] + m.y0 + 3 <= 7 + m.fixed)
    m.least = pyo.Constraint(expr=m.x[1] - m.x[0] >= -3 * m.fixed)
    m.inner.equal = pyo.Constraint(expr=m.x[2] + m.y1 + m.inner.s == 2)
    m.both = pyo.Constraint(expr=(1, m.x[0] + m.y0 - m.y1, 5))
    m.off = pyo.Constraint(expr=m.x[0] ** 2 <= 1)
    m.off.deactivate()
    terms = 3 * m.x[0] + 2 * m.x[1] - m.x[2] + m.y0 + 5 * m.inner.s + 7
    m.profit = pyo.Objective(expr=terms, sense=pyo.maximize)
    return m


def linopy_model(integer=True):
    linopy, pandas, xarray = (pytest.importorskip(name) for name in ("linopy", "pandas", "xarray"))
    m, three = linopy.Model(), pandas.RangeIndex(4, name="i")
    bounds = [xarray.DataArray(value, coords=[three]) for value in ([-1, -np.inf, 0, 0], [4, 3, np.inf, 1])]
    there = xarray.DataArray([True, True, True, False], coords=[three])  # x[3] does not exist
    x = m.add_variables(*bounds, coords=[three], mask=there, name="x")
    y0 = m.add_variables(0, 3, integer=integer, name="y0")
    y1 = m.add_variables(binary=True, name="y1") if integer else m.add_variables(0, 1, name="y1")
    s = m.add_variables(-2, 1, name="s")
    x0, x1, x2 = (x.isel(i=k, drop=True) for k in range(3))
    m.add_constraints(x.sum() + y0 <= 6)
    m.add_constraints(x1 - x0 >= -6)
    m.add_constraints(x2 + y1 + s == 2)
    m.add_constraints(x0 + y0 - y1 >= 1)
    m.add_constraints(x0 + y0 - y1 <= 5)
    m.add_objective(3 * x0 + 2 * x1 - x2 + y0 + 5 * s, sense="max")
    return m


def scipy_arguments(integer=INTEGER):
    limits = [LinearConstraint(A[:2], LOW[:2], HIGH[:2]), LinearConstraint(sp.csr_array(A[2:]), LOW[2:], HIGH[2:])]
    return {"c": -COST, "constraints": limits, "bounds": Bounds(LOWER, UPPER), "integrality": integer}


def pyomo_file(tmp_path, name):
    path = tmp_path / name
    pyomo_model().write(str(path), io_options={"symbolic_solver_labels": True})
    return path


def linopy_file(tmp_path, name):
    linopy_model().to_file(tmp_path / name, progress=False)
    return tmp_path / name


XS = ["x[0]", "x[1]", "x[2]", "y0", "y1"]
#: for each source: how to make it, names of the six variables, and the sense
SOURCES = {
    "highspy": (lambda _: highs_model(), NAMES, "max"),
    "highspy.mps": (lambda folder: highs_file(folder, "model.mps"), NAMES, "max"),
    "highspy.lp": (lambda folder: str(highs_file(folder, "model.lp")), NAMES, "max"),
    "highspy.mps.gz": (lambda folder: highs_file(folder, "model.mps.gz"), NAMES, "max"),
    "highspy.lp.gz": (lambda folder: highs_file(folder, "model.lp.gz"), NAMES, "max"),
    "scipy": (lambda _: scipy_arguments(), None, "min"),
    "cvxpy": (lambda _: cvxpy_model(), [*XS, "s"], "max"),
    "pyomo": (lambda _: pyomo_model(), [*XS, "inner.s"], "max"),
    "pyomo.lp": (lambda folder: pyomo_file(folder, "model.lp"), None, "max"),
    "pyomo.mps": (lambda folder: pyomo_file(folder, "model.mps"), None, "max"),
    "linopy": (lambda _: linopy_model(), [*XS, "s"], "max"),
    "linopy.lp": (lambda folder: linopy_file(folder, "model.lp"), None, "max"),
    "linopy.mps": (lambda folder: linopy_file(folder, "model.mps"), None, "max"),
}


def in_order(region, name):
    """Columns of the region for x0, x1, x2, y0, y1, s."""
    names = SOURCES[name][1]
    if names is None and name == "scipy":
        return np.arange(6)
    found = list(region.names())
    if names is None:  # the writers change names: x(0) or x_0_, or numbers in the order of the model
        if name.startswith("linopy"):
            return np.array([found.index(f"x{k}") for k in (0, 1, 2, 4, 5, 6)])
        ends = [("x(0)", "x(0)_"), ("x(1)", "x(1)_"), ("x(2)", "x(2)_"), ("y0",), ("y1",), ("inner_s", "inner.s")]
        return np.array([next(found.index(one) for one in some if one in found) for some in ends])
    return np.array([found.index(one) for one in names])


#: two small files
MPS = """NAME t
ROWS
 N obj
 L c1
COLUMNS
 x obj 1 c1 1
 y obj 1 c1 1
RHS
 rhs c1 4
BOUNDS
 UP bnd x 9
 UP bnd y 9
ENDATA
"""
LP = """Maximize
 obj: x + 2 y
Subject To
 c1: x + y <= 4
Bounds
 x <= 5
 y <= 5
End
"""


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path
