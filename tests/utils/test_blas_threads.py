"""Solvers with many products of small matrices use one BLAS thread, and restore the number of threads."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController, threadpool_limits

from skspo import EntropySimplex, LqBall, Simplex, SPOPlusRegressor
from skspo._training.in_memory import InMemoryMoves
from skspo._training.mixture import Mixture
from skspo.datasets import make_cost_sensitive_classification, make_portfolio
from skspo.solvers import newton, smoothed_proof
from skspo.solvers.interior_point.state import State

CLASSES = make_cost_sensitive_classification(60, 3, 5, degree=2, noise=0.5, random_state=0)
ASSETS = make_portfolio(60, 3, 5, degree=4, noise=0.5, random_state=0)


def blas_threads():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


@pytest.mark.slow
@pytest.mark.parametrize(
    "where, name, region, data, params",
    [
        (State, "predictor", Simplex(), CLASSES, {"solver": "interior-point"}),
        (newton._SmoothedPath, "newton_step", EntropySimplex(), ASSETS, {"solver": "newton"}),
        (InMemoryMoves, "moments", LqBall(1.5), ASSETS, {"solver": "lbfgs"}),
        (Mixture, "bound", Simplex(), CLASSES, {"solver": "sgd", "max_iter": 20, "random_state": 0}),
        (smoothed_proof.SmoothedLoss, "weights", Simplex(), CLASSES, {"solver": "sgd", "max_iter": 20}),
    ],
)
def test_one_thread_inside_and_restored_outside(where, name, region, data, params, monkeypatch):
    seen = []
    original = getattr(where, name)

    def watched(*args, **kwargs):
        seen.extend(blas_threads())
        return original(*args, **kwargs)

    monkeypatch.setattr(where, name, watched)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        if max(before) < 2:
            pytest.skip("BLAS has a single thread")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            SPOPlusRegressor(region, **params).fit(*data)
        assert blas_threads() == before
    assert seen and set(seen) == {1}


def test_restored_after_an_error(monkeypatch):
    def fail(self):
        raise RuntimeError("on purpose")

    monkeypatch.setattr(State, "predictor", fail)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(RuntimeError, match="on purpose"):
            SPOPlusRegressor(Simplex(), solver="interior-point").fit(*CLASSES)
        assert blas_threads() == before
