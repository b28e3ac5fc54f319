"""Text, dates, missing values and lists of frames: the error names the argument, the column and the row."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skspo import (
    CostSensitiveClassifier,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOStackingRegressor,
    TwoStageRegressor,
    cross_val_decide,
    held_out_risk,
    spo_loss,
)

rng = np.random.default_rng(0)
DAYS = pd.date_range("2026-01-01", periods=10)
X = pd.DataFrame(rng.normal(size=(10, 2)), columns=["wind", "load"])
C = pd.DataFrame(rng.normal(size=(10, 3)), columns=["night", "noon", "evening"])
PLUS, NETWORK = SPOPlusRegressor(Simplex(), alpha=0.1), SPOMLPRegressor(Simplex(), max_iter=1)
MODEL = SPOPlusRegressor(Simplex(), alpha=0.1).fit(X, C)
OTHERS = [TwoStageRegressor(region=Simplex()), SPOStackingRegressor(Simplex(), [("ols", LinearRegression())], cv=2)]


def put(frame, column, values, row=None):
    frame = frame.copy()
    frame[column] = frame[column].astype(object) if row is not None else values
    if row is not None:
        frame.loc[row, column] = values
    return frame


def polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


BAD = {
    "text": (lambda frame, name: put(frame, name, "red", 4), "convert string to float: 'red' in row 4"),
    "category": (lambda frame, name: put(frame, name, pd.Categorical(["red"] * 10)), "float: 'red' in row 0"),
    "dates": (lambda frame, name: put(frame, name, DAYS), "2026-01-01.* in row 0 is a date"),
    "durations": (lambda frame, name: put(frame, name, DAYS - DAYS[0]), "in row 0 is a date or a duration"),
    "one date": (lambda frame, name: put(frame, name, DAYS[4], 4), "2026-01-05.* in row 4 is a date"),
    "polars": (lambda frame, name: polars(put(frame, name, "red")), "float: 'red' in row 0"),
    "polars dates": (lambda frame, name: polars(put(frame, name, DAYS)), "in row 0 is a date"),
}
USES = {
    "fit": ("y", lambda y: PLUS.fit(X, y)),
    "fit network": ("y", lambda y: NETWORK.fit(X, y)),
    "fit two stages": ("y", lambda y: OTHERS[0].fit(X, y)),
    "fit stack": ("y", lambda y: OTHERS[1].fit(X, y)),
    "fit offset": ("offset", lambda offset: PLUS.fit(X, C, offset=offset)),
    "fit bounds": ("region_params['available']", lambda a: PLUS.fit(X, C, region_params={"available": a})),
    "score": ("y", lambda y: MODEL.score(X, y)),
    "report": ("C", lambda y: MODEL.report(X, y)),
    "risk": ("C", lambda y: held_out_risk(MODEL, X, y)),
    "cross_val_decide": ("C", lambda y: cross_val_decide(PLUS, X, y, cv=2)),
    "spo_loss": ("y_pred", lambda y: spo_loss(C, y, Simplex())),
    "argmin": ("C", lambda y: Simplex().argmin(y)),
    "classifier": ("costs", lambda y: CostSensitiveClassifier().fit(X, [0, 1] * 5, costs=y)),
}
FEATURES = {
    "fit": lambda x: PLUS.fit(x, C),
    "fit network": lambda x: NETWORK.fit(x, C),
    "predict": lambda x: MODEL.predict(x),
    "decide": lambda x: MODEL.decide(x),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("use", USES)
def test_costs_that_are_no_numbers(use, bad):
    what, function = USES[use]
    make, message = BAD[bad]
    with pytest.raises(ValueError, match=rf"column 'noon' of {re.escape(what)} must hold numbers: .*{message}"):
        function(make(C, "noon"))


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("use", FEATURES)
def test_features_that_are_no_numbers(use, bad):
    make, message = BAD[bad]
    with pytest.raises(ValueError, match=rf"column 'load' of X must hold numbers: .*{message}"):
        FEATURES[use](make(X, "load"))


def test_text_is_allowed_where_a_pipeline_encodes_it():
    text = put(X, "load", ["red", "blue"] * 5)
    encoded = make_pipeline(make_column_transformer((OneHotEncoder(), ["load"])), LinearRegression())
    assert TwoStageRegressor(encoded, Simplex()).fit(text, C).decide(text).shape == C.shape


def test_weights_and_arrays_of_objects():
    with pytest.raises(ValueError, match=r"sample_weight must hold numbers: .*'heavy' in row 0"):
        PLUS.fit(X, C, pd.Series(["heavy"] * 10))
    with pytest.raises(ValueError, match=r"column 1 of y must hold numbers: .*'red' in row 4"):
        PLUS.fit(X, put(C, "noon", "red", 4).to_numpy())


@pytest.mark.parametrize("model", [PLUS, NETWORK, *OTHERS], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_costs(model, missing):
    y = put(C, "noon", missing, 4)
    with pytest.raises(ValueError, match=r"y contains NaN in row 4, column 1 \('noon'\)"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"y_true contains NaN in row 4, column 1 \('noon'\)"):
        MODEL.score(X, y)


def test_missing_values_of_pandas():
    with pytest.raises(ValueError, match=r"y contains NaN in row 4, column 1 \('noon'\)"):
        PLUS.fit(X, put(C.astype("Float64"), "noon", C["noon"].mask(C.index == 4).astype("Float64")))
    with pytest.raises(ValueError, match=r"column 'noon' of y must hold numbers: <NA> in row 4. Use NaN"):
        PLUS.fit(X, put(C, "noon", pd.NA, 4))


def test_numbers_as_objects_and_text_of_numbers_are_read():
    expected = PLUS.fit(X, C).predict(X)
    for y in (C.astype(object), C.astype(str).astype(object), C.astype("Float64")):
        np.testing.assert_allclose(PLUS.fit(X, y).predict(X), expected, rtol=1e-9)


@pytest.mark.parametrize("model", [PLUS, NETWORK, *OTHERS], ids=lambda model: type(model).__name__)
def test_lists_of_frames(model):
    with pytest.raises(ValueError, match=r"y is a list of data frames.*pandas.concat\(y\)"):
        model.fit(X, [C, C])
    with pytest.raises(ValueError, match=r"X is a list of data frames.*pandas.concat\(X\)"):
        model.fit([X, X], C)
    with pytest.raises(ValueError, match="X is a list of data frames"):
        MODEL.decide([X, X])


def test_a_misspelt_name_of_a_cost():
    with pytest.raises(ValueError, match=r"Unknown columns:\n- evning \(did you mean 'evening'\?\)\nMissing columns:"):
        MODEL.score(X, C.rename(columns={"evening": "evning"}))


def test_a_bad_parameter_by_sample_names_its_column():
    available = pd.DataFrame(1.0, index=C.index, columns=C.columns)
    available.iloc[4, 1] = np.nan
    with pytest.raises(ValueError, match="available must be finite, got nan in row 4, column 1"):
        PLUS.fit(X, C, region_params={"available": available})
