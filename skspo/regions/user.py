"""Regions that users define: by constraints in CVXPY, or by a function that returns decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from .._utils.errors import InfeasibleRegionError, SolverError, UnboundedRegionError, import_cvxpy, warn_once
from .._utils.shown import shown
from ._cost_bounds import CostBounds
from ._names import Names
from ._oracles.clarabel import ConicSet
from ._oracles.clarabel_cones import cones_of
from ._oracles.user import Witness, Witnesses
from ._rows import refuse_rows, row_error, rows_among, rows_named
from .base import Entry, Region

if TYPE_CHECKING:
    import cvxpy as cp


class _FunctionRegion(Region):
    """Base class of regions that hold a function."""

    n_dim: int | None = None

    def __sklearn_clone__(self) -> Region:
        # The function is shared and not deep-copied.
        return type(self)(**{name: getattr(self, name) for name in self._get_param_names()})

    def _check_n_dim(self) -> None:
        if isinstance(self.n_dim, bool) or not isinstance(self.n_dim, (int, np.integer)) or self.n_dim < 1:
            raise ValueError(f"{self.label}: n_dim must be a positive integer, got {shown(self.n_dim)}.")


def _short(vector: np.ndarray) -> str:
    return np.array2string(vector, precision=6, threshold=20, separator=", ").replace("\n", "")


class OracleRegion(_FunctionRegion):
    r"""A region known only by a function that finds the best decisions.

    Parameters
    ----------
    oracle : callable
        Function that takes an array of shape (n_samples, d) and returns the best decision for each row, an array of
        the same shape.  The numbers are costs to be minimized if ``sense="min"``, and values to be maximized if
        ``sense="max"``.  It must accept any finite numbers, also negative ones, because training asks for the decisions
        of :math:`2 \hat c - c`.  It gets a copy, which it may change.
    n_dim : int, default=None
        Number of decision variables; None if the function works for any number of columns.
    sense : {"min", "max"}, default="min"
        Whether the function minimizes costs or maximizes values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.
    on_suboptimal : {"raise", "warn"}, default="raise"
        What to do if the function is found not to be optimal: it returned a decision although another one, which it
        returned before or for another row, is better.  "warn" is for heuristics: there is one warning, and a fit
        continues (see Notes).
    variable_names : list of str, default=None
        One name for each decision variable, for example those of the columns of a model.

    Notes
    -----
    skspo cannot verify that decisions are optimal.  It compares them with a few dozen others that the function
    returned.  This detects most functions that are random, heuristic or inexact (set the gap and tolerance of a solver
    to at most 1e-6), or that return infeasible decisions.  A function that never returns the better decisions cannot be
    detected: it is a correct oracle of a smaller set, and the certificate of a fit holds for that set.

    With a heuristic the SPO+ loss is not reliable: it is too small where the heuristic misses good decisions, and may
    be negative.  If a heuristic is detected and ``on_suboptimal="warn"``, a linear fit returns the candidate for which
    the cost of the function's decisions on the training data, plus the penalty, is smallest.  Candidates are least
    squares, its intercept alone, and the results of the solvers; ``solver="auto"`` then runs sgd as well as bundle.
    ``objective_`` is the loss of that model as it was evaluated.  ``lower_bound_`` is -inf and ``duality_gap_`` is inf,
    because nothing is proved.

    If the function raises an error, a note that names the row of the data is added.  ``clone`` shares the function.
    For pickling, for example with ``n_jobs``, the function must be defined in a module.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo import OracleRegion
    >>> def pick_best(V):
    ...     return np.eye(V.shape[1])[V.argmax(axis=1)]
    >>> OracleRegion(pick_best, 3, sense="max").argmin([[3.0, 1.0, 2.0]])
    array([[1., 0., 0.]])
    """

    def __init__(
        self,
        oracle: Callable[[np.ndarray], ArrayLike],
        n_dim: int | None = None,
        *,
        sense: str = "min",
        cost_bounds: CostBounds = None,
        on_suboptimal: str = "raise",
        variable_names: Names = None,
    ) -> None:
        # The parameter cannot be called argmin: scikit-learn needs an attribute of its name, and argmin is a method.
        self.oracle = oracle
        self.n_dim = n_dim
        self.sense = sense
        self.cost_bounds = cost_bounds
        self.on_suboptimal = on_suboptimal
        self.variable_names = variable_names

    def _prepare(self, d: int) -> Witnesses:
        if self.on_suboptimal not in ("raise", "warn"):
            raise ValueError(f"OracleRegion: on_suboptimal must be 'raise' or 'warn', got {shown(self.on_suboptimal)}.")
        if not callable(self.oracle):
            raise TypeError(
                "OracleRegion: oracle must be a function that turns costs of shape (n_samples, d) into decisions of "
                f"the same shape, got {shown(self.oracle)}."
            )
        if self.n_dim is not None:
            self._check_n_dim()
        return Witnesses()

    def _argmin(self, C: np.ndarray, data: Witnesses) -> np.ndarray:
        if C.shape[0] == 0:
            return np.empty(C.shape)
        try:
            result = self._ask(C)
        except Exception as error:
            self._name_row(error, C)
            raise
        W = self._read(result, C)
        self._report(data, data.look(C, W, self._row_names))
        return W

    def _ask(self, C: np.ndarray) -> ArrayLike:
        # to_min is its own inverse: the oracle gets the numbers in the user's sense.
        return self.oracle(np.array(self.to_min(C)))

    def _name_row(self, error: Exception, C: np.ndarray) -> None:
        """Find a row for which the function raises an error, by bisection, and add a note with its name."""
        first, last = 0, C.shape[0]
        while last - first > 1:
            middle = (first + last) // 2
            for part in ((first, middle), (middle, last)):
                try:
                    self._ask(C[slice(*part)])
                except Exception:
                    first, last = part
                    break
            else:
                break
        which = f"{self._row_names.of(first)}, {_short(self.to_min(C[first]))}"
        if last - first > 1:
            some = ", ".join(self._row_names.of(row) for row in range(first, min(first + 3, last)))
            which = f"{last - first} rows together ({some}{', ...' if last - first > 3 else ''})"
        error.add_note(f"OracleRegion: the oracle raised this error for {which}, of an array of shape {C.shape}.")

    @property
    def oracle_is_solver(self) -> bool:
        """True, because the function may call a solver for every row."""
        return True

    @property
    def _may_be_inexact(self) -> bool:
        """Whether the user allows it with ``on_suboptimal="warn"``."""
        return self.on_suboptimal == "warn"

    @property
    def _fault(self) -> str | None:
        entry = self.__dict__.get("_cache", {}).get("data")
        return None if entry is None else entry[2].fault

    def audit(self, n_dim: int) -> None:
        """Compare the decisions of the first call with all that are known now."""
        data = self._data(n_dim)
        self._report(data, data.look_back())

    def distrust(self, why: str, n_dim: int) -> None:
        """Record that the oracle is not optimal: raise an error or warn once, as ``on_suboptimal`` says."""
        data = self._data(n_dim)
        text = f"OracleRegion: {why}"
        if self.on_suboptimal == "raise":
            raise ValueError(
                f"{text} If it is meant to be a heuristic, use on_suboptimal='warn': a fit then continues, without a "
                "lower bound."
            )
        if data.fault is None:
            data.fault = why
            warn_once(
                f"{text} A linear fit continues and returns the model whose decisions by this oracle cost least on the "
                "training data. It has no lower bound: lower_bound_ is -inf and duality_gap_ is inf.",
                UserWarning,
            )

    def _report(self, data: Witnesses, witness: Witness | None) -> None:
        if witness is None or (data.fault is not None and self.on_suboptimal == "warn"):
            return
        c = self.to_min(witness.c)
        costs = "costs" if self.sense == "min" else "is worth"
        self.distrust(
            f"the oracle is not optimal, or its decisions are not all feasible. For {witness.row}, {_short(c)}, it "
            f"returned {_short(witness.w)}, which {costs} {c @ witness.w:.9g}. But {_short(witness.better)}, which it "
            f"returned at another time or for another row, {costs} {c @ witness.better:.9g}. Is sense={self.sense!r} "
            "right? If the oracle calls a solver, set its gap and tolerance to at most 1e-6.",
            witness.c.size,
        )

    def _read(self, result: ArrayLike | None, C: np.ndarray) -> np.ndarray:
        """Copy the decisions into a float array, and check their type, shape and that they are finite."""
        got = f"{type(result)}."
        try:
            dtype = np.asarray(result).dtype
            got = f"{type(result)} of type {dtype}."
            if dtype.kind == "c" or result is None:
                got = "None: is there a return statement?" if result is None else "complex numbers."
            # Reject strings, even if NumPy could convert them to numbers.
            W = np.array(result, dtype=np.float64) if dtype.kind in "biufO" and result is not None else None
        except (TypeError, ValueError):
            W = None
        if W is None:
            raise ValueError(f"OracleRegion: the oracle must return an array of numbers of shape {C.shape}, got {got}")
        if W.shape != C.shape:
            raise ValueError(
                f"OracleRegion: the oracle got costs of shape {C.shape} and must return decisions of the same shape "
                f"{C.shape}, one row per sample; it returned shape {W.shape}."
            )
        text = "OracleRegion: the oracle returned a decision that is not finite for {row}:"
        refuse_rows(~np.isfinite(W).all(axis=1), ValueError, lambda row: f"{text} {W[row]}.")
        return W


def _is_plain(region: CvxpyRegion) -> bool:
    """Whether the parameters are the same for all samples."""
    return region._rows is None


class CvxpyRegion(_FunctionRegion):
    """A convex region written in CVXPY.

    The constraints are compiled once; each row of costs is then one call of the solver Clarabel on the compiled cones.

    Parameters
    ----------
    constraints : callable
        Function that takes a ``cvxpy.Variable`` of shape (n_dim,) and returns a list of CVXPY constraints.  It may
        create further continuous variables.  Together the constraints must describe a bounded, nonempty set.  A
        ``cvxpy.Parameter`` in them must have a value.  If the value changes, the next decisions use the new one, also
        those of models that were fitted before.  Values may vary by sample: ``region_params={"name": ...}`` with the
        name of the parameter, in the methods of an estimator.
    n_dim : int
        Number of decision variables.
    n_jobs : int, default=None
        Number of processes over which rows are spread, worth it from thousands of rows on.  None means 1.  Rows with
        parameters of their own are solved in one process.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.
    cost_bounds : tuple (lower, upper), default=None
        Bounds that :meth:`decide` clips predictions to: numbers, arrays of shape (d,), or None for no bound.
    variable_names : list of str, default=None
        One name for each decision variable, for example those of the columns of a model.

    Notes
    -----
    Decisions are feasible to about 1e-8 and optimal to about 1e-7, relative to the largest cost that is not far above
    others, such as the price of a forbidden option: such options are not used, or there is an error if the decision
    cannot be proved to be good for the other costs as well (to 1e-3).  Among several optimal
    decisions the solver returns one in the middle, not a vertex.  ``clone`` shares the function and its parameters.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from skspo import CvxpyRegion
    >>> region = CvxpyRegion(lambda w: [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.8], n_dim=3)
    >>> region.argmin([[1.0, 2.0, 3.0]]).round(3) + 0.0
    array([[0.765, 0.235, 0.   ]])

    A parameter may get another value at any time:

    >>> budget = cp.Parameter(name="budget", value=1.0)
    >>> region = CvxpyRegion(lambda w: [w >= 0, w <= 1, cp.sum(w) <= budget], n_dim=3, sense="max")
    >>> region.argmin([3.0, 2.0, 1.0]).round(3) + 0.0
    array([1., 0., 0.])
    >>> budget.value = 2.0
    >>> region.argmin([3.0, 2.0, 1.0]).round(3) + 0.0
    array([1., 1., 0.])

    Or one for each sample:

    >>> region.with_rows({"budget": [1.0, 2.5]}, 2, 3).argmin([[3.0, 2.0, 1.0]] * 2).round(3) + 0.0
    array([[1. , 0. , 0. ],
           [1. , 1. , 0.5]])
    """

    def __init__(
        self,
        constraints: Callable[[cp.Variable], list[cp.Constraint]],
        n_dim: int,
        *,
        n_jobs: int | None = None,
        sense: str = "min",
        cost_bounds: CostBounds = None,
        variable_names: Names = None,
    ) -> None:
        self.constraints = constraints
        self.n_dim = n_dim
        self.n_jobs = n_jobs
        self.sense = sense
        self.cost_bounds = cost_bounds
        self.variable_names = variable_names

    @property
    def oracle_is_solver(self) -> bool:
        """True: Clarabel."""
        return True

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Parameters in the constraints, by their names."""
        shapes: dict[str, tuple[int, ...]] = {}
        for parameter in self._data(d).parameters:
            name = parameter.name()
            if name in shapes:
                raise ValueError(f"CvxpyRegion: two parameters have the name {name!r}; give each a name of its own.")
            shapes[name] = tuple(parameter.shape)
        return shapes

    def _read_rows(self, rows: dict[str, np.ndarray], data: _Compiled, d: int) -> dict[str, np.ndarray]:
        if not data.problem.is_dpp():
            raise ValueError(
                "CvxpyRegion: parameters cannot vary by sample, because the constraints are not DPP (for example a "
                "product of parameters). See https://www.cvxpy.org/tutorial/dpp for how to rewrite them."
            )
        for parameter in data.parameters:
            for row, value in enumerate(rows.get(parameter.name(), ())):
                if not np.allclose(parameter.project(value), value):
                    traits = ", ".join(name for name, given in parameter.attributes.items() if given)
                    text = f"region_params: {parameter.name()} of {{row}} is not what its parameter says: {traits}."
                    raise row_error(ValueError, row, text)
        return rows

    def _with_values(self, data: _Compiled, values: dict[str, np.ndarray]) -> _Compiled:
        return data

    def _sets(self, data: _Compiled) -> np.ndarray:
        """The region of each sample in cone form; the constraints are compiled once."""
        rows = self._rows
        assert rows is not None
        if "sets" not in rows.cache:
            cp = import_cvxpy()
            found, _, _ = data.problem.get_problem_data(cp.CLARABEL)
            program, cones = found["param_prob"], cones_of(found["dims"])
            columns = program.var_id_to_col[data.w.id] + np.arange(data.conic.n_dim)
            names = {parameter.id: parameter.name() for parameter in data.parameters}
            present = dict(zip(names, data.values, strict=True))
            sets = np.empty(rows.n_rows, dtype=object)
            for i in range(rows.n_rows):
                own = {key: rows.values[name][i] for key, name in names.items() if name in rows.values}
                _, _, A, b = program.apply_parameters(present | own)
                sets[i] = ConicSet(-A, b, cones, columns)
            rows.cache["sets"] = (sets,)
        return rows.cache["sets"][0]

    def _argmin(self, C: np.ndarray, data: Any) -> np.ndarray:
        if self._rows is None:
            return data.conic.minimize(C, self.n_jobs)
        W = np.empty_like(C)
        for i, conic in enumerate(self._sets(data)):
            try:
                with rows_among(np.array([i])):
                    W[i] = conic.minimize(C[[i]])[0]
            except SolverError:
                if conic.status(np.zeros(C.shape[1])).endswith("PrimalInfeasible"):
                    text = "CvxpyRegion: the region of {row} is empty, its constraints are infeasible (region_params)."
                    raise row_error(InfeasibleRegionError, i, text) from None
                raise
        return W

    def _conic(self, d: int) -> ConicSet:
        compiled: _Compiled = self._data(d)
        return compiled.conic

    @available_if(_is_plain)
    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function of each row of a CVXPY expression, by conic duality."""
        return self._conic(V.shape[1]).support_epigraph(V)

    def _entry(self, n_dim: int | None = None) -> Entry:
        entry = super()._entry(n_dim)
        if not entry[2].is_current():
            self._cache.pop("data", None)
            entry = super()._entry(n_dim)
        return entry

    def _prepare(self, d: int) -> _Compiled:
        self._check_n_dim()
        compiled = _compile(self.constraints, d)
        conic = compiled.conic
        status = conic.status(np.zeros(d))
        if status.endswith("PrimalInfeasible"):
            raise InfeasibleRegionError("CvxpyRegion: the region is empty, the constraints are infeasible.")
        if status not in ("Solved", "AlmostSolved"):
            raise SolverError(f"CvxpyRegion: Clarabel found no decision that meets the constraints: status {status}.")
        try:
            conic.box_points  # noqa: B018  (computed here and cached for bounding_box)
        except RuntimeError:
            for j in range(2 * d):
                cost = np.zeros(d)
                cost[j % d] = 1.0 if j < d else -1.0
                if conic.status(cost).endswith("DualInfeasible"):
                    what = f"w[{j % d}]" if self.variable_names is None else repr(self.variable_names[j % d])
                    raise UnboundedRegionError(
                        f"CvxpyRegion: the region is unbounded, {what} can be arbitrarily "
                        f"{'low' if j < d else 'high'}. Add a bound on it."
                    ) from None
            raise
        return compiled

    @available_if(_is_plain)
    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal rows E with E w constant on the region, to a tolerance of 1e-6 of its size."""
        return self._conic(self.resolve_dim(n_dim)).normals

    @available_if(_is_plain)
    def repair(self, W: np.ndarray) -> np.ndarray:
        """Move decisions outside the region towards an interior point until they are inside."""
        with rows_named(self._row_names.of):
            return self._conic(W.shape[1]).pull(W)


