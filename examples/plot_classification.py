"""
Reading amounts: classification with costs
==========================================

A machine reads handwritten digits on forms.  Reading a 3 as an 8 costs 5 units of money, reading it as a 4 costs 1
unit, and asking a person costs 1 for every digit.  So there are eleven decisions (ten digits, or *ask*), and the cost
matrix has a row for each true digit:

    cost of answer j when the digit is k = ``|j - k|``,     cost of asking = 1.

This is a linear problem over the :class:`~skspo.Simplex`: choose the decision of least predicted cost.  We compare

- regressors of the eleven costs (least squares, random forest, gradient boosting),
- :class:`~skspo.SPOPlusRegressorCV`, the same linear model as least squares, trained for its decisions,
- scikit-learn's classifiers, with the cost matrix applied to their probabilities: the expected cost of each decision is
  ``predict_proba(X) @ matrix``.

The data are the digits of scikit-learn.
"""

# %%
# Data and costs
# --------------
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

X, digit = load_digits(return_X_y=True)
X = X / 16.0  # shades of grey from 0 to 1
digits = np.arange(10)
matrix = np.column_stack([np.abs(digits[:, None] - digits), np.ones(10)])
answers = [*map(str, digits), "ask"]
C = matrix[digit]  # one row of costs per image
X, X_test, C, C_test, digit, digit_test = train_test_split(X, C, digit, test_size=0.4, random_state=0, stratify=digit)
print(f"{len(X)} images to learn from, {len(X_test)} held out")

# %%
# Models
# ------
# Every regressor gets the same pixels and the same costs.  The penalty of SPO+ is chosen by cross-validation on the
# training data.
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression

from skspo import Simplex, SPOPlusRegressorCV, TwoStageRegressor

region = Simplex()
regressors = {
    "least squares": TwoStageRegressor(region=region),
    "random forest": TwoStageRegressor(RandomForestRegressor(50, random_state=0), region),
    "gradient boosting": TwoStageRegressor(HistGradientBoostingRegressor(max_iter=40, random_state=0), region),
    "SPO+": SPOPlusRegressorCV(region, alphas=[0.03, 0.003, 0.0003], cv=3, tol=1e-4),
}
classifiers = {
    "logistic regression": LogisticRegression(max_iter=2000),
    "random forest": RandomForestClassifier(100, random_state=0),
    "gradient boosting": HistGradientBoostingClassifier(max_iter=40, random_state=0),
}
predictions = {}
for name, model in regressors.items():
    predictions[f"{name}, costs"] = model.fit(X, C).predict(X_test)
for name, model in classifiers.items():
    predictions[f"{name}, probabilities"] = model.fit(X, digit).predict_proba(X_test) @ matrix

# %%
# Cost of the answers
# -------------------
# The right digit costs nothing, so the cost of an answer is its regret.
print(f"{'':34s} {'cost per digit':>18s} {'asked':>7s} {'misread':>8s}")
for name, C_hat in predictions.items():
    W = region.argmin(C_hat)
    cost = (C_test * W).sum(axis=1)
    error = cost.std() / np.sqrt(len(cost))
    asked = W[:, 10] == 1
    misread = (W.argmax(axis=1) != digit_test) & ~asked
    print(f"{name:34s} {cost.mean():>8.3f} +- {error:.3f} {asked.mean():>9.1%} {misread.mean():>8.1%}")

# %%
# The linear model trained with SPO+ has a fraction of the cost of the same model fitted by least squares, and it is
# better than the regressions with trees.  Least squares predicts poorly and asks in half of the cases; SPO+ asks
# rarely.
#
# But here the costs are a known function of a label, and models of the label's probabilities use this knowledge:
# logistic regression, which is also linear, is slightly better than SPO+ (about one standard error), and boosting of
# probabilities is clearly the best.  With classes and a cost matrix, start with a calibrated classifier.  (Calibration
# matters: the forest's probabilities are too flat, and with them the machine asks too often.)  SPO+ is for costs that
# are *not* a function of a few labels.
#
# *Ask* is a decision and not a class.  If the decisions are the classes, :class:`~skspo.CostSensitiveClassifier` is a
# scikit-learn classifier for both kinds of models: it takes labels and a cost matrix.
#
# The answers of SPO+, and the correct ones:
import matplotlib.pyplot as plt

from skspo.plotting import DecisionDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
DecisionDisplay.from_predictions(predictions["SPO+, costs"], C_test, region, labels=answers, ax=left, colorbar=False)
left.set_title(f"SPO+: {left.get_title()}")
costs = {name: (C_test * region.argmin(C_hat)).sum(axis=1) for name, C_hat in predictions.items()}
errors = [cost.std() / np.sqrt(len(cost)) for cost in costs.values()]
colors = ["tab:orange" if name.startswith("SPO+") else "tab:gray" for name in costs]
right.barh(list(costs), [cost.mean() for cost in costs.values()], xerr=errors, color=colors)
right.invert_yaxis()
right.set(xlabel="cost per digit, with standard errors", title="What reading a digit costs, on held-out images")
plt.show()
