"""The compiled loops of the cache of decisions: sparse rows, sorted by sample (conventions: ``kernels``)."""

from __future__ import annotations

import numpy as np

from .kernels import kernel


@kernel
def insert(
    n: int,
    row: np.ndarray,
    at: np.ndarray,
    idx: np.ndarray,
    val: np.ndarray,
    keep: np.ndarray,
    rows: np.ndarray,
    V: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Sparse rows that are kept and the new ones V (one for each of ``rows``, ascending), sorted by sample.

    Also returns where each row comes from: its old number, or minus one minus its number in V.
    """
    count, nonzero = 0, 0
    for r in range(row.size):
        if keep[r]:
            count += 1
            nonzero += at[r + 1] - at[r]
    for b in range(rows.size):
        for j in range(V.shape[1]):
            if V[b, j] != 0.0:
                nonzero += 1
    count += rows.size
    ptr, source, new_row = np.empty(n + 1, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    new_at, new_idx, new_val = np.empty(count + 1, np.int64), np.empty(nonzero, np.int32), np.empty(nonzero)
    r = b = out = e = 0
    for i in range(n):
        ptr[i] = out
        while r < row.size and row[r] == i:
            if keep[r]:
                source[out], new_row[out], new_at[out] = r, i, e
                for f in range(at[r], at[r + 1]):
                    new_idx[e], new_val[e] = idx[f], val[f]
                    e += 1
                out += 1
            r += 1
        if b < rows.size and rows[b] == i:
            source[out], new_row[out], new_at[out] = -1 - b, i, e
            for j in range(V.shape[1]):
                if V[b, j] != 0.0:
                    new_idx[e], new_val[e] = j, V[b, j]
                    e += 1
            out += 1
            b += 1
    ptr[n], new_at[out] = out, e
    return ptr, source, new_row, new_at, new_idx, new_val


@kernel
def differences(d: int, ptr: np.ndarray, at: np.ndarray, idx: np.ndarray, val: np.ndarray) -> tuple[np.ndarray, ...]:
    """Columns in which the decisions of each sample differ, and their values there: the last fields of ``Blocks``.

    The first pass counts, the second one writes.
    """
    n = ptr.size - 1
    cptr, vptr, gptr = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    cols, dense = np.empty(0, np.int32), np.empty(0)
    times, value, varies = np.zeros(d, np.int64), np.zeros(d), np.zeros(d, np.bool_)
    place, touched = np.empty(d, np.int64), np.empty(d, np.int64)
    for writing in range(2):
        for i in range(n):
            first, last, many, m = ptr[i], ptr[i + 1], 0, 0
            if last - first > 1:
                for e in range(at[first], at[last]):
                    j = idx[e]
                    if times[j] == 0:
                        touched[many], value[j] = j, val[e]
                        many += 1
                    elif val[e] != value[j]:
                        varies[j] = True
                    times[j] += 1
                for t in range(many):
                    j = touched[t]
                    place[j] = -1
                    if times[j] < last - first or varies[j]:
                        place[j] = m
                        if writing:
                            cols[cptr[i] + m] = j
                        m += 1
                    times[j], varies[j] = 0, False
                if writing:
                    for r in range(first, last):
                        for e in range(at[r], at[r + 1]):
                            if place[idx[e]] >= 0:
                                dense[vptr[i] + (r - first) * m + place[idx[e]]] = val[e]
            cptr[i + 1], vptr[i + 1] = cptr[i] + m, vptr[i] + m * (last - first)
            gptr[i + 1] = gptr[i] + (last - first) ** 2
        if not writing:
            cols, dense = np.empty(cptr[n], np.int32), np.zeros(vptr[n])
    gram = np.empty(gptr[n])
    for i in range(n):
        k, m = ptr[i + 1] - ptr[i], cptr[i + 1] - cptr[i]
        V, G = dense[vptr[i] : vptr[i + 1]].reshape(k, m), gram[gptr[i] : gptr[i + 1]].reshape(k, k)
        for r in range(k):
            for s in range(r + 1):
                product = 0.0
                for t in range(m):
                    product += V[r, t] * V[s, t]
                G[r, s] = G[s, r] = product
    return cols, cptr, dense, vptr, gram, gptr
