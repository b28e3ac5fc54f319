"""Figures on training rows say so."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skspo as sk
from skspo._training import inputs as module
from skspo._training.inputs import Seen, row_hashes
from skspo.data import ChunkedData

RNG = np.random.default_rng(0)
X, C = RNG.normal(size=(80, 3)), 1.0 + RNG.random((80, 4))
TRAIN, NEW = slice(0, 50), slice(50, 80)
FAST = sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1)

MODELS = {
    "linear": FAST,
    "cv": sk.SPOPlusRegressorCV(sk.Simplex(), n_alphas=2, cv=2),
    "network": sk.SPOMLPRegressor(sk.Simplex(), max_iter=3, random_state=0),
    "spo": sk.SPORegressor(sk.Simplex(), n_restarts=0, random_state=0),
    "two stages": sk.TwoStageRegressor(region=sk.Simplex()),
    "stack": sk.SPOStackingRegressor(sk.Simplex(), [("a", FAST)], cv=2),
    "pipeline": make_pipeline(StandardScaler(), FAST),
    "search": GridSearchCV(make_pipeline(StandardScaler(), FAST), {"spoplusregressor__alpha": [0.1, 1.0]}, cv=2),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_report_and_risk_know_training_rows(name):
    model = pickle.loads(pickle.dumps(MODELS[name].fit(X[TRAIN], C[TRAIN])))
    order = RNG.permutation(50)
    for rows, share, text in (
        (order, 1.0, "All samples are among those that the model was fitted to"),
        (np.arange(10, 60), 0.8, "About 80% of the samples are among those"),
        (np.arange(50, 80), 0.0, ""),
    ):
        report = sk.decision_report(model, X[rows], C[rows])
        risk = sk.held_out_risk(model, X[rows], C[rows], n_resamples=100)
        assert report.training_share == report.to_dict()["training_share"] == risk.training_share == share
        assert all((text in str(one)) and ("fitted to:" in str(one)) == bool(text) for one in (report, risk))


def test_the_other_model_counts_as_well():
    model, other = (pickle.loads(pickle.dumps(FAST.fit(X[rows], C[rows]))) for rows in (NEW, TRAIN))
    risk = sk.held_out_risk(model, X[TRAIN], C[TRAIN], other=other, n_resamples=100)
    assert risk.training_share == 1.0


def test_what_is_not_known():
    chunks = ChunkedData.from_arrays(X, C, chunk_rows=30)
    model = sk.SPOPlusRegressor(sk.Simplex(), alpha=0.1).fit_chunks(chunks)
    assert np.isnan(model.report(X, C).training_share) and "fitted to:" not in str(model.report(X, C))
    assert np.isnan(sk.held_out_risk(model, X, C, n_resamples=100).training_share)


def test_partial_fit_remembers_all_chunks():
    model = sk.SPOPlusRegressor(sk.Simplex(), random_state=0)
    for rows in (slice(0, 20), slice(20, 50)):
        model.partial_fit(X[rows], C[rows])
    assert Seen.share(model._seen, X, C) == 50 / 80


def test_hashes_do_not_depend_on_the_layout():
    sparse = X * (RNG.random(X.shape) < 0.5)
    expected = row_hashes(sparse, C)
    for same in (sp.csr_array(sparse), np.asfortranarray(sparse), np.where(sparse == 0, -0.0, sparse)):
        np.testing.assert_array_equal(row_hashes(same, C), expected)
    np.testing.assert_array_equal(row_hashes(X[::-1], C[::-1]), row_hashes(X, C)[::-1])
    rounded = X * (1.0 + 1e-15)  # a transformer may round differently
    assert (row_hashes(rounded, C) == row_hashes(X, C)).mean() > 0.99
    n = 200_000
    hashes = row_hashes(np.arange(n, dtype=float)[:, None], np.zeros((n, 1)))
    assert np.unique(hashes).size == n
    assert abs((hashes >> np.uint64(63)).astype(float).mean() - 0.5) < 0.01


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 100)
    A, B = RNG.normal(size=(4000, 2)), RNG.normal(size=(4000, 3))
    seen = Seen.of(A[:2000], B[:2000])
    assert seen.hashes.size == 100 and not seen.complete
    assert seen.share(A[:2000], B[:2000]) == 1.0 and seen.share(A[2000:], B[2000:]) == 0.0
    assert abs(seen.share(A, B) - 0.5) < 0.2
    halves = Seen.of(A[:700], B[:700]) | Seen.of(A[700:2000], B[700:2000])
    np.testing.assert_array_equal(halves.hashes, seen.hashes[: halves.hashes.size])
    assert not halves.complete and halves.share(A[:2000], B[:2000]) == 1.0
    small = Seen.of(A[:10], B[:10]) | Seen.of(A[10:30], B[10:30])
    assert small.complete and small.share(A[:60], B[:60]) == 0.5


def test_features_that_are_not_numbers():
    pd = pytest.importorskip("pandas")
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LinearRegression
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"town": ["a", "b"] * 40, "x": X[:, 0]})
    columns = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    inside = sk.TwoStageRegressor(make_pipeline(columns, LinearRegression()), region=sk.Simplex()).fit(frame, C)
    assert np.isnan(sk.held_out_risk(inside, frame, C, n_resamples=100).training_share)
    outside = make_pipeline(columns, FAST).fit(frame, C)
    assert sk.decision_report(outside, frame, C).training_share == 1.0
