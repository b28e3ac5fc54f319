"""scikit-learn's own checks, with no expected failure, over several regions and solvers."""

import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from skspo import (
    Box,
    Ellipsoid,
    EntropySimplex,
    L1Ball,
    LogBarrierSimplex,
    PartialFeedbackRegressor,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPORegressor,
    SPORegressorCV,
    TwoStageRegressor,
)

# The checks send d = 1 and d = 5, so these are regions that exist in every dimension.
ESTIMATORS = [
    SPOPlusRegressor(),
    SPOPlusRegressor(Box(-1, 1), alpha=0.1, l1_ratio=0.5),
    SPOPlusRegressor(L1Ball(), solver="conic"),
    SPOPlusRegressor(L1Ball(), solver="sgd", max_iter=20, random_state=0),
    SPOPlusRegressor(Ellipsoid()),
    SPOPlusRegressor(Simplex(), surrogate_region=LogBarrierSimplex(), alpha=0.01),
    SPOPlusRegressor(Simplex(sense="max"), shared=True, alpha=0.1, prior="least_squares"),
    SPORegressor(max_iter=20, random_state=0),
    SPORegressor(EntropySimplex(), max_iter=20, alpha=0.1, random_state=0),
    SPORegressorCV(Simplex(), n_alphas=2, cv=2, max_iter=10, tol=1e-4, random_state=0),
    SPORegressorCV(shared=True, init="least_squares", n_alphas=2, cv=2, max_iter=10, random_state=0),
    SPOMLPRegressor(hidden_layer_sizes=(8,), max_iter=10, random_state=0),
    SPOMLPRegressor(shared=True, hidden_layer_sizes=(8,), max_iter=10, random_state=0),
    SPOMLPRegressor(EntropySimplex(), loss="spo", hidden_layer_sizes=(), max_iter=5, random_state=0),
    TwoStageRegressor(),
    TwoStageRegressor(DecisionTreeRegressor(random_state=0), L1Ball()),
    TwoStageRegressor(shared=True),
    TwoStageRegressor(Ridge(), Simplex(), costs="visible"),
    PartialFeedbackRegressor(Ridge()),
    PartialFeedbackRegressor(SPOPlusRegressor(Simplex(), shared=True, alpha=0.1), random_state=0),
]


@pytest.mark.filterwarnings("ignore:No region was given")
@pytest.mark.filterwarnings("ignore:y has one column")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
