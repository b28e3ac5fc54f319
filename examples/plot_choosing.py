"""
From SPO+ to SPO, as far as held-out decisions improve
======================================================

A portfolio of ten assets has to stay diversified: its entropy is limited.  The costs are a polynomial of the features,
and the models are linear, so none of them can be right.  How strong should the penalty of
:class:`~skspo.SPOPlusRegressorCV` be, and how far should :class:`~skspo.SPORegressorCV` go from the SPO+ loss towards
the SPO loss, which is the cost of the decisions itself?  Both ask the decisions for samples that were held out.
"""

# %%
# The penalty
# -----------
# The display shows the losses of held-out samples for every penalty.  Least squares is the strongest one.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skspo import (
    EntropySimplex,
    SPOPlusRegressorCV,
    SPORegressorCV,
    TwoStageRegressor,
    cross_val_decide,
    decide,
    normalized_spo_loss,
)
from skspo.datasets import make_portfolio
from skspo.plotting import RegularizationPathDisplay

X, C = make_portfolio(5300, 5, 10, degree=6, noise=0.5, random_state=0)
X, X_new, C, C_new = X[:300], X[300:], C[:300], C[300:]
region = EntropySimplex()
spo_plus = SPOPlusRegressorCV(region, n_alphas=12, tol=1e-4).fit(X, C)
RegularizationPathDisplay.from_estimator(spo_plus)
plt.show()

# %%
# The step
# --------
# A step of 0 is the SPO+ model, and a step of 1 the model with the least regret on the training data.
spo = SPORegressorCV(region, n_alphas=12, random_state=0).fit(X, C)
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(spo.cv_results_["step"], -spo.cv_results_["mean_test_score"], marker="o")
axes.axvline(spo.step_, color="tab:orange", label=f"chosen: {spo.step_:g}")
axes.set(xlabel="step from SPO+ (0) to SPO (1)", ylabel="held-out regret")
axes.legend()
plt.show()

# %%
# New samples
# -----------
# A pipeline has no method ``decide``; the function makes its decisions.  :func:`~skspo.cross_val_decide` gives an
# estimate of its regret without new samples.
pipeline = make_pipeline(StandardScaler(), SPOPlusRegressorCV(region, n_alphas=12, tol=1e-4)).fit(X, C)
W = decide(pipeline, X_new)
assert np.allclose(W.sum(axis=1), 1)
models = {"least squares": TwoStageRegressor(region=region).fit(X, C), "SPO+, CV": spo_plus, "SPO, CV": spo}
for name, model in models.items():
    print(f"{name}: extra cost on new samples {normalized_spo_loss(C_new, model.predict(X_new), region):.2%}")
best = (C * region.argmin(C)).sum()
held_out = cross_val_decide(pipeline, X, C, cv=5)
print(f"pipeline with SPO+, estimated from held-out samples: {(C * held_out).sum() / best - 1:.2%}")
