"""Checks of what comes out of the problems of ``adversarial.py`` (used by ``test_adversarial.py``).

A problem is data, a region, and the parameters of an estimator.  Its outcome must be one of

    certified   a gap of at most ``tol``, checked by arithmetic that uses only the oracle of the package
    warned      a ConvergenceWarning; coefficients, objective and bound are checked in the same way
    refused     a ValueError or TypeError that names the cause

and everything else is an AssertionError: other exceptions, NumPy's RuntimeWarning, numbers that are not finite, an
objective that is not the objective of the coefficients, a bound above what some other model attains.

The arithmetic is in long double, whose range (1e-4932 to 1e4932 on x86) holds every product of doubles.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from typing import Any

import numpy as np
from adversarial import Problem
from hypothesis import event
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning

import skspo as sk
from skspo._training.in_memory import InMemoryObjective
from skspo._utils.scaling import relative_weight
from skspo.losses import SPOPlusLoss
from skspo.regions.check import check_region

LONG = np.longdouble

#: messages of errors that name their cause; any other message is a failure
CAUSES = [
    r"^Input (X|y) contains (NaN|infinity)",
    r"cannot serve the region",
    r"a smooth penalty",
    r"^sample_weight is zero for every training sample of a fold",
    r"^Cross-validation needs at least 2 samples",
    r"^The penalty overflows: features of size .* Rescale",
    r"^(X|y|offset) has values of size .* use larger units",
    r"^The costs are of size .* use other units",
    r"^A feature varies by .* Rescale",
    r"^offset is .* times the typical cost",
]

#: number of outcomes in this process, by test
COUNTS: dict[str, Counter[str]] = {}


class Truth:
    """The training objective of a problem, in long double, from its definition."""

    def __init__(self, problem: Problem, params: dict[str, Any]) -> None:
        self.problem, self.params = problem, params
        self.region = problem.region
        X, C = (np.asarray(np.asarray(a).tolist(), dtype=np.float64) for a in (problem.X, problem.C))
        n, d = C.shape
        self.sign = -1 if self.region.sense == "max" else 1
        self.X, self.C = X.astype(LONG), C.astype(LONG)
        self.offset = LONG(0) if problem.offset is None else problem.offset.astype(LONG)
        # Weights below 1e-280 of the largest count as zero.
        weight = np.ones(n, dtype=LONG) if problem.weight is None else relative_weight(problem.weight).astype(LONG)
        self.weight = weight / weight.sum()
        self.W = self.region.argmin(C).astype(LONG)
        self.shared, self.intercept = params["shared"], params["fit_intercept"]
        self.alpha, self.l1_ratio = LONG(params["alpha"]), LONG(params["l1_ratio"])
        self.prior_is_least_squares = params["prior"] == "least_squares"
        self.rows = self.X.reshape(n * d, -1) if self.shared else self.X
        row_weight = np.repeat(self.weight, d) / d if self.shared else self.weight
        center = self.intercept and not self.prior_is_least_squares
        self.mean = row_weight @ self.rows if center else np.zeros(self.rows.shape[1], dtype=LONG)
        spread = np.sqrt(row_weight @ (self.rows - self.mean) ** 2)
        positive = self.rows[row_weight > 0]
        self.used = spread > 16 * np.finfo(float).eps * np.abs(positive).max(axis=0)
        self.spread = np.where(self.used, spread, 1)
        normals = self.region.equalities(d) if hasattr(self.region, "equalities") else np.zeros((0, d))
        normals = normals.astype(LONG)
        visible = self.C - (self.C @ normals.T) @ normals
        size = np.sqrt(self.weight @ (visible**2).sum(axis=1))
        self.cost_scale = size if size > 0 else LONG(1)
        self.accuracy = 1e-6 if isinstance(self.region, sk.Markowitz) else 1e-15  # of the oracle, relative to costs
        self.standardized = LONG(0)  # penalty of standardized coefficients, in units of cost
        self.prior = self.least_squares() if self.prior_is_least_squares and self.alpha > 0 else None

    def least_squares(self):
        """The model that the penalty shrinks to, and around which a bound holds.

        If it is not unique, or only numerically unique, it is taken from the package.
        """
        region = check_region(self.region, self.C.shape[1])
        objective = InMemoryObjective(
            SPOPlusLoss(region),
            self.X.astype(float),
            self.C.astype(float),
            relative_weight(self.problem.weight),
            offset=self.problem.offset,
            prior=self.params["prior"],
            fit_intercept=self.intercept,
            shared=self.shared,
            alpha=float(self.alpha),
            l1_ratio=float(self.l1_ratio),
        )
        coef, intercept = (np.asarray(a, dtype=LONG) for a in objective.to_user(objective.least_squares))
        return coef, intercept

    def predict(self, coef, intercept):
        if self.shared:
            return (self.rows @ coef + intercept).reshape(self.C.shape) + self.offset
        return self.X @ coef.T + intercept + self.offset

    def penalty(self, coef, intercept):
        """Penalty, and its change by rounding errors of the coefficients."""
        pairs = [(coef, LONG(0))] if self.prior is None else [(coef, self.prior[0])]
        if self.prior is not None and self.intercept:
            pairs.append((intercept, self.prior[1]))
        value, rounding = LONG(0), LONG(0)
        for B, B0 in pairs:
            D, digit = np.abs(B - B0), 64 * np.finfo(float).eps * (np.abs(B) + np.abs(B0))
            value += (self.l1_ratio * D + (1 - self.l1_ratio) / 2 * D**2).sum()
            rounding += (self.l1_ratio * digit + (1 - self.l1_ratio) * (D + digit) * digit).sum()
        return self.alpha * value, self.alpha * rounding

    def decide(self, V):
        """Best decisions; rows are scaled by a power of two, which changes none and keeps them doubles."""
        exponent = np.frexp(np.abs(V).max(axis=1))[1]
        return self.region.argmin(np.ldexp(V, -exponent[:, None]).astype(np.float64)).astype(LONG)

    def loss(self, C_hat):
        """Weighted SPO+ loss of predictions, and the size of the terms whose difference it is."""
        V = 2 * C_hat - self.C
        gap = self.W - self.decide(V)
        value = self.weight @ (V * gap).sum(axis=1) * self.sign
        width = np.abs(self.W).max() + np.abs(gap).max()
        return value, width * (self.weight @ (np.abs(self.C) + 2 * np.abs(C_hat)).sum(axis=1))

    def value(self, coef, intercept):
        # Rounding errors of an oracle may make the loss slightly too small, even negative.
        loss, size = self.loss(self.predict(coef, intercept))
        value = max(loss + self.accuracy * size, LONG(0)) + self.penalty(coef, intercept)[0]
        if self.standardized:
            D = np.abs(self.to_theta(coef, intercept)[:, : self.rows.shape[1]])
            value += self.standardized * (self.l1_ratio * D + (1 - self.l1_ratio) / 2 * D**2).sum()
        return value

    def regret(self, C_hat):
        """Weighted SPO loss."""
        return self.weight @ (self.C * (self.decide(C_hat) - self.W)).sum(axis=1) * self.sign

    def trivial(self):
        return self.loss(np.zeros_like(self.C) + self.offset)[0]

    # -- coordinates in which distances are measured -------------------------------------------------------------------

    def to_theta(self, coef, intercept):
        Theta = np.atleast_2d(np.where(self.used, coef * self.spread, 0))
        if not self.intercept:
            return Theta / self.cost_scale
        last = np.atleast_1d(intercept + coef @ self.mean)[:, None]
        return np.concatenate([Theta, last], axis=1) / self.cost_scale

    def to_user(self, Theta):
        p = self.rows.shape[1]
        coef = np.where(self.used, Theta[:, :p] * self.cost_scale / self.spread, 0)
        intercept = Theta[:, p] * self.cost_scale - coef @ self.mean if self.intercept else np.zeros(len(Theta))
        return (coef[0], intercept[0]) if self.shared else (coef, intercept)

    def features(self):
        Z = np.where(self.used, (self.rows - self.mean) / self.spread, 0)
        return np.concatenate([Z, np.ones((len(Z), 1), dtype=LONG)], axis=1) if self.intercept else Z

    def rivals(self, coef, intercept, rng):
        """Other models: a value below the bound refutes it."""
        here = self.to_theta(coef, intercept)
        Z = self.features()
        C_hat = self.predict(coef, intercept)
        G = 2 * (self.W - self.decide(2 * C_hat - self.C)) * self.weight[:, None] * self.sign
        if self.shared:
            down = -(G.ravel() @ Z)[None]
            target = (self.C - self.offset).ravel()[:, None]
        else:
            down = -(G.T @ Z)
            target = self.C - self.offset
        yield np.zeros_like(here)
        Z64, T64 = Z.astype(float), (target / self.cost_scale).astype(float)
        yield np.linalg.lstsq(Z64, T64, rcond=None)[0].T.astype(LONG)
        size = max(np.linalg.norm(down), LONG(1e-300))
        for length in (1e-7, 1e-5, 1e-3, 0.1, 10.0):
            yield here + length * down / size
            yield here + length * rng.normal(size=here.shape)
        yield here * LONG(0.5)
        yield here * LONG(2.0)
        if self.problem.vertices is not None and self.alpha == 0:
            best = self.linear_program(Z64)
            if best is not None:
                yield best

    def linear_program(self, Z):
        """Minimize sum_i a_i [t_i + 2 c_hat_i.w_i] subject to t_i >= (c_i - 2 c_hat_i).v for all vertices v."""
        n, d = self.C.shape
        vertices = self.problem.vertices * float(self.sign)
        q = Z.shape[1]
        if self.shared:
            row = np.einsum("kj,ijq->ikq", vertices, Z.reshape(n, d, q)).reshape(n * len(vertices), q)
            gain = np.einsum("i,ij,ijq->q", *(np.asarray(a, float) for a in (self.weight, self.W, Z.reshape(n, d, q))))
        else:
            row = np.einsum("kj,iq->ikjq", vertices, Z).reshape(n * len(vertices), d * q)
            gain = np.einsum("i,ij,iq->jq", *(np.asarray(a, float) for a in (self.weight, self.W, Z))).ravel()
        A = np.hstack([-2 * row, -np.repeat(np.eye(n), len(vertices), axis=0)])
        C = ((self.C - (0 if self.problem.offset is None else 2 * self.offset)) / self.cost_scale).astype(float)
        cost = np.concatenate([2 * gain * self.sign, self.weight.astype(float)])
        if not all(np.isfinite(a).all() and np.abs(a).max() < 1e15 for a in (A, C)):
            return None
        result = linprog(cost, A, -(C @ vertices.T).ravel(), bounds=(None, None))
        if result.x is None:
            return None
        return np.reshape(result.x[: row.shape[1]], (-1, q)).astype(LONG)


def check_predictions(problem: Problem, model: Any, truth: Truth) -> tuple[Any, Any]:
    """Loss of the coefficients, and its rounding error; everything must be finite."""
    for name in ("coef_", "intercept_", "objective_", "lower_bound_", "duality_gap_"):
        assert np.isfinite(getattr(model, name)).all(), f"{name} is {getattr(model, name)}"
    coef, intercept = (np.asarray(a, dtype=LONG) for a in (model.coef_, model.intercept_))
    predicted = model.predict(problem.X, problem.offset).reshape(truth.C.shape)
    assert np.isfinite(predicted).all(), "predictions of the training data are not finite"
    exact = truth.predict(coef, intercept)
    # Rounding error of a prediction.
    parts = (np.abs(truth.rows) @ np.abs(coef).T + np.abs(intercept)).reshape(truth.C.shape) + np.abs(truth.offset)
    lost = 64 * np.finfo(float).eps * parts
    assert (np.abs(predicted - exact) <= lost + 1e-320).all(), "predict is not X coef + intercept"
    loss, size = truth.loss(exact)
    width = np.abs(truth.W).max() + np.abs(truth.decide(2 * exact - truth.C)).max()
    return loss, max(truth.accuracy, 1e-9) * size + width * (truth.weight @ lost.sum(axis=1)) + LONG(1e-320)


def check_model(problem: Problem, model: Any, truth: Truth) -> None:
    """Check the attributes of a fitted SPO+ model."""
    loss, slack = check_predictions(problem, model, truth)
    coef, intercept = (np.asarray(a, dtype=LONG) for a in (model.coef_, model.intercept_))
    penalty, rounding = truth.penalty(coef, intercept)
    # A penalty below 1e-100 of a standardized coefficient is none.
    objective, slack = loss + penalty, slack + rounding + 1e-90 * truth.cost_scale * (truth.alpha > 0)
    assert abs(model.objective_ - objective) <= slack + 1e-9 * objective, (
        f"objective_ is {model.objective_}, the objective of the coefficients is {objective}, slack {slack}"
    )
    assert -slack <= model.lower_bound_ <= model.objective_
    measure = max(LONG(model.objective_), truth.trivial() / 100)
    gap = (LONG(model.objective_) - model.lower_bound_) / measure if measure > 0 else LONG(0)
    allowed = 1e-6 * gap + slack / max(measure, LONG(1e-320))
    assert abs(gap - model.duality_gap_) <= allowed, f"duality_gap_ is {model.duality_gap_}, the gap is {gap}"
    # With a ridge on all coefficients the bound holds everywhere.
    ridge = truth.alpha * (1 - truth.l1_ratio) * truth.cost_scale / truth.spread.max() ** 2
    check_bound(model, truth, slack, everywhere=ridge > 1e-90 and (truth.prior_is_least_squares or not truth.intercept))


def check_bound(model: Any, truth: Truth, slack: Any, everywhere: bool) -> None:
    """Whether any rival within the radius of the certificate, or anywhere, is below the lower bound."""
    coef, intercept = (np.asarray(a, dtype=LONG) for a in (model.coef_, model.intercept_))
    center, radius = truth.to_theta(*truth.least_squares()), model.certificate_radius_
    assert radius >= 10_000 and (radius == np.inf or not everywhere), f"certificate_radius_ is {radius}"
    for k, Theta in enumerate(truth.rivals(coef, intercept, np.random.default_rng(0))):
        distance = np.linalg.norm(Theta - center)
        if distance > radius:
            Theta = center + (Theta - center) * (LONG(0.999) * radius / distance)
        value = truth.value(*truth.to_user(Theta))
        assert model.lower_bound_ <= value + slack, (
            f"lower_bound_ is {model.lower_bound_}, but rival {k} attains {value} (objective_ {model.objective_})"
        )


#: warnings about data that generated problems may well have: prices of forbidden options, one column of costs where
#: there is one decision only, an option that is available in no row, and cycles whose costs add up to less than zero
ABOUT_DATA = (
    "times as large as all others of their decision",
    "y has one column",
    "No sample has a cost",
    "make a cycle of the graph profitable",
)


def count(test: str, outcome: str) -> None:
    """Note an outcome, here and in Hypothesis's statistics."""
    event(outcome)
    COUNTS.setdefault(test, Counter())[outcome] += 1


