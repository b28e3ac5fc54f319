"""Bounds of predicted costs, and paths in graphs with cycles, against enumeration of simple paths."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from regions_list import REGIONS
from scipy.optimize import linprog
from sklearn.base import clone

import skspo as sk
from skspo.regions.graphs import ShortestPath


def streets(rng, n_nodes, n_streets):
    """Directed edges of streets both ways in a connected random graph."""
    order = rng.permutation(n_nodes)
    tree = {tuple(sorted((order[k], rng.choice(order[:k])))) for k in range(1, n_nodes)}
    others = [(i, j) for j in range(n_nodes) for i in range(j) if (i, j) not in tree]
    more = rng.permutation(len(others))[: n_streets - len(tree)]
    pairs = [*tree, *(others[k] for k in more)]
    return [(int(a), int(b)) for i, j in pairs for a, b in ((i, j), (j, i))]


def simple_paths(edges, source, target):
    """All paths without a repeated node, as decisions."""
    found = []

    def extend(node, seen, taken):
        if node == target:
            found.append(np.isin(np.arange(len(edges)), taken).astype(float))
        for e, (tail, head) in enumerate(edges):
            if tail == node and head not in seen:
                extend(head, seen | {head}, [*taken, e])

    extend(source, {source}, [])
    return np.array(found)


def is_simple_path(w, paths):
    return bool((np.abs(paths - w).max(axis=1) < 1e-9).any())


def has_free_cycle(w, c, edges):
    """Whether a cycle of the edges taken costs nothing, by enumeration from every node."""
    taken = [e for e in range(len(edges)) if w[e] > 0.5]

    def closes(start, node, seen, cost):
        for e in taken:
            tail, head = edges[e]
            if tail != node:
                continue
            if head == start and abs(cost + c[e]) < 1e-9:
                return True
            if head not in seen and closes(start, head, seen | {head}, cost + c[e]):
                return True
        return False

    return any(closes(edges[e][0], edges[e][0], {edges[e][0]}, 0.0) for e in taken)


# -- clipping ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_decisions_for_nonnegative_costs_are_simple_paths(seed):
    rng = np.random.default_rng(seed)
    edges = streets(rng, 6, 9)
    paths = simple_paths(edges, 0, 1)
    C = rng.normal(0.6, 1.0, size=(60, len(edges)))
    for bounds, low, high in (("auto", 0.0, np.inf), ((0.2, None), 0.2, np.inf), ((0.1, 1.0), 0.1, 1.0)):
        W = ShortestPath(edges, 0, 1, cost_bounds=bounds).decide(C)
        clipped = np.clip(C, low, high)
        assert all(is_simple_path(w, paths) for w in W)
        assert (W * clipped).sum(axis=1) == pytest.approx((clipped @ paths.T).min(axis=1))
    # Without bounds most decisions have cycles, which is the problem.
    W = ShortestPath(edges, 0, 1, cost_bounds=None).decide(C)
    assert np.mean([is_simple_path(w, paths) for w in W]) < 0.5


def test_sources_and_targets_by_sample():
    rng = np.random.default_rng(0)
    edges = streets(rng, 6, 9)
    region = ShortestPath(edges, 0, 1, cost_bounds=(0.1, None))
    ends = np.array([rng.choice(6, 2, replace=False) for _ in range(40)])
    C = rng.normal(0.6, 1.0, size=(40, len(edges)))
    view = region.with_rows({"source": ends[:, 0], "target": ends[:, 1]}, *C.shape)
    for w, c, (source, target) in zip(view.decide(C), np.maximum(C, 0.1), ends.tolist(), strict=True):
        paths = simple_paths(edges, source, target)
        assert is_simple_path(w, paths) and c @ w == pytest.approx((paths @ c).min())


# -- cycles of cost zero -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_nodes, n_streets", [(6, 9), (12, 20), (30, 54)])
def test_no_cycle_of_cost_zero(n_nodes, n_streets):
    rng = np.random.default_rng(n_nodes)
    for _ in range(4):
        edges = streets(rng, n_nodes, n_streets)
        region = ShortestPath(edges, 0, 1)
        C = rng.integers(-1, 2, size=(30, len(edges))).astype(float)
        C[::3] = np.abs(C[::3])
        form = region.inequality_form(len(edges))
        W = region.argmin(C)
        for w, c in zip(W, C, strict=True):
            assert not has_free_cycle(w, c, edges)
            assert form.violation(w[None]).max() < 1e-9
            bounds = np.column_stack([form.lower, form.upper])
            assert c @ w == pytest.approx(linprog(c, A_eq=form.A_eq, b_eq=form.b_eq, bounds=bounds).fun)
        assert_array_equal(W, np.round(W))


def test_cycles_of_negative_cost_stay():
    region = ShortestPath([("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")], "a", "c")
    assert_array_equal(region.argmin([[1.0, -2.0, 1.0, 5.0], [1.0, -1.0, 1.0, 5.0]]), [[1, 1, 1, 0], [0, 0, 1, 0]])


def test_errors():
    edges = [("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")]
    cases = [
        ((1.0, 0.0), "lower exceeds upper, 1 > 0 for decision variable 0"),
        (([0, 0, 3, 0], [1, 1, 2, 1]), "decision variable 2"),
        (([0.0, 1.0], None), r"lower must be a number or have shape \(4,\).* got shape \(2,\)"),
        ((np.nan, None), "lower must not contain NaN"),
        ((None, [1.0, 1.0, np.nan, 1.0]), "upper must not contain NaN"),
        ((np.inf, None), "lower must not contain NaN or inf"),
        (0.0, r"pair \(lower, upper\)"),
        ((0.0,), r"pair \(lower, upper\)"),
        ("positive", "'auto', None or a pair"),
    ]
    C = np.ones((3, 4))
    for bounds, message in cases:
        region = ShortestPath(edges, "a", "c", cost_bounds=bounds)
        for use in (region.argmin, region.decide, region.decide, lambda C, r=region: sk.spo_loss(C, C, r)):
            with pytest.raises(ValueError, match=message):
                use(C)
        with pytest.raises(ValueError, match=message):
            sk.TwoStageRegressor(region=region).fit(np.ones((3, 1)), C)
    with pytest.raises(TypeError, match="upper must be a number"):
        ShortestPath(edges, "a", "c", cost_bounds=(0.0, "much")).decide(C)


# -- true costs that make cycles profitable ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_warning_about_true_costs_exactly_if_a_cycle_pays(seed):
    rng = np.random.default_rng(seed)
    edges = streets(rng, 5, 7)
    region, plain = ShortestPath(edges, 0, 1), ShortestPath(edges, 0, 1, cost_bounds=None)
    paths = simple_paths(edges, 0, 1)
    found = set()
    for _ in range(60):
        c = np.round(rng.normal(1.0, 0.7, size=(1, len(edges))), 2)
        pays = (plain.argmin(c) @ c[0])[0] < (paths @ c[0]).min() - 1e-9
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert sk.spo_loss(c, c, region) == 0.0
            sk.spo_loss(c, c, plain)
        assert len(caught) == pays
        found.add(bool(pays))
    assert found == {True, False}


# -- every region ------------------------------------------------------------------------------------------------------


def with_bounds(region, bounds):
    """Copy of a region with these bounds; those of a product are those of its factors."""
    if isinstance(region, sk.Product):
        factors = [with_bounds(factor, bounds) for factor in region.regions]
        return sk.Product(factors, region.sizes, sense=region.sense)
    return clone(region).set_params(cost_bounds=bounds)


@pytest.mark.parametrize("case", REGIONS, ids=lambda case: case.id)
def test_every_region_clips_in_the_units_of_the_user(case):
    region, d = case.region, case.d
    C = np.random.default_rng(d).normal(size=(6, d))
    bounded = with_bounds(region, (-0.3, 0.5))
    clipped = np.clip(C, -0.3, 0.5)
    if getattr(region, "known_cost", None) is not None:
        C[:, -1] = clipped[:, -1] = 1.0  # the known cost is not clipped
    assert_allclose(bounded.decide(C), region.argmin(clipped), atol=1e-9)
    assert_allclose(bounded.decide(C[0]), region.argmin(clipped[0]), atol=1e-9)
    assert_array_equal(bounded.argmin(C), region.argmin(C))
    if hasattr(region, "worst_argmin"):
        low, true = region.to_min(C), np.random.default_rng(0).normal(size=C.shape)
        assert_allclose(bounded._decide_worst(low, true), region.worst_argmin(region.to_min(clipped), true), atol=1e-6)
    assert bounded._clips(d)
    if not isinstance(region, sk.Product):
        with pytest.raises(ValueError, match="lower exceeds upper"):
            with_bounds(region, (1.0, 0.0)).argmin(C)


def test_images_and_products_of_paths_clip_inside():
    """Streets both ways inside an image, or a product, are clipped at zero too."""
    rng = np.random.default_rng(0)
    edges = streets(rng, 6, 9)
    d, paths = len(edges), simple_paths(edges, 0, 1)
    region = ShortestPath(edges, 0, 1)
    C = rng.normal(0.6, 1.0, size=(20, d))
    image = sk.LinearImage(region, np.eye(d)[::-1])
    assert_array_equal(image.decide(C[:, ::-1])[:, ::-1], region.decide(C))
    words = image.chosen(C[:, ::-1])
    assert words == region.chosen(C) and all(len(set(walk)) == len(walk) for walk in words)
    product = sk.Product([region, sk.TopK(2)], [d, 4])
    both = np.hstack([C, rng.normal(size=(20, 4))])
    W = product.decide(both)
    assert_array_equal(W[:, :d], region.decide(C))
    assert_array_equal(W[:, d:], sk.TopK(2).argmin(both[:, d:]))
    assert all(is_simple_path(w, paths) for w in W[:, :d])
    assert image._clips(d) and product._clips(d + 4) and not sk.Product([sk.TopK(2)], [4])._clips(4)


def test_named_bounds_must_have_the_names_of_the_variables():
    pd = pytest.importorskip("pandas")
    names, C = ["a", "b", "c"], [[1.0, 2.0, 3.0]]
    region = sk.Polyhedron([[-1, -1, -1]], [-1], bounds=(0, 1), variable_names=names)
    low = pd.Series([5.0, 1.0, 2.0], index=names)
    assert_array_equal(region.set_params(cost_bounds=(low, None)).decide(C), [[0, 1, 0]])
    for wrong, message in ((low[::-1], "another order"), (low.rename({"c": "d"}), "Unknown columns:\n- d")):
        with pytest.raises(ValueError, match=message):
            region.set_params(cost_bounds=(wrong, None)).decide(C)
