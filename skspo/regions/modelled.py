"""Regions the user models: OracleRegion (a function), CvxpyRegion (constraints), Markowitz (a risk limit).

CVXPY and Clarabel are imported on first use, not with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from .._warn import warn_once
from ..backends import import_cvxpy
from ._cones import cones_of
from ._conic import Cones, ConicSet
from ._enumeration import inradius_of_simplex
from ._row_names import row_error, rows_named
from ._witnesses import Witness, Witnesses
from .base import CertifiedFloat, Region, directions_of
from .polyhedral_base import QuadraticForm, StandardForm


def _clone_sharing(region: Region) -> Region:
    """Copy a region that holds a function: the function is shared, not deep-copied with all that it refers to."""
    return type(region)(**{name: getattr(region, name) for name in region._get_param_names()})


def _check_n_dim(region: Region, n_dim: Any) -> None:
    if isinstance(n_dim, bool) or not isinstance(n_dim, (int, np.integer)) or n_dim < 1:
        raise ValueError(f"{type(region).__name__}: n_dim must be a positive integer, got {n_dim!r}.")


def _box_diameter(conic: ConicSet) -> float:
    """Diagonal of the bounding box, raised by what the solver's tolerance can hide."""
    low, high = conic.bounding_box
    return float(np.linalg.norm(high - low + 2e-8 * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))))


def _short(vector: np.ndarray) -> str:
    return np.array2string(vector, precision=6, threshold=20, separator=", ").replace("\n", "")


