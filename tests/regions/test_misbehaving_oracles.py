"""Functions of users that misbehave: ``OracleRegion`` says what is wrong, or the certificate of the fit holds."""

import pickle
import re
import traceback
import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_problem import C, X, cheapest, only_the_region_warns
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skspo import (
    Box,
    ChunkedData,
    Knapsack,
    OracleRegion,
    Simplex,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    spo_plus_loss,
    spo_plus_path,
)
from skspo.regions._oracles.user import BANK, Witnesses
from skspo.regions._rows import RowNames
from skspo.solvers import Result, Solver, Status

WRONG = "the oracle is not optimal, or its decisions are not all feasible"


def fit(oracle, **params):
    return SPOPlusRegressor(OracleRegion(oracle, 4), **params).fit(X, C)


@pytest.fixture(scope="module")
def honest():
    return fit(cheapest)


# -- what is harmless --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda W: W.astype(object),
        lambda W: W.astype(bool),
        lambda W: W.astype(np.int8),
        lambda W: W.astype(np.uint64),
        lambda W: W.astype(np.float32),
        lambda W: W.tolist(),
        lambda W: np.asfortranarray(W),
        lambda W: W[::-1][::-1],
        lambda W: np.ma.array(W),
    ],
)
def test_numbers_of_any_kind(convert, honest):
    model = fit(lambda C: convert(cheapest(C)))
    np.testing.assert_array_equal(model.coef_, honest.coef_)
    assert model.decide(X).dtype == np.float64


@pytest.mark.parametrize(
    "convert",
    [
        lambda W: W.astype(str),
        lambda W: W.astype("S3"),
        lambda W: W.astype("datetime64[s]"),
        lambda W: W.astype(complex),
        lambda W: np.where(W > 0, "x", W.astype(object)),
        lambda W: [list(W[0]), *([0.0] for _ in W[1:])],
        lambda W: (W for _ in range(1)),
    ],
)
def test_no_numbers(convert):
    with pytest.raises(ValueError, match=r"OracleRegion: the oracle must return .* of shape \(40, 4\)"):
        fit(lambda C: convert(cheapest(C)))


def test_an_oracle_that_changes_its_input(honest):
    def oracle(costs):
        W = cheapest(costs)
        costs[:] = np.nan
        return W

    costs = C.copy()
    model = SPOPlusRegressor(OracleRegion(oracle, 4)).fit(X, costs)
    np.testing.assert_array_equal(costs, C)
    np.testing.assert_array_equal(model.coef_, honest.coef_)


def test_an_oracle_that_keeps_its_input(honest):
    kept = []

    def oracle(costs):
        for old in kept:
            old[:] = np.nan
        kept.append(costs)
        return cheapest(costs)

    np.testing.assert_array_equal(fit(oracle).coef_, honest.coef_)


def test_an_oracle_that_returns_the_same_buffer_every_time(honest):
    buffer = np.zeros((1000, 4))

    def oracle(costs):
        buffer[: len(costs)] = cheapest(costs)
        return buffer[: len(costs)]

    np.testing.assert_array_equal(fit(oracle).coef_, honest.coef_)

    def in_place(costs):
        W = cheapest(costs)
        costs[:] = W
        return costs

    np.testing.assert_array_equal(fit(in_place).coef_, honest.coef_)


def test_ties_may_be_broken_at_random():
    """Different decisions of the same cost are no fault."""
    rng = np.random.default_rng(0)
    costs = np.round(C)

    def oracle(costs):
        best = costs <= costs.min(axis=1, keepdims=True)
        return np.eye(4)[[rng.choice(np.flatnonzero(row)) for row in best]]

    region = OracleRegion(oracle, 4)
    for _ in range(20):
        W = region.argmin(costs)
        np.testing.assert_array_equal((costs * W).sum(axis=1), costs.min(axis=1))


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e12, 1e200])
def test_no_false_alarms(size):
    """Exact oracles of sets with many decisions, at any scale."""
    rng = np.random.default_rng(0)
    for exact in (Box(-1.0, 2.0), Knapsack(rng.integers(1, 9, size=12), 20), Simplex()):
        region = OracleRegion(exact.argmin, 12, sense=exact.sense)
        for n in (1, 2, 50, 7, 300):
            costs = size * rng.normal(size=(n, 12)) * 10.0 ** rng.integers(-8, 8, size=(n, 1)).clip(-8, 7)
            np.testing.assert_array_equal(region.argmin(costs), exact.argmin(costs))
        assert region._fault is None
        region.audit(12)


