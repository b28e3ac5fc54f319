"""
Nonlinear features, and how to choose them
==========================================

A linear model of the features cannot represent costs that are not linear in them.  Two remedies: more features, made by
a transformer of scikit-learn before :class:`~skspo.SPOPlusRegressorCV`, or a stack of several models, see
:ref:`sphx_glr_gallery_plot_stacking.py`.

This example uses Nystroem features of a Gaussian kernel.  Their width ``gamma`` and the penalty ``alpha`` have to be
chosen together: a narrow kernel needs a stronger penalty.  :class:`~skspo.SPOPlusRegressorCV` chooses ``alpha`` for
each ``gamma``, and a loop compares the held-out losses of the widths.
"""

# %%
# Routes whose costs are polynomials of the features
# --------------------------------------------------
import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from skspo import ShortestPath, SPOPlusRegressorCV, TwoStageRegressor, spo_plus_loss
from skspo.datasets import make_shortest_path

shape = (3, 3)
region = ShortestPath.grid(*shape)
X, C, coef = make_shortest_path(400, grid=shape, degree=6, noise=0.5, random_state=2, return_coef=True)
X_test, C_test = make_shortest_path(5000, grid=shape, degree=6, noise=0.5, random_state=102, coef=coef)


def features(gamma):
    """The features themselves, and 40 features of a Gaussian kernel."""
    kernel = Nystroem(gamma=gamma, n_components=40, random_state=0)
    return make_pipeline(StandardScaler(), make_union(FunctionTransformer(), kernel))


# %%
# The kernel width and the penalty, together
# ------------------------------------------
# The transformer ignores the costs, so that it may see all rows.  All widths use the same folds.  The held-out SPO+
# loss is the criterion for both parameters: it is less noisy than the regret of a few hundred decisions.
#
# ``prior="ridge"``: least squares on many features overfits, and a model that is shrunk towards it does so too.
folds = list(KFold(5).split(X))
gammas = np.geomspace(0.003, 1.0, 6)
searches = {}
for gamma in gammas:
    Z = features(gamma).fit_transform(X)
    searches[gamma] = SPOPlusRegressorCV(region, prior="ridge", n_alphas=12, cv=folds).fit(Z, C)
# The path ends where candidates get worse; the scores of those after it are NaN.
losses = {gamma: np.nanmin(search.cv_results_["mean_test_spo_plus_loss"]) for gamma, search in searches.items()}
best = min(losses, key=losses.get)
for gamma, search in searches.items():
    print(f"gamma {gamma:6.3f}: alpha {search.alpha_:8.3g}, held-out SPO+ loss {losses[gamma]:.4f}")

# %%
# The result on new days
# ----------------------
quadratic = PolynomialFeatures(2, include_bias=False)
models = {
    "least squares": TwoStageRegressor(region=region),
    "ridge, quadratic": TwoStageRegressor(make_pipeline(quadratic, RidgeCV(np.logspace(-3, 3, 13))), region),
    "ridge, kernel": TwoStageRegressor(make_pipeline(features(best), RidgeCV(np.logspace(-3, 3, 13))), region),
    "SPO+, linear": SPOPlusRegressorCV(region, cv=folds),
    "SPO+, quadratic": make_pipeline(quadratic, SPOPlusRegressorCV(region, prior="ridge", cv=folds)),
    "SPO+, kernel": make_pipeline(features(best), SPOPlusRegressorCV(region, prior="ridge", n_alphas=12, cv=folds)),
}
print("\nExtra cost of the routes beyond hindsight, on 5,000 new days")
for name, model in models.items():
    print(f"{name:18s} {-model.fit(X, C).score(X_test, C_test):7.2%}", flush=True)

# %%
# This is one draw of the data; ``python benchmarks/nonlinear.py`` has medians of many.
import matplotlib.pyplot as plt

from skspo.plotting import RegretDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), width_ratios=(1, 1.3), layout="constrained")
for gamma, search in searches.items():
    results = search.cv_results_
    left.plot(results["alpha"], results["mean_test_spo_plus_loss"], label=f"gamma {gamma:.3g}")
left.axhline(spo_plus_loss(C, np.tile(C.mean(axis=0), (len(C), 1)), region), color="0.6", ls=":", label="mean cost")
left.set(xscale="log", xlabel="alpha", ylabel="held-out SPO+ loss", title="Width of the kernel and penalty")
left.legend(frameon=False, fontsize="small")
RegretDisplay.from_estimators(models, X_test, C_test, normalize=True, ax=right)
right.tick_params(axis="x", labelsize=8)
right.set_title("Extra cost of the routes on new days")
plt.show()
