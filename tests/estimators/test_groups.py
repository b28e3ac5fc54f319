"""Groups of samples in the estimators that cross-validate."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skspo as sk
from skspo.estimators._folds import cv_splits, excess_regret

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(12), 5)
X = RNG.normal(size=(12, 3))[GROUPS] + 0.01 * RNG.normal(size=(60, 3))
C = RNG.normal(size=(12, 4))[GROUPS] + 0.01 * RNG.normal(size=(60, 4))  # noise that is the same in a whole group
LABELS = np.array([f"day {g}" for g in GROUPS])
ORDER = RNG.permutation(60)

CV = [
    sk.SPOPlusRegressorCV(sk.Simplex(), n_alphas=4, store_cv_predictions=True),
    sk.SPORegressorCV(sk.Simplex(), n_restarts=0, random_state=0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", CV, ids=lambda model: type(model).__name__)
def test_folds_are_whole_groups(model):
    given = sklearn.clone(model).fit(X[ORDER], C[ORDER], groups=LABELS[ORDER]).cv_results_
    splits = list(GroupKFold(5).split(X, C, LABELS[ORDER]))
    expected = sklearn.clone(model).set_params(cv=splits).fit(X[ORDER], C[ORDER]).cv_results_
    np.testing.assert_allclose(given["split0_test_score"], expected["split0_test_score"])
    np.testing.assert_allclose(given["mean_test_spo_loss"], expected["mean_test_spo_loss"])
    leaking = sklearn.clone(model).set_params(cv=sklearn.model_selection.KFold(5, shuffle=True, random_state=0))
    leak = leaking.fit(X, C).cv_results_["mean_test_spo_loss"].min()
    assert leak < 0.8 * given["mean_test_spo_loss"].min()  # what groups are for


def test_numbers_and_splitters():
    for cv, n in ((None, 5), (3, 3), (GroupKFold(4), 4)):
        splits = cv_splits(cv, X, C, None, LABELS)
        assert len(splits) == n
        assert all(not set(LABELS[train]) & set(LABELS[test]) for train, test in splits)
    assert len(cv_splits(None, X[:10], C[:10], None, LABELS[:10])) == 2
    with pytest.raises(ValueError, match="at least 2 groups"):
        cv_splits(None, X, C, None, np.zeros(60))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        sk.SPOPlusRegressorCV(sk.Simplex()).fit(X, C, groups=LABELS[1:])


def test_errors_count_groups():
    """The standard error with groups is that of the sums of the groups."""
    regret, weight = RNG.normal(size=(60, 3)) ** 2, RNG.uniform(0.5, 2.0, 60)
    mean, error = excess_regret(regret, weight, GROUPS)
    share = weight / weight.sum()
    best = np.argmin(share @ regret)
    for j in range(3):
        difference = regret[:, j] - regret[:, best]
        sums = [(share * (difference - share @ difference))[GROUPS == g].sum() for g in range(12)]
        assert error[j] == pytest.approx(np.sqrt(np.sum(np.square(sums))))
        assert mean[j] == pytest.approx(share @ difference)
    one_each = excess_regret(regret, weight, np.arange(60))
    np.testing.assert_allclose(one_each[1], excess_regret(regret, weight)[1])
    repeated = excess_regret(np.repeat(regret, 2, axis=0), np.repeat(weight, 2), np.repeat(np.arange(60), 2))
    np.testing.assert_allclose(repeated[1], one_each[1])


def test_pipelines_routing_and_stacks():
    pipeline = make_pipeline(StandardScaler(), CV[0])
    fitted = pipeline.fit(X, C, spoplusregressorcv__groups=LABELS)
    expected = sklearn.clone(CV[0]).fit(StandardScaler().fit_transform(X), C, groups=LABELS)
    np.testing.assert_allclose(fitted[-1].alpha_, expected.alpha_)
    with sklearn.config_context(enable_metadata_routing=True):
        model = sklearn.clone(CV[0]).set_fit_request(groups=True)
        cross_val_score(model, X, C, cv=GroupKFold(2), params={"groups": LABELS})
    stack = sk.SPOStackingRegressor(sk.Simplex(), [("a", pipeline), ("b", CV[0])], cv=3)
    assert stack.fit(X, C, groups=LABELS).predict(X).shape == C.shape
    with pytest.raises(ValueError, match="index"):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X, index=[f"row {i}" for i in range(60)])
        sk.SPOPlusRegressorCV(sk.Simplex()).fit(frame, C, groups=pd.Series(LABELS, index=frame.index[::-1]))
