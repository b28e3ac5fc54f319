"""Comparison of nested objects, to the last bit, and of fits, to the certified gap."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal


def assert_same(one, other, path="it"):
    """The same types and values down to the last bit, for any nesting."""
    assert type(one) is type(other), path
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, path
        assert_array_equal(one, other, err_msg=path, strict=True)
    elif isinstance(one, dict):
        assert list(one) == list(other), path
        for key in one:
            assert_same(one[key], other[key], f"{path}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), path
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{path}[{k}]")
    elif isinstance(one, np.random.RandomState):
        assert_same(one.get_state(), other.get_state(), path)
    elif hasattr(one, "__dict__") and not callable(one):
        assert_same(kept(one), kept(other), path)
    else:
        assert one == other or one is other or (one != one and other != other), (path, one, other)


def kept(value):
    """Attributes, without caches."""
    return {name: item for name, item in vars(value).items() if not name.endswith("_cache")}


def assert_same_fit(one, other):
    """Both are certified to 1e-6, so neither objective can be better by more than that."""
    for model in (one, other):
        assert model.duality_gap_ <= 1e-6
    assert_allclose(other.objective_, one.objective_, rtol=1e-6)
