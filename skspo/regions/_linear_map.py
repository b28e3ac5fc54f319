"""A linear map K of the decisions z of a region: products, rank, and what is constant; see ``image.py``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ._oracles.highs import solve_rows
from ._tolerances import RANK
from .polyhedral import InequalityForm, StandardForm


class Maps(NamedTuple):
    """The validated map.  Sparse products are computed row by row: a decision does not depend on the other rows."""

    matrix: sp.csr_array  # (d, m), without the known cost
    full: sp.csr_array  # K: with the known cost as last row, if there is one
    transposed: sp.csr_array  # K^T
    scales: np.ndarray | None  # the entries of K, if it is square and diagonal without zeros
    known_cost: np.ndarray | None = None  # (n, m) of each row, if it varies by sample

    @staticmethod
    def of(matrix: sp.csr_array, known: np.ndarray | None) -> Maps:
        """Append the known cost as last row, if there is one."""
        full = matrix if known is None else sp.vstack([matrix, sp.csr_array(known[None])], format="csr")
        full = sp.csr_array(full)
        full.eliminate_zeros()
        diagonal = full.shape[0] == full.shape[1] == full.nnz and full.diagonal().all()
        return Maps(matrix, full, sp.csr_array(full.T), full.diagonal() if diagonal else None)


class Directions(NamedTuple):
    """The map on the directions in which decisions of the inner region vary."""

    normals: np.ndarray  # orthonormal rows E with E u constant
    low: float  # at most the smallest singular value that is not zero
    high: float  # at least the largest one
    injective: bool
    lift: np.ndarray | sp.csr_array  # (m, d): z - z' = lift (u - u') if the map is injective


def analyze(maps: Maps, E: np.ndarray) -> Directions:
    """Compute what is constant, and singular values; E are the equalities of the inner region."""
    K, (d, m) = maps.full, maps.full.shape
    if maps.scales is not None:
        normals = np.linalg.qr((E / maps.scales).T)[0].T if E.shape[0] else np.zeros((0, d))
        size = np.abs(maps.scales)
        back = sp.csr_array(sp.diags_array(1.0 / maps.scales))
        return Directions(normals, float(size.min()), float(size.max()), True, back)
    dense = K.toarray()
    B = dense - (dense @ E.T) @ E
    # Rows of very different units: ranks are decided for rows of norm one.
    norms = np.linalg.norm(dense, axis=1)
    norms[norms == 0] = 1.0
    U, s, Vt = np.linalg.svd(B / norms[:, None], full_matrices=d > m)  # all of U is needed, not all of V
    rank = int((s > RANK).sum())
    constant = U[:, rank:].T / norms
    normals = np.linalg.qr(constant.T)[0].T if constant.shape[0] else np.zeros((0, d))
    lift = (Vt[:rank].T / s[:rank]) @ (U[:, :rank].T / norms)
    values = np.linalg.svd(B, compute_uv=False)[:rank] if rank else np.ones(1)
    return Directions(normals, float(values[-1]), float(values[0]), rank == m - E.shape[0], lift)


def rows_of_blocks(K: sp.csr_array, columns: list[np.ndarray]) -> list[np.ndarray] | None:
    """Rows of K that belong to each block of columns; None if a row has entries in several blocks.

    Rows of zeros belong to the first block.
    """
    block = np.zeros(K.shape[1], dtype=np.intp)
    for number, own in enumerate(columns):
        block[own] = number
    found, filled = np.zeros(K.shape[0], dtype=np.intp), np.diff(K.indptr) > 0
    if filled.any():
        blocks, first = block[K.indices], K.indptr[:-1][filled]
        found[filled] = np.minimum.reduceat(blocks, first)
        if (np.maximum.reduceat(blocks, first) != found[filled]).any():
            return None
    return [np.flatnonzero(found == number) for number in range(len(columns))]


def lift_rows(form: StandardForm, project: sp.csr_array, K: sp.csr_array, W: np.ndarray) -> np.ndarray:
    """Find z in a region with K z as near as possible to w: one linear program for each row.

    min sum_j s_j + t_j   s.t.   A v = b,   lower <= v <= upper,   K P v + s - t = w,   s, t >= 0,   z = P v.
    """
    image = K @ project
    (k, N), (n, d) = form.A.shape, W.shape
    scale = np.maximum(np.abs(image).max(axis=1).toarray().ravel(), 1e-300)
    slack = sp.diags_array(np.where(scale > 1e-300, scale, 1.0), format="csr")
    A_eq = sp.block_array([[form.A, sp.csr_array((k, 2 * d))], [image, sp.hstack([slack, -slack])]], format="csr")
    b = np.column_stack([np.broadcast_to(form.b, (n, k)), W])
    lower = np.column_stack([np.broadcast_to(form.lower, (n, N)), np.zeros((n, 2 * d))])
    upper = np.column_stack([np.broadcast_to(form.upper, (n, N)), np.full((n, 2 * d), np.inf)])
    program = InequalityForm.build(N + 2 * d, A_eq=A_eq, b_eq=b[0], lower=lower[0], upper=upper[0])
    cost = np.append(np.zeros(N), np.ones(2 * d))
    rows = {"b_eq": b} | ({"lower": lower, "upper": upper} if form.varies else {})
    V = solve_rows(program, np.broadcast_to(cost, (n, cost.size)), rows=rows)[:, :N]
    return np.ascontiguousarray((project @ V.T).T)
