"""Ctrl-C ends a fit, wherever it arrives, and the fit leaves nothing behind."""

import signal
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skspo import (
    OracleRegion,
    Simplex,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    SPORegressorCV,
)
from skspo.datasets import make_cost_sensitive_classification
from skspo.regions.base import Region

X, C = make_cost_sensitive_classification(30, 3, 4, degree=2, noise=0.5, random_state=0)
NOISE = np.random.default_rng(0).normal(size=(30, 4))  # costs that no model predicts


@pytest.fixture(autouse=True)
def interrupts_are_heard():
    """The process may have been started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Deaf(Simplex):
    """Simplex whose oracle is interrupted in its call number ``after``, in code that loses the interrupt."""

    after, calls, consequence = 3, 0, "lost"

    def _argmin(self, costs, data):
        Deaf.calls += 1
        if Deaf.calls == Deaf.after:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if Deaf.consequence == "replaced":
                    raise SystemError("returned a result with an exception set") from None
        return super()._argmin(costs, data)


MODELS = {
    "interior-point": SPOPlusRegressor(Deaf(), solver="interior-point"),
    "dual": SPOPlusRegressor(Deaf(), solver="dual", alpha=0.1),
    "bundle": SPOPlusRegressor(Deaf(), solver="bundle", alpha=0.1),
    "sgd": SPOPlusRegressor(Deaf(), solver="sgd", max_iter=30),
    "cv": SPOPlusRegressorCV(Deaf(), n_alphas=3, cv=2),
    "line-search": SPORegressor(Deaf(), max_iter=30),
    "network": SPOMLPRegressor(Deaf(), max_iter=30),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("consequence", ["lost", "replaced"])
def test_an_interrupt_that_a_library_loses_ends_the_fit(name, consequence, monkeypatch):
    monkeypatch.setattr(Deaf, "consequence", consequence)
    monkeypatch.setattr(Deaf, "calls", 0)
    model = clone(MODELS[name])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, C)
    assert not hasattr(model, "region_")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert Deaf.calls < 1000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert hasattr(model.fit(X, C), "region_")  # nothing is left of the first interrupt


def test_a_long_fit_ends_soon_after_an_interrupt_that_was_lost(monkeypatch):
    monkeypatch.setattr(Deaf, "calls", 0)
    monkeypatch.setattr(Deaf, "after", 20)
    with pytest.raises(KeyboardInterrupt):
        SPOPlusRegressor(Deaf(), solver="sgd", tol=0.0, max_iter=5000, random_state=0).fit(X, C)
    assert Deaf.calls < 100


def test_handlers_of_the_user_are_called_and_restored():
    heard = []

    def hear(number, frame):
        heard.append(number)

    signal.signal(signal.SIGINT, hear)

    def argmin(c):
        if not heard:
            signal.raise_signal(signal.SIGINT)
        return np.eye(4)[c.argmin(axis=-1)]

    model = SPOPlusRegressor(OracleRegion(argmin, 4), alpha=0.1).fit(X, C)
    assert heard == [signal.SIGINT]
    assert model.status_ == "converged"
    assert signal.getsignal(signal.SIGINT) is hear


def test_fits_in_other_threads_do_not_touch_the_handler():
    seen = []

    class Watching(Simplex):
        def _argmin(self, costs, data):
            seen.append(signal.getsignal(signal.SIGINT))
            return super()._argmin(costs, data)

    thread = threading.Thread(target=lambda: SPOPlusRegressor(Watching(), alpha=0.1).fit(X, C))
    thread.start()
    thread.join()
    assert set(seen) == {signal.default_int_handler}


RANDOM = {
    "sgd": SPOPlusRegressor(Simplex(), solver="sgd", max_iter=20),
    "spo": SPORegressor(Simplex(), max_iter=20, n_restarts=2),
    "cv": SPOPlusRegressorCV(Simplex(), solver="sgd", n_alphas=2, cv=2, max_iter=5),
    "spo cv": SPORegressorCV(Simplex(), max_iter=10, cv=2, n_alphas=2),
    "network": SPOMLPRegressor(Simplex(), max_iter=5),
}


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_an_interrupted_fit_leaves_the_generator_as_it_was(name, share, monkeypatch):
    rng = np.random.RandomState(0)
    model = clone(RANDOM[name]).set_params(random_state=rng)
    calls, last, original = 0, np.inf, Region.solve_min

    def solve_min(self, *args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == last:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Region, "solve_min", solve_min)
    before = rng.get_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, NOISE)
        assert rng.get_state()[2] != before[2] or (rng.get_state()[1] != before[1]).any()
        # The model must not be the same object: a second fit goes on with the generator.
        rng.set_state(before)
        model, calls, last = clone(RANDOM[name]).set_params(random_state=rng), 0, max(int(share * calls), 1)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, NOISE)
    assert rng.get_state()[2] == before[2]
    np.testing.assert_array_equal(rng.get_state()[1], before[1])


CHILD = """
    import random, signal, time, warnings
    import numpy as np
    from skspo import {region}, SPOPlusRegressor
    from skspo.datasets import make_cost_sensitive_classification

    warnings.simplefilter("ignore")
    X, C = make_cost_sensitive_classification(30, 3, 4, degree=2, noise=0.5, random_state=0)

    def fit():
        return SPOPlusRegressor({region}(), {params}).fit(X, C)

    fit()
    seconds = np.inf
    for _ in range(5):
        start = time.perf_counter()
        fit()
        seconds = min(seconds, time.perf_counter() - start)
    random.seed(0)
    fired, counts = [], dict(stopped=0, ended=0, wrong=0)

    def interrupt(number, frame):
        fired.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGALRM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    for _ in range({moments}):
        fired.clear()
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, seconds))
                fit()
                late = bool(fired)
                signal.setitimer(signal.ITIMER_REAL, 0)
                counts["wrong" if late else "ended"] += 1
            except KeyboardInterrupt:
                counts["stopped"] += 1
            except BaseException as error:
                counts["wrong"] += 1
                print(type(error), error)
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    print(counts)
    assert counts["wrong"] == 0 and counts["stopped"] > {moments} // 10, counts
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
@pytest.mark.parametrize(
    ("region", "params"),
    [
        ("Simplex", "solver='interior-point'"),
        ("Simplex", "solver='dual', alpha=0.1, max_iter=30"),
        ("Simplex", "solver='bundle', alpha=0.1"),
        ("EntropySimplex", "alpha=0.1"),
    ],
)
def test_interrupts_at_random_moments(region, params):
    code = textwrap.dedent(CHILD).format(region=region, params=params, moments=150)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
