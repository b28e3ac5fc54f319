"""Regions whose oracle is HiGHS: if it fails or returns a wrong answer, decisions are right or there is an error."""

import re
from types import SimpleNamespace

import highspy
import numpy as np
import pytest
import scipy.optimize
from fault_problems import LINEAR, A_ub, D, b_ub, data

import skspo.regions.polyhedral
from skspo import (
    SPOPlusRegressor,
)
from skspo.regions._oracles import highs, highs_integer

pytestmark = pytest.mark.usefixtures("unlisted")

RealHighs = highspy.Highs


def broken_highs(monkeypatch, solution=None, status=None, run=None, info=None, after=0):
    """Let HiGHS fail from the ``after``-th call of getSolution on."""
    looks = []

    class Broken(RealHighs):
        def getSolution(self):
            real = super().getSolution()
            looks.append(1)
            if solution is None or len(looks) <= after:
                return real
            w, y = np.array(real.col_value), np.array(real.row_dual)
            w, y = solution(w, y)
            return SimpleNamespace(col_value=w, row_dual=y, col_dual=np.array(real.col_dual))

        def getModelStatus(self):
            return super().getModelStatus() if status is None or len(looks) < after else status

        def run(self):
            if run is not None and len(looks) >= after:
                raise run
            return super().run()

        def getInfo(self):
            real = super().getInfo()
            return real if info is None else info(real)

    monkeypatch.setattr(highspy, "Highs", Broken)
    highs._last.program = None  # a model that works


#: the first program: the feasible start of linear programs, or the first row
FIRST = "(row 0|the first feasible decision)"

WRONG = {
    "infeasible": lambda w, y: (w + 1.0, y),
    "beyond bounds": lambda w, y: (np.where(w == w.min(), -5.0, w), y),
    "nan": lambda w, y: (w * np.nan, y),
    "empty": lambda w, y: (w[:0], y),
    "none": lambda w, y: (None, y),
    "zero": lambda w, y: (0.0 * w, y),
    "another": lambda w, y: (w[::-1].copy(), y),
    "not integer": lambda w, y: (0.5 * w, y),
}


@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("name", LINEAR)
def test_decisions_of_highs_are_right_or_an_error(name, fault, monkeypatch):
    C = np.random.default_rng(1).normal(size=(8, D)) - 0.3
    truth = LINEAR[name]().argmin(C)
    region = LINEAR[name]()
    if fault != "nan":  # for this fault already while the region is prepared
        region.argmin(C)
    broken_highs(monkeypatch, WRONG[fault])
    wrong = 0
    for i in range(len(C)):
        try:
            W = region.argmin(C[i : i + 1])
        except RuntimeError as error:
            assert "HiGHS" in str(error) and (re.search(FIRST, str(error)) or fault == "nan")
            wrong += 1
        else:
            np.testing.assert_allclose(C[i] @ W[0], C[i] @ truth[i], atol=1e-6)
    assert wrong > 0


@pytest.mark.parametrize("duals", [lambda y: y + 1.0, lambda y: -y, lambda y: y * np.nan, lambda y: y[:0]])
@pytest.mark.parametrize("name", ["polyhedron", "equalities", "cycle"])
def test_wrong_multipliers_prove_nothing(name, duals, monkeypatch):
    C = np.random.default_rng(1).normal(size=(8, D)) - 0.3
    region = LINEAR[name]()
    region.argmin(C)
    broken_highs(monkeypatch, lambda w, y: (w, duals(y)))
    with pytest.raises(RuntimeError, match="HiGHS"):
        region.argmin(C)


@pytest.mark.parametrize("name", ["polyhedron", "equalities"])
def test_the_other_simplex_method_is_tried(name, monkeypatch):
    C = np.random.default_rng(1).normal(size=(3, D)) - 0.3
    region = LINEAR[name]()
    truth = region.argmin(C)
    count = []

    def once(w, y):
        # The first solution is the feasible start, the others are those of the rows.
        count.append(1)
        return (w[::-1] + 0.5, y) if 1 < len(count) <= 4 else (w, y)

    broken_highs(monkeypatch, once)
    np.testing.assert_allclose(region.argmin(C), truth, atol=1e-9)
    assert len(count) == 7


