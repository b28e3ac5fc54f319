"""A test whether the noise of costs is symmetric, as far as decisions depend on it.

Conventions
-----------
    c' = 2 c_hat - c                costs c, reflected at the prediction c_hat
    G_i = w*(c_i) - w*(c'_i)        half the subgradient of the SPO+ loss at the prediction
    S = sum_i G_i q_i^T             q_i orthonormal features, an intercept included
    V                               the predictions in these features, a unit vector

If c_hat is the conditional mean and the noise is symmetric around it, c and c' have the same distribution, so the mean
of G given the features is zero, and SPO+ leaves the prediction where it is.  If the noise is skewed, and more so for
some decisions than for others, S is not zero on average, and SPO+ moves away from the conditional mean, for any number
of samples.  Under symmetry the signs of the G_i are random, and flipping them gives the distribution of the statistic.
The statistic is |S|^2 - <S, V>^2: a step along V only scales predictions, which changes no decision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orth
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_consistent_length

from .._training.design import check_blocks
from .._training.fitted import check_frames
from .._utils.params import integer
from .._utils.types import RandomState, RegionParams
from ..losses import check_costs, check_existing
from ..regions.base import Region
from ..regions.capabilities import equalities_of, project_visible
from ..regions.check import check_region


class SymmetryTest(NamedTuple):
    """Result of :func:`symmetry_test`."""

    ratio: float  # the statistic, relative to its mean over random signs
    p_value: float


def symmetry_test(
    X: ArrayLike,
    C: ArrayLike,
    C_hat: ArrayLike,
    region: Region,
    *,
    shared: bool = False,
    region_params: RegionParams | None = None,
    n_flips: int = 999,
    random_state: RandomState = 0,
) -> SymmetryTest:
    """Test whether SPO+ would leave predictions of the conditional mean where they are.

    SPO+ finds the best decisions if costs are symmetric around their conditional mean.  This is a test of that
    assumption, as far as it matters: costs are reflected at the predictions, and the decisions for costs and reflected
    costs are compared.  If their difference depends on the features, SPO+ with these features moves away from the
    predictions.  A change of the scale of all predictions does not count: it changes no decision.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features of the SPO+ model.
    C : array-like of shape (n_samples, d)
        Costs.
    C_hat : array-like of shape (n_samples, d)
        Predictions of the conditional mean, by the best model at hand.  For a flexible model use predictions of
        held-out samples (``sklearn.model_selection.cross_val_predict``).
    region : Region
        Feasible region of the decisions.
    shared : bool, default=False
        Whether X has d consecutive blocks of features, one block per cost, for a shared model.
    region_params : dict of array-like, or the like, optional
        Parameters of the region that vary by sample, one row per sample (see :func:`skspo.row_params`).
    n_flips : int, default=999
        Number of random signs.
    random_state : int, RandomState instance or None, default=0
        Seed of the signs.

    Returns
    -------
    test : SymmetryTest
        ``ratio``, about 1 for symmetric costs, and ``p_value``, the probability of a ratio at least as large.

    See Also
    --------
    excess_risks : Both risks for a given distribution of costs.

    Notes
    -----
    A small ``p_value`` says that SPO+ and the predictions disagree by more than chance.  The reason is asymmetric
    costs, or predictions that are not the conditional mean: a linear model of nonlinear costs, for example, which is
    where SPO+ is useful.  So use it with a model that fits well, and compare held-out decisions of SPO+ and that model.

    Examples
    --------
    >>> import numpy as np
    >>> from skspo import TopK
    >>> from skspo.calibration import symmetry_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 4, 2))  # two features of each of four items
    >>> mean = X[:, :, 0]
    >>> spread = np.exp(X[:, :, 1])
    >>> normal, skewed = rng.normal(size=mean.shape), rng.exponential(size=mean.shape) - 1
    >>> for noise in (normal, skewed):
    ...     test = symmetry_test(X.reshape(1000, 8), mean + spread * noise, mean, TopK(2), shared=True)
    ...     print(test.p_value < 0.01)
    False
    True
    """
    integer(1)("n_flips", n_flips)
    check_frames(None, region, X=X, C=C, C_hat=C_hat, region_params=region_params)
    C_arr, M = check_costs(C, C_hat, may_miss=True)
    n, d = C_arr.shape
    features = check_array(X, dtype=np.float64, input_name="X")
    check_consistent_length(features, C_arr)
    view = check_region(region, n_dim=d).with_rows(region_params, n, d)
    C_arr, possible = check_existing(C_arr, view, name="C")
    costs, mean = view.to_min(C_arr), view.to_min(M)
    G = view.solve_min(costs) - view.solve_min(2.0 * mean - costs)
    if shared:
        check_blocks(features.shape[1], d)
        features = features.reshape(n * d, -1)
    # Orthonormal features and a constant.
    spread = features.std(axis=0)
    U = orth((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    Q = np.column_stack([U, np.full(len(U), 1.0 / np.sqrt(len(U)))])
    visible = project_visible(mean, equalities_of(view, d), possible)
    if shared:  # S and V have one row
        V = visible.reshape(1, -1) @ Q
        Q, G = np.einsum("ij,ijk->ik", G, Q.reshape(n, d, -1)), np.ones((n, 1))
    else:
        V = visible.T @ Q
    V = V / (float(np.linalg.norm(V)) or 1.0)

    def statistic(signs: np.ndarray) -> float:
        S = (G * signs[:, None]).T @ Q
        return float(np.square(S).sum() - np.vdot(S, V) ** 2)

    size = statistic(np.ones(n))
    # The mean over all signs is the sum over samples.
    total = np.square(G).sum(axis=1) @ np.square(Q).sum(axis=1)
    expected = float(total - np.square(np.einsum("ij,jk,ik->i", G, V, Q)).sum())
    if expected <= 1e-12 * total:
        return SymmetryTest(1.0, 1.0)
    rng = check_random_state(random_state)
    flipped = np.array([statistic(rng.randint(0, 2, size=n) * 2.0 - 1.0) for _ in range(n_flips)])
    as_large = int((flipped >= size * (1.0 - 1e-12)).sum())
    return SymmetryTest(size / expected, (1 + as_large) / (1 + n_flips))