# -- errors of the user's own ------------------------------------------------------------------------------------------


class Mistake(Exception):
    pass


def test_an_error_names_the_row_and_keeps_its_traceback():
    def picky(costs):
        if (costs[:, 0] == 7.25).any():
            raise Mistake("cannot do this")
        return cheapest(costs)

    costs = C.astype(float)
    costs[29, 0] = 7.25
    with pytest.raises(Mistake, match="cannot do this") as caught:
        OracleRegion(picky, 4).argmin(costs)
    (note,) = caught.value.__notes__
    assert "for row 29, [7.25" in note and "array of shape (40, 4)" in note
    text = "".join(traceback.format_exception(caught.value))
    assert "in picky" in text and "OracleRegion: the oracle raised this error" in text
    # The numbers are the user's own, also for values to be maximized.
    with pytest.raises(Mistake) as caught:
        OracleRegion(picky, 4, sense="max").argmin(costs)
    assert caught.value.__notes__ == [note]


def test_an_error_for_all_rows_together():
    def greedy(costs):
        if len(costs) > 10:
            raise MemoryError
        return cheapest(costs)

    with pytest.raises(MemoryError) as caught:
        fit(greedy)
    assert "rows together (row " in caught.value.__notes__[0]


def test_an_error_that_comes_once():
    calls = []

    def flaky(costs):
        calls.append(1)
        if len(calls) == 3:
            raise OSError("the license server is gone")
        return cheapest(costs)

    with pytest.raises(OSError, match="license") as caught:
        fit(flaky)
    assert "for 40 rows together (row " in caught.value.__notes__[0]


# -- oracles that are not optimal --------------------------------------------------------------------------------------


def test_the_error_shows_costs_and_both_decisions():
    def lazy(costs):
        W = cheapest(costs)
        W[1] = W[0]
        return W

    region = OracleRegion(lazy, 3)
    with pytest.raises(ValueError, match=WRONG) as caught:
        region.argmin([[1.0, 2.0, 3.0], [6.0, 4.0, 5.0], [3.0, 1.0, 2.0]])
    text = str(caught.value)
    assert "For row 1, [6., 4., 5.], it returned [1., 0., 0.], which costs 6. But [0., 1., 0.]" in text
    assert "costs 4." in text and "on_suboptimal='warn'" in text


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_wrong_sense(sense):
    def oracle(costs):
        return cheapest(costs) if sense == "max" else cheapest(-costs)

    with pytest.raises(ValueError, match=rf"{WRONG}.*Is sense='{sense}' right"):
        SPOPlusRegressor(OracleRegion(oracle, 4, sense=sense)).fit(X, C)


def random_rows(rng, costs):
    W = cheapest(costs)
    some = rng.random(len(W)) < 0.1
    W[some] = np.eye(4)[rng.integers(4, size=some.sum())]
    return W


def inexact(rng, costs):
    # A solver that stops at a gap of a thousandth.
    return cheapest(np.round(costs / np.abs(costs).max(axis=1, keepdims=True), 3))


def positive_only(rng, costs):
    # Dijkstra's mistake.
    return cheapest(np.maximum(costs, 0.0))


def infeasible(rng, costs):
    # All of the best, and twice of it where it is cheap.
    return cheapest(costs) * np.where(costs.min(axis=1) < -2.0, 2.0, 1.0)[:, None]


class Stale:
    """Decisions of the call before."""

    def __init__(self):
        self.old = None

    def __call__(self, rng, costs):
        old, self.old = self.old, cheapest(costs)
        return self.old if old is None or old.shape != self.old.shape else old


