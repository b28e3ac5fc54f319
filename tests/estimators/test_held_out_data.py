"""Samples that are held out decide on nothing that is fitted, and there must be some."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SequentialFeatureSelector
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skspo import (
    Simplex,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressorCV,
    SPOStackingRegressor,
    cross_val_decide,
    spo_loss,
)


class Remember(TransformerMixin, BaseEstimator):
    """Costs of the nearest sample that was fitted: the strongest leak that there can be."""

    def fit(self, X, y=None):
        self.model_ = KNeighborsRegressor(1).fit(X, np.zeros(X.shape[0]) if y is None else y)
        return self

    def transform(self, X):
        return self.model_.predict(X).reshape(X.shape[0], -1)


class Other(Remember):
    """Training samples get other features than new ones, as those of TargetEncoder."""

    def fit_transform(self, X, y):
        return self.fit(X, y).transform(X[::-1])


SELECT = SelectFromModel(Ridge(), max_features=3, threshold=-np.inf)

#: transformers that use the costs without saying so, and others
TRANSFORMERS = {
    "SelectFromModel": SELECT,
    "SequentialFeatureSelector": SequentialFeatureSelector(Ridge(), n_features_to_select=2, cv=2),
    "RFE": RFE(DecisionTreeRegressor(max_depth=3, random_state=0), n_features_to_select=2, step=0.5),
    "SelectKBest": SelectKBest(lambda X, y: np.abs(X.T @ y).sum(axis=1), k=3),
    "ColumnTransformer": ColumnTransformer([("a", SELECT, slice(0, 20)), ("b", Remember(), slice(20, 30))]),
    "FeatureUnion": FeatureUnion(
        [("a", FunctionTransformer(lambda X: X[:, :2])), ("b", make_pipeline(PCA(5), SELECT))]
    ),
    "pipeline": make_pipeline(StandardScaler(), KBinsDiscretizer(3, subsample=None), Remember()),
    "Remember": Remember(),
    "Other": Other(),
    "unsupervised": make_pipeline(StandardScaler(), PCA(0.3), Nystroem(n_components=5, random_state=0)),
    "KMeans": KMeans(3, n_init=1, random_state=0),
}


def noise(seed, n=80, p=30):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.normal(size=(n, 4))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_every_step_of_a_member_is_fitted_in_the_folds(name):
    """With an infinite penalty the member is least squares, and scikit-learn has its held-out predictions."""
    X, C = noise(0)
    member = make_pipeline(TRANSFORMERS[name], SPOPlusRegressorCV(alphas=[np.inf]))
    stack = SPOStackingRegressor(Simplex(), [("ridge", Ridge()), ("spo+", member)], cv=4, random_state=0).fit(X, C)
    expected = cross_val_predict(make_pipeline(TRANSFORMERS[name], LinearRegression()), X, C, cv=KFold(4))
    assert stack.cv_results_["mean_test_spo_loss"][1] == pytest.approx(spo_loss(C, expected, Simplex()), rel=1e-9)
    # In the model of all data, every step has seen all samples.
    alone = make_pipeline(TRANSFORMERS[name], LinearRegression()).fit(X, C)
    np.testing.assert_allclose(stack.named_estimators_["spo+"].predict(X), alone.predict(X), atol=1e-8)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_no_transformer_finds_something_in_noise(name):
    """All decisions have the same expected regret, minus that of the smallest of four standard normal costs."""
    member = make_pipeline(TRANSFORMERS[name], SPOPlusRegressorCV(n_alphas=3, patience=None))
    regrets = []
    for seed in range(3):
        X, C = noise(seed)
        stack = SPOStackingRegressor(Simplex(), [("ridge", Ridge()), ("spo+", member)], cv=4, random_state=0).fit(X, C)
        # The luck of these samples is left out: the mean cost of a decision is that of all options.
        regrets.append(stack.cv_results_["mean_test_spo_loss"][1] - (C.mean() - C.min(axis=1).mean()))
    # Standard deviation of the cost of a decision minus the mean cost: sqrt(3 / 4).
    assert np.mean(regrets) > -2.5 * np.sqrt(0.75 / (3 * 80))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": "ridge"},
        {"prior": "zero", "l1_ratio": 0.5},
        {"fit_intercept": False, "solver": "bundle"},
        {"region": Simplex(cost_bounds=(0.1, 2.0))},
    ],
    ids=str,
)
@pytest.mark.parametrize("alpha", [np.inf, 0.3])
def test_predictions_of_a_fold_do_not_depend_on_its_samples(options, alpha):
    """Neither scales of features and costs nor the prior know the costs, or the other features, of the fold."""
    X, C = noise(0, n=40, p=3)
    alpha = 1e3 if options.get("prior") == "zero" and np.isinf(alpha) else alpha
    model = SPOPlusRegressorCV(**({"region": Simplex()} | options), alphas=[alpha], cv=4, store_cv_predictions=True)
    plain = model.fit(X, C).cv_predictions_
    for test in np.arange(40).reshape(4, 10):
        X_new, C_new = X.copy(), C.copy()
        C_new[test] = 100.0 * C[test][::-1] + 7.0
        X_new[test[1:]] *= -50.0
        changed = model.fit(X_new, C_new).cv_predictions_
        np.testing.assert_array_equal(changed[test[0]], plain[test[0]])


def test_steps_are_judged_by_models_that_have_not_seen_the_fold():
    """Ten times the costs of a fold have ten times the regret."""
    X, C = noise(0, n=40, p=3)
    model = SPORegressorCV(Simplex(), init="least_squares", steps=[0.0, 0.5, 1.0], cv=4, random_state=0)
    plain = model.fit(X, C).cv_results_
    for k, test in enumerate(np.arange(40).reshape(4, 10)):
        C_new = C.copy()
        C_new[test] *= 10.0
        changed = model.fit(X, C_new).cv_results_
        np.testing.assert_allclose(changed[f"split{k}_test_score"], 10.0 * plain[f"split{k}_test_score"], rtol=1e-9)


@pytest.mark.parametrize("estimator", [SPOPlusRegressorCV, SPORegressorCV, SPOStackingRegressor])
def test_held_out_weights_of_zero_are_refused(estimator):
    """Every candidate would have the same score."""
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(40, 3)), rng.normal(size=(40, 4))
    first, last = np.arange(20), np.arange(20, 40)
    weight = 1.0 * (np.arange(40) < 20)
    with pytest.raises(ValueError, match="sample_weight is zero for every sample that cv holds out"):
        estimator(Simplex(), cv=[(first, last)]).fit(X, C, sample_weight=weight)
    with pytest.raises(ValueError, match="cv holds no sample out"):
        estimator(Simplex(), cv=[(first, last[:0])]).fit(X, C)
    # Decisions for samples without weight are possible.
    W = cross_val_decide(SPOPlusRegressor(Simplex()), X, C, sample_weight=weight, cv=[(first, last)])
    assert np.isfinite(W[last]).all()
