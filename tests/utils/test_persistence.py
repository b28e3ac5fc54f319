"""Saved models: with every pickler, in other processes, by later versions, and without running foreign code."""

import gzip
import importlib
import io
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from regions_list import REGIONS
from same import assert_same
from sklearn.base import clone
from sklearn.linear_model import Ridge

import skspo as sk
from skspo._utils import versioning
from skspo.datasets import make_portfolio, make_shortest_path
from skspo.solvers import BundleSolver

TESTS = Path(__file__).parents[1]
DATA = TESTS / "fixtures"
X, C = make_shortest_path(50, grid=(2, 3), n_features=3, degree=4, noise=0.5, random_state=0)
P, R = make_portfolio(50, 3, 4, degree=2, random_state=0)
GRID = sk.ShortestPath.grid(2, 3)


def partly(model):
    for half in (slice(25), slice(25, None)):
        model.partial_fit(X[half], C[half])
    return model


def fitted_models():
    rows = {"capacity": np.linspace(2.0, 9.0, 50)}
    return {
        "spo+": sk.SPOPlusRegressor(GRID).fit(X, C),
        "spo+ bundle": sk.SPOPlusRegressor(GRID, solver=BundleSolver(tol=1e-4)).fit(X, C),
        "spo+ conic": sk.SPOPlusRegressor(GRID, solver="conic", alpha=0.1).fit(X, C),
        "spo+ newton": sk.SPOPlusRegressor(sk.EntropySimplex()).fit(P, R),
        "spo+ frame": sk.SPOPlusRegressor(GRID).fit(frame(X), C),
        "spo+ rows": sk.SPOPlusRegressor(sk.Knapsack([3, 4, 5, 2], 7), tol=1e-3).fit(P, R, region_params=rows),
        "spo+ chunks": sk.SPOPlusRegressor(GRID).fit_chunks(lambda: iter([(X, C)])),
        "spo+ partial": partly(sk.SPOPlusRegressor(GRID, random_state=0)),
        "spo+ partial generator": partly(sk.SPOPlusRegressor(GRID, random_state=np.random.RandomState(3))),
        "cv": sk.SPOPlusRegressorCV(GRID, n_alphas=3, cv=2, tol=1e-4).fit(X, C),
        "spo": sk.SPORegressor(GRID, n_restarts=0).fit(X, C),
        "two stages": sk.TwoStageRegressor(region=sk.Markowitz(np.eye(4) + 0.2, 0.9)).fit(P, R),
        "two stages ridge": sk.TwoStageRegressor(Ridge(), GRID).fit(X, C),
        "network": sk.SPOMLPRegressor(sk.EntropySimplex(), hidden_layer_sizes=(4,), tol=10.0, random_state=0).fit(P, R),
        "network partial": partly(sk.SPOMLPRegressor(GRID, hidden_layer_sizes=(4,), random_state=0)),
    }


def frame(X):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def models():
    return fitted_models()


def features(name, model):
    data = X if model.region_.n_dim == C.shape[1] else P
    return frame(data) if hasattr(model, "feature_names_in_") else data


def joblib_dumps(value):
    stream = io.BytesIO()
    joblib.dump(value, stream, compress=3)
    return stream.getvalue()


def cloudpickle_dumps(value):
    return pytest.importorskip("cloudpickle").dumps(value)


PICKLERS = {
    "pickle": (pickle.dumps, pickle.loads),
    "oldest protocol": (lambda value: pickle.dumps(value, protocol=2), pickle.loads),
    "joblib": (joblib_dumps, lambda data: joblib.load(io.BytesIO(data))),
    "cloudpickle": (cloudpickle_dumps, pickle.loads),
}


pytestmark = pytest.mark.filterwarnings("ignore:SPOPlusRegressor was fitted with region_params, but")


def assert_same_model(name, model, other):
    assert_same(model, other)
    data = features(name, model)
    assert_array_equal(model.predict(data), other.predict(data))
    assert_array_equal(model.decide(data), other.decide(data))


@pytest.mark.parametrize("pickler", PICKLERS)
def test_fitted_models(models, pickler):
    dump, load = PICKLERS[pickler]
    for name, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the same version: no warning
            other = load(dump(model))
        assert_same_model(name, model, other)


def test_partial_fit_continues_after_loading(models):
    for name in ("spo+ partial", "spo+ partial generator", "network partial"):
        one, other = pickle.loads(pickle.dumps(models[name])), pickle.loads(pickle.dumps(models[name]))
        assert_same_model(name, partly(one), partly(pickle.loads(pickle.dumps(other))))
        assert np.abs(one.predict(X) - models[name].predict(X)).max() > 0


@pytest.mark.parametrize("case", REGIONS, ids=[case.id for case in REGIONS])
def test_regions(case):
    costs = np.random.default_rng(0).normal(size=(6, case.d))
    decisions = case.region.argmin(costs)  # so that there are caches
    for dump, load in PICKLERS.values():
        other = load(dump(case.region))
        assert_same(case.region, other)
        assert not [name for name in vars(other) if name.endswith("_cache")]
        assert_array_equal(other.argmin(costs), decisions)