class OracleRegion(Region):
    """A region known only by a function that finds the best decisions.

    Parameters
    ----------
    oracle : callable
        Function that takes an array of shape (n_samples, d) and returns the best decision for each row, an array of
        the same shape.  It gets the numbers in the user's own sense: costs to be minimised if ``sense="min"``, values
        to be maximised if ``sense="max"``.  It must accept any finite numbers, negative ones too, because training
        asks for the decisions of ``2 c_hat - c``.  It gets a copy, which it may change.
    n_dim : int, default=None
        Number of decision variables; None if the function works for any number of columns.
    sense : {"min", "max"}, default="min"
        Whether the function minimises costs or maximises values.
    on_suboptimal : {"raise", "warn"}, default="raise"
        What to do if the function is found not to be optimal: it returned a decision although another one, which it
        returned before or for another row, is better.  "warn" is for heuristics: there is one warning, and a fit goes
        on (see Notes).

    Notes
    -----
    Decisions are taken on trust.  They are compared with a few dozen others that the function returned, which finds out
    most functions that are random, heuristic or inexact (set the gap and tolerance of a solver to at most 1e-6), or
    return decisions that are not feasible.  A function that never returns the better decisions cannot be found out: to
    skspo it is a correct oracle of a smaller set, and the certificate of a fit is one for that set.

    With a heuristic the SPO+ loss is not reliable: it is too small where the heuristic misses good decisions, and may
    be negative.  Once that is known, a linear fit with ``on_suboptimal="warn"`` returns the candidate whose decisions,
    made by the function itself, cost least on the training data, plus the penalty.  Candidates are least squares, its
    intercept alone, and the results of the solvers; ``solver="auto"`` then runs sgd as well as bundle.  ``objective_``
    is the loss of that model as it was evaluated.  ``lower_bound_`` is -inf and ``duality_gap_`` is inf, because
    nothing is proved.

    If the function raises, the error gets a note that names the row of the data.  ``clone`` shares the function.  To be
    pickled, for example for ``n_jobs``, it must be defined in a module.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo import OracleRegion
    >>> def pick_best(V):
    ...     return np.eye(V.shape[1])[V.argmax(axis=1)]
    >>> OracleRegion(pick_best, 3, sense="max").argmin([[3.0, 1.0, 2.0]])
    array([[1., 0., 0.]])
    """

    n_dim: int | None = None  # type: ignore[assignment]

    def __init__(
        self,
        oracle: Callable[[np.ndarray], ArrayLike],
        n_dim: int | None = None,
        *,
        sense: str = "min",
        on_suboptimal: str = "raise",
    ) -> None:
        # Not called argmin as the method is: scikit-learn wants an attribute with the name of the parameter.
        self.oracle = oracle
        self.n_dim = n_dim
        self.sense = sense
        self.on_suboptimal = on_suboptimal

    def __sklearn_clone__(self) -> Region:
        return _clone_sharing(self)

    def _prepare(self, d: int) -> Witnesses:
        if self.on_suboptimal not in ("raise", "warn"):
            raise ValueError(f"OracleRegion: on_suboptimal must be 'raise' or 'warn', got {self.on_suboptimal!r}.")
        if not callable(self.oracle):
            raise TypeError(
                "OracleRegion: oracle must be a function that turns costs of shape (n_samples, d) into decisions of "
                f"the same shape, got {self.oracle!r}."
            )
        if self.n_dim is not None:
            _check_n_dim(self, self.n_dim)
        return Witnesses()

    def _argmin(self, C: np.ndarray, data: Any) -> np.ndarray:
        if C.shape[0] == 0:
            return np.empty(C.shape)
        try:
            result = self._ask(C)
        except Exception as error:
            self._name_row(error, C)
            raise
        W = self._read(result, C)
        self._doubt(data, data.look(C, W, self._row_names))
        return W

    def _ask(self, C: np.ndarray) -> Any:
        # to_min is its own inverse: it gives back the numbers in the user's sense.
        return self.oracle(np.array(self.to_min(C)))

    def _name_row(self, error: Exception, C: np.ndarray) -> None:
        """Find a row for which the function raises, by halving, and note it in the error."""
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
    def may_be_inexact(self) -> bool:
        """Whether the user allows for it."""
        return self.on_suboptimal == "warn"

    @property
    def fault(self) -> str | None:
        """What showed, since the region was made, that its oracle is not optimal; None if nothing did."""
        entry = self.__dict__.get("_cache", {}).get("data")
        return None if entry is None else entry[2].fault

    def audit(self, n_dim: int) -> None:
        """Compare the decisions of the first call with all that are known now."""
        data = self._data(n_dim)
        self._doubt(data, data.look_back())

    def distrust(self, why: str, n_dim: int) -> None:
        """Take note that the oracle is not optimal: raise an error or warn once, as the user wishes."""
        data = self._data(n_dim)
        text = f"OracleRegion: {why}"
        if self.on_suboptimal == "raise":
            raise ValueError(
                f"{text} If it is meant to be a heuristic, use on_suboptimal='warn': a fit then goes on, without a "
                "lower bound."
            )
        if data.fault is None:
            data.fault = why
            warn_once(
                f"{text} A linear fit goes on and returns the model whose decisions by this oracle cost least on the "
                "training data. It has no lower bound: lower_bound_ is -inf and duality_gap_ is inf.",
                UserWarning,
            )

    def _doubt(self, data: Witnesses, witness: Witness | None) -> None:
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

    def _read(self, result: Any, C: np.ndarray) -> np.ndarray:
        """Decisions as a float array of our own, checked as far as that is possible."""
        got = f"{type(result)}."
        try:
            dtype = np.asarray(result).dtype
            got = f"{type(result)} of type {dtype}."
            if dtype.kind == "c" or result is None:
                got = "None: is there a return statement?" if result is None else "complex numbers."
            # Strings that look like numbers are a mistake, even where NumPy would read them.
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
        if not np.isfinite(W).all():
            row = int(np.argmin(np.isfinite(W).all(axis=1)))
            raise row_error(
                ValueError,
                row,
                f"OracleRegion: the oracle returned a decision that is not finite for {{row}}: {W[row]}.",
            )
        return W


