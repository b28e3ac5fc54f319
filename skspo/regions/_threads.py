"""Decisions for many rows by several threads, each with a block of consecutive rows.

Every operation of NumPy gives up the interpreter lock and asks for it again.  Threads therefore gain where an oracle
consists of a few operations on large arrays (sorting, exponentials, tables), and only for large blocks.  The dynamic
program of paths is a long sequence of short operations: two threads were measured to take as long as one, or longer.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .._utils.threads import run_together
from .capabilities import Memory

if TYPE_CHECKING:
    from .base import Region

#: costs that are worth a thread of their own if an oracle sorts them or computes their exponentials
THREAD_NUMBERS = 2**16


def count_blocks(region: Region, C: np.ndarray) -> int:
    """Return the number of blocks that pay, at most the number of the region's threads."""
    numbers = region._thread_numbers(C.shape[1])
    return 1 if numbers is None else min(region._n_threads, C.size // numbers, C.shape[0])


def solve_blocks(region: Region, C: np.ndarray, memory: Memory | None, n_blocks: int) -> np.ndarray:
    """Minimise each row of costs, in ``n_blocks`` threads.

    Parameters
    ----------
    region : Region
        Its decision for a row does not depend on the other rows (``Region._thread_numbers``).
    C : ndarray of shape (n, d)
        Costs to be minimised.
    memory : dict or None
        As in ``Region.solve_min``, with arrays that have one entry per row.
    n_blocks : int
        At most as many as there are rows.

    Returns
    -------
    W : ndarray of shape (n, d)
    """
    n = C.shape[0]
    blocks = [slice(a, b) for a, b in pairwise(n * k // n_blocks for k in range(n_blocks + 1))]
    memories: list[Memory] = [{key: array[rows] for key, array in (memory or {}).items()} for rows in blocks]
    one_thread = region.with_threads(1)
    one_thread._data(C.shape[1])  # once, and not in every thread
    W = np.empty(C.shape)

    def task(rows: slice, own: Memory) -> Callable[[], None]:
        def solve() -> None:
            W[rows] = one_thread.take(rows).solve_min(C[rows], own)

        return solve

    run_together([task(rows, own) for rows, own in zip(blocks, memories, strict=True)])
    if memory is not None:
        memory.update({key: np.concatenate([own[key] for own in memories]) for key in memories[0]})
    return W
