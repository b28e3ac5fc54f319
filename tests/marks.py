"""Marks and parameters for tests of all parts."""

import os

import pytest
import sklearn

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE", "ci") != "ci"  # more of the generated problems, see CONTRIBUTING.md

routes_score_of_pipelines = pytest.mark.skipif(
    sklearn.__version__.startswith("1.6."),
    reason="scikit-learn 1.6 passes no metadata on to the score of a pipeline",
)


def rest_is_slow(values, quick, ids=None):
    """Parameters of a test of which the first ``quick`` run always; the others have the mark ``slow``."""
    names = [None if ids is None else ids(value) for value in values]
    marks = [[] if k < quick else [pytest.mark.slow] for k in range(len(names))]
    return [pytest.param(value, marks=mark, id=name) for value, mark, name in zip(values, marks, names, strict=True)]


def pairs(values, others, each):
    """Every value with ``each`` of the others, by turns: much fewer than all pairs, but none of them is left out."""
    step = -(-len(others) // each)
    return [(value, others[(k + j * step) % len(others)]) for k, value in enumerate(values) for j in range(each)]