FAULTS = {f.__name__: lambda f=f: f for f in (random_rows, inexact, positive_only, infeasible)} | {"stale": Stale}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("solver", ["bundle", "dual", "sgd"])
def test_a_fit_finds_out(fault, solver):
    rng = np.random.default_rng(0)
    oracle = FAULTS[fault]()
    model = SPOPlusRegressor(OracleRegion(cheapest, 4), solver=solver, random_state=0, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, C)
    before, optimum = model.coef_.copy(), model.objective_
    model.set_params(region=OracleRegion(lambda costs: oracle(rng, costs), 4))
    try:
        model.fit(X, C)
    except ValueError as error:
        assert re.search(rf"{WRONG}|not give the same answers", str(error))
        np.testing.assert_array_equal(model.coef_, before)
    else:
        # Decisions that are wrong only where costs are nearly equal may do no harm: then the certificate holds.
        assert fault == "inexact"
        assert model.lower_bound_ <= optimum
        assert spo_plus_loss(C, model.predict(X), Simplex()) <= optimum * (1.0 + 2e-3)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fit_that_goes_on_certifies_nothing(fault):
    rng = np.random.default_rng(0)
    oracle = FAULTS[fault]()
    region = OracleRegion(lambda costs: oracle(rng, costs), 4, on_suboptimal="warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SPOPlusRegressor(region, random_state=0).fit(X, C)
    # One warning, which says what happened and what follows, and points here.
    (told,) = caught
    assert re.match(rf"OracleRegion: ({WRONG}|.*same answers)", str(told.message))
    assert "It has no lower bound: lower_bound_ is -inf and duality_gap_ is inf." in str(told.message)
    assert told.filename == __file__
    assert model.lower_bound_ == -np.inf
    assert model.duality_gap_ == np.inf
    assert np.isnan(model.certificate_radius_)
    assert np.isnan(model.history_["lower_bound"]).all() and np.isnan(model.history_["duality_gap"]).all()
    assert np.isfinite(model.coef_).all()
    assert region._fault is None  # the user's own region is not touched
    assert model.region_._fault


@pytest.mark.slow
def test_paths_cross_validation_and_chunks():
    rng = np.random.default_rng(0)
    region = OracleRegion(lambda costs: random_rows(rng, costs), 4, on_suboptimal="warn")
    with only_the_region_warns():
        *_, gaps = spo_plus_path(X, C, region, n_alphas=3)
    assert (gaps == np.inf).all()
    with only_the_region_warns():
        model = SPOPlusRegressorCV(region, n_alphas=3, cv=2).fit(X, C)
    assert model.lower_bound_ == -np.inf and model.duality_gap_ == np.inf
    # The SPO+ loss is not reliable, so that the choice is by decisions, unless something else is asked for.
    results = model.cv_results_
    np.testing.assert_array_equal(results["mean_test_score"], -results["mean_test_spo_loss"])
    with only_the_region_warns():
        results = SPOPlusRegressorCV(region, n_alphas=3, cv=2, scoring="spo_plus_loss").fit(X, C).cv_results_
    np.testing.assert_array_equal(results["mean_test_score"], -results["mean_test_spo_plus_loss"])
    for call in (
        lambda: SPOPlusRegressor(region).fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=10)),
        lambda: SPOPlusRegressor(region, random_state=0).partial_fit(X, C),
        lambda: SPORegressor(region, random_state=0, n_restarts=0).fit(X, C),
    ):
        with only_the_region_warns():
            model = call()
        assert model.lower_bound_ == -np.inf and model.duality_gap_ == np.inf
    strict = region.set_params(on_suboptimal="raise")
    for call in (
        lambda: spo_plus_path(X, C, strict, n_alphas=3),
        lambda: SPOPlusRegressorCV(strict, n_alphas=3, cv=2).fit(X, C),
        lambda: SPOPlusRegressor(strict).fit_chunks(ChunkedData.from_arrays(X, C, chunk_rows=10)),
        lambda: SPORegressor(strict, max_iter=20, random_state=0).fit(X, C),
    ):
        with pytest.raises(ValueError, match="OracleRegion: the oracle"):
            call()


def test_an_oracle_that_changes_its_mind_about_equally_many_rows():
    """The decisions are those of one set in the first half of the fit, and of another one later."""
    calls = []

    def moody(costs):
        calls.append(1)
        return cheapest(costs) if len(calls) < 4 else 0.5 * cheapest(costs) + 0.125

    with pytest.raises(ValueError, match="OracleRegion"):
        fit(moody)


def test_a_better_decision_that_comes_later():
    """The decisions of the training data are compared with those of the whole fit at its end."""
    region = OracleRegion(lambda costs: np.where(costs[:, :1] < 0, [[0.0, 1.0]], [[1.0, 0.0]]), 2)
    region.argmin([[3.0, 1.0]])  # wrong, but nothing else is known
    region.argmin([[-1.0, -2.0]])
    with pytest.raises(ValueError, match=r"For row 0, \[3\., 1\.\], it returned \[1\., 0\.\], which costs 3\. But"):
        region.audit(2)


def test_what_cannot_be_found_out():
    """An oracle that never chooses the last one is right about the others, and so is the certificate."""

    def blind(costs):
        return np.pad(cheapest(costs[:, :3]), [(0, 0), (0, 1)])

    model = fit(blind, alpha=0.1, fit_intercept=False)
    three = SPOPlusRegressor(Simplex(), alpha=0.1, fit_intercept=False).fit(X, C[:, :3])
    assert model.duality_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(three.objective_, rel=2e-6)


