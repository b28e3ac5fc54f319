"""``CostSensitiveClassifier`` and the metric ``mean_cost``."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from marks import routes_score_of_pipelines
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, confusion_matrix, make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from skspo import (
    CostSensitiveClassifier,
    Simplex,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPOStackingRegressor,
    TopK,
    mean_cost,
)

MATRIX = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [5.0, 3.0, 0.0]])
NAMES = np.array(["blue", "green", "red"])
FRAME = pd.DataFrame(MATRIX, index=NAMES, columns=NAMES)
SPO_PLUS = SPOPlusRegressor(alpha=0.05)

rng = np.random.default_rng(0)
X, Y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X[:, :2])  # two classes overlap
COSTS = rng.uniform(0, 3, size=(len(Y), 3)) + 3 * (Y[:, None] != np.arange(3))
WEIGHT = rng.uniform(0.1, 3.0, size=len(Y))
BINARY = Y > 0


@parametrize_with_checks(
    [
        CostSensitiveClassifier("balanced", SPO_PLUS),
        CostSensitiveClassifier(None, LogisticRegression()),
        CostSensitiveClassifier(None, DecisionTreeRegressor(random_state=0)),
        # The default with fewer penalties and folds; test_default_has_stratified_folds says what it is.
        CostSensitiveClassifier(None, SPOPlusRegressorCV(prior="zero", n_alphas=2, cv=2)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- what is computed --------------------------------------------------------------------------------------------------


def test_support_vector_machine():
    """With costs 0 and 1, SPO+ with a ridge is the multi-class SVM of Crammer & Singer, scores being -2 costs."""
    alpha = 0.02
    model = CostSensitiveClassifier(None, SPOPlusRegressor(alpha=alpha, fit_intercept=False, tol=1e-9)).fit(X, Y)
    svm = LinearSVC(
        multi_class="crammer_singer", C=4 / (alpha * len(Y)), fit_intercept=False, tol=1e-9, max_iter=100_000
    ).fit(X, Y)
    np.testing.assert_allclose(-2 * model.estimator_.coef_, svm.coef_, atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), svm.predict(X))


def test_the_model_is_fitted_to_the_rows_of_the_matrix():
    model = CostSensitiveClassifier(MATRIX, SPO_PLUS).fit(X, Y)
    inner = SPOPlusRegressor(Simplex(), alpha=0.05).fit(X, MATRIX[Y])
    np.testing.assert_array_equal(model.predict_costs(X), inner.predict(X))
    np.testing.assert_array_equal(model.predict(X), inner.decide(X).argmax(axis=1))
    np.testing.assert_array_equal(model.decision_function(X), -inner.predict(X))


def test_default_has_stratified_folds():
    model = CostSensitiveClassifier(MATRIX).fit(X, Y)  # labels are sorted: folds of KFold would lack a class
    splits = list(StratifiedKFold(5).split(X, Y))
    inner = SPOPlusRegressorCV(Simplex(), prior="zero", n_alphas=10, cv=splits).fit(X, MATRIX[Y])
    np.testing.assert_array_equal(model.predict_costs(X), inner.predict(X))
    assert len(model.estimator_.cv) == 5 and model.cv is None
    # Few samples of a class.
    few = np.r_[0:50, 50:53, 100:150]
    scores = CostSensitiveClassifier(MATRIX).fit(X[few], Y[few]).estimator_.cv_results_
    assert "split2_test_score" in scores and "split3_test_score" not in scores
    for rows in (np.r_[0:50, 50, 100:150], [0, 50]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            k = np.unique(Y[rows]).size
            assert CostSensitiveClassifier(MATRIX[:k, :k]).fit(X[rows], Y[rows]).predict(X).shape == Y.shape
    # Folds that were given, to the classifier or to the estimator.
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    one = CostSensitiveClassifier(MATRIX, SPOPlusRegressorCV(n_alphas=4), cv=cv).fit(X, Y)
    two = CostSensitiveClassifier(MATRIX, SPOPlusRegressorCV(n_alphas=4, cv=list(cv.split(X, Y)))).fit(X, Y)
    np.testing.assert_array_equal(one.predict_costs(X), two.predict_costs(X))


def test_costs_of_each_sample():
    model = CostSensitiveClassifier(estimator=SPO_PLUS).fit(X, Y, costs=COSTS)
    inner = SPOPlusRegressor(Simplex(), alpha=0.05).fit(X, COSTS)
    np.testing.assert_array_equal(model.predict_costs(X), inner.predict(X))
    assert model.cost_matrix_ is None
    chosen = COSTS[np.arange(len(Y)), model.predict(X)]
    assert model.score(X, Y, costs=COSTS) == pytest.approx(-chosen.mean(), rel=1e-12)
    weighted = model.score(X, Y, costs=COSTS, sample_weight=WEIGHT)
    assert weighted == pytest.approx(-np.average(chosen, weights=WEIGHT), rel=1e-12)
    # Rows of a matrix are the costs of each sample.
    one = CostSensitiveClassifier(MATRIX, SPO_PLUS).fit(X, Y)
    two = CostSensitiveClassifier(None, SPO_PLUS).fit(X, Y, costs=MATRIX[Y])
    np.testing.assert_array_equal(one.predict_costs(X), two.predict_costs(X))
    assert one.score(X, Y) == pytest.approx(two.score(X, Y, costs=MATRIX[Y]), rel=1e-12)


def test_labels_and_data_frames():
    model = CostSensitiveClassifier(MATRIX, SPO_PLUS).fit(X, Y)
    order = [2, 0, 1]
    shuffled = FRAME.iloc[order, [1, 2, 0]]
    more = pd.DataFrame(9.0, index=[*NAMES, "white"], columns=[*NAMES, "white"])
    more.loc[NAMES, NAMES] = MATRIX
    for matrix in (MATRIX, MATRIX.tolist(), FRAME, shuffled, more):
        for labels in (NAMES[Y], NAMES[Y].astype(object), pd.Series(NAMES[Y])):
            named = CostSensitiveClassifier(matrix, SPO_PLUS).fit(X, labels)
            assert list(named.classes_) == list(NAMES)
            np.testing.assert_array_equal(named.predict(X), NAMES[model.predict(X)])
            np.testing.assert_array_equal(named.cost_matrix_, MATRIX)
            assert named.score(X, labels) == model.score(X, Y)
    costs = pd.DataFrame(COSTS, columns=NAMES)
    one = CostSensitiveClassifier(None, SPO_PLUS).fit(X, NAMES[Y], costs=costs[NAMES[order]])
    two = CostSensitiveClassifier(None, SPO_PLUS).fit(X, NAMES[Y], costs=COSTS)
    np.testing.assert_array_equal(one.predict_costs(X), two.predict_costs(X))
    assert one.score(X, NAMES[Y], costs=costs[NAMES[order]]) == two.score(X, NAMES[Y], costs=COSTS)
    # Training data that lack a class.
    rows = Y > 0
    part = CostSensitiveClassifier(FRAME, SPO_PLUS).fit(X[rows], NAMES[Y][rows])
    np.testing.assert_array_equal(part.cost_matrix_, MATRIX[1:, 1:])
    predicted = np.searchsorted(NAMES, part.predict(X))
    assert part.score(X, NAMES[Y]) == pytest.approx(-MATRIX[Y, predicted].mean(), rel=1e-12)


def test_two_classes():
    model = CostSensitiveClassifier([[0, 1], [3, 0]], SPO_PLUS).fit(X, BINARY)
    assert model.decision_function(X).shape == BINARY.shape
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X))
    C_hat = model.predict_costs(X)
    np.testing.assert_array_equal(model.decision_function(X), C_hat[:, 0] - C_hat[:, 1])
    # The more a missed positive costs, the more positives there are.
    counts = [
        CostSensitiveClassifier([[0, 1], [cost, 0]], SPO_PLUS).fit(X, Y == 1).predict(X).sum() for cost in (0.3, 1, 5)
    ]
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("cost", [0.2, 1.0, 4.0])
def test_classifiers_choose_the_least_expected_cost(cost):
    """For two classes this is a threshold for the probability."""
    model = CostSensitiveClassifier([[0, 1], [cost, 0]], LogisticRegression()).fit(X, BINARY)
    fixed = FixedThresholdClassifier(LogisticRegression(), threshold=1 / (1 + cost)).fit(X, BINARY)
    np.testing.assert_array_equal(model.predict(X), fixed.predict(X))


def test_classifiers_with_three_classes():
    logistic = LogisticRegression()
    model = CostSensitiveClassifier(MATRIX, logistic).fit(X, NAMES[Y], sample_weight=WEIGHT)
    P = logistic.fit(X, Y, sample_weight=WEIGHT).predict_proba(X)
    for i in range(len(Y)):
        expected = [sum(P[i, j] * MATRIX[j, k] for j in range(3)) for k in range(3)]
        assert model.predict(X[i : i + 1])[0] == NAMES[int(np.argmin(expected))]
    calibrated = CostSensitiveClassifier(MATRIX, CalibratedClassifierCV(LogisticRegression())).fit(X, Y)
    assert calibrated.score(X, Y) < 0


def test_balanced():
    rows = np.r_[0:50, 50:60, 100:130]
    weight = WEIGHT[rows]
    for w in (None, weight):
        model = CostSensitiveClassifier("balanced", SPO_PLUS).fit(X[rows], Y[rows], sample_weight=w)
        counts = np.bincount(Y[rows], weights=w)
        each = counts.sum() / (3 * counts)
        np.testing.assert_allclose(model.cost_matrix_, each[:, None] * (1 - np.eye(3)), rtol=1e-12)


def test_weights_are_repetitions():
    weight = rng.integers(0, 3, size=len(Y))
    for estimator in (
        SPO_PLUS,
        make_pipeline(StandardScaler(with_mean=False, with_std=False), SPO_PLUS),
        LinearRegression(),
    ):
        model = CostSensitiveClassifier(MATRIX, estimator)
        one = clone(model).fit(X, Y, sample_weight=weight).predict_costs(X)
        two = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight)).predict_costs(X)
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-9)


def test_gains():
    """Negative costs are gains; adding a number to a row changes no decision of a classifier."""
    one = CostSensitiveClassifier(MATRIX, LogisticRegression()).fit(X, Y)
    two = CostSensitiveClassifier(MATRIX - 10, LogisticRegression()).fit(X, Y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert two.score(X, Y) == pytest.approx(one.score(X, Y) + 10)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), SPO_PLUS),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), KNeighborsRegressor()),
        GridSearchCV(SPOPlusRegressor(Simplex()), {"alpha": [0.01, 0.1]}),
        SPOPlusRegressor(Simplex(), alpha=0.05),
        SPOStackingRegressor(estimators=[("ridge", Ridge()), ("spo+", SPO_PLUS)], random_state=0),
    ],
    ids=["pipeline", "classifier in a pipeline", "neighbors", "search", "region", "stack"],
)
def test_estimators(estimator):
    kept = pickle.dumps(estimator)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All best costs are zero")
        model = CostSensitiveClassifier(MATRIX, estimator).fit(X, Y)
    assert pickle.dumps(estimator) == kept
    assert -model.score(X, Y) < 0.5  # the best constant label costs 1.33
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# -- the metric --------------------------------------------------------------------------------------------------------


def test_mean_cost():
    predicted = rng.integers(0, 3, size=len(Y))
    counts = confusion_matrix(Y, predicted)
    assert mean_cost(Y, predicted, MATRIX) == pytest.approx((counts * MATRIX).sum() / len(Y), rel=1e-12)
    weighted = confusion_matrix(Y, predicted, sample_weight=WEIGHT)
    assert mean_cost(Y, predicted, MATRIX, sample_weight=WEIGHT) == pytest.approx(
        (weighted * MATRIX).sum() / WEIGHT.sum(), rel=1e-12
    )
    assert mean_cost(Y, predicted) == pytest.approx(1 - accuracy_score(Y, predicted), rel=1e-12)
    assert mean_cost(NAMES[Y], NAMES[predicted], FRAME) == mean_cost(Y, predicted, MATRIX)
    by_sample = mean_cost(Y, predicted, costs=COSTS)
    assert by_sample == pytest.approx(COSTS[np.arange(len(Y)), predicted].mean(), rel=1e-12)
    order = [2, 0, 1]
    assert mean_cost(Y, predicted, MATRIX[np.ix_(order, order)], labels=order) == mean_cost(Y, predicted, MATRIX)


# -- in scikit-learn ---------------------------------------------------------------------------------------------------


def test_pipeline_and_search():
    pipeline = make_pipeline(StandardScaler(), CostSensitiveClassifier(MATRIX, SPO_PLUS))
    grid = {
        "costsensitiveclassifier__estimator": [SPO_PLUS, LogisticRegression(), Ridge()],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, NAMES[Y])
    scorer = make_scorer(mean_cost, greater_is_better=False, cost_matrix=FRAME)
    again = GridSearchCV(pipeline, grid, cv=3, scoring=scorer).fit(X, NAMES[Y])
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"], rtol=1e-12)
    assert search.score(X, NAMES[Y]) == -mean_cost(NAMES[Y], search.predict(X), FRAME)
    deep = GridSearchCV(CostSensitiveClassifier(MATRIX, SPO_PLUS), {"estimator__alpha": [0.1, 1e3]}, cv=3).fit(X, Y)
    assert deep.best_params_ == {"estimator__alpha": 0.1}
    scores = cross_val_predict(CostSensitiveClassifier(MATRIX, SPO_PLUS), X, Y, method="decision_function")
    assert scores.shape == (len(Y), 3)
    accuracy = cross_val_score(CostSensitiveClassifier(None, SPO_PLUS), X, Y, scoring="accuracy")
    np.testing.assert_allclose(cross_val_score(CostSensitiveClassifier(None, SPO_PLUS), X, Y), accuracy - 1)


@routes_score_of_pipelines
def test_metadata_routing():
    cv = StratifiedKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = CostSensitiveClassifier(None, SPO_PLUS).set_fit_request(costs=True, sample_weight=True)
        model.set_score_request(costs=True, sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        known = {"costs": COSTS, "sample_weight": WEIGHT}
        scores = cross_validate(pipeline, X, Y, cv=cv, params=known)["test_score"]
        search = GridSearchCV(model, {"estimator__alpha": [0.05]}, cv=cv).fit(X, Y, **known)
    for k, (train, test) in enumerate(cv.split(X, Y)):
        scaler = StandardScaler().fit(X[train])
        fitted = CostSensitiveClassifier(None, SPO_PLUS).fit(
            scaler.transform(X[train]), Y[train], sample_weight=WEIGHT[train], costs=COSTS[train]
        )
        by_hand = fitted.score(scaler.transform(X[test]), Y[test], sample_weight=WEIGHT[test], costs=COSTS[test])
        assert scores[k] == pytest.approx(by_hand, rel=1e-12)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_sparse_features_and_names():
    model = CostSensitiveClassifier(MATRIX, SPO_PLUS).fit(X, Y)
    sparse = CostSensitiveClassifier(MATRIX, SPO_PLUS).fit(csr_array(X), Y)
    np.testing.assert_array_equal(sparse.predict(csr_array(X)), model.predict(X))
    frame = pd.DataFrame(X, columns=["length", "width"])
    named = CostSensitiveClassifier(MATRIX, SPO_PLUS).fit(frame, Y)
    assert list(named.feature_names_in_) == ["length", "width"]
    np.testing.assert_array_equal(named.predict(frame), model.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame[["width", "length"]])


def test_failed_fits_leave_the_model():
    model = CostSensitiveClassifier(MATRIX, SPO_PLUS).fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="2 classes"):
        model.fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="X contains NaN"):
        model.fit(X * np.nan, Y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_right_class_that_is_not_the_cheapest():
    matrix = MATRIX.copy()
    matrix[1, 1] = 1.5
    with pytest.warns(UserWarning, match="if 1 is true, predicting 2 costs 1 and the right class 1.5"):
        CostSensitiveClassifier(matrix, SPO_PLUS).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CostSensitiveClassifier(MATRIX, SPO_PLUS).fit(X, Y)


# -- wrong input -------------------------------------------------------------------------------------------------------


def fit(matrix=None, estimator=SPO_PLUS, X=X, y=Y, **known):
    return CostSensitiveClassifier(matrix, estimator).fit(X, y, **known)


def put(array, value):
    """A copy with one entry replaced."""
    array = array.copy()
    array.flat[1] = value
    return array


CASES = [
    ("not-square", lambda: fit(MATRIX[:2]), ValueError, r"cost_matrix must be square.*row per true class.*\(2, 3\)"),
    ("one-dimension", lambda: fit(MATRIX[0]), ValueError, r"cost_matrix must be square.*\(3,\)"),
    ("size", lambda: fit(MATRIX[:2, :2]), ValueError, r"shape \(2, 2\), but there are 3 classes: 0, 1, 2.*data frame"),
    ("nan", lambda: fit(put(MATRIX, np.nan)), ValueError, r"cost_matrix must be finite, got nan at \(0, 1\)"),
    ("inf", lambda: fit(put(MATRIX, np.inf)), ValueError, r"cost_matrix must be finite, got inf at \(0, 1\)"),
    ("text", lambda: fit([["a", "b"], ["c", "d"]]), ValueError, "cost_matrix must be an array of numbers"),
    ("word", lambda: fit("uniform"), ValueError, "must be an array, 'balanced' or None, got 'uniform'"),
    ("gains", lambda: fit(-MATRIX), ValueError, "in every row the right class costs most.*Pass -cost_matrix"),
    ("zero", lambda: fit(0 * MATRIX), ValueError, "all classes cost the same in every row"),
    ("constant-rows", lambda: fit(np.repeat([[1], [2], [3]], 3, axis=1)), ValueError, "nothing to learn"),
    ("frame-row", lambda: fit(FRAME.iloc[:2], y=NAMES[Y]), ValueError, "no row for the classes 'red'.*'blue', 'green'"),
    ("frame-column", lambda: fit(FRAME[["red", "blue"]], y=NAMES[Y]), ValueError, "no column for the classes 'green'"),
    (
        "frame-labels",
        lambda: fit(FRAME),
        ValueError,
        "no row for the classes 0, 1, 2; the rows of the frame are 'blue'",
    ),
    ("frame-twice", lambda: fit(FRAME.iloc[[0, 0, 1, 2]], y=NAMES[Y]), ValueError, "each class must have one row"),
    ("one-class", lambda: fit(X=X[:9], y=Y[:9]), ValueError, "at least 2 classes, but y has one class, 0"),
    ("one-class-text", lambda: fit(X=X[:9], y=NAMES[Y][:9].astype(object)), ValueError, "one class, 'blue'"),
    ("no-samples", lambda: fit(X=X[:0], y=Y[:0]), ValueError, "at least 2 classes, but y has no samples"),
    ("continuous", lambda: fit(y=X[:, 0]), ValueError, "Unknown label type: continuous"),
    ("two-columns", lambda: fit(y=MATRIX[Y]), ValueError, r"y should be a 1d array, got an array of shape \(150, 3\)"),
    ("no-labels", lambda: fit(y=None), ValueError, "requires y to be passed"),
    ("nan-labels", lambda: fit(y=np.where(Y == 1, np.nan, Y)), ValueError, "Input y contains NaN"),
    ("lengths", lambda: fit(X=X[:9]), ValueError, r"inconsistent numbers of samples: \[9, 150\]"),
    ("both", lambda: fit(MATRIX, costs=COSTS), ValueError, "cost_matrix and costs are both given"),
    ("costs-rows", lambda: fit(costs=COSTS[:9]), ValueError, r"one row for each of the 150 samples.*\(9, 3\)"),
    ("costs-columns", lambda: fit(costs=COSTS[:, :2]), ValueError, "2 columns, but there are 3 classes: 0, 1, 2"),
    ("costs-1d", lambda: fit(costs=COSTS[:, 0]), ValueError, r"one column per class, got shape \(150,\)"),
    ("costs-nan", lambda: fit(costs=put(COSTS, np.nan)), ValueError, r"costs must be finite, got nan at \(0, 1\)"),
    ("costs-text", lambda: fit(costs="high"), ValueError, "costs must be an array of numbers, got 'high'"),
    ("costs-zero", lambda: fit(costs=0 * COSTS), ValueError, "costs: all classes cost the same in every sample"),
    (
        "costs-frame",
        lambda: fit(y=NAMES[Y], costs=pd.DataFrame(COSTS, columns=["blue", "red", "white"])),
        ValueError,
        "costs has no column for the classes 'green'; the columns of the frame are 'blue', 'red', 'white'",
    ),
    (
        "costs-of-a-classifier",
        lambda: fit(None, LogisticRegression(), costs=COSTS),
        ValueError,
        "LogisticRegression predicts probabilities.*if costs vary by sample",
    ),
    (
        "no-probabilities",
        lambda: fit(MATRIX, LinearSVC()),
        TypeError,
        "LinearSVC has none. CalibratedClassifierCV adds",
    ),
    ("region", lambda: fit(MATRIX, SPOPlusRegressor(TopK(1))), ValueError, r"must decide in Simplex\(\).*TopK\(\)"),
    ("sense", lambda: fit(MATRIX, SPOPlusRegressor(Simplex(sense="max"))), ValueError, r"must decide in Simplex\(\)"),
    ("swapped", lambda: CostSensitiveClassifier(SPO_PLUS, MATRIX).fit(X, Y), TypeError, "cost matrix is the first par"),
    ("estimator-text", lambda: fit(MATRIX, "spo+"), TypeError, "estimator must be an estimator of skspo.*'spo\\+'"),
    ("transformer", lambda: fit(MATRIX, StandardScaler()), TypeError, "The model must be a regressor"),
    ("weight-negative", lambda: fit(sample_weight=-WEIGHT), ValueError, "Negative values.*sample_weight"),
    ("weight-length", lambda: fit(sample_weight=WEIGHT[:9]), ValueError, r"sample_weight.*\(9,\).*\(150,\)"),
    (
        "weight-refused",
        lambda: fit(MATRIX, KNeighborsRegressor(), sample_weight=WEIGHT),
        ValueError,
        "KNeighborsRegressor does not accept sample_weight",
    ),
    ("not-fitted", lambda: CostSensitiveClassifier().predict(X), NotFittedError, "not fitted yet"),
    (
        "features",
        lambda: fit().predict(X[:, :1]),
        ValueError,
        "X has 1 features, but CostSensitiveClassifier is expecting 2",
    ),
    (
        "score-without-costs",
        lambda: fit(costs=COSTS).score(X, Y),
        ValueError,
        r"fitted with costs, but score was called without them.*set_score_request\(costs=True\)",
    ),
    ("score-label", lambda: fit(MATRIX).score(X, Y + 1), ValueError, r"y_true has the label 3, which is not among"),
    ("metric-both", lambda: mean_cost(Y, Y, MATRIX, costs=COSTS), ValueError, "both given"),
    ("metric-size", lambda: mean_cost(Y[:90], Y[:90], MATRIX), ValueError, r"\(3, 3\), but there are 2 classes: 0, 1"),
    ("metric-lengths", lambda: mean_cost(Y, Y[:9]), ValueError, "inconsistent numbers of samples"),
    ("metric-labels", lambda: mean_cost(Y, Y, labels=[0, 1]), ValueError, "y_true has the label 2"),
]


@pytest.mark.parametrize(("action", "error", "pattern"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_wrong_input(action, error, pattern):
    with pytest.raises(error, match=f"(?s){pattern}"):
        action()