def run(action) -> tuple[str, Any]:
    """Outcome of an action, and what it returned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            result = action()
        except (ValueError, TypeError) as error:
            # LinAlgError is a ValueError, too.
            if isinstance(error, np.linalg.LinAlgError) or not any(re.search(cause, str(error)) for cause in CAUSES):
                raise
            return "refused", None
        except sk.SolverError as error:
            if "Costs of very different sizes" not in str(error):
                raise
            return "refused", None
    others = [
        str(w.message)
        for w in caught
        if not issubclass(w.category, (ConvergenceWarning, UndefinedMetricWarning))
        and not any(text in str(w.message) for text in ABOUT_DATA)
    ]
    assert not others, f"warnings: {others}"
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return "warned" if warned else "certified", result


def use(model: Any, problem: Problem) -> None:
    """Fit and use a model."""
    model.fit(problem.X, problem.C, **problem.data)
    W = model.decide(problem.X, problem.offset)
    score = model.score(problem.X, problem.C, problem.weight, problem.offset)
    assert np.isfinite(W).all(), "decisions are not finite"
    assert np.isfinite(score) and score <= 0, f"the score is {score}"


def judge_spo_plus(problem: Problem) -> str:
    """SPOPlusRegressor."""
    model = sk.SPOPlusRegressor(problem.region, **problem.params)
    outcome, _ = run(lambda: use(model, problem))
    if outcome != "refused":
        small = model.duality_gap_ <= model.tol
        assert small == (outcome == "certified"), f"{outcome} with a gap of {model.duality_gap_}"
        check_model(problem, model, Truth(problem, model.get_params()))
    return outcome


def judge_cv(problem: Problem) -> str:
    """SPOPlusRegressorCV, and the path that it chooses from."""
    common = problem.params | {"n_alphas": 3}
    model = sk.SPOPlusRegressorCV(problem.region, cv=2, **common)
    outcome, _ = run(lambda: use(model, problem))
    path_outcome, path = run(lambda: sk.spo_plus_path(problem.X, problem.C, problem.region, **common, **problem.data))
    if outcome != "refused":
        for name, scores in model.cv_results_.items():
            assert np.isfinite(scores).all() or name == "alpha", f"{name} is {scores}"
        truth = Truth(problem, model.get_params() | {"alpha": 0.0})
        loss, slack = check_predictions(problem, model, truth)
        assert loss <= model.objective_ * (1 + 1e-9) + slack, f"objective_ is {model.objective_}, the loss alone {loss}"
        assert -slack <= model.lower_bound_ <= model.objective_
        if not truth.prior_is_least_squares:
            # The penalty is that of standardized coefficients.
            truth.standardized = model.alpha_ * truth.cost_scale
            check_bound(model, truth, slack, everywhere=False)
    if path_outcome != "refused":
        _, coefs, intercepts, objectives, gaps = path
        for array in (coefs, intercepts, objectives, gaps):
            assert np.isfinite(array).all()
        assert (gaps >= 0).all()
        assert path_outcome == "warned" or (gaps <= 1e-6).all()
    return max(outcome, path_outcome, key=["refused", "certified", "warned"].index)


def judge_spo(problem: Problem) -> str:
    """SPORegressor: at least as good as the SPO+ model it starts from, with a correct objective."""
    model = sk.SPORegressor(problem.region, max_iter=20, n_restarts=1, random_state=0, **problem.params)
    outcome, _ = run(lambda: use(model, problem))
    if outcome != "refused":
        truth = Truth(problem, model.get_params() | {"prior": "zero"})
        _, slack = check_predictions(problem, model, truth)
        assert -slack <= model.lower_bound_ <= model.objective_
        regret = truth.regret(truth.predict(model.coef_.astype(LONG), np.asarray(model.intercept_, dtype=LONG)))
        assert regret >= -slack
    return outcome


def judge_two_stage(problem: Problem) -> str:
    """TwoStageRegressor with its linear regression."""
    model = sk.TwoStageRegressor(None, problem.region, shared=problem.params["shared"])
    outcome, _ = run(lambda: use(model, problem))
    if outcome != "refused":
        assert np.isfinite(model.predict(problem.X, problem.offset)).all()
    return outcome
