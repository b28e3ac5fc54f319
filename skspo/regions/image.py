"""Decisions that enter the cost through a linear map: images of regions.

Conventions
-----------
    z (m,) in the inner region      u = M z (d,) the decision that is paid for      c (d,) costs of u, to be predicted

    min_z c.(M z) + k.z     k (m,) a cost of z that is known
    K = M without k, and (M; k^T) with it: the decision (M z, k.z) has d + 1 entries and the costs (c, 1)

With a known cost the cost of a sample is not linear in u, but it is linear in (u, k.z).  So the region is the image of
the inner one under K, the last cost is 1, and nothing else in the package needs to know: losses, bounds and metrics are
those of any region.  ``extend`` appends the 1 to costs, ``offset`` is the known part of predictions, (0, ..., 0, 1).

Every capability is that of the inner region, composed with K:

    support_S(v) = support_inner(K^T v)        E u is constant if K^T E^T is a combination of the inner equalities
    diameter <= s_max diameter_inner           s_min, s_max: extreme singular values of K on the inner directions

``repair`` needs a z for a given u.  If K is injective on the directions of the inner region there is only one.  If not,
a linear program finds one, and the inner region must have a standard form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from .._utils.shown import shown
from ._cost_bounds import CostBounds, Limits, clip, read_bounds
from ._linear_map import Directions, Maps, analyze, lift_rows, rows_of_blocks
from ._names import Names, check_names, names_of_rows, with_ones
from .base import Entry, Region, Smoothed, StrongConvexity
from .capabilities import Memory, equalities_of, has
from .polyhedral import Matrix, QuadraticForm, StandardForm
from .polyhedron import read_numbers

if TYPE_CHECKING:
    import cvxpy as cp


def _inner_has(name: str) -> Callable[[LinearImage], bool]:
    return lambda image: has(image.region, name)


def _can_lift(image: LinearImage) -> bool:
    """Whether a z can be found for a given decision."""
    return has(image.region, "repair") and (
        image._directions().injective or (has(image.region, "standard_form") and image._rows is None)
    )


def _keeps_quadratic(image: LinearImage) -> bool:
    """Whether a quadratic constraint on z is one on the decision: K has full column rank."""
    if not has(image.region, "quadratic_form") or image._rows is not None:
        return False
    K = image._data(image.n_dim).full
    return K.shape[0] >= K.shape[1] and np.linalg.matrix_rank(K.toarray()) == K.shape[1]


class LinearImage(Region):
    r"""Decisions :math:`u = M z` for :math:`z` in another region, and a cost of :math:`z` that is known.

    Predict the costs of what is paid for, and decide about something else: prices per period and a schedule of tasks,
    prices of goods and baskets of known weight, costs of some variables while those of the others are known, one
    price for several variables.  The inner problem is :math:`\min_z \, (M^\top c + k)^\top z`.

    With ``known_cost`` the decision has one more entry, :math:`k^\top z`, whose cost is 1.  Pass ``y=region.extend(C)``
    to the methods of an estimator.

    Parameters
    ----------
    region : Region
        The inner region, of z.  Its ``sense`` is that of the image.
    matrix : array-like or sparse matrix of shape (d, m)
        One row for each cost that is predicted, one column for each variable of the inner region.
    known_cost : array-like of shape (m,), default=None
        Cost (or value, if ``sense="max"``) of each variable of the inner region that need not be predicted.  It may
        vary by sample, with ``region_params={"known_cost": ...}`` in the methods of an estimator.
    labels : list of str, default=None
        One name for each row of the matrix.
    cost_bounds : tuple (lower, upper), default=None
        Bounds of predicted costs, which ``decide`` clips: numbers, arrays of shape (d,), or None for no bound.  The
        known cost is not clipped.  The costs of z that follow are clipped to those of the inner region, if it has any.

    See Also
    --------
    read_region : Makes such a region from a model of which only some costs are predicted.

    Notes
    -----
    The training problem is that of d + 1 costs, the last of which is known: estimators predict exactly 1 for it, and
    train the others with that.  Loss and bound are those of this model.  If ``offset=region.offset`` is passed to
    ``fit``, it has to be passed to the other methods, too; it makes no difference.

    Parameters of the inner region that may vary by sample are those of the image, too.

    Examples
    --------
    Two tasks of one hour, in three hours, not at the same time; the first one needs 2 kW and the second one 5 kW.
    z has an entry for each task and hour, a price is predicted for each hour:

    >>> import numpy as np
    >>> from skspo import LinearImage, MixedInteger
    >>> once = np.kron(np.eye(2), np.ones((1, 3)))
    >>> together = np.kron(np.ones((1, 2)), np.eye(3))
    >>> tasks = MixedInteger(A_ub=together, b_ub=np.ones(3), A_eq=once, b_eq=np.ones(2), bounds=(0, 1))
    >>> region = LinearImage(tasks, np.kron([[2.0, 5.0]], np.eye(3)))
    >>> prices = [[30.0, 10.0, 20.0]]
    >>> region.argmin(prices)
    array([[0., 5., 2.]])
    >>> region.inner_argmin(prices).reshape(2, 3)
    array([[0., 0., 1.],
           [0., 1., 0.]])

    A fee of 25 for the second task in the second hour is known:

    >>> region = LinearImage(tasks, region.matrix, known_cost=[0, 0, 0, 0, 25, 0])
    >>> region.argmin(region.extend(prices))
    array([[ 0.,  5.,  2., 25.]])
    >>> region.set_params(known_cost=[0, 0, 0, 0, 35, 0]).argmin(region.extend(prices))
    array([[0., 2., 5., 0.]])
    """

    def __init__(
        self,
        region: Region,
        matrix: Matrix,
        known_cost: ArrayLike | None = None,
        *,
        labels: Names = None,
        cost_bounds: CostBounds = None,
    ) -> None:
        self.region: Any = region  # its capabilities are not known before
        self.matrix = matrix
        self.known_cost = known_cost
        self.labels = labels
        self.cost_bounds = cost_bounds

    # -- what the map is -----------------------------------------------------------------------------------------------

    @property
    def sense(self) -> str:  # type: ignore[override]
        """That of the inner region."""
        if not isinstance(self.region, Region):
            hint = " Did you forget the parentheses?" if isinstance(self.region, type) else ""
            raise TypeError(f"LinearImage: region must be a Region such as Simplex(), got {shown(self.region)}.{hint}")
        return self.region.sense

    @property
    def n_dim(self) -> int | None:
        """Number of rows of the matrix, and one more with a known cost."""
        return int(self._read_matrix().shape[0]) + (self.known_cost is not None)

    @property
    def variable_names(self) -> Names:  # type: ignore[override]
        """The labels; or names of the inner variables, for rows with one entry, and numbers for other rows."""
        if self.labels is not None:
            rows: Any = check_names(self.labels, self._read_matrix().shape[0], "LinearImage: labels")
            return rows if self.known_cost is None else [*rows, "known cost"]
        inner, m = self._inner()
        matrix = self._data(self.resolve_dim()).matrix
        return names_of_rows(matrix, inner.names(m), self.known_cost is not None)

    def _read_matrix(self) -> np.ndarray | sp.sparray | sp.spmatrix:
        given: Any = self.matrix
        if np.issubdtype(getattr(given, "dtype", float), np.complexfloating):
            raise ValueError("LinearImage: matrix must have real entries, got complex ones.")
        matrix = given if sp.issparse(given) else read_numbers("LinearImage: matrix", given)
        if len(matrix.shape) != 2 or 0 in matrix.shape:
            raise ValueError(
                "LinearImage: matrix must have shape (d, m), one row for each predicted cost and one column for each "
                f"variable of the inner region; got shape {matrix.shape}."
            )
        return matrix

    @property
    def offset(self) -> np.ndarray | None:
        """Known part of a prediction: (0, ..., 0, 1), or None without a known cost."""
        return None if self.known_cost is None else np.eye(self.resolve_dim())[-1]

    def _known_costs(self, d: int) -> list[int]:
        return [] if self.known_cost is None else [d - 1]

    def extend(self, C: ArrayLike) -> Any:
        """Append the cost 1 of the known cost to costs or predictions.

        Parameters
        ----------
        C : array-like of shape (n_samples, d) or (d,)
            Costs or values, one for each row of ``matrix``.

        Returns
        -------
        C : ndarray or DataFrame of shape (n_samples, d + 1), or ndarray of shape (d + 1,)
            Without ``known_cost`` the costs as they are.  A data frame keeps its names and its index; the new column
            is called "known cost".
        """
        C_arr = np.asarray(C, dtype=np.float64)
        d = self._data(self.resolve_dim()).matrix.shape[0]
        if C_arr.ndim not in (1, 2) or C_arr.shape[-1] != d:
            raise ValueError(
                f"{self._title}.extend needs one cost for each of the {d} rows of matrix, got shape {C_arr.shape}."
            )
        if hasattr(C, "columns"):
            return C if self.known_cost is None else with_ones(C)
        if self.known_cost is None:
            return C_arr
        return np.concatenate([C_arr, np.ones((*C_arr.shape[:-1], 1))], axis=-1)

    def resolve_dim(self, n_dim: int | None = None) -> int:
        """Number of entries of a decision; the argument must agree."""
        own = self.n_dim
        if n_dim is not None and own is not None and self.known_cost is not None and n_dim == own - 1:
            raise ValueError(
                f"LinearImage with a known_cost has {own} decision variables, the last of which is the known cost, but "
                f"the costs have {n_dim} columns. There must be one cost per decision variable: extend(C) appends the "
                "last one, and offset=region.offset is passed to the methods of an estimator."
            )
        return super().resolve_dim(n_dim)

    def _prepare(self, d: int) -> Maps:
        M = sp.csr_array(self._read_matrix(), dtype=np.float64)
        M.sum_duplicates()
        m = M.shape[1]
        if not np.isfinite(M.data).all():
            raise ValueError("LinearImage: matrix must be finite, without NaN or infinity.")
        own = self.region.n_dim
        if own is not None and own != m:
            raise ValueError(
                f"LinearImage: matrix must have one column for each of the {own} variables of the inner region "
                f"{self.region.label}, got shape {M.shape}."
            )
        known = None
        if self.known_cost is not None:
            known = read_numbers("LinearImage: known_cost", self.known_cost)
            if known.shape != (m,):
                raise ValueError(
                    f"LinearImage: known_cost must have one entry for each of the {m} variables of the inner region, "
                    f"that is shape ({m},), got shape {known.shape}. One for each sample is passed as region_params."
                )
            if not np.isfinite(known).all():
                raise ValueError("LinearImage: known_cost must be finite; forbid a variable in the inner region.")
        self.region._data(m)  # checks its parameters
        return Maps.of(M, known)

    def _inner(self) -> tuple[Any, int]:
        """Inner region, and the number of its variables."""
        return self.region, int(self._data(self.resolve_dim()).full.shape[1])

    def _pull(self, C: np.ndarray) -> np.ndarray:
        """Costs of z, K^T c, of each row."""
        self._check_rows(len(C))
        maps: Maps = self._data(C.shape[1])
        if maps.known_cost is None:
            return np.ascontiguousarray((maps.transposed @ C.T).T)
        return (maps.matrix.T @ C[:, :-1].T).T + C[:, -1:] * maps.known_cost

    def _push(self, Z: np.ndarray) -> np.ndarray:
        """Decisions K z of each row."""
        maps: Maps = self._data(self.resolve_dim())
        if maps.known_cost is None:
            return np.ascontiguousarray((maps.full @ Z.T).T)
        return np.column_stack([(maps.matrix @ Z.T).T, np.einsum("ij,ij->i", maps.known_cost, Z)])

    def _derived_from(self, d: int) -> tuple[Entry, ...]:
        inner, m = self._inner()
        return self._entry(d), inner._entry(m)

    def _directions(self) -> Directions:
        """Singular values and constant directions."""
        inner, m = self._inner()
        return self._derived("directions", self.resolve_dim(), lambda: self._directions_for(equalities_of(inner, m)))

    def _directions_for(self, E: np.ndarray) -> Directions:
        maps = self._data(self.resolve_dim())
        if maps.known_cost is None:
            return analyze(maps, E)
        # The last entry differs from sample to sample: only what is constant without it is constant.
        found = analyze(Maps.of(maps.matrix, None), E)
        return found._replace(normals=np.pad(found.normals, ((0, 0), (0, 1))))

    # -- the oracle ----------------------------------------------------------------------------------------------------

    def _inside(self) -> list[Region]:
        return [self.region]

    def _argmin_again(self, C: np.ndarray, data: Any, memory: Memory) -> np.ndarray:
        """K z for the best z."""
        return self._push(self._inner_min(C, memory))

    def _inner_min(self, C: np.ndarray, memory: Memory | None = None) -> np.ndarray:
        return self.region._named(self._row_names).solve_min(self._pull(C), memory)

    def inner_argmin(self, C: ArrayLike) -> np.ndarray:
        """Best z of the inner region for each row of costs; ``argmin`` gives :math:`M z`.

        Parameters
        ----------
        C : array-like of shape (n_samples, d) or (d,)
            Costs or values, with a last 1 if there is a known cost (``extend``).

        Returns
        -------
        Z : ndarray of shape (n_samples, m) or (m,)
        """
        return self._of_rows(C, self._inner_min)

    def relaxation(self) -> LinearImage:
        """Return the image of the relaxation of the inner region."""
        return self._of(self.region.relaxation())

    def _of(self, inner: Region) -> LinearImage:
        """Image of another region with as many variables, under the same map."""
        if inner is self.region:
            return self
        params, d, data, contents = self._entry(self.n_dim)
        other: Any = self._named(self._row_names)
        other.region = inner
        other._cache = {"data": (tuple(inner if p is self.region else p for p in params), d, data, contents)}
        return cast("LinearImage", other)

    # -- decisions with predicted costs: those of u are clipped, and then those of z -----------------------------------

    def _limits(self, d: int) -> Limits | None:
        if self.known_cost is None:
            return super()._limits(d)
        limits = read_bounds(self.cost_bounds, d - 1, self.sense, self.label)
        return None if limits is None else (np.append(limits[0], -np.inf), np.append(limits[1], np.inf))

    def _clipped(self, C: np.ndarray) -> np.ndarray:
        """Costs of z for predicted costs, clipped to ``cost_bounds``."""
        return self._pull(clip(C, self._limits(C.shape[1])))

    def _inner_decide(self, C: np.ndarray) -> np.ndarray:
        return self.region._named(self._row_names)._decide_min(self._clipped(C))

    def _decide_min(self, C: np.ndarray) -> np.ndarray:
        return self._push(self._inner_decide(C))

    def _decide_worst(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        return self._push(self.region._decide_worst(self._clipped(C), self._pull(C_true)))

    def _clips(self, d: int) -> bool:
        return super()._clips(d) or self.region._clips(self._inner()[1])

    def _learn_bounds(self, C: np.ndarray, mean: np.ndarray) -> Region:
        """Return the image of the inner region with learned bounds, if the known cost does not vary by sample."""
        if self._rows is not None:
            return self
        return self._of(self.region._learn_bounds(self._pull(C), self._pull(mean[None])[0]))

    def _check_true_costs(self, C: np.ndarray) -> None:
        self.region._named(self._row_names)._check_true_costs(self._pull(C))

    def chosen(self, C: ArrayLike, names: Names = None) -> list[Any]:
        """Decision z in words, if the variables of the inner region have names; else the best u."""
        if self.region.names(self._inner()[1]) is None:
            return super().chosen(C, names)
        return self.region.describe(np.atleast_2d(self._of_rows(C, self._inner_decide)))

    # -- parameters that vary by sample --------------------------------------------------------------------------------

    def row_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Those of the inner region, and the known cost if there is one."""
        m = self._inner()[1]
        return self.region.row_shapes(m) | ({} if self.known_cost is None else {"known_cost": (m,)})

    @property
    def _region_of_rows(self) -> Region:
        return self.region

    @property
    def _rows_may_be_infinite(self) -> frozenset[str]:  # type: ignore[override]
        return self.region._rows_may_be_infinite

    @property
    def _varies(self) -> bool:
        return super()._varies or self.region._varies

    def _read_row_param(self, name: str, value: ArrayLike) -> ArrayLike:
        own = name == "known_cost" and self.known_cost is not None
        return value if own else self.region._read_row_param(name, value)

    def _view(self, rows: dict[str, np.ndarray], d: int) -> LinearImage:
        own = {name: rows[name] for name in {"known_cost"} & set(rows) if self.known_cost is not None}
        rest = {name: array for name, array in rows.items() if name not in own}
        image = self._of(self.region._view(rest, self._inner()[1])) if rest else self
        return cast("LinearImage", Region._view(image, own, d)) if own else image

    def take(self, rows: slice | np.ndarray) -> LinearImage:
        """Image of some of the samples; errors still name rows of all samples."""
        return cast("LinearImage", super().take(rows))._of(self.region.take(rows))

    def _row_table(self, n: int) -> np.ndarray:
        return np.column_stack([self.region._row_table(n), super()._row_table(n)])

    # -- capabilities --------------------------------------------------------------------------------------------------

    def possible(self, n_rows: int, n_dim: int) -> np.ndarray | None:
        """Rows of the matrix that have a variable of the inner region that can be nonzero; the known cost is known."""
        inner, m = self._inner()
        possible = inner.possible(n_rows, m)
        if possible is None:
            return None
        used = possible @ (abs(self._data(self.resolve_dim(n_dim)).matrix).T > 0)
        used = np.pad(used, ((0, 0), (0, n_dim - used.shape[1])), constant_values=True)
        return None if used.all() else used

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal rows E with E u constant: E K is a combination of the inner equalities."""
        self.resolve_dim(n_dim)
        return self._directions().normals

    def _always_hidden(self, d: int) -> np.ndarray:
        inner, m = self._inner()
        return self._directions_for(inner._always_hidden(m)).normals

    @available_if(lambda image: image._rows_of_blocks() is not None)
    def blocks(self, n_dim: int | None = None) -> list[tuple[np.ndarray, Region]]:
        """Images of the factors of the inner region, if no row of the matrix has entries for several of them."""
        K, rows = self._data(self.resolve_dim(n_dim)).full, self._rows_of_blocks()
        inner, m = self._inner()
        assert rows is not None
        factors = zip(rows, inner.blocks(m), strict=True)
        return [(own, LinearImage(factor, K[own][:, columns])) for own, (columns, factor) in factors if own.size]

    def _rows_of_blocks(self) -> list[np.ndarray] | None:
        inner, m = self._inner()
        if not has(inner, "blocks") or self._varies:
            return None
        return rows_of_blocks(self._data(self.resolve_dim()).full, [columns for columns, _ in inner.blocks(m)])

    @available_if(_can_lift)
    def repair(self, W: np.ndarray) -> np.ndarray:
        """Find z with K z near the decisions, repair it, and return K z."""
        inner, m = self._inner()
        found = self._directions()
        if not found.injective:
            form, project = self._inner_form()
            return self._push(inner.repair(lift_rows(form, project, self._data(W.shape[1]).full, W)))
        reference = inner.solve_min(np.zeros((W.shape[0] if self._varies else 1, m)))
        step = W - self._push(reference)
        step = step if self._rows is None else step[:, :-1]
        return self._push(inner.repair(reference + (found.lift @ step.T).T))

    @property
    def _repair_is_solver(self) -> bool:
        """Whether inner decisions are not determined by their images, or those of the inner region are repaired so."""
        return not self._directions().injective or self.region._repair_is_solver

    def _inner_form(self) -> tuple[StandardForm, sp.csr_array]:
        """Standard form of the inner region, and the map from it to z."""
        inner, m = self._inner()

        def find() -> tuple[StandardForm, sp.csr_array]:
            form: StandardForm = inner.standard_form(m)
            return form, form.map_to(m)

        return self._derived("inner form", self.resolve_dim(), find)

    @available_if(lambda image: has(image.region, "standard_form") and image._rows is None)
    def standard_form(self, n_dim: int | None = None) -> StandardForm:
        """Return that of the inner region; a diagonal matrix changes the units of its variables, others its map."""
        maps = self._data(self.resolve_dim(n_dim))
        form, project = self._inner_form()
        if maps.scales is None or form.project is not None or form.varies:
            return form._replace(project=sp.csr_array(maps.full @ project))
        units = np.ones(form.lower.size)
        units[: maps.scales.size] = maps.scales
        ends = np.stack([form.lower * units, form.upper * units])
        return StandardForm(
            sp.csr_array(form.A @ sp.diags_array(1.0 / units)), form.b, ends.min(axis=0), ends.max(axis=0)
        )

    @available_if(_inner_has("_interior"))
    def _interior(self) -> Any:
        """Interior points of the inner standard forms, if they vary by sample."""
        return self.region._interior()

    @available_if(_keeps_quadratic)
    def quadratic_form(self, n_dim: int | None = None) -> QuadraticForm:
        """Return that of the inner region: z is a linear function of the decision."""
        inner, m = self._inner()
        K = self._data(self.resolve_dim(n_dim)).full
        form: QuadraticForm = inner.quadratic_form(m)
        standard = form.standard._replace(project=sp.csr_array(K @ form.standard.map_to(m)))
        back = np.linalg.pinv(K.toarray())
        return form._replace(standard=standard, Q=back.T @ form.Q @ back)

    @available_if(_inner_has("support_epigraph"))
    def support_epigraph(self, V: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Cone form of the support function: that of the inner region at K^T v."""
        maps = self._data(V.shape[1])
        if maps.known_cost is None:
            return self.region.support_epigraph(V @ maps.full)
        import cvxpy as cp

        last = V[:, -1:] @ np.ones((1, maps.known_cost.shape[1]))
        return self.region.support_epigraph(V[:, :-1] @ maps.matrix + cp.multiply(last, maps.known_cost))

    @available_if(_inner_has("worst_argmin"))
    def worst_argmin(self, C: np.ndarray, C_true: np.ndarray) -> np.ndarray:
        """Among the decisions optimal for ``C``, the one that costs most under ``C_true`` (both minimized)."""
        return self._push(self.region.worst_argmin(self._pull(C), self._pull(C_true)))

    @available_if(_inner_has("derivative"))
    def derivative(self, C: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Derivative of the decisions at costs ``C`` along each row of ``direction`` (both minimized)."""
        return self._push(self.region.derivative(self._pull(C), self._pull(direction)))

    @available_if(_inner_has("smoothed"))
    def smoothed(self, C: np.ndarray, mu: float, memory: Memory | None = None, curvature: bool = False) -> Smoothed:
        """Minimize c.u + mu f(z), f being the level function of the inner region."""
        found: Smoothed = self.region.smoothed(self._pull(C), mu, memory, curvature)
        M = found.M
        if M is not None:
            maps = self._data(C.shape[1])
            K = maps.full.toarray()[None]
            if maps.known_cost is not None:
                K = np.tile(K, (len(C), 1, 1))
                K[:, -1] = maps.known_cost
            M = np.matmul(np.matmul(K, M), K.transpose(0, 2, 1))
        return Smoothed(self._push(found.W), found.level, M)

    @available_if(_inner_has("strong_convexity"))
    def strong_convexity(self, n_dim: int | None = None) -> StrongConvexity:
        r"""Constants of :math:`\min f(z)` over z with image u, f being the level function of the inner region."""
        inner, m = self._inner()
        self.resolve_dim(n_dim)
        found, constants = self._directions(), inner.strong_convexity(m)
        return StrongConvexity(constants.mu / found.high**2, constants.L / found.low**2, *constants[2:])

    @available_if(_inner_has("audit"))
    def audit(self, n_dim: int) -> None:
        """Check the oracle of the inner region."""
        self.region.audit(self._inner()[1])

    @available_if(_inner_has("distrust"))
    def distrust(self, why: str, n_dim: int) -> None:
        """Record that the oracle of the inner region is not optimal."""
        self.region.distrust(why, self._inner()[1])
