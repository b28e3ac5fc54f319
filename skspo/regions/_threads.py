"""Decisions for many rows by several threads, each with a block of consecutive rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .._utils.threads import run_together
from .capabilities import Memory

if TYPE_CHECKING:
    from .base import Region

#: numbers (rows times costs) that are worth a thread: below, the overhead of the steps of an oracle dominates
BLOCK_NUMBERS = 2**14


def solve_blocks(region: Region, C: np.ndarray, memory: Memory | None, n_threads: int) -> np.ndarray:
    """Minimise each row of costs, in at most ``n_threads`` threads.

    Parameters
    ----------
    region : Region
        Its decision for a row does not depend on the other rows (``Region.oracle_uses_threads``).
    C : ndarray of shape (n, d)
        Costs to be minimised.
    memory : dict or None
        As in ``Region.solve_min``, with arrays that have one entry per row.
    n_threads : int

    Returns
    -------
    W : ndarray of shape (n, d)
    """
    n = C.shape[0]
    n_blocks = max(min(n_threads, C.size // BLOCK_NUMBERS, n), 1)
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
