"""Frames with columns or rows in another order: every method gives the same result or an error, never another result.

Each case is a public method with all of its frame arguments.  One argument at a time gets its columns or its rows in
another order, by the name and in the index alone: a reordered frame has other values at the same positions.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skspo
from skspo import (
    Assignment,
    Box,
    ChunkedData,
    CostSensitiveClassifier,
    Knapsack,
    LinearImage,
    Polyhedron,
    ShortestPath,
    Simplex,
    SPOLoss,
    SPOMLPRegressor,
    SPOPlusLoss,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    SPORegressorCV,
    SPOStackingRegressor,
    TopK,
    TwoStageRegressor,
    row_params,
)
from skspo.boosting import LightGBMObjective, XGBoostObjective
from skspo.calibration import symmetry_test

pytestmark = pytest.mark.filterwarnings("ignore")

N, FEATURES, NAMES = 12, ["wind", "load"], ["night", "noon", "evening", "rest"]
DAYS = pd.date_range("2026-01-01", periods=N)
rng = np.random.default_rng(0)


def frame(values, columns=NAMES):
    return pd.DataFrame(values, index=DAYS, columns=columns)


def series(values):
    return pd.Series(values, index=DAYS)


X = frame(rng.normal(size=(N, 2)), FEATURES)
X_FIRST = X.reset_index(drop=True)
C = frame(3.0 + X.to_numpy() @ rng.normal(size=(2, 4)) + rng.normal(size=(N, 4)))
C_HAT = frame(C + rng.normal(size=(N, 4)))
W = frame(TopK(2).argmin(C.to_numpy()))
OFFSET = frame(rng.normal(size=(N, 4)))
WEIGHT = series(rng.uniform(0.1, 5.0, size=N))
GROUPS = series(np.sort(rng.integers(0, 4, size=N)))
LABELS = series(rng.integers(0, 3, size=N))
CLASS_COSTS = frame(rng.uniform(size=(N, 3)), [0, 1, 2])
OPEN = frame(rng.uniform(size=(N, 4)) < 0.6)
OPEN.iloc[:, :2] = True
LAST, FIRST = OPEN.astype(float), -OPEN.astype(float)
CAPACITY = pd.DataFrame({"capacity": rng.uniform(3, 9, size=N)}, index=DAYS)
B_UB = frame(rng.uniform(1, 4, size=(N, 2)), ["day", "week"])
ENDS = series(rng.choice(["c", "d"], size=N))

KNAPSACK, LP = Knapsack([3, 4, 5, 2], 8), Polyhedron(A_ub=[[1, 2, 1, 2], [2, 1, 1, 1]], b_ub=[3, 3], bounds=(0, 2))
ROADS = ShortestPath([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")], "a", "d")
ROADS_C, ROADS_HAT = (table.set_axis(ROADS.variable_names, axis=1) for table in (C, C_HAT))
NAMED = Polyhedron(A_eq=[[1, 1, 1, 1]], b_eq=[1], variable_names=NAMES)
FAST = {"tol": 1e-3, "max_iter": 200}

# -- estimators: fit, then every method of the fitted model ------------------------------------------------------------

# Each estimator: the model, its parameters by sample, and whether fit takes weights.
ESTIMATORS = {
    "spo+": (SPOPlusRegressor(TopK(2), alpha=0.1, **FAST), {"available": OPEN}),
    "spo+ box": (SPOPlusRegressor(Box(-1, 1), alpha=0.1, **FAST), {"lower": FIRST, "upper": LAST}),
    "spo+ frame": (SPOPlusRegressor(Knapsack([3, 4, 5, 2], 8, integer=False), alpha=0.1, **FAST), CAPACITY),
    "spo+ constraints": (SPOPlusRegressor(LP, alpha=0.1, **FAST), {"b_ub": B_UB}),
    "spo+ row_params": (SPOPlusRegressor(Simplex(), alpha=0.1, **FAST), row_params(available=OPEN)),
    "cv": (SPOPlusRegressorCV(Simplex(), n_alphas=2, cv=2, **FAST), {"available": OPEN}),
    "spo": (SPORegressor(Simplex(), max_iter=3, n_restarts=0, random_state=0), {"available": OPEN}),
    "spo cv": (SPORegressorCV(Simplex(), n_alphas=2, cv=2, max_iter=3, tol=1e-2, random_state=0), {"available": OPEN}),
    "network": (SPOMLPRegressor(Simplex(), hidden_layer_sizes=(3,), max_iter=2, random_state=0), {"available": OPEN}),
    "two stages": (TwoStageRegressor(region=Simplex(), costs="visible"), {"available": OPEN}),
    "stack": (
        SPOStackingRegressor(Simplex(), [("ols", LinearRegression()), ("spo", SPOPlusRegressor(**FAST))], cv=2),
        {"available": OPEN},
    ),
}


def arguments(name):
    return {"X": X, "y": C, "sample_weight": WEIGHT, "offset": OFFSET, "region_params": ESTIMATORS[name][1]}


@cache
def fitted(name):
    return clone(ESTIMATORS[name][0]).fit(**arguments(name))


def later(name):
    """Methods of the fitted model: their name, and what they get."""
    rows = ESTIMATORS[name][1]
    known = {"offset": OFFSET, "region_params": rows}
    return {
        "predict": {"X": X, "offset": OFFSET},
        "decide": {"X": X} | known,
        "chosen": {"X": X} | known,
        "score": {"X": X, "y": C, "sample_weight": WEIGHT} | known,
        "report": {"X": X, "y": C, "sample_weight": WEIGHT, "groups": GROUPS} | known,
    }


# -- functions ---------------------------------------------------------------------------------------------------------


def fit_chunks(X, y, sample_weight, offset):
    head, tail = slice(None, 6), slice(6, None)
    chunks = [[part.iloc[rows] for part in (X, y, sample_weight, offset)] for rows in (head, tail)]
    return SPOPlusRegressor(Simplex(), alpha=0.1, **FAST).fit_chunks(chunks)


def from_arrays(X, y, sample_weight, offset):
    data = ChunkedData.from_arrays(X, y, sample_weight, offset, chunk_rows=5)
    return SPOPlusRegressor(Simplex(), alpha=0.1, **FAST).fit_chunks(data)


def partial_fit(X, y, sample_weight, offset, region_params):
    model = SPOPlusRegressor(Simplex(), random_state=0)
    rows = {"available": OPEN.to_numpy()}
    model.partial_fit(X_FIRST, C, WEIGHT.to_numpy(), OFFSET.to_numpy(), rows)
    return model.partial_fit(X, y, sample_weight, offset, region_params)


def dask_fit(X, y, sample_weight, offset):
    dd = pytest.importorskip("dask.dataframe")
    parts = (dd.from_pandas(part, npartitions=2, sort=False) for part in (X, y, sample_weight, offset))
    return SPOPlusRegressor(Simplex(), alpha=0.1, **FAST).fit(*parts)


def dask_decide(X, offset):
    dd = pytest.importorskip("dask.dataframe")
    model = plain()
    return model.decide(*(dd.from_pandas(part, npartitions=2, sort=False) for part in (X, offset))).compute()


def dask_score(X, y, sample_weight, offset):
    dd = pytest.importorskip("dask.dataframe")
    parts = (dd.from_pandas(part, npartitions=2, sort=False) for part in (X, y, sample_weight, offset))
    return plain().score(*parts)


@cache
def plain():
    return SPOPlusRegressor(Simplex(), alpha=0.1, **FAST).fit(X, C, offset=OFFSET)


@cache
def boxed():
    return SPOPlusRegressor(Box(0, [1, 2, 3, 40]), alpha=0.1, **FAST).fit(X, C)


@cache
def pipe():
    return make_pipeline(StandardScaler(), SPOPlusRegressor(Simplex(), alpha=0.1, **FAST)).fit(X, C)


@cache
def forest():
    return LinearRegression().fit(X, C)


def region_rows(region):
    return lambda C, **rows: region.with_rows(rows, N, 4).argmin(np.asarray(C))


def through_row_params(X, y, available):
    # Solvers whose steps depend on the order of the features end elsewhere within the tolerance.
    model = SPOPlusRegressor(Simplex(), alpha=0.1, solver="interior-point", **FAST)
    return model.fit(X, y, region_params=row_params(available=available))


RISK = {"X": X, "C": C, "sample_weight": WEIGHT, "groups": GROUPS, "offset": OFFSET}
METRIC = {"y_true": C, "y_pred": C_HAT, "sample_weight": WEIGHT, "offset": OFFSET}
ROWS = {"region_params": {"available": OPEN}}

FUNCTIONS = {
    "fit_chunks": (fit_chunks, {"X": X, "y": C, "sample_weight": WEIGHT, "offset": OFFSET}),
    "from_arrays": (from_arrays, {"X": X, "y": C, "sample_weight": WEIGHT, "offset": OFFSET}),
    "partial_fit": (partial_fit, {"X": X, "y": C, "sample_weight": WEIGHT, "offset": OFFSET} | ROWS),
    "dask fit": (dask_fit, {"X": X, "y": C, "sample_weight": WEIGHT, "offset": OFFSET}),
    "dask decide": (dask_decide, {"X": X, "offset": OFFSET}),
    "dask score": (dask_score, {"X": X, "y": C, "sample_weight": WEIGHT, "offset": OFFSET}),
    "row_params": (through_row_params, {"X": X, "y": C, "available": OPEN}),
    "decide": (lambda **k: skspo.decide(plain(), **k), {"X": X, "offset": OFFSET} | ROWS),
    "decide pipeline": (lambda **k: skspo.decide(pipe(), **k), {"X": X, "offset": OFFSET} | ROWS),
    "decide other": (lambda **k: skspo.decide(forest(), region=NAMED, **k), {"X": X, "offset": OFFSET}),
    "cross_val_decide": (
        lambda **k: skspo.cross_val_decide(SPOPlusRegressor(Simplex(), alpha=0.1, **FAST), cv=2, **k),
        {"X": X, "C": C, "sample_weight": WEIGHT, "offset": OFFSET, "groups": GROUPS} | ROWS,
    ),
    "report": (lambda **k: skspo.decision_report(plain(), **k), RISK | ROWS),
    "report train": (
        lambda **k: skspo.decision_report(forest(), X, C, region=Simplex(), **k),
        {"X_train": X, "C_train": C, "sample_weight_train": WEIGHT, "offset_train": OFFSET},
    ),
    "held_out_risk": (lambda **k: skspo.held_out_risk(plain(), n_resamples=100, **k), RISK | ROWS),
    "held_out_risk other": (
        lambda **k: skspo.held_out_risk(plain(), other=forest(), n_resamples=100, **k),
        RISK,
    ),
    "cost_bounds": (
        lambda low, high: skspo.held_out_risk(boxed(), X, C, cost_bounds=(low, high), n_resamples=100),
        {"low": pd.Series([-9.0, -10, -11, -12], NAMES), "high": pd.Series([20.0, 21, 22, 23], NAMES)},
    ),
    "path": (
        lambda **k: skspo.spo_plus_path(X, region=Simplex(), alphas=[0.1], tol=1e-3, **k),
        {"C": C, "sample_weight": WEIGHT, "offset": OFFSET} | ROWS,
    ),
    "path rows": (
        lambda X, C: skspo.spo_plus_path(X.sort_index(axis=1), C[NAMES], Simplex(), alphas=[0.1], tol=1e-3),
        {"X": X, "C": C},
    ),
    "spo_loss": (lambda **k: skspo.spo_loss(region=Simplex(), **k), METRIC | ROWS),
    "spo_plus_loss": (lambda **k: skspo.spo_plus_loss(region=Simplex(), **k), METRIC | ROWS),
    "normalized_spo_loss": (lambda **k: skspo.normalized_spo_loss(region=Simplex(), **k), METRIC | ROWS),
    "spo_loss by region": (
        lambda y_true: skspo.spo_loss(y_true, C_HAT.to_numpy(), NAMED),
        {"y_true": C},
    ),
    "offset by region": (
        lambda offset: skspo.spo_loss(C.to_numpy(), C_HAT.to_numpy(), NAMED, offset=offset),
        {"offset": pd.Series([1.0, 2, 3, 4], NAMES)},
    ),
    "offset for all": (
        lambda y, offset: SPOPlusRegressor(Simplex(), alpha=0.1, **FAST).fit(X, y, offset=offset),
        {"y": C, "offset": pd.Series([1.0, 2, 3, 4], NAMES)},
    ),
    "scorer": (
        lambda X, y, **k: skspo.make_spo_scorer(Simplex())(plain(), X, y, **k),
        {"X": X, "y": C, "sample_weight": WEIGHT, "offset": OFFSET} | ROWS,
    ),
    "bounds for all": (
        lambda y, upper: SPOPlusRegressor(Box(-1, 1), alpha=0.1, **FAST).fit(X, y, region_params={"upper": upper}),
        {"y": C, "upper": pd.Series([1.0, 2, 3, 4], NAMES)},
    ),
    "SPOPlusLoss": (SPOPlusLoss(NAMED).value, {"C_true": C, "C_pred": C_HAT}),
    "SPOPlusLoss one": (lambda C_true: SPOPlusLoss(NAMED).gradient(C_true, C_HAT.to_numpy()), {"C_true": C}),
    "SPOLoss": (SPOLoss(Simplex()).value, {"C_true": C, "C_pred": C_HAT}),
    "mean_cost": (
        lambda **k: skspo.mean_cost(labels=[0, 1, 2], **k),
        {"y_true": LABELS, "y_pred": LABELS, "costs": CLASS_COSTS, "sample_weight": WEIGHT},
    ),
    "classifier": (
        CostSensitiveClassifier(None, SPOPlusRegressorCV(tol=1e-9), cv=2).fit,
        {"X": X, "y": LABELS, "sample_weight": WEIGHT, "costs": CLASS_COSTS},
    ),
    "argmin": (ROADS.argmin, {"C": ROADS_C}),
    "chosen": (ROADS.chosen, {"C": ROADS_C}),
    "describe": (ROADS.describe, {"W": ROADS_C.round()}),
    "visible_costs": (ROADS.visible_costs, {"C": ROADS_C}),
    "assignment": (Assignment(2).argmin, {"C": C.set_axis(Assignment(2).names(4), axis=1)}),
    "image": (LinearImage(NAMED, np.eye(4)).inner_argmin, {"C": C}),
    "with_rows": (region_rows(NAMED), {"C": C.to_numpy(), "lower": FIRST * 0.01, "upper": LAST + 1}),
    "with_rows index": (
        region_rows(ROADS),
        {"C": C.to_numpy(), "source": ENDS.map({"c": "a", "d": "b"}), "target": ENDS},
    ),
    "XGBoostObjective": (
        lambda **k: XGBoostObjective(NAMED, scale=1.0)(**k),
        {"y_true": C, "y_pred": C_HAT},
    ),
    "LightGBMObjective": (lambda costs: LightGBMObjective(NAMED, costs).costs, {"costs": C}),
    "symmetry_test": (
        lambda **k: symmetry_test(region=Simplex(), n_flips=19, **k),
        {"X": X, "C": C, "C_hat": C_HAT} | ROWS,
    ),
}


# -- other orders ------------------------------------------------------------------------------------------------------


def in_another_order(value, order, rows):
    """The same frame or series with its rows, or its columns, in another order."""
    if isinstance(value, np.ndarray):
        names = [name for name in value.dtype.names if not name.startswith("_")]
        columns = value["_columns"][0]
        frames = {name: pd.DataFrame(value[name], index=value["_index"], columns=columns[name]) for name in names}
        return row_params(**{name: in_another_order(some, order, rows) for name, some in frames.items()})
    if rows or isinstance(value, pd.Series):
        return value.iloc[order(len(value))]
    return value.iloc[:, order(value.shape[1])]


def halves(n):
    """Each half reversed: rows stay in their chunk or partition."""
    return np.concatenate([half[::-1] for half in np.array_split(np.arange(n), 2 if n > 2 else 1)])


def swapped(n):
    """The first two swapped."""
    return np.r_[1, 0, 2:n]


ORDERS = {"halves reversed": halves, "swapped": swapped}


def places(given):
    """All arguments that are frames: the path to them, and whether rows or columns change."""
    inner = {}
    for name, value in given.items():
        inner |= {(name, key): some for key, some in value.items()} if isinstance(value, dict) else {(name,): value}
    inner = {path: some for path, some in inner.items() if not isinstance(some, np.ndarray) or some.dtype.names}
    for path, some in inner.items():
        if len(inner) > 1:  # rows of a single frame may have any order
            yield path, True
        if isinstance(some, np.ndarray) or (some.ndim == 2 and some.shape[1] > 1):
            yield path, False


def changed(given, path, order, rows):
    given = dict(given)
    if len(path) == 2:
        given[path[0]] = given[path[0]] | {path[1]: in_another_order(given[path[0]][path[1]], order, rows)}
    else:
        given[path[0]] = in_another_order(given[path[0]], order, rows)
    return given


def figures(result):
    """Numbers of a result, for comparison."""
    if hasattr(result, "predict"):
        features = X[list(getattr(result, "feature_names_in_", FEATURES))]
        return figures(result.decision_function(features) if hasattr(result, "classes_") else result.predict(features))
    if hasattr(result, "to_dict"):
        return figures([list(row.values()) for row in result.rows.values()])
    if hasattr(result, "mean_loss"):
        return np.array([result.mean_loss, result.normalized_loss, result.upper_bound, *result.interval])
    if isinstance(result, list | tuple) and result and isinstance(result[0], np.ndarray | list):
        return np.concatenate([figures(part) for part in result])
    if isinstance(result, list):
        return (
            np.array([hash(str(part)) % 10**9 for part in result], dtype=float)
            if result and isinstance(result[0], str | dict)
            else np.ravel(np.asarray(result, dtype=float))
        )
    return np.ravel(np.asarray(result, dtype=float))


def all_cases():
    for name, (model, _) in ESTIMATORS.items():
        for path, by_row in places(arguments(name)):
            if not by_row and path[-1] in (
                "X",
                "b_ub",
            ):  # there are no names yet that these columns could disagree with
                continue
            use = lambda given, model=model: clone(model).fit(**given)  # noqa: E731
            yield f"{name} fit", use, arguments(name), path, by_row
        for method, some in later(name).items():
            for path, by_row in places(some):
                use = lambda given, name=name, method=method: getattr(fitted(name), method)(**given)  # noqa: E731
                yield f"{name} {method}", use, some, path, by_row
    for name, (function, given) in FUNCTIONS.items():
        for path, by_row in places(given):
            yield name, lambda given, function=function: function(**given), given, path, by_row


CASES = {
    f"{name} {'.'.join(path)} {'rows' if by_row else 'columns'} {order}": (use, given, path, by_row, ORDERS[order])
    for name, use, given, path, by_row in all_cases()
    for order in ORDERS
}


def test_there_are_enough_cases():
    assert len(CASES) >= 200


_expected = {}


@pytest.mark.parametrize("case", CASES)
def test_another_order_gives_the_same_result_or_an_error(case):
    use, given, path, by_row, order = CASES[case]
    key = case.partition(f" {'.'.join(path)} ")[0]
    if key not in _expected:
        _expected[key] = figures(use(given))
    try:
        result = figures(use(changed(given, path, order, by_row)))
    except ValueError as error:
        assert "order" in str(error), error
    else:
        # Features in another order change the last digits of what a solver returns.
        np.testing.assert_allclose(result, _expected[key], rtol=1e-5, atol=1e-9)