def test_a_negative_loss_finds_out():
    """A decision for the training costs is better than what the oracle returns later, and not among the few dozen."""
    rng = np.random.default_rng(0)
    points, costs = rng.normal(size=(500, 6)), rng.normal(size=(200, 6))
    order = (costs @ points.T).argsort(axis=1)
    wrong = None

    def forgetful(given):
        best = (given @ points.T).argmin(axis=1)
        if wrong is not None:
            best[wrong] = order[wrong, 1]
        return points[best]

    region = OracleRegion(forgetful, 6)
    first = region.argmin(costs)
    region.argmin(-costs)
    known = {tuple(w) for w in region._data(6).bank}
    lonely = [i for i in range(1, 200) if tuple(first[i]) not in known | {tuple(first[i - 1])}]
    wrong = lonely[0]
    with pytest.raises(ValueError, match=rf"{WRONG}.*For row {wrong},"):
        region.argmin(costs)


def test_exact_functions_pay_nothing_for_on_suboptimal():
    """Same model and same number of calls as with "raise", and no warning."""
    fits = {}
    for mode in ("raise", "warn"):
        calls = []

        def counted(costs, calls=calls):
            calls.append(len(costs))
            return cheapest(costs)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = SPOPlusRegressor(OracleRegion(counted, 4, on_suboptimal=mode), solver="bundle").fit(X, C)
        assert model.duality_gap_ <= 1e-6
        fits[mode] = model.coef_, calls
    np.testing.assert_array_equal(fits["raise"][0], fits["warn"][0])
    assert fits["raise"][1] == fits["warn"][1]


# -- what is remembered ------------------------------------------------------------------------------------------------


def test_memory_is_bounded_and_forgotten(monkeypatch):
    rng = np.random.default_rng(0)
    region = OracleRegion(lambda costs: -costs / np.linalg.norm(costs, axis=1, keepdims=True), 3)
    for _ in range(30):
        region.argmin(rng.normal(size=(100, 3)))
    memory = region._data(3)
    assert len(memory.bank) == BANK and len(np.unique(memory.bank, axis=0)) == BANK
    assert memory.previous.shape == (100, 3)
    monkeypatch.setattr("skspo.regions._oracles.user.BLOCK_ELEMENTS", 100)
    small = Witnesses()
    small.look(np.ones((70, 2)), np.ones((70, 2)), RowNames())
    assert small.previous.size == small.first[0].size == small.first[1].size == 100
    assert "_cache" not in vars(clone(region))
    plain = OracleRegion(cheapest, 4)
    plain.argmin(C)
    assert "_cache" not in vars(pickle.loads(pickle.dumps(plain)))
    assert not hasattr(Simplex(), "audit")  # regions of our own are not asked


