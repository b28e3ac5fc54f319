"""Cheapest portfolios with a limit on the risk, for all rows of costs at once.

Conventions
-----------
    min c.w   s.t.  w >= 0,  sum w = 1 (or <= 1),  w^T Q w <= 1                    Q in units of the largest risk

    optimal iff   c + lam Q w = nu 1 + s,   s >= 0,  s.w = 0,  lam >= 0,  lam (1 - w^T Q w) = 0
                  nu <= 0 and nu (1 - sum w) = 0 if the sum may be below one

If it is known which assets are held and whether all is spent, w is known.  On the held assets let

    ( Q_HH  1 ) ( c~ )   ( c )        ( Q_HH  1 ) ( safest )   ( 0 )
    ( 1^T   0 ) ( m  ) = ( 0 ),       ( 1^T   0 ) (  -risk ) = ( 1 )        without the border if not all is spent

    w = safest - rho c~ / |c~|,   rho^2 = 1 - risk,   |c~|^2 = c.c~,   lam = |c~| / rho,   nu = m + lam risk

Assets with w < 0 then leave, those with s < 0 enter, all at a time; if that does not lead on, one at a time (block
principal pivoting, as for linear complementarity problems).  Where Q is nearly singular that may go on for long.  Rows
that are left are solved with Q + theta I, theta from the mean of Q's diagonal down to nothing, each from the last.

The proof does not depend on how w was found: for every lam >= 0 and g = lam Q w,

    c.x = (c + g).x - g.x >= min_j (c + g)_j - lam |G w|,   Q = G^T G,   for all x in the region

and if the sum may be below one, the same with min(min_j (c + g)_j, 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..._utils.limits import BLOCK_ELEMENTS, check_time
from .._tolerances import ROUNDING

#: iterations of pivoting; rows that are left take the detour below
ITERATIONS = 30

#: iterations without progress after which assets change one at a time
PATIENCE = 5

#: shares of the mean risk that are added to nearly singular matrices on the way to none, each a tenth of the last
DETOUR = 10.0 ** -np.arange(12)


class Face(NamedTuple):
    """Which assets are held in each row, and whether all money is spent."""

    held: np.ndarray  # (n, d) bool
    spent: np.ndarray  # (n,) bool

    def take(self, rows: np.ndarray) -> Face:
        """Faces of some rows."""
        return Face(self.held[rows], self.spent[rows])

    def put(self, rows: np.ndarray, n: int) -> Face:
        """Return these faces as rows among n, the others with all assets."""
        if rows.size == n:
            return self
        face = Face(np.ones((n, self.held.shape[1]), dtype=bool), np.ones(n, dtype=bool))
        face.held[rows], face.spent[rows] = self
        return face


class _Point(NamedTuple):
    """Best decision on a face, of any sign, and its multipliers."""

    W: np.ndarray  # (n, d)
    lam: np.ndarray  # (n,), infinite if every decision on the face is too risky: W is then the safest
    nu: np.ndarray  # (n,), divided by lam if that is infinite


class PortfolioOracle:
    """Minimize rows of costs over portfolios with w^T Q w <= 1, whose weights sum to one, or to at most one.

    Q = G^T G may be singular, G has the shape (k, d).
    """

    def __init__(self, G: np.ndarray, equal: bool) -> None:
        self.G, self.equal = G, equal
        Q = G.T @ G
        values = np.linalg.eigvalsh(Q)
        # A little more risk of each asset makes a singular matrix definite; proofs use the true one.
        least = len(Q) * np.finfo(float).eps * max(float(values[-1]), 1.0)
        self.Q = Q + max(least - float(values[0]), 0.0) * np.eye(len(Q))
        d = len(Q)
        self.all_held = np.linalg.inv(np.block([[self.Q, np.ones((d, 1))], [np.ones((1, d)), np.zeros((1, 1))]]))

    def minimize(
        self, C: np.ndarray, start: Face | None = None, least: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, Face]:
        """Decisions, their multipliers lam of the risk, and their faces; NaN in rows that were not solved.

        The costs are of size one, and ``start`` has the assets that are likely to be held, as those for similar costs.
        With ``least``, the smallest multiplier of a row, c.w + least w^T Q w / 2 is minimized.
        """
        least = np.broadcast_to(np.asarray(least, dtype=np.float64), len(C))
        W, lam, face = self._pivot(C, self.Q, start, least)
        rows, way = np.flatnonzero(np.isnan(lam)), None
        for share in np.append(DETOUR, 0.0) if rows.size else ():
            theta = share * float(np.trace(self.Q)) / len(self.Q)
            found, multiplier, way = self._pivot(C[rows], self.Q + theta * np.eye(len(self.Q)), way, least[rows])
            known = ~np.isnan(multiplier)
            found, multiplier, rows, way = found[known], multiplier[known], rows[known], way.take(known)
        if rows.size and way is not None:
            W[rows], lam[rows], face.held[rows], face.spent[rows] = found, multiplier, way.held, way.spent
        # With an infinite multiplier there is no decision within the limit of the risk, but for rounding.
        lam[np.isinf(lam)] = np.nan
        return W, lam, face

    def _pivot(
        self, C: np.ndarray, Q: np.ndarray, start: Face | None, least: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Face]:
        """Decisions, multipliers and faces by pivoting; NaN in rows that need more iterations."""
        n, d = C.shape
        W, multiplier = np.full((n, d), np.nan), np.full(n, np.nan)
        found = Face(np.ones((n, d), dtype=bool), np.ones(n, dtype=bool))
        rows, face = np.arange(n), found if start is None else start
        fewest, patience = np.full(n, d + 2), np.full(n, PATIENCE)
        for n_iter in range(ITERATIONS if n else 0):
            c = C[rows]
            at_once = n_iter == 0 and start is None and Q is self.Q
            point = self._all_held(c, least) if at_once else _best_on(c, Q, face, least[rows])
            wrong, wrong_budget = self._wrong(c, Q, face, point)
            count = wrong.sum(axis=1) + wrong_budget
            # The first products are of all rows together, and their rounding differs from that of single rows.
            right = count == 0 if not at_once else np.zeros(len(rows), dtype=bool)
            done = rows[right]
            W[done], multiplier[done] = point.W[right], point.lam[right]
            found.held[done], found.spent[done] = face.take(right)
            rows, wrong, wrong_budget, count, fewest, patience = (
                x[~right] for x in (rows, wrong, wrong_budget, count, fewest, patience)
            )
            if rows.size == 0:
                break
            patience = np.where(count < fewest, PATIENCE, patience - 1)
            fewest = np.minimum(fewest, count)
            # One at a time, the last one, is slower, and does not repeat itself.
            slow = np.flatnonzero(patience < 0)
            last = wrong[slow] & (np.cumsum(wrong[slow][:, ::-1], axis=1)[:, ::-1] == 1)
            wrong[slow] = last & ~wrong_budget[slow, None]
            held, spent = face.take(~right)
            face = Face(held ^ wrong, spent ^ wrong_budget)
            empty = np.flatnonzero(~face.held.any(axis=1))
            face.held[empty, C[rows[empty]].argmin(axis=1)] = True
        return W, multiplier, found

    def gap(self, C: np.ndarray, W: np.ndarray, lam: np.ndarray, least: np.ndarray | float = 0.0) -> np.ndarray:
        """Cost of decisions minus what every decision costs at least, by the multipliers of the risk.

        With ``least``, costs of x include least x^T Q x / 2, which is at least least (x^T Q w - w^T Q w / 2).
        """
        GW = W @ self.G.T
        low = (C + lam[:, None] * (GW @ self.G)).min(axis=1)
        low = low if self.equal else np.minimum(low, 0.0)
        risk = np.square(GW).sum(axis=1)
        return np.einsum("ij,ij->i", C, W) + least * risk - (low - (lam - least) * np.sqrt(risk))

    def derivatives(self, C: np.ndarray, face: Face, lam: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Minus the derivatives of decisions in the costs, (n, d, d), if no asset is just about to enter or leave.

        (P - c~ c~^T / |c~|^2) / lam with P the upper block of the inverse of the matrix above, without the second term
        where the limit of the risk is not reached.
        """
        M = np.zeros((len(C), *self.Q.shape))
        for rows, columns, matrix in _systems(self.Q, face):
            k = columns.shape[1]
            P = np.linalg.inv(matrix)[:, :k, :k]
            c = C[rows[:, None], columns]
            tilted = np.einsum("ijk,ik->ij", P, c)
            size = np.einsum("ij,ij->i", c, tilted)
            reached = (lam[rows] > least[rows]) & (size > 0)
            tilted *= np.where(reached, 1.0 / np.sqrt(np.where(reached, size, 1.0)), 0.0)[:, None]
            P -= tilted[:, :, None] * tilted[:, None, :]
            P /= np.where(lam[rows] > 0, lam[rows], np.inf)[:, None, None]
            M[rows[:, None, None], columns[:, :, None], columns[:, None, :]] = P
        return M

    def _wrong(self, C: np.ndarray, Q: np.ndarray, face: Face, point: _Point) -> tuple[np.ndarray, np.ndarray]:
        """Assets that should be held and are not, or the other way round; and the same of what is not spent."""
        risky = np.isinf(point.lam)
        lam = np.where(risky, 1.0, point.lam)
        slack = np.where(risky[:, None], 0.0, C) + lam[:, None] * (point.W @ Q) - point.nu[:, None]
        limit = -ROUNDING * (1.0 + lam)
        wrong = np.where(face.held, point.W < -ROUNDING, slack < limit[:, None])
        if self.equal:
            return wrong, np.zeros(len(C), dtype=bool)
        return wrong, np.where(face.spent, (point.nu > -limit) | risky, point.W.sum(axis=1) > 1.0 + ROUNDING)

    def _all_held(self, C: np.ndarray, least: np.ndarray) -> _Point:
        """Best decisions if every asset is held and all is spent: one matrix serves all rows."""
        d = C.shape[1]
        tilted = np.column_stack([C, np.zeros(len(C))]) @ self.all_held
        safest = np.tile(self.all_held[d], (len(C), 1))
        return _Point(*_best(C, np.ones(len(C), dtype=bool), tilted, safest, least))


