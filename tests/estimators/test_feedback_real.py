"""Real data whose costs are hidden on purpose; data that are not there are skipped."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import ItemTransformer, PartialFeedbackRegressor, SPOPlusRegressor, decide, estimated_cost

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def problems():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from real_problems import PROBLEMS

        return PROBLEMS
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["digits", "energy60", "energy120", "energy180", "credit", "churn"])
def test_most_of_the_gain_is_left(problems, name):
    """Random decisions of the past: the policy is better than they, and the estimate of its cost is right."""
    if name not in problems:
        pytest.skip(f"the data of {name} are not there")
    problem = problems[name]()
    train, test = next(iter(problem.splits(1, seed=1)))
    X, C, region = problem.X, problem.C, problem.region
    rng = np.random.default_rng(0)
    past = region.argmin(rng.normal(size=C.shape))
    seen = np.where(past > 0, C, np.nan)
    scaler = ItemTransformer(StandardScaler()) if problem.shared else StandardScaler()
    policy = make_pipeline(scaler, SPOPlusRegressor(region, shared=problem.shared, alpha=0.1, tol=1e-2))
    nuisance = make_pipeline(StandardScaler(), Ridge())
    model = PartialFeedbackRegressor(policy, nuisance=nuisance, method="direct", cv=3).fit(X[train], seen[train])
    whole = decide(policy.fit(X[train], C[train]), X[test])
    sign = 1.0 if region.sense == "min" else -1.0
    before, own, best = (sign * (W * C[test]).sum(axis=1).mean() for W in (past[test], model.decide(X[test]), whole))
    assert before - own > 0.5 * (before - best)
    result = estimated_cost(model, X[test], seen[test], decisions=past[test], other="past", nuisance=nuisance)
    assert abs(sign * result.difference - (own - before)) < 4 * result.difference_standard_error
    low, high = result.difference_interval
    assert high < 0 if sign > 0 else low > 0
