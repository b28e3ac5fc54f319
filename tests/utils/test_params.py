"""Checks of parameters: what they allow, and what their errors say."""

from fractions import Fraction

import numpy as np
import pytest

from skspo._utils.params import BOOL, N_JOBS, TIME_LIMIT, check_params, integer, number, one_of, optional


@pytest.mark.parametrize(
    "check, allowed, refused, words",
    [
        (
            number(),
            [-1e300, 0, np.float32(2), Fraction(1, 3)],
            [np.nan, np.inf, True, "1", None, 1j],
            "a finite number",
        ),
        (number(0.0), [0, 5.0], [-1e-300], "a finite number of at least 0"),
        (number(0.0, 1.0), [0, 1], [-0.1, 1.1], "a finite number between 0 and 1"),
        (number(above=0.0, high=1.0), [1e-300, 1], [0, 1.1], "a finite number above 0 and at most 1"),
        (number(above=0.0, below=0.5), [0.4], [0, 0.5], "a finite number above 0 and below 0.5"),
        (integer(2), [2, np.int8(7)], [1, 2.0, True, np.bool_(True), None], "an integer of at least 2"),
        (optional(integer(0)), [None, 0], [-1, "None"], "None or an integer of at least 0"),
        (one_of("a", "b"), ["a", np.str_("b")], ["c", None, np.zeros(2)], "'a' or 'b'"),
        (one_of("a", "b", "c"), ["c"], [["a"]], "one of 'a', 'b', 'c'"),
        (BOOL, [True, np.bool_(False)], [0, 1, "no", None], "True or False"),
        (N_JOBS, [None, -1, 3], [0, 1.0, "two"], "None or an integer other than 0"),
        (TIME_LIMIT, [None, 1, np.inf], [0, -1.0, np.nan, True, "1"], "None or a positive number of seconds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_allowed(check, allowed, refused, words):
    assert check.expected == words
    for value in allowed:
        check("it", value)
    for value in refused:
        with pytest.raises(ValueError) as caught:
            check("it", value)
        assert str(caught.value) == f"it must be {words}, got {value!r}."


def test_an_error_may_say_why():
    with pytest.raises(ValueError, match=r"^beta must be a finite number above 0 \(a share\), got -1\.$"):
        number(above=0.0)("beta", -1, "a share")


def test_checks_of_base_classes_hold_too():
    class Base:
        _parameter_checks = {"tol": number(0.0), "absent": BOOL}

        def __init__(self, tol, size):
            self.tol, self.size = tol, size

    class Derived(Base):
        _parameter_checks = {"size": integer(1)}

    check_params(Derived(0.1, 3))
    with pytest.raises(ValueError, match="tol must be"):
        check_params(Derived(-1, 0))
    with pytest.raises(ValueError, match="size must be"):
        check_params(Derived(0.1, 0))
