"""RegionDisplay and LossDisplay show what the oracle and the losses compute."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pictures import apart, overlaps, seen_by, sizes_on_page
from sklearn.linear_model import LinearRegression

from skspo import (
    Box,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    L1Ball,
    LogBarrierSimplex,
    LqBall,
    Markowitz,
    Polyhedron,
    Simplex,
    SPOPlusRegressor,
    TopK,
    spo_loss,
    spo_plus_loss,
)
from skspo.datasets import make_cost_sensitive_classification
from skspo.plotting import LossDisplay, RegionDisplay
from skspo.plotting._common import COLORS, find_jumps, with_gaps
from skspo.plotting.region import WHEEL


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


RISK = [[1.0, 0.2, 0.0], [0.2, 1.0, 0.1], [0.0, 0.1, 1.0]]

#: region, number of variables, directions in which it has an extent, number of jumps of the best decision
REGIONS = [
    (Simplex(), 3, 2, 3),
    (Simplex(sense="max"), 3, 2, 3),
    (TopK(2), 3, 2, 3),
    (EntropySimplex(-0.8), 3, 2, 0),
    (LogBarrierSimplex(), 3, 2, 0),
    (Markowitz(RISK, 0.5), 3, 2, 0),
    (Markowitz(RISK, 0.5, budget="at_most"), 3, 3, 0),
    (Box(), 2, 2, 4),
    (Box([0.0, 0.0], [1000.0, 1.0]), 2, 2, 4),
    (Box(), 3, 3, 6),
    (L1Ball(), 2, 2, 4),
    (L1Ball(), 3, 3, 6),
    (LqBall(q=1.5), 2, 2, 0),
    (Ellipsoid(), 2, 2, 0),
    (Ellipsoid(), 3, 3, 0),
    (Knapsack([2, 3, 4], 6), 3, 3, 5),
    (Knapsack([2, 3], 4, integer=False), 2, 2, 5),
    (Polyhedron([[1.0, 2.0]], [2.0]), 2, 2, 3),
]


@pytest.mark.parametrize("region, d, k, n_jumps", REGIONS, ids=lambda value: str(value).replace("\n", ""))
def test_region_is_drawn_in_its_own_dimension(region, d, k, n_jumps):
    display = RegionDisplay.from_region(region, n_dim=d, n_angles=120)
    assert display.basis.shape == (k, d)
    np.testing.assert_allclose(display.basis @ display.basis.T, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(display.decisions, region.argmin(display.costs))
    np.testing.assert_allclose(np.linalg.norm(display.costs, axis=1), 1.0)
    # The costs turn once around a circle: the angle between two of them is that of their positions.
    np.testing.assert_allclose(display.costs @ display.costs[0], np.cos(display.angles - display.angles[0]), atol=1e-12)
    assert len(display.jumps.at) == n_jumps
    for j, line in enumerate(display.lines_):
        x, y = line.get_data()
        np.testing.assert_array_equal(y[np.isin(x, np.degrees(display.angles))], display.decisions[:, j])
        assert np.isnan(y).sum() == n_jumps
    assert min(sizes_on_page(display.figure_)) >= 10
    assert not overlaps(display.axes_[1])


def test_costs_of_bodies_have_no_ties():
    # With a cost of zero every value of a variable would be best.
    display = RegionDisplay.from_region(Box(), n_dim=3, n_angles=120)
    assert np.abs(display.costs).min() > 1e-4
    # Six of the eight corners, all but those where the costs of all variables have the same sign.
    assert {tuple(w) for w in display.decisions} == {
        (a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1) if 0 < a + b + c < 3
    }


@pytest.mark.parametrize("region, sign", [(Box(), -1.0), (Box(sense="max"), 1.0)])
def test_arrows_are_in_the_normal_cone(region, sign):
    display = RegionDisplay.from_region(region, n_dim=2)
    (arrows,) = (c for c in display.ax_.collections if hasattr(c, "U"))
    starts, steps = arrows.get_offsets(), np.stack([arrows.U, arrows.V], axis=1)
    assert len(starts) == 24
    # At a corner of the square, arrows point away from its middle.
    assert ((starts - 0.5) * steps > 0).all()
    shown = np.arange(24) * len(display.angles) // 24
    np.testing.assert_allclose(steps / np.linalg.norm(steps, axis=1, keepdims=True), sign * display.costs[shown])


def test_jumps_are_found_where_they_are():
    # The best corner of the triangle (0, 0), (1, 0), (0, 1) changes where c_1 = c_2 < 0, and where one of them is 0.
    display = RegionDisplay.from_region(Polyhedron([[1.0, 1.0]], [1.0]), n_angles=100)
    at = np.degrees(display.jumps.at)
    np.testing.assert_allclose(np.minimum(at, np.abs(at - 360.0)), [90.0, 135.0, 0.0], atol=1e-2)
    np.testing.assert_allclose(display.jumps.before, [[0, 0], [1, 0], [0, 1]], atol=1e-6)
    np.testing.assert_allclose(display.jumps.after, [[1, 0], [0, 1], [0, 0]], atol=1e-6)


def test_steep_functions_do_not_jump():
    x = np.linspace(-1.0, 1.0, 50)

    def steep(t):
        return np.tanh(200.0 * t)[:, None]

    def step(t):
        return np.sign(t - 0.123)[:, None] + 0.1 * t[:, None]

    assert find_jumps(steep, x, steep(x)).at.size == 0
    found = find_jumps(step, x, step(x))
    np.testing.assert_allclose(found.at, [0.123], atol=1e-4)
    t, y = with_gaps(x, step(x), found)
    assert (np.diff(t) >= 0).all() and len(t) == 53
    inside = np.abs(np.diff(y[:, 0]))
    assert inside[np.isfinite(inside)].max() < 0.01  # no slope where it jumps


def test_corners_are_labeled_inside_the_axes():
    for region, d in ((Box(), 2), (L1Ball(), 2), (Knapsack([2, 3], 4, integer=False), 2)):
        display = RegionDisplay.from_region(region, n_dim=d)
        display.figure_.canvas.draw()
        frame = display.ax_.get_window_extent()
        for text in display.ax_.texts:
            box = text.get_window_extent()
            assert frame.x0 < box.x0 and box.x1 < frame.x1 + 15 and frame.y0 < box.y0 and box.y1 < frame.y1
    labels = {text.get_text() for text in RegionDisplay.from_region(Box(), n_dim=2).ax_.texts}
    assert labels == {"(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"}


def test_simplex_stands_on_its_side():
    display = RegionDisplay.from_region(Simplex(), n_dim=3)
    corners = np.eye(3) @ display.basis.T
    assert corners[2, 1] > corners[0, 1] == pytest.approx(corners[1, 1])
    assert corners[0, 0] > corners[2, 0] > corners[1, 0]


def test_region_on_given_axes():
    _, axes = plt.subplots(1, 2)
    display = RegionDisplay.from_region(Box(), n_dim=2, ax=axes)
    assert list(display.axes_) == list(axes) and display.figure_ is axes[0].figure and display.ax_ is axes[0]
    alone = display.plot(ax=plt.subplots()[1])
    assert len(alone.axes_) == 1 and not alone.lines_
    with pytest.raises(ValueError, match="one Axes or two"):
        display.plot(ax=plt.subplots(3)[1])
    with pytest.raises(ValueError, match="projection='3d'"):
        RegionDisplay.from_region(Box(), n_dim=3, ax=axes)


@pytest.mark.parametrize("vision", ["normal", "protanopia", "deuteranopia", "tritanopia"])
def test_colors_can_be_told_apart(vision):
    assert apart(seen_by(COLORS[:4], vision)) > 15
    assert apart(seen_by(WHEEL, vision)) > 15


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


def test_jumps_of_the_loss_are_drawn_as_jumps():
    # The predictions are (1 - 2 t, 2 t): the decision changes at t = 1/4, and the loss from 1 to 0.
    display = LossDisplay.from_predictions([0.0, 1.0], [1.0, 0.0], [-1.0, 2.0], Simplex(), limits=(0.0, 1.0))
    assert display.jumps.at == pytest.approx([0.25], abs=1e-6)
    assert (display.jumps.before.item(), display.jumps.after.item()) == (1.0, 0.0)
    t, spo = display.lines_[0].get_data()
    assert set(spo[~np.isnan(spo)]) == {0.0, 1.0}
    (gap,) = np.flatnonzero(np.isnan(spo))
    assert spo[gap - 1] == 1.0 and spo[gap + 1] == 0.0 and t[gap - 1] == t[gap + 1] == pytest.approx(0.25, abs=1e-6)
    # The other line has no gap: support(c - 2 c_hat) + 2 c_hat.w - z = max(4 t - 2, 1 - 4 t) + 2 - 4 t.
    t, plus = display.lines_[1].get_data()
    np.testing.assert_allclose(plus, np.maximum(0.0, 3.0 - 8.0 * t), atol=1e-9)
    smooth = LossDisplay.from_predictions([0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [-1.0, 2.0, 3.0], EntropySimplex(-0.8))
    assert smooth.jumps.at.size == 0 and not np.isnan(smooth.lines_[0].get_ydata()).any()


def test_losses_between_two_models():
    X, C = make_cost_sensitive_classification(80, n_classes=4, degree=2, random_state=0)
    models = {"least squares": LinearRegression().fit(X, C), "SPO+": SPOPlusRegressor(Simplex(), alpha=0.1).fit(X, C)}
    display = LossDisplay.from_estimators(models, X, C, sample=-3, limits=(0.0, 1.0))
    assert display.ax_.get_title() == "sample 77: SPO and SPO+ loss"
    for k, model in ((0, models["least squares"]), (-1, models["SPO+"])):
        c_hat = model.predict(X[77:78])
        assert display.spo[k] == pytest.approx(spo_loss(C[77:78], c_hat, Simplex()))
        assert display.spo_plus[k] == pytest.approx(spo_plus_loss(C[77:78], c_hat, Simplex()))
    ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert ticks == ["least squares\n(t = 0)", "SPO+\n(t = 1)"]
    assert not overlaps(display.ax_) and min(sizes_on_page(display.figure_)) >= 10
    with pytest.raises(ValueError, match="two estimators"):
        LossDisplay.from_estimators({"one": models["SPO+"]}, X, C)
    with pytest.raises(ValueError, match="one of the 80"):
        LossDisplay.from_estimators(models, X, C, sample=80)


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
