"""RegionDisplay and LossDisplay show what the oracle and the losses compute."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skspo import Box, Ellipsoid, EntropySimplex, Knapsack, Polyhedron, Simplex, TopK, spo_loss, spo_plus_loss
from skspo.plotting import LossDisplay, RegionDisplay


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    "region, n_dim, k",
    [
        (Simplex(), 3, 2),
        (TopK(2), 3, 2),
        (EntropySimplex(-0.8), 3, 2),
        (Box(), 2, 2),
        (Ellipsoid(), 2, 2),
        (Box(), 3, 3),
        (Knapsack([2, 3, 4], 6), None, 3),
        (Polyhedron([[1.0, 2.0]], [2.0]), None, 2),
    ],
)
def test_region_is_drawn_in_its_own_dimension(region, n_dim, k):
    display = RegionDisplay.from_region(region, n_dim=n_dim, n_angles=60)
    display.figure_.canvas.draw()
    d = n_dim or region.n_dim
    assert display.basis.shape == (k, d)
    np.testing.assert_allclose(display.basis @ display.basis.T, np.eye(k), atol=1e-12)
    turning = np.stack([np.cos(display.angles), np.sin(display.angles)], axis=1) @ display.basis[:2]
    np.testing.assert_allclose(display.decisions, region.argmin(turning))
    for j, line in enumerate(display.axes_[1].lines):
        np.testing.assert_array_equal(line.get_ydata(), display.decisions[:, j])


def test_region_on_given_axes():
    _, axes = plt.subplots(1, 2)
    display = RegionDisplay.from_region(Box(), n_dim=2, axes=tuple(axes))
    assert display.axes_ == list(axes) and display.figure_ is axes[0].figure
    labels = {text.get_text() for text in axes[0].texts}
    assert labels == {"(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"}


@pytest.mark.parametrize(
    "region, n_dim, message",
    [
        (Simplex(), 5, "2 or 3 decision variables, got 5"),
        (Simplex(), 2, "a point or a segment"),
        (Box(1.0, 1.0), 2, "a point or a segment"),
    ],
)
def test_regions_that_cannot_be_drawn(region, n_dim, message):
    with pytest.raises(ValueError, match=message):
        RegionDisplay.from_region(region, n_dim=n_dim)


@pytest.mark.parametrize("region", [Simplex(), Simplex(sense="max"), EntropySimplex(-0.8), Knapsack([2, 3, 4], 6)])
def test_losses_are_those_of_the_metrics(region):
    rng = np.random.default_rng(0)
    c, first, second = rng.normal(size=(3, 3))
    display = LossDisplay.from_predictions(c, first, second, region, n_points=51)
    display.figure_.canvas.draw()
    for k in (0, 13, 50):
        c_hat = first + display.positions[k] * (second - first)
        assert display.spo[k] == pytest.approx(spo_loss([c], [c_hat], region), abs=1e-9)
        assert display.spo_plus[k] == pytest.approx(spo_plus_loss([c], [c_hat], region))
    assert (np.diff(display.spo_plus, 2) > -1e-9).all()  # convex


def test_changes_of_the_decision_are_marked():
    # The predictions are (1 - 2 t, 2 t): the decision changes at t = 1/4.
    display = LossDisplay.from_predictions([0.0, 1.0], [1.0, 0.0], [-1.0, 2.0], Simplex(), limits=(0.0, 1.0))
    assert display.changes == pytest.approx([0.25], abs=1e-3)
    smooth = LossDisplay.from_predictions([0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [-1.0, 2.0, 3.0], EntropySimplex(-0.8))
    assert smooth.changes.size == 0


@pytest.mark.parametrize(
    "c, first, message",
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0], "same shape"),
        ([[1.0, 2.0]] * 2, [[1.0, 2.0]] * 2, "one sample"),
        ([1.0, np.nan], [1.0, 2.0], "NaN"),
    ],
)
def test_losses_of_bad_input(c, first, message):
    with pytest.raises(ValueError, match=message):
        LossDisplay.from_predictions(c, first, first, Simplex())
