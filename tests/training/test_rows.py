"""Rows of training data: equal ones are merged, and passes over chunks must agree."""

import numpy as np
import pytest
from solver_problems import small_data

from skspo._training.in_memory import merge_rows
from skspo._training.rows import _together
from skspo.data.chunks import Chunk


def test_repeated_rows_are_weights_bit_for_bit():
    X, C = small_data(4)
    rng = np.random.default_rng(1)
    repeats = rng.integers(0, 4, size=len(X))
    order = rng.permutation(repeats.sum())
    X_many, C_many = np.repeat(X, repeats, axis=0)[order], np.repeat(C, repeats, axis=0)[order]
    many, many_weight = merge_rows(None, X_many, C_many)
    few, few_weight = merge_rows(repeats.astype(float), X, C)
    np.testing.assert_array_equal(X_many[many], X[few])
    np.testing.assert_array_equal(C_many[many], C[few])
    np.testing.assert_array_equal(many_weight, few_weight)
    assert many_weight.sum() == repeats.sum()


def test_rows_with_equal_keys_are_still_told_apart():
    # Two kinds of rows that the sorting key cannot tell apart, alternating.
    ratio = np.cos(1.0) / np.cos(2.0)
    kinds = np.array([[1.0, 0.0], [0.0, ratio]])
    key = (kinds * np.cos([1.0, 2.0])).sum(axis=1)
    assert key[0] == key[1]
    rows, weight = merge_rows(None, kinds[[0, 1, 0, 1, 0]])
    assert len(rows) == 2
    assert sorted(weight) == [2.0, 3.0]


def test_chunks_that_are_missing_in_a_later_pass():
    chunks = [Chunk(np.zeros((n, 2)), np.zeros((n, 3))) for n in (4, 5)]
    assert [size for _, size in _together(chunks, (4, 5))] == [4, 5]
    for later in (chunks[:1], [], [*chunks, chunks[0]], chunks[::-1]):
        with pytest.raises(ValueError, match="same rows in the"):
            list(_together(later, (4, 5)))
