"""A study for ``test_chaos``, in its own module, which is quick to import: every interrupted run imports it again."""

import numpy as np

import skspo as sk
from skspo.datasets import make_portfolio
from skspo.experiments import STUDIES, Study
from skspo.experiments.__main__ import main

LIMITS = sk.Polyhedron([[1.0, 2.0, 3.0]], [2.0], sense="max")


def settings(quick):
    return [{"degree": 1}, {"degree": 2}]


def methods(condition):
    return ["SPO+", "SPO"]


def fits(condition, seed, optimizer):
    """Fits with HiGHS and BLAS, so that signals arrive while libraries are running."""
    X, C = make_portfolio(20, 2, 3, degree=condition["degree"], random_state=int(seed.generate_state(1)[0]))
    spo_plus = sk.SPOPlusRegressor(LIMITS, solver="bundle", tol=1e-2)
    models = {"SPO+": spo_plus, "SPO": sk.TwoStageRegressor(region=LIMITS)}
    return {name: float(model.fit(X, C).score(X, C)) for name, model in models.items()}


def numbers(condition, seed, optimizer):
    """No fits: for tests of the files alone."""
    draws = np.random.default_rng(seed).normal(size=2)
    return {"SPO+": float(draws[0]), "SPO": float(draws[1])}


STUDY = Study("toy", "A toy", "loss", "degree", settings, methods, fits)
PAPER = STUDY._replace(trial=numbers)


def run(arguments):
    """The command line, with the toy among the studies."""
    STUDIES["toy"] = STUDY
    return main(arguments)
