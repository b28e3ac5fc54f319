"""Errors about a sample name its row in the data that the user passed, however rows were sorted, merged and split."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from skspo import (
    Box,
    CvxpyRegion,
    Knapsack,
    MixedInteger,
    OracleRegion,
    Polyhedron,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    TwoStageRegressor,
    decision_report,
    make_spo_scorer,
    normalized_spo_loss,
    row_params,
    spo_loss,
    spo_plus_loss,
    spo_plus_path,
)
from skspo.calibration.geometry import bounding_box
from skspo.regions._oracles.clarabel import ConicSet
from skspo.regions._rows import RowNames, row_error

N, D, BAD = 40, 3, 17
RNG = np.random.default_rng(0)
X, C = RNG.normal(size=(N, 2)), RNG.normal(size=(N, D))
ONES = np.ones((1, D))
GOOD_SIDE = RNG.uniform(1.0, 2.0, N)
BAD_SIDE = np.where(np.arange(N) == BAD, -1.0, GOOD_SIDE)

#: region, parameters of all rows, one of which has no decision, and the same with a decision
EMPTY = {
    "polyhedron": (Polyhedron(ONES, [1.0], bounds=(0, 1)), {"b_ub": BAD_SIDE}, {"b_ub": GOOD_SIDE}),
    "polyhedron-eq": (Polyhedron(A_eq=ONES, b_eq=[1.0], bounds=(0, 1)), {"b_eq": BAD_SIDE}, {"b_eq": GOOD_SIDE}),
    "threads": (Polyhedron(ONES, [1.0], bounds=(0, 1), n_jobs=2), {"b_ub": BAD_SIDE}, {"b_ub": GOOD_SIDE}),
    "integer": (
        MixedInteger(ONES, [1.0], bounds=(0, 1), integrality=1),
        {"b_ub": BAD_SIDE},
        {"b_ub": GOOD_SIDE},
    ),
    "mixed": (
        MixedInteger(ONES, [1.0], bounds=(0, 1), integrality=[1, 0, 0]),
        {"b_ub": BAD_SIDE},
        {"b_ub": GOOD_SIDE},
    ),
    "knapsack": (Knapsack([1, 2, 1], 2), {"capacity": BAD_SIDE}, {"capacity": GOOD_SIDE}),
    "box": (Box(), {"upper": BAD_SIDE}, {"upper": GOOD_SIDE}),
}
ALL = pytest.mark.parametrize("case", EMPTY)
ESTIMATORS = {
    "SPO+": SPOPlusRegressor,
    "sgd": lambda region: SPOPlusRegressor(region, solver="sgd"),
    "CV": SPOPlusRegressorCV,
    "SPO": SPORegressor,
    "MLP": lambda region: SPOMLPRegressor(region, max_iter=2, random_state=0),
}


# -- parameters that vary by sample ------------------------------------------------------------------------------------


@ALL
@pytest.mark.parametrize("name", ESTIMATORS)
def test_fit_names_the_row(case, name):
    region, bad, _ = EMPTY[case]
    with pytest.raises(ValueError, match=rf"region of row {BAD} is empty"):
        ESTIMATORS[name](region).fit(X, C, region_params=bad)


@pytest.mark.slow
@ALL
def test_weights_and_repeated_rows_do_not_change_the_name(case):
    region, bad, _ = EMPTY[case]
    twice = np.r_[np.arange(5), np.arange(N)]
    weight = np.where(np.arange(N + 5) < 8, 0.0, 1.0)
    params = {name: value[twice] for name, value in bad.items()}
    with pytest.raises(ValueError, match=rf"region of row {BAD + 5} is empty"):
        SPOPlusRegressor(region).fit(X[twice], C[twice], sample_weight=weight, region_params=params)
    if case not in ("knapsack", "box"):  # those look at all parameters, whatever the weights are
        nothing = np.where(np.arange(N) == BAD, 0.0, 1.0)
        assert SPOPlusRegressor(region, tol=1e-3).fit(X, C, nothing, region_params=bad).n_iter_


@ALL
def test_decide_score_report_and_metrics_name_the_row(case):
    region, bad, good = EMPTY[case]
    model = TwoStageRegressor(region=region).fit(X, C, region_params=good)
    for ask in (
        lambda: model.decide(X, region_params=bad),
        lambda: model.score(X, C, region_params=bad),
        lambda: model.report(X, C, region_params=bad),
        lambda: decision_report(model, X, C, region_params=bad),
        lambda: spo_loss(C, C, region, region_params=bad),
        lambda: spo_plus_loss(C, C, region, region_params=bad),
        lambda: normalized_spo_loss(C, C, region, region_params=bad),
        lambda: spo_plus_path(X, C, region, n_alphas=2, region_params=bad),
    ):
        with pytest.raises(ValueError, match=rf"region of row {BAD} is empty"):
            ask()


@ALL
def test_folds_name_the_row_of_all_data(case):
    region, bad, _ = EMPTY[case]
    rows = row_params(**bad)
    fold = next(train for train, _ in KFold(4, shuffle=True, random_state=0).split(X) if BAD in train)
    there = int(np.flatnonzero(fold == BAD)[0])
    message = rf"region of row {there} \(row {BAD} of row_params\) is empty"
    for form in (rows[fold], pd.DataFrame(rows).iloc[fold]):
        with pytest.raises(ValueError, match=message):
            SPOPlusRegressor(region).fit(X[fold], C[fold], region_params=form)
    with pytest.raises(ValueError, match=rf"region of row {there} \(index day {BAD}\) is empty"):
        frame = pd.DataFrame(bad, index=[f"day {i}" for i in range(N)])
        SPOPlusRegressor(region).fit(X[fold], C[fold], region_params=frame.iloc[fold])
    with sklearn.config_context(enable_metadata_routing=True):
        model = SPOPlusRegressor(region, tol=1e-2).set_fit_request(region_params=True)
        model.set_score_request(region_params=True)
        folds = KFold(4, shuffle=True, random_state=0)
        with pytest.raises(ValueError, match=message):
            GridSearchCV(model, {"alpha": [0.1]}, cv=folds, error_score="raise").fit(X, C, region_params=rows)
        # Here the row is held out first, so that the score meets it.
        scorer = make_spo_scorer(region).set_score_request(region_params=True)
        with pytest.raises(ValueError, match=rf"region of row 0 \(row {BAD} of row_params\) is empty"):
            cross_val_score(
                TwoStageRegressor(region=region).set_fit_request(region_params=False),
                X,
                C,
                scoring=scorer,
                cv=[(np.setdiff1d(np.arange(N), BAD), np.array([BAD, 3]))],
                params={"region_params": rows},
                error_score="raise",
            )


def test_row_params_number_their_rows():
    rows = row_params(capacity=[3.0, 4.0, 5.0])
    assert rows.dtype.names == ("capacity", "_row")
    assert rows[[2, 0]]["_row"].tolist() == [2, 0]
    with pytest.raises(ValueError, match="'_row' is not a parameter"):
        row_params(_row=[1.0, 2.0])


def test_numbers_that_are_not_finite_or_negative():
    upper = np.ones((N, D))
    upper[BAD, 1] = np.nan
    with pytest.raises(ValueError, match=rf"upper must be finite, got nan in row {BAD}, column 1"):
        SPOPlusRegressor(Box()).fit(X, C, region_params={"upper": upper})
    capacity = np.ones(N)
    capacity[[BAD, 30]] = -2.0, -3.0
    with pytest.raises(ValueError, match=rf"row {BAD} is empty, the capacity -2.0 is negative"):
        SPOPlusRegressor(Knapsack([1, 2, 1], 2)).fit(X, C, region_params={"capacity": capacity})


# -- functions of the user ---------------------------------------------------------------------------------------------


class Mistake(Exception):
    pass


#: one sample stands out by its first cost; its features are those of nobody, so that the others' predictions do not
X_MARKED, MARKED = X - X.mean(axis=0), C.copy()
X_MARKED[BAD], MARKED[BAD] = 0.0, [1000.0, 0.1, 0.2]


def cheapest(costs):
    return np.eye(costs.shape[1])[costs.argmin(axis=1)]


def marked(costs):
    return costs[:, 0] > 100 * np.abs(costs[:, 1:]).max(axis=1)


def at_once(costs):
    """Raise at the costs of the marked row."""
    if marked(costs).any():
        raise Mistake("cannot do this")
    return cheapest(costs)


def later(costs):
    """Raise at 2 c_hat - c of the marked row, which training asks for when it knows all optimal decisions."""
    if marked(-costs).any():
        raise Mistake("cannot do this")
    return cheapest(costs)


def note_of(fit):
    with pytest.raises(Mistake, match="cannot do this") as caught:
        fit()
    return caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("name", "oracle"), [(name, f) for name in ("SPO+", "sgd", "CV", "MLP") for f in (at_once, later)][:-1]
)
def test_an_oracle_that_raises_in_training(name, oracle):
    note = note_of(lambda: ESTIMATORS[name](OracleRegion(oracle, D)).fit(X_MARKED, MARKED))
    assert f"for row {BAD}, [" in note


class Armed:
    """Oracle that raises for some costs, once a call had a certain number of rows."""

    def __init__(self, sizes, wrong):
        self.sizes, self.wrong, self.armed = sizes, wrong, False

    def __call__(self, costs):
        self.armed |= len(costs) in self.sizes
        if self.armed and self.wrong(costs).any():
            raise Mistake("cannot do this")
        return cheapest(costs)


def test_an_oracle_that_raises_in_a_line_search():
    """It asks for several lines at once, and then for those of the rows whose decisions differ."""
    wrong = Armed(range(N + 1, 10**6), lambda costs: (costs == 0).all(axis=1))  # without features nothing is predicted
    model = SPORegressor(OracleRegion(wrong, D), init="least_squares", fit_intercept=False)
    assert f"for row {BAD}, [" in note_of(lambda: model.fit(X_MARKED, MARKED))


def test_an_oracle_that_raises_in_a_batch():
    wrong = Armed([7], lambda costs: costs[:, 0] < -4)  # of typical costs
    model = SPOMLPRegressor(OracleRegion(wrong, D), batch_size=7, max_iter=2, random_state=0)
    assert f"for row {BAD}, [" in note_of(lambda: model.fit(X_MARKED, MARKED))


@pytest.mark.parametrize("held_out", [BAD, 3])
def test_an_oracle_that_raises_in_a_fold(held_out):
    splits = [(np.setdiff1d(np.arange(N), held_out)[::-1], np.array([3, BAD] if held_out == BAD else [held_out]))]
    picky = Armed([2 if held_out == BAD else N - 1], marked)
    model = SPOPlusRegressorCV(OracleRegion(picky, D), cv=splits, alphas=[1.0])
    assert f"for row {BAD}, [" in note_of(lambda: model.fit(X_MARKED, MARKED))


@pytest.mark.parametrize("oracle", [at_once, later])
def test_an_oracle_that_raises_in_a_chunk(oracle):
    def read():
        yield X[:0], MARKED[:0]
        for start in range(0, N, 7):
            yield X_MARKED[start : start + 7], MARKED[start : start + 7]

    note = note_of(lambda: SPOPlusRegressor(OracleRegion(oracle, D)).fit_chunks(read))
    assert f"for row {BAD}, [" in note


def test_an_oracle_that_raises_in_the_sample_of_many_chunks():
    n, bad = 6_000, 4_444
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(n, 2)), rng.normal(size=(n, D))
    X[bad], C[bad] = 0.0, [1e6, 0.1, 0.2]  # every fourth row is taken

    picky = Armed([n // 4], lambda costs: marked(-costs))  # the first fit, in memory

    def read():
        for start in range(0, n, 700):
            yield X[start : start + 700], C[start : start + 700]

    note = note_of(lambda: SPOPlusRegressor(OracleRegion(picky, D)).fit_chunks(read))
    assert f"for row {bad}, [" in note


def test_an_oracle_that_raises_in_a_partition():
    da = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    parts = [da.from_array(array, chunks=(7, -1)) for array in (X, MARKED)]
    with dask.config.set(scheduler="synchronous"):
        for oracle in (at_once, later):
            note = note_of(lambda oracle=oracle: SPOPlusRegressor(OracleRegion(oracle, D)).fit(*parts))
            assert f"for row {BAD}, [" in note
        model = TwoStageRegressor(region=OracleRegion(cheapest, D)).fit(X_MARKED, MARKED)
        model.region_ = OracleRegion(Armed([7], lambda costs: costs[:, 0] > 500), D)
        with pytest.raises(Mistake) as caught:
            model.score(*parts)
        assert f"for row {BAD - 14}, [" in caught.value.__notes__[0]
        assert caught.value.__notes__[1] == "This is about partition 2; rows are counted within it."


def test_an_oracle_that_raises_for_no_row_alone():
    def greedy(costs):
        if len(costs) > 4:
            raise Mistake("cannot do this")
        return cheapest(costs)

    order = [30, 10, 20, 0, 5, 6, 7, 8]
    region = OracleRegion(greedy, D).take(np.array(order))
    assert "for 8 rows together (row 30, row 10, row 20, ...)" in note_of(lambda: region.argmin(C[order]))
    region = OracleRegion(greedy, D).take(np.array(order)).take(slice(1, 6))
    assert "for 5 rows together (row 10, row 20, row 0, ...)" in note_of(lambda: region.argmin(C[order[1:6]]))


def test_decisions_of_an_oracle_that_are_wrong():
    def infinite(costs):
        W = cheapest(costs)
        W[marked(costs)] = np.inf
        return W

    def dear(costs):
        W = cheapest(costs)
        W[marked(costs)] = [1.0, 0.0, 0.0]
        return W

    def dear_at_first(costs):
        first = not known
        known.append(1)
        if first:  # nobody knows a better decision yet
            return np.tile([1.0, 0.0, 0.0], (len(costs), 1))
        return np.tile([0.0, 1.0, 0.0], (len(costs), 1))

    known = []
    with pytest.raises(ValueError, match=rf"not finite for row {BAD}: \[inf inf inf\]"):
        SPOPlusRegressor(OracleRegion(infinite, D)).fit(X_MARKED, MARKED)
    with pytest.raises(ValueError, match=rf"For row {BAD}, "):
        SPOPlusRegressor(OracleRegion(dear, D)).fit(X_MARKED, MARKED)
    # What was returned at first is looked at again when more is known, of other rows perhaps.
    order = np.array([30, BAD, 20])
    region = OracleRegion(dear_at_first, D, on_suboptimal="warn")
    region.take(order).argmin(MARKED[order])
    region.take(np.array([1, 2])).argmin([[2.0, 1.0, 3.0], [2.0, 1.0, 3.0]])
    with pytest.warns(UserWarning, match=rf"For row {BAD}, "):
        region.audit(D)


# -- other regions, and the mechanism ----------------------------------------------------------------------------------


def test_a_solver_that_fails_for_a_row(monkeypatch):
    real = ConicSet._solve

    def fail(self, solver, q, first=0):
        x, z, status = real(self, solver, q, first)
        # Its smaller costs tell the marked row, because the largest one is lowered first.
        marked = q[0] == np.abs(q).max() and q[1] > 0 and np.isclose(q[2], 2.0 * q[1])
        return (x * np.nan, z * np.nan, "NumericalError") if marked else (x, z, status)

    monkeypatch.setattr(ConicSet, "_solve", fail)
    region = CvxpyRegion(lambda w: [w >= 0, w <= 1], D)
    with pytest.raises(RuntimeError, match=rf"could not minimize the costs of row {BAD} over the region"):
        SPOPlusRegressor(region).fit(X_MARKED, MARKED)
    with pytest.raises(RuntimeError, match=rf"could not minimize the costs of row {BAD} over the region"):
        region.argmin(MARKED)


def test_directions_are_no_rows(monkeypatch):
    region = Polyhedron(ONES, [1.0], bounds=(0, 1))
    numbered = region.take(np.array([30, 10, 20]))

    def fail(self, C, data):
        raise row_error(ValueError, 1, "no decision for {row}.")

    numbered._data(D)
    monkeypatch.setattr(Polyhedron, "_argmin", fail)
    with pytest.raises(ValueError, match="no decision for direction 1"):
        bounding_box(numbered, D)
    with pytest.raises(ValueError, match="no decision for row 10"):
        numbered.argmin(C[:3])
    with pytest.raises(ValueError, match="no decision for row 1"):
        region.argmin(C[:3])


def test_regions_of_some_rows_share_what_is_derived(monkeypatch):
    region = Polyhedron(ONES, [1.0], bounds=(0, 1))
    some = region.take(np.array([3, 1]))
    prepared = some._data(D)
    assert region._data(D) is prepared and some.take(slice(1))._data(D) is prepared
    assert region._geometry() is some._geometry()
    assert not {"_cache", "_row_names"} & set(vars(sklearn.base.clone(some)))
    assert pickle.loads(pickle.dumps(some))._row_names.of(0) == "row 3"
    # A fitted model knows nothing of the rows that it was fitted to.
    model = SPOPlusRegressor(region).fit(X, C)
    assert "_row_names" not in vars(model.region_)
    # What an oracle did wrong is known to all of them.
    doubtful = OracleRegion(cheapest, D, on_suboptimal="warn")
    with pytest.warns(UserWarning, match="because"):
        doubtful.take(np.arange(3)).distrust("because.", D)
    assert doubtful._fault == "because."


def test_names_of_rows():
    names = RowNames()
    assert names.of(5) == "row 5"
    assert names.take(slice(4, None, 8)).of(2) == "row 20"
    assert names.take(slice(4, None, 8)).take(np.array([2, 0])).of(1) == "row 4"
    assert names.take(np.array([False, True, True])).of(1) == "row 2"
    few = names.take(np.array([7, 9]))
    assert few.take(np.array([False, True])).of(0) == "row 9"
    assert few.of(3) == "row 3"  # not its row, but no error about an error
