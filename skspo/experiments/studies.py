"""Studies: settings, methods, and one trial of each.

The paper prints neither the size of the training sets of its first two figures nor its entropy threshold.  Here they
are 300 samples (portfolio), 1000 samples (classification), and the middle of the range that the theory allows.
The settings of Adam are not printed either: step size, patience and weight decay were chosen on a few other draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.linear_model import QuantileRegressor

from ..datasets import make_cost_sensitive_classification, make_portfolio
from ..estimators._mlp import SPOMLPRegressor
from ..estimators._spo import SPORegressor
from ..estimators._spo_plus import SPOPlusRegressor
from ..estimators._two_stage import TwoStageRegressor
from ..metrics import normalized_spo_loss, spo_loss
from ..regions import EntropySimplex, LogBarrierSimplex, Simplex
from ..regions.base import Region

#: one setting of a study: the names and values of what varies
Condition = dict[str, Any]

Model: TypeAlias = SPOMLPRegressor | SPORegressor | SPOPlusRegressor | TwoStageRegressor

N_TEST = 10_000
N_ASSETS = 50


class Study(NamedTuple):
    """A figure: its settings, its methods, and one trial of one setting."""

    name: str
    title: str
    metric: str
    across: str  # what the horizontal axis shows
    conditions: Callable[[bool], list[Condition]]
    methods: Callable[[Condition], list[str]]
    trial: Callable[[Condition, np.random.SeedSequence, str], dict[str, float]]
    curves: str = ""  # the setting of which each value is a curve on log-log axes; otherwise box plots


def fit_and_score(
    methods: list[str],
    region: Region,
    data: tuple[np.ndarray, ...],
    score: Callable[[np.ndarray, np.ndarray, Region], float | np.ndarray],
    *,
    network: bool,
    optimizer: str,
    seed: int,
) -> dict[str, float]:
    """Train every method on the same samples and score its decisions on the same test samples."""
    X, C, X_test, C_test = data
    values = {}
    for method in methods:
        model = make_model(method, region, C.shape[1], network=network, optimizer=optimizer, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the iteration limit is part of the experiment
            model.fit(X, C)
        values[method] = float(score(C_test, model.predict(X_test), region))
    return values


def make_model(method: str, region: Region, d: int, *, network: bool, optimizer: str, seed: int) -> Model:
    """Return the estimator of a method: exact linear models, or networks and linear models trained with Adam."""
    barrier = LogBarrierSimplex(2.0 * d * np.log(d))
    losses = {"SPO": "spo", "SPO+": "spo+", "SPO+ barrier": "spo+", "absolute": "absolute_error"}
    if network or optimizer == "adam":
        return SPOMLPRegressor(
            barrier if method == "SPO+ barrier" else region,
            loss=losses.get(method, "squared_error"),
            hidden_layer_sizes=(256,) if network else (),
            early_stopping=network,
            learning_rate_init=0.01,
            max_iter=500,
            n_iter_no_change=30,
            random_state=seed,
        )
    linear: dict[str, Callable[[], Model]] = {
        "SPO": lambda: SPORegressor(region, n_restarts=0, random_state=seed),
        "SPO+": lambda: SPOPlusRegressor(region),
        "SPO+ barrier": lambda: SPOPlusRegressor(region, surrogate_region=barrier),
        "absolute": lambda: TwoStageRegressor(QuantileRegressor(alpha=0.0, solver="highs"), region),
        "least squares": lambda: TwoStageRegressor(region=region),
    }
    return linear[method]()


def _split(X: np.ndarray, C: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    return X[:n], C[:n], X[n:], C[n:]


def _integer(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1)[0])


def _four_panels(quick: bool) -> list[Condition]:
    degrees, noises = ((1, 8), (0.5,)) if quick else ((1, 2, 4, 6, 8), (0.0, 0.5))
    models = ("linear",) if quick else ("linear", "network")
    return [{"model": m, "noise": e, "degree": g} for m, e, g in product(models, noises, degrees)]


def _portfolio_trial(condition: Condition, seed: np.random.SeedSequence, optimizer: str) -> dict[str, float]:
    number, n = _integer(seed), 300
    X, C = make_portfolio(n + N_TEST, degree=condition["degree"], noise=condition["noise"], random_state=number)
    region = EntropySimplex(condition.get("threshold"))
    return fit_and_score(
        _portfolio_methods(condition),
        region,
        _split(X, C, n),
        normalized_spo_loss,
        network=condition.get("model") == "network",
        optimizer=optimizer,
        seed=number,
    )


def _portfolio_methods(condition: Condition) -> list[str]:
    return ["SPO", "SPO+", "absolute", "least squares"]


def _classification_trial(condition: Condition, seed: np.random.SeedSequence, optimizer: str) -> dict[str, float]:
    number, n = _integer(seed), condition.get("n", 1000)
    X, C = make_cost_sensitive_classification(
        n + N_TEST, degree=condition["degree"], noise=condition["noise"], random_state=number
    )
    return fit_and_score(
        _classification_methods(condition),
        Simplex(),
        _split(X, C, n),
        spo_loss,
        network=condition["model"] == "network",
        optimizer=optimizer,
        seed=number,
    )


def _classification_methods(condition: Condition) -> list[str]:
    surrogates = ["SPO+", "SPO+ barrier"]
    return surrogates if "n" in condition else [*surrogates, "absolute", "least squares"]


def _barrier_conditions(quick: bool) -> list[Condition]:
    sizes = (100, 1000) if quick else (100, 300, 1000, 3000, 10_000)
    degrees, noises = ((2,), (0.5,)) if quick else ((1, 2, 4, 6, 8), (0.0, 0.5))
    return [{"model": "linear", "noise": e, "degree": g, "n": n} for e, g, n in product(noises, degrees, sizes)]


def _excess_conditions(quick: bool) -> list[Condition]:
    sizes = (100, 300, 1000) if quick else (100, 200, 500, 1000, 2000, 5000, 10_000)
    return [{"region": region, "n": n} for region, n in product(("polyhedron", "level set"), sizes)]


def _excess_trial(condition: Condition, seed: np.random.SeedSequence, optimizer: str) -> dict[str, float]:
    """SPO risk of the SPO+ model less that of the conditional mean of the costs, the best possible predictor."""
    number, n = _integer(seed), condition["n"]
    polyhedral = condition["region"] == "polyhedron"
    make = make_cost_sensitive_classification if polyhedral else make_portfolio
    X, C, mean = make(n + N_TEST, degree=1, noise=0.5, random_state=number, return_mean=True)
    region: Region = Simplex() if polyhedral else EntropySimplex()
    risk = fit_and_score(["SPO+"], region, _split(X, C, n), spo_loss, network=False, optimizer=optimizer, seed=number)
    return {"SPO+": risk["SPO+"] - float(spo_loss(C[n:], mean[n:], region))}


def _threshold_conditions(quick: bool) -> list[Condition]:
    inside = float(0.5 * (np.log(N_ASSETS) + np.log(N_ASSETS - 1)) / np.log(N_ASSETS))
    shares = (inside, 0.3) if quick else (inside, 0.95, 0.9, 0.7, 0.3)
    degrees = (6,) if quick else (2, 6)
    return [
        {"degree": g, "noise": 0.5, "entropy": round(s, 5), "threshold": -s * float(np.log(N_ASSETS))}
        for g, s in product(degrees, shares)
    ]


def _only_spo_plus(condition: Condition) -> list[str]:
    return ["SPO+"]


_PORTFOLIO = _portfolio_methods, _portfolio_trial
_CLASSIFICATION = _classification_methods, _classification_trial
_COST, _SHARE = "SPO loss", "normalized SPO loss"
_BARRIER = "SPO+ on the simplex and on its log-barrier approximation"
_THRESHOLD = "How the ranking depends on the entropy that is asked for"
_EXCESS = "Excess risk over the true model, degree one"

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study("portfolio", "Portfolio with an entropy constraint", _SHARE, "degree", _four_panels, *_PORTFOLIO),
        Study("classification", "Cost-sensitive classification", _COST, "degree", _four_panels, *_CLASSIFICATION),
        Study("barrier", _BARRIER, _COST, "n", _barrier_conditions, *_CLASSIFICATION),
        Study(
            "excess-risk", _EXCESS, "excess SPO risk", "n", _excess_conditions, _only_spo_plus, _excess_trial, "region"
        ),
        Study("threshold", _THRESHOLD, _SHARE, "entropy", _threshold_conditions, *_PORTFOLIO),
    )
}
