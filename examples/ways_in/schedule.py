"""Prices are predicted per hour, decisions are the starts of tasks."""

import numpy as np

from skspo import LinearImage, MixedInteger, SPOPlusRegressor

hours, tasks = 8, [(2, 4.0), (3, 1.0), (1, 5.0)]  # duration and power of each task
starts = [(k, t) for k, (length, _) in enumerate(tasks) for t in range(hours - length + 1)]
runs = np.array([[t <= hour < t + tasks[k][0] for k, t in starts] for hour in range(hours)], dtype=float)
once = np.array([[k == task for k, _ in starts] for task in range(len(tasks))], dtype=float)
one_at_a_time = MixedInteger(runs, np.ones(hours), once, np.ones(len(tasks)), bounds=(0, 1))
region = LinearImage(one_at_a_time, runs * [tasks[k][1] for k, _ in starts])
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
C = 30 + 8 * X @ rng.normal(size=(3, hours)) + 3 * rng.normal(size=(60, hours))
model = SPOPlusRegressor(region, alpha=0.1, prior="least_squares", tol=1e-3).fit(X[:40], C[:40])
print([starts[j] for j in np.flatnonzero(region.inner_argmin(model.predict(X[40:41]))[0])])