class _ConicRegion(Region):
    """What follows from the region's :class:`ConicSet`, which ``_conic(n_dim)`` returns."""

    n_jobs: int | None = None

    @property
    def asks_solver(self) -> bool:
        """Yes, Clarabel."""
        return True

    def _conic(self, n_dim: int | None = None) -> ConicSet:
        raise NotImplementedError

    def _argmin(self, C: np.ndarray, data: Any) -> np.ndarray:
        return self._conic(C.shape[1]).minimise(C, self.n_jobs)

    def support_epigraph(self, V: Any) -> tuple[Any, list[Any]]:
        """Cone form of the support function of each row of a CVXPY expression, by conic duality.

        Parameters
        ----------
        V : cvxpy.Expression of shape (n, d)

        Returns
        -------
        t : cvxpy.Expression of shape (n,)
            At least the support function, and equal to it when minimised.
        constraints : list of cvxpy constraints
        """
        return self._conic(V.shape[1]).support_epigraph(V)

    def bounding_box(self, n_dim: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Smallest box around the region, up to the solver's tolerance."""
        return self._conic(self.resolve_dim(n_dim)).bounding_box

    def relative_width(self, n_dim: int | None = None) -> CertifiedFloat:
        """Lower bound on the smallest extent over the directions in which decisions vary.

        It is twice the radius of the ball in a simplex of optimal decisions, lowered by the solver's tolerance.
        """
        d = self.resolve_dim(n_dim)
        U = directions_of(self, d)
        k = U.shape[1]
        if k == 0:
            return CertifiedFloat(0.0)
        # The k + 1 directions of a regular simplex: their decisions are spread around the region.
        spread = np.linalg.svd(np.ones((1, k + 1)))[2][1:].T
        W = self._solve_directions(spread @ U.T) @ U
        radius = inradius_of_simplex(W - W[0])
        return CertifiedFloat(2.0 * max(radius - 1e-6 * max(1.0, float(np.abs(W).max())), 0.0), "lower bound")


class CvxpyRegion(_ConicRegion):
    """A convex region written in CVXPY.

    The constraints are compiled once; each row of costs is then one call of the solver Clarabel on the compiled cones.

    Parameters
    ----------
    constraints : callable
        Function that takes a ``cvxpy.Variable`` of shape (n_dim,) and returns a list of CVXPY constraints.  It may
        create further continuous variables.  Together the constraints must describe a bounded, nonempty set.
    n_dim : int
        Number of decision variables.
    n_jobs : int, default=None
        Number of processes over which rows are spread, worth it from thousands of rows on.  None means 1.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values.

    Notes
    -----
    Decisions are feasible to about 1e-8 and optimal to about 1e-7, relative to the largest cost.  Among several optimal
    decisions the solver returns one in the middle, not a vertex.  ``clone`` shares the function.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from skspo import CvxpyRegion
    >>> region = CvxpyRegion(lambda w: [w >= 0, cp.sum(w) == 1, cp.norm(w) <= 0.8], n_dim=3)
    >>> region.argmin([[1.0, 2.0, 3.0]]).round(3) + 0.0
    array([[0.765, 0.235, 0.   ]])
    """

    n_dim: int | None = None  # type: ignore[assignment]

    def __init__(
        self,
        constraints: Callable[[Any], list[Any]],
        n_dim: int,
        *,
        n_jobs: int | None = None,
        sense: str = "min",
    ) -> None:
        self.constraints = constraints
        self.n_dim = n_dim
        self.n_jobs = n_jobs
        self.sense = sense

    def __sklearn_clone__(self) -> Region:
        return _clone_sharing(self)

    def _conic(self, n_dim: int | None = None) -> ConicSet:
        return self._data(n_dim)

    def _prepare(self, d: int) -> ConicSet:
        _check_n_dim(self, self.n_dim)
        conic = _compile(self.constraints, d)
        status = conic.status(np.zeros(d))
        if status.endswith("PrimalInfeasible"):
            raise ValueError("CvxpyRegion: the region is empty, the constraints are infeasible.")
        if status not in ("Solved", "AlmostSolved"):
            raise RuntimeError(f"CvxpyRegion: Clarabel found no decision that meets the constraints: status {status}.")
        try:
            conic.box_points  # noqa: B018  (computed here, kept for bounding_box)
        except RuntimeError:
            for j in range(2 * d):
                cost = np.zeros(d)
                cost[j % d] = 1.0 if j < d else -1.0
                if conic.status(cost).endswith("DualInfeasible"):
                    raise ValueError(
                        f"CvxpyRegion: the region is unbounded, w[{j % d}] can be arbitrarily "
                        f"{'low' if j < d else 'high'}. Add a bound on it."
                    ) from None
            raise
        return conic

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """Orthonormal rows E with E w constant on the region, to a tolerance of 1e-6 of its size."""
        return self._conic(self.resolve_dim(n_dim)).normals

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Move decisions outside the region towards an interior point until they are inside."""
        with rows_named(self._row_names.of):
            return self._conic(W.shape[1]).pull(W)

    def diameter(self, n_dim: int | None = None) -> CertifiedFloat:
        """Largest distance between two decisions: here the diagonal of the bounding box, an upper bound."""
        return CertifiedFloat(_box_diameter(self._conic(self.resolve_dim(n_dim))), "upper bound")


def _compile(constraints: Any, d: int) -> ConicSet:
    """Turn a function that returns CVXPY constraints into cones."""
    cp = import_cvxpy()
    if not callable(constraints):
        raise TypeError(
            "CvxpyRegion: constraints must be a function w -> list of CVXPY constraints, for example "
            f"lambda w: [w >= 0, cp.sum(w) == 1]; got {constraints!r}."
        )
    w = cp.Variable(d, name="w")
    listed = constraints(w)
    listed = [listed] if isinstance(listed, cp.Constraint) else listed
    if not isinstance(listed, (list, tuple)) or not all(isinstance(c, cp.Constraint) for c in listed):
        raise TypeError(f"CvxpyRegion: constraints(w) must return a list of CVXPY constraints, got {listed!r}.")
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
    data, _, _ = cp.Problem(cp.Minimize(cp.sum(w)), list(listed)).get_problem_data(cp.CLARABEL)
    start = data["param_prob"].var_id_to_col[w.id]
    columns = np.arange(start, start + d)
    # The objective sum(w) shows where CVXPY put w; anything else would be silently wrong decisions.
    expected = np.zeros(data["c"].size)
    expected[columns] = 1.0
    if not np.array_equal(data["c"], expected) or data.get("P") is not None:
        raise RuntimeError("CvxpyRegion: this version of CVXPY compiles problems in a way that skspo does not know.")
    return ConicSet(data["A"], data["b"], cones_of(data["dims"]), columns)


class _MarkowitzData(NamedTuple):
    conic: ConicSet
    covariance: np.ndarray
    factor: np.ndarray  # G with covariance = G^T G
    max_risk: float
    safest: np.ndarray  # the decision of smallest risk
    equal: bool
    alone: bool  # whether it is the only feasible one


class Markowitz(_ConicRegion):
    """Portfolios with a risk limit {w >= 0, sum w = 1, w^T covariance w <= max_risk}.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Symmetric positive semidefinite matrix.
    max_risk : float
        Largest variance of the portfolio, positive.
    budget : {"equal", "at_most"}, default="equal"
        Whether all money is invested, ``sum w = 1``, or some may be kept, ``sum w <= 1``.
    n_jobs : int, default=None
        Number of processes over which rows are spread, worth it from thousands of rows on.  None means 1.
    sense : {"min", "max"}, default="min"
        Whether the predicted numbers are costs or values; predicted returns are values.

    Examples
    --------
    >>> from skspo import Markowitz
    >>> region = Markowitz([[1.0, 0.0], [0.0, 4.0]], max_risk=2.0, sense="max")
    >>> region.argmin([[1.0, 3.0], [3.0, 1.0]]).round(3) + 0.0
    array([[0.31, 0.69],
           [1.  , 0.  ]])
    """

    def __init__(
        self,
        covariance: ArrayLike,
        max_risk: float,
        *,
        budget: str = "equal",
        n_jobs: int | None = None,
        sense: str = "min",
    ) -> None:
        self.covariance = covariance
        self.max_risk = max_risk
        self.budget = budget
        self.n_jobs = n_jobs
        self.sense = sense

    @property
    def n_dim(self) -> int | None:
        """Size of the covariance matrix."""
        shape = np.shape(self.covariance)
        return shape[0] if shape else 1

    def _conic(self, n_dim: int | None = None) -> ConicSet:
        return self._data(n_dim).conic

    def _prepare(self, d: int) -> _MarkowitzData:
        cov = np.asarray(self.covariance, dtype=np.float64)
        if cov.shape != (d, d) or not np.isfinite(cov).all():
            raise ValueError(
                f"Markowitz: covariance must be a finite square matrix of shape ({d}, {d}), got shape {cov.shape}."
            )
        size = float(np.abs(cov).max())
        if np.abs(cov - cov.T).max() > 1e-10 * size:
            raise ValueError("Markowitz: covariance must be symmetric, but it differs from its transpose.")
        cov = (cov + cov.T) / 2.0
        values, vectors = np.linalg.eigh(cov)
        if values[0] < -1e-8 * size:
            raise ValueError(
                f"Markowitz: covariance must be positive semidefinite, but its smallest eigenvalue is {values[0]:.3g}."
            )
        try:
            max_risk = float(self.max_risk)
        except (TypeError, ValueError):
            max_risk = np.nan
        if not 0.0 < max_risk < np.inf:
            raise ValueError(f"Markowitz: max_risk must be a positive finite number, got {self.max_risk!r}.")
        if self.budget not in ("equal", "at_most"):
            raise ValueError(f"Markowitz: budget must be 'equal' or 'at_most', got {self.budget!r}.")
        equal = self.budget == "equal"
        keep = values > 1e-13 * max(float(values[-1]), 0.0)
        if keep.all():
            # Triangular, so that the solver has half as much to factorise.
            factor = np.linalg.cholesky(cov).T
        else:
            factor = np.sqrt(values[keep])[:, None] * vectors[:, keep].T
        safest = _safest_portfolio(factor, d) if equal else np.zeros(d)
        smallest = float(np.square(factor @ safest).sum())
        if smallest > max_risk * (1.0 + 1e-9):
            raise ValueError(
                f"Markowitz: the region is infeasible, max_risk = {max_risk:.6g} is below the smallest risk "
                f"that any portfolio attains, {smallest:.6g}."
            )
        # In units of the risk limit, so that all rows of the cones are of the same size:
        #   sum w = 1 (or sum w <= 1),   -w <= 0,   (1, G w / sqrt(max_risk)) in the second-order cone
        G = factor / np.sqrt(max_risk)
        k = G.shape[0]
        A = sp.vstack(
            [sp.csr_array(np.ones((1, d))), -sp.eye_array(d), sp.csr_array((1, d)), sp.csr_array(-G)], format="csc"
        )
        b = np.concatenate([[1.0], np.zeros(d), [1.0], np.zeros(k)])
        cones: Cones = [("zero", 1), ("nonneg", d)] if equal else [("nonneg", d + 1)]
        conic = ConicSet(A, b, [*cones, ("soc", k + 1)], np.arange(d))
        # A cone program without an interior is more than a solver can be asked for, and here there is nothing to solve.
        alone = bool(keep.all()) and smallest >= max_risk * (1.0 - 1e-12)
        return _MarkowitzData(conic, cov, factor, max_risk, safest, equal, alone)

    def _argmin(self, C: np.ndarray, data: Any) -> np.ndarray:
        return np.tile(data.safest, (C.shape[0], 1)) if data.alone else super()._argmin(C, data)

    def equalities(self, n_dim: int | None = None) -> np.ndarray:
        """One row, (1, ..., 1) / sqrt(d), if the whole budget is spent; none otherwise."""
        d = self.resolve_dim(n_dim)
        return np.full((1, d), 1.0 / np.sqrt(d)) if self._data(d).equal else np.zeros((0, d))

    def quadratic_form(self, n_dim: int | None = None) -> QuadraticForm:
        """Portfolios, with a slack for what is not spent, and the limit of the risk."""
        d = self.resolve_dim(n_dim)
        data = self._data(d)
        N = d if data.equal else d + 1
        standard = StandardForm(sp.csr_array(np.ones((1, N))), np.ones(1), np.zeros(N), np.full(N, np.inf))
        if not data.equal:
            standard = standard._replace(project=sp.eye_array(d, N, format="csr"))
        # From the safest portfolio towards the middle, up to half of the risk that is allowed beyond the smallest.
        smallest = float(np.square(data.factor @ data.safest).sum())
        middle, inside = np.full(d, 1.0 / N), None
        for share in 0.5 ** np.arange(30) if smallest < data.max_risk * (1.0 - 1e-9) else ():
            w = data.safest + share * (middle - data.safest)
            if float(np.square(data.factor @ w).sum()) <= 0.5 * (smallest + data.max_risk):
                inside = w if data.equal else np.append(w, 1.0 - w.sum())
                break
        return QuadraticForm(standard, data.covariance, data.max_risk, inside)

    def derivative(self, C: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Derivative of the decisions at costs ``C`` (both minimised), where no asset is just about to enter or leave.

        Among the assets held the region is an ellipsoid, w = safest - rho c~ / |c~| in the norm of the covariance, c~
        being covariance^-1 c less a multiple of covariance^-1 1 that makes it sum to zero.  Hence the derivative
        -rho / |c~| (x~ - c~ (c~.x~) / |c~|^2).  Where the risk is below its limit the decision is a vertex: zero.
        """
        data = self._data(C.shape[1])
        W = self.solve_min(C)
        held = W > 1e-6 * W.max(axis=1, keepdims=True)
        spent = np.full(W.shape[0], data.equal) | (W.sum(axis=1) > 1.0 - 1e-6)
        active = np.square(W @ data.factor.T).sum(axis=1) > data.max_risk * (1.0 - 1e-6)
        # Assets that are not held get the identity, and so stay at zero.
        block = np.where(held[:, :, None] & held[:, None, :], data.covariance, np.eye(W.shape[1]))
        ones = np.where(held & spent[:, None], 1.0, 0.0)
        right = np.stack([np.where(held, C, 0.0), np.where(held, direction, 0.0), ones], axis=2)
        c, x, e = np.moveaxis(np.linalg.solve(block, right), 2, 0)
        total = e.sum(axis=1, keepdims=True)
        total = np.where(spent[:, None], total, 1.0)
        c, x = (v - e * (v * ones).sum(axis=1, keepdims=True) / total for v in (c, x))
        smallest = np.where(spent, 1.0 / total[:, 0], 0.0)  # risk of the safest portfolio of these assets

        def dot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
            return np.einsum("ij,ij->i", u @ data.covariance, v)[:, None]

        size = np.sqrt(np.maximum(dot(c, c), 0.0))
        smooth = active[:, None] & (size > 0)
        size = np.where(smooth, size, 1.0)
        c = c / size
        radius = np.sqrt(np.maximum(data.max_risk - smallest, 0.0))[:, None]
        return np.where(smooth, -radius / size * (x - c * dot(c, x)), 0.0)

    def repair(self, W: np.ndarray) -> np.ndarray:
        """Clip, normalise, and mix with the portfolio of smallest risk until the limit is met."""
        data = self._data(W.shape[1])
        W = np.maximum(W, 0.0)
        total = W.sum(axis=1, keepdims=True)
        if data.equal:
            # A sum of 1 up to rounding is left alone, so that repairing twice is repairing once.
            total = np.where(np.abs(total - 1.0) <= 1e-14 * W.shape[1], 1.0, total)
            W = np.where(total > 0, W / np.where(total > 0, total, 1.0), data.safest)
        else:
            W = W / np.maximum(total, 1.0)
        # Along safest + s step the risk is a s^2 + 2 b s + c, at most the limit up to one root.
        step = W - data.safest
        moved, base = step @ data.factor.T, data.factor @ data.safest
        a, b = np.square(moved).sum(axis=1), moved @ base
        room = max(data.max_risk - float(base @ base), 0.0)
        risk = np.square(W @ data.factor.T).sum(axis=1)
        root = np.sqrt(b * b + a * room)
        # b >= 0 if safest is, but it is only as safe as the solver is exact; each form is free of cancellation.
        top, bottom = np.where(b >= 0, room, root - b), np.where(b >= 0, root + b, a)
        s = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), 0.0)
        outside = (risk > data.max_risk)[:, None]
        return np.where(outside, data.safest + np.minimum(s, 1.0)[:, None] * step, W)

    def diameter(self, n_dim: int | None = None) -> CertifiedFloat:
        """Largest distance between two decisions: the diagonal of the bounding box or sqrt(2), an upper bound."""
        d = self.resolve_dim(n_dim)
        return CertifiedFloat(min(_box_diameter(self._data(d).conic), float(np.sqrt(2.0))), "upper bound")

    def width(self, n_dim: int | None = None) -> CertifiedFloat:
        """0 if the whole budget is spent; else twice the radius of a ball around a multiple of (1, ..., 1)."""
        d = self.resolve_dim(n_dim)
        data = self._data(d)
        if data.equal:
            return CertifiedFloat(0.0)
        # The ball of radius t around (t, ..., t) is nonnegative, sums to at most t (d + sqrt(d)), and its risk is at
        # most (t |G 1| + t |G|)^2.
        risk = np.linalg.norm(data.factor.sum(axis=1)) + np.linalg.norm(data.factor, 2) if data.factor.size else 0.0
        budget = 1.0 / (d + np.sqrt(d))
        return CertifiedFloat(2.0 * min(budget, np.sqrt(data.max_risk) / risk if risk > 0 else np.inf), "lower bound")


def _safest_portfolio(factor: np.ndarray, d: int) -> np.ndarray:
    """Minimise |G w| over the simplex."""
    k = factor.shape[0]
    scale = float(np.linalg.norm(factor, axis=0).max(initial=0.0))
    if k == 0 or scale == 0.0:
        return np.full(d, 1.0 / d)
    # min t  s.t.  sum w = 1, w >= 0, |G w| <= t
    A = sp.block_array(
        [
            [sp.csr_array(np.ones((1, d))), sp.csr_array((1, 1))],
            [-sp.eye_array(d), sp.csr_array((d, 1))],
            [sp.csr_array((1, d)), sp.csr_array([[-1.0]])],
            [sp.csr_array(-factor / scale), sp.csr_array((k, 1))],
        ],
        format="csc",
    )
    b = np.concatenate([[1.0], np.zeros(d + 1 + k)])
    lifted = ConicSet(A, b, [("zero", 1), ("nonneg", d), ("soc", k + 1)], np.arange(d + 1))
    with rows_named(lambda _: "the smallest risk"):
        w = np.maximum(lifted.minimise(np.eye(d + 1)[-1:])[0, :d], 0.0)
    return w / w.sum()