def test_multipliers_of_rows_with_their_own_right_hand_sides(monkeypatch):
    C = np.random.default_rng(1).normal(size=(8, D)) - 0.3
    region = LINEAR["polyhedron"]()
    sides = {"b_ub": b_ub * np.linspace(0.5, 2.0, 8)[:, None]}
    W = region.with_rows(sides, 8, D).argmin(C)
    for i in range(8):
        res = scipy.optimize.linprog(C[i], A_ub=A_ub, b_ub=sides["b_ub"][i], bounds=(0, 2))
        assert C[i] @ W[i] == pytest.approx(res.fun, abs=1e-8)
    broken_highs(monkeypatch, lambda w, y: (0.9 * w, y))
    with pytest.raises(RuntimeError, match="HiGHS calls a decision for row 0 optimal"):
        region.with_rows(sides, 8, D).argmin(C)


@pytest.mark.parametrize("name", LINEAR)
def test_highs_raises(name, monkeypatch):
    C = np.random.default_rng(1).normal(size=(3, D))
    region = LINEAR[name]()
    region.argmin(C)
    broken_highs(monkeypatch, run=OSError("disk on fire"))
    with pytest.raises(RuntimeError, match=f"HiGHS failed at {FIRST}: OSError: disk on fire") as caught:
        region.argmin(C)
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("name", LINEAR)
def test_highs_stops_early(name, monkeypatch):
    C = np.random.default_rng(1).normal(size=(3, D))
    region = LINEAR[name]()
    region.argmin(C)
    broken_highs(monkeypatch, status=highspy.HighsModelStatus.kTimeLimit)
    with pytest.raises(RuntimeError, match=f"HiGHS stopped without an optimal decision for {FIRST}: Time limit"):
        region.argmin(C)


def test_the_cost_of_integers_is_what_highs_says(monkeypatch):
    region = LINEAR["integers"]()
    C = np.random.default_rng(1).normal(size=(3, D)) - 1.0
    region.argmin(C)
    monkeypatch.setattr(highs_integer, "NODES", 0)  # all rows are left to the branch and bound of HiGHS
    for name in ("objective_function_value", "mip_dual_bound"):

        def wrong(real, name=name):
            fake = {key: getattr(real, key) for key in ("objective_function_value", "mip_dual_bound")}
            return SimpleNamespace(**{**fake, name: fake[name] - 0.5})

        broken_highs(monkeypatch, info=wrong)
        with pytest.raises(RuntimeError, match=r"HiGHS failed at row 0.*the decision costs .* but HiGHS says"):
            region.argmin(C)


def test_a_failing_oracle_leaves_an_earlier_model(monkeypatch):
    X, C = data()
    model = SPOPlusRegressor(LINEAR["polyhedron"]()).fit(X, C)
    before = model.coef_.copy()
    broken_highs(monkeypatch, WRONG["zero"], after=30)
    with pytest.raises(RuntimeError, match="HiGHS"):
        model.fit(X + 1.0, C)
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("fault", ["raises", "stops", "outside", "equalities"])
def test_relative_interior_of_a_polyhedron(fault, monkeypatch):
    """The relative interior is computed by one linear program of SciPy, whose result is checked as well."""
    module = skspo.regions.polyhedral
    real = module.linprog

    def broken(*args, **kwargs):
        if fault == "raises":
            raise OSError("disk on fire")
        res = real(*args, **kwargs)
        if fault == "stops":
            res.x, res.status = None, 1
        elif fault == "outside":
            res.x[:D] += 100.0 * res.x[-1]
        else:
            res.x[D:-1] = 0.0  # no inequality is strict
        return res

    monkeypatch.setattr(module, "linprog", broken)
    region = LINEAR["polyhedron"]()
    with pytest.raises((RuntimeError, OSError), match=r"HiGHS|disk"):
        region.equalities(D)
