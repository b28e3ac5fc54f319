"""Bad input is refused with an error that says what was wrong."""

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from input_problems import ONES, C, X, box_constraints, fit, names, put
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from small_sets import cheapest

from skspo import (
    Assignment,
    Box,
    CvxpyRegion,
    Ellipsoid,
    EntropySimplex,
    Knapsack,
    L1Ball,
    LogBarrierSimplex,
    LqBall,
    Markowitz,
    MixedInteger,
    OracleRegion,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOLoss,
    SPOMLPRegressor,
    SPOPlusLoss,
    SPOPlusRegressor,
    TopK,
    TwoStageRegressor,
    make_spo_scorer,
    normalized_spo_loss,
    spo_loss,
)
from skspo.solvers import ConicSolver, SGDSolver

MIXED = MixedInteger([[1, 1, 1, 1]], [2], bounds=(0, 1), integrality=[1, 1, 1, 0])  # its decisions cannot be listed


def stream(X=X, y=C, *, first=X):
    return SPOPlusRegressor(Simplex()).partial_fit(first, C).partial_fit(X, y)


def two_stage(X=X, y=C, sample_weight=None, *, regressor=None, region=None):
    return TwoStageRegressor(regressor, Simplex() if region is None else region).fit(X, y, sample_weight)


# Each case: id, action of the user, class of the error, pattern of the message.
CASES = [
    # -- X and y
    ("X-nan", lambda: fit(put(X, np.nan)), ValueError, "X contains NaN"),
    ("X-inf", lambda: fit(put(X, np.inf)), ValueError, "X contains infinity"),
    ("X-text", lambda: fit(np.full(X.shape, "red")), ValueError, "convert string to float.*red"),
    ("X-1d", lambda: fit(X[:, 0]), ValueError, r"Expected 2D array, got 1D(.|\n)*reshape\(-1, 1\)"),
    ("X-3d", lambda: fit(X[None]), ValueError, "dim 3"),
    ("X-none", lambda: fit(None), ValueError, "Expected 2D array"),
    (
        "X-sparse",
        lambda: SPOMLPRegressor(Simplex()).fit(sp.csr_array(X), C),
        TypeError,
        "dense data is required.*toarray",
    ),
    ("X-complex", lambda: fit(X + 1j), ValueError, "Complex data not supported"),
    ("X-no-rows", lambda: fit(X[:0], C[:0]), ValueError, r"0 sample.*minimum of 1 is required"),
    ("X-no-features", lambda: fit(X[:, :0]), ValueError, r"0 feature.*\(20, 0\)"),
    ("y-nan", lambda: fit(y=put(C, np.nan)), ValueError, "y contains NaN"),
    ("y-inf", lambda: fit(y=put(C, -np.inf)), ValueError, "y contains infinity"),
    ("y-text", lambda: fit(y=np.full(C.shape, "red")), ValueError, "convert string to float.*red"),
    ("y-text-objects", lambda: fit(y=np.full(C.shape, "red", object)), ValueError, "convert string to float.*red"),
    ("y-3d", lambda: fit(y=C[:, :, None]), ValueError, r"y must have shape \(n_samples, n_costs\).*\(20, 4, 1\)"),
    ("y-none", lambda: fit(y=None), ValueError, "requires y to be passed"),
    ("y-number", lambda: fit(y=3.0), (TypeError, ValueError), "at least 1 dimension|scalar"),
    ("y-sparse", lambda: fit(y=sp.csr_array(C)), TypeError, "y, but dense data is required"),
    ("y-complex", lambda: fit(y=C + 1j), ValueError, "Complex data not supported"),
    ("y-columns", lambda: fit(region=ShortestPath.grid(3, 3)), ValueError, "12 decision variables.*costs have 4 col"),
    ("y-1d-for-four", lambda: fit(y=C[:, 0], region=Box(np.zeros(4))), ValueError, "4 decision var.*costs have 1 col"),
    ("y-no-columns", lambda: fit(y=C[:, :0]), ValueError, r"\(20, 0\)"),
    ("lengths", lambda: fit(X[:9]), ValueError, r"inconsistent numbers of samples: \[9, 20\]"),
    # -- weights
    ("weight-zero", lambda: fit(sample_weight=0 * ONES), ValueError, "at least one non-zero|zero for every sample"),
    ("weight-negative", lambda: fit(sample_weight=put(ONES, -1)), ValueError, "Negative values.*sample_weight"),
    ("weight-length", lambda: fit(sample_weight=ONES[:3]), ValueError, r"sample_weight.*\(3,\).*\(20,\)"),
    ("weight-nan", lambda: fit(sample_weight=put(ONES, np.nan)), ValueError, "sample_weight contains NaN"),
    ("weight-inf", lambda: fit(sample_weight=put(ONES, np.inf)), ValueError, "sample_weight contains infinity"),
    ("weight-2d", lambda: fit(sample_weight=ONES[:, None]), ValueError, r"\(20, 1\), expected \(20,\)"),
    # -- parameters of the estimator
    ("alpha-negative", lambda: fit(alpha=-1.0), ValueError, "alpha must be a finite number of at least 0, got -1"),
    ("alpha-nan", lambda: fit(alpha=np.nan), ValueError, "alpha must be a finite number.*nan"),
    ("alpha-inf", lambda: fit(alpha=np.inf), ValueError, "alpha must be a finite number.*inf"),
    ("alpha-text", lambda: fit(alpha="1"), ValueError, "alpha must be a finite number.*'1'"),
    ("l1_ratio", lambda: fit(l1_ratio=1.5), ValueError, "l1_ratio must be a finite number between 0 and 1, got 1.5"),
    ("prior-unknown", lambda: fit(prior="lasso"), ValueError, "'zero', 'least_squares', 'ridge', got 'lasso'"),
    (
        "prior-array",
        lambda: fit(prior=np.zeros((4, 3))),
        ValueError,
        "prior must be one of 'zero', 'least_squares', 'ridge'",
    ),
    ("max_iter-zero", lambda: fit(max_iter=0), ValueError, "max_iter must be None or an integer of at least 1, got 0"),
    ("max_iter-float", lambda: fit(max_iter=10.0), ValueError, "max_iter must be None or an integer"),
    ("max_iter-bool", lambda: fit(max_iter=True), ValueError, "max_iter must be None or an integer"),
    ("tol-negative", lambda: fit(tol=-1e-3), ValueError, "tol must be a finite number of at least 0, got -0.001"),
    ("tol-inf", lambda: fit(tol=np.inf), ValueError, "tol must be a finite number"),
    ("fit_intercept", lambda: fit(fit_intercept="no"), ValueError, "fit_intercept must be True or False, got 'no'"),
    ("n_jobs-text", lambda: fit(n_jobs="two"), ValueError, "n_jobs must be None or an integer other than 0, got 'two'"),
    ("n_jobs-zero", lambda: fit(n_jobs=0), ValueError, "n_jobs must be None or an integer other than 0"),
    ("random_state", lambda: fit(solver="sgd", random_state="x"), ValueError, "'x' cannot be used to seed"),
    # -- solvers
    (
        "solver-unknown",
        lambda: fit(solver="gradient"),
        ValueError,
        r"'auto' or one of .*'interior-point'.*got 'gradient'",
    ),
    ("solver-none", lambda: fit(solver=None), ValueError, "solver must be 'auto' or one of"),
    ("solver-class", lambda: fit(solver=SGDSolver), ValueError, "solver must be 'auto' or one of.*a Solver"),
    (
        "solver-lbfgs-on-simplex",
        lambda: fit(solver="lbfgs"),
        ValueError,
        "'lbfgs' cannot serve the region Simplex.*lacks: strong_convexity.*that can: 'interior-point', 'conic'",
    ),
    (
        "solver-conic-on-oracle",
        lambda: fit(region=OracleRegion(cheapest), solver="conic"),
        ValueError,
        "'conic' cannot serve the region OracleRegion.*support_epigraph.*that can: 'bundle', 'dual', 'sgd'",
    ),
    (
        "solver-conic-on-integers",
        lambda: fit(region=MIXED, solver="conic"),
        ValueError,
        "'conic' cannot serve the region MixedInteger.*that can: 'bundle', 'dual', 'sgd'",
    ),
    (
        "backend-highs-on-ridge",
        lambda: fit(solver=ConicSolver(backend="HIGHS"), alpha=1.0),
        ValueError,
        "'HIGHS' is for linear programs.*alpha=1.*Use backend='CLARABEL'",
    ),
    (
        "backend-highs-on-ball",
        lambda: fit(solver=ConicSolver(backend="HIGHS"), region=LqBall()),
        ValueError,
        "'HIGHS' is for linear programs, but LqBall.*Use backend='CLARABEL'",
    ),
    ("backend-unknown", lambda: fit(solver=ConicSolver(backend="X")), ValueError, "'auto', 'CLARABEL' or 'HIGHS'"),
    # -- using a model
    ("predict-not-fitted", lambda: SPOPlusRegressor().predict(X), NotFittedError, "not fitted yet. Call 'fit'"),
    ("decide-not-fitted", lambda: SPOPlusRegressor().decide(X), NotFittedError, "not fitted yet"),
    ("score-not-fitted", lambda: SPOPlusRegressor().score(X, C), NotFittedError, "not fitted yet"),
    ("predict-not-fitted-two-stage", lambda: TwoStageRegressor().predict(X), NotFittedError, "not fitted yet"),
    ("decide-not-fitted-two-stage", lambda: TwoStageRegressor().decide(X), NotFittedError, "not fitted yet"),
    ("score-not-fitted-two-stage", lambda: TwoStageRegressor().score(X, C), NotFittedError, "not fitted yet"),
    ("predict-features", lambda: fit().predict(X[:, :2]), ValueError, "X has 2 features.*expecting 3"),
    ("decide-features", lambda: fit().decide(X[:, :2]), ValueError, "X has 2 features.*expecting 3"),
    ("predict-features-two-stage", lambda: two_stage().predict(X[:, :2]), ValueError, "X has 2 features.*expecting 3"),
    (
        "predict-names",
        lambda: fit(names("abc")).predict(names("abd")),
        ValueError,
        r"feature names(.|\n)*- d(.|\n)*- c",
    ),
    ("predict-names-order", lambda: fit(names("abc")).predict(names("bac")), ValueError, "feature names"),
    ("predict-names-two-stage", lambda: two_stage(names("abc")).predict(names("abd")), ValueError, "feature names"),
    ("predict-nan", lambda: fit().predict(put(X, np.nan)), ValueError, "X contains NaN"),
    ("predict-1d", lambda: fit().predict(X[0]), ValueError, r"reshape\(1, -1\)"),
    ("predict-sparse", lambda: fit().predict(sp.csr_array(X[:, :2])), ValueError, "2 features.*3 features"),
    ("score-columns", lambda: fit().score(X, C[:, :2]), ValueError, r"same shape, got \(20, 2\) and \(20, 4\)"),
    ("score-rows", lambda: fit().score(X, C[:5]), ValueError, r"same shape, got \(5, 4\) and \(20, 4\)"),
    ("score-weights", lambda: fit().score(X, C, ONES[:3]), ValueError, r"\(3,\).*\(20,\)"),
    # -- partial_fit
    ("chunk-costs", lambda: stream(y=C[:, :2]), ValueError, "y has 2 columns, but the model so far has 4 costs"),
    ("chunk-costs-after-fit", lambda: fit().partial_fit(X, C[:, :2]), ValueError, "model so far has 4 costs.*use fit"),
    ("chunk-features", lambda: stream(X[:, :2]), ValueError, "X has 2 features.*expecting 3"),
    ("chunk-names", lambda: stream(names("abd"), first=names("abc")), ValueError, "feature names"),
    ("chunk-nan", lambda: stream(put(X, np.nan)), ValueError, "X contains NaN"),
    # -- which region
    ("region-class", lambda: fit(region=Simplex), TypeError, r"region must be a Region.*forget the parentheses"),
    (
        "region-text",
        lambda: fit(region="simplex"),
        TypeError,
        r"region must be a Region such as Simplex\(\).*'simplex'",
    ),
    ("region-function", lambda: fit(region=cheapest), TypeError, "can be wrapped: OracleRegion"),
    ("region-class-two-stage", lambda: two_stage(region=Simplex), TypeError, "forget the parentheses"),
    ("region-class-metric", lambda: spo_loss(C, C, Simplex), TypeError, "forget the parentheses"),
    ("surrogate-class", lambda: fit(surrogate_region=Simplex), TypeError, "forget the parentheses"),
    (
        "surrogate-columns",
        lambda: fit(surrogate_region=Box([0, 0], 1)),
        ValueError,
        r"2 decision(.|\n)*surrogate_region",
    ),
    (
        "surrogate-sense",
        lambda: fit(surrogate_region=Simplex(sense="max")),
        ValueError,
        "region has sense='min' and surrogate_region has sense='max': they must agree",
    ),
    (
        "sense",
        lambda: fit(region=Simplex(sense="maximize")),
        ValueError,
        "sense must be 'min' or 'max', got 'maximize'",
    ),
    ("no-dimension", lambda: Simplex().equalities(), ValueError, "exists in every dimension.*n_dim="),
    ("argmin-nan", lambda: Simplex().argmin([[np.nan, 1.0]]), ValueError, "C contains NaN"),
    ("argmin-columns", lambda: Box([0, 0], 1).argmin(C), ValueError, "2 decision variables.*4 columns"),
    # -- closed-form regions
    (
        "box-empty",
        lambda: fit(region=Box([0, 2, 0, 0], 1)),
        ValueError,
        r"empty, lower\[1\] = 2.0 is above upper\[1\] = 1",
    ),
    ("box-infinite", lambda: fit(region=Box(0, np.inf)), ValueError, "upper must be finite.*unbounded"),
    ("box-nan", lambda: fit(region=Box(np.nan, 1)), ValueError, "lower must be finite.*nan"),
    ("box-length", lambda: fit(region=Box([0, 0, 0], 1)), ValueError, "Box has 3 decision variables.*4 columns"),
    ("box-lengths", lambda: fit(region=Box([0] * 3, [1] * 4)), ValueError, r"lower.*shape \(4,\), got shape \(3,\)"),
    ("box-text", lambda: fit(region=Box("low", 1)), ValueError, "Box: lower must be a number.*'low'"),
    ("topk-large", lambda: fit(region=TopK(5)), ValueError, "k must be an integer between 0 and.* 4, got 5"),
    ("topk-fraction", lambda: fit(region=TopK(1.5)), ValueError, "k must be an integer.*1.5"),
    ("l1-radius", lambda: fit(region=L1Ball(-1.0)), ValueError, "radius must be a positive finite number, got -1"),
    ("lq-exponent", lambda: fit(region=LqBall(3.0)), ValueError, "above 1 and at most 2.*use L1Ball.*use Box"),
    (
        "ellipsoid-indefinite",
        lambda: fit(region=Ellipsoid(np.diag([1, 1, 1, -1]))),
        ValueError,
        "positive definite.*-1",
    ),
    ("ellipsoid-singular", lambda: fit(region=Ellipsoid(np.ones((4, 4)))), ValueError, "positive definite.*unbounded"),
    ("ellipsoid-asymmetric", lambda: fit(region=Ellipsoid(np.triu(np.ones((4, 4))))), ValueError, r"symmetric.*Q\.T"),
    (
        "ellipsoid-shape",
        lambda: fit(region=Ellipsoid(np.ones((4, 3)))),
        ValueError,
        r"shape \(4, 4\), got shape \(4, 3\)",
    ),
    ("ellipsoid-nan", lambda: fit(region=Ellipsoid(put(np.eye(4), np.nan))), ValueError, "Q must be finite.*NaN"),
    ("ellipsoid-text", lambda: fit(region=Ellipsoid([["a"] * 4] * 4)), ValueError, "Ellipsoid: Q must be.*numbers"),
    ("ellipsoid-center", lambda: fit(region=Ellipsoid(np.eye(4), [1.0])), ValueError, r"center.*\(4,\).*\(1,\)"),
    (
        "ellipsoid-center-nan",
        lambda: fit(region=Ellipsoid(center=[0, 0, np.nan, 0])),
        ValueError,
        "center must be finite",
    ),
    ("entropy-low", lambda: fit(region=EntropySimplex(-5.0)), ValueError, "above -log d = -1.38.*got -5"),
    ("entropy-high", lambda: fit(region=EntropySimplex(0.5)), ValueError, r"at most 0.*got 0.5.*use Simplex\(\)"),
    (
        "entropy-text",
        lambda: fit(region=EntropySimplex("low")),
        ValueError,
        "threshold must be a finite number or None",
    ),
    ("barrier-low", lambda: fit(region=LogBarrierSimplex(1.0)), ValueError, "above d log d = 5.5.*got 1"),
    ("barrier-inf", lambda: fit(region=LogBarrierSimplex(np.inf)), ValueError, "threshold must be a finite number"),
    # -- polyhedra
    (
        "polyhedron-infeasible",
        lambda: fit(region=Polyhedron(A_ub=[[1, 1, 1, 1]], b_ub=[-1])),
        ValueError,
        "empty.*infeasible",
    ),
    (
        "polyhedron-unbounded",
        lambda: fit(region=Polyhedron(A_ub=[[1, 0, -1, 1]], b_ub=[1])),
        ValueError,
        "unbounded: decision . has no limit above.*add bounds",
    ),
    ("polyhedron-bounds", lambda: fit(region=Polyhedron(bounds=[(0, 1)] * 3 + [(1, 0)])), ValueError, "of decision 3"),
    ("polyhedron-no-b", lambda: fit(region=Polyhedron(A_eq=np.ones((1, 4)))), ValueError, "A_eq is given without b_eq"),
    ("polyhedron-b", lambda: fit(region=Polyhedron(np.ones((1, 4)), [1, 2])), ValueError, r"b_ub.*\(1,\).*\(2,\)"),
    ("polyhedron-nan", lambda: fit(region=Polyhedron([[np.nan, 1, 1, 1]], [1])), ValueError, "must be finite"),
    ("polyhedron-ragged", lambda: fit(region=Polyhedron([[1, 1, 1, 1], [1]], [1, 1])), ValueError, "A_ub.*rectangular"),
    ("polyhedron-text", lambda: fit(region=Polyhedron([["a", 1, 1, 1]], [1])), ValueError, "A_ub must be.*numbers"),
    # -- integers
    (
        "integer-infeasible",
        lambda: fit(region=MixedInteger(A_eq=[[2, 2, 2, 2]], b_eq=[3], bounds=(0, 1), integrality=1)),
        ValueError,
        "empty.*infeasible",
    ),
    ("integer-unbounded", lambda: fit(region=MixedInteger(integrality=[1] * 4)), ValueError, "unbounded.*add bounds"),
    (
        "integer-kind",
        lambda: fit(region=MixedInteger(bounds=(0, 1), integrality=2)),
        ValueError,
        r"0 \(cont.* or 1 \(int",
    ),
    (
        "integer-time",
        lambda: fit(region=MixedInteger(bounds=(0, 1), time_limit="1 s")),
        ValueError,
        "positive number.*1 s",
    ),
    ("knapsack-weights", lambda: fit(region=Knapsack([1, -1, 1, 1], 2)), ValueError, "weights must be nonneg.*-1"),
    (
        "knapsack-capacity",
        lambda: fit(region=Knapsack([1, 1, 1, 1], -2)),
        ValueError,
        "empty.*capacity -2.0 is negative",
    ),
    ("knapsack-capacities", lambda: fit(region=Knapsack([1] * 4, [2, 3])), ValueError, r"shape \(1,\).*shape \(2,\)"),
    ("knapsack-nan", lambda: fit(region=Knapsack([1, np.nan, 1, 1], 2)), ValueError, "must be finite"),
    ("knapsack-text", lambda: fit(region=Knapsack(list("abcd"), 2)), ValueError, "Knapsack: weights must be"),
    # -- graphs
    (
        "path-unreachable",
        lambda: ShortestPath([("a", "b"), ("c", "d")], "a", "d").argmin([[1.0, 1.0]]),
        ValueError,
        "no path leads from source to target.*source='a', target='d'.*direction",
    ),
    ("path-source", lambda: ShortestPath([(0, 1)], 9, 1).argmin([[1.0]]), ValueError, "source 9 is unknown"),
    ("path-target", lambda: ShortestPath([(0, 1)], 0, "z").argmin([[1.0]]), ValueError, "target 'z' is unknown"),
    (
        "path-source-list",
        lambda: ShortestPath([(0, 1)], [0], 1).argmin([[1.0]]),
        ValueError,
        r"source \[0\] is unknown",
    ),
    ("path-triples", lambda: ShortestPath([(0, 1, 2.5)]).argmin([[1.0]]), ValueError, r"pair \(tail, head\).*edge 0"),
    ("path-undirected", lambda: ShortestPath(nx.path_graph(2)).argmin([[1.0]]), ValueError, r"undirected.*to_directed"),
    ("path-no-edges", lambda: ShortestPath(None).argmin([[1.0]]), TypeError, r"edges must be a list of \(tail, head\)"),
    (
        "path-generator",
        lambda: fit(region=ShortestPath(zip("ab", "bc", strict=True))),
        TypeError,
        "edges must be a list",
    ),
    ("path-grid", lambda: ShortestPath.grid(2.5, 3), ValueError, "rows and cols must be positive integers.*2.5"),
    ("assignment-square", lambda: Assignment().argmin(C[:, :3]), ValueError, "must be a square.*got 3"),
    (
        "assignment-n",
        lambda: Assignment("two").argmin(C),
        ValueError,
        "n must be a positive integer or None, got 'two'",
    ),
    # -- regions that the user models
    (
        "oracle-shape",
        lambda: fit(region=OracleRegion(lambda c: np.zeros((len(c), 2)))),
        ValueError,
        r"same shape \(20, 4\).*returned shape \(20, 2\)",
    ),
    ("oracle-one-row", lambda: fit(region=OracleRegion(lambda c: c[0])), ValueError, "one row per sample"),
    ("oracle-nan", lambda: fit(region=OracleRegion(lambda c: c * np.nan)), ValueError, "not finite for row [0-9]"),
    (
        "oracle-text",
        lambda: fit(region=OracleRegion(lambda c: "best")),
        ValueError,
        "must return an array of numbers.*str",
    ),
    (
        "oracle-dict",
        lambda: fit(region=OracleRegion(lambda c: {})),
        ValueError,
        "must return an array of numbers.*dict",
    ),
    ("oracle-none", lambda: fit(region=OracleRegion(lambda c: None)), ValueError, "must return"),
    ("oracle-no-function", lambda: fit(region=OracleRegion(3)), TypeError, "oracle must be a function.*got 3"),
    (
        "cvxpy-infeasible",
        lambda: fit(region=CvxpyRegion(lambda w: [w >= 1, w <= 0], 4)),
        ValueError,
        "empty.*infeasible",
    ),
    ("cvxpy-unbounded", lambda: fit(region=CvxpyRegion(lambda w: [w >= 0], 4)), ValueError, r"unbounded, w\[0\].*Add"),
    ("cvxpy-not-dcp", lambda: fit(region=CvxpyRegion(lambda w: [cp.norm(w) >= 1], 4)), ValueError, "not DCP.*rewrite"),
    ("cvxpy-list", lambda: fit(region=CvxpyRegion([], 4)), TypeError, "must be a function w -> list"),
    ("cvxpy-returns", lambda: fit(region=CvxpyRegion(lambda w: None, 4)), TypeError, "must return a list.*got None"),
    ("cvxpy-n_dim", lambda: fit(region=CvxpyRegion(box_constraints, 3)), ValueError, "3 decision var.*4 columns"),
    ("markowitz-risk", lambda: fit(region=Markowitz(np.eye(4), 0.1)), ValueError, "infeasible, max_risk = 0.1.*0.25"),
    ("markowitz-negative", lambda: fit(region=Markowitz(np.eye(4), -1)), ValueError, "max_risk must be a positive"),
    ("markowitz-indefinite", lambda: fit(region=Markowitz(-np.eye(4), 1)), ValueError, "positive semidefinite.*-1"),
    ("markowitz-budget", lambda: fit(region=Markowitz(np.eye(4), 1, budget="x")), ValueError, "'equal' or 'at_most'"),
    # -- metrics and losses
    ("metric-shapes", lambda: spo_loss(C, C[:, :2], Simplex()), ValueError, r"same shape, got \(20, 4\) and \(20, 2\)"),
    ("metric-3d", lambda: spo_loss(C[None], C[None], Simplex()), ValueError, r"y_true must have shape.*\(1, 20, 4\)"),
    ("metric-nan", lambda: spo_loss(C, put(C, np.nan), Simplex()), ValueError, "y_pred contains NaN"),
    ("metric-ties", lambda: spo_loss(C, C, Simplex(), ties="best"), ValueError, "'oracle' or 'worst', got 'best'"),
    (
        "metric-ties-impossible",
        lambda: spo_loss(C, C, MIXED, ties="worst"),
        ValueError,
        "MixedInteger cannot compute. Use ties='oracle'",
    ),
    ("metric-weights", lambda: spo_loss(C, C, sample_weight=ONES[:3]), ValueError, r"\(3,\).*\(20,\)"),
    ("metric-weights-unused", lambda: spo_loss(C, C, sample_weight=ONES[:3], per_sample=True), ValueError, r"\(3,\)"),
    ("metric-weights-zero", lambda: normalized_spo_loss(C, C, sample_weight=0 * ONES), ValueError, "zero"),
    ("scorer-metric", lambda: make_spo_scorer(metric="mse"), ValueError, "'normalized_spo_loss', 'spo_loss'.*'mse'"),
    ("scorer-metric-list", lambda: make_spo_scorer(metric=["spo_loss"]), ValueError, "metric must be one of"),
    ("scorer-parameter", lambda: make_spo_scorer(tie="worst"), TypeError, "no parameter 'tie'.*'ties'"),
    (
        "loss-decisions",
        lambda: SPOPlusLoss(Simplex()).value(C, C, C[:, :2]),
        ValueError,
        r"W_true.*\(20, 4\).*\(20, 2\)",
    ),
    ("loss-gradient", lambda: SPOLoss(Simplex()).gradient(C, C), TypeError, "no gradient.*Use SPOPlusLoss"),
    # -- TwoStageRegressor
    (
        "two-stage-weight",
        lambda: two_stage(sample_weight=ONES, regressor=KNeighborsRegressor()),
        ValueError,
        "KNeighborsRegressor does not accept sample_weight.*without sample_weight",
    ),
    ("two-stage-weight-zero", lambda: two_stage(sample_weight=0 * ONES), ValueError, "zero"),
    ("two-stage-region-first", lambda: TwoStageRegressor(Simplex()).fit(X, C), TypeError, "region is the second param"),
    (
        "two-stage-text",
        lambda: two_stage(regressor="linear"),
        TypeError,
        "must be a scikit-learn regressor, got 'linear'",
    ),
    ("two-stage-class", lambda: two_stage(regressor=LinearRegression), TypeError, "instead of a class|instance"),
    ("two-stage-y-3d", lambda: two_stage(y=C[:, :, None]), ValueError, "y must have shape"),
    ("two-stage-y-nan", lambda: two_stage(y=put(C, np.nan)), ValueError, "y contains NaN"),
    ("two-stage-y-none", lambda: two_stage(y=None), ValueError, "requires y to be passed"),
    ("two-stage-X-nan", lambda: two_stage(put(X, np.nan)), ValueError, "X contains NaN"),
    ("two-stage-lengths", lambda: two_stage(X[:9]), ValueError, "inconsistent numbers of samples"),
]


