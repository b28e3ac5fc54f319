"""The compiled loops of the dual method.  Importing this module imports numba.

Conventions
-----------
    sample i has the cached decisions ptr[i] ... ptr[i + 1] - 1, sorted by sample; weight w_k >= 0, sum one per sample
    a decision is a sparse row: columns idx[at[k] : at[k + 1]], values val[at[k] : at[k + 1]]; linear part lin_k
    block of sample i: the columns in which its decisions differ, and their values there, one row per decision
    T (d, q) scaled coefficients, z_i scaled features, dense or CSR;  score_k = lin_k - 2 v_k.(soft(T) z_i)

All kernels are in one file: numba compiles again when the file of a kernel changes, not when another one does.
``fastmath`` is limited to flags that allow other orders of sums; infinities and NaN keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

try:
    import numba
except ImportError as error:
    raise ImportError(f"solver='dual' needs numba, which cannot be imported ({error}): pip install numba") from error

#: sums in any order, fused multiplications
FASTMATH = {"reassoc", "contract", "nsz"}

#: scores that differ by less, relative to the largest, are the same
SAME_SCORE = 1e-14


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep the result on disk if there is a place for it."""
    try:
        return numba.njit(cache=True, nogil=True, fastmath=FASTMATH)(function)
    except RuntimeError:  # no directory that numba could write to
        return numba.njit(nogil=True, fastmath=FASTMATH)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into those that call it: a call with a tuple of arrays costs more than a short row."""
    return numba.njit(inline="always", fastmath=FASTMATH)(function)


class Features(NamedTuple):
    """Rows of scaled features, dense or CSR; what is not used is empty."""

    is_sparse: bool
    dense: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


class Blocks(NamedTuple):
    """Decisions in use by the sweeps: for each sample the columns in which its decisions differ."""

    ptr: np.ndarray  # decisions of sample i
    lin: np.ndarray  # linear part of each decision
    cols: np.ndarray  # columns of sample i: cols[cptr[i] : cptr[i + 1]]
    cptr: np.ndarray
    val: np.ndarray  # values of sample i: val[vptr[i] : vptr[i + 1]], one row per decision
    vptr: np.ndarray


@inlined
def soft(x: float, threshold: float) -> float:
    """Soft threshold."""
    if x > threshold:
        return x - threshold
    if x < -threshold:
        return x + threshold
    return 0.0


@inlined
def row_product(T: np.ndarray, j: int, thresholds: np.ndarray, has_l1: bool, Z: Features, i: int) -> float:
    """soft(T_j).z_i."""
    x = 0.0
    if Z.is_sparse:
        for e in range(Z.indptr[i], Z.indptr[i + 1]):
            k = Z.indices[e]
            x += (soft(T[j, k], thresholds[j, k]) if has_l1 else T[j, k]) * Z.data[e]
    elif has_l1:
        for k in range(T.shape[1]):
            x += soft(T[j, k], thresholds[j, k]) * Z.dense[i, k]
    else:
        for k in range(T.shape[1]):
            x += T[j, k] * Z.dense[i, k]
    return x


@inlined
def add_row(T: np.ndarray, j: int, x: float, Z: Features, i: int) -> None:
    """T_j += x z_i."""
    if Z.is_sparse:
        for e in range(Z.indptr[i], Z.indptr[i + 1]):
            T[j, Z.indices[e]] += x * Z.data[e]
    else:
        for k in range(T.shape[1]):
            T[j, k] += x * Z.dense[i, k]


@kernel
def sweep(
    order: np.ndarray,
    blocks: Blocks,
    weight: np.ndarray,
    T: np.ndarray,
    thresholds: np.ndarray,
    has_l1: bool,
    Z: Features,
    zz: np.ndarray,
    a: np.ndarray,
    most_steps: int,
    moved: np.ndarray,
    rest: np.ndarray,
) -> float:
    """Ascend the dual in the weights of one sample after another; change ``weight`` and T in place.

    With x = soft(T) z_i the dual is a concave function of the sample's weights with gradient a_i score and curvature at
    most 4 a_i^2 |z_i|^2 v.v', with equality without an l1 penalty.  Weight goes from the worst decision in use to the
    best one, as far as this model improves, at most ``most_steps`` times.

    Returns the increase of the dual.  ``moved`` says which samples changed, ``rest`` by how much the best decision of a
    sample beat its average before.
    """
    wide = many = 1
    for i in order:
        wide, many = max(wide, blocks.cptr[i + 1] - blocks.cptr[i]), max(many, blocks.ptr[i + 1] - blocks.ptr[i])
    x, step_sum, score = np.empty(wide), np.empty(wide), np.empty(many)
    gain = 0.0
    for i in order:
        first, k = blocks.ptr[i], blocks.ptr[i + 1] - blocks.ptr[i]
        cols = blocks.cols[blocks.cptr[i] : blocks.cptr[i + 1]]
        m = cols.size
        V = blocks.val[blocks.vptr[i] : blocks.vptr[i + 1]].reshape(k, m)
        w = weight[first : first + k]
        for t in range(m):
            x[t], step_sum[t] = row_product(T, cols[t], thresholds, has_l1, Z, i), 0.0
        best, mean, size = 0, 0.0, 0.0
        for r in range(k):
            product = 0.0
            for t in range(m):
                product += V[r, t] * x[t]
            score[r] = blocks.lin[first + r] - 2.0 * product
            mean += w[r] * score[r]
            size = max(size, abs(score[r]))
            if score[r] > score[best]:
                best = r
        rest[i] = a[i] * (score[best] - mean)
        moved[i] = False
        curvature = 4.0 * a[i] * zz[i]
        for _ in range(most_steps):
            high, low = 0, -1
            for r in range(k):
                if score[r] > score[high]:
                    high = r
                if w[r] > 0.0 and (low < 0 or score[r] < score[low]):
                    low = r
            rise = score[high] - score[low]
            if rise <= SAME_SCORE * size:
                break
            bend = 0.0
            for t in range(m):
                bend += (V[high, t] - V[low, t]) ** 2
            bend *= curvature
            if rise >= bend * w[low]:  # also where there is no curvature
                step = w[low]
                w[low] = 0.0  # exactly, so that the decision can be dropped
            else:
                step = rise / bend
                w[low] -= step
            w[high] += step
            moved[i] = True
            gain += a[i] * step * (rise - 0.5 * bend * step)
            for t in range(m):
                step_sum[t] += step * (V[high, t] - V[low, t])
            for r in range(k):
                product = 0.0
                for t in range(m):
                    product += V[r, t] * (V[high, t] - V[low, t])
                score[r] -= curvature * step * product
        if moved[i]:
            for t in range(m):
                if step_sum[t] != 0.0:
                    add_row(T, cols[t], 2.0 * a[i] * step_sum[t], Z, i)
    return gain


# -- the cache ---------------------------------------------------------------------------------------------------------


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
    cptr, vptr = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
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
        if not writing:
            cols, dense = np.empty(cptr[n], np.int32), np.zeros(vptr[n])
    return cols, cptr, dense, vptr


@kernel
def averages(
    n: int, d: int, row: np.ndarray, weight: np.ndarray, at: np.ndarray, idx: np.ndarray, val: np.ndarray
) -> np.ndarray:
    """Weighted sums of the decisions of each sample, shape (n, d)."""
    V = np.zeros((n, d))
    for r in range(row.size):
        if weight[r] != 0.0:
            for e in range(at[r], at[r + 1]):
                V[row[r], idx[e]] += weight[r] * val[e]
    return V


@kernel
def products(row: np.ndarray, at: np.ndarray, idx: np.ndarray, val: np.ndarray, U: np.ndarray) -> np.ndarray:
    """v_k.u_i for each decision and the row u_i of its sample."""
    out = np.zeros(row.size)
    for r in range(row.size):
        for e in range(at[r], at[r + 1]):
            out[r] += val[e] * U[row[r], idx[e]]
    return out


@kernel
def gather(which: np.ndarray, at: np.ndarray, idx: np.ndarray, val: np.ndarray, d: int) -> np.ndarray:
    """Some of the decisions as dense rows."""
    V = np.zeros((which.size, d))
    for b in range(which.size):
        for e in range(at[which[b]], at[which[b] + 1]):
            V[b, idx[e]] = val[e]
    return V


# -- the face: weights in use, in the directions that keep their sums --------------------------------------------------


@kernel
def combine(rows: np.ndarray, blocks: Blocks, x: np.ndarray, d: int) -> np.ndarray:
    """sum_k x_k v_k of each of the rows where sum_k x_k = 0, shape (rows, d)."""
    D = np.zeros((rows.size, d))
    for b in range(rows.size):
        i = rows[b]
        first, m = blocks.ptr[i], blocks.cptr[i + 1] - blocks.cptr[i]
        for r in range(first, blocks.ptr[i + 1]):
            if x[r] != 0.0:
                start = blocks.vptr[i] + (r - first) * m
                for t in range(m):
                    D[b, blocks.cols[blocks.cptr[i] + t]] += x[r] * blocks.val[start + t]
    return D


@kernel
def collect(
    rows: np.ndarray, blocks: Blocks, used: np.ndarray, P: np.ndarray, lin: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    """lin_k + v_k.p_i for the decisions in use, minus their mean (weights ``shift``) over the sample; else zero."""
    out = np.zeros(used.size)
    for b in range(rows.size):
        i = rows[b]
        first, m = blocks.ptr[i], blocks.cptr[i + 1] - blocks.cptr[i]
        total = count = 0.0
        for r in range(first, blocks.ptr[i + 1]):
            if used[r]:
                x, start = lin[r], blocks.vptr[i] + (r - first) * m
                for t in range(m):
                    x += blocks.val[start + t] * P[b, blocks.cols[blocks.cptr[i] + t]]
                out[r] = x
                total += shift[r] * x
                count += shift[r]
        for r in range(first, blocks.ptr[i + 1]):
            if used[r]:
                out[r] -= total / count
    return out


@kernel
def project(rows: np.ndarray, ptr: np.ndarray, used: np.ndarray, weight: np.ndarray) -> None:
    """Euclidean projection of the weights in use of each of the rows onto the unit simplex, in place."""
    for i in rows:
        first, last = ptr[i], ptr[i + 1]
        active = np.zeros(last - first, np.bool_)
        count, total = 0, 0.0
        for r in range(first, last):
            if used[r]:
                active[r - first] = True
                count += 1
                total += weight[r]
        shift, changed = (total - 1.0) / count, True
        while changed:  # drop what becomes negative; the shift only increases
            changed = False
            for r in range(first, last):
                if active[r - first] and weight[r] <= shift and count > 1:
                    active[r - first], changed = False, True
                    count -= 1
                    total -= weight[r]
            shift = (total - 1.0) / count
        for r in range(first, last):
            if used[r]:
                weight[r] = max(weight[r] - shift, 0.0) if active[r - first] else 0.0


@kernel
def covariance(blocks: Blocks, weight: np.ndarray, a: np.ndarray, d: int) -> np.ndarray:
    """sum_i a_i Cov_i, the covariance of a sample's decisions under its weights, shape (d, d)."""
    M = np.zeros((d, d))
    for i in range(blocks.ptr.size - 1):
        first, k, m = blocks.ptr[i], blocks.ptr[i + 1] - blocks.ptr[i], blocks.cptr[i + 1] - blocks.cptr[i]
        if m == 0:
            continue
        V, cols = blocks.val[blocks.vptr[i] : blocks.vptr[i + 1]].reshape(k, m), blocks.cols[blocks.cptr[i] :]
        mean = np.zeros(m)
        for r in range(k):
            for t in range(m):
                mean[t] += weight[first + r] * V[r, t]
        for r in range(k):
            if weight[first + r] > 0.0:
                for t in range(m):
                    x = a[i] * weight[first + r] * (V[r, t] - mean[t])
                    if x != 0.0:
                        for f in range(m):
                            M[cols[t], cols[f]] += x * (V[r, f] - mean[f])
    return M
