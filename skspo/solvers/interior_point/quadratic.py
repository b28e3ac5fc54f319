"""Samples with a quadratic constraint u^T S u <= 1, as a second-order cone.

Conventions
-----------
    S = G^T G.  The slack and the multiplier of a sample are vectors t = (1, G u) and r of the cone x_0 >= |x_1|,

        dual feasibility     f = A^T y + s + G^T r_1
        complementarity      t o r = (t.r, t_0 r_1 + r_0 t_1) = (mu, 0)

    Both are linear but for the product, which is linearized at the scaled point of Nesterov and Todd (1997),

        point = W^{-1} t = W r,     W = eta (2 w w^T - J)^{1/2},     w_0^2 - |w_1|^2 = 1,     J = diag(1, -1, ..., -1)

    so that D^{-1} becomes B = D^{-1} + G^T [W^{-2}]_11 G = D^{-1} + eta^{-2} (S + 2 (G^T w_1)(G^T w_1)^T).

    The only equality is sum u = 1.  N is the basis of sum u = 0 without the variable of the largest D, whose row is
    (-1, ..., -1); N^T B N is then B with multiples of (1, ..., 1) added to its rows and columns, and graded like D.
    M = N (N^T B N)^{-1} N^T is formed for the coupled system, and kept as a product for all others.

Steps of t and r are kept scaled, W^{-1} dt and W dr, in the place of the relative steps of upper bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .blocks import Block, FeatureSums, SharedBlock, inverse_lower, outliers

#: smallest pivot of a sample's matrix, relative to its diagonal, down to which a Cholesky factor is accurate enough
SMALL = 1e-10


class _Inverse(NamedTuple):
    """F with M = F^T F of every sample, and the variable that was eliminated.

    Products of M itself with vectors lose digits where the curvature along the slope is large.
    """

    matrix: np.ndarray
    pivot: np.ndarray

    def products(self, rows: slice = slice(None)) -> np.ndarray:
        """M of some samples."""
        F = self.matrix[rows]
        return np.matmul(F.transpose(0, 2, 1), F)


class QuadraticBlock(Block):
    """Some of the samples, with a quadratic constraint, sum u = 1, and no upper bounds."""

    # -- linear algebra of one sample, batched -------------------------------------------------------------------------

    def factor(self, D: np.ndarray, curvature: tuple[np.ndarray, ...] = ()) -> Any:
        """Inverses of B = D^{-1} + weight S + slope slope^T, for the ``curvature`` (weight, slope)."""
        S: Any = self.shared.S
        weight, slope = curvature
        rows, pivot = np.arange(D.shape[0]), D.argmax(axis=1)
        ones = np.ones_like(D)
        edge = 0.5 * (weight * S[pivot, pivot, None] + 1.0 / D[rows, pivot, None]) - weight * S[pivot]
        H = np.matmul(np.stack([edge, ones], axis=2), np.stack([ones, edge], axis=1))
        H += weight[:, :, None] * S
        diagonal = np.einsum("ijj->ij", H)
        diagonal += 1.0 / D
        # The pivot's row and column stay in their place, but empty.
        H[rows, pivot] = 0.0
        H[rows, :, pivot] = 0.0
        diagonal[rows, pivot] = 1.0
        try:
            L = np.linalg.cholesky(H)
            rest = np.flatnonzero((np.square(np.einsum("ijj->ij", L)) < SMALL * diagonal).any(axis=1))
        except np.linalg.LinAlgError:
            L, rest = H, rows
        if rest.size:
            L[rest] = self.orthogonal_factor(D[rest], weight[rest], pivot[rest])
        F = inverse_lower(L)
        F[rows, :, pivot] = 0.0
        F[rows, :, pivot] = -F.sum(axis=2)
        # With the slope, F^T F becomes F^T (I - v v^T / (1 + |v|^2)) F with v = F slope, whose root is simple.  At the
        # boundary of the constraint v is so large that the sum would have lost the rest.
        v = np.matmul(F, (slope - slope[rows, pivot, None])[:, :, None])
        size = np.square(v).sum(axis=1, keepdims=True)
        F -= v * (np.matmul(v.transpose(0, 2, 1), F) / (1.0 + size + np.sqrt(1.0 + size)))
        return _Inverse(F, pivot)

    def orthogonal_factor(self, D: np.ndarray, weight: np.ndarray, pivot: np.ndarray) -> np.ndarray:
        """The same Cholesky factor without forming the matrix, which squares its condition."""
        n, N = D.shape
        rows, G = np.arange(n), self.shared.G
        parts = np.zeros((n, N + G.shape[0] + 1, N))
        np.einsum("ijj->ij", parts[:, :N])[:] = 1.0 / np.sqrt(D)
        parts[rows, pivot] = -1.0 / np.sqrt(D[rows, pivot, None])
        parts[:, N:-1] = np.sqrt(weight)[:, :, None] * (G - G[:, pivot].T[:, :, None])
        parts[rows, :, pivot] = 0.0
        parts[rows, -1, pivot] = 1.0
        R: Any = np.linalg.qr(parts, mode="r")
        return np.asarray(R.transpose(0, 2, 1))

    def apply(self, F: Any, D: np.ndarray, x: np.ndarray) -> np.ndarray:
        """M x of every sample."""
        rows = np.arange(D.shape[0])
        # M (1, ..., 1) = 0; what is left is small where M is large.
        y = np.matmul((x - x[rows, F.pivot, None])[:, None, :], F.matrix.transpose(0, 2, 1))
        du = np.matmul(y, F.matrix)[:, 0]
        du[rows, F.pivot] -= du.sum(axis=1)
        return du

    def restore(self, F: Any, D: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Small step of the largest variable that makes sum u = b again."""
        du = np.zeros_like(u)
        du[np.arange(D.shape[0]), F.pivot] = self.b - u.sum(axis=1)
        return du

    def products(self, D: np.ndarray, F: Any, rows: slice) -> np.ndarray:
        """M_i of some samples, packed, (N (N + 1) / 2, n)."""
        M = F.products(rows)
        return np.take(M.reshape(M.shape[0], -1), self.shared.packed, axis=1).T

    # -- the constraint: slacks t, multipliers r -----------------------------------------------------------------------

    @property
    def degree(self) -> int:
        """Number of complementarity products of a sample."""
        return int(self.u.shape[1]) + 1

    def room(self, u: np.ndarray) -> np.ndarray:
        """Slacks t = (1, G u)."""
        return np.concatenate([np.ones((u.shape[0], 1)), u @ self.shared.G.T], axis=1)

    def lifted(self, du: np.ndarray) -> np.ndarray:
        """Steps of t."""
        return np.concatenate([np.zeros((du.shape[0], 1)), du @ self.shared.G.T], axis=1)

    def add_barrier(self, u: np.ndarray, mu: float, g: np.ndarray, inverse: np.ndarray) -> tuple[np.ndarray, ...]:
        """Add the gradient of -mu/2 log(1 - u^T S u) in place; return its curvature."""
        size = determinant(self.room(u))[:, None]
        slope = u @ self.shared.S / size
        g += mu * slope
        return mu / size, np.sqrt(2.0 * mu) * slope

    def loss_of_room(self, u: np.ndarray, du: np.ndarray) -> np.ndarray:
        """Relative decrease of the slack of each sample along a step."""
        return decrease(self.room(u), self.lifted(du))

    def multipliers(self, u: np.ndarray, du: np.ndarray, mu: float) -> np.ndarray:
        """Multipliers at u + du, to first order, where t o r = (mu, 0) at u."""
        t, dt = self.room(u), self.lifted(du)
        size = determinant(t)[:, None]
        r = mirrored(t) * (mu / size)
        first = r + (mirrored(dt) - 2.0 * mirrored(t) * product(mirrored(t), dt)[:, None] / size) * (mu / size)
        inside = (first[:, 0] > 0) & (determinant(first) > 1e-3 * determinant(r))
        return np.where(inside[:, None], first, r)

    def scale_upper(self) -> tuple[np.ndarray, ...]:
        """Scaled point, and the curvature that the constraint adds."""
        size_t, size_r = (np.sqrt(determinant(x))[:, None] for x in (self.t, self.r))
        w = self.t / size_t
        v = self.r / size_r
        half = np.sqrt(0.5 + 0.5 * product(w, v))[:, None]
        self.w = (w + mirrored(v)) / (2.0 * half)
        self.eta = np.sqrt(size_t / size_r)
        self.point = self.scaled(self.r)
        self.residual -= self.r[:, 1:] @ self.shared.G
        return self.eta**-2.0, np.sqrt(2.0) / self.eta * (self.w[:, 1:] @ self.shared.G)

    def scaled(self, x: np.ndarray, inverse: bool = False) -> np.ndarray:
        """W x, or W^{-1} x."""
        w = mirrored(self.w) if inverse else self.w
        out = np.empty_like(x)
        along = np.einsum("ij,ij->i", w[:, 1:], x[:, 1:])
        out[:, 0] = w[:, 0] * x[:, 0] + along
        out[:, 1:] = x[:, 1:] + (x[:, 0] + along / (1.0 + w[:, 0]))[:, None] * w[:, 1:]
        out *= 1.0 / self.eta if inverse else self.eta
        return out

    def divided(self, x: np.ndarray) -> np.ndarray:
        """Solution y of point o y = x."""
        point = self.point
        y = np.empty_like(x)
        y[:, 0] = product(mirrored(point), x) / determinant(point)
        y[:, 1:] = (x[:, 1:] - y[:, :1] * point[:, 1:]) / point[:, :1]
        return y

    def predictor(self) -> tuple[Any, Any]:
        """Targets of a step to complementarity zero."""
        return -1.0, -self.point

    def aim(self, rc: Any, rt: Any, feasibility: bool) -> np.ndarray:
        """First half of a direction for targets rc (of u s, relative) and rt (of the sum of the scaled steps)."""
        x = self.s * rc + self.scaled(rt, inverse=True)[:, 1:] @ self.shared.G
        return self.aim_at(x, (rc, rt), feasibility)

    def upper_step(self, du: np.ndarray) -> np.ndarray:
        """Scaled step of t."""
        return self.scaled(self.lifted(du), inverse=True)

    def decrease(self, du: np.ndarray, dt: np.ndarray) -> float:
        """Largest relative decrease of u and t."""
        return max(-float(du.min()), float(decrease(self.point, dt).max()))

    def dual_decrease(self, ds: np.ndarray, dr: np.ndarray) -> float:
        """Largest relative decrease of s and r."""
        return max(-float(ds.min()), float(decrease(self.point, dr).max()))

    def second_order(self, move: tuple[np.ndarray, ...], goal: float) -> tuple[Any, Any]:
        """Targets of Mehrotra's corrector."""
        du, ds, dt, dr = move
        target = -jordan(dt, dr)
        target[:, 0] += goal
        return goal / self.us - du * ds, self.divided(target)

    def centrality(self, move: tuple[np.ndarray, ...], ap: float, ad: float, goal: float) -> tuple[Any, Any]:
        """Targets of Gondzio's corrector, for the two eigenvalues of the product."""
        du, ds, dt, dr = move
        rc = outliers(self.us * (1.0 + ap * du) * (1.0 + ad * ds), goal) / self.us
        target = jordan(self.point + ap * dt, self.point + ad * dr)
        length = np.linalg.norm(target[:, 1:], axis=1)
        high, low = outliers(target[:, 0] + length, goal), outliers(target[:, 0] - length, goal)
        target[:, 1:] *= (0.5 * (high - low) / np.maximum(length, 1e-300))[:, None]
        target[:, 0] = 0.5 * (high + low)
        return rc, self.divided(target)

    def upper_after(self, dt: np.ndarray, dr: np.ndarray, ap: float, ad: float) -> np.ndarray:
        """t.r of every sample after a step."""
        return product(self.point + ap * dt, self.point + ad * dr)

    def advance_upper(self, dt: np.ndarray, dr: np.ndarray, ap: float, ad: float) -> None:
        """Take a step of t and r."""
        self.t = self.room(self.u)
        self.r = self.r + ad * self.scaled(dr, inverse=True)


