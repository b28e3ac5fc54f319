"""Samples of the interior-point method, block by block: their part of each iteration, and the matrix of all.

Conventions are those of ``solver.py``.  The matrix of the coupled Newton system is

    H = sum_i a_i K_i (x) z_i z_i^T,     K_i = EZ^T M_i EZ of shape (k, k),     z_i of length q

K_i and z_i z_i^T are symmetric, so that half of each is enough, a quarter of the multiplications:

    packed index     (0, 0), (1, 0), (1, 1), (2, 0), ...     the lower triangle, row by row
    K                (k (k + 1) / 2, n)                      packed products of samples, one sample per column
    sums             (q (q + 1) / 2, k (k + 1) / 2)          sum_i a_i z_ij z_il K_i, by products of large matrices

Coefficients are ordered feature by feature, (q, k): rows of ``sums`` are then blocks of H.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from ..._utils.limits import BLOCK_NUMBERS, check_time

if TYPE_CHECKING:
    from .state import Polytope

#: entries of a scaling beyond which differences lose too many digits
LARGE = 1e6

#: samples of a panel of products of features
PANEL_SAMPLES = 1024


class Block:
    """Some of the samples: their iterates, and everything in an iteration that concerns one sample at a time.

    Directions are kept relative to the iterate, (du/u, ds/s, dt/t, dr/r), so that the longest step is one over the
    largest relative decrease.
    """

    #: entries of the samples' matrices that are formed at a time
    cached_products = 2**16

    def __init__(self, shared: Polytope, some: slice) -> None:
        form = shared.form
        self.shared = shared
        #: samples of the block
        self.rows: slice | np.ndarray = some if form.rows is None else form.rows[some]
        self.a = shared.a[self.rows]
        self.set_features(shared.Z[self.rows])
        self.EC = -(shared.objective.C[self.rows] @ form.E)
        # Bounds, right-hand sides, starts and offsets: one for each sample if the region varies, else one for all.
        own = slice(None) if form.rows is None else some
        self.h, self.b, self.inside, self.offset = form.h[own], shared.b[own], form.center[own], form.offset[own]
        #: rows of the block that methods of upper bounds get; all but in ``center``
        self.some: slice | np.ndarray = slice(None)
        self.u = self.s = self.t = self.r = np.zeros((0, 0))

    def set_features(self, Z: np.ndarray) -> None:
        """Keep the features; weighted ones as well where they take no more room than the decisions."""
        self.Z = Z
        self.aZ = Z * self.a[:, None] if Z.shape[1] <= self.shared.A.shape[1] else None

    def costs(self, P: np.ndarray) -> np.ndarray:
        """Costs f of u."""
        return self.EC + self.slopes(P)

    def slopes(self, P: np.ndarray) -> np.ndarray:
        """How the costs of u change with the coefficients."""
        return self.Z @ (self.shared.EZ @ P).T

    # -- linear algebra of one sample, batched -------------------------------------------------------------------------

    def factor(self, D: np.ndarray, curvature: tuple[np.ndarray, ...] = ()) -> np.ndarray:
        """What ``apply`` needs of every sample: 1 / (A D A^T) for one equality, else R^{-1}.

        R is the triangular factor of D^{-1/2} null, so that M = null R^{-1} R^{-T} null^T.
        """
        shared = self.shared
        if shared.simple:
            return 1.0 / (D @ shared.AA) if shared.A.size else np.zeros((D.shape[0], 1))
        R: Any = np.linalg.qr(shared.null / np.sqrt(D)[:, :, None], mode="r")
        return inverse_lower(R.transpose(0, 2, 1)).transpose(0, 2, 1)

    # -- upper bounds: slacks t, multipliers r -------------------------------------------------------------------------

    @property
    def degree(self) -> int:
        """Number of complementarity products of a sample."""
        return int(self.u.shape[1] + self.shared.U.size)

    def room(self, u: np.ndarray) -> np.ndarray:
        """Slacks t of decisions u."""
        h = self.h if self.h.ndim == 1 else self.h[self.some]
        return h - u[:, self.shared.U]

    def add_barrier(self, u: np.ndarray, mu: float, g: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, ...]:
        """Add gradient and curvature of the upper constraints' barrier in place; return curvature off the diagonal."""
        t, U = self.room(u), self.shared.U
        g[:, U] += mu / t
        inverse[:, U] += mu / (t * t)
        return ()

    def loss_of_room(self, u: np.ndarray, du: np.ndarray) -> np.ndarray:
        """Largest relative decrease of the slacks of each sample along a step."""
        return (du[:, self.shared.U] / self.room(u)).max(axis=1, initial=0.0)

    def multipliers(self, u: np.ndarray, du: np.ndarray, mu: float) -> np.ndarray:
        """Multipliers of the upper constraints at u + du, to first order, where their products are mu at u."""
        t = self.room(u)
        return mu / t * np.maximum(1.0 + du[:, self.shared.U] / t, 1e-3)

    def spread(self, y: np.ndarray) -> np.ndarray:
        """Gradients of the upper constraints, times y."""
        x = np.zeros_like(self.u)
        x[:, self.shared.U] = y
        return x

    def decrease(self, du: np.ndarray, dt: np.ndarray) -> float:
        """Largest relative decrease of u and t along relative steps."""
        return max(-float(du.min()), -float(dt.min(initial=0.0)))

    def dual_decrease(self, ds: np.ndarray, dr: np.ndarray) -> float:
        """Largest relative decrease of s and r along relative steps."""
        return max(-float(ds.min()), -float(dr.min(initial=0.0)))

    def apply(self, F: np.ndarray, D: np.ndarray, x: np.ndarray) -> np.ndarray:
        """M x of every sample."""
        shared = self.shared
        if shared.simple:
            if not shared.A.size:
                return D * x
            # einsum, here and below: with so few columns broadcasting and thin products take three times as long.
            mean = F[:, 0] * np.einsum("ij,ij,j->i", D, x, shared.A[0])
            return D * (x - np.einsum("i,j->ij", mean, shared.A[0]))
        y = (x @ shared.null)[:, None, :]
        y = np.matmul(np.matmul(y, F), F.transpose(0, 2, 1))
        return y[:, 0] @ shared.null.T

    def restore(self, F: np.ndarray, D: np.ndarray, u: np.ndarray) -> np.ndarray | float:
        """Small step that makes A u = b again: rounding errors must not add up."""
        shared = self.shared
        if not shared.A.size:
            return 0.0
        residual = self.b - u @ shared.A.T
        # Steps in null(A) drift by rounding only; with a single equality the drift is larger and must not fall on
        # variables that are nearly zero.
        return D * (F * residual * shared.A) if shared.simple else residual @ shared.A_pinv.T

    def products(self, D: np.ndarray, F: Any, rows: slice) -> np.ndarray:
        """EZ^T M_i EZ of some samples, packed, (k (k + 1) / 2, n)."""
        shared, k = self.shared, self.shared.k
        D, F = D[rows], F[rows]
        if shared.simple and not shared.A.size:
            return shared.ZZ.T @ D.T
        if shared.simple and float(D.max()) <= LARGE:
            # Diagonal, less an outer product.
            K = shared.ZZ.T @ D.T
            across = shared.AZ.T @ D.T
            K -= packed_squares(across, across * F[:, 0])
            return K
        if shared.simple:
            # The same as a covariance that is centered first: the difference would lose what is left of a sample near a
            # vertex, where one entry of D is large.
            Y = shared.EZ - shared.A.T * (F * (D @ shared.AZ))[:, None, :]
            Y *= np.sqrt(D)[:, :, None]
            K = np.matmul(Y.transpose(0, 2, 1), Y)
        else:
            Y = np.matmul(shared.NZ.T, F)
            K = np.matmul(Y, Y.transpose(0, 2, 1))
        return np.take(K.reshape(-1, k * k), shared.packed, axis=1).T

    def add_to(self, sums: FeatureSums) -> None:
        """Add sum_i a_i (EZ^T M_i EZ) (x) z_i z_i^T."""
        D, F = self.D, self.F
        pairs, width = sums.sums.shape
        # Few samples at a time keep their products in the cache, but not so few that adding to the sums takes longer.
        size = max(self.cached_products // width, min(pairs, PANEL_SAMPLES))
        for start in range(0, D.shape[0], size):
            rows = slice(start, start + size)
            sums.add(self.products(D, F, rows), self.Z[rows], self.a[rows])

    # -- start ---------------------------------------------------------------------------------------------------------

    def decisions(self, u: np.ndarray) -> np.ndarray:
        """Decisions w of the samples."""
        return self.offset + u @ self.shared.form.E.T

    def center(self, mu: float, P: np.ndarray) -> None:
        """Newton's method for min f.u - mu sum log u - mu sum log t: the start is then centered and dual feasible."""
        f = self.costs(P)
        u = np.array(np.broadcast_to(self.inside, f.shape), order="C")  # the default keeps the order of the strides
        todo = np.arange(f.shape[0])
        s, r = np.empty_like(u), np.empty_like(self.room(u))
        for last in [False] * 25 + [True]:
            check_time()
            self.some, uu = todo, u[todo]
            g, inverse = f[todo] - mu / uu, mu / (uu * uu)
            curvature = self.add_barrier(uu, mu, g, inverse)
            D = 1.0 / inverse
            du = -self.apply(self.factor(D, curvature), D, g)
            ratio = np.maximum((-du / uu).max(axis=1), self.loss_of_room(uu, du))
            decrement = np.sqrt(np.maximum(-(du * g).sum(axis=1), 0.0) / mu)
            done = (decrement < 0.3) & (ratio < 0.9) if not last else np.ones(todo.size, dtype=bool)
            if done.any():
                # First-order dual slacks: exactly dual feasible.
                i = todo[done]
                s[i] = mu / uu[done] * np.maximum(1.0 - du[done] / uu[done], 1e-3)
                self.some = i
                r[i] = self.multipliers(uu[done], du[done], mu)
            step = np.where(ratio > 0.9, 0.9 / np.maximum(ratio, 1e-300), 1.0)
            u[todo] = np.where(done[:, None], uu, uu + step[:, None] * du)
            todo = todo[~done]
            if todo.size == 0:
                break
        self.some = slice(None)
        self.u, self.s, self.r = u, s, r
        self.t = self.room(u)

    # -- one iteration -------------------------------------------------------------------------------------------------

    def complementarity(self) -> float:
        """Weighted sum of u s and t r."""
        total = np.einsum("ij,ij->i", self.u, self.s)
        if self.t.shape[1]:
            total += np.einsum("ij,ij->i", self.t, self.r)
        return float(self.a @ total)

    def moments(self, u: np.ndarray) -> np.ndarray:
        """Weighted sum of u z^T, in reduced directions."""
        return self.shared.EZ.T @ (u.T @ self.aZ if self.aZ is not None else (u.T * self.a) @ self.Z)

    def prepare(self, P: np.ndarray) -> None:
        """Scaling and factors at the iterate."""
        self.us = self.u * self.s
        self.residual = self.costs(P) - self.s
        self.D = self.s / self.u
        curvature = self.scale_upper()
        np.divide(1.0, self.D, out=self.D)
        self.F: Any = self.factor(self.D, curvature)
        if self.shared.simple and self.shared.A.size:
            # The component along A is in the kernel of M; without it there is nothing to cancel.
            A = self.shared.A
            self.residual -= (self.residual @ (A.T / np.sum(A * A))) @ A

    def scale_upper(self) -> tuple[np.ndarray, ...]:
        """Part of the upper constraints in ``prepare``, where D is still inverse; return curvature off the diagonal."""
        self.tr = self.t * self.r
        if self.t.shape[1]:
            self.D[:, self.shared.U] += self.r / self.t
            self.residual += self.spread(self.r)
        return ()

    def predictor(self) -> tuple[Any, Any]:
        """Targets of a step to complementarity zero."""
        return -1.0, -1.0

    def aim(self, rc: Any, rt: Any, feasibility: bool) -> np.ndarray:
        """First half of a direction for relative complementarity targets rc (of u s) and rt (of t r)."""
        x = self.s * rc
        if self.t.shape[1]:
            x -= self.spread(self.r * rt)
        return self.aim_at(x, (rc, rt), feasibility)

    def aim_at(self, x: np.ndarray, targets: tuple[Any, Any], feasibility: bool) -> np.ndarray:
        """Second part of ``aim``, for the right-hand side of the targets."""
        if feasibility:
            x -= self.residual
        self.base = self.apply(self.F, self.D, x)
        if feasibility:
            self.base += self.restore(self.F, self.D, self.u)
        self.targets = targets
        return self.moments(self.base)

    def complete(self, dP: np.ndarray) -> tuple[np.ndarray, ...]:
        """Second half, once the step of the coefficients is known."""
        rc, rt = self.targets
        du = self.base - self.apply(self.F, self.D, self.slopes(dP))
        dt = self.upper_step(du)
        du /= self.u
        return du, rc - du, dt, rt - dt

    def upper_step(self, du: np.ndarray) -> np.ndarray:
        """Relative step of t."""
        return -du[:, self.shared.U] / self.t

    def second_order(self, move: tuple[np.ndarray, ...], goal: float) -> tuple[Any, Any]:
        """Targets of Mehrotra's corrector."""
        du, ds, dt, dr = move
        return goal / self.us - du * ds, goal / self.tr - dt * dr

    def centrality(self, move: tuple[np.ndarray, ...], ap: float, ad: float, goal: float) -> tuple[Any, Any]:
        """Targets of Gondzio's corrector: pull outlying products back into [0.1, 10] goal at a longer step."""
        du, ds, dt, dr = move
        rc = outliers(self.us * (1.0 + ap * du) * (1.0 + ad * ds), goal) / self.us
        if not self.t.shape[1]:
            return rc, np.zeros_like(self.tr)
        return rc, outliers(self.tr * (1.0 + ap * dt) * (1.0 + ad * dr), goal) / self.tr

    def after(self, move: tuple[np.ndarray, ...], ap: float, ad: float) -> float:
        """Complementarity after a step."""
        du, ds, dt, dr = move
        total = (self.us * (1.0 + ap * du) * (1.0 + ad * ds)).sum(axis=1)
        if self.t.shape[1]:
            total += self.upper_after(dt, dr, ap, ad)
        return float(self.a @ total)

    def upper_after(self, dt: np.ndarray, dr: np.ndarray, ap: float, ad: float) -> np.ndarray:
        """Sum of t r of every sample after a step."""
        return (self.tr * (1.0 + ap * dt) * (1.0 + ad * dr)).sum(axis=1)

    def advance(self, move: tuple[np.ndarray, ...], ap: float, ad: float) -> None:
        """Take a step, of lengths ``ap`` for u and t and ``ad`` for s and r."""
        du, ds, dt, dr = move
        self.u = self.u * (1.0 + ap * du)
        self.s = self.s * (1.0 + ad * ds)
        self.advance_upper(dt, dr, ap, ad)

    def advance_upper(self, dt: np.ndarray, dr: np.ndarray, ap: float, ad: float) -> None:
        """The same for t and r."""
        self.t = self.t * (1.0 + ap * dt)  # not h - u, which would lose its last digits near the bound
        self.r = self.r * (1.0 + ad * dr)


class PlanarBlock(Block):
    """The same for flows in a planar graph, whose matrices are banded in a basis of faces."""

    #: more, since there are many operations for each of its blocks
    cached_products = 2**20

    def factor(self, D: np.ndarray, curvature: tuple[np.ndarray, ...] = ()) -> Any:
        """Factor of N^T D^{-1} N with the faces N."""
        return self.shared.dual.factor(D)

    def apply(self, F: Any, D: np.ndarray, x: np.ndarray) -> np.ndarray:
        """M x of every sample."""
        return self.shared.dual.apply(F, x)

    def products(self, D: np.ndarray, F: Any, rows: slice) -> np.ndarray:
        """(N^T D_i^{-1} N)^{-1} of some samples, as ``DualGraph`` arranges their entries."""
        return self.shared.dual.inverse(F, rows)


class SharedBlock(Block):
    """The same for one shared model: T is a row, and E^T Z_i takes the place of E^T Z T z_i."""

    def set_features(self, Z: np.ndarray) -> None:
        """Keep E^T Z_i, which takes the place of the features."""
        self.Y = np.matmul(self.shared.form.E.T, Z)  # (n, N, q)
        self.NY = self.Y if self.shared.simple else np.matmul(self.shared.null.T, self.Y)

    def slopes(self, P: np.ndarray) -> np.ndarray:
        """Return the part of the costs that the model predicts."""
        return self.Y @ P[0]

    def moments(self, u: np.ndarray) -> np.ndarray:
        """Weighted sum of (E^T Z_i)^T u."""
        return (u * self.a[:, None]).ravel()[None] @ self.Y.reshape(u.size, -1)

    def add_to(self, sums: FeatureSums) -> None:
        """Add sum_i a_i Y_i^T M_i Y_i."""
        shared, D, F = self.shared, self.D, self.F
        if shared.simple:
            B = self.Y
            if shared.A.size:
                B = B - shared.A.T * (F * np.matmul((D * shared.A)[:, None, :], B)[:, 0])[:, None, :]
            B = B * np.sqrt(D * self.a[:, None])[:, :, None]
        else:
            B = np.matmul(F.transpose(0, 2, 1), self.NY) * np.sqrt(self.a)[:, None, None]
        B = B.reshape(-1, shared.q)
        sums.sums += (B.T @ B)[np.tril_indices(shared.q)][:, None]


class LassoBlock(Block):
    """The l1 penalty: Theta - prior = s - r, and subgradients g with u = l1 - g and t = l1 + g.

    ``prior`` is twice that of the objective, as the coefficients P.
    """

    def __init__(self, l1: np.ndarray, prior: np.ndarray) -> None:
        self.where = np.broadcast_to(l1 > 0, prior.shape)
        self.l1, self.prior = np.broadcast_to(l1, prior.shape)[None, self.where], prior
        self.a = np.ones(1)

    def placed(self, x: np.ndarray) -> np.ndarray:
        """Matrix with these entries, and zero where there is no penalty."""
        X = np.zeros(self.where.shape)
        X[self.where] = x[0]
        return X

    def center(self, mu: float, P: np.ndarray) -> None:
        """Start with g = 0, in the middle, and the smaller of s and r centered."""
        delta, room = 0.5 * (P - self.prior)[None, self.where], mu / self.l1
        self.u, self.t = self.l1.copy(), self.l1.copy()
        self.s, self.r = np.maximum(delta, 0) + room, np.maximum(-delta, 0) + room

    def moments(self, u: np.ndarray) -> np.ndarray:
        """Minus half of g."""
        return self.placed(0.25 * (u - self.t))

    def prepare(self, P: np.ndarray) -> None:
        """Scaling at the iterate."""
        self.us, self.tr = self.u * self.s, self.t * self.r
        self.E = self.s / self.u + self.r / self.t
        self.residual = self.s - self.r - 0.5 * (P - self.prior)[None, self.where]

    def curvature(self) -> np.ndarray:
        """What the penalty adds to the diagonal of the coupled matrix."""
        return self.placed(0.25 / self.E)

    def aim(self, rc: Any, rt: Any, feasibility: bool) -> np.ndarray:
        """First half of a direction for relative complementarity targets rc (of u s) and rt (of t r)."""
        self.targets, self.base = (rc, rt), self.s * rc - self.r * rt
        if feasibility:
            self.base += self.residual
        return self.placed(0.5 * self.base / self.E)

    def complete(self, dP: np.ndarray) -> tuple[np.ndarray, ...]:
        """Second half, once the step of the coefficients is known: g moves with them."""
        rc, rt = self.targets
        dg = (0.5 * dP[None, self.where] - self.base) / self.E
        du, dt = -dg / self.u, dg / self.t
        return du, rc - du, dt, rt - dt


def outliers(product: np.ndarray, goal: float) -> np.ndarray:
    """Return what brings products below 0.1 goal up and above 10 goal down, the latter by no more than 10 goal."""
    low, high = 0.1 * goal, 10.0 * goal
    return np.maximum(np.clip(product, low, high) - product, -high)


def inverse_lower(L: np.ndarray) -> np.ndarray:
    """Inverses of lower triangular matrices, all at once, row by row."""
    k = L.shape[1]
    X = np.zeros_like(L)
    for j in range(k):
        scale = 1.0 / L[:, j, j]
        if j:
            X[:, j, :j] = -scale[:, None] * np.matmul(L[:, j, None, :j], X[:, :j, :j])[:, 0]
        X[:, j, j] = scale
    return X


# -- the matrix of the coupled system ----------------------------------------------------------------------------------


def packed_indices(size: int) -> np.ndarray:
    """Index into the packed lower triangle for each entry of a square symmetric matrix."""
    row, column = np.indices((size, size))
    high, low = np.maximum(row, column), np.minimum(row, column)
    return high * (high + 1) // 2 + low


def packed_squares(Y: np.ndarray, aY: np.ndarray, first: int = 0, last: int | None = None) -> np.ndarray:
    """Packed product of each column of ``Y`` with that of ``aY``, which is a multiple of it.

    Only rows ``first`` to ``last`` of the triangle, if they are given.
    """
    last = Y.shape[0] if last is None else last
    base = first * (first + 1) // 2
    out = np.empty((last * (last + 1) // 2 - base, Y.shape[1]))
    for j in range(first, last):
        low = j * (j + 1) // 2 - base
        np.multiply(Y[: j + 1], aY[j], out=out[low : low + j + 1])
    return out


class FeatureSums:
    """sum_i a_i z_ij z_il K_i for all pairs of q features j >= l, where K_i has ``width`` entries."""

    def __init__(self, q: int, width: int) -> None:
        self.q = q
        self.sums = np.zeros((q * (q + 1) // 2, width))

    def add(self, K: np.ndarray, Z: np.ndarray, a: np.ndarray) -> None:
        """Add samples with products ``K`` (width, n), features ``Z`` (n, q) and weights ``a`` (n,)."""
        for start in range(0, a.size, PANEL_SAMPLES):
            rows = slice(start, min(start + PANEL_SAMPLES, a.size))
            ZT = np.ascontiguousarray(Z[rows].T)
            aZT, part = ZT * a[rows], K[:, rows].T
            for first, last in self.groups(ZT.shape[1]):
                self.sums[first * (first + 1) // 2 : last * (last + 1) // 2] += (
                    packed_squares(ZT, aZT, first, last) @ part
                )

    def groups(self, n: int) -> list[tuple[int, int]]:
        """Ranges of features whose products with all earlier ones fit in a panel of ``n`` samples."""
        groups, first, size = [], 0, 0
        for j in range(self.q):
            if size and (size + j + 1) * n > BLOCK_NUMBERS:
                groups.append((first, j))
                first, size = j, 0
            size += j + 1
        return [*groups, (first, self.q)]


class NormalMatrix:
    """A positive definite matrix and its factor, in one array, for q features with k reduced coefficients each.

    The matrix is kept above the diagonal, its Cholesky factor below and on it: a second array of this size would be the
    largest of a fit.
    """

    def __init__(self, q: int, k: int) -> None:
        self.q, self.k = q, k
        self.H = np.empty((q * k, q * k))
        self.on_diagonal = self.H.reshape(-1)[:: q * k + 1]

    def fill(self, sums: np.ndarray, square: np.ndarray, basis: np.ndarray | None = None) -> None:
        """Set the matrix to sums over samples, (q (q + 1) / 2, width).

        ``square`` (l, l) are the columns of ``sums`` that make a symmetric matrix, and ``basis`` (l, k) leads from
        their coordinates to reduced coefficients; None if they are the same.
        """
        H = self.H.reshape(self.q, self.k, self.q, self.k)
        for j in range(self.q):
            blocks = np.take(sums[j * (j + 1) // 2 : (j + 1) * (j + 2) // 2], square, axis=1)
            if basis is not None:
                blocks = np.matmul(np.matmul(basis.T, blocks), basis)
            H[: j + 1, :, j] = blocks
            H[j, :, : j + 1] = blocks.transpose(1, 0, 2)

    def factor(self, curvature: np.ndarray | float = 0.0) -> bool:
        """Add a penalty's curvature (k, q) to the diagonal, and factor, regularized as needed; False if that fails."""
        H = self.H
        size = H.shape[0]
        self.diagonal = self.on_diagonal + np.broadcast_to(curvature, (self.k, self.q)).T.ravel()
        scale = max(float(self.diagonal.sum()) / size, 1e-300)
        for exponent in range(-14, 0, 2):
            self.on_diagonal[:] = self.diagonal + scale * 10.0**exponent
            # LAPACK reads columns, so that its upper triangle is the lower one here; the other one is not touched.
            if scipy.linalg.lapack.dpotrf(H.T, lower=0, clean=0, overwrite_a=1)[1] == 0:
                return True
            for i in range(1, size):
                H[i, :i] = H[:i, i]
        return False

    def solve(self, x: np.ndarray) -> np.ndarray:
        """Solution of the regularized system for (k, q) numbers, without the checks of scipy.linalg.cho_solve."""
        y, _ = scipy.linalg.lapack.dpotrs(self.H.T, x.T.ravel(), lower=0)
        return y.reshape(self.q, self.k).T

    def product(self, x: np.ndarray) -> np.ndarray:
        """Product of the matrix, not regularized, with (k, q) numbers."""
        factor = self.on_diagonal.copy()
        self.on_diagonal[:] = self.diagonal
        y = scipy.linalg.blas.dsymv(1.0, self.H.T, x.T.ravel(), lower=1)
        self.on_diagonal[:] = factor
        return y.reshape(self.q, self.k).T