@pytest.mark.slow
def test_fresh_process(models, tmp_path):
    """Loading in a process without any fit; only functions of the tests are shared."""
    cases = {case.id: (case.region, np.random.default_rng(0).normal(size=(4, case.d))) for case in REGIONS}
    (tmp_path / "in.pkl").write_bytes(pickle.dumps((models, cases)))
    code = (
        "import pickle, sys, warnings\n"
        f"sys.path[:0] = {[str(TESTS), str(TESTS / 'utils')]!r}\n"
        "warnings.simplefilter('error')\n"
        "with open('in.pkl', 'rb') as file: models, cases = pickle.load(file)\n"
        "from test_persistence import features\n"
        "from threadpoolctl import threadpool_limits\n"
        "threadpool_limits(1)\n"
        "warnings.filterwarnings('ignore', '.*was fitted with region_params')\n"
        "out = {n: (m.predict(features(n, m)), m.decide(features(n, m))) for n, m in models.items()}\n"
        "out |= {n: (region.argmin(costs),) for n, (region, costs) in cases.items()}\n"
        "with open('out.pkl', 'wb') as file: pickle.dump((models, out), file)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    back, out = pickle.loads((tmp_path / "out.pkl").read_bytes())
    for name, model in models.items():
        data = features(name, model)
        assert_same(model, back[name])
        assert_same((model.predict(data), model.decide(data)), out[name], name)
    for name, (region, costs) in cases.items():
        assert_same((region.argmin(costs),), out[name], name)


# -- without running foreign code --------------------------------------------------------------------------------------

BUILTINS = {"set", "frozenset", "slice", "complex", "bytearray", "range", "object"}
REBUILDING = {
    ("copyreg", "_reconstructor"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.random._pickle", "__randomstate_ctor"),
    ("numpy.random._pickle", "__bit_generator_ctor"),
    ("numpy.random._mt19937", "MT19937"),
    ("scipy.optimize._constraints", "Bounds"),
    ("scipy.optimize._constraints", "LinearConstraint"),
}


class Restricted(pickle.Unpickler):
    """Loads arrays, containers, and objects of classes (never functions) of skspo, scikit-learn and sparse SciPy."""

    allowed: frozenset = frozenset()

    def find_class(self, module, name):
        if module == "builtins" and name in BUILTINS:
            return super().find_class(module, name)
        if (module, name) in REBUILDING | self.allowed:
            return super().find_class(module, name)
        if module.split(".")[0] in ("skspo", "sklearn") or module.startswith("scipy.sparse."):
            found = getattr(importlib.import_module(module), name)
            # Defined there: what a module has imported, such as operator.attrgetter, could be used to run code.
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


def test_restricted_loading_of_models(models):
    for name, model in models.items():
        assert_same_model(name, model, Restricted(io.BytesIO(pickle.dumps(model))).load())


@pytest.mark.parametrize("case", REGIONS, ids=[case.id for case in REGIONS])
def test_restricted_loading_of_regions(case):
    """For a region with a user-defined function only this function has to be allowed in addition."""
    functions = {(f.__module__, f.__qualname__) for f in vars(case.region).values() if callable(f)}
    assert bool(functions) == isinstance(case.region, (sk.CvxpyRegion, sk.OracleRegion))

    class WithFunction(Restricted):
        allowed = frozenset(functions)

    costs = np.random.default_rng(1).normal(size=(3, case.d))
    decisions = case.region.argmin(costs)
    other = WithFunction(io.BytesIO(pickle.dumps(case.region))).load()
    assert_array_equal(other.argmin(costs), decisions)
    model = sk.TwoStageRegressor(region=case.region).fit(costs, costs)
    again = WithFunction(io.BytesIO(pickle.dumps(model))).load()
    assert_array_equal(again.decide(costs), model.decide(costs))


def test_restricted_loading_refuses_code():
    class Evil:
        def __reduce__(self):
            return print, ("gotcha",)

    for value in (Evil(), sk.make_spo_scorer):
        with pytest.raises(pickle.UnpicklingError, match="not allowed"):
            Restricted(io.BytesIO(pickle.dumps(value))).load()


ITEM = "csklearn.feature_extraction._dict_vectorizer\nitemgetter\n"
EVAL = (
    f"{ITEM}(S'eval'\ntR({ITEM}(S'__builtins__'\ntR(csklearn.feature_selection._base\nattrgetter\n"
    "(S'__init__.__globals__'\ntR(cskspo.regions.simplex\nSimplex\ntRtRtR(S'open({path!r}, \"w\")'\ntR."
)
GZIP = "csklearn.datasets._covtype\nGzipFile\n(S{path!r}\nS'wb'\ntR."


@pytest.mark.parametrize("text", [EVAL, GZIP], ids=["eval", "write a file"])
def test_restricted_loading_refuses_what_other_modules_import(text, tmp_path):
    """Modules of scikit-learn have names of classes that can do harm."""
    path = tmp_path / "trace"
    text = text.replace("{path!r}", repr(str(path)) if text is GZIP else f'"{path}"')
    with pytest.raises(pickle.UnpicklingError, match="not allowed"):
        Restricted(io.BytesIO(text.encode())).load()
    assert not path.exists()
    pickle.loads(text.encode())  # without restrictions it does harm
    assert path.exists()


def test_skops(models):
    io_ = pytest.importorskip("skops.io")
    for name, model in models.items():
        data = io_.dumps(model)
        unknown = io_.get_untrusted_types(data=data)
        assert all(t.startswith(("skspo.", "numpy.", "sklearn.")) or t == "builtins.frozenset" for t in unknown), (
            unknown
        )
        assert_same_model(name, model, io_.loads(data, trusted=unknown))


# -- versions ----------------------------------------------------------------------------------------------------------


def with_version(value, version):
    """Pickle of an object as if another version had written it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versioning, "__version__", version)
        return pickle.dumps(value)


def test_the_version_is_written_but_not_an_attribute():
    for value in (sk.Simplex(), sk.SPOPlusRegressor(sk.Box()), sk.TwoStageRegressor(), sk.SPOMLPRegressor()):
        assert value.__getstate__()["_skspo_version"] == sk.__version__
        assert sk.__version__.encode() in pickle.dumps(value)
        assert "_skspo_version" not in {**vars(value), **vars(clone(value)), **vars(pickle.loads(pickle.dumps(value)))}


@pytest.mark.parametrize("version", ["0.3.0.dev0", "0.3.9", "0.4.0.dev7"])
def test_other_versions_are_read_with_a_warning(models, version):
    data = with_version(models["spo+"], version)
    with pytest.warns(sk.InconsistentVersionWarning, match=rf"skspo {version} and is read by skspo 0\.4") as caught:
        model = pickle.loads(data)
    assert_same_model("spo+", models["spo+"], model)
    assert {(w.message.name, w.message.written) for w in caught} == {
        ("SPOPlusRegressor", version),
        ("ShortestPath", version),
    }
    assert {w.filename for w in caught} == {__file__}
    assert str(pickle.loads(pickle.dumps(caught[0].message))) == str(caught[0].message)


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0.dev0", "0.5.0", "0.10.0.dev0", "1.0.0"])
def test_other_series_are_refused(models, version):
    series = ".".join(version.split(".")[:2])
    for value in (models["spo+"], sk.Simplex()):
        with pytest.raises(ValueError, match=rf"written by skspo {version} and cannot be read.*'skspo=={series}\.\*'"):
            pickle.loads(with_version(value, version))


def test_versions_that_are_too_old_or_none(monkeypatch):
    data = pickle.dumps(sk.Simplex())
    monkeypatch.setattr(versioning, "__version__", "0.7.0")
    monkeypatch.setattr(versioning, "OLDEST", "0.6")
    with pytest.raises(ValueError, match=r"written by skspo 0\.4.*cannot be read by skspo 0\.7\.0"):
        pickle.loads(data)
    with pytest.raises(ValueError, match="not a version"):
        pickle.loads(with_version(sk.Simplex(), "what?"))


def test_a_state_without_a_version_is_refused():
    state = sk.Simplex().__getstate__()
    del state["_skspo_version"]
    with pytest.raises(ValueError, match=r"an unnamed version.*not a version: the file is damaged"):
        sk.Simplex().__setstate__(state)


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0"])
def test_saved_models(version):
    """Written by tools/make_fixture_models.py of that version."""
    then = np.load(DATA / f"models-{version}.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sk.InconsistentVersionWarning)  # when a later version reads them
        models = pickle.loads(gzip.decompress((DATA / f"models-{version}.pkl.gz").read_bytes()))
    assert len(models) == 10
    assert {name.split("/")[0] for name in then} == set(models)
    for name, model in models.items():
        # Coefficients are the same, products with them depend on the processor in the last digit.
        assert_allclose(model.predict(then[f"{name}/X"]), then[f"{name}/prediction"], rtol=1e-12, atol=1e-12)
        assert_allclose(model.decide(then[f"{name}/X"]), then[f"{name}/decision"], rtol=1e-9, atol=1e-9)
        # Saved again, it has this version.
        with warnings.catch_warnings():
            warnings.simplefilter("error", sk.InconsistentVersionWarning)
            assert_same(model, pickle.loads(pickle.dumps(model)))
        assert set(vars(model)) >= set(model.get_params(deep=False))  # those that came later too
    before = models["partial"].coef_.copy()
    models["partial"].partial_fit(X, C)
    assert (models["partial"].coef_ != before).any()
