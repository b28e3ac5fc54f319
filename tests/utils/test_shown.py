"""Reprs and errors do not print the entries of large arrays."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skspo import (
    Assignment,
    Box,
    CostSensitiveClassifier,
    EntropySimplex,
    Knapsack,
    L1Ball,
    LinearImage,
    LqBall,
    Markowitz,
    Polyhedron,
    Product,
    ShortestPath,
    SPOPlusRegressor,
    SPOStackingRegressor,
    TopK,
    TwoStageRegressor,
    decide,
    make_spo_scorer,
)
from skspo._utils.shown import shown

rng = np.random.default_rng(0)
GRID = ShortestPath.grid(20, 20)
EDGES = ShortestPath([(f"place {i}", f"place {i + 1}") for i in range(500)])
X, C = rng.normal(size=(10, 2)), rng.normal(size=(10, 760))
LONG = np.linspace(0.0, 1.0, 500)
REGIONS = [
    GRID,
    EDGES,
    Polyhedron(A_ub=rng.normal(size=(50, 80)), b_ub=LONG[:50], bounds=[(0, 1)] * 80),
    Polyhedron(A_ub=rng.normal(size=(50, 80)).tolist(), b_ub=LONG[:50].tolist()),
    Markowitz(np.eye(60), 2.0),
    Knapsack(list(range(1, 500)), 30),
    Box(-LONG, LONG),
    LinearImage(GRID, np.eye(760)),
    Product([GRID, Knapsack(LONG + 1, 3)]),
]


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: type(region).__name__)
def test_reprs_are_short(region):
    for text in (repr(region), repr(SPOPlusRegressor(region)), repr(TwoStageRegressor(region=region))):
        assert len(text) < 350
        assert "array(" not in text and "0.0" not in text and "place 1" not in text
    assert type(region).__name__ in repr(region) and "of shape" in repr(region) + "of shape" * (
        "of length" in repr(region)
    )
    assert repr(clone(region)) == repr(region)


def test_small_values_are_printed():
    assert repr(Knapsack([3, 4, 5], 8)).replace("sense='max', ", "") == "Knapsack(capacity=8, weights=[3, 4, 5])"
    assert repr(Box(np.zeros(2), 1)) == "Box(lower=array([0., 0.]), upper=1)"
    assert repr(SPOPlusRegressor(Box(), alpha=0.5)) == "SPOPlusRegressor(alpha=0.5, region=Box())"
    assert shown([1, 2]) == "[1, 2]" and shown("text") == "'text'"


def test_printing_changes_nothing():
    model = SPOPlusRegressor(GRID)
    repr(model)
    assert model.region is GRID and GRID.edges.shape == (760, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (LONG, "<ndarray of shape (500,)>"),
        (pd.DataFrame(C), "<DataFrame of shape (10, 760)>"),
        ([[0.0] * 20] * 20, "<list of length 20>"),
        ({i: i for i in range(100)}, "<dict of length 100>"),
    ],
)
def test_large_values_by_type_and_size(value, text):
    assert shown(value) == text


MODEL = SPOPlusRegressor(GRID, alpha=1.0, tol=0.5)
CASES = {
    "other region": lambda: decide(clone(MODEL).fit(X, C), X, region=ShortestPath.grid(21, 19)),
    "list of regions": lambda: SPOPlusRegressor([GRID] * 9).fit(X, C),
    "region": lambda: SPOPlusRegressor(C).fit(X, C),
    "surrogate": lambda: SPOPlusRegressor(GRID, surrogate_region=C).fit(X, C),
    "prior": lambda: SPOPlusRegressor(GRID, prior=C).fit(X, C),
    "alpha": lambda: SPOPlusRegressor(GRID, alpha=LONG).fit(X, C),
    "regressor": lambda: TwoStageRegressor(GRID).fit(X, C),
    "estimator": lambda: CostSensitiveClassifier(None, MODEL).fit(X, [0, 1] * 5),
    "cost_matrix": lambda: CostSensitiveClassifier(LONG.astype(str)).fit(X, [0, 1] * 5),
    "members": lambda: SPOStackingRegressor(GRID, [("a", GRID), GRID]).fit(X, C),
    "metric": lambda: make_spo_scorer(GRID, metric=C),
    "box": lambda: Box(np.full(500, np.nan), 1).argmin(LONG),
    "k": lambda: TopK(C).argmin(C),
    "threshold": lambda: EntropySimplex(C).argmin(C),
    "q": lambda: LqBall(C).argmin(C),
    "radius": lambda: L1Ball(C).argmin(C),
    "workers": lambda: Assignment(C).argmin(C),
    "risk": lambda: Markowitz(np.eye(500), C).argmin(LONG),
    "b_ub": lambda: Polyhedron(A_ub=np.eye(500), b_ub=list("a" * 500)).argmin(LONG),
    "bounds": lambda: Polyhedron(bounds=[(0, 1, 2)] * 500).argmin(LONG),
    "weights": lambda: Knapsack(["a"] * 500, 3).argmin(LONG),
    "source": lambda: GRID.with_rows({"source": [C]}, 1, 760),
}


@pytest.mark.parametrize("case", CASES)
def test_errors_are_short(case):
    with pytest.raises((TypeError, ValueError)) as caught:
        CASES[case]()
    assert len(str(caught.value)) < 600
    assert "array(" not in str(caught.value) and "..., " not in str(caught.value)
