"""``read_region``: which reader a source needs, and which of its variables have predicted costs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, Literal, overload

import numpy as np
import scipy.sparse as sp

from ..._utils.shown import shown
from ..base import Region
from ..image import LinearImage
from . import _cvxpy, _highs, _linopy, _pyomo, _scipy
from ._model import Model

#: the reader of the objects of each package
READERS: dict[str, Callable[[Any], Model]] = {
    "highspy": _highs.read_highs,
    "scipy": _scipy.read_scipy,
    "cvxpy": _cvxpy.read_cvxpy,
    "pyomo": _pyomo.read_pyomo,
    "linopy": _linopy.read_linopy,
}

EXPECTED = (
    "a path to an .mps or .lp file, a highspy.Highs, scipy.optimize.LinearConstraint and Bounds or a dict of the "
    "arguments of scipy.optimize.milp or linprog, a cvxpy.Problem or list of constraints, a Pyomo ConcreteModel, or a "
    "linopy.Model"
)


@overload
def read_region(source: Any, variables: Any = None, *, return_objective: Literal[False] = False) -> Region: ...


@overload
def read_region(
    source: Any, variables: Any = None, *, return_objective: Literal[True]
) -> tuple[Region, np.ndarray]: ...


def read_region(
    source: Any, variables: Any = None, *, return_objective: bool = False
) -> Region | tuple[Region, np.ndarray]:
    """Make a region from a model that exists already: a file, or an object of another package.

    The region has the constraints, the names of the variables and the sense of the model.  It is a
    :class:`Polyhedron` if all variables are continuous and all constraints linear, a :class:`MixedInteger` if some
    variables are integers, and a :class:`CvxpyRegion` for other convex constraints of CVXPY.  If the model has
    something that these cannot represent, there is an error that names it.

    Parameters
    ----------
    source : path, object or list
        One of

        - the path of an .mps or .lp file, also .gz;
        - a ``highspy.Highs``;
        - a :class:`scipy.optimize.LinearConstraint` or ``scipy.optimize.Bounds``, a list of those, or a dict of
          the arguments of :func:`scipy.optimize.milp` or :func:`scipy.optimize.linprog`.  Variables are nonnegative
          unless there are bounds, as in these functions;
        - a ``cvxpy.Problem`` or a list of CVXPY constraints;
        - a Pyomo ``ConcreteModel``;
        - a ``linopy.Model``.
    variables : name, number or variable, or list of those, default=None
        Variables whose costs are predicted.  "x" stands for all of x[0], x[1], ...; variables of CVXPY, Pyomo and
        linopy may be given themselves.  The costs of all other variables are those of the model's objective, which
        are known: the region is a :class:`LinearImage` whose ``known_cost`` they are, or which has none if they are
        zero.  None means that the costs of all variables are predicted.
    return_objective : bool, default=False
        Whether to return the objective of the model as well.

    Returns
    -------
    region : Region
    objective : ndarray of shape (region.n_dim,)
        The costs for which ``region.argmin(objective)`` is the optimum of the model itself.  Only if
        ``return_objective=True``.  A constant in the objective is left out.  Pass ``offset=objective`` to ``fit`` and
        ``predict`` to predict how much costs differ from those of the model.

    See Also
    --------
    LinearImage : Decisions of which only a part, or a linear function, has predicted costs.

    Notes
    -----
    A region is bounded: a variable without bounds that no constraint limits is an error.

    The constraints are those of ``A_ub``, ``b_ub``, ``A_eq`` and ``b_eq``, in the order of the model: first rows with
    an upper bound, then those with a lower bound, multiplied by -1.

    Variables that are fixed in a Pyomo model are constants.  Arrays of CVXPY variables are read row by row.

    Examples
    --------
    >>> import os, tempfile
    >>> from skspo import read_region
    >>> text = '''Maximize
    ...  profit: 3 bread + 2 cake - rent
    ... Subject To
    ...  oven: bread + 2 cake - 4 rent <= 8
    ... Bounds
    ...  bread <= 6
    ...  cake <= 5
    ... Binary
    ...  rent
    ... End'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "bakery.lp")
    ...     with open(path, "w") as file:
    ...         _ = file.write(text)
    ...     region, objective = read_region(path, return_objective=True)
    ...     prices = read_region(path, variables=["bread", "cake"])
    >>> region.names()
    array(['bread', 'cake', 'rent'], dtype=object)
    >>> region.argmin(objective)
    array([6., 3., 1.])

    Only the prices of bread and cake are predicted, the rent is known.  The last entry of a decision is its known cost:

    >>> prices.argmin(prices.extend([[3.0, 2.0], [1.0, 0.1]]))
    array([[ 6.,  3., -1.],
           [ 6.,  1.,  0.]])
    >>> prices.inner_argmin(prices.extend([1.0, 0.1]))
    array([6., 1., 0.])
    """
    model = _find_reader(source)(source)
    d = model.cost.size
    model.region._data(d)  # an empty or unbounded region is an error here, and not when it is used
    region, objective = (model.region, model.cost) if variables is None else _choose(model, variables)
    return (region, objective) if return_objective else region


def _package(value: Any) -> str:
    """Name of the package whose object a value is; empty if it is none of those that can be read."""
    roots = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((root for root in roots if root in READERS), "")


def _find_reader(source: Any) -> Callable[[Any], Model]:
    if isinstance(source, str | os.PathLike):
        return _highs.read_file
    if isinstance(source, dict):
        return _scipy.read_arguments
    found = {_package(one) for one in source} if isinstance(source, list | tuple) else {_package(source)}
    if len(found) == 1 and (package := found.pop()):
        return READERS[package]
    if isinstance(source, type):
        got = f"the class {source.__name__}"
    elif isinstance(source, list | tuple):
        got = f"a {type(source).__name__} of {', '.join(sorted({type(one).__name__ for one in source})) or 'nothing'}"
    else:
        got = repr(source)
    raise TypeError(f"read_region: source must be {EXPECTED}; got {got}.")


# -- variables with predicted costs ------------------------------------------------------------------------------------


def _choose(model: Model, variables: Any) -> tuple[LinearImage, np.ndarray]:
    """Image of the chosen variables, with what the others cost; and the costs of the model itself."""
    d = model.cost.size
    columns = _find_columns(model.region, d, variables)
    known = model.cost.copy()
    known[columns] = 0.0
    pick = sp.csr_array((np.ones(len(columns)), (np.arange(len(columns)), columns)), shape=(len(columns), d))
    image = LinearImage(model.region, pick, known if known.any() else None)
    return image, np.asarray(image.extend(model.cost[columns]))


def _find_columns(region: Region, d: int, variables: Any) -> list[int]:
    """Numbers of the chosen variables, in the given order."""
    several = isinstance(variables, Iterable) and not isinstance(variables, str) and not _package(variables)
    names = region.names(d)
    position = {} if names is None else {name: j for j, name in enumerate(names)}
    groups: dict[str, list[int]] = {}
    for name, j in position.items():
        groups.setdefault(name.partition("[")[0].partition("(")[0], []).append(j)
    columns: list[int] = []
    for one in list(variables) if several else [variables]:
        columns += _find_one(one, d, position, groups)
    if not columns:
        raise ValueError("read_region: variables is empty. None means that the costs of all variables are predicted.")
    if len(set(columns)) < len(columns):
        j = next(j for j in columns if columns.count(j) > 1)
        what = f"variable {j}" if names is None else repr(names[j])
        raise ValueError(f"read_region: variables has {what} more than once.")
    return columns


def _find_one(one: Any, d: int, position: dict[str, int], groups: dict[str, list[int]]) -> list[int]:
    if isinstance(one, int | np.integer) and not isinstance(one, bool):
        if not 0 <= one < d:
            raise ValueError(f"read_region: variables has the number {one}, but the model has variables 0 to {d - 1}.")
        return [int(one)]
    name = one
    if _package(one) == "highspy":  # its variables need not have names
        return _find_one(getattr(one, "index", None), d, position, groups)
    if _package(one):
        label = getattr(one, "name", None)
        name = label() if callable(label) else label
    if not isinstance(name, str):
        raise TypeError(f"read_region: variables must be names, numbers or variables of the model, got {shown(one)}.")
    if name in position:
        return [position[name]]
    if name in groups:
        return groups[name]
    if not position:
        raise ValueError(
            f"read_region: the variables of this model have no names, so that {name!r} is unknown; give their numbers."
        )
    near = get_close_matches(name, [*position, *groups], n=3)
    some = near or list(position)[:5]
    raise ValueError(
        f"read_region: the model has no variable {name!r} (fixed ones do not count). "
        f"{'Similar names' if near else 'The first names'}: {', '.join(map(repr, some))}."
    )
