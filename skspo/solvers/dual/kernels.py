"""The compiled loops of the dual method.  Importing this module imports numba.

Conventions
-----------
    sample i has the cached decisions ptr[i] ... ptr[i + 1] - 1, sorted by sample; weight w_k >= 0, sum one per sample
    a decision is a sparse row: columns idx[at[k] : at[k + 1]], values val[at[k] : at[k + 1]]; linear part lin_k
    block of sample i: the columns in which its decisions differ, and their values there, one row per decision
    T (d, q) scaled coefficients, z_i scaled features, dense or CSR;  score_k = lin_k - 2 v_k.(soft(T) z_i)

Kernels that call each other are in one file: numba compiles again when the file of a kernel changes, not when another
one does.
``fastmath`` is limited to flags that allow other orders of sums; infinities and NaN keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

#: sums in any order, fused multiplications
FASTMATH = {"reassoc", "contract", "nsz"}

#: rounding errors of sums, relative to the terms: some dozen units in the last place
ROUNDING = 1e-14

#: decisions whose squared distance is a smaller share of their squares are close
CLOSE = float(np.sqrt(ROUNDING))

#: in place of infinity, with which no kernel calculates
HUGE = 1e300

#: evaluations of a projection: Newton's method needs a few, bisection from anywhere at most so many
EVALUATIONS = 100


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
    gram: np.ndarray  # products of its decisions there: gram[gptr[i] : gptr[i + 1]], one row per decision
    gptr: np.ndarray


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


@inlined
def add_change(
    T: np.ndarray, cols: np.ndarray, change: np.ndarray, val: np.ndarray, factor: float, Z: Features, i: int
) -> None:
    """T += factor (change of the weights . decisions) z_i, in the columns in which decisions differ."""
    m = cols.size
    for t in range(m):
        difference = 0.0
        for r in range(change.size):
            difference += change[r] * val[r * m + t]
        if difference != 0.0:
            add_row(T, cols[t], factor * difference, Z, i)


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
    rest: np.ndarray,
) -> None:
    """Ascend the dual in the weights of one sample after another; change ``weight`` and T in place.

    With x = soft(T) z_i the dual is a concave function of the sample's weights with gradient a_i score and curvature at
    most 4 a_i^2 |z_i|^2 v.v', with equality without an l1 penalty.  Weight goes from the worst decision in use to the
    best one, as far as this model improves, at most ``most_steps`` times.

    ``rest`` says by how much the best decision of a sample beat its average before.
    """
    # Entries by their offsets: a slice for each sample would take as long as the arithmetic of a short row.
    lin, cols, val, gram = blocks.lin, blocks.cols, blocks.val, blocks.gram
    wide = many = 1
    for i in order:
        wide, many = max(wide, blocks.cptr[i + 1] - blocks.cptr[i]), max(many, blocks.ptr[i + 1] - blocks.ptr[i])
    x, score, change = np.empty(wide), np.empty(many), np.empty(many)
    for i in order:
        w, k = blocks.ptr[i], blocks.ptr[i + 1] - blocks.ptr[i]
        c, m = blocks.cptr[i], blocks.cptr[i + 1] - blocks.cptr[i]
        V, G = blocks.vptr[i], blocks.gptr[i]
        for t in range(m):
            x[t] = row_product(T, cols[c + t], thresholds, has_l1, Z, i)
        best, mean, size = 0, 0.0, 0.0
        for r in range(k):
            product = 0.0
            for t in range(m):
                product += val[V + r * m + t] * x[t]
            score[r], change[r] = lin[w + r] - 2.0 * product, 0.0
            mean += weight[w + r] * score[r]
            size = max(size, abs(score[r]))
            if score[r] > score[best]:
                best = r
        rest[i] = a[i] * (score[best] - mean)
        moved = False
        curvature = 4.0 * a[i] * zz[i]
        for _ in range(most_steps):
            high, low = 0, -1
            for r in range(k):
                if score[r] > score[high]:
                    high = r
                if weight[w + r] > 0.0 and (low < 0 or score[r] < score[low]):
                    low = r
            rise = score[high] - score[low]
            if rise <= ROUNDING * size:
                break
            squares = gram[G + high * k + high] + gram[G + low * k + low]
            distance = squares - 2.0 * gram[G + high * k + low]
            if distance <= CLOSE * squares:  # little is left but rounding errors
                distance = 0.0
                for t in range(m):
                    distance += (val[V + high * m + t] - val[V + low * m + t]) ** 2
            bend = curvature * distance
            if rise >= bend * weight[w + low]:  # also where there is no curvature
                step = weight[w + low]
                weight[w + low] = 0.0  # exactly, so that the decision can be dropped
            else:
                step = rise / bend
                weight[w + low] -= step
            weight[w + high] += step
            change[high] += step
            change[low] -= step
            moved = True
            for r in range(k):
                score[r] -= curvature * step * (gram[G + high * k + r] - gram[G + low * k + r])
        if moved:
            add_change(T, cols[c : c + m], change[:k], val[V : V + k * m], 2.0 * a[i], Z, i)


@kernel
def differences(d: int, ptr: np.ndarray, at: np.ndarray, idx: np.ndarray, val: np.ndarray) -> tuple[np.ndarray, ...]:
    """Columns in which the decisions of each sample differ, and their values there: the last fields of ``Blocks``."""
    n = ptr.size - 1
    cptr, vptr, gptr = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    cols, dense = np.empty(0, np.int32), np.empty(0)
    times, value, varies = np.zeros(d, np.int64), np.zeros(d), np.zeros(d, np.bool_)
    place, touched = np.empty(d, np.int64), np.empty(d, np.int64)
    for writing in range(2):  # the first pass counts
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


# -- points of a box with one constraint -------------------------------------------------------------------------------


class Box(NamedTuple):
    """{v : lower <= v <= upper, low <= coef.v <= high}; a side that does not exist is ``HUGE``."""

    lower: np.ndarray
    upper: np.ndarray
    coef: np.ndarray
    low: float
    high: float


class Columns(NamedTuple):
    """Columns in use by the sweeps over points: sample i may change cols[ptr[i] : ptr[i + 1]]."""

    ptr: np.ndarray
    cols: np.ndarray
    lin: np.ndarray  # costs there
    fixed: np.ndarray  # coef.v of all other columns of sample i


@kernel
def nearest(
    y: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    coef: np.ndarray,
    low: float,
    high: float,
    multiplier: float,
    v: np.ndarray,
) -> float:
    """Project y onto the box with one constraint: v = clip(y - multiplier coef); returns the multiplier.

    coef.v decreases with the multiplier, piecewise linearly: Newton's method from the given one finds the root after a
    few evaluations, with bisection as a safeguard.  The multiplier is zero if the constraint is not binding.
    """
    size = steepest = 0.0
    for t in range(y.size):
        size += abs(coef[t]) * max(abs(lower[t]), abs(upper[t]))
        steepest += coef[t] * coef[t]
    left, right, longer = -HUGE, HUGE, 1.0
    for _ in range(EVALUATIONS):
        total = slope = 0.0
        for t in range(y.size):
            v[t] = y[t] - multiplier * coef[t]
            if v[t] <= lower[t]:
                v[t] = lower[t]
            elif v[t] >= upper[t]:
                v[t] = upper[t]
            else:
                slope += coef[t] * coef[t]
            total += coef[t] * v[t]
        if multiplier > 0.0:
            excess = total - high
        elif multiplier < 0.0:
            excess = total - low
        else:
            excess = max(total - high, 0.0) + min(total - low, 0.0)
        if abs(excess) <= ROUNDING * size:
            break
        if excess > 0.0:
            left = multiplier
        else:
            right = multiplier
        if slope > 0.0:
            new = multiplier + excess / slope
        else:  # all at their bounds: as far as no root can be skipped, then farther
            new = multiplier + longer * excess / steepest
            longer *= 4.0
        if new * multiplier < 0.0:
            new = 0.0  # where the side of the constraint changes
        if not left < new < right:
            new = 0.5 * (left + right)
            if not left < new < right:
                break
        multiplier = new
    return multiplier


@kernel
def slack(
    v: np.ndarray,
    u: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    coef: np.ndarray,
    low: float,
    high: float,
    price: float,
) -> float:
    """Bound of max u.(w - v) over the points w of the box with one constraint, by weak duality with any price of it."""
    gap = total = 0.0
    for t in range(v.size):
        reduced = u[t] - price * coef[t]
        gap += max(reduced * (upper[t] - v[t]), reduced * (lower[t] - v[t]))
        total += coef[t] * v[t]
    if price > 0.0:
        gap += price * (high - total)
    elif price < 0.0:
        gap += price * (low - total)
    return max(gap, 0.0)


@kernel
def sweep_points(
    order: np.ndarray,
    columns: Columns,
    value: np.ndarray,
    box: Box,
    multipliers: np.ndarray,
    T: np.ndarray,
    thresholds: np.ndarray,
    has_l1: bool,
    Z: Features,
    zz: np.ndarray,
    a: np.ndarray,
    rest: np.ndarray,
) -> None:
    """Ascend the dual in the point of one sample after another; change ``value``, ``multipliers`` and T in place.

    With u = c_i - 2 soft(T) z_i and kappa = 4 a_i |z_i|^2 the dual is a_i (u.dv - kappa |dv|^2 / 2) for a change dv,
    at least that with an l1 penalty: its maximizer is the projection of v_i + u / kappa.

    ``rest`` is a bound of what the best decision of a sample could gain along u before, in these columns.
    """
    wide = 1
    for i in order:
        wide = max(wide, columns.ptr[i + 1] - columns.ptr[i])
    u, y, new = np.empty(wide), np.empty(wide), np.empty(wide)
    lower, upper, coef = np.empty(wide), np.empty(wide), np.empty(wide)
    for i in order:
        first = columns.ptr[i]
        m = columns.ptr[i + 1] - first
        cols, v = columns.cols[first : first + m], value[first : first + m]
        kappa = 4.0 * a[i] * zz[i]
        for t in range(m):
            j = cols[t]
            lower[t], upper[t], coef[t] = box.lower[j], box.upper[j], box.coef[j]
            u[t] = columns.lin[first + t] - 2.0 * row_product(T, j, thresholds, has_l1, Z, i)
            y[t] = v[t] + u[t] / kappa
        low, high = box.low - columns.fixed[i], box.high - columns.fixed[i]
        multipliers[i] = nearest(y[:m], lower[:m], upper[:m], coef[:m], low, high, multipliers[i], new)
        price = kappa * multipliers[i]
        rest[i] = a[i] * slack(v, u[:m], lower[:m], upper[:m], coef[:m], low, high, price)
        rise = size = 0.0
        for t in range(m):
            step = new[t] - v[t]
            rise += u[t] * step
            size += abs(u[t] * v[t]) + abs(u[t] * new[t])
        if rise > ROUNDING * size:
            for t in range(m):
                if new[t] != v[t]:
                    add_row(T, cols[t], 2.0 * a[i] * (new[t] - v[t]), Z, i)
                    v[t] = new[t]


@kernel
def screen(
    V: np.ndarray, U: np.ndarray, a: np.ndarray, zz: np.ndarray, box: Box, multipliers: np.ndarray
) -> tuple[np.ndarray, float]:
    """Which entries of V a step of every sample by itself would change, or are between their bounds.

    Also returns a bound of sum_i a_i (max_v u_i.v - u_i.v_i), see ``slack``.
    """
    n, d = V.shape
    play, gap = np.zeros((n, d), np.bool_), 0.0
    y, new = np.empty(d), np.empty(d)
    for i in range(n):
        kappa = 4.0 * a[i] * zz[i]
        if kappa > 0.0:
            for j in range(d):
                y[j] = V[i, j] + U[i, j] / kappa
            multipliers[i] = nearest(y, box.lower, box.upper, box.coef, box.low, box.high, multipliers[i], new)
            price = kappa * multipliers[i]
            gap += a[i] * slack(V[i], U[i], box.lower, box.upper, box.coef, box.low, box.high, price)
            for j in range(d):
                play[i, j] = new[j] != V[i, j] or box.lower[j] < V[i, j] < box.upper[j]
    return play, gap


@kernel
def settle(columns: Columns, value: np.ndarray, box: Box) -> None:
    """Move values that rounding errors took across the constraint back onto it, in place."""
    for i in range(columns.ptr.size - 1):
        for _ in range(2):  # a second time, because values are cut off at their bounds
            total, room = columns.fixed[i], 0.0
            for e in range(columns.ptr[i], columns.ptr[i + 1]):
                j = columns.cols[e]
                total += box.coef[j] * value[e]
                if box.lower[j] < value[e] < box.upper[j]:
                    room += box.coef[j] ** 2
            excess = max(total - box.high, 0.0) + min(total - box.low, 0.0)
            if excess == 0.0 or room == 0.0:
                break
            for e in range(columns.ptr[i], columns.ptr[i + 1]):
                j = columns.cols[e]
                if box.lower[j] < value[e] < box.upper[j]:
                    value[e] = min(max(value[e] - excess / room * box.coef[j], box.lower[j]), box.upper[j])


@kernel
def tangent(
    rows: np.ndarray,
    columns: Columns,
    used: np.ndarray,
    coef: np.ndarray,
    P: np.ndarray,
    lin: np.ndarray,
    shift: np.ndarray,
    slack: np.ndarray,
) -> np.ndarray:
    """lin_e + p_ij for the entries in use, minus m coef_j, with the m for which shift.coef.x = slack m; else zero."""
    out = np.zeros(used.size)
    for b in range(rows.size):
        first, last = columns.ptr[rows[b]], columns.ptr[rows[b] + 1]
        total, count = 0.0, slack[rows[b]]
        for e in range(first, last):
            if used[e]:
                j = columns.cols[e]
                out[e] = lin[e] + P[b, j]
                total += shift[e] * coef[j] * out[e]
                count += shift[e] * coef[j] * coef[j]
        if count > 0.0:
            for e in range(first, last):
                if used[e]:
                    out[e] -= total / count * coef[columns.cols[e]]
    return out


@kernel
def project_points(rows: np.ndarray, columns: Columns, used: np.ndarray, value: np.ndarray, box: Box) -> None:
    """Project the values in use of each of the rows onto the box with one constraint, the others fixed, in place."""
    wide = 1
    for i in rows:
        wide = max(wide, columns.ptr[i + 1] - columns.ptr[i])
    y, new = np.empty(wide), np.empty(wide)
    lower, upper, coef = np.empty(wide), np.empty(wide), np.empty(wide)
    for i in rows:
        m, fixed = 0, columns.fixed[i]
        for e in range(columns.ptr[i], columns.ptr[i + 1]):
            j = columns.cols[e]
            if used[e]:
                y[m], lower[m], upper[m], coef[m] = value[e], box.lower[j], box.upper[j], box.coef[j]
                m += 1
            else:
                fixed += box.coef[j] * value[e]
        nearest(y[:m], lower[:m], upper[:m], coef[:m], box.low - fixed, box.high - fixed, 0.0, new)
        m = 0
        for e in range(columns.ptr[i], columns.ptr[i + 1]):
            if used[e]:
                value[e] = new[m]
                m += 1


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
        active = used[first:last].copy()
        count, total = active.sum(), weight[first:last][active].sum()
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