def _systems(Q: np.ndarray, face: Face) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, the assets that they hold, and the matrices of their linear systems, some at a time.

    Rows with as many assets go together: a row's decision must not depend on the others, not even by rounding.
    """
    count = face.held.sum(axis=1)
    order = np.argsort(count, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(count[order])) + 1) if len(count) else ():
        k = int(count[group[0]])
        block = max(BLOCK_ELEMENTS // (k + 1) ** 2, 1)
        for first in range(0, group.size, block):
            check_time()
            rows = group[first : first + block]
            columns, spent = np.nonzero(face.held[rows])[1].reshape(-1, k), face.spent[rows]
            matrix = np.zeros((rows.size, k + 1, k + 1))
            matrix[:, :k, :k] = Q[columns[:, :, None], columns[:, None, :]]
            matrix[:, k, :k] = matrix[:, :k, k] = spent[:, None]
            matrix[:, k, k] = ~spent
            yield rows, columns, matrix


def _best_on(C: np.ndarray, Q: np.ndarray, face: Face, least: np.ndarray) -> _Point:
    """Best decision of each row on its face, by one small linear system per row."""
    n, d = C.shape
    W, lam, nu = np.zeros((n, d)), np.empty(n), np.empty(n)
    for rows, columns, matrix in _systems(Q, face):
        k, spent = columns.shape[1], face.spent[rows]
        right = np.zeros((rows.size, k + 1, 2))
        right[:, :k, 0] = c = C[rows[:, None], columns]
        right[:, k, 1] = spent
        try:
            tilted, safest = np.moveaxis(np.linalg.solve(matrix, right), 2, 0)
        except np.linalg.LinAlgError:
            tilted = safest = np.full((rows.size, k + 1), np.nan)  # no solution, which is found by looking at it
        W[rows[:, None], columns], lam[rows], nu[rows] = _best(c, spent, tilted, safest, least[rows])
    return _Point(W, lam, nu)


def _best(
    c: np.ndarray, spent: np.ndarray, tilted: np.ndarray, safest: np.ndarray, least: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decisions and multipliers from the solutions (c~, m) and (safest, -risk) of the two systems above."""
    tilted, shift, safest, room = tilted[:, :-1], tilted[:, -1], safest[:, :-1], 1.0 + safest[:, -1]
    # Where held assets cost the same, all decisions on the face do.
    high, low = c.max(axis=1), c.min(axis=1)
    spread = np.where(spent, high - low, np.maximum(high, -low))
    size = np.where(spread > ROUNDING, np.sqrt(np.maximum(np.einsum("ij,ij->i", c, tilted), 0.0)), 0.0)
    risky, rho = room <= 0.0, np.sqrt(np.maximum(room, 0.0))
    lam = np.where(risky, np.inf, np.maximum(size / np.where(risky, 1.0, rho), least))
    step = np.where(size == 0.0, 0.0, 1.0 / np.where(lam == 0.0, 1.0, lam))
    nu = np.where(risky, 1.0 - room, shift + np.where(risky, 0.0, lam) * (1.0 - room))
    return safest - step[:, None] * tilted, lam, nu
