"""Models of Pyomo."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._utils.errors import InfeasibleRegionError
from ._model import LinearRows, Model


def read_pyomo(source: Any) -> Model:
    """Read the active variables, constraints and objective of a model."""
    import pyomo.environ as pyo

    if getattr(source, "ctype", None) is not pyo.Block:
        raise TypeError(f"read_region: of Pyomo, source must be a ConcreteModel, got {type(source).__name__}.")
    if not source.is_constructed():
        raise ValueError(
            "read_region: the Pyomo model has no data yet. Pass what create_instance() of an AbstractModel returns."
        )
    _check_components(source)
    variables: dict[int, Any] = {}  # by identity, in the order of the columns
    for v in source.component_data_objects(pyo.Var, active=True, descend_into=True):
        if not v.fixed:
            variables.setdefault(id(v), v)
    constraints = []
    for constraint in source.component_data_objects(pyo.Constraint, active=True, descend_into=True):
        entries, constant = _linear(constraint.body, f"the constraint {constraint.name!r}", variables)
        low = -np.inf if constraint.lb is None else constraint.lb - constant
        high = np.inf if constraint.ub is None else constraint.ub - constant
        tol = 1e-9 * max(1.0, abs(constant))
        if not entries and (low > tol or high < -tol):
            raise InfeasibleRegionError(
                f"read_region: the region is empty, the constraint {constraint.name!r} has no variable that is not "
                "fixed, and it does not hold."
            )
        constraints.append((entries, low, high))
    objectives = list(source.component_data_objects(pyo.Objective, active=True, descend_into=True))
    if len(objectives) > 1:
        some = ", ".join(repr(objective.name) for objective in objectives)
        raise ValueError(f"read_region: the Pyomo model has several objectives, {some}. Deactivate all but one.")
    costs: dict[int, float] = {}
    for objective in objectives:
        costs, _ = _linear(objective.expr, f"the objective {objective.name!r}", variables)
    if not variables:
        raise ValueError("read_region: the Pyomo model has no variables that are not fixed.")
    column = {key: j for j, key in enumerate(variables)}
    low, high = (np.array([one[side] for one in constraints], dtype=np.float64) for side in (1, 2))
    cells = [(i, column[key], value) for i, one in enumerate(constraints) for key, value in one[0].items()]
    i, j, values = zip(*cells, strict=True) if cells else ((), (), ())
    A = sp.csr_array((values, (i, j)), shape=(len(constraints), len(variables)), dtype=np.float64)
    cost = np.zeros(len(variables))
    cost[[column[key] for key in costs]] = list(costs.values())
    lower, upper, integers = _domains(list(variables.values()))
    sense = "max" if objectives and objectives[0].sense == pyo.maximize else "min"
    rows = LinearRows(A, low, high, lower, upper)
    return Model(rows.region(integers, sense, [v.name for v in variables.values()]), cost)


def _check_components(source: Any) -> None:
    """Raise an error for components that are neither data nor linear: disjunctions, special ordered sets, ..."""
    import pyomo.environ as pyo

    data = (pyo.Param, pyo.Set, pyo.SetOf, pyo.RangeSet, pyo.Suffix, pyo.BuildAction, pyo.BuildCheck)
    known = {pyo.Var, pyo.Constraint, pyo.Objective, pyo.Expression, pyo.Block, *data}
    for component in source.component_objects(active=True, descend_into=True):
        if component.ctype not in known:
            raise ValueError(
                f"read_region: the Pyomo model has the {component.ctype.__name__} {component.name!r}, which cannot be "
                "represented. Transform it into linear constraints and integer variables, or deactivate it."
            )


def _linear(expression: Any, what: str, variables: dict[int, Any]) -> tuple[dict[int, float], float]:
    """Coefficients, by identity of the variable, and the constant; new variables are added to ``variables``."""
    from pyomo.repn import generate_standard_repn

    form = generate_standard_repn(expression, quadratic=False)
    if not form.is_linear():
        raise ValueError(
            f"read_region: {what} of the Pyomo model is not linear and cannot be represented: {expression}."
        )
    entries: dict[int, float] = {}
    for v, value in zip(form.linear_vars, form.linear_coefs, strict=True):
        variables.setdefault(id(v), v)
        entries[id(v)] = entries.get(id(v), 0.0) + float(value)
    return entries, float(form.constant)


def _domains(variables: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds, and which variables are integers."""
    for v in variables:
        if not (v.is_continuous() or v.is_integer() or v.is_binary()):
            raise ValueError(
                f"read_region: the variable {v.name!r} of the Pyomo model has the domain {v.domain}, which cannot be "
                "represented. It must be an interval of reals or integers."
            )
    lower = [-np.inf if v.lb is None else v.lb for v in variables]
    upper = [np.inf if v.ub is None else v.ub for v in variables]
    integers = np.array([not v.is_continuous() for v in variables])
    return np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64), integers
