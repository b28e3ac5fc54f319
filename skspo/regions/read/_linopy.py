"""Models of linopy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ._model import LinearRows, Model


def read_linopy(source: Any) -> Model:
    """Read the matrices of a model."""
    import linopy

    if not isinstance(source, linopy.Model):
        raise TypeError(f"read_region: of linopy, source must be a linopy.Model, got {type(source).__name__}.")
    if not len(source.variables):
        raise ValueError("read_region: the linopy model has no variables.")
    _check_kinds(source)
    matrices = source.matrices
    labels = np.asarray(matrices.vlabels)
    names = [_name(*place) for place in source.variables.get_label_position(labels)]
    d = labels.size
    A = sp.csr_array((0, d)) if matrices.A is None else sp.csr_array(matrices.A)
    b, signs = np.asarray(matrices.b, dtype=np.float64), np.asarray(matrices.sense, dtype=object)
    low, high = np.where(signs == "<", -np.inf, b), np.where(signs == ">", np.inf, b)
    # The matrices are those of scaled variables y = scale x, if the user wants it.
    scale = np.asarray(getattr(matrices, "var_scaling", np.ones(d)), dtype=np.float64)
    lower, upper = (np.asarray(bound, dtype=np.float64) / scale for bound in (matrices.lb, matrices.ub))
    rows = LinearRows(sp.csr_array(A @ sp.diags_array(scale)), low, high, lower, upper)
    types = np.asarray(matrices.vtypes)
    sense = "max" if source.objective.sense == "max" else "min"
    cost = np.asarray(matrices.c, dtype=np.float64) * scale / float(getattr(source.objective, "scaling", 1.0))
    return Model(rows.region(types != "C", sense, names), cost)


def _check_kinds(source: Any) -> None:
    """Raise an error for what cannot be represented; older versions of linopy do not have all of it."""
    if source.is_quadratic:
        raise ValueError("read_region: the linopy model has a quadratic objective, which cannot be represented.")
    found = {
        "semi-continuous variables": getattr(source, "semi_continuous", ()),
        "special ordered sets of the variables": getattr(source.variables, "sos", ()),
        "indicator constraints": getattr(source.constraints, "indicator", ()),
    }
    for what, names in found.items():
        if len(names):
            raise ValueError(
                f"read_region: the linopy model has {what} {', '.join(map(repr, names))}, which cannot be represented. "
                "Use linear constraints and integer variables instead."
            )


def _name(name: str, coordinates: dict[str, Any]) -> str:
    return f"{name}[{','.join(map(str, coordinates.values()))}]" if coordinates else name
