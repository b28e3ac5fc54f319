"""The linear map from coefficients to predictions, in standardized coordinates.

Conventions
-----------
    one model per cost     X (n, p)      c_hat_i = B x_i + b        = Theta z_i     Theta (d, q)   Z (n, q)
    one shared model       X (n, d p)    c_hat_ij = beta.x_ij + b   = Z_i Theta^T   Theta (1, q)   Z (n, d, q)

    Z are standardized features, with a column of ones last if there is an intercept: q = p + 1, else q = p.

Hidden components.  On a region with N w = const, N the ``normals``, the component of a prediction along N changes no
decision.  One model per cost: the columns of Theta have such a component.  A shared model: the features of a sample
have one, and it is removed from Z, but a direction of Theta is hidden only if Z_i Theta^T = 0 for every sample.
Examples are the intercept, and features that are equal for all items, on a region where decisions have a constant sum.

Solvers use ``predict``, ``adjoint``, ``gram`` and ``sensitivity``; ``from_user`` and ``to_user`` translate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.linear_model import LinearRegression

from .._utils.limits import BLOCK_ELEMENTS, time_left
from .._utils.scaling import SMALLEST, largest, power_of_two, powers_of_two
from ..regions._tolerances import RANK
from ..regions.capabilities import project_visible
from ..regions.polyhedral import patterns
from .regression import REGRESSION, in_time, quick_regression, ridge_regression

if TYPE_CHECKING:
    import cvxpy as cp

#: coefficients or predictions: an array, or an expression of CVXPY
Matrix = TypeVar("Matrix", np.ndarray, "cp.Expression")

#: intercept: one per cost, or a number for a shared model
Intercept: TypeAlias = np.ndarray | float


class Standardization(NamedTuple):
    """Mean and scale of each column, and whether it is used."""

    mean: np.ndarray
    scale: np.ndarray
    used: np.ndarray


def check_blocks(n_features: int, d: int) -> None:
    """Raise an error if the features of a shared model are not one block per cost."""
    if n_features % d:
        raise ValueError(
            f"shared=True needs X with {d} consecutive blocks of features, one block for each of the {d} costs, but "
            f"X has {n_features} features, which is not a multiple of {d}. stack_items makes such an X of a long table."
        )


def apply_model(X: np.ndarray, coef: np.ndarray, intercept: Intercept) -> np.ndarray:
    """Predictions (n, d) of coefficients (d, p), or of shared ones (p,), for features as given."""
    if issparse(X):
        return X @ coef.T + intercept
    X = np.ascontiguousarray(X)  # some versions of NumPy multiply strided arrays in another order
    if coef.ndim == 1:
        return (X.reshape(-1, coef.size) @ coef + intercept).reshape(X.shape[0], -1)
    return X @ coef.T + intercept


def triangle(table: np.ndarray) -> np.ndarray:
    """R of the QR factorization."""
    R: Any = np.linalg.qr(table, mode="r")
    return R


def existing(possible: np.ndarray, weight: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of costs that exist: columns that exist in the same rows come together.

    Columns without any row of positive weight are left out.
    """
    for kept, columns in patterns(np.ascontiguousarray(possible.T)):
        rows = np.flatnonzero(kept if weight is None else kept & (weight > 0))
        if rows.size:
            yield rows, columns


