"""Cross-validation: accuracy of the fits on folds, and where the path of penalties ends."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import noisy_data

from skspo import NotCertifiedWarning, ShortestPath, Simplex, SPOPlusLoss, SPOPlusRegressorCV
from skspo._training.run import Run
from skspo._utils.limits import Deadline
from skspo.datasets import make_shortest_path
from skspo.estimators import _folds, _path
from skspo.estimators._folds import Table, end_of_path

GRID = ShortestPath.grid(3, 3)


@pytest.fixture(scope="module")
def overfitted():
    """More features than the samples support: small penalties overfit."""
    return make_shortest_path(60, 10, (3, 3), degree=4, noise=0.5, random_state=0)


def table(scores, spo_plus=None, pooled=True):
    """Rows are folds, columns are penalties."""
    scores = np.array(scores, dtype=float)
    loss = -scores if spo_plus is None else np.array(spo_plus, dtype=float)
    return Table(scores, loss, loss, np.ones(len(scores)), pooled, scores.shape[1])


def test_a_path_ends_when_scores_become_worse():
    worse = table([[-3, -2, -1, -2, -3, -4, -5], [-3, -2, -1, -2, -3, -4, -5]])
    assert [end_of_path(worse, patience) for patience in (1, 2, 3, 4, 5)] == [4, 5, 6, 7, None]
    assert end_of_path(table([[-3, -2, -1, -1, -1, -1]] * 2), 1) is None  # ties
    assert end_of_path(table([[-3, -2, -1]]), 1) is None
    # A better candidate in between: the count starts again.
    assert end_of_path(table([[-2, -3, -1, -2, -3]] * 2), 2) == 5


def test_noise_does_not_end_a_path():
    """The mean is worse by one; its standard error is that of the differences of the folds."""
    assert end_of_path(table([[0, -1, -1], [0, -1, -1]]), 2) == 3
    assert end_of_path(table([[0, -4, -4], [0, 2, 2]]), 2) is None  # error 3
    assert end_of_path(table([[0, -1.8, -1.8], [0, -0.2, -0.2]]), 2) == 3  # error 0.8
    assert end_of_path(table([[0, -2.2, -2.2], [0, 0.2, 0.2]]), 2) is None  # error 1.2


def test_the_spo_plus_loss_must_become_worse_as_well():
    scores, decreasing = [[-1, -2, -3, -4]] * 2, [[4, 3, 2, 1]] * 2
    assert end_of_path(table(scores), 2) == 3
    assert end_of_path(table(scores, decreasing), 2) is None
    assert end_of_path(table(scores, [[4, 3, 4, 5]] * 2), 2) == 4


def test_candidates_after_the_end_are_not_fitted(overfitted):
    X, C = overfitted
    whole = SPOPlusRegressorCV(GRID, cv=3, patience=None).fit(X, C)
    model = SPOPlusRegressorCV(GRID, cv=3).fit(X, C)
    assert model.alpha_ == whole.alpha_
    assert_allclose(model.coef_, whole.coef_)
    assert_array_equal(model.alphas_, whole.alphas_)
    best = int(np.argmax(whole.cv_results_["mean_test_score"]))
    fitted = int(np.isfinite(model.cv_results_["mean_test_score"]).sum())
    assert best + 3 < fitted < 20
    for key, values in model.cv_results_.items():
        assert values.shape == (20,)
        if key not in ("alpha", "rank_test_score"):
            assert_allclose(values[:fitted], whole.cv_results_[key][:fitted], rtol=1e-9)
            assert np.isnan(values[fitted:]).all() and np.isfinite(whole.cv_results_[key]).all()
    rank = model.cv_results_["rank_test_score"]
    assert rank[best] == 1 and (rank[fitted:] == fitted + 1).all()


@pytest.mark.parametrize("changed", [{"n_jobs": 2}, {"kept": 0}], ids=str)
def test_the_order_of_fits_changes_nothing(overfitted, monkeypatch, changed):
    """Folds that take turns, alone or two at a time, and folds one after the other."""
    X, C = overfitted
    model = SPOPlusRegressorCV(GRID, cv=3, store_cv_predictions=True)
    one = model.fit(X, C)
    results, predictions, coef = one.cv_results_, one.cv_predictions_, one.coef_
    if "kept" in changed:
        kept = changed.pop("kept")
        monkeypatch.setattr(_folds, "numbers_in_memory", lambda: kept)
    other = model.set_params(**changed).fit(X, C)
    assert np.isnan(results["mean_test_score"]).any()
    for key, values in results.items():
        assert_allclose(other.cv_results_[key], values, rtol=1e-9)
    assert_allclose(other.cv_predictions_, predictions, rtol=1e-9)
    assert_allclose(other.coef_, coef, rtol=1e-9)


@pytest.mark.parametrize(
    ("params", "expected"),
    [({}, 1e-3), ({"tol": 1e-2}, 1e-2), ({"cv_tol": 1e-5}, 1e-5), ({"cv_tol": 0.1, "tol": 1e-4}, 0.1)],
    ids=str,
)
def test_tolerance_of_the_fits_on_folds(monkeypatch, params, expected):
    X, C = noisy_data(40)
    tolerances = []
    minimize = _path.minimize

    def spied(objective, run, options, start):
        tolerances.append(options.tol)
        return minimize(objective, run, options, start)

    monkeypatch.setattr(_path, "minimize", spied)
    model = SPOPlusRegressorCV(Simplex(), alphas=[1.0, 0.1], cv=3, patience=None, **params).fit(X, C)
    tol = params.get("tol", 1e-6)
    assert tolerances == [expected] * 6 + [tol]
    assert model.duality_gap_ <= tol
    assert model.cv_tol is params.get("cv_tol")


def test_warnings_name_the_tolerance_that_was_missed():
    X, C = noisy_data(40)
    model = SPOPlusRegressorCV(Simplex(), alphas=[1.0, 0.1], cv=3, solver="bundle", max_iter=1, cv_tol=1e-4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, C)
    texts = [str(w.message) for w in caught if issubclass(w.category, NotCertifiedWarning)]
    assert any("fits on the folds stopped above tol=0.0001" in text for text in texts)
    assert any("fits to all data stopped above tol=1e-06" in text for text in texts)


@pytest.mark.parametrize(
    ("params", "message"),
    [({"cv_tol": -1.0}, "cv_tol must be"), ({"patience": 0}, "patience must be"), ({"patience": 1.5}, "patience")],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        SPOPlusRegressorCV(Simplex(), **params).fit(*noisy_data(40))


def test_a_path_goes_to_another_process_without_caches(overfitted):
    X, C = overfitted
    model = SPOPlusRegressorCV(GRID)
    whole, halves = (make_path(model, X, C) for _ in range(2))
    alphas = np.array([np.inf, 1.0, 0.3, 0.1])
    expected = whole.extend(alphas, Deadline())
    halves.extend(alphas[:2], Deadline())
    halves.run.memory["handle"] = lambda: None  # cannot be pickled
    halves = pickle.loads(pickle.dumps(halves))
    last = halves.extend(alphas[2:], Deadline())
    assert len(last) == 2
    for point, other in zip(last, expected[2:], strict=True):
        assert_allclose(point.result.objective, other.result.objective, rtol=2e-6)


def make_path(model, X, C):
    data, _, region, _ = model._check_data(X, C, Deadline())
    return _path.PenaltyPath(
        model._objective(SPOPlusLoss(region), data, standardized=True), Run(), 0.0, model._options()
    )
