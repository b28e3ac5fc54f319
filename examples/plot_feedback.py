"""
Sorting mail by its own mistakes
================================

A machine reads the digit on a letter and sends it to one of ten bins; the further the bin is from the right one, the
more it costs to bring the letter there.  The log has the cost of the bin that was chosen, and nothing about the other
nine.  What can be learned from it?  The digits are real (scikit-learn), and all costs are known, so that every answer
can be checked.
"""

# %%
# A log
# -----
# The old machine was trained on 150 digits.  During a test phase every second letter went to a random bin, and the log
# says with which probability each bin was chosen.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import PartialFeedbackRegressor, Simplex, SPOPlusRegressor, TwoStageRegressor, estimated_cost

X, digit = load_digits(return_X_y=True)
X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
C = np.abs(digit[:, None] - np.arange(10.0))
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
first, train, test = np.split(order, [150, 1200])

old = TwoStageRegressor(Ridge(100.0), Simplex()).fit(X[first], C[first])
usual, random = old.decide(X), np.eye(10)[rng.integers(10, size=len(X))]
past = np.where(rng.random((len(X), 1)) < 0.5, random, usual)
propensity = 0.5 * usual + 0.5 / 10
seen = np.where(past > 0, C, np.nan)
print(f"the log has {np.isfinite(seen).mean():.0%} of the costs")

# %%
# A policy from the log
# ---------------------
# The nuisance predicts the other nine costs of each letter.
nuisance = make_pipeline(StandardScaler(), Ridge(100.0))


def policy(method):
    """SPO+ on pseudo-costs."""
    return PartialFeedbackRegressor(SPOPlusRegressor(Simplex(), alpha=0.1), nuisance=nuisance, method=method)


models = {"SPO+, direct": policy("direct"), "SPO+, doubly robust": policy("doubly_robust")}
for model in models.values():
    model.fit(X[train], seen[train], propensity=propensity[train])
models["SPO+, all costs seen"] = SPOPlusRegressor(Simplex(), alpha=0.1).fit(X[train], C[train])

# %%
# What do they cost?
# ------------------
# The estimates use the part of the log that was not used for training, and what was seen there.  They are compared with
# the true cost of each policy, and with that of the old machine.  A warning says where few letters went to the bin that
# the policy would choose: the interval may then be too short.
log = {"decisions": past[test], "propensity": propensity[test], "nuisance": nuisance}
names, estimates, truths, bars = [], [], [], []
for name, model in models.items():
    result = estimated_cost(model, X[test], seen[test], other="past", **log)
    true = (model.decide(X[test]) * C[test]).sum(axis=1).mean()
    print(f"{name:<22} estimated {result.cost:.2f} ({result.interval.text('{:.2f}')}), true {true:.2f}")
    names.append(name)
    estimates.append(result.cost)
    truths.append(true)
    bars.append(result.interval)
paid = (past[test] * C[test]).sum(axis=1).mean()
print(f"{'old machine':<22} paid {paid:.2f}")

# %%
# The picture
# -----------
fig, ax = plt.subplots(figsize=(7, 3))
y = np.arange(len(names))
low, high = np.array(bars).T
ax.errorbar(estimates, y, xerr=[estimates - low, high - estimates], fmt="o", capsize=4, label="estimated from the log")
ax.plot(truths, y, "kx", label="true")
ax.axvline(paid, color="gray", linestyle=":", label="what was paid")
ax.set(yticks=y, yticklabels=names, xlabel="mean cost of a letter", ylim=(-0.5, len(names) - 0.5))
ax.legend()
fig.tight_layout()
plt.show()