def test_few_decisions_are_all_remembered():
    memory = Witnesses()
    points = np.random.default_rng(0).normal(size=(BANK, 3))
    for k in range(BANK):
        memory.look(np.zeros((4, 3)), points[[k, k // 2, k, 0]], RowNames())
    assert len(memory.bank) == BANK
    assert {tuple(p) for p in memory.bank} == {tuple(p) for p in points}


def test_parameter():
    with pytest.raises(ValueError, match="on_suboptimal must be 'raise' or 'warn', got 'ignore'"):
        OracleRegion(cheapest, 4, on_suboptimal="ignore").argmin(C)


# -- any fault, any small problem --------------------------------------------------------------------------------------


def optimum(X, C, points, alpha):
    """Smallest SPO+ objective over conv(points), with a ridge and without intercept, by CVXPY as it is."""
    n, d = C.shape
    B = cp.Variable((d, X.shape[1]))
    V = C - 2 * X @ B.T
    W = points[(C @ points.T).argmin(axis=1)]
    t = cp.Variable(n)
    loss = t + 2 * cp.sum(cp.multiply(X @ B.T, W), axis=1) - (C * W).sum(axis=1)
    constraints = [t >= V @ p for p in points]
    problem = cp.Problem(cp.Minimize(cp.sum(loss) / n + alpha / 2 * cp.sum_squares(B)), constraints)
    return problem.solve(solver=cp.CLARABEL)


class AnyOracle:
    """Best of some points, with a fault; all that it ever returned is written down."""

    def __init__(self, kind, rng, points):
        self.kind, self.rng, self.points = kind, rng, points
        self.returned, self.calls, self.last = set(), 0, None

    def __call__(self, costs):
        self.calls += 1
        order = (costs @ self.points.T).argsort(axis=1)
        W = self.points[self.choose(costs, order)]
        if self.kind == "far" and self.calls % 3 == 0:
            W = W * 1.5
        if self.kind == "stale" and self.last is not None and self.last.shape == W.shape and self.calls % 4 == 0:
            W = self.last
        self.last = W
        self.returned |= {tuple(w) for w in W}
        return W

    def choose(self, costs, order):
        n, k = order.shape
        best = order[:, 0].copy()
        if self.kind == "random":
            some = self.rng.random(n) < 0.1
            best[some] = self.rng.integers(k, size=some.sum())
        elif self.kind == "second":
            some = np.cos(1e3 * costs.sum(axis=1)) > 0.7
            best[some] = order[some, min(1, k - 1)]
        elif self.kind == "rounded":
            best = (np.round(costs, 1) @ self.points.T).argmin(axis=1)
        elif self.kind == "clipped":
            best = (np.maximum(costs, 0.0) @ self.points.T).argmin(axis=1)
        elif self.kind == "opposite":
            best = order[:, -1]
        elif self.kind == "blind" and self.calls > 2:
            best = (costs @ self.points[1:].T).argmin(axis=1) + 1 if k > 1 else best
        elif self.kind == "one row":
            best[self.calls % n] = order[self.calls % n, -1]
        return best


KINDS = ["honest", "random", "second", "rounded", "clipped", "opposite", "blind", "one row", "far", "stale"]


@given(
    st.sampled_from(KINDS),
    st.integers(0, 10**6),
    st.integers(3, 12),
    st.integers(1, 4),
    st.integers(1, 9),
    st.sampled_from(["raise", "warn"]),
)
def test_found_out_or_right(kind, seed, n, d, k, mode):
    """Either the oracle is found out, or the fit is right about all decisions that it ever returned.

    Nobody who knows only these decisions could tell that there are others.
    """
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(n, 2)), rng.normal(size=(n, d))
    points = np.round(rng.normal(size=(k, d)), 3)
    oracle = AnyOracle(kind, rng, points)
    model = SPOPlusRegressor(OracleRegion(oracle, d, on_suboptimal=mode), alpha=0.1, fit_intercept=False, max_iter=50)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, C)
        except ValueError as error:
            assert mode == "raise" and "OracleRegion: the oracle" in str(error)
            assert kind != "honest"
            return
    if model.region_._fault:
        assert mode == "warn" and kind != "honest"
        assert model.lower_bound_ == -np.inf
        assert model.duality_gap_ == np.inf
        assert sum("OracleRegion" in str(w.message) for w in caught) == 1
        # If there is another one, it is about max_iter, and not about bounds.
        for other in (str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)):
            assert "stopped early: max_iter=50" in other and "bound" not in other
        return
    truth = optimum(X, C, np.array(sorted(oracle.returned)), 0.1)
    slack = 1e-5 * (1.0 + abs(truth))
    assert model.lower_bound_ <= truth + slack
    assert model.objective_ >= truth - slack


# -- wrong bounds ------------------------------------------------------------------------------------------------------


class Boastful(Solver):
    """Returns least squares with a bound far above its objective."""

    name = "boastful"
    tol = 1e-6
    max_iter = None

    def solve(self, objective, run, start=None):
        """As told."""
        value = objective.value(objective.least_squares)
        return Result(objective.least_squares, value, 7.0 * value, 3, Status.FAILED, "it had enough")


def test_a_wrong_bound_is_told_about_and_not_called_valid():
    with pytest.warns(ConvergenceWarning) as caught:
        model = SPOPlusRegressor(Simplex(), solver=Boastful()).fit(X, C)
    (told,) = caught
    text = str(told.message)
    assert text.startswith("The lower bound of the boastful solver was wrong: a known model has a smaller objective.")
    assert "replaced by 0" in text and "Try another solver" in text
    assert "holds." not in text and "max_iter" not in text
    assert model.lower_bound_ == 0.0 and model.duality_gap_ == pytest.approx(1.0)


def test_equal_costs_are_no_fault():
    """All decisions cost the same but for rounding: the loss is a rounding error, which may be negative."""
    rng = np.random.default_rng(0)
    costs = 0.1 + 1e-17 * rng.normal(size=(30, 4)) + rng.normal(size=(30, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rounding errors have no optimum
        model = SPOPlusRegressor(OracleRegion(cheapest, 4), max_iter=50).fit(rng.normal(size=(30, 2)), costs)
    assert model.region_._fault is None