class SharedQuadraticBlock(QuadraticBlock, SharedBlock):
    """The same for one shared model."""

    def add_to(self, sums: FeatureSums) -> None:
        """Add sum_i a_i Y_i^T M_i Y_i."""
        q = self.Y.shape[2]
        K = (self.Y * self.a[:, None, None]).reshape(-1, q).T @ np.matmul(self.F.products(), self.Y).reshape(-1, q)
        sums.sums += K[np.tril_indices(q)][:, None]


# -- vectors of the second-order cone, one in each row -----------------------------------------------------------------


def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x.y of every row."""
    return np.einsum("ij,ij->i", x, y)


def mirrored(x: np.ndarray) -> np.ndarray:
    """J x: all but the first entry change their sign."""
    y = -x
    y[:, 0] = x[:, 0]
    return y


def determinant(x: np.ndarray) -> np.ndarray:
    """x_0^2 - |x_1|^2, as a product that keeps its digits near the boundary."""
    length = np.linalg.norm(x[:, 1:], axis=1)
    return (x[:, 0] - length) * (x[:, 0] + length)


def jordan(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Product x o y = (x.y, x_0 y_1 + y_0 x_1) of every row."""
    out = x[:, :1] * y + y[:, :1] * x
    out[:, 0] = product(x, y)
    return out


def decrease(x: np.ndarray, dx: np.ndarray) -> np.ndarray:
    """One over the longest step from x along dx inside the cone, of every row; at most zero if there is no longest."""
    size = np.sqrt(determinant(x))[:, None]
    x = x / size
    first = product(mirrored(x), dx)[:, None]
    rest = dx[:, 1:] - (first + dx[:, :1]) / (1.0 + x[:, :1]) * x[:, 1:]
    return (np.linalg.norm(rest, axis=1) - first[:, 0]) / size[:, 0]
