"""Bad names of variables and bad parameters by sample are refused with an error that says what was wrong."""

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from input_problems import C, X, put
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import (
    Assignment,
    Box,
    CvxpyRegion,
    InfeasibleRegionError,
    Knapsack,
    LinearImage,
    MixedInteger,
    Polyhedron,
    Product,
    ShortestPath,
    Simplex,
    SPOPlusRegressor,
    TopK,
    TravellingSalesman,
    chosen,
    decide,
    row_params,
    spo_loss,
)

NODES = ShortestPath([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")], "a", "d")
FUELS = ["oil", "gas", "coal", "wood"]
ALL = np.ones((20, 4), dtype=bool)
NONE = put(ALL, False)
NONE[3] = False
LP = Polyhedron(A_ub=[[1, 2, 3, 4]], b_ub=[6], bounds=(0, 2))
YESTERDAY = cp.Parameter(4, name="held", value=np.full(4, 0.25))
TURNOVER = CvxpyRegion(lambda w: [w >= 0, cp.sum(w) == 1, cp.norm1(w - YESTERDAY) <= 0.2], 4)
LIMIT = cp.Parameter(4, name="limit", nonneg=True, value=np.ones(4))
LIMITED = CvxpyRegion(lambda w: [w >= 0, w <= LIMIT, cp.sum(w) == 1], 4)
TOUR = TravellingSalesman(["a", "b", "c", "d"])
CREWS = Assignment(workers=["A", "B"], tasks=["x", "y"])
STREETS = ShortestPath.undirected([("a", "b"), ("c", "b"), ("a", "c"), ("c", "d")], "a", "d")
MIP = MixedInteger(A_ub=[[1, 2, 3, 4]], b_ub=[6], bounds=(0, 2))


def fit(region, y=C, **rows):
    return SPOPlusRegressor(region).fit(X, y, region_params=rows or None)


def search():
    pipeline = make_pipeline(StandardScaler(), SPOPlusRegressor(TopK(2)))
    return GridSearchCV(pipeline, {"spoplusregressor__alpha": [0.1, 1.0]}, cv=2).fit(X, C)


def fuel(names):
    return Polyhedron(A_eq=[[1, 1, 1, 1]], b_eq=[1], variable_names=names)


# Each case: id, action of the user, class of the error, pattern of the message.
CASES = [
    # -- names
    ("names-few", lambda: fit(fuel(FUELS[:3])), ValueError, "one name for each of the 4 decision variables, got 3"),
    ("names-twice", lambda: fit(fuel([*FUELS[:3], "oil"])), ValueError, "must be distinct, but 'oil' is there 2 times"),
    ("names-numbers", lambda: fit(fuel([0, 1, 2, 3])), TypeError, "list of strings.*got 0 of type int"),
    ("names-text", lambda: fit(fuel("abcd")), TypeError, "list of strings.*got 'abcd'"),
    (
        "names-order",
        lambda: fit(fuel(FUELS), pd.DataFrame(C, columns=FUELS[::-1])),
        ValueError,
        r"another order: column 0 is 'wood' and should be 'oil'(.|\n)*y\[list\(region.variable_names\)\]",
    ),
    (
        "names-edges-order",
        lambda: fit(NODES, pd.DataFrame(C, columns=NODES.variable_names[::-1])),
        ValueError,
        "variables of ShortestPath(.|\n)*in another order",
    ),
    (
        "describe-names",
        lambda: Simplex().describe(ALL, ["a"]),
        ValueError,
        "names must have one name for each of the 4",
    ),
    ("describe-nan", lambda: Simplex().describe(put(C, np.nan)), ValueError, "W contains NaN"),
    ("describe-shape", lambda: NODES.describe(C[:, :3]), ValueError, "4 decision variables, but the costs have 3"),
    # -- options that are available
    ("mask-1d", lambda: fit(Simplex(), available=ALL[:, 0]), ValueError, r"must have shape \(20, 4\).*got \(20,\)"),
    ("mask-columns", lambda: fit(TopK(1), available=ALL[:, :3]), ValueError, r"must have shape \(20, 4\).*\(20, 3\)"),
    ("mask-rows", lambda: fit(Box(), available=ALL[:7]), ValueError, "one row for each of the 20 samples"),
    (
        "mask-number",
        lambda: fit(Simplex(), available=put(1.0 * ALL, 0.5)),
        ValueError,
        "True or False, got 0.5 in row 1",
    ),
    ("mask-nan", lambda: fit(Simplex(), available=put(1.0 * ALL, np.nan)), ValueError, "must be finite.*in row 1"),
    (
        "mask-text",
        lambda: fit(Simplex(), available=[["yes"] * 4] * 20),
        ValueError,
        "available must be an array of num",
    ),
    ("mask-empty", lambda: fit(Simplex(), available=NONE), InfeasibleRegionError, "row 3 is empty, 0 of 4 options.*1"),
    ("mask-loss", lambda: spo_loss(C, C, Simplex(), region_params={"available": NONE}), ValueError, "row 3 is empty"),
    (
        "mask-top",
        lambda: fit(TopK(4), available=put(ALL, False)),
        InfeasibleRegionError,
        "row 1 is empty, 3 of.*k is 4",
    ),
    (
        "mask-frame",
        lambda: Simplex().with_rows(row_params(available=NONE)[2:], 18, 4),
        InfeasibleRegionError,
        r"region of row 1 \(row 3 of row_params\) is empty",
    ),
    ("mask-image", lambda: fit(LinearImage(Simplex(), np.eye(4)), available=NONE), ValueError, "row 3 is empty"),
    (
        "mask-pairs",
        lambda: fit(
            Assignment(3),
            np.ones((20, 9)),
            available=np.where(np.arange(20)[:, None] == 5, [1, 0, 0, 1, 0, 0, 0, 1, 1], 1),
        ),
        InfeasibleRegionError,
        "row 5 is empty, its available pairs.*no assignment of all 3 of the smaller side",
    ),
    ("mask-region", lambda: fit(LP, available=ALL), ValueError, "Polyhedron cannot vary by sample in 'available'"),
    ("mask-product", lambda: fit(Product([Simplex()], [4]), available=ALL), ValueError, "Product has no parameters"),
    # -- k
    ("k-fraction", lambda: fit(TopK(1), k=put(np.ones(20), 1.5)), ValueError, "k must be an integer.*1.5 in row 5"),
    (
        "k-large",
        lambda: fit(TopK(1), k=np.arange(20)),
        ValueError,
        "between 0 and the number of costs 4, got 5 in row 5",
    ),
    ("k-negative", lambda: fit(TopK(1), k=put(np.ones(20), -1)), ValueError, "got -1 in row 5"),
    ("k-wide", lambda: fit(TopK(1), k=np.ones((20, 4))), ValueError, r"k must have shape \(20,\)"),
    # -- source and target
    ("node-unknown", lambda: fit(NODES, source=["a"] * 19 + ["z"]), ValueError, "source 'z' of row 19 is unknown"),
    ("node-list", lambda: fit(NODES, source=[["a"]] * 20), ValueError, r"source \['a'\] of row 0 is unknown"),
    ("node-one", lambda: fit(NODES, source="z"), ValueError, "source 'z'.*is unknown"),
    ("node-same", lambda: fit(NODES, source=["d"] * 20), ValueError, "row 0 must be different nodes, both are 'd'"),
    (
        "node-unreachable",
        lambda: fit(NODES, source=["b"] * 20, target=["c"] * 4 + ["a"] * 16),
        InfeasibleRegionError,
        "no path leads from source to target.*source='b', target='a'.*row 4",
    ),
    # -- bounds
    (
        "bounds-crossed",
        lambda: fit(LP, lower=put(np.zeros((20, 4)), 3.0)),
        InfeasibleRegionError,
        "row 1.*3.0.*decision 1",
    ),
    (
        "bounds-nan",
        lambda: fit(LP, upper=put(np.ones((20, 4)), np.nan)),
        ValueError,
        "upper must be finite, got.*row 1",
    ),
    ("bounds-wide", lambda: fit(MIP, upper=np.ones((20, 3))), ValueError, r"shape \(20,\) or \(20, 4\), got \(20, 3\)"),
    ("bounds-unbounded", lambda: fit(LP, lower=np.full(20, -np.inf)), ValueError, r"row \d+ is unbounded"),
    ("bounds-empty", lambda: fit(LP, lower=np.full(20, 1.0)), InfeasibleRegionError, r"region of row \d+ is empty"),
    (
        "bounds-no-integer",
        lambda: fit(MIP, lower=np.full(20, 0.2), upper=np.full(20, 0.8)),
        ValueError,
        r"row \d+ is empty",
    ),
    # -- rectangular assignments
    ("pairs-square", lambda: fit(Assignment(), C[:, :3]), ValueError, "must be a square.*got 3. Set n"),
    ("pairs-multiple", lambda: fit(Assignment(n_tasks=3)), ValueError, "multiple of the number of tasks, 3; got 4"),
    ("pairs-columns", lambda: fit(Assignment(2, 3)), ValueError, "6 decision variables, but the costs have 4"),
    ("pairs-zero", lambda: fit(Assignment(2, 0)), ValueError, "n_tasks must be a positive integer or None, got 0"),
    ("pairs-bool", lambda: fit(Assignment(True, 4)), ValueError, "n must be a positive integer or None, got True"),
    # -- items
    ("items-wide", lambda: fit(Knapsack([1, 2, 3, 4], 5), available=np.ones((20, 5))), ValueError, r"shape \(20, 4\)"),
    # -- crews, streets, tours, at most k, parameters of CVXPY
    (
        "crews-order",
        lambda: fit(CREWS, pd.DataFrame(C, columns=["A -> y", "A -> x", "B -> x", "B -> y"])),
        ValueError,
        "variables of Assignment(.|\n)*column 0 is 'A -> y' and should be 'A -> x'",
    ),
    (
        "crews-unknown",
        lambda: fit(CREWS, pd.DataFrame(C, columns=["A -> x", "A -> y", "B -> x", "B -> z"])),
        ValueError,
        "B -> z .did you mean 'B -> y'",
    ),
    ("crews-by-worker", lambda: fit(CREWS, available=ALL[:, :2]), ValueError, r"available must have shape \(20, 4\)"),
    ("crews-costs", lambda: fit(CREWS, np.hstack([C, C])), ValueError, "Assignment has 4 dec.* costs have 8 columns"),
    ("streets-one-way", lambda: fit(STREETS, available=ALL), ValueError, r"available must have shape \(20, 8\)"),
    ("streets-source", lambda: fit(STREETS, source=["a"] * 19 + ["x"]), ValueError, "source 'x' of row 19 is unknown"),
    (
        "streets-all-closed",
        lambda: fit(STREETS, available=np.zeros((20, 8), dtype=bool)),
        InfeasibleRegionError,
        "The region of row [0-9]+ is empty",
    ),
    ("streets-same-ends", lambda: fit(STREETS, source=["d"] * 20), ValueError, "must be different nodes, both are 'd'"),
    ("streets-costs", lambda: fit(STREETS, np.hstack([C, C])), ValueError, "has 4 dec.* costs have 8 columns"),
    (
        "streets-closed",
        lambda: fit(STREETS, available=np.hstack([NONE, NONE])),
        InfeasibleRegionError,
        "The region of row 3 is empty",
    ),
    ("tour-costs", lambda: fit(TravellingSalesman(4)), ValueError, "has 6 decision variables, but the costs have 4"),
    (
        "tour-rows",
        lambda: fit(TravellingSalesman(4), np.ones((20, 6)), available=ALL),
        ValueError,
        "no parameters that may vary by sample",
    ),
    (
        "tour-order",
        lambda: fit(TOUR, pd.DataFrame(np.ones((20, 6)), columns=TOUR.variable_names[::-1])),
        ValueError,
        "variables of TravellingSalesman(.|\n)*column 0 is 'c - d' and should be 'a - b'",
    ),
    (
        "tour-other-direction",
        lambda: fit(TOUR, pd.DataFrame(np.ones((20, 6)), columns=["b - a", *TOUR.variable_names[1:]])),
        ValueError,
        "b - a .did you mean 'a - b'",
    ),
    ("tour-both-directions", lambda: TOUR.argmin(np.ones((3, 12))), ValueError, "has 6 dec.* costs have 12 columns"),
    ("tour-matrix", lambda: TOUR.argmin(np.ones((3, 4, 4))), ValueError, "dim 3"),
    (
        "tour-integer",
        lambda: TravellingSalesman(4, integer="no").argmin(np.ones(6)),
        TypeError,
        "True or False, got 'no",
    ),
    (
        "tour-jobs",
        lambda: TravellingSalesman(12, n_jobs="2").argmin(np.ones(66)),
        TypeError,
        "n_jobs must be an integer",
    ),
    (
        "tour-graph",
        lambda: TravellingSalesman(nx.complete_graph(4)).argmin(np.ones(6)),
        TypeError,
        "must be a list of lab",
    ),
    ("items-integer", lambda: Knapsack([1, 2], 2, integer="no").argmin([1, 2]), TypeError, "True or False, got 'no'"),
    (
        "most-k-nan",
        lambda: fit(TopK(2, at_most=True), k=[np.nan] * 20),
        ValueError,
        "k must be finite, got nan in row 0",
    ),
    ("most-k-text", lambda: fit(TopK(2, at_most=True), k=["two"] * 20), ValueError, "k must be an array of numbers"),
    ("most-k-positional", lambda: TopK(2, True), TypeError, "positional arguments"),
    (
        "streets-number",
        lambda: fit(STREETS, available=np.full((20, 8), 2)),
        ValueError,
        "True or False, got 2.0 in row 0",
    ),
    ("streets-text", lambda: fit(STREETS, available=np.full((20, 8), "open")), ValueError, "must hold numbers.*'open'"),
    ("streets-source-nan", lambda: fit(STREETS, source=[np.nan] * 20), ValueError, "source nan of row 0 is unknown"),
    ("streets-source-few", lambda: fit(STREETS, source=["a"] * 5), ValueError, r"each of the 20 samples.*shape \(5,\)"),
    (
        "crews-series",
        lambda: fit(CREWS, available=pd.Series(ALL[:, 0])),
        ValueError,
        r"must have shape \(20, 4\).*\(20,\)",
    ),
    (
        "crews-available-order",
        lambda: fit(CREWS, available=pd.DataFrame(ALL, columns=["A -> y", "A -> x", "B -> x", "B -> y"])),
        ValueError,
        r"region_params\['available'\] should match the variables of Assignment(.|\n)*column 0 is 'A -> y'",
    ),
    (
        "crews-by-name",
        lambda: fit(CREWS, available={"A": ALL[:, 0]}),
        ValueError,
        "available must be an array of numbers",
    ),
    ("crews-costs-3d", lambda: CREWS.argmin(np.ones((20, 2, 2))), ValueError, "dim 3"),
    ("cvxpy-nan", lambda: fit(TURNOVER, held=put(C, np.nan)), ValueError, "held must be finite, got nan in row 1"),
    ("cvxpy-text", lambda: fit(TURNOVER, held=np.full((20, 4), "a")), ValueError, "held must be an array of numbers"),
    ("cvxpy-rows", lambda: fit(TURNOVER, held=C[:7]), ValueError, r"each of the 20 samples.*got shape \(7, 4\)"),
    ("cvxpy-sign", lambda: fit(LIMITED, limit=-np.ones((20, 4))), ValueError, "limit of row 0 is not what .*: nonneg"),
    (
        "cvxpy-infinite",
        lambda: fit(LIMITED, limit=np.full((20, 4), np.inf)),
        ValueError,
        "limit must be finite, got inf",
    ),
    ("decide-class", lambda: decide(SPOPlusRegressor, X), TypeError, "is a class, not an instance"),
    ("decide-no-region", lambda: decide(LinearRegression().fit(X, C), X), ValueError, "Pass region=..., or wrap it in"),
    ("decide-region-class", lambda: decide(LinearRegression().fit(X, C), X, region=TopK), TypeError, "the parentheses"),
    ("decide-columns", lambda: decide(search(), X[:, :1]), ValueError, "X has 1 features, but"),
    ("decide-nan", lambda: decide(search(), put(X, np.nan)), ValueError, "X contains NaN"),
    ("decide-vector", lambda: decide(search(), X[0]), ValueError, "Expected 2D array, got 1D"),
    (
        "chosen-rows",
        lambda: chosen(search(), X, region_params={"k": [1, 2]}),
        ValueError,
        r"20 samples.*got shape \(2,\)",
    ),
    (
        "chosen-name",
        lambda: chosen(search(), X, region_params={"n": 1}),
        ValueError,
        "cannot vary by sample in 'n', only in",
    ),
    ("ties-word", lambda: spo_loss(C, C, TopK(2), ties="Worst"), ValueError, "'oracle' or 'worst', got 'Worst'"),
    ("ties-none", lambda: spo_loss(C, C, TopK(2), ties=None), ValueError, "'oracle' or 'worst', got None"),
    (
        "ties-tour",
        lambda: spo_loss(np.ones((2, 66)), np.ones((2, 66)), TravellingSalesman(12), ties="worst"),
        ValueError,
        "which TravellingSalesman cannot compute. Use ties='oracle'",
    ),
    ("most-k-large", lambda: fit(TopK(2, at_most=True), k=[5] * 20), ValueError, "costs 4, got 5 in row 0"),
    ("most-k-negative", lambda: fit(TopK(2, at_most=True), k=[-1] * 20), ValueError, "costs 4, got -1 in row 0"),
    ("most-k-part", lambda: fit(TopK(2, at_most=True), k=[1.5] * 20), ValueError, "must be an integer.*got 1.5 in row"),
    ("cvxpy-shape", lambda: fit(TURNOVER, held=np.ones((20, 2))), ValueError, r"held must have shape .*got \(20, 2\)"),
    ("cvxpy-name", lambda: fit(TURNOVER, z=C), ValueError, r"cannot vary by sample in 'z', only in \['held'\]"),
    ("cvxpy-empty", lambda: fit(TURNOVER, held=np.ones((20, 4))), InfeasibleRegionError, "row [0-9]+ is empty"),
    (
        "cvxpy-solver",
        lambda: SPOPlusRegressor(TURNOVER, solver="interior-point").fit(
            X, C, region_params={"held": np.full(C.shape, 0.25)}
        ),
        ValueError,
        "that varies by sample.*Solvers that can: 'bundle'",
    ),
    ("mip-empty", lambda: fit(MIP, b_ub=-np.ones((20, 1))), InfeasibleRegionError, "row [0-9]+ is empty"),
    ("mip-matrix", lambda: fit(MIP, A_ub=C), ValueError, r"cannot vary by sample in 'A_ub', only in \['b_ub', 'lower'"),
    (
        "decide-region",
        lambda: decide(fit(TopK(2)), X, region=TopK(3)),
        ValueError,
        r"TopK\(k=3\) was given, but SPOPlusRegressor has a region of its own",
    ),
    ("chosen-unfitted", lambda: chosen(SPOPlusRegressor(TopK(2)), X), NotFittedError, "not fitted yet"),
    ("chosen-labels", lambda: chosen(LogisticRegression().fit(X, C[:, 0] > 0), X), TypeError, "^chosen.*a classifier"),
]


@pytest.mark.filterwarnings("ignore:The true costs of row:UserWarning")  # costs are random
@pytest.mark.parametrize(("action", "error", "pattern"), [pytest.param(*case, id=name) for name, *case in CASES])
def test_bad_input_is_refused_with_a_helpful_message(action, error, pattern):
    with pytest.raises(error, match=pattern):
        action()


def test_nothing_available_is_no_error_where_nothing_need_be_chosen():
    nothing = np.zeros((20, 4))
    for region in (Box(1, 2), Knapsack([1, 2, 3, 4], 5), TopK(0)):
        np.testing.assert_array_equal(region.with_rows({"available": nothing}, 20, 4).argmin(C), nothing)
