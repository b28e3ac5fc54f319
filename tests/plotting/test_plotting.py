"""Displays show the numbers of the metrics, on the given Axes."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest
from marks import rest_is_slow
from pictures import overlaps, sizes_on_page
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import (
    Assignment,
    Box,
    EntropySimplex,
    Knapsack,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    TwoStageRegressor,
    make_spo_scorer,
    spo_loss,
    spo_plus_loss,
    spo_plus_path,
)
from skspo.datasets import make_cost_sensitive_classification, make_knapsack, make_portfolio, make_shortest_path
from skspo.plotting import ConvergenceDisplay, DecisionDisplay, RegretDisplay, RegularizationPathDisplay
from skspo.plotting.decisions import GraphPositions, side_by_side


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def paths():
    X, C = make_shortest_path(160, grid=(3, 4), degree=6, noise=0.5, random_state=0)
    region = ShortestPath.grid(3, 4)
    models = {"least squares": TwoStageRegressor(region=region), "SPO+": SPOPlusRegressor(region)}
    for model in models.values():
        model.fit(X[:80], C[:80])
    return models, X[80:], C[80:], region


def drawn(ax):
    """Render the figure: some mistakes only occur then."""
    ax.figure.canvas.draw()
    return ax


def test_regret_boxes_show_the_regrets(paths):
    models, X, C, region = paths
    display = RegretDisplay.from_estimators(models, X, C, max_points=30)
    drawn(display.ax_)
    assert display.figure_ is display.ax_.figure
    labels = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    for k, (name, model) in enumerate(models.items()):
        regret = spo_loss(C, model.predict(X), region, per_sample=True)
        np.testing.assert_array_equal(display.regrets[name], regret)
        assert display.boxes_["medians"][k].get_ydata()[0] == pytest.approx(np.median(regret))
        assert display.boxes_["means"][k].get_ydata()[0] == pytest.approx(regret.mean())
        assert labels[k] == f"{name}\nmean {regret.mean():.3g}"
        assert len(display.points_[k].get_offsets()) == 30
    # One line per shown sample, through its regret under each model.
    lines = display.pairs_.get_segments()
    assert len(lines) == 30
    np.testing.assert_allclose(
        [line[1, 1] for line in lines], np.asarray(display.points_[1].get_offsets())[:, 1], atol=1e-12
    )


def test_regrets_above_the_axis_are_counted():
    regret = np.append(np.linspace(0.0, 1.0, 197), [50.0, 60.0, 70.0])
    display = RegretDisplay(regrets={"heavy": regret, "light": regret.clip(max=1.0)}).plot()
    assert drawn(display.ax_).get_ylim()[1] < 50
    assert [text.get_text() for text in display.ax_.texts] == ["3 above"]
    everything = display.plot(in_view=1.0)
    assert everything.ax_.get_ylim()[1] > 70 and not everything.ax_.texts


def test_normalized_regret_has_the_score_as_its_mean(paths):
    models, X, C, _ = paths
    display = RegretDisplay.from_estimator(models["SPO+"], X, C, normalize=True, name="mine")
    assert display.regrets["mine"].mean() == pytest.approx(-models["SPO+"].score(X, C))
    assert display.pairs_ is None


def test_regret_of_predictions_and_of_estimators_without_a_region(paths):
    models, X, C, region = paths
    plain = LinearRegression().fit(X, C)
    with pytest.raises(ValueError, match="no region_"):
        RegretDisplay.from_estimator(plain, X, C)
    a = RegretDisplay.from_estimator(plain, X, C, region=region)
    b = RegretDisplay.from_predictions({"LinearRegression": plain.predict(X)}, C, region)
    np.testing.assert_array_equal(a.regrets["LinearRegression"], b.regrets["LinearRegression"])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SPOPlusRegressor(region, alpha=0.1)),
        {"spoplusregressor__alpha": [0.1]},
        scoring=make_spo_scorer(region),
        cv=2,
    ).fit(X, C)
    assert "GridSearchCV" in RegretDisplay.from_estimator(search, X, C).regrets
    with pytest.raises(TypeError, match="dictionary"):
        RegretDisplay.from_estimators(models["SPO+"], X, C)


def test_displays_draw_on_the_given_axes(paths):
    models, X, C, _ = paths
    figure, axes = plt.subplots(1, 3)
    assert RegretDisplay.from_estimators(models, X, C, ax=axes[0]).ax_ is axes[0]
    assert DecisionDisplay.from_estimator(models["SPO+"], X, C, ax=axes[1]).ax_ is axes[1]
    gap = ConvergenceDisplay.from_estimator(models["SPO+"], ax=axes[2])
    assert gap.ax_ is axes[2] and len(gap.axes_) == 1
    assert not gap.objective_lines_ and len(gap.gap_lines_) == 1
    assert len(plt.get_fignums()) == 1
    figure.canvas.draw()


def test_paths_on_a_grid(paths):
    models, X, C, region = paths
    model = models["least squares"]
    display = DecisionDisplay.from_estimator(model, X, C, sample=5)
    drawn(display.ax_)
    W, best = model.decide(X)[5], region.argmin(C)[5]
    assert len(display.chosen_.get_segments()) == W.sum() == 5
    np.testing.assert_allclose(display.best_.get_segments()[0], GraphPositions.of(region, None).ends[best > 0][0])
    assert display.ax_.get_title().startswith(f"sample 5: cost {C[5] @ W:.3g},")
    assert not overlaps(display.ax_) and min(sizes_on_page(display.figure_)) >= 10
    np.testing.assert_allclose(display.regret, spo_loss(C, model.predict(X), region, per_sample=True), atol=1e-12)
    with pytest.raises(ValueError, match="sample must be one of the 80"):
        display.plot(sample=80)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (1, 5), (2, 2)])
def test_grid_positions(shape):
    ends = GraphPositions.of(ShortestPath.grid(*shape), None).ends
    along = ends[:, 1] - ends[:, 0]
    # Every edge goes one step to the right or one step down.
    assert {tuple(step) for step in along} <= {(1.0, 0.0), (0.0, -1.0)}
    assert np.ptp(ends[:, :, 0]) == shape[1] - 1 and np.ptp(ends[:, :, 1]) == shape[0] - 1


def test_graphs_without_positions_have_the_spring_layout():
    graph = nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])
    region = ShortestPath(graph, "a", "c")
    C = np.array([[1.0, 1.0, 2.0]])
    display = DecisionDisplay.from_predictions(C, C, region)
    drawn(display.ax_)
    assert {text.get_text() for text in display.ax_.texts} == {"a", "b", "c"}
    found = GraphPositions.of(region, None)
    expected = nx.spring_layout(nx.Graph(graph), seed=0, iterations=200)
    for node, at in expected.items():
        np.testing.assert_array_equal(found.pos[node], at)
    again = GraphPositions.of(ShortestPath(list(graph.edges), "a", "c"), None)
    np.testing.assert_array_equal(again.ends, found.ends)
    with pytest.raises(ValueError, match="Pass pos="):
        display.plot(pos={"a": (0, 0)})
    pos = {"a": (0, 0), "b": (1, 0), "c": (2, 0)}
    drawn(DecisionDisplay.from_predictions(C, C, region, pos=pos).ax_)
    nx.set_node_attributes(graph, pos, "pos")
    display = DecisionDisplay.from_predictions(C, C, ShortestPath(graph, "a", "c"))
    assert len(display.chosen_.get_segments()) == 2
    # The two directions between a and b are apart, on opposite sides; the one-way street stays where it is.
    lanes = side_by_side(GraphPositions.of(region, pos).ends)
    assert lanes[0, 0, 1] == -lanes[1, 0, 1] != 0
    np.testing.assert_array_equal(lanes[2], [[1, 0], [2, 0]])


def test_assignment_is_a_matrix():
    rng = np.random.default_rng(0)
    C, C_hat = rng.uniform(1, 9, size=(2, 4, 6))
    region = Assignment(2, 3)
    display = DecisionDisplay.from_predictions(C_hat, C, region, sample=-1)
    (image,) = display.ax_.images
    np.testing.assert_array_equal(image.get_array(), C[3].reshape(2, 3))
    for marks, costs in ((display.chosen_, C_hat), (display.best_, C)):
        pairs = {(int(row), int(column)) for column, row in marks.get_offsets()}
        assert pairs == set(region.chosen(costs[3:])[0])
    assert display.ax_.get_title().startswith("sample 3: ")
    assert not overlaps(display.ax_) and min(sizes_on_page(display.figure_)) >= 10
    names = [f"{worker} -> {task}" for worker in ("ann", "bob") for task in ("cook", "wash", "iron")]
    display = DecisionDisplay.from_predictions(C_hat, C, region, names=names)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["ann", "bob"]
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["cook", "wash", "iron"]
    available = np.ones((4, 6), dtype=bool)
    available[:, 1] = False
    display = DecisionDisplay.from_predictions(C_hat, C, region, region_params={"available": available})
    np.testing.assert_array_equal(display.ax_.images[0].get_array().mask, [[False, True, False], [False] * 3])


def test_simplex_counts():
    X, C = make_cost_sensitive_classification(120, n_classes=4, degree=2, random_state=0)
    model = SPOPlusRegressor(Simplex()).fit(X, C)
    display = DecisionDisplay.from_estimator(model, X, C, labels=["no", "a bit", "more", "yes"])
    counts = display.best_.get_array()
    chosen, best = model.decide(X).argmax(axis=1), C.argmin(axis=1)
    assert counts.sum() == 120
    assert counts[2, 3] == ((best == 2) & (chosen == 3)).sum()
    np.testing.assert_array_equal(counts.sum(axis=0), np.bincount(chosen, minlength=4))
    assert [tick.get_text() for tick in drawn(display.ax_).get_xticklabels()] == ["no", "a bit", "more", "yes"]
    with pytest.raises(ValueError, match="4 names"):
        display.plot(labels=["too", "few"])


@pytest.mark.parametrize("n_constraints", rest_is_slow([1, 2], 1))
def test_knapsack_items(n_constraints):
    X, C, weights = make_knapsack(40, 5, 10, n_constraints=n_constraints, degree=3, random_state=0, return_weights=True)
    region = Knapsack(weights, 0.4 * weights.sum(axis=-1))
    model = TwoStageRegressor(region=region).fit(X, C)
    display = DecisionDisplay.from_estimator(model, X, C, sample=2)
    # The bars of what was taken add up to its value.
    assert sum(bar.get_height() for bar in display.chosen_) == pytest.approx(C[2] @ model.decide(X)[2])
    assert sum(bar.get_height() for bar in display.best_) == pytest.approx(C[2] @ region.argmin(C)[2])
    drawn(display.ax_)


def test_other_regions_are_bars():
    X, C = make_portfolio(30, 3, 6, random_state=0)
    model = SPOPlusRegressor(EntropySimplex()).fit(X, C)
    display = DecisionDisplay.from_estimator(model, X, C, sample=-1)
    np.testing.assert_allclose([bar.get_height() for bar in display.chosen_], model.decide(X)[-1])
    drawn(display.ax_)


def test_cross_validated_path():
    X, C = make_portfolio(60, 3, 5, degree=4, random_state=0)
    model = SPOPlusRegressorCV(EntropySimplex(), n_alphas=5).fit(X, C)
    display = RegularizationPathDisplay.from_estimator(model)
    drawn(display.ax_)
    plus, spo = display.lines_
    np.testing.assert_array_equal(plus.get_ydata(), model.cv_results_["mean_test_spo_plus_loss"])
    np.testing.assert_array_equal(spo.get_ydata(), model.cv_results_["mean_test_spo_loss"])
    chosen = display.chosen_line_.get_xdata()[0]
    assert plus.get_xdata()[list(model.alphas_).index(model.alpha_)] == chosen
    # Least squares, at infinity, is drawn to the right of all others.
    assert np.isfinite(plus.get_xdata()).all() and plus.get_xdata().argmax() == 0
    with pytest.raises(ValueError, match="nothing to draw"):
        display.plot(kind="coef")
    with pytest.raises(TypeError, match="SPOPlusRegressorCV"):
        RegularizationPathDisplay.from_estimator(SPOPlusRegressor(EntropySimplex()).fit(X, C))


def test_path_with_and_without_data():
    X, C = make_portfolio(80, 3, 5, degree=4, random_state=0)
    region = EntropySimplex()
    path = spo_plus_path(X[:40], C[:40], region, alphas=[1.0, 0.1, 0.0])
    display = RegularizationPathDisplay.from_path(path)
    assert len(display.lines_) == 15
    np.testing.assert_array_equal(display.lines_[4].get_ydata(), path[1][:, 1, 1])
    display = RegularizationPathDisplay.from_path(path, X[40:], C[40:], region)
    C_hat = X[40:] @ path[1][1].T + path[2][1]
    assert display.losses["SPO loss"][1] == pytest.approx(spo_loss(C[40:], C_hat, region))
    assert display.losses["SPO+ loss"][1] == pytest.approx(spo_plus_loss(C[40:], C_hat, region))
    assert display.lines_[0].get_xdata().min() > 0  # the logarithm of alpha = 0
    assert len(display.plot(kind="coef").lines_) == 15
    drawn(display.ax_)
    with pytest.raises(ValueError, match="together"):
        RegularizationPathDisplay.from_path(path, X[40:])


def test_convergence_ends_at_the_certificate(paths):
    models, X, C, region = paths
    fits = {
        "interior point": models["SPO+"],
        "bundle": SPOPlusRegressor(region, solver="bundle", alpha=0.1, prior="least_squares").fit(X, C),
    }
    display = ConvergenceDisplay.from_estimators(fits)
    for ax in display.axes_:
        drawn(ax)
    for k, model in enumerate(fits.values()):
        assert display.objective_lines_[k].get_ydata()[-1] == pytest.approx(model.objective_)
        assert display.bound_lines_[k].get_ydata()[-1] == pytest.approx(model.lower_bound_)
        assert display.gap_lines_[k].get_ydata()[-1] == pytest.approx(max(model.duality_gap_, np.finfo(float).eps))
        assert len(display.gap_lines_[k].get_xdata()) > 3
    with pytest.raises(ValueError, match="no history"):
        ConvergenceDisplay.from_estimator(models["least squares"])
    with pytest.raises(ValueError, match="one Axes or two"):
        display.plot(ax=plt.subplots(3)[1])


@pytest.mark.parametrize("d, p", [(3, 3), (10, 1), (10, 3), (30, 1)])
def test_at_most_ten_coefficients_are_labeled(d, p):
    coefs = np.random.default_rng(0).normal(size=(4, d, p))
    display = RegularizationPathDisplay(alphas=[1.0, 0.1, 0.01, 0.0], coefs=coefs).plot()
    drawn(display.ax_)
    assert len(display.lines_) == d * p
    legend, bars = display.ax_.get_legend(), [ax for ax in display.figure_.axes if ax is not display.ax_]
    if d * p <= 10:
        assert len(legend.get_texts()) == d * p and not bars
        assert not overlaps(display.ax_)
    else:
        assert legend is None and len(bars) == 1
        assert bars[0].get_ylabel() == ("number of the feature" if p > 1 else "number of the cost")
    assert min(sizes_on_page(display.figure_)) >= 10


@pytest.mark.parametrize(
    ("region", "d"),
    [
        (Simplex(), 4),
        (ShortestPath.grid(3, 3), 12),
        (Assignment(3), 9),
        (Knapsack([1, 2, 3], 4), 3),
        (Box(0, 1), 3),
    ],
    ids=repr,
)
def test_decisions_before_the_costs_are_known(region, d):
    C_hat = np.random.default_rng(0).uniform(1, 2, (5, d))
    display = DecisionDisplay.from_predictions(C_hat, region=region, sample=2)
    np.testing.assert_array_equal(display.W, region.decide(C_hat))
    assert display.best_ is None and display.W_best is None and display.regret is None
    texts = [text.get_text() for text in display.figure_.findobj(lambda artist: hasattr(artist, "get_text"))]
    assert not any("hindsight" in text or "true" in text for text in texts)
    if not isinstance(region, Simplex):
        assert any(f"predicted {'value' if region.sense == 'max' else 'cost'}" in text for text in texts)
