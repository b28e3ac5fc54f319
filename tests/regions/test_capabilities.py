"""Capabilities: the protocol describes the methods that regions have, and ``has`` notices when one is absent."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from regions_list import REGIONS

import skspo as sk
from skspo.regions.capabilities import CAPABILITIES, Capabilities, equalities_of, has, missing
from skspo.solvers import SOLVERS

VIEWS = {
    "box": sk.Box().with_rows({"upper": np.ones((2, 3))}, 2, 3),
    "polyhedron": sk.Polyhedron(A_ub=[[1, 1]], b_ub=[1]).with_rows({"b_ub": [1, 2]}, 2, 2),
    "knapsack": sk.Knapsack([3, 4], 5).with_rows({"capacity": [5, 6]}, 2, 2),
}


@pytest.mark.parametrize("region", [*(case.region for case in REGIONS), *VIEWS.values()], ids=lambda r: r.label)
def test_methods_have_the_signatures_of_the_protocol(region):
    for name in CAPABILITIES:
        if has(region, name):
            given, promised = inspect.signature(getattr(region, name)), inspect.signature(getattr(Capabilities, name))
            wanted = list(promised.parameters.values())[1:]  # without self
            assert list(given.parameters.values()) == wanted, name
            assert given.return_annotation == promised.return_annotation, name


def test_a_capability_may_come_and_go_with_a_parameter():
    region = sk.Knapsack(np.ones(40), 20)
    for integer in (True, False, True):
        region.set_params(integer=integer)
        assert has(region, "standard_form") is not integer
        assert missing(region, ["standard_form", "argmin"]) == ["standard_form"] * integer


def test_a_property_that_raises_means_that_the_capability_is_absent():
    class Sometimes(sk.Simplex):
        usable = False

        @property
        def repair(self):
            if not self.usable:
                raise AttributeError("not now")
            return super().repair

    region = Sometimes()
    assert has(region, "equalities") and not has(region, "repair")
    region.usable = True
    assert_array_equal(region.repair(np.array([[2.0, 2.0]])), [[0.5, 0.5]])
    assert has(region, "repair")


def test_solvers_require_capabilities_that_exist():
    assert all(set(solver.requires) <= set(CAPABILITIES) for solver in SOLVERS.values())
    with pytest.raises(ValueError, match=r"lacks: standard_form \(the region as"):
        sk.SPOPlusRegressor(sk.LqBall(), solver="interior-point").fit(np.eye(3), np.eye(3))


def test_equalities_of_a_region_that_knows_none():
    assert equalities_of(sk.MixedInteger(bounds=(0, 1)), 3).shape == (0, 3)
    assert_array_equal(np.abs(equalities_of(sk.Simplex(), 4)), np.full((1, 4), 0.5))