class Design:
    """Standardized features, and one coefficient vector per cost: predictions X B^T + b.

    X has shape (n, p), or (n, d p) for ``SharedDesign``; weights are nonnegative and sum to one; the normals (m, d) are
    orthonormal directions in which decisions never vary.  ``center`` says whether columns are centered, which is only
    allowed if the intercept has no penalty.  With ``standardization`` these coordinates are used instead of those of X,
    for later chunks of a stream.
    """

    #: whether one coefficient vector predicts all costs
    shared: ClassVar[bool] = False
    #: whether Z is in CSR form
    sparse: ClassVar[bool] = False
    #: costs whose prediction is the offset, because they are known; their unit vectors are the last normals
    known: np.ndarray = np.zeros(0, dtype=np.intp)
    Z: np.ndarray

    def __init__(
        self,
        X: np.ndarray,
        weight: np.ndarray,
        normals: np.ndarray,
        *,
        fit_intercept: bool,
        center: bool = False,
        standardization: Standardization | None = None,
    ) -> None:
        self.weight, self.normals, self.fit_intercept = weight, normals, fit_intercept
        rows, row_weight = self._rows(X, weight)
        self.n_features = rows.shape[1]
        if standardization is None:
            mean, spread, largest = self._columns(rows, row_weight, fit_intercept and center)
            # A column that is constant up to rounding is equivalent to the intercept.
            used = spread > 16 * np.finfo(float).eps * largest
            standardization = Standardization(mean, np.where(used, spread, 1.0), used)
        self.standardization = standardization
        self.mean, self.scale, self.used = standardization
        self._set_features(self._standardized(rows))

    def _columns(self, rows: Any, weight: np.ndarray, centered: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean that is subtracted from each column, spread about it, and largest absolute value."""
        mean = weight @ rows if centered else np.zeros(rows.shape[1])
        # Squares are taken in units of a power of two, so that they neither overflow nor vanish.
        largest = np.abs(rows).max(axis=0, initial=0.0)
        unit = powers_of_two(largest)
        return mean, unit * np.sqrt(weight @ ((rows - mean) / unit) ** 2), largest

    def _standardized(self, rows: Any) -> Any:
        """Rows in these coordinates, with a column of ones for the intercept."""
        n, p = rows.shape
        Z = np.empty((n, p + 1 if self.fit_intercept else p))
        np.subtract(rows, self.mean, out=Z[:, :p])
        Z[:, :p] /= self.scale
        Z[:, :p][:, ~self.used] = 0.0
        Z[:, p:] = 1.0
        return Z

    @classmethod
    def without_rows(cls, standardization: Standardization, normals: np.ndarray, *, fit_intercept: bool) -> Self:
        """Return the map in these coordinates, without rows; ``with_rows`` adds rows."""
        p = standardization.mean.size * (normals.shape[1] if cls.shared else 1)
        X, weight = np.zeros((0, p)), np.zeros(0)
        return cls(X, weight, normals, fit_intercept=fit_intercept, standardization=standardization)

    def _rows(self, X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return X, weight

    def _set_features(self, Z: np.ndarray) -> None:
        self.Z = Z

    @property
    def n_coef(self) -> int:
        """Number of columns of Theta."""
        return self.Z.shape[-1]

    def thinned(self, rows: slice | np.ndarray, weight: np.ndarray) -> Self:
        """Return the same map for some of the rows."""
        other = copy(self)
        other.Z, other.weight = self.Z[rows], weight
        return other

    def with_rows(self, X: np.ndarray, weight: np.ndarray) -> Self:
        """Return the same map for other features, in the same coordinates."""
        coordinates = self.standardization
        other = type(self)(X, weight, self.normals, fit_intercept=self.fit_intercept, standardization=coordinates)
        other.known = self.known
        return other

    # -- the linear map ------------------------------------------------------------------------------------------------

    def predict(self, Theta: Matrix, rows: slice | np.ndarray = slice(None)) -> Matrix:
        """Predictions Z Theta^T of the given rows, shape (n_rows, d)."""
        return self.Z[rows] @ self._without_known(Theta).T

    def adjoint(self, G: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Gradient in Theta of sum_i g_i.c_hat_i over the given rows: sum_i g_i z_i^T, shape (d, q)."""
        return self._without_known(G.T @ self.Z[rows])

    def _without_known(self, Theta: Matrix) -> Matrix:
        """Theta, or a gradient in it, with zeros for the known costs."""
        if not self.known.size:
            return Theta
        unknown = np.ones(Theta.shape[0])
        unknown[self.known] = 0.0
        return unknown[:, None] * Theta if isinstance(Theta, np.ndarray) else np.diag(unknown) @ Theta

    def gram(self, room: np.ndarray) -> np.ndarray:
        """Gram matrix of the features with weights a_i room_i, shape (q, q)."""
        return (self.Z * (self.weight * room)[:, None]).T @ self.Z

    def curvature(self, M: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """Hessian in Theta of sum_i a_i c_hat_i.M_i c_hat_i / 2 over the given rows: sum_i a_i M_i (x) z_i z_i^T."""
        Z, (d, q) = self.Z[rows], (M.shape[1], self.n_coef)
        outer = np.einsum("ij,ik->ijk", Z * self.weight[rows, None], Z)
        H = M.reshape(-1, d * d).T @ outer.reshape(-1, q * q)
        return H.reshape(d, d, q, q).transpose(0, 2, 1, 3).reshape(d * q, d * q)

    def sensitivity(self, S: np.ndarray) -> np.ndarray:
        """Gradients s_k z_i^T in Theta of s_k.c_hat_i, shape (n, k, size of Theta)."""
        return np.einsum("kj,iq->ikjq", S, self.Z).reshape(self.Z.shape[0], S.shape[0], S.shape[1] * self.Z.shape[1])

    def solve_least_squares(self, C: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Theta that fits C with one weight per sample and cost: one system of normal equations per cost."""
        q = self.n_coef
        gram, block = np.zeros((weight.shape[1], q, q)), max(1, BLOCK_ELEMENTS // q**2)
        for start in range(0, self.Z.shape[0], block):
            rows = slice(start, start + block)
            outer = (self.Z[rows, :, None] * self.Z[rows, None, :]).reshape(-1, q * q)
            gram += (weight[rows].T @ outer).reshape(-1, q, q)
        trace = np.maximum(np.trace(gram, axis1=1, axis2=2), 1e-100)  # it may be zero
        gram += 1e-12 * trace[:, None, None] * np.eye(q)
        return np.linalg.solve(gram, ((weight * C).T @ self.Z)[:, :, None])[:, :, 0]

    def _by_rows(
        self, possible: np.ndarray | None, fit: Callable[[Self, slice | np.ndarray, Any, int], np.ndarray]
    ) -> np.ndarray:
        """Theta of regressions, one for each set of costs that exist in the same rows; 0 for those that never do.

        ``fit`` gets the map for these rows, the rows, the columns, and the number of regressions that are left.
        """
        if possible is None:
            return fit(self, slice(None), slice(None), 1)
        Theta, sets = np.zeros((possible.shape[1], self.n_coef)), list(existing(possible))
        for done, (rows, columns) in enumerate(sets):
            some = self.thinned(rows, self.weight[rows] / self.weight[rows].sum())
            Theta[columns] = fit(some, rows, columns, len(sets) - done)
        return Theta

    def least_squares(
        self, X: np.ndarray, C: np.ndarray, possible: np.ndarray | None = None, *, standardized: bool
    ) -> np.ndarray:
        """Theta of the least-squares fit to all of C that is ``possible``, hidden component included: one per cost.

        If it is not unique, up to rounding, it is the smallest one in the units of X, or in those of Z if
        ``standardized``.  The latter does not depend on units: with features of very different sizes LinearRegression
        drops the small ones.
        """
        return self._by_rows(
            possible,
            lambda some, i, j, n_fits: some._fit_costs(X[i], C[i][:, j], standardized, possible is not None, n_fits),
        )

    def _fit_costs(self, X: Any, C: np.ndarray, standardized: bool, quick: bool, n_fits: int) -> np.ndarray:
        """Theta of the least-squares fit to all of C."""
        features = self.Z[:, : self.n_features] if standardized else X
        coef, intercept, unit = self._regression(features, C, self.weight, quick, n_fits)
        intercept = np.broadcast_to(intercept, C.shape[1])
        if standardized:
            return np.column_stack([coef / unit, intercept]) if self.fit_intercept else coef / unit
        return self.from_user(coef, intercept, unit)

    def ridge(self, X: np.ndarray, C: np.ndarray, possible: np.ndarray | None = None) -> np.ndarray:
        """Theta of the ridge fit, hidden component included, with the penalty that predicts differences best.

        Costs that exist in the same rows have the same penalty.
        """
        visible = project_visible(C, self.normals, possible)
        p, fit_intercept = self.n_features, self.fit_intercept

        def fit(some: Self, i: slice | np.ndarray, j: Any, n_fits: int) -> np.ndarray:
            costs = C[i][:, j], visible[i][:, j]
            coef, intercept = ridge_regression(some.Z[:, :p], *costs, some.weight, fit_intercept, n_fits)
            return np.column_stack([coef, intercept]) if fit_intercept else coef

        return self._by_rows(possible, fit)

    def hidden_basis(self, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """L and R, with orthonormal rows and columns: L Theta R is the hidden component of the free columns."""
        return self.normals, np.eye(self.n_coef)[:, free]

    def visible(self, Theta: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Theta without its hidden component (of the free columns, or of all)."""
        visible = project_visible(Theta.T, self.normals).T
        return visible if free is None else np.where(free, visible, Theta)

    def split(self, Theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Theta as solvers get it, and the rest, which is added to their result.

        Nothing depends on the hidden component, and if it is large, small differences are lost.
        """
        visible = self.visible(Theta)
        return visible, Theta - visible

    def canonical(self, Theta: np.ndarray, free: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Theta with its hidden component in the free columns set to that of the reference, which has none."""
        return self.visible(Theta, free)

    def to_user(self, Theta: np.ndarray) -> tuple[np.ndarray, Intercept]:
        """Coefficients (d, p) and intercept (d,) for features as given."""
        p = self.n_features
        coef = np.where(self.used, Theta[:, :p] / self.scale, 0.0)
        intercept = Theta[:, p] - coef @ self.mean if self.fit_intercept else np.zeros(Theta.shape[0])
        return coef, intercept

    def from_user(self, coef: np.ndarray, intercept: Intercept, unit: float = 1.0) -> np.ndarray:
        """Theta of coefficients for features in this unit; constant columns are moved into the intercept or dropped."""
        Theta = coef * np.where(self.used, self.scale / unit, 0.0)
        if self.fit_intercept:
            Theta = np.concatenate([Theta, (intercept + coef @ (self.mean / unit))[:, None]], axis=1)
        return Theta

    def _regression(
        self, features: np.ndarray, C: np.ndarray, weight: np.ndarray, quick: bool = False, n_fits: int = 1
    ) -> tuple[np.ndarray, Intercept, float]:
        """Coefficients and intercept of least squares for features in units of the largest one, and this unit.

        The unit is a power of two, so the division is exact, and squares neither overflow nor vanish.
        """
        unit = power_of_two(max(largest(features), SMALLEST))
        if quick or (time_left() < np.inf and not in_time(REGRESSION, features)):
            return *quick_regression(features / unit, C, weight, self.fit_intercept, n_fits), unit
        ls = LinearRegression(fit_intercept=self.fit_intercept).fit(features / unit, C, sample_weight=weight)
        return ls.coef_, ls.intercept_, unit


class SharedDesign(Design):
    """One coefficient vector for all costs, each with its own features: predictions x_ij.beta + b."""

    shared = True

    @property
    def d(self) -> int:
        """Number of costs."""
        return self.normals.shape[1]

    def _rows(self, X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return X.reshape(X.shape[0] * self.d, X.shape[1] // self.d), np.repeat(weight, self.d) / self.d

    def _set_features(self, Z: np.ndarray) -> None:
        self.Z = Z.reshape(Z.shape[0] // self.d, self.d, Z.shape[1])
        #: cache of ``hidden_basis``
        self._bases: dict[bytes, np.ndarray] = {}
        #: Gram matrix of the features with their hidden component, for least squares
        self.full_gram = self.gram(np.ones(self.Z.shape[0]))
        if self.normals.size:
            visible = self.Z - np.matmul(self.normals.T, np.matmul(self.normals, self.Z))
            # What is left of a hidden column is rounding error.
            left, size = (np.abs(x).max(axis=(0, 1), initial=0.0) for x in (visible, self.Z))
            self.Z = np.where(left > RANK * size, visible, 0.0)
            flat = self.Z.reshape(-1, self.n_coef) * np.sqrt(np.repeat(self.weight, self.d))[:, None]
            #: R of the QR factorization of all features, for ``hidden_basis``
            self.triangle = triangle(flat)

    def predict(self, Theta: Matrix, rows: slice | np.ndarray = slice(None)) -> Matrix:
        """Z_i Theta^T."""
        Z = self.Z[rows]
        return (Z.reshape(-1, self.n_coef) @ Theta.T).reshape((Z.shape[0], self.d), order="C")

    def adjoint(self, G: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return sum_i g_i Z_i, shape (1, q)."""
        return (G.ravel() @ self.Z[rows].reshape(-1, self.n_coef))[None]

    def gram(self, room: np.ndarray) -> np.ndarray:
        """Return sum_i a_i room_i Z_i^T Z_i."""
        flat = self.Z.reshape(-1, self.n_coef)
        return (flat * np.repeat(self.weight * room, self.d)[:, None]).T @ flat

    def curvature(self, M: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """Return sum_i a_i Z_i^T M_i Z_i."""
        Z, q = self.Z[rows], self.n_coef
        return (np.matmul(M, Z) * self.weight[rows, None, None]).reshape(-1, q).T @ Z.reshape(-1, q)

    def sensitivity(self, S: np.ndarray) -> np.ndarray:
        """Features weighted with s_k."""
        return np.matmul(S, self.Z)

    def solve_least_squares(self, C: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """One system of normal equations."""
        flat = self.Z.reshape(-1, self.n_coef)
        gram = (flat * weight.ravel()[:, None]).T @ flat
        gram += 1e-12 * max(float(np.trace(gram)), 1e-100) * np.eye(self.n_coef)
        return np.linalg.solve(gram, (weight * C).ravel() @ flat)[None]

    def _existing(
        self, X: np.ndarray, C: np.ndarray, possible: np.ndarray | None, standardized: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, costs and weights, which sum to one, of all costs that exist."""
        features, weight = self._rows(X, self.weight)
        if standardized:
            features = np.where(self.used, (features - self.mean) / self.scale, 0.0)
        if possible is None:
            return features, C.ravel(), weight
        rows = possible.ravel()
        return features[rows], C[possible], weight[rows] / weight[rows].sum()

    def least_squares(
        self, X: np.ndarray, C: np.ndarray, possible: np.ndarray | None = None, *, standardized: bool
    ) -> np.ndarray:
        """One regression over all samples and costs."""
        coef, intercept, unit = self._regression(*self._existing(X, C, possible, standardized))
        if standardized:
            return np.append(coef / unit, intercept)[None, : self.n_coef]
        return self.from_user(coef, intercept, unit)

    def ridge(self, X: np.ndarray, C: np.ndarray, possible: np.ndarray | None = None) -> np.ndarray:
        """One regression over all samples and costs."""
        features, costs, weight = self._existing(X, C, possible, True)
        target = costs[:, None]
        coef, intercept = ridge_regression(features, target, target, weight, self.fit_intercept)
        return np.column_stack([coef, intercept]) if self.fit_intercept else coef

    def hidden_basis(self, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions in the span of the free columns that change no decision."""
        key = free.tobytes()
        if key not in self._bases:
            basis = np.zeros((self.n_coef, 0))
            if self.normals.size and free.any():
                _, size, directions = np.linalg.svd(self.triangle[:, free])
                size = np.append(size, np.zeros(directions.shape[0] - size.size))
                hidden = size <= RANK * np.sqrt(self.full_gram.diagonal().max())
                basis = np.eye(self.n_coef)[:, free] @ directions[hidden].T
            self._bases[key] = basis
        return np.ones((1, 1)), self._bases[key]

    def visible(self, Theta: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Without the hidden directions."""
        R = self.hidden_basis(np.ones(self.n_coef, dtype=bool) if free is None else free)[1]
        return Theta - (Theta @ R) @ R.T

    def split(self, Theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All of it: hidden directions are not orthogonal to the others, so the penalty depends on them."""
        return Theta, np.zeros_like(Theta)

    def canonical(self, Theta: np.ndarray, free: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Least squares along the hidden directions, given the others.

        The reference solves the normal equations, so its predictions can replace the costs.
        """
        R = self.hidden_basis(free)[1]
        if not R.size:
            return Theta
        Theta = self.visible(Theta, free)
        size, Q = np.linalg.eigh(R.T @ self.full_gram @ R)
        # Directions that change no prediction at all, such as those of unused features, are left as they are.
        seen = size > 1e-12 * self.full_gram.diagonal().max()
        R = R @ Q[:, seen]
        return Theta + ((reference - Theta) @ self.full_gram @ R / size[seen]) @ R.T

    def to_user(self, Theta: np.ndarray) -> tuple[np.ndarray, Intercept]:
        """Coefficients (p,) and intercept."""
        coef, intercept = super().to_user(Theta)
        return coef[0], float(np.ravel(intercept)[0])

    def from_user(self, coef: np.ndarray, intercept: Intercept, unit: float = 1.0) -> np.ndarray:
        """Theta of coefficients (p,) and a number."""
        return super().from_user(coef[None], np.atleast_1d(intercept), unit)
