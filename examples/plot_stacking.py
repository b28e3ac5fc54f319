"""
A stack of models, weighted by their decisions
==============================================

Which model predicts the costs best, and which one leads to the best decisions?  :class:`~skspo.SPOStackingRegressor`
does not have to know beforehand: it fits several models, looks at the decisions that they would have made for held-out
days, and averages them with the weights that decide best.
"""

# %%
# Three kinds of members
# ----------------------
# Any regressor of scikit-learn can be a member.  Models of skspo get the region from the stack.  Without a list of
# estimators the stack has ridge regression, a random forest, histogram gradient boosting, SPO+, and SPO+ with kernel
# features and with products of features.
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skspo import ShortestPath, SPOPlusRegressorCV, SPOStackingRegressor
from skspo.datasets import make_shortest_path

shape = (3, 3)
region = ShortestPath.grid(*shape)
quadratic = make_pipeline(PolynomialFeatures(2, include_bias=False), SPOPlusRegressorCV(prior="ridge", n_alphas=12))
members = [
    ("ridge", RidgeCV(np.logspace(-3, 3, 13))),
    ("forest", RandomForestRegressor(50, min_samples_leaf=3, random_state=0)),
    ("spo+", SPOPlusRegressorCV(n_alphas=12)),
    ("spo+ quadratic", quadratic),
]

# %%
# Routes, for costs of different degrees
# --------------------------------------
# At degree 1 a linear model of costs is right, and nothing beats ridge regression by much: the guard mixes it with the
# stack, whose share is the smaller, the less certain its gain on held-out days is.  At higher degrees the stack gains.
stacks = {}
print("Extra cost of the routes beyond hindsight, on 5,000 new days (SPO+ members included)")
print(f"{'degree':>6}  {'stack':>7}  " + "  ".join(f"{name:>14}" for name, _ in members) + "  share")
for degree in (1, 4, 8):
    X, C, coef = make_shortest_path(1000, grid=shape, degree=degree, noise=0.5, random_state=3, return_coef=True)
    X_test, C_test = make_shortest_path(5000, grid=shape, degree=degree, noise=0.5, random_state=103, coef=coef)
    stacks[degree] = stack = SPOStackingRegressor(region, members, random_state=0).fit(X, C)
    figures = [-stack.score(X_test, C_test)]
    figures += [-member.score(X_test, C_test) for member in stack.estimators_]
    cells = "  ".join(f"{f:14.2%}" for f in figures[1:])
    print(f"{degree:6d}  {figures[0]:7.2%}  {cells}  {stack.stack_share_:5.2f}")

# %%
# What was compared
# -----------------
# ``cv_results_`` has the held-out regret of every member, of equal weights and of the stack, with standard
# errors, and the gain over the best member that ignores decisions, which is chosen on other samples than those that
# judge it.
results = stack.cv_results_
for name in ("ridge", "forest", "spo+", "spo+ quadratic", "equal weights", "stack"):
    k = int(np.flatnonzero(results["candidate"] == name)[0])
    print(
        f"{name:14s} regret {results['mean_test_spo_loss'][k]:.4f} +- {results['se_test_spo_loss'][k]:.4f}, "
        f"gain {results['mean_gain'][k]:+.4f} +- {results['se_gain'][k]:.4f}"
    )

# %%
import matplotlib.pyplot as plt

from skspo.plotting import StackingDisplay

figure, axes = plt.subplots(1, 2, figsize=(13, 3.4), layout="constrained")
for axis, degree in zip(axes, (1, 8), strict=True):
    StackingDisplay.from_estimator(stacks[degree], ax=axis)
    axis.set_title(f"degree {degree}, share of the stack {stacks[degree].stack_share_:.2f}")
plt.show()
