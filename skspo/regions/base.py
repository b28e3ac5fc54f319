"""The Region contract: a compact set of feasible decisions.

Conventions
-----------
    C (n, d) costs, one row per sample      W (n, d) decisions, one row per sample
    w*(c) = argmin_{w in S} c.w             support_S(v) = max_{w in S} v.w = -v.w*(-v)

A region is a small value object: a scikit-learn ``BaseEstimator`` whose parameters describe the set.  It prints,
clones and pickles, and its parameters can be searched (``region__threshold``).  What is derived from the parameters is
computed on first use by ``_prepare`` and cached.  ``clone`` and ``pickle`` drop the cache, and a new value of a
parameter invalidates it, also one that is written into an array or a list.

A subclass writes two methods: ``_prepare(d)`` validates the parameters for ``d`` decision variables and returns the
data that the oracle needs, ``_argmin(C, data)`` minimizes each row of ``C``.  Everything else is an optional method, a
capability (see ``capabilities.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array

from .._utils.params import Content, contents_of
from .._utils.types import RegionParams
from .._utils.versioning import VersionedState
from ._cost_bounds import CostBounds, Limits, clip, read_bounds
from ._names import Names, check_names, check_variables, default_names, list_amounts, read_costs
from ._rows import RowData, RowNames, name_row, read_names, read_rows, rows_named
from .capabilities import Memory, equalities_of, knows_hull, project_visible

#: parameters of a region, dimension, what was prepared for them, and their contents
Entry: TypeAlias = tuple[tuple[object, ...], int, Any, list[Content]]


class StrongConvexity(NamedTuple):
    r"""Constants of a level set :math:`\{w : f(w) \le r\}`: f is mu-strongly convex and L-smooth on it."""

    mu: float
    L: float
    r: float
    f_min: float

    @property
    def depth(self) -> float:
        """Difference of ``r`` and ``f_min``, the level and the minimum of f."""
        return self.r - self.f_min


RegionT = TypeVar("RegionT", bound="Region")


class Smoothed(NamedTuple):
    """Decisions of a level set {w : f(w) <= r} for costs c.w + mu (f(w) - f_min), batched over rows."""

    W: np.ndarray  # (n, d)
    level: np.ndarray  # (n,) f(w) - f_min
    M: np.ndarray | None  # (n, d, d) minus the derivative of W in the costs: symmetric, positive semidefinite


class Region(VersionedState, BaseEstimator):
    """Base class of all feasible regions.

    ``__init__`` of subclasses stores the parameters unchanged; they are validated on first use.  With ``sense="max"``
    the predicted numbers are values to be maximized; ``to_min`` is the only place that changes their sign.
    """

    sense: str = "min"

    #: (lower, upper), in the user's sense: ``decide`` clips costs to them; None if costs may be anything
    cost_bounds: CostBounds = None

    #: one name for each decision variable; None if they have none
    variable_names: Names = None

    #: what the user called to get the region, if it was not the class
    _made_by: str | None = None

    #: what the oracle needs of each row of costs, if parameters vary by sample (see ``with_rows``)
    _rows: RowData | None = None

    #: which rows of the user's data the rows of costs are
    _row_names: RowNames = RowNames()

    @property
    def n_dim(self) -> int | None:
        """Number of decision variables, or None if the region exists in every dimension."""
        return None

    def names(self, n_dim: int | None = None) -> np.ndarray | None:
        """Names of the decision variables, validated.

        Parameters
        ----------
        n_dim : int, default=None
            Number of decision variables; needed if the region exists in every dimension.

        Returns
        -------
        names : ndarray of str, shape (d,), or None
            None if the variables have no names.

        Examples
        --------
        >>> from skspo import ShortestPath
        >>> ShortestPath([("a", "b"), ("b", "c"), ("a", "c")]).names()
        array(['a -> b', 'b -> c', 'a -> c'], dtype=object)
        """
        return check_names(self._names(d := self.resolve_dim(n_dim)), d, f"{self.label}: variable_names")

    def _names(self, d: int) -> Names:
        """Names of ``d`` decision variables; regions that compute them override this method."""
        return self.variable_names

    def describe(self, W: ArrayLike, names: Names = None) -> list[Any]:
        """Decisions in words.

        Parameters
        ----------
        W : array-like of shape (n_samples, d)
            Decisions.
        names : list of str, default=None
            Names of the variables; None means those of the region, or w0, w1, ... if it has none.

        Returns
        -------
        words : list of length n_samples
            What was chosen: a dict from the names of the variables that are not zero to their amounts.  Some regions
            have better words: the name of the alternative (``Simplex``), the list of the selected items (``TopK``,
            ``Knapsack`` with whole items), the nodes of the route (``ShortestPath``), the list of pairs
            (``Assignment``), the list of the words of every region (``Product``).

        Examples
        --------
        >>> from skspo import Box, ShortestPath
        >>> Box(0, 5).describe([[0.0, 5.0, 2.5]], names=["oil", "gas", "coal"])
        [{'gas': 5.0, 'coal': 2.5}]
        >>> ShortestPath([("a", "b"), ("b", "c"), ("a", "c")]).describe([[1.0, 1.0, 0.0]])
        [['a', 'b', 'c']]
        """
        if names is None:
            check_variables(self, W=W)
        W_arr = check_array(W, dtype=np.float64, ensure_min_samples=0, input_name="W")
        d = self.resolve_dim(W_arr.shape[1])
        given = check_names(names, d, "names")
        own = self.names(d) if given is None else given
        return self._describe(W_arr, default_names(d) if own is None else own)

    def _describe(self, W: np.ndarray, names: np.ndarray) -> list[Any]:
        """``describe`` for validated decisions and names."""
        return list_amounts(W, names)

    def chosen(self, C: ArrayLike, names: Names = None) -> list[Any]:
        """Decision of ``decide`` for each row of costs in words, see ``describe``.

        Parameters
        ----------
        C : array-like of shape (n_samples, d)
            Predicted costs (``sense="min"``) or values (``sense="max"``).
        names : list of str, default=None
            As in ``describe``.

        Returns
        -------
        words : list of length n_samples
        """
        return self.describe(np.atleast_2d(self.decide(C)), names)

    def _inside(self) -> list[Region]:
        """Regions that the decisions consist of."""
        return []

    @property
    def oracle_is_solver(self) -> bool:
        """Whether the oracle calls a solver for every row of costs, so that many rows take long."""
        return any(region.oracle_is_solver for region in self._inside())

    @property
    def _repair_is_solver(self) -> bool:
        """Whether ``repair`` solves a linear program in the variables of the standard form for every row."""
        return False

    @property
    def _may_be_inexact(self) -> bool:
        """Whether the oracle is allowed to return decisions that are not optimal."""
        return any(region._may_be_inexact for region in self._inside())

    @property
    def _fault(self) -> str | None:
        """Reason why the oracle is known not to be optimal; None if there is none."""
        return next((region._fault for region in self._inside() if region._fault is not None), None)

    # -- to be written by each region ----------------------------------------------------------------------------------

    def _prepare(self, d: int) -> object:
        """Validate the parameters for ``d`` decision variables and return what ``_argmin`` gets as ``data``."""
        return None

    def _argmin(self, C: np.ndarray, data: Any) -> np.ndarray:
        """Minimize each row of the float64 array ``C``; of equal costs the one with the lowest index is chosen."""
        raise NotImplementedError

    # -- what every region has -----------------------------------------------------------------------------------------

    def argmin(self, C: ArrayLike) -> np.ndarray:
        """Best decision for each row of costs.

        Parameters
        ----------
        C : array-like of shape (n_samples, d) or (d,)
            Costs (``sense="min"``) or values (``sense="max"``).

        Returns
        -------
        W : ndarray of the same shape
            An optimal decision for every row.  Ties are broken deterministically.

        Notes
        -----
        ``decide`` is the same for predictions, which are clipped to ``cost_bounds`` first.
        """
        return self._of_rows(C, self.solve_min)

    def _of_rows(self, C: ArrayLike, solve: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Validate costs, and solve each row as a minimization."""
        C_arr, one_row = read_costs(self, C)
        W = solve(self.to_min(C_arr))
        return W[0] if one_row else W

    def solve_min(self, C: np.ndarray, memory: Memory | None = None) -> np.ndarray:
        """Minimize each row of an already validated float64 array, whatever ``sense`` is.

        Losses and solvers call this method: inside the package every problem is a minimization.  A caller that asks
        for the same rows again, with other costs, passes the same ``memory``; an iterative oracle may store a warm
        start there.  An error about a row (see ``row_error``) names the row of the user's data.
        """
        self._check_rows(C.shape[0])
        try:  # faster than a context manager
            return self._argmin_again(C, self._data(C.shape[1]), {} if memory is None else memory)
        except Exception as error:
            name_row(error, self._row_names.of)
            raise

    def _check_rows(self, n: int) -> None:
        if self._rows is not None and self._rows.n_rows != n:
            raise ValueError(f"There are {n} rows of costs, but region_params has {self._rows.n_rows} rows.")

    def _solve_directions(self, D: np.ndarray) -> np.ndarray:
        """Decisions that minimize directions; errors name a direction and not a row of the user's data."""
        with rows_named("direction {}".format):
            return self._argmin_again(D, self._data(D.shape[1]), {})

    def _argmin_again(self, C: np.ndarray, data: Any, memory: Memory) -> np.ndarray:
        """``_argmin`` with a warm start, for regions that can use one."""
        return self._argmin(C, data)

    def relaxation(self) -> Region:
        """Convex region that contains this one and is easier to optimize over: the linear relaxation of integers.

        A region of integer decisions relaxes to the polyhedron without integrality.  A convex region is its own
        relaxation.  ``surrogate_region="relaxation"`` of an estimator trains on it and decides in the region itself.

        Returns
        -------
        region : Region
            The least cost in it is at most that of this region, for all costs (``sense="max"``: the largest value is
            at least).  Parameters that may vary by sample are the same.

        Examples
        --------
        >>> from skspo import MixedInteger, Simplex
        >>> MixedInteger(A_ub=[[2, 2, 2]], b_ub=[3], bounds=(0, 1), sense="max").relaxation()
        Polyhedron(A_ub=[[2, 2, 2]], b_ub=[3], bounds=(0, 1), sense='max')
        >>> Simplex().relaxation()
        Simplex()
        """
        if knows_hull(self):
            return self
        raise TypeError(
            f"{self.label} has no relaxation: nothing but its oracle is known. Pass an easier region that contains it, "
            "for example a Polyhedron, as surrogate_region."
        )

    # -- decisions with predicted costs, which are clipped -------------------------------------------------------------

    def decide(self, C: ArrayLike) -> np.ndarray:
        """Decision for each row of predicted costs, which are clipped to ``cost_bounds`` first.

        Estimators and metrics decide with this method.  Training uses ``argmin``, which does not clip.

        Parameters
        ----------
        C : array-like of shape (n_samples, d) or (d,)
            Predicted costs (``sense="min"``) or values (``sense="max"``).

        Returns
        -------
        W : ndarray of the same shape
            The decision of ``argmin`` for the clipped costs.

        Examples
        --------
        Going back and forth between two places would pay, if the prediction below zero were true:

        >>> from skspo import ShortestPath
        >>> streets = [("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")]
        >>> region = ShortestPath(streets, "a", "c", cost_bounds=(0.1, None))
        >>> region.argmin([1.0, -2.0, 1.0, 1.0]), region.decide([1.0, -2.0, 1.0, 1.0])
        (array([1., 1., 1., 0.]), array([0., 0., 1., 0.]))
        """
        return self._of_rows(C, self._decide_min)

    def _decide_min(self, C: np.ndarray) -> np.ndarray:
        """``decide`` for an already validated float64 array of costs to be minimized."""
        return self.solve_min(clip(C, self._limits(C.shape[1])))

    def _decide_worst(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """``worst_argmin`` for predicted costs ``C``, which are clipped to ``cost_bounds`` first."""
        region: Any = self
        W: np.ndarray = region.worst_argmin(clip(C, self._limits(C.shape[1])), C_true)
        return W

    def _limits(self, d: int) -> Limits | None:
        """Validated ``cost_bounds`` of ``d`` costs to be minimized."""
        if isinstance(self.cost_bounds, (tuple, list)):  # ends that are series may have names
            check_variables(self, **{f"cost_bounds[{i}]": end for i, end in enumerate(self.cost_bounds)})
        return read_bounds(self.cost_bounds, d, self.sense, self.label)

    def _clips(self, d: int) -> bool:
        """Whether ``decide`` clips some of ``d`` costs."""
        return self._limits(d) is not None

    def _learn_bounds(self, C: np.ndarray, mean: np.ndarray) -> Region:
        """Region whose ``cost_bounds`` are numbers, if they are to be learned from true costs (``cost_bounds="auto"``).

        ``C`` has the true costs, in the user's sense, and ``mean`` their means over samples.
        """
        return self

    def _check_true_costs(self, C: np.ndarray) -> None:
        """Warn about true costs, to be minimized, that the region is not meant for."""

    # -- parameters that vary by sample --------------------------------------------------------------------------------

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Parameters that may differ from sample to sample, and the shape of one sample's value."""
        return {}

    #: parameters of ``row_shapes`` whose columns are the decision variables
    _rows_by_variable: frozenset[str] = frozenset({"available", "lower", "upper", "known_cost"})

    @property
    def _region_of_rows(self) -> Region:
        """Region whose variables are the columns of parameters of ``row_shapes``."""
        return self

    #: parameters of ``row_shapes`` that may be infinite
    _rows_may_be_infinite: frozenset[str] = frozenset()

    def _read_row_param(self, name: str, value: ArrayLike) -> ArrayLike:
        """Numbers of a parameter of ``row_shapes``; regions with labels override this method."""
        return value

    def _read_rows(self, rows: dict[str, np.ndarray], data: Any, d: int) -> dict[str, np.ndarray]:
        """Validate values of ``row_shapes``; return the entries of ``data`` that they replace, one row per sample."""
        return rows

    def _with_values(self, data: Any, values: dict[str, np.ndarray]) -> Any:
        """``data`` of ``_prepare`` with the entries that ``_read_rows`` returned, which ``_argmin`` gets."""
        return data._replace(**values)

    @property
    def _varies(self) -> bool:
        """Whether parameters vary by sample."""
        return self._rows is not None

    def _view(self, rows: dict[str, np.ndarray], d: int) -> Region:
        """Region with the given values of ``row_shapes`` for each row."""
        other = self._named(self._row_names)
        other._rows = RowData(self._read_rows(rows, self._data(d), d), d, {})
        return other

    def with_rows(self, region_params: RegionParams | None, n_rows: int, n_dim: int) -> Region:
        """Return the region whose parameters differ from sample to sample.

        Parameters
        ----------
        region_params : dict of array-like, DataFrame, structured ndarray or None
            Values of parameters, one row per sample; None gives the region itself.
        n_rows, n_dim : int
            Number of samples and of decision variables.

        Returns
        -------
        region : Region
            Its ``argmin`` takes exactly ``n_rows`` rows of costs.
        """
        if region_params is None:
            return self
        self._data(n_dim)
        names = read_names(region_params)
        with rows_named(names.of):
            return self._view(read_rows(self, region_params, n_rows, n_dim), n_dim)._named(names)

    def take(self, rows: slice | np.ndarray) -> Region:
        """Region of some of the samples; errors still name rows of all samples."""
        other = self._named(self._row_names.take(rows))
        if self._rows is not None:
            other._rows = self._rows.take(rows)
        return other

    def _with_same_rows(self, other: RegionT) -> RegionT:
        """Give another region, whose parameters mean the same, the values of this one in each row."""
        other._row_names = self._row_names
        other._rows = None if self._rows is None else self._rows._replace(cache={})
        return other

    def _numbered(self, numbers: range) -> Region:
        """Region of a chunk of the samples, whose rows have these numbers among all samples."""
        return self._named(RowNames(numbers))

    def _named(self, names: RowNames) -> Region:
        """Return the same region with other names of its rows; both share the cache."""
        self.__dict__.setdefault("_cache", {})
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _row_names=names)
        return other

    def possible(self, n_rows: int, n_dim: int) -> np.ndarray | None:
        """Which decision variables can be nonzero in each sample, as far as the parameters say so.

        A variable that is always 0 has no cost: an option that is not available, an edge on no path from source to
        target.  Nothing depends on what data contain there, which may be NaN.

        Parameters
        ----------
        n_rows, n_dim : int
            Number of samples and of decision variables.

        Returns
        -------
        possible : bool ndarray of shape (n_rows, n_dim), or None
            None if all can be nonzero.

        Examples
        --------
        >>> from skspo import Simplex
        >>> Simplex().with_rows({"available": [[1, 0, 1]]}, 1, 3).possible(1, 3)
        array([[ True, False,  True]])
        """
        bounds = self._own_bounds(n_dim)
        if bounds is None:
            return None
        possible = (bounds[0] != 0.0) | (bounds[1] != 0.0)
        return None if possible.all() else np.broadcast_to(possible, (n_rows, n_dim))

    def _own_bounds(self, d: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Lower and upper bounds of ``d`` decision variables, of shape (d,) or one row per sample; None if not known.

        Variables with both bounds 0 are those that are not ``possible``.
        """
        return None

    def _row_table(self, n: int) -> np.ndarray:
        """Parameters of each sample, shape (n, m); m is 0 unless the region varies by sample."""
        return np.zeros((n, 0)) if self._rows is None else self._rows.table()

    @property
    def _title(self) -> str:
        """What the user wrote to make the region."""
        return self._made_by or type(self).__name__

    @property
    def label(self) -> str:
        """Name in error messages."""
        return self._title + (" that varies by sample (region_params)" if self._varies else "")

    def to_min(self, C: np.ndarray) -> np.ndarray:
        """Turn costs or values (or their gradients, or coefficients) into costs to be minimized, and back."""
        return -C if self.sense == "max" else C

    def visible_costs(self, C: ArrayLike) -> np.ndarray:
        """Component of the costs that can change a decision.

        If all decisions satisfy :math:`A w = b`, adding a combination of the rows of A to the costs of a sample changes
        the costs of all its decisions by the same amount.  This method subtracts the orthogonal projection on these
        rows: the mean over the d costs for ``Simplex`` and ``TopK``, the means of rows and columns for ``Assignment``,
        what only depends on the end nodes of an edge for ``ShortestPath``.

        Parameters
        ----------
        C : array-like of shape (n_samples, d) or (d,)
            Costs or values.

        Returns
        -------
        V : ndarray of the same shape
            ``argmin(V)`` is ``argmin(C)`` up to ties.  Entries that are not ``possible`` are 0.

        Examples
        --------
        >>> from skspo import Simplex
        >>> Simplex().visible_costs([[1.0, 2.0, 6.0]])
        array([[-2., -1.,  3.]])
        """
        C_arr, one_row = read_costs(self, C)
        d = self.resolve_dim(C_arr.shape[1])
        V = project_visible(C_arr, self._always_hidden(d), self.possible(C_arr.shape[0], d))
        return V[0] if one_row else V

    def _always_hidden(self, d: int) -> np.ndarray:
        """Orthonormal directions (m, d) in which no sample's decisions vary, those of future samples included."""
        return equalities_of(self, d)

    def _known_costs(self, d: int) -> list[int]:
        """Indices of costs that need no prediction, because they are always 1 (see ``LinearImage``)."""
        return []

    def resolve_dim(self, n_dim: int | None = None) -> int:
        """Number of decision variables, from the region or from the argument; both must agree."""
        own = self.n_dim if self._rows is None else self._rows.n_dim
        if own is None and n_dim is None:
            raise ValueError(f"{self._title} exists in every dimension: say which one, for example n_dim=10.")
        if own is not None and n_dim is not None and own != n_dim:
            raise ValueError(
                f"{self._title} has {own} decision variables, but the costs have {n_dim} columns. "
                "There must be one cost per decision variable."
            )
        d = own if n_dim is None else n_dim
        if d is None or d < 1:
            raise ValueError(f"{self._title} needs at least one decision variable, got {d}.")
        return int(d)

    def _data(self, n_dim: int | None = None) -> Any:
        """Return what ``_argmin`` needs; what ``_prepare`` returns is cached until a parameter changes."""
        data = self._entry(n_dim)[2]
        return data if self._rows is None else self._with_values(data, self._rows.values)

    def _entry(self, n_dim: int | None = None) -> Entry:
        """Parameters, dimension, prepared data, and contents: the same object as long as they are valid."""
        kind: Any = type(self)  # mypy takes classes for unhashable
        params = tuple(getattr(self, name) for name in _param_names(kind))
        cache = self.__dict__.setdefault("_cache", {})
        entry = cache.get("data")  # read once: another thread may replace it
        if entry is not None:
            used, d, _, contents = entry
            if d == n_dim and len(used) == len(params) and all(a is b for a, b in zip(used, params, strict=True)):
                if not any(content.changed() for content in contents):
                    return entry
        d = self.resolve_dim(n_dim)
        if self.sense not in ("min", "max"):
            raise ValueError(f"sense must be 'min' or 'max', got {self.sense!r}.")
        if "variable_names" in _param_names(kind):
            self.names(d)  # checks them
        contents = contents_of(params)
        entry = (params, d, self._prepare(d), contents)
        cache["data"] = entry
        try:
            self._limits(d)  # checks cost_bounds, which may depend on the data
        except Exception:
            del cache["data"]
            raise
        return entry

    def _derived_from(self, d: int) -> tuple[Entry, ...]:
        """What derived data depend on."""
        return (self._entry(d),)

    def _derived(self, name: str, d: int, compute: Callable[[], Any]) -> Any:
        """What follows from the parameters and takes long to compute, kept until one of them changes."""
        entries = self._derived_from(d)
        kept = self._cache.get(name)  # read once: another thread may replace it
        if kept is None or any(a is not b for a, b in zip(kept[0], entries, strict=True)):
            kept = self._cache[name] = (entries, compute())
        return kept[1]

    def __getstate__(self) -> dict[str, object]:
        state = dict(super().__getstate__())
        state.pop("_cache", None)
        if self._rows is not None:
            state["_rows"] = self._rows._replace(cache={})
        return state

    def __sklearn_clone__(self) -> Region:
        other: Region = super().__sklearn_clone__()
        for name in {"_rows", "_made_by"} & vars(self).keys():
            setattr(other, name, getattr(self, name))
        return other


@cache
def _param_names(cls: type[Region]) -> list[str]:
    """Names of a region's parameters; cached, because scikit-learn's look-up may take longer than an argmin."""
    return cls._get_param_names()