class _Compiled(NamedTuple):
    """Cones, and the parameters in the constraints with the values that the cones were made with."""

    conic: ConicSet
    parameters: list[cp.Parameter]
    values: list[np.ndarray]
    problem: cp.Problem
    w: cp.Variable

    def is_current(self) -> bool:
        """Whether all parameters still have the same values."""
        return all(
            np.array_equal(_value_of(parameter), value)
            for parameter, value in zip(self.parameters, self.values, strict=True)
        )


def _value_of(parameter: cp.Parameter) -> np.ndarray:
    """Copy of the value of a parameter, which may be changed in place."""
    value: Any = parameter.value
    if value is None:
        raise ValueError(
            f"CvxpyRegion: the parameter {parameter.name()!r} of shape {parameter.shape} in the constraints has no "
            "value. Set its .value; decisions always use the present one."
        )
    return np.array(value.toarray() if sp.issparse(value) else value)


def _compile(constraints: Callable[[cp.Variable], list[cp.Constraint]], d: int) -> _Compiled:
    """Turn a function that returns CVXPY constraints into cones, for the present values of its parameters."""
    cp = import_cvxpy()
    if not callable(constraints):
        raise TypeError(
            "CvxpyRegion: constraints must be a function w -> list of CVXPY constraints, for example "
            f"lambda w: [w >= 0, cp.sum(w) == 1]; got {shown(constraints)}."
        )
    w = cp.Variable(d, name="w")
    listed = constraints(w)
    listed = [listed] if isinstance(listed, cp.Constraint) else listed
    if not isinstance(listed, (list, tuple)) or not all(isinstance(c, cp.Constraint) for c in listed):
        raise TypeError(f"CvxpyRegion: constraints(w) must return a list of CVXPY constraints, got {shown(listed)}.")
    for constraint in listed:
        for variable in constraint.variables():
            if variable.attributes["integer"] or variable.attributes["boolean"]:
                raise ValueError(
                    f"CvxpyRegion: the constraint {constraint} has the integer variable {variable}, but the region "
                    "must be convex. Use MixedInteger, or OracleRegion with a solver of your own."
                )
        if not constraint.is_dcp():
            raise ValueError(
                f"CvxpyRegion: the constraint {constraint} is not DCP, so CVXPY cannot tell that the region is convex. "
                "See https://www.cvxpy.org/tutorial/dcp for how to rewrite it."
            )
    problem = cp.Problem(cp.Minimize(cp.sum(w)), list(listed))
    parameters = problem.parameters()
    values = [_value_of(parameter) for parameter in parameters]
    # Parameters are constants here: the cones are made anew when a value changes.
    data, _, _ = problem.get_problem_data(cp.CLARABEL, ignore_dpp=True)
    start = data["param_prob"].var_id_to_col[w.id]
    columns = np.arange(start, start + d)
    # Check with the objective sum(w) that these are the columns of w; otherwise decisions would be wrong.
    expected = np.zeros(data["c"].size)
    expected[columns] = 1.0
    if not np.array_equal(data["c"], expected) or data.get("P") is not None:
        raise RuntimeError("CvxpyRegion: this version of CVXPY compiles problems in a way that skspo does not support.")
    conic = ConicSet(data["A"], data["b"], cones_of(data["dims"]), columns)
    return _Compiled(conic, parameters, values, problem, w)