@pytest.mark.filterwarnings("ignore:No region was given:UserWarning")
@pytest.mark.parametrize(("action", "error", "pattern"), [pytest.param(*case, id=name) for name, *case in CASES])
def test_bad_input_is_refused_with_a_helpful_message(action, error, pattern):
    with pytest.raises(error, match=pattern):
        action()


# -- one row is valid input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("region", "solver"),
    [(Simplex(), "conic"), (Simplex(), "sgd"), (LqBall(), "lbfgs"), (EntropySimplex(), "auto"), (TopK(2), "auto")],
    ids=str,
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_row_is_fitted_perfectly(region, solver, fit_intercept):
    model = fit(X[:1], C[:1], region=region, solver=solver, fit_intercept=fit_intercept)
    assert model.duality_gap_ <= model.tol
    assert model.score(X[:1], C[:1]) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.filterwarnings("ignore:y has one column:UserWarning")
def test_one_cost_and_costs_of_zero_are_fitted():
    assert fit(y=C[:, :1]).duality_gap_ <= 1e-6
    assert fit(y=0 * C).objective_ == 0.0


@pytest.mark.parametrize("scale", [1e-250, 1e250])
@pytest.mark.parametrize("region", [Simplex(), LqBall()], ids=str)
def test_costs_whose_squares_overflow_only_change_the_scale(region, scale):
    model, scaled = fit(region=region), fit(y=C * scale, region=region)
    assert scaled.duality_gap_ <= 1e-6
    assert scaled.objective_ == pytest.approx(scale * model.objective_, rel=1e-5, abs=0.0)
